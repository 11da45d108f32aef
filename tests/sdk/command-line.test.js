// The command line: wrong settings are reported before anything is changed, the log is informative, and commands reach a server by any
// kind of address.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, emulatorKey, key, Rest, Server, run } from "./harness.js";

let folder;
const at = (name) => join(folder, name);
before(() => (folder = mkdtempSync(join(tmpdir(), "tesela-line-"))));
after(() => rmSync(folder, { recursive: true, force: true }));

async function waitFor(isSo, what) {
  for (let i = 0; i < 200; i++) {
    if (await isSo()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`${what} did not come`);
}

describe("a start", () => {
  const refused = async (flags, text, env) => {
    const data = at("never");
    const { code, stdout, stderr } = await run(["serve", "--data", data, ...flags], { env });
    assert.notEqual(code, 0, flags.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, text);
    assert.ok(!existsSync(data), `${flags.join(" ")} left a folder behind`);
  };

  it("refuses having no port at all, and direct mode without the SQL API", async () => {
    const off = ["sql", "table", "mongo", "cassandra", "gremlin"].flatMap((api) => [`--${api}-port`, "off"]);
    await refused(off, /nothing to listen on/);
    await refused(["--sql-port", "off", "--direct-port", "0"], /--direct-port needs --sql-port/);
    const server = await Server.start({ flags: ["--mongo-port", "off", "--cassandra-port", "off"] });
    await server.stop();
  });

  it("says which certificate file cannot be read", async () => {
    writeFileSync(at("some.pem"), "x");
    await refused(["--sql-port", "0", "--tls-cert", at("none.pem"), "--tls-key", at("some.pem")], /--tls-cert .*none\.pem cannot be read: No such file/);
    await refused(["--sql-port", "0", "--tls-cert", at("some.pem"), "--tls-key", at("none.pem")], /--tls-key .*none\.pem cannot be read: No such file/);
    await refused(["--sql-port", "0", "--tls-cert", folder, "--tls-key", at("some.pem")], /is a folder/);
    await refused(["--sql-port", "0", "--tls-names", "a b"], /--tls-names must be/);
    await refused(["--sql-port", "0", "--tls-cert", at("some.pem"), "--tls-key", at("some.pem")], /TLS cannot use/);
  });

  it("names the bad line of a key file", async () => {
    writeFileSync(at("keys"), `${emulatorKey}\n\nno key!\n`, { mode: 0o600 });
    await refused(["--sql-port", "0", "--key-file", at("keys")], /secondary key \(line 3 of .*keys\) is not a base64 text/);
  });

  it("leaves nothing new behind when the port is taken", async () => {
    const other = net.createServer();
    const port = await new Promise((done) => other.listen(0, "127.0.0.1", () => done(other.address().port)));
    await refused(["--host", "127.0.0.1", "--sql-port", `${port}`], /in use/);
    await refused(["--host", "127.0.0.1", "--sql-port", "0", "--direct-port", `${port}`], /in use/);
    mkdirSync(at("empty"));
    const { code } = await run(["serve", "--data", at("empty/below/here"), "--host", "127.0.0.1", "--sql-port", `${port}`]);
    assert.notEqual(code, 0);
    assert.deepEqual(readdirSync(at("empty")), []);
    other.close();
  });

  it("tells a file from a folder, and what to do with damage", async () => {
    writeFileSync(at("file"), "x");
    const file = await run(["serve", "--data", at("file"), "--sql-port", "0"]);
    assert.match(file.stderr, /is a file, not a folder/);
    const data = at("damaged");
    await (await Server.start({ data })).stop();
    rmSync(join(data, "db/CURRENT"));
    const damaged = await run(["serve", "--data", data, "--sql-port", "0"]);
    assert.match(damaged.stderr, /CURRENT is missing.*What to do: copy the folder away.*tesela reset --data/);
    assert.equal((await run(["reset", "--data", data, "--yes"])).code, 0);
    await (await Server.start({ data })).stop();
  });

  it("warns of variables that are no settings, and never shows their values", async () => {
    const server = await Server.start({ env: { TESELA_SQLPORT: "value-of-it", AZURE_COSMOS_EMULATOR_PARTITION_COUNT: "3", TESELA_MERGES: "off" } });
    await server.stop();
    assert.match(server.stderr, /warn  serve: a variable is no setting.*variable="TESELA_SQLPORT"/);
    assert.match(server.stderr, /variable="AZURE_COSMOS_EMULATOR_PARTITION_COUNT" hint="not needed/);
    assert.doesNotMatch(server.stderr, /TESELA_MERGES|value-of-it/);
  });

  it("makes a certificate for further names", async () => {
    const server = await Server.start({ flags: ["--tls-names", "db.example,127.0.0.2"] });
    const rest = new Rest({ server, scheme: "https", ca: await server.certificate() });
    assert.equal((await rest.get("/")).status, 200);
    rest.close();
    const names = execFileSync("openssl", ["x509", "-in", join(server.data, "tls-cert.pem"), "-noout", "-ext", "subjectAltName"], { encoding: "utf8" });
    assert.match(names, /DNS:localhost.*DNS:db\.example, IP Address:127\.0\.0\.2/);
    await server.stop();
  });
});

describe("tesela reset", () => {
  it("empties a folder that is ours and free, and no other", async () => {
    const data = at("reset");
    const first = await Server.start({ data });
    const rest = new Rest({ server: first });
    assert.equal((await rest.post("/dbs", { id: "shop" })).status, 201);
    rest.close();
    const busy = await run(["reset", "--data", data, "--yes"]);
    assert.equal(busy.code, 1);
    assert.match(busy.stderr, /another tesela already serves/);
    const certificate = await first.certificate();
    await first.stop();

    const unsure = await run(["reset", "--data", data]);
    assert.equal(unsure.code, 2);
    assert.match(unsure.stderr, /--yes/);
    assert.equal((await run(["reset", "--yes"])).code, 2);
    assert.match((await run(["reset", "--data", folder, "--yes"])).stderr, /not a tesela data folder/);
    assert.ok(existsSync(join(data, "db")));

    assert.equal((await run(["reset", "--data", data, "--yes"])).code, 0);
    const second = await Server.start({ data });
    const again = new Rest({ server: second });
    assert.equal((await again.get("/dbs")).json._count, 0);
    again.close();
    assert.equal(await second.certificate(), certificate);
    await second.stop();
  });
});

describe("the manual page", () => {
  it("has every command and flag", async () => {
    const { code, stdout } = await run(["help", "--man"]);
    assert.equal(code, 0);
    assert.match(stdout, /^\.TH TESELA 1/);
    for (const command of ["serve", "top", "explain", "split", "merge", "events", "fault", "keys", "reset"]) {
      assert.ok(stdout.includes(`.SS tesela ${command}`), command);
      for (const [, flag] of (await run(["help", command])).stdout.matchAll(/^  --([a-z-]+)/gm)) {
        assert.ok(stdout.includes(`\\fB\\-\\-${flag.replaceAll("-", "\\-")}\\fR`), flag);
      }
    }
    assert.equal((await run(["help", "nonsense"])).code, 2);
  });
});

describe("commands over https", () => {
  let server;
  before(async () => (server = await Server.start()));
  after(() => server.stop());

  it("trust what they are told to", async () => {
    const endpoint = ["--endpoint", `https://localhost:${server.port}`];
    const trusting = [...endpoint, "--ca", join(server.data, "tls-cert.pem")];
    assert.equal((await run(["events", ...trusting])).code, 0);
    assert.equal((await run(["top", "--once", ...trusting])).code, 0);
    assert.equal((await run(["events", "--endpoint", `https://127.0.0.1:${server.port}`, "--ca", join(server.data, "tls-cert.pem")])).code, 0);
    const untrusted = await run(["events", ...endpoint]);
    assert.equal(untrusted.code, 1);
    assert.match(untrusted.stderr, /certificate of localhost:\d+ is not trusted.*--ca FILE/);
    const missing = await run(["events", ...endpoint, "--ca", at("none.pem")]);
    assert.match(missing.stderr, /--ca .*none\.pem cannot be used: No such file/);
  });

  it("notice a name that the certificate is not for, and a server without TLS", async () => {
    const ca = ["--ca", join(server.data, "tls-cert.pem")];
    const other = await run(["events", "--endpoint", `https://127.0.0.2:${server.port}`, ...ca]);
    assert.equal(other.code, 1);
    const plain = net.createServer((socket) => socket.on("data", () => socket.end("no TLS here")).on("error", () => {}));
    const port = await new Promise((done) => plain.listen(0, "127.0.0.1", () => done(plain.address().port)));
    assert.match((await run(["events", "--endpoint", `https://127.0.0.1:${port}`, ...ca])).stderr, /does not speak https/);
    plain.close();
  });

  it("top shows no share where throttling is off", async () => {
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    rest.close();
    const { stdout } = await run(["top", "--once", "--endpoint", `http://localhost:${server.port}`]);
    const cells = stdout.split("\n")[1].split(/\s+/);
    assert.deepEqual([cells[2], cells[4]], ["-", "-"]);
  });
});

describe("the log", () => {
  const secret = "SECRET-IN-A-BODY";
  const load = async (server, work) => {
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "shop" });
    await rest.post("/dbs/shop/colls", { id: "orders", partitionKey: { paths: ["/pk"], version: 2 } });
    await work(rest);
    rest.close();
  };

  it("has a line for each request when asked to, and no secret in it", async () => {
    const server = await Server.start({ flags: ["--access-log", "all", "--log-level", "info"] });
    const activity = "01234567-89ab-4cde-8f01-23456789abcd";
    await load(server, async (rest) => {
      await rest.post("/dbs/shop/colls/orders/docs", { id: "7", pk: secret, text: secret }, { headers: key(secret) });
      await rest.get("/dbs/shop/colls/orders/docs/7", { headers: { ...key(secret), "x-ms-activity-id": activity } });
      await rest.get("/dbs/shop/colls/orders/docs/8?token=SECRET-IN-A-QUERY", { headers: key("a") });
      await rest.get("/_tesela/events", { sign: false, headers: { authorization: `Bearer ${emulatorKey}` } });
    });
    await server.stop();
    const lines = server.stderr.split("\n").filter((line) => line.includes(" access: "));
    assert.equal(lines.length, 6, server.stderr);
    assert.match(lines[3], new RegExp(`info  access: GET /dbs/shop/colls/orders/docs/7 api=sql status=200 substatus=0 ru=1\\.00 ms=[\\d.]+ range=0 activity=${activity}$`));
    assert.match(lines[4], /GET \/dbs\/shop\/colls\/orders\/docs\/8 api=sql status=404 substatus=0 ru=\d/);
    assert.match(lines[5], /GET \/_tesela\/events api=admin status=200/);
    for (const hidden of [secret, "SECRET-IN-A-QUERY", emulatorKey.slice(0, 20), "sig%3d", "Bearer"]) assert.ok(!server.stderr.includes(hidden), hidden);
  });

  it("has a line for one of so many", async () => {
    const server = await Server.start({ flags: ["--access-log", "10", "--threads", "1"] });
    await load(server, async (rest) => {
      for (let i = 0; i < 98; i++) await rest.get("/dbs/shop");
    });
    await server.stop();
    assert.equal(server.stderr.split("\n").filter((line) => line.includes(" access: ")).length, 10);
  });

  it("explains what was slow, without values", async () => {
    const server = await Server.start({ flags: ["--slow-ms", "200"] });
    await load(server, async (rest) => {
      const headers = { ...key("a"), "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
      for (let i = 0; i < 40; i++) await rest.post("/dbs/shop/colls/orders/docs", { id: `${i}`, pk: "a", city: secret, note: secret }, { headers: key("a") });
      await rest.post("/_tesela/faults", { delayMs: 300 }, { sign: false });
      const query = `SELECT * FROM c WHERE c.city = '${secret}' AND UPPER(c.note) = 'X'`;
      assert.equal((await rest.post("/dbs/shop/colls/orders/docs", { query }, { headers })).status, 200);
      await rest.post("/_tesela/faults", { status: 503, delayMs: 300 }, { sign: false });
      assert.equal((await rest.post("/dbs/shop/colls/orders/docs", { query }, { headers })).status, 503);
    });
    await server.stop();
    const [slow, failed] = server.stderr.split("\n").filter((line) => / slow: POST .*items_loaded=/.test(line));
    assert.match(failed ?? server.stderr, / status=503 .* items_loaded=0 /);
    assert.match(slow, / rows=0 index_entries=\d+ items_loaded=40 .*items_matched=0 compile_ms=[\d.]+ run_ms=[\d.]+ index_ms=/);
    assert.ok(!server.stderr.includes(secret));
    assert.doesNotMatch(server.stderr, / access: /);
  });

  it("refuses rates and times that are none", async () => {
    for (const flags of [["--access-log", "some"], ["--access-log", "0"], ["--slow-ms", "-1"], ["--slow-ms", "fast"]]) {
      assert.equal((await run(["serve", "--data", at("never"), ...flags])).code, 2, flags.join(" "));
    }
  });

  it("tells of throttling once a minute, and what to do", async () => {
    const server = await Server.start({ flags: ["--throttling", "on"] });
    let refused = 0;
    await load(server, async (rest) => {
      await waitFor(async () => {
        const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => rest.post("/dbs/shop/colls/orders/docs", { id: `${Math.random()}`, pk: `${i}` }, { headers: key(`${i}`) })));
        refused += answers.filter(({ status }) => status === 429).length;
        return server.stderr.includes("requests refused (429)");
      }, "the warning");
    });
    await server.stop();
    const lines = server.stderr.split("\n").filter((line) => line.includes("requests refused (429)"));
    assert.ok(refused > 0);
    assert.equal(lines.length, 1);
    assert.match(lines[0], /warn  throughput: .* container="shop\/orders" refused=\d+ of=\d+ seconds=\d+ provisioned=400 ranges=1 remedy="raise the container's throughput; or 'tesela serve --throttling off'"/);
  });
});

