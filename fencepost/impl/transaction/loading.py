"""Transactions are loaded from the log of their partition of __transaction_state, and forgotten.

Owns what its records say together, and who goes on with an end that was decided. Must not know requests, nor
when a load begins (coordinator/places.py).
"""

from collections.abc import Callable
from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.places import NOT_OWNED, Pace, Place, PlaceLoading
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.records import TransactionValue, decode_key, decode_value
from fencepost.impl.transaction.states import ENDING
from fencepost.impl.transaction.table import TransactionLoad, TransactionTable
from fencepost.impl.transaction.transaction import Transaction
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.topics import STATE_TOPIC

LOAD_TIMER, UNLOAD_TIMER = "transaction_load", "transaction_unload"


@define
class TransactionLoading(PlaceLoading):
    """on_ending: takes each loaded transaction whose end is decided. on_unload: takes the number of each
    partition that goes."""

    TOPIC: ClassVar[str] = STATE_TOPIC
    LOAD_TIMER: ClassVar[str] = LOAD_TIMER
    UNLOAD_TIMER: ClassVar[str] = UNLOAD_TIMER
    table: TransactionTable
    on_ending: list[Callable[[Transaction], None]] = field(factory=list)
    on_unload: list[Callable[[int], None]] = field(factory=list)

    @property
    def pace(self) -> Pace:
        """Of the transaction coordinators."""
        options = self.table.options
        return Pace(
            buffer_bytes=options.load_buffer_bytes,
            step_ms=options.load_step_ms,
            unload_ms=options.unload_ms,
        )

    def new_load(self, order: int, start: int, end: int) -> TransactionLoad:
        """A load that has read nothing.

        Args:
            order: of its task: twice the leader epoch, one more for an unload.
            start: the log start.
            end: the log end.
        """
        return TransactionLoad(order, order // 2, start, end)

    def holds_anything(self, place: Place) -> bool:
        """Transactions that were not unloaded."""
        return bool(self.table.of_place(place.number))

    def forget(self, place: Place) -> None:
        """Unload the transactions; nobody here goes on with their ends."""
        for transaction in self.table.of_place(place.number):
            del self.table.transactions[transaction.transactional_id]
        for callback in self.on_unload:
            callback(place.number)
        epoch, place.owned_epoch, place.load = place.owned_epoch, NOT_OWNED, None
        self._tell(Name.TRANSACTIONS_UNLOADED, place, epoch)

    def apply_batch(self, load: TransactionLoad, data: bytes, header: BatchHeader) -> None:
        """Take in the records of one batch, in the order of the log; a tombstone removes.

        Args:
            load: what was read so far.
            data: the bytes that hold the batch.
            header: of the batch.
        """
        try:
            records = () if header.is_control else read_records(data, header)
        except CorruptBatchError:
            records = ()
        for record in records:
            transactional_id = decode_key(record.key)
            value = None if record.value is None else decode_value(record.value)
            if transactional_id is None:
                continue
            load.values.pop(transactional_id, None)
            if value is not None:
                load.values[transactional_id] = value

    def take_over(self, place: Place, load: TransactionLoad) -> None:
        """Serve the transactions; an end that was decided is carried out.

        Args:
            place: the partition.
            load: all that was read.
        """
        loaded = [
            self.loaded(transactional_id, place.number, value)
            for transactional_id, value in sorted(load.values.items())
        ]
        for transaction in loaded:
            self.table.transactions[transaction.transactional_id] = transaction
        self._tell(Name.TRANSACTIONS_LOADED, place, load.epoch, load.end_offset)
        for transaction in loaded:
            self.table.tell(transaction, "loaded")
        self.go_on_with_ends(loaded)

    def loaded(self, transactional_id: str, number: int, value: TransactionValue) -> Transaction:
        """Protection KIP-98: epochs outlast their coordinator; else a producer that was fenced writes again.

        Args:
            transactional_id: of the producer.
            number: of the partition of `__transaction_state`.
            value: the last record.
        """
        return Transaction(transactional_id, number, value)

    def go_on_with_ends(self, loaded: list[Transaction]) -> None:
        """Protection KIP-98: a coordinator that takes over sends the markers of every end that was
        decided."""
        for transaction in loaded:
            if transaction.phase in ENDING:
                for callback in self.on_ending:
                    callback(transaction)

    def _tell(self, name: Name, place: Place, epoch: int, offset: int = -1) -> None:
        key = TopicPartition(STATE_TOPIC, place.number)
        self.table.broker_context.record(name, key, leader_epoch=epoch, offset=offset)
