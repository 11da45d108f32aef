"""reshape.py: ranges split, merge and move under load, and the server is killed in the middle of it.

Small partitions, throughput that goes up and down all the time, splits and merges by hand; writers, and readers whose feeds run through
all of it. The kills come at any moment, and most of them within milliseconds of a change that makes ranges split or merge. After each
restart the ranges must be one whole map, and everything in them what was acknowledged.
"""
import json
import os
import random
import time

import crash
import items
from model import Container, Stored
from tesela import Broken, Client, Server, check, lsn_of, number_of

WRITERS, READERS, PARTITIONS, STILL = 8, 2, 36, 60
FLAGS = ("--partition-max-storage", "200KB", "--partition-max-throughput", "1000", "--log-level", "warn")
THROUGHPUTS = (400, 1000, 1500, 2000, 3000, 5000, 8000)
HEAD_BYTES = 32  # that every item takes beside its BSON
SEGMENTS_MOST = 9  # that a range has items in when nothing is left to move


def containers():
    key, old = {"paths": ["/pk"], "kind": "Hash", "version": 2}, {"paths": ["/pk"], "kind": "Hash", "version": 1}
    deep = {"paths": ["/tenant", "/user", "/session"], "kind": "MultiHash", "version": 2}
    return [
        Reshaped("plain", {"partitionKey": key}, 1000),
        Reshaped("unique", {"partitionKey": old, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}, 400, unique_values=60),
        Reshaped("deep", {"partitionKey": deep}, 2000),
    ]


# ---- the model ----


