// Entra ID tokens: which are accepted, and what the roles of their principals allow.

import { createHmac, createSign, generateKeyPairSync } from "node:crypto";
import https from "node:https";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { assert, emulatorKey, fails, key, refused, Rest, run, Server, suite } from "./harness.js";

const issuer = "https://login.example/tenant/v2.0", audience = "https://tesela.example";
const now = () => Math.floor(Date.now() / 1000);
const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const [own, other] = [0, 1].map(() => generateKeyPairSync("rsa", { modulusLength: 2048 }));
const claimsOf = (oid, more = {}) => ({ iss: issuer, aud: audience, nbf: now() - 10, exp: now() + 600, oid, ...more });

const textOf = (claims, header) => `${encode({ alg: "RS256", typ: "JWT", kid: "one", ...header })}.${encode(claims)}`;

function token(claims, { keys = own, header = {}, hash = "RSA-SHA256" } = {}) {
  const text = textOf(claims, header);
  return `${text}.${createSign(hash).update(text).sign(keys.privateKey).toString("base64url")}`;
}

// Signed with the public key, as if that were a secret.
function forged(claims) {
  const text = textOf(claims, { alg: "HS256" });
  return `${text}.${createHmac("sha256", own.publicKey.export({ format: "pem", type: "spki" })).update(text).digest("base64url")}`;
}

const field = (jwt) => encodeURIComponent(`type=aad&ver=1.0&sig=${jwt}`);
const ask = (rest, jwt, verb, path, body, headers = {}) => rest.send(verb, path, { body, headers: { ...headers, authorization: field(jwt) } });

function makeFiles(roles) {
  const folder = mkdtempSync(join(tmpdir(), "tesela-aad-"));
  const set = { keys: [{ ...own.publicKey.export({ format: "jwk" }), kid: "one", use: "sig" }, { kty: "EC", kid: "other kind" }] };
  writeFileSync(join(folder, "keys.json"), JSON.stringify(set));
  writeFileSync(join(folder, "roles.json"), JSON.stringify(roles));
  return folder;
}

const flagsOf = (folder) => ["--aad-issuer", issuer, "--aad-audience", `https://else.example,${audience}`, "--aad-keys", join(folder, "keys.json"), "--aad-roles", join(folder, "roles.json")];

const roles = [
  { principal: "Account-Reader", role: "reader", scope: "/" },
  { principal: "account-contributor", role: "contributor", scope: "/" },
  { principal: "database-contributor", role: "contributor", scope: "/dbs/d" },
  { principal: "container-reader", role: "reader", scope: "/dbs/d/colls/c" },
  { principal: "both", role: "reader", scope: "/dbs/d" },
  { principal: "both", role: "contributor", scope: "/dbs/d/colls/other" },
  { principal: "group", role: "reader", scope: "/dbs/d/colls/c" },
];

