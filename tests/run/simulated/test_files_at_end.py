"""The end of a run reads what is on the brokers' disks, not what the brokers believe."""

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.impl.log import layout
from fencepost.impl.log.batch.header import CRC_START, read_header
from fencepost.run.simulated.run import Run
from fencepost.traces.events import Name

SEGMENT = f"t-0/{0:020d}{layout.LOG}"


class Ended(Run):
    """A run that does something to a disk before the files are read."""

    def meddle(self):
        """Nothing."""

    def _read_files(self, **asked):
        self.meddle()
        super()._read_files(**asked)


def logs(trace, node):
    """(offset, values) of each row of a broker's dump of t-0."""
    return [
        (event.offset, event.values)
        for event in trace.events
        if event.name is Name.REPLICA_LOG and event.node == node and event.topic == "t"
    ]


def found(trace):
    """What the judges of events say."""
    return {one.anomaly for verdict in judge(trace, ("invariants",)) for one in verdict.findings}


def test_a_broker_that_is_down_has_its_files_read(small_plan):
    """Its process ended; the page cache is there. It holds what the others hold."""

    class Down(Ended):
        def meddle(self):
            self.cluster.world.crash(2)

    trace = Down(small_plan()).run()
    assert logs(trace, 2) == logs(trace, 1) != []
    assert not found(trace)


def test_what_a_file_lost_is_seen_although_the_broker_believes_it_is_there(small_plan):
    """The file was cut under a broker that runs."""

    class Cut(Ended):
        def meddle(self):
            disk = self.cluster.world.hosts[2].disk
            file = disk.open(SEGMENT)
            file.truncate(read_header(file.read_at(0, file.size())).end_position)

    trace = Cut(small_plan()).run()
    assert 0 < len(logs(trace, 2)[0][1]) < len(logs(trace, 1)[0][1])
    assert "committed_record_truncated" in found(trace)


@pytest.mark.parametrize("fault", ["", "bit_rot", "lying_fsync"])
def test_a_file_that_is_broken_is_a_finding_unless_its_disk_was(small_plan, fault):
    """A bit flips in a batch of a broker that runs. Nobody is convicted if a fault of a disk was part of the
    run."""

    class Flipped(Ended):
        def meddle(self):
            if fault:
                self.cluster.note(Name.FAULT_BEGAN, node=2, cause=fault)
            self.cluster.world.hosts[2].disk.write_back()
            assert self.cluster.world.hosts[2].disk.rot_bit_within(
                SEGMENT, (range(CRC_START + 4, CRC_START + 40),)
            )

    trace = Flipped(small_plan()).run()
    assert ("corrupt_batch" in found(trace)) is (not fault)
    assert logs(trace, 2) != logs(trace, 1)


def test_an_index_that_leads_nowhere_is_a_finding_but_for_the_one_in_memory(small_plan):
    """The indexes of closed segments are on the disk; those of the last one are in the broker's memory, so
    that their files say nothing."""
    plan = small_plan()
    topics = tuple(evolve(topic, segment_bytes=300) for topic in plan.cluster.topics)
    plan = evolve(plan, cluster=evolve(plan.cluster, topics=topics))

    class Damaged(Ended):
        place = 0

        def meddle(self):
            disk = self.cluster.world.hosts[2].disk
            segments = [name for name in disk.list("t-0") if name.endswith(layout.LOG)]
            assert len(segments) > 1
            index = segments[self.place].removesuffix(layout.LOG) + layout.TIME_INDEX
            disk.open(f"t-0/{index}").append(b"\xff" * 24)

    class Last(Damaged):
        place = -1

    assert "index_damaged" in found(Damaged(plan).run())
    assert not found(Last(plan).run())


def test_a_directory_that_a_broker_should_have_is_missed(small_plan):
    """Its checkpoint names the replica, and ZooKeeper assigns it."""

    class Gone(Ended):
        def meddle(self):
            self.cluster.world.hosts[2].disk.remove_directory("t-0")

    assert "replica_missing" in found(Gone(small_plan()).run())
