// Runs wire.cases: each command is sent as it is written, and its reply is compared member by member.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BSON } from "mongodb";
import { assert, suite } from "./harness.js";

const { EJSON } = BSON;

function cases() {
  const text = readFileSync(join(import.meta.dirname, "wire.cases"), "utf8");
  return text.split(/^=== /m).slice(1).map((part) => {
    const [name, ...lines] = part.split("\n");
    const steps = lines.filter((line) => /^[<>] /.test(line)).map((line) => [line[0], line.slice(2)]);
    return { name, steps };
  });
}

const types = { string: (v) => typeof v === "string", long: (v) => typeof v === "bigint" || typeof v === "number" || v?._bsontype === "Long", int: Number.isInteger };

// What of the expected reply is missing, as a path; undefined: nothing.
function difference(expected, actual, path = "") {
  const any = typeof expected === "string" && /^<(\w+)>$/.exec(expected);
  if (any) return types[any[1]](actual) ? undefined : path;
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return path;
    return expected.map((each, i) => difference(each, actual[i], `${path}/${i}`)).find(Boolean);
  }
  if (expected && typeof expected === "object" && !expected._bsontype) {
    return Object.keys(expected).map((key) => difference(expected[key], actual?.[key], `${path}/${key}`)).find(Boolean);
  }
  return String(expected) === String(actual) ? undefined : path || "/";
}

suite("the wire", (t) => {
  const values = () => ({ db: t.db.databaseName });
  for (const { name, steps } of cases()) {
    t.it(name, async () => {
      const fill = (text) => text.replace(/\$\{(\w+)\}/g, (_, key) => values()[key]);
      let reply;
      for (const [kind, text] of steps) {
        if (kind === ">") {
          reply = await t.db.command(EJSON.parse(fill(text), { relaxed: false })).catch((error) => error.errorResponse ?? error.result ?? Promise.reject(error));
        } else {
          const missing = difference(EJSON.parse(fill(text)), reply);
          assert.equal(missing, undefined, `${missing} differs: ${EJSON.stringify(reply)}`);
        }
      }
    });
  }
});
