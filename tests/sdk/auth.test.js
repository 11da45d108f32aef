// Authentication: signatures with the account's four keys, dates, and errors.

import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assert, suite, fails, refused, key, emulatorKey, Rest, Server, run, sign } from "./harness.js";

const minutes = (n) => new Date(Date.now() + n * 60_000);
const wrongKey = "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol.";

suite("signatures", (t) => {
  t.it("of another key are refused, and the answer says what should have been signed", async () => {
    const answer = await t.rest.get(t.databasePath, { key: Buffer.alloc(64, 7).toString("base64") });
    refused(answer, 401, { text: wrongKey });
    assert.match(answer.message, new RegExp(`Server used the following payload to sign: 'get\\ndbs\\ndbs/${t.database.id}\\n`));
    const client = t.newClient({ key: Buffer.alloc(64, 7).toString("base64") });
    await fails(client.database(t.database.id).read(), 401, { text: wrongKey });
    client.dispose();
  });

  t.it("must be there", async () => {
    const answer = await t.rest.get("/dbs", { sign: false });
    refused(answer, 401, { substatus: 5000, text: "Required Header authorization is missing. Ensure a valid Authorization token is passed." });
    assert.ok(answer.headers["www-authenticate"]);
    assert.equal(answer.headers["x-ms-session-token"], undefined);
    refused(await t.rest.get("/dbs", { headers: { authorization: "" } }), 401, { substatus: 5000 });
  });

  t.it("must be well formed", async () => {
    const tokens = ["x", "type=master", "type=master&ver=1.0", "type=master&ver=1.0&sig", "type=master&ver=2.0&sig=AAAA", "ver=1.0&sig=AAAA&type=master", "%zz", "Bearer abc", "type%3Dmaster"];
    for (const authorization of tokens) refused(await t.rest.get("/dbs", { headers: { authorization } }), 401, { substatus: 5001 });
    for (const sig of ["AAAA", "!!!!", "A".repeat(44), "", "A".repeat(5000)]) {
      const answer = await t.rest.get("/dbs", { headers: { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${sig}`) } });
      assert.equal(answer.status, 401, sig);
    }
    for (const sig of ["x", ";", "A;B", `${"A".repeat(43)}=;${"A".repeat(68)}`]) {
      const answer = await t.rest.get("/dbs", { headers: { authorization: encodeURIComponent(`type=resource&ver=1&sig=${sig}`) } });
      assert.equal(answer.status, 401, sig);
    }
    for (const type of ["aad", "sas"]) {
      const answer = await t.rest.get("/dbs", { headers: { authorization: encodeURIComponent(`type=${type}&ver=1.0&sig=x`) } });
      refused(answer, 401, { text: type });
    }
  });

  t.it("may be percent-encoded in either case, or not at all", async () => {
    const date = new Date().toUTCString();
    const token = decodeURIComponent(sign(emulatorKey, "GET", "dbs", "", date));
    const lower = encodeURIComponent(token).replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
    for (const authorization of [token, lower, encodeURIComponent(token)]) {
      assert.equal((await t.rest.get("/dbs", { date, headers: { authorization } })).status, 200);
    }
  });

  t.it("hold 15 minutes either way", async () => {
    for (const skew of [-14, 14]) assert.equal((await t.rest.get("/dbs", { date: minutes(skew) })).status, 200, `${skew}`);
    for (const skew of [-20, 20, -16, 16]) {
      refused(await t.rest.get("/dbs", { date: minutes(skew) }), 401, { text: "The authorization token is not valid at the current time." });
    }
  });

  t.it("need a date, in any case", async () => {
    refused(await t.rest.get("/dbs", { headers: { "x-ms-date": null } }), 401, { text: "Authorization token mandates Date headers." });
    for (const date of ["yesterday", "2026-11-15T00:00:00Z", "Sun, 32 Nov 2026 00:00:00 GMT", ""]) {
      assert.equal((await t.rest.get("/dbs", { date })).status, 401, date);
    }
    assert.equal((await t.rest.get("/dbs", { date: new Date().toUTCString().toLowerCase() })).status, 200);
  });

  t.it("may take the Date field instead", async () => {
    const date = new Date().toUTCString();
    const text = `get\ndbs\n\n\n${date.toLowerCase()}\n`;
    const sig = createHmac("sha256", Buffer.from(emulatorKey, "base64")).update(text).digest("base64");
    const headers = { "x-ms-date": null, date, authorization: encodeURIComponent(`type=master&ver=1.0&sig=${sig}`) };
    assert.equal((await t.rest.get("/dbs", { headers })).status, 200);
  });

  t.it("are for one verb and one resource", async () => {
    const date = new Date().toUTCString();
    const used = (path, verb, type, link) => t.rest.get(path, { date, headers: { authorization: sign(emulatorKey, verb, type, link, date) } });
    assert.equal((await used("/dbs", "GET", "dbs", "")).status, 200);
    assert.equal((await used("/dbs", "POST", "dbs", "")).status, 401);
    assert.equal((await used("/dbs", "GET", "colls", "")).status, 401);
    assert.equal((await used(t.databasePath, "GET", "dbs", "dbs/other")).status, 401);
    assert.equal((await used(t.databasePath, "GET", "dbs", `dbs/${t.database.id}`.toUpperCase())).status, 401);
    assert.equal((await used(t.databasePath, "GET", "dbs", `dbs/${t.database.id}`)).status, 200);
  });

  t.it("that fail write nothing", async () => {
    const id = t.name();
    assert.equal((await t.rest.post("/dbs", { id }, { key: Buffer.alloc(32, 1).toString("base64") })).status, 401);
    assert.equal((await t.rest.get(`/dbs/${id}`)).status, 404);
  });
});

const keys = ["primary", "secondary", "reader", "second reader"].map((word) => createHmac("sha512", "k").update(word).digest("base64"));
const [primary, secondary, reader, secondReader] = keys;

suite(
  "keys",
  (t) => {
    t.it("primary and secondary may do everything", async () => {
      for (const key of [primary, secondary]) {
        const client = t.newClient({ key });
        const { database } = await client.databases.create({ id: t.name() });
        const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
        await container.items.create({ id: "1", pk: "a" });
        assert.equal((await database.delete()).statusCode, 204);
        client.dispose();
      }
    });

    t.it("read-only ones may read", async () => {
      const container = await t.container();
      await container.items.create({ id: "1", pk: "a" });
      for (const key of [reader, secondReader]) {
        const client = t.newClient({ key });
        const seen = client.database(t.database.id).container(container.id);
        assert.equal((await seen.item("1", "a").read()).statusCode, 200);
        assert.equal((await seen.items.readAll().fetchAll()).resources.length, 1);
        assert.equal((await seen.read()).statusCode, 200);
        assert.equal((await seen.readOffer()).resource.content.offerThroughput, 400);
        assert.equal((await client.databases.query("SELECT * FROM c WHERE c.id = 'x'").fetchAll()).resources.length, 0);
        assert.ok((await client.getDatabaseAccount()).resource);
        await fails(seen.items.create({ id: "2", pk: "a" }), 403);
        await fails(seen.items.upsert({ id: "1", pk: "a" }), 403);
        await fails(seen.item("1", "a").replace({ id: "1", pk: "a" }), 403);
        await fails(seen.item("1", "a").patch([{ op: "set", path: "/v", value: 1 }]), 403);
        await fails(seen.item("1", "a").delete(), 403);
        await fails(seen.delete(), 403);
        await fails(client.databases.create({ id: t.name() }), 403);
        client.dispose();
      }
      assert.equal((await container.items.readAll().fetchAll()).resources.length, 1);
    });

    t.it("read-only ones may not write by way of a batch or of a query's name", async () => {
      const path = await t.containerPath();
      const batch = { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-isquery": "True" };
      const operations = [{ operationType: "Create", resourceBody: { id: "1", pk: "a" } }];
      assert.notEqual((await t.rest.post(`${path}/docs`, operations, { key: reader, headers: batch })).status, 200);
      await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { key: reader, headers: { ...key("a"), "x-ms-documentdb-isquery": "True" } });
      await t.rest.post("/dbs", { id: "sneaky" }, { key: reader, headers: { "content-type": "application/query+json" } });
      await t.rest.post(`${t.databasePath}/colls`, { id: "sneaky", partitionKey: { paths: ["/pk"] } }, { key: reader, headers: { "x-ms-documentdb-isquery": "True" } });
      assert.equal((await t.rest.get(`${path}/docs`)).json._count, 0);
      assert.equal((await t.rest.get("/dbs/sneaky")).status, 404);
      assert.equal((await t.rest.get(`${t.databasePath}/colls/sneaky`)).status, 404);
    });

    t.it("of the emulator are not accepted beside them", async () => {
      assert.equal((await t.rest.get("/dbs", { key: emulatorKey })).status, 401);
    });
  },
  { key: primary, flags: ["--key", primary, "--secondary-key", secondary, "--read-only-key", reader, "--secondary-read-only-key", secondReader] },
);

describe("keys are given", () => {
  let folder;
  before(() => (folder = mkdtempSync(join(tmpdir(), "tesela-keys-"))));
  after(() => rmSync(folder, { recursive: true, force: true }));

  const accepts = async (options, expected) => {
    const server = await Server.start(options);
    try {
      for (const [i, key] of keys.entries()) {
        const rest = new Rest({ server, key });
        assert.equal((await rest.get("/dbs")).status, expected[i]);
        rest.close();
      }
    } finally {
      await server.stop();
    }
    for (const key of keys) assert.ok(!server.stderr.includes(key), "no key in the log");
  };

  it("in a file, one a line", async () => {
    const file = join(folder, "keys");
    writeFileSync(file, `${primary}\n${secondary}\n\n${reader}\n`);
    await accepts({ flags: ["--key-file", file] }, [200, 200, 200, 401]);
  });

  it("in the environment", async () => {
    await accepts({ env: { TESELA_KEY: primary, TESELA_READ_ONLY_KEY: reader } }, [200, 401, 200, 401]);
  });

  it("well, or the server does not start", async () => {
    for (const flags of [["--key", "not base64!"], ["--key-file", join(folder, "nowhere")], ["--host", "0.0.0.0"]]) {
      const { code, stderr, stdout } = await run(["serve", "--data", join(folder, "data"), "--sql-port", "0", ...flags]);
      assert.notEqual(code, 0, flags.join(" "));
      assert.match(stderr, /key/);
      assert.equal(stdout, "");
    }
  });
});
