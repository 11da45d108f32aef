// Type tests. They are called with undefined too, and return false for it.

import { isPrimitive, typeOf } from "../values.mjs";
import { parseDate } from "./date.mjs";

const is = (type) => ([one]) => typeOf(one) === type;
const all = { seesUndefined: true };
const wholeMax = 2 ** 63;

export const types = [
  ["IS_ARRAY", 1, 1, is("array"), all],
  ["IS_BOOL", 1, 1, is("boolean"), all],
  ["IS_DATETIME", 1, 1, ([one]) => typeof one === "string" && parseDate(one) !== undefined, all],
  ["IS_DEFINED", 1, 1, ([one]) => one !== undefined, all],
  ["IS_FINITE_NUMBER", 1, 1, ([one]) => Number.isFinite(one), all],
  ["IS_INTEGER", 1, 1, ([one]) => Number.isInteger(one) && one >= -wholeMax && one <= wholeMax, all],
  ["IS_NULL", 1, 1, is("null"), all],
  ["IS_NUMBER", 1, 1, is("number"), all],
  ["IS_OBJECT", 1, 1, is("object"), all],
  ["IS_PRIMITIVE", 1, 1, ([one]) => isPrimitive(one), all],
  ["IS_STRING", 1, 1, is("string"), all],
];
