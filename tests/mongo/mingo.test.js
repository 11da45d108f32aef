// The query language against mingo, a second implementation (JavaScript, MIT): random filters, expressions, pipelines and updates over random
// documents give the same. TESELA_SEED and TESELA_ROUNDS repeat a failure or ask for more.

import mingo from "mingo";
import { assert, suite } from "./harness.js";
import { TypedTerms } from "./typed-terms.js";

const rounds = Number(process.env.TESELA_ROUNDS ?? 8);
const seed = Number(process.env.TESELA_SEED ?? 1811);
const documents = 40;
const termsOfRound = 40;

const has = (term, text) => JSON.stringify(term).includes(text);

// Where mingo differs from MongoDB's documentation.
const known = [
  {
    reason: "$count of no documents gives no document; mingo's gives one with 0",
    is: (term) => has(term, '"$count":"n"'),
  },
  {
    reason: "$bucket leaves out buckets without documents, and a boundary is the least value of its bucket",
    is: (term) => has(term, "$bucket"),
  },
  {
    reason: "$addToSet leaves the duplicates that are in the array already, and adds none to a new array",
    is: (term, d) => has(term, "$addToSet") && new Set(d.l).size !== d.l?.length,
  },
  {
    reason: "$[] and $[x] of a missing array are an error (2)",
    is: (term, d) => (has(term, "l.$[") && !d.l) || (has(term, "r.$[") && !d.r),
  },
  {
    reason: "$push makes a missing array with all modifiers applied",
    is: (term, d) => (has(term, '"$push":{"l":{"$each"') && !d.l) || (has(term, '"$push":{"r":{"$each"') && !d.r),
  },
];

// Sums of fractions may differ in their last digits. The order of members is that of MongoDB, which mingo does not keep everywhere.
function same(a, b) {
  if (typeof a === "number" && typeof b === "number") return a === b || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a)) || Object.is(a, b);
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((x, i) => same(x, b[i]));
  if (a instanceof Date || b instanceof Date) return a?.valueOf() === b?.valueOf();
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && same(a[name], b[name]));
}

suite("mingo agrees with random", (t) => {
  // compare(terms, collection, documents) gives {term, document, ours, theirs}.
  const compared = (name, compare) =>
    t.it(name, async () => {
      let skipped = 0;
      for (let round = 0; round < rounds; round++) {
        const terms = new TypedTerms(seed + round);
        const data = Array.from({ length: documents }, (_, i) => terms.document(i));
        const collection = t.collection();
        await collection.insertMany(data);
        for (let i = 0; i < termsOfRound; i++) {
          const { term, document, ours, theirs } = await compare(terms, collection, data);
          if (same(ours, theirs)) continue;
          assert.ok(
            known.some((difference) => difference.is(term, document ?? {})),
            `seed ${seed + round}: ${JSON.stringify(term)} of ${JSON.stringify(document ?? data)}: ${JSON.stringify(ours)}; mingo: ${JSON.stringify(theirs)}`,
          );
          skipped++;
        }
        await collection.drop();
      }
      assert.ok(skipped < (rounds * termsOfRound) / 5, `${skipped} known differences`);
    });
  const tried = async (run) => {
    try {
      return await run();
    } catch (error) {
      return { error: error.message };
    }
  };

  compared("filters", async (terms, collection, data) => {
    const term = terms.filter();
    const query = new mingo.Query(term);
    const ours = (await collection.find(term).sort({ _id: 1 }).toArray()).map((d) => d._id);
    return { term, ours, theirs: data.filter((d) => query.test(d)).map((d) => d._id) };
  });

  compared("expressions", async (terms, collection, data) => {
    const expression = terms.any(() => terms.number(3), () => terms.text(3), () => terms.list(3), () => terms.truth(3));
    const term = [{ $sort: { _id: 1 } }, { $project: { result: [expression] } }];
    return { term, ours: await collection.aggregate(term).toArray(), theirs: mingo.aggregate(structuredClone(data), term) };
  });

  compared("pipelines", async (terms, collection, data) => {
    const term = terms.pipeline();
    return { term, ours: await collection.aggregate(term).toArray(), theirs: mingo.aggregate(structuredClone(data), term) };
  });

  compared("updates", async (terms, collection, data) => {
    const { update, options } = terms.update();
    const document = terms.pick(data);
    const id = { _id: document._id };
    await collection.replaceOne(id, document);
    const ours = await tried(() => collection.findOneAndUpdate(id, update, { ...options, returnDocument: "after" }));
    const list = [structuredClone(document)];
    mingo.updateOne(list, id, update, { cloneMode: "deep", ...options });
    return { term: update, document, ours, theirs: list[0] };
  });
}, { ways: ["plain"] });
