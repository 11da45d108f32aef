// Cursors: batches, sorting, ends, others' cursors.
import { Long } from "mongodb";
import { assert, fails, suite } from "./harness.js";

const reader = Buffer.alloc(64, 9).toString("base64");

suite(
  "cursors",
  (t) => {
    const filled = async (n) => {
      const collection = t.collection();
      await collection.insertMany(Array.from({ length: n }, (_, i) => ({ _id: i, v: (i * 7) % 13 })));
      return collection;
    };

    t.it("give batches of the size that was asked for", async () => {
      const collection = await filled(250);
      const name = collection.collectionName;
      const first = await t.command({ find: name, batchSize: 100 });
      assert.equal(first.cursor.firstBatch.length, 100);
      assert.equal(first.cursor.ns, `${t.db.databaseName}.${name}`);
      const second = await t.command({ getMore: first.cursor.id, collection: name, batchSize: 120 });
      assert.equal(second.cursor.nextBatch.length, 120);
      assert.equal(second.cursor.nextBatch[0]._id, 100);
      const third = await t.command({ getMore: first.cursor.id, collection: name });
      assert.equal(third.cursor.nextBatch.length, 30);
      assert.ok(Long.isLong(third.cursor.id) ? third.cursor.id.isZero() : third.cursor.id === 0);
      await fails(t.command({ getMore: Long.fromNumber(12345), collection: name }), 43);
      assert.equal((await t.command({ find: name })).cursor.firstBatch.length, 101);
      assert.equal((await t.command({ find: name, batchSize: 0 })).cursor.firstBatch.length, 0);
      assert.equal((await t.command({ find: name, limit: 5, singleBatch: true })).cursor.firstBatch.length, 5);
    });

    t.it("see every document once, in order", async () => {
      const collection = await filled(1000);
      for (const batchSize of [1, 7, 100, 5000]) {
        const seen = await collection.find({ v: { $lt: 5 } }).batchSize(batchSize).toArray();
        assert.deepEqual(seen.map((d) => d._id), Array.from({ length: 1000 }, (_, i) => i).filter((i) => (i * 7) % 13 < 5));
      }
      const sorted = await collection.find().sort({ v: 1, _id: -1 }).batchSize(33).toArray();
      const expected = Array.from({ length: 1000 }, (_, i) => i).sort((a, b) => ((a * 7) % 13) - ((b * 7) % 13) || b - a);
      assert.deepEqual(sorted.map((d) => d._id), expected);
      assert.deepEqual((await collection.find().sort({ v: 1, _id: -1 }).skip(10).limit(5).toArray()).map((d) => d._id), expected.slice(10, 15));
      assert.equal((await collection.find().limit(250).batchSize(100).toArray()).length, 250);
    });

    t.it("end when they are killed, or their collection is dropped", async () => {
      const collection = await filled(300);
      const name = collection.collectionName;
      const one = await t.command({ find: name, batchSize: 10 });
      const killed = await t.command({ killCursors: name, cursors: [one.cursor.id, Long.fromNumber(5)] });
      assert.equal(killed.cursorsKilled.length, 1);
      assert.equal(killed.cursorsNotFound.length, 1);
      await fails(t.command({ getMore: one.cursor.id, collection: name }), 43);
      const two = await t.command({ find: name, batchSize: 10 });
      await collection.drop();
      await fails(t.command({ getMore: two.cursor.id, collection: name }), 175);
    });

    t.it("are not for others", async () => {
      const collection = await filled(300);
      const name = collection.collectionName;
      const one = await t.command({ find: name, batchSize: 10 });
      await t.with({ key: reader }, async (db) => {
        await fails(db.command({ getMore: one.cursor.id, collection: name }), 13);
        assert.equal((await db.command({ killCursors: name, cursors: [one.cursor.id] })).cursorsKilled.length, 0);
      });
      await fails(t.command({ getMore: one.cursor.id, collection: "other" }), 13);
      assert.equal((await t.command({ getMore: one.cursor.id, collection: name, batchSize: 10 })).cursor.nextBatch.length, 10);
    });

    t.it("refuse to sort more than their memory", async () => {
      const collection = t.collection();
      const text = "x".repeat(1 << 20);
      for (let i = 0; i < 70; i++) await collection.insertOne({ _id: i, i: -i, text });
      await fails(collection.find().sort({ i: 1 }).toArray(), 292, /Sort exceeded memory limit/);
      assert.deepEqual((await collection.find().sort({ i: 1 }).limit(3).project({ text: 0 }).toArray()).map((d) => d._id), [69, 68, 67]);
    });
  },
  { flags: ["--throttling", "off", "--read-only-key", reader] },
);
