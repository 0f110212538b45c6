"""Where the leader epochs of a log end, as its leader says (OffsetForLeaderEpoch, KIP-101 and KIP-320); and
whether it refuses a request that names another leader epoch.

Owns the questions. Only leaders answer it, so that it compares no replicas.
"""

from typing import Any

from attrs import evolve

from fencepost.asked.step import NOBODY, Part, Reply, Scope, Step, error_of, seen
from fencepost.asked.survey import Survey
from fencepost.impl.messages.broker_api import EpochQuery, OffsetsForLeaderEpochRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Question

MOST_EPOCHS = 4
"""Of one partition in one round, the latest ones: an older one was asked for in an earlier round."""


def epoch_ends(scope: Scope, survey: Survey) -> Part:
    """Ask every leader for the end of its epoch, then of the latest epoch before the one that it names.

    Args:
        scope: of the round.
        survey: who leads, in which epoch.
    """
    for key in survey.of_interest():
        if survey.leader(key) != NOBODY and survey.partitions[key].leader_epoch >= 0:
            yield from _of_partition(scope, survey, key)


def _of_partition(scope: Scope, survey: Survey, key: TopicPartition) -> Part:
    """A leader of another epoch than the Metadata's refuses, so that all answers are of one reign."""
    leader, current = survey.leader(key), survey.partitions[key].leader_epoch
    ends: list[list[int]] = []
    whole: Reply | None = None
    wanted, error = current, ""
    refused = yield from _of_another_epoch(scope, key, leader, current + 1)
    while wanted >= 0 and len(ends) < MOST_EPOCHS:
        step = _step(key, leader, current, wanted)
        reply = yield step
        assert reply is not None, "a step is answered by a reply"
        if reply.skipped:
            break
        whole = reply if whole is None else evolve(whole, answered=reply.answered)
        end: Any = None
        if reply.message is not None:
            (end,) = reply.message.ends
        if error := error_of(evolve(reply, message=end)):
            break
        ends.append([wanted, end.epoch, end.end_offset])
        wanted = min(wanted, end.epoch) - 1
    if ends and current:
        refused += yield from _of_another_epoch(scope, key, leader, current - 1)
    if whole is not None:
        detail = {"ends": ends, **({"refused": refused} if refused else {})}
        said = {"detail": detail, "leader_epoch": current} if ends else {"error": error}
        yield seen(scope, step, whole, **said)


def _of_another_epoch(scope: Scope, key: TopicPartition, leader: int, epoch: int) -> Part:
    """Ask with another leader epoch, in a last round. Epochs only grow, so that a leader that serves the next
    one and then its own, or its own and then the last one, does not compare them.

    Returns:
        [epoch, error] if there was an answer.
    """
    if not scope.last:
        return []
    reply = yield _step(key, leader, epoch, epoch)
    if reply is None or reply.message is None:
        return []
    (end,) = reply.message.ends
    return [[epoch, error_of(evolve(reply, message=end))]]


def _step(key: TopicPartition, leader: int, current: int, wanted: int) -> Step:
    query = EpochQuery(partition=key, current_leader_epoch=current, asked_epoch=wanted)
    request = OffsetsForLeaderEpochRequest(correlation_id=0, replica_id=-1, queries=(query,))
    return Step(broker=leader, question=Question.EPOCHS, request=request, key=key, leader=leader)
