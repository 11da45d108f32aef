"""run.py — TinkerPop's driver for Python (gremlinpython 3.7), unmodified, against a server of its own: scripts and bytecode, in its formats.

  tests/gremlin-driver/python/run [unittest's flags]        for example: tests/gremlin-driver/python/run -v -k bytecode

TESELA_BIN names the server's binary (build/tesela by default). `run` starts this with the driver's packages (tools/dev/setup.sh gremlin)."""
import contextlib
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import unittest

for name in [each for each in os.environ if each.lower().endswith("_proxy")]:
    del os.environ[name]  # the server is on this machine

from azure.cosmos.cosmos_client import CosmosClient
from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Order, P, T, TextP
from gremlin_python.structure.graph import Edge, Path, Vertex

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
SERVER = pathlib.Path(os.environ.get("TESELA_BIN") or ROOT / "build/tesela")
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
FORMATS = {"GraphSON 2": serializer.GraphSONSerializersV2d0, "GraphSON 3": serializer.GraphSONSerializersV3d0, "GraphBinary": serializer.GraphBinarySerializersV1}

# (id, label, properties); the partition key of each vertex is its id
VERTICES = [("marko", "person", {"age": 29}), ("vadas", "person", {"age": 27}), ("josh", "person", {"age": 32}), ("peter", "person", {"age": 35}),
            ("lop", "software", {"lang": "java"}), ("ripple", "software", {"lang": "java"})]
EDGES = [("marko", "knows", "vadas", 0.5), ("marko", "knows", "josh", 1.0), ("marko", "created", "lop", 0.4), ("josh", "created", "lop", 0.4),
         ("josh", "created", "ripple", 1.0), ("peter", "created", "lop", 0.2)]


@contextlib.contextmanager
def serving():
    """A server with a folder of its own; gives its ready line."""
    with tempfile.TemporaryDirectory() as folder:
        command = [SERVER, "serve", "--data", folder, "--sql-port", "0", "--gremlin-port", "0", "--throttling", "off"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            line = process.stdout.readline()
            assert line, "the server did not start"
            yield json.loads(line)
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def setUpModule():
    stack = contextlib.ExitStack()
    unittest.addModuleCleanup(stack.close)
    ready = stack.enter_context(serving())
    Suite.port = ready["gremlin"].rsplit(":", 1)[1]
    Suite.sql = CosmosClient(f"http://{ready['sql']}", {"masterKey": KEY})
    Suite.sql.CreateDatabase({"id": "graphs"})


class Suite(unittest.TestCase):
    """What the tests share: each has a container of its own."""

    containers = 0

    def setUp(self):
        Suite.containers += 1
        self.container = f"g{Suite.containers}"
        self.sql.CreateContainer("dbs/graphs", {"id": self.container, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}})

    def opened(self, kind, format_, password=KEY, tls=False):
        options = {"username": f"/dbs/graphs/colls/{self.container}", "password": password, "message_serializer": FORMATS[format_]()}
        if tls:
            options["ssl_options"] = ssl._create_unverified_context()
        made = kind(f"{'wss' if tls else 'ws'}://localhost:{self.port}/gremlin", "g", **options)
        self.addCleanup(made.close)
        return made

    def client(self, format_="GraphSON 2", **options):
        return self.opened(Client, format_, **options)

    def source(self, format_="GraphBinary", **options):
        return traversal().with_remote(self.opened(DriverRemoteConnection, format_, **options))

    def refused(self, code, call):
        with self.assertRaises(GremlinServerError) as caught:
            call()
        self.assertEqual(caught.exception.status_code, code)
        return caught.exception


def fill(client):
    for id_, label, properties in VERTICES:
        (key, value), = properties.items()
        client.submit(f"g.addV(l).property('id', i).property('pk', i).property('{key}', v)", {"l": label, "i": id_, "v": value}).all().result()
    for from_, label, to, weight in EDGES:
        client.submit("g.V([f, f]).addE(l).to(g.V([t, t])).property('weight', w)", {"f": from_, "l": label, "t": to, "w": weight}).all().result()


