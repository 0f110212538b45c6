"""A history joined with log directories: each acknowledged record that is not where every replica has it."""

from audit_lab import Stamped, replica

from fencepost.audit.joined import MOST_REPORTED, join
from fencepost.audit.survey import AuditRequest, survey
from fencepost.traces.operations import Function, Operation, Outcome, Record


def batches(*values, first=0):
    stamped = Stamped(first)
    return [stamped.batch(b"%d" % value) for value in values]


def acknowledged(number, value, offset, outcome=Outcome.OK, topic="t"):
    return Operation(
        op_id=number,
        process=1,
        function=Function.APPEND,
        invoke_time=number,
        completion_time=number,
        outcome=outcome,
        acks=-1,
        topic=topic,
        partition=0,
        offset=offset,
        records=(Record(topic=topic, partition=0, offset=offset, value=value),),
    )


def joined(root, operations, brokers="123", **options):
    places = tuple((broker, root / broker) for broker in brokers)
    return join(survey(AuditRequest(places=places)), operations, **options)


def test_a_record_that_one_broker_has_is_named_with_it(tmp_path):
    """Acknowledged at 11, and on broker 3 only; another value is at its offset elsewhere."""
    common = list(range(100, 111))
    for broker, tail in (("1", [30]), ("2", [30]), ("3", [19, 30])):
        replica(tmp_path, broker, batches(*common, *tail))
    operations = [acknowledged(number, value, number) for number, value in enumerate([*common, 19])]
    operations += [acknowledged(50, 99, 40), acknowledged(51, 98, 41, Outcome.UNKNOWN)]
    found = joined(tmp_path, operations)
    assert found.sentences == [
        "v19, acknowledged at 11 of t-0, is on broker 3 only",
        "v99, acknowledged at 40 of t-0, is on no broker",
    ]
    assert (found.acknowledged, found.everywhere) == (13, 11)
    assert found.placements[0].lacking == ("1", "2")


def test_a_record_at_two_offsets_is_named_with_both(tmp_path):
    """A duplicate is where it was acknowledged, and elsewhere."""
    for broker in "12":
        replica(tmp_path, broker, batches(1, 2, 1))
    found = joined(tmp_path, [acknowledged(1, 1, 0), acknowledged(2, 2, 1)], "12")
    (one,) = found.sentences
    assert one == (
        "v1, acknowledged at 0 of t-0, is on broker 1 and 2; on broker 1 it is at 2; on broker 2 it is at 2"
    )


def test_topics_may_have_another_name_in_the_history(tmp_path):
    """A run has a fresh topic; other topics of the history are not looked for."""
    replica(tmp_path, "1", batches(7))
    operations = [acknowledged(1, 7, 0, topic="shown"), acknowledged(2, 8, 0, topic="other")]
    assert joined(tmp_path, operations, "1", names={"t": "shown"}).everywhere == 1
    assert joined(tmp_path, operations, "1").acknowledged == 0


def test_a_lost_tail_is_bounded(tmp_path):
    """A thousand are named, the others counted."""
    replica(tmp_path, "1", batches(1))
    operations = [acknowledged(number, number + 10, number) for number in range(MOST_REPORTED + 5)]
    found = joined(tmp_path, operations, "1")
    assert (len(found.placements), found.more, found.sentences[-1]) == (MOST_REPORTED, 5, "and 5 more")
