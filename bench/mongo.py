"""The group `--only mongo`: the MongoDB API against Redis, our own SQL API, RocksDB, PostgreSQL and, if there is one, FerretDB."""
import json
import os
import shutil
import subprocess
import sys
import time

from common import BUILD, CONNECTIONS, ITEM_BYTES, Server, create, fill, free_port, rate_text, run_tool, tesela
from queries import QUESTIONS, Postgres, compared, default_cache, print_answers, take_turns, turn, wait_until_idle, with_cpu

ITEMS = 10_000
FERRETDB_ITEMS = 2_000  # it reads every document of a collection for most requests
next_id = 10_000_000  # inserts never meet a document that is there

# The questions of bench/question.c that MongoDB's clients ask too, and the goal against PostgreSQL.
ASKED = {
    "email": ("find by index, one document by e-mail", 1),
    "city": ("find by index, first 100 documents of a city (1,000 of them)", 1),
    "latest": ("sort by index with limit, the latest 10", 1),
    "count": ("count by index, of a country (50 of them)", 1),
    "group": ("$group with $sum: 1 by city, 1,000 groups", 1),
    "sums": ("$group with $sum of a field by city, 1,000 groups, which reads all documents", 1),
}

WHY_SHORT = {
    "find": "a command is a BSON document to be read and answered by another; Redis reads one name and copies the value",
    "city": "PostgreSQL sends text that lies in its pages; a document is looked up by its number, one by one",
    "sums": "documents come one by one through RocksDB's iterator and are evaluated by one thread; PostgreSQL has two workers",
}


def mongo(folder, name="mongo", *flags):
    """Our server with its MongoDB port; `port` is the SQL API's, as everywhere."""
    data = folder / f"{name}-data"
    port = free_port()
    command = [BUILD / "tesela", "serve", "--data", data, "--sql-port", "0", "--mongo-port", str(port), "--throttling", "off", *flags]
    server = Server(command, name, folder)
    server.data, server.mongo_port, server.flags = data, port, ()
    return server


def redis(folder):
    port = free_port()
    program = shutil.which("redis-server") or "/usr/bin/redis-server"
    server = Server([program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)], "redis", folder, port)
    server.mongo_port, server.flags = port, ()
    return server


def ferretdb(folder):
    """FerretDB 1 with its SQLite backend; the variable FERRETDB names its program. None if there is none."""
    program = os.environ.get("FERRETDB") or shutil.which("ferretdb")
    if not program:
        return None
    port, state = free_port(), folder / "ferretdb"
    state.mkdir()
    command = [program, "--handler=sqlite", f"--sqlite-url=file:{state}/", f"--state-dir={state}", f"--listen-addr=127.0.0.1:{port}",
               "--telemetry=disable", "--debug-addr=-", "--log-level=error"]
    server = Server(command, "ferretdb", folder, port)
    server.mongo_port, server.flags = port, ("--open",)
    return server


# ---- requests ----


def tool(server, mode, *flags, **more):
    words = [word for name, value in more.items() for word in (f"--{name}", value)]
    return run_tool("wire_load", "--port", server.mongo_port, "--mode", mode, *server.flags, *flags, *words)


def wire(server, mode, seconds, **more):
    flags = {"connections": CONNECTIONS, "size": ITEM_BYTES, "warm-up": min(0.5, seconds / 4), "items": ITEMS, **more, "seconds": seconds}
    result = with_cpu(server, flags, lambda: tool(server, mode, **flags))
    if result["errors"] > result["requests"] / 1000:
        server.fail(f"{mode}: too many errors: {json.dumps(result)}")
    return result


def insert(server, seconds):
    global next_id
    result = wire(server, "insert", seconds, first=next_id)
    next_id += 10_000_000
    return result


def connections_of(name):
    return QUESTIONS[name][2] if name in QUESTIONS else os.cpu_count()


