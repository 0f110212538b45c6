"""The draw of a seed, and how a scenario is made smaller."""

import json

from fencepost.proxy.faults import VERBS, why_illegal
from fencepost.torture.drawing import BROKER_VERBS, GROUP_VERBS, draw
from fencepost.torture.protocol import Ready
from fencepost.torture.records import SHAPES
from fencepost.torture.scenario import STEPS, scenario_of

READY = Ready(
    protocol=1,
    driver="d",
    library="l",
    version="1",
    runtime="r",
    roles=("producer", "consumer"),
    commands=("append", "subscribe", "poll", "commit", "committed"),
    codecs=("none", "gzip"),
    idempotence=True,
    transactions=True,
    assignors=("range",),
    commit_modes=("sync",),
    config=("acks", "idempotence", "in_flight", "linger_ms", "retries", "request_timeout_ms"),
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
    assert {fault.verb for fault in faults} == {name for name, verb in VERBS.items() if not verb.illegal}
    assert {why_illegal(fault) for fault in faults} == {""}
    verbs = {fault.verb for scenario in drawn for fault in scenario.broker_faults}
    assert verbs == {*BROKER_VERBS, *GROUP_VERBS}
    assert {step.verb for scenario in drawn for step in scenario.steps} == set(STEPS)
    assert (
        {scenario.transactional for scenario in drawn}
        == {scenario.rewinds for scenario in drawn}
        == {False, True}
    )
    assert {scenario.transactional for scenario in drawn} == {False, True}
    assert {scenario.rewinds for scenario in drawn} == {False, True}
    assert {scenario.narrow for scenario in drawn} == {False, True}
    assert {shape for scenario in drawn for shape in scenario.shapes} == set(SHAPES)
    assert any(not scenario.request_faults and not scenario.broker_faults for scenario in drawn)
    assert any(scenario.chaos for scenario in drawn)
    quiet = [draw(seed, READY, faults=False) for seed in range(20)]
    assert not any(one.request_faults or one.broker_faults or one.chaos for one in quiet)


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
            + scenario.rewinds
            + scenario.narrow
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
