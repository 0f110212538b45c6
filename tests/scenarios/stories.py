"""The stories themselves: each makes its moves, in order, and says why. What came of them is written by the
transcript."""

from collections.abc import Callable
from functools import partial

from controller_lab import delete_topic, reassign
from impl_lab import T0
from transcript import Story

from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Multi, SetData
from fencepost.traces.plan import TopicOptions


def running(title: str, replicas: tuple[int, ...] = (2, 3), brokers: int = 4, **options: object) -> Story:
    """A cluster at rest: broker 1 is the controller, t-0 holds one record."""
    story = Story(title, brokers, scripted=False, **options)
    story.create_topic({0: replicas}).rest()
    story.produce(replicas[0], 11)
    story.rest()
    story.show()
    del story.lines[2:]
    story.lines += [
        "",
        f"   (at rest: broker 1 is the controller, t-0 has replicas {replicas} and one record)",
    ]
    return story


# ---- brokers and controllers


def start_up() -> Story:
    story = Story("Start-up", 3, scripted=False, start=False)
    for node in (1, 2, 3):
        story.tell(f"broker {node} starts")
        story.start(node).settle()
    story.tell("a topic is created with replicas 2, 3 and 1")
    return story.create_topic({0: (2, 3, 1)}).settle()


def controller_failure() -> Story:
    story = running("The controller fails", (1, 2, 3), 3)
    story.tell("broker 1, controller and leader of t-0, dies")
    story.crash(1).rest()
    story.tell("it comes back, as a follower")
    return story.start(1).rest()


def controller_session_expiry() -> Story:
    story = running("The controller's session expires", (2, 3, 1), 3)
    story.tell("ZooKeeper ends the session of broker 1, which learns of it at once and begins another")
    return story.expire(1).rest()


def zombie_controller() -> Story:
    story = running("A zombie controller wakes up", (2, 3, 1), 3)
    story.tell("broker 3 dies; broker 1 pauses before it takes it out of the ISR")
    story.hold_zookeeper(1)
    story.crash(3)
    story.tell("meanwhile its session ends; broker 2 is elected and pauses before its first write of a state")
    story.hold_zookeeper(2)
    story.end_session(1)
    while not isinstance(story.drivers[2].held[0].request, Multi):
        story.release_zookeeper(2, 1)
    story.release_zookeeper(2, 1)
    story.tell("broker 1 wakes up on a new session and goes on with what it had decided")
    story.notice_expiry(1)
    story.tell("broker 2 goes on")
    return story.release_zookeeper(2).rest()


def broker_bounce() -> Story:
    story = running("A broker bounces", (2, 3, 1), 3)
    story.tell("broker 2 dies and returns before the controller has looked: the same id, another incarnation")
    story.hold_zookeeper(1)
    story.restart(2)
    return story.release_zookeeper(1).rest()


def controlled_shutdown() -> Story:
    story = running("Controlled shutdown in five steps")
    story.tell("1. SIGTERM: broker 2 asks the controller")
    story.hold_zookeeper(1)
    story.step(2, StopRequested())
    story.tell("2. the controller moves the leader away and stores that")
    story.deliver(2, 1, kafka.ControlledShutdownRequest)
    story.release_zookeeper(1)
    story.tell("3. it tells the other brokers")
    story.settle(1, 3, 4)
    story.tell("4. it answers that nothing remains; 5. broker 2 stops")
    return story.settle()


# ---- below /admin


def reassignment() -> Story:
    story = running("Reassignment from 2,3 to 3,4")
    story.tell("an admin asks for it; broker 4 does not hear yet: AR has grown, the epoch is raised")
    reassign(story, {T0: (3, 4)})
    story.settle(1, 2, 3)
    story.tell("broker 4 catches up and joins the ISR; the rest follows")
    return story.rest()


