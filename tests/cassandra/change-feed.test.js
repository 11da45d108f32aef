// change-feed.test.js — SELECT … WHERE COSMOS_CHANGEFEED_START_TIME() = '…': rows that were written since, page after page, as they are now.

import { assert, codes, fails, suite } from "./harness.js";

const since = "COSMOS_CHANGEFEED_START_TIME() = '1970-01-01'";

suite("the change feed", (t) => {
  // Reads until a page is empty: the rows, and the state to go on with.
  const read = async (cql, pageState, fetchSize = 10) => {
    const rows = [];
    for (;;) {
      const result = await t.client.execute(cql, [], { fetchSize, pageState });
      assert.ok(result.pageState, "there is always a next page");
      pageState = result.pageState;
      if (!result.rows.length) return { rows, pageState };
      rows.push(...result.rows);
    }
  };

  t.it("has each row once, as it is now, and goes on with what is written later", async () => {
    const table = await t.table("(p int, c int, v text, PRIMARY KEY (p, c))");
    const insert = (p, c, v) => t.run(`INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`, [p, c, v]);
    for (let i = 0; i < 25; i++) await insert(i % 5, i, `v${i}`);
    await insert(0, 0, "changed");
    const all = `SELECT * FROM ${table} WHERE ${since}`;
    const first = await read(all);
    assert.equal(new Set(first.rows.map((row) => row.c)).size, 25);
    assert.equal(first.rows.length, 25);
    assert.equal(first.rows.find((row) => row.c === 0).v, "changed");

    assert.deepEqual((await read(all, first.pageState)).rows, []);
    await insert(3, 99, "new");
    await t.run(`UPDATE ${table} SET v = 'again' WHERE p = 1 AND c = 1`);
    await t.run(`DELETE FROM ${table} WHERE p = 2 AND c = 2`);
    const next = await read(all, first.pageState);
    assert.deepEqual(next.rows.map((row) => `${row.c} ${row.v}`).sort(), ["1 again", "99 new"], "deletions do not show");
  });

  t.it("of one partition, and with filters", async () => {
    const table = await t.table("(p int, c int, s int static, v int, PRIMARY KEY (p, c))");
    for (let i = 0; i < 12; i++) await t.run(`INSERT INTO ${table} (p, c, v) VALUES (?, ?, ?)`, [i % 3, i, i]);
    await t.run(`INSERT INTO ${table} (p, s) VALUES (1, 7)`);
    const one = await read(`SELECT c, s FROM ${table} WHERE ${since} AND p = 1`, undefined, 2);
    assert.deepEqual(one.rows.map((row) => `${row.c} ${row.s}`).sort(), ["1 null", "10 null", "4 null", "7 null", "null 7"]);
    const filtered = await read(`SELECT c FROM ${table} WHERE ${since} AND v = 5 ALLOW FILTERING`);
    assert.deepEqual(filtered.rows.map((row) => row.c), [5]);
  });

  t.it("starts at a time, and begins with nothing if that is to come", async () => {
    const table = await t.table("(id int PRIMARY KEY)");
    await t.run(`INSERT INTO ${table} (id) VALUES (1)`);
    const at = async (time) => (await t.rows(`SELECT id FROM ${table} WHERE COSMOS_CHANGEFEED_START_TIME() = ?`, [time])).length;
    assert.equal(await at(new Date(Date.now() - 60000)), 1);
    assert.equal(await at(new Date(Date.now() + 60000)), 0);
  });

  t.it("is refused where it makes no sense", async () => {
    const table = await t.table("(p int, c int, PRIMARY KEY (p, c))");
    for (const cql of [`SELECT count(*) FROM ${table} WHERE ${since}`, `SELECT p FROM ${table} WHERE ${since} AND p = 1 ORDER BY c DESC`, `SELECT DISTINCT p FROM ${table} WHERE ${since}`]) {
      await fails(t.run(cql), codes.invalid, /COSMOS_CHANGEFEED_START_TIME/);
    }
    await fails(t.client.execute(`SELECT p FROM ${table} WHERE ${since}`, [], { pageState: "00ff" }), codes.protocolError);
  });
});
