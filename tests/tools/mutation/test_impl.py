"""tools/mutation/impl: which faults count, that a planted one is loaded and convicted, and that the three
counts are never added up."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import tools.mutation.__main__ as program
import tools.mutation.impl.subject as impl
from fencepost.impl.log.batch import header
from fencepost.impl.log.segmented_log import SegmentedLog
from tools.mutation.effects import effects_of
from tools.mutation.engine import counts_of
from tools.mutation.fault import in_order
from tools.mutation.finder import faults_of
from tools.mutation.impl.infection import PROBE, numbered, probes_of, recorder
from tools.mutation.impl.log_machine import by_log_machine
from tools.mutation.impl.reach import HITS, Reached, marked, read
from tools.mutation.impl.subject import Implementation, equivalents
from tools.mutation.impl.subjects import AREAS, files_of, mutants_of
from tools.mutation.impl.trial import Outcome, outcome_of, places
from tools.mutation.planting import exchange, plant
from tools.mutation.workers import Ended, in_a_child

SOURCE = """
def step(self):
    self.leader_epoch = state.controller_epoch
    self.isr = state.replicas
    self.send(1)
    local = 2
    del self.pending
"""


def test_effects_change_places_and_names_are_taken_for_each_other() -> None:
    """Rule: only what outlives the function is swapped; a name only for one that the file knows."""
    found = effects_of("a.py", SOURCE)
    swapped = [fault.before for fault in found if fault.kind == "swapped effects"]
    assert swapped == [
        "self.leader_epoch = state.controller_epoch self.isr = state.replicas",
        "self.isr = state.replicas self.send(1)",
    ]
    named = {(fault.before, fault.after) for fault in found if fault.kind == "wrong name"}
    assert named == {("state.controller_epoch", "state.leader_epoch"), ("state.replicas", "state.isr")}
    for fault in found:
        compile(fault.applied(SOURCE.encode()), "a.py", "exec")


def test_time_outs_and_words_of_the_record_are_left_out() -> None:
    """Rule: another time-out is another option; what only tells the trace is what judges read. Every area has
    sources, and at least 1,000 mutants in all."""
    file = "fencepost/impl/replication/isr.py"
    names = [fault.line for fault in mutants_of(file)]
    everything = faults_of(file, Path(file).read_text(encoding="utf-8"))
    assert 100 < len(names) < len(everything) + 50
    assert not any("broker_context.record" in name or "MILLISECOND" in name for name in names)
    assert any("partition.pending_isr = isr -> pass" in name for name in names)
    assert all(files_of(area) for area in AREAS)
    assert sum(len(mutants_of(path)) for path in files_of("controller")) > 1_000


def test_a_sample_is_the_seeds_and_a_larger_one_contains_it() -> None:
    """Rule: another seed is a fresh sample."""
    faults = mutants_of("fencepost/impl/replication/isr.py")
    assert set(in_order(faults, "7 ")[:5]) <= set(in_order(faults, "7 ")[:20])
    assert in_order(faults, "7 ")[:20] != in_order(faults, "8 ")[:20]
    assert list(places(("a", "b"), 10, 3)) == [("a", 10), ("b", 10), ("a", 11)]


def _planted() -> object:
    for name in [name for name in sys.modules if name.startswith("fencepost.impl.controller.guards")]:
        del sys.modules[name]
    plant("fencepost.impl.controller.guards", b"ControllerGuards = 'mutated'\n", "guards.py")
    from fencepost.impl.controller.guards import ControllerGuards

    return ControllerGuards


def test_a_module_is_loaded_from_the_mutated_source() -> None:
    """Rule: in the mutant's own process, and in no other."""
    assert in_a_child(_planted).answer == "mutated"
    from fencepost.impl.controller.guards import ControllerGuards

    assert isinstance(ControllerGuards, type)


LIVE = """
class Log:
    def end(self, offset):
        return max([self.bounded(one) for one in (offset, 7)])

    @staticmethod
    def bounded(offset):
        return offset if offset < 9 else 9


TABLE = {"end": Log().end}
"""


