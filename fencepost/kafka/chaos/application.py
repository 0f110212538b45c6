"""Chaos of a seed at the clients under test, while they run.

Owns which requests count as theirs, and how a strike of draw.py is carried out. Must not know sockets or
threads: everything here runs in the loop's thread, between a request and its effect.

A strike at a request is a fault of requests that is armed right before this very request goes through the
engine (proxy/faults), so that what is struck is what was seen. The service's process is killed from here: a
request later would be another moment.
"""

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.kafka.chaos import draw, hands
from fencepost.kafka.chaos.draw import Answers, Seen, Strike
from fencepost.kafka.chaos.moments import BETWEEN, END, HANDED_OUT, JOINING, RESULT, START, Moments
from fencepost.kafka.chaos.service_processes import Processes
from fencepost.proxy.faults.allowed import fits, may_answer
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.request import Asked
from fencepost.sim.scheduler import MILLISECOND

GAP_MS = 150
"""After a strike: the service goes on for so long before the next round begins."""
SETTLES_MS = 3_000
"""After a rebalance: so long the service may take to join again and commit before the next round begins. A
member asks every 3 s whether it has to join, by default."""
PAUSE_MS = 1_500
"""Of a process that is paused and has no session."""
LONGEST_PAUSE_MS = 3_000
"""A seed is to stay below 6 s; a session of Kafka's default, 45 s, does not end in a pause."""
BEYOND_MS = 500
"""By which a pause is longer than a session."""
LINGERS_MS = 1_000
"""How long a process that was replaced goes on after its pause, before it is killed."""
FOR_GOOD_MS = 2_500
"""So long a failure lasts that is to outlast the client's patience. Tests that are to be quick give it a
delivery time-out below that, those of the zoo 2 s: half of it would not outlast them, and twice of it would
leave a seed of 6 s no time for anything else."""
VERBS = {
    hands.LOSE: "lose answer",
    hands.DELAY: "delay",
    hands.DELAY_ANSWER: "delay answer",
    hands.FAIL: "answer",
    hands.FAIL_ALL: "answer",
    hands.REFUSE: "answer",
    hands.REFUSE_ALL: "answer",
    hands.SILENCE_ALL: "silence",
    hands.FENCE: "forget member",
}
"""Of faults of requests, for each act that is one."""
FORGETS = "Heartbeat"
"""The request by which a member hears that it was removed."""


