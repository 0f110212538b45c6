"""How kernels are compiled, and kept on disk.

Owns the decorator. Must not know what it compiles.

Numba's cache follows the file of the outermost kernel only. So the name under which a kernel is kept has the content of all files with kernels in its
folder in it: a change to any of them compiles all of them again.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

import numba

F = TypeVar("F", bound=Callable[..., object])
MARK = b"\n@compiled"
"""What a file with kernels has in it."""


@cache
def stamp_of(folder: Path) -> str:
    """Of the files with kernels in a folder."""
    texts = (source.read_bytes() for source in sorted(folder.glob("*.py")))
    return f"{crc32(b''.join(text for text in texts if MARK in text)):08x}"


def compiled(function: F) -> F:
    """Compile at the first call, without the interpreter's lock; kept on disk where the cache folder can be written."""
    return _compiled(function)


def compiled_within(function: F) -> F:
    """The same of a kernel that only other kernels call, and that makes no arrays: without a way in from Python and without reference counts, so that
    it takes less than half as long to compile."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


def _compiled(function: F, **options: bool) -> F:
    njit: Any = numba.njit
    code: Any = function.__code__
    function.__qualname__ += f"_{stamp_of(Path(code.co_filename).parent)}"
    try:
        return cast(F, njit(cache=True, nogil=True, **options)(function))
    except (RuntimeError, OSError):  # numba found no place for its cache
        return cast(F, njit(nogil=True, **options)(function))
