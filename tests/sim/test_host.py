"""A host: order of inputs and effects, persist before send, timers, and every way to end, stop or delay a
process."""

import pytest

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    CancelTimer,
    Complete,
    Halt,
    MessageArrived,
    RecordEvent,
    Send,
    SetTimer,
    Started,
    TimerFired,
    ZooKeeperReplied,
)
from fencepost.impl.zookeeper.interface import Exists
from fencepost.sim import host as host_module
from fencepost.sim.disk import FileLoss, PowerLoss
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import DiskOptions

SYNC = DiskOptions(write_us=0, fsync_us=10_000)


def sync_and_send(target, message):
    """An invocation that makes something durable, then sends."""

    def call(core, now):
        file = core.files.open("log")
        file.append(b"x")
        file.sync()
        core.files.sync_directory("")
        return [Send(target, message)]

    return call


def test_a_process_starts_with_started_and_hears_messages(lab):
    """Started comes first; a message comes with its source."""
    it = lab(2)
    it.send(2, 1, "hello").run()
    assert [input for _, input in it.core(1).inputs] == [Started(), MessageArrived(2, "hello")]


def test_effects_leave_after_the_file_calls_of_their_step(lab):
    """Persist before send: the step's cost passes first, and the next input waits that long too."""
    it = lab(2, disk=SYNC)
    it.world.hosts[1].invoke(sync_and_send(2, "durable"))
    it.send(1, 1, "next").run(19 * MILLISECOND)
    assert not it.core(2).messages() and not it.core(1).messages()
    it.run()
    assert it.core(2).messages() == ["durable"]
    assert it.core(2).times(MessageArrived)[0] >= 20 * MILLISECOND
    assert it.core(1).messages() == ["next"]


def test_what_is_on_disk_is_told_though_the_process_died_before_its_effects_left(lab):
    """A crash while a step's file calls still cost time drops its effects, all but the record of what the
    files hold (swarm, reassignment, seed 1928)."""
    it = lab(2, disk=SYNC)

    def call(core, now):
        file = core.files.open("log")
        file.append(b"x")
        file.sync()
        on_disk = RecordEvent(Name.MARK, {"cause": "deleted"}, on_disk=True)
        return [on_disk, RecordEvent(Name.MARK, {"cause": "told"}), Send(2, "told")]

    it.world.hosts[1].invoke(call)
    it.run(5 * MILLISECOND)
    assert not it.notes.events
    it.world.crash(1)
    assert [event.cause for event in it.notes.events] == ["deleted"]
    it.run()
    assert not it.core(2).messages() and len(it.notes.events) == 1


def test_effects_are_released_in_their_order(it):
    """Record, Complete and Send of one step happen in the order in which the core gave them."""
    order = []
    it.notes.recorded = lambda event: order.append(event.cause)
    it.notes.completed = lambda node, operation: order.append(operation)
    it.do(1, Complete("a"), RecordEvent(Name.MARK, {"cause": "b"}), Complete("c")).run()
    assert order == ["a", "b", "c"]


def test_a_record_is_stamped_with_the_worlds_time_and_the_node(it):
    """The core's own clock does not reach the trace; every other column does."""
    it.world.hosts[1].clock.jump(SECOND)
    it.run(5)
    columns = {
        "topic": "t",
        "partition": 1,
        "controller_epoch": 2,
        "broker_epoch": 3,
        "leader": 4,
        "leader_epoch": 5,
        "zk_version": 6,
        "offset": 7,
        "end_offset": 8,
        "high_watermark": 9,
        "log_start_offset": 10,
        "isr": (11,),
        "replicas": (12,),
        "values": (13,),
        "cause": "c",
        "detail": "d",
    }
    it.do(1, RecordEvent(Name.APPENDED, columns))
    assert it.notes.events == [Event(time=5, name=Name.APPENDED, node=1, **columns)]


def test_timers_fire_by_the_hosts_clock(it):
    """At their instant, or at once if it has passed; the host's time is its own."""
    it.world.hosts[1].clock.jump(SECOND)
    it.do(1, SetTimer(("late",), SECOND + 50), SetTimer(("past",), 3)).run()
    assert [(now, input) for now, input in it.core(1).inputs[1:]] == [
        (SECOND, TimerFired(("past",))),
        (SECOND + 50, TimerFired(("late",))),
    ]


def test_a_timer_set_again_or_cancelled_does_not_fire_as_it_was(it):
    """Setting a key again replaces its deadline; cancelling forgets it; cancelling what is not set does
    nothing."""
    it.do(1, SetTimer(("a",), 10), SetTimer(("a",), 30), SetTimer(("b",), 20), CancelTimer(("b",)))
    it.do(1, CancelTimer(("c",))).run()
    assert it.core(1).inputs[1:] == [(30, TimerFired(("a",)))]


