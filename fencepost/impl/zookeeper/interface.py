"""The ZooKeeper interface: requests, replies, errors and watches as plain values.

There are two implementations: sim/zookeeper.py, and impl/runtime with kazoo against a real server. A request
belongs to the session that sends it. The semantics (versions, one-shot watches in order, ephemerals,
sequentials, multi) are ZooKeeper 3.9's.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

ANY_VERSION = -1


class ZooKeeperError(StrEnum):
    """ZooKeeper's result codes that a core can receive."""

    NO_NODE = "NO_NODE"
    NODE_EXISTS = "NODE_EXISTS"
    BAD_VERSION = "BAD_VERSION"
    NOT_EMPTY = "NOT_EMPTY"
    NO_CHILDREN_FOR_EPHEMERALS = "NO_CHILDREN_FOR_EPHEMERALS"
    CONNECTION_LOSS = "CONNECTION_LOSS"
    SESSION_EXPIRED = "SESSION_EXPIRED"
    RUNTIME_INCONSISTENCY = "RUNTIME_INCONSISTENCY"
    """The result of a multi's member after the one that failed."""
    ROLLED_BACK = "ROLLED_BACK"
    """The result of a multi's member before the one that failed (ZooKeeper's code 0 in an error result)."""


class WatchKind(StrEnum):
    """The change that a watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILD = "child"


# ---- requests


class Create(Struct, frozen=True, gc=False):
    """Create a node; the parent must exist. Reply: Created with the actual path (a sequential gets a 10-digit
    suffix)."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class SetData(Struct, frozen=True, gc=False):
    """Replace the data."""

    path: str
    data: bytes
    # The expected one, or ANY_VERSION. Reply: Done with the new stat.
    version: int = ANY_VERSION


class Delete(Struct, frozen=True, gc=False):
    """Remove a node without children. version as in SetData. Reply: Done."""

    path: str
    version: int = ANY_VERSION


class Check(Struct, frozen=True, gc=False):
    """Only inside a multi: the node exists with this version."""

    path: str
    version: int


class GetData(Struct, frozen=True, gc=False):
    """Read a node. Reply: Data."""

    path: str
    # Fire once on change or deletion (not set if the node does not exist).
    watch: bool = False


class Exists(Struct, frozen=True, gc=False):
    """Check whether a node exists. Reply: Done with the stat, or Failed(NO_NODE)."""

    path: str
    # Fire once on creation, change or deletion.
    watch: bool = False


class GetChildren(Struct, frozen=True, gc=False):
    """List the children of a node. Reply: Children, names sorted."""

    path: str
    # Fire once when a child is created or deleted, or the node is deleted.
    watch: bool = False


WriteOperation = Create | SetData | Delete | Check


class Multi(Struct, frozen=True, gc=False):
    """All or nothing, in order, one transaction. Reply: MultiDone, or Failed with the results of the
    members."""

    operations: tuple[WriteOperation, ...]


class MultiRead(Struct, frozen=True, gc=False):
    """Read the data of several nodes at once (opcode 22); a missing node does not fail the others. It sets no
    watches. Reply: MultiReadDone."""

    paths: tuple[str, ...]


class SetWatches(Struct, frozen=True, gc=False):
    """Watch the data of several nodes at once, as GetData does."""

    paths: tuple[str, ...]
    # A transaction. A node that was changed or deleted after it (or does not exist) fires at once, before the
    # reply. With the transaction of an earlier read, no change in between is missed. Reply: Done.
    seen: int


ZooKeeperRequest = Create | SetData | Delete | GetData | Exists | GetChildren | Multi | MultiRead | SetWatches


# ---- replies


class Stat(Struct, frozen=True, gc=False):
    """The metadata of a node."""

    # The transaction that created the node.
    czxid: int
    # The transaction that last changed its data.
    mzxid: int
    # The version of the data; each change increases it.
    version: int
    # The version of the list of children.
    cversion: int
    # The session of an ephemeral node; 0 for a persistent one.
    ephemeral_owner: int
    # The number of children.
    children: int


class Created(Struct, frozen=True, gc=False):
    """A node was created."""

    # The actual path.
    path: str
    # The transaction.
    czxid: int


class Done(Struct, frozen=True, gc=False):
    """stat: after the write (SetData, Exists); None for Delete and Check."""

    stat: Stat | None = None


class Data(Struct, frozen=True, gc=False):
    """The node's data and stat."""

    data: bytes
    stat: Stat


class Children(Struct, frozen=True, gc=False):
    """Names of the children, sorted, and the parent's stat."""

    names: tuple[str, ...]
    stat: Stat


class Failed(Struct, frozen=True, gc=False):
    """error: of the request. For a multi: of the first member that failed, with `index` its position and
    `results` of all members."""

    error: ZooKeeperError
    index: int = -1
    results: tuple[ZooKeeperError, ...] = ()


class MultiDone(Struct, frozen=True, gc=False):
    """Replies of the members, in order."""

    replies: tuple[Created | Done, ...]


class MultiReadDone(Struct, frozen=True, gc=False):
    """Data, or Failed(NO_NODE), for each path, in order."""

    replies: tuple[Data | Failed, ...]
    # The last transaction of the server at the time of the reply.
    zxid: int


Reply = Created | Done | Data | Children | MultiDone | MultiReadDone | Failed


def names_of(reply: Reply) -> tuple[str, ...]:
    """The children's names; none where the node is gone, as an operator may have removed it."""
    return reply.names if isinstance(reply, Children) else ()


REQUESTS: Mapping[type, str] = {
    Create: "Create",
    SetData: "SetData",
    Delete: "Delete",
    Check: "Check",
    GetData: "GetData",
    Exists: "Exists",
    GetChildren: "GetChildren",
    Multi: "Multi",
    MultiRead: "MultiRead",
    SetWatches: "SetWatches",
}
"""The name of each request, as fixed text, which keys the randomness of the request on its way
(messages/names.py)."""


class WatchEvent(Struct, frozen=True, gc=False):
    """A one-shot watch of this session fired."""

    path: str
    kind: WatchKind
