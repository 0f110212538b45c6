"""A finding and the trace that is its example."""

from attrs import frozen

from fencepost.checkers.verdict import Finding


@frozen(kw_only=True)
class Sample:
    """The smallest trace found with an anomaly."""

    # the folder of traces that it is in, and its number there
    source: str
    trace_id: int
    # how many the trace has: the measure of small
    operations: int
    finding: Finding
    # the command that shows it again
    replay: str
    # a line for each convicting operation or event
    proof: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, str, int]:
        """Orders samples, so that the choice does not depend on the order of tasks."""
        return self.operations, self.source, self.trace_id
