"""The one swarm: each seed draws which features, schedules and kinds of fault it has, out of all that there
are.

Owns that draw. Must not draw anything inside a feature. The profile has every feature with some chance; here
each is switched on or off for the plan, most of them off (swarm testing: Groce et al., ISSTA 2012). A
schedule says when faults come. A plan has one of them at most: each replaces the plan's faults by rows of its
own.
"""

from typing import Any

from attrs import evolve

from fencepost.campaign.swarm.bounds import QUICK, Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.plan import INSIDE_KINDS

SCHEDULES = ("quick", "relayed", "silenced", "retried", "chained", "lone")
"""Features that replace a plan's faults by rows of their own; without one of them faults come at random."""
FULL = ("quick", "relayed", "silenced", "retried")
"""Those with faults all the time."""
ROWS = ("relayed", "silenced", "retried")
"""Those in which every leader goes at once, a coordinator with it: no group ever comes to a generation."""
CROWDS = ("groups", "transactions", "administered", "small_segments")
"""What makes a plan slower."""
CROWDED = 45
"""Of a hundred plans with such a schedule: how many may have some of that as well."""
CORE = 70
"""Of a hundred plans with quick elections: how many have only the kinds of fault that end leaders and cut
links."""
ON = 100
NEEDS = {
    "retained": ("small_segments",),
    "compacted": ("small_segments",),
    "deletions": ("small_segments",),
    "hasty": ("administered",),
    "names_again": ("administered",),
    "restless": ("administered",),
    "single": ("administered",),
    "followed": ("quick",),
    "retried": ("producers",),
    "gentle": ("groups",),
    "named": ("groups",),
    "busy": ("groups",),
    "seeking": ("groups",),
    "resubscribing": ("groups",),
    "standalone": ("groups",),
    "managed": ("groups",),
    "cooperative": ("groups",),
    "subscriptions": ("groups",),
}
"""Features without which others are nothing."""


def needs_of(feature: str) -> tuple[str, ...]:
    """The features that this one needs."""
    return NEEDS.get(feature, ())


def subset_of(bounds: Profile, draw: Draws) -> Profile:
    """The bounds of this seed's plan: those of the profile, or a random part of them if the profile is a
    mixture."""
    if not bounds.mixed:
        return bounds
    schedule = _schedule(bounds, draw)
    wanted = any(getattr(bounds, name) >= ON for name in CROWDS)
    alone = schedule in FULL and not wanted and not draw.chance(CROWDED, "mixed.crowded")

    def on(feature: str) -> int:
        return ON * draw.chance(getattr(bounds, feature), f"mixed.{feature}")

    logs = not alone and bool(on("small_segments"))
    operators = not alone and bool(on("administered"))
    coordinators = not alone and schedule not in ROWS
    steps = on("file_steps")
    of_schedule: dict[str, Any] = {name: ON * (name == schedule) for name in SCHEDULES}
    chosen = evolve(
        bounds,
        mixed=False,
        **of_schedule,
        followed=draw.between((20, 95), "mixed.follow_share") if on("followed") else 0,
        kinds=_kinds(bounds, draw, schedule, INSIDE_KINDS if steps else ()),
        administered=ON * operators,
        hasty=on("hasty") * operators,
        names_again=on("names_again") * operators,
        restless=on("restless"),
        stormy=on("stormy") * (not schedule),
        single=on("single"),
        unclean=on("unclean"),
        groups=on("groups") * coordinators,
        different=on("different"),
        limited=on("limited"),
        moved_settings=on("moved_settings"),
        producers=ON if schedule == "retried" else on("producers"),
        small_segments=ON if schedule == "retried" else 80 * logs,
        retained=on("retained") * logs,
        compacted=on("compacted") * logs,
        deletions=on("deletions") * logs,
        disks_lost=on("disks_lost"),
        file_steps=steps,
        transactions=on("transactions") * coordinators,
    )
    return _sized(chosen, draw, schedule)


def _schedule(bounds: Profile, draw: Draws) -> str:
    """Each with its own chance, out of one hundred plans; the empty one with what is left."""
    if not bounds.kinds:
        return ""
    place = draw.between((0, max(99, sum(getattr(bounds, name) for name in SCHEDULES) - 1)), "mixed.schedule")
    for name in SCHEDULES:
        place -= getattr(bounds, name)
        if place < 0:
            return name
    return ""


def _kinds(bounds: Profile, draw: Draws, schedule: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """A few kinds of fault, so that those that there are meet each other, and those that are wanted;
    schedules need all of theirs, and look themselves."""
    if schedule:
        core = tuple(kind for kind in bounds.kinds if kind in QUICK)
        return core if schedule == "quick" and core and draw.chance(CORE, "mixed.core") else bounds.kinds
    share = draw.between((15, 70), "mixed.kind_share")
    kinds = tuple(kind for kind in bounds.kinds if kind in wanted or draw.chance(share, f"mixed.kind.{kind}"))
    return kinds or bounds.kinds


def _sized(bounds: Profile, draw: Draws, schedule: str) -> Profile:
    """With as many operations and faults as suit the schedule."""
    if schedule == "lone":
        return evolve(bounds, safety_ms=(30_000, 60_000))
    if schedule == "chained":
        return evolve(bounds, safety_ms=(20_000, 45_000), operations=(100, 300), brokers=(3, 5))
    if schedule:
        least = 250 if schedule != "quick" else 150
        return evolve(
            bounds,
            safety_ms=(20_000, 45_000),
            operations=(least, 400),
            faults=(8, 50),
            partitions=(1, 1) if draw.chance(85, "mixed.one_partition") else (1, 2),
            brokers=(4, 5) if schedule in ("relayed", "silenced") else (3, 5),
        )
    if draw.chance(bounds.calm * (3 if bounds.groups and bounds.calm < ON else 1), "mixed.calm"):
        return evolve(bounds, faults=(0, 0))
    return evolve(bounds, brokers=(3, 5) if draw.chance(30, "mixed.brokers") else (3, 3))
