"""`python -m tools.sequence`: draws sequence diagrams of real traces between the marks of
docs/explanation/architecture.md.

Each diagram is a window of the recorded trace of a small plan, run in the simulator: nothing in it is written
by hand. An event that crosses from one party to another is an arrow, any other one a note; events that say
nothing about the window's story are left out by name. Times are from the window's beginning.
"""

import re
from collections.abc import Callable

import rich_click as click
from attrs import define, field, frozen

from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.plan import ClusterOptions, Fault, NetworkOptions, Plan, PlannedOperation, TopicOptions
from fencepost.traces.trace import Trace
from tools import program
from tools.ledger import TOP
from tools.page import drawn

PAGE = TOP / "docs" / "explanation" / "architecture.md"
MILLISECOND = 1_000_000

PLAN = Plan(
    seed=1,
    safety_ms=12_000,
    cluster=ClusterOptions(
        topics=(TopicOptions(name="t", min_insync_replicas=2),),
        zookeeper_session_timeout_ms=2_000,
        leader_imbalance_check_ms=0,
    ),
    network=NetworkOptions(latency_min_us=1_000, latency_tail_us=0),
    operations=(
        PlannedOperation(op_id=1, process=0, at_ms=1_000, function="append"),
        PlannedOperation(op_id=3, process=1, at_ms=4_600, function="append"),
    ),
    faults=(Fault(fault_id=0, kind="crash", at_ms=3_000, duration_ms=6_000, target="controller"),),
)
"""Three brokers a millisecond apart; broker 1 is the controller and leads t-0, and dies three seconds into
the safety phase."""

Item = Event | Operation


@frozen(kw_only=True)
class Window:
    """What one diagram shows: what happens from `start` to `end` (nanoseconds), of the names in `shown`, and
    of operation `op_id`."""

    start: int
    end: int
    shown: frozenset[Name]
    op_id: int


def produce(trace: Trace) -> Window:
    """From the first append to the moment when every broker knows that it is committed."""
    append = trace.operations[0]
    known = [
        event.time
        for event in trace.events
        if event.name is Name.HIGH_WATERMARK and event.high_watermark == 1
    ]
    shown = frozenset({Name.APPENDED, Name.HIGH_WATERMARK})
    return Window(start=append.invoke_time, end=known[2], shown=shown, op_id=append.op_id)


def failover(trace: Trace) -> Window:
    """From the crash to the first append that the new leader acknowledges."""
    start = next(event.time for event in trace.events if event.name is Name.FAULT_BEGAN)
    append = trace.operations[1]
    assert append.completion_time is not None
    shown = frozenset(Name) - {Name.LIVE_BROKERS, Name.BROKER_STATE, Name.PHASE}
    return Window(start=start, end=append.completion_time, shown=shown, op_id=append.op_id)


WINDOWS: dict[str, Callable[[Trace], Window]] = {"produce": produce, "failover": failover}


@define
class Drawing:
    """leaders: whom each broker follows. controllers: who was elected in each controller epoch. lines: the
    diagram so far."""

    window: Window
    leaders: dict[int, int] = field(factory=dict)
    controllers: dict[int, int] = field(factory=dict)
    lines: list[str] = field(factory=list)

    def learn(self, event: Event) -> None:
        """What later arrows need to know, inside the window or before."""
        if event.name is Name.BECAME_FOLLOWER:
            self.leaders[event.node] = event.leader
        elif event.name is Name.CONTROLLER_EPOCH:
            self.controllers[event.controller_epoch] = event.node

    def arrow(self, source: str, target: str, text: str, time: int, *, answer: bool = False) -> None:
        """A message, request or answer."""
        self.lines.append(f"    {source}{'-->>' if answer else '->>'}{target}: {text} ({self._since(time)})")

    def note(self, party: str, text: str, time: int) -> None:
        """Something that happens at one party."""
        self.lines.append(f"    Note over {party}: {text} ({self._since(time)})")

    def _since(self, time: int) -> str:
        return f"+{(time - self.window.start) / MILLISECOND:.1f} ms"

    def draw(self, event: Event) -> None:
        """One event."""
        if event.name in _DRAWN:
            _DRAWN[event.name](self, event)


def _broker(node: int) -> str:
    return f"B{node}"


def _list(brokers: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, brokers)) + "}"


def _appended(drawing: Drawing, event: Event) -> None:
    where = f"offset {event.offset}, leader epoch {event.leader_epoch}"
    if event.cause == "leader":
        drawing.note(_broker(event.node), f"appends at {where}", event.time)
    else:
        leader = _broker(drawing.leaders[event.node])
        drawing.arrow(leader, _broker(event.node), f"fetched: the record at {where}", event.time, answer=True)


