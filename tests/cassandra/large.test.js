// large.test.js — large collections, rows and partitions: what takes much work or memory is bounded, or is done in parts.

import { assert, codes, fails, suite } from "./harness.js";

const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

// A table of many columns, so that each of its rows takes some memory to read.
const wide = (t, key) => t.table(`(p int, c int, s int static, ${numbers(0, 300).map((i) => `v${i} int`).join(", ")}, PRIMARY KEY (${key}))`);

async function write(t, n, query, params) {
  for (let i = 0; i < n; i += 200) await t.client.batch(numbers(i, Math.min(n, i + 200)).map((k) => ({ query, params: params(k) })), { prepare: true, logged: false });
}

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

  t.it("numbers of partitions are aggregated and grouped in the memory of one", async () => {
    const table = await wide(t, "p, c");
    await write(t, 6000, `INSERT INTO ${table} (p, s) VALUES (?, ?)`, (p) => [p, p]);
    const [all] = await t.rows(`SELECT count(*) AS n, max(s) AS most FROM ${table}`, undefined, { fetchSize: 0 });
    assert.deepEqual([Number(all.n), all.most], [6000, 5999]);
    const groups = await t.rows(`SELECT p, max(s) AS most FROM ${table} GROUP BY p`, undefined, { fetchSize: 0 });
    assert.equal(groups.length, 6000);
    assert.ok(groups.every((row) => row.p === row.most));
  });
});
