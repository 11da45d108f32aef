// harness.js — what the suites share: a server of its own for each, reached plainly and then over TLS, with TinkerPop's own driver.
//
//   suite("steps", (t) => {
//     t.it("find what was added", async () => {
//       const g = await t.graph();                       // a container of its own, empty
//       await g.run("g.addV('person').property('pk', 'a').property('id', '1')");
//       …
//
// A graph has: run(script, bindings, options), which returns an array; client; container (REST, for the SQL API); close().

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import gremlin from "gremlin";
import old from "gremlin-3.4";
import { emulatorKey, Rest, Server } from "../sdk/server.js";

export { assert, emulatorKey, gremlin, old, Rest, Server };

const waysAsked = (process.env.TESELA_WAYS ?? "plain tls").split(" ");

export const mimes = {
  v1: "application/vnd.gremlin-v1.0+json",
  v2: "application/vnd.gremlin-v2.0+json",
  v3: "application/vnd.gremlin-v3.0+json",
  binary: "application/vnd.graphbinary-v1.0",
};

export function suite(name, define, { flags = ["--throttling", "off"], ways = waysAsked } = {}) {
  describe(name, () => {
    const shared = {};
    before(async () => {
      shared.server = await Server.start({ flags });
      shared.rest = new Rest({ server: shared.server });
      await ok(shared.rest.send("POST", "/dbs", { body: { id: "graphs" } }));
    });
    after(() => shared.server?.stop());
    for (const way of ways) {
      describe(way, () => define(new Bench(shared, way)));
    }
  });
}

const withoutSystem = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;

async function ok(promise) {
  const answer = await promise;
  assert.ok(answer.status < 300, `${answer.status} ${answer.text}`);
  return answer.json ?? JSON.parse(answer.text || "null");
}

let names = 0;

class Bench {
  constructor(shared, way) {
    this.shared = shared;
    this.way = way;
    this.open = [];
    after(async () => {
      for (const graph of this.open) await graph.close();
    });
  }
  get server() {
    return this.shared.server;
  }
  url(path = "/") {
    return `${this.way === "tls" ? "wss" : "ws"}://localhost:${this.server.ready.gremlin.replace(/.*:/, "")}${path}`;
  }
  // A client of a container. library: gremlin or old.
  client(container, { library = gremlin, key = emulatorKey, user = `/dbs/graphs/colls/${container}`, mime = mimes.v2, path, ...options } = {}) {
    return new library.driver.Client(this.url(path), {
      authenticator: new library.driver.auth.PlainTextSaslAuthenticator(user, key),
      traversalsource: "g",
      rejectUnauthorized: false,
      mimeType: mime,
      ...options,
    });
  }
  // A new container with the partition key /pk; key: another path, or null for none.
  async graph({ key = "/pk", offer, ...options } = {}) {
    const id = `g${++names}`;
    const body = key === null ? { id } : { id, partitionKey: { paths: [key], kind: "Hash" } };
    await ok(this.shared.rest.send("POST", "/dbs/graphs/colls", { body, headers: offer ? { "x-ms-offer-throughput": String(offer) } : {} }));
    return this.graphOf(id, options);
  }
  graphOf(id, options) {
    const graph = new Graph(this, id, options);
    this.open.push(graph);
    return graph;
  }

  // A failing test shows what the server has written to standard error.
  it(name, test, options = {}) {
    it(name, options, async () => {
      const from = this.server.stderr.length;
      try {
        await test();
      } catch (error) {
        const said = this.server.stderr.slice(from).trimEnd();
        const gone = this.server.child.exitCode ?? this.server.child.signalCode;
        if (gone !== null) error.message += `\nThe server is gone (${gone}).`;
        if (said) error.message += `\nThe server said:\n${said}`;
        throw error;
      }
    });
  }
}

class Graph {
  constructor(bench, id, options) {
    this.bench = bench;
    this.id = id;
    this.client = bench.client(id, options);
  }
  async run(script, bindings, options) {
    const result = await this.client.submit(script, bindings, options);
    return result.toArray();
  }
  close() {
    return this.client.close();
  }
  // Items as the SQL API has them, without system properties.
  async sql(query, parameters) {
    const rows = await this.whole(query, parameters);
    return rows.map((row) => (row && typeof row === "object" ? withoutSystem(row) : row));
  }
  // With them.
  async whole(query, parameters = []) {
    const answer = await this.bench.shared.rest.send("POST", `/dbs/graphs/colls/${this.id}/docs`, {
      body: { query, parameters },
      headers: {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-max-item-count": "-1",
      },
    });
    return (await ok(answer)).Documents;
  }
  async write(item, key = item.pk) {
    await ok(
      this.bench.shared.rest.send("POST", `/dbs/graphs/colls/${this.id}/docs`, {
        body: item,
        headers: key === undefined ? {} : { "x-ms-documentdb-partitionkey": JSON.stringify([key]) },
      }),
    );
  }
}

// The promise fails with this status of the protocol; the error is returned.
export async function fails(promise, status, text, msStatus) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `the request succeeded; ${status} was expected`);
  assert.equal(error.statusCode, status, error.message);
  if (text) assert.match(error.statusMessage ?? error.message, text);
  if (msStatus) assert.equal(attribute(error.statusAttributes, "x-ms-status-code"), msStatus);
  return error;
}

export const attribute = (attributes, name) => (attributes instanceof Map ? attributes.get(name) : attributes[name]);

// TinkerPop's small graph; every vertex is in the partition that `place` gives.
export async function modern(graph, place = (id) => `p${id % 2}`) {
  const people = [
    [1, "person", "marko", "age", 29],
    [2, "person", "vadas", "age", 27],
    [3, "software", "lop", "lang", "java"],
    [4, "person", "josh", "age", 32],
    [5, "software", "ripple", "lang", "java"],
    [6, "person", "peter", "age", 35],
  ];
  for (const [id, label, name, key, value] of people) {
    await graph.run("g.addV(label).property('id', i).property('pk', p).property('name', n).property(k, v)", {
      label,
      i: String(id),
      p: place(id),
      n: name,
      k: key,
      v: value,
    });
  }
  const edges = [
    [7, 1, "knows", 2, 0.5],
    [8, 1, "knows", 4, 1.0],
    [9, 1, "created", 3, 0.4],
    [10, 4, "created", 5, 1.0],
    [11, 4, "created", 3, 0.4],
    [12, 6, "created", 3, 0.2],
  ];
  for (const [id, from, label, to, weight] of edges) {
    await graph.run("g.V(a).addE(label).to(g.V(b)).property('id', i).property('weight', w)", {
      a: String(from),
      label,
      b: String(to),
      i: String(id),
      w: weight,
    });
  }
}
