"""`--only table`: the Table API against Azurite's table service, by the load generator and by the npm SDK; its point read against that of the
SQL API; a partition read in order.

Azurite keeps its tables in memory and writes them to a file now and then. Ours are synced with every insert; with `--durability relaxed`, which
is what Azurite's answers are worth, they are written to the log and not synced."""
import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import json
import statistics
import subprocess
import sys
import time
import urllib.parse

import common
from common import EMULATOR_KEY, ROOT, Server, calm, fill, free_port, load, run_tool, tesela

ACCOUNT = "devstoreaccount1"
AZURITE_KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
ENTITIES = 10_000


class Tables:
    """The table service of a server, as the load generator wants a server."""

    def __init__(self, server, port, key):
        self.server, self.port, self.key = server, port, key
        self.name, self.url, self.cpu_seconds = server.name, f"127.0.0.1:{port}", server.cpu_seconds
        self.key_text = base64.b64encode(key).decode()

    def ask(self, verb, path, body=None, connection=None, more=None):
        """One request signed with SharedKeyLite; the answer's bytes and header fields."""
        date = email.utils.formatdate(usegmt=True)
        whole = f"/{ACCOUNT}{path}"
        text = f"{date}\n/{ACCOUNT}{whole.split('?')[0]}"
        signature = base64.b64encode(hmac.new(self.key, text.encode(), hashlib.sha256).digest()).decode()
        fields = {"x-ms-date": date, "x-ms-version": "2019-02-02", "authorization": f"SharedKeyLite {ACCOUNT}:{signature}",
                  "accept": "application/json;odata=nometadata", "content-type": "application/json", **(more or {})}
        link = connection or http.client.HTTPConnection("127.0.0.1", self.port)
        link.request(verb, whole, json.dumps(body) if body is not None else None, fields)
        answer = link.getresponse()
        content = answer.read()
        if not connection:
            link.close()
        if answer.status >= 300:
            self.server.fail(f"{verb} {path} answered {answer.status}: {content.decode(errors='replace')}")
        return content, answer.headers

    def create(self, name):
        self.ask("POST", "/Tables", {"TableName": name}, more={"x-ms-offer-throughput": "1000000"})  # Azurite ignores it

    def fill(self, entities, **more):
        words = [word for name, value in more.items() for word in (f"--{name}", value)]
        result = run_tool("tesela-load", "--url", self.url, "--mode", "table-load", "--items", entities, "--size", common.ITEM_BYTES, "--connections", 32,
                          "--key", self.key_text, *words)
        if result["errors"]:
            sys.exit(f"bench: {self.name}: the entities could not be inserted: {json.dumps(result)}")
        return result

    def get(self, seconds):
        return load(self, "table-get", seconds, items=ENTITIES, key=self.key_text)

    def insert(self, seconds):
        common.next_item += 10_000_000
        return load(self, "table-insert", seconds, first=common.next_item, key=self.key_text)

    def by_sdk(self, mode, seconds):
        """The npm SDK in a process of its own, 32 calls at a time."""
        common.next_item += 10_000_000
        program = ROOT / "bench/table_sdk.mjs"
        done = subprocess.run(["node", program, f"http://127.0.0.1:{self.port}/{ACCOUNT}", self.key_text, mode, str(seconds), str(common.next_item)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: {self.name}: table_sdk.mjs: {done.stderr}")
        return json.loads(done.stdout)


def our_tables(server):
    return Tables(server, int(server.ready["table"].rsplit(":", 1)[1]), EMULATOR_KEY)


@contextlib.contextmanager
def azurite(folder):
    port = free_port()
    program = ROOT / "bench/node_modules/azurite/dist/src/table/main.js"
    command = ["node", program, "--silent", "--skipApiVersionCheck", "--location", folder / "azurite", "--tableHost", "127.0.0.1", "--tablePort", str(port)]
    with Server(command, "azurite", folder, port) as server:
        yield Tables(server, port, AZURITE_KEY)


def insert_in_turn(all_tables, seconds):
    """A turn of each, begun when the others are at rest."""
    results = []
    for tables in all_tables:
        calm(*(each.server for each in all_tables))
        results.append(tables.insert(seconds))
    return results


def measure_against_azurite(report, folder, o):
    with tesela(folder, "tables") as server, tesela(folder, "relaxed", "--durability", "relaxed") as unsynced, azurite(folder) as peer:
        ours, relaxed = our_tables(server), our_tables(unsynced)
        for tables in (ours, relaxed, peer):
            tables.create("items")
            tables.fill(2_000 if tables is peer else ENTITIES)
        reads = [(ours.get(o.seconds), load(peer, "table-get", o.seconds, items=2_000, key=peer.key_text)) for _ in range(o.rounds)]
        report.ratio("Table API: get, 1 KB, against Azurite", reads, 10, "tableGet")
        inserts = [insert_in_turn((ours, peer, relaxed), o.seconds) for _ in range(o.rounds)]
        report.ratio("Table API: insert, 1 KB, not synced, as Azurite's, against Azurite", [(fast, theirs) for _, theirs, fast in inserts], 10, "tableInsertRelaxed")
        report.ratio("Table API: insert, 1 KB, synced, against Azurite, which does not", [(synced, theirs) for synced, theirs, _ in inserts], None, "tableInsert")
        for mode in ("get", "insert"):
            pairs = [(ours.by_sdk(mode, o.seconds), peer.by_sdk(mode, o.seconds)) for _ in range(max(2, o.rounds // 2))]
            report.ratio(f"the same by @azure/data-tables, which takes most of the time: {mode}", pairs, None, f"tableSdk{mode}")


def measure_against_sql(report, folder, o):
    with tesela(folder, "both") as server:
        tables = our_tables(server)
        tables.create("items")
        tables.fill(ENTITIES)
        fill(server, ENTITIES)
        work = {"table": lambda: tables.get(o.seconds), "sql": lambda: load(server, "read", o.seconds, items=ENTITIES)}
        pairs = []
        for round_ in range(o.rounds):  # the order alternates, since the speed of a machine changes within seconds
            turn = {name: work[name]() for name in (work if round_ % 2 else reversed(work))}
            pairs.append((turn["table"], turn["sql"]))
        report.ratio("Table API: get against the SQL API's point read, both 1 KB", pairs, 0.9, "tableSql")


def read_all(tables):
    """Reads the table in pages of 1,000; how many entities, in what time, and the server's largest memory meanwhile."""
    link = http.client.HTTPConnection("127.0.0.1", tables.port)
    path, count, most, last, begun = "/items()?$filter=" + urllib.parse.quote("PartitionKey eq 'one'"), 0, 0, b"", time.monotonic()
    more = ""
    while more is not None:
        content, fields = tables.ask("GET", path + more, connection=link)
        count += content.count(b'"RowKey":')
        first = content.split(b'"RowKey":"', 1)[-1][:10]
        if content.count(b'"RowKey":') and first < last:
            tables.server.fail("the entities are not in order")
        last = content.rsplit(b'"RowKey":"', 1)[-1][:10] if b'"RowKey":' in content else last
        most = max(most, tables.server.memory_mb())
        token = fields["x-ms-continuation-NextPartitionKey"]
        more = f"&NextPartitionKey={urllib.parse.quote(token)}&NextRowKey=NA" if token else None
    link.close()
    return count, time.monotonic() - begun, most


def measure_partition(report, folder, o):
    with tesela(folder, "partition") as server:
        tables = our_tables(server)
        tables.create("items")
        loaded = tables.fill(o.many, path="one", size=400)
        before = server.memory_mb()
        rounds = [read_all(tables) for _ in range(3)]
        if any(count != o.many for count, _, _ in rounds):
            server.fail(f"it has {rounds[0][0]} entities, not {o.many}")
        rates = [count / seconds for count, seconds, _ in rounds]
        report.raw["tablePartition"] = {"loadRate": loaded["rate"], "rates": rates, "memoryBeforeMB": before, "memoryMB": [most for _, _, most in rounds]}
        note = f"inserted in no order at {loaded['rate']:,.0f}/s; memory {before:.0f} MB before, {max(most for _, _, most in rounds):.0f} MB at most; one connection, client included"
        report.add(f"Table API: a partition of {o.many:,} entities of 400 bytes read in order", f"{statistics.median(rates):,.0f}/s", "", None, note)


def measure_tables(report, folder, o):
    measure_against_azurite(report, folder, o)
    measure_against_sql(report, folder, o)
    measure_partition(report, folder, o)
