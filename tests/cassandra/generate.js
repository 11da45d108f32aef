// generate.js — random tables, writes and selects, from a dice. A write is a statement and what it does to the model; a select is a statement and the rows
// that the model has for it.

import { Collection, keyable, Scalar, scalars } from "./domains.js";

const pickOf = (roll, list) => list[roll(list.length)];
const chance = (roll, percent) => roll(100) < percent;

// ---- tables ----

function columns(roll, letter, n, make) {
  return Array.from({ length: n }, (_, i) => ({ name: `${letter}${i}`, ...make(i) }));
}

function randomType(roll) {
  const scalar = () => new Scalar(pickOf(roll, scalars));
  switch (roll(9)) {
    case 0:
      return new Collection("list", null, scalar(), false);
    case 1:
      return new Collection("set", scalar(), null, false);
    case 2:
      return new Collection("map", scalar(), scalar(), false);
    case 3:
      return new Collection("list", null, scalar(), true);
    default:
      return scalar();
  }
}

export function randomSchema(roll) {
  const partitionN = chance(roll, 30) ? 2 : 1;
  const partition = columns(roll, "p", partitionN, () => ({ type: new Scalar(pickOf(roll, partitionN > 1 ? scalars : keyable)) }));
  const clustering = columns(roll, "c", chance(roll, 15) ? 0 : 1 + roll(3), () => ({ type: new Scalar(pickOf(roll, scalars)), descending: chance(roll, 35) }));
  const statics = columns(roll, "s", clustering.length && chance(roll, 50) ? 1 + roll(2) : 0, () => ({ type: randomType(roll) }));
  const regulars = columns(roll, "v", 1 + roll(4), () => ({ type: randomType(roll) }));
  const all = [...partition, ...clustering, ...statics, ...regulars];
  return { partition, clustering, statics, regulars, all, types: new Map(all.map((column) => [column.name, column.type])) };
}

export function definitionOf(schema) {
  const { partition, clustering, statics, all } = schema;
  const key = [`(${partition.map((c) => c.name).join(", ")})`, ...clustering.map((c) => c.name)];
  const order = clustering.some((c) => c.descending) ? `CLUSTERING ORDER BY (${clustering.map((c) => `${c.name} ${c.descending ? "DESC" : "ASC"}`).join(", ")})` : "";
  return { columns: `(${all.map((c) => `${c.name} ${c.type.cql}${statics.includes(c) ? " static" : ""}`).join(", ")}, PRIMARY KEY (${key.join(", ")}))`, order };
}

// ---- statements in the making: a value is a literal or a marker ----

class Statement {
  constructor(roll) {
    this.marks = chance(roll, 50);
    this.roll = roll;
    this.params = [];
  }
  value(type, v) {
    const empty = Array.isArray(v) && !v.length; // which the driver binds as null
    if (this.marks && !empty && chance(this.roll, 80)) {
      this.params.push(v === null ? null : type.bound(v));
      return "?";
    }
    return v === null ? "null" : type.written(v);
  }
}

// ---- writes ----

// few: how many different keys there are, so that writes meet. unique: every timestamp once, as is needed where the result must not depend on whether
// something has expired. rising: no write is late.
export class Writes {
  constructor(roll, schema, model, table, { unique, rising, short }) {
    Object.assign(this, { roll, schema, model, table, unique, rising, short, used: new Set(), last: 0 });
  }

  ts() {
    if (this.rising) return (this.last += 10);
    for (;;) {
      const ts = 1 + this.roll(this.unique ? 100000 : 60);
      if (!this.unique || !this.used.has(ts)) return this.used.add(ts), ts;
    }
  }
  stamp() {
    const ttl = chance(this.roll, 25) ? (this.short && chance(this.roll, 60) ? 2 : 1000 + this.roll(5)) : undefined;
    return { ts: this.ts(), ttl, short: ttl === 2 };
  }
  key() {
    return this.schema.partition.map((c) => Math.min(c.type.pick(this.roll), 1 + this.roll(2)));
  }
  at() {
    return this.schema.clustering.map((c) => c.type.pick(this.roll));
  }
  where(s, key, at) {
    const parts = [];
    this.schema.partition.forEach((c, i) => parts.push(`${c.name} = ${s.value(c.type, key[i])}`));
    at?.forEach((v, i) => parts.push(`${this.schema.clustering[i].name} = ${s.value(this.schema.clustering[i].type, v)}`));
    return parts.join(" AND ");
  }
  using(stamp, conditional) {
    if (conditional) return stamp.ttl ? ` USING TTL ${stamp.ttl}` : "";
    return ` USING TIMESTAMP ${stamp.ts}${stamp.ttl ? ` AND TTL ${stamp.ttl}` : ""}`;
  }
  some(list) {
    return list.filter(() => chance(this.roll, 60));
  }
  isStatic(name) {
    return this.schema.statics.some((c) => c.name === name);
  }

