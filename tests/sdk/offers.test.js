// Offers: the throughput of databases and containers.

import { assert, suite, fails, refused, checkStamp, ridBytes } from "./harness.js";

suite("offers", (t) => {
  t.it("are made with a container", async () => {
    const container = await t.container({ throughput: 700 });
    const { resource, offer } = await container.readOffer();
    const { resource: parent } = await container.read();
    assert.equal(resource.offerVersion, "V2");
    assert.equal(resource.offerType, "Invalid");
    assert.equal(resource.content.offerThroughput, 700);
    assert.equal(resource.resource, parent._self);
    assert.equal(resource.offerResourceId, parent._rid);
    assert.equal(resource.id, resource._rid);
    assert.equal(resource._rid.length, 4);
    assert.equal(ridBytes(resource._rid).length, 3);
    assert.equal(resource._self, `offers/${resource._rid}/`);
    checkStamp(resource);
    const read = await offer.read();
    assert.deepEqual(read.resource, resource);
    assert.equal(read.headers["x-ms-cosmos-min-throughput"], "400");
    assert.equal(read.headers["x-ms-offer-replace-pending"], "false");
  });

  t.it("are 400 RU/s when a container says nothing", async () => {
    const { resource } = await (await t.container()).readOffer();
    assert.equal(resource.content.offerThroughput, 400);
    assert.equal(resource.content.offerAutopilotSettings, undefined);
  });

  t.it("may scale by themselves", async () => {
    const container = await t.container({ maxThroughput: 4000 });
    const { resource } = await container.readOffer();
    assert.deepEqual(resource.content.offerAutopilotSettings, { maxThroughput: 4000 });
  });

  t.it("are replaced", async () => {
    const container = await t.container();
    const { resource, offer } = await container.readOffer();
    resource.content = { offerThroughput: 1200 };
    const { resource: after, statusCode } = await offer.replace(resource);
    assert.equal(statusCode, 200);
    assert.equal(after.content.offerThroughput, 1200);
    assert.notEqual(after._etag, resource._etag);
    assert.equal(after._rid, resource._rid);
    assert.deepEqual((await container.readOffer()).resource, after);

    const other = await t.rest.put(`/offers/${resource._rid}`, resource, { headers: { "if-match": resource._etag } });
    refused(other, 412);
    const right = await t.rest.put(`/offers/${resource._rid}`, { ...resource, content: { offerThroughput: 400 } }, { headers: { "if-match": after._etag } });
    assert.equal(right.json.content.offerThroughput, 400);
  });

  t.it("go from manual to autoscale and back", async () => {
    const { resource, offer } = await (await t.container({ throughput: 1000 })).readOffer();
    const to = (name) => ({ headers: { [`x-ms-cosmos-migrate-offer-to-${name}`]: "true" } });
    const up = await t.rest.put(`/offers/${resource._rid}`, resource, to("autopilot"));
    assert.deepEqual(up.json.content.offerAutopilotSettings, { maxThroughput: 1000 });
    assert.equal(up.json.content.offerThroughput, 100, "what autoscale goes down to");
    const down = await t.rest.put(`/offers/${resource._rid}`, up.json, to("manual-throughput"));
    assert.equal(down.json.content.offerAutopilotSettings, undefined);
    assert.equal(down.json.content.offerThroughput, 1000);
    const set = await offer.replace({ ...resource, content: { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: 2000 } } });
    assert.equal(set.resource.content.offerAutopilotSettings.maxThroughput, 2000);
  });

  t.it("are refused outside their limits and between their steps", async () => {
    for (const throughput of [100, 399, 450, 1000100, 2000000]) {
      await fails(t.container({ throughput }), 400, { text: "throughput" });
    }
    for (const maxThroughput of [400, 1500, 1001000]) await fails(t.container({ maxThroughput }), 400);
    const { resource, offer } = await (await t.container()).readOffer();
    for (const offerThroughput of [0, 450, 1000100]) {
      await fails(offer.replace({ ...resource, content: { offerThroughput } }), 400);
    }
    await fails(offer.replace({ ...resource, content: {} }), 400);
    const both = { "x-ms-offer-throughput": "400", "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":4000}' };
    refused(await t.rest.post(`${t.databasePath}/colls`, { id: t.name(), partitionKey: { paths: ["/pk"] } }, { headers: both }), 400);
  });

  t.it("may not fall below a hundredth of the highest", async () => {
    const { resource, offer } = await (await t.container({ throughput: 100000 })).readOffer();
    assert.equal((await offer.read()).headers["x-ms-cosmos-min-throughput"], "1000");
    await fails(offer.replace({ ...resource, content: { offerThroughput: 900 } }), 400, { text: "between 1000 and" });
    const { resource: least } = await offer.replace({ ...resource, content: { offerThroughput: 1000 } });
    assert.equal(least.content.offerThroughput, 1000);
  });

  t.it("are listed, queried and read by their rid", async () => {
    const { resource } = await (await t.container()).readOffer();
    const { resources: all } = await t.client.offers.readAll().fetchAll();
    assert.ok(all.some((offer) => offer._rid === resource._rid));
    for (const query of [
      `SELECT * FROM root WHERE root.offerResourceId = "${resource.offerResourceId}"`,
      `SELECT * from root where root.resource = "${resource.resource}"`,
      `SELECT * FROM c WHERE c.id = '${resource.id}'`,
    ]) {
      const { resources } = await t.client.offers.query(query).fetchAll();
      assert.deepEqual(resources, [resource], query);
    }
    const answer = await t.rest.get(`/offers/${resource._rid}`);
    assert.deepEqual(answer.json, resource);

    const seen = [];
    let continuation;
    do {
      const headers = { "x-ms-max-item-count": "3", ...(continuation && { "x-ms-continuation": continuation }) };
      const page = await t.rest.get("/offers", { headers });
      assert.ok(page.json._count <= 3);
      seen.push(...page.json.Offers.map((offer) => offer._rid));
      continuation = page.headers["x-ms-continuation"];
    } while (continuation);
    assert.deepEqual(seen, all.map((offer) => offer._rid));
  });

  t.it("cannot be created or deleted, and go with their container", async () => {
    const container = await t.container();
    const { resource } = await container.readOffer();
    refused(await t.rest.delete(`/offers/${resource._rid}`), 405);
    await container.delete();
    refused(await t.rest.get(`/offers/${resource._rid}`), 404);
    refused(await t.rest.get("/offers/zzzz"), 404);
  });
});
