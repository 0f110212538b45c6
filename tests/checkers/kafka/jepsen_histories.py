"""The situations of the unit tests of Jepsen's Kafka checker as histories of ours, each with what
Jepsen asserts of it.

An entry ends with its line or a semicolon: process, type, function, and micro-operations between bars. `x=1`
sends 1 to the key x, `x=1@0` was told the offset 0; `poll` asks, `poll x:1@0,2@1` got these; assign and
subscribe name keys. `process function asked -> type told` are two entries: an invocation and its completion.
Times are the numbers of the entries.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from fencepost.traces.importers import import_text
from fencepost.traces.trace import Trace


@frozen(kw_only=True)
class Situation:
    """name: what it is about; asserts: Jepsen's names of the errors that it expects (of `asked`, or of
    any if that is empty); asked: the only errors that Jepsen's test looks at; ours: where we differ on
    purpose, the names that we find instead, and why."""

    name: str
    lines: str
    asserts: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    ours: frozenset[str] | None = None
    why: str = ""

    @property
    def trace(self) -> Trace:
        """The history as a trace."""
        rows = [_row(number, entry) for number, entry in enumerate(_entries(self.lines))]
        return import_text("\n".join(map(json.dumps, rows)), where=self.name, format="jepsen-kafka")


def _entries(text: str) -> Iterator[str]:
    for line in filter(None, map(str.strip, re.split("[;\n]", text))):
        begun, completes, told = line.partition(" -> ")
        if completes:
            process, function, asked = begun.split(maxsplit=2)
            kind, told = told.split(maxsplit=1)
            yield from (f"{process} invoke {function} {asked}", f"{process} {kind} {function} {told}")
        else:
            yield line


def _row(number: int, line: str) -> dict[str, Any]:
    process, kind, function, *rest = line.split(maxsplit=3)
    body = rest[0] if rest else ""
    if function in ("assign", "subscribe"):
        value: Any = body.split()
    else:
        value = [_micro(text.strip()) for text in body.split("|")]
    return {"process": int(process), "type": kind, "f": function, "value": value, "time": number}


def _micro(text: str) -> list[Any]:
    if not text.startswith("poll"):
        key, _, what = text.partition("=")
        sent, at, offset = what.partition("@")
        return ["send", key, [int(offset), int(sent)] if at else int(sent)]
    got = text.removeprefix("poll").split()
    if text == "poll":
        return ["poll"]
    return [
        "poll",
        {key: _records(found) for key, _, found in (one.partition(":") for one in got if one != "-")},
    ]


def _records(found: str) -> list[list[int]]:
    pairs = (one.split("@") for one in found.split(",") if one)
    return [[int(offset), int(value)] for value, offset in pairs]


def situation(
    name: str, lines: str, *asserts: str, only: str = "", ours: tuple[str, ...] | None = None, why: str = ""
) -> Situation:
    """One of them. only: the error that Jepsen's test looks at, where it is not what it asserts."""
    return Situation(
        name=name, lines=lines, asserts=frozenset(asserts), asked=frozenset(only.split() or asserts),
        ours=None if ours is None else frozenset(ours), why=why,
    )  # fmt: skip


SUBSCRIBED = "after subscribe a rebalance may lie between, which was not recorded: it is counted"
CYCLES = (
    "a cycle with writes is legal in Kafka, which writes open transactions into its logs in any order: "
    "it is counted"
)

CONFLICT = "0 send x=1 | y=1 -> info x=1@0 | y=1; 1 send x=2 -> ok x=2@0; "
ATOMIC = "0 send x=1 | y=2 -> info x=1 | y=2@0; 1 send y=3 -> info y=3; "
SKIP_A = "0 poll poll -> ok poll x:1@1,2@2; 1 poll poll -> ok poll x:3@3; "
SKIP_B = "0 poll poll -> ok poll x:4@4; "
SKIP_C = """
2 send x=6 -> ok x=6@6
0 poll poll -> ok poll x:7@7
3 send x=1 | x=2 | x=3 | x=4 | x=7 -> info x=1 | x=2 | x=3 | x=4 | x=7
"""
THREE_SENT = """
0 send x=100 | x=101 | x=102 -> ok x=100@0 | x=101@1 | x=102@2
1 txn poll -> ok poll x:100@0
"""
SIX_SENT = """
0 invoke send x=100 | x=101 | x=102 | x=103 | x=104 | x=105
0 ok send x=100@0 | x=101@1 | x=102@2 | x=103@3 | x=104@4 | x=105@5
1 txn poll -> ok poll x:100@0
1 txn poll -> fail poll x:101@1,102@2
"""
BACK_A = """
0 send x=1 | x=2 | x=3 | x=4 -> ok x=1 | x=2 | x=3 | x=4
0 poll poll -> ok poll x:1@1,2@2,3@3
"""
BACK_B = "0 poll poll -> ok poll x:2@2,3@3,4@4; "
SEND_A = "0 send x=3 | x=4 -> ok x=3@3 | x=4@4; "
SEND_B = "0 send x=1 | x=2 -> ok x=1@1 | x=2@2; "
WITHIN_SENDS = "1 send x=1 | x=2 | x=4 -> info x=1 | x=2 | x=4; "
WITHIN_ONE = "0 poll poll -> ok poll x:1@1,4@4; "
WITHIN_TWO = "0 txn poll | poll -> ok poll x:1@1 | poll x:4@4; "
WITHIN_LAST = "5 poll poll -> ok poll x:2@2; "
BACKWARDS_SENDS = "1 send x=1 | x=2 | x=3 -> info x=1 | x=2 | x=3; "
BACKWARDS_ONE = "0 poll poll -> ok poll x:3@3,1@1; "
BACKWARDS_TWO = "2 txn poll | poll -> ok poll x:2@2,3@3 | poll x:3@3; "
OWN_ORDER = "0 send x=3 | x=1 -> ok x=3@3 | x=1@1; "
SHOWN_ORDER = """
2 send y=4 | y=2 -> info y=4 | y=2
1 send y=3 -> info y=3
3 poll poll -> ok poll y:2@2,3@3,4@4
"""