  // Assignments go to the static row and to the row, as their columns are.
  mutations(key, at, stamp, set, more = {}) {
    const own = { key, ...stamp };
    const statics = set.filter((a) => this.isStatic(a.column));
    const regulars = set.filter((a) => !this.isStatic(a.column));
    const list = [];
    if (statics.length) list.push({ ...own, row: null, set: statics });
    if (at && (regulars.length || more.inserts)) list.push({ ...own, row: at, set: regulars, ...more });
    return list;
  }

  // { cql, params, apply() }
  next() {
    const kind = this.roll(100);
    if (kind < 30) return this.insert();
    if (kind < 34) return this.insertJson();
    if (kind < 62) return this.update();
    if (kind < 72) return this.deleteCells();
    if (kind < 80) return this.deleteRow();
    if (kind < 86) return this.deleteRange();
    if (kind < 90) return this.batch();
    return this.short || this.rising ? this.update() : this.conditional();
  }

  insert({ conditional = false, stamp = this.stamp() } = {}) {
    const s = new Statement(this.roll);
    const staticsOnly = !conditional && this.schema.statics.length && chance(this.roll, 15);
    const [key, at] = [this.key(), staticsOnly ? null : this.at()];
    const set = this.some(staticsOnly ? this.schema.statics : conditional ? this.schema.regulars : [...this.schema.regulars, ...this.schema.statics])
      .map((c) => ({ column: c.name, kind: "set", value: chance(this.roll, 15) ? null : c.type.pick(this.roll) }));
    if (staticsOnly && !set.length) return this.insert({ conditional, stamp });
    const keys = [...this.schema.partition, ...(staticsOnly ? [] : this.schema.clustering)];
    const names = [...keys.map((c) => c.name), ...set.map((a) => a.column)];
    const values = [...[...key, ...(at ?? [])].map((v, i) => s.value(keys[i].type, v)), ...set.map((a) => s.value(this.schema.types.get(a.column), a.value))];
    const cql = `INSERT INTO ${this.table} (${names.join(", ")}) VALUES (${values.join(", ")})${conditional ? " IF NOT EXISTS" : ""}${this.using(stamp, conditional)}`;
    return { cql, params: s.params, key, at, list: this.mutations(key, at, stamp, set, { inserts: !staticsOnly }) };
  }

  // Columns that the text lacks are null, or stay as they are.
  insertJson() {
    const [stamp, key, at] = [this.stamp(), this.key(), this.at()];
    const unset = chance(this.roll, 40);
    const keys = [...this.schema.partition, ...this.schema.clustering];
    const others = [...this.schema.regulars, ...this.schema.statics];
    const given = new Map(this.some(others).map((c) => [c, chance(this.roll, 15) ? null : c.type.pick(this.roll)]));
    const members = [...keys.map((c, i) => [c, [...key, ...at][i]]), ...given].map(([c, v]) => `"${c.name}": ${v === null ? "null" : c.type.json(v)}`);
    const set = others.filter((c) => given.has(c) || !unset).map((c) => ({ column: c.name, kind: "set", value: given.get(c) ?? null }));
    const cql = `INSERT INTO ${this.table} JSON '{${members.join(", ").replaceAll("'", "''")}}'${unset ? " DEFAULT UNSET" : ""}${this.using(stamp)}`;
    return { cql, params: [], key, at, list: this.mutations(key, at, stamp, set, { inserts: true }) };
  }

