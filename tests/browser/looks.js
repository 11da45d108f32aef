// Every view in light and dark, on a wide screen and on a phone, in both languages: nothing scrolls sideways, axe-core finds nothing serious, and
// a picture of each stays with the run.

import { it } from "node:test";
import { accessible, assert, picture, signIn, until } from "./harness.js";

const screens = {
  wide: { viewport: { width: 1280, height: 860 } },
  phone: { viewport: { width: 390, height: 800 } },
};

// What to wait for, and to open, before a view is looked at.
const views = {
  partitions: async (page) => {
    await page.click(".tile >> nth=1");
    await page.waitForSelector("section .facts");
    await page.waitForSelector(".keys.bars tr");
  },
  throughput: async (page) => {
    await page.waitForSelector(".chart canvas");
    await page.waitForSelector("tr[data-operation=create]");
  },
  data: async (page) => {
    await page.waitForSelector(".editor .cm-content");
    await page.click("section .buttons button >> nth=0");
    await page.waitForSelector("table.rows");
    await until(
      async () => {
        if (!(await page.locator(".explanation").count())) await page.click(".results button.quiet >> nth=0");
        return page.locator(".explanation li").count();
      },
      (n) => n > 0,
    );
    await page.waitForSelector(".estimate");
  },
  charge: async (page) => {
    await page.waitForSelector("table.prices tbody tr");
    await page.waitForSelector(".estimate");
  },
  requests: async (page, portal) => {
    await portal.good.item("nothing", "nobody").read();
    await page.waitForSelector("tbody tr");
  },
  connect: async (page) => {
    await page.waitForSelector("pre.snippet");
  },
};

async function look(portal, page, name, view) {
  await page.evaluate((view) => (location.hash = `#/${view}/shop/good`), view);
  await page.waitForSelector(`nav a[aria-current][href='#/${view}/shop/good']`);
  await views[view](page, portal);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} scrolls sideways`);
  await accessible(page, name);
  await picture(page, name, { fullPage: true });
}

export function looks(portal) {
  for (const [screen, settings] of Object.entries(screens)) {
    for (const colorScheme of ["light", "dark"]) {
      const locale = (screen === "phone") === (colorScheme === "dark") ? "en-GB" : "es-ES";
      it(`${colorScheme}, ${screen}, ${locale}`, () =>
        portal.browser.with(portal.server, { ...settings, colorScheme, locale }, async (page) => {
          await signIn(page, portal.server, { at: "#/partitions/shop/good" });
          await page.waitForSelector(".tile");
          for (const view of Object.keys(views)) await look(portal, page, `look-${colorScheme}-${screen}-${view}`, view);
        }));
    }
  }
}
