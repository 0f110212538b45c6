"""`python -m tools.situations`: what the swarm reached, as (event or kind of request) x (state of the broker,
the replica, its log, the partition, the group).

Owns the count and the list of what was never reached. Must not judge. A request is counted as a broker
applied or refused it, with its kind. The states are those at the moment before the event, as earlier events
of the trace say them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import rich_click as click
from attrs import define, field

from fencepost.campaign.run.run import run
from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.swarm import swarm
from fencepost.console.options import SeedRange, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.events import Event, Name
from tools import program

UNKNOWN = "none"
BROKER = (
    *("NotRunning", "Starting", "RecoveringFromUncleanShutdown", "RunningAsBroker", "RunningAsController"),
    *("PendingControlledShutdown", "BrokerShuttingDown"),
)
REPLICA = ("leader", "follower", UNKNOWN)
PARTITION = ("led", "without a leader", "shrunk", "reassigned", UNKNOWN)
GROUP = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", UNKNOWN)
EMPTY, COMMITTED, TAIL, TRIMMED = "empty", "all committed", "with a tail that is not committed", "trimmed, "
LOG = (*(start + what for start in ("", TRIMMED) for what in (EMPTY, COMMITTED, TAIL)), UNKNOWN)
"""Of a replica's log; trimmed: it begins above offset 0."""
STATES: Mapping[str, tuple[str, ...]] = {
    "broker": BROKER, "replica": REPLICA, "partition": PARTITION, "group": GROUP, "log": LOG
}  # fmt: skip
REQUESTS = (Name.CONTROL_REQUEST_APPLIED, Name.CONTROL_REQUEST_REFUSED)
OF_GROUPS = (Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED, Name.GROUP_REMOVED)
OF_PARTITIONS = (
    *(Name.PARTITION_STATE, Name.ASSIGNMENT, Name.REASSIGNMENT, Name.BECAME_LEADER, Name.BECAME_FOLLOWER),
    *(
        Name.APPENDED,
        Name.TRUNCATED,
        Name.HIGH_WATERMARK,
        Name.ISR_PROPOSED,
        Name.ISR_UPDATED,
        Name.ISR_REFUSED,
    ),
    *(Name.LOG_START, Name.COMPACTED, Name.FETCH_REFUSED),
)
OF_LOGS = (
    *(Name.APPENDED, Name.TRUNCATED, Name.HIGH_WATERMARK, Name.LOG_START, Name.LOG_RECOVERED),
    *(Name.BECAME_LEADER, Name.BECAME_FOLLOWER),
)
"""Events that say where a log begins, ends and is committed."""
OF_BROKERS = (
    *(Name.CONTROLLER_ELECTED, Name.CONTROLLER_RESIGNED, Name.CONTROLLER_WRITE_REFUSED, Name.SESSION_EXPIRED),
    *(Name.LOG_DIRECTORY_FAILED, Name.IMPLEMENTATION_ERROR, Name.FAULT_BEGAN),
)


@define
class LogExtent:
    """Where a replica's log begins and ends, and up to where it is committed, as far as events say."""

    start: int = 0
    end: int = 0
    high_watermark: int = 0

    def learn(self, event: Event) -> None:
        """Take an event of this replica in; offsets that it does not say are -1."""
        if event.name is Name.APPENDED:
            self.end = max(event.offset + len(event.values), event.end_offset)
        elif event.name in (Name.TRUNCATED, Name.LOG_RECOVERED):
            self.end = event.offset
        if event.name is not Name.APPENDED and event.high_watermark >= 0:
            self.high_watermark = event.high_watermark
        if event.log_start_offset >= 0 and event.name in (Name.LOG_START, Name.LOG_RECOVERED):
            self.start = event.log_start_offset
            self.end = max(self.end, self.start)

    @property
    def state(self) -> str:
        """One of LOG."""
        what = EMPTY if self.end <= self.start else TAIL if self.high_watermark < self.end else COMMITTED
        return f"{TRIMMED if self.start else ''}{what}"


