"""The ZooKeeper service: sessions, expiry, order of what a client hears, and each of its faults."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.core import core_interface
from fencepost.impl.zookeeper import interface as zk
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.sim.zookeeper import ADMIN_NODE

TIMEOUT = 6 * SECOND


@pytest.fixture
def it(lab):
    """A world of one probe, and ZooKeeper."""
    return lab(1, zookeeper=True)


def session_story(core):
    """The names of what a core heard of its session, in order."""
    names = {
        core_interface.ZooKeeperConnected: lambda input: "new session" if input.new else "same session",
        core_interface.ZooKeeperDisconnected: lambda input: "disconnected",
        core_interface.ZooKeeperSessionExpired: lambda input: "expired",
    }
    return [names[type(input)](input) for _, input in core.inputs if type(input) in names]


def test_requests_are_answered_in_order(it):
    """A session opens by itself; replies come in the order of requests."""
    assert session_story(it.core(1)) == ["new session"]
    replies = it.ask(1, *(zk.Create(f"/{name}") for name in "abc"), zk.Exists("/a"), zk.Exists("/d"))
    assert [reply.path for reply in replies[:3]] == ["/a", "/b", "/c"]
    assert replies[4] == zk.Failed(zk.ZooKeeperError.NO_NODE)
    ids = [input.request_id for input in it.core(1).heard(core_interface.ZooKeeperReplied)]
    assert ids == sorted(ids)


def test_a_watch_comes_before_a_reply_that_shows_the_change(lab):
    """Over many delays, nobody reads a change before the watch that he had set on it has fired."""
    for seed in range(30):
        it = lab(2, zookeeper=True, seed=seed)
        it.ask(1, zk.Create("/a", b"0"), zk.GetData("/a", watch=True))
        it.ask(2, zk.SetData("/a", b"1"), run=0)
        seen = it.ask(1, *[zk.GetData("/a")] * 20)
        values = [reply.data for reply in seen]
        inputs = [input for _, input in it.core(1).inputs[3:]]
        fired = inputs.index(core_interface.ZooKeeperWatchFired(zk.WatchEvent("/a", zk.WatchKind.CHANGED)))
        shown = [
            place
            for place, input in enumerate(inputs)
            if isinstance(input, core_interface.ZooKeeperReplied)
            and isinstance(input.reply, zk.Data)
            and input.reply.data == b"1"
        ]
        assert b"1" in values and fired < min(shown)


def test_an_idle_session_lives_by_its_pings(it):
    """A client that asks nothing keeps its session, ephemerals and connection."""
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.run(10 * TIMEOUT)
    assert session_story(it.core(1)) == ["new session"]
    assert isinstance(it.ask(1, zk.Exists("/me"))[0], type(it.world.admin(zk.Exists("/me"))))
    assert it.world.zookeeper.sessions(1) == [1]


def test_a_crashed_host_is_forgotten_after_its_session_timeout(lab):
    """The session of a dead process expires, no earlier than its time-out and not much later; its ephemeral
    goes, watches of others fire."""
    it = lab(2, zookeeper=True)
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.ask(2, zk.Exists("/me", watch=True))
    crashed = it.world.now
    it.world.crash(1)
    it.run(2 * TIMEOUT)
    (when,) = it.core(2).times(core_interface.ZooKeeperWatchFired)
    assert it.core(2).heard(core_interface.ZooKeeperWatchFired) == [
        core_interface.ZooKeeperWatchFired(zk.WatchEvent("/me", zk.WatchKind.DELETED))
    ]
    assert TIMEOUT * 2 // 3 <= when - crashed <= TIMEOUT + 100 * MILLISECOND
    last = it.commits[-1]
    assert (last.node, last.by_expiry, [c.path for c in last.changes]) == (1, True, ["/me"])


def test_a_restarted_process_gets_a_session_of_its_own(it):
    """The old session and its ephemeral outlive the process for a while; the new process starts without
    them."""
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.world.crash(1)
    it.world.restart(1)
    it.run()
    assert session_story(it.core(1)) == ["new session"]
    assert it.world.zookeeper.sessions(1) == [1, 2]
    assert it.ask(1, zk.Create("/me", ephemeral=True)) == [zk.Failed(zk.ZooKeeperError.NODE_EXISTS)]
    it.run(TIMEOUT)
    assert it.world.zookeeper.sessions(1) == [2] and isinstance(it.ask(1, zk.Create("/me"))[0], zk.Created)


def test_a_short_pause_is_not_noticed_and_a_long_one_costs_the_session(lab):
    """A paused process does not ping: after more than the time-out its session is gone, and it hears of that
    only when it goes on."""
    it = lab(2, zookeeper=True)
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.world.pause(1)
    it.run(TIMEOUT // 3)
    it.world.resume(1)
    it.run()
    assert session_story(it.core(1)) == ["new session"]
    it.world.pause(1)
    it.run(2 * TIMEOUT)
    assert isinstance(it.world.admin(zk.Exists("/me")), zk.Failed)
    assert session_story(it.core(1)) == ["new session"]
    it.world.resume(1)
    it.run(2 * SECOND)
    assert session_story(it.core(1)) == ["new session", "disconnected", "expired", "new session"]
    assert isinstance(it.ask(1, zk.Create("/me", ephemeral=True))[0], zk.Created)


def test_a_short_cut_from_zookeeper_keeps_the_session(it):
    """A client cut off for less than its time-out loses its connection, not its session; what it had asked
    ends in CONNECTION_LOSS."""
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.world.cut_from_zookeeper("cut", [1])
    it.ask(1, zk.Create("/lost"), run=TIMEOUT * 5 // 6)
    core = it.core(1)
    assert session_story(core) == ["new session", "disconnected"]
    answers = core.heard(core_interface.ZooKeeperReplied)
    assert answers[-1].reply == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
    places = [type(input) for _, input in core.inputs]
    assert places.index(core_interface.ZooKeeperDisconnected) == len(places) - 1, (
        "outstanding requests are answered first"
    )
    assert it.ask(1, zk.Create("/refused"), run=1) == [zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)]
    it.world.heal("cut")
    it.run(SECOND)
    assert session_story(core) == ["new session", "disconnected", "same session"]
    assert not isinstance(it.ask(1, zk.Exists("/me"))[0], zk.Failed)
    assert isinstance(it.world.admin(zk.Exists("/lost")), zk.Failed)


def test_a_long_cut_from_zookeeper_costs_the_session(it):
    """The ephemerals go at the server while the client only knows that it is disconnected; it hears of the
    expiry when it is back."""
    it.ask(1, zk.Create("/me", ephemeral=True))
    it.world.cut_from_zookeeper("cut", [1])
    it.run(2 * TIMEOUT)
    assert isinstance(it.world.admin(zk.Exists("/me")), zk.Failed)
    assert session_story(it.core(1)) == ["new session", "disconnected"]
    it.world.heal("cut")
    it.run(2 * SECOND)
    assert session_story(it.core(1)) == ["new session", "disconnected", "expired", "new session"]


def test_zookeeper_unreachable_for_all(lab):
    """Everybody is cut off, and everybody comes back by himself."""
    it = lab(3, zookeeper=True)
    it.world.cut_from_zookeeper("down", [1, 2, 3])
    it.run(3 * TIMEOUT)
    it.world.heal("down")
    it.run(3 * SECOND)
    for node in (1, 2, 3):
        assert session_story(it.core(node))[1:] == ["disconnected", "expired", "new session"]


def test_a_forced_expiry(it):
    """The ephemerals go at once; the client hears of it and gets a new session without its watches."""
    it.ask(1, zk.Create("/me", ephemeral=True), zk.GetChildren("/", watch=True))
    assert it.world.expire_session(1)
    assert isinstance(it.world.admin(zk.Exists("/me")), zk.Failed)
    it.run(2 * SECOND)
    assert session_story(it.core(1)) == ["new session", "disconnected", "expired", "new session"]
    it.world.admin(zk.Create("/x"))
    it.run()
    assert not it.core(1).heard(core_interface.ZooKeeperWatchFired)
    it.world.crash(1)
    it.run(2 * TIMEOUT)
    assert not it.world.expire_session(1)


def test_a_lost_reply_leaves_the_write_done(it):
    """The write is committed, its author hears CONNECTION_LOSS, keeps his session and can look; the next
    write is answered."""
    it.world.lose_zookeeper_replies(1)
    read, write = it.ask(1, zk.Exists("/a"), zk.Create("/a", b"x"))
    assert read == zk.Failed(zk.ZooKeeperError.NO_NODE), "a read is answered"
    assert write == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
    it.run(2 * SECOND)
    assert session_story(it.core(1)) == ["new session", "disconnected", "same session"]
    assert it.ask(1, zk.GetData("/a"))[0].data == b"x"
    assert isinstance(it.ask(1, zk.Create("/b"))[0], zk.Created)


def test_watches_survive_a_reconnection_and_tell_what_was_missed(it):
    """A watch that fired while its session was away comes after the reconnection; one that did not fire is
    still set."""
    for path in ("/missed", "/kept", "/parent"):
        it.world.admin(zk.Create(path))
    watched = [
        zk.GetData("/missed", watch=True),
        zk.GetData("/kept", watch=True),
        zk.Exists("/new", watch=True),
    ]
    it.ask(1, *watched, zk.GetChildren("/parent", watch=True))
    it.world.cut_from_zookeeper("cut", [1])
    it.run(TIMEOUT * 3 // 4)
    for request in (zk.SetData("/missed", b""), zk.Create("/new"), zk.Create("/parent/c")):
        it.world.admin(request)
    it.world.heal("cut")
    it.run(SECOND)
    core = it.core(1)
    assert session_story(core) == ["new session", "disconnected", "same session"]
    fired = [(input.watch.path, input.watch.kind) for input in core.heard(core_interface.ZooKeeperWatchFired)]
    assert fired == [
        ("/missed", zk.WatchKind.CHANGED),
        ("/new", zk.WatchKind.CREATED),
        ("/parent", zk.WatchKind.CHILD),
    ]
    assert (
        core.times(core_interface.ZooKeeperWatchFired)[0] >= core.times(core_interface.ZooKeeperConnected)[-1]
    )
    it.world.admin(zk.SetData("/kept", b""))
    it.run()
    assert core.heard(core_interface.ZooKeeperWatchFired)[-1].watch == zk.WatchEvent(
        "/kept", zk.WatchKind.CHANGED
    )


def test_the_commit_listener_hears_each_commit_in_order(lab):
    """Each commit with its writer, time and changes; reads and refused writes are not commits."""
    it = lab(2, zookeeper=True)
    it.ask(1, zk.Create("/a"), zk.Create("/a"), zk.GetData("/a"))
    it.ask(2, zk.Multi((zk.SetData("/a", b"1"), zk.Create("/b"))))
    it.world.admin(zk.SetData("/a", b"2"))
    assert [
        (commit.node, [(change.path, change.data) for change in commit.changes]) for commit in it.commits
    ] == [(1, [("/a", b"")]), (2, [("/a", b"1"), ("/b", b"")]), (ADMIN_NODE, [("/a", b"2")])]
    times = [commit.time for commit in it.commits]
    assert times == sorted(times) and times[0] > SECOND and times[-1] == it.world.now


@pytest.mark.parametrize("pause", [TIMEOUT * 3 // 4, TIMEOUT * 3])
def test_a_process_that_wakes_up_acts_before_it_knows(lab, pause):
    """What a paused process is asked by others is done before it hears that its session is lost: the zombie
    that fencing is for."""
    it = lab(2, zookeeper=True)
    it.world.pause(1)
    it.send(2, 1, "order").run(pause)
    it.world.resume(1)
    it.run(2 * SECOND)
    inputs = [input for _, input in it.core(1).inputs]
    order = next(place for place, input in enumerate(inputs) if getattr(input, "message", None) == "order")
    assert order < inputs.index(core_interface.ZooKeeperDisconnected())


# ZooKeeper clients under any mixture of faults: nobody misses a change, every request is answered once,
# sessions follow their grammar.


SHORT_TIMEOUT = 600 * MILLISECOND
NODES = (1, 2)
LETTERS = {core_interface.ZooKeeperDisconnected: "d", core_interface.ZooKeeperSessionExpired: "x"}
GRAMMAR = re.compile("(n(ds)*(dx|d$|$))*")
"""n: new session, d: disconnected, s: the same session again, x: expired. An expiry is always heard of while
disconnected."""


class Watcher:
    """Reads a node and its children with watches, again whenever a watch fires or a read was lost; believes
    the last answers."""

    def __init__(self) -> None:
        self.story, self.asked, self.answered = "", [], []
        self.value: bytes | None = None
        self.names: tuple[str, ...] = ()
        self.lost: set[Any] = set()
        self.connected = False

    def step(self, input: Any, now: int) -> list[core_interface.Effect]:
        if isinstance(input, core_interface.ZooKeeperConnected):
            self.connected = True
            self.story += "n" if input.new else "s"
            lost = {zk.GetData, zk.GetChildren} if input.new else set(self.lost)
            self.lost.clear()
            return [self.read(kind) for kind in (zk.GetData, zk.GetChildren) if kind in lost]
        if type(input) in LETTERS:
            self.connected = False
            self.story += LETTERS[type(input)]
        elif isinstance(input, core_interface.ZooKeeperWatchFired):
            return [self.read(zk.GetChildren if input.watch.kind == "child" else zk.GetData)]
        elif isinstance(input, core_interface.ZooKeeperReplied):
            self.hear(input)
        return []

    def read(self, kind: Any) -> core_interface.AskZooKeeper:
        self.asked.append(kind)
        return core_interface.AskZooKeeper(len(self.asked) - 1, kind("/a", watch=True))

    def hear(self, input: core_interface.ZooKeeperReplied) -> None:
        self.answered.append(input.request_id)
        reply = input.reply
        if isinstance(reply, zk.Failed):
            assert reply.error is zk.ZooKeeperError.CONNECTION_LOSS
            self.lost.add(self.asked[input.request_id])
        elif isinstance(reply, zk.Data):
            self.value = reply.data
        else:
            self.names = reply.names


NODE = st.sampled_from(NODES)
STEPS = st.one_of(
    st.tuples(st.just("write"), st.binary(min_size=1, max_size=2)),
    st.tuples(st.just("child"), st.none()),
    st.tuples(st.sampled_from(["pause", "resume", "cut", "heal", "expire", "restart"]), NODE),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 50, 150, 250, 450, 700])),
)


def do(world: World, kind: str, argument: Any) -> None:
    """One step of a history."""
    if kind == "write":
        world.admin(zk.SetData("/a", argument))
    elif kind == "child":
        world.admin(zk.Create("/a/c", sequential=True))
    elif kind == "wait":
        world.run_until(world.now + argument * MILLISECOND)
    elif kind == "cut":
        world.heal(f"cut {argument}")
        world.cut_from_zookeeper(f"cut {argument}", [argument])
    elif kind == "heal":
        world.heal(f"cut {argument}")
    elif kind == "expire":
        world.expire_session(argument)
    elif kind == "restart":
        world.crash(argument)
        world.start(argument)
    else:
        {"pause": world.pause, "resume": world.resume}[kind](argument)


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(steps=st.lists(STEPS, max_size=30), seed=st.integers(0, 1000))
def test_who_watches_misses_nothing_whatever_breaks(steps, seed):
    """After any pauses, cuts, expiries and restarts each watcher ends up with the current data and children,
    on watches alone."""
    world = World(seed, session_timeout=SHORT_TIMEOUT)
    world.admin(zk.Create("/a", b"0"))
    for node in NODES:
        world.add_host(node, lambda files, now: Watcher(), zookeeper=True)
        world.start(node)
    for kind, argument in steps:
        do(world, kind, argument)
    for node in NODES:
        world.heal(f"cut {node}")
        world.resume(node)
    world.run_until(world.now + 10 * SHORT_TIMEOUT + SECOND)
    current, children = world.admin(zk.GetData("/a")), world.admin(zk.GetChildren("/a"))
    for node in NODES:
        core = world.hosts[node].core
        assert (core.value, core.names) == (current.data, children.names)
        assert core.connected and GRAMMAR.fullmatch(core.story), core.story
        assert core.answered == list(range(len(core.asked))), "each request is answered once, in order"
        assert len(world.zookeeper.sessions(node)) == 1
