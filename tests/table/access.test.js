import { AzureSASCredential, generateAccountSas, generateTableSas, TableClient, TableServiceClient } from "@azure/data-tables";
import { all, assert, fails, refused, suite } from "./harness.js";

const minutes = (n) => new Date(Date.now() + n * 60_000);

// Not the emulator's key: with that one, the server refuses web pages of other sites whatever the rules of CORS say.
const key = Buffer.from("a key of the tests, 64 bytes long, so that web pages are allowed").toString("base64");

suite(
  "access",
  (t) => {
    // A client with a shared access signature for the table, in path style or host style.
    const withSas = (client, options, base = t.base) => new TableClient(base, client.tableName, new AzureSASCredential(generateTableSas(client.tableName, t.credential, options)), t.options);

    t.it("by a signature for a table allows what it says", async () => {
      const client = await t.table();
      await client.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
      for (const base of [t.base, t.hostBase]) {
        const reader = withSas(client, { permissions: { query: true }, expiresOn: minutes(10) }, base);
        assert.equal((await reader.getEntity("p", "r")).n, 1);
        assert.equal((await all(reader.listEntities())).length, 1);
        await fails(reader.createEntity({ partitionKey: "p", rowKey: "s" }), 403, "AuthorizationFailure");
        await fails(reader.deleteEntity("p", "r"), 403, "AuthorizationFailure");
        await fails(reader.upsertEntity({ partitionKey: "p", rowKey: "r" }), 403, "AuthorizationFailure");
      }
      const adder = withSas(client, { permissions: { add: true }, expiresOn: minutes(10) });
      await adder.createEntity({ partitionKey: "p", rowKey: "added" });
      await fails(adder.getEntity("p", "r"), 403, "AuthorizationFailure");
      await fails(adder.upsertEntity({ partitionKey: "p", rowKey: "x" }), 403, "AuthorizationFailure");
      await fails(adder.submitTransaction([["create", { partitionKey: "p", rowKey: "b1" }], ["delete", { partitionKey: "p", rowKey: "r" }]]), 403, "AuthorizationFailure");
      const other = await t.table();
      const foreign = new TableClient(t.base, other.tableName, new AzureSASCredential(generateTableSas(client.tableName, t.credential, { permissions: { query: true }, expiresOn: minutes(10) })), t.options);
      await fails(all(foreign.listEntities()), 403, "AuthorizationFailure");
    });

    t.it("by a signature has a time, a protocol and addresses", async () => {
      const client = await t.table();
      const permissions = { query: true };
      await fails(all(withSas(client, { permissions, expiresOn: minutes(-1) }).listEntities()), 403, "AuthenticationFailed");
      await fails(all(withSas(client, { permissions, startsOn: minutes(5), expiresOn: minutes(10) }).listEntities()), 403, "AuthenticationFailed");
      const secure = all(withSas(client, { permissions, expiresOn: minutes(10), protocol: "https" }).listEntities());
      await (t.scheme === "https" ? secure : fails(secure, 403, "AuthorizationFailure"));
      await fails(all(withSas(client, { permissions, expiresOn: minutes(10), ipRange: { start: "10.0.0.1" } }).listEntities()), 403, "AuthorizationFailure");
      assert.deepEqual(await all(withSas(client, { permissions, expiresOn: minutes(10), ipRange: { start: "127.0.0.1" } }).listEntities()), []);
      assert.deepEqual(await all(withSas(client, { permissions, expiresOn: minutes(10), ipRange: { start: "127.0.0.0", end: "127.0.0.9" } }).listEntities()), []);
      await fails(all(withSas(client, { permissions, expiresOn: minutes(10), ipRange: { start: "127.0.0.2", end: "127.0.0.9" } }).listEntities()), 403, "AuthorizationFailure");
      const sas = generateTableSas(client.tableName, t.credential, { permissions, expiresOn: minutes(10) });
      refused(await t.rest.get(`/${client.tableName}()?${sas.replace("sp=r", "sp=raud")}`, { kind: null }), 403, "AuthenticationFailed");
      refused(await t.rest.get(`/${client.tableName}()?${sas}&sp=r`, { kind: null }), 403, "AuthenticationFailed");
    });

    t.it("by a signature may have bounds of keys", async () => {
      const client = await t.table();
      for (const p of ["a", "b", "c"]) for (const r of ["1", "2", "3"]) await client.createEntity({ partitionKey: p, rowKey: r });
      const bounded = withSas(client, { permissions: { query: true, add: true, delete: true }, expiresOn: minutes(10), startPartitionKey: "a", startRowKey: "2", endPartitionKey: "b", endRowKey: "2" });
      const keys = async (filter) => (await all(bounded.listEntities({ queryOptions: { filter } }))).map((e) => e.partitionKey + e.rowKey);
      assert.deepEqual(await keys(), ["a2", "a3", "b1", "b2"]);
      assert.deepEqual(await keys("PartitionKey eq 'b'"), ["b1", "b2"]);
      assert.deepEqual(await keys("PartitionKey eq 'c' or RowKey eq '3'"), ["a3"]);
      await fails(bounded.getEntity("a", "1"), 403, "AuthorizationFailure");
      await fails(bounded.deleteEntity("b", "3"), 403, "AuthorizationFailure");
      await fails(bounded.createEntity({ partitionKey: "c", rowKey: "9" }), 403, "AuthorizationFailure");
      await fails(bounded.submitTransaction([["create", { partitionKey: "b", rowKey: "0" }], ["create", { partitionKey: "b", rowKey: "9" }]]), 403, "AuthorizationFailure");
      await bounded.createEntity({ partitionKey: "b", rowKey: "0" });
      assert.equal((await bounded.getEntity("a", "2")).rowKey, "2");
    });

    t.it("by a signature for the account allows kinds of resources", async () => {
      const client = await t.table();
      const service = (permissions, resourceTypes) => new TableServiceClient(t.base, new AzureSASCredential(generateAccountSas(t.credential, { permissions: generatePermissions(permissions), resourceTypes, expiresOn: minutes(10) })), t.options);
      const lister = service("rl", "sco");
      assert.ok((await all(lister.listTables())).some((table) => table.name === client.tableName));
      await fails(lister.createTable(t.name()), 403, "AuthorizationFailure");
      const name = t.name();
      await service("w", "c").createTable(name);
      await fails(all(service("l", "o").listTables()), 403, "AuthorizationFailure");
      await service("d", "c").deleteTable(name);
      await fails(client.getEntity("p", "r"), 404, "ResourceNotFound");
    });

    t.it("by stored policies can be withdrawn", async () => {
      const client = await t.table();
      await client.createEntity({ partitionKey: "p", rowKey: "r" });
      assert.deepEqual(await client.getAccessPolicy().then((list) => list.filter((x) => x.id)), []);
      const accessPolicy = { start: minutes(-5), expiry: minutes(30), permission: "r" };
      await client.setAccessPolicy([{ id: "readers & <co>", accessPolicy }, { id: "empty" }]);
      const [stored, empty] = await client.getAccessPolicy();
      assert.equal(stored.id, "readers & <co>");
      assert.equal(stored.accessPolicy.permission, "r");
      assert.ok(Math.abs(stored.accessPolicy.expiry - accessPolicy.expiry) < 1000);
      assert.equal(empty.id, "empty");
      const reader = withSas(client, { identifier: "readers & <co>" });
      assert.equal((await all(reader.listEntities())).length, 1);
      await fails(reader.deleteEntity("p", "r"), 403, "AuthorizationFailure");
      await fails(all(withSas(client, { identifier: "nobody" }).listEntities()), 403, "AuthenticationFailed");
      await fails(all(withSas(client, { identifier: "readers & <co>", permissions: { query: true }, expiresOn: minutes(3) }).listEntities()), 403, "AuthenticationFailed");
      await client.setAccessPolicy([]);
      await fails(all(reader.listEntities()), 403, "AuthenticationFailed");
      const sas = generateTableSas(client.tableName, t.credential, { permissions: { query: true }, expiresOn: minutes(3) });
      refused(await t.rest.get(`/${client.tableName}?comp=acl&${sas}`, { kind: null }), 403, "AuthorizationFailure");
      const put = (body) => t.rest.put(`/${client.tableName}?comp=acl`, body, { headers: { "content-type": "application/xml" } });
      const policies = (inner) => `<?xml version="1.0"?><SignedIdentifiers>${inner}</SignedIdentifiers>`;
      const one = "<SignedIdentifier><Id>a</Id></SignedIdentifier>";
      for (const bad of ["<", "x", policies("<Other/>"), policies("<SignedIdentifier><Id></Id></SignedIdentifier>"), policies(one).replace("</Id>", ""), "<a>".repeat(5000), policies("<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>xyz</Permission></AccessPolicy></SignedIdentifier>"), "<!DOCTYPE a>"]) {
        refused(await put(bad), 400, "InvalidXmlDocument");
      }
      refused(await put(policies(one.repeat(6))), 400, "InvalidInput");
      refused(await t.rest.get("/nosuchtable?comp=acl"), 404, "TableNotFound");
    });

    t.it("has properties, statistics and rules of CORS", async () => {
      const first = await t.service.getProperties();
      assert.equal(first.logging.version, "1.0");
      assert.equal(first.hourMetrics.enabled, false);
      const rule = { allowedOrigins: "https://one.example,https://two.example", allowedMethods: "GET,PUT", allowedHeaders: "x-ms-*,accept", exposedHeaders: "x-ms-request-id", maxAgeInSeconds: 77 };
      await t.service.setProperties({ cors: [rule], minuteMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 7 } } });
      const second = await t.service.getProperties();
      assert.deepEqual(second.cors, [rule]);
      assert.equal(second.minuteMetrics.retentionPolicy.days, 7);
      assert.equal(second.logging.version, "1.0");
      const stats = await t.service.getStatistics();
      assert.equal(stats.geoReplication.status, "live");

      const ask = (origin, method = "GET", headers) => t.rest.send("OPTIONS", "/whatever", { kind: null, headers: { origin, "access-control-request-method": method, ...(headers ? { "access-control-request-headers": headers } : {}) } });
      const allowed = await ask("https://two.example", "PUT", "X-MS-Date, Accept");
      assert.equal(allowed.status, 200, allowed.text);
      assert.equal(allowed.headers["access-control-allow-origin"], "https://two.example");
      assert.equal(allowed.headers["access-control-allow-methods"], "PUT");
      assert.equal(allowed.headers["access-control-allow-headers"], "X-MS-Date, Accept");
      assert.equal(allowed.headers["access-control-max-age"], "77");
      refused(await ask("https://three.example"), 403, "CorsPreflightFailure");
      refused(await ask("https://one.example", "DELETE"), 403, "CorsPreflightFailure");
      refused(await ask("https://one.example", "GET", "authorization"), 403, "CorsPreflightFailure");
      refused(await ask("https://one.example", null), 400, "InvalidInput");
      const page = await t.rest.get("/Tables", { headers: { origin: "https://one.example" } });
      assert.equal(page.headers["access-control-allow-origin"], "https://one.example");
      assert.equal(page.headers["access-control-expose-headers"], "x-ms-request-id");
      assert.equal((await t.rest.get("/Tables", { headers: { origin: "https://three.example" } })).headers["access-control-allow-origin"], undefined);
      const put = (body) => t.rest.put("/?restype=service&comp=properties", body, { headers: { "content-type": "application/xml" } });
      for (const bad of ["", "<A/>", "<StorageServiceProperties><Nonsense/></StorageServiceProperties>", "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors></StorageServiceProperties>"]) refused(await put(bad), 400, "InvalidXmlDocument");
      await t.service.setProperties({ cors: [] });
      refused(await ask("https://one.example"), 403, "CorsPreflightFailure");
      assert.equal((await t.service.getProperties()).minuteMetrics.enabled, true, "sections that are not given stay");
    });
  },
  { flags: ["--key", key], key },
);

function generatePermissions(letters) {
  const names = { r: "query", w: "write", d: "delete", l: "list", a: "add", u: "update" };
  return Object.fromEntries([...letters].map((letter) => [names[letter], true]));
}
