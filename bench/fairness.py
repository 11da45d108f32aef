"""`--only fairness`: what a client of one container waits while forty connections with a read token send heavy JOINs to another."""
import http.client
import json
import subprocess
import time
import urllib.parse

from common import BUILD, ask, fill, run_tool, signed_fields, tesela

ATTACKERS = 40
GOAL = 3
# 360,000 pairs for each of 150 items: a page takes the five seconds that it may, costs 13 RU, and has no rows. A larger array would end
# in 408, which costs so much that the container's share is spent for a minute.
HEAVY = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.a JOIN b IN c.a WHERE a + b < 0"
VICTIM = "dbs/bench/colls/items"


def raw(folder, name, server, verb, path, fields, body=""):
    """A whole request in a file, for tesela-load --mode raw."""
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {server.url}", *(f"{key}: {value}" for key, value in fields.items())]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    file = folder / f"{name}.http"
    file.write_text("\r\n".join(lines) + "\r\n\r\n" + body, newline="")
    return file


def make_attack(folder, server, round_):
    """A container of 400 RU/s, and what an attacker sends with a token that may only read it. Another for each round: when attackers leave, what
    they had begun is charged, and then they are refused for minutes."""
    link = f"dbs/bench/colls/attack{round_}"
    policy = {"indexingMode": "none", "automatic": False}
    container = {"id": f"attack{round_}", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "indexingPolicy": policy}
    ask(server, "POST", "/dbs/bench/colls", "colls", "dbs/bench", container, {"x-ms-offer-throughput": "400"})
    for i in range(150):
        item = {"id": str(i), "pk": "x", "a": list(range(600))}
        ask(server, "POST", f"/{link}/docs", "docs", link, item, {"x-ms-documentdb-partitionkey": '["x"]'})
        time.sleep(0.05)  # it may spend 400 RU a second
    ask(server, "POST", "/dbs/bench/users", "users", "dbs/bench", {"id": f"u{round_}"})
    permission = {"id": "p", "permissionMode": "Read", "resource": link}
    token = ask(server, "POST", f"/dbs/bench/users/u{round_}/permissions", "permissions", f"dbs/bench/users/u{round_}", permission)[0]["_token"]
    fields = {
        "authorization": urllib.parse.quote(token, safe=""),
        "x-ms-version": "2020-07-15",
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-partitionkey": '["x"]',
    }
    return raw(folder, "attack", server, "POST", f"/{link}/docs", fields, json.dumps({"query": HEAVY}))


def make_victims(folder, server):
    query = {"content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-documentdb-isquery": "True"}
    item = ask(server, "GET", f"/{VICTIM}/docs", "docs", VICTIM, more={"x-ms-max-item-count": "1"})[0]["Documents"][0]
    link = f"{VICTIM}/docs/{item['id']}"
    key = json.dumps([item["pk"]])
    plan = {"x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-supported-query-features": "Aggregate, OrderBy, Distinct, GroupBy"}
    text = json.dumps({"query": "SELECT c.id FROM c WHERE c.id > '5' ORDER BY c.id"})
    posted, listed = signed_fields("POST", "docs", VICTIM), signed_fields("GET", "docs", VICTIM)
    return {
        "point read": raw(folder, "read", server, "GET", f"/{link}", {**signed_fields("GET", "docs", link), "x-ms-documentdb-partitionkey": key}),
        "page of 100 items": raw(folder, "page", server, "GET", f"/{VICTIM}/docs", {**listed, "x-ms-max-item-count": "100"}),
        "query plan": raw(folder, "plan", server, "POST", f"/{VICTIM}/docs", {**posted, **query, **plan}, text),
    }


def victim(server, file, seconds):
    """One connection, one request after the other."""
    result = run_tool("tesela-load", "--url", server.url, "--mode", "raw", "--file", file, "--connections", 1, "--seconds", seconds, "--warm-up", 0.5,
                      "--least", 20)
    if result["errors"]:
        server.fail(f"the victim was refused: {json.dumps(result)}")
    return result["microseconds"]


def attack(server, file, patient):
    """Until it is told to stop. What comes of it goes to the attackers' log."""
    command = [BUILD / "bench/tesela-load", "--url", server.url, "--mode", "raw", "--file", file, "--connections", str(ATTACKERS), "--warm-up", "0"]
    return subprocess.Popen([*command, "--seconds", "600", *(["--patient"] if patient else [])], stdout=subprocess.DEVNULL)


def at_work(server):
    """How many of the attackers' queries workers have."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return sum(int(line.split()[1]) for line in lines if line.startswith('tesela_work{lane="pages"'))


def measure_fairness(report, folder, o):
    """Alone and attacked take turns. Throttling is on, as served; the victim's share is large."""
    with tesela(folder, "fairness") as server:
        fill(server, 10_000)
        victims = make_victims(folder, server)
        seen = {name: {"alone": [], "attacked": [], "attackers at work": []} for name in victims}
        for round_ in range(max(2, o.rounds // 2)):
            file = make_attack(folder, server, round_)
            time.sleep(1)
            for name, request in victims.items():
                seen[name]["alone"].append(victim(server, request, o.seconds))
            attackers = attack(server, file, o.patient)
            time.sleep(1)
            for name, request in victims.items():
                seen[name]["attacked"].append(victim(server, request, o.seconds))
                seen[name]["attackers at work"].append(at_work(server))
            attackers.terminate()
            attackers.wait()
        report.raw["fairness"] = seen
        for name, states in seen.items():
            add_figures(report, name, states)


def add_figures(report, name, states):
    middle = lambda state, which: sorted(round_[which] for round_ in states[state])[len(states[state]) // 2] / 1000
    p50, p99 = ([middle(state, which) for state in ("alone", "attacked")] for which in ("p50", "p99"))
    ratio = p99[1] / p99[0]
    report.add(f"{name}, p99 beside {ATTACKERS} attackers, alone being 1", f"{ratio:.1f}", f"≤ {GOAL}", ratio <= GOAL,
               f"p99 {p99[0]:.2f} and {p99[1]:.2f} ms, p50 {p50[0]:.2f} and {p50[1]:.2f} ms; attackers at work: {states['attackers at work']}")
