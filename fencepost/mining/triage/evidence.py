"""What is known of one bad trace, in a canonical form: what convicts it, what the convicting rows were, and
what it did around that.

Owns: the items of evidence. Must not know: which items are common (weights.py), groups, Spark.

Two traces show one bug if they agree in what is strange about them. An item is a string without names,
offsets and times, so that it is the same in each run of the same story:

    finding: A             the trace has a finding of this anomaly
    clause: A: E           and this was expected there, in the judge's words without numbers and names
    seen: A: S             and this was seen
    waited: A              instead of these three, where the last convicting event is a note of the run:
                           something never came
    waited for: A: E       what did not
    convicts: W            an event or an operation of a certificate, as a step (event_steps.py)
    here: W                a step on the convicting partition up to the conviction
    between: W             a step between cause and effect (between.py); of several findings of the anomaly
                           that names the trace, of the one with the shortest window
    ends: A: F, W          when what a convicting operation F had written was read, its transaction's marker
                           or its offset's expiry had been written; "nothing": neither
    stands: R              a contradiction that stood when a wait was given up (record/stuck.py)
    step: W, left: W, again: W, answer: W
                           what occurred anywhere in the trace (features.py)
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.verdict import Finding, Verdict, by_rank
from fencepost.mining.triage.between import Convicting, Story
from fencepost.mining.triage.event_steps import CODE_OF, Steps, plain
from fencepost.record.stuck import reasons
from fencepost.traces.diagnosis import diagnosis_of
from fencepost.traces.events import Name
from fencepost.traces.operations import Function
from fencepost.traces.tables import Tables

KEPT = ("step", "left", "again", "answer")
"""Kinds of feature that are evidence of a cause. Pairs and options say more of how a swarm got there."""
COMMITTED = "read_committed"
"""The isolation that belongs to the words of an operation; the other is the usual one."""
CONSEQUENCES = ("liveness",)
"""Checks of how long something took: their findings are usually consequences of another bug."""
NOTHING_CAME = (CODE_OF[Name.PHASE], CODE_OF[Name.LIVENESS_FAILED])
"""Events that convict by what is not there."""
CONVICTING = (
    *("op_id", "function", "outcome", "acks", "error", "strong"),
    *("invoke_time", "completion_time", "group", "producer_id", "node", "argument", "isolation"),
    *("topic", "partition", "records"),
)
"""Columns of convicting operations."""
MOST_WINDOWS = 3
"""Findings of which the window is looked at, the one that names the trace first: the others repeat it."""
MOST_ROWS = 20
"""Rows of one certificate that are used: a certificate is minimal, so it has only a few."""
_LISTS = re.compile(r"\[[^\]]*\]")


def canonical(text: str, names: Iterable[str] = ()) -> str:
    """A judge's clause without numbers, lists of numbers, and the names of topics, groups and members. names:
    those that are known; a word with letters and digits is taken for a name too."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "NAME", text)
    return plain(_LISTS.sub("[..]", text))


@frozen(kw_only=True)
class Evidence:
    """The evidence of one bad trace."""

    # Its number in the row group.
    trace: int
    # The one that names it.
    anomaly: str
    # Sorted, without repetitions.
    items: tuple[str, ...]


def findings_of(verdicts: Iterable[Verdict]) -> list[Finding]:
    """The findings that say what is wrong, the one that names the trace first; consequences only where there
    is nothing else."""
    found = by_rank(one for verdict in verdicts for one in verdict.findings)
    return [one for one in found if one.check not in CONSEQUENCES] or found


