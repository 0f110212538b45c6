"""A producer and a reader of one process: which of the two takes an answer first."""

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.producer.pipelined import make_pipelined_client
from fencepost.impl.core.core_interface import Invoke, MessageArrived, Send
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.plan import ClientOptions, PlannedOperation, ProducerOptions
from tests.impl.impl_producer_desk import MILLISECOND, T0


def metadata(leader: int, leader_epoch: int, correlation_id: int = 0) -> kafka.MetadataResponse:
    entry = kafka.PartitionMetadata(partition=T0, leader=leader, leader_epoch=leader_epoch)
    return kafka.MetadataResponse(correlation_id=correlation_id, partitions=(entry,), live_brokers=(1, 2, 3))


def test_the_producer_sends_by_the_metadata_that_the_reader_gets():
    """Rule (P1): a step that brings metadata does not send by what they replace."""
    known = ClientMetadata((1, 2, 3))
    known.update(metadata(leader=1, leader_epoch=0))
    options = ClientOptions(producer=ProducerOptions(pipelined=True, linger_ms=5))
    client = make_pipelined_client(0, options, known)
    client.step(Invoke(PlannedOperation(op_id=1, process=0, at_ms=0, function="append")), 0)
    read = PlannedOperation(op_id=2, process=0, at_ms=0, function="poll", topic="u")
    (request,) = [one.message for one in client.step(Invoke(read), 0) if isinstance(one, Send)]

    answer = metadata(leader=3, leader_epoch=1, correlation_id=request.correlation_id)
    effects = client.step(MessageArrived(1, answer), 6 * MILLISECOND)

    sent = [(one.target, type(one.message)) for one in effects if isinstance(one, Send)]
    assert (3, kafka.ProduceRequest) in sent
    assert (1, kafka.ProduceRequest) not in sent
