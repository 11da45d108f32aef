// Containers: create, read, list, query, replace, delete; settings; fixed containers; pkranges.

import { assert, suite, fails, refused, checkStamp, ridBytes, key, withoutSystem } from "./harness.js";

const notFound = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found";
const v2 = (path = "/pk") => ({ paths: [path], kind: "Hash", version: 2 });

suite("containers", (t) => {
  t.it("are created with the service's properties", async () => {
    const id = t.name();
    const { resource, statusCode, headers, requestCharge } = await t.database.containers.create({ id, partitionKey: v2() });
    assert.equal(statusCode, 201);
    assert.deepEqual(withoutSystem(resource), {
      id,
      indexingPolicy: {
        indexingMode: "consistent",
        automatic: true,
        includedPaths: [{ path: "/*" }],
        excludedPaths: [{ path: '/"_etag"/?' }],
      },
      partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
      conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionPath: "/_ts", conflictResolutionProcedure: "" },
      geospatialConfig: { type: "Geography" },
    });
    assert.equal(resource._docs, "docs/");
    assert.equal(resource._sprocs, "sprocs/");
    assert.equal(resource._triggers, "triggers/");
    assert.equal(resource._udfs, "udfs/");
    assert.equal(resource._conflicts, "conflicts/");
    const { resource: database } = await t.database.read();
    const bytes = ridBytes(resource._rid);
    assert.equal(bytes.length, 8);
    assert.equal(resource._rid.length, 12);
    assert.deepEqual(bytes.subarray(0, 4), ridBytes(database._rid), "the first four bytes are the database's");
    assert.equal(bytes[4] & 0x80, 0x80, "the mark of a collection");
    assert.equal(resource._self, `dbs/${database._rid}/colls/${resource._rid}/`);
    checkStamp(resource);
    assert.equal(headers.etag, resource._etag);
    assert.equal(headers["x-ms-content-path"], database._rid, "the owner's");
    assert.equal(headers["x-ms-alt-content-path"], `dbs/${t.database.id}`);
    const read = await t.rest.get(`${t.databasePath}/colls/${id}`);
    assert.equal(read.headers["x-ms-content-path"], database._rid);
    assert.equal(read.headers["x-ms-alt-content-path"], `dbs/${t.database.id}`);
    assert.match(headers["x-ms-session-token"], /^0:-1#\d+$/);
    assert.equal(requestCharge, 1);
  });

  t.it("have kind Hash and the first version when they say nothing", async () => {
    const { resource } = await (await t.container()).read();
    assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash" });
  });

  t.it("have an id once in their database", async () => {
    const container = await t.container();
    await fails(t.database.containers.create({ id: container.id, partitionKey: "/pk" }), 409, {
      text: "Resource with specified id, name, or unique index already exists.",
    });
    const { statusCode, resource } = await t.database.containers.createIfNotExists({ id: container.id, partitionKey: "/pk" });
    assert.equal(statusCode, 200);
    assert.equal(resource.id, container.id);
    const { database } = await t.client.databases.create({ id: t.name() });
    assert.equal((await database.containers.create({ id: container.id, partitionKey: "/pk" })).statusCode, 201);
    await database.delete();
  });

  t.it("are read by name and by _rid, also mixed", async () => {
    const { resource } = await (await t.container()).read();
    const { resource: database } = await t.database.read();
    const paths = [
      [`/dbs/${database.id}/colls/${resource.id}`, false],
      [`/dbs/${database._rid}/colls/${resource._rid}`, true],
      [`/${resource._self}`, true],
      [`/dbs/${database._rid}/colls/${resource._rid}`, false],
    ];
    for (const [path, byRid] of paths) {
      const answer = await t.rest.get(path, { byRid });
      assert.equal(answer.status, 200, path);
      assert.deepEqual(answer.json, resource);
      assert.equal(answer.charge, 2);
      assert.equal(answer.headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
      assert.equal(answer.headers["x-ms-cosmos-max-content-length"], "2097152");
      assert.match(answer.headers["x-ms-resource-quota"], /documentsSize=52428800;/);
      assert.match(answer.headers["x-ms-resource-usage"], /documentsCount=0;/);
    }
  });

  t.it("are not modified when the etag is known", async () => {
    const path = await t.containerPath();
    const { etag } = (await t.rest.get(path)).headers;
    const answer = await t.rest.get(path, { headers: { "if-none-match": etag } });
    assert.equal(answer.status, 304);
    assert.equal(answer.bytes.length, 0);
    assert.equal(answer.headers.etag, etag);
  });

  t.it("are listed in pages and found by query", async () => {
    const { database } = await t.client.databases.create({ id: t.name() });
    const ids = ["b", "a", "c", "e", "d"];
    for (const id of ids) await database.containers.create({ id, partitionKey: "/pk" });
    const all = await database.containers.readAll().fetchAll();
    assert.deepEqual(all.resources.map((resource) => resource.id), ids);
    assert.deepEqual(all.resources[0], (await database.container("b").read()).resource);

    const seen = [];
    let continuation;
    do {
      const headers = { "x-ms-max-item-count": "2", ...(continuation && { "x-ms-continuation": continuation }) };
      const answer = await t.rest.get(`/dbs/${database.id}/colls`, { headers });
      assert.equal(answer.json._rid, (await database.read()).resource._rid);
      assert.equal(answer.json._count, answer.json.DocumentCollections.length);
      seen.push(answer.json.DocumentCollections.map((resource) => resource.id));
      continuation = answer.headers["x-ms-continuation"];
    } while (continuation);
    assert.deepEqual(seen, [["b", "a"], ["c", "e"], ["d"]]);

    const spec = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "e" }] };
    const found = await database.containers.query(spec).fetchAll();
    assert.deepEqual(found.resources.map((resource) => resource.id), ["e"]);
    await database.delete();
  });

  t.it("are replaced: indexing policy and time to live", async () => {
    const container = await t.container();
    const { resource: before } = await container.read();
    const policy = {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/a/?" }],
      excludedPaths: [{ path: "/*" }],
      compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
    };
    const { resource: after, statusCode } = await container.replace({ ...before, indexingPolicy: policy, defaultTtl: 100 });
    assert.equal(statusCode, 200);
    assert.deepEqual(after.indexingPolicy, { ...policy, excludedPaths: [{ path: "/*" }, { path: '/"_etag"/?' }] });
    assert.equal(after.defaultTtl, 100);
    assert.deepEqual(after.partitionKey, before.partitionKey);
    assert.equal(after._rid, before._rid);
    assert.notEqual(after._etag, before._etag);
    assert.deepEqual((await container.read()).resource, after);

    const stale = { accessCondition: { type: "IfMatch", condition: before._etag } };
    await fails(container.replace({ ...before, defaultTtl: 5 }, stale), 412);
    const fresh = { accessCondition: { type: "IfMatch", condition: after._etag } };
    const { resource: last } = await container.replace({ ...before, defaultTtl: undefined }, fresh);
    assert.equal(last.defaultTtl, undefined);
  });

  t.it("keep their partition key, their unique keys and their id", async () => {
    const container = await t.container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
    const { resource } = await container.read();
    assert.deepEqual(resource.uniqueKeyPolicy, { uniqueKeys: [{ paths: ["/email"] }] });
    await fails(container.replace({ ...resource, partitionKey: { paths: ["/other"], kind: "Hash" } }), 400, {
      text: "partition key cannot be changed",
    });
    const unique = "The unique index cannot be modified. To change the unique index, remove the container and re-create a new one.";
    await fails(container.replace({ ...resource, uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/name"] }] } }), 403, { text: unique });
    await fails(container.replace({ ...resource, uniqueKeyPolicy: undefined }), 403, { text: unique });
    await fails(container.replace({ ...resource, id: "another" }), 400);
    const { resource: same } = await container.replace({ id: container.id, partitionKey: { paths: ["/pk"] }, uniqueKeyPolicy: resource.uniqueKeyPolicy });
    assert.deepEqual(same.partitionKey, resource.partitionKey);
  });

  t.it("are deleted with their items; the name is free at once", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const { resource: before } = await container.read();
    assert.equal((await container.delete()).statusCode, 204);
    await fails(container.read(), 404, { text: notFound });
    refused(await t.rest.delete(`${t.databasePath}/colls/${container.id}`), 404, { text: notFound });
    const item = await t.rest.get(`${t.databasePath}/colls/${container.id}/docs/1`, { headers: key("a") });
    refused(item, 404, { substatus: 1003, text: "Owner resource does not exist" });
    const { resource: after } = await t.database.containers.create({ id: container.id, partitionKey: "/pk" });
    assert.notEqual(after._rid, before._rid);
    await fails(t.database.container(container.id).item("1", "a").read().then(({ statusCode }) => { throw { code: statusCode, message: "" }; }), 404);
    refused(await t.rest.get(`/${before._self}`, { byRid: true }), 404);
  });

  t.it("of a database that is not there are missing their owner", async () => {
    refused(await t.rest.get("/dbs/nobody/colls"), 404, { substatus: 1003 });
    refused(await t.rest.get("/dbs/nobody/colls/c"), 404, { substatus: 1003 });
    refused(await t.rest.post("/dbs/nobody/colls", { id: "c", partitionKey: v2() }), 404, { substatus: 1003 });
    refused(await t.rest.delete("/dbs/nobody/colls/c"), 404, { substatus: 1003 });
    refused(await t.rest.get("/dbs/nobody/colls/c/docs/1", { headers: key("a") }), 404, { substatus: 1003 });
  });

  t.it("whose rid is not the one intended are refused with 1024", async () => {
    const path = await t.containerPath();
    const { _rid } = (await t.rest.get(path)).json;
    const right = await t.rest.get(`${path}/docs`, { headers: { "x-ms-cosmos-intended-collection-rid": _rid } });
    assert.equal(right.status, 200);
    const wrong = await t.rest.get(`${path}/docs`, { headers: { "x-ms-cosmos-intended-collection-rid": "AQAAAIEAAH8=" } });
    refused(wrong, 400, { substatus: 1024 });
  });
});

