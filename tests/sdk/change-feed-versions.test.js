// The change feed in all-versions-and-deletes mode, with the SDK's pull model: the form of changes, every scope, pages, continuations
// across restarts, splits and merges, expiry, the policy; and everything at once: writers, splits and readers of both modes, compared with
// the acknowledged writes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, CosmosClient, PartitionKeyKind } from "@azure/cosmos";
import { assert, emulatorKey, eventually, fails, Rest, Server, sleep, suite, withoutSystem } from "./harness.js";

const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10));
const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;

const open = (container, changeFeedStartFrom, options = {}) =>
  container.items.getChangeFeedIterator({ changeFeedMode, changeFeedStartFrom, ...options });

// Reads until the feed reports no changes; returns all changes and the continuation.
async function drain(iterator) {
  const changes = [];
  for (;;) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) return { changes, continuation: page.continuationToken };
    assert.equal(page.statusCode, 200);
    assert.equal(page.result.length, page.count);
    changes.push(...page.result);
  }
}

// Starts a feed and reads it once, so that it has a continuation.
async function begin(container, scope, options) {
  const iterator = open(container, ChangeFeedStartFrom.Now(scope), options);
  assert.deepEqual((await drain(iterator)).changes, []);
  return iterator;
}

const told = ({ current, previous, metadata }) => {
  const { operationType: kind, timeToLiveExpired: expired } = metadata;
  if (kind === "delete") assert.deepEqual(current, {});
  else assert.equal(previous, undefined);
  return [kind + (expired ? " by time" : ""), withoutSystem(kind === "delete" ? previous : current)];
};

async function everyKind(container, pk) {
  await container.items.create({ id: "1", pk, v: 1 });
  await container.items.upsert({ id: "1", pk, v: 2 });
  await container.item("1", pk).replace({ id: "1", pk, v: 3 });
  await container.item("1", pk).patch([{ op: "incr", path: "/v", value: 1 }]);
  await container.items.batch([{ operationType: "Create", resourceBody: { id: "2", pk } }, { operationType: "Delete", id: "1" }], pk);
  await container.items.upsert({ id: "1", pk, v: 5 });
  return [
    ["create", { id: "1", pk, v: 1 }],
    ["replace", { id: "1", pk, v: 2 }],
    ["replace", { id: "1", pk, v: 3 }],
    ["replace", { id: "1", pk, v: 4 }],
    ["create", { id: "2", pk }],
    ["delete", { id: "1", pk, v: 4 }],
    ["create", { id: "1", pk, v: 5 }],
  ];
}

