"""One sentence for each event and each operation of a trace.

Owns: the words, and the escaping of everything that a trace may carry from elsewhere.
Must not know: colours, folding, findings, the terminal.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fencepost.checkers.durations import NANOSECONDS
from fencepost.checkers.invariants.no_crash import error_in_words
from fencepost.report.group_words import GROUP_EVENT_WORDS, group_answer_in_words, group_request_in_words
from fencepost.report.spoken import shown
from fencepost.traces.decoding import from_json
from fencepost.traces.events import NO_ANSWER, NO_COORDINATOR, NO_ROOM, Event, Name, Question
from fencepost.traces.operations import ACKS_ALL, ACKS_NONE, Function, Operation, Outcome

LONGEST_TEXT = 120
LONGEST_OF_GROUPS = 240
LONGEST_VALUES = 6
"""Values named in one sentence; the rest is counted."""


def printable(text: str, longest: int = LONGEST_TEXT) -> str:
    """`text` on one line: control characters and other unprintable ones as escapes, cut to `longest`."""
    safe = shown(text)
    return safe if len(safe) <= longest else safe[: longest - 3] + "..."


def seconds(nanoseconds: int) -> str:
    """A trace's time in seconds, exact to the microsecond."""
    return f"{nanoseconds // NANOSECONDS}.{nanoseconds % NANOSECONDS // 1000:06d}"


def partition_name(topic: str | None, partition: int | None) -> str:
    """Kafka's short form, t-0. topic, partition: None for no single one."""
    return f"{printable(topic or '?', 40)}-{'?' if partition is None else partition}"


def values_in_words(values: tuple[int, ...]) -> str:
    """A few values by name, many by count."""
    if not values:
        return "nothing"
    named = ", ".join(f"v{value}" for value in values[:LONGEST_VALUES])
    return named if len(values) <= LONGEST_VALUES else f"{named} and {len(values) - LONGEST_VALUES} more"


def _brokers(ids: tuple[int, ...]) -> str:
    return "{" + ", ".join(str(broker) for broker in ids) + "}"


def fault_detail(event: Event) -> dict[str, Any]:
    """The detail of a fault event as an object; empty if it is not one."""
    try:
        detail = from_json(event.detail) if event.detail else {}
    except msgspec.DecodeError:
        return {}
    return detail if isinstance(detail, dict) else {}


def fault_key(event: Event) -> object:
    """The key that distinguishes a fault: its number; for a foreign trace without numbers its kind, host and
    detail."""
    number = fault_detail(event).get("fault")
    return number if isinstance(number, int | str) else (event.cause, event.node, event.detail)


def fault_nodes(event: Event) -> tuple[int, ...]:
    """The hosts that a fault event hits."""
    nodes = fault_detail(event).get("nodes")
    if isinstance(nodes, list) and all(isinstance(node, int) for node in nodes):
        return tuple(nodes)
    return (event.node,) if event.node >= 0 else ()


def _fault(event: Event, verb: str) -> str:
    detail = fault_detail(event)
    number = f" {detail['fault']}" if "fault" in detail else ""
    target = f" on {detail['target']}" if detail.get("target") else ""
    nodes = fault_nodes(event)
    hosts = f" (broker {', '.join(str(node) for node in nodes)})" if nodes else ""
    reason = f": {detail['reason']}" if detail.get("reason") else ""
    return printable(f"fault{number} {verb}: {event.cause}{target}{hosts}{reason}")


def _connection(event: Event) -> str:
    process = fault_detail(event).get("process")
    if isinstance(process, int):
        return f"client {process} connects"
    return f"connection {printable(event.cause)}: {printable(event.detail, 200)}"


def _partition_state(event: Event) -> str:
    leader = f"leader {event.leader}" if event.leader >= 0 else "no leader"
    return (
        f"ZooKeeper: {leader}, leader epoch {event.leader_epoch}, ISR {_brokers(event.isr)}"
        f" (written by controller epoch {event.controller_epoch})"
    )


def _replicas(event: Event, where: str) -> str:
    if not event.replicas:
        return f"ZooKeeper: {where} no longer has it"
    return f"ZooKeeper: {where} says replicas {_brokers(event.replicas)}"


