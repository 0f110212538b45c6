"""The transaction coordinator, request by request."""

import pytest
from attrs import evolve
from transaction_lab import OFFSETS, OUT, STATE, TransactionLab

from fencepost.impl.log.batch.control_records import EndTransaction
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import group_api
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.broker_api import ProduceRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction import EXHAUSTED
from fencepost.impl.transaction.transaction_states import TransactionPhase
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

E, T = ErrorCode, TransactionPhase


def values_of(answer):
    """The aborted transactions and the last stable offset that a fetch told."""
    return answer.aborted, answer.last_stable_offset


def ongoing(**options):
    """A lab, and a producer with a record of a transaction that goes on."""
    lab = TransactionLab(**options)
    me = lab.init()
    lab.add(me)
    lab.produce(me, 1)
    return lab, me


def test_a_transaction_commits(lab, me):
    """Rule (KIP-98): init, add, write, end; markers follow, and the last stable offset moves past it."""
    assert (me.error, me.producer_epoch) == (E.NONE, 0)
    assert lab.add(me) is E.NONE and lab.known().phase is T.ONGOING
    assert lab.produce(me, 1).error is E.NONE
    assert values_of(lab.read()) == ((), 0)
    assert lab.end(me).error is E.NONE
    assert lab.known().phase is T.COMPLETE_COMMIT and lab.known().value.partitions == ()
    assert values_of(lab.read()) == ((), 2)
    assert [event.cause for event in lab.recorded(Name.TRANSACTION_PHASE, 1)] == [
        *("Empty", "Ongoing", "PrepareCommit", "CompleteCommit")
    ]


def test_an_aborted_transaction_is_named():
    """Rule (KIP-98): a reader of committed records hears which transactions to skip."""
    lab, me = ongoing()
    assert lab.end(me, commit=False).error is E.NONE
    assert values_of(lab.read()) == (((me.producer_id, 0),), 2)


@pytest.mark.parametrize(
    ("first", "second", "error"), [(True, True, E.NONE), (True, False, E.INVALID_TXN_STATE)]
)
def test_an_end_is_asked_for_twice(first, second, error, lab, me):
    """Rule (KIP-98): the same end is acknowledged again, another one is not."""
    lab.add(me)
    lab.end(me, commit=first)
    assert lab.end(me, commit=second).error is error


def test_an_end_without_a_transaction_is_refused(lab, me):
    """Rule (KIP-98): in the state Empty there is nothing to end; and nobody ends what an id never had."""
    assert lab.end(me).error is E.INVALID_TXN_STATE
    other = kafka.InitProducerIdResponse(correlation_id=0, error=E.NONE, producer_id=99, producer_epoch=0)
    assert lab.end(other).error is E.INVALID_PRODUCER_ID_MAPPING
    assert lab.add(other) is E.INVALID_PRODUCER_ID_MAPPING


def test_the_next_producer_fences_the_last_one(lab):
    """Rule (KIP-98): an open transaction is aborted in an epoch that nobody is given; the producer before is
    refused everywhere."""
    old = lab.init()
    lab.add(old)
    lab.produce(old, 1)
    assert lab.init().error is E.CONCURRENT_TRANSACTIONS
    new = lab.init()
    assert (new.producer_id, new.producer_epoch) == (old.producer_id, 2)
    assert lab.add(old) is E.PRODUCER_FENCED and lab.end(old).error is E.PRODUCER_FENCED
    assert lab.produce(old, 2, 1).error is E.INVALID_PRODUCER_EPOCH
    assert values_of(lab.read()) == (((old.producer_id, 0),), 2)


def test_a_producer_goes_on_after_an_error(lab, me):
    """Rule (KIP-360): who names its epoch gets the next one; so does its retry; who was fenced gets none."""
    mine = (me.producer_id, me.producer_epoch)
    assert lab.init(producer=mine).producer_epoch == 1
    assert lab.init(producer=mine).producer_epoch == 1
    assert lab.init().producer_epoch == 2
    assert lab.init(producer=mine).error is E.PRODUCER_FENCED


