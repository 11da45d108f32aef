// Hostile queries: each ends within bounded time and memory, with rows or with an error in the service's form. Meanwhile another client's
// point reads continue, and the server survives.

import { assert, suite, key, sleep } from "./harness.js";
import { processorMs, residentBytes, stopwatch } from "./processes.js";
import { binary } from "./server.js";

const sanitized = /asan|tsan/.test(binary);
// The server's processor time for one request: a page ends after five seconds (1.5 with a sanitizer, which makes steps ten times as slow), and
// the last item takes at most a third of a second. Processor time, because the machine may be busy; a request that only waits runs into the time
// limit of this file (tools/dev/sdk-file.sh).
const worstMs = sanitized ? 15_000 : 8_000;
const pageMs = sanitized ? 1_500 : 5_000;
const worstReadMs = sanitized ? 6_000 : 2_500; // of a concurrent point read
const worstBytes = (sanitized ? 4 : 1) * 1024 * 1024 * 1024;
const largest = 512 * 1024; // bytes of a query's text

const repeat = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const list = (n, f, between = ",") => repeat(n, f).join(between);
const nest = (n, open, inner, close) => open.repeat(n) + inner + close.repeat(n);

// A text of exactly the largest size, or `over` bytes more: `unit` repeated, padded with spaces at the end.
function fill(head, unit, tail, over = 0) {
  let text = head;
  for (let i = 0; text.length + unit(i).length + tail.length <= largest; i++) text += unit(i);
  return (text + tail).padEnd(largest + over);
}

// ---- the items ----

const twoToThe53 = 9007199254740992;
// With a hash whose constants are known, all [i, x] would collide if x is the number with these bits.
const unlucky = new DataView(new BigUint64Array([0xd6e8feb86659fd93n]).buffer).getFloat64(0, true);

function documents() {
  const thousand = repeat(1000, (i) => i);
  const all = [
    { id: "arrays", a: thousand, b: thousand, o: repeat(1000, (i) => ({ n: i, t: `t${i}` })) },
    { id: "string", s: "x".repeat(1_000_000), words: "lorem ipsum ".repeat(10_000), aa: "a".repeat(100_000) },
    { id: "string2", s: "x".repeat(999_999) + "y" },
    { id: "properties", p: Object.fromEntries(repeat(100_000, (i) => [`p${i}`, i])) },
    { id: "swapped", p: Object.fromEntries(repeat(100_000, (i) => [`p${99_999 - i}`, 99_999 - i])) },
    { id: "numbers", n: repeat(200_000, (i) => i) },
    { id: "unlucky", u: repeat(40_000, (i) => [i, unlucky]) },
    { id: "deep", d: JSON.parse(nest(60, '{"d":[', "1", "]}")) },
  ];
  repeat(300, (i) => all.push({ id: `heavy${i}`, heavy: true, a: thousand, s: "z".repeat(2000) }));
  repeat(1000, (i) => all.push({ id: `light${i}`, light: true, i, t: `text ${i}`, g: i % 7 }));
  return all.map((each) => ({ ...each, pk: "a" }));
}

async function fillContainer(t) {
  const path = await t.containerPath();
  const pending = documents();
  const worker = async () => {
    for (let each; (each = pending.pop()); ) {
      const made = await t.rest.post(`${path}/docs`, each, { headers: key("a") });
      assert.equal(made.status, 201, `${each.id}: ${made.text.slice(0, 200)}`);
    }
  };
  await Promise.all(repeat(8, worker));
  return path;
}

// ---- watching the server ----

// Reads one item repeatedly and checks the server's memory, until stopped.
function watch(t, path) {
  const seen = { slowestMs: 0, bytes: 0, reads: 0, on: true };
  const work = (async () => {
    while (seen.on) {
      const elapsed = stopwatch(t.server.child.pid);
      const read = await t.rest.get(`${path}/docs/light1`, { headers: key("a") });
      assert.equal(read.status, 200, read.text);
      seen.slowestMs = Math.max(seen.slowestMs, elapsed());
      seen.bytes = Math.max(seen.bytes, residentBytes(t.server.child.pid));
      seen.reads++;
      await sleep(10);
    }
  })();
  return async () => {
    seen.on = false;
    await work;
    return seen;
  };
}

// ---- the queries ----

const query = (text, parameters) => ({ query: text, ...(parameters && { parameters }) });

