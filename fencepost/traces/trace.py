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
    alone)."""

    # The profile of docs/spec/log-check.md that the judges apply: default, session, strong, content.
    check: str = "default"
    # Where loss is allowed; content inside is keyed by (leader epoch, offset).
    loss: tuple[LossRange, ...] = ()
    # Content is keyed by (leader epoch, offset) everywhere.
    content_by_epoch: bool = False
    # A record may be in the log twice (retries without idempotence).
    duplicates: bool = False
    # Every offset below the end belongs to a record that some client sent.
    dense: bool = False
    # Why the run was too weak to mean anything; "" if it was not.
    assumption_broken: str = ""
    # How far each clock's stamps may be wrong.
    clock_uncertainty_ns: int = 0
    # Why the claims are weaker than they could be.
    reasons: tuple[str, ...] = ()
    # Records below a claimed log start offset may be gone.
    retention: bool = False
    # Topics in which an older record of a key may be gone once a later one of that key is in the log, and a
    # tombstone at any time (keys and tombstones of records: docs/reference/traces.md).
    compacted: tuple[str, ...] = ()
    # A record that only its leader acknowledged may be lost. Runs with a plan need not say so.
    acks_1_may_lose: bool = False
    # How long the cluster may have been unable to do anything, as in an outage that is known. Milliseconds.
    # Ten minutes are far beyond session time-outs, elections and a client's refresh of its metadata.
    stall_ms: int = 600_000
    # How long a transaction may be open: transaction.max.timeout.ms. Milliseconds.
    transaction_timeout_ms: int = 900_000
    # For how long a broker remembers a producer that sends nothing: producer.id.expiration.ms, before it
    # transactional.id.expiration.ms. Milliseconds; Kafka's default is a day.
    producer_expiry_ms: int = 86_400_000
    # After which time a committed offset may be gone: offsets.retention.minutes. Milliseconds; -1: never.
    offsets_expiry_ms: int = -1


@frozen(kw_only=True)
class Trace:
    """One run."""

    # Unique within a campaign (its seed there).
    trace_id: int
    # JSON; "" for a foreign trace.
    plan: str = ""
    seed: int = 0
    # simulated, processes, or a foreign system's name.
    target: str = "simulated"
    # Version of the recorder.
    software_version: str = ""
    # How the trace was made: the swarm's profile, or the importer.
    profile: str = "default"
    # Digest of the canonical rows (traces/digest.py), hexadecimal; "": not computed.
    digest: str = ""
    claims: Claims = Claims()
    # Whether every record has a different value.
    unique_values: bool = True
    # Whether a process may have several operations in flight.
    concurrent_processes: bool = False
    operations: tuple[Operation, ...] = ()
    events: tuple[Event, ...] = ()


def name_of(name: str, life: int) -> str:
    """What a topic or group is called among all that used its name one after another: `orders`, `orders#2`.
    Kafka allows no `#` in the name of a topic.

    Args:
        name: as clients know it.
        life: from 0.
    """
    return f"{name}#{life + 1}" if life else name


def plain(name: str) -> str:
    """The name of a topic or group as clients know it.

    Args:
        name: as name_of returns it.
    """
    before, mark, number = name.rpartition("#")
    return before if mark and number.isdecimal() else name
