"""The data tree against a table of ZooKeeper 3.9's behaviours, and against a naive model of it."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.zookeeper.interface import (
    Check,
    Children,
    Create,
    Created,
    Data,
    Delete,
    Done,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    SetData,
    WatchEvent,
    WatchKind,
    ZooKeeperError,
)
from fencepost.sim.zookeeper_tree import Tree

E = ZooKeeperError
CREATED, DELETED, CHANGED, CHILD = WatchKind.CREATED, WatchKind.DELETED, WatchKind.CHANGED, WatchKind.CHILD


def tree_of(*requests, session=1) -> Tree:
    """A tree after these requests, which all succeed."""
    tree = Tree()
    for request in requests:
        assert not isinstance(tree.apply(session, request).reply, Failed)
    return tree


REFUSALS = [
    # (what is there, what is asked, the error)
    ([], Create("/a/b"), E.NO_NODE),
    ([Create("/a")], Create("/a"), E.NODE_EXISTS),
    ([Create("/a", ephemeral=True)], Create("/a/b"), E.NO_CHILDREN_FOR_EPHEMERALS),
    ([Create("/a", ephemeral=True)], Create("/a/b", sequential=True), E.NO_CHILDREN_FOR_EPHEMERALS),
    ([], SetData("/a", b""), E.NO_NODE),
    ([Create("/a")], SetData("/a", b"", 1), E.BAD_VERSION),
    ([Create("/a"), SetData("/a", b"")], SetData("/a", b"", 0), E.BAD_VERSION),
    ([], Delete("/a"), E.NO_NODE),
    ([Create("/a")], Delete("/a", 1), E.BAD_VERSION),
    ([Create("/a"), Create("/a/b")], Delete("/a"), E.NOT_EMPTY),
    ([Create("/a"), Create("/a/b")], Delete("/a", 7), E.BAD_VERSION),  # the version is looked at first
    ([], GetData("/a"), E.NO_NODE),
    ([], Exists("/a"), E.NO_NODE),
    ([], GetChildren("/a"), E.NO_NODE),
]


@pytest.mark.parametrize(("before", "request_", "error"), REFUSALS)
def test_refusals(before, request_, error):
    """Each write and read is refused with ZooKeeper's code, and a refused write changes nothing."""
    tree = tree_of(*before)
    paths, nodes = tree.paths(), [str(tree.node(path)) for path in tree.paths()]
    outcome = tree.apply(1, request_)
    assert outcome.reply == Failed(error) and not outcome.changes and not outcome.watches
    assert (paths, nodes) == (tree.paths(), [str(tree.node(path)) for path in tree.paths()])


def test_versions_and_transaction_ids():
    """A write raises the version by one; czxid is the creation's, mzxid the last write's; ANY_VERSION fits
    all."""
    tree = tree_of(Create("/a", b"0"), SetData("/a", b"1"), SetData("/a", b"2", 1))
    data = tree.apply(1, GetData("/a")).reply
    assert isinstance(data, Data) and data.data == b"2" and data.stat.version == 2
    assert data.stat.mzxid == data.stat.czxid + 2 == tree.zxid
    tree.apply(1, Delete("/a", 2))
    assert tree.apply(1, Create("/a")).reply == Created("/a", tree.zxid)
    assert tree.apply(1, Exists("/a")).reply.stat.version == 0


def test_a_failed_write_takes_a_transaction_id_and_a_read_none():
    """As on the server, whose log holds the failed transaction too."""
    tree = Tree()
    tree.apply(1, Delete("/none"))
    tree.apply(1, Exists("/none"))
    assert tree.zxid == 1


def test_sequential_names_count_the_creations_of_the_parent():
    """Ten digits; plain children count, deletions do not, and a new parent starts at zero."""
    tree = tree_of(Create("/p"), Create("/p/plain"))
    names = [tree.apply(1, Create("/p/n-", sequential=True)).reply.path for _ in range(2)]
    tree.apply(1, Delete(names[0]))
    names.append(tree.apply(1, Create("/p/", sequential=True)).reply.path)
    assert names == ["/p/n-0000000001", "/p/n-0000000002", "/p/0000000003"]
    tree.apply(1, Create("/p/n-"))
    assert tree.apply(1, Create("/p/x", sequential=True)).reply.path == "/p/x0000000005"
    fresh = tree_of(Create("/q"))
    assert fresh.apply(1, Create("/q/n", sequential=True)).reply.path == "/q/n0000000000"


