// Continuations of queries: in another client, after a restart of the server, across splits and merges, in the middle of ties, with order
// values that do not fit a header field; and the metadata of a page.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, fails, key, refused, Server, suite } from "./harness.js";
import { compare } from "../query/reference/index.mjs";

const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
const all = async (iterator) => (await iterator.fetchAll()).resources;
const names = (container) => ({ database: container.database.id, container: container.id });
const ordered = (rows) => [...rows].sort(compare);

async function fill(container, n, more = () => ({})) {
  for (let i = 0; i < n; i += 100) {
    const items = Array.from({ length: Math.min(100, n - i) }, (_, j) => ({ id: `${i + j}`, pk: `key ${(i + j) % 37}`, at: i + j, n: (i + j) % 6, ...more(i + j) }));
    const answers = await container.items.executeBulkOperations(items.map((resourceBody) => ({ operationType: "Create", partitionKey: resourceBody.pk, resourceBody })));
    for (const { response, error } of answers) assert.equal(response?.statusCode ?? error.code, 201);
  }
}

const rangesOf = async (t, container) => (await t.rest.get(`/dbs/${container.database.id}/colls/${container.id}/pkranges`)).json.PartitionKeyRanges.map((range) => range.id);

// Splits or merges; retries, since the balancer may change the ranges concurrently.
async function reshape(t, container, kind, tries = 5) {
  const ranges = await rangesOf(t, container);
  const body = kind === "split" ? { range: ranges[Math.floor(ranges.length / 2)] } : { first: ranges[0], second: ranges[1] };
  const answer = await t.rest.post(`/_tesela/${kind}`, { ...names(container), ...body }, { sign: false });
  if (tries && answer.status !== 200) return reshape(t, container, kind, tries - 1);
  assert.equal(answer.status, 200, answer.text);
}

// Reads page by page, with a new iterator for each; `between` runs before the next page.
async function paged(container, query, options, between = () => container) {
  const pages = [];
  for (let continuationToken, n = 0; ; n++) {
    const iterator = container.items.query(query, { ...options, continuationToken });
    let page = await iterator.fetchNext();
    // A page that found its range gone has neither rows nor a token.
    for (let tries = 0; tries < 5 && !page.resources?.length && !page.continuationToken && iterator.hasMoreResults(); tries++) page = await iterator.fetchNext();
    continuationToken = page.continuationToken;
    if (continuationToken && !options?.partitionKey) assert.equal(continuationToken[0] + typeof JSON.parse(continuationToken), "{object", "one JSON object");
    pages.push(page.resources ?? []);
    if (!continuationToken) return pages;
    assert.ok(n < 2000, "it ends");
    container = (await between(n)) ?? container;
  }
}

