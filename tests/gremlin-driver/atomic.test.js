// with('atomic', true): the writes of a script become visible together, or not at all.
import { randomUUID } from "node:crypto";
import { assert, emulatorKey, fails, gremlin, suite } from "./harness.js";
import { authenticated } from "./wire.js";

const withAtomic = (g) => g.with_("atomic", true);
const ids = async (graph) => (await graph.sql("SELECT VALUE c.id FROM c")).sort();
const person = (id, pk = "p") => `addV('person').property('id', '${id}').property('pk', '${pk}')`;

suite("atomic", (t) => {
  t.it("writes all of a script, of several statements too", async () => {
    const graph = await t.graph();
    const [edge] = await graph.run(`g.with('atomic').${person("a")}.as('a').${person("b")}.as('b').addE('knows').from('a').to('b').property('w', 1)`);
    assert.equal(edge.label, "knows");
    assert.deepEqual([edge.outV, edge.inV], ["a", "b"]);
    assert.equal((await ids(graph)).length, 3);
    await graph.run("g.with('atomic', true).V(['p','a']).property('n', 1); g.V(['p','b']).property('n', 2)");
    assert.deepEqual((await graph.run("g.V().values('n')")).sort(), [1, 2]);
    assert.deepEqual(await graph.run("g.V('a').out('knows').id()"), ["b"]);
  });

  t.it("writes nothing of a script that fails", async () => {
    const graph = await t.graph();
    await graph.run(`g.${person("a")}.property('n', 1)`);
    const scripts = [
      [`g.with('atomic', true).${person("b")}.${person("a")}`, 500, /already exists/, 409],
      [`g.with('atomic', true).V(['p','a']).property('n', 2); g.${person("a")}`, 500, /already exists/, 409],
      [`g.${person("b")}; g.with('atomic', true).${person("c")}; g.V(['p','b']).fail()`, 595],
      [`g.with('atomic', true).V(['p','a']).drop(); g.inject(1).fail()`, 595],
      [`g.with('atomic', true).${person("b")}.${person("c", "q")}`, 597, /one partition/],
      [`g.with('atomic', true).${person("b")}; g.V(['p','b']).addE('x').to(V(['p','a'])); g.V(['p','b']).property('n', 1).fail()`, 595],
      ["g.with('atomic', 1).V()", 597, /true or false/],
      [`g.with('atomic', true).inject(1).repeat(${person("x")}.property('id', 'fresh')).times(2)`, 500],
    ];
    for (const [script, status, text, msStatus] of scripts) {
      await fails(graph.run(script), status, text, msStatus);
      assert.deepEqual(await ids(graph), ["a"], script);
    }
    assert.deepEqual(await graph.run("g.V().values('n')"), [1]);
    await fails(graph.run(`g.${person("b")}.${person("a")}`), 500, /already exists/, 409);
    assert.deepEqual(await ids(graph), ["a", "b"], "without the option each step counts by itself");
    await graph.run(`g.with('atomic', false).${person("c")}; g.inject(1).fail()`).catch(() => {});
    assert.deepEqual(await ids(graph), ["a", "b", "c"]);
  });

  t.it("reads its own writes in one partition", async () => {
    const graph = await t.graph();
    await graph.run(`g.${person("a")}.property('n', 1).as('a').${person("b")}.as('b').addE('knows').from('a').to('b')`);
    const run = (rest) => graph.run(`g.with('atomic', true).${person("c")}.property('n', 5); ${rest}`).finally(() => graph.run("g.V('c').drop()"));
    assert.deepEqual(await run("g.V(['p','c']).values('n')"), [5]);
    assert.deepEqual(await run("g.V('c').has('pk', 'p').values('n')"), [5]);
    assert.deepEqual(await run("g.V().has('pk', 'p').has('n', gt(3)).id()"), ["c"]);
    assert.deepEqual((await run("g.V().has('pk', 'p').id()")).sort(), ["a", "b", "c"]);
    assert.deepEqual(await run("g.V(['p','a']).addE('knows').to(V(['p','c'])).outV().out('knows').id().fold().unfold().order()"), ["b", "c"]);
    assert.deepEqual(await run("g.V(['p','a']).property('n', 9); g.V().has('pk','p').has('n', 9).id()"), ["a"]);
    assert.deepEqual(await run("g.V(['p','c']).properties('n').drop(); g.V(['p','c']).values('n').count()"), [0]);
    assert.deepEqual(await run("g.V(['p','c']).drop(); g.V(['p','c']).count()"), [0]);
  });

  t.it("reads its own writes beside the other partitions", async () => {
    const graph = await t.graph();
    for (const [id, pk] of [["a", "p"], ["b", "p"], ["o", "q"], ["m", "r"]]) await graph.run(`g.${person(id, pk)}.property('n', 1)`);
    for (const [from, to] of [["a", "b"], ["o", "a"], ["b", "a"]]) await graph.run(`g.V('${from}').addE('knows').to(V('${to}'))`);
    const run = (rest) => graph.run(`g.with('atomic', true).V(['p','a']).property('n', 2); ${rest}`);
    assert.deepEqual((await run("g.V().id()")).sort(), ["a", "b", "m", "o"]);
    assert.deepEqual((await run("g.V().has('n', 1).id()")).sort(), ["b", "m", "o"]);
    assert.deepEqual(await run("g.V('a').values('n')"), [2]);
    assert.deepEqual((await run("g.V('a').in().id()")).sort(), ["b", "o"]);
    assert.deepEqual((await run("g.V('a').both().id()")).sort(), ["b", "b", "o"]);
    assert.deepEqual(await run("g.V(['p','b']).outE().drop(); g.V('a').in().id()"), ["o"]);
    await fails(run("g.V('a').drop()"), 597, /one partition/);
    assert.deepEqual((await graph.run("g.V('a').both().id()")).sort(), ["b", "o"], "nothing more was dropped");
    await run("g.V('b').drop()");
    assert.deepEqual(await graph.run("g.E().count()"), [1]);
    assert.deepEqual((await graph.run("g.V().id()")).sort(), ["a", "m", "o"]);
    await graph.run(`g.V(['q','o']).outE().drop()`);
    await graph.run(`g.with('atomic', true).${person("z")}.addE('knows').to(V(['p','a'])); g.V('a').drop()`);
    assert.deepEqual((await graph.run("g.V().id()")).sort(), ["m", "o", "z"]);
    assert.deepEqual(await graph.run("g.E().count()"), [0]);
  });

  t.it("does not go on reading all partitions after a write", async () => {
    const graph = await t.graph();
    await graph.run("g.inject(l).unfold().as('i').addV('x').property('pk', 'p').property('n', select('i'))", { l: Array.from({ length: 600 }, (_, i) => i) });
    await fails(graph.run("g.with('atomic', true).V().hasLabel('x').property('m', 1)"), 597, /go on reading/);
    assert.deepEqual(await graph.run("g.V().has('m', 1).count()"), [0]);
    assert.deepEqual(await graph.run("g.with('atomic', true).V().has('pk', 'p').property('m', 1).count()"), [600]);
    assert.deepEqual(await graph.run("g.V().has('m', 1).count()"), [600]);
  });

  t.it("makes what is not there, and changes what is", async () => {
    const graph = await t.graph();
    const upsert = "g.with('atomic', true).V(['p','x']).fold().coalesce(unfold(), addV('person').property('id','x').property('pk','p')).property('n', v)";
    for (const v of [1, 2]) await graph.run(upsert, { v });
    assert.deepEqual(await graph.run("g.V('x').values('n')"), [2]);
  });

  t.it("is refused beyond the bounds of a transaction", async () => {
    const graph = await t.graph();
    const add = (n) => graph.run("g.with('atomic', true).inject(l).unfold().addV('x').property('pk', 'p').count()", { l: Array.from({ length: n }, (_, i) => i) });
    assert.deepEqual(await add(600), [600]);
    await fails(add(2001), 500, /2000 items/, 413);
    assert.deepEqual(await graph.run("g.V().count()"), [600]);
  });

  t.it("loses no update when scripts conflict", async () => {
    const graph = await t.graph();
    await graph.run(`g.${person("a")}.property('n', 0); g.${person("b")}.property('n', 0)`);
    const wires = await Promise.all(Array.from({ length: 4 }, () => authenticated(t, graph)));
    const set = (i) => `g.with('atomic', true).V(['p','a']).property('n', ${i}); g.V(['p','b']).property('n', ${i})`;
    let made = 0;
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(wires.map((wire, i) => wire.one(set(round * 10 + i))));
      for (const { status } of answers) {
        assert.ok(status.code === 200 || status.attributes["x-ms-status-code"] === 409, JSON.stringify(status));
        made += status.code === 200;
      }
      const [a, b] = await graph.run("g.V().values('n')");
      assert.equal(a, b);
    }
    assert.ok(made >= 10, `${made} of 40`);
    await Promise.all(wires.map((wire) => wire.close()));
  });

  t.it("works for bytecode, and where there is no partition key", async () => {
    const graph = await t.graph({ key: null });
    const connection = new gremlin.driver.DriverRemoteConnection(t.url("/gremlin"), {
      authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/graphs/colls/${graph.id}`, emulatorKey),
      rejectUnauthorized: false,
    });
    const g = withAtomic(gremlin.process.AnonymousTraversalSource.traversal().withRemote(connection));
    await g.addV("person").property("id", "a").as("a").addV("person").property("id", "b").addE("knows").from_("a").iterate();
    assert.equal((await ids(graph)).length, 3);
    await assert.rejects(g.addV("person").property("id", "c").addV("person").property("id", "a").iterate());
    assert.equal((await ids(graph)).length, 3);
    assert.equal((await g.addV("person").property("id", randomUUID()).as("c").V("a").out().addE("knows").from_("c").count().next()).value, 1);
    assert.equal((await g.V("a").property("n", 3).V().has("n", 3).count().next()).value, 1);
    await connection.close();
  });
});
