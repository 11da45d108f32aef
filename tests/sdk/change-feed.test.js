// The change feed in latest-version mode: the SDK's pull model with every start and scope, its older iterator, pages; and readers that
// follow a container that is written, split, merged and restarted.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ChangeFeedMode, ChangeFeedStartFrom, CosmosClient, PartitionKeyKind } from "@azure/cosmos";
import { assert, checkStamp, emulatorKey, eventually, key, refused, Rest, rounds, Server, sleep, suite, withoutSystem } from "./harness.js";
import { processorMs } from "./processes.js";

const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
const levels = { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 };
const names = (container) => ({ database: container.database.id, container: container.id });
const ids = (items) => items.map(({ id }) => id);
const sorted = (list) => [...list].sort();

// Reads pages until there are no new items; returns all items and the continuation.
async function drain(iterator) {
  const items = [];
  for (let page, n = 0; ; n++) {
    assert.ok(n < 5000, "it ends");
    page = await iterator.readNext();
    assert.ok(page.statusCode === 200 || page.statusCode === 304, `${page.statusCode}`);
    assert.equal(page.count, page.result.length);
    if (page.statusCode === 304) {
      assert.equal(page.count, 0);
      return { items, token: page.continuationToken, page };
    }
    items.push(...page.result);
  }
}

const feed = (container, start, options = {}) => container.items.getChangeFeedIterator({ changeFeedStartFrom: start, ...options });
const rangesOf = async (rest, container) => (await rest.get(`/dbs/${container.database.id}/colls/${container.id}/pkranges`)).json.PartitionKeyRanges;

async function bulk(container, items, operationType = "Upsert") {
  for (let i = 0; i < items.length; i += 1000) {
    const operations = items.slice(i, i + 1000).map((resourceBody) => ({ operationType, partitionKey: resourceBody.pk, resourceBody }));
    for (const { response, error } of await container.items.executeBulkOperations(operations)) assert.ok((response?.statusCode ?? error.code) < 300);
  }
}

// Splits or merges; retries, since the balancer may change the ranges concurrently.
async function reshape(rest, container, kind, tries = 5) {
  const ranges = await rangesOf(rest, container);
  if (kind === "merge" && ranges.length < 2) return;
  const at = Math.floor(Math.random() * (ranges.length - (kind === "merge" ? 1 : 0)));
  const body = kind === "split" ? { range: ranges[at].id } : { first: ranges[at].id, second: ranges[at + 1].id };
  const answer = await rest.post(`/_tesela/${kind}`, { ...names(container), ...body }, { sign: false });
  if (tries && answer.status !== 200) return reshape(rest, container, kind, tries - 1);
  assert.equal(answer.status, 200, answer.text);
}