def test_the_shown_cversion_counts_creations_and_deletions():
    """Stat.cversion = 2 * creations - children."""
    tree = tree_of(Create("/p"), Create("/p/a"), Create("/p/b"), Delete("/p/a"))
    stat = tree.apply(1, Exists("/p")).reply.stat
    assert (stat.cversion, stat.children, stat.version) == (3, 1, 0)


def test_the_tree_starts_with_zookeepers_own_nodes():
    """A fresh server shows /zookeeper, and a cversion of -1 at the root."""
    reply = Tree().apply(1, GetChildren("/")).reply
    assert isinstance(reply, Children) and reply.names == ("zookeeper",) and reply.stat.cversion == -1


def test_ephemerals_go_with_their_session_in_one_transaction():
    """The end of a session removes its ephemerals and no others, and fires the watches of others."""
    tree = tree_of(Create("/p"), Create("/p/a", ephemeral=True), Create("/b", ephemeral=True))
    tree.apply(2, Create("/p/c", ephemeral=True))
    assert tree.apply(2, Exists("/p/a", watch=True)).reply.stat.ephemeral_owner == 1
    tree.apply(2, GetChildren("/p", watch=True))
    outcome = tree.end_session(1)
    assert [(change.kind, change.path, change.zxid) for change in outcome.changes] == [
        (DELETED, "/p/a", tree.zxid),
        (DELETED, "/b", tree.zxid),
    ]
    assert outcome.watches == ((2, WatchEvent("/p/a", DELETED)), (2, WatchEvent("/p", CHILD)))
    assert tree.apply(2, GetChildren("/p")).reply.names == ("c",)


WATCHES = [
    # (what is there, the watch, the write, what fires for the watcher)
    ([], Exists("/a", watch=True), Create("/a"), [("/a", CREATED)]),
    ([Create("/a")], Exists("/a", watch=True), SetData("/a", b""), [("/a", CHANGED)]),
    ([Create("/a")], Exists("/a", watch=True), Delete("/a"), [("/a", DELETED)]),
    ([Create("/a")], Exists("/a", watch=True), Create("/a/b"), []),
    ([Create("/a")], GetData("/a", watch=True), SetData("/a", b""), [("/a", CHANGED)]),
    ([Create("/a")], GetData("/a", watch=True), Delete("/a"), [("/a", DELETED)]),
    ([], GetData("/a", watch=True), Create("/a"), []),
    ([Create("/a")], GetChildren("/a", watch=True), Create("/a/b"), [("/a", CHILD)]),
    ([Create("/a"), Create("/a/b")], GetChildren("/a", watch=True), Delete("/a/b"), [("/a", CHILD)]),
    ([Create("/a"), Create("/a/b")], GetChildren("/a", watch=True), SetData("/a/b", b""), []),
    ([Create("/a")], GetChildren("/a", watch=True), SetData("/a", b""), []),
    ([Create("/a")], GetChildren("/a", watch=True), Delete("/a"), [("/a", DELETED)]),
    ([], GetChildren("/a", watch=True), Create("/a"), []),
    ([], GetChildren("/", watch=True), Create("/a"), [("/", CHILD)]),
    ([Create("/a")], GetData("/a", watch=True), SetData("/a", b"", 9), []),
    ([], Exists("/a", watch=True), Multi((Create("/a"), SetData("/a", b"1"))), [("/a", CREATED)]),
    ([Create("/a")], GetData("/a", watch=True), Multi((SetData("/a", b""), Check("/a", 0))), []),
]


@pytest.mark.parametrize(("before", "watch", "write", "fired"), WATCHES)
def test_watches(before, watch, write, fired):
    """Each kind of watch fires on what it watches, once, and not on anything else."""
    tree = tree_of(*before)
    tree.apply(2, watch)
    expected = tuple((2, WatchEvent(path, kind)) for path, kind in fired)
    assert tree.apply(1, write).watches == expected
    tree.apply(1, SetData("/a", b"again"))
    assert not fired or not tree.apply(1, SetData("/a", b"again")).watches, "a watch is one-shot"


