"""What a profile can reach, and how it leans toward what it has not: marks become weights.

Owns the weights. Must not know campaigns or rounds (driver/steering.py), nor how a plan is drawn.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial

from attrs import evolve

from fencepost.campaign.marks.marks import MARKS, Mark, named, possible
from fencepost.campaign.swarm.bounds import PERCENTAGES, Profile

HEAVY = 3
"""How often a kind that leads to a mark is in the hat, for each such mark; the others are in it once."""
OFTEN = 12
"""How often an order is in the hat more for being named: the hat has two dozen."""
HEAVIEST = 12
"""And at most."""
LIKELY = 75
"""Of a hundred plans: what a percentage that leads to a mark becomes, if it is not above it and not 0."""


def has(profile: Profile, name: str) -> bool:
    """Whether plans of the profile may have this: a kind of fault or request, an order of a schedule, or what
    one of its percentages is about."""
    if name in PERCENTAGES:
        return bool(getattr(profile, name) > 0)
    drawn = (*profile.kinds, *profile.orders) if profile.faults[1] else ()
    return name in drawn or (name in profile.request_kinds and profile.administered > 0)


def marks_possible(profile: Profile, marks: tuple[Mark, ...] = MARKS) -> tuple[str, ...]:
    """The marks that plans of the profile can reach.

    Args:
        profile: what is drawn.
        marks: the table.
    """
    quiet = not profile.faults[1] and not profile.administered
    return tuple(
        mark.name for mark in marks if possible(mark, partial(has, profile)) and (mark.needs or not quiet)
    )


def with_mark_weights(profile: Profile, names: Iterable[str], marks: tuple[Mark, ...] = MARKS) -> Profile:
    """More of what leads to these, out of what the profile has. Kinds come after those that are there, so
    that fewer draws change.

    Args:
        profile: what is drawn.
        names: of marks, and of kinds of fault and orders that led to one.
        marks: the table.
    """
    names = tuple(names)
    wanted = [mark for mark in named(names, marks) if mark.name in marks_possible(profile, marks)]
    leading = (*(lead for mark in wanted for lead in mark.leads), *names)
    leads = Counter(lead for lead in leading if has(profile, lead))
    if not leads:
        return profile
    percentages = {name: max(getattr(profile, name), LIKELY) for name in leads if name in PERCENTAGES}

    def heavier(drawn: tuple[str, ...]) -> tuple[str, ...]:
        more = (
            name
            for name in dict.fromkeys(drawn)
            for _ in range(min(HEAVY * leads[name], HEAVIEST) - 1)
            if leads[name]
        )
        return (*drawn, *more)

    return evolve(
        profile,
        kinds=heavier(profile.kinds),
        request_kinds=heavier(profile.request_kinds),
        orders=(*profile.orders, *(name for name in leads if name in profile.orders for _ in range(OFTEN))),
        **percentages,
    )
