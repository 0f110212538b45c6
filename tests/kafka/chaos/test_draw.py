"""What chaos does to applications is a function of its seed and of what was seen."""

from collections import Counter

import pytest

from fencepost.kafka.chaos.draw import Answers, Seen, decide
from fencepost.kafka.chaos.hands import (
    BLOCK,
    COSTLY,
    FAIL,
    FAIL_ALL,
    FAMILIES,
    FOR_GOOD,
    HAND,
    KILL,
    OF_MEMBERS,
    PROCESS,
    REFUSE,
    REFUSE_ALL,
    REPLACE,
    TAKE_OVER,
    Shows,
    hand,
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
SERVICE = [START, JOINING, JOINING, *WORK, IDLE, END, *[JOINING, *WORK, IDLE, END] * 5]
SEEDS = range(200)
BLOCKS = [range(first, first + BLOCK) for first in SEEDS[::BLOCK]]
EVERY_PAIR = {pair for family in FAMILIES.values() for pair in family}


def api_of(kind):
    return API.get(kind, "OffsetCommit" if kind in (COMMIT, BETWEEN) else "Heartbeat")


def answers_of(kind):
    before, after = (may_answer(api_of(kind), after_effect=after) for after in (False, True))
    return Answers(before=before, after=after)


def strikes(seed, moments, **facts):
    """Of a seed, in a run that shows these moments."""
    found, since, shown = [], Counter(), Counter()
    for kind in moments:
        since[kind] += 1
        shown[kind] += 1
        strike = decide(
            seed, kind, answers_of(kind), Seen(since=since, shown=shown, strikes=tuple(found), **facts)
        )
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
    """Rule: a service is struck, also one that comes to an end at once, and no pair is played twice."""
    found = strikes(seed, SERVICE)
    assert 0 < len(found) <= HAND
    assert len({(one.kind, one.act) for one in found}) == len(found)
    assert strikes(seed, [START, HANDED_OUT, RESULT, IDLE, END])


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_ten_seeds_have_every_pair(block):
    """Rule: what is possible is in hand once in each block, and what shows most, several times."""
    hands = [hand(seed, Shows()) for seed in block]
    assert {pair for each in hands for pair in each} == EVERY_PAIR
    assert all(len(each) == len(set(each)) == HAND for each in hands)
    counts = Counter(pair.act for each in hands for pair in each if pair.kind == RESULT)
    assert counts[FAIL] >= 4 and counts[KILL] >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_ten_seeds_strike_with_nearly_every_pair(block):
    """Rule: what is in hand is played, by a service that shows every moment, often enough."""
    found = {(one.kind, one.act) for seed in block for one in strikes(seed, SERVICE)}
    assert len({(pair.kind, pair.act) for pair in EVERY_PAIR} - found) <= 3


@pytest.mark.parametrize("missing", [{RESULT}, {JOINING, START}, {COMMIT, BETWEEN}])
@pytest.mark.parametrize("block", BLOCKS[:5], ids=str)
def test_a_block_of_a_service_that_shows_less_has_every_pair_that_is_left(block, missing):
    """Rule: a pair that cannot come gives its place to one that can."""
    shows = Shows(kinds=frozenset(KINDS) - missing, transactional=False)
    hands = [hand(seed, shows) for seed in block]
    dealt = {pair for each in hands for pair in each}
    assert dealt == {one for one in EVERY_PAIR if shows.has(one)}
    assert not {pair.kind for pair in dealt} & missing
    assert all(len(each) == HAND for each in hands)


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


def test_a_crash_comes_after_a_failure():
    """Rule: what was not committed shows after the next start."""
    for seed in SEEDS:
        acts = [pair.act for pair in hand(seed, Shows()) if pair.kind in (RESULT, COMMIT)]
        failures = [place for place, act in enumerate(acts) if act in {FAIL, FAIL_ALL, REFUSE_ALL}]
        crashes = [place for place, act in enumerate(acts) if act in COSTLY]
        assert not crashes or not failures or failures[0] < crashes[0]


def test_errors_are_those_of_a_correct_broker():
    """Rule: a failure is for good, a refusal asks for another attempt, and a broker may give both. What fails
    again and again has no effect."""
    for seed in SEEDS:
        for one in strikes(seed, SERVICE):
            if one.act in (FAIL, REFUSE, FAIL_ALL, REFUSE_ALL):
                assert one.error in may_answer(api_of(one.kind), after_effect=one.after_effect)
                assert asks_for_retry(one.error) is (one.act in (REFUSE, REFUSE_ALL))
                assert not (one.after_effect and one.act in FOR_GOOD)
    assert any(one.act == KILL and one.milliseconds for seed in SEEDS for one in strikes(seed, SERVICE))


def test_a_request_that_knows_no_such_error_is_not_struck_with_one():
    """Rule: a strike is one that its client hears of."""
    seen = Seen(since={RESULT: 3, IDLE: 1}, shown={RESULT: 3, IDLE: 1})
    for seed in SEEDS:
        strike = decide(seed, RESULT, Answers(), seen)
        assert strike is None or not strike.error


def test_a_process_that_nothing_fences_is_not_replaced():
    """Rule: two at a time without a group or a transactional id are a mistake of whoever starts them, and
    only a member feels what happens to its group."""
    alone = {"member": False, "transactional": False}
    acts = {one.act for seed in SEEDS for one in strikes(seed, SERVICE, **alone)}
    assert KILL in acts and not acts & {REPLACE, TAKE_OVER, *OF_MEMBERS}
    assert REPLACE in {one.act for seed in SEEDS for one in strikes(seed, SERVICE)}
