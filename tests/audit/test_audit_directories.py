"""What lies in real data directories: names with dots and dashes, directories on their way out, strange
files, files that cannot be read, several disks."""

import os
from pathlib import Path

import pytest
from audit_lab import T, audit, plain, replica, segment

from fencepost.audit import source
from fencepost.audit.partition import audit_partition
from fencepost.audit.survey import AuditRequest, survey
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.errors import EnvironmentError_


def survey_of(root: Path, **how):
    return survey(AuditRequest(places=tuple((path.name, path) for path in sorted(root.iterdir())), **how))


def test_topics_have_dots_and_dashes(tmp_path):
    """Rule: the number is what stands after the last dash; -delete, -future and -stray are told and not
    compared."""
    a = replica(tmp_path, "a", plain(3), key=TopicPartition("a.b-c-7", 12))
    for name in ("t-0.0123456789abcdef0123456789abcdef-delete", "a.b-c-7-12.0123abcd-future", "t-1.0a-stray"):
        (a / name).mkdir()
    found = survey_of(tmp_path)
    assert list(found.partitions) == [("a.b-c-7", 12)]
    assert found.directories[0].aside == [
        "a.b-c-7-12.0123abcd-future",
        "t-0.0123456789abcdef0123456789abcdef-delete",
        "t-1.0a-stray",
    ]
    assert "not compared" in found.findings.notes[0]


def test_topics_are_chosen_by_pattern(tmp_path):
    """Rule: --topic takes shell patterns; one that nothing matches is the caller's mistake."""
    replica(tmp_path, "a", plain(3))
    replica(tmp_path, "a", plain(3), key=TopicPartition("__consumer_offsets", 3))
    assert list(survey_of(tmp_path, topics=("__*",)).partitions) == [("__consumer_offsets", 3)]
    assert len(survey_of(tmp_path, topics=("t", "__*")).partitions) == 2
    with pytest.raises(EnvironmentError_, match="topics that match 'x\\*', saw none"):
        survey_of(tmp_path, topics=("x*",))


def test_what_is_not_kafkas_is_left_alone_and_told(tmp_path):
    """Rule: unknown files and directories are a note; files on their way in or out too; known ones are
    nothing."""
    a = replica(tmp_path, "a", plain(3))
    (a / "lost+found").mkdir()
    (a / ".lock").touch()
    (a / "bootstrap.checkpoint").touch()
    (a / "t-0" / "quorum-state").touch()
    (a / "t-0" / "backup.tar").write_text("x")
    (a / "t-0" / f"{5:020d}.log.deleted").write_text("x")
    (a / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: abc\n")
    found = survey_of(tmp_path)
    result = audit_partition(found, ("t", 0), lambda size: None)
    assert result.verdict.decision == "ok"
    assert found.findings.notes == [f"{a}: not Kafka's, left alone: lost+found"]
    assert [note.split(": ", 1)[1] for note in result.findings.notes] == [
        "1 files end in .deleted: on their way in or out, left alone",
        "not Kafka's, left alone: backup.tar",
    ]


def test_a_file_that_cannot_be_read_is_left_out_and_the_rest_is_judged(tmp_path, monkeypatch):
    """Rule: one bad sector or a pipe does not stop the audit, and nothing is said of what could not be
    read."""
    replica(tmp_path, "a", plain())
    b = replica(tmp_path, "b", plain())
    bad = segment(b, 1)
    real = source.os.pread

    def pread(descriptor: int, size: int, position: int) -> bytes:
        if os.path.samestat(os.fstat(descriptor), bad.stat()):
            raise OSError(5, "Input/output error")
        return real(descriptor, size, position)

    monkeypatch.setattr(source.os, "pread", pread)
    result = audit(tmp_path)
    assert (result.verdict.decision, result.findings.found) == ("unknown", [])
    assert [(one.path, one.reason) for one in result.findings.unreadable] == [(bad, "Input/output error")]
    monkeypatch.undo()
    path = segment(b, 0, ".index")
    path.unlink()
    os.mkfifo(path)
    (left_out,) = audit(tmp_path).findings.unreadable
    assert (left_out.path, left_out.reason) == (path, "not a plain file")


def test_a_broker_may_have_several_directories(tmp_path):
    """Rule: a name that is given twice is one broker with two disks."""
    for name, key in (("a1", T), ("a2", TopicPartition("t", 1))):
        replica(tmp_path, name, plain(4), key=key)
    places = (("a", tmp_path / "a1"), ("a", tmp_path / "a2"))
    found = survey(AuditRequest(places=places))
    assert found.brokers == ["a"] and list(found.partitions) == [("t", 0), ("t", 1)]
    with pytest.raises(EnvironmentError_, match="each directory once"):
        survey(AuditRequest(places=(("a", tmp_path / "a1"), ("b", tmp_path / "a1"))))


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda path: None, "nothing there"),
        (lambda path: path.write_text("x"), "a file"),
        (lambda path: (path / "other").mkdir(parents=True), "none in it"),
    ],
)
def test_a_place_that_is_no_data_directory(tmp_path, make, seen):
    """Rule: one sentence with what was expected and seen."""
    make(tmp_path / "x")
    with pytest.raises(EnvironmentError_, match=seen):
        survey_of(tmp_path) if (tmp_path / "x").exists() else survey(
            AuditRequest(places=(("x", tmp_path / "x"),))
        )


