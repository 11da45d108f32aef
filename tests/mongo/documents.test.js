// Inserts, finds, updates, deletes.
import { Binary, BSONRegExp, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from "mongodb";
import { assert, fails, suite } from "./harness.js";

suite("documents", (t) => {
  t.it("keep their types and the order of their fields", async () => {
    const collection = t.collection();
    const document = {
      z: 1,
      _id: new ObjectId(),
      a: new Double(1.5),
      b: Long.fromString("9007199254740993"),
      c: Decimal128.fromString("0.10"),
      d: new Date(5),
      e: new Timestamp({ t: 7, i: 8 }),
      f: new Binary(Buffer.from("xyz"), 128),
      g: new UUID(),
      h: new BSONRegExp("^a", "i"),
      i: new Code("1"),
      j: new MinKey(),
      k: new MaxKey(),
      l: [null, [], {}, "ñ\u0000b"],
      m: { deep: { er: [{ x: 1 }] } },
    };
    await collection.insertOne(document);
    const options = { promoteValues: false, promoteLongs: false, bsonRegExp: true };
    const found = await collection.findOne({ _id: document._id }, options);
    assert.deepEqual(Object.keys(found), ["_id", "z", ..."abcdefghijklm"]);
    assert.ok(found.a instanceof Double && found.b instanceof Long && found.z instanceof Int32);
    assert.equal(found.b.toString(), "9007199254740993");
    assert.equal(found.c.toString(), "0.10");
    assert.equal(found.f.sub_type, 128);
    assert.equal(found.h.options, "i");
    assert.equal(found.l[3].toString(), "ñ\u0000b");
    const first = await collection.findOne({ z: 1 }, options);
    assert.deepEqual(first, found);
  });

  t.it("have ids of any type, and get one from the server", async () => {
    const collection = t.collection();
    const ids = [1, "1", true, new ObjectId(), { a: 1 }, new Date(1), Decimal128.fromString("2.5"), new Binary(Buffer.from("x"))];
    for (const _id of ids) await collection.insertOne({ _id });
    for (const _id of ids) assert.deepEqual((await collection.findOne({ _id }))?._id, _id);
    await fails(collection.insertOne({ _id: new Double(1) }), 11000); /* 1 and 1.0 are one value */
    await fails(collection.insertOne({ _id: [1] }), 53);
    const reply = await t.command({ insert: collection.collectionName, documents: [{ x: 1 }] });
    assert.equal(reply.n, 1);
    assert.ok((await collection.findOne({ x: 1 }))._id instanceof ObjectId);
  });

  t.it("are refused twice, with key and value", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: "a" });
    const error = await fails(collection.insertOne({ _id: "a" }), 11000, /E11000 duplicate key error collection: .* index: _id_/);
    assert.deepEqual(error.errorResponse.keyPattern ?? error.writeErrors?.[0]?.err?.keyPattern ?? { _id: 1 }, { _id: 1 });
    const raw = await t.command({ insert: collection.collectionName, documents: [{ _id: "a" }] });
    assert.deepEqual(raw.writeErrors[0].keyPattern, { _id: 1 });
    assert.deepEqual(raw.writeErrors[0].keyValue, { _id: "a" });
    assert.equal(raw.writeErrors[0].index, 0);
  });

  t.it("are inserted in order until one fails, or all that can be", async () => {
    const documents = [{ _id: 1 }, { _id: 1 }, { _id: 2 }, { _id: [2] }, { _id: 3 }];
    const ordered = t.collection(), unordered = t.collection();
    const one = await t.command({ insert: ordered.collectionName, documents });
    assert.equal(one.n, 1);
    assert.deepEqual(one.writeErrors.map((e) => [e.index, e.code]), [[1, 11000]]);
    const two = await t.command({ insert: unordered.collectionName, documents, ordered: false });
    assert.equal(two.n, 3);
    assert.deepEqual(two.writeErrors.map((e) => [e.index, e.code]).sort(), [[1, 11000], [3, 53]]);
  });

  t.it("are inserted by thousands", async () => {
    const collection = t.collection();
    const n = 3000;
    assert.equal((await collection.insertMany(Array.from({ length: n }, (_, i) => ({ _id: i })))).insertedCount, n);
    assert.equal(await collection.estimatedDocumentCount(), n);
  });

  t.it("are found by filters, sorted, cut and projected", async () => {
    const collection = t.collection();
    await collection.insertMany([
      { _id: 1, name: "ann", age: 30, tags: ["a", "b"], at: { city: "x" } },
      { _id: 2, name: "bob", age: 40, at: { city: "y" } },
      { _id: 3, name: "cid", age: 20, tags: ["b"] },
      { _id: 4, name: "dan", tags: [] },
    ]);
    const ids = async (filter, options) => (await collection.find(filter, options).toArray()).map((d) => d._id);
    assert.deepEqual(await ids({}), [1, 2, 3, 4]);
    assert.deepEqual(await ids({ age: { $gte: 30 } }), [1, 2]);
    assert.deepEqual(await ids({ tags: "b" }), [1, 3]);
    assert.deepEqual(await ids({ age: null }), [4]);
    assert.deepEqual(await ids({ "at.city": { $in: ["x", "y"] } }, { sort: { name: -1 } }), [2, 1]);
    assert.deepEqual(await ids({ $or: [{ name: /^a/ }, { age: { $lt: 25 } }] }), [1, 3]);
    assert.deepEqual(await ids({}, { sort: { age: 1 } }), [4, 3, 1, 2]); /* a missing field sorts as null */
    assert.deepEqual(await ids({}, { sort: { age: -1 }, skip: 1, limit: 2 }), [1, 3]);
    assert.deepEqual(await ids({}, { skip: 2, limit: 1 }), [3]);
    assert.deepEqual(await ids({ _id: 2, name: "bob" }), [2]);
    assert.deepEqual(await ids({ _id: 2, name: "ann" }), []);
    assert.deepEqual(await ids({ _id: { $in: [3, 1] } }), [1, 3]);
    assert.deepEqual(await collection.findOne({ _id: 1 }, { projection: { name: 1, _id: 0 } }), { name: "ann" });
    assert.deepEqual(await collection.findOne({ tags: "b" }, { projection: { "tags.$": 1 } }), { _id: 1, tags: ["b"] });
    assert.deepEqual(await collection.distinct("tags"), ["a", "b"]);
    assert.deepEqual(await collection.distinct("at.city", { age: { $gt: 30 } }), ["y"]);
    assert.equal((await t.command({ count: collection.collectionName, query: { tags: "b" } })).n, 2);
    assert.equal((await t.command({ count: collection.collectionName })).n, 4);
    assert.equal((await t.command({ count: collection.collectionName, query: {}, skip: 1, limit: 2 })).n, 2);
    await fails(collection.find({ a: { $nope: 1 } }).toArray(), 2);
    await fails(t.command({ find: collection.collectionName, sort: { a: 2 } }), 15975);
    assert.deepEqual(await t.db.collection("none").find({ a: 1 }).toArray(), []);
  });

  t.it("are updated, one or all, and upserted", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }, { _id: 3, n: 3 }]);
    const counts = ({ matchedCount, modifiedCount, upsertedCount }) => [matchedCount, modifiedCount, upsertedCount];
    assert.deepEqual(counts(await collection.updateOne({ _id: 1 }, { $inc: { n: 10 }, $push: { list: 5 } })), [1, 1, 0]);
    assert.deepEqual(counts(await collection.updateOne({ _id: 1 }, { $set: { n: 11 } })), [1, 0, 0]);
    assert.deepEqual(counts(await collection.updateOne({ _id: 9 }, { $set: { n: 11 } })), [0, 0, 0]);
    assert.deepEqual(counts(await collection.updateOne({ n: { $gt: 1 } }, { $set: { hit: true } })), [1, 1, 0]);
    assert.deepEqual(counts(await collection.updateMany({ n: { $lt: 10 } }, { $mul: { n: 2 } })), [2, 2, 0]);
    assert.deepEqual(counts(await collection.replaceOne({ _id: 3 }, { r: 1 })), [1, 1, 0]);
    assert.deepEqual(counts(await collection.updateOne({ _id: 7 }, { $set: { u: 1 } }, { upsert: true })), [0, 0, 1]);
    const upsert = await collection.updateOne({ name: "eve", k: { $gt: 1 } }, { $set: { u: 2 } }, { upsert: true });
    assert.ok(upsert.upsertedId instanceof ObjectId);
    assert.deepEqual(await collection.find({ _id: { $lt: 100 } }).toArray(), [
      { _id: 1, n: 11, list: [5], hit: true },
      { _id: 2, n: 4 },
      { _id: 3, r: 1 },
      { _id: 7, u: 1 },
    ]);
    assert.deepEqual(await collection.findOne({ name: "eve" }), { _id: upsert.upsertedId, name: "eve", u: 2 });
    await fails(collection.updateOne({ _id: 2 }, { $set: { _id: 3 } }), 66);
    await fails(collection.updateOne({ _id: 2 }, { $nope: 1 }), 9);
    await fails(collection.updateOne({ none: 2 }, { $nope: 1 }), 9);
    await fails(collection.updateOne({ _id: 2, n: 5 }, { $set: { a: 1 } }, { upsert: true }), 11000);
  });

  t.it("are updated by array filters and positions", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1, list: [{ k: 1, v: 1 }, { k: 2, v: 2 }] });
    await collection.updateOne({ _id: 1, "list.k": 2 }, { $set: { "list.$.v": 20 } });
    await collection.updateOne({ _id: 1 }, { $inc: { "list.$[x].v": 1 } }, { arrayFilters: [{ "x.k": 1 }] });
    assert.deepEqual((await collection.findOne({ _id: 1 })).list, [{ k: 1, v: 2 }, { k: 2, v: 20 }]);
  });

  t.it("count up exactly from many connections", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1, n: 0, m: 0 });
    await Promise.all(Array.from({ length: 200 }, (_, i) => (i % 2 ? collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }) : collection.updateOne({ n: { $gte: 0 } }, { $inc: { m: 1 } }))));
    assert.deepEqual(await collection.findOne({ _id: 1 }), { _id: 1, n: 100, m: 100 });
  });

  t.it("are deleted, one or all", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 500 }, (_, i) => ({ _id: i, even: i % 2 === 0 })));
    assert.equal((await collection.deleteOne({ _id: 1 })).deletedCount, 1);
    assert.equal((await collection.deleteOne({ _id: 1 })).deletedCount, 0);
    assert.equal((await collection.deleteOne({ even: true })).deletedCount, 1);
    assert.equal((await collection.deleteMany({ even: true })).deletedCount, 249);
    assert.equal((await collection.deleteMany({})).deletedCount, 249);
    assert.equal(await collection.estimatedDocumentCount(), 0);
  });

  t.it("are found and modified in one step", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1, n: 3 }, { _id: 2, n: 1 }, { _id: 3, n: 2 }]);
    assert.deepEqual(await collection.findOneAndUpdate({}, { $set: { x: 1 } }, { sort: { n: 1 } }), { _id: 2, n: 1 });
    assert.deepEqual(await collection.findOneAndUpdate({ _id: 2 }, { $inc: { x: 1 } }, { returnDocument: "after" }), { _id: 2, n: 1, x: 2 });
    assert.deepEqual(await collection.findOneAndDelete({}, { sort: { n: -1 }, projection: { n: 1, _id: 0 } }), { n: 3 });
    assert.equal(await collection.findOneAndUpdate({ _id: 99 }, { $set: { x: 1 } }), null);
    assert.deepEqual(await collection.findOneAndUpdate({ _id: 99 }, { $set: { x: 1 } }, { upsert: true, returnDocument: "after" }), { _id: 99, x: 1 });
    assert.deepEqual(await collection.findOneAndReplace({ _id: 3 }, { y: 1 }, { returnDocument: "after" }), { _id: 3, y: 1 });
    const tickets = await Promise.all(Array.from({ length: 50 }, () => collection.findOneAndUpdate({ _id: 3 }, { $inc: { y: 1 } })));
    assert.equal(new Set(tickets.map((d) => d.y)).size, 50);
  });

  t.it("take mixed bulk writes", async () => {
    const collection = t.collection();
    const result = await collection.bulkWrite([
      { insertOne: { document: { _id: 1 } } },
      { updateOne: { filter: { _id: 1 }, update: { $set: { a: 1 } } } },
      { updateOne: { filter: { _id: 2 }, update: { $set: { a: 2 } }, upsert: true } },
      { deleteOne: { filter: { _id: 1 } } },
    ]);
    assert.deepEqual([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 1, 1, 1]);
    const ops = Array.from({ length: 1000 }, (_, i) => ({ updateOne: { filter: { _id: i }, update: { $set: { i } }, upsert: true } }));
    const many = await collection.bulkWrite(ops);
    assert.equal(many.upsertedCount, 999);
    assert.equal(many.matchedCount, 1);
  });

  t.it("may be as large as MongoDB's, and no larger", async () => {
    const collection = t.collection();
    const text = "x".repeat(15 * 1024 * 1024);
    await collection.insertOne({ _id: 1, text });
    assert.equal((await collection.findOne({ _id: 1 })).text.length, text.length);
    assert.equal((await collection.find({}).toArray())[0].text.length, text.length);
    await fails(collection.updateOne({ _id: 1 }, { $set: { more: "y".repeat(2 * 1024 * 1024) } }), 17419);
  });

  t.it("are written without an answer if the client wants none", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1 }, { writeConcern: { w: 0 } });
    for (let i = 0; i < 50 && !(await collection.findOne({ _id: 1 })); i++) await new Promise((done) => setTimeout(done, 10));
    assert.ok(await collection.findOne({ _id: 1 }));
  });

  t.it("pass the collection's validator", async () => {
    const collection = t.collection();
    await t.db.createCollection(collection.collectionName, { validator: { n: { $gte: 0 } } });
    await collection.insertOne({ _id: 1, n: 1 });
    await fails(collection.insertOne({ _id: 2, n: -1 }), 121);
    await fails(collection.updateOne({ _id: 1 }, { $set: { n: -1 } }), 121);
    await collection.insertOne({ _id: 3, n: -1 }, { bypassDocumentValidation: true });
    await t.command({ collMod: collection.collectionName, validator: {} });
    await collection.insertOne({ _id: 4, n: -1 });
  });
});
