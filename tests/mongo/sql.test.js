// Collections through the SQL API: documents read, queried and written there are the same documents here, with the types that they had.
import { after } from "node:test";
import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from "mongodb";
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

suite("collections through SQL", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());
  const docs = (collection) => `/dbs/${t.db.databaseName}/colls/${collection.collectionName}/docs`;
  const query = async (collection, text) => {
    const headers = { "x-ms-documentdb-isquery": "true", "content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "true" };
    const answer = await sql().post(docs(collection), { query: text }, { headers });
    assert.equal(answer.status, 200, answer.text);
    return answer.json.Documents;
  };
  const sharded = async (key) => {
    const collection = t.collection();
    await t.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { [key]: "hashed" } });
    return collection;
  };
  const pk = (value) => ({ headers: { "x-ms-documentdb-partitionkey": JSON.stringify([value]) } });

  t.it("show documents with an id that is made from their _id", async () => {
    const collection = t.collection();
    const oid = new ObjectId("0123456789abcdef01234567");
    await collection.insertMany([{ _id: "text", n: 1 }, { _id: oid, n: 2 }, { _id: 5, n: 3 }, { _id: "own", id: "mine", n: 4 }]);
    const shown = (await sql().get(docs(collection))).json.Documents;
    assert.deepEqual(shown.map((d) => d.id), ["text", oid.toHexString(), '{ "$numberInt" : "5" }', "mine"]);
    assert.deepEqual(shown[1]._id, { $oid: oid.toHexString() });
    assert.deepEqual((await query(collection, "SELECT VALUE c.id FROM c ORDER BY c._ts")).sort(), shown.map((d) => d.id).sort());
    assert.deepEqual((await query(collection, "SELECT c.n FROM c WHERE c.id = 'text'")), [{ n: 1 }]);
    assert.equal((await query(collection, "SELECT * FROM c WHERE c.n = 2"))[0].id, oid.toHexString());
    for (const [id, n] of [["text", 1], [oid.toHexString(), 2], ['{ "$numberInt" : "5" }', 3], ["own", 4]]) {
      const read = await sql().get(`${docs(collection)}/${encodeURIComponent(id)}`);
      assert.equal(read.status, 200, `${id}: ${read.text}`);
      assert.equal(read.json.n, n);
    }
    assert.equal((await sql().get(`${docs(collection)}/mine`)).status, 404);
  });

  t.it("take items of SQL, which MongoDB finds by their id", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: "first" });
    const made = await sql().post(docs(collection), { id: "a", n: 1, list: [1, 2.5, "x", null], inner: { yes: true } });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.json.id, "a");
    assert.deepEqual(await collection.findOne({ _id: "a" }), { _id: "a", n: 1, list: [1, 2.5, "x", null], inner: { yes: true } });
    assert.equal((await sql().post(docs(collection), { id: "a" })).status, 409);
    await fails(collection.insertOne({ _id: "a" }), 11000);
    const hex = new ObjectId().toHexString();
    assert.equal((await sql().post(docs(collection), { id: hex })).status, 201);
    assert.ok(await collection.findOne({ _id: new ObjectId(hex) }));
    assert.equal((await sql().post(docs(collection), { n: 1 })).status, 400);
    assert.equal((await sql().post(docs(collection), { _id: [1] })).status, 400);
  });

  t.it("keep every type when SQL replaces or patches what it has read", async () => {
    const collection = t.collection();
    const document = {
      _id: new ObjectId(), int: new Int32(1), long: Long.fromString("9007199254740993"), real: new Double(1.5), decimal: Decimal128.fromString("1.10"),
      date: new Date(0), stamp: new Timestamp({ t: 1, i: 2 }), bytes: new Binary(Buffer.from("ab"), 0), pattern: /^a/i, nothing: null,
    };
    await collection.insertOne(document);
    const path = `${docs(collection)}/${document._id.toHexString()}`;
    const read = (await sql().get(path)).text;
    const replaced = await sql().put(path, read.replace('"nothing":null', '"nothing":"now"'));
    assert.equal(replaced.status, 200, replaced.text);
    const options = { promoteValues: false, promoteLongs: false };
    const typed = await collection.findOne({ _id: document._id }, options);
    assert.equal(typed.long.toString(), "9007199254740993");
    assert.equal(typed.decimal.toString(), "1.10");
    const plain = await collection.findOne({ _id: document._id });
    assert.deepEqual([plain.date, plain.stamp, plain.pattern, plain.nothing, plain.bytes.toString("utf8")], [new Date(0), new Timestamp({ t: 1, i: 2 }), /^a/i, "now", "ab"]);
    const patched = await sql().patch(path, [{ op: "incr", path: "/int", value: 4 }]);
    assert.equal(patched.status, 200, patched.text);
    const after = await collection.findOne({ _id: document._id });
    assert.deepEqual([after.int, after.date, after.decimal.toString(), "id" in after], [5, new Date(0), "1.10", false]);
  });

  t.it("are written in shards, deleted, and watched", async () => {
    const collection = await sharded("city");
    await collection.insertOne({ _id: 1, city: "Rome" });
    const stream = collection.watch();
    const events = [];
    stream.on("change", (event) => events.push(event));
    await new Promise((done) => setTimeout(done, 300));
    const made = await sql().post(docs(collection), { id: "x", city: "Oslo", n: 1 }, pk("Oslo"));
    assert.equal(made.status, 201, made.text);
    assert.equal((await collection.findOne({ city: "Oslo", _id: "x" })).n, 1);
    assert.equal((await sql().delete(`${docs(collection)}/x`, pk("Oslo"))).status, 204);
    assert.equal(await collection.countDocuments({ city: "Oslo" }), 0);
    for (let i = 0; i < 100 && events.length < 2; i++) await new Promise((done) => setTimeout(done, 50));
    await stream.close();
    assert.deepEqual(events.map((e) => [e.operationType, e.documentKey._id]), [["insert", "x"], ["delete", "x"]]);
  });

  t.it("keep to their validator", async () => {
    const collection = await t.db.createCollection(t.collection().collectionName, { validator: { n: { $type: "number" } } });
    assert.equal((await sql().post(docs(collection), { id: "a", n: "text" })).status, 400);
    assert.equal((await sql().post(docs(collection), { id: "a", n: 1 })).status, 201);
  });
});
