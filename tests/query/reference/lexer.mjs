// lexer.mjs — the tokens of a query: { kind, text, value, start, end }. Kinds: name, keyword, parameter, number, string, symbol, end.

import { QueryError } from "./errors.mjs";

const keywords = new Set(
  ("AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS FROM GROUP IN JOIN LEFT LIKE LIMIT NOT OFFSET OR ORDER RIGHT SELECT TOP VALUE WHERE").split(" "),
);
const literals = new Map([["true", true], ["false", false], ["null", null], ["undefined", undefined]]);
const symbols = ">>> << >> <> != <= >= || ?? ( ) [ ] { } . , : * / % + - & | ^ ~ = < > ?".split(" ");
const escapes = { "'": "'", '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

export function tokens(text) {
  const found = [];
  let at = 0;
  const put = (kind, end, value) => {
    found.push({ kind, text: text.slice(at, end), value, start: at, end });
    at = end;
  };
  while (at < text.length) {
    const rest = text.slice(at);
    const blank = /^(\s+|--[^\r\n]*)/.exec(rest);
    const name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(rest)?.[0];
    const number = /^(0[xX][0-9a-fA-F]+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)/.exec(rest)?.[0];
    const parameter = /^@[A-Za-z_][A-Za-z0-9_]*/.exec(rest)?.[0];
    const symbol = symbols.find((one) => rest.startsWith(one));
    if (blank) at += blank[0].length;
    else if (name !== undefined) word(name, at, put);
    else if (number !== undefined) put("number", at + number.length, Number(number));
    else if (parameter) put("parameter", at + parameter.length, parameter);
    else if (rest[0] === '"' || rest[0] === "'") string(text, at, put);
    else if (symbol) put("symbol", at + symbol.length, symbol);
    else throw new QueryError("SC1010", `Syntax error, invalid token '${rest[0]}'.`, at, at + 1);
  }
  put("end", at);
  return found;
}

// true, false, null, undefined and udf must be lower case; other keywords are case-insensitive.
function word(name, at, put) {
  if (literals.has(name)) put("literal", at + name.length, literals.get(name));
  else if (keywords.has(name.toUpperCase())) put("keyword", at + name.length, name.toUpperCase());
  else put("name", at + name.length, name);
}

function string(text, at, put) {
  const quote = text[at];
  const wrong = () => new QueryError("SC1012", `Syntax error, invalid string literal token '${text.slice(at)}'.`, at, text.length);
  let value = "";
  let i = at + 1;
  for (; text[i] !== quote; i++) {
    if (i >= text.length) throw wrong();
    if (text[i] !== "\\") {
      value += text[i];
      continue;
    }
    const unicode = /^u([0-9a-fA-F]{4})/.exec(text.slice(i + 1, i + 6));
    if (unicode) {
      value += String.fromCharCode(parseInt(unicode[1], 16));
      i += 5;
    } else if (text[i + 1] in escapes) {
      value += escapes[text[++i]];
    } else {
      throw wrong();
    }
  }
  put("string", i + 1, value);
}
