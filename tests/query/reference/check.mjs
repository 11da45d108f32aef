// check.mjs — what the service rejects although it is well formed: unknown names, wrong numbers of arguments, aggregates and clauses in the
// wrong place, orders that no index has.

import { aggregates } from "./aggregates.mjs";
import { fail, QueryError } from "./errors.mjs";
import { columnNames, hasAggregate, isVectorOrder } from "./evaluate.mjs";
import { functions } from "./functions.mjs";

export function check(query, container = {}, userFunctions = {}) {
  const calls = userCalls(query);
  if (calls.length > 10) fail("SC2207", query, "The SQL query exceeded the maximum number of user-defined function references. The allowed limit is 10.");
  checkQuery(query, [], false);
  checkOrder(query, container.indexingPolicy ?? {});
  for (const { name, nameEnd } of calls) {
    if (!Object.hasOwn(userFunctions, name)) throw new QueryError("SC2006", `'${name}' is not a recognized user-defined function name.`, nameEnd - name.length, nameEnd);
  }
}

function userCalls(node) {
  if (node === null || typeof node !== "object") return [];
  return [...(node.udf ? [node] : []), ...Object.values(node).flatMap(userCalls)];
}

function checkQuery(query, outer, isInner) {
  if (isInner) checkInner(query);
  const names = checkSources(query, outer);
  checkSelection(query);
  const parts = [...query.select.map(({ expr }) => expr), query.where, ...query.group];
  for (const part of parts) if (part) checkExpr(part, names);
  for (const { expr } of query.order) checkExpr(expr, names, query.rank ? "rank" : undefined);
  checkGroups(query);
  checkRank(query, isInner);
}

function checkInner(query) {
  if (query.rank) fail("SC2228", query.orderClause, "The ORDER BY RANK clause is not supported in subqueries.");
  if (query.order.length) fail("SC2202", query.orderClause, "'ORDER BY' is not supported in subqueries.");
  if (query.top) fail("SC2203", query.top, "'TOP' is not supported in subqueries.");
  if (query.offset) fail("SC2204", query.offsetClause, "'OFFSET LIMIT' clause is not supported in subqueries.");
}

// Returns the names that expressions may use: those of this FROM and of the enclosing queries.
function checkSources(query, outer) {
  const own = [];
  query.from.forEach((source, i) => {
    const known = [...outer, ...own];
    if (source.query) checkQuery(source.query, known, true);
    else if (source.expr) checkExpr(source.expr, known);
    else if ((i > 0 || outer.length > 0) && !known.includes(source.root.name)) unresolved(source.root);
    if (source.alias !== undefined && own.includes(source.alias)) fail("SC2011", source, `The input alias '${source.alias}' is specified more than once in the FROM clause.`);
    if (source.alias !== undefined) own.push(source.alias);
  });
  return [...outer, ...own];
}

function unresolved({ name, start, end }) {
  throw new QueryError("SC2001", `Identifier '${name}' could not be resolved.`, start, end);
}

function checkSelection(query) {
  if (query.top?.count.kind === "literal") {
    const { count } = query.top;
    if (!Number.isInteger(count.value) || count.value > 0xffffffff) fail("SC2060", count, "The count value provided for a TOP clause must be an integer.");
  }
  if (query.star && query.group.length) fail("SC2041", query.star, "'SELECT *' is not allowed with GROUP BY.");
  if (query.star && query.from.length !== 1) fail("SC2040", query.star, "'SELECT *' is only valid with a single input set.");
  if (query.value) return;
  const names = columnNames(query);
  const twice = names.findIndex((name, i) => names.indexOf(name) < i);
  if (twice >= 0) fail("SC2022", query.select[twice], `Duplicate property name '${names[twice]}' specified in the select list.`);
}

// ---- expressions ----

function inner(node) {
  return Object.values(node).flatMap((one) => (Array.isArray(one) ? one.flatMap((item) => (item?.kind ? [item] : item?.expr ? [item.expr] : [])) : one?.kind ? [one] : []));
}

const special = { NaN: true, Infinity: true };

