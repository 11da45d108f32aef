// HTTP/2 on the ports of HTTP/1.1: by ALPN over TLS, by prior knowledge over plain text. Signed requests, many at once, large ones, and
// clients that mean harm. By Node.js's own http2.

import http2 from "node:http2";
import net from "node:net";
import { after, before, describe, it } from "node:test";
import { assert, emulatorKey, Rest, Server, sign, signed } from "./harness.js";

const container = "/dbs/d/colls/c";

// One connection; ca: over TLS.
class Http2 {
  static open(server, ca, settings) {
    const client = new Http2();
    client.session = http2.connect(`${ca ? "https" : "http"}://localhost:${server.port}`, { ca, settings });
    client.session.on("error", () => {});
    return client;
  }

  send(verb, path, { body, headers = {}, signs = true } = {}) {
    const date = new Date().toUTCString();
    const { type, link } = signed(path, false);
    const all = { ":method": verb, ":path": path, "x-ms-date": date, "x-ms-version": "2020-07-15", ...headers };
    if (signs) all.authorization = sign(emulatorKey, verb, type, link, date);
    return this.exchange(all, body && JSON.stringify(body));
  }

  exchange(headers, body) {
    return new Promise((done, fail) => {
      const stream = this.session.request(headers, { endStream: !body });
      const parts = [];
      let head;
      stream.on("response", (fields) => (head = fields));
      stream.on("data", (part) => parts.push(part));
      stream.on("error", fail);
      stream.on("close", () =>
        head ? done({ status: head[":status"], headers: head, text: Buffer.concat(parts).toString() }) : fail(new Error("no answer")),
      );
      if (body) stream.end(body);
    });
  }

  item(id) {
    return this.send("GET", `${container}/docs/${id}`, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify([id]) } });
  }
  create(item) {
    const headers = { "x-ms-documentdb-partitionkey": JSON.stringify([item.id]), "content-type": "application/json" };
    return this.send("POST", `${container}/docs`, { body: item, headers });
  }
  close() {
    this.session.destroy();
  }
}

