// partitioning.test.js — the examples of the service's page on partitioning in its Cassandra API, verbatim: the table `uprofile.user` in its
// three forms, the inserts, and the index on a partition key column.

import { assert, cassandra, suite } from "./harness.js";

const keyspace = "CREATE KEYSPACE IF NOT EXISTS uprofile WITH REPLICATION = { 'class' : 'NetworkTopologyStrategy', 'datacenter1' : 1 }";

suite(
  "the page on partitioning",
  (t) => {
    t.it("has a primary key, which is the partition key", async () => {
      await t.run(keyspace);
      await t.run("DROP TABLE IF EXISTS uprofile.user");
      await t.run(`CREATE TABLE uprofile.user ( 
   id UUID PRIMARY KEY, 
   user text,  
   message text);`);
      const id = cassandra.types.Uuid.random();
      await t.run("INSERT INTO uprofile.user (id, user, message) VALUES (?, 'theo', 'hello')", [id]);
      const rows = await t.rows("SELECT * FROM uprofile.user WHERE id = ?", [id]);
      assert.equal(rows.length, 1);
      assert.equal(rows[0].message, "hello");
    });

    t.it("has compound keys: rows of a partition come in the order of the clustering key", async () => {
      await t.run(keyspace);
      await t.run("DROP TABLE IF EXISTS uprofile.user");
      await t.run(`CREATE TABLE uprofile.user (
   user text,  
   id int, 
   message text, 
   PRIMARY KEY (user, id));`);
      await t.run("insert into uprofile.user (user, id, message) values ('theo', 2, 'hello again');");
      await t.run("insert into uprofile.user (user, id, message) values ('theo', 1, 'hello');");
      await t.run("CREATE INDEX ON uprofile.user (user);");
      assert.deepEqual(await t.rows("select * from uprofile.user where user = 'theo'"), [
        { user: "theo", id: 1, message: "hello" },
        { user: "theo", id: 2, message: "hello again" },
      ]);
      const indexes = await t.rows("SELECT index_name, options FROM system_schema.indexes WHERE keyspace_name = 'uprofile'");
      assert.deepEqual(indexes, [{ index_name: "user_user_idx", options: { target: "user" } }]);
    });

    t.it("has composite partition keys", async () => {
      await t.run(keyspace);
      await t.run("DROP TABLE IF EXISTS uprofile.user");
      await t.run(`CREATE TABLE uprofile.user ( 
   firstname text, 
   lastname text,
   id int,  
   message text, 
   PRIMARY KEY ((firstname, lastname), id) );`);
      await t.run("INSERT INTO uprofile.user (firstname, lastname, id, message) VALUES ('theo', 'k', 2, 'b')");
      await t.run("INSERT INTO uprofile.user (firstname, lastname, id, message) VALUES ('theo', 'k', 1, 'a')");
      await t.run("INSERT INTO uprofile.user (firstname, lastname, id, message) VALUES ('theo', 'x', 1, 'c')");
      const rows = await t.rows("SELECT id, message FROM uprofile.user WHERE firstname = 'theo' AND lastname = 'k'");
      assert.deepEqual(rows, [
        { id: 1, message: "a" },
        { id: 2, message: "b" },
      ]);
    });

    t.it("shows a ring of tokens from -2^63 and four replicas", async () => {
      const [local] = await t.rows("SELECT tokens, partitioner FROM system.local");
      assert.deepEqual(local.tokens, ["-9223372036854775808"]);
      const [shown] = await t.rows("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'uprofile'");
      assert.equal(shown.replication.datacenter1, "4");
    });
  },
);
