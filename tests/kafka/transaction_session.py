"""A transactional producer and a reader by hand, over Kafka's protocol, and what they did as a history.

Owns the requests, so that one of them can be held back and arrive late. Must not know what is judged.
"""

import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from attrs import define, evolve, field

from fencepost.impl.log.batch.header import read_headers
from fencepost.impl.log.batch.record_batch import Record, encode_batch, read_records
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.operations import Record as Row
from fencepost.wire.codec import read_response, write_request
from fencepost.wire.plain import request

TOPIC, PARTITION, ID = "t", 0, "late"
METADATA, FIND, INIT, ADD, PRODUCE, END, FETCH = 3, 10, 22, 24, 0, 26, 1
VERSIONS = {METADATA: 4, FIND: 3, INIT: 4, ADD: 3, PRODUCE: 9, END: 3, FETCH: 11}
SECOND_VERSION = {PRODUCE: 12, END: 5}
"""Of the requests that KIP-890 changed: brokers take these for transaction.version 2."""
PATIENCE_S = 60.0
"""Longest wait for an answer, and until a new broker has its topics."""
AGAIN_S = 0.2
RETRIED = frozenset(
    {
        *("coordinator_not_available", "not_coordinator", "coordinator_load_in_progress"),
        *("concurrent_transactions", "leader_not_available", "unknown_topic_or_partition"),
    }
)
"""Answers after which a client tries again."""
ELEMENTS = 100_000
"""Bound on the elements of an answer."""


