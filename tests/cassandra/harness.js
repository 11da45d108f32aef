// harness.js — what the suites share: a server of its own for each, reached plainly and then over TLS, with DataStax's own driver.
//
//   suite("rows", (t) => {
//     t.it("come back as they were", async () => {
//       const table = await t.table("(id int PRIMARY KEY, v text)");
//       await t.run(`INSERT INTO ${table} (id, v) VALUES (1, 'a')`);
//       …
//
// In a test, t has: client (Client), keyspace, table(definition) (a new one), run(cql, params, options), rows(…) as plain objects, server, make(options).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import cassandra from "cassandra-driver";
import { emulatorKey, Server } from "../sdk/server.js";

export { assert, cassandra, emulatorKey, Server };

// Random rounds: a quarter of them under sanitizers.
export const rounds = (n) => (process.env.TESELA_SANITIZED ? Math.ceil(n / 4) : n);

const waysAsked = (process.env.TESELA_WAYS ?? "plain tls").split(" ");
const replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";

export function suite(name, define, { flags = ["--throttling", "off"], ways = waysAsked } = {}) {
  describe(name, () => {
    const shared = {};
    before(async () => {
      shared.server = await Server.start({ flags });
      shared.ca = join(shared.server.data, "tls-cert.pem");
    });
    after(() => shared.server?.stop());
    for (const way of ways) {
      describe(way, () => {
        const bench = new Bench(shared, way);
        before(() => bench.open());
        after(() => bench.close());
        define(bench);
      });
    }
  });
}

// The driver may go on connecting after shutdown() if its server has stopped meanwhile, and then the process would not end by itself.
after(() => setTimeout(() => process.exit(), 5000).unref());

let names = 0;

export const portOf = (server) => Number(server.ready.cassandra.replace(/.*:/, ""));

class Bench {
  #shared;

  constructor(shared, way) {
    this.way = way;
    this.#shared = shared;
    this.keyspace = `ks${way}`;
  }
  get server() {
    return this.#shared.server;
  }
  make({ user = "localhost", key = emulatorKey, ...options } = {}) {
    const tls = this.way === "tls" ? { sslOptions: { ca: [readFileSync(this.#shared.ca)], servername: "localhost" } } : {};
    return new cassandra.Client({
      contactPoints: [`127.0.0.1:${portOf(this.server)}`],
      localDataCenter: "datacenter1",
      socketOptions: { readTimeout: 60_000 }, // a loaded machine takes its time
      authProvider: new cassandra.auth.PlainTextAuthProvider(user, key),
      ...tls,
      ...options,
    });
  }
  async open() {
    this.client = this.make();
    await this.client.connect();
    await this.client.execute(`CREATE KEYSPACE ${this.keyspace} WITH replication = ${replication}`);
  }
  close() {
    return this.client?.shutdown();
  }
  async table(definition, options = "") {
    const name = `${this.keyspace}.t${++names}`;
    await this.client.execute(`CREATE TABLE ${name} ${definition} ${options}`);
    return name;
  }
  run(cql, params, options = { prepare: Array.isArray(params) }) {
    return this.client.execute(cql, params, options);
  }
  // The rows as plain objects.
  async rows(cql, params, options) {
    const result = await this.run(cql, params, options);
    return result.rows.map((row) => Object.fromEntries(row.keys().map((key) => [key, row[key]])));
  }
  async with(options, use) {
    const client = this.make(options);
    try {
      return await use(client);
    } finally {
      await client.shutdown();
    }
  }

  // A failing test shows what the server has written to standard error.
  it(name, test) {
    it(name, async () => {
      const from = this.server.stderr.length;
      try {
        await test();
      } catch (error) {
        const said = this.server.stderr.slice(from).trimEnd();
        const gone = this.server.child.exitCode ?? this.server.child.signalCode;
        if (gone !== null) error.message += `\nThe server is gone (${gone}).`;
        if (said) error.message += `\nThe server said:\n${said}`;
        throw error;
      }
    });
  }
}

// The promise fails with this code of the protocol; the error is returned.
export async function fails(promise, code, text) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `the statement succeeded; 0x${code.toString(16)} was expected`);
  assert.equal(error.code, code, error.message);
  if (text) assert.match(error.message, text);
  return error;
}

export const codes = cassandra.types.responseErrorCodes;
