// evaluate.mjs — evaluates a query over a list of items, as simply as possible: every clause maps a list to a list.

import { aggregates } from "./aggregates.mjs";
import { fail, QueryError } from "./errors.mjs";
import { functions } from "./functions.mjs";
import { like } from "./like.mjs";
import { compare, element, equal, member, typeOf } from "./values.mjs";
import { rank } from "./rank.mjs";

// context: { items, parameters, now, random }. Rows may hold undefined; values.shown() converts them to JSON.
export function evaluate(query, context) {
  return rowsOf(query, context, undefined);
}

// ---- clauses ----

// A scope holds the values of the aliases of one FROM, and the enclosing scope.
class Scope {
  constructor(outer) {
    this.outer = outer;
    this.values = new Map();
  }
  with(alias, value) {
    const made = new Scope(this.outer);
    made.values = new Map(this.values);
    made.values.set(alias ?? Symbol("unnamed"), value);
    return made;
  }
  has(alias) {
    return this.values.has(alias) || Boolean(this.outer?.has(alias));
  }
  get isEmpty() {
    return this.values.size === 0 && (this.outer?.isEmpty ?? true);
  }
  get(alias) {
    return this.values.has(alias) ? this.values.get(alias) : this.outer?.get(alias);
  }
}

function rowsOf(query, context, outer) {
  const all = from(query, context, outer);
  let scopes = all;
  if (query.where) scopes = scopes.filter((scope) => value(query.where, scope, context) === true);
  if (query.rank || isVectorOrder(query)) scopes = rank(scopes, all, query, (node, scope) => value(node, scope, context));
  else if (query.order.length) scopes = sorted(scopes, query, context);
  let rows = isGrouped(query) ? grouped(scopes, query, context, outer) : scopes.map((scope) => project(query, scope, context));
  rows = rows.filter((row) => row !== undefined);
  if (query.distinct) rows = rows.filter((row, i) => rows.findIndex((other) => equal(other, row)) === i);
  return limited(rows, query, context);
}

// ORDER BY VectorDistance(…) means nearest first, whether small or large numbers are near.
export function isVectorOrder({ order }) {
  return order.length === 1 && order[0].expr.kind === "call" && order[0].expr.name.toUpperCase() === "VECTORDISTANCE";
}

function from(query, context, outer) {
  let scopes = [new Scope(outer)];
  query.from.forEach((source, i) => {
    scopes = scopes.flatMap((scope) => {
      const values = sourceValues(source, i === 0, scope, context);
      const each = source.each ? values.flatMap((one) => (Array.isArray(one) ? one : [])) : values;
      return each.filter((one) => one !== undefined).map((one) => scope.with(source.alias, one));
    });
  });
  return scopes;
}

// The first name in FROM is a known alias, or the container itself if there is no enclosing query.
function sourceValues(source, isFirst, scope, context) {
  if (source.query) return rowsOf(source.query, context, scope);
  if (source.expr) return [value(source.expr, scope, context)];
  const roots = scope.has(source.root.name) ? [scope.get(source.root.name)] : isFirst && scope.isEmpty ? context.items : [];
  return roots.map((root) => source.steps.reduce((at, step) => element(at, step), root));
}

// Ties come in item order, or reversed if the first direction is descending.
function sorted(scopes, query, context) {
  let item = 0;
  const rootOf = (scope) => scope?.values.values().next().value;
  const keyed = scopes.map((scope, i) => ({
    scope,
    item: i && rootOf(scope) !== rootOf(scopes[i - 1]) ? ++item : item,
    keys: query.order.map(({ expr }) => value(expr, scope, context)),
  }));
  keyed.sort((a, b) => {
    for (let i = 0; i < query.order.length; i++) {
      const found = compare(a.keys[i], b.keys[i]);
      if (found) return query.order[i].descending ? -found : found;
    }
    return query.order[0].descending ? b.item - a.item : a.item - b.item;
  });
  return keyed.map(({ scope }) => scope);
}

