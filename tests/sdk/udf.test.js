// User-defined functions in queries: over several ranges with everything that the SDK merges, in pages with continuations, their charges,
// rejected ones, and hostile ones, which are ended without effect on other clients.

import { assert, fails, suite } from "./harness.js";
import { stopwatch } from "./processes.js";

const bare = { sign: false };
const count = 240;
const itemsOf = () => Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `p${i % 24}`, n: i, s: `s${i % 7}`, tags: [`t${i % 3}`, `t${i % 5}`], price: i % 4 ? i / 4 : undefined }));

const functions = {
  twice: (x) => 2 * x,
  big: (n) => n > 120,
  bucket: (s) => `group ${s}`,
  tax: (price) => (price === undefined ? "none" : price < 20 ? 0 : price * 0.1),
  upper: (s) => s.toUpperCase(),
  context: () => [typeof getContext, typeof __, typeof require, typeof process, typeof fetch, typeof setTimeout].join(),
};

async function filled(t, { throughput = 400, bodies = functions } = {}) {
  const container = await t.container({}, { offerThroughput: throughput });
  for (const [id, body] of Object.entries(bodies)) await container.scripts.userDefinedFunctions.create({ id, body });
  const operations = itemsOf().map((resourceBody) => ({ operationType: "Create", partitionKey: resourceBody.pk, resourceBody }));
  for (const result of await container.items.executeBulkOperations(operations)) assert.equal(result.response?.statusCode, 201);
  return container;
}

