"""Transactions: from the first request of one to the answer of EndTxn, as rows.

Owns where a transaction begins and how it ends. Must not know connections. Its process is its producer, its
session the producer's epoch when it began. It begins with the first request that adds a partition or offsets
to it, or that writes (Kafka 4 adds partitions as it writes, KIP-890). One that nobody ends here (a
coordinator aborts after transaction.timeout.ms, a producer is fenced) has an unknown outcome. Offsets that it
commits are rows when its outcome is known.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.proxy.exchange import Exchange
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.record.lines import Lines
from fencepost.wire.passing import error_name

ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_COMMIT = 24, 25, 26, 28
MOST_OPEN = 10_000
"""Transactions that a record follows at once: each takes about a kilobyte."""
Number = Callable[[int], int]


@define(eq=False, kw_only=True)
class Transaction:
    """One that has begun."""

    op_id: int
    process: int
    session: int
    time: int
    # (group, topic, partition, offset) that it commits, and when that was asked.
    offsets: list[tuple[int, str, str, int, int]] = field(factory=list)
    # Whether its end was asked for.
    ending: bool = False


@define(eq=False)
class Transactions:
    """lines: where rows go. ended: how many have, by outcome."""

    lines: Lines
    # By producer id.
    open: dict[int, Transaction] = field(factory=dict)
    ended: dict[str, int] = field(factory=dict)

    @property
    def earliest(self) -> int | None:
        """Rows that begin at this time or later may still come: commits of offsets within a transaction."""
        return min((one.time for one in self.open.values() if one.offsets), default=None)

    def wrote(self, producer_id: int, epoch: int, process: int, time: int) -> None:
        """A transactional batch is about to leave.

        Args:
            producer_id: of the batch.
            epoch: of the batch.
            process: of the client.
            time: nanoseconds.
        """
        self._begun(producer_id, epoch, process, time)

    def _begun(self, producer_id: int, epoch: int, process: int, time: int) -> Transaction:
        known = self.open.get(producer_id)
        if known is not None and known.session == max(0, epoch) and not known.ending:
            return known
        if known is not None:
            self._end(producer_id, "unknown", None, -1)
        if len(self.open) >= MOST_OPEN:
            self._end(next(iter(self.open)), "unknown", None, -1)
        made = Transaction(op_id=self.lines.number(), process=process, session=max(0, epoch), time=time)
        self.open[producer_id] = made
        self.lines.operation(self._row(made) | {"outcome": "unknown"})
        return made

    def asked(self, number: Number, pipe: Pipe, exchange: Exchange, body: Any) -> None:
        """A request of a transaction is about to leave.

        Args:
            number: the number of a producer's process, by producer id.
            pipe: the connection.
            exchange: the request.
            body: the request, decoded.
        """
        assert exchange.header is not None
        if not hasattr(body, "producer_id"):
            return  # AddPartitionsToTxn 4 and later: between brokers
        process = number(body.producer_id)
        if exchange.header.api_key == END_TXN:
            known = self.open.get(body.producer_id)
            if known is not None:
                known.ending = True
            return
        self._begun(body.producer_id, body.producer_epoch, process, exchange.time)

    def answered(
        self, number: Number, pipe: Pipe, exchange: Exchange, body: Any, time: int, node: int
    ) -> str:
        """An answer of a coordinator.

        Args:
            number: the number of a producer's process, by producer id.
            pipe: the connection.
            exchange: the request.
            body: the answer, decoded.
            time: nanoseconds.
            node: the broker.

        Returns:
            Its error; "" for none.
        """
        assert exchange.header is not None
        request, key = exchange.body, exchange.header.api_key
        error = error_name(body.error_code) if hasattr(body, "error_code") else "NONE"
        known = self.open.get(getattr(request, "producer_id", -1))
        if known is None:
            return "" if error == "NONE" else error
        if key == TXN_COMMIT:
            known.offsets += [
                (
                    exchange.time,
                    request.group_id,
                    pipe.cluster.name_of(topic),
                    one.partition_index,
                    one.committed_offset,
                )
                for topic in request.topics
                for one in topic.partitions
            ]
        elif key == END_TXN and error == "NONE":
            self._end(request.producer_id, "ok" if request.committed else "fail", time, node)
        elif key == END_TXN:
            known.ending = False  # asked again, or given up
        return "" if error == "NONE" else error

    def lost(self, request: Any) -> None:
        """Nobody will say whether the end was written; the producer asks again."""
        known = self.open.get(request.producer_id)
        if known is not None:
            known.ending = False

    def _end(self, producer_id: int, outcome: str, time: int | None, node: int) -> None:
        known = self.open.pop(producer_id)
        self.ended[outcome] = self.ended.get(outcome, 0) + 1
        row = self._row(known) | {"outcome": outcome, "node": node}
        if time is not None:
            row["completion_time"] = time
        if outcome != "unknown":
            self.lines.operation(row)
        for asked, group, topic, partition, offset in known.offsets:
            commit: dict[str, Any] = {
                "op_id": self.lines.number(),
                "process": known.process,
                "session": known.session,
                "function": "commit",
                "invoke_time": asked,
                "outcome": outcome,
                "group": group,
                "topic": topic,
                "partition": partition,
                "offset": offset,
            }
            if time is not None:
                commit["completion_time"] = time
            self.lines.operation(commit)

    def _row(self, one: Transaction) -> dict[str, Any]:
        return {
            "op_id": one.op_id,
            "process": one.process,
            "session": one.session,
            "function": "txn",
            "invoke_time": one.time,
        }
