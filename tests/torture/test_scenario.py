"""The draw of a seed, and how a scenario is made smaller."""

import json

import attrs

from fencepost.proxy.faults import VERBS, may_answer, why_illegal
from fencepost.proxy.faults.verbs import OBSERVE
from fencepost.sim.randomness import Randomness
from fencepost.torture.drawing import (
    BROKER_VERBS,
    CAUSES,
    GROUP_VERBS,
    IDLE_MS,
    RARE,
    WITH_OFFSETS,
    _apis,
    draw,
)
from fencepost.torture.protocol import Ready
from fencepost.torture.record_contents import SHAPES
from fencepost.torture.scenario import COMPACTS, LOGS, MOVES_TRANSACTIONS, SINGLE, STEPS, scenario_of

READY = Ready(
    protocol=1,
    driver="d",
    library="l",
    version="1",
    runtime="r",
    roles=("producer", "consumer"),
    commands=("append", "subscribe", "poll", "commit", "committed", "send_offsets"),
    codecs=("none", "gzip"),
    idempotence=True,
    transactions=True,
    assignors=("range",),
    commit_modes=("sync",),
    config=(
        "acks",
        "idempotence",
        "in_flight",
        "linger_ms",
        "retries",
        "request_timeout_ms",
        "metadata_max_age_ms",
    ),
)


def test_a_seed_means_one_scenario():
    """The same draw twice, and JSON loses nothing."""
    for seed in range(30):
        scenario = draw(seed, READY)
        assert scenario == draw(seed, READY)
        again = scenario_of(json.loads(json.dumps(scenario.as_dict())))
        assert again == scenario and again.words() == scenario.words()


def test_seeds_cross_concurrency_with_faults():
    """Over five hundred seeds everything that may be drawn is drawn, and nothing that no correct broker
    does."""
    drawn = [draw(seed, READY) for seed in range(500)]
    assert {scenario.producers for scenario in drawn} == {1, 2, 3}
    assert {scenario.members for scenario in drawn} == {0, 1, 2, 3}
    assert {scenario.topics for scenario in drawn} == {1, 2, 3}
    faults = [fault for scenario in drawn for fault in scenario.request_faults]
    assert {fault.verb for fault in faults} == {
        name for name, verb in VERBS.items() if not verb.illegal and not verb.outlives and name != OBSERVE
    }, "what outlives its client is for real systems: scenarios stay what their records ran"
    assert {why_illegal(fault) for fault in faults if fault.legal} == {""}
    changed = {(fault.api, fault.error) for fault in faults if not fault.legal}
    assert changed == {("AddPartitionsToTxn", "TOPIC_AUTHORIZATION_FAILED")}, "only an ACL that was changed"
    verbs = {fault.verb for scenario in drawn for fault in scenario.broker_faults}
    assert verbs == {*BROKER_VERBS, *GROUP_VERBS, *SINGLE}
    assert {step.verb for scenario in drawn for step in scenario.steps} == set(STEPS)
    assert {scenario.transactional for scenario in drawn} == {False, True}
    assert {scenario.rewinds for scenario in drawn} == {False, True}
    assert {scenario.narrow for scenario in drawn} == {False, True}
    assert {bool(scenario.copier) for scenario in drawn} == {False, True}
    assert all(scenario.producer["idempotence"] for scenario in drawn if scenario.copier)
    assert {fault.api for fault in faults} >= WITH_OFFSETS
    with_offsets = [one for one in drawn if {fault.api for fault in one.request_faults} & WITH_OFFSETS]
    assert all(scenario.copier for scenario in with_offsets)
    assert {scenario.logs for scenario in drawn} == {"", *LOGS}
    assert not any("null key" in one.shapes for one in drawn if one.logs == COMPACTS)
    assert {scenario.idle_ms for scenario in drawn} == {0, *IDLE_MS}
    assert {shape for scenario in drawn for shape in scenario.shapes} == set(SHAPES)
    assert any(not scenario.request_faults and not scenario.broker_faults for scenario in drawn)
    assert any(scenario.chaos for scenario in drawn)
    quiet = [draw(seed, READY, faults=False) for seed in range(20)]
    assert not any(one.request_faults or one.broker_faults or one.chaos for one in quiet)


