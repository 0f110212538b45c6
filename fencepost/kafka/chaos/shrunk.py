"""The shortest chaos under which a test still fails.

Owns which strikes are left out, one after the other. Must not know pytest, nor what a strike is.
"""

import time
from collections.abc import Callable, Sequence


def shortest(
    names: Sequence[str], fails: Callable[[tuple[str, ...]], bool], *, tries: int, seconds: float
) -> tuple[str, ...]:
    """Leave out strikes as long as the test fails without them.

    Args:
        names: of the strikes, in their order.
        fails: whether the test fails, run once, under these strikes only.
        tries: how often a test runs until it counts as passing: requests come from outside, so a failure has
            a rate.
        seconds: after which no further strike is tried.

    Returns:
        the names of those that are left.
    """
    left = tuple(names)
    until = time.monotonic() + seconds
    # The last strikes first: what came after the harm was done is in the way of nothing.
    for name in reversed(names):
        if time.monotonic() >= until:
            break
        fewer = tuple(one for one in left if one != name)
        if any(fails(fewer) for _ in range(tries)):
            left = fewer
    return left
