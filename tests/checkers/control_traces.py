"""Seeded random traces of ZooKeeper, controllers and brokers: most events are such as a cluster could record,
together they often are not."""

from random import Random
from typing import Any

from attrs import define, field

from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace
from tests.checkers import lab


@define
class Maker:
    """events so far, and the epochs that go up with them."""

    random: Random
    events: list[Event] = field(factory=list)
    epoch: int = 0
    controller: int = 1

    def made(self, name: Name, **columns: Any) -> None:
        """One event, somewhere unless that is said."""
        where = {"topic": self.random.choice("tttu"), "partition": self.random.choice((0, 0, 0, 1))}
        common = {"time": len(self.events), "node": self.random.choice((1, 2, 3)), **where}
        self.events.append(Event(name=name, **{**common, **columns}))

    def some(self) -> tuple[int, ...]:
        """Some brokers, in any order."""
        return tuple(self.random.sample((1, 2, 3), self.random.choice((1, 2, 2, 3))))

    def somebody_dies(self) -> None:
        """A member of an ISR dies, and a controller that was elected since has taken over."""
        self.made(Name.BROKER_ZNODE, node=1, broker_epoch=5)
        self.made(Name.PARTITION_STATE, leader=1, leader_epoch=0, isr=self.some(), controller_epoch=1)
        self.made(Name.BROKER_ZNODE, node=self.random.choice((2, 3)), broker_epoch=-1)
        elected = self.random.choice((Name.CONTROLLER_ELECTED, Name.CONTROLLER_ELECTED, Name.BROKER_STATE))
        self.made(elected, node=3, controller_epoch=2)
        self.made(Name.CONTROLLER_EPOCH, controller_epoch=2)
        self.made(Name.MARK, cause="failed_over", controller_epoch=self.random.choice((1, 2, 2)))
        self.epoch, self.controller = 1, 2

    def something_stays(self) -> None:
        """A topic goes, and leaves something behind."""
        self.made(Name.ASSIGNMENT, node=-1, topic="u", partition=0, replicas=self.some())
        self.made(Name.TOPIC_DELETION, node=-1, topic="u", partition=-1, cause="requested")
        self.made(Name.ASSIGNMENT, topic="u", partition=0)
        self.made(Name.REPLICA_LOG, topic="u", partition=0, offset=0, end_offset=0, high_watermark=0)

    def anything(self) -> None:
        """One event of any name."""
        choice, some = self.random.choice, self.some
        self.controller = max(0, self.controller + choice((0, 0, 0, 0, 0, 1, -1)))
        self.epoch += choice((0, 0, 0, 0, 1))
        name, operator = choice(NAMES), choice((-1, 1, 2))
        epochs = {"leader_epoch": self.epoch, "controller_epoch": self.controller}
        isr = {"isr": some(), "zk_version": self.random.randrange(3)}
        said: dict[Name, dict[str, Any]] = {
            Name.PARTITION_STATE: {"leader": choice((-1, 1, 2)), **isr},
            Name.ASSIGNMENT: {"node": operator, "replicas": choice((some(), some(), ()))},
            Name.REASSIGNMENT: {"node": operator, "replicas": choice((some(), some(), ()))},
            Name.TOPIC_DELETION: {
                "node": operator,
                "partition": -1,
                "cause": choice(("requested", "requested", "done")),
            },
            Name.REPLICA_LOG: {"offset": 0, "end_offset": 0, "high_watermark": 0},
            Name.LIVE_BROKERS: {"replicas": some()},
            Name.ISR_PROPOSED: {"cause": choice(("expand", "shrink")), **isr},
            Name.ISR_UPDATED: isr,
            Name.BROKER_ZNODE: {"broker_epoch": choice((-1, 5))},
            Name.CONTROL_REQUEST_APPLIED: {"broker_epoch": choice((-1, 5, 6))},
            Name.BROKER_REGISTERED: {"broker_epoch": choice((5, 6))},
            Name.MARK: {
                "cause": choice(MARKS),
                "broker_epoch": choice((5, 6)),
                "detail": choice(("", '{"known_broker_epoch":6}')),
            },
        }
        self.made(name, **{**epochs, **said.get(name, {})})


TWICE = (Name.PARTITION_STATE, Name.ASSIGNMENT, Name.REASSIGNMENT, Name.MARK)
NAMES = (
    *TWICE,
    *TWICE,
    Name.CONTROLLER_EPOCH,
    Name.CONTROLLER_ELECTED,
    Name.TOPIC_DELETION,
    Name.REPLICA_LOG,
    Name.LIVE_BROKERS,
    Name.ISR_PROPOSED,
    Name.ISR_UPDATED,
    Name.BROKER_ZNODE,
    Name.CONTROL_REQUEST_APPLIED,
    Name.BROKER_STARTED,
    Name.BROKER_REGISTERED,
)
MARKS = ("replica_deleted", "failed_over", "reassignment_refused", "controlled_shutdown")


def control_trace(random: Random) -> Trace:
    """Some fifteen events."""
    maker = Maker(random)
    if random.random() < 0.2:
        maker.somebody_dies()
    if random.random() < 0.1:
        maker.something_stays()
    for _ in range(random.randint(1, 24)):
        maker.anything()
    return lab.trace(trace_id=1, events=tuple(maker.events))
