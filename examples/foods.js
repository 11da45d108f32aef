// foods.js — foods of eight groups, some much larger than others: partitioned by the group, and by the food's own id.
import { openLab, percent } from "./lab.js";

const lab = await openLab("foods");

const groups = [
  ...Array(10).fill("Beef Products"),
  ...Array(8).fill("Vegetables and Vegetable Products"),
  ...Array(5).fill("Baked Products"),
  ...Array(4).fill("Poultry Products"),
  ...Array(4).fill("Beverages"),
  ...Array(3).fill("Dairy and Egg Products"),
  ...Array(2).fill("Sausages and Luncheon Meats"),
  "Spices and Herbs",
];
const food = (n) => ({ id: `food-${n}`, foodGroup: groups[(n * 7) % groups.length], label: "x".repeat(4000) });

const rows = [];
for (const path of ["/foodGroup", "/id"]) {
  const container = await lab.container(path);
  const seen = await lab.load(container, food);
  await lab.showStorage(container);
  const sum = lab.result(path, seen.sum());
  if (seen.fullText) lab.say(`  ${sum.full} foods were refused with 403/1014: ${seen.fullText}\n`);
  rows.push([path, seen.asked, sum.ru, sum.throttled, percent(sum.part), sum.full]);
}
lab.table(["key", "RU/s asked", "RU/s given", "429s", "of all writes", "403s"], rows);
await lab.close();
