// Indexes: sorts and filters that they serve give what a sort and a filter in memory give, on random documents, over one range and several,
// with splits between pages; explain says which index was used.
import { BSON, Decimal128, Double, Long, MaxKey, MinKey, ObjectId, Timestamp, Binary } from "mongodb";
import { after } from "node:test";
import { Rest } from "../sdk/server.js";
import { dice } from "./dice.js";
import { assert, fails, suite } from "./harness.js";

function scalar(roll) {
  const kinds = [
    () => roll(5) - 2,
    () => new Double((roll(9) - 4) / 2),
    () => Long.fromNumber(roll(5)),
    () => Decimal128.fromString(`${roll(4)}.${roll(10)}`),
    () => "ab".repeat(roll(3)) + "xyz"[roll(3)],
    () => "long ".repeat(20) + roll(4),
    () => null,
    () => roll(2) === 1,
    () => new Date(roll(4) * 1000 - 2000),
    () => new ObjectId(`${"0".repeat(23)}${roll(4)}`),
    () => new Timestamp({ t: roll(3), i: roll(3) }),
    () => new Binary(Buffer.from([roll(3), roll(3)].slice(0, 1 + roll(2)))),
    () => ({ x: roll(3) }),
    () => ({}),
    () => [new MinKey(), new MaxKey()][roll(2)],
    () => NaN,
  ];
  return kinds[roll(kinds.length)]();
}

function value(roll, arrays) {
  if (arrays && roll(4) === 0) return Array.from({ length: roll(4) }, () => scalar(roll));
  return scalar(roll);
}

const { EJSON } = BSON;

// Only one of the two fields may be an array: parallel arrays cannot be in one index.
function document(roll, id, arrays) {
  const made = { _id: id, p: roll(40) };
  if (roll(6)) made.a = value(roll, arrays);
  if (roll(6)) made.b = Array.isArray(made.a) ? scalar(roll) : value(roll, arrays);
  if (roll(3) === 0) made.n = { deep: value(roll, arrays) };
  return made;
}

// What orders equal documents is not told: the sort of _id makes each order the only one.
async function bothWays(collection, filter, sort, between) {
  const options = { promoteValues: false };
  const natural = await collection.find(filter, { ...options, sort, hint: { $natural: 1 } }).toArray();
  const found = [];
  const cursor = collection.find(filter, { ...options, sort, batchSize: 7 });
  for await (const each of cursor) {
    found.push(each);
    if (between && found.length === 21) await between();
  }
  assert.deepEqual(found.map((d) => d._id), natural.map((d) => d._id), JSON.stringify({ filter, sort }));
  return found;
}

const stages = (plan) => [plan.stage, ...(plan.inputStage ? stages(plan.inputStage) : [])];
async function planOf(collection, filter, options = {}) {
  const { queryPlanner } = await collection.find(filter, options).explain();
  return queryPlanner.winningPlan;
}

const sorts = [
  { a: 1, _id: 1 },
  { a: -1, _id: -1 },
  { a: 1, b: -1, _id: 1 },
  { a: -1, b: 1, _id: -1 },
  { "n.deep": 1, _id: 1 },
];
const indexes = [{ a: 1, _id: 1 }, { a: 1, b: -1, _id: 1 }, { "n.deep": -1, _id: -1 }];

