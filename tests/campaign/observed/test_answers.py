"""Each answer of a broker is compared with its state: a healthy broker's are right, and with any other value
they are refuted."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from attrs import define, field

from fencepost.campaign.observed import answers, differences
from fencepost.campaign.observed.answers import AnswerTap
from fencepost.campaign.observed.justified import RULES, Asked, coordinated_in, reasons
from fencepost.campaign.observed.requested import Wishes
from fencepost.campaign.run.run import Run
from fencepost.impl.coordinator.rebalance import Rebalances
from fencepost.impl.messages import broker_api, group_api
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Event, Name
from fencepost.traces.outcomes import ErrorCode
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)

OFFSETS = TopicOptions(name="__consumer_offsets", cleanup_policy="compact")
NEVER = 7_777


def plan() -> Plan:
    """Every kind of request that the simulated clients have; a leader goes, and comes back."""
    kinds = ("append", "append", "poll", "list_offsets")
    operations = tuple(
        PlannedOperation(
            op_id=n,
            process=n % 3,
            at_ms=150 * n,
            function=kinds[n % 4],
            partition=n % 2,
            argument=("", "by_time", "earliest")[n // 4 % 3] if n % 4 == 3 else "",
            records=20 if n % 12 == 7 else 1,
        )
        for n in range(1, 80)
    )
    deletes = PlannedOperation(op_id=500, process=1, at_ms=4_000, function="delete_records")
    members = tuple(
        PlannedOperation(op_id=1_000 + n, process=5 + n, at_ms=500 + 3_000 * n, function="subscribe", key="g")
        for n in range(2)
    )
    fault = Fault(fault_id=0, kind="crash", at_ms=6_000, duration_ms=2_000, target="leader of t-0")
    return Plan(
        seed=4,
        safety_ms=14_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(partitions=2), OFFSETS),
            zookeeper_session_timeout_ms=1_500,
            groups=GroupOptions(initial_rebalance_delay_ms=200),
        ),
        consumer=ConsumerOptions(session_timeout_ms=2_000, heartbeat_interval_ms=400, commit="sync"),
        operations=(*operations, deletes, *members),
        faults=(fault,),
    )


def variants(answer: Any) -> list[tuple[str, Any]]:
    """The answer with another value in each of its fields."""
    found = []
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if name == "correlation_id":
            continue
        if isinstance(value, ErrorCode):
            others: list[Any] = [one for one in ERRORS if one is not value]
        elif isinstance(value, bool):
            others = [not value]
        elif name == "group_instance_id" or name == "group_id":
            others = [None if value and name == "group_instance_id" else "another"]
        elif isinstance(value, int):
            others = [value + NEVER]
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            others = [value[1:]] + [(other, *value[1:]) for _, other in variants(value[0])]
        elif isinstance(value, bytes):
            others = [b"\x00\x00\x00\x00\x00\x00\x11\x11" + value[8:]] if len(value) > 8 else []
        else:
            others = []
        found += [(name, msgspec.structs.replace(answer, **{name: other})) for other in others]
    return found


ERRORS = (
    *(ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    *(ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS),
)


@define(eq=False)
class Trying(AnswerTap):
    """Tries what the rules say of each answer with other values, too."""

    wrong: list[str] = field(factory=list)
    # Of each commit's answer, as if a member was refused: what is refuted where it was written, and if not.
    refused: list[tuple[set[str], set[str]]] = field(factory=list)
    refuted: Counter[tuple[type, str]] = field(factory=Counter)
    tried: Counter[tuple[type, str]] = field(factory=Counter)

    def received(self, source: int, message: Any) -> None:
        for name, other in variants(message):
            fresh = Wishes(self.wishes.plan)
            self.tried[type(message), name] += 1
            self.refuted[type(message), name] += bool(list(fresh.refuted(source - 1_000, other)))
        super().received(source, message)

    def answered(self, target: int, message: Any) -> None:
        asked, core = self.asked.get((target, message.correlation_id)), self.core()
        if asked is not None and core is not None:
            self.wrong += [f"{message} to {asked}: {one}" for one in reasons(core, asked, message)]
            for name, other in variants(message):
                self.tried[type(message), name] += 1
                self.refuted[type(message), name] += bool(list(reasons(core, asked, other)))
            if isinstance(message, group_api.OffsetCommitResponse):
                said = [
                    {what for what, *_ in reasons(core, asked, msgspec.structs.replace(message, **changed))}
                    for changed in (
                        {"error": ErrorCode.UNKNOWN_MEMBER_ID, "appended": appended}
                        for appended in (True, False)
                    )
                ]
                self.refused.append((said[0], said[1]))
        super().answered(target, message)


@cache
def ran() -> tuple[Trying, ...]:
    """The taps of one run."""
    run = Run(plan())
    taps = []
    for broker in run.cluster.broker_ids:
        host = run.cluster.world.hosts[broker]
        before = host.tap
        assert isinstance(before, AnswerTap)
        host.tap = Trying(broker, before.core, before.now, before.record, before.wishes)
        taps.append(host.tap)
    trace = run.run()
    assert not [event for event in trace.events if event.name is Name.ANSWERED]
    return tuple(taps)


def tried() -> tuple[list[str], Counter[tuple[type, str]], Counter[tuple[type, str]]]:
    """What the rules said in one run."""
    taps = ran()
    wrong = [one for tap in taps for one in tap.wrong]
    refuted = sum((tap.refuted for tap in taps), Counter())
    return wrong, refuted, sum((tap.tried for tap in taps), Counter())


def test_healthy_answers_are_right() -> None:
    """Rule (ANSWERED): nothing that a healthy broker answers is refuted."""
    assert tried()[0] == []


LEAST = {
    (broker_api.ProduceResponse, "error"): 30,
    (broker_api.ProduceResponse, "base_offset"): 80,
    (broker_api.ProduceResponse, "leader_epoch"): 80,
    (broker_api.ProduceResponse, "log_start_offset"): 80,
    (broker_api.FetchResponse, "partitions"): 50,
    (broker_api.ListOffsetsResponse, "offset"): 80,
    (broker_api.ListOffsetsResponse, "leader_epoch"): 80,
    (broker_api.ListOffsetsResponse, "timestamp"): 20,
    (broker_api.DeleteRecordsResponse, "low_watermark"): 50,
    (broker_api.MetadataResponse, "partitions"): 90,
    (broker_api.MetadataResponse, "controller_id"): 90,
    (group_api.FindCoordinatorResponse, "node"): 60,
    (group_api.HeartbeatResponse, "error"): 80,
    (group_api.JoinGroupResponse, "generation_id"): 20,
    (group_api.SyncGroupResponse, "assignment"): 50,
    (group_api.OffsetCommitResponse, "error"): 30,
    (broker_api.ListOffsetsResponse, "error"): 80,
    (broker_api.DeleteRecordsResponse, "error"): 80,
    (group_api.FindCoordinatorResponse, "error"): 80,
    (group_api.OffsetFetchResponse, "error"): 80,
    (group_api.SyncGroupResponse, "error"): 40,
    (group_api.OffsetFetchResponse, "offsets"): 50,
}
"""Of a hundred answers with another value in this field, how many are refuted at least. Not all: the value
does not matter in an answer with an error; and what a broker becomes in between may be right, too."""


@pytest.mark.parametrize(("kind", "name"), list(LEAST), ids=lambda one: getattr(one, "__name__", one))
def test_an_answer_with_another_value_is_refuted(kind: type, name: str) -> None:
    """Rule (ANSWERED): each field that says what the broker is or holds counts."""
    _, refuted, count = tried()
    assert count[kind, name], "no such answer in the run"
    assert 100 * refuted[kind, name] >= LEAST[kind, name] * count[kind, name], (
        refuted[kind, name],
        count[kind, name],
    )


def test_a_refused_commit_that_was_written_is_refuted() -> None:
    """Rule (ANSWERED): a coordinator asks whether the sender is a member before it writes. The same refusal
    of a commit that was not written is refuted for nothing of this kind."""
    refused = [one for tap in ran() for one in tap.refused]
    assert refused
    for written, unwritten in refused:
        assert written - unwritten == {"whether it was written"}


@pytest.mark.parametrize("adds", [False, True])
def test_a_leader_passes_on_that_the_coordinator_has_not_heard_of_a_topic(adds: bool) -> None:
    """Rule (ANSWERED): the leader itself has a replica; in the second version of transactions it asks the
    coordinator to add the partition (seed 31000295 of the profile transactions)."""
    key = TopicPartition("t", 0)
    led = SimpleNamespace(leader=1, leader_epoch=0, isr=(1,), replicas=(1,), high_watermark=0)
    core: Any = SimpleNamespace(
        replicas=SimpleNamespace(partitions={key: led}), broker_context=SimpleNamespace(node=1)
    )
    request = broker_api.ProduceRequest(
        correlation_id=1,
        partition=key,
        acks=1,
        records=bytes(61),
        timeout=0,
        transactional_id="one",
        adds_partition=adds,
    )
    asked = Asked(request, 0, ("leads", 0), False)
    refused = broker_api.ProduceResponse(correlation_id=1, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert bool(list(reasons(core, asked, refused))) is not adds


def test_every_rule_is_reached() -> None:
    """Rule: the run has an answer of every kind that there is a rule for."""
    assert {kind for kind, _ in tried()[2]} >= set(RULES)


WISHED = {
    (broker_api.ProduceRequest, "acks"): 40,
    (broker_api.ProduceRequest, "timeout"): 40,
    (broker_api.FetchRequest, "read_committed"): 50,
    (broker_api.ListOffsetsRequest, "timestamp"): 40,
    (group_api.JoinGroupRequest, "session_timeout_ms"): 90,
    (group_api.JoinGroupRequest, "rebalance_timeout_ms"): 90,
    (group_api.JoinGroupRequest, "group_id"): 90,
    (group_api.JoinGroupRequest, "group_instance_id"): 90,
    (group_api.SyncGroupRequest, "group_id"): 90,
    (group_api.HeartbeatRequest, "group_id"): 90,
    (group_api.OffsetCommitRequest, "group_id"): 90,
    (group_api.OffsetFetchRequest, "group_id"): 90,
}
"""As LEAST; the run's own operations are not planned."""