// The expected answers by name of the query: 200 with rows, 400 with an error code or for too much memory, 408 for too much time, 413 for a
// value that is too large.
const asked = {
  "parentheses within the limit": [() => `SELECT VALUE ${nest(50, "(", "1", ")")}`, 200],
  "parentheses beyond it": [() => `SELECT VALUE ${nest(10_000, "(", "1", ")")}`, 400, /SC3021|SC1001/],
  "half a megabyte of parentheses": [() => fill("SELECT VALUE ", () => "(", ""), 400],
  "NOTs": [() => `SELECT VALUE ${"NOT ".repeat(100_000)} true`, 400],
  "minus signs": [() => `SELECT VALUE ${"- ".repeat(200_000)} 1`, 400],
  "arrays in arrays": [() => `SELECT VALUE ${nest(5_000, "[", "", "]")}`, 400],
  "objects in objects": [() => `SELECT VALUE ${nest(5_000, '{"a":', "1", "}")}`, 400],
  "subqueries in subqueries": [() => `SELECT VALUE ${nest(60, "(SELECT VALUE ", "1", ")")}`, 200],
  "many more subqueries": [() => `SELECT VALUE ${nest(2_000, "(SELECT VALUE ", "1", ")")}`, 400],
  "ARRAY in ARRAY": [() => `SELECT VALUE ${nest(50, "ARRAY(SELECT VALUE ", "1", ")")}`, 200],
  "EXISTS in EXISTS": [() => `SELECT VALUE ${nest(1_000, "EXISTS(SELECT VALUE 1 WHERE ", "true", ")")}`, 400],
  "a path of 200 members": [() => `SELECT VALUE c${".d".repeat(200)} FROM c`, 200],
  "a path of 100,000 members": [() => `SELECT VALUE c${".d".repeat(100_000)} FROM c`, 400],
  "calls in calls": [() => `SELECT VALUE ${nest(20_000, "ABS(", "1", ")")}`, 400],
  "conditions in conditions": [() => `SELECT VALUE ${"true ? 1 : ".repeat(40_000)} 2`, 400],
  "coalesced": [() => `SELECT VALUE ${"undefined ?? ".repeat(30_000)} 2`, 400],
  "a sum of 200,000": [() => `SELECT VALUE ${list(200_000, () => 1, "+")}`, 400],

  "IN with 100,000 members": [() => `SELECT VALUE c.id FROM c WHERE c.i IN (${list(50_000, (i) => i)},${list(50_000, (i) => i % 10)})`, 200],
  "the key IN 60,000": [() => `SELECT VALUE c.id FROM c WHERE c.pk IN (${list(60_000, (i) => `"${i}"`)})`, 200],
  "ANDs": [() => fill("SELECT VALUE c.id FROM c WHERE true", () => " AND true", ""), 200],
  "ORs of the key": [() => fill("SELECT VALUE c.id FROM c WHERE false", (i) => ` OR c.pk="${i}"`, ""), 200],
  "ANDs and ORs": [() => fill("SELECT VALUE c.id FROM c WHERE true", (i) => ` AND (c.pk="${i % 9}" OR c.pk="a")`, ""), 200],
  "one long string": [() => fill('SELECT VALUE LENGTH("', () => "x".repeat(1000), '")'), 200],
  "one long name": [() => fill("SELECT VALUE c.", () => "x".repeat(1000), " FROM c"), 200],
  "one long number": [() => fill("SELECT VALUE ", () => "9".repeat(1000), ""), 400],
  "one long fraction": [() => fill("SELECT VALUE 0.", () => "1".repeat(1000), ""), 200],
  "one long comment": [() => fill("SELECT VALUE 1 --", () => "x".repeat(1000), ""), 200],
  "escapes": [() => fill('SELECT VALUE LENGTH("', () => "\\u0041", '")'), 200],
  "a string that never ends": [() => fill('SELECT VALUE "', () => "x".repeat(1000), "").trimEnd(), 400],
  "quotes": [() => fill("SELECT VALUE ", () => '"', ""), 400],
  "columns": [() => fill("SELECT c.id", (i) => `,c.i AS x${i}`, " FROM c WHERE c.light"), 200],
  "columns of one name": [() => fill("SELECT c.id", () => ",1 AS x", " FROM c"), 400, /SC2022/],
  "counts": [() => fill("SELECT COUNT(1)", () => ",COUNT(1)", " FROM c WHERE c.id='light1'"), 200],
  "groups by many": [() => fill("SELECT COUNT(1) FROM c WHERE c.light GROUP BY c.a", (i) => `,c.a${i}`, ""), [200, 408]],
  "columns by groups": [
    () => `SELECT c.a0 AS first,${list(15_000, (i) => `c.a${i} AS b${i}`)} FROM c WHERE c.id="light1" GROUP BY ${list(15_000, (i) => `c.a${14_999 - i}`)}`,
    200,
  ],
  "orders by many": [() => `SELECT VALUE c.id FROM c ORDER BY ${list(20_000, (i) => `c.a${i}`)}`, [400, 408]],
  "properties of one object": [() => fill("SELECT VALUE {a:1", (i) => `,b${i}:1`, "}"), 200],
  "elements of one array": [() => fill("SELECT VALUE [1", () => ",1", "]"), 200],
  "arguments of one call": [() => fill("SELECT VALUE CONCAT('a'", () => ",'b'", ")"), 200],
  "sources": [() => fill("SELECT VALUE 1 FROM c", (i) => ` JOIN x${i} IN c.a`, ""), 400],
  "user-defined functions": [() => fill("SELECT VALUE 1", () => "+udf.f()", ""), 400],
  "more than half a megabyte": [() => fill("SELECT VALUE 1", () => " ", "", 1), 400, /SC3020/],
  "two megabytes": [() => "SELECT VALUE 1".padEnd(2_000_000), 400, /SC3020/],
  "parameters in thousands": [() => query("SELECT VALUE @p7", repeat(20_000, (i) => ({ name: `@p${i}`, value: i }))), 200],
  "more parameters than are taken": [() => query("SELECT VALUE @p7", repeat(20_001, (i) => ({ name: `@p${i}`, value: i }))), 400],
  "a parameter of a megabyte": [() => query("SELECT VALUE LENGTH(@p)", [{ name: "@p", value: "p".repeat(1_000_000) }]), 200],
  "a deep parameter": [() => query("SELECT VALUE @p", [{ name: "@p", value: JSON.parse(nest(100, "[", "", "]")) }]), 200],
  "a parameter that is too deep": [() => `{"query":"SELECT 1","parameters":[{"name":"@p","value":${nest(100_000, "[", "", "]")}}]}`, 400],

  "a regular expression that backtracks": [() => `SELECT VALUE RegexMatch(c.aa, "(a+)+$b") FROM c WHERE c.id="string"`, [200, 408]],
  "another, over all items": [() => `SELECT VALUE c.id FROM c WHERE RegexMatch(c.s ?? "", "(z|zz|z*)*y")`, [200, 408]],
  "one with back references": [() => `SELECT VALUE RegexMatch(c.aa, "(a*)(a*)(a*)(a*)\\\\1\\\\2\\\\3\\\\4b") FROM c`, [200, 408]],
  "one that calls itself": [() => `SELECT VALUE RegexMatch(c.aa, "^(a(?1)*)+b$") FROM c`, [200, 408]],
  "one that counts": [() => `SELECT VALUE RegexMatch(c.aa, "((a{1,1000}){1,1000}){1,1000}b") FROM c`, [200, 408]],
  "one of half a megabyte": [() => fill('SELECT VALUE RegexMatch("aaa", "', () => "(a?)", '")'), 200],
  "another one for each element": [
    () => `SELECT VALUE RegexMatch(c.aa, CONCAT("(a*)*", ToString(x), "b")) FROM c JOIN x IN c.a WHERE c.heavy`,
    [200, 408],
  ],
  "extracting everything": [() => `SELECT VALUE RegexExtractAll(c.aa, "a*?") FROM c WHERE c.id="string"`, [200, 408]],
  "LIKE with many %": [() => `SELECT VALUE c.aa LIKE "${"%a".repeat(5_000)}%b" FROM c WHERE c.id="string"`, [200, 408]],
  "LIKE with many % and _": [() => `SELECT VALUE c.aa LIKE "${"%a_".repeat(5_000)}%b" FROM c WHERE c.id="string"`, [200, 408]],
  "LIKE of half a megabyte": [() => fill('SELECT VALUE c.aa LIKE "', () => "%[a-c]_", 'b" FROM c'), [200, 408]],
  "LIKE with a set that is never closed": [() => fill('SELECT VALUE c.aa LIKE "', () => "[", '" FROM c'), 200],

  "REPLICATE to nothing": [() => 'SELECT VALUE REPLICATE("x", 1e15)', 200],
  "REPLICATE of REPLICATE": [() => `SELECT VALUE LENGTH(${nest(20, "REPLICATE(", '"x"', ", 100)")})`, [200, 408]],
  "doubled by ||": [() => `SELECT VALUE LENGTH(${repeat(22, () => 0).reduce((s) => `CONCAT(${s},${s})`, '"x"').slice(0, largest)})`, [200, 400, 408]],
  "REPLACE that grows": [() => `SELECT VALUE LENGTH(${nest(10, "REPLACE(", "c.s", ', "x", "xxxxxxxxxx")')}) FROM c`, 413],
  "StringJoin of everything": [() => `SELECT VALUE LENGTH(StringJoin(c.s, ARRAY(SELECT VALUE c.s FROM x IN c.a))) FROM c`, [200, 408]],
  "StringSplit by nothing": [() => `SELECT VALUE ARRAY_LENGTH(StringSplit(c.s, "")) FROM c`, [200, 408]],
  "ARRAY_CONCAT again and again": [() => `SELECT VALUE ARRAY_LENGTH(${nest(30, "ARRAY_CONCAT(", "c.n", ", c.n)")}) FROM c`, [200, 408]],
  "ARRAY_CONCAT of rows": [
    () => `SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT(${list(10, () => "ARRAY(SELECT VALUE {a: x, b: y, c: c} FROM x IN c.a JOIN y IN c.b)")})) FROM c`,
    [200, 408],
  ],
  "sets": [() => `SELECT VALUE ARRAY_LENGTH(SetUnion(SetIntersect(c.n, c.n), ARRAY_CONCAT(c.n, c.u))) FROM c`, [200, 408]],
  "sets with one hash": [() => `SELECT VALUE ARRAY_LENGTH(SetUnion(c.u, c.u)) FROM c WHERE c.id="unlucky"`, 200],
  "ObjectToArray": [() => `SELECT VALUE ARRAY_LENGTH(ObjectToArray(c.p)) FROM c`, 200],
  "ToString of everything": [() => `SELECT VALUE LENGTH(${nest(8, "ToString([", "c", "])")}) FROM c`, [200, 408]],
  "parsing and writing": [() => `SELECT VALUE LENGTH(ToString(StringToArray(ToString(c.n)))) FROM c`, [200, 408]],

  "ten JOINs over a thousand": [
    () => `SELECT VALUE COUNT(1) FROM c ${list(10, (i) => `JOIN x${i} IN c.a`, " ")}`,
    408,
  ],
  "the same, streaming": [() => `SELECT VALUE 1 FROM c ${list(10, (i) => `JOIN x${i} IN c.a`, " ")} WHERE x0 + x9 < 0`, 408],
  "two JOINs of heavy items": [() => "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE c.heavy AND x = y", [200, 408]],
  "eleven JOINs": [() => `SELECT VALUE 1 FROM c ${list(11, (i) => `JOIN x${i} IN c.a`, " ")}`, 400],
  "JOINs of subqueries": [() => `SELECT VALUE COUNT(1) FROM c JOIN (SELECT VALUE x FROM x IN c.a JOIN y IN c.b) AS z JOIN (SELECT VALUE x FROM x IN c.a) AS w`, 408],
  "rows in order of JOINs": [() => "SELECT VALUE [x, y] FROM c JOIN x IN c.a JOIN y IN c.b ORDER BY c.id", [200, 408]],
  "ARRAY of ARRAY of everything": [
    () => `SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE [x,y,z] FROM z IN c.a) FROM y IN c.a) FROM x IN c.a) FROM c`,
    400,
  ],
  "ARRAY of whole items": [() => "SELECT VALUE ARRAY(SELECT VALUE c FROM x IN c.a) FROM c", [200, 408]],
  "EXISTS of EXISTS": [
    () => "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.a WHERE EXISTS(SELECT VALUE 1 FROM y IN c.a WHERE EXISTS(SELECT VALUE 1 FROM z IN c.a WHERE x+y+z < 0)))",
    408,
  ],
  "a long string compared in each row": [() => "SELECT VALUE COUNT(1) FROM c JOIN x IN c.n WHERE c.s = @s OR c.p = @p OR c.n = c.n", 408],
  "a long string compared with itself": [() => "SELECT VALUE COUNT(1) FROM c JOIN x IN ARRAY_CONCAT([1],[2]) WHERE c.s < c.s", 200],
  "the last of many properties in each row": [() => "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE ObjectToArray(c.p)) WHERE c.p.p99999 = c.p.p99998", [200, 408]],
  "the last of many elements in each row": [() => "SELECT VALUE COUNT(1) FROM c JOIN x IN c.n WHERE c.n[199999] = c.n[199998]", 408],
  "objects compared in another order": [() => 'SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE c.o = @o', [200, 408]],

  "DISTINCT of one hash": [() => "SELECT DISTINCT VALUE x FROM c JOIN x IN c.u", 200],
  "GROUP BY of one hash": [() => "SELECT x FROM c JOIN x IN c.u GROUP BY x", [200, 408]],
  "GROUP BY of whole items, again and again": [() => "SELECT x, COUNT(1) FROM c JOIN x IN c.n GROUP BY x", [200, 408]],
  "DISTINCT of huge values": [() => "SELECT DISTINCT x, c AS c FROM c JOIN x IN c.n", [200, 408]],
  "GROUP BY a megabyte": [() => "SELECT c.s, COUNT(1) AS n FROM c GROUP BY c.s", 200],
  "MAKELIST of everything": [() => "SELECT VALUE MAKELIST(c) FROM c JOIN x IN c.a", 400],
  "MAKESET of everything": [() => "SELECT VALUE ARRAY_LENGTH(MAKESET(x)) FROM c JOIN x IN c.n", [200, 408]],
  "MAX of megabytes": [() => "SELECT VALUE LENGTH(MAX(CONCAT(c.s, ToString(x)))) FROM c JOIN x IN c.a", [200, 400, 408]],
  "ORDER BY a megabyte": [() => "SELECT VALUE c.id FROM c ORDER BY c.s", 200],
  "ORDER BY a megabyte in each row": [() => "SELECT c.id, x FROM c JOIN x IN c.n ORDER BY c.n OFFSET 100000 LIMIT 10", [200, 408]],
  "ORDER BY an object": [() => "SELECT VALUE c.id FROM c ORDER BY c.p", 200],
  "a huge OFFSET": [() => "SELECT VALUE c.id FROM c OFFSET 4294967295 LIMIT 4294967295", 200],
  "a huge OFFSET in order": [() => "SELECT VALUE c.id FROM c ORDER BY c.i OFFSET 4294967295 LIMIT 4294967295", [200, 400, 408]],
  "an OFFSET beyond all": [() => "SELECT VALUE c.id FROM c OFFSET 1e300 LIMIT 1", 400],
  "a LIMIT beyond all": [() => "SELECT VALUE c.id FROM c OFFSET 0 LIMIT 99999999999999999999", 400],
  "a huge TOP": [() => "SELECT TOP 4294967295 VALUE c.id FROM c WHERE c.light", 200],
  "a TOP beyond all": [() => "SELECT TOP 4294967296 c.id FROM c", 400],
  "a TOP below all": [() => "SELECT TOP -1 c.id FROM c", 400],
  "numbers beyond all": [() => "SELECT VALUE [1e999, -1e999, 1e-999, 0/0, 9223372036854775808 << 1e300, 1e308 * 10]", [200, 400]],
  "indexes beyond all": [() => `SELECT VALUE [c.a[${twoToThe53}], c.a[1e300], c.a[-1], c.a[0.5], ARRAY_SLICE(c.a, -1e300, 1e300), SUBSTRING(c.id, -1e300, 1e300)] FROM c WHERE c.id="arrays"`, [200, 400]],
  "dates beyond all": [() => 'SELECT VALUE [DateTimeAdd("yyyy", 1e300, "2020-01-01T00:00:00Z"), TicksToDateTime(1e300), TimestampToDateTime(-1e300), DateTimeBin("9999-12-31T23:59:59.9999999Z", "ms", 1)]', 200],
  "polygons": [
    () => `SELECT VALUE ST_INTERSECTS({"type":"Polygon","coordinates":[[${list(5_000, (i) => `[${i % 2},${i % 7}]`)},[0,0]]]}, {"type":"Polygon","coordinates":[[${list(5_000, (i) => `[${i % 3},${i % 5}]`)},[0,0]]]})`,
    [200, 408],
  ],
  "vectors": [() => `SELECT VALUE VectorDistance([${list(100_000, () => 1)}], [${list(100_000, () => 2)}])`, 200],
};

