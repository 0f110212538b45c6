"""Operations of sequential models in words:
`[begin-end] [lost] function[/key][#process] [argument] [= result]`.

Arguments and results are JSON; what has no end was never answered. `; ` stands between the operations of a
sequence."""

import json
import re
from typing import Any

from attrs import evolve

from fencepost.traces.operations import Function, Operation, Outcome
from tests.checkers import lab

WORDS = re.compile(
    r"(?:(?P<begin>\d+)-(?P<end>\d*) )?(?P<lost>lost )?(?P<function>\w+)(?:/(?P<key>\w+))?"
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
    return lab.operation(
        0,
        Function(said["function"]),
        int(said["begin"] or 0),
        None if said["end"] == "" else int(said["end"] or 1),
        process=int(said["process"] or 0),
        outcome=Outcome.UNKNOWN if said["lost"] else Outcome.OK,
        key=said["key"],
        **more,
    )


def sequence(words: str) -> list[Operation]:
    """Several, one after another."""
    return [operation(one) for one in words.split("; ")]


def history(words: str) -> list[Operation]:
    """Several that are numbered, each of a process of its own."""
    return [evolve(one, op_id=number, process=number) for number, one in enumerate(sequence(words))]
