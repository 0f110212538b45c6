"""Faults of requests that a broker process begins with."""

import logging

import pytest

from fencepost.systems.broker_process import _hook
from fencepost.systems.processes import ListenerOptions
from fencepost.traces.errors import PlanError
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Cut


def test_a_process_arms_what_its_listeners_say(caplog):
    """Rule: the fault strikes at this broker's requests and is a line in its log; without faults there is no
    hook; a text that makes no sense is refused at the start."""
    from kio.schema.heartbeat.v3.request import HeartbeatRequest

    body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    header = RequestHeader(api_key=12, version=3, correlation_id=1, client_id="app", body=0)
    hook = _hook(2, ListenerOptions(request_faults=("cut before Heartbeat at broker 2, once",)))
    with caplog.at_level(logging.INFO):
        assert hook.on_request(1, header, body) == Cut()
    assert hook.on_request(1, header, body) == PASS
    assert "request fault: cut before Heartbeat at broker 2, once hit Heartbeat" in caplog.text
    assert _hook(1, ListenerOptions()) is None
    with pytest.raises(PlanError, match="did you mean before"):
        _hook(1, ListenerOptions(request_faults=("cut befor Heartbeat",)))
