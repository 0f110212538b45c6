"""Operations of sequential models in words:
`[begin-end] [lost] function[/key][#process] [argument] [= result]`.

Arguments and results are JSON. `; ` stands between the operations of a sequence."""

import json
import re
from typing import Any

from fencepost.traces.operations import Function, Operation, Outcome

WORDS = re.compile(
    r"(?:(?P<begin>\d+)-(?P<end>\d+) )?(?P<lost>lost )?(?P<function>\w+)(?:/(?P<key>\w+))?"
    r"(?:#(?P<process>\d+))?(?: (?!= )(?P<argument>.+?))?(?: = (?P<result>.+))?"
)


def operation(words: str, **more: Any) -> Operation:
    """One of them. `lost`: its outcome is not known; more: other columns."""
    found = WORDS.fullmatch(words)
    assert found, words
    said = found.groupdict()
    for column in ("argument", "result"):
        if said[column] is not None:
            more[column] = json.dumps(json.loads(said[column]))
    return Operation(
        op_id=0,
        process=int(said["process"] or 0),
        function=Function(said["function"]),
        invoke_time=int(said["begin"] or 0),
        completion_time=int(said["end"] or 1),
        outcome=Outcome.UNKNOWN if said["lost"] else Outcome.OK,
        key=said["key"],
        **more,
    )


def sequence(words: str) -> list[Operation]:
    """Several, one after another."""
    return [operation(one) for one in words.split("; ")]
