"""items.py: workers that write items, and the checks of what is there after a restart."""
import json
import random

from model import Stored
from tesela import Broken, Client, check, lsn_of, number_of

IDS = 24  # of each worker in each container

# The probability of each kind of request, by weight.
WEIGHTS = {"create": 6, "upsert": 5, "replace": 5, "patch": 4, "delete": 5, "batch": 5, "bulk": 2, "refused": 2}


class Worker:
    """One connection. Its keys are its own, so that the model is exact; their partitions are shared with other workers."""

    def __init__(self, number, containers, seed):
        self.number, self.containers = number, containers
        self.random = random.Random(f"{seed}/{number}")
        self.made = 0
        self.failure = None

    def run(self, port):
        """Until the server is gone."""
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
        container = self.random.choice(self.containers)
        if container.expires:
            self.write_expiring(client, container)
            return
        kinds = list(WEIGHTS)
        kind = self.random.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        getattr(self, kind)(client, container)

    # -- keys and bodies --

    def pick(self, container, there=None, partition=None):
        """A key of ours that is there, or is not; None if there is no such key."""
        numbers = list(range(IDS))
        self.random.shuffle(numbers)
        for i in numbers:
            key = self.key(container, i)
            if partition is not None and key[0] != partition:
                continue
            if there is None or bool(container.items.get(key)) == there:
                return key
        return None

    def key(self, container, i):
        values = [f"p{i % 3}", i % 2, f"é{i % 3}"][: len(container.paths)]
        return json.dumps(values), f"{self.number}-{i}"

    def body(self, container, key):
        self.made += 1
        length = self.random.choice([0, 10, 200, 200, 1000, 6000])
        body = {"id": key[1], **dict(zip(container.paths, json.loads(key[0])))}
        body |= {"n": self.made, "by": self.number, "text": self.random.choice("abcñ漢") * length, "deep": {"list": [1, 2.5, None]}}
        if container.unique_values:
            body["u"] = self.random.randrange(container.unique_values)
        return body

    # -- what is common to all writes --

    def ask(self, container, changes, send):
        """Sends; if no answer comes, the changes are in doubt."""
        try:
            return send()
        except OSError:
            container.doubt(changes)
            raise

    def settle(self, container, key, body, answer, *good):
        """The answer to one write of a body."""
        if answer.status == 409 and container.unique_values:
            return
        check(answer.status in good, f"{container.name} {key}: {answer.error()}, expected {good}")
        document = answer.json()
        check(answer.fields["etag"] == document["_etag"], f"{container.name} {key}: etag field and _etag differ")
        check(int(answer.fields["lsn"]) == lsn_of(document["_etag"]), f"{container.name} {key}: lsn field and _etag differ")
        container.written(key, body, document, answer.fields["x-ms-documentdb-partitionkeyrangeid"])

    # -- one item --

    def create(self, client, container):
        key = self.pick(container, there=False)
        if key:
            body = self.body(container, key)
            answer = self.ask(container, {key: body}, lambda: client.create(container.link, body, json.loads(key[0])))
            self.settle(container, key, body, answer, 201)

    def upsert(self, client, container):
        key = self.pick(container)
        body = self.body(container, key)
        answer = self.ask(container, {key: body}, lambda: client.upsert(container.link, body, json.loads(key[0])))
        self.settle(container, key, body, answer, 200 if container.items.get(key) else 201)

    def replace(self, client, container):
        key = self.pick(container, there=True)
        if key:
            body = self.body(container, key)
            fields = {"if_match": container.items[key].etag} if self.random.random() < 0.5 else {}
            answer = self.ask(
                container, {key: body}, lambda: client.item("PUT", container.link, key[1], json.loads(key[0]), body, **fields)
            )
            self.settle(container, key, body, answer, 200)

    def patch(self, client, container):
        key = self.pick(container, there=True)
        if key:
            body, operations = self.patched(container, container.items[key].body)
            answer = self.ask(
                container, {key: body}, lambda: client.item("PATCH", container.link, key[1], json.loads(key[0]), operations)
            )
            self.settle(container, key, body, answer, 200)

    def patched(self, container, before):
        self.made += 1
        body = json.loads(json.dumps(before))
        operations = [{"op": "set", "path": "/text", "value": f"patched {self.made}"}, {"op": "incr", "path": "/n", "value": 1}]
        body["text"] = f"patched {self.made}"
        body["n"] += 1
        if container.unique_values and self.random.random() < 0.5:
            body["u"] = self.random.randrange(container.unique_values)
            operations.append({"op": "replace", "path": "/u", "value": body["u"]})
        return body, {"operations": operations}

    def delete(self, client, container):
        key = self.pick(container, there=True)
        if key:
            answer = self.ask(container, {key: None}, lambda: client.item("DELETE", container.link, key[1], json.loads(key[0])))
            check(answer.status == 204, f"{container.name} {key}: delete: {answer.error()}")
            container.deleted(key, answer.fields["x-ms-documentdb-partitionkeyrangeid"], int(answer.fields["lsn"]))

    def refused(self, client, container):
        """Writes that must be refused and leave nothing."""
        there, absent = self.pick(container, there=True), self.pick(container, there=False)
        if there:
            answer = client.create(container.link, self.body(container, there), json.loads(there[0]))
            check(answer.status == 409, f"{container.name} {there}: created twice: {answer.error()}")
            answer = client.item(
                "PUT", container.link, there[1], json.loads(there[0]), self.body(container, there), if_match='"0"'
            )
            check(answer.status == 412, f"{container.name} {there}: wrong etag: {answer.error()}")
        if absent:
            answer = client.item("DELETE", container.link, absent[1], json.loads(absent[0]))
            check(answer.status == 404, f"{container.name} {absent}: deleted what is not there: {answer.error()}")

    def write_expiring(self, client, container):
        key = json.dumps([f"p{self.made % 4}"]), f"{self.number}-{self.made}"
        body = {**self.body(container, key), "ttl": self.random.randint(1, 3)}
        answer = self.ask(container, {key: body}, lambda: client.create(container.link, body, json.loads(key[0])))
        self.settle(container, key, body, answer, 201)

    # -- several at once --

    def operations(self, container, partition, n):
        """Operations, and what they leave: [(operation, key, body or None)], {key: body or None}."""
        state, made = {}, []
        for _ in range(n):
            key = self.pick(container, partition=partition)
            stored = container.items.get(key)
            now = state[key] if key in state else stored and stored.body
            operation, after = self.operation(container, key, now)
            made.append((operation, key, after))
            state[key] = after
        return made, state

    def operation(self, container, key, now):
        words = {"partitionKey": key[0], "id": key[1]}
        if now is None:
            body = self.body(container, key)
            return {**words, "operationType": self.random.choice(["Create", "Upsert"]), "resourceBody": body}, body
        kind = self.random.choice(["Upsert", "Replace", "Patch", "Delete"])
        if kind == "Delete":
            return {**words, "operationType": kind}, None
        if kind == "Patch":
            body, patch = self.patched(container, now)
            return {**words, "operationType": kind, "resourceBody": patch}, body
        body = self.body(container, key)
        return {**words, "operationType": kind, "resourceBody": body}, body

    def batch(self, client, container):
        partition = self.pick(container)[0]
        made, state = self.operations(container, partition, self.random.randint(2, 10))
        spoiled = self.random.random() < 0.2
        operations = [operation for operation, _, _ in made]
        if spoiled:
            operations.append({"operationType": "Delete", "id": "nobody"})
        changes = {} if spoiled else state
        answer = self.ask(container, changes, lambda: client.batch(container.link, operations, json.loads(partition)))
        results = answer.json()
        check(len(results) == len(operations), f"{container.name}: batch of {len(operations)}: {answer.error()}")
        if spoiled or answer.status == 207:
            bad = [result["statusCode"] for result in results if result["statusCode"] != 424]
            check(answer.status == 207 and len(bad) == 1, f"{container.name}: a batch that failed: {answer.error()}")
            check(bad[0] in (404, 409) if container.unique_values else bad[0] == 404, f"{container.name}: {answer.error()}")
            return
        check(answer.status == 200, f"{container.name}: batch: {answer.error()}")
        self.settle_all(container, made, results, answer)

    def bulk(self, client, container):
        """Each by itself; keys are distinct, so each is a doubt of its own."""
        made, keys = [], set()
        for _ in range(self.random.randint(2, 10)):
            key = self.pick(container)
            if key not in keys:
                keys.add(key)
                stored = container.items.get(key)
                made.append((*self.operation(container, key, stored and stored.body), key))
        made = [(operation, key, after) for operation, after, key in made]
        try:
            answer = client.bulk(container.link, [operation for operation, _, _ in made])
        except OSError:
            for _, key, after in made:
                container.doubt({key: after})
            raise
        check(answer.status in (200, 207), f"{container.name}: bulk: {answer.error()}")
        self.settle_all(container, made, answer.json(), answer, one_range=False)

    def settle_all(self, container, made, results, answer, one_range=True):
        for (operation, key, after), result in zip(made, results):
            if result["statusCode"] == 409 and container.unique_values:
                continue
            check(result["statusCode"] in (200, 201, 204), f"{container.name} {key} {operation['operationType']}: {result}")
            range_id = answer.fields["x-ms-documentdb-partitionkeyrangeid"] if one_range else container.range_of(key[0])
            if after is None:
                container.deleted(key, range_id)
            else:
                check(result["eTag"] == result["resourceBody"]["_etag"], f"{container.name} {key}: eTag and _etag differ")
                container.written(key, after, result["resourceBody"], range_id, results if one_range else None)


