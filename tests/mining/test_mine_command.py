"""What is wrong with the options of `fencepost mine` is told in one sentence before anything runs."""

from pathlib import Path

import msgspec
import pytest
from attrs import evolve

from fencepost.cli import run
from fencepost.cli.mine import mine_command
from fencepost.mining.mine import mine
from fencepost.mining.triage.bugs import Bugs
from fencepost.traces.errors import ExitCode

WRONG = [
    (
        ["--timeout", "5"],
        "expected --model with --initial, --parameter, --timeout, --memory and --most, saw none",
    ),
    (["--format", "xml"], "expected --format out of auto, fencepost, "),
    (["--model", "register", "--initial", "{"], "expected --initial as JSON (a text in quotes), saw '{'"),
    (["--model", "no-such-model"], "no-such-model"),
    (["--giant", "0"], "Invalid value for '--giant'"),
    (["--no-triage", "--junit", "made.xml"], "--junit and --baseline are about bugs: --no-triage finds none"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_wrong_options_are_told(options: list[str], says: str, tmp_path: Path, capsys) -> None:
    """Exit code 2, one sentence, no traceback, nothing written."""
    (tmp_path / "in" / "traces").mkdir(parents=True)
    code = run(["mine", str(tmp_path / "in"), "--out", str(tmp_path / "out"), *options])
    told = capsys.readouterr().err
    assert (code, says in told.replace("\n", " "), "Traceback" in told) == (2, True, False), told
    assert not (tmp_path / "out").exists()


def test_only_bugs_that_are_not_known_fail(
    campaign: Path, spark, tmp_path: Path, capsys, monkeypatch
) -> None:
    """Rule: a bug is known if --since would say so, under another name too; one with a worse anomaly is new,
    one that is gone is named, and traces in no bug, which nothing tells apart, are known by their anomaly."""
    left = ExitCode.UNDECIDED  # some of the traces are
    found = mine([campaign], tmp_path / "mined", spark=spark)
    came_to = found
    monkeypatch.setattr(mine_command, "mine_with_bar", lambda *_, **__: came_to)
    known = tmp_path / "known.json"

    def told(*options: str) -> tuple[int, dict]:
        code = run(["mine", str(campaign), "--json", *options])
        return int(code), msgspec.json.decode(capsys.readouterr().out)

    assert told("--write-baseline", str(known))[0] == 1
    code, said = told("--baseline", str(known))
    names = [bug.name for bug in found.bugs.bugs]
    assert (code, [one["place"] for one in said["baseline"]["known"]]) == (left, names) and len(names) > 1
    last = found.bugs.bugs[-1]
    renamed = evolve(last, name="renamed", traces=found.bugs.bad)
    came_to = evolve(found, bugs=Bugs(bugs=(renamed,), bad=found.bugs.bad))
    code, said = told("--baseline", str(known))
    assert (code, [one["place"] for one in said["baseline"]["known"]]) == (left, [last.name])
    assert [one["place"] for one in said["baseline"]["gone"]] == names[:-1]
    worse = evolve(last, anomaly=found.samples[0].finding.anomaly)
    assert worse.anomaly != last.anomaly
    came_to = evolve(found, bugs=Bugs(bugs=(worse,), bad=found.bugs.bad))
    code, said = told("--baseline", str(known))
    assert (code, [one["anomaly"] for one in said["baseline"]["new"]]) == (1, [worse.anomaly])
    came_to = evolve(found, bugs=Bugs(bugs=(last,), bad=last.traces))
    code, said = told("--baseline", str(known))
    assert (code, [one["place"] for one in said["baseline"]["new"]]) == (1, ["in no bug"])
