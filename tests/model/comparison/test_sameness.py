"""The explorer and TLC see the same four protocols: as many states, as deep, the very same ones, and the same
variants fail.

Each JVM costs seconds, so few runs cover the protections here; `test_every_variant.py` runs every variant.
"""

import time

import pytest
from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.model.comparison import sameness
from fencepost.model.comparison.sameness import compare
from fencepost.model.controller.controller_state import Constants as Control
from fencepost.model.group.group_state import Constants as Group
from fencepost.model.replication.replication_state import Constants as Data
from fencepost.model.tla import FOLDER, files_of, replication
from fencepost.model.tla.group import constants_to_tla
from fencepost.model.tla.variants import RETENTION
from fencepost.model.tlc import RunOutcome, Spec, check
from fencepost.model.transaction.transaction_state import OF_TRANSACTIONS
from fencepost.model.transaction.transaction_state import Constants as Txn
from fencepost.traces.errors import FencepostError
from tests.model.comparison.whole_states import states_of_explorer, states_of_tlc
from tests.model.quick import QUICK
from tests.model.transaction.needed import ONLY_FIRST_NEEDS

TINY = Data(replicas=2, log_size=1, epochs=1, values=1, crashes=1)
DEEP = Data(replicas=2, epochs=2, log_size=1, values=1)
DEEPER = Data(replicas=2, epochs=2)
RETAINED = Data(replicas=2, log_size=1, values=1, crashes=1, losses=1, log_starts=1, drop=RETENTION)
UNGUARDED_ANSWERS = Data(replicas=2, log_size=1, values=1, lists=2, drop={"offset_not_available"})
ZOMBIES = Control(epochs=2, writes=1, drop={"fenced_zookeeper_write", "leader_epoch_fencing"})
REASSIGNED = Control(
    spare=1, epochs=1, sessions=0, writes=4, reassignments=1, deletions=1,
    drop={"assigned_replicas_only", "stop_replica_fencing"},
)  # fmt: skip
DELETED = Control(writes=0, deletions=1, drop={"offline_without_state"})
UNHEARD = Control(epochs=1, writes=1, unheard=1)
STOPPED = Control(
    epochs=1, writes=1, shutdowns=1, crashes=0,
    drop={"last_in_sync_stays", "staying_isr_members_only", "shutdown_fencing"},
)  # fmt: skip
CRASHED = Control(
    epochs=1, writes=0, crashes=1, deletions=1, drop={"resume_deletions", "broker_epoch_fencing"}
)
EXPIRING = Group(
    members=1, brokers=1, commits=2, expiries=1,
    drop={"generation_fencing", "commit_async_not_retried", "no_expiry_while_rebalancing"},
)  # fmt: skip
FAIL_OVER = Group(members=1, generations=1, epochs=1, drop={"apply_whole_load", "not_coordinator"})
STATIC = Group(generations=1, brokers=1, statics=1)
DEPOSED = Txn(
    transactions=1, epochs=1,
    drop={"deposed_is_silent", "loaded", "go_on_with_ends", "decide_durably", "coordinator_fencing"},
)  # fmt: skip
UNGUARDED = Txn(transactions=1, drop={"is_written", "is_needed", "check", "fence"}, producer_epochs=1)
PARTITIONS = Txn(
    version=2, transactions=1, partitions=2, drop={"still_guarded", "to_mark"}, producer_epochs=1
)
FIRST = Txn(drop={"no_late_end", "settle", "epoch_fencing"}, producer_epochs=1)
LATE = {*ONLY_FIRST_NEEDS, "marker_above_epoch", "check_marker", "one_at_a_time"}
SECOND = Txn(version=2, drop=LATE, producer_epochs=1)
SUCCESSOR = Txn(
    version=2, producers=2, transactions=1, drop={"abort_open_first", "marker_again"}, producer_epochs=1
)
DROPPED_IN_LOSS = {"broker_epoch_fencing", "truncate_by_epoch", "fetch_fencing"}
STATES = {
    "answers unguarded": (UNGUARDED_ANSWERS, 2_112),
    "truncation to a high watermark that was forgotten": (
        evolve(TINY, crashes=2, drop={"truncate_by_epoch", "keep_checkpointed"}), 5_935,
    ),
    "no epochs, and an end for the undefined one": (
        Data(replicas=2, log_size=1, old_format=1, drop={"undefined_has_no_end"}), 345,
    ),
    "restarts and fetches unfenced, a record lost": (evolve(TINY, losses=1, drop=DROPPED_IN_LOSS), 4_933),
    "a log's bounds unprotected, a record lost": (RETAINED, 14_059),
    "zombies": (ZOMBIES, 3_301),
    "reassigned": (REASSIGNED, 299),
    "deleted": (DELETED, 4_069),
    "stopped": (STOPPED, 6_029),
    "crashed": (CRASHED, 3_237),
    "unheard": (UNHEARD, 1_797),
    "not again": (evolve(UNHEARD, drop={"resend_until_answered"}), 4_639),
    "retention of offsets": (EXPIRING, 1_875),
    "fail-over": (FAIL_OVER, 1_201),
    "a static member": (STATIC, 368),
    "a deposed coordinator": (DEPOSED, 2_133),
    "no guards": (UNGUARDED, 709),
    "two partitions": (PARTITIONS, 1_067),
    "late requests, version 1": (FIRST, 2_706),
    "late requests, version 2": (SECOND, 2_791),
    "a successor": (SUCCESSOR, 2_355),
}  # fmt: skip


