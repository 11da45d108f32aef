// Stored procedures, triggers and user-defined functions as resources: create, read, list, query, replace, delete; names and etags;
// restarts and deletion with their container. Other files test running them.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TriggerOperation, TriggerType } from "@azure/cosmos";
import { assert, suite, fails, refused, checkStamp, ridBytes, Rest, Server, withoutSystem } from "./harness.js";

const already = "Resource with specified id, name, or unique index already exists.";
const notFound = "Entity with the specified id does not exist in the system.";

// The three kinds differ only in names.
const kinds = [
  { word: "sprocs", feed: "StoredProcedures", nibble: 8, all: (s) => s.storedProcedures, one: (s, id) => s.storedProcedure(id), rest: {}, most: 100 },
  { word: "udfs", feed: "UserDefinedFunctions", nibble: 6, all: (s) => s.userDefinedFunctions, one: (s, id) => s.userDefinedFunction(id), rest: {}, most: 50 },
  {
    word: "triggers",
    feed: "Triggers",
    nibble: 7,
    all: (s) => s.triggers,
    one: (s, id) => s.trigger(id),
    rest: { triggerType: TriggerType.Pre, triggerOperation: TriggerOperation.All },
    most: 100,
  },
];

suite("scripts", (t) => {
  const ids = (list) => list.map((one) => one.id);

  for (const { word, feed, nibble, all, one, rest, most } of kinds) {
    const definition = (id, body = "function () { return 1; }") => ({ id, body, ...rest });

    t.it(`${word} are created with the service's properties`, async () => {
      const container = await t.container();
      const { resource: parent } = await container.read();
      const { resource, statusCode, headers, requestCharge } = await all(container.scripts).create(definition("a name ñ"));
      assert.equal(statusCode, 201);
      assert.deepEqual(withoutSystem(resource), definition("a name ñ"));
      assert.deepEqual(Object.keys(resource).filter((name) => name.startsWith("_")).sort(), ["_etag", "_rid", "_self", "_ts"]);
      checkStamp(resource);
      assert.equal(headers.etag, resource._etag);
      const bytes = ridBytes(resource._rid);
      assert.equal(bytes.length, 16);
      assert.deepEqual(bytes.subarray(0, 8), ridBytes(parent._rid));
      assert.equal(bytes[15] >> 4, nibble);
      assert.equal(resource._self, `${parent._self}${word}/${resource._rid}/`);
      assert.equal(requestCharge, 4.95);
    });

    t.it(`${word} may be given as functions`, async () => {
      const container = await t.container();
      const body = function (x) {
        return x * 2;
      };
      const { resource } = await all(container.scripts).create(definition("f", body));
      assert.equal(resource.body, body.toString());
    });

    t.it(`${word} are read by name and by _rid`, async () => {
      const container = await t.container();
      const { resource } = await all(container.scripts).create(definition("a"));
      assert.deepEqual((await one(container.scripts, "a").read()).resource, resource);
      const bySelf = await t.rest.get(`/${resource._self}`, { byRid: true });
      assert.equal(bySelf.status, 200, bySelf.text);
      assert.deepEqual(bySelf.json, resource);
      const same = await t.rest.get(`/${resource._self}`, { byRid: true, headers: { "if-none-match": resource._etag } });
      assert.equal(same.status, 304);
      assert.equal(same.bytes.length, 0);
      await fails(one(container.scripts, "nobody").read(), 404, { text: notFound });
      await fails(one(t.database.container("nowhere").scripts, "a").read(), 404, { substatus: 1003 });
      const other = kinds.find((kind) => kind.word !== word);
      await fails(other.one(container.scripts, "a").read(), 404);
    });

    t.it(`${word} are replaced, also by another name`, async () => {
      const container = await t.container();
      const { resource: first } = await all(container.scripts).create(definition("a"));
      await all(container.scripts).create(definition("b"));
      const { resource: second, statusCode } = await one(container.scripts, "a").replace(definition("a", "function () { return 2; }"));
      assert.equal(statusCode, 200);
      assert.equal(second._rid, first._rid);
      assert.notEqual(second._etag, first._etag);
      assert.equal((await one(container.scripts, "a").read()).resource.body, "function () { return 2; }");
      await fails(one(container.scripts, "a").replace(definition("b")), 409, { text: already });
      const { resource: third } = await one(container.scripts, "a").replace(definition("z"));
      assert.equal(third._rid, first._rid);
      await fails(one(container.scripts, "a").read(), 404);
      assert.deepEqual(ids((await all(container.scripts).readAll().fetchAll()).resources), ["z", "b"]);
      await fails(one(container.scripts, "nobody").replace(definition("nobody")), 404, { text: notFound });
    });

    t.it(`${word} are replaced and deleted by etag`, async () => {
      const container = await t.container();
      const { resource: first } = await all(container.scripts).create(definition("a"));
      const { resource: second } = await one(container.scripts, "a").replace(definition("a", "2"));
      const onlyIf = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
      await fails(one(container.scripts, "a").replace(definition("a", "3"), onlyIf(first._etag)), 412);
      await fails(one(container.scripts, "a").delete(onlyIf(first._etag)), 412);
      assert.equal((await one(container.scripts, "a").read()).resource.body, "2");
      assert.equal((await one(container.scripts, "a").delete(onlyIf(second._etag))).statusCode, 204);
      await fails(one(container.scripts, "a").delete(), 404, { text: notFound });
      const { resource: again } = await all(container.scripts).create(definition("a"));
      assert.notEqual(again._rid, first._rid, "a number is given out once");
    });

    t.it(`${word} are listed in pages and found by query`, async () => {
      const container = await t.container();
      const made = Array.from({ length: 7 }, (_, i) => `s${i}`);
      for (const id of made) await all(container.scripts).create(definition(id, `function () { return ${id.slice(1)}; }`));
      assert.deepEqual(ids((await all(container.scripts).readAll().fetchAll()).resources), made);
      const pages = [];
      const iterator = all(container.scripts).readAll({ maxItemCount: 3 });
      while (iterator.hasMoreResults()) pages.push(ids((await iterator.fetchNext()).resources ?? []));
      assert.deepEqual(pages.flat(), made);
      assert.ok(pages.every((page) => page.length <= 3));
      const query = async (text, parameters = []) => (await all(container.scripts).query({ query: text, parameters }).fetchAll()).resources;
      assert.deepEqual(ids(await query("SELECT * FROM r WHERE r.id = @id", [{ name: "@id", value: "s4" }])), ["s4"]);
      assert.deepEqual(await query("SELECT VALUE r.id FROM r WHERE CONTAINS(r.body, 'return 5') OR r.id > 's5' ORDER BY r.id DESC"), ["s6", "s5"]);
      assert.deepEqual(await query("SELECT VALUE COUNT(1) FROM r"), [7]);
      assert.deepEqual((await all((await t.container()).scripts).readAll().fetchAll()).resources, [], "of this container only");
      const { resource: parent } = await container.read();
      const { json } = await t.rest.get(`${t.databasePath}/colls/${container.id}/${word}`);
      assert.equal(json._rid, parent._rid);
      assert.equal(json._count, 7);
      assert.deepEqual(ids(json[feed]), made);
      await fails(all(t.database.container("nowhere").scripts).readAll().fetchAll(), 404);
    });

    t.it(`${word} are refused when they are wrong`, async () => {
      const path = await t.containerPath();
      const post = (body) => t.rest.post(`${path}/${word}`, body);
      refused(await post({ ...rest, id: "a" }), 400, { text: "required properties - 'body; ' - are missing" });
      refused(await post({ ...rest, body: "x" }), 400, { text: "required properties - 'id; ' - are missing" });
      for (const body of [7, {}, [], true]) refused(await post(definition("a", body)), 400, { text: "'body' must be a string" });
      for (const id of ["a/b", "a\\b", "a#b", "a?b", "a ", "", "x".repeat(256)]) refused(await post(definition(id)), 400);
      refused(await post([definition("a")]), 400);
      refused(await post("{"), 400);
      refused(await post(definition("a", "x".repeat(2 * 1024 * 1024))), 413, { text: "Request size is too large" });
      const large = await post(definition("x".repeat(255), "x".repeat(2_000_000)));
      assert.equal(large.status, 201, large.text.slice(0, 300));
      assert.equal(large.json.body.length, 2_000_000);
      refused(await t.rest.post(`${t.databasePath}/colls/nowhere/${word}`, definition("a")), 404, { substatus: 1003 });
    });

    t.it(`${word} are ${most} at most in a container`, async () => {
      const path = await t.containerPath();
      const answers = await Promise.all(Array.from({ length: most }, (_, i) => t.rest.post(`${path}/${word}`, definition(`s${i}`))));
      assert.ok(answers.every(({ status }) => status === 201));
      refused(await t.rest.post(`${path}/${word}`, definition("more")), 403, { text: `already has ${most}` });
      assert.equal((await t.rest.delete(`${path}/${word}/s3`)).status, 204);
      assert.equal((await t.rest.post(`${path}/${word}`, definition("more"))).status, 201);
    });

    t.it(`${word} of one name: one of many clients makes it`, async () => {
      const container = await t.container();
      const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => all(container.scripts).create(definition("a", `${i}`))));
      assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
      assert.ok(results.every(({ status, reason }) => status === "fulfilled" || reason.code === 409));
    });
  }

  t.it("triggers keep their words as they were given, whatever their case", async () => {
    const { scripts } = await t.container();
    for (const [triggerType, triggerOperation] of [["Pre", "All"], ["Post", "Create"], ["pre", "replace"], ["POST", "DELETE"], ["Pre", "Update"], ["Pre", "Upsert"]]) {
      const id = `${triggerType} ${triggerOperation}`;
      const { resource } = await scripts.triggers.create({ id, body: "function () {}", triggerType, triggerOperation });
      assert.deepEqual([resource.triggerType, resource.triggerOperation], [triggerType, triggerOperation]);
    }
    await fails(scripts.triggers.create({ id: "a", body: "", triggerType: "Pre" }), 400, { text: "triggerOperation" });
    await fails(scripts.triggers.create({ id: "a", body: "x", triggerType: "Instead", triggerOperation: "All" }), 400, { text: "TriggerType 'Instead'" });
    await fails(scripts.triggers.create({ id: "a", body: "x", triggerType: "Pre", triggerOperation: "Insert" }), 400, { text: "TriggerOperation 'Insert'" });
  });

  t.it("go with their container", async () => {
    const first = await t.container();
    for (const { all, rest } of kinds) await all(first.scripts).create({ id: "a", body: "function () {}", ...rest });
    await first.delete();
    const { container: second } = await t.database.containers.create({ id: first.id, partitionKey: "/pk" });
    for (const { all } of kinds) assert.deepEqual((await all(second.scripts).readAll().fetchAll()).resources, []);
  });

  t.it("do not spoil the session of items", async () => {
    const container = await t.container();
    for (let i = 0; i < 5; i++) await container.scripts.userDefinedFunctions.create({ id: `f${i}`, body: "function () {}" });
    await container.scripts.userDefinedFunctions.readAll().fetchAll();
    await container.items.create({ id: "1", pk: "a" });
    await container.scripts.userDefinedFunction("f1").delete();
    assert.equal((await container.item("1", "a").read()).resource.id, "1");
  });
});

