// Direct mode: addresses by REST, then frames of rntbd, by the small client of rntbd.js. The SDKs that speak it are not Node.js's.

import { after, before, describe, it } from "node:test";
import { assert, eventually, Rest, Server, sign, suite } from "./harness.js";
import { contextFrame, Direct, frame, operationTypes, resourceTypes, token, Wire } from "./rntbd.js";

const directPort = (server) => Number(server.ready.direct.replace(/.*:/, ""));

// A container, and a connection to where it is.
async function open(t, body, options) {
  const container = await t.container(body, options);
  const { resource } = await container.read();
  const direct = await Direct.open({ server: t.server, ca: t.scheme === "https" ? t.certificate : undefined });
  const at = { database: t.database.id, container: container.id };
  const create = (id, pk, more = {}) => direct.send("Document", "Create", { ...at, partitionKey: [pk], body: { id, pk, ...more } });
  return { container, direct, at, create, rid: resource._rid };
}

// What every answer has, errors too.
function checkAnswer(answer) {
  const { lsn, quorumAckedLsn, globalCommittedLsn, localLsn, quorumAckedLocalLsn } = answer.tokens;
  assert.ok(lsn > 0, `lsn ${lsn}`);
  assert.deepEqual([quorumAckedLsn, globalCommittedLsn, localLsn, quorumAckedLocalLsn], [lsn, lsn, lsn, lsn]);
  assert.equal(answer.tokens.replicaSetSize, 4);
  assert.equal(answer.tokens.writeQuorum, 3);
  assert.equal(answer.tokens.readRegions, 0);
  assert.ok(answer.tokens.charge >= 0, "a charge");
  if (answer.tokens.session) assert.match(answer.tokens.session, /^-1#\d+$/);
  return answer;
}

function checkRefused(answer, status, substatus = 0) {
  checkAnswer(answer);
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.substatus, substatus, answer.text);
  assert.deepEqual(Object.keys(answer.json), ["code", "message"]);
}