@define
class Situations:
    """What stands, and how often each (event, kind of state, state) came."""

    counts: Counter[tuple[str, str, str]] = field(factory=Counter)
    brokers: dict[int, str] = field(factory=dict)
    roles: dict[tuple[int, str | None, int], str] = field(factory=dict)
    partitions: dict[tuple[str | None, int], str] = field(factory=dict)
    groups: dict[str, str] = field(factory=dict)
    logs: dict[tuple[int, str | None, int], LogExtent] = field(factory=dict)

    def learn(self, events: Iterable[Event]) -> None:
        """Count one run's events."""
        self.brokers, self.roles, self.partitions, self.groups, self.logs = {}, {}, {}, {}, {}
        for event in events:
            self._count(event)
            self._follow(event)

    def _count(self, event: Event) -> None:
        name = (
            f"{event.name.value} {event.cause}"
            if event.name in (*REQUESTS, Name.FAULT_BEGAN)
            else event.name.value
        )
        if event.node >= 0 and event.name in (*REQUESTS, *OF_BROKERS, *OF_PARTITIONS):
            self.counts[name, "broker", self.brokers.get(event.node, BROKER[0])] += 1
        if event.name in OF_PARTITIONS:
            key = event.topic, event.partition
            self.counts[name, "partition", self.partitions.get(key, UNKNOWN)] += 1
            self.counts[name, "replica", self.roles.get((event.node, *key), UNKNOWN)] += 1
            extent = self.logs.get((event.node, *key))
            self.counts[name, "log", UNKNOWN if extent is None else extent.state] += 1
        if event.name in OF_GROUPS:
            self.counts[name, "group", self.groups.get(_group(event), UNKNOWN)] += 1

    def _follow(self, event: Event) -> None:
        key = event.topic, event.partition
        if event.name in OF_LOGS:
            self.logs.setdefault((event.node, *key), LogExtent()).learn(event)
        if event.name is Name.BROKER_STATE:
            self.brokers[event.node] = event.cause
        elif event.name is Name.BROKER_STARTED:
            self.brokers[event.node] = BROKER[1]
            self.roles = {place: role for place, role in self.roles.items() if place[0] != event.node}
        elif event.name in (Name.BECAME_LEADER, Name.BECAME_FOLLOWER):
            self.roles[event.node, *key] = "leader" if event.name is Name.BECAME_LEADER else "follower"
        elif event.name is Name.PARTITION_STATE:
            self.partitions[key] = "without a leader" if event.leader < 0 else "led"
        elif event.name is Name.ISR_PROPOSED and event.cause == "shrink":
            self.partitions[key] = "shrunk"
        elif event.name is Name.REASSIGNMENT:
            self.partitions[key] = "reassigned" if event.replicas else "led"
        elif event.name is Name.GROUP_PHASE:
            self.groups[_group(event)] = event.cause

    def never(self) -> list[tuple[str, str, str]]:
        """Pairs of an event that came in some state of a kind, and a state of that kind in which it never
        came."""
        kinds = sorted({(name, kind) for name, kind, _ in self.counts})
        return [
            (name, kind, state)
            for name, kind in kinds
            for state in STATES[kind]
            if not self.counts[name, kind, state]
        ]


def _group(event: Event) -> str:
    if event.name is Name.GROUP_REMOVED:
        return event.detail
    return str(msgspec.json.decode(event.detail).get("group", ""))


@click.command()
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default="everything", show_default=True)
@click.option("--seeds", type=SeedRange(), default="0:200", show_default=True, help="Seeds A:B.")
@json_option
def command(profile: str, seeds: range, as_json: bool) -> None:
    """Count in which states of brokers, replicas, logs, partitions and groups each event and request came,
    and list what never did."""
    output, situations = Output(as_json), Situations()
    with output.progress(profile, len(seeds)) as bar:
        for done, seed in enumerate(seeds, start=1):
            situations.learn(run(swarm(seed, profile)).events)
            bar.to(done)
    rows = table("event", "of", "state", ">times")
    for (name, kind, state), count in sorted(situations.counts.items()):
        add_row(rows, name, kind, state, count)
    output.say(rows, "")
    missing = table("never reached", "of", "state")
    for row in situations.never():
        add_row(missing, *row)
    output.say(missing)
    counted = [[*place, count] for place, count in sorted(situations.counts.items())]
    output.emit({"runs": len(seeds), "reached": counted, "never": situations.never()})


if __name__ == "__main__":
    program.run(command, "situations")
