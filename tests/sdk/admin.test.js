// Administration: /_tesela/ and /metrics, authorization, manual splits and merges, injected faults, and the commands that use them.

import { after, before, describe, it } from "node:test";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import net from "node:net";
import { ChangeFeedStartFrom } from "@azure/cosmos";
import { assert, suite, fails, refused, key, emulatorKey, eventually, Rest, Server, run, sign, sleep } from "./harness.js";
import { binary } from "./server.js";

const bare = { sign: false };
const query = (path, values = {}) => `/_tesela/${path}?${new URLSearchParams(values)}`;

// Sends a request without a key, as programs on the same machine may.
const ask = async (t, path, values) => {
  const answer = await t.rest.get(query(path, values), bare);
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.headers["content-type"], /^application\/json/);
  return answer.json;
};
const post = (t, path, body, options) => t.rest.post(`/_tesela/${path}`, body, { ...bare, ...options });
const names = (t, container) => ({ database: t.database.id, container: container.id });
const rangesOf = async (t, container) => (await ask(t, "ranges", names(t, container))).ranges;

// Checks an error of the admin API: status and message.
function wrong(answer, status, text) {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.json), ["code", "message"]);
  if (text) assert.match(answer.json.message, text);
}

// Fills partitions p0 to p(n-1); sizes grow with the number.
async function fill(container, n, size = 20) {
  for (let i = 0; i < n; i++) await container.items.create({ id: `i${i}`, pk: `p${i}`, s: "x".repeat(i * size) });
}