@pytest.mark.parametrize(("kind", "name"), list(WISHED), ids=lambda one: getattr(one, "__name__", one))
def test_a_request_with_another_value_is_refuted(kind: type, name: str) -> None:
    """Rule (ANSWERED): who asks for something else than its application does is found."""
    _, refuted, count = tried()
    assert count[kind, name], "no such request in the run"
    assert 100 * refuted[kind, name] >= WISHED[kind, name] * count[kind, name], (
        refuted[kind, name],
        count[kind, name],
    )


def tap_with(now: list[int], recorded: list[Event], core: Callable[[], Any]) -> AnswerTap:
    return AnswerTap(1, core, lambda: now[0], recorded.append, Wishes(Plan(seed=1)))


class Idle:
    """A broker that answers nothing."""

    class broker_context:  # noqa: N801 (as the broker has it)
        broker_epoch = 1
        node = 1

    class shutdown:  # noqa: N801
        shutting_down = False

    class replicas:  # noqa: N801
        partitions: dict[Any, Any] = {}  # noqa: RUF012


def test_who_is_never_answered_is_recorded() -> None:
    """Rule (ANSWERED): at the end of a process, requests that waited longer than their own time and the
    slack; acks=0 expects nothing."""
    now, recorded = [0], []
    tap = tap_with(now, recorded, lambda: Idle)
    key = broker_api.TopicPartition("t", 0)
    produce = broker_api.ProduceRequest(
        correlation_id=1, partition=key, acks=-1, records=b"", timeout=5 * 10**9
    )
    tap.received(1_000, produce)
    tap.received(1_000, msgspec.structs.replace(produce, correlation_id=2, acks=0))
    tap.received(1_000, broker_api.MetadataRequest(correlation_id=3))
    assert set(tap.asked) == {(1_000, 1), (1_000, 3)}
    now[0] = answers.SLACK_MS * 1_000_000 + 1
    tap.ended()
    assert [msgspec.json.decode(event.detail)["correlation"] for event in recorded] == [3]
    tap.received(1_000, produce)
    now[0] += answers.SLACK_MS * 1_000_000 + 5 * 10**9 + 1
    tap.ended()
    assert [(event.cause, event.topic) for event in recorded] == [("never", None), ("never", "t")]
    assert not tap.asked