suite("sorts by index", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());

  async function filled(seed, { sharded = false, arrays = true, n = 220 } = {}) {
    const collection = t.collection();
    const roll = dice(seed);
    if (sharded) await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    for (const index of indexes.slice(0, 2)) await collection.createIndex(index);
    await collection.insertMany(Array.from({ length: n }, (_, i) => document(roll, i, arrays)));
    await collection.createIndex(indexes[2]); // on data
    return { collection, roll };
  }

  async function split(collection, parts) {
    const at = { database: t.db.databaseName, container: collection.collectionName };
    const ranges = (await sql().get(`/dbs/${at.database}/colls/${at.container}/pkranges`)).json.PartitionKeyRanges;
    const answer = await sql().post("/_tesela/split", { ...at, range: ranges[0].id, parts }, { sign: false });
    assert.equal(answer.status, 200, answer.text);
  }

  for (const arrays of [false, true]) {
    t.it(`are those of a sort in memory, ${arrays ? "with" : "without"} arrays`, async () => {
      const { collection } = await filled(1 + arrays, { arrays });
      for (const sort of sorts) {
        const found = await bothWays(collection, {}, sort);
        assert.equal(found.length, 220);
        assert.deepEqual(stages(await planOf(collection, {}, { sort })), ["FETCH", "IXSCAN"], JSON.stringify(sort));
      }
    });

    t.it(`with filters, ${arrays ? "with" : "without"} arrays`, async () => {
      const { collection, roll } = await filled(3 + arrays, { arrays });
      for (let i = 0; i < 12; i++) {
        const v = scalar(roll);
        const filters = [{ a: { $gte: v } }, { a: { $lt: v } }, { a: v, b: { $exists: true } }, { b: v }, { a: { $in: [v, scalar(roll)] } }];
        filters.push({ a: { $gte: 0, $lt: 2 } }, { $or: [{ a: v }, { b: v }] }, { a: null }, { "n.deep": { $lte: v } });
        for (const filter of filters) await bothWays(collection, filter, sorts[roll(sorts.length)]);
        await bothWays(collection, { a: v }, { b: roll(2) ? 1 : -1, _id: 1 });
      }
    });

    t.it(`over four ranges, split between pages, ${arrays ? "with" : "without"} arrays`, async () => {
      const { collection } = await filled(5 + arrays, { sharded: true, arrays });
      await split(collection, 2);
      let splits = 0;
      for (const sort of sorts) {
        const found = await bothWays(collection, {}, sort, async () => {
          if (++splits <= 2) await split(collection, 2);
        });
        assert.equal(found.length, 220);
      }
      await bothWays(collection, { a: { $gt: 0 } }, sorts[0]);
    });
  }

  t.it("read no more than the limit needs", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1, b: -1 });
    await collection.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: i, a: i % 10, b: i })));
    const { executionStats, queryPlanner } = await collection.find({ a: 3 }).sort({ b: -1 }).limit(5).explain();
    assert.equal(queryPlanner.winningPlan.inputStage.indexName, "a_1_b_-1");
    assert.equal(queryPlanner.winningPlan.inputStage.direction, "forward");
    assert.ok(executionStats.totalDocsExamined < 200, `${executionStats.totalDocsExamined}`);
    const up = await collection.find({ a: 3 }).sort({ b: 1 }).limit(3).toArray();
    assert.deepEqual(up.map((d) => d.b), [3, 13, 23]);
    assert.equal((await planOf(collection, { a: 3 }, { sort: { b: 1 } })).inputStage.direction, "backward");
    const range = await collection.find({ a: { $gte: 4, $lt: 6 } }).sort({ a: 1, b: -1 }).skip(299).limit(2).toArray();
    assert.deepEqual(range.map((d) => [d.a, d.b]), [[4, 4], [5, 2995]]);
    const ids = await collection.find().sort({ _id: -1 }).limit(3).toArray();
    assert.deepEqual(ids.map((d) => d._id), [2999, 2998, 2997]);
    assert.deepEqual(stages(await planOf(collection, {}, { sort: { _id: -1 }, limit: 3 })), ["FETCH", "IXSCAN"]);
    assert.deepEqual(stages(await planOf(collection, {}, { sort: { b: 1 } })), ["SORT", "COLLSCAN"]);
  });

  t.it("serve the front of a pipeline, and findOneAndUpdate", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.insertMany(Array.from({ length: 2000 }, (_, i) => ({ _id: i, a: (i * 7) % 2000 })));
    const top = await collection.aggregate([{ $match: { a: { $gte: 10 } } }, { $sort: { a: 1 } }, { $limit: 3 }, { $project: { _id: 0 } }]).toArray();
    assert.deepEqual(top, [{ a: 10 }, { a: 11 }, { a: 12 }]);
    const plan = await collection.aggregate([{ $sort: { a: -1 } }, { $limit: 3 }]).explain();
    assert.deepEqual(stages(plan.queryPlanner.winningPlan), ["FETCH", "IXSCAN"]);
    assert.ok(plan.executionStats.totalDocsExamined < 100);
    const last = await collection.findOneAndUpdate({ a: { $lt: 5 } }, { $set: { x: 1 } }, { sort: { a: -1 }, returnDocument: "after" });
    assert.deepEqual([last.a, last.x], [4, 1]);
  });
});

