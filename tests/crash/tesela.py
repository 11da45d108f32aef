"""tesela.py: the real server as a child process, and a small client that signs its requests. Standard library only."""
import base64
import email.utils
import hmac
import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.parse

KEY = base64.b64decode("C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")
HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.abspath(os.environ.get("TESELA_BIN") or os.path.join(HERE, "..", "..", "build", "tesela"))

SETTINGS = {"TESELA_INDEX_TAIL": "32KB"}


class Broken(Exception):
    """A check that did not hold: the test has found something."""


def check(condition, text):
    if not condition:
        raise Broken(text)


# ---- the server ----


class Server:
    """One process. It is ended by its pid, in any case by the end of the `with` block. Its index entries become tables early and often."""

    def __init__(self, folder, *flags, prefix=(), env=None, log=None):
        self.folder, self.flags, self.prefix, self.env = folder, flags, list(prefix), env
        self.log = log or os.path.join(os.path.dirname(folder) or ".", "server.log")
        self.process = self.port = None

    def spawn(self):
        """Starts the process without waiting for it to be ready."""
        command = [*self.prefix, BINARY, "serve", "--data", self.folder, "--sql-port", "0", "--throttling", "off", *self.flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **SETTINGS, **(self.env or {})}, start_new_session=True
            )
        return self

    def ready(self, seconds=20):
        """The ready line, or None when the process ended instead."""
        out = self.process.stdout
        if not select.select([out], [], [], seconds)[0]:
            raise Broken(f"the server was not ready after {seconds} s\n{self.tail()}")
        line = out.readline()
        if not line:
            self.process.wait()
            return None
        said = json.loads(line)
        self.port = int(said["sql"].rsplit(":", 1)[1])
        return said

    def start(self):
        self.spawn()
        check(self.ready(), f"the server did not start\n{self.tail()}")
        return self

    def kill(self):
        """SIGKILL, the real one."""
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        return self.wait()

    def stop(self, seconds=20):
        os.kill(self.process.pid, signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=20):
        if not self.process:
            return None
        code = self.process.wait(timeout=seconds)
        self.process.stdout.close()
        return code

    def tail(self, lines=15):
        with open(self.log, "rb") as log:
            return b"\n".join(log.read().splitlines()[-lines:]).decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.returncode is None:
            self.kill()


# ---- requests ----


class Answer:
    __slots__ = ("status", "fields", "body")

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        return f"{self.status} {self.body[:400]!r}"


_dates = {}


def http_date():
    now = int(time.time())
    if now not in _dates:
        _dates.clear()
        _dates[now] = email.utils.formatdate(now, usegmt=True)
    return _dates[now]


def token(verb, kind, link, date):
    text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n".encode()
    signature = base64.b64encode(hmac.digest(KEY, text, "sha256")).decode()
    return urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe="")


