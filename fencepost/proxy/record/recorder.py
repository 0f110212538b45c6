"""What passed becomes rows: one method for each API that is an operation, one event for every request.

Owns which process a row belongs to, which fields of a request and its answer are kept, and up to which moment
everything is written. Must not know files. Only what is named here is ever written: tokens and bytes of SASL,
configurations, metadata of commits and whatever else passes are not.

- A connection is a process; a producer with an id is one of its own, because its transaction runs over many
  connections.
- A fetch that brings records, or news of a partition's ends, is a poll; it names its position (polls.py).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

from fencepost.impl.log.batch.header import NO_PRODUCER_ID, BatchHeader, CorruptBatchError, readable_headers
from fencepost.proxy.exchange import Exchange
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.record.appends import Append, Appends, Identity
from fencepost.proxy.record.deletions import DELETE_GROUPS, DELETE_TOPICS, OFFSET_DELETE, deleted
from fencepost.proxy.record.earlier import NOBODY, Earlier
from fencepost.proxy.record.lines import MOST_IN_ROW, Lines
from fencepost.proxy.record.note import Note
from fencepost.proxy.record.polls import Polls
from fencepost.proxy.record.proxied_groups import Groups
from fencepost.proxy.record.proxied_transactions import Transactions
from fencepost.proxy.record.values import Values
from fencepost.wire.codec import RequestHeader
from fencepost.wire.passing import api_name, error_name

PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 8, 9
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, INIT_PRODUCER_ID = 11, 12, 13, 14, 22
EPOCH_END, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_COMMIT, GROUP_HEARTBEAT = 23, 24, 25, 26, 28, 68
FIRST_PROCESS = 1
TAPPED = "tapped"
"""The cause of a mark: the ids that a tap has put into the records of an append, in their order."""
MOST_OPERATIONS = 100
"""Op ids that a request's event names."""
MOST_KNOWN = 100_000
"""Producers with a process number."""
CLIENT_ID_CHARACTERS = 200
"""Of a client id that are written."""


