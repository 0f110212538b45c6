"""Each step of a broker is compared with small models of its parts: a healthy broker's steps are right, and
planted faults of groups, transactions and in-sync replicas are found."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve, fields

from fencepost.campaign.observed.steps.follower_steps import FetchStep, ShrinkStep
from fencepost.campaign.observed.steps.group_model import GroupModel, Kept
from fencepost.campaign.observed.steps.group_states import differences, model_of
from fencepost.campaign.observed.steps.group_steps import StepOfGroups
from fencepost.campaign.observed.steps.transaction_steps import StepOfTransactions
from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.coordinator import loading
from fencepost.impl.coordinator.group import Group
from fencepost.impl.coordinator.offsets import GroupOffsets
from fencepost.impl.coordinator.rebalance import Rebalances
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.transaction.coordinator import TransactionCoordinator
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.transaction import Transaction
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)
from tests.campaign.run.test_transactions import other, plan, transform

OFFSETS = TopicOptions(name="__consumer_offsets", cleanup_policy="compact")
T = TopicPartition("t", 0)


def groups() -> Plan:
    """Two members come and go, while a coordinator dies; offsets expire."""
    appends = tuple(
        PlannedOperation(op_id=n, process=n % 2, at_ms=150 * n, function="append", partition=n % 2)
        for n in range(1, 50)
    )
    members = tuple(
        PlannedOperation(
            op_id=1_000 + n, process=5 + n % 2, at_ms=500 + 2_000 * n, function=function, key="g"
        )
        for n, function in enumerate(("subscribe", "subscribe", "unsubscribe", "unsubscribe"))
    )
    fault = Fault(
        fault_id=0, kind="crash", at_ms=3_500, duration_ms=1_500, target="leader of __consumer_offsets-0"
    )
    return Plan(
        seed=4,
        safety_ms=9_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(partitions=2), OFFSETS),
            zookeeper_session_timeout_ms=1_500,
            replica_lag_time_max_ms=1_000,
            groups=GroupOptions(
                initial_rebalance_delay_ms=200, offsets_retention_ms=1_000, offsets_retention_check_ms=300
            ),
        ),
        consumer=ConsumerOptions(session_timeout_ms=2_000, heartbeat_interval_ms=400, commit="sync"),
        operations=(*appends, *members),
        faults=(fault,),
    )


def transactions() -> Plan:
    """Two processes that consume, transform and produce; one of them is fenced and comes again."""
    lives = (transform(5, 0), transform(6, 2_000, 1), other(5, 5_000, "crash"), transform(7, 6_000))
    cut = Fault(fault_id=0, kind="crash", at_ms=4_000, duration_ms=2_500, target="leader of out-0")
    return evolve(plan(*lives, version=2, aborts_ppm=300_000), faults=(cut,))


def found(plan: Plan) -> list[str]:
    """What the steps of a run are said to do wrong."""
    return [one.expected for one in judge(Run(plan).run()).findings if one.anomaly == "wrong_step"]


def test_healthy_steps_are_right_and_all_kinds_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (ANSWERED): the models and the brokers agree, and nothing is agreed on by not looking."""
    looked: Counter[str] = Counter()

    def counted(kind: type) -> None:
        judged = kind.judged  # type: ignore[attr-defined]

        def look(self: Any, *args: Any) -> Any:
            word = getattr(self, "input", None)
            timer = getattr(word, "key", None)
            message = getattr(word, "message", None)
            looked[f"{kind.__name__} {timer[0] if timer else type(message).__name__}"] += 1
            return judged(self, *args)

        monkeypatch.setattr(kind, "judged", look)

    for kind in (StepOfGroups, StepOfTransactions, FetchStep, ShrinkStep):
        counted(kind)
    assert found(groups()) == found(transactions()) == []
    of_groups = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit", "WriteTxnMarkers")
    of_transactions = ("InitProducerId", "AddPartitionsToTxn", "EndTxn")
    expected = {f"StepOfGroups {one}Request" for one in of_groups}
    expected |= {f"StepOfGroups {one}" for one in ("group_load", "group_expiry", "group_session")}
    expected |= {f"StepOfTransactions {one}Request" for one in of_transactions}
    expected |= {"StepOfTransactions WriteTxnMarkersResponse", "StepOfTransactions transaction_timeouts"}
    expected |= {"FetchStep NoneType", "ShrinkStep NoneType"}
    assert expected <= looked.keys(), sorted(expected - looked.keys())