suite("continuations", (t) => {
  const plain = "SELECT VALUE c.at FROM c WHERE c.n != 2";
  const one = { partitionKey: "key 5" };
  const control = { enableQueryControl: true };
  // The SDK's own tokens: of pass-through queries, of one partition key, and (with enableQueryControl) of ORDER BY over ranges.
  const kinds = [
    [plain, { maxItemCount: 9 }],
    ["SELECT VALUE [c.at, x] FROM c JOIN x IN c.list", { maxItemCount: 7 }],
    ["SELECT VALUE c.at FROM c", { ...one, maxItemCount: 2 }],
    ["SELECT VALUE c.at FROM c ORDER BY c.n DESC", { ...one, maxItemCount: 1 }],
    ["SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n", { ...one, maxItemCount: 2 }],
    ["SELECT DISTINCT VALUE c.n FROM c", { ...one, maxItemCount: 1 }],
    ["SELECT VALUE c.at FROM c ORDER BY c.at OFFSET 1 LIMIT 3", { ...one, maxItemCount: 1 }],
    ["SELECT VALUE c.at FROM c ORDER BY c.at", { ...control, maxItemCount: 25 }],
    ["SELECT VALUE c.at FROM c ORDER BY c.at DESC", { ...control, maxItemCount: 25 }],
  ];
  const filled = async (n = 150) => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 40_000 });
    await fill(container, n, (i) => ({ list: [1, 2, 3].slice(0, i % 4) }));
    return container;
  };
  const sameRows = (pages, expected, query) => {
    const exactly = query.includes("ORDER BY") ? (rows) => rows : ordered;
    assert.deepEqual(exactly(pages.flat()), exactly(expected), query);
  };

  t.it("are good in a new client", async () => {
    const container = await filled();
    // Ties too. In descending order the SDK expects ties in the opposite order of creation, which differs from ours: see the README.
    const ties = ["SELECT VALUE c.at FROM c ORDER BY c.n", { ...control, maxItemCount: 25 }];
    for (const [query, options] of [...kinds, ties]) {
      const expected = await all(container.items.query(query, { ...options, maxItemCount: 1000 }));
      const clients = [];
      const again = () => {
        const client = t.newClient();
        clients.push(client);
        return client.database(container.database.id).container(container.id);
      };
      const pages = await paged(container, query, options, again);
      assert.deepEqual(pages.flat(), expected, query);
      assert.ok(pages.length > 1 && pages.every((page) => page.length <= options.maxItemCount), query);
      clients.forEach((client) => client.dispose());
    }
  });

  for (const kind of ["split", "merge"]) {
    t.it(`are good after a ${kind}`, async () => {
      for (const [query, options] of kinds.filter(([, { enableQueryControl }]) => !enableQueryControl)) {
        const container = await filled(60);
        const expected = await all(container.items.query(query, { ...options, maxItemCount: 1000 }));
        const pages = await paged(container, query, options, async (n) => {
          if (n < 2) await reshape(t, container, kind);
        });
        sameRows(pages, expected, query);
      }
    });
  }

  // The JavaScript SDK (4.10.1) never ends if a range goes away in the middle of a query that it merges. Other SDKs send the range's
  // continuation to its parts, or to the range that it was merged into, with the old bounds. This test does the same.
  t.it("of a range are good for its parts, and for what it was merged into", async () => {
    for (const query of ["SELECT VALUE c.at FROM c", "SELECT VALUE c.at FROM c ORDER BY c.at", "SELECT VALUE c.at FROM c ORDER BY c.n DESC", "SELECT VALUE [c.at, x] FROM c JOIN x IN c.list ORDER BY c.n", "SELECT TOP 40 VALUE c.at FROM c ORDER BY c.at", "SELECT DISTINCT VALUE c.at FROM c", "SELECT DISTINCT c.n, c.at FROM c", "SELECT c.at, COUNT(1) AS many FROM c GROUP BY c.at", "SELECT c.at, SUM(c.n) AS sum FROM c GROUP BY c.at"]) {
      const container = await t.container({ partitionKey: v2, throughput: 10_000 });
      await fill(container, 60, (i) => ({ list: [1, 2, 3].slice(0, i % 4) }));
      const path = `/dbs/${container.database.id}/colls/${container.id}`;
      const ranges = async () => (await t.rest.get(`${path}/pkranges`)).json.PartitionKeyRanges;
      const page = (range, token) => t.rest.post(`${path}/docs`, { query }, {
        headers: {
          "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-max-item-count": "5", "x-ms-documentdb-partitionkeyrangeid": range.id,
          ...(range.min !== undefined && { "x-ms-start-epk": range.min, "x-ms-end-epk": range.max }), ...(token && { "x-ms-continuation": token }),
        },
      });
      const expected = (await page({ id: "0" })).json.Documents;
      for (let token = (await page({ id: "0" })).headers["x-ms-continuation"]; token; ) {
        const answer = await page({ id: "0" }, token);
        expected.push(...answer.json.Documents);
        token = answer.headers["x-ms-continuation"];
      }
      const rows = [];
      const open = [{ range: (await ranges())[0] }];
      for (let n = 0; open.length; n++) {
        assert.ok(n < 500, `${query} ends`);
        const one = open.shift();
        const answer = await page({ id: one.range.id, min: one.min, max: one.max }, one.token);
        if (answer.status === 410) {
          const [min, max] = [one.min ?? one.range.minInclusive, one.max ?? one.range.maxExclusive];
          for (const range of await ranges()) {
            if (range.minInclusive < max && range.maxExclusive > min) {
              open.unshift({ range, token: one.token, min: min > range.minInclusive ? min : range.minInclusive, max: max < range.maxExclusive ? max : range.maxExclusive });
            }
          }
          continue;
        }
        assert.equal(answer.status, 200, answer.text);
        rows.push(...answer.json.Documents);
        one.token = answer.headers["x-ms-continuation"];
        if (one.token) open.push(one);
        if (n === 1 || n === 4) await reshape(t, container, "split");
        if (n === 7) await reshape(t, container, "merge");
      }
      const top = query.includes("TOP") ? (list) => ordered(list).slice(0, 40) : ordered;
      assert.deepEqual(top(rows), ordered(expected), query);
    }
  });

  // Queries with as many keys as there are items, each with a model of its rows in key order.
  const numbers = (n) => Array.from({ length: n }, (_, i) => i);
  const manyKeys = [
    ["SELECT DISTINCT VALUE c.at FROM c", (n) => numbers(n)],
    ["SELECT DISTINCT c.at, c.n FROM c WHERE c.n != 3", (n) => numbers(n).filter((i) => i % 6 !== 3).map((i) => ({ at: i, n: i % 6 }))],
    ["SELECT DISTINCT c.n, c.at FROM c", (n) => numbers(n).map((i) => ({ n: i % 6, at: i }))],
    ["SELECT c.at, COUNT(1) AS many FROM c GROUP BY c.at", (n) => numbers(n).map((i) => ({ at: i, many: 1 }))],
    ["SELECT c.at, SUM(c.n) AS sum FROM c WHERE c.n > 0 GROUP BY c.at", (n) => numbers(n).filter((i) => i % 6).map((i) => ({ at: i, sum: i % 6 }))],
    ["SELECT c.at, c.n, MAX(c.id) AS id FROM c GROUP BY c.at, c.n", (n) => numbers(n).map((i) => ({ at: i, n: i % 6, id: `${i}` }))],
    ["SELECT c.odd, COUNT(1) AS many FROM c GROUP BY c.odd", (n) => [{ many: n / 2 }, ...numbers(n).filter((i) => i % 2).map((i) => ({ odd: i, many: 1 }))]],
    ["SELECT DISTINCT VALUE c.at * 2 FROM c", (n) => numbers(n).map((i) => i * 2)],
  ];

  t.it("of many keys come to all of them, over ranges", async () => {
    const n = 1200;
    const container = await t.container({ partitionKey: v2, maxThroughput: 40_000 });
    await fill(container, n, (i) => (i % 2 ? { odd: i } : {}));
    assert.ok((await rangesOf(t, container)).length > 1);
    for (const [query, model] of manyKeys) {
      const expected = model(n).filter((row) => row !== 0); // the SDK (4.10.1) drops 0 when it merges distinct values
      assert.deepEqual(ordered(await all(container.items.query(query, { maxItemCount: 70 }))), ordered(expected), query);
    }
  });

  t.it("of many keys and of OFFSET are good in a new client each, at the price of what they show", async () => {
    const n = 1200;
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    await fill(container, n, (i) => ({ pk: "a", ...(i % 2 ? { odd: i } : {}) }));
    const page = (query, continuation) => t.rest.post(`/dbs/${container.database.id}/colls/${container.id}/docs`, { query }, {
      headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-max-item-count": "50", ...key("a"), ...(continuation && { "x-ms-continuation": continuation }) },
    });
    for (const [query, model] of manyKeys) {
      assert.deepEqual(ordered((await paged(container, query, { partitionKey: "a", maxItemCount: 50 })).flat()), ordered(model(n)), query);
      const rows = [];
      for (let token, first = true; token || first; first = false) {
        const answer = await page(query, token);
        assert.equal(answer.status, 200, answer.text);
        token = answer.headers["x-ms-continuation"];
        const may = query.includes("DISTINCT") && rows.length === model(n).length; // after a full page of distinct values
        assert.ok(answer.json.Documents.length > 0 || (may && !token), query);
        // Reading all items costs 16 RU, all with one of the six values of n 5, and 50 items 3; counting a group of 600 costs 0.6.
        const most = query.includes("* 2") ? 20 : query.includes("c.n, c.at") ? 7 : 3.6;
        assert.ok(Number(answer.headers["x-ms-request-charge"]) < most, `${query}: ${answer.headers["x-ms-request-charge"]} RU`);
        rows.push(...answer.json.Documents);
      }
      if (!query.includes("c.n, c.at")) assert.deepEqual(rows, model(n), query); // in the order of the keys
    }
    for (const [query, expected] of [
      ["SELECT VALUE c.at FROM c ORDER BY c.at OFFSET 1150 LIMIT 100", numbers(n).slice(1150)],
      ["SELECT VALUE c.at FROM c ORDER BY c.at DESC OFFSET 1150 LIMIT 10", numbers(n).reverse().slice(1150, 1160)],
      ["SELECT VALUE c.at FROM c WHERE c.n != 2 ORDER BY c.at OFFSET 900 LIMIT 60", numbers(n).filter((i) => i % 6 !== 2).slice(900, 960)],
      ["SELECT DISTINCT VALUE c.at FROM c OFFSET 1100 LIMIT 70", numbers(n).slice(1100, 1170)],
    ]) {
      assert.deepEqual((await paged(container, query, { partitionKey: "a", maxItemCount: 50 })).flat(), expected, query);
    }
  });

  t.it("go on in the middle of ties, row by row", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    for (let i = 0; i < 24; i++) await container.items.create({ id: `${i}`, pk: "a", at: i, tie: i % 2, same: "x", list: [1, 2] });
    for (const by of ["c.same", "c.same DESC", "c.tie", "c.tie DESC", "c.missing"]) {
      for (const query of [`SELECT VALUE c.at FROM c ORDER BY ${by}`, `SELECT VALUE [c.at, x] FROM c JOIN x IN c.list ORDER BY ${by}`]) {
        const expected = await all(container.items.query(query, { partitionKey: "a" }));
        assert.deepEqual((await paged(container, query, { partitionKey: "a", maxItemCount: 1 })).flat(), expected, query);
        assert.deepEqual((await paged(container, query, { partitionKey: "a", maxItemCount: 5 })).flat(), expected, query);
      }
    }
  });

  t.it("of long order values fit a header field and are exact all the same", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const long = (i) => "ñ".repeat(20_000) + String(i).padStart(3, "0");
    for (let i = 0; i < 12; i++) await container.items.create({ id: `${i}`, pk: "a", at: i, s: long((i * 5) % 12), o: { deep: long(i % 4) }, l: [long(i % 3)] });
    const page = (query, continuation) => t.rest.post(`/dbs/${container.database.id}/colls/${container.id}/docs`, { query }, {
      headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-max-item-count": "1", ...key("a"), ...(continuation && { "x-ms-continuation": continuation }) },
    });
    for (const by of ["c.s", "c.s DESC", "c.o", "c.l DESC", "c.o DESC"]) {
      const query = `SELECT VALUE c.at FROM c ORDER BY ${by}`;
      const expected = await all(container.items.query(query, { partitionKey: "a" }));
      const rows = [];
      for (let continuation; ; ) {
        const answer = await page(query, continuation);
        assert.equal(answer.status, 200, answer.text);
        rows.push(...answer.json.Documents);
        continuation = answer.headers["x-ms-continuation"];
        if (!continuation) break;
        assert.ok(continuation.length < 1500, `${continuation.length} bytes`);
      }
      assert.deepEqual(rows, expected, query);
    }
    // Reads a page, deletes its items and continues: values with the same prefix are not lost if the row at the position is gone.
    const rows = [];
    for (let continuation; ; ) {
      const answer = await page("SELECT VALUE c.at FROM c ORDER BY c.s", continuation);
      for (const at of answer.json.Documents) {
        rows.push(at);
        await container.item(`${at}`, "a").delete();
      }
      continuation = answer.headers["x-ms-continuation"];
      if (!continuation) break;
    }
    assert.deepEqual(rows, Array.from({ length: 12 }, (_, i) => i).sort((a, b) => ((a * 5) % 12) - ((b * 5) % 12)));
  });

  t.it("that are none are refused", async () => {
    const container = await filled(30);
    const path = `/dbs/${container.database.id}/colls/${container.id}/docs`;
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-partitionkeyrangeid": "0" };
    for (const token of ["x", "QPS:", "QPS:;", "QPS:AAAA;", "QPS:BQAAAAA=", "QPS:BQAAAAA=;x", `QPS:${"A".repeat(40_000)};`, "+RID:~x", '{"token":"","range":{}}', "[]", "[1]"]) {
      refused(await t.rest.post(path, { query: plain }, { headers: { ...headers, "x-ms-continuation": token } }), 400);
    }
  });
}, { schemes: ["http"] });

