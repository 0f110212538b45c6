"""The data tree against a table of ZooKeeper 3.9's behaviours; any sequence of requests is compared with a
real server in tests/parity/test_zookeeper.py."""

import pytest

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
