"""The group `--only mongo`: the MongoDB API against Redis, our own SQL API and RocksDB."""
import json
import shutil

from common import BUILD, CONNECTIONS, ITEM_BYTES, Server, create, fill, free_port, run_tool, tesela

ITEMS = 10_000
next_id = 10_000_000  # inserts never meet a document that is there


def mongo(folder):
    """Our server with its MongoDB port; `port` is the SQL API's, as everywhere."""
    data = folder / "mongo-data"
    port = free_port()
    command = [BUILD / "tesela", "serve", "--data", data, "--sql-port", "0", "--mongo-port", str(port), "--throttling", "off"]
    server = Server(command, "mongo", folder)
    server.data, server.mongo_port = data, port
    return server


def redis(folder):
    port = free_port()
    program = shutil.which("redis-server") or "/usr/bin/redis-server"
    server = Server([program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)], "redis", folder, port)
    server.mongo_port = port
    return server


def wire(server, mode, seconds, **more):
    flags = {"connections": CONNECTIONS, "size": ITEM_BYTES, "warm-up": min(0.5, seconds / 4), "items": ITEMS, **more}
    before = server.cpu_seconds()
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    result = run_tool("wire_load", "--port", server.mongo_port, "--mode", mode, "--seconds", seconds, *words)
    result["serverCpuMicros"] = (server.cpu_seconds() - before) * 1e6 / max(1, result["requests"] * (1 + flags["warm-up"] / seconds))
    if result["errors"] > result["requests"] / 1000:
        server.fail(f"{mode}: too many errors: {json.dumps(result)}")
    return result


def insert(server, seconds):
    global next_id
    result = wire(server, "insert", seconds, first=next_id)
    next_id += 10_000_000
    return result


def measure_mongo(report, folder, o):
    with mongo(folder) as ours, redis(folder) as peer, tesela(folder, "mongo-sql") as sql:
        wire(ours, "fill", 1)
        wire(peer, "set", 1)
        fill(sql, 100)
        finds = [(wire(ours, "find", o.seconds), wire(peer, "get", o.seconds)) for _ in range(o.rounds)]
        report.ratio("MongoDB find by _id, 1 KB, against Redis GET", finds, 0.7, "mongoFind")
        inserts = [(insert(ours, o.seconds), create(sql, o.seconds)) for _ in range(o.rounds)]
        report.ratio("MongoDB insert, 1 KB, synced, against our SQL create", inserts, 0.9, "mongoInsert")