suite("all versions and deletes", (t) => {
  t.it("tells every change of a container, in order, with what went before", async () => {
    const container = await t.container({ changeFeedPolicy });
    assert.deepEqual((await container.read()).resource.changeFeedPolicy, { retentionDuration: 10 });
    const feed = await begin(container);
    const made = await everyKind(container, "a");
    const { changes } = await drain(feed);
    assert.deepEqual(changes.map(told), made);
    const lsns = changes.map((change) => change.metadata.lsn);
    assert.deepEqual(lsns, [1, 2, 3, 4, 5, 5, 6], "the two of the batch share one");
    assert.deepEqual(changes.map((change) => change.metadata.previousImageLSN), [undefined, 1, 2, 3, undefined, 4, undefined]);
    const deleted = changes[5];
    assert.equal(deleted.metadata.id, "1");
    assert.deepEqual(deleted.metadata.partitionKey, { pk: "a" });
    assert.equal(deleted.metadata.timeToLiveExpired, false);
    assert.equal(deleted.previous._etag, changes[3].current._etag);
    for (const { metadata } of changes) assert.ok(Math.abs(metadata.crts - Date.now() / 1000) < 60);
    assert.deepEqual((await drain(feed)).changes, []);
  });

  t.it("of a partition key, of a feed range, of a prefix of a hierarchical key", async () => {
    const container = await t.container({ changeFeedPolicy }, { offerThroughput: 30_000 });
    const ofKey = await begin(container, "b");
    const ranges = await container.getFeedRanges();
    const ofRanges = await Promise.all(ranges.map((range) => begin(container, range)));
    const whole = await begin(container);
    const made = {};
    for (const pk of ["a", "b", "c", "d", "e"]) made[pk] = await everyKind(container, pk);
    assert.deepEqual((await drain(ofKey)).changes.map(told), made.b);
    const seen = { a: [], b: [], c: [], d: [], e: [] };
    for (const feed of ofRanges) for (const change of (await drain(feed)).changes) seen[told(change)[1].pk].push(told(change));
    assert.deepEqual(seen, made);
    const all = (await drain(whole)).changes.map(told);
    for (const pk in made) assert.deepEqual(all.filter((change) => change[1].pk === pk), made[pk]);

    const deep = await t.container({ changeFeedPolicy, partitionKey: { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 } });
    const ofTenant = await begin(deep, ["x"]);
    const ofUser = await begin(deep, ["x", 1]);
    for (const [tenant, user] of [["x", 1], ["y", 1], ["x", 2]]) await deep.items.create({ id: "1", tenant, user });
    await deep.item("1", ["x", 1]).delete();
    assert.deepEqual((await drain(ofTenant)).changes.map((c) => c.metadata.partitionKey ?? c.current.user), [1, 2, { tenant: "x", user: 1 }]);
    assert.deepEqual((await drain(ofUser)).changes.map((c) => c.metadata.operationType), ["create", "delete"]);
  });

  t.it("goes on from a continuation, in pages of any size", async () => {
    const container = await t.container({ changeFeedPolicy });
    const { continuation } = await drain(await begin(container));
    const made = await everyKind(container, "a");
    for (const maxItemCount of [1, 2, 3, 100]) {
      const feed = open(container, ChangeFeedStartFrom.Continuation(continuation), { maxItemCount });
      const first = await feed.readNext();
      assert.equal(first.count, Math.min(maxItemCount, made.length));
      const rest = await drain(open(container, ChangeFeedStartFrom.Continuation(first.continuationToken), { maxItemCount }));
      assert.deepEqual([...first.result, ...rest.changes].map(told), made);
    }
  });

  t.it("ends a page before 4 MB", async () => {
    const container = await t.container({ changeFeedPolicy, indexingPolicy: { indexingMode: "none", automatic: false } });
    const feed = await begin(container);
    for (let v = 0; v < 5; v++) await container.items.upsert({ id: "1", pk: "a", v, text: "x".repeat(1_500_000) });
    const counts = [];
    for (let page; (page = await feed.readNext()).statusCode === 200; ) counts.push(page.count);
    assert.deepEqual(counts, [2, 2, 1]);
  });

  t.it("tells what its ttl ended", async () => {
    const container = await t.container({ changeFeedPolicy, defaultTtl: -1 });
    const feed = await begin(container);
    await container.items.create({ id: "1", pk: "a", ttl: 1 });
    await container.items.create({ id: "2", pk: "a" });
    const changes = [];
    await eventually("the expiry is told", async () => {
      changes.push(...(await drain(feed)).changes.map(told));
      return changes.length > 2;
    });
    assert.deepEqual(changes, [
      ["create", { id: "1", pk: "a", ttl: 1 }],
      ["create", { id: "2", pk: "a" }],
      ["delete by time", { id: "1", pk: "a", ttl: 1 }],
    ]);
  });

  t.it("tells what scripts wrote, all of it or nothing", async () => {
    const container = await t.container({ changeFeedPolicy });
    const twice = (id, fails) => {
      const collection = getContext().getCollection();
      collection.createDocument(collection.getSelfLink(), { id, pk: "a", v: 1 }, (error, made) => {
        if (error) throw error;
        collection.replaceDocument(made._self, { id, pk: "a", v: 2 }, (failed) => {
          if (failed || fails) throw failed ?? new Error("on purpose");
        });
      });
    };
    await container.scripts.storedProcedures.create({ id: "twice", body: twice.toString() });
    const feed = await begin(container);
    await container.scripts.storedProcedure("twice").execute("a", ["1", false]);
    await fails(container.scripts.storedProcedure("twice").execute("a", ["2", true]), 400);
    await container.item("1", "a").delete();
    assert.deepEqual((await drain(feed)).changes.map(told), [
      ["create", { id: "1", pk: "a", v: 1 }],
      ["replace", { id: "1", pk: "a", v: 2 }],
      ["delete", { id: "1", pk: "a", v: 2 }],
    ]);
  });

  t.it("may not begin at the beginning or at a time, nor where there is no policy", async () => {
    const container = await t.container({ changeFeedPolicy });
    const text = "You must read the change feed from within the retention period.";
    await fails(open(container, ChangeFeedStartFrom.Beginning()).readNext(), 400, { text });
    await fails(open(container, ChangeFeedStartFrom.Time(new Date())).readNext(), 400, { text });
    const without = await t.container();
    await fails(open(without, ChangeFeedStartFrom.Now()).readNext(), 400, { text: "'All Versions and Deletes' mode must be enabled" });
    await fails(open(without, ChangeFeedStartFrom.Now("a")).readNext(), 400, { text: "'All Versions and Deletes' mode must be enabled" });
  });

  t.it("follows the policy: taken away, the log is gone; given again, it begins anew", async () => {
    const container = await t.container({ changeFeedPolicy });
    const { continuation } = await drain(await begin(container, "a"));
    await container.items.create({ id: "1", pk: "a" });
    const { resource } = await container.read();
    await container.replace({ ...resource, changeFeedPolicy: undefined });
    await fails(open(container, ChangeFeedStartFrom.Continuation(continuation)).readNext(), 400, { text: "must be enabled" });
    await container.items.create({ id: "2", pk: "a" });
    await container.replace(resource);
    await fails(open(container, ChangeFeedStartFrom.Continuation(continuation)).readNext(), 400, { text: "outside of its retention" });
    const feed = await begin(container, "a");
    await container.item("2", "a").delete();
    const { changes } = await drain(feed);
    assert.deepEqual(changes.map(told), [["delete", { id: "2", pk: "a" }]]);
    assert.equal(changes[0].metadata.previousImageLSN, 2, "of before there was a log");
  });
});

