// Unique keys: no two items of a logical partition have the same values at a key's paths.

import { assert, suite, fails } from "./harness.js";

const violation = "Unique index constraint violation.";

suite("unique keys", (t) => {
  const withKeys = (...keys) => t.container({ uniqueKeyPolicy: { uniqueKeys: keys.map((paths) => ({ paths })) } });

  t.it("hold within a logical partition only", async () => {
    const { items } = await withKeys(["/email"]);
    await items.create({ id: "1", pk: "a", email: "x" });
    await fails(items.create({ id: "2", pk: "a", email: "x" }), 409, { text: violation });
    await items.create({ id: "2", pk: "b", email: "x" });
    await items.create({ id: "2", pk: "a", email: "y" });
  });

  t.it("count a missing value as null", async () => {
    const { items } = await withKeys(["/email"]);
    await items.create({ id: "1", pk: "a" });
    await fails(items.create({ id: "2", pk: "a" }), 409, { text: violation });
    await fails(items.create({ id: "2", pk: "a", email: null }), 409, { text: violation });
    await items.create({ id: "2", pk: "a", email: "" });
  });

  t.it("may have several paths, which count together", async () => {
    const { items } = await withKeys(["/first", "/last/name"]);
    await items.create({ id: "1", pk: "a", first: "Ana", last: { name: "Paz" } });
    await items.create({ id: "2", pk: "a", first: "Ana", last: { name: "Sol" } });
    await items.create({ id: "3", pk: "a", first: "Eva", last: { name: "Paz" } });
    await items.create({ id: "4", pk: "a", first: "Ana" });
    await fails(items.create({ id: "5", pk: "a", first: "Ana", last: { name: "Paz" } }), 409, { text: violation });
    await fails(items.create({ id: "5", pk: "a", first: "Ana", last: {} }), 409, { text: violation });
  });

  t.it("may be several, each by itself", async () => {
    const { items } = await withKeys(["/email"], ["/phone"]);
    await items.create({ id: "1", pk: "a", email: "x", phone: 1 });
    await fails(items.create({ id: "2", pk: "a", email: "y", phone: 1 }), 409, { text: violation });
    await fails(items.create({ id: "2", pk: "a", email: "x", phone: 2 }), 409, { text: violation });
    await items.create({ id: "2", pk: "a", email: "y", phone: 2 });
  });

  t.it("tell values of different types apart", async () => {
    const { items } = await withKeys(["/v"]);
    const values = [1, "1", true, false, null, "true", "", [1], { a: 1 }, 1.5, -1];
    for (const [i, v] of values.entries()) await items.create({ id: `${i}`, pk: "a", v });
    for (const v of values) await fails(items.create({ id: "again", pk: "a", v }), 409, { text: violation });
    const long = "x".repeat(3000);
    await items.create({ id: "long", pk: "a", v: long });
    await fails(items.create({ id: "again", pk: "a", v: long }), 409, { text: violation });
    await items.create({ id: "longer", pk: "a", v: `${long}y` });
  });

  t.it("hold for replace, upsert and patch", async () => {
    const container = await withKeys(["/email"]);
    const { items } = container;
    await items.create({ id: "1", pk: "a", email: "x" });
    await items.create({ id: "2", pk: "a", email: "y" });
    await fails(container.item("2", "a").replace({ id: "2", pk: "a", email: "x" }), 409, { text: violation });
    await fails(items.upsert({ id: "2", pk: "a", email: "x" }), 409, { text: violation });
    await fails(items.upsert({ id: "3", pk: "a", email: "x" }), 409, { text: violation });
    await fails(container.item("2", "a").patch([{ op: "set", path: "/email", value: "x" }]), 409, { text: violation });
    assert.equal((await container.item("2", "a").read()).resource.email, "y");
    await container.item("1", "a").replace({ id: "1", pk: "a", email: "x", same: true });
    await container.item("1", "a").replace({ id: "1", pk: "a", email: "z" });
    await container.item("2", "a").replace({ id: "2", pk: "a", email: "x" });
    await items.upsert({ id: "3", pk: "a", email: "y" });
  });

  t.it("are free again after a delete", async () => {
    const container = await withKeys(["/email"]);
    await container.items.create({ id: "1", pk: "a", email: "x" });
    await container.item("1", "a").delete();
    await container.items.create({ id: "2", pk: "a", email: "x" });
  });

  t.it("hold inside a batch, among its own operations too", async () => {
    const { items } = await withKeys(["/email"]);
    const create = (id, email) => ({ operationType: "Create", resourceBody: { id, pk: "a", email } });
    const clash = await items.batch([create("1", "x"), create("2", "x")], "a");
    assert.equal(clash.code, 207);
    assert.deepEqual(clash.result.map((one) => one.statusCode), [424, 409]);
    const swap = await items.batch([create("1", "x"), { operationType: "Delete", id: "1" }, create("2", "x")], "a");
    assert.deepEqual(swap.result.map((one) => one.statusCode), [201, 204, 201]);
  });

  t.it("are at most ten of at most sixteen paths", async () => {
    const ten = Array.from({ length: 10 }, (_, i) => [`/k${i}`]);
    await withKeys(...ten);
    await fails(withKeys(...ten, ["/more"]), 400);
    const sixteen = Array.from({ length: 16 }, (_, i) => `/p${i}`);
    await withKeys(sixteen);
    await fails(withKeys([...sixteen, "/more"]), 400);
    await fails(withKeys([]), 400);
    await fails(withKeys(["email"]), 400);
  });
});
