"""Imports point one way, purity is a property of the source, and each of these rules has failed on a planted
snippet.

The rules are "Imports point one way" of docs/explanation/architecture.md and the list of modules that no
deterministic part may touch. A rule is a row of a table; a row is proven by a source that breaks it (BAD) and
by one that does not (GOOD). Imports inside functions and under TYPE_CHECKING count too.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fencepost"

# What each layer may import of the others (itself always). A dotted name means that part only.
LAYERS: dict[str, set[str]] = {
    "traces": set(),
    "processes": {"traces"},
    "console": {"traces", "report", "checkers"},
    "record": {"traces"},
    "model": {"processes", "traces"},
    "checkers": {"traces", "record", "model"},
    "report": {"traces", "record", "model", "checkers"},
    "viewer": {"traces", "model", "checkers", "report"},
    "impl": {"processes", "traces"},
    "wire": {"traces", "impl"},
    "conformance": {"traces", "impl", "wire", "report"},
    "sim": {"traces", "impl"},
    "proxy": {"traces", "impl", "wire"},
    "systems": {"processes", "traces", "impl", "sim", "wire", "proxy"},
    "audit": {"traces", "model", "checkers", "impl.log", "impl.client", "impl.messages", "wire", "asked"},
    "history": {"traces", "model", "checkers", "report", "viewer"},
}
LAYERS["application"] = {"traces", "model", "checkers", "impl", "wire", "proxy"}
LAYERS["asked"] = {"traces", "impl", "wire", "sim"}
LAYERS["bugs"] = {"traces", "impl"}
LAYERS["run"] = {"traces", "record", "impl", "bugs", "sim", "wire", "proxy", "systems", "asked", "audit"}
LAYERS["campaign"] = LAYERS["run"] | {"processes", "model", "checkers", "report", "viewer", "run"}
LAYERS["mining"] = LAYERS["campaign"] | {"campaign", "application"}
LAYERS["machines"] = LAYERS["campaign"] | {"campaign"}
LAYERS["kafka"] = LAYERS["campaign"] | {"campaign", "application"}
LAYERS["torture"] = LAYERS["kafka"] | {"kafka"}
LAYERS["cli"] = LAYERS["mining"] | {
    *("mining", "audit", "history", "torture", "kafka", "console", "conformance", "application")
}
LAYERS["moved"] = LAYERS["drivers"] = set()
LAYERS["pytest_plugin"] = LAYERS["__main__"] = LAYERS["cli"] | {"cli"}

# Third-party packages and the only places that may import them.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "pyspark": ("mining",),
    "kazoo": ("impl.runtime",),
    "kio": ("wire",),
    "h11": ("proxy.control",),
    "mfusepy": ("systems.disk",),
    "hypothesis": ("machines", "pytest_plugin"),
    "pyarrow": ("traces", "checkers", "mining"),
    "numba": ("checkers", "model.explore", "impl.log.batch.compiled_walk"),
    "junitparser": ("console",),
}

# The deterministic parts, and what is exempt from them because it is where the real world begins.
PURE = ("model", "impl", "sim")
IMPURE_INSIDE = ("model.explore", "model.tlc", "impl.runtime")
FORBIDDEN = {
    "time",
    "random",
    "socket",
    "threading",
    "os",
    "subprocess",
    "asyncio",
    "multiprocessing",
    "uuid",
    "secrets",
    "datetime",
    "tempfile",
}
SANS_IO = ("wire", "proxy")
SOCKETS_INSIDE = ("wire.server", "wire.client", "proxy.server", "proxy.control.server")
FORBIDDEN_IN_SANS_IO = FORBIDDEN - {"datetime", "uuid"}  # values of kio are timedeltas and UUIDs
FORBIDDEN_IN_SIM = {"math", "cmath", "statistics"}  # a float from libm would tie a seed to a machine
FORBIDDEN_EVERYWHERE = {"pickle", "marshal", "shelve"}
FORBIDDEN_CALLS = {"hash", "id"}
HASH_IS_FINE = {"impl.messages.topic_partition": "caches what __hash__ answers; never part of behaviour"}
LINKS = {"traces", "model", "checkers", "impl"}  # the links at the repository's top: for reading only


def module_name(path: Path) -> str:
    """fencepost/impl/core/core_interface.py -> impl.core.core_interface; a package's __init__ is the
    package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def inside(module: str, part: str) -> bool:
    """Whether a module is a part or lies below it."""
    return module == part or module.startswith(f"{part}.")