def test_a_session_with_both_watches_hears_of_a_deletion_once():
    """WatchManager suppresses the second event of one deletion for one session, not for others."""
    tree = tree_of(Create("/a"))
    for session in (2, 3):
        tree.apply(session, GetChildren("/a", watch=True))
    tree.apply(2, GetData("/a", watch=True))
    tree.apply(2, GetData("/a", watch=True))
    assert tree.apply(1, Delete("/a")).watches == (
        (2, WatchEvent("/a", DELETED)),
        (3, WatchEvent("/a", DELETED)),
    )


def test_a_watch_without_a_connection_is_forgotten():
    """The server's side of a watch dies with the connection."""
    tree = tree_of(Create("/a"))
    tree.apply(2, GetData("/a", watch=True))
    tree.apply(2, GetChildren("/", watch=True))
    tree.forget_watches(2)
    assert not tree.apply(1, Delete("/a")).watches


def test_watches_set_again_after_a_reconnection():
    """What changed since the client last heard fires at once; the rest is set again (DataTree.setWatches)."""
    tree = tree_of(Create("/same"), Create("/set"), Create("/gone"), Create("/parent"), Create("/still"))
    seen = tree.zxid
    for request in (SetData("/set", b""), Delete("/gone"), Create("/parent/c"), Create("/new")):
        tree.apply(1, request)
    events = tree.set_watches(
        2, seen, ("/same", "/set", "/gone"), ("/new", "/absent"), ("/parent", "/still", "/gone")
    )
    assert [(event.path, event.kind) for event in events] == [
        ("/set", CHANGED),
        ("/gone", DELETED),
        ("/new", CREATED),
        ("/parent", CHILD),
        ("/gone", DELETED),
    ]
    write = Multi((SetData("/same", b""), Create("/absent"), Create("/still/c"), SetData("/set", b"")))
    fired = [(event.path, event.kind) for _, event in tree.apply(1, write).watches]
    assert fired == [("/same", CHANGED), ("/absent", CREATED), ("/still", CHILD)]


def test_a_multi_is_one_transaction_that_sees_itself():
    """Members see those before them: a check of a node changed earlier in the same multi sees the new
    version."""
    tree = tree_of(Create("/a"))
    zxid = tree.zxid
    reply = tree.apply(
        1,
        Multi(
            (
                SetData("/a", b"1", 0),
                Check("/a", 1),
                Create("/a/b"),
                Create("/a/s", sequential=True),
                SetData("/a", b"2", 1),
                Delete("/a/b"),
            )
        ),
    ).reply
    assert isinstance(reply, MultiDone) and tree.zxid == zxid + 1
    assert reply.replies[2:4] == (Created("/a/b", tree.zxid), Created("/a/s0000000001", tree.zxid))
    assert (reply.replies[1], reply.replies[5]) == (Done(), Done())
    assert [reply.replies[index].stat.version for index in (0, 4)] == [1, 2]
    assert tree.apply(1, Multi(())).reply == MultiDone(())


def test_a_failed_multi_is_undone_and_says_which_member_failed():
    """ROLLED_BACK before the culprit, its own error, RUNTIME_INCONSISTENCY after it; tree and counters are as
    before."""
    tree = tree_of(Create("/a"), Create("/a/old"))
    before = [(path, str(tree.node(path))) for path in tree.paths()]
    operations = (
        Create("/a/n", sequential=True),
        SetData("/a", b"x"),
        Delete("/a/old"),
        Check("/a", 0),
        Create("/b"),
        Check("/none", 0),
    )
    outcome = tree.apply(1, Multi(operations))
    assert outcome.reply == Failed(
        E.BAD_VERSION, 3, (E.ROLLED_BACK,) * 3 + (E.BAD_VERSION,) + (E.RUNTIME_INCONSISTENCY,) * 2
    )
    assert not outcome.changes and before == [(path, str(tree.node(path))) for path in tree.paths()]


def test_changes_tell_what_was_committed():
    """The commit listener sees path, data, version and owner of each change, in order."""
    tree = Tree()
    tree.apply(5, Create("/a", b"0", ephemeral=True))
    outcome = tree.apply(5, Multi((SetData("/a", b"1"), Delete("/a"))))
    assert [(c.kind, c.path, c.data, c.version, c.owner, c.zxid) for c in outcome.changes] == [
        (CHANGED, "/a", b"1", 1, 5, 2),
        (DELETED, "/a", b"1", 1, 5, 2),
    ]


