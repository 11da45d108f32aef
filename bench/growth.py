"""`--only growth`: what becomes of the rates as a container grows. Records of 1 KB with 20 indexed properties, key /id, bulk of 100, synced.

For each size, up to 3,000,000 records, with --long up to 30,000,000: the load of what was added, what it wrote, then reads and queries of
everything, memory, and starts. PostgreSQL 15 has the same records and indexes at the first size, with --long at all up to 10,000,000."""
import pathlib
import shutil
import signal
import time

from common import ask, load, rate_text, run_tool, tesela
from queries import Postgres, ask_postgres, default_cache, wait_until_idle

SIZES, LONG_SIZES, POSTGRES_MAX = (1_000_000, 3_000_000), (1_000_000, 3_000_000, 10_000_000, 30_000_000), 10_000_000
QUERIES = {"email": "one row by e-mail", "latest": "the latest 10, ORDER BY date DESC"}
DISK_BYTES = 3_000  # of a record with its index, its log and what a compaction needs, at most


def io_of(server, name):
    for line in pathlib.Path(f"/proc/{server.process.pid}/io").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def figures(server):
    (store,) = ask(server, "GET", "/_tesela/store")[0]["stores"]
    return store


def add_records(server, first, items):
    """Loads what is missing, and waits for compaction. The rate does not include the wait; processor time and bytes do."""
    cpu, bytes_before = server.cpu_seconds(), io_of(server, "write_bytes")
    flags = ["--url", server.url, "--mode", "load", "--first", first, "--items", items, "--connections", 16, "--partition", "id", "--container", "id",
             "--bulk", 100]
    flags += [] if first else ["--setup", "--throughput", 1_000_000]
    result = run_tool("tesela-load", *flags)
    if result["errors"] or result["requests"] * 100 != items:
        server.fail(f"the records could not be loaded: {result}")
    wait_until_idle(server)
    return {**result, "rate": items / result["seconds"], "cpuMicros": (server.cpu_seconds() - cpu) * 1e6 / items,
            "writtenBytes": io_of(server, "write_bytes") - bytes_before}


def answers(server, what, run):
    """A turn, and the bytes that each of its answers made the kernel fetch from the disk."""
    before = io_of(server, "read_bytes")
    result = run()
    result["diskBytes"] = (io_of(server, "read_bytes") - before) / max(1, result["requests"])
    result["what"] = what
    return result


def read_everything(server, items, seconds):
    yield answers(server, "point read", lambda: load(server, "read", seconds, items=items, partition="id", container="id"))
    for name, words in QUERIES.items():
        yield answers(server, words, lambda: load(server, "query", seconds, ask=name, items=items, partition="id", container="id"))


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


def begin(folder):
    return tesela(folder, "growth", "--throttling", "off", "--cache", str(default_cache()))


def report_load(report, size, added, first, store):
    part = added["rate"] / first["rate"]
    report.add(f"growth: load up to {size:,}", rate_text(added["rate"]), "", None,
               f"{part:.2f} of the first million's rate; {added['cpuMicros']:.0f} µs of processor time an item; longest wait "
               f"{added['microseconds']['max'] / 1000:.0f} ms")
    times = store["writtenBytes"] / store["bytes"]
    stalls = sum(family["slowed"] + family["stopped"] for family in store["families"])
    report.add(f"growth: bytes written for those of {size:,}", f"{times:.2f}", "≤ 6", times <= 6,
               f"{store['writtenBytes'] / 1e6:,.0f} MB for {store['bytes'] / 1e6:,.0f} MB of tables; writes held up {stalls} times")


def report_reads(report, size, turns, of_postgres):
    for turn in turns:
        theirs = of_postgres.get(turn["what"])
        note = f"p99 {turn['microseconds']['p99'] / 1000:.1f} ms; {turn['serverCpuMicros']:.0f} µs of processor time; {turn['diskBytes'] / 1000:.1f} KB of disk"
        note += f"; PostgreSQL {rate_text(theirs)}" if theirs else ""
        report.add(f"growth: {turn['what']}, {size:,} records", rate_text(turn["rate"]), "≥ PostgreSQL" if theirs else "",
                   turn["rate"] >= theirs if theirs else None, note)


def measure_growth(report, folder, o):
    sizes = LONG_SIZES if o.long else (o.items,) if o.items else SIZES
    free = shutil.disk_usage(folder).free
    server, done, first = begin(folder), 0, None
    try:
        for size in sizes:
            if size * DISK_BYTES > free:
                report.add(f"growth: {size:,} records", "-", "", None, f"the disk has {free / 1e9:.0f} GB")
                break
            added = add_records(server, done, size - done)
            first, done, store = first or added, size, figures(server)
            turns = list(read_everything(server, size, o.seconds))
            memory = server.memory_mb()
            server, clean, clean_mb = start_again(folder, server, signal.SIGTERM)
            load(server, "upsert", 2, items=size, partition="id", container="id")
            server, killed, killed_mb = start_again(folder, server, signal.SIGKILL)
            with_peer = size == sizes[0] or (o.long and size <= POSTGRES_MAX)
            report.raw[f"growth-{size}"] = {"load": added, "store": store, "turns": turns, "memoryMB": memory, "startS": [clean, killed]}
            report_load(report, size, added, first, store)
            report_reads(report, size, turns, peers(folder, size, o.seconds) if with_peer else {})
            report.add(f"growth: memory, {size:,} records", f"{memory:,.0f} MB", "", None, f"cache {default_cache() / 1e6:,.0f} MB")
            report.add(f"growth: ready after a clean stop, {size:,} records", f"{clean:.2f} s", "≤ 1 s", clean <= 1, f"{clean_mb:.0f} MB of log")
            report.add(f"growth: ready after kill -9, {size:,} records", f"{killed:.2f} s", "≤ 3 s", killed <= 3, f"{killed_mb:.0f} MB of log")
    finally:
        server.__exit__()
