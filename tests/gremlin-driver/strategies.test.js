// Strategies: system properties as properties, writes that require an etag; subgraphs and checks.
import { assert, emulatorKey, fails, gremlin, mimes, modern, suite } from "./harness.js";

const showing = (...names) => `g.withStrategies(ProjectionStrategy.build().IncludeSystemProperties(${names.map((n) => `'${n}'`).join(", ")}).create())`;

suite("strategies", (t) => {
  t.it("shows system properties of vertices and edges as SQL has them", async () => {
    const g = await t.graph();
    await modern(g);
    const [sql] = await g.whole("SELECT * FROM c WHERE c.id = '1'");
    const all = ["_ts", "_etag", "_rid", "_self", "_attachments"];
    const [vertex] = await g.run(`${showing(...all)}.V('1')`);
    for (const name of all) assert.deepEqual(vertex.properties[name], [{ id: `1|${name}`, value: sql[name] }]);
    assert.equal(vertex.properties.name[0].value, "marko");
    assert.deepEqual(await g.run(`${showing("_ts")}.V().has('name', 'marko').valueMap('_ts', '_etag')`), [{ _ts: [sql._ts] }]);
    assert.deepEqual(await g.run(`${showing("_rid")}.V('2').in('knows').values('_rid')`), [sql._rid]);
    assert.deepEqual(await g.run("g.V('1').values('_ts', '_etag')"), [], "only if it is asked for");
    const [edge] = await g.run(`${showing("_etag", "inVPartition", "outVPartition")}.V('1').outE().has('inVPartition', 'p0')`).then((edges) => edges.filter((e) => e.id === "7"));
    const [stored] = await g.whole("SELECT * FROM c WHERE c.id = '7'");
    assert.deepEqual(edge.properties, { weight: 0.5, _etag: stored._etag, inVPartition: "p0", outVPartition: "p1" });
    assert.deepEqual(await g.run(`${showing("outVPartition")}.E('7').values('outVPartition')`), ["p1"]);
    assert.deepEqual(await g.run(`${showing("_ts")}.V().has('_ts', gte(x)).count()`, { x: sql._ts }), [6]);
  });

  t.it("writes only what is as it was read", async () => {
    const g = await t.graph();
    await g.run("g.addV('v').property('id', 'a').property('pk', 'p').property('n', 1)");
    const etag = async () => (await g.run(`${showing("_etag")}.V('a').values('_etag')`))[0];
    const first = await etag();
    const write = (n, e) => g.run(`${showing("_etag")}.V(['p', 'a']).has('_etag', e).property('n', n).values('n')`, { n, e });
    assert.deepEqual(await write(2, first), [2]);
    assert.deepEqual(await write(3, first), [], "it has another etag now");
    assert.deepEqual(await write(4, await etag()), [4]);
    const before = await etag();
    const [after] = await g.run(`${showing("_etag")}.V('a').property('n', 5).property('m', 6).values('_etag')`);
    assert.notEqual(after, before);
    assert.equal(after, await etag(), "a traversal's own writes are no conflict");
    assert.deepEqual(await g.run(`${showing("_etag")}.V('a').union(identity(), V('a')).property('n', 7).values('n')`), [7, 7]);
    await fails(g.run(`${showing("_etag")}.V('a').as('x').sideEffect(V('a').property('n', 8)).select('x').property('n', 9)`), 500, null, 412);
    await fails(g.run(`${showing("_etag")}.V('a').as('x').sideEffect(V('a').property('n', 8)).select('x').drop()`), 500, null, 412);
    await fails(g.run(`${showing("_etag")}.V('a').as('x').sideEffect(V('a').drop()).select('x').property('n', 9)`), 500, null, 404);
    assert.deepEqual(await g.run("g.V('a').count()"), [0]);
  });

  t.it("knows new elements, in atomic scripts too", async () => {
    const g = await t.graph();
    const [v] = await g.run(`${showing("_etag", "_rid")}.addV('v').property('id', 'a').property('pk', 'p')`);
    const [stored] = await g.whole("SELECT * FROM c");
    assert.deepEqual([v.properties._etag[0].value, v.properties._rid[0].value], [stored._etag, stored._rid]);
    const [w] = await g.run(`${showing("_etag", "_rid")}.with('atomic', true).addV('v').property('id', 'b').property('pk', 'p')`);
    const [other] = await g.whole("SELECT * FROM c WHERE c.id = 'b'");
    assert.equal(w.properties._etag[0].value, other._etag);
    assert.equal(w.properties._rid, undefined);
  });

  t.it("refuses what it does not have", async () => {
    const g = await t.graph();
    await fails(g.run(`${showing("_lsn")}.V()`), 597, /IncludeSystemProperties/);
    await fails(g.run("g.withStrategies(ProjectionStrategy.build().Exclude('_ts').create()).V()"), 597, /IncludeSystemProperties/);
    await fails(g.run(`${showing("_ts")}.addV('v').property('pk', 'p').property('_ts', 1)`), 597, /_ts/);
  });

  t.it("hold for the traversals in a traversal, in every format of bytecode", async () => {
    const graph = await t.graph();
    await modern(graph);
    const { traversal } = gremlin.process.AnonymousTraversalSource;
    const { SubgraphStrategy, EdgeLabelVerificationStrategy, ReadOnlyStrategy } = await import("gremlin/lib/process/traversal-strategy.js");
    const __ = gremlin.process.statics;
    for (const mime of [mimes.v2, mimes.v3, mimes.binary]) {
      const connection = new gremlin.driver.DriverRemoteConnection(t.url("/gremlin"), {
        authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/graphs/colls/${graph.id}`, emulatorKey),
        rejectUnauthorized: false,
        mimeType: mime,
      });
      const g = traversal().withRemote(connection);
      const people = g.withStrategies(new SubgraphStrategy({ vertices: __.hasLabel("person") }));
      assert.equal((await people.V().count().next()).value, 4, mime);
      assert.equal((await people.E().count().next()).value, 2);
      assert.equal((await people.V().where(__.out("created")).count().next()).value, 0, mime);
      assert.equal((await g.V().where(__.out("created")).count().next()).value, 3);
      const strict = g.withStrategies(new EdgeLabelVerificationStrategy(false, true));
      await assert.rejects(strict.V().where(__.out()).toList(), /without any specified edge label/, mime);
      assert.equal((await strict.V().where(__.out("knows")).count().next()).value, 1);
      await assert.rejects(g.withStrategies(new ReadOnlyStrategy()).addV("x").next(), /not read only/);
      await connection.close();
    }
  });
});
