"""The table of situations: an event counts in the state that stood before it, and what never came is
listed."""

import msgspec
from click.testing import CliRunner

from fencepost.traces.events import Event, Name
from tools.situations import Situations, command


def test_an_event_counts_in_the_state_before_it() -> None:
    """Rule: a role that an event gives is that of the next one; a restart takes it away."""
    led = Event(time=1, name=Name.BECAME_LEADER, node=1, topic="t", partition=0, leader_epoch=0)
    wrote = Event(
        time=2, name=Name.APPENDED, node=1, topic="t", partition=0, offset=0, values=(1,), cause="leader"
    )
    started = Event(time=3, name=Name.BROKER_STARTED, node=1)
    situations = Situations()
    situations.learn((led, wrote, started, led))
    assert situations.counts["became_leader", "replica", "none"] == 2
    assert situations.counts["appended", "replica", "leader"] == 1
    assert situations.counts["became_leader", "broker", "Starting"] == 1
    assert ("appended", "replica", "follower") in situations.never()


def test_the_state_of_a_log() -> None:
    """Rule: empty, committed or with a tail, and trimmed once it begins above 0; as events say it."""
    on = {"node": 1, "topic": "t", "partition": 0}
    events = (
        Event(time=1, name=Name.BECAME_LEADER, high_watermark=0, **on),
        Event(time=2, name=Name.APPENDED, offset=0, values=(1, 2), cause="leader", **on),
        Event(time=3, name=Name.HIGH_WATERMARK, high_watermark=2, **on),
        Event(time=4, name=Name.LOG_START, log_start_offset=1, high_watermark=2, **on),
        Event(time=5, name=Name.APPENDED, offset=2, values=(3,), cause="leader", **on),
        Event(time=6, name=Name.TRUNCATED, offset=2, high_watermark=2, **on),
        Event(time=7, name=Name.LOG_START, log_start_offset=2, high_watermark=2, **on),
        Event(time=8, name=Name.COMPACTED, offset=2, **on),
    )
    situations = Situations()
    situations.learn(events)
    assert {(name, state) for name, kind, state in situations.counts if kind == "log"} == {
        ("became_leader", "none"),
        ("appended", "empty"),
        ("high_watermark", "with a tail that is not committed"),
        ("log_start", "all committed"),
        ("appended", "trimmed, all committed"),
        ("truncated", "trimmed, with a tail that is not committed"),
        ("log_start", "trimmed, all committed"),
        ("compacted", "trimmed, empty"),
    }


def test_the_command_lists_both() -> None:
    """Rule: what was reached has its count, what was not is named."""
    told = CliRunner().invoke(command, ["--profile", "calm", "--seeds", "0:2", "--json"])
    assert told.exit_code == 0
    found = msgspec.json.decode(told.stdout)
    assert found["runs"] == 2
    reached = {tuple(row[:3]): row[3] for row in found["reached"]}
    assert reached["appended", "replica", "leader"] > 0
    assert ["truncated", "replica", "leader"] not in found["reached"] and found["never"]