@pytest.mark.java
@pytest.mark.parametrize(("constants", "distinct"), STATES.values(), ids=STATES)
def test_the_very_same_states(constants, distinct):
    """Rule: TLC's dump of the specification and the Python model's states are one set."""
    states = states_of_explorer(constants)
    assert len(states) == distinct
    assert states_of_tlc(constants, QUICK) == states


def test_the_cases_drop_every_protection_that_changes_states():
    """Rule: what is compared of transactions state by state covers all but what only readers see."""
    dropped = set().union(*(one.drop for one, _ in STATES.values() if isinstance(one, Txn)))
    assert OF_TRANSACTIONS - dropped == {"last_stable_offset", "aborted_transactions", "count", "ended"}


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "count", "expected"),
    [
        (
            Data(replicas=2, epochs=1, drop={"isr_expand_after_epoch_start", "assign_epoch_on_election"}),
            True, ("holds", 0, 1_252, 13),
        ),
        (evolve(DEEP, drop={"truncate_by_epoch"}), True, ("violated", 9, 2_857, 16)),
        (Data(replicas=2, log_starts=1), False, ("holds", 0, 3_161, 15)),
        (Control(epochs=1, writes=1, drop={"re_elect"}), True, ("holds", 0, 684, 10)),
        (Group(brokers=1, partitions=2, generations=1), True, ("holds", 0, 1_492, 14)),
    ],
    ids=["KAFKA-7128 and KAFKA-7415", "KIP-101", "retention", "controller", "group"],
)  # fmt: skip
def test_counts_depth_and_verdict(constants, count, expected):
    """Rule: both find as many distinct states and as deep a graph, and a shortest counterexample of the same
    length exactly where a protection is missed."""
    comparison = compare(constants, time.monotonic, QUICK, count=count)
    assert comparison.same
    assert comparison.explorer.compared == expected


@pytest.mark.java
@pytest.mark.parametrize(
    ("constants", "invariant", "steps"),
    [
        (evolve(DEEPER, drop={"truncate_below_own_epoch"}), None, 10),
        (Data(replicas=2, log_starts=1, drop={"high_watermark_within_log"}), None, 10),
        (UNGUARDED_ANSWERS, "HW-MONO", 8),
        (Control(epochs=1, writes=1, crashes=1, drop={"re_elect"}), "EPOCH-MONO", 6),
        (Control(epochs=1, shutdowns=1, drop={"staying_isr_members_only"}), "STOP-SAFE", 8),
        (DELETED, "DEL-COMPLETE", 12),
        (
            Group(members=1, generations=1, commits=0, epochs=2, drop={"coordinator_epoch_order"}),
            "ONE-COORDINATOR", 6,
        ),
        (Txn(transactions=1, drop={"still_guarded"}), "NO-HANGING", 13),
        (Txn(transactions=1, offsets=1, drop={"ended"}), "READ-COMMITTED", 10),
    ],
    ids=[
        *("KIP-279", "KAFKA-3978", "KIP-207", "a restarted leader", "KAFKA-14140", "KAFKA-6650"),
        *("KAFKA-10614", "T8", "T10"),
    ],
)  # fmt: skip
def test_a_missed_protection_is_missed_by_both(constants, invariant, steps):
    """Rule: a shortest counterexample is as long on both sides, and breaks the same invariant. (Where two
    fall at the same depth, either may be named: None.)"""
    comparison = compare(constants, time.monotonic, QUICK, count=False)
    for seen in (comparison.explorer, comparison.tlc):
        assert seen.compared == ("violated", steps, -1, -1)
        assert invariant in (None, seen.invariant)


