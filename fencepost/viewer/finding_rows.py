"""The findings of a page: what each is called, and the steps and records that convict.

Owns: which facts of a finding a page holds. Must not know drawing.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from fencepost.checkers.verdict import Finding
from fencepost.report.event_words import printable
from fencepost.traces.anomalies import ASSERTION_FAILED, BY_NAME, ONES_OWN
from fencepost.traces.trace import Trace
from fencepost.viewer.columns import exact
from fencepost.viewer.moments import Moments
from fencepost.viewer.replica_logs import Partition
from fencepost.viewer.tracks import Window

MOST_RECORDS = 100
"""Records of a finding that a page marks."""
LONGEST_TITLE = 120
"""Characters."""


@frozen(kw_only=True)
class FindingRows:
    """trace: of the findings. moments: its steps. partitions: numbers on the page, by name."""

    trace: Trace
    moments: Moments
    partitions: Mapping[Partition, int]

    def steps(self, finding: Finding, window: Window) -> list[int]:
        """The steps of a window that convict, ascending: of the finding's events, and of the answers (the
        invocations, where there is none) of its operations."""
        events = [
            self.moments.event[position]
            for position in finding.events
            if 0 <= position < len(self.trace.events)
        ]
        answers = [
            answer if (answer := self.moments.answer[index]) >= 0 else self.moments.invoke[index]
            for index in self._operations(finding)
        ]
        return sorted({window.inside(step) for step in [*events, *answers] if window.holds(step)})

    def row(self, finding: Finding, window: Window) -> dict[str, Any]:
        """A finding as a page has it. window: the steps that are shown."""
        anomaly = BY_NAME[finding.anomaly]
        topic = finding.topic
        number = -1 if topic is None else self.partitions.get((topic, finding.partition), -1)
        return {
            "anomaly": finding.anomaly,
            "title": title_of(finding),
            "check": printable(finding.check, 40),
            "definition": anomaly.definition,
            "breaks": anomaly.breaks,
            "expected": printable(finding.expected, 600),
            "seen": printable(finding.seen, 600),
            "partition": number,
            "offset": finding.offset,
            "records": [
                [self.partitions[topic, partition], offset]
                for topic, partition, offset in finding.places[:MOST_RECORDS]
                if (topic, partition) in self.partitions
            ],
            "operations": [exact(self.trace.operations[index].op_id) for index in self._operations(finding)],
            "steps": self.steps(finding, window),
        }

    def _operations(self, finding: Finding) -> list[int]:
        places = {operation.op_id: index for index, operation in enumerate(self.trace.operations)}
        return [places[op_id] for op_id in finding.operations if op_id in places]


def title_of(finding: Finding) -> str:
    """What a page begins with: the anomaly, or the assertion of a test that does not hold."""
    if finding.anomaly != ASSERTION_FAILED:
        return finding.anomaly.replace("_", " ")
    if finding.check == ONES_OWN:
        return f"not true: {printable(finding.expected, LONGEST_TITLE)}"
    return f"failed: {printable(finding.check, LONGEST_TITLE)}"
