"""Rules for a live cluster: each finding from planted answers, and healthy twins that differ in one fact."""

import json
from functools import partial
from typing import Any

import pytest

from fencepost.checkers import liveness
from fencepost.checkers.judges import judge
from fencepost.checkers.liveness.live import LIVE_ROWS, not_judged, shown_by
from fencepost.checkers.verdict import Decision, combine
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

SECOND = 10**9
DAY_MS = 1_800_000_000_000
SETTINGS = {"settings": [["t", "min.insync.replicas", "2"], ["t", "unclean.leader.election.enable", "false"]]}


def asked(
    second: float, question: str, node: int = 1, *, detail: dict[str, Any] | None = None, **columns: Any
):
    """An answer, a millisecond after its question; times are those of a day."""
    time = DAY_MS * 1_000_000 + int(second * SECOND)
    said = {"asked": time - 1_000_000, **(detail or {})}
    return Event(time=time, name=Name.ASKED, node=node, cause=question, detail=json.dumps(said), **columns)


def view(second: float, node: int = 1, **columns: Any) -> Event:
    healthy = {"leader": 1, "leader_epoch": 4, "isr": (1, 2, 3), "replicas": (1, 2, 3)}
    return asked(second, "partition", node, **{"topic": "t", "partition": 0, **healthy, **columns})


def log(second: float, node: int = 1, **columns: Any) -> Event:
    ends = {"log_start_offset": 5, "end_offset": 9, "leader": 1, "leader_epoch": 4}
    if node == 1:
        ends |= {"offset": 9, "high_watermark": 9}
    return asked(second, "log", node, **{"topic": "t", "partition": 0, **ends, **columns})


def brokers(second: float, node: int = 1, live: tuple[int, ...] = (1, 2, 3)) -> Event:
    return asked(second, "brokers", node, replicas=live)


def group(second: float, **detail: Any) -> Event:
    members = [["m", None, [["t", 0]]]]
    return asked(second, "group", detail={"group": "g", "state": "Stable", "members": members, **detail})


def committed(second: float, offset: int) -> Event:
    return asked(second, "committed", detail={"group": "g", "offsets": [["t", 0, offset, -1]]})


def stored(second: float, *records: tuple[int, int | None, bool | None], **detail: Any) -> Event:
    """The last records of group g and t-0: place, offset, whether it counts."""
    said = {
        "group": "g",
        "of": ["t", 0],
        "records": [[place, value, -1, counts] for place, value, counts in records],
    }
    at = {"topic": "__consumer_offsets", "partition": 3, "leader": 1, "high_watermark": 99}
    return asked(second, "offset_records", detail=said | detail, **at)


def offsets_log(second: float, end: int = 90) -> Event:
    return log(second, topic="__consumer_offsets", partition=3, end_offset=end)


def commits(second: float) -> Event:
    """One more record each time."""
    return stored(second, (int(second), 5 + int(second), True))


def crowd(second: float, *names: str) -> Event:
    """Members by name, all of them of the client before the dash."""
    clients = {name: f"{name.split('-')[0]} /10.0.0.1" for name in names}
    return group(second, members=[[name, None, [["t", 0]]] for name in names], clients=clients)


def producers(second: float, first: int) -> Event:
    return asked(
        second, "producers", detail={"producers": [[7, 2, 5, 0, first]]}, topic="t", partition=0, leader=1
    )


def transaction(second: float, **detail: Any) -> Event:
    said = {
        "transactional_id": "x", "state": "Ongoing", "producer_id": 7, "producer_epoch": 2,
        "started_ms": DAY_MS - 1_000, "timeout_ms": 900_000, "partitions": [["t", 0]],
    }  # fmt: skip
    return asked(second, "transaction", detail={**said, **detail})


def rounds(seconds: Any, *makers: Any) -> list[Event]:
    """The same answers in each round, a hundredth of a second apart."""
    return [make(second + number / 100) for second in seconds for number, make in enumerate(makers)]


def settings(second: float) -> Event:
    return asked(second, "settings", detail=SETTINGS)


def dynamic(second: float, node: int, stale: int = 3, value: str = "60000") -> Event:
    """Broker `stale` does not know what was set at the topic."""
    said = [] if node == stale else [["t", "retention.ms", value]]
    return asked(second, "settings", node, detail={**SETTINGS, "dynamic": said})


def trace_of(events: list[Event]) -> Trace:
    return Trace(trace_id=1, plan="", seed=0, software_version="", events=tuple(events))


def found(events: list[Event]) -> list[str]:
    return [finding.anomaly for finding in liveness.judge(trace_of(events)).findings]


def noted(events: list[Event]) -> list[str]:
    return [one.row.name for one in shown_by(events) if one.row.note and one.is_due]


