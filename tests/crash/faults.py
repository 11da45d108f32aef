"""faults.py: what the disk and the folder can do to a server, one test each. A test takes an empty folder and raises when it finds something.

Everywhere: the process never ends by a signal of its own, its message says what is wrong, what it refuses to open it leaves as it was, and
it never answers a read with something else than what was acknowledged.
"""
import hashlib
import os
import random
import shutil
import string
import struct
import subprocess
import time

from tesela import BINARY, Broken, Client, Server, check

LINK = "dbs/d/colls/c"
PROPERTIES = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


class Skipped(Exception):
    """A test that this machine does not allow."""


TESTS = {}


def test(function):
    TESTS[function.__name__.replace("_", " ")] = function
    return function


# ---- helpers ----


def server(folder, *flags, **more):
    return Server(os.path.join(folder, "data"), *flags, log=os.path.join(folder, "server.log"), **more)


NOISE = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=1 << 18))


def body_of(i, size=200):
    """Its text cannot be compressed: a disk is filled by what is written."""
    at = i * 7919 % (len(NOISE) - size)
    return {"id": f"i{i}", "pk": f"p{i % 7}", "n": i, "text": NOISE[at : at + size]}


def put(client, i, size=200):
    body = body_of(i, size)
    return client.upsert(LINK, body, [body["pk"]])


def make(client):
    check(client.create_database("d").status == 201, "create database")
    check(client.create_container("d", PROPERTIES, 400).status == 201, "create container")


def fill(client, first, last, size=200):
    for i in range(first, last):
        answer = put(client, i, size)
        check(answer.status in (200, 201), answer.error())


def read(client, i, size=200):
    """True: there and right. False: not there. None: refused with 5xx. Anything else is a find."""
    answer = client.item("GET", LINK, f"i{i}", [f"p{i % 7}"])
    if answer.status == 404:
        return False
    if answer.status in (500, 503):
        return None
    check(answer.status == 200, f"i{i}: {answer.error()}")
    document = answer.json()
    check({name: document.get(name) for name in body_of(i, size)} == body_of(i, size), f"i{i}: wrong content {document}")
    return True


