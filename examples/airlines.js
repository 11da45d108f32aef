// airlines.js — airports and routes as a graph, partitioned by country, by TinkerPop's own driver: point reads, two hops, hubs, the cheapest way;
// and a drawing of the graph (--svg FILE).
import { writeFileSync } from "node:fs";
import gremlin from "gremlin";
import { draw } from "./draw.js";
import { key, openLab } from "./lab.js";

// By country: cities with latitude and longitude.
const airports = {
  USA: { Seattle: [47, -122], "Los Angeles": [34, -118], Denver: [40, -105], Dallas: [33, -97], Chicago: [42, -88], Atlanta: [34, -84], Miami: [26, -80], "New York": [41, -74] },
  Canada: { Toronto: [44, -80] }, Mexico: { "Mexico City": [19, -99] }, Peru: { Lima: [-12, -77] },
  Brazil: { "São Paulo": [-23, -46] }, Argentina: { "Buenos Aires": [-35, -58] }, Iceland: { Reykjavík: [64, -23] },
  UK: { London: [51, 0] }, Spain: { Madrid: [40, -4] }, Germany: { Frankfurt: [50, 9] }, Italy: { Rome: [42, 12] },
  Sweden: { Stockholm: [60, 18] }, Turkey: { Istanbul: [41, 29] }, Egypt: { Cairo: [30, 31] }, Nigeria: { Lagos: [7, 3] },
  Kenya: { Nairobi: [-1, 37] }, "South Africa": { Johannesburg: [-26, 28] }, UAE: { Dubai: [25, 55] },
  India: { Delhi: [29, 77], Mumbai: [19, 73] }, Singapore: { Singapore: [1, 104] }, China: { "Hong Kong": [22, 114] },
  Japan: { Tokyo: [36, 140] }, Australia: { Perth: [-32, 116], Sydney: [-34, 151] }, "New Zealand": { Auckland: [-37, 175] },
};

// Routes are flown both ways, at the same price.
const routes = {
  Seattle: { "Los Angeles": 90, Denver: 80, Chicago: 120, "New York": 190, Reykjavík: 260, Tokyo: 480 },
  "Los Angeles": { Denver: 70, Dallas: 95, "New York": 210, "Mexico City": 150, Tokyo: 510, Sydney: 720, Auckland: 690 },
  Denver: { Chicago: 75, Dallas: 60 },
  Dallas: { Atlanta: 65, "Mexico City": 110, Miami: 85 },
  Chicago: { "New York": 85, Toronto: 70, Atlanta: 80, Frankfurt: 470 },
  Atlanta: { Miami: 60, "New York": 95, Lagos: 620 },
  Miami: { Lima: 240, "São Paulo": 390, "New York": 100 },
  "New York": { Toronto: 75, London: 310, Madrid: 330, Reykjavík: 220 },
  Lima: { "Mexico City": 260, "Buenos Aires": 210 },
  "São Paulo": { "Buenos Aires": 120, Madrid: 520, Johannesburg: 560 },
  Reykjavík: { London: 110, Stockholm: 120 },
  London: { Frankfurt: 70, Madrid: 65, Stockholm: 80, Dubai: 340, Delhi: 410, "Hong Kong": 560, Lagos: 380 },
  Frankfurt: { Rome: 75, Stockholm: 85, Istanbul: 100, Delhi: 400 },
  Rome: { Madrid: 60, Cairo: 130 },
  Istanbul: { Cairo: 90, Dubai: 150, Nairobi: 270 },
  Cairo: { Nairobi: 210, Dubai: 140 },
  Nairobi: { Johannesburg: 190, Mumbai: 250, Lagos: 280 },
  Johannesburg: { Perth: 580, Dubai: 360 },
  Dubai: { Delhi: 130, Mumbai: 120, Singapore: 290 },
  Delhi: { Mumbai: 50, Singapore: 220 },
  Singapore: { "Hong Kong": 130, Perth: 170, Sydney: 260 },
  "Hong Kong": { Tokyo: 180 },
  Sydney: { Tokyo: 410, Perth: 140, Auckland: 130 },
};

const lab = await openLab("airlines", { usual: true });
await lab.database.containers.create({ id: "airlines", partitionKey: "/country" });
const client = new gremlin.driver.Client(lab.server.gremlin, {
  authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/${lab.database.id}/colls/airlines`, key),
  traversalsource: "g",
  mimeType: "application/vnd.gremlin-v2.0+json",
});
let charge = 0;
async function run(script, bindings) {
  const answer = await client.submit(script, bindings);
  charge = answer.attributes["x-ms-total-request-charge"];
  return answer.toArray();
}

const country = Object.fromEntries(Object.entries(airports).flatMap(([name, cities]) => Object.keys(cities).map((city) => [city, name])));
for (const [city, [lat, lon]] of Object.values(airports).flatMap(Object.entries)) {
  const bindings = { city, country: country[city], lat, lon };
  await run("g.addV('airport').property('id', city).property('country', country).property('lat', lat).property('lon', lon)", bindings);
}
const oneWay = Object.entries(routes).flatMap(([from, ways]) => Object.entries(ways).map(([to, price]) => ({ from, to, price })));
for (const { from, to, price } of oneWay.flatMap((way) => [way, { ...way, from: way.to, to: way.from }])) {
  const bindings = { from, to, price, fromCountry: country[from], toCountry: country[to] };
  await run("g.V([fromCountry, from]).addE('route').to(g.V([toCountry, to])).property('price', price)", bindings);
}

// ---- questions ----

const [seattle] = await run("g.V(['USA', 'Seattle']).valueMap('lat', 'lon')");
lab.say(`Seattle is at ${seattle.lat}, ${seattle.lon}: a point read, ${charge.toFixed(2)} RU`);

const near = await run("g.V(['USA', 'Seattle']).as('s').out('route').aggregate('direct').out('route').where(without('direct')).where(neq('s')).dedup().id()");
lab.say(`from Seattle with one change: ${near.sort().join(", ")} (${charge.toFixed(2)} RU)`);

const hubs = await run("g.V().hasLabel('airport').project('id', 'routes').by(id).by(outE('route').count()).order().by('routes', decr).by('id').limit(5)");
lab.say(`hubs: ${hubs.map((hub) => `${hub.id} ${hub.routes}`).join(", ")} (${charge.toFixed(2)} RU)`);

// The ways of at most four flights; the sack carries their price.
const [cheapest] = await run(`g.withSack(0).V(['USA', 'Seattle'])
  .repeat(outE('route').sack(sum).by('price').inV().simplePath()).until(hasId(to).or().loops().is(4)).hasId(to)
  .order().by(sack()).limit(1).project('price', 'way').by(sack()).by(path().by(id).by('price'))`, { to: "Nairobi" });
const stops = cheapest.way.objects.filter((_, i) => i % 2 === 0);
lab.say(`the cheapest way to Nairobi by at most four flights: ${stops.join(" → ")}, ${cheapest.price} (${charge.toFixed(2)} RU)`);

// ---- the drawing, from the graph ----

const places = await run("g.V().hasLabel('airport').project('id', 'lat', 'lon', 'routes').by(id).by('lat').by('lon').by(outE('route').count())");
const lines = await run("g.E().hasLabel('route').project('from', 'to').by(outV().id()).by(inV().id())");
const svg = draw(places, lines, stops);
if (lab.svg) writeFileSync(lab.svg, svg);

Object.entries({ seattle, near, hubs, price: cheapest.price, stops, svg }).forEach((figure) => lab.result(...figure));
await client.close();
await lab.close();
