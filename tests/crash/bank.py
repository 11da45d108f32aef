"""bank.py: stored procedures move money between accounts of one partition key value, and the server is killed in the middle of it.

Each partition key value is a bank whose money is always the same. A transfer takes from one account, gives to another and leaves a record
of itself: by a stored procedure, by a procedure that throws in the middle of it, by a trigger on the record, or by an atomic batch that names
the etags it has read.
Beside them accounts are written without their balance being touched, other items come and go, and ranges split and merge. Whoever looks at a bank, at any time,
must find its money whole and its balances to be what its records make of them.
"""
import json
import os
import random
import signal
import threading
import time

from crash import build_shim, lose_power, note_all_synced
from tesela import Broken, Client, Server, check

BANKS, ACCOUNTS, MONEY = 12, 6, 1000
TELLERS, AUDITORS = 12, 2
LINK = "dbs/bank/colls/accounts"
RECORDS_MOST = 1500  # of a bank: an audit is one page
REFUSED = (429, 449, 503)  # too many, others were first, its worker was killed: nothing was done
FLAGS = ("--partition-max-throughput", "400", "--log-level", "warn")

# Steps at which it throws: 1 before anything is written, 4 when all is.
TRANSFER = """
function transfer(id, from, to, amount, throwsAt) {
    var collection = getContext().getCollection(), link = collection.getAltLink();
    function step(number) {
        if (number === throwsAt) throw new Error("thrown at " + number);
    }
    function must(accepted) {
        if (!accepted) throw new Error("not accepted");
    }
    function read(name, next) {
        must(collection.readDocument(link + "/docs/" + name, function (error, account) {
            if (error) throw error;
            next(account);
        }));
    }
    function write(account, change, next) {
        account.balance += change;
        account.writes += 1;
        must(collection.replaceDocument(account._self, account, { etag: account._etag }, function (error) {
            if (error) throw error;
            next();
        }));
    }
    read(from, function (giver) {
        if (giver.balance < amount) throw new Error("not enough money");
        read(to, function (taker) {
            step(1);
            write(giver, -amount, function () {
                step(2);
                var record = { id: id, bank: giver.bank, kind: "transfer", from: from, to: to, amount: amount };
                must(collection.createDocument(collection.getSelfLink(), record, function (error) {
                    if (error) throw error;
                    step(3);
                    write(taker, amount, function () {
                        step(4);
                        getContext().getResponse().setBody({ giver: giver.balance, taker: taker.balance });
                    });
                }));
            });
        });
    });
}
"""

# The same with a query in place of reads: what it finds is what it changes.
SWEEP = """
function sweep(id, to) {
    var collection = getContext().getCollection();
    var accepted = __.queryDocuments(__.getSelfLink(), "SELECT * FROM c WHERE c.kind = 'account' AND c.balance > 0", function (error, accounts) {
        if (error) throw error;
        var moved = [], taker;
        accounts.forEach(function (account) {
            if (account.id === to) taker = account;
            else moved.push({ account: account, amount: Math.ceil(account.balance / 2) });
        });
        if (!taker) throw new Error("nobody takes it");
        moved.forEach(function (one) {
            one.account.balance -= one.amount;
            taker.balance += one.amount;
            if (!__.replaceDocument(one.account._self, one.account)) throw new Error("not accepted");
        });
        var record = { id: id, bank: taker.bank, kind: "sweep", to: to, moved: {} };
        moved.forEach(function (one) { record.moved[one.account.id] = one.amount; });
        if (!__.replaceDocument(taker._self, taker) || !__.createDocument(__.getSelfLink(), record)) throw new Error("not accepted");
        getContext().getResponse().setBody(record.moved);
    });
    if (!accepted) throw new Error("not accepted");
}
"""


# A record that does what it says when it is created.
APPLY = """
function apply() {
    var collection = getContext().getCollection(), record = getContext().getResponse().getBody();
    function add(name, change) {
        var accepted = collection.readDocument(collection.getAltLink() + "/docs/" + name, function (error, account) {
            if (error) throw error;
            account.balance += change;
            if (account.balance < 0) throw new Error("not enough money");
            if (!collection.replaceDocument(account._self, account)) throw new Error("not accepted");
        });
        if (!accepted) throw new Error("not accepted");
    }
    add(record.from, -record.amount);
    add(record.to, record.amount);
}
"""


