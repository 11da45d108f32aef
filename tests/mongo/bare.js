// bare.js — messages of MongoDB's wire protocol on bare connections, where a driver would hide something.
import assert from "node:assert/strict";
import net from "node:net";
import { Binary, BSON } from "mongodb";
import { emulatorKey } from "./harness.js";

export const CHECKSUM = 1, MORE_TO_COME = 2, EXHAUST_ALLOWED = 1 << 16;

function crc32c(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

export const bodySection = (command) => Buffer.concat([Buffer.from([0]), BSON.serialize(command)]);
export function sequence(name, documents) {
  const content = Buffer.concat([Buffer.from(`${name}\0`), ...documents.map((d) => BSON.serialize(d))]);
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeInt32LE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}

let ids = 0;
export function message(sections, flags = 0) {
  const bytes = Buffer.concat([Buffer.alloc(20), ...sections, Buffer.alloc(flags & CHECKSUM ? 4 : 0)]);
  bytes.writeInt32LE(bytes.length, 0);
  bytes.writeInt32LE(++ids, 4);
  bytes.writeInt32LE(2013, 12);
  bytes.writeUInt32LE(flags >>> 0, 16);
  if (flags & CHECKSUM) bytes.writeUInt32LE(crc32c(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}

export const plainPayload = (key) => new Binary(Buffer.from(`\0localhost\0${key}`));

// A connection; open() gives one that has authenticated. next() gives the next reply, or null if the server closes it.
export class Bare {
  static connect(port) {
    const bare = new Bare();
    bare.socket = net.connect(port, "127.0.0.1");
    bare.bytes = Buffer.alloc(0);
    bare.socket.on("data", (part) => (bare.bytes = Buffer.concat([bare.bytes, part])));
    bare.socket.on("error", () => {});
    bare.socket.on("close", () => (bare.closed = true));
    return bare;
  }
  static async open(port, key = emulatorKey) {
    const bare = Bare.connect(port);
    const reply = await bare.ask({ saslStart: 1, mechanism: "PLAIN", payload: plainPayload(key), $db: "$external" });
    assert.deepEqual([reply.ok, reply.done], [1, true], reply.errmsg);
    return bare;
  }
  send(bytes) {
    this.socket.write(bytes);
    return ids;
  }
  async next() {
    for (let waited = 0; waited < 10_000; waited += 5) {
      const n = this.bytes.length >= 4 ? this.bytes.readInt32LE(0) : Infinity;
      if (this.bytes.length >= n) {
        const whole = this.bytes.subarray(0, n);
        this.bytes = this.bytes.subarray(n);
        return { id: whole.readInt32LE(4), to: whole.readInt32LE(8), flags: whole.readUInt32LE(16), body: BSON.deserialize(whole.subarray(21)) };
      }
      if (this.closed) return null;
      await new Promise((done) => setTimeout(done, 5));
    }
    throw new Error("no reply for ten seconds");
  }
  async ask(command, flags) {
    this.send(message([bodySection(command)], flags));
    return (await this.next())?.body ?? null;
  }
}