function project(query, scope, context, group) {
  if (query.star) return [...scope.values.values()][0];
  if (query.value) return value(query.select[0].expr, scope, context, group);
  const names = columnNames(query);
  return Object.fromEntries(query.select.map(({ expr }, i) => [names[i], value(expr, scope, context, group)]).filter(([, one]) => one !== undefined));
}

// AS name, else the last name of a path, else $1, $2, ….
export function columnNames(query) {
  let unnamed = 0;
  return query.select.map(({ expr, alias }) => alias ?? (expr.kind === "name" || expr.kind === "member" ? expr.name : `$${++unnamed}`));
}

function limited(rows, query, context) {
  if (query.top) rows = rows.slice(0, count(query.top.count, "SC2060", context));
  if (!query.offset) return rows;
  const offset = count(query.offset, "SC2062", context);
  return rows.slice(offset, offset + count(query.limit, "SC2061", context));
}

function count(node, code, context) {
  const found = value(node, undefined, context);
  if (!Number.isInteger(found) || found < 0) fail(code, node, "The count value provided for a TOP clause must be an integer.");
  return found;
}

// ---- groups ----

function isGrouped(query) {
  return query.group.length > 0 || query.select.some(({ expr }) => hasAggregate(expr));
}

// Whether the expression calls an aggregate of its own query (not of a subquery).
export function hasAggregate(node) {
  if (node === null || typeof node !== "object" || node.kind === "query") return false;
  if (node.kind === "call" && !node.udf && node.name.toUpperCase() in aggregates) return true;
  return Object.values(node).some((inner) => (Array.isArray(inner) ? inner.some(hasAggregate) : hasAggregate(inner)));
}

// Without GROUP BY all rows form one group, even if there are none.
function grouped(scopes, query, context, outer) {
  const groups = [];
  for (const scope of scopes) {
    const keys = query.group.map((node) => value(node, scope, context));
    const found = groups.find((group) => group.keys.every((key, i) => equal(key, keys[i])));
    if (found) found.scopes.push(scope);
    else groups.push({ keys, scopes: [scope] });
  }
  if (query.group.length === 0 && groups.length === 0) groups.push({ keys: [], scopes: [] });
  return groups.map((group) => project(query, group.scopes[0] ?? new Scope(outer), context, group));
}

// ---- expressions ----

// group: the rows for aggregates.
function value(node, scope, context, group) {
  return kinds[node.kind](node, scope, context, group);
}

const kinds = {
  literal: (node) => node.value,
  parameter: (node, scope, context) => context.parameters[node.name],
  name: (node, scope) => (scope?.has(node.name) ? scope.get(node.name) : constants[node.name]),
  member: (node, ...rest) => member(value(node.of, ...rest), node.name),
  index: (node, ...rest) => element(value(node.of, ...rest), value(node.at, ...rest)),
  unary: (node, ...rest) => unary[node.operator](value(node.operand, ...rest)),
  binary: (node, ...rest) => combined(node, value(node.left, ...rest), rest),
  conditional: (node, ...rest) => (value(node.test, ...rest) === true ? value(node.yes, ...rest) : value(node.no, ...rest)),
  coalesce: (node, ...rest) => value(node.left, ...rest) ?? coalesced(node, rest),
  between: (node, ...rest) => between(node, value(node.left, ...rest), value(node.low, ...rest), value(node.high, ...rest)),
  in: (node, ...rest) => inList(node, value(node.left, ...rest), node.items.map((item) => value(item, ...rest))),
  like: (node, ...rest) => negate(node, like(value(node.left, ...rest), value(node.pattern, ...rest), node.escape)),
  call: (node, ...rest) => call(node, ...rest),
  array: (node, ...rest) => node.items.map((item) => value(item, ...rest)),
  object: (node, ...rest) => Object.fromEntries(node.members.map(({ name, expr }) => [name, value(expr, ...rest)]).filter(([, one]) => one !== undefined)),
  subquery: (node, scope, context) => subqueries[node.how](node, scope, context),
};

const constants = { NaN, Infinity };

// After false AND and true OR nothing is evaluated, because a user-defined function there may throw.
function combined(node, left, rest) {
  if (left === { AND: false, OR: true }[node.operator]) return left;
  return binary[node.operator](left, value(node.right, ...rest));
}