const bodies = {
  "a long string compared in each row": () => [
    { name: "@s", value: "x".repeat(900_000) + "z" },
    { name: "@p", value: Object.fromEntries(repeat(40_000, (i) => [`p${39_999 - i}`, i])) },
  ],
  "objects compared in another order": () => [{ name: "@o", value: repeat(1000, (i) => ({ t: `t${i}`, n: i })) }],
};

function bodyOf(name) {
  const made = asked[name][0]();
  if (typeof made !== "string" || made.startsWith("{")) return made;
  return query(made, bodies[name]?.());
}

// ---- continuations ----

const orderedQuery = "SELECT VALUE c.id FROM c WHERE c.light ORDER BY c.t";

// A continuation from the server: QPS:{base64 of BSON};{the feed's continuation}
async function realToken(t, path) {
  const headers = { ...queryHeaders, "x-ms-max-item-count": "10" };
  const answer = await t.rest.post(`${path}/docs`, query(orderedQuery), { headers });
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.headers["x-ms-continuation"], /^QPS:[A-Za-z0-9+/=]+;/);
  return answer.headers["x-ms-continuation"];
}

function refusedToken(answer) {
  assert.equal(answer.status, 400, answer.text.slice(0, 300));
  assert.match(answer.message, /[Cc]ontinuation/);
}

