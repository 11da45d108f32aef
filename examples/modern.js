// modern.js — TinkerPop's "modern" graph, four people and the software that they made, by TinkerPop's own driver: a few traversals with their
// charges, and the same vertices by SQL.
import gremlin from "gremlin";
import { key, openLab } from "./lab.js";

const lab = await openLab("modern", { usual: true });

// ---- a graph is a container; the user name of a connection says which ----

await lab.database.containers.create({ id: "modern", partitionKey: "/pk" });
const client = new gremlin.driver.Client(lab.server.gremlin, {
  authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/${lab.database.id}/colls/modern`, key),
  traversalsource: "g",
  mimeType: "application/vnd.gremlin-v2.0+json",
});

// A script's results and its charge. Values go into bindings, never into the script's text.
async function run(script, bindings) {
  const answer = await client.submit(script, bindings);
  return { results: answer.toArray(), ru: answer.attributes["x-ms-total-request-charge"] };
}

// ---- vertices and edges ----

const people = { marko: 29, vadas: 27, josh: 32, peter: 35 };
const software = { lop: "java", ripple: "java" };
const edges = [
  ["marko", "knows", "vadas", 0.5],
  ["marko", "knows", "josh", 1.0],
  ["marko", "created", "lop", 0.4],
  ["josh", "created", "lop", 0.4],
  ["josh", "created", "ripple", 1.0],
  ["peter", "created", "lop", 0.2],
];

// The partition key of each vertex is its name: a vertex and the edges that leave it lie in one partition.
for (const [name, age] of Object.entries(people)) {
  await run("g.addV('person').property('id', name).property('pk', name).property('name', name).property('age', age)", { name, age });
}
for (const [name, lang] of Object.entries(software)) {
  await run("g.addV('software').property('id', name).property('pk', name).property('name', name).property('lang', lang)", { name, lang });
}
for (const [from, label, to, weight] of edges) {
  await run("g.V([from, from]).addE(label).to(g.V([to, to])).property('weight', weight)", { from, label, to, weight });
}

// ---- traversals ----

const questions = {
  "whom marko knows": "g.V(['marko', 'marko']).out('knows').values('name')",
  "who is older than 30": "g.V().has('person', 'age', gt(30)).values('name')",
  "who made lop": "g.V(['lop', 'lop']).in('created').values('name')",
  "who works with marko": "g.V(['marko', 'marko']).as('m').out('created').in('created').where(neq('m')).values('name')",
  "best friend first": "g.V(['marko', 'marko']).outE('knows').order().by('weight', decr).inV().values('name')",
  "the people's ages": "g.V().hasLabel('person').values('age').fold().project('least', 'mean').by(min(local)).by(mean(local))",
  "edges by label": "g.E().groupCount().by(label)",
  "ways to ripple": "g.V(['marko', 'marko']).repeat(out()).until(has('name', 'ripple')).path().by('name')",
};
const shown = (result) => (result.objects ? result.objects.join(" → ") : typeof result === "object" ? JSON.stringify(result) : `${result}`);
const rows = [];
for (const [question, script] of Object.entries(questions)) {
  const { results, ru } = await run(script);
  rows.push([question, results.map(shown).join(", "), ru.toFixed(2)]);
  lab.result(question, { answer: results.map(shown), ru });
}
lab.table(["question", "answer", "RU"], rows);
lab.say(Object.entries(questions).map(([question, script]) => `${question}:\n  ${script}`).join("\n"));

// ---- SQL sees vertices and edges as items ----

const { resources } = await lab.patient.database(lab.database.id).container("modern").items.query("SELECT c.label, c._sink FROM c WHERE c.pk = 'josh' AND c._isEdge = true").fetchAll();
lab.say(`\njosh's edges by SQL: ${resources.map((edge) => `${edge.label} ${edge._sink}`).sort().join(", ")}`);
lab.result("sql", resources.map((edge) => `${edge.label} ${edge._sink}`).sort());

await client.close();
await lab.close();