def test_a_broker_that_stops_owes_nothing() -> None:
    """Rule (ANSWERED): one that is not registered or shuts down serves nobody."""

    class Stopping(Idle):
        class shutdown:  # noqa: N801
            shutting_down = True

    now, recorded = [0], []
    tap = tap_with(now, recorded, lambda: Stopping)
    tap.received(1_000, broker_api.MetadataRequest(correlation_id=3))
    assert not tap.asked
    tap.asked[1_000, 3] = Asked(broker_api.MetadataRequest(correlation_id=3), 0, ())
    now[0] = 10**12
    tap.ended()
    assert not recorded


def test_a_broken_broker_does_not_fill_the_trace() -> None:
    """Rule: at most MOST_EVENTS of one broker."""
    now, recorded = [0], []
    tap = tap_with(now, recorded, lambda: Idle)
    for number in range(differences.MOST_EVENTS + 5):
        tap.received(1_000, broker_api.MetadataRequest(correlation_id=number))
    now[0] = 10**12
    tap.ended()
    assert len(recorded) == differences.MOST_EVENTS


def slow_members() -> Plan:
    """A member that works for seconds on each poll, while another waits in its JoinGroup for longer than a
    session."""
    operations = [
        PlannedOperation(op_id=n, process=1, at_ms=100 * n, function="append") for n in range(1, 120)
    ]
    operations += [
        PlannedOperation(op_id=1_000 + n, process=5 + n, at_ms=500 + 4_000 * n, function="subscribe", key="g")
        for n in range(2)
    ]
    return Plan(
        seed=4,
        safety_ms=14_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(), OFFSETS), groups=GroupOptions(initial_rebalance_delay_ms=200)
        ),
        consumer=ConsumerOptions(
            session_timeout_ms=600,
            heartbeat_interval_ms=100,
            processing_ms=3_000,
            max_poll_interval_ms=20_000,
        ),
        operations=tuple(operations),
    )


