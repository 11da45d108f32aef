// Physical partitions: their number, how requests name them, and how they split and merge while clients are active.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, documentNumber, eventually, fails, key, refused, Rest, Server, sleep, suite } from "./harness.js";

const v1 = { paths: ["/pk"], kind: "Hash" };
const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
const hierarchical = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
const incremental = { "a-im": "Incremental feed" };
const byRange = (id) => ({ "x-ms-documentdb-partitionkeyrangeid": id });
const byEpk = (min, max) => ({ "x-ms-start-epk": min, "x-ms-end-epk": max, "x-ms-read-key-type": "EffectivePartitionKeyRange" });
const bulkTo = (id) => ({ "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True", ...byRange(id) });
const rids = (items) => items.map((item) => item._rid);
const sorted = (list) => [...list].sort();
const within = (value, least, most, what) => assert.ok(value >= least && value <= most, `${what}: ${value} is from ${least} to ${most}`);

const rangesOf = async (rest, path) => (await rest.get(`${path}/pkranges`)).json.PartitionKeyRanges;

// Reads one page of a feed; returns its items and the continuation.
async function page(rest, path, headers = {}, continuation = undefined, size = 7) {
  const more = continuation ? { "x-ms-continuation": continuation } : {};
  const answer = await rest.get(`${path}/docs`, { headers: { "x-ms-max-item-count": String(size), ...headers, ...more } });
  assert.equal(answer.status, 200, answer.text);
  return { items: answer.json.Documents, continuation: answer.headers["x-ms-continuation"], answer };
}

// Reads the rest of a feed. `between` runs after each page.
async function drain(rest, path, headers = {}, continuation = undefined, { size = 7, between = () => {} } = {}) {
  const items = [];
  do {
    const next = await page(rest, path, headers, continuation, size);
    items.push(...next.items);
    continuation = next.continuation;
    await between();
  } while (continuation);
  return items;
}

// Creates `keys` logical partitions of `each` items, by bare requests.
async function fill(rest, path, keys, each, more = {}) {
  const made = [];
  for (let i = 0; i < keys * each; i++) {
    const item = { id: `${Math.floor(i / keys)}`, pk: `key ${i % keys}`, ...more };
    const answer = await rest.post(`${path}/docs`, item, { headers: key(item.pk) });
    assert.equal(answer.status, 201, answer.text);
    made.push(answer.json);
  }
  return made;
}

// Changes the throughput with the official SDK and waits for the resulting number of ranges.
async function scale(container, throughput, ranges) {
  const { resource, offer } = await container.readOffer();
  const { resource: changed } = await offer.replace({ ...resource, content: { offerThroughput: throughput } });
  assert.equal(changed.content.offerThroughput, throughput);
  await eventually("no throughput change is pending", async () => (await offer.read()).headers["x-ms-offer-replace-pending"] === "false");
  if (ranges !== undefined) {
    const count = async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    await eventually(`${ranges} ranges`, async () => (await count()) === ranges);
  }
}

// An SDK client that records the status of each response ("201", "410/1002", …), except for query plans.
function watched(t, options = {}) {
  const seen = new Map();
  const note = (what) => seen.set(what, (seen.get(what) ?? 0) + 1);
  const plugin = async (context, diagnostics, next) => {
    const isPlan = context.headers["x-ms-cosmos-is-query-plan-request"];
    try {
      const response = await next(context);
      note(String(response.code));
      return response;
    } catch (error) {
      if (!isPlan) note(`${error.code}/${error.substatus ?? 0}`);
      throw error;
    }
  };
  const client = t.newClient({ plugins: [{ on: "request", plugin }], ...options });
  return { client, seen, container: (of) => client.database(of.database.id).container(of.id) };
}

