"""How a program of this folder ends: its exit code, and one sentence for a mistake of the user.

Owns no command.
"""

import signal
import sys

import rich_click as click

from fencepost.traces.errors import ExitCode, FencepostError


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
