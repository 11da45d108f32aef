// protocol.test.js — bare messages where a driver would hide something: versions, malformed and lying frames, authentication; throttling, charges,
// many streams, restarts, and histories of concurrent writes.

import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, cassandra, codes, emulatorKey, fails, portOf, Server, suite } from "./harness.js";

// One connection of bytes; `ask` sends an envelope and returns the answer's.
class Wire {
  constructor(port) {
    this.bytes = Buffer.alloc(0);
    this.closed = false;
    this.socket = createConnection(port, "127.0.0.1");
    this.socket.on("data", (more) => {
      this.bytes = Buffer.concat([this.bytes, more]);
      this.wake?.();
    });
    const end = () => {
      this.closed = true;
      this.wake?.();
    };
    this.socket.on("close", end);
    this.socket.on("error", end);
  }
  static envelope(opcode, body = Buffer.alloc(0), { version = 4, flags = 0, length = body.length } = {}) {
    const head = Buffer.alloc(9);
    head.writeUInt8(version, 0);
    head.writeUInt8(flags, 1);
    head.writeInt16BE(5, 2);
    head.writeUInt8(opcode, 4);
    head.writeUInt32BE(length, 5);
    return Buffer.concat([head, body]);
  }
  async answer() {
    const until = Date.now() + 5000;
    for (;;) {
      const n = this.bytes.length >= 9 ? 9 + this.bytes.readUInt32BE(5) : Infinity;
      if (this.bytes.length >= n) {
        const one = this.bytes.subarray(0, n);
        this.bytes = this.bytes.subarray(n);
        const opcode = one[4];
        const error = opcode === 0 ? { code: one.readInt32BE(9), message: one.subarray(15).toString() } : null;
        return { version: one[0] & 0x7f, stream: one.readInt16BE(2), opcode, body: one.subarray(9), error };
      }
      if (this.closed) return null;
      assert.ok(Date.now() < until, "no answer");
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, 200);
      });
    }
  }
  ask(...envelope) {
    this.socket.write(Wire.envelope(...envelope));
    return this.answer();
  }
  end() {
    this.socket.destroy();
  }
}

const text = (value) => Buffer.concat([Buffer.from([value.length >> 8, value.length & 255]), Buffer.from(value)]);
const startup = (options) => Buffer.concat([Buffer.from([0, Object.keys(options).length]), ...Object.entries(options).flat().map(text)]);
const login = (key) => {
  const token = Buffer.from(`\0localhost\0${key}`);
  const n = Buffer.alloc(4);
  n.writeInt32BE(token.length);
  return Buffer.concat([n, token]);
};

