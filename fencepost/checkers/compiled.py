"""Kernels: loops over arrays, with one source text and two engines.

Owns the decorator, and the one place that chooses an engine. Must not know what a kernel does.

A kernel runs as plain Python until that has taken about as long as loading or compiling it would. From then
on it runs as machine code. So a small input never waits for a compiler, and a large one waits once. Numba is
imported only then. The reasons: docs/decisions/kernels.md.

Numba's cache depends only on the file of the outermost kernel. Therefore the cache key of a kernel includes
the content of all files with kernels in its folder. A change to any of them compiles all of them again.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast, overload
from zlib import crc32

import numpy as np

F = TypeVar("F", bound=Callable[..., object])
MARK = b"\n@compiled"
"""Every file with kernels contains it."""
CHOICE = "FENCEPOST_KERNELS"
"""The environment variable that chooses the engine: `plain`, `compiled`, or `auto` (the default)."""
AUTO, PLAIN, COMPILED = "auto", "plain", "compiled"

STEP_S = 4e-6
"""Seconds per step of a plain loop. Measured over the kernels: 1 to 8 microseconds."""
LOAD_AFTER_S = 0.5
"""Seconds of a kernel as plain Python after which its machine code is loaded from disk. Reason: loading takes
0.1 to 0.3 s of CPU, importing numba 0.5 s."""
COMPILE_AFTER_S = 8.0
"""The same if it must be compiled first. Reason: that takes 1 to 15 s."""
LOCK = "fencepost-compiling.lock"
"""A lock file next to the cached kernels. The process that holds its lock compiles, so that several workers
do not compile the same kernel."""


@cache
def stamp_of(folder: Path) -> str:
    """A hash of the files with kernels in a folder."""
    texts = (source.read_bytes() for source in sorted(folder.glob("*.py")))
    return f"{crc32(b''.join(text for text in texts if MARK in text)):08x}"


class Kernel:
    """One kernel.

    Attributes:
        function: its source.
        steps: a function from a call's arguments to an upper estimate of the steps of its loops.
        spent_s: seconds that it has run as plain Python in this process.
        ready: whether its machine code is loaded.
        when_asked: it stays plain until `Kernels` changes its engine.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        steps: Callable[..., int] | None = None,
        when_asked: bool = False,
        **options: bool,
    ) -> None:
        code = function.__code__
        function.__qualname__ += f"_{stamp_of(Path(code.co_filename).parent)}"
        self.py_func, self.__doc__, self.__module__ = function, function.__doc__, function.__module__
        self.spent_s, self.ready = 0.0, False
        self._steps, self._when_asked, self._options = steps or _lengths, when_asked, options
        self._plain: Callable[..., Any] | None = None
        self._native: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self.ready and _choice != PLAIN:
            return self._native(*arguments)
        if self._stays_plain(arguments):
            began = time.thread_time()
            with np.errstate(over="ignore"):  # hashes wrap around, as in machine code
                answer = self.plain(*arguments)
            self.spent_s += time.thread_time() - began
            return _unboxed(answer)
        return self._first(arguments)

    @property
    def plain(self) -> Callable[..., Any]:
        """The function; in it, the names of other kernels refer to their plain functions."""
        if self._plain is None:
            function = cast(FunctionType, self.py_func)
            names = _plain_names(function.__module__, function.__globals__)
            self._plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        return self._plain

    @property
    def native(self) -> Any:
        """Numba's dispatcher. It compiles at its first call."""
        if self._native is None:
            self._native = _dispatcher(self.py_func, **self._options)
        return self._native

    def kept(self) -> list[Path]:
        """The files in which numba caches this kernel on this machine."""
        folder = getattr(getattr(self.native, "stats", None), "cache_path", None)
        if folder is None:
            return []
        stem = Path(self.py_func.__code__.co_filename).stem
        return sorted(Path(folder).glob(f"{stem}.{self.py_func.__qualname__}-*.nb[ic]"))

    def _stays_plain(self, arguments: tuple[Any, ...]) -> bool:
        if _choice != AUTO:
            return _choice == PLAIN
        return self._when_asked or not _is_due(
            self.spent_s + STEP_S * self._steps(*arguments), lambda: bool(self.kept())
        )

    def _first(self, arguments: tuple[Any, ...]) -> Any:
        """The first call of machine code, which loads or compiles it. Only one process at a time compiles."""
        if self.kept():
            answer = self.native(*arguments)
        else:
            with _alone(self.native):
                if not self.kept():
                    _report()
                answer = self.native(*arguments)
        self.ready = True
        return answer


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, steps: Callable[..., int] | None = None, when_asked: bool = False) -> Callable[[F], F]: ...
def compiled(
    function: F | None = None, *, steps: Callable[..., int] | None = None, when_asked: bool = False
) -> F | Callable[[F], F]:
    """Make a function a kernel: machine code that runs without the interpreter's lock. If machine code cannot
    be cached, each process compiles.

    Args:
        function: the function; None if the decorator is used with arguments.
        steps: from a call's arguments to an upper estimate of the steps of its loops; by default the length
            of all arrays.
        when_asked: see `Kernels`.

    Returns:
        the kernel; a decorator if `function` is None.
    """

    def kernel(function: F) -> F:
        return cast(F, Kernel(function, steps=steps, when_asked=when_asked))

    return kernel if function is None else kernel(function)


