"""Wrong wall clocks: the file that libfaketime reads, and a real broker that believes it."""

import time

import pytest

from fencepost.systems.apache_kafka.clock import Clocks, library, missing
from fencepost.systems.apache_kafka.inside.broker_log import lines_of
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import EnvironmentError_, FencepostError
from tests.systems.apache_kafka.real_lab import VERSIONS, Lab, started

HOUR = 3_600
installed = pytest.mark.skipif(bool(missing()), reason=missing() or "clocks")


def test_each_broker_has_a_clock_of_its_own(tmp_path):
    """Ahead, behind and right again; a broker that is none, or a century, is refused."""
    clocks = Clocks({1: tmp_path, 2: tmp_path / "2"})
    (tmp_path / "2").mkdir()
    clocks.set(1, 90)
    clocks.set(2, -5)
    assert ((tmp_path / "clock").read_text(), (tmp_path / "2" / "clock").read_text()) == ("+90s\n", "-5s\n")
    clocks.heal()
    assert (tmp_path / "clock").read_text() == "+0s\n" and clocks.offsets_s == {}
    for broker, ahead in ((3, 1), (1, 10**12)):
        with pytest.raises(FencepostError, match="expected one of the brokers 1, 2"):
            clocks.set(broker, ahead)


def test_without_the_library_it_is_one_sentence(monkeypatch, tmp_path):
    """The kind of fault is not drawn then."""
    monkeypatch.setattr("fencepost.systems.apache_kafka.clock.PLACES", ())
    assert library() is None and missing().startswith("needs libfaketime")
    with pytest.raises(EnvironmentError_, match="clocks that can be wrong"):
        Clocks({1: tmp_path}).environment(1)


def test_with_kraft_it_is_refused(tmp_path):
    """Brokers of 4.4.0 did not form a quorum under libfaketime: no process is started."""
    with pytest.raises(UnsupportedError, match="a version with ZooKeeper"):
        started(tmp_path / "cluster", "4.4.0", shifted=True).start()


@installed
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_a_real_broker_believes_its_clock(version, tmp_path):
    """Its log has times of tomorrow; the others, its sessions and its timers go on."""
    with started(tmp_path / "cluster", version, shifted=True) as cluster:
        lab = Lab(cluster, "before")
        cluster.clocks.set(2, 24 * HOUR)
        log = tmp_path / "cluster" / "broker-2" / "broker.log"

        def believes():
            Lab(cluster, f"topic-{time.monotonic_ns()}")  # which its log names
            last = list(lines_of(log.read_text().splitlines()))[-1]
            return last.time / 1e9 > time.time() + 23 * HOUR

        lab.until(believes, "a line of tomorrow")
        assert lab.append(lab.state().leader, 1).error == "NONE"
        lab.until(cluster.healthy, "a healthy cluster")
        cluster.clocks.heal()
        lab.until(lambda: not believes(), "a line of today")
