// Reading many items: the item feed, its order and its pages; read-many.

import { assert, suite, refused, documentNumber, key, withoutSystem } from "./harness.js";

const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
const ids = (items) => items.map((item) => item.id);

suite("feed", (t) => {
  // All pages of a feed, by bare requests: an array of arrays.
  const pages = async (path, headers = {}) => {
    const found = [];
    let continuation;
    do {
      const more = continuation ? { "x-ms-continuation": continuation } : {};
      const answer = await t.rest.get(`${path}/docs`, { headers: { ...headers, ...more } });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json._count, answer.json.Documents.length);
      assert.equal(answer.headers["x-ms-item-count"], String(answer.json._count));
      found.push(answer.json.Documents);
      continuation = answer.headers["x-ms-continuation"];
      assert.ok(found.length < 1000, "the feed ends");
    } while (continuation);
    return found;
  };

  const create = async (path, ...items) => {
    for (const item of items) assert.equal((await t.rest.post(`${path}/docs`, item, { headers: key(item.pk) })).status, 201);
  };

  t.it("is in creation order, not in order of key or id", async () => {
    const container = await t.container();
    const order = [["z", "3"], ["a", "9"], ["m", "1"], ["a", "1"], ["z", "0"]];
    for (const [pk, id] of order) await container.items.create({ id, pk });
    await container.item("9", "a").replace({ id: "9", pk: "a", changed: true });
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(resources.map((item) => [item.pk, item.id]), order);
    assert.deepEqual(resources.map((item) => documentNumber(item._rid)), [1n, 2n, 3n, 4n, 5n]);
    assert.equal(resources[1].changed, true);
    await container.item("1", "m").delete();
    await container.items.create({ id: "1", pk: "m" });
    const { resources: after } = await container.items.readAll().fetchAll();
    assert.deepEqual(after.map((item) => item.pk), ["z", "a", "a", "z", "m"]);
  });

  t.it("is in creation order within each range, in the order of the ranges", async () => {
    const path = await t.containerPath({ partitionKey: v2, maxThroughput: 40000 });
    for (let i = 0; i < 60; i++) await create(path, { id: `${i}`, pk: `key ${i % 20}` });
    const whole = (await pages(path)).flat();
    assert.equal(whole.length, 60);
    const byRange = [];
    for (const range of ["0", "1", "2", "3"]) {
      const items = (await pages(path, { "x-ms-documentdb-partitionkeyrangeid": range })).flat();
      assert.ok(items.length > 0, `range ${range} has items`);
      const numbers = items.map((item) => documentNumber(item._rid));
      assert.deepEqual(numbers, [...numbers].sort((a, b) => (a < b ? -1 : 1)));
      const order = items.map((item) => Number(item.id));
      assert.deepEqual(order, [...order].sort((a, b) => a - b));
      byRange.push(...items);
    }
    assert.deepEqual(whole, byRange);
    assert.equal(new Set(whole.map((item) => item._rid)).size, 60, "no two items of a container have the same _rid");
    refused(await t.rest.get(`${path}/docs`, { headers: { "x-ms-documentdb-partitionkeyrangeid": "4" } }), 410, { substatus: 1002 });
  });

  t.it("comes in pages of any size", async () => {
    const path = await t.containerPath({ partitionKey: v2, maxThroughput: 40000 });
    for (let i = 0; i < 25; i++) await create(path, { id: `${i}`, pk: `key ${i}` });
    const whole = ids((await pages(path)).flat());
    assert.equal(whole.length, 25);
    for (const size of [1, 2, 7, 24, 25, 26]) {
      const found = await pages(path, { "x-ms-max-item-count": String(size) });
      for (const page of found) assert.ok(page.length <= size);
      assert.deepEqual(ids(found.flat()), whole, `pages of ${size}`);
    }
    const one = await pages(path, { "x-ms-max-item-count": "-1" });
    assert.equal(one.length, 1);
  });

  t.it("comes in pages through the SDK, and goes on from a continuation", async () => {
    const container = await t.container();
    for (let i = 0; i < 10; i++) await container.items.create({ id: `${i}`, pk: `${i % 3}` });
    const iterator = container.items.readAll({ maxItemCount: 4 });
    const first = await iterator.fetchNext();
    assert.deepEqual(ids(first.resources), ["0", "1", "2", "3"]);
    assert.ok(first.continuationToken);
    const rest = await container.items.readAll({ maxItemCount: 4, continuationToken: first.continuationToken }).fetchAll();
    assert.deepEqual(ids(rest.resources), ["4", "5", "6", "7", "8", "9"]);
  });

  t.it("of one logical partition has only its items", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 40000 });
    for (let i = 0; i < 12; i++) await container.items.create({ id: `${i}`, pk: `key ${i % 3}` });
    const { resources } = await container.items.readAll({ partitionKey: "key 1", maxItemCount: 2 }).fetchAll();
    assert.deepEqual(ids(resources), ["1", "4", "7", "10"]);
    const path = `${t.databasePath}/colls/${container.id}`;
    const found = await pages(path, { ...key("key 2"), "x-ms-max-item-count": "3" });
    assert.deepEqual(found.map(ids), [["2", "5", "8"], ["11"]]);
    assert.deepEqual(await pages(path, key("nobody")), [[]]);
  });

  t.it("goes on where it was when items come and go meanwhile", async () => {
    const path = await t.containerPath();
    for (let i = 0; i < 6; i++) await create(path, { id: `${i}`, pk: "a" });
    const first = await t.rest.get(`${path}/docs`, { headers: { "x-ms-max-item-count": "3" } });
    for (const id of ["1", "2", "3"]) await t.rest.delete(`${path}/docs/${id}`, { headers: key("a") });
    await create(path, { id: "new", pk: "a" });
    const rest = await t.rest.get(`${path}/docs`, { headers: { "x-ms-continuation": first.headers["x-ms-continuation"] } });
    assert.deepEqual(ids(rest.json.Documents), ["4", "5", "new"]);
  });

  t.it("stops a page before 4 MB", async () => {
    const path = await t.containerPath();
    for (let i = 0; i < 5; i++) await create(path, { id: `${i}`, pk: "a", text: "x".repeat(1_500_000) });
    const found = await pages(path);
    assert.deepEqual(found.map((page) => page.length), [2, 2, 1]);
  });

  t.it("has 1,000 items a page unless asked, 2,500 at most", async () => {
    const path = await t.containerPath();
    const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-documentdb-partitionkeyrangeid": "0" };
    for (let i = 0; i < 26; i++) {
      const operations = Array.from({ length: 100 }, (_, j) => ({ operationType: "Create", partitionKey: '["a"]', resourceBody: { id: `${i * 100 + j}`, pk: "a" } }));
      assert.equal((await t.rest.post(`${path}/docs`, operations, { headers: bulk })).status, 200);
    }
    assert.deepEqual((await pages(path)).map((page) => page.length), [1000, 1000, 600]);
    assert.deepEqual((await pages(path, { "x-ms-max-item-count": "5000" })).map((page) => page.length), [2500, 100]);
    assert.deepEqual((await pages(path, { "x-ms-max-item-count": "0" })).map((page) => page.length), [1000, 1000, 600]);
  });

  t.it("refuses page sizes and continuations that are none", async () => {
    const path = await t.containerPath();
    for (const size of ["abc", "-2", "1.5", "99999999999999999999"]) {
      refused(await t.rest.get(`${path}/docs`, { headers: { "x-ms-max-item-count": size } }), 400, { text: `The input PageSize ${size} is invalid.` });
    }
    const other = await t.containerPath();
    await create(other, { id: "1", pk: "a" }, { id: "2", pk: "a" });
    const foreign = (await t.rest.get(`${other}/docs`, { headers: { "x-ms-max-item-count": "1" } })).headers["x-ms-continuation"];
    for (const token of ["x", "{}", "[]", '{"token":"x","range":{"min":"","max":"FF"}}', '{"token":1,"range":1}', "+RID:~", "A".repeat(5000), foreign]) {
      refused(await t.rest.get(`${path}/docs`, { headers: { "x-ms-continuation": token } }), 400, { text: "Invalid Continuation Token" });
    }
  });

  t.it("of a part of the hash space has the items there", async () => {
    const path = await t.containerPath({ partitionKey: v2, maxThroughput: 40000 });
    await create(path, { id: "1", pk: "redmond" }, { id: "2", pk: "" }, { id: "3", pk: "aa" }); // 22E342…, 32E936…, 050336…
    const part = async (min, max) => ids((await pages(path, { "x-ms-start-epk": min, "x-ms-end-epk": max, "x-ms-read-key-type": "EffectivePartitionKeyRange" })).flat());
    assert.deepEqual(await part("", "FF"), ["3", "1", "2"]);
    assert.deepEqual(await part("22E342F38A486A088463DFF7838A5963", "22E342F38A486A088463DFF7838A5964"), ["1"]);
    assert.deepEqual(await part("22E342F38A486A088463DFF7838A5964", "FF"), ["2"]);
    assert.deepEqual(await part("", "22E342F38A486A088463DFF7838A5963"), ["3"]);
  });

  t.it("is charged for what it reads", async () => {
    const path = await t.containerPath();
    assert.equal((await t.rest.get(`${path}/docs`)).charge, 1);
    for (let i = 0; i < 5; i++) await create(path, { id: `${i}`, pk: "a" });
    assert.equal((await t.rest.get(`${path}/docs`)).charge, 5);
    assert.equal((await t.rest.get(`${path}/docs`, { headers: { "x-ms-max-item-count": "2" } })).charge, 2);
  });
});

