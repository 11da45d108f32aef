// Databases, collections, shard keys, indexes, the service's extension commands.
import { assert, fails, suite } from "./harness.js";

suite("collections", (t) => {
  t.it("are created, listed, renamed and dropped", async () => {
    const collection = t.collection();
    const name = collection.collectionName;
    await t.db.createCollection(name);
    await fails(t.db.createCollection(name), 48);
    const listed = (await t.db.listCollections({ name }).toArray())[0];
    assert.equal(listed.type, "collection");
    assert.deepEqual(listed.idIndex, { v: 2, key: { _id: 1 }, name: "_id_" });
    assert.deepEqual(await t.db.listCollections({ name }, { nameOnly: true }).toArray(), [{ name, type: "collection" }]);
    await collection.insertOne({ _id: 1 });
    await collection.rename(`${name}x`);
    assert.equal(await t.db.collection(`${name}x`).estimatedDocumentCount(), 1);
    assert.equal(await t.db.collection(`${name}x`).drop(), true);
    assert.deepEqual(await t.db.listCollections({ name: `${name}x` }).toArray(), []);
    await fails(t.db.createCollection("a$b"), 73);
    await fails(t.db.createCollection(t.collection().collectionName, { capped: true, size: 1000 }), 72);
  });

  t.it("make databases, which are listed and dropped", async () => {
    const db = t.client.db(`${t.db.databaseName}extra`);
    await db.collection("a").insertOne({ _id: 1 });
    const listed = (await t.client.db("admin").command({ listDatabases: 1, filter: { name: db.databaseName } })).databases;
    assert.equal(listed.length, 1);
    assert.ok(listed[0].sizeOnDisk > 0);
    assert.equal((await db.stats()).objects, 1);
    assert.equal((await db.command({ collStats: "a" })).count, 1);
    assert.equal((await db.command({ dataSize: `${db.databaseName}.a` })).numObjects, 1);
    assert.deepEqual((await t.client.db("admin").command({ currentOp: 1, "command.createIndexes": "a", "command.$db": db.databaseName })).inprog, []);
    await db.dropDatabase();
    assert.deepEqual((await t.client.db("admin").command({ listDatabases: 1, nameOnly: true, filter: { name: db.databaseName } })).databases, []);
  });

  t.it("are sharded by one field, with the service's reply", async () => {
    const collection = t.collection();
    const ns = `${t.db.databaseName}.${collection.collectionName}`;
    const reply = await t.command({ shardCollection: ns, key: { region: "hashed" } });
    assert.deepEqual({ ...reply }, { _t: "ShardCollectionResponse", collectionsharded: ns, ok: 1 });
    await collection.insertMany([{ _id: 1, region: "eu", x: 1 }, { _id: 1, region: "us", x: 2 }, { _id: 2, region: "eu", x: 3 }]);
    await fails(collection.insertOne({ _id: 3 }), 61);
    await fails(collection.insertOne({ _id: 1, region: "eu" }), 11000);
    await fails(collection.updateOne({ _id: 1, region: "eu" }, { $set: { region: "us" } }), 66);
    assert.deepEqual((await collection.find({ region: "eu" }).toArray()).map((d) => d.x), [1, 3]);
    assert.deepEqual((await collection.find({ _id: 1 }).sort({ x: 1 }).toArray()).map((d) => d.x), [1, 2]);
    assert.equal((await collection.findOne({ _id: 1, region: "us" })).x, 2);
    assert.equal((await collection.updateMany({}, { $inc: { x: 10 } })).modifiedCount, 3);
    assert.equal((await collection.deleteOne({ _id: 2 })).deletedCount, 1);
    await fails(t.command({ shardCollection: ns, key: { other: 1 } }), 23);
    await fails(t.command({ shardCollection: `${t.db.databaseName}.x`, key: { a: 1, b: 1 } }), 2);
  });

  t.it("follow the service's custom actions", async () => {
    const db = t.client.db(`${t.db.databaseName}custom`);
    assert.equal((await db.command({ customAction: "CreateDatabase", offerThroughput: 1000 })).ok, 1);
    assert.equal((await db.command({ customAction: "GetDatabase" })).provisionedThroughput, 1000);
    await db.command({ customAction: "UpdateDatabase", offerThroughput: 1200 });
    assert.equal((await db.command({ customAction: "GetDatabase" })).provisionedThroughput, 1200);
    const indexes = [{ key: { _id: 1 }, name: "_id_" }, { key: { a: 1 }, name: "a_1" }];
    await db.command({ customAction: "CreateCollection", collection: "c", offerThroughput: 500, shardKey: "a.b", indexes });
    const got = await db.command({ customAction: "GetCollection", collection: "c", showIndexes: true });
    assert.equal(got.provisionedThroughput, 500);
    assert.deepEqual(got.shardKeyDefinition, { "a.b": "hashed" });
    assert.deepEqual(got.indexes.map((x) => x.name), ["_id_", "a_1"]);
    await db.command({ customAction: "CreateCollection", collection: "d", autoScaleSettings: { maxThroughput: 4000 } });
    const scaled = await db.command({ customAction: "GetCollection", collection: "d" });
    assert.deepEqual([scaled.provisionedThroughput, scaled.autoScaleSettings], [400, { maxThroughput: 4000 }]);
    await fails(db.command({ customAction: "UpdateCollection", collection: "d", offerThroughput: 400 }), 2);
    await fails(db.command({ customAction: "Nothing" }), 2);
    await db.dropDatabase();
  });
});

