"""ZooKeeper's data tree and its watches, as in ZooKeeper 3.9.

Owns nodes, versions, ephemerals, sequential names, multi, and which watch fires when. Must not know sessions'
timeouts, connections or time.

Facts about the original (PrepRequestProcessor, DataTree, WatchManager):

- A node counts the creations of children. The count before a creation is the 10-digit suffix of a sequential
  child. Deletions do not change it. The cversion in a Stat counts creations and deletions: 2 * creations -
  children.
- Every write takes a transaction id (zxid), even if it fails. A multi is one transaction: its members see the
  earlier ones, and all are undone if one fails.
- Data watches (getData, exists) and child watches (getChildren) are one-shot and exist once per session and
  path. A deletion fires both kinds on the node, but one event per session, then the parent's child watches.
- `exists` sets a watch also on a missing node; `getData` and `getChildren` do not.

Final.
"""

from collections.abc import Callable, Iterable

from attrs import Factory, define
from msgspec import Struct

from fencepost.impl.zookeeper.interface import (
    ANY_VERSION,
    Children,
    Create,
    Created,
    Data,
    Delete,
    Done,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiRead,
    MultiReadDone,
    Reply,
    SetData,
    SetWatches,
    Stat,
    WatchEvent,
    WatchKind,
    WriteOperation,
    ZooKeeperError,
    ZooKeeperRequest,
)
from fencepost.sim.zookeeper_watches import Watches

PERSISTENT = 0
"""The owner of a node that is not ephemeral."""


@define(eq=False, kw_only=True)
class Node:
    """One znode."""

    # The content.
    data: bytes
    # The transaction that created it.
    czxid: int
    # The transaction that last changed the data.
    mzxid: int
    # The transaction that last changed its list of children.
    pzxid: int
    # The session of an ephemeral node, or PERSISTENT.
    owner: int = PERSISTENT
    # Writes of the data since the creation.
    version: int = 0
    # Children ever created; it never decreases.
    creations: int = 0
    # Names of the children, in the order of creation.
    children: dict[str, None] = Factory(dict)

    def stat(self) -> Stat:
        """The stat that a client sees."""
        children = len(self.children)
        return Stat(self.czxid, self.mzxid, self.version, self.creations * 2 - children, self.owner, children)


class Change(Struct, frozen=True, kw_only=True, gc=False):
    """One committed change of one node."""

    # CREATED, CHANGED or DELETED.
    kind: WatchKind
    # The node.
    path: str
    # The data after the change (before it, if deleted).
    data: bytes
    # The version of the data after the change.
    version: int
    # The transaction.
    zxid: int
    # The session of an ephemeral node, 0 otherwise.
    owner: int


class TreeOutcome(Struct, frozen=True, gc=False):
    """reply: to the sender. watches: (session, event) in the order of firing. changes: the committed
    changes."""

    reply: Reply
    watches: tuple[tuple[int, WatchEvent], ...] = ()
    changes: tuple[Change, ...] = ()


class _RefusedError(Exception):
    """A write that a rule forbids."""

    def __init__(self, error: ZooKeeperError) -> None:
        self.error = error


Undo = tuple[Callable[..., object], tuple[object, ...]]


