"""`--only growth`: what becomes of the rates as a container grows. Records of 1 KB with 20 indexed properties, key /id, bulk of 100, synced.

For each size, up to 3,000,000 records, with --long up to 30,000,000, with --items up to that: the load of each million that was added, what all of it
wrote, creates beside it, then reads and queries of everything with the blocks that they read of tables, memory, and starts. PostgreSQL 15 has the same
records and indexes at the first size, with --long or --items at all up to 10,000,000. Then growth_work.py: a split at the largest size; deleting, a new
index policy and a large log with fewer records.

No further size is begun once --minutes have passed, and PostgreSQL is left out after half of them. A part that fails has a line that says so; the others go on."""
import pathlib
import shutil
import signal
import time

from common import ask, load, rate_text, run_tool, tesela
from growth_work import RANGE_THROUGHPUT, figures, guarded, report_creates, report_large_log, report_less, report_split, written_by
from queries import Postgres, ask_postgres, default_cache, wait_until_idle

SIZES, LONG_SIZES, POSTGRES_MAX = (1_000_000, 3_000_000), (1_000_000, 3_000_000, 10_000_000, 30_000_000), 10_000_000
QUICK_SIZES = (50_000, 100_000)
PART_OF_FIRST = {10_000_000: 0.6, 30_000_000: 0.45}  # goals: the rate of the last million against the first's
LESS_ITEMS, LOG_ITEMS = 200_000, 300_000
QUICK_PART = 4
MINUTES, LONG_MINUTES = 20, 240
MILLION, POINT_READ = 1_000_000, "point read"
QUERIES = {"email": "one row by e-mail", "latest": "the latest 10, ORDER BY date DESC"}
BLOCKS_MOST = {POINT_READ: 2, QUERIES["email"]: 3}  # goals when the data is larger than the cache
CACHE_LEAST = 8_000_000
MEMORY_CONSTANT = 300  # megabytes besides the cache
DISK_BYTES = 3_000  # of a record with its index, its log and what a compaction needs, at most


def add_part(server, first, items):
    flags = ["--url", server.url, "--mode", "load", "--first", first, "--items", items, "--connections", 16, "--partition", "id", "--container", "id",
             "--bulk", 100]
    flags += [] if first else ["--setup", "--throughput", RANGE_THROUGHPUT]
    result = run_tool("tesela-load", *flags)
    if result["errors"] or result["requests"] * 100 != items:
        server.fail(f"the records could not be loaded: {result}")
    return {"rate": items / result["seconds"], "longestMs": result["microseconds"]["max"] / 1000}


def add_records(server, first, items):
    """Loads what is missing, a million at a time, and waits for compaction. Rates do not include the wait; processor time does."""
    cpu = server.cpu_seconds()
    parts = [add_part(server, at, min(MILLION, first + items - at)) for at in range(first, first + items, MILLION)]
    wait_until_idle(server)
    return {"parts": parts, "cpuMicros": (server.cpu_seconds() - cpu) * 1e6 / items, "longestMs": max(part["longestMs"] for part in parts)}


def answers(server, what, run, twice):
    """A turn, and the blocks and bytes that each of its answers read of tables because they were not in the cache. `twice`: of the second turn,
    when the cache has what it keeps."""
    if twice:
        run()
        wait_until_idle(server, quiet=1)  # blocks that compactions read are counted too
    before = figures(server)
    result = run()
    after, sent = figures(server), max(1, result["requests"])
    result["blocks"] = (after["tableReads"] - before["tableReads"]) / sent
    result["blockBytes"] = (after["tableReadBytes"] - before["tableReadBytes"]) / sent
    result["what"] = what
    return result


def read_everything(server, items, seconds, twice=False):
    """Without a warm-up, so that every answer that reads blocks is counted."""
    more = {"items": items, "partition": "id", "container": "id", "warm-up": 0}
    yield answers(server, POINT_READ, lambda: load(server, "read", seconds, **more), twice)
    for name, words in QUERIES.items():
        yield answers(server, words, lambda name=name: load(server, "query", seconds, ask=name, **more), twice)


