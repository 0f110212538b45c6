"""What a round makes of answers, without any broker."""

import json
from functools import partial

from fencepost.asked.contents import _digests
from fencepost.asked.replica_contents import log_directories
from fencepost.asked.replica_reading import Extent
from fencepost.asked.round import Agenda, round_of
from fencepost.asked.step import Conversation, Scope
from fencepost.asked.stored import _groups
from fencepost.asked.survey import Survey
from fencepost.impl.coordinator.group_records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_key,
    encode_offset,
)
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.batch.header import read_header
from fencepost.impl.log.batch.record_batch import Record, encode_batch, read_records
from fencepost.impl.messages.admin_api import DescribeLogDirsResponse
from fencepost.impl.messages.broker_api import MetadataResponse, PartitionMetadata, TopicPartition
from fencepost.traces.events import NO_ROOM, Question
from fencepost.traces.kafka_names.outcomes import ErrorCode

T0 = TopicPartition("t", 0)


def held(round_, answer, **options):
    """The events of a round whose questions `answer(step)` answers; None: nobody does."""
    events = []
    conversation = Conversation(round=round_, **{"record": events.append, **options})
    step, now = conversation.begin(0), 0
    while step is not None:
        now += 10
        step = conversation.heard(answer(step), now)
    return events


def details(events):
    return [json.loads(event.detail) for event in events]


def nothing_there(step):
    """A broker without logs."""
    return DescribeLogDirsResponse(correlation_id=0, error=ErrorCode.NONE)


def test_one_lost_message_does_not_silence_a_broker():
    """Two silences one after the other do: the third question is not put."""
    silent = {1: 1, 2: 9}

    def answer(step):
        silent[step.broker] -= 1
        return None if silent[step.broker] >= 0 else nothing_there(step)

    scope = Scope(brokers=(1, 2, 1, 2, 1, 2))
    events = held(log_directories(scope), answer)
    assert [(event.node, "error" in event.detail) for event in events] == [
        (1, True),
        (2, True),
        (1, False),
        (2, True),
        (1, False),
    ]


def test_a_round_ends_when_there_is_no_room_for_its_rows():
    """The questions after it are not put."""
    rows = []
    held(
        log_directories(Scope(brokers=(1, 2, 3))),
        nothing_there,
        record=rows.append,
        room=lambda: len(rows) < 2,
    )
    assert [event.node for event in rows] == [1, 2]


