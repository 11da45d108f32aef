"""`--only query`: queries over records of 1 KB, beside PostgreSQL with the same records and beside @zeit/cosmosdb-server with few of them.

Before a question is measured, both sides answer it five times, and must give the same rows."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

import common
from common import BUILD, CONNECTIONS, ITEM_BYTES, ask, cpu_of, create, load, rate_text, run_tool, tesela, zeit

FEW = 10_000  # items for zeit, which looks at all of them for every query
HEAVY = os.cpu_count()  # connections for what keeps a processor busy

# name: what the line says, partition key of the container, connections, what of the answers must be equal
QUESTIONS = {
    "email": ("one row by e-mail", "id", CONNECTIONS, "ids"),
    "city": ("first 100 rows of a city (1,000 of them)", "id", CONNECTIONS, "how many"),
    "tag": ("first 100 rows with a label (10,000 of them) in an array", "id", CONNECTIONS, "how many"),
    "latest": ("the latest 10 across the container, ORDER BY date DESC", "id", CONNECTIONS, "ids"),
    "device": ("a device's latest 10 readings, 1,000 devices", "device", CONNECTIONS, "ids"),
    "before": ("the latest 10 before a date, all in one logical partition", "tenant", CONNECTIONS, "ids"),
    "count": ("COUNT of a country (50 of them)", "id", 4 * HEAVY, "rows"),
    "count-two": ("COUNT of a country and a status (5 of them)", "id", 4 * HEAVY, "rows"),
    "group": ("GROUP BY city, 1,000 groups", "id", HEAVY, "rows in any order"),
    "scan": ("full scan, filter on a path without index, 1 connection", "id", 1, "ids in any order"),
}

# What a line says that misses its goal: the lines that did, and what was found by looking for it (docs/performance.md, "Queries").
WHY_SHORT = {
    "scan": "items come one by one through RocksDB's iterator, 0.4 µs each; PostgreSQL's rows lie packed in pages",
    "read": "a query is parsed and sought among the entries of the index; a point read is one look into the cache of items",
    "device": "a logical partition of up to 128 items has no index entries of its own: it is read whole and sorted",
}

# All but one integer, so that there is something to scan for.
SCAN_POLICY = json.dumps({
    "indexingMode": "consistent",
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/load/?"}, {"path": '/"_etag"/?'}],
}, separators=(",", ":"))
NO_POLICY = json.dumps({"indexingMode": "none", "automatic": False}, separators=(",", ":"))


# ---- PostgreSQL ----


def default_cache():
    """As the server chooses it by itself."""
    return min(8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


def of_process(look, pid, otherwise):
    """What `look` finds, unless the process has just ended."""
    with contextlib.suppress(OSError):
        return look(pid)
    return otherwise


def command_of(pid):
    return of_process(lambda pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes(), pid, b"")


class Postgres:
    """A cluster of its own on a socket in its folder; `with` stops it."""

    def __init__(self, folder):
        self.name, self.account = "postgres", "postgres" if os.geteuid() == 0 else None
        self.programs = pathlib.Path("/usr/lib/postgresql/15/bin")
        self.folder = folder / "postgres"
        folder.chmod(0o711)  # its user must get through
        self.folder.mkdir()
        if self.account:
            shutil.chown(self.folder, self.account, self.account)
        self.data = self.folder / "data"
        self.log = open(folder / "postgres.log", "wb")
        self.call("initdb", "-D", self.data, "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C")
        self.process = self.begin("postgres", "-D", self.data, "-k", self.folder, *(word for name, value in self.settings() for word in ("-c", f"{name}={value}")))
        self.wait()

    def settings(self):
        """The memory that tesela has; synced as tesela is, which are its defaults; a disk that seeks at no cost."""
        return [("listen_addresses", ""), ("shared_buffers", f"{default_cache() >> 20}MB"), ("effective_cache_size", f"{2 * default_cache() >> 20}MB"),
                ("fsync", "on"), ("synchronous_commit", "on"), ("max_wal_size", "8GB"), ("maintenance_work_mem", "1GB"), ("work_mem", "64MB"),
                ("random_page_cost", "1.1")]

    def begin(self, program, *words):
        return subprocess.Popen([self.programs / program, *words], stdout=self.log, stderr=self.log, cwd=self.folder, user=self.account, group=self.account)

    def call(self, program, *words):
        if self.begin(program, *words).wait() != 0:
            self.fail(f"{program} failed")

    def fail(self, why):
        sys.exit(f"bench: postgres: {why}\n" + pathlib.Path(self.log.name).read_text(errors="replace")[-2000:])

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while self.begin("pg_isready", "-q", "-h", self.folder).wait() != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                self.fail("it does not listen")
            time.sleep(0.05)

    def cpu_seconds(self):
        """Of the cluster: its first process has what those that ended have taken, so first they must have ended."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        end = time.monotonic() + 2
        while b"postgres: postgres" in b"".join(command_of(pid) for pid in children.read_text().split()) and time.monotonic() < end:
            time.sleep(0.01)
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own + sum(of_process(cpu_of, pid, 0) for pid in children.read_text().split())

    def tool(self, mode, *flags, **more):
        words = [word for name, value in more.items() for word in (f"--{name}", value)]
        return run_tool("pg_load", "--socket", self.folder, "--mode", mode, *flags, *words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)  # without waiting for clients
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


