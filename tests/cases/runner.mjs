// runner.mjs — reads case files, sends their requests as bytes, compares the answers. Node.js's own modules only.

import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { emulatorKey, Server } from "../sdk/server.js";
import { account, apis } from "./apis.mjs";

const folder = dirname(fileURLToPath(import.meta.url));

// ---- reading ----

// A file: { api, given: [[kind, …]], cases: [{ title, line, request: { verb, path, lines, body }, expected: { status, substatus, lines, body } }] }.
export function parse(text, file) {
  const lines = text.split("\n");
  const found = { api: "sql", given: [], cases: [] };
  let at = 0;
  const fail = (why) => {
    throw new Error(`${file}:${at + 1}: ${why}: ${lines[at]}`);
  };
  const isMark = () => at >= lines.length || /^(===|---)( |$)/.test(lines[at]);
  // Lines up to a blank one or a mark; comments are left out.
  const head = () => {
    const taken = [];
    for (; !isMark() && lines[at] !== ""; at++) if (!lines[at].startsWith("#")) taken.push(lines[at]);
    return taken;
  };
  // What follows the blank line, up to the mark.
  const body = () => {
    const from = ++at;
    while (!isMark()) at++;
    return lines.slice(from, at).join("\n").trim();
  };
  const next = () => {
    const title = lines[at].slice(4);
    const line = ++at;
    const [start, ...fields] = head();
    const [, verb, path] = /^(\S+) (\S.*)$/.exec(start ?? "") ?? fail("a request line, like GET /dbs, was expected");
    const request = { verb, path, fields, body: body() };
    if (!/^--- \d{3}(\/\d+)?$/.test(lines[at] ?? "")) fail("a line like --- 404 or --- 400/1001 was expected");
    const [status, substatus = 0] = lines[at++].slice(4).split("/").map(Number);
    const expected = { status, substatus, checks: head(), body: body() };
    found.cases.push({ title, line, request, expected });
  };
  for (; at < lines.length && !lines[at].startsWith("==="); at++) {
    const given = /^given (container|item|table|entity) (\S+) ?(.*)$/.exec(lines[at]);
    const api = /^api (\w+)$/.exec(lines[at]);
    if (given) found.given.push(given.slice(1));
    else if (api) found.api = api[1] in apis ? api[1] : fail("no such API");
    else if (lines[at] !== "" && !lines[at].startsWith("#")) fail("a comment, a given line or === was expected");
  }
  while (at < lines.length) next();
  return found;
}

// ---- words in the text ----

// ${name} is a value known or kept; ${x * 100} repeats a text; ${hex FF 00} is bytes. The result is bytes.
export function expand(text, values) {
  const parts = text.split(/\$\{([^}]*)\}/).map((part, i) => (i % 2 ? word(part, values) : Buffer.from(part)));
  return Buffer.concat(parts);
}

function word(text, values) {
  const repeated = /^(.*) \* (\d+)$/s.exec(text);
  if (repeated) return Buffer.from(repeated[1].repeat(Number(repeated[2])));
  if (text.startsWith("hex ")) return Buffer.from(text.slice(4).replaceAll(" ", ""), "hex");
  if (!(text in values)) throw new Error(`nothing was kept as \${${text}}`);
  return Buffer.from(values[text]);
}

// ---- sending ----

function instructionsOf(request) {
  const found = {};
  for (const line of request.fields) {
    const [, instruction, argument] = /^@(\w+) ?(.*)$/.exec(line) ?? [];
    if (instruction === "date") found.minutes = Number(argument);
    else if (instruction === "rid") found.byRid = true;
    else if (instruction === "crlf") found.crlf = true;
    else if (["key", "kind", "name", "path"].includes(instruction)) found[instruction] = argument;
    else if (instruction) throw new Error(`no such instruction: ${line}`);
  }
  return found;
}

