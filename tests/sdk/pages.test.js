// Web pages and the well-known emulator key: requests that a hostile web page may make a developer's browser send, and where the
// emulator's key is accepted.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { hostname, networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, eventually, refused, Rest, run, Server, sign, suite } from "./harness.js";

const own = Buffer.alloc(48, "own key").toString("base64");

// Sends bytes to the server; returns the first status, or "" if there is no answer.
function status(server, bytes, { host = "127.0.0.1", secure } = {}) {
  return new Promise((done, fail) => {
    const to = { host, port: server.port };
    const socket = secure ? tls.connect({ ...to, ca: secure, servername: "localhost" }) : net.connect(to);
    let text = "";
    socket.on("data", (part) => (text += part));
    socket.on("error", fail);
    socket.on("close", () => done(text.split("\r\n", 1)[0].split(" ")[1] ?? ""));
    socket.end(bytes);
  });
}

// A signed request for the databases, with these lines instead of Host.
function request(lines, { target = "/dbs", version = "1.1" } = {}) {
  const date = new Date().toUTCString();
  const signature = sign(emulatorKey, "GET", "dbs", "", date);
  return [`GET ${target} HTTP/${version}`, ...lines, `x-ms-date: ${date}`, `authorization: ${signature}`, "x-ms-version: 2020-07-15", "Connection: close", "", ""].join("\r\n");
}

suite("web pages", (t) => {
  const paths = ["/", "/dbs", "/alive", "/ready", "/metrics", "/_tesela/", "/_tesela/ranges", "/_explorer/emulator.pem", "/nothing"];

  t.it("are refused on every path, signed or not, by the name that led them here", async () => {
    for (const path of paths) {
      for (const options of [{}, { sign: false }]) {
        const answer = await t.rest.get(path, { ...options, headers: { host: `evil.example:${t.server.port}` } });
        refused(answer, 403, { text: "--allow-host NAME" });
        assert.equal(answer.headers["access-control-allow-origin"], undefined);
      }
    }
  });

  t.it("are refused on every path by their origin", async () => {
    for (const path of paths) {
      for (const origin of ["http://evil.example", "null", "", `${t.scheme}://localhost:3000`, `${t.scheme}://localhost:${t.server.port}@evil.example`]) {
        refused(await t.rest.get(path, { headers: { host: `localhost:${t.server.port}`, origin } }), 403);
      }
    }
    const headers = { host: `localhost:${t.server.port}`, origin: `${t.scheme}://localhost:${t.server.port}` };
    assert.equal((await t.rest.get("/dbs", { headers })).status, 200);
  });

  t.it("change nothing", async () => {
    const id = t.name("made");
    const headers = { host: "evil.example", origin: "http://evil.example" };
    refused(await t.rest.post("/dbs", { id }, { headers }), 403);
    refused(await t.rest.delete(t.databasePath, { headers }), 403);
    assert.equal((await t.rest.get(`/dbs/${id}`)).status, 404);
    assert.equal((await t.rest.get(t.databasePath)).status, 200);
  });

  t.it("are refused by a parser that takes nothing for a loopback name that is none", async () => {
    const secure = t.scheme === "https" ? t.certificate : undefined;
    const asked = (lines, options) => status(t.server, request(lines, options), { secure });
    for (const host of ["localhost:80@evil.example", "localhost.", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.evil.example", "[::1].evil.example", "::1", "localhost:99999", "0.0.0.0"]) {
      assert.equal(await asked([`Host: ${host}`]), "403", host);
    }
    for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1", "127.8.9.1:80", "[::1]", "[0:0:0:0:0:0:0:1]:9"]) {
      assert.equal(await asked([`Host: ${host}`]), "200", host);
    }
    assert.equal(await asked(["Host: localhost", "Host: localhost"]), "400");
    assert.equal(await asked(["Host: localhost", "Host: evil.example"]), "400");
    assert.equal(await asked(["Host: localhost", "Origin: http://localhost", "Origin: http://localhost"]), "400");
    assert.equal(await asked(["Host:"]), "403");
    assert.equal(await asked([], { version: "1.0" }), "403");
    assert.equal(await asked(["Host: localhost"], { version: "1.0" }), "200");
    // The absolute form of a URL names the host as well; both must be ours.
    assert.equal(await asked(["Host: localhost"], { target: "http://localhost:80/dbs" }), "200");
    assert.equal(await asked(["Host: [::1]"], { target: "http://[::1]:80/dbs" }), "200");
    assert.equal(await asked(["Host: localhost"], { target: "http://evil.example/dbs" }), "403");
    assert.equal(await asked(["Host: evil.example"], { target: "http://localhost/dbs" }), "403");
    assert.equal(await asked(["Host: localhost"], { target: "http://localhost@evil.example/dbs" }), "403");
    assert.equal(await asked(["Host: localhost"], { target: "http://evil.example@localhost/dbs" }), "403");
  });

  t.it("do not keep programs out, whatever loopback name they use", async () => {
    for (const host of ["localhost", "127.0.0.1"]) {
      const client = t.newClient({ endpoint: `${t.scheme}://${host}:${t.server.port}` });
      const { resources } = await client.databases.readAll().fetchAll();
      assert.ok(resources.some((database) => database.id === t.database.id));
      client.dispose();
    }
    const rest = t.newRest({ host: "::1" }); // the SDK cannot resolve "[::1]"
    assert.equal((await rest.get("/dbs")).status, 200);
    rest.close();
  });
});

