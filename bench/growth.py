"""`--only growth`: what becomes of the rates as a container grows. Records of 1 KB with 20 indexed properties, key /id, bulk of 100, synced.

For each size, up to 3,000,000 records, with --long up to 30,000,000, with --items up to that: the load of each million that was added, creates beside it,
what all of it wrote, then reads and queries of everything with the blocks that they read of tables, memory, and starts. With --long or --items,
PostgreSQL 15 has the same records and indexes, up to 10,000,000. Then growth_work.py: a split at the largest size; and with fewer records creates in
place of a load, queries within one partition, deleting, a new index policy, a unique key and a large log.

No further size is begun once --minutes have passed, and PostgreSQL is left out after half of them. A part that fails has a line that says so; the others go on."""
import contextlib
import pathlib
import shutil
import signal
import threading
import time

from common import ask, create, load, rate_text, run_tool, tesela
from growth_work import RANGE_THROUGHPUT, figures, guarded, report_by_creates, report_large_log, report_less, report_split, report_unique, settle, written_by
from queries import QUESTIONS, Postgres, ask_postgres, default_cache, fill_records, wait_until_idle

SIZES, LONG_SIZES, POSTGRES_MAX = (1_000_000, 3_000_000), (1_000_000, 3_000_000, 10_000_000, 30_000_000), 10_000_000
QUICK_SIZES = (50_000, 100_000)
PART_OF_FIRST = {10_000_000: 0.6, 30_000_000: 0.45}  # goals: the rate of the last million against the first's
LESS_ITEMS, LOG_ITEMS, DEVICE_ITEMS = 60_000, 300_000, 300_000
CREATES_PART = 5  # of the first size that a short run makes by creates
SHORT_SECONDS = 2  # of a turn of a short run
QUICK_PART = 4
MINUTES, LONG_MINUTES = 20, 240
MILLION, POINT_READ = 1_000_000, "point read"
BESIDE_SECONDS, BESIDE_AFTER = 3, 0.5
QUERIES = {"email": "one row by e-mail", "latest": "the latest 10, ORDER BY date DESC", "oldest": "the oldest 10, ORDER BY date", "count": "COUNT of a country"}
DEVICE_QUERIES = {"device": "the latest 10 of a device", "device-oldest": "the oldest 10 of a device", "device-count": "COUNT of a status of a device"}
CONNECTIONS_OF = {"count": 8}  # each reads thousands of entries
BLOCKS_MOST = {POINT_READ: 2, QUERIES["email"]: 3}  # goals when the data is larger than the cache
CACHE_LEAST = 8_000_000
MEMORY_CONSTANT = 300  # megabytes besides the cache
DISK_BYTES = 2_000  # of a record with its index, its log and what a compaction needs, at most


def add_part(server, first, items):
    flags = ["--url", server.url, "--mode", "load", "--first", first, "--items", items, "--connections", 16, "--partition", "id", "--container", "id",
             "--bulk", 100]
    flags += [] if first else ["--setup", "--throughput", RANGE_THROUGHPUT]
    result = run_tool("tesela-load", *flags)
    if result["errors"] or result["requests"] * 100 != items:
        server.fail(f"the records could not be loaded: {result}")
    return {"rate": items / result["seconds"], "longestMs": result["microseconds"]["max"] / 1000}


@contextlib.contextmanager
def creates_beside(server):
    """One connection that makes one item after the other. Yields a list of the longest times, in ms, of a few seconds each."""
    longest, ended = [], threading.Event()

    def go_on():
        while not ended.is_set():
            result = create(server, BESIDE_SECONDS, connections=1, partition="id", container="id", **{"warm-up": 0})
            longest.append(result["microseconds"]["max"] / 1000)

    beside = threading.Thread(target=go_on)
    time.sleep(BESIDE_AFTER)  # the container is there
    beside.start()
    try:
        yield longest
    finally:
        ended.set()
        beside.join()


def add_last(server, first, items):
    """The same with a client that makes single items meanwhile."""
    made = {}
    adding = threading.Thread(target=lambda: made.update(add_part(server, first, items)))
    adding.start()
    with creates_beside(server) as longest:
        adding.join()
    if not made:
        server.fail("the records could not be loaded")
    return {**made, "longestCreateMs": max(longest)}


