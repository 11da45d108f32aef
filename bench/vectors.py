"""The group `--only vectors`: the nearest by a graph (a vector index of type diskANN) against comparing all, which is the same query with
`true` as third argument of VectorDistance.

The vectors come from one generator: the first are loaded, those after them are asked for, so that what is asked lies among the others and
is none of them."""
import itertools
import json
import pathlib
import random
import socket
import statistics
import time

from common import ask, count_ranges, cpu_of, signed_fields, tesela
from queries import wait_until_idle, take_turns

MANY = 50_000  # the goal of the ratio is stated for so many
FEW = 10_000
DIMENSIONS = 128
CENTRES, SPREAD = 1000, 0.5
QUERIES, TOP = 50, 10
BULK = 100

PATH = "/dbs/bench/colls/items/docs"
LINK = "dbs/bench/colls/items"
QUERY_FIELDS = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "True",
    "x-ms-documentdb-query-enablecrosspartition": "True",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}
BULK_FIELDS = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "x-ms-documentdb-partitionkeyrangeid": "0",
    "prefer": "return=minimal",
}
CONTAINER = {
    "id": "items",
    "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
    "vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": "cosine"}]},
    "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}], "vectorIndexes": [{"path": "/v", "type": "diskANN"}]},
}


# ---- what is loaded and asked ----


