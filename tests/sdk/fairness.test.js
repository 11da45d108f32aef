// Fairness: heavy queries of one container alongside another's pages and plans, work of disconnected clients, full queues, the cost of
// failed work, and large writes alongside point reads.

import http from "node:http";
import { assert, suite, key, refused, rounds, sleep } from "./harness.js";
import { processorMs, stopwatch } from "./processes.js";
import { binary, emulatorKey, sign, signed } from "./server.js";

const sanitized = /asan|tsan/.test(binary);
const repeat = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const asQuery = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };

// Takes some thirty milliseconds for each item, so a page takes its full five seconds.
const heavy = { query: "SELECT VALUE COUNT(1) FROM c JOIN a IN c.a JOIN b IN c.a WHERE a + b < 0" };

async function fillHeavy(t, path) {
  const items = repeat(200, (i) => ({ id: `${i}`, pk: "x", a: repeat(600, (n) => n) }));
  for (const item of items) {
    const made = await t.rest.post(`${path}/docs`, item, { headers: key("x") });
    assert.equal(made.status, 201, made.text);
  }
}

const unindexed = { indexingPolicy: { indexingMode: "none", automatic: false } };

// Sends the heavy query n times, on its own connections. stop() disconnects without waiting for the answers.
function attack(t, path, n) {
  const clients = repeat(Math.ceil(n / 32), () => t.newRest());
  const state = { answers: [], pending: n };
  const end = (answer) => {
    state.pending--;
    if (answer) state.answers.push(answer);
  };
  for (let i = 0; i < n; i++) {
    clients[i % clients.length].post(`${path}/docs`, heavy, { headers: { ...asQuery, ...key("x") } }).then(end, () => end());
  }
  state.stop = () => clients.forEach((client) => client.close());
  return state;
}

// The number of jobs in a lane: running, preempted and waiting together.
async function workOf(t, lane) {
  const { text } = await t.rest.get("/metrics", { sign: false });
  const lines = text.split("\n").filter((line) => line.startsWith(`tesela_work{lane="${lane}"`));
  assert.equal(lines.length, 3, "there are three states");
  return lines.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
}

async function until(t, what, test) {
  const elapsed = stopwatch(t.server.child.pid);
  while (!(await test())) {
    assert.ok(elapsed() < (sanitized ? 30_000 : 5_000), `${what} did not come true`);
    await sleep(50);
  }
}

// How long a request takes, not counting the time that other programs had the processors.
const milliseconds = async (t, promise) => {
  const elapsed = stopwatch(t.server.child.pid);
  const answer = await promise;
  assert.equal(answer.status, 200, answer.text);
  return elapsed();
};

suite("fairness", (t) => {
  const plan = { ...asQuery, "x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-supported-query-features": "OrderBy" };
  const ordered = { query: "SELECT * FROM c ORDER BY c.id" };
  let heavyPath, lightPath;

  t.it("has its containers", async () => {
    heavyPath = await t.containerPath(unindexed);
    lightPath = await t.containerPath();
    await fillHeavy(t, heavyPath);
    for (let i = 0; i < 50; i++) await t.rest.post(`${lightPath}/docs`, { id: `${i}`, pk: "x" }, { headers: key("x") });
  });

  t.it("heavy queries make neither another container's pages wait nor any plan", async () => {
    const attackers = attack(t, heavyPath, 8);
    await sleep(300);
    const begun = performance.now();
    const slowest = { page: 0, plan: 0, "plan of the same container": 0 };
    for (let i = 0; i < 8; i++) {
      const asked = {
        page: t.rest.get(`${lightPath}/docs`, { headers: key("x") }),
        plan: t.rest.post(`${lightPath}/docs`, ordered, { headers: plan }),
        "plan of the same container": t.rest.post(`${heavyPath}/docs`, ordered, { headers: plan }),
      };
      for (const [what, promise] of Object.entries(asked)) slowest[what] = Math.max(slowest[what], await milliseconds(t, promise));
    }
    const attacked = attackers.pending;
    attackers.stop();
    assert.equal(attacked, 8, `the heavy ones were still at work; it took ${performance.now() - begun} ms`);
    for (const [what, ms] of Object.entries(slowest)) assert.ok(ms < (sanitized ? 10_000 : 1_500), `${what}: ${ms} ms`);
  });

  t.it("work of clients that left ends, begun or not", async () => {
    await until(t, "idle", async () => (await workOf(t, "pages")) === 0);
    const attackers = attack(t, heavyPath, 20);
    await until(t, "at work", async () => (await workOf(t, "pages")) === 20);
    attackers.stop();
    await until(t, "idle", async () => (await workOf(t, "pages")) === 0);
    const before = processorMs(t.server.child.pid);
    await sleep(1000);
    assert.ok(processorMs(t.server.child.pid) - before < 300, "the processors are idle");
    const { text } = await t.rest.get("/metrics", { sign: false });
    assert.ok(Number(/tesela_work_cancelled_total\{lane="pages"\} (\d+)/.exec(text)[1]) >= 20, "all were cancelled");
  });

  t.it("a full queue is refused at once, with a time", async () => {
    const attackers = attack(t, heavyPath, 300);
    await until(t, "refused", () => attackers.answers.length >= 36);
    const page = await milliseconds(t, t.rest.get(`${lightPath}/docs`, { headers: key("x") }));
    attackers.stop();
    const turnedAway = attackers.answers.slice(0, 36).filter(({ status }) => status === 429);
    assert.ok(turnedAway.length > 0, "some were refused"); // all of them, unless the machine is so busy that pages end before all requests were sent
    for (const answer of turnedAway) {
      refused(answer, 429, { substatus: 3092, text: "waiting for a worker" });
      assert.ok(Number(answer.headers["x-ms-retry-after-ms"]) > 0);
    }
    assert.ok(page < (sanitized ? 10_000 : 1_500), `another container's page: ${page} ms`);
    await until(t, "idle", async () => (await workOf(t, "pages")) === 0);
  });
});

