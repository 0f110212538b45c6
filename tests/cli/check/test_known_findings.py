"""What is known does not fail, what is new does, what is gone is named: for each command, and in JUnit."""

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from fencepost.console.findings import Findings, Reported
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode


def lost_by_the_application(to: Path) -> Path:
    """Events of a consumer that commits a record that it never processes."""
    base = {"process": "c", "group": "g", "topic": "t", "partition": 0}
    rows = [{"event": "received", "offset": 0}, {"event": "committed", "offset": 1}]
    to.write_bytes(b"\n".join(msgspec.json.encode(base | row) for row in rows) + b"\n")
    return to


def stale(to: Path) -> Path:
    """A history of a register that shows nothing of a write."""
    rows = [
        *(("invoke", "write", "1"), ("ok", "write", "1")),
        *(("invoke", "read", "nil"), ("ok", "read", "nil")),
    ]
    to.write_text(
        "".join(
            f"{{:process 0, :type :{kind}, :f :{what}, :value {value}, :time {at}}}\n"
            for at, (kind, what, value) in enumerate(rows)
        )
    )
    return to


def without(baseline: Path, place: str, to: Path) -> Path:
    """The baseline without the findings of a place, and with one that nothing shows."""
    file = msgspec.json.decode(baseline.read_bytes())
    other = dict(file["findings"][0], anomaly="lost_write", place="somewhere else")
    kept = [one for one in file["findings"] if one["place"] != place]
    assert len(kept) < len(file["findings"])
    to.write_bytes(msgspec.json.encode(file | {"findings": [*kept, other]}))
    return to


def cases(junit: Path) -> dict[str, str]:
    """How each case ended: the element within it."""
    rows = ElementTree.parse(junit).getroot().iter("testcase")
    return {str(row.get("name")): (row[0].tag if len(row) else "passed") for row in rows}


@pytest.mark.parametrize("command", ["check", "campaign", "events", "model"])
def test_only_what_is_new_fails(command: str, fencepost, planted, tmp_path) -> None:
    """Rule: with all findings in the baseline the exit code is 0; with one left out it is 1, and that one is
    a failure; one that nothing shows any more is named and skipped."""
    baseline, junit = tmp_path / "known.json", tmp_path / "new" / "junit.xml"
    call = ["check", planted]
    if command == "campaign":
        call = ["campaign", "--seeds", "0:10", "--bug", "KAFKA-6082", "--out", planted, "--resume"]
    if command == "events":
        call = ["check", lost_by_the_application(tmp_path / "app.events")]
    if command == "model":
        call = ["check", stale(tmp_path / "history.edn"), "--model", "register"]
    first = fencepost("", *call, "--write-baseline", baseline, "--json")
    assert first.code == first.json["exit_code"] == 1 and "baseline" not in first.json
    known = msgspec.json.decode(baseline.read_bytes())["findings"]
    again = fencepost("", *call, "--baseline", baseline, "--json")
    assert (again.code, again.json["exit_code"]) == (0, 0)
    split = again.json["baseline"]
    assert (len(split["known"]), split["new"], split["gone"]) == (len(known), [], [])
    less = without(baseline, known[0]["place"], tmp_path / "less.json")
    told = fencepost("", *call, "--baseline", less, "--junit", junit)
    new = [f"{one['anomaly']}, {one['place']}" for one in known if one["place"] == known[0]["place"]]
    assert told.code == 1 and "no longer there: lost_write, somewhere else\n" in told.out
    assert all(f"new: {one}\n" in told.out for one in new)
    ended = cases(junit)
    assert sorted(name for name, tag in ended.items() if tag == "failure") == sorted(new)
    assert ended["lost_write, somewhere else"] == "skipped" and ended["everything was judged"] == "passed"


def summary(**changes: object) -> dict:
    """What a campaign of a client library came to."""
    counts = dict.fromkeys(
        ("records", "acknowledged", "duplicates", "seeds_with_duplicates", "struck", "seeds_per_minute"), 1
    )
    found = {"seeds": [3], "first": 3, "rate": [1, 10], "seen": "offset 4 twice", "promise": "each once"}
    return {
        **counts,
        "library": "ours@1",
        "seeds": 10,
        "failed": [],
        "disturbed": [],
        "met": {},
        "never": [],
        "client_seconds": 1,
        "processor_seconds": 1,
        "findings": {"duplicated_write": {**found, "words": []}},
        "interrupted": False,
        **changes,
    }


def test_torture_too(fencepost, tmp_path, monkeypatch) -> None:
    """Rule: an anomaly of a library is the same while its promise is; undecided and interrupted campaigns
    stay so, and neither says that something is gone, nor is a baseline written of half a campaign."""
    from fencepost.torture import campaign

    came_to = summary()
    monkeypatch.setattr(campaign, "torture", lambda *_, **__: came_to)
    known, junit = tmp_path / "known.json", tmp_path / "junit.xml"
    call = ("torture", "aiokafka", "--out", tmp_path / "out")
    assert fencepost(*call, "--write-baseline", known).code == 1
    assert fencepost(*call, "--baseline", known).code == 0
    came_to = summary(failed=[{"failed": "no driver"}] * 2)
    assert fencepost(*call, "--baseline", known, "--junit", junit).code == 3
    assert cases(junit)["everything was judged"] == "error"
    came_to = summary(findings={})
    told = fencepost(*call, "--baseline", known)
    assert told.code == 0 and "no longer there: duplicated_write, each once\n" in told.out
    came_to = summary(findings={}, interrupted=True)
    before = known.read_bytes()
    told = fencepost(*call, "--baseline", known, "--write-baseline", known)
    assert told.code == 130 and "no longer there" not in told.out and known.read_bytes() == before
    assert "not seen, but not everything was judged: duplicated_write, each once\n" in told.out


def test_findings_that_nobody_listed_fail() -> None:
    """Rule: where a command says that there are findings and lists none, nothing is known."""
    listed = Findings(command="check", baseline=Path("known.json"))
    assert listed.end(Output(), {ExitCode.FINDINGS}, {}) is ExitCode.FINDINGS
    listed.add(Reported(check="log", anomaly="lost_write", place="t-0"))
    listed.known = tuple(listed.found.values())
    assert listed.end(Output(), {ExitCode.FINDINGS, ExitCode.UNDECIDED}, {}) is ExitCode.UNDECIDED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "expected a baseline, saw Expected `object`, got `array`"),
        ('{"version": 2}', "expected a baseline of version 1, saw 2"),
        ('{"version": 1, "command": "mine", "findings": []}', "of `fencepost check`, saw one of mine"),
        ('{"version": 1, "command": "check"}', "missing required field `findings`"),
    ],
)
def test_what_is_no_baseline_is_one_sentence(text, says, fencepost, planted, tmp_path) -> None:
    """Rule: a file of something else ends the command before anything is judged."""
    (tmp_path / "other.json").write_text(text)
    told = fencepost("check", planted, "--baseline", tmp_path / "other.json")
    assert told.code == 2 and says in told.sentence and told.out == ""
