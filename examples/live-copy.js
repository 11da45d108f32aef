// live-copy.js — a container moves to another partition key while its application goes on: the change feed copies what is there and then what
// changes, until the copy has caught up; then the writers stop for a moment, the rest is copied, and the application goes on with the copy.
//
// Orders were partitioned by the day they came in on, so that one physical partition takes all of today's; the copy is partitioned by customer.
// In the middle a physical partition of the original is split, which does not matter to the copy.
// The feed has each item's latest version and no deletes: the application marks what it takes away (`deleted`, with a ttl, as the service's own
// guide has it), and the copy then holds the mark, and later forgets it as the original does.
import { ChangeFeedStartFrom } from "@azure/cosmos";
import { openLab, sleep, whole } from "./lab.js";

const lab = await openLab("live-copy");
const from = lab.patiently(await lab.container("/day", { throughput: 1000, defaultTtl: -1 }));
const to = lab.patiently(await lab.container("/customer", { throughput: 1000, defaultTtl: -1 }));

// ---- the application ----

const orders = 120;
const order = (n, version) => ({ id: `order-${n}`, day: `2026-11-${10 + (n % 20)}`, customer: `customer-${(n * 31) % 60}`, version, total: (n * 997) % 500 });
const written = { orders: 0, changes: 0, removals: 0 };
let writes = true;

async function change(n, version) {
  const removes = version > 0 && (n + version) % 7 === 6;
  written[version === 0 ? "orders" : removes ? "removals" : "changes"]++;
  await from.items.upsert(removes ? { ...order(n, version), deleted: true, ttl: 3600 } : order(n, version));
}

// Each has orders of its own, and changes them one after the other.
async function clerk(first, step) {
  for (let version = 1; writes; version++) {
    for (let n = first; n < orders && writes; n += step) {
      await change(n, version);
      await sleep(50);
    }
  }
}

// ---- the copy ----

const system = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
const plain = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !system.includes(name)));
const copied = { items: 0, pages: 0 };

// Copies what is new, until nothing is; returns where it stands, which an application would write down after each page, to go on there
// should it be stopped. Doing a page twice does no harm: it has the same versions, or later ones.
async function copyOn(token) {
  const start = token ? ChangeFeedStartFrom.Continuation(token) : ChangeFeedStartFrom.Beginning();
  const changes = from.items.getChangeFeedIterator({ changeFeedStartFrom: start, maxItemCount: 50 });
  for (;;) {
    const page = await changes.readNext();
    if (page.statusCode === 304) return page.continuationToken;
    copied.pages++;
    copied.items += page.count;
    await Promise.all(page.result.map((item) => to.items.upsert(plain(item))));
  }
}

// ---- all of it ----

// The physical partition with most keys.
async function split(container) {
  const [most] = (await lab.ranges(container)).sort((a, b) => b.logicalPartitions - a.logicalPartitions);
  await lab.command("split", container, { range: most.id });
}

const rows = [];
const note = (what) => rows.push([what, copied.items, copied.pages, written.changes, written.removals]);

await Promise.all(Array.from({ length: orders }, (_, n) => change(n, 0)));
const clerks = [0, 1, 2].map((first) => clerk(first, 3));
let token = await copyOn();
note("what was there");
for (let end = Date.now() + lab.seconds * 1000, turn = 0; turn < 3 || Date.now() < end; turn++) {
  if (turn === 1) await split(from);
  await sleep(200);
  token = await copyOn(token);
}
note("what changed meanwhile");
writes = false;
await Promise.all(clerks);
token = await copyOn(token);
note("the rest, once the writers had stopped");

// ---- are they the same? ----

const all = async (container) => (await container.items.readAll().fetchAll()).resources.map(plain).map((item) => JSON.stringify(item)).sort();
const [original, copy] = await Promise.all([all(from), all(to)]);
const missing = original.filter((item) => !copy.includes(item)).length, extra = copy.filter((item) => !original.includes(item)).length;
lab.table(["copied", "items", "in pages", "of changes", "and removals"], rows);
lab.say(`${whole(original.length)} items by ${["/day", "/customer"].join(" and by ")}: ${missing || extra ? `${missing} missing, ${extra} too many` : "the same"}.`);
const ranges = await Promise.all([from, to].map(async (container) => (await lab.ranges(container)).length));
lab.result("copy", { items: copy.length, missing, extra, changes: written.changes, removals: written.removals, copied: copied.items, ranges });
await lab.close();
if (missing || extra) process.exitCode = 1;