suite(
  "the cost of failed work",
  (t) => {
    t.it("a query that takes too long costs what it did, and its container's share is spent", async () => {
      const path = await t.containerPath(unindexed, { offerThroughput: 400 });
      await t.rest.post(`${path}/docs`, { id: "1", pk: "x", a: repeat(1000, (n) => n) }, { headers: key("x") });
      const ask = () => t.rest.post(`${path}/docs`, heavy, { headers: { ...asQuery, ...key("x") } });
      const answers = await Promise.all(repeat(rounds(12), ask));
      for (const answer of answers.filter(({ status }) => status !== 429)) {
        assert.equal(answer.status, 408, answer.text);
        assert.ok(answer.charge > 90 && answer.charge < 200, `${answer.charge} RU`);
      }
      if (sanitized) return; // evaluation is so slow there that 400 RU/s cover its cost
      const read = await t.rest.get(`${path}/docs/1`, { headers: key("x") });
      assert.equal(read.status, 429);
      assert.equal(read.substatus, 3200);
    });

    t.it("a client that was told to wait and does not is refused later, not sooner", async () => {
      const path = await t.containerPath();
      const fault = { status: 429, count: 5, retryAfterMs: 5000, container: path.split("/").at(-1) };
      assert.equal((await t.rest.post("/_tesela/faults", fault, { sign: false })).status, 201);
      const client = t.newRest(); // uses one connection, since it sends one request at a time
      const read = async () => refused(await client.get(`${path}/docs/1`, { headers: key("x") }), 429, { substatus: 3200 });
      const begun = performance.now();
      await read();
      const first = performance.now() - begun;
      for (let i = 0; i < 4; i++) await read();
      const others = performance.now() - begun - first;
      client.close();
      assert.ok(others >= 900, `the first refusal took ${first} ms, four more ${others} ms`);
    });
  },
  { flags: ["--throttling", "on"] },
);