def account_name(i):
    return f"account-{i}"


# ---- the model ----


class Bank:
    """What was acknowledged of one partition key value, and what is in doubt. Shared by all threads."""

    def __init__(self, number):
        self.name, self.lock = f"bank {number}", threading.Lock()
        self.done, self.refused, self.doubts = {}, set(), set()

    def key(self):
        return [self.name]

    def account(self, i):
        return {"id": account_name(i), "bank": self.name, "kind": "account", "balance": MONEY, "writes": 0, "note": 0}

    def full(self):
        return len(self.done) + len(self.doubts) > RECORDS_MOST

    def audit(self, documents, when):
        """One state of the bank: the money is whole, and every balance is what the records make of it."""
        balances = {d["id"]: d["balance"] for d in documents if d["kind"] == "account"}
        records = {d["id"]: d for d in documents if d["kind"] in ("transfer", "sweep")}
        check(len(balances) == ACCOUNTS, f"{self.name} {when}: {len(balances)} accounts")
        check(sum(balances.values()) == ACCOUNTS * MONEY, f"{self.name} {when}: {sum(balances.values())} in all: {balances}")
        expected = {account_name(i): MONEY for i in range(ACCOUNTS)}
        for record in records.values():
            moved = {record["from"]: record["amount"]} if record["kind"] == "transfer" else record["moved"]
            for giver, amount in moved.items():
                expected[giver] -= amount
                expected[record["to"]] += amount
        check(balances == expected, f"{self.name} {when}: balances are {balances}, by {len(records)} records they are {expected}")
        check(min(balances.values()) >= 0, f"{self.name} {when}: {balances}")
        return records

    def settle(self, documents, when):
        """Nobody is at work: all that was acknowledged is there, nothing that was refused is; doubts are over."""
        records = self.audit(documents, when)
        lost, risen = set(self.done) - set(records), self.refused & set(records)
        check(not lost, f"{self.name} {when}: {len(lost)} acknowledged transfers are lost: {sorted(lost)[:5]}")
        check(not risen, f"{self.name} {when}: transfers that were refused are there: {sorted(risen)[:5]}")
        for name, record in records.items():
            check(name in self.done or name in self.doubts, f"{self.name} {when}: nobody asked for {name}")
            known = self.done.setdefault(name, record)
            same = all(record[part] == known[part] for part in ("from", "to", "amount", "moved") if part in known)
            check(same, f"{self.name} {when}: {record} was acknowledged as {known}")
        self.refused |= self.doubts - set(records)
        self.doubts.clear()


# ---- who is at work ----


class Person:
    """One connection, until the server is gone."""

    def __init__(self, name, banks, seed):
        self.name, self.banks, self.random, self.failure, self.n = name, banks, random.Random(f"{seed}/{name}"), None, 0
        self.counts = {}

    def run(self, port):
        try:
            client = Client(port)
        except OSError:
            return
        try:
            while True:
                self.step(client, self.random.choice(self.banks))
        except Broken as broken:
            self.failure = broken
        except OSError:
            pass
        finally:
            client.close()

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1


def execute(client, name, arguments, key):
    link = f"{LINK}/sprocs/{name}"
    return client.ask("POST", f"/{link}", "sprocs", link, arguments, x_ms_documentdb_partitionkey=json.dumps(key))


def read_bank(client, bank):
    """One page, which is one state."""
    body = {"query": "SELECT * FROM c WHERE c.kind != 'other'", "parameters": []}
    fields = {"content_type": "application/query+json", "x_ms_documentdb_isquery": "True", "x_ms_max_item_count": 2500}
    answer = client.ask("POST", f"/{LINK}/docs", "docs", LINK, body, x_ms_documentdb_partitionkey=json.dumps(bank.key()), **fields)
    check(answer.status == 200, f"{bank.name}: {answer.error()}")
    check("x-ms-continuation" not in answer.fields, f"{bank.name}: more than a page")
    return answer.json()["Documents"]