def test_a_timer_that_waits_in_the_queue_can_still_be_cancelled_or_replaced(lab):
    """A timer that came due while the process was busy is not fired if a step before it cancelled or replaced
    it."""
    it = lab(1, disk=SYNC)
    it.do(1, *(SetTimer((key,), 5 * MILLISECOND) for key in "abc"))
    it.world.hosts[1].invoke(sync_and_send(1, "x"))  # busy for 20 ms
    it.do(1, CancelTimer(("a",)), SetTimer(("b",), 50 * MILLISECOND)).run(10 * MILLISECOND)
    it.do(1, CancelTimer(("unset",))).run()
    fired = list(zip(it.core(1).times(TimerFired), it.core(1).heard(TimerFired), strict=True))
    assert fired == [(20 * MILLISECOND, TimerFired(("c",))), (50 * MILLISECOND, TimerFired(("b",)))]


def test_a_crash_ends_timers_queue_and_unreleased_effects(lab):
    """Nothing of a dead process happens any more; its files are as written, and a new process starts on
    them."""
    it = lab(2, disk=SYNC)
    it.do(1, SetTimer(("t",), 50 * MILLISECOND))
    it.world.hosts[1].invoke(sync_and_send(2, "never"))
    it.do(1, Complete("never")).run(MILLISECOND)
    old = it.core(1)
    it.world.crash(1)
    it.world.crash(1)
    assert it.core(1) is None and not it.world.hosts[1].up
    it.send(2, 1, "to nobody")
    it.do(1, Complete("never")).run()
    assert len(old.inputs) == 1 and not it.core(2).messages() and not it.notes.operations
    it.world.restart(1)
    it.run()
    assert it.core(1).inputs == [(it.core(1).started, Started())] and it.core(1) is not old
    assert it.core(1).files.open("log").size() == 1


def test_messages_to_an_earlier_process_do_not_reach_the_next(lab):
    """Connections die with the process."""
    it = lab(2)
    it.send(2, 1, "old")
    it.world.crash(1)
    it.world.restart(1)
    it.run()
    assert not it.core(1).messages()


def test_a_power_loss_also_loses_what_was_not_synced(lab):
    """A crash keeps unsynced writes, a power loss (here, of the whole name) does not; the report says what
    was lost."""
    for seed in range(20):
        it = lab(1, seed=seed)
        it.world.hosts[1].invoke(lambda core, now: core.files.open("log").append(b"abc") or [])
        it.run()
        report = it.world.power_loss(1)
        assert it.notes.power_losses == [(1, report)] and not it.world.hosts[1].up
        if report.steps_lost:
            assert report.files == (FileLoss(path="log", size_before=3, size_after=0, kept=0),)
            break
    else:
        pytest.fail("no power loss lost the unsynced name")
    it.world.restart(1)
    it.run()
    assert it.core(1).files.list("") == []


def test_an_armed_power_loss_ends_the_step_it_hits(lab):
    """The step's effects are dropped, the host is down, and the observer is told."""
    it = lab(2)
    it.world.arm_power_loss(1, 3)  # open, append, sync
    it.world.hosts[1].invoke(sync_and_send(2, "never"))
    it.run()
    assert not it.world.hosts[1].up and not it.core(2).messages()
    ((node, _),) = it.notes.power_losses
    assert node == 1
    it.world.restart(1)
    it.run()
    assert it.core(1).heard(Started)


def test_power_can_fail_while_a_process_opens_its_files(lab):
    """A power loss in the core's construction leaves the host down."""
    it = lab(0)
    starts = []

    def make_core(files, now):
        starts.append(now)
        files.open(f"log{len(starts)}")
        return type("Idle", (), {"step": lambda self, input, now: []})()

    host = it.world.add_host(1, make_core, zookeeper=False)
    it.world.arm_power_loss(1, 1)
    it.world.start(1)
    assert not host.up and len(it.notes.power_losses) == 1
    it.world.start(1)
    assert host.up


def test_a_paused_process_does_nothing_and_then_everything_in_order(lab):
    """Inputs queue up, timers fire late, effects of a step that was running leave late."""
    it = lab(2, disk=SYNC)
    it.do(1, SetTimer(("t",), 30 * MILLISECOND))
    it.world.hosts[1].invoke(sync_and_send(2, "late"))
    it.run(MILLISECOND)
    it.world.pause(1)
    it.send(2, 1, "hello").run()
    assert len(it.core(1).inputs) == 1 and not it.core(2).messages()
    it.world.resume(1)
    woke = it.world.now
    it.run()
    assert [(now, type(input)) for now, input in it.core(1).inputs[1:]] == [
        (woke, MessageArrived),
        (woke, TimerFired),
    ]
    assert it.core(2).times(MessageArrived)[0] > woke


def test_a_pause_can_end_in_a_crash(lab):
    """A paused process that is killed does not go on after a restart."""
    it = lab(2)
    it.world.pause(1)
    it.send(2, 1, "hello").run()
    it.world.crash(1)
    it.world.resume(1)
    it.world.restart(1)
    it.run()
    assert [input for _, input in it.core(1).inputs] == [Started()]