suite(
  "loops and large requests",
  (t) => {
    t.it("large writes are decoded and priced beside the loop", async () => {
      const path = await t.containerPath();
      const properties = Object.fromEntries(repeat(130_000, (i) => [`p${i}`, i % 7]));
      const bodies = repeat(sanitized ? 3 : 6, (i) => JSON.stringify({ id: `${i}`, pk: "x", ...properties }));
      const before = { all: processorMs(t.server.child.pid), loop: processorMs(t.server.child.pid, { mainThread: true }) };
      const answers = await Promise.all(bodies.map((body) => t.rest.post(`${path}/docs`, body, { headers: { ...key("x"), prefer: "return=minimal" } })));
      const spent = { all: processorMs(t.server.child.pid) - before.all, loop: processorMs(t.server.child.pid, { mainThread: true }) - before.loop };
      for (const answer of answers) assert.equal(answer.status, 201, answer.text.slice(0, 300));
      assert.ok(answers[0].charge > 1000, "every property is indexed, and paid for");
      assert.ok(spent.loop < 0.45 * spent.all, `${spent.loop} ms of ${spent.all} on the loop`);
    });

    t.it("answers of batches are written beside the loop, up to a length", async () => {
      const path = await t.containerPath();
      await t.rest.post(`${path}/docs`, { id: "1", pk: "x", s: "\u0001".repeat(340_000) }, { headers: key("x") }); // two megabytes as text
      const headers = { ...key("x"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
      const read = (n) => t.rest.post(`${path}/docs`, repeat(n, () => ({ operationType: "Read", id: "1" })), { headers });
      const before = { all: processorMs(t.server.child.pid), loop: processorMs(t.server.child.pid, { mainThread: true }) };
      for (let i = 0; i < rounds(10); i++) assert.equal((await read(10)).json[9].resourceBody.s.length, 340_000);
      const spent = { all: processorMs(t.server.child.pid) - before.all, loop: processorMs(t.server.child.pid, { mainThread: true }) - before.loop };
      assert.ok(spent.loop < 0.6 * spent.all, `${spent.loop} ms of ${spent.all} on the loop`);
      refused(await read(40), 413);
    });

    t.it("large requests are refused as small ones are", async () => {
      const path = await t.containerPath();
      const filler = "x".repeat(100_000);
      const bad = await t.rest.post(`${path}/docs`, `{"id":"1","pk":"x","s":"${filler}",}`, { headers: key("x") });
      refused(bad, 400, { text: "at byte 100" });
      const list = await t.rest.post(`${path}/docs`, JSON.stringify([filler]), { headers: key("x") });
      refused(list, 400, { text: "must be an object" });
      const nowhere = await t.rest.post(`${path}x/docs`, { id: "1", pk: "x", s: filler }, { headers: key("x") });
      refused(nowhere, 404, { substatus: 1003 });
      const long = await t.rest.post(`${path}/docs`, { query: `SELECT VALUE LENGTH('${filler}')` }, { headers: { ...asQuery, ...key("x") } });
      assert.deepEqual(long.json.Documents, [100_000]);
    });
  },
  { flags: ["--threads", "1"] },
);

suite("names that lead nowhere", (t) => {
  // Sends all but the last byte of a request, so that it can be completed instantly.
  function hold(path, body) {
    const date = new Date().toUTCString(), { type, link } = signed(path);
    const headers = { ...key("x"), "x-ms-version": "2020-07-15", "x-ms-date": date, authorization: sign(emulatorKey, "POST", type, link, date), "content-length": body.length };
    const request = http.request({ host: "localhost", port: t.server.port, method: "POST", path, headers, agent: false });
    const status = new Promise((done, fail) => request.on("error", fail).on("response", (answer) => answer.resume().on("end", () => done(answer.statusCode))));
    const sent = new Promise((done) => request.write(body.subarray(0, -1), done));
    return { status, sent, end: () => request.end(body.subarray(-1)) };
  }

  t.it("have no turns of their own: large bodies for many of them wait in one queue", async () => {
    const body = Buffer.from(`{"id":"1","pk":"x","n":[${"[],".repeat(100_000)}1]}`);
    const path = await t.containerPath();
    const held = repeat(120, (i) => hold(i % 2 ? `${path}-${i}/docs` : `/dbs/none-${i}/colls/c/docs`, body));
    await Promise.all(held.map((one) => one.sent));
    held.forEach((one) => one.end());
    const statuses = await Promise.all(held.map((one) => one.status));
    assert.ok(statuses.every((status) => status === 404 || status === 429), String(statuses));
    assert.ok(statuses.includes(429), "one queue takes 64");
  });
});

suite("scripts of clients that left", (t) => {
  t.it("are not begun", async () => {
    const path = await t.containerPath();
    const make = (id, body) => t.rest.post(`${path}/sprocs`, { id, body });
    await make("long", "function () { const end = Date.now() + 1500; while (Date.now() < end); }");
    await make("write", "function (id) { const c = getContext().getCollection(); c.upsertDocument(c.getSelfLink(), { id, pk: 'x' }); }");
    const run = (rest, id, ...values) => rest.post(`${path}/sprocs/${id}`, values, { headers: key("x") });
    assert.equal((await run(t.rest, "write", "before")).status, 200);
    const long = run(t.rest, "long"); // scripts of one partition key run one at a time
    await sleep(200);
    const leaving = t.newRest();
    const left = run(leaving, "write", "left").catch(() => undefined);
    await sleep(300);
    leaving.close();
    await left;
    assert.equal((await long).status, 200);
    assert.equal((await run(t.rest, "write", "after")).status, 200);
    const read = (id) => t.rest.get(`${path}/docs/${id}`, { headers: key("x") });
    assert.deepEqual([(await read("before")).status, (await read("left")).status, (await read("after")).status], [200, 404, 200]);
  });
});
