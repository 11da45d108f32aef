// validate finds damage: a program (damage.c) damages the store of a stopped server.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { MongoClient } from "mongodb";
import { assert, emulatorKey, Server } from "./harness.js";
import { binary } from "../sdk/server.js";

const program = join(dirname(binary), "tests/mongo/damage"); // built with the tests
const N = 200;

async function served(data, run) {
  const server = await Server.start({ data });
  const client = new MongoClient(`mongodb://localhost:${encodeURIComponent(emulatorKey)}@${server.ready.mongo}/?replicaSet=globaldb`, { serverSelectionTimeoutMS: 5000 });
  try {
    return await run(client.db("damaged"));
  } finally {
    await client.close();
    await server.stop();
  }
}

// N documents with texts t000, t001, …, and indexes of them; `make` comes first. After the damage: what `look` says, and validate.
async function damage(what, { make = () => {}, look = () => {} } = {}) {
  const data = mkdtempSync(join(tmpdir(), "tesela-damage-"));
  try {
    await served(data, async (db) => {
      await make(db);
      const text = (i) => `t${String(i).padStart(3, "0")}`;
      await db.collection("c").insertMany(Array.from({ length: N }, (_, i) => ({ _id: i, text: text(i), n: i % 10 })));
      await db.collection("c").createIndexes([{ key: { text: 1 } }, { key: { n: 1, text: -1 }, name: "both" }, { key: { n: 1 } }]);
      assert.deepEqual(await db.command({ validate: "c" }).then(({ valid, errors }) => [valid, errors]), [true, []]);
    });
    const changed = what.length ? Number(execFileSync(program, [data, ...what], { encoding: "utf8" })) : 0;
    return await served(data, async (db) => ({ changed, seen: await look(db), ...(await db.command({ validate: "c" })) }));
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

const shard = (db) => db.command({ shardCollection: "damaged.c", key: { n: "hashed" } });

describe("validate", () => {
  it("finds nothing where nothing is damaged", async () => {
    const { valid, errors, nrecords } = await damage([]);
    assert.deepEqual([valid, errors, nrecords], [true, [], N]);
  });

  for (const [name, make] of [["a collection", undefined], ["a sharded collection", shard]]) {
    it(`finds that a document of ${name} is missing in an index`, async () => {
      const look = (db) => db.collection("c").countDocuments({ text: "t077" });
      const { changed, seen, valid, errors, indexDetails, nInvalidDocuments } = await damage(["entry-lost", "t077"], { make, look });
      assert.equal(changed, 1); // the other index has the text inverted, so that it descends
      assert.equal(seen, 0);
      assert.deepEqual([valid, nInvalidDocuments], [false, 0]);
      assert.deepEqual(errors, [`index text_1 has ${N - 1} of ${N} documents`]);
      assert.deepEqual(Object.entries(indexDetails).filter(([, x]) => !x.valid).map(([index]) => index), ["text_1"]);
    });

    it(`finds that a document of ${name} is at a wrong place in an index`, async () => {
      const { changed, valid, errors } = await damage(["entry-moved", "t077", "t150"], { make });
      assert.deepEqual([changed, valid], [1, false]);
      assert.deepEqual(errors, [`index text_1 has ${N - 1} of ${N} documents`]);
    });

    it(`finds that a document of ${name} is gone`, async () => {
      const { valid, errors, indexDetails } = await damage(["item-lost", "t077"], { make });
      assert.equal(valid, false);
      assert.ok(errors.includes(`${N} documents are counted, and ${N - 1} were found`), String(errors));
      assert.ok(errors.includes("index text_1 leads to documents that cannot be read"), String(errors));
      assert.deepEqual(Object.entries(indexDetails).filter(([, x]) => !x.valid).map(([index]) => index), ["text_1", "both", "n_1"]);
    });

    it(`finds that a document of ${name} is malformed`, async () => {
      const { changed, valid, errors, nInvalidDocuments } = await damage(["item-broken", "t077"], { make });
      assert.deepEqual([changed, valid, nInvalidDocuments], [1, false, 1]);
      assert.ok(errors.includes("1 documents are malformed"), String(errors));
    });
  }
});
