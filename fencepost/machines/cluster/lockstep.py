"""What can be said against a simulated cluster after each step, before it is over: the models and judges that
need no end.

Owns the cursor over what the run has recorded so far. Must not know rules, Hypothesis, or how a run ends.
Three oracles go in lockstep with the run:

conformance    the executable model of replication: each protocol event must be one of its actions
               (model/refinement)
invariants     leader epochs grow, controller epochs fence, ISRs are held, nothing exposed is lost, ...
               (checkers/invariants, event by event)
log            what clients got in answers so far (checkers/log; of it what stands)

None of them finds what the judges of the whole trace do not find: those see more (final logs, progress), and
are asked in the end. Where facts begin to allow a loss, or a log gives up its first records, what depends on
them is left to the end.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.checkers.invariants.assign import Assign
from fencepost.checkers.invariants.commit_safe import CommitSafe
from fencepost.checkers.invariants.ctrl_fence import CtrlFence
from fencepost.checkers.invariants.deletion import Deletion
from fencepost.checkers.invariants.epoch_mono import EpochMono
from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.hw_bounds import HighWatermarkBounds
from fencepost.checkers.invariants.in_sync import InSync
from fencepost.checkers.invariants.incarnation import Incarnation
from fencepost.checkers.invariants.log_match import LogMatch
from fencepost.checkers.invariants.replicas import Replicas
from fencepost.checkers.log import judge_trace
from fencepost.checkers.verdict import Finding, Subject, standing, subject_of
from fencepost.model.refinement import Refinement
from fencepost.run.record import unfinished
from fencepost.run.simulated.recorder import Recorder
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Trace

Handler = Callable[[int, Event], None]
READS = (Function.APPEND, Function.POLL, Function.LIST_OFFSETS)


@define(eq=False)
class Lockstep:
    """Judges that see each event and operation as it is recorded."""

    plan: Plan
    # What the run records.
    record: Recorder
    # The first finding of each kind so far.
    found: list[Finding] = field(factory=list)
    # Number of events seen.
    taken: int = 0
    # Number of completed operations seen.
    answered: int = 0
    # What was found in answers so far.
    known: dict[Subject, None] = field(factory=dict)
    findings: Findings = field(factory=Findings)
    handlers: dict[Name, list[Handler]] = field(factory=dict)
    refinement: Refinement = field(init=False)
    # Topics that allow an unclean election.
    unclean: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        topics = self.plan.cluster.topics
        self.unclean = frozenset(topic.name for topic in topics if topic.unclean_leader_election)
        compacted = frozenset(topic.name for topic in topics if "compact" in topic.cleanup_policy)
        self.refinement = Refinement(allows_unclean=self.unclean.__contains__, compacted=compacted)
        replicas, findings = Replicas(), self.findings
        for part in (
            replicas,
            CommitSafe(replicas, findings, ()),
            LogMatch(replicas, findings, self.record.events, ()),
            HighWatermarkBounds(findings),
            EpochMono(findings),
            CtrlFence(findings),
            InSync(findings),
            Incarnation(findings),
            Assign(findings),
            Deletion(findings),
        ):
            for name, handler in part.handlers().items():
                self.handlers.setdefault(name, []).append(handler)

    def step(self) -> list[Finding]:
        """Take in what happened since the last step; what is found for the first time now."""
        known = len(self.found)
        for position in range(self.taken, len(self.record.events)):
            self._event(position, self.record.events[position])
        self.taken = len(self.record.events)
        self._operations()
        return self.found[known:]

    @property
    def firm(self) -> bool:
        """Whether no loss is allowed so far, and no log has given up its first records."""
        facts = self.record.observed_state
        unclean = any(
            partition.unclean and topic in self.unclean for (topic, _), partition in facts.partitions.items()
        )
        return not (facts.losses or facts.power_lost or facts.retained or unclean)

    def _event(self, position: int, event: Event) -> None:
        known = len(self.findings.found)
        for handler in self.handlers.get(event.name, ()):
            handler(position, event)
        for finding in list(self.findings.found.values())[known:]:
            if finding.anomaly != "committed_record_lost" or self.firm:
                self.found.append(finding)
        mismatch = self.refinement.step(position, event)
        if mismatch is not None:
            self.found.append(
                Finding(
                    anomaly="conformance",
                    check="conformance",
                    expected=mismatch.expected,
                    seen=f"{mismatch.action}: {mismatch.seen}",
                    topic=event.topic,
                    partition=event.partition,
                    offset=mismatch.offset,
                    events=(position,),
                )
            )

    # ---- clients

    def _operations(self) -> None:
        """Judge what clients have got so far, if anything was answered since the last step."""
        done = self.record.operations
        if len(done) == self.answered:
            return
        self.answered = len(done)
        under_way = [
            unfinished(planned, invoke_time, Outcome.UNKNOWN)
            for planned, invoke_time in self.record.invoked.values()
        ]
        rows = tuple(row for row in (*done, *under_way) if row.topic is not None and row.function in READS)
        so_far = Trace(trace_id=0, plan="", seed=0, software_version="", operations=rows)
        allowed = self.firm and not self.plan.client.retry_unknown
        for finding in standing((judge_trace(so_far),), so_far):
            subject = subject_of(finding.check, finding.anomaly, finding.topic, finding.partition)
            if subject not in self.known:
                self.known[subject] = None
                if allowed:
                    self.found.append(finding)