suite("direct", (t) => {
  t.it("begins with a context", async () => {
    const wire = await Wire.open({ port: directPort(t.server), ca: t.scheme === "https" ? t.certificate : undefined });
    const answer = await wire.negotiate();
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys(answer.tokens), ["protocolVersion", "clientVersion", "serverAgent", "serverVersion", "idleSeconds", "unauthenticatedSeconds"]);
    assert.equal(answer.tokens.protocolVersion, 1);
    assert.equal(answer.tokens.clientVersion, "2020-07-15");
    assert.equal(answer.payload.length, 0);
    wire.close();
  });

  t.it("creates, reads, replaces, upserts, patches and deletes", async () => {
    const { direct, at, create, rid } = await open(t);
    const made = checkAnswer(await create("x", "p", { n: 1 }));
    assert.equal(made.status, 201);
    assert.equal(made.json.n, 1);
    assert.equal(made.tokens.etag, made.json._etag);
    assert.equal(made.tokens.ownerFullName, `dbs/${at.database}/colls/${at.container}`);
    assert.equal(made.tokens.ownerId, rid);
    assert.equal(made.tokens.rangeId, "0");
    assert.equal(made.tokens.session, `-1#${made.tokens.lsn}`);
    assert.ok(made.tokens.charge > 0);
    const one = { ...at, document: "x", partitionKey: ["p"] };
    const read = checkAnswer(await direct.send("Document", "Read", one));
    assert.equal(read.status, 200);
    assert.deepEqual(read.json, made.json);
    assert.equal(read.tokens.itemLsn, made.tokens.lsn);
    assert.equal(read.tokens.itemLocalLsn, made.tokens.lsn);
    const same = checkAnswer(await direct.send("Document", "Read", { ...one, match: made.json._etag }));
    assert.equal(same.status, 304);
    assert.equal(same.tokens.payloadPresent, 0);
    const replaced = checkAnswer(await direct.send("Document", "Replace", { ...one, match: made.json._etag, body: { id: "x", pk: "p", n: 2 } }));
    assert.equal(replaced.status, 200);
    assert.equal(replaced.json.n, 2);
    checkRefused(await direct.send("Document", "Replace", { ...one, match: made.json._etag, body: { id: "x", pk: "p", n: 3 } }), 412);
    const upserted = checkAnswer(await direct.send("Document", "Upsert", { ...at, partitionKey: ["p"], preference: 1, body: { id: "x", pk: "p", n: 4 } }));
    assert.equal(upserted.status, 200);
    assert.equal(upserted.tokens.payloadPresent, 0);
    const patched = checkAnswer(await direct.send("Document", "Patch", { ...one, body: { operations: [{ op: "incr", path: "/n", value: 5 }] } }));
    assert.equal(patched.json.n, 9);
    const deleted = checkAnswer(await direct.send("Document", "Delete", one));
    assert.equal(deleted.status, 204);
    assert.equal(deleted.payload.length, 0);
    checkRefused(await direct.send("Document", "Read", one), 404);
    direct.close();
  });

  t.it("echoes activities and request ids, in whatever order", async () => {
    const { direct, at, create } = await open(t);
    await create("x", "p");
    const { id, bytes } = direct.make("Document", "Read", { ...at, document: "none", partitionKey: ["p"], id: 0xfffffff0 });
    const answered = new Promise((done) => (direct.wire.received = done));
    direct.wire.write(bytes);
    const answer = await answered;
    assert.equal(answer.tokens.id, id);
    assert.ok(answer.json.message.includes(answer.activity), "the message has the activity of the frame");
    direct.close();
  });

  t.it("takes names of any kind", async () => {
    const { direct, at, create } = await open(t);
    for (const id of ["a b", "ü", "100%", "a+b", "a&b=c", "😀"]) {
      const made = await create(id, `key ${id}`);
      assert.equal(made.status, 201, made.text);
      const read = await direct.send("Document", "Read", { ...at, document: id, partitionKey: [`key ${id}`] });
      assert.equal(read.status, 200, read.text);
      assert.equal(read.json.id, id);
    }
    direct.close();
  });

  t.it("addresses by resource id", async () => {
    const { direct, create, rid } = await open(t);
    const made = (await create("x", "p")).json;
    const read = checkAnswer(await direct.send("Document", "Read", { byRid: made._rid, partitionKey: ["p"] }));
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(read.json, made);
    const feed = checkAnswer(await direct.send("Document", "ReadFeed", { byRid: rid, rangeId: "0" }));
    assert.deepEqual(feed.json.Documents, [made]);
    const added = checkAnswer(await direct.send("Document", "Create", { byRid: rid, partitionKey: ["q"], body: { id: "y", pk: "q" } }));
    assert.equal(added.status, 201, added.text);
    checkRefused(await direct.send("Document", "Read", { byRid: made._rid, partitionKey: ["other"] }), 404);
    direct.close();
  });

  t.it("queries and reads feeds in pages", async () => {
    const { direct, at, create } = await open(t);
    for (let i = 0; i < 25; i++) assert.equal((await create(`${i}`, `p${i % 3}`, { n: i })).status, 201);
    const query = async (text, options) => {
      const found = [];
      let continuation;
      let pages = 0;
      do {
        const page = checkAnswer(await direct.send("Document", "Query", { ...at, pageSize: 7, continuation, body: { query: text, parameters: [] }, ...options }));
        assert.equal(page.status, 200, page.text);
        assert.equal(page.tokens.itemCount, page.json._count);
        found.push(...page.json.Documents);
        continuation = page.tokens.continuation;
        assert.ok(!continuation?.includes(";"), "SDKs cut a continuation off at a semicolon");
        pages++;
      } while (continuation);
      return { found, pages };
    };
    const all = await query("SELECT * FROM c", { rangeId: "0" });
    assert.equal(all.found.length, 25);
    assert.equal(all.pages, 4);
    const some = await query("SELECT VALUE c.n FROM c WHERE c.n >= 3 ORDER BY c.n DESC", { partitionKey: ["p0"] });
    assert.deepEqual(some.found, [24, 21, 18, 15, 12, 9, 6, 3]);
    const bad = await direct.send("Document", "Query", { ...at, rangeId: "0", body: { query: "SELEC" } });
    checkRefused(bad, 400);
    const metrics = await direct.send("Document", "Query", { ...at, rangeId: "0", queryMetrics: 1, body: { query: "SELECT * FROM c" } });
    assert.match(metrics.tokens.queryMetrics, /retrievedDocumentCount=25/);
    const feed = await direct.send("Document", "ReadFeed", { ...at, rangeId: "0", pageSize: 0xffffffff });
    assert.equal(feed.json._count, 25);
    direct.close();
  });

  t.it("reads a part of the hash space", async () => {
    const { direct, at, create } = await open(t, { partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    for (let i = 0; i < 30; i++) await create(`${i}`, `p${i}`);
    const middle = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
    const count = async (bounds) => (await direct.send("Document", "Query", { ...at, rangeId: "0", feedKey: 3, ...bounds, body: { query: "SELECT * FROM c" } })).json._count;
    const [low, high] = [await count({ endEpk: Buffer.from(middle) }), await count({ startEpk: Buffer.from(middle) })];
    assert.equal(low + high, 30);
    assert.ok(low > 0 && high > 0, `${low} and ${high}`);
    direct.close();
  });

  t.it("reads the change feed", async () => {
    const { direct, at, create } = await open(t);
    await create("1", "p");
    const changes = (match) => direct.send("Document", "ReadFeed", { ...at, rangeId: "0", aIm: "Incremental Feed", match });
    const first = checkAnswer(await changes());
    assert.deepEqual(first.json.Documents.map((d) => d.id), ["1"]);
    const none = checkAnswer(await changes(first.tokens.etag));
    assert.equal(none.status, 304);
    assert.equal(none.tokens.payloadPresent, 0);
    assert.equal(none.tokens.etag, first.tokens.etag);
    await create("2", "p");
    assert.deepEqual((await changes(none.tokens.etag)).json.Documents.map((d) => d.id), ["2"]);
    const later = new Date(Date.now() + 3600_000).toUTCString();
    assert.equal((await direct.send("Document", "ReadFeed", { ...at, rangeId: "0", aIm: "Incremental Feed", modifiedSince: later })).status, 304);
    direct.close();
  });

  t.it("runs batches and bulk", async () => {
    const { direct, at, create } = await open(t);
    await create("there", "p");
    const batch = (body, options) => direct.send("Document", "Batch", { ...at, body, ...options });
    const op = (id, pk) => ({ operationType: "Create", partitionKey: pk && JSON.stringify([pk]), resourceBody: { id, pk: pk ?? "p" } });
    const good = checkAnswer(await batch([op("1"), op("2")], { partitionKey: ["p"], batchAtomic: 1 }));
    assert.equal(good.status, 200, good.text);
    assert.deepEqual(good.json.map((r) => r.statusCode), [201, 201]);
    const bad = checkAnswer(await batch([op("3"), op("there")], { partitionKey: ["p"], batchAtomic: 1 }));
    assert.equal(bad.status, 207);
    assert.deepEqual(bad.json.map((r) => r.statusCode), [424, 409]);
    const bulk = checkAnswer(await batch([op("4", "a"), op("there", "p"), op("5", "b")], { rangeId: "0", batchAtomic: 0, batchContinue: 1 }));
    assert.deepEqual(bulk.json.map((r) => r.statusCode), [201, 409, 201]);
    direct.close();
  });

  t.it("runs stored procedures and triggers", async () => {
    const { container, direct, at } = await open(t);
    await container.scripts.storedProcedures.create({ id: "add", body: "function (a, b) { console.log('adding'); getContext().getResponse().setBody({ sum: a + b }); }" });
    await container.scripts.triggers.create({ id: "stamp", triggerType: "Pre", triggerOperation: "Create", body: "function () { const r = getContext().getRequest(); const b = r.getBody(); b.stamped = true; r.setBody(b); }" });
    const ran = checkAnswer(await direct.send("StoredProcedure", "ExecuteJavaScript", { ...at, procedure: "add", partitionKey: ["p"], logging: 1, body: [1, 2] }));
    assert.equal(ran.status, 200, ran.text);
    assert.deepEqual(ran.json, { sum: 3 });
    assert.equal(decodeURIComponent(ran.tokens.log), "adding");
    assert.ok(ran.tokens.charge > 0, "a charge, which Java needs here");
    const made = await direct.send("Document", "Create", { ...at, partitionKey: ["p"], preTrigger: "stamp", body: { id: "x", pk: "p" } });
    assert.equal(made.json.stamped, true);
    checkRefused(await direct.send("StoredProcedure", "ExecuteJavaScript", { ...at, procedure: "none", partitionKey: ["p"], body: [] }), 404);
    direct.close();
  });

  t.it("reads what the master partition has", async () => {
    const { direct, at } = await open(t);
    for (const level of [undefined, 0]) {
      const database = checkAnswer(await direct.send("Database", "Read", { database: at.database, consistency: level }));
      assert.equal(database.status, 200, database.text);
      assert.equal(database.json.id, at.database);
      const databases = checkAnswer(await direct.send("Database", "ReadFeed", { consistency: level }));
      assert.ok(databases.json.Databases.some((d) => d.id === at.database));
      const containers = checkAnswer(await direct.send("Collection", "Query", { database: at.database, consistency: level, body: { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: at.container }] } }));
      assert.deepEqual(containers.json.DocumentCollections.map((c) => c.id), [at.container]);
    }
    direct.close();
  });

  t.it("answers barriers with where the range stands", async () => {
    const { direct, at, create } = await open(t);
    const before = checkAnswer(await direct.send("Collection", "Head", { ...at, rangeId: "0", targetLsn: 5 }));
    assert.equal(before.status, 200, before.text);
    assert.equal(before.payload.length, 0);
    const { lsn } = (await create("x", "p")).tokens;
    for (const where of [{ rangeId: "0" }, { partitionKey: ["p"] }]) {
      assert.equal(checkAnswer(await direct.send("Collection", "Head", { ...at, ...where })).tokens.lsn, lsn);
    }
    const master = checkAnswer(await direct.send("Database", "HeadFeed", { consistency: 0 }));
    assert.equal(master.status, 200, master.text);
    assert.equal(master.payload.length, 0);
    direct.close();
  });

  t.it("answers errors with sub-status", async () => {
    const { direct, at, create } = await open(t);
    await create("x", "p");
    const one = { ...at, document: "x", partitionKey: ["p"] };
    checkRefused(await direct.send("Document", "Read", { ...one, container: "none" }), 404, 1003);
    checkRefused(await direct.send("Document", "Read", { ...one, session: "0:-1#1000" }), 404, 1002);
    checkRefused(await direct.send("Document", "Read", { ...one, signs: false }), 401, 5000);
    checkRefused(await direct.send("Document", "Read", { ...one, authorization: sign(direct.key, "get", "docs", "dbs/other", new Date().toUTCString()) }), 401);
    checkRefused(await direct.send("Document", "Create", { ...at, partitionKey: ["q"], body: { id: "x", pk: "p" } }), 400, 1001);
    checkRefused(await direct.send("Document", "Create", { ...at, partitionKey: ["p"], body: { id: "x", pk: "p" } }), 409);
    checkRefused(await direct.send("Document", "Read", { ...one, consistency: 0 }), 400);
    checkRefused(await direct.send("Document", "ReadFeed", { ...at, rangeId: "7" }), 410, 1002);
    checkRefused(await direct.send("Document", "ExecuteJavaScript", one), 405);
    direct.close();
  });

  t.it("says that a container is another than the client has cached", async () => {
    const { container, direct, at, rid } = await open(t);
    const one = { ...at, document: "x", partitionKey: ["p"] };
    checkRefused(await direct.send("Document", "Read", { ...one, collectionRid: rid }), 404);
    await container.delete();
    await t.database.containers.create({ id: at.container, partitionKey: "/pk" });
    checkRefused(await direct.send("Document", "Read", { ...one, collectionRid: rid }), 410, 1000);
    checkRefused(await direct.send("Document", "Read", { ...one, rid: Buffer.from(rid.replaceAll("-", "/"), "base64") }), 410, 1000);
    checkRefused(await direct.send("Document", "Read", one), 404);
    direct.close();
  });

  t.it("serves many requests in flight", async () => {
    const { direct, at, create } = await open(t);
    const made = await Promise.all(Array.from({ length: 300 }, (_, i) => create(`${i}`, `p${i % 7}`, { n: i, filler: "x".repeat(i * 20) })));
    assert.deepEqual(made.map((answer) => answer.json.n), made.map((_, i) => i));
    const read = await Promise.all(made.map((_, i) => direct.send("Document", "Read", { ...at, document: `${i}`, partitionKey: [`p${i % 7}`] })));
    read.forEach((answer, i) => assert.deepEqual(answer.json, made[i].json));
    direct.close();
  });

  t.it("takes resource tokens", async () => {
    const { container, direct, at, create } = await open(t);
    await create("x", "p");
    const { user } = await t.database.users.create({ id: t.name("user") });
    const permission = async (mode) => (await user.permissions.create({ id: mode, permissionMode: mode, resource: container.url })).resource._token;
    const authorization = encodeURIComponent(await permission("Read"));
    assert.equal((await direct.send("Document", "Read", { ...at, document: "x", partitionKey: ["p"], authorization })).status, 200);
    checkRefused(await direct.send("Document", "Delete", { ...at, document: "x", partitionKey: ["p"], authorization }), 403);
    assert.equal((await direct.send("Collection", "Head", { ...at, rangeId: "0", authorization })).status, 200);
    direct.close();
  });

  // ---- addresses ----

  const addresses = async (query, { type = "dbs", link = "", prefix = "//addresses/", status = 200, headers = {}, rest = t.rest } = {}) => {
    const date = new Date().toUTCString();
    const answer = await rest.get(`${prefix}?${query}`, { headers: { "x-ms-date": date, authorization: sign(t.key, "get", type, link, date), ...headers } });
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };

  t.it("tells the addresses of the master", async () => {
    for (const prefix of ["/addresses", "//addresses", "/addresses/", "//addresses/"]) {
      const { Addresss, _count } = await addresses("$resolveFor=dbs&$filter=protocol%20eq%20rntbd", { prefix });
      assert.equal(_count, 4);
      assert.deepEqual(Addresss.map((a) => a.isPrimary), [true, false, false, false]);
      assert.deepEqual(new Set(Addresss.map((a) => a.partitionKeyRangeId)), new Set(["M"]));
      assert.equal(new Set(Addresss.map((a) => a.physcialUri)).size, 4);
      for (const { physcialUri, protocol } of Addresss) {
        assert.ok(physcialUri.startsWith(`rntbd://localhost:${directPort(t.server)}/apps/`), physcialUri);
        assert.ok(physcialUri.endsWith("/"), physcialUri);
        assert.equal(protocol, "rntbd");
      }
    }
  });

  t.it("tells the addresses of ranges, by rid and by name", async () => {
    const { container, rid, at, direct } = await open(t, {}, { offerThroughput: 20000 });
    const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
    assert.ok(ranges.length > 1, `${ranges.length} ranges`);
    const [first, second] = ranges.map((range) => range.id);
    const database = (await t.database.read()).resource._rid;
    const byRid = encodeURIComponent(`dbs/${database}/colls/${rid}/docs`);
    const signedByRid = { type: "docs", link: rid.toLowerCase() };
    const idsOf = ({ Addresss }) => Addresss.map((a) => a.partitionKeyRangeId);
    const all = await addresses(`$resolveFor=${byRid}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=${first},${second}`, signedByRid);
    assert.equal(all._rid, rid);
    assert.deepEqual(idsOf(all), [first, first, first, first, second, second, second, second]);
    assert.equal(all.Addresss.filter((a) => a.isPrimary).length, 2);
    assert.equal(idsOf(await addresses(`$resolveFor=${byRid}`, signedByRid)).length, 4 * ranges.length);
    const known = await addresses(`$partitionKeyRangeIds=${first},777&$resolveFor=${byRid}`, { ...signedByRid, headers: { "x-ms-force-refresh": "True" } });
    assert.deepEqual(idsOf(known), [first, first, first, first]);
    const byName = encodeURIComponent(`dbs/${at.database}/colls/${at.container}/docs`);
    const named = await addresses(`$resolveFor=${byName}&$partitionKeyRangeIds=${second}`, { type: "docs", link: `dbs/${at.database}/colls/${at.container}` });
    assert.deepEqual(idsOf(named), [second, second, second, second]);
    await addresses(`$resolveFor=${byRid}`, { status: 401 });
    await addresses(`$resolveFor=${byRid}&$partitionKeyRangeIds=x`, { ...signedByRid, status: 400 });
    const none = rid.replace(/^../, "zz");
    await addresses(`$resolveFor=${encodeURIComponent(`dbs/${database}/colls/${none}/docs`)}`, { type: "docs", link: `dbs/${database}/colls/${none}`, status: 404 });
    await addresses("$resolveFor=dbs&$filter=protocol%20eq%20https", { status: 400 });
    await addresses("", { status: 400 });
    direct.close();
  });

  t.it("repeats the host that the client used", async () => {
    for (const host of ["127.0.0.1", "::1"]) {
      const rest = t.newRest({ host });
      const { Addresss } = await addresses("$resolveFor=dbs", { rest });
      const shown = host === "::1" ? "[::1]" : host;
      assert.ok(Addresss[0].physcialUri.startsWith(`rntbd://${shown}:${directPort(t.server)}/`), Addresss[0].physcialUri);
      rest.close();
    }
  });
});

