// What the drivers see of a graph: vertices and edges, steps that read and write, ids and partitions.
import { assert, fails, gremlin, mimes, modern, old, suite, attribute } from "./harness.js";

const names = (values) => [...values].sort();

suite("traversals", (t) => {
  t.it("add a vertex and return it in the service's form", async () => {
    const g = await t.graph();
    const [v] = await g.run("g.addV('person').property('id', 'a').property('pk', 'p').property('name', 'Ann').property(list, 'tag', 'x').property(list, 'tag', 'y')");
    assert.equal(v.id, "a");
    assert.equal(v.label, "person");
    assert.equal(v.type, "vertex");
    assert.equal(v.properties.name[0].value, "Ann");
    assert.match(v.properties.name[0].id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(v.properties.pk, [{ id: "a|pk", value: "p" }]);
    assert.deepEqual(v.properties.tag.map((p) => p.value), ["x", "y"]);
  });

  t.it("walk the modern graph", async () => {
    const g = await t.graph();
    await modern(g);
    assert.deepEqual(names(await g.run("g.V('1').out('knows').values('name')")), ["josh", "vadas"]);
    assert.deepEqual(names(await g.run("g.V('3').in('created').values('name')")), ["josh", "marko", "peter"]);
    assert.deepEqual(names(await g.run("g.V('4').both().values('name')")), ["lop", "marko", "ripple"]);
    assert.deepEqual(await g.run("g.V().count()"), [6]);
    assert.deepEqual(await g.run("g.E().count()"), [6]);
    assert.deepEqual(await g.run("g.V().hasLabel('person').values('age').sum()"), [123]);
    assert.deepEqual(names(await g.run("g.V().has('age', gt(30)).values('name')")), ["josh", "peter"]);
    assert.deepEqual(names(await g.run("g.V().has('name', within('lop', 'vadas')).id()")), ["2", "3"]);
    assert.deepEqual(names(await g.run("g.V().has('name', startingWith('p')).id()")), ["6"]);
    assert.deepEqual(await g.run("g.V('1').outE('created').values('weight')"), [0.4]);
    assert.deepEqual(await g.run("g.V('1').outE('created').inV().values('name')"), ["lop"]);
    assert.deepEqual(names(await g.run("g.V('1').repeat(out()).times(2).values('name')")), ["lop", "ripple"]);
    assert.deepEqual(names(await g.run("g.E().has('weight', lt(0.5)).id()")), ["11", "12", "9"]);
    assert.deepEqual(await g.run("g.V('2').repeat(__.in()).emit().path().by('name')").then((paths) => paths.map((p) => p.objects)), [["vadas", "marko"]]);
    assert.deepEqual(await g.run("g.V().groupCount().by(label)"), [{ person: 4, software: 2 }]);
    assert.deepEqual(await g.run("g.V('1').valueMap('name')"), [{ name: ["marko"] }]);
    assert.deepEqual(await g.run("g.V('1').project('n', 'd').by('name').by(outE().count())"), [{ n: "marko", d: 3 }]);
  });

  t.it("read points by id and partition key", async () => {
    const g = await t.graph();
    await modern(g);
    assert.deepEqual(await g.run("g.V(['p1', '1']).values('name')"), ["marko"]);
    assert.deepEqual(await g.run("g.V(['p0', '1']).values('name')"), []);
    assert.deepEqual(await g.run("g.V('1').has('pk', 'p1').values('name')"), ["marko"]);
    assert.deepEqual(await g.run("g.V('1').has('pk', 'p0').values('name')"), []);
    assert.deepEqual(await g.run("g.V(['p1', '1'], ['p0', '2']).values('name').fold()").then(([l]) => names(l)), ["marko", "vadas"]);
    assert.deepEqual(await g.run("g.E(['p1', '7']).values('weight')"), [0.5]);
    assert.deepEqual(await g.run("g.V('7').count()"), [0]);
    const result = await g.client.submit("g.V(['p1', '1'])");
    assert.ok(attribute(result.attributes, "x-ms-total-request-charge") >= 1);
    assert.ok(attribute(result.attributes, "x-ms-total-request-charge") < 2);
  });

  t.it("change and drop properties, vertices and their edges", async () => {
    const g = await t.graph();
    await modern(g);
    assert.deepEqual(await g.run("g.V('1').property('age', 30).values('age')"), [30]);
    await g.run("g.V('1').property(list, 'age', 31)");
    assert.deepEqual(await g.run("g.V('1').values('age')"), [30, 31]);
    await g.run("g.V('1').properties('age').hasValue(30).drop()");
    assert.deepEqual(await g.run("g.V('1').values('age')"), [31]);
    await g.run("g.V('1').property('place', 'Rome', 'since', 2001)");
    assert.deepEqual(await g.run("g.V('1').properties('place').values('since')"), [2001]);
    await g.run("g.V('1').properties('place').property('until', 2004)");
    assert.deepEqual(await g.run("g.V('1').properties('place').valueMap()"), [{ since: 2001, until: 2004 }]);
    await g.run("g.E('7').property('weight', 0.7).property('note', 'x')");
    assert.deepEqual(await g.run("g.E('7').valueMap()"), [{ weight: 0.7, note: "x" }]);
    await g.run("g.E('7').properties('note').drop()");
    assert.deepEqual(await g.run("g.E('7').valueMap()"), [{ weight: 0.7 }]);
    await g.run("g.V('3').drop()");
    assert.deepEqual(await g.run("g.E().count()"), [3]);
    await g.run("g.E('7').drop()");
    assert.deepEqual(await g.run("g.V('1').out('knows').values('name')"), ["josh"]);
    await g.run("g.V().drop()");
    assert.deepEqual(await g.sql("SELECT * FROM c"), []);
  });

  t.it("refuse what the service refuses", async () => {
    const g = await t.graph();
    await fails(g.run("g.addV('person').property('id', 'a')"), 597, /partition key property has value 'null'/, 400);
    await g.run("g.addV('person').property('id', 'a').property('pk', 'p')");
    await fails(g.run("g.addV('person').property('id', 'a').property('pk', 'p')"), 500, /already exists/, 409);
    await fails(g.run("g.V('a').property('pk', 'q')"), 597, /partition key/, 400);
    await fails(g.run("g.V().map{it.get()}"), 597, null, 1004);
    await fails(g.run("g.V().nothing()"), 597, /nothing/);
    const byId = await t.graph({ key: "/id" });
    await fails(byId.run("g.V()"), 597, /partition key/);
    const absent = t.graphOf("none");
    await fails(absent.run("g.V()"), 500, /Owner resource does not exist/, 404);
  });

  t.it("use a graph without a partition key", async () => {
    const g = await t.graph({ key: null });
    await modern(g);
    assert.deepEqual(names(await g.run("g.V('1').out('knows').values('name')")), ["josh", "vadas"]);
    assert.deepEqual(await g.run("g.V('3').in().count()"), [3]);
    await fails(g.run("g.addV('person').property('id', '1')"), 500, /already exists/, 409);
  });

  t.it("run bytecode of the drivers' own traversals", async () => {
    for (const mime of [mimes.v2, mimes.v3, mimes.binary]) {
      const graph = await t.graph();
      await modern(graph);
      const connection = new gremlin.driver.DriverRemoteConnection(t.url("/gremlin"), {
        authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/graphs/colls/${graph.id}`, (await import("./harness.js")).emulatorKey),
        rejectUnauthorized: false,
        mimeType: mime,
      });
      const g = gremlin.process.AnonymousTraversalSource.traversal().withRemote(connection);
      const { P, statics: __ } = { P: gremlin.process.P, statics: gremlin.process.statics };
      assert.deepEqual(names(await g.V("1").out("knows").values("name").toList()), ["josh", "vadas"], mime);
      assert.deepEqual(names(await g.V().has("age", P.gt(30)).values("name").toList()), ["josh", "peter"]);
      const a = await g.addV("person").property("pk", "z").property("id", "za").next();
      const b = await g.addV("person").property("pk", "y").property("id", "yb").next();
      await g.V(a.value.id).addE("knows").to(__.V(b.value.id)).iterate();
      assert.equal((await g.V("za").out("knows").id().next()).value, "yb");
      await assert.rejects(g.V().pageRank().next(), /Unable to find any method 'pageRank'/, mime);
      await connection.close();
    }
  });

  // The Gremlin console asks for texts, in GraphBinary.
  t.it("return results as texts", async () => {
    const g = await t.graph();
    await modern(g);
    const client = t.client(g.id, { mime: mimes.binary });
    const { graphBinaryReader: reader, graphBinaryWriter: writer } = await import("gremlin/lib/structure/io/binary/GraphBinary.js").then((io) => io.default);
    const texts = t.client(g.id, { mime: `${mimes.binary}-stringd`, reader, writer });
    const run = (script) => texts.submit(script).then((r) => r.toArray());
    assert.deepEqual(await run("g.V('1').out('knows').order().by(id)"), ["v[2]", "v[4]"]);
    assert.deepEqual(await run("g.V('1').outE('created')"), ["e[9][1-created->3]"]);
    assert.deepEqual(await run("g.V('1').valueMap('name', 'age')"), ["{name=[marko], age=[29]}"]);
    assert.deepEqual(await run("g.V('1').out('created').path()"), ["path[v[1], v[3]]"]);
    assert.deepEqual(await run("g.inject(1, 1, 2.5d, null, 'x')"), ["1", "1", "2.5", "null", "x"]);
    assert.deepEqual(await run("g.V().count()"), ["6"]);
    await fails(run("g.V().nothing()"), 597, /nothing/);
    assert.deepEqual(await client.submit("g.V().count()").then((r) => r.toArray()), [6]);
    for (const one of [client, texts]) await one.close();
  });

  t.it("read every format", async () => {
    const g = await t.graph();
    await modern(g);
    for (const [library, mime] of [[gremlin, mimes.v3], [gremlin, mimes.binary], [old, mimes.v2], [old, mimes.v3]]) {
      const client = t.client(g.id, { library, mime });
      const [v] = await client.submit("g.V('1')").then((r) => r.toArray());
      assert.equal(v.id, "1");
      assert.equal(v.label, "person");
      const counts = await client.submit("g.V().count()").then((r) => r.toArray());
      assert.deepEqual(counts, [6]);
      const names = await client.submit("g.V().out().aggregate('x').by('name').cap('x')").then((r) => r.toArray());
      assert.deepEqual(names.flat().sort(), ["josh", "lop", "lop", "lop", "ripple", "vadas"], mime);
      await client.close();
    }
  });
});