describe("a split", () => {
  it("keeps the container's history and hot keys", async () => {
    const server = await Server.start({ flags: ["--throttling", "on", "--merges", "off"] });
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], version: 2 } }, { headers: { "x-ms-offer-throughput": "4000" } });
    for (let i = 0; i < 30; i++) await rest.post("/dbs/d/colls/c/docs", { id: `${i}`, pk: `p${i % 6}` }, { headers: key(`p${i % 6}`) });
    const ask = async (path) => (await rest.get(`/_tesela/${path}?database=d&container=c`, { sign: false })).json;
    const requests = async () => (await ask("history")).requests.reduce((sum, n) => sum + n, 0);
    await waitFor(async () => (await requests()) === 30, "the history");
    const hot = (await ask("hotkeys")).byRu.map((each) => each.key).sort();
    assert.equal(hot.length, 6);
    assert.equal((await rest.post("/_tesela/split", { database: "d", container: "c", range: "0", parts: 3 }, { sign: false })).status, 200);
    assert.equal(await requests(), 30);
    const after = (await ask("hotkeys")).byRu;
    assert.deepEqual(after.map((each) => each.key).sort(), hot);
    assert.ok(after.every((each) => ["1", "2", "3"].includes(each.range)), "each key is told of the range that it is in now");
    rest.close();
    await server.stop();
  });
});

