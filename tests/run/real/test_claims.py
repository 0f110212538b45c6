"""Claims of real runs: an unclean election allows loss from its epoch on and nowhere else."""

from attrs import evolve, frozen

from fencepost.record.claims import EVERYTHING
from fencepost.run.real.claims import claims_of_run, demanded, loss_of
from fencepost.run.real.power import lost_power, of_run
from fencepost.sim.disk_logs import LogOnDisk
from fencepost.systems.system import PowerLost
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClientOptions, ClusterOptions, Plan, TopicOptions

KEY = ("t", 0)
READER = 9
UNCLEAN = Plan(seed=1, cluster=ClusterOptions(topics=(TopicOptions(unclean_leader_election=True),)))


@frozen(kw_only=True)
class Election:
    """A change of leader."""

    key: tuple[str, int] = KEY
    leader: int = 2
    leader_epoch: int = 3
    clean: bool = False
    start_offset: int = -1


def read(process, *records, op_id=1):
    """A poll that returned (offset, leader epoch)."""
    return Operation(
        op_id=op_id,
        process=process,
        function=Function.POLL,
        invoke_time=1,
        completion_time=2,
        outcome=Outcome.OK,
        topic="t",
        partition=0,
        records=tuple(
            Record(topic="t", partition=0, offset=offset, value=offset, leader_epoch=epoch)
            for offset, epoch in records
        ),
    )


def append(acks=-1, attempts=1):
    """An acknowledged append."""
    return Operation(
        op_id=100,
        process=1,
        function=Function.APPEND,
        invoke_time=1,
        completion_time=2,
        outcome=Outcome.OK,
        topic="t",
        partition=0,
        acks=acks,
        offset=0,
        attempts=attempts,
        records=(Record(topic="t", partition=0, offset=0, value=1),),
    )


def claims(plan, operations, elections, **given):
    """The claims of a run."""
    options = {"reader": READER, "stuck": False, "may_repeat": True, **given}
    return claims_of_run(plan, tuple(operations), elections, **options)


def test_loss_begins_with_the_first_record_of_the_epoch():
    """As the final read has it, or, if no record of the epoch is left, at the end of the log."""
    final = read(READER, (0, 1), (1, 1), (2, 3), (3, 3))
    assert loss_of(Election(), [final], READER).start == 2
    assert loss_of(Election(leader_epoch=9), [final], READER).start == 4
    assert loss_of(Election(), [], READER).start == 0
    assert loss_of(Election(), [final], READER).end == EVERYTHING


def test_what_the_new_leader_said_of_its_epoch_comes_first():
    """The cluster's own record is better than what is left at the end."""
    final = read(READER, (0, 1), (1, 5))
    assert loss_of(Election(start_offset=1), [final], READER).start == 1
    assert loss_of(Election(start_offset=0), [final], READER).start == 0


def test_loss_begins_earlier_where_the_new_leader_had_skipped_an_epoch():
    """Broker 2 kept a tail of epoch 1 that epoch 2 had replaced: records of epoch 2 below its end are lost,
    too."""
    earlier = read(4, (0, 1), (1, 2), (2, 2))
    final = read(READER, (0, 1), (1, 1), (2, 1), (3, 3), op_id=2)
    assert loss_of(Election(), [earlier, final], READER).start == 1


def test_only_elections_outside_the_isr_in_a_topic_that_allows_them_excuse_a_loss():
    """A clean election loses nothing, and a topic that forbids unclean ones has no excuse."""
    history = [append(), read(READER, (0, 1))]
    assert not claims(UNCLEAN, history, [Election(clean=True)]).loss
    assert not claims(Plan(seed=1), history, [Election()]).loss
    (loss,) = claims(UNCLEAN, history, [Election()]).loss
    assert (loss.topic, loss.partition, loss.start) == ("t", 0, 1)
    assert not claims(UNCLEAN, history, [Election()]).dense


def test_power_losses_excuse_the_partitions_that_lost_as_many_replicas_as_acknowledge():
    """Kafka acknowledges before it syncs, on min.insync.replicas brokers: while one of them keeps its power,
    what is acknowledged is kept (KIP-966)."""
    history = [append(), read(READER, (0, 1))]

    def losses(copies, nodes):
        topic = TopicOptions(min_insync_replicas=copies)
        plan = Plan(seed=1, cluster=ClusterOptions(topics=(topic,)))
        return claims(plan, history, [], power_lost={("t", 0): nodes}).loss

    (loss,) = losses(1, {2: (0, EVERYTHING)})
    assert (loss.topic, loss.partition, loss.start) == ("t", 0, 0) and "broker 2 lost power" in loss.reason
    assert not losses(2, {2: (0, EVERYTHING)}) and not losses(1, {})
    (loss,) = losses(2, {3: (4, 9), 2: (6, 7)})
    assert "brokers 2, 3 lost power" in loss.reason and (loss.start, loss.end) == (4, 9)


def test_what_a_disk_held_when_the_power_failed_is_not_excused():
    """Rule: everything that was written had been synced, so that nothing may be lost; where a disk said
    nothing of a loss, everything may."""
    topic = TopicOptions(min_insync_replicas=1)
    plan = Plan(seed=1, cluster=ClusterOptions(topics=(topic,)))
    history = [append(), read(READER, (0, 1))]
    off = [Event(time=5, name=Name.FAULT_BEGAN, node=2, cause="power_loss")]

    def lost(*logs):
        said = tuple(of_run([PowerLost(time=12, broker=2, logs=logs)], 10, {"run-t": "t"}))
        assert [event.time for _, event in said] == [2] * len(said)
        return claims(plan, history, [], power_lost=lost_power(plan, off, said, {("t", 0): (1, 2, 3)})).loss

    def log(end, written, name="run-t"):
        return LogOnDisk(topic=name, partition=0, end=end, end_over_gaps=end, written=written)

    assert lost(log(7, 7)) == ()
    (loss,) = lost(log(4, 7))
    assert (loss.start, loss.end) == (4, 7)
    (loss,) = lost(log(4, -1))
    assert (loss.start, loss.end) == (4, EVERYTHING)
    (loss,) = lost(log(7, 7, "other"))
    assert (loss.start, loss.end) == (0, EVERYTHING)


def test_duplicates_are_allowed_only_where_something_was_sent_again():
    """A producer that may retry without idempotence, and did."""
    plan = Plan(seed=1, client=ClientOptions(retry_unknown=True))
    history = [append(), read(READER, (0, 1))]
    assert claims(plan, history, []).duplicates
    assert not claims(plan, history, [], may_repeat=False).duplicates
    assert not claims(Plan(seed=1), history, []).duplicates


def test_a_control_is_judged_as_if_kafka_promised_it():
    """Each control takes its own excuse away, and no other."""
    plan = evolve(UNCLEAN, client=ClientOptions(retry_unknown=True))
    weak = claims(plan, [append(acks=1), append(), read(READER, (0, 1))], [Election()])
    assert weak.acks_1_may_lose and weak.loss and weak.duplicates
    assert "acks=1 acknowledges what was not replicated" in weak.reasons
    assert not demanded(weak, "acks-1").acks_1_may_lose and demanded(weak, "acks-1").loss
    assert not demanded(weak, "unclean").loss and demanded(weak, "unclean").duplicates
    assert not demanded(weak, "min-isr-1").loss
    assert not demanded(weak, "duplicates").duplicates and demanded(weak, "duplicates").loss
    assert demanded(weak, "") == weak
