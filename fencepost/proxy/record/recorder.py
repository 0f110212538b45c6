"""What passed becomes rows: one method for each API that is an operation, one event for every request.

Owns which process a row belongs to, which fields of a request and its answer are kept, and up to which moment everything is
written. Must not know files. Only what is named here is ever written: tokens and bytes of SASL, configurations, metadata of
commits and whatever else passes are not.

- A connection is a process; a producer with an id is one of its own, because its transaction runs over many connections.
- A fetch that brings records, or news of a partition's ends, is a poll; it names its position.
- A record that is read and was there before the proxy is an append of unknown outcome by nobody (process 0): the proxy did
  not see its sending. The end that a broker named first says which those are; topics of `others` may have them anywhere.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

from fencepost.impl.log.batch.header import NO_PRODUCER_ID, BatchHeader, CorruptBatchError
from fencepost.proxy.pipe import Exchange, Pipe
from fencepost.proxy.record.appends import Append, Appends, Identity
from fencepost.proxy.record.groups import Groups
from fencepost.proxy.record.kernels import Ids
from fencepost.proxy.record.lines import Lines, records_text, rows_of
from fencepost.proxy.record.reads import Asked, Sessions, shown
from fencepost.proxy.record.transactions import Transactions
from fencepost.proxy.record.values import Values, whole_batches
from fencepost.traces.parts import BEFORE
from fencepost.wire.codec import RequestHeader
from fencepost.wire.passing import api_name, error_name

PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 8, 9
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, INIT_PRODUCER_ID = 11, 12, 13, 14, 22
EPOCH_END, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_COMMIT, GROUP_HEARTBEAT = 23, 24, 25, 26, 28, 68
NOBODY = 0
"""The process of records that were sent without the proxy."""
FIRST_PROCESS = 1
LATEST, EARLIEST = -1, -2
TAPPED = "tapped"
"""The cause of a mark: the ids that a tap has put into the records of an append, in their order."""
MOST_OPERATIONS = 100
"""Op ids that a request's event names."""
MOST_KNOWN = 100_000
"""Producers with a process number, and partitions with ends."""
ISOLATIONS = ("read_uncommitted", "read_committed")
CLIENT_ID_CHARACTERS = 200
"""Of a client id that are written."""


@define(eq=False)
class Ends:
    """What is known of a partition."""

    baseline: int
    """Records below were there before the proxy, unless it saw their sending."""
    told: int
    """Records below that were there before are rows already."""
    told_from: int


@define(eq=False)
class Note:
    """What is kept of a request until its answer. batches: of a produce; positions: of a fetch."""

    batches: list[tuple[str, int, Identity, list[Append]]] = field(factory=list)
    asked: Asked | None = None
    epoch: int = -1
    opened: bool = False
    """Whether its row begins before it is written: no low watermark may pass it."""
    rows: list[int] = field(factory=list)
    """Op ids of the rows that its answer made."""


