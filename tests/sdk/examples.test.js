// Runs the examples in examples/ briefly: what docs/partitioning.md says about good and bad partition keys holds. They run concurrently,
// since they mostly wait.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { assert } from "./harness.js";
import { binary, run, Server } from "./server.js";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../../examples");

// The example's own report (--json). If it reports that the machine was too busy for the load, it is run again.
async function figures(name, seconds) {
  let seen;
  for (let turn = 0; turn < 3 && (!seen || seen.slow); turn++) seen = await example(name, seconds);
  return seen;
}

// Runs an example, which starts its own server and has its own copy of the SDK.
async function example(name, seconds) {
  const child = spawn(process.execPath, [join(folder, `${name}.js`), "--json", "--seconds", `${seconds}`], {
    env: { ...process.env, TESELA_BIN: binary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "", stderr = "";
  child.stdout.on("data", (bytes) => (stdout += bytes));
  child.stderr.on("data", (bytes) => (stderr += bytes));
  const code = await new Promise((done, fail) => child.on("error", fail).on("close", done));
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

// The good key gets nearly all of the 400 RU/s requested, and far more than the bad one.
function better(good, bad, times) {
  assert.ok(good.ru > 290, `${good.ru} RU/s with the good key`);
  assert.ok(good.ru > times * bad.ru, `${good.ru} RU/s with the good key, ${bad.ru} with the bad one`);
  assert.ok(good.part < 0.1, `${good.part} refused with the good key`);
  assert.ok(bad.part > 0.3, `${bad.part} refused with the bad key`);
}

// One physical partition gives 100 RU/s. After a pause of a busy machine it has a second's credit; concurrent requests may leave a debt.
function isOneShare(ru, seconds) {
  assert.ok(ru * seconds < 100 * (seconds + 1.5), `${ru} RU/s of one physical partition, for ${seconds} s`);
}

// A command's output without times and numbers of index entries.
const timeless = (line) => line.replace(/ in [\d.,]+ ms$/, "").replace(/[\d,]+ entries of the index/, "entries of the index").trim();

describe("examples", { concurrency: true }, () => {
  before(() => assert.ok(existsSync(join(folder, "node_modules")), "the examples' SDK is installed: (cd examples && npm ci)"));

  it("telemetry: by device all are served, by date one physical partition's worth", async () => {
    const seen = await figures("telemetry", 2);
    better(seen["/deviceId"], seen["/date"], 2);
    isOneShare(seen["/date"].ru, 2);
  });

  it("tenants: a large one outgrows its key, but not a hierarchical key", async () => {
    const seen = await figures("tenants", 1);
    const [flat, levels] = ["/tenantId", "/tenantId, /userId"].map((key) => seen[key]);
    for (const { before } of [flat, levels]) {
      isOneShare(before.contoso.ru, 1);
      assert.ok(before.contoso.part > 0.1 && before.small.part > 0.02, "contoso is refused, and its neighbours too");
    }
    assert.ok(flat.after.papers < 7, `403/1014 after ${flat.after.papers} papers`);
    assert.equal(levels.after.papers, 40);
    assert.ok(levels.after.partitions > 6, `${levels.after.partitions} physical partitions`);
    assert.ok(levels.after.contoso.ru > 140 && levels.after.contoso.part < 0.25, `${levels.after.contoso.ru} RU/s`);
    const apart = seen["two containers"].after;
    assert.ok(apart.contoso.ru > 140 && apart.small.ru > 140 && apart.papers === 40);
  });

  it("time series: by host all are served, by hour the head is hot; scaled down, there are fewer physical partitions", async () => {
    const seen = await figures("timeseries", 2);
    better(seen["/host"], seen["/hour"], 1.5);
    const { before, after } = seen["scaled down"];
    assert.equal(before.partitions, 20);
    assert.ok(after.partitions < 20);
    assert.equal(after.items, before.items);
    assert.equal(before.items, 200);
  });

  it("foods: few groups fill up, ids do not", async () => {
    const seen = await figures("foods", 2);
    assert.ok(seen["/foodGroup"].full > 20, `${seen["/foodGroup"].full} times 403/1014`);
    assert.equal(seen["/id"].full, 0);
    assert.ok(seen["/id"].ru > 290 && seen["/id"].ru > 1.8 * seen["/foodGroup"].ru);
  });

  it("latest state: no reading is lost, none is counted twice", async () => {
    const seen = await example("latest-state", 1);
    assert.deepEqual(seen.rows, ["XMS-001", "XMS-002", "XMS-003"].map((device) => [device, 20, 21, 1019, 37]));
    assert.equal(seen.again, 400);
  });

  it("live copy: the same items under another key, while they are changed and a physical partition is split", async () => {
    const { copy } = await example("live-copy", 2);
    assert.equal(copy.items, 120);
    assert.equal(copy.missing + copy.extra, 0);
    assert.ok(copy.changes > 0 && copy.removals > 0, `${copy.changes} changes, ${copy.removals} removals meanwhile`);
    assert.ok(copy.copied > copy.items && copy.copied <= copy.items + copy.changes + copy.removals, `${copy.copied} items were copied`);
    assert.ok(copy.ranges[0] > copy.ranges[1], `${copy.ranges} physical partitions`);
  });

  it("mongo: a shop by MongoDB's driver, and the same documents by SQL", async () => {
    const seen = await example("mongo", 1);
    assert.equal(seen.day, 3);
    assert.deepEqual(seen.sold, ["ink", "paper", "pen"]);
    assert.deepEqual(seen.orders, ["taken", "not enough pen", 1000]);
    assert.deepEqual(seen.counts, [100, 100, 101]);
    const [one, ...more] = seen.charges;
    assert.equal(one, 1, "one order by its key");
    more.reduce((less, ru) => (assert.ok(ru > less, `${seen.charges} RU: more documents cost more`), ru), one);
  });

  it("modern: TinkerPop's graph answers as its book says", async () => {
    const seen = await example("modern", 1);
    const told = (question) => [...seen[question].answer].sort();
    assert.deepEqual(told("whom marko knows"), ["josh", "vadas"]);
    assert.deepEqual(told("who is older than 30"), ["josh", "peter"]);
    assert.deepEqual(told("who made lop"), ["josh", "marko", "peter"]);
    assert.deepEqual(told("who works with marko"), ["josh", "peter"]);
    assert.deepEqual(seen["best friend first"].answer, ["josh", "vadas"]);
    assert.deepEqual(JSON.parse(seen["the people's ages"].answer[0]), { least: 27, mean: 30.75 });
    assert.deepEqual(JSON.parse(seen["edges by label"].answer[0]), { knows: 2, created: 4 });
    assert.deepEqual(told("ways to ripple"), ["marko → josh → ripple"]);
    assert.ok(seen["whom marko knows"].ru > 1 && seen["whom marko knows"].ru < seen["ways to ripple"].ru);
    assert.deepEqual(seen.sql, ["created lop", "created ripple"]);
  });

  it("airlines: hubs, changes, the cheapest way; the drawing is the one of docs/gremlin.md", async () => {
    const seen = await example("airlines", 1);
    assert.deepEqual(seen.seattle, { lat: [47], lon: [-122] });
    assert.ok(seen.near.includes("London") && seen.near.includes("Sydney") && !seen.near.includes("Seattle") && !seen.near.includes("Tokyo"));
    assert.deepEqual(seen.hubs.slice(0, 2), [{ id: "London", routes: 9 }, { id: "New York", routes: 9 }]);
    assert.deepEqual([seen.price, ...seen.stops], [960, "Seattle", "Chicago", "Frankfurt", "Istanbul", "Nairobi"]);
    assert.equal(seen.svg, readFileSync(join(folder, "../docs/images/airlines.svg"), "utf8"), "drawn again: examples/run airlines --svg docs/images/airlines.svg");
  });

  it("tables: both APIs see and write the same entities", async () => {
    const seen = await example("tables", 1);
    assert.equal(seen.hot, 2);
    assert.deepEqual(seen.means.sort(), ["XMS-001", "XMS-002", "XMS-003"]);
    assert.deepEqual(seen.corrected, [20.5, true, "sensor replaced", 400]);
  });

  it("profiles: rows of Cassandra's tables come in order, and SQL sees them", async () => {
    const seen = await example("profiles", 1);
    assert.deepEqual(seen.messages, ["hello", "hello again"]);
    assert.equal(seen.newest, "message 3");
    assert.deepEqual(seen.sql.sort(), ["hello", "hello again"]);
  });

  it("synthetic keys spread the writes, and each has its price when reading", async () => {
    const seen = await figures("synthetic", 1);
    isOneShare(seen.date.ru, 1);
    for (const key of ["date-vin", "date.random", "date.hash(vin)"]) better(seen[key], seen.date, 1.5);
    assert.equal(seen.date.keys, 1);
    const reads = (key) => [seen[key].one.requests, seen[key].vehicle.requests, seen[key].day.requests];
    assert.deepEqual(reads("date"), [1, 1, 1]);
    assert.deepEqual(reads("date-vin"), [1, 1, 10]);
    assert.deepEqual(reads("date.random").slice(1), [400, 400]);
    assert.deepEqual(reads("date.hash(vin)"), [1, 1, 400]);
    assert.ok(seen["date.random"].one.ru > 10 && seen["date.random"].vehicle.ru >= 400);
    assert.ok(seen["date.hash(vin)"].vehicle.ru < 20);
  });

  it("advise: recommends the device, and sees that the date is bad", async () => {
    const { recommended, keys } = await example("advise", 1);
    assert.equal(recommended, "/deviceId");
    const [device, date] = ["/deviceId", "/date"].map((name) => keys.find(({ key }) => key === name));
    assert.ok(date.refusedShare > 0.4 && device.refusedShare < 0.02, `${date.refusedShare} and ${device.refusedShare} refused`);
    assert.ok(date.hottestShare > 0.7 && device.hottestShare < 0.05 && device.readsInOnePartition > 0.9);
  });

  it("seed: makes the data that docs/admin.md shows", async () => {
    const server = await Server.start({ flags: ["--throttling", "on"] });
    const endpoint = ["--endpoint", server.endpoint("http")];
    for (let turn = 0; turn < 2; turn++) {
      const seeded = spawn(process.execPath, [join(folder, "seed.js"), "--json", ...endpoint], { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      seeded.stdout.on("data", (bytes) => (text += bytes));
      assert.equal(await new Promise((done, fail) => seeded.on("error", fail).on("close", done)), 0);
      assert.equal(JSON.parse(text).items, 1500, "again it is the same");
    }
    assert.equal((await run(["split", "shop/orders", "0", ...endpoint])).code, 0);
    const page = readFileSync(join(folder, "../docs/admin.md"), "utf8").split("\n").map(timeless);
    for (const args of [["SELECT * FROM c WHERE c.city = @city AND UPPER(c.name) = 'ANA 3' AND c.note = 'x'", "--parameter", "@city=Lima"], ["SELECT * FORM c"]]) {
      const told = await run(["explain", "shop/orders", ...args, ...endpoint]);
      for (const line of (told.stdout + told.stderr).trimEnd().split("\n")) assert.ok(page.includes(timeless(line)), `docs/admin.md does not have: ${line}`);
    }
    await server.stop();
  });
});
