// Keys and tokens, and the smaller views: charge, requests, connect; the whole by keyboard.

import { it } from "node:test";
import { accessible, assert, clientOf, emulatorKey, picture, readOnlyKey, signIn, until, write } from "./harness.js";

export function keys(portal) {
  it("refuses a wrong key and keeps none", () =>
    portal.browser.with(portal.server, { expected: [401] }, async (page) => {
      await page.goto(`${portal.server.endpoint("http")}/`);
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

  it("only shows with a read-only key", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await signIn(page, portal.server, { key: readOnlyKey, at: "#/data/shop/good" });
      await page.waitForSelector(".badge:has-text('Read-only')");
      await page.click("section[aria-label=Items] button:has-text('Run')");
      await page.click("table.rows button.link >> nth=0");
      await page.waitForSelector("dialog .cm-content[aria-readonly=true]");
      const buttons = await page.$$eval("button", (list) => list.map((button) => button.textContent));
      assert.deepEqual(buttons.filter((name) => /New|Save|Delete|Upload/.test(name)), []);
      await page.click("dialog button:has-text('Close')");
      await page.click("nav a:has-text('Throughput')");
      await page.waitForSelector(".chart canvas");
      assert.equal(await page.locator("input[name=throughput]").count(), 0);
    }));

  it("shows one container with a resource token", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const { user } = await portal.shop.users.create({ id: "ana" });
      const { resource } = await user.permissions.create({ id: "read good", permissionMode: "Read", resource: portal.good.url });
      await page.goto(`${portal.server.endpoint("http")}/_explorer/#/data/shop/good`);
      await page.fill("input[name=key]", resource._token);
      await page.click("button[type=submit]");
      await page.click("section[aria-label=Items] button:has-text('Run')");
      await page.waitForSelector("table.rows");
      assert.deepEqual(await page.$$eval("nav a", (list) => list.map((a) => a.textContent)), ["Data"]);
      assert.deepEqual(await page.evaluate(() => Object.values(localStorage)), []);
    }));
}

export function charge(portal) {
  it("tells the price of an item as the server then charges it", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      const item = { id: "order", customer: "priced", city: "Lima", lines: [{ product: "tea", n: 2 }] };
      await signIn(page, portal.server, { at: "#/charge/shop/good" });
      await page.waitForSelector("table.prices");
      await write(page, "Item", JSON.stringify(item));
      const { requestCharge } = await portal.good.items.create(item);
      await until(() => page.textContent("table.prices tr:has-text('Creates') td"), (text) => Math.abs(Number(text.replace(/\sRU/, "")) - requestCharge) < 0.011);
      await page.click("button:has-text('Try one page')");
      await page.waitForSelector("section[aria-label='What a query costs'] .explanation:has-text('rows for')");
      await accessible(page, "charge");
      await picture(page, "charge");
    }));
}

export function requests(portal) {
  it("lists errors first, and says why requests are refused", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await signIn(page, portal.server, { at: "#/requests/shop/bad" });
      await portal.bad.item("nothing", "Peru").read();
      // What succeeds is recorded from the page's first question on.
      await until(
        async () => {
          await portal.bad.item("item-1", "Spain").read();
          return page.locator("tr:not(.failed):has-text('item-1')").count();
        },
        (n) => n > 0,
      );
      await page.waitForSelector(".meanings:has-text('There is nothing by this name')");
      assert.ok(await page.$eval("tbody tr", (row) => row.classList.contains("failed")));
      // One key takes all that its partition may spend.
      let over = false;
      const impatient = clientOf(portal.server, emulatorKey, { retryOptions: { maxRetryAttemptCount: 0 } });
      const load = Array.from({ length: 24 }, async () => {
        while (!over) await impatient.database("shop").container("bad").items.upsert({ id: "item-1", country: "Spain", text: "x".repeat(300) }).catch(() => undefined);
      });
      try {
        await page.waitForSelector(".notice.warning:has-text('Spain takes'):has-text('choose a key with more values')", { timeout: 60_000 });
        await accessible(page, "requests");
        await picture(page, "requests");
      } finally {
        over = true;
        await Promise.all(load);
      }
    }));
}

export function connect(portal) {
  it("hides the key until asked, and has a program for each API that listens", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await signIn(page, portal.server, { at: "#/connect" });
      await page.waitForSelector("[data-key=hidden]");
      assert.ok(!(await page.content()).includes(emulatorKey));
      await page.click("button:has-text('Show')");
      assert.equal(await page.textContent("[data-key]"), emulatorKey);
      const apis = await page.$$eval("[aria-label=API] button", (list) => list.map((button) => button.textContent));
      assert.deepEqual(apis.slice(0, 4), ["SQL (Core)", "MongoDB", "Cassandra", "Table"]);
      for (const api of apis) {
        await page.click(`[aria-label=API] button:has-text('${api}')`);
        for (const language of await page.$$("[aria-label=Language] button[data-choice]")) {
          await language.click();
          assert.match(await page.textContent("pre.snippet"), /localhost/);
        }
      }
      await accessible(page, "connect");
      await picture(page, "connect");
    }));
}

export function keyboard(portal) {
  const focused = (page) => page.evaluate(() => document.activeElement.textContent);
  async function tabTo(page, wanted) {
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      if ((await focused(page)) === wanted) return;
    }
    assert.fail(`Tab does not reach ${wanted}`);
  }

  it("needs no mouse", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await page.goto(`${portal.server.endpoint("http")}/_explorer/#/partitions/shop/good`);
      await page.keyboard.press("Tab");
      await page.keyboard.type(emulatorKey);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".tile");
      await tabTo(page, "RU/s");
      await page.keyboard.press("Enter");
      assert.match(await page.textContent("section .about"), /RU\/s/);
      await page.keyboard.press("Tab"); // to the first tile
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".tile[aria-pressed=true]");
      await page.waitForSelector("section[aria-label^='Partition '] .facts");
      await page.evaluate(() => document.body.focus());
      await page.keyboard.press("Control+Home");
      await page.evaluate(() => document.querySelector(".skip").focus());
      await tabTo(page, "Data");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".editor .cm-content");
      await tabTo(page, "Run");
      await page.keyboard.press("Enter");
      await page.waitForSelector("table.rows");
      await tabTo(page, "New item");
      await page.keyboard.press("Enter");
      await page.waitForSelector("dialog[open]");
      await page.keyboard.press("Escape");
      await until(() => page.locator("dialog").count(), (n) => n === 0);
    }));
}
