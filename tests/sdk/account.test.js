// The account document, and the answers that need no signature.

import { assert, suite, Rest } from "./harness.js";

suite("account", (t) => {
  t.it("is what the SDK reads first", async () => {
    const { resource } = await t.client.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    assert.equal(resource.databasesLink, "/dbs/");
    assert.equal(resource.enableMultipleWritableLocations, false);
    const endpoint = await t.client.getWriteEndpoint();
    assert.ok(endpoint.startsWith(t.server.endpoint(t.scheme)), endpoint);
  });

  t.it("has the service's members", async () => {
    const { json, status, headers } = await t.rest.get("/");
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(json), [
      ...["_self", "id", "_rid", "media", "addresses", "_dbs", "writableLocations", "readableLocations"],
      ...["enableMultipleWriteLocations", "continuousBackupEnabled", "enableNRegionSynchronousCommit"],
      ...["enablePerPartitionFailoverBehavior", "disableCrossRegionalHedging", "userReplicationPolicy", "userConsistencyPolicy"],
      ...["systemReplicationPolicy", "readPolicy", "queryEngineConfiguration"],
    ]);
    assert.equal(json._self, "");
    assert.equal(json.media, "//media/");
    assert.equal(json.addresses, "//addresses/");
    assert.equal(json._dbs, "//dbs/");
    assert.deepEqual(json.userConsistencyPolicy, { defaultConsistencyLevel: "Session" });
    assert.deepEqual(json.userReplicationPolicy, { asyncReplication: false, minReplicaSetSize: 3, maxReplicasetSize: 4 });
    assert.deepEqual(json.readPolicy, { primaryReadCoefficient: 1, secondaryReadCoefficient: 1 });
    assert.equal(headers["content-location"], `${t.server.endpoint(t.scheme)}/`);
    for (const name of ["consumed", "reserved", "provisioned"]) assert.equal(headers[`x-ms-databaseaccount-${name}-mb`], "0");
  });

  t.it("tells the query planner its limits, as JSON inside a string", async () => {
    const { json } = await t.rest.get("/");
    const engine = JSON.parse(json.queryEngineConfiguration);
    assert.equal(engine.maxSqlQueryInputLength, 524288);
    assert.equal(engine.maxJoinsPerSqlQuery, 10);
    assert.equal(engine.maxUdfRefPerSqlQuery, 10);
    assert.equal(engine.sqlAllowNonFiniteNumbers, false);
    assert.equal(engine.clientDisableOptimisticDirectExecution, false);
  });

  t.it("repeats scheme, host and port as the client used them", async () => {
    for (const host of ["db.example:9999", "cosmos.internal", "[::1]:8443", "localhost:1"]) {
      const { json } = await t.rest.get("/", { headers: { host } });
      const expected = `${t.scheme}://${host}/`;
      assert.deepEqual(json.writableLocations, [{ name: "South Central US", databaseAccountEndpoint: expected }]);
      assert.deepEqual(json.readableLocations, json.writableLocations);
    }
  });

  t.it("is reached by 127.0.0.1 and by ::1 as well as by localhost", async () => {
    for (const host of ["127.0.0.1", "::1"]) {
      const rest = t.newRest({ host });
      const answer = await rest.get("/").catch((error) => (error.code === "EADDRNOTAVAIL" ? undefined : Promise.reject(error)));
      rest.close();
      if (!answer) continue; // a machine without IPv6
      const shown = host.includes(":") ? `[${host}]` : host;
      assert.equal(answer.json.writableLocations[0].databaseAccountEndpoint, `${t.scheme}://${shown}:${t.server.port}/`);
    }
  });

  t.it("lets a client work that was given an address instead of a name", async () => {
    const client = t.newClient({ endpoint: t.server.endpoint(t.scheme, "127.0.0.1") });
    const { resource } = await client.database(t.database.id).read();
    assert.equal(resource.id, t.database.id);
    client.dispose();
  });

  t.it("answers probes without a signature", async () => {
    for (const path of ["/alive", "/ready"]) {
      const answer = await t.rest.get(path, { sign: false, headers: { "x-ms-date": null, "x-ms-version": null } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.json, { status: "ok" });
    }
  });

  t.it("offers its certificate, which is the one that it shows", async () => {
    const answer = await t.rest.get("/_explorer/emulator.pem", { sign: false });
    assert.equal(answer.status, 200);
    assert.match(answer.text, /^-----BEGIN CERTIFICATE-----\n[\s\S]+\n-----END CERTIFICATE-----\n$/);
    const trusting = new Rest({ server: t.server, scheme: "https", ca: answer.text });
    assert.equal((await trusting.get("/")).status, 200);
    trusting.close();
    const distrusting = new Rest({ server: t.server, scheme: "https" });
    await assert.rejects(distrusting.get("/"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    distrusting.close();
  });
}, { flags: ["--allow-host", "db.example,cosmos.internal"] });