describe("tesela advise", () => {
  const advise = (lines, ...flags) => {
    writeFileSync(at("items.jsonl"), lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)) + "\n").join(""));
    return run(["advise", at("items.jsonl"), ...flags]);
  };
  const items = Array.from({ length: 400 }, (_, n) => ({ id: `${n}`, customer: `c${n % 40}`, "two words": n % 3, city: "Lima\u001b[2J" }));

  it("recommends a key, and gives the code for a synthetic one that matches its own figures", async () => {
    writeFileSync(at("log.jsonl"), '{"query":"SELECT * FROM c WHERE c.customer = \'c1\'","count":9}\n\n{"operation":"create"}\n');
    const told = await advise(items, "--log", at("log.jsonl"));
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stdout, /recommended: \/customer\n/);
    assert.match(told.stdout, /the worst path: /);
    assert.ok(!told.stdout.includes("\u001b"), "nothing of the data controls the terminal");
    const { keys } = JSON.parse((await advise(items, "--json")).stdout);
    const suffixed = keys.find(({ key }) => key === "/customer.hash(/id)");
    const javascript = suffixed.code.split("\n\nPython")[0].replace(/^JavaScript\n/, "");
    const made = new Set(items.map((each) => new Function("item", `${javascript}; return item.partitionKey;`)({ ...each })));
    assert.equal(suffixed.values, made.size);
    assert.ok(keys.some(({ key }) => key === '/"two words"'));
  });

  it("names the line that is not an item, and what is wrong with a log", async () => {
    for (const [bad, reason] of [["{", /line 2 of .* is not JSON/], ["[1]", /line 2 of .*an item must be an object/]]) {
      const told = await advise([items[0], bad]);
      assert.equal(told.code, 1);
      assert.equal(told.stdout, "");
      assert.match(told.stderr, reason);
    }
    writeFileSync(at("log.jsonl"), '{"query":"SELECT"}\n');
    assert.match((await advise(items, "--log", at("log.jsonl"))).stderr, /line 1 of .*log\.jsonl: "query" is not a query/);
    assert.match((await advise([`{"id":"${"x".repeat(3 << 20)}"}`])).stderr, /line 1 of .*may have 2 MB/);
    assert.match((await advise([])).stderr, /no item with a property/);
    assert.match((await advise(items, "--time", "/customer")).stderr, /no times there/);
    assert.equal((await advise(items, "--growth", "-1")).code, 2);
    assert.match((await run(["advise", at("none.jsonl")])).stderr, /cannot be opened: No such file/);
  });
});

