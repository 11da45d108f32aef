// server.mjs — queries a running tesela: range by range with plain requests, or through the official SDK.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { emulatorKey, Rest, Server } from "../sdk/server.js";

export { Server };

const asQuery = { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json" };

// A new database, with a container for each set of items in the cases.
export class Bench {
  #containers = new Map();
  #made = 0;

  constructor(server, { ranges = 1, name = "queries" } = {}) {
    Object.assign(this, { server, ranges, name, rest: new Rest({ server }) });
  }

  async open() {
    await this.#need(this.rest.post("/dbs", { id: this.name }), 201);
    return this;
  }

  close() {
    this.client?.dispose();
    this.rest.close();
  }

  async #need(promise, status) {
    const answer = await promise;
    if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`);
    return answer;
  }

  // The container that holds these items: { id, path, keyPaths }.
  async container(given) {
    if (!this.#containers.has(given)) this.#containers.set(given, this.#make(given));
    return this.#containers.get(given);
  }

  async #make({ items, container, functions = {} }) {
    const id = `c${++this.#made}`;
    const settings = { id, partitionKey: { paths: ["/id"], kind: "Hash", version: 2 }, ...container };
    const headers = this.ranges > 1 ? { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: this.ranges * 10_000 }) } : {};
    await this.#need(this.rest.post(`/dbs/${this.name}/colls`, settings, { headers }), 201);
    const made = { id, path: `/dbs/${this.name}/colls/${id}`, keyPaths: settings.partitionKey.paths };
    for (const [id, body] of Object.entries(functions)) await this.#need(this.rest.post(`${made.path}/udfs`, { id, body }), 201);
    for (const [i, item] of items.entries()) await this.#insert(made, { id: `item${i + 1}`, ...item });
    return made;
  }

  async #insert({ path, keyPaths }, item) {
    const key = keyPaths.map((keyPath) => keyPath.split("/").slice(1).reduce((at, step) => at?.[step], item) ?? {});
    await this.#need(this.rest.post(`${path}/docs`, item, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify(key) } }), 201);
  }

  async rangeIds({ path }) {
    const answer = await this.#need(this.rest.get(`${path}/pkranges`), 200);
    return answer.json.PartitionKeyRanges.map(({ id }) => id);
  }

  // Reads every page of every range in turn: { rows, charge }, or { status, body } of the first error.
  async ask(given, query, parameters, { pageSize } = {}) {
    const container = await this.container(given);
    const rows = [];
    let charge = 0;
    for (const id of await this.rangeIds(container)) {
      let continuation;
      do {
        const answer = await this.#page(container, id, query, parameters, continuation, pageSize);
        if (answer.status !== 200) return { status: answer.status, body: answer.text };
        rows.push(...answer.json.Documents);
        charge += answer.charge;
        continuation = answer.headers["x-ms-continuation"];
      } while (continuation);
    }
    return { rows, charge };
  }

  #page({ path }, rangeId, query, parameters, continuation, pageSize = -1) {
    const headers = { ...asQuery, "x-ms-documentdb-partitionkeyrangeid": rangeId, "x-ms-max-item-count": String(pageSize) };
    headers["x-ms-documentdb-query-enablecrosspartition"] = "True";
    if (continuation) headers["x-ms-continuation"] = continuation;
    return this.rest.post(`${path}/docs`, { query, parameters }, { headers });
  }

  // The same through @azure/cosmos, which fetches a plan and merges the ranges.
  async askSdk(given, query, parameters, options) {
    const { id } = await this.container(given);
    this.client ??= await this.#connect();
    const { resources } = await this.client.database(this.name).container(id).items.query({ query, parameters }, options).fetchAll();
    return { rows: JSON.parse(JSON.stringify(resources.filter((row) => row !== undefined))) }; // without undefined members
  }

  async #connect() {
    const require = createRequire(join(dirname(fileURLToPath(import.meta.url)), "../sdk/package.json"));
    const { CosmosClient } = require("@azure/cosmos");
    const connectionPolicy = { enableBackgroundEndpointRefreshing: false };
    return new CosmosClient({ endpoint: this.server.endpoint("http"), key: emulatorKey, connectionPolicy });
  }
}

// The errors in an error message that contains {"errors":[…]} or {"Errors":["…"]}; none for plain text.
export function errorsOf(body) {
  const message = (() => {
    try {
      return JSON.parse(body).message ?? body;
    } catch {
      return body;
    }
  })();
  const start = message.indexOf('{"errors":');
  for (let end = message.indexOf("}", start); start >= 0 && end > 0; end = message.indexOf("}", end + 1)) {
    try {
      return { errors: JSON.parse(message.slice(start, end + 1)).errors, message };
    } catch {
      continue;
    }
  }
  return { errors: [], message };
}
