// Users, permissions and resource tokens, as an application uses them: a server with the key gives tokens to clients without one.
// access.test.js tests every operation with every kind of credential.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { PermissionMode } from "@azure/cosmos";
import { assert, suite, fails, refused, checkStamp, ridBytes, key, eventually, Rest, Server } from "./harness.js";

const tokenForm = /^type=resource&ver=1&sig=[A-Za-z0-9+/]{43}=;[A-Za-z0-9+/]{66}==;$/;

async function make(t, definition = {}) {
  const { user } = await t.database.users.create({ id: t.name("u") });
  const container = await t.container();
  const { resource } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: container.url, ...definition });
  return { user, container, permission: resource };
}

suite("users", (t) => {
  t.it("are created, read, renamed and deleted", async () => {
    const id = t.name("ana ñ");
    const made = await t.database.users.create({ id });
    assert.equal(made.statusCode, 201);
    assert.equal(made.resource.id, id);
    assert.equal(made.resource._permissions, "permissions/");
    checkStamp(made.resource);
    const bytes = ridBytes(made.resource._rid);
    assert.equal(bytes.length, 8);
    assert.equal(bytes[4] & 0x80, 0, "a user's rid, not a container's");
    const { resource: database } = await t.database.read();
    assert.equal(made.resource._self, `dbs/${database._rid}/users/${made.resource._rid}/`);
    const { resource: read } = await made.user.read();
    assert.deepEqual(read, made.resource);
    const other = t.name("other");
    const renamed = await made.user.replace({ id: other });
    assert.equal(renamed.statusCode, 200);
    assert.equal(renamed.resource._rid, made.resource._rid);
    assert.notEqual(renamed.resource._etag, made.resource._etag);
    await fails(made.user.read(), 404);
    const user = t.database.user(other);
    assert.equal((await user.delete()).statusCode, 204);
    await fails(user.delete(), 404);
  });

  t.it("are created or replaced by an upsert", async () => {
    const id = t.name();
    const first = await t.database.users.upsert({ id });
    assert.equal(first.statusCode, 201);
    const second = await t.database.users.upsert({ id });
    assert.equal(second.statusCode, 200);
    assert.equal(second.resource._rid, first.resource._rid);
  });

  t.it("have one name each, which must be good", async () => {
    const id = t.name(), other = t.name();
    const path = `${t.databasePath}/users`;
    await t.database.users.create({ id });
    await t.database.users.create({ id: other });
    await fails(t.database.users.create({ id }), 409);
    await fails(t.database.user(other).replace({ id }), 409);
    assert.equal((await t.database.user(other).replace({ id: other })).statusCode, 200);
    for (const bad of [{}, { id: "" }, { id: 7 }, { id: "a/b" }, { id: "a?" }, { id: "x".repeat(256) }, { id: "blank " }]) {
      refused(await t.rest.post(path, bad), 400);
    }
    refused(await t.rest.post(path, "[]"), 400);
    refused(await t.rest.post("/dbs/nobody/users", { id }), 404, { substatus: 1003 });
    refused(await t.rest.get("/dbs/nobody/users"), 404, { substatus: 1003 });
  });

  t.it("have etags", async () => {
    const { resource } = await t.database.users.create({ id: t.name() });
    const path = `${t.databasePath}/users/${resource.id}`;
    const same = await t.rest.get(path, { headers: { "if-none-match": resource._etag } });
    assert.equal(same.status, 304);
    assert.equal(same.headers.etag, resource._etag);
    refused(await t.rest.put(path, { id: resource.id }, { headers: { "if-match": '"other"' } }), 412);
    refused(await t.rest.delete(path, { headers: { "if-match": '"other"' } }), 412);
    assert.equal((await t.rest.put(path, { id: resource.id }, { headers: { "if-match": resource._etag } })).status, 200);
    refused(await t.rest.delete(path, { headers: { "if-match": resource._etag } }), 412);
  });

  t.it("are listed in pages and by query, in the order they were made", async () => {
    const { database } = await t.client.databases.create({ id: t.name("listing") });
    const names = ["c", "a", "b", "e", "d"];
    for (const id of names) await database.users.create({ id });
    await database.user("a").replace({ id: "z" });
    const renamed = ["c", "z", "b", "e", "d"];
    const all = await database.users.readAll({ maxItemCount: 2 }).fetchAll();
    assert.deepEqual(all.resources.map((user) => user.id), renamed);
    const found = await database.users.query({ query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: "e" }] }).fetchAll();
    assert.deepEqual(found.resources.map((user) => user.id), ["e"]);
    const ordered = await database.users.query("SELECT VALUE r.id FROM r ORDER BY r.id DESC", { maxItemCount: 2 }).fetchAll();
    assert.deepEqual(ordered.resources, [...renamed].sort().reverse());
    const answer = await t.rest.get(`/dbs/${database.id}/users`);
    assert.deepEqual(Object.keys(answer.json), ["_rid", "Users", "_count"]);
    assert.equal(answer.json._rid, (await database.read()).resource._rid);
    await database.delete();
  });

  t.it("are found by rid", async () => {
    const { resource } = await t.database.users.create({ id: t.name() });
    const byRid = `/${resource._self.replace(/\/$/, "")}`;
    assert.deepEqual((await t.rest.get(byRid, { byRid: true })).json, resource);
    assert.equal((await t.rest.delete(byRid, { byRid: true })).status, 204);
  });
});

