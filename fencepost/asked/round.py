"""One round of questions, from what every broker knows to what replicas hold.

Owns the order. Must not know how questions travel, or what follows from the answers. It changes nothing: no
FindCoordinator (which creates Kafka's own topics), no creation by Metadata, no replica id of a broker, no
fetch session, and never the controller's id, which is any broker's in each answer of Kafka with KRaft.
"""

from fencepost.asked.contents import contents
from fencepost.asked.coordinators import groups, reassignments, transactions
from fencepost.asked.kraft import of_kraft
from fencepost.asked.logs import log_directories, log_ends, producers
from fencepost.asked.step import Round, Scope
from fencepost.asked.stored import stored
from fencepost.asked.survey import Survey


def round_of(scope: Scope) -> Round:
    """All questions, one after the other.

    Args:
        scope: what is asked about.

    Returns:
        The round: it yields steps and events, and takes replies.
    """
    survey = Survey(scope)
    yield from survey.ask()
    yield from log_ends(scope, survey)
    yield from producers(scope, survey)
    yield from log_directories(scope)
    yield from groups(scope, survey)
    yield from transactions(scope, survey)
    yield from reassignments(scope)
    yield from stored(scope, survey)
    yield from of_kraft(scope, survey)
    if scope.last:
        yield from contents(scope, survey)