suite("ranges", (t) => {
  t.it("are as many as the throughput needs, of equal width", async () => {
    const most = (1n << 126n) - 1n;
    for (const [throughput, n] of [[400, 1], [1000, 1], [1100, 2], [2900, 3], [7000, 7], [10_000, 10]]) {
      const path = await t.containerPath({ partitionKey: v2, throughput });
      const ranges = await rangesOf(t.rest, path);
      const bounds = Array.from({ length: n - 1 }, (_, i) => (BigInt(i + 1) * (most / BigInt(n))).toString(16).toUpperCase().padStart(32, "0"));
      assert.deepEqual(ranges.map((range) => range.minInclusive), ["", ...bounds]);
      assert.deepEqual(ranges.map((range) => range.maxExclusive), [...bounds, "FF"]);
      assert.deepEqual(ranges.map((range) => range.id), Array.from({ length: n }, (_, i) => `${i}`));
      for (const range of ranges) {
        assert.deepEqual(range.parents, []);
        assert.equal(range.status, "online");
        assert.ok(Math.abs(range.throughputFraction - 1 / n) < 1e-9, `${range.throughputFraction} of ${n}`);
      }
    }
  });

  t.it("are as many for the first hash, for hierarchical keys, for autoscale and for a share of a database", async () => {
    for (const body of [{ partitionKey: v1, throughput: 3500 }, { partitionKey: hierarchical, throughput: 3500 }, { partitionKey: v2, maxThroughput: 4000 }]) {
      assert.equal((await rangesOf(t.rest, await t.containerPath(body))).length, 4, JSON.stringify(body));
    }
    const { database } = await t.client.databases.create({ id: t.name(), throughput: 3500 });
    await database.containers.create({ id: "shares", partitionKey: v2 });
    await database.containers.create({ id: "own", partitionKey: v2, throughput: 400 });
    assert.equal((await rangesOf(t.rest, `/dbs/${database.id}/colls/shares`)).length, 4);
    assert.equal((await rangesOf(t.rest, `/dbs/${database.id}/colls/own`)).length, 1);
  });

  t.it("are read one at a time", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 3000 });
    const ranges = await rangesOf(t.rest, path);
    assert.deepEqual((await t.rest.get(`${path}/pkranges/2`)).json, ranges[2]);
    for (const id of ["3", "99999999999", "x"]) refused(await t.rest.get(`${path}/pkranges/${id}`), 404);
  });

  t.it("each have the items that were written to them", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 4000 });
    const container = new Map();
    for (let i = 0; i < 60; i++) {
      const answer = await t.rest.post(`${path}/docs`, { id: `${i}`, pk: `key ${i % 20}` }, { headers: key(`key ${i % 20}`) });
      const range = answer.headers["x-ms-documentdb-partitionkeyrangeid"];
      assert.match(answer.headers["x-ms-session-token"], new RegExp(`^${range}:-1#\\d+$`));
      container.set(answer.json._rid, range);
    }
    const { _rid } = (await t.rest.get(path)).json;
    for (const range of await rangesOf(t.rest, path)) {
      const own = [...container].filter(([, id]) => id === range.id).map(([rid]) => rid);
      assert.ok(own.length > 0, `range ${range.id} has items`);
      const ways = [byRange(range.id), byRange(`${_rid},${range.id}`), byEpk(range.minInclusive, range.maxExclusive)];
      ways.push({ ...byRange(range.id), ...byEpk("", "FF") });
      for (const way of ways) assert.deepEqual(rids(await drain(t.rest, path, way)), own, JSON.stringify(way));
      const query = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...byRange(range.id) };
      const queried = await t.rest.post(`${path}/docs`, { query: "SELECT * FROM c" }, { headers: query });
      assert.deepEqual(rids(queried.json.Documents), own);
    }
    for (const pk of ["key 3", "key 11"]) assert.equal((await drain(t.rest, path, key(pk))).length, 3);
  });

  t.it("that are not there, and EPK ranges that are none, are refused", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 2000 });
    const gone = { substatus: 1002, text: "The requested resource is no longer available at the server." };
    for (const id of ["2", "77", "4294967295"]) refused(await t.rest.get(`${path}/docs`, { headers: byRange(id) }), 410, gone);
    for (const id of ["x", "-1", "1.5", "99999999999999999999", ","]) refused(await t.rest.get(`${path}/docs`, { headers: byRange(id) }), 400);
    const one = [{ operationType: "Create", partitionKey: '["a"]', resourceBody: { id: "1", pk: "a" } }];
    refused(await t.rest.post(`${path}/docs`, one, { headers: bulkTo("2") }), 410, gone);
    for (const [min, max] of [["G", "FF"], ["0", "FF"], ["10", "0F"], ["10", "10"], ["FF", ""], ["AB".repeat(500), "FF"]]) {
      refused(await t.rest.get(`${path}/docs`, { headers: byEpk(min, max) }), 400, { text: "epk" });
    }
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 0);
  });

  t.it("are hashed alike by the SDK, whatever the key is", async () => {
    const values = ["a", "", "ñandú", "x".repeat(150), 0, 2, -1, 5.5, 12313.1221, 123456789, true, false, null, ...Array.from({ length: 40 }, (_, i) => `key ${i}`)];
    for (const partitionKey of [v1, v2]) {
      const container = await t.container({ partitionKey, throughput: 7000 });
      const operations = values.map((pk, i) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: `${i}`, pk } }));
      const results = await container.items.bulk(operations);
      assert.deepEqual(results.map((result) => result.statusCode), values.map(() => 201), JSON.stringify(partitionKey));
      await scale(container, 13_000, 13);
      const again = await container.items.bulk(values.map((pk, i) => ({ operationType: "Read", partitionKey: pk, id: `${i}` })));
      assert.deepEqual(again.map((result) => result.statusCode), values.map(() => 200));
    }
    const container = await t.container({ partitionKey: hierarchical, throughput: 7000 });
    const pairs = Array.from({ length: 60 }, (_, i) => [`tenant ${i % 7}`, i % 3 ? `user ${i}` : i]);
    const operation = ([tenant, user], i) => ({ operationType: "Create", partitionKey: [tenant, user], resourceBody: { id: `${i}`, tenant, user } });
    assert.ok((await container.items.bulk(pairs.map(operation))).every((result) => result.statusCode === 201));
    await scale(container, 13_000, 13);
    const reads = pairs.map((partitionKey, i) => ({ operationType: "Read", partitionKey, id: `${i}` }));
    assert.ok((await container.items.bulk(reads)).every((result) => result.statusCode === 200));
    const path = `${t.databasePath}/colls/${container.id}`;
    assert.deepEqual(sorted((await drain(t.rest, path, key("tenant 3"))).map((item) => item.id)), sorted(pairs.flatMap(([tenant], i) => (tenant === "tenant 3" ? [`${i}`] : []))));
  });
}, { flags: ["--partition-max-throughput", "1000"] });

// [RU/s, ranges]: with the service's limits one range gives 10,000 RU/s, and new ones are made for 6,000.
const countsAtCreation = async (t, counts, body) => {
  for (const [throughput, n] of counts) {
    assert.equal((await rangesOf(t.rest, await t.containerPath({ partitionKey: v2, ...body(throughput) }))).length, n, `${throughput} RU/s`);
  }
};

suite("ranges at creation", (t) => {
  t.it("leave room to grow if the throughput is manual", async () => {
    await countsAtCreation(t, [[400, 1], [6100, 1], [10_000, 1], [10_100, 2], [12_000, 2], [12_100, 3], [30_000, 5]], (throughput) => ({ throughput }));
  });

  t.it("are as few as give the throughput if it is autoscale or shared", async () => {
    await countsAtCreation(t, [[10_000, 1], [11_000, 2], [20_000, 2], [30_000, 3]], (maxThroughput) => ({ maxThroughput }));
    const { database } = await t.client.databases.create({ id: t.name(), throughput: 20_000 });
    await database.containers.create({ id: "shares", partitionKey: v2 });
    assert.equal((await rangesOf(t.rest, `/dbs/${database.id}/colls/shares`)).length, 2);
  });

  t.it("stay as they are while they can give the throughput", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 12_100 });
    await scale(container, 30_000, 3);
    await scale(container, 30_100, 4);
  });
});

suite("ranges at creation, made for fewer RU/s", (t) => {
  t.it("are more", () => countsAtCreation(t, [[2000, 1], [2100, 3], [4000, 4]], (throughput) => ({ throughput })));
}, { flags: ["--partition-max-throughput", "2000", "--partition-initial-throughput", "1000"] });

