"""Candidates over worker processes: both ends of the pipe.

Owns: which candidates are tried ahead of their turn. Must not know what candidates there are, or how
processes are kept (workers/pool.py).

Candidates are handed out in their order, as many at once as there are processes. The first one in that order
that shows the target is the answer, also if a later one was known earlier: so the answer does not depend on
the number of processes. A process that dies or gives no answer in time says that its candidate does not show
the target.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

import msgspec
from attrs import define, field, frozen

from fencepost.campaign.shrink.oracle import OutOfTimeError, Target, key_of
from fencepost.campaign.workers.pool import Pool
from fencepost.campaign.workers.results import RunResult, Task
from fencepost.checkers.judges import load as load
from fencepost.checkers.verdict import Decision
from fencepost.processes import forking
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json, plan_to_json

COMMAND = (*forking.BEGIN, "fencepost.campaign.shrink.workers")
CANDIDATE_LIMIT_S = 120
"""Real time after which a candidate is given up: a simpler plan that takes longer than any run of a campaign
is no simpler."""
PATIENCE_S = 0.5
"""How long the driver listens before it looks at its limit of time."""


@frozen(kw_only=True)
class Candidate(Task):
    """What a worker judges next; its seed is a number of the driver's."""

    # JSON.
    plan: str = ""


@define(eq=False, kw_only=True)
class Workers:
    """Runs candidates in worker processes; see shrink_oracle.Oracle."""

    target: Target
    jobs: int
    # From now on, None for no limit.
    seconds: float | None = None
    runs: int = field(default=0, init=False)
    # Answers so far, by key.
    known: dict[bytes, bool] = field(factory=dict, init=False)
    # Candidates in hand, by their number.
    asked: dict[int, bytes] = field(factory=dict, init=False)
    started: float = field(factory=time.monotonic, init=False)
    _numbers: int = field(default=0, init=False)
    _pool: Pool = field(init=False)

    def __attrs_post_init__(self) -> None:
        line = msgspec.json.encode(self.target) + b"\n"
        self._pool = Pool(self.jobs, lambda slot: line, COMMAND, CANDIDATE_LIMIT_S)

    def first(self, candidates: Sequence[Plan]) -> int | None:
        """See Oracle."""
        keys = [key_of(plan) for plan in candidates]
        while True:
            for place, key in enumerate(keys):
                if key not in self.known:
                    break
                if self.known[key]:
                    return place
            else:
                return None
            self._hand_out(candidates, keys)
            for answer in self._pool.answers(PATIENCE_S):
                result = answer.result
                shown = result is not None and result.decision is Decision.ILLEGAL
                self.known[self.asked.pop(answer.task.seed)] = shown

    def _hand_out(self, candidates: Sequence[Plan], keys: Sequence[bytes]) -> None:
        """Give idle processes the next candidates: none after one that is known to show the target."""
        if self.seconds is not None and time.monotonic() - self.started > self.seconds:
            raise OutOfTimeError
        in_hand = set(self.asked.values())
        waiting = []
        for plan, key in zip(candidates, keys, strict=True):
            if self.known.get(key):
                break
            if key not in self.known and key not in in_hand:
                waiting.append((plan, key))
                in_hand.add(key)
        for slot, (plan, key) in zip(list(self._pool.idle()), waiting, strict=False):
            self._numbers += 1
            self.runs += 1
            self.asked[self._numbers] = key
            self._pool.give(slot, Candidate(seed=self._numbers, plan=plan_to_json(plan)))

    def close(self) -> None:
        """End the processes."""
        self._pool.close()


def serve(candidates: BinaryIO, answers: BinaryIO) -> None:
    """Answer candidates until the pipe closes. The first line is the target; Illegal says that it was shown,
    Ok that it was not."""
    target = msgspec.json.decode(candidates.readline(), type=Target)
    for line in candidates:
        candidate = msgspec.json.decode(line, type=Candidate)
        shown = target.shown_by_plan(plan_from_json(candidate.plan))
        decision = Decision.ILLEGAL if shown else Decision.OK
        answers.write(RunResult(seed=candidate.seed, decision=decision).to_json() + b"\n")
        answers.flush()


def main() -> None:
    """Entry of the process. What libraries print goes to standard error: standard output belongs to the
    answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:  # the parent is gone
        os._exit(0)
