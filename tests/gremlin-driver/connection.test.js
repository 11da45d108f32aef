// Connections, authentication, the statuses and attributes of responses, batches, limits.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { assert, attribute, fails, mimes, modern, suite } from "./harness.js";
import { authenticated, Wire } from "./wire.js";

suite("connection", (t) => {
  t.it("asks once for authentication, holds what came before it, and runs all of it in order", async () => {
    const graph = await t.graph();
    const wire = await Wire.open(t, "/gremlin");
    const ids = [1, 2, 3, 4, 5].map((n) => wire.eval(`g.inject(${n})`));
    await wire.until((all) => all.length > 0);
    assert.equal(wire.responses[0].status.code, 407);
    assert.equal(wire.responses[0].requestId, ids[0]);
    assert.equal(wire.responses[0].result.data, null);
    wire.authenticate(ids[0], `/dbs/graphs/colls/${graph.id}`);
    for (const [i, id] of ids.entries()) assert.deepEqual((await wire.answers(id))[0].result.data, [i + 1]);
    assert.deepEqual(wire.responses.map((r) => r.status.code), [407, 200, 200, 200, 200, 200]);
    assert.deepEqual(wire.responses.slice(1).map((r) => r.requestId), ids);
    await wire.close();
  });

  t.it("refuses wrong keys and users, and stays open for another try", async () => {
    const graph = await t.graph();
    const wire = await Wire.open(t);
    const first = wire.eval("g.inject(1)"), second = wire.eval("g.inject(2)");
    wire.authenticate(first, `/dbs/graphs/colls/${graph.id}`, Buffer.alloc(64, 1).toString("base64"));
    assert.equal((await wire.answers(first))[0].status.code, 401);
    assert.equal((await wire.answers(second))[0].status.code, 401);
    for (const user of ["", "graphs", "/dbs/graphs", `/dbs//colls/x`, `/dbs/graphs/colls/x/y`]) {
      const id = wire.eval("g.inject(1)");
      wire.authenticate(id, user);
      assert.equal((await wire.answers(id))[0].status.code, 401, user);
    }
    const id = wire.eval("g.inject(3)");
    wire.authenticate(id, `/dbs/graphs/colls/${graph.id}`);
    assert.deepEqual((await wire.answers(id))[0].result.data, [3]);
    await wire.close();
  });

  t.it("ends requests that wait for authentication when there are too many of them, or the client leaves", async () => {
    const wire = await Wire.open(t);
    const ids = Array.from({ length: 250 }, (_, i) => wire.eval(`g.inject(${i})`));
    assert.equal((await wire.answers(ids[249]))[0].status.code, 401);
    assert.equal(wire.responses.filter((r) => r.status.code === 401).length, 50);
    await wire.close();
    const silent = await Wire.open(t);
    silent.eval("g.inject(1)");
    silent.socket.terminate();
  });

  t.it("gives the service's attributes with every response", async () => {
    const graph = await t.graph();
    await modern(graph);
    const wire = await authenticated(t, graph);
    const all = await wire.answers(wire.eval("g.V().values('name')", { batchSize: 2 }));
    assert.deepEqual(all.map((r) => r.status.code), [206, 206, 200]);
    assert.deepEqual(all.map((r) => r.result.data.length), [2, 2, 2]);
    let sum = 0;
    for (const { status } of all) {
      sum += status.attributes["x-ms-request-charge"];
      assert.equal(status.attributes["x-ms-status-code"], 200);
      assert.match(status.attributes["x-ms-activity-id"], /^[0-9a-f-]{36}$/);
      assert.ok(status.attributes["x-ms-total-server-time-ms"] >= status.attributes["x-ms-server-time-ms"]);
    }
    assert.ok(Math.abs(sum - all[2].status.attributes["x-ms-total-request-charge"]) < 1e-6);
    assert.ok(sum > 2);
    await wire.close();
  });

  t.it("answers 204 without results, 498, 499, 595, 597 and 598", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    const code = async (promise) => (await promise).status.code;
    assert.equal(await code(wire.one("g.V()")), 204);
    assert.equal(await code(wire.one("")), 204);
    assert.equal(await code(wire.one("g.V(")), 597);
    assert.equal(await code(wire.one("g.V()", { language: "cypher" })), 597);
    assert.equal(await code(wire.one("g.inject(1).repeat(repeat(identity()).times(9999)).times(9999)", { evaluationTimeout: 100 })), 598);
    assert.equal(await code(wire.one("g.inject(1).fail('no')")), 595);
    const bad = randomUUID();
    wire.send({ requestId: bad, op: "dance", processor: "", args: {} });
    assert.equal((await wire.answers(bad))[0].status.code, 498);
    const session = randomUUID();
    wire.send({ requestId: session, op: "eval", processor: "session", args: { gremlin: "g.V()", session: "s" } });
    assert.equal((await wire.answers(session))[0].status.code, 499);
    const close = randomUUID();
    wire.send({ requestId: close, op: "close", processor: "session", args: { session: "s" } });
    assert.equal((await wire.answers(close))[0].status.code, 204);
    await wire.close();
  });

  t.it("takes bindings, typed and untyped, and text messages", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    assert.deepEqual((await wire.one("g.inject(x, y)", { bindings: { x: 1, y: "two" } })).result.data, [1, "two"]);
    const typed = { "@type": "g:Int64", "@value": 7 };
    assert.deepEqual((await wire.one("g.inject(x)", { bindings: { x: typed } }, { mime: mimes.v2 })).result.data, [7]);
    const said = await wire.one("g.inject(1)", {}, { text: true });
    assert.deepEqual(said.result.data["@value"], [{ "@type": "g:Int32", "@value": 1 }]);
    await wire.close();
  });

  t.it("survives messages that are no requests", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    const id = randomUUID();
    const hostile = [
      "", "{", "[]", "null", `{"requestId":"${id}"}`, `{"requestId":"x","op":"eval"}`, "[".repeat(100000),
      `{"requestId":"${id}","op":"eval","args":{"gremlin":${"[".repeat(5000)}${"]".repeat(5000)}}}`,
      `{"requestId":"${id}","op":"eval","args":{"gremlin":"${"(".repeat(60000)}"}}`,
      `{"requestId":"${id}","op":"bytecode","processor":"traversal","args":{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["V",{"@type":"g:Lambda","@value":{"script":"x"}}]]}}}}`,
    ];
    for (const text of hostile) wire.send(text, { mime: mimes.v2 });
    wire.socket.send(Buffer.alloc(0));
    wire.socket.send(Buffer.from([200, 1, 2]));
    wire.socket.send(Buffer.concat([Buffer.from([32]), Buffer.from(mimes.binary), Buffer.from([0x81]), Buffer.alloc(40, 0xff)]));
    assert.deepEqual((await wire.one("g.inject(1)")).result.data, [1]);
    await wire.until((all) => all.length >= hostile.length + 5);
    assert.ok(wire.responses.slice(1).filter((r) => r.status.code >= 400).every((r) => [498, 499, 597, 400].includes(r.status.code)));
    await wire.close();
  });

  t.it("bounds paths that explode, and ends work when the client leaves", async () => {
    const graph = await t.graph();
    for (let i = 0; i < 12; i++) await graph.run("g.addV('n').property('id', i).property('pk', 'p')", { i: String(i) });
    await graph.run("g.V().as('a').V().addE('to').from('a')");
    assert.deepEqual(await graph.run("g.E().count()"), [144]);
    const error = await graph.run("g.V().repeat(out()).times(30).path()", {}, { evaluationTimeout: 60000 }).catch((e) => e);
    assert.equal(attribute(error.statusAttributes, "x-ms-status-code"), 1003); // more memory than one request may have
    const wire = await authenticated(t, graph);
    wire.eval("g.inject(1).repeat(repeat(identity()).times(9999)).times(9999)", { evaluationTimeout: 600000 });
    wire.socket.terminate();
    assert.deepEqual(await graph.run("g.V().count()"), [12]);
  });

  t.it("says where WebSockets are, to those who come without", async () => {
    const url = t.url().replace(/^ws/, "http");
    if (t.way !== "plain") return;
    assert.equal((await fetch(url)).status, 200);
    assert.equal((await fetch(`${url}nowhere`)).status, 404);
  });
});

