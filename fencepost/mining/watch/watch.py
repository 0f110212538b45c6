"""`watch`: a folder in which traces keep arriving, judged while they arrive, a Spark job or two a round.

Owns the rounds: what is new, which traces under way are due, the order of writing. Must not know the
terminal; how files are read and judged (judging.py), tables written (out.py), and when a trace is due
(under_way.py).

Each round reads the new files, judges the whole traces in them, then judges the traces under way that are due
so far, all of each again. The round is done when its own file is written, after its tables. So a round that
was interrupted runs again over the same files, and what it wrote before is replaced. Between rounds nothing
else is remembered than which files were taken, and what was reported of traces under way.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name
from fencepost.mining.spark.session import check_spark
from fencepost.mining.spark.spark_engine import Engine
from fencepost.mining.spark_judge import Settings
from fencepost.mining.watch.arrivals import Arrival, Folder, in_pieces
from fencepost.mining.watch.counts import Round, Watched
from fencepost.mining.watch.judging import Answer, Due, DueOfFolder, JudgeSoFar, NewFile, ReadFile
from fencepost.mining.watch.out import Done, WatchOut
from fencepost.mining.watch.under_way import RUN, Key, PartNews, UnderWay, taken_up
from fencepost.record.claimed.profiles import check_profile
from fencepost.traces.errors import FencepostError

LATENESS_S = 5.0
INTERVAL_S = 1.0
ROUND_BYTES = 96 * 1024 * 1024
"""Bytes of the files of one round (one file at least): what arrives is judged in pieces of bounded size. As
JSON lines they hold 300,000 operations, which take 300 MB as Python values."""
MOST_TASKS = 16
"""Tasks of one job: Spark takes ten milliseconds to begin one."""

Tell = Callable[[Round, Watched], None]


@define
class _Lists:
    """A task over several items: their answers together."""

    task: Callable[[Any], Answer]

    def __call__(self, items: Sequence[Any]) -> Answer:
        answer = Answer()
        for item in items:
            answer.add(self.task(item))
        return answer


@define(kw_only=True)
class _Watching:
    """A watch at work."""

    folder: Folder
    out: WatchOut
    checks: tuple[str, ...]
    profile: str | None
    lateness_ns: int
    engine: Engine
    tell: Tell | None
    watched: Watched
    # Rounds that are done.
    rounds: int = 0
    # Files that were taken: name -> version.
    seen: dict[str, int] = field(factory=dict)
    known: dict[Key, UnderWay] = field(factory=dict)

    def remember(self) -> None:
        """Take up what earlier watches did."""
        for one in self.out.begin():
            done = one.renamed(lambda name: self.folder.name(self.folder.root / name))
            self.seen.update(done.files)
            taken_up(self.known, done.news)
            for so_far in done.judged:
                self.known[so_far.source, so_far.trace_id].note(so_far)
            self.rounds += 1
        self.watched.findings_in_all = self.out.count("findings")
        self.watched.quarantined_in_all = self.out.count("quarantine")
        self._count()

    def new(self) -> list[Arrival]:
        """What was not taken yet."""
        return [one for one in self.folder.look() if self.seen.get(one.place) != one.version]

    def round(self, piece: list[Arrival], *, last: bool = False) -> None:
        """Judge what is new and what is due, and write what came of it. last: nothing is to wait for more."""
        now_s, answer = time.monotonic(), Answer()
        answer.add(self._read([one for one in piece if not one.grows]))
        if "application" in self.checks:
            answer.news += [
                PartNews(source=one.source, trace_id=RUN, place=one.place, rows=one.size_bytes)
                for one in piece
                if one.grows
            ]
        for news in taken_up(self.known, answer.news, now_s):
            words = f"expected no more of trace {news.trace_id}, which had ended, saw a part of it"
            answer.refuse(news.source, news.place, f"{news.place}: {words}", news.trace_id)
        due = self._due(now_s, last=last)
        judged = self._spread(JudgeSoFar(names=self.checks, profile=self.profile), due)
        for so_far in judged.judged:
            self.known[so_far.source, so_far.trace_id].note(so_far)
        answer.add(judged)
        if piece or due:
            self._write(piece, answer)

    def _read(self, piece: list[Arrival]) -> Answer:
        settings = Settings(checks=self.checks, profile=self.profile, folder=Path(), triage=False)
        files = [NewFile(path=one.path, source=one.source, place=one.place) for one in piece]
        return self._spread(ReadFile(settings=settings), files)

    def _due(self, now_s: float, *, last: bool) -> list[DueOfFolder]:
        """The traces under way to judge now, by folder."""
        found: dict[str, list[Due]] = {}
        for one in self.known.values():
            if not one.is_due(now_s, last=last):
                continue
            moment = None if one.ending else one.moment(self.lateness_ns)
            files: tuple[Path, ...]
            if one.trace_id == RUN:
                files, moment = (self.folder.path(one.source),), 0
            elif moment is None and not one.ending:
                continue
            else:
                files = tuple(self.folder.path(place) for place in sorted(one.files))
            found.setdefault(one.source, []).append(
                Due(
                    trace_id=one.trace_id, files=files, rows=one.rows, moment=moment, gap=one.gap,
                    reported=frozenset(one.reported),
                )
            )  # fmt: skip
        return [DueOfFolder(source=source, due=tuple(due)) for source, due in sorted(found.items())]

    def _spread(self, task: Callable[[Any], Answer], items: Sequence[Any]) -> Answer:
        answer = Answer()
        for one in self.engine.spread(
            _Lists(task), [items[start::MOST_TASKS] for start in range(min(MOST_TASKS, len(items)))]
        ):
            answer.add(one)
        return answer

    def _write(self, piece: list[Arrival], answer: Answer) -> None:
        """The tables, then the caller, then the file that says that the round is done."""
        for rows in answer.tables.values():
            rows.sort(key=repr)
        oldest_s = min((one.modified_ns for one in piece), default=time.time_ns()) / 1e9
        self.out.write(self.rounds, answer.tables)
        self.watched.add(
            one := Round(
                number=self.rounds, files=len(piece), operations=answer.operations, tables=answer.tables,
                lag_s=max(0.0, time.time() - oldest_s),
            )
        )  # fmt: skip
        self._count()
        if self.tell is not None:
            self.tell(one, self.watched)
        taken = tuple((file.place, file.version) for file in piece)
        done = Done(taken, tuple(answer.news), tuple(answer.judged))
        self.out.commit(self.rounds, done.renamed(self.folder.relative))
        self.seen.update(taken)
        self.rounds += 1

    def _count(self) -> None:
        states = [one for one in self.known.values() if not one.ended]
        self.watched.traces_under_way = len(states)
        self.watched.waiting = sum(one.waiting for one in states if one.trace_id != RUN)
        self.watched.incomplete = sum(bool(one.gap) or one.missing is not None for one in states)


def _checked(folder: Path, out: Path, lateness_s: float, profile: str | None, checks: Iterable[str]) -> None:
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "nothing there"
        raise FencepostError(expected="a folder to watch", seen=seen, where=str(folder))
    inside, outside = out.resolve(), folder.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise FencepostError(
            expected="results outside the watched folder",
            seen=f"{out} and {folder}, one in the other",
            where="out",
        )
    if lateness_s < 0:
        raise FencepostError(expected="a lateness of 0 or more", seen=f"{lateness_s} s", where="watch")
    check_profile(profile)
    checks_by_name(tuple(checks))


def watch(
    folder: Path,
    out: Path,
    *,
    checks: tuple[str, ...] = DEFAULT_CHECKS,
    profile: str | None = None,
    lateness_s: float = LATENESS_S,
    once: bool = False,
    interval_s: float = INTERVAL_S,
    master: str | None = None,
    spark: Any = None,
    tell: Tell | None = None,
) -> Watched:
    """Judge what arrives in `folder`, until interrupted, or with `once` until what is there has been judged;
    continues where a watch into `out` stopped.

    checks: names. profile: of the log check, instead of each trace's own. lateness_s: how late rows may come
    in a trace without low watermarks, seconds of its own clock. interval_s: between looks at the folder.
    master: as for `session`. spark: a session to use. tell: called after each round. Raises FencepostError
    for folders that do not fit together, EnvironmentError_ if Spark fails.
    """
    _checked(folder, out, lateness_s, profile, checks)
    asked = {
        "watched": str(folder.resolve()), "checks": [one.name for one in checks_by_name(checks)],
        "lateness_ns": int(lateness_s * 1e9), "profile": profile,
    }  # fmt: skip
    if spark is None:  # before anything is written
        check_spark()
    results = WatchOut(path=out)
    watched = Watched(out=str(out))
    with results.held(asked), Engine(master, spark, name=f"fencepost watch {out}") as engine:
        engine.goes_on = "the next call continues"
        watching = _Watching(
            folder=Folder(named=str(folder), root=folder.resolve()), out=results, checks=checks,
            profile=profile, lateness_ns=int(lateness_s * 1e9), engine=engine, tell=tell, watched=watched,
        )  # fmt: skip
        watching.remember()
        try:
            _rounds(watching, once=once, interval_s=interval_s)
        except KeyboardInterrupt:
            watched.interrupted = True
    return watched


def _rounds(watching: _Watching, *, once: bool, interval_s: float) -> None:
    """Round by round."""
    while True:
        for piece in in_pieces(watching.new(), ROUND_BYTES):
            watching.round(piece)
        watching.round([], last=once)
        if once:
            return
        time.sleep(interval_s)
