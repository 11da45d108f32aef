// Change streams of a database and of the deployment.
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

const reader = Buffer.alloc(64, 7).toString("base64"); // the read-only key

suite("change streams of databases", (t) => {
  let names = 0;
  const fresh = () => t.client.db(`${t.db.databaseName}w${++names}`);
  // Opens a stream; the server has the position of now when it answers.
  const watch = async (source, stages = [], options = {}) => {
    const stream = source.watch(stages, { maxAwaitTimeMS: 100, ...options });
    await stream.tryNext();
    return stream;
  };
  const take = async (stream, n) => {
    const events = [];
    while (events.length < n) events.push(await stream.next());
    return events;
  };
  const shown = (e) => [e.operationType, e.ns.coll, e.documentKey?._id];

  t.it("see all collections, also those made later", async () => {
    const db = fresh();
    await db.collection("a").insertOne({ _id: "before" });
    const stream = await watch(db);
    await db.collection("a").insertOne({ _id: 1 });
    await db.collection("a").updateOne({ _id: 1 }, { $set: { x: 1 } });
    await db.collection("b").insertOne({ _id: 2 }); // makes the collection
    await t.db.collection("elsewhere").insertOne({ _id: Math.random() });
    const events = await take(stream, 3);
    const of = (name) => events.filter((e) => e.ns.coll === name).map(shown);
    assert.deepEqual(of("a"), [["insert", "a", 1], ["update", "a", 1]]);
    assert.deepEqual(of("b"), [["insert", "b", 2]]);
    assert.deepEqual(events[0].ns.db, db.databaseName);
    assert.deepEqual(events[1].updateDescription.updatedFields, { x: 1 });
    assert.equal(await stream.tryNext(), null);
    await db.collection("a").deleteOne({ _id: 1 });
    assert.deepEqual(shown(await stream.next()), ["delete", "a", 1]);
    await stream.close();
  });

  t.it("see collections that are made while the first stream opens", async () => {
    for (let round = 0; round < 12; round++) {
      const db = fresh();
      await db.collection("there").insertOne({ _id: 0 });
      const names = Array.from({ length: 8 }, (_, i) => `c${i}`);
      const making = names.map((name) => db.createCollection(name));
      const stream = await watch(db);
      await Promise.all(making);
      await Promise.all(names.map((name) => db.collection(name).insertOne({ _id: 1 })));
      const seen = (await take(stream, names.length)).map((e) => e.ns.coll);
      assert.deepEqual(seen.sort(), names, `round ${round}`);
      await stream.close();
      await db.dropDatabase();
    }
  });

  t.it("see the whole deployment", async () => {
    const [one, other] = [fresh(), fresh()];
    await one.collection("a").insertOne({ _id: "before" });
    const stream = await watch(t.client, [{ $match: { "ns.db": { $in: [one.databaseName, other.databaseName] } } }]);
    await one.collection("a").insertOne({ _id: 1 });
    await other.collection("made later").insertOne({ _id: 2 });
    const events = await take(stream, 2);
    assert.deepEqual(events.map((e) => [e.ns.db, e.documentKey._id]).sort(), [[one.databaseName, 1], [other.databaseName, 2]]);
    await stream.close();
  });

  t.it("resume after any event, in batches of any size, through splits, and lose and double nothing", async () => {
    const db = fresh();
    await db.command({ shardCollection: `${db.databaseName}.a`, key: { p: "hashed" } });
    await db.createCollection("b");
    const rest = new Rest({ server: t.server, version: "2020-07-15" });
    let stream = await watch(db, [], { batchSize: 7 });
    const seen = [];
    for (let round = 0; round < 4; round++) {
      const documents = (name) => Array.from({ length: 25 }, (_, i) => ({ _id: `${name}${round}-${i}`, p: i }));
      await Promise.all([db.collection("a").insertMany(documents("a")), db.collection("b").insertMany(documents("b")), db.collection(`c${round}`).insertMany(documents("c"))]);
      const path = `/dbs/${db.databaseName}/colls/a/pkranges`;
      const range = (await rest.get(path)).json.PartitionKeyRanges[0].id;
      assert.equal((await rest.post("/_tesela/split", { database: db.databaseName, container: "a", range, parts: 2 }, { sign: false })).status, 200);
      seen.push(...(await take(stream, 40 + round)));
      await stream.close();
      stream = db.watch([], { resumeAfter: seen.at(-1)._id, maxAwaitTimeMS: 100, batchSize: 1 + round * 20 });
    }
    seen.push(...(await take(stream, 300 - seen.length)));
    assert.equal(await stream.tryNext(), null);
    await stream.close();
    rest.close();
    const expected = [0, 1, 2, 3].flatMap((round) => ["a", "b", "c"].flatMap((name) => Array.from({ length: 25 }, (_, i) => `${name}${round}-${i}`)));
    assert.deepEqual(seen.map((e) => e.documentKey._id).sort(), expected.sort());
    const b = seen.filter((e) => e.ns.coll === "b").map((e) => e.documentKey._id);
    assert.deepEqual(b, [0, 1, 2, 3].flatMap((round) => Array.from({ length: 25 }, (_, i) => `b${round}-${i}`)));
  });

  t.it("tell of renamed and dropped collections, and end with the database", async () => {
    const db = fresh();
    await db.createCollection("a");
    await db.createCollection("b");
    const stream = await watch(db, [], { batchSize: 1 });
    await db.collection("a").insertOne({ _id: 1 });
    assert.deepEqual(shown(await stream.next()), ["insert", "a", 1]);
    await db.collection("a").rename("c");
    const renamed = await stream.next();
    assert.deepEqual([renamed.operationType, renamed.ns.coll, renamed.to], ["rename", "a", { db: db.databaseName, coll: "c" }]);
    await db.collection("c").insertOne({ _id: 2 });
    assert.deepEqual(shown(await stream.next()), ["insert", "c", 2]);
    await db.collection("b").drop();
    assert.deepEqual(shown(await stream.next()), ["drop", "b", undefined]);
    await db.dropDatabase();
    const kinds = [];
    while (kinds.at(-1) !== "invalidate") kinds.push((await stream.next()).operationType);
    assert.deepEqual(kinds, ["drop", "dropDatabase", "invalidate"]);
  });

  t.it("can be started after the event that ended them, but not resumed at it", async () => {
    const db = fresh();
    await db.collection("a").insertOne({ _id: 1 });
    const stream = await watch(db);
    await db.dropDatabase();
    let event = await stream.next();
    while (event.operationType !== "invalidate") event = await stream.next();
    const open = (options) => db.command({ aggregate: 1, pipeline: [{ $changeStream: options }], cursor: {} });
    await fails(open({ resumeAfter: event._id }), 260, /not allowed from an invalidate/);
    await fails(open({ startAfter: { _data: "4957" } }), 260);
    const after = await watch(db, [], { startAfter: event._id });
    await db.collection("a").insertOne({ _id: 2 });
    assert.deepEqual(shown(await after.next()), ["insert", "a", 2]);
    await after.close();
    await stream.close();
  });

  t.it("may be opened at the same time as others", async () => {
    const db = fresh();
    for (const name of ["a", "b", "c"]) await db.createCollection(name);
    const streams = await Promise.all([db, db, db.collection("a"), db.collection("a"), db.collection("b"), db].map((source) => watch(source)));
    await db.collection("a").insertOne({ _id: 1 });
    for (const i of [0, 1, 2, 3, 5]) assert.deepEqual(shown(await streams[i].next()), ["insert", "a", 1]);
    for (const stream of streams) await stream.close();
  });

  t.it("start at a time", async () => {
    const db = fresh();
    const first = await watch(db);
    await db.collection("a").insertOne({ _id: 1 });
    const { clusterTime } = await first.next();
    await first.close();
    await db.collection("b").insertOne({ _id: 2 });
    const stream = db.watch([], { startAtOperationTime: clusterTime, maxAwaitTimeMS: 100 });
    assert.deepEqual((await take(stream, 2)).map((e) => e.documentKey._id).sort(), [1, 2]);
    await stream.close();
  });

  t.it("are refused where they cannot be", async () => {
    const db = fresh(), admin = t.client.db("admin");
    await db.createCollection("a");
    const open = (on, options, pipeline = []) => on.command({ aggregate: 1, pipeline: [{ $changeStream: options }, ...pipeline], cursor: {} });
    await fails(open(admin, {}), 73);
    await fails(open(db, { allChangesForCluster: true }), 72);
    await fails(open(db, { resumeAfter: { _data: "0101" } }), 260);
    await fails(open(db, {}, [{ $group: { _id: 1 } }]), 20);
    const other = fresh();
    await other.createCollection("a");
    const { cursor } = await open(other, {});
    await fails(open(db, { resumeAfter: cursor.postBatchResumeToken }), 260);
    await t.with({ key: reader }, (_, client) => fails(client.db(fresh().databaseName).watch([], { maxAwaitTimeMS: 50 }).tryNext(), 13, /read-write key/));
  });
}, { flags: ["--throttling", "off", "--read-only-key", reader] });
