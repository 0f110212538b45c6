"""What clients call themselves and what their records say, for people: judges compare value ids only.

Owns the detail of the events CONNECTION and RECORD_TEXTS, as it is written and read. Must not know who
records, or what is drawn. Texts are cut, and may hold any character: who shows them escapes them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name

LONGEST_TEXT = 80
"""Bytes of a key or a value: a line of a report holds both."""
TEXTS_AN_EVENT = 200
"""Records of one RECORD_TEXTS: a line of JSON that an editor still opens."""
OPENED = "opened"
"""The cause of a CONNECTION that begins."""
Texts = tuple[str | None, str | None]
"""Key and value; None: it has none."""


def text_of(data: bytes | None) -> str | None:
    """Bytes as a text, cut to LONGEST_TEXT, with escapes for what is not UTF-8."""
    if data is None:
        return None
    shown = data[:LONGEST_TEXT].decode("utf-8", "backslashreplace")
    return shown if len(data) <= LONGEST_TEXT else f"{shown}..."


def connection_opened(time: int, *, connection: int, process: int, client: str) -> Event:
    """The event of a connection that has said its name.

    Args:
        time: of its first request.
        connection: its number.
        process: of its operations.
        client: what it calls itself.
    """
    detail = {"connection": connection, "client": client, "process": process}
    return Event(time=time, name=Name.CONNECTION, cause=OPENED, detail=json.dumps(detail))


def record_texts(time: int, texts: Mapping[int, Texts]) -> list[Event]:
    """The events that say what records are.

    Args:
        time: of the events.
        texts: by value id.
    """
    rows = list(texts.items())
    return [
        Event(
            time=time,
            name=Name.RECORD_TEXTS,
            values=tuple(value for value, _ in rows[first : first + TEXTS_AN_EVENT]),
            detail=json.dumps([text for _, text in rows[first : first + TEXTS_AN_EVENT]]),
        )
        for first in range(0, len(rows), TEXTS_AN_EVENT)
    ]


def texts_of(events: Iterable[Event]) -> dict[int, Texts]:
    """What records say, by value id. An event that says nothing readable is passed over."""
    found: dict[int, Texts] = {}
    for event in events:
        if event.name is Name.RECORD_TEXTS:
            rows = _detail(event)
            for value, row in zip(event.values, rows if isinstance(rows, list) else (), strict=False):
                if isinstance(row, Sequence) and len(row) == 2 and all(_is_text(one) for one in row):
                    found[value] = (row[0], row[1])
    return found


def clients_of(events: Iterable[Event]) -> dict[int, str]:
    """What clients call themselves, by the process of their operations; the last name counts."""
    found: dict[int, str] = {}
    for event in events:
        if event.name is Name.CONNECTION and event.cause == OPENED:
            detail = _detail(event)
            if isinstance(detail, dict):
                process, client = detail.get("process"), detail.get("client")
                if isinstance(process, int) and isinstance(client, str) and client:
                    found[process] = client
    return found


def _is_text(one: object) -> bool:
    return one is None or isinstance(one, str)


def _detail(event: Event) -> Any:
    try:
        return from_json(event.detail) if event.detail else None
    except msgspec.DecodeError:
        return None
