"""What an embedded cluster recorded, kept because the test on it failed: trace, timeline and page.

Owns: when there is something to keep. Must not know how a run is kept (campaign/kept.py), or who asked.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.campaign.failure import TRACE
from fencepost.campaign.kept import keep_run
from fencepost.traces.errors import FencepostError

if TYPE_CHECKING:
    from fencepost.kafka.handle import KafkaCluster


ITSELF = "its own assertion or exception"
"""What failed of a test that says no more."""


def keep_kafka(kafka: "KafkaCluster", folder: Path, failure: str = "") -> str:
    """Keep the run so far, unless a judge has kept it already.

    Args:
        kafka: the cluster.
        folder: where to keep it.
        failure: what the test says, in a line.

    Returns:
        A sentence that says where it is, or why there is nothing.
    """
    if (folder / TRACE).exists():
        return ""
    try:
        return keep_run(kafka.trace(), None, folder, failure or ITSELF)
    except FencepostError as error:
        return f"nothing was kept of the cluster: {error}"
