"""The one table of anomalies: name, definition, the invariant it breaks, what implies it, and which wins.

Judges name their findings by this table only. When several anomalies hold for one trace, the one with the
lowest `rank` is the trace's name: shrinking keeps *that* anomaly.

Rows are in files by family: cluster_anomalies.py (brokers, controllers, replicas, files),
control_anomalies.py (ISR, assignments, deletions), liveness_anomalies.py (what must come true),
log_anomalies.py (one log), client_anomalies.py (consumers, producers, groups, models),
application_anomalies.py (what an application did with records).
"""

from fencepost.traces.anomalies.anomaly import Anomaly
from fencepost.traces.anomalies.application_anomalies import APPLICATION
from fencepost.traces.anomalies.client_anomalies import CLIENTS
from fencepost.traces.anomalies.cluster_anomalies import CLUSTER
from fencepost.traces.anomalies.control_anomalies import CONTROL
from fencepost.traces.anomalies.liveness_anomalies import LIVENESS
from fencepost.traces.anomalies.log_anomalies import LOGS

__all__ = ["ANOMALIES", "ASSERTION_FAILED", "BY_NAME", "ONES_OWN", "Anomaly", "first_by_rank"]

ASSERTION_FAILED = "assertion_failed"
"""The anomaly of every assertion of a test on a service; the check of the finding is the assertion's name."""
ONES_OWN = "assert_that"
"""The assertion that only its description tells from others."""

ANOMALIES: tuple[Anomaly, ...] = tuple(
    sorted(
        (*CLUSTER, *CONTROL, *LIVENESS, *LOGS, *CLIENTS, *APPLICATION),
        key=lambda anomaly: (anomaly.rank, anomaly.name),
    )
)

BY_NAME: dict[str, Anomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}


def first_by_rank(names: "set[str]") -> str | None:
    """The anomaly that names the trace: the lowest rank among `names`, the first in the alphabet among
    equals; None for an empty set."""
    return min(names, key=lambda name: (BY_NAME[name].rank, name), default=None)
