"""A lab that tells what happens: each step of a story in the teller's words, below it the trace events and
the znodes that changed."""

from typing import Any, Self

from impl_lab import Lab

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Event, Name

WIDTH = 150
"""Of a line about a znode."""
QUIET = frozenset({Name.HIGH_WATERMARK, Name.BROKER_STARTED, Name.LIVE_BROKERS, Name.ISR_PROPOSED})
"""Events that a story is readable without."""
HIDDEN = ("/zookeeper", "/brokers/ids/")
"""Znodes whose content says nothing to a reader."""


class Story(Lab):
    """lines: the transcript so far."""

    def __init__(self, title: str, *args: Any, **options: Any) -> None:
        self.lines = [title, "=" * len(title)]
        self._told = 0
        self._shown: dict[str, str] = {}
        super().__init__(*args, **options)

    def tell(self, text: str) -> None:
        """What came of the last step; then the next step begins."""
        self.show()
        self.lines += ["", f"-- {text}"]

    def show(self) -> None:
        """What happened since, and what stands otherwise in ZooKeeper."""
        self.lines += [
            f"   {sentence(event)}" for event in self.events[self._told :] if event.name not in QUIET
        ]
        self._told = len(self.events)
        now = self._znodes()
        for path in sorted(now.keys() | self._shown.keys()):
            if now.get(path) != self._shown.get(path):
                self.lines.append(f"   znode {path}: {now.get(path, 'removed')}"[:WIDTH].rstrip())
        self._shown = now

    def rest(self, milliseconds: int = 12_000) -> Self:
        """Everything arrives and comes to rest."""
        return super().rest(milliseconds)

    def _znodes(self) -> dict[str, str]:
        found = {}
        for path in self.tree.paths():
            node = self.tree.node(path)
            assert node is not None
            if path.startswith("/brokers/ids/"):
                found[path] = "a broker's registration"
            elif node.data and not path.startswith(HIDDEN):
                found[path] = node.data.decode()
            elif path.startswith("/admin/delete_topics/"):
                found[path] = "(empty)"
        return found

    def transcript(self) -> str:
        """The whole story."""
        self.show()
        return "\n".join(self.lines) + "\n"


def sentence(event: Event) -> str:
    """One event in words."""
    key = TopicPartition(event.topic, event.partition) if event.topic else None
    who = f"broker {event.node}:"
    isr = ",".join(map(str, event.isr))
    texts = {
        Name.CONTROLLER_ELECTED: f"is the controller, epoch {event.controller_epoch}",
        Name.CONTROLLER_RESIGNED: f"resigns as controller of epoch {event.controller_epoch}: {event.cause}",
        Name.CONTROLLER_WRITE_REFUSED: f"ZooKeeper refuses its write as controller of epoch "
        f"{event.controller_epoch}",
        Name.BROKER_REGISTERED: "is registered",
        Name.SESSION_EXPIRED: "learns that its session has expired",
        Name.BROKER_STATE: f"is in state {event.cause}",
        Name.LOG_RECOVERED: f"opens {key}, log end {event.offset}, high watermark {event.high_watermark}",
        Name.BECAME_LEADER: f"leads {key} in epoch {event.leader_epoch}, ISR {isr}, log end {event.offset}",
        Name.BECAME_FOLLOWER: f"follows broker {event.leader} on {key} in epoch {event.leader_epoch}",
        Name.APPENDED: f"appends {list(event.values)} to {key} at {event.offset}, epoch {event.leader_epoch}",
        Name.TRUNCATED: f"cuts {key} from {event.end_offset} to {event.offset} ({event.cause})",
        Name.ISR_UPDATED: f"changes the ISR of {key} to {isr} ({event.cause})",
        Name.ISR_REFUSED: f"is refused the ISR {isr} of {key}",
        Name.FETCH_REFUSED: f"refuses a fetch of {key} with epoch {event.leader_epoch}: {event.detail}",
        Name.CONTROL_REQUEST_APPLIED: f"obeys {event.cause} of controller epoch {event.controller_epoch}",
        Name.CONTROL_REQUEST_REFUSED: f"refuses {event.cause} of controller epoch {event.controller_epoch}: "
        f"{event.detail}",
        Name.MARK: " ".join(filter(None, (event.cause.replace("_", " "), str(key or ""), isr, event.detail))),
    }
    return f"{who} {texts.get(event.name, event.name.value)}"
