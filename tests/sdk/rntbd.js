// rntbd.js — a small client of direct mode, for the tests: frames of typed tokens over TLS or plain TCP, many requests in flight.
//
//   const direct = await Direct.open({ server, ca });
//   const answer = await direct.send("Document", "Read", { database: "d", container: "c", document: "x", partitionKey: ["p"] });
//   answer.status, answer.json, answer.tokens.lsn, answer.tokens.sessionToken …
//
// Node.js's own modules only.

import { randomBytes } from "node:crypto";
import net from "node:net";
import tls from "node:tls";
import { emulatorKey, sign } from "./server.js";

export const resourceTypes = { Database: 0x1, Collection: 0x2, Document: 0x3, Attachment: 0x4, User: 0x5, Permission: 0x6, StoredProcedure: 0x7, Conflict: 0x8, Offer: 0xf, PartitionKeyRange: 0x16 };
export const operationTypes = { Create: 0x1, Patch: 0x2, Read: 0x3, ReadFeed: 0x4, Delete: 0x5, Replace: 0x6, ExecuteJavaScript: 0x8, Query: 0xf, Head: 0x11, HeadFeed: 0x12, Upsert: 0x13, Batch: 0x25 };
const verbs = { Create: "post", Patch: "patch", Read: "get", ReadFeed: "get", Delete: "delete", Replace: "put", ExecuteJavaScript: "post", Query: "post", Head: "head", HeadFeed: "head", Upsert: "post", Batch: "post" };
const isFeed = new Set(["Create", "ReadFeed", "Query", "HeadFeed", "Upsert", "Batch"]);

// ---- tokens ----

export const types = { byte: 0x00, u16: 0x01, u32: 0x02, i32: 0x03, u64: 0x04, i64: 0x05, guid: 0x06, text8: 0x07, text16: 0x08, text32: 0x09, bytes8: 0x0a, bytes16: 0x0b, bytes32: 0x0c, float: 0x0d, double: 0x0e };
const sizes = { 0x00: 1, 0x01: 2, 0x02: 4, 0x03: 4, 0x04: 8, 0x05: 8, 0x06: 16, 0x0d: 4, 0x0e: 8 };
const prefixes = { 0x07: 1, 0x08: 2, 0x09: 4, 0x0a: 1, 0x0b: 2, 0x0c: 4 };

function little(value, n) {
  const bytes = Buffer.alloc(n);
  if (n === 8) bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  else bytes.writeUIntLE(value < 0 ? value + 2 ** (8 * n) : value, 0, n);
  return bytes;
}

export function token(id, type, value) {
  const head = Buffer.concat([little(id, 2), little(types[type], 1)]);
  const prefix = prefixes[types[type]];
  if (!prefix) return Buffer.concat([head, Buffer.isBuffer(value) ? value : little(value, sizes[types[type]])]);
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value, "utf8");
  return Buffer.concat([head, little(bytes.length, prefix), bytes]);
}

// Options of a request and the tokens that they are.
const requestTokens = {
  rid: [0x00, "bytes16"], authorization: [0x01, "text16"], payloadPresent: [0x02, "byte"], date: [0x03, "text8"], pageSize: [0x04, "u32"],
  session: [0x05, "text16"], continuation: [0x06, "text16"], match: [0x08, "text16"], preTrigger: [0x09, "text16"], consistency: [0x10, "byte"],
  replicaPath: [0x13, "text16"], database: [0x15, "text16"], container: [0x16, "text16"], document: [0x17, "text16"], user: [0x19, "text16"],
  procedure: [0x1b, "text16"], rangeId: [0x2c, "text16"], collectionRid: [0x35, "text16"], logging: [0x3e, "byte"], aIm: [0x3f, "text16"],
  queryMetrics: [0x42, "byte"], modifiedSince: [0x47, "text16"], targetLsn: [0x4b, "i64"], id: [0x4d, "u32"], startEpk: [0x62, "bytes16"],
  endEpk: [0x63, "bytes16"], feedKey: [0x64, "byte"], batchAtomic: [0x73, "byte"], batchContinue: [0x74, "byte"], preference: [0x82, "byte"],
  priority: [0xbf, "byte"],
};