def imports(module: str, tree: ast.AST, *, is_package: bool = False) -> list[str]:
    """Everything a source imports, absolute, with the names of `from x import y` appended (y may be a
    module)."""
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


def is_sans_io(module: str) -> bool:
    """Whether a module speaks a protocol without sockets and clocks."""
    return any(inside(module, part) for part in SANS_IO) and not any(
        inside(module, part) for part in SOCKETS_INSIDE
    )


def layer_breaches(module: str, imported: list[str]) -> list[str]:
    """Imports against the direction of the layers."""
    layer = module.split(".")[0]
    allowed = LAYERS.get(layer, set()) if layer else {"moved"}
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
    if is_sans_io(module):
        breaches += [f"{module} imports {name}" for name in sorted(packages & FORBIDDEN_IN_SANS_IO)]
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
DRIVERS = sorted((PACKAGE / "drivers").rglob("*.py"))  # a link, which no walk over the package enters


@pytest.mark.parametrize("path", SOURCES + DRIVERS, ids=lambda path: module_name(path) or "fencepost")
def test_the_package_keeps_the_rules(path):
    """No module of the package imports against the layers, outside a package's place, or lets the outside
    world into a pure part."""
    source = path.read_text(encoding="utf-8")
    assert breaches(module_name(path), source, is_package=path.name == "__init__.py") == []


def test_every_module_belongs_to_a_known_layer():
    """A new folder at the top of the package needs a row in the table of layers."""
    top = {module_name(path).split(".")[0] for path in SOURCES} - {"", "__main__"}
    assert top <= set(LAYERS), f"no row in LAYERS for {sorted(top - set(LAYERS))}"


