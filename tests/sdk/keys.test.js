// Key rotation while the server runs; unauthorized requests are rejected, counted, and logged without secrets.

import { createHmac, randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, eventually, key, Rest, run, Server, sign } from "./harness.js";

const newKey = () => randomBytes(64).toString("base64");
const status = async (rest, key) => (await rest.get("/dbs", { key })).status;

// A server with its keys in its own file.
class Keyed {
  static async start(keys, flags = []) {
    const it = new Keyed();
    it.folder = mkdtempSync(join(tmpdir(), "tesela-keys-"));
    it.file = join(it.folder, "keys");
    it.write(keys);
    it.server = await Server.start({ flags: ["--key-file", it.file, ...flags] });
    it.rest = new Rest({ server: it.server, key: keys[0] });
    return it;
  }
  write(keys) {
    writeFileSync(this.file, Array.isArray(keys) ? keys.join("\n") + "\n" : keys);
    chmodSync(this.file, 0o600);
  }
  keys() {
    return readFileSync(this.file, "utf8").trim().split("\n");
  }
  // Runs `tesela keys …` with this key.
  command(key, ...words) {
    return run(["keys", ...words, "--endpoint", this.server.endpoint("http")], { env: { TESELA_KEY: key } });
  }
  async stop() {
    this.rest.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true });
  }
}

