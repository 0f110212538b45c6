"""Transactions are loaded from the log of their partition of __transaction_state, and forgotten.

Owns what its records say together, and who goes on with an end that was decided. Must not know requests, nor
when a load begins (coordinator/coordinated_partitions.py).
"""

from collections.abc import Callable
from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.coordinated_partitions import Load, Place, PlaceLoading
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.transaction.transaction import Transaction
from fencepost.impl.transaction.transaction_records import TransactionValue, decode_key, decode_value
from fencepost.impl.transaction.transaction_states import ENDING
from fencepost.impl.transaction.transaction_table import TransactionLoad, TransactionTable
from fencepost.traces.events import Name

LOAD_TIMER, UNLOAD_TIMER = "transaction_load", "transaction_unload"


@define
class TransactionLoading(PlaceLoading):
    """on_ending: takes each loaded transaction whose end is decided. on_unload: takes the number of each
    partition that goes."""

    LOAD_TIMER: ClassVar[str] = LOAD_TIMER
    UNLOAD_TIMER: ClassVar[str] = UNLOAD_TIMER
    LOADED: ClassVar[Name] = Name.TRANSACTIONS_LOADED
    UNLOADED: ClassVar[Name] = Name.TRANSACTIONS_UNLOADED
    LOAD: ClassVar[type[Load]] = TransactionLoad
    table: TransactionTable
    on_ending: list[Callable[[Transaction], None]] = field(factory=list)
    on_unload: list[Callable[[int], None]] = field(factory=list)

    @property
    def buffer_bytes(self) -> int:
        """transaction.state.log.load.buffer.size."""
        return self.table.options.load_buffer_bytes

    def unload(self, place: Place) -> None:
        """Drop the transactions; nobody here goes on with their ends."""
        for transaction in self.table.of_place(place.number):
            del self.table.transactions[transaction.transactional_id]
        for callback in self.on_unload:
            callback(place.number)

    def apply_records(self, load: TransactionLoad, header: BatchHeader, records: tuple[Record, ...]) -> None:
        """As in the base; there are no transactions in this log, and so no markers."""
        for record in () if header.is_control else records:
            transactional_id = decode_key(record.key)
            value = None if record.value is None else decode_value(record.value)
            if transactional_id is None:
                continue
            load.values.pop(transactional_id, None)
            if value is not None:
                load.values[transactional_id] = value

    def serve(self, place: Place, load: TransactionLoad) -> None:
        """The transactions, by their last values."""
        for transactional_id, value in sorted(load.values.items()):
            self.table.transactions[transactional_id] = self.loaded(transactional_id, place.number, value)

    def served(self, place: Place, load: TransactionLoad) -> None:
        """An end that was decided is carried out."""
        loaded = [self.table.transactions[transactional_id] for transactional_id in sorted(load.values)]
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
