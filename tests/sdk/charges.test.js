// Request charges: figures observed on the hosted service, growth with size, and independence of time.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, suite, key, eventually, Rest, Server } from "./harness.js";

const queried = (rest, path, query, headers) =>
  rest.post(`${path}/docs`, { query }, { headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", ...headers } });
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

  t.it("of a batch that fails are those of what was done before, and taken back", async () => {
    const path = await t.containerPath();
    const wide = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`p${i}`, i]));
    const operations = Array.from({ length: 10 }, (_, i) => ({ operationType: "Upsert", resourceBody: { id: `${i}`, pk: "a", ...wide } }));
    const failing = { operationType: "Delete", id: "nothing" };
    const done = await t.rest.post(`${path}/docs`, operations, { headers: batched });
    const undone = await t.rest.post(`${path}/docs`, [...operations, failing], { headers: batched });
    const first = await t.rest.post(`${path}/docs`, [failing, ...operations], { headers: batched });
    assert.deepEqual([done.status, undone.status, first.status], [200, 207, 207]);
    const replaced = await t.rest.post(`${path}/docs`, operations, { headers: batched });
    assert.ok(Math.abs(undone.charge - replaced.charge - 1) < 0.02, `${undone.charge}, without the one that failed ${replaced.charge}`);
    assert.ok(Math.abs(undone.charge - undone.json.reduce((sum, one) => sum + one.requestCharge, 0)) < 0.1);
    assert.equal(first.charge, 1, "nothing was done before it failed");
  });

  t.it("of a patch that fails are those of reading the item", async () => {
    const path = await t.containerPath();
    await create(path, { id: "1", pk: "a", s: "x".repeat(500_000) });
    await create(path, item("2"));
    const read = await t.rest.get(`${path}/docs/1`, { headers: key("a") });
    const patch = (id, operations, condition) => t.rest.patch(`${path}/docs/${id}`, { operations, condition }, { headers: key("a") });
    const set = { op: "set", path: "/a", value: 1 };
    const failed = [await patch("1", [set], "from c where c.s = 'y'"), await patch("1", [set, { op: "remove", path: "/none" }])];
    assert.deepEqual(failed.map((answer) => answer.status), [412, 400]);
    for (const answer of failed) assert.ok(Math.abs(answer.charge - read.charge) < 0.02, `${answer.charge}, ${read.charge} to read`);
    assert.equal((await patch("2", [set], "from c where c.n = -1")).charge, 1);
  });

  // ---- queries ----

  const asked = async (path, text, headers = {}) => {
    const answer = await queried(t.rest, path, text, headers);
    assert.equal(answer.status, 200, answer.text);
    return answer;
  };
  // Creates many small items in one partition: {id, pk, n, s}.
  const filled = async (n, make = (i) => ({ id: `${i}`, pk: "a", n: i, s: "text" }), settings) => {
    const path = await t.containerPath(settings);
    for (let i = 0; i < n; i += 100) {
      const some = Array.from({ length: Math.min(100, n - i) }, (_, j) => ({ operationType: "Create", resourceBody: make(i + j) }));
      const answer = await t.rest.post(`${path}/docs`, some, { headers: batched });
      assert.equal(answer.status, 200);
    }
    return path;
  };
  const all = { ...key("a"), "x-ms-max-item-count": "-1" };

  t.it("of queries are the service's", async () => {
    const path = await filled(2500);
    assert.equal((await asked(path, "SELECT * FROM c WHERE c.n = -1", all)).charge, 2.25, "an empty page");
    assert.equal((await asked(path, "SELECT * FROM c WHERE c.n = 7", all)).charge, 2.26, "one item");
    const thousand = await asked(path, "SELECT c.id, c.n FROM c", { ...key("a"), "x-ms-max-item-count": "1000" });
    assert.equal(thousand.json._count, 1000);
    assert.equal(thousand.charge, 17.16);
    const most = await asked(path, "SELECT c.id, c.n FROM c", all);
    assert.equal(most.json._count, 2500);
    assert.equal(most.charge, 34.72);
    assert.equal((await asked(path, "SELECT TOP 1 c.id FROM c", all)).charge, 2.26);
    assert.equal((await asked(path, "SELECT 1", all)).charge, 2.26, "a row and no item");
  });

  t.it("of queries are for what the index cannot decide", async () => {
    const excluded = { indexingPolicy: { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/s/?" }] } };
    const path = await filled(400, (i) => ({ id: `${i}`, pk: "a", n: i % 100, s: `t${i % 100}` }), excluded);
    const charge = async (where) => (await asked(path, `SELECT c.id FROM c WHERE ${where}`, all)).charge;
    const four = 2.25 + 4 * 0.01491, scan = 2.25 + 400 * 0.01491;
    const near = (one, other, what) => assert.ok(Math.abs(one - other) < 0.011, `${what}: ${one}, not ${other}`);
    near(await charge("c.n = 1"), four, "by index, or by reading the small partition: all the same");
    near(await charge("c.s = 't1'"), scan, "a path that is not indexed");
    near(await charge("UPPER(c.s) = 'T1'"), scan, "a function");
    near(await charge("c.n = 1 AND c.s = 't1'"), four, "both");
    near(await charge("c.n = 1 AND c.s = 't2'"), four, "found by the one, excluded by the other");
    near(await charge("c.n != 1"), scan, "a negation");
  });

  t.it("of queries grow with what is loaded and what is returned", async () => {
    const path = await filled(40, (i) => ({ id: `${i}`, pk: "a", big: "x".repeat(10_000) }));
    const small = await filled(40);
    const [whole, column, little] = [await asked(path, "SELECT * FROM c", all), await asked(path, "SELECT c.id FROM c", all), await asked(small, "SELECT * FROM c", all)];
    assert.ok(column.charge > little.charge && whole.charge > column.charge, `${little.charge} ${column.charge} ${whole.charge}`);
    const joined = await filled(4, (i) => ({ id: `${i}`, pk: "a", list: Array.from({ length: 100 }, (_, j) => j) }));
    assert.equal((await asked(joined, "SELECT c.id FROM c", all)).charge, 2.31);
    assert.equal((await asked(joined, "SELECT x FROM c JOIN x IN c.list", all)).charge, 4.29, "396 rows more");
  });

  t.it("of queries are twice as much when two replicas are read", async () => {
    const server = await Server.start({ flags: ["--consistency", "Strong"] });
    try {
      const rest = new Rest({ server });
      await rest.post("/dbs", { id: "d" });
      await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
      for (let i = 0; i < 100; i++) await rest.post("/dbs/d/colls/c/docs", item(`${i}`), { headers: key("a") });
      const charge = async (level) => (await queried(rest, "/dbs/d/colls/c", "SELECT * FROM c", { ...key("a"), "x-ms-consistency-level": level })).charge;
      assert.equal(await charge("Strong"), 7.48);
      assert.equal(await charge("Session"), 3.74);
      rest.close();
    } finally {
      await server.stop();
    }
  });

  t.it("of queries are the same ten times, after a restart, and after a split", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-charges-"));
    const queries = [
      "SELECT * FROM c WHERE c.n = 3",
      "SELECT * FROM c WHERE c.n = 3 AND c.even = true",
      "SELECT * FROM c WHERE c.n = 3 AND UPPER(c.s) = 'TEXT'",
      "SELECT * FROM c WHERE c.n > 90 OR c.n < 4",
      "SELECT * FROM c WHERE UPPER(c.s) = 'NONE'",
      "SELECT TOP 5 * FROM c ORDER BY c.n DESC",
      "SELECT VALUE COUNT(1) FROM c WHERE c.even = true",
      "SELECT DISTINCT VALUE c.n FROM c WHERE c.n < 10",
    ];
    let server = await Server.start({ data, flags: ["--merges", "off"] });
    try {
      let rest = new Rest({ server });
      const path = "/dbs/d/colls/c";
      await rest.post("/dbs", { id: "d" });
      await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], version: 2 } });
      for (let i = 0; i < 900; i++) {
        const answer = await rest.post(`${path}/docs`, { id: `${i}`, pk: `p${i}`, n: i % 100, even: i % 2 === 0, s: "text" }, { headers: key(`p${i}`) });
        assert.equal(answer.status, 201);
      }
      const ranges = async () => (await rest.get(`${path}/pkranges`)).json.PartitionKeyRanges.map(({ id }) => id);
      // Queries each range separately; returns the sum of the charges without the base charge of each range.
      const costs = async () => {
        const list = [];
        const ids = await ranges();
        for (const text of queries) {
          let sum = 0;
          for (const id of ids) {
            const answer = await queried(rest, path, text, { "x-ms-documentdb-partitionkeyrangeid": id, "x-ms-max-item-count": "-1" });
            assert.equal(answer.status, 200, answer.text);
            sum += answer.charge - 2.25;
          }
          list.push(sum);
        }
        return list;
      };
      const first = await costs();
      for (let i = 0; i < 9; i++) assert.deepEqual(await costs(), first);
      rest.close();
      await server.stop();
      server = await Server.start({ data, flags: ["--merges", "off"] });
      rest = new Rest({ server });
      assert.deepEqual(await costs(), first, "after a restart");
      const [only] = await ranges();
      assert.equal((await rest.post("/_tesela/split", { database: "d", container: "c", range: only, parts: 2 }, { sign: false })).status, 200);
      const close = (list, what) => {
        for (const [i, one] of list.entries()) {
          // Each range returns up to TOP rows, and all of its distinct values.
          const more = 0.011 + (queries[i].includes("TOP 5") ? 5 * 0.01491 : queries[i].includes("DISTINCT") ? 10 * 0.005 : 0);
          assert.ok(one >= first[i] - 0.011 && one <= first[i] + more, `${what}: ${queries[i]}: ${one}, before ${first[i]}`);
        }
      };
      close(await costs(), "right after a split");
      const moving = async () => (await rest.get("/_tesela/ranges?database=d&container=c", { sign: false })).json.ranges.some((range) => range.moving);
      await eventually("the split settles", async () => !(await moving()));
      close(await costs(), "when a split has settled");
      const together = await queried(rest, path, queries[0], { "x-ms-documentdb-query-enablecrosspartition": "True" });
      assert.ok(Math.abs(together.charge - first[0] - 4.5) < 0.011, "of several ranges in one request: once for each");
      rest.close();
    } finally {
      await server.stop();
      rmSync(data, { recursive: true });
    }
  });
});