def ask(server, name, items, seconds, connections=None):
    flags = {**turn(connections or connections_of(name), seconds), "ask": name, "items": items}
    del flags["seconds"]
    return wire(server, "ask", seconds, **flags)


def ask_peer(postgres, name, items, seconds):
    flags = turn(connections_of(name), seconds)
    return with_cpu(postgres, flags, lambda: postgres.tool("query", ask=name, items=items, **flags))


def fill_records(server, items):
    result = tool(server, "records", items=items, connections=8)
    if result["errors"]:
        server.fail(f"the records could not be loaded: {json.dumps(result)}")
    began = time.monotonic()
    subprocess.run([BUILD / "bench/wire_load", "--port", str(server.mongo_port), "--mode", "indexes", "--connections", "1", *server.flags], check=True)
    return {**result, "indexSeconds": time.monotonic() - began}


# ---- one document: Redis, our SQL API, RocksDB ----


def log_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.log"))


def bytes_per_insert(folder):
    """What one insert adds to the store's log."""
    with mongo(folder, "mongo-probe") as server:
        wire(server, "fill", 1)
        before = log_bytes(server.data)
        result = wire(server, "insert", 1, first=next_id, **{"warm-up": 0})
        return round((log_bytes(server.data) - before) / result["requests"])


def measure_documents(report, folder, o):
    with mongo(folder) as ours, redis(folder) as peer, tesela(folder, "mongo-sql") as sql:
        wire(ours, "fill", 1)
        wire(peer, "set", 1)
        fill(sql, 100)
        finds = [(wire(ours, "find", o.seconds), wire(peer, "get", o.seconds)) for _ in range(o.rounds)]
        report.ratio("MongoDB find by _id, 1 KB, against Redis GET", finds, 0.7, "mongoFind", WHY_SHORT["find"])
        inserts = [(insert(ours, o.seconds), create(sql, o.seconds)) for _ in range(o.rounds)]
        report.ratio("MongoDB insert, 1 KB, synced, against our SQL create", inserts, 0.9, "mongoInsert")
    size = bytes_per_insert(folder)
    report.raw["bytesPerInsert"] = size
    with mongo(folder, "mongo-inserts") as ours:
        wire(ours, "fill", 1)
        pairs = []
        for round_ in range(o.rounds):
            peer = run_tool("rocks_writers", "--dir", folder / f"mongo-rocks-{round_}", "--writers", CONNECTIONS, "--bytes", size, "--seconds", o.seconds)
            pairs.append((insert(ours, o.seconds), peer))
        report.ratio(f"MongoDB insert, 1 KB, synced, against RocksDB's own batches of {size} bytes", pairs, 0.7, "mongoRocks")


# ---- questions: PostgreSQL ----


def our_answers(server, name, items):
    flags = ["--port", server.mongo_port, "--mode", "print", "--least", 5, "--ask", name, "--items", items, *server.flags]
    done = subprocess.run([BUILD / "bench/wire_load", *map(str, flags)], capture_output=True, text=True)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or any(not reply.get("ok") for reply in replies):
        return None, (done.stderr or str(replies))[-200:]
    return [rows_of(reply) for reply in replies], None


def rows_of(reply):
    """As the other APIs give them."""
    rows = [reply["n"]] if "n" in reply else reply["cursor"]["firstBatch"]
    return [{"city": row["_id"], "n": row["n"]} if isinstance(row, dict) and set(row) == {"_id", "n"} else row for row in rows]


def why_not(name, ours, theirs):
    """Why the rates of the two cannot be compared; None if they can."""
    (answers, why), (others, other_why) = ours, theirs
    if why or other_why:
        return why or f"the other: {other_why}"
    how = QUESTIONS[name][3] if name in QUESTIONS else "rows in any order"
    if compared(answers, how) != compared(others, how):
        print(f"bench: '{name}' is answered differently:\n{str(answers)[:1000]}\n{str(others)[:1000]}", file=sys.stderr)
        return "the answers differ"
    return None