  // An assignment of SET; null if it cannot be now.
  assignment(s, column, key, at) {
    const { name, type } = column;
    if (!type.multicell || chance(this.roll, 30)) {
      const value = chance(this.roll, 15) ? null : type.pick(this.roll);
      return [{ column: name, kind: "set", value }, `${name} = ${s.value(type, value)}`];
    }
    const value = type.pick(this.roll, 1);
    if (chance(this.roll, 35)) {
      if (type.kind === "set") return [{ column: name, kind: "remove", value }, `${name} = ${name} - ${s.value(type, value)}`];
      if (type.kind === "map") return this.mapElement(s, column, value);
      return this.listElement(s, column, value, key, at);
    }
    if (type.kind === "list" && chance(this.roll, 40)) return [{ column: name, kind: "prepend", value }, `${name} = ${s.value(type, value)} + ${name}`];
    return [{ column: name, kind: "add", value }, `${name} = ${name} + ${s.value(type, value)}`];
  }
  mapElement(s, { name, type }, [[k, v]]) {
    if (chance(this.roll, 25)) return [{ column: name, kind: "remove", value: [k] }, `${name} = ${name} - {${type.keys.written(k)}}`];
    const value = chance(this.roll, 20) ? null : v;
    return [{ column: name, kind: "element", at: k, value }, `${name}[${s.value(type.keys, k)}] = ${s.value(type.values, value)}`];
  }
  listElement(s, { name, type }, value, key, at) {
    const there = this.model.rowAt(key, this.isStatic(name) ? null : at)?.values.get(name);
    if (!there || this.short || chance(this.roll, 50)) return [{ column: name, kind: "remove", value }, `${name} = ${name} - ${s.value(type, value)}`];
    const place = this.roll(there.length);
    const v = chance(this.roll, 20) ? null : value[0];
    return [{ column: name, kind: "element", at: place, value: v }, `${name}[${place}] = ${s.value(type.values, v)}`];
  }

  update({ conditional = "", stamp = this.stamp(), at = this.at(), key = this.key(), alone } = {}) {
    const s = new Statement(this.roll);
    const from = conditional || alone ? this.schema.regulars : [...this.schema.regulars, ...this.schema.statics];
    let chosen = this.some(from);
    if (!chosen.length) chosen = [pickOf(this.roll, from)];
    const made = chosen.map((c) => this.assignment(s, c, key, at));
    const set = made.map(([a]) => a);
    const row = set.some((a) => !this.isStatic(a.column)) ? at : null;
    const cql = `UPDATE ${this.table}${this.using(stamp, conditional)} SET ${made.map(([, text]) => text).join(", ")} WHERE ${this.where(s, key, row)}${conditional}`;
    return { cql, params: s.params, key, at, list: this.mutations(key, row, stamp, set) };
  }

  deleteCells() {
    const s = new Statement(this.roll);
    const [stamp, key, at] = [{ ts: this.ts() }, this.key(), this.at()];
    const from = [...this.schema.regulars, ...this.schema.statics];
    const made = [pickOf(this.roll, from), ...(chance(this.roll, 30) ? [pickOf(this.roll, from)] : [])].filter((c, i, all) => all.indexOf(c) === i).map((c) => this.deletion(s, c, key, at));
    const set = made.map(([a]) => a);
    const row = set.some((a) => !this.isStatic(a.column)) ? at : null;
    const cql = `DELETE ${made.map(([, text]) => text).join(", ")} FROM ${this.table} USING TIMESTAMP ${stamp.ts} WHERE ${this.where(s, key, row)}`;
    return { cql, params: s.params, key, at, list: this.mutations(key, row, stamp, set) };
  }
  deletion(s, { name, type }, key, at) {
    if (type.multicell && chance(this.roll, 60)) {
      if (type.kind === "list") {
        const there = this.model.rowAt(key, this.isStatic(name) ? null : at)?.values.get(name);
        const place = there && !this.short ? this.roll(there.length) : -1;
        if (place >= 0) return [{ column: name, kind: "element", at: place, value: null }, `${name}[${place}]`];
      } else {
        const k = type.keys.pick(this.roll);
        return [{ column: name, kind: "remove", value: [k] }, `${name}[${s.value(type.keys, k)}]`];
      }
    }
    return [{ column: name, kind: "set", value: null }, name];
  }