@define
class Connection:
    """One connection to a broker. Requests are answered one by one."""

    port: int
    versions: dict[int, int]
    number: int = 0
    line: socket.socket | None = None

    def make(self, key: int, /, **values: Any) -> Any:
        """A request, without the fields that its version does not have."""
        return request(key, self.versions[key], values)

    def ask(self, key: int, body: Any) -> Any:
        """Send a request, and wait for its answer."""
        self.number += 1
        if self.line is None:
            self.line = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        self.line.sendall(write_request(self.number, "late-end", body))
        size = int.from_bytes(self._exactly(4), "big")
        return read_response(key, self.versions[key], self._exactly(size), ELEMENTS)[1]

    def until_done(self, key: int, body: Any, error: Callable[[Any], str]) -> Any:
        """As `ask`, again while the answer asks for it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask(key, body)
            if error(answer) not in RETRIED or time.monotonic() > deadline:
                return answer
            time.sleep(AGAIN_S)

    def _exactly(self, count: int) -> bytes:
        assert self.line is not None
        data = b""
        while len(data) < count:
            part = self.line.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data

    def close(self) -> None:
        """End it."""
        if self.line is not None:
            self.line.close()


def _code(answer: Any) -> str:
    return str(answer.error_code.name)


@define
class Session:
    """A producer, a reader, and what they did."""

    port: int
    second_version: bool
    rows: list[Operation] = field(factory=list)
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0
    position: int = 0
    said: list[str] = field(factory=list)
    client: Connection = field(init=False)
    slow: Connection = field(init=False)

    def __attrs_post_init__(self) -> None:
        versions = VERSIONS | (SECOND_VERSION if self.second_version else {})
        self.client, self.slow = Connection(self.port, versions), Connection(self.port, versions)

    def begin(self) -> None:
        """The topic, and a producer id and epoch."""
        make = self.client.make
        topic = {"name": TOPIC}
        asked = make(METADATA, topics=(topic,), allow_auto_topic_creation=True)
        self.client.until_done(METADATA, asked, lambda answer: _code(answer.topics[0]))
        self.client.until_done(FIND, make(FIND, key=ID, key_type=1), _code)
        asked = make(
            INIT,
            transactional_id=ID,
            transaction_timeout=timedelta(seconds=60),
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self.client.until_done(INIT, asked, _code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def row(self, function: Function, began: int, outcome: Outcome, **columns: Any) -> None:
        """Something that was done, from `began` until now."""
        self.rows.append(
            Operation(
                op_id=len(self.rows),
                function=function,
                invoke_time=began,
                completion_time=time.monotonic_ns(),
                outcome=outcome,
                **columns,
            )
        )

    def write(self, value: int) -> Operation:
        """A record in the transaction that is open, or that begins with it."""
        began, make = time.monotonic_ns(), self.client.make
        if not self.second_version:
            topic = {"name": TOPIC, "partitions": (PARTITION,)}
            added = make(
                ADD,
                v3_and_below_transactional_id=ID,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=(topic,),
            )
            self.client.until_done(
                ADD,
                added,
                lambda answer: (
                    answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code.name
                ),
            )
        record = Record(
            offset=0, timestamp_ms=time.time_ns() // 1_000_000, key=None, value=b"%d" % value, headers=()
        )
        batch = encode_batch(
            (record,),
            base_offset=0,
            leader_epoch=-1,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        data = {"index": PARTITION, "records": batch}
        topic = {"name": TOPIC, "partition_data": (data,)}
        asked = make(
            PRODUCE, transactional_id=ID, acks=-1, timeout=timedelta(seconds=30), topic_data=(topic,)
        )

        def error(answer: Any) -> str:
            return str(answer.responses[0].partition_responses[0].error_code.name)

        answer = self.client.until_done(PRODUCE, asked, error)
        self.said.append(f"produce {value}: {error(answer)}")
        self.sequence += 1
        offset = answer.responses[0].partition_responses[0].base_offset
        return Operation(
            op_id=-1,
            process=0,
            function=Function.APPEND,
            invoke_time=began,
            completion_time=time.monotonic_ns(),
            outcome=Outcome.OK,
            topic=TOPIC,
            partition=PARTITION,
            acks=-1,
            offset=offset,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            records=(Row(topic=TOPIC, partition=PARTITION, offset=offset, value=value),),
        )

    def end_request(self, *, commit: bool) -> Any:
        """EndTxn of the transaction that is open."""
        return self.client.make(
            END,
            transactional_id=ID,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def end(self, request: Any) -> None:
        """Send it and be answered; the next transaction has what the answer says."""
        answer = self.client.until_done(END, request, _code)
        self.said.append(f"EndTxn(commit={request.committed}): {_code(answer)}")
        if self.second_version and answer.producer_epoch >= 0:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def close_transaction(self, began: int, append: Operation, outcome: Outcome) -> None:
        """The rows of a transaction whose end the producer asked for."""
        own = {"producer_id": append.producer_id, "producer_epoch": append.producer_epoch}
        self.row(Function.TXN, began, outcome, process=0, key=ID, **own)
        ended = self.rows[-1].completion_time
        self.rows.append(evolve(append, op_id=len(self.rows), outcome=outcome, completion_time=ended))

    def poll(self) -> None:
        """Read committed records from the beginning."""
        began, make = time.monotonic_ns(), self.client.make
        row = {
            "partition": PARTITION,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
        }
        topic = {"topic": TOPIC, "partitions": (row,)}
        asked = make(
            FETCH,
            replica_id=-1,
            max_wait=timedelta(milliseconds=500),
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1,
            session_id=0,
            session_epoch=-1,
            topics=(topic,),
            forgotten_topics_data=(),
            rack_id="",
        )
        answer = self.client.ask(FETCH, asked).responses[0].partitions[0]
        records = tuple(_committed(answer.records or b"", answer.aborted_transactions or ()))
        self.said.append(f"committed records: {[each.value for each in records]}")
        self.row(
            Function.POLL,
            began,
            Outcome.OK,
            process=1,
            topic=TOPIC,
            partition=PARTITION,
            offset=0,
            isolation="read_committed",
            end_offset=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset,
            records=records,
        )

    def close(self) -> None:
        """End both connections."""
        self.client.close()
        self.slow.close()


def _committed(data: bytes, aborted: Any) -> Iterator[Row]:
    """The records of a fetch that are not of aborted transactions."""
    waiting = {(each.producer_id, each.first_offset) for each in aborted}
    gone: set[int] = set()
    for header in read_headers(data):
        gone |= {producer for producer, first in waiting if first <= header.last_offset}
        if header.is_control:
            gone.discard(header.producer_id)
            waiting = {
                each for each in waiting if each[0] != header.producer_id or each[1] > header.base_offset
            }
        elif header.producer_id not in gone:
            for record in read_records(data, header):
                yield Row(
                    topic=TOPIC, partition=PARTITION, offset=record.offset, value=int(record.value or b"-1")
                )


def history(session: Session, times: int) -> tuple[Operation, ...]:
    """Do it so often; returns what was done."""
    session.begin()
    for nth in range(times):
        began = time.monotonic_ns()
        append = session.write(2 * nth + 1)
        held = session.end_request(commit=True)  # on its way for long
        session.end(session.end_request(commit=True))
        session.close_transaction(began, append, Outcome.OK)
        began = time.monotonic_ns()
        append = session.write(2 * nth + 2)
        answer = session.slow.until_done(END, held, _code)  # now it arrives
        session.said.append(f"the late EndTxn: {_code(answer)}")
        session.poll()
        session.end(session.end_request(commit=False))
        session.close_transaction(began, append, Outcome.FAIL)
        session.poll()
    rows = sorted(session.rows, key=lambda row: (row.invoke_time, row.function is not Function.TXN))
    return tuple(evolve(row, op_id=number) for number, row in enumerate(rows))
