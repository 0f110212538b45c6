"""tools/mutants: which faults count, that a planted one is loaded and convicted, and that the three counts
are never added up."""

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.effects import effects_of
from tools.mutants.ledger import Ledger, equivalents, name_of
from tools.mutants.reach import HITS, Reached, marked, read
from tools.mutants.subjects import AREAS, files_of, in_order, mutants_of
from tools.mutants.trial import Outcome, Result, outcome_of, places, plant
from tools.mutation.faults import faults_of

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
    assert named == {
        ("state.controller_epoch", "state.leader_epoch"),
        ("state.replicas", "state.isr"),
    }
    for fault in found:
        compile(fault.applied(SOURCE.encode()), "a.py", "exec")


def test_time_outs_and_words_of_the_record_are_left_out() -> None:
    """Rule: another time-out is another option; what only tells the trace is what judges read. Every area has
    sources, and at least 1,000 mutants in all."""
    file = "fencepost/impl/replication/isr.py"
    names = [name_of(fault) for fault in mutants_of(file)]
    everything = faults_of(file, Path(file).read_text(encoding="utf-8"))
    assert 100 < len(names) < len(everything) + 50
    assert not any("broker_context.record" in name or "MILLISECOND" in name for name in names)
    assert any("partition.pending_isr = isr -> pass" in name for name in names)
    assert all(files_of(area) for area in AREAS)
    assert sum(len(mutants_of(path)) for path in files_of("controller")) > 1_000


def test_a_sample_is_the_seeds_and_a_larger_one_contains_it() -> None:
    """Rule: another seed is a fresh sample."""
    faults = mutants_of("fencepost/impl/replication/isr.py")
    assert set(in_order(faults, 7)[:5]) <= set(in_order(faults, 7)[:20])
    assert in_order(faults, 7)[:20] != in_order(faults, 8)[:20]
    assert list(places(("a", "b"), 10, 3)) == [("a", 10), ("b", 10), ("a", 11)]


def _planted(answers: object) -> None:
    for name in [name for name in sys.modules if name.startswith("fencepost.impl.controller.guards")]:
        del sys.modules[name]
    plant("fencepost.impl.controller.guards", b"ControllerGuards = 'mutated'\n", "guards.py")
    from fencepost.impl.controller.guards import ControllerGuards

    answers.send(ControllerGuards)  # type: ignore[attr-defined]


def test_a_module_is_loaded_from_the_mutated_source() -> None:
    """Rule: in the mutant's own process, and in no other."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_planted, args=(theirs,))
    process.start()
    assert ours.recv() == "mutated"
    process.join()
    from fencepost.impl.controller.guards import ControllerGuards

    assert isinstance(ControllerGuards, type)


@pytest.mark.parametrize("torn", [False, True])
def test_counts_are_kept_apart_and_resumed(tmp_path: Path, torn: bool) -> None:
    """Rule: by a judge, by an exception, by no progress; what raises in its first run does not count;
    equivalents come from the page."""
    outcomes = [*Outcome, Outcome.JUDGED, Outcome.SURVIVED]
    ledger = Ledger(tmp_path / "out.jsonl")
    for number, outcome in enumerate(outcomes):
        ledger.add(Result(name=f"mutant {number}", source="s", area="log", outcome=outcome, cpu_s=1.0))
    if torn:
        with ledger.path.open("ab") as file:
            file.write(b'{"name": "cut')
    again = Ledger(ledger.path)
    again.read()
    assert again.known == ledger.known
    survivor = len(outcomes) - 1
    page = f"| mutant | reason |\n|---|---|\n| `` mutant {survivor} `` | no run can tell |\n"
    assert equivalents(page) == {f"mutant {survivor}": "no run can tell"}
    counts = again.counts(list(again.known.values()), page)
    assert counts["mutants"] == 7
    assert counts["convicted"] == {"by a judge": 2, "by an exception": 1, "by no progress": 1}
    assert (counts["survived"], counts["unreached"], counts["equivalent"]) == (2, 1, 1)
    assert counts["not counted, as they raise in their first run"] == 1
    assert counts["score"] == 50.0


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