def evidence_of(
    trace: int, verdicts: Iterable[Verdict], features: Sequence[str], tables: Tables, steps: Steps
) -> Evidence:
    """What is known about the bad trace with this number. features: its words; steps: of all rows of the
    group."""
    findings = findings_of(verdicts)
    trace_id = tables.traces.column("trace_id")[trace].as_py()
    start, stop = np.searchsorted(steps.trace, [trace, trace + 1]).tolist()
    items = {feature for feature in features if feature.split(":", 1)[0] in KEPT}
    operations = _operations(tables.operations, trace_id, findings)
    names = {one.topic for one in findings if one.topic}
    story = Story(tables.events, steps, start, stop)
    windows: list[tuple[int, set[str]]] = []
    for one in findings:
        rows = [operations[each] for each in one.operations[:MOST_ROWS] if each in operations]
        last = min(start + one.events[-1], stop - 1) if one.events else -1
        items |= _judged(one, names, waited=last >= 0 and int(steps.name[last]) in NOTHING_CAME)
        items |= _stands(tables.events, last, steps, names)
        events = [start + event for event in one.events[:MOST_ROWS] if start + event < stop]
        items.update(f"convicts: {steps.words[steps.code[row]]}" for row in events if steps.code[row] >= 0)
        items.update(f"convicts: {story.words(one, row)}" for row in rows)
        items.update(f"ends: {one.anomaly}: {words}" for words in story.ends(one, rows))
        if one.anomaly == findings[0].anomaly and len(windows) < MOST_WINDOWS:
            windows.append(story.between(one, rows))
    items.update(_here(findings[0], steps, start, stop))
    items.update(f"between: {words}" for words in min(windows, key=lambda window: window[0])[1])
    return Evidence(trace=trace, anomaly=findings[0].anomaly, items=tuple(sorted(items)))


def _judged(finding: Finding, names: Iterable[str], *, waited: bool) -> set[str]:
    """The judge's own words."""
    expected = canonical(finding.expected, names)
    if waited:
        return {f"waited: {finding.anomaly}", f"waited for: {finding.anomaly}: {expected}"}
    seen = canonical(finding.seen, names)
    return {
        f"finding: {finding.anomaly}",
        f"clause: {finding.anomaly}: {expected}",
        f"seen: {finding.anomaly}: {seen}",
    }


def _stands(events: pa.Table, row: int, steps: Steps, names: Iterable[str]) -> set[str]:
    """What stood in the way when a wait was given up, each contradiction by itself."""
    if row < 0 or int(steps.name[row]) != CODE_OF[Name.LIVENESS_FAILED]:
        return set()
    diagnosis = diagnosis_of(events.column("detail")[row].as_py() or "")
    if diagnosis is None:
        return set()
    known = {*names, *(one.topic for one in diagnosis.partitions)}
    return {f"stands: {canonical(reason, known)}" for reason in reasons(diagnosis)}


def _operations(operations: pa.Table, trace_id: int, findings: list[Finding]) -> dict[int, Convicting]:
    """The convicting operations by op id."""
    wanted = {each for one in findings for each in one.operations[:MOST_ROWS]}
    if not wanted:
        return {}
    asked = operations.select(list(CONVICTING))
    rows = np.flatnonzero(operations.column("trace_id").to_numpy() == trace_id)
    rows = rows[np.isin(operations.column("op_id").to_numpy()[rows], sorted(wanted))]
    found = [asked.slice(row, 1).to_pylist()[0] for row in rows.tolist()]  # a filter looks at every row
    return {row["op_id"]: _operation(row) for row in found}


def _operation(row: dict[str, Any]) -> Convicting:
    acks = "" if row["acks"] is None else f"acks={row['acks']}"
    said = (
        *(row["function"], acks, row["isolation"] if row["isolation"] == COMMITTED else ""),
        *(row["outcome"], row["error"] or "", "strong" if row["strong"] else ""),
        "in a transaction" if row["argument"] == Function.TXN else "",
        "with a producer id" if row["producer_id"] is not None else "",
    )
    end = row["completion_time"]
    return Convicting(
        words=" ".join(str(part) for part in said if part),
        start=row["invoke_time"],
        end=row["invoke_time"] if end is None else end,
        group=row["group"] or "",
        producer_id=-1 if row["producer_id"] is None else row["producer_id"],
        node=row["node"],
        function=row["function"],
        values=frozenset(record["value"] for record in row["records"] or ()),
        place=(row["topic"], -1 if row["partition"] is None else row["partition"]),
    )


def _here(finding: Finding, steps: Steps, start: int, stop: int) -> set[str]:
    """The steps on the convicting partition up to the last convicting event; all of them where no event
    convicts."""
    if finding.partition < 0 or finding.topic is None:
        return set()
    last = min(start + max(finding.events) + 1, stop) if finding.events else stop
    if finding.topic not in steps.topics:
        return set()
    topic, own = steps.topics.index(finding.topic), slice(start, last)
    there = (steps.topic[own] == topic) & (steps.number[own] == finding.partition) & (steps.code[own] >= 0)
    return {f"here: {steps.words[code]}" for code in np.unique(steps.code[own][there]).tolist()}
