"""ZooKeeper's side of a lab: sessions, requests that are held, replies that are lost. Part of
impl_lab.Lab."""

from typing import Self

from impl_driver import T0, Driver

from fencepost.impl.core import core_interface
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.sim.zookeeper_tree import TreeOutcome


class ZooKeeperByHand:
    """Carries requests out on the simulated tree, at once or when a test says so."""

    def admin(self, request: zk.ZooKeeperRequest) -> zk.Reply:
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
        self.step(node, core_interface.ZooKeeperConnected(driver.session, True))

    def end_session(self, node: int) -> Self:
        """ZooKeeper forgets the session; the broker does not know yet."""
        driver = self.drivers[node]
        if driver.session:
            del self._sessions[driver.session]
            outcome = self.tree.end_session(driver.session)
            driver.session = 0
            self._fire(outcome)
            self._work()
        return self

    def expire(self, node: int) -> Self:
        """The session ends and the broker learns of it; a new one begins."""
        self.end_session(node)
        self.notice_expiry(node)
        return self

    def notice_expiry(self, node: int) -> Self:
        """A broker whose session has ended learns it; its requests are answered CONNECTION_LOSS; a new
        session begins."""
        driver = self.drivers[node]
        driver.holds_zookeeper = False
        held, driver.held = driver.held, []
        for ask in held:
            driver.inbox.append(
                core_interface.ZooKeeperReplied(ask.request_id, zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS))
            )
        driver.inbox += [core_interface.ZooKeeperDisconnected(), core_interface.ZooKeeperSessionExpired()]
        self._work()
        self.connect(node)
        return self

    def reconnect(self, node: int) -> Self:
        """The connection breaks and comes back in the same session; requests that were held are lost before
        they were done."""
        driver = self.drivers[node]
        driver.holds_zookeeper = False
        held, driver.held = driver.held, []
        for ask in held:
            driver.inbox.append(
                core_interface.ZooKeeperReplied(ask.request_id, zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS))
            )
        driver.inbox += [
            core_interface.ZooKeeperDisconnected(),
            core_interface.ZooKeeperConnected(driver.session, False),
        ]
        self._work()
        return self

    def hold_zookeeper(self, node: int) -> None:
        """This broker's requests wait until `release_zookeeper`."""
        self.drivers[node].holds_zookeeper = True

    def release_zookeeper(self, node: int, count: int | None = None) -> Self:
        """Carry out what waits: the next `count` requests, or all from now on."""
        driver = self.drivers[node]
        if count is None:
            driver.holds_zookeeper = False
        done = 0
        while driver.held and (count is None or done < count):
            self._carry_out(driver, driver.held.pop(0))
            self._work()
            done += 1
        return self

    def state(self, key: TopicPartition = T0) -> LeaderAndIsr:
        """The partition's state znode."""
        reply = self.tree.apply(0, zk.GetData(znodes.state_path(key))).reply
        assert isinstance(reply, zk.Data), reply
        return znodes.decode_state(reply.data, reply.stat.version)

    def create_topic(self, assignment: dict[int, tuple[int, ...]], topic: str = "t") -> Self:
        """As the admin tool does; the controller that the brokers elected hears of it."""
        self.admin(zk.Create(znodes.topic_path(topic), znodes.encode_topic(assignment)))
        return self

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

    def _fire(self, outcome: TreeOutcome) -> None:
        for session, event in outcome.watches:
            node = self._sessions.get(session)
            if node is not None:
                self.drivers[node].inbox.append(core_interface.ZooKeeperWatchFired(event))

    def _carry_out(self, driver: Driver, ask: core_interface.AskZooKeeper) -> None:
        if not driver.session:
            reply: zk.Reply = zk.Failed(zk.ZooKeeperError.SESSION_EXPIRED)
        else:
            outcome = self.tree.apply(driver.session, ask.request)
            self._fire(outcome)
            reply = outcome.reply
            if outcome.changes and driver.replies_to_lose:
                driver.replies_to_lose -= 1
                driver.inbox += [
                    core_interface.ZooKeeperReplied(
                        ask.request_id, zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
                    ),
                    core_interface.ZooKeeperDisconnected(),
                    core_interface.ZooKeeperConnected(driver.session, False),
                ]
                return
        driver.inbox.append(core_interface.ZooKeeperReplied(ask.request_id, reply))
