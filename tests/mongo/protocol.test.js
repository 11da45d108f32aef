// OP_MSG on bare connections: what drivers do not show.
import { Decimal128, Long, UUID } from "mongodb";
import { Bare, CHECKSUM, MORE_TO_COME, bodySection, message, plainPayload, sequence } from "./bare.js";
import { assert, emulatorKey, fails, suite } from "./harness.js";

const readOnly = Buffer.alloc(64, 7).toString("base64");

suite("speculative authentication", (t) => {
  const hello = (key) => ({ hello: 1, $db: "admin", speculativeAuthenticate: { saslStart: 1, mechanism: "PLAIN", payload: plainPayload(key), db: "$external" } });
  const list = () => ({ listCollections: 1, $db: t.db.databaseName });

  t.it("saves a round trip if the key is right", async () => {
    const bare = Bare.connect(t.port);
    const reply = await bare.ask(hello(emulatorKey));
    assert.deepEqual([reply.ok, reply.speculativeAuthenticate.done], [1, true]);
    assert.equal((await bare.ask(list())).ok, 1);
    bare.socket.destroy();
  });

  t.it("is passed over in silence if it is not, and allows nothing", async () => {
    const bare = Bare.connect(t.port);
    const reply = await bare.ask(hello(readOnly.replace("B", "C")));
    assert.deepEqual([reply.ok, "speculativeAuthenticate" in reply], [1, false]);
    assert.equal((await bare.ask(list())).code, 13);
    const proper = await bare.ask({ saslStart: 1, mechanism: "PLAIN", payload: plainPayload(emulatorKey), $db: "$external" });
    assert.deepEqual([proper.ok, (await bare.ask(list())).ok], [1, 1]);
    bare.socket.destroy();
  });
}, { ways: ["plain"] });

suite("OP_MSG", (t) => {
  const ping = { ping: 1, $db: "admin" };
  const named = (command) => ({ ...command, $db: t.db.databaseName });

  t.it("is checked by its checksum", async () => {
    const bare = await Bare.open(t.port);
    assert.equal((await bare.ask(ping, CHECKSUM)).ok, 1);
    const wrong = message([bodySection(ping)], CHECKSUM);
    wrong[wrong.length - 1] ^= 1;
    bare.send(wrong);
    assert.notEqual((await bare.next())?.body.ok, 1);
  });

  t.it("has its sections in any order, one body, and names a sequence once", async () => {
    const collection = t.collection();
    const insert = bodySection(named({ insert: collection.collectionName }));
    const documents = sequence("documents", [{ _id: 1 }, { _id: 2 }]);
    const bare = await Bare.open(t.port);
    for (const sections of [[insert, documents], [sequence("documents", [{ _id: 3 }]), insert]]) {
      bare.send(message(sections));
      assert.equal((await bare.next()).body.ok, 1);
    }
    assert.equal(await collection.countDocuments(), 3);
    for (const sections of [[insert, insert, documents], [documents], [insert, documents, documents], [Buffer.from([7]), insert]]) {
      const other = await Bare.open(t.port);
      other.send(message(sections));
      assert.notEqual((await other.next())?.body.ok, 1);
      other.socket.destroy();
    }
    assert.equal(await collection.countDocuments(), 3);
  });

  t.it("is not answered if more is to come, and is carried out in its order", async () => {
    const collection = t.collection();
    const bare = await Bare.open(t.port);
    for (let i = 0; i < 20; i++) bare.send(message([bodySection(named({ insert: collection.collectionName, documents: [{ _id: i }], writeConcern: { w: 0 } }))], MORE_TO_COME));
    const id = bare.send(message([bodySection(named({ count: collection.collectionName }))]));
    const reply = await bare.next();
    assert.deepEqual([reply.to, reply.body.n, reply.flags & MORE_TO_COME], [id, 20, 0]);
    // also if they are so large that they are read apart, and if the client does not wait for the end
    const large = (from) => Array.from({ length: 30 }, (_, i) => ({ _id: from + i, text: "x".repeat(10_000) }));
    for (const from of [100, 200, 300]) bare.send(message([bodySection(named({ insert: collection.collectionName, writeConcern: { w: 0 } })), sequence("documents", large(from))], MORE_TO_COME));
    bare.send(message([bodySection(named({ count: collection.collectionName }))]));
    assert.equal((await bare.next()).body.n, 110);
    for (let i = 1000; i < 1030; i++) bare.send(message([bodySection(named({ insert: collection.collectionName, documents: [{ _id: i }] }))], MORE_TO_COME));
    bare.socket.end();
    const other = await Bare.open(t.port);
    assert.equal((await other.ask(ping)).ok, 1);
  });

  t.it("may have unknown flags only where the protocol allows them", async () => {
    const bare = await Bare.open(t.port);
    assert.equal((await bare.ask(ping, 1 << 20)).ok, 1);
    assert.notEqual((await bare.ask(ping, 1 << 5))?.ok, 1);
  });

  t.it("repeats a write of another connection without applying it twice", async () => {
    const collection = t.collection();
    await collection.insertOne({ _id: 1, n: 0 });
    const lsid = { id: new UUID().toBinary() };
    const update = { update: collection.collectionName, updates: [{ q: { _id: 1 }, u: { $inc: { n: 1 } } }], lsid, txnNumber: Long.fromNumber(1) };
    const first = await Bare.open(t.port);
    first.send(message([bodySection(named(update))]));
    const [answer, other] = [(await first.next()).body, await Bare.open(t.port)];
    first.socket.destroy();
    assert.deepEqual(await other.ask(named(update)), answer);
    // lost before the answer: the connection goes while the write is on its way
    const next = { ...update, txnNumber: Long.fromNumber(2) };
    const lost = await Bare.open(t.port);
    lost.send(message([bodySection(named(next))]));
    lost.socket.destroy();
    assert.equal((await other.ask(named(next))).n, 1);
    await new Promise((done) => setTimeout(done, 100));
    assert.equal((await other.ask(named(next))).n, 1);
    assert.equal((await collection.findOne({ _id: 1 })).n, 2);
  });

  for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]) {
    t.it(`lets a read-only key read, and nothing else, by ${mechanism}`, async () => {
      const collection = t.collection();
      await collection.insertOne({ _id: 1 });
      const authSource = mechanism === "PLAIN" ? "$external" : "admin";
      await t.with({ key: readOnly, authMechanism: mechanism, authSource }, async (db) => {
        const reading = db.collection(collection.collectionName);
        assert.deepEqual(await reading.find().toArray(), [{ _id: 1 }]);
        assert.equal((await reading.aggregate([{ $count: "n" }]).next()).n, 1);
        await fails(reading.insertOne({}), 13);
        await fails(reading.updateOne({}, { $set: { a: 1 } }), 13);
        await fails(reading.deleteOne({}), 13);
        await fails(reading.findOneAndDelete({}), 13);
        await fails(reading.createIndex({ a: 1 }), 13);
        await fails(reading.drop(), 13);
        await fails(reading.aggregate([{ $out: "copy" }]).toArray(), 13);
        await fails(db.dropDatabase(), 13);
      });
    });
  }
}, { ways: ["plain"], flags: ["--throttling", "off", "--read-only-key", readOnly] });

