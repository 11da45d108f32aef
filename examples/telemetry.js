// telemetry.js — readings of 200 devices, as they come in on one day: partitioned by the day, and by the device.
import { openLab, percent } from "./lab.js";

const lab = await openLab("telemetry");

const reading = (n) => ({
  id: `reading-${n}`,
  deviceId: `XMS-${String(n % 200).padStart(4, "0")}`,
  date: "2017-02-14",
  metricType: "Temperature",
  unit: "Fahrenheit",
  metricValue: 105,
});

const rows = [];
for (const path of ["/date", "/deviceId"]) {
  const container = await lab.container(path);
  const seen = await lab.load(container, reading);
  await lab.show(container, seen);
  await lab.showHottest(container);
  const { ru, throttled, part } = lab.result(path, seen.sum());
  rows.push([path, seen.asked, ru, throttled, percent(part)]);
}
lab.table(["key", "RU/s asked", "RU/s given", "429s", "of all writes"], rows);
await lab.close();
