// bulkWrite, and commands about the server and its collections.
import { assert, fails, suite } from "./harness.js";

suite("bulk writes", (t) => {
  const of = (...collections) => collections.map((c) => `${t.db.databaseName}.${c.collectionName}`);
  const models = (ns, list) => list.map((model) => ({ namespace: ns, ...model }));

  t.it("write to several collections in one command", async () => {
    const [a, b] = [t.collection(), t.collection()];
    const [first, second] = of(a, b);
    const result = await t.client.bulkWrite(
      [
        ...models(first, [
          { name: "insertOne", document: { _id: 1, n: 1 } },
          { name: "insertOne", document: { _id: 2, n: 2 } },
          { name: "updateMany", filter: { n: { $gt: 0 } }, update: { $inc: { n: 10 } } },
        ]),
        ...models(second, [
          { name: "updateOne", filter: { _id: "x" }, update: { $set: { n: 1 } }, upsert: true },
          { name: "replaceOne", filter: { _id: "x" }, replacement: { m: 1 } },
        ]),
        ...models(first, [{ name: "deleteOne", filter: { _id: 1 } }, { name: "deleteMany", filter: { none: 1 } }]),
      ],
      { verboseResults: true },
    );
    assert.deepEqual(
      [result.insertedCount, result.matchedCount, result.modifiedCount, result.upsertedCount, result.deletedCount],
      [2, 3, 3, 1, 1],
    );
    assert.equal(result.insertResults.get(0).insertedId, 1);
    assert.equal(result.updateResults.get(2).modifiedCount, 2);
    assert.equal(result.updateResults.get(3).upsertedId, "x");
    assert.equal(result.deleteResults.get(5).deletedCount, 1);
    assert.deepEqual(await a.find().toArray(), [{ _id: 2, n: 12 }]);
    assert.deepEqual(await b.find().toArray(), [{ _id: "x", m: 1 }]);
  });

  t.it("stop at the first error, or go on", async () => {
    const collection = t.collection();
    const [ns] = of(collection);
    const list = models(ns, [
      { name: "insertOne", document: { _id: 1 } },
      { name: "insertOne", document: { _id: 1 } },
      { name: "updateOne", filter: { _id: 1 }, update: { $inc: { _id: 1 } } },
      { name: "insertOne", document: { _id: 2 } },
    ]);
    const ordered = await t.client.bulkWrite(list).then(assert.fail, (error) => error);
    assert.deepEqual([[...ordered.writeErrors.keys()], ordered.writeErrors.get(1).code, ordered.partialResult.insertedCount], [[1], 11000, 1]);
    assert.equal(await collection.countDocuments(), 1);
    await collection.deleteMany({});
    const unordered = await t.client.bulkWrite(list, { ordered: false }).then(assert.fail, (error) => error);
    assert.deepEqual([[...unordered.writeErrors.keys()], unordered.writeErrors.get(2).code], [[1, 2], 66]);
    assert.equal(await collection.countDocuments(), 2);
  });

  t.it("are applied once when they are repeated, and within transactions", async () => {
    const collection = t.collection();
    const [ns] = of(collection);
    const session = t.client.startSession();
    const command = { bulkWrite: 1, ops: [{ insert: 0, document: { _id: 1 } }, { update: 0, filter: { _id: 1 }, updateMods: { $inc: { n: 1 } } }, { update: 0, filter: { n: 1 }, updateMods: { $inc: { n: 1 } } }], nsInfo: [{ ns }] };
    const { lsid } = { lsid: { id: session.id.id } };
    const { Long } = await import("mongodb");
    for (let i = 0; i < 2; i++) {
      const reply = await t.client.db("admin").command({ ...command, lsid, txnNumber: Long.fromNumber(1) });
      assert.deepEqual([reply.nErrors, reply.nInserted, reply.nModified], [0, 1, 2]);
    }
    assert.deepEqual(await collection.findOne(), { _id: 1, n: 2 });
    await session.withTransaction(async () => {
      await t.client.bulkWrite(models(ns, [{ name: "insertOne", document: { _id: 7 } }, { name: "deleteOne", filter: { _id: 1 } }]), { session });
      assert.equal(await collection.countDocuments(), 1);
    });
    assert.deepEqual(await collection.find().toArray(), [{ _id: 7 }]);
    await session.endSession();
  });

  t.it("refuse what is malformed", async () => {
    const admin = t.client.db("admin");
    const ns = `${t.db.databaseName}.x`;
    await fails(admin.command({ bulkWrite: 1, ops: [], nsInfo: [{ ns }] }), 16);
    await fails(admin.command({ bulkWrite: 1, ops: [{ insert: 1, document: {} }], nsInfo: [{ ns }] }), 9);
    await fails(admin.command({ bulkWrite: 1, ops: [{ upsert: 0 }], nsInfo: [{ ns }] }), 9);
    await fails(admin.command({ bulkWrite: 1, ops: [{ insert: 0, document: {} }], nsInfo: [{ ns: "nodot" }] }), 73);
    const many = Array.from({ length: 20000 }, (_, i) => ({ delete: i % 2, filter: { _id: 1 } }));
    const reply = await admin.command({ bulkWrite: 1, ops: many, nsInfo: [{ ns: `${ns}1` }, { ns: `${ns}2` }], errorsOnly: true });
    assert.equal(reply.nDeleted, 0);
  });
});

