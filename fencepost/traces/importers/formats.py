"""The formats of other people's histories: which there are, how one is recognised, and each one's entries.

Owns: EDN (a vector or list of maps, or one map after another), its JSON twins, and Jepsen's log text. Must
not know how entries are paired.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from fencepost.traces.errors import BYTE_ORDER_MARK, TraceError
from fencepost.traces.importers.conventions import Conventions, Tell, silent
from fencepost.traces.importers.edn import EdnReader, plain
from fencepost.traces.importers.entries import HistoryEntry, entry_of
from fencepost.traces.importers.jepsen_text import history_entries, is_entry, is_log, log_entries
from fencepost.traces.importers.json_text import json_rows
from fencepost.traces.importers.kafka import kafka_operations
from fencepost.traces.importers.list_append import list_operations
from fencepost.traces.importers.refusals import refuse_others
from fencepost.traces.importers.verifiable import verifiable_operations
from fencepost.traces.importers.window import Window
from fencepost.traces.operations import Operation

Row = tuple[Any, int]
"""An entry as a map of JSON values, not yet understood, and the number of its line."""


def edn_rows(window: Window) -> Iterator[Row]:
    """The rows of a history in EDN."""
    reader = EdnReader(window)
    closes = "]" if reader.skip_into("[") else ")" if reader.skip_into("(") else ""
    for value, line in reader.values(closes):
        yield plain(value), line
    kind, seen, position = reader.token()
    if kind:
        raise reader.refuse("nothing after the history", repr(seen), position)


def edn_entries(window: Window, tell: Tell = silent) -> Iterator[HistoryEntry]:
    """The entries of a history in EDN.

    Args:
        window: the text.
        tell: is called with a sentence for what can be read in two ways.
    """
    return _entries(edn_rows(window), window.where)


def _entries(rows: Iterator[Row], where: str) -> Iterator[HistoryEntry]:
    for row, line in rows:
        entry = entry_of(row, line=line, where=where)
        if entry is not None:
            yield entry


def json_entries(window: Window, tell: Tell = silent) -> Iterator[HistoryEntry]:
    """The entries of a history in JSON: an array of objects, or one object after another.

    Args:
        window: the text.
        tell: is called with a sentence for what can be read in two ways.
    """
    return _entries(json_rows(window), window.where)


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


@frozen(kw_only=True)
class Format:
    """One format."""

    name: str
    says: str
    # Of a text, as a stream.
    entries: Callable[[Window, Tell], Iterator[HistoryEntry]] | None = None
    # A failed cas is an observation, not an operation without effect.
    failed_cas_observes: bool = False
    # Whether operations of one process may overlap.
    overlaps: bool = False
    # Instead of entries, for a workload with entries that mean more than one operation each.
    operations: Callable[[Window, Conventions, Tell], tuple[Operation, ...]] | None = None


def kafka_history(window: Window, conventions: Conventions, tell: Tell) -> tuple[Operation, ...]:
    """The operations of a history of Jepsen's Kafka workload, in EDN or JSON.

    Args:
        window: the text.
        conventions: how to take what can be read in two ways.
        tell: is called with a sentence for each such thing that was met.
    """
    rows = json_rows if _notation(window) == "json" else edn_rows
    return kafka_operations(rows(window), window.where, conventions, tell)


def list_history(window: Window, conventions: Conventions, tell: Tell) -> tuple[Operation, ...]:
    """The operations of a list-append history, in EDN or JSON.

    Args:
        window: the text.
        conventions: how to take what can be read in two ways.
        tell: is called with a sentence for each such thing that was met.
    """
    rows = json_rows if _notation(window) == "json" else edn_rows
    return list_operations(rows(window), window.where, conventions, tell)


def verifiable_history(window: Window, conventions: Conventions, tell: Tell) -> tuple[Operation, ...]:
    """The operations in the output of Kafka's VerifiableProducer and VerifiableConsumer.

    Args:
        window: the text.
        conventions: how to take what can be read in two ways.
        tell: is called with a sentence for each such thing that was met.
    """
    return verifiable_operations(json_rows(window), window.where, tell)


FORMATS: dict[str, Format] = {
    made.name: made
    for made in (
        Format(
            name="edn", says="Jepsen's EDN: a vector, a list, or one map after another", entries=edn_entries
        ),
        Format(
            name="json", says="the same as JSON: an array, or one object after another", entries=json_entries
        ),
        Format(name="jepsen-log", says="Jepsen's log text", entries=log_entries),
        Format(name="jepsen-history", says="Jepsen's history.txt", entries=history_entries),
        Format(
            name="etcd-log",
            says="the same of Porcupine's etcd tests: a failed cas says that its precondition was false",
            entries=log_entries,
            failed_cas_observes=True,
        ),
        Format(
            name="jepsen-kafka",
            says="Jepsen's Kafka workload in EDN or JSON: send, poll, assign, subscribe, crash, txn",
            operations=kafka_history,
        ),
        Format(
            name="elle-append",
            says="Elle's list-append histories in EDN or JSON: txn of append and r",
            operations=list_history,
        ),
        Format(
            name="kafka-verifiable",
            says="what Kafka's VerifiableProducer and VerifiableConsumer print",
            overlaps=True,
            operations=verifiable_history,
        ),
    )
}
SUFFIXES = (".edn", ".json", ".log", ".txt")
"""Files of a folder that are taken for histories."""

_FIRST = re.compile(r"(?:[\s,]|;[^\n]*\n?)*")


_KAFKA = re.compile(
    r':f\s+:(?:send|poll|assign|subscribe)\b|\[:(?:send|poll)\b|"f"\s*:\s*"(?:send|poll|assign|subscribe)"|\[\s*"(?:send|poll)"'
)
_LISTS = re.compile(r'\[\s*:append\s|\[\s*"append"\s*,')
"""A micro-operation. An operation `append` of a single list has no brackets around it."""
_VERIFIABLE = re.compile(
    r'"name"\s*:\s*"(?:startup_complete|producer_send_(?:success|error)|record_data|records_consumed|'
    r'partitions_(?:assigned|revoked))"'
)
_HEAD = 1 << 16
"""Characters at the beginning of a history that identify its workload."""
_BEGINNING = 200
"""Characters after comments that identify its notation."""


def recognised(window: Window) -> Format:
    """The format of a text, by how it begins. Raises TraceError where it is none."""
    notation = _notation(window)
    while len(window.text) < _HEAD and window.more():
        pass
    if notation in ("jepsen-log", "jepsen-history"):
        return FORMATS[notation]
    head = window.text[:_HEAD]
    refuse_others(head, window.where)
    if notation == "json" and _VERIFIABLE.search(head):
        return FORMATS["kafka-verifiable"]
    if _KAFKA.search(window.text, 0, _HEAD):
        return FORMATS["jepsen-kafka"]
    if _LISTS.search(window.text, 0, _HEAD):
        return FORMATS["elle-append"]
    return FORMATS[notation]


def looks_foreign(window: Window) -> bool:
    """Whether a text begins as a history of others; maps only if they have a field of one. Raises TraceError
    if it has no known format."""
    found = recognised(window)
    return found.name not in ("json", "edn") or _FIELD.search(window.text, 0, _HEAD) is not None


_FIELD = re.compile(r'"(?:process|f)"\s*:|:(?:process|f)\s')


def _notation(window: Window) -> str:
    """edn, json or jepsen-log. Raises TraceError if it is none of them."""
    begin = _end_of(_FIRST, window.text, 0)
    while len(window.text) < begin + _BEGINNING and window.more():
        begin = _end_of(_FIRST, window.text, 0)
    rest = window.text[begin : begin + _BEGINNING]
    refuse_others(rest, window.where)
    if is_log(rest):
        return "jepsen-log"
    if is_entry(rest):
        return "jepsen-history"
    bracket = re.match(r"\[?\s*\{\s*(\"|:|\})", rest)
    if bracket is not None:
        return "json" if bracket.group(1) == '"' else "edn"
    if re.match(r"[\[(#{]", rest):
        return "edn"
    seen, hint = repr(rest[:40]) if rest else "an empty file", ""
    if rest.startswith("\ufeff"):
        seen, hint = BYTE_ORDER_MARK
    raise TraceError(
        expected=f"a history in one of the formats {', '.join(FORMATS)}",
        seen=seen,
        where=window.where,
        hint=hint,
    )