def _broker_znode(event: Event) -> str:
    if event.broker_epoch < 0:
        return f"ZooKeeper: /brokers/ids/{event.node} is gone"
    return f"ZooKeeper: /brokers/ids/{event.node} is there, broker epoch {event.broker_epoch}"


def _controller_znode(event: Event) -> str:
    return (
        f"ZooKeeper: /controller names broker {event.leader}"
        if event.leader >= 0
        else "ZooKeeper: /controller is gone"
    )


def _control_request(event: Event, verb: str) -> str:
    request = printable(event.cause or event.detail or "control request")
    error = f": {printable(event.detail)}" if verb == "refuses" and event.detail and event.cause else ""
    return f"{verb} {request} of controller epoch {event.controller_epoch}{error}"


def _truncated(event: Event) -> str:
    cut = event.end_offset - event.offset
    records = f"{cut} record{'s' if cut != 1 else ''}"
    return (
        f"cuts its log from {event.end_offset} to {event.offset} ({records}; by {printable(event.cause)},"
        f" leader epoch {event.leader_epoch}, its high watermark was {event.high_watermark})"
    )


def _appended(event: Event) -> str:
    role = "appends" if event.cause == "leader" else "copies"
    return (
        f"{role} {values_in_words(event.values)} at offset {event.offset}, leader epoch {event.leader_epoch}"
    )


def _replica_log(event: Event) -> str:
    return (
        f"at the end holds {values_in_words(event.values)} from offset {event.offset} in leader epoch "
        f"{event.leader_epoch}"
    )


def _mark(event: Event) -> str:
    if event.cause == "leader_not_alive":
        return (
            f"REFUSES to follow broker {event.leader} in epoch {event.leader_epoch}: it has not heard that "
            f"broker {event.leader} is alive"
        )
    return f"mark: {printable(event.cause)}"


def _of_a_group(event: Event) -> str:
    return printable(GROUP_EVENT_WORDS[event.name](event), LONGEST_OF_GROUPS)


ASKED_BY: dict[str, str] = {
    Question.BROKERS: "Metadata",
    Question.PARTITION: "Metadata",
    Question.LOG: "ListOffsets",
    Question.EPOCHS: "OffsetForLeaderEpoch",
    Question.PRODUCERS: "DescribeProducers",
    Question.LOG_DIRECTORIES: "DescribeLogDirs",
    Question.GROUP: "DescribeGroups",
    Question.CONSUMER_GROUP: "ConsumerGroupDescribe",
    Question.COMMITTED: "OffsetFetch",
    Question.TRANSACTIONS: "ListTransactions",
    Question.TRANSACTION: "DescribeTransactions",
    Question.REASSIGNMENTS: "ListPartitionReassignments",
    Question.OFFSET_RECORDS: "Fetch of __consumer_offsets",
    Question.TRANSACTION_RECORDS: "Fetch of __transaction_state",
    Question.CONTENT: "Fetch",
    Question.QUORUM: "DescribeQuorum",
    Question.SETTINGS: "DescribeConfigs",
    Question.ELIGIBLE: "DescribeTopicPartitions",
}
"""Kafka's request by which each question is put."""


def _asked(event: Event) -> str:
    facts = fault_detail(event)
    request, error = ASKED_BY.get(event.cause, printable(event.cause)), facts.pop("error", "")
    facts.pop("asked", None)
    if error == NO_ROOM:
        return printable(f"no room for more answers: {facts.get('left_out')} were not requested", 200)
    if error == NO_COORDINATOR:
        return f"no coordinator is known that could answer {request}"
    if error == NO_ANSWER:
        return f"does not answer {request}"
    if error:
        return f"answers {request} with {printable(str(error))}"
    numbers = {
        "leader": event.leader,
        "leader epoch": event.leader_epoch,
        "log start offset": event.log_start_offset,
        "last stable offset": event.offset if event.cause == Question.LOG else -1,
        "high watermark": event.high_watermark,
        "log end offset": event.end_offset,
    }
    brokers = {"ISR": event.isr, "replicas" if event.topic else "brokers": event.replicas}
    said = [f"{name} {number}" for name, number in numbers.items() if number >= 0]
    said += [f"{name} {_brokers(ids)}" for name, ids in brokers.items() if ids]
    said += [f"{name.replace('_', ' ')} {_short(value)}" for name, value in facts.items()]
    return printable(f"answers {request}: {', '.join(said) or 'nothing'}", 200)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _request(event: Event) -> str:
    facts = fault_detail(event)
    if "group" not in facts:
        return f"request {printable(event.cause)}: {printable(event.detail, 200)}"
    error = f" fails ({facts['error']})" if facts.get("error") else ""
    commit = f"OffsetCommit {event.offset} of group {facts['group']} by client {facts.get('process')}"
    return printable(commit + error, LONGEST_OF_GROUPS)


