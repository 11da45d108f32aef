// Clients that hold connections or server memory needlessly: idle ones that never authenticate, those that send or read a few bytes now and
// then, and those that request pages and do not read them. Others are served meanwhile, and memory is bounded.

import net from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import assert from "node:assert/strict";
import { residentBytes } from "../sdk/processes.js";
import { Rest, Server, binary, emulatorKey, sign, signed } from "../sdk/server.js";

const sanitized = /asan|tsan/.test(binary);
const patient = { timeout: 300_000 };

// A connection that collects received bytes or, if paused, does not read them.
class Socket {
  constructor(server, { paused = false } = {}) {
    this.text = "";
    this.closed = false;
    this.socket = net.connect({ port: server.port, host: "127.0.0.1" });
    this.socket.on("error", () => {});
    this.socket.on("close", () => (this.closed = true));
    if (paused) this.socket.pause();
    else this.socket.on("data", (part) => (this.text += part.toString("latin1")));
  }
  connected() {
    return new Promise((done) => (this.socket.connecting ? this.socket.once("connect", done).once("close", done) : done()));
  }
  write(text) {
    this.socket.write(text);
    return this;
  }
  get statuses() {
    return [...this.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  }
  close() {
    this.socket.destroy();
  }
}

const unsigned = "GET /dbs HTTP/1.1\r\nHost: localhost\r\n\r\n";

function signedRequest(path, headers = {}, verb = "GET") {
  const date = new Date().toUTCString();
  const { type, link } = signed(path);
  const all = { Host: "localhost", "x-ms-version": "2020-07-15", "x-ms-date": date, Authorization: sign(emulatorKey, verb, type, link, date), ...headers };
  return `${verb} ${path} HTTP/1.1\r\n${Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

async function until(what, holds, ms = 90_000) { // reached only on failure
  const end = performance.now() + ms;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `not within ${ms} ms: ${what}`);
    await sleep(20);
  }
}

async function metric(server, name) {
  const rest = new Rest({ server });
  const { text } = await rest.get("/metrics", { headers: { authorization: `Bearer ${emulatorKey}` } });
  rest.close();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  assert.ok(line, `${name} is one of the metrics`);
  return Number(line.split(" ").pop());
}

describe("connections", () => {
  let server;
  const sockets = [];
  const open = (options) => {
    const socket = new Socket(server, options);
    sockets.push(socket);
    return socket;
  };
  const start = async (...flags) => (server = await Server.start({ flags }));

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.close();
    await server.stop();
  });

  it("that are idle and unauthenticated keep nobody out", patient, async () => {
    await start("--max-connections", "300", "--unauthenticated-seconds", "300"); // connections are closed only when the limit is reached
    const early = open().write(signedRequest("/"));
    await until("the first answer", () => early.statuses.length === 1);
    const idle = Array.from({ length: 300 }, (_, i) => open().write(i % 3 ? unsigned : i % 2 ? "\x16\x03\x01" : "GET"));
    await Promise.all(idle.map((socket) => socket.connected()));
    await until("two hundred 401s, or an end", () => idle.every((socket, i) => !(i % 3) || socket.closed || socket.statuses[0] === 401));
    const rests = Array.from({ length: 20 }, () => new Rest({ server }));
    for (const rest of rests) assert.equal((await rest.get("/dbs")).status, 200); // each on its own connection
    assert.ok(idle.filter((socket) => !socket.closed).length >= 100, "they are only ended where there is need");
    early.write(signedRequest("/"));
    await until("the second answer", () => early.statuses.length === 2);
    assert.deepEqual([early.statuses, early.closed], [[200, 200], false]);
    for (const rest of rests) rest.close();
  });

  it("that do not authenticate end soon, the others stay", patient, async () => {
    await start("--unauthenticated-seconds", "3");
    const good = open().write(signedRequest("/"));
    const bad = [open(), open().write(unsigned), open().write("GET /dbs HTT"), open().write("\x16\x03\x01")];
    await until("all of them end", () => bad.every((socket) => socket.closed));
    await sleep(500);
    good.write(signedRequest("/"));
    await until("the second answer", () => good.statuses.length === 2);
    assert.deepEqual([good.statuses, good.closed], [[200, 200], false]);
  });

  it("past the limit are told so", patient, async () => {
    await start("--max-connections", "20");
    const good = Array.from({ length: 20 }, () => open().write(signedRequest("/")));
    await until("all answers", () => good.every((socket) => socket.statuses[0] === 200));
    const surplus = open().write(unsigned);
    await until("the refusal", () => surplus.closed);
    assert.deepEqual(surplus.statuses, [503]);
    assert.match(surplus.text, /as many connections as it may have/);
    for (const socket of good.splice(10)) socket.close();
    await until("room", async () => (await new Rest({ server }).get("/")).status === 200);
    assert.ok((await metric(server, 'tesela_connections_refused_total{limit="all"}')) >= 1);
    assert.match(server.stderr, /too many connections max=20/);
  });

  it("of one address have a limit of their own", patient, async () => {
    await start("--max-connections-per-address", "10");
    const good = Array.from({ length: 10 }, () => open().write(signedRequest("/")));
    await until("all answers", () => good.every((socket) => socket.statuses[0] === 200));
    const surplus = open().write(signedRequest("/"));
    await until("the refusal", () => surplus.closed);
    assert.deepEqual(surplus.statuses, [503]);
    for (const socket of good.splice(5)) socket.close();
    await until("room", async () => (await metric(server, "tesela_connections")) < 10);
    assert.ok((await metric(server, 'tesela_connections_refused_total{limit="address"}')) >= 1);
  });

  it("that send a body too slowly are ended", patient, async () => {
    await start("--slow-seconds", "1", "--least-rate", "200KB");
    const slow = open().write("POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n");
    const began = performance.now();
    await until("its end", async () => {
      slow.write("x".repeat(5000)); // progress, but too slow
      await sleep(80);
      return slow.closed;
    });
    assert.ok(slow.statuses.length === 0 || slow.statuses[0] === 408);
    assert.ok(performance.now() - began < 30_000); // at its pace, the body would take a minute
  });
});

describe("clients that do not read their answers", () => {
  const clients = sanitized ? 200 : 1000;
  const memory = 64 * 1024 ** 2;
  let server, rest;
  const sockets = [];
  const path = "/dbs/d/colls/c/docs";

  before(async () => {
    server = await Server.start({ flags: ["--memory-for-requests", "128MB", "--cache", "64MB", "--slow-seconds", "4"] }); // half of the memory is for responses
    rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], version: 2 } });
    const key = { headers: { "x-ms-documentdb-partitionkey": '["a"]' } };
    for (let i = 0; i < 4; i++) assert.equal((await rest.post(path, { id: `${i}`, pk: "a", s: `${i}`.repeat(950_000) }, key)).status, 201);
    assert.equal((await rest.post(path, { id: "small", pk: "a" }, key)).status, 201);
  });
  after(async () => {
    for (const socket of sockets) socket.close();
    rest.close();
    await server.stop();
  });

  it("are ended, though there is memory to spare", patient, async () => {
    const socket = new Socket(server, { paused: true }).write(signedRequest(path).repeat(3));
    sockets.push(socket);
    await until("the end of one", async () => (await metric(server, "tesela_slow_clients_total")) === 1);
    assert.equal(await metric(server, "tesela_answer_waiting_bytes"), 0);
    assert.equal((await rest.get(path)).status, 200, "who reads is not");
  });

  it("leave memory for others", patient, async () => {
    const page = await rest.get(path);
    assert.ok(page.bytes.length > 3_800_000);
    const before = residentBytes(server.child.pid);
    let most = 0;
    for (let i = 0; i < clients; i++) {
      sockets.push(new Socket(server, { paused: true }).write(signedRequest(path).repeat(3)));
      await sockets[i].connected();
      if (i % 50 === 0) {
        const small = await rest.get(`${path}/small`, { headers: { "x-ms-documentdb-partitionkey": '["a"]' } });
        assert.equal(small.status, 200);
        const large = await rest.get(path);
        assert.ok([200, 429, 503].includes(large.status), large.text.slice(0, 300)); // 429: the container's queue is full
        if (large.status !== 200) assert.ok(Number(large.headers["x-ms-retry-after-ms"]) > 0, "it says when to come again");
        most = Math.max(most, residentBytes(server.child.pid));
      }
    }
    await until("an answer that is refused", async () => {
      most = Math.max(most, residentBytes(server.child.pid));
      return (await metric(server, "tesela_memory_refused_total")) > 0;
    });
    assert.ok((await metric(server, "tesela_answer_waiting_bytes")) < 1.2 * memory);
    const slack = (sanitized ? 10 : 5) * memory; // for pages of workers, and memory that the allocator keeps
    assert.ok(most - before < 2 * memory + slack, `${Math.round((most - before) / 2 ** 20)} MB more than before`);
    await until("slow readers are ended", async () => (await metric(server, "tesela_slow_clients_total")) > 1);
    await until("a page", async () => (await rest.get(path)).status === 200);
    for (const socket of sockets) socket.close();
    await until("all of it comes back", async () => (await metric(server, "tesela_answer_waiting_bytes")) === 0);
  });

  it("or read the largest ones slowly, leave memory for others", patient, async () => {
    const reads = JSON.stringify(Array.from({ length: 15 }, (_, i) => ({ operationType: "Read", id: `${i % 4}` })));
    const batch = { "x-ms-documentdb-partitionkey": '["a"]', "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "Content-Length": reads.length };
    const before = await metric(server, "tesela_memory_refused_total");
    const readers = Array.from({ length: 6 }, () => new Socket(server, { paused: true }).write(signedRequest(path, batch, "POST") + reads));
    sockets.push(...readers);
    const timer = setInterval(() => readers.forEach(({ socket }) => socket.read(20_000) ?? socket.read()), 100); // 14 MB in 70 s
    const write = async () => (await rest.post(path, { id: "w", pk: "a", s: "x".repeat(30_000) }, { headers: { "x-ms-documentdb-partitionkey": '["a"]', "x-ms-documentdb-is-upsert": "True" } })).status;
    try {
      const refusals = () => metric(server, "tesela_memory_refused_total");
      await until("memory is scarce", async () => (await write()) === 503 || (await refusals()) > before);
      await until("a write goes through", async () => (await write()) < 300);
    } finally {
      clearInterval(timer);
      for (const socket of sockets) socket.close();
    }
  });
});
