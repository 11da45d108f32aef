"""The group `--only gremlin`: the Gremlin API on a graph of 100,000 people, each of whom knows ten others (graph.h): point reads against our SQL API's,
growth against a tenth of the graph, and, where its jars are, all of it against Gremlin Server with TinkerGraph.

GREMLIN_JARS names a folder with the jars of org.apache.tinkerpop:gremlin-server and tinkergraph-gremlin 3.7 and what they need
(`mvn dependency:copy-dependencies`); it runs on Java 17. Without it that part is left out."""
import json
import os
import statistics

from common import CONNECTIONS, Server, calm, free_port, load, run_tool, tesela

DEGREE = 10
BULK = 100
VERTEX_BYTES = 400  # of the SQL item: the least that tesela-load makes, twice a vertex of addV
CHECKED = 200  # vertices whose friends of friends are counted on both sides
JARS = os.environ.get("GREMLIN_JARS")
next_vertex = 100_000_000  # new vertices never meet one that is there


class Graph:
    """A server with the graph; `flags` are of gremlin_load."""

    def __init__(self, server, port, vertices, *flags):
        self.server, self.port, self.vertices, self.flags = server, port, vertices, flags

    def run(self, mode, seconds, **more):
        global next_vertex
        next_vertex += 10_000_000
        flags = {"vertices": self.vertices, "connections": CONNECTIONS, "warm-up": min(0.5, seconds / 4), "first": next_vertex, **more}
        words = [word for name, value in flags.items() for word in (f"--{name}", value)]
        before = self.server.cpu_seconds()
        result = run_tool("gremlin_load", "--port", self.port, "--mode", mode, "--seconds", seconds, *self.flags, *words)
        result["serverCpuMicros"] = (self.server.cpu_seconds() - before) * 1e6 / max(1, result["requests"] * (1 + flags["warm-up"] / seconds))
        if result["errors"] > result["requests"] / 1000:
            self.server.fail(f"{mode}: too many errors: {json.dumps(result)}")
        return result

    def sum(self):
        return self.run("sum", 1, first=0, items=CHECKED)["sum"]


def ours(server, vertices):
    """The graph as the service stores it, loaded by the SQL API."""
    result = run_tool("tesela-load", "--url", server.url, "--setup", "--throughput", 1_000_000, "--mode", "load", "--graph", vertices,
                      "--items", vertices * (1 + DEGREE), "--bulk", BULK, "--size", 400, "--connections", 16)
    if result["errors"]:
        server.fail(f"the graph could not be loaded: {json.dumps(result)}")
    graph = Graph(server, int(server.ready["gremlin"].rsplit(":", 1)[1]), vertices)
    graph.run("touch", 1, first=0)  # TinkerGraph has all in memory; so have we, if the cache is as large
    return graph


def pairs_of(o, first, second):
    """Both take turns; the order alternates, since the speed of a machine changes within seconds."""
    pairs = []
    for round_ in range(o.rounds):
        turn = {i: (first, second)[i]() for i in ((0, 1) if round_ % 2 else (1, 0))}
        pairs.append((turn[0], turn[1]))
    return pairs


def measure_against_sql(report, graph, o):
    def point_read():
        return load(graph.server, "read", o.seconds, graph=graph.vertices, items=graph.vertices)

    pairs = pairs_of(o, lambda: graph.run("read", o.seconds), point_read)
    report.ratio("Gremlin API: g.V([pk, id]) against our SQL point read of the same vertex", pairs, 0.7, "gremlinRead")

    def create():
        global next_vertex
        next_vertex += 10_000_000
        return load(graph.server, "create", o.seconds, size=VERTEX_BYTES, first=next_vertex)

    pairs = pairs_of(o, lambda: graph.run("add", o.seconds), create)
    report.ratio(f"Gremlin API: addV, synced, against our SQL create of {VERTEX_BYTES} bytes", pairs, 0.9, "gremlinAdd")