// @instructions are for the signature and the body; `no NAME` leaves a default out; the rest are header fields.
function head(api, request, path, body, values, port) {
  const fields = new Map([["host", ["Host", `localhost:${port}`]], ["connection", ["Connection", "close"]]]);
  const put = (name, value) => fields.set(name.toLowerCase(), [name, value]);
  const signing = { verb: request.verb, path, fields, ...instructionsOf(request) };
  put("x-ms-version", api.version);
  for (const [name, value] of api.fields) put(name, value);
  if (body.length) put("Content-Type", api.contentType);
  if (body.length || ["POST", "PUT", "PATCH"].includes(request.verb)) put("Content-Length", String(body.length));
  const left = new Set();
  for (const line of request.fields) {
    const [, omitted] = /^no (\S+)$/.exec(line) ?? [];
    const [, name, value] = /^([^:\s]+): ?(.*)$/.exec(line) ?? [];
    if (line.startsWith("@")) continue;
    if (omitted) left.add(omitted.toLowerCase());
    else if (name) put(name, expand(value, values).toString("latin1"));
    else throw new Error(`no header field, @instruction or "no NAME": ${line}`);
  }
  if (!fields.has("x-ms-date")) put("x-ms-date", values.date);
  if (!fields.has("authorization")) put("authorization", api.authorization({ ...signing, date: left.has("x-ms-date") ? "" : fields.get("x-ms-date")[1] }));
  const kept = [...fields].filter(([name]) => !left.has(name)).map(([, [name, value]]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${request.verb} ${path} HTTP/1.1\r\n${kept.join("")}\r\n`, "latin1");
}

function exchange(port, bytes) {
  return new Promise((done, fail) => {
    const parts = [];
    const socket = connect(port, "localhost");
    socket.setTimeout(30_000, () => socket.destroy(new Error("no answer within 30 s")));
    socket.on("data", (part) => parts.push(part));
    socket.on("end", () => done(Buffer.concat(parts)));
    socket.on("error", (error) => (parts.length ? done(Buffer.concat(parts)) : fail(error)));
    socket.write(bytes);
  });
}

function read(bytes) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) throw new Error(`no answer of HTTP: ${JSON.stringify(bytes.toString().slice(0, 200))}`);
  const [start, ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  const body = bytes.subarray(end + 4);
  if ("content-length" in headers && Number(headers["content-length"]) !== body.length) throw new Error(`Content-Length is ${headers["content-length"]}, but ${body.length} bytes came`);
  return { status: Number(start.split(" ")[1]), substatus: Number(headers["x-ms-substatus"] ?? 0), headers, body: body.toString() };
}

// ---- comparing ----

const forms = {
  "<any>": () => true,
  "<string>": (value) => typeof value === "string",
  "<number>": (value) => typeof value === "number",
  "<etag>": (value) => /^"[0-9a-f]{8}-0000-[0-9a-f]{4}-0000-[0-9a-f]{8}0000"$/.test(value),
};

// Where the value is not what the pattern says, or undefined. Objects may have more members than the pattern; arrays may not.
export function difference(pattern, value, path = "") {
  if (pattern === "<none>") return value === undefined ? undefined : `${path || "the body"} should not be there`;
  if (typeof pattern === "string" && pattern in forms) return forms[pattern](value) ? undefined : `${path} is ${JSON.stringify(value)}, not ${pattern}`;
  if (pattern === null || typeof pattern !== "object") {
    return isDeepStrictEqual(pattern, value) ? undefined : `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(pattern)}`;
  }
  if (value === null || typeof value !== "object" || Array.isArray(pattern) !== Array.isArray(value)) return `${path} is ${JSON.stringify(value)}`;
  if (Array.isArray(pattern) && pattern.length !== value.length) return `${path} has ${value.length} elements, not ${pattern.length}`;
  for (const [name, inner] of Object.entries(pattern)) {
    const found = difference(inner, value[name], `${path}.${name}`);
    if (found) return found;
  }
}

function checkLine(api, line, answer, values) {
  const text = expand(line, values).toString();
  const [, keep, from] = /^keep (\w+) from (.+)$/.exec(text) ?? [];
  const [, omitted] = /^no (\S+)$/.exec(text) ?? [];
  const [, matched, pattern] = /^(\S+) ~ (.*)$/.exec(text) ?? [];
  const [, name, value] = /^([^:\s]+): ?(.*)$/.exec(text) ?? [];
  const field = (which) => answer.headers[which.toLowerCase()];
  if (keep) {
    const kept = from.startsWith("header ") ? field(from.slice(7)) : from.split(".").reduce((at, step) => at?.[step], JSON.parse(answer.body));
    if (kept === undefined) return `there is no ${from} to keep`;
    values[keep] = String(kept);
  } else if (omitted) {
    return field(omitted) === undefined ? undefined : `${omitted} should not be there, but is ${field(omitted)}`;
  } else if (matched) {
    return new RegExp(pattern).test(field(matched) ?? "") ? undefined : `${matched} is ${field(matched)}, which is not like ${pattern}`;
  } else if (name === "message") {
    const { message } = api.error(answer);
    return message.includes(value) ? undefined : `the message does not say ${JSON.stringify(value)}`;
  } else if (name === "code") {
    const { code } = api.error(answer);
    return code === value ? undefined : `the error's code is ${code}, not ${value}`;
  } else if (name === "charge") {
    return Number(field("x-ms-request-charge")) === Number(value) ? undefined : `the charge is ${field("x-ms-request-charge")}, not ${value}`;
  } else if (name) {
    return field(name) === value ? undefined : `${name} is ${field(name)}, not ${value}`;
  } else {
    throw new Error(`no expectation: ${line}`);
  }
}

