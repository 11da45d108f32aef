// Requests of a client with a read token, on a server with 2 GB of address space: no request ends the process, however large a value it
// tries to make, alone or a hundred at a time.

import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { stopwatch } from "../sdk/processes.js";
import { Rest, Server, binary } from "../sdk/server.js";

const sanitized = /asan|tsan/.test(binary);
const under = sanitized ? [] : ["prlimit", "--as=2147483648"]; // sanitizers reserve terabytes of address space
const rssMax = (sanitized ? 4 : 1) * 1024 ** 3;
const worstMs = sanitized ? 60_000 : 25_000; // a page has five seconds, yields for ten at most, and an item takes a third of a second; the machine may be busy
const key = { "x-ms-documentdb-partitionkey": '["a"]' };
const list = (n, f) => Array.from({ length: n }, (_, i) => f(i)).join(",");

const documents = [
  { id: "big", s: "x".repeat(1_900_000) },
  { id: "middle", s: "x".repeat(40_000), n: Array.from({ length: 1000 }, (_, i) => i) },
  { id: "numbers", n: Array.from({ length: 200_000 }, (_, i) => i) },
  { id: "properties", p: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`p${i}`, i])) },
  { id: "holder", n: Array.from({ length: 20_000 }, (_, i) => i), s: "y".repeat(1_000_000) },
  ...Array.from({ length: 60 }, (_, i) => ({ id: `each${i}`, each: true, i, s: String(i).repeat(100_000 / String(i).length) })),
];

const big = "FROM c WHERE c.id = 'big'";
const middle = "FROM c WHERE c.id = 'middle'";
const numbers = "FROM c WHERE c.id = 'numbers'";
const holder = "FROM c WHERE c.id = 'holder'";

// Each would take gigabytes, or make a value beyond every limit: it gets an error or a page, and the process survives.
const attacks = {
  "an array of 5,000 times the item": `SELECT VALUE [${list(5000, () => "c")}] ${big}`,
  "an array of 200,000 times the item": `SELECT VALUE [${list(200_000, () => "c")}] ${middle}`,
  "5,000 columns of the item": `SELECT ${list(5000, (i) => `c AS c${i}`)} ${big}`,
  "an object of 5,000 times the item": `SELECT VALUE {${list(5000, (i) => `a${i}: c`)}} ${big}`,
  "the item for each of its elements": `SELECT VALUE ARRAY(SELECT VALUE c FROM x IN c.n) ${holder}`,
  "a string of the item for each of its elements": `SELECT VALUE ARRAY(SELECT VALUE CONCAT(c.s, ToString(x)) FROM x IN c.n) ${holder}`,
  "the item as text, again and again": `SELECT VALUE [${list(2000, () => "ToString(c)")}] ${big}`,
  "strings that double": `SELECT VALUE ${"CONCAT(".repeat(60)}c.s${", c.s)".repeat(60)} ${big}`,
  "arrays that are joined": `SELECT VALUE ARRAY_CONCAT(${list(250, () => "c.n")}) ${numbers}`,
  "sets of arrays": `SELECT VALUE [${list(500, () => "SetUnion(c.n, c.n)")}] ${numbers}`,
  "arrays of pairs": `SELECT VALUE [${list(200, () => "ObjectToArray(c.p)")}] FROM c WHERE c.id = 'properties'`,
  "a list of all strings for each element": "SELECT VALUE MAKELIST(c.s) FROM c JOIN x IN c.n",
  "distinct strings for each element": `SELECT DISTINCT VALUE CONCAT(c.s, ToString(x)) FROM c JOIN x IN c.n WHERE c.id = 'holder'`,
  "groups by long strings": `SELECT COUNT(1) AS n FROM c JOIN x IN c.n WHERE c.id = 'holder' GROUP BY CONCAT(c.s, ToString(x))`,
  "an order by long strings": "SELECT c.id, x FROM c JOIN x IN c.n ORDER BY c.s",
  "a gathered subquery": "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE CONCAT(c.s, ToString(x)) FROM c JOIN x IN c.n)",
  "matches of a pattern": `SELECT VALUE [${list(300, () => "RegexExtractAll(c.s, 'x', 'i')")}] ${big}`,
  "replaced letters": `SELECT VALUE [${list(100, () => `REPLACE(c.s, 'x', '${"z".repeat(1000)}')`)}] ${big}`,
  "split letters": `SELECT VALUE [${list(300, () => "StringSplit(c.s, 'x')")}] ${big}`,
  "nested subqueries": `SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE c.s FROM y IN c.n) FROM x IN c.n) ${holder}`,
  "the longest text": `SELECT VALUE [${list(240_000, () => "1")}] FROM c`,
};

const path = "/dbs/d/colls/c";

