// generate.mjs — random items and random queries over them, from a seed. Queries are well formed and mostly meaningful: an expression
// usually has the type that is needed in its place.
//
// A node of an expression is a list of texts and nodes; a query is an object of clauses. So a failing query can be made smaller
// (shrinks()). Left out because results cannot be compared: RAND, the current time, division by what may be zero, and what LANGUAGE.md
// calls undecided. Ties in ORDER BY come in creation order (docs: the order contract); over several ranges no ties are generated.

export class Random {
  constructor(seed) {
    this.state = 0n;
    for (const digit of `seed ${seed}`) this.state = BigInt.asUintN(64, (this.state ^ BigInt(digit.codePointAt(0))) * 0x100000001b3n + 0xcbf29ce484222325n);
  }
  // splitmix64
  next() {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let z = this.state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  }
  below(n) {
    return Math.floor(this.next() * n);
  }
  chance(p) {
    return this.next() < p;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
}

// ---- items ----

const words = ["", "a", "b", "ab", "abc", "Abc", "red", "Red road", "road", "blue", "x y", "niño", "100%", "a_b", "2020"];
const wholes = [0, 1, 2, 3, 5, 7, 10, -1, -4, 100, 65536, 2147483648];
const halves = [0.5, -2.5, 1.25, 3.75];
const moments = ["2020-02-29T12:34:56.7891234Z", "2019-12-31T23:59:59Z", "2021-06-15", "1969-07-20T20:17:40Z", "2020-03-01T00:00:00.0000000Z"];

function scalar(r) {
  const n = r.below(10);
  if (n < 3) return r.pick(wholes);
  if (n < 4) return r.pick(halves);
  if (n < 7) return r.pick(words);
  return n < 9 ? r.chance(0.5) : null;
}

function list(r, make, most = 4) {
  return Array.from({ length: r.below(most + 1) }, () => make(r));
}

function anything(r, depth = 0) {
  if (depth > 2 || r.chance(0.6)) return scalar(r);
  if (r.chance(0.5)) return list(r, () => anything(r, depth + 1), 3);
  return Object.fromEntries(["x", "y", "z"].filter(() => r.chance(0.5)).map((name) => [name, anything(r, depth + 1)]));
}

// The properties: their usual type, and how a value is made. Some items lack some properties, or have another type there.
const shapes = {
  n: ["number", (r) => r.pick([...wholes, ...halves])],
  m: ["number", (r) => r.below(6)],
  s: ["string", (r) => r.pick(words)],
  t: ["string", (r) => r.pick(["red", "blue", "green"])],
  b: ["boolean", (r) => r.chance(0.5)],
  d: ["date", (r) => r.pick(moments)],
  na: ["numbers", (r) => list(r, () => r.pick(wholes))],
  sa: ["strings", (r) => list(r, () => r.pick(words))],
  oa: ["objects", (r) => list(r, () => ({ n: r.pick(wholes), s: r.pick(words), ...(r.chance(0.5) ? { b: r.chance(0.5) } : {}) }))],
  o: ["object", (r) => ({ x: r.pick(wholes), y: r.pick(words), z: { x: r.below(3) } })],
  v: ["any", (r) => anything(r)],
};

export function makeItems(r) {
  return Array.from({ length: 1 + r.below(12) }, (_, i) => {
    const item = { id: `i${i}`, u: unique(i) };
    for (const [name, [, make]] of Object.entries(shapes)) {
      if (r.chance(0.12)) continue;
      item[name] = r.chance(0.08) ? anything(r) : make(r);
    }
    return item;
  });
}

// The container that the items are in: ORDER BY over two properties needs a composite index.
export const container = {
  indexingPolicy: {
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: '/"_etag"/?' }],
    compositeIndexes: [
      [{ path: "/t", order: "ascending" }, { path: "/m", order: "ascending" }],
      [{ path: "/b", order: "ascending" }, { path: "/n", order: "descending" }],
      [{ path: "/t", order: "ascending" }, { path: "/s", order: "descending" }, { path: "/n", order: "ascending" }],
    ],
  },
};

// A unique value for each item, of several types.
function unique(i) {
  return [null, false, true, -5, 0.25, 3, 40, "", "A", "a", "ab", "z"][i];
}

// ---- expressions ----

const node = (...parts) => ({ parts });
const literal = (value) => node(JSON.stringify(value));

export function render(one) {
  return typeof one === "string" ? one : one.parts.map(render).join("");
}

