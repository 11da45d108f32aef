// index.mjs — the reference implementation: the rows of a query over some items, computed slowly and simply, independent of src/query.
//
//   run({ query, parameters, items, container, functions }) → rows as JSON, in order; throws QueryError.

import { check } from "./check.mjs";
import { evaluate } from "./evaluate.mjs";
import { parse } from "./parser.mjs";
import { computed, shown } from "./values.mjs";

export { QueryError } from "./errors.mjs";
export { parse } from "./parser.mjs";
export { compare, equal, shown } from "./values.mjs";

export function run({ query, parameters = {}, items = [], container = {}, functions = {} }) {
  const tree = parse(query);
  check(tree, container, functions);
  const now = BigInt(Date.now()) * 10000n;
  const context = { items: items.map(withSystem), parameters, now, random: Math.random, functions: compile(functions) };
  for (const item of context.items) compute(item, container.computedProperties ?? []);
  return evaluate(tree, context).map(shown);
}

// User-defined functions, compiled from their texts.
function compile(functions) {
  return new Map(Object.entries(functions).map(([name, body]) => [name, (0, eval)(`(${body})`)]));
}

// Computed properties can be named in queries, but SELECT * does not return them, and they cannot use each other.
function compute(item, properties) {
  const values = properties.map(({ name, query }) => [name, evaluate(parse(query), { items: [item], parameters: {} })[0]]);
  Object.defineProperty(item, computed, { value: new Map(values), enumerable: false });
}

// The item with its system properties.
function withSystem(item, i) {
  const rid = Buffer.alloc(16);
  rid.writeBigUInt64LE(BigInt(i + 1), 8);
  const system = { _rid: rid.toString("base64"), _self: `dbs/a/colls/b/docs/${i + 1}/`, _etag: `"0000000${i % 10}-0000-0000-0000-000000000000"` };
  return { ...item, ...system, _attachments: "attachments/", _ts: Math.floor(Date.now() / 1000) };
}
