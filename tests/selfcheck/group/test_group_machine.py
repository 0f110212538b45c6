"""The group coordinator in lockstep with its model; and the machine counts because it fails on purpose."""

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.group_log import Done, GroupLog
from fencepost.impl.coordinator.group_records import OffsetKey, decode_key
from fencepost.impl.replication.partition import Partition
from fencepost.model.group.group_state import JOINING, OUT, PREPARING, STABLE, SYNCING, of
from fencepost.traces.kafka_names.outcomes import ErrorCode
from tests.selfcheck.amounts import machine_settings
from tests.selfcheck.group.brokers import BROKERS
from tests.selfcheck.group.group_machine import COPIED, DURABLE, GroupMachine, planted

QUICK = machine_settings(100, 40)
QUICKLY = {"KAFKA-13636": 15}
"""A seed that finds a bug among the first examples, where the derived one takes hundreds."""


def test_the_coordinator_and_the_model_agree() -> None:
    """Rule (P3, P4): after joins, syncs, commits, silence, leaving and fail-overs, durable or not, both are
    in the same state and read back the same."""
    run_state_machine_as_test(GroupMachine, settings=QUICK)


@pytest.mark.parametrize(
    ("bug", "complaint"),
    [
        # A load that applies one batch only: the committed offset, or the group itself, is not read back.
        ("KAFKA-5600", r"^\(-1, 'epoch|assert <GroupPhase\.EMPTY: 'Empty'> == 'Stable'"),
        # A late load or unload that still runs: the coordinator has lost a group that it had loaded.
        ("KAFKA-10614", r"COORDINATOR_LOAD_IN_PROGRESS"),
        # Offsets that expire during a rebalance: the log has a tombstone more than the model's.
        ("KAFKA-13636", r"(Preparing|Completing)Rebalance[\s\S]*assert \d+ == \d+[\s\S]*log_end_offset"),
        # A commit of another generation that is accepted.
        ("P3", r"the implementation did \('handle_commit', \d+, \d+\), the model cannot"),
    ],
)
def test_the_machine_finds_what_is_planted(bug: str, complaint: str) -> None:
    """Rule: nothing is trusted until it has failed on purpose, by the assertion that the bug breaks and no
    other."""
    with pytest.raises(AssertionError, match=complaint):
        machine = planted(bug) if bug not in QUICKLY else seed(QUICKLY[bug])(planted(bug))
        run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=4000))


def taken(machine: GroupMachine, *steps: Callable[[], None]) -> GroupMachine:
    """The machine after these steps, each of them compared."""
    for step in steps:
        step()
        machine.agrees()
    return machine


def test_what_a_deposed_leader_wrote_is_cut_before_it_leads_again() -> None:
    """Rule (R5, P4): an election is over when the follower has cut what the new leader does not have, though
    its first question was lost and the leader has nothing to replicate; otherwise a commit that nobody
    acknowledged came back with the election after."""
    machine = GroupMachine()
    taken(
        machine,
        lambda: machine.settle(who=(1, 0)),
        lambda: machine.commits(member=0, replicated=False),
        lambda: machine.fail_over(kept=DURABLE),
        lambda: machine.commits(member=0, replicated=False),
        lambda: machine.fail_over(kept=DURABLE),
    )
    assert {machine.brokers.log_end_offset(node) for node in BROKERS} == {machine.state.log.durable}
    taken(machine, lambda: machine.fail_over(kept=DURABLE))
    assert machine.brokers.committed(machine.node) == -1


def test_a_commit_that_nobody_acknowledged_is_read_where_the_next_coordinator_has_it() -> None:
    """Rule (P4): of two commits that the fail-over overtakes, both refused, the next coordinator reads the
    one that its log has."""
    machine = GroupMachine()
    taken(
        machine,
        lambda: machine.settle(who=(0,)),
        lambda: machine.commits(member=0, replicated=False),
        lambda: machine.commits(member=0, replicated=False),
    )
    requests = list(machine.written)
    taken(machine, lambda: machine.fail_over(kept=COPIED))
    refused = [machine.brokers.answers[request].error for request in requests]
    assert refused == [ErrorCode.NOT_COORDINATOR] * 2
    assert machine.brokers.committed(machine.node) == 1


def test_a_consumer_that_came_back_is_another_member() -> None:
    """Rule (P3): a fail-over that loses a consumer's leaving and its coming back brings the old member id
    back: the consumer is refused under its new one, joins under a third, and the group waits for the session
    of the id that nobody has."""
    machine = GroupMachine()
    taken(
        machine,
        lambda: machine.settle(who=(0,)),
        lambda: machine.leave(member=0),
        lambda: machine.join(member=0),
        lambda: machine.fail_over(kept=DURABLE),
    )
    first, second = machine.names
    assert list(machine.brokers.group(machine.node).members) == [first]
    assert machine.state.members[1].state == SYNCING and machine.group.state == STABLE
    taken(machine, lambda: machine.heartbeat(member=0))
    assert machine.state.members[1].state == OUT
    taken(machine, lambda: machine.join(member=0))
    assert len({first, second, machine.names[2]}) == 3 and of(machine.group.members) == [0, 2]
    assert machine.group.state == PREPARING and machine.state.members[2].state == JOINING
    taken(machine, lambda: machine.session_time_out(nth=0))
    assert machine.state.members[2].state == SYNCING and of(machine.group.members) == [2]


class AnswersAtOnce(GroupLog):
    """Tells that an append is durable when it is in the leader's log."""

    def append(
        self, number: int, epoch: int, records: Sequence[tuple[bytes, bytes | None]], done: Done
    ) -> None:
        """A commit is not waited for, an assignment is."""
        super().append(number, epoch, records, done)
        if isinstance(decode_key(records[0][0]), OffsetKey):
            done(ErrorCode.NONE, -1)


class AnswersWhatWasLost(GroupLog):
    """Tells that an append is durable when another broker leads."""

    def moved(self, partition: Partition) -> None:
        """Before the rule ends it with an error."""
        for waiting in list(self.pending.values()):
            if not partition.is_leader and waiting.append_id in self.pending:
                self._end(waiting, ErrorCode.NONE)
        super().moved(partition)


@pytest.mark.parametrize(
    ("part", "complaint"),
    [(AnswersAtOnce, "on one broker only"), (AnswersWhatWasLost, "OffsetCommitResponse")],
)
def test_the_machine_finds_commits_that_are_acknowledged_and_not_durable(
    part: type[GroupLog], complaint: str
) -> None:
    """Rule: nothing is trusted until it has failed on purpose: an acknowledgement before the other broker has
    it, and one of what an election cut."""
    parts = evolve(Parts(), group_log=part)
    machine = type("Planted", (GroupMachine,), {"parts": parts})
    with pytest.raises(AssertionError, match=complaint):
        run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=4000))
