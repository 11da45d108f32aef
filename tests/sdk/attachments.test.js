// Attachments of an item by the REST API (the SDK no longer supports them), and the feed of conflicts, which is always empty.

import { assert, suite, fails, refused, key, ridBytes, checkStamp, withoutSystem, eventually, sleep } from "./harness.js";

const picture = (id, more = {}) => ({ id, contentType: "image/png", media: `https://files.example/${id}.png`, ...more });

suite("attachments", (t) => {
  // Creates an item and returns the path of its attachments.
  async function attachments(body = {}, settings = {}) {
    const container = await t.containerPath(settings);
    const item = (await t.rest.post(`${container}/docs`, { id: "1", pk: "a", ...body }, { headers: key("a") })).json;
    return { container, item, docs: `${container}/docs`, path: `${container}/docs/1/attachments` };
  }
  const options = (more = {}) => ({ headers: { ...key("a"), ...more } });

  t.it("can be created, read, listed, replaced and deleted", async () => {
    const { path, item } = await attachments();
    const made = await t.rest.post(path, picture("front", { width: 640 }), options());
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(withoutSystem(made.json), picture("front", { width: 640 }));
    checkStamp(made.json);
    assert.equal(made.headers.etag, made.json._etag);
    assert.ok(made.charge > 0);
    const bytes = ridBytes(made.json._rid);
    assert.equal(bytes.length, 20);
    assert.deepEqual(bytes.subarray(0, 16), ridBytes(item._rid));
    assert.equal(made.json._self, `${item._self}attachments/${made.json._rid}/`);

    const read = await t.rest.get(`${path}/front`, options());
    assert.equal(read.status, 200);
    assert.deepEqual(read.json, made.json);
    assert.equal((await t.rest.get(`${path}/front`, options({ "if-none-match": made.json._etag }))).status, 304);

    const replaced = await t.rest.put(`${path}/front`, picture("front", { width: 320 }), options({ "if-match": made.json._etag }));
    assert.equal(replaced.status, 200, replaced.text);
    assert.equal(replaced.json.width, 320);
    assert.equal(replaced.json._rid, made.json._rid);
    assert.notEqual(replaced.json._etag, made.json._etag);
    refused(await t.rest.put(`${path}/front`, picture("front"), options({ "if-match": made.json._etag })), 412);

    await t.rest.post(path, picture("back"), options());
    const list = (await t.rest.get(path, options())).json;
    assert.deepEqual(Object.keys(list), ["_rid", "Attachments", "_count"]);
    assert.equal(list._rid, item._rid);
    assert.equal(list._count, 2);
    assert.deepEqual(list.Attachments.map((each) => each.id), ["front", "back"]);

    const gone = await t.rest.delete(`${path}/front`, options());
    assert.equal(gone.status, 204);
    assert.equal(gone.text, "");
    refused(await t.rest.get(`${path}/front`, options()), 404);
    refused(await t.rest.delete(`${path}/front`, options()), 404);
    refused(await t.rest.put(`${path}/front`, picture("front"), options()), 404);
    const again = await t.rest.post(path, picture("front"), options());
    assert.notEqual(again.json._rid, made.json._rid, "a rid is given out once");
  });

  t.it("leave their item as it is, and advance the session token", async () => {
    const { path, docs, item } = await attachments();
    const lsn = (answer) => Number(answer.headers["x-ms-session-token"].split("#")[1]);
    const made = await t.rest.post(path, picture("1"), options());
    const read = await t.rest.get(`${docs}/1`, options({ "x-ms-session-token": made.headers["x-ms-session-token"] }));
    assert.deepEqual(read.json, item);
    assert.equal(lsn(read), lsn(made));
    assert.equal(lsn(await t.rest.delete(`${path}/1`, options())), lsn(made) + 1);
    refused(await t.rest.get(`${path}`, options({ "x-ms-session-token": "0:-1#999999" })), 404, { substatus: 1002 });
  });

  t.it("can be upserted", async () => {
    const { path } = await attachments();
    const upsert = (body, more = {}) => t.rest.post(path, body, options({ "x-ms-documentdb-is-upsert": "True", ...more }));
    const made = await upsert(picture("1"));
    assert.equal(made.status, 201);
    const changed = await upsert(picture("1", { note: "x" }));
    assert.equal(changed.status, 200);
    assert.equal(changed.json._rid, made.json._rid);
    refused(await upsert(picture("1"), { "if-match": made.json._etag }), 412);
    refused(await t.rest.post(path, picture("1"), options()), 409);
    assert.equal((await t.rest.get(path, options())).json._count, 1);
  });

  t.it("are found by rid as well", async () => {
    const { path, item, container } = await attachments();
    const made = (await t.rest.post(path, picture("1"), options())).json;
    const self = `/${made._self.replace(/\/$/, "")}`;
    assert.deepEqual((await t.rest.get(self, { ...options(), byRid: true })).json, made);
    assert.equal((await t.rest.get(`/${item._self}attachments`, { ...options(), byRid: true })).json._count, 1);
    assert.equal((await t.rest.put(self, picture("1", { v: 2 }), { ...options(), byRid: true })).json.v, 2);
    refused(await t.rest.put(self, picture("other"), { ...options(), byRid: true }), 400, { text: "cannot be changed" });
    assert.equal((await t.rest.delete(self, { ...options(), byRid: true })).status, 204);
    assert.equal((await t.rest.get(path, options())).json._count, 0);
    assert.ok(container);
  });

  t.it("come in pages", async () => {
    const { path } = await attachments();
    for (let i = 0; i < 7; i++) await t.rest.post(path, picture(`n${i}`), options());
    await t.rest.delete(`${path}/n3`, options());
    const seen = [];
    let continuation;
    do {
      const page = await t.rest.get(path, options({ "x-ms-max-item-count": "2", ...(continuation && { "x-ms-continuation": continuation }) }));
      assert.ok(page.json._count <= 2);
      assert.equal(Number(page.headers["x-ms-item-count"]), page.json._count);
      seen.push(...page.json.Attachments.map((each) => each.id));
      continuation = page.headers["x-ms-continuation"];
    } while (continuation);
    assert.deepEqual(seen, ["n0", "n1", "n2", "n4", "n5", "n6"]);
    refused(await t.rest.get(path, options({ "x-ms-continuation": "x" })), 400);
  });

  t.it("need an item, a partition key, an id, a type and a link", async () => {
    const { path, docs } = await attachments();
    refused(await t.rest.post(`${docs}/other/attachments`, picture("1"), options()), 404, { substatus: 1003 });
    refused(await t.rest.get(`${docs}/other/attachments`, options()), 404, { substatus: 1003 });
    refused(await t.rest.get(`${docs}/other/attachments/1`, options()), 404, { substatus: 1003 });
    refused(await t.rest.post(path, picture("1"), { headers: key("b") }), 404, { substatus: 1003 });
    refused(await t.rest.get(path), 400);
    refused(await t.rest.post(path, picture("1")), 400);
    for (const name of ["id", "contentType", "media"]) {
      refused(await t.rest.post(path, { ...picture("1"), [name]: undefined }, options()), 400, { text: `'${name}'` });
      refused(await t.rest.post(path, { ...picture("1"), [name]: 7 }, options()), 400, { text: `'${name}'` });
    }
    refused(await t.rest.post(path, picture("a/b"), options()), 400);
    refused(await t.rest.post(path, picture("x".repeat(2000)), options()), 400);
    refused(await t.rest.post(path, "[]", options()), 400);
    await t.rest.post(path, picture("1"), options());
    refused(await t.rest.put(`${path}/1`, picture("2"), options()), 400, { text: "cannot be changed" });
    refused(await t.rest.patch(`${path}/1`, {}, options()), 405);
    assert.equal((await t.rest.get(path, options())).json._count, 1);
  });

  t.it("take no bytes, and cannot be queried", async () => {
    const { path } = await attachments();
    const upload = await t.rest.post(path, Buffer.from([0x89, 0x50, 0x4e, 0x47]), options({ "content-type": "image/png", slug: "front.png" }));
    refused(upload, 400, { text: "Media cannot be uploaded here" });
    const query = { query: "SELECT * FROM c", parameters: [] };
    refused(await t.rest.post(path, query, options({ "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" })), 501);
  });

  t.it("are within bounds: 256 of them, 1 MB together", async () => {
    const { path } = await attachments();
    const many = [];
    for (let i = 0; i < 256; i++) many.push(t.rest.post(path, picture(`n${i}`), options()));
    for (const made of await Promise.all(many)) assert.equal(made.status, 201);
    refused(await t.rest.post(path, picture("one too many"), options()), 403, { text: "256" });
    assert.equal((await t.rest.put(`${path}/n7`, picture("n7", { v: 1 }), options())).status, 200);
    const large = (await attachments()).path;
    assert.equal((await t.rest.post(large, picture("1", { note: "x".repeat(900_000) }), options())).status, 201);
    refused(await t.rest.post(large, picture("2", { note: "x".repeat(300_000) }), options()), 413, { text: "1024 KB" });
    assert.equal((await t.rest.get(large, options())).json._count, 1);
  });

  t.it("count as their partition's, and go with their item", async () => {
    const { path, docs, container } = await attachments();
    const before = await usage(container);
    await t.rest.post(path, picture("1", { note: "x".repeat(200_000) }), options());
    assert.ok((await usage(container)) >= before + 190, "195 KB more");
    assert.equal((await t.rest.delete(`${docs}/1`, options())).status, 204);
    assert.equal(await usage(container), 0);
    await t.rest.post(docs, { id: "1", pk: "a" }, options());
    assert.equal((await t.rest.get(path, options())).json._count, 0, "another item of the same id has none");
    refused(await t.rest.get(`${path}/1`, options()), 404);
  });

  async function usage(container) {
    const answer = await t.rest.post(`${container}/docs`, { id: "other", pk: "z" }, { headers: { ...key("z"), "x-ms-documentdb-is-upsert": "True" } });
    const kilobytes = Number(/documentsSize=(\d+)/.exec(answer.headers["x-ms-resource-usage"])[1]);
    await t.rest.delete(`${container}/docs/other`, { headers: key("z") });
    return kilobytes;
  }

  t.it("go when their item expires", async () => {
    const { path, docs } = await attachments({ ttl: 1 }, { defaultTtl: -1 });
    assert.equal((await t.rest.post(path, picture("1"), options())).status, 201);
    await eventually("the item expires", async () => (await t.rest.get(path, options())).status === 404);
    refused(await t.rest.post(path, picture("2"), options()), 404, { substatus: 1003 });
    await t.rest.post(docs, { id: "1", pk: "a" }, options());
    assert.equal((await t.rest.get(path, options())).json._count, 0);
  });

  t.it("stay when their item is written, by replace, patch or batch", async () => {
    const { path, docs } = await attachments();
    await t.rest.post(path, picture("1"), options());
    await t.rest.put(`${docs}/1`, { id: "1", pk: "a", v: 2 }, options());
    await t.rest.patch(`${docs}/1`, { operations: [{ op: "set", path: "/v", value: 3 }] }, options());
    const batch = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    await t.rest.post(docs, [{ operationType: "Upsert", resourceBody: { id: "1", pk: "a", v: 4 } }], options(batch));
    assert.equal((await t.rest.get(path, options())).json._count, 1);
    const doomed = [{ operationType: "Delete", id: "1" }, { operationType: "Read", id: "nobody" }];
    assert.equal((await t.rest.post(docs, doomed, options(batch))).status, 207);
    assert.equal((await t.rest.get(path, options())).json._count, 1, "a batch that fails deletes none");
  });

  t.it("of many writers at once are all there", async () => {
    const { path } = await attachments();
    await Promise.all(Array.from({ length: 40 }, (_, i) => t.rest.post(path, picture(`w${i}`), options())));
    const list = (await t.rest.get(path, options())).json.Attachments;
    assert.equal(new Set(list.map((each) => each.id)).size, 40);
    assert.equal(new Set(list.map((each) => each._rid)).size, 40);
  });

  t.it("survive splits and merges", async () => {
    const { path, container } = await attachments();
    const [, , database, , id] = container.split("/");
    await t.rest.post(path, picture("1"), options());
    for (let i = 0; i < 40; i++) await t.rest.post(`${container}/docs`, { id: `${i}`, pk: `p${i}` }, { headers: key(`p${i}`) });
    const change = (what, body) => t.rest.post(`/_tesela/${what}`, { database, container: id, ...body }, { sign: false });
    const split = await change("split", { range: "0", parts: 4 });
    assert.equal(split.status, 200, split.text);
    assert.equal((await t.rest.get(`${path}/1`, options())).status, 200);
    await t.rest.post(path, picture("2"), options());
    const [first, second] = split.json.after;
    const merged = await change("merge", { first, second });
    assert.equal(merged.status, 200, merged.text);
    await sleep(300);
    assert.deepEqual((await t.rest.get(path, options())).json.Attachments.map((each) => each.id), ["1", "2"]);
    assert.equal((await t.rest.delete(`${container}/docs/1`, options())).status, 204);
    refused(await t.rest.get(path, options()), 404, { substatus: 1003 });
  });
});

suite("conflicts", (t) => {
  t.it("are never any", async () => {
    const container = await t.container();
    assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
    assert.deepEqual((await container.conflicts.query("SELECT * FROM c").fetchAll()).resources, []);
    await fails(container.conflict("x", "a").delete(), 404);
    const path = `${t.databasePath}/colls/${container.id}`;
    const feed = await t.rest.get(`${path}/conflicts`);
    const { _rid } = (await t.rest.get(path)).json;
    assert.deepEqual(feed.json, { _rid, Conflicts: [], _count: 0 });
    refused(await t.rest.get(`${path}/conflicts/x`, { headers: key("a") }), 404); // the SDK uses another path
    refused(await t.rest.post(`${path}/conflicts`, { id: "x" }), 405);
    refused(await t.rest.get(`${t.databasePath}/colls/nobody/conflicts`), 404, { substatus: 1003 });
  });
});
