// Provisioned throughput: rejected requests, offers, and shares.

import { describe } from "node:test";
import { assert, eventually, fails, key, refused, sleep, suite } from "./harness.js";
import { atomic, cool, creates, fill, holds, hot, numbers, obey, overload, rateIsLarge, read, together, v2, within } from "./overload.js";

suite("throttling", (t) => {
  // 400 RU/s in four ranges: 100 each. If `n` creates cost more than a second's worth, the rest is a debt that takes seconds to pay.
  const spend = async (path, pk, n, word = "spent") => {
    const operations = creates(pk, numbers(n).map((i) => `${word}-${i}`));
    const answer = await obey(() => t.rest.post(`${path}/docs`, operations, { headers: { ...atomic, ...key(pk) } }));
    assert.equal(answer.status, 200, answer.text);
    return answer.headers["x-ms-documentdb-partitionkeyrangeid"];
  };

  t.it("refuses every kind of item request while a share is overspent, and changes nothing", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    const item = `${path}/docs/1`;
    const headers = key("a");
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a", v: 1 }, { headers });
    const range = { "x-ms-documentdb-partitionkeyrangeid": await spend(path, "a", 90) };
    const query = { ...range, "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
    const answers = await Promise.all([
      t.rest.get(item, { headers }),
      t.rest.post(`${path}/docs`, { id: "2", pk: "a" }, { headers }),
      t.rest.post(`${path}/docs`, { id: "1", pk: "a", v: 2 }, { headers: { ...headers, "x-ms-documentdb-is-upsert": "True" } }),
      t.rest.put(item, { id: "1", pk: "a", v: 3 }, { headers }),
      t.rest.patch(item, [{ op: "set", path: "/v", value: 4 }], { headers: { ...headers, "content-type": "application/json_patch+json" } }),
      t.rest.delete(item, { headers }),
      t.rest.get(`${path}/docs`, { headers }),
      t.rest.get(`${path}/docs`, { headers: range }),
      t.rest.post(`${path}/docs`, { query: "SELECT * FROM c" }, { headers: query }),
      t.rest.post(`${path}/docs`, creates("a", ["3"]), { headers: { ...headers, ...atomic } }),
    ]);
    for (const answer of answers) {
      refused(answer, 429, { substatus: 3200, text: rateIsLarge });
      assert.equal(answer.charge, 0.38);
      within(Number(answer.headers["x-ms-retry-after-ms"]), 1, 12_000, "x-ms-retry-after-ms");
    }
    const kept = await obey(() => t.rest.get(item, { headers }));
    assert.equal(kept.json.v, 1);
    const all = await obey(() => t.rest.get(`${path}/docs`, { headers }));
    assert.equal(all.json._count, 91, "nothing was written");
  });

  t.it("ends when it said it would, for one who waits", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    await spend(path, "a", 80);
    const refusal = await t.rest.get(`${path}/docs/1`, { headers: key("a") });
    assert.equal(refusal.status, 429);
    const wait = Number(refusal.headers["x-ms-retry-after-ms"]);
    within(wait, 1000, 5500, "a debt of 460 units at 100 a second");
    await sleep(wait / 4);
    assert.equal((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).status, 429, "not before");
    await sleep((3 * wait) / 4 + 20);
    assert.equal((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).status, 404, "admitted, though there is no such item");
  });

  t.it("is of items only", async () => {
    const container = await t.container({ partitionKey: v2 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await spend(path, "a", 100);
    assert.equal((await t.rest.get(path)).status, 200);
    assert.equal((await t.rest.get(`${path}/pkranges`)).status, 200);
    assert.equal((await container.readOffer()).statusCode, 200);
    assert.equal((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).status, 429);
  });

  t.it("is asked of every range that a bulk request writes to", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False" };
    await spend(path, hot, 90);
    const operations = [cool, hot, hot].map((pk, i) => ({ ...creates(pk, [`bulk-${i}`])[0], partitionKey: JSON.stringify([pk]) }));
    const answer = await t.rest.post(`${path}/docs`, operations, { headers: bulk });
    assert.equal(answer.status, 207);
    assert.deepEqual(answer.json.map((result) => [result.statusCode, result.subStatusCode]), [[201, undefined], [429, 3200], [429, 3200]]);
    for (const { requestCharge, message } of answer.json.slice(1)) assert.deepEqual([requestCharge, message], [0.38, rateIsLarge]);
    within(answer.json[1].retryAfterMilliseconds, 1000, 12_000, "until the debt is paid");
    within(answer.json[2].retryAfterMilliseconds, 40, 100, "for one operation more");
    const nothing = await t.rest.post(`${path}/docs`, operations.slice(1), { headers: bulk });
    assert.deepEqual(nothing.json.map((result) => result.statusCode), [429, 429]);
  });

  t.it("admits as many operations of a bulk request as there is credit for", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False" };
    const operations = creates("a", numbers(60)).map((operation) => ({ ...operation, partitionKey: '["a"]' }));
    const answer = await t.rest.post(`${path}/docs`, operations, { headers: bulk });
    const written = answer.json.filter((result) => result.statusCode === 201);
    within(written.length, 15, 22, "100 units, about 6 each");
    assert.deepEqual(answer.json.slice(written.length).map((result) => result.statusCode), numbers(60 - written.length).map(() => 429));
    const all = await obey(() => t.rest.get(`${path}/docs`, { headers: key("a") }));
    assert.equal(all.json._count, written.length);
  });

  t.it("is asked once for many items read by one request, whatever they cost together", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    await fill(t.rest, path, "a", 150);
    const query = `SELECT * FROM c WHERE ${numbers(150).map((i) => `(c.id = "${i}" AND c.pk = "a")`).join(" OR ")}`;
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True" };
    const ask = () => t.rest.post(`${path}/docs`, { query }, { headers });
    const answer = await obey(ask);
    assert.equal(answer.json._count, 150);
    refused(await ask(), 429, { substatus: 3200, text: rateIsLarge });
    const cool = numbers(2).map((i) => `(c.id = "${i}" AND c.pk = "${i ? "a" : "aa"}")`).join(" OR ");
    refused(await t.rest.post(`${path}/docs`, { query: `SELECT * FROM c WHERE ${cool}` }, { headers }), 429, { substatus: 3200, text: rateIsLarge });
  });

  t.it("is of one range: a hot key is refused while a cool one elsewhere is served", async () => {
    const path = await t.containerPath({ partitionKey: v2 });
    await fill(t.rest, path, cool, 5);
    await spend(path, hot, 100);
    for (let i = 0; i < 5; i++) {
      assert.equal((await t.rest.get(`${path}/docs/${i}`, { headers: key(cool) })).status, 200);
      assert.equal((await t.rest.get(`${path}/docs/spent-1`, { headers: key(hot) })).status, 429);
    }
    const feed = await t.rest.get(`${path}/docs`);
    assert.equal(feed.status, 200, "a feed over both gives what can be had");
    assert.equal(feed.json._count, 5);
    const rest = { headers: { "x-ms-continuation": feed.headers["x-ms-continuation"] } };
    refused(await t.rest.get(`${path}/docs`, rest), 429, { substatus: 3200 });
    assert.equal((await obey(() => t.rest.get(`${path}/docs`, rest))).json._count, 100);
  });

  t.it("reaches users of the SDK as an error that says when to come back, if they retry by themselves", async () => {
    const container = await t.container({ partitionKey: v2 });
    await spend(`${t.databasePath}/colls/${container.id}`, "a", 100);
    const error = await fails(container.item("spent-0", "a").read(), 429, { substatus: 3200, text: rateIsLarge });
    assert.ok(error.retryAfterInMs > 0);
    assert.equal(error.headers["x-ms-request-charge"], "0.38");
  });

  t.it("is not seen by users of the SDK's default policy, which waits and retries", async () => {
    const container = await t.container({ partitionKey: v2 });
    const path = `${t.databasePath}/colls/${container.id}`;
    const client = t.newClient({ connectionPolicy: { enableBackgroundEndpointRefreshing: false } });
    const through = client.database(t.database.id).container(container.id);
    await spend(path, "a", 70);
    const answers = await Promise.all(numbers(20).map((i) => through.items.create({ id: `${i}`, pk: "a" })));
    assert.ok(answers.every(({ statusCode }) => statusCode === 201));
    assert.ok(answers.every(({ headers }) => headers["x-ms-throttle-retry-count"] <= 9));
    assert.ok(answers.filter(({ headers }) => headers["x-ms-throttle-retry-count"] >= 1).length > 10, "most had to come again");
    const feed = await through.items.readAll({ maxItemCount: 30 }).fetchAll();
    assert.equal(feed.resources.length, 90);
    const batch = await through.items.batch(creates("a", ["x", "y"]), "a");
    assert.equal(batch.code, 200);
    await spend(path, "a", 20, "again");
    const bulk = await through.items.executeBulkOperations(["p", "q"].map((id) => ({ operationType: "Create", partitionKey: "a", resourceBody: { id, pk: "a" } })));
    assert.deepEqual(bulk.map(({ response, error }) => response?.statusCode ?? error), [201, 201]);
    client.dispose();
  });
}, { flags: ["--throttling", "on", "--partition-max-throughput", "100"], concurrency: true });