def other_moves(second: float) -> Event:
    """The log of another partition at broker 3 grows."""
    return log(second, 3, partition=1, end_offset=int(second))


HELD = (brokers, settings, lambda s: view(s, isr=(1, 2)))
MOVE = {"reassignments": [["t", 0, [1, 2, 3], [3], [4]]]}
PREPARED = partial(transaction, state="PrepareAbort")
OPEN = (lambda s: log(s, offset=6), lambda s: producers(s, 6))
WRONG = {
    "metadata_disagrees": rounds(
        range(9), lambda s: view(s, 2, leader=2, leader_epoch=5), lambda s: view(s, 3, leader_epoch=4)
    ),
    "fenced_broker_answers": rounds(range(15), brokers, lambda s: brokers(s, 2, (1, 3))),
    "settings_disagree": rounds(range(13), *(partial(dynamic, node=node) for node in (1, 2, 3))),
    "partition_without_leader": rounds(range(9), brokers, lambda s: view(s, leader=-1, isr=(3,))),
    "below_min_isr": rounds(range(9), settings, lambda s: view(s, isr=(1,))),
    "isr_does_not_fill": rounds(range(40), *HELD, log, lambda s: log(s, 3)),
    "high_watermark_held": rounds(range(70), settings, view, lambda s: log(s, high_watermark=7)),
    "reassignment_stands": rounds(
        range(70),
        lambda s: asked(s, "reassignments", detail={"reassignments": [["t", 0, [1, 2, 4], [4], [3]]]}),
    ),
    "hanging_transaction": rounds(range(4), lambda s: transaction(s, state="CompleteCommit"), *OPEN),
    "transaction_outlives_timeout": rounds(range(3), lambda s: transaction(s, timeout_ms=-60_000), *OPEN),
    "decision_stands": rounds(
        range(70), settings, view, lambda s: transaction(s, state="PrepareCommit")
    ),
    "last_stable_offset_stuck": rounds(range(70), lambda s: log(s, offset=6), lambda s: producers(s, -1)),
    "group_rebalances": rounds(range(340), lambda s: group(s, state="PreparingRebalance")),
    "commit_beyond_end": rounds(range(3), lambda s: committed(s, 10), log),
    "served_offset_stands": rounds(range(9), lambda s: committed(s, 4), offsets_log, commits),
}  # fmt: skip
"""The answers that convict, by anomaly."""


def test_every_rule_has_answers_that_convict():
    """Rule: a row without a planted finding is not trusted."""
    assert {row.name for row in LIVE_ROWS if not row.note} == set(WRONG)
    assert all(row.note or row.name in BY_NAME for row in LIVE_ROWS)


@pytest.mark.parametrize("name", WRONG)
def test_a_state_that_lasts_is_found(name):
    """The first and the last answer prove it, and say what was expected and seen."""
    (finding,) = liveness.judge(trace_of(WRONG[name])).findings
    assert finding.anomaly == name and finding.expected and finding.seen
    assert [WRONG[name][position].name for position in finding.events]


