"""Work on a container that has grown, for `--only growth`: the same records by creates, splits and moves, deleting, a new index policy, and starts
with a large log."""
import json
import shutil
import signal
import subprocess
import time

from common import BUILD, CONNECTIONS, ask, count_ranges, load, rate_text, run_tool, scale, tesela
from queries import default_cache, fill_records, wait_until_idle

LINK = "dbs/bench/colls/{}"
PAGE, BULK, SCANS = 1000, 100, 4
LEFT_MOST = 0.6  # of the tables, after half of the records were deleted
SPACE_SECONDS, BUILD_SECONDS, MOVE_SECONDS, REST_SECONDS, QUIET_SECONDS = 120, 120, 15, 20, 9  # some seconds after a load the store merges what it left
LARGE_LOG = 512 << 20
GARBAGE, GARBAGE_BYTES = 0.25, 1 << 20  # deletes as a part of the rest; the store leaves smaller families alone
RANGE_THROUGHPUT = 500_000  # a range's most, so that twice as much makes two of them; nothing is throttled
PROGRESS = "x-ms-documentdb-collection-index-transformation-progress"


def figures(server):
    (store,) = ask(server, "GET", "/_tesela/store")[0]["stores"]
    return store


def written_by(family):
    return family["loggedBytes"] + family["flushedBytes"] + family["ingestedBytes"] + family["compactedBytes"]


def written(store):
    return sum(written_by(family) for family in store["families"])


def guarded(report, what, work):
    """A part that fails costs its own lines only."""
    try:
        return work()
    except (Exception, SystemExit) as why:  # noqa: BLE001: server.fail and run_tool exit
        report.add(f"growth: {what}", "-", "", False, f"it failed: {' '.join(str(why).split())[:200]}")
        return None


# ---- creates ----


def settle(server):
    """Seconds until nothing is left to merge."""
    return max(0, wait_until_idle(server, quiet=QUIET_SECONDS) - QUIET_SECONDS)


def fill_by_creates(server, items):
    """Makes so many records one by one, synced. Processor time includes the compaction that follows, `settled` is how long that took."""
    cpu = server.cpu_seconds()
    result = run_tool("tesela-load", "--url", server.url, "--mode", "load", "--items", items, "--connections", CONNECTIONS, "--partition", "id", "--container", "id",
                      "--setup", "--throughput", RANGE_THROUGHPUT)
    if result["errors"] or result["requests"] != items:
        server.fail(f"the records could not be made: {result}")
    settled = settle(server)
    return {"seconds": result["seconds"], "settled": settled, "cpuMicros": (server.cpu_seconds() - cpu) * 1e6 / items}


def report_by_creates(report, folder, items, bulk):
    """What the same records cost one by one in a container of their own."""
    with tesela(folder, "creates", "--throttling", "off", "--partition-max-throughput", str(RANGE_THROUGHPUT), "--cache", str(default_cache())) as server:
        made = fill_by_creates(server, items)
    shutil.rmtree(server.data, ignore_errors=True)
    ratio = made["seconds"] / items * bulk["items"] / bulk["seconds"]
    report.raw[f"growth-creates-{items}"] = made
    report.add("growth: records by requests of 100, against synced creates", f"{ratio:.2f}", "≥ 2", ratio >= 2,
               f"{bulk['items']:,} in {bulk['seconds']:.1f} s and {items:,} in {made['seconds']:.1f} s, then {bulk['settled']:.0f} and {made['settled']:.0f} s of compaction; "
               f"processor time {bulk['cpuMicros']:.0f} and {made['cpuMicros']:.0f} µs an item, compaction included")


# ---- splits ----


def begin_clients(server, items, seconds):
    command = [BUILD / "bench/tesela-load", "--url", server.url, "--seconds", str(seconds), "--warm-up", "0", "--partition", "id", "--container", "id",
               "--items", str(items), "--connections", "16"]
    return [subprocess.Popen([*command, "--mode", mode], stdout=subprocess.PIPE) for mode in ("read", "upsert")]


def end_clients(clients, seconds):
    try:
        return [json.loads(client.communicate(timeout=seconds + 60)[0]) for client in clients]
    finally:
        for client in clients:
            client.kill()


def is_moving(server):
    return any(range_["moving"] for range_ in ask(server, "GET", "/_tesela/ranges")[0]["ranges"])