  deleteRow({ stamp = { ts: this.ts() }, conditional = "", key = this.key(), at = this.at() } = {}) {
    const s = new Statement(this.roll);
    const cql = `DELETE FROM ${this.table}${conditional ? "" : ` USING TIMESTAMP ${stamp.ts}`} WHERE ${this.where(s, key, at)}${conditional}`;
    return { cql, params: s.params, key, at, list: [{ key, row: at, deletes: true, ...stamp }] };
  }

  deleteRange() {
    const s = new Statement(this.roll);
    const [key, ts] = [this.key(), this.ts()];
    const range = randomRange(this.roll, s, this.schema, { inOnly: false });
    if (!range) return this.deleteRow();
    const cql = `DELETE FROM ${this.table} USING TIMESTAMP ${ts} WHERE ${[this.where(s, key, null), ...range.texts].join(" AND ")}`;
    if (s.marks) return this.deleteRange(); // its markers come in another order
    return { cql, params: s.params, key, list: [], apply: () => this.model.deleteRange(key, range.within, !range.texts.length, ts) };
  }

  batch() {
    const stamp = { ts: this.ts() };
    const parts = Array.from({ length: 2 + this.roll(3) }, () => [() => this.insert(), () => this.update({ alone: true }), () => this.deleteRow()][this.roll(3)]());
    const plain = parts.filter((part) => !part.params.length && !/\[\d+\] =|v\d\[/.test(part.cql));
    if (!plain.length) return this.insert({ stamp });
    const whole = !this.rising && chance(this.roll, 40) && plain.every((part) => !/TTL/.test(part.cql));
    const texts = plain.map((part) => (whole ? part.cql.replace(/ USING TIMESTAMP \d+/, "") : part.cql));
    const list = plain.flatMap((part) => part.list).map((m) => (whole ? { ...m, ts: stamp.ts } : m));
    return { cql: `BEGIN ${pickOf(this.roll, ["", "UNLOGGED "])}BATCH${whole ? ` USING TIMESTAMP ${stamp.ts}` : ""} ${texts.join("; ")}; APPLY BATCH`, params: [], list };
  }

  // Later than all that is there.
  conditional() {
    const stamp = { ts: 1e15 + (this.last += 1) };
    const [key, at] = [this.key(), this.at()];
    const there = () => this.model.rowAt(key, at);
    const deciding = this.schema.regulars.filter((c) => c.type instanceof Scalar);
    if (chance(this.roll, 30)) {
      const made = this.insert({ conditional: true, stamp });
      return { ...made, holds: () => !this.model.rowAt(made.key, made.at) };
    }
    let condition = " IF EXISTS";
    let holds = () => there() !== null;
    if (deciding.length && chance(this.roll, 70)) {
      const c = pickOf(this.roll, deciding);
      const old = there()?.values.get(c.name);
      const v = chance(this.roll, 60) && old !== undefined ? old : c.type.pick(this.roll);
      const op = pickOf(this.roll, ["=", "!=", "<", ">=", "IN"]);
      condition = op === "IN" ? ` IF ${c.name} IN (${c.type.written(v)}, ${c.type.written(0)})` : ` IF ${c.name} ${op} ${c.type.written(v)}`;
      const test = { "=": (x) => x === v, "!=": (x) => x !== v, "<": (x) => x < v, ">=": (x) => x >= v, IN: (x) => x === v || x === 0 }[op];
      holds = () => {
        const x = there()?.values.get(c.name);
        return x === undefined ? op === "!=" : test(x);
      };
    }
    const made = chance(this.roll, 30) ? this.deleteRow({ stamp, conditional: condition, key, at }) : this.update({ stamp, conditional: condition, key, at });
    return { ...made, holds };
  }
}

// ---- ranges of clustering columns ----

const compares = { "=": (a, b) => a === b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b };

function tupleCompare(a, b) {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return 0;
}

// A prefix by = (and IN, if it may be), then a slice of a column or of several: { texts, within(at) }, null if it would be a single row.
export function randomRange(roll, s, schema, { inOnly = true }) {
  const n = schema.clustering.length;
  const tests = [];
  const texts = [];
  const equal = n ? roll(n + (inOnly ? 1 : 0)) : 0;
  for (let i = 0; i < equal; i++) {
    const { name, type } = schema.clustering[i];
    const list = inOnly && chance(roll, 30) ? Array.from({ length: 1 + roll(3) }, () => type.pick(roll)) : [type.pick(roll)];
    texts.push(list.length > 1 ? `${name} IN (${list.map((v) => type.written(v)).join(", ")})` : `${name} = ${type.written(list[0])}`);
    tests.push((at) => list.includes(at[i]));
  }
  if (equal < n && chance(roll, 60)) {
    const ends = pickOf(roll, [[">"], [">="], ["<"], ["<="], [">", "<="], [">=", "<"]]);
    const several = n - equal > 1 && chance(roll, 40) ? 2 : 1;
    const over = schema.clustering.slice(equal, equal + several);
    for (const op of ends) {
      const bound = over.map((c) => c.type.pick(roll));
      if (several > 1) texts.push(`(${over.map((c) => c.name).join(", ")}) ${op} (${bound.map((v, i) => over[i].type.written(v)).join(", ")})`);
      else texts.push(`${over[0].name} ${op} ${over[0].type.written(bound[0])}`);
      tests.push((at) => compares[op](tupleCompare(at.slice(equal, equal + several), bound), 0));
    }
  }
  if (!inOnly && !n) return null;
  return { texts, within: (at) => tests.every((test) => test(at)) };
}

// ---- selects ----

export class Selects {
  // indexed: filters may use an index, so that the rows come in no order, and partitions may not be named by IN.
  constructor(roll, schema, model, table, tokenOf, indexed) {
    Object.assign(this, { roll, schema, model, table, tokenOf, indexed });
  }

