// What the MongoDB API shares with the rest of the server: throughput, splits, the SQL view, restarts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Decimal128, Long, MongoClient, ObjectId } from "mongodb";
import { Rest } from "../sdk/server.js";
import { assert, emulatorKey, fails, Server, suite } from "./harness.js";

const bare = { sign: false }; /* the admin API needs no key on loopback */

suite("collections in the core", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());

  t.it("are containers of the SQL API, which shows their documents", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: "a1", name: "ann" });
    const path = `/dbs/${t.db.databaseName}/colls/${collection.collectionName}`;
    const container = (await sql().get(path)).json;
    assert.equal(container.id, collection.collectionName);
    const documents = (await sql().get(`${path}/docs`)).json.Documents;
    assert.equal(documents.length, 1);
    assert.equal(documents[0].name, "ann");
    assert.equal(documents[0]._id, "a1");
  });

  t.it("are split while a cursor is open, and nothing is lost or doubled", async () => {
    const collection = t.collection();
    const ns = `${t.db.databaseName}.${collection.collectionName}`;
    await t.command({ shardCollection: ns, key: { p: "hashed" } });
    await collection.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, p: i % 60 })));
    const seen = [];
    let batches = 0;
    const cursor = collection.find().batchSize(50);
    while (await cursor.hasNext()) {
      seen.push((await cursor.next())._id);
      if (seen.length === 100 && ++batches === 1) {
        const ranges = (await sql().get(`/dbs/${t.db.databaseName}/colls/${collection.collectionName}/pkranges`)).json.PartitionKeyRanges;
        const split = await sql().post("/_tesela/split", { database: t.db.databaseName, container: collection.collectionName, range: ranges[0].id, parts: 3 }, bare);
        assert.equal(split.status, 200, split.text);
      }
    }
    assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 300 }, (_, i) => i));
    assert.equal((await collection.updateMany({ p: { $gte: 0 } }, { $set: { x: 1 } })).modifiedCount, 300);
    assert.equal((await collection.deleteMany({ x: 1 })).deletedCount, 300);
  });

  t.it("are sharded by either spelling of a key", async () => {
    const [hashed, ranged] = [t.collection(), t.collection()];
    for (const [collection, kind] of [[hashed, "hashed"], [ranged, 1]]) {
      const collectionsharded = `${t.db.databaseName}.${collection.collectionName}`;
      const reply = await t.command({ shardCollection: collectionsharded, key: { region: kind } });
      assert.deepEqual({ ...reply }, { _t: "ShardCollectionResponse", collectionsharded, ok: 1 });
      await collection.insertMany([{ _id: 1, region: "eu" }, { _id: 1, region: "us" }]);
      const { json } = await sql().get(`/dbs/${t.db.databaseName}/colls/${collection.collectionName}`);
      assert.deepEqual([json.partitionKey.paths, json.partitionKey.kind], [['/"region"'], "Hash"]);
    }
  });

  t.it("are read in one partition if the filter has a value of the shard key, and in all otherwise", async () => {
    const collection = t.collection();
    await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    await collection.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, p: i % 10, n: i })));
    const split = await sql().post("/_tesela/split", { database: t.db.databaseName, container: collection.collectionName, range: "0", parts: 3 }, bare);
    assert.equal(split.status, 200, split.text);
    for (const [filter, examined, found] of [[{ p: 4, n: { $gt: 200 } }, 30, 10], [{ $and: [{ p: 4 }, { n: { $lte: 200 } }] }, 30, 20], [{ n: { $gt: 200 } }, 300, 99]]) {
      const { executionStats } = await collection.find(filter).explain("executionStats");
      assert.deepEqual([executionStats.totalDocsExamined, executionStats.nReturned], [examined, found], JSON.stringify(filter));
      const seen = await collection.find(filter, { batchSize: 7 }).map((d) => d._id).toArray();
      assert.equal(new Set(seen).size, found);
    }
  });

  t.it("have a change feed, hot keys and explained queries in the SQL API", async () => {
    const collection = t.collection();
    await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    await collection.insertMany(Array.from({ length: 40 }, (_, i) => ({ _id: i, p: i % 4 ? "cold" : "hot", n: i, text: "x".repeat(i % 4 ? 10 : 1000) })));
    await collection.updateOne({ _id: 0, p: "hot" }, { $set: { n: 1000 } });
    const docs = `/dbs/${t.db.databaseName}/colls/${collection.collectionName}/docs`;
    const feed = await sql().get(docs, { headers: { "a-im": "Incremental feed", "x-ms-max-item-count": "1000" } });
    assert.equal(feed.status, 200, feed.text);
    const changed = feed.json.Documents;
    assert.equal(changed.length, 40);
    assert.deepEqual([changed.at(-1)._id, changed.at(-1).n], [0, 1000]);
    await collection.deleteOne({ _id: 1, p: "cold" });
    await collection.insertOne({ _id: 100, p: "cold" });
    const next = await sql().get(docs, { headers: { "a-im": "Incremental feed", "if-none-match": feed.headers.etag } });
    assert.deepEqual(next.json.Documents.map((d) => d._id), [100]);

    const names = `database=${t.db.databaseName}&container=${collection.collectionName}`;
    const hot = (await sql().get(`/_tesela/hotkeys?${names}`, bare)).json;
    assert.deepEqual(hot.bySize.map((one) => [one.key, one.exact, one.items]), [['["hot"]', true, 10], ['["cold"]', true, 30]]);
    assert.ok(hot.byRu.some((one) => one.key === '["hot"]' && one.ruPerSecond > 0), JSON.stringify(hot.byRu));
    const question = { database: t.db.databaseName, container: collection.collectionName, query: "SELECT * FROM c WHERE c.p = 'hot' AND c.n > 30" };
    const explained = await sql().post("/_tesela/explain", question, bare);
    assert.equal(explained.status, 200, explained.text);
    assert.equal(explained.json.rows, 3);
    const { containers, ranges } = (await sql().get(`/_tesela/ranges?${names}`, bare)).json;
    assert.deepEqual([containers[0].api, containers[0].items, ranges[0].logicalPartitions], ["mongo", 40, 2]);
  });

  t.it("have the sizes of keys that JSON has no form for", async () => {
    const collection = t.collection();
    await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    const keys = [new ObjectId(), new Date(5), Long.fromString("9007199254740993"), Decimal128.fromString("1.5"), true, null, "text"];
    await collection.insertMany(keys.flatMap((p, i) => Array.from({ length: i + 1 }, (_, n) => ({ _id: n, p, text: "x".repeat(100) }))));
    const hot = (await sql().get(`/_tesela/hotkeys?database=${t.db.databaseName}&container=${collection.collectionName}`, bare)).json;
    assert.equal(hot.bySize.length, keys.length, JSON.stringify(hot.bySize));
    assert.deepEqual([hot.bySize[0].key, hot.bySize[0].items, hot.bySize.at(-1).exact], ['["text"]', 7, false]);
    for (let i = 1; i < keys.length; i++) assert.ok(hot.bySize[i - 1].bytes > hot.bySize[i].bytes);
  });

  t.it("of the SQL API cannot be written by MongoDB", async () => {
    const id = `sql${Date.now()}${t.way}`;
    await sql().post("/dbs", { id });
    await sql().post(`/dbs/${id}/colls`, { id: "c", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } });
    const posted = await sql().post(`/dbs/${id}/colls/c/docs`, { id: "x", n: 1 }, { headers: { "x-ms-documentdb-partitionkey": '["x"]' } });
    assert.equal(posted.status, 201, posted.text);
    const found = await t.client.db(id).collection("c").find({ n: 1 }).toArray();
    assert.equal(found.length, 1);
    assert.equal(found[0].id, "x");
    await fails(t.client.db(id).collection("c").insertOne({ id: "y" }), 13);
    await fails(t.client.db(id).dropDatabase(), 20);
  });
});

