// apis.mjs — what differs between the APIs that case files speak: ports, default header fields, signatures, the form of errors, preconditions.

import { createHmac } from "node:crypto";
import { emulatorKey, sign, signed } from "../sdk/server.js";

export const account = "devstoreaccount1";

// ---- SQL ----

const sql = {
  port: (server) => server.port,
  version: "2020-07-15",
  fields: [],
  contentType: "application/json",

  authorization({ verb, path, key = emulatorKey, byRid, date }) {
    const { type, link } = signed(path, byRid);
    return sign(key, verb, type, link, date);
  },

  // Every error has the service's form, whether a case says so or not.
  checkForm(answer) {
    const { code, message } = JSON.parse(answer.body);
    if (typeof code !== "string" || typeof message !== "string") return "the error has no code and message";
    if (!message.includes(answer.headers["x-ms-activity-id"])) return "the error's message does not name its activity";
  },
  error: (answer) => JSON.parse(answer.body),

  // A database of the file's own, and the containers and items that it names.
  *prepare(given, values) {
    yield { path: "/dbs", fields: [], body: JSON.stringify({ id: values.db }) };
    for (const [kind, name, rest] of given) {
      if (kind === "container") {
        yield { path: `/dbs/${values.db}/colls`, fields: [], body: JSON.stringify({ id: name, ...JSON.parse(rest) }) };
      } else {
        const [, partition, body] = /^(\[.*?\]) (\{.*)$/.exec(rest);
        yield { path: `/dbs/${values.db}/colls/${name}/docs`, fields: [`x-ms-documentdb-partitionkey: ${partition}`], body };
      }
    }
  },
};

// ---- Table ----

// What a client signs: docs of Storage, "Authorize with Shared Key".
function signedText({ kind, verb, path, name, fields, date }) {
  const [bare, query = ""] = path.split("?");
  const comp = new URLSearchParams(query).get("comp");
  const resource = `/${name}${bare}${comp === null ? "" : `?comp=${comp}`}`;
  const field = (which) => fields.get(which)?.[1] ?? "";
  return kind === "SharedKeyLite" ? `${date}\n${resource}` : [verb, field("content-md5"), field("content-type"), date, resource].join("\n");
}

const table = {
  port: (server) => Number(server.ready.table.replace(/.*:/, "")),
  version: "2019-02-02",
  fields: [["Accept", "application/json;odata=minimalmetadata"]],
  contentType: "application/json",

  authorization({ kind = "SharedKeyLite", name = account, key = emulatorKey, ...request }) {
    const text = signedText({ kind, name, ...request });
    return `${kind} ${name}:${createHmac("sha256", Buffer.from(key, "base64")).update(text, "latin1").digest("base64")}`;
  },

  checkForm(answer) {
    const { code, message } = table.error(answer);
    if (answer.headers["x-ms-error-code"] !== code) return "x-ms-error-code is not the error's code";
    if (!message.includes(`RequestId:${answer.headers["x-ms-request-id"]}`)) return "the error's message does not name its request";
  },
  error(answer) {
    const { code, message } = JSON.parse(answer.body)["odata.error"];
    return { code, message: message.value };
  },

  // An entity that is changed in the millisecond of its last write keeps its Timestamp, an indexed property, and costs less.
  pauseMs: 2,

  // Tables and entities; "given table people", "given entity people {…}".
  *prepare(given) {
    for (const [kind, name, rest] of given) {
      if (kind === "table") yield { path: `/${account}/Tables`, fields: rest ? [rest] : [], body: JSON.stringify({ TableName: name }) };
      else yield { path: `/${account}/${name}`, fields: [], body: rest };
    }
  },
};

export const apis = { sql, table };
