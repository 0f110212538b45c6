"""The simulated ZooKeeper and a real server give the same replies, errors, watches, versions, transaction ids
and session stories.

One body (`story`) runs the same steps in both worlds. After each step every connected client reads once: what
fired for it before that is then heard, because a watch comes before any later reply of its connection.
Transaction ids are compared from the example's first creation on, sessions by the client and the count of its
sessions.
"""

import socket
import time
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.zookeeper import interface as zk
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.sim.zookeeper_tree import Tree

CLIENTS = (1, 2)
LONGEST_VIRTUAL_WAIT = 300 * SECOND
MOST_LOST = 20
"""Tries of one story, each of which lost a connection by accident."""
WAITS = range(LONGEST_VIRTUAL_WAIT // MILLISECOND)


class Listener:
    """A core that only notes what it hears."""

    def __init__(self, files, now):
        self.inputs = []

    def step(self, input, now):
        self.inputs.append(input)
        return []


class Simulated:
    """Two hosts and the simulated service. tree: another one than the right one, planted."""

    def __init__(self, tree=Tree):
        self.world, self.ids = World(1, session_timeout=60 * SECOND), count(1)
        self.world.zookeeper.tree = tree()
        for client in CLIENTS:
            self.world.add_host(client, Listener, zookeeper=True)
            self.world.start(client)
            self._wait_for(client, ZooKeeperConnected)
        self.sessions = {client: [self._inputs(client)[-1].session_id] for client in CLIENTS}
        self.heard(1), self.heard(2)

    def _inputs(self, client):
        return self.world.hosts[client].core.inputs

    def _wait_for(self, client, kind, which=lambda input: True):
        for _ in WAITS:
            for input in self._inputs(client):
                if isinstance(input, kind) and which(input):
                    return input
            self.world.run_until(self.world.now + MILLISECOND)
        raise AssertionError(f"client {client} waits for {kind}")

    def ask(self, client, request):
        number = next(self.ids)
        self.world.hosts[client].invoke(lambda core, now: [AskZooKeeper(number, request)])
        reply = self._wait_for(client, ZooKeeperReplied, lambda input: input.request_id == number)
        self._inputs(client).remove(reply)
        return reply.reply

    def heard(self, client):
        inputs, self.world.hosts[client].core.inputs = self._inputs(client), []
        return [input for input in inputs if not isinstance(input, ZooKeeperReplied | type(None))]

    def expire(self, client):
        assert self.world.expire_session(client)
        self.sessions[client].append(self._wait_for(client, ZooKeeperConnected).session_id)

    def leave(self, client):
        self.world.cut_from_zookeeper(f"cut {client}", [client])
        self._wait_for(client, ZooKeeperDisconnected)

    def come_back(self, client):
        self.world.heal(f"cut {client}")
        self._wait_for(client, ZooKeeperConnected)


class LineLostError(Exception):
    """A connection was lost that no step cut: a crowded machine let a ping come too late. What was seen says
    nothing."""


class Real:
    """Two sessions with a real server; examples share them, each below a path of its own.

    cut: clients of which a lost connection is no surprise; away: those whose line is cut now.
    """

    def __init__(self, clients):
        self.clients, self.cut, self.away = clients, set(), set()
        for client in clients.values():
            client.ask(zk.Exists("/"))
            client.heard.clear()
        self.sessions = {number: [client.session.session_id] for number, client in clients.items()}

    def ask(self, client, request):
        reply = self.clients[client].ask(request)
        if client not in self.cut and reply == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS):
            raise LineLostError
        return reply

    def heard(self, client):
        heard = list(self.clients[client].heard)
        self.clients[client].heard.clear()
        if client not in self.cut and any(isinstance(input, ZooKeeperDisconnected) for input in heard):
            raise LineLostError
        if client not in self.away:  # the surprise is heard of
            self.cut.discard(client)
        return heard

    def expire(self, client):
        from fencepost.impl.runtime.zookeeper.blocking import end_session

        it = self.clients[client]
        self.cut.add(client)
        end_session(it.session, it.address)
        self.sessions[client].append(it.wait_for(ZooKeeperConnected).session_id)

    def leave(self, client):
        it = self.clients[client]
        self.cut.add(client)
        self.away.add(client)
        kazoo = it.session._client
        kazoo.handler.create_connection = self._refuse
        kazoo._connection._socket.shutdown(socket.SHUT_RDWR)
        it.wait_for(ZooKeeperDisconnected)

    @staticmethod
    def _refuse(*args, **kwargs):
        raise ConnectionRefusedError("the test has cut the line")

    def come_back(self, client):
        self.away.discard(client)
        del self.clients[client].session._client.handler.create_connection
        self.clients[client].wait_for(ZooKeeperConnected)


# ---- one body for both