const elementType = { numbers: "number", strings: "string", objects: "element" };

class Maker {
  constructor(r) {
    this.r = r;
    this.aliases = 0;
    this.parameters = {};
  }

  // scope: [{ name, type }], the aliases in scope.
  any(scope, depth) {
    return this.of(this.r.pick(["number", "string", "boolean", "numbers", "object", "any"]), scope, depth);
  }

  of(type, scope, depth) {
    if (this.r.chance(0.06)) type = "any";
    if (depth <= 0) return this.leaf(type, scope);
    const rules = [...(grammar[type] ?? []), ...grammar.common];
    if (this.r.chance(0.25)) return this.leaf(type, scope);
    return this.r.pick(rules)(this, scope, depth - 1, type);
  }

  leaf(type, scope) {
    const paths = this.paths(type, scope);
    if (paths.length && this.r.chance(0.75)) return this.r.pick(paths);
    if (this.r.chance(0.08)) return this.parameter(type);
    return literal(this.constant(type));
  }

  // Without subqueries, which aggregates do not accept.
  plain(type, scope) {
    if (type !== "number" || this.r.chance(0.6)) return this.leaf(type, scope);
    return node("(", this.leaf("number", scope), this.r.pick([" + ", " - ", " * "]), this.leaf("number", scope), ")");
  }

  constant(type) {
    const { r } = this;
    const kinds = {
      number: () => r.pick([...wholes, ...halves]),
      string: () => r.pick(words),
      boolean: () => r.chance(0.5),
      date: () => r.pick(moments),
      numbers: () => list(r, () => r.pick(wholes)),
      strings: () => list(r, () => r.pick(words)),
      objects: () => list(r, () => ({ n: r.pick(wholes) }), 2),
      object: () => ({ x: r.pick(wholes), y: r.pick(words) }),
      element: () => ({ n: r.pick(wholes), s: r.pick(words) }),
    };
    return (kinds[type] ?? (() => scalar(r)))();
  }

  parameter(type) {
    const name = `@p${Object.keys(this.parameters).length}`;
    this.parameters[name] = this.constant(type);
    return node(name);
  }

  // The paths in scope that mostly have this type.
  paths(type, scope) {
    const found = [];
    const put = (wanted, text) => {
      if (type === "any" || wanted === type) found.push(node(text));
    };
    for (const { name, type: known } of scope) {
      if (known === "item") {
        for (const [property, [kind]] of Object.entries(shapes)) put(kind, this.r.chance(0.8) ? `${name}.${property}` : `${name}["${property}"]`);
        put("number", `${name}.o.x`);
        put("string", `${name}.o.y`);
        put("string", `${name}.id`);
        put("number", `${name}.oa[0].n`);
        put("number", `${name}.na[1]`);
        put("any", `${name}.missing`);
        put("any", `${name}.v.x`);
      } else if (known === "element") {
        put("number", `${name}.n`);
        put("string", `${name}.s`);
        put("boolean", `${name}.b`);
        put("element", name);
      } else {
        put(known, name);
      }
    }
    return found;
  }

  alias() {
    return `x${this.aliases++}`;
  }

  // x IN some array, and the scope that includes x.
  iteration(scope, depth) {
    const type = this.r.pick(["numbers", "strings", "objects"]);
    const name = this.alias();
    const paths = this.paths(type, scope.filter((one) => one.type === "item"));
    const source = paths.length ? this.r.pick(paths) : node("(SELECT VALUE ", literal(this.constant(type)), ")");
    const inner = [...scope, { name, type: elementType[type] }];
    const where = this.r.chance(0.7) ? node(" WHERE ", this.of("boolean", inner, depth - 1)) : node("");
    return { name, source, where, inner, element: elementType[type] };
  }
}

const units = ["yyyy", "mm", "dd", "hh", "mi", "ss", "ms", "mcs"];
const call = (name, ...types) => (m, scope, depth) => {
  const args = types.flatMap((type, i) => [i ? ", " : "", argument(type, m, scope, depth)]);
  return node(`${m.r.chance(0.8) ? name : name.toLowerCase()}(`, ...args, ")");
};

// An argument: of a type, or a given text.
function argument(type, m, scope, depth) {
  if (typeof type === "function") return node(type(m.r));
  return m.of(type, scope, depth);
}

