"""What an assertion on a service has found: problems as findings, with the operations and records that show
them.

Owns what a problem is, which operation wrote a record, and how problems become a failure. Must not know any
assertion.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from fencepost.campaign.failure import MOST_LINES, TRACE
from fencepost.checkers.invariants.marked import mark_of
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.kafka.judgement import exercised, failed, of_clients
from fencepost.kafka.topic_records import KafkaRecord
from fencepost.report.commands import check_traces
from fencepost.report.explain import operation_line
from fencepost.report.timeline import as_plain, timeline
from fencepost.traces.anomalies import ASSERTION_FAILED
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

MOST_SHOWN = 5
"""Problems that a failure lists; it says how many there are."""
MOST_MARKED = 100
"""Of them that are kept in the trace."""
MOST_COPIES = 5
"""Records that one problem names: a loop that writes one result for ever is shown by a few of them."""
MOST_FAULTS_SHOWN = 12
"""Of the timeline."""
Partition = tuple[str, int]
Place = tuple[str, int, int]
"""Topic, partition, offset."""


@frozen(kw_only=True)
class Problem:
    """One thing that is not as asserted."""

    says: str
    # Op ids that show it, in the order in which a person would read them.
    operations: tuple[int, ...] = ()
    # The records that it is about; the last one convicts.
    records: tuple[KafkaRecord, ...] = ()
    # Where records were that are in no log any more.
    gone: tuple[Place, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """Of all records that it is about."""
        return (*((one.topic, one.partition, one.offset) for one in self.records), *self.gone)

    def finding(self, check: str, expected: str) -> Finding:
        """As judges write it.

        Args:
            check: the assertion's name.
            expected: what it promises.
        """
        topic, partition, offset = self.places[-1] if self.places else (None, -1, -1)
        return Finding(
            anomaly=ASSERTION_FAILED,
            check=check,
            expected=expected,
            seen=self.says,
            topic=topic,
            partition=partition,
            offset=offset,
            operations=self.operations,
            places=self.places,
        )


class Certificates:
    """Which operations wrote a record, and which handed it out."""

    def __init__(self, trace: Trace) -> None:
        self._at: dict[Place, list[Operation]] = defaultdict(list)
        self._of: dict[tuple[str, int, int], list[Operation]] = defaultdict(list)
        self._read: dict[Place, Operation] = {}
        for row in of_clients(trace):
            for record in row.records:
                place = record.topic, record.partition, record.offset
                if row.function is Function.POLL:
                    self._read[place] = row
                elif row.function is Function.APPEND:
                    self._at[place].append(row)
                    self._of[record.topic, record.partition, record.value].append(row)

    def sent(self, record: KafkaRecord) -> list[Operation]:
        """Every append of a record equal to this one."""
        return self._of.get((record.topic, record.partition, record.value_id), [])

    def writers(self, record: KafkaRecord) -> list[Operation]:
        """The append of this record: the one that was answered with its offset. Where the answer was lost,
        the equal ones that may have written it: those without an offset, or else those of several
        attempts."""
        exact = self._at.get((record.topic, record.partition, record.offset), [])
        sent = self.sent(record)
        unplaced = [row for row in sent if row.offset is None]
        return exact or unplaced or [row for row in sent if row.attempts > 1]

    def cited(self, records: Iterable[KafkaRecord]) -> tuple[int, ...]:
        """The op ids of those that wrote these records, each once."""
        return tuple(dict.fromkeys(row.op_id for record in records for row in self.writers(record)))

    def handed_out(self, record: KafkaRecord) -> tuple[int, ...]:
        """The op id of the last read that a client heard with this record; () if there was none."""
        row = self._read.get((record.topic, record.partition, record.offset))
        return () if row is None else (row.op_id,)


def check(trace: Trace, name: str, promise: str, problems: Iterable[Problem], folder: Path | None) -> str:
    """Do nothing without a problem.

    Args:
        trace: the run.
        name: of the assertion.
        promise: what it asserts, as one clause.
        problems: what it found.
        folder: where the run is kept; None: nowhere.

    Returns:
        What was exercised.

    Raises:
        RunFailedError: if there is a problem, with a finding for each, the operations, the timeline with the
            faults, and the seed.
    """
    found = list(problems)
    if not found:
        return exercised(trace)
    by_id = {operation.op_id: operation for operation in trace.operations}
    lines = [f"{name}: {len(found)} problem{'' if len(found) == 1 else 's'}"]
    for problem in found[:MOST_SHOWN]:
        lines.append(f"  {problem.says}")
        lines += [f"    {operation_line(by_id[op])}" for op in problem.operations if op in by_id]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {len(found) - MOST_SHOWN} more")
    shown = timeline(
        trace,
        operations=[op for problem in found[:MOST_SHOWN] for op in problem.operations],
        events=[place for place, event in enumerate(trace.events) if event.name is Name.FAULT_BEGAN][
            :MOST_FAULTS_SHOWN
        ],
        partitions={place[:2] for problem in found[:MOST_SHOWN] for place in problem.places},
        most_lines=MOST_LINES,
        fold_start=True,
    )
    findings = tuple(one.finding(name, promise) for one in found)
    verdict = Verdict(decision=Decision.ILLEGAL, check=name, findings=findings)
    lines += ["", as_plain(shown), f"seed {trace.seed}"]
    if folder is not None:
        lines.append(f"judge it again: {check_traces(folder / TRACE)}")
    return failed(_marked(trace, findings), "\n".join(lines), verdict, folder)


def _marked(trace: Trace, findings: Sequence[Finding]) -> Trace:
    """The trace with these findings, so that whoever judges it later finds them, too."""
    time = max((event.time for event in trace.events), default=0)
    marks = tuple(mark_of(time, finding) for finding in findings[:MOST_MARKED])
    marked = evolve(trace, events=(*trace.events, *marks))
    return evolve(marked, digest=digest_of(marked))
