"""Histories and traces that a command line names: their format, and the pieces of them that can be read.

Owns the option --format and what is said of unreadable input. Must not know formats (traces/importers).
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from fencepost.console.options import Decorator, default_option
from fencepost.console.output import Output
from fencepost.traces.errors import unknown_name

if TYPE_CHECKING:
    from fencepost.mining.inputs.traces import Piece
    from fencepost.traces.importers.conventions import Conventions

AUTO = "auto"


class HistoryFormat(click.ParamType[str]):
    """A format of files by its name; the table of them is loaded only where another than `auto` is named."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name. value: of the option; param, ctx: click's. Raises UsageError for no such format."""
        if value != AUTO:
            from fencepost.mining.inputs.traces import FORMATS

            if value not in FORMATS:
                raise click.UsageError(
                    f"expected --format out of {', '.join(FORMATS)}, saw {unknown_name(value, FORMATS)}", ctx
                )
        return str(value)


format_option: Decorator = default_option(
    "--format",
    type=HistoryFormat(),
    default=AUTO,
    help="The format of files: fencepost, edn, json, jepsen-log, jepsen-history, etcd-log, jepsen-kafka, "
    "elle-append, kafka-verifiable or auto, by their content.",
)


def readable_pieces(
    inputs: tuple[Path, ...],
    format: str,
    conventions: "Conventions",
    unreadable: Callable[[str], None],
    output: Output,
) -> "list[Piece]":
    """The pieces of the input. unreadable: gets the reason why one cannot be read, which is left out then;
    output: for notes. inputs, format, conventions: as for mining.inputs.traces.pieces_of."""
    from fencepost.mining.inputs.traces import Piece, pieces_of

    pieces = []
    for piece in pieces_of(inputs, format, output.note, conventions):
        if isinstance(piece, Piece):
            pieces.append(piece)
        else:
            unreadable(piece.reason)
    return pieces
