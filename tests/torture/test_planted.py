"""Each judge convicts a client that breaks its promise, in a whole run: a driver with one planted bug."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from torture_lab import library_here

from fencepost.application.event_columns import read_events
from fencepost.checkers.application.application_judge import judge_events
from fencepost.checkers.application.recorded import written
from fencepost.systems.listeners import Listeners
from fencepost.torture import scenario as verbs
from fencepost.torture.at_brokers.heard import time_of
from fencepost.torture.building import Built
from fencepost.torture.driver_process import Driver
from fencepost.torture.judging.judges import judge
from fencepost.torture.judging.outcome import NEVER
from fencepost.torture.judging.promises import PROMISES
from fencepost.torture.scenario_run import carry_out
from fencepost.torture.workers import Job, Worker
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_traces
from fencepost.wire.limits import Limits

TAMPERING = Path(__file__).parent / "tampering.py"
PRODUCER = {"acks": -1, "idempotence": True, "in_flight": 5, "linger_ms": 0}
TRANSACTIONS = {**PRODUCER, "transaction_timeout_ms": 10_000, "delivery_timeout_ms": 10_000}
COPYING = ("copied_twice", "copy_lost", "stuck_copier", "nothing in copies")
TRANSACTIONAL = (
    *("transaction_lost", "transaction_kept", "torn", "aborted_delivered", "stuck_transaction"),
    "committed_after_failure",
    "nothing in transactions",
)
PLAIN = {**PRODUCER, "idempotence": False, "in_flight": 1}
CONSUMER = {
    "isolation": "read_committed",
    "offset_reset": "earliest",
    "auto_commit": False,
    "session_timeout_ms": 6_000,
    "metadata_max_age_ms": 100,
}
SHORT = {"request_timeout_ms": 500, "delivery_timeout_ms": 500}
PAUSE = verbs.BrokerFault(verb="pause", at_ms=100, for_ms=6_000, target=0)
DELETION = verbs.BrokerFault(verb=verbs.DELETES, at_ms=900, for_ms=0, target=1)
GROWTH = verbs.BrokerFault(verb=verbs.GROWS, at_ms=100, for_ms=0, target=0)
RECREATION = verbs.BrokerFault(verb=verbs.RECREATES, at_ms=700, for_ms=0, target=0)
TRUNCATION = verbs.BrokerFault(verb=verbs.TRUNCATES, at_ms=500, for_ms=0, target=0)
SOON_S = 4.0
NEAR_NS = 200_000_000
"""How near to its own time a line of the application lies in the trace, at least."""
NEVER_ENDS = ("stuck_append", "stuck_consumer", "stuck_copier", "stuck_transaction", "skipped", "wrong_start")
"""Whose runs wait in vain, so for SOON_S only; the others end by themselves, late on a crowded machine."""
MOVES = {"below_committed": (500, 800, 1_100), "revoked_without_reason": (600,)}
"""Milliseconds at which the members restart, in the runs whose promise is about that."""
TRIES = 5
"""Runs in which brokers remove, members commit, or the machine is not busy for long enough: on a crowded
machine not each is one."""
ALSO = {
    "torn": {"lost_write", "wrong_offset", "offset_acknowledged_twice"},
    "wrong_offset": {"offset_acknowledged_twice"},
    "transaction_lost": {"transaction_kept"},
    "transaction_kept": {"transaction_lost"},
    "wrong_record": {"lost_write", "wrong_delivery"},
    "lost_write": {"wrong_offset", "offset_acknowledged_twice"},
    "stuck_consumer": {"committed_beyond", "skipped"},
    "held_up reading": {"committed_beyond"},
    "committed_back": {"below_committed"},
    "below_committed": {"committed_back"},
    "skipped": {"gap"},
    "gap": {"delivered_twice"},
    "unflushed": {"reordered"},
    "wrong_start": {"stuck_consumer"},
    "offset_acknowledged_twice": {"wrong_offset"},
}
"""What the same bug shows, too: a record that nobody was handed is committed over, for instance."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The driver of librdkafka."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield library_here(tmp_path_factory.mktemp("planted"), monkeypatch)


def tampered(built, mode):
    """The same driver, behind one that breaks a promise."""
    command = (sys.executable, str(TAMPERING), mode, *built.command)
    return Built(wanted=built.wanted, folder=built.folder, command=command, environment=built.environment)