def watch_move(server, most):
    """Items moved, seconds, bytes written for each item, and whether the move ended; nobody else uses the server."""
    before, began = figures(server), time.monotonic()
    while is_moving(server) and time.monotonic() - began < most:
        time.sleep(0.2)
    seconds, after, ended = time.monotonic() - began, figures(server), not is_moving(server)
    items = {family["name"]: family for family in after["families"]}["items"]
    each = items["valueBytes"] / max(1, items["entries"])
    moved = (items["loggedBytes"] - {family["name"]: family for family in before["families"]}["items"]["loggedBytes"]) / max(1, each)
    return moved, seconds, (written(after) - written(before)) / max(1, moved), ended


def report_split(report, server, size, o):
    """One range is split into two, half of the items move: under load for a while, then alone for a minute at most."""
    alone = end_clients(begin_clients(server, size, 2 * o.seconds), 2 * o.seconds)
    clients = begin_clients(server, size, 2 * o.seconds)
    try:
        time.sleep(o.seconds / 4)
        scale(server, 2 * RANGE_THROUGHPUT)
        begun = time.monotonic()
        while count_ranges(server, "id") == 1 and time.monotonic() - begun < 30:
            time.sleep(0.01)
        split = time.monotonic() - begun
    finally:
        during = end_clients(clients, 2 * o.seconds)
    events = ask(server, "GET", "/_tesela/events")[0]
    held = max((event["heldUs"] / 1000 for event in (events["events"] if isinstance(events, dict) else events)), default=0)
    moved, seconds, each, ended = watch_move(server, MOVE_SECONDS)
    errors = sum(result["errors"] for result in during)
    report.raw[f"growth-split-{size}"] = {"alone": alone, "during": during, "splitSeconds": split, "heldMs": held, "moved": moved, "moveSeconds": seconds,
                                          "bytesEach": each, "ended": ended}
    for which, name in enumerate(("reads", "upserts")):
        ratio = during[which]["rate"] / alone[which]["rate"]
        report.add(f"growth: {name} while a range of {size:,} splits and its items move, against without", f"{ratio:.2f}", "≥ 0.5", ratio >= 0.5 and not errors,
                   f"{rate_text(during[which]['rate'])}; longest {during[which]['microseconds']['max'] / 1000:.0f} and {alone[which]['microseconds']['max'] / 1000:.0f} ms")
    report.add(f"growth: split of {size:,} records, time that it held the writer", f"{held:.1f} ms", "≤ 10 ms", held <= 10, f"there after {split:.2f} s; {errors} requests failed")
    if moved >= 1:
        whole = size / 2 / (moved / seconds)
        report.add(f"growth: moving half of {size:,} records, nothing else to do", rate_text(moved / seconds), "", None,
                   f"{each:,.0f} bytes written for each; all of it {'took' if ended else 'would take'} about {whole:,.0f} s")


# ---- less ----


def pages(server, container):
    """All items, page by page, as a scan reads them."""
    link, token = LINK.format(container), None
    while True:
        more = {"x-ms-max-item-count": str(PAGE), **({"x-ms-continuation": token} if token else {})}
        answer, fields = ask(server, "GET", f"/{link}/docs", "docs", link, more=more)
        yield answer["Documents"]
        token = fields.get("x-ms-continuation")
        if not token:
            return


def scan(server, container):
    """Processor time of the server for each record that is left, in µs, and how many are. One scan is short for a clock of hundredths of a second."""
    before = server.cpu_seconds()
    for _ in range(SCANS):
        left = sum(len(page) for page in pages(server, container))
    return (server.cpu_seconds() - before) * 1e6 / max(1, SCANS * left), left


def delete_by_item(server, container):
    link = LINK.format(container)
    more = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "false", "x-ms-documentdb-partitionkeyrangeid": "0", "prefer": "return=minimal"}
    ids = [(item["id"], item["device"]) for page in pages(server, container) for item in page[::2]]
    for at in range(0, len(ids), BULK):
        body = [{"operationType": "Delete", "id": name, "partitionKey": json.dumps([key])} for name, key in ids[at:at + BULK]]
        ask(server, "POST", f"/{link}/docs", "docs", link, body, more)


