"""Files named on the command line. Owns the error message for a file that cannot be read."""

from pathlib import Path

from fencepost.traces.errors import EnvironmentError_


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises EnvironmentError_ with one sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise EnvironmentError_(
            expected="a readable file", seen=error.strerror or str(error), where=str(path)
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write a file, and create its missing folders.

    Args:
        path: the file.
        text: the content.

    Raises:
        EnvironmentError_: with one sentence, if that fails.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentError_(
            expected="a file that can be written", seen=error.strerror or str(error), where=str(path)
        ) from None
