// Header fields: those of every response, consistency, sessions, versions; errors in the service's form.

import { assert, suite, refused, key, guid, sleep } from "./harness.js";

suite("headers", (t) => {
  // One response for each kind of request, and whether the request is for a container's items.
  const everyAnswer = async () => {
    const path = await t.containerPath();
    const item = { headers: key("a") };
    const { _rid: offer } = (await t.rest.get("/offers")).json.Offers[0];
    const spec = { query: "SELECT * FROM c" };
    const query = { headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" } };
    const batch = { headers: { ...key("a"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" } };
    const name = t.name();
    return [
      ["GET account", await t.rest.get("/")],
      ["GET databases", await t.rest.get("/dbs")],
      ["POST database", await t.rest.post("/dbs", { id: name })],
      ["POST database again", await t.rest.post("/dbs", { id: name })],
      ["GET database", await t.rest.get(t.databasePath)],
      ["GET database missing", await t.rest.get("/dbs/nobody")],
      ["query databases", await t.rest.post("/dbs", spec, query)],
      ["DELETE database", await t.rest.delete(`/dbs/${name}`)],
      ["GET containers", await t.rest.get(`${t.databasePath}/colls`)],
      ["GET container", await t.rest.get(path), true],
      ["GET container missing", await t.rest.get(`${t.databasePath}/colls/nobody`)],
      ["PUT container", await t.rest.put(path, (await t.rest.get(path)).json), true],
      ["GET pkranges", await t.rest.get(`${path}/pkranges`)],
      ["GET offers", await t.rest.get("/offers")],
      ["GET offer", await t.rest.get(`/offers/${offer}`)],
      ["POST item", await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, item), true],
      ["POST item again", await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, item), true],
      ["POST item badly", await t.rest.post(`${path}/docs`, "{", item), true],
      ["POST item elsewhere", await t.rest.post(`${path}/docs`, { id: "1", pk: "b" }, item), true],
      ["GET item", await t.rest.get(`${path}/docs/1`, item), true],
      ["GET item missing", await t.rest.get(`${path}/docs/2`, item), true],
      ["GET item not modified", await t.rest.get(`${path}/docs/1`, { headers: { ...key("a"), "if-none-match": "*" } }), true],
      ["PUT item", await t.rest.put(`${path}/docs/1`, { id: "1", pk: "a" }, item), true],
      ["PUT item changed", await t.rest.put(`${path}/docs/1`, { id: "1", pk: "a" }, { headers: { ...key("a"), "if-match": '"x"' } }), true],
      ["PATCH item", await t.rest.patch(`${path}/docs/1`, [{ op: "set", path: "/v", value: 1 }], item), true],
      ["PATCH item badly", await t.rest.patch(`${path}/docs/1`, [{ op: "remove", path: "/w" }], item), true],
      ["batch", await t.rest.post(`${path}/docs`, [{ operationType: "Read", id: "1" }], batch), true],
      ["batch failed", await t.rest.post(`${path}/docs`, [{ operationType: "Read", id: "2" }], batch), true],
      ["GET items", await t.rest.get(`${path}/docs`), true],
      ["query items", await t.rest.post(`${path}/docs`, spec, query), true],
      ["DELETE item", await t.rest.delete(`${path}/docs/1`, item), true],
      ["DELETE item again", await t.rest.delete(`${path}/docs/1`, item), true],
      ["GET sprocs", await t.rest.get(`${path}/sprocs`), true],
      ["DELETE container", await t.rest.delete(path)],
    ];
  };

  t.it("of every answer: activity, charge, session, versions, no caching", async () => {
    for (const [what, { headers }, ofItems] of await everyAnswer()) {
      assert.match(headers["x-ms-activity-id"], guid, what);
      assert.match(headers["x-ms-request-charge"], /^\d+(\.\d{1,2})?$/, what);
      assert.match(headers["x-ms-request-duration-ms"], /^\d+\.\d+$/, what);
      assert.match(headers["x-ms-session-token"], /^\d+:-1#\d+$/, what);
      assert.equal(headers["cache-control"], "no-store, no-cache", what);
      assert.equal(headers.pragma, "no-cache", what);
      assert.equal(headers["content-type"], "application/json", what);
      assert.equal(headers["x-ms-gatewayversion"], "version=2.14.0", what);
      assert.match(headers["x-ms-serviceversion"], /^version=/, what);
      assert.ok(Math.abs(Date.parse(headers.date) - Date.now()) < 60_000, what);
      assert.equal(headers["strict-transport-security"], undefined, what); // it would apply to all other ports of a developer's localhost
      if (!ofItems) continue;
      assert.equal(headers["x-ms-documentdb-partitionkeyrangeid"], "0", what);
      assert.match(headers.lsn, /^\d+$/, what);
      assert.match(headers["x-ms-global-committed-lsn"], /^\d+$/, what);
      assert.equal(headers["x-ms-current-replica-set-size"], "4", what);
      assert.equal(headers["x-ms-current-write-quorum"], "3", what);
      const ofDatabase = what.endsWith(" container"); // the owner's path: of a container its database's
      assert.match(headers["x-ms-alt-content-path"], ofDatabase ? /^dbs\/[^/]+$/ : /^dbs\/.+\/colls\/.+$/, what);
      assert.equal(Buffer.from(headers["x-ms-content-path"].replaceAll("-", "/"), "base64").length, ofDatabase ? 4 : 8, what);
    }
  });

  t.it("repeat the client's activity id, if it is one", async () => {
    const id = "12345678-90ab-cdef-1234-567890abcdef";
    assert.equal((await t.rest.get("/", { headers: { "x-ms-activity-id": id } })).headers["x-ms-activity-id"], id);
    for (const other of ["x", `${id}0`, 'x'.repeat(36), '"><script>alert("hello")</script>......', `g${id.slice(1)}`]) {
      assert.match((await t.rest.get("/", { headers: { "x-ms-activity-id": other } })).headers["x-ms-activity-id"], guid);
    }
  });

  t.it("name containers so that any name fits", async () => {
    const { container } = await t.database.containers.create({ id: `ñ 😀 %-${t.scheme}`, partitionKey: "/pk" });
    const { headers } = await container.items.create({ id: "1", pk: "a" });
    const path = headers["x-ms-alt-content-path"];
    assert.match(path, /^[\x21-\x7e]+$/);
    assert.equal(decodeURIComponent(path), `dbs/${t.database.id}/colls/${container.id}`);
    assert.equal((await container.item("1", "a").read()).statusCode, 200);
  });
});

suite("consistency", (t) => {
  t.it("may be weakened by a request, not strengthened", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    const read = (level) => t.rest.get(`${path}/docs/1`, { headers: { ...key("a"), "x-ms-consistency-level": level } });
    for (const level of ["Session", "ConsistentPrefix", "Eventual", "session"]) assert.equal((await read(level)).status, 200, level);
    for (const level of ["Strong", "BoundedStaleness", "Bounded"]) {
      refused(await read(level), 400, { text: "specified in the request is invalid when service is configured with consistency level Session" });
    }
    refused(await read("Sometimes"), 400);
  });

  t.it("is the SDK's to choose as well", async () => {
    const client = t.newClient({ consistencyLevel: "Eventual" });
    assert.equal((await client.database(t.database.id).read()).statusCode, 200);
    client.dispose();
  });
});

suite(
  "strong consistency",
  (t) => {
    t.it("allows every level, and strong reads cost twice", async () => {
      assert.equal((await t.client.getDatabaseAccount()).resource.consistencyPolicy, "Strong");
      const path = await t.containerPath();
      await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
      const read = (level) => t.rest.get(`${path}/docs/1`, { headers: { ...key("a"), ...(level && { "x-ms-consistency-level": level }) } });
      for (const [level, charge] of [[undefined, 2], ["Strong", 2], ["BoundedStaleness", 2], ["Session", 1], ["ConsistentPrefix", 1], ["Eventual", 1]]) {
        const answer = await read(level);
        assert.equal(answer.status, 200);
        assert.equal(answer.charge, charge, level);
      }
    });
  },
  { flags: ["--consistency", "Strong"] },
);

suite("sessions", (t) => {
  const lsn = (answer) => Number(/^\d+:-1#(\d+)$/.exec(answer.headers["x-ms-session-token"])[1]);

  t.it("advance with every write of a range", async () => {
    const path = await t.containerPath();
    const seen = [];
    for (let i = 0; i < 3; i++) seen.push(lsn(await t.rest.post(`${path}/docs`, { id: `${i}`, pk: "a" }, { headers: key("a") })));
    seen.push(lsn(await t.rest.put(`${path}/docs/0`, { id: "0", pk: "a" }, { headers: key("a") })));
    seen.push(lsn(await t.rest.delete(`${path}/docs/1`, { headers: key("a") })));
    assert.deepEqual(seen, [1, 2, 3, 4, 5]);
    const failed = await t.rest.post(`${path}/docs`, { id: "0", pk: "a" }, { headers: key("a") });
    assert.equal(failed.status, 409);
    assert.equal(lsn(failed), 5);
    assert.equal(lsn(await t.rest.get(`${path}/docs/0`, { headers: key("a") })), 5);
  });

  t.it("are each range's own", async () => {
    const container = await t.container({ partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, maxThroughput: 40000 });
    const first = await container.items.create({ id: "1", pk: "redmond" }); // range 2
    const second = await container.items.create({ id: "1", pk: "aa" }); // range 0
    assert.equal(first.headers["x-ms-session-token"], "2:-1#1");
    assert.equal(second.headers["x-ms-session-token"], "0:-1#1");
  });

  t.it("ahead of the server are 404 with 1002", async () => {
    const path = await t.containerPath();
    await t.rest.post(`${path}/docs`, { id: "1", pk: "a" }, { headers: key("a") });
    const read = (token) => t.rest.get(`${path}/docs/1`, { headers: { ...key("a"), "x-ms-session-token": token } });
    for (const token of ["0:-1#1", "0:-1#0", "1:-1#99", "0:-1#1#7=5", "0:1", "0:-1#1,1:-1#5"]) assert.equal((await read(token)).status, 200, token);
    for (const token of ["0:-1#2", "0:-1#99", "0:-1#99#1=2", "1:-1#1,0:-1#2", "0:2"]) {
      refused(await read(token), 404, { substatus: 1002, text: "The read session is not available for the input session token." });
    }
    for (const token of ["x", "0", "0:", ":1", "0:-1#x", ","]) refused(await read(token), 400);
    const feed = await t.rest.get(`${path}/docs`, { headers: { "x-ms-session-token": "0:-1#99" } });
    refused(feed, 404, { substatus: 1002 });
  });

  t.it("make a client read what it has written, through the SDK", async () => {
    const container = await t.container();
    for (let i = 0; i < 20; i++) {
      await container.items.upsert({ id: "1", pk: "a", i });
      assert.equal((await container.item("1", "a").read()).resource.i, i);
    }
  });

  t.it("of one client serve another", async () => {
    const container = await t.container();
    const { headers } = await container.items.create({ id: "1", pk: "a" });
    const other = t.newClient();
    const read = await other.database(t.database.id).container(container.id).item("1", "a").read({ sessionToken: headers["x-ms-session-token"] });
    assert.equal(read.statusCode, 200);
    other.dispose();
  });
});

suite("errors", (t) => {
  t.it("of paths and verbs that there are not", async () => {
    for (const path of ["/nowhere", "/dbs/a/nothing", "/dbs/a/colls/b/docs/c/d", "/offers/a/b", "/dbs/%zz", "/dbs/a/colls/%"]) {
      refused(await t.rest.get(path), 400, { text: "Request url is invalid." });
    }
    const path = await t.containerPath();
    for (const [verb, where] of [["PUT", "/dbs"], ["DELETE", "/dbs"], ["PATCH", "/dbs"], ["PUT", t.databasePath], ["POST", t.databasePath], ["DELETE", `${t.databasePath}/colls`], ["POST", path], ["DELETE", `${path}/docs`], ["PUT", `${path}/docs`], ["POST", `${path}/docs/1`], ["POST", `${path}/pkranges`], ["POST", "/"], ["OPTIONS", "/dbs"]]) {
      const answer = await t.rest.send(verb, where, { body: verb === "GET" ? undefined : "{}" });
      refused(answer, 405, { text: "The requested verb is not supported." });
    }
  });

  t.it("reach the SDK with code, sub-status, activity and headers", async () => {
    const container = await t.container();
    await container.items.create({ id: "1", pk: "a" });
    const error = await container.items.create({ id: "1", pk: "a" }).catch((caught) => caught);
    assert.equal(error.code, 409);
    assert.equal(error.body.code, "Conflict");
    assert.match(error.activityId, guid);
    assert.match(error.headers["x-ms-session-token"], /^0:-1#1$/);
    const mismatch = await container.item("1", "a").replace({ id: "1", pk: "b" }).catch((caught) => caught);
    assert.equal(mismatch.substatus, 1001);
  });

  t.it("of the store's kind wrap their sentence, the gateway's do not", async () => {
    const path = await t.containerPath();
    const missing = await t.rest.get(`${path}/docs/1`, { headers: key("a") });
    assert.match(missing.message, /^Message: \{"Errors":\["Entity with the specified id does not exist in the system\.[^"]*"\]\}\r\nActivityId: [0-9a-f-]{36}, Request URI: /);
    const url = await t.rest.get("/nowhere");
    assert.match(url.message, /^Request url is invalid\.\r\nActivityId: [0-9a-f-]{36}, /);
  });

  t.it("leave the connection usable", async () => {
    const rest = t.newRest();
    for (let i = 0; i < 3; i++) {
      assert.equal((await rest.get("/dbs/nobody")).status, 404);
      assert.equal((await rest.post("/dbs", "{")).status, 400);
      assert.equal((await rest.get("/", { sign: false })).status, 401);
    }
    await sleep(1);
    assert.equal((await rest.get("/")).status, 200);
    rest.close();
  });
});