suite("indexes", (t) => {
  t.it("are created, listed and dropped", async () => {
    const collection = t.collection();
    const created = await t.command({ createIndexes: collection.collectionName, indexes: [{ key: { a: 1 }, name: "a_1" }] });
    assert.deepEqual({ ...created }, { createdCollectionAutomatically: true, numIndexesBefore: 1, numIndexesAfter: 2, ok: 1 });
    assert.equal(await collection.createIndex({ a: 1, "b.c": -1 }), "a_1_b.c_-1");
    assert.equal(await collection.createIndex({ "x.$**": 1 }), "x.$**_1");
    assert.deepEqual(await collection.indexes(), [
      { v: 2, key: { _id: 1 }, name: "_id_" },
      { v: 2, key: { a: 1 }, name: "a_1" },
      { v: 2, key: { a: 1, "b.c": -1 }, name: "a_1_b.c_-1" },
      { v: 2, key: { "x.$**": 1 }, name: "x.$**_1" },
    ]);
    await fails(collection.createIndex({ b: 1 }, { name: "a_1" }), 86);
    await fails(collection.createIndex({ a: 1 }, { name: "other" }), 85);
    await fails(collection.createIndex({ a: 0 }), 67);
    await collection.dropIndex("a_1");
    await fails(collection.dropIndex("a_1"), 27);
    await fails(collection.dropIndex("_id_"), 72);
    await collection.dropIndexes();
    assert.equal((await collection.indexes()).length, 1);
    await fails(t.db.collection("none").indexes(), 26);
  });

  t.it("are used, and change no result", async () => {
    const collection = t.collection();
    const documents = [];
    for (let i = 0; i < 600; i++) {
      const a = [i % 50, `t${i % 50}`, [i % 50, (i * 3) % 50], null, undefined, { b: i % 20 }, [{ b: i % 20 }, { b: 3 }], new Date(i % 50), i / 2][i % 9];
      documents.push(a === undefined ? { _id: i } : { _id: i, a });
    }
    await collection.insertMany(documents);
    const filters = [
      { a: 7 }, { a: { $gt: 10, $lt: 20 } }, { a: { $gte: 45 } }, { a: "t6" }, { a: { $in: [1, 2, "t1", new Date(5)] } }, { a: null },
      { "a.b": 3 }, { "a.b": { $lt: 4 } }, { $or: [{ a: 3 }, { "a.b": 7 }] }, { a: { $gt: 10 }, _id: { $lt: 300 } }, { a: { $ne: 3 } },
      { a: { $lte: new Date(10) } }, { "a.0": 4 }, { a: { $elemMatch: { $gt: 5, $lt: 8 } } }, { a: { $exists: false } }, { a: [9, 27] },
      { a: /^t1/ }, { a: 2.5 }, { $and: [{ a: { $gt: 3 } }, { a: { $lt: 9 } }] },
    ];
    const ids = async (filter) => (await collection.find(filter).toArray()).map((d) => d._id);
    const before = [];
    for (const filter of filters) before.push(await ids(filter));
    await collection.createIndex({ a: 1 });
    await collection.createIndex({ "a.b": 1 });
    for (const [i, filter] of filters.entries()) assert.deepEqual(await ids(filter), before[i], JSON.stringify(filter));
    const stats = async (filter) => (await collection.find(filter).explain()).executionStats;
    const indexed = await stats({ a: 7 });
    assert.equal(indexed.nReturned, before[0].length);
    assert.ok(indexed.totalDocsExamined < 60, `documents examined: ${indexed.totalDocsExamined}`);
    assert.ok(indexed.totalKeysExamined > 0);
    assert.equal((await stats({ none: 7 })).totalDocsExamined, 600);
    const plan = async (filter) => (await collection.find(filter).explain()).queryPlanner.winningPlan;
    assert.equal((await plan({ a: 7 })).inputStage.stage, "IXSCAN");
    assert.equal((await plan({ none: 7 })).stage, "COLLSCAN");
    assert.equal((await plan({ _id: 7 })).stage, "IDHACK");
  });

  t.it("keep values unique", async () => {
    const collection = t.collection();
    await collection.createIndex({ email: 1 }, { unique: true });
    await collection.insertOne({ _id: 1, email: "a" });
    const raw = await t.command({ insert: collection.collectionName, documents: [{ _id: 2, email: "a" }] });
    assert.deepEqual([raw.writeErrors[0].code, raw.writeErrors[0].keyPattern, raw.writeErrors[0].keyValue], [11000, { email: 1 }, { email: "a" }]);
    await collection.insertOne({ _id: 2, email: "b" });
    await fails(collection.updateOne({ _id: 2 }, { $set: { email: "a" } }), 11000);
    assert.equal((await collection.indexes())[1].unique, true);
    await fails(collection.createIndex({ other: 1 }, { unique: true }), 11000); // both documents lack it
  });

  t.it("expire documents by _ts", async () => {
    const collection = t.collection();
    await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 1 });
    await collection.insertOne({ _id: 1 });
    for (let i = 0; i < 60 && (await collection.findOne({ _id: 1 })); i++) await new Promise((done) => setTimeout(done, 100));
    assert.equal(await collection.findOne({ _id: 1 }), null);
    await fails(collection.createIndex({ when: 1, _ts: 1 }, { expireAfterSeconds: 1 }), 67);
  });
});
