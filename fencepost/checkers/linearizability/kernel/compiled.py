"""How the kernels of a search are compiled, and kept on disk.

Owns the decorator. Must not know what it compiles.

Numba's cache follows the file of the outermost kernel only. So the name under which a kernel is kept has the content of all files of this
folder in it: a change to any of them compiles all of them again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast
from zlib import crc32

import numba

F = TypeVar("F", bound=Callable[..., object])


def _stamp() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return f"{crc32(b''.join(source.read_bytes() for source in sources)):08x}"


STAMP = _stamp()


def compiled(function: F) -> F:
    """Compile at the first call, kept on disk where the cache folder can be written."""
    function.__qualname__ += f"_{STAMP}"
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except (RuntimeError, OSError):  # numba found no place for its cache
        return cast(F, numba.njit(nogil=True)(function))