class Reshaped(Container):
    """A container whose ranges come and go. Of a key, lsns and document numbers still only go up."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.key_lsns, self.highest, self.accepted = {}, {}, []
        self.ids, self.gone = {}, set()  # ranges as last seen, by id; ids of those that went
        self.asked, self.doubted = {self.throughput}, set()  # what its throughput may be
        self.offer = None

    def range_of(self, partition):
        return None  # it was another range by then, perhaps

    def written(self, key, expected, document, range_id, commit=None):
        there = self.items.get(key)
        super().written(key, expected, document, range_id, commit)
        self.note_key(key, not there)

    def deleted(self, key, range_id, lsn=None):
        super().deleted(key, range_id, lsn)
        if lsn is not None:
            self.note_key_lsn(key, lsn)

    def note_key_lsn(self, key, lsn):
        check(lsn > self.key_lsns.get(key, 0), f"{self.name} {key}: lsn {lsn} after {self.key_lsns.get(key)}")
        self.key_lsns[key] = lsn

    def note_key(self, key, created):
        """A worker makes one item of a partition after the other, and that is their order in feeds."""
        stored = self.items[key]
        self.note_key_lsn(key, lsn_of(stored.etag))
        if created:
            self.highest[maker_of(key)] = self.new_number(key)

    def new_number(self, key):
        number, before = number_of(self.items[key].rid), self.highest.get(maker_of(key), 0)
        check(number > before, f"{self.name} {key}: number {number} after {before}")
        return number

    def _accept(self, key, now, found, _commit):
        before = self.items.get(key)
        self.items[key] = now
        if now:
            self.note_key_lsn(key, lsn_of(now.etag))
        if now and (not before or before.rid != now.rid):
            self.note_number(number_of(now.rid))
            self.accepted.append((maker_of(key), self.new_number(key)))

    def restarted(self):
        super().restarted()
        for maker, number in self.accepted:  # in what order a batch made them is not known
            self.highest[maker] = max(number, self.highest.get(maker, 0))
        self.accepted = []

    def note_ranges(self, ranges):
        """One map: from "" to FF without gap or overlap; no id comes again; whoever is new names those it came from."""
        ranges = sorted(ranges, key=bounds_of)
        bounds = [part["minInclusive"] for part in ranges] + ["FF"]
        check(bounds[0] == "" and [part["maxExclusive"] for part in ranges] == bounds[1:], f"{self.name}: ranges do not tile: {ranges}")
        now = {part["id"]: part for part in ranges}
        check(len(now) == len(ranges), f"{self.name}: an id twice: {ranges}")
        check(not self.gone & set(now), f"{self.name}: ranges {self.gone & set(now)} were gone")
        for name, part in now.items():
            check(not set(part["parents"]) & set(now), f"{self.name}: a parent of {part} is still there")
            same = self.ids.get(name, part)
            check(bounds_of(same) == bounds_of(part), f"{self.name}: range {name} was {bounds_of(same)} and is {bounds_of(part)}")
            if name not in self.ids:
                came_from = [old["id"] for old in self.ids.values() if overlaps(old, part)]
                check(set(came_from) <= set(part["parents"]), f"{self.name}: range {name} came from {came_from}, and says {part['parents']}")
        self.gone |= set(self.ids) - set(now)
        self.ids = now


def maker_of(key):
    return key[0], key[1].split("-")[0]


def bounds_of(part):
    return part["minInclusive"], part["maxExclusive"]


def overlaps(a, b):
    return a["minInclusive"] < b["maxExclusive"] and b["minInclusive"] < a["maxExclusive"]


def bson_bytes(value):
    """Of a value as JSON has it, and as the server keeps it."""
    if isinstance(value, dict):
        return 5 + sum(2 + len(name.encode()) + bson_bytes(each) for name, each in value.items())
    if isinstance(value, list):
        return bson_bytes({str(i): each for i, each in enumerate(value)})
    if isinstance(value, str):
        return 5 + len(value.encode())
    if value is None or isinstance(value, bool):
        return 0 if value is None else 1
    return 4 if isinstance(value, int) and -(2**31) <= value < 2**31 else 8


# ---- feeds that follow ranges, as SDKs do ----


def read_ranges(client, container, page):
    """All items by ranges: [(document, range id)]. A range that is gone is asked for again in the ranges that have its keys now."""
    found, moved = [], 0
    todo = [(part["id"], *bounds_of(part), None) for part in client.ranges(container.link)]
    while todo:
        name, low, high, continuation = todo.pop(0)
        fields = {"x_ms_documentdb_partitionkeyrangeid": name, "x_ms_start_epk": low, "x_ms_end_epk": high}
        if continuation:
            fields["x_ms_continuation"] = continuation
        answer = client.ask("GET", f"/{container.link}/docs", "docs", container.link, x_ms_max_item_count=page(), **fields)
        if answer.status == 410:
            moved += 1
            check(answer.fields.get("x-ms-substatus") == "1002", f"{container.name}: gone, but not as SDKs know it: {answer.error()}")
            check(moved < 1000, f"{container.name}: ranges are gone again and again")
            here = [part for part in client.ranges(container.link) if part["minInclusive"] < high and low < part["maxExclusive"]]
            todo[:0] = [(p["id"], max(low, p["minInclusive"]), min(high, p["maxExclusive"]), continuation) for p in here]
            continue
        check(answer.status == 200, f"{container.name}: feed of range {name}, {fields}: {answer.error()}")
        found += [(document, name) for document in answer.json()["Documents"]]
        if "x-ms-continuation" in answer.fields:
            todo.insert(0, (name, low, high, answer.fields["x-ms-continuation"]))
    return found, moved


def admin_ranges(client, container):
    """As those see them who run the server: with what they count, and whether their items are still being moved."""
    answer = client.admin("GET", f"ranges?database=crash&container={container.name}")
    check(answer.status == 200, f"{container.name}: {answer.error()}")
    return answer.json()["ranges"]


def check_order(container, documents):
    """Each once; those of a partition in the order of their numbers."""
    last, rids = {}, set()
    for document in documents:
        partition, number = container.key_of(document)[0], number_of(document["_rid"])
        check(document["_rid"] not in rids, f"{container.name}: {document['id']} of {partition} is twice in the feed")
        check(number > last.get(partition, 0), f"{container.name}: the feed of partition {partition} is not in order at {document['id']}")
        last[partition] = number
        rids.add(document["_rid"])


# ---- those who run while the server does ----


class Writer(items.Worker):
    def key(self, container, i):
        n = (self.number * 5 + i // 3) % PARTITIONS
        values = [f"p{n}"] if len(container.paths) == 1 else [f"t{n % 6}", n % 5, f"é{n % 4}"]
        return json.dumps(values), f"{self.number}-{i}"


class Runner:
    """One connection, until the server is gone."""

    def __init__(self, number, containers, seed):
        self.containers, self.random = containers, random.Random(f"{seed}/{type(self).__name__}/{number}")
        self.failure, self.done = None, 0

    def run(self, port):
        try:
            client = Client(port)
        except OSError:
            return
        try:
            while True:
                self.step(client)
                self.done += 1
        except Broken as broken:
            self.failure = broken
        except OSError:
            pass
        finally:
            client.close()


class Reader(Runner):
    """Feeds: whatever happens to the ranges meanwhile, items that nobody touches are in them once, as they are."""

    gone = 0  # answers 410

    def step(self, client):
        container = self.random.choice(self.containers)
        most = self.random.choice([3, 20, 100])
        page = lambda: self.random.randint(1, most)  # noqa: E731
        if self.random.random() < 0.5:
            documents = client.items(container.link, page())
        else:
            found, gone = read_ranges(client, container, page)
            documents = [document for document, _ in found]
            self.gone += gone
        check_order(container, documents)
        still = {container.key_of(d): d for d in documents if d["id"].startswith("still")}
        check(len(still) == STILL, f"{container.name}: {len(still)} of {STILL} items that nobody touches are in the feed")
        for key in self.random.sample(sorted(still), 5):
            check(Stored(still[key]).same(container.items[key]), f"{container.name} {key}: changed, and nobody touched it")
            answer = client.item("GET", container.link, key[1], json.loads(key[0]))
            check(answer.status == 200 and Stored(answer.json()).same(container.items[key]), f"{container.name} {key}: {answer.error()}")


class Operator(Runner):
    """Throughput up and down, splits and merges by hand."""

    def step(self, client):
        time.sleep(self.random.choice([0, self.random.uniform(0, 0.05)]))
        container = self.random.choice(self.containers)
        change = self.random.choice([self.scale, self.scale, self.split, self.merge])
        change(client, container)

    def scale(self, client, container):
        value, before = self.random.choice(THROUGHPUTS), container.asked
        container.asked = before | {value}
        answer = client.replace_throughput(container.offer, value)
        refused = answer.status == 400 and b"still under way" in answer.body
        check(answer.status == 200 or refused, f"{container.name}: {value} RU/s: {answer.error()}")
        container.asked = before if refused else {value}

    def split(self, client, container):
        request = self.request(client, container, 1)
        if request:
            answer = client.admin("POST", "split", {**request[0], "range": request[1], "parts": self.random.randint(2, 4)})
            check(answer.status in (200, 400, 404, 410), f"{container.name}: split of {request[1]}: {answer.error()}")

    def merge(self, client, container):
        request = self.request(client, container, 2)
        if request:
            answer = client.admin("POST", "merge", {**request[0], "first": request[1], "second": request[2]})
            check(answer.status in (200, 400, 404, 410), f"{container.name}: merge of {request[1:]}: {answer.error()}")

    def request(self, client, container, n):
        """Neighbours by chance."""
        ranges = sorted(client.ranges(container.link), key=bounds_of)
        if len(ranges) < n or (n == 1 and len(ranges) > 16):
            return None
        first = self.random.randrange(len(ranges) - n + 1)
        return {"database": "crash", "container": container.name}, *[part["id"] for part in ranges[first : first + n]]


# ---- rounds ----


class Reshape(crash.Crash):
    def __init__(self, folder, seed, kills):
        self.seed, self.kills = seed, kills
        self.random = random.Random(seed)
        self.folder = os.path.join(folder, "data")
        self.server = Server(self.folder, *FLAGS, log=os.path.join(folder, "reshape.log"))
        self.sync_log, self.shim = os.path.join(folder, "synced"), crash.build_shim(folder)
        self.containers = containers()
        self.workers = [Writer(i, self.containers, seed) for i in range(WRITERS)]
        self.readers = [Reader(i, self.containers, seed) for i in range(READERS)]
        self.operator = Operator(0, self.containers, seed)
        self.done = {"kill under load": 0, "kill at start": 0, "power loss": 0, "stop": 0}
        self.moments = 0  # kills within milliseconds of a change

    def everybody(self):
        return [*self.workers, *self.readers, self.operator]

    def run(self):
        with self.server:
            self.server.start()
            self.make_containers()
            while self.done["kill under load"] + self.done["power loss"] < self.kills:
                self.round()
                if self.random.random() < 0.1:
                    self.settle()
            self.settle()
            check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
            self.server.start()
            self.verify()
            events = self.events()
            check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
        return (
            f"{sum(c.acknowledged for c in self.containers)} acknowledged writes, {events} splits and merges, "
            f"{sum(r.done for r in self.readers)} feeds ({sum(r.gone for r in self.readers)} times 410); "
            + ", ".join(f"{name}: {n}" for name, n in self.done.items())
            + f"; {self.moments} of the kills within milliseconds of a change"
        )

    def make_containers(self):
        super().make_containers()
        client = Client(self.server.port)
        for container in self.containers:
            rid = client.get("colls", container.link).json()["_rid"]
            container.offer = next(offer["_rid"] for offer in client.offers() if offer["offerResourceId"] == rid)
            for i in range(STILL):
                self.make_still(client, container, i)
        client.close()

    def make_still(self, client, container, i):
        """Items that are never touched again."""
        key = json.loads(self.workers[0].key(container, 3 * i)[0])
        body = {"id": f"still-{i}", **dict(zip(container.paths, key)), "text": "s" * 500, "u": 1000 + i}
        answer = client.create(container.link, body, key)
        check(answer.status == 201, answer.error())
        container.written((json.dumps(key), body["id"]), body, answer.json(), answer.fields["x-ms-documentdb-partitionkeyrangeid"])

    # -- the moment of the kill --

    def wait_for_the_moment(self):
        time.sleep(self.random.uniform(0, 0.4))
        moment = self.random.choice(["any", "sent", "sent", "answered"])
        if moment == "any":
            return
        self.moments += 1
        client, container = Client(self.server.port), self.random.choice(self.containers)
        try:
            self.send_change(client, container)
            if moment == "answered":
                client._answer()
            time.sleep(self.random.uniform(0, 0.02 if moment == "sent" else 0.05))
        finally:
            self.last_client = client  # closed once the server is gone: nobody hangs up on it before

    def send_change(self, client, container):
        """A change that nobody waits for."""
        ranges = sorted(client.ranges(container.link), key=bounds_of)
        names = {"database": "crash", "container": container.name}
        what = self.random.randrange(3)
        if what == 0:
            value = self.random.choice(THROUGHPUTS)
            container.doubted.add(value)
            client.send_throughput(container.offer, value)
        elif what == 1 or len(ranges) < 2:
            client.send_admin("POST", "split", {**names, "range": self.random.choice(ranges)["id"], "parts": 3})
        else:
            i = self.random.randrange(len(ranges) - 1)
            client.send_admin("POST", "merge", {**names, "first": ranges[i]["id"], "second": ranges[i + 1]["id"]})

    # -- checks --

    def verify(self):
        client = Client(self.server.port)
        for container in self.containers:
            self.verify_offer(client, container)
            self.verify_items(client, container)
        client.close()

    def verify_offer(self, client, container):
        answer = client.ask("GET", f"/offers/{container.offer}", "offers", container.offer.lower())
        check(answer.status == 200, f"{container.name}: offer: {answer.error()}")
        value = answer.json()["content"]["offerThroughput"]
        asked = container.asked | container.doubted
        check(value in asked, f"{container.name}: {value} RU/s, acknowledged or in doubt were {asked}")
        container.asked, container.doubted = {value}, set()

    def verify_items(self, client, container):
        container.note_ranges(client.ranges(container.link))
        found = {}
        documents, _ = read_ranges(client, container, lambda: self.random.choice([3, 20, 100, 1000]))
        check_order(container, [document for document, _ in documents])
        for document, range_id in documents:
            found[container.key_of(document)] = (Stored(document), range_id)
        check(len(found) == len(documents), f"{container.name}: {len(documents)} items by ranges, {len(found)} different ones")
        container.resolve(found)
        container.restarted()
        whole = client.items(container.link, self.random.choice([7, 50, 1000]))
        check_order(container, whole)
        same = {container.key_of(document): Stored(document) for document in whole}
        check(set(same) == set(found), f"{container.name}: the whole feed and those by range differ in {set(same) ^ set(found)}")
        check(all(same[key].same(found[key][0]) for key in same), f"{container.name}: an item differs between two feeds")
        container.note_ranges(client.ranges(container.link))
        self.verify_sizes(client, container)
        items.verify_points(client, container, self.random)
        items.verify_partition(client, container, self.random)
        if container.unique_values:
            self.verify_unique(client, container)

    def verify_sizes(self, client, container):
        """What the container and its ranges count is what is there."""
        live = container.live()
        size = sum(HEAD_BYTES + bson_bytes(stored.body) for stored in live.values())
        answer = client.get("colls", container.link)
        usage = dict(part.split("=") for part in answer.fields["x-ms-resource-usage"].split(";") if part)
        said = int(usage["documentsCount"]), int(usage["documentsSize"])
        check(said == (len(live), size // 1024), f"{container.name}: says {said} items and KB, has {len(live)} and {size / 1024}")
        ranges = admin_ranges(client, container)
        sums = [sum(part[name] for part in ranges) for name in ("items", "bytes", "logicalPartitions")]
        partitions = len({key[0] for key in live})
        check(sums == [len(live), size, partitions], f"{container.name}: ranges count {sums}, there are {[len(live), size, partitions]}")

    def verify_unique(self, client, container):
        """Of one partition."""
        part = Container("", container.properties, 0, unique_values=container.unique_values)
        part.name, part.link, part.paths, part.lock = container.name, container.link, container.paths, container.lock
        chosen = self.random.sample(sorted({key[0] for key in container.live()}), 1)
        part.items = {key: stored for key, stored in container.items.items() if key[0] in chosen}
        part.lsns, part.numbers = container.lsns, container.numbers
        items.verify_unique(client, part)

    def settle(self):
        """Nobody writes: what is to be split, merged and moved comes to an end by itself, and nothing is otherwise than before."""
        client = Client(self.server.port)
        deadline, before, quiet = time.time() + 20, None, 0
        while quiet < 3:
            check(time.time() < deadline, "ranges do not come to rest")
            ranges = [part for c in self.containers for part in admin_ranges(client, c)]
            now = [(part["min"], part["max"], part["segments"]) for part in ranges]
            quiet = quiet + 1 if now == before and not any(part["moving"] for part in ranges) else 0
            before = now
            time.sleep(0.3)
        check(all(n <= SEGMENTS_MOST for *_, n in now), f"all has been moved, and still items lie in many places: {now}")
        client.close()
        self.verify()

    def events(self):
        client = Client(self.server.port)
        events = client.admin("GET", "events").json()["events"]
        client.close()
        numbers = [event["number"] for event in events]
        check(numbers == sorted(set(numbers), reverse=True), "events are not in order")
        return numbers[0] if numbers else 0