suite("the map of ranges", (t) => {
  t.it("is told in part to who has the rest, by ids that are never used again", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 20_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const read = (etag) => t.rest.get(`${path}/pkranges`, { headers: { ...incremental, ...(etag && { "if-none-match": etag }) } });
    const known = new Map(); // as in the .NET SDK: ids among any range's parents are gone
    const learn = (answer) => {
      for (const range of answer.json.PartitionKeyRanges) {
        assert.ok(!known.has(range.id), `${range.id} is new`);
        known.set(range.id, range);
      }
      for (const range of answer.json.PartitionKeyRanges) range.parents.forEach((id) => known.delete(id));
      return answer.headers.etag;
    };
    await fill(t.rest, path, 30, 2);
    let etag = learn(await read());
    const ever = new Set(known.keys());
    for (const [throughput, n] of [[50_000, 5], [60_000, 6], [1000, 1], [30_000, 3]]) {
      const before = etag;
      await scale(container, throughput, n);
      const changes = await read(before);
      assert.equal(changes.status, 200);
      assert.ok(changes.json._count <= n);
      for (const range of changes.json.PartitionKeyRanges) {
        assert.ok(!ever.has(range.id), `${range.id} was not there before`);
        assert.ok(range.parents.length > 0 && range.parents.every((id) => Number(id) < Number(range.id)), "older parents");
        ever.add(range.id);
      }
      etag = learn(changes);
      const all = await rangesOf(t.rest, path);
      assert.equal(all.length, n);
      assert.deepEqual(sorted(known.keys()), sorted(all.map((range) => range.id)), "what is left is the map");
      assert.deepEqual(all.map((range) => range.minInclusive), ["", ...all.slice(0, -1).map((range) => range.maxExclusive)]);
      assert.equal(all.at(-1).maxExclusive, "FF");
      const same = await read(etag);
      assert.equal(same.status, 304);
      assert.equal(same.headers.etag, etag);
      assert.equal(same.bytes.length, 0);
      const plain = await t.rest.get(`${path}/pkranges`, { headers: { "if-none-match": before } });
      assert.equal(plain.json._count, n, "without A-IM all of them");
    }
    for (const strange of ['"x"', '"4294967296"', "7", '""', '"-1"']) assert.equal((await read(strange)).json._count, 3, strange);
  });

  t.it("has children list all of their ancestors", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, 20, 1);
    const ancestors = new Map();
    for (const [throughput, n] of [[20_000, 2], [40_000, 4], [80_000, 8]]) {
      const before = await rangesOf(t.rest, path);
      await scale(container, throughput, n);
      for (const range of await rangesOf(t.rest, path)) {
        const parent = before.find((old) => old.minInclusive <= range.minInclusive && range.maxExclusive <= old.maxExclusive);
        if (parent.id !== range.id) assert.deepEqual(sorted(range.parents), sorted([...parent.parents, parent.id]));
        ancestors.set(range.id, range.parents);
      }
    }
    assert.ok([...ancestors.values()].some((parents) => parents.length >= 3), "a third generation");
  });

  t.it("is cut where the data is, not in the middle of the hash space", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    // Three light keys and one heavy one; all keys below are in the first half of the hash space.
    const low = [];
    for (let i = 0; low.length < 8; i++) {
      const pk = `k${i}`;
      await t.rest.post(`${path}/docs`, { id: "1", pk }, { headers: key(pk) });
      if ((await page(t.rest, path, { ...key(pk), ...byEpk("", "20") })).items.length) low.push(pk);
      else await t.rest.delete(`${path}/docs/1`, { headers: key(pk) });
    }
    await scale(container, 20_000, 2);
    const counts = [];
    for (const range of await rangesOf(t.rest, path)) counts.push((await drain(t.rest, path, byRange(range.id))).length);
    assert.deepEqual(counts, [4, 4]);
  });

  t.it("has one range for one logical partition's items, whatever the throughput", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, 1, 20);
    await scale(container, 40_000, 4);
    const counts = [];
    for (const range of await rangesOf(t.rest, path)) counts.push((await drain(t.rest, path, byRange(range.id))).length);
    assert.deepEqual(sorted(counts), [0, 0, 0, 20]);
  });
});