suite("admin", (t) => {
  t.it("tells of the server as a whole", async () => {
    const server = await ask(t, "");
    assert.match(server.version, /^\d+\.\d+\.\d+$/);
    assert.ok(Math.abs(server.now - Date.now()) < 60_000);
    assert.ok(server.uptimeSeconds >= 0 && server.started <= server.now);
    assert.ok(server.databases >= 1 && server.connections >= 1 && server.openFiles > 5);
    assert.ok(server.memoryBytes > 5e6 && server.memoryBytes < 5e9, `${server.memoryBytes}`);
    for (const path of server.paths) assert.notEqual((await t.rest.get(path, bare)).status, 404, path);
    for (const path of ["/_tesela/", "/_tesela/ranges", "/_tesela/store", "/_tesela/keys", "/_tesela/keys/regenerate", "/_tesela/keys/reload", "/metrics"]) assert.ok(server.paths.includes(path), path);
    assert.equal(new Set(server.paths).size, server.paths.length);
  });

  t.it("tells where the store's bytes are", async () => {
    const container = await t.container({});
    const before = await ask(t, "store");
    await fill(container, 30);
    const { stores } = await ask(t, "store");
    const logged = (figures, name) => figures.families.find((family) => family.name === name).loggedBytes;
    assert.equal(stores.length, 1);
    assert.deepEqual(stores[0].families.map((family) => family.name), ["default", "items", "index", "terms", "versions", "runs"]);
    for (const name of ["items", "index", "runs"]) assert.ok(logged(stores[0], name) > logged(before.stores[0], name), name);
    assert.ok(stores[0].writtenBytes > before.stores[0].writtenBytes && stores[0].logBytes > 0);
    assert.match((await t.rest.get("/metrics", bare)).text, /^tesela_store_logged_bytes_total\{store="0",family="items"\} \d+$/m);
  });

  t.it("tells what each range holds", async () => {
    const container = await t.container({ throughput: 3000 });
    await fill(container, 30);
    const answer = await ask(t, "ranges", names(t, container));
    assert.equal(answer.total, 3);
    assert.equal(answer.next, null);
    const [whole] = answer.containers;
    assert.deepEqual(whole.partitionKey, ["/pk"]);
    assert.deepEqual(whole.throughput, { mode: "manual", shared: false, ruPerSecond: 3000 });
    assert.equal(whole.ranges, 3);
    assert.equal(whole.items, 30);
    assert.equal(whole.logicalPartitions, 30);
    assert.equal(whole.shareRuPerSecond, 3000);
    const { resources } = await t.client.databases.readAll().fetchAll().then(() => container.readPartitionKeyRanges().fetchAll());
    for (const [i, range] of answer.ranges.entries()) {
      assert.equal(range.database, t.database.id);
      assert.equal(range.container, container.id);
      assert.equal(range.id, resources[i].id);
      assert.equal(range.min, resources[i].minInclusive);
      assert.equal(range.max, resources[i].maxExclusive);
      assert.deepEqual(range.parents, []);
      assert.equal(range.shareRuPerSecond, 1000);
      assert.equal(range.lsn, range.items);
      assert.equal(range.items, range.logicalPartitions);
      assert.match(range.hottest.key, /^\["p\d+"\]$/);
    }
    for (const sum of ["items", "bytes", "indexBytes", "logicalPartitions"]) {
      assert.equal(answer.ranges.reduce((all, range) => all + range[sum], 0), whole[sum], sum);
    }
    assert.ok(whole.bytes > 30 * 60 && whole.indexBytes > 0);
    assert.deepEqual([whole.indexPercent, whole.indexSeconds], [100, 0]);
  });

  t.it("tells of shared and of autoscale throughput", async () => {
    const { database } = await t.client.databases.create({ id: t.name("shared"), throughput: 1000 });
    await database.containers.create({ id: "c", partitionKey: "/pk" });
    await database.containers.create({ id: "own", partitionKey: "/pk", maxThroughput: 2000 });
    const { containers } = await ask(t, "ranges", { database: database.id });
    assert.deepEqual(containers.map((c) => [c.container, c.throughput.mode, c.throughput.shared, c.throughput.ruPerSecond]), [
      ["c", "manual", true, 1000],
      ["own", "autoscale", false, 2000],
    ]);
    await database.delete();
  });

  t.it("gives ranges by pages", async () => {
    const container = await t.container({ throughput: 5000 });
    const all = await rangesOf(t, container);
    const ids = [];
    let skip = 0;
    while (skip !== null) {
      const page = await ask(t, "ranges", { ...names(t, container), limit: 2, skip });
      assert.equal(page.total, 5);
      assert.ok(page.ranges.length <= 2);
      assert.equal(page.containers.length, 1);
      ids.push(...page.ranges.map((range) => range.id));
      skip = page.next;
    }
    assert.deepEqual(ids, all.map((range) => range.id));
    const past = await ask(t, "ranges", { ...names(t, container), skip: 99 });
    assert.deepEqual([past.ranges, past.containers, past.next], [[], [], null]);
  });

  t.it("tells what was paid for", async () => {
    const container = await t.container({ throughput: 2000 });
    const { item } = await container.items.create({ id: "1", pk: "a", n: 1 });
    await item.read();
    await item.replace({ id: "1", pk: "a", n: 2 });
    await container.items.query("SELECT * FROM c", { partitionKey: "a" }).fetchAll();
    await container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("a") }).readNext();
    await item.delete();
    const kinds = ["read", "query", "changes", "create", "replace", "delete"];
    let found;
    await eventually("the delete is in the history", async () => {
      found = (await ask(t, "history", { ...names(t, container), seconds: 60 })).ruByOperation;
      return found.delete !== undefined;
    });
    assert.deepEqual(Object.keys(found), kinds);
  });

  t.it("prices items without writing them", async () => {
    const container = await t.container();
    const price = async (body) => (await post(t, "price", { ...names(t, container), ...body })).json;
    const before = { id: "1", pk: "a", n: 1, list: [1, "two"] }, item = { ...before, n: 2, more: "x".repeat(3000) };
    const told = await price({ item, before }), first = await price({ item: before });
    const created = await container.items.create(before);
    const replaced = await created.item.replace(item);
    const read = await created.item.read();
    const deleted = await created.item.delete();
    const near = (a, b) => assert.ok(Math.abs(a - b) < 0.011, `${a} ${b}`);
    near(first.create, created.requestCharge);
    near(told.replace, replaced.requestCharge);
    near(told.read, read.requestCharge);
    near(told.delete, deleted.requestCharge);
    assert.equal(first.terms, 11);
    assert.equal(told.termsChanged, 6);
    assert.equal(first.replace, undefined);
    for (const body of [{}, { item: 7 }, { item: [] }, { item: {}, before: "x" }]) wrong(await post(t, "price", { ...names(t, container), ...body }), 400);
    wrong(await post(t, "price", { database: "none", container: "none", item: {} }), 404);
    wrong(await post(t, "price", "no JSON"), 400);
  });

  t.it("tells what happened second by second", async () => {
    const container = await t.container({ throughput: 2000 });
    const charges = [];
    for (let i = 0; i < 20; i++) charges.push((await container.items.create({ id: `${i}`, pk: `${i}` })).requestCharge);
    const spent = charges.reduce((sum, charge) => sum + charge, 0);
    const sum = (list) => list.reduce((all, one) => all + one, 0);
    let history;
    await eventually("the second is over", async () => {
      history = await ask(t, "history", { ...names(t, container), seconds: 60 });
      return sum(history.requests) === 20;
    });
    assert.equal(history.range, null);
    assert.equal(history.stepSeconds, 1);
    assert.equal(history.count, 60);
    assert.ok(Math.abs(history.from + 60 - Date.now() / 1000) < 30);
    for (const list of ["ru", "requests", "throttled", "normalizedPercent", "latencyAverageUs", "latencyMaxUs"]) assert.equal(history[list].length, 60, list);
    assert.ok(Math.abs(sum(history.ru) - spent) < 0.5, `${sum(history.ru)} ${spent}`);
    assert.deepEqual(Object.keys(history.ruByOperation), ["create"]);
    assert.equal(history.ruByOperation.create.length, 60);
    assert.ok(Math.abs(sum(history.ruByOperation.create) - spent) < 0.5);
    const at = history.requests.findIndex((n) => n > 0);
    assert.ok(history.latencyAverageUs[at] > 0 && history.latencyMaxUs[at] >= history.latencyAverageUs[at]);
    assert.ok(history.normalizedPercent[at] > 0);
    assert.deepEqual([...new Set(history.provisioned)], [null, 2000]);
    const each = await Promise.all(["0", "1"].map((range) => ask(t, "history", { ...names(t, container), seconds: 3600, range })));
    assert.equal(sum(each[0].requests) + sum(each[1].requests), 20);
    assert.deepEqual(each.map((one) => [one.range, one.count]), [["0", 3600], ["1", 3600]]);
    const minutes = await ask(t, "history", { ...names(t, container), minutes: 1440 });
    assert.deepEqual([minutes.stepSeconds, minutes.count, minutes.from % 60], [60, 1440, 0]);
  });

  t.it("knows what was provisioned before a change", async () => {
    const container = await t.container({ throughput: 400 });
    const provisioned = async (span) => (await ask(t, "history", { ...names(t, container), ...span })).provisioned;
    await eventually("the first is noted", async () => (await provisioned({ seconds: 20 })).at(-1) === 400);
    const { resource } = await container.readOffer();
    await t.client.offer(resource.id).replace({ ...resource, content: { ...resource.content, offerThroughput: 900 } });
    await eventually("the change is noted", async () => (await provisioned({ seconds: 20 })).at(-1) === 900);
    const seen = (await provisioned({ seconds: 60 })).filter((value) => value !== null);
    assert.deepEqual([...new Set(seen)], [400, 900]);
    assert.deepEqual([...seen].sort((a, b) => a - b), seen, "400 comes before 900");
    assert.equal((await ask(t, "history", { ...names(t, container), seconds: 5, range: 0 })).provisioned, undefined);
  });

  t.it("lists the changes of what was provisioned, in a second too", async () => {
    const container = await t.container({ throughput: 400 });
    for (const throughput of [900, 500]) {
      const { resource } = await container.readOffer();
      await t.client.offer(resource.id).replace({ ...resource, content: { ...resource.content, offerThroughput: throughput } });
    }
    for (const span of [{ seconds: 60 }, { minutes: 10 }]) {
      const { provisionedChanges: changes } = await ask(t, "history", { ...names(t, container), ...span });
      assert.deepEqual(changes.map(({ before, after }) => [before, after]), [[400, 900], [900, 500]]);
      for (const { second } of changes) assert.ok(Math.abs(second - Date.now() / 1000) < 30);
    }
    assert.equal((await ask(t, "history", { ...names(t, container), seconds: 5, range: 0 })).provisionedChanges, undefined);
  });

  t.it("finds the keys that cost most and hold most", async () => {
    const container = await t.container({ throughput: 3000 });
    await fill(container, 40);
    for (let i = 0; i < 30; i++) await container.item("i5", "p5").read();
    const hot = await ask(t, "hotkeys", names(t, container));
    assert.equal(hot.allRanges, true);
    assert.equal(hot.sizesComplete, true);
    assert.equal(hot.byRu.length, 20);
    assert.equal(hot.byRu[0].key, '["p5"]');
    for (let i = 1; i < 20; i++) assert.ok(hot.byRu[i - 1].ruPerSecond >= hot.byRu[i].ruPerSecond);
    assert.deepEqual(hot.bySize.map((one) => one.key), Array.from({ length: 20 }, (_, i) => `["p${39 - i}"]`));
    for (const one of hot.bySize) assert.ok(one.exact && one.items === 1 && one.bytes > 0 && one.indexBytes > 0 && !one.cut);

    const range = hot.bySize[0].range;
    const one = await ask(t, "hotkeys", { ...names(t, container), range });
    assert.equal(one.allRanges, false);
    assert.ok(one.bySize.every((found) => found.range === range));
    assert.equal(one.bySize[0].key, '["p39"]');

    await container.item("i39", "p39").delete();
    await container.items.create({ id: "more", pk: "p3", s: "x".repeat(5000) });
    const then = await ask(t, "hotkeys", names(t, container));
    assert.equal(then.bySize[0].key, '["p3"]');
    assert.equal(then.bySize[0].items, 2);
    assert.equal(then.bySize[1].key, '["p38"]');
    assert.ok(!then.bySize.some((found) => found.key === '["p39"]'));
  });

  t.it("does not show what a failed batch would have stored", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const batch = await container.items.batch(
      [
        { operationType: "Create", resourceBody: { id: "2", pk: "ghost", s: "x".repeat(9000) } },
        { operationType: "Delete", id: "nobody" },
      ],
      "ghost",
    );
    assert.equal(batch.result[1].statusCode, 404);
    const { bySize } = await ask(t, "hotkeys", names(t, container));
    assert.deepEqual(bySize.map((one) => one.key), ['["a"]']);
  });

  t.it("shows keys of all kinds", async () => {
    const container = await t.container({ partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } });
    await container.items.create({ id: "1", a: "ñ\"\\", b: 1.5 });
    await container.items.create({ id: "2", a: null, b: true });
    await container.items.create({ id: "3", a: "long".repeat(100), b: "x" });
    const { bySize, byRu } = await ask(t, "hotkeys", names(t, container));
    assert.equal(bySize.length, 3);
    const texts = bySize.filter((one) => !one.cut).map((one) => JSON.parse(one.key));
    assert.ok(texts.some((one) => one[0] === "ñ\"\\" && one[1] === 1.5), JSON.stringify(texts));
    assert.ok(texts.some((one) => one[0] === null && one[1] === true));
    const [cut] = bySize.filter((one) => one.cut);
    assert.equal(cut.key.length, 128);
    assert.equal(cut.exact, false);
    assert.equal(byRu.length, 3);
  });

  // ---- splits and merges ----

  t.it("splits and merges by hand", async () => {
    const container = await t.container({ throughput: 400 });
    await fill(container, 20);
    const split = await post(t, "split", { ...names(t, container), range: "0", parts: 3 });
    assert.equal(split.status, 200, split.text);
    assert.equal(split.json.kind, "split");
    assert.equal(split.json.reason, "command");
    assert.deepEqual(split.json.before, ["0"]);
    assert.deepEqual(split.json.after, ["1", "2", "3"]);
    assert.equal(split.json.items, 20);
    assert.ok(split.json.tookUs > 0);
    const after = await rangesOf(t, container);
    assert.deepEqual(after.map((range) => [range.id, range.parents]), [["1", ["0"]], ["2", ["0"]], ["3", ["0"]]]);
    assert.equal(after.reduce((all, range) => all + range.items, 0), 20);

    const merge = await post(t, "merge", { ...names(t, container), first: 1, second: "2" });
    assert.equal(merge.status, 200, merge.text);
    assert.deepEqual([merge.json.kind, merge.json.before, merge.json.after], ["merge", ["1", "2"], ["4"]]);

    const { events } = await ask(t, "events", names(t, container));
    const mine = events.filter((event) => event.reason === "command");
    assert.deepEqual(mine.map((event) => event.kind), ["merge", "split"]);
    assert.ok(events.every((event) => event.container === container.id && Math.abs(event.time - Date.now()) < 60_000));
    assert.equal((await ask(t, "events", { limit: 1 })).events.length, 1);
    const { resources } = await container.items.readAll().fetchAll();
    assert.equal(resources.length, 20);
  });

  t.it("splits while others ask, each in its turn", async () => {
    const container = await t.container({ throughput: 400 });
    await fill(container, 30);
    const many = await Promise.all(Array.from({ length: 12 }, () => post(t, "split", { ...names(t, container), range: "0" })));
    assert.equal(many.filter((answer) => answer.status === 200).length, 1);
    assert.ok(many.every((answer) => answer.status === 200 || answer.status === 410), many.map((answer) => answer.text).join());
  });

  t.it("refuses what cannot be split or merged", async () => {
    const container = await t.container({ throughput: 3000 });
    const of = names(t, container);
    wrong(await post(t, "split", { ...of, range: "9" }), 404, /no range 9/);
    wrong(await post(t, "split", of), 400, /'range' must be given/);
    wrong(await post(t, "split", { ...of, range: "0", parts: 1 }), 400, /'parts'/);
    wrong(await post(t, "split", { ...of, range: "0", parts: 101 }), 400, /'parts'/);
    wrong(await post(t, "split", { ...of, range: "x" }), 400, /'range'/);
    wrong(await post(t, "split", { ...of, range: -1 }), 400, /'range'/);
    wrong(await post(t, "split", { ...of, range: 1e300 }), 400, /'range'/);
    wrong(await post(t, "split", { ...of, range: "99999999999999999999" }), 400, /'range'/);
    wrong(await post(t, "split", { ...of, range: "0", part: 2 }), 400, /no property 'part'/);
    wrong(await post(t, "split", { database: of.database, range: 0 }), 400, /'database' and 'container'/);
    wrong(await post(t, "split", { ...of, container: "nobody", range: 0 }), 404, /no container 'nobody'/);
    wrong(await post(t, "merge", { ...of, first: 0, second: 2 }), 400, /neighbours/);
    wrong(await post(t, "merge", { ...of, first: 1, second: 0 }), 400, /neighbours/);
    wrong(await post(t, "merge", { ...of, first: 0 }), 400, /'second'/);
    wrong(await post(t, "merge", { ...of, first: 0, second: 7 }), 404, /no range 7/);
    assert.equal((await post(t, "split", { ...of, range: "0" })).status, 200);
    wrong(await post(t, "split", { ...of, range: "0" }), 410, /gone/);
  });

  // ---- bad input ----

  t.it("refuses bodies that are none", async () => {
    for (const path of ["split", "merge", "faults"]) {
      for (const body of ["", "{", "[]", "7", "null", '"x"', '{"a":}', "\xff\xfe", "{".repeat(1000), '{"a":{"b":{"c":{"d":{"e":1}}}}}', " ".repeat(70_000) + "{}"]) {
        const answer = await post(t, path, Buffer.from(body, "latin1"));
        assert.ok(answer.status === 400 || answer.status === 413, `${path} ${body.slice(0, 20)}: ${answer.status}`);
      }
      wrong(await post(t, path, Buffer.alloc(3 * 1024 * 1024, "x")), 413);
    }
  });

  t.it("refuses parameters that are wrong", async () => {
    const container = await t.container();
    const of = names(t, container);
    const bad = (path, values, status = 400) => t.rest.get(query(path, values), bare).then((answer) => wrong(answer, status));
    for (const [name, values] of [["seconds", [0, -1, 3601, "x", 1e30, "1.5", ""]], ["minutes", [0, 1441]], ["range", ["x", "-1", "4294967296"]]]) {
      for (const value of values) await bad("history", { ...of, [name]: value });
    }
    await bad("history", { ...of, seconds: 1, minutes: 1 });
    await bad("history", { ...of, range: 5 }, 404);
    await bad("history", { database: of.database });
    await bad("history", { ...of, container: "nobody" }, 404);
    await bad("hotkeys", { ...of, range: 5 }, 404);
    await bad("hotkeys", {});
    await bad("ranges", { database: "nobody" }, 404);
    await bad("ranges", { ...of, container: "nobody" }, 404);
    await bad("ranges", { container: "nobody" }, 404);
    await bad("ranges", { limit: 0 });
    await bad("ranges", { limit: 10_001 });
    await bad("ranges", { skip: "x" });
    await bad("events", { limit: 1001 });
    for (const raw of ["%", "%zz", "%ff", "%c0%80%", "a%00%ff"]) wrong(await t.rest.get(`/_tesela/ranges?database=${raw}`, bare), 400, /UTF-8/);
    assert.equal((await t.rest.get("/_tesela/ranges?&&&=&x&database=&container=&other=1", bare)).status, 200);
  });

  t.it("knows names of all kinds", async () => {
    const { database } = await t.client.databases.create({ id: t.name("ñ +&=%\"") });
    await database.containers.create({ id: "日本 c+1", partitionKey: "/pk" });
    const { ranges } = await ask(t, "ranges", { database: database.id, container: "日本 c+1" });
    assert.deepEqual(ranges.map((range) => [range.database, range.container]), [[database.id, "日本 c+1"]]);
    const plus = await t.rest.get(`/_tesela/ranges?database=${encodeURIComponent(database.id)}&container=%E6%97%A5%E6%9C%AC+c%2b1`, bare);
    assert.equal(plus.json.ranges.length, 1);
    await database.delete();
  });

  t.it("answers 404 and 405 where it should", async () => {
    wrong(await t.rest.get("/_tesela/nothing", bare), 404);
    wrong(await t.rest.get("/_tesela/ranges/", bare), 404);
    const answer = await t.rest.put("/_tesela/faults", {}, bare);
    wrong(answer, 405);
    assert.equal(answer.headers.allow, "GET, POST, DELETE");
    wrong(await t.rest.post("/metrics", {}, bare), 405);
    wrong(await t.rest.delete("/_tesela/ranges", bare), 405);
    for (const path of ["/_tesela", "/metricsx", "/_teselax/ranges", "/metrics/"]) assert.ok((await t.rest.get(path, bare)).status >= 400, path);
  });

  t.it("is asked by many at once", async () => {
    const paths = ["/_tesela/", "/_tesela/ranges", "/_tesela/events", "/_tesela/faults", "/metrics"];
    const answers = await Promise.all(Array.from({ length: 80 }, (_, i) => t.rest.get(paths[i % paths.length], bare)));
    assert.ok(answers.every((answer) => answer.status === 200));
  });
}, { flags: ["--partition-max-throughput", "1000", "--merges", "off", "--throttling", "on"] });