const infix = (left, operator, right) => (m, scope, depth) => node("(", argument(left, m, scope, depth), ` ${operator} `, argument(right, m, scope, depth), ")");
const count = (r) => String(r.below(4));
const signed = (r) => String(r.below(7) - 3);
const divisor = (r) => String(r.pick([2, 3, 4, 0.5, -8]));
const unit = (r) => JSON.stringify(r.pick(units));
const pattern = (r) => JSON.stringify(r.pick(["a%", "%a%", "%d", "_b%", "[a-c]%", "[^a]%", "", "%", "red", "%o_d", "100[%]"]));
const expression = (r) => JSON.stringify(r.pick(["^a", "b$", "[0-9]+", "r.d", "^(red|blue)$", "o{1,2}", "x y"]));

// Makes (SELECT … FROM x IN …), between the given texts.
function overElements(before, select, after) {
  return (m, scope, depth) => {
    const { name, source, where, inner, element } = m.iteration(scope, depth);
    return node(before, "SELECT ", select(m, name, inner, depth, element), ` FROM ${name} IN `, source, where, after);
  };
}
const valueOf = (type) => (m, name, inner, depth) => node("VALUE ", m.of(type, inner, depth - 1));
const whole = (m, name) => node(`VALUE ${name}`);
const aggregateOf = (name, type) => (m, alias, inner, depth) => node(`VALUE ${name}(`, m.plain(type, inner), ")");

function between(m, scope, depth) {
  const [one, low, high] = [0, 1, 2].map(() => m.of("number", scope, depth));
  return node("(", one, m.r.chance(0.3) ? " NOT" : "", " BETWEEN ", low, " AND ", high, ")");
}

function inList(m, scope, depth) {
  const items = list(m.r, () => literal(scalar(m.r)), 3).flatMap((item) => [item, ", "]);
  return node("(", m.of("any", scope, depth), m.r.chance(0.3) ? " NOT" : "", " IN (", ...items, literal(scalar(m.r)), "))");
}

function escaped(m, scope, depth) {
  const wanted = JSON.stringify(m.r.pick(["100!%", "a!_b", "%!%", "!!%", "_!_%"]));
  return node("(", m.of("string", scope, depth), m.r.chance(0.3) ? " NOT" : "", ` LIKE ${wanted} ESCAPE "!")`);
}

const keyedRows = (m, name, inner, depth) => node("", m.of("any", inner, depth - 1), " AS k, ", m.of("number", inner, depth - 1), " AS n");

