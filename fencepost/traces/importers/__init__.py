"""Importers: other people's histories as traces of ours (docs/reference/models.md).

`import_text` and `import_file` answer one `Trace`; what they do not understand is a TraceError with file,
line and reason.
"""

from pathlib import Path

from fencepost.traces.errors import TraceError, unknown_name
from fencepost.traces.importers.conventions import DEFAULT, ORDERS, Conventions, Tell, silent
from fencepost.traces.importers.entries import Pairing, unique_values
from fencepost.traces.importers.entry_places import numbers_of
from fencepost.traces.importers.formats import FORMATS, SUFFIXES, Format, looks_foreign, recognised
from fencepost.traces.importers.jepsen_folder import check_text, history_of
from fencepost.traces.importers.kafka import overlaps_itself, sends_unique
from fencepost.traces.importers.keyed import by_key
from fencepost.traces.importers.order import in_order
from fencepost.traces.importers.window import Window
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

__all__ = [
    "DEFAULT",
    "FORMATS",
    "ORDERS",
    "SUFFIXES",
    "Conventions",
    "history_of",
    "import_file",
    "import_text",
    "is_history",
]


def import_text(
    text: str, *, where: str, format: str = "auto", conventions: Conventions = DEFAULT, tell: Tell = silent
) -> Trace:
    """The history that a text holds.

    Args:
        text: the history.
        where: its name in errors.
        format: a name of FORMATS, or auto.
        conventions: how to take what can be read in two ways.
        tell: is called with a sentence for each such thing that was met.

    Returns:
        its trace.

    Raises:
        TraceError: with file, line and reason, for what is not understood.
    """
    return _imported(Window.of_pieces(text, where), format, conventions, tell)


def import_file(
    path: Path, *, format: str = "auto", conventions: Conventions = DEFAULT, tell: Tell = silent
) -> Trace:
    """The history in a file, read as a stream.

    Args:
        path: the file.
        format: a name of FORMATS, or auto.
        conventions: how to take what can be read in two ways.
        tell: is called with a sentence for each such thing that was met.

    Returns:
        its trace.

    Raises:
        TraceError: with file, line and reason, for what is not understood.
    """
    check_text(path)
    try:
        with path.open("rb") as file:
            return _imported(Window.of_file(file, str(path)), format, conventions, tell)
    except OSError as error:
        raise TraceError(
            expected="a readable text file", seen=error.strerror or str(error), where=str(path)
        ) from None


def is_history(path: Path) -> bool:
    """Whether a file begins as a history in one of the formats. False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            return looks_foreign(Window.of_file(file, str(path)))
    except (OSError, TraceError):
        return False


def _imported(window: Window, format: str, conventions: Conventions, tell: Tell) -> Trace:
    if format != "auto" and format not in FORMATS:
        raise TraceError(
            expected=f"a format out of auto, {', '.join(FORMATS)}",
            seen=unknown_name(format, ("auto", *FORMATS)),
            where=window.where,
        )
    chosen = recognised(window) if format == "auto" else FORMATS[format]
    if chosen.operations is not None:
        if conventions.keyed:
            raise TraceError(
                expected="a format in which an entry has one value, with --keyed",
                seen=chosen.name,
                where=window.where,
            )
        operations = chosen.operations(window, conventions, tell)
        unique, overlapping = sends_unique(operations), chosen.overlaps or overlaps_itself(operations)
    else:
        operations, overlapping = _paired(window, chosen, conventions, tell), False
        unique = unique_values(operations)
    return Trace(
        trace_id=0,
        plan="",
        seed=0,
        target="foreign",
        software_version="",
        profile=f"imported-{chosen.name}",
        unique_values=unique,
        concurrent_processes=overlapping,
        operations=operations,
    )


def _paired(window: Window, chosen: Format, conventions: Conventions, tell: Tell) -> tuple[Operation, ...]:
    """The operations of a format that has entries."""
    assert chosen.entries is not None
    entries = by_key(list(chosen.entries(window, tell)), conventions, window.where, tell)
    ordered = in_order(entries, conventions, window.where, tell)
    numbers = numbers_of(entries, window.where, tell)
    observes = chosen.failed_cas_observes or conventions.failed_cas_observes
    pairing = Pairing(window.where, numbers, failed_cas_observes=observes)
    operations = pairing.all(ordered)
    if pairing.failed_cas:
        tell(
            f"{window.where}: {pairing.failed_cas} failed cas are taken as not having happened "
            f"(--failed-cas-observes takes each as proof that another value was there)"
        )
    return operations
