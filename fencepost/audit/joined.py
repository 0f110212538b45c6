"""Acknowledged records, looked for in brokers' files: which replica has one, and where.

Owns the join of a history with log directories. Must not know whether a record may be absent: that is for
the checks, by their claims. So it reports where each record is, and convicts nobody.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from fencepost.audit.runs import runs_of_files
from fencepost.audit.source import Place
from fencepost.audit.survey import Survey
from fencepost.traces.operations import Function, Operation, Outcome

MOST_REPORTED = 1_000
"""Records of one partition that are reported; the rest is counted. A lost tail repeats itself."""
Key = tuple[str, int]
"""Topic and partition number."""


@frozen(kw_only=True)
class Placement:
    """Where an acknowledged record is."""

    topic: str
    partition: int
    # Its value id.
    value: int
    # At which it was acknowledged; -1: the acknowledgement named none.
    offset: int
    acks: int
    # Brokers that have it at this offset (or, without one, at any).
    holders: tuple[str, ...]
    # Brokers that have it at another offset, and which.
    elsewhere: tuple[tuple[str, int], ...] = ()
    # Brokers with a replica that does not have it there.
    lacking: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Such as: v19, acknowledged at 11 of t-0, is on broker 3 only."""
        at = f" at {self.offset}" if self.offset >= 0 else ""
        said = f"v{self.value}, acknowledged{at} of {self.topic}-{self.partition}, is on "
        only = " only" if self.lacking and self.holders else ""
        said += f"broker {' and '.join(self.holders)}{only}" if self.holders else "no broker"
        if self.elsewhere:
            said += "".join(f"; on broker {broker} it is at {offset}" for broker, offset in self.elsewhere)
        return said


@define(kw_only=True)
class Joined:
    """What was found."""

    # Records looked for.
    acknowledged: int = 0
    # On each replica, where they were acknowledged.
    everywhere: int = 0
    placements: list[Placement] = field(factory=list)
    # Others than `placements`, which is bounded.
    more: int = 0

    @property
    def sentences(self) -> list[str]:
        """Of all placements, in order, and how many were left out."""
        found = [each.sentence for each in self.placements]
        return [*found, f"and {self.more} more"] if self.more else found


def join(found: Survey, operations: Iterable[Operation], names: Mapping[str, str] | None = None) -> Joined:
    """Look for each acknowledged record in the directories.

    Args:
        found: the directories.
        operations: the history; appends that were acknowledged count.
        names: the topic in the history by the directories' name, where they differ.

    Returns:
        the records that are not on each replica of their partition.
    """
    names = names or {}
    joined, wanted = Joined(), _wanted(operations)
    for (topic, partition), (replicas, _) in sorted(found.partitions.items()):
        appends = wanted.get((names.get(topic, topic), partition), {})
        if not appends:
            continue
        held: dict[int, list[tuple[str, int]]] = {}
        for files in replicas:
            for offset, value in _records(each.path for each in files.segments):
                if value in appends:
                    held.setdefault(value, []).append((files.broker, offset))
        brokers = [files.broker for files in replicas]
        shown = names.get(topic, topic), partition
        placed = [
            _placed(shown, value, *said, brokers, held.get(value, ())) for value, said in appends.items()
        ]
        wrong = [each for each in placed if each.lacking or each.elsewhere]
        joined.acknowledged += len(placed)
        joined.everywhere += len(placed) - len(wrong)
        joined.placements += wrong[:MOST_REPORTED]
        joined.more += len(wrong[MOST_REPORTED:])
    return joined


def _wanted(operations: Iterable[Operation]) -> dict[Key, dict[int, tuple[int, int]]]:
    """(offset, acks) by value, by partition: of acknowledged appends, by offset."""
    found: dict[Key, list[tuple[int, int, int]]] = {}
    for operation in operations:
        if operation.function is not Function.APPEND or operation.outcome is not Outcome.OK:
            continue
        for record in operation.records:
            offset = -1 if record.offset is None else record.offset
            key = record.topic, record.partition
            found.setdefault(key, []).append((offset, record.value, operation.acks or 0))
    return {
        key: {value: (offset, acks) for offset, value, acks in sorted(appends)}
        for key, appends in found.items()
    }


def _placed(
    key: Key, value: int, offset: int, acks: int, brokers: Sequence[str], held: Sequence[tuple[str, int]]
) -> Placement:
    holders = tuple(dict.fromkeys(broker for broker, at in held if offset in (-1, at)))
    return Placement(
        topic=key[0],
        partition=key[1],
        value=value,
        offset=offset,
        acks=acks,
        holders=holders,
        elsewhere=tuple((broker, at) for broker, at in held if offset not in (-1, at)),
        lacking=tuple(broker for broker in brokers if broker not in holders),
    )


def _records(paths: Iterable[Place]) -> Iterator[tuple[int, int]]:
    """(offset, value id) of every record that can be read."""
    for _, base, values in runs_of_files(paths):
        yield from enumerate(values, base)
