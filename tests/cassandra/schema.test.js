// schema.test.js — keyspaces, tables, types and indexes: made, changed, listed, dropped; what is refused; prepared statements and events after changes.

import { assert, cassandra, codes, fails, suite } from "./harness.js";

suite("schema", (t) => {
  t.it("system_schema shows a keyspace as it shows all of them", async () => {
    await t.table("(a int, b text, PRIMARY KEY (a, b))");
    await t.run(`CREATE TYPE ${t.keyspace}.shown (x int)`);
    for (const name of ["keyspaces", "tables", "columns", "types", "indexes", "dropped_columns"]) {
      const all = await t.rows(`SELECT * FROM system_schema.${name}`, undefined, { fetchSize: 0 });
      const of = (...keyspaces) => all.filter((row) => keyspaces.includes(row.keyspace_name));
      assert.ok(/indexes|dropped/.test(name) || of(t.keyspace).length > 0, name);
      assert.deepEqual(await t.rows(`SELECT * FROM system_schema.${name} WHERE keyspace_name = '${t.keyspace}'`), of(t.keyspace));
      assert.deepEqual(await t.rows(`SELECT * FROM system_schema.${name} WHERE keyspace_name IN ?`, [["system", "nowhere", t.keyspace]], { prepare: true }), of("system", t.keyspace));
      assert.deepEqual(await t.rows(`SELECT * FROM system_schema.${name} WHERE keyspace_name = 'nowhere'`), []);
    }
  });

  t.it("has keyspaces, which SQL sees as databases", async () => {
    const name = `made${t.way}`;
    const make = `CREATE KEYSPACE ${name} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3} AND durable_writes = false`;
    await t.run(make);
    const error = await fails(t.run(make), codes.alreadyExists, /existing keyspace/);
    assert.equal(error.keyspace, name);
    await t.run(make.replace("KEYSPACE", "KEYSPACE IF NOT EXISTS"));
    const [row] = await t.rows(`SELECT * FROM system_schema.keyspaces WHERE keyspace_name = '${name}'`);
    assert.equal(row.durable_writes, false);
    await t.run(`USE ${name}`);
    await t.run(`DROP KEYSPACE ${name}`);
    await t.run(`DROP KEYSPACE IF EXISTS ${name}`);
    await fails(t.run(`CREATE KEYSPACE other WITH durable_writes = true`), codes.configError);
    await fails(t.run(`CREATE TABLE ${name}.t (id int PRIMARY KEY)`), codes.configError);
  });

  t.it("changes tables: columns come and go, key columns get other names, options are kept", async () => {
    const table = await t.table("(p int, c int, a int, PRIMARY KEY (p, c))", "WITH comment = 'first' AND default_time_to_live = 1000");
    await t.run(`INSERT INTO ${table} (p, c, a) VALUES (1, 1, 5)`);
    await t.run(`ALTER TABLE ${table} ADD b text`);
    await t.run(`ALTER TABLE ${table} ADD (d set<int>, e int static)`);
    await t.run(`UPDATE ${table} SET b = 'x', d = {2, 1}, e = 9 WHERE p = 1 AND c = 1`);
    await t.run(`ALTER TABLE ${table} RENAME c TO place`);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table} WHERE p = 1 AND place = 1`), [{ p: 1, place: 1, e: 9, a: 5, b: "x", d: [1, 2] }]);
    await t.run(`ALTER TABLE ${table} DROP a`);
    await fails(t.run(`SELECT a FROM ${table}`), codes.invalid, /Undefined column name a/);
    await t.run(`ALTER TABLE ${table} ADD a int`);
    assert.equal((await t.rows(`SELECT a FROM ${table}`))[0].a, null, "values of a dropped column do not come back");
    await t.run(`ALTER TABLE ${table} WITH comment = 'second'`);
    const [shown] = await t.rows("SELECT comment, default_time_to_live FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?", table.split("."));
    assert.deepEqual(shown, { comment: "second", default_time_to_live: 1000 });
    const [ttl] = await t.rows(`SELECT ttl(b) AS t FROM ${table}`);
    assert.ok(ttl.t > 900 && ttl.t <= 1000);
    await fails(t.run(`ALTER TABLE ${table} DROP p`), codes.invalid, /PRIMARY KEY/);
    await fails(t.run(`ALTER TABLE ${table} ADD b int`), codes.invalid, /conflicts with an existing column/);
    await fails(t.run(`ALTER TABLE ${table} WITH nothing = 1`), codes.syntaxError, /Unknown property/);
  });

  t.it("has user types, in columns and in each other", async () => {
    const ks = t.keyspace;
    await t.run(`CREATE TYPE ${ks}.street (name text, number int)`);
    await t.run(`CREATE TYPE ${ks}.address (street frozen<street>, town text)`);
    const table = await t.table("(id int PRIMARY KEY, home address, others list<frozen<address>>)");
    await t.run(`INSERT INTO ${table} (id, home, others) VALUES (1, {street: {name: 'a', number: 1}, town: 'x'}, [{town: 'y'}])`);
    await t.run(`UPDATE ${table} SET home.town = 'z' WHERE id = 1`);
    const [row] = await t.rows(`SELECT home, others, home.town AS town FROM ${table}`);
    assert.equal(row.home.street.name, "a");
    assert.equal(row.town, "z");
    assert.equal(row.others[0].town, "y");
    await t.run(`ALTER TYPE ${ks}.address ADD zip int`);
    await t.run(`UPDATE ${table} SET home.zip = 7 WHERE id = 1`);
    assert.equal((await t.rows(`SELECT home.zip AS zip FROM ${table}`))[0].zip, 7);
    await fails(t.run(`DROP TYPE ${ks}.street`), codes.invalid, /still used/);
    await t.run(`DROP TABLE ${table}`);
    await t.run(`DROP TYPE ${ks}.address`);
    await t.run(`DROP TYPE ${ks}.street`);
  });

  t.it("refuses changes of user types after which tables could not be read", async () => {
    const ks = t.keyspace;
    await t.run(`CREATE TYPE ${ks}.own (x int)`);
    const table = await t.table("(k int PRIMARY KEY, v own, w frozen<own>)");
    await fails(t.run(`ALTER TYPE ${ks}.own ADD y frozen<own>`), codes.invalid, /cannot contain itself/);
    await t.run(`CREATE TYPE ${ks}.around (x frozen<own>)`);
    await fails(t.run(`ALTER TYPE ${ks}.own ADD y list<frozen<around>>`), codes.invalid, /cannot contain itself/);
    await fails(t.run(`ALTER TYPE ${ks}.own ADD y list<int>`), codes.invalid, /could not be read: .*nested non-frozen collections/);
    await fails(t.run(`ALTER TYPE ${ks}.own ADD x int`), codes.invalid, /Duplicate field/);
    await t.run(`ALTER TYPE ${ks}.own ADD y frozen<list<int>>`);
    await t.run(`INSERT INTO ${table} (k, v) VALUES (1, {x: 1, y: [2]})`);
    assert.deepEqual((await t.rows(`SELECT v.y AS y FROM ${table}`))[0].y, [2]);

    await t.run(`CREATE TYPE ${ks}.d0 (a int)`);
    for (let i = 1; i <= 14; i++) await t.run(`CREATE TYPE ${ks}.d${i} (a frozen<d${i - 1}>)`);
    const deep = await t.table("(k int PRIMARY KEY, v frozen<d14>)");
    await fails(t.run(`ALTER TYPE ${ks}.d0 ADD b frozen<list<int>>`), codes.invalid, /nested 16 levels/);
    assert.deepEqual(await t.rows(`SELECT * FROM ${deep}`), []);
  });

  t.it("counts the parts of user types that are made of each other", async () => {
    const ks = t.keyspace;
    await t.run(`CREATE TYPE ${ks}.p0 (a int)`);
    for (let i = 1; i <= 8; i++) await t.run(`CREATE TYPE ${ks}.p${i} (a frozen<p${i - 1}>, b frozen<p${i - 1}>, c frozen<p${i - 1}>)`);
    const table = await t.table("(k int PRIMARY KEY, v frozen<p8>)");
    let added = 0;
    const error = await (async () => {
      for (; added < 1000; added++) await t.run(`ALTER TYPE ${ks}.p0 ADD f${added} int`);
    })().catch((caught) => caught);
    assert.equal(error?.code, codes.invalid, error?.message);
    assert.match(error.message, /too many fields/);
    assert.ok(added >= 1 && added < 10, `${added} fields`);
    await fails(t.run(`ALTER TABLE ${table} ADD (w frozen<p8>, x frozen<p8>, y frozen<p8>, z frozen<p8>)`), codes.invalid, /too many fields/);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    await t.run(`CREATE TABLE ${ks}.small (k int PRIMARY KEY, v frozen<p3>)`);
    await t.run(`INSERT INTO ${ks}.small (k, v) VALUES (1, {a: {b: {c: {a: 7}}}})`);
    assert.equal((await t.rows(`SELECT v FROM ${ks}.small`))[0].v.a.b.c.a, 7);
  });

  t.it("loses no user type when several are made at once", async () => {
    const names = Array.from({ length: 20 }, (_, i) => `once${i}`);
    const results = await Promise.allSettled(names.map((name) => t.run(`CREATE TYPE ${t.keyspace}.${name} (a int)`)));
    const made = names.filter((_, i) => results[i].status === "fulfilled");
    for (const { reason } of results.filter((result) => result.status === "rejected")) assert.match(reason.message, /repeat the statement/);
    const rows = await t.rows("SELECT type_name FROM system_schema.types WHERE keyspace_name = ?", [t.keyspace]);
    assert.deepEqual(rows.map((row) => row.type_name).filter((name) => name.startsWith("once")).sort(), made.sort());
    assert.ok(made.length >= 8, `${made.length} of ${names.length} were made`);
    const type = `${t.keyspace}.${made[0]}`;
    await Promise.all([1, 2, 3, 4].map((i) => t.run(`ALTER TYPE ${type} ADD f${i} int`)));
    const [{ field_names: fields }] = await t.rows("SELECT field_names FROM system_schema.types WHERE keyspace_name = ? AND type_name = ?", type.split("."));
    assert.deepEqual([...fields].sort(), ["a", "f1", "f2", "f3", "f4"]);
  });

  t.it("has indexes on columns and collections", async () => {
    const table = await t.table("(id int PRIMARY KEY, v text, tags set<text>, m map<text, int>)");
    await t.run(`CREATE INDEX by_v ON ${table} (v)`);
    await t.run(`CREATE INDEX ON ${table} (tags)`);
    await t.run(`CREATE INDEX ON ${table} (keys(m))`);
    for (let id = 0; id < 30; id++) await t.run(`INSERT INTO ${table} (id, v, tags, m) VALUES (?, ?, ?, ?)`, [id, `v${id % 3}`, [`t${id % 5}`], { [`k${id % 2}`]: id }]);
    const ids = async (where) => (await t.rows(`SELECT id FROM ${table} WHERE ${where}`, [], { prepare: true, fetchSize: 4 })).length;
    const all = [];
    for await (const row of t.client.stream(`SELECT id FROM ${table} WHERE v = 'v1'`, [], { fetchSize: 4, autoPage: true })) all.push(row.id);
    assert.deepEqual(all.sort((a, b) => a - b), [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]);
    assert.equal(await ids("tags CONTAINS 't2' LIMIT 100"), 4);
    assert.equal((await t.rows(`SELECT id FROM ${table} WHERE m CONTAINS KEY 'k1'`)).length, 15);
    assert.equal((await t.rows(`SELECT id FROM ${table} WHERE v = 'v1' AND tags CONTAINS 't1' ALLOW FILTERING`)).length, 2);
    await fails(t.run(`CREATE INDEX by_v ON ${table} (v)`), codes.invalid);
    await t.run(`DROP INDEX ${t.keyspace}.by_v`);
    await fails(t.run(`SELECT id FROM ${table} WHERE v = 'v1'`), codes.invalid, /ALLOW FILTERING/);
  });

  t.it("reads by an index only the rows that it finds", async () => {
    const columns = (name) => `${name}v int, ${name}m map<text, int>, ${name}s set<int>, ${name}f frozen<list<int>>`;
    const table = await t.table(`(id int PRIMARY KEY, c int, ${columns("x")}, ${columns("y")})`);
    const clustered = await t.table("(p int, c uuid, d int, PRIMARY KEY (p, c, d))");
    for (const what of ["xv", "keys(xm)", "entries(xm)", "xs", "full(xf)"]) await t.run(`CREATE INDEX ON ${table} (${what})`);
    await t.run(`CREATE INDEX ON ${clustered} (c)`);
    const uuid = (n) => cassandra.types.Uuid.fromString(`00000000-0000-4000-8000-${String(n % 300).padStart(12, "0")}`);
    for (let id = 0; id < 600; id++) {
      const values = [id % 300, { [`k${id % 300}`]: id % 300 }, [id % 300], [id % 300, 1]];
      await t.run(`INSERT INTO ${table} (id, xv, xm, xs, xf, yv, ym, ys, yf) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, [id, ...values, ...values]);
      await t.run(`INSERT INTO ${clustered} (p, c, d) VALUES (?, ?, 1)`, [id, uuid(id)]);
    }
    const ask = async (cql, params) => {
      const result = await t.run(cql, params);
      return { n: result.rowLength, charge: result.info.customPayload.RequestCharge.readDoubleBE(0) };
    };
    for (const where of ["?v = 7", "?m CONTAINS KEY 'k7'", "?m['k7'] = 7", "?s CONTAINS 7", "?f = [7, 1]"]) {
      const found = await ask(`SELECT id FROM ${table} WHERE ${where.replace("?", "x")}`);
      const filtered = await ask(`SELECT id FROM ${table} WHERE ${where.replace("?", "y")} ALLOW FILTERING`);
      assert.deepEqual([found.n, filtered.n], [2, 2], where);
      assert.ok(found.charge * 3 < filtered.charge, `${where}: ${found.charge} by the index, ${filtered.charge} without`);
    }
    const found = await ask(`SELECT p FROM ${clustered} WHERE c = ?`, [uuid(7)]);
    const filtered = await ask(`SELECT p FROM ${clustered} WHERE d = 1 AND c = ? ALLOW FILTERING`, [uuid(7)]);
    assert.deepEqual([found.n, filtered.n], [2, 2]);
    const all = await ask(`SELECT p FROM ${clustered} WHERE d = 1 ALLOW FILTERING`);
    assert.ok(found.charge * 3 < all.charge, `${found.charge} by the index, ${all.charge} without`);
  });

  t.it("truncates and drops tables", async () => {
    const table = await t.table("(id int PRIMARY KEY)");
    await t.run(`INSERT INTO ${table} (id) VALUES (1)`);
    await t.run(`TRUNCATE ${table}`);
    assert.deepEqual(await t.rows(`SELECT * FROM ${table}`), []);
    await t.run(`DROP TABLE ${table}`);
    await fails(t.run(`SELECT * FROM ${table}`), codes.invalid, /unconfigured table/);
    await t.run(`DROP TABLE IF EXISTS ${table}`);
  });

  t.it("refuses what it does not have, clearly", async () => {
    for (const [statement, text] of [
      ["CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE id IS NOT NULL PRIMARY KEY (id)", /Materialized views are disabled/],
      ["CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'", /User-defined functions are disabled/],
      ["CREATE ROLE r", /not supported/],
      ["GRANT SELECT ON ALL KEYSPACES TO r", /not supported/],
    ])
      await fails(t.run(statement), codes.invalid, text);
    await fails(t.run("INSERT INTO system.local (key) VALUES ('x')"), codes.unauthorized);
    await fails(t.run("SELECT * FORM t"), codes.syntaxError, /line 1:/);
  });

  t.it("prepares statements again after a change", async () => {
    const table = await t.table("(id int PRIMARY KEY, a int)");
    const select = `SELECT * FROM ${table} WHERE id = ?`;
    await t.run(`INSERT INTO ${table} (id, a) VALUES (1, 1)`);
    assert.deepEqual(await t.rows(select, [1]), [{ id: 1, a: 1 }]);
    await t.run(`ALTER TABLE ${table} ADD b int`);
    assert.equal((await t.rows(select, [1]))[0].a, 1);
  });

  t.it("tells watchers about changes", async () => {
    await t.with({}, async (other) => {
      await other.connect();
      const name = `told${t.way}`;
      await t.run(`CREATE KEYSPACE ${name} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
      for (let i = 0; i < 100 && !other.metadata.keyspaces[name]; i++) await new Promise((resolve) => setTimeout(resolve, 50));
      assert.ok(other.metadata.keyspaces[name], "the other client learned of the keyspace by an event");
    });
  });
});
