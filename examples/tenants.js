// tenants.js — fifty tenants, one of them (contoso) as busy as all the others together: partitioned by the tenant; by tenant and user, a
// hierarchical key; and with a container of its own for the large one. Each is looked at twice: while contoso is small, and after its
// archive has come in, six times what one logical partition may hold.
import { randomUUID } from "node:crypto";
import { openLab, percent, sleep } from "./lab.js";

const lab = await openLab("tenants");
const users = 40;
const isContoso = ({ item }) => item.tenantId === "contoso";

const orderOf = (tenantId, n) => ({ id: randomUUID(), tenantId, userId: `user-${n % users}`, product: "tesserae", quantity: 12 });
const contosoOrder = (n) => orderOf("contoso", n);
const smallOrder = (n) => orderOf(`tenant-${n % 49}`, n);
const anyOrder = (n) => (n % 2 ? contosoOrder(n >> 1) : smallOrder(n >> 1));

// 40 papers of 8 KB.
async function archive(container) {
  for (let n = 0; n < users; n++) {
    try {
      await lab.patiently(container).items.create({ ...contosoOrder(n), text: "x".repeat(8 * 1024) });
    } catch (error) {
      if (error.substatus !== 1014) throw error;
      lab.say(`  paper ${n + 1}: ${error.code}/1014, ${error.message.split("\n")[0].trim()}`);
      return n;
    }
  }
  await settle(container);
  return users;
}

// Splits come by themselves, within about a second of the write that makes a partition too large.
async function settle(container) {
  for (let before = 0, now = 1; before !== now; before = now) {
    await sleep(1300);
    now = (await lab.ranges(container)).length;
  }
}

const rows = [];
async function note(name, container, papers, contoso, small) {
  const partitions = (await lab.ranges(container)).length;
  (lab.results[name] ??= {})[papers ? "after" : "before"] = { papers, partitions, contoso, small };
  rows.push([name, `${papers} of ${users}`, contoso.ru, percent(contoso.part), contoso.full, small.ru, percent(small.part)]);
}

for (const paths of ["/tenantId", ["/tenantId", "/userId"]]) {
  const container = await lab.container(paths);
  for (const come of [() => 0, archive]) {
    const papers = await come(container);
    const seen = await lab.load(container, anyOrder);
    await lab.show(container, seen);
    await note(container.paths.join(", "), container, papers, seen.sum(isContoso), seen.sum((entry) => !isContoso(entry)));
  }
}

// 400 RU/s is the least that a container can have.
const shared = await lab.container("/tenantId", { throughput: 400 });
const own = await lab.container("/userId", { throughput: 400 });
const papers = await archive(own);
const [small, contoso] = await Promise.all([lab.load(shared, smallOrder, { part: 0.5 }), lab.load(own, contosoOrder, { part: 0.5 })]);
await lab.show(shared, small);
await lab.show(own, contoso);
await note("two containers", own, papers, contoso.sum(), small.sum());

lab.table(["key", "papers", "contoso: RU/s", "429s", "403s", "others: RU/s", "429s"], rows);
await lab.close();
