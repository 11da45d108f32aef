// lab.js — what the examples share: a server with small limits, a steady load, and what one sees of it.
//
//   const lab = await openLab("telemetry");
//   const container = await lab.container("/deviceId");
//   const seen = await lab.load(container, (n) => ({ id: `${n}`, deviceId: `d${n % 500}` }));
//   lab.show(container, seen);
//   await lab.close();
//
// The server is one of our own, on a free port with a folder of its own, gone at the end; or, with --endpoint URL, one that runs already
// (give it the same limits). --seconds N is how long each load is measured; --json prints figures for programs in place of tables;
// --svg FILE writes the drawing of an example that has one; --keep leaves the database.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CosmosClient, PartitionKeyKind } from "@azure/cosmos";

// A hundredth of the service's throughput, less than a hundred-thousandth of its storage: what takes months there takes seconds here.
export const limits = { partitionRU: 100, partitionKB: 125, logicalPartitionKB: 50 };
const flags = [
  ...["--partition-max-throughput", `${limits.partitionRU}`],
  ...["--partition-max-storage", `${limits.partitionKB}KB`],
  ...["--logical-partition-max-storage", `${limits.logicalPartitionKB}KB`],
];

const binary = process.env.TESELA_BIN || join(dirname(fileURLToPath(import.meta.url)), "../build/tesela");
export const key = process.env.TESELA_KEY || "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const whole = (number) => Math.round(number).toLocaleString("en");
const bar = (part) => "█".repeat(Math.round(20 * Math.min(part, 1)));
const kilobytes = (range) => (range.bytes + range.indexBytes) / 1024;
export const percent = (part) => `${Math.round(100 * part)} %`;

// ---- the server ----

async function startServer(flags) {
  const data = mkdtempSync(join(tmpdir(), "tesela-example-"));
  const child = spawn(binary, ["serve", "--data", data, "--sql-port", "0", "--durability", "relaxed", "--log-level", "error", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("close", done).on("error", done));
  const abandon = () => {
    child.kill("SIGKILL");
    rmSync(data, { recursive: true, force: true });
  };
  process.once("exit", abandon);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const line = await Promise.race([
    new Promise((done) => createInterface({ input: child.stdout }).once("line", done)),
    ended.then((why) => Promise.reject(new Error(`${binary} did not start (${why}); examples/run builds it`))),
  ]);
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    process.off("exit", abandon);
    rmSync(data, { recursive: true, force: true });
  };
  const ready = JSON.parse(line);
  const at = (address) => `http://localhost:${address.replace(/.*:/, "")}`;
  return { endpoint: at(ready.sql), tables: at(ready.table), cassandra: ready.cassandra, mongo: ready.mongo, gremlin: at(ready.gremlin).replace("http", "ws"), stop };
}

// ---- the lab ----

const usualAddresses = { tables: "http://localhost:8902", cassandra: "127.0.0.1:10350", mongo: "localhost:10255", gremlin: "ws://localhost:8901" };

// `usual`: a server with the limits that servers have by default.
export async function openLab(name, { usual = false } = {}) {
  const options = { endpoint: { type: "string" }, seconds: { type: "string", default: "4" }, json: { type: "boolean", default: false }, keep: { type: "boolean", default: false }, svg: { type: "string" } };
  const { values } = parseArgs({ options });
  const server = values.endpoint ? { endpoint: values.endpoint, ...usualAddresses, stop: () => {} } : await startServer(usual ? ["--throttling", "off"] : flags);
  const lab = new Lab(server, values);
  await lab.open(name);
  return lab;
}

class Lab {
  results = {};
  #names = 0;

  constructor(server, { seconds, json, keep, svg }) {
    Object.assign(this, { server, seconds: Number(seconds), json, keep, svg });
    // What is refused is counted here and not tried again; the patient client does what the SDK does by itself: wait, and try again.
    const shared = { endpoint: server.endpoint, key };
    this.client = new CosmosClient({ ...shared, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
    this.patient = new CosmosClient({ ...shared, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } });
  }

  async open(name) {
    const id = `${name}-${Date.now().toString(36)}`;
    await this.patient.databases.create({ id });
    this.database = this.client.database(id);
    this.say(`${this.server.endpoint}, database ${id}\n`);
  }

  async close() {
    if (!this.keep) await this.patient.database(this.database.id).delete();
    this.client.dispose();
    this.patient.dispose();
    await this.server.stop();
    if (this.json) console.log(JSON.stringify(this.results));
  }

  // A figure that programs read (--json), and tests check.
  result(name, value) {
    return (this.results[name] = value);
  }

  #tooSlow() {
    this.result("slow", true);
    this.say("This machine is too busy to keep up the load: the figures that follow are of little worth.\n");
  }

  say(text = "") {
    if (!this.json) console.log(text);
  }

  // `paths`: one, or the levels of a hierarchical key.
  async container(paths, { throughput = 500, ...settings } = {}) {
    const levels = [paths].flat();
    const id = `c${++this.#names}`;
    const partitionKey = { paths: levels, kind: levels.length > 1 ? PartitionKeyKind.MultiHash : PartitionKeyKind.Hash, version: 2 };
    await this.patient.database(this.database.id).containers.create({ id, partitionKey, throughput, ...settings });
    const container = this.database.container(id);
    const ranges = await this.ranges(container);
    if (ranges.length !== Math.ceil(throughput / limits.partitionRU)) {
      throw new Error(`${throughput} RU/s are ${ranges.length} physical partitions there; start that server with: ${flags.join(" ")}`);
    }
    return Object.assign(container, { paths: levels, throughput });
  }

  // The same container through the client that waits and tries again.
  patiently(container) {
    return this.patient.database(this.database.id).container(container.id);
  }

