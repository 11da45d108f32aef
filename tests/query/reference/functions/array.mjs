// Arrays and sets. Undefined elements are skipped where values are added or compared.

import { aggregates, distinct } from "../aggregates.mjs";
import { equal, typeOf } from "../values.mjs";

const all = { seesUndefined: true };
const has = (list, one) => list.some((other) => equal(other, one));
const arrays2 = (operation) => ([a, b]) => (Array.isArray(a) && Array.isArray(b) ? operation(a, b) : undefined);

// An object matches partially if it has all the members.
function matchesPartly(hay, needle) {
  if (typeOf(needle) !== "object") return equal(hay, needle);
  return typeOf(hay) === "object" && Object.entries(needle).every(([name, one]) => Object.hasOwn(hay, name) && equal(hay[name], one));
}

function contains([list, one, partly = false]) {
  if (!Array.isArray(list) || one === undefined || typeof partly !== "boolean") return undefined;
  return partly ? list.some((hay) => matchesPartly(hay, one)) : has(list, one);
}

// ARRAY_CONTAINS for each value, joined by AND or OR with their rules for undefined.
function containsEach(decisive) {
  return ([list, ...ones]) => {
    if (!Array.isArray(list)) return undefined;
    const found = ones.map((one) => (one === undefined ? undefined : has(list, one)));
    if (found.includes(decisive)) return decisive;
    return found.includes(undefined) ? undefined : !decisive;
  };
}

function slice([list, from, length = Infinity]) {
  if (!Array.isArray(list) || !Number.isInteger(from) || !(Number.isInteger(length) || length === Infinity)) return undefined;
  const start = from < 0 ? Math.max(0, list.length + from) : from;
  return length <= 0 ? [] : list.slice(start, start + length);
}

const over = (operation) => ([list]) => (Array.isArray(list) ? operation(list) : undefined);

function median(list) {
  const found = list.filter((one) => one !== undefined);
  if (found.length === 0 || !found.every((one) => typeof one === "number")) return undefined;
  found.sort((a, b) => a - b);
  const middle = found.length >> 1;
  return found.length % 2 ? found[middle] : (found[middle - 1] + found[middle]) / 2;
}

function objectToArray([object, key = "k", held = "v"]) {
  if (typeOf(object) !== "object" || typeof key !== "string" || typeof held !== "string") return undefined;
  return Object.entries(object).map(([name, one]) => ({ [key]: name, [held]: one }));
}

const intersect = (a, b) => distinct(b).filter((one) => has(a, one));
const difference = (a, b) => distinct(a).filter((one) => !has(b, one));

export const arrays = [
  ["ARRAY_AVG", 1, 1, over(aggregates.AVG)],
  ["ARRAY_CONCAT", 2, 255, (args) => (args.every(Array.isArray) ? args.flat(1) : undefined)],
  ["ARRAY_CONTAINS", 2, 3, contains],
  ["ARRAY_CONTAINS_ALL", 2, 255, containsEach(false), all],
  ["ARRAY_CONTAINS_ANY", 2, 255, containsEach(true), all],
  ["ARRAY_LENGTH", 1, 1, over((list) => list.length)],
  ["ARRAY_MAX", 1, 1, over(aggregates.MAX)],
  ["ARRAY_MEDIAN", 1, 1, over(median)],
  ["ARRAY_MIN", 1, 1, over(aggregates.MIN)],
  ["ARRAY_SLICE", 2, 3, slice],
  ["ARRAY_SUM", 1, 1, over(aggregates.SUM)],
  ["CHOOSE", 2, 255, ([at, ...list]) => (Number.isInteger(at) && at >= 1 ? list[at - 1] : undefined)],
  ["OBJECTTOARRAY", 1, 3, objectToArray],
  ["SETDIFFERENCE", 2, 2, arrays2(difference)],
  ["SETEQUAL", 2, 2, arrays2((a, b) => a.every((one) => has(b, one)) && b.every((one) => has(a, one)))],
  ["SETINTERSECT", 2, 2, arrays2(intersect)],
  ["SETUNION", 2, 2, arrays2((a, b) => distinct([...a, ...b]))],
];
