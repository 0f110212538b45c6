"""The check by slot ranges of one trace in memory, cut at random into batches: what mining does with files
and tasks."""

from collections import defaultdict
from random import Random

import numpy as np
from attrs import evolve

from fencepost.checkers.log.appends_and_reads import log_columns
from fencepost.checkers.log.log_rules import Profile, rules_of
from fencepost.checkers.log.ranges.around import Wanted, beside, concerning, in_question
from fencepost.checkers.log.ranges.closer import Looked, Source, look_closer
from fencepost.checkers.log.ranges.decide import RangeSummary, decide, ranges_of, soft_of
from fencepost.checkers.log.ranges.holes import bounding
from fencepost.checkers.log.ranges.partial import NOT_OF_SLOTS, TWICE, partial_of, rows_of_group, slots_of
from fencepost.checkers.log.ranges.verdict import reasons_of, sessions_in_question, twice, unread
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.trace import Trace


def reasons_by_log(trace: Trace, rng: Random, *, width: int) -> dict[tuple[str, int], tuple[str, ...]]:
    """Why each log of the trace needs a closer look, () where it does not. The operations are cut into
    batches at random, in their order."""
    return {log: reasons for log, (reasons, *_) in looked_at(trace, rng, width=width).items()}


def unread_by_log(trace: Trace, rng: Random, *, width: int) -> list[tuple[tuple[str, ...], int]]:
    """Of each log, why it needs a closer look, and how many acknowledged records nobody read."""
    found = looked_at(trace, rng, width=width)
    return [(reasons, len(unread(summaries))) for reasons, _, summaries in found.values()]


def looked_at(
    trace: Trace, rng: Random, *, width: int, closer: bool = False
) -> dict[tuple[str, int], tuple[tuple[str, ...], Looked, list[RangeSummary]]]:
    """Of each log, why it needs a closer look, what that finds (if `closer`), and what its ranges said."""
    cuts = sorted(rng.randrange(len(trace.operations) + 1) for _ in range(rng.randrange(4)))
    partials, pieces, rules_seen, batches = defaultdict(list), defaultdict(list), {}, defaultdict(list)
    for start, stop in zip([0, *cuts], [*cuts, len(trace.operations)], strict=True):
        operations = columns_of_traces([evolve(trace, operations=trace.operations[start:stop])])
        columns = log_columns(operations)
        rules = rules_of(columns)
        for g in range(columns.groups):
            log = columns.topics[columns.topic[g]], int(columns.partition[g])
            partial = partial_of(operations, columns, rules, g, width=width)
            partials[log].append(partial)
            appends, reads = rows_of_group(columns, g)
            strong = (reads.end >= 0) & (reads.strong | (rules.profile[g] == Profile.STRONG))
            batches[log].append((appends, reads, strong))
            rules_seen[log] = Profile(int(rules.profile[g])), bool(rules.dense[g]), bool(rules.duplicates[g])
            for number in partial.ranges:
                pieces[log, number].append(slots_of(columns, rules, g, number, width=width))
    found = {}
    for log, shares in partials.items():
        profile, dense, duplicates = rules_seen[log]
        largest = max(share.largest for share in shares)
        wanted, demands = ranges_of(
            {number for share in shares for number in share.ranges},
            timed=profile is not Profile.CONTENT,
            dense=dense,
            duplicates=duplicates,
            width=width,
            largest=largest,
        )
        soft = soft_of(share.soft for share in shares)
        gaps = np.concatenate([share.gaps for share in shares])
        near_by = {}
        for number in wanted:
            reach = demands.margin // width + 1
            near_by[number] = [
                piece for other in range(number - reach, number + reach + 1) for piece in pieces[log, other]
            ]
            rng.shuffle(near_by[number])
        summaries = [decide(number, near_by[number], soft, gaps, demands) for number in wanted]
        sent = [record.value for op in trace.operations if op.function == "append" for record in op.records]
        local = [reason for share in shares for reason in share.reasons]
        if trace.unique_values and len(set(sent)) < len(sent):
            local.append(TWICE)  # mining compares batches' values; see test_giant
        sessions = np.concatenate([share.sessions for share in shares])
        reasons = (*local, *reasons_of(summaries, soft, sessions, demands))
        looked = Looked()
        if closer and reasons and not NOT_OF_SLOTS.intersection(reasons):
            source = _source(trace, batches[log], near_by, soft, gaps, demands, summaries)
            regressed = [share.regressed for share in shares]
            wanted = Wanted(
                offsets=np.unique(
                    np.concatenate([twice(summaries, soft), *(share.offsets for share in shares)])
                ),
                values=np.empty(0, np.int64),
                senders=np.empty(0, np.int64),
                ids=np.unique(np.concatenate([share.ids for share in shares])),
                sessions=np.unique(np.concatenate([sessions_in_question(sessions), *regressed]), axis=0),
            )
            looked = look_closer(source, log, wanted)
        found[log] = reasons, looked, summaries
    return found


def _source(trace: Trace, batches, near_by, soft, gaps, demands, summaries) -> Source:
    def fetch(ids):
        kept = tuple(op for op in trace.operations if op.op_id in set(ids.tolist()))
        return columns_of_traces([evolve(trace, operations=kept)])

    def asked(moments):
        others = beside(summaries, demands.width, moments)
        parts = [
            in_question(number, pieces, soft, gaps, demands, one)
            for (number, pieces), one in zip(near_by.items(), others, strict=True)
        ]
        return np.unique(np.concatenate(parts))

    return Source(
        in_question=asked,
        keep=lambda wanted: fetch(np.concatenate([concerning(*batch, wanted) for batch in batches])),
        bounding=lambda starts: fetch(np.concatenate([bounding(*batch, starts) for batch in batches])),
        summaries=summaries,
        soft=soft,
        dense=demands.dense,
    )
