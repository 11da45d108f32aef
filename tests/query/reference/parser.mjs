// parser.mjs — parses a query into a tree, by precedence climbing (a Pratt parser). A node is a plain object: { kind, start, end, … }.
//
//   query    select: [{ expr, alias }], value, star, distinct, top, from: [source], where, group, order: [{ expr, descending }], rank, offset, limit
//   source   { alias, each, path | query | expr }: `each` is x IN …
//   literal, parameter, name, member (of, name), index (of, at), unary, binary, conditional, coalesce, between, in, like, call, array, object,
//   subquery (how: scalar, exists, array, all, first, last)

import { QueryError } from "./errors.mjs";
import { tokens } from "./lexer.mjs";

// Binding powers of operators. Bitwise and additive operators share a level, as do comparisons and shifts, and NOT binds like the other
// unary operators: this is the service's grammar (see LANGUAGE.md).
const conditionalPower = 1;
const coalescePower = 2;
const betweenPower = 3; // looser than AND: "a BETWEEN 1 AND 2 AND b" is rejected, though BETWEEN may end a chain of AND
const orPower = 4;
const andPower = 5;
const listPower = 6; // IN, LIKE
const comparePower = 7;
const concatPower = 8;
const addPower = 9;
const multiplyPower = 10;
const unaryPower = 11;
const binaryPowers = new Map([["OR", orPower], ["AND", andPower], ["||", concatPower]]);
for (const operator of ["=", "!=", "<>", "<", ">", "<=", ">=", "<<", ">>", ">>>"]) binaryPowers.set(operator, comparePower);
for (const operator of ["|", "^", "&", "+", "-"]) binaryPowers.set(operator, addPower);
for (const operator of ["*", "/", "%"]) binaryPowers.set(operator, multiplyPower);

const subqueries = { EXISTS: "exists", ARRAY: "array", ALL: "all", FIRST: "first", LAST: "last" };
const countMax = 0xffffffff;

export function parse(text) {
  return new Parser(text).whole();
}

