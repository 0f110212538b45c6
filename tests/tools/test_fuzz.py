"""Odd messages against brokers: a bounded sample of the fuzzer, and that it finds what is planted."""

import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fencepost.impl.coordinator.committed_offsets import GroupOffsets
from fencepost.impl.messages.broker_api import OffsetsForLeaderEpochRequest
from fencepost.impl.replication.leader import LeaderRole
from fencepost.traces.errors import EnvironmentError_, ExitCode
from tools.fuzz import __main__ as fuzz
from tools.fuzz import guided
from tools.fuzz.cases import WAYS, Case


@pytest.mark.parametrize("way", range(len(WAYS)), ids=WAYS)
def test_no_message_halts_a_broker(way: int) -> None:
    """Two cases of each way. The long run is `python -m tools.fuzz --seconds 3600`."""
    for case in (way, way + len(WAYS)):
        run = Case(seed=7, case=case, messages=120)
        finding = run.run()
        assert finding is None, finding.trace
        assert run.sent.total() > 20 and run.refused > 0


def test_a_mistake_of_a_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that believes a number, as the commit of offsets did: the case ends with the exception and
    the message."""

    def trusting(self: LeaderRole, source: int, request: OffsetsForLeaderEpochRequest) -> None:
        struct.pack(">i", request.correlation_id)

    monkeypatch.setattr(LeaderRole, "offsets_for_leader_epoch", trusting)
    findings = [found for case in range(0, 30, 3) if (found := Case(seed=7, case=case, messages=120).run())]
    assert findings and all("struct.error" in found.trace for found in findings)
    assert any("OffsetsForLeaderEpochRequest" in found.last for found in findings)


def test_the_commit_without_offsets_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its mend the assertion of the log's encoder comes out."""
    monkeypatch.setattr(GroupOffsets, "commit", _commit_of_before)
    assert any(
        (found := Case(seed=7, case=case, messages=150).run()) and "AssertionError" in found.trace
        for case in range(0, 60, 3)
    )


def _commit_of_before(self: Any, source: int, request: Any) -> None:
    group, _ = self._admit(request)
    if group is not None:
        self.log.append(group.number, self.table.epoch_of(group), [], lambda error, offset: None)


def test_it_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case is counted once, a finding is kept with its message, and the exit code says that there was
    one."""

    def run(*arguments: str) -> int:
        told = CliRunner().invoke(
            fuzz.command,
            ["--seconds", "0", "--messages", "5", "--out", str(tmp_path), *arguments],
            standalone_mode=False,
        )
        assert told.exception is None, told.output
        return int(told.return_value)

    assert run() == run() == ExitCode.NOTHING_FOUND
    rows = fuzz.ledger_of(tmp_path, 1, 5).rows
    assert list(rows) == [0, 1] and fuzz.sums(fuzz.ledger_of(tmp_path, 1, 5))["findings"] == []

    def broken(self: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("tools.fuzz.cases.Cluster.__attrs_post_init__", broken)
    assert run() == ExitCode.FINDINGS
    finding = fuzz.ledger_of(tmp_path, 1, 5).rows[2].finding
    assert finding is not None and "planted" in finding.trace and finding.way == WAYS[2]


def test_inputs_that_coverage_kept_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: each input once, as a line that the tests replay; without atheris one sentence says what to
    install."""
    corpus, packed = tmp_path / "corpus", tmp_path / "corpus.jsonl"
    corpus.mkdir()
    for name, data in (("one", b"a"), ("two", b"\0"), ("again", b"a")):
        (corpus / name).write_bytes(data)
    asked = ["--guided", str(corpus), "--pack", str(packed)]
    assert CliRunner().invoke(fuzz.command, asked, standalone_mode=False).exit_code == 0
    assert packed.read_text() == '"AA=="\n"YQ=="\n'
    monkeypatch.setattr(guided, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentError_, match="expected the library atheris, saw none"):
        fuzz.command.main(asked[:2], standalone_mode=False)
    alone = CliRunner().invoke(fuzz.command, asked[2:])
    assert alone.exit_code == 2 and "expected --guided with --pack" in alone.output
