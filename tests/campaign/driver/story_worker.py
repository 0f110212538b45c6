"""A campaign's worker whose runs and verdicts play a story: the worker process is the real one, run and judge
are not.

Read from the environment: STORY, a JSON object with a word for some seeds (no word: a healthy run); MARKS,
the folder in which runs leave their marks; DRIVER, the number of the driver's process.
"""

import json
import os
import sys
import time
import types
from pathlib import Path

from attrs import evolve

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.canonical_rows import Rows, rows_of
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Trace

SHOWN = {
    "expired": Name.SESSION_EXPIRED,
    "refused": Name.ISR_REFUSED,
    "interrupted, refused": Name.ISR_REFUSED,
}
"""Words for runs with one event that is a mark."""


def word_of(seed: int) -> str:
    return json.loads(os.environ["STORY"]).get(str(seed), "ok")


def first_time(name: str) -> bool:
    try:
        (Path(os.environ["MARKS"]) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def interrupt() -> None:
    if first_time("interrupted"):
        os.kill(int(os.environ["DRIVER"]), 2)


def run_with_rows(plan: Plan) -> tuple[Trace, Rows]:
    word = word_of(plan.seed)
    if word == "kill" or (word == "kill once" and first_time(f"killed-{plan.seed}")):
        os.kill(os.getpid(), 9)
    if word == "hang":
        time.sleep(60)
    if word == "raise":
        raise ValueError("a broker tripped")
    if word == "break":
        raise EnvironmentError_(expected="a world", seen="none", where="here")
    if word == "interrupted, refused":
        interrupt()
    (Path(os.environ["MARKS"]) / f"run-{plan.seed}-{os.getpid()}").touch()
    software = os.environ["PYTHONHASHSEED"] if word == "drift" else "x"
    shown = SHOWN.get(word)
    events = (Event(time=1, name=shown, node=1, topic="t", partition=0),) if shown else ()
    trace = Trace(
        trace_id=plan.seed, plan=software, seed=plan.seed, software_version="test", profile=plan.profile,
        events=events,
    )  # fmt: skip
    trace = evolve(trace, digest=digest_of(trace))
    return trace, rows_of(trace)


def judge(trace: Trace, checks: tuple[str, ...] = ()) -> tuple[Verdict, ...]:
    word = word_of(trace.seed)
    if word == "kill judge once" and first_time(f"judge-{trace.seed}"):
        os.kill(os.getpid(), 9)
    if word == "interrupt":
        interrupt()
    if word.startswith("find "):
        finding = Finding(anomaly=word[5:], check="fake", expected="a", seen="b", operations=(1, 2))
        return (Verdict(decision=Decision.ILLEGAL, check="fake", findings=(finding,)),)
    if word == "weak":
        return (Verdict(decision=Decision.ASSUMPTION_BROKEN, check="fake", reason="no final read"),)
    if word == "unknown":
        return (Verdict(decision=Decision.UNKNOWN, check="fake", reason="too large"),)
    return (Verdict(decision=Decision.OK, check="fake"),)


def main() -> None:
    from fencepost.campaign.workers import worker

    worker.main()


for name, function in (("fencepost.run.simulated.run", run_with_rows), ("fencepost.checkers.judges", judge)):
    module = types.ModuleType(name)
    setattr(module, function.__name__, function)
    setattr(module, "load", lambda: None)  # noqa: B010  (of the judges: what a loaded process has ready)
    sys.modules[name] = module
import fencepost.campaign.workers.worker  # noqa: E402, F401 (loaded before a process is forked)