def says_nothing(step):
    """A broker that refuses everything but DescribeLogDirs."""
    if step.question is Question.LOG_DIRECTORIES:
        return nothing_there(step)
    return DescribeLogDirsResponse(correlation_id=0, error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_what_was_not_asked_is_noted_and_asked_first_in_the_next_round():
    """A round out of room says so in one more row, which is an answer to nothing; the next round begins
    there, and the one after it as ever."""
    agenda = Agenda()
    scope = Scope(brokers=(1, 2))
    rounds = []
    for most in (3, 99, 99):
        rows = []
        room = partial(lambda rows, most: len(rows) < most, rows, most)
        held(round_of(scope, agenda), says_nothing, record=rows.append, room=room)
        rounds.append(rows)
    first, second, third = rounds
    note = first[-1]
    assert [event.cause for event in first[:-1]] == [Question.BROKERS, Question.BROKERS, "log_directories"]
    assert (note.cause, note.node) == ("log_directories", -1)
    said = json.loads(note.detail)
    assert said["error"] == NO_ROOM
    assert said["left_out"][0] == "log_directories" and "contents" not in said["left_out"]
    causes = [event.cause for event in second]
    assert causes[2:5] == ["log_directories", "log_directories", "reassignments"]
    assert not any(NO_ROOM in event.detail for event in (*second, *third))
    assert [event.cause for event in third] == causes


def test_a_round_without_room_from_the_start_says_so():
    """Also the survey may be what was left out."""
    rows = []
    held(round_of(Scope(brokers=(1,)), Agenda()), says_nothing, record=rows.append, room=lambda: False)
    (note,) = rows
    assert note.cause == Question.BROKERS and json.loads(note.detail)["left_out"][0] == "survey"


def test_what_access_rules_may_hide_is_marked():
    """An answer that is filtered in silence, where there may be rules; and one that was refused, anywhere."""
    (open_one,) = details(held(log_directories(Scope(brokers=(1,))), nothing_there))
    (guarded,) = details(held(log_directories(Scope(brokers=(1,), guarded=True)), nothing_there))
    assert "filtered" not in open_one and guarded["filtered"] is True
    refused = DescribeLogDirsResponse(correlation_id=0, error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (said,) = details(held(log_directories(Scope(brokers=(1,))), lambda step: refused))
    assert (said["error"], said["filtered"]) == ("CLUSTER_AUTHORIZATION_FAILED", True)


def view(leader, epoch, isr):
    """What a broker says of t-0."""
    part = PartitionMetadata(partition=T0, leader=leader, leader_epoch=epoch, replicas=(1, 2), isr=isr)
    return MetadataResponse(correlation_id=0, partitions=(part,), live_brokers=(1, 2, 3))


def test_the_highest_leader_epoch_decides_who_is_asked():
    """Brokers that say the same are one row, in whatever order they list an ISR; one that is behind is
    another."""
    answers = {1: view(1, 4, (1, 2)), 2: view(2, 5, (2, 1)), 3: view(2, 5, (1, 2))}
    survey = Survey(Scope(brokers=(1, 2, 3), topics=("t",)))
    events = held(survey.ask(), lambda step: answers[step.broker])
    assert survey.leader(T0) == 2 and survey.replicas(T0) == (1, 2)
    said = [event for event in events if event.cause == Question.PARTITION]
    assert sorted(
        (event.node, event.leader_epoch, json.loads(event.detail).get("same")) for event in said
    ) == [(1, 4, None), (2, 5, [3])]
    together = next(event for event in said if event.node == 2)
    assert (json.loads(together.detail)["asked"], together.time) == (10, 30)


# ---- records


def batch(offset, *pairs, producer_id=-1):
    """A batch of these keys and values, as it is read."""
    records = [Record(offset + number, 1, key, value) for number, (key, value) in enumerate(pairs)]
    more = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = encode_batch(records, base_offset=offset, leader_epoch=0, **(more if producer_id >= 0 else {}))
    header = read_header(data)
    return header, read_records(data, header)


def end(offset, producer_id, *, commit):
    """A marker, as it is read."""
    data = end_transaction_batch(
        EndTransaction(commit=commit, coordinator_epoch=0),
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=1,
    )
    header = read_header(data)
    return header, read_records(data, header)


def committed(offset):
    """A record of group g for t-0."""
    return encode_key(OffsetKey("g", T0)), encode_offset(OffsetValue(offset=offset))


def test_a_stored_offset_counts_once_its_transaction_is_committed():
    """Without a transaction at once; in one that aborts never; without a marker it is not decided. A
    tombstone is no value, and one that is not understood is no tombstone. Other groups are left out."""
    shelf = _groups(Scope(brokers=(1,)), ["g"])
    other = encode_key(OffsetKey("other", T0)), encode_offset(OffsetValue(offset=99))
    shelf.put(*batch(0, committed(1), other))
    shelf.put(*batch(2, committed(2), producer_id=7))
    shelf.put(*batch(3, committed(3), producer_id=8))
    shelf.put(*batch(4, committed(4), producer_id=9))
    shelf.put(*end(5, 7, commit=True))
    shelf.put(*end(6, 8, commit=False))
    shelf.put(*batch(7, (committed(0)[0], None), (committed(0)[0], b"\x00\x09new")))
    assert list(shelf.by_key) == [OffsetKey("g", T0)]
    assert [kept.row() for kept in shelf.by_key[OffsetKey("g", T0)]] == [
        [0, 1, -1, True],
        [2, 2, 7, True],
        [3, 3, 8, False],
        [4, 4, 9, None],
        [7, None, -1, True],
        [8, {"version": 9, "bytes": 5}, -1, True],
    ]
    assert GroupKey("g") not in shelf.by_key


def extent(*values, start=0):
    """What was read of a log with these values."""
    return Extent(
        batches=[batch(start + number, (b"k", value)) for number, value in enumerate(values)],
        start=start,
        end_offset=start + len(values),
    )


def test_ranges_of_two_replicas_differ_where_their_records_do():
    """They are cut at multiples of 64, and where all replicas begin and the first one ends."""
    values = [b"%d" % number for number in range(130)]
    whole = _digests(extent(*values), {5, 100})["ranges"]
    assert [one[:2] for one in whole] == [[0, 5], [5, 64], [64, 100], [100, 128], [128, 130]]
    short = _digests(extent(*values[5:100], start=5), {5, 100})["ranges"]
    assert short == whole[1:3]
    values[70] = b"lost"
    other = _digests(extent(*values), {5, 100})
    assert [one != before for one, before in zip(other["ranges"], whole, strict=True)] == [
        *(False, False, True, False, False)
    ]
    assert [offset for offset, _ in other["keys"].values()] == [129]
