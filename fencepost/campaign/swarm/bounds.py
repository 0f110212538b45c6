"""What a profile of the swarm is: bounds of what is drawn; and the kinds of fault by what they are drawn for.

Owns the shape of a profile. Must not know any profile (profiles.py), nor draw.
"""

from attrs import fields, frozen

from fencepost.run.faults.clocks import TIME_FAULTS
from fencepost.run.faults.group_requests import GROUP_REQUESTS
from fencepost.run.faults.link_faults import LINK_FAULTS
from fencepost.run.faults.operator_requests import ADMINISTRATION
from fencepost.run.faults.table import FAULTS

DISK = ("bit_rot", "clean_restart", "disk_full", "io_error", "lying_fsync", "slow_fsync")
"""Kinds of fault that the default profile leaves to the profile storage, so that its plans stay what they
were."""
WIDE = (*LINK_FAULTS, *TIME_FAULTS, "zookeeper_restart", "zookeeper_unreachable")
"""Kinds that older profiles leave to fencing, truncation and chaos, for the same reason."""
PROCESS_AND_NETWORK = tuple(
    sorted(set(FAULTS) - set(DISK) - set(WIDE) - set(ADMINISTRATION) - set(GROUP_REQUESTS))
)
REQUESTS = (*(kind for kind in ADMINISTRATION if kind != "alter_topic"), "clean_restart")
"""What operators do. Drawn apart from the faults, so that a plan without requests is what it was."""
ALL_REQUESTS = (*ADMINISTRATION, "clean_restart")
FENCING = (
    *(
        "bounce",
        "client_partition",
        "clock_drift",
        "clock_jump",
        "crash",
        "expire_session",
        "isolate_zookeeper",
    ),
    *("lose_zookeeper_replies", "majority_partition", "partition", "pause", "reordering", "ring_partition"),
    *("slow_host", "slow_link", "slow_zookeeper", "zookeeper_restart", "zookeeper_unreachable"),
)
TRUNCATION = (
    *("bounce", "crash", "expire_session", "isolate_zookeeper", "loss", "lying_fsync", "majority_partition"),
    *(
        "partition",
        "pause",
        "power_loss",
        "reordering",
        "ring_partition",
        "slow_fsync",
        "slow_host",
        "slow_link",
    ),
)
QUICK = ("crash", "bounce", "expire_session", "isolate_zookeeper", "loss", "partition", "pause", "slow_link")
"""What ends a leader or cuts it off."""


@frozen(kw_only=True)
class Profile:
    """Bounds of a swarm."""

    says: str
    # These and all other pairs are (least, most).
    safety_ms: tuple[int, int] = (20_000, 60_000)
    operations: tuple[int, int] = (30, 240)
    faults: tuple[int, int] = (0, 12)
    partitions: tuple[int, int] = (1, 4)
    clients: tuple[int, int] = (2, 5)
    # Kinds of faults, and of requests of operators, in the order of their draws.
    kinds: tuple[str, ...] = PROCESS_AND_NETWORK
    request_kinds: tuple[str, ...] = REQUESTS
    group_requests: tuple[str, ...] = tuple(GROUP_REQUESTS)
    # From here on, a single number is so many plans in a hundred.
    small_segments: int = 20
    retained: int = 10
    compacted: int = 0
    deletions: int = 0
    disks_lost: int = 25
    # Plans in a hundred with faults inside the steps of a broker's work on its files.
    file_steps: int = 0
    brokers: tuple[int, int] = (3, 3)
    administered: int = 0
    # Requests of operators in an administered plan.
    requests: tuple[int, int] = (1, 4)
    # Of a hundred administered plans, how many have topics with one replica.
    single: int = 0
    # Of a hundred administered plans, how many have a network that reorders most messages; and how many have
    # operators who ask again and again.
    stormy: int = 0
    restless: int = 0
    # Plans in a hundred whose clients append as pipelined producers, mostly idempotent ones.
    producers: int = 0
    # Plans in a hundred in which leadership moves faster than replicas can follow.
    quick: int = 0
    # Plans in a hundred with consumers in groups.
    groups: int = 0
    # Plans in a hundred with processes that consume, transform and produce in transactions.
    transactions: int = 0
    # Plans in a hundred whose topic lets a broker outside the ISR lead when nobody inside can.
    unclean: int = 0
    # Of the faults of quick elections, how many in a hundred follow a step of the protocol.
    followed: int = 0
    # Plans in a hundred in which several leaders in a row go as soon as they have written.
    relayed: int = 0
    # Plans in a hundred in which brokers fall silent before their sessions end.
    silenced: int = 0
    # Plans in a hundred in which disks fail for a moment while producers go on sending what was not answered.
    retried: int = 0
    # Plans in a hundred with a chain of faults that is drawn: this, and after it that, within so long.
    chained: int = 0
    # Plans in a hundred in which operators ask for the next thing while the last one is being carried out.
    hasty: int = 0
    # Of a hundred plans that delete a topic: how many create it again under the same name.
    names_again: int = 0
    # Of a hundred plans with groups: how many have consumers that only come and leave, with time between.
    # What a group does then has no excuse.
    gentle: int = 0
    # Of a hundred plans with groups: how many have names of any length and script, and one to five partitions
    # of __consumer_offsets, so that their hash matters.
    named: int = 0
    # Of a hundred plans with groups: how many have consumers that work for longer than a session between two
    # polls, so that others wait as long for them to join.
    busy: int = 0
    # Of a hundred plans with groups: how many have consumers that seek; that leave and join again in the same
    # process, and close in order; and that assign themselves their partitions and only commit in the group.
    seeking: int = 0
    resubscribing: int = 0
    standalone: int = 0
    # Of a hundred plans with groups: how many have operators who delete groups and their offsets, and remove
    # static members.
    managed: int = 0
    # Of a hundred plans with groups or transactions: how many have cooperative rebalances (KIP-429).
    cooperative: int = 0
    # Of a hundred plans with groups: how many have a second topic, and members that differ in their topics
    # and change them.
    subscriptions: int = 0
    # Plans in a hundred whose clients and consumers differ from each other, and have other options when they
    # come back.
    different: int = 0
    # Plans in a hundred whose topics take small batches only, and whose clients send larger ones, too.
    limited: int = 0
    # Plans in a hundred in which operators move the settings of topics up and down.
    moved_settings: int = 0
    # Plans in a hundred in which each fault comes when the cluster has got over the last one.
    lone: int = 0
    # Plans in a hundred with stretches of calm between bursts of faults, or without any fault.
    rests: int = 0
    # Plans in a hundred without faults, of a profile that is mixed.
    calm: int = 0
    # Of a hundred requests for an offset: how many ask for that of a time, or for the log start.
    other_ends: int = 0
    # Plans in a hundred with an index entry for about every other batch; else one segment has a few at most.
    indexed: int = 0
    # Of a real system: orders of the steps of a targeted schedule (schedules.py), to draw from.
    orders: tuple[str, ...] = ()
    # Whether each plan draws its own part of these features first (subset.py): a percentage is then the
    # chance that a plan has the feature.
    mixed: bool = False


PERCENTAGES = tuple(attribute.name for attribute in fields(Profile) if attribute.type is int)