// ---- Prometheus ----

// The grammar of the text format, strictly: every family once, HELP and TYPE before its samples, all samples of a family together.
function parseMetrics(text) {
  const families = new Map();
  let current;
  assert.ok(text.endsWith("\n"));
  for (const line of text.slice(0, -1).split("\n")) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$/.exec(line);
    if (help) {
      assert.ok(!families.has(help[1]), `${help[1]} comes twice`);
      current = { name: help[1], samples: new Map() };
      families.set(help[1], current);
    } else if (type) {
      assert.equal(type[1], current.name);
      assert.equal(current.type, undefined);
      current.type = type[2];
      assert.equal(current.name.endsWith("_total"), current.type === "counter", current.name);
    } else {
      const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)$/.exec(line);
      assert.ok(sample, `no sample: ${line}`);
      assert.equal(sample[1], current.name);
      assert.ok(current.type);
      assert.ok(!current.samples.has(sample[2]), `${line} comes twice`);
      assert.ok(Number.isFinite(Number(sample[3])));
      current.samples.set(sample[2], Number(sample[3]));
    }
  }
  return families;
}

suite("metrics", (t) => {
  const metrics = async () => {
    const answer = await t.rest.get("/metrics", bare);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    return parseMetrics(answer.text);
  };

  t.it("count what was done", async () => {
    const container = await t.container({ throughput: 2000 });
    let spent = 0;
    for (let i = 0; i < 10; i++) spent += (await container.items.create({ id: `${i}`, pk: "a" })).requestCharge;
    await fails(container.items.create({ id: "1", pk: "a" }), 409);
    const families = await metrics();
    const of = (name) => [...families.get(name).samples].filter(([labels]) => labels.startsWith(`database="${t.database.id}",container="${container.id}"`));
    const sum = (name) => of(name).reduce((all, [, value]) => all + value, 0);
    assert.equal(of("tesela_range_items").length, 2);
    assert.equal(sum("tesela_range_items"), 10);
    assert.equal(sum("tesela_range_logical_partitions"), 1);
    assert.equal(sum("tesela_range_requests_total"), 11);
    assert.equal(sum("tesela_range_failed_requests_total"), 1);
    assert.equal(sum("tesela_range_throttled_requests_total"), 0);
    assert.ok(Math.abs(sum("tesela_range_request_units_total") - spent - 1) < 0.1);
    assert.equal(sum("tesela_range_share_ru"), 2000);
    assert.equal(sum("tesela_container_throughput_ru"), 2000);
    assert.equal(sum("tesela_container_ranges"), 2);
    assert.ok(sum("tesela_range_latency_seconds_total") > 0);
    for (const name of ["process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "tesela_connections", "tesela_uptime_seconds"]) {
      assert.ok(families.get(name).samples.get(undefined) > 0, name);
    }
  });

  t.it("escape names", async () => {
    const { database } = await t.client.databases.create({ id: t.name('q"u}o{te=, 1') });
    await database.containers.create({ id: 'c"', partitionKey: "/pk" });
    const found = [...(await metrics()).get("tesela_range_items").samples.keys()].filter((labels) => labels.includes('q\\"u}o{te=, 1'));
    assert.equal(found.length, 1);
    assert.match(found[0], /container="c\\"",range="0"$/);
    await database.delete();
  });
}, { flags: ["--partition-max-throughput", "1000", "--throttling", "on"] });

// ---- authorization ----

describe("admin keys", () => {
  const primary = Buffer.alloc(64, 1).toString("base64");
  const reader = Buffer.alloc(64, 2).toString("base64");
  const stranger = Buffer.alloc(64, 3).toString("base64");
  let server, rest;
  before(async () => {
    server = await Server.start({ flags: ["--key", primary, "--read-only-key", reader] });
    rest = new Rest({ server });
  });
  after(async () => {
    rest.close();
    await server.stop();
  });
  const bearer = (token, scheme = "Bearer") => ({ ...bare, headers: { authorization: `${scheme} ${token}` } });
  const signedBy = (secret, verb, date = new Date().toUTCString()) => ({ date, headers: { authorization: sign(secret, verb, "", "", date) } });
  const paths = ["", "ranges", "events", "faults"].map((path) => `/_tesela/${path}`).concat("/metrics");

  it("are asked for when the server has a key of its own", async () => {
    for (const path of [...paths, "/_tesela/nothing"]) {
      const answer = await rest.get(path, bare);
      wrong(answer, 401);
      assert.match(answer.headers["www-authenticate"], /^Bearer/);
      wrong(await rest.get(path, { ...bare, headers: { host: "localhost" } }), 401);
    }
    for (const path of ["split", "merge", "faults"]) wrong(await rest.post(`/_tesela/${path}`, {}, bare), 401);
    wrong(await rest.delete("/_tesela/faults", bare), 401);
  });

  it("may be sent as they are", async () => {
    for (const path of paths) {
      for (const token of [primary, reader]) assert.equal((await rest.get(path, bearer(token))).status, 200, path);
      assert.equal((await rest.get(path, bearer(primary, "bearer"))).status, 200);
      for (const token of [stranger, emulatorKey, "", "x", primary.slice(0, -4), `${primary} ${primary}`]) wrong(await rest.get(path, bearer(token)), 401);
    }
    wrong(await rest.get("/_tesela/", bearer(Buffer.from(`x:${primary}`).toString("base64"), "Basic")), 401);
  });

  it("may sign", async () => {
    for (const path of paths) {
      for (const secret of [primary, reader]) assert.equal((await rest.get(path, signedBy(secret, "GET"))).status, 200, path);
      wrong(await rest.get(path, signedBy(stranger, "GET")), 401);
      wrong(await rest.get(path, signedBy(primary, "POST")), 401);
      wrong(await rest.get(path, signedBy(primary, "GET", new Date(Date.now() - 3_600_000).toUTCString())), 401, /current time/);
    }
  });

  it("that only read change nothing", async () => {
    const fault = { status: 429 };
    for (const options of [bearer(reader), signedBy(reader, "POST")]) {
      wrong(await rest.post("/_tesela/faults", fault, options), 403, /read-only/);
      wrong(await rest.post("/_tesela/split", {}, options), 403);
      wrong(await rest.post("/_tesela/explain", {}, options), 400);
    }
    wrong(await rest.delete("/_tesela/faults", bearer(reader)), 403);
    for (const options of [bearer(primary), signedBy(primary, "POST")]) assert.equal((await rest.post("/_tesela/faults", fault, options)).status, 201);
    assert.equal((await rest.delete("/_tesela/faults", bearer(primary))).json.removed, 2);
  });

  it("sign the commands' requests", async () => {
    const endpoint = ["--endpoint", `localhost:${server.port}`];
    const none = await run(["top", "--once", ...endpoint]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /401.*--key/);
    assert.equal((await run(["top", "--once", ...endpoint, "--key", reader])).code, 0);
    assert.equal((await run(["top", "--once", ...endpoint], { env: { TESELA_KEY: primary } })).code, 0);
    assert.equal((await run(["fault", "--status", "429", ...endpoint, "--key", reader])).code, 1);
    assert.equal((await run(["fault", "--status", "429", ...endpoint, "--key", primary])).code, 0);
    assert.equal((await run(["fault", "--clear", ...endpoint, "--key", primary])).code, 0);
    const bad = await run(["top", "--once", ...endpoint, "--key", "not base64!"]);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /base64/);
  });
});

suite("without a key", (t) => {
  const from = (headers) => t.rest.get("/_tesela/", { ...bare, headers });
  t.it("programs of the machine may ask", async () => {
    const port = t.server.port;
    for (const host of ["localhost", `localhost:${port}`, "127.0.0.1", `127.0.0.1:${port}`, "127.1.2.3", "[::1]", `[::1]:${port}`, "LOCALHOST"]) {
      assert.equal((await from({ host })).status, 200, host);
    }
    assert.equal((await from({ host: `localhost:${port}`, origin: `${t.scheme}://localhost:${port}` })).status, 200);
  });

  t.it("pages of other sites may not", async () => {
    for (const host of ["evil.example", `evil.example:${t.server.port}`, "127.evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "128.0.0.1", "localhost:1:2", "127.0.0.1.5.6.7.8.9.10.11.12.13"]) {
      wrong(await from({ host }), 403, /--allow-host/);
    }
    for (const origin of ["http://evil.example", "null", `${t.scheme}://localhost`, `${t.scheme}://localhost:${t.server.port}.evil.example`]) {
      wrong(await from({ origin }), 403);
      wrong(await post(t, "faults", { status: 429 }, { headers: { origin } }), 403);
    }
    wrong(await from({ host: "evil.example", authorization: `Bearer ${emulatorKey}` }), 403);
  });
});

// ---- faults ----

suite("faults", (t) => {
  const retrying = { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 9, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 30 }, enableBackgroundEndpointRefreshing: false } };
  const set = async (body) => {
    const answer = await post(t, "faults", body);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  };
  const list = () => ask(t, "faults");
  const clear = () => t.rest.delete("/_tesela/faults", bare);

  t.it("are set, listed and taken back", async () => {
    await clear();
    const one = await set({ status: 429, count: 10, retryAfterMs: 250, ...{ database: "d", container: "c", range: "3", operation: "write" } });
    assert.deepEqual(one, { id: one.id, status: 429, substatus: 3200, retryAfterMs: 250, delayMs: 0, database: "d", container: "c", range: "3", operation: "write", count: 10, left: 10, hits: 0 });
    const two = await set({ status: 503, percent: 12.5, seed: 42, delayMs: 5 });
    assert.deepEqual(two, { id: two.id, status: 503, substatus: 0, retryAfterMs: 0, delayMs: 5, operation: "any", percent: 12.5, seed: 42, hits: 0 });
    assert.deepEqual((await list()).faults, [one, two]);
    assert.equal((await t.rest.delete(`/_tesela/faults?id=${one.id}`, bare)).status, 200);
    wrong(await t.rest.delete(`/_tesela/faults?id=${one.id}`, bare), 404);
    wrong(await t.rest.delete("/_tesela/faults?id=x", bare), 400);
    assert.deepEqual((await list()).faults, [two]);
    assert.equal((await clear()).json.removed, 1);
    assert.deepEqual((await list()).faults, []);
  });

  t.it("must make sense", async () => {
    const bad = [
      {}, { status: 200 }, { status: 404 }, { status: 418 }, { status: "429" }, { status: 429.5 }, { status: -429 }, { status: 1e300 },
      { status: 429, count: 0 }, { status: 429, count: -1 }, { status: 429, count: 1e10 }, { status: 429, count: 1.5 }, { status: 429, count: "3" },
      { status: 429, percent: 0 }, { status: 429, percent: 101 }, { status: 429, percent: -5 }, { status: 429, percent: "5" },
      { status: 429, seed: -1 }, { status: 429, seed: 1e300 }, { status: 429, retryAfterMs: 1e9 }, { delayMs: 0 }, { delayMs: 600_001 },
      { delayMs: 1e300 }, { status: 429, substatus: 70_000 }, { status: 429, operation: "delete" }, { status: 429, operation: 1 },
      { status: 429, database: 5 }, { status: 429, container: "x".repeat(256) }, { status: 429, range: "x" }, { status: 429, range: {} },
      { status: 429, protocol: "mongo" }, { status: 429, cuont: 1 },
    ];
    for (const body of bad) wrong(await post(t, "faults", body), 400);
    assert.deepEqual((await list()).faults, []);
  });

  t.it("are not more than a hundred", async () => {
    for (let i = 0; i < 100; i++) await set({ status: 429, database: "nobody" });
    wrong(await post(t, "faults", { status: 429 }), 400, /100 faults/);
    assert.equal((await clear()).json.removed, 100);
  });

  t.it("throttle, and the SDK comes back", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const client = t.newClient(retrying);
    await set({ status: 429, count: 3, retryAfterMs: 60, ...names(t, container) });
    const { injected } = await list();
    const started = performance.now();
    const answer = await client.database(t.database.id).container(container.id).item("1", "a").read();
    assert.equal(answer.statusCode, 200);
    assert.ok(performance.now() - started >= 180, "it waited as long as it was told");
    assert.equal(answer.headers["x-ms-throttle-retry-count"] ?? 3, 3);
    assert.equal((await list()).injected, injected + 3);
    assert.deepEqual((await list()).faults, []);
    client.dispose();

    await set({ status: 429, count: 1, ...names(t, container) });
    const error = await fails(container.item("1", "a").read(), 429, { substatus: 3200, text: "Request rate is large" });
    assert.equal(Number(error.headers["x-ms-retry-after-ms"]), 100);
    assert.ok(Number(error.headers["x-tesela-fault"]) > 0);
    assert.equal((await container.item("1", "a").read()).statusCode, 200);
  });

  // The SDK assumes that a range that is gone never comes back. So the range is really split, and the fault comes before the real answer.
  t.it("say that a range is gone, and bulk writes recover", async () => {
    const container = await t.container();
    const bulk = (from) =>
      container.items.executeBulkOperations(
        Array.from({ length: 20 }, (_, i) => ({ operationType: "Create", partitionKey: `p${i}`, resourceBody: { id: `${from + i}`, pk: `p${i}` } })),
      );
    const worked = (results) => assert.ok(results.every((one) => one.response?.statusCode === 201), JSON.stringify(results[0]));
    worked(await bulk(0));
    assert.equal((await post(t, "split", { ...names(t, container), range: 0 })).status, 200);
    const { id } = await set({ status: 410, range: "0", ...names(t, container) });
    worked(await bulk(100));
    assert.equal((await list()).faults.find((one) => one.id === id), undefined, "it was hit");
    await set({ status: 410, ...names(t, container) });
    await fails(container.item("1", "p1").read(), 410, { substatus: 1002 });
    await set({ status: 410, substatus: 1007, ...names(t, container) });
    await fails(container.item("1", "p1").read(), 410, { substatus: 1007 });
  });

  t.it("give the service's other errors", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const path = `${t.databasePath}/colls/${container.id}/docs/1`;
    for (const [status, word, text] of [
      [449, "RetryWith", "Conflicting request to resource has been attempted. Retry to avoid conflicts."],
      [503, "ServiceUnavailable", "Service is currently unavailable."],
      [408, "RequestTimeout", "did not complete within the allotted amount of time"],
      [500, "InternalServerError", "unexpected error"],
    ]) {
      await set({ status, ...names(t, container) });
      const answer = await t.rest.get(path, { headers: key("a") });
      assert.equal(answer.status, status);
      assert.equal(answer.json.code, word);
      assert.ok(answer.message.includes(text), answer.message);
      assert.equal(answer.substatus, 0);
      assert.equal(answer.headers["x-ms-retry-after-ms"], undefined);
      assert.ok(answer.headers["x-ms-session-token"]);
      assert.equal((await t.rest.get(path, { headers: key("a") })).status, 200);
    }
    await set({ status: 449, retryAfterMs: 7, ...names(t, container) });
    assert.equal((await t.rest.get(path, { headers: key("a") })).headers["x-ms-retry-after-ms"], "7");
    await set({ status: 449, operation: "write", ...names(t, container) });
    await fails(container.items.upsert({ id: "1", pk: "a" }), 449, { text: "Conflicting request" });
    await set({ status: 503, operation: "write", ...names(t, container) });
    await fails(container.items.upsert({ id: "1", pk: "a" }), 503);
    const { resource } = await container.item("1", "a").read();
    assert.equal(resource.id, "1");
  });

  t.it("make answers late, and nobody else waits", async () => {
    const container = await t.container();
    const other = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    await set({ delayMs: 1500, count: 3, ...names(t, container) });
    const started = performance.now();
    const late = [container.item("1", "a").read(), container.items.create({ id: "2", pk: "a" }), container.items.readAll().fetchAll()];
    let answered = 0;
    for (const each of late) each.then(() => answered++);
    const meanwhile = await other.items.create({ id: "1", pk: "a" });
    assert.equal(meanwhile.statusCode, 201);
    assert.equal(answered, 0, "the other container did not wait");
    const [read, created, all] = await Promise.all(late);
    assert.ok(performance.now() - started >= 1500);
    assert.deepEqual([read.statusCode, created.statusCode, read.headers["x-tesela-fault"]], [200, 201, undefined]);
    assert.ok(all.resources.length >= 1);

    await set({ status: 503, delayMs: 300, ...names(t, container) });
    const before503 = performance.now();
    const answer = await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/1`, { headers: key("a") });
    assert.equal(answer.status, 503);
    assert.ok(performance.now() - before503 >= 300);
  });

  t.it("survive clients that leave before the late answer", async () => {
    const container = await t.container();
    await set({ delayMs: 100, count: 20, ...names(t, container) });
    for (let i = 0; i < 20; i++) {
      const socket = net.connect(t.server.port, "localhost");
      await new Promise((done) => socket.on("connect", done));
      const date = new Date().toUTCString();
      const link = `dbs/${t.database.id}/colls/${container.id}`;
      socket.write(`GET /${link}/docs/1 HTTP/1.1\r\nHost: localhost\r\nx-ms-date: ${date}\r\nauthorization: ${sign(emulatorKey, "GET", "docs", `${link}/docs/1`, date)}\r\n\r\n`);
      await sleep(2);
      socket.destroy();
    }
    await sleep(300);
    assert.ok((await ask(t, "")).connections >= 1);
    await clear();
  });

  t.it("are for those requests only that they name", async () => {
    const container = await t.container({ throughput: 2000 });
    const other = await t.container();
    const ranges = new Map();
    for (let i = 0; ranges.size < 2; i++) {
      const { headers } = await container.items.create({ id: `${i}`, pk: `p${i}` });
      ranges.set(headers["x-ms-documentdb-partitionkeyrangeid"], `${i}`);
    }
    const [[first, i], [second, j]] = ranges;
    const read = (n) => container.item(n, `p${n}`).read();
    const fault = await set({ status: 503, percent: 100, operation: "read", range: first, ...names(t, container) });
    await fails(read(i), 503);
    assert.equal((await read(j)).statusCode, 200);
    assert.equal((await container.items.upsert({ id: i, pk: `p${i}` })).statusCode, 200);
    assert.equal((await other.items.create({ id: "1", pk: "a" })).statusCode, 201);
    assert.equal((await container.items.readAll().fetchAll()).resources.length > 0, true);
    assert.ok((await list()).faults.find((one) => one.id === fault.id).hits >= 1);
    await clear();

    await set({ status: 503, percent: 100, operation: "write", database: t.database.id });
    await fails(other.items.upsert({ id: "1", pk: "a" }), 503);
    await fails(other.item("1", "a").patch([{ op: "add", path: "/x", value: 1 }]), 503);
    await fails(other.item("1", "a").delete(), 503);
    await assert.rejects(container.items.batch([{ operationType: "Read", id: i }], `p${i}`), /Service is currently unavailable/);
    assert.equal((await read(i)).statusCode, 200);
    assert.equal((await other.items.query("SELECT * FROM c", { partitionKey: "a" }).fetchAll()).resources.length, 1);
    assert.equal((await t.database.containers.create({ id: t.name(), partitionKey: "/pk" })).statusCode, 201);
    await clear();

    await set({ status: 503, percent: 100 });
    refused(await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/1`, { headers: key("p1"), key: Buffer.alloc(64, 7).toString("base64") }), 401);
    refused(await t.rest.get(`${t.databasePath}/colls/nobody/docs/1`, { headers: key("p1") }), 404, { substatus: 1003 });
    assert.equal((await container.read()).statusCode, 200);
    await clear();
  });

  t.it("by percentage hit the same requests with the same seed", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const path = `${t.databasePath}/colls/${container.id}/docs/1`;
    const pattern = async (seed) => {
      await set({ status: 503, percent: 30, seed, ...names(t, container) });
      let text = "";
      for (let i = 0; i < 60; i++) text += (await t.rest.get(path, { headers: key("a") })).status === 503 ? "x" : ".";
      await clear();
      return text;
    };
    const first = await pattern(7);
    assert.ok(first.includes("x") && first.includes("."));
    assert.equal(await pattern(7), first);
    assert.notEqual(await pattern(8), first);
  });
}, { flags: ["--partition-max-throughput", "1000", "--merges", "off"] });

