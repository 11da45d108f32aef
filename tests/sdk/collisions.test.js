// Partition key values with equal hashes (collide.js): the hash decides where items are stored, but never to which key they belong.

import { assert, documentNumber, eventually, suite } from "./harness.js";
import { collide, epkOf } from "./collide.js";

// Header fields are ASCII.
const ascii = (value) => JSON.stringify(value).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const keyed = (...components) => ({ "x-ms-documentdb-partitionkey": ascii(components) });
const queries = { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True" };
const latest = { "a-im": "Incremental feed" };
const versions = { "a-im": "Full-Fidelity Feed" };

const victim = "contoso";
const attacker = collide(victim);

const ids = (answer) => answer.json.Documents.map((item) => item.id).sort();

suite("keys that hash alike", (t) => {
  // ---- shared by both kinds of keys ----

  // A bare client with the token of one permission.
  async function bearer(body) {
    const { user } = await t.database.users.create({ id: t.name("u") });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "All", ...body });
    const send = (verb, path, headers, content) =>
      t.rest.send(verb, path, { headers: { ...headers, authorization: encodeURIComponent(resource._token) }, body: content });
    return {
      get: (path, headers) => send("GET", path, headers),
      query: (path, headers, query, parameters = []) => send("POST", path, { ...queries, ...headers }, { query, parameters }),
      post: (path, headers, content) => send("POST", path, headers, content),
    };
  }

  async function rows(who, path, headers, query) {
    const answer = await who.query(path, headers, query);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers["x-ms-continuation"], undefined, "one page");
    return answer.json.Documents;
  }

  // Runs a query that loads no items, one that finds items by the index, one in index order, and one that scans.
  async function checkQueries(who, path, headers, { own, filler = 0 }) {
    const n = own.length + filler;
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE COUNT(1) FROM c"), [n]);
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'account'"), [own.length]);
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE MAX(c.balance) FROM c"), [own.length]);
    const groups = await rows(who, path, headers, "SELECT c.kind, COUNT(1) AS n FROM c WHERE c.kind = 'account' GROUP BY c.kind");
    assert.deepEqual(groups, [{ kind: "account", n: own.length }]);
    assert.deepEqual(await rows(who, path, headers, "SELECT DISTINCT VALUE c.owner FROM c WHERE c.kind = 'account'"), ["own"]);
    const found = await rows(who, path, headers, "SELECT VALUE c.id FROM c WHERE c.kind = 'account'");
    assert.deepEqual(found.sort(), own);
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE c.id FROM c WHERE c.kind = 'account' ORDER BY c.balance"), own);
    assert.deepEqual((await rows(who, path, headers, "SELECT TOP 2 VALUE c.id FROM c ORDER BY c.balance DESC")).sort(), own.slice(-2));
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE c.id FROM c WHERE c.owner = 'another'"), []);
    assert.deepEqual(await rows(who, path, headers, "SELECT VALUE c.id FROM c WHERE CONTAINS(c.owner, 'anoth')"), []);
  }

  t.it("are easily made", () => {
    assert.notEqual(attacker, victim);
    assert.equal(epkOf(attacker), epkOf(victim));
  });

  // ---- a prefix of a hierarchical key ----

  const own = ["1", "2", "3"];
  const theirs = ["1", "4", "5", "6", "7"];

  async function tenants() {
    const path = await t.containerPath({
      partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 },
      changeFeedPolicy: { retentionDuration: 5 },
    });
    const docs = `${path}/docs`;
    const begun = await t.rest.get(docs, { headers: { ...versions, "if-none-match": "*", "x-ms-documentdb-partitionkeyrangeid": "0" } });
    assert.equal(begun.status, 304, begun.text);
    for (const id of theirs) await put(docs, [victim, `u${id}`], { id, balance: 100, kind: "account", owner: "another" });
    for (const id of own) await put(docs, [attacker, `u${id}`], { id, balance: Number(id), kind: "account", owner: "own" });
    const who = await bearer({ resource: path.slice(1), resourcePartitionKey: [attacker] });
    return { path, docs, who, from: begun.headers.etag };
  }

  async function put(docs, [tenant, user], item) {
    const answer = await t.rest.post(docs, { ...item, tenant, user }, { headers: keyed(tenant, user) });
    assert.equal(answer.status, 201, answer.text);
  }

  // Headers that a request may have in addition to a prefix.
  const beside = {
    "the prefix alone": {},
    "the range too": { "x-ms-documentdb-partitionkeyrangeid": "0" },
    "hashes too": { "x-ms-start-epk": epkOf(victim), "x-ms-end-epk": `${epkOf(victim)}FF` },
  };

  for (const [what, more] of Object.entries(beside)) {
    t.it(`a prefix's items are its own: ${what}`, async () => {
      const { docs, who } = await tenants();
      const headers = { ...keyed(attacker), ...more };
      assert.deepEqual(ids(await who.get(docs, headers)), own);
      await checkQueries(who, docs, headers, { own });
    });
  }

  t.it("a prefix's items are its own after splits", async () => {
    const { docs, path, who } = await tenants();
    const of = { database: t.database.id, container: path.split("/").pop() };
    for (let i = 0; i < 6; i++) await put(docs, [`other ${i}`, "u"], { id: `${i}` }); // so that the range can be split
    for (let i = 0; i < 2; i++) {
      const { json } = await t.rest.get(`${path}/pkranges`);
      const range = json.PartitionKeyRanges.find(({ minInclusive, maxExclusive }) => minInclusive <= epkOf(victim) && epkOf(victim) < maxExclusive);
      const split = await t.rest.post("/_tesela/split", { ...of, range: range.id }, { sign: false });
      assert.equal(split.status, 200, split.text);
      assert.deepEqual(ids(await who.get(docs, keyed(attacker))), own);
      await checkQueries(who, docs, keyed(attacker), { own });
    }
  });

  t.it("a prefix's items are its own to the SDK", async () => {
    const { path } = await tenants();
    const { items } = t.database.container(path.split("/").pop());
    const scope = { partitionKey: [attacker] };
    const found = await items.query("SELECT VALUE c.owner FROM c", scope).fetchAll();
    assert.deepEqual(found.resources, ["own", "own", "own"]);
    assert.deepEqual((await items.query("SELECT VALUE COUNT(1) FROM c", scope).fetchAll()).resources, [own.length]);
    const all = await items.readAll(scope).fetchAll();
    assert.deepEqual(all.resources.map((item) => item.id).sort(), own);
  });

  t.it("a prefix's changes are its own", async () => {
    const { docs, who, from } = await tenants();
    const changes = await who.get(docs, { ...latest, ...keyed(attacker) });
    assert.deepEqual(ids(changes), own);
    const all = await who.get(docs, { ...versions, ...keyed(attacker), "if-none-match": from });
    assert.equal(all.status, 200, all.text);
    assert.deepEqual(all.json.Documents.map((version) => version.current.id).sort(), own);
  });

  t.it("a prefix's token reads no items that a query names one by one", async () => {
    const { docs, who } = await tenants();
    const named = (tenant, id) => `(c.id = '${id}' AND c.tenant = ${ascii(tenant)} AND c.user = 'u${id}')`;
    const text = `SELECT * FROM c WHERE ${named(attacker, "1")} OR ${named(victim, "1")} OR ${named(victim, "4")}`;
    const found = await rows(who, docs, keyed(attacker), text);
    assert.deepEqual(found.map((item) => [item.tenant, item.id]), [[attacker, "1"]]);
  });

  t.it("a prefix's token reads, writes and runs nothing of the other tenant's", async () => {
    const { docs, path, who } = await tenants();
    const item = (id) => `${docs}/${id}`;
    assert.equal((await who.get(item("1"), keyed(attacker, "u1"))).json.owner, "own");
    assert.equal((await who.get(item("4"), keyed(attacker, "u4"))).status, 404);
    assert.equal((await who.get(item("4"), keyed(victim, "u4"))).status, 403);
    assert.equal((await who.get(docs, keyed(victim))).status, 403);
    const body = { id: "new", tenant: victim, user: "u4" };
    assert.equal((await who.post(docs, keyed(attacker, "u4"), body)).status, 400);
    await t.rest.post(`${path}/sprocs`, { id: "p", body: "function () { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.owner FROM c', (e, r) => { __.response.setBody(r) }) }" });
    const run = await who.post(`${path}/sprocs/p`, keyed(attacker, "u1"), []);
    assert.deepEqual(run.json, ["own"]);
  });

  // ---- a whole key ----

  // More than 128 items in each partition, so that both have their own index entries; `filler` items lack the queried properties.
  async function partitions(definition = {}) {
    const path = await t.containerPath({ partitionKey: { paths: ["/pk"], version: 2 }, ...definition });
    const docs = `${path}/docs`;
    await fill(docs, victim, theirs, "another");
    await fill(docs, attacker, own, "own");
    return { path, docs };
  }

  const filler = 140;
  async function fill(docs, pk, list, owner) {
    const items = list.map((id) => ({ id, pk, name: id, kind: "account", owner, balance: owner === "own" ? Number(id) : 100 }));
    for (let i = 0; i < filler; i++) items.push({ id: `f${i}`, pk, name: `f${i}` });
    const headers = { ...keyed(pk), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    for (let i = 0; i < items.length; i += 100) {
      const batch = items.slice(i, i + 100).map((resourceBody) => ({ operationType: "Create", resourceBody }));
      const answer = await t.rest.post(docs, batch, { headers });
      assert.equal(answer.status, 200, answer.text);
    }
  }

  t.it("a key's items and changes are its own", async () => {
    const { docs, path } = await partitions();
    const resource = path.slice(1);
    const who = await bearer({ resource, resourcePartitionKey: [attacker] });
    const headers = { ...keyed(attacker), "x-ms-max-item-count": "1000" };
    assert.equal(ids(await who.get(docs, headers)).length, own.length + filler);
    await checkQueries(who, docs, headers, { own, filler });
    assert.equal(ids(await who.get(docs, { ...headers, ...latest })).length, own.length + filler);
    const one = await t.rest.get(`${docs}/1`, { headers: keyed(victim) });
    assert.equal(one.json.owner, "another");
  });

  t.it("both keys are found where a query demands either", async () => {
    const { docs } = await partitions();
    const text = `SELECT VALUE c.owner FROM c WHERE c.kind = 'account' AND c.pk IN (${ascii(victim)}, ${ascii(attacker)})`;
    const { resources } = await t.database.container(docs.split("/").at(-2)).items.query(text).fetchAll();
    assert.equal(resources.filter((owner) => owner === "own").length, own.length);
    assert.equal(resources.filter((owner) => owner === "another").length, theirs.length);
    const bare = await t.rest.post(docs, { query: text, parameters: [] }, { headers: queries });
    assert.equal(bare.status, 200, bare.text);
    assert.equal(bare.json.Documents.length, own.length + theirs.length);
  });

  t.it("a rid leads to an item of the key that is named, and to no other's", async () => {
    const { docs, path } = await partitions();
    const { json: hers } = await t.rest.get(`${docs}/1`, { headers: keyed(victim) });
    const byRid = `/${hers._self.replace(/\/$/, "")}`;
    const asked = await t.rest.get(byRid, { headers: keyed(attacker), byRid: true });
    assert.equal(asked.status, 404, asked.text);
    assert.equal((await t.rest.get(byRid, { headers: keyed(victim), byRid: true })).json.owner, "another");
    // The permission names no partition key: only the number identifies its item.
    const who = await bearer({ resource: hers._self });
    assert.equal((await who.get(byRid, keyed(victim))).json.owner, "another");
    assert.equal((await who.get(byRid, keyed(attacker))).status, 403);
    await t.rest.post(`${path}/sprocs`, { id: "p", body: "function (link) { if (!__.readDocument(link, (e, d) => { __.response.setBody(e ? e.number : d.owner) })) throw new Error('late') }" });
    const run = (pk) => t.rest.post(`${path}/sprocs/p`, [hers._self], { headers: keyed(pk) });
    assert.equal((await run(victim)).json, "another");
    assert.equal((await run(attacker)).json, 404);
  });

  t.it("unique keys, deletes and attachments are a key's own", async () => {
    const { docs } = await partitions({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/name"] }] } });
    for (const pk of [victim, attacker]) {
      const made = await t.rest.post(docs, { id: "u", pk, name: "same" }, { headers: keyed(pk) });
      assert.equal(made.status, 201, made.text);
    }
    const media = { id: "a", contentType: "text/plain", media: "www.example.com" };
    assert.equal((await t.rest.post(`${docs}/u/attachments`, media, { headers: keyed(victim) })).status, 201);
    assert.deepEqual((await t.rest.get(`${docs}/u/attachments`, { headers: keyed(attacker) })).json.Attachments, []);
    assert.equal((await t.rest.delete(`${docs}/u`, { headers: keyed(attacker) })).status, 204);
    assert.equal((await t.rest.get(`${docs}/u/attachments/a`, { headers: keyed(victim) })).json.media, media.media);
    assert.equal((await t.rest.get(`${docs}/u`, { headers: keyed(victim) })).json.name, "same");
  });

  t.it("items of one key expire by themselves", async () => {
    const docs = await t.containerPath({ partitionKey: { paths: ["/pk"], version: 2 }, defaultTtl: -1 }).then((path) => `${path}/docs`);
    for (const [pk, ttl] of [[victim, -1], [attacker, 1]]) {
      await t.rest.post(docs, { id: "1", pk, ttl, owner: pk }, { headers: keyed(pk) });
    }
    const count = async (pk) => (await t.rest.post(docs, { query: "SELECT VALUE COUNT(1) FROM c", parameters: [] }, { headers: { ...queries, ...keyed(pk) } })).json.Documents[0];
    await eventually("the one is gone", async () => (await count(attacker)) === 0);
    assert.equal(await count(victim), 1);
    assert.equal((await t.rest.get(`${docs}/1`, { headers: keyed(victim) })).json.owner, victim);
  });

  // ---- V1 ----

  t.it("V1 keys that begin with the same hundred characters are apart", async () => {
    const long = "x".repeat(100);
    const docs = await t.containerPath({ partitionKey: { paths: ["/pk"], version: 1 } }).then((path) => `${path}/docs`);
    await fill(docs, `${long}victim`, theirs, "another");
    await fill(docs, `${long}attacker`, own, "own");
    const who = await bearer({ resource: docs.slice(1, -5), resourcePartitionKey: [`${long}attacker`] });
    const headers = { ...keyed(`${long}attacker`), "x-ms-max-item-count": "1000" };
    assert.equal(ids(await who.get(docs, headers)).length, own.length + filler);
    assert.equal(ids(await who.get(docs, { ...headers, ...latest })).length, own.length + filler);
    await checkQueries(who, docs, headers, { own, filler });
  });

  // ---- isolation of keys without collisions ----

  // A continuation names the item of the last row by number, and a client may forge it. It must not learn whether that item matches WHERE.
  t.it("a continuation that names another key's item tells nothing of it", async () => {
    const { docs, path } = await partitions();
    const who = await bearer({ resource: path.slice(1), resourcePartitionKey: ["third"] });
    for (const id of ["1", "2", "3"]) {
      await t.rest.post(docs, { id, pk: "third" }, { headers: keyed("third") });
    }
    const { json: hers } = await t.rest.get(`${docs}/1`, { headers: keyed(victim) });
    const ask = async (guess) => {
      const text = `SELECT VALUE c.id FROM c WHERE c.pk = 'third' OR c.owner = '${guess}' ORDER BY c.nothing`;
      const answer = await who.query(docs, { ...keyed("third"), "x-ms-continuation": position(documentNumber(hers._rid)) }, text);
      return [answer.status, answer.json.Documents];
    };
    assert.deepEqual(await ask("another"), await ask("wrong"));
  });

  t.it("statistics and sizes of a container are for those who may read all of it", async () => {
    const { docs, path } = await partitions();
    const wanted = { "x-ms-documentdb-populatepartitionstatistics": "True", "x-ms-documentdb-populatequotainfo": "True" };
    const all = await t.rest.get(path, { headers: wanted });
    assert.ok(all.json.statistics[0].documentCount > 0);
    assert.match(all.headers["x-ms-resource-usage"], /documentsCount=/);
    const whole = await bearer({ resource: path.slice(1) });
    assert.ok((await whole.get(path, wanted)).json.statistics);
    const part = await bearer({ resource: path.slice(1), resourcePartitionKey: [attacker] });
    const seen = await part.get(path, wanted);
    assert.equal(seen.status, 200, seen.text);
    assert.equal(seen.json.statistics, undefined);
    assert.equal(seen.headers["x-ms-resource-usage"], undefined);
    const made = await part.post(docs, keyed(attacker), { id: "new", pk: attacker });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.headers["x-ms-resource-usage"], undefined);
  });
});

// A forged ORDER BY position: after a row of item `number` with one order value, which is marked as cut and undefined, with checksum 0.
function position(number) {
  const long = (value) => [0x12, int64(value)];
  const values = document([["0", [0x02, Buffer.from([1, 0, 0, 0, 0])]]]);
  const members = { i: long(0n), s: long(0n), g: long(0n), p: long(1n), n: long(number), r: long(0n), c: long(1n), h: long(0n), o: [0x04, values] };
  return `QPS:${document(Object.entries(members)).toString("base64")};`;
}

function int64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}

// A BSON document of members, each given as type and bytes.
function document(members) {
  const parts = members.map(([name, [type, bytes]]) => Buffer.concat([Buffer.from([type]), Buffer.from(`${name}\0`), bytes]));
  const body = Buffer.concat([...parts, Buffer.from([0])]);
  const size = Buffer.alloc(4);
  size.writeInt32LE(body.length + 4);
  return Buffer.concat([size, body]);
}
