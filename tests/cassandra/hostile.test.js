// hostile.test.js — statements and messages that are meant to harm: each is refused, and the server goes on.

import { createConnection } from "node:net";
import { assert, codes, fails, portOf, suite } from "./harness.js";

const crcTable = Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});

// native_protocol_v5.spec, section 2: the payload's CRC begins with four fixed bytes.
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of Buffer.concat([Buffer.from([0xfa, 0x2d, 0x55, 0xca]), bytes])) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 255];
  return (crc ^ 0xffffffff) >>> 0;
}

function crc24(value, bytes) {
  let crc = 0x875060;
  for (let i = 0; i < bytes; i++) {
    crc ^= ((value >>> (8 * i)) & 255) << 16;
    for (let k = 0; k < 8; k++) {
      crc <<= 1;
      if (crc & 0x1000000) crc ^= 0x1974f0b;
    }
  }
  return crc & 0xffffff;
}

// A segment that holds a part of a message.
function segment(payload) {
  const head = Buffer.alloc(6), tail = Buffer.alloc(4);
  head.writeUIntLE(payload.length, 0, 3);
  head.writeUIntLE(crc24(payload.length, 3), 3, 3);
  tail.writeUInt32LE(crc32(payload));
  return Buffer.concat([head, payload, tail]);
}

suite("hostile clients", (t) => {
  const invalid = (cql, params) => fails(t.run(cql, params), codes.invalid);
  const serves = async () => assert.equal((await t.rows("SELECT key FROM system.local"))[0].key, "local");

  t.it("cannot ask for rows beyond keys that are longer than keys may be", async () => {
    const table = await t.table("(p int, c text, d text, PRIMARY KEY (p, c, d))");
    const long = "x".repeat(20000);
    await t.run(`INSERT INTO ${table} (p, c, d) VALUES (1, 'a', 'b')`);
    for (const where of ["c > ?", "c < ?", "c = ?", "c >= 'a' AND c < ?"]) {
      await invalid(`SELECT * FROM ${table} WHERE p = 1 AND ${where}`, [long]);
      await invalid(`DELETE FROM ${table} WHERE p = 1 AND ${where}`, [long]);
    }
    assert.equal((await t.rows(`SELECT * FROM ${table}`)).length, 1);
  });

  t.it("cannot do harm with forged paging states", async () => {
    const table = await t.table("(p int, c int, s int static, v text, PRIMARY KEY (p, c))");
    for (let i = 0; i < 30; i++) await t.run(`INSERT INTO ${table} (p, c, s, v) VALUES (?, ?, 1, ?)`, [i % 5, i, `v${i}`]);
    for (const where of ["", "WHERE p = 1", "WHERE p IN (1, 2)", "WHERE COSMOS_CHANGEFEED_START_TIME() = '1970-01-01'", "WHERE COSMOS_CHANGEFEED_START_TIME() = '1970-01-01' AND p = 1"]) {
      const ask = (pageState) => t.client.execute(`SELECT * FROM ${table} ${where}`, [], { fetchSize: 3, pageState });
      const state = Buffer.from((await ask()).pageState, "hex");
      for (let i = 0; i < state.length; i++) {
        const forged = Buffer.from(state);
        forged[i] ^= [1, 0x80, 0xff][i % 3];
        await ask(forged.toString("hex")).catch((error) => assert.equal(error.code, codes.protocolError, error.message));
      }
    }
    await serves();
  });

  t.it("cannot select terms that have no type", async () => {
    for (const term of ["-null", "-?", "? + ?", "? * null", "cast(? AS int)", "toJson(?)", "count(?)", "max(null)"]) {
      await assert.rejects(t.run(`SELECT ${term} FROM system.local`, Array(term.split("?").length - 1).fill(1)), term);
    }
    await serves();
  });

  t.it("cannot name a column twice in a key", async () => {
    const many = Array.from({ length: 98 }, (_, i) => `c${i} int`).join(", ");
    await invalid(`CREATE TABLE ${t.keyspace}.twice (a int, b int, ${many}, PRIMARY KEY (a, ${Array(16).fill("b").join(", ")}))`);
    await invalid(`CREATE TABLE ${t.keyspace}.twice (a int, b int, ${many}, PRIMARY KEY ((${Array(8).fill("a").join(", ")}), b))`);
  });

  t.it("cannot make tables and types of too many columns", async () => {
    const columns = Array.from({ length: 20000 }, (_, i) => `c${i} int`).join(", ");
    await invalid(`CREATE TABLE ${t.keyspace}.wide (a int PRIMARY KEY, ${columns})`);
    await invalid(`CREATE TYPE ${t.keyspace}.wide (${columns})`);
  });

  t.it("cannot give options that are no texts", async () => {
    for (const value of ["{[1]: 'x'}", "{(1, 2): 'x'}", "{'x': [1]}", "{'x': {'y': 1}}", "[1]"]) {
      await assert.rejects(t.run(`CREATE TABLE ${t.keyspace}.options (a int PRIMARY KEY) WITH compaction = ${value}`), value);
    }
    await serves();
  });

  t.it("cannot bind thousands of names to thousands of markers", async () => {
    const names = Array.from({ length: 2000 }, (_, i) => `n${i}`);
    const table = await t.table("(id int PRIMARY KEY)");
    const values = Object.fromEntries(names.map((name) => [name, 1]));
    await fails(t.client.execute(`SELECT * FROM ${table} WHERE id IN (${names.map((name) => `:${name}`).join(", ")})`, values, { hints: Object.fromEntries(names.map((name) => [name, "int"])) }), codes.invalid);
  });

  t.it("cannot keep megabytes in parts of a message before they have logged in", async () => {
    if (t.way === "tls") return; // the same code behind the same bytes
    const socket = createConnection(portOf(t.server), "127.0.0.1");
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("error", () => {});
    const answer = new Promise((resolve) => socket.once("data", resolve));
    const body = Buffer.concat([Buffer.from([0, 1, 0, 11]), Buffer.from("CQL_VERSION"), Buffer.from([0, 5]), Buffer.from("3.0.0")]);
    socket.write(Buffer.concat([Buffer.from([5, 0, 0, 1, 1]), Buffer.from([0, 0, 0, body.length]), body]));
    assert.equal((await answer)[4], 0x03, "AUTHENTICATE");
    const head = Buffer.from([5, 0, 0, 2, 7, 0, 0xf0, 0, 0]); // QUERY of 15 MB
    let sent = 0, ended = false;
    closed.then(() => (ended = true));
    for (let part = Buffer.concat([head, Buffer.alloc(60000)]); sent < 2_000_000 && !ended; part = Buffer.alloc(60000)) {
      socket.write(segment(part));
      sent += part.length;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.ok(ended, "the connection was closed");
    assert.ok(sent < 1_000_000, `after ${sent} bytes`);
    await serves();
  });
});
