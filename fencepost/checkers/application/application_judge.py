"""The judge of what an application promises, from the lines that it wrote itself.

Owns the promises, the claims, and the words of findings. Must not know rules (processing_rules.py,
record_rules.py) or files.

A finding is one anomaly of one group in one partition; it names how many records are concerned, the first of
them, and the lines that show it.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import numpy as np
from attrs import frozen

from fencepost.checkers.application.application_events import Events, Kind
from fencepost.checkers.application.owner_spans import Owners, owners_of
from fencepost.checkers.application.processing_rules import Violation, of_processing, passed_below
from fencepost.checkers.application.record_rules import of_records
from fencepost.checkers.application.records_known import NO_RECORDS, known_records, sunk
from fencepost.checkers.verdict import AND, Decision, Finding, Verdict, by_rank
from fencepost.traces.anomalies import APPLICATION
from fencepost.traces.errors import PlanError

CHECK = "application"
MOST_PLACES = 100
"""Records that a finding lists; it says how many there are."""
MOST_SHOWN = 5
"""Of these, in its sentence."""


class Promise(StrEnum):
    """What an application promises for each record that it was handed, or that it acknowledged."""

    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    EXACTLY_ONCE = "exactly-once"


class Ordered(StrEnum):
    """In what order an owner processes the records of a partition."""

    KEY = "key"
    PARTITION = "partition"
    NONE = "none"


OF_LOSS = frozenset(
    {"record_never_processed", "record_never_received", "record_skipped_at_start", "missing_in_sink"}
    | {"send_without_result", "committed_before_processed"}
)
"""Anomalies that a promise of at-most-once allows."""
NAMES = tuple(anomaly.name for anomaly in APPLICATION)

EXPECTED = {
    "record_never_processed": "each record that was received is processed before its group passes it",
    "record_never_received": "each acknowledged record below what the group has passed was handed to it",
    "record_skipped_at_start": "the group begins at the first acknowledged record",
    "missing_in_sink": "each processed record is in the sink",
    "send_without_result": "each send has a result when its process ends in order",
    "other_bytes": "every line of a record names one key and one value",
    "offset_acknowledged_twice": "each acknowledged send has an offset of its own",
    "committed_before_processed": "a process commits past a record once it has processed it",
    "twice_in_sink": "the sink holds each record once",
    "processed_twice": "a record is processed again only if the owner before did not commit past it",
    "processed_after_revoked": "an owner ends its work on a partition before that is revoked",
    "processed_out_of_order": "an owner processes records in the order of their offsets",
    "key_in_two_partitions": "all records of a key are in one partition",
}
"""Of each anomaly."""
ONLY_ONCE = "each record is processed once"
"""What is expected in the place of `processed_twice` where nothing is allowed to be repeated."""


@frozen(kw_only=True)
class Claims:
    """What is claimed of an application."""

    promise: Promise = Promise.AT_LEAST_ONCE
    ordered: Ordered = Ordered.KEY
    # Anomalies that are legal here.
    allowed: frozenset[str] = frozenset()


def claims_of(promise: str | None, ordered_by: str | None, allowed: Iterable[str] = ()) -> Claims:
    """Claims from words.

    Args:
        promise: one of Promise; None: at-least-once.
        ordered_by: one of Ordered; None: by key.
        allowed: anomalies that are legal.

    Raises:
        PlanError: a word that there is not.
    """
    names = frozenset(allowed)
    for word, known, where in (
        (promise, tuple(Promise), "the promise"),
        (ordered_by, tuple(Ordered), "the order"),
        *((name, NAMES, "what is allowed") for name in sorted(names)),
    ):
        if word is not None and word not in known:
            raise PlanError(expected=f"one of {', '.join(known)}", seen=repr(word), where=where)
    return Claims(
        promise=Promise(promise or Promise.AT_LEAST_ONCE),
        ordered=Ordered(ordered_by or Ordered.KEY),
        allowed=names,
    )


@frozen(kw_only=True)
class Judged:
    """A verdict, and what was counted on the way."""

    verdict: Verdict
    # For people and programs: events, processes, groups, records, and what was still under way.
    counts: dict[str, int]


DEFAULT = Claims()


def judge_events(events: Events, claims: Claims = DEFAULT) -> Judged:
    """Judge a run.

    Args:
        events: what its application wrote.
        claims: what the application promises.

    Returns:
        the verdict: Illegal with findings; Unknown where lines are missing without which no record can be
        called lost; Ok. What was still under way at the end is counted, and never a finding. The events of
        a finding are rows of the columns.
    """
    sinks = sunk(events)
    known = known_records(events, sinks)
    all_owners = list(owners_of(events))
    repeats = claims.promise is Promise.AT_LEAST_ONCE
    violations = [
        violation
        for owners in all_owners
        for violation in of_processing(
            events, owners, known.get(owners.place, NO_RECORDS), order=claims.ordered.value, repeats=repeats
        )
    ]
    violations += of_records(events, sinks, once=not repeats)
    allowed = claims.allowed | (OF_LOSS if claims.promise is Promise.AT_MOST_ONCE else frozenset())
    shown = [one for one in violations if one.anomaly not in allowed]
    ranked = by_rank(_finding(events, one, claims) for one in shown)
    verdict = Verdict(
        decision=_decision(events, ranked),
        check=CHECK,
        findings=tuple(ranked),
        reason=_reason(events, ranked),
        unjudged=AND.join(_unjudged(events, all_owners, claims)),
    )
    counts = _counts(events, all_owners) | {"records": sum(len(one.offsets) for one in known.values())}
    return Judged(verdict=verdict, counts=counts)


def _decision(events: Events, findings: list[Finding]) -> Decision:
    if findings:
        return Decision.ILLEGAL
    return Decision.UNKNOWN if events.torn or not len(events) else Decision.OK


def _reason(events: Events, findings: list[Finding]) -> str:
    if not len(events):
        return "no line could be read"
    if not events.torn:
        return ""
    names = sorted({events.lives[life].process for life in events.torn})
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    what = "more may be wrong" if findings else "nothing follows from what is not there"
    return f"lines of {', '.join(names[:MOST_SHOWN])}{more} are missing or could not be read, so that {what}"


def _unjudged(events: Events, owners: Iterable[Owners], claims: Claims) -> Iterator[str]:
    """What nothing is known about, for lack of lines."""
    kinds = set(np.unique(events.kind).tolist())
    if Kind.ACKNOWLEDGED not in kinds:
        yield "records that were never received (no acknowledgements)"
    if Kind.PROCESSED not in kinds:
        yield "processing (no line says `processed`)"
    elif Kind.COMMITTED not in kinds and Kind.ASSIGNED not in kinds:
        yield "what a group has passed (no commits and no assignments)"
    if claims.ordered is Ordered.KEY and Kind.PROCESSED in kinds and not (events.key >= 0).any():
        yield "order (no keys: `--ordered-by partition` asks for the order of partitions)"
    if Kind.SINK not in kinds:
        yield "sinks (no line says what one holds)"


def _counts(events: Events, owners: Iterable[Owners]) -> dict[str, int]:
    under_way = 0
    for one in owners:
        received, done = one.offset[one.of(Kind.RECEIVED)], one.offset[one.of(Kind.PROCESSED)]
        under_way += int((np.setdiff1d(received, done) >= passed_below(events, one)).sum())
    return {
        "events": len(events),
        "processes": len(events.lives),
        "groups": len({one.group for one in owners}),
        "left_out": events.left_out_in_all,
        "half_lines": len(events.halves),
        "under_way": under_way,
        "sends_under_way": events.under_way,
    }


def _finding(events: Events, violation: Violation, claims: Claims) -> Finding:
    topic, partition = events.places[violation.place] if violation.place >= 0 else (None, -1)
    if topic is None and violation.names:
        topic = violation.names[0]
    offsets = violation.offsets.tolist()
    expected = EXPECTED[violation.anomaly]
    if violation.anomaly == "processed_twice" and claims.promise is not Promise.AT_LEAST_ONCE:
        expected = ONLY_ONCE
    elif violation.anomaly == "processed_out_of_order" and claims.ordered is Ordered.KEY:
        expected += " for each key"
    return Finding(
        anomaly=violation.anomaly,
        check=CHECK,
        expected=expected,
        seen=_seen(events, violation),
        topic=topic,
        partition=partition,
        offset=offsets[0] if offsets else -1,
        places=tuple((topic or "", partition, offset) for offset in offsets[:MOST_PLACES]),
        events=violation.rows,
    )


def _seen(events: Events, violation: Violation) -> str:
    lines = [f"{events.lives[events.life[row]]} at {events.where(row)}" for row in violation.rows]
    first, last = (lines[0], lines[-1]) if lines else ("", "")
    what = _records(events, violation)
    names = violation.names
    return {
        "record_never_processed": lambda: f"{what}: received by {first}, passed by {last}, never processed",
        "record_never_received": lambda: f"{what}: acknowledged by {first}, passed by {last}, never received",
        "record_skipped_at_start": lambda: (
            f"{what}: acknowledged by {first}; the first that was read is above, by {last}"
        ),
        "missing_in_sink": lambda: f"{what}: processed by {first}, not in the sink",
        "send_without_result": lambda: (
            f"{names[1]} of {names[2]} to {names[0]} without any, the first at {names[3]}"
        ),
        "other_bytes": lambda: f"{what}: {first} and {last} differ",
        "offset_acknowledged_twice": lambda: f"{what}: {first} and {last}",
        "committed_before_processed": lambda: f"{what}: committed past by {first}, processed by {last}",
        "twice_in_sink": lambda: f"{what}: two rows or more",
        "processed_twice": lambda: f"{what}: by {first}, and again by {last}",
        "processed_after_revoked": lambda: f"{what}: taken from {first}, processed by {last}",
        "processed_out_of_order": lambda: f"{what}: processed by {last}, after a later one by {first}",
        "key_in_two_partitions": lambda: (
            f"{names[1]} keys of {names[0]} in two or more, the first in "
            f"{_place(events, violation.rows[0])} by {first}, and in {_place(events, violation.rows[1])} by "
            f"{last}"
        ),
    }[violation.anomaly]()


def _place(events: Events, row: int) -> str:
    topic, partition = events.places[events.place[row]]
    return f"{topic}-{partition}"


def _records(events: Events, violation: Violation) -> str:
    """The records concerned, in words."""
    topic, partition = events.places[violation.place]
    offsets = violation.offsets.tolist()
    shown = ", ".join(map(str, offsets[:MOST_SHOWN]))
    more = f" and {len(offsets) - MOST_SHOWN:,} more" if len(offsets) > MOST_SHOWN else ""
    group = f" of group {events.groups[violation.group]}" if violation.group > 0 else ""
    return f"{topic}-{partition} offset{'s' * (len(offsets) > 1)} {shown}{more}{group}"