suite("a split and a merge", (t) => {
  t.it("leave every item where it can be read, in order, once", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const made = await fill(t.rest, path, 40, 3);
    for (const [throughput, n] of [[50_000, 5], [70_000, 7], [1000, 1], [20_000, 2]]) {
      await scale(container, throughput, n);
      const whole = await drain(t.rest, path, {}, undefined, { size: 50 });
      assert.deepEqual(sorted(whole.map((item) => JSON.stringify(item))), sorted(made.map((item) => JSON.stringify(item))), `${n} ranges`);
      const parts = [];
      for (const range of await rangesOf(t.rest, path)) {
        const items = await drain(t.rest, path, byRange(range.id));
        const numbers = items.map((item) => documentNumber(item._rid));
        assert.deepEqual(numbers, [...numbers].sort((a, b) => (a < b ? -1 : 1)), "in creation order");
        parts.push(...items);
      }
      assert.deepEqual(rids(parts), rids(whole), "the feed is that of the ranges");
      for (const pk of ["key 0", "key 17", "key 39"]) assert.deepEqual((await drain(t.rest, path, key(pk))).map((item) => item.id), ["0", "1", "2"]);
    }
    const { headers } = await t.rest.get(path);
    assert.match(headers["x-ms-resource-usage"], /documentsCount=120;/);
  });

  t.it("tell who names a range that is gone, and nobody else", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, 20, 1);
    await scale(container, 30_000, 3);
    const gone = { substatus: 1002, text: "no longer available" };
    refused(await t.rest.get(`${path}/docs`, { headers: byRange("0") }), 410, gone);
    refused(await t.rest.get(`${path}/pkranges/0`), 404);
    const create = [{ operationType: "Create", partitionKey: '["key 1"]', resourceBody: { id: "new", pk: "key 1" } }];
    refused(await t.rest.post(`${path}/docs`, create, { headers: bulkTo("0") }), 410, gone);
    refused(await t.rest.get(`${path}/docs/new`, { headers: key("key 1") }), 404);
    const query = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...byRange("0") };
    refused(await t.rest.post(`${path}/docs`, { query: "SELECT * FROM c" }, { headers: query }), 410, gone);
    assert.equal((await t.rest.get(`${path}/docs`, { headers: key("key 1") })).json._count, 1);
    assert.equal((await container.item("0", "key 5").read()).statusCode, 200);
  });

  // On 410/1002 the SDK's bulk and executeBulkOperations read the ranges again and send the remaining operations to the new ones.
  t.it("are unknown to users of the SDK's bulk, which recovers by itself", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const { client, seen, container: through } = watched(t);
    const stale = through({ id: container.id, database: t.database });
    const operations = (word, n) => Array.from({ length: n }, (_, i) => ({ operationType: "Create", partitionKey: `key ${i}`, resourceBody: { id: word, pk: `key ${i}` } }));
    const codes = async (word, n) => new Set((await stale.items.bulk(operations(word, n))).map((result) => result.statusCode));
    assert.deepEqual(await codes("first", 60), new Set([201]));
    assert.equal(seen.get("410/1002"), undefined);
    for (const [word, throughput, n] of [["split", 50_000, 5], ["merged", 1000, 1], ["again", 20_000, 2]]) {
      await scale(container, throughput, n);
      const before = seen.get("410/1002") ?? 0;
      assert.deepEqual(await codes(word, 60), new Set([201]));
      assert.ok(seen.get("410/1002") > before, `the client met a range that is gone: ${[...seen]}`);
    }
    await scale(container, 50_000, 5);
    assert.deepEqual(await codes("few", 2), new Set([201]), "also with less than one operation for each new range");
    await scale(container, 1000, 1);
    const before = seen.get("410/1002");
    const results = await stale.items.executeBulkOperations(operations("executed", 60));
    assert.deepEqual(new Set(results.map((result) => result.response?.statusCode ?? result.error?.code)), new Set([201]));
    assert.ok(seen.get("410/1002") > before);
    assert.deepEqual(sorted([...seen.keys()].filter((status) => status >= "400")), ["410/1002"], "and nothing else went wrong");
    const { resources } = await stale.items.readAll().fetchAll();
    assert.equal(new Set(rids(resources)).size, 302);
    assert.equal(resources.length, 302);
    client.dispose();
  });

  t.it("do not invalidate session tokens, which never go back", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 20_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const lsn = (answer) => Number(/#(\d+)$/.exec(answer.headers["x-ms-session-token"])[1]);
    const write = (id) => t.rest.put(`${path}/docs/0`, { id: "0", pk: "key 3", id2: id }, { headers: key("key 3") });
    const { client, seen, container: through } = watched(t);
    const session = through({ id: container.id, database: t.database });
    await fill(t.rest, path, 10, 4);
    const tokens = [(await write("a")).headers["x-ms-session-token"]];
    let last = lsn(await write("b"));
    await session.items.upsert({ id: "mine", pk: "key 3", n: 0 });
    for (const [throughput, n] of [[50_000, 5], [1000, 1], [30_000, 3]]) {
      await scale(container, throughput, n);
      for (const token of tokens) {
        const headers = { "x-ms-session-token": token };
        assert.equal((await t.rest.get(`${path}/docs/0`, { headers: { ...headers, ...key("key 3") } })).status, 200, token);
        assert.equal((await t.rest.get(`${path}/docs`, { headers })).status, 200, token);
      }
      const { resource } = await session.item("mine", "key 3").read();
      await session.items.upsert({ ...resource, n: resource.n + 1 });
      const answer = await write(`${n}`);
      assert.ok(lsn(answer) > last, `${lsn(answer)} is after ${last}`);
      last = lsn(answer);
      tokens.push(answer.headers["x-ms-session-token"], [...tokens, answer.headers["x-ms-session-token"]].join());
      const range = answer.headers["x-ms-documentdb-partitionkeyrangeid"];
      const ahead = { "x-ms-session-token": `${range}:-1#${last + 1000}`, ...key("key 3") };
      refused(await t.rest.get(`${path}/docs/0`, { headers: ahead }), 404, { substatus: 1002 });
    }
    assert.equal((await session.item("mine", "key 3").read()).resource.n, 3);
    assert.equal(seen.get("404/1002"), undefined, "no session was unavailable");
    client.dispose();
  });

  t.it("do not disturb feeds: continuations of before are good after", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 20_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const made = await fill(t.rest, path, 25, 4);
    const scopes = [{}, byEpk("", "1800"), byEpk("08", "3300"), key("key 4")];
    const begin = async () => {
      const begun = [];
      for (const scope of scopes) {
        const whole = rids(await drain(t.rest, path, scope));
        const first = await page(t.rest, path, scope, undefined, scope === scopes[3] ? 2 : 7);
        assert.ok(first.continuation, JSON.stringify(scope));
        begun.push({ scope, whole, seen: rids(first.items), continuation: first.continuation });
      }
      return begun;
    };
    const finish = async (begun, when) => {
      for (const { scope, whole, seen, continuation } of begun) {
        const rest = rids(await drain(t.rest, path, scope, continuation));
        assert.deepEqual(sorted([...seen, ...rest]), sorted(whole), `${when}: ${JSON.stringify(scope)}`);
      }
    };
    const first = await begin();
    await scale(container, 70_000, 7);
    await finish(first, "after a split");
    const second = await begin();
    await scale(container, 1000, 1);
    await finish(first, "after a split and a merge");
    await finish(second, "after a merge");
    const third = await begin();
    await scale(container, 40_000, 4);
    for (const begun of [first, second, third]) await finish(begun, "after another split");
    assert.equal(made.length, 100);
  });

  t.it("may come between any two pages of a feed", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const made = await fill(t.rest, path, 30, 3);
    const steps = [20_000, 50_000, 70_000, 1000, 30_000, 1000, 90_000, 20_000, 40_000];
    let i = 0;
    const items = await drain(t.rest, path, {}, undefined, { size: 8, between: () => scale(container, steps[i++ % steps.length]) });
    assert.equal(items.length, 90);
    assert.deepEqual(sorted(rids(items)), sorted(rids(made)));
    const iterator = container.items.readAll({ maxItemCount: 8 });
    const found = [];
    while (iterator.hasMoreResults()) {
      const { resources } = await iterator.fetchNext();
      found.push(...(resources ?? []));
      await scale(container, steps[i++ % steps.length]);
    }
    assert.equal(found.length, 90);
    assert.deepEqual(sorted(rids(found)), sorted(rids(made)));
  });

  // As the SDKs' query producers do: the rest of a split range is read from its children with its continuation; the rest of a merged range
  // is read from the new range, within the old bounds.
  t.it("let who read a range go on with its successors", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 20_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, 25, 4);
    const begin = async () => {
      const begun = [];
      for (const range of await rangesOf(t.rest, path)) {
        const whole = rids(await drain(t.rest, path, byRange(range.id)));
        const { items, continuation } = await page(t.rest, path, byRange(range.id), undefined, 5);
        begun.push({ range, whole, seen: rids(items), continuation });
      }
      return begun;
    };
    const overlap = (a, b) => a.minInclusive < b.maxExclusive && b.minInclusive < a.maxExclusive;
    const finish = async (begun) => {
      const now = await rangesOf(t.rest, path);
      for (const { range, whole, seen, continuation } of begun) {
        if (now.some(({ id }) => id === range.id)) continue;
        const gone = await t.rest.get(`${path}/docs`, { headers: { ...byRange(range.id), ...(continuation && { "x-ms-continuation": continuation }) } });
        refused(gone, 410, { substatus: 1002 });
        const rest = [];
        for (const successor of continuation ? now.filter((other) => overlap(range, other)) : []) {
          const headers = { ...byRange(successor.id), ...byEpk(range.minInclusive, range.maxExclusive) };
          rest.push(...rids(await drain(t.rest, path, headers, continuation)));
        }
        assert.deepEqual(sorted([...seen, ...rest]), sorted(whole));
      }
      return begun.filter(({ range, continuation }) => continuation && !now.some(({ id }) => id === range.id)).length;
    };
    const first = await begin();
    await scale(container, 60_000, 6);
    assert.ok((await finish(first)) > 0);
    const second = await begin();
    await scale(container, 1000, 1);
    assert.ok((await finish(second)) > 0);
    assert.ok((await finish(first)) > 0);
  });

  t.it("keep etags, unique keys and times to live", async () => {
    const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/email"] }] };
    const container = await t.container({ partitionKey: v2, throughput: 10_000, uniqueKeyPolicy, defaultTtl: -1 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const made = [];
    for (let i = 0; i < 40; i++) {
      const item = { id: `${i}`, pk: `key ${i % 20}`, email: `${i}@x`, ...(i >= 20 && { ttl: 2 }) };
      made.push((await container.items.create(item)).resource);
    }
    await scale(container, 60_000, 6);
    await fails(container.items.create({ id: "new", pk: "key 3", email: "3@x" }), 409);
    await fails(container.items.create({ id: "3", pk: "key 3", email: "new" }), 409);
    const condition = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
    const { resource: changed } = await container.item("3", "key 3").replace({ id: "3", pk: "key 3", email: "new" }, condition(made[3]._etag));
    assert.equal(changed._rid, made[3]._rid);
    await fails(container.item("3", "key 3").delete(condition(made[3]._etag)), 412);
    assert.equal((await container.items.create({ id: "new", pk: "key 3", email: "3@x" })).statusCode, 201, "the old value is free");
    await scale(container, 1000, 1);
    await fails(container.items.create({ id: "newer", pk: "key 3", email: "new" }), 409);
    assert.equal((await container.item("3", "key 3").delete(condition(changed._etag))).statusCode, 204);
    await eventually("what had a time to live is gone", async () => {
      const { headers } = await t.rest.get(path);
      return headers["x-ms-resource-usage"].includes("documentsCount=20;");
    });
    assert.deepEqual(sorted((await drain(t.rest, path)).map(({ id }) => id)), sorted([...made.slice(0, 20).map(({ id }) => id).filter((id) => id !== "3"), "new"]));
  });

  t.it("may be cut short by the end of the container", async () => {
    for (let i = 0; i < 5; i++) {
      const { container } = await t.database.containers.create({ id: "short", partitionKey: v2, throughput: 10_000 });
      const path = `${t.databasePath}/colls/short`;
      await fill(t.rest, path, 10, 1);
      const { resource } = await container.readOffer();
      const [changed, deleted] = await Promise.all([
        t.rest.put(`/offers/${resource._rid}`, { ...resource, content: { offerThroughput: 1_000_000 } }),
        sleep(2 * i).then(() => t.rest.delete(path)),
      ]);
      assert.ok([200, 404].includes(changed.status), changed.text);
      assert.equal(deleted.status, 204);
      refused(await t.rest.get(`${path}/pkranges`), 404, { substatus: 1003 });
      refused(await t.rest.get(`/offers/${resource._rid}`), 404);
    }
    const path = await t.containerPath({ partitionKey: v2 });
    assert.equal((await fill(t.rest, path, 3, 1)).length, 3, "the server goes on");
    assert.ok(!/ error /.test(t.server.stderr), t.server.tail());
  });

  t.it("are given up when the throughput they were for changes again", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, 20, 1);
    await scale(container, 80_000, 8);
    const { resource } = await container.readOffer();
    const set = (offerThroughput) => t.rest.put(`/offers/${resource._rid}`, { ...resource, content: { offerThroughput } });
    const pending = async () => (await t.rest.get(`/offers/${resource._rid}`)).headers["x-ms-offer-replace-pending"];
    for (let i = 0; i < 10; i++) {
      assert.equal((await set(1000)).status, 200);
      const up = await set(60_000); // while ranges are being merged
      assert.equal(up.status, 200, up.text);
      if (up.headers["x-ms-offer-replace-pending"] === "false") {
        for (let j = 0; j < 20; j++) {
          assert.ok((await rangesOf(t.rest, path)).length >= 6, "enough ranges for what was promised");
          assert.equal(await pending(), "false");
        }
      }
      await eventually("the splits that it takes", async () => (await pending()) === "false");
      await scale(container, 80_000, 8);
    }
  });

  t.it("are not seen by many clients at full speed, but for the 410 that the SDK handles", async () => {
    const { container } = await t.database.containers.create({ id: t.name(), partitionKey: v2, throughput: 10_000 });
    const load = new Load(t, container.id);
    await load.start();
    try {
      for (const [throughput, n] of [[50_000, 5], [20_000], [90_000, 9], [1000, 1], [30_000, 3]]) {
        await scale(container, throughput, n);
        await sleep(250);
      }
    } finally {
      await load.stop();
    }
    await load.check();
  });
});