# ---- after a restart ----


def verify(client, container, rng):
    """Everything acknowledged is there, nothing else is, each item once and in order, and the counts agree."""
    found = {}
    for part in client.ranges(container.link):
        documents = client.items(container.link, rng.choice([3, 20, 100, 1000]), x_ms_documentdb_partitionkeyrangeid=part["id"])
        numbers = [number_of(document["_rid"]) for document in documents]
        check(numbers == sorted(set(numbers)), f"{container.name}: the feed of range {part['id']} is not in document-number order")
        for document in documents:
            key = container.key_of(document)
            check(key not in found, f"{container.name} {key} is twice in the feed")
            found[key] = (Stored(document), part["id"])
            container.ranges[key[0]] = part["id"]
    container.resolve(found)
    container.restarted()
    whole = client.items(container.link, 50)
    if not container.expires:
        check(len(whole) == len(found), f"{container.name}: {len(whole)} items in the whole feed, {len(found)} by range")
        count = client.count(container.link)
        check(count == len(found), f"{container.name}: documentsCount is {count}, there are {len(found)} items")
        verify_points(client, container, rng)
        verify_partition(client, container, rng)
        verify_index(client, container)
        verify_changes(client, container, rng)
    if "changeFeedPolicy" in container.properties:
        verify_log(client, container)
    if container.unique_values:
        verify_unique(client, container)


