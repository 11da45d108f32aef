// What the .NET SDK asks in direct mode and other SDKs do not, by the small client of rntbd.js; from reading its source. Batches as HybridRow
// records are in rows.test.js.

import { assert, suite } from "./harness.js";
import { Direct, token } from "./rntbd.js";

// Tokens that go with every request of .NET, or with many, and mean nothing here.
const extra = [
  token(0x49, "u32", 60_000), token(0x4a, "u32", 0), token(0xa2, "u32", 1), token(0xb0, "guid", Buffer.alloc(16, 7)),
  token(0xce, "text16", "localhost"), token(0xcc, "text16", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), token(0xe7, "u16", 3),
  token(0xe8, "text16", "localhost"), token(0xf1, "byte", 1), token(0x96, "guid", Buffer.alloc(16, 1)), token(0x97, "byte", 0),
  token(0xfe, "byte", 2), token(0x66, "byte", 0), token(0x3d, "text16", "x"),
];

async function open(t, body) {
  const container = await t.container(body);
  const direct = await Direct.open({ server: t.server, ca: t.scheme === "https" ? t.certificate : undefined });
  const at = { database: t.database.id, container: container.id, tokens: extra };
  const create = (id, pk, more = {}) => direct.send("Document", "Create", { ...at, partitionKey: [pk], body: { id, pk, ...more } });
  return { container, direct, at, create };
}

// All pages of a query, or of a feed until nothing is new.
async function pages(send, isDone) {
  const found = [];
  for (let continuation, n = 0; ; n++) {
    const answer = await send(continuation);
    if (isDone?.(answer)) return { found, continuation: answer.tokens.etag ?? continuation };
    assert.equal(answer.status, 200, answer.text);
    found.push(...answer.json.Documents);
    continuation = isDone ? answer.tokens.etag : answer.tokens.continuation;
    if (!continuation) return { found };
    assert.ok(n < 100, "pages without end");
  }
}