def _application(event: Event) -> str:
    where = "" if event.topic is None else f" {printable(event.topic)}-{event.partition}"
    where += f" offset {event.offset}" if event.offset >= 0 else ""
    return f"{printable(event.cause) or 'a line of an application'}{where}"


EVENT_WORDS: dict[Name, Callable[[Event], str]] = {
    Name.CONTROLLER_EPOCH: lambda e: f"ZooKeeper: /controller_epoch becomes {e.controller_epoch}",
    Name.CONTROLLER_ZNODE: _controller_znode,
    Name.PARTITION_STATE: _partition_state,
    Name.BROKER_ZNODE: _broker_znode,
    Name.ASSIGNMENT: lambda e: _replicas(e, "the topic's node"),
    Name.REASSIGNMENT: lambda e: _replicas(e, "/admin/reassign_partitions"),
    Name.TOPIC_DELETION: lambda e: (
        f"ZooKeeper: deletion of topic {printable(e.topic or '?')} {printable(e.cause)}"
    ),
    Name.LIVE_BROKERS: lambda e: f"knows of live brokers {_brokers(e.replicas)}",
    Name.ISR_PROPOSED: lambda e: f"asks ZooKeeper for the ISR {_brokers(e.isr)}",
    Name.BROKER_STARTED: lambda e: "starts",
    Name.BROKER_STATE: lambda e: f"is {printable(e.cause)}",
    Name.LOG_DIRECTORY_FAILED: lambda e: f"halts: its log directory failed ({printable(e.detail)})",
    Name.IMPLEMENTATION_ERROR: lambda e: f"ENDS by a mistake of its own: {printable(error_in_words(e), 400)}",
    Name.BROKER_REGISTERED: lambda e: f"registers in ZooKeeper, broker epoch {e.broker_epoch}",
    Name.SESSION_EXPIRED: lambda e: "learns that its ZooKeeper session has expired",
    Name.LOG_RECOVERED: lambda e: (
        f"opens its log: end {e.offset}, high watermark {e.high_watermark} from the checkpoint"
    ),
    Name.DURABLE: lambda e: f"its disk surely holds the log below {e.end_offset} ({printable(e.cause)})",
    Name.CONTROLLER_ELECTED: lambda e: f"is the controller of epoch {e.controller_epoch}",
    Name.CONTROLLER_RESIGNED: lambda e: (
        f"resigns as controller of epoch {e.controller_epoch}: {printable(e.cause)}"
    ),
    Name.CONTROLLER_WRITE_REFUSED: lambda e: (
        f"ZooKeeper refuses its write as controller of epoch {e.controller_epoch}"
    ),
    Name.CONTROL_REQUEST_APPLIED: lambda e: _control_request(e, "obeys"),
    Name.CONTROL_REQUEST_REFUSED: lambda e: _control_request(e, "refuses"),
    Name.TOPIC_CONFIGURED: lambda e: f"applies the configuration {printable(e.detail)}",
    Name.BECAME_LEADER: lambda e: (
        f"LEADS in epoch {e.leader_epoch} from offset {e.offset}, high watermark {e.high_watermark}"
    ),
    Name.BECAME_FOLLOWER: lambda e: (
        f"follows broker {e.leader} in epoch {e.leader_epoch}, log end {e.offset}, high watermark "
        f"{e.high_watermark}"
    ),
    Name.APPENDED: _appended,
    Name.TRUNCATED: _truncated,
    Name.LOG_START: lambda e: f"its log begins at {e.log_start_offset} now ({printable(e.cause)})",
    Name.COMPACTED: lambda e: f"its log is clean up to {e.offset}",
    Name.HIGH_WATERMARK: lambda e: (
        f"high watermark {e.high_watermark}" + (" (as leader)" if e.cause == "leader" else "")
    ),
    Name.ISR_UPDATED: lambda e: f"ISR {printable(e.cause)}s to {_brokers(e.isr)}",
    Name.ISR_REFUSED: lambda e: f"ZooKeeper refuses its ISR change to {_brokers(e.isr)}",
    Name.FETCH_REFUSED: lambda e: f"refuses a fetch of leader epoch {e.leader_epoch}: {printable(e.detail)}",
    Name.FOLLOWER_FAILED: lambda e: f"stops following broker {e.leader}: {printable(e.detail)}",
    Name.REPLICA_LOG: _replica_log,
    Name.SETTINGS: lambda e: f"settings: {printable(e.detail, 200)}",
    Name.BUSY: lambda e: f"was busy: {printable(e.detail, 60)}",
    Name.ASKED: _asked,
    **dict.fromkeys(GROUP_EVENT_WORDS, _of_a_group),
    Name.REQUEST: _request,
    Name.RECORD_TEXTS: lambda e: f"texts of {len(e.values)} records",
    Name.APPLICATION: _application,
    Name.CONNECTION: _connection,
    Name.PHASE: lambda e: f"{printable(e.cause)} phase",
    Name.FAULT_BEGAN: lambda e: _fault(e, "begins"),
    Name.FAULT_ENDED: lambda e: _fault(e, "ends"),
    Name.FAULT_SKIPPED: lambda e: _fault(e, "skipped"),
    Name.LIVENESS_FAILED: lambda e: f"never ended: {printable(e.cause)}",
    Name.MARK: _mark,
}