describe("Entra ID tokens", () => {
  const s = {};
  before(async () => {
    s.folder = makeFiles(roles);
    s.server = await Server.start({ flags: flagsOf(s.folder) });
    s.agent = new https.Agent({ keepAlive: true, ca: await s.server.certificate() });
    s.rest = new Rest({ server: s.server, scheme: "http", key: emulatorKey });
    s.client = new CosmosClient({ endpoint: s.server.endpoint("http"), key: emulatorKey });
    const { database } = await s.client.databases.create({ id: "d" });
    for (const id of ["c", "other"]) {
      const { container } = await database.containers.create({ id, partitionKey: "/pk" });
      await container.items.create({ id: "1", pk: "a" });
    }
  });
  after(async () => {
    s.client.dispose();
    s.rest.close();
    s.agent.destroy();
    await s.server.stop();
    rmSync(s.folder, { recursive: true, force: true });
  });
  const as = (oid, more) => new CosmosClient({ endpoint: s.server.endpoint("https"), agent: s.agent, aadCredentials: { getToken: async () => ({ token: token(claimsOf(oid, more)), expiresOnTimestamp: Date.now() + 600_000 }) } });
  const status = async (oid, verb, path, body, headers) => {
    const answer = await ask(s.rest, token(claimsOf(oid)), verb, path, body, { ...key("a"), ...headers });
    return answer.status === 403 ? `403/${answer.headers["x-ms-substatus"]}` : answer.status;
  };
  const query = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };

  it("let the official SDK read and write as the role allows", async () => {
    const writer = as("database-contributor"), reader = as("container-reader");
    const { statusCode } = await writer.database("d").container("c").items.create({ id: "2", pk: "a" });
    assert.equal(statusCode, 201);
    assert.equal((await reader.database("d").container("c").item("2", "a").read()).resource.id, "2");
    const { resources } = await reader.database("d").container("c").items.query("SELECT VALUE c.id FROM c ORDER BY c.id").fetchAll();
    assert.deepEqual(resources, ["1", "2"]);
    await fails(reader.database("d").container("c").items.create({ id: "3", pk: "a" }), 403);
    await fails(reader.database("d").container("other").item("1", "a").read(), 403);
    for (const client of [writer, reader]) client.dispose();
  });

  it("reach what is in the scope of a role", async () => {
    const item = (container) => `/dbs/d/colls/${container}/docs/1`;
    const expected = {
      "account-reader": { "/": 200, "/dbs": 200, "/dbs/d": 200, "/dbs/d/colls": 200, "/dbs/d/colls/c": 200, "/dbs/d/colls/c/pkranges": 200, [item("c")]: 200, [item("other")]: 200 },
      "database-contributor": { "/": 200, "/dbs": "403/5302", "/dbs/d": 200, "/dbs/d/colls": 200, "/dbs/d/colls/c": 200, [item("c")]: 200, "/dbs/e": "403/5302" },
      "container-reader": { "/": 200, "/dbs": "403/5302", "/dbs/d": "403/5302", "/dbs/d/colls": "403/5302", "/dbs/d/colls/c": 200, "/dbs/d/colls/c/pkranges": 200, [item("c")]: 200, [item("other")]: "403/5302" },
      nobody: { "/": "403/5302", "/dbs": "403/5302", "/dbs/d/colls/c": "403/5302", [item("c")]: "403/5302" },
    };
    for (const [oid, paths] of Object.entries(expected)) {
      for (const [path, wanted] of Object.entries(paths)) assert.equal(await status(oid, "GET", path), wanted, `${oid} ${path}`);
    }
  });

  it("by rid are held to the same scopes", async () => {
    const rids = await Promise.all(["c", "other"].map(async (id) => (await s.client.database("d").container(id).read()).resource._self));
    assert.equal(await status("container-reader", "GET", `/${rids[0]}docs`), 200);
    assert.equal(await status("container-reader", "GET", `/${rids[1]}docs`), "403/5302");
  });

  it("write with a contributor's role only", async () => {
    const writes = (oid, container) => status(oid, "POST", `/dbs/d/colls/${container}/docs`, { id: `${oid} ${container}`, pk: "a" });
    assert.equal(await writes("account-reader", "c"), "403/5302");
    assert.equal(await writes("account-contributor", "c"), 201);
    assert.equal(await writes("both", "c"), "403/5302");
    assert.equal(await writes("both", "other"), 201);
    for (const [verb, body] of [["PUT", { id: "1", pk: "a" }], ["PATCH", [{ op: "set", path: "/v", value: 1 }]], ["DELETE", undefined]]) {
      assert.equal(await status("account-reader", verb, "/dbs/d/colls/c/docs/1", body), "403/5302", verb);
    }
    assert.equal(await status("account-reader", "POST", "/dbs/d/colls/c/docs", { query: "SELECT * FROM c" }, query), 200);
    assert.equal(await status("account-reader", "POST", "/dbs/d/colls/c/sprocs/x", []), "403/5302");
    assert.equal(await status("account-contributor", "POST", "/dbs/d/colls/c/sprocs/x", []), 404);
  });

  it("manage nothing, whatever the role", async () => {
    const requests = [
      ["POST", "/dbs", { id: "e" }], ["DELETE", "/dbs/d"], ["POST", "/dbs/d/colls", { id: "x", partitionKey: { paths: ["/pk"] } }],
      ["PUT", "/dbs/d/colls/c", { id: "c" }], ["DELETE", "/dbs/d/colls/c"], ["GET", "/offers"], ["GET", "/dbs/d/users"],
      ["POST", "/dbs/d/users", { id: "u" }], ["GET", "/dbs/d/users/u/permissions"], ["POST", "/dbs/d/colls/c/sprocs", { id: "p", body: "function () {}" }], ["GET", "/dbs/d/colls/c/udfs"],
    ];
    for (const [verb, path, body] of requests) assert.equal(await status("account-contributor", verb, path, body), "403/5300", `${verb} ${path}`);
    assert.equal((await ask(s.rest, token(claimsOf("account-contributor")), "GET", "/_tesela/keys")).status, 401);
  });

  it("have the roles of their groups", async () => {
    const read = (claims) => ask(s.rest, token(claims), "GET", "/dbs/d/colls/c/docs/1", undefined, key("a"));
    assert.equal((await read(claimsOf("someone", { groups: ["x", "GROUP"] }))).status, 200);
    assert.equal((await read(claimsOf("someone", { groups: ["x"] }))).status, 403);
  });

  it("that are not right are refused", async () => {
    const good = claimsOf("account-reader");
    const read = (jwt) => ask(s.rest, jwt, "GET", "/dbs");
    assert.equal((await read(token(good))).status, 200);
    assert.equal((await read(token({ ...good, aud: ["x", audience] }))).status, 200);
    const [head, body, signature] = token(good).split(".");
    const wrong = {
      "another key": token(good, { keys: other }),
      "a key that nobody knows": token(good, { header: { kid: "two" } }),
      "no key": token(good, { header: { kid: undefined } }),
      "no algorithm": `${encode({ alg: "none", kid: "one" })}.${body}.`,
      "a shared secret": token(good, { header: { alg: "HS256" } }), "the public key as a secret": forged(good),
      "another algorithm, signed rightly": token(good, { header: { alg: "RS512" }, hash: "RSA-SHA512" }),
      "another text": `${head}.${encode({ ...good, oid: "account-contributor" })}.${signature}`,
      "another issuer": token({ ...good, iss: "https://login.example/else" }),
      "another audience": token({ ...good, aud: "https://else.exampl" }),
      "no audience": token({ ...good, aud: undefined }),
      "an empty audience": token({ ...good, aud: "" }),
      "times that are over": token({ ...good, exp: now() - 400 }),
      "no end": token({ ...good, exp: undefined }),
      "an end that is no time": token({ ...good, exp: "never" }),
      "a time to come": token({ ...good, nbf: now() + 400 }),
      "no claims": token([]),
      "one part": head, "two parts": `${head}.${body}`, "four parts": `${token(good)}.x`, nothing: ".", dots: "..", "no base64": "a.b.c",
      "padding within a part": `${head.slice(0, 20)}=${head.slice(21)}.${body}.${signature}`, "a part of one letter too many": `${head}.${body}.${"A".repeat(345)}`,
    };
    for (const [what, jwt] of Object.entries(wrong)) assert.equal((await read(jwt)).status, 401, what);
  });
});

