// Sessions: writes that a client repeats, and transactions.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Long, MongoClient, UUID } from "mongodb";
import { assert, emulatorKey, fails, Server, suite } from "./harness.js";

suite("retryable writes", (t) => {
  // Sends the same command twice, as a driver does that has lost the answer. Drivers count from 1; higher numbers are ours.
  let number = 1000;
  const twice = async (command, session) => {
    const numbered = { ...command, txnNumber: Long.fromNumber(++number) };
    return [await t.db.command(numbered, { session }), await t.db.command(numbered, { session })];
  };

  t.it("are applied once, and answer alike", async () => {
    const collection = t.collection();
    const name = collection.collectionName;
    const session = t.client.startSession();
    await collection.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
    const commands = [
      { insert: name, documents: [{ _id: 3 }, { _id: 4 }] },
      { update: name, updates: [{ q: { _id: 1 }, u: { $inc: { a: 1 } } }] },
      { update: name, updates: [{ q: { a: 2, _id: 2 }, u: { $inc: { a: 1 } } }, { q: { a: 3 }, u: { $set: { b: 1 } } }] },
      { update: name, updates: [{ q: { k: 5 }, u: { $set: { v: 1 } }, upsert: true }] },
      { update: name, updates: [{ q: { _id: 9 }, u: { $set: { v: 1 } }, upsert: true }] },
      { findAndModify: name, query: { a: 3 }, update: { $inc: { c: 1 } }, new: true },
      { findAndModify: name, query: { a: 3 }, update: { $inc: { c: 1 } } },
      { findAndModify: name, query: { _id: 9 }, remove: true },
      { delete: name, deletes: [{ q: { v: 1 }, limit: 1 }] },
    ];
    for (const command of commands) {
      const [first, again] = await twice(command, session);
      assert.deepEqual(again, first, JSON.stringify(command));
    }
    assert.deepEqual(await collection.find().sort({ _id: 1 }).toArray(), [
      { _id: 1, a: 2 },
      { _id: 2, a: 3, b: 1, c: 2 },
      { _id: 3 },
      { _id: 4 },
    ]);
    await session.endSession();
  });

  t.it("are applied once, even if the document no longer matches or was replaced", async () => {
    const collection = t.collection();
    const name = collection.collectionName;
    const session = t.client.startSession();
    await collection.insertMany([{ _id: 1, state: "new" }, { _id: 2, state: "new" }]);
    const claim = { update: name, updates: [{ q: { state: "new" }, u: { $set: { state: "taken" } } }], txnNumber: Long.fromNumber(5000) };
    await t.db.command(claim, { session });
    await t.db.command(claim, { session });
    assert.equal(await collection.countDocuments({ state: "taken" }), 1);
    const remove = { delete: name, deletes: [{ q: { _id: 1 }, limit: 1 }], txnNumber: Long.fromNumber(5001) };
    await t.db.command(remove, { session });
    await collection.insertOne({ _id: 1 });
    assert.equal((await t.db.command(remove, { session })).n, 1);
    assert.equal(await collection.countDocuments({ _id: 1 }), 1);
    await session.endSession();
  });

  t.it("have ascending numbers, and one document each", async () => {
    const name = t.collection().collectionName;
    const session = t.client.startSession();
    const remove = (n, limit) => t.db.command({ delete: name, deletes: [{ q: {}, limit }], txnNumber: Long.fromNumber(n) }, { session });
    await remove(7001, 1);
    await fails(remove(7000, 1), 225);
    await fails(remove(7002, 0), 72, /multi/);
    const listed = { insert: name, documents: [{}], stmtIds: [0], txnNumber: Long.fromNumber(7003) };
    await fails(t.db.command(listed, { session }), 72, /stmtId/);
    await session.endSession();
  });
});

describe("a retryable write", () => {
  it("is applied once, though the server was killed between the two tries", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
    const lsid = { id: new UUID() };
    const attempt = async (server, run) => {
      const port = server.ready.mongo.replace(/.*:/, "");
      const client = new MongoClient(`mongodb://localhost:${encodeURIComponent(emulatorKey)}@127.0.0.1:${port}/?directConnection=true`);
      const session = client.startSession();
      Object.assign(session.serverSession.id, lsid);
      await run(client.db("d"), session);
      await client.close(true);
    };
    const count = { update: "c", updates: [{ q: { _id: 1 }, u: { $inc: { n: 1 } } }], txnNumber: Long.fromNumber(9000) };
    let server = await Server.start({ data });
    try {
      await attempt(server, async (db, session) => {
        await db.collection("c").insertOne({ _id: 1, n: 0 });
        assert.equal((await db.command(count, { session })).nModified, 1);
      });
      server.child.kill("SIGKILL");
      await server.ended;
      server = await Server.start({ data });
      await attempt(server, async (db, session) => {
        assert.equal((await db.command(count, { session })).nModified, 1);
        assert.equal((await db.collection("c").findOne({ _id: 1 })).n, 1);
      });
    } finally {
      await server.stop();
      rmSync(data, { recursive: true });
    }
  });
});

