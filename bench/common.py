"""What all measurements share: servers that are started and stopped, the load generator, requests by hand, the table."""
import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
CONNECTIONS = 32
ITEM_BYTES = 1024


# ---- processes ----


class Server:
    """A process that listens; `with` stops it."""

    def __init__(self, command, name, folder, port=None, env=None, seconds=30):
        self.name, self.folder = name, folder
        self.log = open(folder / f"{name}.log", "wb")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE if port is None else self.log, stderr=self.log, env=env)
        self.port = port or self.ready_port()
        wait_for_port(self, seconds)

    def ready_port(self):
        """Our own server says where it listens in its first line."""
        line = self.process.stdout.readline()
        if not line:
            self.fail("it ended before it was ready")
        self.ready = json.loads(line)
        return int(self.ready["sql"].rsplit(":", 1)[1])

    def fail(self, why):
        sys.exit(f"bench: {self.name}: {why}\n" + (self.folder / f"{self.name}.log").read_text(errors="replace")[-2000:])

    @property
    def url(self):
        return f"127.0.0.1:{self.port}"

    def memory_mb(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        """Of the process and of the children it has now (nginx works in one)."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sum(cpu_of(pid) for pid in [self.process.pid, *children])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_port(server, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.process.poll() is not None:
            server.fail("it ended")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
            return
        time.sleep(0.002)
    server.fail("it does not listen")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tesela(folder, name="tesela", *flags, binary=BUILD / "tesela"):
    """One range that may do any rate: the throttle is not what is measured."""
    data = folder / f"{name}-data"
    command = [binary, "serve", "--data", data, "--sql-port", "0", "--partition-max-throughput", "1000000", *flags]
    server = Server(command, name, folder)
    server.data = data
    return server


def nginx(folder, workers):
    port = free_port()
    page = folder / "html/dbs/bench/colls/items/docs/item.json"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(json.dumps({"id": "item", "note": "x" * (ITEM_BYTES - 26)}, separators=(",", ":")).ljust(ITEM_BYTES)[:ITEM_BYTES])
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # otherwise its worker becomes someone who may not read the folder
    config.write_text(f"""
        {user} worker_processes {workers}; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
        events {{ worker_connections 4096; }}
        http {{
            access_log off; default_type application/json; keepalive_requests 1000000000;
            sendfile on; tcp_nopush on; tcp_nodelay on; open_file_cache max=100 inactive=1h;
            client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
            uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
            server {{ listen 127.0.0.1:{port}; root {folder}/html; }}
        }}""")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return Server([program, "-c", config], "nginx", folder, port)


def zeit(folder):
    port = free_port()
    program = ROOT / "bench/node_modules/@zeit/cosmosdb-server/lib/cli.js"
    return Server(["node", program, "--no-ssl", "--host", "127.0.0.1", "-p", str(port)], "zeit", folder, port)


# ---- load ----


def run_tool(name, *flags):
    done = subprocess.run([BUILD / "bench" / name, *map(str, flags)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {name} {' '.join(map(str, flags))}: {done.stderr}")
    return json.loads(done.stdout)


def load(server, mode, seconds, **more):
    flags = {"connections": CONNECTIONS, "size": ITEM_BYTES, "warm-up": min(1, seconds / 4), **more}
    before = server.cpu_seconds()
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    result = run_tool("tesela-load", "--url", server.url, "--mode", mode, "--seconds", seconds, *words)
    result["serverCpuMicros"] = (server.cpu_seconds() - before) * 1e6 / max(1, result["requests"] * (1 + flags["warm-up"] / seconds))
    if result["errors"] > result["requests"] / 1000:
        sys.exit(f"bench: {server.name}: {mode}: too many errors: {json.dumps(result)}")
    return result


CALM_SECONDS = 30


def calm(*servers):
    """Waits until no server works in the background, at most CALM_SECONDS: merging or writing what was inserted."""
    end = time.monotonic() + CALM_SECONDS
    while time.monotonic() < end:
        before = [server.cpu_seconds() for server in servers]
        time.sleep(0.5)
        if all(server.cpu_seconds() - used < 0.05 for server, used in zip(servers, before)):
            return


EMULATOR_KEY = base64.b64decode("C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")


def signed_fields(verb, kind, link):
    date = email.utils.formatdate(usegmt=True).lower()
    text = f"{verb.lower()}\n{kind}\n{link}\n{date}\n\n"
    signature = base64.b64encode(hmac.new(EMULATOR_KEY, text.encode(), hashlib.sha256).digest()).decode()
    return {
        "authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe=""),
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        "content-type": "application/json",
    }


def ask(server, verb, path, kind="", link="", body=None, more=None):
    """One signed request; the answer's JSON and header fields."""
    fields = {**signed_fields(verb, kind, link), **(more or {})}
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request(verb, path, json.dumps(body) if body is not None else None, fields)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status >= 300:
        server.fail(f"{verb} {path} answered {answer.status}: {content.decode(errors='replace')}")
    return (json.loads(content) if content else None), answer.headers


def scale(server, throughput):
    """Changes the throughput of the only container."""
    (offer,) = ask(server, "GET", "/offers", "offers")[0]["Offers"]
    offer["content"] = {"offerThroughput": throughput}
    ask(server, "PUT", f"/offers/{offer['_rid']}", "offers", offer["_rid"].lower(), offer)


def count_ranges(server, container="items"):
    link = f"dbs/bench/colls/{container}"
    return ask(server, "GET", f"/{link}/pkranges", "pkranges", link)[0]["_count"]


def fill(server, items, bulk=100, throughput=1000000):
    flags = ["--url", server.url, "--setup", "--mode", "load", "--items", items, "--size", ITEM_BYTES, "--connections", 16]
    flags += ["--throughput", throughput] if server.name != "zeit" else []
    result = run_tool("tesela-load", *flags, *(["--bulk", bulk] if bulk else []))
    expected = items // bulk if bulk else items
    if result["errors"] or result["requests"] != expected:
        sys.exit(f"bench: {server.name}: the items could not be loaded: {json.dumps(result)}")
    return result


def read_nginx(server, seconds):
    return load(server, "get", seconds, path="/dbs/bench/colls/items/docs/item.json")


next_item = 1_000_000_000  # creates never meet an item that is there


def create(server, seconds, connections=CONNECTIONS, **more):
    global next_item
    result = load(server, "create", seconds, first=next_item, connections=connections, **more)
    next_item += 10_000_000
    return result


def rate_text(rate):
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"


class Report:
    def __init__(self):
        self.rows, self.raw = [], {}

    def add(self, what, figure, goal, met, note=""):
        self.rows.append({"what": what, "figure": figure, "goal": goal, "met": met, "note": note})
        print(f"  {what}: {figure}   {note}", file=sys.stderr)

    def ratio(self, what, pairs, goal, key, why_short=""):
        """pairs: a list of (ours, theirs) results, one of each round. why_short: is said if the goal is not met."""
        ratio = statistics.median(ours["rate"] / theirs["rate"] for ours, theirs in pairs)
        ours, theirs = (statistics.median(pair[i]["rate"] for pair in pairs) for i in (0, 1))
        latency = statistics.median(pair[0].get("microseconds", {}).get("p99", 0) for pair in pairs)
        note = f"{rate_text(ours)} against {rate_text(theirs)}; p99 {latency / 1000:.2f} ms"
        cpu = [statistics.median(pair[i].get("serverCpuMicros", 0) for pair in pairs) for i in (0, 1)]
        if all(cpu):
            note += f"; server CPU {cpu[0]:.1f} µs against {cpu[1]:.1f} µs a request"
        if goal and ratio < goal and why_short:
            note += f"; why: {why_short}"
        self.raw[key] = {"ratio": ratio, "rounds": pairs}
        self.add(what, f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}", f"≥ {goal}" if goal else "", None if goal is None else ratio >= goal, note)

    def print(self):
        width = max(len(row["what"]) for row in self.rows)
        print(f"\n| {'work':{width}} | measured | goal | met |  |\n|{'-' * (width + 2)}|---:|---|---|---|")
        for row in self.rows:
            met = {True: "yes", False: "**no**", None: ""}[row["met"]]
            print(f"| {row['what']:{width}} | {row['figure']} | {row['goal']} | {met} | {row['note']} |")

    def save(self, path, settings):
        path.write_text(json.dumps({"settings": settings, "rows": self.rows, "raw": self.raw}, indent=1) + "\n")
