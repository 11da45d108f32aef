// attackers.mjs — hostile clients, in a thread of their own so that they do not slow down the victim's measurements. workerData: port,
// token (a resource token to read the attacked container), seed, n (number of attackers). Ends on a message; fails if an answer is wrong.

import net from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { Rest, emulatorKey, sign, signed } from "../sdk/server.js";
import { random } from "../sdk/random.js";

const { port, token, seed } = workerData;
const next = random(seed);
const below = (n) => Math.floor(next() * n);
const pick = (list) => list[below(list.length)];
const times = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const key = (value) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([value]) });
const queryFields = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const sockets = new Set();
let open = true;

// ---- requests of attackers ----

const path = "c.n c.s c.id x c.o.a c['p']".split(" ");
const value = (depth) => {
  if (depth === 0) return pick([...path, "1", "'a'", "c", "null"]);
  const inner = () => value(depth - 1);
  return pick([
    () => `[${times(below(40), inner)}]`,
    () => `{a: ${inner()}, b: ${inner()}}`,
    () => `CONCAT(${inner()}, ToString(${inner()}))`,
    () => `ARRAY(SELECT VALUE ${inner()} FROM x IN c.n)`,
    () => `ARRAY_CONCAT(c.n, ${inner()})`,
    () => `REPLACE(c.s, 'x', ${inner()})`,
    () => `SetUnion(c.n, ${inner()})`,
    () => `(${inner()} = ${inner()})`,
    () => `RegexMatch(c.s, '(x+x+)+y')`,
    () => `(SELECT VALUE COUNT(1) FROM x IN c.n JOIN y IN c.n WHERE x = y)`,
  ])();
};
const query = () => {
  const select = pick([`SELECT VALUE ${value(3)}`, `SELECT DISTINCT VALUE ${value(2)}`, "SELECT VALUE COUNT(1)", `SELECT ${value(2)} AS a, ${value(1)} AS b`, `SELECT MAX(${value(1)}) AS m`]);
  const joins = times(below(4), (i) => `JOIN x${i} IN c.n`).join(" ");
  const where = pick(["", `WHERE ${value(2)} = ${value(1)}`, "WHERE x0 + x1 < 0", `WHERE CONTAINS(c.s, '${"x".repeat(below(1000))}y')`]);
  const order = pick(["", "", "ORDER BY c.id", "ORDER BY c.s OFFSET 1000 LIMIT 10"]);
  return `${select} FROM c JOIN x IN c.n ${joins} ${where} ${order}`;
};

const post = (rest, to, body, headers) => rest.post(to, body, { headers: { ...headers, authorization: encodeURIComponent(token) } });
const attack = "/dbs/d/colls/attacked";
const attacks = {
  "a heavy query": (r) => post(r, `${attack}/docs`, { query: query() }, { ...queryFields, ...key("a") }),
  "a plan of a long text": (r) => post(r, `${attack}/docs`, { query: `SELECT VALUE [${times(20_000, () => "c.a")}] FROM c` }, { ...queryFields, "x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-supported-query-features": "Aggregate" }),
  "a page of everything": (r) => r.get(`${attack}/docs`, { headers: { "x-ms-max-item-count": "1000" } }),
  "the change feed": (r) => r.get(`${attack}/docs`, { headers: { "a-im": "Incremental feed", "x-ms-max-item-count": "1000" } }),
  "a large write": (r) => r.post(`${attack}/docs`, { id: `w${below(20)}`, pk: "a", p: Object.fromEntries(times(30_000, (i) => [`p${i}`, i])) }, { headers: { ...key("a"), "x-ms-documentdb-is-upsert": "True" } }),
  "a batch": (r) => r.post(`${attack}/docs`, times(50, (i) => ({ operationType: "Upsert", resourceBody: { id: `b${i}`, pk: "a", n: [i] } })), { headers: { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" } }),
  "no key": (r) => r.get(`${attack}/docs`, { sign: false }),
  "a request that nobody waits for": () => raw((socket) => socket.write(signedQuery()) && setTimeout(() => socket.destroy(), below(50))),
  "an answer that nobody reads": () => raw((socket) => { socket.pause(); socket.write(signedFeed()); }, 3000),
  "a connection that says nothing": () => raw(() => {}, 3000),
  "half a request": () => raw((socket) => socket.write("POST /dbs HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nabc"), 3000),
};

function raw(use, ms = 200) {
  return new Promise((done) => {
    const socket = net.connect(port, "localhost", () => use(socket));
    sockets.add(socket);
    const end = () => (sockets.delete(socket), socket.destroy(), done());
    socket.on("error", end).on("close", end);
    setTimeout(end, ms);
  });
}

const head = (verb, to, fields) => {
  const date = new Date().toUTCString(), { type, link } = signed(to);
  const all = { host: "localhost", "x-ms-date": date, "x-ms-version": "2020-07-15", authorization: sign(emulatorKey, verb, type, link, date), ...fields };
  return `${verb} ${to} HTTP/1.1\r\n${Object.entries(all).map(([name, text]) => `${name}: ${text}`).join("\r\n")}\r\n\r\n`;
};
const signedFeed = () => head("GET", `${attack}/docs`, { "x-ms-max-item-count": "1000" }).repeat(4);
const signedQuery = () => {
  const body = JSON.stringify({ query: "SELECT VALUE COUNT(1) FROM c JOIN x IN c.n JOIN y IN c.n WHERE x > y" });
  return head("POST", `${attack}/docs`, { ...queryFields, ...key("a"), "content-length": body.length }) + body;
};

// Any request may be rejected in the protocol's form; none may hang or be answered with 500.
const fine = new Set([200, 201, 207, 304, 400, 401, 403, 404, 408, 413, 429, 503]);

async function attacker() {
  const mine = new Rest({ server: { port } });
  while (open) {
    const [name, send] = pick(Object.entries(attacks));
    const answer = await send(mine).catch((error) => ({ error }));
    if (answer?.status && !fine.has(answer.status)) throw new Error(`${name}: ${answer.status} ${answer.text.slice(0, 300)}`);
    if (answer?.status === 429) await sleep(20 + below(50));
  }
  mine.close();
}

parentPort.once("message", () => {
  open = false;
  sockets.forEach((socket) => socket.destroy());
});
await Promise.all(times(workerData.n, attacker));
