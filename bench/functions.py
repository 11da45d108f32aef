"""`--only udf`: what a user-defined function in a WHERE costs a row, beyond the query itself, by processor time of the server and its workers.

The same COUNT over all records, once with a condition of the language and once with a function that says the same; neither is answered by the
index. Turns alternate."""
import pathlib
import statistics
import time

from common import ask, cpu_of, tesela
from queries import SCAN_POLICY, fill_records

RECORDS = 100_000
FUNCTIONS = {
    "isOld": "function (age) { return age > 60; }",
    "isLong": "function (text) { return text.endsWith('e'); }",
    "isOldItem": "function (item) { return item.age > 60; }",
}
# What the line says, the condition, the one to compare it with, how many records it is asked of, the goal in microseconds. Aggregates have
# five seconds, so the last one is asked of fewer.
LINES = [
    ("of a number", "udf.isOld(c.age)", "c.age + 0 > 60", RECORDS, 2),
    ("of a text", "udf.isLong(c.name)", "RIGHT(c.name, 1) = 'e'", RECORDS, 2),
    ("of the whole item (1 KB), which goes as JSON", "c.sequence < 20000 AND udf.isOldItem(c)", "c.sequence < 20000 AND c.age + 0 > 60", 20_000, None),
]


def processes(server):
    """The server and whatever any of its threads has started."""
    found = [server.process.pid]
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return found


def cpu_seconds(server):
    return sum(cpu_of(pid) for pid in processes(server))


def count_where(server, condition):
    """How many there are, processor seconds, seconds by the clock."""
    before, begun = cpu_seconds(server), time.monotonic()
    body = {"query": f"SELECT VALUE COUNT(1) FROM c WHERE {condition}", "parameters": []}
    fields = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-partitionkeyrangeid": "0"}
    answer, _ = ask(server, "POST", "/dbs/bench/colls/id/docs", "docs", "dbs/bench/colls/id", body, fields)
    return answer["Documents"][0], cpu_seconds(server) - before, time.monotonic() - begun


def measure_functions(report, folder, o):
    with tesela(folder, "functions") as server:
        fill_records(server, "id", RECORDS, policy=SCAN_POLICY)
        for name, body in FUNCTIONS.items():
            ask(server, "POST", "/dbs/bench/colls/id/udfs", "udfs", "dbs/bench/colls/id", {"id": name, "body": body})
        for words, with_function, without, records, goal in LINES:
            pairs = []
            for turn in range(o.rounds + 1):
                ours, plain = count_where(server, with_function), count_where(server, without)
                if ours[0] != plain[0]:
                    server.fail(f"{with_function} finds {ours[0]} records, {without} {plain[0]}")
                pairs += [(ours, plain)] if turn else []  # the first warms the worker up
            micros = [(ours[1] - plain[1]) / records * 1e6 for ours, plain in pairs]
            figure = statistics.median(micros)
            report.raw[f"udf {with_function}"] = pairs
            note = f"{statistics.median(p[0][1] for p in pairs) / records * 1e6:.2f} against {statistics.median(p[1][1] for p in pairs) / records * 1e6:.2f} µs; "
            note += f"{statistics.median(p[0][2] for p in pairs):.2f} s by the clock; from {min(micros):.2f} to {max(micros):.2f} µs"
            report.add(f"a function {words}, in a WHERE over {records:,} records: processor time a row, beyond the query", f"{figure:.2f} µs", f"≤ {goal} µs" if goal else "",
                       figure <= goal if goal else None, note)