suite("continuations and restarts", (t) => {
  t.it("are good after the server was started again", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
    const flags = [];
    let server = await Server.start({ data, flags });
    const client = () => t.newClient({ endpoint: server.endpoint("http") });
    const first = client();
    const { database } = await first.databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: v2, throughput: 30_000 });
    await fill(container, 60);
    const kinds = [
      ["SELECT VALUE c.at FROM c", { maxItemCount: 7 }],
      ["SELECT VALUE c.at FROM c ORDER BY c.n", { maxItemCount: 10, enableQueryControl: true }],
      ["SELECT VALUE c.at FROM c ORDER BY c.n DESC", { maxItemCount: 1, partitionKey: "key 5" }],
    ];
    const walks = [];
    for (const [query, options] of kinds) walks.push({ query, options, expected: await all(container.items.query(query, { ...options, maxItemCount: 1000 })), rows: [], token: undefined, ended: false });
    first.dispose();
    for (let n = 0; n < 20 && walks.some((walk) => !walk.ended); n++) {
      const now = client();
      for (const walk of walks.filter((each) => !each.ended)) {
        const page = await now.database("d").container("c").items.query(walk.query, { ...walk.options, continuationToken: walk.token }).fetchNext();
        walk.rows.push(...(page.resources ?? []));
        walk.token = page.continuationToken;
        walk.ended = !walk.token;
      }
      now.dispose();
      if (n < 3) {
        await server.stop();
        server = await Server.start({ data, flags });
      }
    }
    for (const { query, rows, expected } of walks) assert.deepEqual(rows, expected, query);
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  });
}, { schemes: ["http"] });

