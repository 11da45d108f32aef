// Traversals that write and read one graph at the same time, over several connections: threads of the server meet on items, on the memory of
// traversals and on responses in parts. ./dev test runs it with ThreadSanitizer too.
import { assert, suite } from "./harness.js";
import { authenticated } from "./wire.js";

const WRITERS = 3, ROUNDS = 10, LEAVES = 20;
const kept = WRITERS * ROUNDS * (LEAVES - 1);

const reads = [
  "g.V(['p0', 'hub']).in('of').count()",
  "g.V(['p0', 'hub']).in('of').out('of').dedup().in('of').values('n').sum()",
  "g.V().hasLabel('leaf').group().by('pk').by(values('n').fold())",
  "g.V().hasLabel('leaf').order().by('n', desc).by(id).valueMap('n')",
  "g.V('hub').inE('of').outV().path().by(id).by(label).by('pk')",
  "g.with('atomic', true).V(['p0', 'hub']).property('seen', x)",
];

suite("concurrency", (t) => {
  t.it("writes, reads that take many turns, and atomic scripts meet", async () => {
    const graph = await t.graph();
    await graph.run("g.addV('hub').property('id', 'hub').property('pk', 'p0').property('n', 0)");
    let writing = WRITERS;
    const write = async (writer) => {
      const wire = await authenticated(t, graph);
      for (let round = 0; round < ROUNDS; round++) {
        const pk = `p${writer}`, ids = Array.from({ length: LEAVES }, (_, i) => `${writer}-${round}-${i}`);
        const made = await wire.one(
          "g.inject(ids).unfold().as('i').addV('leaf').property('id', select('i')).property('pk', pk).property('n', round).addE('of').to(V(['p0', 'hub'])).count()",
          { bindings: { ids, pk, round } },
        );
        assert.deepEqual(made.result?.data, [LEAVES], JSON.stringify(made.status));
        const gone = await wire.one("g.V([pk, id]).drop()", { bindings: { pk, id: ids[0] } });
        assert.equal(gone.status.code, 204, JSON.stringify(gone.status));
      }
      await wire.close();
      writing--;
    };
    const statuses = new Set();
    let counted = 0;
    const read = async () => {
      const wire = await authenticated(t, graph);
      for (let i = 0; writing; i++) {
        const { status, result } = await wire.one(reads[i % reads.length], { bindings: { x: i } });
        statuses.add(status.attributes["x-ms-status-code"]);
        if (i % reads.length === 0) {
          assert.ok(result.data[0] <= kept + WRITERS * ROUNDS, `${result.data[0]} edges`);
          counted++;
        }
      }
      await wire.close();
    };
    await Promise.all([write(0), write(1), write(2), read(), read(), read()]);
    assert.ok(counted > 0);
    assert.deepEqual([...statuses].filter((code) => code !== 200 && code !== 409), []); // atomic scripts conflict
    assert.deepEqual(await graph.run("g.V().hasLabel('leaf').count()"), [kept]);
    assert.deepEqual(await graph.run("g.V('hub').in('of').count()"), [kept]);
    assert.deepEqual(await graph.run("g.E().count()"), [kept]);
  });

  t.it("clients that leave while their traversals run", async () => {
    const graph = await t.graph();
    await graph.run("g.inject(l).unfold().as('i').addV('x').property('pk', 'p').property('n', select('i'))", { l: Array.from({ length: 300 }, (_, i) => i) });
    const leave = async (i) => {
      const wire = await authenticated(t, graph);
      for (const script of ["g.V().as('a').V().as('b').select('a', 'b').by('n').dedup().count()", "g.V().repeat(identity()).times(9000).count()", "g.V().valueMap()"]) wire.eval(script);
      await new Promise((done) => setTimeout(done, 10 * i));
      await wire.close();
    };
    await Promise.all([0, 1, 2, 3, 4, 5].map(leave));
    assert.deepEqual(await graph.run("g.V().count()"), [300]);
  });
}, { ways: ["plain"] });
