// Authorization: every operation of the SQL API with every kind of credential.
//
// The list of operations is read from the server's source (the table in src/api/sql/front.c). Each must have a row here, or the first test
// fails, so that a new operation needs a decision about its access. A row names the credentials that are allowed. All others must be
// rejected and change nothing: with 403 for a valid token or key without the right, with 401 for an invalid one. "Allowed" means any other
// status: the operations' own answers are for other tests.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { assert, key, sleep, Rest, Server, sign, signed } from "./harness.js";

const source = (name) => readFileSync(new URL(`../../src/api/sql/${name}`, import.meta.url), "utf8");
const rowsOf = (text, form) => [...text.matchAll(form)].map(([, kind, verb]) => `${verb} ${kind}`);
const served = rowsOf(source("front.c"), /\{SQL_([A-Z_]+), VERB_([A-Z]+), \w+, (?:true|false)\}/g);
const forTokens = rowsOf(source("authorization.c"), /\{SQL_([A-Z_]+), VERB_([A-Z]+), REACH_\w+, (?:true|false)\}/g);
const kinds = [...source("route.h").matchAll(/^ {4}SQL_([A-Z_]+),$/gm)].map(([, kind]) => kind);

const secrets = ["primary", "secondary", "reader", "second reader"].map((word) => createHmac("sha512", "access").update(word).digest("base64"));

// ---- credentials ----

const writers = ["primary", "secondary"];
const readers = [...writers, "reader", "second reader"];

// Credentials for the container of the rows, or for something in it: partition key "a", its item "1", and so on.
const inside = ["container Read", "container All", "key Read", "key All", "item Read", "item All", "attachment Read", "attachment All", "sproc Read", "sproc All", "trigger Read", "trigger All", "udf Read", "udf All", "other key All", "other item All"];

// Valid credentials for other resources.
const outside = ["other container All", "other database All"];

// No longer valid: 403.
const ended = ["expired", "permission deleted", "permission changed", "user deleted", "database recreated", "container recreated", "item recreated", "script recreated"];

// Never valid: 401.
const fakes = ["none", "garbage", "empty token", "token of another key", "another key"];

const read = (...more) => [...readers, "container Read", "container All", ...more];
const write = (...more) => [...writers, "container All", ...more];
const keyRead = ["key Read", "key All"];
const itemRead = ["item Read", "item All"];

// ---- the rows: operation, description, allowed credentials, and a request ----

