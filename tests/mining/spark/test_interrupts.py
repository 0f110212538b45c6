"""Ctrl-C while Spark is in use: no call to the JVM is cut, no JVM is left, nothing is logged as an error."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ended_drivers import after_ctrl_c, group

from fencepost.mining.spark.interrupts import Patience, patient_interrupts
from tests.checkers import lab

LIMIT_S = 600
CALL = """
def call(interrupt):
    interrupt()
    for _ in range(200_000):  # the answer is read: a handler may run between any two of these
        pass
    return "the whole answer"
"""


def _call_of(module: str):
    names = {"__name__": module}
    exec(compile(CALL, module, "exec"), names)
    return names["call"]


def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _waits(answers: list[str]) -> None:
    """Ends by the interrupt, whenever that comes."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        time.sleep(0.001)
    raise AssertionError(f"no interrupt after {answers}")


@pytest.mark.parametrize("module", ["py4j.clientserver", "pyspark.sql.session"])
def test_a_call_to_the_jvm_is_not_cut(module: str) -> None:
    """Rule: an interrupt in the middle of a call is raised when the call is over, and not lost."""
    answers: list[str] = []
    with patient_interrupts(), pytest.raises(KeyboardInterrupt):
        answers.append(_call_of(module)(_press))
        _waits(answers)
    assert answers == ["the whole answer"]


def test_other_code_is_interrupted_at_once() -> None:
    """Rule: outside of such calls Ctrl-C is as prompt as ever; afterwards the handler is the one of
    before."""
    before, answers = signal.getsignal(signal.SIGINT), []
    with patient_interrupts(), pytest.raises(KeyboardInterrupt):
        answers.append(_call_of("fencepost.mining")(_press))
    assert answers == [] and signal.getsignal(signal.SIGINT) is before


def test_what_is_ignored_stays_ignored() -> None:
    """Rule: under nohup, where SIGINT is ignored, and where SIGTERM ends the process, nothing is changed."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with patient_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interruption_is_not_logged_as_an_error(caplog) -> None:
    """Rule: what py4j logs of a Ctrl-C is dropped while a session is there, and nothing else; then all is as
    before."""
    root, library = logging.getLogger(), logging.getLogger("py4j")
    before = list(root.filters), library.level  # another session of this process may be there
    with patient_interrupts():
        root.error("KeyboardInterrupt while sending command.")
        logging.getLogger("py4j.clientserver").error("There was an exception")
        root.error("something else")
    assert (list(root.filters), library.level) == before
    assert caplog.messages == ["something else"]


def test_what_must_end_ends() -> None:
    """Rule: interrupted as often as you like, work in a thread of its own goes to its end first."""
    done: list[str] = []

    def work() -> None:
        for _ in range(5):
            _press()
            time.sleep(0.02)
        done.append("a session")

    with patient_interrupts() as patience, pytest.raises(KeyboardInterrupt):
        patience.to_the_end(work)
        _waits(done)
    assert done == ["a session"]
    time.sleep(0.1)  # the last of them has gone by
    with pytest.raises(ZeroDivisionError):
        Patience().to_the_end(lambda: 1 // 0)


@pytest.mark.spark
def test_a_mining_that_is_interrupted_while_the_jvm_starts_leaves_no_process(make, tmp_path: Path) -> None:
    """Rule: Ctrl-C in a terminal (to every process) is one sentence and exit code 130; no process is left. So
    it is while tasks run (test_faults.py)."""
    store = tmp_path / "in"
    lab.stored(store, (make(number, "legal") for number in range(20)), sealed=False)
    out, program = tmp_path / "out", "from fencepost.cli import main; main()"
    command = [sys.executable, "-c", program, "mine", str(store), "--out", str(out), "--master", "local[1]"]
    driver = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + LIMIT_S
    while (
        not any("SparkSubmit" in line for line in group(driver.pid))
        and driver.poll() is None
        and time.monotonic() < end
    ):
        time.sleep(0.25)  # each `ps` takes processor time
    said, told = after_ctrl_c(driver)
    assert driver.returncode == 130, (said, told)
    assert said == "" and told.splitlines()[-1] == "fencepost: interrupted"
    assert "Traceback" not in told and "rror" not in told, told
