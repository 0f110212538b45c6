"""The verdicts of one giant history: the log check by slot ranges, and a closer look where that is not
enough.

Owns which checks can judge so large a history, and the message if one cannot. Must not know
Spark, or how a range is judged. The check by ranges says that a log keeps every rule, or that it needs a
closer look. Certificates come from the plain check, over as much of the history as it needs.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.judges import LOG, Check, checks_by_name
from fencepost.checkers.log.ranges.partial import NOT_OF_SLOTS
from fencepost.checkers.unjudged import with_lines
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.giant.checks import (
    WHOLE_OPERATIONS,
    CountRecords,
    data_of_giant,
    judge_rest,
    names_again,
    rows_of,
)
from fencepost.mining.giant.closer import look
from fencepost.mining.giant.fold import judge_ranges
from fencepost.mining.giant.giant_rows import LogKey, Spread, own_batches
from fencepost.mining.inputs.split_reading import FAULT_COLUMNS, headers_of, known_event_rows
from fencepost.mining.inputs.splits import Unreadable
from fencepost.mining.inputs.ungrouped_parts import Giant
from fencepost.mining.results.checkpoint import TaskResult, keep
from fencepost.mining.results.result_rows import Counts, ResultWriter, lost_row, quarantine_row
from fencepost.mining.spark_judge import Judged, Settings, faults_of
from fencepost.report.explain import explain
from fencepost.traces.canonical_rows import trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.tables import Tables, rows_of_tables
from fencepost.traces.trace import Trace


def header_of(giant: Giant, profile: str | None) -> tuple[Trace, pa.Table]:
    """The trace without operations and events, and its row. giant: the history; profile: to demand, None for
    the trace's own. Raises TraceError if it has no row, or two."""
    rows = rows_of(giant, "traces")
    if rows.num_rows != 1:
        raise TraceError(
            expected="one row in traces per trace",
            seen=f"{rows.num_rows} for {giant.trace_id}",
            where=giant.place,
        )
    return headers_of(rows, profile, giant.place)[0], rows


class ContradictionError(Exception):
    """The trace contradicts itself, as said: it is not judged."""


def _unreadable(giant: Giant, reason: str) -> Unreadable:
    return Unreadable(source=giant.source, place=giant.place, reason=reason, trace_id=giant.trace_id)


def _undecided(giant: Giant, reasons: dict[LogKey, tuple[str, ...]], open_: Sequence[str]) -> str:
    """Why not everything can be decided for so large a history; "" if it can."""
    by_log = [
        f"{topic}-{partition}: {', '.join(why)}"
        for (topic, partition), why in sorted(reasons.items())
        if not NOT_OF_SLOTS.isdisjoint(why)
    ]
    if not by_log and not open_:
        return ""
    whole = [
        f"{giant.operations} operations, too many to be examined as a whole, which it needs "
        f"({'; '.join(by_log)})"
    ]
    return "; ".join([*(whole if by_log else ()), *open_])


