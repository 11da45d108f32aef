// synthetic.js — events of 300 vehicles on one day. By the day alone one physical partition takes all writes; three keys made up from
// several values spread them, each at another price when reading back.
import { openLab, percent, whole } from "./lab.js";

const lab = await openLab("synthetic");
const suffixes = Array.from({ length: 400 }, (_, i) => i + 1);

// FNV-1a: any hash does, as long as readers and writers use the same one.
function hash(text) {
  let h = 0x811c9dc5;
  for (const byte of Buffer.from(text)) h = Math.imul(h ^ byte, 0x01000193) >>> 0;
  return h;
}

// write: the key of a new event. event, vehicle, day: the keys to look under for one event, a vehicle's day, a whole day.
const strategies = {
  "date": {
    write: ({ date }) => date,
    event: ({ date }) => [date],
    vehicle: ({ date }) => [date],
    day: (date) => [date],
  },
  "date-vin": {
    write: ({ date, vin }) => `${date}-${vin}`,
    event: ({ date, vin }) => [`${date}-${vin}`],
    vehicle: ({ date, vin }) => [`${date}-${vin}`],
    day: (date, vins) => vins.map((vin) => `${date}-${vin}`),
  },
  "date.random": {
    write: ({ date }) => `${date}.${1 + Math.floor(Math.random() * 400)}`,
    event: ({ date }) => suffixes.map((suffix) => `${date}.${suffix}`),
    vehicle: ({ date }) => suffixes.map((suffix) => `${date}.${suffix}`),
    day: (date) => suffixes.map((suffix) => `${date}.${suffix}`),
  },
  "date.hash(vin)": {
    write: ({ date, vin }) => `${date}.${1 + (hash(vin) % 400)}`,
    event: ({ date, vin }) => [`${date}.${1 + (hash(vin) % 400)}`],
    vehicle: ({ date, vin }) => [`${date}.${1 + (hash(vin) % 400)}`],
    day: (date) => suffixes.map((suffix) => `${date}.${suffix}`),
  },
};

const vinOf = (n) => `WVW${String(n).padStart(14, "0")}`;
const event = (n, date, vehicles) => ({ id: `event-${date}-${n}`, date, vin: vinOf(n % vehicles), speed: 50, place: "A-7" });

// ---- reading back: from another day, with 40 events of 10 vehicles ----

const quietDay = "2018-08-10", quietVins = Array.from({ length: 10 }, (_, n) => vinOf(n));

async function fill(container, write) {
  const events = Array.from({ length: 40 }, (_, n) => event(n, quietDay, quietVins.length));
  await Promise.all(events.map((e) => lab.patiently(container).items.create({ ...e, partitionKey: write(e) })));
  return events;
}

class Cost {
  requests = 0;
  ru = 0;
  add({ requestCharge }) {
    this.requests++;
    this.ru += requestCharge;
  }
  toString() {
    return `${whole(this.ru)} RU in ${whole(this.requests)}`;
  }
}

// One event whose id is known: point reads under one key after the other until it is there.
async function readEvent(container, keys, id, cost) {
  for (const key of keys) {
    const answer = await container.item(id, key).read();
    cost.add(answer);
    if (answer.resource) return;
  }
  throw new Error(`${id} was not found`);
}

// All events under the keys, 20 keys at a time; returns those that fit.
async function readAll(container, keys, fits, cost) {
  const found = [];
  const rest = [...keys];
  const reader = async () => {
    for (let key; (key = rest.pop()) !== undefined; ) {
      const answer = await container.items.readAll({ partitionKey: key }).fetchAll();
      cost.add(answer);
      found.push(...answer.resources.filter(fits));
    }
  };
  await Promise.all(Array.from({ length: 20 }, reader));
  return found.length;
}

async function readBack(container, strategy) {
  const events = await fill(container, strategy.write);
  const patient = lab.patiently(container);
  const one = new Cost(), vehicle = new Cost(), day = new Cost();
  const sample = [3, 17, 32].map((n) => events[n]);
  for (const e of sample) await readEvent(patient, strategy.event(e), e.id, one);
  one.requests /= sample.length;
  one.ru /= sample.length;
  const ofVehicle = await readAll(patient, strategy.vehicle(events[0]), (e) => e.vin === events[0].vin && e.date === quietDay, vehicle);
  const ofDay = await readAll(patient, strategy.day(quietDay, quietVins), (e) => e.date === quietDay, day);
  if (ofVehicle !== 4 || ofDay !== 40) throw new Error(`${ofVehicle} of 4 and ${ofDay} of 40 events were read back`);
  return { one, vehicle, day };
}

// ---- each strategy ----

const writes = [], reads = [];
for (const [name, strategy] of Object.entries(strategies)) {
  const container = await lab.container("/partitionKey");
  const seen = await lab.load(container, (n) => {
    const e = event(n, "2018-08-09", 300);
    return { ...e, partitionKey: strategy.write(e) };
  });
  if (name === "date" || name === "date.random") await lab.show(container, seen);
  const sum = seen.sum();
  const { one, vehicle, day } = await readBack(container, strategy);
  const keys = new Set(seen.log.filter(({ status }) => status === 201).map(({ item }) => item.partitionKey)).size;
  lab.result(name, { ...sum, keys, one, vehicle, day });
  writes.push([name, keys, seen.asked, sum.ru, sum.throttled, percent(sum.part)]);
  reads.push([name, `${one}`, `${vehicle}`, `${day}`]);
}
lab.table(["key", "keys", "RU/s asked", "RU/s given", "429s", "of all writes"], writes);
lab.say("reading back, RU in requests:");
lab.table(["key", "one event, its id known", "a vehicle's day, 4 events", "a day, 40 events"], reads);
await lab.close();
