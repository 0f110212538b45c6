"""Texts that are recognised and are no history of clients: what to do instead.

Owns how they begin. Must not know formats that are read.
"""

import re

from fencepost.traces.errors import TraceError

_PROCESS = re.compile(r':process\s|"process"\s*:')
_COUNTEREXAMPLE = (
    "what clients saw is needed: write its client operations as JSON lines (docs/reference/traces.md)"
)
_OTHERS = (
    (re.compile(r":valid\?\s"), "the results of a Jepsen test", "name history.edn in the same folder"),
    (
        re.compile(r"\s*(?:Dumping \S+|baseOffset: \d+ lastOffset:|(?:\| )?offset: \d+ )"),
        "the text of Kafka's DumpLogSegments",
        "name the segment itself: fencepost log dump FILE.log",
    ),
    (re.compile(r'\s*\{\s*"(?:#meta|vars|states)"\s*:'), "a trace in the format ITF", _COUNTEREXAMPLE),
    (re.compile(r'\s*\{\s*"(?:state|counterexample)"\s*:'), "a counterexample of TLC", _COUNTEREXAMPLE),
)


def refuse_others(head: str, where: str) -> None:
    """Raises TraceError if a text is something else. head: its beginning; where: the file."""
    if _PROCESS.search(head):
        return
    for index, (pattern, seen, hint) in enumerate(_OTHERS):
        if pattern.match(head) if index else pattern.search(head):
            raise TraceError(expected="a history of clients", seen=seen, where=where, hint=hint)
