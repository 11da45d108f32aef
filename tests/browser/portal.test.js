// The portal's views, with data that the official SDK has made. One server and one browser serve all of them.

import { after, before, describe } from "node:test";
import { apis } from "./apis.js";
import { data } from "./data.js";
import { Browser, clientOf, readOnlyKey, Server } from "./harness.js";
import { looks } from "./looks.js";
import { partitions } from "./partitions.js";
import { throughput } from "./throughput.js";
import { charge, connect, keyboard, keys, requests } from "./views.js";

describe("portal", () => {
  const portal = { browser: new Browser() };

  before(async () => {
    portal.server = await Server.start({
      flags: ["--throttling", "on", "--partition-max-throughput", "400", "--partition-max-storage", "4MB", "--logical-partition-max-storage", "100KB", "--read-only-key", readOnlyKey],
    });
    portal.client = clientOf(portal.server);
    ({ database: portal.shop } = await portal.client.databases.create({ id: "shop" }));
    portal.good = await portal.make("good", "/customer", (i) => ({ customer: `customer-${i}` }));
    portal.bad = await portal.make("bad", "/country", (i) => ({ country: i % 20 ? "Spain" : `country-${i % 3}` }));
  });
  after(() => portal.server?.stop());

  // A container of 200 small items, in four partitions.
  portal.make = async (id, key, fields, { n = 200, throughput = 1600, indexingPolicy } = {}) => {
    const settings = { id, partitionKey: { paths: [key], version: 2 }, ...(indexingPolicy ? { indexingPolicy } : {}) };
    const { container } = await portal.shop.containers.create(settings, { offerThroughput: throughput });
    const items = Array.from({ length: n }, (_, i) => ({ id: `item-${i}`, city: ["Lima", "Cusco", "Quito"][i % 3], text: "x".repeat(300), ...fields(i) }));
    const left = items.map((resourceBody) => ({ operationType: "Upsert", partitionKey: resourceBody[key.slice(1)], resourceBody }));
    while (left.length) {
      for (const result of await container.items.executeBulkOperations(left.splice(0, 50))) if (result.error) throw result.error;
    }
    return container;
  };

  describe("keys", () => keys(portal));
  describe("partitions", () => partitions(portal));
  describe("throughput", () => throughput(portal));
  describe("data", () => data(portal));
  describe("other APIs", () => apis(portal));
  describe("charge", () => charge(portal));
  describe("requests", () => requests(portal));
  describe("connect", () => connect(portal));
  describe("keyboard", () => keyboard(portal));
  describe("looks", () => looks(portal));
});