@frozen(kw_only=True)
class Judging:
    """How giants are judged."""

    settings: Settings
    spread: Spread
    # Operations up to which a history is taken as a whole.
    closer: int = WHOLE_OPERATIONS

    def __call__(self, giant: Giant) -> Judged | Unreadable:
        """Every verdict of one giant, or why it cannot be read."""
        folder = self.settings.folder / "giant" / f"{giant.trace_id}"
        try:
            return self._judged(giant, folder)
        except TraceError as error:
            return _unreadable(giant, str(error))
        except ContradictionError as error:
            return _unreadable(giant, f"the trace contradicts itself: {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _judged(self, giant: Giant, folder: Path) -> Judged:
        header, _ = header_of(giant, self.settings.profile)
        checks = checks_by_name(self.settings.checks)
        verdicts: dict[str, Verdict] = {}
        model = self.settings.model
        for check in checks:
            verdict = self._log(giant, header, check, folder) if check.name == LOG else None
            if verdict is not None:
                verdicts[LOG] = verdict
        rest = [check for check in checks if check.name not in verdicts]
        profile = self.settings.profile
        verdicts |= judge_rest(giant, header, profile, rest, self.spread, whole=self.closer)
        struck = faults_of(rows_of(giant, "events", FAULT_COLUMNS)).get(giant.trace_id, ())
        data = data_of_giant(giant, self.spread)
        all_verdicts = list(with_lines((verdicts[check.name] for check in checks), data))
        all_verdicts += [] if model is None else [model.too_large(giant.operations)]
        records = None
        if LOG in verdicts and giant.weight <= self.closer:
            (records,) = self.spread(CountRecords(giant=giant, header=header), [None])
        return Judged(header, giant.operations, struck, tuple(all_verdicts), records)

    def _log(self, giant: Giant, header: Trace, check: Check, folder: Path) -> Verdict | None:
        """The verdict of the check by ranges; None if the whole history is to be asked."""
        assert check.judge_table is not None
        refused = check.judge_table(SCHEMAS["operations"].empty_table(), [header])
        if refused:
            return refused[giant.trace_id]
        if again := names_again(giant):
            large = Verdict(decision=Decision.UNKNOWN, check=LOG, reason=again)
            return None if giant.weight <= self.closer else large
        found = judge_ranges(giant, header, folder, self.spread)
        if found.broken:
            raise ContradictionError(found.broken)
        weak = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=LOG, reason=found.weak)
        if not any(found.reasons.values()):
            return weak if found.weak else Verdict(decision=Decision.OK, check=LOG)
        if giant.weight <= self.closer:
            return None
        looked = [look(giant, header, work, folder, self.spread) for work in found.suspects]
        findings = [finding for one in looked for finding in one.findings]
        findings += [finding for one in looked for finding in one.sessions]
        undecided = _undecided(giant, found.reasons, [one.undecided for one in looked if one.undecided])
        if findings:
            reason = "; ".join(filter(None, (found.repeated, undecided)))
            return Verdict(decision=Decision.ILLEGAL, check=LOG, findings=tuple(findings), reason=reason)
        if found.repeated:
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=LOG, reason=found.repeated)
        if found.weak:
            return weak
        if undecided:
            return Verdict(decision=Decision.UNKNOWN, check=LOG, reason=undecided)
        return Verdict(decision=Decision.OK, check=LOG)


def task_result(giant: Giant, judged: Judged | Unreadable, settings: Settings, key: str) -> TaskResult:
    """Write the rows of one giant and keep the answer, as tasks do for their splits."""
    counts = Counts()
    with ResultWriter(settings.folder / "files", f"part-{key}-giant") as writer:
        if isinstance(judged, Unreadable):
            counts.quarantined.append(judged)
            writer.rows["quarantine"].append(quarantine_row(judged))
        else:
            counts.operations = judged.operations
            counts.add_verdicts(giant.source, judged.trace, judged.operations, judged.verdicts, judged.faults)
            writer.add(giant.source, judged.trace, judged.verdicts)
            if judged.records is not None:
                counts.add_records(giant.source, giant.trace_id, judged.records)
                lost = judged.records.lost_values
                writer.rows["lost"].extend(lost_row(giant.source, giant.trace_id, one) for one in lost)
            events = rows_of(giant, "events", ["trace_id", "name"])
            _, strange = known_event_rows(events, giant.source, giant.place)
            counts.quarantined += strange
            writer.rows["quarantine"].extend(map(quarantine_row, strange))
            for name, sample in counts.samples.items():
                certificate = _certificate(giant, judged.trace, sample.finding.operations)
                counts.samples[name] = evolve(sample, proof=explain(sample.finding, certificate).proof)
    result = TaskResult(counts=counts, files=tuple(writer.files()))
    keep(settings.folder, key, result, attempt="giant")
    return result


def _certificate(giant: Giant, header: Trace, operations: Sequence[int]) -> Trace:
    """The trace with only these operations, for a finding."""
    wanted = np.array(operations, np.int64)
    names = SCHEMAS["operations"].names
    found = [SCHEMAS["operations"].empty_table()]
    for place in dict.fromkeys(giant.places):
        for rows in own_batches(giant, place, names):
            inside = np.isin(rows.column("op_id").to_numpy(), wanted)
            if inside.any():
                found.append(rows.select(names).filter(pa.array(inside)).cast(SCHEMAS["operations"]))
    _, traces = header_of(giant, None)
    tables = Tables(traces=traces, operations=pa.concat_tables(found), events=SCHEMAS["events"].empty_table())
    return evolve(trace_of(next(rows_of_tables(tables))), claims=header.claims)