// ---- commands ----

describe("commands", () => {
  let server, rest, container, endpoint;
  const tesela = (...args) => run([...args, ...endpoint]);
  before(async () => {
    server = await Server.start({ flags: ["--merges", "off", "--throttling", "on"] });
    rest = new Rest({ server });
    endpoint = ["--endpoint", `http://localhost:${server.port}`];
    assert.equal((await rest.post("/dbs", { id: "shop" })).status, 201);
    assert.equal((await rest.post("/dbs/shop/colls", { id: "orders", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } })).status, 201);
    for (let i = 0; i < 20; i++) assert.equal((await rest.post("/dbs/shop/colls/orders/docs", { id: `${i}`, pk: `p${i}` }, { headers: key(`p${i}`) })).status, 201);
  });
  after(async () => {
    rest.close();
    await server.stop();
  });

  it("have help with examples", async () => {
    const all = await run(["--help"]);
    for (const command of ["top", "explain", "split", "merge", "events", "fault", "keys"]) {
      assert.match(all.stdout, new RegExp(`^  ${command} `, "m"));
      const help = await run([command, "--help"]);
      assert.equal(help.code, 0);
      assert.match(help.stdout, new RegExp(`usage: tesela ${command}`));
      assert.match(help.stdout, /examples?:/);
      assert.match(help.stdout, /--endpoint/);
      assert.doesNotMatch(help.stdout, /\[true\]/);
      assert.equal((await run(["help", command])).stdout, help.stdout);
    }
  });

  it("top --once prints a plain table", async () => {
    const { code, stdout } = await tesela("top", "--once");
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /\x1b/);
    const lines = stdout.trimEnd().split("\n").map((line) => line.split(/\s+/));
    assert.deepEqual(lines[0], ["CONTAINER", "RANGE", "NORM%", "RU/S", "SHARE", "429/S", "REQ/S", "ITEMS", "BYTES", "AVG_US", "MAX_US", "HOTTEST"]);
    assert.deepEqual([lines[1][0], lines[1][1], lines[1][4], lines[1][7]], ["shop/orders", "all", "400.00", "20"]);
    assert.deepEqual([lines[2][0], lines[2][1], lines[2][7]], ["shop/orders", "0", "20"]);
    assert.match(lines[2][11], /^\["p\d+"\]$/);
    assert.equal(lines.length, 3);
    assert.equal((await tesela("top", "shop/orders", "--once")).stdout.split("\n").length, 4);
    assert.equal((await tesela("top", "shop")).code, 0, "no terminal: once");
    const nobody = await tesela("top", "nobody/x", "--once");
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /no such database or container/);
  });

  it("split, merge and events", async () => {
    const split = await tesela("split", "shop/orders", "0", "--parts", "3");
    assert.equal(split.code, 0, split.stderr);
    assert.match(split.stdout, /split  shop\/orders +0 → 1 2 3  command  20 items/);
    const merge = await tesela("merge", "shop/orders", "2", "3");
    assert.match(merge.stdout, /merge  shop\/orders +2 3 → 4  command/);
    const events = await tesela("events", "shop/orders");
    assert.equal(events.stdout, merge.stdout + split.stdout);
    assert.equal((await tesela("events", "--limit", "1")).stdout, merge.stdout);
    for (const [args, code, text] of [
      [["split", "shop/orders", "0"], 1, /gone/],
      [["split", "shop/orders", "77"], 1, /no range 77/],
      [["split", "shop/orders"], 2, /usage/],
      [["split", "shop", "1"], 2, /DATABASE\/CONTAINER/],
      [["split", "shop/orders", "x"], 2, /range/],
      [["split", "shop/orders", "1", "--parts", "1000"], 2, /parts/],
      [["merge", "shop/orders", "4", "1"], 1, /neighbours/],
      [["merge", "shop/orders", "4"], 2, /usage/],
      [["merge", "a/b/c", "4", "1"], 2, /DATABASE\/CONTAINER/],
      [["events", "--limit", "0"], 2, /limit/],
      [["events", "other"], 1, /no such database/],
      [["events", "shop/other"], 1, /no such container/],
      [["events", "--what"], 2, /unknown option/],
    ]) {
      const answer = await tesela(...args);
      assert.equal(answer.code, code, `${args}: ${answer.stderr}`);
      assert.match(answer.stderr, text, `${args}`);
    }
  });

  it("fault", async () => {
    const set = await tesela("fault", "--status", "429", "--count", "2", "--container", "shop/orders", "--operation", "read", "--retry-after", "5");
    assert.equal(set.code, 0, set.stderr);
    assert.equal(JSON.parse(set.stdout).count, 2);
    assert.equal(JSON.parse((await tesela("fault")).stdout).faults.length, 1);
    const answer = await rest.get("/dbs/shop/colls/orders/docs/1", { headers: key("p1") });
    assert.equal(answer.status, 429);
    assert.equal(answer.headers["x-ms-retry-after-ms"], "5");
    const { id } = JSON.parse((await tesela("fault", "--delay", "5", "--percent", "0.5", "--seed", "3")).stdout);
    assert.equal((await tesela("fault", "--remove", `${id}`)).code, 0);
    assert.equal((await tesela("fault", "--remove", `${id}`)).code, 1);
    assert.equal(JSON.parse((await tesela("fault", "--clear")).stdout).removed, 1);
    for (const args of [["--status", "200"], ["--status", "x"], ["--count", "3"], ["--status", "429", "--clear"], ["--status", "429", "--percent", "200"], ["--status", "429", "--container", "a/b/c"]]) {
      const bad = await tesela("fault", ...args);
      assert.ok(bad.code === 1 || bad.code === 2, `${args}`);
      assert.ok(bad.stderr.length > 10);
    }
  });

  it("say where a server is missing", async () => {
    const free = await new Promise((done) => {
      const listener = net.createServer().listen(0, "127.0.0.1", () => {
        const { port } = listener.address();
        listener.close(() => done(port));
      });
    });
    const nobody = await run(["top", "--once", "--endpoint", `localhost:${free}`]);
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /no server at localhost:.*Is 'tesela serve' running/);
    for (const bad of ["ftp://x", "http://", "http://x:0", "http://x:70000", "http://x:y", "http://[::1", "http://a/b"]) {
      assert.equal((await run(["events", "--endpoint", bad])).code, 2, bad);
    }
  });

  // The server that answers may be some other program.
  it("survive servers that are others", async () => {
    const answers = ["", "garbage", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n[]", 'HTTP/1.1 200 OK\r\n\r\n{"ranges":7,"events":[7,{}]}', "HTTP/1.1 abc\r\n\r\n", 'HTTP/1.1 500 X\r\n\r\n{"message":"\\u001b[2Jboo"}'];
    for (const text of answers) {
      const other = net.createServer((socket) => socket.on("data", () => socket.end(text)).on("error", () => {}));
      const port = await new Promise((done) => other.listen(0, "127.0.0.1", () => done(other.address().port)));
      for (const args of [["top", "--once"], ["events"], ["fault"], ["split", "a/b", "0"]]) {
        const { code, stdout, stderr } = await run([...args, "--endpoint", `127.0.0.1:${port}`]);
        assert.ok(code === 0 || code === 1, `${args} ${text}: ${code} ${stderr}`);
        assert.doesNotMatch(stdout + stderr, /\x1b/);
      }
      other.close();
    }
  });

  it("top draws in a terminal and gives it back", { skip: spawnable("script") ? false : "there is no script command" }, async () => {
    const command = `stty cols 120 rows 12; exec ${binary} top ${endpoint.join(" ")}`;
    const child = spawn("script", ["-qec", command, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, TERM: "xterm" } });
    let text = "";
    child.stdout.on("data", (bytes) => (text += bytes));
    const ended = new Promise((done, fail) => child.on("error", fail).on("close", done));
    const shows = (what) => eventually(`it shows ${what}`, () => text.includes(what));
    await shows("shop/orders");
    await shows("by name");
    child.stdin.write("u");
    await shows("by RU");
    child.stdin.write("\x1b[B");
    child.stdin.write("q");
    assert.equal(await ended, 0);
    assert.ok(text.startsWith("\x1b[?1049h"));
    assert.ok(text.trimEnd().endsWith("\x1b[?1049l"), JSON.stringify(text.slice(-60)));
  });
});

