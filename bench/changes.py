"""The group `--only changes`: the change feed against the plain feed of the same items, and what a page costs at any place."""
import http.client
import statistics
import time

from common import fill, signed_fields, tesela

PATH = "/dbs/bench/colls/items/docs"
LINK = "dbs/bench/colls/items"
CHANGES = {"a-im": "Incremental feed"}


class Reader:
    """One connection; answers are read whole and not looked into."""

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def page(self, fields, expected=(200, 304)):
        self.connection.request("GET", PATH, None, {**signed_fields("GET", "docs", LINK), **fields})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status not in expected:
            self.server.fail(f"a page answered {answer.status}: {body[:500]}")
        return answer, len(body)

    def read_all(self, changes):
        """Pages of 1,000 to the end: items, bytes, seconds, the server's time of an item, the 99th percentile of a page's."""
        items = size = 0
        place, times = None, []
        cpu, begun = self.server.cpu_seconds(), time.monotonic()
        while True:
            fields = {"x-ms-max-item-count": "1000", **(CHANGES if changes else {})}
            if place:
                fields["if-none-match" if changes else "x-ms-continuation"] = place
            asked = time.monotonic()
            answer, n = self.page(fields)
            times.append((time.monotonic() - asked) * 1e6)
            items += int(answer.headers.get("x-ms-item-count", 0))
            size += n
            place = answer.headers.get("etag" if changes else "x-ms-continuation")
            if answer.status == 304 or not place:
                break
        seconds = time.monotonic() - begun
        return {"items": items, "bytes": size, "seconds": seconds, "rate": items / seconds, "microseconds": {"p99": sorted(times)[len(times) * 99 // 100]},
                "serverCpuMicros": (self.server.cpu_seconds() - cpu) * 1e6 / items}

    def at(self, lsn, count, seconds):
        """The same page again and again: milliseconds each, the server's microseconds each."""
        times = []
        cpu, end = self.server.cpu_seconds(), time.monotonic() + seconds
        while time.monotonic() < end or len(times) < 20:
            begun = time.monotonic()
            answer, _ = self.page({**CHANGES, "if-none-match": f'"{lsn}"', "x-ms-max-item-count": str(count)})
            times.append((time.monotonic() - begun) * 1000)
        if int(answer.headers.get("x-ms-item-count", 0)) not in (0, count):
            self.server.fail("a page has another number of items")
        return statistics.median(times), (self.server.cpu_seconds() - cpu) * 1e6 / len(times), float(answer.headers["x-ms-request-charge"])


def measure_changes(report, folder, o):
    with tesela(folder, "changes") as server:
        fill(server, o.many)
        time.sleep(2)
        reader = Reader(server)
        reader.read_all(False)  # what is read has been touched
        pairs = [(reader.read_all(True), reader.read_all(False)) for _ in range(max(2, o.rounds // 2))]
        for changes, plain in pairs:
            if changes["items"] != o.many or plain["items"] != o.many:
                server.fail(f"a feed of {changes['items']} and {plain['items']} items, not {o.many}")
        report.ratio(f"the change feed of {o.many:,} items, 1,000 a page, against the plain feed", pairs, None, "changes")
        mb = statistics.median(changes["bytes"] / changes["seconds"] / 1e6 for changes, _ in pairs)
        report.add("… in MB of answers", f"{mb:,.0f} MB/s", "", None, "one connection, client and server on the same machine")
        places = {"beginning": 0, "middle": o.many // 2, "end": o.many - 200}
        found = {name: reader.at(lsn, 100, o.seconds) for name, lsn in places.items()}
        report.raw["changesPages"] = found
        words = "; ".join(f"{name} {ms:.2f} ms, server CPU {cpu:.0f} µs, {ru:g} RU" for name, (ms, cpu, ru) in found.items())
        ratio = found["end"][1] / found["beginning"][1]
        report.add(f"a page of 100 at the end of {o.many:,} items against one at the beginning, server CPU", f"{ratio:.2f}", "≤ 1.3", ratio <= 1.3, words)
        ms, cpu, ru = reader.at(o.many, 100, o.seconds)
        report.add("nothing new (304)", f"{ms:.2f} ms", "", None, f"server CPU {cpu:.0f} µs, {ru:g} RU")
