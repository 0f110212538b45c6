"""The measures of bench/ run, in small, and the harness counts as it says."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from bench.costs import Cost, fresh, peak_mib
from bench.harness import ALL_MEASURES, MEASURES, TOP, Case, main, run

SMALL = [
    "simulator",
    "judges",
    "log_check",
    "events",
    "transactions",
    pytest.param("mine", marks=pytest.mark.java),
    pytest.param("watch", marks=pytest.mark.java),
    "log",
    "audit",
    "fixture",
    "throughput",
    "proxy",
    pytest.param("explorer", marks=pytest.mark.java),
]
"""Those that want no browser; what is foreign to Python and Java they leave out by themselves."""
NEEDS = {
    "mine": ("pyspark",),
    "watch": ("pyspark",),
    "fixture": ("confluent_kafka", "kafka"),
    "throughput": ("confluent_kafka",),
    "proxy": ("confluent_kafka",),
}
"""Modules that are not installed everywhere."""
FOREIGN = {"judges", "fixture", "throughput"}
"""Measures with cases whose only peer is written in another language."""


def measured(file: Path, *words: str) -> list[dict[str, object]]:
    """The rows that a measure writes, from a process of its own, because some freeze what is loaded. Go is
    not on its path."""
    folders = os.environ["PATH"].split(os.pathsep)
    without = [one for one in folders if not Path(one, "go").exists() or Path(one, "sh").exists()]
    command = [sys.executable, "-m", "bench", *words, "--json", str(file)]
    env = {**os.environ, "PATH": os.pathsep.join(without)}
    done = subprocess.run(command, cwd=TOP, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, object]] = json.loads(file.read_text())["rows"]
    return rows


def check(rows: list[dict[str, object]], sides: int) -> None:
    """Every case has so many sides at least, and each had a turn that took time."""
    assert rows
    for row in rows:
        found = row["sides"]
        assert isinstance(found, dict)
        assert len(found) >= sides, row
        for costs in found.values():
            assert len(costs) == 1 and costs[0]["wall_s"] > 0, row


@pytest.mark.parametrize("name", SMALL)
def test_a_measure_runs_in_small(name: str, tmp_path: Path) -> None:
    """Rule: `--quick` of a measure ends well, and has a turn of each side of every case."""
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    check(measured(tmp_path / "rows.json", name, "--quick"), sides=1 if name in FOREIGN else 2)


def test_a_tree_before_takes_turns_with_this_one(tmp_path: Path) -> None:
    """Rule: with --before each side of each case has both trees, here twice the same."""
    rows = measured(tmp_path / "rows.json", "transactions", "--quick", "--before", str(TOP))
    assert {row["case"] for row in rows} >= {"exactly_once, 20,000 operations, one history"}
    check(rows, sides=2)


# ---- the table of names


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: every name of the table imports, says what it measures, and has the options of all."""
    module = import_module(f"bench.measures.{name}")
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert module.__doc__ and module.__doc__.split("\n")[0] in said
    assert all(option in said for option in ("--quick", "--before", "--json", "--turns"))


def test_every_file_of_measures_has_a_name() -> None:
    """Rule: what is in bench/measures is in the table, and the other way round."""
    files = {path.stem for path in (TOP / "bench" / "measures").glob("*.py")}
    assert files - {"__init__"} == set(MEASURES)


def test_without_a_name_the_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: nothing is measured unless it is named; a name that is none is refused with what was seen."""
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in (*MEASURES, ALL_MEASURES))
    assert main(["reference_run"]) == 2
    assert "saw reference_run" in capsys.readouterr().out


def test_all_measures_write_no_common_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: `all` refuses --json, because each measure would overwrite the one before."""
    assert main([ALL_MEASURES, "--quick", "--json=rows.json"]) == 2
    assert "saw all" in capsys.readouterr().err


# ---- the harness


def test_sides_take_turns_and_the_first_turn_is_left_out() -> None:
    """Rule: each turn runs every side once, in order; the first one is not counted unless a case says so."""
    seen: list[str] = []

    def clock(work: object) -> Cost:
        assert callable(work)
        work()
        return Cost(wall_s=len(seen), cpu_s=1.0)

    case = Case(
        name="c",
        sides={"ours": lambda: seen.append("ours"), "theirs": lambda: seen.append("theirs")},
        before=lambda: seen.append("before"),
        clock=clock,
    )
    counted = run(case, 2)
    assert seen == ["before", "ours", "before", "theirs"] * 3
    assert [cost.wall_s for cost in counted.costs["ours"]] == [6, 10]


def test_a_ratio_is_that_of_the_turns() -> None:
    """Rule: the ratio is the median of the turns' own ratios, not the ratio of two medians."""
    costs: dict[str, Iterator[float]] = {"ours": iter((2.0, 10.0, 3.0)), "theirs": iter((1.0, 1.0, 3.0))}

    def turn(side: str) -> Cost:
        return Cost(wall_s=next(costs[side]), cpu_s=1.0)

    sides = {"ours": lambda: turn("ours"), "theirs": lambda: turn("theirs")}
    found = run(Case(name="c", sides=sides, warm=False), 3)
    assert found.ratio("theirs", "wall_s") == 2.0  # of 2, 10 and 1; the medians would say 3
    assert found.ratio("theirs", "cpu_s") == 1.0


def test_a_new_process_has_a_peak_of_its_own() -> None:
    """Rule: what this process once held is not in the peak of a fresh one."""
    held = bytearray(300 << 20)
    held[:: 1 << 12] = b"1" * len(held[:: 1 << 12])
    assert fresh(peak_mib) < peak_mib() - 100
