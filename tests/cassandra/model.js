// model.js — what a table of Cassandra holds, as simply as it can be said: cells with timestamps, of which the later wins. random.test.js compares the
// server with it.
//
//   const table = new Model(schema);
//   table.write({ key: [3], row: [1], ts: 7, set: [{ column: "a", kind: "set", value: 2 }] });
//   table.partitions();      in no order, each with its live rows in clustering order
//
// A value is its place in the list of values of its type (domains.js), so that values compare as numbers. A list is an array of them, a set a sorted
// array, a map a sorted array of pairs.

const NEVER = -Infinity;

export class Model {
  constructor(schema) {
    this.schema = schema;
    this.known = new Map();
    this.expired = false; // whether short times to live are over
  }

  // ---- writing ----

  // One row, or the static row of a partition (row null). deletes: the whole row. inserts: it exists even without cells.
  write(mutation) {
    const row = this.#rowOf(mutation.key, mutation.row);
    const hidden = mutation.deletes ? NEVER : this.#hiddenUntil(mutation.key, mutation.row);
    if (mutation.ts <= hidden) {
      if (!remembers(row)) return;
      this.#delete(row, hidden);
    }
    if (mutation.deletes) this.#delete(row, mutation.ts);
    if (mutation.inserts) this.#mark(row, mutation);
    for (const assignment of mutation.set ?? []) this.#assign(row, assignment, mutation);
  }
  // All rows of a partition that `within` accepts; `whole`: the static row too. The range hides later writes that are older from the other rows.
  deleteRange(key, within, whole, ts) {
    const partition = this.#partitionOf(key);
    partition.ranges.push({ within, ts });
    for (const row of partition.rows.values()) if (within(row.at) && remembers(row)) this.#delete(row, ts);
    if (whole) this.#delete(partition.statics, ts);
  }