def test_used_up_epochs_give_another_id(lab, me):
    """Rule (KIP-360): the largest epoch is left for fencing."""
    known = lab.known()
    known.value = evolve(known.value, producer_epoch=EXHAUSTED)
    again = lab.init()
    assert again.producer_id != me.producer_id and again.producer_epoch == 0


def test_a_transaction_that_takes_too_long_is_aborted():
    """Rule (KIP-98): after its time-out, in the next epoch, so that its producer is fenced."""
    lab, me = ongoing()
    lab.rest(6_000)
    assert lab.known().phase is T.COMPLETE_ABORT and lab.known().value.producer_epoch == 1
    assert lab.end(me).error is E.PRODUCER_FENCED
    assert values_of(lab.read())[1] == 2


def test_an_id_that_nobody_uses_expires():
    """Rule (KIP-98): transactional.id.expiration.ms; its records are tombstones then."""
    lab = TransactionLab(transactions={"expiration_ms": 1_000, "expiration_check_ms": 200})
    lab.init()
    lab.rest(2_000)
    assert lab.core(1).transactions.coordinator.table.transactions == {}


def test_the_next_coordinator_knows_the_epoch_and_goes_on(lab, me):
    """Rule (KIP-98): a decided end is carried out by whoever loads it; epochs outlast their coordinator."""
    lab.add(me, OUT)
    lab.produce(me, 1)
    lab.ask(
        1,
        kafka.EndTxnRequest(
            correlation_id=lab.number(),
            transactional_id="a",
            producer_id=me.producer_id,
            producer_epoch=me.producer_epoch,
            commit=True,
        ),
    )
    while lab.known().phase is not T.PREPARE_COMMIT:
        lab.drop(kind=kafka.WriteTxnMarkersRequest)
        lab.advance(10)
        lab.settle()
        if lab.known().phase is T.COMPLETE_COMMIT:
            break
    lab.elect(2, 1).rest(1_000)
    assert lab.known(2).phase is T.COMPLETE_COMMIT
    assert lab.add(me, node=1) is E.NOT_COORDINATOR
    assert lab.init(2).producer_epoch == 1
    assert lab.add(me, node=2) is E.PRODUCER_FENCED


def test_an_ongoing_transaction_is_loaded():
    """Rule (KIP-98): its producer goes on at the next coordinator."""
    lab, me = ongoing()
    lab.elect(2, 1).rest(1_000)
    assert lab.known(2).phase is T.ONGOING and lab.known(2).value.partitions == (OUT,)
    assert lab.end(me, node=2).error is E.NONE
    lab.rest()
    assert values_of(lab.read())[1] == 2


def test_markers_are_sent_until_they_are_written():
    """Rule (KIP-98): a leader that is gone gets the marker when it is back."""
    lab, me = ongoing()
    lab.elect(2, 1, OUT)
    lab.end(me)
    lab.rest(1_000)
    assert lab.known().phase is T.COMPLETE_COMMIT
    assert [event.node for event in lab.recorded(Name.MARKER_WRITTEN)] == [2]


def test_a_marker_of_an_earlier_coordinator_is_refused(lab, me):
    """Rule (KIP-98): TRANSACTION_COORDINATOR_FENCED; so is one of an earlier producer epoch."""
    log = lab.partition(1, OUT).log
    log.append_marker(EndTransaction(commit=True, coordinator_epoch=5), me.producer_id, 3, 0, now_ms=1)

    def mark(coordinator: int, epoch: int):
        marker = kafka.TxnMarker(
            producer_id=me.producer_id,
            producer_epoch=epoch,
            commit=False,
            coordinator_epoch=coordinator,
            partitions=(OUT,),
        )
        request = kafka.WriteTxnMarkersRequest(correlation_id=lab.number(), marker=marker)
        return dict(lab.send(1, request).errors)[OUT]

    assert mark(4, 3) is E.TRANSACTION_COORDINATOR_FENCED
    assert mark(5, 2) is E.INVALID_PRODUCER_EPOCH
    assert mark(5, 3) is E.NONE
    assert [event.detail.count("error") for event in lab.recorded(Name.MARKER_REFUSED)] == [1, 1]


