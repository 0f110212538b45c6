"""A driver that breaks one promise: it runs a good one, and changes what goes through it.

`python tampering.py MODE COMMAND...`. What a library of that kind would do, in lines of the drivers'
protocol.
"""

import base64
import json
import socket
import subprocess
import sys
import threading
import time

MODE, COMMAND = sys.argv[1], sys.argv[2:]
HELD_S = 5
"""How long a partition is held up."""
NTH = 7
"""The append that is tampered with."""
HIDDEN = 10_000_000
"""Ids of commands that the judge did not send."""
child = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = threading.Lock()
appends, kept, lie = {}, {}, {}
count, highest, early, held = 0, {}, set(), []


def say(event):
    with lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def ask(command):
    child.stdin.write(json.dumps(command).encode() + b"\n")
    child.stdin.flush()


def done(command, **fields):
    times = {"invoked_ns": 1, "completed_ns": 2, "wall_ns": 1}
    say({"event": "done", "id": command["id"], "client": command["client"], "command": command["command"],
         "ok": True, **times, **fields})  # fmt: skip


def append(command):
    """Whether the command is handed on as it is."""
    global count
    count += 1
    appends[command["id"]] = command
    if MODE == "held_up" and count > NTH and command["partition"] == 1 and holds():
        held.append(command)
        return False
    while MODE == "held_up" and held and not holds():
        ask(held.pop(0))
    if count <= NTH:
        early.add(command["id"])
    if count != NTH:
        return True
    if MODE == "lost_write":
        done(command, topic=command["topic"], partition=command["partition"], offset=0)
    elif MODE == "duplicate":
        ask({**command, "id": HIDDEN})
        return True
    elif MODE == "wrong_record":
        ask({**command, "value": base64.b64encode(b"something else").decode()})
    elif MODE.startswith("reordered"):
        kept["late"] = command
    elif MODE == "stuck_append":
        pass
    elif MODE == "unflushed":
        kept["late"] = command
    elif MODE == "ended":
        child.kill()
        sys.exit(3)
    elif MODE == "torn":  # the library has no such record
        done(command, topic=command["topic"], partition=command["partition"], offset=0)
    else:
        return True
    return False


def holds():
    """Whether partition 1 is held up; what was held back goes on later."""
    kept.setdefault("until", time.monotonic() + HELD_S)
    return time.monotonic() < kept["until"]


def is_after(number):
    """Whether this append was sent to the healed cluster."""
    return b"after" in base64.b64decode(dict(appends[number]["headers"])["id"])


def commands():
    for line in sys.stdin:
        command = json.loads(line)
        name = command["command"]
        if name == "open" and MODE == "unreadable":
            host, _, port = command["config"]["bootstrap"].split(",")[0].rpartition(":")
            kept["socket"] = socket.create_connection((host, int(port)))
            kept["socket"].sendall(b"\x00\x00\x00\x04what")
        if name == "open" and MODE == "aborted_delivered" and command["role"] == "consumer":
            command["config"]["isolation"] = "read_uncommitted"
        if name == "open" and MODE == "wrong_start" and command["config"].get("group") == "r":
            command["config"]["offset_reset"] = "latest"
        if name == "commit_transaction" and MODE == "stuck_transaction":
            continue
        if name == "commit_transaction" and MODE == "transaction_lost":
            command["command"] = "abort_transaction"
        if name == "abort_transaction" and MODE == "transaction_kept":
            command["command"] = "commit_transaction"
        if name == "send_offsets" and MODE == "copied_twice":
            done(command)
            continue
        if name == "append" and not append(command):
            continue
        if name == "append" and "late" in kept and count == NTH + 12 and MODE != "unflushed":
            ask(command)
            ask(kept.pop("late"))
            continue
        if name == "flush" and MODE == "unflushed":
            done(command)
            threading.Timer(2, ask, [kept.pop("late")]).start()
            continue
        if name == "commit" and MODE == "stuck_commit":
            continue
        if name == "commit":
            if MODE == "committed_beyond" and highest:
                offsets = [{"topic": t, "partition": p, "offset": o + 5} for (t, p), o in highest.items()]
                command = {**command, "offsets": offsets}
            if MODE == "committed_back" and highest:  # it says so, and commits less
                lie[command["id"]] = [
                    {"topic": t, "partition": p, "offset": o} for (t, p), o in highest.items()
                ]
                command = {**command, "offsets": [{**one, "offset": 1} for one in lie[command["id"]]]}
        ask(command)
    child.stdin.close()