suite("permissions", (t) => {
  t.it("are created, read, replaced, renamed and deleted", async () => {
    const { user, container, permission } = await make(t);
    assert.equal(permission.permissionMode, "Read");
    assert.equal(permission.resource, container.url);
    assert.equal(permission.resourcePartitionKey, undefined);
    assert.match(permission._token, tokenForm);
    checkStamp(permission);
    const bytes = ridBytes(permission._rid);
    assert.equal(bytes.length, 16);
    const { resource: owner } = await user.read();
    assert.deepEqual(bytes.subarray(0, 8), ridBytes(owner._rid));
    assert.equal(permission._self, `${owner._self}permissions/${permission._rid}/`);
    const { resource: read } = await user.permission("p").read();
    assert.notEqual(read._token, permission._token, "a fresh token with each read");
    assert.deepEqual({ ...read, _token: 0 }, { ...permission, _token: 0 });
    const replaced = await user.permission("p").replace({ ...read, permissionMode: PermissionMode.All, id: "q" });
    assert.equal(replaced.statusCode, 200);
    assert.equal(replaced.resource.permissionMode, PermissionMode.All);
    assert.equal(replaced.resource._rid, permission._rid);
    await fails(user.permission("p").read(), 404);
    assert.equal((await user.permission("q").delete()).statusCode, 204);
    await fails(user.permission("q").delete(), 404);
  });

  t.it("are created or replaced by an upsert", async () => {
    const { user, container, permission } = await make(t);
    const again = await user.permissions.upsert({ id: "p", permissionMode: "All", resource: container.url });
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource._rid, permission._rid);
    assert.equal(again.resource.permissionMode, "All");
    const other = await t.container();
    assert.equal((await user.permissions.upsert({ id: "new", permissionMode: "All", resource: other.url })).statusCode, 201);
  });

  t.it("are one for each resource of a user, and partition keys are resources", async () => {
    const { user, container } = await make(t);
    const make2 = (id, rest = {}) => user.permissions.create({ id, permissionMode: "All", resource: container.url, ...rest });
    await fails(make2("p"), 409);
    await fails(make2("second"), 409, { text: "'p'" });
    await make2("key 1", { resourcePartitionKey: [1] });
    await make2("key 2", { resourcePartitionKey: [2] });
    await make2("text", { resourcePartitionKey: "1" });
    await fails(make2("text again", { resourcePartitionKey: ["1"] }), 409);
    await fails(make2("key 1 again", { resourcePartitionKey: [1] }), 409);
    await fails(user.permission("key 2").replace({ id: "key 2", permissionMode: "All", resource: container.url, resourcePartitionKey: [1] }), 409);
    await fails(user.permission("key 2").replace({ id: "key 1", permissionMode: "All", resource: container.url, resourcePartitionKey: [2] }), 409);
    const { resource: container2 } = await container.read();
    await fails(make2("by rid", { resource: container2._self }), 409);
    const { user: other } = await t.database.users.create({ id: t.name() });
    assert.equal((await other.permissions.create({ id: "p", permissionMode: "All", resource: container.url })).statusCode, 201);
  });

  t.it("are for something in the user's database", async () => {
    const { user, container } = await make(t);
    await container.items.create({ id: "i", pk: "a" });
    const { database: elsewhere } = await t.client.databases.create({ id: t.name("else") });
    const { container: foreign } = await elsewhere.containers.create({ id: "c", partitionKey: "/pk" });
    const make2 = (resource, resourcePartitionKey) => user.permissions.create({ id: t.name(), permissionMode: "Read", resource, resourcePartitionKey });
    await fails(make2(`${container.url}/docs/i`, ["a", "b"]), 400);
    await fails(make2(`${container.url}/docs/i/attachments/x`), 400, { text: "resourcePartitionKey" });
    await fails(make2(container.url, ["a", "b"]), 400);
    await fails(make2(foreign.url), 400, { text: "database of its user" });
    for (const link of [t.database.url, `${t.database.url}/users/${user.id}`, `${container.url}/docs`, `${container.url}/pkranges/0`, "nonsense", "dbs", "offers/abc", "", "/", "%zz"]) {
      const answer = await t.rest.post(`${t.databasePath}/users/${user.id}/permissions`, { id: "x", permissionMode: "Read", resource: link });
      refused(answer, 400);
    }
    assert.equal((await make2(`${container.url}/docs/i`, ["a"])).statusCode, 201);
    await elsewhere.delete();
  });

  t.it("may be made before their resource is, and then are for it", async () => {
    const { user, container } = await make(t);
    const id = t.name("later");
    const permit = async (resource, resourcePartitionKey) => {
      const { resource: made, statusCode } = await user.permissions.create({ id: t.name(), permissionMode: "All", resource, resourcePartitionKey });
      assert.equal(statusCode, 201);
      return { authorization: encodeURIComponent(made._token) };
    };
    const status = async (verb, path, headers, body) => (await t.rest.send(verb, path, { headers, body, sign: false })).status;
    const onContainer = await permit(`${t.database.url}/colls/${id}`);
    const onItem = await permit(`${container.url}/docs/late`, ["a"]);
    const item = `/${container.url}/docs/late`;
    assert.equal(await status("GET", `${t.databasePath}/colls/${id}`, onContainer), 403);
    assert.equal(await status("GET", item, { ...onItem, ...key("a") }), 403);
    assert.equal(await status("GET", `/${container.url}`, onContainer), 403, "nothing else either");
    await t.database.containers.create({ id, partitionKey: "/pk" });
    await container.items.create({ id: "late", pk: "a" });
    await container.items.create({ id: "late", pk: "b" });
    assert.equal(await status("GET", `${t.databasePath}/colls/${id}`, onContainer), 200);
    assert.equal(await status("POST", `${t.databasePath}/colls/${id}/docs`, { ...onContainer, ...key("x") }, { id: "1", pk: "x" }), 201);
    assert.equal(await status("GET", `/${container.url}`, onContainer), 403);
    assert.equal(await status("GET", item, { ...onItem, ...key("a") }), 200);
    assert.equal(await status("GET", item, { ...onItem, ...key("b") }), 403);
    await fails(user.permissions.create({ id: t.name(), permissionMode: "Read", resource: `${t.database.url}/colls/nothing` }).then(() => user.permissions.create({ id: t.name(), permissionMode: "Read", resource: `${t.database.url}/colls/nothing` })), 409);
  });

  t.it("for an item without its partition key are for its id under every key", async () => {
    const { user, container } = await make(t);
    await container.items.create({ id: "i", pk: "a" });
    await container.items.create({ id: "i", pk: "b" });
    await container.items.create({ id: "j", pk: "a" });
    const { resource } = await user.permissions.create({ id: t.name(), permissionMode: "Read", resource: `${container.url}/docs/i` });
    const get = async (id, pk) => (await t.rest.send("GET", `/${container.url}/docs/${id}`, { headers: { authorization: encodeURIComponent(resource._token), ...key(pk) }, sign: false })).status;
    assert.deepEqual([await get("i", "a"), await get("i", "b"), await get("j", "a"), await get("i", "c")], [200, 200, 403, 403]);
    assert.equal((await t.rest.send("DELETE", `/${container.url}/docs/i`, { headers: { authorization: encodeURIComponent(resource._token), ...key("a") }, sign: false })).status, 403);
  });

  t.it("must say what they are", async () => {
    const { user, container } = await make(t);
    const path = `${t.databasePath}/users/${user.id}/permissions`;
    const good = { id: "x", permissionMode: "Read", resource: `${container.url}`, resourcePartitionKey: ["k"] };
    for (const missing of ["id", "permissionMode", "resource"]) {
      refused(await t.rest.post(path, { ...good, [missing]: undefined }), 400, { text: missing });
    }
    for (const change of [{ permissionMode: "Write" }, { permissionMode: "none" }, { permissionMode: 1 }, { id: "a/b" }, { resource: 7 }]) {
      refused(await t.rest.post(path, { ...good, ...change }), 400);
    }
    for (const resourcePartitionKey of [[], {}, 7, [[1]], true]) {
      refused(await t.rest.post(path, { ...good, resourcePartitionKey }), 400, { text: "resourcePartitionKey" });
    }
    refused(await t.rest.post(`${t.databasePath}/users/nobody/permissions`, good), 404, { substatus: 1003 });
    refused(await t.rest.get(`${t.databasePath}/users/nobody/permissions`), 404, { substatus: 1003 });
    refused(await t.rest.get(`${path}/nothing`), 404);
  });

  t.it("are listed with their tokens, in pages and by query", async () => {
    const { user, container } = await make(t);
    for (let i = 0; i < 4; i++) await user.permissions.create({ id: `k${i}`, permissionMode: "All", resource: container.url, resourcePartitionKey: [i] });
    const all = (await user.permissions.readAll({ maxItemCount: 2 }).fetchAll()).resources;
    assert.deepEqual(all.map(({ id }) => id), ["p", "k0", "k1", "k2", "k3"]);
    assert.deepEqual(all.map(({ resourcePartitionKey }) => resourcePartitionKey?.[0]), [undefined, 0, 1, 2, 3]);
    for (const { _token } of all) assert.match(_token, tokenForm);
    const spec = { query: "SELECT * FROM root r WHERE r.permissionMode = @mode", parameters: [{ name: "@mode", value: "Read" }] };
    const found = (await user.permissions.query(spec).fetchAll()).resources;
    assert.deepEqual(found.map(({ id }) => id), ["p"]);
    const client = t.newClient({ key: undefined, resourceTokens: { [container.url]: found[0]._token } });
    assert.equal((await client.database(t.database.id).container(container.id).read()).statusCode, 200);
    client.dispose();
    const answer = await t.rest.get(`${t.databasePath}/users/${user.id}/permissions`);
    assert.deepEqual(Object.keys(answer.json), ["_rid", "Permissions", "_count"]);
  });

  t.it("have etags, and are found by rid", async () => {
    const { user, container, permission } = await make(t);
    const path = `${t.databasePath}/users/${user.id}/permissions/p`;
    assert.equal((await t.rest.get(path, { headers: { "if-none-match": permission._etag } })).status, 304);
    const body = { id: "p", permissionMode: "All", resource: container.url };
    refused(await t.rest.put(path, body, { headers: { "if-match": '"other"' } }), 412);
    refused(await t.rest.delete(path, { headers: { "if-match": '"other"' } }), 412);
    const byRid = `/${permission._self.replace(/\/$/, "")}`;
    assert.equal((await t.rest.get(byRid, { byRid: true })).json._rid, permission._rid);
    assert.equal((await t.rest.put(byRid, body, { byRid: true, headers: { "if-match": permission._etag } })).status, 200);
    assert.equal((await t.rest.delete(byRid, { byRid: true })).status, 204);
  });

  t.it("live as long as asked for, between 10 minutes and a day", async () => {
    const { user, container } = await make(t);
    const path = `${t.databasePath}/users/${user.id}/permissions`;
    const life = (token) => {
      const payload = Buffer.from(token.split(";")[1], "base64");
      return Number(payload.readBigUInt64BE(33) - payload.readBigUInt64BE(25));
    };
    assert.equal(life((await t.rest.get(`${path}/p`)).json._token), 3600);
    for (const seconds of [600, 18_000, 86_400]) {
      assert.equal(life((await user.permission("p").read({ resourceTokenExpirySeconds: seconds })).resource._token), seconds);
    }
    for (const seconds of ["599", "86401", "0", "-1", "abc", "99999999999999999999"]) {
      const headers = { "x-ms-documentdb-expiry-seconds": seconds };
      refused(await t.rest.get(`${path}/p`, { headers }), 400, { text: "x-ms-documentdb-expiry-seconds" });
      refused(await t.rest.get(path, { headers }), 400);
      refused(await t.rest.post(path, { id: "never", permissionMode: "All", resource: container.url, resourcePartitionKey: [1] }, { headers }), 400);
    }
    refused(await t.rest.get(`${path}/never`), 404);
  });

  t.it("go with their user, and with their database", async () => {
    const { database } = await t.client.databases.create({ id: t.name("gone") });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    const { user } = await database.users.create({ id: "u" });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: container.url });
    const reader = t.newClient({ key: undefined, resourceTokens: { [container.url]: resource._token } });
    const seen = reader.database(database.id).container("c");
    assert.equal((await seen.read()).statusCode, 200);
    await user.delete();
    await fails(seen.read(), 403);
    await database.users.create({ id: "u" });
    assert.deepEqual((await user.permissions.readAll().fetchAll()).resources, []);
    await user.permissions.create({ id: "p", permissionMode: "Read", resource: container.url });
    await database.delete();
    await t.client.databases.create({ id: database.id });
    assert.deepEqual((await database.users.readAll().fetchAll()).resources, []);
    await database.delete();
    reader.dispose();
  });
});