def test_the_queue_of_a_paused_process_has_a_bound(lab, monkeypatch):
    """Messages beyond the bound are lost, timers are not."""
    monkeypatch.setattr(host_module, "MAXIMUM_WAITING_MESSAGES", 5)
    it = lab(2)
    it.do(1, SetTimer(("t",), 500 * MILLISECOND))
    it.world.pause(1)
    for number in range(10):
        it.send(2, 1, number)
    it.run()
    it.world.resume(1)
    assert len(it.core(1).messages()) == 5 and it.core(1).heard(TimerFired) == [TimerFired(("t",))]


def test_a_process_that_halts_is_down(it):
    """Halt ends the process after the effects before it, drops those after it, and is told to the
    observer."""
    it.do(1, Complete("before"), Halt("no disk"), Complete("after"))
    assert it.notes.operations == [(1, "before")] and it.notes.halts == [(1, "no disk")]
    assert not it.world.hosts[1].up


def test_the_observer_may_call_the_host_back(it):
    """An invocation or a restart from inside a callback takes its turn: no step runs inside another."""
    inside = []

    def completed(node, operation):
        inside.append(("begin", operation))
        if operation < 3:
            it.do(1, Complete(operation + 1))
        inside.append(("end", operation))

    it.notes.completed = completed
    it.notes.halted = lambda node, reason: it.world.restart(node)
    it.do(1, Complete(1))
    assert inside == [(edge, operation) for operation in (1, 2, 3) for edge in ("begin", "end")]
    it.do(1, Halt("again"), Complete(1)).run()
    assert it.world.hosts[1].up and it.core(1).heard(Started) and len(inside) == 6


def test_a_host_without_zookeeper_cannot_ask_it(it):
    """A client core that asks ZooKeeper is our own mistake."""
    with pytest.raises(AssertionError, match="no ZooKeeper client"):
        it.do(1, AskZooKeeper(1, Exists("/")))


def test_power_can_fail_at_the_first_thing_that_a_resumed_process_hears(lab):
    """What ZooKeeper said during a pause is heard at its end, one by one; if the first of it ends the
    process, nobody hears the rest."""
    it = lab(1, zookeeper=True)
    core, heard = it.core(1), []

    def answers(input):
        if isinstance(input, ZooKeeperReplied):
            heard.append(input.request_id)
            raise PowerLoss
        return []

    core.answers = answers
    it.do(1, AskZooKeeper(1, Exists("/a")), AskZooKeeper(2, Exists("/b")))
    it.world.pause(1)
    it.run(SECOND)
    assert heard == []
    it.world.resume(1)
    assert heard == [1] and not it.world.hosts[1].up
    it.run(60 * SECOND)
    assert it.world.zookeeper.sessions(1) == []


def test_a_core_that_makes_a_mistake_ends_its_process_and_only_that(lab):
    """Rule: the step's effects are gone, the host is down, and the observer hears of it: one that does not
    listen raises the mistake."""
    it, heard = lab(2), []

    def answers(input):
        raise KeyError(input.message)

    it.core(1).answers = answers
    it.send(2, 1, "mistake")
    with pytest.raises(KeyError, match="mistake"):
        it.run()
    assert not it.world.hosts[1].up
    it.notes.failed = lambda node, error, events: heard.append((node, repr(error), events))
    it.world.start(1)
    it.core(1).answers = answers
    it.send(2, 1, "again").run()
    ((node, error, (event,)),) = heard
    assert (node, error) == (1, "KeyError('again')")
    assert (event.name, event.node, event.cause) == (Name.IMPLEMENTATION_ERROR, 1, "KeyError")
    assert event.time > 0 and '"during":"MessageArrived"' in event.detail
    assert it.world.hosts[1].core is None and it.world.hosts[2].up


def test_what_the_caller_asked_for_wrongly_is_no_mistake_of_the_core(it):
    """Rule: a FencepostError is the caller's, and ends the run."""

    def call(core, now):
        raise FencepostError(expected="something possible", seen="nothing", where="a test")

    with pytest.raises(FencepostError, match="something possible"):
        it.world.hosts[1].invoke(call)


def test_a_host_without_a_free_moment_is_told(lab):
    """What waits for the disk for as long as BUSY_NS, one step or many without a pause between them, is told;
    what comes in time is not."""
    it = lab(1, disk=SYNC)  # 20 ms a step
    told = []
    it.world.hosts[1]._observer.busy = lambda node, since: told.append((node, since, it.world.scheduler.now))
    for _ in range(4):
        it.world.hosts[1].invoke(sync_and_send(1, "one"))
    it.run()
    assert told == []
    began = it.world.scheduler.now
    for _ in range(6):
        it.world.hosts[1].invoke(sync_and_send(1, "one"))
    it.run()
    assert told == [(1, began, began + 100 * MILLISECOND)]
