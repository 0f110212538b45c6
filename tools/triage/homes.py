"""Which folder of impl/ an event belongs to: where the code is that decides that it happens, and with what.

Owns the table. It was written from what the events say (fencepost/traces/events.py), before any mutant was
tried. An event that two folders decide together has both: a partition's state is written by the controller,
and by the leader that changes the ISR; records are appended by a replica into its log, and a leader appends
what a client, or a coordinator, sends. The rows of the client, of answers and of internal topics were added
after 18 mutants of another order had been looked at.
"""

from collections.abc import Iterable

import msgspec

from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation

HOMES: dict[str, tuple[Name, ...]] = {
    "controller": (
        *(Name.CONTROLLER_EPOCH, Name.CONTROLLER_ZNODE, Name.CONTROLLER_ELECTED, Name.CONTROLLER_RESIGNED),
        *(Name.CONTROLLER_WRITE_REFUSED, Name.PARTITION_STATE, Name.ASSIGNMENT, Name.REASSIGNMENT),
        *(Name.TOPIC_DELETION, Name.LIVE_BROKERS, Name.CONTROL_REQUEST_APPLIED, Name.CONTROL_REQUEST_REFUSED),
    ),
    "broker": (
        *(Name.BROKER_STARTED, Name.BROKER_REGISTERED, Name.BROKER_ZNODE, Name.BROKER_STATE),
        *(Name.SESSION_EXPIRED, Name.TOPIC_CONFIGURED, Name.LOG_DIRECTORY_FAILED),
        *(Name.LIVE_BROKERS, Name.CONTROL_REQUEST_APPLIED, Name.CONTROL_REQUEST_REFUSED),
    ),
    "core": (
        *(Name.BROKER_STATE, Name.BROKER_STARTED, Name.BROKER_REGISTERED, Name.LIVE_BROKERS),
        *(Name.TOPIC_CONFIGURED, Name.LOG_DIRECTORY_FAILED),
    ),
    "replication": (
        *(Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.APPENDED, Name.TRUNCATED, Name.HIGH_WATERMARK),
        *(Name.ISR_PROPOSED, Name.ISR_UPDATED, Name.ISR_REFUSED, Name.LOG_START, Name.COMPACTED),
        *(Name.FETCH_REFUSED, Name.FOLLOWER_FAILED, Name.LOG_RECOVERED, Name.PARTITION_STATE),
    ),
    "log": (
        *(Name.APPENDED, Name.TRUNCATED, Name.LOG_START, Name.COMPACTED, Name.LOG_RECOVERED),
        *(Name.FOLLOWER_FAILED, Name.LOG_DIRECTORY_FAILED),
    ),
    "coordinator": (
        *(Name.GROUPS_LOADED, Name.GROUPS_UNLOADED, Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED),
        Name.GROUP_REMOVED,
    ),
    "transaction": (
        *(Name.TRANSACTIONS_LOADED, Name.TRANSACTIONS_UNLOADED, Name.TRANSACTION_PHASE),
        *(Name.MARKER_WRITTEN, Name.MARKER_REFUSED),
    ),
    "zookeeper": (Name.PARTITION_STATE, Name.ASSIGNMENT, Name.CONTROLLER_EPOCH, Name.CONTROLLER_ZNODE),
    "client": (Name.GROUP_PHASE, Name.TRANSACTION_PHASE),
}
"""A client's member makes its group rebalance, and its producer begins and ends transactions."""
SENDERS = {"__consumer_offsets": "coordinator", "__transaction_state": "transaction"}
"""Who sends what a leader appends to internal topics; to any other a client does."""
ANSWERS: dict[str, tuple[Function, ...]] = {
    "client": tuple(Function),
    "replication": (Function.APPEND, Function.POLL, Function.LIST_OFFSETS, Function.DELETE_RECORDS),
    "log": (Function.APPEND,),
    "coordinator": (Function.COMMIT, Function.FETCH_COMMITTED, Function.JOIN),
    "transaction": (Function.TXN,),
}
"""Who decides how an operation is answered: a log refuses a sequence that it does not expect."""


class _Raised(msgspec.Struct):
    """The places of an implementation's own error, the innermost first."""

    at: list[str] = []


def folder_of(file: str) -> str:
    """The folder of impl/ that a source is in."""
    return file.removeprefix("fencepost/impl/").split("/", 1)[0]


def homes_of(event: Event) -> set[str]:
    """The folders of an event. An error of the implementation belongs to where it was raised."""
    if event.name is Name.IMPLEMENTATION_ERROR:
        try:
            at = from_json(event.detail, _Raised).at
        except msgspec.MsgspecError:
            return set()
        places = (place.split("impl/", 1)[1] for place in at[:1] if "impl/" in place)
        return {place.split("/", 1)[0] for place in places}
    homes = {folder for folder, names in HOMES.items() if event.name in names}
    if event.name is Name.APPENDED and event.cause != "follower":
        homes.add(SENDERS.get(event.topic or "", "client"))
    return homes


def homes_of_answers(operations: Iterable[Operation]) -> set[str]:
    """The folders that decide how these operations are answered."""
    return {folder for one in operations for folder, named in ANSWERS.items() if one.function in named}