class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = tokens(text);
    this.at = 0;
  }

  // ---- steps ----

  get token() {
    return this.tokens[this.at];
  }
  get last() {
    return this.tokens[this.at - 1];
  }
  is(value, ahead = 0) {
    const token = this.tokens[Math.min(this.at + ahead, this.tokens.length - 1)];
    return (token.kind === "keyword" || token.kind === "symbol") && token.value === value;
  }
  isName(text, ahead = 0) {
    const token = this.tokens[Math.min(this.at + ahead, this.tokens.length - 1)];
    return token.kind === "name" && token.text.toUpperCase() === text;
  }
  take(value) {
    return this.is(value) ? this.tokens[this.at++] : undefined;
  }
  need(value) {
    return this.take(value) ?? this.wrong();
  }
  name() {
    return this.token.kind === "name" ? this.tokens[this.at++] : this.wrong();
  }
  wrong(token = this.token) {
    if (token.kind === "end") throw new QueryError("SC1002", "Syntax error, unexpected end-of-file.", token.start, token.end);
    throw new QueryError("SC1001", `Syntax error, incorrect syntax near '${token.text}'.`, token.start, token.end);
  }
  node(kind, start, rest) {
    return { kind, start, end: this.last.end, ...rest };
  }

  // ---- clauses ----

  whole() {
    const query = this.query();
    if (this.token.kind !== "end") this.wrong();
    return { ...query, text: this.text };
  }

  query() {
    const start = this.need("SELECT").start;
    const query = { kind: "query", start, from: [], group: [], order: [] };
    query.distinct = Boolean(this.take("DISTINCT"));
    query.top = this.top();
    this.selection(query);
    if (this.take("FROM")) query.from = this.sources();
    if (this.take("WHERE")) query.where = this.expr();
    if (this.take("GROUP")) {
      this.need("BY");
      query.group = this.list(() => this.expr());
    }
    this.orderBy(query);
    this.offsetLimit(query);
    query.end = this.last.end;
    return query;
  }

  list(one) {
    const found = [one()];
    while (this.take(",")) found.push(one());
    return found;
  }

  top() {
    const start = this.take("TOP")?.start;
    if (start === undefined) return undefined;
    const count = this.count();
    return this.node("top", start, { count });
  }

  // A number or a parameter.
  count() {
    return this.token.kind === "parameter" || this.token.kind === "number" ? this.primary() : this.wrong();
  }

  selection(query) {
    const star = this.take("*");
    query.value = !star && Boolean(this.take("VALUE"));
    query.star = star && { start: star.start, end: star.end };
    if (star) query.select = [];
    else if (query.value) query.select = [{ expr: this.expr(), alias: this.alias() }];
    else query.select = this.list(() => this.column());
  }

  column() {
    const start = this.token.start;
    const expr = this.expr();
    const alias = this.alias();
    return this.node("column", start, { expr, alias });
  }

  alias() {
    if (this.take("AS")) return this.token.kind === "string" ? this.tokens[this.at++].value : this.name().text;
    if (this.token.kind === "name") return this.name().text;
  }

  // FROM a JOIN b JOIN c
  sources() {
    const found = [this.source()];
    while (this.take("JOIN")) found.push(this.source());
    return found;
  }

  source() {
    const start = this.token.start;
    const each = this.token.kind === "name" && this.is("IN", 1);
    const given = each ? this.name().text : undefined;
    if (each) this.need("IN");
    const from = this.collection();
    const alias = each ? given : (this.alias() ?? from.inferred);
    return this.node("source", start, { each, alias, ...from });
  }

  collection() {
    if (this.is("(")) {
      this.need("(");
      const query = this.query();
      this.need(")");
      return { query };
    }
    if (this.token.kind === "name" && this.is("(", 1)) return { expr: this.postfix(this.primary()) };
    return this.path();
  }

  path() {
    const root = this.name();
    const path = { root: { name: root.text, start: root.start, end: root.end }, steps: [], inferred: root.text };
    for (;;) {
      if (this.take(".")) path.steps.push(this.name().text);
      else if (this.take("[")) path.steps.push(this.step());
      else return path;
      const step = path.steps.at(-1);
      path.inferred = typeof step === "string" ? step : undefined;
    }
  }

  step() {
    const token = this.tokens[this.at++];
    if (token.kind !== "number" && token.kind !== "string") this.wrong(token);
    this.need("]");
    return token.value;
  }

  orderBy(query) {
    const start = this.take("ORDER")?.start;
    if (start === undefined) return;
    this.need("BY");
    query.rank = this.isName("RANK") && !this.is("(", 1) && Boolean(this.tokens[this.at++]);
    query.order = query.rank ? [this.ranking()] : this.list(() => this.ordering());
    query.orderClause = { start, end: this.last.end };
  }

  ordering() {
    const expr = this.expr();
    const ascending = Boolean(this.take("ASC"));
    const descending = !ascending && Boolean(this.take("DESC"));
    return { expr, descending, directed: ascending || descending };
  }

  ranking() {
    if (!(this.token.kind === "name" && this.is("(", 1))) this.wrong();
    return this.ordering();
  }

  offsetLimit(query) {
    const start = this.take("OFFSET")?.start;
    if (start === undefined) return;
    query.offset = this.wholeCount("SC2062", "OFFSET");
    this.need("LIMIT");
    query.limit = this.wholeCount("SC2061", "LIMIT");
    query.offsetClause = { start, end: this.last.end };
  }

  wholeCount(code, word) {
    if (this.token.kind === "number" && !/^\d+$/.test(this.token.text)) this.wrong();
    const count = this.count();
    if (count.kind === "literal" && count.value > countMax) {
      throw new QueryError(code, `The ${word} count value exceeds the maximum allowed value.`, count.start, count.end);
    }
    return count;
  }

  // ---- expressions ----

  expr(least = 0) {
    let left = this.prefix();
    for (;;) {
      const next = this.infix(left, least);
      if (!next) return left;
      left = next;
    }
  }

  // The expression that continues `left` with an operator of at least the power `least`, or undefined. A node has its level, so that an
  // operator rejects an operand that binds less tightly, unless it is in parentheses.
  infix(left, least) {
    const { value } = this.token;
    const start = left.start;
    const can = (power, operand = power) => {
      if (least > power) return false;
      if ((left.level ?? Infinity) < operand) this.wrong();
      return true;
    };
    if (this.is("?") && can(conditionalPower)) return this.conditional(left);
    if (this.is("??") && can(coalescePower)) {
      this.need("??");
      const right = this.expr(coalescePower);
      return this.node("coalesce", start, { left, right, level: coalescePower });
    }
    const not = this.is("NOT") ? 1 : 0;
    if (this.is("BETWEEN", not) && can(listPower, comparePower)) return this.between(left);
    if (this.is("IN", not) && can(listPower, comparePower)) return this.inList(left);
    if (this.is("LIKE", not) && can(listPower, comparePower)) return this.like(left);
    const isOperator = this.token.kind === "symbol" || this.is("AND") || this.is("OR");
    const power = isOperator ? binaryPowers.get(value) : undefined;
    if (power === undefined || !can(power)) return undefined;
    this.at++;
    const right = this.expr(power + 1);
    return this.node("binary", start, { operator: value === "<>" ? "!=" : value, left, right, level: Math.min(power, right.level ?? power) });
  }

  conditional(test) {
    this.need("?");
    const yes = this.expr();
    this.need(":");
    const no = this.expr(conditionalPower);
    return this.node("conditional", test.start, { test, yes, no, level: conditionalPower });
  }

  inList(left) {
    const negated = Boolean(this.take("NOT"));
    this.need("IN");
    this.need("(");
    const items = this.list(() => this.expr());
    this.need(")");
    return this.node("in", left.start, { left, items, negated, level: listPower });
  }

  like(left) {
    const negated = Boolean(this.take("NOT"));
    this.need("LIKE");
    const pattern = this.expr(comparePower);
    let escape;
    if (this.take("ESCAPE")) {
      if (this.token.kind !== "string") this.wrong();
      escape = this.tokens[this.at++].value;
    }
    return this.node("like", left.start, { left, pattern, escape, negated, level: listPower });
  }

  between(left) {
    const negated = Boolean(this.take("NOT"));
    this.need("BETWEEN");
    const low = this.expr(comparePower);
    this.need("AND");
    const high = this.expr(comparePower);
    return this.node("between", left.start, { left, low, high, negated, level: betweenPower });
  }

  prefix() {
    const token = this.token;
    for (const operator of ["-", "+", "~", "NOT"]) {
      if (!this.take(operator)) continue;
      const operand = this.expr(unaryPower);
      return this.node("unary", token.start, { operator, operand });
    }
    return this.postfix(this.primary());
  }

  postfix(of) {
    if (this.take(".")) {
      const name = this.name().text;
      return this.postfix(this.node("member", of.start, { of, name }));
    }
    if (this.take("[")) {
      const at = this.expr();
      this.need("]");
      const named = at.kind === "literal" && typeof at.value === "string";
      return this.postfix(this.node(named ? "member" : "index", of.start, named ? { of, name: at.value } : { of, at }));
    }
    return of;
  }

  primary() {
    const token = this.token;
    const { start } = token;
    if (["literal", "number", "string"].includes(token.kind)) {
      this.at++;
      return this.node("literal", start, { value: token.value, number: token.kind === "number" });
    }
    if (token.kind === "parameter") {
      this.at++;
      return this.node("parameter", start, { name: token.value });
    }
    if (this.is("(")) return this.parenthesis();
    if (this.is("[")) return this.arrayLiteral();
    if (this.is("{")) return this.objectLiteral();
    const how = this.is("(", 1) && subqueries[token.text.toUpperCase()];
    if (how && this.is("SELECT", 2)) return this.subquery(how);
    if (token.kind === "name" && token.text === "udf" && this.is(".", 1)) return this.udf();
    if (this.is("(", 1) && (token.kind === "name" || this.is("LEFT") || this.is("RIGHT"))) return this.call();
    const name = this.name().text;
    return this.node("name", start, { name });
  }

  parenthesis() {
    const { start } = this.need("(");
    if (this.is("SELECT")) {
      const query = this.query();
      this.need(")");
      return this.node("subquery", start, { how: "scalar", query });
    }
    const inner = this.expr();
    this.need(")");
    return { ...inner, start, end: this.last.end, level: undefined };
  }

  subquery(how) {
    const { start } = this.tokens[this.at++];
    this.need("(");
    const query = this.query();
    this.need(")");
    return this.node("subquery", start, { how, query });
  }

  udf() {
    const { start } = this.token;
    this.at += 2;
    const { at } = this;
    this.name(); // fails for a keyword
    this.at = at;
    const call = this.call();
    return { ...call, start, udf: true };
  }

  call() {
    const token = this.tokens[this.at++];
    this.need("(");
    const args = this.is(")") ? [] : this.list(() => this.expr());
    this.need(")");
    return this.node("call", token.start, { name: token.text, args, nameEnd: token.end });
  }

  arrayLiteral() {
    const { start } = this.need("[");
    const items = this.is("]") ? [] : this.list(() => this.expr());
    this.need("]");
    return this.node("array", start, { items });
  }

  objectLiteral() {
    const { start } = this.need("{");
    const members = this.is("}") ? [] : this.list(() => this.property());
    this.need("}");
    return this.node("object", start, { members });
  }

  property() {
    const isWord = ["name", "string", "keyword", "literal"].includes(this.token.kind);
    if (!isWord) this.wrong();
    const token = this.tokens[this.at++];
    this.need(":");
    return { name: token.kind === "string" ? token.value : token.text, expr: this.expr() };
  }
}
