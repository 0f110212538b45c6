"""What clients did, as it is seen at the brokers' sockets: appends, reads and ends as operations of a trace.

Owns the mapping from the core's requests and answers to rows. Must not know sockets or Kafka's protocol, nor
what is made of a row. Everything here runs in the loop's thread.

What the wire cannot see is not claimed: whether an application has processed a record, or what it gave up
before it was sent. The rules:

- A connection is a process. Its requests overlap, so that the trace says `concurrent_processes`.
- A record is an append from the request that carries it first to the answer that reaches the socket. A client
  that sends a record again makes another attempt of the same append: of an idempotent producer the same
  producer id, epoch and sequence, or an equal record of its next epoch; of any other an equal record to the
  same partition, on a connection that does not wait for its answer; the last two as long as no attempt was
  acknowledged. An attempt without an answer leaves the append unknown, unless a later one is acknowledged. A
  producer that tries again so after an unknown attempt may write twice: the claims say so.
- A batch that a broker refuses for what it is (outcomes.py: BATCH_REFUSED) leaves one line for each
  connection, partition and reason, an append without records that failed; `attempts` says how often.
- Any other equal record is another append, and the trace says that its values are not unique.
- Records of one batch with the same outcome, at the same time, are one row.
- A fetch that returns records is a poll; one that returns nothing is left out. A look at the end of a
  partition is a list_offsets.
- A commit is an event that people see: no member's part in its group is known here.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Any

import msgspec
from attrs import define, evolve, field

from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.log.batch.header import NO_PRODUCER_ID, BatchHeader, CorruptBatchError, read_headers
from fencepost.impl.log.validation import RefusedBatchError, checked_header, checked_records
from fencepost.impl.log.values import FOREIGN, contents_of, runs_in_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.group_api import OffsetCommitRequest, OffsetCommitResponse
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.kafka.recording.sent_records import Sent, Taken, rows_of
from fencepost.systems.gateway import Tap
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.contents import (
    LONGEST_TEXT,
    Texts,
    connection_opened,
    record_texts,
    text_of,
)
from fencepost.traces.kafka_names.outcomes import BATCH_REFUSED, NO_ERROR, ErrorCode, outcome_of_attempt
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome, make_operation, make_record

RECORDED = (kafka.ProduceRequest, kafka.FetchRequest, kafka.ListOffsetsRequest, OffsetCommitRequest)
FIRST_PROCESS = 1_000
"""Processes from here on are connections; the run's own are below."""
FIRST_OPERATION = 2_000_000
"""Op ids from here on are clients'; the run's own are below (run/simulated/run.py)."""
MOST_LATEST = 10_000
"""Connections of which the last answer is kept: as many as a broker accepts (wire/limits.py)."""
MOST_NAMES = MOST_LATEST
"""Connections of which the name is kept."""
MOST_REFUSALS = MOST_LATEST
"""Lines about refused batches, one for each connection, partition and reason."""
MOST_TEXTS = 10_000
"""Records of which the text is kept: with two texts of 80 bytes each they stay below 2 MB. The texts of
those that a page shows are among them, unless a test sends more."""
SLICE = 4_096
"""Records of a request that are recorded before others get their chance: 20 ms of work."""
SEQUENCES = 1 << 31
"""After the largest sequence 0 comes again (KIP-98)."""


@define(eq=False)
class _Asked:
    """A request without its answer."""

    broker: int
    time: int
    request: Any
    taken: Taken = field(factory=Taken)
    """What a produce brought."""