suite("commands", (t) => {
  t.it("tell about the server", async () => {
    const admin = t.client.db("admin");
    assert.deepEqual((await admin.command({ getLog: "*" })).names, ["global", "startupWarnings"]);
    await fails(admin.command({ getLog: "nothing" }), 96);
    assert.ok((await admin.command({ killOp: 1, op: 5 })).info);
    await fails(admin.command({ killOp: 1 }), 4);
    assert.deepEqual((await admin.command({ currentOp: 1, op: "nothing" })).inprog, []);
  });

  t.it("tell about collections", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, a: i })));
    await collection.createIndex({ a: 1 });
    const valid = await t.command({ validate: collection.collectionName });
    assert.deepEqual([valid.valid, valid.nrecords, valid.nIndexes, Object.keys(valid.indexDetails)], [true, 50, 2, ["_id_", "a_1"]]);
    const again = await t.command({ reIndex: collection.collectionName });
    assert.deepEqual([again.nIndexesWas, again.nIndexes, again.indexes.length], [2, 2, 2]);
    await fails(t.command({ validate: "nothing" }), 26);
    const stats = await t.command({ collStats: collection.collectionName, scale: 1024 });
    assert.deepEqual([stats.count, stats.nindexes, stats.scaleFactor], [50, 2, 1024]);
    assert.ok((await t.command({ dbStats: 1 })).objects >= 50);
  });

  // A find whose filter takes some tens of milliseconds for each of two thousand documents.
  const slow = { $expr: { $gt: [{ $sum: { $map: { input: { $range: [0, 30000] }, in: { $multiply: ["$$this", "$_id"] } } } }, -1] } };
  const slowly = async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 2000 }, (_, i) => ({ _id: i })));
    return collection;
  };

  t.it("end after maxTimeMS", async () => {
    const collection = await slowly();
    await fails(collection.find(slow, { maxTimeMS: 50 }).toArray(), 50);
    await fails(collection.aggregate([{ $match: slow }, { $count: "n" }], { maxTimeMS: 50 }).toArray(), 50);
    await fails(collection.countDocuments(slow, { maxTimeMS: 50 }), 50);
    await fails(collection.distinct("_id", slow, { maxTimeMS: 50 }), 50);
    await fails(collection.updateMany(slow, { $set: { a: 1 } }, { maxTimeMS: 50 }), 50);
    await fails(collection.aggregate([{ $limit: 1 }, { $project: { n: { $map: { input: { $range: [0, 3000] }, in: { $sum: { $range: [0, 3000] } } } } } }], { maxTimeMS: 50 }).toArray(), 50);
    await fails(collection.find({}, { maxTimeMS: -1 }).toArray(), 2);
    assert.equal((await collection.find({}, { maxTimeMS: 60000 }).toArray()).length, 2000);
    const cursor = collection.find(slow, { maxTimeMS: 300, batchSize: 2 }); // its batches share the time
    await fails(cursor.toArray(), 50);
    assert.deepEqual(await collection.findOne({ _id: 7 }, { maxTimeMS: 1000 }), { _id: 7 });
  });

  t.it("are listed by currentOp and ended by killOp", async () => {
    const collection = await slowly(), admin = t.client.db("admin");
    const ns = `${t.db.databaseName}.${collection.collectionName}`;
    const running = collection.find(slow, { comment: "to be killed" }).toArray().catch((error) => error);
    let listed = [];
    while (!listed.length) listed = (await admin.command({ currentOp: 1, ns, active: true })).inprog;
    const [op] = listed;
    assert.deepEqual([op.op, op.ns, op.command.find, op.command.comment, op.killPending], ["query", ns, collection.collectionName, "to be killed", false]);
    assert.deepEqual((await admin.aggregate([{ $currentOp: {} }, { $match: { opid: op.opid } }]).toArray()).map((o) => o.ns), [ns]);
    await admin.command({ killOp: 1, op: op.opid });
    const error = await running;
    assert.equal(error.code, 11601, error.message);
    assert.deepEqual((await admin.command({ currentOp: 1, ns })).inprog, []);
    const stream = collection.watch();
    await stream.tryNext();
    const waiting = stream.next().catch((caught) => caught);
    for (listed = []; !listed.length; ) listed = (await admin.command({ currentOp: 1, op: "getmore" })).inprog;
    await admin.command({ killOp: 1, op: listed[0].opid });
    assert.equal((await waiting).code, 11601);
    await stream.close();
    await fails(t.db.aggregate([{ $currentOp: {} }]).toArray(), 73);
  });

  t.it("are counted and timed by top", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
    for (let i = 0; i < 3; i++) await collection.findOne({ _id: 1 });
    await collection.updateOne({ _id: 1 }, { $set: { a: 1 } });
    await collection.deleteOne({ _id: 2 });
    await collection.countDocuments();
    const top = (await t.client.db("admin").command({ top: 1 })).totals[`${t.db.databaseName}.${collection.collectionName}`];
    assert.deepEqual(["total", "queries", "insert", "update", "remove", "commands", "writeLock", "readLock"].map((use) => top[use].count), [7, 3, 1, 1, 1, 1, 3, 4]);
    assert.ok(top.total.time > 0);
  });

  t.it("give statistics as a stage", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
    const [stats] = await collection.aggregate([{ $collStats: { count: {}, storageStats: {} } }]).toArray();
    assert.deepEqual([stats.ns, Number(stats.count), Number(stats.storageStats.count)], [`${t.db.databaseName}.${collection.collectionName}`, 2, 2]);
    assert.deepEqual(await collection.aggregate([{ $planCacheStats: {} }]).toArray(), []);
    await fails(t.collection().aggregate([{ $collStats: {} }]).toArray(), 26);
  });

  t.it("explain as much as they are asked to", async () => {
    const collection = t.collection();
    await collection.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: i, a: i % 10, text: "x".repeat(100) })));
    const plan = await collection.find({ a: 1 }).explain("queryPlanner");
    assert.equal(plan.executionStats, undefined);
    assert.equal(plan.queryPlanner.winningPlan.stage, "COLLSCAN");
    const stats = (await collection.find({ a: 1 }).explain("executionStats")).executionStats;
    assert.deepEqual([stats.nReturned, stats.totalDocsExamined], [300, 3000]);
    await fails(t.command({ explain: { find: collection.collectionName }, verbosity: "everything" }), 2);
  });

  t.it("survive thousands of statements that cannot be run", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1 });
    for (const n of [1200, 20000]) {
      const updates = Array.from({ length: n }, () => ({ q: { _id: 1 }, u: { $nothing: { a: 1 } } }));
      const reply = await t.command({ update: collection.collectionName, updates, ordered: false }).catch((error) => error.errorResponse ?? error.result ?? error);
      assert.equal(reply.writeErrors?.length, n);
    }
  });
});