class Scripts(Suite):
    def test_scripts_in_each_format(self):
        fill(self.client())
        for format_ in FORMATS:
            with self.subTest(format_):
                run = lambda script, bindings=None: self.client(format_).submit(script, bindings or {}).all().result()
                self.assertEqual(sorted(run("g.V([i, i]).out('knows').id()", {"i": "marko"})), ["josh", "vadas"])
                self.assertEqual(run("g.V().hasLabel('person').values('age').sum()"), [123])
                self.assertEqual(run("g.V(['lop', 'lop']).in('created').has('age', gt(30)).order().by('age').id()"), ["josh", "peter"])
                self.assertEqual(run("g.E().groupCount().by(label)"), [{"knows": 2, "created": 4}])
                self.assertEqual(run("g.V('nobody')"), [])

    def test_elements(self):
        fill(self.client())
        plain, = self.client().submit("g.V(['marko', 'marko'])").all().result()
        self.assertEqual((plain["id"], plain["label"], plain["type"], plain["properties"]["age"][0]["value"]), ("marko", "person", "vertex", 29))
        for format_ in ("GraphSON 3", "GraphBinary"):
            with self.subTest(format_):
                client = self.client(format_)
                vertex, = client.submit("g.V(['marko', 'marko'])").all().result()
                self.assertEqual((type(vertex), vertex.id, vertex.label), (Vertex, "marko", "person"))
                edge, = client.submit("g.V(['peter', 'peter']).outE()").all().result()
                self.assertEqual((type(edge), edge.label, edge.outV.id, edge.inV.id), (Edge, "created", "peter", "lop"))
                path, = client.submit("g.V(['marko', 'marko']).as('a').out('knows').out().hasId('ripple').path().by(id)").all().result()
                self.assertEqual((type(path), list(path.objects)), (Path, ["marko", "josh", "ripple"]))

    def test_batches_and_attributes(self):
        client = self.client()
        results = client.submit("g.inject(1).repeat(union(identity(), identity())).times(8)")
        self.assertEqual(results.all().result(), [1] * 256)
        client.submit("g.addV('a').property('id', '1').property('pk', 'p')").all().result()
        results = client.submit("g.V(['p', '1'])")
        self.assertEqual(len(results.all().result()), 1)
        self.assertGreater(results.status_attributes["x-ms-total-request-charge"], 0)
        self.assertEqual(results.status_attributes["x-ms-status-code"], 200)

    def test_refusals(self):
        client = self.client()
        add = lambda: client.submit("g.addV('a').property('id', '1').property('pk', 'p')").all().result()
        add()
        self.assertEqual(self.refused(500, add).status_attributes["x-ms-status-code"], 409)
        self.assertIn("Unable to find any method 'fly'", str(self.refused(597, lambda: client.submit("g.V().fly()").all().result())))
        self.refused(597, lambda: client.submit("g.V().map{it.get()}").all().result())
        self.refused(401, lambda: self.client(password="d3Jvbmc=").submit("g.V()").all().result())

    def test_tls(self):
        self.assertEqual(self.client(tls=True).submit("g.inject(1, 2).sum()").all().result(), [3])

    def test_what_sql_sees(self):
        fill(self.client())
        rows = self.sql.QueryItems(f"dbs/graphs/colls/{self.container}", "SELECT c.id, c._sink FROM c WHERE c._isEdge AND c.label = 'knows'",
                                   {"enableCrossPartitionQuery": True})
        self.assertEqual(sorted(row["_sink"] for row in rows), ["josh", "vadas"])


class Bytecode(Suite):
    """The driver's own traversals, which it sends as bytecode."""

    def filled(self, format_):
        g = self.source(format_)
        for id_, label, properties in VERTICES:
            step = g.add_v(label).property(T.id, id_).property("pk", id_)
            for key, value in properties.items():
                step = step.property(key, value)
            step.iterate()
        for from_, label, to, weight in EDGES:
            g.V([from_, from_]).add_e(label).to(__.V([to, to])).property("weight", weight).iterate()
        return g

    def test_bytecode_in_each_format(self):
        for format_ in ("GraphSON 3", "GraphBinary"):
            with self.subTest(format_):
                self.setUp()
                self.check(self.filled(format_))

    def check(self, g):
        self.assertEqual(g.V().has_label("person").count().next(), 4)
        self.assertEqual(sorted(g.V(["marko", "marko"]).out("knows").id_().to_list()), ["josh", "vadas"])
        self.assertEqual(g.V().has("age", P.gt(28)).order().by("age", Order.desc).id_().to_list(), ["peter", "josh", "marko"])
        self.assertEqual(g.V().has("pk", TextP.starting_with("ri")).values("lang").to_list(), ["java"])
        self.assertEqual(g.V(["marko", "marko"]).repeat(__.out()).times(2).id_().to_set(), {"lop", "ripple"})
        self.assertEqual(g.E().group_count().by(T.label).next(), {"knows": 2, "created": 4})
        projected = g.V(["josh", "josh"]).project("age", "made").by("age").by(__.out("created").id_().order().fold()).next()
        self.assertEqual(projected, {"age": 32, "made": ["lop", "ripple"]})
        edge = g.V(["peter", "peter"]).out_e("created").next()
        self.assertEqual((edge.outV.id, edge.inV.id), ("peter", "lop"))
        path = g.V(["marko", "marko"]).out("knows").out("created").has_id("ripple").path().by(T.id).next()
        self.assertEqual(list(path.objects), ["marko", "josh", "ripple"])
        g.V(["vadas", "vadas"]).property("age", 28).iterate()
        self.assertEqual(g.V(["vadas", "vadas"]).values("age").next(), 28)
        merged = g.merge_v({T.id: "stephen", T.label: "person", "pk": "stephen"}).next()
        self.assertEqual(merged.id, "stephen")
        g.V(["stephen", "stephen"]).drop().iterate()
        self.assertFalse(g.V(["stephen", "stephen"]).has_next())

    def test_refusals(self):
        g = self.source()
        self.refused(597, lambda: g.io("file").read().iterate())
        g.add_v("a").property(T.id, "1").property("pk", "p").iterate()
        self.assertEqual(self.refused(500, lambda: g.add_v("a").property(T.id, "1").property("pk", "p").iterate()).status_attributes["x-ms-status-code"], 409)
        self.refused(595, lambda: g.inject(1).fail("no").to_list())

    def test_tls(self):
        self.assertEqual(self.source(tls=True).inject(1, 2).sum_().next(), 3)


if __name__ == "__main__":
    unittest.main()
