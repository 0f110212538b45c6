"""The zoo of planted bugs: each removes one protection of the reference implementation by swapping one part (BUGS.md).

Owns the table. A bug is named by the protection that is missing; what it breaks stands in traces/protections.py under the same name.
"""

from attrs import evolve, frozen

from fencepost.campaign.bugs import kafka_532, kafka_6082, kip_101
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


BUGS: dict[str, PlantedBug] = {
    planted.bug: planted
    for planted in (
        PlantedBug(
            bug="KIP-101",
            role="truncation",
            part=kip_101.TruncateToHighWatermark,
            anomalies=frozenset(
                {
                    "committed_record_lost",
                    "committed_record_truncated",
                    "lost_write",
                    "inconsistent_offsets",
                }
            ),
        ),
        PlantedBug(
            bug="KAFKA-532",
            role="control_gate",
            part=kafka_532.ObeysAnyController,
            anomalies=frozenset({"fenced_controller_obeyed"}),
        ),
        PlantedBug(
            bug="KAFKA-6082",
            role="controller_writer",
            part=kafka_6082.WritesUnfenced,
            anomalies=frozenset({"fenced_controller_wrote"}),
        ),
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
