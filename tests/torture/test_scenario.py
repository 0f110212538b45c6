"""The draw of a seed, and how a scenario is made smaller."""

import json

from fencepost.torture.protocol import Ready
from fencepost.torture.scenario import draw, scenario_of

READY = Ready(
    protocol=1, driver="d", library="l", version="1", runtime="r", roles=("producer", "consumer"),
    commands=("append", "subscribe", "poll", "commit", "committed"), codecs=("none", "gzip"), idempotence=True,
    assignors=("range",), commit_modes=("sync",), config=("acks", "idempotence", "in_flight", "linger_ms", "retries"),
)  # fmt: skip


def test_a_seed_means_one_scenario():
    """The same draw twice, and JSON loses nothing."""
    for seed in range(30):
        scenario = draw(seed, READY)
        assert scenario == draw(seed, READY)
        again = scenario_of(json.loads(json.dumps(scenario.as_dict())))
        assert again == scenario and again.words() == scenario.words()


def test_seeds_cross_concurrency_with_faults():
    """Over a hundred seeds everything that may be drawn is drawn."""
    drawn = [draw(seed, READY) for seed in range(100)]
    assert {scenario.producers for scenario in drawn} == {1, 2, 3}
    assert {scenario.members for scenario in drawn} == {0, 1, 2, 3}
    assert {fault.verb for scenario in drawn for fault in scenario.request_faults} == {"lose", "cut", "delay"}
    verbs = {fault.verb for scenario in drawn for fault in scenario.broker_faults}
    assert verbs == {"crash", "pause", "expire_session", "slow", "cut_off", "move_leader", "rebalance"}
    assert any(not scenario.request_faults and not scenario.broker_faults for scenario in drawn)
    assert not any(draw(seed, READY, faults=False).request_faults for seed in range(20))


def test_settings_are_only_those_that_the_library_has():
    """A library without idempotence is not asked for it."""
    assert set(draw(1, READY).producer) <= set(READY.config)
    plain = Ready(**{**READY.__getstate__(), "idempotence": False, "commands": ("append",)})
    assert draw(1, plain).producer["idempotence"] is False and draw(1, plain).members == 0


def test_every_smaller_scenario_is_smaller():
    """A shrink ends."""

    def size(scenario):
        faults = len(scenario.request_faults) + len(scenario.broker_faults) + len(scenario.leaves)
        return (
            faults
            + scenario.producers
            + scenario.members
            + scenario.bursts
            + scenario.burst
            + scenario.partitions
        )

    for seed in range(20):
        scenario = draw(seed, READY)
        assert all(size(one) < size(scenario) for one in scenario.smaller())
