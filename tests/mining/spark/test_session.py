"""What the machine lacks is told in one sentence."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.mining.spark import session, spark_engine

STARTS = (
    "from fencepost.mining.spark.session import session\nwith session('local[1]', source=False) as spark:\n"
)
STARTS += " print(spark.sparkContext.parallelize([1, 2], 1).sum())"


def test_mining_imports_pyspark_only_when_it_runs() -> None:
    """The driver's modules are there without pyspark, so that a command line that mentions them starts
    quickly."""
    program = (
        "import sys; import fencepost.mining.mine, fencepost.mining.spark.session; print('pyspark' in "
        "sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("master", "with_retries"),
    [
        ("local", "local[1,2]"),
        ("local[*]", "local[*,2]"),
        ("local[2]", "local[2,2]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_tries_a_task_again(master: str, with_retries: str) -> None:
    """A worker that the kernel kills costs a local mining no more than one on a cluster, unless the caller
    says how often."""
    assert session._with_retries(master) == with_retries


@pytest.mark.parametrize(
    ("master", "said", "taken"),
    [
        ("local[*]", "/elsewhere/python", sys.executable),
        ("spark://host:7077", "./environment/bin/python", "./environment/bin/python"),
        ("local-cluster[2,1,1024]", "", sys.executable),
        (None, "./environment/bin/python", "./environment/bin/python"),
    ],
)
def test_a_cluster_takes_the_python_that_it_is_told(master, said: str, taken: str, monkeypatch) -> None:
    """On this machine workers are this interpreter; on a cluster PYSPARK_PYTHON says where theirs is."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "restored at the end")
    if said:
        monkeypatch.setenv("PYSPARK_PYTHON", said)
    session._name_python(master)
    assert os.environ["PYSPARK_PYTHON"] == taken
    monkeypatch.setenv("PYSPARK_PYTHON", "restored at the end")


def test_only_a_master_on_this_machine_is_bound_to_the_loopback() -> None:
    """A driver that executors elsewhere must reach does not hide on 127.0.0.1."""
    for master, here in (
        ("local[*]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://host:7077", False),
        ("yarn", False),
    ):
        assert ("spark.driver.host" in session._settings(master, {}, Path())) == here


@pytest.mark.parametrize(
    ("log", "raised", "said"),
    [
        (
            'Setting Spark log level to "ERROR".\n'
            "26/11/21 22:01:10 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All "
            "masters are unresponsive! Giving up.\n"
            "26/11/21 22:01:11 ERROR SparkContext: Error initializing SparkContext.\n",
            "An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.",
            "Application has been killed. Reason: All masters are unresponsive! Giving up.",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or '
            "start with spark, k8s, or local\n\tat x",
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "org.apache.spark.SparkException: Master must either be yarn or start with spark, k8s, or local",
        ),
        (
            "",
            "An error occurred while calling None.Session.\n: org.apache.spark.SparkException: Could not "
            "parse Master URL: 'x'\n\tat y",
            "org.apache.spark.SparkException: Could not parse Master URL: 'x'",
        ),
        (
            "",
            "Java gateway process exited before sending its port number.",
            "Java gateway process exited before sending its port number.",
        ),
        ("", "", "RuntimeError"),
    ],
)
def test_why_spark_did_not_start_is_told(log: str, raised: str, said: str, tmp_path: Path) -> None:
    """The JVM's first complaint or the cause inside the exception is told, not where it was raised."""
    (tmp_path / "jvm.log").write_text(log)
    assert session._last_words(tmp_path / "jvm.log", RuntimeError(raised)) == said


@pytest.mark.parametrize("master", ["local[2]", "spark://elsewhere:7077", None])
def test_minings_own_session_spares_the_second_compiler(master: str | None, monkeypatch) -> None:
    """A session that mining begins by itself asks for it in the place that a person's own options for the JVM
    come after. It needs no data source, for which Spark would start another Python."""
    asked = []

    @contextmanager
    def begun(of, *, settings, source, goes_on):
        asked.append((of, settings, source))
        yield None

    monkeypatch.setattr(spark_engine, "session", begun)
    monkeypatch.setattr(spark_engine, "run_tasks", lambda *_, **__: [])
    with spark_engine.Engine(master) as running:
        running.run([1], list, None)
    ((seen, settings, source),) = asked
    assert (seen, source) == (master, False)
    assert settings["spark.driver.defaultJavaOptions"].split()[0] == "-XX:TieredStopAtLevel=1"


@pytest.mark.java
def test_a_jvm_passes_over_an_archive_of_classes_that_is_none(monkeypatch, tmp_path):
    """Rule: the archive only saves time. Without one its option is absent; one of another Java, or half of
    one, is as if there were none, and nobody hears of it."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert session.java_options() == ""
    archive = session.archive_of()
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"half of one")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.prefix = {str(tmp_path)!r}\n{STARTS}"],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert (f"-XX:SharedArchiveFile={archive}" in session.java_options(), done.stdout) == (True, "3\n")
    assert "cds" not in done.stderr


@pytest.mark.spark
def test_a_session_that_is_there_already_is_used_and_goes_on(spark) -> None:
    """A notebook has a session: mining without `spark=` runs in it and does not stop it."""
    with spark_engine.Engine("local[1]") as running:
        assert running.run([1], list, None) == [1]
    with session.session("local[1]", settings={"spark.sql.shuffle.partitions": "7"}) as same:
        assert same.sparkContext is spark.sparkContext
        assert same.conf.get("spark.sql.shuffle.partitions") == "2"  # of tests/mining/conftest.py
    assert spark.sparkContext.parallelize([2], 1).collect() == [2]