def against_postgres(report, ours, postgres, o):
    for name, (words, goal) in ASKED.items():
        theirs = print_answers("pg_load", "--socket", postgres.folder, "--ask", name, "--items", o.many)
        why = why_not(name, our_answers(ours, name, o.many), theirs)
        what = f"MongoDB {words}, of {o.many:,}, against PostgreSQL's JSONB"
        if why:
            report.add(what, "-", f"≥ {goal}", False, why)
            continue
        take_turns(report, what, f"mongo-{name}", lambda: ask(ours, name, o.many, o.seconds), lambda: ask_peer(postgres, name, o.many, o.seconds),
                   min(o.rounds, 5), goal, WHY_SHORT.get(name, ""))


def against_fewer(report, ours, fewer, o, few):
    """The same work at ten times the data: what finds a few documents must not take longer, what reads all may take ten times as long."""
    for name, goal in (("email", 0.8), ("latest", 0.8), ("group", 0.08), ("sums", 0.08)):
        take_turns(report, f"MongoDB {ASKED[name][0]}, of {o.many:,} against {few:,}", f"mongo-growth-{name}",
                   lambda: ask(ours, name, o.many, o.seconds), lambda: ask(fewer, name, few, o.seconds), min(o.rounds, 3), goal)
    report.add(f"MongoDB memory after these, {o.many:,} documents", f"{ours.memory_mb():,.0f} MB", "", None, f"{fewer.memory_mb():,.0f} MB with {few:,}")


def measure_questions(report, folder, o):
    few = o.many // 10
    with mongo(folder, "mongo-many", "--cache", str(default_cache())) as ours, mongo(folder, "mongo-few", "--cache", str(default_cache())) as fewer:
        loaded = fill_records(ours, o.many)
        fill_records(fewer, few)
        settled = wait_until_idle(ours)
        with Postgres(folder) as postgres:
            copied = postgres.tool("load", "--indexes", items=o.many)
            report.add(f"MongoDB insert of {o.many:,} records, 100 at a time, 8 connections", rate_text(o.many / loaded["seconds"]), "", None,
                       f"indexes {loaded['indexSeconds']:.0f} s, then {settled:.0f} s for compaction; PostgreSQL's COPY {rate_text(o.many / copied['copySeconds'])}, "
                       f"indexes {copied['indexSeconds']:.0f} s")
            against_postgres(report, ours, postgres, o)
        against_fewer(report, ours, fewer, o, few)
    shutil.rmtree(ours.data)
    shutil.rmtree(fewer.data)


# ---- FerretDB ----


def measure_ferretdb(report, folder, o):
    peer = ferretdb(folder)
    if not peer:
        report.add("MongoDB against FerretDB", "-", "ahead", None, "no program: FERRETDB names it")
        return
    rounds, seconds = min(o.rounds, 2), min(o.seconds, 2)
    with peer, mongo(folder, "mongo-ferretdb") as ours:
        for server in (ours, peer):
            fill_records(server, FERRETDB_ITEMS)
        pairs = [(insert(ours, seconds), insert(peer, seconds)) for _ in range(rounds)]
        report.ratio("MongoDB insert, 1 KB, against FerretDB with SQLite", pairs, 1, "ferretdbInsert")
        for name in ("city", "count", "group"):
            what = f"MongoDB {ASKED[name][0]}, against FerretDB with SQLite, {FERRETDB_ITEMS:,} documents"
            take_turns(report, what, f"ferretdb-{name}", lambda: ask(ours, name, FERRETDB_ITEMS, seconds, 2),
                       lambda: ask(peer, name, FERRETDB_ITEMS, seconds, 2), rounds)


def measure_mongo(report, folder, o):
    measure_documents(report, folder, o)
    measure_questions(report, folder, o)
    measure_ferretdb(report, folder, o)