suite(
  "protocol",
  (t) => {
    const wire = async (use) => {
      const w = new Wire(portOf(t.server));
      try {
        return await use(w);
      } finally {
        w.end();
      }
    };
    const begin = async (w, options = {}) => {
      assert.equal((await w.ask(1, startup({ CQL_VERSION: "3.0.0", ...options }))).opcode, 3);
      assert.equal((await w.ask(15, login(emulatorKey))).opcode, 16);
    };

    t.it("answers versions that it does not speak in one that it does", () =>
      wire(async (w) => {
        const { version, stream, error } = await w.ask(5, Buffer.alloc(0), { version: 0x42 });
        assert.equal(version, 5);
        assert.equal(stream, 5);
        assert.equal(error.code, 10);
        assert.match(error.message, /Invalid or unsupported protocol version/);
      }));

    t.it("serves nothing before authentication, and refuses wrong keys", () =>
      wire(async (w) => {
        assert.equal((await w.ask(5)).opcode, 6);
        assert.equal((await w.ask(7, Buffer.from("0000000a53454c454354202a2046000100", "hex"))).opcode, 0);
        assert.equal((await w.ask(1, startup({ CQL_VERSION: "3.0.0" }))).opcode, 3);
        assert.equal((await w.ask(15, login("wrong"))).error.code, 0x100);
      }));

    t.it("refuses malformed messages and lying lengths", async () => {
      await wire(async (w) => {
        await begin(w);
        for (const body of ["", "7fffffff", "0000000153", "00000001530001ff", "000000015300010100ff"]) {
          const { error } = await w.ask(7, Buffer.from(body, "hex"));
          assert.ok(error.code === 10 || error.code === 0x2000, `${body}: ${error.code}`);
        }
        assert.equal((await w.ask(0x33)).error.code, 10);
        assert.equal((await w.ask(13, Buffer.from("00ffff", "hex"))).error.code, 10);
        assert.equal((await w.ask(5)).opcode, 6, "the connection is still of use");
      });
      await wire(async (w) => {
        await begin(w);
        w.socket.write(Wire.envelope(7, Buffer.alloc(0), { length: 0x7fffffff }));
        const refused = await w.answer();
        assert.ok(refused === null || refused.error.code === 10);
      });
    });

    t.it("keeps large answers for a client that reads late, and in order", async () => {
      const table = await t.table("(p int, c int, body text, PRIMARY KEY (p, c))");
      for (let c = 0; c < 30; c++) await t.run(`INSERT INTO ${table} (p, c, body) VALUES (1, ${c}, ?)`, [String(c).padEnd(100000, "abcdefg")]);
      await wire(async (w) => {
        await begin(w);
        const query = (cql) => {
          const n = Buffer.alloc(4);
          n.writeInt32BE(cql.length);
          return Buffer.concat([n, Buffer.from(cql), Buffer.from([0, 1, 0])]);
        };
        w.socket.removeAllListeners("data");
        w.socket.pause();
        const asked = 12, large = query(`SELECT * FROM ${table} WHERE p = 1`), small = query("SELECT key FROM system.local");
        for (let i = 0; i < asked; i++) w.socket.write(Buffer.concat([Wire.envelope(7, large), Wire.envelope(7, small)]));
        await new Promise((resolve) => setTimeout(resolve, 700)); // some 36 MB are more than the sockets take
        const parts = [];
        let got = 0;
        w.socket.on("data", (more) => {
          parts.push(more);
          got += more.length;
        });
        w.socket.resume();
        for (const until = Date.now() + 30000; got < asked * 3000000 && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 50));
        await new Promise((resolve) => setTimeout(resolve, 200));
        let rest = Buffer.concat(parts), first;
        const lengths = [];
        while (rest.length) {
          const n = 9 + rest.readUInt32BE(5), one = rest.subarray(0, n);
          assert.equal(one[4], 8);
          if (n > 1000000) assert.ok((first ??= one).equals(one), "each large answer is the same");
          lengths.push(n > 1000000);
          rest = rest.subarray(n);
        }
        assert.deepEqual(lengths.toSorted(), [...Array(asked).fill(false), ...Array(asked).fill(true)]);
        for (let c = 0; c < 30; c++) assert.ok(first.includes(String(c).padEnd(100000, "abcdefg")));
      });
    });

    t.it("refuses bombs and lies in compression", async () => {
      await wire(async (w) => {
        await begin(w, { COMPRESSION: "lz4" });
        for (const body of ["7fffffff10616263", "0fffffff10616263", "ffffffff10616263", "0000000910", ""]) {
          assert.equal((await w.ask(7, Buffer.from(body, "hex"), { flags: 1 })).error.code, 10, body);
        }
        assert.equal((await w.ask(5)).opcode, 6);
      });
      await wire(async (w) => {
        await w.ask(1, startup({ CQL_VERSION: "3.0.0", COMPRESSION: "lz4" }));
        assert.equal((await w.ask(15, Buffer.from("00f0000010616263", "hex"), { flags: 1 })).error.code, 10, "before authentication");
      });
      await wire(async (w) => assert.equal((await w.ask(1, startup({ CQL_VERSION: "3.0.0", COMPRESSION: "zip" }))).error.code, 10));
    });

    t.it("ends a connection whose segments are damaged", () =>
      wire(async (w) => {
        assert.equal((await w.ask(1, startup({ CQL_VERSION: "3.0.0" }), { version: 5 })).opcode, 3);
        w.socket.write(Buffer.from("090002a4c8c2050000010500000000b5557486", "hex"));
        for (let i = 0; i < 50 && !w.closed; i++) await new Promise((resolve) => setTimeout(resolve, 50));
        assert.ok(w.closed);
      }));

    t.it("shows the charge, and answers many streams at once", async () => {
      const table = await t.table("(id int PRIMARY KEY, v text)");
      const write = await t.run(`INSERT INTO ${table} (id, v) VALUES (1, 'x')`);
      assert.ok(write.info.customPayload.RequestCharge.readDoubleBE(0) > 0);
      await Promise.all(Array.from({ length: 1000 }, (_, id) => t.run(`INSERT INTO ${table} (id, v) VALUES (?, ?)`, [id, `v${id}`])));
      const [{ n }] = await t.rows(`SELECT count(*) AS n FROM ${table}`);
      assert.equal(Number(n), 1000);
    });

    t.it("never loses a counted step, nor lets two clients win", async () => {
      const counters = await t.table("(id int PRIMARY KEY, n counter)");
      const table = await t.table("(id int PRIMARY KEY, owner int, version int)");
      await Promise.all(Array.from({ length: 500 }, () => t.run(`UPDATE ${counters} SET n = n + 1 WHERE id = 1`, [])));
      assert.equal((await t.rows(`SELECT n FROM ${counters}`))[0].n.toNumber(), 500);
      const firsts = await Promise.all(Array.from({ length: 50 }, (_, owner) => t.run(`INSERT INTO ${table} (id, owner, version) VALUES (1, ?, 0) IF NOT EXISTS`, [owner])));
      assert.equal(firsts.filter((result) => result.wasApplied()).length, 1);
      let won = 0;
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          for (let i = 0; i < 10; i++) {
            const [{ version }] = await t.rows(`SELECT version FROM ${table} WHERE id = 1`, []);
            const result = await t.run(`UPDATE ${table} SET version = ? WHERE id = 1 IF version = ?`, [version + 1, version]);
            won += result.wasApplied() ? 1 : 0;
          }
        }),
      );
      assert.equal((await t.rows(`SELECT version FROM ${table}`))[0].version, won, "each version was won once");
    });
  },
  { ways: ["plain"] },
);

