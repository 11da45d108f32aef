// Pipelines take no more memory than their bound: each stage that gathers documents fails with MongoDB's error, and the server stays as small as
// the bound allows. See docs/mongo.md.

import { readFileSync } from "node:fs";
import { assert, fails, suite } from "./harness.js";

// AddressSanitizer keeps freed memory for a while, and adds to every piece.
const factor = process.env.TESELA_SANITIZED ? 4 : 1;

suite("the memory of a pipeline is bounded", (t) => {
  const text = "x".repeat(10_000);
  const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${t.server.child.pid}/status`, "utf8"))[1]) / 1024;
  let source, small;

  const fill = async () => {
    source = t.collection();
    small = t.collection();
    await source.insertMany(Array.from({ length: 100 }, (_, _id) => ({ _id, text, next: (_id + 1) % 100, k: _id % 10 })));
    await small.insertMany(Array.from({ length: 300 }, (_, _id) => ({ _id, k: _id % 10 })));
  };
  // 40,000 documents of 10 KB, four times the bound, made by the pipeline itself.
  const many = [{ $set: { n: { $range: [0, 400] } } }, { $unwind: "$n" }, { $set: { key: { $add: ["$n", { $multiply: ["$_id", 1000] }] } } }];
  const window = { documents: ["unbounded", "unbounded"] };
  const stages = {
    $sort: [{ $sort: { key: -1 } }],
    "$group with $push": [{ $group: { _id: "$n", all: { $push: "$$ROOT" } } }],
    "$group with $addToSet": [{ $group: { _id: "$k", all: { $addToSet: { $concat: ["$text", { $toString: "$key" }] } } } }],
    "$group by large keys": [{ $group: { _id: { $concat: ["$text", { $toString: "$key" }] } } }],
    "$group with $topN": [{ $group: { _id: "$k", all: { $topN: { n: 100_000, sortBy: { key: 1 }, output: "$$ROOT" } } } }],
    $sortByCount: [{ $sortByCount: { $concat: ["$text", { $toString: "$key" }] } }],
    $bucket: [{ $bucket: { groupBy: "$k", boundaries: [0, 5, 10], output: { all: { $push: "$$ROOT" } } } }],
    $bucketAuto: [{ $bucketAuto: { groupBy: "$key", buckets: 3 } }],
    $setWindowFields: [{ $setWindowFields: { sortBy: { key: 1 }, output: { all: { $sum: "$n", window } } } }],
    "$setWindowFields with $push": [{ $unset: "text" }, { $limit: 30_000 }, { $setWindowFields: { sortBy: { key: 1 }, output: { all: { $push: "$key", window: { documents: ["unbounded", "current"] } } } } }, { $group: { _id: null, n: { $sum: { $size: "$all" } }, last: { $push: "$all" } } }],
    "$fill by a method": [{ $set: { gap: null } }, { $fill: { sortBy: { key: 1 }, output: { gap: { method: "linear" } } } }],
    $facet: [{ $facet: { a: [{ $sort: { key: 1 } }], b: [{ $sort: { key: -1 } }] } }],
    "$push after $facet": [{ $facet: { a: [{ $group: { _id: null, all: { $push: "$text" } } }] } }],
  };
  // Errors of the bound, or of a document above 16 MB.
  const codes = [292, 146, 10334, 17419, 4568, 40099];
  const refused = async (promise) => {
    const error = await promise.then(() => undefined, (e) => e);
    assert.ok(error, "the pipeline succeeded");
    assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`);
  };

  t.it("by an error of the stage, with allowDiskUse or without", async () => {
    await fill();
    const before = peak();
    for (const [name, gathering] of Object.entries(stages)) {
      for (const allowDiskUse of [false, true]) {
        await refused(source.aggregate([...many, ...gathering, { $count: "n" }], { allowDiskUse }).toArray()).catch((error) => {
          error.message = `${name}: ${error.message}`;
          throw error;
        });
      }
    }
    assert.ok(peak() - before < 300 * factor, `${(peak() - before) | 0} MB`);
  });

  t.it("also of $lookup, $graphLookup, $unionWith, distinct and sorts of find", async () => {
    await fill();
    const before = peak();
    const from = source.collectionName;
    const everything = { $lookup: { from, pipeline: many, as: "all" } };
    await refused(small.aggregate([everything]).toArray());
    await refused(small.aggregate([everything, { $unwind: "$all" }, { $sort: { "all.key": 1 } }, { $count: "n" }]).toArray());
    await refused(source.aggregate([...many, { $lookup: { from, localField: "k", foreignField: "k", as: "same" } }, { $group: { _id: null, all: { $push: "$same" } } }]).toArray());
    await refused(small.aggregate([{ $unionWith: { coll: from, pipeline: many } }, { $sort: { key: 1 } }]).toArray());
    await refused(source.aggregate([...many, { $graphLookup: { from, startWith: "$_id", connectFromField: "next", connectToField: "_id", as: "path" } }, { $group: { _id: null, all: { $push: "$$ROOT" } } }]).toArray());
    const large = t.collection();
    for (let i = 0; i < 18; i++) await large.insertOne({ _id: i, text: String.fromCharCode(97 + i).repeat(1 << 20) });
    await fails(large.distinct("text"), 17217);
    for (let i = 18; i < 70; i++) await large.insertOne({ _id: i, text: String(i).repeat(1 << 19) });
    await fails(large.find().sort({ text: 1 }).toArray(), 292);
    await fails(large.find().sort({ text: 1 }).allowDiskUse().toArray(), 292);
    assert.equal((await large.find({}, { projection: { _id: 1 } }).sort({ text: 1 }).limit(3).toArray()).length, 3);
    assert.ok(peak() - before < 400 * factor, `${(peak() - before) | 0} MB`);
  });

  t.it("and does not hinder pipelines that stream", async () => {
    await fill();
    assert.deepEqual(await source.aggregate([...many, { $match: { key: { $gte: 0 } } }, { $count: "n" }]).toArray(), [{ n: 40_000 }]);
    const [top] = await source.aggregate([...many, { $sort: { key: -1 } }, { $limit: 5 }, { $project: { key: 1 } }]).toArray();
    assert.equal(top.key, 99_399);
    const groups = await source.aggregate([...many, { $group: { _id: "$k", n: { $sum: 1 }, last: { $max: "$key" } } }, { $sort: { _id: 1 } }]).toArray();
    assert.deepEqual([groups.length, groups[9].n, groups[9].last], [10, 4000, 99_399]);
  });
}, { ways: ["plain"] });
