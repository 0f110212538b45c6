"""Brokers driven by hand: every message waits in `mail` until a test delivers, repeats or drops it.

The cores are the real ones on simulated disks and the simulated ZooKeeper tree; time, delivery and (unless brokers are to elect one) the
controller are the test's. ZooKeeper answers at once, unless a test holds a broker's requests or loses its replies.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from fencepost.impl import messages as kafka
from fencepost.impl import znodes
from fencepost.impl.broker import Broker, make_broker
from fencepost.impl.messages import TopicPartition
from fencepost.impl.parts import Parts
from fencepost.impl.replication.partition import Partition
from fencepost.impl.seam import (
    AskZooKeeper,
    CancelTimer,
    MessageArrived,
    Record,
    Send,
    SetTimer,
    Started,
    TimerFired,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.znodes import LeaderAndIsr
from fencepost.impl.zookeeper import Create, Data, Failed, GetData, Reply, Request, SetData, ZooKeeperError
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.randomness import Randomness
from fencepost.sim.zookeeper_tree import Outcome, Tree
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, DiskOptions, TopicOptions

MILLISECOND = 1_000_000
T0 = TopicPartition("t", 0)
CLIENT = 1000
SCRIPT = 99
"""The node id of a test that plays the controller."""
MOST_STEPS = 20_000
"""Bound of `settle` and `advance`: far above what any scenario needs."""


class Mail:
    """A message under way."""

    def __init__(self, source: int, target: int, message: Any) -> None:
        self.source, self.target, self.message = source, target, message

    def __repr__(self) -> str:
        return f"{self.source}->{self.target} {self.message}"


class Driver:
    """One broker's host. held: ZooKeeper requests that wait while `holds_zookeeper`; replies_to_lose: writes that are done but not answered."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.disk = Disk(node=node, randomness=Randomness(node), options=DiskOptions(write_us=0, fsync_us=0))
        self.core: Broker | None = None
        self.inbox: deque[Any] = deque()
        self.timers: dict[Any, int] = {}
        self.session = 0
        self.holds_zookeeper = False
        self.held: list[AskZooKeeper] = []
        self.replies_to_lose = 0