// null ?? x is null: only undefined is replaced.
function coalesced(node, rest) {
  return value(node.left, ...rest) === null ? null : value(node.right, ...rest);
}

const negate = (node, truth) => (node.negated ? unary.NOT(truth) : truth);

function between(node, one, low, high) {
  return negate(node, binary.AND(binary[">="](one, low), binary["<="](one, high)));
}

function inList(node, one, items) {
  return one === undefined ? undefined : negate(node, items.some((item) => item !== undefined && equal(item, one)));
}

const number = (operation) => (...operands) => (operands.every((one) => typeof one === "number") ? operation(...operands) : undefined);

const unary = {
  "-": number((a) => -a),
  "+": number((a) => a),
  "~": number((a) => ~a),
  NOT: (a) => (typeof a === "boolean" ? !a : undefined),
};

// Only numbers, strings, booleans and nulls have an order, each type by itself.
const ordered = (test) => (a, b) => (typeOf(a) === typeOf(b) && ["null", "boolean", "number", "string"].includes(typeOf(a)) ? test(compare(a, b)) : undefined);
const equality = (test) => (a, b) => (a === undefined || b === undefined ? undefined : test(equal(a, b)));

const binary = {
  "*": number((a, b) => a * b),
  "/": number((a, b) => a / b),
  "%": number((a, b) => a % b),
  "+": number((a, b) => a + b),
  "-": number((a, b) => a - b),
  "&": number((a, b) => a & b),
  "|": number((a, b) => a | b),
  "^": number((a, b) => a ^ b),
  "<<": number((a, b) => a << b),
  ">>": number((a, b) => a >> b),
  ">>>": number((a, b) => a >>> b),
  "||": (a, b) => (typeof a === "string" && typeof b === "string" ? a + b : undefined),
  "=": equality((same) => same),
  "!=": equality((same) => !same),
  "<": ordered((order) => order < 0),
  "<=": ordered((order) => order <= 0),
  ">": ordered((order) => order > 0),
  ">=": ordered((order) => order >= 0),
  AND: (a, b) => (a === false || b === false ? false : a === true && b === true ? true : undefined),
  OR: (a, b) => (a === true || b === true ? true : a === false && b === false ? false : undefined),
};

function call(node, scope, context, group) {
  const aggregate = !node.udf && aggregates[node.name.toUpperCase()];
  if (aggregate) return aggregate(group.scopes.map((one) => value(node.args[0], one, context)));
  if (node.udf) return callUser(context.functions.get(node.name), node.args.map((arg) => value(arg, scope, context, group)));
  const { apply, seesUndefined } = functions.get(node.name.toUpperCase());
  const args = node.args.map((arg) => value(arg, scope, context, group));
  if (!seesUndefined && args.includes(undefined)) return undefined;
  return apply(args, context);
}

// Arguments and results are passed as JSON: values without JSON become undefined, numbers that are not finite become null.
function callUser(call, args) {
  try {
    const text = JSON.stringify(call(...args.map((one) => (one === undefined ? one : JSON.parse(JSON.stringify(one))))));
    return text === undefined ? undefined : JSON.parse(text);
  } catch (error) {
    throw new QueryError(undefined, `Encountered exception while executing Javascript. Exception = ${error}`);
  }
}

const subqueries = {
  scalar(node, scope, context) {
    const rows = rowsOf(node.query, context, scope);
    if (rows.length > 1) throw new QueryError(undefined, "The cardinality of a scalar subquery result set cannot be greater than one.");
    return rows[0];
  },
  exists: (node, scope, context) => rowsOf(node.query, context, scope).length > 0,
  array: (node, scope, context) => rowsOf(node.query, context, scope),
  first: (node, scope, context) => rowsOf(node.query, context, scope)[0],
  last: (node, scope, context) => rowsOf(node.query, context, scope).at(-1),
  // ALL(… WHERE f) is NOT EXISTS(… WHERE NOT f).
  all(node, scope, context) {
    const test = node.query.where ?? { kind: "literal", value: true };
    return rowsOf({ ...node.query, where: { kind: "unary", operator: "NOT", operand: test } }, context, scope).length === 0;
  },
};
