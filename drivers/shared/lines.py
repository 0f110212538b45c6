"""What the drivers in Python share: lines in, lines out, and one thread for each client
(docs/reference/drivers.md).

A driver gives `serve` one class for each role. Its methods have the names of commands, take the command and
return the fields of `done`; `append` also takes a function to call later with an error or with those fields.
"""

import base64
import faulthandler
import json
import os
import queue
import sys
import threading
import time

COMMON = ("bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms", "extra")
PRODUCER = (
    "acks",
    "idempotence",
    "in_flight",
    "linger_ms",
    "batch_bytes",
    "batch_records",
    "compression",
    "retries",
)
PRODUCER += ("delivery_timeout_ms", "transactional_id", "transaction_timeout_ms")
CONSUMER = ("group", "group_instance_id", "isolation", "assignor", "auto_commit", "auto_commit_interval_ms")
CONSUMER += ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "offset_reset")
CONSUMER += ("fetch_max_wait_ms", "fetch_min_bytes", "fetch_max_bytes", "max_poll_records", "rack")
FIELDS = {
    "append": ("topic", "partition", "key", "value"),
    "subscribe": ("topics",),
    "resubscribe": ("topics",),
    "rewind": (),
    "pause": (),
    "resume": (),
    "assign": ("partitions",),
    "poll": ("timeout_ms", "max_records"),
    "seek": ("topic", "partition", "offset"),
    "position": ("topic", "partition"),
    "commit": ("mode", "offsets"),
    "committed": ("partitions",),
    "create_topics": ("topics",),
    "describe_topics": ("topics",),
    "delete_topics": ("topics",),
    "describe_configs": ("topic",),
    "alter_configs": ("topic", "config"),
}
MOST_LINE, MOST_CLIENTS, MOST_UNDER_WAY, MOST_TEXT, MOST_POLLED = 1 << 20, 64, 20_000, 2_000, 500_000
IDLE_S = 0.002
lock, under_way = threading.Lock(), set()


class Refused(Exception):
    """Nothing was asked of the library."""

    def __init__(self, expected, seen):
        super().__init__(expected, seen)
        self.expected, self.seen = expected, str(seen)[:MOST_TEXT]


def encoded(value):
    """Bytes as they are on a line."""
    return None if value is None else base64.b64encode(value).decode()


def decoded(value):
    """And back."""
    return None if value is None else base64.b64decode(value, validate=True)


def write(**event):
    """One line."""
    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    with lock:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def happened(event, client, **fields):
    """A line that answers no command."""
    write(event=event, client=client, at_ns=time.monotonic_ns(), wall_ns=time.time_ns(), **fields)


def setting(config, known):
    """The settings that were given, and which of them this library does not have."""
    unknown = [name for name in config if name not in COMMON + PRODUCER + CONSUMER]
    if unknown:
        raise Refused("one of " + ", ".join(COMMON + PRODUCER + CONSUMER), unknown[0])
    given = {name: value for name, value in config.items() if value is not None}
    if "bootstrap" not in given:
        raise Refused("a bootstrap address", "none")
    return {name: given[name] for name in given if name in known}, [
        name for name in given if name not in known
    ]


def one_of(value, table, what):
    """What a value means to the library. Refuses one that it does not have."""
    if value not in table:
        raise Refused(f"a {what} of {', '.join(map(str, table))}", value)
    return table[value]


def bounded(records, size=0):
    """As many of these records as fit a line; the first always does. Answers the rest, too."""
    for count, record in enumerate(records):
        size += sum(
            len(text or "")
            for text in (
                record["key"],
                record["value"],
                *(text for header in record["headers"] for text in header),
            )
        )
        if count and size > MOST_POLLED * 4 // 3:
            return records[:count], records[count:]
    return records, []


