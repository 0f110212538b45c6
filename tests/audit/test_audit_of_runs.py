"""The directories that simulated clusters leave, audited as those of real ones: nothing in healthy runs,
divergence where a protection is missing."""

from pathlib import Path

from fencepost.audit.partition import audit_partition
from fencepost.audit.survey import AuditRequest, survey
from fencepost.campaign.swarm.swarm import swarm
from fencepost.run.simulated.run import Run
from fencepost.sim.disk import Disk

HEALTHY = range(4)
PLANTED = (23, *range(23))
"""KIP-101 (truncation to the high watermark) leaves a lasting divergence in one run of about twenty; the
first one here did when this was written."""


def export(disk: Disk, root: Path, path: str = "") -> None:
    """Copy a simulated disk, as it is now."""
    root.joinpath(path).mkdir(parents=True)
    for name in disk.list(path):
        full = f"{path}/{name}" if path else name
        try:
            file = disk.open(full, create=False)
        except OSError:
            export(disk, root, full)
        else:
            root.joinpath(full).write_bytes(file.read_at(0, file.size()))


def findings_of(seed: int, root: Path, *bugs: str) -> set[str]:
    """What an audit says of the brokers' disks at the end of a run."""
    run = Run(swarm(seed, bugs=bugs))
    run.run()
    places = []
    for broker in run.cluster.broker_ids:
        place = root / f"seed-{seed}" / f"broker-{broker}"
        export(run.cluster.world.hosts[broker].disk, place)
        places.append((str(broker), place))
    found = survey(AuditRequest(places=tuple(places), deep=True))
    audits = [audit_partition(found, key, lambda size: None) for key in found.partitions]
    assert not any(one.findings.unreadable for one in audits)
    return {finding.anomaly for one in audits for finding in one.findings.found}


def test_healthy_runs_leave_nothing_to_find(tmp_path):
    """Rule: brokers that crashed, lost power and came back leave directories in order."""
    assert {seed: findings_of(seed, tmp_path) for seed in HEALTHY} == {seed: set() for seed in HEALTHY}


def test_a_planted_bug_is_found_in_what_it_left_on_the_disks(tmp_path):
    """Rule LOG-MATCH: without KIP-101's truncation by epoch, replicas come to differ, and the files show
    it."""
    assert any("log_divergence" in findings_of(seed, tmp_path, "KIP-101") for seed in PLANTED)
