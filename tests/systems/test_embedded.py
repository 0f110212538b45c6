"""The embedded system: the simulated world, its thread, and every verb of the one interface."""

import threading

import pytest
from attrs import evolve

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.systems import embedded as module
from fencepost.systems.embedded import FREE, Embedded, quick_options
from fencepost.systems.system import System, UnsupportedError
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR
from tests.systems.lab import Connection, Wall, add_topic, all_know, leader, system, until


class Heard(Observer):
    """Names of events, in order."""

    def __init__(self) -> None:
        self.names = []

    def recorded(self, event):
        """One event."""
        self.names.append(event.name)


@pytest.mark.parametrize("brokers", [1, 3])
def test_it_starts_healthy_serves_and_leaves_no_thread(brokers):
    """Rule: on return of start every broker is registered; a record is acknowledged by all replicas; close
    leaves nothing."""
    before = set(threading.enumerate())
    with system(brokers) as cluster:
        assert cluster.healthy() and cluster.brokers == tuple(range(1, brokers + 1))
        add_topic(cluster, replication_factor=brokers)
        connection = Connection(cluster, leader(cluster))
        answer = connection.answer(connection.produce(17))
        assert (answer.error, answer.base_offset) == (NO_ERROR, 0)
        logs = cluster.do(
            lambda: [
                cluster.world.hosts[broker]
                .core.replicas.partitions[TopicPartition("t", 0)]
                .log.log_end_offset
                for broker in cluster.brokers
            ]
        )
        assert logs == [1] * brokers
    cluster.close()
    assert set(threading.enumerate()) == before
    with pytest.raises(EnvironmentError_, match="expected a cluster that runs, saw one that was closed"):
        cluster.healthy()


def test_it_is_a_system():
    """Rule: the interface of what is broken fits, as mypy sees it and at run time."""
    cluster: System = system(1)
    verbs = [name for name in vars(System) if not name.startswith("_")]
    assert [name for name in verbs if not hasattr(cluster, name)] == []
    inside = cluster.inside()
    assert not (inside.real_files or inside.real_processes)
    assert dict(cluster.directories()) == {}


def test_a_stall_of_ten_seconds_expires_no_session_and_moves_no_leader():
    """Rule: stalls do not count; the session time-out is one second here."""
    heard, wall = Heard(), Wall()
    with system(observer=heard, wall=wall) as cluster:
        add_topic(cluster)
        led = leader(cluster)
        connection = Connection(cluster, led)
        before = cluster.do(lambda: cluster.world.now)
        wall.jumped += 10 * SECOND
        until(lambda: cluster.do(lambda: cluster.pace.stalled) > 9 * SECOND, "the stall")
        wall.jumped += 10 * SECOND
        until(lambda: cluster.do(lambda: cluster.pace.stalled) > 19 * SECOND, "the second stall")
        until(lambda: cluster.do(lambda: cluster.world.now) > before + 2 * SECOND, "two seconds of its time")
        assert Name.SESSION_EXPIRED not in heard.names
        assert leader(cluster) == led and cluster.healthy()
        assert connection.answer(connection.produce(1)).error is NO_ERROR


def test_without_the_cap_the_same_stall_would_expire_sessions(monkeypatch):
    """Rule: the guard is needed. With a cap of a minute instead of 50 ms, ten seconds of stall end every
    session."""
    monkeypatch.setattr("fencepost.systems.pace.MOST_A_TURN", 60 * SECOND)
    heard, wall = Heard(), Wall()
    with system(observer=heard, wall=wall) as cluster:
        cluster.pause(1)  # a process that stands still cannot ping between two events of the same turn
        wall.jumped += 10 * SECOND
        until(lambda: cluster.do(lambda: cluster.world.now) > 9 * SECOND, "the stall")
        cluster.resume(1)
        until(lambda: Name.SESSION_EXPIRED in heard.names, "an expired session")


def test_a_killed_broker_loses_its_leaders_and_comes_back():
    """Rule: kill, restart: another replica leads after the session time-out; the old one joins the ISR
    again."""
    with system() as cluster:
        add_topic(cluster)
        first = leader(cluster)
        connection = Connection(cluster, first)
        under_way = connection.produce(1)
        assert connection.answer(under_way).error is NO_ERROR
        cluster.kill(first)
        cluster.kill(first)
        until(lambda: leader(cluster) not in (first, -1), "another leader")
        assert not cluster.healthy()
        connection = Connection(cluster, leader(cluster))
        assert connection.answer(connection.produce(2)).base_offset == 1
        cluster.restart(first)
        cluster.restart(first)
        until(lambda: all_know(cluster), "a full ISR")


def test_a_paused_broker_answers_when_it_goes_on():
    """Rule: pause keeps requests, resume answers them."""
    with system(1) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        cluster.pause(1)
        number = connection.produce(1)
        assert connection.answer(number, patience_s=0.2) is None
        cluster.resume(1)
        assert connection.answer(number).error is NO_ERROR


def test_a_broker_that_is_asked_to_stop_gives_its_leaders_away_first():
    """Rule: stop is a controlled shutdown; it stays down until restart."""
    heard = Heard()
    with system(observer=heard) as cluster:
        add_topic(cluster)
        first = leader(cluster)
        cluster.stop(first)
        until(lambda: not cluster.do(lambda: cluster.world.hosts[first].up), "the end of the process")
        assert Name.SESSION_EXPIRED not in heard.names
        assert leader(cluster) != first
        cluster.restart(first)
        until(lambda: all_know(cluster), "a full ISR")


