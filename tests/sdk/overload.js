// overload.js — for tests of throughput: clients that ask for more than was provisioned, and what they may get.

import { assert, key, sleep } from "./harness.js";

export const v2 = { paths: ["/pk"], kind: "Hash", version: 2 };
export const [cool, hot] = ["aa", "redmond"]; // 0503… and 22E3…: in the first and in the last of two ranges
export const atomic = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
export const rateIsLarge = "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429";
export const creates = (pk, ids, more = {}) => ids.map((id) => ({ operationType: "Create", resourceBody: { id: `${id}`, pk, ...more } }));
export const numbers = (n, from = 0) => Array.from({ length: n }, (_, i) => i + from);

// Creates `n` small items under one key: a page of them costs n request units, without disk access. Returns their charge.
export async function fill(rest, path, pk, n) {
  let units = 0;
  for (let i = 0; i < n; i += 100) {
    const answer = await obey(() => rest.post(`${path}/docs`, creates(pk, numbers(Math.min(100, n - i), i)), { headers: { ...atomic, ...key(pk) } }));
    assert.equal(answer.status, 200, answer.text);
    units += answer.charge;
  }
  return units;
}

// Retries a rejected request after its retry time.
export async function obey(send) {
  for (;;) {
    const answer = await send();
    if (answer.status !== 429) return answer;
    await sleep(Number(answer.headers["x-ms-retry-after-ms"]));
  }
}

export const read = (rest, path, pk, units, headers = {}) => () => rest.get(`${path}/docs`, { headers: { ...key(pk), "x-ms-max-item-count": String(units), ...headers } });

// Runs several clients that retry without waiting, for this long after the first rejection. Returns a log: for each request the times when
// it was sent and answered (seconds), its charge, and whether it was rejected.
const clients = 5;
export async function overload(send, seconds) {
  const log = [];
  const clock = () => performance.now() / 1000;
  let until = clock() + seconds + 15, refusedYet = false;
  const client = async () => {
    while (clock() < until) {
      const sent = clock();
      const answer = await send();
      const got = clock();
      const refused = answer.status === 429;
      assert.ok(refused || answer.status < 300, answer.text);
      log.push({ sent, got, refused, charge: answer.charge });
      if (!refused) continue;
      if (!refusedYet) until = got + seconds;
      refusedYet = true;
      await sleep(20);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return log;
}

// Checks that the charges admitted between the first and the last rejection match `share` request units per second. At a rejection there is
// no credit, and no more debt than the charges of the requests in flight; in between, credit is kept for a second. So the check is exact up
// to those requests, however slow the clients are; only credit unused for longer than a second is lost. `reserve`: the credit, in seconds,
// at which a request may already be rejected. Returns the rate.
export function holds(log, share, what, { reserve = 0, seconds = 0, most = share } = {}) {
  const refusals = log.filter(({ refused }) => refused).sort((a, b) => a.got - b.got);
  const admitted = log.filter(({ refused }) => !refused);
  assert.ok(refusals.length > 5, `${what}: ${refusals.length} refusals`);
  const first = refusals[0], last = refusals.at(-1);
  assert.ok(last.sent - first.got > seconds / 4, `${what}: overloaded for ${last.sent - first.got} s`);
  const sum = (list) => list.reduce((total, { charge }) => total + charge, 0);
  const slack = clients * Math.max(...admitted.map(({ charge }) => charge)) * (log.groups ?? 1) + reserve * share;
  const surely = sum(admitted.filter(({ sent, got }) => sent >= first.got && got <= last.sent));
  const perhaps = sum(admitted.filter(({ sent, got }) => got >= first.sent && sent <= last.got));
  const lost = refusals.slice(1).reduce((total, { got }, i) => total + Math.max(0, got - refusals[i].sent - 1), 0);
  const longest = last.got - first.sent, shortest = last.sent - first.got;
  assert.ok(surely <= most * longest + slack, `${what}: ${surely} RU in ${longest} s, ${most} a second`);
  assert.ok(perhaps >= share * (shortest - lost) - slack, `${what}: ${perhaps} RU in ${shortest} s, ${lost} s lost, ${share} a second`);
  return perhaps / longest;
}

export const together = (...logs) => Object.assign(logs.flat(), { groups: logs.length });

export const within = (value, least, most, what) => assert.ok(value >= least && value <= most, `${what}: ${value} is from ${least} to ${most}`);