class Story:
    """Runs steps in a world and tells what was seen, without what may differ: base, the first transaction;
    numbers of sessions."""

    def __init__(self, world, prefix):
        self.world, self.prefix, self.told, self.away = world, prefix, [], set()
        created = world.ask(1, zk.Create(prefix))
        assert isinstance(created, zk.Created)
        self.base = created.czxid

    def tell(self, steps):
        for step in steps:
            self.run(*step)
        for client in CLIENTS:
            for path in ("", *PATHS):
                self.run("ask", client, zk.GetData(path))
        return self.told

    def run(self, kind, client, argument=None):
        if kind == "ask":
            self.told.append(self.shown(self.world.ask(client, self.placed(argument))))
        elif kind == "expire":
            self.world.expire(client)
        else:
            self.world.leave(client)
            self.away.add(client)
            self.run("ask", client, zk.Create("/a"))
            for request in argument:
                self.run("ask", 3 - client, request)
            self.world.come_back(client)
            self.away.remove(client)
        for other in CLIENTS:
            if other not in self.away:
                self.world.ask(other, zk.Exists("/"))
            self.told += [(other, shown) for input in self.world.heard(other) if (shown := self.input(input))]

    def input(self, input):
        if isinstance(input, ZooKeeperWatchFired):
            path = input.watch.path
            ours = path == self.prefix or path.startswith(f"{self.prefix}/")
            return (path.removeprefix(self.prefix), input.watch.kind) if ours else None
        return (
            ("connected", input.new)
            if isinstance(input, ZooKeeperConnected)
            else {ZooKeeperDisconnected: "disconnected", ZooKeeperSessionExpired: "expired"}[type(input)]
        )

    def placed(self, request):
        if isinstance(request, zk.Multi):
            return zk.Multi(tuple(self.placed(operation) for operation in request.operations))
        if isinstance(request, zk.MultiRead | zk.SetWatches):
            request = replace(request, paths=tuple(self.prefix + path for path in request.paths))
            return (
                replace(request, seen=self.base + request.seen)
                if isinstance(request, zk.SetWatches)
                else request
            )
        return replace(request, path=self.prefix + request.path)

    def shown(self, reply):
        if isinstance(reply, zk.MultiDone):
            return zk.MultiDone(tuple(self.shown(member) for member in reply.replies))
        if isinstance(reply, zk.MultiReadDone):
            return zk.MultiReadDone(
                tuple(self.shown(member) for member in reply.replies), reply.zxid - self.base
            )
        if isinstance(reply, zk.Created):
            return zk.Created(reply.path.removeprefix(self.prefix), reply.czxid - self.base)
        stat = getattr(reply, "stat", None)
        if stat is None:
            return reply
        sessions = [(client, number) for client in CLIENTS for number in self.world.sessions[client]]
        names = {number: sessions.index((client, number)) + 1 for client, number in sessions} | {0: 0}
        stat = replace(
            stat,
            czxid=stat.czxid - self.base,
            mzxid=stat.mzxid - self.base,
            ephemeral_owner=names[stat.ephemeral_owner],
        )
        return replace(reply, stat=stat)