# ---- verification


def test_a_batch_that_comes_after_the_end_is_not_written():
    """Rule (KIP-890): the leader asks; the coordinator does not know the partition in this transaction."""
    lab, me = ongoing()
    lab.end(me, commit=False)
    assert lab.produce(me, 2, 1).error is E.TRANSACTION_ABORTABLE
    lab.add(me, TopicPartition("out", 0))
    assert lab.produce(me, 3, 1).error is E.NONE


def test_without_verification_it_begins_a_transaction_that_nobody_ends():
    """Rule (KIP-890): why the leader asks: the last stable offset stays where it is."""
    lab, me = ongoing(transactions={"verification": False})
    lab.end(me, commit=False)
    assert lab.produce(me, 2, 1).error is E.NONE
    lab.rest(10_000)
    assert values_of(lab.read())[1] == 2


def test_a_batch_that_was_refused_leaves_nothing(lab, me):
    """Rule (KIP-890): what a leader remembers of questions is gone with the answer that refuses."""
    assert lab.produce(me, 1).error is E.TRANSACTION_ABORTABLE
    verification = lab.core(1).transactions.verification
    assert (verification.guards, verification.waiting) == ({}, {})


@pytest.mark.parametrize("epoch", [-1, 1 << 15])
def test_an_epoch_that_no_batch_can_carry_is_refused(epoch):
    """Rule (KIP-98): epochs are int16; without verification nobody else looks at it."""
    lab = TransactionLab(transactions={"verification": False})
    request = kafka.TxnOffsetCommitRequest(
        correlation_id=lab.number(),
        transactional_id="a",
        producer_id=1,
        producer_epoch=epoch,
        group_id="g",
        offsets=(group_api.CommittedOffset(partition=OUT, offset=1),),
    )
    assert lab.send(1, request).error is E.INVALID_REQUEST


def test_an_answer_counts_for_the_transaction_that_it_was_asked_for(lab):
    """Rule (KIP-890): a marker between the question and its answer makes the answer worth nothing."""
    lab.elect(2, 1, OUT).rest()
    me = lab.init()
    lab.add(me)
    begin = len(lab.answers)
    late = lab.batch(me, 1)
    lab.ask(2, late)
    lab.deliver(source=2, target=1, kind=kafka.AddPartitionsToTxnRequest)
    held = [mail for mail in lab.mail if isinstance(mail.message, kafka.AddPartitionsToTxnResponse)]
    assert len(held) == 1
    lab.mail.remove(held[0])
    lab.end(me, commit=False)
    assert lab.known().phase is T.COMPLETE_ABORT
    lab.mail.append(held[0])
    lab.rest()
    assert lab._answer_to(late, begin).error is E.INVALID_TXN_STATE
    assert values_of(lab.read(2))[1] == 1


# ---- the second version


def test_the_second_version_bumps_the_epoch_with_every_transaction():
    """Rule (KIP-890): the leader adds the partition, EndTxn gives the next epoch, and what comes late is
    refused by the log itself."""
    lab = TransactionLab(transactions={"version": 2})
    me = lab.init()
    assert lab.produce(me, 1, adds=True).error is E.NONE
    assert lab.known().value.partitions == (OUT,)
    ended = lab.end(me, version=2)
    assert (ended.producer_id, ended.producer_epoch) == (me.producer_id, 1)
    assert lab.end(me, version=2).producer_epoch == 1
    assert lab.produce(me, 2, 1, adds=True).error is E.INVALID_PRODUCER_EPOCH
    assert lab.produce(ended, 2, adds=True).error is E.NONE
    assert lab.end(me, version=2).error is E.PRODUCER_FENCED


