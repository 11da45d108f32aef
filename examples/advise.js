// advise.js — what `tesela advise` says about the telemetry of telemetry.js: the date is a bad key, the device a good one, before anything
// is stored.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const binary = resolve(process.env.TESELA_BIN || join(dirname(fileURLToPath(import.meta.url)), "../build/tesela"));
const json = process.argv.includes("--json");
const folder = mkdtempSync(join(tmpdir(), "tesela-advise-"));

// 200 devices send readings for two weeks.
const readings = Array.from({ length: 20000 }, (_, n) => ({
  id: `reading-${n}`,
  deviceId: `XMS-${String((n * 7919) % 200).padStart(4, "0")}`,
  date: `2017-02-${String(1 + Math.floor(n / 1429)).padStart(2, "0")}`,
  metric: n % 2 ? "temperature" : "humidity",
  value: (n % 400) / 4,
}));
// Most requests are writes; most queries ask for one device.
const requests = [
  { operation: "create", charge: 7, count: 5000 },
  { query: "SELECT TOP 1 * FROM c WHERE c.deviceId = 'XMS-0007' ORDER BY c._ts DESC", count: 500 },
  { query: "SELECT TOP 1 * FROM c WHERE c.deviceId = 'XMS-0107' ORDER BY c._ts DESC", count: 500 },
  { query: "SELECT * FROM c WHERE c.metric = 'temperature' AND c['value'] > 99", count: 20 },
];

const write = (name, lines) => {
  writeFileSync(join(folder, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return join(folder, name);
};
const told = spawnSync(binary, ["advise", write("readings.jsonl", readings), "--log", write("requests.jsonl", requests), ...(json ? ["--json"] : [])], {
  stdio: ["ignore", "inherit", "inherit"],
});
rmSync(folder, { recursive: true, force: true });
process.exitCode = told.status ?? 1;
