"""model.py: what the server has acknowledged, what is in doubt, and whether what is found after a restart agrees with it.

A key is (partition key as JSON text, id). For each key the model has the item as acknowledged, or None. An operation whose answer never
came is a *doubt*: a set of changes that must be found whole or not at all.
"""
import json
import threading
import time

from tesela import check, lsn_of, number_of

SYSTEM = ("_rid", "_self", "_etag", "_attachments", "_ts")


def body_of(document):
    return {name: value for name, value in document.items() if name not in SYSTEM}


class Stored:
    """An item as the server said it is."""

    __slots__ = ("body", "etag", "rid", "ts")

    def __init__(self, document):
        self.body, self.etag, self.rid, self.ts = body_of(document), document["_etag"], document["_rid"], document["_ts"]

    def same(self, other):
        return (self.body, self.etag, self.rid, self.ts) == (other.body, other.etag, other.rid, other.ts)


class Container:
    """The model of one container. A key belongs to one worker; only counters are shared."""

    def __init__(self, name, properties, throughput, unique_values=0, expires=False):
        self.name, self.properties, self.throughput = name, {"id": name, **properties}, throughput
        self.link = f"dbs/crash/colls/{name}"
        self.paths = [path[1:] for path in properties["partitionKey"]["paths"]]
        self.unique_values, self.expires = unique_values, expires
        self.items, self.doubts = {}, []
        self.ranges = {}  # partition key as text: the range it is in, once seen
        self.lock = threading.Lock()
        self.lsns, self.numbers = {}, set()  # all ever seen: lsns by range, each with its atomic commit, or None; document numbers
        self.lsn_floor, self.number_floor, self.ts_floor = {}, {}, 0  # what a write after the last restart must exceed
        self.acknowledged = 0
        self.log, self.places = {}, {}  # the newest version of each key by the log: (lsn, etag, or None of a delete); how far it was read

    def key_of(self, document):
        return json.dumps([document[path] for path in self.paths]), document["id"]

    def range_of(self, partition):
        return self.ranges.get(partition)

    # -- counters --

    def note_lsn(self, range_id, lsn, commit=None):
        """commit: any object that stands for the atomic commit; its writes may share an lsn."""
        if range_id is None:
            return  # a bulk answer does not tell
        with self.lock:
            seen = self.lsns.setdefault(range_id, {})
            check(lsn not in seen or (commit is not None and seen[lsn] is commit), f"{self.name}: range {range_id} gave lsn {lsn} twice")
            check(lsn > self.lsn_floor.get(range_id, 0), f"{self.name}: lsn {lsn} of range {range_id} is of before the restart")
            seen[lsn] = commit

    def note_number(self, number):
        with self.lock:
            check(number not in self.numbers, f"{self.name}: document number {number} was given out twice")
            floor = self.number_floor.get(number >> 40, 0)  # the upper bits are the range's
            check(number > floor, f"{self.name}: document number {number} is of before the restart")
            self.numbers.add(number)

    def restarted(self):
        """From here on every counter must go beyond all that was seen."""
        for range_id, seen in self.lsns.items():
            self.lsn_floor[range_id] = max(seen)
        for number in self.numbers:
            self.number_floor[number >> 40] = max(number, self.number_floor.get(number >> 40, 0))
        self.ts_floor = max([self.ts_floor, *(stored.ts for stored in self.items.values() if stored)])

    # -- answers --

    def written(self, key, expected, document, range_id, commit=None):
        """An acknowledged create, upsert, replace or patch."""
        now, before = Stored(document), self.items.get(key)
        check(now.body == expected, f"{self.name} {key}: answered {now.body}, written was {expected}")
        self.note_lsn(range_id, lsn_of(now.etag), commit)
        self.ranges.setdefault(key[0], range_id)
        if before:
            check(now.rid == before.rid, f"{self.name} {key}: _rid changed from {before.rid} to {now.rid}")
            check(now.ts >= before.ts, f"{self.name} {key}: _ts went back from {before.ts} to {now.ts}")
        else:
            self.note_number(number_of(now.rid))
        check(now.ts >= self.ts_floor, f"{self.name} {key}: _ts {now.ts} is of before the restart")
        self.items[key] = now
        self.acknowledged += 1

    def deleted(self, key, range_id, lsn=None):
        if lsn is not None:
            self.note_lsn(range_id, lsn)
        self.items[key] = None
        self.acknowledged += 1

    def doubt(self, changes):
        """changes: {key: body, or None for deleted}, all or nothing."""
        self.doubts.append(changes)

    # -- after a restart --

    def resolve(self, found):
        """found: {key: (Stored, range id)}. Settles the doubts, then compares everything."""
        for changes in self.doubts:
            self._settle(changes, found)
        self.doubts = []
        now_s = time.time()
        for key in list(self.items):
            self._compare(key, found[key][0] if key in found else None, now_s)
        for key in found:
            check(self.items.get(key), f"{self.name} {key} was never written, or acknowledged as deleted, and is there")

    def _settle(self, changes, found):
        now = {key: found[key][0] if key in found else None for key in changes}
        done = all(self._is_after(key, body, now[key]) for key, body in changes.items())
        undone = all(self._is_before(key, now[key]) for key in changes)
        check(done or undone, f"{self.name}: half of an operation in doubt is there: {self._describe(changes, now)}")
        if done and not undone:
            for key in changes:
                self._accept(key, now[key], found, changes)

    def _accept(self, key, now, found, commit):
        before = self.items.get(key)
        self.items[key] = now
        if now:
            self.note_lsn(found[key][1], lsn_of(now.etag), commit)
            if not before or before.rid != now.rid:
                self.note_number(number_of(now.rid))

    def _describe(self, changes, now):
        return [(key, "now", now[key] and now[key].body, "asked", body, "before", self.items.get(key)) for key, body in changes.items()]

    def _is_after(self, key, body, now):
        before = self.items.get(key)
        if body is None or now is None:
            return body is None and now is None or self._may_be_gone(body, now)
        return now.body == body and not (before and before.etag == now.etag)

    def _may_be_gone(self, body, now):
        return self.expires and now is None and body is not None

    def _is_before(self, key, now):
        before = self.items.get(key)
        return now is None if before is None else now is not None and now.same(before)

    def _compare(self, key, now, now_s):
        stored = self.items[key]
        if stored and self.expires and stored.ts + stored.body["ttl"] <= now_s + 1:
            check(now is None or stored.ts + stored.body["ttl"] >= now_s - 2, f"{self.name} {key}: expired, and is there")
            if now is None:
                del self.items[key]
        elif stored is None:
            check(now is None, f"{self.name} {key}: acknowledged as deleted, and is there")
        else:
            check(now is not None, f"{self.name} {key}: acknowledged, and is gone")
            check(now.body == stored.body, f"{self.name} {key}: is {now.body}, acknowledged was {stored.body}")
            check(now.same(stored), f"{self.name} {key}: etag, _rid or _ts changed: {now.etag} {now.rid} {now.ts}")

    def live(self):
        return {key: stored for key, stored in self.items.items() if stored}
