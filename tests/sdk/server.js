// server.js — starts a tesela server on a free port with a fresh data folder, and ends it by its process id; and a bare REST client that
// signs requests. Uses only Node.js's own modules, since tests/cases uses this file too.

import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import tls from "node:tls";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

// The binary under test: TESELA_BIN, or the result of ./dev build.
export const binary = resolve(process.env.TESELA_BIN || join(root, "build/tesela"));

// The emulator's well-known key, which is the server's default on loopback.
export const emulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

// When this process ends, its servers are ended too.
const running = new Set();
process.on("exit", () => running.forEach((server) => server.abandon()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

// A child's environment without TESELA_ settings of the user's shell.
function cleanEnvironment(extra) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("TESELA_"));
  return { ...Object.fromEntries(kept), ...extra };
}

// Runs the program to its end, or kills it after a minute; returns { code, stdout, stderr }.
export async function run(args, { env = {} } = {}) {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"], env: cleanEnvironment(env), timeout: 60_000 });
  const text = { stdout: "", stderr: "" };
  child.stdout.on("data", (bytes) => (text.stdout += bytes));
  child.stderr.on("data", (bytes) => (text.stderr += bytes));
  const code = await new Promise((done, fail) => child.on("error", fail).on("close", done));
  return { code, ...text };
}

export class Server {
  #ended;

  // flags: additional flags for `tesela serve`; data: a folder to use (and keep) instead of a fresh one; under: a command that runs the
  // server, such as prlimit.
  static async start({ flags = [], data, env, under = [] } = {}) {
    const server = new Server();
    server.keeps = data !== undefined;
    server.data = data ?? mkdtempSync(join(tmpdir(), "tesela-test-"));
    server.stderr = "";
    const started = performance.now();
    const command = [...under, binary, "serve", "--data", server.data, "--sql-port", "0", "--throttling", "off", ...flags];
    server.child = spawn(command[0], command.slice(1), {
      stdio: ["ignore", "pipe", "pipe"],
      env: cleanEnvironment(env),
    });
    running.add(server);
    server.child.stderr.on("data", (text) => (server.stderr += text));
    server.#ended = new Promise((done, fail) => {
      server.child.on("error", fail);
      server.child.on("close", (code, signal) => {
        running.delete(server);
        done({ code, signal });
      });
    });
    server.ready = await Promise.race([server.#readyLine(), server.#earlyEnd()]);
    // From now on, a server that a failed test has left does not keep this process from its end.
    for (const handle of [server.child, server.child.stdout, server.child.stderr]) handle.unref();
    server.startMs = performance.now() - started;
    server.port = Number(server.ready.sql.replace(/.*:/, ""));
    return server;
  }

  // Resolves to { code, signal }. Who asks for it waits: the process does not end before.
  get ended() {
    this.child.ref();
    return this.#ended;
  }

  // The server prints one line of JSON on standard output when it listens.
  #readyLine() {
    return new Promise((done) => {
      let text = "";
      this.child.stdout.on("data", (bytes) => {
        text += bytes;
        if (text.includes("\n")) done(JSON.parse(text.split("\n", 1)[0]));
      });
    });
  }

  async #earlyEnd() {
    const { code, signal } = await this.ended;
    throw new Error(`${binary} ended (${signal ?? code}) before it was ready:\n${this.stderr}`);
  }

  endpoint(scheme, host = "localhost") {
    return `${scheme}://${host}:${this.port}`;
  }

  // The self-signed certificate, which https clients must trust.
  async certificate() {
    const answer = await new Rest({ server: this }).send("GET", "/_explorer/emulator.pem", { sign: false });
    return answer.text;
  }

  // Asks the server to stop; throws if it does not, or if its exit code is not 0 (for example after a sanitizer's report).
  async stop() {
    this.child.kill("SIGTERM");
    const late = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    const { code, signal } = await this.ended;
    clearTimeout(late);
    if (!this.keeps) rmSync(this.data, { recursive: true, force: true });
    if (code !== 0) throw new Error(`the server ended with ${signal ?? code}; its standard error:\n${this.tail()}`);
  }

  abandon() {
    this.child.kill("SIGKILL");
    if (!this.keeps) rmSync(this.data, { recursive: true, force: true });
  }

  tail(lines = 40) {
    return this.stderr.trimEnd().split("\n").slice(-lines).join("\n");
  }
}