  // The physical partitions, in the order of the hash space. (An application would ask container.readPartitionKeyRanges(): the same list,
  // without what each of them holds.)
  async ranges(container) {
    return (await this.#ask("ranges", container)).ranges;
  }

  async #ask(what, container) {
    const query = new URLSearchParams({ database: this.database.id, container: container.id });
    const answer = await fetch(`${this.server.endpoint}/_tesela/${what}?${query}`, { headers: { authorization: `Bearer ${key}` } });
    if (!answer.ok) throw new Error(`/_tesela/${what}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  // "split" or "merge", by hand.
  async command(what, container, body) {
    const answer = await fetch(`${this.server.endpoint}/_tesela/${what}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ database: this.database.id, container: container.id, ...body }),
    });
    if (!answer.ok) throw new Error(`/_tesela/${what}: ${answer.status} ${await answer.text()}`);
  }

  // Creates item(0), item(1), … at a steady rate, whatever the answers: a client that does not slow down when it is refused. The rate asks
  // for `part` of the container's throughput. The first second spends the credit that an idle partition has; it is not in the figures.
  async load(container, item, { part = 0.8 } = {}) {
    const { requestCharge } = await this.patiently(container).items.create(item(0, -1));
    const perSecond = (part * container.throughput) / requestCharge;
    const seen = new Seen();
    const pending = [];
    let start, last = performance.now();
    for (let n = 1, now = -1; now < this.seconds; ) {
      for (; n <= (now + 1) * perSecond; n++) pending.push(seen.write(container, item(n, now), now));
      await sleep(5);
      const time = performance.now();
      now += Math.min(time - last, 200) / 1000; // where this process was held up for long, the load waits too: no great burst afterwards
      last = time;
      if (now >= 0) start ??= time;
    }
    seen.seconds = (last - start) / 1000;
    await Promise.all(pending);
    seen.asked = (seen.log.length * requestCharge) / seen.seconds;
    if (seen.asked < 0.75 * part * container.throughput) this.#tooSlow();
    return seen;
  }

  // The physical partitions: what each of them holds, and did while the load was measured.
  async show(container, seen) {
    const ranges = await this.ranges(container);
    const share = container.throughput / ranges.length;
    this.say(`${container.paths.join(", ")}: ${whole(container.throughput)} RU/s, ${ranges.length} physical partitions of ${whole(share)} RU/s`);
    const did = (id) => seen.sum((entry) => entry.range === id);
    const rows = ranges.map((range) => {
      const { ru, throttled } = did(range.id);
      return [range.id, range.logicalPartitions, range.items, kilobytes(range), ru, throttled, bar(ru / share)];
    });
    const gone = new Set(seen.log.map((entry) => entry.range).filter((id) => !ranges.some((range) => range.id === id)));
    for (const id of gone) rows.push([id, "-", "-", "-", did(id).ru, did(id).throttled, "was split meanwhile"]);
    this.table(["partition", "keys", "items", "KB", "RU/s", "429s", "of its RU/s"], rows);
  }

  // The same, after splits: what each of them holds.
  async showStorage(container) {
    const ranges = await this.ranges(container);
    this.say(`${container.paths.join(", ")}: ${ranges.length} physical partitions of at most ${limits.partitionKB} KB`);
    const rows = ranges.map((range) => [
      ...[range.id, range.logicalPartitions, range.items, kilobytes(range)],
      ...[bar(kilobytes(range) / limits.partitionKB), range.parents.length ? `from ${range.parents.at(-1)}` : ""],
    ]);
    this.table(["partition", "keys", "items", "KB", "of its storage", "split"], rows);
  }

  // The keys that spent most, as the server knows them: RU/s over about the last minute.
  async showHottest(container, n = 3) {
    const { byRu } = await this.#ask("hotkeys", container);
    const rows = byRu.slice(0, n).map(({ key, range, ruPerSecond }) => [key, range, ruPerSecond]);
    this.table(["hottest keys", "partition", "RU/s"], rows);
  }

  table(heads, rows) {
    const cells = [heads, ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? whole(cell) : `${cell}`)))];
    const isText = heads.map((_, i) => rows.every((row) => typeof row[i] === "string" && !/^([\d,.]+ ?%?|-)$/.test(row[i])));
    const widths = heads.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
    for (const row of cells) {
      this.say(`  ${row.map((cell, i) => (isText[i] ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  ")}`.trimEnd());
    }
    this.say();
  }
}

// ---- what was seen ----

class Seen {
  log = []; // of every write in the measured time: item, second, range, status, ru
  seconds; // how long that was
  asked; // RU/s that all of them together would have been
  fullText; // what a logical partition says that is full

  // Writes of the measured time that fit: how many, how many of them were refused, and what was spent, per second.
  sum(fits = () => true) {
    const all = this.log.filter(fits);
    const count = (status) => all.filter((entry) => entry.status === status).length;
    const ru = all.reduce((sum, entry) => sum + entry.ru, 0) / this.seconds;
    return { writes: all.length, throttled: count(429), full: count(403), ru, part: count(429) / Math.max(1, all.length) };
  }

  // Every answer, a refusal too, names the physical partition that gave it.
  async write(container, item, second) {
    const answer = await container.items.create(item).catch((error) => {
      if (error.code !== 429 && error.substatus !== 1014) throw error;
      return error;
    });
    const { headers, statusCode: status = answer.code, requestCharge: ru = 0 } = answer;
    if (status === 403) this.fullText ??= answer.message.split("\n")[0].trim();
    if (second >= 0) this.log.push({ item, second: Math.floor(second), range: headers["x-ms-documentdb-partitionkeyrangeid"], status, ru });
  }
}
