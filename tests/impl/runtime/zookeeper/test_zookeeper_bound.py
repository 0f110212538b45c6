"""jute.maxbuffer of a real server: a group that is as large as it may be is done, a byte more is not; answers
are as long as was said."""

import pytest

from fencepost.impl.core.procedures import Pipelined
from fencepost.impl.runtime.zookeeper.wire_format import WireMulti, WireMultiRead
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper.grouping import ANSWER_BYTES, REQUEST_BYTES, read_size, write_size
from fencepost.traces.errors import EnvironmentError_

pytestmark = pytest.mark.java
BOUND = 8_192
SMALL = "x" * 50


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real server that takes 8,192 bytes."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.server import ServerOptions, ZooKeeperServer

    options = ServerOptions(maximum_request_bytes=BOUND)
    with ZooKeeperServer.start(tmp_path_factory.mktemp("zookeeper"), options) as server:
        yield server


@pytest.fixture
def zookeeper(server):
    """A session of its own: a request that is too large costs the connection."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper

    with BlockingZooKeeper(server.address) as zookeeper:
        yield zookeeper


@pytest.fixture
def answered(monkeypatch):
    """Lengths of the answers to multis and multi-reads as they came over the wire."""
    lengths = []
    for kind in (WireMulti, WireMultiRead):
        read = kind.deserialize

        def noted(self, buffer, offset, read=read):
            lengths.append(len(buffer))
            return read(self, buffer, offset)

        monkeypatch.setattr(kind, "deserialize", noted)
    return lengths


def filled(operations, bound):
    """The same operations with so much data in the last one that their multi has exactly this length."""
    size = REQUEST_BYTES + sum(write_size(operation)[0] for operation in operations)
    last = operations[-1]
    return zk.Multi((*operations[:-1], zk.SetData(last.path, b"x" * (bound - size + len(last.data)))))


def test_writes_at_the_bound_and_a_byte_beyond(zookeeper):
    """Rule: what `groups` calls full is exactly what the server takes: a multi of 8,192 bytes is done, one of
    8,193 costs the connection and does nothing."""
    zookeeper.ask(zk.Create("/bound"))
    operations = [zk.Check("/bound", 0), *(zk.SetData("/bound", SMALL.encode()) for _ in range(20))]
    assert isinstance(zookeeper.ask(filled(operations, BOUND)), zk.MultiDone)
    stood = zookeeper.ask(zk.MultiRead(("/bound",))).replies[0]
    again = [zk.Check("/bound", 20), *operations[1:]]
    assert zookeeper.ask(filled(again, BOUND + 1)) == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
    zookeeper.heard.clear()
    from fencepost.impl.core.core_interface import ZooKeeperConnected

    zookeeper.wait_for(ZooKeeperConnected)
    assert zookeeper.ask(zk.MultiRead(("/bound",))).replies[0] == stood


def test_reads_at_the_bound_and_a_byte_beyond(zookeeper):
    """Rule: so it is with the paths of a multi-read."""
    from fencepost.impl.core.core_interface import ZooKeeperConnected

    paths = [f"/{number:04d}{SMALL}" for number in range(100)]
    size = REQUEST_BYTES + sum(read_size(path, 0)[0] for path in paths)
    long = "/" + "x" * (BOUND - size - read_size("/", 0)[0])
    assert isinstance(zookeeper.ask(zk.MultiRead((*paths, long))), zk.MultiReadDone)
    assert zookeeper.ask(zk.MultiRead((*paths, long + "x"))) == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
    zookeeper.wait_for(ZooKeeperConnected)


def test_answers_are_as_long_as_was_said(zookeeper, answered):
    """Rule: the answer to writes is known to the byte, the answer to reads as well as the data is; a failed
    member is shorter than a successful one."""
    operations = [
        zk.Create("/answers", b"1234"),
        zk.SetData("/answers", b"12345678"),
        zk.Create("/answers/child-", b"", sequential=True),
    ]
    assert isinstance(zookeeper.ask(zk.Multi(tuple(operations))), zk.MultiDone)
    assert answered.pop() == ANSWER_BYTES + sum(write_size(operation)[1] for operation in operations)
    done = zookeeper.ask(zk.MultiRead(("/answers", "/absent", "/answers")))
    assert [isinstance(reply, zk.Data) for reply in done.replies] == [True, False, True]
    whole = ANSWER_BYTES + 2 * read_size("/answers", 8)[1]
    assert whole < answered.pop() < whole + read_size("/absent", 0)[1]
    refused = [*operations[1:], zk.Check("/answers", 77)]
    assert isinstance(zookeeper.ask(zk.Multi(tuple(refused))), zk.Failed)
    assert answered.pop() <= ANSWER_BYTES + sum(write_size(operation)[1] for operation in refused)


def test_a_procedure_ends_with_its_connection(zookeeper):
    """Rule: a command whose connection is lost says that what it asked last may have been done; it does not
    ask again by itself."""

    def steps():
        found = yield zk.GetData("/"), zk.GetData("/absent")
        assert [isinstance(reply, zk.Data) for reply in found] == [True, False]
        found = yield Pipelined(tuple(zk.GetData(path) for path in ("/", "/absent", "/") * 7), 2)
        assert [isinstance(reply, zk.Data) for reply in found] == [True, False, True] * 7
        yield zk.SetData("/", b"x" * BOUND)
        raise AssertionError("it went on")

    with pytest.raises(
        EnvironmentError_, match="saw CONNECTION_LOSS; look whether it was done before you ask again"
    ):
        zookeeper.run(steps())
