"""Admin commands against a cluster of three real brokers: a topic is created, filled, moved while it lives,
led as preferred again, and deleted."""

import io
import json
import sys
import time

import pytest

pytestmark = pytest.mark.java
BOUND_S = 600
RECORDS = 200


def eventually(condition):
    """What it answers once that is true; a bound, no measure."""
    deadline = time.monotonic() + BOUND_S
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.1)
    return answer


@pytest.fixture
def directory(tmp_path, fencepost):
    """A healthy cluster of three; it ends with the test."""
    pytest.importorskip("kazoo")
    directory = tmp_path / "cluster"
    told = fencepost("cluster up --brokers 3 --directory", directory, "--detach", "--json")
    assert told.code == 0, told.err
    yield directory
    assert fencepost("cluster stop --directory", directory).code == 0


def test_a_topic_lives_and_is_moved_and_goes(directory, fencepost, monkeypatch, tmp_path):
    """Rule (C12 to C15): each command does in a real cluster what it says, and no record is lost on the
    way."""

    def admin(*arguments):
        return fencepost(*arguments, "--directory", directory)

    def described():
        return admin("cluster topics describe moved --json").json["partitions"]

    def replicas_are(*expected):
        return lambda: [one["replicas"] for one in described()] == list(expected)

    # create
    assert admin("cluster topics create moved --replica-assignment 1:2,2:3").code == 0
    eventually(lambda: [one["leader"] for one in described()] == [1, 2])
    lines = "".join(f"{number}\n" for number in range(RECORDS))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert admin("cluster produce moved --json").json["ok"] == RECORDS

    # reassign, there and back
    topics = tmp_path / "topics.json"
    topics.write_text('{"version":1,"topics":[{"topic":"moved"}]}')
    told = admin("cluster reassign --generate --topics-to-move-json-file", topics, "--broker-list", "3,1")
    proposed, back = tmp_path / "proposed.json", tmp_path / "back.json"
    proposed.write_text(told.out.splitlines()[4])
    targets = [entry["replicas"] for entry in json.loads(proposed.read_text())["partitions"]]
    told = admin("cluster reassign --execute --reassignment-json-file", proposed)
    assert told.code == 0, told.err
    back.write_text(told.out.splitlines()[2])
    eventually(lambda: admin("cluster reassign --verify --reassignment-json-file", proposed).code == 0)
    assert replicas_are(*targets)()
    assert [sorted(one["isr"]) for one in described()] == [[1, 3], [1, 3]]
    files = directory / "broker-2" / "files"
    eventually(lambda: not list(files.glob("moved-*/*")))

    # preferred leaders
    assert admin("cluster elect preferred").code == 0
    eventually(lambda: [one["leader"] for one in described()] == [target[0] for target in targets])
    read = admin("cluster consume moved --from-beginning --max", RECORDS, "--json").out.splitlines()
    assert sorted(int(json.loads(line)["value"]) for line in read) == list(range(RECORDS))

    assert admin("cluster reassign --execute --reassignment-json-file", back).code == 0
    eventually(lambda: admin("cluster reassign --verify --reassignment-json-file", back).code == 0)
    assert replicas_are([1, 2], [2, 3])()

    # a setting, while brokers run: a compacted topic takes no record without a key
    def refused():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
        return "INVALID_RECORD" in admin("cluster produce moved --json --delivery-timeout-ms 300").err

    assert admin("cluster topics alter moved --config cleanup.policy=compact").code == 0
    eventually(refused)
    assert admin("cluster topics alter moved --delete-config cleanup.policy").code == 0
    eventually(lambda: not refused())

    # more partitions, then none
    assert admin("cluster topics alter moved --partitions 4").code == 0
    eventually(lambda: len(described()) == 4 and all(one["leader"] > 0 for one in described()))
    assert admin("cluster topics delete moved").code == 0
    eventually(lambda: admin("cluster topics list").out == "")
    for broker in (1, 2, 3):
        assert not list((directory / f"broker-{broker}" / "files").glob("moved-*/*"))
