// runner.mjs — runs the cases of this folder against the reference implementation (reference/), or against a server. Uses Node.js's own
// modules, and the official SDK of tests/sdk for several ranges.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { judgeErrors, judgeRows, parseCases } from "./format.mjs";
import { QueryError, run } from "./reference/index.mjs";

const folder = dirname(fileURLToPath(import.meta.url));
const parametersOf = (one) => Object.entries(one.parameters).map(([name, value]) => ({ name, value }));

// The judge functions return undefined if the case passes, "skip" if it cannot be run that way, otherwise what is wrong.

function judgeReference(one) {
  try {
    const rows = run({ query: one.query, parameters: one.parameters, items: one.given.items, container: one.given.container, functions: one.given.functions });
    return one.expected.errors ? `it answered ${JSON.stringify(rows)}` : judgeRows(one.expected, rows);
  } catch (error) {
    if (!(error instanceof QueryError)) return error.stack;
    if (!one.expected.errors) return `${error.code} ${error.start}-${error.end}: ${error.message}`;
    const found = error.code === undefined ? [] : [{ code: error.code, location: { start: error.start, end: error.end } }];
    return judgeErrors(one.expected, found, error.message);
  }
}

async function judgeServer(one, bench) {
  const { errorsOf } = await import("./server.mjs");
  const answer = await bench.ask(one.given, one.query, parametersOf(one));
  if (answer.rows) {
    if (one.expected.errors) return `it answered ${JSON.stringify(answer.rows)}`;
    const wrong = judgeRows(one.expected, answer.rows);
    const isDear = one.expected.charge !== undefined && Math.abs(one.expected.charge - answer.charge) > 0.005;
    return wrong ?? (isDear ? `the charge is ${answer.charge}, not ${one.expected.charge}` : undefined);
  }
  const { errors, message } = errorsOf(answer.body);
  if (!one.expected.errors) return `${answer.status} ${message}`;
  if (answer.status !== 400) return `the status is ${answer.status}, not 400: ${message}`;
  return judgeErrors(one.expected, errors, message);
}

// With several ranges, rows have a fixed order only if the query has an ORDER BY. Skips queries that would answer the same as with one range:
// those that fail, and those that read no items.
async function judgeRanges(one, bench) {
  if (one.expected.errors || one.isValue || one.options.only === "one range" || !/\bfrom\b/i.test(one.query)) return "skip";
  const { rows } = await bench.askSdk(one.given, one.query, parametersOf(one));
  return judgeRows(one.expected, rows, !/\border\s+by\b/i.test(one.query));
}

// ---- running ----

async function withServer(ranges, use) {
  const { Bench, Server } = await import("./server.mjs");
  const server = await Server.start();
  const bench = await new Bench(server, { ranges }).open();
  try {
    await use(bench);
  } finally {
    bench.close();
    await server.stop();
  }
}

function report(file, one, why) {
  console.log(`FAIL ${file}:${one.line}: ${one.title}\n  ${why}\n  ${one.query.replaceAll("\n", "\n  ")}`);
  if (one.options.doubt) console.log(`  (in doubt: ${one.options.doubt})`);
}

async function runFile(path, judge, tally) {
  const file = relative(process.cwd(), path);
  for (const one of parseCases(readFileSync(path, "utf8"), file)) {
    let why;
    try {
      why = await judge(one);
    } catch (error) {
      why = error.code === undefined ? error.stack : error.message; // the SDK's errors have a code
    }
    if (why && why !== "skip") report(file, one, why);
    tally[why === "skip" ? "skipped" : why ? "failed" : "passed"]++;
    if (why && why !== "skip" && one.options.doubt) tally.doubtful++;
  }
}

export function caseFiles() {
  return readdirSync(folder).filter((name) => name.endsWith(".query")).sort().map((name) => join(folder, name));
}

function count(paths) {
  let total = 0;
  for (const path of paths) {
    const cases = parseCases(readFileSync(path, "utf8"), path);
    total += cases.length;
    console.log(`${String(cases.length).padStart(6)} ${relative(folder, path)}`);
  }
  console.log(`${String(total).padStart(6)} cases`);
}

export async function main(args) {
  const files = args.filter((arg) => !arg.startsWith("--"));
  const paths = files.length ? files.map((file) => (existsSync(file) ? file : join(folder, file))) : caseFiles();
  if (args.includes("--count")) return count(paths);
  const tally = { passed: 0, failed: 0, skipped: 0, doubtful: 0 };
  const all = async (judge) => {
    for (const path of paths) await runFile(path, judge, tally);
  };
  if (args.includes("--reference")) await all(judgeReference);
  else if (args.includes("--ranges")) await withServer(4, (bench) => all((one) => judgeRanges(one, bench)));
  else await withServer(1, (bench) => all((one) => judgeServer(one, bench)));
  console.log(`${tally.passed} tests passed`);
  if (tally.skipped) console.log(`${tally.skipped} cases are for one range only`);
  if (tally.failed) console.log(`${tally.failed} tests failed${tally.doubtful ? `, ${tally.doubtful} of them in doubt` : ""}`);
  process.exitCode = tally.failed ? 1 : 0;
}
