// Ids and sizes.

import { assert, suite, refused, key, etagForm } from "./harness.js";
import { processorMs } from "./processes.js";

const twoMegabytes = 2 * 1024 * 1024;

suite("ids", (t) => {
  t.it("are 1 to 1,023 bytes long", async () => {
    const path = await t.containerPath();
    const post = (id) => t.rest.post(`${path}/docs`, { id, pk: "a" }, { headers: key("a") });
    for (const id of ["x", "x".repeat(1023), "ñ".repeat(511)]) assert.equal((await post(id)).status, 201);
    for (const id of ["", "x".repeat(1024), "ñ".repeat(512), "😀".repeat(256)]) refused(await post(id), 400, { text: "The input name" });
  });

  t.it("may not contain slashes of either kind, but anything else", async () => {
    const path = await t.containerPath();
    const post = (id) => t.rest.post(`${path}/docs`, { id, pk: "a" }, { headers: key("a") });
    for (const id of ["a/b", "/", "a\\b", "\\"]) refused(await post(id), 400, { text: "The input name" });
    for (const id of ["a?b", "a#b", "what?", "#1", "a%b", "a\tb", "\u0001"]) {
      assert.equal((await post(id)).status, 201, id);
      const read = await t.rest.get(`${path}/docs/${encodeURIComponent(id)}`, { headers: key("a") });
      assert.equal(read.status, 200, id);
      assert.equal(read.json.id, id);
    }
  });

  t.it("must be there and be strings", async () => {
    const path = await t.containerPath();
    const post = (body) => t.rest.post(`${path}/docs`, body, { headers: key("a") });
    refused(await post({ pk: "a" }), 400, { text: "The input content is invalid because the required properties - 'id; ' - are missing" });
    for (const id of [1, null, true, [], {}]) refused(await post({ id, pk: "a" }), 400, { text: "'id" });
    refused(await t.rest.put(`${path}/docs/1`, { pk: "a" }, { headers: key("a") }), 400, { text: "'id; '" });
  });
});

suite("sizes", (t) => {
  // An item whose JSON text has exactly this many bytes.
  const sized = (bytes, id = "big") => {
    const frame = JSON.stringify({ id, pk: "a", text: "" }).length;
    return JSON.stringify({ id, pk: "a", text: "x".repeat(bytes - frame) });
  };

  t.it("of items are at most 2 MB", async () => {
    const path = await t.containerPath();
    const fits = await t.rest.post(`${path}/docs`, sized(twoMegabytes), { headers: key("a") });
    assert.equal(fits.status, 201, fits.text.slice(0, 200));
    const read = await t.rest.get(`${path}/docs/big`, { headers: key("a") });
    assert.equal(read.json.text.length, twoMegabytes - sized(1000).length + 1000 - '{"id":"big","pk":"a","text":""}'.length);
    for (const bytes of [twoMegabytes + 1, 3_000_000, 4 * 1024 * 1024, 6_000_000]) {
      const answer = await t.rest.post(`${path}/docs`, sized(bytes, "bigger"), { headers: key("a") });
      refused(answer, 413, { text: "Request size is too large" });
    }
    refused(await t.rest.put(`${path}/docs/big`, sized(twoMegabytes + 1), { headers: key("a") }), 413);
    assert.equal((await t.rest.get(`${path}/docs`)).json._count, 1);
  });

  t.it("of items bound what a patch can make", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, sized(twoMegabytes - 1000), { headers: key("a") });
    const grow = (bytes) => t.rest.patch(`${path}/docs/big`, { operations: [{ op: "set", path: "/more", value: "y".repeat(bytes) }] }, { headers: key("a") });
    assert.equal((await grow(500)).status, 200);
    refused(await grow(5000), 413);
    assert.equal((await t.rest.get(`${path}/docs/big`, { headers: key("a") })).json.more.length, 500);
  });

  t.it("of items are those of the text, whatever is stored", async () => {
    const path = await t.containerPath();
    const list = Array.from({ length: 900_000 }, () => 1); // 1.8 MB as text, far more as BSON
    assert.equal((await t.rest.post(`${path}/docs`, { id: "list", pk: "a", list }, { headers: key("a") })).status, 201);
    const patched = await t.rest.patch(`${path}/docs/list`, [{ op: "set", path: "/v", value: 1 }], { headers: key("a") });
    assert.equal(patched.status, 200, patched.text.slice(0, 200));
    assert.equal(patched.json.list.length, 900_000);
  });

  t.it("of items in small pieces are whole", async () => {
    const path = await t.containerPath();
    const list = Array.from({ length: 150_000 }, (_, i) => i);
    const answer = await t.rest.post(`${path}/docs`, { id: "list", pk: "a", list }, { headers: key("a") });
    assert.equal(answer.status, 201, answer.text.slice(0, 200));
    assert.deepEqual((await t.rest.get(`${path}/docs/list`, { headers: key("a") })).json.list, list);
    const members = Object.fromEntries(list.slice(0, 50_000).map((i) => [`member${i}`, i]));
    const wide = await t.rest.post(`${path}/docs`, { id: "wide", pk: "a", members }, { headers: key("a") });
    assert.equal(wide.status, 201);
    assert.deepEqual(wide.json.members, members);
    assert.match(wide.headers.etag, etagForm);
  });

  t.it("of requests count as they arrive, in chunks or not", async () => {
    const path = await t.containerPath();
    const headers = { ...key("a"), "transfer-encoding": "chunked" };
    const fits = await t.rest.post(`${path}/docs`, sized(100_000), { headers });
    assert.equal(fits.status, 201);
    refused(await t.rest.post(`${path}/docs`, sized(twoMegabytes + 1), { headers }), 413);
  });
});

// Ten thousand conditions with a parameter each: linear lookups would take a hundred million comparisons.
suite("query texts", (t) => {
  t.it("with many parameters are read in linear time, and too long ones refused", async () => {
    const container = await t.container();
    await container.items.create({ id: "7", pk: "a" });
    const n = 10_000;
    const query = `SELECT * FROM c WHERE ${Array.from({ length: n }, (_, i) => `(c.id=@i${i} AND c.pk=@p)`).join(" OR ")}`;
    const parameters = [...Array.from({ length: n }, (_, i) => ({ name: `@i${i}`, value: `${i}` })), { name: "@p", value: "a" }];
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" };
    const path = `${t.databasePath}/colls/${container.id}/docs`;
    const before = processorMs(t.server.child.pid);
    const answer = await t.rest.post(path, { query, parameters }, { headers });
    const ms = processorMs(t.server.child.pid) - before;
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json.Documents.map((item) => item.id), ["7"]);
    assert.ok(ms < 3000, `${ms} ms`);
    const long = await t.rest.post(path, { query: `SELECT * FROM c WHERE c.id = "${"x".repeat(512 * 1024)}"` }, { headers });
    refused(long, 400, { text: "The SQL query text exceeded the maximum limit of 524288 characters" });
  });
});
