"""The adversary and the log: nothing promised is lost, nothing is invented, whatever the disk does."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.machines.log.disk_rot import DiskMachine

SETTINGS = settings(
    max_examples=120,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_the_log_survives_the_simulated_disk():
    """Rule: flushed records survive, the rest is a clean prefix, nothing is invented, and an error of the
    disk ends the service until recovery."""
    run_state_machine_as_test(DiskMachine, settings=SETTINGS)


def test_what_the_cleaner_never_looked_at_is_not_asked_of_it():
    """Rule: a log start whose checkpoint is lost comes back lower; Kafka's cleaner goes on where it was, and
    older records there may stay."""
    state = DiskMachine()
    state.begin(
        policy="both",
        segment_bytes=300,
        flush_messages=0,
        retention_bytes=0,
        retention_ms=-1,
        log_append_time=False,
    )
    state.draw(losses=0)
    state.join(ahead=0, inside=2, keys=["a", "a", "a"], producer=None, sequence=0)
    state.compact(ms=0)
    state.checkpoint()
    state.lose_derived_files(kinds=["log-start-offset-checkpoint"], stop=False)
    assert (state.model.start, state.model.lost_start) == (0, 2)
    state.compact(ms=0)
    state.teardown()
