// Commands that look after collections: validate, reIndex, collMod, statistics; the service's actions on indexes and change streams.
import { Timestamp } from "mongodb";
import { after } from "node:test";
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

const reader = Buffer.alloc(64, 7).toString("base64"); // the read-only key

suite("collections are looked after", (t) => {
  let rest;
  after(() => rest?.close());
  const split = async (collection, parts) => {
    rest ??= new Rest({ server: t.server, version: "2020-07-15" });
    const ranges = (await rest.get(`/dbs/${t.db.databaseName}/colls/${collection.collectionName}/pkranges`)).json.PartitionKeyRanges;
    const body = { database: t.db.databaseName, container: collection.collectionName, range: ranges[0].id, parts };
    assert.equal((await rest.post("/_tesela/split", body, { sign: false })).status, 200);
  };
  const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
  const filled = async (n, options) => {
    const collection = await t.db.createCollection(t.collection().collectionName, options);
    await collection.insertMany(numbers(0, n).map((i) => ({ _id: i, a: i % 7, list: [i, i + 1, i], ...(i % 2 ? { odd: i } : {}), text: `word ${i % 3}` })));
    return collection;
  };
  const validate = (collection, options) => t.command({ validate: collection.collectionName, ...options });

  t.it("by validate, which counts documents, keys and what does not conform", async () => {
    const collection = await filled(500, { validator: { a: { $lt: 5 } }, validationAction: "warn" });
    await collection.createIndexes([
      { key: { a: 1, list: -1 } },
      { key: { odd: 1 }, sparse: true },
      { key: { _id: 1, a: 1 }, partialFilterExpression: { a: { $gt: 3 } }, name: "part" },
      { key: { text: "text" } },
      { key: { "list.$**": 1 } },
    ]);
    const result = await validate(collection);
    assert.deepEqual([result.valid, result.nrecords, result.nInvalidDocuments, result.nIndexes, result.errors], [true, 500, 0, 6, []]);
    assert.equal(result.nNonCompliantDocuments, numbers(0, 500).filter((i) => i % 7 >= 5).length);
    assert.match(result.warnings[0], /do not conform/);
    const inPart = numbers(0, 500).filter((i) => i % 7 > 3).length;
    const { _id_, "a_1_list_-1": both, odd_1, part, text_text } = result.keysPerIndex;
    assert.deepEqual({ _id_, both, odd_1, part, text_text }, { _id_: 500, both: 1000, odd_1: 250, part: inPart, text_text: 1000 });
    assert.deepEqual(Object.values(result.indexDetails).map((x) => x.valid), Array(6).fill(true));
    await fails(validate(collection, { repair: true }), 72, /restore a backup/);
    await fails(t.command({ validate: "nothing" }), 26);
  });

  t.it("by validate, also while clients write", async () => {
    const collection = await filled(300);
    await collection.createIndexes([{ key: { a: 1 } }, { key: { list: 1 } }]);
    let writing = true;
    const writer = (async () => {
      for (let i = 0; writing; i++) {
        await collection.updateOne({ _id: i % 300 }, { $set: { a: i, list: [i] } });
        if (i % 3 === 0) await collection.insertOne({ _id: 1000 + i, a: i });
        if (i % 5 === 0) await collection.deleteOne({ _id: 1000 + i });
      }
    })();
    for (let i = 0; i < 10; i++) {
      const { valid, errors } = await validate(collection);
      assert.deepEqual([valid, errors], [true, []]);
    }
    writing = false;
    await writer;
    assert.equal((await validate(collection)).nrecords, await collection.countDocuments());
  });

  t.it("by reIndex, which builds indexes anew while they are read and written", async () => {
    const collection = await filled(2000);
    await collection.createIndexes([{ key: { a: 1 } }, { key: { list: 1 } }, { key: { odd: 1 }, unique: true, sparse: true }]);
    const building = t.command({ reIndex: collection.collectionName });
    for (let i = 0; i < 30; i++) {
      await collection.insertOne({ _id: 5000 + i, a: 100, list: [i] });
      assert.equal((await collection.find({ a: 100 }).toArray()).length, i + 1);
    }
    const built = await building;
    assert.deepEqual([built.nIndexesWas, built.nIndexes, built.indexes.length], [4, 4, 4]);
    await t.command({ reIndex: collection.collectionName });
    assert.equal((await validate(collection)).valid, true);
    const plan = await collection.find({ a: 100 }).explain("executionStats");
    assert.equal(plan.queryPlanner.winningPlan.inputStage.indexName, "a_1");
    assert.equal(plan.executionStats.nReturned, 30);
    await fails(collection.insertOne({ odd: 7 }), 11000);
    await fails(t.command({ reIndex: "nothing" }), 26);
  });

  t.it("by createIndexes, which builds an index while documents are written", async () => {
    const collection = await filled(3000);
    let built = false;
    const building = collection.createIndexes([{ key: { a: 1 } }, { key: { list: -1, a: 1 } }]).finally(() => (built = true));
    let written = 0;
    for (; written < 20 || (!built && written < 1000); written++) {
      await collection.insertOne({ _id: 5000 + written, a: 100, list: [written] });
      await collection.updateOne({ _id: written }, { $set: { a: 200 } });
      await collection.deleteOne({ _id: 2999 - written });
    }
    await building;
    for (const [a, n] of [[100, written], [200, written], [3, undefined]]) {
      const found = await collection.find({ a }, { hint: "a_1" }).toArray();
      assert.equal(found.length, n ?? (await collection.find({ a }, { hint: { $natural: 1 } }).toArray()).length);
    }
    assert.equal((await validate(collection, { full: true })).valid, true);
  });

  t.it("by collMod, which refuses what it cannot change", async () => {
    const collection = await filled(20);
    const modify = (change) => t.command({ collMod: collection.collectionName, ...change });
    await fails(modify({ cappedSize: 1000 }), 72, /cappedSize/);
    await fails(modify({ expireAfterSeconds: 10 }), 72);
    await fails(modify({ validationLevel: "some" }), 2);
    await fails(modify({ validationAction: "shout" }), 2);
    await fails(modify({ validator: { a: { $unknown: 1 } } }), 2, /unknown operator/);
    await fails(modify({ validator: { at: { $near: [1, 2] } } }), 224);
    await fails(modify({ index: { name: "_id_" } }), 72);
    await collection.createIndex({ a: 1 });
    await collection.createIndex({ odd: 1 }, { sparse: true });
    await fails(modify({ index: { name: "a_1", prepareUnique: true } }), 72, /prepareUnique/);
    await fails(modify({ index: { name: "a_1", unique: true } }), 11000);
    assert.equal((await modify({ index: { keyPattern: { odd: 1 }, unique: true } })).unique_new, true);
    assert.equal((await collection.indexes()).find((x) => x.name === "odd_1").unique, true);
    await fails(collection.insertOne({ odd: 3 }), 11000);
    await collection.insertOne({ _id: "none" });
    await fails(t.db.createCollection("wrong", { validator: { a: { $unknown: 1 } } }), 2);
  });

  t.it("by a moderate validator, which leaves what did not conform before", async () => {
    const collection = await filled(10);
    await t.command({ collMod: collection.collectionName, validator: { a: { $lt: 5 } }, validationLevel: "moderate" });
    await collection.updateOne({ _id: 6 }, { $set: { x: 1 } }); // a is 6
    await fails(collection.updateOne({ _id: 1 }, { $set: { a: 9 } }), 121);
    await fails(collection.insertOne({ a: 9 }), 121);
    await fails(collection.updateOne({ _id: "new" }, { $set: { a: 9 } }, { upsert: true }), 121);
    await t.command({ collMod: collection.collectionName, validationLevel: "strict" });
    await fails(collection.updateOne({ _id: 6 }, { $set: { x: 2 } }), 121);
  });

  t.it("and refuse to be capped or tailed, with a reason", async () => {
    await fails(t.command({ create: "log", capped: true, size: 4096 }), 72, /TTL index/);
    await fails(t.command({ create: "log", capped: true, size: 4096, max: 10 }), 72);
    await t.command({ create: "plain", capped: false });
    await fails(t.command({ convertToCapped: "plain", size: 4096 }), 115);
    await fails(t.command({ cloneCollectionAsCapped: "plain", toCollection: "log", size: 4096 }), 115);
    await fails(t.command({ find: "plain", tailable: true }), 2, /capped/);
    await fails(t.command({ find: "plain", tailable: true, awaitData: true }), 2, /capped/);
    await t.db.collection("plain").drop();
  });

  t.it("and have true figures", async () => {
    await t.with({}, async (_, client) => {
      const db = client.db(`${t.db.databaseName}figures`);
      const collection = db.collection("c");
      const bytes = 1000;
      await collection.insertMany(numbers(0, 100).map((i) => ({ _id: i, text: "x".repeat(bytes) })));
      await collection.createIndex({ text: 1 });
      const [one, all] = [await db.command({ collStats: "c" }), await db.command({ dbStats: 1 })];
      assert.deepEqual([one.count, one.nindexes, all.objects, all.collections, all.indexes], [100, 2, 100, 1, 2]);
      assert.ok(one.size >= 100 * bytes && one.size < 120 * bytes, `${one.size}`);
      assert.ok(one.totalIndexSize > 0 && one.avgObjSize >= bytes && one.avgObjSize < 1.2 * bytes);
      assert.deepEqual([all.dataSize, all.totalSize], [one.size, one.totalSize]);
      const scaled = await db.command({ collStats: "c", scale: 1024 });
      assert.deepEqual([scaled.size, scaled.count, scaled.scaleFactor], [Math.floor(one.size / 1024), 100, 1024]);
      const stage = async (stats) => (await collection.aggregate([{ $collStats: stats }]).toArray())[0];
      assert.deepEqual(Object.keys(await stage({})).sort(), ["host", "localTime", "ns"]);
      const shown = await stage({ count: {}, storageStats: { scale: 1024 }, latencyStats: { histograms: false } });
      assert.deepEqual([shown.count, shown.storageStats.size, shown.storageStats.count], [100, scaled.size, 100]);
      assert.ok(shown.latencyStats.writes.ops > 0 && shown.latencyStats.writes.latency > 0);
      await fails(stage({ wrong: {} }), 40415);
      await collection.deleteMany({ _id: { $gte: 50 } });
      assert.equal((await db.command({ dbStats: 1 })).objects, 50);
      await db.dropDatabase();
      assert.deepEqual([(await db.command({ dbStats: 1 })).objects, (await db.command({ collStats: "c" })).count], [0, 0]);
    });
  });

  t.it("by UpdateCollection, which replaces the indexes", async () => {
    const collection = await filled(50);
    await collection.createIndexes([{ key: { a: 1 } }, { key: { text: "text" } }, { key: { odd: 1 }, unique: true, sparse: true }]);
    const action = { customAction: "UpdateCollection", collection: collection.collectionName };
    const indexes = [{ key: { _id: 1 }, name: "_id_" }, { key: { a: 1 }, name: "a_1" }, { key: { list: -1 }, name: "down" }, { key: { a: "text" }, name: "words" }];
    await t.command({ ...action, indexes, offerThroughput: 600 });
    assert.deepEqual((await collection.indexes()).map((x) => x.name), ["_id_", "a_1", "down", "words"]);
    assert.equal((await t.command({ ...action, customAction: "GetCollection" })).provisionedThroughput, 600);
    await collection.insertOne({ odd: 3 }); // its unique index is gone
    assert.equal((await collection.find({ list: 7 }).explain()).queryPlanner.winningPlan.inputStage.indexName, "down");
    assert.equal((await validate(collection)).valid, true);
    await fails(t.command({ ...action, indexes: [{ key: { a: 1 }, name: "x" }, { key: { b: 1 }, name: "x" }] }), 86);
    await fails(t.command({ ...action, indexes: [{ key: { a: 1 }, name: "x", unique: true }] }), 11000);
    assert.equal((await collection.indexes()).length, 4);
    await t.command({ ...action, indexes: [] });
    assert.deepEqual((await collection.indexes()).map((x) => x.name), ["_id_"]);
    await t.with({ key: reader }, (db) => fails(db.command({ ...action, indexes: [] }), 13));
  });

  t.it("by GetChangeStreamTokens, one for each partition", async () => {
    const collection = t.collection();
    await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    const action = { customAction: "GetChangeStreamTokens", collection: collection.collectionName };
    assert.equal((await t.command(action)).resumeAfterTokens.length, 1);
    await collection.insertMany(numbers(0, 20).map((i) => ({ _id: `early${i}`, p: `p${i}` })));
    await split(collection, 3);
    const { resumeAfterTokens: tokens } = await t.command(action);
    assert.equal(tokens.length, 3);
    const first = tokens.map((token) => collection.watch([], { resumeAfter: token, maxAwaitTimeMS: 100 }));
    await Promise.all(first.map((stream) => stream.tryNext()));
    await collection.insertMany(numbers(0, 60).map((i) => ({ _id: i, p: `p${i}` })));
    const read = async (stream) => {
      const ids = [];
      for (let event = await stream.tryNext(); event; event = await stream.tryNext()) ids.push(event.documentKey._id);
      return ids;
    };
    const byPart = await Promise.all(first.map(read));
    assert.ok(byPart.every((ids) => ids.length > 0), JSON.stringify(byPart.map((ids) => ids.length)));
    assert.deepEqual(byPart.flat().sort((a, b) => a - b), numbers(0, 60));
    // the same parts after another split, by the streams' own tokens
    const own = first.map((stream) => stream.resumeToken);
    await Promise.all(first.map((stream) => stream.close()));
    await split(collection, 2);
    await collection.updateMany({ _id: { $gte: 0 } }, { $set: { x: 1 } });
    const later = own.map((token) => collection.watch([], { startAfter: token, maxAwaitTimeMS: 100 }));
    const again = await Promise.all(later.map(read));
    assert.deepEqual(again.map((ids) => ids.sort()), byPart.map((ids) => ids.sort()));
    await Promise.all(later.map((stream) => stream.close()));
    // from a time on
    const { resumeAfterTokens: all } = await t.command({ ...action, startAtOperationTime: new Timestamp({ t: 1, i: 1 }) });
    assert.equal(all.length, 4);
    const past = all.map((token) => collection.watch([{ $match: { operationType: "insert" } }], { resumeAfter: token, maxAwaitTimeMS: 100 }));
    assert.equal((await Promise.all(past.map(read))).flat().length, 80);
    await Promise.all(past.map((stream) => stream.close()));
    const { resumeAfterTokens: none } = await t.command({ ...action, startAtOperationTime: new Timestamp({ t: Math.floor(Date.now() / 1000) + 60, i: 1 }) });
    const future = collection.watch([], { resumeAfter: none[0], maxAwaitTimeMS: 100 });
    assert.equal(await future.tryNext(), null);
    await future.close();
    await fails(t.command({ ...action, startAtOperationTime: 5 }), 2);
    await fails(t.command({ ...action, collection: "nothing" }), 26);
  });
}, { flags: ["--throttling", "off", "--read-only-key", reader] });
