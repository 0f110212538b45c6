"""Hooks of the documentation site; MkDocs calls them by their names. `make docs` is the only user.

Owns what the site needs beyond its pages: examples of commands as code, diagrams without a network, and no
links to files that are not pages.
"""

import re
import shutil
from importlib.resources import as_file, files
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from fencepost.cli import group

OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:README|CONTRIBUTING|CHANGELOG|fencepost|tests|bench|tools)[^)]*\)"
)
"""A link to a file of the repository that is no page of the site."""

VERBATIM = "\b\n"
"""How click marks a paragraph that keeps its lines: here, examples."""

SCRIPT = "assets/mermaid.js"
"""Where the diagrams' script is in the site. It comes out of a package, so that no page asks the network."""


def on_config(config: Any, **_: Any) -> Any:
    """Prepare the commands for the page of the command line, and name the diagrams' script.

    Args:
        config: MkDocs's configuration.

    Returns:
        the same configuration, with one script more.
    """
    _prepare(group, click.Context(group))
    config.extra_javascript.append(SCRIPT)
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text without links that lead out of the site: such a link is only its words."""
    return OUTSIDE.sub(r"\1", markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Copy the diagrams' script into the site."""
    with as_file(files("mermaidx").joinpath("assets/mermaid.js")) as script:
        shutil.copyfile(script, Path(config.site_dir) / SCRIPT)


def _prepare(command: click.Command, context: click.Context) -> None:
    """A command and those below it, ready for Markdown: examples are fenced code, since their comments would
    be headings, and a default that is computed is said in words."""
    command.help = "\n\n".join(map(_fenced, cleandoc(command.help or "").split("\n\n")))
    for option in command.params:
        if isinstance(option, click.Option) and isinstance(option.show_default, str):
            option.default = option.show_default
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            _prepare(below, click.Context(below, parent=context))


def _fenced(paragraph: str) -> str:
    """A paragraph of a help text: examples as code, anything else as it is."""
    text = paragraph.strip("\n")
    if not text.lstrip(" ").startswith(VERBATIM):
        return paragraph
    lines = dedent(text.split("\n", 1)[1]).split("\n")
    if not any(line.strip().startswith(("fencepost ", "# ")) for line in lines):
        return "\n".join(lines)
    title = lines.pop(0) if lines[0] and "fencepost " not in lines[0] and not lines[0].startswith("#") else ""
    return "\n".join([title, "", "```sh", dedent("\n".join(lines)), "```"])
