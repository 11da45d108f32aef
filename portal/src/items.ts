// Items and their keys: what the data views know of the SQL API's resources.
import { keyHeader, sql, type Answer, type Item, type Json } from "./api";

export interface Collection {
  id: string;
  _rid: string;
  _self: string;
  _etag: string;
  partitionKey?: { paths: string[]; kind: string; version?: number; systemKey?: boolean };
  indexingPolicy: Item;
  [name: string]: unknown;
}

export const systemProperties = ["_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"];

// An item as its owner wrote it.
export const withoutSystem = (item: Item): Item => Object.fromEntries(Object.entries(item).filter(([name]) => !systemProperties.includes(name)));

// The steps of a partition key's path: /a/b, or with quotes /"a b"/c.
export const stepsOf = (path: string): string[] => [...path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|([^/]+))/g)].map((m) => m[1] ?? m[2] ?? "");

function valueAt(item: Json, path: string): Json | undefined {
  let at: Json | undefined = item;
  for (const step of stepsOf(path)) at = at !== null && typeof at === "object" && !Array.isArray(at) ? at[step] : undefined;
  return at;
}

// The partition key of an item, as the header field has it; undefined: the container has none. A value that is absent is {}.
export function keyOf(item: Item, collection: Collection): Json[] | undefined {
  const paths = collection.partitionKey?.paths;
  return paths?.map((path) => {
    const value = valueAt(item, path);
    return value === undefined || (value !== null && typeof value === "object") ? {} : value;
  });
}

// The name of an item in requests: entities of the Table API have a RowKey and no id.
export const idOf = (item: Item): string => String(item.id ?? item.RowKey ?? item._rid);

// The properties that a partition key's paths name, for a new item.
export const keyProperties = (paths: string[]): string[] => paths.map(stepsOf).filter((steps) => steps.length === 1 && steps[0] !== "id").map((steps) => steps[0]!);

// What a person types as a key: JSON, or else text. Several values of a hierarchical key are a JSON array.
export function keyFromText(text: string): Json[] | undefined {
  if (!text.trim()) return undefined;
  try {
    const value = JSON.parse(text) as Json;
    return Array.isArray(value) ? value : [value];
  } catch {
    return [text];
  }
}

export interface Place {
  database: string;
  container: string;
}

const docs = (p: Place) => ["dbs", p.database, "colls", p.container, "docs"];

export const readCollection = (p: Place) => sql<Collection>("GET", ["dbs", p.database, "colls", p.container]);

export const readItem = (p: Place, c: Collection, item: Item) => sql<Item>("GET", [...docs(p), idOf(item)], { headers: keyHeader(keyOf(item, c)) });

export const createItem = (p: Place, c: Collection, item: Item, upsert = false): Promise<Answer<Item>> =>
  sql("POST", docs(p), { headers: { ...keyHeader(keyOf(item, c)), ...(upsert ? { "x-ms-documentdb-is-upsert": "True" } : {}) }, body: item });

// With the etag of what was read, so that nobody's change is lost.
export const replaceItem = (p: Place, c: Collection, before: Item, item: Item) =>
  sql<Item>("PUT", [...docs(p), idOf(before)], { headers: { ...keyHeader(keyOf(before, c)), "if-match": String(before._etag) }, body: item });

export const deleteItem = (p: Place, c: Collection, item: Item) =>
  sql("DELETE", [...docs(p), idOf(item)], { headers: { ...keyHeader(keyOf(item, c)), "if-match": String(item._etag) } });

// ---- throughput ----

export interface Offer {
  id: string;
  _rid: string;
  content: { offerThroughput: number; offerAutopilotSettings?: { maxThroughput: number } };
  [name: string]: unknown;
}

interface Offers {
  Offers: Offer[];
}

async function offerOf(rid: string): Promise<Offer | undefined> {
  const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
  const body = { query: "SELECT * FROM c WHERE c.offerResourceId = @rid", parameters: [{ name: "@rid", value: rid }] };
  return (await sql<Offers>("POST", ["offers"], { headers, body })).body.Offers[0];
}

export interface Provisioned {
  offer: Offer;
  shared: boolean; // it is the database's
  least: number;
}

// The container's own throughput, or its database's; undefined if it has none.
export async function readThroughput(p: Place): Promise<Provisioned | undefined> {
  const own = await offerOf((await readCollection(p)).body._rid);
  const found = own ?? (await offerOf((await sql<{ _rid: string }>("GET", ["dbs", p.database])).body._rid));
  if (!found) return undefined;
  const answer = await sql<Offer>("GET", ["offers", found.id]);
  return { offer: answer.body, shared: !own, least: Number(answer.headers.get("x-ms-cosmos-min-throughput") ?? 400) };
}

const valueOf = (offer: Offer) => offer.content.offerAutopilotSettings?.maxThroughput ?? offer.content.offerThroughput;

// Until the partitions are as the last change wants them, the server accepts no other.
async function settled(offer: Offer): Promise<void> {
  for (;;) {
    const answer = await sql<Offer>("GET", ["offers", offer.id]);
    if (answer.headers.get("x-ms-offer-replace-pending") !== "true") return;
    await new Promise((over) => setTimeout(over, 300));
  }
}

// Changing the mode is a request of its own, after which the value is set.
export async function changeThroughput(offer: Offer, autoscale: boolean, value: number): Promise<void> {
  const was = offer.content.offerAutopilotSettings !== undefined;
  let current = offer;
  if (was !== autoscale) {
    const field = autoscale ? "x-ms-cosmos-migrate-offer-to-autopilot" : "x-ms-cosmos-migrate-offer-to-manual-throughput";
    current = (await sql<Offer>("PUT", ["offers", offer.id], { headers: { [field]: "true" }, body: offer })).body;
    if (valueOf(current) === value) return;
    await settled(offer);
  }
  const content = autoscale ? { offerAutopilotSettings: { maxThroughput: value } } : { offerThroughput: value };
  await sql<Offer>("PUT", ["offers", offer.id], { body: { ...current, content } });
}

export const throughputHeaders = (mode: string, value: number): Record<string, string> =>
  mode === "manual" ? { "x-ms-offer-throughput": String(value) } : mode === "autoscale" ? { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: value }) } : {};