def test_faults_of_a_single_request_come_with_what_makes_clients_send_it():
    """Rule: where only a rare request is hit, its cause is in the same scenario, and it is hit early."""
    met = set()
    for seed in range(600):
        scenario = draw(seed, READY)
        apis = _apis(Randomness(seed), scenario.members, scenario.transactional, copies=bool(scenario.copier))
        if len(apis) == 1 and (api := next(iter(apis))) in CAUSES:
            met.add(api)
            assert CAUSES[api] in {one.verb for one in (*scenario.broker_faults, *scenario.steps)}
            assert {fault.api for fault in scenario.request_faults} <= {api, "any"}
            assert all(fault.one_in <= RARE and fault.nth <= RARE for fault in scenario.request_faults)
    assert met == set(CAUSES)


def test_what_carries_or_decides_about_records_is_hit_often():
    """Rule: at least a third of the seeds has faults of Produce, and each of its errors is drawn; a
    coordinator of transactions moves only where there is one."""
    drawn = [draw(seed, READY) for seed in range(500)]
    hit = [{fault.api for fault in one.request_faults} for one in drawn]
    assert sum("Produce" in apis for apis in hit) >= 500 // 3
    errors = {
        fault.error for one in drawn for fault in one.request_faults if fault.api == "Produce" and fault.error
    }
    every = {*may_answer("Produce", after_effect=False), *may_answer("Produce", after_effect=True)}
    assert errors == every
    moved = [one for one in drawn if MOVES_TRANSACTIONS in {fault.verb for fault in one.broker_faults}]
    assert moved and all(one.transactional or one.copier for one in moved)


def test_what_users_and_brokers_seldom_do_is_drawn():
    """Rule: defaults in about a tenth of the seeds; faults longer than deliveries may take; transactions that
    go on to a second partition, with an error that is final there; late readers of every reset; any order of
    lists; an OffsetFetch that is late once something is committed."""
    settings = ("delivery_timeout_ms", "retry_backoff_ms", "offset_reset")
    able = attrs.evolve(READY, config=(*READY.config, *settings), transactions=True)
    drawn = [draw(seed, able) for seed in range(600)]
    plain = [one for one in drawn if "retry_backoff_ms" not in one.producer]
    assert 30 <= len(plain) <= 90 and all(one.producer["acks"] == -1 for one in plain)
    long = [one for one in drawn for fault in one.broker_faults if fault.for_ms >= 1_000]
    assert long and all(one.producer["delivery_timeout_ms"] <= 5_000 for one in long)
    times = ("delivery_timeout_ms", "request_timeout_ms")
    tight = [one for one in plain if one.producer[times[0]] == one.producer[times[1]]]
    assert tight and all(one.producer["linger_ms"] == 0 for one in tight), "their sum is Java's least"
    final = [one for one in drawn if any("TOPIC_AUTH" in str(fault) for fault in one.request_faults)]
    assert any(one.apart for one in final) and all(one.transactional or one.copier for one in final)
    assert {one.reader for one in drawn} == {"", "earliest", "latest", "none"}
    assert any(one.reader and one.logs for one in drawn) and any(one.shuffled for one in drawn)
    assert {"cancel", "crowd"} <= {step.verb for one in drawn for step in one.steps}
    late = [
        one
        for one in drawn
        if any("to OffsetFetch by" in str(f) and "after 600ms" in str(f) for f in one.request_faults)
    ]
    assert late and all(any(step.verb == "restart" for step in one.steps) for one in late if one.members)


def test_only_transactions_are_fenced():
    """Rule: a step that needs transactions is drawn with them only, and goes with them."""
    drawn = [draw(seed, READY) for seed in range(300)]
    fenced = [one for one in drawn if any(step.verb == "fence" for step in one.steps)]
    assert fenced and all(one.transactional for one in fenced)
    for smaller in fenced[0].smaller():
        assert smaller.transactional or not any(step.verb == "fence" for step in smaller.steps)


def test_settings_are_only_those_that_the_library_has():
    """A library without idempotence is not asked for it."""
    assert set(draw(1, READY).producer) <= set(READY.config)
    plain = Ready(**{**READY.__getstate__(), "idempotence": False, "commands": ("append",)})
    assert draw(1, plain).producer["idempotence"] is False and draw(1, plain).members == 0


def test_every_smaller_scenario_is_smaller():
    """A shrink ends."""

    def size(scenario):
        return (
            scenario.faults
            + scenario.transactional
            + bool(scenario.copier)
            + scenario.rewinds
            + scenario.narrow
            + scenario.idle_ms
            + scenario.topics
            + scenario.duration_ms
            + scenario.producers
            + scenario.members
            + scenario.bursts
            + scenario.burst
            + scenario.partitions
        )

    for seed in range(20):
        scenario = draw(seed, READY)
        assert all(size(one) < size(scenario) for one in scenario.smaller())
