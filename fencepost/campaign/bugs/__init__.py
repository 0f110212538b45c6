"""The zoo of planted bugs: each removes one protection of the reference implementation by swapping one part (BUGS.md).

Owns the table. A bug is named by the protection that is missing; what it breaks stands in traces/protections.py under the same name.
"""

from attrs import evolve, frozen

from fencepost.campaign.bugs import (
    kafka_532,
    kafka_3978,
    kafka_6082,
    kafka_9491,
    kip_101,
    kip_207,
)
from fencepost.campaign.bugs.storage import appending, removing
from fencepost.impl.parts import Parts
from fencepost.traces.errors import FencepostError
from fencepost.traces.protections import BY_BUG, Protection


@frozen(kw_only=True)
class PlantedBug:
    """bug: the zoo's id. role: the entry of `Parts` that is swapped; part: by what. anomalies: names that a finding of it may carry, each of an
    invariant that the bug breaks. profile: the swarm profile that hunts it."""

    bug: str
    role: str
    part: type
    anomalies: frozenset[str]
    profile: str = "default"

    @property
    def protection(self) -> Protection:
        """What is missing."""
        return BY_BUG[self.bug]


COMMIT_SAFE = frozenset(
    {"committed_record_lost", "committed_record_truncated", "lost_write", "inconsistent_offsets"}
)
HW_BOUNDS = frozenset({"high_watermark_outside_log"})
HW_MONO = frozenset({"high_watermark_regressed", "stale_read"})
LIVE = frozenset({"no_progress"})


def _bug(
    bug: str, role: str, part: type, anomalies: frozenset[str] | str, profile: str = "default"
) -> PlantedBug:
    names = frozenset({anomalies}) if isinstance(anomalies, str) else anomalies
    return PlantedBug(bug=bug, role=role, part=part, anomalies=names, profile=profile)


BUGS: dict[str, PlantedBug] = {
    planted.bug: planted
    for planted in (
        _bug("KIP-101", "truncation", kip_101.TruncateToHighWatermark, COMMIT_SAFE),
        _bug("KIP-207", "leader", kip_207.ShowsALaggingEnd, HW_MONO),
        _bug("KAFKA-532", "control_gate", kafka_532.ObeysAnyController, "fenced_controller_obeyed"),
        _bug("KAFKA-6082", "controller_writer", kafka_6082.WritesUnfenced, "fenced_controller_wrote"),
        _bug("KAFKA-5634", "retention", removing.DeletesWhatIsNotCommitted, HW_BOUNDS, "storage"),
        _bug("KAFKA-13194", "cleaner", removing.CompactsWhatIsNotCommitted, COMMIT_SAFE, "storage"),
        _bug("KAFKA-3978", "partition", kafka_3978.TakesAnyHighWatermark, HW_BOUNDS, "storage"),
        _bug("KAFKA-9491", "partition", kafka_9491.LeavesTheHighWatermarkBehind, HW_BOUNDS, "storage"),
        _bug("KAFKA-6975", "log", appending.StartsWithWholeBatches, LIVE, "storage"),
    )
}


def parts_with(bugs: tuple[str, ...]) -> Parts:
    """The table of parts with these bugs planted. Raises FencepostError for an unknown id, or two bugs in one part."""
    parts, swapped = Parts(), set()
    for bug in bugs:
        planted = BUGS.get(bug)
        if planted is None:
            raise FencepostError(
                expected=f"one of {', '.join(sorted(BUGS))}",
                seen=bug,
                where="planted bugs",
                hint="`fencepost bugs list` shows them",
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
