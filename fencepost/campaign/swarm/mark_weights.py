"""What a profile can reach, and how it leans toward what it has not: marks become weights.

Owns the weights. Must not know campaigns or rounds (driver/steering.py), nor how a plan is drawn.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial

from attrs import evolve

from fencepost.campaign.marks.marks import MARKS, named, possible
from fencepost.campaign.swarm.bounds import PERCENTAGES, Profile

HEAVY = 3
"""How often a kind that leads to a mark is in the hat, for each such mark; the others are in it once."""
HEAVIEST = 12
"""And at most."""
LIKELY = 75
"""Of a hundred plans: what a percentage that leads to a mark becomes, if it is not above it and not 0."""


def has(profile: Profile, name: str) -> bool:
    """Whether plans of the profile may have this: a kind of fault or request, or what one of its percentages
    is about."""
    if name in PERCENTAGES:
        return bool(getattr(profile, name) > 0)
    drawn = profile.kinds if profile.faults[1] else ()
    return name in drawn or (name in profile.request_kinds and profile.administered > 0)


def marks_possible(profile: Profile) -> tuple[str, ...]:
    """The marks that plans of the profile can reach."""
    quiet = not profile.faults[1] and not profile.administered
    return tuple(
        mark.name for mark in MARKS if possible(mark, partial(has, profile)) and (mark.needs or not quiet)
    )


def with_mark_weights(profile: Profile, marks: Iterable[str]) -> Profile:
    """More of what leads to these marks, out of what the profile has. Kinds come after those that are there,
    so that fewer draws change."""
    wanted = [mark for mark in named(marks) if mark.name in marks_possible(profile)]
    leads = Counter(lead for mark in wanted for lead in mark.leads if has(profile, lead))
    if not leads:
        return profile
    percentages = {name: max(getattr(profile, name), LIKELY) for name in leads if name in PERCENTAGES}

    def heavier(kinds: tuple[str, ...]) -> tuple[str, ...]:
        more = (kind for kind in kinds for _ in range(min(HEAVY * leads[kind], HEAVIEST) - 1) if leads[kind])
        return (*kinds, *more)

    return evolve(
        profile,
        kinds=heavier(profile.kinds),
        request_kinds=heavier(profile.request_kinds),
        **percentages,
    )
