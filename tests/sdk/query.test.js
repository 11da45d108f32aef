// Queries over ten ranges with the SDK: its merging, order, pages and settings; and which requests reach which range. The expected rows are
// computed by tests/query/reference over the items in the order of the ranges.

import { assert, fails, key, rounds, suite } from "./harness.js";
import { compare, run } from "../query/reference/index.mjs";

const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
const composite = (...paths) => paths.map(([path, order = "ascending"]) => ({ path, order }));
const indexingPolicy = {
  indexingMode: "consistent",
  includedPaths: [{ path: "/*" }],
  excludedPaths: [],
  compositeIndexes: [
    composite(["/n"], ["/s"]),
    composite(["/n"], ["/s", "descending"]),
    composite(["/colour"], ["/n", "descending"], ["/at"]),
  ],
};

const colours = ["red", "green", "blue"];
const words = ["zebra", "Äpfel", "apple", "", "Zoo", "ñandú", "10", "9", "日本", "😀"];

// Items with numbers and texts with many ties, in 61 logical partitions.
function makeItems(n) {
  return Array.from({ length: n }, (_, i) => ({
    id: `${i}`,
    pk: `key ${(i * 7) % 61}`,
    at: i,
    n: (i * 5) % 11,
    s: words[(i * 3) % words.length],
    colour: colours[i % 3],
    price: ((i * 37) % 100) / 4,
    tags: Array.from({ length: i % 4 }, (_, j) => words[(i + j) % words.length]),
    deep: { flag: i % 2 === 0, list: [i % 5, i % 3] },
    ...(i % 3 === 0 && { sometimes: i % 7 }),
  }));
}

async function fill(container, items) {
  for (let i = 0; i < items.length; i += 100) {
    const operations = items.slice(i, i + 100).map((resourceBody) => ({ operationType: "Create", partitionKey: resourceBody.pk, resourceBody }));
    for (const { response, error } of await container.items.executeBulkOperations(operations)) assert.equal(response?.statusCode ?? error.code, 201);
  }
}

const all = async (iterator) => (await iterator.fetchAll()).resources;
const bare = (row) => (row && typeof row === "object" && "_rid" in row ? Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith("_"))) : row);

// A suite's container, and its items in the order of its ranges.
class Data {
  static async make(t, n, ranges = 10) {
    const data = new Data();
    data.container = await t.container({ partitionKey: v2, indexingPolicy, maxThroughput: ranges * 10_000 });
    assert.equal((await all(data.container.readPartitionKeyRanges())).length, ranges);
    await fill(data.container, makeItems(n));
    const items = await all(data.container.items.readAll());
    const rangeOf = ({ _rid }) => Buffer.from(_rid, "base64").readBigUInt64LE(8) >> 40n;
    data.ranges = [...new Set(items.map(rangeOf))].map((range) => items.filter((item) => rangeOf(item) === range).map(bare));
    data.items = data.ranges.flat();
    assert.equal(data.items.length, n);
    return data;
  }

  // Ties come range by range, and by creation in each, the newest first in descending order. The reference reverses all ties, ranges
  // included, so the ranges are reversed beforehand.
  expected(query, parameters = {}) {
    const down = /ORDER BY [^,]*? DESC/.test(query);
    const items = down ? [...this.ranges].reverse().flat() : this.items;
    return run({ query, parameters, items, container: { indexingPolicy } }).map(bare);
  }

  async rows(query, parameters = {}, options = {}) {
    const spec = { query, parameters: Object.entries(parameters).map(([name, value]) => ({ name, value })) };
    return (await all(this.container.items.query(spec, options))).map(bare);
  }
}

// The SDK merges DISTINCT with `if (row)`, so it loses "", 0 and false if there are several ranges.
const distinct = (query, rows) => (query.includes("DISTINCT") ? rows.filter((row) => row) : rows);
const ordered = (rows) => [...rows].sort((a, b) => compare(a, b));