def event_in_words(event: Event) -> str:
    """What happened, without when and where. A name that this version has no words for is given as it is."""
    words = EVENT_WORDS.get(event.name)
    return words(event) if words else printable(str(event.name).replace("_", " "))


def request_in_words(operation: Operation) -> str:
    """The client's request."""
    if operation.group is not None:
        return printable(group_request_in_words(operation), LONGEST_OF_GROUPS)
    if operation.function is Function.TXN:
        return "transaction"
    where = partition_name(operation.topic, operation.partition)
    if operation.function is Function.APPEND:
        acks = {ACKS_ALL: "all", ACKS_NONE: "0"}.get(
            operation.acks if operation.acks is not None else ACKS_ALL, "1"
        )
        return (
            f"append {values_in_words(tuple(record.value for record in operation.records))} to {where}, "
            f"acks={acks}"
        )
    if operation.function is Function.POLL:
        start = "its position" if operation.offset is None else f"offset {operation.offset}"
        return f"poll {where} from {start}{_isolation(operation)}"
    return printable(f"{operation.function.value.replace('_', ' ')} {where}{_isolation(operation)}")


def _isolation(operation: Operation) -> str:
    """Kafka's setting, where it is not the default."""
    return ", isolation.level=read_committed" if operation.isolation == "read_committed" else ""


def outcome_in_words(operation: Operation) -> str:
    """How it ended, in a word: a transaction commits or aborts."""
    if operation.function is Function.TXN and operation.outcome is not Outcome.UNKNOWN:
        return "committed" if operation.outcome is Outcome.OK else "aborted"
    return operation.outcome.value


def answer_in_words(operation: Operation) -> str:
    """The answer to the client."""
    error = f" ({printable(operation.error)})" if operation.error and operation.error != "NONE" else ""
    if operation.function is Function.TXN and operation.outcome is not Outcome.UNKNOWN:
        return f"{outcome_in_words(operation)}{error}"
    if operation.outcome is not Outcome.OK:
        return f"{'refused' if operation.outcome is Outcome.FAIL else 'outcome unknown'}{error}"
    if operation.function is Function.APPEND:
        return "ok" if operation.offset is None else f"ok at offset {operation.offset}"
    if operation.group is not None and (answer_words := group_answer_in_words(operation)):
        return printable(answer_words, LONGEST_OF_GROUPS)
    if operation.function is Function.POLL:
        values = values_in_words(tuple(record.value for record in operation.records))
        end = "" if operation.end_offset is None else f", end {operation.end_offset}"
        if operation.last_stable_offset is not None and operation.last_stable_offset != operation.end_offset:
            end += f", last stable offset {operation.last_stable_offset}"
        return f"read {values}{end}{' (final read)' if operation.strong else ''}"
    result = operation.offset if operation.offset is not None else operation.result
    return f"ok: {printable(str(result))}" if result is not None else "ok"