@define(eq=False, kw_only=True)
class ApplicationChaos:
    """The strikes of one seed."""

    seed: int
    # Cluster time, nanoseconds.
    now: Callable[[], int]
    # after(milliseconds, function): calls it in the loop's thread.
    after: Callable[[int, Callable[[], object]], object]
    # The client's port of a connection; 0 where it is not known.
    port_of: Callable[[int], int]
    # Arms a fault of requests; answers its number.
    arm: Callable[[RequestFault], int]
    # Ends it.
    disarm: Callable[[int], None]
    # Lets a group rebalance.
    rebalance: Callable[[str], object]
    # Takes over a transactional id, as another producer with it does.
    take_over: Callable[[str], object]
    # Lets the leader of a topic's partition die before the others have what it takes from now on.
    lose_leader: Callable[[str, int], object]
    # Takes down a strike that is no fault of requests.
    note: Callable[[Strike], None]
    # Those of services; while there is none, every client is under test.
    processes: Processes
    # Names of the strikes that are carried out; None: all. The others keep their place.
    only: frozenset[str] | None = None
    # As they came, with those that were left out.
    strikes: list[Strike] = field(factory=list, init=False)
    # Processes that were stopped and want to be replaced; whoever starts services takes them.
    to_replace: list[int] = field(factory=list, init=False)
    # Those of them that have not gone on yet.
    _replaced: set[int] = field(factory=set, init=False)
    # All of them, and those that are about to be killed: what they still do is not struck.
    _old: set[int] = field(factory=set, init=False)
    # Kinds of moments that have to come after a rebalance that was struck, in their order: what it has led to
    # is gone with the memory of a process that ends before.
    _to_come: list[str] = field(factory=list, init=False)
    # They are not waited for beyond this time, nanoseconds.
    _settled_at: int = field(default=0, init=False)
    # Processes that were asked to end and want to be started again.
    to_restart: list[int] = field(factory=list, init=False)
    # Moments of the whole run, by kind.
    shown: Counter[str] = field(factory=Counter, init=False)
    _since: Counter[str] = field(factory=Counter, init=False)
    _moments: Moments = field(factory=Moments, init=False)
    # No strike before this time, nanoseconds.
    _quiet_until: int = field(default=0, init=False)
    # The longest session that members have asked for, milliseconds.
    _session_ms: int = field(default=0, init=False)
    _groups: set[str] = field(factory=set, init=False)
    # Transactional ids, by process; each has had one at most.
    _ids: dict[int, str] = field(factory=dict, init=False)
    # Armed for the request at hand.
    _armed: list[int] = field(factory=list, init=False)
    _ended: bool = field(default=False, init=False)

    @property
    def over(self) -> bool:
        """Whether no strike is left, and the last one has had its time."""
        return self._ended or (len(self.strikes) >= hands.HAND and not self._settling)

    @property
    def _settling(self) -> bool:
        """Whether a rebalance that was struck has led to nothing so far: a heartbeat has to tell the service
        of it, and what it does wrong then stays with its next commit."""
        return bool(self._to_come) and self.now() < self._settled_at

    def carries_out(self, strike: Strike) -> bool:
        """Whether a strike is not left out."""
        return self.only is None or strike.name in self.only

    def end(self) -> None:
        """No strike any more."""
        self._ended = True

    def on_request(self, source: int, asked: Asked) -> None:
        """A request was received; what strikes it is armed when this returns.

        Args:
            source: the connection.
            asked: the request.
        """
        process = self._tested(source)
        if process is None:
            return
        if asked.api == "JoinGroup":
            self._session_ms = max(self._session_ms, _milliseconds(asked.body.session_timeout))
        if asked.api == "InitProducerId" and asked.body.transactional_id:
            self._ids[process] = asked.body.transactional_id
        if asked.group:
            self._groups.add(asked.group)
        kind = self._moments.request(self.now(), process, asked)
        if kind:
            self._at(kind, process, asked)

    def after_request(self) -> None:
        """The request has gone through the engine: what was armed for it alone and has not struck ends."""
        for number in self._armed:
            self.disarm(number)
        self._armed.clear()

    def on_answer(self, source: int, asked: Asked, answer: Any) -> None:
        """An answer is about to be sent.

        Args:
            source: the connection.
            asked: the request.
            answer: decoded.
        """
        process = self._tested(source)
        if process is None:
            return
        kind = self._moments.answer(self.now(), asked, answer)
        if kind:
            self._at(kind, process, asked)

    def _tested(self, source: int) -> int | None:
        """The process of a connection under test, UNKNOWN without any; None for other connections."""
        if self._ended:
            return None
        process = self.processes.owner(source, self.port_of(source))
        return None if self.processes and process not in self.processes else process

    def _at(self, kind: str, process: int, asked: Asked) -> None:
        self.shown[kind] += 1
        if kind == START:
            self._to_come.clear()
        elif [kind] == self._to_come[:1]:
            del self._to_come[0]
        if kind in (RESULT, BETWEEN):
            for replaced in sorted(self._replaced - {process}):
                self._go_on(replaced)
        if self.now() < self._quiet_until or process in self._old or (self._settling and kind != JOINING):
            return
        self._since[kind] += 1
        seen = Seen(
            since=self._since,
            shown=self.shown,
            strikes=tuple(self.strikes),
            process=process in self.processes,
            member=self._session_ms > 0,
            transactional=bool(self._ids),
        )
        strike = draw.decide(self.seed, kind, _answers(asked), seen)
        if strike is None:
            return
        self.strikes.append(strike)
        self._since.clear()
        self._quiet_until = self.now() + GAP_MS * MILLISECOND
        if self.carries_out(strike):
            self._carry_out(strike, process, asked)

    def _carry_out(self, strike: Strike, process: int, asked: Asked) -> None:
        if strike.act in hands.OF_MEMBERS:
            self._to_come = [JOINING, BETWEEN]
            self._settled_at = self.now() + SETTLES_MS * MILLISECOND
        if strike.act == hands.KILL:
            self._kill(strike, process, asked)
        elif strike.act == hands.REPLACE:
            self._replace(process)
        elif strike.act == hands.PAUSE:
            self._pause(process)
        elif strike.act == hands.STOP:
            self._stop(strike, process, asked)
        elif strike.act == hands.REBALANCE:
            for group in sorted(self._groups):
                self.after(0, lambda group=group: self.rebalance(group))  # type: ignore[misc]
        elif strike.act == hands.TAKE_OVER:
            if process in self._ids:
                self.take_over(self._ids[process])
        elif strike.act == hands.LOSE_LEADER:
            for key in asked.partitions[:1]:
                self.lose_leader(key.topic, key.partition)
        elif strike.act == hands.FENCE:
            for group in sorted(self._groups):
                self.arm(RequestFault(verb=VERBS[strike.act], api=FORGETS, group=group, most=1))
            return
        else:
            self._arm_for(strike, asked)
            return
        self.note(strike)

    def _arm_for(self, strike: Strike, asked: Asked) -> None:
        where = asked.partitions[0] if strike.act in hands.FOR_GOOD and asked.api == "Produce" else None
        number = self.arm(
            RequestFault(
                verb=VERBS[strike.act],
                api=asked.api,
                error=strike.error,
                after_effect=strike.after_effect,
                milliseconds=strike.milliseconds,
                client=asked.header.client_id or "",
                # other clients may have the same id: those of the test write to other topics
                topic="" if where is None else where.topic,
                partition=-1 if where is None else where.partition,
                group=(asked.group or "") if strike.act in hands.FOR_GOOD else "",
                until_ms=FOR_GOOD_MS if strike.act in hands.FOR_GOOD else 0,
                most=0 if strike.act in hands.FOR_GOOD else 1,
            )
        )
        if strike.act not in hands.FOR_GOOD:
            self._armed.append(number)

    def _kill(self, strike: Strike, process: int, asked: Asked) -> None:
        self._old.add(process)
        if strike.kind not in (HANDED_OUT, END) and asked.answered:
            verb = "silence answer" if strike.after_effect else "silence"
            client = asked.header.client_id or ""
            self._armed.append(self.arm(RequestFault(verb=verb, api=asked.api, client=client, most=1)))
        if strike.milliseconds:
            self.after(strike.milliseconds, lambda: self.processes.signal(process, signal.SIGKILL))
        else:
            self.processes.signal(process, signal.SIGKILL)

    def _stop(self, strike: Strike, process: int, asked: Asked) -> None:
        """Ask it to end, while the request at hand takes longer. It may take effect after the next process
        has begun: where nothing keeps the two apart, it never does."""
        if strike.milliseconds:
            verb, later = ("delay", strike.milliseconds) if self._kept_apart else ("silence", 0)
            client = asked.header.client_id or ""
            late = RequestFault(verb=verb, api=asked.api, milliseconds=later, client=client, most=1)
            self._armed.append(self.arm(late))
        self.to_restart.append(process)
        self.processes.signal(process, signal.SIGTERM)

    @property
    def _kept_apart(self) -> bool:
        """Whether Kafka fences an earlier process of the service."""
        return self._session_ms > 0 or bool(self._ids)

    def _pause(self, process: int) -> None:
        """Stop it for longer than its session."""
        pause_ms = min(self._session_ms + BEYOND_MS if self._session_ms else PAUSE_MS, LONGEST_PAUSE_MS)
        self.processes.signal(process, signal.SIGSTOP)
        self.after(pause_ms, lambda: self.processes.signal(process, signal.SIGCONT))

    def _replace(self, process: int) -> None:
        """Stop it until another one has taken over, however long that takes to start; then let it go on for
        a while."""
        self.processes.signal(process, signal.SIGSTOP)
        self.to_replace.append(process)
        self._replaced.add(process)
        self._old.add(process)
        self.after(LONGEST_PAUSE_MS, lambda: self._go_on(process))

    def _go_on(self, process: int) -> None:
        if process in self._replaced:
            self._replaced.remove(process)
            self.processes.signal(process, signal.SIGCONT)
            self.after(LINGERS_MS, lambda: self.processes.signal(process, signal.SIGKILL))


def _answers(asked: Asked) -> Answers:
    """What this very request may be answered."""

    def fitting(after_effect: bool) -> tuple[str, ...]:
        faults = (
            RequestFault(verb="answer", api=asked.api, error=error, after_effect=after_effect)
            for error in may_answer(asked.api, after_effect=after_effect)
        )
        version, body = asked.header.version, asked.body
        return tuple(fault.error for fault in faults if fits(fault, version, body))

    return Answers(before=fitting(False), after=fitting(True))


def _milliseconds(time: Any) -> int:
    """Of kio's time-outs."""
    return int(time.total_seconds() * 1_000) if hasattr(time, "total_seconds") else int(time)
