// tesela export and import: every format, both ways; refused items; a stop, a kill or a split in the middle; from a fixed container to a
// partitioned one; 429s.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, eventually, Server, run } from "./harness.js";
import { binary } from "./server.js";

let folder, server, client, database;
const at = (name) => join(folder, name);
const tool = (command, ...args) => run([command, ...args, "--endpoint", server.endpoint("http")]);
const lines = (list) => list.map((each) => `${JSON.stringify(each)}\n`).join("");

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tesela-transfer-"));
  server = await Server.start();
  client = new CosmosClient({ endpoint: server.endpoint("http"), key: emulatorKey });
  ({ database } = await client.databases.create({ id: "shop" }));
});
after(async () => {
  client.dispose();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const all = async (name) => (await database.container(name).items.readAll().fetchAll()).resources;
const bare = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;
const byId = (a, b) => (a.id < b.id ? -1 : 1);

describe("files", () => {
  const items = Array.from({ length: 2500 }, (_, n) => ({
    id: `item-${String(n).padStart(5, "0")}`,
    city: ["Lima", "Cusco", 'say "hi", twice', "línea\nnueva"][n % 4],
    n,
    price: n / 4,
    code: "007",
    open: n % 2 === 0,
    none: null,
    address: { street: `s${n}`, geo: { lat: -12.5 } },
  }));

  for (const format of ["jsonl", "json", "csv"]) {
    it(`${format} comes back as it was`, async () => {
      writeFileSync(at("in.jsonl"), lines(items));
      const into = await tool("import", `shop/${format}-1`, at("in.jsonl"), "--create", "/city");
      assert.equal(into.code, 0, into.stderr);
      assert.match(into.stdout, /2,500 items imported, 0 refused/);
      const out = await tool("export", `shop/${format}-1`, at(`out.${format}`));
      assert.equal(out.code, 0, out.stderr);
      const again = await tool("import", `shop/${format}-2`, at(`out.${format}`), "--create", "/city");
      assert.equal(again.code, 0, again.stderr);
      assert.deepEqual((await all(`${format}-2`)).map(bare).sort(byId), items);
      assert.ok(!existsSync(at(`out.${format}.journal`)), "a journal is left");
    });
  }

  it("refused items are listed with lines and reasons, the others are in", async () => {
    writeFileSync(at("bad.jsonl"), `{"id":"1","city":"Lima"}\n{"id":"2",\n\n[3]\n{"id":"4","city":"${"x".repeat(3000)}"}\n{"city":"Puno"}\n{"id":"6","city":"Puno"}\n`);
    const { code, stdout, stderr } = await tool("import", "shop/bad", at("bad.jsonl"), "--create", "/city");
    assert.equal(code, 3, stderr);
    assert.match(stdout, /2 items imported, 4 refused/);
    const failed = readFileSync(at("bad.jsonl.failed"), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(failed.map(({ line }) => line).sort(), [2, 4, 5, 6]);
    for (const { reason } of failed) assert.ok(reason.length > 3);
    assert.equal(failed.find(({ line }) => line === 4).reason, "an item must be an object");
    assert.deepEqual((await all("bad")).map(({ id }) => id).sort(), ["1", "6"]);
  });

  it("CSV has types, nesting and missing fields; a broken record is told by its line", async () => {
    writeFileSync(at("types.csv"), '\uFEFFname,n,"a.b",a.c,zip\r\n"Ana ""A""",1.5,true,,00501\r\nBo,"2",null,x\r\n"Two\nlines",-3,"true","",1e3\r\n');
    const { code, stdout } = await tool("import", "shop/types", at("types.csv"), "--create", "/name", "--number-ids");
    assert.equal(code, 3);
    assert.match(stdout, /2 items imported, 1 refused/);
    assert.deepEqual((await all("types")).map(bare).sort(byId), [
      { name: 'Ana "A"', n: 1.5, a: { b: true }, zip: "00501", id: "2" },
      { name: "Two\nlines", n: -3, a: { b: "true", c: "" }, zip: 1000, id: "4" },
    ]);
    assert.match(readFileSync(at("types.csv.failed"), "utf8"), /"line":3.*4 fields, but the first line names 5 columns/);
  });

  it("existing items are replaced, or kept", async () => {
    writeFileSync(at("one.jsonl"), '{"id":"a","city":"Lima","v":1}\n');
    assert.equal((await tool("import", "shop/kept", at("one.jsonl"), "--create", "/city")).code, 0);
    writeFileSync(at("one.jsonl"), '{"id":"a","city":"Lima","v":2}\n');
    assert.match((await tool("import", "shop/kept", at("one.jsonl"), "--keep")).stdout, /0 items imported, 0 refused, 1 existed/);
    assert.equal((await all("kept"))[0].v, 1);
    assert.equal((await tool("import", "shop/kept", at("one.jsonl"))).code, 0);
    assert.equal((await all("kept"))[0].v, 2);
  });

  it("mistakes are told before anything is done", async () => {
    const told = async (text, ...args) => assert.match((await tool("import", ...args)).stderr, text);
    await told(/cannot be opened/, "shop/x", at("none.jsonl"));
    await told(/not DATABASE\/CONTAINER/, "shop", at("in.jsonl"));
    await told(/--format must be/, "shop/x", at("in.jsonl"), "--format", "xml");
    await told(/one to three paths/, "shop/x", at("in.jsonl"), "--create", "/a,/b,/c,/d");
    await told(/not_found|not found/i, "shop/nowhere", at("in.jsonl"), "--restart");
    writeFileSync(at("array.json"), '{"id":"1"}');
    await told(/not a JSON array/, "shop/kept", at("array.json"));
    writeFileSync(at("array.json"), '[{"id":"1","city":"x"},{"id":');
    await told(/does not end/, "shop/kept", at("array.json"), "--restart");
  });
});

describe("a stop in the middle", () => {
  const total = 30000;
  const started = (...args) => {
    const child = spawn(binary, [...args, "--endpoint", server.endpoint("http")], { stdio: "ignore" });
    child.ended = new Promise((done) => child.on("close", (code, signal) => done({ code, signal })));
    return child;
  };
  const appears = async (file, child) => {
    for (let turn = 0; turn < 3000 && !existsSync(file) && child.exitCode === null; turn++) await new Promise((done) => setTimeout(done, 10));
  };

  for (const signal of ["SIGKILL", "SIGTERM"]) {
    it(`${signal}: the same import goes on, and nothing is lost or doubled`, async () => {
      const name = signal.toLowerCase(), file = at(`${name}.jsonl`);
      writeFileSync(file, Array.from({ length: total }, (_, n) => (n % 5000 === 4999 ? "{no item\n" : `{"id":"${n}","key":"k${n % 100}"}\n`)).join(""));
      await database.containers.create({ id: name, partitionKey: "/key" });
      await tool("fault", "--operation", "write", "--delay", "40", "--percent", "100"); // or it ends before its first journal
      let kills = 0;
      for (let turn = 0; turn < 3; turn++) {
        const child = started("import", `shop/${name}`, file, "--requests", "2");
        await appears(`${file}.journal`, child);
        child.kill(signal);
        const ended = await child.ended;
        kills += ended.signal === "SIGKILL" || ended.code === 1;
        if (ended.code === 3) break;
      }
      await tool("fault", "--clear");
      const { code, stdout, stderr } = await tool("import", `shop/${name}`, file);
      assert.equal(code, 3, stderr);
      assert.ok(kills > 0, "no import was stopped");
      assert.match(stdout, / 6 refused/);
      const failed = readFileSync(`${file}.failed`, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line).line);
      assert.deepEqual(failed.sort((a, b) => a - b), [5000, 10000, 15000, 20000, 25000, 30000]);
      const { resources } = await database.container(name).items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
      assert.equal(resources[0], total - 6);
      assert.ok(!existsSync(`${file}.journal`));
    });
  }

  it("a journal of another import is refused", async () => {
    writeFileSync(at("other.jsonl"), '{"id":"1"}\n');
    writeFileSync(at("other.jsonl.journal"), '{"source":"else","target":"there"}');
    const { code, stderr } = await tool("import", "shop/kept", at("other.jsonl"));
    assert.equal(code, 2);
    assert.match(stderr, /of another transfer.*--restart/);
  });
});

describe("an export of several ranges", () => {
  const total = 24000;
  let ranged, many;
  const there = (command, ...args) => run([command, ...args, "--endpoint", ranged.endpoint("http")]);
  const ranges = async () => (await many.readPartitionKeyRanges().fetchAll()).resources.map(({ id }) => id);
  const numbers = (file) => readFileSync(at(file), "utf8").trimEnd().split("\n").map((line) => Number(JSON.parse(line).id)).sort((a, b) => a - b);
  const each = Array.from({ length: total }, (_, n) => n);
  let own;

  before(async () => {
    ranged = await Server.start({ flags: ["--partition-max-throughput", "400"] });
    own = new CosmosClient({ endpoint: ranged.endpoint("http"), key: emulatorKey });
    await own.databases.create({ id: "shop" });
    await own.database("shop").containers.create({ id: "many", partitionKey: "/key" }, { offerThroughput: 1600 });
    many = own.database("shop").container("many");
    writeFileSync(at("many.jsonl"), each.map((n) => `{"id":"${n}","key":"k${n % 700}","text":"${"x".repeat(100)}"}\n`).join(""));
    assert.equal((await there("import", "shop/many", at("many.jsonl"))).code, 0);
    assert.equal((await ranges()).length, 4);
  });
  after(async () => {
    own.dispose();
    await ranged.stop();
  });

  for (const parallel of ["1", "3", "100"]) {
    it(`--parallel ${parallel}: each item once`, async () => {
      const { code, stderr } = await there("export", "shop/many", at(`many-${parallel}.jsonl`), "--parallel", parallel);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /24,000 items exported/);
      assert.deepEqual(numbers(`many-${parallel}.jsonl`), each);
    });
  }

  it("reads ranges at the same time", async () => {
    const first = readFileSync(at("many-1.jsonl"), "utf8"), other = readFileSync(at("many-100.jsonl"), "utf8");
    assert.equal(first.length, other.length);
    await there("fault", "--operation", "read", "--delay", "200", "--percent", "100");
    const seconds = async (parallel) => {
      const { code, stderr } = await there("export", "shop/many", at("timed.jsonl"), "--parallel", parallel);
      assert.equal(code, 0, stderr);
      return Number(/ RU in ([\d.]+) s/.exec(stderr)[1]);
    };
    const serial = await seconds("1"), parallel = await seconds("4");
    await there("fault", "--clear");
    assert.ok(serial >= 24 * 0.2, `24 pages in ${serial} s, one after the other`);
    assert.ok(parallel < serial / 2, `${parallel} s in parallel, ${serial} s one after the other`);
  });

  for (const signal of ["SIGKILL", "SIGTERM"]) {
    it(`${signal} and a split in the middle: the same command goes on, each item once`, async () => {
      const file = `${signal}-many.jsonl`, args = ["export", "shop/many", at(file), "--parallel", "3", "--endpoint", ranged.endpoint("http")];
      await there("fault", "--operation", "read", "--delay", "600", "--percent", "100");
      const begin = () => {
        const child = spawn(binary, args, { stdio: ["ignore", "ignore", "pipe"] });
        child.text = "";
        child.stderr.on("data", (bytes) => (child.text += bytes));
        child.ended = new Promise((done) => child.on("close", (code, ended) => done(ended ?? code)));
        return child;
      };
      const journal = () => (existsSync(at(`${file}.journal`)) ? JSON.parse(readFileSync(at(`${file}.journal`), "utf8")) : undefined);
      const first = begin();
      await eventually("a journal", () => journal());
      first.kill(signal);
      assert.equal(await first.ended, signal === "SIGKILL" ? signal : 1, first.text);
      const held = journal(), open = JSON.parse(held.continuation).ranges;
      assert.ok(held.items > 0 && held.items < total, `${held.items} items before the stop`);
      assert.ok(open.length > 1 && open.filter(({ token }) => token).length > 1, "several ranges have a position");
      const before = await ranges();
      await there("fault", "--clear");
      await there("fault", "--operation", "read", "--delay", "1200", "--percent", "100");
      const second = begin();
      await eventually("further items", () => (journal()?.items ?? total) > held.items);
      const twice = await there("export", "shop/many", at(file));
      assert.equal(twice.code, 2, twice.stderr);
      assert.match(twice.stderr, /is in use: the same command runs already/);
      for (const id of before) assert.equal((await there("split", "shop/many", id)).code, 0);
      assert.ok(second.exitCode === null, "the export has ended before the split");
      await there("fault", "--clear");
      assert.equal(await second.ended, 0, second.text);
      assert.ok((await ranges()).length >= 2 * before.length);
      assert.deepEqual(numbers(file), each);
      assert.ok(!existsSync(at(`${file}.journal`)));
    });
  }

  it("shows on a terminal how far it is, and the time left", async () => {
    await there("fault", "--operation", "read", "--delay", "120", "--percent", "100");
    const command = `'${binary}' export shop/many '${at("shown.jsonl")}' --parallel 2 --endpoint ${ranged.endpoint("http")}`;
    const terminal = spawn("script", ["-qec", command, "/dev/null"], { stdio: ["ignore", "pipe", "ignore"] });
    let shown = "";
    terminal.stdout.on("data", (bytes) => (shown += bytes));
    assert.equal(await new Promise((done) => terminal.on("close", done)), 0, shown);
    await there("fault", "--clear");
    const parts = [...shown.matchAll(/ items  [^\r]* RU\/s  (\d+) %  [^\r]*left/g)].map((m) => Number(m[1]));
    assert.ok(parts.length >= 3 && parts.every((part, i) => part <= 100 && (i === 0 || part >= parts[i - 1])), shown);
    assert.ok(parts[0] < 60 && parts.at(-1) > 60, shown);
  });

  it("--parallel is a number from 1 on", async () => {
    assert.match((await there("export", "shop/many", at("none.out"), "--parallel", "0")).stderr, /parallel/);
    assert.ok(!existsSync(at("none.out")));
  });
});

describe("between containers", () => {
  it("a fixed container becomes a partitioned one in one command", async () => {
    await database.containers.create({ id: "fixed" }, { offerThroughput: 400 });
    const fixed = database.container("fixed");
    const items = Array.from({ length: 1500 }, (_, n) => ({ id: `${n}`, deviceId: `d${n % 40}`, n }));
    for (let from = 0; from < items.length; from += 100) await Promise.all(items.slice(from, from + 100).map((item) => fixed.items.create(item)));
    const { code, stdout, stderr } = await tool("import", "shop/devices", "--from", "shop/fixed", "--create", "/deviceId", "--throughput", "11000", "--journal", at("fixed.journal"), "--failed", at("fixed.failed"));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /1,500 items imported/);
    assert.deepEqual((await all("devices")).map(bare).sort(byId), items.sort(byId));
    const { resource } = await database.container("devices").read();
    assert.deepEqual(resource.partitionKey.paths, ["/deviceId"]);
    const told = await tool("advise", "--from", "shop/fixed", "--json");
    assert.equal(told.code, 0, told.stderr);
    assert.deepEqual([JSON.parse(told.stdout).items, JSON.parse(told.stdout).recommended], [1500, "/deviceId"]);
  });
});

describe("a throttling server", () => {
  it("429s are obeyed: all items are in", async () => {
    const slow = await Server.start({ flags: ["--throttling", "on"] });
    writeFileSync(at("much.jsonl"), Array.from({ length: 300 }, (_, n) => `{"id":"${n}","key":"k${n}"}\n`).join(""));
    const { code, stdout, stderr } = await run(["import", "shop/much", at("much.jsonl"), "--create", "/key", "--throughput", "400", "--endpoint", slow.endpoint("http")]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /300 items imported, 0 refused; .* times throttled/);
    await slow.stop();
  });
});
