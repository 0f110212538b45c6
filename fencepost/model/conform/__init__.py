"""Recorded runs as behaviours of ReplicationTrace.tla: TLC decides what checkers/conformance decides in
Python.

- recorded_events.py: a trace's protocol events, partition by partition, as TLA+ values with small numbers
- validation.py: the generated module, one run of TLC for many partitions, and its answers
"""

from fencepost.model.conform.recorded_events import Recorded, recorded
from fencepost.model.conform.validation import ReplayAnswer, Validation, validate

__all__ = ["Recorded", "ReplayAnswer", "Validation", "recorded", "validate"]
