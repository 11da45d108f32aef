// table_sdk.mjs URL KEY get|insert SECONDS FIRST — the npm SDK against a table service: 32 calls at a time, one line of JSON with the rate.
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";

const [url, key, mode, seconds, first] = process.argv.slice(2);
const calls = 32, entities = 100;
const client = new TableClient(url, "bysdk", new AzureNamedKeyCredential("devstoreaccount1", key), { allowInsecureConnection: true });
const entity = (n) => ({ partitionKey: `p${n % 100}`, rowKey: String(n), n, when: new Date(0), note: "x".repeat(900) });

await client.createTable({ requestOptions: { customHeaders: { "x-ms-offer-throughput": "1000000" } } });
for (let n = 0; n < entities; n++) await client.upsertEntity(entity(n));
const warm = performance.now() + 500, end = warm + Number(seconds) * 1000;
let next = Number(first), done = 0;
async function caller(index) {
  for (let n = index; performance.now() < end; n++) {
    if (mode === "get") await client.getEntity(`p${n % entities}`, String(n % entities));
    else await client.createEntity(entity(next++));
    if (performance.now() > warm) done++;
  }
}
await Promise.all(Array.from({ length: calls }, (_, i) => caller(i)));
console.log(JSON.stringify({ rate: done / Number(seconds), requests: done }));