class Client:
    """One connection, one request at a time. Raises OSError when the connection breaks: whether the request was done is then in doubt."""

    def __init__(self, port, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def close(self):
        self.socket.close()

    def _receive(self):
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError("closed by the server")
        return piece

    def _answer(self):
        data = self.rest
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, rest = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            fields[name.lower()] = value.strip()
        n = int(fields.get("content-length", 0))
        pieces, have = [rest], len(rest)
        while have < n:
            pieces.append(self._receive())
            have += len(pieces[-1])
        body = b"".join(pieces)
        self.rest = body[n:]
        return Answer(int(lines[0].split()[1]), fields, body[:n])

    def send(self, verb, path, kind, link, body=None, **fields):
        date = http_date()
        data = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{verb} {urllib.parse.quote(path)} HTTP/1.1",
            "host: localhost",
            f"authorization: {token(verb, kind, link, date)}",
            f"x-ms-date: {date}",
            "x-ms-version: 2020-07-15",
            f"content-length: {len(data)}",
        ]
        for name, value in fields.items():
            lines.append(f"{name.replace('_', '-')}: {value}")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def ask(self, *args, **fields):
        self.send(*args, **fields)
        return self._answer()

    def send_admin(self, verb, path, body=None):
        """Under /_tesela/, where nobody is asked for a key on loopback."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{verb} /_tesela/{path} HTTP/1.1", "host: localhost", "content-type: application/json", f"content-length: {len(data)}"]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def admin(self, *args):
        self.send_admin(*args)
        return self._answer()

    # -- items --

    def post(self, link, body, key, **fields):
        return self.ask("POST", f"/{link}/docs", "docs", link, body, x_ms_documentdb_partitionkey=json.dumps(key), **fields)

    def create(self, link, body, key):
        return self.post(link, body, key)

    def upsert(self, link, body, key):
        return self.post(link, body, key, x_ms_documentdb_is_upsert="True")

    def batch(self, link, operations, key):
        return self.post(link, operations, key, x_ms_cosmos_is_batch_request="True", x_ms_cosmos_batch_atomic="True")

    def bulk(self, link, operations):
        fields = {"x_ms_cosmos_is_batch_request": "True", "x_ms_cosmos_batch_continue_on_error": "True"}
        return self.ask("POST", f"/{link}/docs", "docs", link, operations, **fields)

    def item(self, verb, link, name, key, body=None, **fields):
        whole = f"{link}/docs/{name}"
        return self.ask(verb, "/" + whole, "docs", whole, body, x_ms_documentdb_partitionkey=json.dumps(key), **fields)

    def feed(self, path, kind, link, name, page, **fields):
        """All pages of a feed."""
        found, continuation = [], {}
        while True:
            answer = self.ask("GET", path, kind, link, x_ms_max_item_count=page, **continuation, **fields)
            check(answer.status == 200, f"GET {path}: {answer.error()}")
            found += answer.json()[name]
            if "x-ms-continuation" not in answer.fields:
                return found
            continuation = {"x_ms_continuation": answer.fields["x-ms-continuation"]}

    def items(self, link, page=1000, **fields):
        return self.feed(f"/{link}/docs", "docs", link, "Documents", page, **fields)

    def changes(self, link, page, **fields):
        """The change feed from its beginning, until nothing is new."""
        found, place = [], {}
        while True:
            answer = self.ask("GET", f"/{link}/docs", "docs", link, a_im="Incremental feed", x_ms_max_item_count=page, **place, **fields)
            check(answer.status in (200, 304), f"the change feed of {link}: {answer.error()}")
            if answer.status == 304:
                return found
            found += answer.json()["Documents"]
            place = {"if_none_match": answer.fields["etag"]}

    def query(self, link, range_id, text, **parameters):
        """All rows of one range."""
        found, continuation = [], {}
        body = {"query": text, "parameters": [{"name": "@" + name, "value": value} for name, value in parameters.items()]}
        fields = {"content_type": "application/query+json", "x_ms_documentdb_isquery": "True", "x_ms_documentdb_partitionkeyrangeid": range_id}
        while True:
            answer = self.ask("POST", f"/{link}/docs", "docs", link, body, x_ms_documentdb_query_enablecrosspartition="True", **fields, **continuation)
            check(answer.status == 200, f"{text}: {answer.error()}")
            found += answer.json()["Documents"]
            if "x-ms-continuation" not in answer.fields:
                return found
            continuation = {"x_ms_continuation": answer.fields["x-ms-continuation"]}

    # -- databases and containers --

    def create_database(self, name, **fields):
        return self.ask("POST", "/dbs", "dbs", "", {"id": name}, **fields)

    def create_container(self, database, properties, throughput=None):
        fields = {"x_ms_offer_throughput": throughput} if throughput else {}
        return self.ask("POST", f"/dbs/{database}/colls", "colls", f"dbs/{database}", properties, **fields)

    def delete(self, kind, link):
        return self.ask("DELETE", "/" + link, kind, link)

    def get(self, kind, link):
        return self.ask("GET", "/" + link, kind, link)

    def databases(self):
        return self.feed("/dbs", "dbs", "", "Databases", 100)

    def containers(self, database):
        return self.feed(f"/dbs/{database}/colls", "colls", f"dbs/{database}", "DocumentCollections", 100)

    def offers(self):
        return self.feed("/offers", "offers", "", "Offers", 100)

    def send_throughput(self, offer, value):
        """`offer` is the rid of one."""
        content = {"offerVersion": "V2", "content": {"offerThroughput": value}}
        self.send("PUT", f"/offers/{offer}", "offers", offer.lower(), content)

    def replace_throughput(self, offer, value):
        self.send_throughput(offer, value)
        return self._answer()

    def ranges(self, link):
        return self.feed(f"/{link}/pkranges", "pkranges", link, "PartitionKeyRanges", 100)

    def count(self, link):
        """Items by the container's own counts, from x-ms-resource-usage."""
        answer = self.get("colls", link)
        check(answer.status == 200, f"GET {link}: {answer.error()}")
        usage = dict(part.split("=") for part in answer.fields["x-ms-resource-usage"].split(";") if part)
        return int(usage["documentsCount"])


def number_of(rid):
    """A document's number, by which feeds are ordered: bytes 8 to 15 of its _rid, little-endian."""
    return int.from_bytes(base64.b64decode(rid.replace("-", "/"))[8:16], "little")


def lsn_of(etag):
    return int(etag.strip('"')[:8], 16)
