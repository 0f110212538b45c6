"""The wrappers of a tap: confluent-kafka, kafka-python and aiokafka.

Owns which of their calls are a send, a result, an assignment, a commit, and what was handed out. Must not
know the wire or the judge. A wrapped object behaves as the client does: arguments, results, callbacks and
errors pass unchanged, except for a header with the id of a send (`ids=False` leaves it out; then `proxy
blame` cannot match failed sends).

In a transaction a send has its result when the transaction has: it is acknowledged once that is committed,
and failed once it is aborted.
"""

import inspect
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from attrs import define, field

from fencepost.application.tap_file import TapFile, place_of
from fencepost.proxy.record.values import TAP_HEADER


class _Spot(NamedTuple):
    topic: str
    partition: int
    offset: int


def _spots(offsets: Any) -> Iterator[_Spot]:
    """What a call commits. offsets: a dict of kafka-python or aiokafka, or confluent-kafka's list."""
    if isinstance(offsets, dict):
        for place, position in offsets.items():
            offset: Any = getattr(position, "offset", position)
            yield _Spot(place.topic, place.partition, offset)
    else:
        yield from (_Spot(one.topic, one.partition, one.offset) for one in offsets or ())


@define(eq=False)
class _Wrapper:
    """Everything that is not named goes to the client."""

    tap: TapFile
    client: Any
    process: str
    _sends: "itertools.count[int]" = field(factory=itertools.count)
    # Inside of a transaction: results of sends that wait for its end, and offsets that it commits.
    _held: list[tuple[str, str, int, int | None]] | None = field(default=None, init=False)
    _offsets: list[_Spot] = field(factory=list, init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "client"), name)

    def group(self) -> str | None:
        """The consumer group, where the client says it."""
        return None

    def begin(self) -> None:
        """The line `started` is written: from now on others may follow."""

    def _write(self, event: str, **values: Any) -> None:
        self.tap.write(event, self.process, **values)

    def _send(
        self, topic: str, partition: int | None, key: Any, value: Any, headers: Any
    ) -> tuple[str, list[tuple[str, Any]] | None]:
        """Write that a record is about to be sent; its id and its headers."""
        number = f"{self.process}-{next(self._sends)}"
        given = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
        where = None if partition is None or partition < 0 else partition
        if self.tap.ids:
            given.append((TAP_HEADER, number.encode()))
        contents = self.tap.contents(key, value, given)
        self._write("sent", id=number, topic=topic, partition=where, **contents)
        return number, given or None

    def _acknowledged(self, number: str, topic: str, partition: int, offset: int | None) -> None:
        known = offset if offset is not None and offset >= 0 else None
        if self._held is not None:
            self._held.append((number, topic, partition, known))
        else:
            self._write("acknowledged", id=number, topic=topic, partition=partition, offset=known)

    def _failed(self, number: str, error: Any) -> None:
        self._write("failed", id=number, error=str(error)[:200])

    def _begun(self) -> None:
        self._held = []
        self._offsets.clear()

    def _ended(self, *, committed: bool) -> None:
        """The transaction has ended: now its sends have results."""
        held, self._held = self._held or [], None
        for number, topic, partition, offset in held:
            if committed:
                self._acknowledged(number, topic, partition, offset)
            else:
                self._failed(number, "the transaction was aborted")
        for spot in self._offsets if committed else ():
            self.tap.committed_in_transaction(*spot)
        self._offsets.clear()

    def _got(self, message: Any) -> None:
        fields = (getattr(message, name) for name in ("key", "value", "headers"))
        key, value, headers = (part() if callable(part) else part for part in fields)
        self.tap.received(self.process, place_of(message), key, value, headers)

    def _assigned(self, partitions: Iterable[Any]) -> None:
        for one in partitions or ():
            offset = getattr(one, "offset", None)
            known = offset if isinstance(offset, int) and offset >= 0 else None
            self._write("assigned", topic=one.topic, partition=one.partition, offset=known)

    def _taken(self, event: str, partitions: Iterable[Any]) -> None:
        for one in partitions or ():
            self.tap.taken(event, self.process, one.topic, one.partition)

    def _stopped(self) -> None:
        self.tap.stopped(self.process)


class _Transactional(_Wrapper):
    """A producer of which transactions are calls that wait."""

    def begin_transaction(self) -> None:
        """As the client's."""
        self.client.begin_transaction()
        self._begun()

    def send_offsets_to_transaction(self, offsets: Any, *arguments: Any, **options: Any) -> Any:
        """As the client's. offsets: are committed with the transaction."""
        done = self.client.send_offsets_to_transaction(offsets, *arguments, **options)
        self._offsets += _spots(offsets)
        return done

    def commit_transaction(self, *arguments: Any) -> None:
        """As the client's; then its sends are acknowledged."""
        self.client.commit_transaction(*arguments)
        self._ended(committed=True)

    def abort_transaction(self, *arguments: Any) -> None:
        """As the client's; then its sends have failed."""
        self.client.abort_transaction(*arguments)
        self._ended(committed=False)


