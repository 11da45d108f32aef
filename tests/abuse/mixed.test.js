// Attackers of every kind at once, chosen by a seed, against a server with 2 GB of address space and throttling on. Meanwhile a victim in
// another container reads, pages and plans. TESELA_ABUSE_SECONDS=600 makes the test long; TESELA_ABUSE_SEED=… repeats a run.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { residentBytes, stopwatch } from "../sdk/processes.js";
import { Rest, Server, binary } from "../sdk/server.js";

const sanitized = /asan|tsan/.test(binary);
const seconds = Number(process.env.TESELA_ABUSE_SECONDS ?? 8);
const seed = Number(process.env.TESELA_ABUSE_SEED ?? 1);
const rssMax = (sanitized ? 4 : 1) * 1024 ** 3;
const victimMs = sanitized ? 10_000 : 2_000; // longest wait allowed: far above the benchmark's goal, since the machine is small and shared
const key = (value) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([value]) });
const queryFields = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const times = (n, f) => Array.from({ length: n }, (_, i) => f(i));

describe("all attacks at once", () => {
  let server, rest, token, open = true;

  // ---- the victim ----

  const victims = {
    "a point read": () => rest.get("/dbs/d/colls/victim/docs/i7", { headers: key("v7") }),
    "a page": () => rest.post("/dbs/d/colls/victim/docs", { query: "SELECT * FROM c WHERE c.n >= 50" }, { headers: queryFields }),
    "a feed": () => rest.get("/dbs/d/colls/victim/docs", { headers: { "x-ms-max-item-count": "20" } }),
    "a plan": () => rest.post("/dbs/d/colls/victim/docs", { query: "SELECT c.n FROM c ORDER BY c.n" }, { headers: { ...queryFields, "x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-supported-query-features": "OrderBy" } }),
    "a write": () => rest.post("/dbs/d/colls/victim/docs", { id: "w", pk: "w", n: 1 }, { headers: { ...key("w"), "x-ms-documentdb-is-upsert": "True" } }),
  };

  async function victim(name, seen) {
    while (open) {
      const elapsed = stopwatch(server.child.pid);
      const answer = await victims[name]();
      seen.push(elapsed());
      assert.ok([200, 201].includes(answer.status), `${name}: ${answer.status} ${answer.text.slice(0, 300)}`);
      await sleep(10);
    }
  }

  before(async () => {
    const under = sanitized ? [] : ["prlimit", "--as=2147483648"];
    server = await Server.start({ under, flags: ["--throttling", "on"] });
    rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    for (const [id, ru] of [["attacked", 4000], ["victim", 10000]]) {
      const made = await rest.post("/dbs/d/colls", { id, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } }, { headers: { "x-ms-offer-throughput": String(ru) } });
      assert.equal(made.status, 201, made.text);
    }
    await rest.post("/dbs/d/users", { id: "reader" });
    const permission = { id: "p", permissionMode: "Read", resource: "dbs/d/colls/attacked", resourcePartitionKey: ["a"] };
    token = (await rest.post("/dbs/d/users/reader/permissions", permission)).json._token;
    const put = async (to, item) => {
      for (let status = 429; status === 429; await sleep(status === 429 ? 50 : 0)) {
        ({ status } = await rest.post(`/dbs/d/colls/${to}/docs`, item, { headers: key(item.pk) }));
        assert.ok([201, 429].includes(status), String(status));
      }
    };
    for (const i of times(40, (n) => n)) await put("attacked", { id: `i${i}`, pk: "a", s: "x".repeat(20_000), n: times(300, (n) => n), o: { a: i } });
    for (const i of times(100, (n) => n)) await put("victim", { id: `i${i}`, pk: `v${i}`, n: i });
  });

  after(async () => {
    rest.close();
    await server.stop();
  });

  it(`for ${seconds} seconds, seed ${seed}`, { timeout: (seconds + 120) * 1000 }, async (t) => {
    const seen = Object.fromEntries(Object.keys(victims).map((name) => [name, []]));
    let peak = 0;
    const watch = (async () => {
      for (; open; await sleep(100)) peak = Math.max(peak, residentBytes(server.child.pid));
    })();
    const attackers = new Worker(new URL("attackers.mjs", import.meta.url), { workerData: { port: server.port, token, seed, n: 24 } });
    const attacked = new Promise((done, fail) => attackers.on("error", fail).on("exit", done));
    const end = () => (open && attackers.postMessage("end"), (open = false));
    const timer = setTimeout(end, seconds * 1000);
    try {
      await Promise.all([watch, attacked, ...Object.keys(victims).map((name) => victim(name, seen[name]))]);
    } finally {
      end();
      clearTimeout(timer);
    }
    for (const [name, list] of Object.entries(seen)) {
      list.sort((a, b) => a - b);
      const at = (part) => list[Math.min(list.length - 1, Math.floor(list.length * part))].toFixed(1);
      t.diagnostic(`${name}: ${list.length} times, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`);
      assert.ok(list.length > 5 && list.at(-1) < victimMs, `${name} waited ${at(1)} ms`);
    }
    t.diagnostic(`memory: ${(peak / 1024 ** 2).toFixed(0)} MB at most`);
    assert.ok(peak < rssMax, `${peak} bytes in memory`);
  });
});
