// The data explorer: queries, items, scripts, changes; what is hostile is text.

import { it } from "node:test";
import { accessible, assert, editor, picture, signIn, until, write } from "./harness.js";

const hostile = `<script>alert(1)<script> <img src=x onerror=alert(1)> \u202eright to left ${"x".repeat(900)}`.slice(0, 1000);
const hostileName = `<script>alert(1)<script> \u202eright to left`;

const run = (page) => page.click("section[aria-label=Items] button:has-text('Run')");
const summary = (page) => page.textContent(".summary");

export function data(portal) {
  const open = (body, { at = "good", ...options } = {}) =>
    portal.browser.with(portal.server, options, async (page) => {
      await signIn(page, portal.server, { at: `#/data/shop/${encodeURIComponent(at)}` });
      await page.waitForSelector(".editor .cm-content");
      await body(page);
    });

  it("makes databases and containers, and deletes them", () =>
    portal.browser.with(portal.server, {}, async (page) => {
      await signIn(page, portal.server, { at: "#/data" });
      await page.click("button:has-text('New database')");
      await page.fill("dialog input[name=id]", "made");
      await page.click("dialog button[type=submit]");
      await page.waitForSelector(".tree a.database:has-text('made')");
      await page.click("button:has-text('New container')");
      await page.fill("dialog input[name=id]", "by two");
      await page.fill("dialog input[name=key]", "/country, /city");
      await page.click("dialog [data-choice=autoscale]");
      await page.fill("dialog input[name=ru]", "2000");
      await page.click("dialog summary");
      await write(page, "Indexing policy", JSON.stringify({ indexingMode: "consistent", includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }] }));
      await accessible(page, "new container");
      await page.click("dialog button[type=submit]");
      await page.waitForSelector(".container-page h2:has-text('by two')");
      const { resource } = await portal.client.database("made").container("by two").read();
      assert.deepEqual(resource.partitionKey.paths, ["/country", "/city"]);
      assert.equal(resource.indexingPolicy.excludedPaths[0].path, "/note/?");
      const { resource: offer } = await portal.client.database("made").container("by two").readOffer();
      assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 2000);
      await page.click("[data-choice=settings]");
      await page.fill("input[name=confirm]", "by two");
      await page.click("button:has-text('Delete the container')");
      await until(() => page.locator(".tree a:has-text('by two')").count(), (n) => n === 0);
      await page.fill(".explored input", "made");
      await page.click("button:has-text('Delete the database')");
      await until(async () => (await portal.client.databases.readAll().fetchAll()).resources.length, (n) => n === 1);
    }));

  it("pages through 2,500 rows", async () => {
    await portal.make("rows", "/customer", (i) => ({ customer: `customer-${i}`, list: Array.from({ length: 100 }, (_, n) => n) }), { n: 25, indexingPolicy: { indexingMode: "none", automatic: false } });
    await open(
      async (page) => {
        await page.selectOption("section[aria-label=Items] select", "1000");
        await write(page, "Query", "SELECT c.id, n FROM c JOIN n IN c.list");
        await run(page);
        await page.waitForSelector(".summary");
        await until(() => summary(page), (text) => text.startsWith("Rows 1–1,000 of 1,000+"));
        await page.click("button:has-text('Next page')");
        await until(() => summary(page), (text) => text.startsWith("Rows 1,001–2,000"));
        await page.click("button:has-text('Next page')");
        await until(() => summary(page), (text) => text.startsWith("Rows 2,001–2,500 of 2,500 "));
        assert.equal(await page.locator("table.rows tbody tr").count(), 500);
        assert.ok(await page.isDisabled("button:has-text('Next page')"));
        await page.click("button:has-text('Previous page')");
        await until(() => summary(page), (text) => text.startsWith("Rows 1,001–2,000 of 2,500 "));
        const [download] = await Promise.all([page.waitForEvent("download"), page.click("section[aria-label=Items] button:has-text('Download')")]);
        const parts = [];
        for await (const part of await download.createReadStream()) parts.push(part);
        assert.equal(JSON.parse(Buffer.concat(parts).toString()).length, 2500);
      },
      { at: "rows" },
    );
  });

  it("answers queries over all partitions, and explains them", () =>
    open(async (page) => {
      await write(page, "Query", "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city");
      await run(page);
      await until(() => page.locator("table.rows tbody tr").count(), (n) => n === 3);
      assert.match(await page.textContent("table.rows"), /Lima67/);
      assert.match(await page.textContent(".explanation"), /3 rows for .*RU/);
      await page.click("[data-choice=json]");
      assert.match(await page.textContent("pre.json"), /"city": "Cusco"/);
      await write(page, "Query", "SELECT * FORM c");
      await run(page);
      await page.waitForSelector("[role=alert]:has-text('incorrect syntax near')");
    }, { expected: [400] }));

  it("says what a query costs before it is run, as one types", () =>
    open(async (page) => {
      await write(page, "Query", "SELECT * FROM c WHERE c.city = 'Lima'");
      await until(() => page.textContent(".estimate"), (text) => /67 of 20\d items match/.test(text));
      const estimated = Number(await page.getAttribute(".estimate", "data-estimate"));
      await page.click(".estimate summary");
      await page.waitForSelector(".estimate tr:has-text('Partitions'):has-text('4 partitions, 2.25')");
      await page.waitForSelector(".estimate tr:has-text('Items'):has-text('67 of 20')");
      await run(page);
      const charge = Number((await until(() => summary(page), (text) => text.includes("of 67"))).match(/([\d.]+)\sRU/)[1]);
      assert.ok(Math.abs(estimated - charge) < 0.05, `estimated ${estimated}, was ${charge}`);
      await write(page, "Query", "SELECT * FORM");
      await until(() => page.locator(".estimate").count(), (n) => n === 0);
      await write(page, "Query", "SELECT * FROM c WHERE UPPER(c.city) = 'LIMA'");
      await page.waitForSelector(".estimate:has-text('conditions that only the items answer')");
      await page.selectOption("section[aria-label=Items] select", "20");
      await write(page, "Query", "SELECT * FROM c");
      await page.waitForSelector(".estimate >> text=/All 1[01] pages/");
    }));

  it("explains in Spanish", () =>
    open(
      async (page) => {
        await write(page, "Consulta", "SELECT * FROM c WHERE c.city = 'Lima' AND UPPER(c.text) = 'X' AND c.n != 3");
        await page.click("section[aria-label=Elementos] button:has-text('Ejecutar')");
        await page.click("button:has-text('Explicar')");
        const words = await page.textContent(".explanation");
        assert.match(words, /0 filas por .*RU en/);
        assert.match(words, /el índice encuentra lo que cumple c\.city = "Lima"/);
        assert.match(words, /se comprueba en cada elemento, porque UPPER se calcula con cada elemento/);
        assert.match(words, /el índice encuentra los valores que hay, no todos los demás/);
        assert.match(words, /indique una clave de partición: la consulta se hizo a 4 particiones/);
        assert.doesNotMatch(words, /the index|since|asked/);
      },
      { locale: "es-ES" },
    ));

  it("completes the names of properties", () =>
    open(async (page) => {
      await run(page);
      await page.waitForSelector("table.rows");
      await write(page, "Query", "SELECT * FROM c WHERE c.");
      await page.keyboard.type("ci");
      await page.waitForSelector(".cm-tooltip-autocomplete li:has-text('city')");
      await new Promise((done) => setTimeout(done, 150)); // CodeMirror accepts no key for a moment, lest one meant for the text
      await page.keyboard.press("Enter");
      await page.keyboard.type(" = 'Lima'");
      await page.keyboard.press("Control+Enter");
      await until(() => summary(page), (text) => text.includes("of 67 "));
      await accessible(page, "items");
      await picture(page, "data");
    }));

  it("says what a write costs before it, and what it cost", () =>
    open(async (page) => {
      await page.click("button:has-text('New item')");
      await write(page, "Item", JSON.stringify({ id: "priced", customer: "ana", list: [1, 2, 3] }));
      const price = await until(() => page.getAttribute("[data-price]", "data-price"), (text) => Number(text) > 6);
      await page.click("dialog button:has-text('Save')");
      await page.waitForSelector(`dialog .notice.good:has-text('${price} RU')`);
      assert.deepEqual((await portal.good.item("priced", "ana").read()).resource.list, [1, 2, 3]);
      await page.click("dialog button:has-text('Delete')");
      await until(() => page.locator("dialog").count(), (n) => n === 0);
      assert.equal((await portal.good.item("priced", "ana").read()).statusCode, 404);
    }));

  it("does not overwrite what somebody else has changed", () =>
    open(async (page) => {
      const item = portal.good.item("item-7", "customer-7");
      await write(page, "Query", "SELECT * FROM c WHERE c.id = 'item-7'");
      await run(page);
      await page.click("table.rows button.link");
      await page.waitForSelector("dialog .cm-content:has-text('item-7')");
      await item.replace({ id: "item-7", customer: "customer-7", by: "somebody else" });
      await write(page, "Item", JSON.stringify({ id: "item-7", customer: "customer-7", by: "me" }));
      await page.click("dialog button:has-text('Save')");
      await page.waitForSelector(".conflict pre:has-text('somebody else')");
      await accessible(page, "conflict");
      await picture(page, "conflict");
      assert.equal((await item.read()).resource.by, "somebody else");
      await page.click("button:has-text('Overwrite it with mine')");
      await page.waitForSelector("dialog .notice.good");
      assert.equal((await item.read()).resource.by, "me");
      await page.keyboard.press("Escape");
    }, { expected: [412] }));

  it("uploads items", () =>
    open(async (page) => {
      const lines = [1, 2, 3].map((n) => JSON.stringify({ id: `up-${n}`, customer: "uploaded", _rid: "old" })).join("\n");
      await page.setInputFiles("input[type=file]", { name: "items.jsonl", mimeType: "application/json", buffer: Buffer.from(lines) });
      await page.waitForSelector("text=3 of 3 uploaded");
      const { resources } = await portal.good.items.query("SELECT VALUE c.id FROM c", { partitionKey: "uploaded" }).fetchAll();
      assert.deepEqual(resources, ["up-1", "up-2", "up-3"]);
    }));

  it("shows hostile names and values as text", async () => {
    const { container } = await portal.shop.containers.create({ id: hostileName, partitionKey: { paths: ["/kind"] } });
    await container.items.create({ id: hostile, kind: hostile, "<b>name</b>": "</script><script>alert(2)</script>" });
    await open(
      async (page) => {
        page.on("dialog", () => assert.fail("a script ran"));
        await run(page);
        await page.waitForSelector("table.rows tbody tr");
        assert.ok((await page.textContent("table.rows")).includes("</script><script>alert(2)</script>"));
        assert.ok((await page.textContent(".container-page h2")).includes(hostileName));
        await page.click("table.rows button.link");
        await page.waitForSelector("dialog .cm-content:has-text('right to left')");
        assert.equal(await page.textContent("dialog h2"), hostile);
        await page.click("dialog button:has-text('Close')");
        await page.evaluate(() => (location.hash = location.hash.replace("/data/", "/partitions/")));
        await page.waitForSelector(".keys.bars th");
        assert.ok((await page.textContent(".keys.bars th")).startsWith("<script>alert(1)<script>"));
        assert.equal(await page.locator("main script, main img").count(), 0);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling");
        await picture(page, "hostile");
      },
      { at: hostileName },
    );
  });

  it("edits and runs stored procedures", () =>
    open(async (page) => {
      await page.click("[data-choice=scripts]");
      await page.getByRole("button", { name: "New", exact: true }).click();
      await page.fill("input[name=script]", "greet");
      await write(page, "Stored procedures", "function greet(name) { console.log('called'); getContext().getResponse().setBody({ hello: name }); }");
      await page.click("section[aria-label=Scripts] button:has-text('Save')");
      await page.fill("form[aria-label='Run the procedure'] input[name=key]", "ana");
      await page.fill("form[aria-label='Run the procedure'] input[name=parameters]", '["Ana"]');
      await page.click("form[aria-label='Run the procedure'] button[type=submit]");
      await page.waitForSelector("pre.json:has-text('\"hello\": \"Ana\"')");
      await page.waitForSelector("form pre:has-text('called')");
      await accessible(page, "scripts");
      await picture(page, "scripts");
      await write(page, "Stored procedures", "function greet(name) { getContext().getResponse().setBody({ bye: name }); }");
      await page.click("section[aria-label=Scripts] button:has-text('Save')");
      await page.waitForSelector(".notice.good");
      await page.fill("form[aria-label='Run the procedure'] input[name=parameters]", '["Ana"]');
      await page.fill("form[aria-label='Run the procedure'] input[name=key]", "ana");
      await page.click("form[aria-label='Run the procedure'] button[type=submit]");
      await page.waitForSelector("pre.json:has-text('\"bye\": \"Ana\"')");
      await page.click("section[aria-label=Scripts] button.danger");
      await until(async () => (await portal.good.scripts.storedProcedures.readAll().fetchAll()).resources.length, (n) => n === 0);
    }));

  it("edits functions and triggers", () =>
    open(async (page) => {
      await page.click("[data-choice=scripts]");
      await page.click("[data-choice=udfs]");
      await page.getByRole("button", { name: "New", exact: true }).click();
      await page.fill("input[name=script]", "twice");
      await write(page, "Functions", "function twice(x) { return x + x; }");
      await page.click("section[aria-label=Scripts] button:has-text('Save')");
      await page.waitForSelector(".notice.good");
      await page.click("[data-choice=triggers]");
      await page.getByRole("button", { name: "New", exact: true }).click();
      await page.fill("input[name=script]", "stamp");
      await page.selectOption("select[aria-label='Operation']", "Create");
      await page.click("section[aria-label=Scripts] button:has-text('Save')");
      await page.waitForSelector(".notice.good");
      const { resource } = await portal.good.scripts.trigger("stamp").read();
      assert.deepEqual([resource.triggerType, resource.triggerOperation], ["Pre", "Create"]);
      await page.click("[data-choice=items]");
      await write(page, "Query", "SELECT TOP 1 VALUE udf.twice(c.city) FROM c WHERE c.city = 'Lima'");
      await run(page);
      await page.waitForSelector("table.rows td:has-text('LimaLima')");
    }));

  it("changes the settings of a container", () =>
    open(async (page) => {
      await page.click("[data-choice=settings]");
      await page.waitForSelector("section[aria-label=Settings] .cm-content");
      const settings = { id: "good", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 }, defaultTtl: -1, indexingPolicy: { indexingMode: "consistent", includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/text/?" }] } };
      await write(page, "Settings", JSON.stringify(settings));
      await page.click("section[aria-label=Settings] button:has-text('Save')");
      await page.waitForSelector(".notice.good");
      const { resource } = await portal.good.read();
      assert.deepEqual([resource.defaultTtl, resource.indexingPolicy.excludedPaths[0].path], [-1, "/text/?"]);
    }));

  it("shows changes when they happen", () =>
    open(async (page) => {
      await page.click("[data-choice=changes]");
      await page.waitForSelector("text=Waiting for changes");
      await new Promise((done) => setTimeout(done, 1200)); // the page has seen where every partition is
      await portal.good.items.upsert({ id: "seen", customer: "watched", n: 1 });
      await page.waitForSelector(".changes summary:has-text('seen')");
      await page.click(".changes summary");
      await page.waitForSelector(".changes pre:has-text('\"n\": 1')");
    }));

  it("is left by Escape", () =>
    open(async (page) => {
      await editor(page, "Query").focus();
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    }));
}
