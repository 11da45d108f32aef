// Hostile clients, with and without a key: they get an error or lose their connection, and nobody else is disturbed.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import net from "node:net";
import { deflateSync } from "node:zlib";
import { BSON, Long } from "mongodb";
import { Rest } from "../sdk/server.js";
import { assert, fails, suite } from "./harness.js";

const readOnly = Buffer.alloc(64, 7).toString("base64");

// An OP_MSG, and what it becomes as an OP_COMPRESSED.
function message(command, flags = 0) {
  const bytes = Buffer.concat([Buffer.alloc(20), Buffer.from([0]), BSON.serialize(command)]);
  bytes.writeInt32LE(bytes.length, 0);
  bytes.writeInt32LE(1, 4);
  bytes.writeInt32LE(2013, 12);
  bytes.writeInt32LE(flags, 16);
  return bytes;
}
function compressed(whole) {
  const body = deflateSync(whole.subarray(16));
  const head = Buffer.alloc(25);
  head.writeInt32LE(25 + body.length, 0);
  head.writeInt32LE(1, 4);
  head.writeInt32LE(2012, 12);
  head.writeInt32LE(2013, 16);
  head.writeInt32LE(whole.length - 16, 20);
  head[24] = 2;
  return Buffer.concat([head, body]);
}

