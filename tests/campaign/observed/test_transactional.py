"""Each message of a transaction is compared with the state of its sender: what healthy coordinators, leaders
and producers exchange is right, and with any other value it is refuted."""

from collections import Counter
from functools import cache
from typing import Any

import msgspec
import pytest
from attrs import define, evolve, field

from fencepost.campaign.observed import transactional
from fencepost.campaign.observed.answers import AnswerTap
from fencepost.campaign.observed.justified import OFFSETS_TOPIC
from fencepost.campaign.observed.peers import PeerTap
from fencepost.campaign.observed.resting import contradictions_in
from fencepost.campaign.run.run import Run
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.meantime import judge
from fencepost.impl.messages import transaction_api as kafka
from fencepost.traces.events import Belief, Name
from fencepost.traces.outcomes import ErrorCode
from fencepost.traces.trace import Trace
from tests.campaign.observed.test_answers import NEVER, variants
from tests.campaign.run.test_transactions import other, plan, transform

REFUSED = (
    *(ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    *(ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
)
"""Errors that a producer gets of a coordinator of transactions alone."""


@define(eq=False)
class Tried:
    """Messages with another value, and which of them were refuted."""

    wrong: list[str] = field(factory=list)
    traces: list[Trace] = field(factory=list)
    refuted: Counter[tuple[type, str]] = field(factory=Counter)
    tried: Counter[tuple[type, str]] = field(factory=Counter)
    # What is said of a broker at rest with one timer less, by the first word of that timer.
    missing: Counter[str] = field(factory=Counter)

    def count(self, kind: type, name: str, said: list[Any]) -> None:
        self.tried[kind, name] += 1
        self.refuted[kind, name] += bool(said)


@define(eq=False)
class TryingClients(AnswerTap):
    """Tries what is said of each answer to a producer."""

    seen: Tried = field(factory=Tried)

    def answered(self, target: int, message: Any) -> None:
        asked, core = self.asked.get((target, message.correlation_id)), self.core()
        if asked is not None and core is not None and type(message) in transactional.RULES:
            self.seen.wrong += [str(one) for one in transactional.reasons(core, asked, message)]
            refused = [("error", msgspec.structs.replace(message, error=error)) for error in REFUSED]
            for name, changed in (*variants(message), *refused):
                if changed != message:
                    self.seen.count(type(message), name, list(transactional.reasons(core, asked, changed)))
        super().answered(target, message)


@define(eq=False)
class TryingPeers(PeerTap):
    """The same between brokers; and of brokers at rest with a timer less."""

    seen: Tried = field(factory=Tried)

    def received(self, source: int, message: Any) -> None:
        core, host = self.host.core, self.host
        if core is not None and host.rests and core.broker_context.broker_epoch >= 0:
            timers = set(host.timers)
            self.seen.wrong += [str(one) for one in contradictions_in(core, timers)]
            for timer in timers:
                said = list(contradictions_in(core, timers - {timer}))
                self.seen.missing[str(timer[0])] += bool(said)
        super().received(source, message)

    def sent(self, target: int, message: Any) -> None:
        core, kind = self.host.core, type(message)
        asked = self.asked.get((target, message.correlation_id))
        for name, changed in self._changed(message) if core is not None else ():
            if kind in transactional.REQUESTS:
                self.seen.count(kind, name, list(transactional.REQUESTS[kind](core, target, changed)))
                self.seen.count(kind, "target", list(transactional.REQUESTS[kind](core, target + 1, message)))
            elif kind in transactional.ANSWERS and asked is not None:
                said = list(transactional.ANSWERS[kind](core, asked, changed))
                self.seen.count(kind, name, said)
        if isinstance(message, kafka.WriteTxnMarkersResponse) and asked is not None and core is not None:
            none = msgspec.structs.replace(message, errors=message.errors[1:])
            self.seen.count(kind, "errors", list(transactional.ANSWERS[kind](core, asked, none)))
            marker = msgspec.structs.replace(asked.request.marker, producer_epoch=NEVER)
            another = evolve(asked, request=msgspec.structs.replace(asked.request, marker=marker))
            if asked.request.marker.partitions[0].topic != OFFSETS_TOPIC:  # it is compacted
                self.seen.count(kind, "marker", list(transactional.ANSWERS[kind](core, another, message)))
        super().sent(target, message)

    def _changed(self, message: Any) -> list[tuple[str, Any]]:
        if isinstance(message, kafka.WriteTxnMarkersRequest):
            marks = [(name, one) for name, one in variants(message.marker) if one != message.marker]
            return [(name, kafka.WriteTxnMarkersRequest(correlation_id=1, marker=one)) for name, one in marks]
        return variants(message)


@cache
def ran() -> Tried:
    """Runs of both versions of transactions, with aborts, a crash and a second process."""
    seen = Tried()
    lives = (transform(5, 0), transform(6, 2_000, 1), other(5, 5_000, "crash"), transform(7, 6_000))
    for version in (1, 2):
        run = Run(plan(*lives, version=version, aborts_ppm=300_000))
        for broker in run.cluster.broker_ids:
            host = run.cluster.world.hosts[broker]
            tap, peers = host.tap, host.peers
            assert isinstance(tap, AnswerTap) and isinstance(peers, PeerTap)
            host.tap = TryingClients(broker, tap.core, tap.now, tap.record, tap.wishes, seen=seen)
            host.peers = TryingPeers(broker, host, peers.now, peers.record, seen=seen)
        trace = run.run()
        assert not [event for event in trace.events if event.name is Name.ANSWERED]
        seen.traces.append(trace)
    return seen


LEAST = {
    (kafka.InitProducerIdResponse, "producer_id"): 60,
    (kafka.InitProducerIdResponse, "producer_epoch"): 60,
    (kafka.AddPartitionsToTxnResponse, "error"): 30,
    (kafka.AddOffsetsToTxnResponse, "error"): 30,
    (kafka.EndTxnResponse, "error"): 20,
    (kafka.EndTxnResponse, "producer_epoch"): 40,
    (kafka.TxnOffsetCommitResponse, "error"): 15,
    (kafka.WriteTxnMarkersRequest, "producer_epoch"): 90,
    (kafka.WriteTxnMarkersRequest, "commit"): 90,
    (kafka.WriteTxnMarkersRequest, "coordinator_epoch"): 90,
    (kafka.WriteTxnMarkersRequest, "target"): 90,
    (kafka.AddPartitionsToTxnRequest, "target"): 90,
    (kafka.WriteTxnMarkersResponse, "errors"): 90,
    (kafka.WriteTxnMarkersResponse, "marker"): 70,
}
"""Of a hundred messages with another value in this field, how many are refuted at least."""


@pytest.mark.parametrize(("kind", "name"), list(LEAST), ids=lambda one: getattr(one, "__name__", one))
def test_a_message_with_another_value_is_refuted(kind: type, name: str) -> None:
    """Rule (ANSWERED): each field that says what the sender knows of the transaction counts."""
    refuted, tried = ran().refuted[kind, name], ran().tried[kind, name]
    assert tried and 100 * refuted >= LEAST[kind, name] * tried, (refuted, tried)


def test_healthy_coordinators_do_not_contradict_themselves() -> None:
    """Rule (AGREED): and each timer that is missing is noticed."""
    assert ran().wrong == []
    watched = {"transaction_append", "marker_append", "marker_request", "transaction_timeouts"}
    assert {name for name, count in ran().missing.items() if count} >= watched | {"transaction_expiry"}


def found(cause: Belief, **facts: object) -> set[str]:
    """The anomalies of a run of which the last belief of a kind has other facts; there are none without."""
    trace = ran().traces[0]
    assert not judge(trace).findings
    beliefs = [at for at, event in enumerate(trace.events) if event.cause == cause]
    followers = [at for at in beliefs if trace.events[at].leader != trace.events[at].node]
    place = followers[-1]
    event = trace.events[place]
    detail = msgspec.json.encode(msgspec.json.decode(event.detail) | facts).decode()
    events = (*trace.events[:place], evolve(event, detail=detail), *trace.events[place + 1 :])
    return {one.anomaly for one in judge(evolve(trace, events=events)).findings}


def test_a_transaction_is_known_as_it_is_stored() -> None:
    """Rule (AGREED): id, epoch, state, time-out and times are those of the log, unless one is being
    written."""
    decided = NEVER, 0, "Empty", 1, 1, 1 << 60, []
    assert found(Belief.TRANSACTION, decided=decided) == {"transaction_not_stored"}
    assert found(Belief.TRANSACTION, logged=None) == {"transaction_not_stored"}
    assert found(Belief.TRANSACTION, decided=decided, settled=False) == set()


def test_an_id_whose_first_append_was_refused_is_in_no_log() -> None:
    """Rule (AGREED): nobody got an epoch of it, whichever is the first (seeds of transactions)."""
    first_epochs = set()
    for seed in (40001864, 46100129):
        planned = swarm(seed, "transactions")
        first_epochs.add(planned.cluster.transactions.first_epoch)
        trace = Run(planned).run()
        beliefs = [
            msgspec.json.decode(event.detail) for event in trace.events if event.cause == Belief.TRANSACTION
        ]
        unheard = [one for one in beliefs if one["logged"] is None]
        assert unheard and not any(one["settled"] for one in unheard)
        assert not judge(trace).findings
    assert len(first_epochs) == 2


def test_a_later_epoch_of_the_same_millisecond_is_none_of_its_coordinators() -> None:
    """Rule (AGREED): its append may have timed out, and come to pass all the same."""
    decided, logged = (NEVER, 3, "Empty", 1, -1, 1, []), (NEVER, 4, "Empty", 1, -1, 1, [])
    assert found(Belief.TRANSACTION, decided=decided, logged=logged) == set()
    assert found(Belief.TRANSACTION, decided=logged, logged=decided) == {"transaction_not_stored"}


def test_a_later_record_of_a_transaction_is_none_of_its_coordinators() -> None:
    """Rule (AGREED): its append may have timed out, and come to pass all the same."""
    logged = NEVER, 0, "Ongoing", 1, 1, 1 << 60, []
    assert found(Belief.TRANSACTION, logged=logged) == set()


def test_replicas_know_the_same_open_transactions() -> None:
    """Rule (AGREED): a follower that becomes leader would hold its readers back, or show what may be
    aborted."""
    assert found(Belief.REPLICA, open={"7": NEVER}) == {"replicas_disagree"}