def test_the_second_version_gives_another_id_when_epochs_are_used_up():
    """Rule (KIP-890): the markers carry the largest epoch of the old id; a retry hears the same."""
    lab = TransactionLab(transactions={"version": 2})
    me = lab.init()
    known = lab.known()
    known.value = evolve(known.value, producer_epoch=EXHAUSTED)
    me = kafka.InitProducerIdResponse(
        correlation_id=0, error=E.NONE, producer_id=me.producer_id, producer_epoch=EXHAUSTED
    )
    assert lab.produce(me, 1, adds=True).error is E.NONE
    ended = lab.end(me, version=2)
    assert ended.error is E.NONE and ended.producer_id != me.producer_id and ended.producer_epoch == 0
    again = lab.end(me, version=2)
    assert (again.producer_id, again.producer_epoch) == (ended.producer_id, 0)
    assert values_of(lab.read())[1] == 2


@pytest.mark.parametrize(
    ("before", "late", "commit", "error"),
    [
        (None, False, False, E.NONE),
        (None, False, True, E.INVALID_TXN_STATE),
        (None, True, False, E.PRODUCER_FENCED),
        (False, False, False, E.NONE),
        (False, False, True, E.INVALID_TXN_STATE),
        (False, True, False, E.NONE),
        (False, True, True, E.INVALID_TXN_STATE),
        (True, False, False, E.NONE),
        (True, False, True, E.INVALID_TXN_STATE),
        (True, True, False, E.INVALID_TXN_STATE),
        (True, True, True, E.NONE),
    ],
)
def test_an_end_with_nothing_added_in_the_second_version(before, late, commit, error):
    """Rule (KIP-890, the table above TransactionCoordinator.endTransaction): an abort in the present epoch
    gives the next one; a retry, in the epoch before, hears what it heard. before: how the last transaction
    ended, None if there was none."""
    lab = TransactionLab(transactions={"version": 2})
    me = lab.init()
    if before is None:
        last, present = evolved(me, epoch=me.producer_epoch - 1), me
    else:
        assert lab.produce(me, 1, adds=True).error is E.NONE
        last, present = me, lab.end(me, commit=before, version=2)
    answer = lab.end(last if late else present, commit=commit, version=2)
    assert answer.error is error
    if error is E.NONE:
        # a retry hears the epoch that it heard; a new abort gets the one after the present
        assert answer.producer_epoch == present.producer_epoch + (0 if late else 1)
        assert lab.known().phase is (T.COMPLETE_COMMIT if late and commit else T.COMPLETE_ABORT)
        assert lab.produce(answer, 2, adds=True).error is E.NONE
        assert lab.end(answer, version=2).error is E.NONE
    else:
        assert lab.known().value.producer_epoch == present.producer_epoch


def test_an_abort_with_nothing_added_gives_another_id_when_epochs_are_used_up():
    """Rule (KIP-890): as after a transaction."""
    lab = TransactionLab(transactions={"version": 2})
    me = evolved(lab.init(), epoch=EXHAUSTED)
    lab.known().value = evolve(lab.known().value, producer_epoch=EXHAUSTED)
    ended = lab.end(me, commit=False, version=2)
    assert (ended.error, ended.producer_epoch) == (E.NONE, 0) and ended.producer_id != me.producer_id
    assert lab.end(me, commit=False, version=2).producer_id == ended.producer_id


def evolved(producer, epoch):
    """The same producer id in another epoch."""
    return kafka.InitProducerIdResponse(
        correlation_id=0, error=E.NONE, producer_id=producer.producer_id, producer_epoch=epoch
    )


@pytest.mark.parametrize(
    ("version", "opened", "error"),
    [(2, True, E.INVALID_PRODUCER_EPOCH), (2, False, E.NONE), (1, True, E.NONE)],
)
def test_a_late_marker_in_the_epoch_of_the_next_transaction(version, opened, error):
    """Rule (KIP-1228): in the second version it is refused, and the transaction stays open. With nothing open
    it is a repetition (KAFKA-19999). The first version cannot tell the two apart."""
    lab = TransactionLab(transactions={"version": 2})
    me = lab.init()
    assert lab.produce(me, 1, adds=True).error is E.NONE
    ended = lab.end(me, version=2)
    if opened:
        assert lab.produce(ended, 2, adds=True).error is E.NONE
    late = kafka.TxnMarker(
        producer_id=me.producer_id,
        producer_epoch=ended.producer_epoch,
        commit=True,
        coordinator_epoch=0,
        partitions=(OUT,),
        version=version,
    )
    answer = lab.send(1, kafka.WriteTxnMarkersRequest(correlation_id=lab.number(), marker=late))
    assert answer.errors == ((OUT, error),)
    is_open = lab.partition(1, OUT).log.producers.has_open_transaction(me.producer_id, ended.producer_epoch)
    assert is_open is (opened and version == 2)


