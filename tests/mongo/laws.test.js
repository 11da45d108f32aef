// Laws of the query language, which need no second implementation: random filters and updates over random documents of any shape.
// TESELA_SEED and TESELA_ROUNDS repeat a failure or ask for more.

import { assert, suite } from "./harness.js";
import { Terms } from "./random-terms.js";

const rounds = Number(process.env.TESELA_ROUNDS ?? 6);
const seed = Number(process.env.TESELA_SEED ?? 1822);
const ids = (documents) => documents.map((d) => d._id);

suite("random terms", (t) => {
  const law = (name, tries, check) =>
    t.it(name, async () => {
      for (let round = 0; round < rounds; round++) {
        const terms = new Terms(seed + round);
        const data = Array.from({ length: 50 }, (_, i) => ({ ...terms.document(i), k: terms.scalar() }));
        const collection = t.collection();
        await collection.insertMany(data);
        const find = async (filter) => ids(await collection.find(filter).sort({ _id: 1 }).toArray());
        for (let i = 0; i < tries; i++) {
          try {
            await check({ terms, collection, find, data });
          } catch (error) {
            error.message = `seed ${seed + round}: ${error.message}`;
            throw error;
          }
        }
        await collection.drop();
      }
    });
  const equal = (found, expected, ...said) => assert.deepEqual(found, expected, `${said.map((x) => JSON.stringify(x)).join(" ")}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  const all = ids(Array.from({ length: 50 }, (_, _id) => ({ _id })));
  const without = (list) => all.filter((id) => !list.includes(id));

  law("follow logic: $nor, De Morgan, $not, $ne, $nin, $gte", 25, async ({ terms, find }) => {
    const f = terms.filter(), g = terms.filter(), path = terms.path(), value = terms.value(1);
    const [ofF, ofG] = [await find(f), await find(g)];
    equal(await find({ $nor: [f] }), without(ofF), "$nor", f);
    equal(await find({ $and: [f, g] }), ofF.filter((id) => ofG.includes(id)), "$and", f, g);
    equal(await find({ $or: [f, g] }), all.filter((id) => ofF.includes(id) || ofG.includes(id)), "$or", f, g);
    equal(await find({ $nor: [f, g] }), await find({ $and: [{ $nor: [f] }, { $nor: [g] }] }), "De Morgan", f, g);
    const operators = terms.operators(1);
    equal(await find({ [path]: { $not: operators } }), without(await find({ [path]: operators })), "$not", path, operators);
    equal(await find({ [path]: { $ne: value } }), without(await find({ [path]: { $eq: value } })), "$ne", path, value);
    equal(await find({ [path]: { $nin: [value, 1] } }), without(await find({ $or: [{ [path]: value }, { [path]: 1 }] })), "$nin", path, value);
    equal(await find({ [path]: { $gte: value } }), await find({ $or: [{ [path]: { $gt: value } }, { [path]: { $eq: value } }] }), "$gte", path, value);
    equal(await find({ [path]: { $exists: false } }), without(await find({ [path]: { $exists: true } })), "$exists", path);
  });

  law("mean the same in find, pipelines, count, delete and distinct", 10, async ({ terms, find, collection }) => {
    const f = terms.filter(), g = terms.filter();
    const found = await find(f);
    equal(ids(await collection.aggregate([{ $match: f }, { $sort: { _id: 1 } }]).toArray()), found, "$match", f);
    equal(ids(await collection.aggregate([{ $sort: { _id: 1 } }, { $limit: 50 }, { $match: f }]).toArray()), found, "late $match", f);
    equal(ids(await collection.aggregate([{ $match: f }, { $match: g }, { $sort: { _id: 1 } }]).toArray()), await find({ $and: [f, g] }), "two of $match", f, g);
    equal(await collection.countDocuments(f), found.length, "count", f);
    equal((await collection.distinct("_id", f)).sort((a, b) => a - b), found, "distinct", f);
    const [facets] = await collection.aggregate([{ $facet: { yes: [{ $match: f }, { $count: "n" }], no: [{ $match: { $nor: [f] } }, { $count: "n" }] } }]).toArray();
    equal((facets.yes[0]?.n ?? 0) + (facets.no[0]?.n ?? 0), 50, "$facet", f);
  });

  law("sort to the opposite of the opposite order, and stages agree with find", 5, async ({ terms, collection }) => {
    const up = ids(await collection.find().sort({ k: 1, _id: 1 }).toArray());
    const down = ids(await collection.find().sort({ k: -1, _id: -1 }).toArray());
    equal(down.toReversed?.() ?? [...down].reverse(), up, "reversed");
    const skip = terms.roll(20), limit = 1 + terms.roll(20);
    equal(ids(await collection.find().sort({ k: 1, _id: 1 }).skip(skip).limit(limit).toArray()), up.slice(skip, skip + limit), "skip and limit", skip, limit);
    equal(ids(await collection.aggregate([{ $addFields: { z: 1 } }, { $sort: { k: 1, _id: 1 } }]).toArray()), up, "$sort");
    const path = terms.path();
    const sorted = ids(await collection.find().sort({ [path]: 1, _id: 1 }).toArray());
    equal(ids(await collection.find().sort({ [path]: 1, _id: 1 }).limit(7).toArray()), sorted.slice(0, 7), "top of", path);
    const groups = await collection.aggregate([{ $sort: { k: 1, _id: 1 } }, { $group: { _id: "$k", of: { $push: "$_id" } } }]).toArray();
    equal(groups.flatMap((x) => x.of).sort((a, b) => a - b), all, "$group");
    for (const { of } of groups) equal(of, up.filter((id) => of.includes(id)), "$group keeps the order");
  });

  // An update that fails leaves the document as it was.
  const attempt = (collection, id, update) => collection.updateOne({ _id: id }, update).then(() => true, () => false);
  const at = (collection, id) => collection.findOne({ _id: id });

  law("update: twice is once, and back is as before", 20, async ({ terms, collection, data }) => {
    const id = terms.roll(50);
    const before = data[id];
    const path = terms.path(), value = terms.value(1), number = terms.pick([-2, 1, 2, 3]);
    const once = terms.pick([
      { $set: { [path]: value } }, { $unset: { [path]: "" } }, { $addToSet: { [path]: value } }, { $pull: { [path]: value } },
      { $pullAll: { [path]: [value, 1] } }, { $max: { [path]: value } }, { $min: { [path]: value } }, { $setOnInsert: { [path]: value } },
    ]);
    if (await attempt(collection, id, once)) {
      const first = await at(collection, id);
      await collection.updateOne({ _id: id }, once);
      equal(await at(collection, id), first, once);
      if (once.$set) equal(await collection.countDocuments({ _id: id, [path]: { $eq: value } }), 1, once);
      if (once.$unset && !Array.isArray(before.a) && !Array.isArray(before.b)) equal(await collection.countDocuments({ _id: id, [path]: { $exists: true } }), 0, once);
    } else {
      equal(await at(collection, id), before, "failed", once);
    }
    await collection.replaceOne({ _id: id }, before);

    const [there, back] = terms.pick([
      [{ $inc: { [path]: number } }, { $inc: { [path]: -number } }],
      [{ $push: { [path]: value } }, { $pop: { [path]: 1 } }],
      [{ $push: { [path]: { $each: [value], $position: 0 } } }, { $pop: { [path]: -1 } }],
      [{ $bit: { [path]: { xor: 5 } } }, { $bit: { [path]: { xor: 5 } } }],
      [{ $set: { fresh: value } }, { $unset: { fresh: "" } }],
      [{ $rename: { k: "moved" } }, { $rename: { moved: "k" } }],
    ]);
    const existed = await collection.countDocuments({ _id: id, [path]: { $exists: true } });
    if ((existed || there.$set || there.$rename) && (await attempt(collection, id, there))) {
      await collection.updateOne({ _id: id }, back);
      equal(await at(collection, id), before, there, back);
    }
    await collection.replaceOne({ _id: id }, before);
  });

  law("update the same by operators and by a pipeline", 20, async ({ terms, collection, data }) => {
    const id = terms.roll(50);
    const name = terms.pick(["a", "b", "c", "fresh"]), value = terms.value(1);
    const [operators, pipeline] = terms.pick([
      [{ $set: { [name]: value } }, [{ $set: { [name]: { $literal: value } } }]],
      [{ $unset: { [name]: "" } }, [{ $unset: name }]],
      [{ $min: { k: value } }, [{ $set: { k: { $cond: [{ $lt: [{ $literal: value }, "$k"] }, { $literal: value }, "$k"] } } }]],
      [{ $max: { k: value } }, [{ $set: { k: { $cond: [{ $gt: [{ $literal: value }, "$k"] }, { $literal: value }, "$k"] } } }]],
    ]);
    await collection.updateOne({ _id: id }, operators);
    const first = await at(collection, id);
    await collection.replaceOne({ _id: id }, data[id]);
    await collection.updateOne({ _id: id }, pipeline);
    equal(await at(collection, id), first, operators, pipeline);
    await collection.replaceOne({ _id: id }, data[id]);
  });
}, { ways: ["plain"] });

// What null means where values are missing or in arrays: the results that MongoDB has, with every kind of index and without.
suite("null", (t) => {
  const values = {
    none: {}, empty: { a: {} }, null: { a: null }, number: { a: 4 }, text: { a: { b: "hi" } }, "null within": { a: { b: null } },
    "[[]]": { a: [[]] }, "[]": { a: [] }, nulls: { a: [null, null] }, "no nulls": { a: [1, "s", 4] }, "one null": { a: [1, null] },
    "all b null": { a: [{ b: null }, {}] }, "no b null": { a: [{ b: 1 }, { b: 3 }] }, "some b null": { a: [{ b: null }, { b: 3 }] }, "some b missing": { a: [{ b: 3 }, {}] },
  };
  const within = ["none", "empty", "null", "number", "null within", "all b null", "some b null", "some b missing"];
  const others = (names) => Object.keys(values).filter((name) => !names.includes(name));
  const expected = [
    [{ a: null }, ["none", "null", "nulls", "one null"]],
    [{ a: { $ne: null } }, others(["none", "null", "nulls", "one null"])],
    [{ a: { $exists: false } }, ["none"]],
    [{ "a.b": null }, within],
    [{ "a.b": { $gte: null } }, within],
    [{ "a.b": { $in: [null, 75] } }, within],
    [{ "a.b": { $ne: null } }, others(within)],
    [{ "a.b": { $nin: [null, 75] } }, others(within)],
    [{ "a.b": { $exists: false } }, ["none", "empty", "null", "number", "[[]]", "[]", "nulls", "no nulls", "one null"]],
    [{ a: { $elemMatch: { $eq: null } } }, ["nulls", "one null"]],
    [{ a: { $elemMatch: { $ne: null } } }, ["[[]]", "no nulls", "one null", "all b null", "no b null", "some b null", "some b missing"]],
    [{ a: { $elemMatch: { b: null } } }, ["[[]]", "all b null", "some b null", "some b missing"]],
    [{ a: { $elemMatch: { b: { $ne: null } } } }, ["no b null", "some b null", "some b missing"]],
    [{ "a.b": { $elemMatch: { $ne: null } } }, []],
  ];
  const exists = { partialFilterExpression: { a: { $exists: true } } };
  const indexes = [
    null, [{ a: 1 }], [{ a: -1 }], [{ a: "hashed" }], [{ a: 1 }, exists], [{ a: 1 }, { sparse: true }], [{ "a.b": 1 }], [{ _id: 1, "a.b": 1 }],
    [{ "a.b": 1, _id: 1 }], [{ "a.b": 1 }, exists], [{ "a.b": 1 }, { sparse: true }], [{ "$**": 1 }], [{ "a.$**": 1 }],
  ];
  for (const index of indexes) {
    t.it(`means the same ${index ? `with the index ${JSON.stringify(index)}` : "without an index"}`, async () => {
      const collection = t.collection();
      if (index) await collection.createIndex(...index);
      await collection.insertMany(Object.entries(values).map(([_id, value]) => ({ _id, ...value })));
      for (const [filter, names] of expected) {
        assert.deepEqual(ids(await collection.find(filter).toArray()).sort(), [...names].sort(), JSON.stringify(filter));
      }
    });
  }
}, { ways: ["plain"] });
