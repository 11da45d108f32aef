// harness.js — what the suites share: a server of its own for each, reached plainly and then over TLS, with MongoDB's own driver.
//
//   suite("documents", (t) => {
//     t.it("come back as they were", async () => {
//       await t.collection().insertOne({ a: 1 });
//       …
//
// In a test, t has: client (MongoClient), db, collection() (a new one), server, uri(options), command(…) on the database.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { MongoClient } from "mongodb";
import { itOn } from "../sdk/it.js";
import { emulatorKey, Server } from "../sdk/server.js";

export { assert, emulatorKey, Server };

const waysAsked = (process.env.TESELA_WAYS ?? "plain tls").split(" ");

// flags: further ones for the server; ways: "plain", "tls".
export function suite(name, define, { flags = ["--throttling", "off"], ways = waysAsked, options = {} } = {}) {
  describe(name, () => {
    const shared = {};
    before(async () => {
      shared.server = await Server.start({ flags });
      shared.ca = join(shared.server.data, "tls-cert.pem");
    });
    after(() => shared.server?.stop());
    for (const way of ways) {
      describe(way, () => {
        const bench = new Bench(shared, way, options);
        before(() => bench.open());
        after(() => bench.close());
        define(bench);
      });
    }
  });
}

let names = 0;

class Bench {
  #shared;
  #options;

  constructor(shared, way, options) {
    this.way = way;
    this.#shared = shared;
    this.#options = options;
  }

  get server() {
    return this.#shared.server;
  }
  get port() {
    return Number(this.server.ready.mongo.replace(/.*:/, ""));
  }
  // The connection string; user and key as the emulator has them.
  uri({ user = "localhost", key = emulatorKey, host = "127.0.0.1", set = "replicaSet=globaldb" } = {}) {
    const who = user ? `${user}:${encodeURIComponent(key)}@` : "";
    return `mongodb://${who}${host}:${this.port}/?${set}`;
  }
  make(given = {}) {
    const { user, key, host, set, ...options } = given;
    const tls = this.way === "tls" ? { tls: true, tlsCAFile: this.#shared.ca } : {};
    return new MongoClient(this.uri({ user, key, host, set }), { serverSelectionTimeoutMS: 5000, ...tls, ...this.#options, ...options });
  }
  async open() {
    this.client = this.make();
    await this.client.connect();
    this.db = this.client.db(`db${process.pid}${this.way}`);
  }
  close() {
    return this.client?.close();
  }
  collection() {
    return this.db.collection(`c${++names}`);
  }
  command(command) {
    return this.db.command(command);
  }
  // Runs with a client of its own, for other options or users.
  async with(given, run) {
    const client = this.make(given);
    try {
      return await run(client.db(this.db.databaseName), client);
    } finally {
      await client.close();
    }
  }

  it(name, test, options) {
    itOn(() => this.server, name, test, options);
  }
}

// The promise fails with this code of MongoDB; the error is returned.
export async function fails(promise, code, text) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `the command succeeded; ${code} was expected`);
  assert.equal(error.code, code, error.message);
  if (text) assert.match(error.message, text);
  return error;
}
