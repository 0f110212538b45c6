"""What no ordinary client sees of a cluster, asked by its own protocol: who leads and what each replica has,
groups and transactions as their coordinators know them and as they are stored.

A round (round.py) asks one broker after the other. It is sans-IO and knows the core's messages only, so that
the simulated network (simulated.py) and Kafka's wire (kafka.py) carry the same questions.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fencepost.traces.events import Event

if TYPE_CHECKING:
    from fencepost.wire.client import Access


def ask(
    bootstrap: str,
    topics: Iterable[str] = (),
    groups: Iterable[str] = (),
    transactional_ids: Iterable[str] = (),
    *,
    access: "Access | None" = None,
    guarded: bool = True,
) -> tuple[Event, ...]:
    """Ask any cluster once, with the content of its replicas, and change nothing in it.

    Args:
        bootstrap: host:port, several with commas between them.
        topics: to ask about; others are left out of every answer.
        groups: of consumers.
        transactional_ids: of producers.
        access: TLS and login; None: neither.
        guarded: whether access rules may hide something from this user.

    Returns:
        What was seen: events ASKED, with times in nanoseconds since the first question.

    Raises:
        EnvironmentError_: if no bootstrap server answers.
        PlanError: if `bootstrap` is none.
    """
    from fencepost.asked.kafka import ask_cluster  # needs the extra kafka; the simulation does not
    from fencepost.wire.client import Access

    return ask_cluster(
        bootstrap, topics, groups, transactional_ids, access=access or Access(), guarded=guarded
    )