suite(
  "user-defined functions",
  (t) => {
    const shared = {};
    const rows = async (query, options, container = shared.container) => (await container.items.query(query, options).fetchAll()).resources;
    const numbers = (list) => [...list].sort((a, b) => a - b);

    t.it("there is a container with ten ranges, and functions", async () => {
      shared.container = await filled(t, { throughput: 60_000 });
      const { resources } = await shared.container.readPartitionKeyRanges().fetchAll();
      assert.equal(resources.length, 10);
    });

    t.it("stand in WHERE and SELECT over all ranges", async () => {
      const found = await rows("SELECT c.n, udf.twice(c.n) AS m FROM c WHERE udf.big(c.n)");
      assert.equal(found.length, count - 121);
      for (const { n, m } of found) assert.ok(n > 120 && m === 2 * n);
    });

    t.it("stand beside ORDER BY, merged in order", async () => {
      for (const maxDegreeOfParallelism of [0, 10]) {
        const found = await rows("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.big(c.n) ORDER BY c.n DESC", { maxItemCount: 7, maxDegreeOfParallelism });
        assert.deepEqual(found, Array.from({ length: count - 121 }, (_, i) => 2 * (count - 1 - i)));
      }
    });

    t.it("group, and are aggregated", async () => {
      const found = await rows("SELECT udf.bucket(c.s) AS g, COUNT(1) AS k, MAX(udf.twice(c.n)) AS m, AVG(udf.twice(c.n)) AS a FROM c GROUP BY udf.bucket(c.s)");
      const expected = Array.from({ length: 7 }, (_, i) => {
        const of = itemsOf().filter((item) => item.s === `s${i}`).map((item) => 2 * item.n);
        return { g: `group s${i}`, k: of.length, m: Math.max(...of), a: of.reduce((a, b) => a + b) / of.length };
      });
      assert.deepEqual(found.sort((a, b) => (a.g < b.g ? -1 : 1)), expected);
      assert.deepEqual(await rows("SELECT VALUE SUM(udf.twice(c.n)) FROM c"), [count * (count - 1)]);
      assert.deepEqual(await rows("SELECT VALUE COUNT(1) FROM c WHERE udf.big(c.n)"), [count - 121]);
    });

    t.it("ten of them, which a plan repeats", async () => {
      const [found] = await rows(`SELECT ${Array.from({ length: 10 }, (_, i) => `${i % 2 ? "MIN" : "AVG"}(udf.twice(c.n + ${i})) AS a${i}`).join()} FROM c`);
      assert.equal(found.a0, count - 1);
      assert.equal(found.a9, 18);
    });

    t.it("with DISTINCT, TOP, OFFSET and LIMIT", async () => {
      assert.deepEqual((await rows("SELECT DISTINCT VALUE udf.bucket(c.s) FROM c")).sort(), Array.from({ length: 7 }, (_, i) => `group s${i}`));
      assert.equal((await rows("SELECT TOP 13 VALUE udf.twice(c.n) FROM c WHERE udf.big(c.n)")).length, 13);
      assert.deepEqual(await rows("SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n OFFSET 5 LIMIT 3"), [10, 12, 14]);
    });

    t.it("in JOINs and subqueries", async () => {
      const found = await rows("SELECT VALUE udf.upper(t) FROM c JOIN t IN c.tags WHERE c.n < 3 AND EXISTS(SELECT VALUE x FROM x IN c.tags WHERE udf.upper(x) = 'T1')");
      assert.deepEqual(found.sort(), ["T1", "T1"]);
    });

    t.it("go on by continuation, page by page, in another client", async () => {
      const query = "SELECT VALUE c.n FROM c WHERE udf.big(c.n) AND c.pk = 'p5'";
      const all = await rows(query, { partitionKey: "p5" });
      const found = [];
      let continuationToken;
      do {
        const client = t.newClient();
        const page = await client.database(t.database.id).container(shared.container.id).items.query(query, { partitionKey: "p5", maxItemCount: 2, continuationToken }).fetchNext();
        client.dispose();
        found.push(...page.resources);
        continuationToken = page.continuationToken;
      } while (continuationToken);
      assert.deepEqual(found, all);
      assert.deepEqual(numbers(found), itemsOf().filter(({ n, pk }) => n > 120 && pk === "p5").map(({ n }) => n));
    });

    t.it("see an argument that is not there", async () => {
      const found = await rows("SELECT VALUE [c.n, udf.tax(c.price)] FROM c WHERE c.n IN (4, 5, 81)");
      assert.deepEqual(found.sort((a, b) => a[0] - b[0]), [[4, "none"], [5, 0], [81, 2.025]]);
    });

    t.it("have no context, nor anything outside of the language", async () => {
      assert.deepEqual(await rows("SELECT TOP 1 VALUE udf.context() FROM c", { partitionKey: "p1" }), [Array(6).fill("undefined").join()]);
    });

    t.it("that are replaced are new for the next page", async () => {
      const container = await filled(t, { bodies: { f: "function () { return 1; }" } });
      assert.deepEqual(await rows("SELECT TOP 1 VALUE udf.f() FROM c", { partitionKey: "p1" }, container), [1]);
      await container.scripts.userDefinedFunction("f").replace({ id: "f", body: "function () { return 2; }" });
      assert.deepEqual(await rows("SELECT TOP 1 VALUE udf.f() FROM c", { partitionKey: "p1" }, container), [2]);
      await container.scripts.userDefinedFunction("f").delete();
      await fails(rows("SELECT TOP 1 VALUE udf.f() FROM c", { partitionKey: "p1" }, container), 400, { text: "'f' is not a recognized user-defined function name." });
    });

    t.it("cost the same each time, and by calls", async () => {
      const charge = async (query) => (await shared.container.items.query(query, { partitionKey: "p5", maxItemCount: 100 }).fetchNext()).requestCharge;
      const [with1, with2] = [await charge("SELECT VALUE udf.twice(c.n) FROM c"), await charge("SELECT VALUE udf.twice(c.n) FROM c")];
      const without = await charge("SELECT VALUE c.n * 2 FROM c");
      assert.equal(with1, with2);
      assert.ok(Math.abs(with1 - without - 10 * 0.01) < 0.0101, `${with1} against ${without}`); // charges are rounded to two decimals
    });

    t.it("are timed in the query metrics", async () => {
      const path = `${t.databasePath}/colls/${shared.container.id}`;
      const headers = { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-partitionkey": '["p5"]', "x-ms-documentdb-populatequerymetrics": "True" };
      const ask = async (query) => (await t.rest.post(`${path}/docs`, { query, parameters: [] }, { headers })).headers["x-ms-documentdb-query-metrics"];
      assert.match(await ask("SELECT VALUE udf.twice(c.n) FROM c"), /userFunctionExecuteTimeInMs=(?!0\.00)/);
      assert.match(await ask("SELECT VALUE c.n FROM c"), /userFunctionExecuteTimeInMs=0\.00/);
    });

    t.it("are explained", async () => {
      const body = { database: t.database.id, container: shared.container.id, query: "SELECT VALUE udf.twice(c.n) FROM c WHERE c.n < 5 AND udf.big(c.n + 118)" };
      const told = (await t.rest.post("/_tesela/explain", body, bare)).json;
      assert.equal(told.rows, 2);
      assert.equal(told.functionCalls, 7);
      assert.match(told.words.join("\n"), /7 calls of user-defined functions/);
      assert.match(JSON.stringify(told.conditions), /the user-defined function big is called with each item/);
      const unknown = await t.rest.post("/_tesela/explain", { ...body, query: "SELECT VALUE udf.none() FROM c" }, bare);
      assert.equal(unknown.status, 400);
    });

    t.it("are refused in ORDER BY, and more than ten of them", async () => {
      await fails(rows("SELECT * FROM c ORDER BY udf.twice(c.n)"), 400, { text: "could not be mapped to a document path" });
      await fails(rows(`SELECT VALUE 1 ${"+ udf.twice(1)".repeat(11)} FROM c`, { partitionKey: "p1" }), 400, { text: "The allowed limit is 10." });
      assert.equal((await rows(`SELECT TOP 1 VALUE 1 ${"+ udf.twice(1)".repeat(10)} FROM c`, { partitionKey: "p1" }))[0], 21);
    });

    // ---- hostile ones ----

    const ask = (container, query = "SELECT VALUE udf.f(c.n) FROM c", options = { partitionKey: "p1" }) => rows(query, options, container);
    const withFunction = async (body) => {
      const container = await t.container();
      await container.items.create({ id: "1", pk: "p1", n: 1 });
      await container.scripts.userDefinedFunctions.create({ id: "f", body });
      return container;
    };

    // The errors of functions that return no usable value.
    const failing = {
      "throws an Error": ["function () { throw new Error('so it is'); }", 400, "so it is"],
      "throws a string": ["function () { throw 'bare'; }", 400, "bare"],
      "throws nothing": ["function () { throw undefined; }", 400, "undefined"],
      "throws an object whose text throws": ["function () { throw { toString() { throw 1; }, toJSON() { throw 2; } }; }", 400],
      "throws from a getter of its result": ["function () { return { get a() { throw new Error('got'); } }; }", 400, "got"],
      "throws from toJSON": ["function () { return { toJSON() { throw new Error('told'); } }; }", 400, "told"],
      "recurses for ever": ["function f() { return f(); }", 400],
      "returns a BigInt": ["function () { return 1n; }", 400],
      "returns what holds itself": ["function () { const o = []; o.push(o); return o; }", 400],
      "is no function": ["{ not javascript", 400],
      "is a number": ["5", 400],
      "calls what is not there": ["function () { return getContext().getCollection(); }", 400],
    };
    for (const [what, [body, status, text]] of Object.entries(failing)) {
      t.it(`one that ${what} fails its query`, async () => {
        const container = await withFunction(body);
        await fails(ask(container), status, text ? { text } : {});
        assert.deepEqual(await ask(container, "SELECT VALUE c.n FROM c"), [1]);
      });
    }

    // Values that a function may return.
    const giving = {
      "a function": ["function () { return () => 1; }", []],
      "a symbol": ["function () { return Symbol('s'); }", []],
      "NaN": ["function () { return NaN; }", [null]],
      "a Date": ["function () { return new Date(0); }", ["1970-01-01T00:00:00.000Z"]],
      "a Map": ["function () { return new Map([[1, 2]]); }", [{}]],
      "a Promise": ["function () { return Promise.resolve(1); }", [{}]],
      "a Proxy": ["function () { return new Proxy([1, 2], {}); }", [[1, 2]]],
      "a sparse array": ["function () { const a = [1]; a[3] = 4; return a; }", [[1, null, null, 4]]],
      "a string of lone surrogates": ["function () { return '\\ud800'; }", ["\ufffd"]],
      "a text of a megabyte": ["function () { return 'x'.repeat(1 << 20); }", ["x".repeat(1 << 20)]],
      "members named __proto__": ["function () { return JSON.parse('{\"__proto__\": 1, \"b\": 2}'); }", null],
      "what others took away": ["function () { delete globalThis.JSON; Array.isArray = null; Object.prototype.toJSON = null; return [1]; }", [[1]]],
    };
    for (const [what, [body, expected]] of Object.entries(giving)) {
      t.it(`one may return ${what}`, async () => {
        const container = await withFunction(body);
        const found = await ask(container);
        if (expected) assert.deepEqual(found, expected);
        else assert.equal(found.length, 1);
        assert.deepEqual(await ask(container), found);
      });
    }

    t.it("those that never end, or take all memory, end with their query; others notice nothing", async () => {
      const loops = ["for (;;) {}", "while (true) { try { for (;;) {} } finally { continue; } }", "/(a+)+b/.test('a'.repeat(40)); for (;;) {}", "const a = []; for (;;) a.push(new Array(1000).fill(a.length));", "let s = 'x'; for (;;) s += s + Math.random();", "(async () => { for (;;) await 0; })(); for (;;) {}"];
      const containers = await Promise.all(loops.map((body) => withFunction(`function () { ${body} }`)));
      const elapsed = stopwatch(t.server.child.pid);
      let others = 0;
      let slowest = 0;
      const ended = Promise.all(containers.map((container) => assert.rejects(ask(container), ({ code }) => [400, 408, 413].includes(code))));
      let going = true;
      const watch = (async () => {
        while (going) {
          const taken = stopwatch(t.server.child.pid);
          assert.equal((await rows("SELECT VALUE c.n FROM c", { partitionKey: "p5" })).length, 10);
          slowest = Math.max(slowest, taken());
          others++;
        }
      })();
      await ended;
      going = false;
      await watch;
      assert.ok(elapsed() < 25_000, "they end");
      assert.ok(others > 20 && slowest < 3_000, `${others} others, the slowest took ${slowest} ms`);
      assert.equal((await rows("SELECT VALUE udf.twice(c.n) FROM c", { partitionKey: "p5" })).length, 10);
    });

    t.it("rows before one that fails are given", async () => {
      const container = await filled(t, { bodies: { f: "function (n) { if (n > 200) throw new Error('too big'); return n; }" } });
      const found = [];
      const iterator = container.items.query("SELECT VALUE udf.f(c.n) FROM c", { partitionKey: "p5", maxItemCount: 2 });
      await fails(
        (async () => {
          while (iterator.hasMoreResults()) found.push(...((await iterator.fetchNext()).resources ?? []));
        })(),
        400,
        { text: "too big" },
      );
      assert.deepEqual(found, [5, 29, 53, 77, 101, 125, 149, 173, 197].slice(0, found.length));
      assert.ok(found.length >= 8);
    });
  },
  { schemes: ["http"] },
);