LAYER_BAD = [
    ("traces.plan", "from fencepost.impl import core"),
    ("traces.plan", "import fencepost.model"),
    ("model.replication", "from fencepost.impl.messages.broker_api import Message"),
    ("model.replication", "from fencepost.checkers.verdict import Verdict"),
    ("checkers.log", "from fencepost.impl.log import batch"),
    ("checkers.log", "from fencepost.sim.world import World"),
    ("checkers.log", "def f():\n    from fencepost.report import text"),
    ("report.text", "from fencepost.run import story"),
    ("report.text", "from fencepost.impl import core"),
    ("report.text", "from fencepost.viewer import view"),
    ("viewer.view", "from fencepost.run import story"),
    ("impl.broker", "from fencepost.model import log"),
    ("impl.broker", "from fencepost.checkers import verdict"),
    ("impl.broker", "from fencepost.sim import world"),
    ("impl.broker", "from fencepost.run import story"),
    ("impl.broker", "from fencepost.impl.runtime import driver"),
    ("impl.broker", "from fencepost.wire.server import Server"),
    ("wire.connection", "from fencepost.sim.world import World"),
    ("wire.connection", "from fencepost.systems.embedded import Embedded"),
    ("impl.broker", "from ..sim import world"),
    ("impl.broker", "from .runtime import core_driver"),
    ("impl.broker", "from fencepost import sim"),
    ("impl.runtime.real_file_system", "from fencepost.sim.disk import Disk"),
    ("wire.frames", "from fencepost.sim.world import World"),
    ("systems.simulation", "from fencepost.run.simulated.run import Run"),
    ("viewer.page_file", "from fencepost.run.simulated.run import Run"),
    ("run.simulated.run", "from fencepost.kafka import cluster"),
    ("run.simulated.run", "from fencepost.checkers.judges import judge"),
    ("run.real.real_run", "from fencepost.checkers.verdict import Decision"),
    ("record.claims", "def f():\n    from fencepost.checkers.verdict import Finding"),
    ("checkers.log", "from fencepost.asked.step import Step"),
    ("checkers.log", "from fencepost.systems.system import System"),
    ("record.claims", "from fencepost.checkers.verdict import Verdict"),
    ("systems.embedded", "from fencepost.record.claims import derive_claims"),
    ("systems.embedded", "from fencepost.asked.step import Step"),
    ("kafka.handle", "from fencepost.torture.driver_process import Driver"),
    ("torture.scenario_run", "from fencepost.cli import main"),
    ("drivers.shared.lines", "from fencepost.traces.errors import FencepostError"),
    ("torture.scenario_run", "from fencepost.drivers.shared import lines"),
    ("run.simulated.run", "from fencepost.console.output import Output"),
    ("sim.world", "from fencepost.run import story"),
    ("sim.world", "from fencepost.model import log"),
    ("sim.world", "from fencepost.checkers import verdict"),
    ("sim.world", "from fencepost.impl.runtime import real_file_system"),
    ("run.story", "from fencepost.mining import mine"),
    ("run.story", "from fencepost.cli import main"),
    ("systems.embedded", "from fencepost.run.faults.table import FAULTS"),
    ("systems.embedded", "from fencepost.checkers.verdict import Verdict"),
    ("sim.world", "from fencepost.systems.pace import Pace"),
    ("run.story", "from fencepost.kafka import cluster"),
    ("campaign.hunting.log_hunt", "from fencepost.machines.log import hunt"),
    ("machines.cluster.steps", "from fencepost.kafka import cluster"),
    ("kafka.handle", "from fencepost.cli import main"),
    ("audit.read", "from fencepost.impl.broker.broker import Broker"),
    ("audit.read", "from fencepost.run import story"),
    ("mining.mine", "from fencepost.cli import main"),
    ("mining.mine", "import importlib\nimportlib.import_module('fencepost.cli')"),
]
THIRD_PARTY_BAD = [
    ("checkers.log", "import pyspark"),
    ("cli.main", "from pyspark.sql import SparkSession"),
    ("impl.broker", "from kazoo.client import KazooClient"),
    ("sim.zookeeper", "import kazoo"),
    ("systems.embedded", "from kio.schema.errors import ErrorCode"),
    ("impl.messages", "import kio"),
    ("campaign.swarm", "from hypothesis import given"),
    ("impl.log.batch", "import pyarrow"),
    ("impl.log.batch.record_walk", "import numba"),
    ("report.text", "import pyarrow.parquet as pq"),
    ("model.replication", "from numba import njit"),
    ("mining.mine", "import numba"),
    ("impl.broker.broker", "from kio.schema import types"),
    ("proxy.rules", "import kio"),
    ("kafka.control_port", "import h11"),
    ("systems.apache_kafka.disk", "import mfusepy"),
    ("run.story", "import importlib\nimportlib.import_module('pyspark')"),
    ("run.story", "if TYPE_CHECKING:\n    import pyspark"),
    ("run.story", "from traces.plan import Plan"),
    ("cli.main", "import checkers"),
]
PURITY_BAD = [
    *((f"{part}.x", f"import {name}") for part in PURE for name in sorted(FORBIDDEN)),
    *(("sim.x", f"import {name}") for name in sorted(FORBIDDEN_IN_SIM)),
    *(("wire.x", f"import {name}") for name in sorted(FORBIDDEN_IN_SANS_IO)),
    ("impl.x", "from time import monotonic"),
    ("impl.x", "def f():\n    import os.path"),
    ("sim.x", "key = hash((1, 2))"),
    ("impl.x", "key = id(object())"),
    ("impl.messages.topic_partition", "key = id(object())"),
    ("model.x", "key = hash('a')"),
    ("traces.x", "import pickle"),
    ("cli.x", "eval('1')"),
]
GOOD = [
    ("checkers.log", "from fencepost.model import log\nimport numba, pyarrow, time"),
    ("run.story", "from fencepost.sim.world import World\nfrom fencepost.impl import core\nimport os"),
    ("machines.log", "import hypothesis"),
    ("run.real", "from fencepost.systems.system import System"),
    ("campaign.driver.campaign_driver", "from fencepost.checkers.judges import judge"),
    (
        "systems.embedded",
        "import asyncio, threading, time\nfrom fencepost.sim.world import World\nfrom "
        "fencepost.impl.runtime import files",
    ),
    (
        "kafka.hosted",
        "from fencepost.run.simulated.run import Run\nfrom fencepost.systems.embedded import Embedded",
    ),
    (
        "wire.connection",
        "from fencepost.impl.messages.broker_api import Request\nimport kio, logging\nfrom datetime import "
        "timedelta",
    ),
    ("wire.server", "import asyncio, ssl"),
    ("audit.read", "from fencepost.impl.log.batch import Batch"),
    ("impl.runtime.real_file_system", "import os, time, socket, kazoo\nfrom fencepost.impl import files"),
    ("impl.messages.topic_partition", "key = hash((1, 2))"),
    ("model.explore.search", "import numba, time"),
    ("mining.mine", "import pyspark, pyarrow\nfrom fencepost.run import story"),
    (
        "cli.main",
        "from fencepost.mining import mine\nfrom fencepost.impl import log\nfrom fencepost import "
        "__version__",
    ),
    (
        "sim.disk",
        "from fencepost.impl.core.file_system import FileSystem\nfrom .randomness import Randomness",
    ),
]


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
    source = "from .runtime import core_driver"
    assert breaches("impl", source, is_package=True) == [
        "impl (impl's core) imports fencepost.impl.runtime.core_driver"
    ]


