// Tables through the SQL API: entities read, queried and written there are the same entities here, by the same rules.
import { after } from "node:test";
import { Rest as SqlRest } from "../sdk/server.js";
import { all, assert, fails, refused, suite } from "./harness.js";

const pk = (value) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([value]) });
const key = { headers: pk("p") };

suite("tables through SQL", (t) => {
  let rest;
  const sql = () => (rest ??= new SqlRest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());

  // A table of its own: as the Table API's SDK knows it, and its path in the SQL API.
  const make = async () => {
    const client = await t.table();
    return { client, path: `/dbs/TablesDB/colls/${client.tableName}`, docs: `/dbs/TablesDB/colls/${client.tableName}/docs` };
  };
  const select = async (docs, query) => {
    const headers = { ...pk("p"), "x-ms-documentdb-isquery": "true", "content-type": "application/query+json" };
    const answer = await sql().post(docs, { query }, { headers });
    assert.equal(answer.status, 200, answer.text);
    return answer.json.Documents;
  };

  t.it("are read, queried and addressed by RowKey", async () => {
    const { client, docs, path } = await make();
    for (const n of [1, 2, 3]) await client.createEntity({ partitionKey: "p", rowKey: `r${n}`, n, id: `own${n}`, big: 5n, when: new Date(0) });
    assert.deepEqual((await sql().get(path)).json.partitionKey.paths, ["/PartitionKey"]);
    assert.deepEqual(await select(docs, "SELECT c.RowKey, c.n, c.big FROM c WHERE c.n >= 2 ORDER BY c.n DESC"), [
      { RowKey: "r3", n: 3, big: 5 },
      { RowKey: "r2", n: 2, big: 5 },
    ]);
    const one = await sql().get(`${docs}/r2`, key);
    assert.equal(one.status, 200, one.text);
    assert.equal(one.json.n, 2);
    assert.deepEqual(one.json.when, { $date: "1970-01-01T00:00:00Z" });
    assert.equal((await sql().get(`/${one.json._self.replace(/\/$/, "")}`, { ...key, byRid: true })).json.n, 2);
    assert.equal((await sql().get(`${docs}/own2`, key)).status, 404, "id is a property like any other");
    // read-many texts name items by id, which is no key here
    assert.deepEqual(await select(docs, "SELECT VALUE c.n FROM c WHERE (c.id = 'own1' AND c.PartitionKey = 'p') OR (c.id = 'own3' AND c.PartitionKey = 'p')"), [1, 3]);
    assert.equal((await sql().delete(path)).status, 204);
    await fails(client.getEntity("p", "r1"), 404, "TableNotFound");
  });

  t.it("get entities by create, upsert and replace", async () => {
    const { client, docs } = await make();
    const before = Date.now();
    const made = await sql().post(docs, { PartitionKey: "p", RowKey: "r 'é'", Timestamp: "mine", text: "t", n: 1, big: 5000000000, real: 1.5, yes: true, nothing: null }, key);
    assert.equal(made.status, 201, made.text);
    const entity = await client.getEntity("p", "r 'é'");
    assert.equal(entity.text, "t");
    assert.equal(entity.n, 1);
    assert.equal(entity.big, 5000000000n);
    assert.equal(entity.real, 1.5);
    assert.equal(entity.yes, true);
    assert.ok(!("nothing" in entity) && !("id" in entity), Object.keys(entity).join());
    const stamp = Date.parse(entity.timestamp);
    assert.ok(stamp >= before - 1 && stamp <= Date.now() + 1, entity.timestamp);
    assert.match(entity.etag, /^W\/"datetime'/);

    assert.equal((await sql().post(docs, { PartitionKey: "p", RowKey: "r 'é'" }, key)).status, 409);
    const headers = { ...pk("p"), "x-ms-documentdb-is-upsert": "true" };
    assert.equal((await sql().post(docs, { PartitionKey: "p", RowKey: "r 'é'", n: 2 }, { headers })).status, 200);
    assert.deepEqual((await all(client.listEntities())).map((e) => [e.rowKey, e.n, e.text]), [["r 'é'", 2, undefined]]);
    const replaced = await sql().put(`${docs}/${encodeURIComponent("r 'é'")}`, { PartitionKey: "p", RowKey: "r 'é'", n: 3 }, key);
    assert.equal(replaced.status, 200, replaced.text);
    assert.equal((await client.getEntity("p", "r 'é'")).n, 3);
    assert.equal((await sql().put(`${docs}/other`, { PartitionKey: "p", RowKey: "other" }, key)).status, 404);
    const renamed = await sql().put(`${docs}/${encodeURIComponent("r 'é'")}`, { PartitionKey: "p", RowKey: "x" }, key);
    assert.equal(renamed.status, 400);
    assert.match(renamed.json.message, /row key cannot be changed/);
  });

  t.it("keep every type when an entity is read and replaced", async () => {
    const { client, docs } = await make();
    const guid = "c9da6455-213d-42c9-9a79-3e9149a57833";
    const sent = { PartitionKey: "p", RowKey: "r", "g@odata.type": "Edm.Guid", g: guid, "b@odata.type": "Edm.Binary", b: "AQID", "d@odata.type": "Edm.DateTime", d: "2024-01-02T03:04:05.6789012Z", "i@odata.type": "Edm.Int64", i: "9007199254740993", s: "{\"$date\":1}" };
    assert.equal((await t.rest.post(`/${client.tableName}`, sent)).status, 201);
    const read = await sql().get(`${docs}/r`, key);
    const text = read.text.replace(/"s":/, '"more":1,"s":');
    assert.equal((await sql().put(`${docs}/r`, text, key)).status, 200);
    const got = (await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`, { headers: { accept: "application/json;odata=fullmetadata" } })).json;
    for (const name of ["g", "b", "d", "i"]) {
      assert.equal(got[name], sent[name]);
      assert.equal(got[`${name}@odata.type`], sent[`${name}@odata.type`]);
    }
    assert.equal(got.s, sent.s);
    assert.equal(got.more, 1);
  });

  t.it("are patched and deleted, with etags of both APIs", async () => {
    const { client, docs } = await make();
    await client.createEntity({ partitionKey: "p", rowKey: "r", n: 1, when: new Date(1000), old: "x" });
    const first = await client.getEntity("p", "r");
    const patch = { operations: [{ op: "incr", path: "/n", value: 5 }, { op: "add", path: "/at", value: { $date: "2024-05-17T08:21:45Z" } }, { op: "remove", path: "/old" }, { op: "set", path: "/Timestamp", value: 7 }] };
    const patched = await sql().patch(`${docs}/r`, patch, key);
    assert.equal(patched.status, 200, patched.text);
    const second = await client.getEntity("p", "r");
    assert.equal(second.n, 6);
    assert.deepEqual(second.at, new Date("2024-05-17T08:21:45Z"));
    assert.deepEqual(second.when, new Date(1000));
    assert.ok(!("old" in second));
    assert.ok(second.timestamp > first.timestamp, `${second.timestamp} > ${first.timestamp}`);
    await fails(client.updateEntity({ partitionKey: "p", rowKey: "r", n: 7 }, "Replace", { etag: first.etag }), 412, "UpdateConditionNotSatisfied");
    await client.updateEntity({ partitionKey: "p", rowKey: "r", n: 8 }, "Merge", { etag: second.etag });
    const stale = await sql().delete(`${docs}/r`, { headers: { ...pk("p"), "if-match": patched.json._etag } });
    assert.equal(stale.status, 412, stale.text);
    const current = (await sql().get(`${docs}/r`, key)).json._etag;
    assert.equal((await sql().delete(`${docs}/r`, { headers: { ...pk("p"), "if-match": current } })).status, 204);
    await fails(client.getEntity("p", "r"), 404, "ResourceNotFound");
  });

  t.it("refuse what no entity can be, with 400 and the reason", async () => {
    const { client, docs } = await make();
    await client.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    const entity = { PartitionKey: "p", RowKey: "x" };
    const cases = [
      [{ PartitionKey: "p" }, /PartitionKey and RowKey/],
      [{ PartitionKey: "p", RowKey: 5 }, /both must be strings/],
      [{ PartitionKey: "p", RowKey: "a/b" }, /'RowKey': .*out of range/],
      [{ PartitionKey: "p", RowKey: "k".repeat(513) }, /'RowKey': .*1KB/],
      [{ ...entity, list: [1] }, /'list'/],
      [{ ...entity, object: { a: 1 } }, /'object'/],
      [{ ...entity, oid: { $oid: "0123456789abcdef01234567" } }, /'oid'/],
      [{ ...entity, early: { $date: { $numberLong: "-99999999999999" } } }, /'early': .*out of range/],
      [{ ...entity, "a-b": 1 }, /'a-b': The property name is invalid/],
      [{ ...entity, ["n".repeat(256)]: 1 }, /maximum allowed length/],
      [{ ...entity, when: { $date: "2024-05-17T08:21:45Z" }, "when@ticks": 10000 }, /'when@ticks'/],
      [{ ...entity, text: "x".repeat(32 * 1024 + 1) }, /64KB/],
      [{ ...entity, ...Object.fromEntries(Array.from({ length: 253 }, (_, i) => [`p${i}`, 1])) }, /252 properties/],
      [{ ...entity, ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, "x".repeat(30000)])) }, /1MB/],
    ];
    for (const [body, why] of cases) {
      const answer = await sql().post(docs, body, key);
      assert.equal(answer.status, 400, `${answer.status} ${answer.text} for ${JSON.stringify(body).slice(0, 80)}`);
      assert.match(answer.json.message, why);
    }
    for (const operation of [{ op: "set", path: "/list", value: [1] }, { op: "set", path: "/bad-name", value: 1 }, { op: "set", path: "/RowKey", value: "y" }, { op: "remove", path: "/PartitionKey" }, { op: "set", path: "/text", value: "x".repeat(40000) }]) {
      const answer = await sql().patch(`${docs}/r`, [operation], key);
      assert.equal(answer.status, 400, `${answer.text} for ${JSON.stringify(operation).slice(0, 80)}`);
    }
    assert.equal((await sql().get(`${docs}/${encodeURIComponent("a?b")}`, key)).status, 400);
    assert.deepEqual((await all(client.listEntities())).map((e) => [e.rowKey, e.n]), [["r", 1]]);
    const large = t.name();
    assert.equal((await t.rest.post("/Tables", { TableName: large }, { headers: { "x-tesela-large-entities": "true" } })).status, 201);
    const made = await sql().post(`/dbs/TablesDB/colls/${large}/docs`, { ...entity, text: "x".repeat(700000) }, key);
    assert.equal(made.status, 201, made.text.slice(0, 300));
  });

  t.it("take batches and bulk", async () => {
    const { client, docs } = await make();
    await client.createEntity({ partitionKey: "p", rowKey: "old", n: 1 });
    const batch = (operations, headers) => sql().post(docs, operations, { headers: { "x-ms-cosmos-is-batch-request": "true", ...headers } });
    const atomic = { ...pk("p"), "x-ms-cosmos-batch-atomic": "true" };
    const entity = (RowKey, n) => ({ PartitionKey: "p", RowKey, n });
    const done = await batch(
      [
        { operationType: "Create", resourceBody: entity("a", 1) },
        { operationType: "Upsert", resourceBody: { ...entity("b", 2), at: { $date: "2024-05-17T08:21:45Z" } } },
        { operationType: "Replace", id: "old", resourceBody: entity("old", 3) },
        { operationType: "Patch", id: "a", resourceBody: { operations: [{ op: "incr", path: "/n", value: 10 }] } },
        { operationType: "Read", id: "b" },
        { operationType: "Delete", id: "old" },
      ],
      atomic,
    );
    assert.deepEqual(done.json.map((r) => r.statusCode), [201, 201, 200, 200, 200, 204], done.text);
    assert.deepEqual((await all(client.listEntities())).map((e) => [e.rowKey, e.n]), [["a", 11], ["b", 2]]);
    assert.deepEqual((await client.getEntity("p", "b")).at, new Date("2024-05-17T08:21:45Z"));

    const refusedOne = await batch([{ operationType: "Create", resourceBody: entity("c", 1) }, { operationType: "Patch", id: "a", resourceBody: [{ op: "set", path: "/list", value: [] }] }], atomic);
    assert.deepEqual(refusedOne.json.map((r) => r.statusCode), [424, 400], refusedOne.text);
    assert.match(refusedOne.json[1].message, /'list'/);
    const bulk = await batch(
      [
        { operationType: "Create", partitionKey: '["q"]', resourceBody: { PartitionKey: "q", RowKey: "1" } },
        { operationType: "Create", partitionKey: '["q"]', resourceBody: { PartitionKey: "q" } },
        { operationType: "Delete", partitionKey: '["p"]', id: "a" },
      ],
      { "x-ms-cosmos-batch-continue-on-error": "true" },
    );
    assert.deepEqual(bulk.json.map((r) => r.statusCode), [201, 400, 204], bulk.text);
    assert.deepEqual((await all(client.listEntities())).map((e) => `${e.partitionKey} ${e.rowKey}`), ["p b", "q 1"]);
  });

  t.it("lose a partition that SQL deletes, and SQL sees what the Table API writes", async () => {
    const { client, docs, path } = await make();
    for (const p of ["p", "q"]) await client.createEntity({ partitionKey: p, rowKey: "r" });
    const wiped = await sql().post(`${path}/operations/partitionkeydelete`, undefined, key);
    assert.equal(wiped.status, 200, wiped.text);
    assert.deepEqual((await all(client.listEntities())).map((e) => e.partitionKey), ["q"]);
    await sql().post(docs, { PartitionKey: "p", RowKey: "r", n: 1, text: "kept" }, key);
    await client.updateEntity({ partitionKey: "p", rowKey: "r", n: 2 }, "Merge");
    const seen = (await sql().get(`${docs}/r`, key)).json;
    assert.equal(seen.n, 2);
    assert.equal(seen.text, "kept");
    await client.submitTransaction([["update", { partitionKey: "p", rowKey: "r", n: 3 }, "Merge"], ["create", { partitionKey: "p", rowKey: "s" }]]);
    const changes = await sql().get(docs, { headers: { "a-im": "Incremental feed", ...pk("p") } });
    assert.deepEqual(changes.json.Documents.map((e) => e.RowKey).sort(), ["r", "s"], changes.text);
  });

  t.it("leave scripts, attachments and settings to the API that made them", async () => {
    const { client, path, docs } = await make();
    await client.createEntity({ partitionKey: "p", rowKey: "r" });
    const settings = (await sql().get(path)).json;
    const tries = [
      await sql().post(`${path}/sprocs`, { id: "s", body: "function () {}" }),
      await sql().post(`${path}/triggers`, { id: "s", body: "function () {}", triggerType: "Pre", triggerOperation: "All" }),
      await sql().post(`${path}/udfs`, { id: "s", body: "function () {}" }),
      await sql().post(`${docs}/r/attachments`, { id: "a", contentType: "text/plain", media: "x" }, key),
      await sql().put(path, { ...settings, defaultTtl: 5 }),
    ];
    for (const answer of tries) {
      assert.equal(answer.status, 403, answer.text);
      assert.match(answer.json.message, /table API/);
    }
    const offer = (await sql().get("/offers")).json.Offers.find((o) => o.offerResourceId === settings._rid);
    offer.content.offerThroughput = 1200;
    assert.equal((await sql().put(`/offers/${offer._rid}`, offer, { byRid: true })).status, 200, "throughput is no rule of the API");
  });

  t.it("leave containers of the SQL API alone", async () => {
    await t.table(); /* makes the database */
    const made = await sql().post("/dbs/TablesDB/colls", { id: `plain${t.scheme}`, partitionKey: { paths: ["/PartitionKey"], kind: "Hash" } });
    assert.equal(made.status, 201, made.text);
    assert.equal((await sql().post(`/dbs/TablesDB/colls/plain${t.scheme}/docs`, { PartitionKey: "p", RowKey: "r" }, key)).status, 400, "an item needs an id there");
    const object = await sql().post(`/dbs/TablesDB/colls/plain${t.scheme}/docs`, { id: "x", PartitionKey: "p", at: { $date: "2024-05-17T08:21:45Z" } }, key);
    assert.deepEqual(object.json.at, { $date: "2024-05-17T08:21:45Z" });
    const names = (await all(t.service.listTables())).map((table) => table.name);
    assert.ok(!names.includes(`plain${t.scheme}`));
    await fails(t.client(`plain${t.scheme}`).createEntity({ partitionKey: "p", rowKey: "r" }), 404, "TableNotFound");
    refused(await t.rest.send("DELETE", `/Tables('plain${t.scheme}')`), 404, "ResourceNotFound");
  });
});
