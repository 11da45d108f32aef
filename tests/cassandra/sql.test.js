// sql.test.js — tables through the SQL API: rows read, queried, written, patched and deleted there are the same rows here.

import { after } from "node:test";
import { Rest } from "../sdk/server.js";
import { shown } from "./domains.js";
import { assert, codes, fails, suite } from "./harness.js";

const pk = (...values) => ({ headers: { "x-ms-documentdb-partitionkey": JSON.stringify(values) } });

suite("tables through SQL", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());
  const docsOf = (table) => `/dbs/${table.split(".")[0]}/colls/${table.split(".")[1]}/docs`;
  const refused = (answer, status, text) => {
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.json.message, text);
  };

  t.it("are JSON, addressed by their clustering columns", async () => {
    const table = await t.table("(p text, c int, v double, tags set<text>, PRIMARY KEY (p, c))");
    await t.run(`INSERT INTO ${table} (p, c, v, tags) VALUES ('a', 1, 2.5, {'x', 'y'})`);
    const [item] = (await sql().get(docsOf(table))).json.Documents;
    assert.deepEqual([item.p, item.c, item.v, item.tags], ["a", 1, 2.5, ["x", "y"]]);
    assert.equal((await sql().get(`${docsOf(table)}/1`, pk("a"))).json.v, 2.5);
    assert.equal((await sql().get(`${docsOf(table)}/2`, pk("a"))).status, 404);
    refused(await sql().get(`${docsOf(table)}/x`, pk("a")), 400, /is no id of a row/);
  });

  t.it("get rows by create, upsert and replace", async () => {
    const table = await t.table("(p text, c int, v double, tags set<text>, m map<text, int>, l list<int>, PRIMARY KEY (p, c))", "WITH default_time_to_live = 5000");
    const docs = docsOf(table);
    const made = await sql().post(docs, { p: "a", c: 1, v: 1.5, tags: ["y", "x", "y"], m: { k: 1 }, l: [3, 1] }, pk("a"));
    assert.equal(made.status, 201, made.text);
    const read = async () => (await t.rows(`SELECT p, c, v, tags, m, l, writetime(v) AS w, ttl(v) AS t FROM ${table} WHERE p = 'a' AND c = 1`))[0];
    const row = await read();
    assert.deepEqual([row.p, row.c, row.v, row.tags, row.m, row.l], ["a", 1, 1.5, ["x", "y"], { k: 1 }, [3, 1]]);
    assert.ok(row.t > 4900 && row.t <= 5000, `ttl ${row.t}`);
    assert.ok(Math.abs(row.w.toNumber() / 1000 - Date.now()) < 60000);
    assert.equal((await sql().post(docs, { p: "a", c: 1 }, pk("a"))).status, 409);
    const replaced = await sql().put(`${docs}/1`, { id: "1", p: "a", c: 1, v: 2, _cql: { t: 1e18 } }, pk("a"));
    assert.equal(replaced.status, 200, replaced.text);
    const after = await read();
    assert.deepEqual([after.v, after.tags, after.m, after.l], [2, null, null, null]);
    const upserted = await sql().post(docs, { p: "a", c: 2, v: 9, id: "mine" }, { headers: { ...pk("a").headers, "x-ms-documentdb-is-upsert": "true" } });
    assert.equal(upserted.status, 201, upserted.text);
    assert.deepEqual((await t.rows(`SELECT c, v FROM ${table} WHERE p = 'a'`)), [{ c: 1, v: 2 }, { c: 2, v: 9 }]);
  });

  t.it("keep CQL's rules of timestamps after a write of SQL", async () => {
    const table = await t.table("(p int PRIMARY KEY, v int, w int)");
    await t.run(`INSERT INTO ${table} (p, v) VALUES (1, 1)`);
    assert.equal((await sql().put(`${docsOf(table)}/1`, { p: 1, v: 2 }, pk(1))).status, 200);
    await t.run(`UPDATE ${table} USING TIMESTAMP 1000 SET v = 3, w = 3 WHERE p = 1`);
    assert.deepEqual(await t.rows(`SELECT v, w FROM ${table}`), [{ v: 2, w: null }], "what is older than the item stays hidden");
    await t.run(`UPDATE ${table} SET w = 4 WHERE p = 1 IF v = 2`);
    assert.deepEqual(await t.rows(`SELECT v, w FROM ${table}`), [{ v: 2, w: 4 }]);
    assert.equal((await sql().patch(`${docsOf(table)}/1`, [{ op: "incr", path: "/v", value: 5 }], pk(1))).status, 200);
    assert.deepEqual(await t.rows(`SELECT v, w FROM ${table}`), [{ v: 7, w: 4 }]);
    assert.equal((await sql().delete(`${docsOf(table)}/1`, pk(1))).status, 204);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    await t.run(`INSERT INTO ${table} (p, v) VALUES (1, 1)`);
    assert.deepEqual(await t.rows(`SELECT v, w FROM ${table}`), [{ v: 1, w: null }]);
  });

  t.it("have values of every type that JSON can give", async () => {
    const columns = "a ascii, b blob, c boolean, d date, e decimal, f float, g inet, h smallint, i time, j timestamp, k timeuuid, l uuid, m varint, n bigint, o tuple<int, text>, q frozen<list<frozen<map<int, text>>>>";
    const table = await t.table(`(p uuid, ${columns}, PRIMARY KEY (p, n, a)) WITH CLUSTERING ORDER BY (n DESC, a ASC)`);
    const p = "550e8400-e29b-41d4-a716-446655440000";
    const item = {
      p, a: "x", b: "0xcafe", c: true, d: "2024-02-29", e: "1.10", f: 0.5, g: "127.0.0.1", h: -5, i: "01:02:03", j: "2024-01-01T00:00:00Z", k: "50554d6e-29bb-11e5-b345-feff819cdc9f",
      l: p, m: 12, n: 7, o: [1, "t"], q: [{ 1: "a" }],
    };
    const made = await sql().post(docsOf(table), item, pk(p));
    assert.equal(made.status, 201, made.text);
    const [row] = await t.rows(`SELECT * FROM ${table} WHERE p = ${p} AND n = 7 AND a = 'x'`);
    const texts = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, shown(value)]));
    assert.equal(texts.b, "0xcafe");
    assert.deepEqual([texts.d, texts.e, texts.f, texts.g, texts.h, texts.m, texts.n, texts.l], ["2024-02-29", "1.10", "0.5", "127.0.0.1", "-5", "12", "7", p]);
    assert.equal(row.j.toISOString(), "2024-01-01T00:00:00.000Z");
    assert.deepEqual([row.o.get(1), row.q], ["t", [{ 1: "a" }]]);
    assert.equal((await sql().get(`${docsOf(table)}/${encodeURIComponent('[7,"x"]')}`, pk(p))).json.h, -5);
    refused(await sql().get(`${docsOf(table)}/7`, pk(p)), 400, /is no id of a row/);
  });

  t.it("refuse items that are no rows", async () => {
    const table = await t.table("(p int, c text, s int static, v int, ts set<int>, l list<int>, PRIMARY KEY (p, c))");
    const docs = docsOf(table);
    const wrong = async (item, text) => refused(await sql().post(docs, { p: 1, c: "a", ...item }, pk(1)), 400, text);
    await wrong({ x: 1 }, /it has no column 'x'/);
    await wrong({ c: null }, /must have the key column 'c'/);
    await wrong({ v: "a" }, /column v: .*int/);
    await wrong({ v: 1.5 }, /column v: /);
    await wrong({ v: 3000000000 }, /column v: /);
    await wrong({ ts: [1, null] }, /column ts: /);
    await wrong({ l: { a: 1 } }, /column l: /);
    await wrong({ s: 1 }, /static columns are written by CQL only/);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    const counters = await t.table("(p int PRIMARY KEY, n counter)");
    refused(await sql().post(docsOf(counters), { p: 1, n: 1 }, pk(1)), 400, /counters are changed by CQL only/);
    await t.run(`CREATE TYPE ${t.keyspace}.pair (a int)`);
    const typed = await t.table("(p int PRIMARY KEY, u frozen<pair>)");
    refused(await sql().post(docsOf(typed), { p: 1 }, pk(1)), 400, /has user types/);
    await fails(t.run(`INSERT INTO ${typed} (p, u) VALUES (1, {b: 1})`), codes.invalid);
  });

  t.it("may change while SQL writes them", async () => {
    const table = await t.table("(p int PRIMARY KEY, a int, b int)");
    await t.run(`INSERT INTO ${table} (p, a, b) VALUES (1, 1, 1)`);
    await t.run(`ALTER TABLE ${table} DROP b`);
    assert.equal((await sql().patch(`${docsOf(table)}/1`, [{ op: "set", path: "/a", value: 5 }], pk(1))).status, 200, "a value of a dropped column is no obstacle");
    await t.run(`ALTER TABLE ${table} ADD b int`);
    assert.deepEqual(await t.rows(`SELECT a, b FROM ${table}`), [{ a: 5, b: null }]);
    assert.equal((await sql().put(`${docsOf(table)}/1`, { p: 1, a: 1, b: 6 }, pk(1))).status, 200);
    assert.deepEqual(await t.rows(`SELECT a, b FROM ${table}`), [{ a: 1, b: 6 }]);
  });

  t.it("take batches of SQL, whole or not at all", async () => {
    const table = await t.table("(p text, c int, v int, PRIMARY KEY (p, c))");
    const batch = (operations) =>
      sql().post(docsOf(table), operations, { headers: { ...pk("a").headers, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-cosmos-batch-continue-on-error": "False" } });
    const create = (c, v) => ({ operationType: "Create", resourceBody: { p: "a", c, v } });
    const done = await batch([create(1, 1), create(2, 2), { operationType: "Replace", id: "1", resourceBody: { p: "a", c: 1, v: 5 } }]);
    assert.deepEqual(done.json.map((one) => one.statusCode), [201, 201, 200], done.text);
    const failed = await batch([create(3, 3), { operationType: "Create", resourceBody: { p: "a", c: 4, x: 1 } }]);
    assert.deepEqual(failed.json.map((one) => one.statusCode), [424, 400], failed.text);
    assert.deepEqual(await t.rows(`SELECT c, v FROM ${table} WHERE p = 'a'`), [{ c: 1, v: 5 }, { c: 2, v: 2 }]);
  });

  t.it("are indexed and followed like rows of CQL", async () => {
    const table = await t.table("(p int PRIMARY KEY, v text)");
    await t.run(`CREATE INDEX ON ${table} (v)`);
    for (let p = 0; p < 12; p++) assert.equal((await sql().post(docsOf(table), { p, v: `v${p % 3}` }, pk(p))).status, 201);
    assert.deepEqual((await t.rows(`SELECT p FROM ${table} WHERE v = 'v1'`)).map((row) => row.p).sort((a, b) => a - b), [1, 4, 7, 10]);
    const changes = await t.rows(`SELECT p FROM ${table} WHERE COSMOS_CHANGEFEED_START_TIME() = '2020-01-01'`);
    assert.equal(changes.length, 12);
  });
});
