// tesela copy: a container gets another partition key while writers create, replace, move and delete items; nothing is lost or doubled.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, random, rounds, run, Server } from "./harness.js";
import { binary } from "./server.js";

let folder, server, client, database;
const at = (name) => join(folder, name);
const copy = (...args) => run(["copy", ...args, "--endpoint", server.endpoint("http")]);
const bare = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;
const all = async (name) => (await database.container(name).items.readAll().fetchAll()).resources.map(bare);
const sorted = (items) => items.map((item) => JSON.stringify(Object.entries(item).sort())).sort();

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tesela-copy-"));
  server = await Server.start({ flags: ["--partition-max-throughput", "400"] });
  client = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey });
  ({ database } = await client.databases.create({ id: "shop" }));
});
after(async () => {
  client.dispose();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

// Writes at random until it is told to stop. An item's `city`, the key of the copy, changes now and then.
class Writers {
  #going = true;
  #done;
  writes = 0;
  constructor(container, seed) {
    const next = random(seed), pick = (bound) => Math.floor(next() * bound);
    this.#done = Promise.all(Array.from({ length: 4 }, (_, writer) => this.#write(container, writer, pick)));
  }
  async #write(container, writer, pick) {
    for (let n = 0; this.#going; n++) {
      const id = `w${writer}-${pick(60)}`, day = `day-${writer}`;
      if (pick(4) === 0) await container.item(id, day).delete().catch((e) => assert.equal(e.code, 404));
      else await container.items.upsert({ id, day, city: `city-${pick(7)}`, n });
      this.writes++;
    }
  }
  async stop() {
    this.#going = false;
    await this.#done;
  }
}

async function fill(name, n) {
  const { container } = await database.containers.create({ id: name, partitionKey: "/day", throughput: 1200 });
  for (let from = 0; from < n; from += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, k) => container.items.create({ id: `i${from + k}`, day: `d${(from + k) % 9}`, city: `city-${k % 5}`, n: from + k })));
  }
  return container;
}

describe("tesela copy", () => {
  it("ends when it has caught up, and the copy has the new key", async () => {
    await fill("plain", 1200);
    const { code, stdout, stderr } = await copy("shop/plain", "shop/plain-by-city", "--create", "/city");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /1200 changes copied, 0 items removed/);
    assert.deepEqual(sorted(await all("plain-by-city")), sorted(await all("plain")));
    assert.deepEqual((await database.container("plain-by-city").read()).resource.partitionKey.paths, ["/city"]);
    const again = await copy("shop/plain", "shop/plain-by-city");
    assert.match(again.stderr, /has items already/);
  });

  it("follows writers until the cut-over: deletes and changed keys too, through a kill and a split", async () => {
    const container = await fill("live", 600);
    const writers = new Writers(container, 11);
    const args = ["copy", "shop/live", "shop/live-by-city", "--create", "/city", "--follow", "--journal", at("live.journal"), "--endpoint", server.endpoint("http")];
    const started = () => {
      const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
      child.text = "";
      child.stdout.on("data", (bytes) => (child.text += bytes));
      child.stderr.on("data", (bytes) => (child.text += bytes));
      child.ended = new Promise((done) => child.on("close", (code, signal) => done(signal ?? code)));
      return child;
    };
    const first = started();
    for (let turn = 0; turn < 2000 && !existsSync(at("live.journal")); turn++) await new Promise((done) => setTimeout(done, 10));
    first.kill("SIGKILL");
    assert.equal(await first.ended, "SIGKILL", first.text);
    const second = started();
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
    assert.equal((await run(["split", "shop/live", ranges[0].id, "--endpoint", server.endpoint("http")])).code, 0);
    const before = writers.writes;
    while (writers.writes < before + rounds(800)) await new Promise((done) => setTimeout(done, 20));
    await writers.stop();
    second.kill("SIGINT");
    assert.equal(await second.ended, 0, second.text);
    assert.match(second.text, /[1-9]\d* items removed/);
    assert.deepEqual(sorted(await all("live-by-city")), sorted(await all("live")));
    assert.ok(!existsSync(at("live.journal")));
  });

  it("runs the cut-over's command when it has caught up, and copies what came until then", async () => {
    const container = await fill("cut", 300);
    const writers = new Writers(container, 23);
    writeFileSync(at("go.sh"), `touch ${at("stopping")}; while [ ! -e ${at("stopped")} ]; do sleep 0.05; done\n`);
    const copied = copy("shop/cut", "shop/cut-by-city", "--create", "/city", "--cut-over", `sh ${at("go.sh")}`);
    for (let turn = 0; turn < 3000 && !existsSync(at("stopping")); turn++) await new Promise((done) => setTimeout(done, 10));
    await writers.stop();
    writeFileSync(at("stopped"), "");
    const { code, stderr } = await copied;
    assert.equal(code, 0, stderr);
    assert.deepEqual(sorted(await all("cut-by-city")), sorted(await all("cut")));
    const failed = await copy("shop/cut", "shop/cut-2", "--create", "/city", "--cut-over", "exit 3");
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /cut-over command failed/);
  });
});
