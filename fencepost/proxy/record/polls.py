"""Reads become rows: fetches with the position that they ask for, and the ends that brokers name.

Owns what is known of each partition's ends. Must not know connections' processes or other APIs.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

from fencepost.impl.log.batch.header import CorruptBatchError
from fencepost.proxy.exchange import Exchange
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.record.earlier import Earlier
from fencepost.proxy.record.lines import MOST_IN_ROW, Lines, rows_of, run_text
from fencepost.proxy.record.note import Note
from fencepost.proxy.record.reads import Asked, Run, Sessions, Shown, shown
from fencepost.proxy.record.values import Values
from fencepost.wire.passing import error_name

LATEST, EARLIEST = -1, -2
NO_REPLICA = -1
"""The replica id of a client."""
MOST_KNOWN = 100_000
"""Ends that connections were shown."""
LAST_STABLE_LATER = "last_stable_offset_read_later"
"""The cause of a mark: an answer claims a last stable offset above its high watermark. Kafka reads the high
watermark first (Partition.readRecords), and it may rise in between: the row has the lower of both."""
ISOLATIONS = ("read_uncommitted", "read_committed")


def _rows(runs: list[Run]) -> Iterator[list[Run]]:
    """What becomes one row each, of at most MOST_IN_ROW records; at least one."""
    held: list[Run] = []
    size = 0
    for run in runs:
        whole = len(run.values) <= MOST_IN_ROW
        for start in range(0, len(run.values), MOST_IN_ROW):
            part = run.values if whole else run.values[start : start + MOST_IN_ROW]
            if held and size + len(part) > MOST_IN_ROW:
                yield held
                held, size = [], 0
            held.append(run if part is run.values else run.part(start, start + len(part)))
            size += len(part)
    if held or not runs:
        yield held


@define(eq=False, kw_only=True)
class Polls:
    """compacted: topics of which keys are kept; keep: takes records in full, if they are to be kept."""

    lines: Lines
    values: Values
    earlier: Earlier
    compacted: frozenset[str]
    keep: Callable[[int, bytes | None, bytes], None] | None
    # That brokers have handed out so far.
    records: int = field(default=0, init=False)
    # By (topic, partition), as an answer said last.
    high_watermarks: dict[tuple[str, int], int] = field(factory=dict, init=False)
    _sessions: Sessions = field(factory=Sessions, init=False)
    # The ends that a connection was shown last, by partition.
    _shown: "OrderedDict[tuple[int, str, int], tuple[int, ...]]" = field(factory=OrderedDict, init=False)

    def asked(self, pipe: Pipe, exchange: Exchange, note: Note) -> None:
        """A fetch is about to leave.

        Args:
            pipe: the connection.
            exchange: the request.
            note: where its rows are kept until the answer.
        """
        body, name_of = exchange.body, pipe.cluster.name_of
        session, note.epoch = getattr(body, "session_id", 0), getattr(body, "session_epoch", -1)
        new: Asked = {
            (name_of(topic), one.partition): one.fetch_offset
            for topic in body.topics
            for one in topic.partitions
        }
        forgotten = [
            (name_of(topic), partition)
            for topic in getattr(body, "forgotten_topics_data", ())
            for partition in topic.partitions
        ]
        note.asked = self._sessions.asked(pipe.broker, session, note.epoch, new, forgotten)

    def fetched(self, pipe: Pipe, exchange: Exchange, note: Note, body: Any, time: int, process: int) -> str:
        """The answer to a fetch.

        Args:
            pipe: the connection.
            exchange: the request.
            note: what was kept of the request.
            body: the answer, decoded.
            time: nanoseconds.
            process: of the client.

        Returns:
            The worst error in it; "" for none.
        """
        assert note.asked is not None
        self._sessions.answered(pipe.broker, getattr(body, "session_id", 0), note.epoch, note.asked)
        committed = exchange.body.isolation_level == 1
        worst = error_name(body.error_code) if hasattr(body, "error_code") else "NONE"
        for topic in body.responses:
            name = pipe.cluster.name_of(topic)
            for one in topic.partitions:
                error = error_name(one.error_code)
                position = note.asked.get((name, one.partition_index))
                if error != "NONE":
                    worst = error
                elif position is not None:
                    self._poll(pipe, exchange, time, name, one, position, committed, process)
        return "" if worst == "NONE" else worst

    def _poll(
        self,
        pipe: Pipe,
        exchange: Exchange,
        time: int,
        topic: str,
        one: Any,
        position: int,
        committed: bool,
        process: int,
    ) -> None:
        partition = one.partition_index
        aborted: dict[int, list[int]] | None = None
        if committed:
            aborted = {}
            for each in sorted(one.aborted_transactions or (), key=lambda it: it.first_offset):
                aborted.setdefault(each.producer_id, []).append(each.first_offset)
        keyed = topic in self.compacted
        found = shown(one.records, position, self.values, aborted, keyed=keyed) if one.records else None
        end, stable = one.high_watermark, one.last_stable_offset
        ends = (end, min(end, stable), getattr(one, "log_start_offset", -1))
        place = (pipe.number, topic, partition)
        if not (found and found.runs) and self._shown.get(place) == (position, *ends):
            return
        self._shown[place] = (position, *ends)
        if len(self._shown) > MOST_KNOWN:
            self._shown.popitem(last=False)
        self.high_watermarks[topic, partition] = one.high_watermark
        self.earlier.ends_at(topic, partition, one.high_watermark)
        row: dict[str, Any] = {
            "op_id": -1,
            "process": process,
            "function": "poll",
            "invoke_time": exchange.time,
            "outcome": "ok",
            "completion_time": time,
            "topic": topic,
            "partition": partition,
            "isolation": ISOLATIONS[committed],
            "offset": position,
            "node": pipe.cluster.node_at(*pipe.broker),
        }
        names = ("end_offset", "last_stable_offset", "log_start_offset")
        row |= {name: value for name, value in zip(names, ends, strict=True) if value >= 0}
        for runs in _rows(found.runs if found else []):
            texts: list[bytes] = []
            for run in runs:
                self.earlier.shown(topic, partition, run, may_abort=run.transactional and not committed)
                texts.append(run_text(topic, partition, run.offset, run.values, run.leader_epoch))
                self.records += len(run.values)
            row["op_id"] = self.lines.number()
            if texts:
                row["runs"] = rows_of(texts)
            self.lines.operation(row)
            exchange.note.rows.append(row["op_id"])
            if runs:  # a further row reads on from here
                row["offset"] = runs[-1].offset + len(runs[-1].values)
        if found and found.runs and not committed:  # a reader of committed records is not shown the others
            last = found.runs[-1]
            self.earlier.passed(topic, partition, position, last.offset + len(last.values))
        if stable > end:
            detail = {"op_id": row["op_id"], "high_watermark": end, "last_stable_offset": stable}
            self.lines.event(time, "mark", detail, cause=LAST_STABLE_LATER)
        trouble = found.trouble if found else ""
        if found and self.keep is not None:
            trouble = self._keep(found, one.records, self.keep) or trouble
        if trouble:
            detail = {"connection": pipe.number, "topic": topic, "partition": partition, "says": trouble}
            self.lines.event(time, "mark", detail, cause="unread_batch")

    def _keep(self, found: Shown, data: bytes, keep: Callable[[int, bytes | None, bytes], None]) -> str:
        """Records in full; answers why the rest cannot be taken apart, "" if it can be."""
        try:
            for header, ids in found.batches:
                for content in self.values.contents(data, header, ids):
                    keep(content.value_id, content.key, content.rest)
        except CorruptBatchError as error:
            return str(error)
        return ""

    def listed(self, pipe: Pipe, exchange: Exchange, body: Any, time: int, process: int) -> str:
        """The answer to ListOffsets.

        Args:
            pipe: the connection.
            exchange: the request.
            body: the answer, decoded.
            time: nanoseconds.
            process: of the client.

        Returns:
            The worst error in it; "" for none.
        """
        wanted = {
            (topic.name, one.partition_index): one.timestamp
            for topic in exchange.body.topics
            for one in topic.partitions
        }
        committed = getattr(exchange.body, "isolation_level", 0) == 1
        # a replica, or a debugger (-2), is told the leader's log end, which the high watermark may be below
        of_client = exchange.body.replica_id == NO_REPLICA
        worst = ""
        for topic in body.topics:
            for one in topic.partitions:
                error = error_name(one.error_code)
                timestamp = wanted.get((topic.name, one.partition_index))
                if error != "NONE":
                    worst = error
                    continue
                if timestamp not in (LATEST, EARLIEST) or one.offset < 0 or not of_client:
                    continue
                row: dict[str, Any] = {
                    "op_id": self.lines.number(),
                    "process": process,
                    "function": "list_offsets",
                    "invoke_time": exchange.time,
                    "outcome": "ok",
                    "completion_time": time,
                    "topic": topic.name,
                    "partition": one.partition_index,
                    "isolation": ISOLATIONS[committed],
                    "offset": one.offset,
                    "node": pipe.cluster.node_at(*pipe.broker),
                }
                if getattr(one, "leader_epoch", -1) >= 0 and timestamp == LATEST:
                    row["leader_epoch"] = one.leader_epoch
                if timestamp == EARLIEST:
                    row |= {"argument": "earliest", "log_start_offset": one.offset}
                elif committed:
                    row["last_stable_offset"] = one.offset
                else:
                    row["end_offset"] = one.offset
                    self.earlier.ends_at(topic.name, one.partition_index, one.offset)
                self.lines.operation(row)
        return worst