def delete_by_key(server, container):
    link = LINK.format(container)
    for device in range(0, 1000, 2):
        ask(server, "POST", f"/{link}/operations/partitionkeydelete", "colls", link, more={"x-ms-documentdb-partitionkey": json.dumps([f"device-{device:04}"])})


def replace_container(server, container, **changes):
    link = LINK.format(container)
    settings, _ = ask(server, "GET", f"/{link}", "colls", link)
    return ask(server, "PUT", f"/{link}", "colls", link, {**{name: value for name, value in settings.items() if not name.startswith("_")}, **changes})


def delete_by_ttl(server, container):
    replace_container(server, container, defaultTtl=1)


def delete_container(server, container):
    link = LINK.format(container)
    ask(server, "DELETE", f"/{link}", "colls", link)


def tables(server, most):
    """Bytes of items and index, once they are below `most`, or after two minutes."""
    begun = time.monotonic()
    while True:
        store = figures(server)
        seconds = time.monotonic() - begun
        if store["bytes"] <= most or seconds > SPACE_SECONDS:
            return store["bytes"], seconds
        time.sleep(0.5)


def wait_until_merged(server):
    """Until no family is left that the store will merge for its deletes, one after the other; two minutes at most. A merge takes processor time."""
    begun = time.monotonic()
    while time.monotonic() - begun < SPACE_SECONDS:
        if all(family["deletions"] <= GARBAGE * (family["entries"] - family["deletions"]) or family["bytes"] < GARBAGE_BYTES for family in figures(server)["families"]):
            return
        time.sleep(0.5)


DELETIONS = {"by item": (delete_by_item, 0.5), "by partition key": (delete_by_key, 0.5), "by TTL": (delete_by_ttl, 0), "by container": (delete_container, 0)}


def fill_less(folder, name, items, *flags):
    """A server with this many records, all of it in tables."""
    server = tesela(folder, name, "--throttling", "off", *flags)
    fill_records(server, "device", items)
    server.__exit__()
    return tesela(folder, name, "--throttling", "off", *flags)


def report_deletion(report, folder, how, items):
    delete, kept = DELETIONS[how]
    name = "less-" + how.replace(" ", "-")
    with fill_less(folder, name, items) as server:
        wait_until_idle(server, 30, quiet=1)
        before, (cost, _) = figures(server)["bytes"], scan(server, "device")
        began = time.monotonic()
        delete(server, "device")
        took = time.monotonic() - began
        most = LEFT_MOST if kept else 0.1
        after, waited = tables(server, most * before)
        note, scanned = f"deleting took {took:.1f} s, the space was back {waited:.0f} s later", None
        if kept:
            wait_until_merged(server)
            wait_until_idle(server, REST_SECONDS, quiet=3)
            scanned, left = scan(server, "device")
            note += f"; {left:,} records left"
        report.raw[f"growth-less-{how}"] = {"items": items, "before": before, "after": after, "seconds": took, "waited": waited, "scan": [cost, scanned]}
        report.add(f"growth: tables after {'half' if kept else 'all'} of {items:,} records were deleted {how}, against before", f"{after / before:.2f}", f"≤ {most}",
                   after <= most * before, note)
        if kept:
            ratio = scanned / cost
            report.add(f"growth: a scan then, processor time a record, against before", f"{ratio:.2f}", "≤ 1.2", ratio <= 1.2, f"{scanned:.1f} and {cost:.1f} µs")
    shutil.rmtree(server.data, ignore_errors=True)


def progress(server, container):
    link = LINK.format(container)
    return int(ask(server, "GET", f"/{link}", "colls", link)[1][PROGRESS])


def told_seconds(server, passed):
    """When it was asked, and how long the rest will take."""
    seconds = ask(server, "GET", "/_tesela/ranges")[0]["containers"][0]["indexSeconds"]
    return (passed, seconds) if seconds else None


