"""What a round's tasks do: read new files and judge the whole traces in them; judge traces under way so far.

Owns the way from files to rows of results. Must not know Spark, rounds, which traces are due.

The judges are those of `fencepost check` and `mine`. A trace under way is judged as the prefix that is
certain (`traces/parts.py`), and as the whole once it has ended.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec
from attrs import Factory, define, evolve, field, frozen

from fencepost.application.event_columns import read_events
from fencepost.application.event_files import event_files
from fencepost.checkers.application.application_events import all_stopped
from fencepost.checkers.application.application_judge import CHECK as APPLICATION
from fencepost.checkers.application.application_judge import Claims, judge_events
from fencepost.checkers.judges import checks_by_name, judge, under_profile
from fencepost.checkers.verdict import Decision, Finding, Subject, Verdict, standing, subject_of
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.history_files import HistoryFile
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.results.result_rows import (
    Counts,
    ResultWriter,
    finding_row,
    quarantine_row,
    verdict_row,
)
from fencepost.mining.spark_judge import Settings, judge_split
from fencepost.mining.watch.out import TABLES, Row, Table
from fencepost.mining.watch.under_way import RUN, PartNews, SoFar, news_of
from fencepost.mining.watch_rows import read_quickly
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import TraceError
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.parquet.row_groups import groups_of
from fencepost.traces.parts import certain_prefix, joined
from fencepost.traces.store import part_of_file
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace

_UNREADABLE = (OSError, TraceError, RecursionError, ValueError, LookupError)
"""What reading a foreign file may raise."""
_OURS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""A bug of ours costs one trace or file, and is reported: otherwise the same round would fail for ever."""
_QUARANTINED = "quarantine"
"""In place of a check, in the subject of a sentence that is reported once."""


@define
class Answer:
    """What came of some files or traces under way."""

    tables: dict[Table, list[Row]] = field(factory=lambda: {table: [] for table in TABLES})
    # Operations that were read for the first time.
    operations: int = 0
    news: list[PartNews] = Factory(list)
    judged: list[SoFar] = Factory(list)

    def add(self, other: "Answer") -> None:
        """Add another one."""
        for table, rows in other.tables.items():
            self.tables[table] += rows
        self.operations += other.operations
        self.news += other.news
        self.judged += other.judged

    def refuse(self, source: str, place: str, reason: str, trace_id: int = -1) -> None:
        """A piece of input goes to quarantine.

        Args:
            source, place: its folder, and the piece.
            reason: in one sentence.
            trace_id: of the trace; -1: a whole file is meant.
        """
        one = Unreadable(source=source, place=place, reason=reason, trace_id=trace_id)
        self.tables["quarantine"].append(quarantine_row(one))


# ---- new files


@frozen(kw_only=True)
class NewFile:
    """A file to read once."""

    path: Path
    source: str
    place: str


@frozen(kw_only=True)
class _Whole(HistoryFile):
    """The whole traces of a file that was read already."""

    traces: tuple[Trace, ...]

    def read(self) -> Iterator[list[Trace] | Unreadable]:
        """As of any file."""
        yield list(self.traces)


