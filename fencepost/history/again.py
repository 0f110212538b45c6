"""How to judge a saved history again from a command line: exactly, or not at all.

Owns: whether a command can make the same model. Must not know how a command is spelled, or what a verdict
says.

The command imports the model's module and makes the model of its parameters as JSON. So the module has to be
found by its name, and what comes out has to be the same as the model that judged. Both are tried here.
"""

import os
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen

from fencepost.checkers.models import MODELS, Model
from fencepost.report.commands import check_model

JUDGE_AGAIN = "judge it again: "


@frozen
class Again:
    """command: what to run, "" where nothing gives the same answer; why_not: then, why."""

    command: str = ""
    why_not: str = ""

    def words(self) -> str:
        """As a message says it."""
        return (
            f"{JUDGE_AGAIN}{self.command}" if self.command else f"no command judges it again: {self.why_not}"
        )


def again(path: Path | None, model: Model, options: dict[str, str]) -> Again:
    """How to judge the history of this file with this model. options: further ones of `check --model`."""
    if path is None:
        return Again(why_not="the history was not saved (give a folder)")
    kind = type(model)
    parameters = parameters_as_json(model)
    if parameters is None:
        return Again(why_not=f"the parameters of the model {kind.__name__} are more than JSON can say")
    given = {"--parameter": [f"{name}={text}" for name, text in parameters.items()], **options}
    if MODELS.get(kind.name) is kind:
        return Again(check_model(path, kind.name, given))
    root = import_root(kind)
    if root is None:
        return Again(why_not=f"the model {kind.__name__} cannot be imported by its name")
    return Again(_found_in(root) + check_model(path, f"{kind.__module__}:{kind.__qualname__}", given))


def parameters_as_json(model: Model) -> dict[str, str] | None:
    """The parameters as JSON texts; None if a model made of these would be another one."""
    parameters = model.parameters()
    try:
        texts = {name: msgspec.json.encode(value).decode() for name, value in (parameters or {}).items()}
        made = type(model)(**{name: msgspec.json.decode(text) for name, text in texts.items()})
        same = parameters is not None and bool(_state(made) == _state(model))
    except Exception:  # a class of the caller's may raise anything for its parameters
        return None
    return texts if same else None


def _state(model: Model) -> dict[str, Any]:
    """All attributes of an instance."""
    slots = {name for kind in type(model).__mro__ for name in vars(kind).get("__slots__", ())}
    found = {name: getattr(model, name) for name in slots if name != "__weakref__" and hasattr(model, name)}
    found.pop("__dict__", None)
    return found | {name: value for name, value in vars(model).items() if name != "_arguments"}


def import_root(kind: type) -> Path | None:
    """The folder from which the class's module is imported by its name; None if the name does not lead to
    this class."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind.__module__ == "__main__" or file is None or getattr(module, kind.__qualname__, None) is not kind:
        return None
    path = Path(file).resolve()
    path = path.parent if path.name == "__init__.py" else path.with_suffix("")
    names = kind.__module__.split(".")
    if list(path.parts[-len(names) :]) != names:
        return None
    return path.parents[len(names) - 1]


def _found_in(root: Path) -> str:
    """What goes before a command so that it imports from this folder; "" where it does anyway."""
    variable = os.environ.get("PYTHONPATH", "")
    known = [Path.cwd(), *(Path(part) for part in variable.split(os.pathsep) if part)]
    known += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    if any(root == path.resolve() for path in known):
        return ""
    more = f'{os.pathsep}"$PYTHONPATH"' if variable else ""
    return f"PYTHONPATH={shlex.quote(str(root))}{more} "
