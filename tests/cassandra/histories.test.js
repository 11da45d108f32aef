// histories.test.js — many clients compare and set registers and increment counters, while the server is killed and started again: what they saw could
// have happened one after another, and no acknowledged increment is lost or counted twice.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { dice } from "../mongo/dice.js";
import { assert, cassandra, emulatorKey, portOf, rounds, Server } from "./harness.js";
import { isLinearizable } from "./histories.js";

const CLIENTS = 8;
const REGISTERS = 3;
const seed = Number(process.env.TESELA_SEED ?? Date.now() % 1e9);

const connect = async (server) => {
  const client = new cassandra.Client({
    contactPoints: [`127.0.0.1:${portOf(server)}`],
    localDataCenter: "datacenter1",
    authProvider: new cassandra.auth.PlainTextAuthProvider("localhost", emulatorKey),
    policies: {
      retry: new cassandra.policies.retry.FallthroughRetryPolicy(),
      reconnection: new cassandra.policies.reconnection.ConstantReconnectionPolicy(100), // its timer outlives shutdown()
    },
  });
  await client.connect();
  return client;
};

// A server whose folder outlives it.
async function withServer(use) {
  const data = mkdtempSync(join(tmpdir(), "tesela-test-"));
  const life = { server: await Server.start({ data, flags: ["--throttling", "off"] }) };
  life.again = async () => {
    life.server.abandon();
    await life.server.ended;
    life.server = await Server.start({ data, flags: ["--throttling", "off"] });
  };
  try {
    const client = await connect(life.server);
    await client.execute("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    await client.execute("CREATE TABLE h.registers (id int PRIMARY KEY, v int)");
    await client.execute("CREATE TABLE h.counters (id int PRIMARY KEY, n counter)");
    for (let id = 0; id < REGISTERS; id++) await client.execute("INSERT INTO h.registers (id, v) VALUES (?, 0)", [id], { prepare: true });
    await client.shutdown();
    await use(life);
  } finally {
    await life.server.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

const serial = { prepare: true, consistency: cassandra.types.consistencies.serial };

class History {
  constructor() {
    this.events = Array.from({ length: REGISTERS }, () => []);
    this.ops = 0;
    this.values = 0;
  }
  // An operation that ends without an answer stays under way for ever.
  async #record(id, op, run) {
    op.id = this.ops++;
    this.events[id].push({ op, begins: true });
    await run(op);
    this.events[id].push({ op, begins: false });
  }
  async read(client, id) {
    await this.#record(id, { kind: "read" }, async (op) => {
      op.seen = (await client.execute("SELECT v FROM h.registers WHERE id = ?", [id], serial)).first().v;
    });
  }
  async compareAndSet(client, id, from) {
    await this.#record(id, { kind: "cas", from, to: ++this.values }, async (op) => {
      const result = await client.execute("UPDATE h.registers SET v = ? WHERE id = ? IF v = ?", [op.to, id, from], { prepare: true });
      op.seen = result.first().v;
      op.applied = result.wasApplied();
    });
  }
  // What somebody has last seen or set: a good guess of what is there.
  last(id) {
    const op = this.events[id].findLast(({ op, begins }) => !begins && (op.kind === "read" || op.applied))?.op;
    return op ? (op.kind === "read" ? op.seen : op.to) : 0;
  }
}

async function worker(client, roll, history, n) {
  for (let i = 0; i < n; i++) {
    const id = roll(REGISTERS);
    if (roll(4) === 0) await history.read(client, id);
    else await history.compareAndSet(client, id, history.last(id));
  }
}

// All clients at once; `kill`: the server ends while they are at it, and their last operations have no answers.
async function phase(life, kill, work) {
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => connect(life.server)));
  const all = Promise.allSettled(clients.map(work));
  if (kill) {
    await kill();
    await life.again();
  }
  const results = await all;
  await Promise.all(clients.map((client) => client.shutdown().catch(() => {})));
  const failed = results.find((each) => each.status === "rejected");
  if (failed && !kill) throw failed.reason;
}

const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
};

describe("histories", () => {
  it(`of registers are linearizable (seed ${seed})`, async () => {
    await withServer(async (life) => {
      const history = new History();
      for (let round = 0; round < rounds(8); round++) {
        const from = history.ops;
        const after = 20 + dice(seed + round)(200);
        const kill = round % 2 ? () => until(() => history.ops - from > after) : null;
        await phase(life, kill, (client, i) => worker(client, dice(seed + 100 * round + i), history, 60));
      }
      const applied = history.events.flat().filter(({ op, begins }) => !begins && op.applied).length;
      assert.ok(applied > 20, `${applied} were applied`);
      for (const [id, events] of history.events.entries()) {
        const verdict = isLinearizable(events, 0);
        assert.ok(verdict.ok, `register ${id}, at ${JSON.stringify(verdict.op)}: ${JSON.stringify(events.slice(0, 400))}`);
      }
    });
  });

  it("that are not linearizable are found", () => {
    const cas = (id, from, to, applied, seen) => ({ id, kind: "cas", from, to, applied, seen });
    const whole = (...ops) => ops.flatMap((op) => [{ op, begins: true }, { op, begins: false }]);
    assert.equal(isLinearizable(whole(cas(1, 0, 1, true), { id: 2, kind: "read", seen: 1 }), 0).ok, true);
    assert.equal(isLinearizable(whole(cas(1, 0, 1, true), { id: 2, kind: "read", seen: 0 }), 0).ok, false, "a stale read");
    assert.equal(isLinearizable(whole(cas(1, 0, 1, true), cas(2, 0, 2, true)), 0).ok, false, "two winners");
    const lost = { id: 3, kind: "cas", from: 0, to: 5 };
    assert.equal(isLinearizable([{ op: lost, begins: true }, ...whole({ id: 4, kind: "read", seen: 0 }, { id: 5, kind: "read", seen: 5 })], 0).ok, true, "it happened later");
    assert.equal(isLinearizable([{ op: lost, begins: true }, ...whole({ id: 4, kind: "read", seen: 5 }, { id: 5, kind: "read", seen: 0 })], 0).ok, false, "it did not unhappen");
  });

  it("of counters lose no acknowledged increment, and count none twice", async () => {
    await withServer(async (life) => {
      let [sent, acknowledged] = [0, 0];
      const increments = (n) => async (client) => {
        for (let i = 0; i < n; i++) {
          sent++;
          await client.execute("UPDATE h.counters SET n = n + 1 WHERE id = 1", [], { prepare: true });
          acknowledged++;
        }
      };
      const value = async () => {
        const client = await connect(life.server);
        const { rows } = await client.execute("SELECT n FROM h.counters WHERE id = 1");
        await client.shutdown();
        return Number(rows[0]?.n ?? 0);
      };
      await phase(life, null, increments(40));
      assert.equal(await value(), acknowledged);
      for (let round = 0; round < rounds(4); round++) {
        const from = acknowledged;
        await phase(life, () => until(() => acknowledged - from > 50), increments(1000));
        const n = await value();
        assert.ok(n >= acknowledged && n <= sent, `${n}, with ${acknowledged} acknowledged of ${sent}`);
        sent = acknowledged = n; // what became of those without an answer is known now
      }
    });
  });
});