class Teller(Person):
    WEIGHTS = {"transfer": 10, "throwing": 3, "sweep": 2, "triggered": 4, "batch": 3, "note": 3, "other": 2}

    def step(self, client, bank):
        if bank.full():
            time.sleep(0.01)
            return
        kinds = list(self.WEIGHTS)
        getattr(self, self.random.choices(kinds, [self.WEIGHTS[kind] for kind in kinds])[0])(client, bank)

    def new_name(self):
        self.n += 1
        return f"{self.name}-{self.n}"

    def pair(self):
        return [account_name(i) for i in self.random.sample(range(ACCOUNTS), 2)]

    def ask(self, bank, name, record, send):
        """The answer to what would leave this record."""
        with bank.lock:
            bank.doubts.add(name)
        answer = send()  # if none comes, it stays in doubt
        with bank.lock:
            bank.doubts.discard(name)
            if answer.status in (200, 201):
                bank.done[name] = record(answer)
            else:
                bank.refused.add(name)
        return answer

    def transfer(self, client, bank, throws_at=0):
        name, (giver, taker), amount = self.new_name(), self.pair(), self.random.randint(1, 300)
        record = {"from": giver, "to": taker, "amount": amount}
        arguments = [name, giver, taker, amount, throws_at]
        answer = self.ask(bank, name, lambda _: record, lambda: execute(client, "transfer", arguments, bank.key()))
        if answer.status == 400:
            check(b"not enough money" in answer.body or (throws_at and f"thrown at {throws_at}".encode() in answer.body), answer.error())
        elif answer.status == 200:
            check(not throws_at, f"{bank.name}: it threw, and the answer is {answer.error()}")
            check(answer.json()["giver"] >= 0, answer.error())
        else:
            check(answer.status in REFUSED, f"{bank.name}: transfer: {answer.error()}")
        self.count(f"transfers by script: {answer.status}")

    def throwing(self, client, bank):
        self.transfer(client, bank, self.random.randint(1, 4))

    def sweep(self, client, bank):
        name, taker = self.new_name(), account_name(self.random.randrange(ACCOUNTS))
        made = self.ask(bank, name, lambda answer: {"to": taker, "moved": answer.json()}, lambda: execute(client, "sweep", [name, taker], bank.key()))
        check(made.status in (200, *REFUSED) or b"nobody takes it" in made.body, f"{bank.name}: sweep: {made.error()}")
        self.count(f"sweeps by script: {made.status}")

    def triggered(self, client, bank):
        name, (giver, taker), amount = self.new_name(), self.pair(), self.random.randint(1, 300)
        record = {"from": giver, "to": taker, "amount": amount}
        body = {"id": name, "bank": bank.name, "kind": "transfer", **record}
        named = {"x_ms_documentdb_post_trigger_include": "apply"}
        answer = self.ask(bank, name, lambda _: record, lambda: client.post(LINK, body, bank.key(), **named))
        good = answer.status in (201, *REFUSED) or (answer.status == 400 and b"not enough money" in answer.body)
        check(good, f"{bank.name}: transfer by trigger: {answer.error()}")
        self.count(f"transfers by trigger: {answer.status}")

    def read_account(self, client, bank, name):
        answer = client.item("GET", LINK, name, bank.key())
        check(answer.status == 200, f"{bank.name} {name}: {answer.error()}")
        return answer.json()

    def batch(self, client, bank):
        """The same without a script: nothing is done unless both accounts are still what was read."""
        name, amount = self.new_name(), self.random.randint(1, 300)
        giver, taker = (self.read_account(client, bank, each) for each in self.pair())
        if giver["balance"] < amount:
            return
        operations = [{"operationType": "Create", "resourceBody": {"id": name, "bank": bank.name, "kind": "transfer", "from": giver["id"],
                                                                   "to": taker["id"], "amount": amount}}]
        for account, change in ((giver, -amount), (taker, amount)):
            body = {k: v for k, v in account.items() if not k.startswith("_")} | {"balance": account["balance"] + change}
            operations.append({"operationType": "Replace", "id": account["id"], "ifMatch": account["_etag"], "resourceBody": body})
        record = {"from": giver["id"], "to": taker["id"], "amount": amount}
        answer = self.ask(bank, name, lambda _: record, lambda: client.batch(LINK, operations, bank.key()))
        codes = [result["statusCode"] for result in answer.json()] if answer.status == 207 else []
        check(answer.status == 200 or (412 in codes and set(codes) <= {412, 424}), f"{bank.name}: batch: {answer.error()}")
        self.count(f"transfers by batch: {answer.status}")

    def note(self, client, bank):
        """An account is written, its balance is not touched."""
        name = account_name(self.random.randrange(ACCOUNTS))
        account = self.read_account(client, bank, name)
        body = {k: v for k, v in account.items() if not k.startswith("_")} | {"note": self.random.randrange(1000)}
        answer = client.item("PUT", LINK, name, bank.key(), body, if_match=account["_etag"])
        check(answer.status in (200, 412), f"{bank.name}: note: {answer.error()}")
        patch = {"operations": [{"op": "incr", "path": "/writes", "value": 1}]}
        answer = client.item("PATCH", LINK, name, bank.key(), patch)
        check(answer.status == 200, f"{bank.name}: patch: {answer.error()}")
        self.count("accounts written")

    def other(self, client, bank):
        name = f"other-{self.name}-{self.random.randrange(5)}"
        if self.random.random() < 0.3:
            answer = client.item("DELETE", LINK, name, bank.key())
            check(answer.status in (204, 404), f"{bank.name}: delete: {answer.error()}")
        else:
            body = {"id": name, "bank": bank.name, "kind": "other", "text": "x" * self.random.choice([0, 100, 5000])}
            answer = client.upsert(LINK, body, bank.key())
            check(answer.status in (200, 201), f"{bank.name}: upsert: {answer.error()}")
        self.count("other writes")


