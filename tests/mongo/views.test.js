// Views: made, listed, read through every command that reads, used by pipelines, and refused by whatever writes.
import { after } from "node:test";
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

suite("views", (t) => {
  let rest;
  after(() => rest?.close());
  // A collection of twenty documents, and a view of those with an even number, which are shown with twice that number.
  let names = 0;
  const made = async () => {
    const base = t.collection();
    await base.insertMany(Array.from({ length: 20 }, (_, i) => ({ _id: i, v: i % 4, tags: [`t${i % 3}`, "all"], next: i + 2 })));
    const name = `view${process.pid}x${++names}`;
    const pipeline = [{ $match: { v: { $in: [0, 2] } } }, { $addFields: { double: { $multiply: ["$_id", 2] } } }];
    await t.db.createCollection(name, { viewOn: base.collectionName, pipeline });
    return { base, view: t.db.collection(name), name, pipeline };
  };
  const evens = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18];
  const ids = (documents) => documents.map((d) => d._id);

  t.it("are listed as what they are", async () => {
    const { base, name, pipeline } = await made();
    const [listed] = await t.db.listCollections({ name }).toArray();
    assert.deepEqual(listed, { name, type: "view", options: { viewOn: base.collectionName, pipeline }, info: { readOnly: true } });
    assert.deepEqual(ids(await t.db.listCollections({ type: "view", name }, { nameOnly: true }).map((c) => ({ _id: c.name })).toArray()), [name]);
    const before = await t.command({ dbStats: 1 });
    await made();
    const after = await t.command({ dbStats: 1 });
    assert.equal(after.views - before.views, 1);
    assert.equal(after.collections - before.collections, 1);
  });

  t.it("are found in", async () => {
    const { base, view } = await made();
    assert.deepEqual(ids(await view.find().toArray()), evens);
    assert.deepEqual(await view.findOne({ double: 8 }), { _id: 4, v: 0, tags: ["t1", "all"], next: 6, double: 8 });
    assert.deepEqual(await view.find({ v: 0 }).sort({ _id: -1 }).skip(1).limit(2).project({ double: 1 }).toArray(), [{ _id: 12, double: 24 }, { _id: 8, double: 16 }]);
    for (const batchSize of [1, 3, 100]) assert.deepEqual(ids(await view.find({}, { batchSize }).toArray()), evens);
    assert.deepEqual(ids(await view.find({ $expr: { $gt: ["$double", "$$least"] } }, { let: { least: 30 } }).toArray()), [16, 18]);
    await base.insertOne({ _id: 100, v: 2 });
    assert.deepEqual(await view.findOne({ _id: 100 }), { _id: 100, v: 2, double: 200 });
  });

  t.it("are aggregated, counted and asked for distinct values", async () => {
    const { view } = await made();
    assert.deepEqual(await view.aggregate([{ $group: { _id: "$v", n: { $sum: "$double" } } }, { $sort: { _id: 1 } }]).toArray(), [{ _id: 0, n: 80 }, { _id: 2, n: 100 }]);
    assert.deepEqual(ids(await view.aggregate([{ $match: { double: { $gte: 20 } } }], { cursor: { batchSize: 2 } }).toArray()), [10, 12, 14, 16, 18]);
    assert.equal((await t.command({ count: view.collectionName })).n, 10);
    assert.equal((await t.command({ count: view.collectionName, query: { double: { $lt: 10 } } })).n, 3);
    assert.equal((await t.command({ count: view.collectionName, skip: 4, limit: 3 })).n, 3);
    assert.equal(await view.countDocuments({ v: 2 }), 5);
    assert.equal(await view.estimatedDocumentCount(), 10);
    assert.deepEqual((await view.distinct("tags")).sort(), ["all", "t0", "t1", "t2"]);
    assert.deepEqual(await view.distinct("double", { v: 2 }), [4, 12, 20, 28, 36]);
  });

  t.it("are shown by explain with the index that serves them", async () => {
    const base = t.collection();
    await base.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
    await base.createIndex({ a: 1 });
    const name = `explained${++names}${t.way}`;
    await t.db.createCollection(name, { viewOn: base.collectionName, pipeline: [{ $match: { a: 2 } }] });
    const explained = await t.db.collection(name).find({}).explain("executionStats");
    assert.equal(explained.queryPlanner.winningPlan.inputStage.indexName, "a_1");
    assert.equal(explained.executionStats.totalDocsExamined, 1);
  });

  t.it("may show views", async () => {
    const { view, name } = await made();
    await t.db.createCollection(`${name}b`, { viewOn: name, pipeline: [{ $match: { double: { $gt: 20 } } }] });
    await t.db.createCollection(`${name}c`, { viewOn: `${name}b`, pipeline: [{ $project: { double: 1 } }, { $unionWith: name }] });
    assert.deepEqual(ids(await t.db.collection(`${name}b`).find().toArray()), [12, 14, 16, 18]);
    assert.deepEqual(ids(await t.db.collection(`${name}c`).find().toArray()), [12, 14, 16, 18, ...evens]);
    assert.equal(await view.countDocuments(), 10);
    await t.db.createCollection(`${name}d`, { viewOn: `${name}nothing`, pipeline: [] });
    assert.deepEqual(await t.db.collection(`${name}d`).find().toArray(), []);
  });

  t.it("are bounded in depth, and never show themselves", async () => {
    const { name } = await made();
    await fails(t.db.createCollection(`${name}self`, { viewOn: `${name}self`, pipeline: [] }), 5);
    await t.db.createCollection(`${name}x`, { viewOn: `${name}y`, pipeline: [] });
    await fails(t.db.createCollection(`${name}y`, { viewOn: `${name}x`, pipeline: [] }), 5);
    let on = name;
    for (let i = 0; i < 19; i++) await t.db.createCollection(`${name}n${i}`, { viewOn: on, pipeline: [] }), (on = `${name}n${i}`);
    assert.equal((await t.db.collection(on).find().toArray()).length, 10);
    await t.db.createCollection(`${name}n19`, { viewOn: on, pipeline: [] });
    await fails(t.db.createCollection(`${name}n20`, { viewOn: `${name}n19`, pipeline: [] }), 165);
    // Twice as many reads of each view as of the one before it.
    await t.db.createCollection(`${name}p0`, { viewOn: name, pipeline: [] });
    let failed;
    for (let i = 1; i < 12 && !failed; i++) {
      const pipeline = [{ $unionWith: `${name}p${i - 1}` }, { $unionWith: `${name}p${i - 1}` }];
      await t.db.createCollection(`${name}p${i}`, { viewOn: name, pipeline }).catch((error) => (failed = error));
    }
    assert.equal(failed?.code, 165);
    // A view that reads itself through a stage can be made while the name is free.
    await t.db.createCollection(`${name}loop`, { viewOn: name, pipeline: [{ $unionWith: `${name}loop` }] });
    const error = await t.db.collection(`${name}loop`).find().toArray().catch((caught) => caught);
    assert.ok([165, 5107200].includes(error.code), error.message);
  });

  t.it("are read by stages of other pipelines", async () => {
    const { base, name } = await made();
    const one = t.collection();
    await one.insertMany([{ _id: "x", of: 4 }, { _id: "y", of: 5 }, { _id: "z", of: [6, 8] }]);
    const looked = async (lookup) => (await one.aggregate([{ $lookup: { from: name, as: "at", ...lookup } }, { $sort: { _id: 1 } }]).toArray()).map((d) => d.at.map((a) => a.double));
    assert.deepEqual(await looked({ localField: "of", foreignField: "_id" }), [[8], [], [12, 16]]);
    assert.deepEqual(await looked({ localField: "of", foreignField: "_id", pipeline: [{ $match: { double: { $gt: 10 } } }] }), [[], [], [12, 16]]);
    assert.deepEqual(await looked({ let: { of: "$of" }, pipeline: [{ $match: { $expr: { $eq: ["$_id", "$$of"] } } }] }), [[8], [], []]);
    assert.deepEqual(ids(await one.aggregate([{ $unionWith: { coll: name, pipeline: [{ $match: { double: { $lt: 6 } } }] } }]).toArray()), ["x", "y", "z", 0, 2]);
    const graph = { from: name, startWith: "$of", connectFromField: "next", connectToField: "_id", as: "way", depthField: "depth" };
    const ways = await one.aggregate([{ $match: { _id: "x" } }, { $graphLookup: { ...graph, maxDepth: 2 } }]).toArray();
    assert.deepEqual(ways[0].way.map((d) => [d._id, Number(d.depth), d.double]), [[4, 0, 8], [6, 1, 12], [8, 2, 16]]);
    const restricted = await one.aggregate([{ $match: { _id: "x" } }, { $graphLookup: { ...graph, restrictSearchWithMatch: { double: { $lt: 16 } } } }]).toArray();
    assert.deepEqual(ids(restricted[0].way), [4, 6]);
    assert.equal(await base.countDocuments(), 20);
  });

  t.it("have their own collation", async () => {
    const base = t.collection();
    await base.insertMany([{ _id: 1, a: "x" }, { _id: 2, a: "X" }]);
    const name = `collated${++names}${t.way}`, collation = { locale: "en", strength: 1 };
    await t.db.createCollection(name, { viewOn: base.collectionName, pipeline: [], collation });
    const view = t.db.collection(name);
    assert.equal((await view.find({ a: "x" }).toArray()).length, 2);
    assert.equal((await view.distinct("a")).length, 1);
    assert.equal((await base.find({ a: "x" }).toArray()).length, 1);
    await fails(view.find({ a: "x" }, { collation: { locale: "de" } }).toArray(), 167);
  });

  t.it("are read in transactions", async () => {
    const { base, view } = await made();
    await t.client.withSession((session) =>
      session.withTransaction(async () => {
        await base.insertOne({ _id: 200, v: 0 }, { session });
        assert.deepEqual(ids(await view.find({ _id: { $gt: 16 } }, { session }).toArray()), [18, 200]);
      }),
    );
  });

  t.it("refuse whatever writes, with MongoDB's code", async () => {
    const { base, view, name } = await made();
    await fails(view.insertOne({ a: 1 }), 166, /is a view/);
    await fails(view.updateOne({ _id: 2 }, { $set: { a: 1 } }), 166);
    await fails(view.deleteMany({}), 166);
    await fails(view.findOneAndDelete({ _id: 2 }), 166);
    await fails(view.createIndex({ a: 1 }), 166);
    await fails(view.indexes(), 166);
    await fails(view.rename(`${name}other`), 166);
    await fails(t.command({ collStats: name }), 166);
    await fails(t.command({ validate: name }), 166);
    await fails(view.watch().tryNext(), 166);
    await fails(base.aggregate([{ $out: name }]).toArray(), 166);
    await fails(base.aggregate([{ $merge: name }]).toArray(), 166);
    const bulk = { bulkWrite: 1, ops: [{ insert: 0, document: { a: 1 } }], nsInfo: [{ ns: `${t.db.databaseName}.${name}` }] };
    await fails(t.client.db("admin").command(bulk), 166);
    rest ??= new Rest({ server: t.server, version: "2020-07-15" });
    const written = await rest.post(`/dbs/${t.db.databaseName}/colls/${name}/docs`, { id: "x" });
    assert.equal(written.status, 400, written.text);
    assert.match(written.text, /is a view of MongoDB/);
    assert.deepEqual(ids(await view.find().toArray()), evens);
  });

  t.it("are changed by collMod and dropped", async () => {
    const { base, view, name } = await made();
    await t.command({ collMod: name, viewOn: base.collectionName, pipeline: [{ $match: { _id: { $lt: 2 } } }] });
    assert.deepEqual(ids(await view.find().toArray()), [0, 1]);
    await fails(t.command({ collMod: name, pipeline: [] }), 72);
    await fails(t.command({ collMod: name, viewOn: name, pipeline: [] }), 5);
    await fails(t.command({ collMod: base.collectionName, viewOn: name, pipeline: [] }), 72);
    await fails(t.db.createCollection(name, { viewOn: base.collectionName, pipeline: [] }), 48);
    await fails(t.db.createCollection(`${name}w`, { viewOn: base.collectionName, pipeline: [{ $out: "x" }] }), 167);
    await fails(t.db.createCollection(`${name}w`, { viewOn: base.collectionName, pipeline: [{ $nope: 1 }] }), 40324);
    await fails(t.db.createCollection(`${name}w`, { pipeline: [] }), 72);
    assert.equal(await view.drop(), true);
    assert.deepEqual(await view.find().toArray(), []);
    assert.equal(await base.countDocuments(), 20);
    await view.insertOne({ _id: "a collection now" });
    assert.equal(await view.countDocuments(), 1);
  });
});