suite("resource tokens", (t) => {
  const as = async (permissions, run, options = (list) => ({ resourceTokens: Object.fromEntries(list.map((p) => [p.resource, p._token])) })) => {
    const client = t.newClient({ key: undefined, ...options(permissions) });
    try {
      return await run(client.database(t.database.id), client);
    } finally {
      client.dispose();
    }
  };

  const filled = async (definition) => {
    const made = await make(t, definition);
    for (const [id, pk] of [["1", "a"], ["2", "a"], ["3", "b"]]) await made.container.items.create({ id, pk, n: Number(id) });
    return made;
  };

  t.it("of a container let a client read it, in all the ways that SDKs take tokens", async () => {
    const { container, permission } = await filled();
    const ways = [
      ([p]) => ({ resourceTokens: { [p.resource]: p._token } }),
      ([p]) => ({ resourceTokens: { [container.id]: p._token } }),
      (permissionFeed) => ({ permissionFeed }),
      ([p]) => ({ tokenProvider: async () => p._token }),
    ];
    for (const way of ways) {
      await as([permission], async (database, client) => {
        const seen = database.container(container.id);
        assert.equal((await seen.item("1", "a").read()).resource.n, 1);
        assert.equal((await seen.items.readAll().fetchAll()).resources.length, 3);
        assert.deepEqual((await seen.items.query("SELECT VALUE c.n FROM c ORDER BY c.n DESC").fetchAll()).resources, [3, 2, 1]);
        assert.deepEqual((await seen.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources, [3]);
        assert.deepEqual((await seen.items.query("SELECT VALUE c.n FROM c", { partitionKey: "b" }).fetchAll()).resources, [3]);
        assert.ok((await client.getDatabaseAccount()).resource);
        for (const write of [
          () => seen.items.create({ id: "x", pk: "a" }),
          () => seen.items.upsert({ id: "1", pk: "a" }),
          () => seen.item("1", "a").replace({ id: "1", pk: "a" }),
          () => seen.item("1", "a").patch([{ op: "set", path: "/n", value: 9 }]),
          () => seen.item("1", "a").delete(),
          () => seen.delete(),
          () => seen.replace({ id: container.id, partitionKey: { paths: ["/pk"] } }),
        ]) {
          await fails(write(), 403, { text: "Insufficient permissions provided in the authorization header for the corresponding request." });
        }
        await assert.rejects(seen.items.batch([{ operationType: "Create", resourceBody: { id: "x", pk: "a" } }], "a"), /Insufficient permissions/); // the SDK's error has no status
      }, way);
    }
    assert.deepEqual((await container.items.query("SELECT VALUE c.n FROM c").fetchAll()).resources, [1, 2, 3]);
  });

  t.it("of mode All let a client write items, not the container", async () => {
    const { container, permission } = await filled({ permissionMode: "All" });
    await as([permission], async (database) => {
      const seen = database.container(container.id);
      await seen.items.create({ id: "4", pk: "c", n: 4 });
      await seen.items.upsert({ id: "4", pk: "c", n: 5 });
      await seen.item("4", "c").replace({ id: "4", pk: "c", n: 6 });
      await seen.item("4", "c").patch([{ op: "incr", path: "/n", value: 1 }]);
      assert.equal((await seen.item("4", "c").read()).resource.n, 7);
      const batch = await seen.items.batch([{ operationType: "Create", resourceBody: { id: "5", pk: "c", n: 5 } }], "c");
      assert.equal(batch.code, 200);
      const bulk = await seen.items.executeBulkOperations([{ operationType: "Create", partitionKey: "d", resourceBody: { id: "6", pk: "d" } }]);
      assert.equal(bulk[0].response.statusCode, 201);
      await seen.item("4", "c").delete();
      await fails(seen.delete(), 403);
      await fails(seen.replace({ id: container.id, partitionKey: { paths: ["/pk"] } }), 403);
      refused(await t.rest.post(`${t.databasePath}/colls`, { id: t.name(), partitionKey: { paths: ["/pk"] } }, { headers: { authorization: encodeURIComponent(permission._token) } }), 403);
    });
  });

  t.it("of a partition key stay within it", async () => {
    const { container, permission } = await filled({ permissionMode: "All", resourcePartitionKey: ["a"] });
    await as([permission], async (database) => {
      const seen = database.container(container.id);
      assert.equal((await seen.item("1", "a").read()).resource.n, 1);
      assert.deepEqual((await seen.items.query("SELECT VALUE c.n FROM c", { partitionKey: "a" }).fetchAll()).resources, [1, 2]);
      assert.deepEqual((await seen.items.query("SELECT VALUE COUNT(1) FROM c", { partitionKey: "a" }).fetchAll()).resources, [2]);
      assert.equal((await seen.items.readAll({ partitionKey: "a" }).fetchAll()).resources.length, 2);
      await seen.items.create({ id: "4", pk: "a" });
      assert.equal((await seen.items.batch([{ operationType: "Read", id: "4" }], "a")).code, 200);
      await seen.item("4", "a").delete();
      for (const beyond of [
        () => seen.item("3", "b").read(),
        () => seen.items.create({ id: "9", pk: "b" }),
        () => seen.item("3", "b").delete(),
        () => seen.items.query("SELECT * FROM c").fetchAll(),
        () => seen.items.query("SELECT * FROM c WHERE c.pk = 'a'").fetchAll(),
        () => seen.items.query("SELECT * FROM c", { partitionKey: "b" }).fetchAll(),
        () => seen.items.readAll().fetchAll(),
        () => seen.items.query("SELECT * FROM c", { partitionKey: "a", forceQueryPlan: true }).fetchAll(), // makes the SDK query by range
      ]) {
        await fails(beyond(), 403);
      }
      await assert.rejects(seen.items.batch([{ operationType: "Read", id: "3" }], "b"), /Insufficient permissions/);
    });
    const headers = { authorization: encodeURIComponent(permission._token), ...key("a") };
    const path = `/${container.url}/docs`;
    refused(await t.rest.post(path, { id: "9", pk: "b" }, { headers }), 400, { substatus: 1001 });
    const batch = { ...headers, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    const others = [{ operationType: "Read", id: "3", partitionKey: '["b"]' }];
    assert.deepEqual((await t.rest.post(path, others, { headers: batch })).json.map(({ statusCode }) => statusCode), [400]);
    refused(await t.rest.post(path, others, { headers: { ...batch, "x-ms-cosmos-batch-atomic": "False" } }), 403);
    assert.equal((await container.items.readAll().fetchAll()).resources.length, 3);
  });

  t.it("of a prefix of a hierarchical key reach what is below it", async () => {
    const container = await t.container({ partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } });
    const { user } = await t.database.users.create({ id: t.name() });
    for (const [id, a, b] of [["1", "x", "1"], ["2", "x", "2"], ["3", "y", "1"]]) await container.items.create({ id, a, b });
    const prefix = (await user.permissions.create({ id: "p", permissionMode: "All", resource: container.url, resourcePartitionKey: ["x"] })).resource;
    const whole = (await user.permissions.create({ id: "q", permissionMode: "All", resource: container.url, resourcePartitionKey: ["x", "1"] })).resource;
    await as([prefix], async (database) => {
      const seen = database.container(container.id);
      assert.equal((await seen.item("2", ["x", "2"]).read()).statusCode, 200);
      assert.deepEqual((await seen.items.query("SELECT VALUE c.id FROM c", { partitionKey: ["x"] }).fetchAll()).resources.sort(), ["1", "2"]);
      await fails(seen.item("3", ["y", "1"]).read(), 403);
      await fails(seen.items.query("SELECT * FROM c", { partitionKey: ["y"] }).fetchAll(), 403);
      await fails(seen.items.query("SELECT * FROM c").fetchAll(), 403);
    });
    await as([whole], async (database) => {
      const seen = database.container(container.id);
      assert.equal((await seen.item("1", ["x", "1"]).read()).statusCode, 200);
      await fails(seen.item("2", ["x", "2"]).read(), 403);
      await fails(seen.items.query("SELECT * FROM c", { partitionKey: ["x"] }).fetchAll(), 403);
    });
  });

  t.it("of an item reach this item, by name and by rid, until it is deleted", async () => {
    const { container, user } = await filled();
    const { resource: item } = await container.item("1", "a").read();
    const link = `${container.url}/docs/1`;
    const { resource: all } = await user.permissions.create({ id: "all", permissionMode: "All", resource: link, resourcePartitionKey: ["a"] });
    await as([all], async (database) => {
      const seen = database.container(container.id);
      const tokens = { headers: { authorization: encodeURIComponent(all._token), ...key("a") } };
      assert.equal((await t.rest.get(`/${link}`, tokens)).json.n, 1);
      assert.equal((await t.rest.get(`/${item._self}`, tokens)).json.n, 1);
      assert.equal((await seen.item("1", "a").patch([{ op: "set", path: "/n", value: 11 }])).resource.n, 11);
      assert.equal((await t.rest.put(`/${item._self}`, { id: "1", pk: "a", n: 12 }, tokens)).status, 200);
      refused(await t.rest.get(`/${container.url}/docs/2`, tokens), 403);
      refused(await t.rest.get(`/${container.url}/docs/3`, { headers: { ...tokens.headers, ...key("b") } }), 403);
      refused(await t.rest.get(`/${container.url}/docs/1`, { headers: { ...tokens.headers, ...key("b") } }), 403);
      refused(await t.rest.get(`/${container.url}/docs`, tokens), 403);
      refused(await t.rest.post(`/${container.url}/docs`, { query: "SELECT * FROM c" }, { headers: { ...tokens.headers, "x-ms-documentdb-isquery": "True" } }), 403);
      refused(await t.rest.post(`/${container.url}/docs`, { id: "1", pk: "a" }, { headers: { ...tokens.headers, "x-ms-documentdb-is-upsert": "True" } }), 403);
      assert.equal((await t.rest.delete(`/${link}`, tokens)).status, 204);
      await container.items.create({ id: "1", pk: "a", n: 100 });
      refused(await t.rest.get(`/${link}`, tokens), 403);
      refused(await t.rest.get(`/${item._self}`, tokens), 403);
      refused(await t.rest.put(`/${link}`, { id: "1", pk: "a", n: 101 }, tokens), 403);
    });
  });

  t.it("of an item by its rid alone need no partition key", async () => {
    const { container, user } = await filled();
    const { resource: item } = await container.item("3", "b").read();
    const { resource: permission } = await user.permissions.create({ id: "rid", permissionMode: "Read", resource: item._self });
    const headers = { authorization: encodeURIComponent(permission._token), ...key("b") };
    assert.equal((await t.rest.get(`/${container.url}/docs/3`, { headers })).status, 200);
    assert.equal((await t.rest.get(`/${item._self}`, { headers })).status, 200);
    refused(await t.rest.get(`/${container.url}/docs/1`, { headers: { ...headers, ...key("a") } }), 403);
  });

  t.it("of an item in a container without a partition key", async () => {
    const rest = t.newRest({ version: "2015-12-16" });
    const id = t.name("fixed");
    const made = await rest.post(`${t.databasePath}/colls`, { id });
    assert.equal(made.status, 201, made.text);
    for (const name of ["1", "2"]) await rest.post(`${t.databasePath}/colls/${id}/docs`, { id: name });
    const { user } = await t.database.users.create({ id: t.name() });
    const link = `dbs/${t.database.id}/colls/${id}/docs/1`;
    const { resource: permission } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: link });
    await fails(user.permissions.create({ id: "q", permissionMode: "Read", resource: `dbs/${t.database.id}/colls/${id}`, resourcePartitionKey: ["a"] }), 400);
    const headers = { authorization: encodeURIComponent(permission._token) };
    assert.equal((await rest.get(`/${link}`, { headers })).status, 200);
    refused(await rest.get(`/dbs/${t.database.id}/colls/${id}/docs/2`, { headers }), 403);
    rest.close();
  });

  t.it("are void once their permission is changed or deleted", async () => {
    const { container, user, permission } = await filled();
    const read = (token) => t.rest.get(`/${container.url}`, { headers: { authorization: encodeURIComponent(token) } });
    const { resource: second } = await user.permission("p").read();
    assert.equal((await read(permission._token)).status, 200);
    assert.equal((await read(second._token)).status, 200, "both hold: reading changes nothing");
    const { resource: changed } = await user.permission("p").replace({ id: "p", permissionMode: "All", resource: container.url });
    refused(await read(permission._token), 403);
    refused(await read(second._token), 403);
    assert.equal((await read(changed._token)).status, 200);
    await user.replace({ id: t.name("renamed") });
    assert.equal((await read(changed._token)).status, 200, "a user's name is no part of it");
  });

  t.it("may be sent as they are or percent-encoded", async () => {
    const { container, permission } = await filled();
    for (const authorization of [permission._token, encodeURIComponent(permission._token), permission._token.slice(0, -1), permission._token.replace("ver=1&", "ver=1.0&")]) {
      assert.equal((await t.rest.get(`/${container.url}`, { headers: { authorization } })).status, 200, authorization);
    }
  });

  t.it("with names that need encoding", async () => {
    const container = await t.container({ id: t.name("100% ñandú") });
    const { user } = await t.database.users.create({ id: t.name("é") });
    const links = [`${t.database.url}/colls/${container.id}`, `${t.database.url}/colls/${encodeURIComponent(container.id)}`];
    for (const [i, resource] of links.entries()) {
      const { resource: permission } = await user.permissions.create({ id: `p${i}`, permissionMode: "Read", resource });
      assert.equal(permission.resource, resource);
      const answer = await t.rest.get(`${t.databasePath}/colls/${encodeURIComponent(container.id)}`, { headers: { authorization: encodeURIComponent(permission._token) } });
      assert.equal(answer.status, 200, answer.text);
      await user.permission(`p${i}`).delete();
    }
  });
});

