"""The group `--only cassandra`: the Cassandra API against our own SQL API; slices of a large partition from both ends; and, where its jars are,
against Apache Cassandra.

CASSANDRA_JARS names a folder with the jars of org.apache.cassandra:cassandra-all 5.0 and what it needs (`mvn dependency:copy-dependencies`); it
runs on Java 17. Without it that part is left out."""
import json
import os
import statistics
import time

from common import CONNECTIONS, ITEM_BYTES, Server, calm, create, fill, free_port, load, run_tool, tesela

ROWS = 10_000
WIDE_ROW_BYTES = 100
THROUGHPUT = 1_000_000
next_row = 10_000_000  # inserts never meet a row that is there
JARS = os.environ.get("CASSANDRA_JARS")


def ours(folder, name="cassandra"):
    server = tesela(folder, name, "--cassandra-port", "0")
    server.start_seconds = time.monotonic() - server.begun
    server.cassandra_port = int(server.ready["cassandra"].rsplit(":", 1)[1])
    return server


def cql(server, mode, seconds, **more):
    flags = {"connections": CONNECTIONS, "size": ITEM_BYTES, "warm-up": min(0.5, seconds / 4), "items": ROWS, **more}
    before = server.cpu_seconds()
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    result = run_tool("cql_load", "--port", server.cassandra_port, "--mode", mode, "--seconds", seconds, *words)
    timed = not mode.startswith("fill")
    result["serverCpuMicros"] = (server.cpu_seconds() - before) * 1e6 / max(1, result["requests"] * (1 + (flags["warm-up"] / seconds if timed else 0)))
    if result["errors"] > result["requests"] / 1000:
        server.fail(f"{mode}: too many errors: {json.dumps(result)}")
    return result


def set_up(server):
    """Tables, and the rows that are read. Apache Cassandra knows no throughput."""
    more = ["--throughput", THROUGHPUT] if hasattr(server, "data") else []
    run_tool("cql_load", "--port", server.cassandra_port, "--setup", "--mode", "fill", "--items", ROWS, "--size", ITEM_BYTES, *more)


def insert(server, seconds):
    global next_row
    next_row += 10_000_000
    return cql(server, "insert", seconds, first=next_row)


def insert_at_rest(server, servers, seconds):
    """A turn, begun when nothing that an earlier one left is merged or compiled."""
    calm(*servers)
    return insert(server, seconds)


def measure_against_sql(report, folder, o):
    with ours(folder, "both") as server:
        set_up(server)
        fill(server, ROWS)
        for what, key, work in (
            ("single-row read against our SQL point read", "cassandraRead", (lambda: cql(server, "read", o.seconds), lambda: load(server, "read", o.seconds, items=ROWS))),
            ("insert, synced, against our SQL create", "cassandraInsert", (lambda: insert(server, o.seconds), lambda: create(server, o.seconds))),
        ):
            pairs = []
            for round_ in range(o.rounds):  # the order alternates, since the speed of a machine changes within seconds
                turn = {i: work[i]() for i in ((0, 1) if round_ % 2 else (1, 0))}
                pairs.append((turn[0], turn[1]))
            report.ratio(f"Cassandra API: {what}, 1 KB", pairs, 0.9, key)


def read_ends(server, o):
    """Slices of 1,000 rows from a random place, from the first row and from the last one backwards."""
    modes = {mode: [] for mode in ("slice", "first", "last")}
    for _ in range(o.rounds):
        for mode, results in modes.items():
            results.append(cql(server, mode, o.seconds, items=o.many, size=WIDE_ROW_BYTES, connections=4))
    rows = "/".join(f"{statistics.median(r['serverCpuMicros'] for r in results) / 1000:.2f}" for results in modes.values())
    return modes, f"server CPU {rows} µs a row: a slice/the first/the last 1,000"


def measure_partition(report, folder, o):
    with ours(folder, "wide") as server:
        set_up(server)
        loaded = cql(server, "fillwide", 1, items=o.many, size=WIDE_ROW_BYTES)
        fresh, fresh_note = read_ends(server, o)
    with ours(folder, "wide") as server:  # its newest rows are in files now
        modes, note = read_ends(server, o)
    report.raw["cassandraPartition"] = {"loadRate": loaded["rate"], "fresh": fresh, **modes}
    ratio = statistics.median(first["serverCpuMicros"] / last["serverCpuMicros"] for first, last in zip(modes["first"], modes["last"]))
    what = f"Cassandra API: a partition of {o.many:,} rows, processor time of the first 1,000 to that of the last backwards"
    report.add(what, f"{ratio:.2f}", "≥ 0.8", ratio >= 0.8)
    report.add("… in detail", note, "", None, f"rows of {WIDE_ROW_BYTES} bytes, inserted at {loaded['rate']:,.0f}/s")
    report.add("… while the last are in RocksDB's memtable", fresh_note, "", None)


