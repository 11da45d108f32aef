"""`--only sprocs`: what a stored procedure costs a call, by processor time of the server and its workers, beside the write that it does.

Each call has a fresh global of JavaScript and its own transaction. Turns alternate."""
import statistics

from common import CONNECTIONS, ask, fill, load, tesela
from functions import cpu_seconds

ITEMS = 1000
PROCEDURES = {
    "nothing": "function (item) { getContext().getResponse().setBody(item.id); }",
    "keep": "function (item) { const c = getContext().getCollection(); if (!c.upsertDocument(c.getSelfLink(), item)) throw new Error('not now'); }",
}


def turn(server, mode, seconds, **more):
    """One turn, with the processor time of all that takes part."""
    before = cpu_seconds(server)
    result = load(server, mode, seconds, items=ITEMS, connections=CONNECTIONS, **{"warm-up": 0}, **more)
    result["cpuMicros"] = (cpu_seconds(server) - before) / max(1, result["requests"]) * 1e6
    if result["errors"]:
        server.fail(f"{mode}: {result['status']}")
    return result


def measure_procedures(report, folder, o):
    with tesela(folder, "procedures", "--throttling", "off") as server:
        fill(server, ITEMS)
        for name, body in PROCEDURES.items():
            ask(server, "POST", "/dbs/bench/colls/items/sprocs", "sprocs", "dbs/bench/colls/items", {"id": name, "body": body})
        for name, words in (("nothing", "that does nothing"), ("keep", "that upserts an item of 1 KB")):
            execute = lambda: turn(server, "execute", o.seconds, path=name)
            upsert = lambda: turn(server, "upsert", o.seconds)
            execute()
            pairs = [(execute(), upsert()) for _ in range(o.rounds)]
            report.raw[f"sproc {name}"] = pairs
            ours, plain = ([statistics.median(pair[side][what] for pair in pairs) for what in ("cpuMicros", "rate")] for side in (0, 1))
            report.add(f"a stored procedure {words}: processor time a call", f"{ours[0]:.0f} µs", "", None,
                       f"{ours[1]:,.0f}/s with {CONNECTIONS} connections; an upsert by itself {plain[0]:.0f} µs, {plain[1]:,.0f}/s")
