import { assert, refused, sign, suite } from "./harness.js";

const readOnly = Buffer.from("a read-only key of the tests, 64 bytes long, for the table API!!").toString("base64");

// The key of Storage's emulator, which the vectors were made with.
const storageKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

suite(
  "authorization",
  (t) => {
    t.it("signs as the service does", () => {
      const headers = { "x-ms-date": "Mon, 01 Jan 2024 00:00:00 GMT", "content-type": "application/json" };
      const what = { verb: "POST", key: storageKey, name: "devstoreaccount1", path: "/Tables", headers };
      assert.equal(sign({ ...what, kind: "SharedKeyLite" }), "YLb1lYsg3mYfEcUoaRzUaTOKPjj+nW2UWYupQxg9WQ8=");
      assert.equal(sign({ ...what, kind: "SharedKey" }), "6DosNvWyLfqtZYKWvchJP4oMBFvXLENmLCrBXmuQp5c=");
    });

    t.it("takes SharedKey and SharedKeyLite, in path style and host style, of any account", async () => {
      for (const kind of ["SharedKey", "SharedKeyLite"]) {
        for (const pathStyle of [true, false]) {
          for (const name of ["devstoreaccount1", "mine"]) {
            const answer = await t.rest.get("/Tables", { kind, pathStyle, name });
            assert.equal(answer.status, 200, `${kind} ${pathStyle} ${name}: ${answer.text}`);
          }
        }
      }
    });

    t.it("refuses what is unsigned or signed wrongly", async () => {
      refused(await t.rest.get("/Tables", { kind: null }), 403, "AuthenticationFailed");
      refused(await t.rest.get("/Tables", { key: readOnly.replace("a", "b") }), 403, "AuthenticationFailed");
      refused(await t.rest.get("/Tables", { kind: null, headers: { authorization: "SharedKeyLite nonsense" } }), 403, "AuthenticationFailed");
      refused(await t.rest.get("/Tables", { kind: null, headers: { authorization: "Basic abc:def" } }), 403, "AuthenticationFailed");
      refused(await t.rest.get("/Tables", { kind: null, headers: { authorization: "SharedKey devstoreaccount1:" } }), 403, "AuthenticationFailed");
    });

    t.it("allows clocks to differ by 15 minutes", async () => {
      const at = (minutes) => new Date(Date.now() + minutes * 60_000).toUTCString();
      for (const minutes of [-14, 14]) assert.equal((await t.rest.get("/Tables", { date: at(minutes) })).status, 200);
      for (const minutes of [-16, 16]) refused(await t.rest.get("/Tables", { date: at(minutes) }), 403, "AuthenticationFailed", /too old or too new/);
      refused(await t.rest.get("/Tables", { date: "yesterday" }), 403, "AuthenticationFailed");
    });

    t.it("lets read-only keys read only", async () => {
      const name = t.name();
      assert.equal((await t.rest.post("/Tables", { TableName: name })).status, 201);
      assert.equal((await t.rest.get("/Tables", { key: readOnly })).status, 200);
      assert.equal((await t.rest.get(`/${name}()`, { key: readOnly })).status, 200);
      refused(await t.rest.post("/Tables", { TableName: t.name() }, { key: readOnly }), 403, "AuthorizationFailure");
      refused(await t.rest.post(`/${name}`, { PartitionKey: "p", RowKey: "r" }, { key: readOnly }), 403, "AuthorizationFailure");
      refused(await t.rest.send("DELETE", `/Tables('${name}')`, { key: readOnly }), 403, "AuthorizationFailure");
    });
  },
  { flags: ["--read-only-key", readOnly] },
);
