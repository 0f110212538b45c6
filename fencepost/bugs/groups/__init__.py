"""Planted bugs of group coordinators and of consumers: each removes one protection by swapping one part.

Owns the rows of the zoo's table that concern them: (bug, role, part, anomalies, what these break).
"""

from fencepost.bugs.groups import (
    commit_bugs,
    cooperative_bugs,
    loads,
    member_bugs,
    seek_bugs,
    static_member_bugs,
)

OFFSET_SAFE = frozenset(
    {
        "committed_offset_lost",
        "committed_offset_unexplained",
        "committed_offset_not_linearizable",
        "stale_commit_accepted",
        "commit_sent_again",
        "reprocessed_after_commit",
    }
)
SOUGHT = frozenset({"seek_ignored"})
POSITIONS = OFFSET_SAFE | {"processing_gap", "commit_beyond_position"}
LIVE = frozenset({"no_progress"})
ONE_INSTANCE = frozenset({"fenced_by_itself"})
SAFE, STUCK = "OFFSET-SAFE", "LIVE"
"""What clients see of it. ONE-COORDINATOR, ONE-INSTANCE and GENERATION-FENCE, which the model names, are what
a broker can see."""

ROWS: tuple[tuple[str, str, type, frozenset[str], str], ...] = (
    ("KAFKA-10614", "group_loading", loads.RunsTasksInAnyOrder, LIVE, STUCK),
    ("KAFKA-5600", "group_loading", loads.AppliesTheLastBatch, OFFSET_SAFE, SAFE),
    ("KAFKA-4362", "group_log", loads.AnswersForWhatItLeft, OFFSET_SAFE, SAFE),
    ("KAFKA-13636", "group_offsets", commit_bugs.ExpiresWhileRebalancing, OFFSET_SAFE, SAFE),
    ("KAFKA-8069", "group_offsets", commit_bugs.ExpiresAtOnce, OFFSET_SAFE, SAFE),
    ("P3", "group_offsets", commit_bugs.TakesAnyGeneration, OFFSET_SAFE, SAFE),
    ("P5-SEEK", "consumer_fetcher", seek_bugs.BeginsAtTheCommitted, SOUGHT, SAFE),
    ("P5-LOADED", "group_loading", loads.LoadsMembersOnly, OFFSET_SAFE, SAFE),
    ("P5-POSITIONS", "consumer_fetcher", seek_bugs.KeepsPositions, POSITIONS, SAFE),
    ("P5", "consumer_coordinator", commit_bugs.RetriesAsyncCommits, OFFSET_SAFE, SAFE),
    (
        "KAFKA-15170",
        "consumer_coordinator",
        cooperative_bugs.AssignsWhatOthersHave,
        frozenset({"partition_given_too_soon"}),
        "GROUP-ONE",
    ),
    ("KAFKA-12983", "consumer_coordinator", cooperative_bugs.KeepsWhatItLost, OFFSET_SAFE, SAFE),
    ("P5-REJOIN", "consumer_coordinator", cooperative_bugs.WaitsForAnotherRebalance, LIVE, STUCK),
    (
        "P5-KEPT",
        "consumer_fetcher",
        cooperative_bugs.RevokesEverything,
        frozenset({"position_regressed"}),
        "SESSION",
    ),
    (
        "P3-LISTS",
        "group_membership",
        member_bugs.ComparesFirstAssignors,
        frozenset({"needless_refusal", "slow_rebalance"}),
        "LIVENESS",
    ),
    ("P3-LEFT", "group_membership", member_bugs.KeepsWhoLeft, frozenset({"leaver_stays_member"}), "LIVENESS"),
    ("KAFKA-10284", "group_membership", static_member_bugs.KeepsNewIdsInMemory, ONE_INSTANCE, "ONE-INSTANCE"),
)
