"""One round of questions, from what every broker knows to what replicas hold.

Owns the order, and where the next round goes on if there was no room for all of it. Must not know how
questions travel, or what follows from the answers. It changes nothing: no FindCoordinator (which creates
Kafka's own topics), no creation by Metadata, no replica id of a broker, no fetch session, and never the
controller's id, which is any broker's in each answer of Kafka with KRaft.
"""

from collections import deque
from collections.abc import Callable

import msgspec
from attrs import define, field

from fencepost.asked.contents import contents
from fencepost.asked.coordinators import groups, reassignments, settings, transactions
from fencepost.asked.epoch_ends import epoch_ends
from fencepost.asked.kraft import of_kraft
from fencepost.asked.replica_contents import log_directories, log_ends, producers
from fencepost.asked.step import NOBODY, OutOfRoomError, Part, Round, Scope
from fencepost.asked.stored import stored
from fencepost.asked.survey import Survey
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import NO_ROOM, Event, Name

SURVEY, CONTENTS, SETTINGS = "survey", "contents", "settings"
PARTS: dict[str, Callable[[Scope, Survey], Part]] = {
    SETTINGS: settings,
    "groups": groups,
    "transactions": transactions,
    "log_ends": log_ends,
    "epoch_ends": epoch_ends,
    "producers": producers,
    "log_directories": lambda scope, survey: log_directories(scope),
    "reassignments": lambda scope, survey: reassignments(scope),
    "stored": stored,
    "of_kraft": of_kraft,
    CONTENTS: contents,
}
"""After the survey, in this order: what is a few rows comes first."""
OF_A_RUN = frozenset(PARTS) - {SETTINGS}
"""A run knows the settings of its topics."""


@define(eq=False)
class Agenda:
    """What one round of a run leaves to the next one."""

    # Names of PARTS: that which was not asked comes first.
    order: deque[str] = field(factory=lambda: deque(PARTS))
    # Where the logs of replicas begin, as they said last.
    log_starts: dict[tuple[TopicPartition, int], int] = field(factory=dict)


def round_of(scope: Scope, agenda: Agenda) -> Round:
    """All questions, one after the other, until there is no room for their rows. Then one row says what was
    not asked: an answer to nothing, so that nothing follows from what is missing.

    Args:
        scope: what is asked about.
        agenda: of the run.

    Returns:
        The round: it yields steps and events, and takes replies.
    """
    survey = Survey(scope, log_starts=agenda.log_starts)
    parts = OF_A_RUN if scope.parts is None else scope.parts
    left = deque(name for name in agenda.order if name in parts and (scope.last or name != CONTENTS))
    left.appendleft(SURVEY)
    try:
        yield from survey.ask()
        left.popleft()
        while left:
            yield from PARTS[left[0]](scope, survey)
            left.popleft()
        agenda.order = deque(PARTS)
    except OutOfRoomError as out:
        if left[0] != SURVEY:
            agenda.order.rotate(-agenda.order.index(left[0]))
        yield Event(
            time=out.now,
            name=Name.ASKED,
            node=NOBODY,
            cause=out.question,
            detail=msgspec.json.encode({"asked": out.now, "error": NO_ROOM, "left_out": list(left)}).decode(),
        )
