"""What `fencepost audit --source --target` reports: findings, notes, groups, and what was matched by.

Owns messages and the JSON. Must not know what is a finding (audit/topics).
"""

from typing import Any

import attrs

from fencepost.audit.topics.comparison import LISTED, MEANS, NOTES, Example
from fencepost.audit.topics.group_offsets import GroupOffset
from fencepost.audit.topics.topic_audit import TopicAudit, TopicAuditOrder, audit_topics
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode

BEYOND_END = "group_beyond_end"
SHOWN = 5
"""Places of one kind that are printed; --json has LISTED."""


def audit_two_topics(order: TopicAuditOrder, output: Output) -> ExitCode:
    """Compare two topics and report. Returns the exit code. order: which; output: for reports.

    Raises what audit_topics raises."""
    with output.progress("reading") as bar:

        def progress(what: str, done: int, whole: int) -> None:
            bar.to(done, what, total=max(whole, 1))

        audit = audit_topics(order, progress)
    beyond = [one for one in audit.groups if one.is_beyond_end]
    for kind, means in (*MEANS.items(), *NOTES.items()):
        _show(kind, means, audit, output)
    for one in beyond:
        output.say(
            f"finding: {BEYOND_END} {one.group} {order.target.topic}-{one.partition}: committed is "
            f"{one.target}, the log ends at {one.target_end}; the group would be reset"
        )
    _show_groups(audit.groups, output)
    for sentence in audit.not_judged:
        output.say(f"not judged: {sentence}")
    findings = sum(audit.compared.findings.values()) + len(beyond)
    matched_by = "partition, order, key, value, headers" + (
        " and timestamp" if audit.compared.timestamps_kept else "; the copy has timestamps of its own"
    )
    output.say(f"matched by {matched_by}")
    output.say(
        f"{audit.partitions} partitions, {audit.source_records} records at the source, "
        f"{audit.target_records} at the target: {findings or 'no'} finding{'' if findings == 1 else 's'}"
    )
    code = ExitCode.UNDECIDED if not audit.compared.judged else ExitCode.NOTHING_FOUND
    return output.end(ExitCode.FINDINGS if findings else code, _as_dict(audit, order, matched_by))


def _show(kind: str, means: str, audit: TopicAudit, output: Output) -> None:
    count = audit.compared.counts.get(kind, 0)
    if not count:
        return
    output.say(f"{'finding' if kind in MEANS else 'note'}: {kind}, {_plural(count, 'record')}: {means}")
    places = [one for one in audit.compared.examples if one.kind == kind]
    for one in places[:SHOWN]:
        output.say(f"  {_place(one)}")
    if len(places) > SHOWN:
        output.say(f"  and more; --json has {LISTED} places of each kind")


def _place(one: Example) -> str:
    at = [
        f"offset {offset} of the {side}"
        for side, offset in (("source", one.source_offset), ("target", one.target_offset))
        if offset >= 0
    ]
    many = f", {one.records} records from there on" if one.records > 1 else ""
    return f"partition {one.partition}, {', '.join(at)}{many}{': ' + one.detail if one.detail else ''}"


def _show_groups(groups: tuple[GroupOffset, ...], output: Output) -> None:
    if not groups:
        return
    rows = table(
        "group",
        ">partition",
        ">source",
        ">is at the target",
        ">committed there",
        ">skips",
        ">repeats",
        ">earliest repeats",
        ">latest skips",
    )
    for one in groups:
        move = one.goes_on
        add_row(
            rows,
            one.group,
            one.partition,
            one.source,
            one.translated,
            "nothing" if move is None else one.target,
            "" if move is None else move.skips,
            "" if move is None else move.repeats,
            one.earliest.repeats,
            one.latest.skips,
        )
    output.say(rows)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_dict(audit: TopicAudit, order: TopicAuditOrder, matched_by: str) -> dict[str, Any]:
    counts = audit.compared.counts
    return {
        "source": order.source.text,
        "target": order.target.text,
        "matched_by": matched_by,
        "partitions": audit.partitions,
        "source_records": audit.source_records,
        "target_records": audit.target_records,
        "findings": {kind: counts[kind] for kind in MEANS if kind in counts},
        "notes": {kind: counts[kind] for kind in NOTES if kind in counts},
        "places": [attrs.asdict(one) for one in audit.compared.examples],
        "groups": [{**attrs.asdict(one), BEYOND_END: one.is_beyond_end} for one in audit.groups],
        "not_judged": list(audit.not_judged),
    }
