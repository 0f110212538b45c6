"""What the judges look at: everything that a scenario's clients, brokers and log said.

Owns the record of a run that is over. Must not know how it came about (scenario_run.py), or what is a bug
(judges.py).
"""

from collections.abc import Mapping

from attrs import field, frozen

from fencepost.checkers.liveness.serving import Serving
from fencepost.torture.at_brokers.heard import HeardCommit
from fencepost.torture.driver_process import Command, Event
from fencepost.torture.producing import Transaction
from fencepost.torture.scenario import Scenario
from fencepost.torture.truth import COMMITTED, Entry

AFTER_ROUNDS = 3
"""Most bursts to the healed cluster, half a second apart, while one of their appends fails."""
NEVER = 1 << 62
"""Later than any time of a run."""

Log = Mapping[str, tuple[Entry, ...]]
"""Records by partition, named as `t-0`."""


@frozen(kw_only=True)
class Outcome:
    """Everything that the judges look at."""

    scenario: Scenario
    # In the order in which they were sent.
    appends: tuple[Command, ...]
    # Those with an answer, by consumer.
    polls: Mapping[str, tuple[Command, ...]]
    commits: tuple[Command, ...]
    seeks: tuple[Command, ...] = ()
    flushes: tuple[Command, ...] = ()
    # Appends that were sent to the healed cluster, by round; also among the appends.
    after: tuple[tuple[Command, ...], ...] = ()
    # Polls with an answer of the reader that joins late, by client.
    read: Mapping[str, tuple[Command, ...]] = field(factory=dict)
    # When each of its clients was opened.
    opened: Mapping[str, int] = field(factory=dict)
    # Whether it got everything, if it began at the start.
    read_all: bool = True
    # Every OffsetCommit that brokers heard, in order.
    heard: tuple[HeardCommit, ...] = ()
    # Moments of the run, monotonic and by the brokers' record, in nanoseconds.
    clock: tuple[tuple[int, int], ...] = ()
    # When a client's request of its group had no clean answer: monotonic nanoseconds, client.
    troubles: tuple[tuple[int, str], ...] = ()
    # When a fault of requests struck a request, and whose: monotonic nanoseconds, client.
    struck: tuple[tuple[int, str], ...] = ()
    # When a broker answered a client's Fetch with OFFSET_OUT_OF_RANGE: monotonic nanoseconds, client,
    # partition, the offset.
    out_of_range: tuple[tuple[int, str, str, int], ...] = ()
    # When each partition served its clients, by the brokers' record; empty without a fault of LASTS_MS.
    serving: Mapping[str, tuple[Serving, ...]] = field(factory=dict)
    # Commands with which the application gave up what it reads, or chose other topics.
    asking: tuple[Command, ...] = ()
    # Members that were closed before the end.
    left: frozenset[str] = frozenset()
    # In the order in which they were begun.
    transactions: tuple[Transaction, ...] = ()
    # Producers that the application closed with appends under way.
    closed: frozenset[str] = frozenset()
    events: tuple[Event, ...]
    log: Log
    # The log of the copies.
    copies: Log = field(factory=dict)
    # Whether every committed record has a copy that was reported as committed, or there is no copier.
    copied: bool = True
    # Whether every record was delivered to the group, or there is none.
    drained: bool
    # Committed offset at the end, by partition; partitions without one are left out.
    committed: Mapping[str, int]
    # When that was asked for: automatic commits go on after it.
    committed_ns: int = NEVER
    # What clients sent that no broker can read, as the brokers say it.
    unreadable: tuple[str, ...] = ()
    # Since when a topic keeps what is acknowledged, monotonic, in nanoseconds: it was deleted, or lost the
    # end of a log. Other topics always do.
    renewed: Mapping[str, int] = field(factory=dict)
    # Why brokers may have lost acknowledged records, by their own record; empty: they may not.
    loss: str = ""
    # Why the driver could not be used any more; empty if it could.
    trouble: str = ""
    # Faults that happened, in words.
    hit: tuple[str, ...] = ()
    # How often each kind of fault struck each request, as `lose answer|Produce`.
    met: Mapping[str, int] = field(factory=dict)

    @property
    def waits_to_join(self) -> bool:
        """Whether an answer to JoinGroup never came: libraries wait for it as long as a rebalance may take
        (max.poll.interval.ms, five minutes by default)."""
        return any(kind.startswith("silence") and kind.endswith("|JoinGroup") for kind in self.met)

    def visible(self, entry: Entry) -> bool:
        """Whether a consumer of this run is to see the record."""
        return is_visible(self.scenario, entry)


def is_visible(scenario: Scenario, entry: Entry) -> bool:
    """Whether the scenario's consumers are to see this record of the log."""
    return entry.outcome in ("", COMMITTED) or scenario.consumer.get("isolation") != "read_committed"
