"""Which healthy traces the bad ones are compared with: all of few, a sample of many.

Owns the share of each profile that is compared, and the draw. Must not know features, findings, Spark, files.

What occurred in a trace costs as much to find as judging it. Shares of healthy traces need no more than some
thousand of them: with n drawn traces, a share of p has the standard error sqrt(p (1 - p) / n), so 2 % of
MOST_COMPARED traces has 0.2 points. The likelihood ratio is computed with the counts of the drawn traces, so
its chances stay what they say.

The draw is stratified by profile, because a bug's traces are compared with healthy ones of their own
profiles. Each profile has one share in the whole mining. A trace is drawn if the hash of its trace id is
below the share, whatever task judges it, and however often. So a mining that continues, or that is repeated,
draws the same traces.
"""

from collections.abc import Iterable, Mapping
from math import inf

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

MOST_COMPARED = 4_096
"""Healthy traces of all profiles together that are compared. About so many: healthy and bad ones are drawn
alike, and files of histories are not counted before. The groups of docs/explanation/triage.md were found with
220."""
_SALT = 0x7F4A7C159E3779B9


@frozen(kw_only=True)
class Compared:
    """The share of healthy traces that are compared, 0 to 1."""

    # By profile.
    shares: Mapping[str, float] = field(factory=dict)
    # Of every other profile.
    otherwise: float = 1.0

    def drawn(self, trace_ids: npt.NDArray[np.int64], profiles: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Which traces are in the sample.

        Args:
            trace_ids: of the traces.
            profiles: of each of them.

        Returns:
            a mask.
        """
        share = np.array([self.shares.get(profile, self.otherwise) for profile in profiles], np.float64)
        drawn: npt.NDArray[np.bool_] = _hashed(trace_ids) < share
        return drawn


def _hashed(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each number: the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable
    Pseudorandom Number Generators, 2014)."""
    mixed = numbers.astype(np.int64).view(np.uint64) ^ np.uint64(_SALT)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64


def compared_of(profiles: Mapping[str, int], uncounted: int, most: int = MOST_COMPARED) -> Compared:
    """The shares for a mining.

    Args:
        profiles: its traces by profile.
        uncounted: further traces, of unknown profiles.
        most: traces of all profiles to compare.

    Returns:
        the shares. Each profile gives the same number of traces, or all if it has fewer.
    """
    of_each = _fair(profiles.values(), max(most - uncounted, most // 2))
    shares = {profile: min(1.0, of_each / count) for profile, count in profiles.items()}
    return Compared(shares=shares, otherwise=min(1.0, most / max(uncounted, 1)))


def _fair(counts: Iterable[int], most: int) -> float:
    """The largest number so that taking at most this many of each count takes `most` together."""
    left, ordered = float(most), sorted(counts)
    for place, count in enumerate(ordered):
        fair = left / (len(ordered) - place)
        if count > fair:
            return fair
        left -= count
    return inf
