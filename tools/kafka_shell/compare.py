"""Runs the script against two sides and says where their answers differ.

Owns running a tool, and the comparison. Must not know what the script asks.
"""

import difflib
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import frozen

from .jars import JVM, class_path
from .normal import departed, normal
from .script import KCAT, TOOLS, TOOLS_OF_3, Step
from .sides import Side

LIMIT_S = 60.0
"""Of one command. The slowest here takes 5 s."""
MOST_CHARACTERS = 200_000


@frozen(kw_only=True)
class Answer:
    """What a tool wrote, and how it ended. status: its exit code; -1 if it did not end in time."""

    status: int
    text: str

    def lines(self, step: Step) -> list[str]:
        """What counts of it."""
        return [f"exit {self.status}", *normal(self.text, unordered=step.unordered)]


@frozen(kw_only=True)
class Row:
    """One step on both sides. difference: lines of a unified diff, empty if they are equal. departures: names
    of what was left out on both sides before they were equal."""

    step: Step
    verdict: str
    """equal, departure (differs, and we say why) or different."""
    difference: tuple[str, ...]
    departures: tuple[str, ...]


def row_of(step: Step, version: str, theirs: Answer, ours: Answer) -> Row:
    """Hold two answers against each other."""
    both = theirs.lines(step), ours.lines(step)
    if both[0] == both[1]:
        return Row(step=step, verdict="equal", difference=(), departures=())
    (left, some), (right, others) = departed(both[0]), departed(both[1])
    difference = tuple(difflib.unified_diff(left, right, "Apache Kafka", "fencepost", lineterm="", n=0))
    if left == right:
        return Row(step=step, verdict="departure", difference=(), departures=tuple(sorted(some | others)))
    if step.departure and version.startswith(step.departs):
        return Row(step=step, verdict="departure", difference=difference, departures=(step.departure,))
    return Row(step=step, verdict="different", difference=difference, departures=())


def command_of(step: Step, version: str, side: Side, home: Path) -> list[str]:
    """The words of the command line."""
    words = {"bootstrap": side.bootstrap, "home": str(home), "log1": str(side.directories[1])}
    arguments = [word.format(**words) if "{" in word and "%" not in word else word for word in step.arguments]
    if step.tool == KCAT:
        return [KCAT, *arguments]
    main = (TOOLS_OF_3 if version.startswith("3.") else {}).get(step.tool) or TOOLS[step.tool]
    return ["java", *JVM, "-cp", class_path(version), main, *arguments]


def answer_of(step: Step, version: str, side: Side, home: Path) -> Answer:
    """Run one step on one side."""
    home.mkdir(parents=True, exist_ok=True)
    for name, text in step.files:
        (home / name).write_text(text, encoding="utf-8")
    command = command_of(step, version, side, home)
    try:
        done = subprocess.run(
            command,
            input=step.stdin.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.output or b"").decode("utf-8", "replace")
        return Answer(status=-1, text=said[:MOST_CHARACTERS])
    return Answer(status=done.returncode, text=done.stdout.decode("utf-8", "replace")[:MOST_CHARACTERS])


def compare(
    steps: tuple[Step, ...],
    version: str,
    theirs: Side,
    ours: Side,
    scratch: Path,
    note: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Run each step on both sides at once, and compare. note: hears how far it is."""
    rows = []
    with ThreadPoolExecutor(2) as pool:
        for step in steps:
            parts = [
                pool.submit(answer_of, step, version, side, scratch / f"home-{number}")
                for number, side in enumerate((theirs, ours))
            ]
            rows.append(row_of(step, version, parts[0].result(), parts[1].result()))
            note(f"{version} {step.name}: {rows[-1].verdict}")
    return rows