@frozen(kw_only=True)
class ReadFile:
    """The task of a new file."""

    settings: Settings

    def __call__(self, file: NewFile) -> Answer:
        """Judge the whole traces of a file, and say what it holds of others. Its contents raise nothing."""
        answer = Answer()
        try:
            (self._part if file.path.suffix == ".parquet" else self._lines)(file, answer)
        except _OURS as error:
            answer.refuse(file.source, file.place, f"{file.place}: {mistake(error)}")
        return answer

    def _judge(self, split: Split | HistoryFile, answer: Answer) -> None:
        writer, counts = ResultWriter(Path(), ""), Counts()
        judge_split(split, self.settings, writer, counts)
        answer.operations += counts.operations
        for table in TABLES:
            answer.tables[table] += writer.rows[table]

    def _part(self, file: NewFile, answer: Answer) -> None:
        part = part_of_file(file.path)
        if part is None or file.path.parent.name != "traces":
            reason = (
                f"{file.place}: expected a part of a folder of traces (DIR/traces/part-00000.parquet), saw "
                f"a file of another name"
            )
            answer.refuse(file.source, file.place, reason)
            return
        try:
            groups = groups_of(part)
        except _UNREADABLE as error:
            answer.refuse(file.source, file.place, sentence(error, file))
            return
        for group in groups:
            at = f"{file.place}, row group {group.index}"
            self._judge(Split(source=file.source, place=at, size_bytes=group.size_bytes, group=group), answer)

    def _lines(self, file: NewFile, answer: Answer) -> None:
        traces: list[Trace] = []
        try:
            quickly = read_quickly(file.path)
            traces += quickly or read_traces(file.path)
            if not traces:
                raise TraceError(expected="a trace", seen="an empty file", where=file.place)
        except _UNREADABLE as error:
            answer.refuse(file.source, file.place, sentence(error, file))
            # the lost rows might excuse what comes later
            gap = f"{file.place} could not be read"
            answer.news += [news_of(one, file.source, file.place, gap=gap) for one in _begun_in(file.path)]
            traces = [one for one in traces if one.digest]
        whole = tuple(one for one in traces if one.digest)
        if whole:
            self._judge(
                _Whole(source=file.place, place=file.place, size_bytes=0, format="", traces=whole), answer
            )
        for one in traces:
            if not one.digest:
                answer.operations += len(one.operations)
                answer.news.append(news_of(one, file.source, file.place))


def mistake(error: Exception) -> str:
    """How a bug of ours is reported. error: what was raised."""
    return f"this is too much for a judge, a mistake in fencepost: {error!r}"


def sentence(error: Exception, file: NewFile) -> str:
    """Why a file could not be read.

    Args:
        error: what reading it raised.
        file: which one it was.
    """
    words = (str(error).splitlines() or [type(error).__name__])[0].replace(str(file.path), file.place)
    return words if isinstance(error, TraceError) else f"{file.place}: expected a readable file, saw {words}"