def test_a_cut_link_takes_a_follower_out_of_the_isr_until_it_is_healed():
    """Rule: cut and heal by name, between brokers."""
    with system() as cluster:
        add_topic(cluster)
        led = leader(cluster)
        other = next(broker for broker in cluster.brokers if broker != led)
        cluster.cut("one", [(led, other), (other, led)])
        until(lambda: not cluster.healthy(), "a smaller ISR")
        cluster.heal("one")
        cluster.heal("none of this name")
        until(lambda: all_know(cluster), "a full ISR")


def test_power_off_loses_what_was_not_synced():
    """Rule: a power loss is the simulated disk's: without a sync a log may lose its end, and the host is
    down."""
    with system(1) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        for value in range(40):
            assert connection.answer(connection.produce(value)).error is NO_ERROR
        before = cluster.do(lambda: cluster.world.hosts[1].disk.size())
        cluster.power_off(1)
        host = cluster.world.hosts[1]
        assert not cluster.do(lambda: host.up)
        assert cluster.do(host.disk.size) < before
        cluster.restart(1)
        until(lambda: all_know(cluster), "a leader")


def test_answers_of_a_dead_process_never_reach_its_connections():
    """Rule: what was on its way when the process died is lost; a new process answers new requests only."""
    with system(1) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        cluster.do(cluster.world.degrade, "slow", [(1, 999)], delay_us=50_000)
        number = connection.produce(1)
        cluster.kill(1)
        cluster.restart(1)
        cluster.do(cluster.world.heal, "slow")
        until(lambda: all_know(cluster), "a leader")
        again = connection.produce(2)
        assert connection.answer(again).base_offset == 1  # the first was written; nobody was told
        assert connection.answer(number, patience_s=0) is None


def test_faults_of_links_work_on_clients_and_keep_their_order():
    """Rule: a cut between clients and a broker holds requests up; they arrive later, once and in order."""
    with system(1) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        cluster.do(cluster.world.block, "cut", [(999, 1)])
        numbers = [connection.produce(value) for value in range(5)]
        assert connection.answer(numbers[0], patience_s=0.3) is None
        cluster.do(cluster.world.heal, "cut")
        assert [connection.answer(number).base_offset for number in numbers] == [0, 1, 2, 3, 4]


def test_files_can_be_real(tmp_path):
    """Rule: with a directory the logs are files there and survive a kill. A new cluster refuses them:
    it knows none of their topics, and one of the same name would begin with their records."""
    with system(1, directory=tmp_path) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        assert connection.answer(connection.produce(1)).error is NO_ERROR
        assert (cluster.directories()[1] / "t-0" / "00000000000000000000.log").stat().st_size > 60
        cluster.kill(1)
        cluster.restart(1)
        until(lambda: all_know(cluster), "a leader")
        assert connection.answer(connection.produce(2)).base_offset == 1
        with pytest.raises(UnsupportedError, match="saw a power loss"):
            cluster.power_off(1)
        cluster.do(cluster.world.fill_disk, 1, 0)
        connection.produce(3)
        until(lambda: not cluster.do(lambda: cluster.world.hosts[1].up), "the end of a broker without room")
    assert cluster.inside().real_files
    with pytest.raises(EnvironmentError_, match="expected no files of an earlier cluster, saw broker-1"):
        system(1, directory=tmp_path)


def test_a_mistake_in_the_world_stops_it_with_a_sentence(caplog):
    """Rule: an exception of an event ends the cluster's time; every call says so; closing works."""
    with system(1) as cluster:
        cluster.do(lambda: cluster.world.scheduler.after(0, lambda: 1 // 0))
        until(lambda: cluster.failure, "the failure")
        with pytest.raises(EnvironmentError_, match="a mistake in fencepost itself: ZeroDivisionError"):
            cluster.healthy()
    assert "ZeroDivisionError" in caplog.text


def test_what_cannot_be_is_a_sentence():
    """Rule: a broker that there is not, an option that is none, brokers that never register."""
    with system(1) as cluster, pytest.raises(PlanError, match="expected a broker from 1 to 1, saw 2"):
        cluster.kill(2)
    with pytest.raises(PlanError, match=r"expected an option of a cluster \(.*\), saw 'colour'"):
        quick_options(3, colour="red")
    with pytest.raises(PlanError, match="did you mean 'replica_lag_time_max_ms'"):
        quick_options(3, replica_lag_time_ms=5)
    with pytest.raises(PlanError, match="brokers"):
        quick_options(0)
    broken = Embedded(options=quick_options(1), listen=False)
    broken.world.stop_zookeeper()
    with pytest.raises(EnvironmentError_, match="every broker registered within 60000 ms"):
        broken.start()
    assert not broken.thread.running


def test_memory_of_a_long_life_is_bounded(monkeypatch):
    """Rule: causes are forgotten, dirty pages are written back, and full disks stop their brokers at a bound
    that has a name."""
    monkeypatch.setattr(module, "WRITE_BACK_S", 1)
    monkeypatch.setattr(module, "HOUSEKEEPING", 20 * MILLISECOND)
    with system(1, disk=evolve(FREE, torn_write=False)) as cluster:
        add_topic(cluster, replication_factor=1)
        connection = Connection(cluster, 1)
        for value in range(100):
            assert connection.answer(connection.produce(value)).error is NO_ERROR
        disk = cluster.world.hosts[1].disk

        def unsynced():
            return sum(len(file.unsynced) for _, file in disk._names.files()) + len(disk._names.unsynced)

        until(lambda: cluster.do(unsynced) == 0, "the kernel's write-back")
        links = cluster.world.network._links.values()
        until(lambda: cluster.do(lambda: sum(len(link.streams) for link in links)) <= 6, "forgotten causes")
        monkeypatch.setattr(module, "MOST_DISK_BYTES", 1)
        until(lambda: cluster._full, "full disks")
        connection.produce(100)
        until(lambda: not cluster.do(lambda: cluster.world.hosts[1].up), "the end of a broker without room")