class Lab:
    """now: the one clock. mail: messages between brokers that nobody delivered yet; answers: those to clients and to the script."""

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

    def start(self, node: int, parts: Parts | None = None) -> None:
        """Start a broker's process, with a session; it registers."""
        driver = self.drivers[node]
        driver.core = make_broker(node, self.options, driver.disk, parts or self.parts, self.now)
        self.step(node, Started())
        self.connect(node)

    def crash(self, node: int) -> None:
        """The process dies; its session is gone at once."""
        driver = self.drivers[node]
        driver.core = None
        driver.inbox.clear()
        driver.timers.clear()
        driver.held.clear()
        driver.holds_zookeeper = False
        self.mail = [mail for mail in self.mail if mail.target != node]
        self.end_session(node)

    def power_loss(self, node: int) -> None:
        """As `crash`, and what was not synced may be lost."""
        self.crash(node)
        self.drivers[node].disk.power_loss()

    def restart(self, node: int, parts: Parts | None = None) -> None:
        """Crash and start."""
        self.crash(node)
        self.start(node, parts)

    def core(self, node: int) -> Broker:
        """The broker's core."""
        core = self.drivers[node].core
        assert core is not None, f"broker {node} is down"
        return core

    # ---- ZooKeeper

    def admin(self, request: Request) -> Reply:
        """A request of the harness."""
        outcome = self.tree.apply(0, request)
        self._fire(outcome)
        self._work()
        return outcome.reply

    def connect(self, node: int) -> None:
        """A new session."""
        driver = self.drivers[node]
        self.tree.begin_session()
        self._next_session += 1
        driver.session = self._next_session
        self._sessions[driver.session] = node
        self.step(node, ZooKeeperConnected(driver.session, True))

    def end_session(self, node: int) -> None:
        """ZooKeeper forgets the session; the broker does not know yet."""
        driver = self.drivers[node]
        if driver.session:
            del self._sessions[driver.session]
            outcome = self.tree.end_session(driver.session)
            driver.session = 0
            self._fire(outcome)
            self._work()

    def expire(self, node: int) -> None:
        """The session ends and the broker learns of it; a new one begins."""
        self.end_session(node)
        self.notice_expiry(node)

    def notice_expiry(self, node: int) -> None:
        """A broker whose session has ended learns it; its requests are answered CONNECTION_LOSS; a new session begins."""
        driver = self.drivers[node]
        driver.holds_zookeeper = False
        held, driver.held = driver.held, []
        for ask in held:
            driver.inbox.append(ZooKeeperReplied(ask.request_id, Failed(ZooKeeperError.CONNECTION_LOSS)))
        driver.inbox += [ZooKeeperDisconnected(), ZooKeeperSessionExpired()]
        self._work()
        self.connect(node)

    def reconnect(self, node: int) -> None:
        """The connection breaks and comes back in the same session; requests that were held are lost before they were done."""
        driver = self.drivers[node]
        driver.holds_zookeeper = False
        held, driver.held = driver.held, []
        for ask in held:
            driver.inbox.append(ZooKeeperReplied(ask.request_id, Failed(ZooKeeperError.CONNECTION_LOSS)))
        driver.inbox += [ZooKeeperDisconnected(), ZooKeeperConnected(driver.session, False)]
        self._work()

    def hold_zookeeper(self, node: int) -> None:
        """This broker's requests wait until `release_zookeeper`."""
        self.drivers[node].holds_zookeeper = True

    def release_zookeeper(self, node: int, count: int | None = None) -> None:
        """Carry out what waits: the next `count` requests, or all from now on."""
        driver = self.drivers[node]
        if count is None:
            driver.holds_zookeeper = False
        done = 0
        while driver.held and (count is None or done < count):
            self._carry_out(driver, driver.held.pop(0))
            self._work()
            done += 1

    def state(self, key: TopicPartition = T0) -> LeaderAndIsr:
        """The partition's state znode."""
        reply = self.tree.apply(0, GetData(znodes.state_path(key))).reply
        assert isinstance(reply, Data), reply
        return znodes.decode_state(reply.data, reply.stat.version)

    def create_topic(self, assignment: dict[int, tuple[int, ...]], topic: str = "t") -> None:
        """As the admin tool does; the controller that the brokers elected hears of it."""
        self.admin(Create(znodes.topic_path(topic), znodes.encode_topic(assignment)))

    def controllers(self) -> list[int]:
        """Brokers that believe they are the controller."""
        return [
            node
            for node, driver in self.drivers.items()
            if driver.core is not None and driver.core.controller.state.active
        ]

    def children(self, path: str) -> list[str]:
        """Names below a znode."""
        node = self.tree.node(path)
        return sorted(node.children) if node else []

    def _fire(self, outcome: Outcome) -> None:
        for session, event in outcome.watches:
            node = self._sessions.get(session)
            if node is not None:
                self.drivers[node].inbox.append(ZooKeeperWatchFired(event))

    def _carry_out(self, driver: Driver, ask: AskZooKeeper) -> None:
        if not driver.session:
            reply: Reply = Failed(ZooKeeperError.SESSION_EXPIRED)
        else:
            outcome = self.tree.apply(driver.session, ask.request)
            self._fire(outcome)
            reply = outcome.reply
            if outcome.changes and driver.replies_to_lose:
                driver.replies_to_lose -= 1
                driver.inbox += [
                    ZooKeeperReplied(ask.request_id, Failed(ZooKeeperError.CONNECTION_LOSS)),
                    ZooKeeperDisconnected(),
                    ZooKeeperConnected(driver.session, False),
                ]
                return
        driver.inbox.append(ZooKeeperReplied(ask.request_id, reply))

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
            if isinstance(effect, Send):
                box = self.mail if effect.target in self.drivers else self.answers
                box.append(Mail(driver.node, effect.target, effect.message))
            elif isinstance(effect, SetTimer):
                driver.timers[effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                driver.timers.pop(effect.key, None)
            elif isinstance(effect, AskZooKeeper):
                if driver.holds_zookeeper:
                    driver.held.append(effect)
                else:
                    self._carry_out(driver, effect)
            else:
                assert isinstance(effect, Record), effect
                self.events.append(effect.event)

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
                    self.step(mail.target, MessageArrived(mail.source, mail.message))
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

    def settle(self, *nodes: int) -> None:
        """Deliver everything between these brokers (all of them), oldest first, until nothing is left."""
        among = set(nodes or self.drivers)
        for _ in range(MOST_STEPS):
            mail = next((mail for mail in self.mail if {mail.source, mail.target} <= among), None)
            if mail is None:
                return
            self.mail.remove(mail)
            if self.drivers[mail.target].core is not None:
                self.step(mail.target, MessageArrived(mail.source, mail.message))
        raise AssertionError(f"the mail never ends: {self.mail[:3]}")

    def advance(self, milliseconds: int, *, settle: bool = False, nodes: tuple[int, ...] = ()) -> None:
        """Let time pass: timers of these brokers (all) fire when they are due; settle: messages arrive meanwhile."""
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
                return
            at, node, key = min(due, key=lambda timer: (timer[0], timer[1], str(timer[2])))
            self.now = max(self.now, at)
            del self.drivers[node].timers[key]
            self.step(node, TimerFired(key))
        raise AssertionError("timers never end")

    # ---- the script as controller

    def lead(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...] = (1, 2, 3),
        *,
        to: tuple[int, ...] | None = None,
        replicas: tuple[int, ...] = (1, 2, 3),
        live: tuple[int, ...] = (1, 2, 3),
        controller_epoch: int = 1,
        key: TopicPartition = T0,
    ) -> kafka.LeaderAndIsrRequest:
        """Write the partition's state and tell these brokers (those that are up): UpdateMetadata, then LeaderAndIsr. Returns the last request."""
        state = LeaderAndIsr(leader=leader, leader_epoch=epoch, controller_epoch=controller_epoch, isr=isr)
        path, data = znodes.state_path(key), znodes.encode_state(state)
        if self.tree.node(path) is None:
            self.admin(Create(znodes.topic_path(key.topic), znodes.encode_topic({key.partition: replicas})))
            for parent in znodes.partition_paths(key)[:2]:
                self.admin(Create(parent))
            self.admin(Create(path, data))
        else:
            self.admin(SetData(path, data))
        told = kafka.PartitionState(
            partition=key,
            controller_epoch=controller_epoch,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            zk_version=self.state(key).zk_version,
            replicas=replicas,
        )
        request = None
        for node in to if to is not None else [node for node in self.drivers if self.drivers[node].core]:
            for kind in (kafka.UpdateMetadataRequest, kafka.LeaderAndIsrRequest):
                request = self.control(kind, node, (told,), controller_epoch=controller_epoch, live=live)
        assert request is None or isinstance(request, kafka.LeaderAndIsrRequest)
        return request  # type: ignore[return-value]

    def control(
        self,
        kind: Callable[..., Any],
        node: int,
        partitions: tuple[Any, ...],
        *,
        controller_epoch: int = 1,
        broker_epoch: int | None = None,
        live: tuple[int, ...] = (1, 2, 3),
        correlation_id: int | None = None,
    ) -> Any:
        """Send one control request at once; returns it."""
        self._correlation_id += 1
        members: dict[str, Any] = {
            "correlation_id": self._correlation_id if correlation_id is None else correlation_id,
            "controller_id": SCRIPT,
            "controller_epoch": controller_epoch,
            "broker_epoch": self.core(node).shell.broker_epoch if broker_epoch is None else broker_epoch,
            "partitions": partitions,
        }
        if kind is not kafka.StopReplicaRequest:
            members["live_brokers"] = live
        request = kind(**members)
        self.step(node, MessageArrived(SCRIPT, request))
        return request

    # ---- a client by hand

    def ask(self, node: int, request: Any) -> Any:
        """Send a client's request; returns the answer if it came in the same step, else None."""
        before = len(self.answers)
        self.step(node, MessageArrived(CLIENT, request))
        return self._answer_to(request, before)

    def _answer_to(self, request: Any, begin: int = 0) -> Any:
        for mail in self.answers[begin:]:
            if mail.target == CLIENT and mail.message.correlation_id == request.correlation_id:
                return mail.message
        return None

    def produce(self, node: int, *values: int, acks: int = 1, timeout_ms: int = 5_000) -> Any:
        """Append a batch as a client; returns the answer if there is one already."""
        return self.ask(
            node,
            kafka.ProduceRequest(
                correlation_id=values[0],
                partition=T0,
                acks=acks,
                values=values,
                timeout=timeout_ms * MILLISECOND,
            ),
        )

    def produced(self, value: int) -> Any:
        """The answer to `produce` of a batch that begins with this value; None if it has not come."""
        answers = [
            mail.message
            for mail in self.answers
            if isinstance(mail.message, kafka.ProduceResponse) and mail.message.correlation_id == value
        ]
        assert len(answers) <= 1, answers
        return answers[0] if answers else None

    def fetch(
        self, node: int, offset: int, *, epoch: int = -1, replica: int = -1, max_wait_ms: int = 0
    ) -> Any:
        """Fetch one partition; returns its part of the answer."""
        self._correlation_id += 1
        request = kafka.FetchRequest(
            correlation_id=-self._correlation_id,
            replica_id=replica,
            max_wait=max_wait_ms * MILLISECOND,
            max_bytes=1_000_000,
            partitions=(kafka.FetchPartition(partition=T0, offset=offset, leader_epoch=epoch),),
        )
        answer = self.ask(node, request)
        return answer.partitions[0] if answer else None

    def list_offsets(self, node: int, epoch: int = -1) -> Any:
        """ListOffsets as a client."""
        self._correlation_id += 1
        return self.ask(
            node,
            kafka.ListOffsetsRequest(correlation_id=-self._correlation_id, partition=T0, leader_epoch=epoch),
        )

    # ---- what stands

    def partition(self, node: int, key: TopicPartition = T0) -> Partition:
        """The broker's replica."""
        return self.core(node).replicas.partitions[key]

    def values(self, node: int) -> list[int]:
        """The records of its log."""
        return [value for batch in self.partition(node).log.batches() for value in batch.values]

    def epochs(self, node: int) -> list[tuple[int, int]]:
        """Its leader epoch cache."""
        return self.partition(node).log.epochs.entries

    def high_watermark(self, node: int) -> int:
        """Its high watermark."""
        return self.partition(node).high_watermark

    def recorded(self, name: Name, node: int | None = None) -> list[Event]:
        """The events of this name, of one broker or all."""
        return [event for event in self.events if event.name is name and node in (None, event.node)]