// ---- consistency ----

describe("direct mode at each consistency level", () => {
  const codes = { Strong: 0, BoundedStaleness: 1, Session: 2, Eventual: 3, ConsistentPrefix: 4 };
  const order = ["Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"];
  for (const level of order) {
    it(level, async () => {
      const server = await Server.start({ flags: ["--consistency", level] });
      const rest = new Rest({ server });
      try {
        await rest.post("/dbs", { id: "d" });
        await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
        const direct = await Direct.open({ server, ca: await server.certificate() });
        const at = { database: "d", container: "c", partitionKey: ["p"] };
        assert.equal((await direct.send("Document", "Create", { ...at, body: { id: "x", pk: "p" } })).status, 201);
        for (const [asked, code] of Object.entries(codes)) {
          const answer = checkAnswer(await direct.send("Document", "Read", { ...at, document: "x", consistency: code }));
          assert.equal(answer.status, order.indexOf(asked) < order.indexOf(level) ? 400 : 200, `${asked}: ${answer.text}`);
          assert.equal((await direct.send("Database", "Read", { database: "d", consistency: code })).status, 200, asked);
        }
        direct.close();
      } finally {
        rest.close();
        await server.stop();
      }
    });
  }
});

// ---- throughput and splits ----

describe("direct mode and ranges", () => {
  let server, rest, direct;
  before(async () => {
    server = await Server.start({ flags: ["--throttling", "on"] });
    rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    direct = await Direct.open({ server });
  });
  after(async () => {
    direct.close();
    rest.close();
    await server.stop();
  });

  it("says when to come back", async () => {
    await rest.post("/dbs/d/colls", { id: "slow", partitionKey: { paths: ["/pk"] } }, { headers: { "x-ms-offer-throughput": "400" } });
    const at = { database: "d", container: "slow", partitionKey: ["p"] };
    let refused;
    await eventually("a request is refused", async () => {
      const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => direct.send("Document", "Upsert", { ...at, body: { id: `${i}`, pk: "p" } })));
      refused = answers.find((answer) => answer.status === 429);
      return refused;
    });
    checkRefused(refused, 429, 3200);
    assert.ok(refused.tokens.retryAfterMs > 0 && refused.tokens.retryAfterMs < 60_000, `${refused.tokens.retryAfterMs} ms`);
  });

  it("says that a range was split", async () => {
    await rest.post("/dbs/d/colls", { id: "split", partitionKey: { paths: ["/pk"] } }, { headers: { "x-ms-offer-throughput": "10000" } });
    const at = { database: "d", container: "split" };
    for (let i = 0; i < 20; i++) assert.equal((await direct.send("Document", "Create", { ...at, partitionKey: [`p${i}`], body: { id: "x", pk: `p${i}` } })).status, 201);
    const lsn = (await direct.send("Collection", "Head", { ...at, rangeId: "0" })).tokens.lsn;
    const split = await rest.post("/_tesela/split", { database: "d", container: "split", range: "0", parts: 2 }, { sign: false });
    assert.ok(split.status < 300, split.text);
    const ranges = async () => (await rest.get("/dbs/d/colls/split/pkranges")).json.PartitionKeyRanges;
    await eventually("two ranges", async () => (await ranges()).length === 2);
    const ids = (await ranges()).map((range) => range.id);
    const query = { body: { query: "SELECT * FROM c" } };
    checkRefused(await direct.send("Document", "Query", { ...at, rangeId: "0", ...query }), 410, 1002);
    checkRefused(await direct.send("Document", "ReadFeed", { ...at, rangeId: "0", aIm: "Incremental Feed" }), 410, 1002);
    const barrier = checkAnswer(await direct.send("Collection", "Head", { ...at, rangeId: "0" }));
    assert.deepEqual([barrier.status, barrier.substatus, barrier.payload.length], [410, 1002, 0]);
    let found = 0;
    for (const rangeId of ids) {
      const page = checkAnswer(await direct.send("Document", "Query", { ...at, rangeId, ...query }));
      assert.equal(page.tokens.rangeId, rangeId);
      assert.ok(page.tokens.lsn >= lsn, "its lsn goes on from its parent's");
      found += page.json._count;
    }
    assert.equal(found, 20);
    for (let i = 0; i < 20; i++) {
      const read = await direct.send("Document", "Read", { ...at, document: "x", partitionKey: [`p${i}`], session: `0:-1#${lsn}` });
      assert.equal(read.status, 200, read.text);
    }
  });
});