// With limits of some kilobytes, ranges split automatically.
suite("storage", (t) => {
  const text = "x".repeat(1000);
  const full = "Partition key reached maximum size of 250 KB.";
  const usage = (answer) => Number(/collectionSize=(\d+);/.exec(answer.headers["x-ms-resource-usage"])[1]);

  t.it("past the limit of a range splits it, while clients go on", async () => {
    const container = await t.container({ partitionKey: v2 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const { client, seen, container: through } = watched(t);
    const stale = through({ id: container.id, database: t.database });
    const keys = Array.from({ length: 60 }, (_, i) => `key ${i}`);
    for (let id = 0; id < 15; id++) {
      const operations = keys.map((pk) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: `${id}`, pk, text } }));
      const results = await stale.items.bulk(operations);
      assert.deepEqual(new Set(results.map((result) => result.statusCode)), new Set([201]));
      if (id % 5 === 4) await eventually("another split", async () => (await rangesOf(t.rest, path)).length > id / 5);
    }
    await eventually("no range holds more than it may", async () => {
      const held = [];
      for (const range of await rangesOf(t.rest, path)) {
        const { items } = await page(t.rest, path, byEpk(range.minInclusive, range.maxExclusive), undefined, 1); // the range may be gone by now
        const [{ id, pk }] = items; // a cut between keys leaves no range empty
        held.push(usage(await t.rest.put(`${path}/docs/${id}`, { id, pk, text }, { headers: key(pk) })));
      }
      return held.every((kilobytes) => kilobytes <= 200);
    });
    const ranges = await rangesOf(t.rest, path);
    assert.ok(ranges.length >= 5 && ranges.length <= 20, `${ranges.length} ranges for 900 KB`);
    assert.ok(ranges.every((range) => range.parents.includes("0")));
    const items = await drain(t.rest, path, {}, undefined, { size: 100 });
    assert.equal(items.length, 900);
    assert.equal(new Set(rids(items)).size, 900);
    const { resource: offer, offer: { id } } = await container.readOffer();
    assert.equal(offer.content.offerThroughput, 400, "and the throughput is what it was");
    assert.equal((await t.rest.get(`/offers/${id}`)).headers["x-ms-offer-replace-pending"], "false");
    assert.deepEqual([...seen.keys()].filter((status) => status >= "400"), ["410/1002"], "the client met a range that was gone");
    client.dispose();
  });

  t.it("of one logical partition is limited: it does not split, and refuses to grow", async () => {
    const container = await t.container({ partitionKey: v2 });
    const path = `${t.databasePath}/colls/${container.id}`;
    let made = 0;
    for (const size of [1000, 300, 100, 30, 1]) { // fills it up completely
      let error;
      while (!error && made < 300) {
        await container.items.create({ id: `${made}`, pk: "hot", text: text.slice(0, size) }).then(() => made++, (refusal) => (error = refusal));
      }
      assert.equal(error.code, 403, error.message);
      assert.equal(error.substatus, 1014);
      assert.ok(error.message.includes(full), error.message);
      if (size === 1000) within(made, 200, 250, "items of 1 KB in 250 KB");
    }
    const item = { id: "0", pk: "hot" };
    const refusals = [
      t.rest.post(`${path}/docs`, { id: "new", pk: "hot", text }, { headers: key("hot") }),
      t.rest.post(`${path}/docs`, { id: "new", pk: "hot", text }, { headers: { ...key("hot"), "x-ms-documentdb-is-upsert": "True" } }),
      t.rest.put(`${path}/docs/0`, { ...item, text: text + text.slice(0, 200) }, { headers: key("hot") }),
      t.rest.patch(`${path}/docs/0`, [{ op: "add", path: "/more", value: text.slice(0, 200) }], { headers: { ...key("hot"), "content-type": "application/json_patch+json" } }),
    ];
    for (const answer of await Promise.all(refusals)) refused(answer, 403, { substatus: 1014, text: full });
    const batch = await container.items.batch([{ operationType: "Create", resourceBody: { id: "new", pk: "hot", text } }], "hot");
    assert.equal(batch.code ?? batch.statusCode, 207);
    assert.equal(batch.result[0].statusCode, 403);
    const bulk = await container.items.bulk([{ operationType: "Create", partitionKey: "hot", resourceBody: { id: "new", pk: "hot", text } }, { operationType: "Create", partitionKey: "cool", resourceBody: { id: "new", pk: "cool", text } }]);
    assert.deepEqual(bulk.map((result) => result.statusCode), [403, 201]);

    assert.equal((await container.item("1", "hot").read()).resource.text, text, "reads go on");
    assert.equal((await drain(t.rest, path, key("hot"), undefined, { size: 50 })).length, made);
    assert.equal((await container.item("0", "hot").replace({ ...item, text: "less" })).statusCode, 200, "it may become less");
    for (const id of ["1", "2", "3"]) assert.equal((await container.item(id, "hot").delete()).statusCode, 204);
    assert.equal((await container.items.create({ id: "new", pk: "hot", text })).statusCode, 201, "and has room again");
    await eventually("the cool key has a range of its own", async () => (await rangesOf(t.rest, path)).length === 2);
    await sleep(1500);
    const counts = [];
    for (const range of await rangesOf(t.rest, path)) counts.push((await drain(t.rest, path, byRange(range.id), undefined, { size: 100 })).length);
    assert.deepEqual(counts.sort((a, b) => a - b), [1, made - 2], "the hot one, larger than a range should be, has not split");
  });

  t.it("of a fixed container is limited", async () => {
    const path = `${t.databasePath}/colls/${t.name("fixed")}`;
    const old = { headers: { "x-ms-version": "2017-02-22" } };
    assert.equal((await t.rest.post(`${t.databasePath}/colls`, { id: path.split("/").at(-1) }, old)).status, 201);
    let made = 0, answer;
    do answer = await t.rest.post(`${path}/docs`, { id: `${made++}`, pk: `${made}`, text }, old);
    while (answer.status === 201 && made < 100);
    refused(answer, 403, { text: "The container has no partition key and reached its maximum size of 60 KB." });
    within(made, 45, 60, "items of 1 KB in 60 KB");
    assert.equal((await t.rest.get(`${path}/docs/0`, old)).status, 200);
    assert.equal((await t.rest.put(`${path}/docs/0`, { id: "0" }, old)).status, 200);
    assert.equal((await t.rest.delete(`${path}/docs/1`, old)).status, 204);
    assert.equal((await t.rest.post(`${path}/docs`, { id: "new", text }, old)).status, 201);
    assert.equal((await rangesOf(t.rest, path)).length, 1);
  });
}, { flags: ["--partition-max-storage", "200KB", "--logical-partition-max-storage", "250KB", "--fixed-container-max-storage", "60KB"] });