def delivered(event):
    """The answer of a poll, changed."""
    earlier = set(highest)
    for record in event.get("records") or ():
        key = record["topic"], record["partition"]
        highest[key] = max(record["offset"] + 1, highest.get(key, 0))
    records = event.get("records")
    if MODE == "held_up reading":
        held.extend(r for r in records or () if r["partition"] == 1 and r["offset"] > 3)
        event["records"] = [r for r in records or () if r["partition"] != 1 or r["offset"] <= 3]
        if held and not holds():
            event["records"], held[:] = held[:] + event["records"], []
        return
    if not records:
        if MODE == "delivered_twice" and kept.get("seen"):
            event["records"] = [kept.pop("seen")]
        return
    if MODE == "wrong_delivery":
        records[0]["value"] = base64.b64encode(b"something else").decode()
    elif MODE == "delivered_twice":
        kept.setdefault("seen", records[-1])
    elif MODE == "gap":
        places = [(record["topic"], record["partition"]) for record in records]
        for at, place in enumerate(places):
            later = places.index(place, at + 1) if place in places[at + 1 :] else None
            if later is not None and place in earlier:  # of a partition that it has had for a while
                records[at], records[later] = records[later], records[at]
                break
    elif MODE in ("copy_lost", "skipped", "skipped alone"):
        choice = {
            "copy_lost": records[:1],
            "skipped": records[1:2] if len(records) > 2 else [],
            "skipped alone": [r for r in records if r["key"] == r["value"]],  # the cleaner leaves it
        }[MODE]
        for one in choice[:1]:
            kept.setdefault("dropped", (one["topic"], one["partition"], one["offset"]))
        event["records"] = [
            r for r in records if (r["topic"], r["partition"], r["offset"]) != kept.get("dropped")
        ]
    elif MODE in ("stuck_consumer", "stuck_copier"):
        event["records"] = [r for r in records if r["offset"] < 3]


threading.Thread(target=commands, daemon=True).start()
for line in child.stdout:
    event = json.loads(line)
    if event.get("id") == HIDDEN:
        continue
    if event.get("command") == "append" and MODE == "wrong_offset" and event.get("offset", -1) > 3:
        event["offset"] -= 1
    if event.get("command") == "append" and MODE == "offset_acknowledged_twice" and event.get("ok"):
        event["offset"] = kept.setdefault((event["topic"], event["partition"]), event["offset"])
    if event.get("command") == "append" and MODE == "committed_after_failure" and event["id"] in early:
        event["ok"], event["error"] = False, {"name": "E", "code": 7, "text": "timed out", "fatal": False}
    if MODE == "revoked_without_reason" and event["event"] == "assigned" and event["partitions"]:
        say(event)
        event = {**event, "event": "lost"}
    if MODE == "producer_ended" and event.get("command") == "append" and is_after(event["id"]):
        event["ok"], event["error"] = False, {"name": "E", "code": None, "text": "fatal", "fatal": True}
    if MODE == "torn" and event.get("command") == "commit_transaction":
        event["ok"], event["error"] = False, {"name": "E", "code": None, "text": "unknown", "fatal": False}
    if event.get("command") == "poll":
        delivered(event)
    if event.get("id") in lie:
        event["offsets"] = lie[event["id"]]
    if MODE == "below_committed" and event.get("command") == "commit" and event.get("offsets"):
        event["offsets"] = [{**one, "offset": one["offset"] + 1_000} for one in event["offsets"]]
    say(event)
