// large.test.js — large collections, rows and partitions: what takes much work or memory is bounded, or is done in parts.

import { assert, codes, fails, suite } from "./harness.js";

const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

suite("large", (t) => {
  t.it("sets with many deleted elements are read in time", async () => {
    const table = await t.table("(id int PRIMARY KEY, s set<int>, v int)");
    await t.run(`INSERT INTO ${table} (id, s) VALUES (1, ?)`, [[...numbers(0, 80000), 1000000000]]);
    await t.run(`UPDATE ${table} SET s = s - ? WHERE id = 1`, [numbers(100000, 124000)]);
    await t.run(`UPDATE ${table} SET v = 1 WHERE id = 1`);
    const started = Date.now();
    const [row] = await t.rows(`SELECT s FROM ${table} WHERE id = 1`);
    assert.ok(Date.now() - started < 5000, `${Date.now() - started} ms`);
    assert.equal(row.s.length, 80001);
    await t.run(`UPDATE ${table} SET s = s + {-5, 100001, 90000}, v = 2 WHERE id = 1`);
    await t.run(`UPDATE ${table} SET s = s - {0, 1} WHERE id = 1`);
    const [changed] = await t.rows(`SELECT s FROM ${table} WHERE id = 1`);
    assert.deepEqual(changed.s, [-5, ...numbers(2, 80000), 90000, 100001, 1000000000]);
  });
});
