#!/usr/bin/env node
// random.mjs — random queries over random items: the server and the reference implementation (reference/) must agree.
//
//   random.mjs [--seed N] [--queries N] [--ranges] [--pages] [--functions] [--forever]     against a fresh server
//   random.mjs --self [--seed N] [--queries N]                              no server: evaluates queries, prints what they covered
//   random.mjs --seed N --show                                              prints the queries
//
// --functions passes properties through a user-defined function. --pages uses pages of a few rows, to test continuations; half of the
// queries do so anyway. --ranges runs queries through the SDK over four ranges. Queries that the SDK itself cannot merge (orders of mixed
// types, DISTINCT of null, aggregates of mixed types) are skipped and counted.
//
// If they disagree, the query is made smaller and printed as a case for a .query file, with the rows of the reference implementation; the
// exit code is 1.

import { pathToFileURL } from "node:url";
import { fits, judgeRows } from "./format.mjs";
import { container, makeItems, makeQuery, Random, render, shrinks, text as written } from "./generate.mjs";
import { parse, QueryError, run } from "./reference/index.mjs";

const queriesPerSet = 40;

// With --functions the first ten properties that a query names are passed through a user-defined function.
const functions = process.argv.includes("--functions") ? { same: "function (x) { return x; }" } : {};

function text(query) {
  const whole = written(query);
  let left = functions.same && !/\bORDER BY\b/.test(whole) ? 10 : 0;
  return whole.replace(/(?<!\bIN )\bc\.\w+\b(?![.[(\w])/g, (path) => (left-- > 0 ? `udf.same(${path})` : path));
}

function option(args, name, otherwise) {
  const at = args.indexOf(`--${name}`);
  return at < 0 ? otherwise : Number(args[at + 1]);
}

// { rows } or { error }; undefined if the result cannot be compared (NaN and infinities have no JSON).
function reference(query, items) {
  try {
    const rows = bare(run({ query: text(query), parameters: query.parameters, items, container, functions }));
    return isPlain(rows) ? { rows } : undefined;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { error };
  }
}

// Without system properties, which differ on each side.
const system = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);
function bare(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(bare);
  const isItem = Object.hasOwn(value, "_self");
  return Object.fromEntries(Object.entries(value).filter(([name]) => !isItem || !system.has(name)).map(([name, one]) => [name, bare(one)]));
}

function isPlain(value) {
  if (typeof value === "number") return Number.isFinite(value) && Math.abs(value) < 1e15;
  return value === null || typeof value !== "object" || Object.values(value).every(isPlain);
}

async function serverAnswer(bench, query, items, { ranges, pages }, r) {
  const given = bench.given?.items === items ? bench.given : (bench.given = { items, container, functions });
  const parameters = Object.entries(query.parameters).map(([name, value]) => ({ name, value }));
  const pageSize = pages || r.chance(0.5) ? 1 + r.below(5) : undefined;
  if (!ranges) return shownBare(await bench.ask(given, text(query), parameters, { pageSize }));
  try {
    return shownBare(await bench.askSdk(given, text(query), parameters, { maxItemCount: pageSize }));
  } catch (error) {
    return { status: error.code, body: error.message };
  }
}

const shownBare = (answer) => (answer.rows ? { rows: bare(answer.rows) } : answer);

// Over ranges: what the SDK merges differently than the language says. It throws without a status, drops falsy values from DISTINCT, and
// omits ranges whose aggregates are undefined.
const isKey = ({ group }, expr) => group.some((key) => render(key) === render(expr));

function isBeyondSdk(query, items, expected, found) {
  if (!found.rows) return found.status === undefined;
  if (query.distinct && expected.rows?.some((row) => !row)) return true;
  if (!query.group) return false;
  const groups = reference({ ...query, value: true, columns: [{ expr: "COUNT(1)" }] }, items);
  if (query.value) return expected.rows?.length !== groups?.rows?.length;
  return !expected.rows?.every((row) => query.columns.every(({ expr, alias }) => isKey(query, expr) || Object.hasOwn(row, alias)));
}

// How the two results differ, or undefined.
function difference(query, expected, found, { ranges }) {
  if (expected.error) return found.rows ? `answered, though ${expected.error.code} ${expected.error.message}` : undefined;
  if (!found.rows) return `${found.status} ${found.body}`;
  const isLoose = query.unordered || (ranges && !query.order);
  const isCut = ranges && !query.order && (query.top !== undefined || query.offset);
  if (isCut) return found.rows.length === expected.rows.length ? undefined : `${found.rows.length} rows, not ${expected.rows.length}`;
  return judgeRows({ order: "ordered", rows: expected.rows }, found.rows, isLoose);
}

// Makes the query and the items smaller as long as the results still differ.
async function shrink(query, items, differs) {
  for (let steps = 0; steps < 400; ) {
    let isSmaller = false;
    for (const [less, fewer] of shrinks(query, items)) {
      if (++steps > 400) break;
      if (!(await differs(less, fewer))) continue;
      [query, items, isSmaller] = [less, fewer, true];
      break;
    }
    if (!isSmaller) break;
  }
  return [query, items];
}

function asCase(query, items, expected) {
  const lines = ["given items", ...items.map((item) => JSON.stringify(item)), "", "=== found by random.mjs", text(query)];
  for (const [name, value] of Object.entries(query.parameters)) lines.push(`${name} = ${JSON.stringify(value)}`);
  if (expected.error) lines.push(`--- error ${expected.error.code ?? ""}`.trimEnd());
  else lines.push(query.unordered ? "--- unordered" : "---", ...expected.rows.map((row) => JSON.stringify(row)));
  return lines.join("\n");
}

export async function compare(bench, seed, options, tally) {
  const r = new Random(seed);
  const items = makeItems(r);
  for (let i = 0; i < queriesPerSet; i++) {
    const query = makeQuery(r, options);
    const expected = reference(query, items);
    if (!expected) continue;
    tally.asked++;
    const found = await serverAnswer(bench, query, items, options, r);
    const why = difference(query, expected, found, options);
    if (!why) continue;
    if (options.ranges && isBeyondSdk(query, items, expected, found)) {
      tally.beyond++;
      continue;
    }
    tally.differing++;
    const differs = async (less, fewer) => {
      const wanted = reference(less, fewer);
      const answer = wanted && !wanted.error ? await serverAnswer(bench, less, fewer, options, r) : undefined;
      if (!answer || (options.ranges && isBeyondSdk(less, fewer, wanted, answer))) return false;
      return difference(less, wanted, answer, options);
    };
    const [least, fewest] = expected.error ? [query, items] : await shrink(query, items, differs);
    const wanted = reference(least, fewest);
    console.log(`DIFFERENT, seed ${seed}: ${difference(least, wanted, await serverAnswer(bench, least, fewest, options, r), options) ?? why}\n${asCase(least, fewest, wanted)}\n`);
  }
}

// Without a server: every query must parse and evaluate; counts what was covered.
function alone(seed, queries, isShown) {
  const reached = new Map();
  const tally = { queries: 0, errors: 0, empty: 0, rows: 0, left: 0 };
  const note = (what) => reached.set(what, (reached.get(what) ?? 0) + 1);
  for (let set = seed; tally.queries < queries; set++) {
    const r = new Random(set);
    const items = makeItems(r);
    for (let i = 0; i < queriesPerSet && tally.queries < queries; i++) {
      const query = makeQuery(r);
      if (isShown) console.log(text(query));
      const answer = reference(query, items);
      tally.queries++;
      if (!answer) tally.left++;
      else if (answer.error) {
        tally.errors++;
        note(`error ${answer.error.code ?? answer.error.message}`);
      } else {
        tally.rows += answer.rows.length;
        if (answer.rows.length === 0) tally.empty++;
        if (!answer.rows.every((row) => fits(row, row))) throw new Error("a row is not like itself");
      }
      walk(parse(text(query)), (node) => note(nameOf(node)));
    }
  }
  console.log(tally);
  console.log([...reached].sort((a, b) => b[1] - a[1]).map(([what, n]) => `${what} ${n}`).join(", "));
}

function nameOf(node) {
  if (node.kind === "call") return `${node.name.toUpperCase()}()`;
  return node.operator ?? node.how ?? node.kind;
}

function walk(node, visit) {
  if (node === null || typeof node !== "object") return;
  if (node.kind) visit(node);
  for (const one of Object.values(node)) walk(one, visit);
}

async function main(args) {
  const seed = option(args, "seed", Date.now() % 1_000_000);
  const queries = option(args, "queries", 2000);
  if (args.includes("--self") || args.includes("--show")) return alone(seed, queries, args.includes("--show"));
  const { Bench, Server } = await import("./server.mjs");
  const options = { ranges: args.includes("--ranges"), pages: args.includes("--pages") };
  const server = await Server.start();
  const bench = await new Bench(server, { ranges: options.ranges ? 4 : 1 }).open();
  const tally = { asked: 0, differing: 0, beyond: 0 };
  for (let set = seed; args.includes("--forever") || tally.asked < queries; set++) {
    await compare(bench, set, options, tally);
    if (tally.differing >= 10) break;
  }
  bench.close();
  await server.stop();
  if (tally.beyond) console.log(`${tally.beyond} queries are beyond what the SDK merges`);
  console.log(tally.differing ? `${tally.differing} tests failed` : `${tally.asked} tests passed`);
  process.exitCode = tally.differing ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(process.argv.slice(2));
