"""A client at rest is compared with itself, and what it does with the answers that it got: a healthy one's
states and steps are right, and a planted fault is found."""

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, evolve, field

from fencepost.campaign.observed.consumers import ConsumerTap
from fencepost.campaign.observed.refusals import Refusals
from fencepost.campaign.observed.resting_clients import contradictions_in_client
from fencepost.campaign.observed.rows import RowTap
from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.client.consumer.fetch import ConsumerFetcher
from fencepost.impl.client.consumer.requests import ConsumerDesk
from fencepost.impl.client.producer import pipelined as pipelined_client
from fencepost.impl.client.producer.accumulator import Line, ProducerBatch
from fencepost.impl.client.producer.producer import Producer
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.messages.broker_api import ProduceResponse
from fencepost.impl.messages.group_api import HeartbeatResponse
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode
from fencepost.traces.plan import (
    ClientOptions,
    ClusterOptions,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    ProducerOptions,
    TopicOptions,
)

T = TopicPartition("t", 0)


def plan(*, pipelined: bool = True) -> Plan:
    """Producers and a group of two, of which one comes later; a leader is cut off."""
    appends = tuple(
        PlannedOperation(op_id=n, process=n % 2, at_ms=120 * n, function="append", partition=n % 2)
        for n in range(1, 80)
    )
    members = tuple(
        PlannedOperation(op_id=1_000 + n, process=5 + n, at_ms=500 + 4_000 * n, function="subscribe", key="g")
        for n in range(2)
    )
    fault = Fault(fault_id=0, kind="pause", at_ms=2_500, duration_ms=1_500, target="leader of t-0")
    return Plan(
        seed=4,
        safety_ms=11_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(partitions=2), TopicOptions(name="__consumer_offsets")),
            zookeeper_session_timeout_ms=1_500,
            groups=GroupOptions(initial_rebalance_delay_ms=200),
        ),
        client=ClientOptions(
            request_timeout_ms=700, producer=ProducerOptions(pipelined=pipelined, idempotent=pipelined)
        ),
        consumer=ConsumerOptions(session_timeout_ms=2_000, heartbeat_interval_ms=400, commit="auto"),
        operations=(*appends, *members),
        faults=(fault,),
    )


def found(plan: Plan) -> list[tuple[str, str]]:
    """What is found in a run."""
    return [(one.anomaly, one.expected) for one in judge(Run(plan).run()).findings]


@define
class Looks:
    """What is said of clients at rest, with all their timers and with one less."""

    wrong: list[str] = field(factory=list)
    missed: set[str] = field(factory=set)


def test_each_timer_of_a_client_at_rest_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): without one of these an operation, a batch, a request or a member waits for ever."""
    looks = Looks()
    for tap in (RowTap, ConsumerTap):
        received = tap.received

        def looked(self: Any, source: int, message: Any, received: Any = received) -> None:
            core, host = self.host.core, self.host
            if core is not None and host.rests:
                timers = set(host.timers)
                looks.wrong.extend(str(one) for one in contradictions_in_client(core, timers))
                for timer in timers:
                    if list(contradictions_in_client(core, timers - {timer})):
                        looks.missed.add(timer[0])
            received(self, source, message)

        monkeypatch.setattr(tap, "received", looked)
    assert found(plan()) == found(plan(pipelined=False)) == []
    assert looks.wrong == []
    clients = {"request", "delivery", "produce_request", "produce_delivery", "produce_retry"}
    assert looks.missed >= clients | {"heartbeat", "poll", "auto_commit", "produce_metadata"}


def test_a_producer_that_does_not_notice_a_time_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): its request is in flight for ever, until the batch's time is over."""
    fired = Producer._on_timer
    monkeypatch.setattr(
        Producer, "_on_timer", lambda self, key: None if key[0] == "produce_request" else fired(self, key)
    )
    assert any(name == "contradictory_state" for name, _ in found(plan()))


