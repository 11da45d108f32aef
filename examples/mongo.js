// mongo.js — a shop's orders, sharded by customer, through MongoDB's own driver: bulk writes, an index, a pipeline, a transaction, a change
// stream; charges; then the same documents by SQL.
import { MongoClient } from "mongodb";
import { key, openLab } from "./lab.js";

const lab = await openLab("mongo", { usual: true });
const uri = `mongodb://localhost:${encodeURIComponent(key)}@${lab.server.mongo}/?replicaSet=globaldb`;
const client = await new MongoClient(uri, { maxPoolSize: 1 }).connect(); // one connection, so that "the last request" means one thing
const shop = client.db(`shop${Date.now().toString(36)}`);
const [orders, stock] = [shop.collection("orders"), shop.collection("stock")];

// ---- a shard key, documents, an index ----
await shop.command({ shardCollection: `${shop.databaseName}.orders`, key: { customer: "hashed" } });
const charge = async () => (await shop.command({ getLastRequestStatistics: 1 })).RequestCharge;
const [customers, articles] = [["ann", "bob", "eve"], ["pen", "ink", "paper"]];
const linesOf = (i) => [{ article: articles[i % 3], n: 1 + (i % 5) }, { article: articles[(i + 1) % 3], n: 1 }];
const made = Array.from({ length: 300 }, (_, i) => ({ _id: i, customer: customers[i % 3], at: new Date(Date.UTC(2026, 0, 1 + (i % 90))), lines: linesOf(i) }));
await orders.bulkWrite(made.map((document) => ({ insertOne: { document } })));
await stock.insertMany(articles.map((article) => ({ _id: article, left: 100 })));
await orders.createIndex({ at: 1 });
const march = { at: { $gte: new Date("2026-03-01"), $lt: new Date("2026-03-02") } };
const plan = await orders.find(march).explain("executionStats");
const charges = [];
for (const filter of [{ _id: 30, customer: "ann" }, march, { customer: "ann" }, {}]) {
  await orders.find(filter).toArray();
  charges.push(await charge());
}
lab.table(["one order", "one day", "one customer", "all"], [charges.map((ru) => `${ru.toFixed(2)} RU`)]);
lab.say(`orders of one day: ${plan.executionStats.nReturned}, found by ${plan.queryPlanner.winningPlan.inputStage?.stage ?? plan.queryPlanner.winningPlan.stage}`);

// ---- a pipeline ----
const byArticle = { $group: { _id: "$lines.article", n: { $sum: "$lines.n" }, customers: { $addToSet: "$customer" } } };
const sold = await orders.aggregate([{ $unwind: "$lines" }, byArticle, { $sort: { n: -1, _id: 1 } }]).toArray();
lab.table(["article", "sold", "customers"], sold.map((row) => [row._id, row.n, row.customers.length]));

// ---- a transaction over two collections, and who watches it ----
const stream = orders.watch([{ $match: { operationType: "insert" } }], { maxAwaitTimeMS: 500 });
await stream.tryNext();
const order = (_id, article, n) =>
  client.withSession((session) =>
    session.withTransaction(async () => {
      const taken = await stock.updateOne({ _id: article, left: { $gte: n } }, { $inc: { left: -n } }, { session });
      if (!taken.modifiedCount) throw new Error(`not enough ${article}`);
      await orders.insertOne({ _id, customer: "ann", at: new Date(), lines: [{ article, n }] }, { session });
      return "taken";
    }),
  );
const answers = [await order(1000, "pen", 60), await order(1001, "pen", 60).catch((error) => error.message)];
const seen = await stream.next();
await stream.close();
lab.say(`\norders: ${answers.join(", ")}; pens left: ${(await stock.findOne({ _id: "pen" })).left}; the stream saw order ${seen.documentKey._id}`);

// ---- SQL sees the same documents ----
const container = lab.patient.database(shop.databaseName).container("orders");
const { resources: counts } = await container.items.query("SELECT c.customer, COUNT(1) AS n FROM c GROUP BY c.customer").fetchAll();
lab.say(`by SQL: ${counts.map((row) => `${row.customer} ${row.n}`).sort().join(", ")}`);

const results = { charges, day: plan.executionStats.nReturned, sold: sold.map((row) => row._id), orders: [...answers, seen.documentKey._id] };
for (const [name, value] of Object.entries({ ...results, counts: counts.map((row) => row.n).sort() })) lab.result(name, value);
await shop.dropDatabase();
await client.close();
await lab.close();
