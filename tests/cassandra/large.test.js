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

  t.it("partitions are deleted in rounds, and deleted again", async () => {
    const table = await wide(t, "p, c");
    await write(t, 6000, `INSERT INTO ${table} (p, c, v1) VALUES (1, ?, 1)`, (c) => [c]);
    await t.run(`INSERT INTO ${table} (p, s) VALUES (1, 1)`);
    await t.run(`INSERT INTO ${table} (p, c, v1) VALUES (1, 5500, 7) USING TIMESTAMP 9000000000000000`);
    const now = Date.now() * 1000;
    for (const us of [now, now, now + 1]) {
      await t.run(`DELETE FROM ${table} USING TIMESTAMP ${us} WHERE p = 1`);
      assert.deepEqual(await t.rows(`SELECT c, s, v1 FROM ${table} WHERE p = 1`), [{ c: 5500, s: null, v1: 7 }]);
    }
  });

  t.it("numbers of rows are changed in rounds by a statement, and are too many for a batch", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    await t.run(`UPDATE ${table} SET v = 1 WHERE p = 1 AND c IN ?`, [numbers(0, 2500)]);
    assert.equal(Number((await t.rows(`SELECT count(*) AS n FROM ${table} WHERE p = 1`))[0].n), 2500);
    const batch = (p, n) => t.client.batch(numbers(0, n).map((c) => ({ query: `INSERT INTO ${table} (p, c, v) VALUES (?, ?, 1)`, params: [p, c] })), { prepare: true });
    await batch(2, 2000);
    await fails(batch(3, 2001), codes.invalid, /more than 2000 rows/);
    const texts = (p, n) => t.client.batch(numbers(0, n).map((c) => `INSERT INTO ${table} (p, c, v) VALUES (${p}, ${c}, ${"1".padStart(200)})`), {});
    await texts(4, 1000);
    assert.equal(Number((await t.rows(`SELECT count(*) AS n FROM ${table} WHERE p = 4`))[0].n), 1000);
    await t.run(`DELETE FROM ${table} WHERE p = 4`);
    await fails(texts(4, 2001), codes.invalid, /more than 2000 rows/);
    await fails(t.client.batch(["INSERT INTO"], {}), codes.syntaxError);
    await fails(t.run(`BEGIN BATCH DELETE FROM ${table} WHERE p = 1; APPLY BATCH`), codes.invalid, /more than 2000 rows/);
    assert.equal((await t.rows(`SELECT v FROM ${table} WHERE p = 3`)).length, 0);
    await t.run(`BEGIN BATCH DELETE FROM ${table} WHERE p = 2; APPLY BATCH`);
    assert.deepEqual((await t.rows(`SELECT p, count(*) AS n FROM ${table} GROUP BY p`)).map((row) => [row.p, Number(row.n)]), [[1, 2500]]);
  });

  t.it("numbers of assignments are refused: a column is set once", async () => {
    const table = await t.table("(p int PRIMARY KEY, a int, m map<int, int>, u set<int>)");
    const keys = numbers(0, 32).join(", ");
    await fails(t.run(`UPDATE ${table} SET ${"a=1,".repeat(100000)} a=1 WHERE p IN (${keys})`), codes.invalid, /Multiple incompatible setting of column a/);
    await fails(t.run(`UPDATE ${table} SET m = {1: 1}, m[2] = 2 WHERE p = 1`), codes.invalid, /Multiple incompatible setting of column m/);
    await fails(t.run(`UPDATE ${table} SET m[2] = 2, m = {1: 1} WHERE p = 1`), codes.invalid, /Multiple incompatible setting of column m/);
    await fails(t.run(`INSERT INTO ${table} (p, a, a) VALUES (1, 1, 2)`), codes.invalid, /duplicates/);
    await t.run(`UPDATE ${table} SET m[1] = 1, m[2] = 2, m = m + {3: 3}, a = 1, u = u + {1} WHERE p IN (1, 2)`);
    await t.run(`DELETE a, a FROM ${table} WHERE p = 2`);
    for (const p of [1, 2]) {
      assert.deepEqual((await t.rows(`SELECT a, m, u FROM ${table} WHERE p = ${p}`))[0], { a: p === 1 ? 1 : null, m: { 1: 1, 2: 2, 3: 3 }, u: [1] });
    }
  });

  t.it("collections are written whole, but not changed thousands of times by one statement", async () => {
    const table = await t.table("(id int PRIMARY KEY, m map<int, int>)");
    const m = Object.fromEntries(numbers(0, 60000).map((i) => [i, i]));
    await t.run(`INSERT INTO ${table} (id, m) VALUES (1, ?)`, [m]);
    await t.run(`UPDATE ${table} SET m[0] = 1, m[1] = 2, m[60000] = 3 WHERE id = 1`);
    const elements = numbers(0, 3000).map((i) => `m[${i}] = 9`).join(", ");
    await fails(t.run(`UPDATE ${table} SET ${elements} WHERE id = 1`), codes.invalid, /divide it/);
    const [row] = await t.rows(`SELECT m FROM ${table} WHERE id = 1`);
    assert.deepEqual([row.m[0], row.m[1], row.m[2], row.m[60000], Object.keys(row.m).length], [1, 2, 2, 3, 60001]);
  });

  t.it("pages of megabytes are whole, several at a time, from both ends", async () => {
    const table = await t.table("(p int, c int, body text, PRIMARY KEY (p, c))");
    const body = (c) => `${c}:`.padEnd(c % 400 === 399 ? 150000 : 500 + (c % 13) * 100, String.fromCharCode(97 + (c % 26)));
    for (let i = 0; i < 2000; i += 100) await t.client.batch(numbers(i, i + 100).map((c) => ({ query: `INSERT INTO ${table} (p, c, body) VALUES (1, ?, ?)`, params: [c, body(c)] })), { prepare: true, logged: false });
    const read = async (rest, expected) => {
      const rows = await t.rows(`SELECT c, body FROM ${table} WHERE p = 1 ${rest}`, undefined, { prepare: true, fetchSize: 0 });
      assert.deepEqual(rows.map((row) => row.c), expected, rest);
      for (const row of rows) assert.equal(row.body, body(row.c));
    };
    const all = numbers(0, 2000), down = all.toReversed();
    await Promise.all(["", "ORDER BY c DESC", "AND c >= 700 ORDER BY c DESC LIMIT 1000", "AND c < 1100", "ORDER BY c DESC LIMIT 900"].map((rest, i) => read(rest, [all, down, down.slice(0, 1000), all.slice(0, 1100), down.slice(0, 900)][i])));
    const paged = [];
    for await (const row of t.client.stream(`SELECT c FROM ${table} WHERE p = 1 ORDER BY c DESC`, [], { prepare: true, fetchSize: 333, autoPage: true })) paged.push(row.c);
    assert.deepEqual(paged, down);
  });
});
