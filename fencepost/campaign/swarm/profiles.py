"""The profiles of the swarm: bounds of what it draws, by name.

Owns the table. Must not draw.
"""

from attrs import evolve

from fencepost.campaign.marks.marks import NAMES
from fencepost.campaign.swarm.bounds import (
    ALL_REQUESTS,
    DISK,
    FENCING,
    PROCESS_AND_NETWORK,
    QUICK,
    TRUNCATION,
    WIDE,
    Profile,
)
from fencepost.campaign.swarm.mark_weights import with_mark_weights
from fencepost.run.faults.operator_requests import ADMINISTRATION
from fencepost.run.faults.table import FAULTS
from fencepost.traces.errors import FencepostError, unknown_name

ELECTIONS = Profile(
    says="quick elections: short sessions, brokers far apart, faults within round trips of each other that "
    "mostly hit leaders",
    safety_ms=(15_000, 40_000),
    operations=(150, 400),
    faults=(10, 60),
    partitions=(1, 1),
    kinds=QUICK,
    small_segments=0,
    retained=0,
    disks_lost=0,
    brokers=(3, 5),
    quick=100,
)
PROFILES: dict[str, Profile] = {
    "default": Profile(
        says="everything at random, operators in a third of the plans: the profile that a change must "
        "survive",
        administered=35,
    ),
    "everything": Profile(
        says="the one swarm: each plan has a random part of all features, kinds of fault, workloads and "
        "schedules that the other profiles have",
        operations=(30, 300),
        faults=(1, 16),
        kinds=PROCESS_AND_NETWORK + DISK + WIDE,
        request_kinds=ALL_REQUESTS,
        retained=45,
        compacted=45,
        deletions=35,
        disks_lost=30,
        administered=50,
        requests=(1, 8),
        single=12,
        stormy=10,
        restless=15,
        producers=35,
        quick=22,
        followed=60,
        groups=35,
        gentle=25,
        named=40,
        busy=15,
        unclean=10,
        relayed=7,
        silenced=8,
        retried=7,
        lone=18,
        hasty=45,
        names_again=33,
        rests=90,
        calm=6,
        transactions=25,
        other_ends=40,
        indexed=40,
        mixed=True,
    ),
    "reassignment": Profile(
        says="operators at work: replicas move, topics come, grow and go, brokers stop cleanly, while "
        "controllers fail",
        faults=(1, 14),
        partitions=(1, 3),
        brokers=(3, 4),
        administered=100,
        requests=(1, 12),
        single=20,
        stormy=25,
        restless=20,
    ),
    "storage": Profile(
        says="small segments, retention, compaction with keys, deleted records, clean and unclean restarts, "
        "disks that fail",
        operations=(60, 400),
        partitions=(1, 3),
        kinds=PROCESS_AND_NETWORK + DISK,
        small_segments=100,
        retained=70,
        compacted=45,
        deletions=30,
        disks_lost=50,
    ),
    "producer": Profile(
        says="pipelined producers, mostly idempotent: batches, several in flight, small segments, logs that "
        "forget and compact",
        operations=(60, 400),
        partitions=(1, 3),
        kinds=(*PROCESS_AND_NETWORK, "clean_restart", "io_error"),
        small_segments=60,
        retained=20,
        compacted=20,
        deletions=35,
        disks_lost=40,
        producers=100,
    ),
    "elections": ELECTIONS,
    "races": evolve(
        ELECTIONS,
        says="quick elections whose faults follow steps of the protocol: an election, an ISR change, a "
        "truncation; and a broker that is always late",
        followed=95,
    ),
    "relays": evolve(
        ELECTIONS,
        says="several leaders in a row go when they have just written, or a log was just cut, before the "
        "one broker that is always late has heard of it",
        safety_ms=(25_000, 45_000),
        operations=(250, 400),
        kinds=("crash", "expire_session", "slow_link"),
        brokers=(4, 5),
        quick=0,
        relayed=100,
    ),
    "silences": evolve(
        ELECTIONS,
        says="a follower, then one leader after another is cut off within a round trip of a step of the "
        "protocol, and loses its session a little later",
        safety_ms=(25_000, 45_000),
        operations=(250, 400),
        kinds=("partition", "expire_session", "slow_link"),
        brokers=(4, 5),
        quick=0,
        silenced=100,
    ),
    "retries": Profile(
        says="disks fail for a moment within an append; a broker that halts is soon back, and producers send "
        "again what was not answered",
        safety_ms=(25_000, 45_000),
        operations=(250, 400),
        faults=(8, 40),
        partitions=(1, 1),
        kinds=("io_error",),
        small_segments=100,
        retained=0,
        disks_lost=0,
        producers=100,
        retried=100,
    ),
    "groups": Profile(
        says="producers, and consumers in groups that come, go, crash and pause; coordinators fail in "
        "every state of a rebalance",
        operations=(60, 300),
        partitions=(1, 4),
        kinds=(*PROCESS_AND_NETWORK, "clean_restart"),
        retained=0,
        disks_lost=0,
        groups=100,
    ),
    "transactions": Profile(
        says="processes that consume, transform and produce in transactions, some with one transactional id; "
        "coordinators and leaders fail between any two steps",
        operations=(60, 200),
        partitions=(1, 3),
        kinds=(*PROCESS_AND_NETWORK, "clean_restart"),
        retained=0,
        disks_lost=0,
        transactions=100,
    ),
    "fencing": Profile(
        says="what was replaced works on: sessions end, processes and clocks stop, ZooKeeper is "
        "away, requests come late",
        operations=(60, 300),
        faults=(4, 24),
        partitions=(1, 3),
        kinds=FENCING,
        request_kinds=ALL_REQUESTS,
        small_segments=10,
        retained=0,
        disks_lost=0,
        brokers=(3, 5),
        administered=50,
        requests=(1, 6),
        stormy=15,
        producers=35,
        quick=35,
        followed=30,
    ),
    "truncation": Profile(
        says="logs that part: leaders fall with a tail that nobody copied, power fails, elections are "
        "unclean, logs are cut and begin anew",
        operations=(100, 400),
        faults=(4, 30),
        partitions=(1, 2),
        kinds=TRUNCATION,
        request_kinds=("alter_topic", "preferred_election", "reassign_reorder", "clean_restart"),
        small_segments=50,
        retained=25,
        deletions=20,
        disks_lost=60,
        brokers=(3, 4),
        administered=30,
        producers=25,
        quick=45,
        followed=35,
        unclean=35,
    ),
    "chaos": Profile(
        says="everything that there is: each kind of fault and request, producers, groups, compaction, "
        "unclean elections, three to five brokers",
        operations=(60, 300),
        faults=(2, 24),
        kinds=PROCESS_AND_NETWORK + DISK + WIDE,
        request_kinds=ALL_REQUESTS,
        small_segments=50,
        retained=30,
        compacted=20,
        deletions=20,
        disks_lost=40,
        brokers=(3, 5),
        administered=70,
        requests=(1, 8),
        single=10,
        stormy=10,
        restless=10,
        producers=30,
        quick=20,
        followed=35,
        groups=30,
        unclean=15,
    ),
    "haste": Profile(
        says="operators in haste: the next request follows a step of the last one, on links that lose "
        "messages, and the broker that it concerns goes meanwhile",
        faults=(1, 14),
        partitions=(1, 3),
        brokers=(3, 4),
        administered=100,
        requests=(1, 12),
        single=20,
        stormy=25,
        restless=20,
        hasty=100,
    ),
    "calm": Profile(says="no faults at all: what the cluster does when nothing breaks", faults=(0, 0)),
}


