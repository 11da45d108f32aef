// Containers that the other APIs have made, by their own drivers: shown in the explorer, their items viewed, changed where that API's rules allow it,
// and where they do not, that is said.

import { createRequire } from "node:module";
import { it } from "node:test";
import { accessible, assert, editor, emulatorKey, picture, signIn, until, write } from "./harness.js";

const driver = (folder, name) => createRequire(new URL(`../${folder}/package.json`, import.meta.url))(name);

async function makeDocuments(server) {
  const { MongoClient } = driver("mongo", "mongodb");
  const client = new MongoClient(`mongodb://localhost:${encodeURIComponent(emulatorKey)}@${server.ready.mongo}/?directConnection=true`);
  const animals = client.db("zoo").collection("animals");
  await animals.insertMany([{ _id: "a", name: "Ara", n: 5 }, { name: "Boa" }]);
  return { animals, close: () => client.close() };
}

async function makeRows(server) {
  const cassandra = driver("cassandra", "cassandra-driver");
  const authProvider = new cassandra.auth.PlainTextAuthProvider("localhost", emulatorKey);
  const client = new cassandra.Client({ contactPoints: [server.ready.cassandra], localDataCenter: "datacenter1", authProvider });
  await client.execute("CREATE KEYSPACE profiles WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}");
  await client.execute("CREATE TABLE profiles.orders (customer text, id int, total int, PRIMARY KEY (customer, id))");
  await client.execute("INSERT INTO profiles.orders (customer, id, total) VALUES ('ana', 1, 42)");
  await client.shutdown();
}

async function makeEntities(server) {
  const { AzureNamedKeyCredential, TableClient } = driver("table", "@azure/data-tables");
  const endpoint = `http://127.0.0.1:${server.ready.table.replace(/.*:/, "")}/localhost`;
  const people = new TableClient(endpoint, "people", new AzureNamedKeyCredential("localhost", emulatorKey), { allowInsecureConnection: true });
  await people.createTable();
  await people.createEntity({ partitionKey: "Lima", rowKey: "1", name: "Ana" });
  return people;
}

// A graph's container is made by the SQL API; vertices are the Gremlin API's.
async function makeVertices(portal) {
  const gremlin = driver("gremlin-driver", "gremlin");
  await portal.shop.containers.create({ id: "graph", partitionKey: { paths: ["/city"] } });
  const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/shop/colls/graph", emulatorKey);
  const client = new gremlin.driver.Client(`ws://${portal.server.ready.gremlin}/`, { authenticator, traversalsource: "g", mimeType: "application/vnd.gremlin-v2.0+json" });
  await client.submit("g.addV('person').property('id', 'ana').property('city', 'Lima').property('age', 5)");
  return client;
}

const editorText = async (page) => (await editor(page, "Item").textContent()).replaceAll("\u00a0", " ");

export function apis(portal) {
  const open = (at, body, options = {}) =>
    portal.browser.with(portal.server, options, async (page) => {
      await signIn(page, portal.server, { at: `#/data/${at}` });
      await page.waitForSelector(".editor .cm-content");
      await page.click("section[aria-label=Items] button:has-text('Run')");
      await page.waitForSelector("table.rows tbody tr");
      await body(page);
    });
  const openRow = async (page, cell) => {
    await page.click(`table.rows tr:has-text('${cell}') button.link`);
    await page.waitForSelector("dialog .cm-content");
  };
  const save = async (page, item) => {
    await write(page, "Item", JSON.stringify(item));
    await page.click("dialog button:has-text('Save')");
    await page.waitForSelector("dialog .notice.good");
  };

  it("shows and edits documents of MongoDB", async () => {
    const { animals, close } = await makeDocuments(portal.server);
    try {
      await open("zoo/animals", async (page) => {
        await page.waitForSelector(".tree a:has-text('animals') small:has-text('mongo')");
        await page.waitForSelector("[data-foreign=mongo]:has-text('by MongoDB')");
        await openRow(page, "Ara");
        await save(page, { _id: "a", name: "Ara", n: 6 });
        assert.deepEqual(await animals.findOne({ _id: "a" }), { _id: "a", name: "Ara", n: 6 });
        await page.keyboard.press("Escape");
        await openRow(page, "Boa"); // its _id is an ObjectId
        assert.match(await editorText(page), /"\$oid": "[0-9a-f]{24}"/);
        await page.click("dialog button.danger");
        await until(() => animals.countDocuments({ name: "Boa" }), (n) => n === 0);
        await page.click("[data-choice=scripts]");
        await page.waitForSelector("section:has-text('belongs to the MongoDB API')");
        assert.equal(await page.locator("section[aria-label=Scripts] button:text-is('New')").count(), 0);
        await page.click("[data-choice=settings]");
        await page.waitForSelector("section[aria-label=Settings]:has-text('its settings are changed there') .cm-content[aria-readonly=true]");
      });
    } finally {
      await close();
    }
  });

  it("shows rows of Cassandra, and says that only its drivers write them", async () => {
    await makeRows(portal.server);
    await open("profiles/orders", async (page) => {
      await page.waitForSelector(".tree a:has-text('orders') small:has-text('cassandra')");
      await page.waitForSelector("[data-foreign=cassandra]:has-text('only Cassandra')");
      assert.equal(await page.locator("button:has-text('New item'), button:has-text('Upload')").count(), 0);
      await openRow(page, "ana");
      assert.match(await editorText(page), /"total": 42/);
      assert.equal(await page.locator("dialog button:has-text('Save'), dialog button.danger").count(), 0);
      await accessible(page, "row of Cassandra");
      await picture(page, "cassandra");
    });
  });

  it("shows and edits entities of tables", async () => {
    const people = await makeEntities(portal.server);
    await open("TablesDB/people", async (page) => {
      await page.waitForSelector(".tree a:has-text('people') small:has-text('table')");
      await openRow(page, "Ana");
      assert.equal(await page.textContent("dialog h2"), "1");
      await save(page, { PartitionKey: "Lima", RowKey: "1", name: "Anita" });
      assert.equal((await people.getEntity("Lima", "1")).name, "Anita");
      await page.keyboard.press("Escape");
      await page.click("button:has-text('New item')");
      assert.deepEqual(Object.keys(JSON.parse(await editorText(page).then((text) => text.replace(/^\d+/, "")))), ["RowKey", "PartitionKey"]);
      await save(page, { PartitionKey: "Lima", RowKey: "2", name: "Beto" });
      assert.equal((await people.getEntity("Lima", "2")).name, "Beto");
      await page.click("dialog button.danger");
      await until(() => people.getEntity("Lima", "2").then(() => 1, () => 0), (n) => n === 0);
    });
  });

  it("shows and edits vertices", async () => {
    const client = await makeVertices(portal);
    try {
      await open("shop/graph", async (page) => {
        await openRow(page, "ana");
        await save(page, { id: "ana", label: "person", city: "Lima", age: [{ id: "p1", _value: 6 }] });
        const { _items } = await client.submit("g.V('ana').values('age')");
        assert.deepEqual(_items, [6]);
      });
    } finally {
      await client.close();
    }
  });
}