suite("the change feed", (t) => {
  const create = (container, ...items) => Promise.all(items.map((item) => container.items.create(item)));
  const scopes = {
    "a container of one range": { body: { partitionKey: v2 } },
    "a container of four": { body: { partitionKey: v2, maxThroughput: 40_000 } },
  };

  for (const [name, { body }] of Object.entries(scopes)) {
    t.it(`of ${name}: from the beginning, from now, and on`, async () => {
      const container = await t.container(body);
      const now = feed(container, ChangeFeedStartFrom.Now());
      assert.equal((await now.readNext()).statusCode, 304);
      const items = Array.from({ length: 30 }, (_, i) => ({ id: `${i}`, pk: `key ${i % 7}`, n: i }));
      for (const item of items) await container.items.create(item);
      const beginning = feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 4 });
      const first = await drain(beginning);
      assert.deepEqual(sorted(ids(first.items)), sorted(ids(items)));
      for (const item of first.items) {
        checkStamp(item);
        assert.deepEqual(withoutSystem(item), items[Number(item.id)]);
        assert.ok(item._lsn > 0 && item._rid && item._self);
      }
      for (let k = 0; k < 7; k++) {
        const own = first.items.filter(({ pk }) => pk === `key ${k}`);
        assert.deepEqual(ids(own), items.filter(({ pk }) => pk === `key ${k}`).map(({ id }) => id), "each key in its order");
      }
      assert.deepEqual(sorted(ids((await drain(now)).items)), sorted(ids(items)));
      await container.item("3", "key 3").replace({ id: "3", pk: "key 3", n: 300 });
      await container.item("5", "key 5").delete();
      for (const iterator of [now, beginning, feed(container, ChangeFeedStartFrom.Continuation(first.token))]) {
        assert.deepEqual((await drain(iterator)).items.map(({ id, n }) => [id, n]), [["3", 300]]);
      }
    });
  }

  t.it("of a partition key, and of a feed range", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 30_000 });
    const items = Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, pk: i % 4 ? `key ${i % 4}` : i % 8 ? null : 7 }));
    for (const item of items) await container.items.create(item);
    for (const pk of ["key 1", "key 3", null, 7]) {
      const { items: found, token } = await drain(feed(container, ChangeFeedStartFrom.Beginning(pk), { maxItemCount: 3 }));
      assert.deepEqual(ids(found), items.filter((item) => item.pk === pk).map(({ id }) => id));
      assert.equal(JSON.parse(token).rid, (await container.read()).resource._rid);
      await container.items.upsert({ id: "new", pk });
      const next = await drain(feed(container, ChangeFeedStartFrom.Continuation(token)));
      assert.deepEqual(ids(next.items), ["new"]);
      await container.item("new", pk).delete();
    }
    assert.equal((await feed(container, ChangeFeedStartFrom.Beginning("nobody")).readNext()).statusCode, 304);
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, 3);
    const parts = [];
    for (const range of ranges) parts.push((await drain(feed(container, ChangeFeedStartFrom.Beginning(range)))).items);
    assert.ok(parts.filter((part) => part.length).length > 1);
    assert.deepEqual(sorted(ids(parts.flat())), sorted(ids(items)));
    for (const part of parts) assert.deepEqual(part.map(({ _lsn }) => _lsn), part.map(({ _lsn }) => _lsn).sort((a, b) => a - b));
  });

  t.it("of a hierarchical key and of its prefix", async () => {
    const container = await t.container({ partitionKey: levels, maxThroughput: 20_000 });
    for (let i = 0; i < 24; i++) await container.items.create({ id: `${i}`, tenant: `t${i % 3}`, user: `u${i % 4}` });
    const of = async (pk) => ids((await drain(feed(container, ChangeFeedStartFrom.Beginning(pk), { maxItemCount: 2 }))).items);
    assert.deepEqual(await of(["t1", "u2"]), ["10", "22"]);
    assert.deepEqual(await of(["t1"]), ["1", "4", "7", "10", "13", "16", "19", "22"]);
    assert.deepEqual(await of(["nobody"]), []);
  });

  t.it("from a time", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 20_000 });
    await create(container, { id: "1", pk: "a" }, { id: "2", pk: "b" });
    await sleep(2100);
    const time = new Date();
    await create(container, { id: "3", pk: "a" }, { id: "4", pk: "b" });
    await container.item("1", "a").replace({ id: "1", pk: "a", again: true });
    assert.deepEqual(sorted(ids((await drain(feed(container, ChangeFeedStartFrom.Time(time)))).items)), ["1", "3", "4"]);
    const one = feed(container, ChangeFeedStartFrom.Time(time, "b"));
    assert.deepEqual(ids((await drain(one)).items), ["4"]);
    await create(container, { id: "5", pk: "b" });
    assert.deepEqual(ids((await drain(one)).items), ["5"]);
    const later = feed(container, ChangeFeedStartFrom.Time(new Date(Date.now() + 3_600_000)));
    assert.equal((await later.readNext()).statusCode, 304);
    const early = await drain(feed(container, ChangeFeedStartFrom.Time(new Date(time - 3_600_000))));
    assert.equal(early.items.length, 5);
  });

  t.it("by the older iterator", async () => {
    const container = await t.container({ partitionKey: v2 });
    const now = container.items.changeFeed("a");
    assert.equal((await now.fetchNext()).statusCode, 304);
    for (let i = 0; i < 5; i++) await create(container, { id: `${i}`, pk: "a" });
    await create(container, { id: "other", pk: "b" });
    const all = container.items.changeFeed("a", { startFromBeginning: true, maxItemCount: 2 });
    const pages = [];
    for await (const page of all.getAsyncIterator()) pages.push(ids(page.result));
    assert.deepEqual(pages, [["0", "1"], ["2", "3"], ["4"]]);
    assert.equal(all.hasMoreResults, false);
    assert.deepEqual(ids((await now.fetchNext()).result), ["0", "1", "2", "3", "4"]);
    const { etag, headers } = await container.items.changeFeed("a", { startFromBeginning: true, maxItemCount: 3 }).fetchNext();
    assert.match(etag, /^"\d+"$/);
    assert.match(headers["x-ms-session-token"], /^0:-1#\d+$/);
    assert.deepEqual(ids((await container.items.changeFeed("a", { continuation: etag }).fetchNext()).result), ["3", "4"]);
    const since = container.items.changeFeed("a", { startTime: new Date(Date.now() - 60_000) });
    assert.equal((await since.fetchNext()).count, 5);
  });

  t.it("has the latest of what was changed often, once", async () => {
    const container = await t.container({ partitionKey: v2 });
    for (let n = 0; n < 20; n++) await container.items.upsert({ id: `${n % 3}`, pk: "a", n });
    await container.item("0", "a").patch([{ op: "add", path: "/patched", value: true }]);
    const batch = [{ operationType: "Create", resourceBody: { id: "in a batch", pk: "a" } }, { operationType: "Delete", id: "2" }];
    assert.equal((await container.items.batch(batch, "a")).code, 200);
    const { items } = await drain(feed(container, ChangeFeedStartFrom.Beginning()));
    assert.deepEqual(items.map(({ id, n, patched }) => [id, n, patched]), [["1", 19, undefined], ["0", 18, true], ["in a batch", undefined, undefined]]);
  });

  t.it("leaves out what is past its time to live", async () => {
    const container = await t.container({ partitionKey: v2, defaultTtl: -1 });
    await create(container, { id: "1", pk: "a", ttl: 1 }, { id: "2", pk: "a" });
    await eventually("it is gone", async () => ids((await drain(feed(container, ChangeFeedStartFrom.Beginning()))).items).join() === "2");
  });

  t.it("has pages of 4 MB at most", async () => {
    const container = await t.container({ partitionKey: v2, indexingPolicy: { indexingMode: "none" } });
    for (let i = 0; i < 6; i++) await container.items.create({ id: `${i}`, pk: "a", text: "x".repeat(1_500_000) });
    const iterator = feed(container, ChangeFeedStartFrom.Beginning("a"));
    const counts = [];
    for (let page; (page = await iterator.readNext()).statusCode === 200; ) counts.push(page.count);
    assert.deepEqual(counts, [2, 2, 2]);
    const answer = await t.rest.get(`/dbs/${container.database.id}/colls/${container.id}/docs`, { headers: { "a-im": "Incremental feed", "x-ms-max-item-count": "-1" } });
    assert.ok(answer.bytes.length <= 4 * 1024 * 1024 + 4096, `${answer.bytes.length} bytes`);
  });

  t.it("is refused without a signature", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    refused(await t.rest.get(`${path}/docs`, { headers: { "a-im": "Incremental feed" }, sign: false }), 401, { substatus: 5000 });
  });

  t.it("tells of a container that is gone, and of a token of another one", async () => {
    const container = await t.container({ partitionKey: v2 });
    const other = await t.container({ partitionKey: v2 });
    await create(container, { id: "1", pk: "a" });
    const iterator = feed(container, ChangeFeedStartFrom.Beginning());
    const { token } = await drain(iterator);
    await assert.rejects(feed(other, ChangeFeedStartFrom.Continuation(token)).readNext(), /not for the current container/);
    await container.delete();
    await assert.rejects(iterator.readNext(), (error) => error.code === 404);
  });

  t.it("of ranges that are split and merged goes on with what it has", async () => {
    const container = await t.container({ partitionKey: v2 });
    await bulk(container, Array.from({ length: 200 }, (_, i) => ({ id: `${i}`, pk: `key ${i % 23}`, round: 0 })));
    const iterator = feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 30 });
    const first = await iterator.readNext();
    assert.equal(first.count, 30);
    const latest = new Map(first.result.map((item) => [item.id, item.round]));
    let round = 0;
    for (const kind of ["split", "split", "merge", "split", "merge", "merge", "merge", "split"]) {
      await reshape(t.rest, container, kind);
      for (let i = 0; i < 20; i++, round++) {
        const id = (round * 37) % 200;
        await container.items.upsert({ id: `${id}`, pk: `key ${id % 23}`, round: round + 1 }); // not in bulk, where the SDK waits a second for each range that is gone
      }
      const page = await iterator.readNext();
      for (const item of page.result) {
        assert.ok(item.round > (latest.get(item.id) ?? -1), `item ${item.id} of round ${item.round} after round ${latest.get(item.id)}`);
        latest.set(item.id, item.round);
      }
    }
    for (const item of (await drain(iterator)).items) {
      assert.ok(item.round > (latest.get(item.id) ?? -1));
      latest.set(item.id, item.round);
    }
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(sorted(resources.map(({ id, round }) => `${id} ${round}`)), sorted([...latest].map(([id, round]) => `${id} ${round}`)));
    assert.equal(latest.size, 200);
  });

  t.it("is refused for a range that is gone, and its children take its etag", async () => {
    const container = await t.container({ partitionKey: v2 });
    await bulk(container, Array.from({ length: 60 }, (_, i) => ({ id: `${i}`, pk: `key ${i % 19}` })));
    const path = `/dbs/${container.database.id}/colls/${container.id}/docs`;
    const of = (range, etag, count = "-1") => t.rest.get(path, { headers: { "a-im": "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": range, "x-ms-max-item-count": count, ...(etag ? { "if-none-match": etag } : {}) } });
    const first = await of("0", undefined, "25");
    assert.equal(first.json._count, 25);
    await reshape(t.rest, container, "split");
    refused(await of("0", first.headers.etag), 410, { substatus: 1002 });
    const ranges = await rangesOf(t.rest, container);
    assert.equal(ranges.length, 2);
    const rest = [];
    for (const { id } of ranges) rest.push(...(await of(id, first.headers.etag)).json.Documents);
    assert.deepEqual(sorted([...ids(first.json.Documents), ...ids(rest)]), sorted(Array.from({ length: 60 }, (_, i) => `${i}`)));
  });
});