# ---- Apache Cassandra ----

SYNC = {"batch": "commitlog_sync: batch\n", "periodic": "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n"}
OPENED = ["java.base/java.io", "java.base/java.lang.module", "java.base/java.lang.reflect", "java.base/java.lang", "java.base/java.math", "java.base/java.net",
          "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.loader",
          "java.base/jdk.internal.math", "java.base/jdk.internal.module", "java.base/jdk.internal.ref", "java.base/jdk.internal.reflect", "java.base/sun.nio.ch",
          "java.base/jdk.internal.util", "java.base/jdk.internal.util.jar", "java.rmi/sun.rmi.transport", "java.rmi/sun.rmi.transport.tcp", "java.base/jdk.internal.misc",
          "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql", "jdk.management/com.sun.management.internal"]


def apache(folder, sync):
    home, port = folder / f"apache-{sync}", free_port()
    home.mkdir()
    (home / "cassandra.yaml").write_text(f"""
cluster_name: bench
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
{SYNC[sync]}
data_file_directories: [{home}/data]
commitlog_directory: {home}/commitlog
hints_directory: {home}/hints
saved_caches_directory: {home}/caches
cdc_raw_directory: {home}/cdc
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {free_port()}
native_transport_port: {port}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1"}}]
""")
    opened = [word for name in OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED", "--add-exports", f"{name}=ALL-UNNAMED")]
    command = ["java", "-Xms2g", "-Xmx2g", "-Djdk.attach.allowAttachSelf=true", "-Djava.net.preferIPv4Stack=true", f"-Dcassandra.config=file://{home}/cassandra.yaml",
               f"-Dcassandra.storagedir={home}", "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.superuser_setup_delay_ms=0", "-Dcassandra-foreground=yes",
               *opened, "-cp", f"{JARS}/*", "org.apache.cassandra.service.CassandraDaemon"]
    server = Server(command, f"apache-{sync}", folder, port, seconds=90)
    server.cassandra_port, server.start_seconds = port, time.monotonic() - server.begun
    return server


def measure_against_apache(report, folder, o):
    warm_up = 20
    for sync, goal in (("batch", 3), ("periodic", 0.9)):
        with ours(folder, f"beside-{sync}") as server, apache(folder, sync) as peer:
            for each in (server, peer):
                set_up(each)
                cql(each, "fillwide", 1, items=20_000)
            if sync == "batch":
                cql(peer, "read", warm_up)
                reads = [(cql(server, "read", o.seconds), cql(peer, "read", o.seconds)) for _ in range(o.rounds)]
                report.ratio("Cassandra API: single-row read against Apache Cassandra, 1 KB", reads, 1.5, "apacheRead")
                cql(peer, "slice", warm_up, items=20_000)
                slices = [(cql(server, "slice", o.seconds, items=20_000), cql(peer, "slice", o.seconds, items=20_000)) for _ in range(o.rounds)]
                report.ratio("Cassandra API: a slice of 1,000 rows of 1 KB against Apache Cassandra", slices, 3, "apacheSlice")
                report.add("Apache Cassandra's start, and ours", f"{peer.start_seconds:.1f} s, {server.start_seconds * 1000:.0f} ms", "", None)
                report.add("Apache Cassandra's memory, and ours", f"{peer.memory_mb():,.0f} MB, {server.memory_mb():,.0f} MB", "", None, "resident, after these reads")
            insert(peer, warm_up)
            inserts = [tuple(insert_at_rest(each, (server, peer), o.seconds) for each in (server, peer)) for _ in range(o.rounds)]
            report.ratio(f"Cassandra API: insert, 1 KB, synced, against Apache Cassandra with commitlog_sync: {sync}", inserts, goal, f"apacheInsert{sync}")


def measure_cassandra(report, folder, o):
    measure_against_sql(report, folder, o)
    measure_partition(report, folder, o)
    if JARS:
        measure_against_apache(report, folder, o)
