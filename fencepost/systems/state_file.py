"""What a cluster of processes keeps about itself in a file of its folder, for another command to find.

Owns how the file is read and replaced. Must not know what is in it.
"""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fencepost.traces.errors import FencepostError
from fencepost.traces.whole_file import write_whole

State = TypeVar("State")


class ClusterError(FencepostError, ValueError):
    """A command that does not fit the cluster as it is."""


def read_state(path: Path, of: type[State], command: str) -> State:
    """What the file holds.

    Args:
        path: where it is.
        of: its form.
        command: what brings such a cluster up, for the error.

    Raises:
        ClusterError: if there is none, or it is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except FileNotFoundError:
        raise ClusterError(
            expected="a cluster that was brought up here",
            seen=f"no {path.name}",
            where=str(path.parent),
            hint=f"bring one up: {command}",
        ) from None
    except msgspec.MsgspecError as error:
        raise ClusterError(expected="the state of a cluster", seen=str(error), where=str(path)) from None


def write_state(path: Path, state: Any) -> None:
    """Replace the file as a whole: whoever reads it never sees a part.

    Args:
        path: of the file.
        state: what it holds, as JSON.
    """
    write_whole(path, msgspec.json.format(msgspec.json.encode(state)))