const query = { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json" };
const crossing = { ...query, "x-ms-documentdb-query-enablecrosspartition": "True" };
const all = { query: "SELECT * FROM c" };
const batch = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
const feed = { "a-im": "Incremental feed" };

const rows = [
  ["GET ACCOUNT", "", [...readers, ...inside, ...outside], () => ({ path: "/" })],

  ["GET ADDRESSES", "of the master", readers, () => ({ path: "//addresses/?$resolveFor=dbs", signs: ["dbs", ""] })],
  ["GET ADDRESSES", "of a container", [...readers, ...inside], (w) => ({ path: `//addresses/?$resolveFor=${encodeURIComponent(`${w.container}/docs`)}`, signs: ["docs", w.container.slice(1)] })],

  ["GET DATABASES", "", readers, () => ({ path: "/dbs" })],
  ["HEAD DATABASES", "", readers, () => ({ path: "/dbs" })],
  ["POST DATABASES", "create", writers, (w) => ({ path: "/dbs", body: { id: w.name() } })],
  ["POST DATABASES", "query", readers, () => ({ path: "/dbs", headers: query, body: all })],
  ["GET DATABASE", "", readers, (w) => ({ path: w.database })],
  ["DELETE DATABASE", "", writers, async (w) => ({ path: await w.freshDatabase() })],

  ["GET CONTAINERS", "", readers, (w) => ({ path: `${w.database}/colls` })],
  ["POST CONTAINERS", "create", writers, (w) => ({ path: `${w.database}/colls`, body: { id: w.name(), partitionKey: { paths: ["/pk"] } } })],
  ["POST CONTAINERS", "query", readers, (w) => ({ path: `${w.database}/colls`, headers: query, body: all })],
  ["GET CONTAINER", "", [...readers, ...inside], (w) => ({ path: w.container })],
  ["HEAD CONTAINER", "", [...readers, ...inside], (w) => ({ path: w.container })],
  ["GET CONTAINER", "by rid", [...readers, ...inside], (w) => ({ path: w.containerRid, byRid: true })],
  ["PUT CONTAINER", "", writers, async (w) => ({ path: w.container, body: { id: "c", partitionKey: { paths: ["/pk"] } } })],
  ["DELETE CONTAINER", "", writers, async (w) => ({ path: await w.freshContainer() })],

  ["GET PKRANGES", "", [...readers, ...inside], (w) => ({ path: `${w.container}/pkranges` })],
  ["GET PKRANGE", "", [...readers, ...inside], (w) => ({ path: `${w.container}/pkranges/0` })],

  ["GET ITEMS", "all", read(), (w) => ({ path: w.items })],
  ["GET ITEMS", "of a key", read(...keyRead), (w) => ({ path: w.items, headers: key("a") })],
  ["GET ITEMS", "of another key", read("other key All"), (w) => ({ path: w.items, headers: key("b") })],
  ["GET ITEMS", "of a range", read(), (w) => ({ path: w.items, headers: { "x-ms-documentdb-partitionkeyrangeid": "0" } })],
  ["GET ITEMS", "of hashes", read(), (w) => ({ path: w.items, headers: { "x-ms-start-epk": "", "x-ms-end-epk": "FF" } })],
  ["GET ITEMS", "changes", read(), (w) => ({ path: w.items, headers: feed })],
  ["GET ITEMS", "changes of a key", read(...keyRead), (w) => ({ path: w.items, headers: { ...feed, ...key("a") } })],
  ["GET ITEMS", "changes of another key", read("other key All"), (w) => ({ path: w.items, headers: { ...feed, ...key("b") } })],
  ["GET ITEMS", "changes of a range", read(), (w) => ({ path: w.items, headers: { ...feed, "x-ms-documentdb-partitionkeyrangeid": "0" } })],
  ["POST ITEMS", "create", write("key All"), (w) => ({ path: w.items, headers: key("a"), body: { id: w.name(), pk: "a" } })],
  ["POST ITEMS", "create under another key", write("other key All"), (w) => ({ path: w.items, headers: key("b"), body: { id: w.name(), pk: "b" } })],
  ["POST ITEMS", "create without naming the key", write(), (w) => ({ path: w.items, body: { id: w.name(), pk: "a" } })],
  ["POST ITEMS", "upsert", write("key All"), (w) => ({ path: w.items, headers: { ...key("a"), "x-ms-documentdb-is-upsert": "True" }, body: { id: "2", pk: "a" } })],
  ["POST ITEMS", "upsert the item", write("key All"), (w) => ({ path: w.items, headers: { ...key("a"), "x-ms-documentdb-is-upsert": "True" }, body: { id: "1", pk: "a", attached: 1 } })],
  ["POST ITEMS", "query", read(), (w) => ({ path: w.items, headers: crossing, body: all })],
  ["POST ITEMS", "query of a key", read(...keyRead), (w) => ({ path: w.items, headers: { ...query, ...key("a") }, body: all })],
  ["POST ITEMS", "query of another key", read("other key All"), (w) => ({ path: w.items, headers: { ...query, ...key("b") }, body: all })],
  ["POST ITEMS", "query that demands a key", read(), (w) => ({ path: w.items, headers: crossing, body: { query: "SELECT * FROM c WHERE c.pk = 'a'" } })],
  ["POST ITEMS", "query of a range", read(), (w) => ({ path: w.items, headers: { ...query, "x-ms-documentdb-partitionkeyrangeid": "0" }, body: all })],
  ["POST ITEMS", "plain text", read(...keyRead), (w) => ({ path: w.items, headers: { "content-type": "application/sql", ...key("a") }, body: "SELECT * FROM c" })],
  ["POST ITEMS", "plan", read(...keyRead, "other key All"), (w) => ({ path: w.items, headers: { ...query, "x-ms-cosmos-is-query-plan-request": "True" }, body: all })],
  ["POST ITEMS", "batch", write("key All"), (w) => ({ path: w.items, headers: { ...batch, ...key("a") }, body: [{ operationType: "Upsert", resourceBody: { id: "2", pk: "a" } }] })],
  ["POST ITEMS", "batch of another key", write("other key All"), (w) => ({ path: w.items, headers: { ...batch, ...key("b") }, body: [{ operationType: "Read", id: "3" }] })],
  ["POST ITEMS", "batch that only reads", write("key All"), (w) => ({ path: w.items, headers: { ...batch, ...key("a") }, body: [{ operationType: "Read", id: "1" }] })],
  ["POST ITEMS", "batch that calls itself a query", write("key All"), (w) => ({ path: w.items, headers: { ...query, ...batch, ...key("a") }, body: [{ operationType: "Upsert", resourceBody: { id: "2", pk: "a" } }] })],
  ["POST ITEMS", "bulk", write(), (w) => ({ path: w.items, headers: { ...batch, "x-ms-cosmos-batch-atomic": "False", ...key("a") }, body: [{ operationType: "Read", id: "3", partitionKey: '["b"]' }] })],

  ["GET ITEM", "", read(...keyRead, ...itemRead), (w) => ({ path: `${w.items}/1`, headers: key("a") })],
  ["GET ITEM", "by rid", read(...keyRead, ...itemRead), (w) => ({ path: w.itemRid, byRid: true, headers: key("a") })],
  ["GET ITEM", "another of the key", read(...keyRead, "other item All"), (w) => ({ path: `${w.items}/2`, headers: key("a") })],
  ["GET ITEM", "of another key", read("other key All"), (w) => ({ path: `${w.items}/3`, headers: key("b") })],
  ["GET ITEM", "of the same name under another key", read("other key All"), (w) => ({ path: `${w.items}/1`, headers: key("b") })],
  ["GET ITEM", "that is not there", read(...keyRead), (w) => ({ path: `${w.items}/nothing`, headers: key("a") })],
  ["GET ITEM", "without its key", read(), (w) => ({ path: `${w.items}/1` })],
  ["GET ITEM", "made again under its name", read(...keyRead), (w) => ({ path: `${w.items}/again`, headers: key("a") })],
  ["PUT ITEM", "", write("key All", "item All"), (w) => ({ path: `${w.items}/1`, headers: key("a"), body: { id: "1", pk: "a", put: w.name() } })],
  ["PUT ITEM", "by rid", write("key All", "item All"), (w) => ({ path: w.itemRid, byRid: true, headers: key("a"), body: { id: "1", pk: "a", put: w.name() } })],
  ["PUT ITEM", "another", write("key All", "other item All"), (w) => ({ path: `${w.items}/2`, headers: key("a"), body: { id: "2", pk: "a" } })],
  ["PATCH ITEM", "", write("key All", "item All"), (w) => ({ path: `${w.items}/1`, headers: key("a"), body: [{ op: "set", path: "/patched", value: w.name() }] })],
  ["PATCH ITEM", "of another key", write("other key All"), (w) => ({ path: `${w.items}/3`, headers: key("b"), body: [{ op: "set", path: "/patched", value: 1 }] })],
  ["DELETE ITEM", "", write("key All", "item All"), (w) => w.freshItem()],
  ["DELETE ITEM", "of another key", write("other key All"), (w) => ({ path: `${w.items}/nothing`, headers: key("b") })],
  ["POST PARTITION_KEY_DELETE", "", write("key All"), (w) => w.freshKey("key Read", "key All")],
  ["POST PARTITION_KEY_DELETE", "of another key", write("other key All"), (w) => w.freshKey("other key All")],

  ["GET ATTACHMENTS", "", read(...keyRead, ...itemRead), (w) => ({ path: `${w.items}/1/attachments`, headers: key("a") })],
  ["GET ATTACHMENTS", "of another item", read(...keyRead, "other item All"), (w) => ({ path: `${w.items}/2/attachments`, headers: key("a") })],
  ["POST ATTACHMENTS", "create", write("key All", "item All"), (w) => ({ path: `${w.items}/1/attachments`, headers: key("a"), body: { id: w.name(), contentType: "text/plain", media: "http://x/" } })],
  ["POST ATTACHMENTS", "query", read(...keyRead, ...itemRead), (w) => ({ path: `${w.items}/1/attachments`, headers: { ...query, ...key("a") }, body: all })],
  ["GET ATTACHMENT", "", read(...keyRead, ...itemRead, "attachment Read", "attachment All"), (w) => ({ path: `${w.items}/1/attachments/att`, headers: key("a") })],
  ["GET ATTACHMENT", "another", read(...keyRead, ...itemRead), (w) => ({ path: `${w.items}/1/attachments/other`, headers: key("a") })],
  ["PUT ATTACHMENT", "", write("key All", "item All", "attachment All"), (w) => ({ path: `${w.items}/1/attachments/att`, headers: key("a"), body: { id: "att", contentType: "text/plain", media: "http://y/" } })],
  ["DELETE ATTACHMENT", "", write("key All", "item All"), (w) => ({ path: `${w.items}/1/attachments/nothing`, headers: key("a") })],
  ["GET CONFLICTS", "", read(), (w) => ({ path: `${w.container}/conflicts` })],
  ["POST CONFLICTS", "query", read(), (w) => ({ path: `${w.container}/conflicts`, headers: query, body: all })],
  ["GET CONFLICT", "", read(), (w) => ({ path: `${w.container}/conflicts/x` })],
  ["DELETE CONFLICT", "", write(), (w) => ({ path: `${w.container}/conflicts/x` })],

  ...[["sproc", "SPROC"], ["trigger", "TRIGGER"], ["udf", "UDF"]].flatMap(([word, kind]) => [
    [`GET ${kind}S`, "", read(), (w) => ({ path: `${w.container}/${word}s` })],
    [`POST ${kind}S`, "create", writers, (w) => ({ path: `${w.container}/${word}s`, body: w.script(w.name()) })],
    [`POST ${kind}S`, "query", read(), (w) => ({ path: `${w.container}/${word}s`, headers: query, body: all })],
    [`GET ${kind}`, "", read(`${word} Read`, `${word} All`), (w) => ({ path: `${w.container}/${word}s/s` })],
    [`GET ${kind}`, "another", read(), (w) => ({ path: `${w.container}/${word}s/other` })],
    [`PUT ${kind}`, "", writers, (w) => ({ path: `${w.container}/${word}s/s`, body: w.script("s") })],
    [`DELETE ${kind}`, "", writers, (w) => ({ path: `${w.container}/${word}s/nothing` })],
  ]),
  ["GET SPROC", "made again under its name", read(), (w) => ({ path: `${w.container}/sprocs/again` })],
  ["POST SPROC", "run one made again", write("key All"), (w) => ({ path: `${w.container}/sprocs/again`, headers: key("a"), body: [] })],
  ["POST SPROC", "run", write("key All", "sproc All"), (w) => ({ path: `${w.container}/sprocs/s`, headers: key("a"), body: [] })],
  ["POST SPROC", "run under another key", write("other key All", "sproc All"), (w) => ({ path: `${w.container}/sprocs/s`, headers: key("b"), body: [] })],
  ["POST SPROC", "run another", write("key All"), (w) => ({ path: `${w.container}/sprocs/other`, headers: key("a"), body: [] })],
  ["POST SPROC", "run, called a query", write("key All", "sproc All"), (w) => ({ path: `${w.container}/sprocs/s`, headers: { ...query, ...key("a") }, body: [] })],

  ["GET USERS", "", readers, (w) => ({ path: `${w.database}/users` })],
  ["POST USERS", "create", writers, (w) => ({ path: `${w.database}/users`, body: { id: w.name() } })],
  ["POST USERS", "query", readers, (w) => ({ path: `${w.database}/users`, headers: query, body: all })],
  ["GET USER", "", readers, (w) => ({ path: w.user })],
  ["PUT USER", "", writers, (w) => ({ path: w.user, body: { id: "u" } })],
  ["DELETE USER", "", writers, (w) => ({ path: `${w.database}/users/nobody` })],
  ["GET PERMISSIONS", "", writers, (w) => ({ path: `${w.user}/permissions` })],
  ["POST PERMISSIONS", "create", writers, (w) => ({ path: `${w.user}/permissions`, body: { id: w.name(), permissionMode: "All", resource: "dbs/d/colls/c", resourcePartitionKey: [w.name()] } })],
  ["POST PERMISSIONS", "query", writers, (w) => ({ path: `${w.user}/permissions`, headers: query, body: all })],
  ["GET PERMISSION", "", writers, (w) => ({ path: `${w.user}/permissions/${encodeURIComponent("spare")}` })],
  ["PUT PERMISSION", "", writers, (w) => ({ path: `${w.user}/permissions/spare`, body: { id: "spare", permissionMode: "All", resource: "dbs/d/colls/c", resourcePartitionKey: ["spare"] } })],
  ["DELETE PERMISSION", "", writers, (w) => ({ path: `${w.user}/permissions/nothing` })],

  ["GET CLIENT_ENCRYPTION_KEYS", "", readers, (w) => ({ path: `${w.database}/clientencryptionkeys` })],
  ["POST CLIENT_ENCRYPTION_KEYS", "create", writers, (w) => ({ path: `${w.database}/clientencryptionkeys`, body: { ...w.encryptionKey, id: w.name() } })],
  ["POST CLIENT_ENCRYPTION_KEYS", "query", readers, (w) => ({ path: `${w.database}/clientencryptionkeys`, headers: query, body: all })],
  ["GET CLIENT_ENCRYPTION_KEY", "", readers, (w) => ({ path: `${w.database}/clientencryptionkeys/k` })],
  ["PUT CLIENT_ENCRYPTION_KEY", "", writers, (w) => ({ path: `${w.database}/clientencryptionkeys/k`, body: w.encryptionKey })],

  ["GET OFFERS", "", readers, () => ({ path: "/offers" })],
  ["POST OFFERS", "query", readers, () => ({ path: "/offers", headers: query, body: all })],
  ["GET OFFER", "", readers, (w) => ({ path: `/offers/${w.offer._rid}` })],
  ["PUT OFFER", "", writers, (w) => ({ path: `/offers/${w.offer._rid}`, body: w.offer })],
].map(([operation, what, may, request]) => ({ operation, what, may: new Set(may), request }));

// ---- the resources that the rows use ----

class World {
  #names = 0;

  constructor(server) {
    this.server = server;
    this.rest = new Rest({ server, key: secrets[0] });
    Object.assign(this, { database: "/dbs/d", container: "/dbs/d/colls/c", items: "/dbs/d/colls/c/docs", user: "/dbs/d/users/u" });
  }

  name() {
    return `n${++this.#names}`;
  }
  script(id) {
    return { id, body: "function () { return 1; }", triggerType: "Pre", triggerOperation: "All" };
  }
  async make(path, body, headers) {
    const answer = await this.rest.post(path, body, { headers });
    assert.equal(answer.status, 201, `${path}: ${answer.text}`);
    return answer.json;
  }
  encryptionKey = { id: "k", encryptionAlgorithm: "x", wrappedDataEncryptionKey: "aGk=", keyWrapMetadata: { type: "t" } };
  async makeContainer(database, id) {
    return this.make(`/dbs/${database}/colls`, { id, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
  }
  async grant(id, permissionMode, resource, resourcePartitionKey, { user = this.user, headers } = {}) {
    return (await this.make(`${user}/permissions`, { id, permissionMode, resource, resourcePartitionKey }, headers))._token;
  }

  async fill() {
    const ghosts = await this.#makeGhosts();
    await this.#makeThings();
    this.tokens = { ...ghosts, ...(await this.#makeTokens()) };
    this.tokens["permission deleted"] = await this.grant("deleted", "All", "dbs/d/colls/c", ["deleted"]);
    assert.equal((await this.rest.delete(`${this.user}/permissions/deleted`)).status, 204);
    this.tokens["permission changed"] = await this.grant("changed", "All", "dbs/d/colls/c", ["changed"]);
    await this.rest.put(`${this.user}/permissions/changed`, { id: "changed", permissionMode: "All", resource: "dbs/d/colls/c", resourcePartitionKey: ["changed"] });
    await this.make(this.items, { id: "again", pk: "a" }, key("a"));
    this.tokens["item recreated"] = await this.grant("again", "All", "dbs/d/colls/c/docs/again", ["a"]);
    assert.equal((await this.rest.delete(`${this.items}/again`, { headers: key("a") })).status, 204);
    await this.make(this.items, { id: "again", pk: "a" }, key("a"));
    await this.make(`${this.container}/sprocs`, this.script("again"));
    this.tokens["script recreated"] = await this.grant("script again", "All", "dbs/d/colls/c/sprocs/again");
    assert.equal((await this.rest.delete(`${this.container}/sprocs/again`)).status, 204);
    await this.make(`${this.container}/sprocs`, this.script("again"));
    await this.make("/dbs/d/users", { id: "gone" });
    this.tokens["user deleted"] = await this.grant("p", "All", "dbs/d/colls/c", undefined, { user: "/dbs/d/users/gone" });
    assert.equal((await this.rest.delete("/dbs/d/users/gone")).status, 204);
    this.tokens.expired = await this.grant("expired", "All", "dbs/d/colls/c", ["a"], { headers: { "x-ms-documentdb-expiry-seconds": "1" } });
  }

  // Tokens for a database and a container that are then deleted and created again with the same names.
  async #makeGhosts() {
    const tokens = {};
    await this.make("/dbs", { id: "d" });
    await this.makeContainer("d", "c");
    await this.make("/dbs/d/users", { id: "u" });
    tokens["database recreated"] = await this.grant("p", "All", "dbs/d/colls/c");
    assert.equal((await this.rest.delete("/dbs/d")).status, 204);
    await this.make("/dbs", { id: "d" });
    await this.makeContainer("d", "c");
    await this.make("/dbs/d/users", { id: "u" });
    tokens["container recreated"] = await this.grant("p", "All", "dbs/d/colls/c");
    assert.equal((await this.rest.delete("/dbs/d/colls/c")).status, 204);
    return tokens;
  }

  async #makeThings() {
    const made = await this.makeContainer("d", "c");
    this.containerRid = `/${made._self.replace(/\/$/, "")}`;
    for (const [id, pk] of [["1", "a"], ["2", "a"], ["3", "b"], ["1", "b"]]) {
      const item = await this.make(this.items, { id, pk }, key(pk));
      if (pk === "a" && id === "1") this.itemRid = `/${item._self.replace(/\/$/, "")}`;
    }
    for (const word of ["sprocs", "triggers", "udfs"]) for (const id of ["s", "other"]) await this.make(`${this.container}/${word}`, this.script(id));
    for (const id of ["att", "other"]) await this.make(`${this.items}/1/attachments`, { id, contentType: "text/plain", media: "http://x/" }, key("a"));
    await this.makeContainer("d", "o");
    await this.make("/dbs/d/clientencryptionkeys", this.encryptionKey);
    await this.make("/dbs", { id: "e" });
    await this.makeContainer("e", "c");
    await this.make("/dbs/e/users", { id: "u" });
    const { _rid } = made;
    this.offer = (await this.rest.get("/offers")).json.Offers.find((offer) => offer.offerResourceId === _rid);
  }

  async #makeTokens() {
    const link = "dbs/d/colls/c";
    const tokens = {};
    await this.grant("spare", "Read", link, ["spare"]);
    for (const mode of ["Read", "All"]) {
      const user = `/dbs/d/users/${mode}`;
      await this.make("/dbs/d/users", { id: mode });
      tokens[`container ${mode}`] = await this.grant("container", mode, link, undefined, { user });
      tokens[`key ${mode}`] = await this.grant("key", mode, link, ["a"], { user });
      tokens[`item ${mode}`] = await this.grant("item", mode, `${link}/docs/1`, ["a"], { user });
      tokens[`attachment ${mode}`] = await this.grant("attachment", mode, `${link}/docs/1/attachments/att`, ["a"], { user });
      for (const word of ["sproc", "trigger", "udf"]) tokens[`${word} ${mode}`] = await this.grant(word, mode, `${link}/${word}s/s`, undefined, { user });
    }
    tokens["other key All"] = await this.grant("other key", "All", link, ["b"]);
    tokens["other item All"] = await this.grant("other item", "All", `${link}/docs/2`, ["a"]);
    tokens["other container All"] = await this.grant("other container", "All", "dbs/d/colls/o");
    tokens["other database All"] = await this.grant("other database", "All", "dbs/e/colls/c", undefined, { user: "/dbs/e/users/u" });
    return tokens;
  }

  async freshDatabase() {
    return `/dbs/${(await this.make("/dbs", { id: this.name() })).id}`;
  }
  async freshContainer() {
    return `/dbs/d/colls/${(await this.makeContainer("d", this.name())).id}`;
  }

  // A new item with partition key "a" that may be deleted, with its own tokens.
  async freshItem() {
    const { id } = await this.make(this.items, { id: this.name(), pk: "a" }, key("a"));
    const token = (mode) => this.grant(`${id} ${mode}`, mode, `dbs/d/colls/c/docs/${id}`, ["a"], { user: `/dbs/d/users/${mode}` });
    return { path: `${this.items}/${id}`, headers: key("a"), tokens: { "item Read": await token("Read"), "item All": await token("All") } };
  }

  // A partition key whose items may be deleted, with tokens of its own under these names.
  async freshKey(...credentials) {
    const pk = this.name();
    const tokens = {};
    await this.make(this.items, { id: pk, pk }, key(pk));
    for (const credential of credentials) {
      const mode = credential.split(" ").at(-1);
      tokens[credential] = await this.grant(`${pk} ${mode}`, mode, "dbs/d/colls/c", [pk], { user: `/dbs/d/users/${mode}` });
    }
    return { path: `${this.container}/operations/partitionkeydelete`, headers: key(pk), tokens };
  }

  // All resources with their etags.
  async state() {
    const feeds = ["/dbs", "/dbs/d/colls", "/dbs/e/colls", this.items, "/dbs/d/users", "/dbs/d/clientencryptionkeys", "/offers", `${this.items}/1/attachments`, ...["sprocs", "triggers", "udfs"].map((word) => `${this.container}/${word}`)];
    const state = {};
    for (const path of feeds) {
      const answer = await this.rest.get(path, { headers: path.includes("attachments") ? key("a") : {} });
      assert.equal(answer.status, 200, answer.text);
      state[path] = Object.values(answer.json).find(Array.isArray).map(({ id, _etag }) => `${id} ${_etag}`);
    }
    return state;
  }

  // The response status of this request with this credential.
  async ask(operation, request, credential) {
    const [verb] = operation.split(" ");
    const { path, headers = {}, body, byRid } = request;
    const date = new Date().toUTCString();
    const shown = this.authorization(credential, verb, request, date);
    const answer = await this.rest.send(verb, path, { headers: { ...headers, ...(shown === undefined ? {} : { authorization: shown }) }, body, date, byRid, sign: false });
    return answer;
  }

  authorization(credential, verb, { path, byRid, signs, tokens = {} }, date) {
    const by = (secret) => sign(secret, verb, ...(signs ?? Object.values(signed(path, byRid))), date);
    const at = readers.indexOf(credential);
    if (at >= 0) return by(secrets[at]);
    const token = tokens[credential] ?? this.tokens[credential];
    if (token) return encodeURIComponent(token);
    switch (credential) {
      case "none":
        return undefined;
      case "garbage":
        return "let me in";
      case "empty token":
        return encodeURIComponent("type=resource&ver=1&sig=");
      case "another key":
        return by(createHmac("sha512", "x").digest("base64"));
      case "token of another key":
        return encodeURIComponent(forged(this.tokens["container All"]));
      default:
        throw new Error(`what is ${credential}?`);
    }
  }
}

// ---- tampering ----

const parts = (token) => {
  const [, mac, payload] = /^type=resource&ver=1&sig=(.*);(.*);$/.exec(token);
  return { mac: Buffer.from(mac, "base64"), payload: Buffer.from(payload, "base64") };
};
const whole = ({ mac, payload }) => `type=resource&ver=1&sig=${mac.toString("base64")};${payload.toString("base64")};`;

// The token signed with another key, otherwise correct.
function forged(token) {
  const { payload } = parts(token);
  return whole({ mac: createHmac("sha256", "another").update(payload).digest(), payload });
}

// The layout of a token: see src/access/token.h.
const regions = { mac: ["mac", 0, 32], format: ["payload", 0, 1], database: ["payload", 1, 5], user: ["payload", 5, 9], permission: ["payload", 9, 17], version: ["payload", 17, 25], from: ["payload", 25, 33], until: ["payload", 33, 41], random: ["payload", 41, 49] };

function* tampered(token) {
  for (const [region, [part, from, to]] of Object.entries(regions)) {
    for (let at = from; at < to; at++) {
      for (const mask of [0x01, 0x80]) {
        const changed = parts(token);
        changed[part][at] ^= mask;
        yield [`${region}, byte ${at} ^ ${mask}`, whole(changed)];
      }
    }
  }
  const { payload } = parts(token);
  yield ["nothing signed", `type=resource&ver=1&sig=;${payload.toString("base64")};`];
  yield ["one more byte", whole({ ...parts(token), payload: Buffer.concat([payload, Buffer.from([0])]) })];
  yield ["one byte less", whole({ ...parts(token), payload: payload.subarray(0, -1) })];
  yield ["type master", token.replace("resource", "master")];
  yield ["another version", token.replace("ver=1", "ver=2")];
  yield ["twice", `${token}${token}`];
  yield ["a blank inside", token.replace(";", "; ")];
}

// ---- the tests ----

describe("who may do what", () => {
  let world;
  before(async () => {
    const [primary, secondary, reader, second] = secrets;
    const flags = ["--key", primary, "--secondary-key", secondary, "--read-only-key", reader, "--secondary-read-only-key", second, "--token-seconds-min", "1"];
    world = new World(await Server.start({ flags }));
    await world.fill();
    await sleep(2000);
  });
  after(async () => {
    world?.rest.close();
    await world?.server.stop();
  });

  it("is said here of every operation", () => {
    assert.ok(served.length > 40 && forTokens.length > 20 && kinds.length > 20, "the tables were found in the source");
    const said = new Set(rows.map(({ operation }) => operation));
    const unsaid = [...served, ...forTokens].filter((operation) => !said.has(operation));
    assert.deepEqual(unsaid, [], "operations without a row");
    const known = new Set([...writers, ...readers, ...inside, ...outside]);
    for (const { may } of rows) for (const who of may) assert.ok(known.has(who), who);
    for (const name of [...inside, ...outside, ...ended]) assert.ok(world.tokens[name], `a token for ${name}`);
  });

  const isServed = ({ operation }) => served.includes(operation);

  it("those who may not are refused, and change nothing", async () => {
    const wrong = [];
    const requests = [];
    for (const row of rows.filter(isServed)) requests.push([row, await row.request(world)]);
    const earlier = await world.state();
    for (const [{ operation, what, may }, request] of requests) {
      for (const credential of [...readers, ...inside, ...outside, ...ended, ...fakes]) {
        if (may.has(credential)) continue;
        const { status, text } = await world.ask(operation, request, credential);
        const expected = fakes.includes(credential) ? 401 : 403;
        if (status !== expected) wrong.push(`${operation} ${what}: ${credential}: ${status} ${text.slice(0, 120)}`);
      }
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(await world.state(), earlier);
  });

  it("those who may are not refused", async () => {
    const wrong = [];
    for (const { operation, what, may, request } of rows.filter(isServed)) {
      for (const credential of may) {
        const { status, text } = await world.ask(operation, await request(world, credential), credential);
        if (status === 401 || status === 403 || (status >= 500 && status !== 501)) wrong.push(`${operation} ${what}: ${credential}: ${status} ${text.slice(0, 200)}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  it("what nobody serves is not served to anyone", async () => {
    const paths = { ACCOUNT: "/", ADDRESSES: "//addresses/?$resolveFor=dbs", DATABASES: "/dbs", DATABASE: "/dbs/d", CONTAINERS: "/dbs/d/colls", CONTAINER: world.container, ITEMS: world.items, ITEM: `${world.items}/1`, OFFERS: "/offers", OFFER: `/offers/${world.offer._rid}` };
    Object.assign(paths, { USERS: "/dbs/d/users", USER: world.user, PERMISSIONS: `${world.user}/permissions`, PERMISSION: `${world.user}/permissions/spare`, ATTACHMENTS: `${world.items}/1/attachments`, ATTACHMENT: `${world.items}/1/attachments/att` });
    Object.assign(paths, { CLIENT_ENCRYPTION_KEYS: "/dbs/d/clientencryptionkeys", CLIENT_ENCRYPTION_KEY: "/dbs/d/clientencryptionkeys/k", PARTITION_KEY_DELETE: `${world.container}/operations/partitionkeydelete` });
    for (const [word, kind] of [["sprocs", "SPROC"], ["triggers", "TRIGGER"], ["udfs", "UDF"], ["pkranges", "PKRANGE"], ["conflicts", "CONFLICT"]]) {
      Object.assign(paths, { [`${kind}S`]: `${world.container}/${word}`, [kind]: `${world.container}/${word}/s` });
    }
    assert.deepEqual(kinds.filter((kind) => !paths[kind]), [], "kinds of paths without one here");
    const earlier = await world.state();
    for (const kind of kinds) {
      for (const verb of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        if (served.includes(`${verb} ${kind}`)) continue;
        for (const credential of ["primary", "container All", "none", "expired"]) {
          const { status } = await world.ask(`${verb} ${kind}`, { path: paths[kind], signs: kind === "ADDRESSES" ? ["dbs", ""] : undefined, headers: key("a"), body: verb === "GET" ? undefined : {} }, credential);
          const expected = credential === "none" ? [401] : credential === "expired" ? [403] : [405];
          assert.ok(expected.includes(status), `${verb} ${kind}: ${credential}: ${status}`);
        }
      }
    }
    assert.deepEqual(await world.state(), earlier);
  });

  it("no token can be changed, in any byte", async () => {
    for (const name of ["container All", "key All", "expired"]) {
      for (const [how, token] of tampered(world.tokens[name])) {
        const answer = await world.rest.get(world.container, { headers: { authorization: encodeURIComponent(token) }, sign: false });
        assert.equal(answer.status, 401, `${name}: ${how}: ${answer.text}`);
        assert.equal(answer.headers["x-ms-session-token"], undefined);
      }
    }
  });

  it("the parts of two good tokens make no third", async () => {
    const [one, two] = ["container Read", "container All"].map((name) => parts(world.tokens[name]));
    for (const mixed of [{ mac: one.mac, payload: two.payload }, { mac: two.mac, payload: one.payload }]) {
      const answer = await world.rest.get(world.container, { headers: { authorization: encodeURIComponent(whole(mixed)) }, sign: false });
      assert.equal(answer.status, 401);
    }
  });

  it("nothing beside the API takes tokens", async () => {
    for (const path of ["/_tesela/containers", "/_tesela/ranges", "/_tesela/keys", "/_tesela/events", "/_tesela/faults", "/metrics"]) {
      for (const credential of ["container All", "key All"]) {
        for (const authorization of [world.tokens[credential], encodeURIComponent(world.tokens[credential]), `Bearer ${world.tokens[credential]}`]) {
          const answer = await world.rest.get(path, { headers: { authorization }, sign: false });
          assert.equal(answer.status, 401, `${path}: ${answer.text.slice(0, 200)}`);
        }
      }
    }
  });

  it("what a partition key's token is answered is of that key", async () => {
    const ask = async (verb, headers, body) => {
      const answer = await world.rest.send(verb, world.items, { headers: { ...key("a"), ...headers, authorization: encodeURIComponent(world.tokens["key Read"]) }, body, sign: false });
      assert.ok([200, 304, 400].includes(answer.status), answer.text);
      return answer.status === 200 ? answer.json.Documents : [];
    };
    const lists = [
      await ask("GET", {}),
      await ask("GET", { "x-ms-documentdb-partitionkeyrangeid": "0" }),
      await ask("GET", { "x-ms-start-epk": "", "x-ms-end-epk": "FF" }),
      await ask("GET", feed),
      await ask("GET", { ...feed, "x-ms-documentdb-partitionkeyrangeid": "0" }),
      await ask("GET", { ...feed, "x-ms-start-epk": "", "x-ms-end-epk": "FF" }),
      await ask("POST", query, all),
      await ask("POST", { ...query, "x-ms-documentdb-partitionkeyrangeid": "0" }, all),
      await ask("POST", crossing, { query: "SELECT * FROM c WHERE c.pk = 'b'" }),
      await ask("POST", crossing, { query: "SELECT * FROM c WHERE (c.id = '1' AND c.pk = 'a') OR (c.id = '3' AND c.pk = 'b')" }),
    ];
    for (const list of lists) for (const item of list) assert.equal(item.pk, "a");
    assert.ok(lists[0].length >= 2 && lists[6].length >= 2 && lists[9].length === 1, "and it is answered");
    assert.equal(lists[8].length, 0);
  });
});