suite("hints", (t) => {
  t.it("choose an index, and must name one", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.insertMany([{ _id: 1, a: 2, b: 1 }, { _id: 2, a: 1, b: 1 }]);
    assert.equal((await collection.find({ a: 1 }).hint("a_1").toArray()).length, 1);
    assert.equal((await collection.find({ a: 1 }).hint({ a: 1 }).toArray()).length, 1);
    assert.deepEqual(stages(await planOf(collection, { a: 1 }, { hint: { $natural: 1 } })), ["COLLSCAN"]);
    await fails(collection.find({ a: 1 }).hint("nothing").toArray(), 2, /hint provided does not correspond to an existing index/);
    await fails(collection.updateOne({ a: 1 }, { $set: { c: 1 } }, { hint: { z: 1 } }), 2);
    await fails(collection.countDocuments({ a: 1 }, { hint: "z" }), 2);
  });
});

suite("kinds of indexes", (t) => {
  const random = (seed, n = 200) => {
    const roll = dice(seed);
    return Array.from({ length: n }, (_, i) => document(roll, i, true));
  };
  // With and without the indexes the same documents are found.
  async function changesNothing(collection, filters, sort) {
    for (const filter of filters) await bothWays(collection, filter, sort ?? { _id: 1 });
  }

  t.it("hashed and wildcard serve filters", async () => {
    const collection = t.collection();
    await collection.insertMany(random(11));
    await collection.createIndex({ a: "hashed" });
    await collection.createIndex({ "$**": 1 });
    const roll = dice(12);
    const filters = Array.from({ length: 20 }, () => scalar(roll)).flatMap((v) => [{ a: v }, { b: v }, { "n.deep": v }, { b: { $gt: v } }, { "a.x": v }]);
    await changesNothing(collection, filters);
    assert.equal((await planOf(collection, { b: 1 })).inputStage.indexName, "$**_1");
    assert.deepEqual((await collection.indexes()).map((x) => x.name), ["_id_", "a_hashed", "$**_1"]);
    await collection.dropIndex("$**_1");
    assert.equal((await planOf(collection, { b: 1 })).stage, "COLLSCAN");
  });

  t.it("descending ones find negative numbers, whose keys end with FF bytes", async () => {
    const collection = t.collection();
    await collection.createIndex({ b: -1, c: -1 });
    await collection.insertMany([{ _id: 1, b: -0.5, c: -2 }, { _id: 2, b: -2, c: -0.5 }, { _id: 3, b: 0.5, c: 1 }]);
    await changesNothing(collection, [{ b: -0.5 }, { b: { $in: [-0.5, -2] } }, { b: -0.5, c: -2 }, { b: -0.5, c: { $lt: 0 } }, { b: { $lte: -0.5 } }]);
    assert.equal((await collection.find({ b: -0.5, c: -2 }).toArray()).length, 1);
  });

  t.it("compound take one array", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1, b: 1 });
    await collection.insertOne({ _id: 1, a: [1, 2], b: 1 });
    await fails(collection.insertOne({ _id: 2, a: [1], b: [2] }), 171);
    await fails(collection.updateOne({ _id: 1 }, { $set: { b: [3] } }), 171);
    assert.equal((await collection.find({ a: 2, b: 1 }).toArray()).length, 1);
  });

  t.it("partial and sparse are used where the filter implies them", async () => {
    const collection = t.collection();
    await collection.createIndex({ b: 1 }, { partialFilterExpression: { a: { $gt: 1 } } });
    await collection.createIndex({ n: 1 }, { sparse: true });
    await collection.insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i, a: i % 5, b: i % 7, ...(i % 3 ? {} : { n: i }) })));
    const filters = [{ b: 3 }, { b: 3, a: { $gt: 1 } }, { b: 3, a: 4 }, { b: 3, a: { $gte: 1 } }, { n: { $gt: 50 } }, { n: null }, { n: { $exists: true } }];
    await changesNothing(collection, filters);
    const stage = async (filter, options) => (await planOf(collection, filter, options)).stage;
    assert.equal(await stage({ b: 3 }), "COLLSCAN");
    assert.equal(await stage({ b: 3, a: { $gt: 1 } }), "FETCH");
    assert.equal(await stage({ b: 3, a: 4 }), "FETCH");
    assert.equal(await stage({ b: 3, a: { $gte: 1 } }), "COLLSCAN");
    assert.equal(await stage({ n: { $gt: 50 } }), "FETCH");
    assert.equal(await stage({ n: null }), "COLLSCAN");
    assert.deepEqual(stages(await planOf(collection, {}, { sort: { n: 1 } })), ["SORT", "COLLSCAN"]);
    assert.deepEqual(stages(await planOf(collection, { n: { $gt: 50 } }, { sort: { n: 1 } })), ["FETCH", "IXSCAN"]);
    const [, partial, sparse] = await collection.indexes();
    assert.deepEqual(partial.partialFilterExpression, { a: { $gt: 1 } });
    assert.equal(sparse.sparse, true);
  });
});

