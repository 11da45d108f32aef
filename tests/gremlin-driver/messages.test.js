// Runs messages.cases: requests over a bare WebSocket and the responses that they must get, as text. README.md explains the form.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { assert, emulatorKey, mimes, suite } from "./harness.js";
import { authenticated, Wire } from "./wire.js";

const wildcards = {
  "<any>": () => true,
  "<string>": (v) => typeof v === "string",
  "<number>": (v) => typeof v === "number",
  "<uuid>": (v) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(v),
};

// Why the value is not as wanted; undefined: it is. Objects may have further members, arrays are compared whole.
function differs(value, wanted, path = "") {
  if (typeof wanted === "string" && wildcards[wanted]) return wildcards[wanted](value) ? undefined : `${path} is ${JSON.stringify(value)}, not ${wanted}`;
  if (wanted === null || typeof wanted !== "object") return Object.is(value, wanted) ? undefined : `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(wanted)}`;
  if (value === null || typeof value !== "object" || Array.isArray(value) !== Array.isArray(wanted)) return `${path} is ${JSON.stringify(value)}`;
  if (Array.isArray(wanted) && value.length !== wanted.length) return `${path} has ${value.length} elements: ${JSON.stringify(value)}`;
  for (const [name, one] of Object.entries(wanted)) {
    const why = differs(value[name], one, `${path}/${name}`);
    if (why) return why;
  }
}

// given: scripts that are run first; cases: [{ title, fresh, steps: [{ format, text, line, answers: [{ text }] }] }].
function parse(text) {
  const given = [], cases = [];
  let last;
  for (const [i, line] of text.split("\n").entries()) {
    const [, sign, rest] = /^(given|===|fresh|>|<|\s)\s*(.*)$/.exec(line) ?? [];
    const one = cases.at(-1), step = one?.steps.at(-1);
    if (line === "" || line.startsWith("#")) last = undefined;
    else if (sign === "given") given.push(rest);
    else if (sign === "===") cases.push({ title: rest, steps: [] });
    else if (sign === "fresh") one.fresh = true;
    else if (sign === ">") one.steps.push((last = { format: rest.split(" ", 1)[0], text: rest.replace(/^\S+\s*/, ""), answers: [], line: i + 1 }));
    else if (sign === "<") step.answers.push((last = { text: rest }));
    else if (sign && last) last.text += ` ${rest}`; // a line that goes on
    else throw new Error(`messages.cases:${i + 1}: ${line}`);
  }
  return { given, cases };
}

async function play(wire, values, { format, text, answers, line }) {
  const filled = (of) => of.replace(/\$\{(\w+)\}/g, (_, name) => values[name] ?? assert.fail(`line ${line}: no ${name}`));
  const from = wire.responses.length;
  const message = filled(text);
  wire.send(message, format === "text" ? { text: true } : { mime: mimes[format] ?? format });
  let timer;
  await Promise.race([
    wire.until((all) => all.length >= from + answers.length),
    wire.closed.then((code) => assert.fail(`line ${line}: closed with ${code}`)),
    new Promise((_, fail) => (timer = setTimeout(fail, 20_000, new Error(`line ${line}: ${wire.responses.length - from} of ${answers.length} responses came`)))),
  ]);
  clearTimeout(timer);
  for (const [i, wanted] of answers.entries()) {
    const why = differs(wire.responses[from + i], JSON.parse(filled(wanted.text)));
    assert.equal(why, undefined, `line ${line}, response ${i + 1}:\n${JSON.stringify(wire.responses[from + i])}`);
  }
}

const { given, cases } = parse(readFileSync(new URL("messages.cases", import.meta.url), "utf8"));

suite("messages", (t) => {
  for (const { title, fresh, steps } of cases) {
    t.it(title, async () => {
      const graph = await t.graph();
      for (const script of given) await graph.run(script);
      const sasl = (key) => Buffer.from(`\0/dbs/graphs/colls/${graph.id}\0${key}`).toString("base64");
      const values = { id: randomUUID(), other: randomUUID(), sasl: sasl(emulatorKey), wrong: sasl(Buffer.alloc(64).toString("base64")) };
      const wire = fresh ? await Wire.open(t) : await authenticated(t, graph);
      for (const step of steps) await play(wire, values, step);
      const sent = wire.responses.length;
      if (!fresh) {
        const end = await wire.one("g.inject('end')");
        assert.deepEqual([end.result.data, wire.responses.length], [["end"], sent + 1], "nothing else was sent");
      }
      await wire.close();
    });
  }
});