STEERED = "+"
"""In the name of a profile, before each mark that it is steered to."""


def profile_named(name: str, faults: tuple[str, ...] = ()) -> Profile:
    """The profile of this name, with these kinds of fault and request only (all of its own, if none is
    named). "default+log_cut" is the profile default steered to the mark log_cut. Raises FencepostError."""
    base, *marks = name.split(STEERED)
    profile = PROFILES.get(base)
    if profile is None:
        raise FencepostError(
            expected=f"one of {', '.join(sorted(PROFILES))}",
            seen=unknown_name(base, PROFILES),
            where="swarm profile",
            hint="docs/reference/swarm.md describes them",
        )
    for mark in marks:
        if mark not in NAMES:
            raise FencepostError(
                expected=f"a mark after {STEERED}: {', '.join(NAMES)}", seen=mark, where="swarm profile"
            )
    return with_mark_weights(_with_kinds(profile, faults), marks)


def _with_kinds(profile: Profile, faults: tuple[str, ...]) -> Profile:
    for kind in faults:
        if kind not in FAULTS:
            raise FencepostError(
                expected=f"kinds out of {', '.join(FAULTS)}",
                seen=unknown_name(kind, FAULTS),
                where="kinds of fault",
                hint="`fencepost campaign --list-faults` shows them",
            )
    if not faults:
        return profile
    kinds = tuple(kind for kind in FAULTS if kind in faults and kind not in ADMINISTRATION)
    asked = tuple(kind for kind in ADMINISTRATION if kind in faults)
    most = profile.faults[1] or Profile(says="").faults[1]
    return evolve(
        profile,
        kinds=kinds,
        faults=(1, most) if kinds else (0, 0),
        request_kinds=asked,
        administered=100 if asked else 0,
    )