def test_a_broker_without_partitions_is_a_note(tmp_path):
    """Rule: it may be new; only where nobody has any there is nothing to judge."""
    (tmp_path / "b").mkdir()
    with pytest.raises(EnvironmentError_, match="saw none"):
        survey_of(tmp_path)
    replica(tmp_path, "a", plain(3))
    assert survey_of(tmp_path).findings.notes == [f"{tmp_path / 'b'}: no partition in it"]


def test_the_directory_of_one_partition_is_no_data_directory(tmp_path):
    """Rule: the hint says what to name instead."""
    a = replica(tmp_path, "a", plain(3))
    with pytest.raises(EnvironmentError_, match="name the directory above it"):
        survey(AuditRequest(places=(("a", a / "t-0"),)))


def test_a_damaged_checkpoint_is_a_finding_of_the_directory(tmp_path):
    """Rule: its other lines still count."""
    a = replica(tmp_path, "a", plain(3))
    (a / "replication-offset-checkpoint").write_text("0\n2\nt 0 2\nt one 5\n")
    found = survey_of(tmp_path)
    assert [one.anomaly for one in found.findings.found] == ["checkpoint_damaged"]
    assert audit_partition(found, ("t", 0), lambda size: None).replicas[0].high_watermark == 2


def test_a_partition_that_only_a_checkpoint_knows(tmp_path):
    """Rule: no directory of it anywhere is worse than one that is missing; empty checkpoints know nothing,
    and are not damaged."""
    a = replica(tmp_path, "a", plain(3))
    (a / "replication-offset-checkpoint").write_text("0\n2\nt 0 3\nt 1 5\n")
    (a / "cleaner-offset-checkpoint").touch()
    found = survey_of(tmp_path)
    assert not found.findings.count
    result = audit_partition(found, ("t", 1), lambda size: None)
    assert [one.anomaly for one in result.findings.found] == ["replica_missing"] and result.replicas == []


def test_fewer_replicas_than_the_topics_other_partitions_have_is_a_note(tmp_path):
    """Rule: it may be so on purpose, so that it is no finding."""
    replica(tmp_path, "a", plain(3))
    replica(tmp_path, "b", plain(3))
    replica(tmp_path, "a", plain(3), key=TopicPartition("t", 1))
    _, findings = survey_of(tmp_path).partitions["t", 1]
    assert findings.notes == ["1 of the 2 replicas that other partitions of t have: a"]