// Writers, an SDK reader that is now and then replaced by a new one with its token, splits and merges, and a restart of the server in the
// middle. For each key, versions must be seen in ascending order, and for each item the last version written must be the last one seen.
describe("a reader who follows", () => {
  const data = mkdtempSync(join(tmpdir(), "tesela-follow-"));
  let server, rest, client;
  const open = async () => {
    server = await Server.start({ data, flags: ["--merges", "off"] });
    rest = new Rest({ server });
    client = newClient();
  };
  const newClient = () => new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey, connectionPolicy: { enableBackgroundEndpointRefreshing: false } });
  const close = async () => {
    client.dispose();
    rest.close();
    await server.stop();
  };
  before(open);
  after(async () => {
    await close();
    rmSync(data, { recursive: true, force: true });
  });

  const written = new Map(); // id → the last acknowledged version
  const seen = new Map();
  let stops = false, version = 0, deliveries = 0, reads = 0;

  const containerOf = (by) => by.database("follow").container("c");
  const ofKey = new Map(); // key → the last version seen of any of its items
  const note = (items) => {
    for (const { id, pk, version: at } of items) {
      assert.ok(at > (ofKey.get(pk) ?? 0), `version ${at} of item ${id} after version ${ofKey.get(pk)} of its key`);
      ofKey.set(pk, at);
      seen.set(id, at);
      deliveries++;
    }
  };

  async function write(writer) {
    while (!stops) {
      const n = Math.floor(Math.random() * 120), id = `${writer}-${n}`, at = ++version;
      await containerOf(client).items.upsert({ id, pk: `${writer} ${n % 17}`, version: at });
      written.set(id, at); // each key has one writer, which writes one item at a time: versions ascend with the LSN
    }
  }

  async function follow(token) {
    let iterator, by, pages = 0;
    const renew = () => {
      by?.dispose();
      by = newClient();
      iterator = containerOf(by).items.getChangeFeedIterator({ changeFeedStartFrom: token ? ChangeFeedStartFrom.Continuation(token) : ChangeFeedStartFrom.Beginning(), maxItemCount: 40, changeFeedMode: ChangeFeedMode.LatestVersion });
    };
    renew();
    for (let quiet = 0; quiet < 2; ) {
      const page = await iterator.readNext();
      reads++;
      token = page.continuationToken;
      note(page.result);
      quiet = stops && page.statusCode === 304 ? quiet + 1 : 0;
      if (++pages % 25 === 0) renew();
    }
    by.dispose();
    return token;
  }

  // The SDK's reader follows one change of a range at a time: a range that was split and merged otherwise before it looked, it reads twice.
  async function turn() {
    const end = reads + 2 * (await rangesOf(rest, containerOf(client))).length;
    await eventually("the reader has been at each range", () => reads >= end);
  }

  it("sees every item's last version, in order, through splits, merges and a restart", async () => {
    const { database } = await client.databases.create({ id: "follow" });
    await database.containers.create({ id: "c", partitionKey: v2, throughput: 20_000 });
    let token;
    for (let life = 0; life < 2; life++) {
      stops = false;
      const work = [write("a"), write("b"), write("c"), follow(token)];
      for (const kind of ["split", "split", "merge", "split", "merge", "merge", "split"]) {
        await sleep(250);
        await reshape(rest, containerOf(client), kind);
        await turn();
      }
      await sleep(250);
      await eventually("much was written and seen", () => deliveries > 150 * (life + 1)); // takes longer on a slow machine
      stops = true;
      token = (await Promise.all(work)).at(-1);
      assert.deepEqual([...seen].sort(), [...written].sort());
      await close();
      await open();
    }
    assert.ok(deliveries > 300 && deliveries <= version, `${deliveries} of ${version} writes`);
  });
});