class Tree:
    """zxid: of the last transaction. The tree starts with ZooKeeper's own nodes in /zookeeper."""

    def __init__(self) -> None:
        self.zxid = 0
        self._nodes = {
            path: Node(data=b"", czxid=0, mzxid=0, pzxid=0, children=dict.fromkeys(children))
            for path, children in (
                ("/", ("zookeeper",)),
                ("/zookeeper", ("config", "quota")),
                ("/zookeeper/config", ()),
                ("/zookeeper/quota", ()),
            )
        }
        self._data_watches = Watches()
        self._child_watches = Watches()
        self._undo: list[Undo] = []
        self._changes: list[Change] = []

    def node(self, path: str) -> Node | None:
        """The node of this path."""
        return self._nodes.get(path)

    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(self._nodes)

    # ---- requests

    def apply(self, session: int, request: ZooKeeperRequest) -> TreeOutcome:
        """Apply one request of a session."""
        if isinstance(request, (GetData, Exists, GetChildren)):
            return TreeOutcome(self._read(session, request))
        if isinstance(request, MultiRead):
            return TreeOutcome(self._read_many(session, request))
        if isinstance(request, SetWatches):
            fired = self.set_watches(session, request.seen, request.paths, (), ())
            return TreeOutcome(Done(), tuple((session, event) for event in fired))
        self.zxid += 1
        if isinstance(request, Multi):
            return self._outcome(self._multi(session, request))
        try:
            return self._outcome(self._write(session, request))
        except _RefusedError as refused:
            return self._outcome(Failed(refused.error))

    def _multi(self, session: int, request: Multi) -> MultiDone | Failed:
        replies = []
        for index, operation in enumerate(request.operations):
            try:
                replies.append(self._write(session, operation))
            except _RefusedError as refused:
                self._roll_back()
                after = len(request.operations) - index - 1
                results = (ZooKeeperError.ROLLED_BACK,) * index + (refused.error,)
                return Failed(refused.error, index, results + (ZooKeeperError.RUNTIME_INCONSISTENCY,) * after)
        return MultiDone(tuple(replies))

    def _outcome(self, reply: Reply) -> TreeOutcome:
        changes, self._changes = tuple(self._changes), []
        self._undo.clear()
        watches = [fired for change in changes for fired in self._fire(change)]
        return TreeOutcome(reply, tuple(watches), changes)

    def begin_session(self) -> int:
        """Begin a session in its own transaction; returns its zxid."""
        self.zxid += 1
        return self.zxid

    def end_session(self, session: int) -> TreeOutcome:
        """Remove the session's ephemerals, oldest first, and its watches, in one transaction."""
        self.zxid += 1
        self.forget_watches(session)
        owned = [(node.czxid, path) for path, node in self._nodes.items() if node.owner == session]
        for _, path in sorted(owned):
            self._delete(Delete(path))
        return self._outcome(Done())

    # ---- reads and watches

    def _read(self, session: int, request: GetData | Exists | GetChildren) -> Reply:
        path = _checked(request.path)
        node = self._nodes.get(path)
        if isinstance(request, Exists):
            if request.watch:
                self._data_watches.add(path, session)
            return Failed(ZooKeeperError.NO_NODE) if node is None else Done(node.stat())
        if node is None:
            return Failed(ZooKeeperError.NO_NODE)
        if isinstance(request, GetData):
            if request.watch:
                self._data_watches.add(path, session)
            return Data(node.data, node.stat())
        if request.watch:
            self._child_watches.add(path, session)
        return Children(tuple(sorted(node.children)), node.stat())

    def _read_many(self, session: int, request: MultiRead) -> MultiReadDone:
        replies = []
        for path in request.paths:
            reply = self._read(session, GetData(path))
            assert isinstance(reply, (Data, Failed))
            replies.append(reply)
        return MultiReadDone(tuple(replies), self.zxid)

    def forget_watches(self, session: int) -> None:
        """The session's connection is gone, and the server side of its watches with it."""
        self._data_watches.forget(session)
        self._child_watches.forget(session)

    def set_watches(
        self, session: int, seen: int, data: Iterable[str], exists: Iterable[str], children: Iterable[str]
    ) -> list[WatchEvent]:
        """Set a reconnected client's watches again (DataTree.setWatches).

        Args:
            session: the session.
            seen: the last zxid that the client knows; watches on later changes fire at once.
            data: paths of watches by GetData.
            exists: paths of watches by Exists.
            children: paths of watches by GetChildren.

        Returns:
            the events of watches that fire at once.
        """
        events = []
        for path in data:
            node = self._nodes.get(path)
            if node is None:
                events.append(WatchEvent(path, WatchKind.DELETED))
            elif node.mzxid > seen:
                events.append(WatchEvent(path, WatchKind.CHANGED))
            else:
                self._data_watches.add(path, session)
        for path in exists:
            if path in self._nodes:
                events.append(WatchEvent(path, WatchKind.CREATED))
            else:
                self._data_watches.add(path, session)
        for path in children:
            node = self._nodes.get(path)
            if node is None:
                events.append(WatchEvent(path, WatchKind.DELETED))
            elif node.pzxid > seen:
                events.append(WatchEvent(path, WatchKind.CHILD))
            else:
                self._child_watches.add(path, session)
        return events

    def _fire(self, change: Change) -> list[tuple[int, WatchEvent]]:
        path, kind = change.path, change.kind
        sessions = self._data_watches.take(path)
        if kind is WatchKind.DELETED:
            sessions += [session for session in self._child_watches.take(path) if session not in sessions]
        fired = [(session, WatchEvent(path, kind)) for session in sessions]
        if kind is not WatchKind.CHANGED:
            parent = parent_of(path)
            fired += [
                (session, WatchEvent(parent, WatchKind.CHILD)) for session in self._child_watches.take(parent)
            ]
        return fired

    # ---- writes: each checks in ZooKeeper's order, then changes, then notes how to undo it

    def _write(self, session: int, operation: WriteOperation) -> Created | Done:
        if isinstance(operation, Create):
            return self._create(session, operation)
        if isinstance(operation, SetData):
            return self._set(operation)
        if isinstance(operation, Delete):
            return self._delete(operation)
        node = self._existing(operation.path)
        _check_version(node, operation.version)
        return Done()

    def _create(self, session: int, operation: Create) -> Created:
        path = operation.path
        parent = self._nodes.get(parent_of(path))
        if parent is None:
            raise _RefusedError(ZooKeeperError.NO_NODE)
        if operation.sequential:
            path += f"{parent.creations:010d}"
        if _checked(path) in self._nodes:
            raise _RefusedError(ZooKeeperError.NODE_EXISTS)
        if parent.owner != PERSISTENT:
            raise _RefusedError(ZooKeeperError.NO_CHILDREN_FOR_EPHEMERALS)
        owner = session if operation.ephemeral else PERSISTENT
        zxid, name = self.zxid, path.rpartition("/")[2]
        self._undo.append((self._uncreate, (path, parent, name, parent.pzxid)))
        node = Node(data=operation.data, czxid=zxid, mzxid=zxid, pzxid=zxid, owner=owner)
        self._nodes[path] = node
        parent.children[name] = None
        parent.creations += 1
        parent.pzxid = zxid
        self._note(WatchKind.CREATED, path, node)
        return Created(path, zxid)

    def _uncreate(self, path: str, parent: Node, name: str, pzxid: int) -> None:
        del self._nodes[path], parent.children[name]
        parent.creations -= 1
        parent.pzxid = pzxid

    def _set(self, operation: SetData) -> Done:
        node = self._existing(operation.path)
        _check_version(node, operation.version)
        self._undo.append((self._unset, (node, node.data, node.mzxid)))
        node.data, node.mzxid = operation.data, self.zxid
        node.version += 1
        self._note(WatchKind.CHANGED, operation.path, node)
        return Done(node.stat())

    def _unset(self, node: Node, data: bytes, mzxid: int) -> None:
        node.data, node.mzxid = data, mzxid
        node.version -= 1

    def _delete(self, operation: Delete) -> Done:
        path = operation.path
        node = self._existing(path)
        _check_version(node, operation.version)
        if node.children:
            raise _RefusedError(ZooKeeperError.NOT_EMPTY)
        parent, name = self._nodes[parent_of(path)], path.rpartition("/")[2]
        self._undo.append((self._undelete, (path, node, parent, name, parent.pzxid)))
        del self._nodes[path], parent.children[name]
        parent.pzxid = self.zxid
        self._note(WatchKind.DELETED, path, node)
        return Done()

    def _undelete(self, path: str, node: Node, parent: Node, name: str, pzxid: int) -> None:
        self._nodes[path] = node
        parent.children[name] = None
        parent.pzxid = pzxid

    def _existing(self, path: str) -> Node:
        node = self._nodes.get(_checked(path))
        if node is None:
            raise _RefusedError(ZooKeeperError.NO_NODE)
        return node

    def _note(self, kind: WatchKind, path: str, node: Node) -> None:
        self._changes.append(
            Change(
                kind=kind, path=path, data=node.data, version=node.version, zxid=self.zxid, owner=node.owner
            )
        )

    def _roll_back(self) -> None:
        for function, args in reversed(self._undo):
            function(*args)
        self._changes.clear()


def parent_of(path: str) -> str:
    """The parent's path."""
    return path.rpartition("/")[0] or "/"


def _checked(path: str) -> str:
    assert path == "/" or (path.startswith("/") and not path.endswith("/")), f"{path!r} is no ZooKeeper path"
    return path


def _check_version(node: Node, expected: int) -> None:
    if expected not in (ANY_VERSION, node.version):
        raise _RefusedError(ZooKeeperError.BAD_VERSION)
