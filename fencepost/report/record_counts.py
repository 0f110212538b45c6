"""The counts of records that `fencepost check` and `mine` report of logs: of one history, and of all of them.

Owns: adding counts up, and how they are shown. Must not know how records are counted.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import define, field, frozen

from fencepost.checkers.log.accounts import LogCounts, LostRecord

MOST_LOST = 100
"""Lost records that are listed without --json."""


@frozen(kw_only=True)
class LogReport:
    """The counts of one history in a form that can be sent."""

    # Acknowledged records by acks.
    acknowledged: dict[str, int]
    # Lost records by acks, and whether the claims allow the loss.
    lost_allowed: dict[str, int]
    lost_not_allowed: dict[str, int]
    # Acknowledged with an offset, never read, and not known to be lost.
    unread: int
    # Values at several offsets of one log.
    duplicated: int
    # Records of unknown outcome that a read returned.
    unknown_present: int
    # The first `listed` lost records.
    lost: tuple[LostRecord, ...]

    @classmethod
    def of(cls, counts: LogCounts, listed: int | None) -> "LogReport":
        """These counts. listed: None lists all lost records."""
        return cls(
            acknowledged=dict(counts.acknowledged),
            lost_allowed=dict(counts.lost_allowed),
            lost_not_allowed=dict(counts.lost_not_allowed),
            unread=counts.unread,
            duplicated=counts.duplicated,
            unknown_present=counts.unknown_present,
            lost=tuple(sorted(counts.lost_values, key=lambda one: one.allowed)[:listed]),
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, without the list."""
        return _as_dict(
            Counter(self.acknowledged),
            Counter(self.lost_allowed),
            Counter(self.lost_not_allowed),
            (self.unread, self.duplicated, self.unknown_present),
        )


def _as_dict(
    acknowledged: Counter[str], allowed: Counter[str], not_allowed: Counter[str], others: tuple[int, int, int]
) -> dict[str, Any]:
    unread, duplicated, unknown_present = others
    return {
        "acknowledged": {acks: acknowledged[acks] for acks in ("all", "1", "0")},
        "lost": {acks: {"allowed": allowed[acks], "not_allowed": not_allowed[acks]} for acks in ("all", "1")},
        "unread": unread,
        "duplicated": duplicated,
        "unknown_but_present": unknown_present,
    }


def _place_of(lost: tuple[str, int, LostRecord]) -> tuple[bool, str, int, str, int, int]:
    """What no claim allows comes first: a list that is cut still has it."""
    source, trace_id, one = lost
    return one.allowed, source, trace_id, one.topic, one.partition, one.offset


@define
class LogTotals:
    """The counts of all histories together; as in LogReport, summed."""

    acknowledged: Counter[str] = field(factory=Counter)
    allowed: Counter[str] = field(factory=Counter)
    not_allowed: Counter[str] = field(factory=Counter)
    unread: int = 0
    duplicated: int = 0
    unknown_present: int = 0
    # How many histories.
    histories: int = 0
    # (source, trace id, record) of the listed lost records.
    lost: list[tuple[str, int, LostRecord]] = field(factory=list)

    def add(self, source: str, trace_id: int, report: LogReport, most: int | None) -> None:
        """One history. most: lost records to keep, None for all."""
        self.histories += 1
        for counter, counts in (
            (self.acknowledged, report.acknowledged),
            (self.allowed, report.lost_allowed),
            (self.not_allowed, report.lost_not_allowed),
        ):
            for acks, count in counts.items():  # few: `Counter.update` takes longer
                counter[acks] += count
        self.unread += report.unread
        self.duplicated += report.duplicated
        self.unknown_present += report.unknown_present
        self.lost += [(source, trace_id, one) for one in report.lost]
        if most is not None and len(self.lost) > most:
            self.lost = sorted(self.lost, key=_place_of)[:most]

    @property
    def lost_in_all(self) -> int:
        """How many records are lost."""
        return self.allowed.total() + self.not_allowed.total()

    @property
    def not_allowed_ones(self) -> list[tuple[str, int, LostRecord]]:
        """Those of `lost` that no claim allows."""
        return [one for one in self.lost if not one[2].allowed]

    def merge(self, other: "LogTotals", most: int) -> None:
        """Add the histories of another sum; the order of additions does not matter. other: that sum; most:
        how many lost records to keep."""
        self.histories += other.histories
        self.acknowledged.update(other.acknowledged)
        self.allowed.update(other.allowed)
        self.not_allowed.update(other.not_allowed)
        self.unread += other.unread
        self.duplicated += other.duplicated
        self.unknown_present += other.unknown_present
        self.lost = sorted(self.lost + other.lost, key=_place_of)[:most]

    def lines(self, all_of_them: str = "--json") -> Iterator[str]:
        """A line of counts, and the lost records that no claim allows, for a person. all_of_them: where every
        lost record is."""
        if not self.acknowledged.total() + self.unknown_present:
            return
        by_acks = ", ".join(f"{count} with acks={acks}" for acks, count in self.acknowledged.items() if count)
        allowed = f" ({self.allowed.total()} of them allowed)" if self.allowed.total() else ""
        acks_1 = self.allowed["1"] + self.not_allowed["1"]
        leader = f", {acks_1} with acks=1" if acks_1 else ""
        yield (
            f"records: {self.acknowledged.total()} acknowledged ({by_acks or 'none'});"
            f" {self.lost_in_all} lost{leader}{allowed}; {self.unread} never read;"
            f" {self.duplicated} duplicated; {self.unknown_present} unknown but present"
        )
        listed = self.not_allowed_ones[:MOST_LOST]
        for source, trace_id, one in listed:
            place = f"{one.topic}-{one.partition} offset {one.offset}"
            yield f"  lost: {source} {trace_id}: {place}, value {one.value}, acks={one.acks}"
        more = self.not_allowed.total() - len(listed)
        if more > 0:
            yield f"  and {more} more (all of them: {all_of_them})"

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with every lost record that was kept."""
        others = self.unread, self.duplicated, self.unknown_present
        return {
            **_as_dict(self.acknowledged, self.allowed, self.not_allowed, others),
            "lost_values": [
                {"source": source, "trace_id": trace_id, "topic": one.topic, "partition": one.partition,
                 "offset": one.offset, "value": one.value, "acks": one.acks, "allowed": one.allowed}
                for source, trace_id, one in self.lost
            ],
        }  # fmt: skip