describe("a restart", () => {
  const path = "/dbs/d/colls/c";
  const flags = ["--logical-partition-max-storage", "20KB"];
  let data, server, rest;
  const start = async (more = []) => {
    server = await Server.start({ data, flags: [...flags, ...more] });
    rest = new Rest({ server });
  };
  const stop = async () => {
    rest?.close();
    await server?.stop();
    server = undefined;
  };
  const throughput = async (value, n) => {
    const offer = (await rest.get("/offers")).json.Offers[0];
    const answer = await rest.put(`/offers/${offer._rid}`, { ...offer, content: { offerThroughput: value } });
    assert.equal(answer.status, 200, answer.text);
    await eventually(`${n} ranges`, async () => (await rangesOf(rest, path)).length === n);
  };
  const create = async (headers) => {
    assert.equal((await rest.post("/dbs", { id: "d" })).status, 201);
    assert.equal((await rest.post("/dbs/d/colls", { id: "c", partitionKey: v2 }, { headers })).status, 201);
  };
  before(() => (data = mkdtempSync(join(tmpdir(), "tesela-partitions-"))));
  after(async () => {
    await stop();
    rmSync(data, { recursive: true, force: true });
  });

  it("keeps the ranges, continuations, session tokens and full partitions of before", async () => {
    await start();
    await create({ "x-ms-offer-throughput": "20000" });
    const made = await fill(rest, path, 25, 4);
    const whole = sorted(rids(made));
    const beginnings = [];
    const begin = async () => {
      const { items, continuation } = await page(rest, path, {}, undefined, 9);
      beginnings.push({ seen: rids(items), continuation });
    };
    const token = (await rest.get(`${path}/docs/0`, { headers: key("key 1") })).headers["x-ms-session-token"];
    await begin();
    await throughput(60_000, 6);
    await begin();
    let n = 0;
    const add = () => rest.post(`${path}/docs`, { id: `full-${n}`, pk: "full", text: "x".repeat(1000) }, { headers: key("full") });
    while ((await add()).status === 201) n++;
    within(n, 15, 20, "items of 1 KB in 20 KB");
    const before = await rest.get(`${path}/pkranges`);
    await stop();

    await start();
    const after = await rest.get(`${path}/pkranges`);
    assert.deepEqual(after.json, before.json);
    assert.equal(after.headers.etag, before.headers.etag);
    assert.equal((await rest.get(`${path}/pkranges`, { headers: { ...incremental, "if-none-match": before.headers.etag } })).status, 304);
    const check = async (when) => {
      for (const { seen, continuation } of beginnings) {
        const left = (await drain(rest, path, {}, continuation)).filter((item) => item.pk !== "full");
        assert.deepEqual(sorted([...seen, ...rids(left)]), whole, when);
      }
      assert.equal((await rest.get(`${path}/docs/0`, { headers: { ...key("key 1"), "x-ms-session-token": token } })).status, 200);
      refused(await add(), 403, { substatus: 1014, text: "Partition key reached maximum size of 20 KB." });
    };
    await check("after a restart");
    assert.equal((await rest.delete(`${path}/docs/full-0`, { headers: key("full") })).status, 204);
    assert.equal((await add()).status, 201, "room for one");
    n++;
    await begin();
    await throughput(1000, 1);
    const newest = Number((await rangesOf(rest, path))[0].id);
    assert.ok(before.json.PartitionKeyRanges.every((range) => Number(range.id) < newest), "no id is used again");
    await check("after a merge");
    await stop();

    await start();
    assert.deepEqual((await rangesOf(rest, path)).map((range) => Number(range.id)), [newest]);
    await check("after another restart");
    await throughput(30_000, 3);
    await check("after another split");
  });

  it("without merges leaves what was split as it is", async () => {
    await stop();
    rmSync(data, { recursive: true, force: true });
    await start(["--merges", "off"]);
    await create({ "x-ms-offer-throughput": "40000" });
    const offer = (await rest.get("/offers")).json.Offers[0];
    const changed = await rest.put(`/offers/${offer._rid}`, { ...offer, content: { offerThroughput: 400 } });
    assert.equal(changed.headers["x-ms-offer-replace-pending"], "false");
    await sleep(1500);
    assert.equal((await rangesOf(rest, path)).length, 7);
    await stop();
    await start();
    await eventually("merged once that is allowed", async () => (await rangesOf(rest, path)).length === 1);
  });
});