@pytest.mark.parametrize("name", WRONG)
def test_one_answer_convicts_nobody(name):
    """Rule: whatever is seen once may be over a moment later."""
    first = WRONG[name][0].time
    assert found([event for event in WRONG[name] if event.time < first + SECOND // 2]) == []


def test_broker_lists_disagree_by_majority():
    """A broker that is cut off keeps the list that it had."""
    three = (1, 2, 4)
    lists = (
        *(partial(brokers, node=node, live=three) for node in three),
        lambda s: brokers(s, 3, (1, 2, 3, 4)),
    )
    assert found(rounds(range(13), *lists)) == ["metadata_disagrees"]
    assert found(rounds(range(13), *lists[::3])) == []  # of two nobody knows who is right


@pytest.mark.parametrize(
    "events",
    [
        rounds(range(400), brokers, settings, group, lambda s: committed(s, 9), transaction, view, log),
        # of two nobody knows who is right; what a file of one broker sets is not dynamic; a change spreads
        rounds(range(13), lambda s: dynamic(s, 1, 2), lambda s: dynamic(s, 2, 2)),
        rounds(range(13), *(partial(dynamic, node=node, stale=node) for node in (1, 2, 3))),
        rounds(range(13), *(partial(dynamic, node=node, stale=0) for node in (1, 2, 3)))
        + rounds(range(13, 17), *(partial(dynamic, node=node, stale=3) for node in (1, 2, 3)))
        + rounds(range(17, 30), *(partial(dynamic, node=node, stale=0) for node in (1, 2, 3))),
        # it moves, or comes back between two answers
        [event for s in range(9) for event in rounds((s,), lambda s: view(s, leader=-1 if s % 4 > 1 else 1))],
        rounds(range(40), *HELD, log, lambda s: log(s, 3, end_offset=int(s) % 8)),
        rounds(range(70), settings, view, lambda s: log(s, high_watermark=7 + int(s), end_offset=100)),
        # no one knows how many in-sync replicas are needed, or there are too few
        rounds(range(70), view, lambda s: log(s, high_watermark=7)),
        rounds(range(4), lambda s: view(s, isr=(1,))),
        # a replica on a broker that is away does not have to return
        rounds(range(40), lambda s: brokers(s, live=(1, 2)), *HELD[1:], log, lambda s: log(s, 3)),
        # open in the log only before or after its coordinator was asked
        rounds((0, 1), lambda s: transaction(s, state="CompleteCommit"), *OPEN),
        [
            event
            for s in range(9)
            for event in rounds(
                (s,),
                lambda s: transaction(s, state="CompleteCommit"),
                lambda s: log(s, offset=int(s)),
                lambda s: producers(s, int(s)),
            )
        ],
        # access rules hide whose it is
        rounds(range(9), *OPEN),
        rounds(range(9), transaction, *OPEN),
        # a throttle lets one partition after the other move
        rounds(range(40), *HELD, log, lambda s: log(s, 3, end_offset=7), other_moves),
        rounds(range(70), lambda s: asked(s, "reassignments", detail=MOVE), other_moves),
        # by the clock of its coordinator it is old
        rounds(range(9), lambda s: transaction(s, started_ms=0, timeout_ms=1_000), *OPEN),
        # who is no leader any more may lack records
        rounds(range(9), lambda s: committed(s, 10), lambda s: log(s, high_watermark=-1)),
        # a commit that failed may stay in the log; the answer may be the one before; what is not replicated
        # or not decided says nothing; a tombstone; what was not read to its end
        rounds(range(9), lambda s: committed(s, 4), offsets_log, lambda s: stored(s, (7, 5, True))),
        rounds(range(9), lambda s: committed(s, 4 + int(s)), offsets_log, commits),
        rounds(range(9), lambda s: committed(s, 4), offsets_log,
               lambda s: stored(s, (int(s) - 1, 4, True), (int(s), 5 + int(s) % 2, True))),
        rounds(range(9), lambda s: committed(s, 4), partial(offsets_log, end=100), commits),
        rounds(range(9), lambda s: committed(s, 4), commits),
        rounds(range(9), lambda s: committed(s, 4), offsets_log, lambda s: stored(s, (int(s), 5, None))),
        rounds(range(9), lambda s: committed(s, 4), offsets_log, lambda s: stored(s, (int(s), 5, False))),
        rounds(range(9), lambda s: committed(s, 4), offsets_log, lambda s: stored(s, (int(s), None, True))),
        rounds(range(9), lambda s: committed(s, -1), offsets_log, commits),
        rounds(range(9), lambda s: committed(s, 4), offsets_log,
               lambda s: stored(s, (int(s), 5, True), cut=True)),
        # a broker that was stopped answers until its next heartbeat
        rounds(range(8), brokers, lambda s: brokers(s, 2, (1, 3))),
        # members that come and go
        rounds(range(400), lambda s: crowd(s, "a-1", f"b-{int(s) // 2}")),
        # a marker is committed only with those in sync that its partition demands
        rounds(range(70), settings, lambda s: view(s, isr=()), PREPARED),
        rounds(range(70), PREPARED),
    ],
)  # fmt: skip
def test_what_is_legal_is_no_finding(events):
    """Rule: a false finding is worse than a miss."""
    assert [name for name in found(events) if name != "below_min_isr"] == []


def test_answers_that_say_nothing_convict_nobody():
    """An error, a filtered list, or no JSON at all."""
    for said in ('{"asked": 1, "error": "NO_ANSWER"}', '{"asked": 1, "filtered": true}', "["):
        changed = [
            Event(time=one.time, name=Name.ASKED, node=1, cause=one.cause, detail=said)
            for one in WRONG["commit_beyond_end"]
        ]
        assert found(changed) == []


def test_notes_are_no_findings():
    """What may be meant to be so is said, and the verdict stays Ok."""
    assert noted(rounds(range(3), brokers, lambda s: view(s, leader=2))) == ["not the preferred leader"]
    assert noted(rounds(range(3), lambda s: view(s), lambda s: brokers(s, live=(1, 2)))) == [
        "a broker is away"
    ]
    risky = {"settings": [["t", "min.insync.replicas", "1"], ["t", "unclean.leader.election.enable", "true"]]}
    assert noted(rounds(range(3), lambda s: asked(s, "settings", detail=risky), view)) == [
        "settings allow a loss"
    ]
    (held,) = [one for one in shown_by(rounds(range(3), transaction, *OPEN)) if one.row.note]
    assert "producer 7, epoch 2, from offset 6; the coordinator of x says Ongoing" in held.last.seen
    assert noted(rounds(range(3), lambda s: committed(s, 3), log)) == [
        "a group skipped records",
        "lag without a reader",
    ]
    assert noted(rounds(range(3), lambda s: group(s, members=[["m", None, []]]))) == [
        "members without partitions"
    ]


def test_a_stored_offset_that_nobody_serves_is_a_note():
    """Before 4.0 a commit that failed may stay in the log: that is told, and the next one ends it."""
    alone = (lambda s: committed(s, 4), offsets_log, lambda s: stored(s, (7, 5, True)))
    assert noted(rounds(range(9), *alone)) == ["another offset is stored"]
    assert noted(rounds(range(9), *alone[:2], lambda s: stored(s, (7, 4, True), (8, 5, False)))) == []
    aborted = rounds(range(9), *alone[:2], lambda s: stored(s, (7, 5, True), (8, 4, False)))
    assert noted(aborted) == ["another offset is stored"]
    assert noted(rounds(range(9), *alone[:2], lambda s: stored(s, (int(s), 5, True)))) == []


def test_a_client_whose_members_leave_again_and_again_is_a_note():
    """More often than it has members at once: in a restart and in a deployment each leaves once."""
    assert noted(rounds(range(9), lambda s: crowd(s, "a-1", f"b-{int(s) // 3}"))) == ["members come and go"]
    rolling = [crowd(s, *(f"a-{number + 10 * (s > number)}" for number in range(5))) for s in range(9)]
    assert noted(rolling) == [] and noted(rounds((1, 2), lambda s: crowd(s, "a-1"))) == []
    moved = [crowd(s, "a-1", "b-1") for s in range(3)]
    assert noted([*moved, asked(4, "group", detail={"error": "COORDINATOR_LOAD_IN_PROGRESS"}), *moved]) == []


def test_settings_of_brokers_that_allow_a_loss_are_notes():
    """Of Kafka's own topics; a single broker can have no more than one replica."""
    risky = [["", "offsets.commit.required.acks", "1"], ["", "transaction.state.log.min.isr", "1"]]
    events = rounds(range(3), brokers, lambda s: asked(s, "settings", detail={"settings": risky}))
    assert noted(events) == ["settings allow a loss"] * 2
    fine = [["", "offsets.commit.required.acks", "-1"], ["", "transaction.state.log.min.isr", "2"]]
    assert noted(rounds(range(3), brokers, lambda s: asked(s, "settings", detail={"settings": fine}))) == []
    alone = rounds(
        range(3),
        lambda s: brokers(s, live=(1,)),
        lambda s: asked(s, "settings", detail={"settings": risky[1:]}),
    )
    assert noted(alone) == []


def moving(second: float, rate: int = 10) -> list[Event]:
    """Broker 4 is to be added; its log grows by `rate` records a second, to 1,000."""
    move = {"reassignments": [["t", 0, [1, 2, 4], [4], [3]]]}
    return [
        log(second, end_offset=1_000, high_watermark=1_000, offset=1_000),
        log(second + 0.1, 4, end_offset=100 + int(rate * second)),
        asked(second + 0.2, "reassignments", detail=move),
    ]


def test_a_reassignment_under_way_has_a_rate_and_an_expected_end():
    """A note: 10 records a second, and what is left at that rate. Two answers are needed for a rate."""
    events = [event for second in range(0, 61, 2) for event in moving(second)]
    (one,) = [one for one in shown_by(events) if one.row.note and one.is_due]
    assert one.row.name == "a reassignment is under way"
    assert "the log of broker 4 ends at 700 of 1000, 10.0 records a second: 30 s more" in one.last.seen
    assert found(events) == [] and noted(moving(0) + moving(1, rate=0)) == []


def test_what_was_not_judged_is_said():
    """One line for each answer that is missing, and for each bound that the answers do not span."""
    refused = {"error": "TOPIC_AUTHORIZATION_FAILED", "filtered": True}
    out_of_time = {"error": "NO_ROOM", "left_out": ["log_ends"]}
    events = [
        *rounds(range(7), view),
        asked(7, "settings", detail=refused),
        asked(7.5, "log", detail=out_of_time),
    ]
    lines = list(not_judged(events))
    assert lines[0].startswith("min.insync.replicas") and "TOPIC_AUTHORIZATION_FAILED of broker 1" in lines[0]
    assert "time was over" in lines[1]
    assert [line.split("needs ")[1].split(" s")[0] for line in lines[2:]] == ["8", "35", "60", "330"]


def test_a_trace_of_answers_is_judged():
    """`check` says Ok of a healthy cluster's answers, not that there was nothing to judge."""
    healthy = trace_of(rounds(range(9), brokers, settings, view, log))
    assert combine(judge(healthy)).decision is Decision.OK
    assert combine(judge(trace_of(WRONG["below_min_isr"]))).anomaly == "below_min_isr"
