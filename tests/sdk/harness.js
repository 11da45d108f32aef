// harness.js — shared by the suites: each runs against its own server, over http and then over https, with the official SDK.
//
//   suite("databases", (t) => {
//     t.it("can be created", async () => {
//       const { resource } = await t.client.databases.create({ id: t.name() });
//       …
//
// In a test, t has: client (the SDK), rest (a bare signing client), database and databasePath (the suite's database), scheme, server.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import https from "node:https";
import { CosmosClient } from "@azure/cosmos";
import { itOn } from "./it.js";
import { emulatorKey, Rest, Server } from "./server.js";
export { random } from "./random.js";

export { assert, emulatorKey };
export { Rest, Server, run, sign, signed } from "./server.js";

const quickRetries = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 1, maxWaitTimeInSeconds: 1 };

// TESELA_SCHEMES=http skips https (README.md says when).
const schemesAsked = (process.env.TESELA_SCHEMES ?? "http https").split(" ");

// Scales a number of repetitions: a quarter if TESELA_SANITIZED says that the server is slow.
export const rounds = (n) => (process.env.TESELA_SANITIZED ? Math.ceil(n / 4) : n);

// flags: additional flags for the server; key: the clients' signing key; concurrency: true for tests that mostly wait; schemes: only one if
// the tests take long.
export function suite(name, define, { flags = [], key = emulatorKey, concurrency = false, schemes = schemesAsked } = {}) {
  describe(name, () => {
    const shared = { server: undefined };
    before(async () => {
      shared.server = await Server.start({ flags });
      shared.certificate = await shared.server.certificate();
    });
    after(() => shared.server?.stop());
    for (const scheme of schemes) {
      describe(scheme, { concurrency }, () => {
        const t = new Bench(shared, scheme, key);
        before(() => t.open());
        after(() => t.close());
        define(t);
      });
    }
  });
}

class Bench {
  #names = 0;
  #shared;

  constructor(shared, scheme, key) {
    Object.assign(this, { scheme, key });
    this.#shared = shared;
  }

  get server() {
    return this.#shared.server;
  }
  get certificate() {
    return this.#shared.certificate;
  }

  async open() {
    this.agent = this.newAgent();
    this.client = this.newClient();
    this.rest = this.newRest();
    const made = await this.client.databases.create({ id: this.name("suite") });
    this.database = made.database;
    this.databasePath = `/dbs/${this.database.id}`;
  }

  close() {
    this.client?.dispose();
    this.rest?.close();
    this.agent?.destroy();
  }

  // Over https this agent trusts only the self-signed certificate; verification stays on. Over http the SDK uses its own agent.
  newAgent() {
    return this.scheme === "https" ? new https.Agent({ keepAlive: true, ca: this.certificate }) : undefined;
  }

  newClient(options = {}) {
    return new CosmosClient({
      endpoint: this.server.endpoint(this.scheme),
      key: this.key,
      agent: this.agent,
      connectionPolicy: { retryOptions: quickRetries, enableBackgroundEndpointRefreshing: false },
      ...options,
    });
  }

  newRest(options = {}) {
    return new Rest({ server: this.server, scheme: this.scheme, ca: this.certificate, key: this.key, ...options });
  }

  // A unique name.
  name(word = "x") {
    return `${word}-${this.scheme}-${++this.#names}`;
  }

  // Creates a container; returns the SDK's object.
  async container(body = {}, options) {
    const { container } = await this.database.containers.create({ id: this.name("c"), partitionKey: "/pk", ...body }, options);
    return container;
  }

  // The same for bare requests; returns the path.
  async containerPath(body = {}, options) {
    const { id } = await this.container(body, options);
    return `${this.databasePath}/colls/${id}`;
  }

  it(name, test, options) {
    itOn(() => this.server, name, test, options);
  }
}

// ---- errors ----

// Checks that an SDK call fails with this status, sub-status and text in its message; returns the error.
export async function fails(promise, code, { substatus, text } = {}) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `the call succeeded; ${code} was expected`);
  assert.equal(error.code, code, error.message);
  if (substatus !== undefined) assert.equal(error.substatus ?? 0, substatus, error.message);
  if (text !== undefined) matches(error.message, text);
  return error;
}

const words = { 400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict" };
Object.assign(words, { 410: "Gone", 412: "PreconditionFailed", 413: "RequestEntityTooLarge", 429: "TooManyRequests", 501: "NotImplemented" });

// Checks that a bare answer is an error in the service's form.
export function refused(answer, status, { substatus = 0, text } = {}) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.substatus, substatus, answer.text);
  assert.match(answer.headers["content-type"], /^application\/json/);
  assert.match(answer.headers["x-ms-activity-id"], guid);
  assert.ok(answer.charge >= 0, "a charge");
  assert.deepEqual(Object.keys(answer.json), ["code", "message"]);
  assert.equal(answer.json.code, words[status]);
  assert.ok(answer.message.includes(answer.headers["x-ms-activity-id"]), "the message names the activity");
  if (text !== undefined) matches(answer.message, text);
}

function matches(message, text) {
  if (text instanceof RegExp) assert.match(message, text);
  else assert.ok(message.includes(text), `${JSON.stringify(message)} does not say ${JSON.stringify(text)}`);
}

// ---- formats ----

export const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const etagForm = /^"[0-9a-f]{8}-0000-[0-9a-f]{4}-0000-[0-9a-f]{8}0000"$/;

// The bytes of a _rid: base64 in which '/' is written '-'.
export function ridBytes(rid) {
  const text = rid.replaceAll("-", "/");
  const bytes = Buffer.from(text, "base64");
  assert.equal(bytes.toString("base64"), text, `${rid} is canonical base64`);
  return bytes;
}

// The document number in an item's _rid, by which a range's items are ordered.
export function documentNumber(rid) {
  return ridBytes(rid).readBigUInt64LE(8);
}

// Checks that _etag contains _ts, and that _ts is now.
export function checkStamp(resource) {
  assert.match(resource._etag, etagForm);
  assert.equal(parseInt(resource._etag.slice(25, 33), 16), resource._ts);
  assert.ok(Math.abs(Date.now() / 1000 - resource._ts) < 60, `_ts ${resource._ts} is now`);
}

export function key(...components) {
  return { "x-ms-documentdb-partitionkey": JSON.stringify(components) };
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Polls until a condition holds; the time limit is generous because the machine may be busy.
export async function eventually(what, isSo, ms = 60_000) {
  const end = Date.now() + ms;
  while (!(await isSo())) {
    assert.ok(Date.now() < end, `${what}, within ${ms} ms`);
    await sleep(50);
  }
}

export function withoutSystem(resource) {
  return Object.fromEntries(Object.entries(resource).filter(([name]) => !name.startsWith("_")));
}
