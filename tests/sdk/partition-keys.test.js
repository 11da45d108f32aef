// Partition keys: allowed values, the header, what cannot change; hierarchical keys.

import { assert, suite, fails, refused, key, withoutSystem } from "./harness.js";

const mismatch = "PartitionKey extracted from document doesn't match the one specified in the header";
const fewer = "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.";
const supplied = "PartitionKey value must be supplied for this operation.";
const multi = (...paths) => ({ paths, kind: "MultiHash", version: 2 });

suite("partition keys", (t) => {
  t.it("may be null, booleans, numbers and strings, all of them different", async () => {
    const values = [null, true, false, 0, 1, -1, 1.5, 1e300, 5e-324, 2 ** 53, "", "0", "1", "null", "true", "ñandú", "日本語", "😀", "a\u0000b", "a b", '"', "\\", "x".repeat(101)];
    for (const version of [1, 2]) {
      const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version } });
      for (const [i, pk] of values.entries()) {
        const { resource } = await container.items.create({ id: "same", pk, i });
        assert.equal(resource.pk, pk);
      }
      for (const [i, pk] of values.entries()) {
        const { resource, statusCode } = await container.item("same", pk).read();
        assert.equal(statusCode, 200, `version ${version}, ${JSON.stringify(pk)}`);
        assert.equal(resource.i, i);
        const { resources } = await container.items.readAll({ partitionKey: pk }).fetchAll();
        if (pk) assert.deepEqual(resources.map((item) => item.i), [i]); // the SDK omits falsy keys from the request
      }
    }
  });

  t.it("may be missing, which is not null", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", v: "none" });
    await container.items.create({ id: "1", pk: null, v: "null" });
    assert.equal((await container.item("1").read()).resource.v, "none");
    assert.equal((await container.item("1", null).read()).resource.v, "null");
    const path = `${t.databasePath}/colls/${container.id}/docs/1`;
    assert.equal((await t.rest.get(path, { headers: key({}) })).json.v, "none");
    assert.equal((await t.rest.get(path, { headers: key(null) })).json.v, "null");
    const { resource } = await container.item("1").replace({ id: "1", v: "changed" });
    assert.equal(resource.v, "changed");
    assert.equal((await container.item("1").delete()).statusCode, 204);
    assert.equal((await container.item("1", null).read()).statusCode, 200);
  });

  t.it("are undefined where they are objects", async () => {
    const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    await container.items.create({ id: "1", pk: {} });
    await t.rest.post(`${t.databasePath}/colls/${container.id}/docs`, { id: "2", pk: { a: 1 } }, { headers: { "x-ms-documentdb-partitionkey": "[{}]" } });
    for (const id of ["1", "2"]) assert.equal((await container.item(id, {}).read()).statusCode, 200);
    assert.deepEqual((await container.items.query("SELECT VALUE c.id FROM c WHERE c.pk = {}").fetchAll()).resources, ["1"]);
  });

  t.it("may not be arrays", async () => {
    const path = await t.containerPath();
    for (const pk of [[], ["a"]]) {
      const answer = await t.rest.post(`${path}/docs`, { id: "1", pk }, { headers: key("a") });
      refused(answer, 400, { text: "Numeric, string, bool, null, Undefined are the only supported types." });
    }
    for (const header of ['[["a"]]', '[{"a":1]', "a", '"a"', "{}", "[", "[1,]", "", "[nul]", '["a"', "[1e999]"]) {
      const answer = await t.rest.get(`${path}/docs/1`, { headers: { "x-ms-documentdb-partitionkey": header } });
      refused(answer, 400, { text: "Partition key" });
    }
  });

  t.it("may be nested and quoted", async () => {
    const nested = await t.container({ partitionKey: { paths: ["/a/b/c"], kind: "Hash", version: 2 } });
    await nested.items.create({ id: "1", a: { b: { c: "deep" } } });
    assert.equal((await nested.item("1", "deep").read()).statusCode, 200);
    await nested.items.create({ id: "2", a: { b: 5 } });
    assert.equal((await nested.item("2").read()).statusCode, 200, "below a scalar there is nothing");

    const quoted = await t.container({ partitionKey: { paths: ['/"a b"/"c/d"'], kind: "Hash", version: 2 } });
    await quoted.items.create({ id: "1", "a b": { "c/d": "odd" } });
    assert.equal((await quoted.item("1", "odd").read()).statusCode, 200);
    assert.deepEqual((await quoted.read()).resource.partitionKey.paths, ['/"a b"/"c/d"']);
  });

  t.it("may be the id", async () => {
    const container = await t.container({ partitionKey: "/id" });
    await container.items.create({ id: "1" });
    assert.equal((await container.item("1", "1").read()).statusCode, 200);
    await fails(container.items.create({ id: "1" }), 409);
  });

  t.it("must be in the header to address an item", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    refused(await t.rest.get(`${path}/docs/1`), 400, { text: supplied });
    refused(await t.rest.delete(`${path}/docs/1`), 400, { text: supplied });
    refused(await t.rest.patch(`${path}/docs/1`, { operations: [{ op: "set", path: "/v", value: 1 }] }), 400, { text: supplied });
    assert.equal((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).status, 200);
  });

  t.it("in the header must be the item's", async () => {
    const path = await t.containerPath();
    const wrong = [key("b"), key(1), key(null), key({}), key("A")];
    for (const headers of wrong) refused(await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers }), 400, { substatus: 1001, text: mismatch });
    refused(await t.rest.post(`${path}/docs`, { id: "1" }, { headers: key("a") }), 400, { substatus: 1001, text: mismatch });
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    refused(await t.rest.put(`${path}/docs/1`, { id: "1", pk: "b" }, { headers: key("a") }), 400, { substatus: 1001, text: mismatch });
    const upsert = { ...key("b"), "x-ms-documentdb-is-upsert": "True" };
    refused(await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: upsert }), 400, { substatus: 1001, text: mismatch });
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 1);
  });

  t.it("in the header must have the right number of components", async () => {
    const one = await t.containerPath();
    refused(await t.rest.get(`${one}/docs/1`, { headers: key() }), 400, { substatus: 1001, text: fewer });
    refused(await t.rest.get(`${one}/docs/1`, { headers: key("a", "b") }), 400, { substatus: 1001 });
    refused(await t.rest.post(`${one}/docs`, { id: "1", pk: "a" }, { headers: key("a", "b") }), 400, { substatus: 1001 });
    const three = await t.containerPath({ partitionKey: multi("/a", "/b", "/c") });
    refused(await t.rest.get(`${three}/docs/1`, { headers: key("x", "y") }), 400, { substatus: 1001, text: fewer });
    refused(await t.rest.post(`${three}/docs`, { id: "1", a: "x", b: "y", c: "z" }, { headers: key("x") }), 400, { substatus: 1001, text: fewer });
    refused(await t.rest.get(`${three}/docs/1`, { headers: key("x", "y", "z", "w") }), 400);
  });

  t.it("of an item cannot be changed", async () => {
    const container = await t.container();
    const { resource } = await container.items.create({ id: "1", pk: "a", v: 1 });
    await fails(container.item("1", "a").replace({ id: "1", pk: "b" }), 400, { substatus: 1001, text: mismatch });
    await fails(container.item("1", "a").patch([{ op: "set", path: "/pk", value: "b" }]), 400);
    assert.deepEqual((await container.item("1", "a").read()).resource, resource);
    assert.equal((await container.item("1", "b").read()).statusCode, 404);
  });

  t.it("are at most 2,048 bytes long", async () => {
    for (const [version, longest] of [[1, 2048], [2, 2048]]) {
      const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version } });
      const pk = "x".repeat(longest);
      await container.items.create({ id: "1", pk });
      assert.equal((await container.item("1", pk).read()).statusCode, 200);
      await fails(container.items.create({ id: "1", pk: `${pk}x` }), 400);
    }
  });

  t.it("of the first version may share a hash and stay apart", async () => {
    const container = await t.container();
    const first = "y".repeat(100);
    await container.items.create({ id: "1", pk: `${first}a` });
    await container.items.create({ id: "1", pk: `${first}b` });
    await container.items.create({ id: "1", pk: first });
    for (const pk of [`${first}a`, `${first}b`, first]) assert.equal((await container.item("1", pk).read()).resource.pk, pk);
    const { resources } = await container.items.readAll({ partitionKey: `${first}a` }).fetchAll();
    assert.deepEqual(resources.map((item) => item.pk), [`${first}a`]);
  });

  t.it("must be well defined", async () => {
    const bad = [
      {}, { paths: [] }, { paths: ["pk"] }, { paths: ["/a", "/b"] }, { paths: "x" }, { paths: [5] }, { paths: ["/"] }, { paths: [""] }, { paths: ["/pk"], kind: "Range" },
      { paths: ["/pk"], version: 3 }, { paths: ["/pk"], version: 0 }, { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 }, { paths: ["/a", "/b"], kind: "MultiHash", version: 1 },
      5, [], "x",
    ];
    for (const partitionKey of bad) {
      const answer = await t.rest.post(`${t.databasePath}/colls`, { id: "bad", partitionKey });
      refused(answer, 400);
    }
    const old = { headers: { "x-ms-version": "2018-12-31" } };
    refused(await t.rest.post(`${t.databasePath}/colls`, { id: "bad", partitionKey: multi("/a", "/b") }, old), 400, {
      text: "The 'kind' value 'MultiHash' specified in the partition key definition is invalid. Please choose 'Hash' partition type",
    });
  });
});