suite("offers", (t) => {
  const set = (rid, content, more = {}) => t.rest.put(`/offers/${rid}`, { offerVersion: "V2", content, ...more });

  t.it("are changed one at a time", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 10_000 });
    const { resource, offer } = await container.readOffer();
    const answers = await Promise.all([500_000, 600_000, 700_000, 800_000].map((offerThroughput) => set(resource._rid, { offerThroughput })));
    const good = answers.filter(({ status }) => status === 200);
    const bad = answers.filter(({ status }) => status !== 200);
    assert.ok(good.length > 0 && bad.length > 0, answers.map(({ status }) => status).join());
    for (const answer of bad) refused(answer, 400, { substatus: 3205, text: "x-ms-offer-replace-pending" });
    assert.ok(good.some(({ headers }) => headers["x-ms-offer-replace-pending"] === "true"), "it takes splits");
    await eventually("nothing is pending", async () => (await offer.read()).headers["x-ms-offer-replace-pending"] === "false");
    const { resource: now } = await offer.read();
    assert.ok(good.some(({ json }) => json._etag === now._etag), "what was refused changed nothing");
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, now.content.offerThroughput / 10_000);
    const { headers } = await offer.read();
    assert.equal(headers["x-ms-cosmos-instant-scale-up-value"], String(now.content.offerThroughput));
    assert.equal((await set(resource._rid, { offerThroughput: 400_000 })).headers["x-ms-offer-replace-pending"], "false", "less takes no splits");
  });

  t.it("that cannot be are refused, and nothing changes", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 50_000 });
    const { resource, offer } = await container.readOffer();
    const autopilot = (maxThroughput) => ({ offerAutopilotSettings: { maxThroughput } });
    const contents = [
      { offerThroughput: 450 }, { offerThroughput: 300 }, { offerThroughput: 0 }, { offerThroughput: -400 }, { offerThroughput: 1_000_100 },
      { offerThroughput: 400.5 }, { offerThroughput: 1e300 }, { offerThroughput: "1000" }, { offerThroughput: null }, {}, undefined,
      autopilot(500), autopilot(1500), autopilot(1_001_000), autopilot("4000"), autopilot(-1), { offerThroughput: 400 }, autopilot(4000),
    ];
    for (const content of contents) refused(await set(resource._rid, content), 400);
    for (const offerVersion of ["V1", "V3", "", 2, null]) refused(await set(resource._rid, { offerThroughput: 60_000 }, { offerVersion }), 400, { text: "V2" });
    for (const body of ["[]", "{", '"x"', ""]) refused(await t.rest.put(`/offers/${resource._rid}`, body), 400);
    for (const rid of ["zzzz", "AAAA", "x", resource.offerResourceId]) refused(await set(rid, { offerThroughput: 60_000 }), 404);
    refused(await t.rest.put(`/offers/${resource._rid}`, { ...resource, content: { offerThroughput: 60_000 } }, { headers: { "if-match": '"other"' } }), 412);
    const { resource: now, headers } = await offer.read();
    assert.deepEqual(now, resource);
    assert.equal(headers["x-ms-cosmos-min-throughput"], "500");
    assert.equal(headers["x-ms-offer-replace-pending"], "false");
    assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 9);
    assert.equal((await set(resource._rid, { offerThroughput: 500 })).status, 200, "the least is allowed");
  });

  t.it("of autoscale have bounds of their own, and migrate both ways", async () => {
    const container = await t.container({ partitionKey: v2, maxThroughput: 20_000 });
    const { resource, offer } = await container.readOffer();
    assert.deepEqual(resource.content.offerAutopilotSettings, { maxThroughput: 20_000 });
    assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 2);
    assert.equal((await offer.read()).headers["x-ms-cosmos-min-throughput"], "2000");
    refused(await set(resource._rid, { offerAutopilotSettings: { maxThroughput: 1000 } }), 400, { text: "between 2000 and 1000000 inclusive in increments of 1000" });
    refused(await set(resource._rid, { offerAutopilotSettings: { maxThroughput: 4500 } }), 400, { text: "increments of 1000" });
    const up = await set(resource._rid, { offerAutopilotSettings: { maxThroughput: 40_000 } });
    assert.equal(up.json.content.offerAutopilotSettings.maxThroughput, 40_000);
    const count = async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    await eventually("four ranges", async () => (await count()) === 4);

    const migrate = async (name) => {
      const { resource: now } = await offer.read();
      return t.rest.put(`/offers/${resource._rid}`, now, { headers: { [`x-ms-cosmos-migrate-offer-to-${name}`]: "true" } });
    };
    const manual = await migrate("manual-throughput");
    assert.equal(manual.json.content.offerAutopilotSettings, undefined);
    assert.equal(manual.json.content.offerThroughput, 40_000);
    assert.equal(manual.headers["x-ms-cosmos-min-throughput"], "400");
    const least = await set(resource._rid, { offerThroughput: 4300 });
    assert.equal(least.json.content.offerThroughput, 4300);
    const back = await migrate("autopilot");
    assert.deepEqual(back.json.content.offerAutopilotSettings, { maxThroughput: 5000 }, "rounded up");
  });

  t.it("of a database are shared by at most 25 containers, each with a key", async () => {
    const { database } = await t.client.databases.create({ id: t.name(), throughput: 1000 });
    const path = `/dbs/${database.id}/colls`;
    for (const i of numbers(25)) assert.equal((await t.rest.post(path, { id: `c${i}`, partitionKey: v2 })).status, 201);
    const full = await t.rest.post(path, { id: "one more", partitionKey: v2 });
    refused(full, 403, { substatus: 1019, text: "25 containers" });
    refused(await t.rest.get(`${path}/one more`.replace(" ", "%20")), 404);
    assert.equal((await t.rest.post(path, { id: "own", partitionKey: v2 }, { headers: { "x-ms-offer-throughput": "400" } })).status, 201);
    refused(await t.rest.post(path, { id: "no key" }, { headers: { "x-ms-version": "2017-02-22" } }), 400, { text: "partition key" });
    assert.equal((await t.rest.delete(`${path}/c7`)).status, 204);
    assert.equal((await t.rest.post(path, { id: "one more", partitionKey: v2 })).status, 201);

    assert.equal((await database.container("c1").readOffer()).resource, undefined, "who shares has no offer");
    assert.equal((await database.container("own").readOffer()).resource.content.offerThroughput, 400);
    const { resource, offer } = await database.readOffer();
    assert.equal(resource.content.offerThroughput, 1000);
    const { resources: all } = await t.client.offers.readAll().fetchAll();
    const { resource: body } = await database.read();
    assert.equal(all.filter(({ resource: of }) => of.startsWith(body._self)).length, 2);
    const { headers } = await offer.replace({ ...resource, content: { offerThroughput: 20_000 } });
    assert.equal(headers["x-ms-cosmos-min-throughput"], "400");
    await eventually("every container has the ranges that it is worth", async () => (await offer.read()).headers["x-ms-offer-replace-pending"] === "false");
    for (const id of ["c0", "one more"]) assert.equal((await database.container(id).readPartitionKeyRanges().fetchAll()).resources.length, 2);
    assert.equal((await database.container("own").readPartitionKeyRanges().fetchAll()).resources.length, 1);
    await database.delete();
  });

  t.it("are read by the SDK for a database that shares nothing as none", async () => {
    const { database } = await t.client.databases.create({ id: t.name() });
    assert.equal((await database.readOffer()).resource, undefined);
    await database.delete();
  });
});

