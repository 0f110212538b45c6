"""The interface to a replicated log of somebody else: each lie of a system is found, the documented example
runs, a healthy one passes."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.machines.cluster.found import FoundError
from fencepost.machines.replicated_log import ReplicatedLogMachine
from fencepost.machines.system_under_test import ReadResult, RefusedError, SystemUnderTest, UnclearError
from fencepost.traces.jsonlines import read_traces
from tests.selfcheck.amounts import machine_settings

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "machines.md"
QUICK = machine_settings(40, 20)
SHRINKING = settings(
    QUICK, max_examples=200, stateful_step_count=50, derandomize=False, phases=[Phase.generate, Phase.shrink]
)


class Honest(SystemUnderTest):
    """One copy, no faults, no lies."""

    def __init__(self):
        self.values = []
        self.closed = False

    def append(self, value):
        self.values.append(value)
        return len(self.values) - 1

    def read(self, offset, most):
        return ReadResult(values=self.values[offset : offset + most], end_offset=len(self.values))

    def end_offset(self):
        return len(self.values)

    def close(self):
        self.closed = True


class Forgets(Honest):
    """Acknowledges the second record and drops the first."""

    def append(self, value):
        if len(self.values) == 1:
            self.values = [value, value + 1_000]
            return 1
        return super().append(value)


class GoesBack(Honest):
    """Shows an end once, and a lower one later."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def end_offset(self):
        self.asked += 1
        return len(self.values) - (self.asked > 1)


class ShowsRefused(Honest):
    """Refuses a record that it keeps."""

    def append(self, value):
        super().append(value)
        raise RefusedError("no")


class Invents(Honest):
    """Reads a record that nobody sent."""

    def read(self, offset, most):
        return ReadResult(values=(*self.values[offset:], 99), end_offset=len(self.values) + 1)


class Repeats(Honest):
    """Appends twice."""

    def append(self, value):
        super().append(value)
        return super().append(value)


class Diverges(Honest):
    """A node holds something else."""

    def replica_logs(self):
        return {1: self.values, 2: [*self.values[:-1], -1]}


class Stalls(Honest):
    """Never takes a record again."""

    def append(self, value):
        if self.values:
            raise UnclearError("nobody answers")
        return super().append(value)


class Lags(Honest):
    """Readers are shown all but the last record."""

    def read(self, offset, most):
        end = max(0, len(self.values) - 1)
        return ReadResult(values=self.values[offset:end], end_offset=end)

    def end_offset(self):
        return max(0, len(self.values) - 1)


def machine_of(system, folder, **changes):
    """A machine for this system, which leaves what it finds in `folder`."""
    return type(
        f"{system.__name__}Machine",
        (ReplicatedLogMachine,),
        {"system_type": system, "folder": folder, **changes},
    )


def driven(machine):
    """Two appends, two reads, two ends, and the end of the example."""
    state = machine()
    try:
        for _ in range(2):
            state.append()
            state.agrees()
            state.read(back=0)
            state.agrees()
            state.ask_for_the_end()
            state.agrees()
    finally:
        if not state.failed:
            state.teardown()
    return state


@pytest.mark.parametrize(
    ("system", "anomaly"),
    [
        (Forgets, "inconsistent_offsets"),
        (GoesBack, "lost_write"),
        (ShowsRefused, "failed_append_visible"),
        (Invents, "phantom_record"),
        (Repeats, "duplicate"),
        (Diverges, "log_divergence"),
        (Stalls, "no_progress"),
        (Lags, "lost_write"),
    ],
)
def test_each_lie_is_found(system, anomaly, tmp_path):
    """Rule: nothing is trusted until it has failed on purpose: a lie is found under its name, and the trace
    that is left shows it again."""
    with pytest.raises(FoundError) as failed:
        driven(machine_of(system, tmp_path))
    assert failed.value.anomaly == anomaly
    left = tmp_path / f"{system.__name__}Machine.jsonl"
    assert f"fencepost check {left}" in str(failed.value)
    assert combine(judge(next(iter(read_traces(left))))).anomaly == anomaly


def test_what_a_system_does_not_promise_is_not_held_against_it(tmp_path):
    """Rule: readers may lag behind what was acknowledged under the profile `default`."""
    driven(machine_of(Lags, tmp_path, profile="default"))


def test_an_honest_system_passes_and_is_closed(tmp_path):
    """Rule: a system without faults to begin is not broken, and is released after each example."""
    machine = machine_of(Honest, tmp_path)
    assert driven(machine).system.closed
    run_state_machine_as_test(machine, settings=QUICK)
    assert not list(tmp_path.iterdir())


def documented(tmp_path, monkeypatch):
    """The module that the Python blocks of the page make, in their order."""
    blocks = [part.split("```")[0] for part in PAGE.read_text(encoding="utf-8").split("```python\n")[1:]]
    source = next(block for block in blocks if "class TinyLog" in block)
    path = tmp_path / "tiny_log.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("tiny_log", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tiny_log", module)
    spec.loader.exec_module(module)
    return module


def test_the_documented_example_runs_as_it_stands_there(tmp_path, monkeypatch):
    """Rule: the page's log passes, and its planted bug is found and shrunk to the story that the page
    tells."""
    tiny_log = documented(tmp_path, monkeypatch)
    monkeypatch.setattr(ReplicatedLogMachine, "folder", tmp_path)
    run_state_machine_as_test(tiny_log.TinyLogMachine, settings=QUICK)
    with pytest.raises(FoundError) as failed:
        run_state_machine_as_test(seed(1)(tiny_log.AnybodyLeadsMachine), settings=SHRINKING)
    assert failed.value.anomaly == "inconsistent_offsets"
    steps = [line for line in "\n".join(failed.value.__notes__).splitlines() if line.startswith("state.")]
    shown = [line for line in steps if line not in ("state.agrees()", "state.teardown()")]
    assert "\n".join(f"    {line}" for line in shown) in PAGE.read_text(encoding="utf-8")