class Worker(threading.Thread):
    """The thread of one client."""

    def __init__(self, name, make, error_of):
        super().__init__(daemon=True)
        self.client_name, self.make, self.error_of, self.client = name, make, error_of, None
        self.queue = queue.SimpleQueue()
        self.over = False

    def run(self):
        while True:
            try:
                command = self.queue.get(timeout=IDLE_S)
            except queue.Empty:
                if self.client is not None:
                    self.client.idle()
                continue
            self.carry_out(command)
            if self.client is None:
                return

    def carry_out(self, command):
        name, began = command["command"], time.monotonic_ns()

        def done(error=None, **fields):
            # the name is free before anybody hears of it: a library may take long to tidy up after `close`
            self.over = name == "close" or (name == "open" and error is not None)
            ended, wall = time.monotonic_ns(), time.time_ns()
            if error is not None:
                fields["error"] = {"fatal": False, "code": None, **self.error_of(error)}
                fields["error"]["text"] = str(fields["error"].get("text", error))[:MOST_TEXT]
            under_way.discard(command["id"])
            write(event="done", id=command["id"], client=self.client_name, command=name, ok=error is None,
                  invoked_ns=began, completed_ns=ended, wall_ns=wall, **fields)  # fmt: skip

        try:
            if name == "open":
                self.client = self.make(self.client_name, command["config"])
                done(ignored=self.client.ignored)
            elif name == "append":
                self.client.append(command, done)
            else:
                done(**(getattr(self.client, name)(command) or {}))
        except Refused as error:
            self.over = name in ("open", "close")
            under_way.discard(command["id"])
            refuse(command, error.expected, error.seen)
        except Exception as error:
            done(error)
        if name == "close":
            self.client = None


def refuse(command, expected, seen):
    """Say why nothing was asked of the library."""
    write(event="refused", id=command.get("id"), command=str(command.get("command"))[:100], expected=expected,
          seen=str(seen)[:MOST_TEXT])  # fmt: skip


def serve(roles, error_of, **ready):
    """Read commands until there are no more. roles: the class of each."""
    faulthandler.enable(all_threads=False)  # where it was when the library crashed
    own = {
        name
        for role in roles.values()
        for name in dir(role)
        if name in {*FIELDS, "flush", "cancel", "begin", "send_offsets"}
    }
    own |= {name for role in roles.values() for name in dir(role) if name.endswith("_transaction")}
    commands, workers = sorted(own | {"open", "close", "clock", "quit"}), {}
    write(event="ready", protocol=1, commands=commands, roles=list(roles), now_ns=time.monotonic_ns(),
          wall_ns=time.time_ns(), runtime="python " + sys.version.split()[0], **ready)  # fmt: skip
    while line := sys.stdin.buffer.readline(MOST_LINE + 1):
        command = {}
        try:
            if len(line) > MOST_LINE:
                break
            command = json.loads(line)
            if take(command, commands, roles, workers, error_of) == "quit":
                break
        except Refused as error:
            refuse(command, error.expected, error.seen)
        except (ValueError, TypeError, AttributeError) as error:
            refuse(command if isinstance(command, dict) else {}, "a command as one JSON object", error)
    with lock:  # nothing is written after the last line
        os._exit(0)


def take(command, commands, roles, workers, error_of):
    """One command: to the thread of its client."""
    name, client = command.get("command"), command.get("client")
    if name not in commands:
        raise Refused("one of " + ", ".join(commands), name)
    if not isinstance(command.get("id"), int):
        raise Refused("an integer id", command.get("id"))
    if name in ("clock", "quit"):
        times = dict.fromkeys(("invoked_ns", "completed_ns", "now_ns"), time.monotonic_ns())
        write(event="done", id=command["id"], command=name, ok=True, wall_ns=time.time_ns(), **times)
        return name
    for wanted in FIELDS.get(name, ()):
        if wanted not in command:
            raise Refused(f"the field {wanted} of {name}", "none")
    if name == "open":
        for one in [one for one, worker in workers.items() if worker.over or not worker.is_alive()]:
            del workers[one]
        if not isinstance(client, str) or client in workers or len(workers) >= MOST_CLIENTS:
            raise Refused(f"a name that is not open, of at most {MOST_CLIENTS}", client)
        if command.get("role") not in roles or not isinstance(command.get("config"), dict):
            raise Refused(f"a role of {', '.join(roles)} and its config", command.get("role"))
        workers[client] = Worker(client, roles[command["role"]], error_of)
        workers[client].start()
    worker = workers.get(client)
    if worker is None or worker.over or not worker.is_alive():
        raise Refused(f"a client of {', '.join(workers) or 'none'}", client)
    role = getattr(worker.make, "__name__", "client")
    if name not in ("open", "close") and not hasattr(worker.make, name):
        raise Refused(f"a command of a {role.lower()}", name)
    if len(under_way) >= MOST_UNDER_WAY:
        raise Refused(f"at most {MOST_UNDER_WAY} commands under way", "more")
    under_way.add(command["id"])
    worker.queue.put(command)
    return name
