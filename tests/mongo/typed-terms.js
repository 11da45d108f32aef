// Random documents, filters, expressions, pipelines and updates in which each field has one type, or is missing: what MongoDB and implementations
// for JavaScript agree about. Members: n and m are numbers, s a text, l a list of numbers, o an object with n and s, r a list of such objects.

import { dice } from "./dice.js";

export class TypedTerms {
  constructor(seed) {
    this.roll = dice(seed);
  }
  pick(list) {
    return list[this.roll(list.length)];
  }
  times(least, most, make) {
    return Array.from({ length: least + this.roll(most - least + 1) }, make);
  }
  any(...makers) {
    return this.pick(makers)();
  }

  // ---- values ----

  n() {
    return this.pick([-3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 0.5, 1.5, 2.25]);
  }
  s() {
    return this.pick(["a", "b", "ab", "abc", "bca", "A", "Ab", "é", " a "]);
  }
  l() {
    return this.times(0, 4, () => this.n());
  }
  o() {
    return { n: this.n(), s: this.s() };
  }
  document(_id) {
    const all = { n: this.n(), m: this.n(), s: this.s(), l: this.l(), o: this.o(), r: this.times(0, 3, () => this.o()) };
    return { _id, ...Object.fromEntries(Object.entries(all).filter(() => this.roll(6) > 0)) };
  }

  // ---- filters ----