// One collection without indexes, and one for each kind: every filter and sort gives the same. TESELA_ROUNDS asks for more, TESELA_SEED for
// others.
suite("every kind of index", (t) => {
  const rounds = Number(process.env.TESELA_ROUNDS ?? 25);
  const seed = Number(process.env.TESELA_SEED ?? 4711);
  const kinds = {
    single: [[{ a: 1 }], [{ b: -1 }], [{ "n.deep": 1 }]],
    compound: [[{ a: 1, b: -1 }], [{ b: 1, "n.deep": 1 }]],
    partial: [[{ a: 1 }, { partialFilterExpression: { b: { $gte: 0 } } }], [{ b: 1 }, { partialFilterExpression: { a: { $exists: true } } }]],
    sparse: [[{ a: 1 }, { sparse: true }], [{ b: -1, a: 1 }, { sparse: true }]],
    wildcard: [[{ "$**": 1 }]],
    projected: [[{ "$**": 1 }, { wildcardProjection: { a: 1 } }]],
    hashed: [[{ a: "hashed" }], [{ b: "hashed" }]],
  };

  // A condition on one field, or on several.
  function condition(roll, depth) {
    const field = ["a", "b", "n.deep", "a.x", "n"][roll(5)];
    const one = () => scalar(roll);
    const comparison = () => ["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"][roll(6)];
    const made = [
      () => ({ [field]: one() }),
      () => ({ [field]: { [comparison()]: one() } }),
      () => ({ [field]: { $gte: roll(3) - 2, $lt: roll(3) } }),
      () => ({ [field]: { $in: [one(), one()] } }),
      () => ({ [field]: { $nin: [one(), null] } }),
      () => ({ [field]: { $exists: roll(2) === 1 } }),
      () => ({ [field]: { $type: ["number", "string", "array", "null"][roll(4)] } }),
      () => ({ [field]: /^ab/ }),
      () => ({ [field]: { $not: { [comparison()]: one() } } }),
      () => ({ [field]: { $elemMatch: { $gte: roll(3), $lt: 3 } } }),
      () => ({ [field]: { $all: [one(), one()] } }),
      () => ({ [field]: { $size: roll(3) } }),
    ];
    if (depth && roll(3) === 0) return { [["$and", "$or", "$nor"][roll(3)]]: [condition(roll, depth - 1), condition(roll, depth - 1)] };
    return made[roll(made.length)]();
  }

  t.it(`changes no result (seed ${seed})`, async () => {
    const roll = dice(seed);
    const documents = Array.from({ length: 160 }, (_, i) => document(roll, i, true)).filter((d) => !(Array.isArray(d.b) && Array.isArray(d.n?.deep)));
    const bare = t.collection();
    await bare.insertMany(documents);
    const indexed = {};
    for (const [kind, list] of Object.entries(kinds)) {
      indexed[kind] = t.collection();
      await indexed[kind].insertMany(documents);
      for (const [key, options] of list) await indexed[kind].createIndex(key, options);
    }
    for (let round = 0; round < rounds; round++) {
      const filter = condition(roll, 2);
      const sort = [{ _id: 1 }, { a: 1, _id: 1 }, { b: -1, _id: 1 }, { a: -1, b: 1, _id: 1 }][roll(4)];
      const ids = async (collection) => (await collection.find(filter, { sort, projection: { _id: 1 } }).toArray()).map((d) => d._id);
      const expected = await ids(bare);
      for (const [kind, collection] of Object.entries(indexed)) {
        assert.deepEqual(await ids(collection), expected, `round ${round}, ${kind}: ${EJSON.stringify({ filter, sort })}`);
        assert.equal(await collection.countDocuments(filter), expected.length, kind);
      }
    }
  });
});