// The cost of a page does not depend on its position in the feed.
describe("a container of many items", () => {
  const many = rounds(50_000);
  const bulkFields = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0" };
  let server, rest, client, path;
  before(async () => {
    server = await Server.start({ flags: ["--durability", "relaxed"] });
    rest = new Rest({ server });
    client = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey, connectionPolicy: { enableBackgroundEndpointRefreshing: false } });
    const { database } = await client.databases.create({ id: "d" });
    await database.containers.create({ id: "c", partitionKey: v2, indexingPolicy: { indexingMode: "none" } });
    path = "/dbs/d/colls/c/docs";
    for (let i = 0; i < many; i += 100) {
      const body = Array.from({ length: 100 }, (_, j) => i + j).map((n) => {
        const resourceBody = { id: `${n}`, pk: n % 2 ? "one" : `key ${n}`, n };
        return { operationType: "Create", partitionKey: JSON.stringify([resourceBody.pk]), resourceBody };
      });
      const answer = await rest.post(path, body, { headers: bulkFields });
      assert.ok(answer.json.every(({ statusCode }) => statusCode === 201), answer.text);
    }
  });
  after(async () => {
    client.dispose();
    rest.close();
    await server.stop();
  });

  for (const [where, headers] of [["of the range", {}], ["of one large partition", key("one")]]) {
    it(`has pages ${where} at one price`, async () => {
      const cost = [];
      for (const from of [1, many / 2, many - 400]) {
        const before = processorMs(server.child.pid), charges = new Set();
        for (let turn = 0; turn < 25; turn++) {
          const answer = await rest.get(path, { headers: { "a-im": "Incremental feed", "if-none-match": `"${from}"`, "x-ms-max-item-count": "100", ...headers } });
          assert.equal(answer.json._count, 100);
          assert.ok(answer.json.Documents[0]._lsn > from && answer.json.Documents[0]._lsn < from + 10);
          charges.add(answer.charge);
        }
        assert.equal(charges.size, 1);
        cost.push({ ms: processorMs(server.child.pid) - before, charge: [...charges][0] });
      }
      assert.equal(new Set(cost.map(({ charge }) => charge)).size, 1, JSON.stringify(cost));
      assert.ok(cost[0].charge < 4, `${cost[0].charge} RU`);
      const least = Math.min(...cost.map(({ ms }) => ms)), most = Math.max(...cost.map(({ ms }) => ms));
      assert.ok(most < 4 * least + 50, `between ${least} and ${most} ms of processor time`);
    });
  }
});