suite("pkranges", (t) => {
  t.it("are one for little throughput", async () => {
    const container = await t.container({ partitionKey: v2() });
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, 1);
    const [range] = resources;
    const { resource } = await container.read();
    assert.deepEqual(withoutSystem(range), {
      id: "0",
      minInclusive: "",
      maxExclusive: "FF",
      ridPrefix: 0,
      throughputFraction: 1,
      status: "online",
      parents: [],
      ownedArchivalPKRangeIds: [],
      lsn: range.lsn,
    });
    const bytes = ridBytes(range._rid);
    assert.equal(bytes.length, 16);
    assert.deepEqual(bytes.subarray(0, 8), ridBytes(resource._rid));
    assert.equal(bytes[15] >> 4, 5, "the mark of a range");
    assert.equal(range._self, `${resource._self}pkranges/${range._rid}/`);
    checkStamp(range);
  });

  t.it("are four of equal width for 40,000 RU/s", async () => {
    const container = await t.container({ partitionKey: v2(), maxThroughput: 40000 });
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    const bounds = ["", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE", "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD", "FF"];
    assert.deepEqual(resources.map((range) => [range.id, range.minInclusive, range.maxExclusive]), [
      ["0", bounds[0], bounds[1]],
      ["1", bounds[1], bounds[2]],
      ["2", bounds[2], bounds[3]],
      ["3", bounds[3], bounds[4]],
    ]);
    for (const range of resources) assert.equal(range.throughputFraction, 0.25);
    const feedRanges = await container.getFeedRanges();
    assert.equal(feedRanges.length, 4);
  });

  t.it("of the first hash version are bounded by numbers", async () => {
    const container = await t.container({ maxThroughput: 50000 });
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, 5);
    const mins = resources.map((range) => range.minInclusive);
    assert.equal(mins[0], "");
    assert.ok(mins.includes("05C1C9CD673398"), mins.join());
    assert.ok(mins.includes("05C1D9CD673398"), mins.join());
    assert.deepEqual(resources.map((range) => range.maxExclusive), [...mins.slice(1), "FF"]);
  });

  t.it("come in one page whatever its size, and not again to who has them", async () => {
    const path = await t.containerPath({ partitionKey: v2(), maxThroughput: 40000 });
    for (const headers of [{ "x-ms-max-item-count": "3" }, { "x-ms-max-item-count": "1" }, {}]) {
      const page = await t.rest.get(`${path}/pkranges`, { headers });
      assert.deepEqual(page.json.PartitionKeyRanges.map((range) => range.id), ["0", "1", "2", "3"]);
      assert.equal(page.headers["x-ms-continuation"], undefined);
      assert.equal(page.headers["x-ms-item-count"], "4");
    }
    const whole = await t.rest.get(`${path}/pkranges`, { headers: { "a-im": "Incremental feed" } });
    assert.equal(whole.json._count, 4);
    const headers = { "a-im": "Incremental feed", "if-none-match": whole.headers.etag };
    assert.equal((await t.rest.get(`${path}/pkranges`, { headers })).status, 304);
    const { _rid } = (await t.rest.get(path)).json;
    assert.equal(whole.json._rid, _rid);
    assert.equal(whole.headers["x-ms-content-path"], _rid);
  });

  t.it("are addressed by _rid too", async () => {
    const path = await t.containerPath();
    const { _self } = (await t.rest.get(path)).json;
    assert.equal((await t.rest.get(`/${_self}pkranges`, { byRid: true })).json._count, 1);
  });
});