// The answer has these lines, in this order, and perhaps others between them. A line /…/ is an expression.
function missingLine(wanted, lines) {
  let at = 0;
  for (const line of wanted) {
    const like = /^\/(.*)\/$/.exec(line);
    while (at < lines.length && !(like ? new RegExp(`^${like[1]}$`).test(lines[at]) : lines[at] === line)) at++;
    if (at++ >= lines.length) return `the body has no line ${JSON.stringify(line)} after the ones before it`;
  }
}

function checkBody(expected, answer, values) {
  const text = expand(expected, values).toString();
  if (text === "") return;
  if (text === "empty") return answer.body === "" ? undefined : "the body is not empty";
  if (text.startsWith("exactly\n")) return answer.body === text.slice(8) ? undefined : "the body is not exactly that";
  if (text.startsWith("lines\n")) return missingLine(text.slice(6).split("\n"), answer.body.split(/\r?\n/));
  return difference(JSON.parse(text), JSON.parse(answer.body));
}

function judge(api, { status, substatus, checks, body }, answer, values) {
  if (answer.status !== status) return `the status is ${answer.status}, not ${status}`;
  if (answer.substatus !== substatus) return `the sub-status is ${answer.substatus}, not ${substatus}`;
  for (const line of checks) {
    const wrong = checkLine(api, line, answer, values);
    if (wrong) return wrong;
  }
  if (answer.status === 500) return "an internal error";
  return (answer.status >= 400 ? api.checkForm(answer) : undefined) ?? checkBody(body, answer, values);
}

// ---- running ----

async function send(api, port, request, values) {
  const path = expand(request.path, values).toString();
  const { crlf, minutes = 0 } = instructionsOf(request);
  values.date = new Date(Date.now() + minutes * 60_000).toUTCString();
  const body = expand(crlf ? `${request.body.replaceAll("\n", "\r\n")}\r\n` : request.body, values);
  return read(await exchange(port, Buffer.concat([head(api, request, path, body, values, port), body])));
}

// What the file takes for granted.
async function prepare(api, port, given, values) {
  for (const request of api.prepare(given, values)) {
    const answer = await send(api, port, { verb: "POST", ...request }, values);
    if (answer.status !== 201) throw new Error(`given ${request.body}: ${answer.status} ${answer.body}`);
  }
}

function report(file, { title, line, request }, why, answer) {
  console.log(`FAIL ${file}:${line}: ${title}\n  ${why}`);
  console.log(`  asked    ${request.verb} ${request.path} ${request.body.slice(0, 500)}`);
  if (!answer) return;
  console.log(`  answered ${answer.status} ${answer.body.slice(0, 1000)}`);
  for (const [name, value] of Object.entries(answer.headers)) if (name.startsWith("x-ms-") || name === "etag") console.log(`    ${name}: ${value}`);
}

async function runCases(server, path, file, tally) {
  const { api: name, given, cases } = file;
  const api = apis[name], port = api.port(server);
  const values = { db: basename(path).replace(/\..*/, ""), key: emulatorKey, port: String(port), account };
  await prepare(api, port, given, values);
  for (const one of cases) {
    let answer, why;
    if (api.pauseMs) await setTimeout(api.pauseMs);
    try {
      answer = await send(api, port, one.request, values);
      why = judge(api, one.expected, answer, values);
    } catch (error) {
      why = error.message;
    }
    if (why) report(relative(process.cwd(), path), one, why, answer);
    tally[why ? "failed" : "passed"]++;
  }
}

// Files of the SQL API have databases of their own; others have a server of their own.
async function runFile(shared, path, tally) {
  const file = parse(readFileSync(path, "utf8"), relative(process.cwd(), path));
  if (file.api === "sql") return runCases(shared, path, file, tally);
  const own = await Server.start();
  await runCases(own, path, file, tally);
  await own.stop();
}

export async function main(files) {
  const paths = files.length ? files : readdirSync(folder).filter((name) => name.endsWith(".cases")).sort().map((name) => join(folder, name));
  const tally = { passed: 0, failed: 0 };
  const server = await Server.start();
  try {
    for (const path of paths) await runFile(server, path, tally);
    await server.stop();
  } catch (error) {
    console.log(error.message);
    console.log(server.tail());
    tally.failed++;
  }
  console.log(`${tally.passed} tests passed`);
  if (tally.failed) console.log(`${tally.failed} tests failed`);
  process.exitCode = tally.failed ? 1 : 0;
}
