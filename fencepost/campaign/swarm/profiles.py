"""The profile of the swarm: bounds of what it draws, and how often each feature is on.

Owns the one profile, and the names under which it is drawn with a feature always on. Must not draw.
"""

from typing import Any

from attrs import evolve

from fencepost.campaign.marks.marks import NAMES
from fencepost.campaign.swarm.bounds import (
    ALL_REQUESTS,
    DISK,
    PERCENTAGES,
    PROCESS_AND_NETWORK,
    WIDE,
    Profile,
)
from fencepost.campaign.swarm.mark_weights import with_mark_weights
from fencepost.campaign.swarm.subset import ON, ROWS, SCHEDULES, needs_of
from fencepost.run.faults.group_requests import GROUP_REQUESTS
from fencepost.run.faults.operator_requests import ADMINISTRATION
from fencepost.run.faults.table import FAULTS
from fencepost.traces.errors import FencepostError, unknown_name

GENERAL = "default"
PROFILES: dict[str, Profile] = {
    GENERAL: Profile(
        says="each plan has a random part of all features, workloads, kinds of fault and schedules",
        operations=(30, 300),
        faults=(1, 16),
        kinds=PROCESS_AND_NETWORK + DISK + WIDE,
        request_kinds=ALL_REQUESTS,
        retained=45,
        compacted=60,
        small_segments=45,
        deletions=35,
        disks_lost=30,
        file_steps=25,
        administered=50,
        requests=(1, 8),
        single=12,
        stormy=10,
        restless=15,
        producers=45,
        quick=16,
        followed=60,
        groups=45,
        gentle=25,
        named=40,
        busy=15,
        seeking=35,
        resubscribing=25,
        standalone=30,
        managed=30,
        cooperative=30,
        subscriptions=35,
        unclean=10,
        relayed=10,
        silenced=12,
        retried=7,
        chained=12,
        different=35,
        limited=20,
        moved_settings=20,
        lone=16,
        hasty=60,
        names_again=33,
        rests=90,
        calm=6,
        transactions=40,
        other_ends=40,
        indexed=40,
        mixed=True,
    )
}
FORMER = {
    "everything": (),
    "chaos": (),
    "reassignment": ("administered",),
    "storage": ("small_segments", "retained"),
    "producer": ("producers",),
    "elections": ("quick",),
    "races": ("quick", "followed"),
    "relays": ("relayed",),
    "silences": ("silenced",),
    "retries": ("retried",),
    "groups": ("groups",),
    "transactions": ("transactions",),
    "fencing": ("quick",),
    "truncation": ("quick", "unclean"),
    "haste": ("hasty",),
    "calm": ("calm",),
}
"""What the names of 0.1 had more of. They work for one version."""


STEERED = "+"
"""In the name of a profile, before each feature that its plans have, or mark that they are steered to."""
COORDINATED = ("groups", "transactions")
"""Features that need a coordinator which stays for a while."""


def profile_named(name: str, faults: tuple[str, ...] = ()) -> Profile:
    """The profile of this name, with these kinds of fault and request only (all of its own, if none is
    named). After each + is a feature that every plan has ("default+transactions"), or a mark that the plans
    are steered to ("default+log_cut"). Raises FencepostError."""
    base, *more = name.split(STEERED)
    features = FORMER.get(base, ())
    if base not in PROFILES and base not in FORMER:
        raise FencepostError(
            expected=f"{GENERAL}, or {GENERAL}{STEERED}FEATURE",
            seen=unknown_name(base, PROFILES),
            where="swarm profile",
            hint="docs/reference/swarm.md describes the features",
        )
    for one in more:
        if one not in NAMES and one not in PERCENTAGES:
            raise FencepostError(
                expected=f"a feature or a mark after {STEERED}: {', '.join((*PERCENTAGES, *NAMES))}",
                seen=one,
                where="swarm profile",
            )
    features = (*features, *(one for one in more if one in PERCENTAGES))
    profile = _with_features(_with_kinds(PROFILES[GENERAL], faults), features)
    return with_mark_weights(profile, [one for one in more if one in NAMES])


def _with_features(profile: Profile, features: tuple[str, ...]) -> Profile:
    """The profile whose plans all have these, and what they need; another schedule gives way to one that is
    named."""
    wanted = {name for feature in features for name in (feature, *needs_of(feature))}
    if not wanted:
        return profile
    others = {*SCHEDULES} if wanted & {*SCHEDULES, "calm"} else {*ROWS} if wanted & {*COORDINATED} else set()
    shares: dict[str, Any] = dict.fromkeys(others, 0) | dict.fromkeys(wanted, ON)
    return evolve(profile, **shares)


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
    asked = tuple(kind for kind in ADMINISTRATION if kind in faults)
    of_groups = tuple(kind for kind in GROUP_REQUESTS if kind in faults)
    kinds = tuple(kind for kind in FAULTS if kind in faults and kind not in (*asked, *of_groups))
    most = profile.faults[1] or Profile(says="").faults[1]
    return evolve(
        profile,
        kinds=kinds,
        faults=(1, most) if kinds else (0, 0),
        request_kinds=asked,
        administered=ON if asked else 0,
        group_requests=of_groups,
        managed=ON if of_groups else 0,
    )
