"""A whole recorded run in memory: the row of `traces` with its operations and events."""

from attrs import frozen

from fencepost.traces.events import Event
from fencepost.traces.operations import Operation

SCHEMA_VERSION = 1


@frozen(kw_only=True)
class LossRange:
    """Offsets [start, end) of a partition whose loss the claims allow, and why."""

    topic: str
    partition: int
    start: int
    end: int
    reason: str


@frozen(kw_only=True)
class Claims:
    """What may be demanded of this trace, derived from options and recorded facts (never from the plan
    alone).

    check: the profile of docs/spec/log-check.md that the judges apply (default, session, strong, content).
    loss: ranges where loss is allowed; inside them, and wherever `content_by_epoch` is set, content is keyed
    by (leader epoch, offset). duplicates: a record may stand twice (retries without idempotence). dense:
    every offset below the end belongs to a record that some client sent. assumption_broken: why the run was
    too weak to mean anything ("" if it was not). clock_uncertainty_ns: how far each clock's stamps may err.
    retention: records below a log start offset that was claimed may be gone. compacted: topics where an older
    record of a key may be gone once a later one of that key stands, and a tombstone at any time (what a
    record's key is, and which are tombstones: docs/reference/traces.md).
    """

    check: str = "default"
    loss: tuple[LossRange, ...] = ()
    content_by_epoch: bool = False
    duplicates: bool = False
    dense: bool = False
    assumption_broken: str = ""
    clock_uncertainty_ns: int = 0
    reasons: tuple[str, ...] = ()
    retention: bool = False
    compacted: tuple[str, ...] = ()
    acks_1_may_lose: bool = False
    """A record that only its leader acknowledged may be lost. Runs with a plan need not say so."""


@frozen(kw_only=True)
class Trace:
    """One run. trace_id: unique within a campaign (its seed there); plan: JSON ("" for a foreign trace);
    target: simulated, processes, or a foreign system's name; digest: of the canonical rows
    (traces/digest.py), hexadecimal; profile: how the trace came to be (swarm profile or importer).
    """

    trace_id: int
    plan: str
    seed: int
    target: str = "simulated"
    software_version: str
    profile: str = "default"
    digest: str = ""
    claims: Claims = Claims()
    unique_values: bool = True
    concurrent_processes: bool = False
    operations: tuple[Operation, ...] = ()
    events: tuple[Event, ...] = ()
