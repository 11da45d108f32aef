// features.test.js — an example of every row of docs/cassandra-features.md, and a row for every statement, function and type of the code. `protocol`
// rows are shown by protocol.test.js, driver.test.js and python-client, so here only that SUPPORTED and the versions say the same.

import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after } from "node:test";
import { assert, cassandra, portOf, suite } from "./harness.js";

const root = join(import.meta.dirname, "../..");
const read = (path) => readFileSync(join(root, path), "utf8");
const sections = read("docs/cassandra-features.md").split(/^## /m).slice(1);

// The rows under a heading: name -> "yes" or "refused".
function rows(heading) {
  const section = sections.find((part) => part.startsWith(`${heading}\n`));
  return new Map([...section.matchAll(/^\| (.+?) \| (yes|no|refused) \| (yes|no) \| (yes|no) \| .*\|$/gm)].map(([, name, state]) => [name.replaceAll("`", ""), state]));
}

// In a keyspace with these tables; n is a name that is free, t the table, k the counters, ks the keyspace. A list is run in its order.
const setup = [
  "CREATE TYPE own (a int, b text)",
  "CREATE TABLE t (p int, a int, b int, v int, s int static, m map<text, int>, l list<int>, e set<int>, u own, x text, f frozen<map<text, int>>, PRIMARY KEY (p, a, b))",
  "CREATE TABLE k (p int PRIMARY KEY, n counter)",
  "INSERT INTO t (p, a, b, v, s, m, l, e, u, x) VALUES (1, 1, 1, 5, 7, {'k': 1}, [1, 2], {3}, {a: 1}, 'x')",
  "INSERT INTO t (p, a, b, v) VALUES (1, 2, 1, 6)",
  "CREATE INDEX by_v ON t (v)",
];
const one = "p = 1 AND a = 1 AND b = 1";
const examples = {
  Statements: {
    SELECT: "SELECT * FROM t",
    INSERT: "INSERT INTO t (p, a, b) VALUES (9, 9, 9)",
    UPDATE: `UPDATE t SET v = 5 WHERE ${one}`,
    DELETE: "DELETE FROM t WHERE p = 9 AND a = 9 AND b = 9",
    BATCH: "BEGIN BATCH INSERT INTO t (p, a, b) VALUES (9, 9, 8); DELETE FROM t WHERE p = 9; APPLY BATCH",
    USE: ({ ks }) => `USE ${ks}`,
    TRUNCATE: ({ n }) => [`CREATE TABLE ${n} (id int PRIMARY KEY)`, `TRUNCATE ${n}`],
    "CREATE KEYSPACE": ({ ks }) => `CREATE KEYSPACE ${ks}_made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
    "ALTER KEYSPACE": ({ ks }) => `ALTER KEYSPACE ${ks} WITH durable_writes = true`,
    "DROP KEYSPACE": ({ ks }) => [`CREATE KEYSPACE ${ks}_gone WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`, `DROP KEYSPACE ${ks}_gone`],
    "CREATE TABLE": ({ n }) => `CREATE TABLE ${n} (id int PRIMARY KEY)`,
    "ALTER TABLE": ({ n }) => [`CREATE TABLE ${n} (id int PRIMARY KEY)`, `ALTER TABLE ${n} ADD v int`],
    "DROP TABLE": ({ n }) => [`CREATE TABLE ${n} (id int PRIMARY KEY)`, `DROP TABLE ${n}`],
    "CREATE TYPE": ({ n }) => `CREATE TYPE ${n} (a int)`,
    "ALTER TYPE": ({ n }) => [`CREATE TYPE ${n} (a int)`, `ALTER TYPE ${n} ADD b int`],
    "DROP TYPE": ({ n }) => [`CREATE TYPE ${n} (a int)`, `DROP TYPE ${n}`],
    "CREATE INDEX": ({ n }) => `CREATE INDEX ${n} ON t (x)`,
    "DROP INDEX": ({ n }) => [`CREATE INDEX ${n} ON t (s)`, `DROP INDEX ${n}`],
    "CREATE MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE v IS NOT NULL AND p IS NOT NULL AND a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (v, p, a, b)",
    "ALTER MATERIALIZED VIEW": "ALTER MATERIALIZED VIEW w WITH comment = 'x'",
    "DROP MATERIALIZED VIEW": "DROP MATERIALIZED VIEW w",
    "CREATE FUNCTION": "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE javascript AS 'a'",
    "DROP FUNCTION": "DROP FUNCTION f",
    "CREATE AGGREGATE": "CREATE AGGREGATE g (int) SFUNC f STYPE int",
    "DROP AGGREGATE": "DROP AGGREGATE g",
    "CREATE TRIGGER": "CREATE TRIGGER r ON t USING 'c'",
    "DROP TRIGGER": "DROP TRIGGER r ON t",
    "CREATE ROLE": "CREATE ROLE r",
    "ALTER ROLE": "ALTER ROLE r WITH PASSWORD = 'a'",
    "DROP ROLE": "DROP ROLE r",
    "LIST ROLES": "LIST ROLES",
    "LIST USERS": "LIST USERS",
    GRANT: "GRANT SELECT ON t TO r",
    REVOKE: "REVOKE SELECT ON t FROM r",
    "LIST PERMISSIONS": "LIST ALL PERMISSIONS",
    DESCRIBE: "DESCRIBE TABLES",
  },
  SELECT: {
    DISTINCT: "SELECT DISTINCT p, s FROM t",
    JSON: "SELECT JSON p, v FROM t",
    AS: "SELECT v AS w FROM t",
    LIMIT: "SELECT * FROM t LIMIT 1",
    "PER PARTITION LIMIT": "SELECT * FROM t PER PARTITION LIMIT 1",
    "ORDER BY": "SELECT * FROM t WHERE p IN (1, 2) ORDER BY a DESC",
    "ORDER BY … ANN OF": "SELECT * FROM t ORDER BY x ANN OF [1] LIMIT 1",
    "GROUP BY": "SELECT p, a, count(*) FROM t GROUP BY p, a",
    "ALLOW FILTERING": "SELECT * FROM t WHERE x = 'x' ALLOW FILTERING",
    "cast(c AS t)": "SELECT cast(v AS text) FROM t",
    "c + 1": "SELECT v + 1, v - 1, v * 2, v / 2, v % 2, -v FROM t",
    "(type) x": "SELECT (int) 5 FROM t",
    "u.field": "SELECT u.a FROM t",
    "m[key]": "SELECT m['k'], e[3] FROM t",
    "m[a..b]": "SELECT m['a'..'z'] FROM t",
    "writetime(c)": "SELECT writetime(v) FROM t",
    "ttl(c)": "SELECT ttl(v) FROM t",
  },
  WHERE: {
    "=": `SELECT * FROM t WHERE ${one}`,
    IN: "SELECT * FROM t WHERE p IN (1, 2) AND a IN (1, 2)",
    "<": "SELECT * FROM t WHERE p = 1 AND a >= 1 AND a < 2",
    "(a, b) = (…)": "SELECT * FROM t WHERE p = 1 AND (a, b) = (1, 1)",
    "(a, b) IN (…)": "SELECT * FROM t WHERE p = 1 AND (a, b) IN ((1, 1), (2, 1))",
    "(a, b) > (…)": "SELECT * FROM t WHERE p = 1 AND (a, b) > (1, 0)",
    "token(p) > …": "SELECT * FROM t WHERE token(p) > -9223372036854775808 AND token(p) <= 9223372036854775807",
    CONTAINS: "SELECT * FROM t WHERE l CONTAINS 2 ALLOW FILTERING",
    "CONTAINS KEY": "SELECT * FROM t WHERE m CONTAINS KEY 'k' ALLOW FILTERING",
    "m[key] = v": "SELECT * FROM t WHERE m['k'] = 1 ALLOW FILTERING",
    "COSMOS_CHANGEFEED_START_TIME()": "SELECT * FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = '2020-01-01'",
    "!=": "SELECT * FROM t WHERE v != 1 ALLOW FILTERING",
    LIKE: "SELECT * FROM t WHERE x LIKE 'x%' ALLOW FILTERING",
    "IS NOT NULL": "SELECT * FROM t WHERE v IS NOT NULL ALLOW FILTERING",
  },
  Writes: {
    "USING TIMESTAMP": "INSERT INTO t (p, a, b) VALUES (8, 1, 1) USING TIMESTAMP 5",
    "USING TTL": "UPDATE t USING TTL 1000 SET v = 1 WHERE p = 8 AND a = 1 AND b = 1",
    "INSERT JSON": `INSERT INTO t JSON '{"p": 8, "a": 2, "b": 1}' DEFAULT UNSET`,
    "IF NOT EXISTS": "INSERT INTO t (p, a, b) VALUES (8, 3, 1) IF NOT EXISTS",
    "IF EXISTS": `UPDATE t SET x = 'y' WHERE ${one} IF EXISTS`,
    "IF c = v": `UPDATE t SET x = 'x' WHERE ${one} IF v = 5 AND l[0] = 1 AND m['k'] = 1 AND u.a = 1`,
    "IF static, SET regular": `UPDATE t SET x = 'x' WHERE ${one} IF s = 7`,
    "c = c + v": `UPDATE t SET l = l + [3], e = e + {4}, m = m + {'z': 1} WHERE ${one}`,
    "n = n + 1": "UPDATE k SET n = n + 1 WHERE p = 1",
    "l[i] = v": `UPDATE t SET l[0] = 1, m['k'] = 1 WHERE ${one}`,
    "u.field = v": `UPDATE t SET u.b = 'x' WHERE ${one}`,
    "DELETE c": "DELETE x FROM t WHERE p = 8 AND a = 1 AND b = 1",
    "DELETE m[key]": `DELETE m['z'] FROM t WHERE ${one}`,
    "DELETE of a range": "DELETE FROM t WHERE p = 8 AND a > 7",
    "DELETE of a partition": "DELETE FROM t WHERE p = 8",
    "BEGIN UNLOGGED BATCH": "BEGIN UNLOGGED BATCH INSERT INTO t (p, a, b) VALUES (7, 1, 1); INSERT INTO t (p, a, b) VALUES (6, 1, 1); APPLY BATCH",
    "BEGIN COUNTER BATCH": "BEGIN COUNTER BATCH UPDATE k SET n = n + 1 WHERE p = 1; UPDATE k SET n = n - 1 WHERE p = 2; APPLY BATCH",
    "BATCH with IF": `BEGIN BATCH UPDATE t SET s = 7 WHERE p = 1 IF s = 7; UPDATE t SET x = 'x' WHERE ${one}; APPLY BATCH`,
  },
  Tables: {
    "PRIMARY KEY ((a, b), c)": ({ n }) => `CREATE TABLE ${n} (a int, b int, c int, PRIMARY KEY ((a, b), c))`,
    "CLUSTERING ORDER BY": ({ n }) => `CREATE TABLE ${n} (a int, c int, PRIMARY KEY (a, c)) WITH CLUSTERING ORDER BY (c DESC)`,
    STATIC: ({ n }) => `CREATE TABLE ${n} (a int, c int, s int STATIC, PRIMARY KEY (a, c))`,
    default_time_to_live: ({ n }) => `CREATE TABLE ${n} (a int PRIMARY KEY) WITH default_time_to_live = 60`,
    gc_grace_seconds: ({ n }) => `CREATE TABLE ${n} (a int PRIMARY KEY) WITH gc_grace_seconds = 0`,
    cosmosdb_provisioned_throughput: ({ n }) => `CREATE TABLE ${n} (a int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 500`,
    cosmosdb_autoscale_max_throughput: ({ n }) => `CREATE TABLE ${n} (a int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 4000`,
    cosmosdb_cell_level_timestamp: ({ n }) =>
      `CREATE TABLE ${n} (a int PRIMARY KEY) WITH cosmosdb_cell_level_timestamp = true AND cosmosdb_cell_level_timestamp_tombstones = true AND cosmosdb_cell_level_timetolive = true`,
    "COMPACT STORAGE": ({ n }) => `CREATE TABLE ${n} (a int PRIMARY KEY) WITH COMPACT STORAGE`,
    "CREATE INDEX … (keys(m))": "CREATE INDEX ON t (keys(m))",
    "CREATE INDEX … (values(m))": "CREATE INDEX ON t (values(m))",
    "CREATE INDEX … (entries(m))": "CREATE INDEX ON t (entries(m))",
    "CREATE INDEX … (full(f))": "CREATE INDEX ON t (full(f))",
    "CREATE CUSTOM INDEX": "CREATE CUSTOM INDEX ON t (x) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
  },
};

const date = "'2024-01-01'", timeuuid = "50554d6e-29bb-11e5-b345-feff819cdc9f";
const calls = {
  avg: "avg(v)", count: "count(*)", countrows: "countrows()", max: "max(v)", min: "min(v)", sum: "sum(v)", token: "token(p)", now: "now()", uuid: "uuid()",
  currentTimeUUID: "currentTimeUUID()", currentTimestamp: "currentTimestamp()", currentDate: "currentDate()", currentTime: "currentTime()",
  minTimeuuid: `minTimeuuid(${date})`, maxTimeuuid: `maxTimeuuid(${date})`, dateOf: `dateOf(${timeuuid})`, unixTimestampOf: `unixTimestampOf(${timeuuid})`,
  toDate: `toDate(${timeuuid})`, toTimestamp: `toTimestamp(${timeuuid})`, toUnixTimestamp: `toUnixTimestamp(${timeuuid})`, toJson: "toJson(m)",
};

const literals = {
  ascii: "'a'", bigint: "1", blob: "0x01", boolean: "true", date, decimal: "1.5", double: "1.5", duration: "1d", float: "1.5", inet: "'::1'", int: "1", smallint: "1", text: "'a'",
  time: "'01:02:03'", timestamp: date, timeuuid, tinyint: "1", uuid: timeuuid, varint: "1", "list<int>": "[1]", "set<int>": "{1}", "map<int, text>": "{1: 'a'}",
  "tuple<int, text>": "(1, 'a')", "frozen<list<int>>": "[1]", "vector<float, 2>": "[1, 2]", own: "{a: 1}", counter: null, empty: "''",
};

// What the code has, from its tables.
const listed = (path, pattern) => {
  const [, list] = pattern.exec(read(path)) ?? [];
  assert.ok(list, `${path} has no such table`);
  return list;
};
const inCode = {
  Statements: () => [...listed("src/cql/parse.c", /texts\[CQL_VERBS\] = \{([^}]*)\}/).matchAll(/"([^"]+)"/g)].map(([, name]) => name),
  Functions: () => [
    ...[...listed("src/cql/function.c", /functions\[\] = \{([^#]*)#define/).matchAll(/\{"(\w+)"/g)].map(([, name]) => name),
    ...[...listed("src/cql/function.c", /names\[\] = \{([^}]*)\}/).matchAll(/"(\w+)"/g)].map(([, name]) => name),
  ],
  Types: () => [...listed("src/cql/type.c", /natives\[\] = \{(.*?)\n\};/s).matchAll(/CQL_\w+, "(\w+)"/g)].map(([, name]) => name),
};
const blobTypes = () => [...read("src/cql/function.c").matchAll(/BLOB_PAIR\("(\w+)", "(\w+)"/g)].map(([, lower, capital]) => ({ lower, capital }));

let names = 0;

suite(
  "features",
  (t) => {
    let client;
    after(() => client?.shutdown());
    const ks = `features${t.way}`;
    const begin = async () => {
      if (client) return;
      client = t.make();
      await client.execute(`CREATE KEYSPACE ${ks} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
      await client.execute(`USE ${ks}`);
      for (const cql of setup) await client.execute(cql);
    };
    // "yes", or "refused" with an error that is not a fault of the server.
    const outcome = async (statements) => {
      let last;
      for (const cql of [statements].flat()) {
        try {
          last = await client.execute(cql);
        } catch (error) {
          assert.ok([0x2000, 0x2200, 0x2300].includes(error.code), `${cql}: ${error.message}`);
          assert.ok(error.message.length > 10, cql);
          return { state: "refused", cql, why: error.message };
        }
      }
      return { state: "yes", last };
    };
    const check = async (name, state, statements) => {
      const got = await outcome(statements);
      assert.equal(got.state, state, `${name}: ${got.cql ?? statements}: ${got.why ?? ""}`);
    };

    for (const heading of Object.keys(examples)) {
      t.it(`${heading}: every row has an example, which does as the row says`, async () => {
        await begin();
        const documented = rows(heading);
        assert.deepEqual([...documented.keys()].sort(), Object.keys(examples[heading]).sort());
        for (const [name, example] of Object.entries(examples[heading])) {
          const n = `n${++names}`;
          await check(name, documented.get(name), typeof example === "function" ? example({ n, ks }) : example);
        }
      });
    }

    t.it("Functions: every one is called", async () => {
      await begin();
      const documented = rows("Functions");
      assert.deepEqual([...documented.keys()].sort(), [...new Set([...inCode.Functions(), "blobAsType", "typeAsBlob"])].sort());
      for (const [name, state] of documented) {
        if (calls[name]) await check(name, state, `SELECT ${calls[name]} FROM t`);
      }
      await check("fromJson", documented.get("fromJson"), "INSERT INTO t (p, a, b, v) VALUES (5, 1, 1, fromJson('3'))");
      assert.deepEqual([...documented.keys()].filter((name) => !calls[name]), ["fromJson", "blobAsType", "typeAsBlob"]);
      for (const { lower, capital } of blobTypes()) {
        const type = lower === "varchar" ? "text" : lower;
        const value = type === "counter" ? "(bigint) 1" : `(${type}) ${literals[type]}`;
        await check(lower, "yes", `SELECT blobAs${capital}(${lower}AsBlob(${value})) FROM t`);
      }
    });

    t.it("Types: every one is a column", async () => {
      await begin();
      const documented = rows("Types");
      const native = inCode.Types();
      for (const name of native) assert.ok(documented.has(name), `${name} has no row`);
      assert.deepEqual([...documented.keys()].sort(), Object.keys(literals).sort());
      for (const [name, state] of documented) {
        const table = `n${++names}`;
        const write = name === "counter" ? `UPDATE ${table} SET v = v + 1 WHERE id = 1` : `INSERT INTO ${table} (id, v) VALUES (1, ${name === "empty" ? "null" : literals[name]})`;
        await check(name, state, [`CREATE TABLE ${table} (id int PRIMARY KEY, v ${name})`, write, `SELECT v FROM ${table}`]);
      }
    });

    t.it("Statements: every one of the parser has a row", () => {
      const documented = rows("Statements");
      assert.deepEqual([...new Set(inCode.Statements())].sort(), [...documented.keys()].sort());
    });

    t.it("Protocol: the server says what the rows say", async () => {
      const documented = rows("Protocol");
      assert.ok([...documented.values()].every((state) => state === "yes"));
      const supported = await new Promise((resolve, reject) => {
        const socket = connect(portOf(t.server), "127.0.0.1", () => socket.write(Buffer.from("040000000500000000", "hex")));
        let bytes = Buffer.alloc(0);
        socket.on("error", reject);
        socket.on("data", (part) => {
          bytes = Buffer.concat([bytes, part]);
          if (bytes.length >= 9 && bytes.length >= 9 + bytes.readUInt32BE(5)) resolve((socket.destroy(), bytes.subarray(9).toString("latin1")));
        });
      });
      for (const name of ["v3", "v4", "v5", "lz4", "snappy"]) assert.ok(documented.has(name) && supported.includes(name), name);
      await begin();
      const paged = await client.execute("SELECT * FROM t", [], { prepare: true, fetchSize: 1, traceQuery: true });
      assert.ok(paged.pageState && paged.info.traceId && paged.info.customPayload.RequestCharge);
      assert.equal((await client.execute("SELECT count(*) FROM t")).info.warnings.length, 1);
      assert.equal(cassandra.types.responseErrorCodes.overloaded, 0x1001);
    });
  },
  { ways: ["plain"] },
);