STATE, TOPIC = znodes.state_path(T0), znodes.topic_path("t")
FAIL_OVERS: dict[str, tuple[str, str, int, bool]] = {
    "1_read": ("before AR grows", TOPIC, 1, False),
    "2_grown": ("after AR has grown, before the epoch is raised", STATE, 1, False),
    "3_raised": ("after the epoch is raised, before anybody is told", STATE, 1, True),
    "4_caught_up": ("when the target is in the ISR, before leader and ISR are within it", STATE, 2, False),
    "5_moved": ("after leader and ISR are within the target, before anybody is told", STATE, 2, True),
    "6_deleted": ("after the old replica is deleted, before AR shrinks", TOPIC, 2, False),
    "7_shrunk": ("after AR has shrunk, before the entry is removed", znodes.REASSIGN, 1, False),
    "8_removed": ("after the entry is removed, before anybody is told", znodes.REASSIGN, 1, True),
}
"""When the controller dies: in words; at which write of which node; whether that write is done. The numbers
are those of the steps in reassignment.py."""


def reassignment_with_fail_over(step: str) -> Story:
    when, path, occurrence, done = FAIL_OVERS[step]
    story = running(f"Reassignment from 2,3 to 3,4; the controller dies {when}")
    story.tell("an admin asks for it; broker 1 goes as far as it will get")
    story.hold_zookeeper(1)
    reassign(story, {T0: (3, 4)})
    for number in range(occurrence):
        _hold_before_write(story, path, passing=number > 0)
    if done:
        story.release_zookeeper(1, 1)
        story.drop(source=1)
    story.tell("broker 1 dies; its successor goes on")
    story.crash(1).rest()
    return story.rest()


def _hold_before_write(story: Story, path: str, *, passing: bool) -> None:
    """Carry out what broker 1 asks of ZooKeeper, up to its next write of this node; passing: it stands before
    one and carries it out first."""
    for _ in range(200):
        held = story.drivers[1].held
        if not held:
            story.settle()
            story.advance(100, settle=True)
            continue
        request = held[0].request
        writes = isinstance(request, Multi) and any(member.path == path for member in request.operations)
        if writes and not passing:
            return
        passing = passing and not writes
        story.release_zookeeper(1, 1)
    raise AssertionError(f"broker 1 never writes {path}")


def topic_deletion() -> Story:
    story = running("A topic is deleted while a broker is down")
    story.tell("broker 3 dies")
    story.crash(3).rest()
    story.tell("an admin deletes t: broker 2 deletes its replica, the other one is ineligible")
    delete_topic(story)
    story.rest()
    story.tell("the controller dies; its successor finds the request and waits as well")
    story.crash(1).rest()
    story.tell("broker 3 returns")
    return story.start(3).rest()


def preferred_election() -> Story:
    story = running("Preferred election by request")
    story.tell("broker 2 bounces: broker 3 leads")
    story.crash(2).rest()
    story.start(2).rest()
    story.tell("an admin asks for the preferred leader")
    story.admin(Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions([T0])))
    return story.settle()


def partition_addition() -> Story:
    story = running("A partition is added")
    story.tell("an admin adds partition 1 on brokers 4 and 2")
    story.admin(SetData(znodes.topic_path("t"), znodes.encode_topic({0: (2, 3), 1: (4, 2)})))
    return story.settle()


# ---- replication


def unclean_election() -> Story:
    story = running("Unclean election", topic=TopicOptions(unclean_leader_election=True))
    story.tell("broker 3 dies; broker 2 goes on alone with a record that only it has")
    story.crash(3).rest()
    story.produce(2, 12)
    story.tell("broker 2 dies, too; broker 3 returns: the topic allows it to lead without that record")
    story.crash(2).settle()
    story.start(3).rest()
    story.tell("broker 2 returns and cuts it")
    return story.start(2).rest()


def isr_shrink_and_expand() -> Story:
    story = running("The ISR shrinks and expands", (2, 3, 1), 3, replica_lag_time_max_ms=1_000)
    story.tell("broker 3 hears nothing while broker 2 appends")
    story.produce(2, 12)
    story.settle(1, 2)
    story.advance(4_600, nodes=(2,))
    story.settle(1, 2)
    story.tell("broker 3 catches up")
    return story.rest()


STORIES: dict[str, Callable[[], Story]] = {
    story.__name__: story
    for story in (
        start_up,
        controller_failure,
        controller_session_expiry,
        zombie_controller,
        broker_bounce,
        controlled_shutdown,
        reassignment,
        topic_deletion,
        preferred_election,
        partition_addition,
        unclean_election,
        isr_shrink_and_expand,
    )
} | {f"reassignment_fail_over_{step}": partial(reassignment_with_fail_over, step) for step in FAIL_OVERS}
