// functions.mjs — the system functions by name in upper case: { least, most, seesUndefined, apply(args, context) }.
//
// Unless seesUndefined, a function is not called with an undefined argument; the result is undefined then. An argument of the wrong type
// gives undefined too.

import { arrays } from "./functions/array.mjs";
import { dates } from "./functions/date.mjs";
import { maths } from "./functions/math.mjs";
import { others } from "./functions/other.mjs";
import { searches } from "./functions/search.mjs";
import { spatials } from "./functions/spatial.mjs";
import { strings } from "./functions/string.mjs";
import { types } from "./functions/type.mjs";

export const functions = new Map();
for (const table of [arrays, dates, maths, others, searches, spatials, strings, types]) {
  for (const [names, least, most, apply, options] of table) {
    for (const name of names.split(" ")) functions.set(name, { name, least, most, apply, ...options });
  }
}
