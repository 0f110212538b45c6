"""The command line. One file per sub-command; each imports what it runs only when it runs, so that --help is
quick.

Owns the group and the form of an error: one sentence on standard error and an exit code of
traces/errors.py, never a traceback for a mistake of the caller or a failure of the machine.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

import rich_click as click

from fencepost import __version__
from fencepost.console.heartbeat import heartbeat
from fencepost.console.output import Output, said
from fencepost.traces.errors import BrokenLibraryError, ExitCode, FencepostError, broken_library, unknown_name

GROUPS = {
    "Judge": {
        "check": "Judge stored traces, from here or from elsewhere.",
        "mine": "Judge traces by the million on Spark (and convert, explain, package).",
        "watch": "Judge traces while they arrive in a folder.",
        "audit": "Compare brokers' log directories, or two topics of two clusters.",
        "log": "Read the files of a Kafka log directory.",
        "conformance": "Check case by case whether a broker answers as Apache Kafka does.",
    },
    "Break": {
        "campaign": "Break the cluster under many seeds, and keep what was recorded (and bugs).",
        "torture": "Run other people's client libraries under faults, and judge them (and drivers).",
        "proxy": "Run between an application and any Kafka: record and break requests (and blame).",
    },
    "Look": {
        "doctor": "Ask a live Kafka cluster what is wrong with it; nothing is changed.",
        "replay": "Run one seed again, and read it as a timeline.",
        "show": "Write a trace as a page that you step through.",
        "shrink": "Make a failing plan small: the same anomaly, fewer operations and faults.",
    },
    "Run": {
        "demo": "Everything once, in under three minutes.",
        "cluster": "A cluster: its processes, topics and groups; Apache Kafka's brokers, too.",
        "model": "Explore the executable models; TLC on TLA+ specifications.",
    },
}
"""The purpose of each sub-command, as `fencepost --help` prints it without importing any of them: each in the
group that says what it is for."""

SUB_COMMANDS = {name: says for names in GROUPS.values() for name, says in names.items()}

_MOVED = {
    "campaign": ("bugs",),
    "cluster": ("consume", "elect", "groups", "kafka", "produce", "reassign", "topics"),
    "mine": ("convert", "explain", "package"),
    "model": ("tlc",),
    "proxy": ("blame",),
    "torture": ("drivers",),
}
OLD_NAMES = {
    **{old: f"{above} {old}" for above, names in _MOVED.items() for old in names},
    "log audit": "audit",
}
"""What had another name in 0.1, and where it is now; the old name works through 0.2."""

LINES_OF_THEIR_OWN = ("cluster", "consume")
"""The command that prints a line of JSON for each record; its standard output has only records."""

WAITING = frozenset({"cluster"})
"""Sub-commands that wait for others while they run: no progress line every half minute."""

FOLDERS = frozenset(
    {"audit", "campaign", "check", "cluster", "doctor", "log", "mine", "model", "proxy", "torture"}
)
"""Sub-commands with several files: the command itself is in FOLDER/FOLDER_command.py."""

EXIT_CODES = """\
0 nothing found, 1 findings, 2 usage or nothing readable, 3 undecided, 4 part of the input was unreadable \
(the rest judged without
findings), 5 a library that cannot be imported, 130 interrupted"""


def module_of(sub_command: str) -> str:
    """The module that defines the `command` of a sub-command."""
    inside = f".{sub_command}_command" if sub_command in FOLDERS else ""
    return f"fencepost.cli.{sub_command}{inside}"


class _LazyGroup(click.RichGroup):
    """The sub-commands by name, imported on demand. listing: the help is being written, which needs only
    their names and descriptions."""

    listing = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUB_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUB_COMMANDS:
            return None
        if self.listing:
            return click.Command(cmd_name, short_help=SUB_COMMANDS[cmd_name])
        command = import_module(module_of(cmd_name)).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in SUB_COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {unknown_name(name, SUB_COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.RichContext, formatter: click.RichHelpFormatter) -> None:  # type: ignore[override]
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=f"Exit codes: {EXIT_CODES}.",
)
@click.rich_config(
    {
        "text_paragraph_linebreaks": "\n\n",
        "command_groups": {
            "fencepost": [{"name": title, "commands": list(names)} for title, names in GROUPS.items()]
        },
    }
)
@click.version_option(__version__, prog_name="fencepost")
def group() -> None:
    """Find consistency bugs in Kafka-style replicated logs.

    Break a simulated cluster under seeded faults, record what clients and brokers saw, and judge it against
    what the cluster promises.

    \b
    # everything once, in under three minutes
    fencepost demo
    # break the cluster 500 times
    fencepost campaign --seeds 0:500 --out out/mine
    # run 17 again, as a timeline
    fencepost replay out/mine --trace 17
    # the smallest plan that still shows the anomaly of run 17
    fencepost shrink out/mine --trace 17
    # how many seeds until a planted bug is found?
    fencepost campaign bugs hunt KIP-101
    # what a broker's files contain, and how much of them is intact
    fencepost log dump /var/lib/kafka/orders-0
    """


def _terminate(signum: int, frame: object) -> None:
    """SIGTERM ends a command as Ctrl-C does: nothing is lost, exit code 130."""
    raise KeyboardInterrupt


def run(arguments: Sequence[str] | None = None) -> ExitCode:
    """Run a command line and return its exit code. arguments: without the program's name; None: those of
    this process.

    Errors go to standard error. With --json an error is also the one object on standard output, unless the
    command has written one already."""
    words = _renamed(list(sys.argv[1:] if arguments is None else arguments))
    said.objects, what = 0, words[0] if words else ""
    silent = sys.stderr.isatty() or what in WAITING
    with nullcontext() if silent else heartbeat(lambda seconds: _at_work(what, seconds)):
        code, error = _run(words)
    if not _is_read():
        return ExitCode.INTERRUPTED
    if error and "--json" in words and not said.objects and tuple(words[:2]) != LINES_OF_THEIR_OWN:
        Output(json=True).emit({"error": error, "exit_code": int(code)})
    return code


def _is_read() -> bool:
    """Whether somebody took all that was printed; if not, what is left goes nowhere, as Python would complain
    about it at its end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _renamed(words: list[str]) -> list[str]:
    """The command line with the new name of what it calls by an old one, which is said."""
    for count in (1, 2):
        old = " ".join(words[:count])
        if old in OLD_NAMES:
            new = OLD_NAMES[old]
            _say(f"`fencepost {old}` is now `fencepost {new}`; the old name works through 0.2")
            return [*new.split(), *words[count:]]
    return words


