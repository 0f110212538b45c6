"""One socket to a broker, of which every field of every answer is seen: what a fault does is looked at, not
inferred."""

import socket
from datetime import timedelta
from types import SimpleNamespace

from fencepost.impl.log.batch.header import read_headers
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.wire.codec import read_response, write_request
from fencepost.wire.plain import request

PATIENCE_S = 600
PRODUCE, FETCH, LIST_OFFSETS, METADATA, HEARTBEAT, LEAVE = 7, 11, 2, 8, 3, 3


def batch(value):
    """A batch of one record."""
    record = Record(offset=0, timestamp_ms=1_000, key=None, value=value, headers=())
    return encode_batch((record,), base_offset=0, leader_epoch=-1)


class Raw:
    """To the leader of a partition."""

    def __init__(self, kafka, topic, partition):
        self.kafka, self.topic, self.partition = kafka, topic, partition
        self.socket, self.rest, self.closed, self.number = None, b"", True, 0
        self.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def connect(self):
        """To whoever leads now."""
        broker = self.kafka.leader(self.topic, self.partition)
        host, port = self.kafka.bootstrap_servers.split(",")[broker - 1].split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.rest, self.closed = b"", False

    def again(self):
        """After the connection has ended."""
        self.socket.close()
        self.connect()
        return self

    def ask(self, key, version, **values):
        """The answer; None if the connection ends without a whole one."""
        self.number += 1
        self.socket.sendall(write_request(self.number, "raw", request(key, version, values)))
        frame = self.read()
        return None if frame is None else read_response(key, version, frame, 10_000)[1]

    def read(self):
        """A frame, or None at the end."""
        while True:
            if len(self.rest) >= 4 and len(self.rest) >= 4 + int.from_bytes(self.rest[:4], "big"):
                size = int.from_bytes(self.rest[:4], "big")
                frame, self.rest = self.rest[4 : 4 + size], self.rest[4 + size :]
                return frame
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                self.closed = True
                return None
            self.rest += data

    def _produced(self, numbers, value):
        rows = tuple({"index": number, "records": batch(value)} for number in numbers)
        topic = {"name": self.topic, "partition_data": rows}
        answer = self.ask(0, PRODUCE, acks=-1, timeout=5_000, topic_data=(topic,))
        if answer is None:
            return None
        throttle = answer.throttle_time // timedelta(milliseconds=1)
        return {
            row.index: SimpleNamespace(
                error=row.error_code.name, offset=row.base_offset, throttle_ms=throttle
            )
            for row in answer.responses[0].partition_responses
        }

    def produce(self, value):
        """One record."""
        rows = self._produced([self.partition], value)
        return None if rows is None else rows[self.partition]

    def produce_both(self, value):
        """One record to each of two partitions, in one request."""
        return self._produced([0, 1], value)

    def end(self, partition=None):
        """The end of a partition."""
        number = self.partition if partition is None else partition
        row = {"partition_index": number, "timestamp": -1}
        topic = {"name": self.topic, "partitions": (row,)}
        answer = self.ask(2, LIST_OFFSETS, replica_id=-1, topics=(topic,)).topics[0].partitions[0]
        assert answer.error_code.name == "none", answer
        return answer.offset

    def fetch(self, offset):
        """What is there from an offset on."""
        row = {"partition": self.partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        topic = {"topic": self.topic, "partitions": (row,)}
        answer = self.ask(1, FETCH, replica_id=-1, max_wait=100, min_bytes=1, topics=(topic,))
        records = answer.responses[0].partitions[0].records or b""
        headers = []
        for header in _whole(records):
            headers.append(header)
        return SimpleNamespace(records=records, headers=headers)

    def leader(self):
        """As Metadata names it; its error if it has one."""
        topic = {"name": self.topic}
        answer = self.ask(3, METADATA, topics=(topic,), allow_auto_topic_creation=False).topics[0]
        if answer.error_code.name != "none":
            return answer.error_code.name
        return next(row.leader_id for row in answer.partitions if row.partition_index == self.partition)

    def heartbeat(self, group, member):
        """Its error."""
        answer = self.ask(12, HEARTBEAT, group_id=group, generation_id=1, member_id=member)
        return answer.error_code.name

    def leave(self, group, member):
        """Its error."""
        return self.ask(13, 1, group_id=group, member_id=member).error_code.name


def _whole(records):
    from fencepost.impl.log.batch.header import CorruptBatchError

    try:
        yield from read_headers(records)
    except CorruptBatchError:
        return
