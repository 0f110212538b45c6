"""The variants of the shipped models for which the explorer and TLC are compared.

Owns the constants. Must not know how the comparison is made.
"""

from typing import Any

from attrs import evolve, frozen

from fencepost.model.controller.controller_state import Constants as ControllerConstants
from fencepost.model.group.group_state import OF_GROUPS
from fencepost.model.group.group_state import Constants as GroupConstants
from fencepost.model.replication.replication_state import Constants
from fencepost.model.transaction.transaction_state import Constants as TransactionConstants
from fencepost.traces.protections import BY_NAME

DATA_PATH_CONTROL = (
    "truncate_by_epoch", "truncate_below_own_epoch", "assign_epoch_on_election",
    "fetch_fencing", "isr_expand_after_epoch_start", "leader_epoch_fencing",
)  # fmt: skip
"""Protections of the replication model that matter without a crash."""

RETENTION = ("below_high_watermark", "high_watermark_within_log", "high_watermark_follows_log_start")
"""Protections that matter once records are deleted."""


@frozen(kw_only=True)
class Row:
    """constants: of any shipped model. count: whether all states of a failing variant are counted too, which
    takes a second, longer run on both sides."""

    constants: Any
    count: bool = True


def dropped(constants: Any) -> str:
    """What is dropped, by name and bug."""
    return ", ".join(f"{name} ({BY_NAME[name].bug})" for name in sorted(constants.drop)) or "nothing"


def of_replication(size: str) -> tuple[Row, ...]:
    """small: every state counted; medium: three replicas and epochs 0..2, with which each protection
    matters."""
    if size == "small":
        bases = (
            (Constants(replicas=2, epochs=2), DATA_PATH_CONTROL),
            (Constants(replicas=2, epochs=1, crashes=1), ("broker_epoch_fencing", "truncate_by_epoch")),
            (Constants(replicas=3, epochs=1), ("truncate_by_epoch", "fetch_fencing")),
            (Constants(replicas=2, epochs=1, lists=2), ("offset_not_available",)),
            (Constants(replicas=2, epochs=1, log_starts=1), RETENTION),
        )
        return tuple(
            Row(
                constants=evolve(base, drop=drop), count="leader_epoch_fencing" not in drop
            )  # two million states for three steps
            for base, names in bases
            for drop in (frozenset[str](), *(frozenset({name}) for name in names))
        )
    base = Constants(replicas=3, epochs=2)
    return tuple(
        Row(constants=evolve(base, drop=drop), count=False)
        for drop in (frozenset[str](), *(frozenset({name}) for name in DATA_PATH_CONTROL))
    )


def of_group(size: str) -> tuple[Row, ...]:
    """small: each protection with the smallest constants with which it matters, every state counted; medium:
    two members, two generations and a failover."""
    if size == "small":
        bases = (
            (
                GroupConstants(members=1, brokers=1, expiries=1),
                ("generation_fencing", "no_expiry_while_rebalancing"),
            ),
            (GroupConstants(members=1, brokers=1, generations=1, commits=2), ("commit_async_not_retried",)),
            (GroupConstants(members=1, generations=1, epochs=1), ("apply_whole_load", "not_coordinator")),
            (GroupConstants(members=1, generations=1, commits=0, epochs=2), ("coordinator_epoch_order",)),
            (GroupConstants(members=2, brokers=1), ("generation_fencing",)),
            (GroupConstants(members=2, brokers=1, partitions=2, generations=1), ()),
            (
                GroupConstants(members=2, generations=1, commits=0, epochs=1, statics=1),
                ("persist_static_member", "replace_static_member"),
            ),
        )
        return tuple(
            Row(constants=evolve(base, drop=drop))
            for base, names in bases
            for drop in (frozenset[str](), *(frozenset({name}) for name in names))
        )
    base = GroupConstants(members=2, epochs=1, expiries=1)
    static = GroupConstants(members=2, commits=0, epochs=1, statics=1)
    others = {
        "persist_static_member": static,
        "replace_static_member": static,
        "commit_async_not_retried": evolve(base, commits=2, generations=1, epochs=0, brokers=1),
        "coordinator_epoch_order": evolve(base, commits=0, generations=1, epochs=2),
    }
    return (
        Row(constants=GroupConstants(members=2, epochs=1)),
        Row(constants=static),
        *(
            Row(constants=evolve(others.get(name, base), drop=frozenset({name})), count=False)
            for name in sorted(OF_GROUPS)
        ),
    )


