// Explain: how a query is run and why, by POST /_tesela/explain and in a terminal; index metrics and query metrics from the same data.

import { assert, suite, key, run } from "./harness.js";

const bare = { sign: false };
const post = (t, path, body, options) => t.rest.post(`/_tesela/${path}`, body, { ...bare, ...options });
const names = (t, container) => ({ database: t.database.id, container: container.id });

// Checks an error of the admin API: status and message.
function wrong(answer, status, text) {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.json), ["code", "message"]);
  if (text) assert.match(answer.json.message, text);
}

async function fill(container, n) {
  for (let i = 0; i < n; i++) await container.items.create({ id: `i${i}`, pk: `p${i}`, s: "x".repeat(i) });
}

suite("explain", (t) => {
  const explained = async (container, query, more = {}) => {
    const answer = await post(t, "explain", { ...names(t, container), query, ...more });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };

  t.it("explains which way a query goes, and what it costs", async () => {
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }] };
    const container = await t.container({ indexingPolicy });
    for (let i = 0; i < 700; i++) await container.items.create({ id: `${i}`, pk: "a", n: i, third: i % 3, note: "x" });
    const found = await explained(container, "SELECT * FROM c WHERE c.n >= @n AND c.third = 0", { parameters: [{ name: "@n", value: 690 }] });
    assert.equal(found.rows, 4);
    assert.equal(found.more, false);
    assert.equal(found.partitionKey, null);
    assert.equal(found.parts.length, 1);
    const [part] = found.parts;
    assert.equal(part.way, "index");
    assert.equal(part.condition, "c.n >= @n");
    assert.equal(part.items, 700);
    assert.equal(part.itemsLoaded, 4);
    assert.equal(part.itemsMatched, 4);
    assert.equal(part.itemsPassed, 6);
    assert.ok(part.indexEntries >= 10 && part.indexEntries < 400, `${part.indexEntries}`);
    assert.deepEqual(found.conditions, [
      { text: "c.n >= @n", answered: true, exactly: true, path: "/n/?" },
      { text: "c.third = 0", answered: true, exactly: true, path: "/third/?" },
    ]);
    assert.deepEqual(found.indexes.utilized.map(({ paths }) => paths), [["/n/?"], ["/third/?"]]);
    assert.match(found.words.join("\n"), /the index finds what has c.n >= @n/);
    const same = await container.items.query({ query: "SELECT * FROM c WHERE c.n >= 690 AND c.third = 0" }, { partitionKey: "a" }).fetchAll();
    assert.equal(same.resources.length, 4);
    assert.equal(found.requestCharge, same.requestCharge);

    const scanned = await explained(container, "SELECT * FROM c WHERE c.note = 'y' AND UPPER(c.id) != 'A'");
    assert.equal(scanned.parts[0].way, "all");
    assert.equal(scanned.parts[0].itemsLoaded, 700);
    assert.equal(scanned.rows, 0);
    assert.match(scanned.conditions[0].why, /leaves out \/note\/\?/);
    assert.deepEqual(scanned.conditions.map(({ reason }) => reason), [{ id: "left-out", name: "/note/?" }, { id: "not-equal" }]);
    assert.deepEqual(scanned.parts[0].reason, { id: "all-unanswered" });
    assert.deepEqual(scanned.adviceReasons[0], { id: "include", name: "/note/?" });
    assert.ok(scanned.advice.includes("include /note/? in the indexing policy"));

    const ordered = await explained(container, "SELECT TOP 5 * FROM c ORDER BY c.n DESC");
    assert.equal(ordered.parts[0].way, "order");
    assert.equal(ordered.parts[0].order, "/n DESC");
    assert.ok(ordered.itemsRead < 10);
    const keys = await explained(container, "SELECT c.n, SUM(c.third) AS sum FROM c GROUP BY c.n", { maxItemCount: 10 });
    assert.equal(keys.parts[0].way, "keys");
    assert.equal(keys.parts[0].path, "/n/?");
    assert.ok(keys.rows === 10 && keys.more && keys.itemsRead <= 11);
    assert.match(keys.words.join("\n"), /the index \/n\/\? is walked for its values/);
    const counted = await explained(container, "SELECT VALUE COUNT(1) FROM c WHERE c.third = 0");
    assert.equal(counted.parts[0].way, "entries");
    assert.equal(counted.itemsRead, 0);
    assert.equal(counted.parts[0].itemsMatched, 234);
    const paged = await explained(container, "SELECT * FROM c", { maxItemCount: 10 });
    assert.equal(paged.rows, 10);
    assert.equal(paged.more, true);
  });

  // The estimate reads no item and charges nothing; what the page then costs is the judge.
  t.it("estimates what a query costs before it is run", async () => {
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }] };
    const container = await t.container({ indexingPolicy, throughput: 2000 });
    for (let i = 0; i < 300; i++) await container.items.create({ id: `${i}`, pk: `p${i % 40}`, n: i, third: i % 3, note: "x", text: "x".repeat(1500) });
    const estimated = (query, more = {}) => explained(container, query, { estimate: true, maxItemCount: 1000, ...more });
    const close = (a, b, part, about) => assert.ok(Math.abs(a - b) <= part * b + 0.02, `${about}: estimated ${a}, was ${b}`);
    for (const [query, part, more] of [
      ["SELECT * FROM c", 0.02],
      ["SELECT * FROM c WHERE c.n >= 290", 0.02],
      ["SELECT * FROM c WHERE c.n < 150 AND c.third = 1", 0.05],
      ["SELECT c.id FROM c WHERE c.third IN (0, 1)", 0.02],
      ["SELECT TOP 5 * FROM c ORDER BY c.n DESC", 0.02],
      ["SELECT VALUE COUNT(1) FROM c WHERE c.third = 0", 0.001],
      ["SELECT VALUE COUNT(1) FROM c", 0.001],
      ["SELECT c.note, COUNT(1) AS n FROM c GROUP BY c.note", 0.02],
      ["SELECT * FROM c WHERE c.note = 'x'", 0.02],
      ["SELECT 1", 0.001],
      ["SELECT * FROM c WHERE c.n >= 0", 0.02, { maxItemCount: 20 }],
    ]) {
      const before = await estimated(query, more);
      const after = await explained(container, query, { maxItemCount: 1000, ...more });
      close(before.first.requestCharge, after.requestCharge, part, query);
      const parts = ["rangesCharge", "itemsCharge", "entriesCharge", "rowsCharge", "searchCharge", "functionsCharge"].reduce((sum, name) => sum + before.first[name], 0);
      assert.ok(Math.abs(parts - before.first.requestCharge) < 0.05, `${parts}`);
    }
    const exact = await estimated("SELECT * FROM c WHERE c.n >= 290");
    assert.deepEqual([exact.ranges, exact.items, exact.matches, exact.exact, exact.rest], [2, 300, 10, true, false]);
    const two = await estimated("SELECT * FROM c WHERE c.n < 150 AND c.third = 1");
    assert.deepEqual([two.matches > 40 && two.matches < 60, two.exact], [true, false]);
    const rest = await estimated("SELECT * FROM c WHERE c.n >= 290 AND UPPER(c.note) = 'X'");
    assert.deepEqual([rest.matches, rest.exact, rest.rest], [10, false, true]);
    const pages = await estimated("SELECT * FROM c", { maxItemCount: 50 });
    assert.equal(pages.all.pages, 6);
    assert.ok(pages.all.requestCharge > 5 * pages.first.requestCharge);
    let paged = 0;
    for (const iterator = container.items.query("SELECT * FROM c", { maxItemCount: 50 }); iterator.hasMoreResults(); ) paged += (await iterator.fetchNext()).requestCharge;
    close(pages.all.requestCharge, paged, 0.1, "all pages");
    const one = await estimated("SELECT * FROM c WHERE c.pk = 'p7'");
    assert.equal(one.ranges, 1);
    close(one.first.requestCharge, (await explained(container, "SELECT * FROM c WHERE c.pk = 'p7'")).requestCharge, 0.05, "one partition");
    assert.deepEqual((await estimated("SELECT c.id, n FROM c JOIN n IN c.list")).joined, true);
    assert.match((await estimated("SELEC 1")).problem, /Syntax error/);
    assert.match((await estimated("SELECT * FROM c ORDER BY c.note")).problem, /excluded|index/);
    wrong(await post(t, "explain", { ...names(t, container), query: 5, estimate: true }), 400);
    const requests = async () => {
      await new Promise((done) => setTimeout(done, 2100)); // the history has whole seconds
      const history = (await t.rest.get(`/_tesela/history?database=${t.database.id}&container=${container.id}&seconds=300`, bare)).json;
      return history.requests.reduce((sum, n) => sum + n, 0);
    };
    const before = await requests();
    for (let i = 0; i < 10; i++) await estimated("SELECT * FROM c");
    assert.deepEqual([await requests(), before > 300], [before, true]);
  });

  t.it("explains a query of one partition and of several ranges", async () => {
    const container = await t.container({ throughput: 3000 });
    await fill(container, 30);
    const all = await explained(container, "SELECT * FROM c WHERE c.s != ''");
    assert.equal(all.parts.length, 3);
    assert.equal(all.parts.reduce((sum, part) => sum + part.itemsLoaded, 0), 30);
    assert.match(all.advice.join(), /name a partition key/);
    assert.ok(all.requestCharge > 3 * 2.25);
    for (const more of [{ partitionKey: "p3" }, { partitionKey: ["p3"] }]) {
      const one = await explained(container, "SELECT * FROM c", more);
      assert.deepEqual(one.partitionKey, ["p3"]);
      assert.equal(one.rows, 1);
      assert.ok(one.requestCharge < 2.3);
    }
    const pinned = await explained(container, "SELECT * FROM c WHERE c.pk = 'p4'");
    assert.deepEqual(pinned.partitionKey, ["p4"]);
    assert.equal(pinned.rows, 1);
    assert.match(pinned.words.join("\n"), /it names the partition/);
    assert.equal(pinned.conditions[0].namesPartition, true);
  });

  t.it("refuses to explain what is no query", async () => {
    const container = await t.container();
    const given = names(t, container);
    wrong(await post(t, "explain", { ...given, query: "SELEC 1" }), 400, /Syntax error/);
    wrong(await post(t, "explain", { ...given }), 400, /'query' must be given/);
    wrong(await post(t, "explain", { ...given, query: 5 }), 400);
    wrong(await post(t, "explain", { ...given, query: "SELECT 1", parameters: 3 }), 400);
    wrong(await post(t, "explain", { ...given, query: "SELECT 1", parameters: [{ name: "x", value: 1 }] }), 400, /must begin with '@'/);
    wrong(await post(t, "explain", { ...given, query: "SELECT 1", parameters: [{ name: "@x" }, { name: "@x" }] }), 400, /more than once/);
    wrong(await post(t, "explain", { ...given, query: "SELECT * FROM c", partitionKey: ["a", "b"] }), 400);
    wrong(await post(t, "explain", { ...given, query: "SELECT * FROM c", partitionKey: [[1]] }), 400);
    wrong(await post(t, "explain", { ...given, query: "SELECT 1", maxItemCount: 0 }), 400);
    wrong(await post(t, "explain", { ...given, query: "SELECT 1", more: 0 }), 400, /no property 'more'/);
    wrong(await post(t, "explain", { ...given, container: "none", query: "SELECT 1" }), 404);
    wrong(await t.rest.get("/_tesela/explain", bare), 405);
    const grouped = await explained(container, "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", { documents: true });
    assert.equal(grouped.documents.length, grouped.rows);
    assert.equal((await explained(container, "SELECT * FROM c")).documents, undefined);
    assert.equal((await explained(container, "SELECT 1")).rows, 1);
  });

  t.it("explains in a terminal", async () => {
    const container = await t.container();
    await fill(container, 20);
    const explain = (...args) => run(["explain", `${t.database.id}/${container.id}`, ...args, "--endpoint", `http://localhost:${t.server.port}`]);
    const told = await explain("SELECT * FROM c WHERE c.id = @id AND LENGTH(c.s) > @n", "--parameter", "@id=i3", "--parameter=@n=1");
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stdout, /^1 row for 2.26 RU in [\d.]+ ms\n/);
    assert.match(told.stdout, /  LENGTH\(c.s\) > @n: asked of each item, since LENGTH is computed from each item/);
    const one = await explain("SELECT * FROM c", "--partition-key", "p3", "--json");
    assert.deepEqual(JSON.parse(one.stdout).partitionKey, ["p3"]);
    const escape = await explain("SELECT * FROM c WHERE c.id = '\u001b[31m'");
    assert.ok(!escape.stdout.includes("\u001b"), "nothing that steers the terminal");
    const bad = await explain("SELEC");
    assert.equal(bad.code, 1);
    assert.equal(bad.stderr, "Syntax error, incorrect syntax near 'SELEC'.\nSELEC\n^^^^^\n");
    assert.equal((await explain("SELECT *\nFROM c WHERE = 1")).stderr, "Syntax error, incorrect syntax near '='.\nFROM c WHERE = 1\n             ^\n");
    assert.equal((await explain("SELECT 1", "--parameter", "x=1")).code, 2);
    assert.equal((await run(["explain", "one"])).code, 2);
    const help = await run(["explain", "--help"]);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /usage: tesela explain DATABASE\/CONTAINER/);
  });

  // ---- metrics ----

  const asked = async (path, query, headers) => {
    const answer = await t.rest.post(`${path}/docs`, { query }, { headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...key("a"), ...headers } });
    assert.equal(answer.status, 200, answer.text);
    return answer.headers;
  };

  t.it("tells which indexes a query uses and which would help", async () => {
    const compositeIndexes = [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]];
    const path = await t.containerPath({ indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }], compositeIndexes } });
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a", a: 1, b: 2, note: "x", name: "n", tags: ["t"] }, { headers: key("a") });
    const metrics = async (query) => {
      const headers = await asked(path, query, { "x-ms-cosmos-populateindexmetrics": "True" });
      return JSON.parse(Buffer.from(headers["x-ms-cosmos-index-utilization"], "base64").toString("utf8"));
    };
    const single = (spec, filter, precise = true, score = "High") => ({ FilterExpression: filter, FilterPreciseSet: precise, IndexSpec: spec, IndexPreciseSet: precise, IndexImpactScore: score });
    const composite = (...specs) => ({ IndexSpecs: specs, IndexPreciseSet: true, IndexImpactScore: "High" });
    assert.deepEqual(await metrics("SELECT * FROM c WHERE c.name = 'n' AND c.note = 'x'"), {
      UtilizedSingleIndexes: [single("/pk/?", ""), single("/name/?", '(ROOT.name = "n")')], // the first by the partition key of the request
      PotentialSingleIndexes: [single("/note/?", '(ROOT.note = "x")')],
      UtilizedCompositeIndexes: [],
      PotentialCompositeIndexes: [composite("/name ASC", "/note ASC")],
    });
    assert.deepEqual((await metrics("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't')")).UtilizedSingleIndexes.map(({ IndexSpec }) => IndexSpec), ["/pk/?", "/tags/[]/?"]);
    assert.equal((await metrics("SELECT * FROM c WHERE IS_DEFINED(c.name)")).UtilizedSingleIndexes[1].IndexImpactScore, "Low");
    assert.deepEqual((await metrics("SELECT * FROM c ORDER BY c.a DESC, c.b")).UtilizedCompositeIndexes, [composite("/a ASC", "/b DESC")]);
    const headers = await asked(path, "SELECT * FROM c WHERE c.a = 1 AND c.b > 1", { "x-ms-cosmos-populateindexmetrics-v2": "True" });
    assert.deepEqual(JSON.parse(decodeURIComponent(headers["x-ms-cosmos-index-utilization"])), {
      UtilizedIndexes: { SingleIndexes: [{ IndexSpec: "/a/?" }, { IndexSpec: "/b/?" }], CompositeIndexes: [{ IndexSpecs: ["/a ASC", "/b DESC"] }] },
      PotentialIndexes: { SingleIndexes: [] },
    });
  });

  t.it("tells what a query loaded", async () => {
    const path = await t.containerPath();
    for (let i = 0; i < 700; i++) await t.rest.post(`${path}/docs`, { id: `${i}`, pk: "a", n: i, s: "x" }, { headers: key("a") });
    const metrics = async (query) => {
      const text = (await asked(path, query, { "x-ms-documentdb-populatequerymetrics": "True" }))["x-ms-documentdb-query-metrics"];
      return Object.fromEntries(text.split(";").map((pair) => pair.split("=")).map(([name, value]) => [name, Number(value)]));
    };
    const one = await metrics("SELECT * FROM c WHERE c.n = 5");
    assert.equal(one.retrievedDocumentCount, 1);
    assert.equal(one.outputDocumentCount, 1);
    assert.equal(one.indexUtilizationRatio, 1);
    const scan = await metrics("SELECT * FROM c WHERE c.n < 100 AND UPPER(c.id) = '7'");
    assert.equal(scan.retrievedDocumentCount, 100);
    assert.equal(scan.indexUtilizationRatio, 0.01);
    assert.ok(scan.documentLoadTimeInMs > 0 && scan.documentLoadTimeInMs <= scan.totalExecutionTimeInMs);
    assert.ok(scan.indexLookupTimeInMs > 0 && scan.indexLookupTimeInMs <= scan.totalExecutionTimeInMs);
    assert.equal((await metrics("SELECT VALUE COUNT(1) FROM c WHERE c.n < 100")).retrievedDocumentCount, 0);
  });
}, { flags: ["--partition-max-throughput", "1000"] });
