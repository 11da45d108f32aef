"""`--only growth`: what becomes of the rates as a container grows. Records of 1 KB with 20 indexed properties, key /id, bulk of 100, synced.

For each size, up to 3,000,000 records, with --long up to 30,000,000: the load of each million that was added, what all of it wrote, then
reads and queries of everything with the blocks that they read of tables, memory, and starts. PostgreSQL 15 has the same records and indexes at the
first size, with --long at all up to 10,000,000."""
import pathlib
import shutil
import signal
import time

from common import ask, load, rate_text, run_tool, tesela
from queries import Postgres, ask_postgres, default_cache, wait_until_idle

SIZES, LONG_SIZES, POSTGRES_MAX = (1_000_000, 3_000_000), (1_000_000, 3_000_000, 10_000_000, 30_000_000), 10_000_000
MILLION, POINT_READ = 1_000_000, "point read"
QUERIES = {"email": "one row by e-mail", "latest": "the latest 10, ORDER BY date DESC"}
BLOCKS_MOST = {POINT_READ: 2, QUERIES["email"]: 3}  # goals when the data is larger than the cache
CACHE_LEAST = 8_000_000
MEMORY_CONSTANT = 300  # megabytes besides the cache
DISK_BYTES = 3_000  # of a record with its index, its log and what a compaction needs, at most


def figures(server):
    (store,) = ask(server, "GET", "/_tesela/store")[0]["stores"]
    return store


def add_part(server, first, items):
    flags = ["--url", server.url, "--mode", "load", "--first", first, "--items", items, "--connections", 16, "--partition", "id", "--container", "id",
             "--bulk", 100]
    flags += [] if first else ["--setup", "--throughput", 1_000_000]
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
        wait_until_idle(server)  # blocks that compactions read are counted too
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
    return tesela(folder, "growth", "--throttling", "off", "--cache", str(cache or default_cache()))


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
        written = family["loggedBytes"] + family["flushedBytes"] + family["ingestedBytes"] + family["compactedBytes"]
        sums[family["name"]] = sums.get(family["name"], 0) + written


def report_load(report, size, added, first, store, written):
    last = added["parts"][-1]
    part = last["rate"] / first
    report.add(f"growth: load of the last million up to {size:,}", rate_text(last["rate"]), "", None,
               f"{part:.2f} of the first million's rate; {added['cpuMicros']:.0f} µs of processor time an item, compaction included")
    report.add(f"growth: longest request, load up to {size:,}", f"{added['longestMs']:.0f} ms", "≤ 250 ms", added["longestMs"] <= 250)
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


def measure_growth(report, folder, o):
    sizes = LONG_SIZES if o.long else (o.items,) if o.items else SIZES
    free = shutil.disk_usage(folder).free
    server, done, first, written = begin(folder), 0, None, {}
    try:
        for size in sizes:
            if size * DISK_BYTES > free:
                report.add(f"growth: {size:,} records", "-", "", None, f"the disk has {free / 1e9:.0f} GB")
                break
            added = add_records(server, done, size - done)
            first, done, store = first or added["parts"][0]["rate"], size, figures(server)
            add_written(written, store)
            turns = list(read_everything(server, size, o.seconds))
            memory = server.memory_mb()
            server, beyond, small_memory, cache = read_beyond_memory(folder, server, size, o.seconds)
            server, clean, clean_mb = start_again(folder, server, signal.SIGTERM)
            load(server, "upsert", 2, items=size, partition="id", container="id")
            server, killed, killed_mb = start_again(folder, server, signal.SIGKILL)
            with_peer = size == sizes[0] or (o.long and size <= POSTGRES_MAX)
            report.raw[f"growth-{size}"] = {"load": added, "store": store, "writtenBytes": dict(written), "turns": turns, "beyondMemory": beyond, "memoryMB": memory, "startS": [clean, killed]}
            report_load(report, size, added, first, store, written)
            report_reads(report, size, turns, peers(folder, size, o.seconds) if with_peer else {})
            report_beyond_memory(report, size, beyond, small_memory, cache)
            report.add(f"growth: memory, {size:,} records", f"{memory:,.0f} MB", "", None, f"cache {default_cache() / 1e6:,.0f} MB")
            report.add(f"growth: ready after a clean stop, {size:,} records", f"{clean:.2f} s", "≤ 1 s", clean <= 1, f"{clean_mb:.0f} MB of log")
            report.add(f"growth: ready after kill -9, {size:,} records", f"{killed:.2f} s", "≤ 3 s", killed <= 3, f"{killed_mb:.0f} MB of log")
    finally:
        server.__exit__()
