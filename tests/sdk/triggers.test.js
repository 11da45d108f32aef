// Triggers on item writes: the documentation's samples first, then what triggers may and may not do. A write and its triggers are one
// transaction.

import { ChangeFeedStartFrom, TriggerOperation, TriggerType } from "@azure/cosmos";
import { assert, eventually, fails, key, refused, suite, withoutSystem } from "./harness.js";

// ---- the documentation's samples ----

function validateToDoItemTimestamp() {
  const request = getContext().getRequest();
  const item = request.getBody();
  if (!("timestamp" in item)) item.timestamp = new Date().getTime();
  request.setBody(item);
}

function validateName() {
  const item = getContext().getRequest().getBody();
  if (typeof item.name !== "string" || item.name === "") throw new Error("an item must have a name");
}

function updateMetadata() {
  const context = getContext();
  const collection = context.getCollection();
  const created = context.getResponse().getBody();
  const accepted = collection.queryDocuments(collection.getSelfLink(), 'SELECT * FROM root r WHERE r.id = "_metadata"', (error, documents) => {
    if (error) throw new Error("Error" + error.message);
    if (documents.length !== 1) throw "Unable to find metadata document";
    const metadata = documents[0];
    metadata.createdDocuments += 1;
    metadata.createdNames += " " + created.id;
    const replaced = collection.replaceDocument(metadata._self, metadata, (error) => {
      if (error) throw "Unable to update metadata, abort";
    });
    if (!replaced) throw "Unable to update metadata, abort";
  });
  if (!accepted) throw "Unable to update metadata, abort";
}

const pre = (...names) => ({ preTriggerInclude: names });
const post = (...names) => ({ postTriggerInclude: names });