def measure_growth(report, graph, folder, o):
    with tesela(folder, "gremlin-tenth", "--gremlin-port", "0") as server:
        tenth = ours(server, graph.vertices // 10)
        for each in (graph, tenth):
            each.run("names", o.seconds)  # the working set has been touched on both sides
        for mode, what in (("read", "g.V([pk, id])"), ("names", "friends of friends")):
            pairs = pairs_of(o, lambda mode=mode: graph.run(mode, o.seconds), lambda mode=mode: tenth.run(mode, o.seconds))
            report.ratio(f"Gremlin API: {what} of {graph.vertices:,} vertices against {tenth.vertices:,}", pairs, 0.7, f"gremlinGrowth{mode}")


# ---- Gremlin Server ----

GROOVY = """
def mix(long x) {
    x += Long.parseUnsignedLong("9e3779b97f4a7c15", 16)
    x = (x ^ (x >>> 30)) * Long.parseUnsignedLong("bf58476d1ce4e5b9", 16)
    x = (x ^ (x >>> 27)) * Long.parseUnsignedLong("94d049bb133111eb", 16)
    x ^ (x >>> 31)
}
def fill(graph, long n, long degree) {
    def all = new ArrayList((int) n)
    for (long i = 0; i < n; i++) {
        all.add(graph.addVertex(T.id, String.format("v%%09d", i), T.label, "person", "pk", String.format("p%%03d", i %% 1000),
                                "name", "Name Surname " + i, "city", "City " + i %% 1000, "age", (int) (i %% 80)))
    }
    for (long e = 0; e < degree * n; e++) {
        all[(int) e.intdiv(degree)].addEdge("knows", all[(int) Long.remainderUnsigned(mix(e), n)], "weight", (e %% 100) / 100.0d)
    }
}
fill(graph, %d, %d)
def globals = [:]
globals << [g: traversal().withEmbedded(graph)]
"""


def tinkergraph(folder, vertices):
    home, port = folder / "gremlin-server", free_port()
    home.mkdir()
    (home / "graph.groovy").write_text(GROOVY % (vertices, DEGREE))
    (home / "graph.properties").write_text("gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph\n"
                                           "gremlin.tinkergraph.vertexIdManager=ANY\ngremlin.tinkergraph.edgeIdManager=LONG\n")
    (home / "server.yaml").write_text(f"""
host: 127.0.0.1
port: {port}
evaluationTimeout: 60000
channelizer: org.apache.tinkerpop.gremlin.server.channel.WebSocketChannelizer
graphs: {{graph: {home}/graph.properties}}
scriptEngines:
  gremlin-groovy:
    plugins:
      org.apache.tinkerpop.gremlin.server.jsr223.GremlinServerGremlinPlugin: {{}}
      org.apache.tinkerpop.gremlin.tinkergraph.jsr223.TinkerGraphGremlinPlugin: {{}}
      org.apache.tinkerpop.gremlin.jsr223.ScriptFileGremlinPlugin: {{files: [{home}/graph.groovy]}}
serializers:
  - {{className: org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3}}
  - {{className: org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1}}
""")
    command = ["java", "-Xms4g", "-Xmx4g", "-cp", f"{JARS}/*", "org.apache.tinkerpop.gremlin.server.GremlinServer", home / "server.yaml"]
    return Graph(Server(command, "gremlin-server", folder, port, seconds=180), port, vertices, "--open")


def measure_adds(report, peer, folder, o):
    """TinkerGraph keeps nothing on a disk; the nearest that we have is a log that is written and not synced."""
    with tesela(folder, "gremlin-relaxed", "--gremlin-port", "0", "--durability", "relaxed") as server:
        graph = ours(server, peer.vertices // 10)
        pairs = pairs_of(o, lambda: graph.run("add", o.seconds), lambda: peer.run("add", o.seconds))
        report.ratio("Gremlin API: addV, logged and not synced, against Gremlin Server with TinkerGraph", pairs, 1, "tinkergraphAddRelaxed")


def measure_against_tinkergraph(report, graph, folder, o):
    peer = tinkergraph(folder, graph.vertices)
    with peer.server:
        if graph.sum() != peer.sum():
            peer.server.fail("its graph is not ours: the friends of friends differ")
        for mode, what, goal in (("read", "g.V(id)", 1), ("add", "addV, synced, against one in memory", None), ("names", "names of friends of friends", 0.5),
                                 ("count", "count of friends of friends", 0.5), ("path", "a shortest path of three steps", None)):
            peer.run(mode, 3 * o.seconds + 5)  # until its code is compiled
            calm(graph.server, peer.server)  # what was added before is merged
            pairs = pairs_of(o, lambda mode=mode: graph.run(mode, o.seconds), lambda mode=mode: peer.run(mode, o.seconds))
            report.ratio(f"Gremlin API: {what}, against Gremlin Server with TinkerGraph", pairs, goal, f"tinkergraph{mode}")
        measure_adds(report, peer, folder, o)
        note = f"memory {graph.server.memory_mb():.0f} MB against {peer.server.memory_mb():.0f} MB"
        report.add("Gremlin API: both servers after that", note, "", None)


def measure_gremlin(report, folder, o):
    vertices = o.many // DEGREE
    with tesela(folder, "gremlin", "--gremlin-port", "0") as server:
        graph = ours(server, vertices)
        rates = {}
        for mode in ("read", "names", "count", "path", "add"):
            graph.run(mode, o.seconds)
            rates[mode] = [graph.run(mode, o.seconds) for _ in range(max(2, o.rounds // 3))]
        report.raw["gremlin"] = rates
        figures = "; ".join(f"{mode} {statistics.median(r['rate'] for r in results):,.0f}/s, {statistics.median(r['serverCpuMicros'] for r in results):,.0f} µs"
                            for mode, results in rates.items())
        report.add(f"Gremlin API: {vertices:,} vertices and {vertices * DEGREE:,} edges, requests and server CPU of each", figures, "", None)
        measure_against_sql(report, graph, o)
        measure_growth(report, graph, folder, o)
        if JARS:
            measure_against_tinkergraph(report, graph, folder, o)