suite("queries over ten ranges", (t) => {
  let data;
  const check = async (query, { parameters, order = true, options } = {}) => {
    const [rows, expected] = [await data.rows(query, parameters, options), distinct(query, data.expected(query, parameters))];
    assert.deepEqual(order ? rows : ordered(rows), order ? expected : ordered(expected), query);
    return rows;
  };

  t.it("find what a filter asks for", async () => {
    data = await Data.make(t, 300);
    for (const where of ["c.n = 3", "c.n > 3 AND c.colour = 'red'", "c.s IN ('apple', 'ñandú')", "ARRAY_CONTAINS(c.tags, 'Zoo')", "c.deep.list[0] = 4", "NOT IS_DEFINED(c.sometimes)", "c.s LIKE '%a%'", "c.n = 99", "c.deep.flag OR c.price BETWEEN 3 AND 4"]) {
      await check(`SELECT * FROM c WHERE ${where}`);
      await check(`SELECT VALUE c.at FROM c WHERE ${where}`);
    }
    await check("SELECT c.id, c.n + 1 AS more, {a: c.s, b: [c.n, c.missing]} AS made FROM c");
    await check("SELECT VALUE {at: c.at, s: UPPER(c.s)} FROM c WHERE c.at < 40");
  });

  t.it("take parameters of every type", async () => {
    await check("SELECT VALUE c.at FROM c WHERE c.n = @n AND c.deep.flag = @flag AND c.s != @s", { parameters: { "@n": 4, "@flag": true, "@s": "apple" } });
    await check("SELECT VALUE c.at FROM c WHERE ARRAY_CONTAINS(@list, c.s) AND c.deep.list = @array", { parameters: { "@list": ["apple", "9"], "@array": [1, 0] } });
    await check("SELECT VALUE c.at FROM c WHERE c.deep = @object", { parameters: { "@object": { list: [2, 1], flag: false } } });
    await check("SELECT TOP @top VALUE c.at FROM c WHERE c.n < @n", { parameters: { "@top": 5, "@n": 7 } });
    await check("SELECT VALUE c.at FROM c ORDER BY c.at OFFSET @skip LIMIT @take", { parameters: { "@skip": 17, "@take": 9 } });
    assert.deepEqual(await data.rows("SELECT * FROM c WHERE c.n = @nobody"), [], "one that is not passed is undefined");
  });

  t.it("join within items, and have subqueries", async () => {
    await check("SELECT c.at, tag FROM c JOIN tag IN c.tags WHERE tag != 'apple'");
    await check("SELECT VALUE [c.at, x, y] FROM c JOIN x IN c.deep.list JOIN y IN c.tags WHERE x > 2");
    await check("SELECT VALUE tag FROM tag IN c.tags WHERE STARTSWITH(tag, 'Z')");
    await check("SELECT VALUE c.at FROM c WHERE EXISTS(SELECT VALUE tag FROM tag IN c.tags WHERE tag = '10')");
    await check("SELECT c.at, ARRAY(SELECT VALUE LENGTH(tag) FROM tag IN c.tags) AS lengths FROM c WHERE ARRAY_LENGTH(c.tags) > 2");
    await check("SELECT VALUE (SELECT VALUE MAX(x) FROM x IN c.deep.list) FROM c WHERE c.at < 50");
  });

  t.it("are ordered by one key, ties in the order of ranges and of creation", async () => {
    for (const by of ["c.at", "c.n", "c.s", "c.price", "c.deep.flag", "c.colour", "c.id", "c.n ASC", "c.n DESC", "c.s DESC", "c.deep.flag DESC"]) {
      await check(`SELECT VALUE c.at FROM c ORDER BY ${by}`);
    }
    await check("SELECT * FROM c WHERE c.colour != 'red' ORDER BY c.n DESC");
    await check("SELECT c.id, c.s FROM c WHERE c.n IN (1, 2, 3) ORDER BY c.s");
    await check("SELECT VALUE c.tags[0] FROM c WHERE ARRAY_LENGTH(c.tags) > 1 ORDER BY c.price DESC");
    await check("SELECT VALUE c.sometimes FROM c WHERE IS_DEFINED(c.sometimes) ORDER BY c.sometimes DESC");
  });

  t.it("are ordered by several keys that have a composite index", async () => {
    for (const by of ["c.n, c.s", "c.n ASC, c.s DESC", "c.n DESC, c.s ASC", "c.n DESC, c.s DESC", "c.colour, c.n DESC, c.at", "c.colour DESC, c.n ASC, c.at DESC"]) {
      await check(`SELECT VALUE c.at FROM c ORDER BY ${by}`);
      await check(`SELECT TOP 13 c.at, c.s FROM c WHERE c.price > 5 ORDER BY ${by}`);
    }
  });

  t.it("are counted, added up and the like", async () => {
    for (const what of ["COUNT(1)", "COUNT(c.sometimes)", "SUM(c.n)", "AVG(c.price)", "MIN(c.price)", "MAX(c.s)", "MIN(c.s)", "MAX(c.at)", "SUM(c.price * 2)", "AVG(c.sometimes)"]) {
      await check(`SELECT VALUE ${what} FROM c`);
      await check(`SELECT VALUE ${what} FROM c WHERE c.colour = 'blue' AND c.n > 2`);
    }
    await check("SELECT VALUE COUNT(1) FROM c WHERE c.n = 99");
    await check("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'key 1' AND c.pk = 'key 2'");
    await check("SELECT VALUE COUNT(tag) FROM c JOIN tag IN c.tags");
    for (const by of ["c.n", "c.n DESC", "c.n, c.price"]) { // one row has no order: none needs a composite index
      assert.deepEqual(await data.rows(`SELECT VALUE AVG(c.price) FROM c ORDER BY ${by}`), data.expected("SELECT VALUE AVG(c.price) FROM c"));
    }
    assert.deepEqual(await data.rows("SELECT VALUE COUNT(tag) FROM c JOIN tag IN c.tags ORDER BY tag"), data.expected("SELECT VALUE COUNT(tag) FROM c JOIN tag IN c.tags"));
    assert.deepEqual(await data.rows("SELECT VALUE SUM(c.s) FROM c WHERE c.n = 1"), data.expected("SELECT VALUE SUM(c.s) FROM c WHERE c.n = 1"));
  });

  t.it("are grouped", async () => {
    const unordered = { order: false };
    await check("SELECT c.colour, COUNT(1) AS n FROM c GROUP BY c.colour", unordered);
    await check("SELECT c.n, c.colour, SUM(c.price) AS total, AVG(c.at) AS mean, MIN(c.s) AS least, MAX(c.s) AS most FROM c GROUP BY c.n, c.colour", unordered);
    await check("SELECT UPPER(c.s) AS word, COUNT(1) AS n FROM c WHERE c.n > 4 GROUP BY UPPER(c.s)", unordered);
    await check("SELECT VALUE COUNT(1) FROM c GROUP BY c.deep.flag", unordered);
    await check("SELECT VALUE c.s FROM c GROUP BY c.s", unordered);
    await check("SELECT c.deep.list AS list, COUNT(1) AS n FROM c GROUP BY c.deep.list", unordered);
    await check("SELECT c.sometimes, COUNT(1) AS n FROM c GROUP BY c.sometimes", unordered);
    await check("SELECT tag, COUNT(1) AS n FROM c JOIN tag IN c.tags GROUP BY tag", unordered);
  });

  t.it("are distinct", async () => {
    await check("SELECT DISTINCT VALUE c.s FROM c", { order: false });
    await check("SELECT DISTINCT c.n, c.colour FROM c", { order: false });
    await check("SELECT DISTINCT c.deep FROM c", { order: false });
    await check("SELECT DISTINCT VALUE tag FROM c JOIN tag IN c.tags", { order: false });
    await check("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n");
    await check("SELECT DISTINCT VALUE c.s FROM c ORDER BY c.s DESC");
    await check("SELECT DISTINCT c.s FROM c", { order: false });
    await fails(data.rows("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.s FROM c)"), 400, { text: "DCount, which the calling client does not support" });
  });

  t.it("are bounded by TOP, OFFSET and LIMIT", async () => {
    // Without an order the SDK takes a page from each range in turn, so rows come range by range only if each range fits a page.
    const options = { maxItemCount: 1000 };
    for (const [offset, limit] of [[0, 1], [0, 10], [5, 10], [295, 10], [300, 5], [1000, 5], [7, 0], [0, 1000]]) {
      await check(`SELECT VALUE c.at FROM c OFFSET ${offset} LIMIT ${limit}`, { options });
      await check(`SELECT VALUE c.at FROM c ORDER BY c.at DESC OFFSET ${offset} LIMIT ${limit}`);
      await check(`SELECT VALUE c.n FROM c WHERE c.colour = 'green' ORDER BY c.n OFFSET ${offset} LIMIT ${limit}`);
    }
    for (const top of [0, 1, 7, 299, 300, 5000]) {
      await check(`SELECT TOP ${top} VALUE c.at FROM c`, { options });
      await check(`SELECT TOP ${top} * FROM c ORDER BY c.s`);
    }
    await check("SELECT DISTINCT TOP 4 c.n FROM c ORDER BY c.n");
    await check("SELECT DISTINCT c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 4");
  });

  const settings = [];
  for (const maxItemCount of [1, 7, 100]) {
    for (const maxDegreeOfParallelism of maxItemCount === 1 ? [0, 10] : [0, 1, 10, -1]) settings.push({ maxItemCount, maxDegreeOfParallelism, bufferItems: settings.length % 2 === 0 });
  }
  settings.push({ maxItemCount: 7, maxDegreeOfParallelism: 10, bufferItems: true, forceQueryPlan: true }, { maxItemCount: 100, forceQueryPlan: true });

  t.it("give the same rows in the same order whatever the page size, the parallelism and the buffering", async () => {
    data = await Data.make(t, 60); // few items, since pages of one row take many requests
    const queries = [
      ["SELECT VALUE c.at FROM c WHERE c.price > 12", true],
      ["SELECT VALUE c.at FROM c ORDER BY c.n DESC", true],
      ["SELECT c.at, c.n, c.s FROM c WHERE c.at % 2 = 0 ORDER BY c.n, c.s DESC", true],
      ["SELECT VALUE AVG(c.price) FROM c", true],
      ["SELECT c.s, COUNT(1) AS n FROM c GROUP BY c.s", false],
      ["SELECT DISTINCT VALUE c.s FROM c", false],
      ["SELECT VALUE c.at FROM c ORDER BY c.s OFFSET 20 LIMIT 45", true],
      ["SELECT c.at, tag FROM c JOIN tag IN c.tags ORDER BY c.n", true],
      ["SELECT TOP 31 VALUE c.at FROM c ORDER BY c.price", true],
    ];
    for (const [i, [query, order]] of queries.entries()) {
      const step = 4 / rounds(4); // with a sanitizer each setting is tried for a quarter of the queries
      const tried = settings.filter((_, j) => j % step === i % step);
      for (const options of tried) await check(query, { order: order && (query.includes("ORDER BY") || !options.forceQueryPlan), options });
    }
    // With -1 the SDK never ends if it merges, so a pass-through query is used.
    await check("SELECT VALUE c.at FROM c WHERE c.price > 3", { options: { maxItemCount: -1, maxDegreeOfParallelism: 10 } });
  });

  t.it("come page by page as they come at once", async () => {
    for (const query of ["SELECT VALUE c.at FROM c WHERE c.n != 5", "SELECT VALUE c.at FROM c WHERE c.at < 40 ORDER BY c.s", "SELECT VALUE c.at FROM c ORDER BY c.n, c.s OFFSET 3 LIMIT 20"]) {
      const expected = data.expected(query);
      for (const maxItemCount of [1, 7, 100, undefined]) {
        const byNext = [];
        const iterator = data.container.items.query(query, { maxItemCount });
        while (iterator.hasMoreResults()) {
          const { resources } = await iterator.fetchNext();
          if (maxItemCount) assert.ok((resources ?? []).length <= maxItemCount, `${resources?.length} of ${maxItemCount}`);
          byNext.push(...(resources ?? []));
        }
        assert.deepEqual(byNext, expected, `${query}, ${maxItemCount} by fetchNext`);
        const byLoop = [];
        for await (const { resources } of data.container.items.query(query, { maxItemCount }).getAsyncIterator()) byLoop.push(...resources);
        assert.deepEqual(byLoop, expected, `${query}, ${maxItemCount} by for await`);
      }
    }
  });

  t.it("of one partition key see that partition alone, and need no plan", async () => {
    const queries = [
      "SELECT * FROM c", "SELECT VALUE c.at FROM c ORDER BY c.n DESC", "SELECT VALUE COUNT(1) FROM c", "SELECT c.colour, COUNT(1) AS n FROM c GROUP BY c.colour", "SELECT DISTINCT VALUE c.colour FROM c",
      "SELECT TOP 2 VALUE c.at FROM c", "SELECT VALUE c.at FROM c ORDER BY c.at OFFSET 1 LIMIT 2", "SELECT AVG(c.price) AS mean, MAX(c.at) AS most FROM c", "SELECT VALUE c.at FROM c ORDER BY c.sometimes", "SELECT VALUE c.at FROM c ORDER BY c.sometimes DESC",
    ];
    for (const partitionKey of ["key 3", "key 60", "nobody"]) {
      const items = data.items.filter((item) => item.pk === partitionKey);
      for (const query of queries) {
        for (const maxItemCount of [2, -1, undefined]) {
          const rows = (await all(data.container.items.query(query, { partitionKey, maxItemCount }))).map(bare);
          assert.deepEqual(rows, run({ query, items }).map(bare), `${query} of ${partitionKey}, ${maxItemCount}`);
        }
      }
    }
  });

  t.it("of mixed types: the SDK refuses to merge them, a range has them in the order of types", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 20_000 });
    const values = [undefined, null, false, true, -1, 0, 2.5, 1e300, "", "a", "b", [], [1], {}, { a: 1 }];
    for (const pk of ["a", "b", "key 3", "key 9"]) {
      for (const [i, v] of [...values, ...values].entries()) await container.items.create({ id: `${i}`, pk, v });
    }
    await assert.rejects(container.items.query("SELECT * FROM c ORDER BY c.v").fetchAll(), /mixed types|unrecognizable type/);
    for (const direction of ["ASC", "DESC"]) {
      const query = `SELECT VALUE {id: c.id, v: c.v} FROM c ORDER BY c.v ${direction}`;
      const items = (await all(container.items.query("SELECT * FROM c", { partitionKey: "a" }))).map(bare);
      const expected = run({ query, items });
      assert.equal(expected.length, 30);
      for (const maxItemCount of [1, 4, 100]) assert.deepEqual(await all(container.items.query(query, { partitionKey: "a", maxItemCount })), expected, `${direction}, ${maxItemCount}`);
      const numbers = "SELECT VALUE c.v FROM c WHERE IS_NUMBER(c.v) ORDER BY c.v";
      assert.deepEqual(await all(container.items.query(numbers)), [-1, 0, 2.5, 1e300].flatMap((v) => Array(8).fill(v)));
    }
  });
}, { schemes: ["http"] });