def _high_watermark(drawing: Drawing, event: Event) -> None:
    mark = f"high watermark {event.high_watermark}"
    if event.cause == "leader":
        drawing.note(_broker(event.node), f"every ISR member asks for more: {mark}", event.time)
    else:
        leader = _broker(drawing.leaders[event.node])
        drawing.arrow(leader, _broker(event.node), f"fetched: {mark}", event.time, answer=True)


def _controller_znode(drawing: Drawing, event: Event) -> None:
    if event.leader < 0:
        drawing.note("Z", "/controller is gone with the session", event.time)
    else:
        text = f"multi[create /controller, set /controller_epoch]: broker {event.leader}"
        drawing.arrow(_broker(event.node), "Z", text, event.time)


def _partition_state(drawing: Drawing, event: Event) -> None:
    text = (
        f"multi[check /controller_epoch, set state]: leader {event.leader}, leader epoch "
        f"{event.leader_epoch}, ISR {_list(event.isr)}"
    )
    drawing.arrow(_broker(event.node), "Z", text, event.time)


def _applied(drawing: Drawing, event: Event) -> None:
    controller = _broker(drawing.controllers[event.controller_epoch])
    kind = event.cause.removesuffix("Request")
    drawing.arrow(
        controller, _broker(event.node), f"{kind}, controller epoch {event.controller_epoch}", event.time
    )


def _mark(drawing: Drawing, event: Event) -> None:
    drawing.note(_broker(event.node), event.cause.replace("_", " "), event.time)


_DRAWN: dict[Name, Callable[[Drawing, Event], None]] = {
    Name.APPENDED: _appended,
    Name.HIGH_WATERMARK: _high_watermark,
    Name.CONTROLLER_ZNODE: _controller_znode,
    Name.PARTITION_STATE: _partition_state,
    Name.CONTROL_REQUEST_APPLIED: _applied,
    Name.MARK: _mark,
    Name.FAULT_BEGAN: lambda drawing, event: drawing.note(_broker(event.node), event.cause, event.time),
    Name.BROKER_ZNODE: lambda drawing, event: drawing.note(
        "Z", f"the session of broker {event.node} has expired: /brokers/ids/{event.node} is gone", event.time
    ),
    Name.CONTROLLER_ELECTED: lambda drawing, event: drawing.note(
        _broker(event.node),
        f"controller of epoch {event.controller_epoch}: loads what is in ZooKeeper",
        event.time,
    ),
    Name.BECAME_LEADER: lambda drawing, event: drawing.note(
        _broker(event.node), f"leads in epoch {event.leader_epoch} from offset {event.offset}", event.time
    ),
    Name.BECAME_FOLLOWER: lambda drawing, event: drawing.note(
        _broker(event.node), f"follows broker {event.leader} in epoch {event.leader_epoch}", event.time
    ),
}


def _client(drawing: Drawing, operation: Operation, *, begins: bool) -> None:
    broker = _broker(operation.node)
    if begins:
        drawing.arrow("C", broker, "append, acks=all", operation.invoke_time)
    else:
        assert operation.completion_time is not None
        drawing.arrow(broker, "C", f"ok at offset {operation.offset}", operation.completion_time, answer=True)


def diagram(trace: Trace, window: Window) -> str:
    """A Mermaid sequence diagram of the window."""
    drawing = Drawing(window)
    operation = next(operation for operation in trace.operations if operation.op_id == window.op_id)
    assert operation.completion_time is not None
    waiting: list[tuple[int, bool]] = [(operation.invoke_time, True), (operation.completion_time, False)]
    for event in trace.events:
        while waiting and waiting[0][0] <= event.time:
            _client(drawing, operation, begins=waiting.pop(0)[1])
        drawing.learn(event)
        if window.start <= event.time <= window.end and event.name in window.shown:
            drawing.draw(event)
    parties = ["    participant C as client"]
    parties += [f"    participant B{broker} as broker {broker}" for broker in (1, 2, 3)]
    if any("Z" in re.split(r"[:>]", line)[0] or ">>Z" in line for line in drawing.lines):
        parties.append("    participant Z as ZooKeeper")
    return "\n".join(["```mermaid", "sequenceDiagram", *parties, *drawing.lines, "```"]) + "\n"


@click.command("sequence", help=__doc__)
def command() -> None:
    """Draw them anew."""
    trace = run(PLAN)
    for name, window in WINDOWS.items():
        drawn(PAGE, name).write(diagram(trace, window(trace)))


if __name__ == "__main__":
    program.run(command, "sequence")