suite("options of indexes", (t) => {
  t.it("are those of MongoDB; others are refused", async () => {
    const collection = t.collection();
    const create = (key, options, more) => t.command({ createIndexes: collection.collectionName, indexes: [{ key, name: "x", ...options }], ...more });
    await fails(create({ a: 1 }, { singular: true }), 197, /'singular' is not valid/);
    await fails(create({ a: 1 }, { wildcardProjection: { a: 1 } }), 67);
    await fails(create({ "$**": 1 }, { wildcardProjection: {} }), 67);
    await fails(create({ "$**": 1 }, { unique: true }), 67);
    await create({ "$**": 1 }, { wildcardProjection: { a: 1 }, background: true }, { commitQuorum: "majority" });
    assert.deepEqual((await collection.indexes())[1], { v: 2, key: { "$**": 1 }, name: "x", wildcardProjection: { a: 1 } });
  });

  t.it("hidden indexes are kept and not used, until collMod shows them", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 }, { hidden: true });
    await collection.insertMany([{ a: 1 }, { a: 2 }]);
    assert.equal((await collection.indexes())[1].hidden, true);
    assert.equal((await planOf(collection, { a: 1 })).stage, "COLLSCAN");
    const shown = await t.command({ collMod: collection.collectionName, index: { name: "a_1", hidden: false } });
    assert.deepEqual([shown.hidden_old, shown.hidden_new], [true, false]);
    assert.equal((await planOf(collection, { a: 1 })).stage, "FETCH");
    assert.equal((await collection.indexes())[1].hidden, undefined);
    await fails(t.command({ collMod: collection.collectionName, index: { name: "_id_", hidden: true } }), 2);
  });
});

