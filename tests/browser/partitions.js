// The view of partitions: good and bad keys, one tile, a split when it happens.

import { it } from "node:test";
import { accessible, assert, picture, signIn, tiles, until } from "./harness.js";

export function partitions(portal) {
  it("shows a good key as even tiles and a bad one as one tall tile", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await signIn(page, portal.server, { at: "#/partitions/shop/good" });
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
      const facts = await page.$$eval("section[aria-label^='Partition '] .fact", (list) => list.map((fact) => [...fact.children].map((one) => one.textContent)));
      assert.deepEqual(facts.map(([name]) => name), ["Hash range", "Split or merged from", "Items", "Partition key values", "Data", "Index", "Consumed", "Share", "Throttled", "Latency"]);
      const of = Object.fromEntries(facts);
      assert.match(of["Hash range"], /^[0-9A-F]{2,8} – [0-9A-F]{2,8}$/);
      assert.equal(of.Share, "400\u00a0RU/s");
      assert.ok(Number(of.Items) >= 190, of.Items);
      const keys = await page.$$eval("section[aria-label^='Partition '] .columns > div", (list) => list.map((one) => one.textContent));
      assert.match(keys[0], /^Hottest keys, by RU\/s in the last minute.*Spain[\d.]+\sRU\/s/);
      assert.match(keys[1], /^Largest keys.*Spain[\d.]+\sKB/);
      await page.waitForSelector(".spark svg[aria-label^='RU/s in the last ten minutes']");
      await accessible(page, "tile");
      await picture(page, "tile");
    }));

  it("shows a split when it happens", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const container = await portal.make("live", "/customer", (i) => ({ customer: `customer-${i}` }));
      await signIn(page, portal.server, { at: "#/partitions/shop/live" });
      await until(() => page.locator(".tile").count(), (n) => n === 4);
      const offer = await container.readOffer();
      await portal.client.offer(offer.resource.id).replace({ ...offer.resource, content: { ...offer.resource.content, offerThroughput: 3200 } });
      await until(() => page.locator(".tile").count(), (n) => n === 8);
      await page.waitForSelector(".timeline li.split:has-text('more throughput was provisioned')");
      await page.click(".tile >> nth=1");
      await page.waitForSelector(".fact:has-text('Split or merged from') dd:text-matches('^[0-3]$')");
      await picture(page, "split");
      const now = (await container.readOffer()).resource;
      await portal.client.offer(now.id).replace({ ...now, content: { ...now.content, offerThroughput: 400 } });
      await page.waitForSelector(".timeline li.merge:has-text('less throughput was provisioned')", { timeout: 60_000 });
      await until(() => page.locator(".tile").count(), (n) => n < 8);
    }));

  it("shows the load while it is there", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const container = await portal.make("loaded", "/customer", (i) => ({ customer: `customer-${i}` }));
      await signIn(page, portal.server, { at: "#/partitions/shop/loaded" });
      await page.click("[data-choice=heat]");
      await page.waitForSelector("[data-verdict=plain]:has-text('No requests')");
      let over = false;
      const load = (async () => {
        while (!over) await container.item("item-1", "customer-1").read();
      })();
      try {
        await page.waitForSelector("[data-verdict=warning]:has-text('Hot: partition')");
        const hot = await until(() => tiles(page), (list) => Math.max(...list.map((tile) => tile.height)) > 0.9);
        assert.equal(hot.filter((tile) => tile.height < 0.2).length, 3, JSON.stringify(hot));
      } finally {
        over = true;
        await load;
      }
    }));

  it("works in Spanish, in the dark and on a phone", () =>
    portal.browser.with(portal.server, { locale: "es-ES", colorScheme: "dark", viewport: { width: 390, height: 800 } }, async (page) => {
      await signIn(page, portal.server, { at: "#/partitions/shop/bad" });
      await page.waitForSelector("[data-verdict=warning]");
      assert.match(await page.textContent("[data-verdict]"), /Desigual/);
      assert.equal(await page.getAttribute("html", "lang"), "es");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling");
      await accessible(page, "phone");
      await picture(page, "phone");
    }));
}
