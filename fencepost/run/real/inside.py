"""What a system says of its inside after a run, as events of the trace.

Owns which systems say something, and that a run is judged without it where it cannot be read. Must not know
how it is read (systems/apache_kafka/inside).
"""

from collections.abc import Mapping

from attrs import frozen

from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.inside.together import Window, events_inside, sources_of
from fencepost.systems.apache_kafka.inside.unclean_elections import Election, elections_of
from fencepost.systems.system import System
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event


@frozen(kw_only=True)
class Inside:
    """What is known of the inside of a run."""

    events: tuple[Event, ...] = ()
    # Every change of a leader; None: only those that were seen from outside are known.
    elections: tuple[Election, ...] | None = None
    # Why nothing is known; empty: it is, or the system has no such record.
    missing: str = ""


def inside_of(system: System, since: int, topics: Mapping[str, str]) -> Inside:
    """What happened inside since the run began.

    Parameters:
      system: that was run in; it may still run.
      since: the run's beginning, nanoseconds of the wall clock.
      topics: the trace's name of each topic, by the cluster's.
    Returns: the events in the run's time, and the elections among them.
    """
    if not isinstance(system, ApacheKafka):
        return Inside()
    try:
        events = events_inside(sources_of(system), Window(since=since, topics=topics))
    except (FencepostError, OSError) as error:
        return Inside(missing=str(error))
    return Inside(events=events, elections=elections_of(events))
