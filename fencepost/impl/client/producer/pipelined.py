"""A workload client with pipelined appends: a producer, and a client that does one thing at a time.

Owns the dispatch of inputs to the two. Must not know how they handle them.
"""

from attrs import define

from fencepost.impl.client.attempt import VALUES_PER_OPERATION
from fencepost.impl.client.client import Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.partitioners import make_partitioner
from fencepost.impl.client.producer.completion import completions, unplaced
from fencepost.impl.client.producer.producer import KINDS, Producer, make_producer
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.core.core_interface import (
    Effect,
    Input,
    Invoke,
    MessageArrived,
    Produce,
    Started,
    StopRequested,
    TimerFired,
)
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import ClientOptions, PlannedOperation

PRODUCERS_MAIL = (kafka.ProduceResponse, kafka.InitProducerIdResponse)


@define(eq=False)
class PipelinedClient:
    """Both share the same metadata."""

    client: Client
    producer: Producer

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply the input `input` at host time `now` (nanoseconds); returns the effects."""
        if isinstance(input, Invoke) and input.operation.function == "append":
            chosen = bool(self.producer.options.producer.partitioner)
            return self.producer.step(append_of(input.operation, chosen=chosen), now)
        if isinstance(input, MessageArrived) and isinstance(input.message, kafka.MetadataResponse):
            # the reader first: what the producer sends now must go by what the answer says
            return [*self.client.step(input, now), *self.producer.step(input, now)]
        producers = (
            isinstance(input, (Produce, StopRequested))
            or (isinstance(input, MessageArrived) and isinstance(input.message, PRODUCERS_MAIL))
            or (isinstance(input, TimerFired) and input.key[0] in KINDS)
        )
        if producers:
            return self.producer.step(input, now)
        assert isinstance(input, (Invoke, MessageArrived, TimerFired, Started)), input
        return self.client.step(input, now)

    def undecided(self) -> list[Operation]:
        """The rows of appends in progress, as recorded if nothing more is known about them."""
        return undecided(self.producer)


def undecided(producer: Producer) -> list[Operation]:
    """The rows of a producer's appends in progress, as recorded if nothing more is known about them."""
    rows = [unplaced(producer.process, append).operation for append in producer.homeless]
    for batch in producer.accumulator.batches():
        outcome = Outcome.UNKNOWN if batch.attempts else Outcome.FAIL
        rows += [done.operation for done in completions(producer.process, batch, outcome, None)]
    return rows


def append_of(operation: PlannedOperation, *, chosen: bool) -> Produce:
    """A planned append. chosen: by the partitioner."""
    ids = tuple(
        range(
            operation.op_id * VALUES_PER_OPERATION, operation.op_id * VALUES_PER_OPERATION + operation.records
        )
    )
    tombstone = operation.argument == "tombstone"
    return Produce(
        op_id=operation.op_id,
        topic=operation.topic,
        partition=-1 if chosen else operation.partition,
        key=operation.key.encode() if operation.key else None,
        values=tuple(None if tombstone else b"%d" % value for value in ids),
        value_ids=ids,
        acks=operation.acks,
    )


def make_pipelined_client(
    process: int,
    options: ClientOptions,
    metadata: ClientMetadata,
    sequences: type[Sequences] = Sequences,
    *,
    seed: int = 0,
) -> PipelinedClient:
    """A workload client. seed: of its partitioner."""
    partitioner = make_partitioner(options.producer.partitioner or "key_hash", seed)
    return PipelinedClient(
        Client(process, options, metadata), make_producer(process, options, metadata, partitioner, sequences)
    )
