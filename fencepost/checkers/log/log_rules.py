"""The rules that apply to each log: the trace's claims and the profile, per group, in a form that kernels can
read.

Owns the translation from claims to rules. Must not know how a rule is checked.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from fencepost.checkers.log.appends_and_reads import LogColumns
from fencepost.checkers.operation_columns import NEVER, Array
from fencepost.traces.errors import TraceError, unknown_name
from fencepost.traces.trace import Claims


class Profile(IntEnum):
    """The real-time guarantee that is checked; docs/spec/log-check.md describes each."""

    CONTENT = 0
    DEFAULT = 1
    SESSION = 2
    STRONG = 3


class Rules(NamedTuple):
    """The rules, one entry per group."""

    # A Profile.
    profile: Array
    # As in Claims, and neither compaction nor control records leave holes.
    dense: Array
    # As in Claims: records may occur twice.
    duplicates: Array
    # As in Trace: each value was sent once.
    unique: Array
    # Whether loss is allowed somewhere in this log.
    keyed: Array
    # Clock uncertainty in nanoseconds.
    uncertainty: Array


PROFILES = {profile.name.lower(): profile for profile in Profile}


def rules_of(columns: LogColumns, profile: str | None = None) -> Rules:
    """The rules for each group. `profile` overrides what the traces claim. Raises TraceError if there is no
    such profile.

    (A trace that claims an unknown profile is Assumption broken; its rules do not matter.)
    """
    if profile is not None and profile not in PROFILES:
        raise TraceError(
            expected=f"one of {', '.join(PROFILES)}",
            seen=unknown_name(profile, PROFILES),
            where="profile of the log check",
        )
    claims = [trace.claims for trace in columns.traces]
    profiles = np.array([PROFILES.get(profile or claim.check, Profile.DEFAULT) for claim in claims], np.int8)
    lossy = [claim.content_by_epoch or bool(claim.loss) for claim in claims]
    of = columns.trace
    return Rules(
        profile=profiles[of],
        dense=np.array([claim.dense for claim in claims], np.bool_)[of]
        & ~columns.extras.compacted
        & ~columns.extras.transactional,
        duplicates=np.array([claim.duplicates for claim in claims], np.bool_)[of],
        unique=np.array([trace.unique_values for trace in columns.traces], np.bool_)[of],
        keyed=np.array(lossy, np.bool_)[of],
        uncertainty=np.array([claim.clock_uncertainty_ns for claim in claims], np.int64)[of],
    )


def loss_ranges(columns: LogColumns, group: int) -> list[tuple[int, int]]:
    """The ranges of `loss_in` for a group."""
    claims = columns.traces[columns.trace[group]].claims
    return loss_in(claims, columns.topics[columns.topic[group]], int(columns.partition[group]))


def loss_in(claims: Claims, topic: str, partition: int) -> list[tuple[int, int]]:
    """The offsets of a log that may be lost.

    Args:
        claims: the claims of the trace.
        topic, partition: the log.

    Returns:
        ranges [start, end), disjoint and in order.
    """
    if claims.content_by_epoch:
        return [(0, NEVER)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(
        (r.start, r.end) for r in claims.loss if (r.topic, r.partition) == (topic, partition)
    ):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
