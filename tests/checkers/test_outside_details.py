"""A trace comes from outside: whatever an event's detail or a plan holds, every judge of events answers with
a verdict, and the timeline with printable text."""

import pytest

from fencepost.checkers.invariants.incarnation import SHUTDOWN
from fencepost.checkers.judges import judge
from fencepost.report.timeline import timeline
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace
from tests.checkers import lab

DEEP = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
ODD = "\u202eevil\0\x1b[31m"
CAUSES = ("", "PreparingRebalance", "CompletingRebalance", "Empty", SHUTDOWN, ODD)
DETAILS = (
    *("", "x", "[]", "{}", "null", "3", '{"group":3}', '{"group":"g","why":null}', DEEP, ODD),
    *('{"known_broker_epoch":"x"}', '{"known_broker_epoch":1.5}', '{"known_broker_epoch":1' + "0" * 40 + "}"),
)
PLANS = ("", "{}", DEEP, "[" * 100_000, '{"cluster":3}')


def made(name: Name, cause: str, detail: str, plan: str) -> Trace:
    """A broker registers and such an event follows."""
    fields = {"node": 1, "topic": "t", "partition": 0, "leader": 1, "broker_epoch": 5, "leader_epoch": 1}
    event = Event(time=5, name=name, cause=cause, detail=detail, **fields)
    events = (Event(time=1, name=Name.BROKER_REGISTERED, node=1, broker_epoch=7), event)
    return lab.trace(plan=plan, events=events)


@pytest.mark.parametrize("name", list(Name))
def test_any_detail_of_any_event_is_judged_and_shown(name: Name) -> None:
    """Rule: what makes no sense says nothing; nobody's trace ends a `check` or a `mine`."""
    for cause in CAUSES if name in (Name.MARK, Name.GROUP_PHASE) else CAUSES[::5]:
        for detail in DETAILS:
            for plan in PLANS if detail in ("x", DEEP) else PLANS[:2]:
                trace = made(name, cause, detail, plan)
                assert len(judge(trace, ("invariants", "conformance", "liveness", "groups"))) == 4
            said = "\n".join(str(line) for line in timeline(trace))
            assert not {"\u202e", "\0", "\x1b"} & set(said)


def test_a_shutdown_for_an_earlier_incarnation_is_still_found() -> None:
    """Rule: the mark convicts where it can be read."""
    trace = made(Name.MARK, SHUTDOWN, '{"known_broker_epoch":7}', "")
    assert judge(trace, ("invariants",))[0].anomaly == "earlier_incarnation_obeyed"
