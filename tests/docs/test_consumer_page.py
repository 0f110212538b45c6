"""Does my consumer lose records? What the page has a reader type is run, in Python and in Java, against an
embedded cluster: the consumer is killed in its work, and takes over."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fencepost.kafka
from fencepost.application.event_columns import read_events
from fencepost.checkers.application.application_events import Kind
from fencepost.checkers.application.application_judge import judge_events
from fencepost.cli import run
from fencepost.cli.check.application import EMITTERS
from fencepost.traces.errors import ExitCode
from tests.services.other_languages import JAVA, library
from tests.torture.built_client import built_or_skipped

PAGE = Path("docs/how-to/consumer.md")
NAMED = re.compile(r"```python\n# (\w+\.\w+)\n(.*?)```", re.DOTALL)
"""A program, and the name of its file."""
ORDERS, BOUND_S = 200, 600
AT = ("orders", 0)
EVERY = pytest.mark.skipif(
    not os.environ.get("FENCEPOST_EVERY_SERVICE"), reason="FENCEPOST_EVERY_SERVICE is not set"
)
LEFT = 15
"""Orders that are committed and not processed yet, when the consumer is killed: of a batch of 50."""
LOST = {"record_never_processed", "record_never_received"}


def copied(folder: Path, capsys: pytest.CaptureFixture[str], language: str) -> None:
    """The page's programs, the one that it links to, and the emitters."""
    (folder / "app").mkdir()
    for name, text in NAMED.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(text)
    shutil.copy("docs/examples/consumer/Billing.java", folder)
    for each in {"python", language}:
        assert run(["check", "--emitter", each]) == ExitCode.NOTHING_FOUND
        (folder / EMITTERS[each]).write_text(capsys.readouterr().out)


def in_python(folder: Path) -> list[str]:
    return [sys.executable, "billing.py"]


def in_java(folder: Path) -> list[str]:
    jars = f"{built_or_skipped(library(JAVA)).folder}/jars/*"
    words = ["javac", "-cp", jars, "Billing.java", "FencepostEvents.java"]
    subprocess.run(words, cwd=folder, check=True, timeout=BOUND_S)
    return ["java", "-cp", f"{jars}:.", "Billing"]


@pytest.mark.parametrize(
    ("language", "command", "found"),
    [("python", in_python, LOST), pytest.param(JAVA, in_java, set(), marks=[pytest.mark.java, EVERY])],
)
def test_a_reader_of_the_page_has_a_verdict(
    language: str,
    command: Callable[[Path], list[str]],
    found: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rule: the page's consumer that commits before its work is convicted, the one that commits after it is
    not, though both are killed in the middle."""
    copied(tmp_path, capsys, language)
    words, app = command(tmp_path), tmp_path / "app"
    with fencepost.kafka.cluster() as kafka:

        def committed() -> int:
            return kafka.committed("billing").get(AT, 0)

        def in_work() -> bool:
            processed = sum(read_events(sorted(app.glob("billing*"))).kind == Kind.PROCESSED)
            return bool(processed) and (not found or committed() - processed >= LEFT)

        servers = kafka.bootstrap_servers
        subprocess.run([sys.executable, "shop.py", servers], cwd=tmp_path, check=True, timeout=BOUND_S)
        for enough in (in_work, lambda: committed() == ORDERS):
            with subprocess.Popen([*words, servers], cwd=tmp_path) as process:
                try:
                    kafka.until(enough, BOUND_S)
                finally:
                    process.kill()
    verdict = judge_events(read_events(sorted(app.iterdir()))).verdict
    assert {each.anomaly for each in verdict.findings} <= found
    assert bool(verdict.findings) == bool(found)