def moving(kind: str, keys: str, completes: str = "ok") -> str:
    """Process 0 assigns or subscribes."""
    return f"0 {kind} {keys} -> {completes} {keys}; "


SITUATIONS: tuple[Situation, ...] = (
    situation(
        "an unknown send of which one record is read conflicts at another's offset",
        "0 txn poll -> ok poll x:1@0,2@1; 1 txn x=3 | x=2 | x=4 -> info x=3@1 | x=2@3 | x=4@4; ",
        "inconsistent-offsets",
    ),
    situation(
        "two acknowledged sends of one offset",
        "379 send 11=641 -> ok 11=641@537; 363 send 11=645 -> ok 11=645@537; ",
        "inconsistent-offsets",
    ),
    situation("an unknown send conflicts with an acknowledged one", CONFLICT, only="inconsistent-offsets"),
    situation(
        "the same once another of its records is read",
        CONFLICT + "2 poll poll -> ok poll y:1@5; ",
        "inconsistent-offsets",
    ),
    situation(
        "a failed send is read", "0 send x=2 | y=3 -> fail x=2 | y=3; 1 poll poll -> ok poll x:2@0; ", "G1a"
    ),
    situation(
        "lost: a later offset is read",
        """
0 send x=1 -> ok x=1@0
0 send x=2 | x=4 -> ok x=2@1 | x=4@3
1 send x=3 -> info x=3
0 poll poll -> ok poll x:3@2
""",
        "lost-write",
    ),
    situation(
        "lost: another value replaced it",
        """
0 send x=1 -> ok x=1@0
0 send x=2 | x=3 -> ok x=2@0 | x=3@2
0 poll poll -> ok poll x:2@0,3@2
""",
        "lost-write",
    ),
    situation(
        "lost: an unknown send of which nothing was read",
        ATOMIC + "3 poll poll -> ok poll y:3@1; ",
        only="lost-write",
    ),
    situation(
        "lost: an unknown send of which another record was read",
        ATOMIC + "2 poll poll -> ok poll x:1@0; 3 poll poll -> ok poll y:3@1; ",
        "lost-write",
    ),
    situation("a consumer skips", SKIP_A + SKIP_B + SKIP_C, "poll-skip"),
    situation(
        "a consumer skips what it had given up",
        SKIP_A + moving("subscribe", "y") + SKIP_B + moving("assign", "y", "info") + SKIP_C,
        only="poll-skip",
    ),
    situation(
        "a consumer skips what it kept",
        SKIP_A + moving("subscribe", "x y") + SKIP_B + moving("assign", "x y") + SKIP_C,
        "poll-skip",
    ),
    situation(
        "polls of aborted and unknown transactions do not move the consumer",
        THREE_SENT
        + """
1 txn poll -> fail poll x:101@1,102@2
1 txn poll -> info poll x:101@1,102@2
1 txn poll -> ok poll x:101@1,102@2
""",
    ),
    situation(
        "the consumer does not go back after an abort",
        SIX_SENT + "1 txn poll -> fail poll x:103@3,104@4; 1 txn poll -> ok poll x:105@5; ",
        "poll-skip",
    ),
    situation(
        "nor in a transaction of unknown outcome",
        SIX_SENT + "1 txn poll -> info poll x:103@3,104@4; ",
        "poll-skip",
    ),
    situation("a consumer goes back", BACK_A + BACK_B, "nonmonotonic-poll"),
    situation(
        "a consumer goes back after it subscribed elsewhere",
        BACK_A + moving("subscribe", "y") + BACK_B,
        only="nonmonotonic-poll",
    ),
    situation(
        "a consumer goes back after it was assigned elsewhere",
        BACK_A + moving("assign", "y") + BACK_B,
        only="nonmonotonic-poll",
    ),
    situation(
        "a consumer goes back where it stayed subscribed",
        BACK_A + moving("subscribe", "x y") + BACK_B,
        "nonmonotonic-poll",
        ours=(),
        why=SUBSCRIBED,
    ),
    situation(
        "a consumer goes back where it stayed assigned",
        BACK_A + moving("assign", "x y") + BACK_B,
        "nonmonotonic-poll",
    ),
    situation("a producer's later sends stand lower", SEND_A + SEND_B, "nonmonotonic-send"),
    situation(
        "the same after it subscribed elsewhere",
        SEND_A + moving("subscribe", "y") + SEND_B,
        only="nonmonotonic-send",
        ours=("nonmonotonic-send",),
        why="what was acknowledged stands lower than what is sent later, whatever the process consumes",
    ),
    situation(
        "the same after it was assigned elsewhere",
        SEND_A + moving("assign", "y", "info") + SEND_B,
        only="nonmonotonic-send",
        ours=("nonmonotonic-send",),
        why="what was acknowledged stands lower than what is sent later, whatever the process consumes",
    ),
    situation(
        "the same where it stayed subscribed",
        SEND_A + moving("subscribe", "x y") + SEND_B,
        "nonmonotonic-send",
    ),
    situation(
        "the same where it stayed assigned", SEND_A + moving("assign", "x y") + SEND_B, "nonmonotonic-send"
    ),
    situation("one poll skips", WITHIN_SENDS + WITHIN_ONE + WITHIN_LAST, "int-poll-skip"),
    situation("the polls of one transaction skip", WITHIN_SENDS + WITHIN_TWO + WITHIN_LAST, "int-poll-skip"),
    situation("both skip", WITHIN_SENDS + WITHIN_ONE + WITHIN_TWO + WITHIN_LAST, "int-poll-skip"),
    situation(
        "another's record between two of one transaction",
        """
0 send x=1 | x=3 -> ok x=1@1 | x=3
1 send x=2 -> info x=2
2 poll poll -> ok poll x:2@2,3@3
""",
        "int-send-skip",
        ours=(),
        why="transactions of Kafka interleave: it is counted",
    ),
    situation("one poll goes back", BACKWARDS_SENDS + BACKWARDS_ONE, "int-nonmonotonic-poll"),
    situation(
        "the polls of one transaction go back", BACKWARDS_SENDS + BACKWARDS_TWO, "int-nonmonotonic-poll"
    ),
    situation("both go back", BACKWARDS_SENDS + BACKWARDS_ONE + BACKWARDS_TWO, "int-nonmonotonic-poll"),
    situation("a transaction was told its sends in the wrong order", OWN_ORDER, "int-nonmonotonic-send"),
    situation("a transaction's sends are read in the wrong order", SHOWN_ORDER, "int-nonmonotonic-send"),
    situation("both orders are wrong", OWN_ORDER + SHOWN_ORDER, "int-nonmonotonic-send"),
    situation(
        "a value at its own offset and at another",
        "0 send x=1 -> ok x=1@1; 1 send x=2 -> info x=2; 2 poll poll -> ok poll x:2@2,1@3; ",
        "duplicate",
    ),
    situation(
        "ten values at the same two offsets",
        "".join(f"0 send x={n} -> ok x={n}@0; 1 poll poll -> ok poll x:{n}@1; " for n in range(10)),
        "duplicate",
        "inconsistent-offsets",
    ),
    situation(
        "a failed poll shows a value elsewhere",
        """
0 send x=10 -> ok x=10@1
0 send x=11 -> fail x=11@2
1 poll poll -> fail poll x:10@11,11@12
""",
        "duplicate",
    ),
    situation(
        "what polls lag behind",
        """
0 assign x -> ok x
0 poll poll -> ok poll x:
0 send x=1 -> ok x=1@0
0 poll poll -> ok poll x:
1 send x=3 | x=4 -> ok x=3@2 | x=4@3
0 poll poll -> ok poll -
0 poll poll -> ok poll x:1@0,2@1
""",
        only="realtime-lag",
    ),
    situation("an assignment and nothing else", "0 assign x -> ok x; ", "invalid"),
    situation(
        "records that are read one after the other",
        """
0 poll poll -> ok poll -
0 send x=1 | x=2 -> ok x=1@0 | x=2@1
0 poll poll -> ok poll x:1@0
0 poll poll -> ok poll x:2@1
""",
        only="unseen",
    ),
    situation(
        "two transactions write two keys in two orders",
        """
0 invoke send x=1 | y=1
1 invoke send x=2 | y=2
0 ok send x=1@0 | y=1@1
1 ok send x=2@1 | y=2@0
""",
        "G0",
        ours=(),
        why=CYCLES,
    ),
    situation(
        "two transactions read each other",
        """
0 invoke txn x=1 | poll
1 invoke txn y=2 | poll
0 ok txn x=1@0 | poll y:2@0
1 ok txn y=2@0 | poll x:1@0
""",
        "G1c",
    ),
    situation(
        "one reads the other and stands before it",
        """
0 invoke txn x=1 | y=3
1 invoke txn poll | y=2
0 ok txn x=1@0 | y=3@2
1 ok txn poll x:1@0 | y=2@1
""",
        "G1c",
        ours=(),
        why=CYCLES,
    ),
    situation(
        "a transaction reads what it sends",
        "0 txn x=1 | poll -> ok x=1@0 | poll x:1@0; ",
        "precommitted-read",
    ),
)