const bsonOf = (token) => Buffer.from(token.slice(4, token.indexOf(";")), "base64");
const tokenOf = (bson, rest) => `QPS:${bson.toString("base64")};${rest}`;
const restOf = (token) => token.slice(token.indexOf(";") + 1);

// Replaces the 64-bit number `name` in a token's document.
function withNumber(token, name, number) {
  const bson = bsonOf(token);
  const at = bson.indexOf(Buffer.from(`\x12${name}\0`, "latin1"));
  assert.ok(at > 0, `${name} is in the token`);
  bson.writeBigInt64LE(number, at + 3);
  return tokenOf(bson, restOf(token));
}

// {"a":{"a":{…}}} of the given depth.
function deepBson(depth) {
  let inner = Buffer.from([5, 0, 0, 0, 0]);
  for (let i = 0; i < depth; i++) {
    const size = Buffer.alloc(4);
    size.writeInt32LE(inner.length + 8);
    inner = Buffer.concat([size, Buffer.from([3, 97, 0]), inner, Buffer.from([0])]);
  }
  return inner;
}

const tokens = {
  "the server's own": [(real) => real, 200],
  "without its end": [(real) => real.slice(0, real.indexOf(";") - 3), 400],
  "without its feed": [(real) => real.slice(0, real.indexOf(";") + 1), 200],
  "cut in its feed": [(real) => real.slice(0, -20), 400],
  "one bit of its length": [(real) => tokenOf(Buffer.concat([Buffer.from([bsonOf(real)[0] ^ 1]), bsonOf(real).subarray(1)]), restOf(real)), 400],
  "no base64": [(real) => `QPS:*;${restOf(real)}`, 400],
  "nothing": [(real) => `QPS:;${restOf(real)}`, 400],
  "an empty document": [(real) => tokenOf(Buffer.from([5, 0, 0, 0, 0]), restOf(real)), 200],
  "negative numbers": [(real) => withNumber(real, "g", -5n), 400],
  "more rows than there are": [(real) => withNumber(real, "g", 1n << 60n), 200],
  "numbers that wrap around": [(real) => withNumber(real, "s", (1n << 63n) - 1n), 400],
  "a number of no item": [(real) => withNumber(real, "n", -1n), 200],
  "a deep document": [(real) => tokenOf(deepBson(2_500), restOf(real)), 400],
  "twelve kilobytes": [() => "QPS:" + "A".repeat(12_000) + ";", 400],
  "fifty kilobytes": [() => "QPS:" + "A".repeat(50_000) + ";", [400, 431]],
  "a feed that is deep": [() => "[".repeat(5_000), 400],
  "something else": [() => "next", 400],
};

