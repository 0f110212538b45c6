"""What a fault at the level of requests can do: the table of verbs, and the shapes of records.

Owns the table. Must not know how a verb is carried out (strikes.py).
"""

from collections.abc import Mapping

from attrs import frozen

ANY = "any"
"""In place of an API: every request but those that only open a connection."""
OBSERVE = "observe"
"""The verb that only counts."""
TAKEN: Mapping[str, str] = {"ERROR": "error", "TIME": "milliseconds", "SHAPE": "shape"}
"""Words of a form, and the field that each stands for."""


@frozen(kw_only=True)
class Verb:
    """What a fault does."""

    # How it is written: the verb, API, and what it takes out of ERROR, TIME and SHAPE. What is in brackets is
    # left out where every request is hit.
    form: str
    # For the documentation.
    says: str
    # Its hits in words: one, and many.
    struck: tuple[str, str]
    # The only APIs that it makes sense for; empty: all.
    apis: frozenset[str] = frozenset()
    # A field that must say whom it hits: partition or group.
    needs: str = ""
    # Why no correct broker does it; empty where one may.
    illegal: str = ""
    # Whether the request may take effect after its client has gone on without it.
    outlives: bool = False

    @property
    def takes(self) -> frozenset[str]:
        """Fields that it needs."""
        return frozenset(name for word, name in TAKEN.items() if word in self.form.split())


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
    "lose answer": Verb(
        struck=("lost answer", "lost answers"),
        form="lose answer to API",
        says="the request takes effect, and its connection ends without the answer",
    ),
    "silence": Verb(
        struck=("silent connection", "silent connections"),
        form="silence API",
        says="the request never takes effect, and nothing more is said on its connection",
    ),
    "silence answer": Verb(
        struck=("answer that never came", "answers that never came"),
        form="silence answer to API",
        says="the request takes effect, and nothing more is said on its connection",
    ),
    "cut before": Verb(
        struck=("connection cut before a request", "connections cut before a request"),
        form="cut before API",
        says="the connection ends, and the request never takes effect",
    ),
    "cut after": Verb(
        struck=("connection cut after an answer", "connections cut after an answer"),
        form="cut after API",
        says="the answer arrives, and then the connection ends",
    ),
    "half answer": Verb(
        struck=("half answer", "half answers"),
        form="half answer to API",
        says="the request takes effect, half of its answer's bytes arrive, and the connection ends",
    ),
    "delay": Verb(
        struck=("delayed request", "delayed requests"),
        form="delay API by TIME",
        says="the request takes effect so much later, and what is sent after it on its connection, too",
    ),
    "hold": Verb(
        struck=("held request", "held requests"),
        form="hold API by TIME",
        says="the connection ends at once, and the request takes effect so much later",
        outlives=True,
    ),
    "hold connection": Verb(
        struck=("held connection", "held connections"),
        form="hold connection at API by TIME",
        says="what its connection brings from this request on arrives so much later, also if the client has "
        "closed it by then",
        outlives=True,
    ),
    "delay answer": Verb(
        struck=("delayed answer", "delayed answers"),
        form="delay answer to API by TIME",
        says="the request takes effect now, its answer comes so much later",
    ),
    "answer": Verb(
        struck=("error in place of an answer", "errors in place of answers"),
        form="answer ERROR to API",
        says="this error in place of the answer",
    ),
    "throttle": Verb(
        struck=("throttled client", "throttled clients"),
        form="throttle API by TIME",
        says="the answer says that the client is to wait, and its connection is not read for so long "
        "(KIP-219)",
    ),
    "stale answer": Verb(
        struck=("stale answer", "stale answers"),
        form="stale answer to API",
        says="the answer that was given to an equal request before, as long as there is one",
        apis=frozenset({"Metadata", "FindCoordinator", "DescribeCluster"}),
    ),
    "move leader": Verb(
        struck=("moved leader", "moved leaders"),
        form="move leader [at API] for TIME",
        says="for so long, the leader of a partition says that it is not, and Metadata names another broker",
        apis=MOVED_APIS,
        needs="partition",
    ),
    "move coordinator": Verb(
        struck=("moved coordinator", "moved coordinators"),
        form="move coordinator [at API] for TIME",
        says="for so long, the coordinator of a group says that it is not, and FindCoordinator names another",
        apis=GROUP_APIS,
        needs="group",
    ),
    "forget member": Verb(
        struck=("forgotten member", "forgotten members"),
        form="forget member [in API]",
        says="the member that asks is unknown from now on, until it joins as a new one",
        apis=MEMBER_APIS,
    ),
    "reshape": Verb(
        struck=("answer with records in an odd shape", "answers with records in an odd shape"),
        form="reshape API to SHAPE",
        says="the records of a fetch's answer in another shape",
        apis=frozenset({"Fetch"}),
    ),
    OBSERVE: Verb(
        struck=("observed request", "observed requests"),
        form="observe API",
        says="nothing: its hits say how many such requests have come, and another fault may hit them",
    ),
    "skip answer": Verb(
        struck=("skipped answer", "skipped answers"),
        form="skip answer to API",
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
    "control batch": "a broker gives a marker only an offset of its own, and here there was a record"
}
"""Those that a correct broker never sends, and why."""