# ---- confluent-kafka


class ConfluentProducer(_Transactional):
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
        if not left and self._held is None:
            self._stopped()
        return left

    def __len__(self) -> int:
        return len(self.client)


class ConfluentConsumer(_Wrapper):
    """confluent_kafka.Consumer."""

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out."""
        message = self.client.poll(*arguments, **options)
        self._heard(message)
        return message

    def consume(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out."""
        messages = self.client.consume(*arguments, **options)
        for message in messages:
            self._heard(message)
        return messages

    def _heard(self, message: Any) -> None:
        if message is not None and message.error() is None:
            self._got(message)

    def assign(self, partitions: Any) -> Any:
        """As the client's."""
        self._assigned(partitions)
        return self.client.assign(partitions)

    def incremental_assign(self, partitions: Any) -> Any:
        """As the client's."""
        self._assigned(partitions)
        return self.client.incremental_assign(partitions)

    def seek(self, partition: Any) -> Any:
        """As the client's: the consumer is at another place."""
        self._assigned([partition])
        return self.client.seek(partition)

    def subscribe(self, topics: Any, **options: Any) -> Any:
        """As the client's.

        Args:
            topics: the names, as the client takes them.
            options: as the client takes them; the callback of an assignment is called after the tap's own,
                the others before it. They get this consumer, so that what they commit is written, too.
        """
        given = dict(options)

        def on_assign(_: Any, partitions: Any) -> Any:
            self._assigned(partitions)
            return given["on_assign"](self, partitions) if given.get("on_assign") else None

        def on_revoke(_: Any, partitions: Any) -> Any:
            done = given["on_revoke"](self, partitions) if given.get("on_revoke") else None
            self._taken("revoked", partitions)
            return done

        def on_lost(_: Any, partitions: Any) -> Any:
            called = given.get("on_lost") or given.get("on_revoke")
            done = called(self, partitions) if called else None
            self._taken("lost", partitions)
            return done

        options |= {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        return self.client.subscribe(topics, **options)

    def commit(self, *arguments: Any, **options: Any) -> Any:
        """As the client's. What an asynchronous commit has done, only its callback says (Tap.on_commit)."""
        done = self.client.commit(*arguments, **options)
        if done:
            self.tap.committed(self.process, done)
        return done

    def close(self) -> Any:
        """As the client's."""
        done = self.client.close()
        self._stopped()
        return done


# ---- kafka-python


class KafkaPythonProducer(_Transactional):
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
        """As the client's; every callback has been called afterwards."""
        done = self.client.close(*arguments, **options)
        self._stopped()
        return done


def _listened(wrapper: _Wrapper, listener: Any) -> Any:
    """A listener for rebalances of kafka-python or aiokafka that writes lines, too. listener: the
    application's, or None; its methods may be coroutines."""
    base = type(listener) if listener is not None else _base_listener(wrapper.client)

    class Listener(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> Any:
            wrapper._assigned(sorted(assigned))
            return listener.on_partitions_assigned(assigned) if listener is not None else None

        def on_partitions_revoked(self, revoked: Any) -> Any:
            return self._after("revoked", "on_partitions_revoked", revoked)

        def on_partitions_lost(self, lost: Any) -> Any:
            name = (
                "on_partitions_lost" if hasattr(listener, "on_partitions_lost") else "on_partitions_revoked"
            )
            return self._after("lost", name, lost)

        def _after(self, event: str, name: str, partitions: Any) -> Any:
            done = getattr(listener, name)(partitions) if listener is not None else None
            if not inspect.isawaitable(done):
                wrapper._taken(event, sorted(partitions))
                return done

            async def later() -> Any:
                answer = await done
                wrapper._taken(event, sorted(partitions))
                return answer

            return later()

    return Listener()


def _base_listener(client: Any) -> Any:
    """The class of listeners of a client's library."""
    library = inspect.getmodule(next(kind for kind in type(client).__mro__ if kind.__name__ in WRAPPERS))
    package = __import__(library.__name__.split(".")[0]) if library is not None else None
    return getattr(package, "ConsumerRebalanceListener", object)


class KafkaPythonConsumer(_Wrapper):
    """kafka.KafkaConsumer."""

    def group(self) -> str | None:
        """The consumer group."""
        config = getattr(self.client, "config", {})
        return config.get("group_id")

    def begin(self) -> None:
        """Hear of rebalances of topics that the client was made with."""
        topics = self.client.subscription()
        if topics:
            self.subscribe(topics=sorted(topics))

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out."""
        found = self.client.poll(*arguments, **options)
        for messages in found.values():
            for message in messages:
                self._got(message)
        return found

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        message = next(self.client)
        self._got(message)
        return message

    def assign(self, partitions: Any) -> Any:
        """As the client's."""
        self._assigned(partitions)
        return self.client.assign(partitions)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> Any:
        """As the client's; `listener` hears of rebalances as it does without a tap."""
        return self.client.subscribe(topics=topics, pattern=pattern, listener=_listened(self, listener))

    def seek(self, partition: Any, offset: int) -> Any:
        """As the client's: the consumer is at another place. partition, offset: that one."""
        self._assigned([_Spot(partition.topic, partition.partition, offset)])
        return self.client.seek(partition, offset)

    def seek_to_beginning(self, *partitions: Any) -> Any:
        """As the client's: the consumer is at another place."""
        self._assigned(partitions or sorted(self.client.assignment()))
        return self.client.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: Any) -> Any:
        """As the client's: the consumer is at another place."""
        self._assigned(partitions or sorted(self.client.assignment()))
        return self.client.seek_to_end(*partitions)

    def commit(self, offsets: Any = None, *arguments: Any, **options: Any) -> Any:
        """As the client's. offsets: as the client takes them; None: positions of all partitions."""
        wanted = list(_spots(offsets)) if offsets is not None else self._positions()
        done = self.client.commit(offsets, *arguments, **options)
        self.tap.committed(self.process, wanted)
        return done

    def _positions(self) -> list[_Spot]:
        places = sorted(self.client.assignment())
        return [_Spot(place.topic, place.partition, self.client.position(place)) for place in places]

    def close(self, *arguments: Any, **options: Any) -> Any:
        """As the client's."""
        done = self.client.close(*arguments, **options)
        self._stopped()
        return done


# ---- aiokafka


class _Block(_Wrapper):
    """A client that `async with` starts and stops."""

    async def __aenter__(self) -> Any:
        await self.client.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """As the client's."""
        await self.client.stop()
        self._stopped()


class AiokafkaProducer(_Block):
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
        """As the client's, and writes down the send and its acknowledgement."""
        return await (await self.send(*arguments, **options))

    def _reported(self, number: str, done: Any) -> None:
        if done.cancelled() or done.exception() is not None:
            self._failed(number, "cancelled" if done.cancelled() else done.exception())
        else:
            sent = done.result()
            self._acknowledged(number, sent.topic, sent.partition, sent.offset)

    async def begin_transaction(self) -> None:
        """As the client's."""
        await self.client.begin_transaction()
        self._begun()

    async def send_offsets_to_transaction(self, offsets: Any, *arguments: Any) -> Any:
        """As the client's. offsets: are committed with the transaction."""
        done = await self.client.send_offsets_to_transaction(offsets, *arguments)
        self._offsets += _spots(offsets)
        return done

    async def commit_transaction(self) -> None:
        """As the client's; then its sends are acknowledged."""
        await self.client.commit_transaction()
        self._ended(committed=True)

    async def abort_transaction(self) -> None:
        """As the client's; then its sends have failed."""
        await self.client.abort_transaction()
        self._ended(committed=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """As the client's: committed at the end of the block, aborted if it raises."""
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self.abort_transaction()
            raise
        await self.commit_transaction()


class AiokafkaConsumer(_Block, KafkaPythonConsumer):
    """aiokafka.AIOKafkaConsumer."""

    def group(self) -> str | None:
        """The consumer group."""
        return getattr(self.client, "_group_id", None)

    async def getone(self, *partitions: Any) -> Any:
        """As the client's."""
        message = await self.client.getone(*partitions)
        self._got(message)
        return message

    async def getmany(self, *partitions: Any, **options: Any) -> Any:
        """As the client's, and writes down what is handed out."""
        found = await self.client.getmany(*partitions, **options)
        for messages in found.values():
            for message in messages:
                self._got(message)
        return found

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await self.getone()

    async def commit(self, offsets: Any = None) -> Any:
        """As the client's. offsets: as the client takes them; None: positions of all partitions."""
        if offsets is None:
            places = sorted(self.client.assignment())
            wanted = [
                _Spot(place.topic, place.partition, await self.client.position(place)) for place in places
            ]
        else:
            wanted = list(_spots(offsets))
        done = await self.client.commit(offsets)
        self.tap.committed(self.process, wanted)
        return done


WRAPPERS: dict[str, Any] = {
    "Producer": ConfluentProducer,
    "SerializingProducer": ConfluentProducer,
    "Consumer": ConfluentConsumer,
    "DeserializingConsumer": ConfluentConsumer,
    "KafkaProducer": KafkaPythonProducer,
    "KafkaConsumer": KafkaPythonConsumer,
    "AIOKafkaProducer": AiokafkaProducer,
    "AIOKafkaConsumer": AiokafkaConsumer,
}
"""By the name of the client's class, or of a class that it is derived from."""