const grammar = {
  number: [
    ...["+", "-", "*", "&", "|", "^"].map((operator) => infix("number", operator, "number")),
    ...["/", "%"].map((operator) => infix("number", operator, divisor)),
    ...["<<", ">>", ">>>"].map((operator) => infix("number", operator, count)),
    ...["ABS", "FLOOR", "CEILING", "ROUND", "TRUNC", "SIGN", "SQUARE", "SIN", "COS", "ATAN"].map((name) => call(name, "number")),
    ...["INTADD", "INTSUB", "INTMUL", "INTBITAND", "INTBITOR", "INTBITXOR"].map((name) => call(name, (r) => String(r.pick(wholes)), "number")),
    call("INTDIV", "number", "number"), call("INTMOD", "number", "number"), call("INTBITNOT", "number"),
    (m, scope, depth) => node("SQRT(ABS(", m.of("number", scope, depth), "))"),
    (m, scope, depth) => node("LOG10(1 + ABS(", m.of("number", scope, depth), "))"),
    (m, scope, depth) => node("(- ", m.of("number", scope, 0), ")"),
    (m, scope, depth) => node("(~", m.of("number", scope, 0), ")"),
    call("DEGREES", "number"), call("RADIANS", "number"), call("NUMBERBIN", "number", divisor), call("ATN2", "number", (r) => divisor(r)),
    call("LENGTH", "string"), call("INDEX_OF", "string", "string"), call("LASTINDEXOF", "string", (r) => JSON.stringify(r.pick(words.slice(1)))),
    call("ARRAY_LENGTH", "numbers"), call("ARRAY_LENGTH", "objects"),
    ...["ARRAY_SUM", "ARRAY_MIN", "ARRAY_MAX", "ARRAY_MEDIAN", "ARRAY_AVG"].map((name) => call(name, "numbers")),
    call("DATETIMEPART", unit, "date"), call("DATETIMEDIFF", unit, "date", "date"), call("DATETIMETOTIMESTAMP", "date"),
    call("YEAR", "date"), call("MONTH", "date"), call("DAY", "date"),
    call("STRINGTONUMBER", "string"),
    overElements("(", aggregateOf("COUNT", "any"), ")"), overElements("(", aggregateOf("SUM", "number"), ")"),
    overElements("(", aggregateOf("MAX", "any"), ")"), overElements("(", aggregateOf("MIN", "number"), ")"),
  ],
  string: [
    infix("string", "||", "string"), call("CONCAT", "string", "string"), call("CONCAT", "string", "string", "string"),
    ...["LOWER", "UPPER", "REVERSE", "TRIM", "LTRIM", "RTRIM"].map((name) => call(name, "string")),
    call("LEFT", "string", signed), call("RIGHT", "string", signed), call("SUBSTRING", "string", count, signed),
    call("TRIM", "string", "string"), call("REPLACE", "string", (r) => JSON.stringify(r.pick(words.slice(1))), "string"), call("REPLICATE", "string", count),
    call("TOSTRING", "boolean"), call("TOSTRING", "string"), (m, scope, depth) => node("TOSTRING(FLOOR(", m.of("number", scope, depth), "))"),
    call("STRINGJOIN", "strings", "string"), call("DATETIMEADD", unit, signed, "date"),
    call("DATETIMEBIN", "date", unit), call("DATETIMEBIN", "date", unit, (r) => String(1 + r.below(9))),
    call("DATETIMEFORMAT", "date", () => '"yyyy/MM/dd HH-mm-ss.fff"'),
    overElements("(", aggregateOf("MAX", "string"), ")"),
  ],
  boolean: [
    ...["AND", "OR"].flatMap((operator) => [infix("boolean", operator, "boolean"), infix("boolean", operator, "boolean")]),
    (m, scope, depth) => node("(NOT ", m.of("boolean", scope, depth), ")"),
    ...["=", "!=", "<", "<=", ">", ">=", "<>"].flatMap((operator) => [infix("number", operator, "number"), infix("string", operator, "string"), infix("any", operator, "any")]),
    infix("numbers", "=", "numbers"), infix("object", "=", "object"),
    ...["ARRAY", "BOOL", "DEFINED", "FINITE_NUMBER", "INTEGER", "NULL", "NUMBER", "OBJECT", "PRIMITIVE", "STRING", "DATETIME"].map((name) => call(`IS_${name}`, "any")),
    ...["CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"].flatMap((name) => [call(name, "string", "string"), call(name, "string", "string", (r) => String(r.chance(0.5)))]),
    call("REGEXMATCH", "string", expression), call("ContainsAnyCi", "string", "string", "string"), call("ContainsAllCs", "string", "string", "string"),
    infix("string", "LIKE", pattern), infix("string", "NOT LIKE", pattern), infix("any", "LIKE", pattern), escaped,
    ...["AND", "OR"].map((operator) => infix("any", operator, "any")), (m, scope, depth) => node("(NOT ", m.of("any", scope, depth), ")"),
    ...["=", "!=", "<", ">="].map((operator) => infix(() => "undefined", operator, "any")), infix("any", "=", () => "null"),
    between, inList,
    call("ARRAY_CONTAINS", "numbers", "number"), call("ARRAY_CONTAINS", "strings", "string"),
    call("ARRAY_CONTAINS", "objects", (r) => `{"n": ${r.pick(wholes)}}`, () => "true"),
    call("ARRAY_CONTAINS_ANY", "numbers", "number", "number"), call("ARRAY_CONTAINS_ALL", "strings", "string", "string"), call("SETEQUAL", "numbers", "numbers"),
    overElements("EXISTS(", whole, ")"), overElements("EXISTS(", valueOf("any"), ")"), overElements("ALL(", whole, ")"),
  ],
  numbers: [
    call("ARRAY_SLICE", "numbers", signed), call("ARRAY_SLICE", "numbers", signed, count),
    ...["ARRAY_CONCAT", "SETUNION", "SETDIFFERENCE"].map((name) => call(name, "numbers", "numbers")),
    overElements("ARRAY(", valueOf("number"), ")"), overElements("ARRAY(", (m, ...rest) => node("DISTINCT ", valueOf("number")(m, ...rest)), ")"),
    (m, scope, depth) => node("[", m.of("number", scope, depth), " ?? null, ", m.of("number", scope, depth), " ?? 0]"),
  ],
  strings: [
    call("STRINGSPLIT", "string", () => '" "'), call("ARRAY_CONCAT", "strings", "strings"), call("SETUNION", "strings", "strings"),
    overElements("ARRAY(", valueOf("string"), ")"),
  ],
  objects: [call("OBJECTTOARRAY", "object"), call("ARRAY_SLICE", "objects", signed), overElements("ARRAY(", keyedRows, ")")],
  object: [
    (m, scope, depth) => node('{"x": ', m.of("number", scope, depth), ', "y": ', m.of("string", scope, depth), "}"),
    (m, scope, depth) => node("{z: ", m.of("any", scope, depth), "}"),
  ],
  date: [call("DATETIMEADD", unit, signed, "date"), call("DATETIMEFROMPARTS", () => "2020", (r) => String(1 + r.below(13)), (r) => String(1 + r.below(31)))],
  any: [
    (m, scope, depth) => m.any(scope, depth),
    (m, scope, depth) => node("(", m.of("object", scope, depth), ").", m.r.pick(["x", "y", "z"])),
    (m, scope, depth) => node("(", m.of("numbers", scope, depth), ")[", count(m.r), "]"),
    overElements("FIRST(", whole, ")"), overElements("LAST(", whole, ")"),
    (m) => node(m.r.pick(["null", "undefined", "true"])),
  ],
  // For any type.
  common: [
    (m, scope, depth, type) => node("(", m.of("any", scope, depth), " ?? ", m.of(type, scope, depth), ")"),
    (m, scope, depth, type) => node("(", m.of("boolean", scope, depth), " ? ", m.of(type, scope, depth), " : ", m.of(type, scope, depth), ")"),
    (m, scope, depth, type) => node("IIF(IS_DEFINED(", m.of("any", scope, depth), "), ", m.of(type, scope, depth), ", ", m.of(type, scope, depth), ")"),
    (m, scope, depth, type) => node("(SELECT VALUE ", m.of(type, scope, depth), ")"),
  ],
};