@define(eq=False)
class ClientRecord(Tap):
    """What connections ask and hear."""

    now: Callable[[], int]
    """The cluster's time."""
    most: int
    """Bound of records sent and operations read, together; beyond it nothing more is recorded."""
    closed: Callable[[], bool]
    """Whether nothing is recorded any more."""
    on_full: Callable[[], None]
    """Called when the bound is met."""
    sent: list[Sent] = field(factory=list)
    """In the order of their first requests."""
    others: list[Operation] = field(factory=list)
    """Reads and ends, completed."""
    repeated: bool = False
    """Whether a producer without idempotence tried again after an attempt of unknown outcome."""
    commits: list[Event] = field(factory=list)
    """Answered commits, by partition."""
    alike: int = 0
    """Records that are the same as another in all that can be seen."""
    requests: int = 0
    """Produce requests so far."""
    _names: dict[int, tuple[int, str]] = field(factory=dict)
    """What connections call themselves, and since when, by connection."""
    _texts: dict[int, Texts] = field(factory=dict)
    """What records of foreign producers say, by value id."""
    _asked: dict[tuple[int, int], _Asked] = field(factory=dict)
    """By connection and correlation id."""
    _last: dict[tuple[Any, ...], Sent] = field(factory=dict)
    """The last record of each identity (partition, producer id, epoch, sequence), and of each content
    (partition, key, value id)."""
    _refusals: dict[tuple[TopicPartition, int, ErrorCode], Operation] = field(factory=dict)
    """Batches that brokers refused for what they are, by partition, process and reason: `attempts` says how
    many."""
    _numbers: Iterator[int] = field(factory=count)
    """Of records, in the order of first requests."""
    _latest: dict[int, list[tuple[TopicPartition, "list[Sent] | Operation"]]] = field(factory=dict)
    """What the last answer to each connection says, by connection: until the next request of it begins, or
    a fault takes it back."""

    @property
    def size(self) -> int:
        """What counts for the bound."""
        return len(self.sent) + len(self.others) + len(self.commits)

    @property
    def _closed(self) -> bool:
        if self.size >= self.most and not self.closed():
            self.on_full()
        return self.closed()

    # ---- what is seen

    def asking(self, broker: int, source: int, request: Any) -> Iterator[None]:
        """A connection asks a broker."""
        kind = type(request)
        if self._closed or kind not in RECORDED:
            return
        asked = _Asked(broker, self.now(), request)
        if kind is kafka.ProduceRequest:
            yield from self._producing(broker, source, request, asked.taken)
        if kind is not kafka.ProduceRequest or request.acks != ACKS_NONE:
            self._asked[source, request.correlation_id] = asked

    def answered(self, source: int, answer: Any, *, delivered: bool) -> None:
        """An answer reaches the socket of a connection, or (not delivered) finds that the connection has
        gone."""
        asked = self._asked.pop((source, answer.correlation_id), None)
        if asked is None:
            return
        if not delivered:
            for sent in asked.taken.sent:
                sent.in_doubt = True
        elif isinstance(answer, kafka.ProduceResponse):
            self._acknowledged(source, asked, answer)
        elif self._closed:
            return
        elif isinstance(answer, kafka.FetchResponse):
            for wanted, fetched in zip(asked.request.partitions, answer.partitions, strict=True):
                self._fetched(source, asked, wanted, fetched)
        elif isinstance(answer, kafka.ListOffsetsResponse) and asked.request.timestamp == kafka.LATEST:
            self._listed(source, asked, answer)
        elif isinstance(answer, OffsetCommitResponse):
            self.commits += self._committed(source, asked, answer)

    def lost(self, broker: int) -> None:
        """The broker's process is gone, and every request that it had."""
        for key, asked in list(self._asked.items()):
            if asked.broker == broker:
                del self._asked[key]
                for sent in asked.taken.sent:
                    sent.in_doubt = True

    # ---- what a fault of requests changes between a broker and its client

    def begins(self, source: int, client: str = "") -> None:
        """A request of this connection begins: what its client heard before stays heard.

        Args:
            source: the connection.
            client: what its client calls itself.
        """
        if client and source not in self._names and len(self._names) < MOST_NAMES and not self._closed:
            self._names[source] = (self.now(), client[:LONGEST_TEXT])
        self._latest.pop(source, None)

    def kept_back(self, broker: int, source: int, request: kafka.ProduceRequest) -> None:
        """The client sent this, and a fault keeps it from the broker: it has no effect."""
        if self._closed:
            return
        taken = Taken()
        for _ in self._producing(broker, source, request, taken):
            pass
        for sent in taken.sent:
            if not sent.acknowledged:
                sent.completion_time = self.now()

    def unheard(self, source: int, keys: Collection[TopicPartition] | None = None) -> None:
        """The client did not hear what the last answer says: its appends are in doubt, and it has read
        nothing.

        Args:
            source: the connection.
            keys: of which partitions; None: of all in the answer.
        """
        for key, heard in self._latest.pop(source, []):
            if keys is not None and key not in keys:
                continue
            if isinstance(heard, Operation):
                self._take_back(heard)
                continue
            for sent in heard:
                sent.acknowledged, sent.in_doubt, sent.completion_time = False, True, None
                sent.offset = sent.leader_epoch = -1

    def _take_back(self, read: Operation) -> None:
        """It is among the last ones, for its connection waited for it."""
        for place in range(len(self.others) - 1, -1, -1):
            if self.others[place] is read:
                del self.others[place]
                return

    def _hears(self, source: int, key: TopicPartition, heard: "list[Sent] | Operation") -> None:
        while len(self._latest) > MOST_LATEST:
            del self._latest[next(iter(self._latest))]
        self._latest.setdefault(source, []).append((key, heard))

    # ---- appends

    def _producing(
        self, broker: int, source: int, request: kafka.ProduceRequest, taken: Taken
    ) -> Iterator[None]:
        """Add the records of a request to the record, and to `taken`; pauses after every SLICE of them. The
        bound counts them from the end on, when the broker is about to answer: a refused batch never fills
        the record."""
        try:
            header = checked_header(request.records)
            checked_records(request.records, header)
            contents = contents_of(request.records, header)  # which the broker meets next, and followers
        except (CorruptBatchError, RefusedBatchError, ValueError):
            return  # the broker refuses it
        self.requests += 1
        number, now = self.requests, self.now()
        for place, value in enumerate(contents.values):
            if place and place % SLICE == 0:
                yield
            key = contents.key(place)
            self._learn_text(value, key, contents.starts.get(place), taken)
            content: tuple[Any, ...] = (request.partition, key, value)
            identity = content
            if header.producer_id != NO_PRODUCER_ID:
                sequence = (header.base_sequence + place) % SEQUENCES
                identity = (request.partition, header.producer_id, header.producer_epoch, sequence)
            sent = self._last.get(identity) if identity is not content else None
            if sent is None:
                sent = self._equal(self._last.get(content), header, _process(source), number, taken)
            else:
                sent = self._again(sent, may_write_twice=False)
            if sent is None:
                sent = Sent(
                    topic=request.partition.topic,
                    partition=request.partition.partition,
                    value=value,
                    key=None if key is None else key.decode("utf-8", "backslashreplace"),
                    process=_process(source),
                    acks=request.acks,
                    invoke_time=now,
                    request=number,
                    place=place,
                    number=next(self._numbers),
                    node=broker,
                    producer=header.producer_id,
                    tombstone=place in contents.tombstones,
                )
                if request.acks == ACKS_NONE:
                    sent.acknowledged, sent.completion_time = True, now
                taken.fresh.append(sent)
                taken.before += [(name, self._last.get(name)) for name in {identity, content}]
            elif not sent.acknowledged:
                sent.request, sent.place, sent.node = number, place, broker
            sent.epoch = header.producer_epoch
            self._last[identity] = self._last[content] = sent
            taken.sent.append(sent)
        self.sent += taken.fresh

    def _learn_text(self, value: int, key: bytes | None, start: bytes | None, taken: Taken) -> None:
        if value >= FOREIGN and value not in self._texts and len(self._texts) < MOST_TEXTS:
            self._texts[value] = text_of(key), text_of(start)
            taken.texts.append(value)

    def _refused(self, source: int, asked: _Asked, error: ErrorCode) -> None:
        """A broker refused a batch for what it is: what the batch alone brought leaves the record, and a line
        says that it was refused."""
        self._take_out(asked.taken)
        key, process = asked.request.partition, _process(source)
        name = (key, process, error)
        line = self._refusals.get(name)
        if line is not None:
            self._refusals[name] = evolve(line, attempts=line.attempts + 1, completion_time=self.now())
        elif len(self._refusals) < MOST_REFUSALS and not self._closed:
            self._refusals[name] = make_operation(
                op_id=0,
                process=process,
                function=Function.APPEND,
                invoke_time=asked.time,
                completion_time=self.now(),
                outcome=Outcome.FAIL,
                topic=key.topic,
                partition=key.partition,
                error=error.value,
                acks=asked.request.acks,
                node=asked.broker,
            )

    def _take_out(self, taken: Taken) -> None:
        self.alike -= taken.alike
        for value in taken.texts:
            del self._texts[value]
        mine = set(map(id, taken.fresh))
        for name, before in reversed(taken.before):
            if id(self._last.get(name)) not in mine:
                continue
            if before is None:
                del self._last[name]
            else:
                self._last[name] = before
        if taken.fresh:  # they were added together, and not long ago
            end = len(self.sent)
            while self.sent[end - 1] is not taken.fresh[-1]:
                end -= 1
            del self.sent[end - len(taken.fresh) : end]

    def _equal(
        self, before: Sent | None, header: BatchHeader, process: int, request: int, taken: Taken
    ) -> Sent | None:
        """The earlier record that one of equal content carries again, though no sequence says so; None if it
        is another. before: the last one of this content; request, taken: which brings the new one."""
        if before is None:
            return None
        if before.outcome is Outcome.FAIL and before.producer != header.producer_id:
            # it was never written, and now another producer sends it: that is an append of its own
            before.process, before.producer = process, header.producer_id
            before.invoke_time, before.number, before.attempts = self.now(), next(self._numbers), 0
            return self._again(before, may_write_twice=False)
        if header.producer_id == NO_PRODUCER_ID:
            again = before.producer == NO_PRODUCER_ID and not (before.awaited and before.process == process)
        else:  # a producer that raises its epoch counts from 0 again (KIP-360)
            again = before.producer == header.producer_id and before.epoch < header.producer_epoch
        if before.acknowledged or before.request == request or not again:
            self.alike += 1
            taken.alike += 1
            return None
        return self._again(before, may_write_twice=True)

    def _again(self, before: Sent, *, may_write_twice: bool) -> Sent:
        """A record that is sent again. may_write_twice: if an attempt before had no answer."""
        if before.awaited:
            before.in_doubt = True  # nobody heard what became of the attempt before
        self.repeated = self.repeated or (may_write_twice and before.in_doubt)
        before.attempts += 1
        if not before.acknowledged:
            before.completion_time = None
        return before

    def _acknowledged(self, source: int, asked: _Asked, answer: kafka.ProduceResponse) -> None:
        outcome = outcome_of_attempt(answer.error, appended=answer.base_offset >= 0)
        if outcome is Outcome.FAIL and answer.error in BATCH_REFUSED and asked.taken.alone():
            self._refused(source, asked, answer.error)
            return
        now, heard = self.now(), []
        for place, sent in enumerate(asked.taken.sent):
            if sent.acknowledged:
                continue
            sent.error = answer.error
            sent.completion_time = now
            if outcome is Outcome.OK:
                sent.acknowledged = True
                sent.offset, sent.leader_epoch = answer.base_offset + place, answer.leader_epoch
                heard.append(sent)
            elif outcome is Outcome.UNKNOWN:
                sent.in_doubt = True
        if heard:
            self._hears(source, asked.request.partition, heard)

    # ---- reads

    def _fetched(
        self, source: int, asked: _Asked, wanted: kafka.FetchPartition, fetched: kafka.FetchedPartition
    ) -> None:
        if fetched.error is not NO_ERROR or not fetched.records:
            return
        key = wanted.partition
        try:
            records = tuple(
                make_record(
                    topic=key.topic,
                    partition=key.partition,
                    offset=offset,
                    value=value,
                    leader_epoch=header.leader_epoch,
                )
                for header in read_headers(fetched.records)
                if not header.is_control
                for base_offset, values in runs_in_batch(fetched.records, header)
                for offset, value in enumerate(values, base_offset)
                if offset >= wanted.offset
            )
        except CorruptBatchError:
            return  # the client sees it, too, and asks again
        self._read(
            source,
            asked,
            key,
            function=Function.POLL,
            offset=wanted.offset,
            end_offset=fetched.high_watermark,
            log_start_offset=fetched.log_start_offset,
            leader_epoch=fetched.leader_epoch,
            records=records,
        )

    def _read(self, source: int, asked: _Asked, key: TopicPartition, **answered: Any) -> None:
        """A read of a partition that was answered. answered: what the answer says, by the row's fields."""
        read = make_operation(
            op_id=0,
            process=_process(source),
            invoke_time=asked.time,
            completion_time=self.now(),
            outcome=Outcome.OK,
            topic=key.topic,
            partition=key.partition,
            isolation="read_uncommitted",
            node=asked.broker,
            **answered,
        )
        self.others.append(read)
        self._hears(source, key, read)

    def _listed(self, source: int, asked: _Asked, answer: kafka.ListOffsetsResponse) -> None:
        if answer.error is not NO_ERROR:
            return
        self._read(
            source,
            asked,
            asked.request.partition,
            function=Function.LIST_OFFSETS,
            offset=answer.offset,
            end_offset=answer.offset,
            leader_epoch=answer.leader_epoch,
        )

    def _committed(self, source: int, asked: _Asked, answer: OffsetCommitResponse) -> Iterator[Event]:
        said = {"process": _process(source), "group": asked.request.group_id}
        if answer.error is not NO_ERROR:
            said["error"] = answer.error.name
        for spot in asked.request.offsets:
            yield Event(
                time=self.now(),
                name=Name.REQUEST,
                node=asked.broker,
                topic=spot.partition.topic,
                partition=spot.partition.partition,
                offset=spot.offset,
                cause="OffsetCommit",
                detail=msgspec.json.encode(said).decode(),
            )

    # ---- rows

    def spoken(self, end: int) -> list[Event]:
        """The events that say what clients call themselves, what they committed and what their records say.
        end: the time of the last event of the run."""
        named = [
            connection_opened(time, connection=source, process=_process(source), client=client)
            for source, (time, client) in self._names.items()
        ]
        return [*named, *self.commits, *record_texts(end, self._texts)]

    def operations(self) -> list[Operation]:
        """The rows so far, with op ids in the order of their invocations; appends of one moment in the order
        of their first requests."""
        appends = [row for _, row in sorted(rows_of(self.sent), key=lambda numbered: numbered[0])]
        rows = sorted([*appends, *self.others, *self._refusals.values()], key=lambda row: row.invoke_time)
        return [evolve(row, op_id=FIRST_OPERATION + number) for number, row in enumerate(rows)]


def _process(source: int) -> int:
    return FIRST_PROCESS + source - FIRST_WIRE_CLIENT