// ---- signing ----

// The master key's signature of verb, resource type, link and date; `date` is the x-ms-date field.
export function sign(key, verb, type, link, date) {
  const text = `${verb.toLowerCase()}\n${type.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
  return encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
}

// The resource type and link that a client signs for a path. With `byRid` the link is only the last rid, in lower case.
export function signed(path, byRid = false) {
  const isItem = /\/docs\/[^/]*\?/.test(path); // its id has a '?'
  const whole = (isItem ? path : path.split("?")[0]).replace(/\/operations\/partitionkeydelete$/, "");
  const segments = whole.split("/").filter((segment) => segment !== "").map((segment, i) => (i % 2 ? decodeSegment(segment) : segment.toLowerCase()));
  const isFeed = segments.length % 2 === 1;
  const type = segments.length === 0 ? "" : segments[segments.length - (isFeed ? 1 : 2)];
  const names = isFeed ? segments.slice(0, -1) : segments;
  const link = byRid || (type === "offers" && !isFeed) ? (names[names.length - 1] ?? "").toLowerCase() : names.join("/");
  return { type, link };
}

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // an intentionally wrong path
  }
}

// ---- a bare client ----

// Node.js's own check, except that Debian's Node.js 18 does not find ::1 among a certificate's addresses.
function checkServerIdentity(host, certificate) {
  const old = process.versions.node.startsWith("18.");
  if (old && host === "::1" && certificate.subjectaltname.includes("IP Address:0:0:0:0:0:0:0:1")) return undefined;
  return tls.checkServerIdentity(host, certificate);
}

export class Rest {
  constructor({ server, scheme = "http", ca, key = emulatorKey, version = "2020-07-15", host = "localhost" }) {
    Object.assign(this, { server, scheme, ca, key, version, host });
    const agent = { keepAlive: true, maxSockets: 32 };
    this.agent = scheme === "https" ? new https.Agent({ ...agent, ca, checkServerIdentity }) : new http.Agent(agent);
  }

  close() {
    this.agent.destroy();
  }

  // headers: a null value removes the default. body: text or bytes are sent as they are, anything else as JSON.
  // sign: false sends no authorization. byRid: signs as for a path of _rids.
  async send(verb, path, options = {}) {
    const body = encodeBody(options.body);
    const headers = this.#headers(verb, path, options, body);
    const { response, bytes } = await this.#exchange(verb, path, headers, body);
    return new Answer(response, bytes);
  }

  #headers(verb, path, { headers = {}, sign: signs = true, byRid = false, key = this.key, date = new Date() }, body) {
    const all = { "x-ms-version": this.version, "x-ms-date": typeof date === "string" ? date : date.toUTCString() };
    if (body) all["content-type"] = "application/json";
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) delete all[name.toLowerCase()];
      else all[name.toLowerCase()] = value;
    }
    if (body && !("transfer-encoding" in all)) all["content-length"] = body.length;
    if (signs && !("authorization" in all)) {
      const { type, link } = signed(path, byRid);
      all.authorization = sign(key, verb, type, link, all["x-ms-date"] ?? "");
    }
    return all;
  }

  #exchange(verb, path, headers, body) {
    const module = this.scheme === "https" ? https : http;
    const target = { host: this.host, port: this.server.port, method: verb, path, headers, agent: this.agent };
    if (!isIP(this.host)) target.servername = this.host; // whatever the Host field says
    return new Promise((done, fail) => {
      const request = module.request(target, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => done({ response, bytes: Buffer.concat(parts) }));
        response.on("error", fail);
      });
      request.on("error", fail);
      request.end(body);
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
  patch(path, body, options) {
    return this.send("PATCH", path, { body, ...options });
  }
  delete(path, options) {
    return this.send("DELETE", path, options);
  }
}

function encodeBody(body) {
  if (body === undefined || Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body), "utf8");
}

class Answer {
  constructor(response, bytes) {
    this.status = response.statusCode;
    this.headers = response.headers;
    this.bytes = bytes;
  }
  get text() {
    return this.bytes.toString("utf8");
  }
  get json() {
    return JSON.parse(this.text);
  }
  get substatus() {
    return Number(this.headers["x-ms-substatus"] ?? 0);
  }
  get charge() {
    return Number(this.headers["x-ms-request-charge"]);
  }
  get message() {
    return this.json.message;
  }
}
