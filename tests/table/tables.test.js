import { TableClient, TableServiceClient, odata } from "@azure/data-tables";
import { account, all, assert, fails, refused, suite } from "./harness.js";

suite("tables", (t) => {
  t.it("are created, listed and deleted", async () => {
    const name = t.name("people");
    await t.service.createTable(name);
    const names = (await all(t.service.listTables())).map((table) => table.name);
    assert.ok(names.includes(name), names.join());
    await t.service.deleteTable(name);
    const left = (await all(t.service.listTables())).map((table) => table.name);
    assert.ok(!left.includes(name), left.join());
  });

  t.it("have names that are found whatever their case, and kept as they were written", async () => {
    const name = t.name("MixedCase");
    const client = t.client(name);
    await client.createTable();
    const lower = t.client(name.toLowerCase());
    await lower.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    assert.equal((await client.getEntity("p", "r")).n, 1);
    refused(await t.rest.post("/Tables", { TableName: name.toUpperCase() }), 409, "TableAlreadyExists");
    const found = await all(t.service.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }));
    assert.deepEqual(found.map((table) => table.name), [name]);
    await lower.deleteTable();
    await fails(client.getEntity("p", "r"), 404, "TableNotFound");
  });

  t.it("are listed by name, in pages, and by a filter", async () => {
    const names = ["zeta", "Alpha", "beta", "Gamma", "delta"].map((word) => t.name(`list${word}`));
    for (const name of names) await t.service.createTable(name);
    const filter = "TableName ge 'list' and TableName lt 'lisu'";
    const pages = [];
    for await (const page of t.service.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 })) pages.push(page.map((x) => x.name));
    const mine = pages.flat().filter((name) => name.includes(t.scheme));
    assert.deepEqual(mine, names.filter((n) => n.startsWith("list")).sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)));
    assert.ok(pages.every((page) => page.length <= 2), JSON.stringify(pages));
    for (const name of names) await t.service.deleteTable(name);
  });

  t.it("must have letters and digits in their names", async () => {
    for (const [name, code] of [["ab", "OutOfRangeInput"], ["1abc", "InvalidResourceName"], ["a-b-c", "InvalidResourceName"], ["a".repeat(64), "OutOfRangeInput"], ["tables", "InvalidResourceName"], ["", "OutOfRangeInput"]]) {
      refused(await t.rest.post("/Tables", { TableName: name }), 400, code);
    }
    refused(await t.rest.post("/Tables", { Name: "abc" }), 400, "InvalidInput");
    refused(await t.rest.post("/Tables", "{"), 400, "InvalidInput");
    refused(await t.rest.post("/Tables", "[]"), 400, "InvalidInput");
  });

  t.it("answer as the service does", async () => {
    const name = t.name();
    const made = await t.rest.post("/Tables", { TableName: name });
    assert.equal(made.status, 201);
    assert.equal(made.json.TableName, name);
    assert.equal(made.json["odata.metadata"], `${t.base}/$metadata#Tables/@Element`);
    assert.equal(made.json["odata.editLink"], `Tables('${name}')`);
    assert.equal(made.headers.location, `${t.base}/Tables('${name}')`);
    assert.match(made.headers["content-type"], /odata=fullmetadata/);
    assert.ok(Number(made.headers["x-ms-request-charge"]) > 0);
    const quiet = await t.rest.post("/Tables", { TableName: t.name() }, { headers: { Prefer: "return-no-content", "x-ms-client-request-id": "me" } });
    assert.equal(quiet.status, 204);
    assert.equal(quiet.headers["preference-applied"], "return-no-content");
    assert.equal(quiet.headers["x-ms-client-request-id"], "me");
    const plain = await t.rest.get(`/Tables('${name}')`, { headers: { accept: "application/json;odata=nometadata" } });
    assert.deepEqual(plain.json, { TableName: name });
    assert.equal((await t.rest.send("DELETE", `/Tables('${name}')`)).status, 204);
    refused(await t.rest.send("DELETE", `/Tables('${name}')`), 404, "ResourceNotFound");
    refused(await t.rest.get(`/Tables('${name}')`), 404, "ResourceNotFound");
    refused(await t.rest.send("PUT", "/Tables", { body: {} }), 405, "MethodNotAllowed");
  });

  t.it("have throughput, fixed or autoscale", async () => {
    const refusal = await t.rest.post("/Tables", { TableName: t.name() }, { headers: { "x-ms-offer-throughput": "abc" } });
    refused(refusal, 400, "InvalidHeaderValue");
    const made = await t.rest.post("/Tables", { TableName: t.name() }, { headers: { "x-ms-offer-throughput": "1000" } });
    assert.equal(made.status, 201, made.text);
    const scaled = { "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":4000}' };
    assert.equal((await t.rest.post("/Tables", { TableName: t.name() }, { headers: scaled })).status, 201);
    refused(await t.rest.post("/Tables", { TableName: t.name() }, { headers: { ...scaled, "x-ms-offer-throughput": "400" } }), 400, "InvalidHeaderValue");
  });

  t.it("are reached by the emulators' connection strings, and in host style", async () => {
    const name = t.name();
    for (const [who, endpoint] of [[account, t.base], ["localhost", t.hostBase]]) {
      const connection = `DefaultEndpointsProtocol=${t.scheme};AccountName=${who};AccountKey=${t.key};TableEndpoint=${endpoint};`;
      await TableServiceClient.fromConnectionString(connection, t.options).createTable(who === account ? name : t.name());
    }
    const hosted = new TableClient(t.hostBase, name, t.credential, t.options);
    await hosted.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    await hosted.updateEntity({ partitionKey: "p", rowKey: "r", m: 2 }, "Merge"); /* POST with X-HTTP-Method on localhost */
    const found = await hosted.getEntity("p", "r");
    assert.equal(found.n, 1);
    assert.equal(found.m, 2);
  });
});