def expelled(plan: Plan) -> list[str]:
    """What is recorded of members that were expelled while they waited."""
    trace = Run(plan).run()
    return [one.detail for one in trace.events if one.name is Name.ANSWERED and "it stays" in one.detail]


def test_a_member_that_waits_in_a_join_is_not_expelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (ANSWERED): its session goes on, as it cannot send heartbeats."""
    assert not expelled(slow_members())

    def expels(self: Rebalances, group_id: str, member_id: str) -> None:
        group = self.table.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None:
            self.remove(group, member, f"the session of {member_id} has ended")

    monkeypatch.setattr(Rebalances, "on_session", expels)
    assert expelled(slow_members())


def test_a_fence_of_a_deposed_coordinator_is_known() -> None:
    """Rule (KIP-345): a broker that does not know that another one leads its offsets partition since fences a
    static member under the id that the other gave it; its answer does not say so. Whoever coordinates in the
    epoch of ZooKeeper has no such excuse."""
    (tap,) = [one for one in ran() if coordinated_in(one.core(), "g")[1] >= 0]
    number, epoch = coordinated_in(tap.core(), "g")
    request = group_api.HeartbeatRequest(
        correlation_id=1,
        group_id="g",
        generation_id=1,
        member_id="m-2",
        group_instance_id="instance-5",
    )
    answer = group_api.HeartbeatResponse(correlation_id=1, error=ErrorCode.FENCED_INSTANCE_ID)
    for later in (0, 1):
        mine = tap_with([0], [], tap.core)
        mine.state.partition((OFFSETS.name, number)).leader_epoch = epoch + later
        mine.received(1_005, request)
        mine.answered(1_005, answer)
        assert mine.fenced_by_deposed == ({(1_005, "m-2")} if later else set())
