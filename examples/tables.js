// tables.js — one table, two APIs: devices report through the Table API; an application reads the same entities by SQL, and corrects some.
import { AzureNamedKeyCredential, odata, TableClient } from "@azure/data-tables";
import { key, openLab } from "./lab.js";

const lab = await openLab("tables", { usual: true });
const readings = new TableClient(lab.server.tables, `readings${Date.now().toString(36)}`, new AzureNamedKeyCredential("localhost", key), { allowInsecureConnection: true });
await readings.createTable();

// ---- devices: one partition each, a row for each reading; a hundred at a time ----

const devices = ["XMS-001", "XMS-002", "XMS-003"];
const reading = (device, n) => ({ partitionKey: device, rowKey: String(n).padStart(6, "0"), at: new Date(Date.UTC(2026, 0, 1, 0, n)), celsius: ((n * 37) % 500) / 10 });
for (const device of devices) {
  for (let from = 0; from < 500; from += 100) await readings.submitTransaction(Array.from({ length: 100 }, (_, i) => ["create", reading(device, from + i)]));
}

// ---- the Table API: the hot readings of one device, found by the index of its partition ----

const hot = [];
for await (const entity of readings.listEntities({ queryOptions: { filter: odata`PartitionKey eq ${devices[0]} and celsius gt 49.7` } })) hot.push(entity);
lab.say(`${devices[0]}: ${hot.length} readings above 49.7 °C, the first at ${hot[0].at.toISOString()}`);

// ---- SQL: what the Table API has no words for ----

const container = lab.patient.database("TablesDB").container(readings.tableName);
const { resources: means } = await container.items.query("SELECT c.PartitionKey AS device, AVG(c.celsius) AS mean, MAX(c.celsius) AS most FROM c GROUP BY c.PartitionKey").fetchAll();
lab.table(["device", "mean", "most"], means.sort((a, b) => (a.device < b.device ? -1 : 1)).map((row) => [row.device, row.mean.toFixed(2), row.most]));

// ---- SQL writes entities too, by the rules of tables ----

const { rowKey } = hot[0];
await container.item(rowKey, devices[0]).patch([{ op: "set", path: "/celsius", value: 20.5 }, { op: "add", path: "/corrected", value: true }]);
await container.items.create({ PartitionKey: devices[0], RowKey: "note", text: "sensor replaced" }, { disableAutomaticIdGeneration: true });
const corrected = await readings.getEntity(devices[0], rowKey);
const note = await readings.getEntity(devices[0], "note");
const refused = await container.items.create({ PartitionKey: devices[0], RowKey: "list", values: [1, 2] }, { disableAutomaticIdGeneration: true }).catch((error) => error);
lab.say(`\nafter SQL: ${corrected.celsius} °C, corrected ${corrected.corrected}; "${note.text}"; a list is refused with ${refused.code}`);

lab.result("hot", hot.length);
lab.result("means", means.map((row) => row.device));
lab.result("corrected", [corrected.celsius, corrected.corrected, note.text, refused.code]);
await readings.deleteTable();
await lab.close();
