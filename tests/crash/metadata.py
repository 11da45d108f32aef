"""metadata.py: databases and containers that come and go under the same kills.

Each worker has a database of its own. Its model is None, or {container name: (rid, ids of the items acknowledged in it)}. One request at a
time, so at most one is in doubt: the state before it or the state after it must be found, nothing between.
"""
import json
import random

from tesela import Broken, Client, check

NAMES = ["a", "b", "c", "d e"]
PROPERTIES = {"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}}


class Database:
    def __init__(self, number, seed):
        self.name = f"churn{number}"
        self.random = random.Random(f"{seed}/database {number}")
        self.state = None  # or {name: {"rid": …, "items": {ids}}}
        self.doubt = None  # ("create database", …) and so on: the request without an answer
        self.rids = set()  # all ever given: a name made again is another container
        self.made = self.acknowledged = 0
        self.failure = None

    def link(self, name):
        return f"dbs/{self.name}/colls/{name}"

    def run(self, port):
        try:
            client = Client(port)
        except OSError:
            return
        try:
            while True:
                self.step(client)
        except Broken as broken:
            self.failure = broken
        except OSError:
            pass
        finally:
            client.close()

    def step(self, client):
        if self.state is None:
            self.create_database(client)
            return
        name = self.random.choice(NAMES)
        chance = self.random.random()
        if chance < 0.04:
            self.delete_database(client)
        elif name not in self.state:
            self.create_container(client, name)
        elif chance < 0.35:
            self.delete_container(client, name)
        elif chance < 0.45:
            self.replace_container(client, name)
        else:
            self.create_item(client, name)

    def ask(self, doubt, send):
        self.doubt = doubt
        answer = send()
        self.doubt = None
        self.acknowledged += 1
        return answer

    def new_rid(self, rid):
        check(rid not in self.rids, f"{self.name}: the rid {rid} was given out twice")
        self.rids.add(rid)
        return rid

    # -- requests --

    def create_database(self, client):
        fields = {"x_ms_offer_throughput": 400} if self.random.random() < 0.5 else {}
        answer = self.ask(("create database",), lambda: client.create_database(self.name, **fields))
        check(answer.status == 201, f"{self.name}: create: {answer.error()}")
        self.new_rid(answer.json()["_rid"])
        self.state = {}

    def delete_database(self, client):
        answer = self.ask(("delete database",), lambda: client.delete("dbs", f"dbs/{self.name}"))
        check(answer.status == 204, f"{self.name}: delete: {answer.error()}")
        self.state = None

    def create_container(self, client, name):
        throughput = self.random.choice([None, 400, 2000])
        answer = self.ask(("create", name), lambda: client.create_container(self.name, {"id": name, **PROPERTIES}, throughput))
        check(answer.status == 201, f"{self.link(name)}: create: {answer.error()}")
        self.state[name] = {"rid": self.new_rid(answer.json()["_rid"]), "items": set()}

    def delete_container(self, client, name):
        answer = self.ask(("delete", name), lambda: client.delete("colls", self.link(name)))
        check(answer.status == 204, f"{self.link(name)}: delete: {answer.error()}")
        del self.state[name]

    def replace_container(self, client, name):
        properties = {"id": name, **PROPERTIES, "defaultTtl": self.random.choice([-1, 100000])}
        link = self.link(name)
        answer = self.ask(("replace", name), lambda: client.ask("PUT", "/" + link, "colls", link, properties))
        check(answer.status == 200, f"{link}: replace: {answer.error()}")
        check(answer.json()["_rid"] == self.state[name]["rid"], f"{link}: a replace changed its _rid")

    def create_item(self, client, name):
        self.made += 1
        item = f"i{self.made}"
        answer = self.ask(("item", name, item), lambda: client.create(self.link(name), {"id": item, "x": "y" * 100}, [item]))
        check(answer.status == 201, f"{self.link(name)}: create item: {answer.error()}")
        self.state[name]["items"].add(item)

    # -- after a restart --

    def verify(self, client):
        doubt, self.doubt = self.doubt or (None,), None
        there = self.name in [database["id"] for database in client.databases()]
        if doubt[0] in ("create database", "delete database"):
            # The one is there, and empty; or is gone, or still there with all it had.
            self.state = None if not there else {} if doubt[0] == "create database" else self.state
        check(there == (self.state is not None), f"{self.name}: database {'is there' if there else 'is gone'}, acknowledged was otherwise")
        if self.state is None:
            answer = client.get("dbs", f"dbs/{self.name}")
            check(answer.status == 404, f"{self.name}: {answer.error()}")
            return
        self.rids.add(client.get("dbs", f"dbs/{self.name}").json()["_rid"])
        found = {container["id"]: container for container in client.containers(self.name)}
        if doubt[0] == "create" and doubt[1] in found:
            self.state[doubt[1]] = {"rid": self.new_rid(found[doubt[1]]["_rid"]), "items": set()}
        if doubt[0] == "delete" and doubt[1] not in found:
            del self.state[doubt[1]]
        check(set(found) == set(self.state), f"{self.name}: containers {sorted(found)}, acknowledged {sorted(self.state)}")
        for name, container in found.items():
            self.verify_container(client, name, container, doubt)

    def verify_container(self, client, name, container, doubt):
        """Whole: its ranges, its items and its count are there, and it takes a write."""
        link, expected = self.link(name), self.state[name]
        check(container["_rid"] == expected["rid"], f"{link}: _rid is {container['_rid']}, was {expected['rid']}")
        check(len(client.ranges(link)) >= 1, f"{link}: no ranges")
        items = {document["id"] for document in client.items(link)}
        if doubt[:2] == ("item", name) and doubt[2] in items:
            expected["items"].add(doubt[2])
        check(items == expected["items"], f"{link}: items {sorted(items)}, acknowledged {sorted(expected['items'])}")
        check(client.count(link) == len(items), f"{link}: documentsCount {client.count(link)}, there are {len(items)}")
        probe = client.create(link, {"id": "probe"}, ["probe"])
        gone = client.item("DELETE", link, "probe", ["probe"])
        check((probe.status, gone.status) == (201, 204), f"{link}: takes no writes: {probe.error()} {gone.error()}")


def verify_offers(client):
    """Every offer is of a database or container that is there, and there is one for every container that shares none."""
    offers = client.offers()
    resources = [offer["offerResourceId"] for offer in offers]
    check(len(set(resources)) == len(resources), f"two offers for one resource: {sorted(resources)}")
    there, without = set(), set()
    for database in client.databases():
        there.add(database["_rid"])
        shared = database["_rid"] in resources
        for container in client.containers(database["id"]):
            there.add(container["_rid"])
            if not shared and container["_rid"] not in resources:
                without.add(container["id"])
    check(set(resources) <= there, f"offers of nothing: {sorted(set(resources) - there)}")
    check(not without, f"containers without throughput: {sorted(without)}")