// place: "rank" directly below ORDER BY RANK, "aggregate" inside an aggregate.
function checkExpr(node, names, place) {
  if (node.kind === "subquery") return checkSubquery(node, names, place);
  if (node.kind === "name" && !names.includes(node.name) && !Object.hasOwn(special, node.name)) unresolved(node);
  if (node.kind === "call") checkCall(node, place);
  if (node.kind === "index" && namesSomething(node.at)) fail("SC2990", node, "The specified query includes 'member indexer' which is currently not supported.");
  const isAggregate = node.kind === "call" && !node.udf && node.name.toUpperCase() in aggregates;
  const isScore = node.kind === "call" && node.name.toUpperCase() === "RRF" && place === "rank";
  for (const one of inner(node)) checkExpr(one, names, isAggregate ? "aggregate" : isScore ? "rank" : place === "aggregate" ? place : undefined);
}

const namesSomething = (node) => ["name", "subquery"].includes(node.kind) || inner(node).some(namesSomething);

function checkSubquery(node, names, place) {
  if (place === "aggregate") fail("SC2101", node, nested);
  checkQuery(node.query, names, true);
}

const nested = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";

function checkCall(node, place) {
  const name = node.name.toUpperCase();
  const isAggregate = name in aggregates;
  if (node.udf) return;
  if (isAggregate && node.args.some((arg) => holdsAggregate(arg))) fail("SC2101", node, nested);
  const found = isAggregate ? { least: 1, most: 1 } : functions.get(name);
  if (name === "FULLTEXTSCORE" && place !== "rank") fail("SC2240", node, "The FullTextScore function is only allowed in the ORDER BY RANK clause.");
  if (!found || (name === "RRF" && place !== "rank")) {
    throw new QueryError("SC2005", `'${node.name}' is not a recognized built-in function name.`, node.start, node.nameEnd);
  }
  if (name === "RRF") return;
  if (name === "VECTORDISTANCE") checkOptions(node.args[3]);
  if (node.args.length < found.least || node.args.length > found.most) fail("SC2050", node, `The ${node.name} function requires ${argumentCount(found)} argument(s).`);
}

function checkOptions(options) {
  const found = options?.kind === "object" ? options.members.find((one) => one.name === "searchListSizeMultiplier")?.expr : undefined;
  const value = found?.kind === "unary" && found.operator === "-" ? -found.operand.value : found?.value;
  if (typeof value === "number" && !(value >= 1 && value <= 100)) fail("SC2213", options, `The value ${value} is outside the supported range. The value must be between 1 and 100.`);
}

function holdsAggregate(node) {
  return node.kind === "subquery" || hasAggregate(node) || inner(node).some(holdsAggregate);
}

function argumentCount({ least, most }) {
  if (most === 255) return `at least ${least}`;
  return least === most ? String(least) : `${least} to ${most}`;
}

// ---- groups ----

// A path as its steps, so that c.a and c["a"] are equal.
function path(node) {
  if (node.kind === "name") return node.name;
  if (node.kind === "member") {
    const of = path(node.of);
    return of === undefined ? undefined : `${of}.${node.name}`;
  }
  if (node.kind === "index" && node.at.kind === "literal") {
    const of = path(node.of);
    return of === undefined ? undefined : `${of}[${node.at.value}]`;
  }
}

// An expression without its locations, to compare two of them.
function canonical(node) {
  const found = path(node);
  if (found !== undefined) return found;
  const skip = new Set(["start", "end", "nameEnd", "level"]);
  const plain = (one) => {
    if (Array.isArray(one)) return one.map(plain);
    if (one === null || typeof one !== "object") return one === undefined ? null : one;
    if (one.kind && path(one) !== undefined) return path(one);
    return Object.fromEntries(Object.entries(one).filter(([name]) => !skip.has(name)).map(([name, inside]) => [name, plain(inside)]));
  };
  return JSON.stringify(plain(node));
}

// With GROUP BY or an aggregate, every property outside of aggregates must be in GROUP BY.
function checkGroups(query) {
  if (query.group.length === 0 && !query.select.some(({ expr }) => hasAggregate(expr))) return;
  const known = new Set(query.group.map(canonical));
  for (const { expr } of query.select) checkGrouped(expr, known, query);
}

