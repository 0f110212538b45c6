"""What a fault at the level of requests can do: the table of verbs, and the shapes of records.

Owns the table. Must not know how a verb is carried out (strikes.py).
"""

from collections.abc import Mapping

from attrs import frozen

ANY = "any"
"""In place of an API: every request but those that only open a connection."""


@frozen(kw_only=True)
class Verb:
    """What a fault does."""

    # For the documentation.
    says: str
    # Of error, milliseconds and shape: those that it needs.
    takes: frozenset[str] = frozenset()
    # The only APIs that it makes sense for; empty: all.
    apis: frozenset[str] = frozenset()
    # A field that must say whom it hits: partition or group.
    needs: str = ""
    # Why no correct broker does it; empty where one may.
    illegal: str = ""
    # Whether the request may take effect after its client has gone on without it.
    outlives: bool = False


MOVED_APIS = frozenset({"Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords"})
"""Requests that only the leader of a partition answers."""
GROUP_APIS = frozenset(
    {
        *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
        *("TxnOffsetCommit", "OffsetDelete", "DescribeGroups", "DeleteGroups"),
    }
)
"""Requests that only the coordinator of a group answers."""
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"})
"""Requests of a member of a group."""

VERBS: Mapping[str, Verb] = {
    "lose answer": Verb(says="the request takes effect, and its connection ends without the answer"),
    "silence": Verb(says="the request never takes effect, and nothing more is said on its connection"),
    "silence answer": Verb(says="the request takes effect, and nothing more is said on its connection"),
    "cut before": Verb(says="the connection ends, and the request never takes effect"),
    "cut after": Verb(says="the answer arrives, and then the connection ends"),
    "half answer": Verb(
        says="the request takes effect, half of its answer's bytes arrive, and the connection ends"
    ),
    "delay": Verb(
        says="the request takes effect so much later, and what is sent after it on its connection, too",
        takes=frozenset({"milliseconds"}),
    ),
    "hold": Verb(
        says="the connection ends at once, and the request takes effect so much later",
        takes=frozenset({"milliseconds"}),
        outlives=True,
    ),
    "hold connection": Verb(
        says="what its connection brings from this request on arrives so much later, also if the client has "
        "closed it by then",
        takes=frozenset({"milliseconds"}),
        outlives=True,
    ),
    "delay answer": Verb(
        says="the request takes effect now, its answer comes so much later",
        takes=frozenset({"milliseconds"}),
    ),
    "answer": Verb(says="this error in place of the answer", takes=frozenset({"error"})),
    "throttle": Verb(
        says="the answer says that the client is to wait, and its connection is not read for so long "
        "(KIP-219)",
        takes=frozenset({"milliseconds"}),
    ),
    "stale answer": Verb(
        says="the answer that was given to an equal request before, as long as there is one",
        apis=frozenset({"Metadata", "FindCoordinator", "DescribeCluster"}),
    ),
    "move leader": Verb(
        says="for so long, the leader of a partition says that it is not, and Metadata names another broker",
        takes=frozenset({"milliseconds"}),
        apis=MOVED_APIS,
        needs="partition",
    ),
    "move coordinator": Verb(
        says="for so long, the coordinator of a group says that it is not, and FindCoordinator names another",
        takes=frozenset({"milliseconds"}),
        apis=GROUP_APIS,
        needs="group",
    ),
    "forget member": Verb(
        says="the member that asks is unknown from now on, until it joins as a new one",
        apis=MEMBER_APIS,
    ),
    "reshape": Verb(
        says="the records of a fetch's answer in another shape",
        takes=frozenset({"shape"}),
        apis=frozenset({"Fetch"}),
    ),
    "skip answer": Verb(
        says="the request takes effect and is never answered, while later ones on its connection are",
        illegal="a broker answers the requests of a connection in their order, or ends it",
    ),
}
"""Every verb."""
SHAPES: Mapping[str, str] = {
    "empty": "no records, as if none had come in time",
    "one batch": "the first batch alone, as a small partition_max_bytes would have it",
    "partial batch": "whole batches, then a part of the next one: the broker cut at max_bytes",
    "earlier batch": "the batch before the offset that was asked for comes first",
    "empty batch": "a batch without records before the first one, as compaction leaves them",
    "control batch": "a control batch before the first one",
}
"""Records in odd shapes."""
ILLEGAL_SHAPES: Mapping[str, str] = {
    "control batch": "a broker gives a marker only an offset of its own, and here there was a record",
}
"""Those that a correct broker never sends, and why."""
