// latest-state.js — readings of devices, and beside them one item for each device that holds its latest state and how many readings there were.
//
// A reading and the state are written by a stored procedure, in one transaction over the device's partition key: the state never lags behind
// and no reading is counted twice or lost, whoever sends what at the same time, and in whatever order readings arrive.

import { openLab } from "./lab.js";

// Runs in the server. What it throws undoes what it did.
function addReading(reading) {
  const collection = getContext().getCollection();
  const link = `${collection.getAltLink()}/docs/latest`;

  store(reading, () => collection.readDocument(link, (error, state) => {
    if (error && error.number !== 404) throw error;
    keep(state ?? { id: "latest", deviceId: reading.deviceId, readings: 0, time: 0 });
  }) || stop());

  function store(item, then) {
    collection.createDocument(collection.getSelfLink(), item, (error) => {
      if (error) throw error;
      then();
    }) || stop();
  }

  function keep(state) {
    state.readings++;
    if (reading.time > state.time) Object.assign(state, { time: reading.time, temperature: reading.temperature });
    collection.upsertDocument(collection.getSelfLink(), state, (error, kept) => {
      if (error) throw error;
      getContext().getResponse().setBody(kept);
    }) || stop();
  }

  function stop() {
    throw new Error("Not accepted: try again later.");
  }
}

const lab = await openLab("latest-state");
const container = await lab.container("/deviceId");
const patient = lab.patiently(container);
await patient.scripts.storedProcedures.create({ id: "addReading", body: addReading.toString() });

const devices = ["XMS-001", "XMS-002", "XMS-003"];
const readings = devices.flatMap((deviceId) => Array.from({ length: 20 }, (_, n) => ({ id: `${n}`, deviceId, time: 1000 + ((n * 7) % 20), temperature: 20 + n })));
const add = patient.scripts.storedProcedure("addReading");
await Promise.all(readings.map((reading) => add.execute(reading.deviceId, [reading])));

// One more that is there already: the transaction is refused as a whole, and the state stays.
const again = await add.execute(devices[0], [readings[0]]).catch((error) => error);

const rows = [];
for (const deviceId of devices) {
  const { resource } = await patient.item("latest", deviceId).read();
  const { resources } = await patient.items.query("SELECT VALUE COUNT(1) FROM c", { partitionKey: deviceId }).fetchAll();
  rows.push([deviceId, resource.readings, resources[0], resource.time, resource.temperature]);
}
lab.say(`${readings.length} readings at once, in no order; a reading that was there already: ${again.code}\n`);
lab.table(["device", "readings counted", "items", "latest", "temperature"], rows);
lab.result("rows", rows);
lab.result("again", again.code);
await lab.close();