// ---- splits, merges, restarts ----

const bare = { headers: { authorization: `Bearer ${emulatorKey}` }, sign: false };

async function reshape(rest, command, body) {
  const answer = await rest.post(`/_tesela/${command}`, body, bare);
  return answer.status < 300;
}

const rangeIds = async (rest) => (await rest.get("/dbs/d/colls/c/pkranges")).json.PartitionKeyRanges;

// Splits or merges some range, whichever is possible.
async function change(rest, turn) {
  const ranges = (await rangeIds(rest)).sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
  const at = turn % ranges.length;
  const next = ranges[at + 1];
  if (ranges.length > 5 && next) await reshape(rest, "merge", { database: "d", container: "c", first: ranges[at].id, second: next.id });
  else await reshape(rest, "split", { database: "d", container: "c", range: ranges[at].id, parts: 2 });
}

// The acknowledged writes of each item; writes without an answer are not checked.
class Ledger {
  versions = new Map();
  note(pk, id, kind, v) {
    const name = `${pk}/${id}`;
    if (!this.versions.has(name)) this.versions.set(name, []);
    this.versions.get(name).push(`${kind} ${v}`);
  }
}

async function write(container, ledger, pk, rounds, isOver) {
  const v = new Map();
  for (let i = 0; i < rounds && !isOver(); i++) {
    const id = String(i % 3);
    const was = v.get(id);
    const now = `${pk}-${i}`;
    if (was === undefined) {
      await container.items.create({ id, pk, v: now });
      ledger.note(pk, id, "create", now);
      v.set(id, now);
    } else if (i % 7 === 6) {
      await container.item(id, pk).delete();
      ledger.note(pk, id, "delete", was);
      v.delete(id);
    } else {
      await container.items.upsert({ id, pk, v: now });
      ledger.note(pk, id, "replace", now);
      v.set(id, now);
    }
  }
  return v;
}

const newClient = (server) => new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey });

// Adds a page of versions to a ledger; checks that LSNs ascend within a key.
function noteAll(ledger, lsns, changes) {
  for (const { current, previous, metadata } of changes) {
    const { pk, id, v } = metadata.operationType === "delete" ? previous : current;
    ledger.note(pk, id, metadata.operationType, v);
    assert.ok(metadata.lsn > (lsns.get(pk) ?? 0), `${pk}: ${metadata.lsn} after ${lsns.get(pk)}`);
    lsns.set(pk, metadata.lsn);
  }
}

