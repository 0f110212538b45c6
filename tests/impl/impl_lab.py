"""Brokers driven by hand: every message waits in `mail` until a test delivers, repeats or drops it.

The cores are the real ones on simulated disks and the simulated ZooKeeper tree; time, delivery and (unless
brokers are to elect one) the controller are the test's. ZooKeeper answers at once, unless a test holds a
broker's requests or loses its replies.
"""

from typing import Any, Self

from impl_counterparts import Counterparts
from impl_driver import CLIENT, MILLISECOND, MOST_STEPS, SCRIPT, T0, Driver, Mail
from impl_zookeeper import ZooKeeperByHand

from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core import core_interface
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.log.values import runs_in_batch
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.sim.disk import PowerLoss
from fencepost.sim.zookeeper_tree import Tree
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, TopicOptions

__all__ = ["CLIENT", "MILLISECOND", "SCRIPT", "T0", "Lab"]


class Lab(ZooKeeperByHand, Counterparts):
    """now: the one clock. mail: messages between brokers that nobody delivered yet; answers: those to clients
    and to the script."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        parts: Parts | None = None,
        scripted: bool = True,
        start: bool = True,
        topic: TopicOptions | None = None,
        **options: Any,
    ) -> None:
        options = {"leader_imbalance_check_ms": 0} | options
        self.options = ClusterOptions(brokers=brokers, topics=(topic or TopicOptions(),), **options)
        self.parts = parts or Parts()
        self.now = 1_000 * MILLISECOND
        self.tree = Tree()
        self.drivers = {node: Driver(node) for node in range(1, brokers + 1)}
        self.mail: list[Mail] = []
        self.answers: list[Mail] = []
        self.events: list[Event] = []
        self._sessions: dict[int, int] = {}
        self._next_session = 0
        self._correlation_id = 0
        if scripted:
            self.admin(Create(znodes.CONTROLLER, znodes.encode_controller(SCRIPT, 0)))
        if start:
            for node in self.drivers:
                self.start(node)

    # ---- processes

    def start(self, node: int, parts: Parts | None = None) -> Self:
        """Start a broker's process, with a session; it registers."""
        driver = self.drivers[node]
        driver.core = make_broker(node, self.options, driver.disk, parts or self.parts, self.now)
        self.step(node, core_interface.Started())
        self.connect(node)
        return self

    def crash(self, node: int) -> Self:
        """The process dies; its session is gone at once."""
        driver = self.drivers[node]
        driver.core = None
        driver.inbox.clear()
        driver.timers.clear()
        driver.held.clear()
        driver.holds_zookeeper = False
        self.mail = [mail for mail in self.mail if mail.target != node]
        self.end_session(node)
        return self

    def power_loss(self, node: int) -> Self:
        """As `crash`, and what was not synced may be lost."""
        self.crash(node)
        self.drivers[node].disk.power_loss()
        return self

    def restart(self, node: int, parts: Parts | None = None) -> Self:
        """Crash and start."""
        self.crash(node)
        self.start(node, parts)
        return self

    def core(self, node: int) -> Broker:
        """The broker's core."""
        core = self.drivers[node].core
        assert core is not None, f"broker {node} is down"
        return core

    # ---- steps

    def step(self, node: int, input: Any) -> None:
        """Hand one input to a broker, and let everything follow that needs no delivery."""
        self.drivers[node].inbox.append(input)
        self._work()

    def _work(self) -> None:
        for _ in range(MOST_STEPS):
            busy = [driver for driver in self.drivers.values() if driver.inbox and driver.core is not None]
            if not busy:
                return
            self._step_one(busy[0])
        raise AssertionError("the brokers never come to rest")

    def _step_one(self, driver: Driver) -> None:
        assert driver.core is not None
        try:
            effects = driver.core.step(driver.inbox.popleft(), self.now)
        except PowerLoss:
            self.power_loss(driver.node)
            return
        for effect in effects:
            if isinstance(effect, core_interface.Send):
                box = self.mail if effect.target in self.drivers else self.answers
                box.append(Mail(driver.node, effect.target, effect.message))
            elif isinstance(effect, core_interface.SetTimer):
                driver.timers[effect.key] = effect.at
            elif isinstance(effect, core_interface.CancelTimer):
                driver.timers.pop(effect.key, None)
            elif isinstance(effect, core_interface.AskZooKeeper):
                if driver.holds_zookeeper:
                    driver.held.append(effect)
                else:
                    self._carry_out(driver, effect)
            elif isinstance(effect, core_interface.Halt):
                self.crash(driver.node)
            else:
                assert isinstance(effect, core_interface.RecordEvent), effect
                self.events.append(effect.at(0, driver.node))

    # ---- delivery and time

    def deliver(
        self,
        source: int | None = None,
        target: int | None = None,
        kind: type | None = None,
        *,
        keep: bool = False,
    ) -> Any:
        """Deliver the oldest matching message; keep: and leave a copy in the mail. Returns it."""
        for mail in self.mail:
            if self._matches(mail, source, target, kind):
                if not keep:
                    self.mail.remove(mail)
                if self.drivers[mail.target].core is not None:
                    self.step(mail.target, core_interface.MessageArrived(mail.source, mail.message))
                return mail.message
        raise AssertionError(f"no {kind} from {source} to {target} in {self.mail}")

    @staticmethod
    def _matches(mail: Mail, source: int | None, target: int | None, kind: type | None) -> bool:
        return (
            source in (None, mail.source)
            and target in (None, mail.target)
            and (kind is None or isinstance(mail.message, kind))
        )

    def drop(
        self, source: int | None = None, target: int | None = None, kind: type | None = None
    ) -> list[Any]:
        """Lose all matching messages; returns them."""
        lost = [mail for mail in self.mail if self._matches(mail, source, target, kind)]
        self.mail = [mail for mail in self.mail if mail not in lost]
        return [mail.message for mail in lost]

    def settle(self, *nodes: int) -> Self:
        """Deliver everything between these brokers (all of them), oldest first, until nothing is left."""
        among = set(nodes or self.drivers)
        for _ in range(MOST_STEPS):
            mail = next((mail for mail in self.mail if {mail.source, mail.target} <= among), None)
            if mail is None:
                return self
            self.mail.remove(mail)
            if self.drivers[mail.target].core is not None:
                self.step(mail.target, core_interface.MessageArrived(mail.source, mail.message))
        raise AssertionError(f"the mail never ends: {self.mail[:3]}")

    def advance(self, milliseconds: int, *, settle: bool = False, nodes: tuple[int, ...] = ()) -> Self:
        """Let time pass: timers of these brokers (all) fire when they are due; settle: messages arrive
        meanwhile."""
        end = self.now + milliseconds * MILLISECOND
        for _ in range(MOST_STEPS):
            if settle:
                self.settle()
            due = [
                (at, node, key)
                for node, driver in self.drivers.items()
                if driver.core is not None and (not nodes or node in nodes)
                for key, at in driver.timers.items()
                if at <= end
            ]
            if not due:
                self.now = end
                return self
            at, node, key = min(due, key=lambda timer: (timer[0], timer[1], str(timer[2])))
            self.now = max(self.now, at)
            del self.drivers[node].timers[key]
            self.step(node, core_interface.TimerFired(key))
        raise AssertionError("timers never end")

    # ---- what stands

    def partition(self, node: int, key: TopicPartition = T0) -> Partition:
        """The broker's replica."""
        return self.core(node).replicas.partitions[key]

    def values(self, node: int) -> list[int]:
        """The records of its log."""
        return [value for _, _, values in runs_of(self.partition(node).log) for value in values]

    def epochs(self, node: int) -> list[tuple[int, int]]:
        """Its leader epoch cache."""
        return self.partition(node).log.epochs.entries

    def high_watermark(self, node: int) -> int:
        """Its high watermark."""
        return self.partition(node).high_watermark

    def recorded(self, name: Name, node: int | None = None) -> list[Event]:
        """The events of this name, of one broker or all."""
        return [event for event in self.events if event.name is name and node in (None, event.node)]


def runs_of(log: SegmentedLog) -> list[tuple[int, int, tuple[int, ...]]]:
    """(leader epoch, base offset, value ids) of each run of records of one epoch without a gap; one empty run
    for an empty log."""
    runs: list[tuple[int, int, tuple[int, ...]]] = []
    for header, data in log.batches():
        for base_offset, values in runs_in_batch(data, header):
            if runs and runs[-1][0] == header.leader_epoch and runs[-1][1] + len(runs[-1][2]) == base_offset:
                epoch, base, before = runs[-1]
                runs[-1] = (epoch, base, before + values)
            else:
                runs.append((header.leader_epoch, base_offset, values))
    return runs or [(-1, log.log_end_offset, ())]