def _begun_in(path: Path) -> Iterator[Trace]:
    """The traces under way that a damaged file names in lines that can be read."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = from_json(line)
            if isinstance(row, dict) and row.pop("type", None) == "trace" and not row.get("digest"):
                yield msgspec.convert(row, Trace)
        except msgspec.MsgspecError:
            continue


# ---- traces under way


@frozen(kw_only=True)
class Due:
    """A trace under way that is judged now."""

    trace_id: int
    # The paths of its files; of a run, its folder.
    files: tuple[Path, ...]
    rows: int
    # Up to which it is certain; None: it has ended.
    moment: int | None
    # Why it cannot be judged; "": it can.
    gap: str
    reported: frozenset[Subject]


@frozen(kw_only=True)
class DueOfFolder:
    """Those of one folder, whose files may hold several of them."""

    source: str
    due: tuple[Due, ...]


@frozen(kw_only=True)
class JudgeSoFar:
    """The task of the traces under way of a folder."""

    # Of the checks.
    names: tuple[str, ...]
    # Of the log check; None: each trace's own.
    profile: str | None

    def __call__(self, folder: DueOfFolder) -> Answer:
        """Judge each of them so far, or as a whole where it has ended. Their files raise nothing."""
        answer = Answer()
        wanted = {one.trace_id for one in folder.due if not one.gap}
        parts: dict[int, list[Trace]] = {trace_id: [] for trace_id in wanted}
        lost: dict[Path, str] = {}
        for path in dict.fromkeys(
            chain.from_iterable(one.files for one in folder.due if one.trace_id != RUN)
        ):
            try:
                for part in read_quickly(path) or read_traces(path):
                    if part.trace_id in wanted and not part.digest:
                        parts[part.trace_id].append(part)
            except _UNREADABLE as error:
                lost[path] = f"{path.name} cannot be read again: {(str(error).splitlines() or [''])[0]}"
        for one in folder.due:
            gap = one.gap or next((lost[path] for path in one.files if path in lost), "")
            if one.trace_id == RUN:
                _judge_run(folder.source, one, answer)
            else:
                self._judge(folder.source, evolve(one, gap=gap), parts.get(one.trace_id, []), answer)
        return answer

    def _judge(self, source: str, one: Due, parts: list[Trace], answer: Answer) -> None:
        trace, broken = Trace(trace_id=one.trace_id, plan="", seed=0, software_version=""), ""
        verdicts: tuple[Verdict, ...] = ()
        if not one.gap:
            whole = joined(parts)
            assert whole is not None, "a trace under way has a part"
            trace = under_profile(evolve(whole, plan="", digest=""), self.profile)
            trace = trace if one.moment is None else certain_prefix(trace, one.moment)
            broken = _contradiction(trace)
        if not one.gap and not broken:
            try:
                verdicts = judge(trace, self.names)
            except _OURS as error:
                broken = mistake(error)
        if one.moment is not None:  # why it could not be judged is said when it has ended
            _report(source, trace, one, standing(verdicts, trace), answer)
            return
        if not verdicts:
            decision = Decision.ASSUMPTION_BROKEN if broken else Decision.UNKNOWN
            verdicts = tuple(
                Verdict(decision=decision, check=check.name, reason=broken or one.gap)
                for check in checks_by_name(self.names)
            )
        verdicts = tuple(_with_withdrawn(verdict, one.reported) for verdict in verdicts)
        answer.tables["verdicts"] += [verdict_row(source, trace, verdict) for verdict in verdicts]
        _report(source, trace, one, tuple(_all_of(verdicts)), answer)


def _contradiction(trace: Trace) -> str:
    """How the trace contradicts itself; "" if it does not."""
    wrong = contradictions(tables_of([rows_of(evolve(trace, events=()))]).operations)
    return f"the trace contradicts itself: {wrong[trace.trace_id]}" if wrong else ""


def _all_of(verdicts: tuple[Verdict, ...]) -> Iterator[Finding]:
    return chain.from_iterable(verdict.findings for verdict in verdicts)


def _report(
    source: str,
    trace: Trace,
    one: Due,
    found: tuple[Finding, ...],
    answer: Answer,
    said: tuple[Subject, ...] = (),
) -> None:
    """The findings that were not reported before. said: what else was reported for the first time."""
    fresh: dict[Subject, None] = {}
    for finding in found:
        subject = subject_of(finding.check, finding.anomaly, finding.topic, finding.partition)
        if subject not in one.reported:
            fresh[subject] = None
            answer.tables["findings"].append(finding_row(source, trace, finding))
    answer.judged.append(
        SoFar(
            source=source, trace_id=one.trace_id, rows=one.rows, subjects=(*fresh, *said),
            ended=one.moment is None,
        )
    )  # fmt: skip


def _with_withdrawn(verdict: Verdict, reported: frozenset[Subject]) -> Verdict:
    """The verdict, with what was reported early and is not found in the whole: rows came too late, or cannot
    be read."""
    said = {subject_of(one.check, one.anomaly, one.topic, one.partition) for one in verdict.findings}
    early = sorted(subject[1] for subject in reported if subject[0] == verdict.check and subject not in said)
    if not early:
        return verdict
    words = f"reported before and not found in the whole: {', '.join(early)}"
    reason = f"{verdict.reason}; {words}" if verdict.reason else words
    decision = Decision.UNKNOWN if verdict.decision is Decision.OK else verdict.decision
    return evolve(verdict, decision=decision, reason=reason)


def _judge_run(source: str, one: Due, answer: Answer) -> None:
    """Judge an application's run so far. It ends when each of its processes has stopped, and may go on
    later."""
    (folder,) = one.files
    trace = Trace(trace_id=0, plan="", seed=0, target="application", software_version="", profile="events")
    sentences: list[str] = []
    verdict = Verdict(decision=Decision.OK, check=APPLICATION)
    ended = False
    try:
        events = read_events(event_files([folder]))
        sentences += events.left_out
        verdict, ended = judge_events(events, Claims()).verdict, all_stopped(events)
    except TraceError as error:
        sentences.append(str(error))
    except _OURS as error:
        sentences.append(f"{source}: {mistake(error)}")
    said: list[Subject] = []
    for words in sentences:
        subject = (_QUARANTINED, words, None, -1)
        if subject not in one.reported:
            said.append(subject)
            answer.refuse(source, source, words.replace(str(folder), source))
    if ended:
        answer.tables["verdicts"].append(verdict_row(source, trace, verdict))
    found = tuple(
        evolve(finding, seen=finding.seen.replace(str(folder), source))
        for finding in (verdict.findings if ended else standing((verdict,), trace))
    )
    _report(source, trace, evolve(one, moment=None if ended else 0), found, answer, tuple(said))
