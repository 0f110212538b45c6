"""The simulated ZooKeeper service: sessions, connections and commits on the data tree.

Owns the server side: connections, the expiry of sessions, and which frames are sent in which order. Must not
know the meaning of znodes.

It is one server, always consistent with itself. Its faults: it can be cut off (network.partition of node
ZOOKEEPER_NODE), lose a reply after the commit (`lose_replies`), end sessions (`expire`), and restart (`stop`,
`start`). At a restart every connection breaks and none is accepted until it is up again. Data and sessions
are on disk, and each session gets its whole timeout again, as from a new ZooKeeper leader.

Each connection is a pair of FIFO streams: a watch that fires at a commit is sent before any reply that shows
the change. A session expires after its timeout without a frame from its client. The server side of a watch
ends with the connection. A client that reconnects to its session sets its watches again (client side:
zookeeper_client.py). Final.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from zlib import crc32

from msgspec import Struct

from fencepost.impl.zookeeper import interface as zk
from fencepost.sim.network import Channel, Network
from fencepost.sim.scheduler import Scheduler
from fencepost.sim.zookeeper_tree import Change, Tree, TreeOutcome

ZOOKEEPER_NODE = 0
NO_SESSION = 0
ADMIN_NODE = -1


# ---- frames of a connection, client to server


class Connect(Struct, frozen=True, kw_only=True, gc=False):
    """The first frame of a connection."""

    # The session to continue, or NO_SESSION for a new one.
    session: int
    # The requested session timeout in nanoseconds.
    timeout: int
    # The last zxid that the client knows.
    seen: int = 0
    # Paths of watches by GetData.
    data_watches: tuple[str, ...] = ()
    # Paths of watches by Exists.
    exists_watches: tuple[str, ...] = ()
    # Paths of watches by GetChildren.
    child_watches: tuple[str, ...] = ()


class Ask(Struct, frozen=True, kw_only=True, gc=False):
    """One request."""

    request_id: int
    request: zk.ZooKeeperRequest
    # Keys the network's randomness for it and for its answer; None: both take the shortest time.
    cause: tuple[int, ...] | None


class Ping(Struct, frozen=True, gc=False):
    """The client is alive."""


# ---- frames, server to client


class ConnectAnswer(Struct, frozen=True, gc=False):
    """session: the connected one, or NO_SESSION if the requested session has expired."""

    session: int


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """zxid: the server's at the time of the answer."""

    request_id: int
    reply: zk.Reply
    zxid: int


class Notify(Struct, frozen=True, gc=False):
    """A watch of this session fired."""

    event: zk.WatchEvent


class Pong(Struct, frozen=True, gc=False):
    """The server is alive."""


class Hangup(Struct, frozen=True, gc=False):
    """The server closed the connection."""


FRAMES: Mapping[type, str] = {
    Connect: "Connect",
    Ask: "Ask",
    Ping: "Ping",
    ConnectAnswer: "ConnectAnswer",
    Answer: "Answer",
    Notify: "Notify",
    Pong: "Pong",
    Hangup: "Hangup",
}
"""The name of each frame, as fixed text, which keys the randomness of the frame on its way
(messages/names.py)."""


class Commit(Struct, frozen=True, kw_only=True, gc=False):
    """A commit."""

    time: int
    # The owner of the session that wrote it (ADMIN_NODE: the harness).
    node: int
    changes: tuple[Change, ...]
    # Ephemerals of a session that ended.
    by_expiry: bool = False


class Connection:
    """Two streams between a client and the server. session: the server's, None before Connect and after
    Hangup."""

    __slots__ = ("down", "node", "session", "up")

    def __init__(
        self, network: Network, node: int, server: "ZooKeeper", receive: Callable[[Any], None]
    ) -> None:
        self.node = node
        self.session: Session | None = None
        self.up: Channel = network.channel(node, ZOOKEEPER_NODE, lambda frame: server.receive(self, frame))
        self.down: Channel = network.channel(ZOOKEEPER_NODE, node, receive)

    def close(self) -> None:
        """The client drops the connection; the server notices the silence."""
        self.up.close()
        self.down.close()


class Session:
    """One session. connection: None while it has none. last_heard: virtual time of its client's last
    frame."""

    __slots__ = ("connection", "last_heard", "node", "number", "timeout")

    def __init__(self, number: int, node: int, timeout: int, now: int) -> None:
        self.number, self.node, self.timeout, self.last_heard = number, node, timeout, now
        self.connection: Connection | None = None


