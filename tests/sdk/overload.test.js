// Clients that ask for more than was provisioned: what is admitted, and to whom.

import { assert, fails, key, refused, sleep, suite } from "./harness.js";
import { atomic, cool, creates, fill, holds, hot, numbers, obey, overload, read, together, v2, within } from "./overload.js";

// Overload: far more requests than the throughput allows. The tests run concurrently, each with its own containers.
suite("overload", (t) => {
  t.it("is admitted to within a few percent of what was provisioned", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 1000 });
    for (const pk of [hot, cool]) await fill(t.rest, path, pk, 20);
    let n = 0;
    const write = (pk) => () => t.rest.post(`${path}/docs`, { id: `new ${n++}`, pk }, { headers: key(pk) });
    const both = (pk) => () => (n % 3 ? read(t.rest, path, pk, 20)() : write(pk)());
    const logs = await Promise.all([overload(both(hot), 8), overload(both(cool), 8)]);
    for (const log of logs) holds(log, 500, "one range's share of 1,000", { seconds: 8 });
  });

  t.it("is admitted by the offer of now, as soon as that changes", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 1000 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, hot, 20);
    for (const offerThroughput of [1000, 400, 1000]) {
      const { resource, offer } = await container.readOffer();
      const { headers } = await offer.replace({ ...resource, content: { offerThroughput } });
      assert.equal(headers["x-ms-offer-replace-pending"], "false");
      holds(await overload(read(t.rest, path, hot, 20), 2), offerThroughput / 2, `one range of ${offerThroughput}`);
    }
  });

  t.it("of autoscale is admitted up to its most", async () => {
    const path = await t.containerPath({ partitionKey: v2, maxThroughput: 1000 });
    await fill(t.rest, path, hot, 20);
    holds(await overload(read(t.rest, path, hot, 20), 4), 500, "one of two ranges'", { seconds: 4 });
  });

  t.it("by requests of low priority comes last", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 500 });
    await fill(t.rest, path, "a", 10);
    const of = (level) => read(t.rest, path, "a", 10, level ? { "x-ms-cosmos-priority-level": level } : {});
    holds(await overload(of("Low"), 2), 500, "who is alone has it all, low or not", { reserve: 0.1 });
    for (const level of ["High", undefined]) {
      const [low, high] = await Promise.all([overload(of("Low"), 3), overload(of(level), 3)]);
      holds(together(low, high), 500, "low and high", { reserve: 0.1, seconds: 3 });
      // Low priority needs credit of a tenth of a second, so it must not be admitted sooner than that after a rejection of high priority.
      const early = low.filter((one) => !one.refused && high.some((other) => other.refused && other.got < one.sent && one.got - other.sent < 0.1));
      assert.equal(early.length, 0, `${early.length} of ${low.length}`);
      assert.ok(high.filter(({ refused }) => refused).length > 10 && low.length > 10);
    }
    for (const level of ["Medium", "1"]) refused(await of(level)(), 400, { text: "x-ms-cosmos-priority-level" });
    const container = t.database.container(path.split("/").at(-1));
    assert.equal((await obey(async () => ({ status: (await container.item("1", "a").read({ priorityLevel: "Low" }).catch((error) => error)).statusCode ?? 429, headers: { "x-ms-retry-after-ms": 200 } }))).status, 200);
  });

  t.it("makes low priority wait for longer", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 500 });
    const spend = (from) => obey(() => t.rest.post(`${path}/docs`, creates("a", numbers(100, from)), { headers: { ...atomic, ...key("a") } }));
    await Promise.all([spend(0), spend(100)]);
    const low = await read(t.rest, path, "a", 10, { "x-ms-cosmos-priority-level": "Low" })();
    const high = await read(t.rest, path, "a", 10, { "x-ms-cosmos-priority-level": "High" })();
    assert.deepEqual([low.status, high.status], [429, 429]);
    const wait = (answer) => Number(answer.headers["x-ms-retry-after-ms"]);
    assert.ok(wait(low) >= wait(high) + 99, `low ${wait(low)} ms, high ${wait(high)} ms and asked later`);
  });

  t.it("through a throughput bucket is held to its percentage, and nobody else is", async () => {
    const container = await t.container({ partitionKey: v2, throughput: 500 });
    const path = `${t.databasePath}/colls/${container.id}`;
    await fill(t.rest, path, "a", 10);
    const { resource, offer } = await container.readOffer();
    assert.equal(resource.content.throughputBuckets, undefined);
    const buckets = [{ id: 1, maxThroughputPercentage: 20 }, { id: 4, maxThroughputPercentage: 60 }];
    const { resource: changed } = await offer.replace({ ...resource, content: { ...resource.content, throughputBuckets: buckets } });
    assert.deepEqual(changed.content.throughputBuckets, buckets);
    assert.deepEqual((await offer.read()).resource, changed);
    const lane = (number) => read(t.rest, path, "a", 10, { "x-ms-cosmos-throughput-bucket": String(number) });
    const beside = []; // needs little, and gets it
    let going = true;
    const others = (async () => {
      for (; going; await sleep(100)) beside.push((await read(t.rest, path, "a", 5)()).status);
    })();
    const [first, fourth] = await Promise.all([overload(lane(1), 5), overload(lane(4), 5)]);
    going = false;
    await others;
    holds(first, 50, "20 % of 500, or half of that when all together had to wait", { seconds: 5, most: 100 });
    holds(fourth, 150, "60 % of 500", { seconds: 5, most: 300 });
    assert.ok(beside.length > 5 && beside.filter((status) => status === 200).length > 0.9 * beside.length, `${beside}`);
    for (const number of [0, 6, -1, "x", 1.5]) refused(await lane(number)(), 400, { text: "x-ms-cosmos-throughput-bucket" });

    const client = t.newClient({ throughputBucket: 1 });
    const through = client.database(t.database.id).container(container.id);
    const outcomes = await Promise.all(numbers(60).map(() => through.item("1", "a").read().then(({ statusCode }) => statusCode, ({ code }) => code)));
    const more = await Promise.all(numbers(60).map(() => through.items.readAll({ partitionKey: "a", throughputBucket: 1 }).fetchNext().then(() => 200, ({ code }) => code)));
    assert.ok([...outcomes, ...more].includes(429), "the SDK's own option is heard");
    client.dispose();

    const bad = [{}, [{ id: 0, maxThroughputPercentage: 5 }], [{ id: 6, maxThroughputPercentage: 5 }], [{ id: 1, maxThroughputPercentage: 0 }], [{ id: 1, maxThroughputPercentage: 101 }], [{ id: 1 }], ["x"], [buckets[0], buckets[0]]];
    for (const throughputBuckets of bad) await fails(offer.replace({ ...changed, content: { ...changed.content, throughputBuckets } }), 400, { text: "throughputBuckets" });
    const { resource: kept } = await offer.replace({ ...changed, content: { offerThroughput: 500 } });
    assert.deepEqual(kept.content.throughputBuckets, buckets, "they stay when nothing is said of them");
    const { resource: cleared } = await offer.replace({ ...kept, content: { offerThroughput: 500, throughputBuckets: [] } });
    assert.equal(cleared.content.throughputBuckets, undefined);
    holds(await overload(lane(1), 2), 500, "no longer held");
  });

  t.it("of containers that share is divided by who asks, and spares those with throughput of their own", async () => {
    const { database } = await t.client.databases.create({ id: t.name(), throughput: 500 });
    const paths = {};
    for (const id of ["first", "second", "own"]) {
      await database.containers.create({ id, partitionKey: v2, ...(id === "own" && { throughput: 400 }) });
      paths[id] = `/dbs/${database.id}/colls/${id}`;
      await fill(t.rest, paths[id], "a", 10);
    }
    holds(await overload(read(t.rest, paths.first, "a", 10), 2), 500, "all of it for one alone");
    const [first, second, own] = await Promise.all(["first", "second", "own"].map((id) => overload(read(t.rest, paths[id], "a", 10), 5)));
    holds(together(first, second), 500, "the two that share", { seconds: 5 });
    for (const log of [first, second]) assert.ok(log.filter(({ refused }) => !refused).length > 10, "each gets some of it");
    holds(own, 400, "the one with its own", { seconds: 5 });
  });

  t.it("that waits as it is told gets through, however many wait", async () => {
    const path = await t.containerPath({ partitionKey: v2, throughput: 500 });
    await fill(t.rest, path, "a", 20);
    let tries = 0;
    const started = performance.now();
    await Promise.all(numbers(100).map(() => obey(() => (tries++, read(t.rest, path, "a", 20)()))));
    const seconds = (performance.now() - started) / 1000;
    within(seconds, 2.9, 30, "2,000 RU at 500 a second, less what was saved");
    within(tries, 101, 600, "tries of 100 clients");
  });
}, { flags: ["--throttling", "on", "--partition-max-throughput", "500"], concurrency: true, schemes: ["http"] });

// The SDK waits for the refused operations of a batch one after the other.
suite("bulk beyond what was provisioned", (t) => {
  for (const [units, n] of [[400, 400], [2000, 2000]]) {
    t.it(`ends in less than twice the time that ${units} RU/s take`, async () => {
      const { id } = await t.container({ partitionKey: v2, throughput: units });
      const client = t.newClient({ connectionPolicy: { enableBackgroundEndpointRefreshing: false } });
      const began = performance.now();
      const operations = numbers(n).map((i) => ({ operationType: "Create", partitionKey: `${i}`, resourceBody: { id: `${i}`, pk: `${i}`, n: i } }));
      const results = await client.database(t.database.id).container(id).items.executeBulkOperations(operations);
      const seconds = (performance.now() - began) / 1000;
      client.dispose();
      const failed = results.filter(({ response }) => response?.statusCode !== 201);
      assert.deepEqual(failed.map(({ error }) => error?.code), []);
      const spent = results.reduce((sum, { response }) => sum + response.requestCharge, 0);
      assert.ok(seconds < (2 * spent) / units, `${seconds} s for ${spent} units`);
    });
  }
}, { flags: ["--throttling", "on"], concurrency: true, schemes: ["http"] });
