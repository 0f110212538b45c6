"""The result of a batch in a trace: one row per append in it.

Owns the mapping. The appends of a batch have separate rows, because each has its own invocation time and its
records are contiguous in the batch. The sequence of a row is that of its first record. Times are 0: the
driver sets them.
"""

from fencepost.impl.client.producer.accumulator import NONE, SEQUENCES, ProducerBatch
from fencepost.impl.core.core_interface import Complete, Produce
from fencepost.impl.messages.broker_api import ProduceResponse
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome, Record

TOMBSTONE = "tombstone"


def completions(
    process: int, batch: ProducerBatch, outcome: Outcome, response: ProduceResponse | None
) -> list[Complete]:
    """The results of a batch, in the order of its appends.

    Args:
        process: the process in the trace.
        batch: the batch.
        outcome: its outcome.
        response: the last response; None if there is none.

    Returns:
        one effect for each append.
    """
    rows, before = [], 0
    for append in batch.appends:
        rows.append(Complete(_row(process, batch, append, before, outcome, response)))
        before += len(append.values)
    return rows


def _row(
    process: int,
    batch: ProducerBatch,
    append: Produce,
    before: int,
    outcome: Outcome,
    response: ProduceResponse | None,
) -> Operation:
    known = response is not None and outcome is Outcome.OK and batch.acks != ACKS_NONE
    offset = response.base_offset + before if known and response is not None else None
    epoch = response.leader_epoch if known and response is not None else None
    numbered = batch.sequence != NONE
    return Operation(
        op_id=append.op_id,
        process=process,
        function=Function.APPEND,
        invoke_time=0,
        outcome=outcome,
        completion_time=None if outcome is Outcome.UNKNOWN else 0,
        topic=append.topic,
        partition=batch.partition.partition,
        key=_text(append.key),
        argument=TOMBSTONE if None in append.values else None,
        error=None if batch.error is NO_ERROR else batch.error.value,
        acks=batch.acks,
        offset=offset,
        log_start_offset=response.log_start_offset if known and response is not None else None,
        leader_epoch=epoch,
        producer_id=batch.producer_id if numbered else None,
        producer_epoch=batch.producer_epoch if numbered else None,
        sequence=(batch.sequence + before) % SEQUENCES if numbered else None,
        node=batch.node,
        attempts=batch.attempts,
        records=tuple(
            Record(
                topic=append.topic,
                partition=batch.partition.partition,
                offset=NONE if offset is None else offset + index,
                value=value,
                leader_epoch=NONE if epoch is None else epoch,
            )
            for index, value in enumerate(append.value_ids)
        ),
    )


def unplaced(process: int, append: Produce) -> Complete:
    """An append that never got a partition, because its topic is not known."""
    return Complete(
        Operation(
            op_id=append.op_id,
            process=process,
            function=Function.APPEND,
            invoke_time=0,
            outcome=Outcome.FAIL,
            completion_time=0,
            topic=append.topic,
            key=_text(append.key),
            argument=TOMBSTONE if None in append.values else None,
            error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.value,
            acks=append.acks,
            attempts=0,
        )
    )


def _text(key: bytes | None) -> str | None:
    """A record's key in a trace. Bytes that are not text are encoded so that different keys stay
    different."""
    return None if key is None else key.decode("utf-8", "backslashreplace")