const queryHeaders = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...key("a") };

function checkError(answer, name) {
  assert.match(answer.headers["content-type"], /^application\/json/, name);
  assert.ok(["BadRequest", "RequestTimeout", "RequestEntityTooLarge"].includes(answer.json.code), `${name}: ${answer.text.slice(0, 300)}`);
  assert.ok(answer.message.length > 10, name);
}

// A page ends by the clock. If the server had a processor for a part of that time only, the page may end before the work is done that leads to
// the expected answer: with an error, or with a continuation.
function endedEarly(answer, ms) {
  return ms < 0.7 * pageMs && (answer.status === 408 || (answer.status === 200 && answer.headers["x-ms-continuation"] !== undefined));
}

// Sends one request, or as many as `requests` says, while watching the server.
async function endure(t, path, name, send, statuses, text, requests = 1) {
  const stop = watch(t, path);
  const before = processorMs(t.server.child.pid);
  const answer = await send();
  const ms = processorMs(t.server.child.pid) - before;
  const seen = await stop();
  if (process.env.TESELA_SHOW) console.log(`${name}: ${answer.status} ${ms.toFixed(0)} ms, ${(seen.bytes / 1e6).toFixed(0)} MB, reads ${seen.slowestMs.toFixed(0)} ms; ${answer.text.slice(0, 150)}`);
  const early = ![statuses].flat().includes(answer.status) && endedEarly(answer, ms);
  assert.ok(early || [statuses].flat().includes(answer.status), `${name}: ${answer.status} ${answer.text.slice(0, 400)}`);
  if (answer.status !== 200) checkError(answer, name);
  if (text && !early) assert.match(answer.text, text, name);
  assert.ok(ms < worstMs * requests, `${name}: took ${ms} ms of processor time`);
  assert.ok(seen.bytes < worstBytes, `${name}: the server has ${seen.bytes} bytes`);
  assert.ok(seen.slowestMs < worstReadMs, `${name}: a point read took ${seen.slowestMs.toFixed(0)} ms`);
  assert.equal(t.server.child.exitCode, null, name);
  return answer;
}

