// Many operations in one request: transactional batches and bulk.

import { assert, suite, refused, key, etagForm, withoutSystem } from "./harness.js";

const create = (id, more = {}) => ({ operationType: "Create", resourceBody: { id, pk: "a", ...more } });
const atomic = { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
const missing = async (container, id) => assert.equal((await container.item(id, "a").read()).statusCode, 404, id);

suite("batch", (t) => {
  t.it("does every kind of operation, each seeing the ones before", async () => {
    const container = await t.container();
    await container.items.create({ id: "old", pk: "a", v: 1 });
    await container.items.create({ id: "gone", pk: "a" });
    const { result, code, headers } = await container.items.batch(
      [
        create("new", { v: 1 }),
        { operationType: "Upsert", resourceBody: { id: "up", pk: "a" } },
        { operationType: "Upsert", resourceBody: { id: "up", pk: "a", again: true } },
        { operationType: "Read", id: "old" },
        { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", v: 2 } },
        { operationType: "Patch", id: "new", resourceBody: { operations: [{ op: "incr", path: "/v", value: 5 }] } },
        { operationType: "Delete", id: "gone" },
        { operationType: "Read", id: "new" },
      ],
      "a",
    );
    assert.equal(code, 200);
    assert.deepEqual(result.map((one) => one.statusCode), [201, 201, 200, 200, 200, 200, 204, 200]);
    assert.equal(result[3].resourceBody.v, 1);
    assert.equal(result[4].resourceBody.v, 2);
    assert.deepEqual(withoutSystem(result[7].resourceBody), { id: "new", pk: "a", v: 6 });
    for (const [i, one] of result.entries()) {
      assert.ok(one.requestCharge > 0, `operation ${i} has a charge`);
      if (i !== 6) assert.equal(one.eTag, one.resourceBody._etag);
    }
    assert.equal(result[6].resourceBody, undefined);
    assert.match(headers["x-ms-session-token"], /^0:-1#\d+$/);
    assert.equal((await container.item("new", "a").read()).resource.v, 6);
    assert.equal((await container.item("old", "a").read()).resource.v, 2);
    assert.equal((await container.item("up", "a").read()).resource.again, true);
    await missing(container, "gone");
  });

  t.it("writes all or nothing: 207, the failed one's code, 424 for the others", async () => {
    const container = await t.container();
    const { resource: before } = await container.items.create({ id: "there", pk: "a", v: 1 });
    const { result, code } = await container.items.batch(
      [
        create("one"),
        { operationType: "Replace", id: "there", resourceBody: { id: "there", pk: "a", v: 2 } },
        create("there"),
        create("two"),
      ],
      "a",
    );
    assert.equal(code, 207);
    assert.deepEqual(result.map((one) => one.statusCode), [424, 424, 409, 424]);
    assert.equal(result[0].resourceBody, undefined);
    assert.equal(result[0].eTag, undefined);
    await missing(container, "one");
    await missing(container, "two");
    assert.deepEqual((await container.item("there", "a").read()).resource, before);
    const { resources } = await container.items.readAll({ partitionKey: "a" }).fetchAll();
    assert.deepEqual(resources.map((item) => item.id), ["there"]);
    const { resource: next } = await container.items.create({ id: "next", pk: "a" });
    assert.equal((await container.item("next", "a").read()).etag, next._etag);
  });

  t.it("fails with the code of what failed", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const failing = [
      [404, { operationType: "Read", id: "no" }],
      [404, { operationType: "Replace", id: "no", resourceBody: { id: "no", pk: "a" } }],
      [404, { operationType: "Delete", id: "no" }],
      [404, { operationType: "Patch", id: "no", resourceBody: { operations: [{ op: "set", path: "/v", value: 1 }] } }],
      [400, { operationType: "Patch", id: "1", resourceBody: { operations: [{ op: "remove", path: "/v" }] } }],
      [412, { operationType: "Replace", id: "1", ifMatch: '"00000000-0000-0d00-0000-000000000000"', resourceBody: { id: "1", pk: "a" } }],
      [409, create("1")],
      [400, { operationType: "Create", resourceBody: { id: "a/b", pk: "a" } }],
    ];
    for (const [status, operation] of failing) {
      const { result, code } = await container.items.batch([create("first"), operation], "a");
      assert.equal(code, 207, JSON.stringify(operation));
      assert.deepEqual(result.map((one) => one.statusCode), [424, status], JSON.stringify(operation));
      await missing(container, "first");
    }
  });

  t.it("is all or nothing for conditions of patches too", async () => {
    const container = await t.container();
    const patch = (id, condition, value) => ({ operationType: "Patch", id, resourceBody: { condition, operations: [{ op: "set", path: "/v", value }] } });
    const codes = async (operations) => (await container.items.batch(operations, "a")).result.map((one) => one.statusCode);
    for (const id of ["1", "2"]) await container.items.create({ id, pk: "a", v: 1 });
    assert.deepEqual(await codes([patch("1", "from c where c.v = 1", 2), patch("2", "from c where c.v = 2", 3)]), [424, 412]);
    assert.deepEqual(await codes([patch("1", "from c where c.v = 1", 2), patch("2", "from c where c.v ==", 3)]), [424, 400]);
    assert.equal((await container.item("1", "a").read()).resource.v, 1);
    // The second operation sees the first one's write.
    assert.deepEqual(await codes([patch("1", "from c where c.v = 1", 2), patch("1", "from c where c.v = 2", 3), patch("2", "from c where c.v = 1", 4)]), [200, 200, 200]);
    assert.equal((await container.item("1", "a").read()).resource.v, 3);
  });

  t.it("checks etags inside", async () => {
    const container = await t.container();
    const { resource } = await container.items.create({ id: "1", pk: "a" });
    const { result } = await container.items.batch(
      [
        { operationType: "Read", id: "1", ifNoneMatch: '"00000000-0000-0d00-0000-000000000000"' },
        { operationType: "Replace", id: "1", ifMatch: resource._etag, resourceBody: { id: "1", pk: "a", v: 2 } },
      ],
      "a",
    );
    assert.deepEqual(result.map((one) => one.statusCode), [200, 200]);
  });

  t.it("refuses another partition key inside with 1001", async () => {
    const path = await t.containerPath();
    const operations = [create("1"), { operationType: "Create", resourceBody: { id: "2", pk: "b" } }];
    const answer = await t.rest.post(`${path}/docs`, operations, { headers: atomic });
    assert.equal(answer.status, 207, answer.text);
    assert.deepEqual(answer.json.map((one) => one.statusCode), [424, 400]);
    assert.equal(answer.json[1].subStatusCode, 1001);
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 0);
  });

  t.it("takes 100 operations and not 101, 2 MB and not more, and at least one", async () => {
    const path = await t.containerPath();
    const many = (n) => Array.from({ length: n }, (_, i) => create(`n${i}`));
    const tooMany = await t.rest.post(`${path}/docs`, many(101), { headers: atomic });
    refused(tooMany, 400, { text: "Batch request has more operations than what is supported." });
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 0);
    const enough = await t.rest.post(`${path}/docs`, many(100), { headers: atomic });
    assert.equal(enough.status, 200);
    assert.equal(enough.json.length, 100);
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 100);
    refused(await t.rest.post(`${path}/docs`, [], { headers: atomic }), 400);

    const frame = JSON.stringify([create("big", { text: "" })]).length;
    const sized = (bytes) => JSON.stringify([create("big", { text: "x".repeat(bytes - frame) })]);
    refused(await t.rest.post(`${path}/docs`, sized(2 * 1024 * 1024 + 1), { headers: atomic }), 413, { text: "Request size is too large" });
    const fits = await t.rest.post(`${path}/docs`, sized(2 * 1024 * 1024), { headers: atomic });
    assert.equal(fits.status, 200, fits.text.slice(0, 300));
  });

  t.it("needs a partition key", async () => {
    const path = await t.containerPath();
    const answer = await t.rest.post(`${path}/docs`, [create("1")], { headers: { ...atomic, "x-ms-documentdb-partitionkey": null } });
    refused(answer, 400, { text: "PartitionKey value must be supplied for this operation." });
  });

  t.it("refuses what is no batch", async () => {
    const path = await t.containerPath();
    for (const body of ["{}", "[1]", "[[]]", "[", "null", '"x"']) refused(await t.rest.post(`${path}/docs`, body, { headers: atomic }), 400);
    for (const operation of [{}, { operationType: "Jump" }, { operationType: "Create" }, { operationType: "Create", resourceBody: 5 }, { operationType: "Read" }, { operationType: "Patch", id: "1" }]) {
      const answer = await t.rest.post(`${path}/docs`, [operation], { headers: atomic });
      assert.equal(answer.status, 207, answer.text);
      assert.deepEqual(answer.json.map((one) => one.statusCode), [400]);
    }
    refused(await t.rest.post(`${path}/docs/$batch`, [create("1")], { headers: atomic }), 405);
  });

  t.it("leaves bodies out on request, but not those of reads", async () => {
    const container = await t.container();
    const operations = [create("1"), { operationType: "Read", id: "1" }];
    const { result } = await container.items.batch(operations, "a", { contentResponseOnWriteEnabled: false });
    assert.equal(result[0].resourceBody, undefined);
    assert.match(result[0].eTag, etagForm);
    assert.equal(result[1].resourceBody.id, "1");
  });

  t.it("works with a hierarchical key", async () => {
    const container = await t.container({ partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } });
    const { result } = await container.items.batch([{ operationType: "Create", resourceBody: { id: "1", a: "x", b: 1 } }, { operationType: "Read", id: "1" }], ["x", 1]);
    assert.deepEqual(result.map((one) => one.statusCode), [201, 200]);
  });
});