describe("scripts over a restart", () => {
  it("are all there, as they were", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-scripts-"));
    try {
      let server = await Server.start({ data });
      let rest = new Rest({ server });
      await rest.post("/dbs", { id: "d" });
      await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
      for (const { word, rest: more } of kinds) {
        for (const id of ["a", "b", "c"]) await rest.post(`/dbs/d/colls/c/${word}`, { id, body: `function ${id}() {}`, ...more });
        await rest.put(`/dbs/d/colls/c/${word}/a`, { id: "z", body: "function z() {}", ...more });
        await rest.delete(`/dbs/d/colls/c/${word}/b`);
      }
      const see = async () => Promise.all(kinds.map(async ({ word }) => (await rest.get(`/dbs/d/colls/c/${word}`)).json));
      const before = await see();
      assert.deepEqual(before.map((list) => list._count), [2, 2, 2]);
      rest.close();
      server.child.kill("SIGKILL"); // acknowledged writes must survive a crash
      await server.ended;
      server = await Server.start({ data });
      rest = new Rest({ server });
      assert.deepEqual(await see(), before);
      const { json } = await rest.post("/dbs/d/colls/c/sprocs", { id: "b", body: "function () {}" });
      assert.ok(!JSON.stringify(before).includes(json._rid));
      rest.close();
      await server.stop();
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  });
});
