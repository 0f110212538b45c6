"""Each message between brokers is compared with its sender's state, and a broker at rest with itself: what
healthy brokers send is right, and with any other value it is refuted."""

from collections import Counter
from functools import cache
from typing import Any

import pytest
from attrs import define, field

from fencepost.campaign.observed.between import ANSWERS, REQUESTS, end_of_epoch
from fencepost.campaign.observed.peers import PeerTap
from fencepost.campaign.observed.resting import contradictions_in
from fencepost.campaign.run.run import Run
from fencepost.impl.messages import broker_api
from fencepost.traces.events import Name
from tests.campaign.observed.test_answers import plan, variants


@define(eq=False)
class Trying(PeerTap):
    """Tries what the rules say of each message with other values, too."""

    wrong: list[str] = field(factory=list)
    refuted: Counter[tuple[type, str]] = field(factory=Counter)
    tried: Counter[tuple[type, str]] = field(factory=Counter)
    # What is said of a broker at rest with one timer less, by the first word of that timer.
    missing: Counter[str] = field(factory=Counter)
    looks: int = 0

    def received(self, source: int, message: Any) -> None:
        core, host = self.host.core, self.host
        if core is not None and host.rests and core.broker_context.broker_epoch >= 0:
            timers = set(host.timers)
            self.wrong += [str(one) for one in contradictions_in(core, timers)]
            self.looks += 1
            for timer in timers:
                self.missing[str(timer[0])] += bool(list(contradictions_in(core, timers - {timer})))
        super().received(source, message)

    def sent(self, target: int, message: Any) -> None:
        core, kind = self.host.core, type(message)
        asked = self.asked.get((target, message.correlation_id))
        for name, other in variants(message) if core is not None else ():
            rule: Any = REQUESTS.get(kind)
            said = None if rule is None else list(rule(core, target, other))
            if rule is None and kind in ANSWERS and asked is not None:
                said = list(ANSWERS[kind](core, asked, other))
            if said is not None:
                self.tried[kind, name] += 1
                self.refuted[kind, name] += bool(said)
        super().sent(target, message)


@cache
def ran() -> tuple[Trying, ...]:
    """The taps of one run."""
    run = Run(plan())
    taps = []
    for broker in run.cluster.broker_ids:
        host = run.cluster.world.hosts[broker]
        before = host.peers
        assert isinstance(before, PeerTap)
        host.peers = Trying(broker, host, before.now, before.record)
        taps.append(host.peers)
    trace = run.run()
    assert not [event for event in trace.events if event.name is Name.ANSWERED]
    return tuple(taps)


LEAST = {
    (broker_api.FetchRequest, "replica_id"): 90,
    (broker_api.FetchRequest, "max_wait"): 90,
    (broker_api.FetchRequest, "partitions"): 30,
    (broker_api.OffsetsForLeaderEpochRequest, "replica_id"): 90,
    (broker_api.OffsetsForLeaderEpochRequest, "queries"): 40,
    (broker_api.LeaderAndIsrRequest, "controller_id"): 90,
    (broker_api.LeaderAndIsrRequest, "controller_epoch"): 90,
    (broker_api.LeaderAndIsrRequest, "broker_epoch"): 90,
    (broker_api.LeaderAndIsrRequest, "partitions"): 40,
    (broker_api.UpdateMetadataRequest, "broker_epoch"): 90,
    (broker_api.UpdateMetadataRequest, "partitions"): 40,
    (broker_api.FetchResponse, "partitions"): 30,
    (broker_api.OffsetsForLeaderEpochResponse, "ends"): 50,
    (broker_api.ControlResponse, "error"): 90,
    (broker_api.ControlResponse, "controller_epoch"): 90,
}
"""Of a hundred messages with another value in this field, how many are refuted at least. Not all: what
belongs to an earlier leader epoch is not compared, nor an earlier state that waited for its turn."""


@pytest.mark.parametrize(("kind", "name"), list(LEAST), ids=lambda one: getattr(one, "__name__", one))
def test_a_message_with_another_value_is_refuted(kind: type, name: str) -> None:
    """Rule (ANSWERED): each field that says what the sender is or holds counts."""
    refuted = sum((tap.refuted for tap in ran()), Counter())[kind, name]
    count = sum((tap.tried for tap in ran()), Counter())[kind, name]
    assert count and 100 * refuted >= LEAST[kind, name] * count, (refuted, count)


def test_healthy_brokers_at_rest_do_not_contradict_themselves() -> None:
    """Rule (AGREED): and each timer that is missing is noticed, but those that nothing depends on."""
    looks = sum(tap.looks for tap in ran())
    assert looks > 300 and not [one for tap in ran() for one in tap.wrong]
    missing = sum((tap.missing for tap in ran()), Counter())
    watched = {"purgatory", "fetch_timeout", "high_watermark_checkpoint", "isr_shrink", "group_session"}
    assert {name for name, count in missing.items() if count} >= watched


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 3)), (1, (1, 7)), (2, (1, 7)), (4, (4, 12)), (5, (-1, -1))],
)
def test_where_an_epoch_ends(epoch: int, expected: tuple[int, int]) -> None:
    """Rule (KIP-279): where the next epoch begins; the latest one ends with the log, a later one is not
    known; one before the first ends where the first begins."""
    assert end_of_epoch([(1, 3), (4, 7)], epoch, 12) == expected
    assert end_of_epoch([], epoch, 12) == (-1, -1)
