"""Marks of real systems: those of the simulator that a real run records, and what faults and writes did to
each other.

Owns the table. Must not know systems or plans. What a real run records depends on its system: decisions of
controllers and what brokers log are there for Apache Kafka; faults and operations are there for all. Nobody
wrote down which order of faults leads where: the marks say what came of an order, and the campaign learns
from its runs (driver/steering.py).
"""

from fencepost.campaign.marks.event_history import EventHistory, fault_of, key_of
from fencepost.campaign.marks.marks import LEADERS_FALL, MARKS, Mark
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome

RECORDED = (
    *("bounced_unnoticed", "partition_without_leader", "unclean_election", "log_cut"),
    *("fetch_fenced", "fetch_of_the_future", "not_enough_replicas", "log_directory_failed"),
    "producer_epoch_raised",
)
"""Of the simulator's marks, those whose events and operations a run against Apache Kafka has, too."""
FALLS = (*LEADERS_FALL, "bounce", "clean_restart", "power_loss")


def _another_leader(past: EventHistory, event: Event) -> bool:
    known = past.observed_state.partition(key_of(event)).leader
    return event.leader >= 0 and known >= 0 and event.leader != known


def _alone(past: EventHistory, event: Event) -> bool:
    return len(event.isr) == 1 < len(past.observed_state.partition(key_of(event)).isr)


def _isr_grew(past: EventHistory, event: Event) -> bool:
    isr = past.observed_state.partition(key_of(event)).isr
    return bool(isr) and set(event.isr) > set(isr)


def _held(past: EventHistory) -> set[int]:
    """Brokers at which a fault lasts. Operators' requests and broken requests of clients are at none."""
    return {span.node for span in past.lasting.values() if span.node >= 0}


def _overlapped(past: EventHistory, event: Event) -> bool:
    return event.node >= 0 and bool(_held(past) - {event.node})


def _leader_struck(past: EventHistory, event: Event) -> bool:
    """The leader is hit while another replica of its partition is held."""
    held = _held(past) - {event.node}
    return any(
        known.leader == event.node >= 0 and held & {*known.isr, *known.replicas}
        for known in past.observed_state.partitions.values()
    )


def _replaced_meanwhile(past: EventHistory, event: Event) -> bool:
    span = past.lasting.get(fault_of(event))
    return span is not None and any(
        past.observed_state.partition(key).leader_epoch > epoch
        and past.observed_state.partition(key).leader != span.node
        for key, epoch in span.epochs.items()
    )


def _written_between(past: EventHistory, row: Operation) -> bool:
    """Acknowledged by a broker after a fault had begun at another one, and before one began at itself and the
    first had ended."""
    if row.function is not Function.APPEND or row.outcome is not Outcome.OK or row.completion_time is None:
        return False
    spans = [span for span in (*past.spans, *past.lasting.values()) if span.node >= 0]
    return any(
        other.node != row.node == own.node
        and other.begin <= row.invoke_time
        and row.completion_time <= own.begin <= other.end
        for own in spans
        for other in spans
    )


REAL_MARKS: tuple[Mark, ...] = (
    *(mark for mark in MARKS if mark.name in RECORDED),
    Mark(
        name="leader_changed",
        says="a partition got another leader",
        on=Name.PARTITION_STATE,
        seen=_another_leader,
        leads=FALLS,
    ),
    Mark(
        name="left_alone",
        says="an ISR shrank to one replica",
        on=Name.PARTITION_STATE,
        seen=_alone,
        leads=("partition", "slow_link", "pause", "crash"),
    ),
    Mark(
        name="isr_grew",
        says="a replica came back into an ISR",
        on=Name.PARTITION_STATE,
        seen=_isr_grew,
        leads=("partition", "pause", "crash"),
    ),
    Mark(
        name="faults_overlapped",
        says="a fault began at a broker while another one was held",
        on=Name.FAULT_BEGAN,
        seen=_overlapped,
        leads=("crash", "pause", "partition"),
    ),
    Mark(
        name="leader_struck",
        says="a leader was hit while another replica of its partition was held",
        on=Name.FAULT_BEGAN,
        seen=_leader_struck,
        leads=FALLS,
    ),
    Mark(
        name="replaced_meanwhile",
        says="a broker came back from a fault, and a partition of its replicas had got another leader since",
        on=Name.FAULT_ENDED,
        seen=_replaced_meanwhile,
        leads=FALLS,
    ),
    Mark(
        name="written_between",
        says="a leader acknowledged an append while another broker was held, and was hit before that one was "
        "back",
        row_predicate=_written_between,
        leads=("pause", "partition", "crash"),
    ),
    Mark(
        name="append_undecided",
        says="nobody knows what became of an append with acks=all",
        row_predicate=lambda past, row: (
            row.function is Function.APPEND and row.acks == -1 and row.outcome is Outcome.UNKNOWN
        ),
        leads=FALLS,
    ),
    Mark(
        name="append_sent_again",
        says="an append was acknowledged after several attempts",
        row_predicate=lambda past, row: (
            row.function is Function.APPEND and row.outcome is Outcome.OK and row.attempts > 1
        ),
        leads=FALLS,
    ),
    Mark(
        name="transaction_failed",
        says="a transaction could not be ended by its producer",
        row_predicate=lambda past, row: row.function is Function.TXN and bool(row.error),
        leads=("crash", "pause", "partition"),
        needs=("transactions",),
    ),
)
REAL_NAMES = tuple(mark.name for mark in REAL_MARKS)