def peers(folder, items, seconds):
    with Postgres(folder) as postgres:
        postgres.tool("load", "--indexes", items=items)
        found = {QUERIES[name]: ask_postgres(postgres, name, items, seconds)["rate"] for name in QUERIES}
    shutil.rmtree(folder / "postgres")
    return found


def start_again(folder, server, how):
    """Ends the server by this signal, and starts it: seconds until it is ready, and megabytes of log that it read."""
    server.process.send_signal(how)
    server.process.wait(120)
    began = time.monotonic()
    again = begin(folder)
    took = time.monotonic() - began
    store = figures(again)
    return again, took, store["replayedBytes"] / 1e6


def begin(folder, cache=None):
    return tesela(folder, "growth", "--throttling", "off", "--partition-max-throughput", str(RANGE_THROUGHPUT), "--cache", str(cache or default_cache()))


def read_beyond_memory(folder, server, items, seconds):
    """The same with a cache of a thirtieth of the tables. Returns a new server, the turns, memory and the cache's size."""
    cache = max(CACHE_LEAST, figures(server)["bytes"] // 30)
    server.__exit__()
    small = begin(folder, cache)
    turns = list(read_everything(small, items, seconds, twice=True))
    memory = small.memory_mb()
    small.__exit__()
    return begin(folder), turns, memory, cache


def add_written(sums, store):
    """Counters begin anew with each start of the server: adds those of this one."""
    for family in store["families"]:
        sums[family["name"]] = sums.get(family["name"], 0) + written_by(family)


def report_load(report, size, added, first, store, written):
    last = added["parts"][-1]
    part, goal = last["rate"] / first, PART_OF_FIRST.get(size)
    report.add(f"growth: load of the last million up to {size:,}, against the first", f"{part:.2f}", f"≥ {goal}" if goal else "", part >= goal if goal else None,
               f"{rate_text(last['rate'])}; {added['cpuMicros']:.0f} µs of processor time an item, compaction included")
    report.add(f"growth: longest request, load up to {size:,}", f"{added['longestMs']:.0f} ms", "≤ 250 ms", added["longestMs"] <= 250,
               f"requests of 100, 16 at once; a group waited {store['longestIndexWaitMicros'] / 1000:.0f} ms at most for the index, {store['longestLogMicros'] / 1000:.0f} ms for the log")
    everything = sum(written.values())
    times = everything / store["bytes"]
    stalls = sum(family["slowed"] + family["stopped"] for family in store["families"])
    by_family = ", ".join(f"{name} {count / 1e6:,.0f}" for name, count in written.items() if count > 1e6)
    report.add(f"growth: bytes written for those of {size:,}", f"{times:.2f}", "≤ 6", times <= 6,
               f"{everything / 1e6:,.0f} MB ({by_family}) for {store['bytes'] / 1e6:,.0f} MB of tables; writes held up {stalls} times")


def report_reads(report, size, turns, of_postgres):
    for turn in turns:
        theirs = of_postgres.get(turn["what"])
        note = f"p99 {turn['microseconds']['p99'] / 1000:.1f} ms; {turn['serverCpuMicros']:.0f} µs of processor time"
        note += f"; PostgreSQL {rate_text(theirs)}" if theirs else ""
        report.add(f"growth: {turn['what']}, {size:,} records", rate_text(turn["rate"]), "≥ PostgreSQL" if theirs else "",
                   turn["rate"] >= theirs if theirs else None, note)


def report_beyond_memory(report, size, turns, memory, cache):
    for turn in turns:
        most = BLOCKS_MOST.get(turn["what"])
        report.add(f"growth: blocks read of tables by each {turn['what']}, {size:,} records, cache {cache / 1e6:,.0f} MB", f"{turn['blocks']:.2f}",
                   f"≤ {most}" if most else "", turn["blocks"] <= most if most else None, f"{turn['blockBytes'] / 1000:.1f} KB")
    constant = memory - cache / 2**20
    report.add(f"growth: memory besides that cache, {size:,} records", f"{constant:,.0f} MB", f"≤ {MEMORY_CONSTANT} MB", constant <= MEMORY_CONSTANT)


def sizes_of(o):
    if o.items:
        return (*(size for size in LONG_SIZES if size < o.items), o.items)
    return LONG_SIZES if o.long else QUICK_SIZES if o.quick else SIZES


class Growth:
    """One container, from size to size."""

    def __init__(self, report, folder, o):
        self.report, self.folder, self.o = report, folder, o
        self.server, self.done, self.first, self.written = begin(folder), 0, None, {}
        self.began, self.minutes = time.monotonic(), o.minutes or (LONG_MINUTES if o.long or o.items else MINUTES)

    def passed(self):
        return (time.monotonic() - self.began) / 60

    def load_to(self, size):
        self.added = add_records(self.server, self.done, size - self.done)
        self.first, self.done, self.store = self.first or self.added["parts"][0]["rate"], size, figures(self.server)
        add_written(self.written, self.store)
        report_load(self.report, size, self.added, self.first, self.store, self.written)
        report_creates(self.report, self.server, size, self.added["parts"][-1]["rate"], self.added["cpuMicros"], self.o)

    def read(self, size):
        turns = list(read_everything(self.server, size, self.o.seconds))
        memory = self.server.memory_mb()
        self.server, beyond, small_memory, cache = read_beyond_memory(self.folder, self.server, size, self.o.seconds)
        with_peer = not self.o.quick and self.passed() < self.minutes / 2 and (self.report.raw.get("growth-first", size) == size or ((self.o.long or self.o.items) and size <= POSTGRES_MAX))
        self.report.raw.setdefault("growth-first", size)
        self.report.raw[f"growth-{size}"] = {"load": self.added, "store": self.store, "writtenBytes": dict(self.written), "turns": turns, "beyondMemory": beyond, "memoryMB": memory}
        theirs = guarded(self.report, f"PostgreSQL with {size:,} records", lambda: peers(self.folder, size, self.o.seconds)) if with_peer else None
        report_reads(self.report, size, turns, theirs or {})
        report_beyond_memory(self.report, size, beyond, small_memory, cache)
        self.report.add(f"growth: memory, {size:,} records", f"{memory:,.0f} MB", "", None, f"cache {default_cache() / 1e6:,.0f} MB")

    def start(self, size):
        self.server, clean, clean_mb = start_again(self.folder, self.server, signal.SIGTERM)
        load(self.server, "upsert", 2, items=size, partition="id", container="id")
        self.server, killed, killed_mb = start_again(self.folder, self.server, signal.SIGKILL)
        self.report.raw[f"growth-start-{size}"] = {"clean": clean, "killed": killed}
        self.report.add(f"growth: ready after a clean stop, {size:,} records", f"{clean:.2f} s", "≤ 1 s", clean <= 1, f"{clean_mb:.0f} MB of log")
        self.report.add(f"growth: ready after kill -9, {size:,} records", f"{killed:.2f} s", "≤ 3 s", killed <= 3, f"{killed_mb:.0f} MB of log")

    def run(self, sizes):
        free = shutil.disk_usage(self.folder).free
        for size in sizes:
            if size * DISK_BYTES > free or self.passed() > self.minutes:
                why = f"the disk has {free / 1e9:.0f} GB" if size * DISK_BYTES > free else f"{self.passed():.0f} minutes have passed"
                self.report.add(f"growth: {size:,} records", "-", "", None, why)
                break
            self.load_to(size)
            self.read(size)
            self.start(size)
        guarded(self.report, "a split", lambda: report_split(self.report, self.server, self.done, self.o))

    def close(self):
        self.server.__exit__()
        shutil.rmtree(self.server.data, ignore_errors=True)


def measure_growth(report, folder, o):
    growth = Growth(report, folder, o)
    try:
        guarded(report, "the sizes after this", lambda: growth.run(sizes_of(o)))
    finally:
        growth.close()
    part = QUICK_PART if o.quick else 1
    report_less(report, folder, LESS_ITEMS // part, o)
    guarded(report, "a large log", lambda: report_large_log(report, folder, LOG_ITEMS // part))
