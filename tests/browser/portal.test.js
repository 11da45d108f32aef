// The portal's views, with data that the official SDK has made.

import { after, before, describe, it } from "node:test";
import { accessible, assert, Browser, clientOf, picture, Server, signIn, tiles, until } from "./harness.js";

const readOnlyKey = Buffer.alloc(64, "read only").toString("base64");
const hostile = `<script>alert(1)</script> \u202eright to left ${"x".repeat(900)}`;

describe("portal", () => {
  const browser = new Browser();
  let server, client, shop;

  before(async () => {
    server = await Server.start({
      flags: ["--throttling", "on", "--partition-max-throughput", "400", "--partition-max-storage", "4MB", "--logical-partition-max-storage", "100KB", "--read-only-key", readOnlyKey],
    });
    client = clientOf(server);
    ({ database: shop } = await client.databases.create({ id: "shop" }));
    await make("good", "/customer", (i) => ({ customer: `customer-${i}` }));
    await make("bad", "/country", (i) => ({ country: i % 20 ? "Spain" : `country-${i % 3}` }));
  });
  after(() => server?.stop());

  async function make(id, key, fields) {
    const { container } = await shop.containers.create({ id, partitionKey: { paths: [key], version: 2 } }, { offerThroughput: 1600 });
    await bulk(container, key.slice(1), Array.from({ length: 200 }, (_, i) => ({ id: `item-${i}`, city: ["Lima", "Cusco", "Quito"][i % 3], text: "x".repeat(300), ...fields(i) })));
    return container;
  }

  async function bulk(container, key, items) {
    const left = items.map((resourceBody) => ({ operationType: "Upsert", partitionKey: resourceBody[key], resourceBody }));
    while (left.length) {
      const results = await container.items.executeBulkOperations(left.splice(0, 50));
      for (const result of results) if (result.error) throw result.error;
    }
  }

  it("refuses a wrong key and keeps none", () =>
    browser.with(server, { expected: [401] }, async (page) => {
      await page.goto(`${server.endpoint("http")}/`);
      assert.equal(new URL(page.url()).pathname, "/_explorer/");
      await accessible(page, "sign-in");
      await page.fill("input[name=key]", Buffer.alloc(64, 1).toString("base64"));
      await page.click("button[type=submit]");
      await page.waitForSelector("[role=alert]");
      assert.match(await page.textContent("[role=alert]"), /does not know this key/);
      await page.fill("input[name=key]", "no base64!");
      await page.click("button[type=submit]");
      await page.waitForSelector("[role=alert]:has-text('not a key')");
      await picture(page, "sign-in");
      assert.deepEqual(await page.evaluate(() => [Object.values(localStorage), document.cookie]), [[], ""]);
    }));

  it("shows a good key as even tiles and a bad one as one tall tile", () =>
    browser.with(server, {}, async (page) => {
      await signIn(page, server, { at: "#/partitions/shop/good" });
      await page.waitForSelector("[data-verdict=good]");
      const good = await tiles(page);
      assert.equal(good.length, 4);
      assert.ok(Math.abs(good.reduce((sum, tile) => sum + tile.width, 0) - 1) < 0.05);
      assert.ok(good.every((tile) => tile.height > 0.5 && tile.level === 2 && Math.abs(tile.width - 0.25) < 0.05), JSON.stringify(good));
      await page.waitForSelector(".keys.bars meter");
      await accessible(page, "partitions");
      await picture(page, "good-key");
      await page.selectOption("select.choice", JSON.stringify(["shop", "bad"]));
      await page.waitForSelector("[data-verdict=warning]");
      const bad = (await tiles(page)).sort((a, b) => b.height - a.height);
      assert.ok(bad[0].height > 0.95 && bad[0].level === 4, JSON.stringify(bad));
      assert.ok(bad.slice(1).every((tile) => tile.height < 0.2 && tile.level < 2), JSON.stringify(bad));
      await page.waitForSelector(".notice.warning:has-text('Spain')");
      await picture(page, "bad-key");
      await page.click(`.tile[data-range="${bad[0].id}"]`);
      await page.waitForSelector("section[aria-label^='Partition '] .keys th:has-text('Spain')");
      await accessible(page, "tile");
      await picture(page, "tile");
    }));

  it("shows a split when it happens", () =>
    browser.with(server, {}, async (page) => {
      const container = await make("live", "/customer", (i) => ({ customer: `customer-${i}` }));
      await signIn(page, server, { at: "#/partitions/shop/live" });
      await until(() => page.locator(".tile").count(), (n) => n === 4);
      const offer = await container.readOffer();
      await client.offer(offer.resource.id).replace({ ...offer.resource, content: { ...offer.resource.content, offerThroughput: 3200 } });
      await until(() => page.locator(".tile").count(), (n) => n === 8);
      await page.waitForSelector(".timeline li.split:has-text('more throughput was provisioned')");
    }));

  it("works in Spanish, in the dark and on a phone", () =>
    browser.with(server, { locale: "es-ES", colorScheme: "dark", viewport: { width: 390, height: 800 } }, async (page) => {
      await signIn(page, server, { at: "#/partitions/shop/bad" });
      await page.waitForSelector("[data-verdict=warning]");
      assert.match(await page.textContent("[data-verdict]"), /Desigual/);
      assert.equal(await page.getAttribute("html", "lang"), "es");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling");
      await accessible(page, "phone");
      await picture(page, "phone");
    }));
});
void hostile;
