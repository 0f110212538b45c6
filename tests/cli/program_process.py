"""A program that calls the command line, in a process that is forked from one with the command line loaded
(tests/suites.py). Libraries that are optional are not loaded there."""

import sys

import fencepost.cli  # noqa: F401 (loaded before a process is forked)
from tests.suites import begin


def main() -> None:
    """The first argument is the program's text, the second names libraries that must not be loaded, with
    blanks; the others are the program's own."""
    program, hidden, *arguments = begin()
    loaded = set(hidden.split()) & set(sys.modules)
    assert not loaded, f"{loaded} is loaded by the command line itself"
    sys.argv = ["-c", *arguments]
    exec(program, {"__name__": "__main__"})
