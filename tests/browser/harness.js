// harness.js — what the tests share: a server of their own, data that the official SDK has made, and a browser whose every complaint fails the test.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { emulatorKey, Server } from "../sdk/server.js";

export { assert, emulatorKey, Server };
const { CosmosClient } = createRequire(new URL("../sdk/package.json", import.meta.url))("@azure/cosmos");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const readOnlyKey = Buffer.alloc(64, "read only").toString("base64");
const pictures = process.env.TESELA_PICTURES;

export const clientOf = (server, key = emulatorKey, connectionPolicy = {}) => new CosmosClient({ endpoint: server.endpoint("http", "127.0.0.1"), key, connectionPolicy });

// One browser for all tests of a file; each test gets a page of its own.
export class Browser {
  #browser;

  constructor() {
    before(async () => {
      this.#browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
    });
    after(() => this.#browser?.close());
  }

  // Runs `body` with a page; afterwards nothing may have gone to the console as an error, and nothing may have been asked of another host.
  async with(server, options, body) {
    const { expected = [], ...settings } = options;
    const context = await this.#browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB", reducedMotion: "reduce", ...settings });
    const page = await context.newPage();
    const complaints = [];
    page.setDefaultTimeout(15_000);
    page.on("console", (message) => {
      if (message.type() === "error" && !expected.some((status) => message.text().includes(`status of ${status}`))) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).port !== String(server.port)) complaints.push(`asked ${request.url()}`);
    });
    try {
      await body(page);
    } catch (error) {
      await picture(page, "failed");
      throw error;
    } finally {
      await context.close();
    }
    assert.deepEqual(complaints, []);
  }
}

export async function signIn(page, server, { key = emulatorKey, at = "" } = {}) {
  await page.goto(`${server.endpoint("http")}/_explorer/${at}`);
  await page.fill("input[name=key]", key);
  await page.click("button[type=submit]");
  await page.waitForSelector("nav");
}

export async function picture(page, name, options = {}) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}/${name}.png`, ...options });
}

// No finding of axe-core that is serious or critical.
export async function accessible(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${where}: ${v.id}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`), []);
}

// The tiles of the mosaic as the page shows them.
export function tiles(page) {
  return page.$$eval(".tile", (list) =>
    list.map((tile) => ({
      id: tile.dataset.range,
      level: Number(tile.dataset.level),
      height: tile.querySelector(".bar").getBoundingClientRect().height / tile.getBoundingClientRect().height,
      width: tile.getBoundingClientRect().width / tile.parentElement.getBoundingClientRect().width,
      label: tile.getAttribute("aria-label"),
    })),
  );
}

// The text of an editor, and a new one for it.
export const editor = (page, label) => page.locator(`.editor [aria-label="${label}"]`);
export async function write(page, label, text) {
  await editor(page, label).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

// Waits until `read` returns what `wanted` accepts. Playwright's own waitForFunction evaluates text, which the page's policy forbids.
export async function until(read, wanted, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await read();
    if (wanted(found)) return found;
    assert.ok(Date.now() < end, `still ${JSON.stringify(found)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
