"""`fencepost mine package`: what executors of a Spark cluster need, in one archive."""

from pathlib import Path

import attrs
import rich_click as click

from fencepost.console.options import ANY_PATH, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode


@click.command("package", short_help="Make an archive for a Spark cluster.")
@click.argument("out", type=ANY_PATH, metavar="FOLDER")
@click.option(
    "--no-libraries",
    is_flag=True,
    help="Only Fencepost: the executors' own Python has NumPy, PyArrow and the other libraries.",
)
@json_option
def command(out: Path, no_libraries: bool, output: Output) -> ExitCode:
    """Write environment.tar.gz, from which executors run, and entry.py, which spark-submit runs.

    The archive contains Fencepost as it is installed here, its libraries, and the kernels that
    were compiled here. Executors need a Python of the same version (FENCEPOST_PYTHON names it if it is
    not on their path).

    \b
    Examples
      fencepost mine package out/spark
      # on a cluster, from this machine
      export PYSPARK_PYTHON=./environment/bin/python PYSPARK_DRIVER_PYTHON=$(command -v python)
      spark-submit --master spark://host:7077 --archives out/spark/environment.tar.gz#environment \\
        out/spark/entry.py mine /shared/out/big --out /shared/out/mined
    """
    from fencepost.mining.spark.package import package

    made = package(out, libraries=not no_libraries)
    output.say(
        f"{made.archive}: {made.size_bytes / 1e6:.0f} MB, {len(made.libraries)} libraries, {made.kernels} "
        f"compiled kernels",
        f"{made.entry}: what spark-submit runs; the rest of its line is that of `fencepost`",
    )
    fields = attrs.asdict(made)
    return output.end(
        ExitCode.NOTHING_FOUND, {**fields, "archive": str(made.archive), "entry": str(made.entry)}
    )
