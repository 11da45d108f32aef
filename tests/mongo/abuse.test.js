// Hostile clients, with and without a key: they get an error or lose their connection, and nobody else is disturbed.
import { readFileSync } from "node:fs";
import net from "node:net";
import { deflateSync } from "node:zlib";
import { BSON, Long, ObjectId } from "mongodb";
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
  },
  { flags: ["--throttling", "off", "--read-only-key", readOnly] },
);
