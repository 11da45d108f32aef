import { TableTransaction } from "@azure/data-tables";
import { all, assert, refused, suite } from "./harness.js";

// A multipart body of these requests: [verb, path, body, headers].
function multipart(base, requests, { end = "\r\n", changeset = true } = {}) {
  const parts = requests.map(([verb, path, body, headers = {}]) =>
    ["content-type: application/http", "content-transfer-encoding: binary", "", `${verb} ${base}${path} HTTP/1.1`, "Accept: application/json;odata=minimalmetadata", ...Object.entries(headers).map(([n, v]) => `${n}: ${v}`), "", body === undefined ? "" : JSON.stringify(body)].join(end),
  );
  if (!changeset) return ["--batch_x", parts[0], "--batch_x--", ""].join(end);
  return ["--batch_x", "Content-Type: multipart/mixed; boundary=changeset_y", "", ...parts.flatMap((part) => ["--changeset_y", part]), "--changeset_y--", "--batch_x--", ""].join(end);
}
const type = { "content-type": "multipart/mixed; boundary=batch_x" };

suite("batches", (t) => {
  t.it("write all of their operations", async () => {
    const client = await t.table();
    await client.createEntity({ partitionKey: "p", rowKey: "old", a: 1, b: 1 });
    await client.createEntity({ partitionKey: "p", rowKey: "gone" });
    const transaction = new TableTransaction();
    transaction.createEntity({ partitionKey: "p", rowKey: "new'1", n: 1 });
    transaction.updateEntity({ partitionKey: "p", rowKey: "old", b: 2 }, "Merge");
    transaction.upsertEntity({ partitionKey: "p", rowKey: "put", n: 3 }, "Replace");
    transaction.upsertEntity({ partitionKey: "p", rowKey: "merged", n: 4 }, "Merge");
    transaction.deleteEntity("p", "gone");
    const result = await client.submitTransaction(transaction.actions);
    assert.equal(result.status, 202);
    assert.deepEqual(result.subResponses.map((r) => r.status), [204, 204, 204, 204, 204]);
    assert.ok(result.subResponses.slice(0, 4).every((r) => r.etag?.startsWith("W/")), JSON.stringify(result));
    const found = Object.fromEntries((await all(client.listEntities())).map((e) => [e.rowKey, e]));
    assert.deepEqual(Object.keys(found).sort(), ["merged", "new'1", "old", "put"]);
    assert.deepEqual([found.old.a, found.old.b], [1, 2]);
    assert.equal(result.getResponseForEntity("new'1")?.etag ?? found["new'1"].etag, found["new'1"].etag);
  });

  t.it("also in host style, where merges are tunnelled through POST", async () => {
    const client = await t.table(t.hostBase);
    await client.submitTransaction([["create", { partitionKey: "p", rowKey: "1", a: 1 }], ["upsert", { partitionKey: "p", rowKey: "2", b: 1 }, "Merge"]]);
    assert.equal((await all(client.listEntities())).length, 2);
  });

  t.it("write nothing if one operation fails, and say which", async () => {
    const client = await t.table();
    await client.createEntity({ partitionKey: "p", rowKey: "there" });
    const failing = [
      [["create", { partitionKey: "p", rowKey: "there" }], 409, "EntityAlreadyExists"],
      [["update", { partitionKey: "p", rowKey: "absent" }, "Merge"], 404, "ResourceNotFound"],
      [["update", { partitionKey: "p", rowKey: "there" }, "Replace", { etag: `W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"` }], 412, "UpdateConditionNotSatisfied"],
      [["delete", { partitionKey: "p", rowKey: "absent" }], 404, "ResourceNotFound"],
      [["create", { partitionKey: "p", rowKey: "a#b" }], 400, "OutOfRangeInput"],
    ];
    for (const [action, status, code] of failing) {
      const error = await client.submitTransaction([["create", { partitionKey: "p", rowKey: "first" }], action]).then(() => assert.fail("it was written"), (e) => e);
      assert.equal(error.statusCode, status, error.message);
      assert.equal(error.code, code);
      assert.match(error.message, /^1:/);
      assert.deepEqual((await all(client.listEntities())).map((e) => e.rowKey), ["there"]);
    }
  });

  t.it("have 100 operations at most, of one partition, each of another entity", async () => {
    const client = await t.table();
    const many = (n, from = 0) => Array.from({ length: n }, (_, i) => ["create", { partitionKey: "p", rowKey: `r${i + from}` }]);
    assert.equal((await client.submitTransaction(many(100))).subResponses.length, 100);
    const send = (requests) => t.rest.post("/$batch", multipart(t.base, requests), { headers: type });
    const insert = (p, r) => ["POST", `/${client.tableName}`, { PartitionKey: p, RowKey: r }];
    refused(await send(Array.from({ length: 101 }, (_, i) => insert("q", `${i}`))), 400, "OutOfRangeInput");
    const spread = await send([insert("q", "1"), insert("s", "2")]);
    assert.equal(spread.status, 202);
    assert.match(spread.text, /HTTP\/1\.1 400[\s\S]*CommandsInBatchActOnDifferentPartitions[\s\S]*"1:/);
    const twice = await send([insert("q", "1"), insert("q", "2"), insert("q", "1")]);
    assert.match(twice.text, /HTTP\/1\.1 400[\s\S]*InvalidDuplicateRow[\s\S]*"2:/);
    assert.equal((await all(client.listEntities())).length, 100);
    const large = Array.from({ length: 4 }, (_, i) => ["POST", `/${client.tableName}`, { PartitionKey: "big", RowKey: `${i}`, ...Object.fromEntries(Array.from({ length: 15 }, (__, k) => [`w${k}`, "y".repeat(32000)])) }]);
    assert.match((await send(large)).text, /HTTP\/1\.1 201/);
    assert.equal((await all(client.listEntities({ queryOptions: { filter: "PartitionKey eq 'big'" } }))).length, 4);
    const larger = large.concat(Array.from({ length: 5 }, (_, i) => ["POST", `/${client.tableName}`, { ...large[0][2], RowKey: `more${i}` }]));
    refused(await send(larger), 413, "RequestBodyTooLarge");
  });

  t.it("are read with either line end, and answered with content where it is wanted", async () => {
    const { tableName } = await t.table();
    for (const end of ["\r\n", "\n"]) {
      const requests = [["POST", `/${tableName}`, { PartitionKey: "p", RowKey: JSON.stringify(end).replaceAll("\\", "") }, { "Content-ID": "7" }]];
      const answer = await t.rest.post("/$batch", multipart(t.base, requests, { end }), { headers: type });
      assert.equal(answer.status, 202, answer.text);
      assert.match(answer.text, /HTTP\/1\.1 201 Created\r\nContent-ID: 7\r\n/);
      assert.match(answer.text, /\{"odata\.metadata":.*"PartitionKey":"p"/);
    }
    const alone = await t.rest.post("/$batch", multipart(t.base, [["GET", `/${tableName}(PartitionKey='p',RowKey='%22n%22')`]], { changeset: false }), { headers: type });
    assert.equal(alone.status, 202, alone.text);
    assert.match(alone.text, /^--batchresponse_[\s\S]*HTTP\/1\.1 200 OK[\s\S]*"RowKey":"\\"n\\""/);
  });

  t.it("are refused where they are malformed", async () => {
    const { tableName } = await t.table();
    const good = multipart(t.base, [["POST", `/${tableName}`, { PartitionKey: "p", RowKey: "r" }]]);
    const send = (body, contentType = type["content-type"]) => t.rest.post("/$batch", body, { headers: { "content-type": contentType } });
    for (const body of ["", "--batch_x--", "--batch_x\r\n\r\n--batch_x--", good.replace("--changeset_y--", ""), good.replace("--batch_x--", ""), good.replaceAll("changeset_y\r\n\r\n", "z\r\n\r\n"), good.replace("HTTP/1.1", ""), good.replace("Accept: ", "Accept ")]) {
      const answer = await send(body);
      assert.ok(answer.status === 400 || (answer.status === 202 && answer.text.includes("HTTP/1.1 4")), `${answer.status} ${answer.text} for ${body}`);
    }
    for (const contentType of ["application/json", "multipart/mixed", 'multipart/mixed; boundary=""', `multipart/mixed; boundary=${"x".repeat(71)}`]) refused(await send(good, contentType), 400, "InvalidInput");
    refused(await send(multipart(t.base, [["POST", `/${tableName}`, {}]], { changeset: false })), 400, "InvalidInput");
    assert.match((await send(multipart(t.base, [["GET", `/${tableName}()`]]))).text, /HTTP\/1\.1 405/);
    assert.equal((await all(t.client(tableName).listEntities())).length, 0);
  });
});
