"""The text timeline of a trace: a line per moment, quiet stretches folded, what convicts marked with >>>.

Owns folding, layout, colours. Must not know what a judge is; the caller says which operations and events to
mark.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import frozen
from rich.text import Text

from fencepost.checkers.durations import duration
from fencepost.report.entries import Level, Partition, TimelineEntry, entries_of
from fencepost.report.event_words import printable, seconds
from fencepost.report.lanes import LEGEND, Lanes, lanes_of
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace

CONTEXT = 2
"""Entries to show on each side of one of the proof, whatever their level."""
WIDER_CONTEXTS = (4, 8, 16)
"""Larger contexts, used while there is room."""
SHORTEST_FOLD = 3
"""Fewer entries than these are shown rather than folded."""
QUIET_NS = 5_000_000_000
"""A gap of time that gets a separate line."""
SIMULATED = "simulated"
"""The target of runs whose time is virtual."""
MOST_LINES = 100
"""Lines at which a timeline starts to leave out what matters less."""
MOST_KINDS = 5
"""Kinds that a fold counts by name."""
_WHO = 9

_STYLES: dict[Name, str] = {
    Name.FAULT_BEGAN: "yellow",
    Name.FAULT_ENDED: "yellow",
    Name.FAULT_SKIPPED: "dim yellow",
    Name.BECAME_LEADER: "bold cyan",
    Name.CONTROLLER_ELECTED: "cyan",
    Name.PARTITION_STATE: "blue",
    Name.TRUNCATED: "magenta",
    Name.PHASE: "bold",
    Name.LIVENESS_FAILED: "bold red",
    Name.IMPLEMENTATION_ERROR: "bold red",
}


@frozen(kw_only=True)
class Line:
    """One line of a timeline."""

    # ">>>" for a moment of the proof.
    mark: str = ""
    # Seconds; virtual ones for a simulated run.
    time: str = ""
    # The lanes after this moment.
    strip: str = ""
    # A broker, a client or the run, and what happened.
    who: str = ""
    what: str = ""
    style: str = ""

    def plain(self, strip_width: int) -> str:
        """Without colours."""
        return (
            f"{self.mark:<3} {self.time:>11}  {self.strip:<{strip_width}}  {self.who:<{_WHO}}  {self.what}"
        ).rstrip()


def _shown(entries: Sequence[TimelineEntry], level: Level, context: int) -> list[bool]:
    """Which entries are shown at this level: those that matter enough, and the neighbours of those that
    convict."""
    shown = [entry.level <= level for entry in entries]
    for index, entry in enumerate(entries):
        if entry.marked:
            for near in range(max(0, index - context), min(len(entries), index + context + 1)):
                shown[near] = True
    start = 0
    while start < len(entries):  # a fold of one or two entries hides more than it saves
        end = start
        while end < len(entries) and not shown[end]:
            end += 1
        if 0 < end - start < SHORTEST_FOLD and level > Level.TURNING_POINT:
            shown[start:end] = [True] * (end - start)
        start = end + 1
    return shown


def _choose(entries: Sequence[TimelineEntry], most_lines: int) -> list[bool]:
    """The most detailed choice that keeps within `most_lines`; the turning points at least."""
    for level in (Level.ROUTINE, Level.TROUBLED_CLIENT, Level.NOTABLE, Level.TURNING_POINT):
        chosen = _shown(entries, level, CONTEXT)
        if sum(chosen) <= most_lines:
            break
    for context in WIDER_CONTEXTS:
        wider = _shown(entries, level, context)
        if sum(wider) <= most_lines:
            chosen = wider
    return chosen


def _fold(folded: Sequence[TimelineEntry], since: int, until: int, strip: str) -> Line:
    """One line for a run of entries that are not shown, or for a long time without any."""
    counts = Counter(entry.kind for entry in folded).most_common()
    named = [f"{count} {kind}" for kind, count in counts[:MOST_KINDS]]
    if len(counts) > MOST_KINDS:
        named.append(f"{sum(count for _, count in counts[MOST_KINDS:])} more")
    what = f"... {duration(until - since)}: {', '.join(named) or 'nothing'}"
    return Line(strip=strip, what=printable(what), style="dim")


def _line(entry: TimelineEntry, strip: str) -> Line:
    style = "bold red" if entry.marked else _STYLES.get(entry.event.name, "") if entry.event else "green"
    return Line(
        mark=">>>" if entry.marked else "",
        time=seconds(entry.time),
        strip=strip,
        who=entry.who,
        what=entry.what,
        style=style,
    )


def _lines(entries: Sequence[TimelineEntry], chosen: Sequence[bool], lanes: Lanes) -> list[Line]:
    result: list[Line] = []
    folded: list[TimelineEntry] = []
    before = entries[0].time if entries else 0
    for entry, shown in zip(entries, chosen, strict=True):
        if not shown:
            folded.append(entry)
        else:
            if folded or entry.time - before >= QUIET_NS:
                result.append(_fold(folded, before, entry.time, lanes.strip()))
                folded = []
            before = entry.time
        if entry.event is not None:
            lanes.apply(entry.event)
        if shown:
            result.append(_line(entry, lanes.strip()))
    if folded:
        result.append(_fold(folded, before, folded[-1].time, lanes.strip()))
    return result


def _start(entries: Sequence[TimelineEntry]) -> int:
    """How many entries there are before the first phase, and before the first that is marked."""
    for place, entry in enumerate(entries):
        if entry.marked or (entry.event is not None and entry.event.name is Name.PHASE):
            return place
    return 0


def timeline(
    trace: Trace,
    *,
    operations: Iterable[int] = (),
    events: Iterable[int] = (),
    partitions: Iterable[Partition] = (),
    most_lines: int = MOST_LINES,
    fold_start: bool = False,
) -> list[Line]:
    """The timeline of `trace`, headings first. operations: op ids to mark; events: positions to mark.

    partitions: (topic, partition) pairs to show, all if empty. Events of a partition that is not shown leave
    no trace, unless they are marked. fold_start: one line for all before the first phase of the run, in which
    the cluster starts, unless something is marked there.
    """
    focus = frozenset(partitions)
    entries = entries_of(trace, operations=frozenset(operations), events=frozenset(events), focus=focus)
    lanes = lanes_of(trace, focus)
    names, brokers = lanes.heading()
    heading = [
        Line(time="virtual" if trace.plan and trace.target == SIMULATED else "", strip=names, style="dim"),
        Line(time="seconds", strip=brokers, who="who", what="what", style="dim"),
    ]
    chosen = _choose(entries, most_lines)
    if fold_start:
        chosen[: _start(entries)] = [False] * _start(entries)
    lines = heading + _lines(entries, chosen, lanes)
    if lanes.partitions:
        lines.append(Line(what=""))
        lines.append(Line(what=LEGEND, style="dim"))
    return lines


def as_plain(lines: Sequence[Line]) -> str:
    """Lines as text without colours, for files and pipes."""
    width = max((len(line.strip) for line in lines), default=0)
    return "\n".join(line.plain(width) for line in lines)


def as_text(lines: Sequence[Line]) -> Text:
    """Lines with colours for a terminal. The words go in as they are: nothing in a trace is taken for
    markup."""
    width = max((len(line.strip) for line in lines), default=0)
    return Text("\n").join(Text(line.plain(width), style=line.style) for line in lines)
