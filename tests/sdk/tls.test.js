// What a TLS scanner checks: protocol versions, ciphers, key exchange, compression, renegotiation, tickets, the certificate. Uses Node.js's
// TLS, and `openssl s_client` for what Node.js does not expose.

import { spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import net from "node:net";
import tls from "node:tls";
import { after, before, describe, it } from "node:test";
import { assert, eventually, Server } from "./harness.js";

// Waits for a promise, with a timeout.
async function within(promise, ms) {
  let timer;
  await Promise.race([promise, new Promise((done) => (timer = setTimeout(done, ms)))]);
  clearTimeout(timer);
}

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

describe("TLS", () => {
  let server, ca;
  before(async () => {
    server = await Server.start();
    ca = await server.certificate();
  });
  after(() => server.stop());

  // Connects; returns the negotiated parameters, or the error.
  function connect(options = {}) {
    return new Promise((done) => {
      const socket = tls.connect({ host: "localhost", port: server.port, ca, ...options }, () =>
        done({
          protocol: socket.getProtocol(),
          cipher: socket.getCipher(),
          exchange: socket.getEphemeralKeyInfo(),
          reused: socket.isSessionReused(),
          alpn: socket.alpnProtocol,
          ticket,
          end: () => socket.destroy(),
        }),
      );
      const ticket = new Promise((got) => socket.once("session", got));
      socket.on("error", (error) => done({ error }));
      socket.on("close", () => done({ error: new Error("closed") }));
    });
  }
  async function agreed(options) {
    const made = await connect(options);
    assert.ok(!made.error, made.error?.message);
    made.end();
    return made;
  }
  const weak = { ciphers: "ALL:COMPLEMENTOFALL:@SECLEVEL=0" };

  it("is 1.2 or 1.3", async () => {
    assert.equal((await agreed()).protocol, "TLSv1.3");
    assert.equal((await agreed({ maxVersion: "TLSv1.2" })).protocol, "TLSv1.2");
    for (const old of ["TLSv1.1", "TLSv1"]) {
      const { error } = await connect({ ...weak, minVersion: old, maxVersion: old });
      assert.match(error.code, /ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS/);
    }
  });

  it("has forward secrecy and authenticated encryption, with every cipher it takes", async () => {
    const taken = [];
    for (const cipher of tls.getCiphers().filter((name) => !name.startsWith("tls_")).map((name) => name.toUpperCase())) {
      const made = await connect({ maxVersion: "TLSv1.2", ciphers: `${cipher}:@SECLEVEL=0` });
      if (made.error) continue;
      assert.equal(made.exchange.type, "ECDH", cipher);
      assert.ok(made.exchange.size >= 253, cipher);
      made.end();
      taken.push(cipher);
    }
    assert.deepEqual(taken.sort(), ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"]);
    const strong = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
    for (const ciphers of strong) assert.equal((await agreed({ minVersion: "TLSv1.3", ciphers })).cipher.name, ciphers);
  });

  it("takes no small curves, and none that cost much", async () => {
    for (const curve of ["secp192k1", "secp224r1", "sect163k1"]) {
      const { error } = await connect({ ...weak, maxVersion: "TLSv1.2", ecdhCurve: curve });
      assert.ok(error, curve);
    }
    for (const costly of ["secp521r1", "ffdhe8192", "ffdhe2048"]) {
      const told = hasOpenssl ? await client(["-tls1_3", "-groups", costly]) : "alert";
      assert.match(told, /alert|no suitable|Cipher is \(NONE\)/, costly);
    }
    for (const curve of ["X25519", "prime256v1", "secp384r1"]) assert.equal((await agreed({ ecdhCurve: curve })).protocol, "TLSv1.3");
  });

  it("chooses HTTP/2 where it is offered", async () => {
    assert.equal((await agreed({ ALPNProtocols: ["http/1.1", "h2"] })).alpn, "h2");
    assert.equal((await agreed({ ALPNProtocols: ["http/1.1"] })).alpn, "http/1.1");
    assert.equal((await agreed({ ALPNProtocols: ["h3"] })).alpn, false);
  });

  it("resumes sessions by tickets", async () => {
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"]) {
      const first = await connect({ maxVersion });
      const session = await first.ticket;
      first.end();
      assert.equal((await agreed({ maxVersion, session })).reused, true, maxVersion);
    }
  });

  it("has a certificate of its own for this machine: P-256, SHA-256, no authority, 825 days at most", async () => {
    const certificate = new X509Certificate(ca);
    assert.equal(certificate.publicKey.asymmetricKeyType, "ec");
    assert.equal(certificate.publicKey.asymmetricKeyDetails.namedCurve, "prime256v1");
    assert.equal(certificate.ca, false);
    assert.match(certificate.subjectAltName, /^DNS:localhost, IP Address:127\.0\.0\.1, IP Address:0:0:0:0:0:0:0:1/);
    const days = (Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 86_400_000;
    assert.ok(days > 365 && days <= 825, `${days} days`);
    assert.ok(Date.parse(certificate.validFrom) < Date.now());
    assert.equal(certificate.serialNumber.length, 32);
    assert.ok(certificate.verify(certificate.publicKey));
  });

  // The output of `openssl s_client`, which sends this input.
  async function client(flags, input = "") {
    const child = spawn("openssl", ["s_client", "-connect", `localhost:${server.port}`, ...flags], { stdio: ["pipe", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (text += bytes));
    const ended = new Promise((done) => child.on("close", done));
    child.stdin.on("error", () => {});
    if (input) {
      await eventually("a handshake", () => text.includes("Verify return code") || child.exitCode !== null, 10_000);
      child.stdin.write(input);
      await within(ended, 3000);
    }
    child.stdin.end();
    await within(ended, 5000);
    child.kill();
    return text;
  }

  it("neither compresses nor renegotiates", { skip: !hasOpenssl && "there is no openssl command" }, async () => {
    const told = await client(["-tls1_2", "-comp"]);
    assert.match(told, /Compression: NONE/);
    assert.match(told, /Secure Renegotiation IS supported/); // the extension that makes rejecting it safe
    const renegotiated = await client(["-tls1_2"], "R\n");
    assert.match(renegotiated, /RENEGOTIATING/);
    assert.match(renegotiated, /no renegotiation|no_renegotiation/i);
  });

  it("has no early data, and its digest is no weaker than SHA-256", { skip: !hasOpenssl && "there is no openssl command" }, async () => {
    const told = await client(["-tls1_3"]);
    assert.match(told, /Early data was not sent/);
    assert.match(await client(["-tls1_2"]), /Peer signing digest: SHA(256|384|512)/);
  });

  it("ends what begins a handshake and goes on with something else", async () => {
    for (const bytes of ["\x16\x03\x01\x00\x05hello", "\x16\x03\x00\x00\x01x", `\x16\x03\x01\xff\xff${"x".repeat(70000)}`, "\x80\x2e\x01\x00\x02"]) {
      const socket = net.connect({ host: "localhost", port: server.port });
      socket.on("error", () => {});
      socket.resume();
      const closed = new Promise((done) => socket.on("close", done));
      socket.end(Buffer.from(bytes, "latin1"));
      await closed;
    }
    assert.equal((await agreed()).protocol, "TLSv1.3");
  });
});