def expect_all(client, n, size=200):
    check(client.count(LINK) == n, f"{client.count(LINK)} items counted, {n} were acknowledged")
    check(len(client.items(LINK)) == n, "the feed has another number of items")
    for i in range(0, n, max(1, n // 50)):
        check(read(client, i, size), f"i{i} was acknowledged and is gone")


def make_data(folder, runs=((0, 150), (150, 300)), clean=False):
    """A folder with items in tables and in the log; returns how many."""
    with server(folder) as s:
        for first, last in runs:
            s.start()
            client = Client(s.port)
            if first == 0:
                make(client)
            fill(client, first, last)
            s.stop() if clean else s.kill()
    return runs[-1][1]


def tree(folder, only_data=False):
    """{path: what is there}: the bytes of every file, without those that RocksDB writes for people."""
    found = {}
    for base, folders, files in os.walk(folder):
        found.update({os.path.relpath(os.path.join(base, name), folder): "folder" for name in folders})
        for name in files:
            if only_data and (name.startswith(("LOG", "OPTIONS")) or name == "LOCK"):
                continue
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def refused(s, *words):
    """The server does not start: says so on standard error, with these words, and ends with a code of its own."""
    open(s.log, "w").close()
    said = s.spawn().ready()
    if said:
        s.kill()
        raise Broken(f"it started: {said}")
    code, text = s.wait(), s.tail(40)
    check(code > 0, f"ended by signal {-code}\n{text}")
    lines = [line for line in text.splitlines() if line.startswith("tesela: ")]
    check(lines, f"no message\n{text}")
    for word in words:
        check(word in lines[-1], f"the message does not say '{word}': {lines[-1]}")
    return lines[-1]


def unharmed(s, before, only_data=False):
    after = tree(s.folder, only_data)
    for path, content in before.items():
        check(after.get(path) == content, f"{path} was changed by a server that refused to open it")
    extra = set(after) - set(before)
    check(not extra, f"a server that refused to open the folder left {sorted(extra)} in it")


def works_again(s, n, size=200):
    s.start()
    client = Client(s.port)
    expect_all(client, n, size)
    check(put(client, n, size).status == 201, "takes no writes")
    client.close()
    check(s.stop() == 0, "does not stop cleanly")


# ---- the folder ----


@test
def first_start_killed(folder, rng):
    """However early the first start dies, the next one works."""
    for i in range(25):
        shutil.rmtree(os.path.join(folder, "data"), ignore_errors=True)
        with server(folder) as s:
            for _ in range(rng.choice([1, 1, 2])):
                s.spawn()
                time.sleep(rng.uniform(0, 0.09))
                s.kill()
            s.start()
            client = Client(s.port)
            make(client)
            fill(client, 0, 3)
            s.kill()
            s.start()
            expect_all(Client(s.port), 3)
    return "25 times"


@test
def leftovers_of_first_start(folder, _):
    """What a first start can leave behind at worst."""
    data = os.path.join(folder, "data")
    os.makedirs(data)
    with open(os.path.join(data, "FORMAT.new"), "w") as file:
        file.write("tesela da")
    with server(folder) as s:
        s.start()
        make(Client(s.port))
        s.kill()


@test
def second_server(folder, _):
    with server(folder) as first, server(folder) as second:
        first.start()
        client = Client(first.port)
        make(client)
        fill(client, 0, 20)
        second.log = os.path.join(folder, "second.log")
        refused(second, "another tesela", "--data")
        fill(client, 20, 40)
        first.kill()
        works_again(second, 40)


@test
def foreign_folder(folder, _):
    with server(folder) as s:
        os.makedirs(os.path.join(s.folder, "db"))
        for name in ("notes.txt", "db/CURRENT"):
            with open(os.path.join(s.folder, name), "w") as file:
                file.write("somebody else's")
        before = tree(s.folder)
        refused(s, "not a tesela data folder", "nothing was touched")
        unharmed(s, before)


@test
def not_a_folder(folder, _):
    with server(folder) as s:
        with open(s.folder, "w") as file:
            file.write("a file")
        refused(s, s.folder)
        check(open(s.folder).read() == "a file", "the file was changed")
    with Server(os.path.join(folder, "data", "below"), log=os.path.join(folder, "server.log")) as s:
        refused(s, "Not a directory")


@test
def torn_format_file(folder, _):
    n = make_data(folder, ((0, 30),))
    with server(folder) as s:
        path = os.path.join(s.folder, "FORMAT")
        good = open(path, "rb").read()
        for bad in (b"", good[:5], good[: len(good) - 2], good[: len(good) - 1], b"\0" * len(good), good + b"x", b"x" * 100000):
            with open(path, "wb") as file:
                file.write(bad)
            before = tree(s.folder)
            refused(s, "FORMAT", "damaged", "Nothing was touched")
            unharmed(s, before)
        with open(path, "wb") as file:
            file.write(good)
        works_again(s, n)


@test
def newer_format(folder, _):
    n = make_data(folder, ((0, 30),))
    with server(folder) as s:
        path = os.path.join(s.folder, "FORMAT")
        good = open(path, "rb").read()
        for version in (b"1", b"17", b"2147483647"):
            with open(path, "wb") as file:
                file.write(b"tesela data " + version + b"\n")
            before = tree(s.folder)
            refused(s, f"format {version.decode()}", "reads format " + good.split()[-1].decode())
            unharmed(s, before)
        with open(path, "wb") as file:
            file.write(good)
        works_again(s, n)


@test
def missing_files(folder, _):
    """A data folder that has lost a file is not taken for a new one."""
    n = make_data(folder)
    with server(folder) as s:
        database = os.path.join(s.folder, "db")
        names = [name for name in os.listdir(database) if name == "CURRENT" or name.startswith("MANIFEST") or name.endswith(".sst")]
        for name in names:
            path = os.path.join(database, name)
            os.rename(path, path + ".away")
            before = tree(s.folder, only_data=True)
            refused(s, "cannot be opened")
            unharmed(s, before, only_data=True)
            os.rename(path + ".away", path)
        works_again(s, n)
    return f"{len(names)} files, one at a time"


# ---- damaged bytes ----


def records(path):
    """Where the records of a RocksDB log or MANIFEST are: blocks of 32 KB; a record is checksum u32, length u16, type u8, payload."""
    data = open(path, "rb").read()
    at, found = 0, []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length = struct.unpack_from("<H", data, at + 4)[0]
        found.append(range(at, min(at + 7 + length, len(data))))
        at += 7 + length
    return found


def damage_spots(database, rng):
    """(file, offset) to damage: a few of every kind of file. Of a log not the last record: damaged, it cannot be told from one that was
    being written when the power went."""
    spots = []
    for name in sorted(os.listdir(database)):
        path = os.path.join(database, name)
        size = os.path.getsize(path)
        if name.endswith(".log") and size:
            found = records(path)[:-1]
            spots += [(path, rng.choice(rng.choice(found))) for _ in range(6)]
            spots += [(path, found[0][0]), (path, found[len(found) // 2][5]), (path, found[-1][-1])]
        elif name.endswith(".sst"):
            spots += [(path, rng.randrange(size)) for _ in range(5)] + [(path, size - 1), (path, 0)]
        elif name.startswith("MANIFEST"):
            spots += [(path, rng.choice(rng.choice(records(path))[7:])) for _ in range(6)]
        elif name == "CURRENT":
            spots += [(path, rng.randrange(size)) for _ in range(2)]
    return spots


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x5A]))


@test
def damaged_bytes(folder, rng):
    """One wrong byte: refused with a message, or found when it is read; never another answer than the right one."""
    n = make_data(folder)
    with server(folder) as s:
        good = s.folder + ".good"
        os.rename(s.folder, good)
        spots = damage_spots(os.path.join(good, "db"), rng)
        outcomes = {"refused": 0, "noticed when read": 0, "without effect": 0}
        for path, offset in spots:
            shutil.rmtree(s.folder, ignore_errors=True)
            shutil.copytree(good, s.folder)
            where = os.path.join(s.folder, "db", os.path.basename(path))
            flip(where, offset)
            try:
                outcomes[try_damaged(s, n, where, offset)] += 1
            except Broken as broken:
                raise Broken(f"{os.path.basename(path)} of {os.path.getsize(path)} bytes, byte {offset}: {broken}") from broken
        shutil.rmtree(s.folder)
        os.rename(good, s.folder)
        works_again(s, n)
    return f"{len(spots)} bytes; " + ", ".join(f"{name}: {count}" for name, count in outcomes.items())


def try_damaged(s, n, path, offset):
    open(s.log, "w").close()
    if not s.spawn().ready():
        code = s.wait()
        check(code > 0, f"ended by signal {-code}\n{s.tail()}")
        check("tesela: the data" in s.tail(40), f"no message\n{s.tail()}")
        flip(path, offset)  # mended, nothing must be missing
        works_again(s, n)
        return "refused"
    client = Client(s.port)
    answers = [read(client, i) for i in range(n)]
    check(False not in answers, f"i{answers.index(False) if False in answers else 0} was acknowledged and is answered with 404")
    client.ask("GET", f"/{LINK}/docs", "docs", LINK)
    put(client, n)
    check(s.process.poll() is None, f"the server died\n{s.tail()}")
    check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
    return "noticed when read" if None in answers else "without effect"


# ---- the log's tail ----


def last_log(s):
    database = os.path.join(s.folder, "db")
    return os.path.join(database, max(name for name in os.listdir(database) if name.endswith(".log")))


@test
def torn_log(folder, rng):
    """A log cut anywhere: all up to the cut is there, nothing after it, nothing half."""
    sizes = []
    with server(folder) as s:
        s.start()
        client = Client(s.port)
        make(client)
        for i in range(120):
            fill(client, i, i + 1, 100 + i)
            sizes.append(os.path.getsize(last_log(s)))
        s.kill()
        good = s.folder + ".good"
        os.rename(s.folder, good)
        end = sizes[-1]
        cuts = [end - 1, end - 7, end - 100, sizes[60], sizes[60] - 1, sizes[60] + 3] + [rng.randrange(sizes[0], end) for _ in range(8)]
        for cut, tail in [(cut, b"") for cut in cuts] + [(end, b"\0" * 5000), (sizes[80], b"\0" * 40000), (end, b"\0")]:
            shutil.rmtree(s.folder, ignore_errors=True)
            shutil.copytree(good, s.folder)
            os.truncate(last_log(s), cut)
            with open(last_log(s), "ab") as log:
                log.write(tail)
            expect_prefix(s, sum(size <= cut for size in sizes), cut)
    return f"{len(cuts)} cuts of {end} bytes"


def expect_prefix(s, n, cut):
    s.start()
    client = Client(s.port)
    for i in range(120):
        answer = client.item("GET", LINK, f"i{i}", [f"p{i % 7}"])
        check(answer.status == (200 if i < n else 404), f"cut at {cut}, {n} writes before it: i{i} is {answer.error()}")
        check(i >= n or answer.json()["text"] == body_of(i, 100 + i)["text"], f"i{i}: wrong content")
    check(client.count(LINK) == n, f"cut at {cut}: {client.count(LINK)} items counted, {n} are there")
    check(put(client, 500).status == 201, "takes no writes")
    s.kill()


# ---- the disk ----


class Mount:
    """A file system of the test's own, gone at the end of the block: a small disk in memory, or a folder made read-only."""

    def __init__(self, where, *arguments):
        self.where, self.arguments = where, arguments

    @staticmethod
    def small(where, size):
        return Mount(where, ["-t", "tmpfs", "-o", f"size={size}", "tesela-test"])

    @staticmethod
    def read_only(folder):
        return Mount(folder, ["--bind", folder], ["-o", "remount,ro,bind"])

    def __enter__(self):
        os.makedirs(self.where, exist_ok=True)
        if os.getuid() != 0:
            raise Skipped("mounting needs root")
        for arguments in self.arguments:
            done = subprocess.run(["mount", *arguments, self.where], capture_output=True, text=True)
            if done.returncode:
                raise Skipped(f"mount is not possible here: {done.stderr.strip()}")
        return self

    def __exit__(self, *_):
        for _ in range(50):
            if subprocess.run(["umount", self.where], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)


def ballast(path, size):
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def free_bytes(path):
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def leave_free(where, size):
    """A ballast of such a size that so many bytes are free."""
    path = os.path.join(where, "ballast")
    if os.path.exists(path):
        os.remove(path)
    ballast(path, free_bytes(where) - size)


def expect_full(answer):
    check(answer.status == 503, f"a full disk is answered with {answer.error()}")
    check(b"ServiceUnavailable" in answer.body and b"disk" in answer.body, f"the answer does not say that the disk is full: {answer.error()}")


def write_until_full(client, first, size):
    """A compaction takes space for a while: it is full when it stays so."""
    refused_since = None
    for i in range(first, first + 30000):
        answer = put(client, i, size)
        while answer.status not in (200, 201):
            refused_since = refused_since or time.time()
            if time.time() - refused_since > 1.5:
                return i, answer
            time.sleep(0.02)
            answer = put(client, i, size)
        refused_since = None
    raise Broken("the disk never became full")


@test
def disk_full(folder, _):
    """Writes fill the disk: clear refusals, reads go on; with space again, writes do too; nothing acknowledged is lost."""
    size, rounds = 20000, []
    with Mount.small(os.path.join(folder, "disk"), "192m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            pieces = [os.path.join(disk.where, f"ballast{i}") for i in range(3)]
            for piece in pieces:
                ballast(piece, 32 << 20)
            s.start()
            client = Client(s.port)
            make(client)
            n, answer = write_until_full(client, 0, size)
            for piece in pieces:
                refuses_all_writes(client, n, size, answer)
                rounds.append(n)
                expect_all(client, n, size)
                os.remove(piece)
                wait_until_writable(client, n, size)
                n, answer = write_until_full(client, n + 1, size)
            s.kill()
            s.start()
            client = Client(s.port)
            expect_all(client, n, size)
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
    return f"full after {rounds} items of {size} bytes"


def refuses_all_writes(client, n, size, answer):
    expect_full(answer)
    for _ in range(20):
        expect_full(put(client, n, size))
    expect_full(client.create_database("another"))


def delete_items(client, first, last):
    """All of them, and each is gone. A compaction may take the space for a while."""
    for i in range(first, last):
        deadline = time.time() + 10
        answer = client.item("DELETE", LINK, f"i{i}", [f"p{i % 7}"])
        while answer.status == 503 and time.time() < deadline:
            time.sleep(0.05)
            answer = client.item("DELETE", LINK, f"i{i}", [f"p{i % 7}"])
        check(answer.status == 204, f"a delete on a full disk: {answer.error()}")
        check(read(client, i) is False, f"i{i} was deleted and is there")


def delete_until_writable(client, first, last, size):
    """Deletes the items; then a write is accepted."""
    deadline = time.time() + 60
    delete_items(client, first, last)
    while True:
        answer = put(client, last, size)
        if answer.status == 201:
            return
        expect_full(answer)
        check(time.time() < deadline, "the items were deleted, and writes are still refused")
        time.sleep(0.05)


@test
def full_disk_emptied_by_deletes(folder, _):
    """A full disk is emptied by deleting items, without a restart and after one; then writes come back by themselves."""
    size, said = 20000, []
    with Mount.small(os.path.join(folder, "disk"), "64m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            s.start()
            first = 0
            for restart in (None, s.stop, s.kill):
                client = Client(s.port)
                if first == 0:
                    make(client)
                n, answer = write_until_full(client, first, size)
                expect_full(answer)
                if restart:
                    restart()
                    s.start()
                    client = Client(s.port)
                    n, answer = write_until_full(client, n, size)  # a start gives some space back
                    expect_full(answer)
                full = free_bytes(disk.where)
                delete_until_writable(client, first, n, size)
                check(free_bytes(disk.where) > full, "deletes freed nothing")
                check(client.count(LINK) == 1, f"{client.count(LINK)} items are left, not one")
                said.append(n - first)
                first = n + 1
                check(client.item("DELETE", LINK, f"i{n}", [f"p{n % 7}"]).status == 204, "delete")
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
    return f"{said} items of {size} bytes"


@test
def full_disk_emptied_by_a_part(folder, _):
    """Deletes of the older two thirds are enough: what is left stays as it is."""
    size = 20000
    with Mount.small(os.path.join(folder, "disk"), "96m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            s.start()
            client = Client(s.port)
            make(client)
            n, answer = write_until_full(client, 0, size)
            expect_full(answer)
            part = n * 2 // 3
            delete_items(client, 0, part)
            s.kill()  # deletes that are not yet compacted, and a server that knows nothing of them
            s.start()
            client = Client(s.port)
            deadline = time.time() + 60
            while put(client, n, size).status != 201:
                check(time.time() < deadline, "two thirds were deleted, and writes are still refused")
                time.sleep(0.05)
            for i in range(part, n + 1):
                check(read(client, i, size), f"i{i} was acknowledged and is gone")
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
    return f"{part} of {n} items"


@test
def full_disk_emptied_by_drops(folder, _):
    """A container, and a database, can be deleted on a full disk, and their space comes back."""
    size = 20000
    with Mount.small(os.path.join(folder, "disk"), "96m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            s.start()
            for kind, link in (("colls", LINK), ("dbs", "dbs/d")):
                client = Client(s.port)
                if kind == "colls":
                    check(client.create_database("d").status == 201, "create database")
                check(client.create_container("d", PROPERTIES, 400).status == 201, "create container")
                n, answer = write_until_full(client, 0, size)
                expect_full(answer)
                s.kill()
                s.start()
                client = Client(s.port)
                check(client.delete(kind, link).status == 204, "a full disk refuses to delete " + link)
                wait_until_possible(lambda: client.create_database("e"))
                check(client.delete("dbs", "dbs/e").status == 204, "delete")
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")


def wait_until_possible(ask):
    deadline = time.time() + 60
    while True:
        answer = ask()
        if answer.status == 201:
            return
        expect_full(answer)
        check(time.time() < deadline, f"space was freed, and writes are still refused: {answer.error()}")
        time.sleep(0.05)


@test
def deletes_leave_a_reserve(folder, _):
    """Somebody else takes the disk: items cannot be deleted, since that needs space too; a container still can; at the last byte nothing can."""
    size = 5000
    with Mount.small(os.path.join(folder, "disk"), "192m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            s.start()
            client = Client(s.port)
            make(client)
            fill(client, 0, 2000, size)
            ballast(os.path.join(disk.where, "ballast"), free_bytes(disk.where) - (6 << 20))
            time.sleep(0.2)
            expect_full(put(client, 2000, size))
            expect_full(client.item("DELETE", LINK, "i0", ["p0"]))
            ballast(os.path.join(disk.where, "more"), free_bytes(disk.where) - (1 << 20))
            time.sleep(0.2)
            expect_full(client.delete("colls", LINK))
            expect_all(client, 2000, size)
            os.remove(os.path.join(disk.where, "more"))
            time.sleep(0.2)
            check(client.delete("colls", LINK).status == 204, "the container cannot be deleted")
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")


@test
def full_disk_at_the_start(folder, _):
    """Not a byte is free: reads are served, also of what is still in the log; writes are refused; a restart with space brings them back."""
    size, n = 5000, 3000
    for clean in (True, False):
        with Mount.small(os.path.join(folder, "disk"), "128m") as disk:
            with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
                s.start()
                client = Client(s.port)
                make(client)
                fill(client, 0, n, size)
                s.stop() if clean else s.kill()
                for free in (0, 0, 9 << 20):  # nothing; nothing again; too little for what the log holds
                    leave_free(disk.where, free)
                    s.start()
                    client = Client(s.port)
                    expect_all(client, n, size)
                    if free == 0:
                        expect_full(put(client, n, size))
                        expect_full(client.delete("colls", LINK))
                        check("restart" in s.tail(40), f"the log does not say what to do\n{s.tail()}")
                    else:  # if the log was flushed its space has come back, and is enough
                        answer = put(client, n, size)
                        if answer.status == 201:
                            check(client.item("DELETE", LINK, f"i{n}", [f"p{n % 7}"]).status == 204, "delete")
                        else:
                            expect_full(answer)
                    check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
                os.remove(os.path.join(disk.where, "ballast"))
                works_again(s, n, size)


@test
def full_disk_at_the_first_start(folder, _):
    with Mount.small(os.path.join(folder, "disk"), "16m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            ballast(os.path.join(disk.where, "ballast"), free_bytes(disk.where) - (1 << 20))
            refused(s, "full", "Free space")
            os.remove(os.path.join(disk.where, "ballast"))
            s.start()
            check(s.stop() == 0, "does not stop cleanly")


@test
def disk_filled_by_others(folder, _):
    """Somebody else takes the last byte in the middle of our writes. What was acknowledged stays; reads go on; a restart with space again
    brings the writes back, if they did not come back by themselves."""
    size = 5000
    with Mount.small(os.path.join(folder, "disk"), "128m") as disk:
        with Server(os.path.join(disk.where, "data"), log=os.path.join(folder, "server.log")) as s:
            s.start()
            client = Client(s.port)
            make(client)
            fill(client, 0, 500, size)
            ballast(os.path.join(disk.where, "ballast"), free_bytes(disk.where))
            n, answer = write_until_full(client, 500, size)
            check(answer.status == 503, f"{answer.error()}")
            expect_all(client, n, size)
            os.remove(os.path.join(disk.where, "ballast"))
            time.sleep(0.2)
            by_itself = put(client, n, size).status == 201
            n += by_itself
            s.kill()
            s.start()
            client = Client(s.port)
            check(client.count(LINK) - n in (0, 1), "more or fewer items than acknowledged or in doubt")
            for i in range(n):
                check(read(client, i, size), f"i{i} was acknowledged and is gone")
            fill(client, n, n + 10, size)
            check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")
    return f"writes came back {'by themselves' if by_itself else 'after a restart'}"


def wait_until_writable(client, i, size):
    deadline = time.time() + 5
    while True:
        answer = put(client, i, size)
        if answer.status == 201:
            return answer
        expect_full(answer)
        check(time.time() < deadline, f"space was freed, and writes are still refused: {answer.error()}")
        time.sleep(0.02)


# ---- threads ----

SOMEBODY = "61234"  # a user who has no processes: a limit of processes counts those of a user, and holds for everybody but root


@test
def no_more_threads(folder, _):
    """A limit of processes: a start that needs more says so; a server that has started goes on."""
    if os.getuid() != 0 or not shutil.which("setpriv") or not shutil.which("prlimit"):
        raise Skipped("running as another user needs root, setpriv and prlimit")
    os.chmod(folder, 0o777)
    as_somebody = ["setpriv", "--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups"]
    if subprocess.run([*as_somebody, BINARY, "serve", "--version"], capture_output=True).returncode:
        raise Skipped("setpriv is not allowed here, or the binary is out of reach")
    said = []
    for limit in (2, 5, 12, 20, 24, 28):
        with server(folder, prefix=["prlimit", f"--nproc={limit}", *as_somebody]) as s:
            started = s.spawn().ready()
            said.append(started is not None)
            if started:
                s.kill()
            else:
                code = s.wait()
                check(code > 0, f"{limit} processes: ended by signal {-code}\n{s.tail()}")
                check("limit of processes" in s.tail(), f"{limit} processes: no message\n{s.tail()}")
    check(not said[0], "it started with two threads")
    with server(folder, prefix=as_somebody) as s:
        s.start()
        client = Client(s.port)
        make(client)
        fill(client, 0, 10)
        subprocess.run([*as_somebody, "prlimit", "--pid", str(s.process.pid), "--nproc=1"], check=True)
        fill(client, 10, 2000)
        expect_all(client, 2000)
        check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")


# ---- a folder that cannot be written ----


def serves_reads_only(s, n):
    s.start()
    client = Client(s.port)
    expect_all(client, n)
    for answer in (put(client, n), client.item("DELETE", LINK, "i0", ["p0"]), client.create_database("another")):
        check(answer.status == 503, f"a write to a read-only folder: {answer.error()}")
    expect_all(client, n)
    check("read-only" in s.tail(), f"the log does not say so\n{s.tail()}")
    check(s.stop() == 0, f"does not stop cleanly\n{s.tail()}")


@test
def read_only_folder(folder, _):
    """Mounted read-only: what is there is served, also after a kill, when it is still in the log."""
    for clean in (True, False):
        n = make_data(folder, clean=clean)
        data = os.path.join(folder, "data")
        before = tree(data)
        with Mount.read_only(data):
            with server(folder) as s:
                serves_reads_only(s, n)
        check(tree(data) == before, "a read-only folder was changed")
        with server(folder) as s:
            works_again(s, n)
        shutil.rmtree(data)


@test
def read_only_empty_folder(folder, _):
    data = os.path.join(folder, "data")
    os.makedirs(data)
    with Mount.read_only(data):
        with server(folder) as s:
            refused(s, "cannot write", data)


@test
def folder_of_another_user(folder, _):
    """No permission: said, with nothing touched. (The server runs as nobody.)"""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("running as another user needs root and setpriv")
    n = make_data(folder)
    os.chmod(folder, 0o755)
    before = tree(os.path.join(folder, "data"))
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    probe = subprocess.run([*as_nobody, "true"], capture_output=True)
    if probe.returncode:
        raise Skipped("setpriv is not allowed here")
    with server(folder, prefix=as_nobody) as s:
        refused(s, "ermission denied", s.folder)
        unharmed(s, before)
    with server(folder) as s:
        works_again(s, n)
