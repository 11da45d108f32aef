// Arithmetic in doubles, except Int…, which use 64-bit integers.

const numbers = (operation) => (args) => (args.every((one) => typeof one === "number") ? operation(...args) : undefined);

// Integer arguments only; the result wraps at 64 bits.
function integers(operation) {
  return numbers((...args) => {
    if (!args.every(Number.isInteger)) return undefined;
    const found = operation(...args.map(BigInt));
    return found === undefined ? undefined : Number(BigInt.asIntN(64, found));
  });
}

const roundAway = (x) => Math.sign(x) * Math.round(Math.abs(x));
const logarithm = (x, base) => (base === undefined ? Math.log(x) : base === 10 ? Math.log10(x) : base === 2 ? Math.log2(x) : Math.log(x) / Math.log(base));
const bin = (x, size = 1) => (size === 0 ? undefined : Math.floor(x / size) * size);

export const maths = [
  ["ABS", 1, 1, numbers(Math.abs)],
  ["ACOS", 1, 1, numbers(Math.acos)],
  ["ASIN", 1, 1, numbers(Math.asin)],
  ["ATAN", 1, 1, numbers(Math.atan)],
  ["ATN2", 2, 2, numbers(Math.atan2)],
  ["CEILING", 1, 1, numbers(Math.ceil)],
  ["COS", 1, 1, numbers(Math.cos)],
  ["COT", 1, 1, numbers((x) => 1 / Math.tan(x))],
  ["DEGREES", 1, 1, numbers((x) => (180 / Math.PI) * x)],
  ["EXP", 1, 1, numbers(Math.exp)],
  ["FLOOR", 1, 1, numbers(Math.floor)],
  ["INTADD", 2, 2, integers((a, b) => a + b)],
  ["INTBITAND", 2, 2, integers((a, b) => a & b)],
  ["INTBITLEFTSHIFT", 2, 2, integers((a, b) => a << b)],
  ["INTBITNOT", 1, 1, integers((a) => ~a)],
  ["INTBITOR", 2, 2, integers((a, b) => a | b)],
  ["INTBITRIGHTSHIFT", 2, 2, integers((a, b) => a >> b)],
  ["INTBITXOR", 2, 2, integers((a, b) => a ^ b)],
  ["INTDIV", 2, 2, integers((a, b) => (b === 0n ? undefined : a / b))],
  ["INTMOD", 2, 2, integers((a, b) => (b === 0n ? undefined : a % b))],
  ["INTMUL", 2, 2, integers((a, b) => a * b)],
  ["INTSUB", 2, 2, integers((a, b) => a - b)],
  ["LOG", 1, 2, numbers(logarithm)],
  ["LOG10", 1, 1, numbers(Math.log10)],
  ["NUMBERBIN", 1, 2, numbers(bin)],
  ["PI", 0, 0, () => Math.PI],
  ["POWER", 2, 2, numbers((a, b) => a ** b)],
  ["RADIANS", 1, 1, numbers((x) => (Math.PI * x) / 180)],
  ["RAND", 0, 0, (args, context) => context.random()],
  ["ROUND", 1, 1, numbers(roundAway)],
  ["SIGN", 1, 1, numbers(Math.sign)],
  ["SIN", 1, 1, numbers(Math.sin)],
  ["SQRT", 1, 1, numbers(Math.sqrt)],
  ["SQUARE", 1, 1, numbers((x) => x * x)],
  ["TAN", 1, 1, numbers(Math.tan)],
  ["TRUNC", 1, 1, numbers(Math.trunc)],
];
