// What the kernel knows about a server's process: processor time and memory. Tests that bound a time subtract the processor time of other
// programs (stopwatch), so that they do not fail because those keep the machine busy.

import { readFileSync, readdirSync } from "node:fs";

const tickMs = 10; // the unit of times in /proc

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process or thread has ended
  }
}

// The fields of /proc/PID/stat from utime on: user, system, and both of children that have ended.
const timesOf = (stat) => stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15).map((ticks) => tickMs * Number(ticks));
const sum = (list) => list.reduce((all, each) => all + each, 0);

// The processor time of a process, or only of its main thread, which runs the first event loop.
export function processorMs(pid, { mainThread = false } = {}) {
  return sum(timesOf(read(mainThread ? `/proc/${pid}/task/${pid}/stat` : `/proc/${pid}/stat`)).slice(0, 2));
}

export function residentBytes(pid) {
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))[1]);
}

// Processes that a server has started: those that run scripts.
const childrenOf = (pid) => readdirSync(`/proc/${pid}/task`).flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean));

// The processor time of everything that is neither the server nor this test, on all processors together.
function othersMs(pid) {
  const [, user, nice, system, , , irq, softirq, steal] = read("/proc/stat").split("\n")[0].split(/ +/).map(Number);
  const own = sum([process.pid, pid, ...childrenOf(pid)].flatMap((each) => timesOf(read(`/proc/${each}/stat`))));
  return tickMs * (user + nice + system + irq + softirq + steal) - own;
}

let latest = { pid: 0, at: 0, ms: 0 };

// The same, but perhaps some milliseconds old: reading it takes more than one.
function recentOthersMs(pid) {
  if (latest.pid !== pid || performance.now() - latest.at > 50) latest = { pid, at: performance.now(), ms: othersMs(pid) };
  return latest.ms;
}

// Returns a function that gives the milliseconds since then, minus the processor time of other programs. No thread waits for others longer
// than they run, so what is left is the server's and the test's own. On an idle machine, and below 20 ms, it is the time of the clock.
export function stopwatch(pid) {
  const begun = performance.now(), others = recentOthersMs(pid);
  return () => {
    const ms = performance.now() - begun;
    return ms < 20 ? ms : Math.max(0, ms - (othersMs(pid) - others));
  };
}
