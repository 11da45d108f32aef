"""`--against BINARY`: this build beside another one of tesela, in turns, so that a change can be shown to cost nothing.

Both serve the same items. The order within a round alternates, since whoever comes second finds a warmer processor."""
import contextlib
import pathlib

from common import create, fill, load, tesela
from queries import SCAN_POLICY, ask_http, fill_records, wait_until_idle

ITEMS = 20_000
RECORDS = 100_000
ASKED = ("email", "city", "latest", "count")


def open_pair(stack, folder, name, binary, *flags):
    ours = stack.enter_context(tesela(folder, f"{name}-new", *flags))
    theirs = stack.enter_context(tesela(folder, f"{name}-old", *flags, binary=binary))
    return ours, theirs


def take_rounds(report, what, key, pair, work, rounds):
    """work(server) measures one turn."""
    results = []
    for round_ in range(-1, rounds):
        order = pair if round_ % 2 else pair[::-1]
        turn = {server: work(server) for server in order}
        if round_ >= 0:
            results.append((turn[pair[0]], turn[pair[1]]))
    report.ratio(f"this build against the other: {what}", results, None, f"against-{key}")


def measure_points(report, folder, binary, o):
    for ranges in (1, 100):
        with contextlib.ExitStack() as stack:
            pair = open_pair(stack, folder, f"points-{ranges}", binary, "--partition-max-throughput", str(1_000_000 // ranges))
            for server in pair:
                fill(server, ITEMS, bulk=0)
                wait_until_idle(server)
            words = "1 range" if ranges == 1 else f"{ranges} ranges"
            take_rounds(report, f"point read, {words}", f"read{ranges}", pair, lambda server: load(server, "read", o.seconds, items=ITEMS), o.rounds)
            take_rounds(report, f"create, {words}", f"create{ranges}", pair, lambda server: create(server, o.seconds), o.rounds)


def measure_queries(report, folder, binary, o):
    with contextlib.ExitStack() as stack:
        pair = open_pair(stack, folder, "queries", binary, "--throttling", "off")
        for server in pair:
            fill_records(server, "id", RECORDS, policy=SCAN_POLICY)
            wait_until_idle(server)
        for name in ASKED:
            take_rounds(report, f"query '{name}'", f"query-{name}", pair, lambda server, name=name: ask_http(server, name, RECORDS, o.seconds), o.rounds)


def measure_versions(report, folder, o):
    binary = pathlib.Path(o.against).resolve()
    measure_points(report, folder, binary, o)
    measure_queries(report, folder, binary, o)
