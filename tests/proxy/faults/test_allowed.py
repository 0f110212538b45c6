"""What a correct broker may answer."""

import pytest

from fencepost.proxy.faults import ALLOWED, Features, RequestFaults, draw, parse, rows, why_illegal
from fencepost.traces.errors import PlanError
from fencepost.wire.names import api_keys, asks_for_retry, error_names


def test_the_table_speaks_of_apis_and_errors_that_exist():
    """Rule: every name is Kafka's; no error is both allowed at any time and only if."""
    assert set(ALLOWED) <= set(api_keys())
    for api, row in ALLOWED.items():
        assert not set(row.any_time) & set(row.only_if), api
        assert {*row.any_time, *row.after, *row.only_if} <= set(error_names())
        assert row.effect or not row.after, f"{api} changes nothing, so nothing comes after its effect"
    assert ("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "after the effect", True) in set(rows())
    assert asks_for_retry("NOT_COORDINATOR") and not asks_for_retry("INVALID_TXN_STATE")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("answer NOT_LEADER_OR_FOLLOWER to Produce", ""),
        ("answer REQUEST_TIMED_OUT to Produce, after effect", ""),
        ("answer REQUEST_TIMED_OUT to Produce", "never answered REQUEST_TIMED_OUT without an effect"),
        ("answer OFFSET_OUT_OF_RANGE to Fetch", "only in a state that the fault does not bring about"),
        ("answer UNKNOWN_MEMBER_ID to Heartbeat", "only in a state"),
        ("answer NOT_COORDINATOR to any request", "not every request"),
        ("answer UNKNOWN_SERVER_ERROR to any request", ""),
        ("skip answer to Fetch", "in their order"),
        ("reshape Fetch to control batch", "an offset of its own"),
        ("reshape Fetch to earlier batch", ""),
        ("forget member of group g", ""),
    ],
)
def test_what_is_legal(text, reason):
    """Rule: what a correct broker never does is refused, with the reason, unless it says that it is
    illegal."""
    fault, faults = parse(text), RequestFaults()
    assert (reason in why_illegal(fault)) and bool(reason) is bool(why_illegal(fault))
    if reason:
        with pytest.raises(PlanError, match="add `, illegal`"):
            faults.arm(fault, 0)
        faults.arm(parse(f"{text}, illegal"), 0)
    else:
        faults.arm(fault, 0)
    assert len(faults.active()) == 1


FEATURES = Features(topics={"orders": 3, "a-1": 1}, groups=("billing",), for_ms=5_000, silences=True)


def test_scripts_are_legal_and_of_their_seed_alone():
    """Rule: 500 seeds give legal scripts that can be written and read; the same seed gives the same; all
    verbs, many errors and all legal shapes come."""
    verbs, errors, shapes = set(), set(), set()
    for seed in range(500):
        script = draw(seed, FEATURES)
        assert script == draw(seed, FEATURES) and 1 <= len(script) <= 6
        for fault in script:
            assert not why_illegal(fault) and fault.legal and parse(str(fault)) == fault
            assert 0 < fault.most <= FEATURES.most
            verbs.add(fault.verb)
            errors.add(fault.error)
            shapes.add(fault.shape)
    assert len(verbs) == 15 and len(errors) > 12
    assert shapes == {"", "empty", "one batch", "partial batch", "earlier batch", "empty batch"}
    assert len({draw(seed, FEATURES) for seed in range(100)}) == 100


def test_a_script_only_has_what_there_is():
    """Rule: no group without groups, no topic without topics, no silence unless it is asked for, no API that
    nobody uses."""
    script = [fault for seed in range(200) for fault in draw(seed, Features(apis=frozenset({"Produce"})))]
    assert {fault.api for fault in script} <= {"Produce", "any"}
    assert {fault.topic for fault in script} == {fault.group for fault in script} == {""}
    assert not any(fault.verb.startswith("silence") or "move" in fault.verb for fault in script)
    with pytest.raises(PlanError, match="requests that can be broken"):
        draw(1, Features(apis=frozenset()))
