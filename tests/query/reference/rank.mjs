// rank.mjs — ORDER BY RANK: best first, by BM25, by vector distance, or by both fused (RRF).

import { vectorKind, words } from "./functions/search.mjs";
import { QueryError } from "./errors.mjs";

const [k1, b, fusion] = [1.2, 0.75, 60];

// value(node, scope) evaluates an expression. `all` includes items that WHERE excludes: text statistics count them too.
export function rank(scopes, all, query, value) {
  const scores = scoresOf(query.order[0].expr, scopes, all, value);
  const keyed = scopes.map((scope, i) => ({ scope, score: scores[i] }));
  keyed.sort((x, y) => y.score - x.score);
  return keyed.map(({ scope }) => scope);
}

function scoresOf(call, scopes, all, value) {
  const name = call.name.toUpperCase();
  const textOf = (scope) => value(call.args[0], scope);
  if (name === "RRF") return fused(call, scopes, all, value);
  if (name === "FULLTEXTSCORE") return bm25(scopes.map(textOf), all.map(textOf), call.args.slice(1).map((arg) => value(arg, scopes[0])));
  const options = call.args[3] && value(call.args[3], scopes[0]);
  const sign = vectorKind(options) === "euclidean" ? -1 : 1;
  return scopes.map((scope) => sign * (value(call, scope) ?? -Infinity * sign));
}

function bm25(texts, all, terms) {
  const wordsOf = (text) => (typeof text === "string" ? words(text) : []);
  const documents = all.map(wordsOf);
  const average = documents.reduce((sum, one) => sum + one.length, 0) / documents.length || 1;
  const wanted = terms.flatMap((term) => words(String(term)));
  const weights = wanted.map((word) => {
    const n = documents.filter((one) => one.includes(word)).length;
    return Math.log(1 + (documents.length - n + 0.5) / (n + 0.5));
  });
  const score = (document) =>
    wanted.reduce((sum, word, i) => {
      const times = document.filter((one) => one === word).length;
      return sum + (weights[i] * times * (k1 + 1)) / (times + k1 * (1 - b + (b * document.length) / average));
    }, 0);
  return texts.map((text) => (typeof text === "string" ? score(wordsOf(text)) : -1));
}

// Each score ranks the rows, equal scores share a rank; the fused score of a row is the weighted sum of 1 / (60 + rank).
function fused(call, scopes, all, value) {
  const parts = call.args.filter((arg) => arg.kind === "call");
  const weights = call.args.at(-1).kind === "call" ? parts.map(() => 1) : value(call.args.at(-1), scopes[0]);
  if (!Array.isArray(weights) || weights.length !== parts.length || weights.some((weight) => typeof weight !== "number")) {
    throw new QueryError("SC2229", "The last parameter of the RRF function is an optional array of weights.");
  }
  const sums = scopes.map(() => 0);
  parts.forEach((part, p) => {
    const scores = scoresOf(part, scopes, all, value);
    const sign = Math.sign(weights[p]) || 1;
    scopes.forEach((scope, i) => {
      const place = 1 + new Set(scores.filter((score) => score * sign > scores[i] * sign)).size;
      sums[i] += Math.abs(weights[p]) / (fusion + place);
    });
  });
  return sums;
}
