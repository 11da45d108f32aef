// The first programs of the Connect view, as the page shows them, against the server that shows them: run where Debian or npm has the SDK; else
// compiled as far as the compiler at hand can without it.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import { assert, Browser, clientOf, emulatorKey, Server, signIn } from "./harness.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = { sql: "sdk", mongo: "mongo", cassandra: "cassandra", table: "table", gremlin: "gremlin-driver" };
const names = { sql: "SQL (Core)", mongo: "MongoDB", cassandra: "Cassandra", table: "Table", gremlin: "Gremlin" };
const has = (program) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

// What each prints when it has worked.
const printed = {
  "sql JavaScript": /customer: 'ana'[^]*total: 42[^]*\} 1\s*$/,
  "sql C": /"customer":"ana".* 1\.00 RU/,
  "sql curl": /"Databases":\[/,
  "mongo JavaScript": /\{ _id: 1, name: 'Ana' \}/,
  "mongo Python": /\{'_id': 1, 'name': 'Ana'\}/,
  "cassandra JavaScript": /customer: 'ana', id: 1, minutes: 42/,
  "cassandra Python": /keyspace_name='shop'/,
  "table JavaScript": /name: 'Ana'/,
  "gremlin JavaScript": /Lima/,
};

describe("first programs", () => {
  const browser = new Browser();
  const folder = mkdtempSync(join(tmpdir(), "tesela-snippets-"));
  let server, list;

  before(async () => {
    server = await Server.start({});
    const { database } = await clientOf(server).databases.createIfNotExists({ id: "shop" });
    await database.containers.create({ id: "people", partitionKey: { paths: ["/city"] } }); // for the graph
    list = await collect();
    const certificate = await fetch(`${server.endpoint("http")}/_explorer/emulator.pem`);
    writeFileSync(join(folder, "tesela.pem"), await certificate.text());
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  // Every program of the page: { "sql JavaScript": code, … }
  async function collect() {
    const found = {};
    await browser.with(server, {}, async (page) => {
      await signIn(page, server, { at: "#/connect" });
      for (const [api, name] of Object.entries(names)) {
        await page.click(`[aria-label=API] button:text-is('${name}')`);
        for (const language of await page.$$("[aria-label=Language] button[data-choice]")) {
          await language.click();
          found[`${api} ${await language.textContent()}`] = await page.textContent("pre.snippet");
        }
      }
    });
    return found;
  }

  async function run(program, args, { cwd = folder, env = {} } = {}) {
    const child = spawn(program, args, { cwd, env: { ...process.env, COSMOS_KEY: emulatorKey, NODE_EXTRA_CA_CERTS: join(folder, "tesela.pem"), ...env } });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (output += data));
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    const code = await new Promise((done) => child.on("close", done));
    clearTimeout(timer);
    return { code, output };
  }

  // A folder with the program, and the packages of a folder of tests/.
  function place(name, file, code, packages) {
    const at = join(folder, name.replace(/\W/g, "-"));
    mkdirSync(at);
    writeFileSync(join(at, file), code);
    symlinkSync(join(folder, "tesela.pem"), join(at, "tesela.pem"));
    if (packages) symlinkSync(join(root, "tests", packages, "node_modules"), join(at, "node_modules"));
    return at;
  }

  const works = async (name, program, args, options) => {
    for (let i = 0; i < 2; i++) {
      const { code, output } = await run(program, args, options);
      assert.equal(code, 0, `${name}: ${output}`);
      assert.match(output, printed[name], name);
    }
  };

  it("are there for each API that listens, with its port", () => {
    const languages = (api) => Object.keys(list).filter((name) => name.startsWith(`${api} `)).map((name) => name.slice(api.length + 1));
    assert.deepEqual(languages("sql"), ["JavaScript", "Python", "Java", ".NET", "Go", "C", "curl"]);
    for (const api of ["mongo", "cassandra", "table", "gremlin"]) assert.ok(languages(api).includes("JavaScript") && languages(api).includes("Python"), api);
    for (const [name, code] of Object.entries(list)) {
      const port = server.ready[name.split(" ")[0]].replace(/.*:/, "");
      assert.match(code, new RegExp(`localhost.*\\b${port}\\b`), name);
      assert.ok(!code.includes(emulatorKey), name);
    }
  });

  for (const api of Object.keys(names)) {
    it(`in JavaScript: ${api}`, async () => {
      const name = `${api} JavaScript`;
      await works(name, process.execPath, ["first.mjs"], { cwd: place(name, "first.mjs", list[name], modules[api]) });
    });
  }

  // Debian has PyMongo and Cassandra's driver; its azure-cosmos is of another major version, and the others it has not.
  for (const api of Object.keys(names)) {
    const isRun = ["mongo", "cassandra"].includes(api);
    it(`in Python: ${api}, ${isRun ? "run" : "compiled"}`, { skip: existsSync("/usr/bin/python3") ? false : "there is no Python" }, async () => {
      const name = `${api} Python`;
      const cwd = place(name, "first.py", list[name]);
      if (isRun) return works(name, "/usr/bin/python3", ["first.py"], { cwd });
      const { code, output } = await run("/usr/bin/python3", ["-m", "py_compile", "first.py"], { cwd });
      assert.equal(code, 0, output);
    });
  }

  it("in C, by libtesela", async () => {
    const cwd = place("sql C", "first.c", list["sql C"]);
    const library = join(process.env.TESELA_BIN ?? join(root, "build/tesela"), "../include");
    assert.ok(existsSync(join(library, "libtesela.so")), `${library} has libtesela.so`);
    const sanitized = process.env.TESELA_SANITIZED ? ["-fsanitize=address,undefined"] : [];
    const built = await run(process.env.TESELA_SANITIZED ? "clang" : "cc", ["-Wall", "-Wextra", "-Werror", ...sanitized, `-I${join(root, "include")}`, "first.c", `-L${library}`, `-Wl,-rpath,${library}`, "-ltesela", "-o", "first"], { cwd });
    assert.equal(built.code, 0, built.output);
    await works("sql C", "./first", [], { cwd });
  });

  it("by curl", async () => {
    const cwd = place("sql curl", "first.sh", list["sql curl"]);
    await works("sql curl", "bash", ["first.sh"], { cwd });
  });

  it("by mongosh: a line that the shell reads", async () => {
    const { code, output } = await run("bash", ["-n", "-c", list["mongo mongosh"]]);
    assert.equal(code, 0, output);
  });

  // The SDK is not there: no other error than that it is missing.
  it("in Java, parsed", { skip: has("javac") ? false : "there is no javac" }, async () => {
    const lines = list["sql Java"].split("\n");
    const imports = lines.filter((line) => line.startsWith("import "));
    const body = lines.filter((line) => !line.startsWith("import "));
    const cwd = place("sql Java", "First.java", [...imports, "class First { void run() throws Exception {", ...body, "} }"].join("\n"));
    const { output } = await run("javac", ["-Xmaxerrs", "100", "First.java"], { cwd });
    const errors = [...output.matchAll(/error: (.*)/g)].map(([, text]) => text);
    assert.ok(errors.length > 0, output);
    assert.deepEqual(errors.filter((text) => !/^package .* does not exist$|^cannot find symbol$/.test(text)), []);
  });

  it("in Go, parsed", { skip: has("gofmt") ? false : "there is no gofmt" }, async () => {
    const cwd = place("sql Go", "first.go", `package main\n\nfunc main() {\n${list["sql Go"]}\n}\n`);
    const { code, output } = await run("gofmt", ["-e", "first.go"], { cwd });
    assert.equal(code, 0, output);
  });

  it("in C#, with all brackets closed", () => {
    const code = list["sql .NET"].replace(/"(\\.|[^"])*"/g, '""');
    const open = [];
    for (const bracket of code.match(/[(){}[\]]/g)) "({[".includes(bracket) ? open.push(bracket) : assert.equal("({["[")}]".indexOf(bracket)], open.pop());
    assert.deepEqual(open, []);
  });
});
