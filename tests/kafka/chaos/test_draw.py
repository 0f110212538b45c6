"""What chaos does to applications is a function of its seed and of what was seen."""

from collections import Counter

import pytest

from fencepost.kafka.chaos.draw import (
    COSTLY,
    FAIL,
    KILL,
    MOST_COSTLY,
    MOST_STRIKES,
    PROCESS,
    REFUSE,
    REPLACE,
    Seen,
    decide,
    strikes_of,
)
from fencepost.kafka.chaos.moments import (
    BETWEEN,
    COMMIT,
    END,
    HANDED_OUT,
    IDLE,
    JOINING,
    KINDS,
    RESULT,
    START,
)
from fencepost.proxy.faults.allowed import may_answer
from fencepost.wire.names import asks_for_retry

API = {START: "JoinGroup", JOINING: "JoinGroup", HANDED_OUT: "Fetch", RESULT: "Produce"}
WORK = [HANDED_OUT, *[RESULT, COMMIT, BETWEEN] * 8]
SERVICE = [START, JOINING, JOINING, *WORK, IDLE, END, *WORK, IDLE, END, *[IDLE, END] * 4]
SEEDS = range(200)


def api_of(kind):
    return API.get(kind, "OffsetCommit" if kind in (COMMIT, BETWEEN) else "Heartbeat")


def strikes(seed, moments, **facts):
    """Of a seed, in a run that shows these moments."""
    found, since, shown = [], Counter(), set()
    for kind in moments:
        since[kind] += 1
        shown.add(kind)
        seen = Seen(since=since, shown=frozenset(shown), strikes=tuple(found), **facts)
        strike = decide(seed, kind, api_of(kind), seen)
        if strike is not None:
            found.append(strike)
            since.clear()
    return found


def test_the_same_seed_and_the_same_moments_give_the_same_strikes():
    """Rule: a seed repeats what it did, and seeds differ."""
    assert [strikes(seed, SERVICE) for seed in SEEDS] == [strikes(seed, SERVICE) for seed in SEEDS]
    assert len({tuple(strikes(seed, SERVICE)) for seed in SEEDS}) > len(SEEDS) * 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_has_a_few_strikes_and_never_none(seed):
    """Rule: each seed strikes a service that comes to an end, as often as it says, within its bounds."""
    found = strikes(seed, SERVICE)
    assert len(found) == strikes_of(seed) <= MOST_STRIKES
    assert sum(one.act in COSTLY for one in found) <= MOST_COSTLY


def test_every_kind_of_moment_and_every_act_is_drawn():
    """Rule: the swarm leaves nothing out."""
    found = [one for seed in SEEDS for one in strikes(seed, SERVICE)]
    assert {one.kind for one in found} == set(KINDS)
    assert len({one.act for one in found}) == 10


def test_what_the_service_never_does_is_not_struck():
    """Rule: a service without results is struck at its commits and at what it is handed out."""
    without = [kind for kind in SERVICE if kind != RESULT]
    found = [one for seed in SEEDS for one in strikes(seed, without)]
    assert {one.kind for one in found} == set(KINDS) - {RESULT}
    assert all(strikes(seed, without) for seed in SEEDS)


def test_without_a_process_only_requests_are_struck():
    """Rule: a test that runs its clients itself is not killed."""
    found = [one for seed in SEEDS for one in strikes(seed, SERVICE, process=False)]
    assert found and not {one.act for one in found} & PROCESS


def test_errors_are_those_of_a_correct_broker():
    """Rule: a failure is for good, a refusal asks for another attempt, and a broker may give both."""
    for seed in SEEDS:
        for one in strikes(seed, SERVICE):
            if one.act in (FAIL, REFUSE):
                assert one.error in may_answer(api_of(one.kind), after_effect=one.after_effect)
                assert asks_for_retry(one.error) is (one.act == REFUSE)
    assert any(one.act == KILL and one.milliseconds for seed in SEEDS for one in strikes(seed, SERVICE))


def test_a_process_that_nothing_fences_is_not_replaced():
    """Rule: two at a time without a group or a transactional id are a mistake of whoever starts them."""
    acts = {one.act for seed in SEEDS for one in strikes(seed, SERVICE, kept_apart=False)}
    assert KILL in acts and REPLACE not in acts
    assert REPLACE in {one.act for seed in SEEDS for one in strikes(seed, SERVICE)}