def compiled_within(function: F) -> F:
    """A kernel that only other kernels call, and that creates no arrays.

    It has no entry from Python and no reference counts, so it compiles in less than half the time.
    """
    return cast(F, Kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False))


class Kernels:
    """The kernels of one piece of work that may be interrupted. A compiler must not be interrupted, so these
    kernels change engines together and only at defined points.

    call: calls each of them once, with minimal work.
    """

    def __init__(self, *kernels: Callable[..., Any], call: Callable[[], object]) -> None:
        self._kernels, self._call = cast(tuple[Kernel, ...], kernels), call
        self._under_way = False

    @property
    def ready(self) -> bool:
        """Whether all of them run as machine code from now on."""
        return _choice != PLAIN and all(kernel.ready for kernel in self._kernels)

    def near(self) -> bool:
        """Whether it is time to ask `due`. That may import numba, and an import must not be interrupted
        either: half of numba would stay in the process, and every later kernel would fail."""
        if _choice != AUTO or self.ready or self._under_way:
            return self.due()
        return sum(kernel.spent_s for kernel in self._kernels) > LOAD_AFTER_S

    def due(self, steps: int = 0) -> bool:
        """Whether to change to machine code now. steps: an estimate of the loops to come."""
        if _choice != AUTO or self.ready or self._under_way:
            return _choice == COMPILED and not self.ready and not self._under_way
        spent_s = sum(kernel.spent_s for kernel in self._kernels)
        return _is_due(spent_s + STEP_S * steps, lambda: all(kernel.kept() for kernel in self._kernels))

    def get_ready(self) -> None:
        """Load or compile all of them."""
        self._under_way = True
        try:
            with engine(COMPILED):
                self._call()
        finally:
            self._under_way = False


def _is_due(expected_s: float, kept: Callable[[], bool]) -> bool:
    """Whether machine code pays after this many seconds of plain Python. kept: whether it is cached on disk;
    reading it imports numba."""
    return expected_s > COMPILE_AFTER_S or (expected_s > LOAD_AFTER_S and kept())


@contextmanager
def engine(choice: str) -> Iterator[None]:
    """While the body runs, every kernel uses one engine: PLAIN, COMPILED, or the usual choice (AUTO)."""
    global _choice
    before, _choice = _choice, choice
    try:
        yield
    finally:
        _choice = before


def _first_choice() -> str:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return PLAIN
    wanted = os.environ.get(CHOICE, AUTO)
    return wanted if wanted in (PLAIN, COMPILED) else AUTO


_choice = _first_choice()
_names: dict[str, dict[str, Any]] = {}


def _plain_names(module: str, names: dict[str, Any]) -> dict[str, Any]:
    """What the names of a module mean to its kernels in plain Python."""
    if module not in _names:
        _names[module] = made = dict(names)
        for name, value in names.items():
            if isinstance(value, Kernel):
                made[name] = value.plain
    return _names[module]


def _unboxed(answer: Any) -> Any:
    """Results as Python numbers, as machine code returns them."""
    if isinstance(answer, np.generic):
        return answer.item()
    return tuple(map(_unboxed, answer)) if type(answer) is tuple else answer


def _lengths(*arguments: Any) -> int:
    """The total length of all arrays."""
    return sum(
        len(one) if isinstance(one, np.ndarray) else _lengths(*one)
        for one in arguments
        if isinstance(one, np.ndarray | tuple)
    )


def _dispatcher(function: Callable[..., Any], **options: bool) -> Any:
    _known_to_numba()
    import numba

    njit: Any = numba.njit
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except (RuntimeError, OSError):  # numba found no directory for its cache
        return njit(nogil=True, **options)(function)


@cache
def _known_to_numba() -> None:
    """In machine code, the name of another kernel refers to that kernel's machine code."""
    from numba.core import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Kernel)
    def _(kernel: Kernel, _: Any) -> Any:
        return types.Dispatcher(kernel.native)


@contextmanager
def _alone(dispatcher: Any) -> Iterator[None]:
    """Hold the lock of the cache folder of a kernel, if there is a folder and the system supports locks."""
    with ExitStack() as held:
        folder = getattr(getattr(dispatcher, "stats", None), "cache_path", None)
        if folder is not None:
            with suppress(ImportError, OSError):
                import fcntl

                Path(folder).mkdir(parents=True, exist_ok=True)
                lock = held.enter_context((Path(folder) / LOCK).open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _report() -> None:
    """Print a message, once in a process."""
    print(  # noqa: T201 (no console exists this deep)
        "fencepost: compiling the judges' loops for a large input, once for this machine (up to half a "
        "minute)",
        file=sys.stderr,
        flush=True,
    )