function checkGrouped(node, known, query) {
  for (let one = node; one; one = one.of) if (known.has(canonical(one))) return; // or a path below one
  if (node.kind === "call" && !node.udf && node.name.toUpperCase() in aggregates) return;
  const found = path(node);
  if (found !== undefined && query.from.some(({ alias }) => alias === found.split(/[.[]/)[0])) {
    const why = "is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.";
    fail("SC2102", node, `Property reference '${found}' ${why}`);
  }
  for (const one of inner(node)) checkGrouped(one, known, query);
}

// ---- orders ----

function checkRank(query) {
  if (!query.rank) return;
  const { expr, directed } = query.order[0];
  if (directed) throw new QueryError(undefined, "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.");
  const name = expr.name.toUpperCase();
  const parts = name === "RRF" ? expr.args.filter((arg) => arg.kind === "call") : [expr];
  const scores = ["FULLTEXTSCORE", "VECTORDISTANCE"];
  if (!parts.every((part) => scores.includes(part.name.toUpperCase())) || (name === "RRF" && parts.length < 2)) {
    fail("SC2221", query.orderClause, "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.");
  }
  const weights = name === "RRF" ? expr.args.find((arg) => arg.kind === "array") : undefined;
  if (weights && weights.items.length !== parts.length) fail("SC2229", query.orderClause, "The last parameter of the RRF function is an optional array of weights.");
  if (weights?.items.some(({ kind, value }) => kind === "literal" && typeof value !== "number")) fail("SC2229", query.orderClause, "The last parameter of the RRF function is an optional array of weights.");
  if (query.from[0]?.query) fail("SC2225", query.from[0], "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.");
  if (query.from.length > 1) fail("SC2224", { start: query.from[0].start, end: query.from.at(-1).end }, "The JOIN operator is not allowed with the ORDER BY RANK clause.");
}

// ORDER BY needs paths of the item, each in the index; several need a composite index.
function checkOrder(query, policy) {
  if (query.rank || query.order.length === 0) return;
  if (isVectorOrder(query)) {
    if (query.order[0].directed) throw new QueryError(undefined, "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.");
    return;
  }
  const root = query.from[0];
  const paths = query.order.map(({ expr }) => path(expr));
  const isOfSubquery = (one) => query.from.some(({ alias, query: inside }) => inside && alias === one.split(/[.[]/)[0]);
  if (paths.includes(undefined) || !root || root.query || paths.some(isOfSubquery)) {
    throw new QueryError(2206, "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.");
  }
  if (paths.some((one) => one.split(/[.[]/)[0] !== root.alias)) throw new QueryError(undefined, "Order-by over correlated collections is not supported.");
  const steps = paths.map((one) => "/" + one.split(".").slice(1).join("/"));
  if (steps.length > 1) return checkComposite(query, steps, policy.compositeIndexes ?? []);
  if (isExcluded(steps[0], policy)) throw new QueryError(undefined, "The index path corresponding to the specified order-by item is excluded.");
}

function checkComposite(query, steps, indexes) {
  const wanted = query.order.map(({ descending }) => (descending ? "descending" : "ascending"));
  const fits = (index) => {
    if (index.length !== steps.length || index.some(({ path: one }, i) => one !== steps[i])) return false;
    const same = index.map(({ order = "ascending" }, i) => order === wanted[i]);
    return same.every(Boolean) || same.every((one) => !one);
  };
  if (!indexes.some(fits)) throw new QueryError(undefined, "The order by query does not have a corresponding composite index that it can be served from.");
}

// The longest path in the policy that covers this one decides.
function isExcluded(step, { includedPaths = [{ path: "/*" }], excludedPaths = [] }) {
  const covers = ({ path: one }) => {
    const bare = one.replace(/\/[?*]$/, "");
    if (one.endsWith("/?") ? step === bare : step === bare || step.startsWith(`${bare}/`)) return bare.length * 2 + (one.endsWith("/?") ? 1 : 0) + 1;
    return 0;
  };
  const best = (paths) => Math.max(0, ...paths.map(covers));
  return best(excludedPaths) >= best(includedPaths);
}
