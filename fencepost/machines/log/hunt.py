"""Hunting a planted bug of the log: how many examples the machine takes to find it, and how short the story
gets.

Owns rounds of examples, each with its own seed, and what is reported of them. Must run in a process of its
own (`python -m` with this module's name, as `fencepost campaign bugs hunt` does): Hypothesis draws some of
its values from the constants of whatever modules are loaded, so that examples would depend on what else the
process has imported.

Standard output carries JSON lines: {"examples": n} when a round is over, and the Hunted of each bug.
"""

import argparse
import sys
import time
from collections.abc import Callable
from traceback import extract_tb

import msgspec
from attrs import asdict, frozen
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from fencepost.bugs.storage import log_bug
from fencepost.machines.log.planted import planted, planting, script_of, steps_of
from fencepost.traces.errors import FencepostError

EXAMPLES_PER_ROUND = 50
STEPS_PER_EXAMPLE = 40


@frozen(kw_only=True)
class Hunted:
    """What came of a hunt."""

    bug: str
    examples_tried: int
    # Examples up to and including the first that shows the bug, None if none did.
    examples: int | None = None
    # The round that found it.
    round: int | None = None
    complaint: str = ""
    # Steps of the shrunk script.
    steps: int = 0
    script: str = ""
    # Complaints met on the way that are not the bug's own.
    others: tuple[str, ...] = ()
    cpu_s: float = 0.0


@frozen(kw_only=True)
class Round:
    """What came of a round."""

    # Up to and including the first failing one.
    examples: int
    # "" if nothing failed.
    complaint: str = ""
    output: str = ""
    # The source file whose statement raised the complaint.
    raised_in: str = ""


def run_round(
    machine: type[RuleBasedStateMachine],
    number: int,
    *,
    examples: int,
    shrink: bool,
    steps: int = STEPS_PER_EXAMPLE,
) -> Round:
    """One round of examples; ends with the first that fails, shrunk if wanted."""
    started, failed_at = 0, 0

    class Counted(machine):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            nonlocal started
            started += 1
            super().__init__()

        def teardown(self) -> None:
            nonlocal failed_at
            error = sys.exception()
            if error is not None and not failed_at and not type(error).__module__.startswith("hypothesis"):
                failed_at = started
            super().teardown()

    Counted.__name__ = Counted.__qualname__ = machine.__name__
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        report_multiple_bugs=False,
        print_blob=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(number)(Counted), settings=wanted)
    except (Exception, BaseExceptionGroup) as error:
        cause, output = _innermost(error)
        frames = extract_tb(cause.__traceback__)
        return Round(
            examples=failed_at or started,
            complaint=f"{type(cause).__name__}: {cause}",
            output=output,
            raised_in=frames[-1].filename if frames else "",
        )
    return Round(examples=started)


def _innermost(error: BaseException) -> tuple[BaseException, str]:
    """What was raised, inside whatever Hypothesis wrapped around it, and what Hypothesis said of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error, "\n".join(getattr(error, "__notes__", []))


def hunt(
    bug: str,
    *,
    most_examples: int,
    first_round: int = 0,
    shrink: bool = True,
    each: Callable[[int], None] = lambda _: None,
) -> Hunted:
    """Rounds until one shows the bug by a complaint that is its own. each: called with the number of examples
    so far. Raises FencepostError for an unknown id."""
    known, machine = log_bug(bug), planted(bug)
    began, tried, others = time.process_time(), 0, set[str]()
    number = first_round
    while tried < most_examples:
        size = min(EXAMPLES_PER_ROUND, most_examples - tried)
        done = run_round(machine, number, examples=size, shrink=shrink)
        tried += done.examples
        each(tried)
        if done.complaint and known.shown_by(done.complaint):
            script = script_of(done.output, planting(bug), done.complaint)
            return Hunted(
                bug=bug,
                examples_tried=tried,
                examples=tried,
                round=number,
                complaint=done.complaint,
                steps=steps_of(script),
                script=script,
                others=tuple(sorted(others)),
                cpu_s=round(time.process_time() - began, 1),
            )
        if done.complaint:
            others.add(done.complaint)
        number += 1
    spent = round(time.process_time() - began, 1)
    return Hunted(bug=bug, examples_tried=tried, others=tuple(sorted(others)), cpu_s=spent)


def main() -> int:
    """Hunt the bugs that the arguments name."""
    parser = argparse.ArgumentParser(description="Hunt planted bugs of the log, for `campaign bugs hunt`.")
    parser.add_argument("bugs", nargs="+", metavar="ID[@ROUND]", help="begin with this round instead of 0")
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--no-shrink", action="store_true")
    asked = parser.parse_args()
    try:
        for bug, _, number in (one.partition("@") for one in asked.bugs):
            found = hunt(
                bug,
                most_examples=asked.examples,
                first_round=int(number or 0),
                shrink=not asked.no_shrink,
                each=lambda tried: _tell({"examples": tried}),
            )
            _tell(asdict(found))
    except FencepostError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _tell(value: dict[str, object]) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
