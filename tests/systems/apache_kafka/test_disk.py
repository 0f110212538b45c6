"""Real brokers on disks that lose power: Kafka keeps what it synced, and loses what a disk only said it had.

Kafka does not sync what it appends. The topics here ask for it (flush.messages=1), so that nothing but a lie
can lose an acknowledged record.
"""

import pytest

from fencepost.impl.runtime.processes import state
from fencepost.sim.disk_faults import DiskCall
from fencepost.systems.apache_kafka.disk import missing
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import FencepostError
from tests.systems.apache_kafka.real_lab import VERSIONS, Lab, started

mounts = pytest.mark.skipif(bool(missing()), reason=missing() or "a disk")
pytestmark = mounts
COUNT = 25
SEED = 4


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request, tmp_path_factory):
    """Three brokers, each on a disk of its own."""
    folder = tmp_path_factory.mktemp("disks")
    with started(folder, request.param, mounted=True, seed=SEED) as made:
        yield made


def off_and_on(cluster):
    """All lose power at once; the disks are honest again, and everything comes back."""
    cluster.power_off_all()
    cluster.disks.heal()
    for broker in cluster.brokers:
        cluster.restart(broker)
    cluster.wait_until_healthy()


def held(cluster, topic):
    """The ends of what the disks surely held of a topic when the power failed."""
    logs = [log for loss in cluster.disks.power_losses() for log in loss.logs]
    return {log.end for log in logs if log.topic == topic}


def test_without_a_lie_nothing_acknowledged_is_lost(cluster):
    """The control: synced before it was acknowledged, and there after the loss of power."""
    lab = Lab(cluster, "honest", **{"flush.messages": "1"})
    cluster.disks.write_back()  # a flush does not sync the name of a new partition's folder
    lab.write(*range(1, COUNT + 1))
    off_and_on(cluster)
    assert lab.read() == list(range(1, COUNT + 1))
    assert lab.verdict() == []
    assert held(cluster, "honest") == {COUNT}, "each append was synced, and its file has a name"


def test_lying_syncs_and_a_loss_of_power_of_all_lose_acknowledged_records(cluster):
    """The same with disks that lie about the partition: records are gone, and the check convicts."""
    lab = Lab(cluster, "liar", **{"flush.messages": "1"})
    cluster.disks.write_back()
    for broker in cluster.brokers:
        cluster.disks.lie(broker, "liar-0")
    lab.write(*range(1, COUNT + 1))
    off_and_on(cluster)
    assert len(lab.read()) < COUNT
    assert "lost_write" in lab.verdict()
    assert held(cluster, "liar") == {0}


def test_a_broker_ends_where_its_disk_fails_and_the_others_go_on(cluster):
    """EIO of each write of a partition: its only log directory has failed, so that the broker halts. It comes
    back with the disk."""
    lab = Lab(cluster, "broken", **{"flush.messages": "1"})
    lab.write(1)
    leader = lab.state().leader
    follower = max({1, 2, 3} - {leader})
    cluster.disks.fail(follower, DiskCall.SYNC, times=None, below="broken-0")
    lab.append(leader, 2, acks=1)
    lab.until(lambda: state(cluster.running.processes[follower]) == "dead", "the end of the broker")
    lab.until(lambda: lab.isr() == {1, 2, 3} - {follower}, "an ISR without it")
    lab.write(3)
    cluster.disks.heal(follower)
    cluster.restart(follower)
    lab.until(lambda: lab.isr() == {1, 2, 3}, "the broker back")
    cluster.wait_until_healthy()


def test_a_broker_ends_where_its_disk_is_full(cluster):
    """No space for a single byte more."""
    lab = Lab(cluster, "full")
    leader = lab.state().leader
    follower = max({1, 2, 3} - {leader})
    cluster.disks.fill(follower)
    lab.append(leader, 1, acks=1)
    lab.until(lambda: state(cluster.running.processes[follower]) == "dead", "the end of the broker")
    cluster.disks.heal(follower)
    cluster.restart(follower)
    cluster.wait_until_healthy()


def test_what_is_not_there_is_one_sentence(cluster, tmp_path):
    """A broker without a disk, and a cluster on ordinary files."""
    with pytest.raises(FencepostError, match="expected one of the brokers 1, 2, 3, saw 7"):
        cluster.disks.lie(7)
    with pytest.raises(UnsupportedError, match="a system that can lose power"):
        started(tmp_path, cluster.release.version).power_off_all()
