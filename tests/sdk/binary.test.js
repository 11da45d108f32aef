// Cosmos binary JSON: bodies of requests in it, and answers where they are asked for. The bytes are made and read here by a few lines of
// our own, so that the server's own code is not used to check it.

import { suite, assert } from "./harness.js";

const systemStrings =
  "$s $t $v _attachments _etag _rid _self _ts attachments/ coordinates geometry GeometryCollection id url Value label LineString link " +
  "MultiLineString MultiPoint MultiPolygon name Name Type Point Polygon properties type value Feature FeatureCollection _id";
const names = systemStrings.split(" ");

// ---- writing ----

function integer(marker, n, bytes) {
  const b = Buffer.alloc(1 + bytes);
  b[0] = marker;
  b.writeIntLE(n, 1, bytes);
  return b;
}

function string(text) {
  if (names.includes(text)) return Buffer.from([0x20 + names.indexOf(text)]);
  const bytes = Buffer.from(text);
  if (bytes.length < 64) return Buffer.concat([Buffer.from([0x80 + bytes.length]), bytes]);
  const head = Buffer.alloc(5, 0xc2);
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function container(marker, parts) {
  const bytes = Buffer.concat(parts);
  const head = Buffer.alloc(9, marker + 7); // length and count, of four bytes each
  head.writeUInt32LE(bytes.length, 1);
  head.writeUInt32LE(parts.length, 5);
  return Buffer.concat([head, bytes]);
}

function value(v) {
  if (v === null || typeof v === "boolean") return Buffer.from([v === null ? 0xd0 : v ? 0xd2 : 0xd1]);
  if (typeof v === "string") return string(v);
  if (Number.isInteger(v)) return v >= 0 && v < 32 ? Buffer.from([v]) : integer(0xca, v, 4);
  if (typeof v === "number") {
    const b = Buffer.alloc(9, 0xcc);
    b.writeDoubleLE(v, 1);
    return b;
  }
  if (Array.isArray(v)) return container(0xe0, v.map(value));
  return container(0xe8, Object.entries(v).map(([name, of]) => Buffer.concat([string(name), value(of)])));
}

const binary = (v) => Buffer.concat([Buffer.from([0x80]), value(v)]);

// ---- reading: what the server writes, nothing else ----

function guid(b, at) {
  const digits = [...b.subarray(at, at + 16)].map((byte) => (byte & 15).toString(16) + (byte >> 4).toString(16)).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function read(b, at) {
  const marker = b[at++];
  const text = (n, from) => [b.toString("utf8", from, from + n), from + n];
  if (marker < 0x20) return [marker, at];
  if (marker < 0x40) return [names[marker - 0x20], at];
  if (marker === 0x75) return [guid(b, at), at + 16];
  if (marker === 0x77) return [`"${guid(b, at)}"`, at + 16];
  if (marker >= 0x80 && marker < 0xc0) return text(marker - 0x80, at);
  switch (marker) {
    case 0xc0:
      return text(b[at], at + 1);
    case 0xc1:
      return text(b.readUInt16LE(at), at + 2);
    case 0xc2:
      return text(b.readUInt32LE(at), at + 4);
    case 0xc8:
      return [b[at], at + 1];
    case 0xc9:
      return [b.readInt16LE(at), at + 2];
    case 0xca:
      return [b.readInt32LE(at), at + 4];
    case 0xcb:
      return [Number(b.readBigInt64LE(at)), at + 8];
    case 0xcc:
      return [b.readDoubleLE(at), at + 8];
    case 0xd0:
      return [null, at];
    case 0xd1:
    case 0xd2:
      return [marker === 0xd2, at];
    case 0xe0:
      return [[], at];
    case 0xe8:
      return [{}, at];
    case 0xe2:
    case 0xea:
      return members(b, at + 1, at + 1 + b[at], marker > 0xe8);
    case 0xe4:
    case 0xec:
      return members(b, at + 4, at + 4 + b.readUInt32LE(at), marker > 0xe8);
  }
  throw new Error(`marker ${marker.toString(16)} at ${at - 1}`);
}

function members(b, at, end, isObject) {
  const into = isObject ? {} : [];
  while (at < end) {
    let name, of;
    if (isObject) [name, at] = read(b, at);
    [of, at] = read(b, at);
    if (isObject) into[name] = of;
    else into.push(of);
  }
  assert.equal(at, end);
  return [into, end];
}

function unbinary(bytes) {
  assert.equal(bytes[0], 0x80, "binary");
  const [v, end] = read(bytes, 1);
  assert.equal(end, bytes.length);
  return v;
}

suite("binary JSON", (t) => {
  const key = (id) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([id]) });
  const asked = { "x-ms-cosmos-supported-serialization-formats": "CosmosBinary" };
  let path, made;
  async function docs() {
    if (!path) {
      path = `${t.databasePath}/colls/${(made = t.name())}/docs`;
      const body = { id: made, partitionKey: { paths: ["/id"], kind: "Hash" } };
      assert.equal((await t.rest.post(`${t.databasePath}/colls`, body)).status, 201);
    }
    return path;
  }
  const item = (id, more) => ({ id, n: 5, big: 100000, half: 0.5, text: "ä\n\"😀", list: [1, [], {}, null, true], name: "x", ...more });

  t.it("is taken from requests", async () => {
    const p = await docs();
    const text = await t.rest.post(p, item("as-text"), { headers: key("as-text") });
    const answer = await t.rest.send("POST", p, { body: binary(item("as-bytes")), headers: key("as-bytes") });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers["x-ms-request-charge"], text.headers["x-ms-request-charge"]);
    const { json } = await t.rest.get(`${p}/as-bytes`, { headers: key("as-bytes") });
    for (const [name, of] of Object.entries(item("as-bytes"))) assert.deepEqual(json[name], of, name);
    const replaced = await t.rest.send("PUT", `${p}/as-bytes`, { body: binary(item("as-bytes", { n: 6 })), headers: key("as-bytes") });
    assert.equal(replaced.json.n, 6);
    const patch = { operations: [{ op: "incr", path: "/n", value: 2 }] };
    const patched = await t.rest.send("PATCH", `${p}/as-bytes`, { body: binary(patch), headers: key("as-bytes") });
    assert.equal(patched.json.n, 8);
  });

  t.it("is taken from batches and queries", async () => {
    const p = await docs();
    const operations = [{ operationType: "Create", resourceBody: item("batch") }, { operationType: "Read", id: "batch" }];
    const batch = { "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" };
    const { json } = await t.rest.send("POST", p, { body: binary(operations), headers: { ...key("batch"), ...batch } });
    assert.deepEqual(json.map(({ statusCode }) => statusCode), [201, 200]);
    const query = { query: "SELECT VALUE c.n FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: "batch" }] };
    const headers = { ...key("batch"), "x-ms-documentdb-isquery": "true", "content-type": "application/query+json" };
    const found = await t.rest.send("POST", p, { body: binary(query), headers });
    assert.deepEqual(found.json.Documents, [5]);
    const page = await t.rest.post(p, query, { headers: { ...headers, ...asked } });
    assert.deepEqual(unbinary(page.bytes).Documents, [5]);
    assert.equal(page.headers["x-ms-request-charge"], found.headers["x-ms-request-charge"]);
  });

  t.it("is answered where it is asked for", async () => {
    const p = await docs();
    const made = await t.rest.post(p, item("answer"), { headers: { ...key("answer"), ...asked } });
    assert.equal(made.status, 201);
    const text = await t.rest.get(`${p}/answer`, { headers: key("answer") });
    assert.deepEqual(unbinary(made.bytes), text.json);
    for (const fields of [asked, { "x-ms-documentdb-content-serialization-format": "CosmosBinary" }]) {
      const bytes = await t.rest.get(`${p}/answer`, { headers: { ...key("answer"), ...fields } });
      assert.equal(bytes.status, 200);
      assert.deepEqual(unbinary(bytes.bytes), text.json);
      assert.equal(bytes.headers["x-ms-request-charge"], text.headers["x-ms-request-charge"]);
      assert.equal(Number(bytes.headers["content-length"]), bytes.bytes.length);
      assert.ok(bytes.bytes.length < text.bytes.length);
    }
    const feed = await t.rest.get(p, { headers: asked });
    const same = await t.rest.get(p);
    assert.deepEqual(unbinary(feed.bytes), same.json);
  });

  t.it("is not answered otherwise", async () => {
    const p = await docs();
    await t.rest.post(p, item("text"), { headers: key("text") });
    for (const formats of ["JsonText", "JsonText, CosmosBinary", "CosmosBinary|JsonText", "HybridRow", "", "CosmosBinaryX"]) {
      const headers = { ...key("text"), "x-ms-cosmos-supported-serialization-formats": formats };
      assert.equal((await t.rest.get(`${p}/text`, { headers })).json.id, "text", formats);
    }
    const missing = await t.rest.get(`${p}/missing`, { headers: { ...key("missing"), ...asked } });
    assert.equal(missing.status, 404);
    assert.equal(missing.json.code, "NotFound");
    assert.equal((await t.rest.get(t.databasePath, { headers: asked })).json.id, t.database.id);
  });

  t.it("carries large items both ways", async () => {
    const p = await docs();
    const large = item("large", { long: "x".repeat(1_500_000), list: Array.from({ length: 20_000 }, (_, i) => i) });
    const made = await t.rest.send("POST", p, { body: binary(large), headers: { ...key("large"), ...asked } });
    assert.equal(made.status, 201);
    const bytes = await t.rest.get(`${p}/large`, { headers: { ...key("large"), ...asked } });
    const text = await t.rest.get(`${p}/large`, { headers: key("large") });
    assert.deepEqual(unbinary(bytes.bytes), text.json);
    assert.deepEqual(unbinary(made.bytes), text.json);
    assert.equal(text.json.list.length, 20_000);
  });

  t.it("is refused if it is malformed, or too much", async () => {
    const p = await docs();
    const bad = await t.rest.send("POST", p, { body: Buffer.from([0x80, 0xea, 0x09, 0x2c]), headers: key("bad") });
    assert.equal(bad.status, 400);
    assert.match(bad.json.message, /longer than its parent at byte/);
    const long = string("y".repeat(60_000));
    for (const times of [10, 100]) { // 600 KB fit; 6 MB do not
      const head = Buffer.alloc(5, 0xe4);
      head.writeUInt32LE(long.length + 2 * (times - 1), 1);
      const name = [Buffer.from([0x80, 0xea + 2]), Buffer.alloc(4), string("id"), string(`times-${times}`), string("list"), head];
      const before = Buffer.concat(name).length;
      const references = Buffer.concat(Array.from({ length: times - 1 }, () => Buffer.from([0xc3, before])));
      const body = Buffer.concat([...name, long, references]);
      body.writeUInt32LE(body.length - 6, 2);
      const { status } = await t.rest.send("POST", p, { body, headers: key(`times-${times}`) });
      assert.equal(status, times === 10 ? 201 : 413);
    }
    const { json } = await t.rest.get(`${p}/times-10`, { headers: key("times-10") });
    assert.deepEqual(json.list, Array(10).fill("y".repeat(60_000)));
  });
});
