// Collections through the SQL API: documents read, queried and written there are the same documents here, with the types that they had.
import { after } from "node:test";
import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from "mongodb";
import { Rest } from "../sdk/server.js";
import { dice } from "./dice.js";
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

// Conditions of SQL and the indexes that MongoDB's clients have made: the same rows as without an index, from fewer documents.
suite("SQL queries by MongoDB's indexes", (t) => {
  let rest;
  const sql = () => (rest ??= new Rest({ server: t.server, version: "2020-07-15" }));
  after(() => rest?.close());

  async function ask(collection, text) {
    const headers = { "x-ms-documentdb-isquery": "true", "content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "true", "x-ms-documentdb-populatequerymetrics": "true" };
    const answer = await sql().post(`/dbs/${t.db.databaseName}/colls/${collection.collectionName}/docs`, { query: text }, { headers });
    assert.equal(answer.status, 200, `${text}: ${answer.text}`);
    const metrics = Object.fromEntries(answer.headers["x-ms-documentdb-query-metrics"].split(";").map((each) => each.split("=")));
    return { rows: answer.json.Documents, read: Number(metrics.retrievedDocumentCount), charge: Number(answer.headers["x-ms-request-charge"]) };
  }

  function scalar(roll) {
    const kinds = [
      () => roll(6) - 2, () => new Double(roll(6) / 2), () => Long.fromNumber(roll(4)), () => Decimal128.fromString(`${roll(3)}.0`), () => ["x", "xy", "y", ""][roll(4)],
      () => "long ".repeat(20) + roll(3), () => null, () => roll(2) === 1, () => new Date(roll(3) * 1000), () => new ObjectId(`${"0".repeat(23)}${roll(3)}`), () => ({ k: roll(3) }), () => NaN,
    ];
    return kinds[roll(kinds.length)]();
  }
  const value = (roll) => (roll(4) ? scalar(roll) : Array.from({ length: roll(3) }, () => (roll(5) ? scalar(roll) : [scalar(roll)])));
  const literal = (roll) => ["1", "0", "2.5", "'x'", "'y'", "''", "null", "true", '{"$oid":"000000000000000000000001"}', '{"$date":"1970-01-01T00:00:01Z"}', '{"$numberDecimal":"1.0"}', `'${"long ".repeat(20)}1'`, "-1"][roll(13)];
  function condition(roll, depth) {
    const path = ["c.a", "c.b", "c.n.deep", "c.b[0]", "c.a.k"][roll(5)];
    const made = [
      () => `${path} = ${literal(roll)}`, () => `${path} ${["<", "<=", ">", ">="][roll(4)]} ${literal(roll)}`, () => `${literal(roll)} ${["<", ">="][roll(2)]} ${path}`,
      () => `${path} IN (${literal(roll)}, ${literal(roll)})`, () => `(${path} BETWEEN ${roll(2) - 1} AND ${roll(3)})`, () => `STARTSWITH(${path}, 'x')`, () => `${path} LIKE 'long%'`,
      () => `ARRAY_CONTAINS(${path}, ${literal(roll)})`, () => `IS_DEFINED(${path})`, () => `${path} != ${literal(roll)}`, () => `EXISTS(SELECT VALUE e FROM e IN c.b WHERE e = ${literal(roll)})`,
    ];
    if (depth && roll(3) === 0) return `(${condition(roll, depth - 1)} ${roll(2) ? "AND" : "OR"} ${condition(roll, depth - 1)})`;
    return made[roll(made.length)]();
  }

  t.it("find what all documents give", async () => {
    const roll = dice(977);
    const documents = Array.from({ length: 250 }, (_, i) => {
      const a = value(roll);
      return { _id: i, ...(roll(5) && { a }), ...(roll(5) && { b: Array.isArray(a) ? scalar(roll) : value(roll) }), ...(roll(3) && { n: { deep: value(roll) } }) };
    });
    const [bare, indexed, turned] = [t.collection(), t.collection(), t.collection()];
    for (const collection of [bare, indexed, turned]) await collection.insertMany(documents);
    for (const key of [{ a: 1 }, { b: 1, a: 1 }, { "n.deep": 1 }, { "a.k": 1 }]) await indexed.createIndex(key);
    for (const key of [{ a: -1 }, { b: -1, a: 1 }, { "n.deep": -1, _id: 1 }]) await turned.createIndex(key);
    await turned.createIndex({ "a.k": 1 }, { sparse: true });
    let fewer = 0;
    for (let i = 0; i < 150; i++) {
      const text = `SELECT VALUE c._id FROM c WHERE ${condition(roll, 2)}`;
      const expected = await ask(bare, text);
      for (const collection of [indexed, turned]) {
        const found = await ask(collection, text);
        assert.deepEqual(found.rows, expected.rows, text);
        fewer += found.read < expected.read;
      }
    }
    assert.ok(fewer > 60, `${fewer}`);
  });

  t.it("cost what they return", async () => {
    const collection = t.collection();
    await collection.createIndex({ a: 1 });
    await collection.insertMany(Array.from({ length: 2000 }, (_, i) => ({ _id: i, a: i % 500, id: `own${i}`, d: new Date(i * 1000), text: "x".repeat(300) })));
    await collection.createIndex({ d: -1 });
    await collection.createIndex({ id: 1 });
    const all = await ask(collection, "SELECT VALUE c._id FROM c WHERE c.text = 'y'");
    assert.equal(all.read, 2000);
    for (const [where, ids] of [["c.a = 7", [7, 507, 1007, 1507]], ["c.a > 498", [499, 999, 1499, 1999]], ["c._id = 12", [12]], ["c.d = {\"$date\":\"1970-01-01T00:00:05Z\"}", [5]], ["c.a IN (3) AND c._id > 1000", [1003, 1503]]]) {
      const found = await ask(collection, `SELECT VALUE c._id FROM c WHERE ${where}`);
      assert.deepEqual(found.rows, ids, where);
      assert.ok(found.read <= 4, `${where}: ${found.read}`);
      assert.ok(found.charge * 5 < all.charge, `${where}: ${found.charge} of ${all.charge} RU`);
    }
    assert.deepEqual((await ask(collection, "SELECT VALUE c._id FROM c WHERE c.id = 'own3'")).rows, [3]);
  });
});