CONTROL = (
    "fenced_zookeeper_write",
    "controller_epoch_fencing",
    "epoch_read_in_election_only",
    "leader_epoch_fencing",
)
"""Protections of the controller model that matter without a crash."""
PROCESSES = ("broker_epoch_fencing", "re_elect", "keep_last_isr_member")
"""Protections that matter only with another process, or with no broker left."""
DELETIONS = ("resume_deletions", "offline_without_state")
SHUTDOWNS = ("last_in_sync_stays", "staying_isr_members_only", "shutdown_fencing")


def of_controller(size: str) -> tuple[Row, ...]:
    """small: each protection with the smallest constants with which it matters, every state counted; medium:
    deletion, shutdown and a crash together, reassignments with failover, three brokers."""
    bases: tuple[tuple[ControllerConstants, tuple[str, ...]], ...]
    if size == "small":
        reassigned = ControllerConstants(spare=1, epochs=1, writes=4, sessions=0, reassignments=1)
        bases = (
            (ControllerConstants(sessions=2, writes=1), CONTROL),
            (ControllerConstants(epochs=1, crashes=1), PROCESSES),
            (reassigned, ("assigned_replicas_only",)),
            (evolve(reassigned, writes=5, reassignments=2), ("stop_replica_fencing",)),
            (evolve(reassigned, epochs=3, writes=0, sessions=2), ("reset_on_resign",)),
            (ControllerConstants(spare=1, writes=4, reassignments=1), ()),
            (ControllerConstants(writes=0, deletions=1), DELETIONS),
            (ControllerConstants(epochs=1, writes=0, crashes=1, deletions=1), ()),
            (ControllerConstants(epochs=1, shutdowns=1), SHUTDOWNS),
        )
    else:
        everything = ControllerConstants(writes=1, crashes=1, deletions=1, shutdowns=1)
        bases = (
            (everything, (*CONTROL, *PROCESSES, *DELETIONS, "shutdown_fencing")),
            (ControllerConstants(epochs=1, deletions=1, shutdowns=1), SHUTDOWNS[:2]),
            (
                ControllerConstants(spare=1, epochs=1, writes=5, reassignments=2),
                ("assigned_replicas_only", "stop_replica_fencing"),
            ),
            (ControllerConstants(spare=1, writes=5, reassignments=1), ()),
            (
                ControllerConstants(spare=1, epochs=3, writes=2, sessions=2, reassignments=1),
                ("reset_on_resign",),
            ),
            (ControllerConstants(brokers=3, sessions=2, writes=1), CONTROL),
        )
    return tuple(
        Row(constants=evolve(base, drop=drop), count=size == "small")
        for base, names in bases
        for drop in (frozenset[str](), *(frozenset({name}) for name in names))
    )


OF_A_TRANSACTION = (
    "is_needed", "is_written", "decide_durably", "last_stable_offset", "aborted_transactions",
)  # fmt: skip
"""Protections of the transaction model that matter within one transaction."""


def of_transaction(size: str) -> tuple[Row, ...]:
    """small: each protection with the smallest constants with which it matters, for both versions; medium: a
    producer and its successor, with a fail-over."""
    bases: list[tuple[TransactionConstants, tuple[str, ...]]] = []
    for version in (1, 2):
        one = TransactionConstants(version=version, transactions=1)
        first = version == 1
        if size != "small":
            names = ("coordinator_fencing", "fence") if first else ("marker_above_epoch", "loaded")
            bases.append((evolve(one, producers=2, epochs=1), names))
            continue
        next_one = ("one_at_a_time", "no_late_marker", "settle", "fence") if first else ("one_at_a_time",)
        bases += [
            (one, (*OF_A_TRANSACTION, *(("still_guarded",) if first else ("check", "marker_again")))),
            (evolve(one, transactions=2), next_one),
            (evolve(one, epochs=1), ("go_on_with_ends", "deposed_is_silent") if first else ("loaded",)),
            (evolve(one, partitions=2), ("to_mark",)),
            (evolve(one, offsets=1), ("count", "ended")),
            (evolve(one, producers=2), ("abort_open_first",)),
        ]
    return tuple(
        Row(constants=evolve(base, drop=drop), count=size == "small" and base.producers == 1)
        for base, names in bases
        for drop in (frozenset[str](), *(frozenset({name}) for name in names))
    )
