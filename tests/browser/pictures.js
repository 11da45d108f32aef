// pictures.js — the README's two pictures: what examples/telemetry.js writes, partitioned by its date and by its device, as the portal shows it.
// `./dev pictures` runs it. TESELA_PICTURES is the folder.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { clientOf, Server, signIn, tiles, until } from "./harness.js";

const example = fileURLToPath(new URL("../../examples/telemetry.js", import.meta.url));
const limits = ["--throttling", "on", "--partition-max-throughput", "100", "--partition-max-storage", "125KB", "--logical-partition-max-storage", "50KB"]; // those of examples/lab.js

// The example's containers, in the order in which it makes them.
const shots = [
  { container: "c1", name: "bad-key", verdict: "warning" },
  { container: "c2", name: "good-key", verdict: "good" },
];

const server = await Server.start({ flags: limits });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  execFileSync(process.execPath, [example, "--endpoint", server.endpoint("http"), "--keep"], { stdio: "inherit" });
  const [database] = (await clientOf(server).databases.readAll().fetchAll()).resources;
  const page = await browser.newPage({ viewport: { width: 920, height: 860 }, locale: "en-GB", colorScheme: "light", reducedMotion: "reduce" });
  await signIn(page, server, { at: `#/partitions/${database.id}/${shots[0].container}` });
  for (const { container, name, verdict } of shots) {
    await page.evaluate((hash) => (location.hash = hash), `#/partitions/${database.id}/${container}`);
    await page.waitForSelector(`[data-verdict=${verdict}]`);
    await until(() => tiles(page), (list) => list.length === 5);
    await page.locator("section.panel:has(.mosaic)").screenshot({ path: join(process.env.TESELA_PICTURES, `${name}.png`) });
    console.log(`${name}.png`);
  }
} finally {
  await browser.close();
  await server.stop();
}
