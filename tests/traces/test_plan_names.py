"""A plan that names a topic or a partition of none is refused in one sentence, and no plan of ours is."""

import re

import pytest
from attrs import evolve

from fencepost.campaign.swarm.real_systems import swarm_for_real
from fencepost.campaign.swarm.swarm import swarm
from fencepost.cli import run
from fencepost.traces.errors import ExitCode, PlanError
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import check_names, plan_to_json

ORDERS = ClusterOptions(topics=(TopicOptions(name="orders", partitions=2),))


def fault(target: str, kind: str = "crash", other: str = "") -> Fault:
    return Fault(fault_id=1, kind=kind, at_ms=5, target=target, other=other)


def append(topic: str, partition: int = 0) -> PlannedOperation:
    return PlannedOperation(op_id=1, process=0, at_ms=1, function="append", topic=topic, partition=partition)


def plan(*members: Fault | PlannedOperation) -> Plan:
    faults = tuple(one for one in members if isinstance(one, Fault))
    operations = tuple(one for one in members if isinstance(one, PlannedOperation))
    return Plan(seed=1, cluster=ORDERS, operations=operations, faults=faults)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            plan(fault("leader of order-0")),
            "mine.json: faults[0].target: expected a topic of the plan: orders, saw 'order' "
            "(did you mean 'orders'?)",
        ),
        (
            plan(fault("controller"), fault("broker 1", "partition", other="follower 1 of orders-2")),
            "mine.json: faults[1].other: expected one of the 2 partitions of orders, saw orders-2",
        ),
        (
            plan(fault("topic bills", "delete_topic")),
            "mine.json: faults[0].target: expected a topic of the plan: orders, saw 'bills'",
        ),
        (
            plan(append("orders", 8)),
            "mine.json: operations[0]: expected one of the 2 partitions of orders, saw orders-8",
        ),
        (plan(append("t")), "mine.json: operations[0]: expected a topic of the plan: orders, saw 't'"),
    ],
)
def test_a_wrong_name_is_one_sentence(wrong: Plan, says: str) -> None:
    """Rule: it says what there is, what was named, and where."""
    with pytest.raises(PlanError, match=f"^{re.escape(says)}$"):
        check_names(wrong, "mine.json")


def test_what_comes_later_may_be_named() -> None:
    """Rule: a topic that a fault creates, a partition that one adds or might add, and Kafka's own topics are
    no mistakes."""
    later = plan(
        fault("topic bills", "create_topic"),
        fault("topic orders", "add_partitions"),
        fault("leader of __consumer_offsets-7"),
        append("bills"),
        append("orders", 7),
    )
    assert check_names(later, "mine.json") == later


def test_no_plan_of_the_swarm_is_refused() -> None:
    """Rule: what a campaign draws, or a shrinking leaves of it, can be read again as a plan of a person."""
    for seed in range(150):
        drawn = swarm(seed)
        check_names(drawn, f"seed {seed}")
        check_names(evolve(drawn, faults=drawn.faults[::2]), f"half the faults of seed {seed}")
        check_names(swarm_for_real(seed), f"seed {seed} of a real system")


@pytest.mark.parametrize(
    "words", [("campaign", "--seeds", "0:1", "--plan"), ("replay", "--plan"), ("shrink",)]
)
def test_each_command_refuses_it(words: tuple[str, ...], tmp_path, capsys) -> None:
    """Rule: a plan file is held against its own topics before anything runs, whoever reads it."""
    file = tmp_path / "mine.json"
    file.write_text(plan_to_json(plan(fault("leader of order-0"))))
    assert run([*words, str(file)]) == ExitCode.USAGE
    assert "faults[0].target: expected a topic of the plan: orders" in " ".join(
        capsys.readouterr().err.split()
    )
