// Scale: deleting containers and databases with many items, and many containers. Each runs once, one over http and one over https.

import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, eventually, key, Rest, Server } from "./harness.js";

const operations = 100;
const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-documentdb-partitionkeyrangeid": "0" };

// Creates `count` small items by bulk requests, several at a time.
async function fill(rest, path, count, more = () => ({})) {
  const requests = Array.from({ length: count / operations }, (_, i) => i);
  const write = async () => {
    for (let i = requests.pop(); i !== undefined; i = requests.pop()) {
      const items = Array.from({ length: operations }, (_, j) => ({
        operationType: "Create",
        partitionKey: `["${j}"]`,
        resourceBody: { id: `${i}`, pk: `${j}`, ...more() },
      }));
      const answer = await rest.post(`${path}/docs`, items, { headers: { ...bulk, prefer: "return=minimal" } });
      assert.equal(answer.status, 200, answer.text.slice(0, 300));
    }
  };
  await Promise.all(Array.from({ length: 8 }, write));
  const { headers } = await rest.get(path);
  assert.match(headers["x-ms-resource-usage"], new RegExp(`documentsCount=${count};`));
}

// Bytes in the store's tables, some of which may be deleted meanwhile. The log is not counted, since it is bounded.
function tableBytes(folder) {
  const tables = readdirSync(join(folder, "db")).filter((name) => name.endsWith(".sst"));
  return tables.reduce((sum, name) => sum + (statSync(join(folder, "db", name), { throwIfNoEntry: false })?.size ?? 0), 0);
}

async function timed(request) {
  const started = performance.now();
  const answer = await request();
  return { answer, ms: performance.now() - started };
}

describe("100,000 items", () => {
  let server;
  before(async () => (server = await Server.start({ flags: ["--durability", "relaxed"] })));
  after(() => server?.stop());

  it("go with their container at once, and its name is free at once", async () => {
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    await fill(rest, "/dbs/d/colls/c", 100_000);
    const { answer, ms } = await timed(() => rest.delete("/dbs/d/colls/c"));
    assert.equal(answer.status, 204);
    assert.ok(ms < 100, `${ms} ms`);
    assert.equal((await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } })).status, 201);
    const { json, headers } = await rest.get("/dbs/d/colls/c/docs");
    assert.equal(json._count, 0);
    assert.equal(headers["x-ms-session-token"], "0:-1#0");
    assert.equal((await rest.post("/dbs/d/colls/c/docs", { id: "1", pk: "1" }, { headers: key("1") })).status, 201);
    rest.close();
  });

  it("go with their database as well, over https, and their space comes back", async () => {
    const rest = new Rest({ server, scheme: "https", ca: await server.certificate() });
    await rest.post("/dbs", { id: "e" });
    await rest.post("/dbs/e/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    await fill(rest, "/dbs/e/colls/c", 100_000, () => ({ text: randomBytes(600).toString("base64") }));
    const full = tableBytes(server.data);
    assert.ok(full > 20_000_000, `${full} bytes in tables`);
    const { answer, ms } = await timed(() => rest.delete("/dbs/e"));
    assert.equal(answer.status, 204);
    assert.ok(ms < 100, `${ms} ms`);
    assert.equal((await rest.post("/dbs", { id: "e" })).status, 201);
    assert.equal((await rest.get("/dbs/e/colls")).json._count, 0);
    await eventually("the space comes back", () => tableBytes(server.data) < 0.1 * full);
    rest.close();
  });
});

describe("10,000 containers", () => {
  it("work, and the server starts with them", async (t) => {
    let server = await Server.start({ flags: ["--durability", "relaxed"] });
    t.after(() => server.stop()); // stops the server even if the test fails
    const data = server.data;
    server.keeps = true;
    let rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    const numbers = Array.from({ length: 10_000 }, (_, i) => i);
    const create = async () => {
      for (let i = numbers.pop(); i !== undefined; i = numbers.pop()) {
        const answer = await rest.post("/dbs/d/colls", { id: `c${i}`, partitionKey: { paths: ["/pk"] } });
        assert.equal(answer.status, 201, answer.text);
      }
    };
    await Promise.all(Array.from({ length: 16 }, create));
    await rest.post("/dbs/d/colls/c1234/docs", { id: "1", pk: "a" }, { headers: key("a") });
    rest.close();
    await server.stop();

    server = await Server.start({ data });
    server.keeps = false;
    assert.ok(server.startMs < 2000, `${server.startMs} ms to start`);
    rest = new Rest({ server });
    assert.equal((await rest.get("/dbs/d/colls/c9999")).status, 200);
    assert.equal((await rest.get("/dbs/d/colls/c1234/docs/1", { headers: key("a") })).status, 200);
    let count = 0, continuation;
    do {
      const answer = await rest.get("/dbs/d/colls", { headers: continuation ? { "x-ms-continuation": continuation } : {} });
      count += answer.json._count;
      continuation = answer.headers["x-ms-continuation"];
    } while (continuation);
    assert.equal(count, 10_000);
    rest.close();
    await server.stop();
  });
});
