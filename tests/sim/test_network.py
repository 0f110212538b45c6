"""The network: each fault of a link shows, ends when it should, and a message's fate depends on its own cause
only."""

from typing import Any

import pytest

from fencepost.sim.network import LOOPBACK, RETRANSMISSION, LinkFault, Network
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MICROSECOND, MILLISECOND, SECOND, Scheduler
from fencepost.traces.plan import NetworkOptions


class Mailbox:
    """An endpoint that notes arrivals."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.incarnation = scheduler, 0
        self.arrived: list[tuple[int, int, Any]] = []

    def receive(self, source: int, message: Any) -> None:
        self.arrived.append((self.scheduler.now, source, message))

    def messages(self) -> list[Any]:
        return [message for _, _, message in self.arrived]


class Net:
    """A network of three mailboxes."""

    def __init__(
        self,
        may_duplicate: Any = lambda message: True,
        may_be_late: Any = lambda message: True,
        **options: int,
    ) -> None:
        self.scheduler = Scheduler()
        self.network = Network(
            self.scheduler,
            Randomness(1),
            NetworkOptions(**options),
            {int: "int", str: "str", tuple: "tuple"},
            may_duplicate=may_duplicate,
            may_be_late=may_be_late,
        )
        self.boxes = {node: Mailbox(self.scheduler) for node in (1, 2, 3)}
        for node, box in self.boxes.items():
            self.network.attach(node, box)

    def send_many(self, number: int, source: int = 1, target: int = 2) -> None:
        for message in range(number):
            self.network.send(source, target, message, (message,))

    def run(self, duration: int = SECOND) -> None:
        self.scheduler.run_until(self.scheduler.now + duration)


def test_latency_lies_between_its_bounds_and_has_a_tail():
    """Every delay is at least the minimum and at most the maximum, and they differ."""
    net = Net(latency_min_us=100, latency_tail_us=200, latency_max_us=500)
    net.send_many(500)
    net.run()
    delays = [time for time, _, _ in net.boxes[2].arrived]
    assert len(delays) == 500 and min(delays) >= 100 * MICROSECOND and max(delays) == 500 * MICROSECOND
    assert len(set(delays)) > 350


def test_messages_of_a_link_overtake_each_other():
    """The network promises no order."""
    net = Net()
    net.send_many(50)
    net.run()
    assert sorted(net.boxes[2].messages()) == list(range(50)) != net.boxes[2].messages()


def test_a_message_to_oneself_takes_the_loopback():
    """Loopback is quick and never lost, whatever the network does."""
    net = Net(loss_ppm=1_000_000)
    net.send_many(10, source=1, target=1)
    net.run()
    assert [time for time, _, _ in net.boxes[1].arrived] == [LOOPBACK] * 10


def test_nothing_delays_or_loses_what_a_local_node_sends_or_gets():
    """Neither chance nor a fault, whether the link was used before or not; other links stay as they are."""
    net = Net(latency_min_us=100, latency_tail_us=200, latency_max_us=500, loss_ppm=1_000_000)
    net.send_many(1)
    net.network.make_local(1)
    net.network.partition("cut", [(1, 3), (1, 2)])
    net.send_many(5)
    net.send_many(5, source=3, target=1)
    net.send_many(5, source=2, target=3)
    net.run(LOOPBACK)
    assert [len(net.boxes[node].arrived) for node in (1, 2, 3)] == [5, 5, 0]


def test_loss():
    """A loss rate loses about that share of messages."""
    net = Net(loss_ppm=250_000)
    net.send_many(1_000)
    net.run()
    assert 680 < len(net.boxes[2].arrived) < 820 and net.network.lost == 1_000 - len(net.boxes[2].arrived)


def test_duplication_spares_what_must_not_be_doubled():
    """A duplicated message arrives twice; the predicate protects produce requests."""
    net = Net(duplicate_ppm=1_000_000, may_duplicate=lambda message: message % 2 == 0)
    net.send_many(100)
    net.run()
    arrived = net.boxes[2].messages()
    assert all(arrived.count(message) == (2 if message % 2 == 0 else 1) for message in range(100))
    assert net.network.duplicated == 50


def test_late_messages_spare_what_must_come_in_time():
    """A late message comes up to `late_max_us` later; the predicate protects what is assumed to come in time,
    and after `settle` none is late."""
    net = Net(
        late_ppm=500_000,
        late_max_us=500_000,
        latency_max_us=10_000,
        may_be_late=lambda message: message % 2 == 0,
    )
    net.send_many(400)
    net.run()
    late = [(time, message) for time, _, message in net.boxes[2].arrived if time > 20_000 * MICROSECOND]
    assert 60 < len(late) <= net.network.late < 140 and all(message % 2 == 0 for _, message in late)
    assert 450_000 * MICROSECOND < max(late)[0] < 511_000 * MICROSECOND
    net.network.settle()
    net.send_many(100)
    before = net.network.late
    net.run()
    assert net.network.late == before


def test_reordering_holds_messages_back():
    """A held-back message arrives later than any other may, and so none that must come in time is."""
    options = {"reorder_ppm": 200_000, "latency_tail_us": 0, "latency_max_us": 10_000}
    net = Net(**options, may_be_late=lambda message: message % 2 == 0)
    net.send_many(1_000)
    net.run()
    late = [message for time, _, message in net.boxes[2].arrived if time > 200 * MICROSECOND]
    assert len(late) == net.network.held_back and 60 < len(late) < 140
    assert all(message % 2 == 0 for message in late)


def test_a_partition_is_directed_named_and_independent_of_others():
    """Overlapping partitions end one by one; the other direction and other links go on."""
    net = Net()
    net.network.partition("a", {(1, 2)})
    net.network.partition("b", {(1, 2), (1, 3)})
    for source, target in ((1, 2), (2, 1), (1, 3), (3, 2)):
        net.network.send(source, target, f"{source}{target}")
    net.run()
    assert [net.boxes[node].messages() for node in (1, 2, 3)] == [["21"], ["32"], []]
    net.network.heal("b")
    assert net.network.blocked(1, 2) and not net.network.blocked(1, 3)
    net.network.heal("a")
    net.network.heal("a")
    net.network.send(1, 2, "again")
    net.run()
    assert net.boxes[2].messages() == ["32", "again"]


def test_a_message_in_flight_is_lost_if_the_link_is_cut_when_it_would_arrive():
    """A partition also takes what was sent before it; one that came and went does not."""
    net = Net(latency_min_us=1_000, latency_tail_us=0)
    net.network.send(1, 2, "cut")
    net.run(500 * MICROSECOND)
    net.network.partition("p", {(1, 2)})
    net.run(MILLISECOND)
    net.network.heal("p")
    net.network.send(1, 2, "survives")
    net.network.partition("q", {(1, 2)})
    net.run(500 * MICROSECOND)
    net.network.heal("q")
    net.run()
    assert net.boxes[2].messages() == ["survives"]


def test_extra_loss_and_delay_of_a_link():
    """A degraded link loses or delays what goes over it, and nothing else, while the fault lasts."""
    net = Net(latency_tail_us=0)
    net.network.add_fault("slow", LinkFault(links=frozenset({(1, 2)}), delay=5 * MILLISECOND))
    net.network.add_fault("lossy", LinkFault(links=frozenset({(1, 3)}), loss_ppm=1_000_000))
    for target in (2, 3):
        net.network.send(1, target, "x")
    net.run()
    assert net.boxes[2].arrived[0][0] == 5 * MILLISECOND + 200 * MICROSECOND and not net.boxes[3].arrived
    net.network.heal("slow")
    net.network.heal("lossy")
    net.network.send(1, 3, "y")
    net.run()
    assert net.boxes[3].messages() == ["y"]


def test_a_message_does_not_reach_a_later_incarnation():
    """A connection dies with the process: an answer to the old process is not taken for one to the new."""
    net = Net()
    net.network.send(1, 2, "old")
    net.boxes[2].incarnation += 1
    net.network.send(1, 2, "new")
    net.run()
    assert net.boxes[2].messages() == ["new"]


def test_a_name_cannot_be_used_for_two_faults_at_once():
    """Two faults of one name could not be healed apart."""
    net = Net()
    net.network.partition("p", {(1, 2)})
    with pytest.raises(AssertionError, match="already there"):
        net.network.partition("p", {(2, 1)})


def fates(causes: list[int], **options: int) -> dict[Any, list[int]]:
    """When each message of a workload arrives, the replies that it causes included."""
    net = Net(**options)
    answered: dict[Any, list[int]] = {}

    class Server(Mailbox):
        def receive(self, source: int, message: Any) -> None:
            net.network.send(2, source, ("reply", *message), (message[1],))

    class Client(Mailbox):
        def receive(self, source: int, message: Any) -> None:
            answered.setdefault(message[1:], []).append(self.scheduler.now)

    net = Net(**options)
    net.network.attach(2, Server(net.scheduler))
    net.network.attach(1, Client(net.scheduler))
    for cause in causes:
        for attempt in range(2):
            net.scheduler.at(cause * MILLISECOND, net.network.send, 1, 2, ("ask", cause, attempt), (cause,))
    net.run(10 * SECOND)
    return answered


def test_removing_one_operation_leaves_the_fates_of_all_others_as_they_were():
    """Randomness is keyed by cause: delay, loss, doubling and holding back of a message do not depend on
    other operations."""
    options = {"loss_ppm": 100_000, "duplicate_ppm": 100_000, "reorder_ppm": 100_000}
    whole = fates(list(range(40)), **options)
    for removed in (0, 17, 39):
        rest = fates([cause for cause in range(40) if cause != removed], **options)
        assert rest == {key: times for key, times in whole.items() if key[1] != removed}


def test_a_repeated_cause_is_drawn_anew():
    """A retry of the same operation has a fate of its own."""
    net = Net()
    for _ in range(20):
        net.network.send(1, 2, "retry", (5,))
    net.run()
    assert len({time for time, _, _ in net.boxes[2].arrived}) > 15


def test_a_stream_keeps_its_order_and_survives_a_short_partition():
    """A channel delivers in order, once, and goes on after a blocked link is free again."""
    net, seen = Net(loss_ppm=200_000), []
    channel = net.network.channel(1, 2, lambda frame: seen.append((net.scheduler.now, frame)))
    for frame in range(50):
        channel.send(frame)
    net.run()
    assert [frame for _, frame in seen] == list(range(50))
    net.network.partition("p", {(1, 2)})
    channel.send("late")
    net.run(SECOND)
    assert len(seen) == 50
    net.network.heal("p")
    net.run(RETRANSMISSION + SECOND)
    assert seen[-1][1] == "late" and seen[-1][0] >= 2 * SECOND


def test_a_closed_stream_delivers_nothing():
    """What was on its way when a connection was closed is gone, also if a frame's arrival closes it."""
    net, seen = Net(), []
    channel = net.network.channel(1, 2, lambda frame: (seen.append(frame), channel.close()))
    for frame in range(5):
        channel.send(frame)
    net.run()
    channel.send("more")
    net.run()
    assert seen == [0]


