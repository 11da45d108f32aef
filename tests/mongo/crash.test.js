// The server is killed, again and again, while clients write and watch: what was acknowledged is there, repeated writes are applied once, and
// a change stream that resumes loses and doubles nothing.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { MongoClient } from "mongodb";
import { emulatorKey, Server } from "../sdk/server.js";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const kills = Number(process.env.TESELA_KILLS ?? 4);

describe("a server that is killed", () => {
  it("keeps acknowledged writes, applies repeated ones once, and resumes change streams", async () => {
    const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
    let server = await Server.start({ data });
    const port = server.ready.mongo.replace(/.*:/, "");
    const uri = `mongodb://localhost:${encodeURIComponent(emulatorKey)}@127.0.0.1:${port}/?replicaSet=globaldb`;
    const make = () => new MongoClient(uri, { serverSelectionTimeoutMS: 20_000, heartbeatFrequencyMS: 500, retryWrites: true });
    const clients = [];
    let over = false;
    try {
      const first = make();
      clients.push(first);
      const events = first.db("d").collection("events");
      const counters = first.db("d").collection("counters");
      await events.insertOne({ _id: "first" });
      await counters.insertMany([{ _id: 0, n: 0 }, { _id: 1, n: 0 }]);

      // One inserts with w: 1, one with majority; each counts what was acknowledged, and what may or may not have been applied.
      const acknowledged = [];
      const uncertain = new Set();
      const writer = async (who, w) => {
        const client = make();
        clients.push(client);
        const [inserts, counts] = [client.db("d").collection("events"), client.db("d").collection("counters")];
        const tally = { sure: 0, unsure: 0 };
        for (let i = 0; !over; i++) {
          const _id = `${who}-${i}`;
          await inserts.insertOne({ _id }, { writeConcern: { w } }).then(() => acknowledged.push(_id), () => uncertain.add(_id));
          await counts.updateOne({ _id: who }, { $inc: { n: 1 } }, { writeConcern: { w } }).then(() => tally.sure++, () => tally.unsure++);
        }
        return tally;
      };

      // The driver resumes by itself after one failure; after a longer one this does.
      const seen = [], seenWide = []; // by a stream of the collection, and by one of the database
      const watcher = async (source, seen) => {
        const client = make();
        clients.push(client);
        let resumeAfter;
        while (!over) {
          const stream = source(client.db("d")).watch([{ $match: { "ns.coll": "events" } }], { ...(resumeAfter && { resumeAfter }), maxAwaitTimeMS: 200 });
          try {
            for (;;) {
              const event = await stream.tryNext();
              if (event) seen.push(event.documentKey._id);
              resumeAfter = stream.resumeToken ?? resumeAfter;
              if (over && !event) return;
            }
          } catch {
            await sleep(100);
          } finally {
            await stream.close().catch(() => {});
          }
        }
      };
      const watching = [watcher((db) => db.collection("events"), seen), watcher((db) => db, seenWide)];
      await sleep(800);
      const writing = [writer(0, 1), writer(1, "majority")];
      for (let i = 0; i < kills; i++) {
        await sleep(700);
        server.child.kill("SIGKILL");
        await server.ended;
        server = await Server.start({ data, flags: ["--mongo-port", port] });
      }
      await sleep(1000);
      over = true;
      const tallies = await Promise.all(writing);
      await Promise.all(watching);

      const there = new Set((await events.find().toArray()).map((d) => d._id));
      assert.ok(acknowledged.length > 20, `${acknowledged.length} writes`);
      for (const id of acknowledged) assert.ok(there.has(id), `${id} was acknowledged and is lost`);
      for (const id of there) assert.ok(id === "first" || acknowledged.includes(id) || uncertain.has(id), id);
      for (const [who, { sure, unsure }] of tallies.entries()) {
        const { n } = await counters.findOne({ _id: who });
        assert.ok(n >= sure && n <= sure + unsure, `counter ${who} is ${n}, after ${sure} acknowledged increments and ${unsure} uncertain ones`);
      }
      there.delete("first");
      for (const each of [seen, seenWide]) {
        assert.equal(new Set(each).size, each.length, "an event came twice");
        assert.deepEqual([...new Set(each)].sort(), [...there].sort());
      }
    } finally {
      over = true;
      await Promise.all(clients.map((client) => client.close(true).catch(() => {})));
      await server.stop();
      rmSync(data, { recursive: true, force: true });
    }
  });
});