// Clients of all kinds, each with its own connection and caches. Any wrong answer stops the load.
class Load {
  keys = Array.from({ length: 60 }, (_, i) => `key ${i}`);
  there = new Map(); // pk/id of each acknowledged item → its counter
  done = { bare: 0, create: 0, read: 0, upsert: 0, bulk: 0, page: 0, feed: 0 };
  stopping = false;

  constructor(t, id) {
    Object.assign(this, { t, id, clients: [] });
  }

  #client() {
    const watch = watched(this.t);
    this.clients.push(watch);
    return watch.container({ id: this.id, database: this.t.database });
  }

  #some() {
    return this.keys[Math.floor(Math.random() * this.keys.length)];
  }

  async start() {
    const container = this.#client();
    for (const pk of this.keys) {
      await container.items.create({ id: "old", pk, n: 0 });
      this.there.set(`${pk}/old`, 0);
    }
    const work = [this.#create, this.#create, this.#create, this.#read, this.#read, this.#read, this.#upsert, this.#bulk, this.#bulk];
    work.push(this.#feed, this.#partition, this.#execute, this.#bare, this.#bare, this.#bare);
    this.running = Promise.all(work.map((step, i) => this.#run(step, i)));
    this.running.catch(() => {}); // avoids an unhandled rejection before it is awaited
  }

  async #run(step, i) {
    const container = this.#client();
    try {
      for (let n = 0; !this.stopping; n++) await step.call(this, container, `${i}-${n}`);
    } catch (error) {
      this.stopping = true;
      throw error;
    }
  }

  async stop() {
    this.stopping = true;
    await this.running;
    this.clients.forEach(({ client }) => client.dispose());
  }

  async #create(container, id) {
    const pk = this.#some();
    const { statusCode } = await container.items.create({ id, pk, n: 0 });
    assert.equal(statusCode, 201);
    this.there.set(`${pk}/${id}`, 0);
    this.done.create++;
  }

  async #read(container) {
    const known = [...this.there.keys()];
    const [pk, id] = known[Math.floor(Math.random() * known.length)].split("/");
    const least = this.there.get(`${pk}/${id}`);
    const { statusCode, resource } = await container.item(id, pk).read();
    assert.equal(statusCode, 200, `${pk}/${id}`);
    assert.ok(resource.n >= least, "what was acknowledged is read");
    this.done.read++;
  }

  // Writes without the SDK, which is slow.
  async #bare(_, id) {
    const path = `${this.t.databasePath}/colls/${this.id}/docs`;
    const headers = key("bare");
    const made = await this.t.rest.post(path, { id, pk: "bare", n: 0 }, { headers });
    assert.equal(made.status, 201, made.text);
    this.there.set(`bare/${id}`, 0);
    for (let i = 0; i < 5; i++) {
      const token = { "x-ms-session-token": made.headers["x-ms-session-token"] };
      assert.equal((await this.t.rest.get(`${path}/${id}`, { headers: { ...headers, ...token } })).status, 200);
    }
    this.done.bare++;
  }

  // The only client that changes the items called "old".
  async #upsert(container) {
    const pk = this.#some();
    const n = this.there.get(`${pk}/old`) + 1;
    assert.equal((await container.items.upsert({ id: "old", pk, n })).statusCode, 200);
    this.there.set(`${pk}/old`, n);
    assert.equal((await container.item("old", pk).read()).resource.n, n, "its own write");
    this.done.upsert++;
  }

  async #bulk(container, word) {
    const operations = Array.from({ length: 20 }, (_, i) => ({ operationType: "Create", partitionKey: this.#some(), id: `${word}-${i}` }));
    const results = await container.items.bulk(operations.map(({ id, partitionKey, ...rest }) => ({ ...rest, partitionKey, resourceBody: { id, pk: partitionKey, n: 0 } })));
    results.forEach(({ statusCode }, i) => {
      assert.equal(statusCode, 201);
      this.there.set(`${operations[i].partitionKey}/${operations[i].id}`, 0);
    });
    this.done.bulk++;
  }

  async #execute(container, word) {
    const operations = this.keys.map((pk) => ({ operationType: "Upsert", partitionKey: pk, resourceBody: { id: word, pk, n: 0 } }));
    for (const { response, error, operationInput } of await container.items.executeBulkOperations(operations)) {
      assert.equal(response?.statusCode ?? error?.code, 201, error?.message);
      this.there.set(`${operationInput.resourceBody.pk}/${word}`, 0);
    }
    this.done.bulk++;
  }

  // The feed has all items that existed before it began, and no item twice.
  async #feed(container) {
    const before = [...this.there.keys()];
    await this.#pages(container.items.readAll({ maxItemCount: 100 }), before);
    this.done.feed++;
  }

  async #partition(container) {
    const pk = this.#some();
    const before = [...this.there.keys()].filter((name) => name.startsWith(`${pk}/`));
    await this.#pages(container.items.readAll({ partitionKey: pk, maxItemCount: 5 }), before);
  }

  async #pages(iterator, before) {
    const found = new Set();
    while (iterator.hasMoreResults()) {
      const { resources } = await iterator.fetchNext();
      for (const { pk, id } of resources ?? []) {
        assert.ok(!found.has(`${pk}/${id}`), `${pk}/${id} once in a feed`);
        found.add(`${pk}/${id}`);
      }
      this.done.page++;
    }
    for (const name of before) assert.ok(found.has(name), `${name} is in the feed`);
  }

  async check() {
    const { t } = this;
    const { resources } = await t.database.container(this.id).items.readAll({ maxItemCount: -1 }).fetchAll();
    const found = new Map(resources.map(({ pk, id, n }) => [`${pk}/${id}`, n]));
    assert.equal(found.size, resources.length, "no item is there twice");
    assert.equal(new Set(rids(resources)).size, resources.length, "no _rid is used twice");
    assert.deepEqual(sorted([...found].map(String)), sorted([...this.there].map(String)), "what was acknowledged is what is there");
    const bad = new Map();
    for (const { seen } of this.clients) for (const [status, n] of seen) if (status >= "400") bad.set(status, (bad.get(status) ?? 0) + n);
    assert.deepEqual([...bad.keys()], ["410/1002"], `${[...bad]}`);
    for (const [what, n] of Object.entries(this.done)) assert.ok(n > 3, `${what}: ${n}`);
  }
}
