// Every command, custom action and stage that needs a server is run here, on both surfaces, and docs/mongo-features.md says of each what came
// of it. A command without an example fails the test, and so does a row without a command.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Binary, Long } from "mongodb";
import { assert, suite } from "./harness.js";

const document = readFileSync(join(import.meta.dirname, "../../docs/mongo-features.md"), "utf8");

// The rows under a heading: name -> { here, service }, each "yes", "no" or "refused".
function rows(heading) {
  const section = document.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  return new Map([...section.matchAll(/^\| `(.+?)` \| (\w+) \| (\w+) \|/gm)].map(([, name, here, service]) => [name, { here, service }]));
}

const documents = [{ _id: 1, a: 1 }, { _id: 2, a: 2 }];
const admin = (command) => ({ on: "admin", ...command });
const sasl = { mechanism: "SCRAM-SHA-256", payload: new Binary(Buffer.from("n,,n=localhost,r=abcdefghijklmnop")) };

// What to send: by `db`, `ns` and `c`, the names of a database, of a collection in it and of both. `on`: another database; `fails`: the code of
// an error that shows that the command is there; `run`: does it all.
const examples = {
  aggregate: ({ c }) => ({ aggregate: c, pipeline: [{ $match: { a: 1 } }], cursor: {} }),
  buildInfo: () => ({ buildInfo: 1 }),
  buildinfo: () => ({ buildinfo: 1 }),
  bulkWrite: ({ ns }) => admin({ bulkWrite: 1, ops: [{ insert: 0, document: { _id: 9 } }], nsInfo: [{ ns }] }),
  collMod: ({ c }) => ({ collMod: c, validator: {} }),
  collStats: ({ c }) => ({ collStats: c }),
  connectionStatus: () => ({ connectionStatus: 1 }),
  count: ({ c }) => ({ count: c }),
  create: ({ c }) => ({ create: `${c}-other` }),
  createIndexes: ({ c }) => ({ createIndexes: c, indexes: [{ key: { a: 1 }, name: "a_1" }] }),
  currentOp: () => admin({ currentOp: 1 }),
  customAction: () => ({ customAction: "GetDatabase" }),
  dataSize: ({ ns }) => ({ dataSize: ns }),
  dbStats: () => ({ dbStats: 1 }),
  dbstats: () => ({ dbstats: 1 }),
  delete: ({ c }) => ({ delete: c, deletes: [{ q: { _id: 1 }, limit: 1 }] }),
  deleteIndexes: ({ c }) => ({ deleteIndexes: c, index: "*" }),
  distinct: ({ c }) => ({ distinct: c, key: "a" }),
  drop: ({ c }) => ({ drop: c }),
  dropDatabase: ({ db }) => ({ on: `${db}-other`, dropDatabase: 1 }),
  dropIndexes: ({ c }) => ({ dropIndexes: c, index: "*" }),
  endSessions: () => admin({ endSessions: [] }),
  explain: ({ c }) => ({ explain: { find: c } }),
  find: ({ c }) => ({ find: c, filter: { a: 1 } }),
  findAndModify: ({ c }) => ({ findAndModify: c, query: { _id: 1 }, update: { $set: { a: 5 } } }),
  findandmodify: ({ c }) => ({ findandmodify: c, query: { _id: 1 }, remove: true }),
  getCmdLineOpts: () => admin({ getCmdLineOpts: 1 }),
  getLastError: () => ({ getLastError: 1 }),
  getLastRequestStatistics: () => ({ getLastRequestStatistics: 1 }),
  getLog: () => admin({ getLog: "global" }),
  getMore: ({ c }) => ({ getMore: Long.fromNumber(5), collection: c, fails: 43 }),
  getParameter: () => admin({ getParameter: 1, featureCompatibilityVersion: 1 }),
  getlasterror: () => ({ getlasterror: 1 }),
  hello: () => admin({ hello: 1 }),
  hostInfo: () => admin({ hostInfo: 1 }),
  insert: ({ c }) => ({ insert: c, documents: [{ _id: 5 }] }),
  isMaster: () => admin({ isMaster: 1 }),
  ismaster: () => admin({ ismaster: 1 }),
  killCursors: ({ c }) => ({ killCursors: c, cursors: [Long.fromNumber(5)] }),
  killOp: () => admin({ killOp: 1, op: 5 }),
  killSessions: () => admin({ killSessions: [] }),
  listCollections: () => ({ listCollections: 1 }),
  listCommands: () => ({ listCommands: 1 }),
  listDatabases: () => admin({ listDatabases: 1 }),
  listIndexes: ({ c }) => ({ listIndexes: c }),
  logout: ({ t }) => ({ run: () => t.with({}, (db) => db.command({ logout: 1 })) }),
  ping: () => ({ ping: 1 }),
  reIndex: ({ c }) => ({ reIndex: c }),
  refreshSessions: () => admin({ refreshSessions: [] }),
  renameCollection: ({ ns }) => admin({ renameCollection: ns, to: `${ns}-renamed` }),
  saslContinue: () => admin({ saslContinue: 1, conversationId: 1, payload: sasl.payload, fails: 17 }),
  saslStart: ({ t }) => ({ run: () => t.with({}, (db, client) => client.db("admin").command({ saslStart: 1, ...sasl })) }),
  serverStatus: () => admin({ serverStatus: 1 }),
  shardCollection: ({ ns }) => admin({ shardCollection: `${ns}-sharded`, key: { a: "hashed" } }),
  startSession: () => ({ startSession: 1 }),
  top: () => admin({ top: 1 }),
  update: ({ c }) => ({ update: c, updates: [{ q: { _id: 1 }, u: { $set: { a: 2 } } }] }),
  validate: ({ c }) => ({ validate: c }),
  whatsmyuri: () => ({ whatsmyuri: 1 }),
};
for (const name of ["abortTransaction", "commitTransaction"]) {
  examples[name] = ({ t, c }) => ({
    run: async () => {
      const session = t.client.startSession();
      session.startTransaction();
      await t.db.collection(c).insertOne({ _id: name }, { session });
      await session[name]();
      await session.endSession();
      assert.equal(await t.db.collection(c).countDocuments({ _id: name }), name === "commitTransaction" ? 1 : 0);
    },
  });
}

