// tesela rekey: a container gets another partition key while writers create, replace, move and delete items, through kills of the command
// and of the server; nothing is lost or doubled, and readers find every item all the time.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, eventually, random, rounds, run, Server, sleep } from "./harness.js";
import { binary } from "./server.js";

let folder, server, client, database;
const at = (name) => join(folder, name);
const bare = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;
const words = (name, ...args) => ["rekey", `shop/${name}`, ...args, "--journal", at(name), "--endpoint", server.endpoint("http")];
const rekey = (name, ...args) => run(words(name, ...args));
const all = async (name) => (await database.container(name).items.readAll().fetchAll()).resources.map(bare);
const sorted = (items) => items.map((item) => JSON.stringify(Object.entries(item).sort())).sort();
const definition = async (name) => (await database.container(name).read()).resource;

function connect() {
  client?.dispose();
  client = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey });
  database = client.database("shop");
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tesela-rekey-"));
  server = await Server.start({ data: at("data"), flags: ["--partition-max-throughput", "400"] });
  connect();
  await client.databases.create({ id: "shop" });
});
after(async () => {
  client.dispose();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function fill(name, n, more = {}) {
  const { container } = await database.containers.create({ id: name, partitionKey: "/day", throughput: 1200, ...more });
  for (let from = 0; from < n; from += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, k) => container.items.create({ id: `i${from + k}`, day: `d${(from + k) % 9}`, city: `city-${k % 5}`, n: from + k })));
  }
  return container;
}

// Each writer owns its ids and knows what each must be. A write is repeated until it is answered; when the container's key has changed, the
// writer goes on in the new layout.
class Writers {
  #going = true;
  #done;
  writes = 0;
  moved = 0;
  items = new Map();
  constructor(name, seed) {
    const next = random(seed), pick = (bound) => Math.floor(next() * bound);
    this.#done = Promise.all(Array.from({ length: 4 }, (_, writer) => this.#write(name, writer, pick)));
  }
  async #layout(name) {
    const own = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } });
    const container = own.database("shop").container(name);
    const path = (await container.read()).resource.partitionKey.paths[0].slice(1);
    return { own, container, path };
  }
  async #write(name, writer, pick) {
    let layout = await this.#layout(name);
    for (let n = 0; this.#going; n++) {
      const id = `w${writer}-${pick(60)}`, was = this.items.get(id);
      const item = was && pick(4) === 0 ? undefined : { id, day: `day-${writer}`, city: `city-${pick(7)}`, n };
      if (!item && layout.path === "city" && !was) continue;
      for (let repeated = false; ; repeated = true) {
        try {
          if (!item) await layout.container.item(id, was[layout.path]).delete();
          else if (layout.path === "city" && was && was.city !== item.city) {
            await layout.container.items.upsert(item); // the new layout has no move: the item is put at its new key, then the old one goes
            await layout.container.item(id, was.city).delete().catch((e) => assert.equal(e.code, 404));
          } else await layout.container.items.upsert(item);
          break;
        } catch (e) {
          const renewed = await this.#layout(name).catch(() => undefined);
          if (!renewed) { await sleep(50); continue; }
          layout.own.dispose();
          const same = renewed.path === layout.path;
          this.moved += !same;
          layout = renewed;
          if (e.code === 404 && !item && same && repeated) break; // an earlier try has deleted it
          if (same && typeof e.code === "number" && e.code >= 400 && e.code < 500 && e.code !== 404 && e.code !== 408 && e.code !== 429) throw e;
          if (same && e.code === 404 && !repeated) throw new Error(`${id} is lost`);
        }
      }
      item ? this.items.set(id, item) : this.items.delete(id);
      this.writes++;
    }
    layout.own.dispose();
  }
  async more(n) {
    const from = this.writes;
    await eventually("writes", () => this.writes >= from + n);
  }
  async stop() {
    this.#going = false;
    await this.#done;
  }
}