def test_live_functions_get_the_code_of_the_mutated_source(tmp_path: Path) -> None:
    """Rule: also those that a table holds already. If functions come or go, nothing changes."""
    path = tmp_path / "live.py"
    path.write_text(LIVE)
    spec = importlib.util.spec_from_file_location("live_for_mutants", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    end = module.TABLE["end"]
    assert (end(8), end(20)) == (8, 9)
    source = LIVE.encode()
    assert not exchange(source, source, str(path))
    assert not exchange(source, source.replace(b"def bounded", b"def limited"), str(path))
    assert exchange(source, source.replace(b"        return max(", b"\n\n        return min("), str(path))
    assert (end(8), end(20)) == (7, 7)


def test_a_probe_marks_a_fault_that_gives_another_value() -> None:
    """Rule: a boundary only where both sides are equal, a condition only where its truth changes, an
    exception always; the original's value is returned. What has an effect is not probed."""
    source = "def f(a, b):\n    if a < b and b:\n        return [a]\n    return a.pop(b)\n"
    faults = faults_of("a.py", source)
    probes = probes_of(source, list(enumerate(faults)))
    names = {fault.name.partition(": ")[2]: number for number, fault in enumerate(faults)}
    assert names["a < b -> (a <= b)"] in numbered(probes)
    assert not any("pop" in faults[number].after for number in numbered(probes))
    tree, statements = marked(source, probes)
    differs = bytearray(len(faults))
    space: dict[str, Any] = {HITS: bytearray(len(statements.lines)), PROBE: recorder(differs)}
    exec(compile(tree, "probed", "exec"), space)

    class Number(int):
        def pop(self, other: int) -> int:
            return other

    def marks(a: int, b: int) -> set[str]:
        differs[:] = bytes(len(differs))
        assert space["f"](Number(a), b) == ([a] if a < b and b else b)
        return {name for name, number in names.items() if differs[number]}

    assert marks(1, 2) == {"a < b -> (a >= b)", "a < b and b -> False"}
    assert marks(2, 2) >= {"a < b -> (a <= b)", "a < b and b -> True", "a < b and b -> b"}
    assert "a < b and b -> (a < b)" in marks(-1, 0) - marks(1, 2)


def subject(tmp_path: Path, area: str = "replication") -> Implementation:
    """Of one area."""
    parts = {area: [fault for file in files_of(area) for fault in mutants_of(file)]}
    return Implementation(
        parts=parts, out=tmp_path, profiles=("everything",), first=0, seeds=5, patience=9, examples=0,
        asked={"profiles": "everything", "first": 0, "seeds": 5},
    )  # fmt: skip


def test_counts_are_kept_apart(tmp_path: Path) -> None:
    """Rule: by a judge, by an exception, by no progress; what raises in its first run does not count;
    equivalents come from the page."""
    mine, outcomes = subject(tmp_path), [*Outcome, Outcome.JUDGED, Outcome.SURVIVED]
    faults, ledger = mine.parts["replication"][: len(outcomes)], mine.ledger()
    for fault, outcome in zip(faults, outcomes, strict=True):
        ledger.add(mine.result(fault, Ended(answer=(outcome, 1, "", "", -1, 0))))
    page = f"| mutant | reason |\n|---|---|\n| `` {faults[-1].line} `` | no run can tell |\n"
    assert equivalents(page) == {faults[-1].line: "no run can tell"}
    mine._equivalents = equivalents(page)
    counts = counts_of(mine, faults, mine.ledger())
    assert (counts["tried"], counts["equivalent"], len(counts["survivors"])) == (9, 1, 3)
    apart = {"judged": 2, "no progress": 1, "raised": 1, "broken": 1, "log machine": 1, "survived": 2}
    assert counts["outcomes"] == apart | {"unreached": 1}
    assert (counts["score"], counts["score with the log machine"]) == (42.9, 57.1)
    died = mine.result(faults[0], Ended(answer=None, died="no answer"))
    assert (died.outcome, died.by) == ("no progress", "out of memory")


def test_marks_count_what_a_run_comes_to() -> None:
    """Rule: the innermost statement around a fault says which seeds come to it; a branch not taken is not
    reached, and the code does what it did."""
    source = (
        "def f(x):\n    if x:\n        y = 1\n    elif x is None:\n        y = 2\n    else:\n        y "
        "= 3\n    return y\n"
    )
    tree, statements = marked(source)
    hits = bytearray(len(statements.lines))
    space: dict[str, Any] = {HITS: hits}
    exec(compile(tree, "marked", "exec"), space)
    assert space["f"](None) == 2
    assert {line for line, hit in zip(statements.lines, hits, strict=True) if hit} == {2, 4, 5, 8}


def test_runs_are_those_of_the_statement(tmp_path: Path) -> None:
    """Rule: what was measured is kept, and a fault inside of a statement of several lines has that
    statement's runs."""
    reached = Reached(
        runs=[("a", 0), ("a", 1), ("a", 2)],
        digests=["x", "y", "z"],
        reached={"f.py": [(2, 0b101), (7, 0b010)]},
    )
    reached.write(tmp_path / "reach.json")
    again = read(tmp_path / "reach.json")
    assert again == reached and read(tmp_path / "absent.json") is None
    assert again is not None
    assert [again.of("f.py", (line, line)) for line in (1, 2, 5, 7, 9)] == [[], [0, 2], [0, 2], [1], [1]]
    assert again.of("other.py", (2, 2)) == []


@pytest.mark.parametrize(
    ("anomalies", "first", "outcome"),
    [
        (["implementation_error", "no_progress"], True, Outcome.BROKEN),
        (["implementation_error"], False, Outcome.RAISED),
        (["implementation_error", "lost_write"], True, Outcome.JUDGED),
        (["no_progress"], True, Outcome.NO_PROGRESS),
        (["needless_retry", "no_progress"], False, Outcome.JUDGED),
    ],
)
def test_an_exception_of_a_process_is_no_judges_merit(
    anomalies: list[str], first: bool, outcome: Outcome
) -> None:
    """Rule: the run records it as a finding and goes on; the counts stay apart all the same."""
    assert outcome_of(anomalies, first=first) is outcome


class MeasuredError(Exception):
    """What was to be measured."""


def test_an_interrupted_sample_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: what healthy runs come to is kept for the whole sample, not for what is left of it."""

    def refuse(files: object, runs: object, faults: tuple[Any, ...], out: Path) -> None:
        raise MeasuredError([fault.line for fault in faults])

    monkeypatch.setattr(impl, "measured", refuse)
    monkeypatch.setattr(impl, "preload_judges", lambda: None)
    line = ["impl", "replication", "--sample", "3", "--seeds", "5", "--out", str(tmp_path)]
    asked = []
    for _ in range(2):
        with pytest.raises(MeasuredError) as caught:
            program.command.main(line, standalone_mode=False)
        asked.append(caught.value.args[0])
        mine = subject(tmp_path)
        mine.ledger().add(mine.found(mine.chosen(1, "")[0], Outcome.JUDGED.value))
    assert asked[0] == asked[1] and len(asked[0]) == 3


def test_the_log_machine_is_a_second_court(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a complaint of the machine or of the format convicts; what the log raises by itself is counted as
    an exception."""
    assert by_log_machine(5) is None
    with monkeypatch.context() as changed:
        changed.setattr(SegmentedLog, "flush", lambda self: None)
        found = by_log_machine(400)
        assert found is not None and found[0] is Outcome.LOG_MACHINE and "Error" in found[1]
    with monkeypatch.context() as changed:
        changed.setattr(header, "_check", lambda header: None)
        changed.setattr(header, "_checked_header", header._checked_header.__wrapped__)
        found = by_log_machine(5)
        assert found is not None and found[0] is Outcome.LOG_MACHINE and "refused" in found[1]
    monkeypatch.setattr(SegmentedLog, "read", lambda self, *_, **more: 1 // 0)
    found = by_log_machine(200)
    assert found is not None and found[0] is Outcome.RAISED
