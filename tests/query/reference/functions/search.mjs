// Full text and vector distances. Words are compared case-insensitively, without stemming.

export const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

// Whether the phrase's words occur in the text consecutively.
function hasPhrase(text, phrase) {
  const [all, wanted] = [words(text), words(phrase)];
  return wanted.length > 0 && all.some((word, i) => wanted.every((other, j) => all[i + j] === other));
}

const texts = (test) => (args) => (args.every((one) => typeof one === "string") ? test(args[0], args.slice(1)) : undefined);

const isVector = (one) => Array.isArray(one) && one.length > 0 && one.every((x) => typeof x === "number");
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const kinds = {
  cosine: (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)),
  dotproduct: dot,
  euclidean: (a, b) => Math.hypot(...a.map((x, i) => x - b[i])),
};

export function vectorKind(options) {
  const name = String(options?.distanceFunction ?? "cosine").toLowerCase();
  return Object.hasOwn(kinds, name) ? name : undefined;
}

function vectorDistance([a, b, , options]) {
  const kind = vectorKind(options);
  if (!isVector(a) || !isVector(b) || a.length !== b.length || kind === undefined) return undefined;
  return kinds[kind](a, b);
}

export const searches = [
  ["FULLTEXTCONTAINS", 2, 2, texts((text, [phrase]) => hasPhrase(text, phrase))],
  ["FULLTEXTCONTAINSALL", 2, 255, texts((text, phrases) => phrases.every((phrase) => hasPhrase(text, phrase)))],
  ["FULLTEXTCONTAINSANY", 2, 255, texts((text, phrases) => phrases.some((phrase) => hasPhrase(text, phrase)))],
  ["FULLTEXTSCORE", 2, 255, () => undefined], // only in ORDER BY RANK: see rank.mjs
  ["RRF", 2, 255, () => undefined],
  ["VECTORDISTANCE", 2, 4, vectorDistance],
];
