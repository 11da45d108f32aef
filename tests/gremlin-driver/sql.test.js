// A graph and the SQL API over the same container see the same.
import { assert, attribute, modern, suite } from "./harness.js";

const isGuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

suite("sql", (t) => {
  t.it("SQL sees vertices and edges as on the service", async () => {
    const g = await t.graph();
    await modern(g);
    const [marko] = await g.sql("SELECT * FROM c WHERE c.id = '1'");
    assert.match(marko.name[0].id, isGuid);
    assert.deepEqual(marko, { id: "1", label: "person", pk: "p1", name: [{ id: marko.name[0].id, _value: "marko" }], age: [{ id: marko.age[0].id, _value: 29 }] });
    const [edge] = await g.sql("SELECT * FROM c WHERE c.id = '7'");
    assert.deepEqual(edge, {
      id: "7", label: "knows", _isEdge: true, pk: "p1", _vertexId: "1", _vertexLabel: "person", _sink: "2", _sinkLabel: "person",
      _sinkPartition: "p0", weight: 0.5,
    });
  });

  t.it("a graph that SQL has written is traversed", async () => {
    const g = await t.graph();
    const place = (id, pk, name) => g.write({ id, label: "place", pk, name: [{ id: `${id}-n`, _value: name, _meta: { lang: "en" } }] });
    await place("a", "x", "Rome");
    await place("b", "y", "Oslo");
    await g.write({ id: "e", label: "road", pk: "x", _isEdge: true, _vertexId: "a", _vertexLabel: "place", _sink: "b", _sinkLabel: "place", _sinkPartition: "y", km: 2500 });
    await g.write({ id: "other", pk: "x", text: "neither a vertex nor an edge" });
    assert.deepEqual(await g.run("g.V().count()"), [2]);
    assert.deepEqual(await g.run("g.V('a').out('road').values('name')"), ["Oslo"]);
    assert.deepEqual(await g.run("g.V('b').in('road').values('name')"), ["Rome"]);
    assert.deepEqual(await g.run("g.V('b').inE().values('km')"), [2500]);
    assert.deepEqual(await g.run("g.V('a').properties('name').values('lang')"), ["en"]);
  });

  // values() after which nobody sees the vertices again reads their values alone.
  t.it("values of neighbours are those of the vertices, whatever lies there", async () => {
    const g = await t.graph();
    const bag = (value, more) => ({ id: `${value}-id`, _value: value, ...more });
    await g.write({ id: "a", label: "place", pk: "x" });
    const sinks = [
      { id: "several", label: "place", pk: "y", name: [bag("Roma", { _meta: { lang: "it" } }), bag("Rome"), "no value", { id: "none" }], ttl: 9000 },
      { id: "flat", label: "place", pk: "y", name: "Oslo", _name: [bag("hidden")], text: [bag(7), bag(true)] },
      { id: "bare", pk: "y", name: [bag("without a label")] },
      { id: "road", label: "road", pk: "y", _isEdge: true, _vertexId: "flat", _sink: "several", _sinkPartition: "y", name: "an edge" },
    ];
    for (const sink of sinks) {
      await g.write(sink);
      await g.write({ id: `to-${sink.id}`, label: "to", pk: "x", _isEdge: true, _vertexId: "a", _vertexLabel: "place", _sink: sink.id, _sinkLabel: "place", _sinkPartition: "y" });
    }
    const found = async (script) => (await g.run(script)).map(String).sort();
    for (const keys of ["'name'", "'name', 'pk'", "'text', 'ttl', 'label'", "'id', '_name'"]) {
      const seen = await found(`g.V(['x', 'a']).out().as('v').values(${keys}).as('w').select('w')`); // with a path: whole vertices
      assert.deepEqual(await found(`g.V(['x', 'a']).out().values(${keys})`), seen, keys);
    }
    assert.deepEqual(await found("g.V(['x', 'a']).out().values('name')"), ["Roma", "Rome"]);
    assert.deepEqual(await found("g.V(['x', 'a']).out().values('text', 'ttl')"), ["7", "9000", "true"]);
    assert.deepEqual(await found("g.V(['x', 'a']).out('to').out('road').values('name')"), ["Roma", "Rome"]);
  });

  t.it("the same id in two partitions is two vertices", async () => {
    const g = await t.graph();
    for (const pk of ["x", "y"]) {
      await g.run("g.addV('v').property('id', '1').property('pk', p)", { p: pk });
      await g.run("g.addV('v').property('id', b).property('pk', p)", { b: `to-${pk}`, p: pk });
      await g.run("g.V([p, '1']).addE('to').to(g.V([p, b]))", { p: pk, b: `to-${pk}` });
    }
    assert.deepEqual(await g.run("g.V('1').count()"), [2]);
    assert.deepEqual(await g.run("g.V(['x', '1']).out().id()"), ["to-x"]);
    assert.deepEqual(await g.run("g.V(['y', '1']).outE().inV().id()"), ["to-y"]);
    assert.deepEqual(await g.run("g.V(['x', 'to-x']).in().has('pk', 'x').count()"), [1]);
    await g.run("g.V(['x', '1']).drop()");
    assert.deepEqual((await g.sql("SELECT VALUE c._vertexId FROM c WHERE c._isEdge")).length, 1);
  });

  t.it("keys are numbers and booleans too", async () => {
    const g = await t.graph();
    for (const [id, pk] of [["n", 7], ["r", 1.5], ["b", true]]) {
      await g.run("g.addV('v').property('id', i).property('pk', p)", { i: id, p: pk });
    }
    assert.deepEqual(await g.run("g.V([7, 'n']).values('pk')"), [7]);
    assert.deepEqual(await g.run("g.V([1.5, 'r']).values('pk')"), [1.5]);
    assert.deepEqual(await g.run("g.V([true, 'b']).values('pk')"), [true]);
    await g.run("g.V('n').addE('to').to(g.V('b'))");
    assert.deepEqual(await g.run("g.V('b').in().id()"), ["n"]);
    assert.deepEqual(await g.sql("SELECT VALUE c._sinkPartition FROM c WHERE c._isEdge"), [true]);
  });

  t.it("many edges are read and dropped in pages", async () => {
    const g = await t.graph();
    await g.run("g.addV('hub').property('id', 'hub').property('pk', 'p')");
    for (let i = 0; i < 12; i++) {
      await g.run("g.V('hub').as('h').addV('leaf').property('pk', 'p' + '').as('l')".replace(" + ''", ""));
    }
    await g.run("g.V().hasLabel('leaf').as('a').V().hasLabel('leaf').as('b').V('hub').addE('x').from('a')");
    await g.run("g.V().hasLabel('leaf').as('a').V('hub').repeat(identity().as('h')).times(1).addE('y').to('a')");
    await g.run("g.V('hub').as('h').V().hasLabel('leaf').V().hasLabel('leaf').V().hasLabel('leaf').limit(1300).addE('z').from('h')");
    const [edges] = await g.run("g.E().count()");
    assert.equal(edges, 144 + 12 + 1300);
    assert.deepEqual(await g.run("g.V('hub').both().count()"), [edges]);
    assert.deepEqual(await g.run("g.V('hub').in('x').limit(5).count()"), [5]);
    const charge = async (script) => attribute((await g.client.submit(script)).attributes, "x-ms-total-request-charge");
    const whole = await charge("g.V().count()");
    for (const few of ["g.V().hasLabel('hub')", "g.V().hasLabel('leaf').count()", "g.V('hub').in('x').limit(5).id()", "g.V('hub').out('y').count()"]) {
      assert.ok((await charge(few)) < whole / 3, `${few}: ${await charge(few)} of ${whole} RU`);
    }
    await g.run("g.V('hub').drop()");
    assert.deepEqual(await g.run("g.E().count()"), [0]);
    assert.deepEqual(await g.run("g.V().count()"), [12]);
  });
});