// ---- queries ----

// ranges: for several ranges, so without ties, and without subqueries in FROM that cannot be answered over several ranges.
export function makeQuery(r, { ranges = false } = {}) {
  const m = new Maker(r);
  const root = r.pick(["c", "root", "p"]);
  const query = { root, from: node(root), joins: [], parameters: m.parameters, ranges };
  if (!ranges && r.chance(0.12)) return gathered(m, query);
  let scope = [{ name: root, type: "item" }];
  while (r.chance(0.25) && query.joins.length < 2) {
    const { name, source, inner } = m.iteration(scope, 2);
    query.joins.push(node(` JOIN ${name} IN `, source));
    scope = inner;
  }
  if (r.chance(0.1)) {
    const name = m.alias();
    query.joins.push(node(" JOIN (SELECT VALUE ", m.of("number", scope, 2), `) ${name}`));
    scope = [...scope, { name, type: "number" }];
  }
  if (r.chance(0.12)) {
    const { name: inner, source, where, inner: known } = m.iteration(scope, 3);
    const name = m.alias();
    const distinct = r.chance(0.3) ? "DISTINCT " : "";
    query.joins.push(node(` JOIN (SELECT ${distinct}`, m.of("any", known, 2), " AS n, ", m.of("string", known, 2), ` AS s FROM ${inner} IN `, source, where, `) AS ${name}`));
    scope = [...scope, { name, type: "element" }];
  }
  if (r.chance(0.75)) query.where = r.chance(0.4) ? indexable(m, query.root) : m.of("boolean", scope, 1 + r.below(4));
  if (r.chance(0.2)) grouping(m, query, scope);
  else selection(m, query, scope);
  return query;
}

