// types.test.js — values of every type come back as they were, as cells, in collections and as keys; rows through the SQL API.

import { Rest } from "../sdk/server.js";
import { assert, cassandra, suite } from "./harness.js";

const { types } = cassandra;

// type, values in Cassandra's order
const values = {
  ascii: ["a", "b"],
  text: ["", "A", "a", "é"],
  tinyint: [-128, 0, 127],
  smallint: [-32768, 0, 32767],
  int: [-2147483648, -1, 0, 7],
  bigint: [types.Long.MIN_VALUE, types.Long.fromNumber(0), types.Long.MAX_VALUE],
  varint: [types.Integer.fromString("-123456789012345678901234567890"), types.Integer.fromInt(0), types.Integer.fromString("98765432109876543210")],
  decimal: [types.BigDecimal.fromString("-1.5"), types.BigDecimal.fromString("0.001"), types.BigDecimal.fromString("123456.789")],
  float: [-1.5, 0.5, 3.25],
  double: [-1e300, 0.1, 1e300],
  boolean: [false, true],
  blob: [Buffer.from("00", "hex"), Buffer.from("0001", "hex"), Buffer.from("ff", "hex")],
  uuid: [types.Uuid.fromString("00000000-0000-4000-8000-000000000001"), types.Uuid.fromString("ffffffff-0000-4000-8000-000000000001")],
  timeuuid: [types.TimeUuid.fromDate(new Date(0)), types.TimeUuid.fromDate(new Date(1e12)), types.TimeUuid.fromDate(new Date(2e12))],
  timestamp: [new Date(-1000), new Date(0), new Date(1700000000123)],
  date: [types.LocalDate.fromString("1969-12-31"), types.LocalDate.fromString("2024-02-29")],
  time: [types.LocalTime.fromString("00:00:00.000000001"), types.LocalTime.fromString("12:34:56.789")],
  inet: [types.InetAddress.fromString("1.2.3.4"), types.InetAddress.fromString("127.0.0.1")],
};

const shown = (value) => (value === null || value === undefined ? value : Buffer.isBuffer(value) ? value.toString("hex") : value instanceof Date ? value.getTime() : value.toString());

suite("types", (t) => {
  for (const [type, list] of Object.entries(values)) {
    t.it(`${type}: as a cell, in collections, as a partition key, in order as a clustering column`, async () => {
      const cells = await t.table(`(id int PRIMARY KEY, v ${type}, l list<${type}>, m map<text, frozen<set<${type}>>>, u frozen<tuple<${type}, int>>)`);
      for (const [id, v] of list.entries())
        await t.run(`INSERT INTO ${cells} (id, v, l, m, u) VALUES (?, ?, ?, ?, ?)`, [id, v, [v, v], { k: [v] }, new types.Tuple(v, 1)]);
      for (const [id, v] of list.entries()) {
        const [row] = await t.rows(`SELECT v, l, m, u FROM ${cells} WHERE id = ?`, [id]);
        assert.equal(shown(row.v), shown(v));
        assert.deepEqual(row.l.map(shown), [v, v].map(shown));
        assert.deepEqual(row.m.k.map(shown), [shown(v)]);
        assert.equal(shown(row.u.get(0)), shown(v));
      }
      const keys = await t.table(`(k ${type}, c ${type}, n int, PRIMARY KEY (k, c))`);
      const key = list[list.length - 1];
      for (const n of [...list.keys()].reverse()) await t.run(`INSERT INTO ${keys} (k, c, n) VALUES (?, ?, ?)`, [key, list[n], n]);
      const rows = await t.rows(`SELECT c, n FROM ${keys} WHERE k = ?`, [key]);
      assert.deepEqual(rows.map((row) => row.n), [...list.keys()], "clustering order");
      assert.deepEqual(rows.map((row) => shown(row.c)), list.map(shown));
      assert.deepEqual((await t.rows(`SELECT n FROM ${keys} WHERE k = ? AND c = ?`, [key, list[0]])).map((row) => row.n), [0]);
      assert.deepEqual((await t.rows(`SELECT n FROM ${keys} WHERE k = ? AND c > ? ORDER BY c DESC`, [key, list[0]])).map((row) => row.n), [...list.keys()].slice(1).reverse());
    });
  }

  t.it("as keys keep their order and place when a range is split", async () => {
    const table = await t.table("(p text, c int, PRIMARY KEY (p, c))");
    const [database, container] = table.split(".");
    const rest = new Rest({ server: t.server, version: "2020-07-15" });
    const path = `/dbs/${database}/colls/${container}`;
    assert.deepEqual((await rest.get(path)).json.partitionKey.paths, ['/"p"']);
    const ranges = (await rest.get(`${path}/pkranges`)).json.PartitionKeyRanges;
    for (let n = 0; n < 40; n++) await t.run(`INSERT INTO ${table} (p, c) VALUES (?, 1)`, [`p${n}`]);
    const split = await rest.post("/_tesela/split", { database, container, range: ranges[0].id, parts: 3 }, { sign: false });
    assert.ok(split.status < 300, JSON.stringify(split.json));
    const seen = new Set();
    for await (const row of t.client.stream(`SELECT p, token(p) AS t FROM ${table}`, [], { fetchSize: 7, autoPage: true })) seen.add(row.p);
    assert.equal(seen.size, 40, "a scan after a split finds every partition");
  });
});
