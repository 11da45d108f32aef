// All items of a partition key deleted at once, by the SDK's deleteAllItemsForPartitionKey.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, suite, key, Rest, Server } from "./harness.js";

const items = (pk, n) => Array.from({ length: n }, (_, i) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: `${i}`, pk, n: i } }));
const fill = async (container, pk, n) => {
  for (const { response } of await container.items.executeBulkOperations(items(pk, n))) assert.equal(response.statusCode, 201);
};
const stored = async (container) => Number(/documentsCount=(\d+)/.exec((await container.read({ populateQuotaInfo: true })).headers["x-ms-resource-usage"])[1]);
const all = async (container, query, options) => (await container.items.query(query, options).fetchAll()).resources;

suite("deleting by partition key", (t) => {
  t.it("hides all items of the key at once, and only these", async () => {
    const container = await t.container({}, { offerThroughput: 20000 });
    await fill(container, "gone", 300);
    await fill(container, "kept", 40);
    const { statusCode } = await container.deleteAllItemsForPartitionKey("gone");
    assert.equal(statusCode, 200);
    assert.equal((await container.item("7", "gone").read()).statusCode, 404);
    assert.deepEqual(await all(container, "SELECT VALUE COUNT(1) FROM c"), [40]);
    assert.deepEqual(await all(container, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0"), [40]);
    assert.deepEqual(await all(container, "SELECT VALUE SUM(c.n) FROM c", { partitionKey: "gone" }), [0]);
    assert.deepEqual(await all(container, "SELECT DISTINCT VALUE c.pk FROM c"), ["kept"]);
    assert.deepEqual(await all(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 0 LIMIT 1"), [39]);
    assert.equal((await container.items.readAll().fetchAll()).resources.length, 40);
    const changes = container.items.getChangeFeedIterator({ maxItemCount: 1000, changeFeedStartFrom: undefined });
    assert.equal((await changes.readNext()).result.filter((item) => item.pk === "gone").length, 0);
  });

  t.it("lets the key be used again while the old items are removed", async () => {
    const container = await t.container({}, { offerThroughput: 400 });
    await fill(container, "a", 20);
    await container.deleteAllItemsForPartitionKey("a");
    assert.equal((await container.items.create({ id: "3", pk: "a", again: true })).statusCode, 201);
    assert.equal((await container.items.upsert({ id: "4", pk: "a", again: true })).statusCode, 201, "there was none");
    assert.deepEqual(await all(container, "SELECT VALUE c.id FROM c WHERE c.pk = 'a'"), ["3", "4"]);
    await container.deleteAllItemsForPartitionKey("a");
    assert.deepEqual(await all(container, "SELECT VALUE c.id FROM c WHERE c.pk = 'a'"), []);
  });

  t.it("gives the space back afterwards", async () => {
    const container = await t.container();
    await fill(container, "a", 200);
    await container.deleteAllItemsForPartitionKey("a");
    const until = Date.now() + 20000;
    while ((await stored(container)) > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(await stored(container), 0);
  });
}, { flags: ["--throttling", "off"] });

describe("deleting by partition key", () => {
  let data;
  const servers = [];
  before(() => (data = mkdtempSync(join(tmpdir(), "tesela-wipe-"))));
  after(async () => {
    for (const server of servers) await server.stop();
    rmSync(data, { recursive: true, force: true });
  });

  it("goes on after a restart, at a tenth of the throughput", async () => {
    const first = await Server.start({ data });
    servers.push(first);
    const rest = new Rest({ server: first });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash" } }, { headers: { "x-ms-offer-throughput": "1000" } });
    const create = (id) => rest.post("/dbs/d/colls/c/docs", { id: `${id}`, pk: "a" }, { headers: key("a") });
    for (let i = 0; i < 600; i += 20) await Promise.all(Array.from({ length: 20 }, (_, k) => create(i + k))); // some seconds of work
    assert.equal((await rest.post("/dbs/d/colls/c/operations/partitionkeydelete", "", { headers: key("a") })).status, 200);
    rest.close();
    await first.stop();

    const second = await Server.start({ data });
    servers.push(second);
    const again = new Rest({ server: second });
    assert.equal((await again.get("/dbs/d/colls/c/docs/99", { headers: key("a") })).status, 404);
    assert.equal((await again.get("/dbs/d/colls/c/docs")).json._count, 0);
    const usage = async () => Number(/documentsCount=(\d+)/.exec((await again.get("/dbs/d/colls/c")).headers["x-ms-resource-usage"])[1]);
    const left = await usage();
    assert.ok(left > 0, "some are still to be removed");
    const until = Date.now() + 30000;
    while ((await usage()) > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(await usage(), 0);
    again.close();
  });
});