// FROM (SELECT …) whose DISTINCT, GROUP BY or aggregates apply to all items; sometimes nested.
function gathered(m, query) {
  const { r } = m;
  const item = [{ name: query.root, type: "item" }];
  const where = r.chance(0.5) ? node(" WHERE ", r.chance(0.5) ? indexable(m, query.root) : m.of("boolean", item, 2)) : node("");
  const kinds = [
    () => [node("DISTINCT VALUE ", m.of("number", item, 2)), "", "number"],
    () => [node(`DISTINCT VALUE ${query.root}.t`), "", "string"],
    () => [node(`${query.root}.t AS s, ${r.pick(aggregateNames)}(`, m.plain("number", item), ") AS n"), ` GROUP BY ${query.root}.t`, "element"],
    () => [node(`VALUE ${r.pick(aggregateNames)}(`, m.plain("number", item), ")"), "", "number"],
    () => [node(`DISTINCT ${query.root}.t AS s, ${query.root}.m AS n`), "", "element"],
  ];
  const [select, after, type] = r.pick(kinds)();
  const name = m.alias();
  query.from = node("(SELECT ", select, ` FROM ${query.root}`, where, after, `) AS ${name}`);
  if (type === "element" && r.chance(0.3)) {
    const outer = m.alias();
    query.from = node("(SELECT DISTINCT VALUE ", m.of("any", [{ name, type }], 1), " FROM ", query.from, `) AS ${outer}`);
    return overRows(m, query, { name: outer, type: "any" });
  }
  return overRows(m, query, { name, type });
}

function overRows(m, query, row) {
  const { r } = m;
  if (r.chance(0.5)) query.where = m.of("boolean", [row], 2);
  query.unordered = true;
  query.value = true;
  const isCounted = r.chance(0.4);
  if (isCounted) query.group = [];
  query.columns = [{ expr: isCounted ? node(`${r.pick(aggregateNames)}(`, m.plain("any", [row]), ")") : m.any([row], 2) }];
  return query;
}

// Conditions that an index can answer, alone or joined.
function indexable(m, root) {
  const { r } = m;
  const paths = {
    n: () => r.pick([...wholes, ...halves]), m: () => r.below(6), t: () => r.pick(["red", "blue"]), s: () => r.pick(words),
    b: () => r.chance(0.5), "o.x": () => r.pick(wholes), v: () => scalar(r), u: () => scalar(r),
  };
  const one = () => {
    const [path, value] = r.pick(Object.entries(paths));
    const at = `${root}.${path}`;
    const forms = [
      () => node(at, r.pick([" = ", " = ", " != ", " < ", " <= ", " > ", " >= "]), literal(value())),
      () => node(at, " IN (", literal(value()), ", ", literal(value()), ", ", literal(value()), ")"),
      () => node("(", at, " BETWEEN ", literal(value()), " AND ", literal(value()), ")"),
      () => node(`STARTSWITH(${root}.s, `, literal(r.pick(words)), ")"),
      () => node(`ARRAY_CONTAINS(${root}.na, `, literal(r.pick(wholes)), ")"),
      () => node(`IS_DEFINED(${at})`),
      () => node(`${root}.s LIKE `, pattern(r)),
      () => node(`${root}.id = `, literal(`i${r.below(12)}`)),
      () => node(`EXISTS(SELECT VALUE e FROM e IN ${root}.oa WHERE e.n = `, literal(r.pick(wholes)), ")"),
    ];
    return r.chance(0.15) ? node("NOT (", r.pick(forms)(), ")") : r.pick(forms)();
  };
  let all = one();
  while (r.chance(0.45)) all = node("(", all, r.pick([" AND ", " AND ", " OR "]), one(), ")");
  return all;
}

const aggregateNames = ["COUNT", "SUM", "AVG", "MIN", "MAX"];

function grouping(m, query, scope) {
  const { r } = m;
  const at = query.root;
  const all = [`${at}.t`, `${at}.b`, `${at}.m`, `${at}.o.z.x`, `${at}.v`, `UPPER(${at}.t)`, `(${at}.n > 2)`, `${at}["missing"]`];
  const keys = r.chance(0.25) ? [] : all.filter(() => r.chance(0.2));
  query.group = keys.map((key) => node(key));
  query.columns = keys.map((key, i) => ({ expr: node(key), alias: `k${i}` }));
  for (let i = 0; i < 1 + r.below(3); i++) query.columns.push({ expr: node(`${r.pick(aggregateNames)}(`, m.plain(r.chance(0.7) ? "number" : "any", scope), ")"), alias: `a${i}` });
  query.unordered = true;
  if (r.chance(0.2)) Object.assign(query, { value: true, columns: query.columns.slice(-1) });
}

