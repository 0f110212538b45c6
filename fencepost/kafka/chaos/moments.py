"""At which moments a service can be struck, as its requests and their answers show them.

Owns the kinds of moments. Must not know strikes, processes or the clock: time is a parameter, in nanoseconds.
"""

from typing import Any

from attrs import define, field

from fencepost.proxy.faults.request import Asked
from fencepost.sim.scheduler import MILLISECOND
from fencepost.wire.shapes import rows_of

START = "at a start"
HANDED_OUT = "records handed out"
RESULT = "a result not yet answered"
COMMIT = "a commit not yet answered"
BETWEEN = "between two commits"
JOINING = "a rebalance waits for it"
IDLE = "idle"
END = "at the end"
KINDS = (START, HANDED_OUT, RESULT, COMMIT, BETWEEN, JOINING, IDLE, END)
"""Every kind."""
IDLE_MS = 250
"""So long without any other moment is idle: above the time between two records of a service at work."""
END_MS = 900
"""So long is taken for the end of the input: above the time that fetches wait for more, 500 ms by default."""
COMMITS = frozenset({"OffsetCommit", "EndTxn"})
"""Requests that end a piece of work. Offsets of a transaction take effect with its end."""
JOINS = frozenset({"JoinGroup", "SyncGroup"})
WORKING = frozenset({"JoinGroup", "Fetch", "InitProducerId", "OffsetFetch"})
"""The first of these says that a service has started: what comes before only looks around."""


@define(eq=False)
class Moments:
    """The moments of the clients under test."""

    # Of the last moment that was not idle, nanoseconds. Never goes back.
    _last: int = field(default=0, init=False)
    # Idle kinds since then.
    _said: set[str] = field(factory=set, init=False)
    # Processes that have committed or written something, since the last start: before that, an idle service
    # only waits for its group, as for the end of the session of the process before it.
    _worked: set[int] = field(factory=set, init=False)
    # Processes that have begun to work; -1 for clients without one.
    _started: set[int] = field(factory=set, init=False)

    def request(self, now: int, process: int, asked: Asked) -> str:
        """The kind of the moment at which a request was received and not yet carried out; "" for none.

        Args:
            now: nanoseconds.
            process: the one that asks; -1: not known.
            asked: the request.
        """
        kind = self._kind(process, asked)
        if kind:
            self._last = now
            self._said.clear()
            if kind in (RESULT, COMMIT):
                self._worked.add(process)
            return kind
        if process not in self._worked:
            return ""
        for idle, after_ms in ((IDLE, IDLE_MS), (END, END_MS)):
            if idle not in self._said and now - self._last >= after_ms * MILLISECOND:
                self._said.add(idle)
                return idle
        return ""

    def _kind(self, process: int, asked: Asked) -> str:
        if asked.api in WORKING and process not in self._started:
            self._started.add(process)
            self._worked.clear()
            return START
        if asked.api == "Produce":
            return RESULT
        if asked.api in COMMITS:
            return COMMIT
        return JOINING if asked.api in JOINS else ""

    def answer(self, now: int, asked: Asked, answer: Any) -> str:
        """The kind of the moment at which an answer is about to be sent; "" for none."""
        if asked.api == "Fetch" and any(row.records for row in rows_of(answer).values()):
            kind = HANDED_OUT
        elif asked.api in COMMITS:
            kind = BETWEEN
        else:
            return ""
        self._last = now
        self._said.clear()
        return kind
