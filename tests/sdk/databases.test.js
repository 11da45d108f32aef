// Databases: create, read, list, query, delete; by name and by _rid; names.

import { assert, suite, fails, refused, checkStamp, ridBytes, etagForm } from "./harness.js";

const already = "Resource with specified id, name, or unique index already exists.";
const notFound = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found";

suite("databases", (t) => {
  t.it("are created with the service's properties", async () => {
    const id = t.name();
    const { resource, statusCode, headers, requestCharge } = await t.client.databases.create({ id });
    assert.equal(statusCode, 201);
    assert.deepEqual(Object.keys(resource).sort(), ["_colls", "_etag", "_rid", "_self", "_ts", "_users", "id"]);
    assert.equal(resource.id, id);
    assert.equal(resource._colls, "colls/");
    assert.equal(resource._users, "users/");
    assert.equal(resource._rid.length, 8);
    assert.equal(ridBytes(resource._rid).length, 4);
    assert.equal(resource._self, `dbs/${resource._rid}/`);
    checkStamp(resource);
    assert.equal(headers.etag, resource._etag);
    assert.equal(requestCharge, 1);
  });

  t.it("have an id once", async () => {
    await fails(t.client.databases.create({ id: t.database.id }), 409, { text: already });
    const { resource, statusCode } = await t.client.databases.createIfNotExists({ id: t.database.id });
    assert.equal(statusCode, 200);
    assert.equal(resource.id, t.database.id);
  });

  t.it("are read by name and by _rid", async () => {
    const { resource } = await t.database.read();
    const byName = await t.rest.get(`/dbs/${resource.id}`);
    const byRid = await t.rest.get(`/dbs/${resource._rid}`, { byRid: true });
    const byRidSignedAsName = await t.rest.get(`/dbs/${resource._rid}`);
    for (const answer of [byName, byRid, byRidSignedAsName]) {
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.json, resource);
      assert.equal(answer.headers.etag, resource._etag);
      assert.equal(answer.charge, 2);
    }
    const bySelf = await t.rest.get(`/${resource._self}`, { byRid: true });
    assert.deepEqual(bySelf.json, resource);
  });

  t.it("are not modified when the etag is known", async () => {
    const { resource } = await t.database.read();
    const answer = await t.rest.get(t.databasePath, { headers: { "if-none-match": resource._etag } });
    assert.equal(answer.status, 304);
    assert.equal(answer.bytes.length, 0);
    assert.equal(answer.headers.etag, resource._etag);
  });

  t.it("are listed in pages, in order of creation", async () => {
    const made = [];
    for (let i = 0; i < 7; i++) made.push((await t.client.databases.create({ id: t.name("page") })).resource.id);
    const all = (await t.client.databases.readAll().fetchAll()).resources.map((resource) => resource.id);
    assert.deepEqual(all.filter((id) => made.includes(id)), made);

    const seen = [];
    let continuation, pages = 0;
    do {
      const headers = { "x-ms-max-item-count": "2" };
      if (continuation) headers["x-ms-continuation"] = continuation;
      const answer = await t.rest.get("/dbs", { headers });
      assert.equal(answer.status, 200);
      assert.equal(answer.json._rid, "");
      assert.equal(answer.json._count, answer.json.Databases.length);
      assert.equal(answer.headers["x-ms-item-count"], String(answer.json._count));
      assert.ok(answer.json._count <= 2);
      seen.push(...answer.json.Databases.map((resource) => resource.id));
      continuation = answer.headers["x-ms-continuation"];
      pages++;
    } while (continuation);
    assert.deepEqual(seen, all);
    assert.equal(pages, Math.ceil(all.length / 2));

    const iterator = t.client.databases.readAll({ maxItemCount: 3 });
    const first = await iterator.fetchNext();
    assert.equal(first.resources.length, 3);
    assert.equal(iterator.hasMoreResults(), true);
  });

  t.it("are found by the query texts that SDKs send", async () => {
    const id = t.database.id;
    const specs = [
      { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] },
      { query: "SELECT * FROM r WHERE r.id=@id", parameters: [{ name: "@id", value: id }] },
      `SELECT * FROM c WHERE c.id = "${id}"`,
      `select * from root where root.id = '${id}'`,
      { query: `SELECT * FROM root r WHERE r["id"] = @id`, parameters: [{ name: "@id", value: id }] },
    ];
    for (const spec of specs) {
      const { resources } = await t.client.databases.query(spec).fetchAll();
      assert.deepEqual(resources.map((resource) => resource.id), [id], JSON.stringify(spec));
    }
    const none = await t.client.databases.query("SELECT * FROM c WHERE c.id = 'nobody'").fetchAll();
    assert.deepEqual(none.resources, []);
  });

  t.it("are deleted, and their name is free at once", async () => {
    const { resource: before, database } = await t.client.databases.create({ id: t.name() });
    const { statusCode } = await database.delete();
    assert.equal(statusCode, 204);
    await fails(database.read(), 404, { text: notFound });
    const again = await t.rest.delete(`/dbs/${database.id}`);
    refused(again, 404, { text: notFound });
    assert.equal(again.charge, 2);
    const { resource: after } = await t.client.databases.create({ id: database.id });
    assert.notEqual(after._rid, before._rid);
    refused(await t.rest.get(`/dbs/${before._rid}`, { byRid: true }), 404, { text: notFound });
    await database.delete();
  });

  t.it("are deleted only if they match", async () => {
    const { resource, database } = await t.client.databases.create({ id: t.name() });
    const other = resource._etag.replace(/^"[0-9a-f]{8}/, '"ffffffff');
    refused(await t.rest.delete(`/dbs/${database.id}`, { headers: { "if-match": other } }), 412);
    const done = await t.rest.delete(`/dbs/${resource._rid}`, { byRid: true, headers: { "if-match": resource._etag } });
    assert.equal(done.status, 204);
  });

  t.it("may be named with any Unicode, blanks and escapes", async () => {
    for (const id of ["piñata", "日本語", "a b", "100%", "a+b", "😀", "semi;colon", "%41", "a\u0001b", "x".repeat(255)]) {
      const name = id.length === 255 ? id : `${id}-${t.scheme}`;
      const { database } = await t.client.databases.create({ id: name });
      const answer = await t.rest.get(`/dbs/${encodeURIComponent(name)}`);
      assert.equal(answer.status, 200, name);
      assert.equal(answer.json.id, name);
      assert.match(answer.headers.etag, etagForm);
      assert.match(answer.headers["x-ms-alt-content-path"], /^dbs\/[\x21-\x7e]+$/);
      assert.equal(decodeURIComponent(answer.headers["x-ms-alt-content-path"]), `dbs/${name}`);
      await database.delete();
    }
  });

  t.it("may be named like somebody's _rid", async () => {
    const { resource } = await t.client.databases.create({ id: "AAAAAA==" });
    assert.equal((await t.rest.get("/dbs/AAAAAA==")).json._rid, resource._rid);
    await t.client.database("AAAAAA==").delete();
  });

  t.it("may not be named so", async () => {
    const longest = "x".repeat(256);
    for (const id of ["", longest, "a/b", "a\\b", "a?b", "a#b", "a ", "a\u0000b"]) {
      const answer = await t.rest.post("/dbs", { id });
      refused(answer, 400, { text: id === "" || id === longest ? "The input name" : /The resource name presented contains (an )?invalid character/ });
    }
    refused(await t.rest.post("/dbs", {}), 400, { text: "the required properties - 'id; ' - are missing" });
    refused(await t.rest.post("/dbs", { id: 5 }), 400, { text: "'id" });
    refused(await t.rest.post("/dbs", "[]"), 400, { text: "The request payload is invalid" });
    refused(await t.rest.post("/dbs", "{"), 400, { text: "The request payload is invalid" });
    refused(await t.rest.send("POST", "/dbs"), 400, { text: "The request payload is invalid" });
  });

  t.it("may share throughput among their containers", async () => {
    const { database } = await t.client.databases.create({ id: t.name(), throughput: 500 });
    const { resource: offer } = await database.readOffer();
    const { resource } = await database.read();
    assert.equal(offer.content.offerThroughput, 500);
    assert.equal(offer.resource, resource._self);
    assert.equal(offer.offerResourceId, resource._rid);
    const { container } = await database.containers.create({ id: "shares", partitionKey: "/pk" });
    assert.equal((await container.readOffer()).resource, undefined);
    await database.delete();
    const { resources } = await t.client.offers.readAll().fetchAll();
    assert.ok(!resources.some((other) => other._rid === offer._rid), "the offer went with its database");
  });

  t.it("without throughput have no offer", async () => {
    assert.equal((await t.database.readOffer()).resource, undefined);
  });
});