def _run(words: list[str]) -> tuple[ExitCode, str]:
    """The exit code, and the error as one sentence."""
    try:
        code = group.main(args=words, prog_name="fencepost", standalone_mode=False)
        return code if isinstance(code, ExitCode) else ExitCode.NOTHING_FOUND, ""
    except FencepostError as error:
        return error.exit_code, _say(str(error))
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # click's answer to it
            return ExitCode.INTERRUPTED, ""  # the reader of the output, such as `head`, has enough
        if words:  # a caller's code ended the program: nothing was judged
            return ExitCode.USAGE, _say(
                f"expected the command to end, saw a call of sys.exit({error.code!r})"
            )
        return ExitCode.USAGE, "no sub-command"  # the help was printed
    except click.ClickException as error:
        sentence = _say(error.format_message())
        context = getattr(error, "ctx", None)
        if context is not None:
            _say(f"`{context.command_path} --help` shows how it is used")
        return ExitCode.USAGE, sentence
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED, _say("interrupted")
    except Exception as error:
        library = broken_library(error)
        if library:
            broken = BrokenLibraryError(library, error)
            return broken.exit_code, _say(str(broken))
        if isinstance(error, OSError):
            return ExitCode.USAGE, _say(f"{error.filename or 'the system'}: {error.strerror or error}")
        traceback.print_exc()
        _say("this is a mistake in fencepost itself, please report it with the lines above")
        return ExitCode.USAGE, f"a mistake in fencepost itself: {type(error).__name__}"


def _at_work(what: str, seconds: float) -> None:
    if not said.bars:
        _say(f"{what}: at work for {seconds:.0f} s")


def _say(sentence: str) -> str:
    """Print a sentence on standard error and return it unchanged."""
    from fencepost.report.event_words import printable

    print(f"fencepost: {printable(sentence, 2_000)}", file=sys.stderr)  # noqa: T201 (before any console exists)
    return sentence


def _open_closed_streams() -> None:
    """Make a closed standard stream /dev/null. Otherwise the next file that is opened takes its number, and
    gets what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 (for the process)


def main() -> None:
    """Entry point of the program."""
    _open_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    code = run()
    for signum in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # the command is done; Python's own shutdown must not be interrupted
        signal.signal(signum, signal.SIG_IGN)
    sys.exit(int(code))
