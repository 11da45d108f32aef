// Concurrent clients: each logical partition's writes are serialised, and none is lost.

import { assert, suite, key } from "./harness.js";

const many = (n, make) => Promise.all(Array.from({ length: n }, (_, i) => make(i)));
const count = (answers, status) => answers.filter((answer) => answer.status === status).length;

suite("concurrency", (t) => {
  t.it("of creates with one id lets one through", async () => {
    const path = await t.containerPath();
    const answers = await many(40, (i) => t.rest.post(`${path}/docs`, { id: "1", pk: "a", i }, { headers: key("a") }));
    assert.equal(count(answers, 201), 1);
    assert.equal(count(answers, 409), 39);
    const winner = answers.find((answer) => answer.status === 201).json;
    assert.deepEqual((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).json, winner);
  });

  t.it("of creates with one unique value lets one through", async () => {
    const path = await t.containerPath({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/u"] }] } });
    const answers = await many(40, (i) => t.rest.post(`${path}/docs`, { id: `${i}`, pk: "a", u: 1 }, { headers: key("a") }));
    assert.equal(count(answers, 201), 1);
    assert.equal(count(answers, 409), 39);
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 1);
  });

  t.it("of increments loses none", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a", n: 0 }, { headers: key("a") });
    const answers = await many(200, () => t.rest.patch(`${path}/docs/1`, [{ op: "incr", path: "/n", value: 1 }], { headers: key("a") }));
    assert.equal(count(answers, 200), 200);
    assert.deepEqual(answers.map((answer) => answer.json.n).sort((a, b) => a - b), Array.from({ length: 200 }, (_, i) => i + 1));
    assert.equal(new Set(answers.map((answer) => answer.json._etag)).size, 200);
  });

  t.it("of replaces with one etag lets one through", async () => {
    const path = await t.containerPath();
    const { _etag } = (await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") })).json;
    const answers = await many(40, (i) => t.rest.put(`${path}/docs/1`, { id: "1", pk: "a", i }, { headers: { ...key("a"), "if-match": _etag } }));
    assert.equal(count(answers, 200), 1);
    assert.equal(count(answers, 412), 39);
  });

  t.it("of batches is one after the other, whole", async () => {
    const path = await t.containerPath();
    const headers = { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    for (const id of ["left", "right"]) await t.rest.post(`${path}/docs`, { id, pk: "a", n: 100 }, { headers: key("a") });
    const move = (id, value) => ({ operationType: "Patch", id, resourceBody: { operations: [{ op: "incr", path: "/n", value }] } });
    const moves = many(100, (i) => t.rest.post(`${path}/docs`, [move("left", -1), move("right", 1), ...(i % 4 ? [] : [{ operationType: "Read", id: "nobody" }])], { headers }));
    const read = [{ operationType: "Read", id: "left" }, { operationType: "Read", id: "right" }];
    for (const seen of await many(50, () => t.rest.post(`${path}/docs`, read, { headers }))) {
      assert.equal(seen.json[0].resourceBody.n + seen.json[1].resourceBody.n, 200, "nobody sees half of a batch");
    }
    const answers = await moves;
    assert.equal(count(answers, 200), 75);
    assert.equal(count(answers, 207), 25);
    const [left, right] = (await t.rest.post(`${path}/docs`, read, { headers })).json;
    assert.deepEqual([left.resourceBody.n, right.resourceBody.n], [25, 175]);
  });

  t.it("of writes gives every one its own place in the order", async () => {
    const path = await t.containerPath();
    const answers = await many(300, (i) => t.rest.post(`${path}/docs`, { id: `${i}`, pk: `${i % 7}` }, { headers: key(`${i % 7}`) }));
    assert.equal(count(answers, 201), 300);
    const lsns = answers.map((answer) => Number(answer.headers.lsn)).sort((a, b) => a - b);
    assert.deepEqual(lsns, Array.from({ length: 300 }, (_, i) => i + 1));
    const feed = (await t.rest.get(`${path}/docs`)).json.Documents;
    assert.deepEqual(new Set(feed.map((item) => item.id)), new Set(answers.map((answer) => answer.json.id)));
  });

  t.it("of creating and deleting containers leaves what was answered", async () => {
    const name = t.name();
    const body = { id: name, partitionKey: { paths: ["/pk"] } };
    const made = await many(20, () => t.rest.post(`${t.databasePath}/colls`, body));
    assert.equal(count(made, 201), 1);
    const mixed = await many(60, (i) => (i % 2 ? t.rest.delete(`${t.databasePath}/colls/${name}`) : t.rest.post(`${t.databasePath}/colls`, body)));
    const balance = 1 + count(mixed, 201) - count(mixed, 204);
    assert.equal((await t.rest.get(`${t.databasePath}/colls/${name}`)).status, balance === 1 ? 200 : 404);
  });

  t.it("of deleting a container and writing to it ends in nothing", async () => {
    const path = await t.containerPath();
    const writes = many(100, (i) => t.rest.post(`${path}/docs`, { id: `${i}`, pk: "a" }, { headers: key("a") }));
    const gone = await t.rest.delete(path);
    assert.equal(gone.status, 204);
    for (const answer of await writes) assert.ok(answer.status === 201 || (answer.status === 404 && answer.substatus === 1003), answer.text);
    await t.rest.post(`${t.databasePath}/colls`, { id: path.split("/").pop(), partitionKey: { paths: ["/pk"] } });
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 0);
  });
});
