// Change streams of a collection.
import { setTimeout as sleep } from "node:timers/promises";
import { Timestamp } from "mongodb";
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

const reader = Buffer.alloc(64, 7).toString("base64"); // the read-only key

suite("change streams", (t) => {
  // Opens a stream; the server has the position of now when it answers.
  const watch = async (collection, stages = [], options = {}) => {
    const stream = collection.watch(stages, { maxAwaitTimeMS: 200, ...options });
    await stream.tryNext();
    return stream;
  };
  const take = async (stream, n) => {
    const events = [];
    while (events.length < n) events.push(await stream.next());
    return events;
  };
  const make = async (options = {}) => {
    const collection = t.collection();
    await t.db.createCollection(collection.collectionName, options);
    return collection;
  };

  t.it("tell what was written, and how it changed", async () => {
    const collection = await make();
    const stream = await watch(collection);
    await collection.insertOne({ _id: 1, a: 1, list: [1, 2, 3] });
    await collection.updateOne({ _id: 1 }, { $set: { "b.c": 2 }, $unset: { a: 1 } });
    await collection.replaceOne({ _id: 1 }, { z: 1 });
    await collection.deleteOne({ _id: 1 });
    const [inserted, updated, replaced, deleted] = await take(stream, 4);
    assert.equal(inserted.operationType, "insert");
    assert.deepEqual(inserted.fullDocument, { _id: 1, a: 1, list: [1, 2, 3] });
    assert.deepEqual(inserted.ns, { db: t.db.databaseName, coll: collection.collectionName });
    assert.deepEqual(inserted.documentKey, { _id: 1 });
    assert.equal(updated.operationType, "update");
    assert.deepEqual(updated.updateDescription, { updatedFields: { b: { c: 2 } }, removedFields: ["a"], truncatedArrays: [] });
    assert.equal(updated.fullDocument, undefined);
    assert.equal(replaced.operationType, "replace");
    assert.deepEqual(replaced.fullDocument, { _id: 1, z: 1 });
    assert.equal(deleted.operationType, "delete");
    assert.equal(deleted.fullDocument, undefined);
    await stream.close();
  });

  t.it("start at a time, to the second", async () => {
    const collection = await make();
    const first = await watch(collection);
    await collection.insertOne({ _id: 1 });
    await sleep(1100);
    await collection.insertOne({ _id: 2 });
    const [, { clusterTime }] = await take(first, 2);
    await first.close();
    await collection.insertOne({ _id: 3 });
    const stream = collection.watch([], { startAtOperationTime: clusterTime, maxAwaitTimeMS: 200 });
    assert.deepEqual((await take(stream, 2)).map((e) => e.documentKey._id), [2, 3]);
    await stream.close();
  });

  t.it("show documents before and after, if asked", async () => {
    const collection = await make({ changeStreamPreAndPostImages: { enabled: true } });
    const stream = await watch(collection, [], { fullDocument: "updateLookup", fullDocumentBeforeChange: "required" });
    await collection.insertOne({ _id: 1, a: 1 });
    await collection.updateOne({ _id: 1 }, { $inc: { a: 1 } });
    await collection.deleteOne({ _id: 1 });
    const [, updated, deleted] = await take(stream, 3);
    assert.deepEqual([updated.fullDocumentBeforeChange, updated.fullDocument], [{ _id: 1, a: 1 }, { _id: 1, a: 2 }]);
    assert.deepEqual(deleted.fullDocumentBeforeChange, { _id: 1, a: 2 });
    await stream.close();
  });

  t.it("refuse an image that is required and was not kept", async () => {
    const collection = await make();
    await collection.insertOne({ _id: 1 });
    const stream = await watch(collection, [], { fullDocumentBeforeChange: "required" });
    await collection.updateOne({ _id: 1 }, { $set: { a: 1 } });
    await fails(stream.next(), 47);
  });

  t.it("pass their events through the stages that follow", async () => {
    const collection = await make();
    const stages = [{ $match: { "fullDocument.n": { $gt: 1 } } }, { $project: { n: "$fullDocument.n" } }];
    const stream = await watch(collection, stages);
    await collection.insertMany([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const events = await take(stream, 2);
    assert.deepEqual(events.map((event) => [Object.keys(event).sort().join(), event.n]), [["_id,n", 2], ["_id,n", 3]]);
    await stream.close();
  });

  t.it("resume after any event, also within a transaction's", async () => {
    const collection = await make();
    const stream = await watch(collection);
    const session = t.client.startSession();
    await session.withTransaction(async () => {
      for (let i = 0; i < 5; i++) await collection.insertOne({ _id: i }, { session });
    });
    await session.endSession();
    await collection.insertOne({ _id: 5 });
    const events = await take(stream, 6);
    await stream.close();
    for (const [i, event] of events.entries()) {
      const resumed = collection.watch([], { resumeAfter: event._id, batchSize: 2, maxAwaitTimeMS: 100 });
      const rest = (await take(resumed, 5 - i)).map((each) => each.documentKey._id);
      assert.deepEqual(rest, [0, 1, 2, 3, 4, 5].slice(i + 1));
      assert.equal(await resumed.tryNext(), null);
      await resumed.close();
    }
  });

  t.it("wait for events without polling, and see those of other clients", async () => {
    const collection = await make();
    const stream = await watch(collection, [], { maxAwaitTimeMS: 10_000 });
    const next = stream.next();
    await sleep(200);
    const written = performance.now();
    await t.with({}, (db) => db.collection(collection.collectionName).insertOne({ _id: 1 }));
    assert.equal((await next).documentKey._id, 1);
    assert.ok(performance.now() - written < 5000);
    await stream.close();
  });

  t.it("have the shard key in the document key, and see all shards", async () => {
    const collection = t.collection();
    const name = `${t.db.databaseName}.${collection.collectionName}`;
    await t.db.command({ shardCollection: name, key: { region: "hashed" } });
    const stream = await watch(collection);
    const documents = Array.from({ length: 20 }, (_, i) => ({ _id: i, region: `r${i}` }));
    await collection.insertMany(documents);
    const keys = (await take(stream, 20)).map((event) => event.documentKey).sort((a, b) => a._id - b._id);
    assert.deepEqual(keys, documents.map(({ _id, region }) => ({ region, _id })));
    await stream.close();
  });

  t.it("end when the collection is dropped", async () => {
    const collection = await make();
    const stream = await watch(collection);
    await collection.insertOne({ _id: 1 });
    const kinds = [(await stream.next()).operationType];
    await collection.drop();
    while (kinds.at(-1) !== "invalidate") kinds.push((await stream.next()).operationType);
    assert.deepEqual(kinds, ["insert", "drop", "invalidate"]);
  });

  // By bare commands: a driver would not show which batch an event came in.
  const opened = async (collection, stages, cursor) => {
    const command = { aggregate: collection.collectionName, pipeline: [{ $changeStream: {} }, ...stages], cursor };
    return (await t.command(command)).cursor.id;
  };
  const batches = async (collection, id, options) => {
    const found = [];
    while (id && found.length < 20) {
      const { cursor } = await t.command({ getMore: id, collection: collection.collectionName, maxTimeMS: 100, ...options });
      found.push(cursor.nextBatch.map((e) => e.operationType));
      id = Number(cursor.id) ? cursor.id : 0;
    }
    return found.filter((batch) => batch.length);
  };

  t.it("end one event after the other, if a batch has room for one", async () => {
    const dropped = await make();
    const id = await opened(dropped, [], { batchSize: 1 });
    await dropped.insertMany([{ _id: 1 }, { _id: 2 }]);
    const [first] = (await t.command({ getMore: id, collection: dropped.collectionName, batchSize: 2 })).cursor.nextBatch;
    assert.equal(first.documentKey._id, 1);
    await dropped.drop();
    assert.deepEqual(await batches(dropped, id, { batchSize: 1 }), [["drop"], ["invalidate"]]);

    const renamed = await make();
    const other = await opened(renamed, [], { batchSize: 1 });
    await renamed.rename(`${renamed.collectionName}new`);
    assert.deepEqual(await batches(renamed, other, { batchSize: 1 }), [["rename"], ["invalidate"]]);
  });

  // The token of `invalidate`, and the one that came with the batch.
  const ended = async (collection, end) => {
    let { cursor } = await t.command({ aggregate: collection.collectionName, pipeline: [{ $changeStream: {} }], cursor: {} });
    await end();
    const events = [];
    while (Number(cursor.id)) {
      ({ cursor } = await t.command({ getMore: cursor.id, collection: collection.collectionName, maxTimeMS: 100 }));
      events.push(...cursor.nextBatch);
    }
    assert.equal(events.at(-1).operationType, "invalidate");
    return { token: events.at(-1)._id, after: cursor.postBatchResumeToken, before: events.at(-2)._id };
  };
  const open = (collection, options) => t.command({ aggregate: collection.collectionName, pipeline: [{ $changeStream: options }], cursor: {} });
  const next = async (collection, id) => {
    const command = { getMore: id, collection: collection.collectionName, maxTimeMS: 200 };
    for (;;) {
      const { nextBatch } = (await t.command(command)).cursor;
      if (nextBatch.length) return nextBatch;
    }
  };

  t.it("can be started after the event that ended them, but not resumed at it", async () => {
    const collection = await make();
    await collection.insertOne({ _id: 1 });
    const { token, after, before } = await ended(collection, () => collection.drop());
    assert.deepEqual(after, token);
    assert.notDeepEqual(before, token);
    await fails(open(collection, { startAfter: token }), 26);
    await t.db.createCollection(collection.collectionName);
    await fails(open(collection, { resumeAfter: token }), 260, /not allowed from an invalidate/);
    await fails(open(collection, { startAfter: before }), 260); // of the collection that is gone
    await fails(open(collection, { startAfter: token, resumeAfter: token }), 50865);
    await fails(open(collection, { startAfter: token, startAtOperationTime: new Timestamp({ t: 1, i: 1 }) }), 40674);
    await fails(open(collection, { startAfter: { _data: "49" } }), 260);
    await fails(open(collection, { startAfter: { _data: "4907" } }), 260);
    const { cursor } = await open(collection, { startAfter: token });
    await collection.insertMany([{ _id: 2 }, { _id: 3 }]);
    assert.deepEqual((await next(collection, cursor.id)).map((e) => e.documentKey._id), [2, 3]);
    // what was written between the end and the start is there too, if the log was on
    const { cursor: later } = await open(collection, { startAfter: token });
    assert.deepEqual((await next(collection, later.id)).map((e) => e.documentKey._id), [2, 3]);
    const stream = collection.watch([], { startAfter: token, maxAwaitTimeMS: 100 });
    assert.equal((await stream.next()).documentKey._id, 2);
    await stream.close();
  });

  t.it("cannot be started after their end if what was written since is lost", async () => {
    const collection = await make();
    const { token } = await ended(collection, () => collection.drop());
    await collection.insertOne({ _id: 1 }); // makes the collection, without a log
    await fails(open(collection, { startAfter: token }), 286);
  });

  t.it("go on after a rename under the new name", async () => {
    const collection = await make();
    const renamed = t.db.collection(`${collection.collectionName}new`);
    const { token } = await ended(collection, () => collection.rename(renamed.collectionName));
    await fails(open(renamed, { resumeAfter: token }), 260);
    await renamed.insertOne({ _id: 5 });
    const { cursor } = await open(renamed, { startAfter: token });
    assert.deepEqual((await next(renamed, cursor.id)).map((e) => e.documentKey._id), [5]);
  });

  t.it("pass the events at their end through the stages", async () => {
    const collection = await make();
    const id = await opened(collection, [{ $match: { operationType: { $in: ["insert", "drop"] } } }], {});
    await collection.drop();
    assert.deepEqual(await batches(collection, id, {}), [["drop"]]);
  });

  t.it("end when the collection is renamed", async () => {
    const collection = await make();
    const stream = await watch(collection);
    await collection.insertOne({ _id: 1 });
    const to = `${collection.collectionName}new`;
    await collection.rename(to);
    const events = [await stream.next()];
    while (events.at(-1).operationType !== "invalidate") events.push(await stream.next());
    assert.deepEqual(events.map((e) => e.operationType), ["insert", "rename", "invalidate"]);
    assert.deepEqual(events[1].to, { db: t.db.databaseName, coll: to });
    assert.equal(events[1].ns.coll, collection.collectionName);
    const renamed = await watch(t.db.collection(to));
    await t.db.collection(to).insertOne({ _id: 2 });
    assert.equal((await renamed.next()).documentKey._id, 2);
    await renamed.close();
  });

  t.it("go on through splits, and lose and double nothing", async () => {
    const collection = t.collection();
    await t.db.command({ shardCollection: `${t.db.databaseName}.${collection.collectionName}`, key: { p: "hashed" } });
    const rest = new Rest({ server: t.server, version: "2020-07-15" });
    let stream = await watch(collection);
    const seen = [];
    for (let round = 0; round < 4; round++) {
      await collection.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: round * 50 + i, p: i })));
      const path = `/dbs/${t.db.databaseName}/colls/${collection.collectionName}/pkranges`;
      const range = (await rest.get(path)).json.PartitionKeyRanges[0].id;
      const body = { database: t.db.databaseName, container: collection.collectionName, range, parts: 2 };
      assert.equal((await rest.post("/_tesela/split", body, { sign: false })).status, 200);
      seen.push(...(await take(stream, 30)));
      const resumeAfter = seen.at(-1)._id;
      await stream.close();
      stream = collection.watch([], { resumeAfter, maxAwaitTimeMS: 100 });
    }
    seen.push(...(await take(stream, 80)));
    assert.equal(await stream.tryNext(), null);
    await stream.close();
    rest.close();
    assert.deepEqual(seen.map((e) => e.documentKey._id).sort((a, b) => a - b), Array.from({ length: 200 }, (_, i) => i));
  });

  t.it("are opened with a read-only key only where there was one before", async () => {
    const collection = await make();
    const read = (run) => t.with({ key: reader }, (db) => run(db.collection(collection.collectionName)));
    await read((same) => fails(same.watch([], { maxAwaitTimeMS: 50 }).tryNext(), 13, /read-write key/));
    await (await watch(collection)).close();
    await read(async (same) => {
      const stream = await watch(same);
      await collection.insertOne({ _id: 1 });
      assert.equal((await stream.next()).documentKey._id, 1);
      await stream.close();
    });
  });

  t.it("refuse bad tokens, options and stages", async () => {
    const collection = await make();
    const first = (stages, options) => collection.watch(stages, { maxAwaitTimeMS: 50, ...options }).tryNext();
    await fails(first([], { resumeAfter: { _data: "xyz" } }), 260);
    await fails(first([], { resumeAfter: { _data: "0101" } }), 260);
    await fails(first([], { fullDocument: "sometimes" }), 2);
    await fails(first([{ $frob: 1 }]), 40324);
    await fails(t.collection().watch().tryNext(), 26);
  });
}, { flags: ["--throttling", "off", "--read-only-key", reader] });