  #hiddenUntil(key, at) {
    const ranges = this.#partitionOf(key).ranges.filter((range) => at !== null && range.within(at));
    return Math.max(NEVER, ...ranges.map((range) => range.ts));
  }
  #partitionOf(key) {
    const name = JSON.stringify(key);
    if (!this.known.has(name)) this.known.set(name, { key, statics: emptyRow(null), rows: new Map(), ranges: [] });
    return this.known.get(name);
  }
  #rowOf(key, at) {
    const partition = this.#partitionOf(key);
    if (at === null) return partition.statics;
    const name = JSON.stringify(at);
    if (!partition.rows.has(name)) partition.rows.set(name, emptyRow(at));
    return partition.rows.get(name);
  }
  // Short times to live are over. A row of which nothing else is left is gone: it hides nothing any more.
  expire() {
    this.expired = true;
    const fades = (cell) => (cell.elements ? cell.deleted === NEVER && cell.elements.every(fades) : cell.short && !cell.dead);
    const gone = (row) => row.deleted === NEVER && (!row.marker || row.marker.short) && [...row.cells.values()].every(fades);
    for (const partition of this.known.values()) {
      for (const [name, row] of partition.rows) if (gone(row)) partition.rows.delete(name);
      if (gone(partition.statics)) partition.statics = emptyRow(null);
    }
  }
  isOver(stamp) {
    return this.expired && stamp.short;
  }
  #delete(row, ts) {
    if (ts <= row.deleted) return;
    row.deleted = ts;
    if (row.marker && row.marker.ts <= ts) row.marker = null;
    for (const [name, cell] of row.cells) {
      if (cell.elements) {
        cell.elements = cell.elements.filter((e) => e.ts > ts);
        if (cell.deleted <= ts) cell.deleted = NEVER;
      } else if (cell.ts <= ts) row.cells.delete(name);
    }
  }
  #mark(row, { ts, ttl, short }) {
    if (ts <= row.deleted) return;
    const old = row.marker;
    if (!old || ts > old.ts || (ts === old.ts && (ttl ?? 0) > (old.ttl ?? 0))) row.marker = { ts, ttl, short };
  }
  #assign(row, { column, kind, value, at }, { ts, ttl, short }) {
    const type = this.schema.types.get(column);
    const stamp = { ts, ttl, short };
    if (!type.multicell) {
      if (ts <= row.deleted) return;
      const cell = { ...stamp, value, dead: value === null };
      if (cell.dead) delete cell.ttl, delete cell.short;
      const old = row.cells.get(column);
      if (!old || this.#wins(type, cell, old)) row.cells.set(column, cell);
      return;
    }
    if (!row.cells.has(column)) row.cells.set(column, { elements: [], deleted: NEVER });
    this.#assignElements(row, row.cells.get(column), type, kind, value, at, stamp);
  }
  #wins(type, by, over) {
    if (by.ts !== over.ts) return by.ts > over.ts;
    const [byDead, overDead] = [by.dead || this.isOver(by), over.dead || this.isOver(over)];
    if (byDead !== overDead) return byDead;
    if (byDead) return true;
    const order = type.tie(by.value, over.value);
    return order ? order > 0 : (by.ttl ?? Infinity) >= (over.ttl ?? Infinity);
  }
  #assignElements(row, cell, type, kind, value, at, stamp) {
    const hidden = () => stamp.ts <= row.deleted || stamp.ts <= cell.deleted;
    const live = () => cell.elements.filter((e) => !e.dead && !this.isOver(e));
    const put = (key, v, dead) => {
      if (hidden()) return;
      const e = { key, value: v, dead, ...(dead ? { ts: stamp.ts } : stamp) };
      const i = cell.elements.findIndex((old) => old.key === key);
      if (i < 0) cell.elements.push(e);
      else if (this.#wins(type.values ?? valueless, e, cell.elements[i])) cell.elements[i] = e;
    };
    const add = (v, before) => {
      if (v === null) return;
      if (type.kind === "set") for (const key of v) put(key, null, false);
      else if (type.kind === "map") for (const [key, each] of v) put(key, each, false);
      else if (!hidden()) {
        const more = v.map((each) => ({ value: each, ...stamp }));
        cell.elements = before ? [...more, ...cell.elements] : [...cell.elements, ...more];
      }
    };
    if (kind === "set") {
      const until = value === null ? stamp.ts : stamp.ts - 1;
      if (until > row.deleted && until > cell.deleted) cell.deleted = until;
      cell.elements = cell.elements.filter((e) => e.ts > cell.deleted);
      add(value, false);
    } else if (kind === "add") add(value, false);
    else if (kind === "prepend") add(value, true);
    else if (kind === "remove" && type.kind === "list") cell.elements = cell.elements.filter((e) => e.ts > stamp.ts || !value.includes(e.value));
    else if (kind === "remove") for (const key of value) put(key, null, true);
    else if (kind === "element" && type.kind === "list") {
      const old = live()[at];
      if (value === null && old.ts <= stamp.ts) cell.elements.splice(cell.elements.indexOf(old), 1);
      else if (value !== null && this.#wins(type.values, { ...stamp, value }, old)) cell.elements[cell.elements.indexOf(old)] = { value, ...stamp };
    } else put(at, type.kind === "map" ? value : null, value === null);
  }

  // ---- reading ----

  // A live row as plain values, or null: { at, values: Map of column → value, stamps: Map of column → { ts, ttl } }.
  read(row) {
    const values = new Map();
    const stamps = new Map();
    for (const [name, cell] of row.cells) {
      if (!cell.elements) {
        if (cell.dead || this.isOver(cell)) continue;
        values.set(name, cell.value);
        stamps.set(name, cell);
        continue;
      }
      const type = this.schema.types.get(name);
      const live = cell.elements.filter((e) => !e.dead && !this.isOver(e));
      if (!live.length) continue;
      if (type.kind === "list") values.set(name, live.map((e) => e.value));
      else {
        live.sort((a, b) => a.key - b.key);
        values.set(name, live.map((e) => (type.kind === "set" ? e.key : [e.key, e.value])));
      }
    }
    const marked = row.marker && !this.isOver(row.marker);
    return values.size || (marked && row.at !== null) ? { at: row.at, values, stamps } : null;
  }
  rowAt(key, at) {
    const partition = this.known.get(JSON.stringify(key));
    const row = at === null ? partition?.statics : partition?.rows.get(JSON.stringify(at));
    return row ? this.read(row) : null;
  }
  // Each with its static values, or null, and its live rows in clustering order; without those that have neither.
  partitions() {
    const all = [];
    for (const partition of this.known.values()) {
      const rows = [...partition.rows.values()].map((row) => this.read(row)).filter((row) => row);
      rows.sort((a, b) => this.compare(a.at, b.at));
      const statics = this.read(partition.statics);
      if (rows.length || statics) all.push({ key: partition.key, statics, rows });
    }
    return all;
  }
  compare(a, b) {
    for (const [i, column] of this.schema.clustering.entries()) if (a[i] !== b[i]) return column.descending ? b[i] - a[i] : a[i] - b[i];
    return 0;
  }
}

const valueless = { tie: () => 0 };
const emptyRow = (at) => ({ at, marker: null, deleted: NEVER, cells: new Map() });

// Whether anything of the row is left, be it a deletion.
const remembers = (row) =>
  row.marker || row.deleted !== NEVER || [...row.cells.values()].some((cell) => !cell.elements || cell.elements.length || cell.deleted !== NEVER);
