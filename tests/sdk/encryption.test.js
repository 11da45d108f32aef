// Client-side encryption through the SDK: keys are kept by the server, wrapped by a resolver of the test; the server sees cipher text only.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { EncryptionAlgorithm, EncryptionType, KeyEncryptionAlgorithm } from "@azure/cosmos";
import { assert, suite, fails, emulatorKey, Rest, Server } from "./harness.js";

// "Wraps" by turning all bits over: enough to tell wrapped from plain.
const turned = (bytes) => Buffer.from(bytes).map((byte) => byte ^ 0xff);
const resolver = { encryptionKeyResolverName: "test", wrapKey: async (path, algorithm, key) => turned(key), unwrapKey: async (path, algorithm, key) => turned(key) };
const metadata = (value) => ({ type: "test", name: "master", value, algorithm: KeyEncryptionAlgorithm.RSA_OAEP });
const included = (path, encryptionType) => ({ path, clientEncryptionKeyId: "k", encryptionType, encryptionAlgorithm: EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256 });

suite("client encryption", (t) => {
  const encrypting = () => t.newClient({ clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });

  t.it("keys are created, read and rewrapped", async () => {
    const client = encrypting();
    const { database } = await client.databases.create({ id: t.name("d") });
    const made = await database.createClientEncryptionKey("k", EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, metadata("one"));
    assert.equal(made.statusCode, 201);
    assert.deepEqual(made.clientEncryptionKeyProperties.encryptionKeyWrapMetadata, metadata("one"));
    await fails(database.createClientEncryptionKey("k", EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, metadata("two")), 409);
    const rewrapped = await database.rewrapClientEncryptionKey("k", metadata("two"));
    assert.equal(rewrapped.statusCode, 200);
    const read = await database.readClientEncryptionKey("k");
    assert.deepEqual(read.clientEncryptionKeyProperties.encryptionKeyWrapMetadata, metadata("two"));
    assert.deepEqual(read.clientEncryptionKeyProperties.wrappedDataEncryptionKey, made.clientEncryptionKeyProperties.wrappedDataEncryptionKey);
    client.dispose();
  });

  t.it("properties are stored as cipher text, and read as what they were", async () => {
    const client = encrypting();
    const { database } = await client.databases.create({ id: t.name("d") });
    await database.createClientEncryptionKey("k", EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, metadata("one"));
    const clientEncryptionPolicy = { includedPaths: [included("/secret", EncryptionType.RANDOMIZED), included("/pk", EncryptionType.DETERMINISTIC)], policyFormatVersion: 2 };
    const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] }, clientEncryptionPolicy });
    await container.items.create({ id: "1", pk: "a", secret: "hush", open: 1 });
    const { resource } = await container.item("1", "a").read();
    assert.equal(resource.secret, "hush");
    const plain = await t.client.database(database.id).container("c").items.query("SELECT * FROM c").fetchAll();
    assert.equal(plain.resources.length, 1);
    assert.equal(plain.resources[0].open, 1);
    assert.notEqual(plain.resources[0].secret, "hush");
    assert.notEqual(plain.resources[0].pk, "a");
    await container.deleteAllItemsForPartitionKey("a");
    assert.equal((await container.item("1", "a").read()).statusCode, 404);
    client.dispose();
  });

  t.it("keys go with their database", async () => {
    const client = encrypting();
    const id = t.name("d");
    const { database } = await client.databases.create({ id });
    await database.createClientEncryptionKey("k", EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, metadata("one"));
    await database.delete();
    await t.client.databases.create({ id });
    assert.equal((await t.rest.get(`/dbs/${id}/clientencryptionkeys/k`)).status, 404);
    assert.equal((await t.rest.get(`/dbs/${id}/clientencryptionkeys`)).json._count, 0);
    client.dispose();
  });

  t.it("a database has twenty keys at most", async () => {
    const id = t.name("d");
    await t.client.databases.create({ id });
    const body = (n) => ({ id: `k${n}`, encryptionAlgorithm: "x", wrappedDataEncryptionKey: "aGk=", keyWrapMetadata: { type: "t" } });
    for (let i = 0; i < 20; i++) assert.equal((await t.rest.post(`/dbs/${id}/clientencryptionkeys`, body(i))).status, 201);
    assert.equal((await t.rest.post(`/dbs/${id}/clientencryptionkeys`, body(20))).status, 403);
    const { json } = await t.rest.get(`/dbs/${id}/clientencryptionkeys`);
    assert.deepEqual(json.ClientEncryptionKeys.map((one) => one.id), Array.from({ length: 20 }, (_, i) => `k${i}`));
  });

  t.it("no resource token reaches the keys", async () => {
    const container = await t.container();
    const { user } = await t.database.users.create({ id: t.name("u") });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "All", resource: `dbs/${t.database.id}/colls/${container.id}` });
    const client = t.newClient({ key: undefined, resourceTokens: { [t.database.id]: resource._token }, clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });
    const database = client.database(t.database.id);
    await fails(database.createClientEncryptionKey("k", EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, metadata("one")), 403);
    await fails(database.readClientEncryptionKey("k"), 403);
    client.dispose();
  });
});

describe("client encryption keys", () => {
  let data;
  before(() => (data = mkdtempSync(join(tmpdir(), "tesela-encryption-"))));
  after(() => rmSync(data, { recursive: true, force: true }));

  it("are there after a restart, and their numbers are not given out again", async () => {
    const body = (id) => ({ id, encryptionAlgorithm: "x", wrappedDataEncryptionKey: "aGk=", keyWrapMetadata: { type: "t", name: "n" } });
    const first = await Server.start({ data });
    const rest = new Rest({ server: first, key: emulatorKey });
    await rest.post("/dbs", { id: "d" });
    for (const id of ["a", "b"]) await rest.post("/dbs/d/clientencryptionkeys", body(id));
    const earlier = (await rest.get("/dbs/d/clientencryptionkeys")).json;
    assert.equal(earlier._count, 2);
    rest.close();
    await first.stop();
    const second = await Server.start({ data });
    const again = new Rest({ server: second, key: emulatorKey });
    assert.deepEqual((await again.get("/dbs/d/clientencryptionkeys")).json, earlier);
    const { json } = await again.post("/dbs/d/clientencryptionkeys", body("c"));
    assert.ok(!earlier.ClientEncryptionKeys.some((one) => one._rid === json._rid));
    again.close();
    await second.stop();
  });
});
