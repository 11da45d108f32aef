// What the Table API shares with the rest of the server: throughput, splits, faults, metrics, restarts, hostile input.
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { TableClient, TableServiceClient } from "@azure/data-tables";
import { Rest as SqlRest } from "../sdk/server.js";
import { account, all, assert, emulatorKey, fails, refused, Server, suite } from "./harness.js";

suite("tables in the core", (t) => {
  let rest;
  const sql = () => (rest ??= new SqlRest({ server: t.server, version: "2020-07-15" }));
  const bare = { sign: false }; /* the admin API needs no key on loopback */
  after(() => rest?.close());

  t.it("have the throughput that was asked for, and split without a client's notice", async () => {
    const name = t.name();
    assert.equal((await t.rest.post("/Tables", { TableName: name }, { headers: { "x-ms-offer-throughput": "1000" } })).status, 201);
    const offers = (await sql().get("/offers")).json.Offers;
    const { _rid } = (await sql().get(`/dbs/TablesDB/colls/${name}`)).json;
    assert.equal(offers.find((offer) => offer.offerResourceId === _rid).content.offerThroughput, 1000);
    const client = t.client(name);
    for (let p = 0; p < 30; p++) await client.createEntity({ partitionKey: `p${String(p).padStart(2, "0")}`, rowKey: "r", n: p });
    const seen = [];
    let pages = 0;
    for await (const page of client.listEntities().byPage({ maxPageSize: 4 })) {
      seen.push(...page.map((e) => e.n));
      if (++pages === 2) {
        const ranges = (await sql().get(`/dbs/TablesDB/colls/${name}/pkranges`)).json.PartitionKeyRanges;
        const split = await sql().post("/_tesela/split", { database: "TablesDB", container: name, range: ranges[0].id, parts: 3 }, bare);
        assert.equal(split.status, 200, split.text);
      }
    }
    assert.deepEqual(seen, Array.from({ length: 30 }, (_, i) => i));
    assert.equal((await sql().get(`/dbs/TablesDB/colls/${name}/pkranges`)).json.PartitionKeyRanges.length, 3);
  });

  t.it("fail on demand, and are seen in metrics", async () => {
    const client = await t.table();
    await client.createEntity({ partitionKey: "p", rowKey: "r" });
    const fault = await sql().post("/_tesela/faults", { database: "TablesDB", container: client.tableName, status: 429, retryAfterMs: 1500, count: 1 }, bare);
    assert.equal(fault.status, 201, fault.text);
    const failed = await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`);
    refused(failed, 429, "TooManyRequests");
    assert.equal(failed.headers["retry-after"], "2");
    assert.equal(failed.headers["x-ms-retry-after-ms"], "1500");
    assert.ok(failed.headers["x-tesela-fault"]);
    assert.equal((await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`)).status, 200);
    const slow = await sql().post("/_tesela/faults", { database: "TablesDB", container: client.tableName, delayMs: 300, count: 1 }, bare);
    assert.equal(slow.status, 201, slow.text);
    const begun = performance.now();
    assert.equal((await t.rest.get(`/${client.tableName}()`)).status, 200);
    assert.ok(performance.now() - begun >= 290, "the answer came too early");
    for (let i = 0; i < 40; i++) await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`);
    const hot = (await sql().get(`/_tesela/hotkeys?database=TablesDB&container=${client.tableName}`, bare)).json;
    assert.equal(hot.byRu[0].key, '["p"]');
    assert.ok(hot.byRu[0].ruPerSecond > 1, JSON.stringify(hot));
    const metrics = (await sql().get("/metrics", bare)).text;
    assert.match(metrics, new RegExp(`tesela_range_requests_total\\{[^}]*${client.tableName}[^}]*\\} [1-9]`));
  });

  t.it("answer hostile bytes, and go on", async () => {
    const { tableName } = await t.table();
    for (const path of ["/%", "/%00", `/${tableName}(${"(".repeat(1000)}`, `/${tableName}()?$select=${"a,".repeat(3000)}`, `/${tableName}()?$filter=${"not%20".repeat(2000)}x`, `/${tableName}()?$filter=${"x%20eq%201%20or%20".repeat(800)}x%20eq%201`]) {
      const answer = await t.rest.get(path);
      assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 500), `${answer.status} for ${path.slice(0, 40)}`);
      if (answer.status !== 200) assert.ok(answer.json["odata.error"].code);
    }
    for (const body of [`{"PartitionKey":"p","RowKey":"r",${Array.from({ length: 5000 }, (_, i) => `"p${i}":1`).join()}}`, `${'{"a":'.repeat(500)}1${"}".repeat(500)}`, "\u0000", '{"PartitionKey":"\\ud800","RowKey":"r","a":"\\u0000"}']) {
      const answer = await t.rest.post(`/${tableName}`, body);
      assert.ok(answer.status === 201 || answer.status === 400, `${answer.status} ${answer.text}`);
    }
    if (t.scheme === "http") {
      for (const bytes of ["GET\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", `GET / HTTP/1.1\r\n${"a: b\r\n".repeat(5000)}\r\n`]) await sendRaw(t.port, bytes);
    }
    assert.equal((await t.rest.get("/Tables")).status, 200);
  });
});

// Sends bytes and waits until the server closes the connection.
function sendRaw(port, bytes) {
  return new Promise((done) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.end(bytes));
    socket.on("data", () => undefined);
    socket.on("error", done);
    socket.on("close", done);
  });
}

suite(
  "tables with little throughput",
  (t) => {
    t.it("refuse with 429 and a time to wait, and the SDK gets through", async () => {
      const client = await t.table();
      const insert = (i) => t.rest.post(`/${client.tableName}`, { PartitionKey: "p", RowKey: `${i}`, text: "x".repeat(2000) });
      const answers = []; /* in waves, since what is admitted at once is charged later */
      for (let wave = 0; wave < 3; wave++) answers.push(...(await Promise.all(Array.from({ length: 100 }, (_, i) => insert(wave * 100 + i)))));
      const throttled = answers.filter((answer) => answer.status === 429);
      assert.ok(throttled.length > 0 && throttled.length < 300, `${throttled.length} of 300`);
      for (const answer of throttled) {
        refused(answer, 429, "TooManyRequests");
        assert.ok(Number(answer.headers["retry-after"]) >= 1);
        assert.ok(Number(answer.headers["x-ms-retry-after-ms"]) >= 1);
      }
      const patient = new TableClient(t.base, client.tableName, t.credential, { ...t.options, retryOptions: { maxRetries: 10 } });
      await patient.createEntity({ partitionKey: "p", rowKey: "late" });
      const batch = Array.from({ length: 60 }, (_, i) => ["upsert", { partitionKey: "p", rowKey: `b${i}`, text: "x".repeat(2000) }]);
      const failures = [];
      for (let i = 0; i < 4; i++) await client.submitTransaction(batch).catch((e) => failures.push(e));
      assert.ok(failures.length > 0 && failures.every((e) => e.statusCode === 429), failures.map((e) => e.message).join("\n"));
    });
  },
  { flags: ["--throttling", "on"], schemes: ["http"] },
);

describe("a restart", () => {
  it("keeps tables, entities, policies and properties", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-table-"));
    const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
    const connect = (server) => `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${emulatorKey};TableEndpoint=http://${server.ready.table}/${account};`;
    const first = await Server.start({ data });
    const client = TableClient.fromConnectionString(connect(first), "Kept", options);
    await client.createTable();
    const { etag } = await client.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    await client.setAccessPolicy([{ id: "policy", accessPolicy: { permission: "r" } }]);
    await TableServiceClient.fromConnectionString(connect(first), options).setProperties({ hourMetrics: { version: "1.0", enabled: true, includeAPIs: false, retentionPolicy: { enabled: false } } });
    await first.stop();
    const second = await Server.start({ data });
    const again = TableClient.fromConnectionString(connect(second), "kept", options);
    const found = await again.getEntity("p", "r");
    assert.equal(found.n, 1);
    assert.equal(found.etag, etag);
    assert.equal((await again.getAccessPolicy())[0].id, "policy");
    assert.equal((await TableServiceClient.fromConnectionString(connect(second), options).getProperties()).hourMetrics.enabled, true);
    await second.stop();
    rmSync(data, { recursive: true, force: true });
  });
});