def verify_points(client, container, rng):
    """Point reads say the same as the feed, of what is there and of what is not."""
    for key in rng.sample(sorted(container.items), min(40, len(container.items))):
        stored = container.items[key]
        answer = client.item("GET", container.link, key[1], json.loads(key[0]))
        check(answer.status == (200 if stored else 404), f"{container.name} {key}: read: {answer.error()}")
        check(not stored or Stored(answer.json()).same(stored), f"{container.name} {key}: read and feed differ")


def verify_partition(client, container, rng):
    live = container.live()
    if not live:
        return
    partition = rng.choice(sorted(live))[0]
    documents = client.items(container.link, rng.choice([2, 1000]), x_ms_documentdb_partitionkey=partition)
    expected = sorted((number_of(stored.rid), key[1]) for key, stored in live.items() if key[0] == partition)
    check([(number_of(d["_rid"]), d["id"]) for d in documents] == expected, f"{container.name}: the feed of partition {partition} differs")


def verify_index(client, container):
    """What queries find by the index is what is there, and what they count by it alone is as much."""
    live = container.live()
    for part in client.ranges(container.link):
        for by in {stored.body["by"] for stored in live.values()}:
            expected = sorted((s.body["id"], s.body["n"]) for k, s in live.items() if s.body["by"] == by and container.ranges[k[0]] == part["id"])
            rows = client.query(container.link, part["id"], 'SELECT c.id, c.n FROM c WHERE c["by"] = @by', by=by)
            check(sorted((r["id"], r["n"]) for r in rows) == expected, f"{container.name}: the index finds other items of worker {by}")
            count = sum(r if isinstance(r, int) else r["item"] for r in client.query(container.link, part["id"],
                        'SELECT VALUE COUNT(1) FROM c WHERE c["by"] = @by', by=by))
            check(count == len(expected), f"{container.name}: the index counts {count} items of worker {by}, there are {len(expected)}")