class Auditor(Person):
    """Looks while the others work."""

    def step(self, client, bank):
        if self.random.random() < 0.5:
            bank.audit(read_bank(client, bank), "during")
        else:
            self.sum_up(client, bank)
        self.count("audits")
        time.sleep(0.005)

    def sum_up(self, client, bank):
        body = {"query": "SELECT VALUE SUM(c.balance) FROM c WHERE c.kind = 'account'", "parameters": []}
        fields = {"content_type": "application/query+json", "x_ms_documentdb_isquery": "True"}
        answer = client.ask("POST", f"/{LINK}/docs", "docs", LINK, body, x_ms_documentdb_partitionkey=json.dumps(bank.key()), **fields)
        check(answer.status == 200, f"{bank.name}: {answer.error()}")
        check(answer.json()["Documents"] == [ACCOUNTS * MONEY], f"{bank.name}: SUM is {answer.body[:200]!r}")


class Shaper(Person):
    """Splits and merges ranges under the banks."""

    NAMES = {"database": "bank", "container": "accounts"}

    def step(self, client, bank):
        time.sleep(self.random.uniform(0.05, 0.5))
        ranges = sorted(client.ranges(LINK), key=lambda part: part["minInclusive"])
        if len(ranges) > self.random.randint(1, 8):
            i = self.random.randrange(len(ranges) - 1)
            answer = client.admin("POST", "merge", {**self.NAMES, "first": ranges[i]["id"], "second": ranges[i + 1]["id"]})
        else:
            answer = client.admin("POST", "split", {**self.NAMES, "range": self.random.choice(ranges)["id"], "parts": 2})
        check(answer.status in (200, 400, 410), f"split or merge: {answer.error()}")  # 400: it cannot be, as of one with a single bank
        if answer.status == 200:
            self.count("splits and merges")


# ---- the test ----


