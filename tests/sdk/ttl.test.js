// Time to live of containers and items: expired items disappear from reads at once, and from the disk soon after. A ttl counts whole
// seconds from the second of the write, so a ttl of 1 can expire in a moment; items that must be seen first have a longer ttl.

import { assert, suite, fails, refused, key, rounds, sleep, eventually } from "./harness.js";
import { stopwatch } from "./processes.js";

const gone = async (container, id) => (await container.item(id, "a").read()).statusCode === 404;
const there = async (container, id) => (await container.item(id, "a").read()).statusCode === 200;
const usage = async (container) => {
  const { headers } = await container.read({ populateQuotaInfo: true });
  const [, kilobytes, count] = /documentsSize=(\d+);documentsCount=(\d+);/.exec(headers["x-ms-resource-usage"]);
  return { kilobytes: Number(kilobytes), count: Number(count) };
};

suite(
  "ttl",
  (t) => {
    t.it("of a container ends its items, however they are looked for", async () => {
      const container = await t.container({ defaultTtl: 3 });
      await container.items.create({ id: "1", pk: "a", v: 1 });
      await container.items.create({ id: "2", pk: "a", v: 1 });
      await container.items.create({ id: "3", pk: "a", v: 1 });
      assert.ok(await there(container, "1"));
      await eventually("the item expires", () => gone(container, "3"));
      const { resources } = await container.items.readAll().fetchAll();
      assert.deepEqual(resources, []);
      assert.deepEqual((await container.items.readAll({ partitionKey: "a" }).fetchAll()).resources, []);
      await fails(container.item("1", "a").replace({ id: "1", pk: "a" }), 404);
      await fails(container.item("1", "a").delete(), 404);
      await fails(container.item("1", "a").patch([{ op: "set", path: "/v", value: 2 }]), 404);
      const { statusCode, resource } = await container.items.create({ id: "1", pk: "a", v: 3 });
      assert.equal(statusCode, 201);
      assert.equal(resource.v, 3);
      assert.equal((await container.items.upsert({ id: "2", pk: "a" })).statusCode, 201);
      const { result } = await container.items.batch([{ operationType: "Create", resourceBody: { id: "3", pk: "a" } }], "a");
      assert.equal(result[0].statusCode, 201);
    });

    t.it("of an item goes before the container's", async () => {
      const container = await t.container({ defaultTtl: -1 });
      await container.items.create({ id: "stays", pk: "a" });
      await container.items.create({ id: "goes", pk: "a", ttl: 1 });
      const short = await t.container({ defaultTtl: 1 });
      await short.items.create({ id: "stays", pk: "a", ttl: -1 });
      await short.items.create({ id: "goes later", pk: "a", ttl: 1000 });
      await short.items.create({ id: "goes", pk: "a" });
      await eventually("both go", async () => (await gone(container, "goes")) && (await gone(short, "goes")));
      assert.ok(await there(container, "stays"));
      assert.ok(await there(short, "stays"));
      assert.ok(await there(short, "goes later"));
    });

    t.it("of an item means nothing in a container without", async () => {
      const container = await t.container();
      const { resource } = await container.items.create({ id: "1", pk: "a", ttl: 1 });
      assert.equal(resource.ttl, 1);
      await sleep(2500);
      assert.ok(await there(container, "1"));
    });

    // Each write comes before the item expires, the last one after the first one's time. On a busy machine that may take several tries.
    t.it("starts anew with every write", async () => {
      const container = await t.container({ defaultTtl: 5 });
      for (let timely = false; !timely; ) {
        const begun = performance.now();
        await container.items.upsert({ id: "1", pk: "a" });
        timely = true;
        for (let i = 0, last = begun; i < 3 && timely; i++) {
          await sleep(2000);
          const patched = await container.item("1", "a").patch([{ op: "set", path: "/v", value: i }]).catch((error) => error);
          const inTime = performance.now() - last < 4000; // times to live count whole seconds
          assert.ok(patched.statusCode === 200 || !inTime, `${patched.message}`);
          timely = inTime;
          last = performance.now();
        }
      }
      assert.ok(await there(container, "1"));
      await container.item("1", "a").patch([{ op: "set", path: "/ttl", value: -1 }]);
      await sleep(5200);
      assert.ok(await there(container, "1"), "the patch gave it a ttl of its own");
    });

    t.it("turned on later ends the items of before as well", async () => {
      const container = await t.container();
      for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: "a" });
      await container.items.create({ id: "own", pk: "a", ttl: 1 });
      await sleep(2100);
      assert.ok(await there(container, "own"));
      const { resource } = await container.read();
      await container.replace({ ...resource, defaultTtl: 1000 });
      assert.ok(await gone(container, "own"), "its own ttl counts from its last write");
      assert.ok(await there(container, "0"));
      await container.replace({ ...resource, defaultTtl: 1 });
      assert.ok(await gone(container, "0"));
      await eventually("the sweep removes them", async () => (await usage(container)).count === 0);
    });

    t.it("ends in the sweep, which gives the space back", async () => {
      const text = "x".repeat(20_000);
      let container, kilobytes, count;
      for (let ttl = 4, inTime = false; !inTime; ttl *= 2) { // on a busy machine the first items may expire before the last one is written
        const begun = performance.now();
        container = await t.container({ defaultTtl: ttl });
        for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: `${i}`, text });
        await container.items.create({ id: "stays", pk: "a", ttl: -1 });
        ({ kilobytes, count } = await usage(container));
        inTime = performance.now() - begun < (ttl - 1) * 1000;
      }
      assert.equal(count, 21);
      assert.ok(kilobytes >= 380 && kilobytes <= 420, `${kilobytes} KB`);
      await eventually("the bytes are gone", async () => (await usage(container)).count === 1);
      assert.equal((await usage(container)).kilobytes, 0);
      assert.ok(await there(container, "stays"));
    });

    // 20,000 items in eight containers (a quarter of them under a sanitizer) expire within the same seconds. The latency of a client of another container is compared with that
    // just before: the median may not grow fivefold, and no request may take a second (five under a sanitizer, which makes the server ten
    // times as slow).
    t.it("is swept without starving anybody", async () => {
      const quiet = await t.container();
      await quiet.items.create({ id: "1", pk: "a" });
      const bulk = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", prefer: "return=minimal" };
      const each = rounds(25) * 100;
      let doomed;
      const fill = async (defaultTtl) => {
        doomed = [];
        for (let c = 0; c < 8; c++) {
          const container = await t.container({ defaultTtl });
          doomed.push(container);
          for (let from = 0; from < each; from += 100) {
            const items = Array.from({ length: 100 }, (_, i) => ({
              operationType: "Create",
              partitionKey: `["${from + i}"]`,
              resourceBody: { id: "1", pk: `${from + i}`, text: "x".repeat(900) },
            }));
            const answer = await t.rest.post(`${t.databasePath}/colls/${container.id}/docs`, items, { headers: bulk });
            assert.equal(answer.status, 200, answer.text);
          }
        }
      };
      const left = async () => (await Promise.all(doomed.map(usage))).reduce((sum, { count }) => sum + count, 0);
      const times = async (isOver) => {
        const all = [], alone = []; // alone: without the time that other programs had the processors
        for (let i = 0; !(await isOver(i)); i++) {
          for (const request of [() => quiet.item("1", "a").read(), () => quiet.items.upsert({ id: "1", pk: "a", i })]) {
            const elapsed = stopwatch(t.server.child.pid), begun = performance.now();
            assert.ok((await request()).statusCode < 300);
            all.push(performance.now() - begun);
            alone.push(elapsed());
          }
        }
        return { n: all.length, median: all.sort((a, b) => a - b)[all.length >> 1], max: Math.max(...alone) };
      };
      let before, full = 0;
      for (let ttl = 10; full < 8 * each; ttl *= 3) { // on a busy machine the sweep may begin before everything is there
        await fill(ttl);
        before = await times((i) => i === 100);
        full = await left();
      }
      await eventually("the sweep is at work", async () => (await left()) < 8 * each, 300_000);
      const during = await times(async (i) => i % 20 === 0 && (await left()) === 0);
      assert.ok(during.n >= 40, `the sweep of ${full} items ended after ${during.n} requests: nothing was measured`);
      assert.ok(during.median < 5 * before.median + 5, `${during.median} ms, before ${before.median} ms`);
      assert.ok(during.max < (process.env.TESELA_SANITIZED ? 5000 : 1000), `${during.max} ms`);
      if (process.env.TESELA_VERBOSE) console.error("sweep", { before, during });
    });

    t.it("frees unique keys", async () => {
      const container = await t.container({ defaultTtl: 3, uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
      await container.items.create({ id: "1", pk: "a", email: "x" });
      await fails(container.items.create({ id: "2", pk: "a", email: "x" }), 409);
      await eventually("it expires", () => gone(container, "1"));
      assert.equal((await container.items.create({ id: "2", pk: "a", email: "x" })).statusCode, 201);
    });

    t.it("is -1 or 1 to 2147483647", async () => {
      const container = await t.container({ defaultTtl: -1 });
      for (const ttl of [0, -2, 1.5, "1", true, 2147483648, [], {}]) {
        await fails(container.items.create({ id: "bad", pk: "a", ttl }), 400, { text: "The input ttl is invalid." });
        const answer = await t.rest.post(`${t.databasePath}/colls`, { id: "bad", partitionKey: { paths: ["/pk"] }, defaultTtl: ttl });
        refused(answer, 400, { text: "The input DefaultTimeToLive is invalid." });
      }
      for (const ttl of [-1, 1, 2147483647]) {
        assert.equal((await container.items.upsert({ id: "good", pk: "a", ttl })).resource.ttl, ttl);
        const made = await t.rest.post(`${t.databasePath}/colls`, { id: t.name(), partitionKey: { paths: ["/pk"] }, defaultTtl: ttl });
        assert.equal(made.json.defaultTtl, ttl);
      }
      const path = `${t.databasePath}/colls/${container.id}`;
      const patch = await t.rest.patch(`${path}/docs/good`, { operations: [{ op: "set", path: "/ttl", value: 0 }] }, { headers: key("a") });
      refused(patch, 400, { text: "The input ttl is invalid." });
    });
  },
  { concurrency: true },
);
