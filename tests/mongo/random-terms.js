// Random documents and filters of any shape, over a few paths and a few values, so that they often meet.

import { dice } from "./dice.js";

const fields = ["a", "b", "c"];
const paths = ["a", "a", "b", "b", "c", "a.b", "a.c", "b.a", "a.b.c", "a.0", "a.0.b", "b.1"];

export class Terms {
  constructor(seed) {
    this.roll = dice(seed);
  }
  pick(list) {
    return list[this.roll(list.length)];
  }
  some(most, make) {
    return Array.from({ length: this.roll(most + 1) }, make);
  }

  // ---- values ----

  number() {
    return this.pick([-2, -1, 0, 1, 2, 3, 5, 0.5, 1.5, 2.5]);
  }
  text() {
    return this.pick(["", "a", "b", "ab", "abc", "A", "é", "a.b"]);
  }
  scalar() {
    return this.pick([() => this.number(), () => this.number(), () => this.text(), () => null, () => this.roll(2) === 1, () => new Date(this.roll(4) * 1000)])();
  }
  value(depth = 2) {
    const kind = this.roll(10);
    if (depth === 0 || kind < 5) return this.scalar();
    if (kind < 8) return this.some(3, () => this.value(depth - 1));
    return this.object(depth - 1);
  }
  object(depth) {
    return Object.fromEntries(this.some(3, () => [this.pick(fields), this.value(depth)]));
  }
  document(id) {
    return { _id: id, ...this.object(3) };
  }
  path() {
    return this.pick(paths);
  }

  // ---- filters ----

  filter(depth = 2) {
    const kind = this.roll(12);
    if (depth > 0 && kind < 3) {
      return { [this.pick(["$and", "$or", "$nor"])]: [this.filter(depth - 1), ...this.some(2, () => this.filter(depth - 1))] };
    }
    return { [this.path()]: this.condition(depth) };
  }
  condition(depth) {
    const operators = {
      plain: () => this.value(1),
      $eq: () => ({ $eq: this.value(1) }),
      $ne: () => ({ $ne: this.value(1) }),
      range: () => ({ [this.pick(["$gt", "$gte", "$lt", "$lte"])]: this.value(1) }),
      both: () => ({ $gte: this.number(), $lt: this.number() }),
      $in: () => ({ [this.pick(["$in", "$nin"])]: this.some(3, () => this.value(1)) }),
      $exists: () => ({ $exists: this.roll(2) === 1 }),
      $type: () => ({ $type: this.pick(["number", "string", "array", "object", "bool", "null", "date", "int", "double"]) }),
      $size: () => ({ $size: this.roll(4) }),
      $all: () => ({ $all: this.some(2, () => this.scalar()) }),
      $mod: () => ({ $mod: [this.pick([2, 3]), this.roll(3)] }),
      $regex: () => ({ $regex: this.pick(["^a", "b$", "a.*b", ""]), ...(this.roll(3) ? {} : { $options: "i" }) }),
      $bits: () => ({ [this.pick(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"])]: this.roll(6) }),
      $not: () => ({ $not: this.operators(depth) }),
      elements: () => ({ $elemMatch: this.operators(depth) }),
      members: () => ({ $elemMatch: depth ? this.filter(depth - 1) : { b: this.scalar() } }),
    };
    return this.pick(Object.values(operators))();
  }
  // A condition that has an operator.
  operators(depth) {
    for (;;) {
      const condition = depth ? this.condition(depth - 1) : { [this.pick(["$gt", "$lte", "$eq", "$ne"])]: this.value(1) };
      const first = condition && typeof condition === "object" && !Array.isArray(condition) && Object.keys(condition)[0];
      if (typeof first === "string" && first.startsWith("$")) return condition;
    }
  }
}
