// timeseries.js — log lines of 200 hosts, by a made-up clock whose hours last two seconds: partitioned by the hour, and by the host. Then what
// a container per period is good for: when its time is over it is scaled down, and its physical partitions become fewer again.
import { openLab, percent, sleep } from "./lab.js";

const lab = await openLab("timeseries");

const hourOf = (second) => `2018-08-09T${String(14 + Math.floor(second / 2)).padStart(2, "0")}`;
const line = (n, second) => ({ id: `line-${n}`, hour: hourOf(second), host: `web-${n % 200}`, level: "info", text: "request served" });

const rows = [];
for (const path of ["/hour", "/host"]) {
  const container = await lab.container(path);
  const seen = await lab.load(container, line);
  const ranges = await lab.ranges(container);
  lab.say(`${path}: RU/s of each physical partition, second by second`);
  const seconds = Array.from({ length: Math.floor(lab.seconds) }, (_, second) => {
    const spent = ranges.map(({ id }) => seen.sum((entry) => entry.second === second && entry.range === id).ru * seen.seconds);
    return [hourOf(second), ...spent, seen.sum((entry) => entry.second === second).throttled];
  });
  lab.table(["hour", ...ranges.map(({ id }) => `partition ${id}`), "429s"], seconds);
  const { ru, throttled, part } = lab.result(path, seen.sum());
  rows.push([path, seen.asked, ru, throttled, percent(part)]);
}
lab.table(["key", "RU/s asked", "RU/s given", "429s", "of all writes"], rows);

// A container for each period, by host: the one of last month, when only reads are left to serve.
const month = await lab.container("/host", { throughput: 2000 });
await Promise.all(Array.from({ length: 200 }, (_, n) => lab.patiently(month).items.create(line(n, 0))));
const look = async () => ({
  partitions: (await lab.ranges(month)).length,
  items: (await lab.patiently(month).items.readAll().fetchAll()).resources.length,
});
const before = await look();
const { resource, offer } = await month.readOffer();
await offer.replace({ ...resource, content: { offerThroughput: 400 } });
for (let wait = 0; wait < 50 && (await lab.ranges(month)).length === before.partitions; wait++) await sleep(100);
const after = await look();
lab.result("scaled down", { before, after });
lab.table(["last month's", "partitions", "items"], [["2,000 RU/s", before.partitions, before.items], ["400 RU/s", after.partitions, after.items]]);
await lab.close();