# ---- circles


def import_graph(sources: dict[str, str], packages: frozenset[str]) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports. sources: module -> source; packages: those that
    are an __init__."""
    graph = {}
    for module, source in sources.items():
        found = set()
        for name in imports(module, ast.parse(source), is_package=module in packages):
            target = name.removeprefix("fencepost.")
            while target and target not in sources:
                target = target.rpartition(".")[0]
            if target and target != module:
                found.add(target)
        # `from package import module` names both: the package itself is meant only where the name is its own
        graph[module] = {one for one in found if not any(other.startswith(f"{one}.") for other in found)}
    return graph


def folders_of(graph: dict[str, set[str]], parent: str) -> dict[str, set[str]]:
    """The same graph between the files and folders right below one folder ("" for the top)."""
    start = f"{parent}." if parent else ""
    inside: dict[str, set[str]] = {}
    for module, targets in graph.items():
        if module.startswith(start) and module != parent:
            room = module.removeprefix(start).split(".")[0]
            rooms = {one.removeprefix(start).split(".")[0] for one in targets if one.startswith(start)}
            inside.setdefault(room, set()).update(rooms - {room, ""})
    return inside


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one node (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


PACKAGES = frozenset(module_name(path) for path in SOURCES if path.name == "__init__.py")


@cache
def graph() -> dict[str, set[str]]:
    """Which file of the package imports which; made once, by the first test that asks, not by every process
    that collects."""
    return import_graph({module_name(path): path.read_text(encoding="utf-8") for path in SOURCES}, PACKAGES)


def test_no_files_import_each_other_in_a_circle():
    """Whoever reads a file can read what it needs first: no circle of files, imports for types included."""
    assert circles(graph()) == []


@pytest.mark.parametrize("parent", sorted(PACKAGES))
def test_no_folders_import_each_other_in_a_circle(parent):
    """The files and folders of one folder have an order, too."""
    assert circles(folders_of(graph(), parent)) == []


def test_a_planted_circle_of_files_and_of_folders_is_found():
    """A circle through three files is found, also where a name is imported for types only; so is one between
    two folders without a circle of files."""
    files = {
        "a.one": "from fencepost.a.two import x",
        "a.two": "def f():\n    from fencepost.a import three",
        "a.three": "if TYPE_CHECKING:\n    from fencepost.a.one import y",
        "a": "",
        "b": "",
    }
    assert circles(import_graph(files, frozenset({"a", "b"}))) == [["a.one", "a.three", "a.two"]]
    folders = {
        "a": "",
        "b": "",
        "a.x": "import fencepost.b.x",
        "b.y": "import fencepost.a.y",
        "a.y": "",
        "b.x": "",
    }
    planted = import_graph(folders, frozenset({"a", "b"}))
    assert circles(planted) == []
    assert circles(folders_of(planted, "")) == [["a", "b"]]


MOST_ROOMS = 24
"""Files and folders on one level of a folder: more than that no reader keeps in mind. About a dozen is the
aim."""


def test_no_folder_has_more_rooms_than_a_reader_keeps_in_mind():
    """A folder with many files wants folders of its own; campaign, the largest, has at most 20 rooms."""
    rooms = {parent or "fencepost": len(folders_of(graph(), parent)) for parent in PACKAGES}
    assert rooms.pop("fencepost") <= MOST_ROOMS + 6  # the house itself: five of them are files
    assert {name: count for name, count in rooms.items() if count > MOST_ROOMS} == {}
    assert rooms["campaign"] <= 20


def libraries_of(page: str) -> dict[str, tuple[str, ...]]:
    """Library -> its places, of the table in docs/explanation/architecture.md."""
    found = {}
    for line in page.splitlines():
        cells = [re.findall(r"`([\w.]+)`", cell) for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and len(cells[0]) == 1 and cells[1]:
            found[cells[0][0]] = tuple(cells[1])
    return found


def test_the_page_names_every_library_and_where_it_may_be_imported():
    """Who reads the page sees the places that the rule allows; a row that lacks or differs is seen."""
    page = (PACKAGE.parent / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    assert libraries_of(page) == ONLY_IN
    assert "mfusepy" not in libraries_of(page.replace("| `mfusepy` |", "| mfusepy |"))
    changed = libraries_of(page.replace("| `systems.disk` | a disk", "| `systems` | a disk"))
    assert changed["mfusepy"] == ("systems",)