const actions = {
  CreateCollection: ({ c }) => ({ collection: `${c}-made` }),
  CreateDatabase: ({ db }) => ({ on: `${db}-made` }),
  GetChangeStreamTokens: ({ c }) => ({ collection: c }),
  GetCollection: ({ c }) => ({ collection: c }),
  GetDatabase: () => ({}),
  UpdateCollection: ({ c }) => ({ collection: c }),
  UpdateDatabase: () => ({}),
};

const stages = {
  $changeStream: ({ t, c }) => ({ run: () => t.db.collection(c).watch().tryNext() }),
  $collStats: () => [{ $collStats: { count: {} } }],
  $currentOp: () => [{ $currentOp: {} }],
  $planCacheStats: () => [{ $planCacheStats: {} }],
};

// Whether the server knows it.
async function known(t, surface) {
  const c = t.collection().collectionName;
  const names = { t, c, db: t.db.databaseName, ns: `${t.db.databaseName}.${c}` };
  await t.db.collection(c).insertMany(documents);
  return async (example, unknown) => {
    const { on, run, fails, ...command } = example(names);
    try {
      await (run ? run() : (on ? t.client.db(on) : t.db).command(command));
      assert.equal(fails, undefined, "an error was expected");
    } catch (error) {
      if (unknown.includes(error.code)) return false;
      if (error.code !== fails) throw new Error(`${JSON.stringify(command)} on the surface ${surface}: ${error.message}`, { cause: error });
    }
    return true;
  };
}

const yes = (known) => (known ? "yes" : "no");

for (const surface of ["full", "service"]) {
  suite(
    `features of the surface ${surface}`,
    (t) => {
      const column = surface === "full" ? "here" : "service";

      t.it("are the commands of the table", async () => {
        const table = rows("Commands");
        if (surface === "full") {
          const listed = Object.keys((await t.command({ listCommands: 1 })).commands);
          assert.deepEqual([...table.keys()].sort(), listed.sort());
        }
        for (const [name, row] of table) {
          const is = await known(t, surface);
          assert.ok(examples[name] || row.here === "no", `${name} has no example`);
          const example = examples[name] ?? (() => ({ [name]: 1 }));
          assert.equal(yes(await is(example, [59, 115])), row[column], name);
        }
      });

      t.it("are the custom actions of the table", async () => {
        const table = rows("Custom actions");
        assert.deepEqual([...table.keys()].sort(), Object.keys(actions).sort());
        const is = await known(t, surface);
        for (const [customAction, row] of table) {
          assert.equal(yes(await is((names) => ({ customAction, ...actions[customAction](names) }), [])), row[column], customAction);
        }
      });

      t.it("are the stages of the table", async () => {
        const table = rows("Stages");
        const is = await known(t, surface);
        for (const [name, example] of Object.entries(stages)) {
          const run = (names) => {
            const made = example(names);
            if (!Array.isArray(made)) return made;
            return name === "$currentOp" ? admin({ aggregate: 1, pipeline: made, cursor: {} }) : { aggregate: names.c, pipeline: made, cursor: {} };
          };
          assert.equal(yes(await is(run, [40324])), table.get(name)[column], name);
        }
        for (const [name, row] of table) {
          if (row.here !== "yes") assert.equal(await is(({ c }) => ({ aggregate: c, pipeline: [{ [name]: {} }], cursor: {} }), [40324]), false, name);
        }
      });
    },
    { flags: ["--throttling", "off", "--mongo-surface", surface], ways: ["plain"] },
  );
}