const poster = (t) => (path, query, headers) =>
  t.rest.post(`${path}/docs`, { query }, { headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...headers } });

suite("pages of queries", (t) => {
  const metrics = (text) => Object.fromEntries(text.split(";").map((pair) => [pair.split("=")[0], Number(pair.split("=")[1])]));
  const post = poster(t);

  t.it("tell what was looked at and what came out", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: "a", n: i });
    const path = `${t.databasePath}/colls/${container.id}`;
    const answer = await post(path, "SELECT VALUE c.n FROM c WHERE c.n % 2 = 0", { ...key("a"), "x-ms-documentdb-populatequerymetrics": "True" });
    const told = metrics(answer.headers["x-ms-documentdb-query-metrics"]);
    const all = ["totalExecutionTimeInMs", "queryCompileTimeInMs", "queryLogicalPlanBuildTimeInMs", "queryPhysicalPlanBuildTimeInMs", "queryOptimizationTimeInMs", "VMExecutionTimeInMs", "indexLookupTimeInMs", "documentLoadTimeInMs", "systemFunctionExecuteTimeInMs", "userFunctionExecuteTimeInMs", "retrievedDocumentCount", "retrievedDocumentSize", "outputDocumentCount", "outputDocumentSize", "writeOutputTimeInMs", "indexUtilizationRatio"];
    assert.deepEqual(Object.keys(told).sort(), all.sort());
    assert.equal(told.retrievedDocumentCount, 20);
    assert.equal(told.outputDocumentCount, 10);
    assert.equal(told.outputDocumentSize, JSON.stringify(answer.json.Documents).length - 2);
    assert.ok(told.retrievedDocumentSize > 20 * 20 && told.retrievedDocumentSize < 20 * 200);
    assert.equal(told.indexUtilizationRatio, 0.5);
    assert.ok(told.totalExecutionTimeInMs >= told.VMExecutionTimeInMs && told.VMExecutionTimeInMs >= told.documentLoadTimeInMs + told.writeOutputTimeInMs - 0.02);
    assert.equal(answer.headers["x-ms-item-count"], "10");
    assert.deepEqual(JSON.parse(answer.headers["x-ms-cosmos-query-execution-info"]), { reverseRidEnabled: false, reverseIndexScan: false });
    const without = await post(path, "SELECT * FROM c", key("a"));
    assert.equal(without.headers["x-ms-documentdb-query-metrics"], undefined);
    assert.equal(without.headers["x-ms-cosmos-index-utilization"], undefined);
  });

  t.it("tell it through the SDK, for each range", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 30_000 });
    await fill(container, 60);
    const { queryMetrics, resources, requestCharge } = await container.items.query("SELECT VALUE c.at FROM c WHERE c.at % 3 = 0 ORDER BY c.at", { populateQueryMetrics: true, maxItemCount: 4 }).fetchAll();
    assert.equal(resources.length, 20);
    assert.deepEqual(Object.keys(queryMetrics).sort(), ["0", "1", "2"]);
    const sum = (name) => Object.values(queryMetrics).reduce((total, one) => total + one[name], 0);
    assert.equal(sum("outputDocumentCount"), 20);
    assert.ok(sum("retrievedDocumentCount") >= 20);
    assert.ok(requestCharge > 3 * 2);
  });

  t.it("tell which indexes were used, in both forms", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: "a", n: i });
    const path = `${t.databasePath}/colls/${container.id}`;
    const old = await post(path, "SELECT * FROM c WHERE c.n = 3", { ...key("a"), "x-ms-cosmos-populateindexmetrics": "True" });
    const decoded = JSON.parse(Buffer.from(old.headers["x-ms-cosmos-index-utilization"], "base64").toString("utf8"));
    assert.deepEqual(Object.keys(decoded), ["UtilizedSingleIndexes", "PotentialSingleIndexes", "UtilizedCompositeIndexes", "PotentialCompositeIndexes"]);
    for (const list of Object.values(decoded)) assert.ok(Array.isArray(list));
    const { indexMetrics } = await container.items.query("SELECT * FROM c WHERE c.n = 3", { partitionKey: "a", populateIndexMetrics: true }).fetchNext();
    const told = JSON.parse(indexMetrics);
    assert.deepEqual(Object.keys(told), ["UtilizedIndexes", "PotentialIndexes"]);
    assert.ok(Array.isArray(told.UtilizedIndexes.SingleIndexes) && Array.isArray(told.PotentialIndexes.SingleIndexes));
    const nothing = await post(path, "SELECT * FROM c WHERE c.n = 99", { ...key("a"), "x-ms-cosmos-populateindexmetrics": "True" });
    assert.deepEqual(nothing.json.Documents, []);
    const empty = JSON.parse(Buffer.from(nothing.headers["x-ms-cosmos-index-utilization"], "base64").toString("utf8"));
    assert.deepEqual(empty.UtilizedSingleIndexes.map(({ IndexSpec }) => IndexSpec), ["/pk/?", "/n/?"], "of pages without rows too");
    assert.deepEqual(empty.UtilizedSingleIndexes[0], { FilterExpression: "", FilterPreciseSet: true, IndexSpec: "/pk/?", IndexPreciseSet: true, IndexImpactScore: "High" });
  });

  t.it("end before 4 MB", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    for (let i = 0; i < 10; i++) await container.items.create({ id: `${i}`, pk: "a", n: i, text: "x".repeat(1_000_000) });
    const path = `${t.databasePath}/colls/${container.id}`;
    for (const query of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n DESC", "SELECT VALUE c.text FROM c"]) {
      const sizes = [];
      for (let continuation; ; ) {
        const answer = await post(path, query, { ...key("a"), ...(continuation && { "x-ms-continuation": continuation }) });
        assert.equal(answer.status, 200, answer.text.slice(0, 200));
        assert.ok(answer.bytes.length <= 4 * 1024 * 1024 + 1000, `${answer.bytes.length} bytes`);
        sizes.push(answer.json.Documents.length);
        continuation = answer.headers["x-ms-continuation"];
        if (!continuation) break;
      }
      assert.deepEqual(sizes, [4, 4, 2], query);
    }
    const numbers = (await all(container.items.query("SELECT c.n, c.text FROM c ORDER BY c.n", { maxItemCount: 100 }))).map((row) => row.n);
    assert.deepEqual(numbers, Array.from({ length: 10 }, (_, i) => i));
    const [made] = await all(container.items.query("SELECT VALUE CONCAT(c.text, c.text, c.text, c.text, c.text) FROM c WHERE c.n = 1", { partitionKey: "a" }));
    assert.equal(made.length, 5_000_000, "one row that is larger still comes");
  });
}, { schemes: ["http"] });

