// The life cycle of a server: it starts, reports that it is ready, keeps its data, and stops.

import { connect } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, emulatorKey, key, guid, Rest, Server, run } from "./harness.js";

describe("a server", () => {
  let data;
  before(() => (data = mkdtempSync(join(tmpdir(), "tesela-life-"))));
  after(() => rmSync(data, { recursive: true, force: true }));

  it("says where it listens, in one line of JSON", async () => {
    const server = await Server.start();
    assert.equal(server.ready.ready, true);
    assert.match(server.ready.sql, /^127\.0\.0\.1:\d+$/);
    assert.equal(server.ready.pid, server.child.pid);
    await server.stop();
  });

  it("keeps everything over a stop and a start", async () => {
    const first = await Server.start({ data });
    const rest = new Rest({ server: first });
    await rest.post("/dbs", { id: "d" }, { headers: { "x-ms-offer-throughput": "500" } });
    const properties = { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, defaultTtl: 1000, uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/u"] }] } };
    await rest.post("/dbs/d/colls", properties, { headers: { "x-ms-offer-throughput": "40000" } });
    for (let i = 0; i < 50; i++) await rest.post("/dbs/d/colls/c/docs", { id: `${i}`, pk: `key ${i}`, u: i }, { headers: key(`key ${i}`) });
    await rest.delete("/dbs/d/colls/c/docs/7", { headers: key("key 7") });
    const see = async (through) => ({
      database: (await through.get("/dbs/d")).json,
      container: (await through.get("/dbs/d/colls/c")).json,
      ranges: (await through.get("/dbs/d/colls/c/pkranges")).json,
      offers: (await through.get("/offers")).json,
      items: (await through.get("/dbs/d/colls/c/docs")).json,
      usage: (await through.get("/dbs/d/colls/c")).headers["x-ms-resource-usage"],
    });
    const before = await see(rest);
    assert.equal(before.items._count, 49);
    rest.close();
    await first.stop();

    const second = await Server.start({ data });
    const again = new Rest({ server: second });
    assert.deepEqual(await see(again), before);
    const { json, headers } = await again.post("/dbs/d/colls/c/docs", { id: "7", pk: "key 7", u: 7 }, { headers: key("key 7") });
    assert.ok(!before.items.Documents.some((item) => item._rid === json._rid), "no number is given out twice");
    assert.match(headers["x-ms-session-token"], /^\d+:-1#\d+$/);
    assert.equal((await again.post("/dbs/d/colls/c/docs", { id: "other", pk: "key 7", u: 7 }, { headers: key("key 7") })).status, 409);
    again.close();
    await second.stop();
  });

  // They come from the first millisecond of the stop to its last, while everything closes.
  it("stops once, however often it is told to", async () => {
    const server = await Server.start({ data });
    const ended = server.ended;
    const again = setInterval(() => ["SIGTERM", "SIGINT"].forEach((signal) => server.child.kill(signal)), 1);
    const { code, signal } = await ended;
    clearInterval(again);
    assert.equal(signal ?? code, 0, server.stderr);
  });

  it("keeps its certificate", async () => {
    const first = await Server.start({ data });
    const certificate = await first.certificate();
    await first.stop();
    const second = await Server.start({ data });
    assert.equal(await second.certificate(), certificate);
    await second.stop();
  });

  it("shows another certificate when it is given one", async () => {
    const first = await Server.start({ data });
    const certificate = await first.certificate();
    await first.stop();
    const second = await Server.start({ flags: ["--tls-cert", join(data, "tls-cert.pem"), "--tls-key", join(data, "tls-key.pem")] });
    const rest = new Rest({ server: second, scheme: "https", ca: certificate });
    assert.equal((await rest.get("/")).status, 200);
    rest.close();
    await second.stop();
    const { code, stderr } = await run(["serve", "--data", data, "--sql-port", "0", "--tls-cert", join(data, "tls-cert.pem")]);
    assert.notEqual(code, 0);
    assert.match(stderr, /--tls-key/);
  });

  it("is alone on its data folder", async () => {
    const first = await Server.start({ data });
    const { code, stderr, stdout } = await run(["serve", "--data", data, "--sql-port", "0"]);
    assert.notEqual(code, 0);
    assert.equal(stdout, "");
    assert.match(stderr, /^tesela: .+\n$/);
    const rest = new Rest({ server: first });
    assert.equal((await rest.get("/")).status, 200);
    rest.close();
    await first.stop();
  });

  it("logs one line for each event, with a level", async () => {
    const server = await Server.start({ flags: ["--log-level", "debug"] });
    const rest = new Rest({ server });
    await rest.get("/dbs");
    await rest.get("/dbs", { key: Buffer.alloc(32).toString("base64") });
    rest.close();
    await server.stop();
    for (const line of server.stderr.trimEnd().split("\n")) assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warn|info|debug) +\w+: \S.*$/);
    assert.ok(!server.stderr.includes(emulatorKey.slice(0, 20)), "no key in the log");
  });

  it("takes its settings from the environment too, and flags go before", async () => {
    const server = await Server.start({ env: { TESELA_CONSISTENCY: "Eventual", TESELA_SQL_PORT: "1" } });
    const rest = new Rest({ server });
    assert.equal((await rest.get("/")).json.userConsistencyPolicy.defaultConsistencyLevel, "Eventual");
    rest.close();
    await server.stop();
  });

  it("makes several ranges of little throughput when told to", async () => {
    const server = await Server.start({ flags: ["--partition-max-throughput", "400"] });
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], version: 2 } }, { headers: { "x-ms-offer-throughput": "1000" } });
    assert.equal((await rest.get("/dbs/d/colls/c/pkranges")).json._count, 3);
    rest.close();
    await server.stop();
  });

  it("explains itself", async () => {
    const help = await run(["serve", "--help"]);
    assert.equal(help.code, 0);
    for (const flag of ["--data", "--sql-port", "--key-file", "--durability", "--tls-cert"]) assert.ok(help.stdout.includes(flag), flag);
    assert.match(help.stdout, /examples:/);
    const version = await run(["--version"]);
    assert.equal(version.code, 0);
    assert.match(version.stdout, /^tesela \d+\.\d+\.\d+/);
    const wrong = await run(["serve", "--nonsense"]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /nonsense/);
  });

  it("answers pipelined requests in order, on one connection", async () => {
    const server = await Server.start();
    const socket = connect(server.port, "localhost");
    socket.write("GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\nGET /dbs HTTP/1.1\r\nHost: localhost\r\n\r\nGET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const part of socket) text += part;
    assert.deepEqual([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status), ["200", "401", "200"]);
    await server.stop();
  });

  it("answers what is no HTTP in its own form, and goes on", async () => {
    const server = await Server.start();
    for (const junk of ["hello\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, `GET / HTTP/1.1\r\nX: ${"y".repeat(70_000)}\r\n\r\n`]) {
      const socket = connect(server.port, "localhost");
      socket.on("error", () => {});
      socket.write(junk);
      let text = "";
      for await (const part of socket) text += part;
      assert.match(text, /^HTTP\/1\.1 4\d\d /, JSON.stringify(junk.slice(0, 40)));
      const { code, message } = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
      assert.ok(code && message);
      assert.match(/x-ms-activity-id: (.*)\r\n/i.exec(text)[1], guid);
    }
    const rest = new Rest({ server });
    assert.equal((await rest.get("/")).status, 200);
    rest.close();
    await server.stop();
  });

  it("finishes what is in flight when it is told to stop", async () => {
    const server = await Server.start();
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    const writes = Array.from({ length: 30 }, (_, i) => rest.post("/dbs/d/colls/c/docs", { id: `${i}`, pk: "a" }, { headers: key("a") }).catch((error) => error));
    await writes[0];
    const stopped = server.stop();
    const answers = await Promise.all(writes);
    await stopped;
    rest.close();
    for (const answer of answers) assert.ok(answer.status === 201 || answer.status === 503 || answer instanceof Error, String(answer.status));
  });
});
