"""`fencepost show`, and the pages of `fencepost replay`: which trace, where to, and what a mistake is
answered with."""

import json

import pytest
from attrs import evolve

from fencepost.cli import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.digest import digest_of_rows
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.schema import EVENT_COLUMNS, TRACE_COLUMNS
from fencepost.traces.sealing import write_part
from fencepost.traces.store import TraceStore

GOLDEN = "tests/checkers/golden/conformance.jsonl"
STALE = "tests/checkers/linearizability/histories/stale-read.edn"


def data_of(path):
    """The data inside a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])


@pytest.fixture
def golden(request):
    """A file of several traces, wherever the tests were started."""
    return request.config.rootpath / GOLDEN


def test_one_trace_of_a_file(golden, tmp_path, capsys):
    """--trace chooses it, --html names the page, and --json tells both."""
    trace = next(read_traces(golden))
    page = tmp_path / "a" / "page.html"
    code = run(["show", str(golden), "--trace", str(trace.trace_id), "--html", str(page), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["html"] == str(page) and told["bytes"] == page.stat().st_size and told["exit_code"] == code
    assert data_of(page)["views"][0]["trace"]["id"] == str(trace.trace_id)


def test_the_only_trace_needs_no_number_and_the_page_its_name(golden, tmp_path, capsys, monkeypatch):
    """A file with one trace; the page goes into this folder."""
    monkeypatch.chdir(tmp_path)
    write_traces(tmp_path / "mine.jsonl", [next(read_traces(golden))])
    run(["show", "mine.jsonl"])
    assert "Watch it: mine.html" in capsys.readouterr().out
    assert (tmp_path / "mine.html").exists()


def test_a_history_under_a_model_shows_an_order(request, tmp_path, capsys):
    """Exit code 1 for a history that is not linearizable; the page has the order and what fits nowhere."""
    page = tmp_path / "stale.html"
    code = run(["show", str(request.config.rootpath / STALE), "--model", "register", "--html", str(page)])
    part = data_of(page)["views"][0]["sequential"]["parts"][0]
    assert code == 1 and part["culprit"] == "3" and part["order"] == [0, 1, 2]


def test_an_event_of_a_later_version_is_left_out_as_check_does(golden, tmp_path, capsys):
    """The rest is shown, and the page's command says what is not in it."""
    path = tmp_path / "later.jsonl"
    write_traces(path, [next(read_traces(golden))])
    later = {"type": "event", "time": 1, "name": "of_a_later_version", "node": 1}
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(later) + "\n", encoding="utf-8")
    page = tmp_path / "later.html"
    assert run(["show", str(path), "--html", str(page)]) in (0, 1)
    said = " ".join(capsys.readouterr().err.split())
    assert "of the unknown name 'of_a_later_version' left out" in said
    (left_out,) = data_of(page)["views"][0]["left_out"]
    assert "an event of the unknown name 'of_a_later_version' left out" in left_out


def test_a_history_under_a_workload_shows_its_finding(request, tmp_path, capsys):
    """A workload is judged as a whole: exit code and findings, and no order of the operations."""
    enqueue = {"process": 0, "f": "enqueue", "value": 1}
    drain = {"process": 1, "f": "drain"}
    rows = [{**enqueue, "type": "invoke"}, {**enqueue, "type": "ok"}]
    rows += [{**drain, "type": "invoke", "value": None}, {**drain, "type": "ok", "value": []}]
    history = tmp_path / "queue.jsonl"
    history.write_text("".join(json.dumps({**row, "time": at}) + "\n" for at, row in enumerate(rows)))
    page = tmp_path / "queue.html"
    code = run(["show", str(history), "--model", "total-queue", "--html", str(page)])
    view = data_of(page)["views"][0]
    assert code == 1 and "element_lost" in json.dumps(view["findings"]) and not view.get("sequential")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "{golden}"], "several traces"),
        (["show", "{golden}", "--trace", "987654"], "none with this id"),
        (["show", "{tmp}/nothing.jsonl"], "nothing there"),
        (["show", "{golden}", "--format", "no-such"], "expected --format out of"),
        (["show", "{golden}", "--timeout", "3"], "expected --model with"),
        (["show", "{golden}", "--model", "register", "--checks", "log"], "expected --model without --checks"),
        (["replay", "--seed", "1", "--beside", "healthy"], "expected --html with --beside"),
        (["replay", "--seed", "1", "--html", "{tmp}/x.html", "--beside", "healthy"], "a plan with a bug"),
    ],
)
def test_mistakes_are_one_sentence(arguments, says, golden, tmp_path, capsys):
    """Exit code 2, and what was expected."""
    code = run([argument.format(golden=golden, tmp=tmp_path) for argument in arguments])
    assert code == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_replay_writes_the_broken_run_next_to_the_healthy_one(tmp_path, capsys):
    """Two views with one clock: the same plan with its bug and without."""
    page = tmp_path / "both.html"
    run(f"replay --seed 23 --bug KIP-101 --no-timeline --html {page} --beside healthy".split())
    broken, healthy = data_of(page)["views"]
    assert (broken["name"], healthy["name"]) == ("broken", "healthy")
    assert broken["findings"] and not [one for one in healthy["findings"] if one["check"] != "conformance"]
    assert "Watch it:" in capsys.readouterr().out


def test_a_stored_event_of_a_later_version_is_left_out_and_named_on_the_page(golden, tmp_path, capsys):
    """Rule: a folder of traces is shown as `check` judges it; command and page name what is not drawn."""
    rows = rows_of(next(read_traces(golden)))
    later = list(rows.events[0])
    later[EVENT_COLUMNS.index("name")] = "of_a_later_version"
    rows = evolve(rows, events=[*rows.events, tuple(later)])
    store = TraceStore.create(tmp_path / "store")
    head = list(rows.trace)
    head[TRACE_COLUMNS.index("digest")] = digest_of_rows(rows)
    write_part(store.path, 0, iter([evolve(rows, trace=head)]))
    page = tmp_path / "later.html"
    assert run(["show", str(store.path), "--html", str(page)]) in (0, 1)
    says = "an event of the unknown name 'of_a_later_version' left out"
    assert says in " ".join(capsys.readouterr().err.split())
    assert [one for one in data_of(page)["views"][0]["left_out"] if says in one]
