// 2dsphere and text indexes: what they find is what reading every document finds, on random documents; how they are listed; what they refuse.
import { dice } from "./dice.js";
import { assert, fails, suite } from "./harness.js";

const point = (x, y) => ({ type: "Point", coordinates: [x, y] });
const square = (x, y, side) => ({
  type: "Polygon",
  coordinates: [[[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]],
});

// Places around a town, and some anywhere.
function place(roll) {
  const near = roll(4) > 0;
  const x = near ? 2 + roll(1000) / 1000 : roll(3600) / 10 - 180;
  const y = near ? 41 + roll(1000) / 1000 : roll(1700) / 10 - 85;
  const kinds = [
    () => point(x, y),
    () => [x, y],
    () => ({ lng: x, lat: y }),
    () => ({ type: "LineString", coordinates: [[x, y], [x + 0.1, y + 0.1]] }),
    () => square(x, y, 0.05 + roll(10) / 50),
    () => ({ type: "MultiPoint", coordinates: [[x, y], [x + 1, y]] }),
    () => [point(x, y), point(x, -y)],
    () => null,
  ];
  return kinds[roll(kinds.length)]();
}

function geoFilters(roll) {
  const at = point(2 + roll(1000) / 1000, 41 + roll(1000) / 1000);
  const box = square(2 + roll(900) / 1000, 41 + roll(900) / 1000, 0.01 + roll(50) / 100);
  const [x, y] = at.coordinates;
  return [
    { at: { $geoWithin: { $geometry: box } } },
    { at: { $geoIntersects: { $geometry: box } } },
    { at: { $geoIntersects: { $geometry: at } } },
    { at: { $geoWithin: { $centerSphere: [[x, y], roll(100) / 5000] } } },
    { at: { $near: { $geometry: at, $maxDistance: roll(40000) } } },
    { at: { $nearSphere: { $geometry: at, $minDistance: roll(5000), $maxDistance: 5000 + roll(40000) } } },
    { at: { $nearSphere: [x, y], $maxDistance: roll(100) / 5000 } },
    { kind: roll(3), at: { $geoWithin: { $geometry: box } } },
    { $or: [{ at: { $geoWithin: { $geometry: box } } }, { at: { $geoIntersects: { $geometry: at } } }] },
  ];
}

const words = ["coffee", "shop", "tea", "garden", "running", "runs", "Madrid", "the", "cafés"];
const sentence = (roll) => Array.from({ length: 1 + roll(6) }, () => words[roll(words.length)]).join(roll(4) ? " " : ", ");

suite("places and texts", (t) => {
  for (const index of [{ at: "2dsphere" }, { kind: 1, at: "2dsphere" }]) {
    t.it(`places are found by the index ${JSON.stringify(index)} as by reading everything`, async () => {
      const roll = dice(18);
      const collection = t.collection();
      await collection.createIndex(index);
      await collection.insertMany(Array.from({ length: 300 }, (_, _id) => ({ _id, kind: roll(3), at: place(roll) })));
      for (let round = 0; round < 6; round++) {
        for (const filter of geoFilters(roll)) {
          const [found, all] = [await collection.find(filter).toArray(), await collection.find(filter, { hint: { $natural: 1 } }).toArray()];
          assert.deepEqual(found, all, JSON.stringify(filter));
        }
      }
    });
  }

  t.it("the nearest places are read ring by ring", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 2000 }, (_, i) => ({ _id: i, at: point((i % 50) * 0.02, Math.floor(i / 50) * 0.02) })));
    await collection.createIndex({ at: "2dsphere" });
    const filter = { at: { $near: { $geometry: point(0.501, 0.4) } } };
    const nearest = (await collection.find(filter).limit(7).toArray()).map((each) => each._id);
    assert.deepEqual(nearest, (await collection.find(filter).toArray()).slice(0, 7).map((each) => each._id));
    assert.equal(nearest[0], 20 * 50 + 25);
    assert.deepEqual((await collection.find(filter).skip(2).limit(3).toArray()).map((each) => each._id), nearest.slice(2, 5));
    const plan = await collection.find({ at: { $geoWithin: { $centerSphere: [[0.5, 0.4], 0.0005] } } }).explain("executionStats");
    assert.equal(plan.queryPlanner.winningPlan.inputStage.indexName, "at_2dsphere");
    assert.ok(plan.executionStats.totalDocsExamined < 100, plan.executionStats.totalDocsExamined);
    // few places, far away: the last ring is the earth
    const far = await collection.find({ at: { $near: { $geometry: point(-170, -80) } } }).limit(1).toArray();
    assert.equal(far.length, 1);
    assert.equal((await collection.find({ at: { $near: { $geometry: point(0, 0) } }, _id: -1 }).limit(3).toArray()).length, 0);
  });

  t.it("$geoNear reads by the index", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 500 }, (_, i) => ({ _id: i, at: point(i * 0.1 - 25, 10) })));
    await collection.createIndex({ at: "2dsphere" });
    const stage = { near: point(0, 10), distanceField: "far", maxDistance: 30000, key: "at", spherical: true };
    const found = await collection.aggregate([{ $geoNear: stage }]).toArray();
    assert.deepEqual(found.map((each) => each._id).slice(0, 1), [250]);
    assert.equal(found.length, 5);
    assert.ok(found.every((each, i) => i === 0 || each.far >= found[i - 1].far));
  });

  t.it("2dsphere indexes are listed, and what is no geometry is refused", async () => {
    const collection = t.collection();
    assert.equal(await collection.createIndex({ "where.at": "2dsphere", kind: 1 }), "where.at_2dsphere_kind_1");
    const listed = (await collection.listIndexes().toArray())[1];
    assert.deepEqual(listed, { v: 2, key: { "where.at": "2dsphere", kind: 1 }, name: "where.at_2dsphere_kind_1", "2dsphereIndexVersion": 3 });
    await fails(collection.insertOne({ where: { at: "here" } }), 16755);
    await fails(collection.insertOne({ where: { at: [500, 500] } }), 16755);
    await collection.insertOne({ _id: 1, where: {} });
    await fails(collection.updateOne({ _id: 1 }, { $set: { "where.at": { type: "Point", coordinates: "x" } } }), 16755);
    await fails(collection.createIndex({ at: "2dsphere" }, { unique: true }), 67);
    await fails(collection.createIndex({ at: "geoHaystack" }), 67);
  });

  t.it("texts are found by their words, phrases and negations", async () => {
    const collection = t.collection();
    await collection.createIndex({ title: "text", "tags.name": "text" }, { weights: { title: 10 }, default_language: "english" });
    await collection.insertMany([
      { _id: 1, title: "Coffee shop", tags: [{ name: "running" }] },
      { _id: 2, title: "Tea garden", tags: [{ name: "coffee" }, { name: "shop" }] },
      { _id: 3, title: "A shop for coffee, and coffee cakes" },
      { _id: 4, title: "nothing of it", tags: 5 },
      { _id: 5 },
    ]);
    const ids = async ($search, more) => (await collection.find({ $text: { $search, ...more } }).toArray()).map((each) => each._id).sort();
    assert.deepEqual(await ids("coffee"), [1, 2, 3]);
    assert.deepEqual(await ids("COFFEES run"), [1, 2, 3]);
    assert.deepEqual(await ids("runs"), [1]);
    assert.deepEqual(await ids("coffee -garden"), [1, 3]);
    assert.deepEqual(await ids('"coffee shop"'), [1]);
    assert.deepEqual(await ids('coffee "coffee cakes"'), [3]);
    assert.deepEqual(await ids("-coffee"), []);
    assert.deepEqual(await ids("the"), []);
    assert.deepEqual(await ids("coffee", { $caseSensitive: true }), [2, 3]);
    assert.deepEqual(await ids("running", { $language: "none" }), []); // the index has the stem "run"
    const score = { score: { $meta: "textScore" } };
    const scored = await collection.find({ $text: { $search: "coffee" } }, { projection: { title: 0, tags: 0, ...score } }).sort(score).toArray();
    assert.deepEqual(scored.map((each) => each._id), [3, 1, 2]);
    assert.ok(scored[0].score >= scored[1].score && scored[1].score > scored[2].score && scored[2].score > 0);
    const plan = await collection.find({ $text: { $search: "runs" } }).explain("executionStats");
    assert.equal(plan.executionStats.totalDocsExamined, 1);
    assert.equal(await collection.countDocuments({ $text: { $search: "coffee" } }), 3);
    assert.equal((await collection.updateMany({ $text: { $search: "garden" } }, { $set: { title: "Roses" } })).modifiedCount, 1);
    assert.deepEqual(await ids("roses"), [2]);
    assert.deepEqual(await ids("garden"), []);
    assert.equal((await collection.deleteMany({ $text: { $search: "coffee" } })).deletedCount, 3);
  });

  t.it("random texts are found as by another implementation", async () => {
    const roll = dice(81);
    const collection = t.collection();
    await collection.createIndex({ "$**": "text" }, { default_language: "none" });
    const documents = Array.from({ length: 150 }, (_, _id) => ({ _id, a: sentence(roll), b: { c: [sentence(roll), roll(9)] } }));
    await collection.insertMany(documents);
    const has = (each, word) => [each.a, each.b.c[0]].some((text) => text.toLowerCase().split(/[ ,]+/).includes(word));
    for (let round = 0; round < 40; round++) {
      const [yes, other, no] = [0, 0, 0].map(() => words[roll(words.length)].toLowerCase());
      const found = await collection.find({ $text: { $search: `${yes} ${other} -${no}` } }).toArray();
      const expected = documents.filter((each) => (has(each, yes) || has(each, other)) && !has(each, no));
      assert.deepEqual(found.map((each) => each._id), expected.map((each) => each._id), `${yes} ${other} -${no}`);
    }
  });

  t.it("text indexes are listed as MongoDB lists them, one for a collection", async () => {
    const collection = t.collection();
    await fails(collection.find({ $text: { $search: "x" } }).toArray(), 27);
    assert.equal(await collection.createIndex({ kind: 1, title: "text", body: "text" }, { weights: { title: 3 } }), "kind_1_title_text_body_text");
    const listed = (await collection.listIndexes().toArray())[1];
    assert.deepEqual(listed, {
      v: 2, key: { kind: 1, _fts: "text", _ftsx: 1 }, name: "kind_1_title_text_body_text", weights: { body: 1, title: 3 },
      default_language: "english", language_override: "language", textIndexVersion: 3,
    });
    await fails(collection.createIndex({ other: "text" }), 85);
    await fails(t.collection().createIndex({ a: "text" }, { default_language: "klingon" }), 67);
    await fails(t.collection().createIndex({ a: "text" }, { weights: { a: 0 } }), 67);
    await collection.insertMany([{ _id: 1, kind: 1, title: "red" }, { _id: 2, kind: 2, title: "red" }, { _id: 3, kind: 1, title: "rojas", language: "es" }]);
    const plan = await collection.find({ kind: 1, $text: { $search: "red" } }).explain("executionStats");
    assert.equal(plan.executionStats.totalDocsExamined, 1);
    assert.equal(plan.executionStats.nReturned, 1);
    assert.equal(await collection.countDocuments({ kind: 1, $text: { $search: "roja", $language: "es" } }), 1);
    await fails(collection.insertOne({ title: "x", language: "klingon" }), 17262);
    await collection.dropIndex("kind_1_title_text_body_text");
    await fails(collection.find({ $text: { $search: "red" } }).toArray(), 27);
  });
});
