"""An embedded cluster in this process.

Owns how it starts and ends. Must not know what verbs mean.
"""

from typing import Any

from attrs import define, field

from fencepost.kafka.handle import KafkaCluster
from fencepost.kafka.hosted import HostedCluster, HostedRun, Settings
from fencepost.kafka.verbs import Verbs
from fencepost.systems import listeners  # noqa: F401 - early: its imports take half a second
from fencepost.traces.trace import Trace


@define(eq=False, kw_only=True, repr=False)
class ClusterHere(KafkaCluster):
    """Its loop has a thread of its own."""

    run: HostedRun
    """The run that hosts it, for tests that must look inside (docs/reference/embedded.md). Use it only
    through `run.cluster.system.do`."""
    _verbs: Verbs = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._verbs = Verbs(self.run)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        return getattr(self._verbs, verb)(**arguments)

    def close(self) -> None:
        """End it."""
        self._verbs.close()

    def _read_trace(self, *, end: bool) -> Trace:
        return self._verbs.trace(end=end)


def start_here(settings: Settings) -> ClusterHere:
    """Start a cluster in this process. Raises FencepostError."""
    run = HostedRun(plan=settings.plan, settings=settings)
    cluster = run.cluster
    assert isinstance(cluster, HostedCluster)
    cluster.system.start()
    cluster.system.do(run.begin)
    return ClusterHere(
        bootstrap_servers=cluster.system.bootstrap_servers() if settings.listen else "",
        brokers=cluster.broker_ids,
        run=run,
    )
