// Spatial and full-text indexes: the same rows as without an index, from fewer items.

import { assert, suite, random } from "./harness.js";

const words = ["river", "bridges", "Mountain", "running", "quickly", "garden", "ünïcode", "lake's", "stone", "windmill", "harbour", "ferries"];
const wrapped = (longitude) => ((longitude + 540) % 360) - 180;

function shape(next) {
  const [longitude, latitude] = next() < 0.3 ? [178 + 4 * next(), 20 * next() - 10] : next() < 0.2 ? [360 * next() - 180, 80 + 10 * next()] : [360 * next() - 180, 160 * next() - 80];
  const at = (dx, dy) => [wrapped(longitude + dx), Math.max(-90, Math.min(90, latitude + dy))];
  const size = 10 ** (3 * next() - 2);
  if (next() < 0.6) return { type: "Point", coordinates: at(0, 0) };
  if (next() < 0.5) return { type: "LineString", coordinates: [at(0, 0), at(size, size / 2), at(size, -size)] };
  return { type: "Polygon", coordinates: [[at(0, 0), at(size, 0), at(size, size / 2), at(0, size / 2), at(0, 0)]] };
}

const policy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: '/"_etag"/?' }] };
const texts = { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text" }] };

suite("kinds of index", (t) => {
  const indexed = { partitionKey: "/id", fullTextPolicy: texts, indexingPolicy: { ...policy, spatialIndexes: [{ path: "/at/?", types: ["Point", "LineString", "Polygon", "MultiPolygon"] }, { path: "/stops/[]/at/?" }], fullTextIndexes: [{ path: "/text" }] } };
  const plenty = { offerThroughput: 10000 }; // still one range
  const count = 600;

  async function fill(container, seed) {
    const next = random(seed);
    const items = Array.from({ length: count }, (_, i) => ({
      id: String(i),
      at: i % 50 ? shape(next) : { type: "Point", coordinates: [181, i] },
      stops: Array.from({ length: Math.floor(3 * next()) }, () => ({ at: shape(next) })),
      text: Array.from({ length: Math.floor(6 * next()) }, () => words[Math.floor(next() ** 2 * words.length)]).join(" "),
    }));
    for (let i = 0; i < count; i += 100) {
      await Promise.all(items.slice(i, i + 100).map((item) => container.items.create(item)));
    }
  }

  // Runs a query; returns its rows and the number of items loaded.
  async function ask(container, query) {
    const rows = [];
    let looked = 0;
    for (const iterator = container.items.query(query, { populateQueryMetrics: true }); iterator.hasMoreResults(); ) {
      const page = await iterator.fetchNext();
      rows.push(...(page.resources ?? []));
      for (const metrics of Object.values(page.headers["x-ms-documentdb-query-metrics"])) looked += metrics.retrievedDocumentCount;
    }
    return { rows, looked };
  }

  function conditions(next) {
    const json = (value) => JSON.stringify(value);
    const phrase = () => json(Array.from({ length: 1 + Math.floor(2 * next()) }, () => words[Math.floor(next() * words.length)]).join(" "));
    const any = [
      () => `ST_DISTANCE(c.at, ${json(shape(next))}) < ${10 ** (3 + 3 * next())}`,
      () => `${10 ** (3 + 3 * next())} >= ST_DISTANCE(${json(shape(next))}, c.at)`,
      () => `ST_DISTANCE(c.at, ${json(shape(next))}) BETWEEN 10 AND ${10 ** (4 + 2 * next())}`,
      () => `ST_WITHIN(c.at, ${json({ type: "Polygon", coordinates: [[[170, -15], [-175, -15], [-175, 15], [170, 15], [170, -15]]] })})`,
      () => `ST_WITHIN(c.at, ${json({ type: "Polygon", coordinates: [[[0, 84], [90, 84], [180, 84], [-90, 84], [0, 84]]] })})`,
      () => `ST_INTERSECTS(${json(shape(next))}, c.at)`,
      () => `EXISTS(SELECT VALUE s FROM s IN c.stops WHERE ST_DISTANCE(s.at, ${json(shape(next))}) < 500000)`,
      () => `FullTextContains(c.text, ${phrase()})`,
      () => `FullTextContainsAll(c.text, ${phrase()}, ${phrase()})`,
      () => `FullTextContainsAny(c.text, ${phrase()}, ${phrase()})`,
      () => `FullTextContains(c.text, {"term": "rver", "distance": 1})`,
      () => `(FullTextContains(c.text, ${phrase()}) OR ST_DISTANCE(c.at, ${json(shape(next))}) < 100000)`,
      () => `NOT FullTextContains(c.text, ${phrase()})`,
      () => `ST_DISTANCE(c.at, ${json(shape(next))}) > 1000000`,
    ];
    return any[Math.floor(next() * any.length)]();
  }

  t.it("give the rows that there are without them", async () => {
    const [with_, without] = [await t.container(indexed, plenty), await t.container({ partitionKey: "/id", fullTextPolicy: texts }, plenty)];
    await fill(with_, 1);
    await fill(without, 1);
    const next = random(2);
    let [fewer, all] = [0, 0];
    for (let i = 0; i < 120; i++) {
      const query = `SELECT VALUE c.id FROM c WHERE (${conditions(next)})${next() < 0.3 ? ` AND (${conditions(next)})` : ""}`;
      const [a, b] = [await ask(with_, query), await ask(without, query)];
      assert.deepEqual(a.rows.sort(), b.rows.sort(), query); // both in the order in which they were created
      assert.equal(b.looked, count, query);
      fewer += a.looked;
      all += b.looked;
    }
    assert.ok(fewer < all / 2, `${fewer} items looked at, ${all} without an index`);
  });

  t.it("look at what may be meant, and at little else", async () => {
    const container = await t.container(indexed, plenty);
    await fill(container, 3);
    const { rows: all } = await ask(container, "SELECT c.at, c.text FROM c");
    const point = all.find((item) => item.at.type === "Point" && Math.abs(item.at.coordinates[0]) < 180).at;
    const near = await ask(container, `SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, ${JSON.stringify(point)}) < 1000`);
    assert.ok(near.rows.length >= 1);
    assert.ok(near.looked <= near.rows.length + 10, `${near.looked} items looked at for ${near.rows.length}`);
    const word = await ask(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "ferry")');
    assert.ok(word.rows.length >= 1 && word.rows.length < count / 4);
    assert.equal(word.looked, word.rows.length, "a word's entries are of those that have it");
    const both = await ask(container, 'SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, "ferries", "harbours", "windmills")');
    assert.ok(both.looked <= word.looked, `${both.looked} items looked at for all of three words`);
  });

  t.it("come and go with the policy, and follow the language", async () => {
    const container = await t.container({ partitionKey: "/id", fullTextPolicy: texts }, plenty);
    await fill(container, 4);
    const built = async () => {
      for (;;) {
        const { headers } = await container.read({ populateQuotaInfo: true });
        if (headers["x-ms-documentdb-collection-index-transformation-progress"] === "100") return;
        await new Promise((done) => setTimeout(done, 20));
      }
    };
    const word = 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "ferry")';
    const before = await ask(container, word);
    const { resource } = await container.read();
    await container.replace({ ...resource, fullTextPolicy: texts, indexingPolicy: indexed.indexingPolicy });
    await built();
    const after = await ask(container, word);
    assert.deepEqual(after.rows, before.rows, "in the same order");
    assert.deepEqual([before.looked, after.looked], [count, after.rows.length]);
    await container.replace({ ...resource, fullTextPolicy: texts, indexingPolicy: indexed.indexingPolicy, fullTextPolicy: { ...texts, defaultLanguage: "de-DE" } });
    await built();
    const german = await ask(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "ferries")');
    assert.equal(german.looked, german.rows.length);
    await container.replace(resource);
    await built();
    assert.deepEqual((await ask(container, word)).rows, before.rows);
  });

  t.it("follow what is written", async () => {
    const container = await t.container(indexed, plenty);
    await fill(container, 5);
    const paris = { type: "Point", coordinates: [2.35, 48.86] };
    const near = async () => (await ask(container, `SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, ${JSON.stringify(paris)}) <= 1`)).rows;
    const word = async () => (await ask(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "elephants")')).rows;
    assert.deepEqual([await near(), await word()], [[], []]);
    await container.items.upsert({ id: "7", at: paris, text: "An elephant!" });
    await container.items.create({ id: "new", at: paris, text: "Elephants, elephants" });
    assert.deepEqual([await near(), await word()], [["7", "new"], ["7", "new"]]);
    await container.item("7", "7").patch([{ op: "set", path: "/at/coordinates", value: [2.4, 48.86] }, { op: "set", path: "/text", value: "A mouse" }]);
    assert.deepEqual([await near(), await word()], [["new"], ["new"]]);
    await container.item("new", "new").delete();
    assert.deepEqual([await near(), await word()], [[], []]);
  });
}, { schemes: ["http"] });