def vectors(seed=1):
    """In clusters, as those of texts and pictures are; without end."""
    chance = random.Random(seed)
    centres = [[chance.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(CENTRES)]
    while True:
        yield [round(chance.gauss(x, SPREAD), 5) for x in chance.choice(centres)]


def question(v, exact):
    distance = "VectorDistance(c.v, @v, true)" if exact else "VectorDistance(c.v, @v)"
    return {"query": f"SELECT TOP {TOP} c.id, {distance} AS d FROM c ORDER BY {distance}", "parameters": [{"name": "@v", "value": v}]}


def fill_vectors(server, source, count):
    ask(server, "POST", "/dbs", "dbs", "", {"id": "bench"})
    ask(server, "POST", "/dbs/bench/colls", "colls", "dbs/bench", CONTAINER, {"x-ms-offer-throughput": "1000000"})
    if count_ranges(server) != 1:
        server.fail(f"it has {count_ranges(server)} ranges, not one")
    for first in range(0, count, BULK):
        items = [{"id": str(number), "v": next(source)} for number in range(first, min(first + BULK, count))]
        operations = [{"operationType": "Create", "partitionKey": json.dumps([item["id"]]), "resourceBody": item} for item in items]
        results, _ = ask(server, "POST", PATH, "docs", LINK, operations, BULK_FIELDS)
        if any(result["statusCode"] != 201 for result in results):
            server.fail(f"the vectors could not be loaded: {json.dumps(results)[:500]}")


# ---- the graph ----


def explain(server, v, exact=False):
    """Of the only range: the way that the query goes, and the words for it."""
    body = {"database": "bench", "container": "items", **question(v, exact)}
    (part,) = ask(server, "POST", "/_tesela/explain", body=body)[0]["parts"]
    return part["way"], part["words"]


def builder_cpu(server):
    """Of the thread that builds graphs."""
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(cpu_of(f"{server.process.pid}/task/{task.name}") for task in tasks if (task / "comm").read_text().strip() == "nearest")


def build_graph(server, v, most=900):
    """The first who asks begins it. Seconds until it has all vectors; whoever looks compares all of them meanwhile, hence seldom."""
    begun = time.monotonic()
    while True:
        way, words = explain(server, v)
        seconds = time.monotonic() - begun
        if way == "nearest" and "not have yet" not in words:
            return seconds
        if seconds > most:
            server.fail(f"the graph is not complete after {most} s: {words}")
        time.sleep(0.25)


# ---- asking ----


class Asker:
    """One connection. http.client takes some 0.6 ms to read thirty header fields, a third of what a query by the graph takes: hence
    requests that are bytes beforehand, signed once, and of an answer's head only what is needed."""

    def __init__(self, server, questions):
        self.server = server
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("rb")
        self.requests = {exact: [self.request(json.dumps(question(v, exact)).encode()) for v in questions] for exact in (False, True)}

    def request(self, body):
        fields = {"host": self.server.url, "content-length": len(body), **signed_fields("POST", "docs", LINK), **QUERY_FIELDS}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"POST {PATH} HTTP/1.1\r\n{head}\r\n".encode() + body

    def answer(self, request):
        self.socket.sendall(request)
        status = self.answers.readline()
        fields = dict(line.lower().split(b": ", 1) for line in iter(self.answers.readline, b"\r\n"))
        content = self.answers.read(int(fields[b"content-length"]))
        if status.split()[1] != b"200" or b"x-ms-continuation" in fields:
            self.server.fail(f"a query answered {status}, or not all at once: {content[:500]}")
        return content

    def ids(self, exact):
        """Of each query's rows."""
        return [{row["id"] for row in json.loads(self.answer(request))["Documents"]} for request in self.requests[exact]]

    def turn(self, exact, seconds):
        times = []
        cpu, own, begun = self.server.cpu_seconds(), time.process_time(), time.monotonic()
        for request in itertools.cycle(self.requests[exact]):
            asked = time.monotonic()
            if asked > begun + seconds and len(times) >= 2:
                break
            self.answer(request)
            times.append((time.monotonic() - asked) * 1e6)
        took, n = time.monotonic() - begun, len(times)
        return {"requests": n, "errors": 0, "seconds": took, "rate": n / took, "microseconds": {"p99": sorted(times)[n * 99 // 100]},
                "serverCpuMicros": (self.server.cpu_seconds() - cpu) * 1e6 / n, "clientCpuMicros": (time.process_time() - own) * 1e6 / n}


# ---- lines ----


def report_build(report, count, seconds, cpu):
    report.raw["vectors-build"] = {"vectors": count, "seconds": seconds, "cpuSeconds": cpu}
    report.add(f"vectors: the graph of {count:,} vectors of {DIMENSIONS} numbers, built when first asked for", f"{count / seconds:,.0f}/s", "", None,
               f"{seconds:.1f} s; {cpu:.1f} s of processor on its thread")


def report_recall(report, asker, count):
    parts = [len(found & exact) / TOP for found, exact in zip(asker.ids(False), asker.ids(True))]
    recall = statistics.mean(parts)
    report.raw["vectors-recall"] = parts
    report.add(f"vectors: of the {TOP} nearest of {count:,}, how many the graph finds", f"{recall:.3f}", "≥ 0.95", recall >= 0.95,
               f"{QUERIES} queries, {min(parts):g} for the worst")


def report_cpu(report, pairs):
    graph, exact = (statistics.median(pair[side]["serverCpuMicros"] for pair in pairs) for side in (0, 1))
    client = statistics.median(pair[0]["clientCpuMicros"] for pair in pairs)
    report.add("vectors: server CPU a query, by the graph", f"{graph:,.0f} µs", "", None,
               f"comparing all {exact:,.0f} µs, {exact / graph:.1f} times that; the client's {client:,.0f} µs are in the rates")


def measure_vectors(report, folder, o):
    count = FEW if o.quick else MANY
    source = vectors()
    with tesela(folder, "vectors") as server:
        fill_vectors(server, source, count)
        questions = list(itertools.islice(source, QUERIES))
        wait_until_idle(server)
        seconds = build_graph(server, questions[0])
        report_build(report, count, seconds, builder_cpu(server))
        if explain(server, questions[0], exact=True)[0] != "all":
            server.fail("with true as third argument, not all are compared")
        asker = Asker(server, questions)
        report_recall(report, asker, count)
        pairs = take_turns(report, f"vectors: the {TOP} nearest of {count:,} by the graph, against comparing all, 1 connection", "vectors",
                           lambda: asker.turn(False, o.seconds), lambda: asker.turn(True, o.seconds), o.rounds, goal=10 if count >= MANY else None)
        report_cpu(report, pairs)