suite("Decimal128", (t) => {
  const decimal = (text) => Decimal128.fromString(text);

  t.it("is computed exactly, in updates, expressions and accumulators", async () => {
    const collection = t.collection();
    await collection.insertMany([{ _id: 1, d: decimal("0.1") }, { _id: 2, d: decimal("0.2") }, { _id: 3, d: decimal("1E+3000") }]);
    await collection.updateOne({ _id: 1 }, { $inc: { d: decimal("0.0000000000000000000000000000000001") } });
    assert.equal((await collection.findOne({ _id: 1 })).d.toString(), "0.1000000000000000000000000000000001");
    await collection.updateOne({ _id: 1 }, { $mul: { d: 3 } });
    assert.equal((await collection.findOne({ _id: 1 })).d.toString(), "0.3000000000000000000000000000000003");
    const [sums] = await collection.aggregate([{ $match: { _id: { $lt: 3 } } }, { $group: { _id: null, sum: { $sum: "$d" }, avg: { $avg: "$d" }, max: { $max: "$d" } } }]).toArray();
    assert.deepEqual([sums.sum, sums.avg, sums.max].map(String), ["0.5000000000000000000000000000000003", "0.2500000000000000000000000000000002", "0.3000000000000000000000000000000003"]);
    const [row] = await collection.aggregate([{ $match: { _id: 3 } }, { $project: { product: { $multiply: ["$d", "$d"] }, third: { $divide: [decimal("1"), 3] }, root: { $sqrt: decimal("2") }, text: { $toString: decimal("1.10") }, rest: { $mod: [decimal("5.5"), 2] } } }]).toArray();
    assert.deepEqual([row.product, row.third, row.root, row.text, row.rest].map(String), ["1E+6000", "0.3333333333333333333333333333333333", "1.414213562373095048801688724209698", "1.10", "1.5"]);
  });

  t.it("is ordered among the other numbers", async () => {
    const collection = t.collection();
    const values = [-1, decimal("-0.5"), 0, decimal("0.1"), 0.1, decimal("1E+400"), Infinity];
    await collection.insertMany(values.map((v, _id) => ({ _id, v })).reverse());
    assert.deepEqual((await collection.find().sort({ v: 1 }).toArray()).map((d) => d._id), [0, 1, 2, 3, 4, 5, 6]);
    await collection.createIndex({ v: 1 });
    assert.deepEqual((await collection.find().sort({ v: 1 }).toArray()).map((d) => d._id), [0, 1, 2, 3, 4, 5, 6]);
    assert.deepEqual((await collection.find({ v: { $gt: decimal("0.1"), $lt: decimal("1E+400") } }).toArray()).map((d) => d._id), [4]);
    assert.equal(await collection.countDocuments({ v: decimal("-1.00") }), 1);
  });
}, { ways: ["plain"] });

suite("what runs code on the server", (t) => {
  t.it("is refused", async () => {
    const collection = t.collection();
    await collection.insertOne({ a: 1 });
    const code = { body: "function() { return 1; }", args: [], lang: "js" };
    await fails(collection.find({ $where: "this.a == 1" }).toArray(), 2);
    await fails(collection.updateOne({ $where: "true" }, { $set: { a: 2 } }), 2);
    await fails(collection.deleteMany({ $where: "true" }), 2);
    await fails(collection.aggregate([{ $project: { x: { $function: code } } }]).toArray(), 31264);
    const accumulator = { init: code.body, accumulate: code.body, accumulateArgs: [], merge: code.body, lang: "js" };
    await fails(collection.aggregate([{ $group: { _id: null, x: { $accumulator: accumulator } } }]).toArray(), 31264);
    await fails(t.command({ mapReduce: collection.collectionName, map: code.body, reduce: code.body, out: { inline: 1 } }), 115);
    await fails(t.command({ eval: "1" }), 115);
    assert.deepEqual((await collection.find().toArray()).map((d) => d.a), [1]);
  });
}, { ways: ["plain"] });
