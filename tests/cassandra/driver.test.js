// driver.test.js — what the driver offers beside statements: traces, warnings, payloads, answers out of order, statements that outlive the server.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, cassandra, codes, emulatorKey, fails, portOf, Server, suite } from "./harness.js";

suite("the driver", (t) => {
  t.it("traces statements, prepared or not, batches and failures", async () => {
    const table = await t.table("(id int PRIMARY KEY, v text)");
    const insert = `INSERT INTO ${table} (id, v) VALUES (?, 'é')`;
    const written = await t.run(insert, [1], { prepare: true, traceQuery: true, consistency: cassandra.types.consistencies.quorum });
    const trace = await t.client.metadata.getTrace(written.info.traceId);
    assert.equal(trace.requestType, "EXECUTE");
    assert.equal(trace.parameters.query, insert);
    assert.equal(trace.parameters.consistency_level, "QUORUM");
    assert.ok(Number(trace.parameters.request_charge) > 0);
    assert.ok(trace.duration > 0 && trace.duration < 10_000_000, `${trace.duration} µs`);
    assert.ok(Math.abs(trace.startedAt - Date.now()) < 60_000);
    assert.equal(`${trace.clientAddress} ${trace.coordinator}`, "127.0.0.1 127.0.0.1");
    assert.deepEqual(trace.events.map((event) => event.activity.replace(/[\d.]+/, "#")), ["Received a message of # bytes", "Decoded EXECUTE", "Answered; charged # RU"]);
    const elapsed = trace.events.map((event) => event.elapsed);
    assert.deepEqual(elapsed, [...elapsed].sort((a, b) => a - b));
    assert.equal(elapsed[2], trace.duration);

    const read = await t.client.execute(`SELECT * FROM ${table} WHERE id = 1`, [], { traceQuery: true });
    assert.equal(read.first().v, "é");
    assert.equal((await t.client.metadata.getTrace(read.info.traceId)).requestType, "QUERY");
    const batch = await t.client.batch([insert.replace("?", "2"), insert.replace("?", "3")], { traceQuery: true });
    assert.equal((await t.client.metadata.getTrace(batch.info.traceId)).requestType, "BATCH");
    assert.equal((await t.run(`SELECT * FROM ${table}`)).info.traceId, undefined);

    await fails(t.client.execute(`SELECT nothing FROM ${table}`, [], { traceQuery: true }), codes.invalid, /Undefined column name nothing/);
    const events = await t.rows("SELECT activity FROM system_traces.events");
    assert.ok(events.some((event) => event.activity === "Failed with code 0x2200; charged 0.00 RU"));
  });

  t.it("keeps the newest traces, and of long statements the beginning", async () => {
    const table = await t.table("(id int PRIMARY KEY, v text)");
    const long = await t.client.execute(`INSERT INTO ${table} (id, v) VALUES (1, '${"é".repeat(3000)}')`, [], { traceQuery: true });
    const { parameters } = await t.client.metadata.getTrace(long.info.traceId);
    assert.ok(parameters.query.length > 450 && Buffer.byteLength(parameters.query) <= 1000);
    const results = await Promise.all(Array.from({ length: 600 }, (_, id) => t.run(`INSERT INTO ${table} (id) VALUES (?)`, [id], { prepare: true, traceQuery: true })));
    const kept = new Set((await t.rows("SELECT session_id FROM system_traces.sessions")).map((row) => row.session_id.toString()));
    assert.equal(kept.size, 512);
    assert.ok(!kept.has(long.info.traceId.toString()));
    assert.ok(results.filter((result) => kept.has(result.info.traceId.toString())).length >= 500);
  });

  t.it("gets warnings as Cassandra gives them", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    const warnings = async (cql) => (await t.run(cql)).info.warnings ?? [];
    assert.deepEqual(await warnings(`SELECT count(*) FROM ${table}`), ["Aggregation query used without partition key"]);
    assert.deepEqual(await warnings(`SELECT max(v) FROM ${table} WHERE p IN (1, 2)`), ["Aggregation query used on multiple partition keys (IN restriction)"]);
    for (const cql of [`SELECT count(*) FROM ${table} WHERE p = 1`, `SELECT count(*) FROM ${table} WHERE token(p) > 0`, `SELECT v FROM ${table}`]) assert.deepEqual(await warnings(cql), [], cql);
  });

  t.it("is refused consistency levels that a statement cannot have", async () => {
    const table = await t.table("(p int PRIMARY KEY, v int)");
    const { one, quorum, all, localQuorum, eachQuorum, serial, localSerial, localOne } = cassandra.types.consistencies;
    const run = (cql, options) => t.client.execute(cql, [], options);
    const select = `SELECT * FROM ${table}`, insert = `INSERT INTO ${table} (p, v) VALUES (1, 1)`;
    for (const consistency of [one, quorum, all, localQuorum, eachQuorum, localOne]) {
      await run(insert, { consistency });
      assert.equal((await run(select, { consistency })).rowLength, 1);
      await run(`${insert} IF NOT EXISTS`, { consistency, serialConsistency: localSerial });
    }
    for (const consistency of [serial, localSerial]) {
      assert.equal((await run(select, { consistency })).rowLength, 1);
      await fails(run(insert, { consistency }), codes.invalid, /You must use conditional updates for serializable writes/);
      await fails(run(`${insert} IF NOT EXISTS`, { consistency }), codes.invalid, /SERIAL is not supported as conditional update commit consistency/);
    }
    await fails(run(`${insert} IF NOT EXISTS`, { serialConsistency: quorum }), codes.invalid, /Must be one of SERIAL or LOCAL_SERIAL/);
  });

  t.it("goes on with its pages, and with prepared statements, after a column was added", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    for (let c = 0; c < 20; c++) await t.run(`INSERT INTO ${table} (p, c, v) VALUES (1, ?, ?)`, [c, c]);
    for (const [prepare, column] of [[false, "w"], [true, "x"]]) {
      const cql = `SELECT * FROM ${table} WHERE p = ${prepare ? "?" : "1"}`, params = prepare ? [1] : [];
      const seen = [];
      let page = await t.client.execute(cql, params, { prepare, fetchSize: 7 });
      await t.run(`ALTER TABLE ${table} ADD ${column} text`);
      for (;;) {
        seen.push(...page.rows.map((row) => row.c));
        if (!page.pageState) break;
        page = await t.client.execute(cql, params, { prepare, fetchSize: 7, pageState: page.pageState });
        assert.ok(page.columns.some(({ name }) => name === column), `${column} is not among the columns`);
      }
      assert.deepEqual(seen, [...Array(20).keys()]);
    }
  });

  t.it("pages limits, groups and partitions that are cut short", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    for (let i = 0; i < 60; i++) await t.run(`INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`, [i % 6, i, i]);
    const all = async (cql) => {
      const whole = (await t.client.execute(cql, [], { fetchSize: 0 })).rows.map((row) => row.values().join());
      for (const fetchSize of [1, 2, 3, 7]) {
        const rows = [];
        for await (const row of t.client.stream(cql, [], { prepare: true, fetchSize, autoPage: true })) rows.push(row.values().join());
        assert.deepEqual(rows, whole, `${cql} in pages of ${fetchSize}`);
      }
      return whole.length;
    };
    assert.equal(await all(`SELECT p, c FROM ${table} PER PARTITION LIMIT 3`), 18);
    assert.equal(await all(`SELECT p, c FROM ${table} PER PARTITION LIMIT 3 LIMIT 11`), 11);
    assert.equal(await all(`SELECT p, max(c), count(*) FROM ${table} GROUP BY p`), 6);
    assert.equal(await all(`SELECT p, c, sum(v) FROM ${table} GROUP BY p, c LIMIT 25`), 25);
    assert.equal(await all(`SELECT DISTINCT p FROM ${table}`), 6);
    assert.equal(await all(`SELECT c FROM ${table} WHERE p = 3 AND c > 9 ORDER BY c DESC LIMIT 5`), 5);
    assert.equal(await all(`SELECT p, c FROM ${table} WHERE p IN (1, 4, 2) LIMIT 23`), 23);
    assert.equal(await all(`SELECT p, c FROM ${table} WHERE v > 30 ALLOW FILTERING`), 29);
  });

  t.it("sets throughput by the payload of a request, and sees charges", async () => {
    const name = `${t.keyspace}.paid`;
    const customPayload = { cosmosdb_provisioned_throughput: Buffer.from("700") };
    const made = await t.client.execute(`CREATE TABLE ${name} (id int PRIMARY KEY)`, [], { customPayload });
    assert.ok(made.info.customPayload.RequestCharge.readDoubleBE(0) > 0);
    assert.equal((await throughputOf(t, name)).content.offerThroughput, 700);
    await t.client.execute(`ALTER TABLE ${name} WITH comment = 'x'`, [], { customPayload: { cosmosdb_provisioned_throughput: Buffer.from("900") } });
    assert.equal((await throughputOf(t, name)).content.offerThroughput, 900);
    const auto = `${t.keyspace}.auto`;
    await t.client.execute(`CREATE TABLE ${auto} (id int PRIMARY KEY)`, [], { customPayload: { cosmosdb_autoscale_max_throughput: Buffer.from("4000") } });
    assert.equal((await throughputOf(t, auto)).content.offerAutopilotSettings.maxThroughput, 4000);
    for (const wrong of ["x", "-5", "99999999999999999999"]) {
      const options = { customPayload: { cosmosdb_provisioned_throughput: Buffer.from(wrong) } };
      await fails(t.client.execute(`CREATE TABLE ${t.keyspace}.wrong (id int PRIMARY KEY)`, [], options), codes.configError, /throughput/i);
    }
  });

  t.it("gets answers of thousands of streams, each its own, quick ones before slow ones", async () => {
    await t.with({ pooling: { coreConnectionsPerHost: { 0: 1 }, maxRequestsPerConnection: 4000 } }, async (client) => {
      await client.connect();
      const table = await t.table("(p int, c int, v text, PRIMARY KEY (p, c))");
      const insert = `INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`;
      await Promise.all(Array.from({ length: 3000 }, (_, c) => client.execute(insert, [c % 7, c, `v${c}`.repeat(100)], { prepare: true })));
      const select = `SELECT v FROM ${table} WHERE p = ? AND c = ?`, order = [];
      await client.execute(select, [0, 0], { prepare: true });
      const slow = client.execute(`SELECT count(*), max(v) FROM ${table} WHERE v > 'a' ALLOW FILTERING`).then((result) => (order.push("slow"), result));
      const reads = await Promise.all(Array.from({ length: 3000 }, (_, c) => client.execute(select, [c % 7, c], { prepare: true }).finally(() => order.push(c))));
      reads.forEach((result, c) => assert.equal(result.first().v, `v${c}`.repeat(100)));
      assert.equal((await slow).first()["count"].toNumber(), 3000);
      assert.ok(order[0] !== "slow", "a read of one row did not wait for the scan");
    });
  });
});

