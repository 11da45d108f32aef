#!/usr/bin/env node
// peer.mjs — the cases of tests/gremlin but refused.cases, each sent to this server and to Gremlin Server with TinkerGraph: results with their types, in
// GraphSON 3, must be the same. What is known to differ is in peer-differences.txt, with the reason.
//
//   GREMLIN_JARS=FOLDER node tests/gremlin-driver/peer.mjs [PART OF A SCRIPT]
//
// The folder has the jars of org.apache.tinkerpop:gremlin-server and tinkergraph-gremlin 3.7, and what they need; it runs on Java 17.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { emulatorKey, Rest, Server } from "../sdk/server.js";

const here = dirname(fileURLToPath(import.meta.url));
const jars = process.env.GREMLIN_JARS;
const mime = "application/vnd.gremlin-v3.0+json";
const graphs = { modern: "generateModern", crew: "generateTheCrew", empty: null };
const writes = /addV|addE|property\(|drop\(|merge[VE]/;

// ---- connections ----

class Connection {
  static async open(port, login) {
    const c = new Connection();
    c.login = login;
    c.waiting = new Map();
    c.socket = new WebSocket(`ws://localhost:${port}/gremlin`);
    c.socket.on("message", (bytes) => c.#take(JSON.parse(bytes.toString())));
    c.socket.on("close", () => c.waiting.forEach(({ done }) => done({ error: "the server has closed the connection" })));
    await new Promise((done, fail) => c.socket.on("open", done).on("error", fail));
    return c;
  }
  #take({ requestId, status, result }) {
    const asked = this.waiting.get(requestId);
    if (status.code === 407) {
      const sasl = Buffer.from(`\0${this.login}\0${emulatorKey}`).toString("base64");
      this.#send({ requestId, op: "authentication", processor: "", args: { sasl, saslMechanism: "PLAIN" } });
      return;
    }
    asked.values.push(...(result.data?.["@value"] ?? []));
    if (status.code === 206) return;
    this.waiting.delete(requestId);
    asked.done(status.code < 300 ? { values: asked.values } : { error: `${status.code} ${status.message}` });
  }
  #send(request) {
    this.socket.send(Buffer.concat([Buffer.from([mime.length]), Buffer.from(mime), Buffer.from(JSON.stringify(request))]));
  }
  // { values } or { error }
  run(gremlin, { bindings = {}, g = "g" } = {}) {
    const requestId = randomUUID();
    const typed = { "@type": "g:Map", "@value": Object.entries(bindings).flat() };
    this.#send({ requestId, op: "eval", processor: "", args: { gremlin, language: "gremlin-groovy", bindings: typed, aliases: { g } } });
    return new Promise((done) => {
      const late = setTimeout(() => done({ error: "no answer for a minute" }), 60_000);
      this.waiting.set(requestId, { values: [], done: (answer) => (clearTimeout(late), done(answer)) });
    });
  }
  async must(gremlin, options) {
    const { values, error } = await this.run(gremlin, options);
    if (error) throw new Error(`${gremlin}: ${error}`);
    return values;
  }
}

// ---- Gremlin Server ----

const freePort = () =>
  new Promise((done) => {
    const socket = net.createServer().listen(0, "localhost", () => {
      const { port } = socket.address();
      socket.close(() => done(port));
    });
  });

const configuration = (home, port) => `
host: localhost
port: ${port}
evaluationTimeout: 20000
graphs: {${Object.keys(graphs).map((name) => `${name}: ${home}/${name}.properties`).join(", ")}}
scriptEngines:
  gremlin-groovy:
    plugins:
      org.apache.tinkerpop.gremlin.server.jsr223.GremlinServerGremlinPlugin: {}
      org.apache.tinkerpop.gremlin.tinkergraph.jsr223.TinkerGraphGremlinPlugin: {}
      org.apache.tinkerpop.gremlin.jsr223.ScriptFileGremlinPlugin: {files: [${home}/graphs.groovy]}
serializers:
  - {className: org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3}
`;

async function peer(home) {
  const port = await freePort();
  const ids = (manager) => ["vertexIdManager", "edgeIdManager"].map((name) => `gremlin.tinkergraph.${name}=${manager}\n`).join("");
  for (const name of Object.keys(graphs)) {
    const cardinality = name === "crew" ? "gremlin.tinkergraph.defaultVertexPropertyCardinality=list\n" : "";
    const text = `gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph\n${ids(name === "empty" ? "ANY" : "INTEGER")}${cardinality}`;
    writeFileSync(join(home, `${name}.properties`), text);
  }
  const sources = Object.keys(graphs).map((name) => `g${name}: traversal().withEmbedded(${name})`);
  writeFileSync(join(home, "graphs.groovy"), `def globals = [:]\nglobals << [${sources.join(", ")}]\n`);
  writeFileSync(join(home, "server.yaml"), configuration(home, port));
  const log = openSync(join(home, "log"), "w");
  const child = spawn("java", ["-Xmx1g", "-cp", `${jars}/*`, "org.apache.tinkerpop.gremlin.server.GremlinServer", join(home, "server.yaml")], { stdio: ["ignore", log, log] });
  process.on("exit", () => child.kill());
  let connection;
  for (let i = 0; !connection && i < 120 && child.exitCode === null; i++) {
    connection = await Connection.open(port).catch(() => new Promise((done) => setTimeout(done, 500)));
  }
  if (!connection) throw new Error(`Gremlin Server does not start: ${readFileSync(join(home, "log"), "utf8")}`);
  return {
    run: (graph, script) => connection.run(script, { g: `g${graph}` }),
    must: (graph, script) => connection.must(script, { g: `g${graph}` }),
    fill: (graph) => {
      const generate = graphs[graph] ? `org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerFactory.${graphs[graph]}(${graph}); ` : "";
      return connection.must(`${graph}.clear(); ${generate}g.inject(0)`, { g: `g${graph}` });
    },
    stop: () => child.kill(),
  };
}

// ---- this server: the same elements, in containers without a partition key ----

const plain = (v) => String(v?.["@value"] ?? v);

async function add(connection, { "@type": type, "@value": e }) {
  const bindings = { label: e.label, id: plain(e.id) };
  let script = "g.addV(label)";
  if (type === "g:Edge") {
    Object.assign(bindings, { from: plain(e.outV), to: plain(e.inV) });
    script = "g.V(from).addE(label).to(V(to))";
  }
  script += ".property(T.id, id)";
  let n = 0;
  const bound = (value) => ((bindings[`x${++n}`] = value), `x${n}`);
  for (const one of Object.values(e.properties ?? {}).flat()) {
    const { key, label, value, properties } = one["@value"];
    const metas = Object.entries(properties ?? {}).map(([name, meta]) => `, '${name}', ${bound(meta)}`);
    script += `.property(${type === "g:Edge" ? "" : "list, "}'${key ?? label}', ${bound(value)}${metas.join("")})`;
  }
  await connection.must(script, { bindings });
}

async function ours(elements) {
  const server = await Server.start({ flags: ["--gremlin-port", "0"] });
  const rest = new Rest({ server });
  await rest.send("POST", "/dbs", { body: { id: "graphs" } });
  const connections = {};
  for (const id of Object.keys(graphs)) {
    await rest.send("POST", "/dbs/graphs/colls", { body: { id } });
    connections[id] = await Connection.open(server.ready.gremlin.replace(/.*:/, ""), `/dbs/graphs/colls/${id}`);
    await connections[id].must("g.inject(0)"); // authenticates: the server keeps no others for long
  }
  return {
    run: (graph, script) => connections[graph].run(script),
    fill: async (graph) => {
      await connections[graph].must("g.V().drop()");
      for (const element of elements[graph]) await add(connections[graph], element);
    },
    stop: () => server.stop(),
  };
}

// ---- comparing ----

const isUuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
const byText = (a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

// Ids here are texts, and TinkerGraph's numbers. Ids that a server chose differ. A decimal of Groovy is a double of gremlin-lang.
const idOf = (v) => (isUuid.test(plain(v)) || v?.["@type"] === "g:Int64" ? "(new)" : plain(v));

const pairs = (list) => Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);

function normalElement(type, e) {
  const kept = { ...e, id: type === "g:VertexProperty" ? "(any)" : idOf(e.id) };
  for (const end of ["inV", "outV"]) if (end in e) kept[end] = idOf(e[end]);
  delete kept.vertex;
  return [type, normal(kept)];
}

function normal(v) {
  if (Array.isArray(v)) return v.map(normal);
  if (v === null || typeof v !== "object") return v;
  const { "@type": type, "@value": value } = v;
  if (!type) return Object.fromEntries(Object.keys(v).sort().map((key) => [key, normal(v[key])]));
  if (type === "g:Int32") return String(value);
  if (type === "gx:BigDecimal" || type === "g:Double") return ["double", Number(value)];
  if (["g:Vertex", "g:Edge", "g:VertexProperty"].includes(type)) return normalElement(type, value);
  if (type === "g:Set") return [type, normal(value).sort(byText)];
  if (type === "g:Map" || type === "g:BulkSet") return [type, pairs(normal(value)).sort(byText)];
  return [type, normal(value)];
}

// Results come in any order unless a case counts it; lists within them too, since TinkerGraph's order is that of its hash tables.
function sorted(v) {
  if (!Array.isArray(v)) return v !== null && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([key, x]) => [key, sorted(x)])) : v;
  return v.map(sorted).sort(byText);
}

