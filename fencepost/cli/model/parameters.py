"""Options for the parameters of a sequential model, for every command with `--model`.

Owns how the values are written. Must not know models, or what is asked about them.
"""

from typing import Any

import msgspec
import rich_click as click

from fencepost.console.options import Decorator, named_value
from fencepost.traces.decoding import from_json

INITIAL = "initial"
parameter_options: tuple[Decorator, ...] = (
    click.option(
        "--initial", metavar="JSON", help="With --model, its start value; short for --parameter initial=JSON."
    ),
    click.option(
        "--parameter",
        multiple=True,
        metavar="NAME=JSON",
        help="With --model, one of its parameters, such as permits=3. May be repeated.",
    ),
)


def parameters_of(initial: str | None, parameter: tuple[str, ...]) -> dict[str, Any]:
    """The model's parameters by name. initial: its start value as JSON, None if not given; parameter: texts
    NAME=JSON. Raises UsageError."""
    given = [] if initial is None else [("--initial", INITIAL, initial)]
    for text in parameter:
        name, value = named_value(text, "--parameter as NAME=JSON")
        if not name.isidentifier():
            raise click.UsageError(f"expected --parameter as NAME=JSON, saw {text!r}")
        given.append((f"--parameter {name}", name, value))
    found: dict[str, Any] = {}
    for option, name, value in given:
        if name in found:
            raise click.UsageError(f"expected the parameter {name} once, saw it twice")
        found[name] = None if value == "nil" else _decoded(option, value)
    return found


def _decoded(option: str, value: str) -> Any:
    try:
        return from_json(value)
    except msgspec.DecodeError:
        raise click.UsageError(f"expected {option} as JSON (a text in quotes), saw {value!r:.80}") from None
