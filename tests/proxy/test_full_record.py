"""A record without room: what still fits is kept, and traffic goes on once there is room again."""

import errno
import os
import time

import pytest
from disk_bound import sent_until_it_stops
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.proxy.record.values import Kept
from fencepost.proxy.server.record_files import Bounds, RecordFiles
from fencepost.proxy.server.recording_proxy import WhenFull
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.parts import read_recording
from fencepost.traces.plan import TopicOptions
from fencepost.traces.trace import Claims


@pytest.fixture(scope="module")
def lab():
    """The address of a broker with a topic of two partitions."""
    with wire_lab(TopicOptions(name="again", partitions=2), brokers=1) as made:
        yield f"127.0.0.1:{made.ports[1]}"


def test_traffic_goes_on_once_there_is_room(lab, tmp_path):
    """Rule: with stop-traffic a full record is no end: when its old parts have gone, applications are served
    again, and a new run has what they do."""
    recording = {
        "bounds": Bounds(part_ns=10**8, disk_bytes=60_000),
        "when_full": WhenFull.STOP_TRAFFIC,
        "kept": Kept.HASH,
    }
    with proxy_lab(lab, tmp_path, recording) as proxy:
        sent_until_it_stops(proxy, "again", 3_000)
        assert proxy.record.stopped
        for part in tmp_path.rglob("run-0001/part-*"):
            part.unlink()
        deadline = time.monotonic() + 600
        while proxy.record.stopped:
            assert time.monotonic() < deadline, "it did not go on"
            time.sleep(0.05)
        given, failed = sent_until_it_stops(proxy, "again", 4)
        assert (failed, sum(map(len, given.values()))) == (0, 4)
        run = proxy.record.files.run
    assert run.name == "run-0002"
    rows = [row for row in read_recording(run).operations if row.function is Function.APPEND]
    assert sum(len(row.records) for row in rows if row.outcome is Outcome.OK) == 4


def test_a_record_ends_where_the_disk_is_full(tmp_path, monkeypatch):
    """Rule: lines that still fitted stay, up to the last whole one; of what gathers before a write only the
    rest is lost."""
    reasons, left = [], [5_000]
    files = RecordFiles(
        folder=tmp_path,
        claims=Claims(),
        kept="hash",
        now=lambda: 1,
        low_watermark=lambda time: time,
        on_full=reasons.append,
    )
    files.open()
    write = os.write

    def until_full(descriptor, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(descriptor, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr("fencepost.proxy.server.record_files.os.write", until_full)
    line = b"x" * 99 + b"\n"
    for _ in range(200):
        files.emit(line)
    files.flush()
    monkeypatch.undo()
    assert reasons == ["No space left on device"]
    (part,) = files.run.glob("part-*")
    assert part.read_bytes().count(line) == 50 and part.read_bytes().endswith(b"\n")