function spawnable(program) {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(`${folder}/${program}`));
}

// ---- ends ----

describe("an admin's requests and the server's end", () => {
  it("late answers do not hold it up", async () => {
    const server = await Server.start();
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    await rest.post("/_tesela/faults", { delayMs: 500_000, count: 3 }, bare);
    const late = [1, 2].map(() => rest.post("/dbs/d/colls/c/docs", { id: "1", pk: "a" }, { headers: key("a") }));
    await sleep(200);
    const started = performance.now();
    await server.stop();
    assert.ok(performance.now() - started < 5000);
    assert.deepEqual((await Promise.all(late)).map((answer) => answer.status).sort(), [201, 409]);
    rest.close();
  });

  it("splits under way are waited for", async () => {
    const server = await Server.start();
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    for (let i = 0; i < 50; i++) await rest.post("/dbs/d/colls/c/docs", { id: "1", pk: `${i}` }, { headers: key(`${i}`) });
    const asked = Array.from({ length: 20 }, (_, i) => rest.post("/_tesela/split", { database: "d", container: "c", range: `${i}` }, bare).catch(() => undefined));
    const reports = Array.from({ length: 20 }, () => rest.get("/_tesela/hotkeys?database=d&container=c", bare).catch(() => undefined));
    await sleep(10);
    await server.stop();
    const answers = await Promise.all([...asked, ...reports]);
    for (const answer of answers) assert.ok(answer === undefined || [200, 400, 404, 410, 503].includes(answer.status), answer?.text);
    rest.close();
  });

  it("sizes are known again after a restart", async () => {
    const server = await Server.start();
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    for (let i = 0; i < 50; i++) await rest.post("/dbs/d/colls/c/docs", { id: "1", pk: `p${i}`, s: "x".repeat(i) }, { headers: key(`p${i}`) });
    const hot = (of) => of.get("/_tesela/hotkeys?database=d&container=c", bare).then((answer) => answer.json);
    const first = await hot(rest);
    server.keeps = true;
    await server.stop();
    const again = await Server.start({ data: server.data });
    const restAgain = new Rest({ server: again });
    const second = await hot(restAgain);
    assert.equal(second.sizesComplete, true);
    assert.deepEqual(second.bySize, first.bySize);
    assert.deepEqual(second.byRu, []);
    again.keeps = false;
    await again.stop();
    rest.close();
    restAgain.close();
  });
});
