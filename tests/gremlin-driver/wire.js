// wire.js — bare messages over WebSockets, where a driver would hide something.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import WebSocket from "ws";
import { emulatorKey, mimes } from "./harness.js";

// A bare WebSocket client that collects responses.
export class Wire {
  static async open(t, path = "/") {
    const wire = new Wire();
    wire.socket = new WebSocket(t.url(path), { rejectUnauthorized: false });
    wire.responses = [];
    wire.waiting = [];
    wire.socket.on("message", (bytes) => {
      const response = bytes[0] === 0x81 ? { status: { code: 498 } } : JSON.parse(bytes.toString()); // GraphBinary: a refusal
      wire.responses.push(response);
      wire.waiting.splice(0).forEach((wake) => wake());
    });
    wire.closed = new Promise((done) => wire.socket.on("close", (code) => done(code)));
    wire.socket.on("error", () => {});
    await new Promise((done, fail) => wire.socket.on("open", done).on("error", fail));
    return wire;
  }
  send(request, { mime = mimes.v1, text = false } = {}) {
    const json = typeof request === "string" ? request : JSON.stringify(request);
    this.socket.send(text ? json : Buffer.concat([Buffer.from([mime.length]), Buffer.from(mime), Buffer.from(json)]));
  }
  eval(gremlin, args = {}, options) {
    const requestId = randomUUID();
    this.send({ requestId, op: "eval", processor: "", args: { gremlin, language: "gremlin-groovy", ...args } }, options);
    return requestId;
  }
  authenticate(requestId, user, key = emulatorKey) {
    const sasl = Buffer.from(`\0${user}\0${key}`).toString("base64");
    this.send({ requestId, op: "authentication", processor: "", args: { sasl, saslMechanism: "PLAIN" } });
  }
  async until(test) {
    while (!test(this.responses)) await new Promise((done) => this.waiting.push(done));
  }
  // The next responses with this id until one that is not 206.
  async answers(requestId) {
    const mine = () => this.responses.filter((r) => r.requestId === requestId && r.status.code !== 407);
    await this.until(() => mine().some((r) => r.status.code !== 206));
    return mine();
  }
  async one(gremlin, args, options) {
    const answers = await this.answers(this.eval(gremlin, args, options));
    return answers.at(-1);
  }
  close() {
    this.socket.close();
    return this.closed;
  }
}

export async function authenticated(t, graph) {
  const wire = await Wire.open(t);
  wire.authenticate(randomUUID(), `/dbs/graphs/colls/${graph.id}`);
  await wire.until((all) => all.length === 1);
  assert.equal(wire.responses[0].status.code, 204);
  return wire;
}
