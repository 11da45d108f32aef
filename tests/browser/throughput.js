// The view of throughput: charts, charge by operation, scaling with its splits.

import { it } from "node:test";
import { accessible, assert, picture, signIn, until } from "./harness.js";

export function throughput(portal) {
  it("shows what was consumed, and what for", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await portal.good.item("item-1", "customer-1").read();
      await new Promise((done) => setTimeout(done, 2200)); // the history has whole seconds
      await signIn(page, portal.server, { at: "#/throughput/shop/good" });
      await page.waitForSelector(".chart canvas");
      const created = page.locator("tr[data-operation=create]");
      await until(() => created.count(), (n) => n === 1);
      const ru = Number((await created.locator("td").nth(1).textContent()).replace(/[^0-9.]/g, ""));
      assert.ok(ru > 1000 && ru < 2000, `200 creates cost ${ru}`);
      await until(() => page.locator("tr[data-operation=read]").count(), (n) => n === 1);
      await page.click("[data-choice=day]");
      await page.waitForSelector(".chart canvas");
      await accessible(page, "throughput");
      await picture(page, "throughput");
    }));

  it("scales, and shows the splits", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const container = await portal.make("scaled", "/customer", (i) => ({ customer: `customer-${i}` }));
      await signIn(page, portal.server, { at: "#/throughput/shop/scaled" });
      await until(() => page.locator(".tile").count(), (n) => n === 4);
      await page.fill("input[name=throughput]", "3200");
      await page.click("form[aria-label='Change the throughput'] button[type=submit]");
      await until(() => page.locator(".tile").count(), (n) => n === 8);
      assert.equal((await container.readOffer()).resource.content.offerThroughput, 3200);
      await page.click("[data-choice=autoscale]");
      await page.fill("input[name=throughput]", "5000");
      await page.click("form[aria-label='Change the throughput'] button[type=submit]");
      await until(async () => (await container.readOffer()).resource.content.offerAutopilotSettings?.maxThroughput, (n) => n === 5000);
      await page.waitForSelector("section:has-text('Autoscale up to 5,000 RU/s')");
      // What was provisioned before stays in the chart, and the changes below it.
      await page.waitForSelector(".steps li:has-text('1,600 RU/s → 3,200 RU/s')");
      await page.waitForSelector(".steps li:has-text('→ 5,000 RU/s')");
      await page.reload();
      await signIn(page, portal.server, { at: "#/throughput/shop/scaled" });
      await page.waitForSelector(".steps li:has-text('1,600 RU/s → 3,200 RU/s')");
      await until(() => page.getAttribute(".chart [role=img]", "aria-label"), (label) => label.includes("Provisioned 5,000 RU/s"));
      await page.waitForSelector(".chart .key:has-text('Provisioned'):has-text('max 5,000')");
    }));

  it("shows every change, however soon the next, and while the history is read", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const { container } = await portal.shop.containers.create({ id: "often", partitionKey: { paths: ["/id"] } }, { offerThroughput: 800 }); // in two partitions, at any of these rates
      const set = async (throughput) => {
        const { resource } = await container.readOffer();
        await portal.client.offer(resource.id).replace({ ...resource, content: { ...resource.content, offerThroughput: throughput } });
      };
      await set(500);
      await set(600);
      const read = new Promise((done) => page.route(/_tesela\/history/, async (route) => done({ route, answer: await route.fetch() }), { times: 1 }));
      await signIn(page, portal.server, { at: "#/throughput/shop/often" });
      const { route, answer } = await read;
      await set(700);
      await page.waitForSelector("section:has-text('700 RU/s')");
      await route.fulfill({ response: answer });
      for (const step of ["800 RU/s → 500", "500 RU/s → 600", "600 RU/s → 700"]) await page.waitForSelector(`.steps li:has-text('${step} RU/s')`);
      await page.click("[data-choice=day]");
      await page.waitForSelector(".steps li:has-text('500 RU/s → 600 RU/s')");
      await container.delete();
    }));

  it("changes the throughput that a database's containers share", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const { database } = await portal.client.databases.create({ id: "shared", throughput: 400 });
      try {
        await database.containers.create({ id: "one", partitionKey: { paths: ["/id"] } });
        await signIn(page, portal.server, { at: "#/throughput/shared/one" });
        await page.waitForSelector("section:has-text(\"Shared with the database's other containers\")");
        await page.waitForSelector("form:has-text(\"It is the database's\")");
        await page.fill("input[name=throughput]", "600");
        await page.click("form[aria-label='Change the throughput'] button[type=submit]");
        await until(async () => (await database.readOffer()).resource.content.offerThroughput, (n) => n === 600);
      } finally {
        await database.delete();
      }
    }));
}