def add_records(server, first, items):
    """Loads what is missing, a million at a time, and waits for compaction. Rates and `seconds` do not include the wait; processor time does."""
    cpu = server.cpu_seconds()
    starts = range(first, first + items, MILLION)
    parts = [(add_last if at == starts[-1] else add_part)(server, at, min(MILLION, first + items - at)) for at in starts]
    seconds = sum(min(MILLION, first + items - at) / part["rate"] for at, part in zip(starts, parts))
    settled = settle(server)
    return {"parts": parts, "items": items, "seconds": seconds, "settled": settled, "cpuMicros": (server.cpu_seconds() - cpu) * 1e6 / items,
            "longestMs": max(part["longestMs"] for part in parts)}


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
        some = {"connections": CONNECTIONS_OF[name]} if name in CONNECTIONS_OF else {}
        yield answers(server, words, lambda name=name, some=some: load(server, "query", seconds, ask=name, **more, **some), twice)


def peers(folder, items, seconds):
    with Postgres(folder) as postgres:
        postgres.tool("load", "--indexes", items=items)
        found = {QUERIES[name]: ask_postgres(postgres, name, items, seconds)["rate"] for name in QUERIES if name in QUESTIONS}
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
    longest = last["longestCreateMs"]
    report.add(f"growth: longest synced create while the last million up to {size:,} was loaded", f"{longest:.0f} ms", "≤ 250 ms", longest <= 250,
               f"requests of 100, 16 at once: {added['longestMs']:.0f} ms; a group waited {store['longestIndexWaitMicros'] / 1000:.0f} ms at most for the index, {store['longestLogMicros'] / 1000:.0f} ms for the log")
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
        if size == self.done == self.added["items"]:
            part = 1 if self.o.long or self.o.items else CREATES_PART
            guarded(self.report, "creates", lambda: report_by_creates(self.report, self.folder, size // part, self.added))

    def read(self, size):
        turns = list(read_everything(self.server, size, self.o.seconds))
        memory = self.server.memory_mb()
        self.server, beyond, small_memory, cache = read_beyond_memory(self.folder, self.server, size, self.o.seconds)
        with_peer = (self.o.long or self.o.items) and not self.o.quick and self.passed() < self.minutes / 2 and size <= POSTGRES_MAX
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


def report_partitions(report, folder, items, o):
    """Queries within one of many partitions, with a cache of a thirtieth of the tables."""
    with tesela(folder, "growth-device", "--throttling", "off") as server:
        fill_records(server, "device", items)
        settle(server)
        cache = max(CACHE_LEAST, figures(server)["bytes"] // 30)
    with tesela(folder, "growth-device", "--throttling", "off", "--cache", str(cache)) as server:
        more = {"items": items, "partition": "device", "container": "device", "warm-up": 0}
        turns = [answers(server, words, lambda name=name: load(server, "query", o.seconds, ask=name, **more), twice=True) for name, words in DEVICE_QUERIES.items()]
    report.raw["growth-device"] = {"items": items, "turns": turns}
    for turn in turns:
        report.add(f"growth: {turn['what']}, 1,000 of them, {items:,} records, cache {cache / 1e6:,.0f} MB", rate_text(turn["rate"]), "", None,
                   f"{turn['blocks']:.2f} blocks of tables, {turn['blockBytes'] / 1000:.1f} KB; p99 {turn['microseconds']['p99'] / 1000:.1f} ms; "
                   f"{turn['serverCpuMicros']:.0f} µs of processor time")
    shutil.rmtree(server.data, ignore_errors=True)


def measure_growth(report, folder, o):
    o.seconds = o.seconds if o.long or o.items else min(o.seconds, SHORT_SECONDS)
    growth = Growth(report, folder, o)
    try:
        guarded(report, "the sizes after this", lambda: growth.run(sizes_of(o)))
    finally:
        growth.close()
    part = QUICK_PART if o.quick else 1
    guarded(report, "one partition", lambda: report_partitions(report, folder, DEVICE_ITEMS // part, o))
    guarded(report, "a unique key", lambda: report_unique(report, folder, LESS_ITEMS // part))
    report_less(report, folder, LESS_ITEMS // part, o)
    guarded(report, "a large log", lambda: report_large_log(report, folder, LOG_ITEMS // part))