// Makes four ranges of 500 RU/s each, with a limit of 1,000 per range; overloads one and leaves three idle.
const quarter = async (t) => {
  const container = await t.container({ partitionKey: v2, throughput: 4000 });
  const path = `${t.databasePath}/colls/${container.id}`;
  const { resource, offer } = await container.readOffer();
  await offer.replace({ ...resource, content: { offerThroughput: 2000 } });
  await fill(t.rest, path, hot, 40);
  await overload(read(t.rest, path, hot, 40), 2.5);
  const log = await overload(read(t.rest, path, hot, 40), 3);
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(resources.length, 4);
  return { log, fractions: resources.map((range) => range.throughputFraction) };
};

// Settings of the server: each suite has its own server, and all run concurrently.
describe("settings", { concurrency: true }, () => {
  suite("serverless", (t) => {
    const none = "not supported for serverless accounts";

    t.it("provisions nothing", async () => {
      for (const body of [{ throughput: 400 }, { maxThroughput: 4000 }]) {
        await fails(t.container({ partitionKey: v2, ...body }), 400, { text: none });
        await fails(t.client.databases.create({ id: t.name(), ...body }), 400, { text: none });
      }
      const container = await t.container({ partitionKey: v2 });
      assert.equal((await container.readOffer()).resource, undefined);
      assert.equal((await t.client.offers.readAll().fetchAll()).resources.length, 0);
      assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 1);
    });

    t.it("gives 5,000 RU/s", async () => {
      const path = await t.containerPath({ partitionKey: v2 });
      await fill(t.rest, path, "a", 200);
      holds(await overload(read(t.rest, path, "a", 200), 4), 5000, "one physical partition", { seconds: 4 });
    });
  }, { flags: ["--throttling", "on", "--serverless"], schemes: ["https"] });

  // Sends requests until one is rejected; returns their total charge, and when the last was sent and answered.
  const spendAll = async (t, path) => {
    const clock = () => performance.now() / 1000;
    for (let units = 0, first = clock(); ; ) {
      const sent = clock();
      const answer = await read(t.rest, path, "a", 20)();
      if (answer.status === 429) return { units, first, sent, got: clock() };
      units += answer.charge;
    }
  };

  suite("burst capacity", (t) => {
    t.it("is all that idle seconds left", async () => {
      const before = performance.now() / 1000;
      const path = await t.containerPath({ partitionKey: v2 });
      const after = performance.now() / 1000;
      let spent = await fill(t.rest, path, "a", 20);
      for (const ms of [3500, 700]) {
        await sleep(ms);
        const { units, sent, got } = await spendAll(t, path);
        spent += units;
        within(spent, 400 * (sent - after + 1) - 1, 400 * (got - before + 1) + 20, "all that was given since the beginning");
      }
    });
  }, { flags: ["--throttling", "on", "--burst-capacity"], schemes: ["https"] });

  suite("without burst capacity", (t) => {
    t.it("a second's worth is all that is saved", async () => {
      const path = await t.containerPath({ partitionKey: v2 });
      await fill(t.rest, path, "a", 20);
      await sleep(3500);
      const { units, first, got } = await spendAll(t, path);
      within(units, 380, 420 + 400 * (got - first), "400 RU, and what was given meanwhile");
    });
  }, { flags: ["--throttling", "on"], schemes: ["https"] });

  suite("shares that follow the load", (t) => {
    t.it("relieve a hot partition while others idle", async () => {
      const { log, fractions } = await quarter(t);
      holds(log, 650, "more than its equal share of 500, not more than a range gives", { seconds: 3, most: 1000 });
      assert.ok(Math.max(...fractions) > 0.4, `${fractions}`);
      within(fractions.reduce((a, b) => a + b), 0.99, 1.01, "and the sum is the same");
    });
  }, { flags: ["--throttling", "on", "--partition-max-throughput", "1000", "--merges", "off", "--throughput-shares", "follow-load"], schemes: ["http"] });

  suite("shares that are equal", (t) => {
    t.it("leave a hot partition at its own", async () => {
      const { log, fractions } = await quarter(t);
      holds(log, 500, "its equal share", { seconds: 3 });
      assert.deepEqual(fractions, [0.25, 0.25, 0.25, 0.25]);
    });
  }, { flags: ["--throttling", "on", "--partition-max-throughput", "1000", "--merges", "off"], schemes: ["http"] });
});
