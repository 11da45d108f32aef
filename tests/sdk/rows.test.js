// Batches as the .NET SDK sends them: HybridRow records, by REST and in direct mode.

import { assert, suite, refused, key, etagForm, withoutSystem } from "./harness.js";
import { Direct } from "./rntbd.js";
import { batch, operation, record, results, segment } from "./rows.js";
import { Rest, Server, emulatorKey } from "./server.js";

const flags = { ...key("a"), "x-ms-cosmos-is-batch-request": "True" };
const atomic = { ...flags, "x-ms-cosmos-batch-atomic": "True", "x-ms-cosmos-batch-ordered": "True" };
const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0" };
const create = (id, more = {}) => ({ operationType: "Create", resourceBody: { id, pk: "a", ...more } });

async function open(t) {
  const container = await t.container();
  const path = `${t.databasePath}/colls/${container.id}/docs`;
  const send = async (operations, headers = atomic) => {
    const answer = await t.rest.post(path, Buffer.isBuffer(operations) ? operations : batch(operations), { headers });
    return { status: answer.status, headers: answer.headers, answer, results: answer.bytes[0] === 0x81 ? results(answer.bytes) : undefined };
  };
  return { container, path, send };
}

suite("rows", (t) => {
  t.it("does every kind of operation, and answers in rows", async () => {
    const { container, send } = await open(t);
    await container.items.create({ id: "old", pk: "a", v: 1 });
    await container.items.create({ id: "gone", pk: "a" });
    const { status, results: found } = await send([
      create("new", { v: 1, text: "ñ".repeat(200) }),
      { operationType: "Upsert", resourceBody: { id: "up", pk: "a" }, indexingDirective: "Exclude" },
      { operationType: "Read", id: "old" },
      { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", v: 2 } },
      { operationType: "Patch", id: "new", resourceBody: { operations: [{ op: "incr", path: "/v", value: 5 }] } },
      { operationType: "Delete", id: "gone" },
      { operationType: "Read", id: "new", minimalReturnPreference: false },
    ]);
    assert.equal(status, 200);
    assert.deepEqual(found.map((one) => one.statusCode), [201, 201, 200, 200, 200, 204, 200]);
    assert.deepEqual(withoutSystem(found[6].resourceBody), { id: "new", pk: "a", v: 6, text: "ñ".repeat(200) });
    assert.equal(found[3].resourceBody.v, 2);
    for (const [i, one] of found.entries()) {
      assert.ok(one.requestCharge > 0, `operation ${i} has a charge`);
      assert.equal(one.subStatusCode, 0);
      if (i !== 5) assert.match(one.eTag, etagForm);
      if (i !== 5) assert.equal(one.eTag, one.resourceBody._etag);
    }
    assert.equal(found[5].resourceBody, undefined);
    assert.equal((await container.item("new", "a").read()).resource.v, 6);
  });

  t.it("writes all or nothing: the failed one's code and sentence, 424 for the others", async () => {
    const { container, send } = await open(t);
    const { resource } = await container.items.create({ id: "there", pk: "a", v: 1 });
    const { status, results: found } = await send([create("one"), create("there")]);
    assert.equal(status, 207);
    assert.deepEqual(found.map((one) => one.statusCode), [424, 409]);
    assert.equal(found[1].resourceBody.code, "Conflict");
    assert.match(found[1].resourceBody.message, /already exists/);
    assert.equal((await container.item("one", "a").read()).statusCode, 404);
    const stale = await send([{ operationType: "Replace", id: "there", ifMatch: '"other"', resourceBody: { id: "there", pk: "a" } }]);
    assert.deepEqual(stale.results.map((one) => one.statusCode), [412]);
    const same = await send([{ operationType: "Read", id: "there", ifNoneMatch: resource._etag }]);
    assert.deepEqual(same.results.map((one) => one.statusCode), [304]);
    const fresh = await send([{ operationType: "Replace", id: "there", ifMatch: resource._etag, resourceBody: { id: "there", pk: "a", v: 2 } }]);
    assert.deepEqual(fresh.results.map((one) => one.statusCode), [200]);
  });

  t.it("leaves out bodies that the operation or the request does not want", async () => {
    const { container, path, send } = await open(t);
    const { results: found } = await send([{ ...create("1"), minimalReturnPreference: true }, create("2"), { operationType: "Read", id: "1", minimalReturnPreference: true }]);
    assert.deepEqual(found.map((one) => "resourceBody" in one), [false, true, true]);
    assert.match(found[0].eTag, etagForm);
    const all = await send([create("3"), create("4")], { ...atomic, Prefer: "return=minimal" });
    assert.deepEqual(all.results.map((one) => "resourceBody" in one), [false, false]);
    const json = await t.rest.post(path, [{ ...create("5"), minimalReturnPreference: true }, create("6")], { headers: atomic });
    assert.deepEqual(json.json.map((one) => "resourceBody" in one), [false, true], "the same in JSON");
    assert.equal((await container.item("5", "a").read()).statusCode, 200);
  });

  t.it("runs bulk, each operation with its own key", async () => {
    const { container, send } = await open(t);
    const one = (id, pk) => ({ operationType: "Create", partitionKey: JSON.stringify([pk]), resourceBody: { id, pk } });
    const { results: found } = await send([one("1", "x"), one("2", "y"), one("1", "x"), { operationType: "Read", id: "none", partitionKey: '["z"]' }], bulk);
    assert.deepEqual(found.map((r) => r.statusCode), [201, 201, 409, 404]);
    assert.equal((await container.item("2", "y").read()).resource.pk, "y");
    const none = await send([], bulk);
    assert.deepEqual([none.status, none.results], [200, []]);
  });

  t.it("takes large batches, unknown fields and comments, and items in binary JSON", async () => {
    const { container, send } = await open(t);
    const large = await send(Array.from({ length: 100 }, (_, i) => create(`${i}`, { text: "x".repeat(10_000) })));
    assert.equal(large.status, 200);
    assert.equal(large.results.length, 100);
    assert.equal(large.results[99].resourceBody.text.length, 10_000);
    const more = Buffer.concat([Buffer.from([20, 13 + 4]), Buffer.from("some"), Buffer.from([3]), Buffer.from("any"), Buffer.from([7, 11, 1, 0, 0, 0])]);
    const comment = Buffer.concat([segment.subarray(0, 6), Buffer.from([14, 0, 0, 0, 1, 2, 3, 4])]);
    const unknown = await send(Buffer.concat([comment, record(operation({ ...create("more"), more }))]));
    assert.deepEqual(unknown.results.map((one) => one.statusCode), [201]);
    const binary = Buffer.from([0x80, 0xea, 10, 0x82, 0x69, 0x64, 0x81, 0x62, 0x82, 0x70, 0x6b, 0x81, 0x61]); // {"id":"b","pk":"a"}
    const items = await send([{ operationType: "Create", resourceBody: binary }]);
    assert.deepEqual(items.results.map((one) => one.statusCode), [201]);
    assert.equal((await container.item("b", "a").read()).statusCode, 200);
  });

  t.it("refuses rows that are not well formed, and writes nothing", async () => {
    const { path, send } = await open(t);
    const good = operation(create("x"));
    const flipped = batch([create("x")]);
    flipped[flipped.length - 1] ^= 1;
    const bad = {
      "cut off": batch([create("x")]).subarray(0, -1),
      "a wrong checksum": flipped,
      "no segment": record(good),
      "a segment alone, atomic": segment,
      "another schema": Buffer.concat([segment, record(Buffer.concat([good.subarray(0, 1), Buffer.from([1, 0, 0, 0]), good.subarray(5)]))]),
      "a length beyond the row": Buffer.concat([segment, record(Buffer.concat([good.subarray(0, 14), Buffer.from([0xff, 0xff, 0xff, 0x7f])]))]),
      "an endless length": Buffer.concat([segment, record(Buffer.concat([good.subarray(0, 14), Buffer.alloc(12, 0xff)]))]),
      "a scope": Buffer.concat([segment, record(operation({ ...create("x"), more: Buffer.from([30, 8]) }))]),
      "an item that is no JSON": batch([{ operationType: "Create", resourceBody: '{"id":"x","pk":"a"}},{' }]),
      "a key that is no UTF-8": batch([{ ...create("x"), partitionKey: Buffer.from([0x5b, 0xff, 0x5d]) }]),
      "101 operations": batch(Array.from({ length: 101 }, (_, i) => create(`${i}`))),
    };
    for (const [what, body] of Object.entries(bad)) refused((await send(body)).answer, 400, { what });
    const strange = await send([{ operationType: 9, id: "x" }]);
    assert.deepEqual([strange.status, strange.results[0].statusCode], [207, 400]);
    refused(await t.rest.post(path, batch([create("x")]), { headers: key("a") }), 400); // not a batch
    assert.equal((await t.rest.get(path)).json._count, 0);
  });

  t.it("gives throttled operations of bulk their own time to wait", async () => {
    const server = await Server.start({ flags: ["--throttling", "on"] });
    const rest = new Rest({ server, scheme: "http", key: emulatorKey });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } }, { headers: { "x-ms-offer-throughput": "400" } });
    const operations = Array.from({ length: 100 }, (_, i) => ({ operationType: "Create", partitionKey: `["${i}"]`, resourceBody: { id: `${i}`, pk: `${i}` } }));
    const found = results((await rest.post("/dbs/d/colls/c/docs", batch(operations), { headers: bulk })).bytes);
    const throttled = found.filter((one) => one.statusCode === 429);
    assert.ok(throttled.length > 0 && throttled.length < 100, `${throttled.length} of 100 throttled`);
    for (const one of throttled) assert.ok(one.retryAfterMilliseconds > 0 && one.subStatusCode === 3200);
    rest.close();
    await server.stop();
  });

  t.it("does the same in direct mode", async () => {
    const { container, send } = await open(t);
    await send([create("there")]);
    const direct = await Direct.open({ server: t.server });
    const at = { database: t.database.id, container: container.id };
    const good = await direct.send("Document", "Batch", { ...at, body: batch([create("1"), { operationType: "Read", id: "there" }]), partitionKey: ["a"], batchAtomic: 1 });
    assert.equal(good.status, 200, good.text);
    assert.deepEqual(results(good.payload).map((one) => one.statusCode), [201, 200]);
    const bad = await direct.send("Document", "Batch", { ...at, body: batch([create("2"), create("there")]), partitionKey: ["a"], batchAtomic: 1 });
    assert.equal(bad.status, 207);
    assert.deepEqual(results(bad.payload).map((one) => one.statusCode), [424, 409]);
    direct.close();
  });
});
