"""crash.py: many connections write, the server is killed at random moments, and what it comes back with is compared with what it said.

A round: start, check everything, let the workers write, kill. Some rounds kill during the start, some stop by SIGTERM, and some are *power
losses*: with synced.c preloaded, every file is cut back to what had been synced before the kill.
"""
import os
import random
import shutil
import subprocess
import threading
import time

import items
import metadata
from model import Container
from tesela import HERE, Client, Server, check

WORKERS, DATABASES = 16, 3


def containers():
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    kept = {"changeFeedPolicy": {"retentionDuration": 30}}
    deep = {"paths": ["/tenant", "/user", "/session"], "kind": "MultiHash", "version": 2}
    return [
        Container("plain", {"partitionKey": key}, 400),
        Container("ranges", {"partitionKey": key, "indexingPolicy": {"indexingMode": "none"}, **kept}, 1600),
        Container("unique", {"partitionKey": key, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, **kept}, 1200, unique_values=60),
        Container("deep", {"partitionKey": deep}, 800),
        Container("expiring", {"partitionKey": key, "defaultTtl": -1, **kept}, 400, expires=True),
    ]


class Crash:
    def __init__(self, folder, seed, kills):
        self.seed, self.kills = seed, kills
        self.random = random.Random(seed)
        self.folder = os.path.join(folder, "data")
        self.server = Server(self.folder, "--partition-max-throughput", "400", "--log-level", "warn", log=os.path.join(folder, "crash.log"))
        self.sync_log, self.shim = os.path.join(folder, "synced"), build_shim(folder)
        self.containers = containers()
        self.workers = [items.Worker(i, self.containers, seed) for i in range(WORKERS)]
        self.databases = [metadata.Database(i, seed) for i in range(DATABASES)]
        self.done = {"kill under load": 0, "kill at start": 0, "power loss": 0, "stop": 0}

    def run(self):
        with self.server:
            self.server.start()
            self.make_containers()
            while self.done["kill under load"] + self.done["power loss"] < self.kills:
                self.round()
            self.server.kill()
            self.server.start()
            self.verify()
            self.wait_for_expiry()
            check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
        acknowledged = sum(c.acknowledged for c in self.containers) + sum(d.acknowledged for d in self.databases)
        return f"{acknowledged} acknowledged requests; " + ", ".join(f"{name}: {n}" for name, n in self.done.items())

    def make_containers(self):
        client = Client(self.server.port)
        answer = client.create_database("crash")
        check(answer.status == 201, answer.error())
        for container in self.containers:
            answer = client.create_container("crash", container.properties, container.throughput)
            check(answer.status == 201, answer.error())
        client.close()

    # -- rounds --

    def round(self):
        power = self.shim is not None and self.random.random() < 0.3
        if power:
            self.restart_with_shim()
        threads = self.start_workers()
        self.wait_for_the_moment()
        if not power and self.random.random() < 0.1:
            check(self.server.stop() == 0, f"SIGTERM under load did not end in 0\n{self.server.tail()}")
            self.done["stop"] += 1
        else:
            self.server.kill()
            self.done["power loss" if power else "kill under load"] += 1
        for thread in threads:
            thread.join()
        for worker in self.everybody():
            if worker.failure:
                raise worker.failure
        if power:
            lose_power(self.folder, self.sync_log)
        self.start_again()
        self.verify()

    def everybody(self):
        """All who run while the server does."""
        return [*self.workers, *self.databases]

    def wait_for_the_moment(self):
        time.sleep(self.random.choice([self.random.uniform(0, 0.1), self.random.uniform(0.1, 0.9)]))

    def start_workers(self):
        threads = [threading.Thread(target=w.run, args=(self.server.port,)) for w in self.everybody()]
        for thread in threads:
            thread.start()
        return threads

    def restart_with_shim(self):
        """Nothing is in doubt now; all that is on disk counts as synced."""
        check(self.server.stop() == 0, f"SIGTERM did not end in 0\n{self.server.tail()}")
        note_all_synced(self.folder, self.sync_log)
        self.server.env = {"LD_PRELOAD": self.shim, "SYNCED_LOG": self.sync_log}
        self.server.start()

    def start_again(self):
        self.server.env = None
        while self.random.random() < 0.3:  # die again while coming back
            self.server.spawn()
            time.sleep(self.random.uniform(0, 0.12))
            self.server.kill()
            self.done["kill at start"] += 1
        self.server.start()

    # -- checks --

    def verify(self):
        client = Client(self.server.port)
        for container in self.containers:
            items.verify(client, container, self.random)
        for database in self.databases:
            database.verify(client)
        metadata.verify_offers(client)
        client.close()

    def wait_for_expiry(self):
        """The sweep takes all that has expired, and the count comes to nothing exactly."""
        client, link = Client(self.server.port), self.containers[-1].link
        deadline = time.time() + 20
        while client.count(link) and time.time() < deadline:
            time.sleep(0.2)
        count, left = client.count(link), len(client.items(link))
        check((count, left) == (0, 0), f"{link}: all items have expired; documentsCount is {count}, {left} in the feed")
        client.close()


# ---- losing power ----


def build_shim(folder):
    """synced.c as a library to preload, or None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        print("crash: no C compiler: power losses are left out")
        return None
    library = os.path.join(folder, "synced.so")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "synced.c"), "-ldl"], check=True)
    return library


def data_files(folder):
    """The files that hold data. RocksDB's LOG and OPTIONS are for people."""
    database = os.path.join(folder, "db")
    for name in os.listdir(database):
        if name.endswith((".log", ".sst")) or name.startswith(("MANIFEST", "CURRENT")):
            yield os.path.join(database, name)


def note_all_synced(folder, sync_log):
    with open(sync_log, "w") as log:
        for path in data_files(folder):
            status = os.stat(path)
            log.write(f"{status.st_ino} {status.st_size}\n")


def lose_power(folder, sync_log):
    """Cuts every file back to what had been synced."""
    synced = {}
    with open(sync_log) as log:
        for line in log:
            if line.endswith("\n"):
                inode, size = line.split()
                synced[int(inode)] = int(size)
    for path in data_files(folder):
        status = os.stat(path)
        size = synced.get(status.st_ino, 0)
        if size < status.st_size:
            os.truncate(path, size)