// Makes a token for a container of this database; returns it with the path of a nonexistent item there.
async function permit(rest, key, id) {
  const send = (path, body) => rest.post(path, body, { key });
  await send("/dbs", { id });
  await send(`/dbs/${id}/colls`, { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
  await send(`/dbs/${id}/users`, { id: "ana" });
  const made = await rest.post(`/dbs/${id}/users/ana/permissions`, { id: "p", permissionMode: "All", resource: `dbs/${id}/colls/c` }, { key, headers: { "x-ms-documentdb-is-upsert": "True" } });
  assert.ok(made.status === 201 || made.status === 200, made.text);
  return { token: made.json._token, path: `/dbs/${id}/colls/c/docs/1` };
}

const refuses = (answer, text) => {
  assert.equal(answer.code, 1, answer.stdout);
  assert.match(answer.stderr, text);
};

describe("keys of a file", () => {
  let s;
  const first = newKey(), second = newKey(), reader = newKey();
  before(async () => (s = await Keyed.start([first, second, reader])));
  after(() => s.stop());
  const set = (...keys) => s.write(keys);

  it("rotate as the service's do: to the secondary, a new primary, back, a new secondary", async () => {
    set(first, second, reader);
    assert.equal((await s.command(first, "reload")).code, 0);
    const client = (key) => new CosmosClient({ endpoint: s.server.endpoint("http"), key, connectionPolicy: { enableBackgroundEndpointRefreshing: false } });
    const old = client(first), meanwhile = client(second);
    const { database } = await old.databases.createIfNotExists({ id: "rotated" });
    const { container } = await database.containers.createIfNotExists({ id: "c", partitionKey: "/pk" });
    await container.items.upsert({ id: "1", pk: "a" });
    const made = await s.command(second, "regenerate", "primary");
    assert.equal(made.code, 0, made.stderr);
    assert.ok(!s.keys().some((key) => made.stdout.includes(key)), "it is not shown unasked");
    assert.equal(made.stdout, `The new primary key is in line 1 of ${s.file} on the server's machine; --show prints it.\n`);
    const item = (from) => from.database("rotated").container("c").item("1", "a").read();
    await assert.rejects(item(old), { code: 401 });
    assert.equal((await item(meanwhile)).statusCode, 200);
    const [primary, secondary, readOnly] = s.keys();
    assert.notEqual(primary, first);
    assert.deepEqual([secondary, readOnly], [second, reader]);
    assert.equal(Buffer.from(primary, "base64").length, 64);
    assert.equal(statSync(s.file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(s.folder), ["keys"], "nothing is left beside it");
    const fresh = client(primary);
    assert.equal((await item(fresh)).statusCode, 200);
    assert.equal((await s.command(primary, "regenerate", "secondary")).code, 0);
    await assert.rejects(item(meanwhile), { code: 401 });
    assert.equal((await item(fresh)).statusCode, 200);
    for (const each of [old, meanwhile, fresh]) each.dispose();
  });

  it("are read again on SIGHUP, and when asked", async () => {
    const other = newKey();
    set(first, second, reader);
    await s.command(s.keys()[0], "reload");
    s.server.child.kill("SIGHUP");
    await eventually("the file is read", async () => (await status(s.rest, first)) === 200);
    set(other, second);
    assert.equal(await status(s.rest, other), 401, "not before it is asked for");
    s.server.child.kill("SIGHUP");
    await eventually("the file is read", async () => (await status(s.rest, other)) === 200);
    assert.equal(await status(s.rest, first), 401);
    assert.equal(await status(s.rest, reader), 401, "it is not in the file any more");
    set(first, second, reader);
    const answer = await s.rest.post("/_tesela/keys/reload", undefined, { sign: false, headers: { authorization: `Bearer ${other}` } });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json.keys.map((each) => each.set), [true, true, true, false]);
    assert.equal(await status(s.rest, first), 200);
    assert.equal(await status(s.rest, other), 401);
  });

  it("stay as they are when the file is bad, and the answer and the log say why", async () => {
    set(first, second, reader);
    s.server.child.kill("SIGHUP");
    await eventually("the file is read", async () => (await status(s.rest, reader)) === 200);
    const from = s.server.stderr.length;
    for (const [bad, why] of [["", "one to four"], ["not base64\n", "base64"], [`${first}\n${first}\n`, "the same"], ["-\n", "primary"]]) {
      s.write(bad);
      refuses(await s.command(second, "reload"), new RegExp(why));
      refuses(await s.command(second, "regenerate", "primaryReadonly"), new RegExp(why));
    }
    rmSync(s.file);
    refuses(await s.command(second, "reload"), /No such file/);
    for (const each of [first, second, reader]) assert.equal(await status(s.rest, each), 200);
    assert.match(s.server.stderr.slice(from), /keys stay as they are/);
    set(first, second, reader);
  });

  it("are listed without their values, unless the primary key asks for them", async () => {
    set(first, second, reader);
    assert.equal((await s.command(first, "reload")).code, 0);
    const list = await s.command(reader);
    assert.equal(list.code, 0, list.stderr);
    assert.match(list.stdout, /^from: file\nprimary +set\nsecondary +set\nprimaryReadonly +set\nsecondaryReadonly +-\n$/);
    const shown = await s.command(first, "--show");
    for (const each of [first, second, reader]) assert.ok(shown.stdout.includes(each));
    for (const other of [second, reader]) {
      const answer = await s.command(other, "list", "--show");
      refuses(answer, /primary key alone/);
      assert.equal(answer.stdout, "");
    }
    const made = await s.command(first, "regenerate", "primaryReadonly", "--show");
    assert.ok(made.stdout.includes(s.keys()[2]), made.stdout + made.stderr);
    refuses(await s.command(second, "regenerate", "secondaryReadonly", "--show"), /primary key alone/);
    assert.equal(s.keys().length, 3, "and then nothing is made");
  });

  it("cannot be changed by a reader, or by nobody", async () => {
    set(first, second, reader);
    await s.command(first, "reload");
    refuses(await s.command(reader, "regenerate", "primary"), /read-only/);
    refuses(await s.command(reader, "reload"), /read-only/);
    for (const path of ["/_tesela/keys/regenerate", "/_tesela/keys/reload"]) {
      assert.equal((await s.rest.post(path, { kind: "primary" }, { sign: false })).status, 401);
      assert.equal((await s.rest.send("GET", path, { sign: false, headers: { authorization: `Bearer ${first}` } })).status, 405);
    }
    assert.deepEqual(s.keys(), [first, second, reader]);
    refuses(await s.command(first, "regenerate", "tertiary"), /must be primary, secondary/);
    assert.equal((await s.command(first, "regenerate")).code, 2);
    assert.equal((await s.command(first, "forget")).code, 2);
  });

  it("change under load without a failed request of the other key", async () => {
    set(first, second, reader);
    await s.command(first, "reload");
    const rest = new Rest({ server: s.server, key: second });
    let done = false, answers = 0;
    const readers = Array.from({ length: 8 }, async () => {
      while (!done) {
        const answer = await rest.get("/dbs");
        assert.equal(answer.status, 200, answer.text);
        answers++;
      }
    });
    const headers = { authorization: `Bearer ${second}` };
    for (let i = 0; i < 25; i++) {
      const made = await s.rest.post("/_tesela/keys/regenerate", { kind: i % 2 ? "primary" : "primaryReadonly" }, { sign: false, headers });
      assert.equal(made.status, 200, made.text);
    }
    done = true;
    await Promise.all(readers);
    rest.close();
    assert.ok(answers > 25);
    const metrics = (await s.rest.get("/metrics", { sign: false, headers })).text;
    assert.match(metrics, /^tesela_key_changes_total (\d\d+)$/m);
  });

  it("end resource tokens with the primary one, and with no other", async () => {
    set(first, second, reader);
    assert.equal((await s.command(second, "reload")).code, 0);
    const { token, path } = await permit(s.rest, second, "tokens");
    const use = async (token) => (await s.rest.get(path, { headers: { ...key("a"), authorization: encodeURIComponent(token) } })).status;
    assert.equal(await use(token), 404);
    assert.equal((await s.command(first, "regenerate", "secondary")).code, 0);
    assert.equal(await use(token), 404, "the secondary key has nothing to do with it");
    assert.equal((await s.command(first, "regenerate", "primary")).code, 0);
    assert.equal(await use(token), 401);
    const [primary, secondary] = s.keys();
    assert.equal(await use((await permit(s.rest, secondary, "tokens")).token), 404);
    set(primary, second, reader);
    assert.equal((await s.command(secondary, "reload")).code, 0);
  });

  it("are what a restart finds", async () => {
    const made = await s.command(second, "regenerate", "primary");
    assert.equal(made.code, 0, made.stderr);
    const again = await Server.start({ flags: ["--key-file", s.file] });
    const rest = new Rest({ server: again });
    assert.equal(await status(rest, s.keys()[0]), 200);
    assert.equal(await status(rest, first), 401);
    rest.close();
    await again.stop();
  });
});

describe("keys that are not in a file", () => {
  it("do not change, and the command says what to do", async () => {
    const own = newKey();
    for (const flags of [[], ["--key", own]]) {
      const server = await Server.start({ flags });
      const command = (...words) => run(["keys", ...words, "--endpoint", server.endpoint("http")], { env: flags.length ? { TESELA_KEY: own } : {} });
      assert.match((await command()).stdout, flags.length ? /^from: flags\n/ : /^from: well-known\n/);
      refuses(await command("regenerate", "primary"), /--key-file/);
      refuses(await command("reload"), /--key-file/);
      const rest = new Rest({ server, key: flags.length ? own : emulatorKey });
      assert.equal((await rest.get("/dbs")).status, 200);
      rest.close();
      await server.stop();
    }
  });

  it("may not be the same twice", async () => {
    const own = newKey();
    const answer = await run(["serve", "--key", own, "--read-only-key", own, "--data", "/nowhere"]);
    assert.equal(answer.code, 2);
    assert.match(answer.stderr, /the same/);
    assert.ok(!answer.stderr.includes(own));
  });

  it("let nobody in without one once the emulator's is replaced", async () => {
    const s = await Keyed.start([emulatorKey, newKey()]);
    const ask = () => s.rest.get("/_tesela/", { sign: false });
    assert.equal((await ask()).status, 200, "with the key that everybody knows, nobody is asked for it");
    s.write([newKey()]);
    s.server.child.kill("SIGHUP");
    await eventually("the key is asked for", async () => (await ask()).status === 401);
    await s.stop();
  });
});

const elsewhere = Object.values(networkInterfaces()).flat().find((each) => each.family === "IPv4" && !each.internal)?.address;

describe("key values", { skip: !elsewhere && "this machine has no address but loopback" }, () => {
  it("are not sent over plain http to another machine", async () => {
    const own = newKey();
    const server = await Server.start({ flags: ["--host", "0.0.0.0", "--key", own] });
    const ask = async (host) => {
      const rest = new Rest({ server, host });
      const answer = await rest.get("/_tesela/keys?show=true", { sign: false, headers: { authorization: `Bearer ${own}` } });
      rest.close();
      return answer;
    };
    const far = await ask(elsewhere);
    assert.equal(far.status, 403, far.text);
    assert.ok(!far.text.includes(own));
    const near = await ask("127.0.0.1");
    assert.equal(near.json.keys[0].key, own);
    await server.stop();
  });
});

describe("requests that nobody may send", () => {
  it("are counted, told by address, and leave no secret in any log, answer or file", async () => {
    const keys = [newKey(), newKey(), newKey(), newKey()];
    const secrets = [...keys];
    const s = await Keyed.start(keys, ["--log-level", "debug"]);
    const path = "/dbs/d/colls/c/docs/1";
    const texts = [];
    const send = async (authorization, options = {}) => {
      secrets.push(decodeURIComponent(authorization).replace(/^(Bearer |type=[a-z]+&ver=1.0&sig=)/, ""));
      const answer = await s.rest.send("GET", path, { ...options, headers: { ...key("a"), authorization, ...options.headers } });
      texts.push(answer.text, JSON.stringify(answer.headers));
      return answer;
    };
    for (const own of keys) {
      const date = new Date().toUTCString();
      assert.equal((await send(sign(own, "GET", "docs", path.slice(1), date), { date })).status, 404);
      await s.rest.get("/_tesela/", { sign: false, headers: { authorization: `Bearer ${own}` } });
    }
    const { token } = await permit(s.rest, keys[1], "d");
    assert.equal((await send(encodeURIComponent(token))).status, 404);
    assert.equal((await send(encodeURIComponent(token.replace("sig=", "sig=A")))).status, 401);
    secrets.push(...token.replace(/^.*sig=/, "").split(";").filter((part) => part.length > 40));
    const secret = () => randomBytes(32).toString("base64");
    for (let i = 0; i < 20; i++) assert.equal((await send(encodeURIComponent(`type=master&ver=1.0&sig=${secret()}`))).status, 401);
    for (const form of [(x) => x, (x) => `type=${x}`, (x) => `type=${x}&ver=1.0&sig=y`, (x) => `type=master&ver=${x}&sig=y`, (x) => `Basic ${x}`, (x) => `type=master&ver=1.0&sig=${x}${x}`]) {
      const x = secret();
      secrets.push(x);
      assert.equal((await send(form(x))).status, 401);
    }
    const stray = secret();
    secrets.push(stray);
    const bearer = await s.rest.get("/_tesela/ranges", { sign: false, headers: { authorization: `Bearer ${stray}` } });
    assert.equal(bearer.status, 401);
    texts.push(bearer.text);
    const expired = sign(keys[0], "GET", "docs", path.slice(1), new Date(0).toUTCString());
    assert.equal((await send(expired, { date: new Date(0).toUTCString() })).status, 401);
    assert.equal((await s.rest.get("/dbs", { sign: false })).status, 401);
    assert.equal((await s.command(keys[0], "regenerate", "secondary")).code, 0);
    secrets.push(...s.keys());

    const metrics = (await s.rest.get("/metrics", { sign: false, headers: { authorization: `Bearer ${keys[2]}` } })).text;
    const counted = (what) => Number(new RegExp(`^tesela_unauthorized_requests_total\\{authorization="${what}"\\} (\\d+)$`, "m").exec(metrics)[1]);
    assert.equal(counted("missing"), 1);
    assert.ok(counted("malformed") >= 4);
    assert.ok(counted("wrong") >= 22);
    texts.push(metrics);

    const data = s.server.data;
    const files = readdirSync(data, { recursive: true }).map((name) => join(data, name)).filter((name) => statSync(name).isFile());
    const stored = files.map((name) => readFileSync(name, "latin1")).join("\n");
    await s.stop();
    const log = s.server.stderr;
    const lines = log.split("\n").filter((line) => line.includes("requests refused (401)"));
    assert.ok(lines.length >= 1 && lines.length <= 4, log); // for each loopback address: one at once, and one for the rest at the end
    const told = lines.reduce((sum, line) => sum + Number(/count=(\d+)/.exec(line)[1]), 0);
    assert.equal(told, counted("missing") + counted("malformed") + counted("wrong"));
    for (const each of secrets) {
      assert.ok(each.length >= 10);
      for (const form of [each, encodeURIComponent(each), each.slice(0, 24)]) {
        assert.ok(!log.includes(form), `the log has ${form}`);
        assert.ok(!texts.some((text) => text.includes(form)), `an answer has ${form}`);
        assert.ok(!stored.includes(form), `a file has ${form}`);
      }
    }
  });

  it("cost others no more than good ones do, however many there are", async () => {
    const own = newKey();
    const server = await Server.start({ flags: ["--key", own] });
    const good = new Rest({ server, key: own });
    let answers = 0;
    // The median time of valid reads during a flood of requests with this key.
    const beside = async (key, status) => {
      const other = new Rest({ server, key });
      let stop = false;
      const flood = Array.from({ length: 16 }, async () => {
        while (!stop) {
          assert.equal((await other.get("/dbs/x")).status, status);
          answers++;
        }
      });
      const times = [];
      for (let i = 0; i < 100; i++) {
        const from = performance.now();
        assert.equal((await good.get("/dbs")).status, 200);
        times.push(performance.now() - from);
      }
      stop = true;
      await Promise.all(flood);
      other.close();
      return times.sort((a, b) => a - b)[50];
    };
    const wrong = newKey();
    let pairs = 0;
    for (let i = 0; i < 5 && pairs < 1; i++) pairs += (await beside(wrong, 401)) < 2 * (await beside(own, 404)); // the machine may be busy
    assert.ok(pairs, "twice the time, five times in a row");
    assert.ok(answers > 200, `${answers} answers`);
    good.close();
    await server.stop();
    const lines = server.stderr.split("\n").filter((line) => line.includes("requests refused"));
    assert.ok(lines.length >= 1 && lines.length <= 4, `${lines.length} lines`);
  });

  it("are made with the account's key, whatever its length", async () => {
    for (const bytes of [1, 63, 64, 65, 256]) {
      const own = Buffer.alloc(bytes, 5).toString("base64");
      const server = await Server.start({ flags: ["--key", own] });
      const rest = new Rest({ server, key: own });
      assert.equal((await rest.get("/dbs")).status, 200, `${bytes} bytes`);
      const other = createHmac("sha256", "x").update("y").digest("base64");
      assert.equal(await status(rest, other), 401);
      rest.close();
      await server.stop();
      assert.equal(/short enough to be guessed/.test(server.stderr), bytes < 30);
    }
  });
});