# ---- asking ----


def print_answers(tool, *flags):
    """The answers to the first five of the questions that the tool asks, as lists of rows; or why there is none."""
    done = subprocess.run([BUILD / "bench" / tool, "--mode", "print", "--least", "5", *map(str, flags)], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()[-200:]
    answers = {}
    for line in done.stdout.splitlines():
        page = json.loads(line)
        if page["status"] != 200:
            return None, f"{page['status']} {page['answer'].get('message', '')}".split("\n")[0].strip()[:160]
        answers.setdefault(page["ask"], []).extend(page["answer"]["Documents"])
    return list(answers.values()), None


def compared(answers, how):
    if how.startswith("ids"):
        answers = [[row["id"] for row in rows] for rows in answers]
    if how == "how many":
        return [len(rows) for rows in answers]
    if how.endswith("in any order"):
        return [sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in answers]
    return answers


def why_not(name, ours, theirs):
    """Why the rates of the two cannot be compared; None if they can. To be answered differently is a reason."""
    (answers, why), (others, other_why) = ours, theirs
    if why or other_why:
        return f"tesela: {why}" if why else f"the other: {other_why}"
    answers, others = (compared(rows, QUESTIONS[name][3]) for rows in (answers, others))
    if answers != others:
        print(f"bench: '{name}' is answered differently:\n{json.dumps(answers)[:1000]}\n{json.dumps(others)[:1000]}", file=sys.stderr)
        return "the answers differ"
    return None


def turn(connections, seconds):
    """Flags of a turn. Long questions begin at once and go on until each connection has had two answers: a few would not tell the rate."""
    heavy = connections < CONNECTIONS
    return {"connections": connections, "seconds": seconds, "warm-up": 0 if heavy else seconds / 4, "least": 2 * connections}


def with_cpu(server, flags, work):
    """Adds what a request took of the server's processors: it depends less on who else is using the machine than a rate does."""
    before = server.cpu_seconds()
    result = work()
    result["serverCpuMicros"] = (server.cpu_seconds() - before) * 1e6 / max(1, result["requests"] * (1 + flags["warm-up"] / flags["seconds"]))
    return result


def ask_http(server, name, items, seconds, connections=None):
    _, key, usual, _ = QUESTIONS[name]
    flags = {"ask": name, "partition": key, "container": key, "items": items, **turn(connections or usual, seconds)}
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    return with_cpu(server, flags, lambda: run_tool("tesela-load", "--url", server.url, "--mode", "query", *words))


def ask_postgres(postgres, name, items, seconds):
    flags = turn(QUESTIONS[name][2], seconds)
    return with_cpu(postgres, flags, lambda: postgres.tool("query", *(["--serial"] if name == "scan" else []), ask=name, items=items, **flags))


def fill_records(server, key, items, container=None, policy="", bulk=100):
    flags = ["--url", server.url, "--setup", "--mode", "load", "--items", items, "--connections", 16, "--partition", key, "--container", container or key]
    flags += ["--policy", policy] if policy else []
    flags += ["--bulk", bulk, "--throughput", 1_000_000] if bulk else []
    result = run_tool("tesela-load", *flags)
    if result["errors"] or result["requests"] * (bulk or 1) != items:
        server.fail(f"the records could not be loaded: {json.dumps(result)}")
    return result


def wait_until_idle(server, most=180, quiet=11):
    """Waits until the server has nothing left to do of what was loaded, as PostgreSQL is asked when its indexes are built. How long it took. Index
    tables of a load are merged some seconds after its end: so it must have done nothing for `quiet` seconds."""
    began, idle = time.time(), 0
    while time.time() - began < most and idle < quiet:
        before = server.cpu_seconds()
        time.sleep(1)
        idle = idle + 1 if server.cpu_seconds() - before < 0.05 else 0
    return time.time() - began


def failed(result):
    """Why a turn does not count, if it does not."""
    if result["errors"]:
        return "answers: " + ", ".join(f"{count} with {status}" for status, count in result["status"].items()) if "status" in result else "it failed"
    return None


def take_turns(report, what, key, ours, theirs, rounds, goal=1, why_short=""):
    """ours and theirs each measure one turn. A line even where one of them gives no answer."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    for side, index in (("tesela", 0), ("the other", 1)):
        why = next((failed(pair[index]) for pair in pairs if failed(pair[index])), None)
        if why:
            report.raw[key] = {"rounds": pairs}
            report.add(what, "-", f"≥ {goal}" if goal else "", None if index == 1 else False, f"{side}: {why}")
            return None
    report.ratio(what, pairs, goal, key, why_short)
    return pairs


# ---- lines ----


def disk_mb(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def container_bytes(server, container):
    found = [c for c in ask(server, "GET", "/_tesela/ranges")[0]["containers"] if c["container"] == container]
    return found[0]["bytes"], found[0]["indexBytes"]


def one_question(report, ours, postgres, name, o):
    words, key, _, _ = QUESTIONS[name]
    why = why_not(name, print_answers("tesela-load", "--url", ours.url, "--ask", name, "--partition", key, "--container", key, "--items", o.many),
                  print_answers("pg_load", "--socket", postgres.folder, "--ask", name, "--items", o.many))
    what = f"query: {words}, against PostgreSQL"
    if why:
        report.add(what, "-", "≥ 1", False, why)
        return
    pairs = take_turns(report, what, f"query-{name}", lambda: ask_http(ours, name, o.many, o.seconds),
                       lambda: ask_postgres(postgres, name, o.many, o.seconds), o.query_rounds, why_short=WHY_SHORT.get(name, ""))
    if pairs and name == "scan":
        scan_speed(report, pairs, o)


def scan_speed(report, pairs, o):
    speeds = [statistics.median(pair[i]["rate"] for pair in pairs) * o.many * ITEM_BYTES / 1e6 for i in (0, 1)]
    report.add("query: full scan, bytes of JSON looked at by one processor", f"{speeds[0]:,.0f} MB/s", "≥ 300 MB/s", speeds[0] >= 300,
               f"PostgreSQL {speeds[1]:,.0f} MB/s")


def against_point_read(report, ours, o):
    read = lambda: load(ours, "read", o.seconds, items=o.many, partition="id", container="id")
    take_turns(report, "query: one row by e-mail, against our own point read", "query-read",
               lambda: ask_http(ours, "email", o.many, o.seconds), read, o.query_rounds, goal=0.5, why_short=WHY_SHORT["read"])


def measure_peers(report, folder, o):
    with Postgres(folder) as postgres:
        copied = postgres.tool("load", "--indexes", items=o.many)
        report.raw["query-postgres-load"] = copied
        for key in ("id", "device", "tenant"):
            with tesela(folder, f"query-{key}", "--throttling", "off", "--cache", str(default_cache())) as ours:
                loaded = fill_records(ours, key, o.many, policy=SCAN_POLICY)
                settled = wait_until_idle(ours)
                data, index = container_bytes(ours, key)
                report.raw[f"query-load-{key}"] = {**loaded, "bytes": data, "indexBytes": index, "diskMB": disk_mb(ours.data)}
                report.add(f"query: bulk load of {o.many:,} records, partition key /{key}", rate_text(o.many / loaded["seconds"]), "", None,
                           f"then {settled:.0f} s for compaction; {disk_mb(ours.data):,.0f} MB on disk; PostgreSQL's COPY {rate_text(o.many / copied['copySeconds'])}, "
                           f"then {copied['indexSeconds']:.0f} s for indexes")
                for name, question in QUESTIONS.items():
                    if question[1] == key:
                        one_question(report, ours, postgres, name, o)
                if key == "id":
                    against_point_read(report, ours, o)
            shutil.rmtree(ours.data)
        measure_writes(report, folder, postgres, copied, o)


def open_writes(folder, container):
    return tesela(folder, f"query-writes-{container}", "--throttling", "off", "--cache", str(default_cache()))


def fill_writes(folder, items):
    """A server for each policy, with some records; what the folders then have without a log, and the sizes that the server itself counts."""
    disk = {}
    for container, policy in (("full", ""), ("bare", NO_POLICY)):
        with open_writes(folder, container) as server:
            fill_records(server, "id", items, container=container, policy=policy)
            counted = container_bytes(server, "full") if container == "full" else counted
        with open_writes(folder, container) as server:  # begins by writing out what the log has
            time.sleep(2)
            disk[container] = disk_mb(server.data) * 1e6
    return disk, counted


def report_sizes(report, disk, counted, copied, items):
    index, data = disk["full"] - disk["bare"], disk["bare"]
    report.raw["query-sizes"] = {"disk": disk, "counted": counted, "items": items}
    report.add(f"query: bytes of index against bytes of data, on disk, default policy, {items:,} records", f"{index / data:.2f}", "≤ 1", index <= data,
               f"{index / items:.0f} and {data / items:.0f} bytes a record; as counted {counted[1] / items:.0f} and {counted[0] / items:.0f}; "
               f"PostgreSQL {copied['indexBytes'] / copied['bytes']:.2f} ({copied['indexBytes'] / copied['items']:.0f} and {copied['bytes'] / copied['items']:.0f})")


def measure_writes(report, folder, postgres, copied, o):
    """Creates, synced, with all paths indexed and with none, into containers and tables that have some records already."""
    items = max(1000, o.many // 10)
    report_sizes(report, *fill_writes(folder, items), copied, items)
    postgres.tool("load", "--indexes", table="writes_full", items=items)
    postgres.tool("load", table="writes_bare", items=items)
    with open_writes(folder, "full") as ours, open_writes(folder, "bare") as plain:
        full = lambda: create(ours, o.seconds, partition="id", container="full")
        bare = lambda: create(plain, o.seconds, partition="id", container="bare")
        take_turns(report, "query: create, all paths indexed, against none", "query-writes", full, bare, o.query_rounds, goal=0.5)
        take_turns(report, "query: create, all paths indexed, against PostgreSQL with GIN and B-trees", "query-writes-postgres", full,
                   lambda: insert(postgres, "writes_full", o.seconds), o.query_rounds)
        take_turns(report, "query: PostgreSQL's inserts, with GIN and B-trees, against its primary key alone", "query-writes-postgres-bare",
                   lambda: insert(postgres, "writes_full", o.seconds), lambda: insert(postgres, "writes_bare", o.seconds), 2, goal=None)


def insert(postgres, table, seconds):
    flags = {"connections": CONNECTIONS, "seconds": seconds, "warm-up": seconds / 4}
    result = with_cpu(postgres, flags, lambda: postgres.tool("create", table=table, first=common.next_item, **flags))
    common.next_item += 10_000_000
    return result


def measure_zeit_queries(report, folder, o):
    """With as few items in both, and as few connections: zeit takes a quarter of a second for a query."""
    with tesela(folder, "query-few", "--throttling", "off") as ours, zeit(folder) as peer:
        for key in ("id", "device", "tenant"):
            fill_records(ours, key, FEW, policy=SCAN_POLICY)
            fill_records(peer, key, FEW, bulk=0)
        for name, (words, key, usual, _) in QUESTIONS.items():
            connections = min(usual, HEAVY)
            what = f"query: {words}, {FEW:,} records, against @zeit/cosmosdb-server"
            flags = ("--ask", name, "--partition", key, "--container", key, "--items", FEW)
            why = why_not(name, print_answers("tesela-load", "--url", ours.url, *flags), print_answers("tesela-load", "--url", peer.url, *flags))
            if why:
                report.add(what, "-", "≥ 1", None, why)
                continue
            take_turns(report, what, f"query-zeit-{name}", lambda: ask_http(ours, name, FEW, 1, connections),
                       lambda: ask_http(peer, name, FEW, 1, connections), 2)


def measure_query(report, folder, o):
    o.query_rounds = min(o.rounds, 5)
    measure_peers(report, folder, o)
    measure_zeit_queries(report, folder, o)
