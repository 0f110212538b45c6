"""Known defects of the systems under test: when a finding of a run is one of them.

Owns the conditions, over what the run recorded. Must not know tables or folders. A condition names versions
and what happened inside, never seeds: each run meets other timings, and what does not meet it stays
unexplained.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from fencepost.checkers.verdict import Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

APACHE, POWER_LOSS = "apache-kafka", "power_loss"
ELIGIBLE_REPLICAS_FROM = (4, 1)
"""New clusters have eligible leader replicas (KIP-966) from this version on."""
LOST = frozenset(
    {"lost_write", "inconsistent_offsets", "high_watermark_regressed", "epoch_regressed_in_log"}
    | {"append_below_shown_end", "append_inversion", "nonmonotonic_send", "duplicate", "torn_batch"}
)
"""What a lost record shows as: nothing, or another record, is at its offset; the end goes back, perhaps to
where the middle of a lost batch was; what was appended later is below it; and the sequence number that was
lost with it is accepted again."""
LAST_MEMBER = (
    "Kafka's before 4.1, known upstream as KIP-966 ([finding](../findings/apache-kafka-last-replica.md))."
)


def version_of(system: str) -> tuple[int, ...]:
    """Of Apache Kafka, by the name of a system. system: as `--system` has it; others have no version."""
    name, _, version = system.partition(":")
    numbers = version.partition(":")[0].split(".")
    return tuple(int(number) for number in numbers) if name == APACHE and all(numbers) else ()


def returns_of(events: Iterable[Event], topic: str | None, partition: int) -> list[int]:
    """When a partition's only ISR member was elected again, for the first time after it had lost power.

    Parameters:
      events: of a run, by time.
      topic: of the partition.
      partition: its number.
    Returns: times, in nanoseconds.
    """
    dark: set[int] = set()
    isr: tuple[int, ...] = ()
    epoch, found = -1, []
    for event in events:
        if event.name is Name.FAULT_BEGAN and event.cause == POWER_LOSS:
            dark.add(event.node)
        if event.name is not Name.PARTITION_STATE or (event.topic, event.partition) != (topic, partition):
            continue
        if event.leader >= 0 and event.leader_epoch > epoch:
            if event.leader in dark and set(isr) == {event.leader} and not event.cause:
                found.append(event.time)
            dark.discard(event.leader)
        isr, epoch = event.isr, event.leader_epoch
    return found


def last_member_lost_power(trace: Trace, findings: tuple[Finding, ...]) -> bool:
    """Whether each of a run's findings is a record that was acknowledged before the ISR's only member lost
    power and led again.

    Parameters:
      trace: of the run, against Apache Kafka.
      findings: all that it has.
    Returns: no for a version with eligible leader replicas.
    """
    version = version_of(trace.target)
    if not findings or not version or version >= ELIGIBLE_REPLICAS_FROM:
        return False
    rows = {one.op_id: one for one in trace.operations}
    return all(
        one.anomaly in LOST
        and any(
            _is_known_by(rows, one, elected) for elected in returns_of(trace.events, one.topic, one.partition)
        )
        for one in findings
    )


def _is_known_by(rows: Mapping[int, Operation], finding: Finding, moment: int) -> bool:
    """Whether an operation that proves the finding had succeeded by then."""
    return any(
        rows[number].outcome is Outcome.OK and (rows[number].completion_time or moment) < moment
        for number in finding.operations
        if number in rows
    )


KNOWN: Mapping[str, Callable[[Trace, tuple[Finding, ...]], bool]] = MappingProxyType(
    {LAST_MEMBER: last_member_lost_power}
)
"""Conditions, by what is said of a run that meets them."""


def said_of(trace: Trace, findings: tuple[Finding, ...]) -> str:
    """What is known of a run's findings; empty: nothing. trace: of the run; findings: all that it has."""
    return next((says for says, holds in KNOWN.items() if holds(trace, findings)), "")