def verify_changes(client, container, rng):
    """The change feed has each item once, in the order of its lsn: of each range, and of a partition."""
    live = container.live()
    scopes = [({"x_ms_documentdb_partitionkeyrangeid": p["id"]}, lambda key, id=p["id"]: container.ranges[key[0]] == id) for p in client.ranges(container.link)]
    if live:
        partition = rng.choice(sorted(live))[0]
        scopes.append(({"x_ms_documentdb_partitionkey": partition}, lambda key: key[0] == partition))
    for fields, is_meant in scopes:
        documents = client.changes(container.link, rng.choice([3, 1000]), **fields)
        lsns = [d["_lsn"] for d in documents]
        check(lsns == sorted(lsns), f"{container.name}: the changes of {fields} are out of order")
        check(all(lsn_of(d["_etag"]) == d["_lsn"] for d in documents), f"{container.name}: a change has another lsn than its item")
        expected = sorted((key, stored.body["n"]) for key, stored in live.items() if is_meant(key))
        check(sorted((container.key_of(d), d["n"]) for d in documents) == expected, f"{container.name}: the changes of {fields} are of other items")


def verify_log(client, container):
    """The log of versions goes on where it was read up to, leaves none out and tells none twice, and its newest are the items that are there."""
    for part in client.ranges(container.link):
        place = container.places.get(part["id"], '"0"')
        while True:
            answer = client.ask("GET", f"/{container.link}/docs", "docs", container.link, A_IM="Full-Fidelity Feed", If_None_Match=place,
                                x_ms_documentdb_partitionkeyrangeid=part["id"], x_ms_max_item_count=500)
            check(answer.status in (200, 304), f"{container.name}: the log of range {part['id']} after {place}: {answer.error()}")
            place = answer.fields["etag"]
            if answer.status == 304:
                break
            for version in answer.json()["Documents"]:
                note_version(container, version)
        container.places[part["id"]] = place
    if not container.expires:
        logged = {key: etag for key, (_, etag) in container.log.items() if etag}
        check(logged == {key: stored.etag for key, stored in container.live().items()}, f"{container.name}: log and items differ")


def note_version(container, version):
    metadata, gone = version["metadata"], version["metadata"]["operationType"] == "delete"
    document = version["previous" if gone else "current"]
    key = container.key_of(document)
    lsn, etag = container.log.get(key, (0, None))
    before = etag and lsn
    check(metadata.get("previousImageLSN") == before, f"{container.name} {key}: the log has {metadata} after version {before}")
    check(metadata["lsn"] > lsn, f"{container.name} {key}: the log has lsn {metadata['lsn']} after {lsn}")
    check(not gone or document["_etag"] == etag, f"{container.name} {key}: deleted was {document['_etag']}, the log had {etag}")
    container.log[key] = (metadata["lsn"], None if gone else document["_etag"])


def verify_unique(client, container):
    """A value that an item holds is taken; one that none holds is free, whoever held it before."""
    held = {}
    for key, stored in container.live().items():
        other = held.setdefault((key[0], stored.body["u"]), key)
        check(other == key, f"{container.name}: {key} and {other} have the same unique value {stored.body['u']}")
    for partition in {key[0] for key in container.items}:
        for value in range(container.unique_values):
            body = {"id": "probe", **dict(zip(container.paths, json.loads(partition))), "u": value}
            answer = client.create(container.link, body, json.loads(partition))
            if (partition, value) in held:
                check(answer.status == 409, f"{container.name}: unique value {value} of {partition} was given twice: {answer.error()}")
                continue
            check(answer.status == 201, f"{container.name}: nobody holds {value} in {partition}, and it is refused: {answer.error()}")
            container.note_lsn(answer.fields["x-ms-documentdb-partitionkeyrangeid"], lsn_of(answer.json()["_etag"]))
            container.note_number(number_of(answer.json()["_rid"]))
            answer = client.item("DELETE", container.link, "probe", json.loads(partition))
            check(answer.status == 204, f"{container.name}: probe: {answer.error()}")