@define(eq=False, kw_only=True)
class Recorder:
    """A watcher of pipes. values: what is kept of records; compacted: topics of which keys are kept, others: topics that somebody
    writes to without the proxy; keep: takes records in full, if they are to be kept."""

    lines: Lines
    values: Values
    compacted: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    keep: Callable[[int, bytes | None, bytes], None] | None = None
    wanted: frozenset[int] = frozenset(
        {PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP}
        | {SYNC_GROUP, INIT_PRODUCER_ID, EPOCH_END, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_COMMIT}
        | {GROUP_HEARTBEAT}
    )
    stopped: bool = False
    """Whether nothing is recorded any more."""
    requests: int = 0
    records_in: int = 0
    records_out: int = 0
    appends: Appends = field(init=False)
    groups: Groups = field(init=False)
    transactions: Transactions = field(init=False)
    high_watermarks: dict[tuple[str, int], int] = field(factory=dict, init=False)
    committed: dict[tuple[str, str, int], int] = field(factory=dict, init=False)
    """(group, topic, partition) -> the last committed offset."""
    _sessions: Sessions = field(factory=Sessions, init=False)
    _ends: dict[tuple[str, int], Ends] = field(factory=dict, init=False)
    _producers: "OrderedDict[int, int]" = field(factory=OrderedDict, init=False)
    _processes: dict[int, int] = field(factory=dict, init=False)
    _last_process: int = field(default=NOBODY, init=False)
    _open: dict[Exchange, None] = field(factory=dict, init=False)
    """Requests without an answer, in the order of their times."""
    _shown: "OrderedDict[tuple[int, str, int], tuple[int, ...]]" = field(factory=OrderedDict, init=False)
    """The ends that a connection was shown last, by partition."""

    def __attrs_post_init__(self) -> None:
        self.appends = Appends(self.lines)
        self.groups = Groups(self.lines, self.committed)
        self.transactions = Transactions(self.lines)

    # ---- what pipes call

    def asked(self, pipe: Pipe, exchange: Exchange) -> None:
        """A request is about to leave."""
        if self.stopped or exchange.header is None:
            return
        if pipe.number not in self._processes:
            self._opened(pipe, exchange.time)
        self.requests += 1
        note = exchange.note = Note()
        key, body = exchange.header.api_key, exchange.body
        if key == PRODUCE:
            first = self.lines.operations
            self._produced(pipe, exchange, note)
            if body.acks == 0:
                self._request(pipe, exchange, exchange.time, first, "", delivered=True)
                return
        elif key == FETCH:
            self._fetches(pipe, exchange, note)
        elif body is not None and key in (END_TXN, TXN_COMMIT, ADD_PARTITIONS, ADD_OFFSETS):
            self.transactions.asked(self._producer, pipe, exchange, body)
        self._open[exchange] = None

    def answered(self, pipe: Pipe, exchange: Exchange, body: Any, time: int, delivered: bool) -> None:
        """A broker has answered."""
        note: Note | None = exchange.note
        if note is None or self.stopped or exchange.header is None:
            return
        self._open.pop(exchange, None)
        key, first, error = exchange.header.api_key, self.lines.operations, ""
        process = self._processes.get(pipe.number, NOBODY)
        node = self._node(pipe)
        if not delivered:
            self.appends.lost([one for *_, appends in note.batches for one in appends])
        elif body is None:
            pass
        elif key == PRODUCE:
            error = self._acknowledged(pipe, note, body, time)
        elif key == FETCH:
            error = self._fetched(pipe, exchange, note, body, time)
        elif key == LIST_OFFSETS:
            error = self._listed(pipe, exchange, body, time)
        elif key in (JOIN_GROUP, SYNC_GROUP, OFFSET_COMMIT, OFFSET_FETCH, GROUP_HEARTBEAT):
            error = self.groups.answered(key, exchange, body, time, process, node, pipe.cluster.name_of)
        elif key in (END_TXN, TXN_COMMIT, ADD_PARTITIONS, ADD_OFFSETS):
            error = self.transactions.answered(self._producer, pipe, exchange, body, time, node)
        else:
            error = _error_of(body)
        self._request(pipe, exchange, time, first, error, delivered=delivered)

    def lost(self, pipe: Pipe, exchange: Exchange, time: int) -> None:
        """No answer will come."""
        note: Note | None = exchange.note
        self._open.pop(exchange, None)
        if note is None or self.stopped or exchange.header is None:
            return
        first = self.lines.operations
        self.appends.lost([one for *_, appends in note.batches for one in appends])
        if exchange.body is not None and exchange.header.api_key == OFFSET_COMMIT:
            process = self._processes.get(pipe.number, NOBODY)
            self.groups.lost_commit(exchange, process, self._node(pipe), pipe.cluster.name_of)
        elif exchange.body is not None and exchange.header.api_key == END_TXN:
            self.transactions.lost(exchange.body)
        self._request(pipe, exchange, None, first, "", delivered=False)

    def closed(self, pipe: Pipe, time: int, reason: str) -> None:
        """A connection has ended."""
        if self._processes.pop(pipe.number, None) is not None and not self.stopped:
            detail = {"connection": pipe.number, "client": pipe.client, "reason": reason[:200]}
            self.lines.event(time, "connection", detail, node=self._node(pipe), cause="closed")

    def unread(self, pipe: Pipe, header: RequestHeader) -> None:
        """A request passes that nobody here can read."""
        if not self.stopped:
            api = f"{api_name(header.api_key)} {header.version}"
            self.lines.event(
                pipe.now(), "mark", {"connection": pipe.number, "api": api}, cause="unread_request"
            )

    # ---- what the host calls

    def tick(self, time: int) -> None:
        """Time has gone by."""
        self.appends.tick(time)

    def low_watermark(self, time: int) -> int:
        """Everything before this moment has been written, if it is `time` now: rows that are still to come begin or end
        later."""
        earliest = [time]
        for exchange in self._open:
            earliest.append(exchange.time)
            break
        earliest += [at for at in (self.appends.earliest, self.transactions.earliest) if at is not None]
        return min(earliest)

    def close(self) -> None:
        """Nothing more comes: what is open stays unknown, what was refused has failed."""
        self.appends.close()
        self.stopped = True

    # ---- produce

    def _produced(self, pipe: Pipe, exchange: Exchange, note: Note) -> None:
        body, process = exchange.body, self._processes[pipe.number]
        for topic in body.topic_data:
            name = pipe.cluster.name_of(topic)
            for partition in topic.partition_data:
                data = partition.records
                headers, trouble = whole_batches(data) if data else ([], "")
                for header in headers:
                    try:
                        self._batch(pipe, exchange, note, process, name, partition.index, data, header)
                    except CorruptBatchError as error:
                        trouble = str(error)
                if trouble:
                    detail = {"connection": pipe.number, "topic": name, "partition": partition.index}
                    self.lines.event(
                        exchange.time, "mark", detail | {"says": trouble[:200]}, cause="unread_batch"
                    )

    def _batch(
        self, pipe: Pipe, exchange: Exchange, note: Note, process: int, topic: str, partition: int,
        data: bytes, header: BatchHeader,
    ) -> None:  # fmt: skip
        ids, _ = self.values.of_batch(data, header)
        self.records_in += len(ids)
        identity: Identity = ("plain", topic, partition, header.crc, header.base_timestamp_ms, header.count)
        if header.producer_id != NO_PRODUCER_ID:
            place = (header.producer_id, header.producer_epoch, header.base_sequence, header.count)
            identity = (topic, partition, *place)
            process = self._producer(header.producer_id)
        made = [
            Append(
                op_id=self.lines.number(),
                process=process,
                time=exchange.time,
                topic=topic,
                partition=partition,
                values=part,
                acks=exchange.body.acks,
                header=header,
                first=first,
                key=key,
                node=self._node(pipe),
            )
            for first, part, key in self._by_key(topic, data, header, ids)
        ]
        if not made:
            return
        if self.keep is not None:
            for content in self.values.contents(data, header, ids):
                self.keep(content.value_id, content.key, content.rest)
        if len(made) == 1 and (tapped := self.values.tap_ids(data, header)) is not None:
            self.lines.event(exchange.time, "mark", {"op_id": made[0].op_id, "ids": tapped}, cause=TAPPED)
        appends = self.appends.sent(identity, made)
        note.batches.append((topic, partition, identity, appends))
        if header.is_transactional and appends:
            self.transactions.wrote(header.producer_id, header.producer_epoch, process, exchange.time)

    def _by_key(
        self, topic: str, data: bytes, header: BatchHeader, ids: Ids
    ) -> Iterator[tuple[int, Ids, str | None]]:
        """(place, value ids, key) of what becomes one row: a whole batch, or neighbours of one key in a compacted topic."""
        if topic not in self.compacted:
            if len(ids):
                yield 0, ids, None
            return
        keys, first = self.values.keys_of(data, header), 0
        for place in range(1, len(ids) + 1):
            if place == len(ids) or keys[place] != keys[first]:
                yield first, ids[first:place], keys[first]
                first = place

    def _acknowledged(self, pipe: Pipe, note: Note, body: Any, time: int) -> str:
        answers = {
            (pipe.cluster.name_of(topic), one.index): one
            for topic in body.responses
            for one in topic.partition_responses
        }
        worst = ""
        for topic, partition, identity, appends in note.batches:
            answer = answers.get((topic, partition))
            if answer is None:
                self.appends.lost(appends)
                continue
            error = error_name(answer.error_code)
            worst = error if error != "NONE" else worst
            log_start = getattr(answer, "log_start_offset", -1)
            self.appends.answered(identity, appends, time, error, answer.base_offset, log_start)
            if answer.base_offset >= 0:
                self._ends_of(topic, partition, answer.base_offset)
        return worst

    # ---- reads

    def _fetches(self, pipe: Pipe, exchange: Exchange, note: Note) -> None:
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

    def _fetched(self, pipe: Pipe, exchange: Exchange, note: Note, body: Any, time: int) -> str:
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
                    self._poll(pipe, exchange, time, name, one, position, committed)
        return "" if worst == "NONE" else worst

    def _poll(
        self, pipe: Pipe, exchange: Exchange, time: int, topic: str, one: Any, position: int, committed: bool
    ) -> None:
        partition = one.partition_index
        aborted: dict[int, list[int]] | None = None
        if committed:
            aborted = {}
            for each in sorted(one.aborted_transactions or (), key=lambda it: it.first_offset):
                aborted.setdefault(each.producer_id, []).append(each.first_offset)
        found = shown(one.records, position, self.values, aborted) if one.records else None
        ends = (one.high_watermark, one.last_stable_offset, getattr(one, "log_start_offset", -1))
        place = (pipe.number, topic, partition)
        if not (found and found.runs) and self._shown.get(place) == (position, *ends):
            return
        self._shown[place] = (position, *ends)
        if len(self._shown) > MOST_KNOWN:
            self._shown.popitem(last=False)
        self.high_watermarks[topic, partition] = one.high_watermark
        known = self._ends_of(topic, partition, one.high_watermark)
        texts: list[bytes] = []
        for run in found.runs if found else ():
            self._before_the_proxy(known, topic, partition, run.offset, run.values, time)
            texts.append(records_text(topic, partition, run.offset, run.values, run.leader_epoch))
            self.records_out += len(run.values)
        row: dict[str, Any] = {
            "op_id": self.lines.number(),
            "process": self._processes[pipe.number],
            "function": "poll",
            "invoke_time": exchange.time,
            "outcome": "ok",
            "completion_time": time,
            "topic": topic,
            "partition": partition,
            "isolation": ISOLATIONS[committed],
            "offset": position,
            "node": self._node(pipe),
        }
        names = ("end_offset", "last_stable_offset", "log_start_offset")
        row |= {name: value for name, value in zip(names, ends, strict=True) if value >= 0}
        if texts:
            row["records"] = rows_of(texts)
        self.lines.operation(row)
        exchange.note.rows.append(row["op_id"])
        if found and found.trouble:
            detail = {
                "connection": pipe.number,
                "topic": topic,
                "partition": partition,
                "says": found.trouble,
            }
            self.lines.event(time, "mark", detail, cause="unread_batch")
        if found and self.keep is not None:
            for header, ids in found.batches:
                for content in self.values.contents(one.records, header, ids):
                    self.keep(content.value_id, content.key, content.rest)

    def _ends_of(self, topic: str, partition: int, end: int) -> Ends:
        known = self._ends.get((topic, partition))
        if known is None:
            known = self._ends[topic, partition] = Ends(end, -1, -1)
        return known

    def _before_the_proxy(
        self, known: Ends, topic: str, partition: int, offset: int, values: Ids, time: int
    ) -> None:
        """Records that nobody sent here: an append of unknown outcome, once for each."""
        end = offset + len(values)
        if topic not in self.others:
            end = min(end, known.baseline)
        if end <= offset:
            return
        if known.told_from < 0 or offset > known.told or end < known.told_from:
            start, known.told_from, known.told = offset, offset, end
        else:
            start = known.told if known.told_from <= offset else offset
            known.told_from, known.told = min(known.told_from, offset), max(known.told, end)
        new = values[start - offset : end - offset] if start >= offset else values
        if not len(new):
            return
        self.lines.operation(
            {
                "op_id": self.lines.number(),
                "process": NOBODY,
                "function": "append",
                "invoke_time": time,
                "outcome": "unknown",
                "topic": topic,
                "partition": partition,
                "acks": -1,
                "argument": BEFORE,
                "records": rows_of([records_text(topic, partition, -1, new)]),
            }
        )

    def _listed(self, pipe: Pipe, exchange: Exchange, body: Any, time: int) -> str:
        wanted = {
            (topic.name, one.partition_index): one.timestamp
            for topic in exchange.body.topics
            for one in topic.partitions
        }
        committed = getattr(exchange.body, "isolation_level", 0) == 1
        worst = ""
        for topic in body.topics:
            for one in topic.partitions:
                error = error_name(one.error_code)
                timestamp = wanted.get((topic.name, one.partition_index))
                if error != "NONE":
                    worst = error
                    continue
                if timestamp not in (LATEST, EARLIEST) or one.offset < 0:
                    continue
                row: dict[str, Any] = {
                    "op_id": self.lines.number(),
                    "process": self._processes[pipe.number],
                    "function": "list_offsets",
                    "invoke_time": exchange.time,
                    "outcome": "ok",
                    "completion_time": time,
                    "topic": topic.name,
                    "partition": one.partition_index,
                    "isolation": ISOLATIONS[committed],
                    "offset": one.offset,
                    "node": self._node(pipe),
                }
                if getattr(one, "leader_epoch", -1) >= 0 and timestamp == LATEST:
                    row["leader_epoch"] = one.leader_epoch
                if timestamp == EARLIEST:
                    row |= {"argument": "earliest", "log_start_offset": one.offset}
                elif committed:
                    row["last_stable_offset"] = one.offset
                else:
                    row["end_offset"] = one.offset
                    self._ends_of(topic.name, one.partition_index, one.offset)
                self.lines.operation(row)
        return worst

    # ---- events

    def _opened(self, pipe: Pipe, time: int) -> None:
        self._last_process += 1
        self._processes[pipe.number] = self._last_process
        detail = {"connection": pipe.number, "client": pipe.client}
        self.lines.event(time, "connection", detail, node=self._node(pipe), cause="opened")

    def _request(
        self, pipe: Pipe, exchange: Exchange, time: int | None, first: int, error: str, *, delivered: bool
    ) -> None:
        header = exchange.header
        assert header is not None
        detail: dict[str, Any] = {
            "connection": pipe.number,
            "correlation": header.correlation_id,
            "version": header.version,
            "client": (header.client_id or "")[:CLIENT_ID_CHARACTERS],
            "us": None if time is None else (time - exchange.time) // 1000,
        }
        note: Note | None = exchange.note
        operations = [one.op_id for *_, appends in (note.batches if note else ()) for one in appends]
        operations += note.rows if note else ()
        if operations:
            detail["operations"] = operations[:MOST_OPERATIONS]
        if error and error != "NONE":
            detail["error"] = error
        if not delivered:
            detail["says"] = "the client did not get the answer"
        self.lines.event(
            exchange.time, "request", detail, node=self._node(pipe), cause=api_name(header.api_key)
        )

    # ---- who

    def _node(self, pipe: Pipe) -> int:
        return pipe.cluster.node_at(*pipe.broker)

    def _producer(self, producer_id: int) -> int:
        """The process of a producer."""
        known = self._producers.get(producer_id)
        if known is None:
            self._last_process += 1
            known = self._producers[producer_id] = self._last_process
            if len(self._producers) > MOST_KNOWN:
                self._producers.popitem(last=False)
        return known


def _error_of(body: Any) -> str:
    code = getattr(body, "error_code", None)
    return "" if code is None else error_name(code)