suite("stopping", (t) => {
  // Whoever is cut off after the 10 s that a stop waits has no response.
  t.it("ends traversals that run long, with a response", async () => {
    const graph = await t.graph();
    const wire = await authenticated(t, graph);
    const before = wire.responses.length;
    const endless = "repeat(repeat(identity()).times(9999)).times(9999)";
    for (const script of [`g.inject(1).${endless}`, `g.with('atomic', true).addV('x').property('pk', 'p').${endless}`]) {
      wire.eval(script, { evaluationTimeout: 600000 });
    }
    await graph.run("g.inject(1)");
    t.server.child.kill("SIGTERM");
    await Promise.race([wire.until((all) => all.length === before + 2), wire.closed]);
    for (const { status } of wire.responses.slice(before)) assert.deepEqual([status.code, status.attributes["x-ms-status-code"]], [596, 503]);
    assert.equal(wire.responses.length, before + 2);
    while (t.server.child.exitCode === null && t.server.child.signalCode === null) await sleep(20);
    assert.equal(t.server.child.exitCode, 0);
  });
}, { ways: ["plain"] });

suite("keys and tokens", (t) => {
  t.it("a read-only key reads", async () => {
    const graph = await t.graph();
    await modern(graph);
    const reader = t.client(graph.id, { key: Buffer.alloc(64, 7).toString("base64") });
    assert.deepEqual(await reader.submit("g.V('1').out('knows').count()").then((r) => r.toArray()), [2]);
    await fails(reader.submit("g.V('1').property('x', 1)"), 403, null, 403);
    await fails(reader.submit("g.addV('x').property('pk', 'p')"), 403);
    await fails(reader.submit("g.V('1').drop()"), 403);
    await reader.close();
  });

  t.it("a resource token opens its container, or one partition of it", async () => {
    const graph = await t.graph(), other = await t.graph();
    await modern(graph);
    const { rest } = t.shared;
    await rest.send("POST", "/dbs/graphs/users", { body: { id: `u-${graph.id}` } });
    const permit = async (id, body) =>
      (await rest.send("POST", `/dbs/graphs/users/u-${graph.id}/permissions`, { body: { id, ...body } })).json._token;
    const resource = `dbs/graphs/colls/${graph.id}`;
    const token = await permit("whole", { permissionMode: "Read", resource });
    assert.match(token, /^type=resource/);
    const whole = t.client(graph.id, { key: token });
    assert.deepEqual(await whole.submit("g.V().count()").then((r) => r.toArray()), [6]);
    await fails(whole.submit("g.V('1').property('x', 1)"), 403);
    const part = t.client(graph.id, { key: await permit("part", { permissionMode: "All", resource, resourcePartitionKey: ["p1"] }) });
    assert.deepEqual(await part.submit("g.V().has('pk', 'p1').count()").then((r) => r.toArray()), [3]);
    assert.deepEqual(await part.submit("g.V(['p1', '1']).values('name')").then((r) => r.toArray()), ["marko"]);
    await fails(part.submit("g.V(['p0', '2'])"), 403);
    await fails(part.submit("g.V().count()"), 403);
    await fails(part.submit("g.addV('x').property('pk', 'p0')"), 403);
    const foreign = t.client(other.id, { key: token });
    await fails(foreign.submit("g.V()"), 403);
    for (const client of [whole, part, foreign]) await client.close();
  });
}, { flags: ["--throttling", "off", "--read-only-key", Buffer.alloc(64, 7).toString("base64")], ways: ["plain"] });

suite("throttling", (t) => {
  t.it("answers 429 with a time to wait, and ends what was begun", async () => {
    const graph = await t.graph({ offer: 400 });
    let error;
    const add = () => graph.run("g.addV('n').property('pk', 'p').property('text', x)", { x: "x".repeat(500) }).catch((e) => (error = e));
    for (let i = 0; i < 20 && !error; i++) {
      await Promise.all(Array.from({ length: 40 }, add)); // at once: a slow machine takes seconds to send them in turn
    }
    assert.equal(error?.statusCode, 429);
    assert.equal(attribute(error.statusAttributes, "x-ms-status-code"), 429);
    assert.match(attribute(error.statusAttributes, "x-ms-retry-after-ms"), /^\d\d:\d\d:\d\d\.\d{7}$/);
  });
}, { flags: ["--throttling", "on"], ways: ["plain"] });