suite("triggers", (t) => {
  // Creates a container with these triggers: { name: [function, type, operation] }.
  async function withTriggers(triggers, body) {
    const container = await t.container(body);
    for (const [id, [script, triggerType, triggerOperation = TriggerOperation.All]] of Object.entries(triggers)) {
      await container.scripts.triggers.create({ id, body: script.toString(), triggerType, triggerOperation });
    }
    return container;
  }

  const idsIn = async (container, pk) => (await container.items.query("SELECT VALUE c.id FROM c", { partitionKey: pk }).fetchAll()).resources.sort();

  t.it("add what an item lacks before it is created", async () => {
    const container = await withTriggers({ stamp: [validateToDoItemTimestamp, TriggerType.Pre, TriggerOperation.Create] });
    const before = Date.now();
    const { resource, statusCode } = await container.items.create({ id: "1", pk: "a", name: "Groceries" }, pre("stamp"));
    assert.equal(statusCode, 201);
    assert.ok(resource.timestamp >= before - 1000 && resource.timestamp <= Date.now() + 1000, `${resource.timestamp}`);
    assert.deepEqual((await container.item("1", "a").read()).resource, resource);
    const { resource: given } = await container.items.create({ id: "2", pk: "a", timestamp: 7 }, pre("stamp"));
    assert.equal(given.timestamp, 7);
    const { resource: unnamed } = await container.items.create({ id: "3", pk: "a" });
    assert.equal(unnamed.timestamp, undefined, "triggers run when they are named, and only then");
  });

  t.it("refuse what is not valid", async () => {
    const container = await withTriggers({ validate: [validateName, TriggerType.Pre] });
    await fails(container.items.create({ id: "1", pk: "a" }, pre("validate")), 400, { text: "an item must have a name" });
    assert.deepEqual(await idsIn(container, "a"), []);
    await container.items.create({ id: "1", pk: "a", name: "x" }, pre("validate"));
    await fails(container.item("1", "a").replace({ id: "1", pk: "a", name: "" }, pre("validate")), 400, { text: "an item must have a name" });
    await fails(container.items.upsert({ id: "1", pk: "a" }, pre("validate")), 400, { text: "an item must have a name" });
    assert.equal((await container.item("1", "a").read()).resource.name, "x");
  });

  t.it("keep a metadata item up to date after each creation", async () => {
    const container = await withTriggers({ metadata: [updateMetadata, TriggerType.Post, TriggerOperation.Create] });
    await fails(container.items.create({ id: "0", pk: "a" }, post("metadata")), 400, { text: "Unable to find metadata document" });
    assert.deepEqual(await idsIn(container, "a"), [], "the item is not there without it");
    await container.items.create({ id: "_metadata", pk: "a", createdDocuments: 0, createdNames: "" });
    for (const id of ["1", "2", "3"]) {
      const { resource, statusCode } = await container.items.create({ id, pk: "a" }, post("metadata"));
      assert.equal(statusCode, 201);
      assert.equal(resource.id, id);
    }
    await fails(container.items.create({ id: "2", pk: "a" }, post("metadata")), 409);
    const { resource } = await container.item("_metadata", "a").read();
    assert.deepEqual(withoutSystem(resource), { id: "_metadata", pk: "a", createdDocuments: 3, createdNames: " 1 2 3" });
  });

  t.it("roll everything back when one throws", async () => {
    const writes = function () {
      const collection = getContext().getCollection();
      const item = getContext().getRequest().getBody();
      if (!collection.upsertDocument(collection.getSelfLink(), { id: `before-${item.id}`, pk: item.pk, n: item.n })) throw new Error("not accepted");
    };
    const throws = function () {
      const collection = getContext().getCollection();
      const item = getContext().getResponse().getBody();
      const accepted = collection.createDocument(collection.getSelfLink(), { id: `after-${item.id}`, pk: item.pk }, () => {
        if (item.throws) throw new Error("thrown at the end");
      });
      if (!accepted) throw new Error("not accepted");
    };
    const container = await withTriggers({ writes: [writes, TriggerType.Pre], throws: [throws, TriggerType.Post] });
    const both = { ...pre("writes"), ...post("throws") };
    await fails(container.items.create({ id: "1", pk: "a", throws: true }, both), 400, { text: "thrown at the end" });
    assert.deepEqual(await idsIn(container, "a"), []);
    await container.items.create({ id: "1", pk: "a", n: 1 }, both);
    assert.deepEqual(await idsIn(container, "a"), ["1", "after-1", "before-1"]);
    await fails(container.items.create({ id: "1", pk: "a", n: 2 }, both), 409);
    assert.equal((await container.item("before-1", "a").read()).resource.n, 1, "what the pre-trigger wrote goes with a write that fails");
  });

  t.it("run on create, replace, upsert and delete", async () => {
    const record = function () {
      const collection = getContext().getCollection();
      const request = getContext().getRequest();
      const body = request.getBody();
      const log = { id: `log-${request.getOperationType()}`, pk: "a", saw: body ? body.n : null };
      if (!collection.upsertDocument(collection.getSelfLink(), log)) throw new Error("not accepted");
    };
    const container = await withTriggers({ record: [record, TriggerType.Pre], after: [record, TriggerType.Post] });
    await container.items.create({ id: "1", pk: "a", n: 1 }, pre("record"));
    await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 }, pre("record"));
    await container.items.upsert({ id: "1", pk: "a", n: 3 }, pre("record"));
    await container.item("1", "a").delete(pre("record"));
    const logs = (await container.items.query("SELECT c.id, c.saw FROM c ORDER BY c.id", { partitionKey: "a" }).fetchAll()).resources;
    assert.deepEqual(logs, [
      { id: "log-Create", saw: 1 },
      { id: "log-Delete", saw: null },
      { id: "log-Replace", saw: 2 },
      { id: "log-Upsert", saw: 3 },
    ]);
  });

  t.it("are refused for operations that they were not defined for", async () => {
    const nothing = function () {};
    const operations = ["All", "Create", "Replace", "Delete", "Update", "Upsert"];
    const container = await withTriggers(Object.fromEntries(operations.map((operation) => [operation, [nothing, TriggerType.Pre, operation]])));
    const good = { Create: ["All", "Create"], Replace: ["All", "Replace", "Update"], Delete: ["All", "Delete"], Upsert: ["All", "Upsert"] };
    for (const operation of operations) {
      const tried = {
        Create: () => container.items.create({ id: `new-${operation}`, pk: "a" }, pre(operation)),
        Replace: () => container.item("1", "a").replace({ id: "1", pk: "a" }, pre(operation)),
        Upsert: () => container.items.upsert({ id: "1", pk: "a" }, pre(operation)),
        Delete: () => container.item("1", "a").delete(pre(operation)),
      };
      for (const [verb, write] of Object.entries(tried)) {
        await container.items.upsert({ id: "1", pk: "a" });
        if (good[verb].includes(operation)) await write();
        else await fails(write(), 400, { text: `Trigger '${operation}' was defined with operation type '${operation}', and therefore is invalid for '${verb}'` });
      }
    }
  });

  t.it("are refused at the wrong time, unknown, or too many", async () => {
    const nothing = function () {};
    const container = await withTriggers({ before: [nothing, TriggerType.Pre], after: [nothing, TriggerType.Post], more: [nothing, TriggerType.Pre] });
    const create = (options) => container.items.create({ id: "1", pk: "a" }, options);
    await fails(create(pre("after")), 400, { text: "'after'" });
    await fails(create(post("before")), 400, { text: "'before'" });
    await fails(create(pre("nobody")), 400, { text: "'nobody'" });
    await fails(create(pre("before", "more")), 400, { text: "only one" });
    await fails(create(post("after", "after")), 400, { text: "only one" });
    assert.deepEqual(await idsIn(container, "a"), []);
    const path = `${t.databasePath}/colls/${container.id}/docs`;
    const headers = { ...key("a"), "x-ms-documentdb-pre-trigger-include": "before, more", "x-ms-documentdb-pre-trigger-exclude": "more" };
    assert.equal((await t.rest.post(path, { id: "1", pk: "a" }, { headers })).status, 201, "one that is excluded does not count");
    const patch = await t.rest.patch(`${path}/1`, [{ op: "set", path: "/v", value: 1 }], { headers: { ...key("a"), "x-ms-documentdb-pre-trigger-include": "before" } });
    refused(patch, 400, { text: "Patch does not run triggers" });
    const batch = { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-post-trigger-include": "after" };
    refused(await t.rest.post(path, [{ operationType: "Read", id: "1" }], { headers: batch }), 400, { text: "A batch does not run triggers" });
  });

  t.it("leave alone what they only look at", async () => {
    const look = function () {
      getContext().getRequest().getBody().n = 7; // changed, but not set by setBody
    };
    const container = await withTriggers({ look: [look, TriggerType.Pre], after: [look, TriggerType.Post] });
    const text = '{"id":"1","pk":"a","n":9007199254740993,"d":1.0,"deep":{"n":-9007199254740995}}';
    const headers = { ...key("a"), "x-ms-documentdb-pre-trigger-include": "look", "x-ms-documentdb-post-trigger-include": "after" };
    const created = await t.rest.post(`${t.databasePath}/colls/${container.id}/docs`, text, { headers });
    assert.equal(created.status, 201, created.text);
    for (const { text: shown } of [created, await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/1`, { headers: key("a") })]) {
      assert.ok(shown.includes('"n":9007199254740993,') && shown.includes('"n":-9007199254740995}'), shown);
    }
  });

  t.it("write to the log that was asked for", async () => {
    const container = await withTriggers({ before: [() => console.log("before "), TriggerType.Pre], after: [() => console.log("after"), TriggerType.Post] });
    const { headers } = await container.items.create({ id: "1", pk: "a" }, { ...pre("before"), ...post("after"), enableScriptLogging: true });
    assert.equal(decodeURIComponent(headers["x-ms-documentdb-script-log-results"]), "before after");
    const { headers: none } = await container.items.create({ id: "2", pk: "a" }, pre("before"));
    assert.equal(none["x-ms-documentdb-script-log-results"], undefined);
  });

  t.it("cannot make another item of it", async () => {
    const change = function () {
      const request = getContext().getRequest();
      const item = request.getBody();
      Object.assign(item, item.change);
      request.setBody(item.whole === undefined ? item : item.whole);
    };
    const container = await withTriggers({ change: [change, TriggerType.Pre] });
    const create = (item) => container.items.create({ pk: "a", ...item }, pre("change"));
    assert.equal((await create({ id: "1", change: { id: "another" } })).resource.id, "another", "its id may be made");
    await fails(create({ id: "2", change: { pk: "b" } }), 400, { substatus: 1001 });
    await fails(create({ id: "3", change: { id: 7 } }), 400);
    await fails(create({ id: "4", change: { id: "a/b" } }), 400);
    for (const whole of [[1], "text", 7, null]) await fails(create({ id: "5", whole }), 400);
    const replace = (item) => container.item("another", "a").replace({ id: "another", pk: "a", ...item }, pre("change"));
    await fails(replace({ change: { pk: "b" } }), 400, { substatus: 1001 });
    assert.equal((await replace({ change: { n: 1 } })).resource.n, 1);
    assert.deepEqual(await idsIn(container, "a"), ["another"]);
  });

  t.it("see what the transaction has written, and others do not", async () => {
    const reads = function () {
      const collection = getContext().getCollection();
      const made = getContext().getResponse().getBody();
      const accepted = collection.readDocument(`${collection.getAltLink()}/docs/${made.id}`, (error, found) => {
        if (error) throw new Error(JSON.stringify(error));
        if (found._etag !== made._etag || found.n !== 5) throw new Error("another item");
        const replaced = collection.replaceDocument(found._self, { ...found, n: 6 }, (error) => {
          if (error) throw new Error(JSON.stringify(error));
        });
        if (!replaced) throw new Error("not accepted");
      });
      if (!accepted) throw new Error("not accepted");
    };
    const container = await withTriggers({ reads: [reads, TriggerType.Post] });
    await container.items.create({ id: "1", pk: "a", n: 5 }, post("reads"));
    assert.equal((await container.item("1", "a").read()).resource.n, 6);
  });

  t.it("may use functions in their queries", async () => {
    const count = function () {
      const collection = getContext().getCollection();
      const request = getContext().getRequest();
      const item = request.getBody();
      const text = item.wrong ? "SELECT VALUE udf.nobody(c.n) FROM c" : "SELECT VALUE udf.square(c.n) FROM c WHERE udf.odd(c.n) ORDER BY c.n";
      const accepted = collection.queryDocuments(collection.getSelfLink(), text, (error, squares) => {
        if (error) throw error;
        item.squares = squares;
        request.setBody(item);
      });
      if (!accepted) throw new Error("not accepted");
    };
    const container = await withTriggers({ count: [count, TriggerType.Pre] });
    await container.scripts.userDefinedFunctions.create({ id: "square", body: "function (n) { return n * n; }" });
    await container.scripts.userDefinedFunctions.create({ id: "odd", body: "function (n) { return n % 2 === 1; }" });
    for (let n = 1; n <= 6; n++) await container.items.create({ id: `${n}`, pk: "a", n });
    const { resource } = await container.items.create({ id: "sum", pk: "a" }, pre("count"));
    assert.deepEqual(resource.squares, [1, 9, 25]);
    await fails(container.items.create({ id: "wrong", pk: "a", wrong: true }, pre("count")), 400, { text: "nobody" });
  });

  t.it("keep conditions and preferences", async () => {
    const container = await withTriggers({ stamp: [validateToDoItemTimestamp, TriggerType.Pre] });
    const { resource: first } = await container.items.create({ id: "1", pk: "a" });
    await container.item("1", "a").replace({ id: "1", pk: "a", n: 1 });
    const condition = { accessCondition: { type: "IfMatch", condition: first._etag } };
    await fails(container.item("1", "a").replace({ id: "1", pk: "a", n: 2 }, { ...pre("stamp"), ...condition }), 412);
    assert.equal((await container.item("1", "a").read()).resource.n, 1);
    await fails(container.item("nobody", "a").replace({ id: "nobody", pk: "a" }, pre("stamp")), 404);
    const path = `${t.databasePath}/colls/${container.id}/docs`;
    const minimal = await t.rest.post(path, { id: "2", pk: "a" }, { headers: { ...key("a"), "x-ms-documentdb-pre-trigger-include": "stamp", prefer: "return=minimal" } });
    assert.equal(minimal.status, 201);
    assert.equal(minimal.bytes.length, 0);
    assert.match(minimal.headers.etag, /^"/);
    assert.match(minimal.headers["x-ms-session-token"], /^0:-1#\d+$/);
    const plain = await container.items.create({ id: "3", pk: "a", timestamp: 1 });
    const withTrigger = await container.items.create({ id: "4", pk: "a", timestamp: 1 }, pre("stamp"));
    assert.ok(withTrigger.requestCharge >= plain.requestCharge, "a trigger is not for nothing");
  });

  t.it("run with a token for the container or the key, and not with one for the item", async () => {
    const container = await withTriggers({ stamp: [validateToDoItemTimestamp, TriggerType.Pre] });
    await container.items.create({ id: "1", pk: "a" });
    const { user } = await t.database.users.create({ id: t.name("u") });
    const granted = [{ resource: container.url }, { resource: container.url, resourcePartitionKey: ["a"] }, { resource: container.item("1", "a").url, resourcePartitionKey: ["a"] }];
    const path = `${t.databasePath}/colls/${container.id}/docs/1`;
    const replace = async (permission, more) => {
      const { resource } = await user.permissions.create({ id: t.name("p"), permissionMode: "All", ...permission });
      const headers = { ...key("a"), authorization: encodeURIComponent(resource._token), ...more };
      return t.rest.put(path, { id: "1", pk: "a" }, { headers });
    };
    const [whole, ofKey, ofItem] = granted;
    for (const permission of [whole, ofKey]) {
      const answer = await replace(permission, { "x-ms-documentdb-pre-trigger-include": "stamp" });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(typeof answer.json.timestamp, "number");
      await user.permission((await user.permissions.readAll().fetchAll()).resources[0].id).delete(); // a user may have only one permission per resource
    }
    refused(await replace(ofItem, { "x-ms-documentdb-pre-trigger-include": "stamp" }), 403, { text: "does not run triggers" });
  });

  t.it("run when a replace changes the item's id, and may change it themselves", async () => {
    const rename = () => {
      const request = getContext().getRequest();
      request.setBody({ ...request.getBody(), id: "chosen" });
    };
    const note = () => {
      const collection = getContext().getCollection();
      const { id, _rid } = getContext().getResponse().getBody();
      collection.createDocument(collection.getSelfLink(), { id: "note", pk: "a", of: id, rid: _rid });
    };
    const refuse = () => {
      throw new Error("refused after the write");
    };
    const container = await withTriggers({ rename: [rename, TriggerType.Pre], note: [note, TriggerType.Post], refuse: [refuse, TriggerType.Post] });
    const made = (await container.items.create({ id: "1", pk: "a" })).resource;
    await container.items.create({ id: "taken", pk: "a" });
    const changes = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now("a") });
    await changes.readNext();

    await fails(container.item("1", "a").replace({ id: "2", pk: "a" }, post("refuse")), 400, { text: "refused after the write" });
    await fails(container.item("1", "a").replace({ id: "taken", pk: "a" }, post("note")), 409);
    assert.deepEqual(await idsIn(container, "a"), ["1", "taken"]);
    assert.deepEqual((await container.item("1", "a").read()).resource, made);

    const { resource: renamed } = await container.item("1", "a").replace({ id: "2", pk: "a", n: 1 }, post("note"));
    assert.equal(renamed.id, "2");
    assert.equal(renamed._rid, made._rid);
    assert.deepEqual(withoutSystem((await container.item("note", "a").read()).resource), { id: "note", pk: "a", of: "2", rid: made._rid });
    assert.deepEqual((await container.item("2", "a").read()).resource, renamed);
    const { resource: chosen } = await container.item("2", "a").replace({ id: "3", pk: "a" }, pre("rename"));
    assert.equal(chosen.id, "chosen");
    assert.equal(chosen._rid, made._rid);
    assert.deepEqual(await idsIn(container, "a"), ["chosen", "note", "taken"]);
    const page = await changes.readNext();
    assert.deepEqual(page.result.map(({ id }) => id), ["note", "chosen"]); // latest versions: one change of the renamed item
  });

  t.it("that do not end, or do not compile, are refused, and the server goes on", async () => {
    const container = await withTriggers({ endless: [() => { for (;;); }, TriggerType.Pre] });
    await container.scripts.triggers.create({ id: "broken", body: "function () { this is no JavaScript", triggerType: "Pre", triggerOperation: "All" });
    await fails(container.items.create({ id: "1", pk: "a" }, pre("broken")), 400);
    const late = await container.items.create({ id: "1", pk: "a" }, pre("endless")).catch((error) => error);
    assert.ok([400, 403, 408].includes(late.code), `${late.code} ${late.message}`);
    assert.deepEqual(await idsIn(container, "a"), []);
    assert.equal((await container.items.create({ id: "1", pk: "a" })).statusCode, 201);
  });

  t.it("of many clients at once count exactly", async () => {
    const container = await withTriggers({ metadata: [updateMetadata, TriggerType.Post, TriggerOperation.Create] });
    await container.items.create({ id: "_metadata", pk: "a", createdDocuments: 0, createdNames: "" });
    let made = 0;
    await Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        for (let i = 0; i < 5; i++) {
          await eventually("it is created", async () => {
            const { code } = await container.items.create({ id: `${client}-${i}`, pk: "a" }, post("metadata")).then(() => ({ code: 201 }), (error) => error);
            assert.ok([201, 429, 449].includes(code), `${code}`);
            return code === 201;
          });
          made++;
        }
      }),
    );
    const { resource } = await container.item("_metadata", "a").read();
    assert.equal(resource.createdDocuments, made);
    assert.equal(new Set(resource.createdNames.trim().split(" ")).size, made);
    assert.equal((await idsIn(container, "a")).length, made + 1);
  });

  t.it("work in a fixed container and under a hierarchical key", async () => {
    const deep = await withTriggers({ stamp: [validateToDoItemTimestamp, TriggerType.Pre] }, { partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } });
    const { resource } = await deep.items.create({ id: "1", a: "x", b: "y" }, pre("stamp"));
    assert.equal(typeof resource.timestamp, "number");
    const path = `${t.databasePath}/colls/${t.name("fixed")}`;
    const old = { headers: { "x-ms-version": "2018-06-18" } };
    const made = await t.rest.post(`${t.databasePath}/colls`, { id: path.split("/").at(-1) }, old);
    assert.equal(made.status, 201, made.text);
    const body = validateToDoItemTimestamp.toString();
    assert.equal((await t.rest.post(`${path}/triggers`, { id: "stamp", body, triggerType: "Pre", triggerOperation: "Create" })).status, 201);
    const created = await t.rest.post(`${path}/docs`, { id: "1" }, { headers: { "x-ms-documentdb-pre-trigger-include": "stamp" } });
    assert.equal(created.status, 201, created.text);
    assert.equal(typeof created.json.timestamp, "number");
  });
});
