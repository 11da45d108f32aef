// cases.test.js — runs statements.cases (CQL with the rows or the error that it gives) and wire.cases (messages as bytes with their answers). The
// heads of those files tell how they are written.

import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { shown } from "./domains.js";
import { assert, emulatorKey, portOf, suite } from "./harness.js";

// [{ name, steps: [{ ask, wanted: [lines] }] }]
function cases(file) {
  const text = readFileSync(join(import.meta.dirname, file), "utf8");
  return text.split(/^=== /m).slice(1).map((part) => {
    const [name, ...lines] = part.split("\n");
    const steps = [];
    for (const line of lines) {
      if (line.startsWith("> ")) steps.push({ ask: line.slice(2), wanted: [] });
      else if (/^[<!]/.test(line)) steps.at(-1).wanted.push(line);
      else if (line.startsWith("  ")) steps.at(-1).ask += `\n${line.trim()}`;
      else assert.ok(line === "" || line.startsWith("#"), `${file}: what is "${line}"?`);
    }
    return { name, steps };
  });
}

// ---- statements ----

async function answerOf(client, cql) {
  try {
    const { rows } = await client.execute(cql);
    return (rows ?? []).map((row) => `< ${row.keys().map((key) => shown(row[key]) ?? "null").join(" | ")}`.trimEnd());
  } catch (error) {
    return [`! ${error.code?.toString(16).padStart(4, "0")} ${error.message}`];
  }
}

function check(cql, got, wanted) {
  const refusal = wanted.length === 1 && /^! (\w{4}) ?(.*)$/.exec(wanted[0]);
  if (!refusal) return assert.deepEqual(got, wanted, cql);
  assert.match(got[0] ?? "", /^! /, `${cql}: succeeded`);
  assert.equal(got[0].slice(2, 6), refusal[1], `${cql}: ${got[0]}`);
  assert.ok(got[0].includes(refusal[2]), `${cql}: ${got[0]}`);
}

suite(
  "statements",
  (t) => {
    for (const [i, { name, steps }] of cases("statements.cases").entries()) {
      t.it(name, async () => {
        const client = t.make({ encoding: { map: Map } });
        await client.connect();
        try {
          await client.execute(`CREATE KEYSPACE case${i} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
          await client.execute(`USE case${i}`);
          for (const { ask, wanted } of steps) check(ask, await answerOf(client, ask), wanted);
        } finally {
          await client.shutdown();
        }
      });
    }
  },
  { ways: ["plain"] },
);

// ---- the wire ----

const names = { key: Buffer.from(emulatorKey).toString("hex") };
const bytesOf = (text) =>
  text.replace(/#.*$/, "").replace(/"([^"]*)"/g, (_, ascii) => Buffer.from(ascii).toString("hex")).replace(/\$\{(\w+)\}/g, (_, name) => names[name]).replace(/\s/g, "");

class Link {
  constructor(port) {
    this.bytes = Buffer.alloc(0);
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("data", (part) => ((this.bytes = Buffer.concat([this.bytes, part])), this.wake?.()));
    this.socket.on("close", () => ((this.closed = true), this.wake?.()));
    this.socket.on("error", () => {});
  }
  // The next envelope as hexadecimal text; "" if the connection was closed before it.
  async answer() {
    for (const until = Date.now() + 30000; Date.now() < until; ) {
      const n = this.bytes.length >= 9 ? 9 + this.bytes.readUInt32BE(5) : Infinity;
      if (this.bytes.length >= n) {
        const one = this.bytes.subarray(0, n).toString("hex");
        this.bytes = this.bytes.subarray(n);
        return one;
      }
      if (this.closed) return "";
      await new Promise((resolve) => ((this.wake = resolve), setTimeout(resolve, 500)));
    }
    throw new Error("no answer");
  }
}

// xx stands for any byte, … at the end for any rest.
const like = (pattern) => new RegExp(`^${pattern.replaceAll("xx", "..").replace(/…$/, ".*")}$`);

suite(
  "the wire",
  (t) => {
    for (const { name, steps } of cases("wire.cases")) {
      t.it(name, async () => {
        const link = new Link(portOf(t.server));
        try {
          for (const { ask, wanted } of steps) {
            link.socket.write(Buffer.from(bytesOf(ask), "hex"));
            for (const line of wanted) assert.match(await link.answer(), like(line === "< closed" ? "" : bytesOf(line.slice(2))), ask);
          }
        } finally {
          link.socket.destroy();
        }
      });
    }
  },
  { ways: ["plain"] },
);