suite("collations", (t) => {
  const words = ["b", "A", "a", "B", "ä", "10", "9"];
  const german = { locale: "de", strength: 2, numericOrdering: true };

  t.it("compare strings in filters, sorts, updates and pipelines", async () => {
    const collection = t.collection();
    await collection.insertMany(words.map((word, _id) => ({ _id, word })));
    const sorted = await collection.find().collation(german).sort({ word: 1, _id: 1 }).toArray();
    assert.deepEqual(sorted.map((d) => d.word), ["9", "10", "A", "a", "ä", "b", "B"]);
    assert.equal(await collection.countDocuments({ word: "A" }, { collation: german }), 2);
    assert.equal((await collection.find({ word: { $gte: "b" } }).collation(german).toArray()).length, 2);
    assert.deepEqual((await collection.distinct("word", {}, { collation: german })).length, 5);
    const groups = await collection.aggregate([{ $match: { word: "b" } }, { $count: "n" }], { collation: german }).toArray();
    assert.deepEqual(groups, [{ n: 2 }]);
    assert.equal((await collection.updateMany({ word: "a" }, { $set: { x: 1 } }, { collation: german })).modifiedCount, 2);
    assert.equal((await collection.findOneAndUpdate({ word: "Ä" }, { $set: { x: 2 } }, { collation: german })).word, "ä");
    assert.equal((await collection.deleteMany({ word: "B" }, { collation: german })).deletedCount, 2);
    await fails(collection.find().collation({ locale: "xx-none" }).toArray(), 2);
  });

  t.it("of an index serve sorts and filters of the same collation", async () => {
    const collection = t.collection();
    await collection.insertMany(words.map((word, _id) => ({ _id, word })));
    await collection.createIndex({ word: 1 }, { collation: german });
    const sorted = await collection.find().collation(german).sort({ word: 1 }).toArray();
    assert.deepEqual(sorted.map((d) => d.word), ["9", "10", "A", "a", "ä", "b", "B"]);
    assert.deepEqual(stages(await planOf(collection, {}, { sort: { word: 1 }, collation: german })), ["FETCH", "IXSCAN"]);
    assert.deepEqual(stages(await planOf(collection, {}, { sort: { word: 1 } })), ["SORT", "COLLSCAN"]);
    assert.equal((await planOf(collection, { word: "a" })).stage, "COLLSCAN");
    assert.equal((await collection.find({ word: "a" }).collation(german).toArray()).length, 2);
  });

  t.it("of a collection are its default", async () => {
    const collection = await t.db.createCollection(`collated${t.way}`, { collation: german });
    await collection.insertMany(words.map((word, _id) => ({ _id, word })));
    assert.equal((await collection.find({ word: "A" }).toArray()).length, 2);
    assert.equal((await collection.find({ word: "A" }).collation({ locale: "simple" }).toArray()).length, 1);
  });
});

suite("unique indexes", (t) => {
  t.it("are built on data, unless two documents are the same", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, a: i, b: i % 10 })));
    await collection.createIndex({ a: 1 }, { unique: true });
    const error = await fails(collection.insertOne({ a: 7 }), 11000);
    assert.deepEqual(error.keyPattern, { a: 1 });
    await fails(collection.createIndex({ b: 1 }, { unique: true }), 11000, /E11000 duplicate key error collection/);
    assert.deepEqual((await collection.indexes()).map((x) => x.name), ["_id_", "a_1"]);
    await collection.insertOne({ a: 1000, b: 3 }); // the index that was refused checks nothing
    await collection.updateOne({ _id: 1 }, { $set: { a: 2000 } });
    await collection.insertOne({ a: 1 });
  });

  t.it("are dropped and built again", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 200 }, (_, i) => ({ _id: i, a: i, b: i, c: i })));
    for (const name of ["a", "b", "c"]) await collection.createIndex({ [name]: 1 }, { unique: true });
    const refused = async (document) => Object.keys((await fails(collection.insertOne(document), 11000)).keyPattern ?? {});
    await collection.dropIndex("b_1");
    await collection.insertOne({ _id: "same b", a: "x", b: 7, c: "x" });
    await fails(collection.insertOne({ a: 7, b: "y", c: "y" }), 11000);
    await fails(collection.insertOne({ a: "y", b: "y", c: 7 }), 11000);
    await fails(collection.createIndex({ b: 1 }, { unique: true }), 11000);
    await collection.deleteOne({ _id: "same b" });
    await collection.updateOne({ _id: 5 }, { $set: { b: 1000 } });
    await collection.createIndex({ b: 1 }, { unique: true }); // under another number: nothing of the old one is left
    assert.deepEqual((await collection.indexes()).map((x) => x.name), ["_id_", "a_1", "c_1", "b_1"]);
    await fails(collection.insertOne({ a: "z", b: 1000, c: "z" }), 11000);
    await collection.insertOne({ _id: "five", a: "z", b: 5, c: "z" });
    await collection.dropIndexes();
    await collection.insertMany([{ a: 1, b: 1, c: 1 }, { a: 1, b: 1, c: 1 }]);
    await collection.deleteMany({ a: 1 });
    for (let i = 0; i < 12; i++) {
      await collection.createIndex({ a: 1 }, { unique: true });
      assert.deepEqual(await refused({ a: 2, b: 2, c: 2 }), ["a"]);
      await collection.updateOne({ _id: 2 }, { $set: { a: `moved${i}` } });
      await collection.insertOne({ _id: `again${i}`, a: 2 });
      await collection.deleteOne({ _id: `again${i}` });
      await collection.updateOne({ _id: 2 }, { $set: { a: 2 } });
      await collection.dropIndex({ a: 1 });
    }
  });

  t.it("may be sparse or partial", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3, mail: "a" }]);
    await collection.createIndex({ mail: 1 }, { unique: true, sparse: true });
    await collection.insertOne({ _id: 4 });
    await fails(collection.insertOne({ _id: 5, mail: "a" }), 11000);
    await collection.createIndex({ n: 1 }, { unique: true, partialFilterExpression: { on: true } });
    await collection.insertMany([{ n: 1 }, { n: 1 }, { n: 1, on: true }]);
    await fails(collection.insertOne({ n: 1, on: true }), 11000);
    await collection.updateOne({ n: 1, on: true }, { $set: { on: false } });
    await collection.insertOne({ n: 1, on: true });
    await fails(collection.createIndex({ z: 1 }, { sparse: true, partialFilterExpression: { on: true } }), 67);
    await fails(collection.createIndex({ z: 1 }, { partialFilterExpression: { on: { $regex: "a" } } }), 67);
  });

  t.it("and shardCollection lose no insert that was answered", async () => {
    for (let round = 0; round < 8; round++) {
      const collection = t.collection();
      const ns = `${t.db.databaseName}.${collection.collectionName}`;
      await t.db.createCollection(collection.collectionName);
      const inserts = Array.from({ length: 6 }, (_, i) => collection.insertOne({ _id: i, p: i }).then(() => i, () => null));
      const sharded = await t.command({ shardCollection: ns, key: { p: "hashed" } }).then(() => true, (e) => e);
      const answered = (await Promise.all(inserts)).filter((i) => i !== null);
      if (sharded !== true) assert.equal(sharded.code, 72, sharded.message);
      const found = await collection.find().sort({ _id: 1 }).toArray();
      assert.deepEqual(found.map((d) => d._id), answered, `sharded: ${sharded === true}`);
    }
  });
});