def run_of(built, mode, monkeypatch, logs="", faults=()):
    soon = SOON_S if mode in NEVER_ENDS else 60.0
    # who answers is not waited for, but on a crowded machine; a copier may wait for a transaction's time-out
    answer = 60.0 if mode in ("copied_twice", "copy_lost") else soon
    monkeypatch.setattr("fencepost.torture.scenario_run.ANSWER_S", answer)
    monkeypatch.setattr("fencepost.torture.consuming_members.DRAIN_S", soon)
    if mode == "stuck_commit":
        monkeypatch.setattr("fencepost.torture.consuming_members.COMMITTED_S", SOON_S)
    transactional = mode in TRANSACTIONAL
    alone = (
        *(
            "lost_write",
            "duplicate",
            "reordered",
            "reordered_plain",
            "stuck_append",
            "ended",
            "producer_ended",
            "unflushed",
        ),
        *("transaction_lost", "transaction_kept", "torn", "stuck_transaction"),
        *("committed_after_failure", "offset_acknowledged_twice", "held_up"),
        *COPYING,
    )
    members = 0 if mode in alone else 1
    steps = tuple(verbs.Step(verb="restart", at_ms=at) for at in MOVES.get(mode, ()))
    if mode in ("unflushed", "nothing"):
        steps += (verbs.Step(verb="flush", at_ms=1_100),)
    faults = (PAUSE,) if mode.startswith("held_up") else faults
    lasting = SHORT if faults == (PAUSE,) else {}
    # with sequences a producer may end, or send anew what timed out
    plain = mode == "reordered_plain" or TRUNCATION in faults or bool(lasting)
    scenario = verbs.Scenario(
        seed=7,
        producer=TRANSACTIONS if transactional else {**(PLAIN if plain else PRODUCER), **lasting},
        transactional=transactional,
        reader="earliest" if mode in ("wrong_start", "nothing") else "",
        shuffled=mode == "nothing",
        trusts=mode == "committed_after_failure",
        consumer={**CONSUMER, **lasting},
        duration_ms=PAUSE.for_ms if lasting else verbs.DURATION_MS,
        members=members,
        copier=TRANSACTIONS if mode in COPYING else {},
        bursts=20 if lasting else 8 if logs else 6 if transactional else 3,
        burst=30 if logs else 12,
        steps=steps,
        broker_faults=faults or ((GROWTH, DELETION) if mode == "nothing" and not logs else ()),
        idle_ms=200 if mode == "nothing" else 0,
        polled=3,
        logs=logs,
    )
    alone = " alone" if mode == "skipped" and logs == verbs.COMPACTS else ""
    with Driver.start(tampered(built, mode + alone)) as driver:
        return carry_out(scenario, driver, lambda run, kafka: run)


@pytest.mark.parametrize("mode", ["nothing", "nothing in transactions", "nothing in copies"])
def test_a_driver_that_changes_nothing_is_innocent(built, mode, monkeypatch):
    """What stands between is no finding. Idle connections stay open once faults are over."""
    closed, close_idle = [], Listeners.close_idle
    monkeypatch.setattr(Listeners, "close_idle", lambda *given: closed.append(given[1]) or close_idle(*given))
    run = run_of(built, mode, monkeypatch)
    assert judge(run) == [] and closed == ([200, Limits().idle_ms] if mode == "nothing" else [])
    if mode == "nothing":
        assert set(run.hit) == {str(GROWTH), str(DELETION)} and "t-3" in run.log and run.drained
    reported = {one.ended for one in run.transactions}
    if run.scenario.copier:  # a transaction that timed out on a crowded machine is copied again
        assert {"committed", "aborted"} <= reported and run.copied
        assert len(run.copies["copies-0"]) >= len(run.log["t-0"]) > 0
    else:
        assert reported == ({"committed", "aborted"} if run.scenario.transactional else set())


@pytest.mark.parametrize("logs", verbs.LOGS)
def test_a_client_is_not_blamed_for_what_brokers_remove(built, logs, monkeypatch):
    """Rule: records that the cleaner or retention took are lost and skipped by nobody's fault."""
    for _ in range(TRIES):
        run = run_of(built, "nothing", monkeypatch, logs)
        assert judge(run) == [] and run.drained
        starts = [entries[0].offset for entries in run.log.values() if entries]
        holes = [
            after.offset - before.offset > 1
            for entries in run.log.values()
            for before, after in pairwise(entries)
        ]
        if any(holes) if logs == verbs.COMPACTS else any(starts):
            return
    pytest.fail(f"the brokers removed nothing in {TRIES} runs")