// Readers of items that are always there: by id and key, by a query for an id, and by pages of a query for all. A writer replaces some of the
// items: a read answers the last version that was acknowledged before it, or a newer one.
class Readers {
  #name;
  #total;
  #going = true;
  #done;
  #versions = new Map(); // of replaced items: acknowledged
  counts = { point: 0, query: 0, pages: 0, write: 0, moved: 0 };
  constructor(name, total, seed) {
    const next = random(seed);
    this.#name = name;
    this.#total = total;
    // Each with what docs/migrate.md allows at the switch.
    const point = [this.#point, (e) => e.code === 404], query = [this.#query, () => false];
    const pages = [this.#pages, (e) => e.code === 400 && /Invalid Continuation Token/.test(e.message)];
    const write = [this.#write, (e) => e.code === 400 && e.substatus === 1001];
    this.#done = Promise.all([point, point, query, query, pages, write].map((each) => this.#run(...each, (bound) => Math.floor(next() * bound))));
  }
  async #layout() {
    const own = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey });
    const container = own.database("shop").container(this.#name);
    return { own, container, path: (await container.read()).resource.partitionKey.paths[0].slice(1) };
  }
  async #run(loop, allowed, pick) {
    let layout = await this.#layout();
    while (this.#going) {
      const failed = await loop.call(this, layout, pick).then(() => undefined, (e) => e);
      if (!failed) continue;
      const renewed = await this.#layout();
      layout.own.dispose();
      if (renewed.path === layout.path || !allowed(failed)) throw failed;
      this.counts.moved++;
      layout = renewed;
    }
    layout.own.dispose();
  }
  #pick(pick) {
    const n = pick(this.#total);
    return { id: `i${n}`, n, day: `d${n % 9}`, city: `city-${(n % 100) % 5}` };
  }
  #check(item, expected, least) {
    assert.ok(item, `${expected.id} is lost`);
    for (const member of ["id", "day", "city", "n"]) assert.equal(item[member], expected[member]);
    assert.ok((item.version ?? 0) >= least, `${expected.id}: version ${item.version}, but ${least} was acknowledged`);
  }
  async #point({ container, path }, pick) {
    const expected = this.#pick(pick), least = this.#versions.get(expected.id) ?? 0;
    const { resource, statusCode } = await container.item(expected.id, expected[path]).read();
    if (statusCode === 404) throw Object.assign(new Error(`${expected.id} is lost`), { code: 404 });
    this.#check(resource, expected, least);
    this.counts.point++;
  }
  async #query({ container }, pick) {
    const expected = this.#pick(pick), least = this.#versions.get(expected.id) ?? 0;
    const { resources } = await container.items.query({ query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: expected.id }] }).fetchAll();
    assert.equal(resources.length, 1, `${expected.id} by a query`);
    this.#check(resources[0], expected, least);
    this.counts.query++;
  }
  async #pages({ container }) {
    const pages = container.items.query("SELECT c.id FROM c", { maxItemCount: 20 }), ids = [];
    while (pages.hasMoreResults()) {
      ids.push(...((await pages.fetchNext()).resources ?? []).map(({ id }) => id));
      await sleep(5);
    }
    assert.equal(ids.length, this.#total, "rows of all pages");
    assert.equal(new Set(ids).size, this.#total);
    this.counts.pages++;
  }
  async #write({ container }, pick) {
    const item = this.#pick((bound) => pick(Math.min(bound, 20))), version = (this.#versions.get(item.id) ?? 0) + 1;
    await container.items.upsert({ ...item, version });
    this.#versions.set(item.id, version);
    this.counts.write++;
    await sleep(2);
  }
  async more(n) {
    const from = { ...this.counts };
    await Promise.race([this.#done, eventually("reads", () => ["point", "query", "write"].every((kind) => this.counts[kind] >= from[kind] + n) && this.counts.pages > from.pages)]);
  }
  async stop() {
    this.#going = false;
    await this.#done;
  }
}

function start(...args) {
  const child = spawn(binary, words(...args), { stdio: ["ignore", "pipe", "pipe"] });
  child.text = "";
  child.stdout.on("data", (bytes) => (child.text += bytes));
  child.stderr.on("data", (bytes) => (child.text += bytes));
  child.ended = new Promise((done) => child.on("close", (code, signal) => done(signal ?? code)));
  return child;
}

describe("tesela rekey", () => {
  it("gives a container another key, with its settings, throughput and scripts", async () => {
    const container = await fill("plain", 1200, {
      indexingPolicy: { indexingMode: "consistent", includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/*" }] },
      defaultTtl: -1,
      uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/n"] }] },
    });
    await container.scripts.storedProcedures.create({ id: "p", body: "function () { getContext().getResponse().setBody(7); }" });
    await container.scripts.triggers.create({ id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "Create" });
    await container.scripts.userDefinedFunctions.create({ id: "f", body: "function (x) { return x + 1; }" });
    const items = sorted(await all("plain")), was = await definition("plain");
    const { code, stdout, stderr } = await rekey("plain", "--partition-key", "/city");
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /1200 items and 0 changes copied/);
    assert.deepEqual(sorted(await all("plain")), items);
    const now = await definition("plain");
    assert.deepEqual(now.partitionKey.paths, ["/city"]);
    for (const member of ["indexingPolicy", "defaultTtl", "uniqueKeyPolicy", "conflictResolutionPolicy", "changeFeedPolicy"]) assert.deepEqual(now[member], was[member], member);
    connect(); // without the key that the SDK has cached
    const renewed = database.container("plain");
    assert.equal((await renewed.item("i7", "city-2").read()).resource.n, 7);
    assert.equal((await renewed.readOffer()).resource.content.offerThroughput, 1200);
    assert.equal((await renewed.scripts.storedProcedure("p").execute("city-1")).resource, 7);
    assert.equal((await renewed.scripts.trigger("t").read()).resource.triggerType, "Pre");
    assert.deepEqual((await renewed.items.query("SELECT VALUE udf.f(1)").fetchAll()).resources, [2]);

    // The old one can be read, and takes no more writes.
    assert.deepEqual((await definition("plain-rekey")).partitionKey.paths, ["/day"]);
    assert.equal((await definition("plain-rekey")).changeFeedPolicy, undefined);
    assert.equal((await all("plain-rekey")).length, 1200);
    await assert.rejects(database.container("plain-rekey").items.create({ id: "x", day: "d" }), { code: 403 });
    const again = await rekey("plain", "--partition-key", "/city");
    assert.equal(again.code, 0, again.stderr); // as after a kill between the switch and the end
    assert.match((await rekey("plain", "--undo")).stderr, /the switch is done/);
    assert.match((await rekey("plain", "--partition-key", "/day")).stderr, /an earlier rekey/);
    const third = await rekey("plain", "--partition-key", "/day,/city", "--as", "third", "--drop");
    assert.equal(third.code, 0, third.stderr);
    assert.deepEqual((await definition("plain")).partitionKey.paths, ["/day", "/city"]);
    await assert.rejects(definition("third"), { code: 404 });
    assert.ok(!existsSync(at("plain")));
  });

  it("lists items that cannot have the new key, and switches nothing; --undo leaves no trace", async () => {
    const container = await fill("twins", 100);
    await container.items.create({ id: "i1", day: "other", city: "city-1", n: 1 });
    await container.items.create({ id: "long", day: "other", city: "x".repeat(2100), n: 1 });
    const first = await rekey("twins", "--partition-key", "/city");
    assert.equal(first.code, 3, first.stderr);
    assert.match(first.stdout, /refused \(409\): "i1": another item/);
    assert.match(first.stdout, /refused \(400\): "long": the new key is too long/);
    assert.deepEqual((await definition("twins")).partitionKey.paths, ["/day"]);
    assert.equal((await definition("twins")).changeFeedPolicy.retentionDuration, 1440);
    const undone = await rekey("twins", "--undo");
    assert.equal(undone.code, 0, undone.stderr);
    assert.equal((await definition("twins")).changeFeedPolicy, undefined);
    await assert.rejects(definition("twins-rekey"), { code: 404 });
    assert.equal((await rekey("twins", "--partition-key", "/city")).code, 3);
    await container.item("i1", "other").delete();
    await container.item("long", "other").replace({ id: "long", day: "other", city: "short" });
    const last = await rekey("twins", "--partition-key", "/city");
    assert.equal(last.code, 0, last.stdout + last.stderr);
    assert.equal((await all("twins")).length, 101);
  });

  it("does not forget after a kill what was refused before it", async () => {
    const container = await fill("again", 100);
    await container.items.create({ id: "i1", day: "other", city: "city-1", n: 1 });
    const first = start("again", "--partition-key", "/city", "--wait");
    await eventually("a refusal in the journal", () => existsSync(at("again")) && /"line":1,.*"failed":1,/.test(readFileSync(at("again"), "utf8")));
    first.kill("SIGKILL");
    await first.ended;
    const second = await rekey("again", "--partition-key", "/city");
    assert.equal(second.code, 3, second.stdout + second.stderr);
    assert.match(second.stdout, /refused \(409\): "i1"/);
    await container.item("i1", "other").delete();
    const third = await rekey("again", "--partition-key", "/city");
    assert.equal(third.code, 0, third.stdout + third.stderr);
    assert.equal((await all("again")).length, 100);
  });

  it("is refused while another one of the container runs, whatever its journal and its target", async () => {
    await fill("twice", 100);
    const first = start("twice", "--partition-key", "/city", "--wait");
    await eventually("a journal", () => existsSync(at("twice")) && /"line":1,/.test(readFileSync(at("twice"), "utf8")));
    const elsewhere = (...args) => run(["rekey", "shop/twice", ...args, "--journal", at("elsewhere"), "--endpoint", server.endpoint("http")]);
    for (const [attempt, code, text] of [
      [rekey("twice", "--partition-key", "/city"), 2, /journal .* is in use: the same command runs already/],
      [rekey("twice", "--undo"), 2, /is in use/],
      [elsewhere("--partition-key", "/city"), 2, /another rekey of twice is under way/],
      [elsewhere("--partition-key", "/n", "--as", "third"), 2, /another rekey of twice is under way/],
      [elsewhere("--undo"), 1, /another rekey of twice is under way/],
    ]) {
      const ended = await attempt;
      assert.equal(ended.code, code, ended.stdout + ended.stderr);
      assert.match(ended.stderr, text);
    }
    assert.ok(!existsSync(at("elsewhere")));
    await assert.rejects(definition("third"), { code: 404 });

    // One that was killed goes on at once; others wait until its claim has ended.
    first.kill("SIGKILL");
    await first.ended;
    assert.match((await elsewhere("--partition-key", "/city")).stderr, /killed less than a minute ago/);
    const second = await rekey("twice", "--partition-key", "/city");
    assert.equal(second.code, 0, second.stdout + second.stderr);
    assert.equal((await all("twice")).length, 100);
    const other = await elsewhere("--partition-key", "/n", "--as", "third");
    assert.equal(other.code, 0, other.stdout + other.stderr);
  });

  it("goes through writers, a split, and kills of the command and of the server", async () => {
    const container = await fill("live", 600);
    const writers = new Writers("live", 11);
    await writers.more(200);
    const first = start("live", "--partition-key", "/city", "--wait");
    await eventually("a journal", () => existsSync(at("live")));
    await writers.more(50);
    first.kill("SIGKILL");
    assert.equal(await first.ended, "SIGKILL", first.text);
    const second = start("live", "--partition-key", "/city", "--wait");
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
    assert.equal((await run(["split", "shop/live", ranges[0].id, "--endpoint", server.endpoint("http")])).code, 0);
    await writers.more(rounds(400));
    server.child.kill("SIGKILL");
    await server.ended;
    server = await Server.start({ data: at("data"), flags: ["--partition-max-throughput", "400", "--sql-port", String(server.port)] });
    connect();
    await writers.more(rounds(400));
    assert.equal(writers.moved, 0);
    second.kill("SIGINT");
    assert.equal(await second.ended, 0, second.text);
    assert.match(second.text, /switched: writers waited/);
    await writers.more(200);
    await writers.stop();
    assert.equal(writers.moved, 4); // each writer has met the new layout
    assert.deepEqual((await definition("live")).partitionKey.paths, ["/city"]);
    const written = (await all("live")).filter((item) => item.id.startsWith("w"));
    assert.deepEqual(sorted(written), sorted([...writers.items.values()]));
    assert.equal((await all("live")).length, 600 + writers.items.size);
    assert.ok(!existsSync(at("live")));
  });

  it("readers find each item all the way through, by id and by query, in its last version", async () => {
    for (let turn = 0; turn < rounds(4); turn++) {
      const name = `read-${turn}`;
      await fill(name, 300);
      const readers = new Readers(name, 300, 21 + turn);
      await readers.more(20);
      const command = start(name, "--partition-key", "/city", "--wait");
      await eventually("a journal", () => existsSync(at(name)));
      await readers.more(20);
      command.kill("SIGINT");
      assert.equal(await command.ended, 0, command.text);
      await readers.more(40);
      await readers.stop();
      assert.ok(readers.counts.moved >= 2, "readers by key have met the new layout");
    }
  });

  it("survives a kill of the server around the switch: the old names or the new ones", async () => {
    for (let turn = 0; turn < rounds(6); turn++) {
      const name = `turn-${turn}`;
      await fill(name, 100);
      const command = start(name, "--partition-key", "/city");
      let ended = false;
      command.ended.then(() => (ended = true));
      await eventually("a journal, or the end", () => existsSync(at(name)) || ended);
      await sleep(turn * 15);
      server.child.kill("SIGKILL");
      await server.ended;
      server = await Server.start({ data: at("data"), flags: ["--partition-max-throughput", "400", "--sql-port", String(server.port)] });
      connect();
      const code = await command.ended;
      if (code !== 0) {
        const again = await rekey(name, "--partition-key", "/city");
        assert.equal(again.code, 0, command.text + again.stdout + again.stderr);
      }
      assert.deepEqual((await definition(name)).partitionKey.paths, ["/city"]);
      assert.equal((await all(name)).length, 100);
      assert.equal((await all(`${name}-rekey`)).length, 100);
    }
  });
});
