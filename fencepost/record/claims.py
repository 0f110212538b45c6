"""What may be demanded of a run, derived from its options and its recorded facts (docs/reference/claims.md).

Owns the rules from facts to claims. Must not switch a check off: a claim only says which offsets may be lost
and which anomaly is allowed.
"""

from fencepost.record.observed_state import UNCUT, UNHEARD, ObservedState
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Claims, LossRange

EVERYTHING = 1 << 62
"""An end above every offset: an unclean election may lose anything."""


def derive_claims(
    plan: Plan, observed_state: ObservedState, operations: tuple[Operation, ...], *, stuck: bool = False
) -> Claims:
    """The claims of a finished run. stuck: it never came up, or made no progress once the faults had ended:
    then it says something however little its clients got."""
    losses: dict[LossRange, None] = {}
    for loss in observed_state.losses:
        topic, partition = loss.key
        took = f"cut its log to {loss.start}"
        if loss.rewritten:
            took = f"took what a compaction had written anew below {loss.end} while the disk lied about syncs"
        if loss.cause == UNHEARD:
            took = f"moved the log start to {loss.end}, of which it had not heard"
        if loss.cause == UNCUT:
            took = f"had other records from {loss.start} to {loss.end}, and was not asked for them any more"
        reason = f"broker {loss.node} was in the ISR after {loss.cause} that {took}"
        losses[LossRange(topic=topic, partition=partition, start=loss.start, end=loss.end, reason=reason)] = (
            None
        )
    planned = {topic.name for topic in plan.cluster.topics if topic.unclean_leader_election}
    allowing = planned | observed_state.unclean_topics
    unclean = {key for key, known in observed_state.partitions.items() if known.unclean}
    for topic, partition in sorted(unclean | observed_state.unclean_before):
        if topic in allowing:
            reason = "a leader was elected outside the ISR"
            losses[LossRange(topic=topic, partition=partition, start=0, end=EVERYTHING, reason=reason)] = None
    duplicates = plan.client.retry_unknown
    reasons = [loss.reason for loss in losses]
    if duplicates:
        reasons.append("the producer retries appends of unknown outcome without idempotence")
    if plan.client.producer.idempotent and observed_state.started_over:
        duplicates = True
        reasons.append(
            "a replica began at its leader's log start: it never heard of producers whose batches were "
            "deleted"
        )
    by_plan = [topic.name for topic in plan.cluster.topics if "compact" in topic.cleanup_policy]
    compacted = (*by_plan, *sorted(observed_state.compacted_topics - set(by_plan)))
    of_clients = [name for name in compacted if name not in INTERNAL_TOPICS]
    if observed_state.retained:
        reasons.append("retention, or a client, deleted records from the beginning of a log")
    if compacted:
        reasons.append(f"compaction keeps the latest record of a key only: {', '.join(compacted)}")
    return Claims(
        loss=tuple(losses),
        duplicates=duplicates,
        dense=not (
            duplicates or losses or of_clients or observed_state.retained or plan.cluster.has_transactions
        ),
        assumption_broken="" if stuck else _too_weak(plan, operations, observed_state.retained),
        reasons=tuple(dict.fromkeys(reasons)),
        retention=observed_state.retained,
        compacted=compacted,
    )


def _too_weak(plan: Plan, operations: tuple[Operation, ...], retained: bool) -> str:
    """Why nothing can be concluded from this run; "" if something can. retained: whether records were deleted
    from the beginning of a log; then a read that found none says what the log held."""
    if not any(planned.function == "append" and planned.acks == ACKS_ALL for planned in plan.operations):
        return ""
    acknowledged = any(
        operation.function is Function.APPEND
        and operation.acks == ACKS_ALL
        and operation.outcome is Outcome.OK
        for operation in operations
    )
    if not acknowledged:
        return "no append with acks=all was ever acknowledged"
    if not any(
        operation.function is Function.POLL
        and (operation.records or (retained and operation.outcome is Outcome.OK))
        for operation in operations
    ):
        return "no read ever returned a record"
    return ""
