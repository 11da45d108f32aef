import { odata } from "@azure/data-tables";
import { all, assert, fails, refused, suite } from "./harness.js";

const when = (n) => new Date(Date.UTC(2024, 0, 1 + n));
const guid = (n) => ({ type: "Guid", value: `00000000-0000-0000-0000-${String(n).padStart(12, "0")}` });

// 3 partitions of 8 entities each; properties of every type, some of them missing.
function sample() {
  const list = [];
  for (const p of ["b", "a", "c"]) {
    for (let i = 0; i < 8; i++) {
      const entity = { partitionKey: p, rowKey: `r${i}`, n: i, half: i + 0.5, text: `t${i % 4}`, even: i % 2 === 0, when: when(i), guid: guid(i), big: BigInt(i) * 10n ** 17n };
      entity.bytes = Buffer.from([i, 255]);
      if (i < 3) entity.rare = p;
      list.push(entity);
    }
  }
  return list;
}

const ordered = (list) => [...list].sort((a, b) => (a.partitionKey + a.rowKey < b.partitionKey + b.rowKey ? -1 : 1));
const keys = (list) => list.map((e) => `${e.partitionKey}${e.rowKey}`);

function define(t) {
  let client;
  const entities = sample();
  const ready = async () => {
    if (client) return;
    client = await t.table();
    for (const entity of entities) await client.createEntity(entity);
  };
  const find = async (filter, options = {}) => all(client.listEntities({ queryOptions: { filter, ...options } }));

  t.it("return all entities in the order of their keys", async () => {
    await ready();
    assert.deepEqual(keys(await find()), keys(ordered(entities)));
  });

  const cases = [
    ["PartitionKey eq 'a'", (e) => e.partitionKey === "a"],
    ["PartitionKey eq 'a' and RowKey ge 'r2' and RowKey lt 'r5'", (e) => e.partitionKey === "a" && e.rowKey >= "r2" && e.rowKey < "r5"],
    ["PartitionKey eq 'a' and RowKey gt 'r2' and RowKey le 'r5'", (e) => e.partitionKey === "a" && e.rowKey > "r2" && e.rowKey <= "r5"],
    ["PartitionKey eq 'a' and RowKey eq 'r2'", (e) => e.partitionKey === "a" && e.rowKey === "r2"],
    ["PartitionKey eq 'a' and PartitionKey eq 'b'", () => false],
    ["PartitionKey ge 'a' and PartitionKey lt 'c' and RowKey eq 'r1'", (e) => e.partitionKey < "c" && e.rowKey === "r1"],
    ["PartitionKey gt 'a'", (e) => e.partitionKey > "a"],
    ["(PartitionKey eq 'a' and RowKey eq 'r1') or (PartitionKey eq 'b' and RowKey eq 'r2')", (e) => ["ar1", "br2"].includes(e.partitionKey + e.rowKey)],
    ["RowKey eq 'r3'", (e) => e.rowKey === "r3"],
    ["n eq 3", (e) => e.n === 3],
    ["3 eq n", (e) => e.n === 3],
    ["3 lt n", (e) => e.n > 3],
    ["n ne 3", (e) => e.n !== 3],
    ["n gt 2 and n le 5", (e) => e.n > 2 && e.n <= 5],
    ["n ge 2.5", (e) => e.n >= 2.5],
    ["n eq 3L", (e) => e.n === 3],
    ["half eq 3.5", (e) => e.half === 3.5],
    ["half lt 3", (e) => e.half < 3],
    ["half gt -1e3 and half lt 15e-1", (e) => e.half < 1.5],
    ["text eq 't1'", (e) => e.text === "t1"],
    ["text ge 't1' and text lt 't3'", (e) => e.text >= "t1" && e.text < "t3"],
    ["text eq 't1' or n eq 7", (e) => e.text === "t1" || e.n === 7],
    ["not (text eq 't1')", (e) => e.text !== "t1"],
    ["not even", (e) => !e.even],
    ["even", (e) => e.even],
    ["even eq true and n lt 3", (e) => e.even && e.n < 3],
    ["even eq false", (e) => !e.even],
    [odata`when ge ${when(4)}`, (e) => e.when >= when(4)],
    [odata`when gt ${when(4)} and when lt ${when(6)}`, (e) => e.n === 5],
    ["when eq datetime'2024-01-03T00:00:00Z'", (e) => e.n === 2],
    ["when gt datetime'2024-01-03T00:00:00.0000001Z'", (e) => e.n > 2],
    [`guid eq guid'${guid(5).value}'`, (e) => e.n === 5],
    [`guid ge guid'${guid(6).value}'`, (e) => e.n >= 6],
    ["bytes eq X'03ff'", (e) => e.n === 3],
    ["bytes gt binary'05ff'", (e) => e.n > 5],
    ["big ge 500000000000000000L", (e) => e.n >= 5],
    ["rare eq 'a'", (e) => e.rare === "a"],
    ["rare ne 'a'", (e) => e.rare !== undefined && e.rare !== "a"],
    ["not (rare eq 'a')", (e) => e.rare !== "a"],
    ["n eq '3'", () => false],
    ["n ne 'x'", () => true],
    ["nosuch eq 5", () => false],
    ["((n eq 1 or n eq 2) and (text eq 't1' or text eq 't2')) and PartitionKey ne 'b'", (e) => [1, 2].includes(e.n) && e.partitionKey !== "b"],
    ["PartitionKey eq 'b' and (n eq 1 or even)", (e) => e.partitionKey === "b" && (e.n === 1 || e.even)],
    ["Timestamp gt datetime'2020-01-01T00:00:00Z'", () => true],
    ["Timestamp lt datetime'2020-01-01T00:00:00Z'", () => false],
    ["  n   eq\t1 ", (e) => e.n === 1],
    ["(n eq 1)and(even eq false)", (e) => e.n === 1],
  ];
  t.it("filter as the grammar says", async () => {
    await ready();
    for (const [filter, passes] of cases) {
      assert.deepEqual(keys(await find(filter)), keys(ordered(entities.filter(passes))), filter);
    }
  });

  t.it("refuse what is no filter", async () => {
    await ready();
    for (const filter of ["n", "n eq", "eq 5", "n eq 5 6", "n = 5", "(n eq 5", "n eq 5)", "n eq 'x", "n eq m", "5 eq 5", "n eq 5 and", "n like 'x'", "n eq datetime'x'", "n eq guid'x'", "n eq X'abc'", "n eq foo'x'", "n eq 1.5L", "n eq 5x", "not", `${"(".repeat(200)}n eq 1${")".repeat(200)}`, "n eq 1e999"]) {
      const answer = await t.rest.get(`/${client.tableName}()?$filter=${encodeURIComponent(filter)}`);
      if (filter === "n") assert.equal(answer.status, 200, "a property alone is a filter");
      else refused(answer, 400, "InvalidInput", /^Syntax error at position \d+/);
    }
    refused(await t.rest.get(`/${client.tableName}()?$top=0`), 400, "InvalidQueryParameterValue");
    refused(await t.rest.get(`/${client.tableName}()?$top=x`), 400, "InvalidQueryParameterValue");
    refused(await t.rest.get(`/${client.tableName}()?$filter=%zz`), 400, "InvalidQueryParameterValue");
    await fails(all(t.client("nosuchtable").listEntities()), 404, "TableNotFound");
  });

  t.it("select properties", async () => {
    await ready();
    const found = await find("n eq 1", { select: ["n", "rare", "nosuch"] });
    assert.equal(found.length, 3);
    for (const e of found) assert.deepEqual(Object.keys(e).sort(), ["etag", "n", "rare"]);
  });

  t.it("come in pages, whose ends survive other writes", async () => {
    await ready();
    for (const [filter, passes] of [[undefined, () => true], ["PartitionKey eq 'b'", (e) => e.partitionKey === "b"], ["even", (e) => e.even], ["PartitionKey eq 'b' and not even", (e) => e.partitionKey === "b" && !e.even]]) {
      for (const maxPageSize of [1, 3, 5]) {
        const pages = [];
        for await (const page of client.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize })) {
          assert.ok(page.length <= maxPageSize);
          pages.push(...page);
          if (pages.length === 3) await client.upsertEntity({ partitionKey: "A", rowKey: "before all", n: -1 });
        }
        await client.deleteEntity("A", "before all").catch(() => undefined);
        assert.deepEqual(keys(pages.filter((e) => e.partitionKey !== "A")), keys(ordered(entities.filter(passes))), `${filter} by ${maxPageSize}`);
      }
    }
  });

  t.it("refuse continuations that are not theirs", async () => {
    await ready();
    const path = `/${client.tableName}()?$top=2`;
    const one = (await t.rest.get(`${path}&$filter=PartitionKey%20eq%20'a'`)).headers["x-ms-continuation-nextpartitionkey"];
    const other = (await t.rest.get(path)).headers["x-ms-continuation-nextpartitionkey"];
    assert.ok(one && other && one !== other);
    const from = (token, filter = "") => t.rest.get(`${path}&NextPartitionKey=${encodeURIComponent(token)}&NextRowKey=NA${filter}`);
    assert.equal((await from(other)).status, 200);
    for (const token of ["x", "r", "f", "r%", one, `${other}A`, other.slice(0, -4), `f${"A".repeat(400)}`]) refused(await from(token), 400, "InvalidInput");
    refused(await from(one, "&$filter=PartitionKey%20eq%20'b'"), 400, "InvalidInput");
    refused(await from(other, "&$filter=even"), 400, "InvalidInput");
  });

  t.it("cost what they return", async () => {
    const table = await t.table();
    for (let p = 0; p < 20; p++) await table.submitTransaction(Array.from({ length: 50 }, (_, i) => ["create", { partitionKey: `p${p}`, rowKey: `r${String(i).padStart(3, "0")}`, n: p * 50 + i, same: "x" }]));
    const charge = async (filter) => {
      const answer = await t.rest.get(`/${table.tableName}()?$filter=${encodeURIComponent(filter)}`);
      return [answer.json.value.length, Number(answer.headers["x-ms-request-charge"])];
    };
    const [everything, whole] = await charge("same eq 'x'");
    assert.equal(everything, 1000);
    assert.ok(whole > 15);
    for (const [filter, n] of [["PartitionKey eq 'p3' and RowKey ge 'r010' and RowKey lt 'r012'", 2], ["n eq 77", 1], ["n ge 100 and n lt 103", 3], ["PartitionKey ge 'p3' and PartitionKey lt 'p30' and RowKey eq 'r001'", 1]]) {
      const [count, ru] = await charge(filter);
      assert.equal(count, n, filter);
      assert.ok(ru < whole / 2, `${filter} costs ${ru}, all costs ${whole}`);
    }
  });

  // A partition that has grown has an index of its own. The charge tells how many entities were loaded: 2.25 and 0.01491 for each.
  t.it("find the entities of one partition by other properties", async () => {
    const table = await t.table();
    const list = [];
    for (const p of ["p", "q"]) {
      for (let i = 0; i < 2000; i++) list.push({ partitionKey: p, rowKey: `r${String((i * 787) % 2000).padStart(4, "0")}`, n: i, tens: i % 10, rare: i % 400, text: `t${i % 50}` });
    }
    for (let i = 0; i < list.length; i += 100) await table.submitTransaction(list.slice(i, i + 100).map((e) => ["create", e]));
    const read = async (filter, top) => {
      const rows = [];
      let ru = 0, next = "";
      do {
        const answer = await t.rest.get(`/${table.tableName}()?$filter=${encodeURIComponent(filter)}${top ? `&$top=${top}` : ""}${next}`);
        assert.equal(answer.status, 200, answer.text);
        rows.push(...answer.json.value.map((e) => e.RowKey));
        ru += Number(answer.headers["x-ms-request-charge"]);
        const from = answer.headers["x-ms-continuation-nextpartitionkey"];
        next = from ? `&NextPartitionKey=${encodeURIComponent(from)}&NextRowKey=NA` : "";
      } while (next);
      return [rows, ru];
    };
    const cases = [
      ["n eq 77", (e) => e.n === 77],
      ["rare eq 5", (e) => e.rare === 5],
      ["rare ge 398 and tens eq 9", (e) => e.rare >= 398 && e.tens === 9],
      ["n lt 20 and RowKey lt 'r1000'", (e) => e.n < 20 && e.rowKey < "r1000"],
      ["n gt 1990 and text ne 't7'", (e) => e.n > 1990 && e.text !== "t7"],
      ["(n eq 3 or n eq 700 or rare eq 8)", (e) => e.n === 3 || e.n === 700 || e.rare === 8],
      ["tens eq 3", (e) => e.tens === 3],
      ["tens ge 0", () => true],
      ["nosuch eq 5", () => false],
    ];
    for (const [condition, passes] of cases) {
      const expected = list.filter((e) => e.partitionKey === "p" && passes(e)).map((e) => e.rowKey).sort();
      const [rows, ru] = await read(`PartitionKey eq 'p' and ${condition}`);
      assert.deepEqual(rows, expected, condition);
      const loaded = (ru - 2.25 * Math.max(1, Math.ceil(rows.length / 1000))) / 0.01491;
      assert.ok(loaded < rows.length + 12, `${condition}: ${ru} RU, ${Math.round(loaded)} loaded for ${rows.length}`);
      assert.deepEqual((await read(`PartitionKey eq 'p' and ${condition}`, 7))[0], expected, `${condition} in pages of 7`);
    }
    const [, whole] = await read("PartitionKey eq 'p'");
    assert.ok(whole > 30 && whole < 40, `2000 entities in two pages cost ${whole}`);
  });
}

suite("queries", define);
suite("queries across ranges", define, { flags: ["--partition-max-throughput", "100"], schemes: ["http"] });
