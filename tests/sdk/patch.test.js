// PATCH: the six operations on members and arrays; rejected patches.

import { assert, suite, fails, refused, key, withoutSystem } from "./harness.js";

suite("patch", (t) => {
  let container;

  // Applies the operations and returns the item without system properties.
  const patched = async (item, operations) => {
    container ??= await t.container();
    const id = t.name();
    await container.items.create({ id, pk: "a", ...item });
    const { resource, statusCode } = await container.item(id, "a").patch(operations);
    assert.equal(statusCode, 200);
    assert.deepEqual((await container.item(id, "a").read()).resource, resource);
    const { id: sameId, pk, ...rest } = withoutSystem(resource);
    assert.deepEqual([sameId, pk], [id, "a"]);
    return rest;
  };

  // Checks that the operations are rejected and the item is unchanged.
  const refuses = async (item, operations, text, code = 400) => {
    container ??= await t.container();
    const id = t.name();
    const { resource: before } = await container.items.create({ id, pk: "a", ...item });
    await fails(container.item(id, "a").patch(operations), code, { text });
    assert.deepEqual((await container.item(id, "a").read()).resource, before);
  };

  t.it("add: a member, over a member, into an array, at its end", async () => {
    assert.deepEqual(await patched({}, [{ op: "add", path: "/v", value: { x: [1] } }]), { v: { x: [1] } });
    assert.deepEqual(await patched({ v: 1 }, [{ op: "add", path: "/v", value: 2 }]), { v: 2 });
    assert.deepEqual(await patched({ a: [1, 3] }, [{ op: "add", path: "/a/1", value: 2 }]), { a: [1, 2, 3] });
    assert.deepEqual(await patched({ a: [1, 2] }, [{ op: "add", path: "/a/-", value: 3 }]), { a: [1, 2, 3] });
    assert.deepEqual(await patched({ a: [1] }, [{ op: "add", path: "/a/1", value: 2 }]), { a: [1, 2] });
    assert.deepEqual(await patched({ o: { p: {} } }, [{ op: "add", path: "/o/p/q", value: null }]), { o: { p: { q: null } } });
  });

  t.it("set: like add, but over an array's element", async () => {
    assert.deepEqual(await patched({ a: [1, 3] }, [{ op: "set", path: "/a/1", value: 2 }]), { a: [1, 2] });
    assert.deepEqual(await patched({ a: [1] }, [{ op: "set", path: "/a/-", value: 2 }]), { a: [1, 2] });
    assert.deepEqual(await patched({}, [{ op: "set", path: "/v", value: false }]), { v: false });
    assert.deepEqual(await patched({ v: 1 }, [{ op: "set", path: "/v", value: "x" }]), { v: "x" });
  });

  t.it("replace: only what is there", async () => {
    assert.deepEqual(await patched({ v: 1 }, [{ op: "replace", path: "/v", value: [2] }]), { v: [2] });
    assert.deepEqual(await patched({ a: [1, 2] }, [{ op: "replace", path: "/a/0", value: 9 }]), { a: [9, 2] });
    await refuses({}, [{ op: "replace", path: "/v", value: 1 }], "Node(/v) to be replaced is absent.");
    await refuses({ a: [1] }, [{ op: "replace", path: "/a/1", value: 1 }], "Index(1) to operate on is out of array bounds");
  });

  t.it("remove: only what is there", async () => {
    assert.deepEqual(await patched({ v: 1, w: 2 }, [{ op: "remove", path: "/v" }]), { w: 2 });
    assert.deepEqual(await patched({ a: [1, 2, 3] }, [{ op: "remove", path: "/a/1" }]), { a: [1, 3] });
    assert.deepEqual(await patched({ o: { x: { y: 1 } } }, [{ op: "remove", path: "/o/x" }]), { o: {} });
    await refuses({}, [{ op: "remove", path: "/v" }], "Node(/v) to be removed is absent.");
    await refuses({ a: [] }, [{ op: "remove", path: "/a/0" }], "out of array bounds");
  });

  t.it("incr: integers, fractions, from nothing", async () => {
    assert.deepEqual(await patched({ v: 5 }, [{ op: "incr", path: "/v", value: 3 }]), { v: 8 });
    assert.deepEqual(await patched({ v: 5 }, [{ op: "incr", path: "/v", value: -7.5 }]), { v: -2.5 });
    assert.deepEqual(await patched({}, [{ op: "incr", path: "/v", value: 2 }]), { v: 2 });
    assert.deepEqual(await patched({ a: [1, 2] }, [{ op: "incr", path: "/a/1", value: 10 }]), { a: [1, 12] });
    await refuses({ v: "x" }, [{ op: "incr", path: "/v", value: 1 }], "is not a number");
    await refuses({ v: 1 }, [{ op: "incr", path: "/v", value: "1" }], "not a number");
  });

  t.it("incr keeps integers of 64 bits exact", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, '{"id":"1","pk":"a","v":9007199254740993}', { headers: key("a") });
    const answer = await t.rest.patch(`${path}/docs/1`, '{"operations":[{"op":"incr","path":"/v","value":9007199254740993}]}', { headers: key("a") });
    assert.match(answer.text, /"v":18014398509481986,/);
  });

  t.it("move: from one place to another", async () => {
    assert.deepEqual(await patched({ v: 1 }, [{ op: "move", from: "/v", path: "/w" }]), { w: 1 });
    assert.deepEqual(await patched({ o: { x: 1 }, v: 2 }, [{ op: "move", from: "/o/x", path: "/v" }]), { o: {}, v: 1 });
    assert.deepEqual(await patched({ a: [1, 2, 3] }, [{ op: "move", from: "/a/0", path: "/first" }]), { a: [2, 3], first: 1 });
    await refuses({}, [{ op: "move", from: "/v", path: "/w" }], "Node(/v) to be moved is absent.");
    await refuses({ o: { p: {} } }, [{ op: "move", from: "/o", path: "/o/p/q" }], "inside of what is to be moved");
  });

  t.it("applies operations in order, or none of them", async () => {
    const steps = [
      { op: "add", path: "/a", value: [] },
      { op: "add", path: "/a/-", value: 1 },
      { op: "add", path: "/a/0", value: 0 },
      { op: "incr", path: "/a/1", value: 10 },
      { op: "set", path: "/b", value: "b" },
      { op: "move", from: "/b", path: "/c" },
    ];
    assert.deepEqual(await patched({}, steps), { a: [0, 11], c: "b" });
    await refuses({ v: 1 }, [{ op: "set", path: "/v", value: 2 }, { op: "remove", path: "/nothing" }], "For Operation(2): Node(/nothing)");
  });

  t.it("escapes paths as JSON pointers do, and reaches any name", async () => {
    const odd = { "a/b": 1, "c~d": 2, "": 3, "ñ": 4, "0": 5 };
    assert.deepEqual(await patched({ ...odd }, [{ op: "incr", path: "/a~1b", value: 1 }, { op: "incr", path: "/c~0d", value: 1 }, { op: "incr", path: "/ñ", value: 1 }]), {
      ...odd,
      "a/b": 2,
      "c~d": 3,
      "ñ": 5,
    });
    assert.deepEqual(await patched({ "0": "zero" }, [{ op: "set", path: "/0", value: 1 }]), { "0": 1 });
  });

  t.it("makes no parents", async () => {
    await refuses({}, [{ op: "add", path: "/o/p", value: 1 }], "Add Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'o'");
    await refuses({ v: 1 }, [{ op: "set", path: "/v/w", value: 1 }], "cannot create path recursively");
    await refuses({ a: [1] }, [{ op: "add", path: "/a/5", value: 1 }], "out of array bounds");
  });

  t.it("does not touch id, partition key and system properties", async () => {
    await refuses({}, [{ op: "set", path: "/id", value: "x" }]);
    await refuses({}, [{ op: "remove", path: "/id" }]);
    await refuses({}, [{ op: "set", path: "/pk", value: "x" }], "partition key");
    await refuses({}, [{ op: "remove", path: "/pk" }], "partition key");
    await refuses({ v: 1 }, [{ op: "move", from: "/pk", path: "/v" }], "partition key");
    for (const name of ["_ts", "_etag", "_rid", "_self"]) await refuses({}, [{ op: "set", path: `/${name}`, value: 1 }], name);
    assert.deepEqual(await patched({ v: 1 }, [{ op: "set", path: "/pk", value: "a" }]), { v: 1 }, "the same value is no change");
  });

  t.it("takes at most ten operations, and at least one", async () => {
    const ten = Array.from({ length: 10 }, (_, i) => ({ op: "set", path: `/v${i}`, value: i }));
    assert.equal(Object.keys(await patched({}, ten)).length, 10);
    await refuses({}, [...ten, { op: "set", path: "/v10", value: 10 }], "The number of patch operations can't exceed '10'.");
    await refuses({}, []);
  });

  t.it("refuses what is no patch", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    const bodies = [
      {}, [], "x", "null", { operations: {} }, { operations: [1] }, { operations: [{ op: "add" }] }, { operations: [{ op: "jump", path: "/v", value: 1 }] },
      { operations: [{ path: "/v", value: 1 }] }, { operations: [{ op: "add", path: "/v" }] }, { operations: [{ op: "add", path: "v", value: 1 }] },
      { operations: [{ op: "add", path: "", value: 1 }] }, { operations: [{ op: "add", path: 5, value: 1 }] }, { operations: [{ op: "move", path: "/v" }] },
      { operations: [{ op: "add", path: "/a~2", value: 1 }] },
    ];
    for (const body of bodies) refused(await t.rest.patch(`${path}/docs/1`, body, { headers: key("a") }), 400);
    refused(await t.rest.patch(`${path}/docs/2`, { operations: [{ op: "set", path: "/v", value: 1 }] }, { headers: key("a") }), 404);
  });

  t.it("is applied if its condition holds, and not otherwise", async () => {
    const container = await t.container();
    const item = container.item("1", "a");
    const set = (condition, value) => item.patch({ condition, operations: [{ op: "set", path: "/v", value }] });
    await container.items.create({ id: "1", pk: "a", v: 1, tags: ["red", "blue"], price: 20 });
    assert.equal((await set("from c where c.v = 1", 2)).resource.v, 2);
    assert.equal((await set("FROM products p WHERE p.v = 2 AND ARRAY_CONTAINS(p.tags, 'blue') AND p.price BETWEEN 10 AND 30", 3)).resource.v, 3);
    const refusals = ["from c where c.v = 1", "from c where c.missing = 1", "from c where c.v", "from c where NOT IS_DEFINED(c.v)", "from c join t in c.tags where t = 'green'"];
    for (const condition of refusals) await fails(set(condition, 9), 412, { text: "One of the specified pre-condition is not met" });
    assert.equal((await item.read()).resource.v, 3);
    await fails(container.item("2", "a").patch({ condition: "from c", operations: [{ op: "set", path: "/v", value: 9 }] }), 404);
  });

  t.it("is refused with a condition that is none", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a", v: 1 });
    const set = (condition) => container.item("1", "a").patch({ condition, operations: [{ op: "set", path: "/v", value: 2 }] });
    await fails(set("from c where"), 400, { text: "SC1002" });
    await fails(set("where c.v = 1"), 400, { text: "SC1001" });
    await fails(set("from c where c.v = 1 order by c.v"), 400, { text: /SC1001.*near 'order'/s });
    await fails(set("select * from c"), 400, { text: "SC1001" });
    await fails(set("from c where NOFUNCTION(c.v)"), 400, { text: "SC2005" });
    await fails(set("from c where d.v = 1"), 400, { text: "SC2001" });
    await fails(set("from c where udf.f(c.v)"), 400, { text: "user-defined" });
    assert.equal((await container.item("1", "a").read()).resource.v, 1);
  });

  // If another write could come between the condition and its write, some step would be done twice.
  t.it("has its condition decided where the write is", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a", v: 0, steps: [] });
    const won = await Promise.all(
      Array.from({ length: 8 }, async (_, who) => {
        let mine = 0;
        for (let v = 0; v < 40; ) {
          const operations = [{ op: "incr", path: "/v", value: 1 }, { op: "add", path: "/steps/-", value: `${v} by ${who}` }];
          try {
            await container.item("1", "a").patch({ condition: `from c where c.v = ${v}`, operations });
            mine++;
            v++;
          } catch (error) {
            assert.equal(error.code, 412, error.message);
            v = (await container.item("1", "a").read()).resource.v;
          }
        }
        return mine;
      })
    );
    const { resource } = await container.item("1", "a").read();
    assert.equal(resource.v, 40);
    assert.deepEqual(resource.steps.map((step) => parseInt(step)), Array.from({ length: 40 }, (_, i) => i));
    assert.equal(won.reduce((sum, n) => sum + n), 40);
  });

  t.it("takes both content types, and a bare array", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    const operations = (value) => [{ op: "set", path: "/v", value }];
    for (const type of ["application/json", "application/json_patch+json", "application/json-patch+json"]) {
      const answer = await t.rest.patch(`${path}/docs/1`, { operations: operations(type) }, { headers: { ...key("a"), "content-type": type } });
      assert.equal(answer.json.v, type);
    }
    const bare = await t.rest.patch(`${path}/docs/1`, operations("bare"), { headers: key("a") });
    assert.equal(bare.json.v, "bare");
  });
});
