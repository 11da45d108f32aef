// Vector indexes of type diskANN: nearest-neighbour search by a graph, which is built on first use and includes all later writes.

import { assert, suite, random, rounds, sleep } from "./harness.js";

const dimensions = 16;
const count = rounds(5200); // more than a query compares one by one; fewer under sanitizers, where all searches use the graph once it is built
const plenty = { offerThroughput: 10000 };

// Vectors in clusters, like embeddings of texts and images.
function vectors(seed) {
  const next = random(seed);
  const centres = Array.from({ length: 100 }, () => Array.from({ length: dimensions }, () => 2 * next() - 1));
  return () => centres[Math.floor(next() * centres.length)].map((x) => Number((x + 0.3 * (next() + next() - 1)).toFixed(4)));
}

const body = (distanceFunction, type = "diskANN") => ({
  partitionKey: "/id",
  vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions, distanceFunction }] },
  indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/v/*" }], vectorIndexes: [{ path: "/v", type }] },
});

suite("vectors", (t) => {
  async function fill(container, make, n = count) {
    for (let i = 0; i < n; i += 100) {
      const operations = Array.from({ length: 100 }, (_, j) => ({ operationType: "Create", resourceBody: { id: String(i + j), third: (i + j) % 3, n: i + j, v: make() } }));
      for (const { statusCode } of await container.items.bulk(operations)) assert.equal(statusCode, 201);
    }
  }

  const nearest = (top, where = "", force = false) => `SELECT TOP ${top} VALUE c.id FROM c ${where} ORDER BY VectorDistance(c.v, @v, ${force})`;
  const asked = (query, v) => ({ query, parameters: [{ name: "@v", value: v }] });
  const ask = (container, query, v, options) => container.items.query(asked(query, v), options).fetchAll();

  async function parts(container, query, v) {
    const { status, text, json } = await t.rest.post("/_tesela/explain", { database: t.database.id, container: container.id, ...asked(query, v) }, { sign: false });
    assert.equal(status, 200, text);
    return json.parts;
  }

  // Waits until every range uses its graph.
  async function built(container, v) {
    for (let i = 0; i < 1200; i++) {
      const all = await parts(container, nearest(10), v);
      if (all.every(({ way, words }) => way === "nearest" && !/not have yet/.test(words))) return all;
      await sleep(100);
    }
    assert.fail("the graph is not there after two minutes");
  }

  // The fraction of the true nearest neighbours that is found.
  async function recall(container, make, where = "", queries = rounds(12)) {
    let hits = 0;
    for (let i = 0; i < queries; i++) {
      const v = make();
      const found = await ask(container, nearest(10, where), v);
      const exact = await ask(container, nearest(10, where, true), v);
      assert.equal(found.resources.length, exact.resources.length);
      hits += exact.resources.filter((id) => found.resources.includes(id)).length / exact.resources.length;
    }
    return hits / queries;
  }

  t.it("are found by a graph as well as by comparing all, for the same charge", async () => {
    const container = await t.container(body("cosine"), plenty);
    const make = vectors(1);
    await fill(container, make);
    const v = make();
    const before = await ask(container, nearest(10), v);
    const [first] = await parts(container, nearest(10), v);
    assert.ok(first.way === "nearest" || /still being built/.test(first.words), first.words);
    const [part] = await built(container, v);
    assert.match(part.words, new RegExp(`^the nearest are found by the graph of /v, which has ${count.toLocaleString("en-US")} vectors; `));
    assert.ok(part.itemsLoaded < 100, `${part.itemsLoaded} items were loaded`);
    const after = await ask(container, nearest(10), v);
    assert.equal(after.requestCharge, before.requestCharge, "while it was built, and afterwards");
    const forced = await ask(container, nearest(10, "", true), v);
    assert.ok(forced.requestCharge > after.requestCharge, `${forced.requestCharge} to compare all, ${after.requestCharge} by the index`);
    assert.equal((await parts(container, nearest(10, "", true), v))[0].way, "all");
    assert.ok((await recall(container, make)) > 0.97);
    assert.ok((await recall(container, make, "WHERE c.third = 1")) > 0.97);
    assert.ok((await recall(container, make, "WHERE c.n % 10 = 1")) > 0.97, "asked of each item that is found");
    assert.equal(await recall(container, make, "WHERE c.n < 300"), 1, "few enough to be compared");
    assert.equal(await recall(container, make, "WHERE c.n % 1000 = 1"), 1, "too few are found: all are compared");
  });

  t.it("are as they are at the moment: written, replaced, deleted, without a vector", async () => {
    const container = await t.container(body("cosine"), plenty);
    const make = vectors(2);
    await fill(container, make);
    const far = Array.from({ length: dimensions }, (_, i) => (i % 2 ? 3 : -3)); // no other vector has this direction
    const first = async (top = 1) => (await ask(container, nearest(top), far)).resources;
    await built(container, far);
    for (let round = 0; round < rounds(12); round++) {
      const id = `new${round}`;
      await container.items.create({ id, v: far.map((x) => x * (round + 1)) });
      assert.deepEqual(await first(), [id], "at once");
      const moved = await container.item("17", "17").replace({ id: "17", v: far });
      assert.deepEqual((await first(2)).sort(), ["17", id]);
      await container.item(id, id).replace({ id, v: far.map((x) => -x) });
      assert.deepEqual(await first(), ["17"], "the one that was replaced is elsewhere");
      await container.item("17", "17").replace({ id: "17", v: make() }, { accessCondition: { type: "IfMatch", condition: moved.etag } });
      await container.item(id, id).patch([{ op: "set", path: "/v", value: far }]);
      assert.deepEqual(await first(), [id]);
      await container.item(id, id).patch([{ op: "remove", path: "/v" }]);
      assert.ok(!(await first(50)).includes(id), "it has no vector any more");
      await container.item(id, id).replace({ id, v: far });
      assert.deepEqual(await first(), [id]);
      await container.item(id, id).delete();
      const left = await first(50);
      assert.ok(!left.includes(id) && left.length === 50, "it is gone");
    }
    await container.items.create({ id: "short", v: far.slice(1) });
    await container.items.create({ id: "words", v: far.map(String) });
    await container.items.create({ id: "zero", v: far.map(() => 0) });
    await container.items.create({ id: "huge", v: far.map((x) => x * 1e100) });
    assert.deepEqual(await first(1), ["huge"], "no direction is too long");
    assert.ok(!(await first(100)).some((id) => ["short", "words", "zero"].includes(id)));
    // Deletes most of the near vectors; others must be found instead.
    const v = make();
    await ask(container, nearest(10), v);
    for (const id of (await ask(container, nearest(200), v)).resources) await container.item(id, id).delete();
    assert.equal((await ask(container, nearest(10), v)).resources.length, 10);
    assert.ok((await recall(container, () => v, "", 1)) > 0.8);
  });

  t.it("come page by page, each once and in order", async () => {
    const container = await t.container(body("euclidean"), plenty);
    const make = vectors(3);
    await fill(container, make);
    await container.items.create({ id: "none" }); // would come first, since undefined sorts before numbers
    const v = make();
    await built(container, v);
    const whole = (await ask(container, nearest(50), v)).resources;
    const exact = (await ask(container, nearest(50, "", true), v)).resources;
    assert.equal(new Set(whole).size, 50);
    assert.ok(!exact.includes("none"));
    const paged = [];
    for (const iterator = container.items.query(asked(nearest(50), v), { maxItemCount: 7 }); iterator.hasMoreResults(); ) {
      paged.push(...((await iterator.fetchNext()).resources ?? []));
    }
    assert.equal(new Set(paged).size, 50);
    assert.ok(exact.filter((id) => paged.includes(id)).length >= 48);
    // A vector that becomes nearer between two pages is skipped: the number of rows stays the same.
    const begun = container.items.query(asked(nearest(50), v), { maxItemCount: 7 });
    const rows = [...((await begun.fetchNext()).resources ?? [])];
    for (let i = 0; i < 100; i++) await container.items.create({ id: `near${i}`, v });
    while (begun.hasMoreResults()) rows.push(...((await begun.fetchNext()).resources ?? []));
    assert.equal(new Set(rows).size, 50);
    for (let i = 0; i < 100; i++) await container.item(`near${i}`, `near${i}`).delete();
    const skipped = (await ask(container, "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v) OFFSET 40 LIMIT 10", v)).resources;
    assert.deepEqual(skipped, whole.slice(40));
    const distances = (await ask(container, "SELECT TOP 50 VALUE VectorDistance(c.v, @v) FROM c ORDER BY VectorDistance(c.v, @v)", v)).resources;
    assert.deepEqual(distances, distances.slice().sort((a, b) => a - b));
    assert.ok((await recall(container, make)) > 0.97);
    // Queries for all, or with another distance function, compare all vectors.
    for (const query of ["SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)", 'SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, false, {"distanceFunction": "cosine"})']) {
      assert.equal((await parts(container, query, v))[0].way, "all", query);
    }
  });

  t.it("are found again after a split, by inner product too", async () => {
    const container = await t.container(body("dotproduct"), plenty);
    const make = vectors(4);
    await fill(container, make, 2 * count);
    const v = make();
    await built(container, v);
    assert.ok((await recall(container, make)) > 0.95);
    const { resource, offer } = await container.readOffer();
    await offer.replace({ ...resource, content: { offerThroughput: 20000 } });
    // Uses a new client each time: the SDK (4.10) keeps retrying a range that is gone while it collects rows by distance.
    const anew = async (act) => {
      const client = t.newClient();
      try {
        return await act(client.database(t.database.id).container(container.id));
      } finally {
        client.dispose();
      }
    };
    for (let tries = 0; (await container.readPartitionKeyRanges().fetchAll()).resources.length < 2; tries++) {
      assert.ok(tries < 600, "it is split");
      await sleep(50);
    }
    assert.equal((await anew((again) => ask(again, nearest(10), v))).resources.length, 10);
    assert.ok((await built(container, v)).length > 1);
    assert.ok((await anew((again) => recall(again, make))) > 0.95);
  });

  t.it("are right while many write and ask at once", async () => {
    const container = await t.container(body("cosine"), plenty);
    const make = vectors(6);
    await fill(container, make, 2000);
    await built(container, make());
    // Each worker has its own direction, in which no other vectors are.
    const worker = async (w) => {
      const mine = Array.from({ length: dimensions }, (_, i) => (i === w ? 9 : i === (w + 7) % dimensions ? -9 : 0));
      for (let round = 0; round < rounds(24); round++) {
        const id = `w${w}-${round}`;
        await container.items.create({ id, v: mine });
        assert.deepEqual((await ask(container, nearest(1), mine)).resources, [id]);
        const all = (await ask(container, nearest(20), make())).resources;
        assert.equal(new Set(all).size, 20);
        await container.item(id, id).delete();
        assert.notEqual((await ask(container, nearest(1), mine)).resources[0], id);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, w) => worker(w)));
    assert.ok((await recall(container, make)) > 0.95);
  });

  t.it("of the other types are compared one by one", async () => {
    for (const type of ["flat", "quantizedFlat"]) {
      const container = await t.container(body("cosine", type), plenty);
      const make = vectors(5);
      await fill(container, make, 1200);
      await container.items.create({ id: "none" });
      assert.equal((await parts(container, nearest(10), make()))[0].way, "all");
      assert.equal(await recall(container, make, "", 3), 1);
    }
  });
});
