// Items one at a time: create, upsert, read, replace, delete; etags, preferences, directives; by name and by _rid.

import { assert, suite, fails, refused, checkStamp, ridBytes, documentNumber, etagForm, key, withoutSystem } from "./harness.js";

const precondition = "One of the specified pre-condition is not met";
const missing = "Entity with the specified id does not exist in the system.";

suite("items", (t) => {
  t.it("are created with the service's properties", async () => {
    const container = await t.container();
    const item = { id: "1", pk: "a", text: "hola", number: 1.5, yes: true, nothing: null, list: [1, "2", [3]], object: { deep: { er: 1 } } };
    const { resource, statusCode, headers, etag, requestCharge } = await container.items.create(item);
    assert.equal(statusCode, 201);
    assert.deepEqual(withoutSystem(resource), item);
    assert.deepEqual(Object.keys(resource).slice(-5), ["_rid", "_self", "_etag", "_attachments", "_ts"]);
    const { resource: parent } = await container.read();
    const bytes = ridBytes(resource._rid);
    assert.equal(bytes.length, 16);
    assert.deepEqual(bytes.subarray(0, 8), ridBytes(parent._rid));
    assert.equal(bytes[15] >> 4, 0, "the mark of a document");
    assert.equal(documentNumber(resource._rid), 1n);
    assert.equal(resource._self, `${parent._self}docs/${resource._rid}/`);
    assert.equal(resource._attachments, "attachments/");
    checkStamp(resource);
    assert.equal(etag, resource._etag);
    assert.equal(headers.etag, resource._etag);
    assert.ok(requestCharge > 5);
    assert.equal(headers["x-ms-alt-content-path"], `dbs/${t.database.id}/colls/${container.id}`);
    assert.equal(headers["x-ms-content-path"], parent._rid);
    assert.match(headers["x-ms-resource-usage"], /documentsCount=1;/);
  });

  t.it("get an id from the SDK when they have none", async () => {
    const { resource } = await (await t.container()).items.create({ pk: "a" });
    assert.match(resource.id, /^[0-9a-f-]{36}$/);
  });

  t.it("have an id once in their logical partition", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a", v: 1 });
    await fails(container.items.create({ id: "1", pk: "a", v: 2 }), 409, { text: "Entity with the specified id already exists in the system." });
    const { resource } = await container.items.create({ id: "1", pk: "b", v: 3 });
    assert.equal(documentNumber(resource._rid), 2n);
    assert.equal((await container.item("1", "a").read()).resource.v, 1);
    assert.equal((await container.item("1", "b").read()).resource.v, 3);
  });

  t.it("are read, and missing ones are not", async () => {
    const container = await t.container();
    const { resource } = await container.items.create({ id: "1", pk: "a", v: 1 });
    const read = await container.item("1", "a").read();
    assert.equal(read.statusCode, 200);
    assert.deepEqual(read.resource, resource);
    assert.equal(read.etag, resource._etag);
    assert.equal(read.requestCharge, 1);
    assert.equal(read.headers["x-ms-item-lsn"], read.headers.lsn);
    assert.equal(read.headers["x-ms-cosmos-item-llsn"], read.headers.lsn);

    const absent = await container.item("2", "a").read();
    assert.equal(absent.statusCode, 404);
    assert.equal(absent.resource, undefined);
    const elsewhere = await container.item("1", "b").read();
    assert.equal(elsewhere.statusCode, 404);
    refused(await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/2`, { headers: key("a") }), 404, { text: missing });
  });

  t.it("are upserted: created, then replaced", async () => {
    const container = await t.container();
    const first = await container.items.upsert({ id: "1", pk: "a", v: 1, only: "first" });
    assert.equal(first.statusCode, 201);
    const second = await container.items.upsert({ id: "1", pk: "a", v: 2 });
    assert.equal(second.statusCode, 200);
    assert.deepEqual(withoutSystem(second.resource), { id: "1", pk: "a", v: 2 });
    assert.equal(second.resource._rid, first.resource._rid);
    assert.notEqual(second.resource._etag, first.resource._etag);
    assert.deepEqual((await container.item("1", "a").read()).resource, second.resource);
  });

  t.it("are replaced as a whole", async () => {
    const container = await t.container();
    const { resource: before } = await container.items.create({ id: "1", pk: "a", v: 1, only: "first" });
    const { resource: after, statusCode } = await container.item("1", "a").replace({ id: "1", pk: "a", v: 2 });
    assert.equal(statusCode, 200);
    assert.deepEqual(withoutSystem(after), { id: "1", pk: "a", v: 2 });
    assert.equal(after._rid, before._rid);
    assert.equal(after._self, before._self);
    await fails(container.item("2", "a").replace({ id: "2", pk: "a" }), 404, { text: missing });
    await fails(container.item("1", "a").replace({ id: "1", pk: "b" }), 400);
    assert.deepEqual((await container.item("1", "a").read()).resource, after);
  });

  t.it("are deleted", async () => {
    const container = await t.container();
    const { resource: first } = await container.items.create({ id: "1", pk: "a" });
    const { statusCode, resource, headers } = await container.item("1", "a").delete();
    assert.equal(statusCode, 204);
    assert.equal(resource, null);
    assert.match(headers["x-ms-session-token"], /^0:-1#2$/);
    await fails(container.item("1", "a").delete(), 404, { text: missing });
    const { resource: again } = await container.items.create({ id: "1", pk: "a" });
    assert.notEqual(again._rid, first._rid, "a number is given out once");
  });

  t.it("ignore the system properties that a client sends", async () => {
    const container = await t.container();
    const made = { _rid: "x", _self: "y", _etag: "z", _ts: 1, _attachments: "w", _lsn: 9, _own: "kept", id: "1", pk: "a" };
    const { resource } = await container.items.create({ ...made });
    assert.match(resource._etag, etagForm);
    assert.notEqual(resource._ts, 1);
    assert.equal(resource._own, "kept");
    assert.equal(resource._lsn, undefined);
    const { resource: same } = await container.item("1", "a").replace({ ...resource, v: 1 });
    assert.equal(same._rid, resource._rid);
    assert.equal(same.v, 1);
  });

  t.it("are written only if their etag matches", async () => {
    const container = await t.container();
    const item = container.item("1", "a");
    const { resource: first } = await container.items.create({ id: "1", pk: "a", v: 1 });
    const { resource: second } = await item.replace({ ...first, v: 2 });
    const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
    await fails(item.replace({ ...first, v: 3 }, ifMatch(first._etag)), 412, { text: precondition });
    await fails(item.delete(ifMatch(first._etag)), 412, { text: precondition });
    await fails(item.patch([{ op: "set", path: "/v", value: 4 }], ifMatch(first._etag)), 412, { text: precondition });
    await fails(container.items.upsert({ ...first, v: 5 }, ifMatch(first._etag)), 412, { text: precondition });
    assert.deepEqual((await item.read()).resource, second);
    const { resource: third } = await item.replace({ ...second, v: 6 }, ifMatch(second._etag));
    const { resource: fourth } = await item.patch([{ op: "set", path: "/v", value: 7 }], ifMatch(third._etag));
    const { resource: fifth } = await container.items.upsert({ ...fourth, v: 8 }, ifMatch(fourth._etag));
    await item.replace({ ...fifth, v: 9 }, ifMatch("*"));
    const { etag } = await item.read();
    assert.equal((await item.delete(ifMatch(etag))).statusCode, 204);
  });

  t.it("are read only if their etag does not match", async () => {
    const container = await t.container();
    const { resource } = await container.items.create({ id: "1", pk: "a" });
    const item = container.item("1", "a");
    const ifNoneMatch = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });
    const same = await item.read(ifNoneMatch(resource._etag));
    assert.equal(same.statusCode, 304);
    assert.equal(same.etag, resource._etag);
    assert.equal(same.resource, null);
    assert.equal(same.requestCharge, 1);
    const other = await item.read(ifNoneMatch('"00000000-0000-0d00-0000-000000000000"'));
    assert.equal(other.statusCode, 200);
    const bare = await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/1`, { headers: { ...key("a"), "if-none-match": resource._etag } });
    assert.equal(bare.status, 304);
    assert.equal(bare.bytes.length, 0);
    assert.equal(bare.headers.etag, resource._etag);
    assert.match(bare.headers["x-ms-session-token"], /^0:-1#1$/);
  });

  t.it("are left out of the answer on request", async () => {
    const path = await t.containerPath();
    const minimal = { headers: { ...key("a"), prefer: "return=minimal" } };
    const writes = [
      [201, await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, minimal)],
      [200, await t.rest.put(`${path}/docs/1`, { id: "1", pk: "a", v: 2 }, minimal)],
      [200, await t.rest.patch(`${path}/docs/1`, { operations: [{ op: "set", path: "/v", value: 3 }] }, minimal)],
      [200, await t.rest.post(`${path}/docs`, { id: "1", pk: "a", v: 4 }, { headers: { ...minimal.headers, "x-ms-documentdb-is-upsert": "True" } })],
    ];
    for (const [status, answer] of writes) {
      assert.equal(answer.status, status);
      assert.equal(answer.bytes.length, 0);
      assert.match(answer.headers.etag, etagForm);
      assert.match(answer.headers["x-ms-session-token"], /^0:-1#\d+$/);
    }
    const read = await t.rest.get(`${path}/docs/1`, minimal);
    assert.equal(read.json.v, 4);
    assert.equal(read.json._etag, writes[3][1].headers.etag);
  });

  t.it("may be kept out of the index, which is cheaper", async () => {
    const path = await t.containerPath();
    const body = (id) => ({ id, pk: "a", one: 1, two: "two", three: true });
    const directive = (word) => ({ headers: { ...key("a"), "x-ms-indexing-directive": word } });
    const plain = await t.rest.post(`${path}/docs`, body("1"), { headers: key("a") });
    const included = await t.rest.post(`${path}/docs`, body("2"), directive("Include"));
    const standard = await t.rest.post(`${path}/docs`, body("3"), directive("Default"));
    const excluded = await t.rest.post(`${path}/docs`, body("4"), directive("Exclude"));
    assert.equal(plain.charge, 7.05);
    assert.equal(included.charge, plain.charge);
    assert.equal(standard.charge, plain.charge);
    assert.equal(excluded.charge, 4.95);
    assert.equal((await t.rest.get(`${path}/docs/4`, { headers: key("a") })).status, 200);
    refused(await t.rest.post(`${path}/docs`, body("5"), directive("Sometimes")), 400);
  });

  t.it("are addressed by _rid as well", async () => {
    const container = await t.container({ throughput: 40000 });
    const { resource: first } = await container.items.create({ id: "1", pk: "a", v: 1 });
    await container.items.create({ id: "2", pk: "a" });
    const path = `/${first._self.slice(0, -1)}`;
    const byRid = { byRid: true, headers: key("a") };
    const read = await t.rest.get(path, byRid);
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(read.json, first);
    assert.equal(read.charge, 1);
    const replaced = await t.rest.put(path, { id: "1", pk: "a", v: 2 }, byRid);
    assert.equal(replaced.json.v, 2);
    const patched = await t.rest.patch(path, { operations: [{ op: "incr", path: "/v", value: 1 }] }, byRid);
    assert.equal(patched.json.v, 3);
    const { resource: parent } = await container.read();
    const byName = await t.rest.get(`/${parent._self}docs/1`, { headers: key("a") });
    assert.equal(byName.json.id, "1", "an id below the _rid of a container");
    assert.equal((await t.rest.delete(path, byRid)).status, 204);
    refused(await t.rest.get(path, byRid), 404);
    assert.equal((await container.item("1", "a").read()).statusCode, 404);
    const created = await t.rest.post(`/${parent._self}docs`, { id: "3", pk: "a" }, byRid);
    assert.equal(created.status, 201);
  });

  t.it("may have ids that need escapes in a path", async () => {
    const container = await t.container();
    const ids = ["a b", "100%", "%2F", "ñ", "日本", "😀", "a+b", "a&b=c", "..", ".", "a;b", "a:b@c", '"', "'", "a\u0001b", " lead", "trail ", "what?x=1", "what?", "x".repeat(1023)];
    for (const id of ids) {
      const { resource } = await container.items.create({ id, pk: "a" });
      assert.equal(resource.id, id);
      const path = `${t.databasePath}/colls/${container.id}/docs/${escapePath(id)}`;
      const answer = await t.rest.get(path, { headers: key("a") });
      assert.equal(answer.status, 200, `${JSON.stringify(id)} ${answer.text}`);
      assert.equal(answer.json.id, id);
    }
    for (const id of ["a b", "ñ", "😀", "a&b=c", "what?x=1"]) assert.equal((await container.item(id, "a").read()).resource.id, id);
  });
});

// Like encodeURIComponent, but also escapes dots, which clients and proxies would resolve as "." and "..".
function escapePath(id) {
  return encodeURIComponent(id).replaceAll(".", "%2E");
}
