"""What only a cluster with KRaft can be asked: the quorum of the metadata log, and eligible leader replicas.

Owns the questions. A broker that does not know them is not asked.
"""

from fencepost.asked.step import Part, Scope, Step, put, seen
from fencepost.asked.survey import Survey
from fencepost.asked.wire_only import DescribeQuorumRequest, DescribeTopicPartitionsRequest, QuorumReplica
from fencepost.traces.events import Question


def of_kraft(scope: Scope, survey: Survey) -> Part:
    """The quorum, of the first broker that answers, and every broker's eligible leaders.

    Args:
        scope: of the round.
        survey: which partitions are of interest.
    """
    for broker in scope.brokers:
        if not scope.speaks(broker, DescribeQuorumRequest):
            continue
        step = Step(broker=broker, question=Question.QUORUM, request=DescribeQuorumRequest(correlation_id=0))
        reply = yield from put(scope, step)
        if reply is not None:
            said = reply.message
            yield seen(
                scope,
                step,
                reply,
                leader=said.leader,
                leader_epoch=said.leader_epoch,
                high_watermark=said.high_watermark,
                replicas=tuple(sorted(one.node for one in said.voters)),
                detail={"replicas": [_replica(one) for one in (*said.voters, *said.observers)]},
            )
            break
    yield from _eligible(scope, survey)


def _replica(one: QuorumReplica) -> list[int]:
    return [one.node, one.log_end_offset, one.last_fetch_ms, one.last_caught_up_ms]


def _eligible(scope: Scope, survey: Survey) -> Part:
    """Only partitions with such replicas are of interest."""
    wanted = survey.of_interest()
    topics = tuple(sorted({key.topic for key in wanted}))
    for broker in scope.brokers if topics else ():
        if not scope.speaks(broker, DescribeTopicPartitionsRequest):
            continue
        request = DescribeTopicPartitionsRequest(correlation_id=0, topics=topics)
        step = Step(broker=broker, question=Question.ELIGIBLE, request=request)
        reply = yield from put(scope, step)
        for each in reply.message.partitions if reply is not None else ():
            if each.partition in wanted and (each.eligible or each.last_known):
                yield seen(
                    scope,
                    Step(broker=broker, question=Question.ELIGIBLE, request=request, key=each.partition),
                    reply,
                    leader=each.leader,
                    leader_epoch=each.leader_epoch,
                    isr=each.isr,
                    replicas=each.replicas,
                    detail={"eligible": each.eligible, "last_known": each.last_known},
                )