class Banks:
    def __init__(self, folder, seed, kills):
        self.random, self.kills = random.Random(f"{seed}/bank"), kills
        self.folder = os.path.join(folder, "data")
        self.server = Server(self.folder, *FLAGS, log=os.path.join(folder, "bank.log"))
        self.sync_log, self.shim = os.path.join(folder, "synced"), build_shim(folder)
        self.banks = [Bank(i) for i in range(BANKS)]
        self.people = [Teller(f"teller{i}", self.banks, seed) for i in range(TELLERS)]
        self.people += [Auditor(f"auditor{i}", self.banks, seed) for i in range(AUDITORS)]
        self.people.append(Shaper("shaper", self.banks, seed))
        self.done = {"kill": 0, "power loss": 0, "worker killed": 0}

    def run(self):
        with self.server:
            self.server.start()
            self.open_banks()
            for _ in range(self.kills):
                self.round()
            check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
        counts = {}
        for person in self.people:
            for what, n in person.counts.items():
                counts[what] = counts.get(what, 0) + n
        return ", ".join(f"{what}: {n}" for what, n in sorted((self.done | counts).items()))

    def open_banks(self):
        client = Client(self.server.port)
        key = {"paths": ["/bank"], "kind": "Hash", "version": 2}
        answers = [client.create_database("bank"), client.create_container("bank", {"id": "accounts", "partitionKey": key}, 1600)]
        for name, body in (("transfer", TRANSFER), ("sweep", SWEEP)):
            answers.append(client.ask("POST", f"/{LINK}/sprocs", "sprocs", LINK, {"id": name, "body": body}))
        trigger = {"id": "apply", "body": APPLY, "triggerType": "Post", "triggerOperation": "Create"}
        answers.append(client.ask("POST", f"/{LINK}/triggers", "triggers", LINK, trigger))
        for bank in self.banks:
            answers += [client.create(LINK, bank.account(i), bank.key()) for i in range(ACCOUNTS)]
        for answer in answers:
            check(answer.status == 201, answer.error())
        client.close()

    def round(self):
        power = self.shim is not None and self.random.random() < 0.3
        if power:
            check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
            note_all_synced(self.folder, self.sync_log)
            self.server.env = {"LD_PRELOAD": self.shim, "SYNCED_LOG": self.sync_log}
            self.server.start()
        threads = [threading.Thread(target=person.run, args=(self.server.port,)) for person in self.people]
        for thread in threads:
            thread.start()
        self.wait_for_a_transfer()
        self.work(self.random.uniform(0, 1.2))
        workers = children_of(self.server.process.pid)
        self.server.kill()
        for thread in threads:
            thread.join()
        for person in self.people:
            if person.failure:
                raise person.failure
        wait_for_end(workers)
        if power:
            lose_power(self.folder, self.sync_log)
        self.done["power loss" if power else "kill"] += 1
        self.server.env = None
        self.server.start()
        self.verify()

    def transfers(self):
        return sum(person.counts.get("transfers by script: 200", 0) for person in self.people)

    def wait_for_a_transfer(self, seconds=20):
        """Scripts start in processes that take their time on a busy machine."""
        before, deadline = self.transfers(), time.time() + seconds
        while self.transfers() == before and not any(person.failure for person in self.people):
            check(time.time() < deadline, f"no transfer in {seconds} s\n{self.server.tail()}")
            time.sleep(0.01)

    def work(self, seconds):
        """For so long; now and then a script worker is killed, which costs the request that it worked for and nothing else."""
        deadline = time.time() + seconds
        while (left := deadline - time.time()) > 0:
            time.sleep(min(left, self.random.uniform(0.05, 0.8)))
            workers = children_of(self.server.process.pid)
            if workers and left > 0.1 and self.random.random() < 0.4:
                os.kill(self.random.choice(workers), signal.SIGKILL)
                self.done["worker killed"] += 1

    def verify(self):
        client = Client(self.server.port)
        for bank in self.banks:
            bank.settle(read_bank(client, bank), "after a restart")
        client.close()


# ---- script workers are processes of their own; the server's end is theirs ----


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            found = [int(word) for word in file.read().split()]
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(word) for word in file.read().split()]
        return sorted(set(found))
    except OSError:
        return []


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(pids, seconds=5):
    deadline = time.time() + seconds
    while any(is_running(pid) for pid in pids):
        check(time.time() < deadline, f"script workers outlive their server: {[pid for pid in pids if is_running(pid)]}")
        time.sleep(0.01)