suite("bulk", (t) => {
  t.it("spreads operations over ranges and answers each by itself", async () => {
    const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, maxThroughput: 40000 });
    const operations = Array.from({ length: 400 }, (_, i) => ({
      operationType: "Create",
      partitionKey: `key-${i}`,
      resourceBody: { id: `${i}`, pk: `key-${i}`, number: i },
    }));
    const answers = await container.items.executeBulkOperations(operations);
    assert.equal(answers.length, 400);
    for (const [i, answer] of answers.entries()) {
      assert.equal(answer.response?.statusCode, 201, JSON.stringify(answer.error));
      assert.equal(answer.response.resourceBody.number, i);
    }
    const sessions = new Set(answers.map((answer) => answer.response.sessionToken.split(":")[0]));
    assert.deepEqual([...sessions].sort(), ["0", "1", "2", "3"]);
    const { resources } = await container.items.readAll().fetchAll();
    assert.equal(resources.length, 400);
    assert.equal((await container.item("399", "key-399").read()).resource.number, 399);
  });

  t.it("spreads keys of the first hash version and of every type", async () => {
    const container = await t.container({ maxThroughput: 40000 });
    const keys = [null, true, false, "", "text", "ñandú 😀", 0, 1, -1, 1.5, 1e300, -5e-324, 2 ** 53, ..."abcdefghijklmnopqrstuvwxyz"];
    const operations = keys.map((pk, i) => ({ operationType: "Upsert", partitionKey: pk, resourceBody: { id: `${i}`, pk } }));
    const answers = await container.items.executeBulkOperations(operations);
    assert.deepEqual(answers.map((answer) => answer.response?.statusCode), keys.map(() => 201));
    for (const [i, pk] of keys.entries()) assert.equal((await container.item(`${i}`, pk).read()).statusCode, 200, String(pk));
  });

  t.it("lets some fail while others go on", async () => {
    const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    await container.items.create({ id: "there", pk: "a" });
    const operations = [
      { operationType: "Create", partitionKey: "a", resourceBody: { id: "there", pk: "a" } },
      { operationType: "Create", partitionKey: "b", resourceBody: { id: "new", pk: "b" } },
      { operationType: "Read", partitionKey: "a", id: "there" },
      { operationType: "Read", partitionKey: "a", id: "nowhere" },
      { operationType: "Replace", partitionKey: "a", id: "there", resourceBody: { id: "there", pk: "a", v: 2 } },
      { operationType: "Patch", partitionKey: "a", id: "there", resourceBody: { operations: [{ op: "incr", path: "/v", value: 1 }] } },
      { operationType: "Delete", partitionKey: "a", id: "nowhere" },
      { operationType: "Create", partitionKey: "c", resourceBody: { id: "mismatch", pk: "d" } },
      { operationType: "Delete", partitionKey: "b", id: "new" },
    ];
    const answers = await container.items.executeBulkOperations(operations);
    assert.deepEqual(answers.map((answer) => answer.response?.statusCode ?? answer.error.code), [409, 201, 200, 404, 200, 200, 404, 400, 204]);
    assert.equal(answers[7].error.substatus, 1001);
    assert.equal((await container.item("there", "a").read()).resource.v, 3);
  });

  t.it("asks the condition of each patch", async () => {
    const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    const patch = (id, condition, value) => ({ operationType: "Patch", partitionKey: "a", id, resourceBody: { condition, operations: [{ op: "set", path: "/v", value }] } });
    for (const id of ["1", "2", "3"]) await container.items.create({ id, pk: "a", v: Number(id) });
    const operations = [patch("1", "from c where c.v = 1", 10), patch("2", "from c where c.v = 1", 20), patch("3", "from c wher c.v = 1", 30)];
    const bulk = await container.items.executeBulkOperations(operations);
    assert.deepEqual(bulk.map((answer) => answer.response?.statusCode ?? answer.error.code), [200, 412, 400]);
    const values = async () => (await container.items.query("SELECT VALUE c.v FROM c", { partitionKey: "a" }).fetchAll()).resources;
    assert.deepEqual(await values(), [10, 2, 3]);
  });

  t.it("tells operations that their key lies in another range", async () => {
    const path = await t.containerPath({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, maxThroughput: 40000 });
    const bulk = (range) => ({ headers: { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": range } });
    const operations = [{ operationType: "Create", partitionKey: '["redmond"]', resourceBody: { id: "1", pk: "redmond" } }]; // 22E3…: range 2
    const wrong = await t.rest.post(`${path}/docs`, operations, bulk("0"));
    assert.equal(wrong.status, 207, wrong.text);
    assert.equal(wrong.json[0].statusCode, 410);
    assert.equal(wrong.json[0].subStatusCode, 1002);
    const right = await t.rest.post(`${path}/docs`, operations, bulk("2"));
    assert.equal(right.json[0].statusCode, 201);
    refused(await t.rest.post(`${path}/docs`, operations, bulk("9")), 410, { substatus: 1002 });
  });
});
