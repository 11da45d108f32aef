// aggregates.mjs — aggregates over the values of a group's rows. Undefined values do not count.

import { compare, equal, isPrimitive } from "./values.mjs";

const defined = (values) => values.filter((one) => one !== undefined);

// Numbers only: any other value makes the result undefined.
function numbers(values, sum) {
  const found = defined(values);
  return found.every((one) => typeof one === "number") ? sum(found) : undefined;
}

const total = (values) => values.reduce((sum, one) => sum + one, 0);

// An array or an object makes the result undefined.
function extreme(values, sign) {
  const found = defined(values);
  if (!found.every(isPrimitive)) return undefined;
  return found.reduce((best, one) => (best === undefined || compare(one, best) * sign > 0 ? one : best), undefined);
}

export const distinct = (values) => values.filter((one, i) => values.findIndex((other) => equal(other, one)) === i);

export const aggregates = {
  COUNT: (values) => defined(values).length,
  SUM: (values) => numbers(values, total),
  AVG: (values) => numbers(values, (found) => (found.length ? total(found) / found.length : undefined)),
  MIN: (values) => extreme(values, -1),
  MAX: (values) => extreme(values, 1),
  COUNTIF: (values) => values.filter((one) => one === true).length,
  MAKELIST: defined,
  MAKESET: (values) => distinct(defined(values)),
};
