"""Messages derived from a trace: arrows between clients, brokers and ZooKeeper.

Owns which arrows there are, and how certain both their ends are. Must not know drawing.

A trace records what was done, not what was sent. Four rules derive messages from it; everything else
is left out.

- A produce request travels from its invocation to the leader's append of its records. Its answer travels from
  the moment at which the high watermark passed them (acks=all), or from the append, to the completion. An
  append without an answer has lost it; an unknown append that no leader wrote has lost its request.
- A copy travels from the leader, since it held the records and the follower followed it, to the follower's
  append.
- A LeaderAndIsr leaves its controller after the state was written to ZooKeeper, and arrives when it is
  obeyed.
- A write to ZooKeeper travels from its proposal to its commit, and its answer back.

If only the arrival is known, the arrow has no length: both ends are at the arrival (`sure` is False).
"""

from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum

from attrs import define, evolve, field, frozen

from fencepost.checkers.durations import duration
from fencepost.report.event_words import answer_in_words, event_in_words, request_in_words
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Trace
from fencepost.viewer.moments import Moments
from fencepost.viewer.replica_logs import Partition

LATE_NS = 1_000_000_000
"""A message that took longer is marked as late: a hundred times what the simulated network takes without
faults."""
ZOOKEEPER = "zk"


class MessageKind(IntEnum):
    """What is sent; the page's filter."""

    PRODUCE = 0
    COPY = 1
    CONTROL = 2
    ZOOKEEPER = 3
    READ = 4


class Fate(IntEnum):
    """How a message ended."""

    ARRIVED = 0
    LOST = 1
    LATE = 2
    REFUSED = 3


@frozen(kw_only=True)
class Message:
    """One arrow."""

    kind: MessageKind
    # Lane, such as "c4", "b1" or "zk".
    source: str
    # Step of the sending; equal to `arrived` if only one of them is known.
    sent: int
    # Lane; "" if it is not known.
    target: str
    # Step of the arrival.
    arrived: int
    fate: Fate = Fate.ARRIVED
    # Whether both ends are facts of the trace.
    sure: bool = True
    # Index of its operation; -1: none.
    operation: int = -1
    words: str = ""