function show({ values, error }, inOrder) {
  if (error) return "an error";
  return JSON.stringify(inOrder ? normal(values) : sorted(normal(values)));
}

// ---- cases ----

function cases() {
  const folder = join(here, "../gremlin");
  const found = [];
  const files = readdirSync(folder).filter((file) => file.endsWith(".cases") && file !== "refused.cases"); // Groovy would run what is refused here
  for (const name of files) {
    for (const block of readFileSync(join(folder, name), "utf8").split(/\n\n+/)) {
      const line = block.split("\n").find((text) => /^(modern|crew|empty)( in order)?: /.test(text));
      const [, graph, order, script] = line?.match(/^(\w+)( in order)?: (.*)$/) ?? [];
      if (graph) found.push({ graph, script, inOrder: Boolean(order) });
    }
  }
  return found;
}

const known = new Set(readFileSync(join(here, "peer-differences.txt"), "utf8").split("\n").filter((line) => line && !line.startsWith("#")));

// Names of steps that no case has.
function untested(all) {
  const source = readFileSync(join(here, "../../src/gremlin/traversal.h"), "utf8");
  const steps = [...source.matchAll(/^ {4}X\(\w+, "(\w+)"/gm)].map((match) => match[1]);
  return steps.filter((step) => !all.some(({ script }) => new RegExp(`\\b${step}\\(`).test(script)));
}

async function main() {
  const wanted = process.argv[2] ?? "";
  const all = cases(), chosen = all.filter(({ script }) => script.includes(wanted));
  const home = mkdtempSync(join(tmpdir(), "tesela-peer-"));
  const theirs = await peer(home);
  const elements = {}, dirty = {};
  for (const graph of Object.keys(graphs)) {
    await theirs.fill(graph);
    elements[graph] = [...(await theirs.must(graph, "g.V()")), ...(await theirs.must(graph, "g.E()"))];
    dirty[graph] = true;
  }
  const own = await ours(elements);
  let different = 0;
  for (const { graph, script, inOrder } of chosen) {
    if (dirty[graph]) await Promise.all([theirs.fill(graph), own.fill(graph)]);
    dirty[graph] = writes.test(script);
    const [a, b] = await Promise.all([own.run(graph, script), theirs.run(graph, script)]);
    const same = show(a, inOrder) === show(b, inOrder);
    if (same === known.has(script)) {
      different++;
      console.log(same ? `${script}\n  is the same now` : `${script}\n  tesela       ${a.error ?? show(a, inOrder)}\n  TinkerGraph  ${b.error ?? show(b, inOrder)}`);
    }
  }
  console.log(`${chosen.length} cases, ${different} not as expected`);
  console.log(`steps without a case: ${untested(all).join(", ") || "none"}`);
  await own.stop();
  theirs.stop();
  rmSync(home, { recursive: true });
  process.exit(different ? 1 : 0);
}

if (!jars) {
  console.error("GREMLIN_JARS names no folder");
  process.exit(2);
}
await main();