# ---- a naive model: a dict of paths, copied whole for every write


class Naive:
    """path -> [data, version, owner, creations, czxid, mzxid]; knows no undo, no caches, no child lists."""

    def __init__(self):
        self.nodes = {"/": [b"", 0, 0, 0, 0, 0]}
        self.zxid = 0

    def children(self, path):
        prefix = path.rstrip("/") + "/"
        return sorted(
            other[len(prefix) :]
            for other in self.nodes
            if other != "/" and other.startswith(prefix) and "/" not in other[len(prefix) :]
        )

    def write(self, session, operation):
        """Do one write in place; the error, or what tells of its success."""
        path = operation.path
        parent = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            if parent not in self.nodes:
                return E.NO_NODE
            if operation.sequential:
                path = f"{path}{self.nodes[parent][3]:010d}"
            if path in self.nodes:
                return E.NODE_EXISTS
            if self.nodes[parent][2]:
                return E.NO_CHILDREN_FOR_EPHEMERALS
            owner = session if operation.ephemeral else 0
            self.nodes[path] = [operation.data, 0, owner, 0, self.zxid, self.zxid]
            self.nodes[parent][3] += 1
            return path
        if path not in self.nodes:
            return E.NO_NODE
        if operation.version not in (-1, self.nodes[path][1]):
            return E.BAD_VERSION
        if isinstance(operation, Delete):
            if self.children(path):
                return E.NOT_EMPTY
            del self.nodes[path]
        elif isinstance(operation, SetData):
            node = self.nodes[path]
            node[0], node[1], node[5] = operation.data, node[1] + 1, self.zxid
        return path

    def apply(self, session, operations):
        """All or nothing; the error of the first that fails and its index, or None."""
        self.zxid += 1
        before = deepcopy(self.nodes)
        for index, operation in enumerate(operations):
            result = self.write(session, operation)
            if isinstance(result, ZooKeeperError):
                self.nodes = before
                return result, index
        return None

    def end_session(self, session):
        self.zxid += 1
        self.nodes = {path: node for path, node in self.nodes.items() if node[2] != session}

    def view(self):
        return {
            path: (data, version, owner, tuple(names), 2 * creations - len(names), czxid, mzxid)
            for path, (data, version, owner, creations, czxid, mzxid) in self.nodes.items()
            for names in [self.children(path)]
        }


def view(tree):
    """A tree as the model sees it, without ZooKeeper's own nodes."""
    seen = {}
    for path in tree.paths():
        if path != "/" and not path.startswith("/zookeeper"):
            node = tree.apply(9, GetData(path)).reply
            names = tree.apply(9, GetChildren(path)).reply.names
            stat = node.stat
            assert stat.children == len(names)
            seen[path] = (node.data, stat.version, stat.ephemeral_owner, names, stat.cversion)
            seen[path] += (stat.czxid, stat.mzxid)
    return seen


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/z"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
WRITES = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(Create, PATHS),
    st.builds(SetData, PATHS, st.binary(max_size=2), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
)
MEMBERS = st.one_of(WRITES, st.builds(Check, PATHS, st.integers(0, 2)))
STEPS = st.tuples(
    st.integers(1, 2), st.one_of(WRITES, st.lists(MEMBERS, max_size=5).map(tuple), st.just("end session"))
)


@settings(derandomize=True, deadline=None, database=None, max_examples=400)
@given(steps=st.lists(STEPS, max_size=25))
def test_the_tree_is_the_naive_model(steps):
    """Any history of writes, multis and ends of sessions leaves the tree, its counters and its answers as the
    naive model has them."""
    tree, naive = Tree(), Naive()
    for session, step in steps:
        if step == "end session":
            tree.end_session(session)
            naive.end_session(session)
        elif isinstance(step, tuple):
            reply, expected = tree.apply(session, Multi(step)).reply, naive.apply(session, step)
            assert expected == ((reply.error, reply.index) if isinstance(reply, Failed) else None)
        else:
            reply, expected = tree.apply(session, step).reply, naive.apply(session, [step])
            assert (expected[0] if expected else None) == (reply.error if isinstance(reply, Failed) else None)
        expected_view = naive.view()
        del expected_view["/"]
        assert view(tree) == expected_view and tree.zxid == naive.zxid