// The tokens of answers by name. An id that is here must come with this type: Java decodes by the type that it knows.
const answerTokens = {
  0x00: ["payloadPresent", "byte"], 0x03: ["continuation", "text16"], 0x04: ["etag", "text16"], 0x0c: ["retryAfterMs", "u32"],
  0x0e: ["quota", "text16"], 0x0f: ["usage", "text16"], 0x10: ["schemaVersion", "text8"], 0x13: ["lsn", "i64"], 0x14: ["itemCount", "u32"],
  0x15: ["charge", "double"], 0x17: ["ownerFullName", "text16"], 0x18: ["ownerId", "text16"], 0x1a: ["quorumAckedLsn", "i64"],
  0x1c: ["substatus", "u32"], 0x1d: ["indexProgress", "u32"], 0x1e: ["writeQuorum", "u32"], 0x1f: ["replicaSetSize", "u32"],
  0x21: ["rangeId", "text16"], 0x25: ["log", "text16"], 0x26: ["xpRole", "u32"], 0x28: ["queryMetrics", "text16"],
  0x29: ["globalCommittedLsn", "i64"], 0x30: ["readRegions", "u32"], 0x32: ["itemLsn", "i64"], 0x35: ["id", "u32"], 0x3a: ["localLsn", "i64"],
  0x3b: ["quorumAckedLocalLsn", "i64"], 0x3c: ["itemLocalLsn", "i64"], 0x3e: ["session", "text16"], 0x44: ["indexUtilization", "text16"],
  0x45: ["queryExecutionInfo", "text16"], 0x51: ["durationMs", "double"],
};
export const contextTokens = { 0x00: ["protocolVersion", "u32"], 0x01: ["clientVersion", "text8"], 0x02: ["serverAgent", "text8"], 0x03: ["serverVersion", "text8"], 0x04: ["idleSeconds", "u32"], 0x05: ["unauthenticatedSeconds", "u32"] };

function valueOf(type, bytes) {
  if (type === types.double) return bytes.readDoubleLE();
  if (type === types.i64) return Number(bytes.readBigInt64LE());
  if (type <= types.i32) return bytes.readUIntLE(0, bytes.length);
  return bytes.toString("utf8");
}

export function readTokens(bytes, names = answerTokens) {
  const tokens = {};
  for (let at = 0; at < bytes.length; ) {
    const id = bytes.readUInt16LE(at);
    const type = bytes[at + 2];
    at += 3;
    let n = sizes[type];
    if (n === undefined) {
      if (!prefixes[type]) throw new Error(`token ${id.toString(16)} has the type ${type}`);
      n = bytes.readUIntLE(at, prefixes[type]);
      at += prefixes[type];
    }
    if (at + n > bytes.length) throw new Error(`token ${id.toString(16)} ends after its frame`);
    if (!names[id]) throw new Error(`token ${id.toString(16)} is not known`);
    const [name, wanted] = names[id];
    if (types[wanted] !== type) throw new Error(`token ${name} has the type ${type}, not ${wanted}`);
    if (name in tokens) throw new Error(`token ${name} comes twice`);
    tokens[name] = valueOf(type, bytes.subarray(at, at + n));
    at += n;
  }
  return tokens;
}

// ---- frames ----

// length: one that is wrong on purpose.
export function frame(resource, operation, tokens, { payload, activity = randomBytes(16), length } = {}) {
  const all = Buffer.concat(tokens);
  const head = Buffer.concat([little(length ?? 24 + all.length, 4), little(resource, 2), little(operation, 2), activity]);
  return Buffer.concat([head, all, ...(payload ? [little(payload.length, 4), payload] : [])]);
}

export const contextFrame = (tokens = [token(0, "u32", 1), token(1, "text8", "2020-07-15"), token(2, "text8", "tests")]) => frame(0, 0, tokens);

const ridBytes = (rid) => Buffer.from(rid.replaceAll("-", "/"), "base64");

// What is signed: type and link, as REST signs them.
const words = { Database: "dbs", Collection: "colls", Document: "docs", User: "users", StoredProcedure: "sprocs", Conflict: "conflicts", PartitionKeyRange: "pkranges" };
function linkOf(resource, operation, o) {
  const levels = [["dbs", o.database], ["colls", o.container], ["users", o.user], ["docs", o.document], ["sprocs", o.procedure]].filter(([, name]) => name !== undefined);
  if (o.byRid) return o.byRid.toLowerCase();
  const own = isFeed.has(operation) ? levels.filter(([word]) => word !== words[resource]) : levels;
  return own.map(([word, name]) => `${word}/${name}`).join("/");
}

function activityText(bytes) {
  const hex = (from, to, step) => [...bytes.subarray(from, to)][step < 0 ? "reverse" : "slice"]().map((b) => b.toString(16).padStart(2, "0")).join("");
  return [hex(0, 4, -1), hex(4, 6, -1), hex(6, 8, -1), hex(8, 10, 1), hex(10, 16, 1)].join("-");
}

class Answer {
  constructor(status, activity, tokens, payload) {
    Object.assign(this, { status, activity: activityText(activity), tokens, payload });
  }
  get text() {
    return this.payload.toString("utf8");
  }
  get json() {
    return JSON.parse(this.text);
  }
  get substatus() {
    return this.tokens.substatus ?? 0;
  }
}

