"""`--only client`: libtesela against the npm SDK on the same server: requests for each second of the client's own processor time, so that other
programs on the machine matter little."""
import base64
import json
import statistics
import subprocess
import sys

import common
from common import EMULATOR_KEY, ROOT, run_tool, tesela


def by_library(server, mode, seconds):
    common.next_item += 10_000_000
    return run_tool("client_load", f"http://{server.url}", mode, seconds, common.next_item)


def by_sdk(server, mode, seconds):
    common.next_item += 10_000_000
    program = ROOT / "bench/client_sdk.mjs"
    done = subprocess.run(["node", program, f"http://{server.url}", base64.b64encode(EMULATOR_KEY).decode(), mode, str(seconds), str(common.next_item)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: client_sdk.mjs: {done.stderr}")
    return json.loads(done.stdout)


def measure_client(report, folder, o):
    with tesela(folder, "client") as server:
        for mode, what in (("read", "point read"), ("create", "create")):
            pairs = [(by_library(server, mode, o.seconds), by_sdk(server, mode, o.seconds)) for _ in range(o.rounds)]
            report.ratio(f"libtesela: {what}, 1 KB, per second of the client's processor time, against @azure/cosmos", pairs, 10, f"client_{mode}")
    with tesela(folder, "ranges", "--partition-max-throughput", "100000", "--partition-initial-throughput", "100000") as server:
        for mode, what in (("bulk", "bulk create, 1 KB items"), ("order", "ORDER BY merged from ten ranges, rows")):
            rounds = [by_library(server, mode, o.seconds) for _ in range(o.rounds)]
            report.raw[f"client_{mode}"] = rounds
            rate, each = (statistics.median(r[name] for r in rounds) for name in ("rate", "perSecond"))
            report.add(f"libtesela: {what}", f"{each:,.0f}/s", "", None, f"{rate:,.0f} for each second of the client's processor time; one thread")
