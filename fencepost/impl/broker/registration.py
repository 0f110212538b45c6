"""The broker's registration: its ephemeral node /brokers/ids/N, one per session (KAFKA-1387, KAFKA-7165).

Owns the node and the broker epoch. Must not know controllers; it calls back when the broker is registered.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.broker_states import registered
from fencepost.impl.core.procedures import Procedure, Procedures
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Created, Data, Delete, GetData
from fencepost.traces.events import Name

RETRY_TIMER = ("register",)
RETRY_MS = 500
"""How long to wait for the expiry of an earlier process's session before the next attempt."""


@define
class Registration:
    """The registration of one broker."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # Called when the broker is registered in a new session.
    on_registered: Callable[[], None]
    # Sessions of this process. A node of one of them may be replaced; a node of another process may not.
    own_sessions: set[int] = field(factory=set)
    # The session in which the broker is registered; 0 before the first.
    registered_session: int = 0
    # Whether this process has created the persistent nodes.
    paths_made: bool = False

    def on_session(self) -> None:
        """Register in a new session."""
        self.own_sessions.add(self.broker_context.session_id)
        self.try_again()

    def try_again(self) -> None:
        """Try to register: after the timer, or in a new session."""
        self.procedures.start(self._register(self.broker_context.session_id))

    def _register(self, session_id: int) -> Procedure:
        if not self.paths_made:
            for path in znodes.PERSISTENT_PATHS:
                yield Create(path, b"0" if path == znodes.CONTROLLER_EPOCH else b"")
            self.paths_made = True
        path = znodes.broker_path(self.broker_context.node)
        created = yield Create(
            path,
            znodes.encode_broker(
                self.broker_context.node, self.broker_context.now // MILLISECOND, self.broker_context.port
            ),
            ephemeral=True,
        )
        if session_id != self.broker_context.session_id or self.registered_session == session_id:
            return
        if isinstance(created, Created):
            self._registered(created.czxid)
            return
        current = yield GetData(path)
        if session_id != self.broker_context.session_id:
            return
        if isinstance(current, Data) and self.own_registration(current.stat.ephemeral_owner, session_id):
            self._registered(current.stat.czxid)  # the reply to our own create was lost
            return
        if isinstance(current, Data) and current.stat.ephemeral_owner in self.own_sessions:
            yield Delete(path, current.stat.version)
        self.broker_context.set_timer(RETRY_TIMER, RETRY_MS)

    def own_registration(self, owner: int, session_id: int) -> bool:
        """Protection KAFKA-1387 (KAFKA-7165): a node of another session disappears with that session. Only a
        node of this session counts as a registration.

        Args:
            owner: the session that owns the node.
            session_id: the current session.

        Returns:
            whether the node counts.
        """
        return owner == session_id

    def _registered(self, broker_epoch: int) -> None:
        self.registered_session = self.broker_context.session_id
        self.broker_context.broker_epoch = broker_epoch
        self.broker_context.record(Name.BROKER_REGISTERED, broker_epoch=broker_epoch)
        registered(self.broker_context)
        self.on_registered()
