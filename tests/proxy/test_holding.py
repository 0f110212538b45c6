"""A request that is held takes effect after its client has gone on."""

import socket
import struct

import pytest
from proxy_lab import proxy_lab

from fencepost.proxy.faults import FaultHook, RequestFaults, parse
from fencepost.proxy.server.listener import trace_time

PATIENCE_S = 60


def asked(number):
    """DescribeGroups 0, for no group, from a client without an id."""
    return struct.pack(">ihhihi", 14, 15, 0, number, -1, 0)


@pytest.fixture
def held():
    """Returns (a connection to the proxy, a broker's listener, the hits), with a fault armed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        hits = []
        faults = RequestFaults(record=hits.append)
        hook = FaultHook(faults, 1, trace_time)
        with proxy_lab(f"127.0.0.1:{listener.getsockname()[1]}", hook_for=lambda node: hook) as lab:

            def begin(text):
                faults.arm(parse(text), trace_time())
                client = socket.create_connection(("127.0.0.1", lab.port), PATIENCE_S)
                broker, _ = listener.accept()
                broker.settimeout(PATIENCE_S)
                return client, broker

            yield begin, hits


def everything(side):
    """What arrives until the end."""
    data = b""
    while part := side.recv(1_000):
        data += part
    return data


def test_the_connection_ends_at_once_and_the_request_arrives_later(held):
    """Rule: the client hears the end of its connection; the broker gets the request on the connection that it
    was sent on, with what came before it, and hears the end after it."""
    begin, hits = held
    client, broker = begin("hold DescribeGroups by 300ms, 2nd")
    with client, broker:
        client.sendall(asked(1) + asked(2) + asked(3))
        assert client.recv(1) == b""
        assert everything(broker) == asked(1) + asked(2) + asked(3)
    (hit,) = hits
    assert (hit.api, hit.fault.verb, hit.until - hit.time) == ("DescribeGroups", "hold", 300_000_000)


@pytest.mark.parametrize("leaves", [True, False])
def test_what_a_connection_brings_is_late_also_if_its_client_leaves(held, leaves):
    """Rule: the request and what comes after it arrive in their order, whether the client waits or closes."""
    begin, _ = held
    client, broker = begin("hold connection at DescribeGroups by 200ms, 1st")
    with client, broker:
        client.sendall(asked(1) + asked(2))
        if leaves:
            client.close()
            assert everything(broker) == asked(1) + asked(2)
        else:
            both = asked(1) + asked(2)
            assert broker.recv(len(both), socket.MSG_WAITALL) == both
            answer = struct.pack(">iii", 8, 1, 0)
            broker.sendall(answer)
            assert client.recv(100) == answer


def test_a_delayed_request_of_a_client_that_leaves_is_lost(held):
    """Rule: only a verb that says so carries out what its client has given up."""
    begin, _ = held
    client, broker = begin("delay DescribeGroups by 50ms, 2nd")
    with client, broker:
        client.sendall(asked(1) + asked(2))
        client.close()
        assert everything(broker) in (b"", asked(1))
