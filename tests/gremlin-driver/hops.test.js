// Hops read lists of edges, edges and vertices from several caches: what they return, and what they cost, is the same with and without, and
// follows every write at once.
import { setTimeout as sleep } from "node:timers/promises";
import { assert, attribute, suite } from "./harness.js";

// A small generator, so that a failure can be repeated.
function* randoms(seed) {
  for (let state = seed; ; ) {
    state = (state * 1103515245 + 12345) % 2147483648;
    yield state / 2147483648;
  }
}

const person = (n) => ({ id: `v${n}`, label: "person", pk: `p${n % 40}`, name: [{ id: `v${n}-n`, _value: `name ${n}` }], age: [{ id: `v${n}-a`, _value: n }] });

const edge = (id, from, to, label = "knows") => ({
  id, label, _isEdge: true, pk: `p${from % 40}`, _vertexId: `v${from}`, _vertexLabel: "person", _sink: `v${to}`, _sinkLabel: "person",
  _sinkPartition: `p${to % 40}`, weight: 0.5,
});

async function inParallel(items, work) {
  const rest = [...items];
  const worker = async () => {
    while (rest.length) await work(rest.pop());
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

const sorted = (list) => [...list].sort();

suite("hops", (t) => {
  t.it("results and charges do not depend on what is cached", async () => {
    const g = await t.graph();
    const degree = (n) => (n === 0 ? 200 : 5);
    const target = (n, i) => (n * 7 + i * 13 + 1) % 300;
    await inParallel(Array.from({ length: 300 }, (_, n) => n), async (n) => {
      await g.write(person(n));
      for (let i = 0; i < degree(n); i++) {
        await g.write(edge(`e${n}-${i}`, n, target(n, i), i % 5 === 4 ? "likes" : "knows"));
      }
    });
    const next = (from) => from.flatMap((n) => Array.from({ length: degree(n) }, (_, i) => i).filter((i) => i % 5 !== 4).map((i) => target(n, i)));
    const ask = async (script) => {
      const result = await g.client.submit(script);
      return { charge: attribute(result.attributes, "x-ms-total-request-charge"), values: sorted(result.toArray()) };
    };
    for (const n of [0, 1, 17, 299]) {
      const two = next(next([n]));
      const scripts = {
        [`g.V(['p${n % 40}', 'v${n}']).out('knows').out('knows').values('name')`]: sorted(two.map((v) => `name ${v}`)),
        [`g.V(['p${n % 40}', 'v${n}']).out('knows').out('knows').dedup().values('age', 'name')`]: sorted([...new Set(two)].flatMap((v) => [v, `name ${v}`])),
        [`g.V(['p${n % 40}', 'v${n}']).out('knows').out('knows').count()`]: [two.length],
        [`g.V(['p${n % 40}', 'v${n}']).out('knows').as('a').values('name').select('a').values('age')`]: sorted(next([n])),
      };
      for (const [script, expected] of Object.entries(scripts)) {
        const first = await ask(script);
        assert.deepEqual(first.values, expected, script);
        for (let again = 0; again < 3; again++) {
          assert.deepEqual(await ask(script), first, script);
        }
      }
    }
  });

  t.it("hops follow every write, beside readers, through splits and merges", async () => {
    const id = `hops-${t.way}`;
    const { rest } = t.shared;
    const made = await rest.send("POST", "/dbs/graphs/colls", {
      body: { id, partitionKey: { paths: ["/pk"], kind: "Hash" }, defaultTtl: -1 },
      headers: { "x-ms-offer-throughput": "9000" },
    });
    assert.equal(made.status, 201, made.text);
    const g = t.graphOf(id);
    const scale = async (throughput) => {
      const offers = JSON.parse((await rest.send("GET", "/offers")).text).Offers;
      const offer = offers.find((o) => JSON.parse(made.text)._self === o.resource);
      const answer = await rest.send("PUT", `/offers/${offer._rid}`, { body: { ...offer, content: { offerThroughput: throughput } } });
      assert.ok(answer.status < 300, answer.text);
    };
    const remove = async (item, pk) => {
      const answer = await rest.send("DELETE", `/dbs/graphs/colls/${id}/docs/${item}`, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify([pk]) } });
      assert.equal(answer.status, 204, answer.text);
    };
    const random = randoms(7);
    const below = (n) => Math.floor(random.next().value * n);
    const people = 12;
    const edges = new Map(); // id to [from, to, label]
    for (let n = 0; n < people; n++) await g.write(person(n));
    const out = (from, label) => [...edges.values()].filter(([f, , l]) => f === from && l === label).map(([, to]) => to);
    const check = async (from) => {
      const one = out(from, "knows");
      const two = one.flatMap((n) => out(n, "knows"));
      assert.deepEqual(sorted(await g.run("g.V([p, i]).out('knows').id()", { p: `p${from}`, i: `v${from}` })), sorted(one.map((n) => `v${n}`)));
      assert.deepEqual(sorted(await g.run("g.V([p, i]).out('knows').out('knows').values('name')", { p: `p${from}`, i: `v${from}` })), sorted(two.map((n) => `name ${n}`)));
      const entering = [...edges.values()].filter(([, to]) => to === from).length;
      assert.deepEqual(await g.run("g.V([p, i]).in().count()", { p: `p${from}`, i: `v${from}` }), [entering]);
    };
    let done = false;
    let reads = 0;
    const reader = async (n) => {
      for (; !done; reads++) {
        const from = (n + reads) % people;
        const names = await g.run("g.V([p, i]).out('knows').out('knows').values('name')", { p: `p${from}`, i: `v${from}` });
        assert.ok(names.every((name) => /^name \d+$/.test(name)));
      }
    };
    const readers = [0, 3, 7].map(reader);
    let count = 0;
    for (let step = 0; step < 240; step++) {
      const what = below(10);
      const known = [...edges.keys()];
      const some = known[below(known.length || 1)];
      if (what < 5 || !known.length) {
        const one = [below(people), below(people), below(3) ? "knows" : "likes"];
        edges.set(`e${count}`, one);
        await g.write(edge(`e${count++}`, ...one));
      } else if (what < 8) {
        await remove(some, `p${edges.get(some)[0]}`);
        edges.delete(some);
      } else if (what < 9) {
        await g.run("g.E([p, i]).drop()", { p: `p${edges.get(some)[0]}`, i: some });
        edges.delete(some);
      } else {
        const gone = below(people); // a vertex with its edges, and made anew without
        await g.run("g.V([p, i]).drop()", { p: `p${gone}`, i: `v${gone}` });
        for (const [e, [from, to]] of edges) {
          if (from === gone || to === gone) edges.delete(e);
        }
        await g.write(person(gone));
      }
      if (step === 80) await scale(40000);
      if (step === 160) await scale(9000);
      await check(below(people));
    }
    await g.write({ ...edge("short", 0, 1), ttl: 1 });
    edges.set("short", [0, 1, "knows"]);
    const before = Date.now();
    await g.run("g.V(['p0', 'v0']).out('knows').out('knows').count()");
    edges.delete("short");
    await sleep(Math.max(0, before + 2100 - Date.now()));
    for (let n = 0; n < people; n++) await check(n);
    done = true;
    await Promise.all(readers);
    assert.ok(reads > 20, `${reads} reads`);
  });
});