class ZooKeeper:
    """on_commit is called at each commit that changed something, in the order of commits, before any client
    is notified. up: whether it accepts connections."""

    def __init__(
        self, scheduler: Scheduler, network: Network, on_commit: Callable[[Commit], None] | None = None
    ) -> None:
        self.tree = Tree()
        self.up = True
        self._scheduler, self._network, self._on_commit = scheduler, network, on_commit
        self._sessions: dict[int, Session] = {}
        self._replies_to_lose: dict[int, int] = {}
        self._sessions_made = 0

    # ---- the harness

    def admin(self, request: zk.ZooKeeperRequest) -> zk.Reply:
        """Apply a request at once, without a session (no ephemerals, no watches)."""
        outcome = self.tree.apply(NO_SESSION, request)
        self._commit(outcome, ADMIN_NODE)
        return outcome.reply

    def sessions(self, node: int) -> list[int]:
        """Ids of this node's sessions that have not expired, oldest first."""
        return [number for number, session in self._sessions.items() if session.node == node]

    def expire(self, session_id: int) -> None:
        """End a session now: its ephemerals are removed; its client learns of it at its next contact with the
        server."""
        session = self._sessions.pop(session_id)
        self._hang_up(session)
        self._commit(self.tree.end_session(session_id), session.node, by_expiry=True)

    def lose_replies(self, node: int, count: int = 1) -> None:
        """The next `count` writes that this node commits are not answered: the connection breaks after the
        commit."""
        self._replies_to_lose[node] = count

    def stop(self) -> None:
        """Every connection breaks; no client can connect and no session expires until `start`."""
        self.up = False
        for session in self._sessions.values():
            self._hang_up(session)

    def start(self) -> None:
        """Accept connections again."""
        self.up = True
        for session in self._sessions.values():
            session.last_heard = self._scheduler.now

    # ---- connections

    def connect(self, node: int, receive: Callable[[Any], None]) -> Connection:
        """A new connection for a client, which must send Connect next.

        Args:
            node: the client's node.
            receive: called with each frame from the server.

        Returns:
            the connection.
        """
        return Connection(self._network, node, self, receive)

    def receive(self, connection: Connection, frame: Connect | Ask | Ping) -> None:
        """Handle a `frame` from the client of `connection`."""
        if not self.up:
            connection.down.send(Hangup())  # connection refused
            return
        if isinstance(frame, Connect):
            self._open_session(connection, frame)
            return
        session = connection.session
        if session is None:
            return
        session.last_heard = self._scheduler.now
        if isinstance(frame, Ping):
            connection.down.send(Pong())
        else:
            self._answer(connection, session, frame)

    def _answer(self, connection: Connection, session: Session, frame: Ask) -> None:
        outcome = self.tree.apply(session.number, frame.request)
        self._commit(outcome, session.node)
        if outcome.changes and self._loses_reply(session.node):
            self._hang_up(session)
            return
        connection.down.send(
            Answer(request_id=frame.request_id, reply=outcome.reply, zxid=self.tree.zxid), frame.cause
        )

    def _loses_reply(self, node: int) -> bool:
        left = self._replies_to_lose.get(node, 0)
        if left:
            self._replies_to_lose[node] = left - 1
        return left > 0

    def _open_session(self, connection: Connection, frame: Connect) -> None:
        if frame.session == NO_SESSION:
            session = self._new_session(connection.node, frame.timeout)
        elif frame.session in self._sessions:
            session = self._sessions[frame.session]
            self._hang_up(session)
        else:
            connection.down.send(ConnectAnswer(NO_SESSION))
            return
        session.last_heard = self._scheduler.now
        session.connection, connection.session = connection, session
        connection.down.send(ConnectAnswer(session.number))
        for event in self.tree.set_watches(
            session.number, frame.seen, frame.data_watches, frame.exists_watches, frame.child_watches
        ):
            self._notify(session, event)

    def _new_session(self, node: int, timeout: int) -> Session:
        self._sessions_made += 1
        self.tree.begin_session()
        session = Session(self._sessions_made, node, timeout, self._scheduler.now)
        self._sessions[session.number] = session
        self._scheduler.after(timeout, self._check_expiry, session)
        return session

    def _check_expiry(self, session: Session) -> None:
        if session.number not in self._sessions:
            return
        deadline = session.last_heard + session.timeout
        if not self.up:
            self._scheduler.after(session.timeout, self._check_expiry, session)
        elif deadline <= self._scheduler.now:
            self.expire(session.number)
        else:
            self._scheduler.at(deadline, self._check_expiry, session)

    def _hang_up(self, session: Session) -> None:
        """Close the session's connection and drop its watches."""
        connection = session.connection
        if connection is not None:
            connection.down.send(Hangup())
            connection.session = session.connection = None
        self.tree.forget_watches(session.number)

    # ---- commits

    def _commit(self, outcome: TreeOutcome, node: int, *, by_expiry: bool = False) -> None:
        if outcome.changes and self._on_commit is not None:
            self._on_commit(
                Commit(time=self._scheduler.now, node=node, changes=outcome.changes, by_expiry=by_expiry)
            )
        for number, event in outcome.watches:
            session = self._sessions.get(number)
            if session is not None:
                self._notify(session, event)

    def _notify(self, session: Session, event: zk.WatchEvent) -> None:
        if session.connection is not None:
            session.connection.down.send(Notify(event), (crc32(event.path.encode()),))


BESIDE = ("/brokers/seqid", "/cluster", "/config")
"""Nodes that brokers use in addition to the replication protocol."""
KNOWN_CAUSES = 4096
"""The most cached causes. Reason: the same few paths occur in every run."""


def cause_of(request: zk.ZooKeeperRequest) -> tuple[int, ...] | None:
    """The cause that keys the network's randomness for a request: its kind and paths, never its running
    number or its data.

    None if all paths are in BESIDE. Such a request draws nothing and delays no later request of its
    connection, so that plans run as they did before these requests existed.
    """
    if isinstance(request, (zk.MultiRead, zk.SetWatches)):
        return _cause_of(zk.REQUESTS[type(request)], *request.paths)
    if isinstance(request, zk.Multi):
        return _cause_of(
            *[word for each in request.operations for word in (zk.REQUESTS[type(each)], each.path)]
        )
    return _cause_of(zk.REQUESTS[type(request)], request.path)


@lru_cache(maxsize=KNOWN_CAUSES)
def _cause_of(*words: str) -> tuple[int, ...] | None:
    """The cause of these words: kinds and paths, which begin with a slash."""
    if all(word.startswith(BESIDE) for word in words if word.startswith("/")):
        return None
    return (crc32(" ".join(words).encode()),)
