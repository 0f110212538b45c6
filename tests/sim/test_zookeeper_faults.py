"""ZooKeeper clients under any mixture of faults: nobody misses a change, every request is answered once,
sessions follow their grammar."""

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    Effect,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.zookeeper.interface import (
    Create,
    Data,
    Failed,
    GetChildren,
    GetData,
    SetData,
    ZooKeeperError,
)
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World

TIMEOUT = 600 * MILLISECOND
NODES = (1, 2)
LETTERS = {ZooKeeperDisconnected: "d", ZooKeeperSessionExpired: "x"}
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

    def step(self, input: Any, now: int) -> list[Effect]:
        if isinstance(input, ZooKeeperConnected):
            self.connected = True
            self.story += "n" if input.new else "s"
            lost = {GetData, GetChildren} if input.new else set(self.lost)
            self.lost.clear()
            return [self.read(kind) for kind in (GetData, GetChildren) if kind in lost]
        if type(input) in LETTERS:
            self.connected = False
            self.story += LETTERS[type(input)]
        elif isinstance(input, ZooKeeperWatchFired):
            return [self.read(GetChildren if input.watch.kind == "child" else GetData)]
        elif isinstance(input, ZooKeeperReplied):
            self.hear(input)
        return []

    def read(self, kind: Any) -> AskZooKeeper:
        self.asked.append(kind)
        return AskZooKeeper(len(self.asked) - 1, kind("/a", watch=True))

    def hear(self, input: ZooKeeperReplied) -> None:
        self.answered.append(input.request_id)
        reply = input.reply
        if isinstance(reply, Failed):
            assert reply.error is ZooKeeperError.CONNECTION_LOSS
            self.lost.add(self.asked[input.request_id])
        elif isinstance(reply, Data):
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
        world.admin(SetData("/a", argument))
    elif kind == "child":
        world.admin(Create("/a/c", sequential=True))
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
    world = World(seed, session_timeout=TIMEOUT)
    world.admin(Create("/a", b"0"))
    for node in NODES:
        world.add_host(node, lambda files, now: Watcher(), zookeeper=True)
        world.start(node)
    for kind, argument in steps:
        do(world, kind, argument)
    for node in NODES:
        world.heal(f"cut {node}")
        world.resume(node)
    world.run_until(world.now + 10 * TIMEOUT + SECOND)
    current, children = world.admin(GetData("/a")), world.admin(GetChildren("/a"))
    for node in NODES:
        core = world.hosts[node].core
        assert (core.value, core.names) == (current.data, children.names)
        assert core.connected and GRAMMAR.fullmatch(core.story), core.story
        assert core.answered == list(range(len(core.asked))), "each request is answered once, in order"
        assert len(world.zookeeper.sessions(node)) == 1
