import { all, assert, fails, refused, suite } from "./harness.js";

const etagForm = /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d\.\d{7}Z'"$/;

suite("entities", (t) => {
  t.it("come back as they were inserted", async () => {
    const client = await t.table();
    const when = new Date("2024-01-02T03:04:05.678Z");
    const bytes = Buffer.from([0, 1, 2, 255]);
    const entity = { partitionKey: "p", rowKey: "r", text: "It's ünicode 💡", int: 5, real: 5.5, yes: true, no: false, when, bytes, big: 9007199254740993n };
    entity.guid = { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" };
    await client.createEntity(entity);
    const found = await client.getEntity("p", "r");
    assert.match(found.etag, etagForm);
    assert.match(found.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    assert.ok(Math.abs(Date.parse(found.timestamp) - Date.now()) < 60_000);
    for (const [name, value] of Object.entries(entity)) assert.deepEqual(found[name], value, name);
  });

  t.it("have all types of EDM, with every way to write them", async () => {
    const client = await t.table();
    const body = {
      PartitionKey: "p",
      RowKey: "r",
      "a@odata.type": "Edm.Int64", a: "-9223372036854775808",
      b: "9223372036854775807", "b@odata.type": "Edm.Int64",
      "c@odata.type": "Edm.Double", c: "NaN",
      "d@odata.type": "Edm.Double", d: "-Infinity",
      "e@odata.type": "Edm.Double", e: 3,
      "f@odata.type": "Edm.DateTime", f: "2024-01-02T03:04:05.6789012Z",
      "g@odata.type": "Edm.DateTime", g: "1601-01-01T00:00:00Z",
      "h@odata.type": "Edm.DateTime", h: "9999-12-31T23:59:59.9999999Z",
      "i@odata.type": "Edm.DateTime", i: "2024-01-02T03:04:05+02:00",
      "j@odata.type": "Edm.Binary", j: "",
      "k@odata.type": "Edm.Guid", k: "C9DA6455-213D-42C9-9A79-3E9149A57833",
      "l@odata.type": "Edm.Int32", l: "-7",
      "m@odata.type": "Edm.Boolean", m: "true",
      "n@odata.type": "Edm.String", n: "plain",
      o: 4294967296, p: 1e300, q: -2147483648, ttl: "not a time to live", _rid: "mine", nothing: null,
    };
    assert.equal((await t.rest.post(`/${client.tableName}`, body)).status, 201);
    const { json } = await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`, { headers: { accept: "application/json;odata=minimalmetadata" } });
    const { "odata.metadata": metadata, "odata.etag": etag, Timestamp, ...rest } = json;
    assert.equal(metadata, `${t.base}/$metadata#${client.tableName}/@Element`);
    assert.equal(etag, `W/"datetime'${Timestamp.replaceAll(":", "%3A")}'"`);
    assert.deepEqual(rest, {
      PartitionKey: "p",
      RowKey: "r",
      "a@odata.type": "Edm.Int64", a: "-9223372036854775808",
      "b@odata.type": "Edm.Int64", b: "9223372036854775807",
      "c@odata.type": "Edm.Double", c: "NaN",
      "d@odata.type": "Edm.Double", d: "-Infinity",
      e: 3,
      "f@odata.type": "Edm.DateTime", f: "2024-01-02T03:04:05.6789012Z",
      "g@odata.type": "Edm.DateTime", g: "1601-01-01T00:00:00.0000000Z",
      "h@odata.type": "Edm.DateTime", h: "9999-12-31T23:59:59.9999999Z",
      "i@odata.type": "Edm.DateTime", i: "2024-01-02T01:04:05.0000000Z",
      "j@odata.type": "Edm.Binary", j: "",
      "k@odata.type": "Edm.Guid", k: "c9da6455-213d-42c9-9a79-3e9149a57833",
      l: -7, m: true, n: "plain", o: 4294967296, p: 1e300, q: -2147483648, ttl: "not a time to live", _rid: "mine",
    });
    const text = (await t.rest.get(`/${client.tableName}(PartitionKey='p',RowKey='r')`)).text;
    assert.ok(text.includes('"e":3.0,'), "a whole double is written with a fraction");
    assert.ok(text.includes('"o":4294967296.0'), "an integer that is no Int32 is a double");
  });

  t.it("are refused with values that their types do not have", async () => {
    const { tableName } = await t.table();
    const bad = { Int64: ["9223372036854775808", "abc", 1.5, true], Int32: ["2147483648", 1.5], Double: ["abc", true], Boolean: ["yes", 1], DateTime: ["2024-02-30T00:00:00Z", "1600-12-31T00:00:00Z", "abc", 5], Guid: ["abc", "c9da6455x213d-42c9-9a79-3e9149a57833"], Binary: ["a", "%%%%", 7], Nonsense: ["x"] };
    for (const [type, values] of Object.entries(bad)) {
      for (const value of values) {
        const answer = await t.rest.post(`/${tableName}`, { PartitionKey: "p", RowKey: "r", "x@odata.type": `Edm.${type}`, x: value });
        const isTime = type === "DateTime" && typeof value === "string";
        refused(answer, 400, isTime ? "OutOfRangeInput" : "InvalidInput");
      }
    }
    for (const value of [[1], { a: 1 }]) refused(await t.rest.post(`/${tableName}`, { PartitionKey: "p", RowKey: "r", x: value }), 400, "InvalidInput");
    assert.equal((await all(t.client(tableName).listEntities())).length, 0);
  });

  t.it("have three levels of metadata, and $select", async () => {
    const { tableName } = await t.table();
    await t.rest.post(`/${tableName}`, { PartitionKey: "p'1", RowKey: "r 1", n: 1, "big@odata.type": "Edm.Int64", big: "5" });
    const path = `/${tableName}(PartitionKey='p''1',RowKey='r%201')`;
    const at = async (level, select = "") => (await t.rest.get(path + select, { headers: { accept: `application/json;odata=${level}` } })).json;
    const none = await at("nometadata");
    assert.deepEqual(Object.keys(none), ["PartitionKey", "RowKey", "Timestamp", "n", "big"]);
    assert.equal(none.big, "5");
    const minimal = await at("minimalmetadata");
    assert.deepEqual(Object.keys(minimal), ["odata.metadata", "odata.etag", "PartitionKey", "RowKey", "Timestamp", "n", "big@odata.type", "big"]);
    const full = await at("fullmetadata");
    assert.equal(full["odata.type"], `devstoreaccount1.${tableName}`);
    assert.equal(full["odata.editLink"], `${tableName}(PartitionKey='p%27%271',RowKey='r%201')`);
    assert.equal(full["odata.id"], `${t.base}/${full["odata.editLink"]}`);
    assert.equal(full["Timestamp@odata.type"], "Edm.DateTime");
    assert.deepEqual(Object.keys(await at("nometadata", "?$select=n,nothing,PartitionKey")), ["PartitionKey", "n"]);
    assert.equal((await t.rest.get(`/${tableName}(PartitionKey='p''1',RowKey='r%201')`, { headers: { accept: "application/atom+xml" } })).status, 415);
  });

  t.it("are replaced, merged and upserted", async () => {
    const client = await t.table();
    const key = { partitionKey: "p", rowKey: "r" };
    await fails(client.updateEntity({ ...key, a: 1 }, "Replace"), 404, "ResourceNotFound");
    await fails(client.updateEntity({ ...key, a: 1 }, "Merge"), 404, "ResourceNotFound");
    await client.upsertEntity({ ...key, a: 1 }, "Merge");
    await client.upsertEntity({ ...key, b: 2 }, "Merge");
    const strip = ({ etag, timestamp, "odata.metadata": _, ...rest }) => rest;
    assert.deepEqual(strip(await client.getEntity("p", "r")), { ...key, a: 1, b: 2 });
    await client.upsertEntity({ ...key, c: 3 }, "Replace");
    assert.deepEqual(strip(await client.getEntity("p", "r")), { ...key, c: 3 });
    await client.updateEntity({ ...key, d: 4 }, "Replace");
    await client.updateEntity({ ...key, e: 5, d: "other type" }, "Merge");
    assert.deepEqual(strip(await client.getEntity("p", "r")), { ...key, d: "other type", e: 5 });
    await fails(client.createEntity(key), 409, "EntityAlreadyExists");
    await client.deleteEntity("p", "r");
    await fails(client.deleteEntity("p", "r"), 404, "ResourceNotFound");
    await fails(client.getEntity("p", "r"), 404, "ResourceNotFound");
  });

  t.it("lose the ticks of a time that is merged over", async () => {
    const { tableName } = await t.table();
    const path = `/${tableName}(PartitionKey='p',RowKey='r')`;
    const time = (text) => ({ "x@odata.type": "Edm.DateTime", x: text });
    await t.rest.put(path, time("2024-01-02T03:04:05.1234567Z"));
    assert.equal((await t.rest.send("MERGE", path, { body: time("2024-01-02T03:04:05.5Z") })).status, 204);
    assert.equal((await t.rest.get(path)).json.x, "2024-01-02T03:04:05.5000000Z");
  });

  t.it("have etags that decide about updates", async () => {
    const client = await t.table();
    const key = { partitionKey: "p", rowKey: "r" };
    const { etag } = await client.createEntity({ ...key, n: 1 });
    assert.match(etag, etagForm);
    const second = await client.updateEntity({ ...key, n: 2 }, "Replace", { etag });
    assert.match(second.etag, etagForm);
    assert.notEqual(second.etag, etag);
    assert.equal((await client.getEntity("p", "r")).etag, second.etag);
    for (const mode of ["Replace", "Merge"]) await fails(client.updateEntity({ ...key, n: 3 }, mode, { etag }), 412, "UpdateConditionNotSatisfied");
    await fails(client.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied");
    assert.equal((await client.getEntity("p", "r")).n, 2);
    const third = await client.updateEntity({ ...key, n: 3 }, "Merge", { etag: second.etag });
    await client.deleteEntity("p", "r", { etag: third.etag });
    const { tableName } = client;
    refused(await t.rest.send("DELETE", `/${tableName}(PartitionKey='p',RowKey='r')`), 400, "MissingRequiredHeader");
  });

  t.it("get a new etag with every write, however fast", async () => {
    const client = await t.table();
    const key = { partitionKey: "p", rowKey: "r" };
    const etags = await Promise.all(Array.from({ length: 50 }, async (_, n) => (await client.upsertEntity({ ...key, n })).etag));
    assert.equal(new Set(etags).size, 50);
  });

  t.it("have limits on keys, names, sizes and numbers of properties", async () => {
    const { tableName } = await t.table();
    const post = (body) => t.rest.post(`/${tableName}`, body);
    const key = { PartitionKey: "p", RowKey: "r" };
    refused(await post({ PartitionKey: "p" }), 400, "PropertiesNeedValue");
    refused(await post({ RowKey: "p" }), 400, "PropertiesNeedValue");
    refused(await post({ ...key, PartitionKey: 5 }), 400, "InvalidInput");
    for (const character of ["/", "\\", "#", "?", "\t", "\u007f", "\u0085"]) {
      refused(await post({ ...key, RowKey: `a${character}b` }), 400, "OutOfRangeInput");
      refused(await post({ ...key, PartitionKey: `a${character}b` }), 400, "OutOfRangeInput");
    }
    refused(await post({ ...key, RowKey: "x".repeat(513) }), 400, "KeyValueTooLarge");
    assert.equal((await post({ PartitionKey: "ü".repeat(512), RowKey: "x".repeat(512) })).status, 201);
    assert.equal((await post({ PartitionKey: "", RowKey: "" })).status, 201, "empty keys are keys");
    for (const name of ["a-b", "1a", "a b", "", "a.b"]) refused(await post({ ...key, [name]: 1 }), 400, "PropertyNameInvalid");
    refused(await post({ ...key, ["n".repeat(256)]: 1 }), 400, "PropertyNameTooLong");
    const many = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, i]));
    refused(await post({ ...key, ...many(253) }), 400, "TooManyProperties");
    assert.equal((await post({ ...key, ...many(252) })).status, 201);
    refused(await t.rest.send("MERGE", `/${tableName}(PartitionKey='p',RowKey='r')`, { body: { more: 1 } }), 400, "TooManyProperties");
    refused(await post({ ...key, big: "x".repeat(32769) }), 400, "PropertyValueTooLarge");
    assert.equal((await post({ PartitionKey: "p", RowKey: "big", big: "x".repeat(32768) })).status, 201);
    const wide = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`w${i}`, "y".repeat(32000)]));
    refused(await post({ ...key, RowKey: "wide", ...wide(17) }), 400, "EntityTooLarge");
    assert.equal((await post({ ...key, RowKey: "wide", ...wide(16) })).status, 201);
    refused(await t.rest.send("MERGE", `/${tableName}(PartitionKey='p',RowKey='wide')`, { body: { more: "z".repeat(32000) } }), 400, "EntityTooLarge");
    refused(await post(`{"PartitionKey":"p","RowKey":"r","x":"${"x".repeat(5_000_000)}"}`), 413, "RequestBodyTooLarge");
  });

  t.it("may be larger in tables that were made for it", async () => {
    const name = t.name();
    assert.equal((await t.rest.post("/Tables", { TableName: name }, { headers: { "x-tesela-large-entities": "true" } })).status, 201);
    const body = { PartitionKey: "p", RowKey: "r", big: "x".repeat(900_000) };
    assert.equal((await t.rest.post(`/${name}`, body)).status, 201);
    assert.equal((await t.rest.get(`/${name}(PartitionKey='p',RowKey='r')`)).json.big.length, 900_000);
    refused(await t.rest.post(`/${name}`, { ...body, RowKey: "s", big: "x".repeat(1_100_000) }), 400, "EntityTooLarge");
  });

  t.it("answer inserts as Prefer asks", async () => {
    const { tableName } = await t.table();
    const made = await t.rest.post(`/${tableName}`, { PartitionKey: "p", RowKey: "r'1", n: 1 });
    assert.equal(made.status, 201);
    assert.equal(made.json.n, 1);
    assert.equal(made.json["odata.etag"], made.headers.etag);
    assert.equal(made.headers.location, `${t.base}/${tableName}(PartitionKey='p',RowKey='r%27%271')`);
    const quiet = await t.rest.post(`/${tableName}`, { PartitionKey: "p", RowKey: "r2" }, { headers: { Prefer: "return-no-content" } });
    assert.equal(quiet.status, 204);
    assert.equal(quiet.text, "");
    assert.equal(quiet.headers["preference-applied"], "return-no-content");
    assert.match(quiet.headers.etag, etagForm);
  });

  t.it("are refused where the URL or the body is malformed", async () => {
    const { tableName } = await t.table();
    for (const path of [`/${tableName}(PartitionKey='p')`, `/${tableName}(PartitionKey='p',RowKey='r'`, `/${tableName}(PartitionKey='p',RowKey=r)`, `/${tableName}(PartitionKey='p',PartitionKey='r')`]) {
      refused(await t.rest.get(path), 400, "InvalidInput");
    }
    refused(await t.rest.get("/a/b/c"), 400, "InvalidUri");
    refused(await t.rest.get(`/${tableName}(PartitionKey='%ff',RowKey='r')`), 400, "InvalidUri");
    for (const body of ["", "{", "null", "[]", '{"a":1}x', '{"PartitionKey":"p","RowKey":"r","a":1e999}']) refused(await t.rest.post(`/${tableName}`, body), 400, "InvalidInput");
    refused(await t.rest.post(`/${tableName}`, "<entry/>", { headers: { "content-type": "application/atom+xml" } }), 415, "AtomFormatNotSupported");
    refused(await t.rest.post("/nosuchtable", { PartitionKey: "p", RowKey: "r" }), 404, "TableNotFound");
    refused(await t.rest.send("POST", `/${tableName}(PartitionKey='p',RowKey='r')`, { body: {} }), 405, "MethodNotAllowed");
  });
});
