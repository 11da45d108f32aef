// profiles.js — the tables of the service's page on partitioning in its Cassandra API: one row per partition, compound keys, composite keys; and the
// same rows by SQL.
import cassandra from "cassandra-driver";
import { key, openLab } from "./lab.js";

const lab = await openLab("profiles", { usual: true });
const client = new cassandra.Client({
  contactPoints: [lab.server.cassandra],
  localDataCenter: "datacenter1",
  authProvider: new cassandra.auth.PlainTextAuthProvider("localhost", key),
});
await client.execute("CREATE KEYSPACE IF NOT EXISTS uprofile WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}");

// ---- a compound key: the user is the partition, its messages are in order ----

await client.execute("DROP TABLE IF EXISTS uprofile.user");
await client.execute("CREATE TABLE uprofile.user (user text, id int, message text, PRIMARY KEY (user, id))");
await client.execute("insert into uprofile.user (user, id, message) values ('theo', 2, 'hello again')");
await client.execute("insert into uprofile.user (user, id, message) values ('theo', 1, 'hello')");
await client.execute("CREATE INDEX ON uprofile.user (user)");
const { rows } = await client.execute("SELECT id, message, token(user) AS place FROM uprofile.user WHERE user = 'theo'");
lab.table(["id", "message", "token"], rows.map((row) => [row.id, row.message, row.place.toString()]));

// ---- a composite partition key ----

await client.execute("DROP TABLE IF EXISTS uprofile.person");
await client.execute("CREATE TABLE uprofile.person (firstname text, lastname text, id int, message text, PRIMARY KEY ((firstname, lastname), id))");
const insert = "INSERT INTO uprofile.person (firstname, lastname, id, message) VALUES (?, ?, ?, ?)";
await client.batch([1, 2, 3].map((id) => ({ query: insert, params: ["theo", "k", id, `message ${id}`] })), { prepare: true });
const last = await client.execute("SELECT message FROM uprofile.person WHERE firstname = 'theo' AND lastname = 'k' ORDER BY id DESC LIMIT 1");
lab.say(`the newest message: ${last.first().message}`);

// ---- the same rows by SQL ----

const { resources } = await lab.patient.database("uprofile").container("user").items.query("SELECT c.id, c.message FROM c WHERE c.user = 'theo'").fetchAll();
lab.say(`by SQL: ${resources.map((item) => item.message).join(", ")}`);

lab.result("messages", rows.map((row) => row.message));
lab.result("newest", last.first().message);
lab.result("sql", resources.map((item) => item.message));
await client.shutdown();
await lab.close();
