"""`fencepost check` with several processes: same verdicts, same order, and nothing that one history does
costs another its verdict."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fencepost.cli.check import pool
from tests.cli.conftest import COMMAND

MODEL = '''
import os, signal, time
from pathlib import Path
from fencepost.checkers.models import IMPOSSIBLE, Model

HERE = Path(__file__).parent


class Odd(Model):
    """A register whose writes do things to the process that judges."""

    name = "odd"
    functions = frozenset({"write", "read"})
    reads = frozenset({"read"})
    effects = frozenset({"write"})

    def step(self, state, call):
        if call.function == "read":
            return state if call.result == state else IMPOSSIBLE
        if call.argument == "wait":
            while not (HERE / "later").exists():
                time.sleep(0.01)
        elif call.argument == "later":
            (HERE / "later").touch()
        elif call.argument == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif call.argument == "sleep":
            time.sleep(3600)
        elif call.argument == "interrupt":
            os.kill(int((HERE / "pid").read_text()), signal.SIGINT)
            time.sleep(3600)
        return call.argument
'''


def history(path: Path, *writes: str, read: object = None) -> None:
    """A file with these writes, one after another, and a last read."""
    rows = []
    for value in writes:
        rows += [{"process": 0, "type": kind, "f": "write", "value": value} for kind in ("invoke", "ok")]
    rows.append({"process": 0, "type": "invoke", "f": "read", "value": None})
    rows.append({"process": 0, "type": "ok", "f": "read", "value": writes[-1] if read is None else read})
    path.write_text("\n".join(json.dumps(row) for row in rows))


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the odd model; histories go into its folder h."""
    (tmp_path / "odd_model.py").write_text(textwrap.dedent(MODEL))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "h").mkdir()
    sys.modules.pop("odd_model", None)
    return tmp_path


def told_rows(told) -> list[tuple[str, str]]:
    return [(Path(row["source"]).stem, row["decision"]) for row in told.json["verdicts"]]


def test_verdicts_do_not_depend_on_processes(fencepost, odd) -> None:
    """Three processes say what one says, in the order of the input, unreadable pieces included."""
    for number in range(7):
        history(odd / "h" / f"{number}.json", "a", "b", read="a" if number % 3 == 0 else "b")
    (odd / "h" / "4.json").write_text("[{")
    one, three = (
        fencepost("check", odd / "h", "--model", "odd_model:Odd", "--jobs", jobs, "--json").json
        for jobs in (1, 3)
    )
    for row in (*one["verdicts"], *three["verdicts"]):
        row.pop("seconds")
    assert one == three
    assert [row["decision"] for row in one["verdicts"]] == ["illegal", "ok", "ok", "illegal", "ok", "illegal"]
    assert len(one["unreadable"]) == 1


def test_a_slow_history_does_not_stop_the_others(fencepost, odd) -> None:
    """The first history waits for what only a later one does: later ones are judged meanwhile, and still told
    after it."""
    history(odd / "h" / "1.json", "wait")
    history(odd / "h" / "2.json", "a")
    history(odd / "h" / "3.json", "later")
    told = fencepost("check", odd / "h", "--model", "odd_model:Odd", "--jobs", 2, "--timeout", 1200, "--json")
    assert told_rows(told) == [("1", "ok"), ("2", "ok"), ("3", "ok")]


def test_a_process_that_dies_costs_one_verdict(fencepost, odd) -> None:
    """A history whose judge is killed is undecided and says so; the others keep their verdicts."""
    for number, write in enumerate(("a", "die", "b")):
        history(odd / "h" / f"{number}.json", write)
    told = fencepost("check", odd / "h", "--model", "odd_model:Odd", "--jobs", 2, "--json")
    assert told.code == 3
    assert told_rows(told) == [("0", "ok"), ("1", "unknown"), ("2", "ok")]
    assert "killed by signal 9" in told.json["verdicts"][1]["reason"]


def test_the_time_limit_holds_where_nothing_can_be_interrupted(fencepost, odd, monkeypatch) -> None:
    """A step that sleeps in C for an hour is ended with its process."""
    monkeypatch.setattr(pool, "GRACE_S", 0.5)
    for number, write in enumerate(("sleep", "b")):
        history(odd / "h" / f"{number}.json", write)
    told = fencepost("check", odd / "h", "--model", "odd_model:Odd", "--jobs", 2, "--timeout", 1, "--json")
    assert told_rows(told) == [("0", "unknown"), ("1", "ok")]
    assert "could not be interrupted" in told.json["verdicts"][0]["reason"]


def test_ctrl_c_tells_what_was_judged(odd) -> None:
    """An interrupted check exits 130 with the verdicts so far, and leaves no process behind."""
    for number, write in enumerate(("a", "interrupt", "b")):
        history(odd / "h" / f"{number}.json", write)
    arguments = ["check", str(odd / "h"), "--model", "odd_model:Odd", "--jobs", "2", "--json"]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=odd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(odd), *filter(None, [os.environ.get("PYTHONPATH")])]),
        },
    )
    (odd / "pid").write_text(str(process.pid))
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    said = json.loads(out)
    assert said["exit_code"] == 130
    assert [Path(row["source"]).stem for row in said["verdicts"]] in (["0"], [])


def test_traces_of_a_campaign_are_shared_out(fencepost, planted, tmp_path) -> None:
    """Folders and files judged by two processes give the counts and the explanation that one process
    gives."""
    fencepost("mine convert", planted, "--out", tmp_path / "same.jsonl")
    said = [
        fencepost(
            "check", planted, tmp_path / "same.jsonl", "--jobs", jobs, "--checks", "log,invariants", "--json"
        )
        for jobs in (1, 2)
    ]
    assert said[0].json == said[1].json
    assert said[0].json["traces"] == 20
    assert "Proof" in said[1].err


def test_a_worker_without_a_driver_ends_in_silence(odd) -> None:
    """Rule: a driver that was killed leaves no traceback of its workers on the terminal."""
    from fencepost.cli.check.work import Question
    from fencepost.cli.check.worker import Order, Orders, encode
    from fencepost.mining.inputs.traces import Piece

    history(odd / "h" / "0.json", "a", "b")
    piece = Piece(source=str(odd / "h" / "0.json"), size_bytes=1, format="auto")
    orders = encode(Orders(question=Question(checks=("log",)), path=tuple(sys.path))) + encode(
        Order(piece=piece)
    )
    process = subprocess.Popen(
        pool.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None and process.stderr is not None
    process.stdout.close()  # as if the driver were gone
    process.stdin.write(orders)
    process.stdin.close()
    assert process.stderr.read() == b"" and process.wait() == 0
    process.stderr.close()
