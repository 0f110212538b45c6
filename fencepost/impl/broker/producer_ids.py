"""Ids of idempotent producers, in blocks from /latest_producer_id_block (KIP-98; Kafka's ProducerIdManager).

Owns the block of this broker and the requests that wait for the next one. Must not know how an id is used. An
id is assigned once in the lifetime of a cluster: a conditional write claims a block before its first id is
returned, and unused ids of a process that ends are never assigned.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.procedures import Procedure, Procedures
from fencepost.impl.messages.broker_api import InitProducerIdRequest, InitProducerIdResponse
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Created, Data, Done, GetData, SetData
from fencepost.impl.zookeeper.znodes import ProducerIdBlock
from fencepost.traces.kafka_names.outcomes import ErrorCode

BLOCK_SIZE = 1000
"""Kafka's PidBlockSize."""
ATTEMPTS = 16
"""Rounds of one claim. Reason: a round fails only if another broker claims a block."""
MOST_WAITING = 10_000
"""The most requests that wait for a block. Further ones are dropped, and their producers ask again."""
FIRST_EPOCH = 0


@define
class ProducerIds:
    """next_id to end: ids that are left of this broker's block (next_id > end: none)."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # The next id to assign.
    next_id: int = 0
    # The last id of this broker's block; next_id > end means that none is left.
    end: int = -1
    # Who gets the next ids, in order of arrival.
    waiting: deque[Callable[[int], None]] = field(factory=deque)
    # A procedure claims a block now.
    claiming: bool = False

    def init_producer_id(self, source: int, request: InitProducerIdRequest) -> None:
        """Answer with the next id, now or when there is a block of ids.

        Args:
            source: the node that asks.
            request: InitProducerId without a transactional id.
        """
        self.take(partial(self._answer, source, request.correlation_id))

    def take(self, then: Callable[[int], None]) -> None:
        """Hand over the next id, now or when there is a block; never, if too many wait, or if no block can be
        had."""
        if len(self.waiting) < MOST_WAITING:
            self.waiting.append(then)
        self._serve()

    def _answer(self, source: int, correlation_id: int, producer_id: int) -> None:
        response = InitProducerIdResponse(
            correlation_id=correlation_id,
            error=ErrorCode.NONE,
            producer_id=producer_id,
            producer_epoch=FIRST_EPOCH,
        )
        self.broker_context.reply(source, response, correlation_id)

    def _serve(self) -> None:
        while self.waiting and self.next_id <= self.end:
            then = self.waiting.popleft()
            self.next_id += 1
            then(self.next_id - 1)
        if self.waiting and not self.claiming:
            self.claiming = True
            self.procedures.start(self._claim())

    def _claim(self) -> Procedure:
        """Claim the block after the last one. If the reply of a write was lost, the content identifies the
        write: no other broker can have written it."""
        mine: ProducerIdBlock | None = None
        for _ in range(ATTEMPTS):
            current = yield GetData(znodes.PRODUCER_IDS)
            try:
                last = znodes.decode_producer_id_block(current.data) if isinstance(current, Data) else None
            except znodes.BadZnodeError as error:
                self.broker_context.refuse_znode(error)
                mine = None
                break
            if last is not None and last == mine:
                break
            start = 0 if last is None else last.end + 1
            assert start <= znodes.LARGEST_LONG - BLOCK_SIZE, last
            mine = ProducerIdBlock(self.broker_context.node, start, start + BLOCK_SIZE - 1)
            done = yield self.fenced_claim(mine, current)
            if isinstance(done, (Created, Done)):
                break
        else:
            mine = None  # the next request tries again
        self.claiming = False
        if mine is None:
            self.waiting.clear()
            return
        self.next_id, self.end = mine.start, mine.end
        self._serve()

    def fenced_claim(self, mine: ProducerIdBlock, current: Any) -> Create | SetData:
        """Protection R10: the claim is conditional on the block that was read, so that no two brokers assign
        the same ids.

        Args:
            mine: the block to claim.
            current: the node that was read; None if it does not exist.

        Returns:
            the conditional write.
        """
        data = znodes.encode_producer_id_block(mine)
        if not isinstance(current, Data):
            return Create(znodes.PRODUCER_IDS, data)
        return SetData(znodes.PRODUCER_IDS, data, current.stat.version)