  filter(depth = 2) {
    if (depth > 0 && this.roll(3) === 0) {
      return { [this.pick(["$and", "$or", "$nor"])]: this.times(1, 3, () => this.filter(depth - 1)) };
    }
    return this.any(
      () => ({ [this.pick(["n", "m", "o.n"])]: this.ofNumber() }),
      () => ({ [this.pick(["s", "o.s"])]: this.ofText() }),
      () => ({ [this.pick(["l", "r.n"])]: this.ofNumbers() }),
      () => ({ l: this.ofList() }),
      () => ({ r: { $elemMatch: { n: this.ofNumber(), s: this.ofText() } } }),
      () => ({ [this.pick(["n", "s", "l", "o", "r", "o.n", "o.x"])]: { $exists: this.roll(2) === 1 } }),
      () => ({ $expr: this.truth(2) }),
    );
  }
  compared(make) {
    return this.any(
      () => make(),
      () => ({ [this.pick(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])]: make() }),
      () => ({ $gte: make(), $lt: make() }),
      () => ({ [this.pick(["$in", "$nin"])]: this.times(0, 3, make) }),
      () => ({ $not: { [this.pick(["$gt", "$lte", "$eq", "$ne"])]: make() } }),
    );
  }
  ofNumber() {
    return this.compared(() => this.n());
  }
  ofText() {
    return this.roll(3) ? this.compared(() => this.s()) : { $regex: this.pick(["^a", "b$", "a.*c", "A"]), $options: this.pick(["", "i"]) };
  }
  // Some value of a list.
  ofNumbers() {
    return this.compared(() => this.n());
  }
  ofList() {
    return this.any(
      () => ({ $size: this.roll(5) }),
      () => ({ $all: this.times(1, 3, () => this.n()) }),
      () => ({ $elemMatch: { $gt: this.n(), $lt: this.n() } }),
      () => ({ $elemMatch: { [this.pick(["$eq", "$ne", "$gte"])]: this.n() } }),
      () => this.l().concat(1),
    );
  }

  // ---- expressions: none of them is missing or null ----

  truth(depth) {
    if (depth <= 0) return this.pick([true, false]);
    return this.any(
      () => ({ [this.pick(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])]: [this.number(depth - 1), this.number(depth - 1)] }),
      () => ({ [this.pick(["$eq", "$ne", "$gt", "$lte"])]: [this.text(depth - 1), this.text(depth - 1)] }),
      () => ({ [this.pick(["$and", "$or"])]: this.times(1, 3, () => this.truth(depth - 1)) }),
      () => ({ $not: [this.truth(depth - 1)] }),
      () => ({ $in: [this.number(depth - 1), this.list(depth - 1)] }),
      () => ({ $isArray: [this.pick(["$l", "$n", "$r"])] }),
      () => ({ $setIsSubset: [this.list(depth - 1), this.list(depth - 1)] }),
      () => ({ $allElementsTrue: [this.list(depth - 1)] }),
      () => ({ $anyElementTrue: [this.list(depth - 1)] }),
      () => ({ $regexMatch: { input: this.text(depth - 1), regex: this.pick(["a", "^b", "B$"]), options: this.pick(["", "i"]) } }),
    );
  }
  number(depth) {
    if (depth <= 0) return this.any(() => this.n(), () => ({ $ifNull: [this.pick(["$n", "$m", "$o.n"]), 0] }));
    const n = () => this.number(depth - 1);
    return this.any(
      () => ({ $add: this.times(1, 3, n) }),
      () => ({ $multiply: this.times(1, 3, n) }),
      () => ({ $subtract: [n(), n()] }),
      () => ({ $divide: [n(), this.pick([2, 4, 0.5])] }),
      () => ({ $mod: [{ $floor: n() }, this.pick([2, 3])] }),
      () => ({ [this.pick(["$abs", "$ceil", "$floor"])]: n() }),
      () => ({ [this.pick(["$trunc", "$round"])]: [n(), this.pick([0, 1])] }),
      () => ({ $pow: [n(), 2] }),
      () => ({ $sqrt: { $abs: n() } }),
      () => ({ $sum: this.list(depth - 1) }),
      () => ({ $size: this.list(depth - 1) }),
      () => ({ $ifNull: [{ [this.pick(["$max", "$min", "$avg", "$first"])]: this.list(depth - 1) }, 9] }),
      () => ({ $ifNull: [{ $arrayElemAt: [this.list(depth - 1), this.pick([0, 1, -1])] }, 8] }),
      () => ({ $indexOfArray: [this.list(depth - 1), this.n()] }),
      () => ({ $reduce: { input: this.list(depth - 1), initialValue: 0, in: { $add: ["$$value", { $multiply: ["$$this", 2] }] } } }),
      () => ({ [this.pick(["$strLenCP", "$strLenBytes"])]: this.text(depth - 1) }),
      () => ({ $strcasecmp: [this.text(depth - 1), this.text(depth - 1)] }),
      () => ({ [this.pick(["$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond", "$dayOfWeek", "$dayOfYear", "$isoWeek", "$isoDayOfWeek"])]: this.date() }),
      () => ({ $dateDiff: { startDate: this.date(), endDate: this.date(), unit: this.pick(["day", "hour", "month", "year"]) } }),
      () => ({ [this.pick(["$bitAnd", "$bitOr", "$bitXor"])]: [this.roll(16), this.roll(16)] }),
      () => ({ $cond: [this.truth(depth - 1), n(), n()] }),
      () => ({ $switch: { branches: [{ case: this.truth(depth - 1), then: n() }], default: n() } }),
      () => ({ $let: { vars: { x: n() }, in: { $add: ["$$x", "$$x"] } } }),
      () => ({ $toInt: { $floor: n() } }),
    );
  }
  text(depth) {
    if (depth <= 0) return this.any(() => this.s(), () => ({ $ifNull: [this.pick(["$s", "$o.s"]), "none"] }));
    const s = () => this.text(depth - 1);
    return this.any(
      () => ({ $concat: this.times(1, 3, s) }),
      () => ({ [this.pick(["$toUpper", "$toLower"])]: this.pick(["ab", "Ab", "c"]) }),
      () => ({ $substrCP: [s(), this.roll(3), this.roll(4)] }),
      () => ({ [this.pick(["$trim", "$ltrim", "$rtrim"])]: { input: s(), ...(this.roll(2) ? {} : { chars: "a" }) } }),
      () => ({ [this.pick(["$replaceOne", "$replaceAll"])]: { input: s(), find: this.pick(["a", "b"]), replacement: "x" } }),
      () => ({ $arrayElemAt: [{ $split: [s(), "b"] }, 0] }),
      () => ({ $type: this.pick(["$s", "$l", "$o", "$x"]) }),
      () => ({ $dateToString: { date: this.date(), format: this.pick(["%Y-%m-%d", "%H:%M:%S.%L", "%j"]) } }),
      () => ({ $toString: { $toInt: { $floor: this.number(0) } } }),
    );
  }
  date() {
    return { $literal: new Date(this.roll(20000) * 86400123) };
  }
  list(depth) {
    if (depth <= 0) return this.any(() => ({ $literal: this.l() }), () => ({ $ifNull: ["$l", []] }), () => ({ $ifNull: ["$r.n", []] }));
    const l = () => this.list(depth - 1);
    const x = () => this.any(() => ({ $add: ["$$x", this.n()] }), () => ({ $abs: "$$x" }), () => "$$x");
    return this.any(
      () => ({ $concatArrays: this.times(1, 3, l) }),
      () => ({ $slice: [l(), this.pick([1, 2, -1, -2])] }),
      () => ({ $slice: [l(), this.pick([0, 1, -1, -2]), this.pick([1, 2])] }),
      () => ({ $reverseArray: l() }),
      () => ({ $filter: { input: l(), as: "x", cond: { [this.pick(["$gt", "$eq", "$lte"])]: ["$$x", this.n()] } } }),
      () => ({ $map: { input: l(), as: "x", in: x() } }),
      () => ({ $range: [this.roll(4), this.roll(8), this.pick([1, 2])] }),
      () => ({ $sortArray: { input: l(), sortBy: this.pick([1, -1]) } }),
      () => ({ $sortArray: { input: { [this.pick(["$setUnion", "$setIntersection", "$setDifference"])]: [l(), l()] }, sortBy: 1 } }),
      () => ({ [this.pick(["$firstN", "$lastN"])]: { input: l(), n: this.pick([1, 2]) } }),
      () => ({ $concatArrays: [[this.number(depth - 1), this.number(depth - 1)]] }),
    );
  }

  // ---- pipelines; every one ends in an order ----

  pipeline() {
    const key = () => this.pick(["$s", "$o.s", { $ifNull: ["$s", "none"] }]);
    const accumulators = () => ({
      sum: { $sum: "$n" }, avg: { $avg: "$m" }, max: { $max: "$n" }, min: { $min: "$o.n" }, count: { $sum: 1 },
      list: { $push: "$_id" }, first: { $first: "$_id" }, last: { $last: "$_id" }, spread: { $stdDevPop: { $literal: 1 } },
      top: { $topN: { n: 2, sortBy: { _id: -1 }, output: "$_id" } },
    });
    const byId = { $sort: { _id: 1 } };
    return [{ $match: this.filter(1) }, byId, ...this.any(
      () => [{ $group: { _id: { $ifNull: [key(), "none"] }, ...accumulators() } }, byId],
      () => [{ $unwind: this.pick(["$l", "$r"]) }],
      () => [{ $unwind: { path: "$l", includeArrayIndex: "at", preserveNullAndEmptyArrays: this.roll(2) === 1 } }],
      () => [{ $sort: { [this.pick(["n", "s", "o.n"])]: this.pick([1, -1]), _id: 1 } }, { $skip: this.roll(5) }, { $limit: 1 + this.roll(9) }],
      () => [{ $addFields: { [this.pick(["x", "n", "o.x"])]: this.number(2), y: this.list(1) } }],
      () => [{ $project: { [this.pick(["n", "o.n", "r.s", "l"])]: 1, s: 1 } }],
      () => [{ $project: { [this.pick(["n", "o.n", "r.s", "l"])]: 0, s: 0 } }],
      () => [{ $project: { x: this.truth(3), y: this.text(3) } }],
      () => [{ $unset: [this.pick(["n", "o.s", "r.n"]), "m"] }],
      () => [{ $replaceRoot: { newRoot: { $mergeObjects: [{ _id: "$_id" }, "$o"] } } }],
      () => [{ $bucket: { groupBy: { $ifNull: ["$n", 0.25] }, boundaries: [-5.5, 0.25, 9.5], output: accumulators() } }],
      () => [{ $sortByCount: { $ifNull: ["$s", "none"] } }, { $sort: { count: -1, _id: 1 } }],
      () => [{ $facet: { a: [{ $limit: 3 }, { $project: { n: 1 } }], b: [{ $count: "n" }] } }],
      () => [{ $setWindowFields: { sortBy: { _id: 1 }, output: { run: { $sum: "$n", window: { documents: ["unbounded", "current"] } }, near: { $max: "$m", window: { documents: [-1, 1] } } } } }],
      () => [{ $count: "n" }],
    )];
  }

  // ---- updates: {update, options} ----

  update() {
    const number = () => this.pick(["n", "m", "o.n", "new", "o.new"]);
    const plain = (update) => ({ update, options: {} });
    return this.any(
      () => plain({ $set: { [this.pick(["s", "o.s", "new", "o.x.y", "l.0", "r.0.s"])]: this.s() } }),
      () => plain({ $set: { [number()]: this.n() }, $unset: { [this.pick(["s", "o.s", "r.0.n"])]: "" } }),
      () => plain({ [this.pick(["$inc", "$mul"])]: { [number()]: this.n() } }),
      () => plain({ [this.pick(["$min", "$max"])]: { [number()]: this.n() } }),
      () => plain({ $rename: { [this.pick(["s", "n", "o.s"])]: this.pick(["t", "u"]) } }),
      () => plain({ $push: { [this.pick(["l", "new"])]: this.n() } }),
      () => plain({ $push: { l: this.pushed() } }),
      () => plain({ $push: { r: { $each: this.times(1, 2, () => this.o()), $sort: { n: 1 } } } }),
      () => plain({ $addToSet: { l: this.any(() => this.n(), () => ({ $each: this.l() })) } }),
      () => plain({ $pop: { [this.pick(["l", "r"])]: this.pick([1, -1]) } }),
      () => plain({ $pull: { l: this.any(() => this.n(), () => ({ [this.pick(["$gt", "$lte", "$ne"])]: this.n() }), () => ({ $in: this.l() })) } }),
      () => plain({ $pull: { r: this.any(() => ({ n: this.n() }), () => ({ n: { $gt: this.n() }, s: this.s() })) } }),
      () => plain({ $pullAll: { l: this.l() } }),
      () => plain({ $bit: { new: { [this.pick(["and", "or", "xor"])]: this.roll(8) } } }),
      () => plain({ $inc: { "l.$[]": this.n() } }),
      () => ({ update: { $set: { "l.$[x]": this.n() } }, options: { arrayFilters: [{ x: { [this.pick(["$gt", "$lte"])]: this.n() } }] } }),
      () => ({ update: { $inc: { "r.$[x].n": this.n() } }, options: { arrayFilters: [{ "x.s": this.s() }] } }),
      () => plain([{ $set: { x: this.number(2), "o.y": this.text(2) } }, { $unset: "n" }]),
    );
  }
  pushed() {
    const pushed = { $each: this.times(1, 3, () => this.n()) };
    if (this.roll(2)) pushed.$position = this.pick([0, 1, -1]);
    if (this.roll(2)) pushed.$sort = this.pick([1, -1]);
    if (this.roll(2)) pushed.$slice = this.pick([1, 2, -2]);
    return pushed;
  }
}
