// histories.js — whether what clients saw of a register could have happened one after another, each operation between its call and its answer
// (linearizability). A register has one value; operations compare and set it, or read it.
//
//   { kind: "cas", from, to, applied, seen }     applied: true, false, or undefined if no answer came: it may have happened, even later
//   { kind: "read", seen }
//
// An event is { op, begins: true } or { op, begins: false }, in the order in which they happened. The checker holds every state that the register may be
// in: its value, and which of the operations that are under way have taken effect. An answer rules out those in which the operation has not.

export function isLinearizable(events, initial) {
  let states = [{ value: initial, done: new Set() }];
  const pending = new Set();
  for (const { op, begins } of events) {
    if (begins) {
      pending.add(op);
      continue;
    }
    states = distinct(reachable(states, pending).filter((state) => state.done.has(op)).map((state) => without(state, op)));
    pending.delete(op);
    if (!states.length) return { ok: false, op };
  }
  return { ok: true };
}

// The value after the operation, or undefined if it cannot happen now with the answer that it had.
function after(op, value) {
  if (op.kind === "read") return op.seen === value ? value : undefined;
  if (op.applied === false) return value !== op.from && op.seen === value ? value : undefined;
  return value === op.from ? op.to : undefined;
}

function reachable(states, pending) {
  const found = distinct(states);
  const known = new Set(found.map(nameOf));
  for (const state of found) {
    for (const op of pending) {
      if (state.done.has(op)) continue;
      const value = after(op, state.value);
      if (value === undefined) continue;
      const next = { value, done: new Set([...state.done, op]) };
      if (!known.has(nameOf(next))) known.add(nameOf(next)), found.push(next);
    }
  }
  return found;
}

const without = (state, op) => ({ value: state.value, done: new Set([...state.done].filter((other) => other !== op)) });
const nameOf = (state) => `${state.value}:${[...state.done].map((op) => op.id).sort((a, b) => a - b)}`;
const distinct = (states) => [...new Map(states.map((state) => [nameOf(state), state])).values()];
