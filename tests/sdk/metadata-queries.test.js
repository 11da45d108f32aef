// Queries over databases, containers and offers.

import { assert, fails, refused, suite } from "./harness.js";
import { binary } from "./server.js";

const sanitized = /asan|tsan/.test(binary);

suite("metadata queries", (t) => {
  const all = async (iterator) => (await iterator.fetchAll()).resources;
  const ids = (list) => list.map((one) => one.id);

  t.it("find databases", async () => {
    const prefix = t.name("q");
    for (const word of ["b", "a", "d", "c"]) await t.client.databases.create({ id: `${prefix}-${word}` });
    const query = (text, ...values) => all(t.client.databases.query({ query: text, parameters: [{ name: "@p", value: prefix }, ...values] }));
    assert.deepEqual(ids(await query("SELECT * FROM root r WHERE STARTSWITH(r.id, @p)")), ["b", "a", "d", "c"].map((word) => `${prefix}-${word}`), "as they were created");
    assert.deepEqual(await query("SELECT VALUE r.id FROM root r WHERE STARTSWITH(r.id, @p) ORDER BY r.id"), ["a", "b", "c", "d"].map((word) => `${prefix}-${word}`));
    assert.deepEqual(await query("SELECT TOP 2 VALUE RIGHT(r.id, 1) FROM root r WHERE STARTSWITH(r.id, @p) ORDER BY r.id DESC"), ["d", "c"]);
    assert.deepEqual(await query("SELECT VALUE RIGHT(r.id, 1) FROM root r WHERE STARTSWITH(r.id, @p) ORDER BY r.id OFFSET 1 LIMIT 2"), ["b", "c"]);
    assert.deepEqual(await query("SELECT VALUE COUNT(1) FROM root r WHERE r.id = CONCAT(@p, '-', @word)", { name: "@word", value: "a" }), [1]);
    assert.deepEqual(await query("SELECT * FROM root r WHERE r.id = 'nobody'"), []);
    const [one] = await query("SELECT * FROM root r WHERE r.id = CONCAT(@p, '-a')");
    assert.deepEqual(one, (await t.client.database(`${prefix}-a`).read()).resource, "as it is read");
  });

  t.it("find containers by their settings", async () => {
    const { database } = await t.client.databases.create({ id: t.name("d") });
    for (const [id, path, defaultTtl] of [["one", "/pk", 10], ["two", "/id", undefined], ["three", "/pk", -1]]) {
      await database.containers.create({ id, partitionKey: { paths: [path] }, defaultTtl });
    }
    const query = (text, parameters = []) => all(database.containers.query({ query: text, parameters }));
    assert.deepEqual(ids(await query("SELECT * FROM c WHERE c.partitionKey.paths[0] = @path", [{ name: "@path", value: "/pk" }])), ["one", "three"]);
    assert.deepEqual(await query("SELECT c.id, c.defaultTtl FROM c WHERE IS_DEFINED(c.defaultTtl) ORDER BY c.defaultTtl"), [{ id: "three", defaultTtl: -1 }, { id: "one", defaultTtl: 10 }]);
    const groups = await query("SELECT p AS path, COUNT(1) AS n FROM c JOIN p IN c.partitionKey.paths GROUP BY p");
    assert.deepEqual(groups, [{ path: "/pk", n: 2 }, { path: "/id", n: 1 }]);
    assert.deepEqual(await query("SELECT DISTINCT VALUE c.indexingPolicy.indexingMode FROM c"), ["consistent"]);
    const { database: other } = await t.client.databases.create({ id: t.name("d") });
    assert.deepEqual(await all(other.containers.query("SELECT * FROM c")), [], "of this database only");
    await fails(t.client.database("nowhere").containers.query("SELECT * FROM c").fetchAll(), 404);
  });

  t.it("find offers", async () => {
    const container = await t.container({}, { offerThroughput: 1700 });
    const { resource } = await container.read();
    const [offer] = await all(t.client.offers.query({ query: "SELECT * FROM o WHERE o.offerResourceId = @rid", parameters: [{ name: "@rid", value: resource._rid }] }));
    assert.equal(offer.content.offerThroughput, 1700);
    const most = await all(t.client.offers.query("SELECT VALUE MAX(o.content.offerThroughput) FROM o WHERE o.content.offerThroughput <= 1700"));
    assert.deepEqual(most, [1700]);
    const names = await all(t.client.offers.query(`SELECT VALUE o.id FROM o WHERE o.resource = '${resource._self}' AND o.content.offerThroughput > 1000`));
    assert.deepEqual(names, [offer.id]);
  });

  t.it("come in pages", async () => {
    const { database } = await t.client.databases.create({ id: t.name("d") });
    const made = Array.from({ length: 11 }, (_, i) => `c${String(i).padStart(2, "0")}`);
    for (const id of made) await database.containers.create({ id, partitionKey: "/pk" });
    const pages = async (query, maxItemCount) => {
      const seen = [];
      for (let continuationToken; ; ) {
        const page = await database.containers.query(query, { maxItemCount, continuationToken }).fetchNext(); // a new iterator for each page
        seen.push(page.resources);
        continuationToken = page.continuationToken;
        if (!continuationToken) return seen;
      }
    };
    for (const size of [1, 3, 11, 100]) {
      const plain = await pages("SELECT VALUE c.id FROM c WHERE c.id != 'c03'", size);
      assert.deepEqual(plain.flat(), made.filter((id) => id !== "c03"));
      assert.ok(plain.every((page) => page.length <= size));
      const ordered = await pages("SELECT VALUE c.id FROM c ORDER BY c.id DESC", size);
      assert.deepEqual(ordered.flat(), [...made].reverse());
      assert.equal(ordered.length, Math.ceil(11 / size));
      assert.deepEqual((await pages("SELECT TOP 5 VALUE c.id FROM c", size)).flat(), made.slice(0, 5));
      assert.deepEqual((await pages("SELECT VALUE c.id FROM c OFFSET 4 LIMIT 5", size)).flat(), made.slice(4, 9));
      assert.deepEqual((await pages("SELECT DISTINCT VALUE LEFT(c.id, 2) FROM c", size)).flat(), ["c0", "c1"]);
    }
  });

  t.it("go on behind what was deleted meanwhile", async () => {
    const { database } = await t.client.databases.create({ id: t.name("d") });
    for (const id of ["a", "b", "c", "d", "e"]) await database.containers.create({ id, partitionKey: "/pk" });
    const seen = [];
    for (let continuationToken; ; ) {
      const page = await database.containers.query("SELECT * FROM c", { maxItemCount: 2, continuationToken }).fetchNext();
      seen.push(...ids(page.resources));
      for (const { id } of page.resources) await database.container(id).delete();
      continuationToken = page.continuationToken;
      if (!continuationToken) break;
    }
    assert.deepEqual(seen, ["a", "b", "c", "d", "e"]);
  });

  t.it("are refused as others are", async () => {
    await fails(t.client.databases.query("SELEC * FROM c").fetchAll(), 400, { text: "SC1001" });
    await fails(t.client.databases.query("SELECT NOFUNC(c.id) FROM c").fetchAll(), 400, { text: "SC2005" });
    await fails(t.database.containers.query("").fetchAll(), 400, { text: "SC1002" });
    await fails(t.client.offers.query({ query: "SELECT * FROM c", parameters: [{ name: "x", value: 1 }] }).fetchAll(), 400, { text: "must begin with '@'" });
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
    refused(await t.rest.post("/dbs", { query: 5 }, { headers }), 400);
    refused(await t.rest.post("/dbs", { query: "SELECT * FROM c" }, { headers: { ...headers, "x-ms-continuation": "-7" } }), 400);
    refused(await t.rest.post("/dbs", { query: "SELECT * FROM c" }, { headers: { ...headers, "x-ms-max-item-count": "x" } }), 400);
  });

  // The limit of steps is that of item queries (hostile-query.test.js): reaching it takes some 15 seconds under a sanitizer.
  t.it("cannot take for ever", async () => {
    const { database } = await t.client.databases.create({ id: t.name("d") });
    const paths = Array.from({ length: 40 }, (_, i) => ({ path: `/p${i}/*` }));
    await database.containers.create({ id: "c", partitionKey: "/pk", indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: paths } });
    const joins = ["a", "b", "d", "e", "f", "g"].map((name) => `JOIN ${name} IN c.indexingPolicy.excludedPaths`).join(" ");
    const began = Date.now();
    await fails(database.containers.query(`SELECT VALUE COUNT(1) FROM c ${joins}`).fetchAll(), 408);
    const took = Date.now() - began;
    assert.ok(took < 15_000, `${took} ms`);
  }, { skip: sanitized });
});
