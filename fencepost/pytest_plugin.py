"""The pytest plugin: fixtures for recorded histories and clusters, and campaigns as tests
(docs/how-to/pytest.md).

Owns options, markers, fixtures, which seeds a test gets, and where artefacts go. Must not know how anything
is run, judged or reported.

Nothing but pytest is imported before a fixture or a marker of this plugin is used, so other test suites
only pay for importing this file.
"""

import inspect
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fencepost.history import History

CAMPAIGN, CLUSTER, HISTORY = "fencepost_campaign", "fencepost_cluster", "fencepost_history"
KAFKA, KAFKA_SHARED = "fencepost_kafka", "fencepost_kafka_shared"
"""The fixtures."""
CLAIMS = "fencepost_claims"
"""The marker of what a test knows about its traces."""
MOST_TRIES = 2
"""Runs without a strike until the test counts as passing without it."""
CHAOS = "_fencepost_chaos"
"""The fixture of the seed of chaos."""
CHAOS_SEEDS = re.compile(r"(?P<begin>\d{1,9})(:(?P<end>\d{1,9}))?")
FRESH_SEEDS = re.compile(r"fresh:(?P<count>[1-9]\d{0,3})")
SECONDS_OF_A_DAY = 86_400
FIXTURES = (CAMPAIGN, CLUSTER, HISTORY, KAFKA, KAFKA_SHARED)
CHUNK = 10
"""Seeds to a test, unless the marker says otherwise: what xdist spreads."""
SHRINK_S = 20.0
REPEAT = 3
"""Repetitions of a test that failed on an embedded Kafka: enough to distinguish always from seldom."""
FOLDER = ".fencepost"
LONGEST_NAME = 100
"""Characters of a test's name in a folder's name: file systems allow 255 bytes, and a hash follows."""
_FAILED = pytest.StashKey[bool]()
_FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("fencepost", "fencepost: consistency testing")
    group.addoption(
        "--fencepost-seed",
        type=int,
        metavar="N",
        help="Run this seed only, in campaign tests and simulated clusters.",
    )
    group.addoption(
        "--fencepost-seeds",
        metavar="A:B",
        help="Seeds of campaign tests, in place of those of their markers.",
    )
    group.addoption(
        "--fencepost-chaos",
        metavar="N|A:B|fresh:N",
        help="Run each test of the fixture fencepost_kafka under chaos of this seed, or once for each seed "
        "from A to B - 1, or of N seeds that are others each day; in place of those that tests name.",
    )
    group.addoption(
        "--fencepost-strike",
        action="append",
        metavar="NAME",
        help="Of chaos at applications carry out this strike only, by the name that the report of a failed "
        "test gives, such as 'kill, idle'; may be repeated.",
    )
    group.addoption(
        "--fencepost-dir",
        metavar="DIR",
        help=f"Where failures leave traces, plans and reports. [default: {FOLDER} in the root directory]",
    )
    group.addoption(
        "--fencepost-shrink",
        type=float,
        default=SHRINK_S,
        metavar="SECONDS",
        help=f"Time to shrink a failing plan, or a chaos, for; 0 for not at all. [default: {SHRINK_S:g}]",
    )
    group.addoption(
        "--fencepost-repeat",
        type=int,
        default=REPEAT,
        metavar="N",
        help=f"How often a test that failed on an embedded Kafka runs again, to say how often it fails; 0 "
        f"for not at all. [default: {REPEAT}]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The markers. Refuses seeds of chaos that are none."""
    _settle_fresh(config)
    _chaos_seeds(config)
    config.addinivalue_line(
        "markers",
        f"campaign(seeds, profile='default', bug=None, plan=None, chunk={CHUNK}): run seeded "
        f"fault-injection runs and judge each;"
        " seeds: how many, A:B, a range or a list.",
    )
    config.addinivalue_line(
        "markers",
        "fencepost_cluster(brokers=3, partitions=1, replication_factor=3, seed=0, bug=None, real=False, "
        "plan=None):"
        " the cluster of the fixture of that name.",
    )
    config.addinivalue_line(
        "markers",
        "fencepost_kafka(brokers=3, topics=('t',), judged=True, seed=0, process=False, **options of a "
        "cluster):"
        " the Kafka of the fixtures fencepost_kafka and fencepost_kafka_shared; topics may be a dict of "
        "partitions.",
    )
    config.addinivalue_line(
        "markers",
        f"{CLAIMS}(claims=None, *, broker_config=None): what the judges of fencepost_history and "
        "fencepost_kafka may take for granted, as fencepost.record.claimed.claimed takes it.",
    )


# ---- campaigns


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> None:
    """A test that is marked as a campaign uses the fixture, also if it does not request it. collector, name,
    obj: pytest's."""
    is_test = getattr(collector, "funcnamefilter", None)
    if is_test is None or not is_test(name) or not callable(obj) or isinstance(obj, type):
        return
    marks = (*getattr(obj, "pytestmark", ()), *collector.iter_markers("campaign"))
    if any(mark.name == "campaign" for mark in marks):
        pytest.mark.usefixtures(CAMPAIGN)(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The chunks of seeds of a campaign; the seeds of chaos."""
    seeds = _chaos_seeds(metafunc.config)
    if len(seeds) > 1 and CHAOS in metafunc.fixturenames:
        metafunc.parametrize(CHAOS, seeds, indirect=True, ids=[f"chaos{seed}" for seed in seeds])
    marker = metafunc.definition.get_closest_marker("campaign")
    if marker is None or CAMPAIGN not in metafunc.fixturenames:
        return
    from fencepost.campaign.chunks import chunks_of
    from fencepost.traces.errors import FencepostError

    option = metafunc.config.getoption
    try:
        chunks = chunks_of(
            marker.args,
            dict(marker.kwargs),
            seed=option("fencepost_seed"),
            seeds=option("fencepost_seeds"),
            size=CHUNK,
        )
    except FencepostError as error:
        pytest.fail(f"{metafunc.definition.nodeid}: {error}", pytrace=False)
    metafunc.parametrize(CAMPAIGN, chunks, indirect=True, ids=[chunk.name for chunk in chunks])


@pytest.fixture
def fencepost_campaign(request: pytest.FixtureRequest) -> Any:
    """The runs of a chunk of seeds of a campaign: `fencepost_campaign.assert_nothing_found()`, or `.runs()`
    for assertions of your own.

    Needs `@pytest.mark.campaign(seeds=...)`. A marked test that does not ask for the fixture asserts that
    nothing is found before its body runs.
    """
    _refuse_claims(request.node)
    if not hasattr(request, "param"):
        pytest.fail(f"{CAMPAIGN} needs the marker: @pytest.mark.campaign(seeds=100)", pytrace=False)
    return request.param.kept_in(_folder(request.node), _shrink_s(request.config), _name_of(request.node))


# ---- clusters


@pytest.fixture
def fencepost_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster of three brokers with a topic `t`, simulated and in virtual time; `real=True` makes it one of
    processes over a real ZooKeeper.

    Options come from `@pytest.mark.fencepost_cluster(...)`, or as a dict by indirect parametrisation. At the
    end of the test a simulated cluster is healed, has to make progress, and its trace is judged: only Ok
    passes.
    """
    from fencepost.campaign.chunks import cluster_plan

    _refuse_claims(request.node)
    marker = request.node.get_closest_marker(CLUSTER)
    options: dict[str, Any] = {**(marker.kwargs if marker else {}), **getattr(request, "param", {})}
    seed = request.config.getoption("fencepost_seed")
    if seed is not None:
        options["seed"] = seed
    real = options.pop("real", False)
    with _mistakes_in_a_sentence():
        plan = cluster_plan(options)
    if real:
        pytest.importorskip("kazoo", reason="a real cluster needs the extra zookeeper")
        from fencepost.systems.real_cluster import RealCluster

        folder = _folder(request.node) / "cluster"
        with ExitStack() as stack:
            with _mistakes_in_a_sentence():
                processes = stack.enter_context(RealCluster.started(folder, plan))
            yield processes
    else:
        from fencepost.run.simulated.simulated_cluster import SimulatedCluster

        with _mistakes_in_a_sentence():
            cluster = SimulatedCluster.start(plan)
        yield cluster
    _remove_unless_failed(request.node)


# ---- a Kafka for tests


@pytest.fixture(scope="session")
def _fencepost_forks() -> Iterator[None]:
    """The processes of all clusters are forked from one, which stays until the session ends."""
    from fencepost.processes import forking

    with forking.kept():
        yield


def _settle_fresh(config: pytest.Config) -> None:
    """Which seeds are today's, once for all processes of a run: they get the options as they are now."""
    found = FRESH_SEEDS.fullmatch(config.getoption("fencepost_chaos") or "")
    if found is not None:
        count = int(found["count"])
        begin = int(time.time() // SECONDS_OF_A_DAY) * count
        config.option.fencepost_chaos = f"{begin}:{begin + count}"


def _chaos_seeds(config: pytest.Config) -> list[int]:
    """Of the command line; none without the option."""
    text = config.getoption("fencepost_chaos")
    if text is None:
        return []
    found = CHAOS_SEEDS.fullmatch(text)
    if found is None or (found["end"] and int(found["end"]) <= int(found["begin"])):
        raise pytest.UsageError(
            f"--fencepost-chaos: expected a seed such as 3, seeds such as 0:20, or fresh:20, saw {text!r}"
        )
    return list(range(int(found["begin"]), int(found["end"] or int(found["begin"]) + 1)))


@pytest.fixture
def _fencepost_chaos(request: pytest.FixtureRequest) -> int | None:
    """The seed of the chaos of this test; None without the option."""
    seeds = _chaos_seeds(request.config)
    seed: int | None = getattr(request, "param", seeds[0] if seeds else None)
    return seed


@pytest.fixture
def fencepost_kafka(
    request: pytest.FixtureRequest, _fencepost_forks: None, _fencepost_chaos: int | None
) -> Iterator[Any]:
    """An embedded Kafka of this test's own: `bootstrap_servers` for any client, verbs that break it
    (docs/how-to/embedded.md).

    Options come from `@pytest.mark.fencepost_kafka(...)`. When the test's own assertions hold, the cluster is
    healed, has to make progress, and what was recorded is judged: only Ok passes. A test in which no request
    of a client met a fault warns.
    """
    options = _kafka_options(request.node, getattr(request, "param", {}))
    claimed = _claimed(request.node)
    only = request.config.getoption("fencepost_strike")
    with _kafka(options, _fencepost_chaos, None if only is None else tuple(only)) as kafka:
        kafka.claimed = claimed
        kafka.folder = _folder(request.node)
        yield kafka
    _remove_unless_failed(request.node)


@pytest.fixture(scope="module")
def fencepost_kafka_shared(request: pytest.FixtureRequest, _fencepost_forks: None) -> Iterator[Any]:
    """One embedded Kafka for all tests of a module; options from a marker of the module (`pytestmark`). It is
    not judged: what one test breaks, it heals."""
    marker = request.node.get_closest_marker(KAFKA)
    options = dict(marker.kwargs) if marker else {}
    options.pop("judged", None)
    with _kafka(options) as kafka:
        yield kafka


def _kafka_options(item: pytest.Item, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of the marker, of an indirect parameter, of the command line."""
    marker = item.get_closest_marker(KAFKA)
    options: dict[str, Any] = {**(marker.kwargs if marker else {}), **(given or {})}
    options.pop("judged", None)
    seed = item.config.getoption("fencepost_seed")
    if seed is not None:
        options["seed"] = seed
    return options


@contextmanager
def _kafka(
    options: dict[str, Any], chaos: int | None = None, only: tuple[str, ...] | None = None
) -> Iterator[Any]:
    import fencepost.kafka

    topics = options.pop("topics", ("t",))
    minimum = options.pop("min_insync_replicas", None)
    config = None if minimum is None else {"min.insync.replicas": str(minimum)}
    with ExitStack() as stack:
        with _mistakes_in_a_sentence():
            kafka = stack.enter_context(fencepost.kafka.cluster(**options))
            for name in topics:
                partitions = topics[name] if isinstance(topics, dict) else 1
                kafka.create_topic(name, partitions=partitions, config=config)
            kafka.only_strikes = only
            if chaos is not None:
                kafka.chaos_seed = chaos
                kafka.chaos(chaos)
        yield kafka


def _judge_kafka(item: pytest.Function) -> None:
    from fencepost.kafka.judgement import met_requests

    marker = item.get_closest_marker(KAFKA)
    if marker is not None and not marker.kwargs.get("judged", True):
        return
    kafka: Any = item.funcargs[KAFKA]
    exercised = kafka.assert_ok()
    if kafka.last_chaos is not None and kafka.aimed:
        from fencepost.kafka.chaos.reached import reached_words

        reached = kafka.reached()
        words = reached_words(kafka.last_chaos, reached)
        exercised += f"; {words}"
        if not reached["strikes"]:
            item.warn(pytest.PytestWarning(f"no strike of chaos met a client: {words}"))
    item.add_report_section("call", "fencepost", exercised)
    if not met_requests(kafka.end()):
        item.warn(pytest.PytestWarning(f"no request of a client met a fault: {exercised}"))


# ---- histories


@pytest.fixture
def fencepost_history(request: pytest.FixtureRequest) -> "Iterator[History]":
    """A new history for each test, to record operations around any client; `assert_linearizable` keeps
    its trace if the test fails."""
    from fencepost.history import History

    yield History(folder=_folder(request.node), claimed=_claimed(request.node))
    _remove_unless_failed(request.node)


# ---- claims


def _claimed(item: pytest.Item) -> Any:
    """What puts the claims of the test's closest marker into a trace; None without a marker. A path in it is
    relative to the root directory of pytest."""
    marker = item.get_closest_marker(CLAIMS)
    if marker is None:
        return None
    from fencepost.record.claimed import outside_claims, under_claims

    def stated(claims: Any = None, *, broker_config: Any = None) -> Any:
        if not isinstance(claims, str | Path | Mapping | None):
            raise TypeError
        root = item.config.rootpath
        return outside_claims(
            claims_file=root / claims if isinstance(claims, str | Path) else claims,
            broker_config=None if broker_config is None else root / broker_config,
        )

    try:
        with _mistakes_in_a_sentence():
            outside = stated(*marker.args, **marker.kwargs)
    except TypeError:
        given = ", ".join(
            [*map(repr, marker.args), *(f"{name}={marker.kwargs[name]!r}" for name in marker.kwargs)]
        )
        raise pytest.fail.Exception(
            f"{item.nodeid}: expected {CLAIMS}(claims, broker_config=FILE), where claims are an object or a "
            f"file of claims, saw {given}",
            pytrace=False,
        ) from None
    return partial(under_claims, outside=outside)


def _refuse_claims(item: pytest.Item) -> None:
    """The judges of a simulated run know from its plan what they may demand."""
    if any(marker.name == CLAIMS for marker in item.own_markers):
        pytest.fail(
            f"{item.nodeid}: expected {CLAIMS} with {HISTORY} or {KAFKA}; what may be demanded of a "
            "simulated run follows from its plan",
            pytrace=False,
        )


# ---- around every test


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Judge marked campaigns and used clusters after the test's own code; their reports come
    without a traceback."""
    if not {CAMPAIGN, CLUSTER, KAFKA} & set(pyfuncitem.fixturenames):
        return (yield)
    from fencepost.campaign.failure import RunFailedError

    try:
        if CAMPAIGN in pyfuncitem.fixturenames and CAMPAIGN not in pyfuncitem._fixtureinfo.argnames:
            chunk: Any = pyfuncitem.funcargs[CAMPAIGN]
            chunk.assert_nothing_found()
        result = yield
        if CLUSTER in pyfuncitem.funcargs:
            _judge_cluster(pyfuncitem)
        if KAFKA in pyfuncitem.funcargs:
            _judge_kafka(pyfuncitem)
        return result
    except RunFailedError as error:
        report = str(error)
        if KAFKA in pyfuncitem.funcargs:
            report += _shown_again(pyfuncitem)
    return pytest.fail(report, pytrace=False)


def _shown_again(item: pytest.Function) -> str:
    """How often the test fails when it is repeated, each time on a new cluster with the same options
    and seed, and under how little of its chaos. Requests come from outside, so a seed does not replay."""
    times: int = item.config.getoption("fencepost_repeat")
    if times < 1 or inspect.iscoroutinefunction(item.obj):
        return ""
    failed: Any = item.funcargs[KAFKA]
    failures = sum(_fails_again(item, failed.only_strikes) for _ in range(times))
    words = f"\nrepeated with the same seed: it failed in {failures} of {times} repetitions"
    names = failed.reached()["names"] if failed.last_chaos is not None and failed.aimed else []
    if not failures or not names:
        return words
    from fencepost.kafka.chaos.reached import shrunk_words
    from fencepost.kafka.chaos.shrunk import shortest

    left = shortest(
        names,
        lambda only: _fails_again(item, only),
        tries=min(times, MOST_TRIES),
        seconds=_shrink_s(item.config),
    )
    if len(left) < len(names):
        failed.only_strikes = left
    shrunk = shrunk_words(names, left)
    return f"{words}\n{shrunk}" if shrunk else words


def _fails_again(item: pytest.Function, only: tuple[str, ...] | None) -> bool:
    """Whether the test fails once more, on a new cluster, under these strikes."""
    failed: Any = item.funcargs[KAFKA]
    chaos: Any = item.funcargs.get(CHAOS)
    with _kafka(_kafka_options(item), chaos, only) as kafka:
        kafka.claimed = failed.claimed
        wanted = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
        try:
            item.obj(**{**wanted, KAFKA: kafka})
            kafka.assert_ok()
        except (Exception, pytest.fail.Exception):
            return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """If the test `item` failed before its teardown, save what its fixtures recorded, and name the folder in
    its report. Its own assertion or exception counts as a failure. call: the phase of the test."""
    report: pytest.TestReport = yield
    if report.failed and call.when != "teardown":
        item.stash[_FAILED] = True
        _keep(item, report)
        _say_how_to_repeat(item, report)
    return report


def _keep(item: pytest.Item, report: pytest.TestReport) -> None:
    """Trace, plan, timeline and page of what the fixtures of a failed test recorded."""
    funcargs: dict[str, Any] = getattr(item, "funcargs", {})
    used = {name: funcargs[name] for name in FIXTURES if name in funcargs}
    if not used:
        return
    from fencepost.campaign.kept import keep_chunk, keep_cluster
    from fencepost.history.kept import keep_history
    from fencepost.kafka.kept import keep_kafka

    keepers: dict[str, Any] = {
        CAMPAIGN: keep_chunk,
        CLUSTER: keep_cluster,
        HISTORY: keep_history,
        KAFKA: partial(keep_kafka, failure=_failure_of(report)),
        KAFKA_SHARED: partial(keep_kafka, failure=_failure_of(report)),
    }
    for name, value in used.items():
        words = keepers[name](value, _folder(item))
        if words:
            report.sections.append((f"kept by {name}", words))


def _failure_of(report: pytest.TestReport) -> str:
    """The first line of what pytest says of a failure; "" if it says nothing short."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", "")).partition("\n")[0]


def _say_how_to_repeat(item: pytest.Item, report: pytest.TestReport) -> None:
    """The command that repeats a failed test with its seeds, if it had a Kafka of its own."""
    kafka: Any = getattr(item, "funcargs", {}).get(KAFKA)
    if kafka is None:
        return
    from fencepost.kafka.chaos.reached import repeating_line

    place = os.path.relpath(item.path, item.config.invocation_params.dir)
    test = "::".join([place, *item.nodeid.split("::")[1:]])
    test = re.sub(r"\[chaos\d+\]$|-chaos\d+(?=[]-])|(?<=\[)chaos\d+-", "", test)
    seed = _kafka_options(item).get("seed", 0)
    line = repeating_line(test, seed, kafka.last_chaos, kafka.only_strikes)
    report.sections.append(("repeat it", line))


def _judge_cluster(item: pytest.Function) -> None:
    from fencepost.campaign.failure import Keeping, assert_ok
    from fencepost.checkers.judges import DEFAULT_CHECKS

    cluster: Any = item.funcargs[CLUSTER]
    keeping = Keeping(folder=_folder(item) / "run", shrink_s=_shrink_s(item.config))
    assert_ok(cluster.end(), keeping, cluster.checks or DEFAULT_CHECKS)


# ---- artefacts


def _shrink_s(config: pytest.Config) -> float:
    seconds: float = config.getoption("fencepost_shrink")
    return seconds


def _folder(item: pytest.Item) -> Path:
    """Where this test leaves its artefacts; those of an earlier run of it are removed. Nothing is made before
    something is kept."""
    if _FOLDER in item.stash:
        return item.stash[_FOLDER]
    given = item.config.getoption("fencepost_dir")
    root = Path(given).absolute() if given else item.config.rootpath / FOLDER
    name = re.sub(r"[^A-Za-z0-9_.=-]+", "-", item.nodeid)[-LONGEST_NAME:].strip("-")
    digest = blake2b(item.nodeid.encode(), digest_size=4).hexdigest()
    folder = root / f"{name}-{digest}"
    shutil.rmtree(folder, ignore_errors=True)
    item.stash[_FOLDER] = folder
    return folder


def _name_of(item: pytest.Item) -> str:
    """The test without its parameters, as the command line takes it from where pytest was started."""
    place = os.path.relpath(item.path, item.config.invocation_params.dir)
    return "::".join([place, *item.nodeid.partition("[")[0].split("::")[1:]])


def _remove_unless_failed(item: pytest.Item) -> None:
    if not item.stash.get(_FAILED, False):
        shutil.rmtree(_folder(item), ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The default folder of artefacts stays out of version control, and does not stay where it is empty."""
    root = session.config.rootpath / FOLDER
    if root.is_dir() and not hasattr(session.config, "workerinput"):
        with suppress(OSError):
            root.rmdir()
            return
        (root / ".gitignore").write_text("*\n")


@contextmanager
def _mistakes_in_a_sentence() -> Iterator[None]:
    """A mistake of the caller ends the test with its sentence."""
    from fencepost.traces.errors import FencepostError

    try:
        yield
    except FencepostError as error:  # without it as context, which pytest would show, too
        raise pytest.fail.Exception(str(error), pytrace=False) from None