@pytest.mark.parametrize("cause", [None, (9,)])
def test_a_frame_beside_the_protocol_holds_up_no_other(cause):
    """What has no cause takes the shortest delay: frames behind it arrive when they would without it. With a
    cause of its own (planted) it holds some up."""

    def arrivals(beside: bool) -> list[tuple[int, Any]]:
        net, arrived = Net(loss_ppm=100_000), []
        channel = net.network.channel(
            1, 2, lambda frame: frame == "beside" or arrived.append((net.scheduler.now, frame))
        )
        for number in range(200):
            if beside:
                channel.send("beside", cause)
            channel.send(number, (number,))
            net.run(MILLISECOND)
        net.run()
        return arrived

    assert len(arrivals(beside=True)) == 200
    assert (arrivals(beside=True) == arrivals(beside=False)) == (cause is None)


def test_causes_are_forgotten_and_messages_go_on():
    """Rule: a network that forgets its causes needs no memory for them, and a cause that comes again draws
    what it drew first."""
    net = Net(latency_min_us=1, latency_tail_us=500, latency_max_us=5_000)
    links = net.network._links.values()
    for number in range(100):
        net.network.send(1, 2, "hello", (number,))
    assert sum(len(words) for link in links for _, words in link.streams.values()) == 100
    net.network.forget_causes()
    assert all(not link.streams for link in links)
    net.network.send(1, 2, "hello", (0,))
    assert sum(len(words) for link in links for _, words in link.streams.values()) == 1


def test_a_stream_is_clear_while_nothing_holds_it_up():
    """Rule: a frame may be handed over at once if nothing is on its way and the link is neither blocked,
    slowed nor lossy."""
    net = Net(latency_min_us=1, latency_tail_us=0, latency_max_us=1)
    channel = net.network.channel(1, 2, lambda frame: None)
    assert channel.clear
    channel.send("on its way")
    assert not channel.clear
    net.scheduler.run_until(SECOND)
    assert channel.clear
    for fault in (
        LinkFault(links=frozenset({(1, 2)}), blocked=True),
        LinkFault(links=frozenset({(1, 2)}), delay=1),
        LinkFault(links=frozenset({(1, 2)}), loss_ppm=1),
    ):
        net.network.add_fault("fault", fault)
        assert not channel.clear
        net.network.heal("fault")
    channel.close()
    assert not channel.clear
