"""Imports point one way, purity is a property of the source, and each of these rules has failed on a planted snippet.

The rules are DESIGN.md's "Imports point one way" and the list of modules that no deterministic part may touch. A rule is a row of a table; a
row is proven by a source that breaks it (BAD) and by one that does not (GOOD). Imports inside functions and under TYPE_CHECKING count too.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fencepost"

# What each layer may import of the others (itself always). A dotted name stands for that part only.
LAYERS: dict[str, set[str]] = {
    "traces": set(),
    "model": {"traces"},
    "checkers": {"traces", "model"},
    "report": {"traces", "model", "checkers"},
    "impl": {"traces"},
    "sim": {"traces", "impl"},
    "campaign": {"traces", "model", "checkers", "report", "impl", "sim"},
    "audit": {"traces", "model", "checkers", "impl.log"},
    "mining": {"traces", "model", "checkers", "report", "impl", "sim", "campaign"},
    "cli": {"traces", "model", "checkers", "report", "impl", "sim", "campaign", "audit", "mining"},
}
LAYERS["history"] = {"traces", "model", "checkers", "report"}
LAYERS["pytest_plugin"] = LAYERS["cli"] | {"cli", "history"}

# Third-party packages and the only places that may import them.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "pyspark": ("mining",),
    "kazoo": ("impl.runtime",),
    "hypothesis": ("campaign.machines", "pytest_plugin"),
    "pyarrow": ("traces", "checkers", "mining"),
    "numba": ("checkers", "model.explore"),
}

# The deterministic parts, and what is exempt from them because it is where the real world begins.
PURE = ("model", "impl", "sim")
IMPURE_INSIDE = ("model.explore", "model.tlc", "impl.runtime")
FORBIDDEN = {
    "time", "random", "socket", "threading", "os", "subprocess", "asyncio", "multiprocessing", "uuid", "secrets", "datetime", "tempfile",
}  # fmt: skip
FORBIDDEN_IN_SIM = {"math", "cmath", "statistics"}  # a float from libm would tie a seed to a machine
FORBIDDEN_EVERYWHERE = {"pickle", "marshal", "shelve"}
FORBIDDEN_CALLS = {"hash", "id"}
HASH_IS_FINE = {"impl.topic_partition": "caches what __hash__ answers; never part of behaviour"}
LINKS = {"traces", "model", "checkers", "impl"}  # the links at the repository's top: for reading only


def module_name(path: Path) -> str:
    """fencepost/impl/seam.py -> impl.seam; a package's __init__ is the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def inside(module: str, part: str) -> bool:
    """Whether a module is a part or lies below it."""
    return module == part or module.startswith(f"{part}.")


def imports(module: str, tree: ast.AST, *, is_package: bool = False) -> list[str]:
    """Everything a source imports, absolute, with the names of `from x import y` appended (y may be a module)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ["fencepost", *module.split(".")]
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *([node.module] if node.module else [])])
            found += [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__"):
                found.append(str(node.args[0].value))
    return found


def is_pure(module: str) -> bool:
    """Whether a module belongs to a deterministic part."""
    return any(inside(module, part) for part in PURE) and not any(
        inside(module, part) for part in IMPURE_INSIDE
    )


def layer_breaches(module: str, imported: list[str]) -> list[str]:
    """Imports against the direction of the layers."""
    layer = module.split(".")[0]
    allowed = LAYERS.get(layer, set())
    breaches = []
    for name in imported:
        if not inside(name, "fencepost") or name == "fencepost" or name == "fencepost.__version__":
            continue
        target = name.removeprefix("fencepost.")
        if inside(target, layer):
            if layer == "impl" and inside(target, "impl.runtime") and is_pure(module):
                breaches.append(f"{module} (impl's core) imports {name}")
        elif not any(inside(target, part) for part in allowed):
            breaches.append(f"{module} imports {name}")
        elif layer == "sim" and inside(target, "impl.runtime"):
            breaches.append(f"{module} imports {name}, which is the real world")
    return breaches


def third_party_breaches(module: str, imported: list[str]) -> list[str]:
    """Heavy or foreign packages outside their place, and the links at the top."""
    breaches = []
    for name in imported:
        package = name.split(".")[0]
        if package in ONLY_IN and not any(inside(module, place) for place in ONLY_IN[package]):
            breaches.append(f"{module} imports {package}; only {', '.join(ONLY_IN[package])} may")
        if package in LINKS:
            breaches.append(f"{module} imports {name} through a link at the top")
    return breaches


def purity_breaches(module: str, tree: ast.AST, imported: list[str]) -> list[str]:
    """Modules and calls by which the outside world or the process could get into a deterministic part."""
    packages = {name.split(".")[0] for name in imported}
    breaches = [f"{module} imports {name}" for name in sorted(packages & FORBIDDEN_EVERYWHERE)]
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    breaches += [f"{module} calls {name}()" for name in sorted(called & {"eval", "exec"})]
    if is_pure(module):
        forbidden = FORBIDDEN | (FORBIDDEN_IN_SIM if inside(module, "sim") else set())
        breaches += [f"{module} imports {name}" for name in sorted(packages & forbidden)]
        calls = called & FORBIDDEN_CALLS - ({"hash"} if module in HASH_IS_FINE else set())
        breaches += [f"{module} calls {name}()" for name in sorted(calls)]
    return breaches


def breaches(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Every rule that this source breaks as this module."""
    tree = ast.parse(source)
    imported = imports(module, tree, is_package=is_package)
    return (
        layer_breaches(module, imported)
        + third_party_breaches(module, imported)
        + purity_breaches(module, tree, imported)
    )


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=[module_name(path) or "fencepost" for path in SOURCES])
def test_the_package_keeps_the_rules(path):
    """No module of the package imports against the layers, outside a package's place, or lets the outside world into a pure part."""
    source = path.read_text(encoding="utf-8")
    assert breaches(module_name(path), source, is_package=path.name == "__init__.py") == []


