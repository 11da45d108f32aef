// How the portal's files are served, and the live stream, with bare requests.

import { gunzipSync } from "node:zlib";
import http from "node:http";
import https from "node:https";
import { networkInterfaces } from "node:os";
import { after, before, describe, it } from "node:test";
import { assert, Browser, clientOf, emulatorKey, Server, signIn } from "./harness.js";

const own = Buffer.alloc(64, "own key").toString("base64");

function ask(server, path, { method = "GET", headers = {} } = {}) {
  return new Promise((done, fail) => {
    const request = http.request({ host: "127.0.0.1", port: server.port, path, method, headers }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part)).on("end", () => done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }));
    });
    request.on("error", fail).end();
  });
}

describe("the portal's files", () => {
  const browser = new Browser();
  let server;
  before(async () => (server = await Server.start()));
  after(() => server?.stop());

  it("are compressed, small, and cached", async () => {
    const page = await ask(server, "/_explorer/", { headers: { "accept-encoding": "gzip, br" } });
    assert.equal(page.headers["content-encoding"], "gzip");
    const html = gunzipSync(page.body).toString();
    assert.doesNotMatch(html, /<script(?![^>]*src=)|<style|https?:/);
    let bytes = page.body.length;
    for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      const file = await ask(server, path, { headers: { "accept-encoding": "gzip" } });
      assert.equal(file.status, 200, path);
      bytes += file.body.length;
      if (path.includes("/assets/")) assert.match(file.headers["cache-control"], /immutable/);
    }
    assert.ok(bytes < 200_000, `the first view takes ${bytes} bytes`);
    const again = await ask(server, "/_explorer/", { headers: { "if-none-match": page.headers.etag } });
    assert.deepEqual([again.status, again.body.length], [304, 0]);
    assert.equal((await ask(server, "/_explorer/")).body.toString(), html);
  });

  it("come with a policy that allows neither inline scripts nor other hosts, nor frames", async () => {
    const policy = (await ask(server, "/_explorer/")).headers["content-security-policy"];
    const rules = Object.fromEntries(policy.split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]));
    assert.deepEqual(
      [rules["default-src"], rules["script-src"], rules["style-src"], rules["connect-src"], rules["frame-ancestors"], rules["base-uri"], rules["form-action"]],
      ["'none'", "'self'", "'self'", "'self'", "'none'", "'none'", "'none'"],
    );
    const blocked = [];
    const inline = async (page) => {
      page.on("console", (message) => /Content Security Policy/.test(message.text()) && blocked.push(message.text()));
      await page.goto(`${server.endpoint("http")}/_explorer/`);
      await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "globalThis.ran = true";
        document.body.append(script);
      });
      assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    };
    await assert.rejects(browser.with(server, {}, inline), /Content Security Policy/); // the harness takes it for a fault, as it should
    assert.ok(blocked.length > 0);
  });

  // The whole server's processor time while a signed-in page shows the live mosaic of a container. Sanitized builds take several times as much.
  it("cost an idle server less than 1 % of a core while a portal is open", async () => {
    const { database } = await clientOf(server).databases.createIfNotExists({ id: "idle" });
    await database.containers.createIfNotExists({ id: "watched", partitionKey: "/id", throughput: 4000 });
    await browser.with(server, {}, async (page) => {
      await signIn(page, server, { at: "#/partitions/idle/watched" });
      await page.waitForSelector(".tile");
      const spent = async () => JSON.parse((await ask(server, "/_tesela/")).body).cpuSeconds;
      await new Promise((done) => setTimeout(done, 2000)); // what opening the page cost is over
      const before = await spent(), from = Date.now();
      await new Promise((done) => setTimeout(done, 10_000));
      const part = (await spent() - before) / ((Date.now() - from) / 1000);
      const limit = process.env.TESELA_SANITIZED ? 0.05 : 0.01;
      assert.ok(part < limit, `${(100 * part).toFixed(2)} % of a core`);
    });
  });

  it("work over https, the stream too", () =>
    browser.with(server, { ignoreHTTPSErrors: true }, async (page) => {
      await page.goto(`${server.endpoint("https")}/_explorer/`);
      await page.fill("input[name=key]", emulatorKey);
      await page.click("button[type=submit]");
      await page.waitForSelector(".state.on");
    }));

  // Of the page's own thread: other programs may keep the machine busy.
  it("are drawn within half a second of processor time", () =>
    browser.with(server, {}, async (page) => {
      const client = await page.context().newCDPSession(page);
      await client.send("Performance.enable", { timeDomain: "threadTicks" });
      await signIn(page, server);
      await page.waitForSelector("main h1");
      const { metrics } = await client.send("Performance.getMetrics");
      const spent = metrics.find((m) => m.name === "TaskDuration").value;
      assert.ok(spent > 0 && spent < 0.5, `${spent} s`);
    }));

  it("are read only, and not by other sites", async () => {
    assert.equal((await ask(server, "/_explorer/", { method: "POST" })).status, 405);
    assert.equal((await ask(server, "/_explorer/nothing")).status, 404);
    assert.equal((await ask(server, "/_explorer/../dbs")).status, 404);
    const other = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    assert.equal((await ask(server, "/_explorer/", { headers: other })).status, 403);
    assert.equal((await ask(server, "/_explorer/", { headers: { ...other, "sec-fetch-mode": "navigate" } })).status, 200);
    assert.equal((await ask(server, "/", { headers: { accept: "text/html" } })).headers.location, "/_explorer/");
    assert.equal((await ask(server, "/", { headers: { accept: "application/json" } })).status, 401);
  });

  it("and what they ask for is refused to other sites", async () => {
    const origin = { origin: "https://example.com" };
    assert.equal((await ask(server, "/_tesela/ranges", { headers: origin })).status, 403);
    assert.equal((await ask(server, "/_tesela/explain", { method: "POST", headers: origin })).status, 403);
    const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    assert.equal((await ask(server, "/_tesela/live", { headers: { ...upgrade, ...origin } })).status, 403);
    assert.equal((await ask(server, "/_tesela/ranges", { headers: { host: "example.com" } })).status, 403);
  });
});