  // The rows that a SELECT starts from: { key, at (null: the partition has static columns only), value(column), stamp(column) }.
  #flat(partition, rows, clusteringRestricted) {
    const { schema } = this;
    const make = (row) => ({
      key: partition.key,
      at: row?.at ?? null,
      value: (name) => {
        const [letter, i] = [name[0], Number(name.slice(1))];
        if (letter === "p") return partition.key[i];
        if (letter === "c") return row ? row.at[i] : undefined;
        return (letter === "s" ? partition.statics : row)?.values.get(name);
      },
      stamp: (name) => (name[0] === "s" ? partition.statics : row)?.stamps.get(name),
      schema,
    });
    if (rows.length) return rows.map(make);
    return partition.statics && !clusteringRestricted && !partition.rows.length ? [make(null)] : [];
  }

  #filter(s) {
    const { roll } = this;
    const column = pickOf(roll, [...this.schema.regulars, ...this.schema.statics]);
    const { name, type } = column;
    if (type instanceof Scalar) {
      const op = this.indexed && chance(roll, 60) ? "=" : pickOf(roll, Object.keys(compares));
      const v = type.pick(roll);
      return { text: `${name} ${op} ${type.written(v)}`, test: (row) => row.value(name) !== undefined && compares[op](row.value(name), v) };
    }
    if (type.frozen) {
      const v = type.pick(roll);
      return { text: `${name} = ${type.written(v)}`, test: (row) => row.value(name) !== undefined && JSON.stringify(row.value(name)) === JSON.stringify(v) };
    }
    const has = (row) => row.value(name) ?? [];
    if (type.kind === "map") {
      const [k, v] = [type.keys.pick(roll), type.values.pick(roll)];
      return pickOf(roll, [
        { text: `${name} CONTAINS KEY ${type.keys.written(k)}`, test: (row) => has(row).some(([key]) => key === k) },
        { text: `${name} CONTAINS ${type.values.written(v)}`, test: (row) => has(row).some(([, value]) => value === v) },
        { text: `${name}[${type.keys.written(k)}] = ${type.values.written(v)}`, test: (row) => has(row).some(([key, value]) => key === k && value === v) },
      ]);
    }
    const inner = type.keys ?? type.values;
    const v = inner.pick(roll);
    return { text: `${name} CONTAINS ${inner.written(v)}`, test: (row) => has(row).includes(v) };
  }

  // Which partitions: { texts, keeps(key), one, many }.
  #partitions() {
    const { roll, schema } = this;
    const names = schema.partition.map((c) => c.name);
    const pick = (c) => Math.min(c.type.pick(roll), 1 + roll(2));
    const kind = roll(10);
    if (kind < 5) {
      const key = schema.partition.map(pick);
      return { texts: key.map((v, i) => `${names[i]} = ${schema.partition[i].type.written(v)}`), keeps: (k) => k.every((v, i) => v === key[i]), one: true };
    }
    if (kind < 6) {
      const key = schema.partition.map(pick);
      const last = key.length - 1;
      const list = [key[last], pick(schema.partition[last]), pick(schema.partition[last])];
      const texts = key.map((v, i) => (i < last ? `${names[i]} = ${schema.partition[i].type.written(v)}` : `${names[i]} IN (${list.map((x) => schema.partition[i].type.written(x)).join(", ")})`));
      return { texts, keeps: (k) => k.every((v, i) => (i < last ? v === key[i] : list.includes(v))), many: true };
    }
    if (kind < 8) {
      const bound = this.tokenOf(schema.partition.map(pick));
      const op = pickOf(roll, [">", ">=", "<", "<=", "="]);
      const holds = { ">": (c) => c > 0, ">=": (c) => c >= 0, "<": (c) => c < 0, "<=": (c) => c <= 0, "=": (c) => c === 0 }[op];
      return { texts: [`token(${names.join(", ")}) ${op} ${bound}`], keeps: (k) => holds(this.tokenOf(k).compare(bound)) };
    }
    return { texts: [], keeps: () => true };
  }

  #source() {
    const { roll } = this;
    const where = this.#partitions();
    const texts = [...where.texts];
    let filtering = false;
    let within = () => true;
    let clustered = false;
    if (where.one || where.many) {
      const range = randomRange(roll, null, this.schema, {});
      texts.push(...range.texts);
      within = range.within;
      clustered = range.texts.length > 0;
    }
    const tests = [];
    if (chance(roll, this.indexed ? 60 : 30) && !(this.indexed && where.many)) {
      const filter = this.#filter();
      texts.push(filter.text);
      tests.push(filter.test);
      filtering = true;
    }
    let partitions = this.model.partitions().filter((p) => where.keeps(p.key));
    partitions.sort((a, b) => this.tokenOf(a.key).compare(this.tokenOf(b.key)));
    let backward = false;
    let order = "";
    if (where.one && this.schema.clustering.length && chance(roll, 40)) {
      backward = chance(roll, 60);
      order = ` ORDER BY ${this.schema.clustering.map((c) => `${c.name} ${c.descending !== backward ? "DESC" : "ASC"}`).join(", ")}`;
    }
    const groups = partitions.map((p) => {
      const rows = this.#flat(p, p.rows.filter((row) => within(row.at)), clustered).filter((row) => tests.every((test) => test(row)));
      return backward ? rows.reverse() : rows;
    });
    return { text: texts.length ? ` WHERE ${texts.join(" AND ")}` : "", order, groups, filtering, unordered: where.many || (this.indexed && filtering), clustered };
  }

  // { cql, rows: each as texts, sorted: whether the order of partitions counts, checks }
  next() {
    const source = this.#source();
    const kind = this.roll(20);
    if (kind === 0) return this.#counted(source);
    if (kind < 3 && !source.filtering && !source.clustered && !source.order) return this.#distinct(source);
    if (kind < 5) return this.#grouped(source);
    return this.#plain(source);
  }

  #finish(cql, source, { limit, filtering = source.filtering } = {}) {
    return `${cql}${limit ? ` LIMIT ${limit}` : ""}${filtering ? " ALLOW FILTERING" : ""}`;
  }

  #plain(source) {
    const { roll, schema } = this;
    const chosen = chance(roll, 30) ? schema.all : schema.all.filter(() => chance(roll, 50));
    const cells = [...schema.regulars, ...schema.statics].filter((c) => !c.type.multicell);
    const fields = (chosen.length ? chosen : [schema.all[0]]).map((c) => ({ text: c.name, of: (row) => (row.value(c.name) === undefined ? null : c.type.shown(row.value(c.name))) }));
    if (cells.length && chance(roll, 40)) {
      const c = pickOf(roll, cells);
      fields.push({ text: `writetime(${c.name}) AS w`, of: (row) => (row.stamp(c.name) ? (row.stamp(c.name).ts > 1e14 ? "later" : String(row.stamp(c.name).ts)) : null) });
      fields.push({ text: `ttl(${c.name}) AS t`, of: (row) => (row.stamp(c.name)?.ttl ? (row.stamp(c.name).short ? "short" : "long") : null) });
    }
    if (chance(roll, 20)) fields.push({ text: `token(${schema.partition.map((c) => c.name).join(", ")}) AS k`, of: (row) => this.tokenOf(row.key).toString() });
    const perPartition = chance(roll, 15) ? 1 + roll(3) : 0;
    const limit = !source.unordered && chance(roll, 25) ? 1 + roll(6) : 0;
    let rows = source.groups.flatMap((group) => (perPartition ? group.slice(0, perPartition) : group));
    if (limit) rows = rows.slice(0, limit);
    const cql = `SELECT ${fields.map((f) => f.text).join(", ")} FROM ${this.table}${source.text}${source.order}${perPartition ? ` PER PARTITION LIMIT ${perPartition}` : ""}`;
    return { cql: this.#finish(cql, source, { limit }), rows: rows.map((row) => fields.map((f) => f.of(row))), sorted: !source.unordered };
  }
  #counted(source) {
    const n = source.groups.reduce((sum, group) => sum + group.length, 0);
    return { cql: this.#finish(`SELECT count(*) FROM ${this.table}${source.text}`, source), rows: [[String(n)]], sorted: true };
  }
  #distinct(source) {
    const columns = [...this.schema.partition, ...this.schema.statics.filter(() => chance(this.roll, 60))];
    const limit = !source.unordered && chance(this.roll, 25) ? 1 + this.roll(3) : 0;
    let rows = source.groups.filter((group) => group.length).map(([row]) => columns.map((c) => (row.value(c.name) === undefined ? null : c.type.shown(row.value(c.name)))));
    if (limit) rows = rows.slice(0, limit);
    return { cql: this.#finish(`SELECT DISTINCT ${columns.map((c) => c.name).join(", ")} FROM ${this.table}${source.text}`, source, { limit }), rows, sorted: !source.unordered };
  }
  #grouped(source) {
    const { roll, schema } = this;
    const by = [...schema.partition, ...schema.clustering.slice(0, roll(schema.clustering.length + 1))];
    const counted = pickOf(roll, [...schema.regulars, ...schema.clustering]);
    const least = pickOf(roll, [...schema.regulars, ...schema.clustering].filter((c) => c.type instanceof Scalar).concat(schema.partition));
    const show = (c, v) => (v === undefined ? null : c.type.shown(v));
    const rows = [];
    for (const group of source.groups) {
      const parts = new Map();
      for (const row of group) {
        const name = JSON.stringify(by.map((c) => row.value(c.name) ?? null));
        parts.set(name, [...(parts.get(name) ?? []), row]);
      }
      for (const part of parts.values()) {
        const values = part.map((row) => row.value(least.name)).filter((v) => v !== undefined);
        const n = part.filter((row) => row.value(counted.name) !== undefined).length;
        const of = (pick) => show(least, values.length ? pick(...values) : undefined);
        rows.push([...by.map((c) => show(c, part[0].value(c.name))), String(part.length), String(n), of(Math.min), of(Math.max)]);
      }
    }
    const fields = [...by.map((c) => c.name), "count(*)", `count(${counted.name}) AS n`, `min(${least.name}) AS lo`, `max(${least.name}) AS hi`];
    const cql = `SELECT ${fields.join(", ")} FROM ${this.table}${source.text} GROUP BY ${by.map((c) => c.name).join(", ")}${source.order}`;
    return { cql: this.#finish(cql, source), rows, sorted: !source.unordered };
  }
}