describe("HTTP/2", () => {
  let server, ca, rest;
  before(async () => {
    server = await Server.start();
    ca = await server.certificate();
    rest = new Rest({ server });
    assert.equal((await rest.post("/dbs", { id: "d" })).status, 201);
    assert.equal((await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/id"], kind: "Hash" } })).status, 201);
  });
  after(async () => {
    rest.close();
    await server.stop();
  });

  for (const scheme of ["http", "https"]) {
    describe(scheme, () => {
      let client;
      before(() => (client = Http2.open(server, scheme === "https" ? ca : undefined)));
      after(() => client.close());

      it("is spoken", async () => {
        const { status, text } = await client.send("GET", "/");
        assert.equal(status, 200);
        assert.equal(JSON.parse(text).id, "localhost");
        if (scheme === "https") assert.equal(client.session.alpnProtocol, "h2");
        else assert.equal(client.session.alpnProtocol, "h2c");
      });

      it("answers as HTTP/1.1 does", async () => {
        const id = `same-${scheme}`;
        const made = await client.create({ id, n: 1 });
        assert.equal(made.status, 201);
        const one = await rest.get(`${container}/docs/${id}`, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify([id]) } });
        const two = await client.item(id);
        assert.equal(two.status, 200);
        assert.deepEqual(JSON.parse(two.text), one.json);
        for (const name of ["etag", "x-ms-request-charge", "content-type", "x-ms-session-token", "content-length"]) {
          assert.equal(two.headers[name], one.headers[name], name);
        }
        const unsigned = await client.send("GET", `${container}/docs/${id}`, { signs: false });
        assert.equal(unsigned.status, 401);
      });

      it("serves a hundred streams at once", async () => {
        const ids = Array.from({ length: 100 }, (_, i) => `many-${scheme}-${i}`);
        const made = await Promise.all(ids.map((id) => client.create({ id, text: id.repeat(100) })));
        assert.ok(made.every(({ status }) => status === 201));
        const read = await Promise.all(ids.map((id) => client.item(id)));
        assert.deepEqual(read.map(({ text }) => JSON.parse(text).text), ids.map((id) => id.repeat(100)));
      });

      it("carries large bodies and answers", async () => {
        const made = await Promise.all([0, 1, 2].map((i) => client.create({ id: `large-${scheme}-${i}`, text: "x".repeat(1_900_000) })));
        assert.deepEqual(made.map(({ status }) => status), [201, 201, 201]);
        const { status, text } = await client.item(`large-${scheme}-1`);
        assert.equal(status, 200);
        assert.equal(JSON.parse(text).text.length, 1_900_000);
        const tooLarge = await client.create({ id: "too-large", text: "x".repeat(5_000_000) });
        assert.equal(tooLarge.status, 413);
      });

      it("runs queries", async () => {
        const { status, text } = await client.send("POST", `${container}/docs`, {
          body: { query: "SELECT VALUE COUNT(1) FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: `same-${scheme}` }] },
          headers: {
            "x-ms-documentdb-isquery": "true",
            "content-type": "application/query+json",
            "x-ms-documentdb-query-enablecrosspartition": "true",
            "x-ms-documentdb-partitionkey": JSON.stringify([`same-${scheme}`]),
          },
        });
        assert.equal(status, 200);
        assert.deepEqual(JSON.parse(text).Documents, [1]);
      });
    });
  }

  it("is not for clients that offer HTTP/1.1", async () => {
    const https = new Rest({ server, scheme: "https", ca });
    const { status } = await https.get("/dbs/d");
    assert.equal(status, 200);
    https.close();
  });

  it("serves a small window", async () => {
    const client = Http2.open(server, undefined, { initialWindowSize: 1000 });
    const { text } = await client.item("large-http-1");
    assert.equal(JSON.parse(text).text.length, 1_900_000);
    client.close();
  });

  it("ends a client that resets its streams", async () => {
    const client = Http2.open(server);
    const code = new Promise((done) => client.session.on("goaway", done));
    const usable = () => !client.session.closed && !client.session.destroyed;
    for (let round = 0; round < 2000 && usable(); round++) {
      for (let i = 0; i < 20 && usable(); i++) {
        const headers = { ":method": "POST", ":path": `${container}/docs`, "content-type": "application/json" };
        const stream = client.session.request(headers, { endStream: false });
        stream.on("error", () => {});
        stream.write("{");
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
      await new Promise(setImmediate);
    }
    assert.equal(await code, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    assert.equal((await rest.get("/dbs/d")).status, 200);
  });

  it("ends a client that cuts its head into pieces without end", async () => {
    const socket = net.connect(server.port, "localhost");
    const frame = (type, flags, stream, bytes) => {
      const head = Buffer.alloc(9);
      head.writeUIntBE(bytes.length, 0, 3);
      head.writeUInt8(type, 3);
      head.writeUInt8(flags, 4);
      head.writeUInt32BE(stream, 5);
      return Buffer.concat([head, bytes]);
    };
    socket.on("error", () => {});
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(frame(4, 0, 0, Buffer.alloc(0)));
    socket.write(frame(1, 0, 1, Buffer.from([0x82])));
    const closed = new Promise((done) => socket.on("close", done).on("end", done).resume());
    const more = setInterval(() => socket.write(frame(9, 0, 1, Buffer.from("\0\x01a\x01b", "latin1"))), 1);
    await closed;
    clearInterval(more);
    socket.destroy();
    assert.equal((await rest.get("/dbs/d")).status, 200);
  });
});

describe("HTTP/2 at a stop", () => {
  it("says GOAWAY and answers what is under way", async () => {
    const server = await Server.start();
    const rest = new Rest({ server });
    await rest.post("/dbs", { id: "d" });
    await rest.post("/dbs/d/colls", { id: "c", partitionKey: { paths: ["/id"], kind: "Hash" } });
    rest.close();
    const client = Http2.open(server);
    const goaway = new Promise((done) => client.session.on("goaway", done));
    assert.equal((await client.create({ id: "a" })).status, 201);
    const body = { query: "SELECT VALUE COUNT(1) FROM c JOIN x IN c.list JOIN y IN c.list JOIN z IN c.list", parameters: [] };
    assert.equal((await client.create({ id: "b", list: Array.from({ length: 60 }, (_, i) => i) })).status, 201);
    const headers = {
      "x-ms-documentdb-isquery": "true",
      "content-type": "application/query+json",
      "x-ms-documentdb-partitionkey": '["b"]',
    };
    const answer = client.send("POST", `${container}/docs`, { body, headers });
    await new Promise((done) => setTimeout(done, 20));
    const stopped = server.stop();
    assert.equal(await goaway, http2.constants.NGHTTP2_NO_ERROR);
    assert.equal((await answer).status, 200);
    await stopped;
    client.close();
  });
});
