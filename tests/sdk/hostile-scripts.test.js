// Hostile scripts (tests/script/hostile), run through the server; tests/unit/script_hostile.c runs all of them in a worker directly. Each
// ends as its first line says, point reads continue meanwhile, the next script runs, and the server survives.

import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { assert, suite, sleep } from "./harness.js";
import { stopwatch } from "./processes.js";
import { binary } from "./server.js";

const folder = new URL("../script/hostile/", import.meta.url);
const sanitized = /asan|tsan/.test(binary);
const limitMs = 150; // of CPU time, instead of the worker's five seconds
const worstMs = sanitized ? 30_000 : 12_000; // of one request, on a shared machine
const worstReadMs = sanitized ? 8_000 : 3_000; // of a concurrent point read
const noKey = { "x-ms-documentdb-partitionkey": "[{}]" }; // for items without the partition key's property

// Scripts that are stopped take their full time, so only some of each kind are run here.
const stoppedHere =
  /^(loop-(endless|catches-all)|promise-(await|then)-loop|regex-(catastrophic|many)|memory-(arrays|map|closures|string-rope|typed-arrays|caught)|calls-|generator-endless|throw-loops)/;

function scripts() {
  return readdirSync(folder).map((file) => {
    const text = readFileSync(new URL(file, folder), "utf8");
    const end = text.indexOf("\n");
    const [, expected, rest] = /^\/\/ expects: (\w+) ?(.*)$/.exec(text.slice(0, end));
    return { id: file.replace(".js", ""), body: text.slice(end + 1), expected, rest };
  });
}

// A worker with a smaller limit, which the server starts instead of its own.
const temporary = mkdtempSync(join(tmpdir(), "tesela-hostile-"));
const program = join(temporary, "worker");
writeFileSync(program, `#!/bin/sh\nexec '${join(dirname(binary), "tesela-script")}' --limit-ms ${limitMs}\n`);
chmodSync(program, 0o755);
after(() => rmSync(temporary, { recursive: true, force: true }));

// A lone surrogate becomes U+FFFD, as in items.
const stored = (value) => (typeof value === "string" ? Buffer.from(value).toString() : value);

function check({ id, expected, rest }, answer) {
  const said = `${id}: ${answer.status} ${answer.text.slice(0, 300)}`;
  if (expected === "done") {
    assert.equal(answer.status, 200, said);
    if (rest === "") assert.equal(answer.text, "", said);
    else assert.deepEqual(answer.json, stored(JSON.parse(rest)), said);
  } else if (expected === "fault") {
    assert.ok(answer.status === 400 || answer.status === 413, said);
    if (answer.status === 400) assert.ok(answer.message.includes(rest), said);
  } else if (expected === "stopped") {
    assert.ok([400, 408, 413].includes(answer.status), said);
  } else {
    assert.ok([200, 400, 408, 413].includes(answer.status), said);
  }
}

async function execute(t, path, script) {
  const made = await t.rest.post(`${path}/sprocs`, { id: script.id, body: script.body });
  assert.equal(made.status, 201, `${script.id}: ${made.text.slice(0, 200)}`);
  const elapsed = stopwatch(t.server.child.pid);
  const answer = await t.rest.post(`${path}/sprocs/${script.id}`, [], { headers: noKey });
  const ms = elapsed();
  assert.ok(ms < worstMs, `${script.id} took ${ms} ms`);
  check(script, answer);
}

// Does point reads, one at a time, until stopped; returns the slowest time.
function readOn(t, path) {
  const state = { going: true, reads: 0, slowest: 0 };
  state.ended = (async () => {
    while (state.going) {
      const elapsed = stopwatch(t.server.child.pid);
      const answer = await t.rest.get(`${path}/docs/there`, { headers: noKey });
      assert.equal(answer.status, 200);
      state.slowest = Math.max(state.slowest, elapsed());
      state.reads++;
      await sleep(5);
    }
  })();
  return state;
}

suite(
  "hostile scripts",
  (t) => {
    t.it("end as they must, and nobody else notices", async () => {
      const path = await t.containerPath();
      assert.equal((await t.rest.post(`${path}/docs`, { id: "there" }, { headers: noKey })).status, 201);
      const reader = readOn(t, path);
      const pending = scripts().filter(({ id, expected }) => expected !== "stopped" || stoppedHere.test(id));
      assert.ok(pending.length > 60);
      const paths = await Promise.all(Array.from({ length: 3 }, () => t.containerPath()));
      const failures = [];
      const worker = async (at) => {
        for (let each; (each = pending.pop()); ) {
          await execute(t, at, each).catch((error) => failures.push(error.message));
        }
      };
      await Promise.all(paths.map(worker));
      reader.going = false;
      await reader.ended;
      assert.deepEqual(failures, []);
      assert.ok(reader.reads > 50, `${reader.reads} reads`);
      assert.ok(reader.slowest < worstReadMs, `a read took ${reader.slowest} ms`);
      await execute(t, path, { id: "after", body: "function () { getContext().getResponse().setBody([1, 2]) }", expected: "done", rest: "[1,2]" });
    });
  },
  { flags: ["--script-worker", program], schemes: ["http"] },
);
