"""Kernels: loops over arrays, each with one text and two engines.

Owns the decorator, and the one place where an engine is chosen. Must not know what a kernel does.

A kernel runs as plain Python until that has taken about as long as it takes to have it as machine code, and
as machine code from then on. So a small input never waits for a compiler, and a large one waits once. Numba
is not even imported before. docs/decisions/kernels.md has the measurements.

Numba's cache follows the file of the outermost kernel only. So the name under which a kernel is kept has the
content of all files with kernels in its folder in it: a change to any of them compiles all of them again.
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
"""What a file with kernels has in it."""
CHOICE = "FENCEPOST_KERNELS"
"""The environment's word: `plain`, `compiled`, or `auto` (the default)."""
AUTO, PLAIN, COMPILED = "auto", "plain", "compiled"

STEP_S = 4e-6
"""What one step of a plain loop takes, measured over the kernels: 1 to 8 microseconds."""
LOAD_AFTER_S = 0.5
"""Plain seconds of a kernel after which it is loaded from disk. Loading takes 0.1 to 0.3 s of CPU, importing
numba 0.5 s."""
COMPILE_AFTER_S = 8.0
"""The same where it has to be compiled first, which takes 1 to 15 s."""
LOCK = "fencepost-compiling.lock"
"""A file next to kept kernels: who holds its lock compiles one, so that workers do not all compile the
same."""


@cache
def stamp_of(folder: Path) -> str:
    """Of the files with kernels in a folder."""
    texts = (source.read_bytes() for source in sorted(folder.glob("*.py")))
    return f"{crc32(b''.join(text for text in texts if MARK in text)):08x}"


class Kernel:
    """One kernel. function: its text; steps: of one call's arguments, about how many steps its loops take at
    most.

    spent_s: how long it has run as plain Python in this process; ready: its machine code is at hand;
    when_asked: it stays plain until `Kernels` says otherwise.
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
        self._machine: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self.ready and _choice != PLAIN:
            return self._machine(*arguments)
        if self._stays_plain(arguments):
            began = time.thread_time()
            with np.errstate(over="ignore"):  # hashes wrap around, as they do in machine code
                answer = self.plain(*arguments)
            self.spent_s += time.thread_time() - began
            return _unboxed(answer)
        return self._first(arguments)

    @property
    def plain(self) -> Callable[..., Any]:
        """The function, in which the names of other kernels mean their functions."""
        if self._plain is None:
            function = cast(FunctionType, self.py_func)
            names = _plain_names(function.__module__, function.__globals__)
            self._plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        return self._plain

    @property
    def machine(self) -> Any:
        """Numba's dispatcher, which compiles at its first call."""
        if self._machine is None:
            self._machine = _dispatcher(self.py_func, **self._options)
        return self._machine

    def kept(self) -> list[Path]:
        """The files in which numba keeps it on this machine."""
        folder = getattr(getattr(self.machine, "stats", None), "cache_path", None)
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
        """The first call of machine code, which loads or compiles it; one process at a time does the
        latter."""
        if self.kept():
            answer = self.machine(*arguments)
        else:
            with _alone(self.machine):
                if not self.kept():
                    _report()
                answer = self.machine(*arguments)
        self.ready = True
        return answer


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, steps: Callable[..., int] | None = None, when_asked: bool = False) -> Callable[[F], F]: ...
def compiled(
    function: F | None = None, *, steps: Callable[..., int] | None = None, when_asked: bool = False
) -> F | Callable[[F], F]:
    """A kernel, as machine code without the interpreter's lock. Where machine code cannot be kept, each
    process compiles.

    steps: of one call's arguments, about how many steps its loops take at most; by default the length of all
    arrays. when_asked: see `Kernels`.
    """

    def kernel(function: F) -> F:
        return cast(F, Kernel(function, steps=steps, when_asked=when_asked))

    return kernel if function is None else kernel(function)


def compiled_within(function: F) -> F:
    """The same of a kernel that only other kernels call, and that makes no arrays: without a way in from
    Python and without reference counts, so that it takes less than half as long to compile."""
    return cast(F, Kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False))


class Kernels:
    """Kernels of one piece of work that may be interrupted, as a compiler may not: they change engines
    together, and only when they are asked.

    call: calls each of them once, with next to nothing to do.
    """

    def __init__(self, *kernels: Callable[..., Any], call: Callable[[], object]) -> None:
        self._kernels, self._call = cast(tuple[Kernel, ...], kernels), call
        self._under_way = False

    @property
    def ready(self) -> bool:
        """Whether all are machine code from now on."""
        return _choice != PLAIN and all(kernel.ready for kernel in self._kernels)

    def due(self, steps: int = 0) -> bool:
        """Whether now is the time to change to machine code. steps: of loops that are to come."""
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
    """Whether machine code is worth having after so long as plain Python. kept: whether it is on disk, which
    needs numba to be told."""
    return expected_s > COMPILE_AFTER_S or (expected_s > LOAD_AFTER_S and kept())


@contextmanager
def engine(choice: str) -> Iterator[None]:
    """While the body runs, every kernel is PLAIN or COMPILED, or chosen as ever (AUTO)."""
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
    """What the names of a module mean to its kernels when they are plain."""
    if module not in _names:
        _names[module] = made = dict(names)
        for name, value in names.items():
            if isinstance(value, Kernel):
                made[name] = value.plain
    return _names[module]


def _unboxed(answer: Any) -> Any:
    """Python's own numbers, as machine code answers."""
    if isinstance(answer, np.generic):
        return answer.item()
    return tuple(map(_unboxed, answer)) if type(answer) is tuple else answer


def _lengths(*arguments: Any) -> int:
    """Of all arrays."""
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
    except (RuntimeError, OSError):  # numba found no place for its cache
        return njit(nogil=True, **options)(function)


@cache
def _known_to_numba() -> None:
    """To machine code, a kernel that another one names is that one's machine code."""
    from numba.core import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Kernel)
    def _(kernel: Kernel, _: Any) -> Any:
        return types.Dispatcher(kernel.machine)


@contextmanager
def _alone(dispatcher: Any) -> Iterator[None]:
    """Hold the lock of the folder where a kernel is to be kept, if there is one and the system has locks."""
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
    """Once in a process."""
    print(  # noqa: T201 (no console exists this deep)
        "fencepost: compiling the judges' loops for a large input, once for this machine (up to half a "
        "minute)",
        file=sys.stderr,
        flush=True,
    )