suite(
  "tokens that live for a second",
  (t) => {
    t.it("end when they said", async () => {
      const { container, user } = await make(t);
      const { resource } = await user.permission("p").read({ resourceTokenExpirySeconds: 1 });
      const { resource: longer } = await user.permission("p").read();
      const read = (token) => t.rest.get(`/${container.url}`, { headers: { authorization: encodeURIComponent(token) } });
      await eventually("the token's time is over", async () => (await read(resource._token)).status !== 200, 5000);
      refused(await read(resource._token), 403, { text: "The authorization token is not valid at the current time. Please create another token and retry" });
      assert.equal((await read(longer._token)).status, 200);
    });
  },
  { flags: ["--token-seconds-min", "1"], schemes: ["http"] },
);

async function makeOne(rest, definition = {}) {
  await rest.post("/dbs", { id: "d" });
  await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
  await rest.post("/dbs/d/users", { id: "u" });
  const made = await rest.post("/dbs/d/users/u/permissions", { id: "p", permissionMode: "All", resource: "dbs/d/colls/c", ...definition });
  assert.equal(made.status, 201, made.text);
  return made.json;
}

describe("users and permissions", () => {
  it("are there after a restart, and their tokens hold", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-users-"));
    const server = await Server.start({ data });
    let rest = new Rest({ server });
    const made = await makeOne(rest, { resourcePartitionKey: ["ñ"] });
    rest.close();
    await server.stop();
    const again = await Server.start({ data });
    rest = new Rest({ server: again });
    const headers = { authorization: encodeURIComponent(made._token), "x-ms-documentdb-partitionkey": '["\\u00f1"]' };
    assert.equal((await rest.post("/dbs/d/colls/c/docs", { id: "1", pk: "ñ" }, { headers })).status, 201);
    refused(await rest.get("/dbs/d/colls/c/docs/1", { headers: { ...headers, ...key("n") } }), 403);
    const read = (await rest.get("/dbs/d/users/u/permissions/p")).json;
    assert.deepEqual({ ...read, _token: 0 }, { ...made, _token: 0 });
    assert.equal((await rest.post("/dbs/d/users", { id: "v" })).status, 201);
    rest.close();
    await again.stop();
    rmSync(data, { recursive: true });
  });

  it("lose their tokens with the primary key, and only with it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tesela-users-"));
    const file = join(folder, "keys");
    const keys = [randomBytes(64), randomBytes(64)].map((bytes) => bytes.toString("base64"));
    writeFileSync(file, keys.join("\n"), { mode: 0o600 });
    const server = await Server.start({ flags: ["--key-file", file] });
    const rest = new Rest({ server, key: keys[1] });
    const { _token } = await makeOne(new Rest({ server, key: keys[0] }));
    const read = (token) => rest.get("/dbs/d/colls/c", { headers: { authorization: encodeURIComponent(token) } });
    const regenerate = async (kind, secret) => {
      const answer = await rest.post("/_tesela/keys/regenerate", { kind }, { sign: false, headers: { authorization: `Bearer ${secret}` } });
      assert.equal(answer.status, 200, answer.text);
    };
    await regenerate("secondary", keys[0]);
    assert.equal((await read(_token)).status, 200);
    rest.key = keys[0];
    await regenerate("primary", keys[0]);
    refused(await read(_token), 401);
    rest.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
});