suite("queries and what they ask of which range", (t) => {
  // A client that records the ranges and keys of its queries.
  function watched() {
    const seen = [];
    const plugin = async (context, diagnostics, next) => {
      const { headers } = context;
      if (context.resourceType === "docs" && headers["x-ms-documentdb-isquery"] && !headers["x-ms-cosmos-is-query-plan-request"]) {
        seen.push(headers["x-ms-documentdb-partitionkeyrangeid"] ?? headers["x-ms-documentdb-partitionkey"] ?? "all");
      }
      return next(context);
    };
    const client = t.newClient({ plugins: [{ on: "request", plugin }] });
    return { client, seen: () => [...new Set(seen.splice(0))].sort((a, b) => Number(a) - Number(b)) };
  }

  t.it("go to the ranges of the keys that their filter demands", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 100_000 });
    const rangeOf = new Map();
    for (let i = 0; i < 60; i++) {
      const { headers } = await container.items.create({ id: `${i}`, pk: `key ${i}`, n: i });
      rangeOf.set(`key ${i}`, headers["x-ms-documentdb-partitionkeyrangeid"]);
    }
    assert.equal(new Set(rangeOf.values()).size, 10);
    const { client, seen } = watched();
    const mine = client.database(t.database.id).container(container.id);
    const ranges = (...keys) => [...new Set(keys.map((pk) => rangeOf.get(pk)))].sort((a, b) => Number(a) - Number(b));
    const wheres = [
      ["c.pk = 'key 5'", ["key 5"]],
      ["c['pk'] = 'key 5' AND c.n > 0", ["key 5"]],
      ["c.pk IN ('key 1', 'key 2', 'key 3')", ["key 1", "key 2", "key 3"]],
      ["c.pk = 'key 8' OR c.pk = 'key 44'", ["key 8", "key 44"]],
      ["(c.pk = 'key 8' OR c.pk = 'key 44') AND c.n >= 0", ["key 8", "key 44"]],
      ["c.pk = @pk", ["key 31"]],
      ["c.pk = CONCAT('key', ' ', '5') AND LENGTH(@pk) = 6", ["key 5"]],
      ["c.pk LIKE 'key 5'", ["key 5"]],
      ["c.pk IN ('key 1', 'key 2', 'key 3') AND c.pk IN ('key 2', @pk)", ["key 2"]],
      ["EXISTS(SELECT VALUE c.n FROM c WHERE c.pk = 'key 5')", ["key 5"]],
      ["c.pk IN (@pk, @other)", ["key 31", "key 32"]],
    ];
    const parameters = [{ name: "@pk", value: "key 31" }, { name: "@other", value: "key 32" }];
    for (const [where, keys] of wheres) {
      const rows = await all(mine.items.query({ query: `SELECT VALUE c.pk FROM c WHERE ${where} ORDER BY c.n`, parameters }, { forceQueryPlan: true }));
      assert.deepEqual(rows, keys, where);
      assert.deepEqual(seen(), ranges(...keys), where);
      assert.deepEqual(await all(mine.items.query({ query: `SELECT VALUE COUNT(1) FROM c WHERE ${where}`, parameters }, { forceQueryPlan: true })), [keys.length]);
      assert.deepEqual(seen(), ranges(...keys), where);
    }
    for (const where of ["c.n = 5", "c.pk > 'key 5'", "c.pk = 'key 1' OR c.n = 3", "NOT c.pk = 'key 1'", "UPPER(c.pk) = 'KEY 1'"]) {
      await all(mine.items.query(`SELECT VALUE c.pk FROM c WHERE ${where} ORDER BY c.n`, { forceQueryPlan: true }));
      assert.equal(seen().length, 10, where);
    }
    assert.deepEqual(await all(mine.items.query("SELECT VALUE c.n FROM c WHERE c.pk IN ('key 1', 'key 2') AND c.pk = 'key 9' ORDER BY c.n", { forceQueryPlan: true })), []);
    client.dispose();
  });

  t.it("find a whole hierarchical key, and all below a prefix of one", async () => {
    const container = await t.container({ partitionKey: { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 }, maxThroughput: 100_000 });
    const items = [];
    for (let i = 0; i < 120; i++) items.push({ id: `${i}`, tenant: `t${i % 5}`, user: `u${i % 15}`, session: i % 30, n: i });
    for (const item of items) await container.items.create(item);
    const numbers = (rows) => rows.sort((a, b) => a - b);
    const { client, seen } = watched();
    const mine = client.database(t.database.id).container(container.id);
    for (const partitionKey of [["t2"], ["t2", "u7"], ["t2", "u7", 7], ["t9"]]) {
      const paths = ["tenant", "user", "session"];
      const expected = items.filter((item) => partitionKey.every((value, i) => item[paths[i]] === value)).map((item) => item.n);
      assert.ok(partitionKey[0] === "t9" || expected.length > 0);
      assert.deepEqual(numbers(await all(mine.items.query("SELECT VALUE c.n FROM c", { partitionKey, maxItemCount: 3 }))), expected, JSON.stringify(partitionKey));
      assert.deepEqual(await all(mine.items.query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", { partitionKey, maxItemCount: 2 })), [...expected].reverse());
      assert.deepEqual(await all(mine.items.query("SELECT VALUE COUNT(1) FROM c", { partitionKey })), [expected.length]);
      const where = partitionKey.map((value, i) => `c.${paths[i]} = ${JSON.stringify(value)}`).join(" AND ");
      seen();
      assert.deepEqual(await all(mine.items.query(`SELECT VALUE c.n FROM c WHERE ${where} ORDER BY c.n`, { forceQueryPlan: true })), expected, where);
      assert.ok(seen().length <= 2, "a prefix is a small part of the hash space");
    }
    client.dispose();
  });
}, { schemes: ["http"] });

