"""The ZooKeeper interface over kazoo: order, lost connections, and requests that would be too large.
Semantics: tests/parity/test_zookeeper.py."""

import time

import pytest

from fencepost.impl.core.core_interface import (
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperWatchFired,
)
from fencepost.impl.runtime.zookeeper import wire_format
from fencepost.impl.zookeeper import interface as zk


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real server."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.server import ZooKeeperServer

    with ZooKeeperServer.start(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def until(condition):
    """Wait until it holds; a bound, no measure."""
    for _ in range(6_000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not come true")


@pytest.mark.java
def test_replies_and_watches_keep_the_order_of_the_wire(server):
    """Rule: replies come in the order of requests, and a watch before any reply that shows the change, with
    hundreds in flight."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession

    heard, many = [], 200
    session = ZooKeeperSession(server.address, 10_000, heard.append)
    session.start()
    try:
        until(lambda: heard)
        with BlockingZooKeeper(server.address) as other:
            other.ask(zk.Create("/order", b""))
            for value in (b"1", b"2", b"3", b"4", b"5"):
                heard.clear()
                session.ask(0, zk.GetData("/order", watch=True))
                until(lambda: heard)
                for number in range(1, many):
                    session.ask(number, zk.GetData("/order"))
                    if number == many // 2:
                        other.session.ask(-1, zk.SetData("/order", value))
                until(lambda: len(heard) == many + 1)
                replies = [input for input in heard if isinstance(input, ZooKeeperReplied)]
                assert [input.request_id for input in replies] == list(range(many))
                fired = heard.index(ZooKeeperWatchFired(zk.WatchEvent("/order", zk.WatchKind.CHANGED)))
                assert [input.reply.data == value for input in replies] == [
                    place > fired for place, input in enumerate(heard) if isinstance(input, ZooKeeperReplied)
                ]
    finally:
        session.stop()


@pytest.mark.java
def test_a_server_that_stands_still_and_goes_on(tmp_path):
    """Rule: silence of the server ends what is outstanding in CONNECTION_LOSS, then ZooKeeperDisconnected; it
    comes back by itself."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import ZooKeeperServer

    with (
        ZooKeeperServer.start(tmp_path) as server,
        BlockingZooKeeper(
            server.address, session_timeout_ms=4_000
        ) as it,  # a crowded machine stands still for a second
    ):
        server.pause()
        assert it.ask(zk.Create("/late")) == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
        it.wait_for(ZooKeeperDisconnected)
        assert it.ask(zk.Create("/refused")) == zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS)
        server.resume()
        it.wait_for(ZooKeeperConnected)
        until(lambda: it.ask(zk.Exists("/refused")) != zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS))
        assert it.ask(zk.Exists("/refused")) == zk.Failed(zk.ZooKeeperError.NO_NODE)


@pytest.mark.java
def test_a_session_that_never_found_its_server_stops(tmp_path):
    """Rule: stopping does not depend on the server."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.server import HOST, free_ports
    from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession

    heard: list[object] = []
    session = ZooKeeperSession(f"{HOST}:{free_ports(1)[0]}", 1_000, heard.append)
    session.start()
    session.ask(1, zk.Exists("/"))
    session.stop()
    assert heard == [ZooKeeperReplied(1, zk.Failed(zk.ZooKeeperError.CONNECTION_LOSS))]


def test_watches_are_set_again_in_requests_below_the_bound():
    """Rule: however many watches, no request grows beyond the bound, none is lost, and each is of its
    kind."""
    data = [f"/data/{number:05d}" for number in range(100)]
    exists, children = ["/exists"] * 1, [f"/children/{number:05d}" for number in range(50)]
    requests = wire_format.set_watches_requests(7, data, exists, children, 200)
    assert all(len(request.serialize()) < 300 and request.seen == 7 for request in requests)
    assert [path for request in requests for path in request.data] == data
    assert [path for request in requests for path in request.exists] == exists
    assert [path for request in requests for path in request.children] == children
    assert wire_format.set_watches_requests(7, [], [], [], 200) == []
    assert len(wire_format.set_watches_requests(7, ["/" + "x" * 500], [], [], 200)) == 1


def test_codes_of_the_server():
    """Rule: an unknown result code is never taken for another; an absent node is NO_NODE; events without a
    path are nobody's."""
    assert wire_format.error_of(-110) is zk.ZooKeeperError.NODE_EXISTS
    with pytest.raises(wire_format.UnknownCodeError, match="-9999"):
        wire_format.error_of(-9999)
    assert wire_format.reply_of(None, 7) == zk.Failed(zk.ZooKeeperError.NO_NODE)
    assert wire_format.watch_event(b"\xff\xff\xff\xff" + b"\x00\x00\x00\x03" + b"\x00\x00\x00\x00", 0) is None
