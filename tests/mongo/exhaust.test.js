// Streams of batches: a getMore that allows exhaust gets the rest of its cursor without asking again.
import { setTimeout as sleep } from "node:timers/promises";
import { Long } from "mongodb";
import { Bare, CHECKSUM, EXHAUST_ALLOWED, MORE_TO_COME, bodySection, message } from "./bare.js";
import { assert, suite } from "./harness.js";

suite("a getMore that allows exhaust", (t) => {
  const named = (command) => ({ ...command, $db: t.db.databaseName });
  const getMore = (collection, id, options) => bodySection(named({ getMore: Long.fromValue(id), collection: collection.collectionName, ...options }));
  const filled = async (n, text = "") => {
    const collection = t.collection();
    const documents = Array.from({ length: n }, (_, _id) => ({ _id, text }));
    for (let i = 0; i < n; i += 100) await collection.insertMany(documents.slice(i, i + 100));
    return collection;
  };
  const find = async (bare, collection, options) => (await bare.ask(named({ find: collection.collectionName, ...options }))).cursor;
  const openCursors = async () => (await t.command({ serverStatus: 1 })).metrics.cursor.open.total;
  const batchesMade = async (collection) => {
    const { totals } = await t.client.db("admin").command({ top: 1 });
    return totals[`${t.db.databaseName}.${collection.collectionName}`].getmore.count;
  };
  const until = async (holds, what) => {
    for (let i = 0; !(await holds()); i++) {
      assert.ok(i < 400, what);
      await sleep(25);
    }
  };

  for (const [name, flags] of [["", 0], [", with a checksum", CHECKSUM]]) {
    t.it(`gets all batches, each in answer to the one before${name}`, async () => {
      const collection = await filled(30);
      const bare = await Bare.open(t.port);
      const { id, firstBatch } = await find(bare, collection, { batchSize: 4 });
      const seen = firstBatch.map((d) => d._id), sizes = [];
      let expected = bare.send(message([getMore(collection, id, { batchSize: 5 })], EXHAUST_ALLOWED | flags)), more = true;
      while (more) {
        const { id: own, to, flags: given, body } = await bare.next();
        assert.deepEqual([to, body.ok], [expected, 1], body.errmsg);
        more = Boolean(given & MORE_TO_COME);
        assert.equal(more, Number(body.cursor.id) !== 0);
        if (more) assert.notEqual(own, expected);
        expected = own;
        seen.push(...body.cursor.nextBatch.map((d) => d._id));
        sizes.push(body.cursor.nextBatch.length);
      }
      assert.deepEqual(seen, Array.from({ length: 30 }, (_, i) => i));
      assert.deepEqual(sizes.slice(0, 5), [5, 5, 5, 5, 5]);
      assert.equal((await bare.ask(named({ ping: 1 }))).ok, 1);
      bare.socket.destroy();
    });
  }

  t.it("gets one batch if it does not", async () => {
    const collection = await filled(20);
    const bare = await Bare.open(t.port);
    const { id } = await find(bare, collection, { batchSize: 2 });
    const sent = bare.send(message([getMore(collection, id, { batchSize: 2 })]));
    const reply = await bare.next();
    assert.deepEqual([reply.to, reply.flags & MORE_TO_COME], [sent, 0]);
    await bare.ask(named({ killCursors: collection.collectionName, cursors: [Long.fromValue(id)] }));
    bare.socket.destroy();
  });

  t.it("waits while its client does not read, and goes on when it does", async () => {
    const collection = await filled(600, "x".repeat(200_000)); // 120 MB, more than the system's buffers of a connection hold
    const bare = await Bare.open(t.port);
    const { id } = await find(bare, collection, { batchSize: 1 });
    bare.socket.pause();
    bare.send(message([getMore(collection, id, { batchSize: 5 })], EXHAUST_ALLOWED));
    let made = -1;
    await until(async () => {
      const before = made;
      made = await batchesMade(collection);
      await sleep(200);
      return made > 0 && made === before && made === (await batchesMade(collection));
    }, "the server goes on although nothing is read");
    assert.ok(made < 80, `${made} of 120 batches were made`);
    bare.socket.resume();
    let n = 1, more = true;
    while (more) {
      const { flags, body } = await bare.next();
      n += body.cursor.nextBatch.length;
      more = Boolean(flags & MORE_TO_COME);
    }
    assert.equal(n, 600);
    bare.socket.destroy();
  });

  t.it("may be followed by other commands, which are answered meanwhile", async () => {
    const collection = await filled(200);
    const bare = await Bare.open(t.port);
    const { id } = await find(bare, collection, { batchSize: 1 });
    bare.send(message([getMore(collection, id, { batchSize: 1 })], EXHAUST_ALLOWED));
    const ping = bare.send(message([bodySection(named({ ping: 1 }))]));
    let n = 1, answered = 0;
    while (n < 200 || !answered) {
      const { to, body } = await bare.next();
      n += body.cursor?.nextBatch.length ?? 0;
      answered += to === ping && !body.cursor;
    }
    assert.deepEqual([n, answered], [200, 1]);
    bare.socket.destroy();
  });

  t.it("gets an error at the end of the stream, and the connection stays", async () => {
    const collection = await filled(100, "x".repeat(200_000));
    const bare = await Bare.open(t.port);
    const { id } = await find(bare, collection, { batchSize: 1 });
    bare.socket.pause();
    bare.send(message([getMore(collection, id, { batchSize: 1 })], EXHAUST_ALLOWED));
    await until(async () => (await batchesMade(collection)) > 0, "no batch was made");
    await t.command({ killCursors: collection.collectionName, cursors: [Long.fromValue(id)] });
    bare.socket.resume();
    let last = await bare.next(), before = last;
    while (last.flags & MORE_TO_COME) [before, last] = [last, await bare.next()];
    assert.deepEqual([last.to, last.body.ok, last.body.code], [before.id, 0, 43], last.body.errmsg);
    assert.equal((await bare.ask(named({ ping: 1 }))).ok, 1);
    bare.socket.destroy();
  });

  t.it("leaves no cursor behind when its client leaves", async () => {
    const collection = await filled(200, "x".repeat(200_000));
    const before = await openCursors();
    const bare = await Bare.open(t.port);
    const { id } = await find(bare, collection, { batchSize: 1 });
    bare.socket.pause();
    bare.send(message([getMore(collection, id, { batchSize: 1 })], EXHAUST_ALLOWED));
    await until(async () => (await batchesMade(collection)) > 0, "no batch was made");
    assert.equal(await openCursors(), before + 1);
    bare.socket.destroy();
    await until(async () => (await openCursors()) === before, "the cursor is still open");
  });

  t.it("is woken by what a change stream brings", async () => {
    const collection = await filled(1);
    const bare = await Bare.open(t.port);
    const { cursor } = await bare.ask(named({ aggregate: collection.collectionName, pipeline: [{ $changeStream: {} }], cursor: {} }));
    bare.send(message([getMore(collection, cursor.id, { maxTimeMS: 50 })], EXHAUST_ALLOWED));
    assert.deepEqual((await bare.next()).body.cursor.nextBatch, []); // after its time
    await collection.insertOne({ _id: "new" });
    let reply = await bare.next();
    while (!reply.body.cursor.nextBatch.length) reply = await bare.next();
    assert.equal(reply.body.cursor.nextBatch[0].documentKey._id, "new");
    assert.equal(reply.flags & MORE_TO_COME, MORE_TO_COME);
    bare.socket.destroy();
  });
});
