"""Single requests of clients that the network breaks, in the embedded cluster behind proxies."""

import asyncio
import json

import pytest
from attrs import evolve

from fencepost.campaign.workers.real_worker import checked
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.run.faults.requests import BROKEN_REQUEST
from fencepost.run.real.real_run import RealRun
from fencepost.systems.embedded import Embedded
from fencepost.systems.system import UnsupportedError, requests_of_system
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Name
from tests.run.real.behind_proxies import BehindProxies
from tests.run.real.small_plans import KEEPS, plan_of

IMPATIENT = evolve(KEEPS, request_timeout_ms=150, retry_unknown=True)


@pytest.fixture(scope="module")
def behind():
    with BehindProxies() as system:
        yield system


@pytest.fixture
def made(behind, request):
    """A maker of runs in the module's cluster; the name of the topic tells them apart."""
    count = 0

    def make(plan, **given):
        nonlocal count
        count += 1
        topic = f"{request.node.originalname}-{count}"
        run = RealRun(plan=checked(plan), system=behind, topic=topic, target="embedded", **given)
        return run, asyncio.run(run.go())

    return make


def broken(*texts, **more):
    """A plan in which each of these may strike from the beginning on."""
    return plan_of(*((BROKEN_REQUEST, 50 + place, 1_000, text) for place, text in enumerate(texts)), **more)


def hits(trace):
    """(the fault, the request that was hit) of each hit."""
    details = (json.loads(one.detail) for one in trace.events if one.name is Name.FAULT_BEGAN and one.detail)
    return [(one["says"], one["target"].split()[0]) for one in details if "says" in one]


def test_a_held_append_takes_effect_after_it_was_sent_again(made):
    """Rule: the record is twice in the log, which the claims of a producer without idempotence allow, and
    which is found where it is not. The hit is in the trace, with the plan's name of the topic."""
    plan = broken("hold Produce on t-0 by 400ms, 2nd, once", client=IMPATIENT, count=40)
    run, trace = made(plan)
    assert [said for said, _ in hits(trace)] == [
        f"hold Produce by 400ms on {run.topic}-0, 2nd, once",
    ]
    (began,) = [one for one in trace.events if one.cause == "hold" and one.name is Name.FAULT_BEGAN]
    assert (began.topic, began.partition) == ("t", 0) and 0 < began.time < trace.events[-1].time
    assert trace.claims.duplicates and combine(judge(trace)).decision.value == "ok"
    _, trace = made(plan, control="duplicates")
    assert len(hits(trace)) == 1 and combine(judge(trace)).anomaly is not None


def test_answers_and_connections_are_broken_of_the_client_that_is_named(made):
    """Rule: each verb that the swarm draws; a process has a client id of its own. What is armed and meets no
    request hits nothing."""
    run, trace = made(
        broken(
            "lose answer to Produce from client process-1, 1st, once",
            "hold connection at Produce by 100ms from client process-2, 1st, once",
            "delay answer to Produce by 50ms from client process-0, 1st, once",
            "half answer to Fetch from client process-0, 1st, once",
            "cut before Fetch from client process-1, 1st, once",
            "cut after Fetch from client process-2, 1st, once",
            "hold EndTxn by 100ms, once",
            count=60,
        )
    )
    struck = sorted({one.cause for one in trace.events if one.name is Name.FAULT_BEGAN} - {BROKEN_REQUEST})
    assert struck == [
        *("cut_after", "cut_before", "delay_answer", "half_answer", "hold_connection", "lose_answer")
    ]
    targets = [one.detail for one in trace.events if one.cause == "lose_answer" and "says" in one.detail]
    assert len(targets) == 1 and "Produce of process-1 at broker" in targets[0]
    assert not run.stuck and combine(judge(trace)).decision.value == "ok"


def test_a_fault_that_no_correct_broker_has_is_no_plan():
    """Rule: nor is a text that is no fault, nor a system without proxies one whose requests can be broken."""
    with pytest.raises(PlanError, match="what a correct broker may do"):
        checked(broken("skip answer to Produce"))
    with pytest.raises(PlanError, match="a verb"):
        checked(broken("leader of t-0"))
    with pytest.raises(UnsupportedError, match="come in through a proxy"):
        requests_of_system(Embedded())