suite("transactions", (t) => {
  t.it("are seen when they are committed, all at once", async () => {
    const [collection, other] = [t.collection(), t.collection()];
    await collection.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }, { _id: 3, a: 3 }]);
    await other.insertOne({ _id: "log", n: 0 });
    const session = t.client.startSession();
    await session.withTransaction(async () => {
      await collection.updateOne({ a: 1 }, { $inc: { a: 10 } }, { session });
      await collection.insertOne({ _id: 4, a: 4 }, { session });
      await collection.deleteOne({ _id: 2 }, { session });
      await other.updateOne({ _id: "log" }, { $inc: { n: 1 } }, { session });
      assert.deepEqual(await collection.find({ a: { $gt: 3 } }, { session }).sort({ a: -1 }).toArray(), [{ _id: 1, a: 11 }, { _id: 4, a: 4 }]);
      assert.deepEqual(await collection.findOne({ _id: 4 }, { session }), { _id: 4, a: 4 });
      assert.deepEqual((await collection.distinct("a", {}, { session })).sort((x, y) => x - y), [3, 4, 11]);
      assert.equal(await collection.estimatedDocumentCount({ session }), 3);
      assert.deepEqual(await collection.find().toArray(), [{ _id: 1, a: 1 }, { _id: 2, a: 2 }, { _id: 3, a: 3 }]);
    });
    assert.deepEqual(await collection.find().sort({ _id: 1 }).toArray(), [{ _id: 1, a: 11 }, { _id: 3, a: 3 }, { _id: 4, a: 4 }]);
    assert.deepEqual(await other.findOne(), { _id: "log", n: 1 });
    await session.endSession();
  });

  t.it("leave nothing when they are aborted", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1 });
    const session = t.client.startSession();
    session.startTransaction();
    await collection.updateMany({}, { $set: { x: 1 } }, { session });
    await collection.insertOne({ _id: 2 }, { session });
    await session.abortTransaction();
    assert.deepEqual(await collection.find().toArray(), [{ _id: 1 }]);
    await session.endSession();
  });

  t.it("see one snapshot", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 1 }]);
    const session = t.client.startSession();
    session.startTransaction();
    await collection.findOne({ _id: 1 }, { session });
    await collection.updateMany({}, { $set: { a: 2 } });
    assert.deepEqual(await collection.find({}, { session }).toArray(), [{ _id: 1, a: 1 }, { _id: 2, a: 1 }]);
    await session.commitTransaction();
    await session.endSession();
  });

  t.it("conflict when they write the same document", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1 });
    const [one, two] = [t.client.startSession(), t.client.startSession()];
    one.startTransaction();
    two.startTransaction();
    await collection.updateOne({ _id: 1 }, { $set: { by: 1 } }, { session: one });
    await collection.updateOne({ _id: 1 }, { $set: { by: 2 } }, { session: two });
    await one.commitTransaction();
    const error = await fails(two.commitTransaction(), 112);
    assert.ok(error.hasErrorLabel("TransientTransactionError"));
    assert.deepEqual(await collection.findOne(), { _id: 1, by: 1 });
    await Promise.all([one.endSession(), two.endSession()]);
  });

  t.it("end with an error, and with a second commit alike", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1 });
    const session = t.client.startSession();
    session.startTransaction();
    await fails(collection.insertOne({ _id: 1 }, { session }), 11000);
    const error = await fails(collection.insertOne({ _id: 2 }, { session }), 251);
    assert.ok(error.hasErrorLabel("TransientTransactionError"));
    await session.abortTransaction();
    session.startTransaction();
    await collection.insertOne({ _id: 3 }, { session });
    await session.commitTransaction();
    await session.commitTransaction();
    assert.equal(await collection.countDocuments(), 2);
    await session.endSession();
  });

  t.it("refuse what has no place in them", async () => {
    const collection = t.collection();
    const session = t.client.startSession();
    session.startTransaction();
    await collection.findOne({}, { session });
    await fails(t.db.command({ collStats: collection.collectionName }, { session }), 263);
    await session.abortTransaction();
    await session.endSession();
  });

  t.it("aggregate what they have written, and nothing that others write", async () => {
    const [orders, people] = [t.collection(), t.collection()];
    await people.insertMany([{ _id: "ann", city: "Rome" }, { _id: "bob", city: "Oslo" }]);
    await orders.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, who: i % 2 ? "ann" : "bob", n: 1 })));
    const session = t.client.startSession();
    session.startTransaction();
    const sum = (of) => orders.aggregate([{ $group: { _id: null, n: { $sum: "$n" } } }], of).toArray().then((rows) => rows[0].n);
    assert.equal(await sum({ session }), 300);
    await orders.insertMany([{ _id: 1000, who: "eve", n: 10 }, { _id: 1001, who: "ann", n: 10 }], { session });
    await people.insertOne({ _id: "eve", city: "Lima" }, { session });
    await orders.deleteOne({ _id: 0 }, { session });
    await orders.updateOne({ _id: 5000 }, { $set: { n: 7 } }, { upsert: true });
    await people.updateOne({ _id: "ann" }, { $set: { city: "Bonn" } });
    assert.equal(await sum({ session }), 319);
    assert.equal(await sum(), 307);
    const cities = [
      { $match: { n: { $gt: 0 } } },
      { $lookup: { from: people.collectionName, localField: "who", foreignField: "_id", as: "person" } },
      { $unwind: "$person" },
      { $group: { _id: "$person.city", n: { $sum: "$n" } } },
      { $sort: { _id: 1 } },
    ];
    assert.deepEqual(await orders.aggregate(cities, { session }).toArray(), [{ _id: "Lima", n: 10 }, { _id: "Oslo", n: 149 }, { _id: "Rome", n: 160 }]);
    const batches = await orders.aggregate([{ $sort: { _id: 1 } }, { $skip: 1 }, { $limit: 250 }], { session, batchSize: 7 }).toArray();
    assert.deepEqual(batches.map((d) => d._id), Array.from({ length: 250 }, (_, i) => i + 2));
    const plain = await orders.aggregate([{ $match: { who: "bob" } }, { $project: { n: 1 } }], { session, batchSize: 10 }).toArray();
    assert.equal(plain.length, 149);
    assert.equal(await orders.countDocuments({}, { session }), 301);
    await session.commitTransaction();
    assert.equal(await sum(), 326);
    session.startTransaction();
    await fails(orders.aggregate([{ $out: "x" }], { session }).toArray(), 263);
    await session.abortTransaction();
    await session.endSession();
  });

  // Each transfer takes from one account and gives to another; it refuses to go below zero. Readers add all accounts up in a transaction.
  t.it("of many clients move money, and none is lost or made", async () => {
    const accounts = t.collection();
    const n = 8;
    await accounts.insertMany(Array.from({ length: n }, (_, i) => ({ _id: i, balance: 100 })));
    let seed = 7;
    const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    const transfer = async () => {
      const [from, to, amount] = [random(n), random(n), 1 + random(60)];
      const session = t.client.startSession();
      await session.withTransaction(async () => {
        const taken = await accounts.updateOne({ _id: from, balance: { $gte: amount } }, { $inc: { balance: -amount } }, { session });
        if (taken.modifiedCount) await accounts.updateOne({ _id: to }, { $inc: { balance: amount } }, { session });
      });
      await session.endSession();
    };
    let over = false;
    const totals = [];
    const audit = async () => {
      const session = t.client.startSession();
      while (!over) {
        await session.withTransaction(async () => {
          const rows = await accounts.aggregate([{ $group: { _id: null, all: { $sum: "$balance" }, least: { $min: "$balance" } } }], { session }).toArray();
          totals.push(rows[0]);
        });
        await new Promise((done) => setTimeout(done, 5));
      }
      await session.endSession();
    };
    const audits = [audit(), audit()];
    await Promise.all(Array.from({ length: 6 }, async () => { for (let i = 0; i < 12; i++) await transfer(); }));
    over = true;
    await Promise.all(audits);
    assert.ok(totals.length > 2);
    for (const total of totals) assert.deepEqual([total.all, total.least >= 0], [100 * n, true]);
  });

  t.it("of many clients count right", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1, n: 0 });
    const add = async () => {
      const session = t.client.startSession();
      await session.withTransaction(async () => {
        const { n } = await collection.findOne({ _id: 1 }, { session });
        await collection.updateOne({ _id: 1 }, { $set: { n: n + 1 } }, { session });
      });
      await session.endSession();
    };
    await Promise.all(Array.from({ length: 12 }, add));
    assert.equal((await collection.findOne()).n, 12);
  });
});