describe("names that the server goes by", () => {
  const ask = async (server, host, key = emulatorKey) => {
    const rest = new Rest({ server, key, host: "127.0.0.1" });
    const answer = await rest.get("/dbs", { headers: { host } });
    rest.close();
    return answer.status;
  };

  it("can be added", async () => {
    const server = await Server.start({ flags: ["--allow-host", "tesela, db.example"] });
    for (const host of ["tesela", "tesela:8081", "DB.example:1", "localhost"]) assert.equal(await ask(server, host), 200, host);
    for (const host of ["tesela.evil.example", "example", "tesela,"]) assert.equal(await ask(server, host), 403, host);
    const rest = new Rest({ server });
    const headers = { host: "tesela", origin: "http://tesela" };
    assert.equal((await rest.get("/dbs", { headers })).status, 200);
    assert.equal((await rest.get("/dbs", { headers: { ...headers, origin: "http://evil.example" } })).status, 403);
    rest.close();
    await server.stop();
  });

  it("are names", async () => {
    for (const list of ["a:80", "*", "a,,b", "http://a"]) {
      const { code, stderr } = await run(["serve", "--sql-port", "0", "--allow-host", list]);
      assert.equal(code, 2);
      assert.match(stderr, /--allow-host must be names/);
    }
  });

  it("are anything once the server has a key of its own", async () => {
    const server = await Server.start({ flags: ["--key", own] });
    assert.equal(await ask(server, "anything.example", own), 200);
    await server.stop();
  });

  it("are guarded as soon as the emulator's key is one of the server's, and no longer", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tesela-pages-"));
    const file = join(folder, "keys");
    const write = (...keys) => writeFileSync(file, `${keys.join("\n")}\n`, { mode: 0o600 });
    write(own);
    const server = await Server.start({ flags: ["--key-file", file] });
    const reload = async () => {
      const rest = new Rest({ server, key: own });
      const date = new Date().toUTCString();
      const answer = await rest.post("/_tesela/keys/reload", undefined, { headers: { authorization: `Bearer ${own}`, "x-ms-date": date } });
      assert.equal(answer.status, 200, answer.text);
      rest.close();
    };
    assert.equal(await ask(server, "evil.example", own), 200);
    write(own, emulatorKey);
    await reload();
    assert.equal(await ask(server, "evil.example", own), 403);
    assert.equal(await ask(server, "localhost"), 200);
    write(own);
    await reload();
    assert.equal(await ask(server, "evil.example", own), 200);
    await server.stop();
    rmSync(folder, { recursive: true });
  });
});