function selection(m, query, scope) {
  const { r } = m;
  query.distinct = r.chance(0.15);
  query.unordered = query.distinct;
  if (query.joins.length === 0 && r.chance(0.15)) query.star = true;
  else if (r.chance(0.5)) Object.assign(query, { value: true, columns: [{ expr: m.any(scope, 1 + r.below(4)) }] });
  else query.columns = Array.from({ length: 1 + r.below(3) }, (_, i) => ({ expr: m.any(scope, 1 + r.below(3)), alias: `k${i}` }));
  if (!query.distinct && r.chance(0.4)) query.order = ordering(r, query);
  if (query.distinct && query.joins.length === 0 && !query.star && r.chance(0.3)) {
    const path = `${query.root}.${r.pick(["t", "m", "v", "n"])}`;
    Object.assign(query, { value: true, columns: [{ expr: node(path) }], order: node(path, r.pick(["", " DESC"])), unordered: false });
  }
  if (query.distinct) return;
  if (r.chance(0.15)) query.top = r.below(6);
  else if (r.chance(0.2)) query.offset = [r.below(4), r.below(6)];
}

// Over ranges, by a unique property; otherwise with ties (JOINs have them anyway) and values of all types.
function ordering(r, query) {
  if (query.ranges) return node(`${query.root}.id`, r.pick(["", " ASC", " DESC"]));
  const at = query.root;
  const several = [`${at}.t, ${at}.m`, `${at}.t DESC, ${at}.m DESC`, `${at}.b ASC, ${at}.n DESC`, `${at}.b DESC, ${at}.n`, `${at}.t, ${at}.s DESC, ${at}.n ASC`];
  if (r.chance(0.25)) return node(r.pick(several));
  return node(`${at}.${r.pick(["u", "t", "m", "n", "v", "o.x", "s", "b", "d", "na", "missing", "_ts"])}`, r.pick(["", " ASC", " DESC"]));
}

export function text(query) {
  const columns = query.star ? "*" : query.columns.map(({ expr, alias }) => render(expr) + (alias && !query.value ? ` AS ${alias}` : "")).join(", ");
  const select = `SELECT ${query.distinct ? "DISTINCT " : ""}${query.top === undefined ? "" : `TOP ${query.top} `}${query.value ? "VALUE " : ""}${columns}`;
  const where = query.where ? ` WHERE ${render(query.where)}` : "";
  const group = query.group?.length ? ` GROUP BY ${query.group.map(render).join(", ")}` : "";
  const order = query.order ? ` ORDER BY ${render(query.order)}` : "";
  const offset = query.offset ? ` OFFSET ${query.offset[0]} LIMIT ${query.offset[1]}` : "";
  return `${select} FROM ${render(query.from)}${query.joins.map(render).join("")}${where}${group}${order}${offset}`;
}

// ---- shrinking ----

// Smaller expressions: an inner expression instead, or the same expression with a smaller inner one.
function* smaller(one) {
  if (typeof one === "string") return;
  const inner = one.parts.map((part, i) => [part, i]).filter(([part]) => typeof part !== "string");
  for (const [part] of inner) yield part;
  if (inner.length) yield node("1");
  for (const [part, i] of inner) for (const less of smaller(part)) yield node(...one.parts.slice(0, i), less, ...one.parts.slice(i + 1));
}

// Smaller queries and fewer items, the largest reductions first. Some are not well formed: the caller must check.
export function* shrinks(query, items) {
  if (items.length > 1) {
    const half = items.length >> 1;
    yield [query, items.slice(half)];
    yield [query, items.slice(0, half)];
    for (let i = 0; i < items.length; i++) yield [query, items.filter((_, j) => j !== i)];
  }
  for (const clause of ["where", "order", "offset", "top", "distinct"]) {
    if (query[clause] !== undefined && query[clause] !== false) yield [{ ...query, [clause]: undefined }, items];
  }
  for (let i = 0; i < query.joins.length; i++) yield [{ ...query, joins: query.joins.filter((_, j) => j !== i) }, items];
  if (query.columns?.length > 1) for (let i = 0; i < query.columns.length; i++) yield [{ ...query, columns: query.columns.filter((_, j) => j !== i) }, items];
  if (query.where) for (const less of smaller(query.where)) yield [{ ...query, where: less }, items];
  for (const [i, column] of (query.columns ?? []).entries()) {
    for (const less of smaller(column.expr)) yield [{ ...query, columns: replaced(query.columns, i, { ...column, expr: less }) }, items];
  }
  for (const [i, item] of items.entries()) {
    for (const name of Object.keys(item)) {
      if (name === "id" || name === "u") continue;
      const { [name]: gone, ...rest } = item;
      yield [query, replaced(items, i, rest)];
    }
  }
}

function replaced(list, i, one) {
  return list.map((old, j) => (j === i ? one : old));
}
