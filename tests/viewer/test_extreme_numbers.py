"""Any number in any integer of a trace: it is judged, explained and drawn, or refused by a sentence."""

import json
from random import Random

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.report.explain import explain
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import _parse, lines_of, read_traces
from fencepost.traces.plan_json import plan_from_json
from fencepost.viewer.view import Shown, view_of

LARGE = (-(2**63), -1, 0, 2**31, 2**53 + 1, 2**62, 2**63 - 1)
OUTSIDE = (-(2**63) - 1, 2**63, 10**30, 1.5, "1", None)
FOUND = {
    "a replica's log that begins below 0": ("event", "replica_log", ("offset",), -(2**63)),
    "a log that was opened at a far end": ("event", "log_recovered", ("offset",), 2**63 - 1),
    "a record at the last offset of 64 bits": ("operation", "poll", ("records", 0, "offset"), 2**63 - 1),
}
"""What ended a judge or a page."""


@pytest.fixture(scope="module")
def lines():
    """A short run with an election, as rows of JSON."""
    rows = [json.loads(line) for line in lines_of(run(evolve(swarm(3, "default"), safety_ms=4_000)))]
    del rows[0]["digest"]
    return rows


def integers(value, path=()):
    """The path of each integer; of a list the first item stands for all."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from integers(each, (*path, name))
    elif isinstance(value, list):
        for place, each in enumerate(value[:1]):
            yield from integers(each, (*path, place))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path


def bent(rows, at, path, number):
    """The rows with this number at this path of one of them; a path into a text of JSON begins with its
    field."""
    row = json.loads(json.dumps(rows[at]))
    inside = isinstance(row[path[0]], str)
    inner = json.loads(row[path[0]]) if inside else row
    *way, last = path[1:] if inside else path
    place = inner
    for step in way:
        place = place[step]
    place[last] = number
    if inside:
        row[path[0]] = json.dumps(inner)
    return [*rows[:at], row, *rows[at + 1 :]]


def kinds(rows):
    """(row, path) of an integer of every kind."""
    seen = {}
    for at, row in enumerate(rows):
        name = row.get("name") or row.get("function")
        texts = [each for each in ("plan", "detail") if str(row.get(each, "")).startswith("{")]
        paths = [
            *integers(row),
            *((each, *path) for each in texts for path in integers(json.loads(row[each]))),
        ]
        for path in paths:
            seen.setdefault((row["type"], name, path), (at, path))
    return list(seen.values())


def survives(rows, folder):
    """Read, judge, explain and draw it; the error that refuses it, or None."""
    file = folder / "bent.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        (trace,) = read_traces(file)
    except FencepostError as error:
        return error
    verdicts = judge(trace, DEFAULT_CHECKS)
    for finding in [finding for verdict in verdicts for finding in verdict.findings][:3]:
        explain(finding, trace)
    view_of(Shown(trace=trace, verdicts=verdicts))
    return None


@pytest.mark.parametrize(("kind", "name", "path", "number"), FOUND.values(), ids=FOUND)
def test_a_number_that_ended_a_command_does_not(lines, tmp_path, kind, name, path, number):
    """Rule: no number of a row ends a judge or a page."""
    of_kind = [
        at
        for at, row in enumerate(lines)
        if (row["type"], row.get("name") or row.get("function")) == (kind, name)
        and (len(path) == 1 or row.get(path[0]))
    ]
    assert of_kind
    for at in of_kind[:3]:
        survives(bent(lines, at, path, number), tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_large_numbers_end_no_judge_and_no_page(lines, tmp_path, seed):
    """Rule: the same of several at once, drawn from all kinds of fields."""
    random, rows = Random(seed), lines
    for at, path in random.sample(kinds(lines), 5):
        one = bent(rows, at, path, random.choice(LARGE))
        rows = one if not isinstance(survives_reading(one[at]), FencepostError) else rows
    assert survives(rows, tmp_path) is None


def survives_reading(row):
    """The error of a row alone."""
    try:
        return _parse(json.dumps(row), "a row", None)
    except FencepostError as error:
        return error


def test_what_is_no_number_of_64_bits_is_refused(lines):
    """Rule: a number outside of 64 bits, a fraction and a text are refused for every integer of a row."""
    for at, path in kinds(lines):
        if isinstance(lines[at][path[0]], str) or path[0] == "runs":
            continue
        for number in OUTSIDE[:-1]:
            error = survives_reading(bent(lines, at, path, number)[at])
            assert isinstance(error, FencepostError), (path, number)
            assert "expected" in str(error)


def test_every_number_of_a_plan_has_bounds(lines):
    """Rule: each integer of a plan has bounds, below what other languages' JSON readers keep; a seed has 63
    bits."""
    plan = json.loads(lines[0]["plan"])
    for path in integers(plan):
        for number in (*OUTSIDE, -(2**31), *(() if path == ("seed",) else (2**53 + 1, 2**62, 2**63 - 1))):
            with pytest.raises(FencepostError, match="expected"):
                plan_from_json(bent([{"plan": json.dumps(plan)}], 0, ("plan", *path), number)[0]["plan"])