describe("the emulator's key on all interfaces", () => {
  let folder, file;
  const write = (...keys) => writeFileSync(file, `${keys.join("\n")}\n`, { mode: 0o600 });
  const all = ["--host", "0.0.0.0"];
  const external = Object.values(networkInterfaces()).flat().find((address) => address.family === "IPv4" && !address.internal)?.address;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "tesela-pages-"));
    file = join(folder, "keys");
  });
  after(() => rmSync(folder, { recursive: true }));

  const ways = {
    "no key": [[], {}],
    "--key": [["--key", emulatorKey], {}],
    "--secondary-key": [["--key", own, "--secondary-key", emulatorKey], {}],
    "--read-only-key": [["--key", own, "--read-only-key", emulatorKey], {}],
    "--secondary-read-only-key": [["--key", own, "--secondary-read-only-key", emulatorKey], {}],
    TESELA_KEY: [[], { TESELA_KEY: emulatorKey }],
    TESELA_READ_ONLY_KEY: [["--key", own], { TESELA_READ_ONLY_KEY: emulatorKey }],
    "a key file": [() => ["--key-file", file], {}, [own, "-", "-", emulatorKey]],
    "a switch that is off": [["--key", emulatorKey], { TESELA_ALLOW_WELL_KNOWN_KEY: "false" }],
  };

  for (const [what, [flags, env, lines]] of Object.entries(ways)) {
    it(`is refused: ${what}`, async () => {
      if (lines) write(...lines);
      for (const host of ["0.0.0.0", "::"]) {
        const args = ["serve", "--data", join(folder, "never"), "--sql-port", "0", "--host", host, ...(flags instanceof Function ? flags() : flags)];
        const { code, stderr, stdout } = await run(args, { env });
        assert.equal(code, 2, `${stdout}${stderr}`);
        assert.match(stderr, /--allow-well-known-key/);
        assert.ok(!stderr.includes(emulatorKey));
      }
    });
  }

  it("is taken when a flag says so, with a warning at every start", async () => {
    for (const flags of [[], ["--key", emulatorKey], ["--key", own, "--read-only-key", emulatorKey]]) {
      const server = await Server.start({ flags: [...all, "--allow-well-known-key", ...flags] });
      assert.match(server.stderr, /warn +keys: the emulator's key is taken from other machines/);
      const rest = new Rest({ server });
      assert.equal((await rest.get("/dbs")).status, 200);
      assert.equal((await rest.get("/_tesela/", { sign: false })).status, 401, "nobody may without a key, where others reach it");
      assert.equal((await rest.get("/dbs", { headers: { host: "evil.example" } })).status, 403, "web pages may not");
      assert.equal((await rest.get("/dbs", { headers: { host: hostname() } })).status, 200);
      if (external) {
        const client = new CosmosClient({ endpoint: `http://${external}:${server.port}`, key: emulatorKey });
        assert.deepEqual((await client.databases.readAll().fetchAll()).resources, []);
        client.dispose();
      }
      rest.close();
      await server.stop();
    }
  });

  it("is not warned of on loopback, nor with keys of one's own", async () => {
    for (const flags of [["--key", emulatorKey], [...all, "--key", own]]) {
      const server = await Server.start({ flags });
      assert.doesNotMatch(server.stderr, /emulator/);
      await server.stop();
    }
  });

  it("is refused from a key file that changes while the server runs", async () => {
    write(own);
    const server = await Server.start({ flags: [...all, "--key-file", file] });
    const rest = new Rest({ server, key: own });
    const bearer = { headers: { authorization: `Bearer ${own}` } };
    write(own, "-", emulatorKey);
    const answer = await rest.post("/_tesela/keys/reload", undefined, bearer);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /primaryReadonly key is the emulator's.*Nothing was changed/s);
    assert.equal((await rest.post("/_tesela/keys/regenerate", { kind: "secondary" }, bearer)).status, 400);
    const from = server.stderr.length;
    server.child.kill("SIGHUP");
    await eventually("the server says why", () => /keys stay as they are.*emulator's/.test(server.stderr.slice(from)));
    assert.equal((await rest.get("/dbs")).status, 200);
    assert.equal((await rest.get("/dbs", { key: emulatorKey })).status, 401);
    assert.equal((await rest.post("/_tesela/keys/regenerate", { kind: "primaryReadonly" }, bearer)).status, 200, "it can be replaced");
    rest.close();
    await server.stop();
  });
});
