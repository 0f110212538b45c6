"""How xdist spreads the tests, and the guard of the Spark session that they share (tests/conftest.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field


@pytest.fixture
def conftest(pytestconfig: pytest.Config) -> Any:
    """The plugin that runs these tests."""
    return pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))


@define(eq=False)
class Worker:
    """A worker of xdist that runs one test each time it is asked."""

    ids: list[str]
    gateway: Any = None
    shutting_down: bool = False
    waiting: list[int] = field(factory=list)
    ran: list[str] = field(factory=list)

    def send_runtest_some(self, indices: list[int]) -> None:
        self.waiting += indices

    def shutdown(self) -> None:
        self.shutting_down = True


IDS = [f"tests/wire/test_many.py::test[{number}]" for number in range(40)]
IDS += [
    "tests/cli/test_demo.py::test_a",
    "tests/cli/test_other.py::test_a",
    "tests/cli/test_other.py::test_b@1",
]
IDS += [f"tests/wire/test_{number}.py::test_{at}" for number in range(9) for at in range(number % 3 + 1)]
IDS += [
    "tests/mining/a/test_x.py::test_1[@::/]",
    "tests/mining/test_y.py::test_2",
    "tests/test_alone.py::test",
]


def test_what_shares_goes_to_one_worker_and_what_takes_long_begins_first(conftest) -> None:
    """All tests run once; those of a file, and of files that share Spark, in one worker and in order; Spark
    begins first although other files have more tests."""
    values = {"dist": "loadfile", "tx": ["2*popen"], "rsyncdir": []}
    config = SimpleNamespace(
        getvalue=values.__getitem__,
        getoption=lambda name: None,
        option=SimpleNamespace(loadscopereorder=True),
    )
    scheduler = conftest.pytest_xdist_make_scheduler(config, None)
    workers = [Worker(IDS, gateway=SimpleNamespace(id=name)) for name in ("gw0", "gw1")]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, IDS)
    scheduler.schedule()
    while scheduler.has_pending:
        for worker in workers:
            for index in worker.waiting[:1]:
                worker.waiting.pop(0)
                worker.ran.append(IDS[index])
                scheduler.mark_test_complete(worker, index)
    assert sorted(workers[0].ran + workers[1].ran) == sorted(IDS)
    units = [[conftest.unit_of(nodeid) for nodeid in worker.ran] for worker in workers]
    assert not set(units[0]) & set(units[1])
    assert units[0][:3] == [conftest.SPARK] * 3 and units[1][:2] == ["tests/cli/test_other.py"] * 2
    for worker, of in zip(workers, units, strict=True):
        assert len(list(groupby(of))) == len(set(of))
        for unit in set(of):
            mine = [nodeid for nodeid in worker.ran if conftest.unit_of(nodeid) == unit]
            assert mine == [nodeid for nodeid in IDS if nodeid in mine]
    assert conftest.pytest_xdist_make_scheduler(SimpleNamespace(getvalue=lambda _: "load"), None) is None


def test_a_file_with_spark_outside_of_its_group_is_named(conftest) -> None:
    """Rule: a test that needs the session is where the session is."""

    def item(path: str, *markers: str) -> Any:
        return SimpleNamespace(
            nodeid=f"{path}::test",
            location=(path, 1, "test"),
            get_closest_marker=lambda name: name in markers,
        )

    conftest.pytest_collection_modifyitems(
        [item("tests/mining/test_new.py", "spark"), item("tests/x/test_y.py")]
    )
    with pytest.raises(pytest.UsageError, match=r"lacks files with tests on Spark: .'tests/x/test_y.py'"):
        conftest.pytest_collection_modifyitems([item("tests/x/test_y.py", "spark")])


@pytest.mark.parametrize("after", ["stopped", "replaced"])
def test_who_stops_the_session_of_all_tests_is_named(conftest, after: str) -> None:
    """Rule: the culprit fails, whatever runs next in this worker."""
    contexts: list[object] = [object(), None if after == "stopped" else object()]
    with (
        pytest.raises(AssertionError, match=r"test_y\.py::test_z stopped the session of all tests"),
        conftest.session_kept("tests/x/test_y.py::test_z", lambda: contexts.pop(0)),
    ):
        pass


def test_a_test_may_begin_the_session_or_leave_it(conftest) -> None:
    """Rule: the guard blames nobody else, nor hides why a test failed."""
    for before in (None, object()):
        contexts = [before, before or object()]
        with conftest.session_kept("x", lambda contexts=contexts: contexts.pop(0)):
            pass
    with pytest.raises(KeyError), conftest.session_kept("x", object):
        raise KeyError


def test_each_test_runs_in_the_guard(conftest, monkeypatch) -> None:
    """Rule: no test is exempt."""
    guarded: list[str] = []

    @contextmanager
    def noting(nodeid: str) -> Iterator[None]:
        guarded.append(nodeid)
        yield

    monkeypatch.setattr(conftest, "session_kept", noting)
    running = conftest.pytest_runtest_call(SimpleNamespace(nodeid="tests/x/test_y.py::test_z"))
    next(running)
    assert guarded == ["tests/x/test_y.py::test_z"]
    with pytest.raises(StopIteration):
        running.send(None)
