// client_sdk.mjs URL KEY read|create SECONDS FIRST — the npm SDK doing what client_load does, 16 calls at a time; the same line of JSON.
import { createRequire } from "node:module";

const { CosmosClient } = createRequire(new URL("../tests/sdk/package.json", import.meta.url))("@azure/cosmos");
const [url, key, mode, seconds, first] = process.argv.slice(2);
const client = new CosmosClient({ endpoint: url, key });
const container = client.database("bench").container("client");
const item = (n) => ({ id: String(n), pk: `p${n % 100}`, n, note: "x".repeat(940) });
const items = 100;

for (let n = 0; n < items; n++) await container.items.upsert(item(n));
async function run(milliseconds) {
  const end = performance.now() + milliseconds;
  let done = 0;
  await Promise.all(
    Array.from({ length: 16 }, async (_, i) => {
      for (let n = i; performance.now() < end; n++, done++) {
        if (mode === "read") await container.item(String(n % items), `p${n % items}`).read();
        else await container.items.create(item(next++));
      }
    }),
  );
  return done;
}
let next = Number(first);
await run(1000); // until it is compiled
const before = process.cpuUsage();
const done = await run(Number(seconds) * 1000);
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ requests: done, rate: done / ((user + system) / 1e6), perSecond: done / Number(seconds) }));