def test_every_module_belongs_to_a_known_layer():
    """A new folder at the top of the package needs a row in the table of layers."""
    top = {module_name(path).split(".")[0] for path in SOURCES} - {"", "__main__"}
    assert top <= set(LAYERS), f"no row in LAYERS for {sorted(top - set(LAYERS))}"


LAYER_BAD = [
    ("traces.plan", "from fencepost.impl import seam"),
    ("traces.plan", "import fencepost.model"),
    ("model.replication", "from fencepost.impl.messages import Message"),
    ("model.replication", "from fencepost.checkers.verdict import Verdict"),
    ("checkers.log", "from fencepost.impl.log import batch"),
    ("checkers.log", "from fencepost.sim.world import World"),
    ("checkers.log", "def f():\n    from fencepost.report import text"),
    ("report.text", "from fencepost.campaign import run"),
    ("report.text", "from fencepost.impl import seam"),
    ("impl.broker", "from fencepost.model import log"),
    ("impl.broker", "from fencepost.checkers import verdict"),
    ("impl.broker", "from fencepost.sim import world"),
    ("impl.broker", "from fencepost.campaign import run"),
    ("impl.broker", "from fencepost.impl.runtime import driver"),
    ("impl.broker", "from ..sim import world"),
    ("impl.broker", "from .runtime import driver"),
    ("impl.broker", "from fencepost import sim"),
    ("impl.runtime.files", "from fencepost.sim.disk import Disk"),
    ("sim.world", "from fencepost.campaign import run"),
    ("sim.world", "from fencepost.model import log"),
    ("sim.world", "from fencepost.checkers import verdict"),
    ("sim.world", "from fencepost.impl.runtime import files"),
    ("campaign.run", "from fencepost.mining import mine"),
    ("campaign.run", "from fencepost.cli import main"),
    ("audit.read", "from fencepost.impl.broker import Broker"),
    ("audit.read", "from fencepost.campaign import run"),
    ("mining.mine", "from fencepost.cli import main"),
    ("mining.mine", "import importlib\nimportlib.import_module('fencepost.cli')"),
]
THIRD_PARTY_BAD = [
    ("checkers.log", "import pyspark"),
    ("cli.main", "from pyspark.sql import SparkSession"),
    ("impl.broker", "from kazoo.client import KazooClient"),
    ("sim.zookeeper", "import kazoo"),
    ("campaign.swarm", "from hypothesis import given"),
    ("impl.log.batch", "import pyarrow"),
    ("report.text", "import pyarrow.parquet as pq"),
    ("model.replication", "from numba import njit"),
    ("mining.mine", "import numba"),
    ("campaign.run", "import importlib\nimportlib.import_module('pyspark')"),
    ("campaign.run", "if TYPE_CHECKING:\n    import pyspark"),
    ("campaign.run", "from traces.plan import Plan"),
    ("cli.main", "import checkers"),
]
PURITY_BAD = [
    *((f"{part}.x", f"import {name}") for part in PURE for name in sorted(FORBIDDEN)),
    *(("sim.x", f"import {name}") for name in sorted(FORBIDDEN_IN_SIM)),
    ("impl.x", "from time import monotonic"),
    ("impl.x", "def f():\n    import os.path"),
    ("sim.x", "key = hash((1, 2))"),
    ("impl.x", "key = id(object())"),
    ("impl.topic_partition", "key = id(object())"),
    ("model.x", "key = hash('a')"),
    ("traces.x", "import pickle"),
    ("cli.x", "eval('1')"),
]
GOOD = [
    ("checkers.log", "from fencepost.model import log\nimport numba, pyarrow, time"),
    ("campaign.run", "from fencepost.sim.world import World\nfrom fencepost.impl import seam\nimport os"),
    ("campaign.machines.log", "import hypothesis"),
    ("audit.read", "from fencepost.impl.log.batch import Batch"),
    ("impl.runtime.files", "import os, time, socket, kazoo\nfrom fencepost.impl import files"),
    ("impl.topic_partition", "key = hash((1, 2))"),
    ("model.explore.search", "import numba, time"),
    ("mining.mine", "import pyspark, pyarrow\nfrom fencepost.campaign import run"),
    ("cli.main", "from fencepost.mining import mine\nfrom fencepost.impl import log\nfrom fencepost import __version__"),
    ("sim.disk", "from fencepost.impl.files import FileSystem\nfrom .randomness import Randomness"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "source"), LAYER_BAD + THIRD_PARTY_BAD + PURITY_BAD)
def test_each_rule_catches_a_planted_breach(module, source):
    """A source that breaks one rule is caught."""
    assert len(breaches(module, source)) == 1


@pytest.mark.parametrize(("module", "source"), GOOD)
def test_the_rules_let_through_what_is_allowed(module, source):
    """The rules do not cry wolf."""
    assert breaches(module, source) == []


def test_a_relative_import_of_a_package_is_resolved():
    """In a package's __init__ one dot is the package itself."""
    source = "from .runtime import driver"
    assert breaches("impl", source, is_package=True) == [
        "impl (impl's core) imports fencepost.impl.runtime.driver"
    ]
