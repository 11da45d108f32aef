// format.mjs — reads files of query cases (see README.md) and compares rows with the expected ones.

const optionWords = ["doubt", "only"];
const nothing = { items: [], container: {} };

// A file: [{ title, line, query, parameters, options: { doubt, only }, expected, given: { items, container, functions } }].
// expected: { errors: [{ code, start, end }], words } or { rows, order: "ordered" | "unordered" | "exactly", charge }.
export function parseCases(text, file) {
  const lines = text.split("\n");
  const cases = [];
  let at = 0;
  let given = { items: [], container: {}, line: 0 };
  const wrong = (why, line = at) => {
    throw new Error(`${file}:${line + 1}: ${why}: ${lines[line] ?? "the end of the file"}`);
  };
  const json = (text, line) => {
    try {
      return JSON.parse(text);
    } catch (error) {
      wrong(`no JSON (${error.message})`, line);
    }
  };
  const isBoundary = () => at >= lines.length || /^(===|given )/.test(lines[at]);
  const skip = () => {
    while (at < lines.length && /^\s*(#.*)?$/.test(lines[at])) at++;
  };

  const readGiven = () => {
    const [, what, rest] = /^given (items|container|functions)\s*(.*)$/.exec(lines[at]) ?? wrong("given items, given container or given functions was expected");
    const line = at++;
    if (what === "container") {
      given = { items: [], container: json(rest, line), line };
      return;
    }
    if (what === "functions") return readFunctions(line);
    given = { ...given, items: [], line };
    for (; !isBoundary(); at++) if (/\S/.test(lines[at]) && !lines[at].startsWith("#")) given.items.push({ id: String(given.items.length + 1), ...json(lines[at], at) });
  };

  // Reads "name = function (a) { … }"; lines that begin with a blank continue it.
  const readFunctions = (line) => {
    const functions = {};
    let name;
    for (; !isBoundary(); at++) {
      if (!/\S/.test(lines[at]) || lines[at].startsWith("#")) continue;
      const found = /^(\w+) = (.*)$/.exec(lines[at]);
      if (!found && !(name && /^\s/.test(lines[at]))) wrong("a line like f = function (x) { return x; } was expected");
      name = found ? found[1] : name;
      functions[name] = found ? found[2] : `${functions[name]}\n${lines[at]}`;
    }
    given = { ...given, functions, line };
  };

  const readExpected = () => {
    const [, rest] = /^---\s*(.*)$/.exec(lines[at]);
    const from = at++;
    const body = [];
    for (; !isBoundary(); at++) if (/\S/.test(lines[at]) && !lines[at].startsWith("#")) body.push([lines[at].trim(), at]);
    if (rest === "error" || rest.startsWith("error ")) return { errors: readErrors(rest.slice(6)), words: body.map(([text]) => text) };
    const expected = { order: "ordered", rows: body.map(([text, line]) => json(text, line)), texts: body.map(([text]) => text) };
    for (const [, word, value] of rest.matchAll(/(unordered|exactly|charge)\s*([\d.]*)/g)) {
      if (word === "charge") expected.charge = Number(value);
      else expected.order = word;
    }
    if (rest.replace(/(unordered|exactly|charge [\d.]+)\s*,?/g, "").trim()) wrong("---, --- unordered, --- exactly, --- charge N or --- error … was expected", from);
    return expected;
  };

  // Reads "SC2005 7-14, SC2203 29-34": codes, with locations if known.
  const readErrors = (text) =>
    text.split(",").filter((one) => /\S/.test(one)).map((one) => {
      const [, code, start, end] = /^\s*(SC\d+|\d+)(?: (\d+)-(\d+))?\s*$/.exec(one) ?? wrong("an error like SC2005 7-14 was expected", at - 1);
      return { code: /^\d+$/.test(code) ? Number(code) : code, start: start && Number(start), end: end && Number(end) };
    });

  // Reads lines of "expression => value"; each is a case.
  const readTable = (title, options) => {
    for (; !isBoundary(); at++) {
      if (!/\S/.test(lines[at]) || lines[at].startsWith("#")) continue;
      const split = lines[at].lastIndexOf(" => ");
      if (split < 0) wrong("a line like LENGTH(\"abc\") => 3 was expected");
      const [expression, value] = [lines[at].slice(0, split).trim(), lines[at].slice(split + 4).trim()];
      const rows = value === "undefined" ? [] : [json(value, at)];
      const [query, expected] = [`SELECT VALUE ${expression}`, { order: "ordered", rows }];
      cases.push({ title: `${title}: ${expression}`, line: at + 1, query, parameters: {}, options, expected, given: given.functions ? given : nothing, isValue: true });
    }
  };

  const readCase = () => {
    const title = lines[at].slice(3).trim();
    const line = ++at;
    const options = {};
    for (;;) {
      skip();
      const [, word, value] = /^(\w+): (.*)$/.exec(lines[at] ?? "") ?? [];
      if (!optionWords.includes(word)) break;
      options[word] = value;
      at++;
    }
    const body = [];
    const from = at;
    const parameters = {};
    for (; !isBoundary() && !lines[at].startsWith("---"); at++) {
      const [, name, value] = /^(@\w+) = (.*)$/.exec(lines[at]) ?? [];
      if (name) parameters[name] = json(value, at);
      else body.push(lines[at]);
    }
    if (isBoundary()) {
      at = from;
      return readTable(title, options);
    }
    cases.push({ title, line, query: body.join("\n").trim(), parameters, options, given, expected: readExpected() });
  };

  for (skip(); at < lines.length; skip()) {
    if (lines[at].startsWith("===")) readCase();
    else if (lines[at].startsWith("given ")) readGiven();
    else wrong("=== or given was expected");
  }
  return cases;
}

// ---- comparing ----

const forms = {
  "<any>": () => true,
  "<string>": (value) => typeof value === "string",
  "<number>": (value) => typeof value === "number",
  "<date>": (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/.test(value),
};

function isForm(pattern) {
  return typeof pattern === "string" && (pattern in forms || /^<near /.test(pattern));
}

// "<near 3345.27 1%>"
function fitsForm(pattern, value) {
  if (pattern in forms) return forms[pattern](value);
  const [, near, percent] = /^<near (\S+) (\S+)%>$/.exec(pattern);
  return typeof value === "number" && Math.abs(value - near) <= (Math.abs(near) * percent) / 100;
}

// Fractions may differ in their last digits, as math libraries do.
function sameNumber(a, b) {
  if (a === b) return true;
  const isFraction = !Number.isInteger(a) || !Number.isInteger(b) || Math.abs(a) > 2 ** 53;
  return isFraction && Math.abs(a - b) <= 1e-14 * Math.max(Math.abs(a), Math.abs(b));
}

// Whether a row matches the pattern in the case.
export function fits(pattern, value) {
  if (isForm(pattern)) return fitsForm(pattern, value);
  if (typeof pattern === "number" && typeof value === "number") return sameNumber(pattern, value);
  if (pattern === null || typeof pattern !== "object") return pattern === value;
  if (value === null || typeof value !== "object" || Array.isArray(pattern) !== Array.isArray(value)) return false;
  if (Array.isArray(pattern)) return pattern.length === value.length && pattern.every((one, i) => fits(one, value[i]));
  const names = Object.keys(pattern);
  const bare = withoutSystem(value, pattern);
  return names.length === Object.keys(bare).length && names.every((name) => Object.hasOwn(bare, name) && fits(pattern[name], bare[name]));
}

const system = ["_rid", "_self", "_etag", "_attachments", "_ts"];

// A whole item without system properties, except those that the case names.
function withoutSystem(value, pattern = {}) {
  if (!system.every((name) => Object.hasOwn(value, name))) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !system.includes(name) || Object.hasOwn(pattern, name)));
}

// What is wrong with the rows, or undefined. loosely: ignore the order, even if the case gives one.
export function judgeRows(expected, rows, loosely = false) {
  if (expected.order === "exactly") {
    const texts = rows.map((row) => JSON.stringify(row !== null && typeof row === "object" ? withoutSystem(row) : row));
    return texts.join("\n") === expected.texts.join("\n") ? undefined : "the rows are not exactly these";
  }
  if (rows.length !== expected.rows.length) return `${rows.length} rows, not ${expected.rows.length}`;
  if (expected.order === "ordered" && !loosely) {
    const i = expected.rows.findIndex((row, at) => !fits(row, rows[at]));
    return i < 0 ? undefined : `row ${i + 1} is ${JSON.stringify(rows[i])}, not ${JSON.stringify(expected.rows[i])}`;
  }
  const left = [...rows];
  for (const row of expected.rows) {
    const i = left.findIndex((one) => fits(row, one));
    if (i < 0) return `no row is ${JSON.stringify(row)}`;
    left.splice(i, 1);
  }
}

// errors: in the service's form, [{ code, location: { start, end }, message }]. A server may stop at the first of several errors.
export function judgeErrors(expected, errors, text) {
  for (const { code, location } of errors) {
    if (expected.errors.length === 0) break;
    const known = expected.errors.filter((one) => one.code === code);
    if (known.length === 0) return `the error is ${code}, not ${expected.errors.map((one) => one.code).join(" or ")}`;
    const fitting = known.some(({ start, end }) => start === undefined || (location?.start === start && location?.end === end));
    if (!fitting) return `${code} is at ${location?.start}-${location?.end}, not ${known.map((one) => `${one.start}-${one.end}`).join(" or ")}`;
  }
  if (errors.length === 0 && expected.errors.length > 0) return "the error has no code";
  const missing = expected.words.find((words) => !text.includes(words));
  return missing === undefined ? undefined : `the message does not say ${JSON.stringify(missing)}`;
}