@define
class _Found:
    """What the pass over the events has seen so far."""

    trace: Trace
    moments: Moments
    found: list[Message] = field(factory=list)
    # The step since which a replica holds an offset.
    held: dict[tuple[Partition, int], dict[int, int]] = field(factory=dict)
    # (leader, step) of each follower.
    following: dict[tuple[Partition, int], tuple[int, int]] = field(factory=dict)
    # The broker of each controller epoch.
    controllers: dict[int, int] = field(factory=dict)
    # The step at which a partition's state of a leader epoch was written.
    written: dict[tuple[Partition, int], int] = field(factory=dict)
    # Step and ISR of a proposal in flight.
    proposed: dict[tuple[Partition, int], tuple[int, tuple[int, ...]]] = field(factory=dict)
    # The step at which the high watermark passed an offset.
    committed: dict[tuple[Partition, int], int] = field(factory=dict)

    def time(self, step: int) -> int:
        """When a step was."""
        return self.moments.all[step].time

    def add(self, message: Message) -> None:
        """Add a message. It is late if both ends are known to be far from each other, or if a broker obeys it
        long after its decision. A copy is never late: a follower that was away fetches old records."""
        can_be = message.sure or message.kind is MessageKind.CONTROL
        late = can_be and self.time(message.arrived) - self.time(message.sent) > LATE_NS
        if late and message.fate is Fate.ARRIVED:
            took = duration(self.time(message.arrived) - self.time(message.sent))
            message = evolve(message, fate=Fate.LATE, words=f"{message.words} (late: {took})")
        self.found.append(message)

    # ---- brokers

    def copied(self, step: int, event: Event, key: Partition) -> None:
        """A follower appended what its leader had sent."""
        leader, since = self.following.get((key, event.node), (-1, 0))
        if leader < 0 or not event.values:
            return
        last = event.offset + len(event.values) - 1
        held = self.held.get((key, leader), {}).get(last, step)
        self.add(
            Message(
                kind=MessageKind.COPY,
                source=f"b{leader}",
                sent=max(held, since),
                target=f"b{event.node}",
                arrived=step,
                sure=False,
                words=f"fetched: {event_in_words(event)}",
            )
        )

    def control(self, position: int, step: int, event: Event) -> None:
        """A broker obeyed or refused a controller."""
        controller = self.controllers.get(event.controller_epoch, -1)
        sent = self._sent(position, step, event)
        refused = event.name is Name.CONTROL_REQUEST_REFUSED
        self.add(
            Message(
                kind=MessageKind.CONTROL,
                source=f"b{controller}" if controller >= 0 else "",
                sent=sent,
                target=f"b{event.node}",
                arrived=step,
                sure=False,
                fate=Fate.REFUSED if refused else Fate.ARRIVED,
                words=f"broker {event.node} {event_in_words(event)}",
            )
        )

    def _sent(self, position: int, step: int, event: Event) -> int:
        """The step of the write to ZooKeeper that a LeaderAndIsr announces, for the roles that the broker
        takes in the same step."""
        for follows in self.trace.events[position + 1 : position + 8]:
            if follows.time != event.time or follows.node != event.node:
                break
            if follows.name in (Name.BECAME_LEADER, Name.BECAME_FOLLOWER) and follows.topic is not None:
                return self.written.get(((follows.topic, follows.partition), follows.leader_epoch), step)
        return step

    # ---- ZooKeeper

    def state(self, step: int, event: Event, key: Partition) -> None:
        """A partition's state was written."""
        self.written.setdefault((key, event.leader_epoch), step)
        proposal = self.proposed.get((key, event.node))
        by_leader = proposal is not None and proposal[1] == event.isr
        sent = proposal[0] if proposal is not None and by_leader else step
        if by_leader:
            self.committed[key, event.node] = step
        self.zookeeper(step, event, sent=sent, sure=by_leader)

    def zookeeper(self, step: int, event: Event, *, sent: int | None = None, sure: bool = False) -> None:
        """A write committed."""
        if event.node < 0:
            return
        self.add(
            Message(
                kind=MessageKind.ZOOKEEPER,
                source=f"b{event.node}",
                sent=step if sent is None else sent,
                target=ZOOKEEPER,
                arrived=step,
                sure=sure,
                words=event_in_words(event),
            )
        )

    def answered(self, step: int, event: Event, key: Partition | None) -> None:
        """ZooKeeper's answer reached a broker."""
        refused = event.name in (Name.ISR_REFUSED, Name.CONTROLLER_WRITE_REFUSED)
        proposal = self.proposed.pop((key, event.node), None) if key is not None else None
        committed = self.committed.pop((key, event.node), None) if key is not None else None
        sent = (
            committed if committed is not None else proposal[0] if proposal is not None and refused else step
        )
        self.add(
            Message(
                kind=MessageKind.ZOOKEEPER,
                source=ZOOKEEPER,
                sent=sent,
                target=f"b{event.node}",
                arrived=step,
                sure=committed is not None,
                fate=Fate.REFUSED if refused else Fate.ARRIVED,
                words=f"broker {event.node} {event_in_words(event)}",
            )
        )

    def unanswered(self) -> None:
        """Proposals without an answer at the broker: the request or its answer was lost."""
        for (key, node), (step, _) in self.proposed.items():
            committed = self.committed.get((key, node))
            source, target = (f"b{node}", ZOOKEEPER) if committed is None else (ZOOKEEPER, f"b{node}")
            sent = step if committed is None else committed
            self.add(
                Message(
                    kind=MessageKind.ZOOKEEPER,
                    source=source,
                    sent=sent,
                    target=target,
                    arrived=sent,
                    fate=Fate.LOST,
                    words="the ISR change never reached ZooKeeper, as far as the trace goes"
                    if committed is None
                    else "ZooKeeper's answer never reached the broker, as far as the trace goes",
                )
            )

    # ---- the pass

    def event(self, position: int, event: Event) -> None:
        """One event, in order."""
        step = self.moments.event[position]
        key = (event.topic, event.partition) if event.topic is not None else None
        name = event.name
        if name in (Name.CONTROLLER_ELECTED, Name.CONTROLLER_EPOCH):
            self.controllers[event.controller_epoch] = event.node
        if name in (Name.CONTROL_REQUEST_APPLIED, Name.CONTROL_REQUEST_REFUSED):
            self.control(position, step, event)
        elif name in (Name.CONTROLLER_EPOCH, Name.CONTROLLER_ZNODE) or (
            name is Name.BROKER_ZNODE and event.broker_epoch >= 0
        ):
            self.zookeeper(step, event)
        elif name in (Name.ISR_UPDATED, Name.ISR_REFUSED, Name.CONTROLLER_WRITE_REFUSED):
            self.answered(step, event, key)
        if key is None:
            return
        if name is Name.APPENDED:
            if event.cause == "follower":
                self.copied(step, event, key)
            held = self.held.setdefault((key, event.node), {})
            held.update(dict.fromkeys(range(event.offset, event.offset + len(event.values)), step))
        elif name is Name.BECAME_FOLLOWER:
            self.following[key, event.node] = event.leader, step
        elif name is Name.BECAME_LEADER:
            self.following.pop((key, event.node), None)
        elif name is Name.PARTITION_STATE:
            self.state(step, event, key)
        elif name is Name.ISR_PROPOSED:
            self.committed.pop((key, event.node), None)
            self.proposed[key, event.node] = step, event.isr


