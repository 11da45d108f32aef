// seed.js — the data that docs/admin.md and docs/query.md ask about: database shop, container orders, 1,500 orders of 150 customers.
//
//   ./dev run                # in one terminal
//   examples/run seed        # in another; [--endpoint URL] [--json]
//
// What is there already is written again, the same; so it can be run as often as one likes. Afterwards the container has 400 RU/s.

import { parseArgs } from "node:util";
import { CosmosClient } from "@azure/cosmos";

const { values } = parseArgs({ options: { endpoint: { type: "string", default: "http://localhost:8081" }, json: { type: "boolean", default: false } } });
const key = process.env.TESELA_KEY || "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const client = new CosmosClient({ endpoint: values.endpoint, key, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } });

const customers = 150, ordersOfEach = 10, writers = 20;
const cities = ["Lima", "Cusco", "Quito"];
const indexingPolicy = { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }, { path: '/"_etag"/?' }] };

function order(n) {
  const customer = Math.floor(n / ordersOfEach), nth = n % ordersOfEach;
  return {
    id: `order-${n}`,
    customer: customer === 0 ? "ana" : `customer-${customer}`,
    name: `Ana ${customer}`,
    city: cities[customer % cities.length],
    n: nth,
    total: (customer * 7 + nth * 13) % 500,
    note: "x",
  };
}

// As many at a time as there are writers; returns what they cost.
async function together(n, work) {
  let next = 0, charge = 0;
  const worker = async () => {
    while (next < n) {
      const { requestCharge } = await work(next++);
      charge += requestCharge;
    }
  };
  await Promise.all(Array.from({ length: writers }, worker));
  return charge;
}

async function setThroughput(container, throughput) {
  const { resource: offer } = await container.readOffer();
  offer.content.offerThroughput = throughput;
  await client.offer(offer.id).replace(offer);
}

const { database } = await client.databases.createIfNotExists({ id: "shop" });
const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: { paths: ["/customer"], version: 2 }, indexingPolicy, throughput: 10_000 });
const { resource: settings } = await container.read();
await container.replace({ ...settings, indexingPolicy });
await setThroughput(container, 10_000);
const written = await together(customers * ordersOfEach, (n) => container.items.upsert(order(n)));
await together(200, () => container.item("order-70", "customer-7").read()); // one customer is asked for more than the others
await setThroughput(container, 400);

const { resources: [count] } = await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
if (values.json) {
  console.log(JSON.stringify({ items: count, written }));
} else {
  console.log(`shop/orders has ${count} items; writing them cost ${Math.round(written).toLocaleString("en")} RU. Try:

  build/tesela top
  build/tesela explain shop/orders "SELECT * FROM c WHERE c.city = 'Lima' AND c.total > 100"
  build/tesela split shop/orders 0`);
}
client.dispose();