suite("TTL indexes", (t) => {
  const until = async (check) => {
    for (let i = 0; i < 100; i++) {
      if (await check()) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    assert.fail("waited for 10 seconds");
  };

  t.it("remove documents by any date, and collMod changes when", async () => {
    const collection = t.collection();
    const ago = (s) => new Date(Date.now() - s * 1000);
    await collection.insertMany([{ _id: "old", at: ago(100) }, { _id: "new", at: ago(10) }, { _id: "none" }, { _id: "text", at: "2000" }, { _id: "list", at: [ago(5), ago(90)] }]);
    await collection.createIndex({ at: 1 }, { expireAfterSeconds: 60 });
    await until(async () => (await collection.countDocuments()) === 3);
    await collection.insertOne({ _id: "late", at: ago(1000) });
    await until(async () => (await collection.countDocuments()) === 3);
    assert.deepEqual((await collection.find().sort({ _id: 1 }).toArray()).map((d) => d._id), ["new", "none", "text"]);
    const changed = await t.command({ collMod: collection.collectionName, index: { keyPattern: { at: 1 }, expireAfterSeconds: 5 } });
    assert.deepEqual([changed.expireAfterSeconds_old, changed.expireAfterSeconds_new], [60, 5]);
    await until(async () => (await collection.countDocuments()) === 2);
    assert.equal((await collection.indexes())[1].expireAfterSeconds, 5);
    await fails(t.command({ collMod: collection.collectionName, index: { name: "z", expireAfterSeconds: 5 } }), 27);
    await fails(collection.createIndex({ a: 1, b: 1 }, { expireAfterSeconds: 5 }), 67);
    await fails(collection.createIndex({ a: 1 }, { expireAfterSeconds: -1 }), 67);
  });
});
