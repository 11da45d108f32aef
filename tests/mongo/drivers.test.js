// Other clients of MongoDB: libmongoc, by a program that meson builds where libmongoc-dev is installed, and mongosh: that of the folder shell, or
// another one (TESELA_MONGOSH, or in PATH).
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { it } from "node:test";
import { binary } from "../sdk/server.js";
import { assert, suite } from "./harness.js";

const here = import.meta.dirname;
const program = join(dirname(binary), "tests/mongo/libmongoc");
const shell = [process.env.TESELA_MONGOSH, join(here, "shell/node_modules/.bin/mongosh"), ...process.env.PATH.split(delimiter).map((folder) => join(folder, "mongosh"))].find((path) => path && existsSync(path));

// Runs to the end; returns what it has written to standard output.
async function run(command, args, input = "") {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, HOME: process.env.TMPDIR ?? "/tmp" }, timeout: 90_000 });
  const said = { out: "", err: "" };
  child.stdout.on("data", (part) => (said.out += part));
  child.stderr.on("data", (part) => (said.err += part));
  child.stdin.end(input);
  const code = await new Promise((done, failed) => child.on("error", failed).on("close", done));
  assert.equal(code, 0, `${command} ended with ${code}: ${said.err}${said.out}`);
  return said.out;
}

suite(
  "drivers",
  (t) => {
    if (existsSync(program)) {
      for (const compressors of ["", "&compressors=snappy", "&compressors=zstd,zlib"]) {
        t.it(`libmongoc works ${compressors || "without compression"}`, async () => {
          assert.match(await run(program, [t.uri() + compressors]), /ok/);
        });
      }
    } else {
      it("libmongoc", { skip: `${program} is not built: install libmongoc-dev` }, () => {});
    }

    if (shell) {
      t.it("mongosh works", async () => {
        const script = `
          db = db.getSiblingDB("shell");
          db.people.drop();
          db.people.insertMany([{ _id: 1, name: "Ann", n: NumberLong("5") }, { _id: 2, name: "Bob", at: ISODate("2026-01-01") }]);
          db.people.createIndex({ name: 1 });
          db.people.updateOne({ _id: 1 }, { $set: { city: "Rome" }, $push: { tags: { $each: ["a", "b"] } } });
          const s = db.getMongo().startSession();
          s.startTransaction();
          s.getDatabase("shell").people.insertOne({ _id: 3 });
          s.commitTransaction();
          print(JSON.stringify({
            names: db.people.find({ name: /^A/ }).toArray().map((d) => d.tags),
            count: db.people.countDocuments(),
            indexes: db.people.getIndexes().map((x) => x.name),
            groups: db.people.aggregate([{ $group: { _id: null, n: { $sum: 1 } } }]).toArray(),
            collections: db.getCollectionNames(),
            databases: db.adminCommand({ listDatabases: 1 }).databases.map((d) => d.name).includes("shell"),
            stats: Number(db.stats().collections),
            plan: db.people.find({ name: "Ann" }).explain().queryPlanner.winningPlan.stage,
            version: db.version(),
          }));
          db.dropDatabase();`;
        const out = await run(shell, ["--quiet", "--norc", t.uri(), "--eval", script]);
        assert.deepEqual(JSON.parse(out.split("\n").find((line) => line.startsWith("{"))), {
          names: [["a", "b"]], count: 3, indexes: ["_id_", "name_1"], groups: [{ _id: null, n: 3 }], collections: ["people"], databases: true, stats: 1, plan: "FETCH", version: "7.0.0",
        });
      });
    } else {
      it("mongosh", { skip: "it is not installed: ./dev setup mongo" }, () => {});
    }
  },
  { ways: ["plain"] },
);