def test_a_marker_carries_the_version_of_its_transaction():
    """Rule (KIP-1228): of the client that ended it, also where another coordinator sends it; an abort of a
    producer that was fenced has an epoch that nobody is given, and needs none."""
    lab = TransactionLab(transactions={"version": 2})
    sent = []
    writer = lab.core(1).transactions.writer
    lab.core(1)._handlers[kafka.WriteTxnMarkersRequest] = lambda source, request: (
        sent.append(request.marker.version),
        writer.write_markers(source, request),
    )
    me = lab.init()
    lab.produce(me, 1, adds=True)
    me = lab.end(me, version=2)
    lab.produce(me, 2, adds=True)
    lab.init()
    assert sent == [2, 0]


# ---- offsets


@pytest.mark.parametrize(("commit", "expected"), [(True, 5), (False, -1)])
def test_offsets_count_when_the_transaction_commits(commit, expected, lab, me):
    """Rule (KIP-447): until the marker they are unstable; then they count, or never were, also after a
    load."""
    assert lab.commit_offset(me, 5) is E.NONE
    assert lab.committed() is E.UNSTABLE_OFFSET_COMMIT and lab.committed(stable=False) == -1
    lab.end(me, commit=commit)
    assert lab.committed() == expected
    lab.elect(2, 1, OFFSETS).rest(1_000)
    assert lab.committed(2) == expected


def test_open_offsets_are_loaded(lab, me):
    """Rule (KIP-447): the next group coordinator waits for the marker as well."""
    lab.commit_offset(me, 5)
    lab.elect(2, 1, OFFSETS).rest(1_000)
    assert lab.committed(2) is E.UNSTABLE_OFFSET_COMMIT
    lab.end(me)
    lab.rest(1_000)
    assert lab.committed(2) == 5


def test_offsets_of_a_stranger_are_refused(lab, me):
    """Rule (KIP-447): who names a member must be one, in the present generation."""
    assert lab.commit_offset(me, 5, member_id="nobody", generation_id=1) is E.UNKNOWN_MEMBER_ID


def test_a_plain_batch_in_an_open_transaction_is_refused():
    """Rule (KIP-98): a producer writes in its transaction or not at all."""
    lab, me = ongoing()
    data = encode_batch(
        [Record(0, 1, None, b"2")],
        base_offset=0,
        leader_epoch=-1,
        producer_id=me.producer_id,
        producer_epoch=0,
        base_sequence=1,
    )
    request = ProduceRequest(correlation_id=lab.number(), partition=OUT, acks=-1, records=data, timeout=10**9)
    assert lab.send(1, request).error is E.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("name", "timeout_ms", "error"),
    [
        ("", 1_000, E.INVALID_REQUEST),
        ("x" * 40_000, 1_000, E.INVALID_REQUEST),
        ("a", 0, E.INVALID_TRANSACTION_TIMEOUT),
        ("a", 1_000_000, E.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_what_makes_no_sense_is_refused(name, timeout_ms, error, lab):
    """Rule (KIP-98): an id that no record can have, and a time-out that is none."""
    request = kafka.InitProducerIdRequest(
        correlation_id=lab.number(), transactional_id=name, transaction_timeout_ms=timeout_ms
    )
    assert lab.send(1, request).error is error


def test_an_unknown_partition_is_refused(lab, me):
    """Rule (KIP-98): a partition of which the coordinator has not heard gets no part in a transaction."""
    assert lab.add(me, TopicPartition("none", 0)) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert lab.partition(1, STATE).log.log_end_offset == 1
