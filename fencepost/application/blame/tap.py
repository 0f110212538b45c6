"""A tap for Python: wrap the client's object, and continue to use it.

    from fencepost.application.blame.tap import Tap

    tap = Tap("out/app.tap")      # Tap("out/app.tap", key="out/live/key") compares contents, too
    producer = tap.producer(confluent_kafka.Producer({...}))
    consumer = tap.consumer(confluent_kafka.Consumer({...}))

Owns which calls of confluent-kafka, kafka-python and aiokafka are a send, their results, and what they
delivered. Must not know the wire. The wrapped object behaves as the client does: arguments, results,
callbacks and errors pass unchanged, except for a header with the id of the send (`ids=False` leaves it out;
then failed sends cannot be matched).
"""

import itertools
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field

from fencepost.impl.log.batch.varint import encode_varint
from fencepost.proxy.record.values import TAP_HEADER, Values

_encode = msgspec.json.Encoder().encode


@define(eq=False)
class Tap:
    """A file of lines."""

    path: str | Path
    # The key file of the record's folder, to compare contents; None: they are not compared.
    key: str | Path | None = None
    # Whether sends carry a header with their id.
    ids: bool = True
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _descriptor: int = field(default=-1, init=False)
    _actors: "itertools.count[int]" = field(factory=lambda: itertools.count(1), init=False)
    _values: Values | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if self.key is not None:
            self._values = Values(key=Path(self.key).read_bytes())

    def producer(self, client: Any, name: str = "") -> Any:
        """The client, tapped: confluent_kafka.Producer, kafka.KafkaProducer or aiokafka.AIOKafkaProducer."""
        kinds: dict[str, Any] = {"Producer": ConfluentProducer, "SerializingProducer": ConfluentProducer}
        kinds |= {"KafkaProducer": KafkaPythonProducer, "AIOKafkaProducer": AiokafkaProducer}
        return _wrapped(self, client, kinds, name or f"p{os.getpid()}-{next(self._actors)}")

    def consumer(self, client: Any, name: str = "") -> Any:
        """The client, tapped: confluent_kafka.Consumer, kafka.KafkaConsumer or aiokafka.AIOKafkaConsumer."""
        kinds: dict[str, Any] = {"Consumer": ConfluentConsumer, "KafkaConsumer": KafkaPythonConsumer}
        kinds |= {"AIOKafkaConsumer": AiokafkaConsumer}
        return _wrapped(self, client, kinds, name or f"c{os.getpid()}-{next(self._actors)}")

    def write(self, kind: str, actor: str, **values: Any) -> None:
        """Write a line; the operating system has it when this returns. kind: its type; actor: the producer or
        consumer; values: its other fields."""
        row = {"type": kind, "time": time.time_ns(), "actor": actor}
        row |= {name: value for name, value in values.items() if value is not None}
        with self._lock:
            os.write(self._descriptor, _encode(row) + b"\n")

    def content(self, key: Any, value: Any, headers: Iterable[tuple[str, Any]] | None) -> int | None:
        """The id of a record's contents: key, value and headers. None if it cannot be computed, or is not
        compared."""
        parts = (key, value, *(each for _, each in headers or ()))
        if self._values is None or not all(part is None or isinstance(part, bytes | str) for part in parts):
            return None
        rows = list(headers or ())
        encoded = encode_varint(len(rows)) + b"".join(_part(name) + _part(each) for name, each in rows)
        return self._values.content(_bytes(key), _bytes(value), encoded)

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _part(value: Any) -> bytes:
    data = _bytes(value)
    return b"\x01" if data is None else encode_varint(len(data)) + data


def _wrapped(tap: Tap, client: Any, kinds: dict[str, Any], actor: str) -> Any:
    for kind in type(client).__mro__:
        if kind.__name__ in kinds:
            return kinds[kind.__name__](tap, client, actor)
    raise TypeError(f"expected one of {', '.join(sorted(kinds))}, saw {type(client).__name__}")


@define(eq=False)
class _Wrapper:
    """Everything that is not named goes to the client."""

    tap: Tap
    client: Any
    actor: str
    _sends: "itertools.count[int]" = field(factory=itertools.count)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "client"), name)

    def _send(
        self, topic: str, partition: int | None, key: Any, value: Any, headers: Any
    ) -> tuple[str, list[tuple[str, Any]] | None]:
        """Write that a record is about to be sent; its id and its headers."""
        number = f"{self.actor}-{next(self._sends)}"
        given = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
        where = None if partition is None or partition < 0 else partition
        if self.tap.ids:
            given.append((TAP_HEADER, number.encode()))
        content = self.tap.content(key, value, given)
        self.tap.write("sent", self.actor, id=number, topic=topic, partition=where, content=content)
        return number, given or None

    def _acknowledged(self, number: str, topic: str, partition: int, offset: int | None) -> None:
        known = offset if offset is not None and offset >= 0 else None
        self.tap.write("acknowledged", self.actor, id=number, topic=topic, partition=partition, offset=known)

    def _failed(self, number: str, error: Any) -> None:
        self.tap.write("failed", self.actor, id=number, error=str(error)[:200])

    def _delivered(self, topic: str, partition: int, offset: int, content: int | None) -> None:
        self.tap.write(
            "delivered", self.actor, topic=topic, partition=partition, offset=offset, content=content
        )

    def _moved(self) -> None:
        self.tap.write("moved", self.actor)

    def _closed(self) -> None:
        self.tap.write("closed", self.actor)


# ---- confluent-kafka