@pytest.mark.parametrize("fault", [RECREATION, TRUNCATION], ids=lambda fault: fault.verb)
def test_a_client_goes_on_in_a_topic_that_is_made_again(built, fault, monkeypatch):
    """Rule: the new topic is written and read to its end; so is one whose end was lost."""
    run = run_of(built, "nothing", monkeypatch, faults=(fault,))
    assert judge(run) == [] and run.drained and run.hit == (str(fault),)
    assert run.renewed["t"] < NEVER and all(one.ok for one in run.after[-1])


def test_a_planted_bug_is_found_in_a_topic_that_is_made_again(built, monkeypatch):
    """A consumer that never gets what the new topic holds is stuck."""
    found = {one.anomaly for one in judge(run_of(built, "stuck_consumer", monkeypatch, faults=(RECREATION,)))}
    assert "stuck_consumer" in found and found <= {"stuck_consumer"} | ALSO["stuck_consumer"]


@pytest.mark.parametrize("mode", ["lost_write", "skipped"])
def test_a_planted_bug_is_found_in_a_log_with_holes(built, mode, monkeypatch):
    """What the cleaner may take excuses no client for what it may not."""
    found = {finding.anomaly for finding in judge(run_of(built, mode, monkeypatch, verbs.COMPACTS))}
    assert mode in found and found <= {mode} | ALSO.get(mode, set())


def test_a_client_is_not_blamed_for_what_a_paused_broker_held(built, monkeypatch):
    """Rule: partitions of a broker that is away are excused, others were served."""
    run = run_of(built, "nothing", monkeypatch, faults=(PAUSE,))
    assert judge(run) == [] and any(one.end - one.begin > 2 * NEAR_NS for one in run.serving["t-1"])


@pytest.mark.parametrize("mode", [*PROMISES, "held_up reading"])
def test_a_planted_bug_is_found_in_a_run(built, mode, monkeypatch):
    """By its name; at most with what the same bug shows, too."""
    for _ in range(TRIES if mode in MOVES or mode.startswith("held_up") else 1):
        found = {finding.anomaly for finding in judge(run_of(built, mode, monkeypatch))}
        assert found <= {mode.split()[0]} | ALSO.get(mode, set())
        if mode.split()[0] in found:
            return
    pytest.fail(f"saw {found or 'nothing'}")


def test_a_run_with_a_finding_keeps_commands_events_and_times(tmp_path, monkeypatch):
    """Rule: every command, its answer and both times are there; the events are legal lines; each lies in the
    trace where the brokers' events of its time lie."""
    built = tampered(library_here(tmp_path, monkeypatch), "wrong_offset")
    worker = Worker(Job(library="ours", out=str(tmp_path)), built)
    scenario = verbs.Scenario(seed=7, producer=PRODUCER, consumer=CONSUMER, members=1, bursts=3, burst=12)
    path = tmp_path / "7.jsonl"
    try:
        assert worker.run(scenario, path)["findings"]
    finally:
        worker.driver.kill()
    commands = [json.loads(line) for line in path.with_suffix(".commands.jsonl").read_text().splitlines()]
    sent = [one for one in commands if one.get("command") == "append"]
    assert len(sent) == 39 and all(one["sent_ns"] < one["answered_ns"] for one in sent)
    events = read_events([path.with_suffix(".events")])
    assert not events.left_out_in_all and not events.torn
    found = {one.anomaly for one in judge_events(events).verdict.findings}
    assert found <= {"offset_acknowledged_twice"}
    (trace,) = read_traces(path)
    lives, lines = written(trace)
    assert {life.process for life in lives} == {"p7-0-0", "c7-0"} and len(lines) == len(events)
    first = next(e.time for e in trace.events if e.name is Name.APPLICATION and e.cause == "acknowledged")
    appended = min(row.invoke_time for row in trace.operations if row.function == "append")
    assert appended - NEAR_NS <= first <= max(event.time for event in trace.events)


def test_the_clock_of_the_trace_stands_while_a_machine_is_busy():
    """Rule: between two known moments no time is later than the second one."""
    clock = [(100, 0), (200, 50), (300, 150)]
    assert [time_of(at, clock) for at in (50, 100, 140, 190, 200, 350)] == [0, 0, 40, 50, 50, 200]
    assert time_of(5, []) == 0