PATHS = ("/a", "/b", "/a/x", "/a/x/z")
WRITTEN, READ = st.sampled_from(PATHS), st.sampled_from(("", *PATHS))
VERSIONS, DATA = st.sampled_from((-1, -1, 0, 1, 2)), st.binary(max_size=2)
WRITES = st.one_of(
    st.builds(zk.Create, WRITTEN, DATA, st.booleans(), st.booleans()),
    st.builds(zk.Create, WRITTEN),
    st.builds(zk.SetData, WRITTEN, DATA, VERSIONS),
    st.builds(zk.Delete, WRITTEN, VERSIONS),
)
MEMBERS = st.one_of(WRITES, st.builds(zk.Check, WRITTEN, st.integers(0, 2)))
MULTIS = st.lists(MEMBERS, max_size=4).map(tuple).map(zk.Multi)
READS = st.one_of(*(st.builds(kind, READ, st.booleans()) for kind in (zk.GetData, zk.Exists, zk.GetChildren)))
MULTI_READS = st.lists(READ, max_size=4).map(tuple).map(zk.MultiRead)
SET_WATCHES = st.builds(zk.SetWatches, st.lists(READ, max_size=3).map(tuple), st.integers(0, 20))
REQUESTS = st.one_of(WRITES, WRITES, READS, READS, MULTIS, MULTI_READS, SET_WATCHES)
CLIENT = st.sampled_from(CLIENTS)
ASKED = st.tuples(st.just("ask"), CLIENT, REQUESTS)
RARE = st.one_of(
    st.tuples(st.just("expire"), CLIENT),
    st.tuples(st.just("away"), CLIENT, st.lists(st.one_of(WRITES, MULTIS), max_size=4)),
)
MADE = [("ask", 2, zk.Create(path)) for path in ("/a", "/a/x", "/a/x/z")]
WATCHED = [
    ("ask", 1, watch(path, watch=True))
    for path in ("", *PATHS)
    for watch in (zk.GetData, zk.Exists, zk.GetChildren)
]
STEPS = st.tuples(
    st.integers(0, len(MADE)).map(lambda many: MADE[:many]),
    st.lists(st.sampled_from(WATCHED), max_size=4),
    st.lists(ASKED, max_size=10),
    st.lists(RARE, max_size=1),
    st.lists(ASKED, max_size=5),
).map(lambda parts: [step for part in parts for step in part])
BOUNDED = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
PREFIXES = (f"/example-{number}" for number in count())

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """Two sessions with one real server."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import ZooKeeperServer

    with (
        ZooKeeperServer.start(tmp_path_factory.mktemp("zookeeper")) as server,
        BlockingZooKeeper(server.address, session_timeout_ms=60_000) as one,
        BlockingZooKeeper(server.address, session_timeout_ms=60_000) as two,
    ):
        yield dict(zip(CLIENTS, (one, two), strict=True))


def played(clients, steps):
    """A story in the real world, and its path; told again where the machine lost a connection that the story
    did not cut."""
    for _ in range(MOST_LOST):
        prefix = next(PREFIXES)
        try:
            return prefix, Story(Real(clients), prefix).tell(steps)
        except LineLostError:
            for client in clients.values():
                getattr(client.session._client.handler, "__dict__", {}).pop("create_connection", None)
                while client.ask(zk.Exists("/")) == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS):
                    time.sleep(0.1)  # until it is back
    raise AssertionError(f"the connection was lost in each of {MOST_LOST} tries")


def compare(clients, steps, tree=Tree):
    """Both stories, line by line."""
    prefix, real = played(clients, steps)
    simulated = Story(Simulated(tree), prefix).tell(steps)
    for place, (here, there) in enumerate(zip(simulated, real, strict=False)):
        assert here == there, f"line {place}: simulated {here}, real {there}, after {real[:place]}"
    assert len(simulated) == len(real)
    return real


def test_any_sequence_is_the_same_in_both_worlds(clients):
    """Rule: replies, errors, versions, transaction ids, watches and sessions agree, whatever two clients
    do."""

    @settings(BOUNDED, max_examples=80)
    @given(steps=STEPS)
    def check(steps):
        compare(clients, steps)

    check()


STORIES = {
    "an ephemeral goes with its session": [
        ("ask", 1, zk.Create("/a", b"", True, False)),
        ("ask", 2, zk.GetData("/a", watch=True)),
        ("ask", 2, zk.GetChildren("", watch=True)),
        ("expire", 1),
    ],
    "a new session has no watches": [*MADE, *WATCHED, ("expire", 1), ("ask", 2, zk.SetData("/a", b"1"))],
    "watches are set again": [
        *MADE,
        *WATCHED,
        ("away", 1, []),
        ("ask", 2, zk.SetData("/a", b"1")),
        ("ask", 2, zk.Create("/b")),
    ],
    "what was missed fires": [
        *MADE,
        *WATCHED,
        ("away", 1, [zk.SetData("/a", b"1"), zk.Create("/b"), zk.Delete("/a/x/z"), zk.Delete("/a/x")]),
    ],
    "a failed multi": [
        *MADE,
        ("ask", 1, zk.Multi((zk.SetData("/a", b"1"), zk.Create("/b"), zk.Check("/a", 7), zk.Delete("/a/x")))),
        ("ask", 1, zk.GetData("/a")),
    ],
    "a multi-read sets no watches and misses none": [
        *MADE,
        ("ask", 1, zk.GetData("/a", watch=True)),
        ("ask", 1, zk.MultiRead(("/a/x", "/b", "/a", "/a"))),
        ("ask", 2, zk.SetData("/a/x", b"1")),
        ("ask", 2, zk.SetData("/a", b"2")),
        ("ask", 1, zk.MultiRead(("/a", "/b", "/a/x"))),
    ],
    "watches that are set together": [
        *MADE,
        ("ask", 2, zk.SetData("/a", b"1")),
        ("ask", 1, zk.SetWatches(("/a/x", "/a", "/b", "/a/x/z"), 3)),
        ("ask", 2, zk.SetData("/a/x", b"2")),
        ("ask", 2, zk.SetData("/a", b"3")),
        ("away", 1, [zk.SetData("/a/x/z", b"4")]),
    ],
}


@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES)
def test_told_stories_are_the_same_in_both_worlds(clients, steps):
    """Rule: the stories that a controller's life depends on agree, and are not empty."""
    told = compare(clients, steps)
    assert any(isinstance(line, tuple | zk.Failed) for line in told)