describe("all versions and deletes, while ranges are split and merged", () => {
  it("are told once, in order, through restarts too", { timeout: 180_000 }, async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-versions-"));
    let server = await Server.start({ data });
    let client = newClient(server);
    const { database } = await client.databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"], version: 2 }, changeFeedPolicy });
    let { continuation } = await drain(await begin(container));
    let { continuation: ofOne } = await drain(await begin(container, "key 1"));
    const made = new Ledger(), seen = new Ledger(), seenOfOne = new Ledger();
    const lsns = new Map(), lsnsOfOne = new Map();
    const keys = Array.from({ length: 12 }, (_, i) => `key ${i}`);
    for (let round = 0; round < 4; round++) {
      const rest = new Rest({ server });
      const now = client.database("d").container("c");
      for (let turn = 0; turn < 3; turn++) {
        await Promise.all(keys.map((pk) => write(now, made, `${pk}-${round}-${turn}`, 8, () => false)));
        await write(now, made, "key 1", 1, () => false).catch((error) => assert.equal(error.code, 409));
        await change(rest, round + turn);
      }
      const read = await drain(open(now, ChangeFeedStartFrom.Continuation(continuation), { maxItemCount: 10 }));
      noteAll(seen, lsns, read.changes);
      continuation = read.continuation;
      if (round % 2) {
        const one = await drain(open(now, ChangeFeedStartFrom.Continuation(ofOne)));
        noteAll(seenOfOne, lsnsOfOne, one.changes);
        ofOne = one.continuation;
      }
      rest.close();
      client.dispose();
      await server.stop();
      server = await Server.start({ data });
      client = newClient(server);
    }
    client.dispose();
    await server.stop();
    rmSync(data, { recursive: true, force: true });
    assert.deepEqual(Object.fromEntries([...seen.versions].sort()), Object.fromEntries([...made.versions].sort()));
    assert.deepEqual(seenOfOne.versions.get("key 1/0"), made.versions.get("key 1/0"));
  });

  it("agree with the acknowledged writes, and so do the latest versions, under load", { timeout: 180_000 }, async () => {
    const server = await Server.start({});
    const client = newClient(server);
    const rest = new Rest({ server });
    const { database } = await client.databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"], version: 2 }, changeFeedPolicy });
    const made = new Ledger(), seen = new Ledger();
    const lsns = new Map(), latest = new Map(), left = new Map();
    let writing = true, turns = 0;
    const isOver = () => turns >= 8 && made.versions.size > 50;

    const versions = await begin(container);
    const incremental = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    const writers = Array.from({ length: 4 }, async (_, i) => {
      for (let k = 0; !isOver(); k++) {
        const pk = `writer ${i} key ${k}`;
        left.set(pk, await write(container, made, pk, 40, isOver));
      }
    });
    const splitter = (async () => {
      for (; !isOver(); turns++) {
        await sleep(400);
        await change(rest, turns);
      }
    })();
    const readVersions = (async () => {
      for (let last = false; !last; ) {
        last = !writing;
        noteAll(seen, lsns, (await drain(versions)).changes);
        await sleep(100);
      }
    })();
    const readLatest = (async () => {
      for (let last = false; !last; ) {
        last = !writing;
        const { changes } = await drain(incremental);
        for (const { pk, id, v, _lsn } of changes) {
          assert.ok(_lsn > (latest.get(`${pk}/${id}`)?.lsn ?? 0), "each version once, in order");
          latest.set(`${pk}/${id}`, { v, lsn: _lsn });
        }
        await sleep(150);
      }
    })();
    await Promise.all([...writers, splitter]);
    writing = false;
    await Promise.all([readVersions, readLatest]);

    assert.deepEqual(Object.fromEntries([...seen.versions].sort()), Object.fromEntries([...made.versions].sort()));
    for (const [pk, items] of left) for (const [id, v] of items) assert.equal(latest.get(`${pk}/${id}`)?.v, v, `${pk}/${id}`);
    assert.ok(made.versions.size > 50, `${made.versions.size} items were written`);
    assert.ok((await rangeIds(rest)).some((range) => Number(range.id) > 4), "ranges were split");
    rest.close();
    client.dispose();
    await server.stop();
  });
});