suite(
  "hostile clients",
  (t) => {
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${t.server.child.pid}/status`, "utf8"))[1]) / 1024;
    const bare = () => new Promise((done) => {
      const socket = net.connect(t.port, "127.0.0.1", () => done(socket));
      socket.on("error", () => {});
    });
    // The first reply to the bytes.
    const ask = async (bytes) => {
      const socket = await bare();
      const reply = await new Promise((done, failed) => {
        let got = Buffer.alloc(0);
        socket.on("data", (part) => {
          got = Buffer.concat([got, part]);
          if (got.length >= 16 && got.length >= got.readInt32LE(0)) done(BSON.deserialize(got.subarray(21)));
        });
        socket.on("close", () => failed(new Error("closed without a reply")));
        socket.write(bytes);
      });
      socket.destroy();
      return reply;
    };

    t.it("cannot use a resource token, which is for one container of the SQL API", async () => {
      const rest = new Rest({ server: t.server, version: "2020-07-15" });
      try {
        const collection = t.collection();
        await collection.insertOne({ _id: 1 });
        const database = `/dbs/${t.db.databaseName}`;
        await rest.post(`${database}/users`, { id: "u" });
        const permission = { id: `p${t.way}`, permissionMode: "Read", resource: `${database.slice(1)}/colls/${collection.collectionName}` };
        const token = (await rest.post(`${database}/users/u/permissions`, permission)).json._token;
        assert.match(token, /^type=resource/);
        const auth = { key: token, authMechanism: "PLAIN", authSource: "$external" };
        await fails(t.with(auth, (db) => db.collection("another").findOne()), 18, /Authentication failed/);
      } finally {
        rest.close();
      }
    });

    t.it("end transactions in which they have read, with a read-only key", async () => {
      const collection = t.collection();
      await collection.insertOne({ _id: 1 });
      await t.with({ key: readOnly }, async (db, client) => {
        const session = client.startSession();
        await session.withTransaction(() => db.collection(collection.collectionName).findOne({ a: 1 }, { session }));
        session.startTransaction();
        await fails(db.collection(collection.collectionName).insertOne({ _id: 2 }, { session }), 13);
        await session.endSession();
      });
      assert.equal(await collection.countDocuments(), 1);
    });

    t.it("may give any number", async () => {
      const collection = t.collection();
      await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
      for (const n of [Long.MIN_VALUE, Long.MAX_VALUE, -1, Number.MAX_SAFE_INTEGER]) {
        await t.command({ find: collection.collectionName, limit: n, singleBatch: true });
        await t.command({ count: collection.collectionName, limit: n });
      }
      await fails(t.command({ find: collection.collectionName, skip: Long.MIN_VALUE }), 51024);
      await fails(t.command({ find: collection.collectionName, limit: Number.NaN }), 2);
    });

    t.it("get commands of thousands of members refused, and bodies and lists that are too long", async () => {
      const members = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`m${i}`, 1]));
      await fails(t.command({ find: "x", ...members }), 9, /1000 members/);
      const ids = Array.from({ length: 10001 }, (_, i) => Long.fromNumber(i + 1));
      await fails(t.command({ killCursors: "x", cursors: ids }), 2, /10000 ids/);
      await fails(t.command({ endSessions: ids.map(() => ({})) }), 2, /10000 ids/);
    });

    t.it("cannot expand a small message to a large one before they authenticate", async () => {
      const bomb = compressed(message({ ping: 1, text: "x".repeat(8 << 20), $db: "admin" }));
      assert.ok(bomb.length < 64 * 1024);
      const reply = await ask(bomb);
      assert.equal(reply.ok, 0);
      assert.match(reply.errmsg, /compressed/);
      const small = await ask(compressed(message({ ping: 1, text: "x".repeat(20000), $db: "admin" })));
      assert.equal(small.ok, 1);
    });

    t.it("get a stream of heartbeats at a bounded rate, in bounded memory", async () => {
      const hello = await ask(message({ hello: 1, $db: "admin" }));
      const sockets = await Promise.all(Array.from({ length: 8 }, bare));
      let bytes = 0;
      const before = memory();
      for (const socket of sockets) {
        socket.on("data", (part) => (bytes += part.length));
        socket.write(message({ hello: 1, topologyVersion: hello.topologyVersion, maxAwaitTimeMS: 0, $db: "admin" }, 1 << 16));
      }
      await new Promise((done) => setTimeout(done, 1500));
      for (const socket of sockets) socket.destroy();
      assert.ok(bytes > 0);
      assert.ok(bytes / sockets.length < 30 * 1024, `${bytes} bytes of heartbeats in 1.5 seconds`);
      assert.ok(memory() - before < 64, "megabytes of memory for heartbeats");
    });

    // How long others wait for a ping, at worst, while the promise is pending. The pings come from a process of their own, because large
    // messages keep this one busy.
    const worstPing = async (run) => {
      const script = `
        import { MongoClient } from "mongodb";
        const clients = await Promise.all(Array.from({ length: 4 }, () => new MongoClient(process.argv[1], { maxPoolSize: 1 }).connect()));
        let worst = 0, over = false;
        process.stdin.on("data", () => (over = true));
        await Promise.all(clients.map((c) => c.db("admin").command({ ping: 1 })));
        process.stdout.write("ready\\n");
        await Promise.all(clients.map(async (client) => {
          while (!over) {
            const from = performance.now();
            await client.db("admin").command({ ping: 1 });
            worst = Math.max(worst, performance.now() - from);
            await new Promise((done) => setTimeout(done, 2));
          }
          await client.close();
        }));
        process.stdout.write(String(worst));
        process.exit();`;
      const uri = t.uri({ set: "directConnection=true" });
      const child = spawn(process.execPath, ["--input-type=module", "-e", script, uri], { cwd: import.meta.dirname, stdio: ["pipe", "pipe", "inherit"] });
      let said = "";
      child.stdout.on("data", (part) => (said += part));
      while (!said.includes("ready")) await new Promise((done) => setTimeout(done, 10));
      await run();
      child.stdin.end("over");
      await new Promise((done) => child.on("close", done));
      return Number(said.replace("ready\n", ""));
    };

    t.it("do not hold up a loop by long evaluation", async () => {
      const collection = t.collection();
      const long = (n) => ({ $reduce: { input: { $range: [0, n] }, initialValue: 0, in: { $add: ["$$value", "$$this"] } } });
      await collection.insertOne({ _id: 1, a: 1 });
      const guarded = await t.db.createCollection(`${collection.collectionName}v`, { validator: { $expr: { $gte: [long(2000), 0] } } });
      const alone = await worstPing(async () => {
        const from = performance.now();
        await collection.find({ a: { $gte: 0 } }, { projection: { v: long(300000) } }).toArray();
        return performance.now() - from;
      });
      const attacks = {
        "a projection of one document": () => collection.findOne({ _id: 1 }, { projection: { v: long(300000) } }),
        "a condition of one document": () => collection.findOne({ _id: 1, $expr: { $gte: [long(300000), 0] } }),
        "a projection of findAndModify": () => collection.findOneAndUpdate({ _id: 1 }, { $set: { a: 2 } }, { projection: { v: long(300000) } }),
        "variables": () => fails(t.command({ find: collection.collectionName, let: { v: long(300000) } }), 50, /let/),
        "a filter of a list": () => t.command({ listCollections: 1, filter: { $expr: { $gte: [long(100000), 0] } } }),
        "a validator": () => guarded.insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i }))),
        "an upsert": () => collection.updateOne({ b: 1 }, [{ $set: { v: long(300000) } }], { upsert: true }),
        "a long filter": () => t.command({ find: collection.collectionName, filter: { a: { $in: Array.from({ length: 100000 }, (_, i) => i) } } }),
        "a long pipeline": () => t.command({ aggregate: collection.collectionName, cursor: {}, pipeline: [{ $project: { v: { $add: Array.from({ length: 200000 }, () => 1) } } }] }),
      };
      for (const [name, attack] of Object.entries(attacks)) {
        let took = 0;
        const worst = await worstPing(async () => {
          const from = performance.now();
          await attack();
          took = performance.now() - from;
        });
        // A loop that did the work would answer no ping for as long as the attack takes.
        assert.ok(worst < Math.max(150, 3 * alone, took / 2), `${name} took ${took | 0} ms and held up others for ${worst | 0} ms (${alone | 0})`);
      }
    });

    t.it("get distinct values in linear time", async () => {
      const collection = t.collection();
      const values = Array.from({ length: 60000 }, (_, i) => 60000 - i);
      await collection.insertOne({ _id: 1, values });
      const from = performance.now();
      assert.deepEqual(await collection.distinct("values"), values);
      assert.ok(performance.now() - from < 5000, `${performance.now() - from} ms`);
    });

    t.it("update and delete any number of documents in bounded memory", async () => {
      const collection = t.collection();
      await collection.insertMany(Array.from({ length: 10000 }, (_, i) => ({ _id: i })));
      const before = memory();
      const update = { $set: { a: 1 }, $setOnInsert: { text: "x".repeat(20000) } };
      assert.equal((await collection.updateMany({}, update)).modifiedCount, 10000);
      assert.ok(memory() - before < 150, `${(memory() - before) | 0} MB`);
    });

    t.it("get as many write errors as they make, in a reply of bounded size", async () => {
      const collection = t.collection();
      const documents = Array.from({ length: 6000 }, (_, i) => ({ _id: `${i}-${"x".repeat(200)}` }));
      await collection.insertMany(documents);
      const error = await fails(collection.insertMany(documents, { ordered: false }), 11000);
      assert.equal(error.writeErrors.length, 6000);
      assert.match(error.writeErrors[0].errmsg, /E11000 duplicate key error/);
      assert.equal(error.writeErrors.at(-1).index, 5999);
      assert.equal(error.writeErrors.at(-1).code, 11000);
    });

    t.it("lose cursors that have too many of them, and leave room for others", async () => {
      const collection = t.collection();
      await collection.insertMany([{ _id: 1 }, { _id: 2 }]);
      await t.with({ key: readOnly }, async (db) => {
        const open = () => db.command({ find: collection.collectionName, batchSize: 0, noCursorTimeout: true });
        let refused;
        for (let i = 0; i < 60 && !refused; i++) await Promise.all(Array.from({ length: 100 }, open)).catch((error) => (refused = error));
        assert.equal(refused?.code, 16500, String(refused));
        await fails(open(), 16500);
      });
      assert.ok((await t.command({ find: collection.collectionName, batchSize: 1 })).cursor.id > 0n);
    });
  },
  { flags: ["--throttling", "off", "--read-only-key", readOnly], ways: ["plain"] },
);