suite("fixed containers", (t) => {
  const fixed = async (version) => {
    const id = t.name("fixed");
    const made = await t.rest.post(`${t.databasePath}/colls`, { id }, { headers: { "x-ms-version": version } });
    return { id, made, path: `${t.databasePath}/colls/${id}` };
  };

  t.it("are made without a partition key, by old and new API versions", async () => {
    for (const version of ["2015-12-16", "2017-02-22", "2018-09-17", "2018-12-31", "2020-07-15"]) {
      const { made } = await fixed(version);
      assert.equal(made.status, 201, made.text);
      assert.deepEqual(made.json.partitionKey, version < "2018-12-31" ? undefined : { paths: ["/_partitionKey"], kind: "Hash", systemKey: true });
    }
  });

  t.it("hold items without a key, whatever they contain", async () => {
    const { path } = await fixed("2017-02-22");
    const old = { headers: { "x-ms-version": "2017-02-22" } };
    const one = await t.rest.post(`${path}/docs`, { id: "1", pk: "anything" }, old);
    assert.equal(one.status, 201, one.text);
    assert.equal((await t.rest.post(`${path}/docs`, { id: "1", pk: "other" }, old)).status, 409);
    for (const headers of [{}, { "x-ms-documentdb-partitionkey": "[]" }, { "x-ms-documentdb-partitionkey": "[{}]" }]) {
      const read = await t.rest.get(`${path}/docs/1`, { headers });
      assert.equal(read.status, 200, read.text);
      assert.equal(read.json.pk, "anything");
    }
    const replaced = await t.rest.put(`${path}/docs/1`, { id: "1", pk: "changed" }, old);
    assert.equal(replaced.json.pk, "changed");
    await t.rest.post(`${path}/docs`, { id: "2" }, old);
    const feed = await t.rest.get(`${path}/docs`, old);
    assert.deepEqual(feed.json.Documents.map((item) => item.id), ["1", "2"]);
    assert.equal((await t.rest.delete(`${path}/docs/1`, old)).status, 204);
    refused(await t.rest.get(`${path}/docs/1`, old), 404);
    refused(await t.rest.get(`${path}/docs/2`, { headers: key("a") }), 400, { substatus: 1001 });
  });

  t.it("have one range and at most 10,000 RU/s", async () => {
    const { path } = await fixed("2017-02-22");
    assert.equal((await t.rest.get(`${path}/pkranges`)).json._count, 1);
    const headers = { "x-ms-version": "2017-02-22", "x-ms-offer-throughput": "20000" };
    refused(await t.rest.post(`${t.databasePath}/colls`, { id: t.name() }, { headers }), 400);
  });
});