def test_a_client_that_does_not_take_its_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): it waits for its time-out, and asks again, as if nothing had come."""
    monkeypatch.setattr(pipelined_client, "PRODUCERS_MAIL", object)
    polls = tuple(
        PlannedOperation(op_id=500 + n, process=0, at_ms=700 + 150 * n, function="poll") for n in range(9)
    )
    reading = evolve(plan(), operations=(*plan().operations, *polls))
    assert any("its answer is there" in expected for _, expected in found(reading))


def test_a_consumer_that_does_not_take_an_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): the same of a member of a group."""
    answered = ConsumerDesk.answered
    monkeypatch.setattr(
        ConsumerDesk,
        "answered",
        lambda self, message: None if type(message) is HeartbeatResponse else answered(self, message),
    )
    assert any("they are answered" in expected for _, expected in found(plan()))


def test_a_number_that_is_given_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): one of the two batches would be taken for a duplicate of the other."""
    number = Sequences.number

    def again(self: Sequences, line: Line, batch: ProducerBatch) -> None:
        number(self, line, batch)
        line.next_sequence = batch.sequence

    monkeypatch.setattr(Sequences, "number", again)
    assert any("sequence in" in text for _, text in found(plan()))


@pytest.mark.parametrize("sequences", [(4, 5, 6), (5, 6, 4)])
def test_batches_wait_in_their_order(sequences: tuple[int, ...]) -> None:
    """Rule (KAFKA-5494): one that is put back behind later ones is overtaken by them for ever."""
    line = Line(T, producer_id=1, producer_epoch=0, next_sequence=7)
    append = SimpleNamespace(op_id=1, values=(b"",))
    made = [ProducerBatch(T, -1, 0, [append], 0, producer_epoch=0, sequence=at) for at in sequences]  # type: ignore[list-item]
    line.waiting.extend(made)
    accumulator = SimpleNamespace(lines={T: line})
    asking = SimpleNamespace(asked={}, resting={})
    producer = SimpleNamespace(accumulator=accumulator, asking=asking, now=0)
    said = list(contradictions_in_client(SimpleNamespace(producer=producer), {("produce_delivery", 1)}))
    assert [what for what, *_ in said] == (["sequences that wait in t-0"] if sequences[0] == 5 else [])


def test_a_consumer_that_keeps_its_positions_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (ANSWERED): an assignment begins where the group committed, whatever the member read before."""
    assign = ConsumerFetcher.assign

    def keep(self: ConsumerFetcher, partitions: tuple[TopicPartition, ...]) -> None:
        kept = self.positions
        assign(self, partitions)
        self.positions = kept

    monkeypatch.setattr(ConsumerFetcher, "assign", keep)
    assert any("first position" in text for _, text in found(plan()))


ORDER, FENCED = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("error", "first", "unresolved", "unknown", "ends"),
    [
        (ORDER, True, False, True, True),
        (ORDER, False, False, True, False),
        (ORDER, False, True, True, True),
        (ORDER, True, False, False, False),
        (FENCED, False, False, True, True),
    ],
)
def test_when_a_refused_batch_ends(
    error: ErrorCode, first: bool, unresolved: bool, unknown: bool, ends: bool
) -> None:
    """Rule (KIP-360): if an earlier attempt may be in the log, unless it only overtook another batch. Either
    of the two, where the other is due, is found."""
    line = Line(T, unresolved=unresolved)
    batch, other = (
        ProducerBatch(T, -1, 0, [], 0, unknown=unknown, sequence=at) for at in (4, 6 if first else 2)
    )
    line.in_flight = [batch, other]
    accumulator = SimpleNamespace(line=lambda key: line)
    producer = SimpleNamespace(requests={9: batch}, accumulator=accumulator)
    for ended in (True, False):
        refusals = Refusals()
        line.in_flight = [batch, other]
        refusals.learn(producer, ProduceResponse(correlation_id=9, error=error), 5)
        line.in_flight = [other] if ended else [batch, other]
        assert bool(list(refusals.refuted(5))) is (ended is not ends)
        assert not list(refusals.refuted(5)), "it is looked at once"