def report_new_policy(report, folder, items, o):
    """A policy with other paths: every entry is written again, while others read."""
    with fill_less(folder, "less-policy", items) as server:
        read = {"items": items, "partition": "device", "container": "device", "warm-up": 0}
        alone = load(server, "read", o.seconds, **read)
        before, began, seen, told = figures(server), time.monotonic(), [], None
        replace_container(server, "device", indexingPolicy={"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/text/?"}]})
        during = load(server, "read", min(o.seconds, 2), **read)
        while (now := progress(server, "device")) < 100 and time.monotonic() - began < BUILD_SECONDS:
            seen.append(now)
            told = told or told_seconds(server, time.monotonic() - began) if now >= 30 else None
            time.sleep(0.1)
        took = time.monotonic() - began
        bytes_each = (written(figures(server)) - written(before)) / items
        ratio = during["rate"] / alone["rate"]
        report.raw["growth-new-policy"] = {"items": items, "seconds": took, "seen": seen, "alone": alone, "during": during, "bytesEach": bytes_each}
        goal = seen and seen == sorted(seen) and now == 100 and abs(told[1] - (took - told[0])) <= max(2, took / 2) if told else False
        report.add(f"growth: a new index policy for {items:,} records", rate_text(items / took), "progress and time told", bool(goal),
                   f"{took:.1f} s; {len(seen)} times progress, from {min(seen, default=100)} % up; "
                   + (f"after {told[0]:.1f} s it told {told[1]} s more" if told else "no time was told") + f"; {bytes_each:,.0f} bytes written for each")
        report.add("growth: point reads meanwhile, against without", f"{ratio:.2f}", "≥ 0.5", ratio >= 0.5, f"{rate_text(during['rate'])} and {rate_text(alone['rate'])}")
    shutil.rmtree(server.data, ignore_errors=True)


def report_less(report, folder, items, o):
    for how in DELETIONS:
        guarded(report, f"deleting {how}", lambda how=how: report_deletion(report, folder, how, items))
    guarded(report, "a new index policy", lambda: report_new_policy(report, folder, items, o))


# ---- unique keys ----


def make_container(server, name, **settings):
    ask(server, "POST", "/dbs/bench/colls", "colls", "dbs/bench", {"id": name, "partitionKey": {"paths": ["/device"], "kind": "Hash", "version": 2}, **settings},
        more={"x-ms-offer-throughput": "1000000"})


def fill_made(server, container, items):
    """Processor time of each record, compaction not included."""
    before = server.cpu_seconds()
    result = run_tool("tesela-load", "--url", server.url, "--mode", "load", "--items", items, "--connections", CONNECTIONS, "--partition", "device", "--container", container)
    if result["errors"] or result["requests"] != items:
        server.fail(f"the records could not be made: {result}")
    return (server.cpu_seconds() - before) * 1e6 / items


def report_unique(report, folder, items):
    """Creates into containers with and without a unique key, in turns of a third of the records each."""
    with tesela(folder, "unique", "--throttling", "off", "--partition-max-throughput", str(RANGE_THROUGHPUT)) as server:
        ask(server, "POST", "/dbs", "dbs", "", {"id": "bench"})
        costs = {"plain": [], "unique": []}
        for turn in range(3):
            make_container(server, f"plain{turn}")
            make_container(server, f"unique{turn}", uniqueKeyPolicy={"uniqueKeys": [{"paths": ["/email"]}]})
            for kind in costs:
                costs[kind].append(fill_made(server, f"{kind}{turn}", items // 3))
    shutil.rmtree(server.data, ignore_errors=True)
    plain, unique = (sorted(costs[kind])[1] for kind in ("plain", "unique"))
    report.raw["growth-unique"] = costs
    report.add("growth: a synced create into a container with a unique key, processor time against one without", f"{unique / plain:.2f}", "≤ 1.15", unique <= 1.15 * plain,
               f"{unique:.1f} and {plain:.1f} µs")


# ---- a large log ----


def report_large_log(report, folder, items):
    """The log may have half a gigabyte; the server is killed when most of that is there."""
    flags = ("--throttling", "off", "--store-log", str(LARGE_LOG))
    server = tesela(folder, "log", *flags)
    fill_records(server, "id", items)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(60)
    began = time.monotonic()
    with tesela(folder, "log", *flags) as again:
        ready = time.monotonic() - began
        cpu, replayed = again.cpu_seconds(), figures(again)["replayedBytes"] / 1e6
        report.raw["growth-large-log"] = {"items": items, "readySeconds": ready, "cpuSeconds": cpu, "replayedMB": replayed}
        report.add(f"growth: ready after kill -9, --store-log {LARGE_LOG >> 20}MB", f"{ready:.2f} s", "≤ 3 s", ready <= 3, f"{replayed:.0f} MB of log; {cpu:.2f} s of processor time")
    shutil.rmtree(again.data, ignore_errors=True)
