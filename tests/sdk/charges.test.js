// Request charges: the figures seen on the hosted service, growth with size, and that time has no part in them.

import { assert, suite, key } from "./harness.js";

const batched = { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };

suite("charges", (t) => {
  const item = (id = "1") => ({ id, pk: "a", n: 1, s: "text" });
  const create = (path, body) => t.rest.post(`${path}/docs`, body, { headers: key("a") });

  t.it("are the service's for a small item", async () => {
    const container = await t.container();
    assert.equal((await container.items.create(item())).requestCharge, 6.67, "create");
    assert.equal((await container.item("1", "a").read()).requestCharge, 1, "read");
    assert.equal((await container.items.upsert({ ...item(), n: 2 })).requestCharge, 10.67, "upsert that changes one property");
    assert.equal((await container.item("1", "a").replace({ ...item(), n: 3, more: 1 })).requestCharge, 11.05, "replace that changes one and adds one");
    await container.items.create(item("2"));
    assert.equal((await container.item("2", "a").delete()).requestCharge, 6.67, "delete");
  });

  t.it("are the service's for batches", async () => {
    const path = await t.containerPath();
    const two = ["1", "2"].map((id) => ({ operationType: "Create", resourceBody: { id, pk: "a", n: 1 } }));
    const first = await t.rest.post(`${path}/docs`, two, { headers: batched });
    assert.equal(first.status, 200);
    assert.equal(first.charge, 12.57);
    assert.deepEqual(first.json.map((one) => one.requestCharge), [6.29, 6.29]);
    const hundred = Array.from({ length: 100 }, (_, i) => ({ operationType: "Create", resourceBody: { id: `h${i}`, pk: "a", n: i, s: "text", b: true } }));
    const second = await t.rest.post(`${path}/docs`, hundred, { headers: batched });
    assert.equal(second.charge, 704.76);
    assert.equal(second.json[99].requestCharge, 7.05);
  });

  t.it("are the service's for metadata", async () => {
    const id = t.name();
    assert.equal((await t.rest.post("/dbs", { id })).charge, 1);
    assert.equal((await t.rest.post(`/dbs/${id}/colls`, { id: "c", partitionKey: { paths: ["/pk"] } })).charge, 1);
    assert.equal((await t.rest.get(`/dbs/${id}/colls/c`)).charge, 2);
    await t.rest.delete(`/dbs/${id}`);
    assert.equal((await t.rest.delete(`/dbs/${id}`)).charge, 2);
  });

  t.it("are the same for the same", async () => {
    const path = await t.containerPath();
    const charges = new Set();
    for (let i = 0; i < 20; i++) charges.add((await create(path, item(`${i}`))).charge);
    assert.deepEqual([...charges], [6.67]);
    const reads = new Set();
    for (let i = 0; i < 20; i++) reads.add((await t.rest.get(`${path}/docs/${i}`, { headers: key("a") })).charge);
    assert.deepEqual([...reads], [1]);
  });

  t.it("grow with the size, near the published table", async () => {
    const path = await t.containerPath({ indexingPolicy: { indexingMode: "none", automatic: false, includedPaths: [], excludedPaths: [] } });
    const published = [[1, 1, 4.95], [2, 1.04, 6.29], [4, 1.14, 6.67], [8, 1.33, 7.04], [16, 1.67, 9.52], [32, 2.19, 11.23], [64, 4.76, 22.67], [128, 9.95, 48.19], [256, 20.28, 98.29], [512, 40.95, 184.57], [1024, 145.9, 625]];
    let last = [0, 0];
    for (const [kilobytes, read, write] of published) {
      const id = `${kilobytes}`;
      const made = await create(path, { id, pk: "a", text: "x".repeat(kilobytes * 1024 - 60) });
      const found = await t.rest.get(`${path}/docs/${id}`, { headers: key("a") });
      assert.ok(Math.abs(made.charge - write) <= 0.02 * write + 0.05, `create of ${id} KB: ${made.charge}, published ${write}`);
      assert.ok(Math.abs(found.charge - read) <= 0.02 * read + 0.02, `read of ${id} KB: ${found.charge}, published ${read}`);
      assert.ok(found.charge >= last[0] && made.charge >= last[1]);
      last = [found.charge, made.charge];
    }
  });

  t.it("grow with the indexed properties", async () => {
    const path = await t.containerPath();
    const wide = (id, n) => ({ id, pk: "a", ...Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, i])) });
    const [one, two, ten] = [await create(path, wide("1", 1)), await create(path, wide("2", 2)), await create(path, wide("3", 10))];
    assert.ok(Math.abs(two.charge - one.charge - 8 / 21) < 0.011, "a property is two terms of 4/21");
    assert.ok(Math.abs(ten.charge - one.charge - 72 / 21) < 0.011);
    const some = await t.containerPath({ indexingPolicy: { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/p0/?" }], excludedPaths: [{ path: "/*" }] } });
    assert.ok((await create(some, wide("1", 10))).charge < one.charge);
  });

  t.it("of patches are those of a replace and of each operation", async () => {
    const path = await t.containerPath();
    await create(path, item());
    const one = await t.rest.patch(`${path}/docs/1`, [{ op: "set", path: "/n", value: 2 }], { headers: key("a") });
    assert.ok(Math.abs(one.charge - (10.67 + 0.4)) < 0.011, `${one.charge}`);
    const none = await t.rest.patch(`${path}/docs/1`, [{ op: "set", path: "/n", value: 2 }], { headers: key("a") });
    assert.ok(none.charge < one.charge);
  });

  t.it("are there when a request fails after a look", async () => {
    const path = await t.containerPath();
    await create(path, item());
    const failures = [
      [404, await t.rest.get(`${path}/docs/2`, { headers: key("a") })],
      [409, await create(path, item())],
      [412, await t.rest.put(`${path}/docs/1`, item(), { headers: { ...key("a"), "if-match": '"x"' } })],
      [404, await t.rest.delete(`${path}/docs/2`, { headers: key("a") })],
    ];
    for (const [status, answer] of failures) {
      assert.equal(answer.status, status);
      assert.ok(answer.charge >= 1, `${status}: ${answer.charge}`);
    }
  });
});