@define(eq=False, kw_only=True)
class Recorder:
    """A watcher of pipes."""

    lines: Lines
    # What is kept of records.
    values: Values
    # Topics of which keys are kept, others: topics that somebody writes to without the proxy.
    compacted: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    # Takes records in full, if they are to be kept.
    keep: Callable[[int, bytes | None, bytes], None] | None = None
    # When the record began, nanoseconds; nothing in it is earlier.
    began: int = 0
    wanted: frozenset[int] = frozenset(
        {PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP}
        | {SYNC_GROUP, INIT_PRODUCER_ID, EPOCH_END, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_COMMIT}
        | {GROUP_HEARTBEAT, DELETE_TOPICS, DELETE_GROUPS, OFFSET_DELETE}
    )
    # Whether nothing is recorded any more.
    stopped: bool = False
    requests: int = 0
    records_in: int = 0
    appends: Appends = field(init=False)
    groups: Groups = field(init=False)
    transactions: Transactions = field(init=False)
    earlier: Earlier = field(init=False)
    polls: Polls = field(init=False)
    # (group, topic, partition) -> the last committed offset.
    committed: dict[tuple[str, str, int], int] = field(factory=dict, init=False)
    _producers: "OrderedDict[int, int]" = field(factory=OrderedDict, init=False)
    _processes: dict[int, int] = field(factory=dict, init=False)
    _last_process: int = field(default=NOBODY, init=False)
    # Requests without an answer, in the order of their times.
    _open: dict[Exchange, None] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.appends = Appends(self.lines)
        self.groups = Groups(self.lines, self.committed, self.began)
        self.transactions = Transactions(self.lines)
        self.earlier = Earlier(
            lines=self.lines, others=self.others, began=self.began, new_process=self._new_process
        )
        self.polls = Polls(
            lines=self.lines,
            values=self.values,
            earlier=self.earlier,
            compacted=self.compacted,
            keep=self.keep,
        )

    # ---- what pipes call

    def asked(self, pipe: Pipe, exchange: Exchange) -> None:
        """A request has come.

        Args:
            pipe: the connection.
            exchange: the request.
        """
        if self.stopped or exchange.header is None:
            return
        if pipe.number not in self._processes:
            self._opened(pipe, exchange.time)
        self.requests += 1
        note = exchange.note = Note()
        key, body = exchange.header.api_key, exchange.body
        if key == PRODUCE:
            self._produced(pipe, exchange, note)
            if not exchange.has_answer:
                self._request(pipe, exchange, exchange.time, "", delivered=True)
                return
        elif key == FETCH:
            self.polls.asked(pipe, exchange, note)
        elif body is not None and key in (END_TXN, TXN_COMMIT, ADD_PARTITIONS, ADD_OFFSETS):
            self.transactions.asked(self._producer, pipe, exchange, body)
        self._open[exchange] = None

    def answered(self, pipe: Pipe, exchange: Exchange, time: int) -> None:
        """A client was sent an answer, whole.

        Args:
            pipe: the connection.
            exchange: the request.
            time: nanoseconds.
        """
        note: Note | None = exchange.note
        if note is None or self.stopped or exchange.header is None:
            return
        self._open.pop(exchange, None)
        key, body, error = exchange.header.api_key, exchange.said, ""
        process = self._processes.get(pipe.number, NOBODY)
        node = self._node(pipe)
        if body is None:
            pass
        elif key == PRODUCE:
            error = self._acknowledged(pipe, note, exchange, time)
        elif key == FETCH:
            error = self.polls.fetched(pipe, exchange, note, body, time, process)
        elif key == LIST_OFFSETS:
            error = self.polls.listed(pipe, exchange, body, time, process)
        elif key in (JOIN_GROUP, SYNC_GROUP, OFFSET_COMMIT, OFFSET_FETCH, GROUP_HEARTBEAT):
            error = self.groups.answered(key, exchange, body, time, process, node, pipe.cluster.name_of)
        elif key in (DELETE_TOPICS, DELETE_GROUPS, OFFSET_DELETE):
            name_of = pipe.cluster.name_of
            error = deleted(self.lines, key, exchange, body, time, process, node, name_of)
        elif key in (END_TXN, TXN_COMMIT, ADD_PARTITIONS, ADD_OFFSETS):
            error = self.transactions.answered(self._producer, pipe, exchange, body, time, node)
        else:
            error = _error_of(body)
        self._request(pipe, exchange, time, error, delivered=True)

    def lost(self, pipe: Pipe, exchange: Exchange, time: int) -> None:
        """The client will not get an answer.

        Args:
            pipe: the connection.
            exchange: the request.
            time: nanoseconds.
        """
        note: Note | None = exchange.note
        self._open.pop(exchange, None)
        if note is None or self.stopped or exchange.header is None:
            return
        self.appends.lost([one for *_, appends in note.batches for one in appends])
        if exchange.body is not None and exchange.header.api_key == OFFSET_COMMIT:
            process = self._processes.get(pipe.number, NOBODY)
            self.groups.lost_commit(exchange, process, self._node(pipe), pipe.cluster.name_of)
        elif exchange.body is not None and exchange.header.api_key == END_TXN:
            self.transactions.lost(exchange.body)
        self._request(pipe, exchange, None, "", delivered=False)

    def closed(self, pipe: Pipe, time: int, reason: str) -> None:
        """A connection has ended.

        Args:
            pipe: the connection.
            time: nanoseconds.
            reason: in words.
        """
        if self._processes.pop(pipe.number, None) is not None and not self.stopped:
            detail = {"connection": pipe.number, "client": pipe.client, "reason": reason[:200]}
            self.lines.event(time, "connection", detail, node=self._node(pipe), cause="closed")

    def unread(self, pipe: Pipe, header: RequestHeader) -> None:
        """A request passes that nobody here can read.

        Args:
            pipe: the connection.
            header: of the request.
        """
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
        """Everything before this moment has been written, if it is `time` now: rows that are still to come
        begin or end later."""
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
                headers, trouble = readable_headers(data or b"")
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
        tapped = self.values.tap_ids(data, header) or []
        for one in made if tapped else ():
            detail = {"op_id": one.op_id, "ids": tapped[one.first : one.first + len(one.values)]}
            self.lines.event(exchange.time, "mark", detail, cause=TAPPED)
        appends = self.appends.sent(identity, made)
        note.batches.append((topic, partition, identity, appends))
        if header.is_transactional and appends:
            self.transactions.wrote(header.producer_id, header.producer_epoch, process, exchange.time)

    def _by_key(
        self, topic: str, data: bytes, header: BatchHeader, ids: list[int]
    ) -> Iterator[tuple[int, list[int], str | None]]:
        """(place, value ids, key) of what becomes one row: up to MOST_IN_ROW neighbours; in a compacted topic
        all have one key."""
        if topic not in self.compacted:
            for first in range(0, len(ids), MOST_IN_ROW):
                yield first, ids[first : first + MOST_IN_ROW], None
            return
        keys, first = self.values.keys_of(data, header), 0
        for place in range(1, len(ids) + 1):
            if place in (len(ids), first + MOST_IN_ROW) or keys[place] != keys[first]:
                yield first, ids[first:place], keys[first]
                first = place

    def _acknowledged(self, pipe: Pipe, note: Note, exchange: Exchange, time: int) -> str:
        name_of = pipe.cluster.name_of
        answers = _produce_rows(exchange.said, name_of)
        own = _produce_rows(exchange.broker_said, name_of) if exchange.by_hook else {}
        worst = ""
        for topic, partition, identity, appends in note.batches:
            answer = answers.get((topic, partition))
            if answer is None:
                self.appends.lost(appends)
                continue
            error = error_name(answer.error_code)
            worst = error if error != "NONE" else worst
            log_start = getattr(answer, "log_start_offset", -1)
            said = own.get((topic, partition))
            if error != "NONE" and said is not None and error_name(said.error_code) == "NONE":
                self.appends.lost(appends)  # it is written, whatever the client was told
            else:
                self.appends.answered(identity, appends, time, error, answer.base_offset, log_start)
            known = answer if said is None else said
            if known.base_offset >= 0:
                self.earlier.ends_at(topic, partition, known.base_offset)
        return worst

    # ---- events

    def _opened(self, pipe: Pipe, time: int) -> None:
        self._processes[pipe.number] = self._new_process()
        detail = {"connection": pipe.number, "client": pipe.client}
        self.lines.event(time, "connection", detail, node=self._node(pipe), cause="opened")

    def _request(
        self, pipe: Pipe, exchange: Exchange, time: int | None, error: str, *, delivered: bool
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
            detail["says"] = "the client did not get an answer"
        elif exchange.by_hook:
            detail["by"] = "fault" if exchange.broker_said is None else "fault after the broker"
        self.lines.event(
            exchange.time, "request", detail, node=self._node(pipe), cause=api_name(header.api_key)
        )

    # ---- who

    def _node(self, pipe: Pipe) -> int:
        return pipe.cluster.node_at(*pipe.broker)

    def _new_process(self) -> int:
        self._last_process += 1
        return self._last_process

    def _producer(self, producer_id: int) -> int:
        """The process of a producer."""
        known = self._producers.get(producer_id)
        if known is None:
            known = self._producers[producer_id] = self._new_process()
            if len(self._producers) > MOST_KNOWN:
                self._producers.popitem(last=False)
        return known


def _produce_rows(body: Any, name_of: Callable[[Any], str]) -> dict[tuple[str, int], Any]:
    """What an answer to Produce says of each partition."""
    return {
        (name_of(topic), one.index): one
        for topic in (() if body is None else body.responses)
        for one in topic.partition_responses
    }


def _error_of(body: Any) -> str:
    code = getattr(body, "error_code", None)
    return "" if code is None else error_name(code)
