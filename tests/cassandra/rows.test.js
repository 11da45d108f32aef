// rows.test.js — INSERT, SELECT, UPDATE, DELETE: keys, order, timestamps, times to live, collections, counters, static columns, conditions.

import { assert, cassandra, codes, fails, suite } from "./harness.js";

const { Long } = cassandra.types;

suite("rows", (t) => {
  t.it("are found by key, in slices both ways, and by IN", async () => {
    const table = await t.table("(p int, c int, v text, PRIMARY KEY (p, c))");
    for (let c = 0; c < 20; c++) await t.run(`INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`, [1, c, `v${c}`]);
    const c = async (where, params) => (await t.rows(`SELECT c FROM ${table} WHERE ${where}`, params)).map((row) => row.c);
    assert.deepEqual(await c("p = 1 AND c = 7"), [7]);
    assert.deepEqual(await c("p = 1 AND c >= 3 AND c < 6"), [3, 4, 5]);
    assert.deepEqual(await c("p = 1 AND c > 16 ORDER BY c DESC"), [19, 18, 17]);
    assert.deepEqual(await c("p = 1 AND c IN (5, 1, 30)"), [1, 5]);
    assert.deepEqual(await c("p = ? AND c IN ?", [1, [2, 4]]), [2, 4]);
    assert.deepEqual(await c("p = 1 LIMIT 2"), [0, 1]);
    assert.deepEqual(await c("p = 2"), []);
    assert.equal((await c("p IN (1, 2)")).length, 20);
  });

  t.it("come in descending order where the table says so", async () => {
    const table = await t.table("(p text, a int, b text, PRIMARY KEY (p, a, b))", "WITH CLUSTERING ORDER BY (a DESC, b ASC)");
    for (const [a, b] of [[1, "x"], [2, "z"], [2, "y"], [-3, "w"]]) await t.run(`INSERT INTO ${table} (p, a, b) VALUES ('k', ?, ?)`, [a, b]);
    const rows = await t.rows(`SELECT a, b FROM ${table} WHERE p = 'k'`);
    assert.deepEqual(rows.map((row) => `${row.a}${row.b}`), ["2y", "2z", "1x", "-3w"]);
    assert.deepEqual((await t.rows(`SELECT a FROM ${table} WHERE p = 'k' AND a > 0 ORDER BY a ASC, b DESC`)).map((row) => row.a), [1, 2, 2]);
  });

  t.it("come in pages, each row once", async () => {
    const table = await t.table("(p int, c int, PRIMARY KEY (p, c))");
    for (let p = 0; p < 5; p++) for (let c = 0; c < 21; c++) await t.run(`INSERT INTO ${table} (p, c) VALUES (?, ?)`, [p, c]);
    for (const [where, n] of [["", 105], ["WHERE p = 3", 21], ["WHERE p IN (1, 2)", 42]]) {
      const seen = new Set();
      for await (const row of t.client.stream(`SELECT p, c FROM ${table} ${where}`, [], { prepare: true, fetchSize: 10, autoPage: true })) {
        const name = `${row.p},${row.c}`;
        assert.ok(!seen.has(name), name);
        seen.add(name);
      }
      assert.equal(seen.size, n, where);
    }
    await fails(t.client.execute(`SELECT * FROM ${table}`, [], { pageState: "00ff00ff" }), codes.protocolError);
  });

  t.it("have timestamps: the last write wins, and deletions hide older writes", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int, b int)");
    await t.run(`INSERT INTO ${table} (id, a, b) VALUES (1, 1, 1) USING TIMESTAMP 100`);
    await t.run(`UPDATE ${table} USING TIMESTAMP 50 SET a = 5 WHERE id = 1`);
    await t.run(`UPDATE ${table} USING TIMESTAMP 150 SET b = 6 WHERE id = 1`);
    const [row] = await t.rows(`SELECT a, b, writetime(a) AS wa, writetime(b) AS wb FROM ${table} WHERE id = 1`);
    assert.deepEqual([row.a, row.b, Number(row.wa), Number(row.wb)], [1, 6, 100, 150]);
    await t.run(`DELETE FROM ${table} USING TIMESTAMP 200 WHERE id = 1`);
    await t.run(`INSERT INTO ${table} (id, a) VALUES (1, 9) USING TIMESTAMP 180`);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    await t.run(`INSERT INTO ${table} (id, a) VALUES (1, 9) USING TIMESTAMP 201`);
    assert.deepEqual(await t.rows(`SELECT a, b FROM ${table}`), [{ a: 9, b: null }]);
  });

  t.it("expire, cell by cell", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int, b int)");
    await t.run(`INSERT INTO ${table} (id, a) VALUES (1, 1)`);
    await t.run(`UPDATE ${table} USING TTL 2 SET b = 2 WHERE id = 1`);
    const [row] = await t.rows(`SELECT ttl(a) AS ta, ttl(b) AS tb FROM ${table} WHERE id = 1`);
    assert.equal(row.ta, null);
    assert.ok(row.tb >= 1 && row.tb <= 2, `${row.tb}`);
    await t.run(`INSERT INTO ${table} (id, a) VALUES (2, 1) USING TTL 1`);
    await new Promise((resolve) => setTimeout(resolve, 3100));
    assert.deepEqual(await t.rows(`SELECT id, a, b FROM ${table}`), [{ id: 1, a: 1, b: null }]);
  });

  t.it("exist without cells if they were inserted, not if they were updated", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int)");
    await t.run(`INSERT INTO ${table} (id) VALUES (1)`);
    await t.run(`UPDATE ${table} SET a = 1 WHERE id = 2`);
    await t.run(`UPDATE ${table} SET a = null WHERE id = 2`);
    assert.deepEqual(await t.rows(`SELECT id, a FROM ${table}`), [{ id: 1, a: null }]);
  });

  t.it("leave unset columns as they are", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int, b int)");
    await t.run(`INSERT INTO ${table} (id, a, b) VALUES (?, ?, ?)`, [1, 2, 3]);
    await t.run(`INSERT INTO ${table} (id, a, b) VALUES (?, ?, ?)`, [1, cassandra.types.unset, null]);
    assert.deepEqual(await t.rows(`SELECT a, b FROM ${table}`), [{ a: 2, b: null }]);
  });

  t.it("have collections whose elements are written singly", async () => {
    const table = await t.table("(id int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>)");
    const read = async () => (await t.rows(`SELECT l, s, m FROM ${table} WHERE id = 1`))[0];
    await t.run(`INSERT INTO ${table} (id, l, s, m) VALUES (1, [1, 2], {'b', 'a'}, {'x': 1})`);
    await t.run(`UPDATE ${table} SET l = l + [3], s = s + {'c'}, m = m + {'y': 2} WHERE id = 1`);
    await t.run(`UPDATE ${table} SET l = [0] + l, s = s - {'a'}, m['x'] = 9 WHERE id = 1`);
    assert.deepEqual(await read(), { l: [0, 1, 2, 3], s: ["b", "c"], m: { x: 9, y: 2 } });
    await t.run(`UPDATE ${table} SET l[1] = 7, m = m - {'y'} WHERE id = 1`);
    await t.run(`DELETE l[0], m['x'] FROM ${table} WHERE id = 1`);
    assert.deepEqual(await read(), { l: [7, 2, 3], s: ["b", "c"], m: null });
    await t.run(`UPDATE ${table} SET s = {}, l = l - [2, 3] WHERE id = 1`);
    assert.deepEqual(await read(), { l: [7], s: null, m: null });
    await fails(t.run(`UPDATE ${table} SET l[5] = 7 WHERE id = 1`), codes.invalid, /List index 5 out of bound/);
  });

  t.it("have collections of thousands of elements, with timestamps of their own", async () => {
    const table = await t.table("(id int PRIMARY KEY, s set<int>, m map<int, text>)");
    const many = Array.from({ length: 3000 }, (_, i) => i);
    await t.run(`UPDATE ${table} USING TIMESTAMP 100 SET s = ? WHERE id = 1`, [many.filter((i) => i % 2)]);
    await t.run(`UPDATE ${table} USING TIMESTAMP 200 SET s = s + ? WHERE id = 1`, [many.filter((i) => i % 3 === 0)]);
    await t.run(`UPDATE ${table} USING TIMESTAMP 150 SET s = s - ? WHERE id = 1`, [many.filter((i) => i % 5 === 0)]);
    const kept = many.filter((i) => i % 3 === 0 || (i % 2 && i % 5));
    assert.deepEqual((await t.rows(`SELECT s FROM ${table}`))[0].s, kept, "an older removal hides what is older still");
    await t.run(`UPDATE ${table} USING TIMESTAMP 120 SET s = s + {5} WHERE id = 1`);
    assert.deepEqual((await t.rows(`SELECT s FROM ${table}`))[0].s, kept, "the removal is remembered");
    await fails(t.run(`UPDATE ${table} SET m[1] = ? WHERE id = 1`, ["x".repeat(3000000)]), codes.writeFailure);
  });

  t.it("count", async () => {
    const table = await t.table("(id int PRIMARY KEY, n counter)");
    for (let i = 0; i < 3; i++) await t.run(`UPDATE ${table} SET n = n + 5 WHERE id = 1`);
    await t.run(`UPDATE ${table} SET n = n - ? WHERE id = 1`, [Long.fromNumber(2)]);
    const [row] = await t.rows(`SELECT n FROM ${table} WHERE id = 1`);
    assert.equal(row.n.toNumber(), 13);
    await fails(t.run(`INSERT INTO ${table} (id, n) VALUES (1, 1)`), codes.invalid, /counter/);
    await fails(t.run(`UPDATE ${table} SET n = 1 WHERE id = 1`), codes.invalid, /counter/);
  });

  t.it("share static columns within a partition", async () => {
    const table = await t.table("(p int, c int, s text static, v int, PRIMARY KEY (p, c))");
    await t.run(`INSERT INTO ${table} (p, s) VALUES (1, 'one')`);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table} WHERE p = 1`), [{ p: 1, c: null, s: "one", v: null }]);
    await t.run(`INSERT INTO ${table} (p, c, v) VALUES (1, 1, 10)`);
    await t.run(`INSERT INTO ${table} (p, c, v, s) VALUES (1, 2, 20, 'two')`);
    await t.run(`INSERT INTO ${table} (p, c, v) VALUES (2, 1, 30)`);
    const all = await t.rows(`SELECT p, c, s, v FROM ${table}`);
    assert.deepEqual(all.filter((row) => row.p === 1), [
      { p: 1, c: 1, s: "two", v: 10 },
      { p: 1, c: 2, s: "two", v: 20 },
    ]);
    assert.deepEqual(all.filter((row) => row.p === 2), [{ p: 2, c: 1, s: null, v: 30 }]);
    assert.deepEqual(await t.rows(`SELECT s, v FROM ${table} WHERE p = 1 AND c = 2`), [{ s: "two", v: 20 }]);
    assert.equal((await t.rows(`SELECT DISTINCT p, s FROM ${table}`)).length, 2);
  });

  t.it("come once, in pages that end before a partition which has static columns only", async () => {
    const table = await t.table("(p int, c int, s text static, PRIMARY KEY (p, c))");
    const ids = [...Array(12).keys()];
    for (const p of ids) await t.run(`INSERT INTO ${table} (p, s) VALUES (?, 'x')`, [p]);
    for (const p of ids.filter((n) => n % 3)) await t.run(`INSERT INTO ${table} (p, c) VALUES (?, 1)`, [p]);
    for (const fetchSize of [1, 2, 3, 4, 5]) {
      const seen = [];
      for await (const row of t.client.stream(`SELECT p FROM ${table}`, [], { prepare: true, fetchSize, autoPage: true })) seen.push(row.p);
      assert.deepEqual(seen.sort((a, b) => a - b), ids, `pages of ${fetchSize}`);
    }
  });

  t.it("keep elements and deletions that are later than what comes", async () => {
    const table = await t.table("(p int PRIMARY KEY, l list<int>, s set<int>)");
    await t.run(`UPDATE ${table} USING TIMESTAMP 50 SET l = [1, 2], s = {1} WHERE p = 1`);
    await t.run(`DELETE l[0] FROM ${table} USING TIMESTAMP 40 WHERE p = 1`);
    await t.run(`UPDATE ${table} USING TIMESTAMP 60 SET s = null WHERE p = 1`);
    await t.run(`DELETE FROM ${table} USING TIMESTAMP 30 WHERE p = 1`);
    await t.run(`UPDATE ${table} USING TIMESTAMP 55 SET s = s + {2} WHERE p = 1`);
    assert.deepEqual(await t.rows(`SELECT l, s FROM ${table}`), [{ l: [1, 2], s: null }]);
  });

  t.it("are deleted by ranges and partitions", async () => {
    const table = await t.table("(p int, c int, d int, PRIMARY KEY (p, c, d))");
    for (let c = 0; c < 4; c++) for (let d = 0; d < 3; d++) await t.run(`INSERT INTO ${table} (p, c, d) VALUES (1, ?, ?)`, [c, d]);
    await t.run(`DELETE FROM ${table} WHERE p = 1 AND c = 2 AND d = 1`);
    await t.run(`DELETE FROM ${table} WHERE p = 1 AND c = 0`);
    await t.run(`DELETE FROM ${table} WHERE p = 1 AND c > 2`);
    assert.deepEqual((await t.rows(`SELECT c, d FROM ${table} WHERE p = 1`)).map((row) => `${row.c}${row.d}`), ["10", "11", "12", "20", "22"]);
    await t.run(`DELETE FROM ${table} WHERE p = 1`);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
  });

  t.it("that a deleted range or partition has are hidden from older writes that come later", async () => {
    for (const [clustering, statics] of [["c ASC, d DESC", ""], ["c DESC, d ASC", "s int static,"]]) {
      const table = await t.table(`(p int, c int, d text, ${statics} v int, PRIMARY KEY (p, c, d))`, `WITH CLUSTERING ORDER BY (${clustering})`);
      const insert = (p, c, d, ts) => t.run(`INSERT INTO ${table} (p, c, d, v) VALUES (?, ?, ?, 1) USING TIMESTAMP ${ts}`, [p, c, d]);
      const all = async (p) => (await t.rows(`SELECT c, d FROM ${table} WHERE p = ${p}`)).map((row) => `${row.c}${row.d}`).sort();
      await insert(1, 5, "met", 90);
      await t.run(`DELETE FROM ${table} USING TIMESTAMP 100 WHERE p = 1 AND c >= 3 AND c < 7`);
      await t.run(`DELETE FROM ${table} USING TIMESTAMP 200 WHERE p = 1 AND c = 8 AND d > 'b'`);
      for (const [c, d] of [[2, "x"], [3, "x"], [5, "met"], [6, "x"], [7, "x"], [8, "b"], [8, "ba"], [8, "c"]]) await insert(1, c, d, 95);
      assert.deepEqual(await all(1), ["2x", "7x", "8b"]);
      await insert(1, 6, "late", 101);
      await insert(1, 8, "late", 200);
      await t.run(`UPDATE ${table} USING TIMESTAMP 99 SET v = 2 WHERE p = 1 AND c = 4 AND d = 'x'`);
      await t.run(`BEGIN BATCH
        INSERT INTO ${table} (p, c, d, v) VALUES (1, 4, 'batch', 1) USING TIMESTAMP 99;
        INSERT INTO ${table} (p, c, d, v) VALUES (1, 1, 'batch', 1) USING TIMESTAMP 99; APPLY BATCH`);
      assert.deepEqual(await all(1), ["1batch", "2x", "6late", "7x", "8b"]);
      assert.equal((await t.run(`INSERT INTO ${table} (p, c, d, v) VALUES (1, 3, 'lwt', 1) IF NOT EXISTS`)).wasApplied(), true);
      assert.deepEqual(await all(1), ["1batch", "2x", "3lwt", "6late", "7x", "8b"]);
      await t.run(`DELETE FROM ${table} USING TIMESTAMP 300 WHERE p IN (1, 2)`);
      await insert(1, 1, "old", 300);
      await insert(2, 1, "old", 299);
      await insert(2, 1, "new", 301);
      assert.deepEqual([await all(1), await all(2)], [["3lwt"], ["1new"]]);
      assert.equal((await t.rows(`SELECT count(*) AS n FROM ${table}`))[0].n.toNumber(), 2, "what remembers the ranges is no row");
      if (statics) {
        await t.run(`UPDATE ${table} USING TIMESTAMP 299 SET s = 1 WHERE p = 2`);
        assert.deepEqual(await t.rows(`SELECT s FROM ${table} WHERE p = 2`), [{ s: null }]);
      }
    }
  });

  t.it("of several tables are hidden, each by the ranges of its own partition", async () => {
    const wide = await t.table("(a int, b int, c int, d int, PRIMARY KEY ((a, b, c), d))");
    const narrow = await t.table("(a int, d int, PRIMARY KEY (a, d))");
    await t.run(`DELETE FROM ${wide} USING TIMESTAMP 100 WHERE a = 1 AND b = 2 AND c = 3 AND d < 5`);
    await t.run(`BEGIN BATCH
      INSERT INTO ${wide} (a, b, c, d) VALUES (1, 2, 3, 4) USING TIMESTAMP 99;
      INSERT INTO ${narrow} (a, d) VALUES (1, 4) USING TIMESTAMP 99;
      INSERT INTO ${wide} (a, b, c, d) VALUES (1, 2, 3, 6) USING TIMESTAMP 99; APPLY BATCH`);
    assert.deepEqual([await t.rows(`SELECT d FROM ${wide}`), await t.rows(`SELECT d FROM ${narrow}`)], [[{ d: 6 }], [{ d: 4 }]]);
  });

  t.it("are not hidden by deleted ranges of a table that keeps no deletions", async () => {
    const table = await t.table("(p int, c int, PRIMARY KEY (p, c))", "WITH gc_grace_seconds = 0");
    await t.run(`DELETE FROM ${table} USING TIMESTAMP 100 WHERE p = 1`);
    await t.run(`INSERT INTO ${table} (p, c) VALUES (1, 1) USING TIMESTAMP 90`);
    assert.deepEqual(await t.rows(`SELECT c FROM ${table}`), [{ c: 1 }]);
  });

  t.it("are written if a condition holds", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int, b text)");
    const insert = `INSERT INTO ${table} (id, a, b) VALUES (1, 1, 'x') IF NOT EXISTS`;
    assert.equal((await t.run(insert)).wasApplied(), true);
    const again = await t.run(insert);
    assert.equal(again.wasApplied(), false);
    assert.deepEqual([again.first().id, again.first().a, again.first().b], [1, 1, "x"]);
    assert.equal((await t.run(`UPDATE ${table} SET a = 2 WHERE id = 1 IF a = ?`, [1])).wasApplied(), true);
    const refused = await t.run(`UPDATE ${table} SET a = 3 WHERE id = 1 IF a = 1 AND b = 'x'`);
    assert.equal(refused.wasApplied(), false);
    assert.equal(refused.first().a, 2);
    assert.equal((await t.run(`UPDATE ${table} SET a = 3 WHERE id = 9 IF EXISTS`)).wasApplied(), false);
    assert.equal((await t.run(`DELETE FROM ${table} WHERE id = 1 IF a = 2`)).wasApplied(), true);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    assert.equal((await t.run(insert)).wasApplied(), true);
  });

  t.it("are written together with static columns if the row's condition holds, or not at all", async () => {
    const table = await t.table("(p int, c int, s text static, v int, PRIMARY KEY (p, c))");
    const applied = async (cql) => (await t.run(cql)).wasApplied();
    const all = () => t.rows(`SELECT c, s, v FROM ${table} WHERE p = 1`);
    await t.run(`INSERT INTO ${table} (p, s) VALUES (1, 'old')`);
    assert.equal(await applied(`INSERT INTO ${table} (p, c, s, v) VALUES (1, 2, 'x', 3) IF NOT EXISTS`), true, "only the static columns were there");
    assert.deepEqual(await all(), [{ c: 2, s: "x", v: 3 }]);
    const again = await t.run(`INSERT INTO ${table} (p, c, s, v) VALUES (1, 2, 'y', 4) IF NOT EXISTS`);
    assert.deepEqual([again.wasApplied(), again.first().c, again.first().v], [false, 2, 3]);
    assert.deepEqual(await all(), [{ c: 2, s: "x", v: 3 }]);
    await t.run(`DELETE s FROM ${table} WHERE p = 1`);
    assert.equal(await applied(`UPDATE ${table} SET s = 'z', v = 5 WHERE p = 1 AND c = 2 IF EXISTS`), true, "only the row was there");
    assert.equal(await applied(`UPDATE ${table} SET s = 'no', v = 6 WHERE p = 1 AND c = 9 IF EXISTS`), false);
    assert.deepEqual(await all(), [{ c: 2, s: "z", v: 5 }]);
    assert.equal(await applied(`INSERT INTO ${table} (p, s) VALUES (1, 'no') IF NOT EXISTS`), false);
    assert.equal(await applied(`UPDATE ${table} SET s = 'w' WHERE p = 1 IF s = 'z'`), true);
    await fails(t.run(`DELETE FROM ${table} WHERE p = 1 AND c = 2 IF s = null`), codes.invalid, /combination of Static and Regular/);
    assert.deepEqual(await all(), [{ c: 2, s: "w", v: 5 }]);
    const unset = await t.run(`UPDATE ${table} SET s = ? WHERE p = 1 IF s = 'z'`, [cassandra.types.unset]);
    assert.deepEqual([unset.wasApplied(), unset.first().s], [false, "w"]);
  });

  t.it("show the row of the condition that a batch does not meet", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    await t.run(`INSERT INTO ${table} (p, c, v) VALUES (1, 1, 10)`);
    await t.run(`INSERT INTO ${table} (p, c, v) VALUES (1, 2, 20)`);
    const refused = await t.run(`BEGIN BATCH UPDATE ${table} SET v = 9 WHERE p = 1 AND c = 1; UPDATE ${table} SET v = 9 WHERE p = 1 AND c = 2 IF v = 7; APPLY BATCH`);
    assert.deepEqual([refused.wasApplied(), refused.first().v], [false, 20]);
    assert.deepEqual((await t.rows(`SELECT v FROM ${table} WHERE p = 1`)).map((row) => row.v), [10, 20]);
  });

  t.it("keep to timestamps that can be compared", async () => {
    const table = await t.table("(id int PRIMARY KEY, v int, l list<int>)");
    const { Long } = cassandra.types;
    const write = (id, timestamp) => t.run(`INSERT INTO ${table} (id, v, l) VALUES (?, 5, [1])`, [id], { prepare: true, timestamp });
    await fails(write(1, Long.MIN_VALUE), codes.protocolError, /Out of bound timestamp/);
    await fails(t.run(`BEGIN BATCH USING TIMESTAMP -9223372036854775808 INSERT INTO ${table} (id, l) VALUES (1, [1]); APPLY BATCH`), codes.protocolError, /Out of bound timestamp/);
    await fails(t.client.batch([`INSERT INTO ${table} (id, l) VALUES (1, [1])`], { timestamp: Long.MIN_VALUE }), codes.protocolError, /Out of bound timestamp/);
    await write(1, Long.MIN_VALUE.add(1));
    await write(2, Long.MAX_VALUE);
    assert.equal((await t.rows(`SELECT * FROM ${table}`)).length, 2);
    await fails(t.run(`UPDATE ${table} SET v = 1 WHERE id = 2 IF v = 5`), codes.invalid, /greatest timestamp/);
    assert.equal((await t.run(`UPDATE ${table} SET v = 1 WHERE id = 1 IF v = 5`)).wasApplied(), true);
    assert.deepEqual((await t.rows(`SELECT id, v FROM ${table}`)).sort((a, b) => a.id - b.id), [{ id: 1, v: 1 }, { id: 2, v: 5 }]);
  });

  t.it("are written if conditions on parts of columns hold; parts that a column does not have are refused", async () => {
    const table = await t.table("(id int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>, p tuple<int, int>, a int)");
    await t.run(`INSERT INTO ${table} (id, l, m, a) VALUES (1, [1, 2], {'k': 3}, 4)`);
    for (const [condition, applied] of [["l[1] = 2", true], ["l[0] = 2", false], ["m['k'] = 3", true], ["m['x'] = 3", false], ["m CONTAINS KEY 'k'", true]]) {
      assert.equal((await t.run(`UPDATE ${table} SET a = 5 WHERE id = 1 IF ${condition}`)).wasApplied(), applied, condition);
    }
    for (const condition of ["l.x = 1", "s.x = 1", "m.x = 1", "p.x = 1", "a.x = 1", "s[1] = 1", "a[1] = 1", "a CONTAINS 1", "l CONTAINS KEY 1", "x = 1", "id = 1"]) {
      await assert.rejects(t.run(`UPDATE ${table} SET a = 6 WHERE id = 1 IF ${condition}`), { code: 0x2200 }, condition);
    }
    assert.equal((await t.rows(`SELECT a FROM ${table}`))[0].a, 5);
  });

  t.it("are written together by a batch, or not at all", async () => {
    const table = await t.table("(p int, c int, v int, PRIMARY KEY (p, c))");
    const other = await t.table("(id int PRIMARY KEY, v int)");
    const insert = `INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`;
    await t.client.batch([1, 2, 3].map((c) => ({ query: insert, params: [1, c, c] })), { prepare: true });
    await t.client.batch([{ query: insert, params: [2, 1, 1] }, { query: `INSERT INTO ${other} (id, v) VALUES (?, ?)`, params: [1, 1] }], { prepare: true });
    assert.equal((await t.rows(`SELECT * FROM ${table}`)).length, 4);
    assert.equal((await t.rows(`SELECT * FROM ${other}`)).length, 1);
    const conditional = await t.run(`BEGIN BATCH UPDATE ${table} SET v = 9 WHERE p = 1 AND c = 1 IF v = 1; UPDATE ${table} SET v = 9 WHERE p = 1 AND c = 2 IF v = 7; APPLY BATCH`);
    assert.equal(conditional.wasApplied(), false);
    assert.equal((await t.rows(`SELECT v FROM ${table} WHERE p = 1 AND c = 1`))[0].v, 1);
    await t.run(`BEGIN UNLOGGED BATCH DELETE FROM ${table} WHERE p = 1; INSERT INTO ${table} (p, c, v) VALUES (3, 1, 1); APPLY BATCH`);
    assert.equal((await t.rows(`SELECT * FROM ${table}`)).length, 2);
  });

  t.it("come and go as JSON", async () => {
    const table = await t.table("(id int PRIMARY KEY, v text, l list<int>)");
    await t.run(`INSERT INTO ${table} JSON '{"id": 1, "v": "a", "l": [1, 2]}'`);
    assert.deepEqual(JSON.parse((await t.rows(`SELECT JSON * FROM ${table}`))[0]["[json]"]), { id: 1, l: [1, 2], v: "a" });
  });

  t.it("are aggregated and grouped", async () => {
    const table = await t.table("(p int, c int, d int, v int, PRIMARY KEY (p, c, d))");
    for (let p = 0; p < 2; p++) for (let c = 0; c < 3; c++) for (let d = 0; d < 2; d++) await t.run(`INSERT INTO ${table} (p, c, d, v) VALUES (?, ?, ?, ?)`, [p, c, d, p + c + d]);
    const [all] = await t.rows(`SELECT count(*) AS n, sum(v) AS s, min(v) AS least, max(v) AS most, avg(v) AS mean FROM ${table}`);
    assert.deepEqual([Number(all.n), all.s, all.least, all.most, all.mean], [12, 24, 0, 4, 2]);
    const groups = await t.rows(`SELECT p, c, count(*) AS n FROM ${table} WHERE p = 1 GROUP BY p, c`);
    assert.deepEqual(groups.map((row) => [row.c, Number(row.n)]), [[0, 2], [1, 2], [2, 2]]);
    assert.equal((await t.rows(`SELECT * FROM ${table} PER PARTITION LIMIT 1`)).length, 2);
  });

  t.it("are filtered only if the statement allows it", async () => {
    const table = await t.table("(id int PRIMARY KEY, v int, tags set<text>)");
    for (let id = 0; id < 10; id++) await t.run(`INSERT INTO ${table} (id, v, tags) VALUES (?, ?, ?)`, [id, id % 3, [`t${id % 2}`]]);
    await fails(t.run(`SELECT * FROM ${table} WHERE v = 1`), codes.invalid, /ALLOW FILTERING/);
    assert.equal((await t.rows(`SELECT * FROM ${table} WHERE v = 1 ALLOW FILTERING`)).length, 3);
    assert.equal((await t.rows(`SELECT * FROM ${table} WHERE tags CONTAINS 't1' ALLOW FILTERING`)).length, 5);
    await t.run(`CREATE INDEX ON ${table} (v)`);
    assert.equal((await t.rows(`SELECT * FROM ${table} WHERE v = 1`)).length, 3);
  });

  t.it("are scanned by tokens, which are Cassandra's and in order", async () => {
    const table = await t.table("(id int PRIMARY KEY)");
    for (let id = 0; id < 50; id++) await t.run(`INSERT INTO ${table} (id) VALUES (?)`, [id]);
    const [one] = await t.rows(`SELECT token(id) AS t FROM ${table} WHERE id = 1`);
    assert.equal(one.t.toString(), "-4069959284402364209");
    const seen = [];
    let last = null;
    for (;;) {
      const rows = await t.rows(`SELECT id, token(id) AS t FROM ${table} ${last ? `WHERE token(id) > ${last}` : ""} LIMIT 7`);
      if (!rows.length) break;
      for (const row of rows) {
        assert.ok(!last || row.t.greaterThan(last), "tokens ascend");
        last = row.t;
        seen.push(row.id);
      }
    }
    assert.deepEqual(seen.sort((a, b) => a - b), [...Array(50).keys()]);
  });
});