// ---- hostile frames ----

describe("hostile frames", () => {
  let server, rest, helper;
  before(async () => {
    server = await Server.start({ flags: ["--unauthenticated-seconds", "2"] });
    rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/pk"] } });
    helper = await Direct.open({ server });
  });
  after(async () => {
    helper.close();
    rest.close();
    await server.stop();
  });

  const wire = async (negotiated = true) => {
    const opened = await Wire.open({ port: directPort(server) });
    if (negotiated) await opened.negotiate();
    return opened;
  };
  const read = (tokens, options) => frame(resourceTypes.Document, operationTypes.Read, tokens, options);
  const needed = [token(0x02, "byte", 0), token(0x4d, "u32", 77)];
  const alive = async () => assert.equal((await rest.get("/dbs/d/colls/c")).status, 200);

  const noContext = {
    "a request before the context": () => read(needed),
    "a context of another version": () => contextFrame([token(0, "u32", 2)]),
    "a context with a broken token": () => contextFrame([token(0, "u32", 1), Buffer.from([1, 0, 7, 200])]),
  };
  for (const [name, make] of Object.entries(noContext)) {
    it(`${name}: 400, and the connection closes`, async () => {
      const w = await wire(false);
      w.write(make());
      const answer = await w.next();
      assert.equal(answer.status, 400);
      assert.equal(answer.json.code, "BadRequest");
      await w.ended;
      await alive();
    });
  }

  const identified = {
    "a second context": () => frame(0, 0, [token(0, "u32", 1), ...needed]),
    "no PayloadPresent": () => read([token(0x4d, "u32", 77)]),
    "a token twice": () => read([...needed, token(0x02, "byte", 0)]),
    "a token past the frame": () => read([...needed, Buffer.from([5, 0, 8, 0xff, 0xff])]),
    "an unknown type": () => read([...needed, Buffer.from([5, 0, 0x0f, 0])]),
    "a line break in a field": () => read([...needed, token(0x05, "text16", "0:-1#1\r\nx-ms-date: now")]),
    "a payload of 4 GB": () => Buffer.concat([read([token(0x02, "byte", 1), token(0x4d, "u32", 77)]), Buffer.from("ffffffff", "hex")]),
  };
  for (const [name, make] of Object.entries(identified)) {
    it(`${name}: refused with its request id`, async () => {
      const w = await wire();
      w.write(make());
      const answer = await w.next();
      assert.equal(answer.tokens.id, 77);
      assert.equal(answer.status, name === "a payload of 4 GB" ? 413 : 400, answer.text);
      await w.ended;
      await alive();
    });
  }

  const closing = {
    "no request id": () => read([token(0x02, "byte", 0)]),
    "a length below the header's": () => read(needed, { length: 23 }),
    "a header of 4 GB": () => read(needed, { length: 0xffffffff }),
    "a header above its limit": () => read(needed, { length: 128 * 1024 + 1 }),
    "HTTP": () => Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
  };
  for (const [name, make] of Object.entries(closing)) {
    it(`${name}: the connection closes`, async () => {
      const w = await wire();
      w.write(make());
      await w.ended;
      await alive();
    });
  }

  it("a frame that never ends is not waited for", async () => {
    const w = await wire();
    w.write(read(needed).subarray(0, 20));
    await w.ended;
    await alive();
  });

  it("a connection that waits for its first request stays", async () => {
    const waiting = await Direct.open({ server });
    await new Promise((done) => setTimeout(done, 3000));
    assert.equal((await waiting.send("Database", "Read", { database: "d" })).status, 200);
    waiting.close();
  });

  it("unknown tokens of every type are skipped", async () => {
    const extra = Object.entries({ byte: 1, u16: 1, u32: 1, i32: 1, u64: 1, i64: 1, guid: Buffer.alloc(16), text8: "a", text16: "b", text32: "c", bytes8: "d", bytes16: "e", bytes32: "f", float: Buffer.alloc(4), double: Buffer.alloc(8) });
    const tokens = extra.map(([type, value], i) => token(0x1000 + i, type, value));
    const answer = await helper.send("Document", "Read", { database: "d", container: "c", document: "none", partitionKey: ["p"], tokens });
    assert.equal(answer.status, 404, answer.text);
  });

  it("a body of 3 MB is read and refused, and the connection goes on", async () => {
    const at = { database: "d", container: "c", partitionKey: ["p"] };
    const large = await helper.send("Document", "Create", { ...at, body: { id: "x", pk: "p", filler: "x".repeat(3 << 20) } });
    checkRefused(large, 413);
    assert.equal((await helper.send("Document", "Create", { ...at, body: { id: "x", pk: "p" } })).status, 201);
  });

  it("replica paths and names are only text", async () => {
    const at = { database: "d", container: "c", partitionKey: ["p"] };
    for (const text of ["../../..", "\u0000", "a\r\nb", "%s%n%x", "x".repeat(60_000), "💥"]) {
      const answer = await helper.send("Document", "Read", { ...at, document: "none", replicaPath: text });
      assert.equal(answer.status, 404, answer.text);
      const named = await helper.send("Document", "Read", { ...at, document: text });
      assert.ok([400, 404].includes(named.status), `${named.status} ${named.text}`);
    }
  });

  it("frames with bytes changed at random end in an answer or in a close", async () => {
    const { bytes } = helper.make("Document", "Read", { database: "d", container: "c", document: "x", partitionKey: ["p"], id: 5 });
    let answered = 0;
    for (let round = 0; round < 200; round++) {
      const w = await wire();
      const changed = Buffer.from(bytes);
      for (let i = 0; i < 3; i++) changed[4 + ((round * 31 + i * 97) % (changed.length - 4))] ^= 1 << (round + i) % 8;
      w.write(changed);
      await Promise.race([w.next().then((answer) => { answered++; assert.ok(answer.status >= 200 && answer.status < 500, answer.text); }, () => {}), w.ended, new Promise((done) => setTimeout(done, 100))]);
      w.close();
    }
    assert.ok(answered > 20, `${answered} of 200 were answered`);
    await alive();
  });
});

describe("--direct-port", () => {
  it("off: addresses say what to do", async () => {
    const server = await Server.start({ flags: ["--direct-port", "off"] });
    const rest = new Rest({ server });
    try {
      assert.equal(server.ready.direct, undefined);
      const date = new Date().toUTCString();
      const answer = await rest.get("//addresses/?$resolveFor=dbs", { headers: { "x-ms-date": date, authorization: sign(rest.key, "get", "dbs", "", date) } });
      assert.equal(answer.status, 400);
      assert.match(answer.message, /gateway mode.*--direct-port/s);
    } finally {
      rest.close();
      await server.stop();
    }
  });

  it("a port of one's own is listened on", async () => {
    const first = await Server.start();
    const port = directPort(first);
    await first.stop();
    const server = await Server.start({ flags: ["--direct-port", `${port}`] });
    assert.equal(directPort(server), port);
    const direct = await Direct.open({ server });
    assert.equal(direct.context.status, 200);
    direct.close();
    await server.stop();
  });
});
