"""The rounds in which the run's own client asks the brokers (fencepost/asked): about what, and how much of
the trace they may fill.

Must not know what the questions are, or how they get to a broker.
"""

from collections.abc import Iterable

from attrs import define, field

from fencepost.asked.step import Scope
from fencepost.run.group_processes import Members
from fencepost.run.record import Record
from fencepost.traces.events import Event
from fencepost.traces.plan import ASK_ALWAYS, ASK_NEVER, Plan

NOT_IN_SAFETY = 10
"""One of so many runs is not asked before its faults are over, so that asking cannot heal what it looks
for."""
SHARE = 12
"""At most one of so many rows of the trace comes from asking, also in a short run, which is about a tenth of
the processor's time. What there is no room for is noted, and asked first in the next round."""


def within_share(asked: int, rows: int) -> bool:
    """Whether another row may come from asking.

    Args:
        asked: rows that came from it.
        rows: all rows of the trace so far.
    """
    return asked < (rows - asked) // (SHARE - 1)


@define(eq=False, kw_only=True)
class Rounds:
    """Of one run."""

    plan: Plan
    record: Record
    members: Members | None
    brokers: tuple[int, ...]
    # Rows that came from asking.
    rows: int = field(default=0, init=False)

    def heard(self, event: Event) -> None:
        """Take down what came of a question."""
        self.rows += 1
        self.record.recorded(event)

    def begin(self) -> None:
        """Begin a round, unless the plan leaves asking out, and go on."""
        raise NotImplementedError

    async def ask(self, *, last: bool = False) -> None:
        """One round to its end, unless the plan leaves asking out. last: it is the last one of the run."""
        raise NotImplementedError

    def has_room(self) -> bool:
        """Whether another row may be added to the trace."""
        return within_share(self.rows, len(self.record.events) + len(self.record.operations))

    @property
    def in_safety(self) -> bool:
        """Whether the run is one of those that are asked in its safety phase, when no fault is active."""
        return self.plan.asking == ASK_ALWAYS and self.plan.seed % NOT_IN_SAFETY != 0

    @property
    def wanted(self) -> bool:
        """Whether the run is asked at all."""
        return self.plan.asking != ASK_NEVER

    def scope(self, topics: Iterable[str], *, last: bool) -> Scope:
        """What a round asks about.

        Args:
            topics: in the cluster.
            last: whether it is the last round of the run.
        """
        processes = () if self.members is None else self.members.incarnations.values()
        return Scope(
            brokers=self.brokers,
            topics=tuple(sorted(topics)),
            groups=tuple(sorted({one.group for one in processes})),
            transactional_ids=tuple(sorted({one.transactional_id for one in processes} - {""})),
            last=last,
        )