async function throughputOf(t, table) {
  const { Rest } = await import("../sdk/server.js");
  const rest = new Rest({ server: t.server, version: "2020-07-15" });
  const [database, container] = table.split(".");
  const { json } = await rest.get(`/dbs/${database}/colls/${container}`);
  const offers = await rest.get("/offers");
  return offers.json.Offers.find((offer) => offer.offerResourceId === json._rid);
}

suite(
  "a server that starts again",
  (t) => {
    t.it("knows no statements: the driver prepares them again", async () => {
      const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
      let server = await Server.start({ data });
      const client = new cassandra.Client({
        contactPoints: [`127.0.0.1:${portOf(server)}`],
        localDataCenter: "datacenter1",
        authProvider: new cassandra.auth.PlainTextAuthProvider("localhost", emulatorKey),
      });
      try {
        await client.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        await client.execute("CREATE TABLE k.t (id int PRIMARY KEY, v int)");
        const insert = "INSERT INTO k.t (id, v) VALUES (?, ?)", select = "SELECT v FROM k.t WHERE id = ?";
        for (let id = 0; id < 5; id++) await client.execute(insert, [id, id], { prepare: true });
        assert.equal((await client.execute(select, [4], { prepare: true })).first().v, 4);
        const port = portOf(server);
        await server.stop();
        server = await Server.start({ data, flags: ["--cassandra-port", `${port}`] });
        let row;
        for (const until = Date.now() + 20000; !row && Date.now() < until; ) {
          row = (await client.execute(select, [3], { prepare: true }).catch(() => null))?.first();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        assert.equal(row?.v, 3);
        await client.execute(insert, [9, 9], { prepare: true });
        await client.batch([{ query: insert, params: [10, 10] }, { query: insert, params: [11, 11] }], { prepare: true });
        assert.equal((await client.execute(select, [11], { prepare: true })).first().v, 11);
      } finally {
        await client.shutdown();
        await server.stop();
        rmSync(data, { recursive: true, force: true });
      }
    });
  },
  { ways: ["plain"] },
);
