"""A plan under way: what the modules that turn a story into a plan write to.

Owns the draft. Must not know what a step becomes.
"""

from collections.abc import Sequence

from attrs import define, field

from fencepost.campaign.counterexample.story import Story
from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.plan import Fault, PlannedOperation


@define
class Draft:
    """A plan under way."""

    story: Story
    draw: Draws
    # The broker of each replica.
    brokers: Sequence[int]
    # Latency of a message, in microseconds.
    latency_us: int
    # When each step of the story happens, ms.
    times: list[int] = field(factory=list)
    # When the story ends.
    end: int = 0
    faults: list[Fault] = field(factory=list)
    operations: list[PlannedOperation] = field(factory=list)

    def fault(
        self, kind: str, at_ms: int, until_ms: int, target: str, other: str = "", parameter: int = 0
    ) -> None:
        """Add a fault; nothing if it would end before it begins.

        Args:
            kind: a kind of docs/reference/plans.md.
            at_ms: when it begins, in virtual milliseconds.
            until_ms: when it ends, in virtual milliseconds.
            target: a role or a broker, as plans name them.
            other: the second target of a link.
            parameter: what the kind makes of it (a delay, a number of calls).
        """
        if until_ms < at_ms:
            return
        self.faults.append(
            Fault(
                fault_id=len(self.faults),
                kind=kind,
                at_ms=max(at_ms, 0),
                duration_ms=until_ms - max(at_ms, 0),
                target=target,
                other=other,
                parameter=parameter,
            )
        )

    @property
    def all_brokers(self) -> int:
        """How many there are: those with a replica, and up to two more, of whom one may be the controller."""
        return len(self.brokers) + self.draw.between((0, 2), "cx.more_brokers")

    def broker(self, replica: int) -> str:
        """The role of a replica's broker."""
        return f"broker {self.brokers[replica]}"

    def begins(self, era: int) -> int:
        """When an era begins."""
        return next((self.times[i] for i, step in enumerate(self.story.steps) if step.era == era), self.end)

    def ends(self, era: int) -> int:
        """When it ends."""
        return self.begins(era + 1) if era + 1 < self.story.eras else self.end


def members(bits: int) -> set[int]:
    return {number for number in range(bits.bit_length()) if bits >> number & 1}
