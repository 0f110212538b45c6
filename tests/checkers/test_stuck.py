"""Why nothing moves: each contradiction of a diagnosis is one sentence, and agreement is none."""

import msgspec
import pytest
from attrs import evolve

from fencepost.checkers.invariants import judge
from fencepost.record.stuck import reasons, state_lines
from fencepost.traces import diagnosis as diagnoses
from fencepost.traces.events import Event, Name
from tests.checkers import lab


def belief(broker, **changes):
    """Of a healthy follower of broker 1, or of broker 1."""
    return evolve(
        diagnoses.Belief(
            broker=broker,
            leader=1,
            leader_epoch=4,
            isr=(1, 2),
            zk_version=7,
            pending_isr=None,
            high_watermark=9,
            log_end_offset=9,
        ),
        **changes,
    )


PARTITION = diagnoses.PartitionSeen(
    topic="t",
    partition=0,
    replicas=(1, 2),
    leader=1,
    leader_epoch=4,
    isr=(1, 2),
    zk_version=7,
    written_by=1,
    beliefs=(belief(1), belief(2)),
)
HEALTHY = diagnoses.Diagnosis(
    partitions=(PARTITION,),
    brokers=tuple(
        diagnoses.BrokerSeen(broker=one, process="up", broker_epoch=9, knows=(1, 2)) for one in (1, 2)
    ),
    controller=2,
    controller_epoch=3,
    acting=(2,),
)


def partition(**changes):
    """A diagnosis with another partition."""
    return evolve(HEALTHY, partitions=(evolve(PARTITION, **changes),))


WRONG = {
    "no controller": (
        evolve(HEALTHY, controller=-1, acting=()),
        ["nobody is the controller: /controller does not exist"],
    ),
    "KAFKA-13407": (
        evolve(HEALTHY, acting=()),
        ["/controller names broker 2, which does not act as controller"],
    ),
    "a zombie": (evolve(HEALTHY, acting=(1, 2)), ["broker 1 acts as controller, /controller names broker 2"]),
    "KAFKA-1387": (
        evolve(HEALTHY, brokers=(evolve(HEALTHY.brokers[0], broker_epoch=-1), HEALTHY.brokers[1])),
        ["broker 1 runs and is not registered in ZooKeeper"],
    ),
    "down": (
        evolve(HEALTHY, brokers=(evolve(HEALTHY.brokers[0], process="down"), HEALTHY.brokers[1])),
        ["broker 1 is down"],
    ),
    "no leader": (
        partition(leader=-1, isr=(2,)),
        [
            "t-0 has no leader in ZooKeeper, ISR {2}, leader epoch 4",
            "t-0: broker 1 has all that its leader has, and is not in the ISR",
        ],
    ),
    "a leader that does not lead": (
        partition(beliefs=(belief(1, leader_epoch=3), belief(2))),
        ["t-0: broker 1 leads in ZooKeeper (epoch 4), and itself leads in epoch 3"],
    ),
    "a leader without a replica": (
        partition(beliefs=(belief(2),)),
        ["t-0: broker 1 leads in ZooKeeper (epoch 4), and has taken no role"],
    ),
    "a version of somebody else": (
        partition(zk_version=8, written_by=2),
        [
            "t-0: its leader, broker 1, knows version 7 of the state; ZooKeeper has version 8, written by "
            "broker 2: it can change the ISR no more"
        ],
    ),
    "a follower of somebody else": (
        partition(beliefs=(belief(1), belief(2, leader=3, leader_epoch=2))),
        ["t-0: broker 2 does not follow broker 1 in epoch 4: it follows broker 3 in epoch 2"],
    ),
    "a follower without a role": (
        partition(beliefs=(belief(1), belief(2, leader=-1, leader_epoch=-1))),
        ["t-0: broker 2 does not follow broker 1 in epoch 4: it has no role"],
    ),
    "a group and a transaction": (
        evolve(HEALTHY, waiting=("group g is in PreparingRebalance", "transaction of x is open")),
        ["group g is in PreparingRebalance", "transaction of x is open"],
    ),
    "a follower that lags": (
        partition(isr=(1,), beliefs=(belief(1), belief(2, log_end_offset=5))),
        ["t-0: broker 2 follows, and its log ends at 5 of 9"],
    ),
    "a follower without a replica": (
        partition(beliefs=(belief(1),)),
        ["t-0: broker 2 is assigned, and has taken no role"],
    ),
    "refusals": (
        evolve(HEALTHY, refusals=(diagnoses.Refusal(broker=2, says="refused it", last=5, count=4),)),
        ["broker 2: refused it (4 times)"],
    ),
}


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_each_contradiction_is_a_sentence(wrong):
    """Rule: what contradicts what is said, once, and nothing else is."""
    diagnosis, said = WRONG[wrong]
    assert reasons(diagnosis) == said
    assert state_lines(diagnosis)[0].startswith("controller: broker ")


def test_who_agrees_gives_no_reason():
    """The control: a healthy state has none."""
    assert reasons(HEALTHY) == []


def test_the_state_has_everything_that_was_seen():
    """Rule: the waiting operation, the ISR that a leader proposed, and what was left out are lines."""
    oldest = diagnoses.WaitingOperation(
        op_id=7, process=3, function="append", topic="t", partition=0, since=2_500_000_000, asked=2, error="X"
    )
    beliefs = (belief(1, pending_isr=(1,)), belief(2))
    lines = "\n".join(state_lines(evolve(partition(beliefs=beliefs), oldest=oldest, left_out=4)))
    assert "op 7 of client 3, append t-0, since 2.500 s, broker 2 was asked last (X)" in lines
    assert "proposed ISR {1}" in lines and "and 4 more partitions" in lines


def test_a_diagnosis_survives_the_detail_of_its_event_and_other_details_stay_as_they_are():
    """Rule: JSON there and back; what somebody else wrote is shown as it is."""
    text = msgspec.json.encode(HEALTHY).decode()
    assert diagnoses.diagnosis_of(text) == HEALTHY
    assert diagnoses.diagnosis_of("") is diagnoses.diagnosis_of("broker 2 sleeps") is None
    for detail, seen in (
        ("", "it never came"),
        ("broker 2 sleeps", "broker 2 sleeps"),
        (text, "it never came"),
    ):
        event = Event(time=1, name=Name.LIVENESS_FAILED, cause="an end", detail=detail)
        (finding,) = judge(lab.trace(trace_id=1, events=(event,))).findings
        assert finding.seen == seen
