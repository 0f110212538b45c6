"""The zoo of planted bugs: each removes one protection of the reference implementation by swapping one part
(docs/spec/bugs.md).

Owns the table. A bug is named by the protection that is missing; what it breaks is in
traces/protections under the same name.
"""

from attrs import evolve, frozen

from fencepost.bugs import groups, producer, transactions
from fencepost.bugs.controller import election_bugs, epoch_bugs, kafka_532, kafka_4443, kafka_6082, procedures
from fencepost.bugs.injected import INJECTED
from fencepost.bugs.isr import isr_bugs
from fencepost.bugs.replication import (
    kafka_1555,
    kafka_1647,
    kafka_3978,
    kafka_7128,
    kafka_7415,
    kafka_9491,
    kip_101,
    kip_207,
    kip_226,
    kip_279,
    kip_320,
)
from fencepost.bugs.storage import appending, log_loading_bugs, removing
from fencepost.impl.broker.parts import Parts
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.protections import BY_BUG, Protection


@frozen(kw_only=True)
class PlantedBug:
    """A planted bug: the part of the implementation that is swapped, and what its findings may be."""

    # The zoo's id.
    bug: str
    # The entry of `Parts` that is swapped.
    role: str
    # What it is swapped for.
    part: type
    # Names that a finding of it may carry, each of an invariant that the bug breaks.
    anomalies: frozenset[str]
    # Invariants that its anomalies may show to be broken, next to the protection's own (a request for a
    # broker that is gone breaks INCARNATION at once, and may cost data later).
    also_breaks: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        """What it shares with near duplicates, which count once together; its own id if it has none."""
        return next((family for family, bugs in FAMILIES.items() if self.bug in bugs), self.bug)

    @property
    def injected(self) -> str:
        """Why it is no protection taken away, but a fault that is added; "" if it takes one away."""
        return INJECTED.get(self.bug, "")

    @property
    def protection(self) -> Protection:
        """What is missing."""
        return BY_BUG[self.bug]


FAMILIES: dict[str, tuple[str, ...]] = {
    "a deposed controller": ("KAFKA-532", "KAFKA-6082", "KAFKA-1096"),
    "an earlier incarnation": ("KIP-380", "KAFKA-7235"),
    "order at a replica": ("KAFKA-1188", "KIP-570"),
    "a state that nobody mends": ("KAFKA-2729", "KAFKA-1382"),
    "the last ISR member": ("KAFKA-708", "KAFKA-340"),
    "who is in the ISR": ("KAFKA-1097", "KAFKA-14140", "KAFKA-3143"),
    "the name of a session": ("KAFKA-1387", "KAFKA-13407"),
    "work that is pending": ("KAFKA-6193", "KAFKA-5310", "KAFKA-1681", "KAFKA-6650", "KAFKA-9946"),
}
"""Equivalence classes of the zoo (docs/spec/bugs.md): what their bugs share."""
COMMIT_SAFE = frozenset(
    {"committed_record_lost", "committed_record_truncated", "lost_write", "inconsistent_offsets"}
)
SERVED = frozenset({"other_epoch_served"})
LOG_MATCH = frozenset({"log_divergence", "inconsistent_offsets"})
HW_BOUNDS = frozenset({"high_watermark_outside_log"})
HW_MONO = frozenset({"high_watermark_regressed", "stale_read"})
LIVE = frozenset({"no_progress"})
EPOCH_MONO = frozenset({"leader_epoch_regressed", "leader_epoch_repeated", "two_leaders_one_epoch"})
DELETED = frozenset({"isr_member_deleted", "assigned_replica_deleted"})
ASSIGN = frozenset({"stale_reassignment", "reassignment_forgotten", "reassignment_incomplete"})
DEL_COMPLETE = frozenset({"deletion_incomplete", "deleted_topic_left_behind"})
SYNCED = frozenset({"sync_not_asked", "synced_record_lost"})
INCARNATION = frozenset({"earlier_incarnation_obeyed"})


def _bug(bug: str, role: str, part: type, anomalies: frozenset[str] | str, *also_breaks: str) -> PlantedBug:
    names = frozenset({anomalies}) if isinstance(anomalies, str) else anomalies
    return PlantedBug(bug=bug, role=role, part=part, anomalies=names, also_breaks=frozenset(also_breaks))


