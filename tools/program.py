"""What all programs of this folder do: they run cases by name, one after the other, and end with an exit
code, and with one sentence for a mistake of the user.

Owns no command. Must not know what a case does, or where its outcome is kept (ledger.py, page.py).
"""

import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

import rich_click as click
from attrs import frozen

from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode, FencepostError

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
"""Outcomes of a case. Skipped: this machine lacks what it needs."""


@frozen(kw_only=True)
class Done:
    """What became of a case."""

    case: str
    outcome: str = OK
    # What is to be said of it; of one that failed or was skipped, the reason.
    why: str = ""


def chosen(names: Iterable[str], words: Sequence[str]) -> list[str]:
    """The names that are chosen.

    Args:
        names: of all cases.
        words: each a name, or a part of names; none: all are chosen.

    Returns:
        names, in their order.

    Raises:
        click.UsageError: a word chooses nothing.
    """
    known = list(names)
    found: set[str] = set()
    for word in words:
        these = {word} if word in known else {name for name in known if word in name}
        if not these:
            raise click.UsageError(f"expected words out of {'; '.join(known)}, saw {word}")
        found |= these
    return [name for name in known if not words or name in found]


def run_cases(
    cases: Mapping[str, Callable[[], Done]],
    words: Sequence[str],
    output: Output,
    *,
    keep: Callable[[Done], None] = lambda done: None,
) -> ExitCode:
    """Run those that are chosen, and say of each at once what became of it.

    Args:
        cases: by name.
        words: as for `chosen`.
        output: of the program.
        keep: gets each outcome before the next case begins.

    Returns:
        whether one failed.

    Raises:
        click.UsageError: a word chooses nothing.
    """
    failed = False
    for name in chosen(cases, words):
        done = cases[name]()
        output.say(f"{name}: {done.outcome}" + (f": {done.why}" if done.why else ""))
        keep(done)
        failed |= done.outcome == FAILED
    return ExitCode.FINDINGS if failed else ExitCode.NOTHING_FOUND


def run(command: click.Command, name: str) -> None:
    """Carry the command out and end the process. A SIGTERM interrupts it, as Ctrl-C does.

    Args:
        command: of the program.
        name: of its package below tools.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = command.main(standalone_mode=False, prog_name=f"python -m tools.{name}")
    except click.ClickException as error:
        click.echo(f"{name}: {error.format_message()}", err=True)
        code = ExitCode.USAGE
    except FencepostError as error:
        click.echo(f"{name}: {error}", err=True)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"{name}: interrupted; what was finished is kept", err=True)
        code = ExitCode.INTERRUPTED
    sys.exit(int(code or 0))
