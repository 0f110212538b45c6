"""`fencepost torture drivers`: programs around foreign client libraries."""

from typing import Any

import rich_click as click

from fencepost.console.options import json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode


@click.group("drivers", short_help="Programs around client libraries: list, build, check.")
def command() -> None:
    """Small programs around foreign client libraries, which `fencepost torture` controls.

    A driver is built in your cache, once for each version. docs/reference/drivers.md has the protocol, for
    your own driver.

    \b
    Examples
      fencepost torture drivers list
      fencepost torture drivers build sarama@1.43.2
      # does your own driver keep the protocol, and what can it do?
      fencepost torture drivers check ./ours
    """


@command.command("list", short_help="Drivers, and what can be built here.")
@json_option
def list_drivers(output: Output) -> ExitCode:
    """List the drivers: library, newest version, toolchain, and what this machine lacks.

    \b
    Examples
      fencepost torture drivers list
      fencepost torture drivers list --json
    """
    from fencepost.torture.building import built, missing
    from fencepost.torture.libraries import Wanted, libraries

    listed: list[dict[str, Any]] = []
    for library in libraries().values():
        newest = Wanted(library, library.newest)
        lacks, done = missing(newest), built(newest) is not None
        listed.append(
            {
                "driver": library.name,
                "library": library.title,
                "newest": library.newest,
                "toolchain": library.toolchain,
                "built": done,
                "missing": lacks,
                "here": "built" if done else lacks or "can be built",
            }
        )
    shown = ("driver", "library", "newest", "toolchain", "here")
    return output.listed("drivers", listed, dict(zip(shown, shown, strict=True)))


@command.command("build", short_help="Build drivers in your cache.")
@click.argument("libraries", nargs=-1, required=True, metavar="NAME[@VERSION]...")
@json_option
def build_drivers(libraries: tuple[str, ...], output: Output) -> ExitCode:
    """Build drivers, each in one exact version, in your cache: $FENCEPOST_DRIVERS, or fencepost/drivers in
    the user's cache folder. Each is started once.

    \b
    Examples
      # the newest tested version
      fencepost torture drivers build franz-go
      # two versions of one library
      fencepost torture drivers build sarama@1.43.2 sarama@1.61.1
    """
    from fencepost.torture.building import build
    from fencepost.torture.driver_process import Driver
    from fencepost.torture.libraries import wanted
    from fencepost.torture.workers import check_version

    folders = {}
    for text in libraries:
        done = build(wanted(text))
        with Driver.start(done) as driver:
            check_version(driver, done)
        folders[str(done.wanted)] = str(done.folder)
        output.say(f"{done.wanted}: {done.folder}")
    return output.end(ExitCode.NOTHING_FOUND, {"built": folders})


@command.command("check", short_help="What a driver can do against an embedded cluster.")
@click.argument("library", metavar="NAME[@VERSION]")
@json_option
def check_driver(library: str, output: Output) -> ExitCode:
    """Build a driver and try all its abilities against an embedded cluster; each check reads
    back and compares.

    \b
    Examples
      fencepost torture drivers check aiokafka
      # your own driver
      fencepost torture drivers check ./ours
    """
    import fencepost.kafka
    from fencepost.torture.abilities.ability_table import ABILITIES, try_all
    from fencepost.torture.building import build
    from fencepost.torture.libraries import wanted

    done = build(wanted(library))
    rows = table("ability", "outcome", "why")
    with fencepost.kafka.cluster() as kafka:
        version, cells = try_all(done, kafka, ABILITIES)
    for cell in cells:
        add_row(rows, cell.ability, cell.outcome, cell.why)
    output.say(rows)
    return output.end(
        ExitCode.FINDINGS if any(cell.outcome == "failed" for cell in cells) else ExitCode.NOTHING_FOUND,
        {
            "library": library,
            "version": version,
            "abilities": [{"ability": c.ability, "outcome": c.outcome, "why": c.why} for c in cells],
        },
    )