// Starts a server with the documents, and makes a token to read them.
async function serve(options) {
  const server = await Server.start(options), rest = new Rest({ server });
  await rest.post("/dbs", { id: "d" });
  const made = await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
  assert.equal(made.status, 201, made.text);
  await rest.post("/dbs/d/users", { id: "reader" });
  const permission = { id: "p", permissionMode: "Read", resource: "dbs/d/colls/c", resourcePartitionKey: ["a"] };
  const token = (await rest.post("/dbs/d/users/reader/permissions", permission)).json._token;
  for (const each of documents) {
    const answer = await rest.post(`${path}/docs`, { ...each, pk: "a" }, { headers: key });
    assert.equal(answer.status, 201, answer.text);
  }
  return { server, rest, token };
}

const peakBytes = (server) => 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))[1]);

describe("memory", () => {
  let server, rest, token;

  const asTokenHolder = () => ({ ...key, authorization: encodeURIComponent(token) });

  async function ask(query, headers = {}) {
    const body = JSON.stringify({ query, parameters: [] });
    const elapsed = stopwatch(server.child.pid);
    const fields = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" };
    const answer = await rest.post(`${path}/docs`, body, { headers: { ...fields, ...asTokenHolder(), ...headers } });
    const took = elapsed();
    assert.ok(took < worstMs, `${query.slice(0, 60)}… took ${took.toFixed(0)} ms`);
    return answer;
  }

  before(async () => {
    ({ server, rest, token } = await serve({ under }));
  });

  after(async () => {
    rest.close();
    await server.stop();
  });

  for (const [name, query] of Object.entries(attacks)) {
    it(name, async () => {
      const answer = await ask(query);
      assert.ok([200, 400, 408, 413].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
      if (answer.status !== 200) {
        assert.ok(answer.message.length > 20, answer.text);
        assert.ok(answer.charge > 0, "what was done costs");
      }
      assert.ok(peakBytes(server) < rssMax, `${peakBytes(server)} bytes in memory`);
    });
  }

  it("a hundred of them at once", async () => {
    const queries = Object.values(attacks);
    const answers = await Promise.all(Array.from({ length: 100 }, async (_, i) => {
      const body = JSON.stringify({ query: queries[i % queries.length], parameters: [] });
      const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...asTokenHolder() };
      return rest.post(`${path}/docs`, body, { headers });
    }));
    for (const answer of answers) {
      assert.ok([200, 400, 408, 413, 429, 503].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
      if (answer.status === 503 || answer.status === 429) assert.ok(Number(answer.headers["x-ms-retry-after-ms"]) > 0, "it says when to come again");
    }
    assert.ok(peakBytes(server) < rssMax, `${peakBytes(server)} bytes in memory`);
    const read = await rest.get(`${path}/docs/middle`, { headers: key });
    assert.equal(read.status, 200);
  });

  it("a row of more than 16 MB is an error, as an object and as a value", async () => {
    const columns = list(9, (i) => `c.s AS c${i}`);
    for (const query of [`SELECT c.id, ${columns} ${big}`, `SELECT VALUE {id: c.id, ${list(9, (i) => `c${i}: c.s`)}} ${big}`]) {
      const answer = await ask(query);
      assert.equal(answer.status, 413, answer.text.slice(0, 200));
      assert.match(answer.message, /16 MB/);
    }
  });
});

// A script's engine needs more address space than the servers above have.
describe("memory of scripts", () => {
  let server, rest;

  before(async () => {
    ({ server, rest } = await serve({}));
    const script = { id: "grow", body: "function grow(n) { return 'x'.repeat(n); }" };
    assert.equal((await rest.post(`${path}/udfs`, script)).status, 201);
    const text = "for (let i = 0; i < n; i++) all.push('x'.repeat(1e6)); getContext().getResponse().setBody(all);";
    assert.equal((await rest.post(`${path}/sprocs`, { id: "answer", body: `function answer(n) { const all = []; ${text} }` })).status, 201);
  });

  after(async () => {
    rest.close();
    await server.stop();
  });

  const bounded = (answers) => {
    for (const answer of answers) assert.ok([400, 408, 413, 429, 503].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
    assert.ok(peakBytes(server) < rssMax, `${peakBytes(server)} bytes in memory`);
  };

  it("thirty queries at once whose functions make long strings", async () => {
    const query = `SELECT VALUE [${list(9, () => "udf.grow(9000000)")}, udf.grow(${list(9, () => "c")})] FROM c`;
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...key };
    bounded(await Promise.all(Array.from({ length: 30 }, () => rest.post(`${path}/docs`, { query }, { headers }))));
  });

  it("thirty stored procedures at once that answer with 30 MB", async () => {
    bounded(await Promise.all(Array.from({ length: 30 }, () => rest.post(`${path}/sprocs/answer`, "[30]", { headers: key }))));
  });
});