suite("hierarchical partition keys", (t) => {
  t.it("have up to three levels", async () => {
    const container = await t.container({ partitionKey: multi("/tenant", "/user", "/session") });
    assert.deepEqual((await container.read()).resource.partitionKey, multi("/tenant", "/user", "/session"));
    const item = { id: "1", tenant: "t", user: 5, session: true };
    const { resource } = await container.items.create(item);
    assert.deepEqual(withoutSystem(resource), item);
    const reference = container.item("1", ["t", 5, true]);
    assert.deepEqual((await reference.read()).resource, resource);
    assert.equal((await container.item("1", ["t", 5, false]).read()).statusCode, 404);
    assert.equal((await reference.patch([{ op: "set", path: "/v", value: 1 }])).resource.v, 1);
    assert.equal((await reference.replace({ ...item, v: 2 })).resource.v, 2);
    await fails(reference.replace({ ...item, session: false }), 400, { substatus: 1001, text: mismatch });
    assert.equal((await container.items.upsert({ ...item, v: 3 })).statusCode, 200);
    assert.equal((await reference.delete()).statusCode, 204);
  });

  t.it("may have missing and null parts, which differ", async () => {
    const container = await t.container({ partitionKey: multi("/a", "/b") });
    const path = `${t.databasePath}/colls/${container.id}`;
    const items = [
      [{ id: "1", a: "x", b: "y" }, ["x", "y"]],
      [{ id: "1", a: "x" }, ["x", {}]],
      [{ id: "1", a: "x", b: null }, ["x", null]],
      [{ id: "1", b: "y" }, [{}, "y"]],
      [{ id: "1" }, [{}, {}]],
    ];
    for (const [item, parts] of items) {
      const answer = await t.rest.post(`${path}/docs`, item, { headers: key(...parts) });
      assert.equal(answer.status, 201, answer.text);
    }
    for (const [item, parts] of items) {
      const answer = await t.rest.get(`${path}/docs/1`, { headers: key(...parts) });
      assert.deepEqual(withoutSystem(answer.json), item, JSON.stringify(parts));
    }
  });

  t.it("are read by prefix", async () => {
    const container = await t.container({ partitionKey: multi("/a", "/b", "/c"), throughput: 40000 });
    for (const a of ["x", "y"]) for (const b of [1, 2]) for (const c of ["p", "q"]) await container.items.create({ id: `${a}${b}${c}`, a, b, c });
    const path = `${t.databasePath}/colls/${container.id}`;
    const feed = async (...parts) => (await t.rest.get(`${path}/docs`, { headers: key(...parts) })).json.Documents.map((item) => item.id).sort();
    assert.deepEqual(await feed("x"), ["x1p", "x1q", "x2p", "x2q"]);
    assert.deepEqual(await feed("x", 2), ["x2p", "x2q"]);
    assert.deepEqual(await feed("x", 2, "q"), ["x2q"]);
    assert.deepEqual(await feed("z"), []);
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 8);
    const { resources } = await container.items.readAll({ partitionKey: ["y"], maxItemCount: 1 }).fetchAll();
    assert.deepEqual(resources.map((item) => item.id).sort(), ["y1p", "y1q", "y2p", "y2q"]);
  });

  t.it("are spread by their whole value", async () => {
    const container = await t.container({ partitionKey: multi("/a", "/b"), throughput: 40000 });
    const operations = Array.from({ length: 200 }, (_, i) => ({ operationType: "Create", partitionKey: [`a${i % 10}`, i], resourceBody: { id: `${i}`, a: `a${i % 10}`, b: i } }));
    const answers = await container.items.executeBulkOperations(operations);
    assert.ok(answers.every((answer) => answer.response?.statusCode === 201), JSON.stringify(answers.find((answer) => answer.error)));
    assert.equal((await container.item("42", ["a2", 42]).read()).statusCode, 200);
  });
});
