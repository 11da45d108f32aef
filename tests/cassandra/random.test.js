// random.test.js — random tables, written with timestamps, times to live and deletions of every kind, and read by random selects: the server has the rows
// that a simple model has. TESELA_SEED repeats a failure (with TESELA_ROUNDS=1), TESELA_ROUNDS is how many tables there are.

import { dice } from "../mongo/dice.js";
import { shown } from "./domains.js";
import { definitionOf, randomSchema, Selects, Writes } from "./generate.js";
import { assert, rounds, suite } from "./harness.js";
import { Model } from "./model.js";

const firstSeed = Number(process.env.TESELA_SEED ?? 1);
const tables = Number(process.env.TESELA_ROUNDS ?? rounds(80));
const AT_ONCE = 8;

class Round {
  constructor(t, client, seed) {
    Object.assign(this, { t, client, seed, roll: dice(seed), log: [] });
  }
  async run() {
    try {
      await this.#play();
    } catch (error) {
      error.message = `seed ${this.seed}: ${error.message}\n${this.log.join("\n")}`;
      throw error;
    }
  }
  async #play() {
    const { roll } = this;
    const forgets = roll(6) === 0;
    const expires = !forgets && roll(4) === 0;
    this.schema = randomSchema(roll);
    this.model = new Model(this.schema);
    const { columns, order } = definitionOf(this.schema);
    const options = [order, forgets ? "gc_grace_seconds = 0" : ""].filter((text) => text);
    this.table = await this.t.table(columns, options.length ? `WITH ${options.join(" AND ")}` : "");
    this.log.push(`CREATE TABLE ${this.table} ${columns} ${options.join(" AND ")};`);
    const indexed = roll(3) === 0;
    if (indexed) await this.#index();
    const writes = new Writes(roll, this.schema, this.model, this.table, { unique: expires, rising: forgets, short: false });
    this.selects = new Selects(roll, this.schema, this.model, this.table, (key) => this.#token(key), indexed);
    await this.#write(writes, 30);
    await this.#read(15);
    if (expires) {
      writes.short = true;
      await this.#write(writes, 20);
      writes.short = false;
      await new Promise((resolve) => setTimeout(resolve, 3100));
      this.model.expire();
      this.log.push("-- the short times to live are over");
      await this.#read(10);
    }
    await this.#write(writes, 20);
    await this.#read(15);
  }

  async #index() {
    const { name, type } = this.schema.regulars[this.roll(this.schema.regulars.length)];
    const cql = `CREATE INDEX ON ${this.table} (${type.frozen ? `full(${name})` : type.kind === "map" ? `${["keys", "values", "entries"][this.roll(3)]}(${name})` : name})`;
    this.log.push(`${cql};`);
    await this.client.execute(cql);
  }

  async #write(writes, n) {
    for (let i = 0; i < n; i++) {
      const { cql, params, list, holds, apply } = writes.next();
      this.log.push(`${cql};${params.length ? ` -- ${params.map(shown).join(" | ")}` : ""}`);
      const expected = holds?.();
      const result = await this.client.execute(cql, params, { prepare: params.length > 0 });
      if (holds) {
        assert.equal(result.wasApplied(), expected, "applied");
        if (!expected) continue;
      }
      apply?.();
      for (const mutation of list) this.model.write(mutation);
    }
  }

  async #read(n) {
    for (let i = 0; i < n; i++) {
      const { cql, rows, sorted } = this.selects.next();
      const fetchSize = this.roll(3) === 0 ? 1 + this.roll(5) : 1000;
      const got = [];
      let pageState;
      do {
        const result = await this.client.execute(cql, [], { fetchSize, pageState });
        got.push(...result.rows.map((row) => row.keys().map((name) => this.#shownOf(name, row[name]))));
        pageState = result.pageState;
      } while (pageState);
      const text = (list) => list.map((row) => JSON.stringify(row));
      const [have, want] = [text(got), text(rows)];
      if (!sorted) have.sort(), want.sort();
      assert.deepEqual(have, want, `${cql}; with pages of ${fetchSize}`);
    }
  }
  #shownOf(name, value) {
    if (name === "w" && value !== null) return Number(value) > 1e14 ? "later" : shown(value);
    if (name === "t" && value !== null) return value > 900 ? "long" : "short";
    return shown(value);
  }

  // Of a key of several columns: the length, the bytes and a zero byte of each.
  #token(key) {
    const parts = this.schema.partition.map((c, i) => c.type.encoded[key[i]]);
    const composite = (part) => [Buffer.from([part.length >> 8, part.length]), part, Buffer.alloc(1)];
    return this.client.metadata.newToken(parts.length > 1 ? parts.flatMap(composite) : parts).getValue();
  }
}

suite(
  "random tables",
  (t) => {
    t.it(`hold what the model holds (seeds from ${firstSeed})`, async () => {
      const client = t.make({ encoding: { map: Map } });
      await client.connect();
      try {
        for (let seed = firstSeed; seed < firstSeed + tables; seed += AT_ONCE) {
          const some = Array.from({ length: Math.min(AT_ONCE, firstSeed + tables - seed) }, (_, i) => new Round(t, client, seed + i));
          await Promise.all(some.map((round) => round.run()));
        }
      } finally {
        await client.shutdown();
      }
    });
  },
  { ways: ["plain"] },
);
