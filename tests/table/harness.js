// harness.js — what the suites share: a server of its own for each, reached over http and then over https, with the official SDK and with
// bare signed requests.
//
//   suite("tables", (t) => {
//     t.it("can be created", async () => {
//       await t.service.createTable(t.name());
//       …
//
// In a test, t has: service (TableServiceClient), client(name) (TableClient), rest (a bare client), base (path style), server, scheme.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { after, before, describe } from "node:test";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { itOn } from "../sdk/it.js";
import { emulatorKey, Server } from "../sdk/server.js";

export { assert, emulatorKey, Server };
export const account = "devstoreaccount1";

const schemesAsked = (process.env.TESELA_SCHEMES ?? "http https").split(" ");

// flags: further ones for the server; key: the one that clients sign with; schemes: one, where the tests take long.
export function suite(name, define, { flags = [], key = emulatorKey, schemes = schemesAsked } = {}) {
  describe(name, () => {
    const shared = {};
    before(async () => {
      shared.server = await Server.start({ flags });
      shared.certificate = await shared.server.certificate();
    });
    after(() => shared.server?.stop());
    for (const scheme of schemes) {
      describe(scheme, () => define(new Bench(shared, scheme, key)));
    }
  });
}

let names = 0;

class Bench {
  #shared;

  constructor(shared, scheme, key) {
    Object.assign(this, { scheme, key });
    this.#shared = shared;
  }

  get server() {
    return this.#shared.server;
  }
  get port() {
    return Number(this.server.ready.table.replace(/.*:/, ""));
  }
  // Path style on 127.0.0.1, as the emulator's connection string has it; host style on localhost.
  get base() {
    return `${this.scheme}://127.0.0.1:${this.port}/${account}`;
  }
  get hostBase() {
    return `${this.scheme}://localhost:${this.port}`;
  }
  get options() {
    return {
      allowInsecureConnection: true,
      retryOptions: { maxRetries: 0 },
      tlsOptions: { ca: this.#shared.certificate },
    };
  }
  get credential() {
    return new AzureNamedKeyCredential(account, this.key);
  }
  get service() {
    return new TableServiceClient(this.base, this.credential, this.options);
  }
  get rest() {
    return new Rest(this);
  }
  get certificate() {
    return this.#shared.certificate;
  }

  client(name, base = this.base) {
    return new TableClient(base, name, this.credential, this.options);
  }
  // A table of its own, as the SDK knows it.
  async table(base = this.base) {
    const client = this.client(this.name(), base);
    await client.createTable();
    return client;
  }
  // A name nobody else has.
  name(word = "table") {
    return `${word}${this.scheme}${++names}`;
  }

  it(name, test, options) {
    itOn(() => this.server, name, test, options);
  }
}

// ---- bare requests ----

// Sends requests as they are given and hides nothing of the answers. Paths are as in the URL, without the account.
export class Rest {
  constructor(bench) {
    this.bench = bench;
  }

  // kind: SharedKey, SharedKeyLite, or null for no signature. account, key, date, host: others than usual. pathStyle: the account in the path.
  async send(verb, path, options = {}) {
    const { headers = {}, body, kind = "SharedKeyLite", key = this.bench.key, name = account, date = new Date().toUTCString() } = options;
    const { pathStyle = true, host = "127.0.0.1" } = options;
    const whole = pathStyle ? `/${name}${path}` : path;
    const bytes = body === undefined ? undefined : Buffer.from(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    const all = { accept: "application/json;odata=fullmetadata", "x-ms-date": date };
    if (bytes) all["content-type"] = "application/json";
    for (const [field, value] of Object.entries(headers)) {
      if (value === null) delete all[field.toLowerCase()];
      else all[field.toLowerCase()] = value;
    }
    if (bytes) all["content-length"] = bytes.length;
    if (kind) all.authorization = `${kind} ${name}:${sign({ kind, verb, key, name, path: whole, headers: all })}`;
    const module = this.bench.scheme === "https" ? https : http;
    const target = { host, port: this.bench.port, method: verb, path: whole, headers: all, ca: this.bench.certificate, agent: false };
    return new Promise((done, fail) => {
      const request = module.request(target, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => done(answerOf(response, Buffer.concat(parts))));
        response.on("error", fail);
      });
      request.on("error", fail);
      request.end(bytes);
    });
  }
  get(path, options) {
    return this.send("GET", path, options);
  }
  post(path, body, options) {
    return this.send("POST", path, { body, ...options });
  }
  put(path, body, options) {
    return this.send("PUT", path, { body, ...options });
  }
}

function answerOf(response, bytes) {
  const text = bytes.toString("utf8");
  return { status: response.statusCode, headers: response.headers, text, get json() { return JSON.parse(text); } };
}

// What a client signs: docs of Storage, "Authorize with Shared Key".
export function sign({ kind, verb, key, name, path, headers }) {
  const url = new URL(path, "http://x");
  const comp = url.searchParams.get("comp");
  const resource = `/${name}${path.split("?")[0]}${comp === null ? "" : `?comp=${comp}`}`;
  const date = headers["x-ms-date"] ?? headers.date ?? "";
  const text = kind === "SharedKeyLite" ? `${date}\n${resource}` : [verb, headers["content-md5"] ?? "", headers["content-type"] ?? "", date, resource].join("\n");
  return createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
}

// ---- what is said of errors ----

// The SDK call fails with this status and code; the error is returned.
export async function fails(promise, status, code) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `the call succeeded; ${status} ${code} was expected`);
  assert.equal(error.statusCode, status, error.message);
  assert.equal(error.details?.odataError?.code ?? error.code, code, error.message);
  return error;
}

// The bare answer is an error in OData's form.
export function refused(answer, status, code, text) {
  assert.equal(answer.status, status, answer.text);
  const error = answer.json["odata.error"];
  assert.equal(error.code, code, answer.text);
  assert.equal(answer.headers["x-ms-error-code"], code);
  assert.equal(error.message.lang, "en-US");
  assert.ok(error.message.value.includes(`RequestId:${answer.headers["x-ms-request-id"]}`), answer.text);
  assert.ok(answer.headers["x-ms-version"], "a version");
  assert.ok(Number(answer.headers["x-ms-request-charge"]) >= 0, "a charge");
  if (text) assert.match(error.message.value, text);
}

export async function all(pages) {
  const list = [];
  for await (const each of pages) list.push(each);
  return list;
}