suite("dotnet", (t) => {
  t.it("takes the tokens that only .NET sends", async () => {
    const { direct, at, create } = await open(t);
    assert.equal((await create("x", "p", { n: 1 })).status, 201);
    const read = await direct.send("Document", "Read", { ...at, document: "x", partitionKey: ["p"] });
    assert.equal(read.json.n, 1);
    direct.close();
  });

  // "Optimistic direct execution", on by default: a query whose plan has one range is sent there as it was written, not rewritten, and the
  // answer is taken as it is.
  t.it("answers whole queries at one range", async () => {
    const { container, direct, at, create } = await open(t);
    for (let i = 0; i < 24; i++) await create(`${i}`, `p${i % 5}`, { n: i, third: 1 + (i % 3), tags: ["a", i % 2 ? "b" : "c"] });
    const optimistic = { ...at, rangeId: "0", pageSize: 4, tokens: [...extra, token(0xc8, "byte", 1)] };
    for (const query of [
      "SELECT VALUE COUNT(1) FROM c",
      "SELECT VALUE AVG(c.n) FROM c WHERE c.n > 3",
      "SELECT COUNT(1) AS many, MAX(c.n) AS most FROM c",
      "SELECT c.third, COUNT(1) AS many, SUM(c.n) AS sum FROM c GROUP BY c.third",
      "SELECT DISTINCT VALUE c.third FROM c",
      "SELECT DISTINCT VALUE c.third FROM c ORDER BY c.third DESC",
      "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
      "SELECT TOP 7 VALUE c.n FROM c ORDER BY c.n",
      "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 9",
      "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n < 7",
      "SELECT VALUE {n: c.n, l: (SELECT VALUE COUNT(1) FROM t IN c.tags)} FROM c WHERE c.third = 1",
    ]) {
      const { found } = await pages((continuation) => direct.send("Document", "Query", { ...optimistic, continuation, body: { query, parameters: [] } }));
      const { resources } = await container.items.query(query).fetchAll();
      const inOrder = (rows) => (query.includes("ORDER BY") ? rows : rows.map((row) => JSON.stringify(row)).sort());
      assert.deepEqual(inOrder(found), inOrder(resources), query);
    }
    direct.close();
  });

  t.it("follows changes by the etag, from the beginning, from now and from a time", async () => {
    const { direct, at, create } = await open(t);
    for (let i = 0; i < 7; i++) await create(`${i}`, "p");
    const feed = (options) => (match) => direct.send("Document", "ReadFeed", { ...at, rangeId: "0", pageSize: 3, aIm: "Incremental Feed", match, ...options });
    const isDone = (answer) => answer.status === 304;
    const begin = await pages(feed({}), isDone);
    assert.deepEqual(begin.found.map(({ id }) => id), ["0", "1", "2", "3", "4", "5", "6"]);
    const now = await feed({})("*");
    assert.equal(now.status, 304);
    await create("later", "p");
    for (const from of [begin.continuation, now.tokens.etag]) {
      const answer = await feed({})(from);
      assert.deepEqual(answer.json.Documents.map(({ id }) => id), ["later"]);
    }
    const since = await pages(feed({ modifiedSince: new Date(Date.now() - 3600_000).toUTCString() }), isDone);
    assert.equal(since.found.length, 8);
    const one = await pages((match) => direct.send("Document", "ReadFeed", { ...at, partitionKey: ["p"], pageSize: 5, aIm: "Incremental Feed", match }), isDone);
    assert.equal(one.found.length, 8, "of one partition key");
    direct.close();
  });

  t.it("follows all versions and deletes", async () => {
    const { direct, at, create } = await open(t, { changeFeedPolicy: { retentionDuration: 10 } });
    const wire = { ...at, rangeId: "0", aIm: "Full-Fidelity Feed", tokens: [...extra, token(0xb2, "text16", "2021-09-15")] };
    const start = await direct.send("Document", "ReadFeed", { ...wire, match: "*" });
    assert.equal(start.status, 304);
    await create("x", "p", { v: 1 });
    await direct.send("Document", "Replace", { ...at, document: "x", partitionKey: ["p"], body: { id: "x", pk: "p", v: 2 } });
    await direct.send("Document", "Delete", { ...at, document: "x", partitionKey: ["p"] });
    const { found } = await pages((match) => direct.send("Document", "ReadFeed", { ...wire, match: match ?? start.tokens.etag }), (answer) => answer.status === 304);
    assert.deepEqual(found.map(({ metadata }) => metadata.operationType), ["create", "replace", "delete"]);
    assert.deepEqual(found.slice(0, 2).map(({ current }) => current.v), [1, 2]);
    direct.close();
  });

  t.it("queries a prefix of a hierarchical key by its hashes as text", async () => {
    const { container, direct, at } = await open(t, { partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } });
    for (const [a, b] of [["x", "1"], ["x", "2"], ["y", "1"]]) {
      await direct.send("Document", "Create", { ...at, partitionKey: [a, b], body: { id: `${a}${b}`, a, b } });
    }
    const plan = await t.rest.post(`${t.databasePath}/colls/${container.id}/docs`, { query: "SELECT * FROM c WHERE c.a = 'x'", parameters: [] }, {
      headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-query-version": "1.4", "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-cosmos-supported-query-features": "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, ListAndSetAggregate, MultipleAggregates, MultipleOrderBy, NonStreamingOrderBy, NonValueAggregate, OffsetAndLimit, OrderBy, Top, WeightedRankFusion" },
    });
    const [{ min, max }] = plan.json.queryRanges;
    const bounds = { feedKey: 3, startEpk: Buffer.from(min), endEpk: Buffer.from(max) };
    const answer = await direct.send("Document", "Query", { ...at, rangeId: "0", ...bounds, body: { query: "SELECT * FROM c", parameters: [] } });
    assert.deepEqual(answer.json.Documents.map(({ id }) => id).sort(), ["x1", "x2"]);
    direct.close();
  });
});