const pageMs = process.env.TESELA_SANITIZED ? 3000 : 1000; // an item must fit into a page

suite("pages that run out of time", (t) => {
  const post = poster(t);

  // Aggregates that take longer than a page, here of one second. In one partition: pages without rows, whose continuations carry the partial
  // result. Over ranges: partial results that the SDK adds up. These pages are never empty, since the SDK would take that for the end.
  t.it("of aggregates and groups are as many as it takes", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 20_000 });
    const list = Array.from({ length: 700 }, (_, i) => i);
    const slowly = "FROM c JOIN s IN (SELECT VALUE [COUNT(1)] FROM x IN c.list JOIN y IN c.list WHERE x = y)"; // takes tens of milliseconds for each s, which is 700
    const query = `SELECT c.n, COUNT(1) AS many, SUM(s) AS sum, MAX(c.at) AS last ${slowly} GROUP BY c.n`;
    // Creates as many items as take three pages on this machine.
    const sample = await t.container({ partitionKey: v2 });
    await sample.items.create({ id: "0", pk: "a", n: 0, at: 0, list });
    const took = [];
    for (let i = 0; i < 6; i++) {
      const begun = performance.now();
      await all(sample.items.query(query, { partitionKey: "a" }));
      took.push(performance.now() - begun);
    }
    const n = Math.max(40, Math.min(1000, Math.ceil((8 / 7) * ((3 * pageMs) / Math.min(...took)))));
    await fill(container, n, (i) => ({ pk: i % 8 ? "a" : "b", n: i % 3, list }));
    const ofOnePartition = async () => {
      const pages = [];
      for (let continuation; pages.length < 50; ) {
        const answer = await post(`${t.databasePath}/colls/${container.id}`, query, { ...key("a"), ...(continuation && { "x-ms-continuation": continuation }) });
        assert.equal(answer.status, 200, answer.text.slice(0, 200));
        pages.push(answer.json.Documents);
        continuation = answer.headers["x-ms-continuation"];
        if (!continuation) break;
      }
      return pages;
    };
    const expected = (numbers) =>
      [0, 1, 2].map((r) => numbers.filter((i) => i % 3 === r)).map((group, r) => ({ n: r, many: group.length, sum: 700 * group.length, last: Math.max(...group) }));
    const numbers = Array.from({ length: n }, (_, i) => i);
    const asked = ofOnePartition(); // started now, so that both run concurrently
    const groups = await all(container.items.query(query));
    const pages = await asked;
    assert.ok(pages.length > 1, "it took longer than a page");
    assert.deepEqual(pages.flat(), expected(numbers.filter((i) => i % 8)));
    assert.deepEqual(groups.sort((a, b) => a.n - b.n), expected(numbers));
  });
}, { schemes: ["http"], flags: ["--page-ms", `${pageMs}`] });
