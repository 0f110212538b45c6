"""A fault is put into a process, and never into the tree: a module that is not imported yet is loaded from
the mutated source; functions of one that is imported get the code of the mutated source.

Owns both. What runs while a module is imported has left its results in the module, so that only
re-importing it shows the fault: reach.py knows these statements. Must not know runs nor outcomes.
"""

import functools
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, ModuleType

from attrs import frozen


@frozen
class MutatedSource(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from another source."""

    module: str
    code: CodeType
    origin: str

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Of that module only."""
        if fullname != self.module:
            return None
        spec = importlib.util.spec_from_loader(
            fullname, self, origin=self.origin, is_package=self.origin.endswith("__init__.py")
        )
        if spec is not None and spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(self.origin.removesuffix("/__init__.py"))
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the source."""
        module.__file__ = self.origin
        exec(self.code, module.__dict__)  # the source is this repository's own, with one fault in it


def plant(module: str, source: bytes, origin: str) -> None:
    """From now on this process imports that module from this source. Raises SyntaxError."""
    assert module not in sys.modules, f"{module} is imported already"
    sys.meta_path.insert(0, MutatedSource(module, compile(source, origin, "exec"), origin))


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The outermost functions of a module, those of its classes included, in the order of the text."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 1:  # CO_OPTIMIZED: a function; the body of a class is not
                yield constant
            else:
                yield from functions_in(constant)


def exchange(before: bytes, after: bytes, origin: str) -> bool:
    """Put the code of `after` into the live functions of a module.

    Args:
        before: its source as imported.
        after: the source with a fault.
        origin: the file that its code objects name.

    Returns:
        Whether that was possible. If not, nothing has changed.

    Raises:
        SyntaxError: `after` is no Python.
    """
    old, new = (list(functions_in(compile(source, origin, "exec"))) for source in (before, after))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    changed = {
        (one.co_qualname, one.co_firstlineno): other
        for one, other in zip(old, new, strict=True)
        if _body(one) != _body(other)
    }
    gc.collect()
    # type, not isinstance: that asks a weak proxy for its class, and what it stands for may be gone
    live = [one for one in gc.get_objects() if type(one) is FunctionType]
    live = [one for one in live if one.__code__.co_filename == origin]
    found = [
        (one, changed[key])
        for one in live
        if (key := (one.__code__.co_qualname, one.__code__.co_firstlineno)) in changed
    ]
    inner = tuple(f"{name}.<locals>." for name, _ in changed)
    if len(changed) != len({one.__code__.co_qualname for one, _ in found}) or not changed:
        return False
    if any(one.__code__.co_freevars != code.co_freevars for one, code in found):
        return False
    if any(one.__code__.co_qualname.startswith(inner) for one in live):
        return False  # made while the module was imported
    for one, code in found:
        one.__code__ = code
    for held in gc.get_objects():
        if type(held) is functools._lru_cache_wrapper:
            held.cache_clear()
    return True


def _body(code: CodeType) -> tuple[object, ...]:
    """What the code does, without its lines: those of later functions move with a fault before them."""
    constants = tuple(_body(one) if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
