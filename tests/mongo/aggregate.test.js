// Pipelines: what they get from collections, over several batches and collections. The stages themselves are tested in tests/unit.
import { assert, fails, suite } from "./harness.js";

suite("pipelines", (t) => {
  const filled = async (n) => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: n }, (_, i) => ({ _id: i, v: i % 5, w: [i, i + 1] })));
    return collection;
  };

  t.it("filter, group and sort", async () => {
    const collection = await filled(100);
    const groups = await collection.aggregate([{ $match: { v: { $lt: 3 } } }, { $group: { _id: "$v", n: { $sum: 1 }, max: { $max: "$_id" } } }, { $sort: { _id: 1 } }]).toArray();
    assert.deepEqual(groups, [0, 1, 2].map((v) => ({ _id: v, n: 20, max: 95 + v })));
    assert.equal(await collection.countDocuments({ v: 1 }), 20);
    assert.equal(await collection.countDocuments(), 100);
    assert.equal(await collection.countDocuments({}, { skip: 10, limit: 5 }), 5);
    assert.deepEqual(await collection.aggregate([{ $match: { v: 1 } }, { $sort: { _id: -1 } }, { $limit: 2 }, { $project: { v: 1 } }]).toArray(), [{ _id: 96, v: 1 }, { _id: 91, v: 1 }]);
    assert.deepEqual(await collection.aggregate([{ $match: { _id: 3 } }, { $unwind: "$w" }]).toArray(), [{ _id: 3, v: 3, w: 3 }, { _id: 3, v: 3, w: 4 }]);
    assert.deepEqual(await collection.aggregate([{ $match: { v: 9 } }, { $count: "n" }]).toArray(), []);
    assert.deepEqual(await t.db.collection("none").aggregate([{ $group: { _id: 1, n: { $sum: 1 } } }]).toArray(), []);
  });

  t.it("give their documents in batches", async () => {
    const collection = await filled(700);
    for (const batchSize of [1, 10, 101, 5000]) {
      const rows = await collection.aggregate([{ $match: { v: { $ne: 2 } } }, { $unwind: "$w" }, { $project: { _id: 1, w: 1 } }], { batchSize }).toArray();
      const expected = [];
      for (let i = 0; i < 700; i++) if (i % 5 !== 2) expected.push({ _id: i, w: i }, { _id: i, w: i + 1 });
      assert.deepEqual(rows, expected);
    }
    const sorted = await collection.aggregate([{ $sort: { v: -1, _id: 1 } }], { batchSize: 50 }).toArray();
    assert.equal(sorted.length, 700);
    assert.equal(sorted[0]._id, 4);
  });

  t.it("read other collections", async () => {
    const people = t.collection(), cities = t.collection();
    await cities.insertMany([{ _id: "x", name: "Xanadu" }, { _id: "y", name: "Ys" }]);
    await people.insertMany([{ _id: 1, city: "x" }, { _id: 2, city: "y" }, { _id: 3, city: "z" }]);
    const lookup = { from: cities.collectionName, localField: "city", foreignField: "_id", as: "at" };
    assert.deepEqual(
      (await people.aggregate([{ $lookup: lookup }]).toArray()).map((d) => d.at.map((c) => c.name)),
      [["Xanadu"], ["Ys"], []],
    );
    const pipeline = [{ $match: { $expr: { $eq: ["$_id", "$$c"] } } }, { $project: { _id: 0 } }];
    assert.deepEqual(
      (await people.aggregate([{ $lookup: { from: cities.collectionName, let: { c: "$city" }, pipeline, as: "at" } }], { batchSize: 1 }).toArray()).map((d) => d.at),
      [[{ name: "Xanadu" }], [{ name: "Ys" }], []],
    );
    assert.equal((await people.aggregate([{ $unionWith: cities.collectionName }]).toArray()).length, 5);
    assert.deepEqual(await t.db.aggregate([{ $documents: [{ a: 1 }, { a: 2 }] }]).toArray(), [{ a: 1 }, { a: 2 }]);
  });

  t.it("use variables", async () => {
    const collection = await filled(20);
    const found = await collection.aggregate([{ $match: { $expr: { $eq: ["$_id", "$$wanted"] } } }], { let: { wanted: 7 } }).toArray();
    assert.deepEqual(found.map((d) => d._id), [7]);
    assert.deepEqual((await collection.find({ $expr: { $eq: ["$_id", "$$wanted"] } }, { let: { wanted: 8 } }).toArray()).map((d) => d._id), [8]);
  });

  t.it("are refused with MongoDB's codes", async () => {
    const collection = await filled(1);
    await fails(collection.aggregate([{ $nope: 1 }]).toArray(), 40324);
    await fails(t.command({ aggregate: collection.collectionName, cursor: {} }), 14);
    await fails(collection.aggregate([{ $project: { a: { $divide: [1, 0] } } }]).toArray(), 2);
  });

  t.it("write their documents by $out and $merge", async () => {
    const collection = await filled(50), target = t.collection();
    await target.insertOne({ _id: "old" });
    await target.createIndex({ n: 1 });
    assert.deepEqual(await collection.aggregate([{ $group: { _id: "$v", n: { $sum: 1 } } }, { $out: target.collectionName }]).toArray(), []);
    assert.deepEqual((await target.find().sort({ _id: 1 }).toArray()).map((d) => d._id), [0, 1, 2, 3, 4]);
    assert.equal((await target.indexes()).length, 2);
    const merge = (options) => ({ $merge: { into: target.collectionName, ...options } });
    await collection.aggregate([{ $match: { _id: { $in: [4, 7] } } }, { $project: { w: 1 } }, merge({})]).toArray();
    assert.deepEqual(await target.findOne({ _id: 4 }), { _id: 4, n: 10, w: [4, 5] });
    assert.deepEqual(await target.findOne({ _id: 7 }), { _id: 7, w: [7, 8] });
    await collection.aggregate([{ $match: { _id: 4 } }, { $project: { v: 1 } }, merge({ whenMatched: "replace" })]).toArray();
    assert.deepEqual(await target.findOne({ _id: 4 }), { _id: 4, v: 4 });
    await collection.aggregate([{ $match: { _id: { $in: [4, 9] } } }, { $project: { w: 1 } }, merge({ whenMatched: "keepExisting", whenNotMatched: "discard" })]).toArray();
    assert.deepEqual(await target.findOne({ _id: 4 }), { _id: 4, v: 4 });
    assert.equal(await target.findOne({ _id: 9 }), null);
    await fails(collection.aggregate([{ $match: { _id: 9 } }, merge({ whenNotMatched: "fail" })]).toArray(), 13113);
    await fails(collection.aggregate([{ $match: { _id: 4 } }, merge({ whenMatched: "fail" })]).toArray(), 11000);
    const sum = [{ $set: { sum: { $add: ["$v", "$$new.v", "$$more"] } } }];
    const both = [{ $match: { _id: { $in: [4, 14] } } }, { $project: { v: 1 } }];
    await collection.aggregate([...both, merge({ let: { more: { $multiply: ["$v", 100] }, new: "$$ROOT" }, whenMatched: sum })]).toArray();
    assert.deepEqual(await target.find({ _id: { $in: [4, 14] } }).sort({ _id: 1 }).toArray(), [{ _id: 4, v: 4, sum: 408 }, { _id: 14, v: 4 }]);
    await collection.aggregate([...both, merge({ whenMatched: [{ $set: { was: "$$new.v" } }], whenNotMatched: "discard" })]).toArray();
    assert.deepEqual(await target.findOne({ _id: 14 }), { _id: 14, v: 4, was: 4 });
    await fails(collection.aggregate([{ $match: { _id: 9 } }, merge({ whenMatched: [{ $set: { a: 1 } }], whenNotMatched: "fail" })]).toArray(), 13113);
    const fresh = t.collection();
    await collection.aggregate([{ $out: fresh.collectionName }]).toArray();
    assert.equal(await fresh.countDocuments(), 50);
  });

  t.it("leave nothing behind when $out fails", async () => {
    const [source, target] = [t.collection(), t.collection()];
    await t.db.createCollection(target.collectionName, { validator: { n: { $lt: 5 } } });
    await target.insertOne({ _id: "kept", n: 1 });
    await source.insertMany([{ n: 1 }, { n: 10 }]);
    await fails(source.aggregate([{ $out: target.collectionName }]).toArray(), 121);
    assert.deepEqual(await target.find().toArray(), [{ _id: "kept", n: 1 }]);
    const names = (await t.db.listCollections().toArray()).map((c) => c.name);
    assert.deepEqual(names.filter((name) => name.startsWith("tmp")), []);
  });

  t.it("are bounded in memory", async () => {
    const collection = t.collection();
    const text = "x".repeat(1 << 20);
    for (let i = 0; i < 20; i++) await collection.insertOne({ _id: i, text });
    const many = [{ $addFields: { copies: { $range: [0, 20] } } }, { $unwind: "$copies" }];
    await fails(collection.aggregate([...many, { $sort: { copies: 1 } }]).toArray(), 292);
    await fails(collection.aggregate([{ $group: { _id: null, all: { $push: "$$ROOT" } } }]).toArray(), 10334);
  });
});
