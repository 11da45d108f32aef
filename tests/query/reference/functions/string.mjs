// Strings. Positions count from 0, in UTF-16 units, as in .NET and JavaScript.

import { typeOf } from "../values.mjs";

const isText = (one) => typeof one === "string";

// types: s string, n integer, b boolean, for each argument; the last ones may be missing.
function typed(types, operation) {
  const tests = { s: isText, n: (one) => Number.isInteger(one), b: (one) => typeof one === "boolean" };
  return (args) => (args.every((one, i) => tests[types[i]](one)) ? operation(...args) : undefined);
}

const all = { seesUndefined: true };
const fold = (text) => text.toLowerCase();
const compared = (test) => typed("ssb", (a, b, ignoreCase) => (ignoreCase ? test(fold(a), fold(b)) : test(a, b)));

// CONTAINS for each part, joined by AND or OR with their rules for undefined.
function containsEach(ignoreCase, decisive) {
  return ([text, ...parts]) => {
    if (!isText(text)) return undefined;
    const found = parts.map((part) => (isText(part) ? (ignoreCase ? fold(text).includes(fold(part)) : text.includes(part)) : undefined));
    if (found.includes(decisive)) return decisive;
    return found.includes(undefined) ? undefined : !decisive;
  };
}

function substring(text, start, length) {
  return start < 0 || length <= 0 ? "" : text.slice(start, start + length);
}

function replicate(text, times) {
  return times < 0 || text.length * times > 10_000 ? undefined : text.repeat(times);
}

// Removes characters at the ends that are white space, or in the set.
function trimmed(text, set, left, right) {
  const drop = (c) => (set === undefined ? /\s/.test(c) : set.includes(c));
  let [from, to] = [0, text.length];
  while (left && from < to && drop(text[from])) from++;
  while (right && to > from && drop(text[to - 1])) to--;
  return text.slice(from, to);
}

// The last position of `part` in the text up to and including index `last`.
function lastIndex(text, part, last = text.length) {
  return text.slice(0, last + 1).lastIndexOf(part);
}

function expression(pattern, modifiers = "") {
  if (!/^[msix]*$/.test(modifiers)) return undefined;
  const source = modifiers.includes("x") ? pattern.replace(/\s+/g, "") : pattern;
  try {
    return new RegExp(source, modifiers.replace("x", ""));
  } catch {
    return undefined;
  }
}

function parsed(type) {
  return ([text]) => {
    if (!isText(text)) return undefined;
    try {
      const found = JSON.parse(text);
      return typeOf(found) === type ? found : undefined;
    } catch {
      return undefined;
    }
  };
}

function written([one]) {
  if (isText(one)) return one;
  return typeof one === "number" ? String(one) : JSON.stringify(one);
}

function part(which) {
  return typed("ss", (text, mark) => {
    const at = which.last ? text.lastIndexOf(mark) : text.indexOf(mark);
    if (at < 0) return undefined;
    return which.after ? text.slice(at + mark.length) : text.slice(0, at);
  });
}

export const strings = [
  ["CONCAT", 2, 255, (args) => (args.every(isText) ? args.join("") : undefined)],
  ["CONTAINS", 2, 3, compared((a, b) => a.includes(b))],
  ["CONTAINS_ALL_CI CONTAINSALLCI", 2, 255, containsEach(true, false), all],
  ["CONTAINS_ALL_CS CONTAINSALLCS", 2, 255, containsEach(false, false), all],
  ["CONTAINS_ANY_CI CONTAINSANYCI", 2, 255, containsEach(true, true), all],
  ["CONTAINS_ANY_CS CONTAINSANYCS", 2, 255, containsEach(false, true), all],
  ["ENDSWITH", 2, 3, compared((a, b) => a.endsWith(b))],
  ["INDEX_OF", 2, 3, typed("ssn", (a, b, from = 0) => a.indexOf(b, from))],
  ["LASTINDEXOF", 2, 3, typed("ssn", lastIndex)],
  ["LASTSUBSTRINGAFTER", 2, 2, part({ last: true, after: true })],
  ["LASTSUBSTRINGBEFORE", 2, 2, part({ last: true })],
  ["LEFT", 2, 2, typed("sn", (text, n) => substring(text, 0, n))],
  ["LENGTH", 1, 1, typed("s", (text) => text.length)],
  ["LOWER", 1, 1, typed("s", (text) => text.toLowerCase())],
  ["LTRIM", 1, 2, typed("ss", (text, set) => trimmed(text, set, true, false))],
  ["REGEXMATCH", 2, 3, typed("sss", (text, pattern, modifiers) => expression(pattern, modifiers)?.test(text))],
  ["REPLACE", 3, 3, typed("sss", (text, from, to) => (from === "" ? undefined : text.split(from).join(to)))],
  ["REPLICATE", 2, 2, typed("sn", replicate)],
  ["REVERSE", 1, 1, typed("s", (text) => [...text].reverse().join(""))],
  ["RIGHT", 2, 2, typed("sn", (text, n) => (n <= 0 ? "" : text.slice(-n)))],
  ["RTRIM", 1, 2, typed("ss", (text, set) => trimmed(text, set, false, true))],
  ["STARTSWITH", 2, 3, compared((a, b) => a.startsWith(b))],
  ["STRINGEQUALS", 2, 3, compared((a, b) => a === b)],
  ["STRINGJOIN", 2, 2, ([list, mark]) => (Array.isArray(list) && list.every(isText) && isText(mark) ? list.join(mark) : undefined)],
  ["STRINGSPLIT", 2, 2, typed("ss", (text, mark) => (mark === "" ? [text] : text.split(mark)))],
  ["STRINGTOARRAY", 1, 1, parsed("array")],
  ["STRINGTOBOOLEAN", 1, 1, parsed("boolean")],
  ["STRINGTONULL", 1, 1, parsed("null")],
  ["STRINGTONUMBER", 1, 1, parsed("number")],
  ["STRINGTOOBJECT", 1, 1, parsed("object")],
  ["SUBSTRING", 3, 3, typed("snn", substring)],
  ["SUBSTRINGAFTER", 2, 2, part({ after: true })],
  ["SUBSTRINGBEFORE", 2, 2, part({})],
  ["TOSTRING", 1, 1, written],
  ["TRIM", 1, 2, typed("ss", (text, set) => trimmed(text, set, true, true))],
  ["UPPER", 1, 1, typed("s", (text) => text.toUpperCase())],
];
