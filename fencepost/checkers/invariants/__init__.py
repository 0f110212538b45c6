"""The event invariants: COMMIT-SAFE, LOG-MATCH, HW-MONO, HW-BOUNDS, HW-KEPT, EPOCH-MONO, CTRL-FENCE, those of
ISR, assignment and deletion, progress after the faults, NO-CRASH, STORED, SERVICE and SYNCED.

Owns the one pass over a trace's events, and the verdict. Each invariant is one file of this folder and
receives only the events that it names. Must not know which system recorded the trace, or which bugs were
planted in it. Linear in events and records (HW-MONO: n log n in operations).

A finding is the first of its anomaly in its partition. Its certificate is the two events (or operations) that
contradict each other.
"""

from collections.abc import Callable, Iterable

from fencepost.checkers.invariants import hw_read
from fencepost.checkers.invariants.assign import Assign
from fencepost.checkers.invariants.commit_safe import CommitSafe, keys_of
from fencepost.checkers.invariants.ctrl_fence import CtrlFence
from fencepost.checkers.invariants.decided import Decided
from fencepost.checkers.invariants.deletion import Deletion
from fencepost.checkers.invariants.epoch_mono import EpochMono
from fencepost.checkers.invariants.findings import CHECK, Findings
from fencepost.checkers.invariants.hw_bounds import HighWatermarkBounds
from fencepost.checkers.invariants.hw_kept import HighWatermarkKept
from fencepost.checkers.invariants.hw_mono import HighWatermarkMono, Shown, shown_by
from fencepost.checkers.invariants.in_sync import InSync
from fencepost.checkers.invariants.incarnation import Incarnation
from fencepost.checkers.invariants.live import Live
from fencepost.checkers.invariants.log_match import LogMatch
from fencepost.checkers.invariants.marked import Marked
from fencepost.checkers.invariants.no_crash import NoCrash
from fencepost.checkers.invariants.replicas import Replicas
from fencepost.checkers.invariants.synced import Synced, flush_messages_of
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.record.settings import settings_of
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

Handler = Callable[[int, Event], None]
"""Receives an event with its position in the trace."""


def judge(trace: Trace, shown: Iterable[Shown] | None = None) -> Verdict:
    """Check all event invariants. A run that was too weak is not checked.

    Args:
        trace: the trace.
        shown: the log ends that clients were shown, if they were decoded already; None: those of the trace's
            operations.
    """
    if trace.claims.assumption_broken:
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=trace.claims.assumption_broken
        )
    findings = Findings()
    replicas = Replicas()
    commit_safe = CommitSafe(replicas, findings, trace.claims.loss, keys_of(trace))
    log_match = LogMatch(replicas, findings, trace.events, trace.claims.loss)
    high_watermark_mono = HighWatermarkMono(findings, trace.claims)
    parts = (
        replicas,
        commit_safe,
        log_match,
        high_watermark_mono,
        HighWatermarkBounds(findings),
        HighWatermarkKept(findings),
        EpochMono(findings),
        CtrlFence(findings),
        InSync(findings),
        Incarnation(findings),
        Assign(findings),
        Deletion(findings),
        Decided(findings, trace.claims.loss),
        Live(findings),
        NoCrash(findings),
        Marked(findings),
        Synced(replicas, findings, flush_messages_of(settings_of(trace.plan, trace.events))),
    )
    handlers: dict[Name, list[Handler]] = {}
    for part in parts:
        for name, handler in part.handlers().items():
            handlers.setdefault(name, []).append(handler)
    for position, event in enumerate(trace.events):
        for handler in handlers.get(event.name, ()):
            handler(position, event)
    commit_safe.at_the_end()
    log_match.at_the_end()
    high_watermark_mono.judge(shown_by(trace.operations) if shown is None else shown)
    hw_read.judge(trace, high_watermark_mono, findings)
    decision = Decision.ILLEGAL if findings.found else Decision.OK
    return Verdict(decision=decision, check=CHECK, findings=tuple(findings.found.values()))