describe("tesela serve --record", () => {
  const recorded = (name) => readFileSync(at(name), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

  it("records what tesela advise needs, and no secrets", async () => {
    const server = await Server.start({ flags: ["--record", at("record.jsonl")] });
    const rest = new Rest({ server });
    const partition = { headers: { "x-ms-documentdb-partitionkey": '["Lima"]' } };
    const query = { query: "SELECT * FROM c WHERE c.city = @c", parameters: [{ name: "@c", value: "Lima" }] };
    const asQuery = { headers: { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True" } };
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/city"], kind: "Hash", version: 2 } });
    for (let n = 0; n < 30; n++) assert.equal((await rest.post("/dbs/d/colls/c/docs", { id: `${n}`, city: "Lima", hidden: "body-of-it" }, partition)).status, 201);
    for (let n = 0; n < 5; n++) assert.equal((await rest.post("/dbs/d/colls/c/docs", query, asQuery)).status, 200);
    assert.equal((await rest.get("/dbs/d/colls/c/docs/7", partition)).status, 200);
    assert.equal((await rest.get("/dbs/d/colls/c/docs/none", partition)).status, 404);
    rest.close();
    await server.stop();
    const lines = recorded("record.jsonl");
    assert.deepEqual(lines.map(({ operation }) => operation), [...Array(30).fill("create"), ...Array(5).fill("query"), "read"]);
    assert.deepEqual(lines[0].key, { "/city": "Lima" });
    assert.ok(lines[0].charge > 5 && lines[0].count === 1 && Math.abs(lines[0].time - Date.now() / 1000) < 600);
    assert.deepEqual([lines[30].query, lines[30].parameters], [query.query, query.parameters]);
    assert.deepEqual([lines[35].id, lines[35].key], ["7", { "/city": "Lima" }]);
    const text = readFileSync(at("record.jsonl"), "utf8");
    assert.ok(!text.includes("body-of-it") && !text.includes("sig") && !text.toLowerCase().includes("authorization"));
    assert.equal(statSync(at("record.jsonl")).mode & 0o777, 0o600);
    writeFileSync(at("cities.jsonl"), Array.from({ length: 300 }, (_, n) => `{"id":"${n}","city":"c${n % 30}","n":${n % 7}}\n`).join(""));
    const told = await run(["advise", at("cities.jsonl"), "--log", at("record.jsonl"), "--json"]);
    assert.equal(told.code, 0, told.stderr);
    assert.equal(JSON.parse(told.stdout).operations, 36);
    assert.equal(JSON.parse(told.stdout).keys.find(({ key }) => key === "/city").readsInOnePartition, 1);
  });

  it("is bounded, and a sample on demand", async () => {
    const server = await Server.start({ flags: ["--record", at("bounded.jsonl"), "--record-size", "8KB", "--record-one-of", "3"] });
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/city"], kind: "Hash", version: 2 } });
    for (let n = 0; n < 300; n++) await rest.post("/dbs/d/colls/c/docs", { id: `${n}`, city: "Lima" });
    rest.close();
    await server.stop();
    const lines = [...recorded("bounded.jsonl.1"), ...recorded("bounded.jsonl")];
    assert.ok(statSync(at("bounded.jsonl")).size <= 4096 && statSync(at("bounded.jsonl.1")).size <= 4096);
    assert.ok(lines.length > 20 && lines.length < 100);
    assert.ok(lines.every(({ count }) => count === 3));
    const refused = await run(["serve", "--data", at("never"), "--sql-port", "0", "--record", join(folder, "no/such/file")]);
    assert.match(refused.stderr, /--record .* cannot be made: No such file/);
  });
});