// A bare connection: bytes go out as they are given, frames come in.
export class Wire {
  #input = Buffer.alloc(0);
  #waiting = [];
  #frames = [];

  static async open({ port, ca, host = "localhost" }) {
    const wire = new Wire();
    wire.names = contextTokens;
    wire.socket = ca ? tls.connect({ host, port, ca, servername: host }) : net.connect({ host, port });
    wire.ended = new Promise((done) => wire.socket.on("close", done));
    wire.socket.on("error", () => {});
    wire.socket.on("data", (bytes) => wire.#take(bytes));
    wire.ended.then(() => wire.#waiting.splice(0).forEach(({ fail }) => fail(new Error("the connection has closed"))));
    await new Promise((done, fail) => wire.socket.once(ca ? "secureConnect" : "connect", done).once("error", fail));
    return wire;
  }

  #take(bytes) {
    this.#input = Buffer.concat([this.#input, bytes]);
    for (let next; (next = this.#cut()); ) {
      const first = this.#waiting.shift();
      if (this.received) this.received(next);
      else if (first) first.done(next);
      else this.#frames.push(next);
    }
  }

  // A whole frame off the input, if there is one. Errors of the context have a payload without a token that says so.
  #cut() {
    const input = this.#input;
    if (input.length < 24 || input.length < input.readUInt32LE(0)) return undefined;
    const length = input.readUInt32LE(0);
    const status = input.readUInt32LE(4);
    const tokens = readTokens(input.subarray(24, length), this.names);
    const has = this.names === contextTokens ? status >= 400 : tokens.payloadPresent === 1;
    if (has && (input.length < length + 4 || input.length < length + 4 + input.readUInt32LE(length))) return undefined;
    const end = has ? length + 4 + input.readUInt32LE(length) : length;
    this.#input = input.subarray(end);
    return new Answer(status, input.subarray(8, 24), tokens, input.subarray(has ? length + 4 : end, end));
  }

  write(bytes) {
    this.socket.write(bytes);
  }

  // The next frame; rejected if the connection closes first.
  next() {
    if (this.#frames.length) return Promise.resolve(this.#frames.shift());
    return new Promise((done, fail) => (this.socket.destroyed ? fail(new Error("the connection has closed")) : this.#waiting.push({ done, fail })));
  }

  async negotiate() {
    this.write(contextFrame());
    const answer = await this.next();
    this.names = answerTokens;
    return answer;
  }

  close() {
    this.socket.destroy();
  }
}

export class Direct {
  #pending = new Map();
  #ids = 0;

  static async open({ server, ca, key = emulatorKey, host = "localhost" }) {
    const direct = new Direct();
    direct.key = key;
    direct.wire = await Wire.open({ port: Number(server.ready.direct.replace(/.*:/, "")), ca, host });
    direct.context = await direct.wire.negotiate();
    direct.wire.received = (answer) => {
      const done = direct.#pending.get(answer.tokens.id);
      direct.#pending.delete(answer.tokens.id);
      if (!done) throw new Error(`an answer to ${answer.tokens.id}, which is not in flight`);
      done.done(answer);
    };
    direct.wire.ended.then(() => direct.#pending.forEach(({ fail }) => fail(new Error("the connection has closed"))));
    return direct;
  }

  // The bytes of a request, signed.
  make(resource, operation, { body, partitionKey, signs = true, byRid, tokens = [], ...options } = {}) {
    const id = options.id ?? ++this.#ids;
    const payload = body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const date = new Date().toUTCString();
    const all = { payloadPresent: payload ? 1 : 0, date, replicaPath: "/apps/tesela/services/x/partitions/0/replicas/1p", ...options, id };
    if (byRid) all.rid = ridBytes(byRid);
    if (signs && all.authorization === undefined) all.authorization = sign(this.key, verbs[operation], words[resource], linkOf(resource, operation, { ...options, byRid }), date);
    const list = Object.entries(all).filter(([, value]) => value !== undefined).map(([name, value]) => token(...requestTokens[name], value));
    if (partitionKey) list.push(token(0x2b, "text16", JSON.stringify(partitionKey)));
    return { id, bytes: frame(resourceTypes[resource], operationTypes[operation], [...list, ...tokens], { payload }) };
  }

  send(resource, operation, options) {
    const { id, bytes } = this.make(resource, operation, options);
    if (this.wire.socket.destroyed) throw new Error("the connection has closed");
    const answer = new Promise((done, fail) => this.#pending.set(id, { done, fail }));
    this.wire.write(bytes);
    return answer;
  }

  close() {
    this.wire.close();
  }
}