@define
class _Produced:
    """appends: (step, event) of each leader's append, by (topic, partition, value). passed: (step, high
    watermark) of each leader, ascending in step."""

    appends: dict[tuple[str, int, int], list[tuple[int, Event]]] = field(factory=lambda: defaultdict(list))
    passed: dict[tuple[Partition, int], list[tuple[int, int]]] = field(factory=lambda: defaultdict(list))

    def event(self, step: int, event: Event) -> None:
        """One event, in order."""
        if event.topic is None:
            return
        if event.name is Name.APPENDED and event.cause == "leader":
            for value in event.values:
                self.appends[event.topic, event.partition, value].append((step, event))
        elif event.name is Name.HIGH_WATERMARK and event.cause == "leader":
            key = (event.topic, event.partition), event.node
            self.passed[key].append((step, event.high_watermark))

    def answer_left(self, step: int, event: Event, end: int, acks: int | None, until: int) -> int:
        """When the answer could leave: as the high watermark reached `end`, or at once."""
        assert event.topic is not None
        if acks in (None, ACKS_ALL):
            for passed, high_watermark in self.passed[(event.topic, event.partition), event.node]:
                if step <= passed <= until and high_watermark >= end:
                    return passed
        return step


def _of_append(index: int, operation: Operation, moments: Moments, produced: _Produced) -> list[Message]:
    """The requests of one append, one for each broker that took it, and its answer."""
    if not operation.records or not produced.appends:
        return []
    first, invoke = operation.records[0], moments.invoke[index]
    taken = [
        (step, event)
        for step, event in produced.appends.get((first.topic, first.partition, first.value), [])
        if step > invoke
    ]
    if not taken:
        return [_lost_request(index, operation, invoke)] if operation.outcome is Outcome.UNKNOWN else []
    requests = [
        Message(
            kind=MessageKind.PRODUCE,
            source=f"c{operation.process}",
            sent=invoke,
            target=f"b{event.node}",
            arrived=step,
            sure=operation.attempts == 1,
            operation=index,
            words=request_in_words(operation),
        )
        for step, event in taken
    ]
    return requests + _of_answer(index, operation, moments.answer[index], taken, produced)


def _lost_request(index: int, operation: Operation, invoke: int) -> Message:
    """An append of unknown outcome that no broker took."""
    return Message(
        kind=MessageKind.PRODUCE,
        source=f"c{operation.process}",
        sent=invoke,
        target=f"b{operation.node}" if operation.node >= 0 else "",
        arrived=invoke,
        fate=Fate.LOST,
        operation=index,
        words=f"{request_in_words(operation)}: no broker of this trace took it",
    )


def _of_answer(
    index: int, operation: Operation, answer: int, taken: Sequence[tuple[int, Event]], produced: _Produced
) -> list[Message]:
    """The answer to an append that brokers wrote at these steps: it arrived, was lost, or is unknown."""
    request, client = request_in_words(operation), f"c{operation.process}"
    if operation.outcome is Outcome.UNKNOWN:
        step, event = taken[-1]
        sent, arrived, fate = step, step, Fate.LOST
        words = f"{request}: the client never got the answer"
    else:
        before = [pair for pair in taken if pair[0] <= answer]
        if operation.outcome is not Outcome.OK or not before:
            return []
        step, event = before[-1]
        end = (operation.offset or 0) + len(operation.records)
        sent = produced.answer_left(step, event, end, operation.acks, answer)
        arrived, fate, words = answer, Fate.ARRIVED, f"{request}: {answer_in_words(operation)}"
    return [
        Message(
            kind=MessageKind.PRODUCE,
            source=f"b{event.node}",
            sent=sent,
            target=client,
            arrived=arrived,
            fate=fate,
            operation=index,
            words=words,
        )
    ]


def _of_read(index: int, operation: Operation, moments: Moments) -> list[Message]:
    """The answer of everything else that a broker is known to have answered; when it left is not known."""
    answer = moments.answer[index]
    if answer < 0 or operation.node < 0:
        return []
    # a transaction that is aborted as its producer asked is answered, not refused
    refused = operation.outcome is not Outcome.OK and operation.function is not Function.TXN
    return [
        Message(
            kind=MessageKind.READ,
            source=f"b{operation.node}",
            sent=answer,
            target=f"c{operation.process}",
            arrived=answer,
            sure=False,
            operation=index,
            fate=Fate.REFUSED if refused else Fate.ARRIVED,
            words=f"{request_in_words(operation)}: {answer_in_words(operation)}",
        )
    ]


def messages_of(trace: Trace, moments: Moments) -> list[Message]:
    """Every message that the trace lets be known, by arrival."""
    if not trace.events:
        return []
    between, produced = _Found(trace, moments), _Produced()
    for position, event in enumerate(trace.events):
        between.event(position, event)
        produced.event(moments.event[position], event)
    between.unanswered()
    for index, operation in enumerate(trace.operations):
        if operation.function is Function.APPEND:
            for message in _of_append(index, operation, moments, produced):
                between.add(message)
        else:
            between.found += _of_read(index, operation, moments)
    return sorted(between.found, key=lambda message: (message.arrived, message.sent, message.kind))
