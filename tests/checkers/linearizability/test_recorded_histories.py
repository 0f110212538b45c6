"""Histories in foreign formats get the verdicts that are known of them, through the command line."""

from pathlib import Path

import msgspec
import pytest

from fencepost.cli import run

OWN = Path(__file__).parent / "histories"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "histories"

SMALL = [
    ("stale-read.edn", "register", "illegal"),
    ("late-effect.log", "cas-register", "ok"),
    ("keys.txt", "key-value", "ok"),
    ("counter.json", "counter", "illegal"),
]
RECORDED = [
    ("etcd_000.log", "cas-register", None, "illegal"),
    ("etcd_002.log", "cas-register", None, "ok"),
    ("kv_c01_ok.txt", "key-value", None, "ok"),
    ("kv_c01_bad.txt", "key-value", None, "illegal"),
    ("cas_register_good.edn", "cas-register", "0", "ok"),
    ("cas_register_bad.edn", "cas-register", "0", "illegal"),
    ("counter.edn", "counter", None, "ok"),
    ("counter.json", "counter", None, "ok"),
]


def _decision(path: Path, model: str, initial: str | None, capsys) -> str:
    options = ["--initial", initial] if initial is not None else []
    options += ["--format", "etcd-log"] if path.name.startswith("etcd") else []
    code = run(["check", str(path), "--model", model, "--json", *options])
    (row,) = msgspec.json.decode(capsys.readouterr().out)["verdicts"]
    assert int(code) == {"ok": 0, "illegal": 1}.get(row["decision"], 3)
    return row["decision"]


@pytest.mark.parametrize(("name", "model", "decision"), SMALL)
def test_samples_of_our_own(name: str, model: str, decision: str, capsys) -> None:
    """Small samples of each format get their verdict; the late effect of an unknown cas is allowed."""
    assert _decision(OWN / name, model, None, capsys) == decision


@pytest.mark.parametrize(("name", "model", "initial", "decision"), RECORDED)
def test_recorded_histories(name: str, model: str, initial: str | None, decision: str, capsys) -> None:
    """Recordings of other people's systems get the verdicts that their README states."""
    if not (SHARED / name).exists():
        pytest.skip(f"no recorded history {name} beside the repository")
    assert _decision(SHARED / name, model, initial, capsys) == decision
