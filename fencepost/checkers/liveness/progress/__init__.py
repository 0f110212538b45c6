"""Progress in a history of clients alone: what must move on, and what a broker cannot refuse.

Owns the list of these rules. Each needs client operations and claims only, so that a foreign history is asked
too. A trace with settings is judged by rows/, which know its faults. A cluster that could do nothing for
longer than the claim `stall_ms` would be convicted: it is the claim of an outage that is known.
"""

from collections.abc import Callable, Iterator

from fencepost.checkers.liveness.progress.answers import Client, client_of
from fencepost.checkers.liveness.progress.refusals import offsets_stay_unstable, sequences_refused
from fencepost.checkers.liveness.progress.standing import (
    consumers_starved,
    high_watermarks_stand,
    last_stable_offsets_stand,
)
from fencepost.checkers.verdict import Finding
from fencepost.traces.trace import Trace

_RULES: tuple[Callable[[Client], Iterator[Finding]], ...] = (
    last_stable_offsets_stand,
    high_watermarks_stand,
    consumers_starved,
    sequences_refused,
    offsets_stay_unstable,
)


def progress_findings(trace: Trace) -> tuple[Finding, ...]:
    """What did not go on in a trace: at most one finding of each rule and log.

    Args:
        trace: its operations and claims are read.
    """
    client = client_of(trace)
    return tuple(finding for rule in _RULES for finding in rule(client))
