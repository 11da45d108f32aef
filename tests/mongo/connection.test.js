// The handshake, authentication, sessions and what shells ask.
import net from "node:net";
import { BSON } from "mongodb";
import { assert, fails, suite } from "./harness.js";

const other = Buffer.alloc(64, 7).toString("base64"); // the read-only key
const wrong = Buffer.alloc(64, 8).toString("base64");

suite(
  "connections",
  (t) => {
    t.it("see the primary of the replica set globaldb", async () => {
      const hello = await t.command({ hello: 1 });
      assert.equal(hello.setName, "globaldb");
      assert.equal(hello.isWritablePrimary, true);
      assert.equal(hello.maxWireVersion, 25);
      assert.deepEqual(hello.hosts, [hello.me]);
      assert.equal(hello.logicalSessionTimeoutMinutes, 30);
      const old = await t.command({ isMaster: 1 });
      assert.equal(old.ismaster, true);
    });

    for (const authMechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]) {
      t.it(`authenticate by ${authMechanism}`, async () => {
        const auth = authMechanism === "PLAIN" ? { authMechanism, authSource: "$external" } : { authMechanism };
        await t.with(auth, async (db) => {
          const status = await db.command({ connectionStatus: 1 });
          assert.equal(status.authInfo.authenticatedUsers[0].user, "localhost");
        });
        await fails(t.with({ ...auth, key: wrong }, (db) => db.command({ listCollections: 1 })), 18, /Authentication failed/);
      });
    }

    t.it("take any user name by SCRAM-SHA-256", () => t.with({ user: "account1" }, (db) => db.command({ listCollections: 1 })));

    t.it("may do nothing before they authenticate", async () => {
      await t.with({ user: null, set: "directConnection=true" }, async (db) => {
        await fails(db.command({ find: "x" }), 13, /requires authentication/);
        await fails(db.command({ insert: "x", documents: [{}] }), 13);
        await fails(db.command({ listDatabases: 1 }), 13);
        assert.equal((await db.command({ ping: 1 })).ok, 1);
      });
    });

    t.it("may only read with a read-only key", async () => {
      const collection = t.collection();
      await collection.insertOne({ _id: 1 });
      await t.with({ key: other }, async (db) => {
        assert.deepEqual(await db.collection(collection.collectionName).find().toArray(), [{ _id: 1 }]);
        await fails(db.collection(collection.collectionName).insertOne({ _id: 2 }), 13);
        await fails(db.collection(collection.collectionName).drop(), 13);
      });
    });

    for (const compressors of [["zlib"]]) {
      t.it(`compress with ${compressors}`, async () => {
        await t.with({ compressors }, async (db) => {
          const documents = Array.from({ length: 200 }, (_, i) => ({ _id: i, text: "x".repeat(500) }));
          const collection = db.collection(t.collection().collectionName);
          await collection.insertMany(documents);
          assert.deepEqual(await collection.find().toArray(), documents);
        });
      });
    }

    t.it("stream heartbeats", async () => {
      const seen = [];
      await t.with({ heartbeatFrequencyMS: 500, serverMonitoringMode: "stream" }, async (db, client) => {
        client.on("serverHeartbeatSucceeded", (event) => seen.push(event.awaited));
        await client.connect();
        await new Promise((done) => setTimeout(done, 1800));
        await db.command({ ping: 1 });
      });
      assert.ok(seen.filter(Boolean).length >= 2, `awaited heartbeats: ${seen}`);
    });

    t.it("answer shells", async () => {
      assert.match((await t.command({ buildInfo: 1 })).version, /^7\./);
      assert.equal((await t.command({ getParameter: 1, featureCompatibilityVersion: 1 })).featureCompatibilityVersion.version, "7.0");
      assert.deepEqual((await t.command({ getLog: "startupWarnings" })).log, []);
      assert.ok((await t.command({ hostInfo: 1 })).system.numCores > 0);
      assert.ok((await t.command({ serverStatus: 1 })).connections.current > 0);
      assert.match((await t.command({ whatsmyuri: 1 })).you, /:\d+$/);
      assert.ok((await t.command({ listCommands: 1 })).commands.find);
      await fails(t.command({ noSuchCommand: 1 }), 59, /no such command: 'noSuchCommand'/);
    });

    t.it("know the charge of the last request", async () => {
      await t.with({ maxPoolSize: 1 }, async (db) => {
        const collection = db.collection(t.collection().collectionName);
        await collection.insertOne({ _id: 1 });
        await collection.findOne({ _id: 1 });
        const read = await db.command({ getLastRequestStatistics: 1 });
        assert.equal(read._t, "GetRequestStatisticsResponse");
        assert.equal(read.CommandName, "find");
        assert.equal(read.RequestCharge, 1);
      });
    });

    t.it("are closed after malformed messages, and others go on", async () => {
      for (const bytes of [Buffer.alloc(64, 0xff), Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.from([20, 0, 0, 0])]) {
        await new Promise((done) => {
          const socket = net.connect(t.port, "127.0.0.1", () => socket.end(bytes));
          socket.on("close", done).on("error", () => {}).resume();
        });
      }
      const body = BSON.serialize({ ping: 1, $db: "admin" });
      const message = Buffer.concat([Buffer.alloc(20), Buffer.from([0]), body]);
      message.writeInt32LE(message.length, 0);
      message.writeInt32LE(5, 4);
      message.writeInt32LE(2013, 12);
      message[message.length - 1] = 9;
      const answer = await new Promise((done) => {
        const socket = net.connect(t.port, "127.0.0.1", () => socket.write(message));
        const parts = [];
        socket.on("data", (part) => parts.push(part)).on("close", () => done(Buffer.concat(parts))).on("error", () => {});
      });
      assert.equal(BSON.deserialize(answer.subarray(21)).code, 22);
      assert.equal((await t.command({ ping: 1 })).ok, 1);
    });
  },
  { flags: ["--throttling", "off", "--read-only-key", other] },
);

suite(
  "the service's surface",
  (t) => {
    t.it("refuses commands that the service does not have", async () => {
      await fails(t.command({ serverStatus: 1 }), 115, /not supported/);
      await fails(t.command({ renameCollection: "a.b", to: "a.c" }), 115);
      assert.equal((await t.command({ hello: 1 }))._t, "IsMasterResponse");
    });
    t.it("refuses documents above 2 MB", async () => {
      await fails(t.collection().insertOne({ text: "x".repeat(2 * 1024 * 1024) }), 10334);
    });
  },
  { flags: ["--throttling", "off", "--mongo-surface", "service"], ways: ["plain"] },
);