suite("queries that are refused", (t) => {
  t.it("say where and why, as the service does", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 20_000 });
    await container.items.create({ id: "1", pk: "a", v: 1 });
    const refusals = [
      ["SELECT * FORM c", "SC1001", { start: 9, end: 13 }],
      ["SELECT", "SC1002"],
      ["", "SC1002"],
      ["SELECT * FROM c;", "SC1010"],
      ["SELECT NOFUNC(c.v) FROM c", "SC2005", { start: 7, end: 13 }],
      ["SELECT ABS(c.v, 2) FROM c", "SC2050"],
      ["SELECT c.v AS a, c.id AS a FROM c", "SC2022"],
      ["SELECT * FROM c GROUP BY c.v", "SC2041"],
      ["SELECT TOP 1.5 * FROM c", "SC2060"],
      ["SELECT c.id, COUNT(1) FROM c GROUP BY c.v", "SC2102"],
      ["SELECT VALUE SUM(COUNT(1)) FROM c", "SC2101"],
      ["SELECT * FROM c WHERE d.v = 1", "SC2001"],
    ];
    for (const options of [{}, { partitionKey: "a" }, { forceQueryPlan: true }]) {
      for (const [query, code, location] of refusals) {
        const error = await fails(container.items.query(query, options).fetchAll(), 400, { text: code });
        if (location) assert.ok(error.message.replaceAll("\\", "").includes(`"location":${JSON.stringify(location)}`), error.message);
      }
    }
    await fails(container.items.query({ query: "SELECT * FROM c", parameters: [{ name: "@a", value: 1 }, { name: "@a", value: 2 }] }).fetchAll(), 400, { text: "more than once" });
    await fails(container.items.query({ query: "SELECT * FROM c", parameters: [{ name: "a", value: 1 }] }).fetchAll(), 400, { text: "'@'" });
    await fails(container.items.query("SELECT * FROM c", { maxItemCount: -2 }).fetchAll(), 400, { text: "PageSize" });
    await fails(container.items.query("SELECT * FROM c", { continuationToken: "nonsense" }).fetchNext(), 400, { text: "Invalid Continuation Token" });
    assert.deepEqual(await all(container.items.query("SELECT VALUE c.v FROM c")), [1], "the container is unharmed");
  });

  t.it("leave no connection unusable", async () => {
    const container = await t.container();
    const asks = Array.from({ length: 60 }, (_, i) => (i % 2 ? all(container.items.query("SELECT * FROM c")) : container.items.query(`SELECT * FROM c WHERE ${"(".repeat(i)}`).fetchAll().then(() => assert.fail("accepted"), (error) => assert.equal(error.code, 400))));
    await Promise.all(asks);
  });
});