suite(
  "hostile queries",
  (t) => {
    let path;
    const prepared = async () => (path ??= await fillContainer(t));
    for (const [name, [, statuses, text]] of Object.entries(asked)) {
      t.it(name, async () => {
        const at = await prepared();
        await endure(t, at, name, () => t.rest.post(`${at}/docs`, bodyOf(name), { headers: queryHeaders }), statuses, text);
      });
    }

    for (const [name, [make, statuses]] of Object.entries(tokens)) {
      t.it(`a continuation: ${name}`, async () => {
        const at = await prepared();
        const real = await realToken(t, at);
        const headers = { ...queryHeaders, "x-ms-max-item-count": "10", "x-ms-continuation": make(real) };
        const ask = () => t.rest.post(`${at}/docs`, query(orderedQuery), { headers });
        await endure(t, at, name, ask, statuses);
      });
    }

    t.it("a continuation of another query, container or partition gives nothing it should not", async () => {
      const at = await prepared();
      const other = await t.containerPath();
      await t.rest.post(`${other}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
      const real = await realToken(t, at);
      const ask = (where, text, more) => t.rest.post(`${where}/docs`, query(text), { headers: { ...queryHeaders, "x-ms-continuation": real, ...more } });
      const foreign = await ask(other, orderedQuery); // a position in an order of values reveals nothing: the container's own rows, or none
      assert.deepEqual([foreign.status, foreign.json.Documents.filter((id) => id !== "1")], [200, []]);
      for (const text of ["SELECT * FROM c WHERE c.light", "SELECT DISTINCT VALUE c.g FROM c", "SELECT c.g, COUNT(1) FROM c GROUP BY c.g"]) {
        const answer = await ask(at, text);
        if (answer.status !== 200) refusedToken(answer);
      }
      const elsewhere = await ask(at, orderedQuery, key("nobody"));
      assert.deepEqual([elsewhere.status, elsewhere.json._count], [200, 0]);
    });

    t.it("order values too long for a token are gone on with all the same", async () => {
      const at = await t.containerPath();
      const ids = repeat(12, (i) => `${String.fromCharCode(97 + i)}`);
      for (const id of ids) await t.rest.post(`${at}/docs`, { id, pk: "a", s: "x".repeat(100_000) + id }, { headers: key("a") });
      const seen = [];
      for (let token; seen.length < 30; ) {
        const headers = { ...queryHeaders, "x-ms-max-item-count": "5", ...(token && { "x-ms-continuation": token }) };
        const answer = await t.rest.post(`${at}/docs`, query("SELECT VALUE c.id FROM c ORDER BY c.s DESC"), { headers });
        assert.equal(answer.status, 200, answer.text);
        seen.push(...answer.json.Documents);
        token = answer.headers["x-ms-continuation"];
        if (!token) break;
        assert.ok(token.length < 8_000, `a token of ${token.length} bytes`);
      }
      assert.deepEqual(seen, [...ids].reverse());
    });

    t.it("plans are bounded as queries are", async () => {
      const at = await prepared();
      const planHeaders = { ...queryHeaders, "x-ms-documentdb-partitionkey": null, "x-ms-cosmos-is-query-plan-request": "True" };
      planHeaders["x-ms-cosmos-supported-query-features"] = "Aggregate,Distinct,GroupBy,OrderBy,Top,OffsetAndLimit,NonValueAggregate,MultipleAggregates,MultipleOrderBy";
      const names = ["half a megabyte of parentheses", "many more subqueries", "the key IN 60,000", "ANDs", "ORs of the key", "ANDs and ORs", "columns"];
      names.push("counts", "groups by many", "columns by groups", "one long string", "escapes", "two megabytes", "properties of one object", "sources");
      for (const name of names) {
        await endure(t, at, `plan: ${name}`, () => t.rest.post(`${at}/docs`, bodyOf(name), { headers: planHeaders }), [200, 400]);
      }
      const odd = { ...planHeaders, "x-ms-cosmos-supported-query-features": ",".repeat(5_000) + "Top,".repeat(1_000) };
      await endure(t, at, "plan: features", () => t.rest.post(`${at}/docs`, query("SELECT TOP 1 * FROM c"), { headers: odd }), [200, 400]);
    });

    t.it("bodies that are no queries", async () => {
      const at = await prepared();
      const send = (body, type = "application/query+json") => t.rest.post(`${at}/docs`, body, { headers: { ...queryHeaders, "content-type": type } });
      for (const body of ["", "[]", "7", "{", '{"query":7}', '{"query":null}', '{"QUERY":"SELECT 1"}', '{"query":"SELECT 1","parameters":7}']) {
        await endure(t, at, `body ${body}`, () => send(Buffer.from(body)), 400);
      }
      for (const parameters of [[7], [{}], [{ name: 7 }], [{ name: "p" }], [{ name: "@" }], [{ name: "@p" }, { name: "@p" }]]) {
        await endure(t, at, `parameters ${JSON.stringify(parameters)}`, () => send(query("SELECT 1", parameters)), 400);
      }
      const broken = Buffer.concat([Buffer.from('SELECT VALUE "'), Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80]), Buffer.from('"')]);
      await endure(t, at, "text that is no UTF-8", () => send(broken, "application/sql"), 400);
      const wrapped = Buffer.concat([Buffer.from('{"query":"SELECT 1 AS a'), Buffer.from([0xff]), Buffer.from('"}')]);
      await endure(t, at, "JSON that is no UTF-8", () => send(wrapped), 400);
      await endure(t, at, "NUL", () => send(Buffer.from("SELECT VALUE 1\0"), "application/sql"), 400);
      const plain = await send(Buffer.from('SELECT VALUE "ñ"'), "application/sql");
      assert.deepEqual(plain.json.Documents, ["ñ"]);
    });

    // The queries that take the most memory and time, more of them than there are workers.
    t.it("all at once", async () => {
      const at = await prepared();
      const names = ["GROUP BY of whole items, again and again", "MAKELIST of everything", "ARRAY of ARRAY of everything", "ten JOINs over a thousand"];
      names.push("DISTINCT of huge values", "a long string compared in each row", "ORDER BY a megabyte in each row", "JOINs of subqueries");
      const sent = names.map((name) => t.rest.post(`${at}/docs`, bodyOf(name), { headers: queryHeaders }));
      const oneThatFailed = (answers) => answers.find(({ status }) => status === 408) ?? answers.at(-1); // none failed if each page ended between two items
      await endure(t, at, "all at once", async () => oneThatFailed(await Promise.all(sent)), [200, 408], undefined, names.length);
      for (const each of await Promise.all(sent)) assert.ok([200, 400, 408, 503].includes(each.status), each.text.slice(0, 300)); // 503: together they need more memory than there is
    });
  },
  { schemes: ["http"], flags: ["--page-ms", `${pageMs}`] }, // many of these run until their page's time is over
);
