"""Stored stories that conformance accepts, each bent in one place at a time; what is said of each bent one,
in short.

The stories lie in golden/conformance.jsonl (paths of the model and runs of the simulator, as recorded). What
the judge says of their variants lies in golden/conformance.json: positions of the certificate, action, offset
and the numbers that the finding names, no wording. `python -m tests.checkers.conformance_variants` writes
that file anew; look at the difference before keeping it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
from attrs import evolve

from fencepost.checkers import conformance
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.trace import Trace

GOLDEN = Path(__file__).parent / "golden"
STORIES, SAID = GOLDEN / "conformance.jsonl", GOLDEN / "conformance.json"
VARIANTS = 500
"""Of each story."""
NUMBERS = ("node", "leader", "leader_epoch", "offset", "end_offset", "high_watermark", "zk_version")
CAUSES = {
    "leader": "follower",
    "follower": "leader",
    "leader_epoch": "high_watermark",
    "high_watermark": "full",
    "full": "leader_epoch",
    "power_loss": "crash",
    "crash": "power_loss",
}


def stories() -> list[Trace]:
    return list(read_traces(STORIES))


def _changed(random: Random, event: Event) -> Event:
    """The event with one column off by one, or told in another way."""
    columns = [name for name in NUMBERS if getattr(event, name) != -1] + [
        "isr",
        "values",
        "cause",
        "partition",
        "name",
    ]
    column = random.choice(columns)
    value = getattr(event, column)
    if column in NUMBERS:
        return evolve(event, **{column: value + random.choice((-1, 1, 1))})
    if column == "isr":
        return evolve(
            event, isr=value[1:] if random.random() < 0.5 else tuple(sorted({*value, random.randint(1, 4)}))
        )
    if column == "values":
        return evolve(
            event, values=random.choice((value[1:], value[:-1], (*value, 7), tuple(v + 1 for v in value)))
        )
    if column == "cause":
        return evolve(event, cause=CAUSES.get(value, value))
    if column == "partition":
        return evolve(event, partition=1) if event.topic else event
    swapped = {
        Name.BECAME_LEADER: Name.BECAME_FOLLOWER,
        Name.BECAME_FOLLOWER: Name.BECAME_LEADER,
        Name.TRUNCATED: Name.LOG_RECOVERED,
    }
    return evolve(event, name=swapped.get(event.name, event.name))


def variants(trace: Trace) -> Iterator[Trace]:
    """The story itself, then with an event lost, twice, later or changed."""
    yield trace
    for number in range(1, VARIANTS):
        random = Random(f"{trace.trace_id} {number}")
        events = list(trace.events)
        for _ in range(random.choice((1, 1, 1, 2))):
            at = random.randrange(len(events))
            match random.randrange(6):
                case 0:
                    del events[at]
                case 1:
                    events.insert(at, events[at])
                case 2:
                    events.insert(random.randrange(at, len(events)), events.pop(at))
                case _:
                    events[at] = _changed(random, events[at])
        yield evolve(trace, events=tuple(events))


def said(trace: Trace) -> str:
    """What conformance says, without its wording."""
    verdict = conformance.judge(trace)
    told = []
    for finding in verdict.findings:
        action = finding.seen.split(":")[0]
        numbers = [",".join(re.findall(r"\d+", text)) for text in (finding.expected, finding.seen)]
        where = "<".join(map(str, reversed(finding.events)))
        told.append(f"{where} {action} p{finding.partition} @{finding.offset} {' / '.join(numbers)}")
    return "; ".join(told) or verdict.decision.value


def main() -> None:
    """Write what is said now."""
    SAID.write_bytes(
        msgspec.json.format(
            msgspec.json.encode({str(s.trace_id): [said(v) for v in variants(s)] for s in stories()}),
            indent=1,
        )
        + b"\n"
    )


if __name__ == "__main__":
    main()
