"""The rules of events once more, record by record, as a person would check them.

A line is a dict, as an emitter writes it; each process has one life. The answer is, for each anomaly, the set
of (group, topic, partition, offset) concerned, or (topic, key) of keys.
"""

from collections import defaultdict
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
Found = dict[str, set[tuple[Any, ...]]]


def naive(processes: list[list[Row]], *, promise: str, order: str) -> Found:
    """What is wrong. processes: the lines of each, in order."""
    found: Found = defaultdict(set)
    rows = [row for lines in processes for row in lines]
    records: dict[tuple[str, int], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["event"] in ("acknowledged", "received", "processed") and row.get("offset", -1) >= 0:
            records[row["topic"], row["partition"]][row["offset"]].append(row)
    sink = [(row["topic"], row["partition"], row["offset"]) for row in rows if row["event"] == "sink"]
    _of_records(found, rows, records, sink, promise)
    pairs = {
        (row.get("group", ""), row["topic"], row["partition"])
        for row in rows
        if row["event"] in ("assigned", "received", "processed", "committed", "revoked", "lost")
    }
    for group, topic, partition in pairs:
        owners = [
            [
                row
                for row in lines
                if row.get("group", "") == group
                and (row.get("topic"), row.get("partition")) == (topic, partition)
                and row["event"] not in ("sent", "acknowledged", "failed")
            ]
            for lines in processes
        ]
        known = records[topic, partition]
        held = {offset for *place, offset in sink if place == [topic, partition]}
        _of_group(
            found, (group, topic, partition), [each for each in owners if each], known, held, promise, order
        )
    return {name: places for name, places in found.items() if places}


def _of_records(
    found: Found, rows: list[Row], records: Any, sink: list[tuple[Any, ...]], promise: str
) -> None:
    for (topic, partition), by_offset in records.items():
        for offset, lines in by_offset.items():
            for field in ("key", "value"):
                if len({line[field] for line in lines if field in line}) > 1:
                    found["other_bytes"].add((topic, partition, offset))
            if sum(line["event"] == "acknowledged" for line in lines) > 1:
                found["offset_acknowledged_twice"].add((topic, partition, offset))
            done = [line for line in lines if line["event"] == "processed"]
            topics = {one for one, _, _ in sink}
            wanted = done and all(line.get("sink", True) for line in done)
            if topic in topics and wanted and (topic, partition, offset) not in sink:
                found["missing_in_sink"].add((topic, partition, offset))
    if promise != "at-least-once":
        found["twice_in_sink"] |= {place for place in sink if sink.count(place) > 1}
    keys = defaultdict(set)
    for row in rows:
        if row["event"] in ("acknowledged", "received") and "key" in row and row["offset"] >= 0:
            keys[row["topic"], row["key"]].add(row["partition"])
    moved = {topic for (topic, _), places in keys.items() if len(places) > 1}
    found["key_in_two_partitions"] |= {(topic,) for topic in moved}


class _Span:
    """What one life did between two assignments. lines: in order, each with its place in the life."""

    def __init__(self, life: int, reported: bool) -> None:
        self.life, self.reported = life, reported
        self.lines: list[tuple[int, Row]] = []

    def of(self, event: str) -> list[tuple[int, Row]]:
        return [pair for pair in self.lines if pair[1]["event"] == event]

    @property
    def last_commit(self) -> int:
        commits = self.of("committed")
        return commits[-1][1]["offset"] if commits else -1

    @property
    def start(self) -> int:
        for _, row in self.lines:
            if row["event"] in ("assigned", "received") and row.get("offset", -1) >= 0:
                return int(row["offset"])
        return -1


def _spans(owners: list[list[Row]]) -> list[_Span]:
    spans: list[_Span] = []
    for life, lines in enumerate(owners):
        reported = any(row["event"] == "assigned" for row in lines)
        for place, row in enumerate(lines):
            if place == 0 or row["event"] == "assigned":
                spans.append(_Span(life, reported))
            spans[-1].lines.append((place, row))
    return spans


def _of_group(
    found: Found,
    where: tuple[str, str, int],
    owners: list[list[Row]],
    known: Any,
    held: set[int],
    promise: str,
    order: str,
) -> None:
    spans = _spans(owners)
    bound = max(max(span.last_commit, span.start if where[0] else -1) for span in spans)
    began = min((span.start for span in spans if span.start >= 0), default=0)
    for offset in known:
        doers = [span for span in spans for _, row in span.of("processed") if row["offset"] == offset]
        received = any(row["offset"] == offset for span in spans for _, row in span.of("received"))
        if not doers and offset not in held and offset < bound:
            skipped = "record_skipped_at_start" if offset < began else "record_never_received"
            found["record_never_processed" if received else skipped].add((*where, offset))
        if _again(spans, offset, promise):
            found["processed_twice"].add((*where, offset))
        if _early(owners, offset):
            found["committed_before_processed"].add((*where, offset))
    for span in spans:
        taken, seen = False, {}
        for _, row in span.lines:
            taken = taken or row["event"] in ("revoked", "lost")
            if row["event"] != "processed":
                continue
            offset = row["offset"]
            if taken:
                found["processed_after_revoked"].add((*where, offset))
            key = _key(row, known[offset]) if order == "key" else 0
            before = [one for one, its in seen.items() if its == key]
            if offset not in seen and key is not None and before and before[-1] > offset:
                found["processed_out_of_order"].add((*where, offset))
            seen.setdefault(offset, key)


def _key(row: Row, lines: list[Row]) -> Any:
    return row.get("key") or next((line["key"] for line in lines if "key" in line), None)


def _again(spans: list[_Span], offset: int, promise: str) -> bool:
    times = [
        (span, place) for span in spans for place, row in span.of("processed") if row["offset"] == offset
    ]
    if promise != "at-least-once":
        return len(times) > 1
    for (span, place), (other, later) in pairwise(times):
        if span is other:
            between = [row["offset"] for at, row in span.of("committed") if place < at < later]
            if span.reported or any(commit > offset for commit in between):
                return True
        elif span.life == other.life and span.last_commit > offset:
            return True
    return len({id(span) for span, _ in times if span.last_commit > offset}) > 1


def _early(owners: list[list[Row]], offset: int) -> bool:
    doing = [
        life
        for life, lines in enumerate(owners)
        if any((row["event"], row.get("offset")) == ("processed", offset) for row in lines)
    ]
    if len(doing) != 1:
        return False
    lines = owners[doing[0]]
    at = [
        place for place, row in enumerate(lines) if (row["event"], row.get("offset")) == ("received", offset)
    ]
    done = [
        place for place, row in enumerate(lines) if (row["event"], row.get("offset")) == ("processed", offset)
    ]
    if not at:
        return False
    highest = -1
    for place, row in enumerate(lines):
        if row["event"] == "committed":
            highest = max(highest, row["offset"])
            if place > at[0] and highest > offset:
                return bool(row["offset"] > offset and place < done[0])
    return False
