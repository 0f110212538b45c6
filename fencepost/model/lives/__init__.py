"""Names that are used again: a topic or group that was deleted and created again is another one, with another
name (`orders#2`), before a judge sees it (docs/decisions/names-used-again.md).

Owns the whole: a trace in, the same trace with other names out. Must not know judges. So no judge has to
forget anything: each begins anew with a name that it does not know. Most traces come back as they are.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter

from attrs import evolve, frozen

from fencepost.model.lives.cutting import Cutting
from fencepost.model.lives.endings import ENDING, OF_GROUPS, Endings, endings_of
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Claims, Trace, name_of

__all__ = [
    "ENDING",
    "OF_GROUPS",
    "Endings",
    "Extent",
    "Lived",
    "cut_by",
    "ended_in",
    "events_with_lives",
    "used_again",
    "with_lives",
]

SIMULATED = "simulated"
"""The target of runs with a plan, which name their groups themselves (docs/reference/traces.md)."""


@frozen
class Lived:
    """A trace with a name for each topic and group."""

    trace: Trace
    # Whether it is another one than was given.
    changed: bool = False
    # Op ids that its operations did not have.
    added: frozenset[int] = frozenset()
    # For those that stand for one of the trace's, which.
    of: Mapping[int, int] = {}

    def is_known(self, op_id: int) -> bool:
        """Whether it is an operation of the trace, or stands for one."""
        return op_id in self.of or op_id not in self.added

    def stands_for(self, op_id: int) -> int:
        """The operation of the trace."""
        return self.of.get(op_id, op_id)


def used_again(events: Sequence[Event]) -> list[str]:
    """The names of the topics and groups that ended and may have begun again, sorted.

    Args:
        events: of a trace, in order.
    """
    endings = endings_of(events)[0]
    again = (name for name, of in endings.topics.items() if of[0].again is not None)
    return sorted({*again, *endings.groups})


def events_with_lives(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Give each topic a name of its own in events, for who compares them with nothing that clients did.

    Args:
        events: of a trace, in order.

    Returns:
        the events; the same tuple where nothing was deleted.
    """
    return events if _nothing_ended(events) else endings_of(events)[1]


def _nothing_ended(events: Sequence[Event]) -> bool:
    return ENDING.isdisjoint(map(attrgetter("name"), events))


@frozen
class Extent:
    """What the operations of a trace use of its numbers."""

    # An op id and a process that none of them has, nor a larger one.
    op_id: int
    process: int
    # When each process began, nanoseconds.
    began: dict[int, int]


def extent_of(operations: Sequence[Operation]) -> Extent:
    """The extent of all operations of a trace."""
    began: dict[int, int] = {}
    for operation in operations:
        time = began.setdefault(operation.process, operation.invoke_time)
        began[operation.process] = min(time, operation.invoke_time)
    op_id = 1 + max((operation.op_id for operation in operations), default=0)
    return Extent(op_id, 1 + max(began, default=0), began)


def ended_in(trace: Trace) -> tuple[Endings, tuple[Event, ...]] | None:
    """What ended in a trace, and its events with the names of their topics.

    Args:
        trace: its operations may be missing, and events of topics and groups that did not end.

    Returns:
        None where no name was used again and nothing was deleted.
    """
    if _nothing_ended(trace.events):
        return None
    endings, events = endings_of(trace.events)
    if trace.target == SIMULATED and trace.plan:
        endings.groups, endings.offsets = {}, []
    return (endings, events) if endings.topics or endings.groups or endings.offsets else None


def cut_by(trace: Trace, endings: Endings, extent: Extent) -> Lived:
    """Give each topic and group a name of its own.

    Args:
        trace: its events are named already; its operations are all of them, or those of a topic or group that
            ended.
        endings: what ended.
        extent: of all its operations.
    """
    cutting = Cutting(
        endings=endings,
        slack=2 * trace.claims.clock_uncertainty_ns,
        op_id=extent.op_id,
        process=extent.process,
        began=extent.began,
    )
    operations = tuple(cutting.cut(trace.operations))
    lived = evolve(trace, operations=operations, claims=_claims(trace.claims, endings))
    return Lived(lived, True, frozenset(cutting.added), cutting.of)


def with_lives(trace: Trace) -> Lived:
    """Give each topic and group a name of its own.

    Args:
        trace: the trace, perhaps without some columns of its operations.

    Returns:
        the trace, which is the same value where no name was used again and nothing was deleted.
    """
    found = ended_in(trace)
    if found is None:
        return Lived(trace)
    endings, events = found
    return cut_by(evolve(trace, events=events), endings, extent_of(trace.operations))


def _claims(claims: Claims, endings: Endings) -> Claims:
    """What is claimed of a topic is claimed of each of its name: nobody says of which."""
    later = {
        topic: [name_of(topic, life + 1) for life, each in enumerate(of) if each.again is not None]
        for topic, of in endings.topics.items()
    }
    loss = [evolve(one, topic=name) for one in claims.loss for name in later.get(one.topic, ())]
    compacted = [name for topic in claims.compacted for name in later.get(topic, ())]
    return evolve(claims, loss=(*claims.loss, *loss), compacted=(*claims.compacted, *compacted))