BUGS: dict[str, PlantedBug] = {
    planted.bug: planted
    for planted in (
        _bug("KIP-101", "truncation", kip_101.TruncateToHighWatermark, COMMIT_SAFE),
        _bug("KIP-279", "truncation", kip_279.TrustsTheEndOffset, LOG_MATCH),
        _bug("KIP-320", "leader", kip_320.ServesAnyEpoch, COMMIT_SAFE | SERVED, "LIVENESS"),
        _bug("KAFKA-7128", "in_sync_replicas", kafka_7128.JoinsAtTheHighWatermark, COMMIT_SAFE),
        _bug(
            "KAFKA-7415",
            "replica_manager",
            kafka_7415.EntersItsEpochWithItsFirstRecord,
            COMMIT_SAFE | LOG_MATCH | {"wrong_epoch_end"},  # who asks for the end of an epoch sees it at once
            *("COMMIT-SAFE", "LIVENESS"),
        ),
        _bug("KIP-207", "leader", kip_207.ShowsALaggingEnd, HW_MONO),
        _bug("KAFKA-1555", "leader", kafka_1555.AcknowledgesWithTooFew, "acked_by_too_few"),
        _bug("P226-STATIC", "dynamic_config", kip_226.FallsBackToStatic, "setting_not_inherited"),
        _bug("KAFKA-532", "control_gate", kafka_532.ObeysAnyController, "fenced_controller_obeyed"),
        _bug("KAFKA-6082", "controller_writer", kafka_6082.WritesUnfenced, "fenced_controller_wrote"),
        _bug("KAFKA-5634", "retention", removing.DeletesWhatIsNotCommitted, HW_BOUNDS),
        _bug("KAFKA-13194", "cleaner", removing.CompactsWhatIsNotCommitted, COMMIT_SAFE),
        _bug("KAFKA-3978", "partition", kafka_3978.TakesAnyHighWatermark, HW_BOUNDS),
        _bug("KAFKA-9491", "partition", kafka_9491.LeavesTheHighWatermarkBehind, HW_BOUNDS),
        _bug(
            "KAFKA-1647",
            "replica_manager",
            kafka_1647.ForgetsWhoHasNoLeader,
            "high_watermark_forgotten",
            "HW-KEPT",
        ),
        _bug("KAFKA-4443", "channels", kafka_4443.GivesRolesFirst, LIVE),
        _bug("KAFKA-2729", "channels", isr_bugs.GivesALostRequestUp, LIVE),
        _bug("KAFKA-1382", "in_sync_replicas", isr_bugs.TakesALostReplyForAConflict, LIVE),
        _bug("KAFKA-708", "leader_election", isr_bugs.EmptiesTheIsr, "empty_isr"),
        _bug("KAFKA-14140", "in_sync_replicas", isr_bugs.TakesBackWhoStops, "stopping_member_joined_isr"),
        _bug("KAFKA-1096", "controller_writer", epoch_bugs.AdoptsTheNewestEpoch, "fenced_controller_wrote"),
        _bug("KAFKA-1188", "replica_manager", epoch_bugs.ObeysOldLeaderEpochs, EPOCH_MONO),
        _bug("KIP-570", "replica_manager", epoch_bugs.StopsWhateverTheEpoch, DELETED | LIVE, "LIVE"),
        _bug("KIP-380", "control_gate", epoch_bugs.ObeysWhoeverIsMeant, INCARNATION, "INCARNATION"),
        _bug("KAFKA-1387", "registration", election_bugs.TakesAnOldNodeForItsOwn, LIVE),
        _bug("KAFKA-13407", "controller_elector", election_bugs.IgnoresItsOwnName, LIVE),
        _bug("KAFKA-5310", "controller_state", election_bugs.RemembersReassignments, ASSIGN),
        _bug("KAFKA-1028", "leader_election", election_bugs.WaitsForTheIsr, "slow_election"),
        _bug("KAFKA-340", "leader_election", election_bugs.LetsTheLastLeaderGo, COMMIT_SAFE),
        _bug("KAFKA-3143", "controller_guards", procedures.LeavesTheDeadInTheIsr, "dead_member_left_in_isr"),
        _bug("KAFKA-6193", "controller_guards", procedures.RemovesAllThatIsPending, ASSIGN),
        _bug("KAFKA-1097", "controller_guards", procedures.TellsOfOldReplicas, "isr_outside_assignment"),
        _bug("KAFKA-1681", "controller_guards", procedures.ForgetsDeletions, DEL_COMPLETE),
        _bug("KAFKA-6650", "controller_guards", procedures.NeedsAStateToDelete, DEL_COMPLETE),
        _bug("KAFKA-9946", "controller_guards", procedures.TakesAnyStopForADeletion, DEL_COMPLETE),
        _bug("KAFKA-7235", "controller_guards", procedures.ShutsDownWhoLives, INCARNATION),
        _bug("KAFKA-3968", "log", appending.NamesNoSegment, SYNCED),
        _bug(
            "KAFKA-2118",
            "log_recovery",
            log_loading_bugs.KeepsWhatWasCompacted,
            COMMIT_SAFE | {"conformance"},
            "MODEL",
        ),
        _bug("Z-GAPS", "log_directory", log_loading_bugs.TakesGapsForDamage, COMMIT_SAFE),
        _bug("R9", "replica_manager", log_loading_bugs.WritesCheckpointsInPlace, "high_watermark_forgotten"),
        _bug("KAFKA-6975", "log", appending.StartsWithWholeBatches, LIVE),
        *(_bug(*row) for row in groups.ROWS),
        *(_bug(*row) for row in producer.ROWS),
        *(_bug(*row) for row in transactions.ROWS),
        *(_bug(*row) for row in transactions.LATE),
    )
}


def parts_with(bugs: tuple[str, ...]) -> Parts:
    """The table of parts with these bugs planted. Raises FencepostError for an unknown id, or two bugs in one
    part."""
    parts, swapped = Parts(), set()
    for bug in bugs:
        planted = BUGS.get(bug)
        if planted is None:
            raise FencepostError(
                expected=f"one of {', '.join(sorted(BUGS))}",
                seen=unknown_name(bug, BUGS),
                where="planted bugs",
                hint="`fencepost campaign bugs list` shows them",
            )
        if planted.role in swapped:
            raise FencepostError(
                expected="at most one bug in each part",
                seen=f"another one in {planted.role}",
                where=f"planted bug {bug}",
                hint="plant them one at a time",
            )
        swapped.add(planted.role)
        parts = evolve(parts, **{planted.role: planted.part})
    return parts