def test_each_field_of_a_group_counts() -> None:
    """Rule (ANSWERED): a group that differs from its model in one field is refuted."""
    model = GroupModel("g", offsets={T: Kept((1, 2, "", 3, -1), 4)})
    assert not list(differences(model, evolve(model)))
    for one in fields(GroupModel):
        if one.name not in ("group_id", "members", "open"):
            changed = evolve(model, **{one.name: "another"})
            assert [of for of, *_ in differences(model, changed)] == [f"{one.name} of group g"]
    group = Group("g", 0)
    assert not list(differences(GroupModel("g"), model_of(group)))


Wrapped = Callable[..., Any]


def _late_offset(wrapped: Wrapped) -> Wrapped:
    def materialise(self: Any, group: Any, key: Any, stored: Any) -> None:
        if key not in group.offsets:
            wrapped(self, group, key, stored)

    return materialise


def _generation_0(wrapped: Wrapped) -> Wrapped:
    def group_of(group_id: str, number: int, value: Any) -> Any:
        return wrapped(group_id, number, evolve(value, generation=value.generation + 1))

    return group_of


def _now(wrapped: Wrapped) -> Wrapped:
    def begun(self: Any, partitions: Any, now_ms: int) -> Any:
        transit = wrapped(self, partitions, now_ms)
        transit.value = evolve(transit.value, started_ms=now_ms)
        return transit

    return begun


def _no_new_epoch(wrapped: Wrapped) -> Wrapped:
    def bumped(self: Any, *args: Any) -> Any:
        transit = wrapped(self, *args)
        epoch = max(0, self.value.producer_epoch)
        transit.value = evolve(transit.value, producer_epoch=epoch)
        return transit

    return bumped


def _no_last_fetch(wrapped: Wrapped) -> Wrapped:
    def fetched(self: Any, partition: Any, follower: Any, offset: int) -> None:
        before = follower.last_fetch_at
        wrapped(self, partition, follower, offset)
        follower.last_fetch_at = before

    return fetched


def _nothing(wrapped: Wrapped) -> Wrapped:
    return lambda *args, **named: None


PLANTED = [
    (groups, Rebalances, "heard", _nothing),
    (groups, GroupOffsets, "materialise", _late_offset),
    (groups, GroupOffsets, "expired", lambda wrapped: lambda self, group: []),
    (groups, loading, "group_of", _generation_0),
    (transactions, Transaction, "prepare_partitions", _now),
    (transactions, Transaction, "prepare_bump", _no_new_epoch),
    (transactions, TransactionMarkers, "to_mark", lambda wrapped: lambda self, one: set()),
    (transactions, TransactionCoordinator, "is_overdue", lambda wrapped: lambda self, one: True),
    (groups, InSyncReplicas, "on_follower_fetch", _no_last_fetch),
    (groups, InSyncReplicas, "maybe_shrink", _nothing),
    (groups, InSyncReplicas, "maybe_expand", _nothing),
    (groups, Group, "elect_joined_leader", _nothing),
]
"""A run, and what is replaced by what."""


@pytest.mark.parametrize(("plan", "home", "name", "planted"), PLANTED, ids=[one[2] for one in PLANTED])
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch,
    plan: Callable[[], Plan],
    home: Any,
    name: str,
    planted: Callable[[Wrapped], Wrapped],
) -> None:
    """Rule (ANSWERED): each of these leaves a broker in another state than the model's."""
    monkeypatch.setattr(home, name, planted(getattr(home, name)))
    assert found(plan())
