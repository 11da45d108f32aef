// count, distinct, $count, $group and $sortByCount that an index answers: they give what reading all documents gives, on random documents, over
// one range and several; explain says which index was used, and how many documents were read.
import { BSON, Decimal128, Double, Long } from "mongodb";
import { after } from "node:test";
import { Rest } from "../sdk/server.js";
import { dice } from "./dice.js";
import { assert, suite } from "./harness.js";

const { EJSON } = BSON;
const natural = { $natural: 1 };

function scalar(roll) {
  const kinds = [
    () => roll(4) - 1,
    () => new Double(roll(4) - 1),
    () => Long.fromNumber(roll(3)),
    () => Decimal128.fromString(["1", "1.0", "2.50", "NaN"][roll(4)]),
    () => ["x", "y", "X", "long ".repeat(20) + roll(2)][roll(4)],
    () => null,
    () => roll(2) === 1,
    () => new Date(roll(3) * 1000),
    () => ({ x: roll(2) }),
    () => NaN,
  ];
  return kinds[roll(kinds.length)]();
}

function document(roll, id, arrays) {
  const value = () => (arrays && roll(4) === 0 ? Array.from({ length: roll(3) }, () => (roll(6) ? scalar(roll) : [scalar(roll)])) : scalar(roll));
  return { _id: id, p: roll(40), ...(roll(6) && { a: value() }), b: roll(4), ...(roll(3) && { n: roll(8) ? { d: value() } : value() }) };
}

function filters(roll) {
  const v = scalar(roll);
  return [{ a: v }, { a: { $lt: v } }, { a: { $gte: v } }, { a: { $in: [v, 1, scalar(roll)] } }, { a: { $gt: 0, $lt: 2 } }, { "n.d": v }, { b: 2, a: v },
    { b: 1, a: { $lte: v } }, { b: { $gt: 0, $lte: 2 } }, { a: null }, { b: 3, a: { $exists: true } }, { $or: [{ a: v }, { b: 1 }] }, { b: { $in: [1, 1, 3] } }];
}

