// Requests made to harm: each is answered in bounded time and memory, and with an error instead of a wrong result.
import { assert, fails, modern, suite } from "./harness.js";
import { authenticated } from "./wire.js";

// A list in which the list before occurs twice, n times: 2^n values in a few bytes.
const doubled = (n) => `g.inject(1).fold().repeat(union(identity(), identity()).fold()).times(${n})`;

suite("hostile", (t) => {
  t.it("ids that no condition holds are refused, and drop nothing", async () => {
    const graph = await t.graph();
    await modern(graph);
    const ids = Array.from({ length: 8500 }, (_, i) => `nobody-${i}-`.padEnd(255, "x")); // more than 2 MB
    await fails(graph.run("g.V(ids).drop()", { ids }), 597, /divide them/);
    await fails(graph.run("g.V(ids).count()", { ids }), 597, /divide them/);
    assert.deepEqual(await graph.run("g.V().count()"), [6]);
  });

  t.it("labels that no condition holds are refused", async () => {
    const graph = await t.graph();
    await modern(graph);
    const labels = Array.from({ length: 30 }, (_, i) => `l${i}`);
    const bindings = Object.fromEntries(labels.map((name, i) => [name, `no-${i}-`.padEnd(80000, "x")]));
    await fails(graph.run(`g.V('1').outE(${labels.join(", ")}).count()`, bindings), 597, /divide them/);
  });

  t.it("more ids than a step may have are refused before they are looked up", async () => {
    const graph = await t.graph();
    await modern(graph);
    const pairs = Array.from({ length: 100000 }, () => ["p1", "1"]);
    await fails(graph.run("g.V(ids)", { ids: pairs }), 597, /9000 ids at most/);
    assert.deepEqual(await graph.run("g.V(ids).count()", { ids: pairs.slice(0, 3) }), [3]);
  });

  t.it("bindings that take long to look up are refused", async () => {
    const graph = await t.graph();
    await graph.run("g.inject(1)"); // before authentication a message has 64 KB at most
    const names = Array.from({ length: 50000 }, (_, i) => `k${i}`);
    const bindings = Object.fromEntries(names.map((name) => [name, 1]));
    await fails(graph.run(`g.inject(${"k49999, ".repeat(7000)}1).count()`, bindings), 597, /1000 bindings at most/);
    const few = Object.fromEntries(names.slice(0, 1000).map((name) => [name, 1]));
    assert.deepEqual(await graph.run("g.inject(k0, k999).count()", few), [2]);
  });

  t.it("lists that contain each other many times are refused when they are made", async () => {
    const graph = await t.graph();
    for (const after of ["", ".dedup()", ".is(eq('x'))", ".group().by()", ".order()"]) {
      await fails(graph.run(doubled(60) + after), 597, /more than 1048576 values/);
    }
    await fails(graph.run("g.inject(1).repeat(path()).times(60)"), 597, /more than 1048576 values/);
    assert.deepEqual(await graph.run(`${doubled(10)}.count()`), [1]);
  });

  t.it("a result that occurs 2^50 times ends at the timeout", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    const answers = await wire.answers(wire.eval("g.inject(1).repeat(union(identity(), identity())).times(50)", { evaluationTimeout: 200 }));
    assert.equal(answers.at(-1).status.code, 598);
    assert.ok(answers.length > 1);
    await wire.close();
  });

  t.it("a property of values with one id is set on the first", async () => {
    const graph = await t.graph();
    const name = Array.from({ length: 5000 }, () => ({ id: "same", _value: 1 }));
    await graph.write({ id: "1", label: "x", pk: "a", name });
    await graph.run("g.inject(1)");
    await graph.run("g.V(['a', '1']).properties('name').limit(1).property('text', v)", { v: "v".repeat(100000) });
    const [item] = await graph.sql("SELECT * FROM c");
    assert.deepEqual(item.name.map((one) => one._meta?.text.length ?? 0), [100000, ...Array(4999).fill(0)]);
  });

  t.it("new elements of one step share the steps of one write", async () => {
    const graph = await t.graph();
    const m = { pk: "a", ...Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`p${i}`, "v".repeat(1000)])) };
    const l = Array.from({ length: 32 }, (_, i) => `id${i}`);
    const add = "g.inject(l).unfold().addV('x')" + Object.keys(m).slice(0, 300).map((k) => `.property('${k}', m)`).join("");
    await fails(graph.run(add.replaceAll(", m)", ", v)"), { l, v: "v".repeat(2000) }), 597, /divide it/);
  });
}, { ways: ["plain"] });

suite("large results", (t) => {
  t.it("one that is larger than any response may be fails its request alone, first or last", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    const t64 = "g.inject(t).repeat(union(identity(), identity())).times(6).fold()"; // a list of 64 MB
    for (const script of [t64, `${t64}.union(identity(), constant(1))`]) {
      const answer = await wire.one(script, { bindings: { t: "x".repeat(1 << 20) }, batchSize: 1 });
      assert.equal(answer.status.code, 597);
      assert.match(answer.status.message, /more than 48 MB/);
    }
    assert.deepEqual((await wire.one("g.inject(1)")).result.data, [1]);
    await wire.close();
  });
}, { flags: ["--throttling", "off", "--request-memory", "1GB"], ways: ["plain"] });