def test_what_fires_after_a_reconnection(clients):
    """Rule: watches that missed a change fire once, after the connection is back, in the order of ZooKeeper's
    SetWatches."""
    told = compare(clients, STORIES["what was missed fires"])
    back = told.index((1, ("connected", False)))
    assert [line[1] for line in told[back + 1 :] if isinstance(line, tuple) and line[0] == 1][:4] == [
        ("/a", zk.WatchKind.CHANGED),
        ("/a/x", zk.WatchKind.DELETED),
        ("/a/x/z", zk.WatchKind.DELETED),
        ("/b", zk.WatchKind.CREATED),
    ]
    assert zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS) in told


def test_a_multi_read_answers_member_by_member(clients):
    """Rule: data and absent nodes stand in the order of the paths, a path twice twice; no watch is set by it,
    and one that stands still fires."""
    told = compare(clients, STORIES["a multi-read sets no watches and misses none"])
    first, second = (line for line in told if isinstance(line, zk.MultiReadDone))
    absent = zk.Failed(zk.ZooKeeperError.NO_NODE)
    assert [getattr(reply, "data", reply) for reply in first.replies] == [b"", absent, b"", b""]
    assert [getattr(reply, "data", reply) for reply in second.replies] == [b"2", absent, b"1"]
    assert [line for line in told if isinstance(line, tuple)] == [(1, ("/a", zk.WatchKind.CHANGED))]


def test_watches_set_together_miss_nothing_since(clients):
    """Rule: what was changed after the transaction named, or is absent, fires at once; the others fire later,
    and live through a reconnection."""
    told = compare(clients, STORIES["watches that are set together"])
    assert [line[1] for line in told if isinstance(line, tuple) and line[0] == 1][:3] == [
        ("/a", zk.WatchKind.CHANGED),
        ("/b", zk.WatchKind.DELETED),
        ("/a/x", zk.WatchKind.CHANGED),
    ]
    assert (1, ("/a/x/z", zk.WatchKind.CHANGED)) in told


class VersionStands(Tree):
    """Planted: a write does not raise the version."""

    def _set(self, operation):
        done = super()._set(operation)
        return zk.Done(replace(done.stat, version=0))


class ForgetsWatch(Tree):
    """Planted: a deletion fires no watch."""

    def _fire(self, change):
        return [] if change.kind is zk.WatchKind.DELETED else super()._fire(change)


class FreeFailures(Tree):
    """Planted: a refused write takes no transaction id."""

    def apply(self, session, request):
        outcome = super().apply(session, request)
        if isinstance(outcome.reply, zk.Failed) and isinstance(
            request, zk.Create | zk.SetData | zk.Delete | zk.Multi
        ):
            self.zxid -= 1
        return outcome


class HalfDone(Tree):
    """Planted: a failed multi is not undone."""

    def _roll_back(self):
        self._changes.clear()


class LeavesEphemerals(Tree):
    """Planted: ephemerals outlive their session."""

    def _create(self, session, operation):
        return super()._create(session, replace(operation, ephemeral=False))


class LeavesOutAbsent(Tree):
    """Planted: a multi-read says nothing of a node that is absent."""

    def _read_many(self, session, request):
        done = super()._read_many(session, request)
        return replace(
            done, replies=tuple(reply for reply in done.replies if not isinstance(reply, zk.Failed))
        )


class ForgetsSince(Tree):
    """Planted: watches that are set together do not fire for what was changed before."""

    def set_watches(self, session, seen, data, exists, children):
        return super().set_watches(session, self.zxid, data, exists, children)


PLANTED = [
    VersionStands, ForgetsWatch, FreeFailures, HalfDone, LeavesEphemerals, LeavesOutAbsent, ForgetsSince,
]  # fmt: skip


@pytest.mark.parametrize("tree", PLANTED)
def test_a_planted_difference_is_noticed(clients, tree):
    """Rule: the generated sequences tell each of these trees from the real server."""

    @settings(BOUNDED, max_examples=300, phases=[Phase.generate])
    @given(steps=STEPS)
    def check(steps):
        compare(clients, steps, tree)

    with pytest.raises(AssertionError, match="line"):
        check()


class Unlucky:
    """A client of which one answer is lost now and then, as on a crowded machine."""

    def __init__(self, client):
        self.client, self.asked, self.lost = client, 0, 0

    def __getattr__(self, name):
        return getattr(self.client, name)

    def ask(self, request):
        self.asked += 1
        if self.asked == 9:
            self.lost += 1
            return zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
        return self.client.ask(request)


def test_a_connection_that_the_machine_lost_is_no_answer(clients):
    """Rule: a crowded machine makes this slow, never red: the story is told again; and one that is told
    differently fails at once."""
    unlucky = {1: Unlucky(clients[1]), 2: clients[2]}
    compare(unlucky, STORIES["an ephemeral goes with its session"])
    assert unlucky[1].lost == 1
