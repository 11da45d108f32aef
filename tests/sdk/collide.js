// collide.js — finds partition key values with equal hashes, as an attacker would: MurmurHash3 has no secret, and every step of it can be
// inverted.
//
// For a V2 key, and for each level of a hierarchical key, the bytes 08 · text · FF are hashed to 128 bits; all but the upper two bits are
// the effective partition key. A text of 31 bytes and the type byte fill two blocks of 16 and leave FF for the tail. The first block can
// be chosen freely; the second is computed backwards from the wanted hash. The result must be valid text, so first blocks are tried until
// it is, which takes some thousand tries.

const mask = (1n << 64n) - 1n;
const c1 = 0x87c37b91114253d5n;
const c2 = 0x4cf5ad432745937fn;
const f1 = 0xff51afd7ed558ccdn;
const f2 = 0xc4ceb9fe1a85ec53n;

const rotate = (x, r) => ((x << r) | (x >> (64n - r))) & mask;
const times = (x, y) => (x * y) & mask;
const plus = (x, y) => (x + y) & mask;
const minus = (x, y) => (x - y) & mask;

// The inverse of an odd number modulo 2^64, by Newton's method: each step doubles the number of correct bits.
function inverse(x) {
  let y = x;
  for (let i = 0; i < 6; i++) y = times(y, minus(2n, times(x, y)));
  return y;
}
const [c1Inverse, c2Inverse, f1Inverse, f2Inverse, fiveInverse] = [c1, c2, f1, f2, 5n].map(inverse);

const mixFirst = (k) => times(rotate(times(k, c1), 31n), c2);
const mixSecond = (k) => times(rotate(times(k, c2), 33n), c1);
const unmixFirst = (k) => times(rotate(times(k, c2Inverse), 33n), c1Inverse);
const unmixSecond = (k) => times(rotate(times(k, c1Inverse), 31n), c2Inverse);

const finish = (h) => {
  h = times(h ^ (h >> 33n), f1);
  h = times(h ^ (h >> 33n), f2);
  return h ^ (h >> 33n);
};
const unfinish = (h) => {
  h = times(h ^ (h >> 33n), f2Inverse);
  h = times(h ^ (h >> 33n), f1Inverse);
  return h ^ (h >> 33n);
};

const load = (bytes, from, n) => {
  let v = 0n;
  for (let i = n - 1; i >= 0; i--) v = (v << 8n) | BigInt(bytes[from + i]);
  return v;
};

function round([h1, h2], k1, k2) {
  h1 = plus(times(plus(rotate(h1 ^ mixFirst(k1), 27n), h2), 5n), 0x52dce729n);
  h2 = plus(times(plus(rotate(h2 ^ mixSecond(k2), 31n), h1), 5n), 0x38495ab5n);
  return [h1, h2];
}

export function murmur(bytes) {
  const blocks = bytes.length >> 4;
  const rest = bytes.length & 15;
  let state = [0n, 0n];
  for (let i = 0; i < blocks; i++) state = round(state, load(bytes, 16 * i, 8), load(bytes, 16 * i + 8, 8));
  let [h1, h2] = state;
  if (rest > 8) h2 ^= mixSecond(load(bytes, 16 * blocks + 8, rest - 8));
  if (rest) h1 ^= mixFirst(load(bytes, 16 * blocks, Math.min(rest, 8)));
  const n = BigInt(bytes.length);
  h1 = plus(h1 ^ n, h2 ^ n);
  h2 = plus(h2 ^ n, h1);
  h1 = finish(h1);
  h2 = finish(h2);
  h1 = plus(h1, h2);
  return [h1, plus(h2, h1)];
}

const hashed = (text) => Buffer.concat([Buffer.from([8]), Buffer.from(text, "utf8"), Buffer.from([0xff])]);

// The effective partition key of a string in a V2 container, or of one level of a hierarchical key, in hex.
export function epkOf(text) {
  const [h1, h2] = murmur(hashed(text));
  return (((h2 & (mask >> 2n)) << 64n) | h1).toString(16).toUpperCase().padStart(32, "0");
}

// The state before the finalizer and before the tail of one byte, FF, for a length of n bytes.
function beforeTail(h1, h2, n) {
  h2 = minus(h2, h1);
  h1 = minus(h1, h2);
  h1 = unfinish(h1);
  h2 = unfinish(h2);
  h2 = minus(h2, h1);
  h1 = minus(h1, h2);
  return [h1 ^ n ^ mixFirst(0xffn), h2 ^ n];
}

// The block that leads from one state to another.
function blockBetween([a1, a2], [b1, b2]) {
  const k1 = unmixFirst(rotate(minus(times(minus(b1, 0x52dce729n), fiveInverse), a2), 37n) ^ a1);
  const k2 = unmixSecond(rotate(minus(times(minus(b2, 0x38495ab5n), fiveInverse), b1), 33n) ^ a2);
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(k1, 0);
  bytes.writeBigUInt64LE(k2, 8);
  return bytes;
}

const isText = (bytes) => Buffer.from(bytes.toString("utf8"), "utf8").equals(bytes);

// Another string with the effective partition key of `text`. It begins with `word` (up to 7 letters), so that many can be made.
export function collide(text, word = "tenant") {
  const [h1, h2] = murmur(hashed(text));
  const wanted = [0n, 1n, 2n, 3n].map((top) => beforeTail(h1, (h2 & (mask >> 2n)) | (top << 62n), 33n));
  const first = Buffer.alloc(16);
  first[0] = 8;
  for (let i = 0; ; i++) {
    first.write(`${word.padEnd(7, "-")}${i.toString(36).padStart(8, "0")}`, 1, "latin1");
    const state = round([0n, 0n], load(first, 0, 8), load(first, 8, 8));
    for (const end of wanted) {
      const second = blockBetween(state, end);
      if (second.every((byte) => byte < 0xf8) && isText(second)) return Buffer.concat([first.subarray(1), second]).toString("utf8");
    }
  }
}