describe("settings of Entra ID tokens", () => {
  const starts = async (...flags) => {
    const { code, stderr } = await run(["serve", "--sql-port", "0", "--data", join(tmpdir(), "tesela-aad-never"), ...flags]);
    assert.notEqual(code, 0);
    return stderr;
  };

  it("that cannot be are refused at the start", async () => {
    const folder = makeFiles(roles);
    assert.match(await starts("--aad-issuer", issuer), /go together/);
    assert.match(await starts("--aad-emulator", ...flagsOf(folder)), /leave --aad-issuer/);
    assert.match(await starts("--aad-emulator", "--key", Buffer.from("a key of one's own").toString("base64")), /on loopback/);
    assert.match(await starts("--aad-emulator", "--host", "0.0.0.0", "--allow-well-known-key"), /on loopback/);
    for (const [name, text, reason] of [
      ["roles.json", "{}", /JSON array/], ["roles.json", '[{"role":"reader","scope":"/"}]', /no principal/], ["roles.json", '[{"principal":"x","role":"owner","scope":"/"}]', /reader or contributor/],
      ["roles.json", '[{"principal":"x","role":"reader","scope":"/dbs/d/docs"}]', /scope/], ["keys.json", '{"keys":[]}', /Key Set/], ["keys.json", "x", /Key Set/],
    ]) {
      const bad = makeFiles(roles);
      writeFileSync(join(bad, name), text);
      assert.match(await starts(...flagsOf(bad)), reason);
      rmSync(bad, { recursive: true });
    }
    rmSync(join(folder, "keys.json"));
    assert.match(await starts(...flagsOf(folder)), /cannot be read/);
    rmSync(folder, { recursive: true });
  });
});

suite("Entra ID tokens in the emulator's way", (t) => {
  t.it("are accepted whoever signed them, if they are valid now", async () => {
    const read = (jwt) => ask(t.rest, jwt, "GET", t.databasePath);
    const fake = (claims) => `${encode({ alg: "RS256", kid: "x" })}.${encode(claims)}.${Buffer.from("signature").toString("base64url")}`;
    assert.equal((await read(fake({ exp: now() + 60 }))).status, 200);
    refused(await read(fake({ exp: now() - 400 })), 401);
    refused(await read("x"), 401);
    assert.equal((await ask(t.rest, fake({ exp: now() + 60 }), "DELETE", t.databasePath)).status, 403);
  });
}, { flags: ["--aad-emulator"] });

suite("Entra ID tokens on a server that takes none", (t) => {
  t.it("are refused", async () => refused(await ask(t.rest, token(claimsOf("x")), "GET", "/dbs"), 401, { text: "'aad'" }));
});