const address = Object.values(networkInterfaces()).flat().find((one) => one.family === "IPv4" && !one.internal)?.address;

describe("from another address than loopback", () => {
  let server;
  before(async () => (server = await Server.start({ flags: ["--host", "0.0.0.0", "--key", own] })));
  after(() => server?.stop());

  // A key is typed into the pages, so it must not be sent in the clear.
  it("the pages need TLS", { skip: address ? false : "this machine has no other address" }, async () => {
    const status = (module, options) =>
      new Promise((done, fail) => {
        const request = module.get({ host: address, port: server.port, path: "/_explorer/", ...options }, (answer) => done(answer.resume().statusCode));
        request.on("error", fail);
      });
    assert.equal(await status(http), 403);
    assert.equal(await status(https, { rejectUnauthorized: false }), 200);
  });
});

// The first message of the stream, or the code that closed it.
function listen(page, first) {
  return page.evaluate(
    (first) =>
      new Promise((done) => {
        const socket = new WebSocket(`ws://${location.host}/_tesela/live`);
        socket.onopen = () => socket.send(first);
        socket.onmessage = (event) => {
          done(JSON.parse(event.data));
          socket.close();
        };
        socket.onclose = (event) => done(event.code);
      }),
    first,
  );
}

describe("the live stream", () => {
  const browser = new Browser();
  let server;
  before(async () => (server = await Server.start({ flags: ["--key", own] })));
  after(() => server?.stop());

  it("needs a key, and messages that are JSON", () =>
    browser.with(server, {}, async (page) => {
      await page.goto(`${server.endpoint("http")}/_explorer/`);
      assert.equal(await listen(page, "{}"), 4401);
      assert.equal(await listen(page, JSON.stringify({ authorization: `Bearer ${emulatorKey}` })), 4401);
      assert.equal(await listen(page, "no JSON"), 4400);
      assert.equal(await listen(page, JSON.stringify({ authorization: `Bearer ${own}`, database: 7 })), 4400);
      assert.deepEqual((await listen(page, JSON.stringify({ authorization: `Bearer ${own}` }))).containers, []);
    }));
});