suite("read-many", (t) => {
  const query = (path, query, parameters = [], headers = {}) =>
    t.rest.post(`${path}/docs`, { query, parameters }, {
      headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True", ...headers },
    });

  t.it("is answered as .NET and Python ask", async () => {
    const path = await t.containerPath({ partitionKey: v2, maxThroughput: 40000 });
    for (const [id, pk] of [["1", "a"], ["2", "b"], ["3", 5], ["4", null], ["5", true]]) {
      await t.rest.post(`${path}/docs`, { id, pk, v: id }, { headers: key(pk) });
    }
    const text = 'SELECT * FROM c WHERE ( ( c.id = @param_id0 AND c["pk"] = @param_pk00 ) OR ( c.id = @param_id1 AND c["pk"] = @param_pk10 ) OR ( c.id = @param_id2 AND c["pk"] = @param_pk20 ) OR ( c.id = @param_id3 AND c["pk"] = @param_pk30 ) OR ( c.id = @param_id4 AND c["pk"] = @param_pk40 ) )';
    const values = [["2", "b"], ["1", "b"], ["3", 5], ["4", null], ["5", true]];
    const parameters = values.flatMap(([id, pk], i) => [{ name: `@param_id${i}`, value: id }, { name: `@param_pk${i}0`, value: pk }]);
    const answer = await query(path, text, parameters);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(ids(answer.json.Documents).sort(), ["2", "3", "4", "5"]);
    assert.equal(answer.json._count, 4);
    assert.ok(answer.json.Documents.every((item) => item._rid && item._etag));
  });

  t.it("finds items without a key", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    await t.rest.post(`${path}/docs`, { id: "1" }, { headers: key({}) });
    await t.rest.post(`${path}/docs`, { id: "2", pk: "a" }, { headers: key("a") });
    const text = 'SELECT * FROM c WHERE ( ( c.id = @param_id0 AND IS_DEFINED(c["pk"]) = false ) OR ( c.id = @param_id1 AND IS_DEFINED(c["pk"]) = false ) )';
    const answer = await query(path, text, [{ name: "@param_id0", value: "1" }, { name: "@param_id1", value: "2" }]);
    assert.deepEqual(ids(answer.json.Documents), ["1"]);
  });

  t.it("is answered as Java asks", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    for (const [id, pk] of [["1", "a"], ["2", "b"]]) await t.rest.post(`${path}/docs`, { id, pk }, { headers: key(pk) });
    const text = 'SELECT * FROM c WHERE ( (c.id = @param0 AND  c["pk"] = @param1 ) OR (c.id = @param2 AND  c["pk"] = @param3 ) )';
    const parameters = ["1", "a", "2", "b"].map((value, i) => ({ name: `@param${i}`, value }));
    const answer = await query(path, text, parameters, { "x-ms-documentdb-partitionkeyrangeid": "0" });
    assert.deepEqual(ids(answer.json.Documents), ["1", "2"]);
  });

  t.it("is answered by ids alone when the id is the key", async () => {
    const path = await t.containerPath({ partitionKey: { paths: ["/id"], kind: "Hash", version: 2 }, maxThroughput: 40000 });
    for (const id of ["x", "y", "z"]) await t.rest.post(`${path}/docs`, { id }, { headers: key(id) });
    for (const text of ["SELECT * FROM c WHERE c.id IN ( 'z','x','nobody' )", 'SELECT * FROM c WHERE c.id IN ( "z", "x" )']) {
      const answer = await query(path, text);
      assert.deepEqual(ids(answer.json.Documents).sort(), ["x", "z"]);
    }
    const byParameters = await query(path, "SELECT * FROM c WHERE c.id IN ( @param0, @param1 )", [{ name: "@param0", value: "x" }, { name: "@param1", value: "y" }]);
    assert.deepEqual(ids(byParameters.json.Documents).sort(), ["x", "y"]);
  });

  t.it("takes nested and hierarchical keys", async () => {
    const path = await t.containerPath({ partitionKey: { paths: ["/tenant/id", "/user"], kind: "MultiHash", version: 2 } });
    const item = { id: "1", tenant: { id: "t" }, user: 7, extra: "e" };
    await t.rest.post(`${path}/docs`, item, { headers: key("t", 7) });
    const text = 'SELECT * FROM c WHERE ( ( c.id = @param_id0 AND c["tenant"]["id"] = @param_pk00 AND c["user"] = @param_pk01 ) )';
    const answer = await query(path, text, [{ name: "@param_id0", value: "1" }, { name: "@param_pk00", value: "t" }, { name: "@param_pk01", value: 7 }]);
    assert.deepEqual(answer.json.Documents.map(withoutSystem), [item]);
  });

  t.it("is charged by what it reads", async () => {
    const path = await t.containerPath({ partitionKey: { paths: ["/id"], version: 2 } });
    for (const id of ["x", "y"]) await t.rest.post(`${path}/docs`, { id }, { headers: key(id) });
    assert.equal((await query(path, "SELECT * FROM c WHERE c.id IN ('x','y')")).charge, 2);
  });

  t.it("is answered for plain text too", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    const plain = await t.rest.post(`${path}/docs`, "SELECT * FROM c", {
      headers: { "content-type": "application/sql", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" },
    });
    assert.deepEqual(ids(plain.json.Documents), ["1"]);
    for (const text of ["SELEC * FROM c", ""]) refused(await query(path, text), 400, { text: "SC100" });
  });
});