class ConfluentProducer(_Wrapper):
    """confluent_kafka.Producer."""

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Call the client's `produce`, and record the send and its result.

        topic, value, key, partition, headers: recorded, then passed on. callback, on_delivery: called after
        the result is recorded. Raises what the client raises."""
        number, given = self._send(topic, partition, key, value, headers)
        deliver = on_delivery if on_delivery is not None else callback

        def heard(error: Any, message: Any) -> None:
            if error is None:
                self._acknowledged(number, message.topic(), message.partition(), message.offset())
            else:
                self._failed(number, error)
            if deliver is not None:
                deliver(error, message)

        options = {"timestamp": timestamp} if timestamp else {}
        try:
            self.client.produce(
                topic, value=value, key=key, partition=partition, on_delivery=heard, headers=given, **options
            )
        except Exception as error:
            self._failed(number, error)
            raise

    def flush(self, *arguments: Any) -> Any:
        """As the client's; with nothing left, every callback was called."""
        left = self.client.flush(*arguments)
        if not left:
            self._closed()
        return left

    def __len__(self) -> int:
        return len(self.client)


class _Consumer(_Wrapper):
    """What consumers that answer at once have in common."""

    def assign(self, *arguments: Any) -> Any:
        """As the client's."""
        self._moved()
        return self.client.assign(*arguments)

    def seek(self, *arguments: Any) -> Any:
        """As the client's."""
        self._moved()
        return self.client.seek(*arguments)

    def close(self, *arguments: Any, **options: Any) -> Any:
        """As the client's."""
        self._closed()
        return self.client.close(*arguments, **options)


class ConfluentConsumer(_Consumer):
    """confluent_kafka.Consumer."""

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        message = self.client.poll(*arguments, **options)
        self._got(message)
        return message

    def consume(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        messages = self.client.consume(*arguments, **options)
        for message in messages:
            self._got(message)
        return messages

    def _got(self, message: Any) -> None:
        if message is not None and message.error() is None:
            content = self.tap.content(message.key(), message.value(), message.headers())
            self._delivered(message.topic(), message.partition(), message.offset(), content)

    def subscribe(self, topics: Any, **options: Any) -> Any:
        """As the client's; a rebalance moves the consumer.

        Args:
            topics: the names, as the client takes them.
            options: as the client takes them; callbacks for rebalances are called after the tap's own.
        """
        for name in ("on_assign", "on_revoke", "on_lost"):
            options[name] = self._reported(options.get(name))
        return self.client.subscribe(topics, **options)

    def _reported(self, callback: Any) -> Any:
        def moved(consumer: Any, partitions: Any) -> Any:
            self._moved()
            return None if callback is None else callback(consumer, partitions)

        return moved


# ---- kafka-python


class KafkaPythonProducer(_Wrapper):
    """kafka.KafkaProducer."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Call the client's `send`, and record the send and its result.

        topic, value, key, partition, headers: recorded, then passed on. Returns and raises as the client
        does."""
        number, given = self._send(topic, partition, key, value, headers)
        try:
            future = self.client.send(topic, value, key, given, partition, timestamp_ms)
        except Exception as error:
            self._failed(number, error)
            raise
        future.add_callback(lambda sent: self._acknowledged(number, sent.topic, sent.partition, sent.offset))
        future.add_errback(lambda error: self._failed(number, error))
        return future

    def close(self, *arguments: Any, **options: Any) -> Any:
        """As the client's; every callback has been called afterwards.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        done = self.client.close(*arguments, **options)
        self._closed()
        return done


class KafkaPythonConsumer(_Consumer):
    """kafka.KafkaConsumer."""

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        found = self.client.poll(*arguments, **options)
        for messages in found.values():
            for message in messages:
                self._got(message)
        return found

    def _got(self, message: Any) -> None:
        content = self.tap.content(message.key, message.value, message.headers)
        self._delivered(message.topic, message.partition, message.offset, content)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        message = next(self.client)
        self._got(message)
        return message

    def subscribe(self, *arguments: Any, **options: Any) -> Any:
        """As the client's; a rebalance moves the consumer.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        self._moved()
        return self.client.subscribe(*arguments, **options)


# ---- aiokafka


class AiokafkaProducer(_Wrapper):
    """aiokafka.AIOKafkaProducer."""

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Any:
        """Call the client's `send`, and record the send and its result.

        topic, value, key, partition, headers: recorded, then passed on. Returns and raises as the client
        does."""
        number, given = self._send(topic, partition, key, value, headers)
        try:
            future = await self.client.send(topic, value, key, partition, timestamp_ms, given or [])
        except Exception as error:
            self._failed(number, error)
            raise
        future.add_done_callback(lambda done: self._reported(number, done))
        return future

    async def send_and_wait(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down the send and its acknowledgement.

        Args:
            arguments: as the client takes them.
            options: as the client takes them.
        """
        return await (await self.send(*arguments, **options))

    def _reported(self, number: str, done: Any) -> None:
        if done.cancelled() or done.exception() is not None:
            self._failed(number, "cancelled" if done.cancelled() else done.exception())
        else:
            sent = done.result()
            self._acknowledged(number, sent.topic, sent.partition, sent.offset)

    async def stop(self) -> None:
        """As the client's."""
        await self.client.stop()
        self._closed()


class AiokafkaConsumer(KafkaPythonConsumer):
    """aiokafka.AIOKafkaConsumer."""

    async def getone(self, *partitions: Any) -> Any:
        """As the client's."""
        message = await self.client.getone(*partitions)
        self._got(message)
        return message

    async def getmany(self, *partitions: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out.

        Args:
            partitions: as the client takes them.
            options: as the client takes them.
        """
        found = await self.client.getmany(*partitions, **options)
        for messages in found.values():
            for message in messages:
                self._got(message)
        return found

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await self.getone()

    async def stop(self) -> None:
        """As the client's."""
        self._closed()
        await self.client.stop()
