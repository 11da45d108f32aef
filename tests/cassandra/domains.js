// domains.js — a few values of each type, in Cassandra's order. A value is named by its place; a type tells how it is written, bound, shown and compared.

import { cassandra } from "./harness.js";

const { types } = cassandra;
const long = (text) => types.Long.fromString(text);
const quoted = (value) => `'${String(value).replaceAll("'", "''")}'`;
const plain = (value) => String(value);

const domains = {
  int: { values: [-2147483648, -7, 0, 1, 2, 3, 2147483647], written: plain },
  bigint: { values: ["-9223372036854775808", "-1", "0", "5", "9223372036854775807"].map(long), written: plain },
  text: { values: ["", "A", "a", "a\u0001b", "ab", "it's", "é"], written: quoted },
  boolean: { values: [false, true], written: plain },
  double: { values: [-1e300, -0.5, 0.1, 2.5, 1e300], written: plain },
  varint: { values: ["-123456789012345678901234567890", "-129", "0", "128", "98765432109876543210"].map((text) => types.Integer.fromString(text)), written: plain },
  decimal: { values: ["-1.5", "0.001", "2.50", "123456.789"].map((text) => types.BigDecimal.fromString(text)), written: plain },
  blob: { values: ["", "00", "0001", "61", "ff"].map((hex) => Buffer.from(hex, "hex")), written: (value) => `0x${value.toString("hex")}` },
  timestamp: { values: [-1000, 0, 1700000000123].map((ms) => new Date(ms)), written: (value) => String(value.getTime()) },
  date: { values: ["1969-12-31", "1970-01-01", "2024-02-29"].map((text) => types.LocalDate.fromString(text)), written: quoted },
  uuid: { values: ["00000000-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001", "ffffffff-0000-4000-8000-000000000001"].map((text) => types.Uuid.fromString(text)), written: plain },
  tinyint: { values: [-128, -1, 0, 127], written: plain },
  inet: { values: ["1.2.3.4", "127.0.0.1"].map((text) => types.InetAddress.fromString(text)), written: quoted },
};

export const scalars = Object.keys(domains);
// Those that may be a partition key of one column: not empty.
export const keyable = scalars.filter((name) => !["blob", "text"].includes(name));

export const shown = (value) => {
  if (value === null || value === undefined) return null;
  if (Buffer.isBuffer(value)) return `0x${value.toString("hex")}`;
  if (value instanceof Date) return String(value.getTime());
  if (value instanceof Map) return `{${[...value].map(([k, v]) => `${shown(k)}: ${shown(v)}`).join(", ")}}`;
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  return String(value);
};

export class Scalar {
  constructor(name) {
    const encoder = new cassandra.Encoder(4, {});
    this.name = this.cql = name;
    this.domain = domains[name].values;
    this.n = this.domain.length;
    this.write = domains[name].written;
    this.encoded = this.domain.map((value) => encoder.encode(value, { code: types.dataTypes[name] }));
  }
  written(i) {
    return this.write(this.domain[i]);
  }
  bound(i) {
    return this.domain[i];
  }
  // As INSERT JSON takes it; varint and decimal as texts, since numbers of JSON are read as doubles. The keys of a map are texts.
  json(i) {
    return ["int", "bigint", "boolean", "double", "tinyint", "timestamp"].includes(this.name) ? this.write(this.domain[i]) : JSON.stringify(this.shown(i));
  }
  shown(i) {
    return shown(this.domain[i]);
  }
  pick(roll) {
    return roll(this.n);
  }
  tie(a, b) {
    return Buffer.compare(this.encoded[a], this.encoded[b]);
  }
}

const up = (a, b) => a - b;

export class Collection {
  constructor(kind, keys, values, frozen) {
    Object.assign(this, { kind, keys, values, frozen, multicell: !frozen });
    const inner = kind === "map" ? `map<${keys.cql}, ${values.cql}>` : `${kind}<${(keys ?? values).cql}>`;
    this.cql = frozen ? `frozen<${inner}>` : inner;
  }
  written(value) {
    if (this.kind === "list") return `[${value.map((v) => this.values.written(v)).join(", ")}]`;
    if (this.kind === "set") return `{${value.map((v) => this.keys.written(v)).join(", ")}}`;
    return `{${value.map(([k, v]) => `${this.keys.written(k)}: ${this.values.written(v)}`).join(", ")}}`;
  }
  json(value) {
    const quoted = (text) => (text.startsWith('"') ? text : `"${text}"`);
    if (this.kind === "map") return `{${value.map(([k, v]) => `${quoted(this.keys.json(k))}: ${this.values.json(v)}`).join(", ")}}`;
    return `[${value.map((v) => (this.keys ?? this.values).json(v)).join(", ")}]`;
  }
  bound(value) {
    if (this.kind === "list") return value.map((v) => this.values.bound(v));
    if (this.kind === "set") return value.map((v) => this.keys.bound(v));
    return new Map(value.map(([k, v]) => [this.keys.bound(k), this.values.bound(v)]));
  }
  shown(value) {
    return shown(this.bound(value));
  }
  pick(roll, least = 0) {
    const n = least + roll(4);
    if (this.kind === "list") return Array.from({ length: n }, () => this.values.pick(roll));
    const keys = [...new Set(Array.from({ length: n }, () => this.keys.pick(roll)))].sort(up);
    return this.kind === "set" ? keys : keys.map((k) => [k, this.values.pick(roll)]);
  }
  // Of frozen collections: their bytes.
  tie(a, b) {
    return Buffer.compare(this.#bytes(a), this.#bytes(b));
  }
  #bytes(value) {
    const parts = this.kind === "list" ? value.map((v) => this.values.encoded[v]) : this.kind === "set" ? value.map((v) => this.keys.encoded[v]) : value.flatMap(([k, v]) => [this.keys.encoded[k], this.values.encoded[v]]);
    const int = (n) => Buffer.from([n >> 24, n >> 16, n >> 8, n]);
    return Buffer.concat([int(value.length), ...parts.flatMap((part) => [int(part.length), part])]);
  }
}