suite(
  "throttling",
  (t) => {
    t.it("is an overload, with the time to wait", async () => {
      const table = await t.table("(id int PRIMARY KEY, v text)", "WITH cosmosdb_provisioned_throughput = 400");
      const v = "x".repeat(100000);
      const retry = new cassandra.policies.retry.FallthroughRetryPolicy();
      const insert = (id) => t.client.execute(`INSERT INTO ${table} (id, v) VALUES (?, ?)`, [id, v], { prepare: true, retry });
      let refused = [];
      // Writes that come together may be let in together: they are paid when they are done. Those that come next must wait.
      for (let round = 0; round < 20 && !refused.length; round++) {
        const tries = await Promise.allSettled(Array.from({ length: 60 }, (_, id) => insert(id)));
        refused = tries.filter((each) => each.status === "rejected");
      }
      assert.ok(refused.length > 0, "some are refused");
      assert.equal(refused[0].reason.code, codes.overloaded);
      assert.match(refused[0].reason.message, /RetryAfterMs=\d+/);
    });
  },
  { flags: ["--throttling", "on"], ways: ["plain"] },
);

suite(
  "a server that is killed",
  (t) => {
    t.it("keeps what it has acknowledged", async () => {
      const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
      const server = await Server.start({ data });
      const connect = (s) =>
        new cassandra.Client({
          contactPoints: [`127.0.0.1:${portOf(s)}`],
          localDataCenter: "datacenter1",
          authProvider: new cassandra.auth.PlainTextAuthProvider("localhost", emulatorKey),
        });
      const client = connect(server);
      const acknowledged = new Set();
      let steps = 0, sent = 0;
      await client.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      await client.execute("CREATE TABLE k.t (id int PRIMARY KEY, v int)");
      await client.execute("CREATE TABLE k.c (id int PRIMARY KEY, n counter)");
      const writers = Promise.allSettled(Array.from({ length: 16 }, async (_, w) => {
        for (let i = 0; ; i++) {
          const id = w * 100000 + i;
          await client.execute("INSERT INTO k.t (id, v) VALUES (?, ?)", [id, id], { prepare: true });
          acknowledged.add(id);
          sent++;
          await client.execute("UPDATE k.c SET n = n + 1 WHERE id = 1", [], { prepare: true });
          steps++;
        }
      }));
      await new Promise((resolve) => setTimeout(resolve, 700));
      server.abandon();
      await server.ended;
      await writers;
      await client.shutdown();
      const again = await Server.start({ data });
      const reader = connect(again);
      try {
        const found = new Set();
        for await (const row of reader.stream("SELECT id FROM k.t", [], { fetchSize: 500, autoPage: true })) found.add(row.id);
        for (const id of acknowledged) assert.ok(found.has(id), `${id} is lost`);
        const counted = (await reader.execute("SELECT n FROM k.c WHERE id = 1")).first().n.toNumber();
        assert.ok(counted >= steps && counted <= sent, `${steps} acknowledged, ${sent} sent, ${counted} counted`);
        assert.ok(steps > 10, `${steps}`);
      } finally {
        await reader.shutdown();
        await again.stop();
        rmSync(data, { recursive: true, force: true });
      }
    });
  },
  { ways: ["plain"] },
);