suite(
  "throughput",
  (t) => {
    t.it("is limited, and the error says when to come back", async () => {
      const collection = t.collection();
      await collection.insertOne({ _id: 0 });
      const error = await fails(
        (async () => {
          for (let i = 1; ; i++) await collection.insertMany(Array.from({ length: 100 }, (_, n) => ({ _id: i * 1000 + n })));
        })(),
        16500,
      );
      assert.match(error.message, /RetryAfterMs=\d+,/);
      const documents = Array.from({ length: 500 }, (_, i) => ({ _id: `bulk${i}`, text: "x".repeat(200) }));
      const reply = await t.command({ insert: collection.collectionName, documents, ordered: false });
      assert.equal(reply.ok, 1);
      const throttled = reply.writeErrors.filter((each) => each.code === 16500);
      assert.ok(throttled.length > 0);
      for (const each of throttled) assert.match(each.errmsg, /^Error=16500, RetryAfterMs=\d+, Details='/);
      let there;
      for (let i = 0; i < 100 && there === undefined; i++) {
        there = await collection.countDocuments({ _id: /^bulk/ }).catch(() => new Promise((done) => setTimeout(done, 100)));
      }
      assert.equal(there, reply.n, "what was not refused is there");
      let read;
      for (let i = 0; i < 5000 && !read; i++) await collection.find({ nothing: i }).toArray().catch((e) => (read = e));
      assert.equal(read.code, 16500);
    });
  },
  { flags: ["--throttling", "on"], ways: ["plain"] },
);

suite(
  "a logical partition that is full",
  (t) => {
    t.it("refuses what would make it larger, with the service's code, and nothing else", async () => {
      const collection = t.collection();
      await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
      const text = "x".repeat(1000);
      let error;
      for (let i = 0; i < 100 && !error; i++) await collection.insertOne({ _id: i, p: "full", text }).catch((e) => (error = e));
      const full = /Partition key reached maximum size of 20 KB/;
      assert.equal(error?.code, 12501, String(error));
      assert.match(error.message, full);
      const raw = await t.command({ insert: collection.collectionName, documents: [{ _id: "a", p: "full", text }, { _id: "a", p: "other", text }], ordered: false });
      assert.deepEqual([raw.n, raw.writeErrors.map((each) => [each.index, each.code])], [1, [[0, 12501]]]);
      await fails(collection.updateOne({ _id: 0, p: "full" }, { $set: { more: text } }), 12501, full);
      await fails(collection.findOneAndUpdate({ _id: 0, p: "full" }, { $set: { more: text } }), 12501, full);
      assert.equal((await collection.updateOne({ _id: 0, p: "full" }, { $set: { text: "less" } })).modifiedCount, 1);
      assert.equal((await collection.deleteMany({ p: "full", _id: { $in: [1, 2, 3] } })).deletedCount, 3);
      await collection.insertOne({ _id: "new", p: "full", text });
      assert.equal((await collection.findOne({ _id: "new", p: "full" })).text, text);
    });
  },
  { flags: ["--throttling", "off", "--logical-partition-max-storage", "20KB"], ways: ["plain"] },
);

describe("restarts", () => {
  it("keep collections, documents and indexes", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
    const open = async () => {
      const server = await Server.start({ data });
      const client = new MongoClient(`mongodb://localhost:${encodeURIComponent(emulatorKey)}@${server.ready.mongo}/?directConnection=true`);
      return { server, client, collection: client.db("d").collection("c") };
    };
    try {
      let { server, client, collection } = await open();
      await collection.insertOne({ _id: 1, a: [1, 2] });
      await collection.createIndex({ a: 1 });
      await client.close();
      await server.stop();
      ({ server, client, collection } = await open());
      assert.deepEqual(await collection.find({ a: 2 }).toArray(), [{ _id: 1, a: [1, 2] }]);
      assert.equal((await collection.indexes()).length, 2);
      await client.close();
      await server.stop();
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  });
});
