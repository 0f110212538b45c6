"""Options for what a foreign history does not say about itself.

Owns their names and words. Must not know formats, or what a command does with a history.
"""

import rich_click as click

from fencepost.console.options import Decorator, Named, default_option, options

convention_options: Decorator = options(
    default_option(
        "--order",
        type=Named(["auto", "file"]),
        default="auto",
        help="The order of a foreign history: by its times if they are complete, or as in the file.",
    ),
    click.option(
        "--keyed/--not-keyed",
        default=None,
        help="Whether values are [key value] of jepsen.independent. [default: by their shape]",
    ),
    click.option(
        "--failed-cas-observes",
        is_flag=True,
        help="A failed cas proves that another value was there. Otherwise it did not happen.",
    ),
)
"""Add the options to a command."""