const shown = (v) => EJSON.stringify(v, { relaxed: false });
// Of equal numbers of several types, any may stand for the group.
const sorted = (list) => list.map((v) => shown(v).replace(/\{"\$number\w+":"([^"]*)"\}/g, (_, text) => String(Number(text)))).sort();

suite("counts by index", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());

  async function filled(seed, { arrays, sharded = false, n = 400 }) {
    const collection = t.collection();
    const roll = dice(seed);
    if (sharded) await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    for (const key of [{ a: 1 }, { b: 1, a: -1 }, { "n.d": -1 }]) await collection.createIndex(key);
    await collection.insertMany(Array.from({ length: n }, (_, i) => document(roll, i, arrays)));
    return { collection, roll };
  }

  async function split(collection) {
    const at = { database: t.db.databaseName, container: collection.collectionName };
    const ranges = (await sql().get(`/dbs/${at.database}/colls/${at.container}/pkranges`)).json.PartitionKeyRanges;
    assert.equal((await sql().post("/_tesela/split", { ...at, range: ranges[0].id, parts: 2 }, { sign: false })).status, 200);
  }

  async function same(collection, roll) {
    const options = { promoteValues: false };
    for (const filter of [{}, ...filters(roll)]) {
      const label = shown(filter);
      const found = await collection.find(filter, { hint: natural }).toArray();
      assert.equal(await collection.countDocuments(filter), found.length, label);
      assert.equal((await t.command({ count: collection.collectionName, query: filter })).n, found.length, label);
      assert.equal((await t.command({ count: collection.collectionName, query: filter, skip: 3, limit: 9 })).n, Math.min(9, Math.max(0, found.length - 3)), label);
      for (const path of ["a", "b", "n.d"]) {
        const by = (hint) => t.command({ distinct: collection.collectionName, key: path, query: filter, ...(hint && { hint }) });
        assert.deepEqual(sorted((await by()).values), sorted((await by(natural)).values), `distinct ${path} ${label}`);
        for (const stages of [[{ $group: { _id: `$${path}`, n: { $sum: 1 }, m: { $count: {} }, h: { $sum: 0.5 } } }], [{ $sortByCount: `$${path}` }], [{ $group: { _id: `$${path}` } }]]) {
          const groups = (more) => collection.aggregate([{ $match: filter }, ...stages], { ...options, ...more }).toArray();
          assert.deepEqual(sorted(await groups()), sorted(await groups({ hint: natural })), `${shown(stages)} ${label}`);
        }
      }
    }
  }

  for (const arrays of [false, true]) {
    t.it(`are those of all documents, ${arrays ? "with" : "without"} arrays`, async () => {
      const { collection, roll } = await filled(21 + arrays, { arrays });
      for (let i = 0; i < 3; i++) await same(collection, roll);
    });

    t.it(`over several ranges, ${arrays ? "with" : "without"} arrays`, async () => {
      const { collection, roll } = await filled(31 + arrays, { arrays, sharded: true });
      await same(collection, roll);
      await split(collection);
      await same(collection, roll);
    });
  }

  t.it("follow changes, and arrays that come and go", async () => {
    const { collection, roll } = await filled(41, { arrays: false, n: 200 });
    await collection.updateMany({ b: 1 }, { $set: { a: [1] } }); // one element, one key
    await same(collection, roll);
    await collection.updateMany({ b: 1 }, { $set: { a: 2 } });
    await collection.deleteMany({ b: 2 });
    await same(collection, roll);
  });

  const stages = (plan) => [plan.stage, ...(plan.inputStage ? stages(plan.inputStage) : [])];

  t.it("read keys, and one document of each value", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.createIndex({ b: 1, c: 1 });
    await collection.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: i, a: i % 5, b: i % 3, c: i % 7, text: "x".repeat(500) })));
    const read = async (command, wanted, documents, index) => {
      const { queryPlanner, executionStats } = await t.command({ explain: command, verbosity: "executionStats" });
      assert.deepEqual(stages(queryPlanner.winningPlan), wanted, JSON.stringify(command));
      assert.equal(executionStats.totalDocsExamined, documents, JSON.stringify(command));
      if (index) assert.equal(JSON.stringify(queryPlanner.winningPlan).includes(`"indexName":"${index}"`), true, JSON.stringify(queryPlanner.winningPlan));
      return executionStats.requestCharge;
    };
    const name = collection.collectionName;
    const aggregate = (...pipeline) => ({ aggregate: name, pipeline, cursor: {} });
    const cheap = await read({ count: name, query: { a: { $gte: 1, $lt: 3 } } }, ["COUNT", "COUNT_SCAN"], 0, "a_1");
    const dear = await read({ count: name, query: { a: { $gte: 1, $lt: 3 } }, hint: natural }, ["COUNT", "COLLSCAN"], 3000);
    assert.ok(cheap * 3 < dear, `${cheap} and ${dear} RU`);
    await read({ count: name, query: { a: { $in: [1, 1, 3] } } }, ["COUNT", "COUNT_SCAN"], 0, "a_1");
    await read({ count: name, query: { b: 1, c: { $gt: 3 } } }, ["COUNT", "COUNT_SCAN"], 0, "b_1_c_1");
    await read({ count: name, query: { a: 2, text: /^x/ } }, ["COUNT", "FETCH", "IXSCAN"], 600, "a_1");
    await read({ distinct: name, key: "a" }, ["DISTINCT_SCAN"], 5, "a_1");
    await read({ distinct: name, key: "c", query: { b: 2 } }, ["DISTINCT_SCAN"], 7, "b_1_c_1");
    await read(aggregate({ $group: { _id: "$a", n: { $sum: 1 } } }), ["GROUP", "DISTINCT_SCAN"], 5, "a_1");
    await read(aggregate({ $sortByCount: "$b" }), ["GROUP", "DISTINCT_SCAN"], 21, "b_1_c_1");
    await read(aggregate({ $match: { a: { $gt: 2 } } }, { $group: { _id: "$a" } }), ["GROUP", "DISTINCT_SCAN"], 2, "a_1");
    await read(aggregate({ $match: { a: { $gt: 2 } } }, { $count: "n" }), ["COUNT", "COUNT_SCAN"], 0, "a_1");
    await read(aggregate({ $group: { _id: "$a", n: { $sum: "$b" } } }), ["COLLSCAN"], 3000);
    await collection.insertOne({ _id: -1, a: [1] });
    await read(aggregate({ $group: { _id: "$a", n: { $sum: 1 } } }), ["GROUP", "COLLSCAN"], 3001);
    await read({ distinct: name, key: "a" }, ["DISTINCT_SCAN"], 5, "a_1");
  });

  t.it("keep to the collation", async () => {
    const collection = t.collection();
    const collation = { locale: "en", strength: 2 };
    await collection.insertMany(["x", "X", "y", "x", null].map((a, i) => ({ _id: i, a })));
    await collection.createIndex({ a: 1 });
    assert.equal(await collection.countDocuments({ a: "x" }, { collation }), 3);
    assert.equal((await collection.distinct("a", {}, { collation })).length, 3);
    assert.equal((await collection.aggregate([{ $group: { _id: "$a", n: { $sum: 1 } } }], { collation }).toArray()).length, 3);
    await collection.dropIndex("a_1");
    await collection.createIndex({ a: 1 }, { name: "folded", collation });
    assert.equal(await collection.countDocuments({ a: "x" }, { collation }), 3);
    assert.equal(await collection.countDocuments({ a: "x" }), 2);
    assert.equal((await collection.aggregate([{ $group: { _id: "$a", n: { $sum: 1 } } }], { collation }).toArray()).length, 3);
    assert.equal((await collection.distinct("a")).length, 4);
  });

  t.it("are in $indexStats, which counts uses", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.createIndex({ b: 1 }, { name: "other" });
    await collection.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
    const uses = async () => Object.fromEntries((await collection.aggregate([{ $indexStats: {} }]).toArray()).map((x) => [x.name, Number(x.accesses.ops)]));
    assert.deepEqual(await uses(), { _id_: 0, a_1: 0, other: 0 });
    await collection.find({ a: 1 }).toArray();
    await collection.find().sort({ a: -1 }).limit(1).toArray();
    await collection.countDocuments({ a: { $gt: 1 } });
    await collection.distinct("a");
    await collection.updateMany({ a: 2 }, { $set: { c: 1 } });
    await collection.findOne({ _id: 2 });
    await collection.find({ c: 1 }).toArray(); // by none
    assert.deepEqual(await uses(), { _id_: 1, a_1: 5, other: 0 });
    const [, stats] = await collection.aggregate([{ $indexStats: {} }]).toArray();
    assert.deepEqual([stats.key, stats.spec.name, stats.accesses.since instanceof Date], [{ a: 1 }, "a_1", true]);
    await collection.dropIndex("a_1");
    await collection.createIndex({ a: 1 });
    assert.ok("a_1" in (await uses()));
  });

  t.it("are explained in three verbosities", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, a: i % 5 })));
    const explain = (verbosity, command = { find: collection.collectionName, filter: { a: 1 } }) => t.command({ explain: command, verbosity });
    const planned = await explain("queryPlanner");
    assert.deepEqual([planned.executionStats, planned.command.filter, planned.queryPlanner.parsedQuery], [undefined, { a: 1 }, { a: 1 }]);
    assert.ok(planned.serverInfo.host && planned.ok === 1);
    const { executionStats } = await explain("executionStats");
    assert.deepEqual([executionStats.nReturned, executionStats.totalKeysExamined, executionStats.totalDocsExamined], [10, 10, 10]);
    const stage = executionStats.executionStages;
    assert.deepEqual([stage.stage, stage.nReturned, stage.docsExamined, stage.inputStage.stage, stage.inputStage.keysExamined], ["FETCH", 10, 10, "IXSCAN", 10]);
    assert.equal(executionStats.allPlansExecution, undefined);
    assert.deepEqual((await explain("allPlansExecution")).executionStats.allPlansExecution, []);
    const fast = await explain("executionStats", { count: collection.collectionName });
    assert.deepEqual(stages(fast.queryPlanner.winningPlan), ["COUNT", "RECORD_STORE_FAST_COUNT"]);
    assert.equal(fast.executionStats.totalDocsExamined, 0);
    await assert.rejects(explain("everything"), { code: 2 });
  });
});