@pytest.mark.java
def test_a_twin_that_differs_is_caught(monkeypatch):
    """Rule: the comparison has failed on purpose: TLC without a protection that the explorer has."""
    told = replication.constants_to_tla(evolve(TINY, drop={"broker_epoch_fencing"}))
    monkeypatch.setattr(sameness, "constants_to_tla", lambda constants: told)
    assert not compare(TINY, time.monotonic, QUICK, count=False).same


@pytest.mark.java
def test_an_assignment_handed_out_early_has_two_owners(tmp_path):
    """Rule (ONE-CONSUMER): the twin's invariant has failed on purpose: an assignment is handed out before it
    is durable."""
    text = (FOLDER / "Group.tla").read_text()
    sync = '    /\\ group[b].state = "Stable"\n    /\\ phase\' = [phase EXCEPT ![m] = "Owning"]'
    assert text.count(sync) == 1
    (tmp_path / "Group.tla").write_text(
        text.replace(sync, sync.replace('group[b].state = "Stable"', "group[b].assignment # Nobody"))
    )
    module, config = files_of("Group")
    mine = tmp_path / module.name
    mine.write_text(module.read_text())
    constants = Group(members=2, generations=1, commits=0, epochs=1)
    found = check(Spec.at(mine, config, constants_to_tla(constants)), QUICK)
    assert (found.outcome, found.violation.name) == (RunOutcome.VIOLATED, "OneConsumer")


def test_every_protection_keeps_something():
    """Rule: the module asks for each protection by its name, but for those that only readers see."""
    text = (FOLDER / "Transaction.tla").read_text()
    assert all(f'Keeps("{name}")' in text for name in OF_TRANSACTIONS - {"ended", "aborted_transactions"})


def test_another_specification_is_refused():
    """Rule: only shipped specifications have files."""
    with pytest.raises(FencepostError, match="a shipped specification"):
        files_of("Nothing")


COMMANDS = [
    ("replication replicas=2 epochs=2 --drop KIP-279", 1, ("LOG-MATCH is violated in 10", "10. fetch(1)")),
    ("replication replicas=2 epochs=2 --states 100", 3, ()),
    ("replication nothing=1", 2, ()),
    ("replication --drop nothing", 2, ()),
    ("controller writes=1 --drop KAFKA-1096", 1, ("CTRL-FENCE is violated in 4", "4. adopt_epoch(0)")),
    ("controller --check LOG-MATCH", 2, ()),
    (
        "group members=1 epochs=1 generations=1 --drop KAFKA-5600", 1,
        ("OFFSET-SAFE is violated in 12", "12. load(1, 1)"),
    ),
    ("group members=1 epochs=1 --states 100", 3, ()),
    ("group --drop KIP-101", 2, ()),
    ("transaction transactions=1 --drop T10", 1, ("NO-HANGING is violated in 13",)),
    ("transaction transactions=1 partitions=2 --states 100", 3, ()),
    ("transaction --drop KIP-101", 2, ()),
    ("transaction transactions=1 epochs=1 --drop KAFKA-16352 --eventually", 1, ("TXN-END",)),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "told"), COMMANDS, ids=[line for line, _, _ in COMMANDS])
def test_the_command_line(line, code, told, capsys):
    """Rule: a dropped protection ends with 1 and the way to the violation, a bound met first is undecided, an
    unknown name a mistake; a bug's id names its protection; --eventually asks for what stays possible."""
    words = [word for one in line.split() for word in (("--constant", one) if "=" in one else (one,))]
    assert fencepost(["model", "explore", *words]) == code
    out = capsys.readouterr().out
    assert all(text in out for text in told)


def test_every_model_is_listed(capsys):
    """Rule: with its protections."""
    assert fencepost(["model", "list", "--json"]) == 0
    out = capsys.readouterr().out
    names = ("truncate_below_own_epoch", "epoch_read_in_election_only", "no_expiry_while_rebalancing")
    assert all(f'"{name}"' in out for name in (*names, "no_late_end"))
