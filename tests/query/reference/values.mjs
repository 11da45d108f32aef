// values.mjs — the values of expressions: JavaScript's undefined, null, booleans, numbers, strings, arrays and objects.
//
// An array may hold undefined (from [c.missing]): functions skip it, and JSON has null for it.

const ranks = { undefined: 0, null: 1, boolean: 2, number: 3, string: 4, array: 5, object: 6 };

export function typeOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

export const isPrimitive = (value) => ["null", "boolean", "number", "string"].includes(typeOf(value));

// Strings are ordered by code points, which is the byte order of UTF-8.
function compareStrings(a, b) {
  const x = [...a];
  const y = [...b];
  const n = Math.min(x.length, y.length);
  for (let i = 0; i < n; i++) if (x[i] !== y[i]) return x[i].codePointAt(0) - y[i].codePointAt(0);
  return x.length - y.length;
}

function compareNumbers(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// The total order of values: by type, then by value; arrays by elements, objects by sorted names and their values.
export function compare(a, b) {
  const type = typeOf(a);
  if (type !== typeOf(b)) return ranks[type] - ranks[typeOf(b)];
  if (type === "boolean" || type === "number") return compareNumbers(Number(a), Number(b));
  if (type === "string") return compareStrings(a, b);
  if (type === "array") return compareLists(a, b);
  if (type === "object") return compareLists(pairs(a), pairs(b));
  return 0;
}

function pairs(object) {
  return Object.keys(object).sort(compareStrings).flatMap((name) => [name, object[name]]);
}

function compareLists(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const found = compare(a[i], b[i]);
    if (found) return found;
  }
  return a.length - b.length;
}

// Deep equality; the order of properties does not matter.
export const equal = (a, b) => compare(a, b) === 0;

// The key of an item's computed properties: a Map by name, which takes precedence over the item's own properties.
export const computed = Symbol("computed");

export function member(value, name) {
  if (typeOf(value) === "object" && value[computed]?.has(name)) return value[computed].get(name);
  return typeOf(value) === "object" && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function element(value, index) {
  if (typeOf(value) === "object" && typeof index === "string") return member(value, index);
  return Array.isArray(value) && Number.isInteger(index) && index >= 0 ? value[index] : undefined;
}

// The value as a client gets it: without members that are undefined, and with null for undefined elements of arrays.
export function shown(value) {
  if (Array.isArray(value)) return value.map((one) => (one === undefined ? null : shown(one)));
  if (typeOf(value) !== "object") return value;
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined).map(([name, one]) => [name, shown(one)]));
}
