// timeseries.js — log lines of 200 hosts, by a made-up clock whose hours last two seconds: partitioned by the hour, and by the host. Then what a
// container per period is good for: when its time is over it is scaled down, and its physical partitions become fewer again.
import { openLab, percent, sleep } from "./lab.js";

const lab = await openLab("timeseries");

const hourOf = (second) => `2018-08-09T${String(14 + Math.floor(second / 2)).padStart(2, "0")}`;
const line = (n, second) => ({ id: `line-${n}`, hour: hourOf(second), host: `web-${n % 200}`, level: "info", text: "request served" });

const rows = [];
let byHost;
for (const path of ["/hour", "/host"]) {
  const container = await lab.container(path);
  const seen = await lab.load(container, line);
  const ranges = await lab.ranges(container);
  lab.say(`${path}: RU/s of each physical partition, second by second`);
  const seconds = Array.from({ length: Math.floor(lab.seconds) }, (_, second) => {
    const spent = ranges.map(({ id }) => seen.sum((entry) => entry.second === second && entry.range === id).ru * lab.seconds);
    return [hourOf(second), ...spent, seen.sum((entry) => entry.second === second).throttled];
  });
  lab.table(["hour", ...ranges.map(({ id }) => `partition ${id}`), "429s"], seconds);
  const { ru, throttled, part } = lab.result(path, seen.sum());
  rows.push([path, seen.asked, ru, throttled, percent(part)]);
  byHost = container;
}
lab.table(["key", "RU/s asked", "RU/s given", "429s", "of all writes"], rows);

// The period is over: few reads are left to serve.
const count = async () => (await lab.patiently(byHost).items.readAll().fetchAll()).resources.length;
const before = { partitions: (await lab.ranges(byHost)).length, items: await count() };
const { resource, offer } = await byHost.readOffer();
await offer.replace({ ...resource, content: { offerThroughput: 400 } });
for (let wait = 0; wait < 50 && (await lab.ranges(byHost)).length === before.partitions; wait++) await sleep(100);
const after = { partitions: (await lab.ranges(byHost)).length, items: await count() };
lab.result("scaled down", { before, after });
lab.table(["/host", "partitions", "items"], [["2,000 RU/s", before.partitions, before.items], ["400 RU/s", after.partitions, after.items]]);
await lab.close();
