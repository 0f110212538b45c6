"""What an application saw against the log: each anomaly is found where it is planted, and nothing where there
is none."""

import attrs
import pytest

from fencepost.checkers.liveness.serving import Serving
from fencepost.torture.at_brokers.heard import HeardCommit
from fencepost.torture.copying import name_of
from fencepost.torture.driver_process import Command, Event
from fencepost.torture.judging import judges
from fencepost.torture.judging.judges import as_dict, duplicates, judge
from fencepost.torture.judging.outcome import Outcome
from fencepost.torture.judging.promises import PROMISES, promises_of
from fencepost.torture.producing import Transaction
from fencepost.torture.protocol import encoded
from fencepost.torture.record_contents import SHAPES, differs, identity_of, record
from fencepost.torture.scenario import DELETES, EXPIRES, BrokerFault, Scenario
from fencepost.torture.truth import Entry
from fencepost.traces.trace import LossRange

SECOND = 1_000_000_000


BATCH = {"timestamp_ms": 0, "leader_epoch": 0, "codec": "none", "producer_id": 1, "producer_epoch": 0}


def entry(offset, value, *, key=b"0", headers=None):
    headers = (("id", value),) if headers is None else headers
    return Entry(offset=offset, key=key, value=value, headers=headers, sequence=offset, **BATCH)


def row(value):
    headers = [["id", encoded(value)]]
    return {"topic": "t", "partition": 0, "key": encoded(b"0"), "value": encoded(value), "headers": headers}


def append(number, value, answer, client="p0", after_ns=1):
    command = Command(number=number, name="append", client=client, fields=row(value), sent_ns=number * SECOND)
    if answer is not None:
        ok = isinstance(answer, int) and answer >= 0
        command.answer = {"event": "done", "ok": ok, **({"offset": answer} if ok else answer)}
        command.answered_ns = command.sent_ns + after_ns
    return command


def poll(number, *records):
    command = Command(number=number, name="poll", client="c0", fields={}, sent_ns=number * SECOND)
    rows = [{**row(value), "offset": offset} for offset, value in records]
    command.answer = {"event": "done", "ok": True, "records": rows}
    command.answered_ns = command.sent_ns + SECOND // 2
    return command


def moved(at, event="assigned"):
    fields = {"event": event, "client": "c0", "partitions": [{"topic": "t", "partition": 0}]}
    return Event(at_ns=int(at * SECOND), fields=fields)


def committed(number, offset, **answer):
    command = Command(number=number, name="commit", client="c0", fields={}, sent_ns=number * SECOND)
    rows = [{"topic": "t", "partition": 0, "offset": offset}]
    command.answer = {"event": "done", "ok": True, "offsets": rows, **answer}
    command.answered_ns = command.sent_ns + 1
    return command


def unanswered(number):
    return Command(number=number, name="commit", client="c0", fields={}, sent_ns=number * SECOND)


def heard(at, offset, answered=True, client="c0", generation=1, source=1, since=0):
    """A commit on the wire."""
    now, who = int(at * SECOND), {"client": client, "group": "g", "member": client, "generation": generation}
    when = {"at_ns": now, "answered_ns": now + 1 if answered else None, "since_ns": int(since * SECOND)}
    return HeardCommit(source=source, offsets={"t-0": offset}, **who, **when)


def flushed(number, ended):
    """A flush after so many appends, and when it ended."""
    command = Command(number=number, name="flush", client="p0", fields={}, sent_ns=0)
    command.answer, command.answered_ns = {"event": "done", "ok": True}, int(ended * SECOND)
    return command


def sought(number):
    command = Command(number=number, name="seek", client="c0", fields={}, sent_ns=int(number * SECOND))
    command.answered_ns = command.sent_ns + 1
    return command


EARLIEST = {"offset_reset": "earliest"}
VALUES = (b"a", b"b", b"c")
GOOD = Outcome(
    scenario=Scenario(seed=0, producer={"idempotence": True, "retries": 0}, members=1, consumer=EARLIEST),
    appends=tuple(append(number, value, number) for number, value in enumerate(VALUES)),
    polls={"c0": (poll(10, (0, b"a"), (1, b"b")), poll(11, (2, b"c")))},
    commits=(),
    events=(moved(9),),
    log={"t-0": tuple(entry(number, value) for number, value in enumerate(VALUES))},
    drained=True,
    committed={"t-0": 3},
)


TIMES = {"request_timeout_ms": 500, "delivery_timeout_ms": 500}
WAITING = {
    "scenario": attrs.evolve(GOOD.scenario, producer={**GOOD.scenario.producer, **TIMES}),
    "appends": (*GOOD.appends[:2], append(2, b"c", 2, after_ns=4 * SECOND)),
    "clock": ((0, 0), (20 * SECOND, 20 * SECOND)),
    "serving": {"t-0": (Serving(leader=1, since=0, begin=0, end=20 * SECOND),)},
}
"""The third append has its answer four seconds later: its time-outs, a second, and more."""


def changed(**changes):
    return attrs.evolve(GOOD, **changes)


def log(*values):
    return {"t-0": tuple(entry(number, value) for number, value in enumerate(values))}


def test_a_good_run_has_no_finding():
    """Nothing is said of what is right."""
    assert judge(GOOD) == [] and duplicates(GOOD) == 0


def test_what_was_in_a_deleted_topic_is_nobodys_loss():
    """Rule: a record that was sent before the topic was there again may be gone; one that was sent later may
    not."""
    gone = changed(log={"t-0": ()}, polls={}, committed={}, drained=True)
    assert {one.anomaly for one in judge(attrs.evolve(gone, renewed={"t": 10 * SECOND}))} == set()
    assert "1 of 3" in judge(attrs.evolve(gone, renewed={"t": SECOND}))[0].seen
    expiring = attrs.evolve(GOOD.scenario, logs=EXPIRES)
    short = attrs.evolve(gone, scenario=expiring, log={"t-0": GOOD.log["t-0"][2:]}, renewed={"t": 0})
    assert {one.anomaly for one in judge(short)} == set()  # what expires is gone in a new topic, too


def copied(*copies, outcome="committed", **changes):
    """A run with a copier, and what it wrote: offsets of t-0, each with its transaction."""
    names = [name_of(("t-0", offset), attempt) for offset, attempt in copies]
    sent = [append(10 + number, name, number, client="x0") for number, name in enumerate(names)]
    for one in sent:
        one.fields["topic"] = "copies"
    entries = tuple(attrs.evolve(entry(number, name), outcome=outcome) for number, name in enumerate(names))
    return {
        "scenario": attrs.evolve(GOOD.scenario, copier={"idempotence": True}),
        "appends": (*GOOD.appends, *sent),
        "copies": {"copies-0": entries},
        **changes,
    }


def test_each_committed_record_has_one_committed_copy():
    """Rule: copies of transactions that were aborted do not count, and of an aborted record there is none."""
    every = ((0, 1), (1, 1), (2, 2))
    assert judge(changed(**copied(*every))) == []
    again = copied((0, 0), (1, 0), *every)
    aborted = [attrs.evolve(one, outcome="aborted") for one in again["copies"]["copies-0"][:2]]
    again["copies"] = {"copies-0": (*aborted, *again["copies"]["copies-0"][2:])}
    assert judge(changed(**again)) == []
    unread = copied((0, 1), (1, 1), (2, 1), log=decided("committed", "aborted", "committed"))
    transactional = attrs.evolve(unread["scenario"], consumer={"isolation": "read_uncommitted"})
    found = judge(changed(**{**unread, "scenario": transactional}))
    assert {one.anomaly for one in found} == {"aborted_delivered"}


def decided(*outcomes):
    return {"t-0": tuple(attrs.evolve(one, outcome=outcomes[one.offset]) for one in GOOD.log["t-0"])}


def transaction(commit, *, ended=True, appends=GOOD.appends):
    """One that began and got its answer; `ended`: None is no answer, False an error."""
    begun, end = (Command(number=n, name="", client="p0", fields={}, sent_ns=n) for n in (1, 2))
    begun.answer = {"event": "done", "ok": True}
    end.answer = None if ended is None else {"event": "done", "ok": ended}
    return Transaction(begun=begun, appends=appends, commit=commit, end=end)


def transactional(log, *transactions, isolation="read_uncommitted", **changes):
    scenario = Scenario(seed=0, members=1, transactional=True, consumer={"isolation": isolation})
    return {"scenario": scenario, "log": log, "transactions": transactions, **changes}


ONLY_A = {"polls": {"c0": (poll(10, (0, b"a")),)}, "committed": {"t-0": 3}}
PLANTED = {
    "transaction_lost": transactional(decided("committed", "aborted", "committed"), transaction(True)),
    "committed_after_failure": transactional(
        decided(*["committed"] * 3),
        transaction(True, appends=(*GOOD.appends, append(-3, b"d", {"error": {"code": 7}}))),
    ),
    "transaction_kept": transactional(decided("aborted", "aborted", "committed"), transaction(False)),
    "torn": transactional(decided("committed", "open", "committed"), transaction(True, ended=False)),
    "aborted_delivered": transactional(
        decided("committed", "committed", "aborted"), isolation="read_committed"
    ),
    "stuck_transaction": transactional(decided(*["committed"] * 3), transaction(True, ended=None)),
    "producer_ended": {
        "scenario": Scenario(seed=0, producer={"idempotence": True, "retries": 100}, members=1),
        "after": ((append(9, b"d", {"error": {"code": -150}}),),),
    },
    "copied_twice": copied((0, 1), (1, 1), (1, 2), (2, 2)),
    "copy_lost": copied((0, 1), (2, 2)),
    "stuck_copier": copied((0, 1), (1, 1), copied=False),
    "lost_write": {"log": log(b"a", b"b"), "polls": {}, "committed": {}, "drained": True},
    "wrong_offset": {"appends": (append(0, b"a", 9), *GOOD.appends[1:])},
    "offset_acknowledged_twice": {
        "scenario": attrs.evolve(
            GOOD.scenario, broker_faults=(BrokerFault(verb=DELETES, at_ms=1, for_ms=0, target=0),)
        ),
        "appends": (append(0, b"a", 1), *GOOD.appends[1:]),
        "log": {"t-0": GOOD.log["t-0"][2:]},
        "polls": {},
        "committed": {},
    },
    "stuck_commit": {"commits": (unanswered(12),)},
    "revoked_without_reason": {"events": (moved(9), moved(13, "revoked"))},
    "wrong_start": {
        "scenario": attrs.evolve(GOOD.scenario, reader="earliest"),
        "read": {"r0": (poll(12, (1, b"b"), (2, b"c")),)},
    },
    "duplicate": {"log": log(*VALUES, b"b"), "polls": {"c0": (*GOOD.polls["c0"], poll(12, (3, b"b")))}},
    "reordered": {"appends": (append(0, b"b", 1), append(1, b"a", 0), append(2, b"c", 2))},
    "reordered_plain": {
        "scenario": Scenario(seed=0, producer={"in_flight": 1}, members=1),
        "appends": (append(0, b"b", 1), append(1, b"a", 0), append(2, b"c", 2)),
    },
    "wrong_record": {
        "log": {"t-0": (*GOOD.log["t-0"][:2], entry(2, b"c", key=b"other"))},
        "polls": {},
        "committed": {},
    },
    "wrong_delivery": {"polls": {"c0": (poll(10, (0, b"x"), (1, b"b")), poll(11, (2, b"c")))}},
    "delivered_twice": {"polls": {"c0": (*GOOD.polls["c0"], poll(12, (2, b"c")))}},
    "gap": {"polls": {"c0": (poll(10, (0, b"a"), (2, b"c")),), "c1": (poll(11, (1, b"b")),)}},
    "skipped": {"polls": {"c0": (poll(10, (0, b"a")),), "c1": (poll(11, (2, b"c")),)}, "drained": False},
    "committed_beyond": {"committed": {"t-0": 4}},
    "stuck_append": {"appends": (*GOOD.appends, append(3, b"d", None))},
    "stuck_consumer": {"polls": {"c0": (poll(10, (0, b"a")),)}, "drained": False, "committed": {"t-0": 1}},
    "committed_back": {"commits": (committed(12, 3),), "committed": {"t-0": 2}},
    "below_committed": {"commits": (committed(8, 1),)},
    "unflushed": {"flushes": (flushed(3, 0.5),)},
    "unreadable": {"unreadable": ("produce version 9, byte 43 of a message: expected a varint",)},
    "ended": {"trouble": "that it ended with code 2"},
    "held_up": WAITING,
}


def test_a_record_that_was_written_to_another_partition_is_one_finding():
    """Rule: its answer counts where it says, and not for the partition that it was sent to."""
    elsewhere = append(3, b"d", 0)
    elsewhere.answer["partition"] = 1
    moved_away = {**GOOD.log, "t-1": (entry(0, b"d"),)}
    changes = {"appends": (*GOOD.appends, elsewhere), "log": moved_away, "drained": True}
    assert [one.anomaly for one in judge(changed(**changes))] == ["wrong_record"]


@pytest.mark.parametrize(
    "changes",
    [
        {"serving": {"t-0": (Serving(leader=1, since=0, begin=0, end=3 * SECOND),)}},
        {"serving": {"t-0": (Serving(leader=1, since=int(1.5 * SECOND), begin=0, end=20 * SECOND),)}},
        {"struck": ((3 * SECOND, "p0"),)},
        {"struck": ((int(1.5 * SECOND), "p0"),)},
        {"clock": ((0, 0), (2 * SECOND, 2 * SECOND), (5 * SECOND, 3 * SECOND))},
    ],
    ids=[
        "its leader is not calm",
        "not served by this leader",
        "a request was struck",
        "and before",
        "a busy machine",
    ],
)
def test_a_client_may_stand_still_for_a_reason(changes):
    """Rule: each of these is none of the client's doing."""
    assert judge(changed(**{**WAITING, **changes})) == []


def test_a_flush_waits_for_what_was_sent_before_it_only():
    """Rule: an answer may be a second later than its flush, and what was sent after it is not waited for."""
    assert judge(changed(flushes=(flushed(3, 1.5), flushed(2, 0.5)))) == []
    failed = flushed(3, 0.5)
    failed.answer = {"event": "done", "ok": False}
    assert judge(changed(flushes=(failed,))) == []


def test_what_a_run_has_deleted_is_not_missing():
    """Rule: below the start of a log that the run has shortened nothing is lost, skipped or wrong; above it
    everything is judged, and without the deletion the same is a loss."""
    deletion = BrokerFault(verb=DELETES, at_ms=1, for_ms=0, target=0)
    short = {"log": {"t-0": GOOD.log["t-0"][1:]}}
    scenario = attrs.evolve(GOOD.scenario, broker_faults=(deletion,))
    assert judge(changed(scenario=scenario, **short)) == []
    assert {one.anomaly for one in judge(changed(**short))} == {"lost_write", "wrong_delivery"}
    late = {"log": {"t-0": GOOD.log["t-0"][1:2]}}
    assert {one.anomaly for one in judge(changed(scenario=scenario, **late))} >= {"lost_write"}
    unread = changed(scenario=scenario, polls={}, committed={"t-0": 1}, **short)
    assert {one.anomaly for one in judge(unread)} == set()  # it may commit where the log begins
    assert {one.anomaly for one in judge(attrs.evolve(unread, committed={"t-0": 2}))} == {"committed_beyond"}


def test_a_producer_with_few_retries_has_ended_if_no_round_succeeds():
    """Rule: one append to the healed cluster may fail; the same partition in every round may not."""
    few = Scenario(seed=0, producer={"idempotence": True, "retries": 2}, members=1)
    failed = (append(9, b"d", {"error": {"code": 45}}),)
    again = (append(10, b"d", 4),)
    seen = [judge(changed(scenario=few, after=after)) for after in ((failed,), (failed, again, failed))]
    assert seen == [[], []]
    (finding,) = judge(changed(scenario=few, after=(failed,) * 3))
    assert finding.anomaly == "producer_ended" and "in 3 rounds" in finding.seen
    short = attrs.evolve(few, producer={**few.producer, "request_timeout_ms": 500})
    assert judge(changed(scenario=short, after=(failed,) * 3)) == []


def test_what_timed_out_while_brokers_stood_still_did_not_end_a_producer():
    """Rule: a request that brokers had no time to answer, on a busy machine, may time out in every round."""
    few = Scenario(seed=0, producer={"retries": 0, "request_timeout_ms": 2_000}, members=1)
    failed = (append(9, b"d", {"error": {"code": 7}}, after_ns=15 * SECOND),)
    stood = ((0, 0), (10 * SECOND, 10 * SECOND), (24 * SECOND, 22 * SECOND))
    assert judge(changed(scenario=few, after=(failed,) * 3, clock=stood)) == []
    served = (*stood[:2], (24 * SECOND, 23 * SECOND))
    (finding,) = judge(changed(scenario=few, after=(failed,) * 3, clock=served))
    assert finding.anomaly == "producer_ended"


def test_every_commit_on_the_wire_is_read():
    """Rule: what is committed too early, or lower than before, is found although the last commit is right."""
    early = (heard(9.5, 2), heard(11.9, 3))
    assert [one.anomaly for one in judge(changed(heard=early))] == ["committed_beyond"]
    back = (heard(11.6, 3), heard(11.7, 1), heard(11.8, 3))
    assert [one.anomaly for one in judge(changed(heard=back))] == ["committed_back"]
    for since, seen in ((0, []), (11.5, []), (11.65, ["committed_back"])):  # a broker that rests decodes late
        late = (heard(11.6, 3), heard(11.7, 1, answered=False, source=2, since=since))
        assert [one.anomaly for one in judge(changed(heard=late))] == seen


@pytest.mark.parametrize(
    ("reset", "at", "good"),
    [("earliest", 0, True), ("latest", 0, False), ("latest", 2, True), ("none", 0, False)],
)
def test_a_reader_without_commits_begins_where_its_reset_says(reset, at, good):
    """Rule: earliest: the first record; latest: nothing acknowledged before it was opened; none: nothing."""
    read = {"r0": (poll(12, *((offset, VALUES[offset]) for offset in range(at, 3))),)}
    scenario = attrs.evolve(GOOD.scenario, reader=reset)
    found = judge(changed(scenario=scenario, read=read, opened={"r0": int(1.5 * SECOND)}))
    assert {one.anomaly for one in found} == (set() if good else {"wrong_start"})


def test_every_anomaly_is_planted():
    """Each has a promise and a plant."""
    assert set(PLANTED) == set(PROMISES)


@pytest.mark.parametrize("anomaly", PLANTED)
def test_a_planted_anomaly_is_found(anomaly):
    """It, and nothing else."""
    findings = judge(changed(**PLANTED[anomaly]))
    assert [finding.anomaly for finding in findings] == [anomaly]
    assert as_dict(findings[0])["promise"] and findings[0].expected and findings[0].seen


@pytest.mark.parametrize("reset", [None, "latest"])
def test_a_member_that_begins_at_the_end_owes_nothing_before_it(reset):
    """Rule: where the reset is not the earliest offset, a record that no member got is no finding."""
    for anomaly in ("skipped", "stuck_consumer"):
        consumer = {} if reset is None else {"offset_reset": reset}
        run = changed(**PLANTED[anomaly])
        quiet = attrs.evolve(run.scenario, consumer=consumer)
        assert judge(attrs.evolve(run, scenario=quiet)) == []


@pytest.mark.parametrize("kind", ["silence", "silence answer"])
@pytest.mark.parametrize("anomaly", ["stuck_consumer", "stuck_copier"])
def test_a_member_may_wait_for_the_answer_to_its_join(anomaly, kind):
    """Rule: it does so for as long as a rebalance may take; not for other answers."""
    run = changed(**PLANTED[anomaly])
    assert judge(attrs.evolve(run, met={f"{kind}|JoinGroup": 1})) == []
    assert [one.anomaly for one in judge(attrs.evolve(run, met={f"{kind}|Fetch": 1}))] == [anomaly]


INNOCENT = {
    "a transaction that was committed, and one that was aborted": transactional(
        decided("committed", "aborted", "aborted"),
        transaction(True, appends=GOOD.appends[:1]),
        transaction(False, appends=GOOD.appends[1:]),
        isolation="read_committed",
        **ONLY_A,
    ),
    "a commit of unknown outcome that is none": transactional(
        decided("aborted", "aborted", "aborted"), transaction(True, ended=False)
    ),
    "appends of a producer that was closed with them under way": {
        "appends": (*GOOD.appends, append(3, b"d", None, "p1")), "closed": frozenset({"p1"}),
    },
    "the last append of a producer without retries": {
        "after": ((append(9, b"d", {"error": {"code": 6}}),),),
    },
    "a record of unknown fate that is there": {
        "appends": (append(0, b"a", {"error": {"code": 7}}), *GOOD.appends[1:]),
    },
    "a record of unknown fate that is not there": {
        "appends": (*GOOD.appends, append(3, b"d", {"error": {"code": 7}})),
    },
    "a duplicate without idempotence": {
        "scenario": Scenario(seed=0, producer={"retries": 3}, members=1),
        "log": log(*VALUES, b"b"),
        "polls": {"c0": (*GOOD.polls["c0"], poll(12, (3, b"b")))},
    },
    "another order without idempotence": {
        "scenario": Scenario(seed=0, producer={"in_flight": 5}, members=1),
        "appends": (append(0, b"b", 1), append(1, b"a", 0), append(2, b"c", 2)),
    },
    "the order of two producers": {
        "appends": (append(0, b"b", 1, "p1"), append(1, b"a", 0), append(2, b"c", 2)),
    },
    "delivered again after a rebalance": {
        "polls": {"c0": (*GOOD.polls["c0"], poll(12, (2, b"c")))},
        "events": (moved(9), moved(11.8, "revoked")), "troubles": ((int(11.7 * SECOND), "c0"),),
    },
    "taken from a member that was closed, by an old heart beat, or after a time-out of its session": {
        "events": (moved(9), moved(11, "revoked"), moved(12), moved(19, "lost")), "asking": (unanswered(11),),
    },
    "commits in the order of what was delivered, and again": {
        "heard": (heard(10.6, 2), heard(11.1, 3), heard(11.2, 3), heard(11.3, 2, generation=2)),
    },
    "an automatic commit after what is committed was read back": {
        "heard": (heard(12, 3),), "committed": {"t-0": 2}, "committed_ns": int(11.9 * SECOND),
    },
    "a commit that was answered after what is committed was read": {
        "commits": (committed(12, 3),), "committed": {"t-0": 2}, "committed_ns": int(11.9 * SECOND),
    },
    "a lower commit after what the higher one points to is deleted": {
        "heard": (heard(11.6, 3), heard(11.7, -2)),
        "log": {"t-0": tuple(attrs.evolve(one, offset=one.offset + 4) for one in GOOD.log["t-0"])},
        "appends": tuple(append(number, value, number + 4) for number, value in enumerate(VALUES)),
        "polls": {}, "committed": {},
    },
    "a lower commit while the higher one has no answer": {
        "heard": (heard(11.6, 3, answered=False), heard(11.7, 2)),
    },
    "a lower commit of a member that sought": {
        "heard": (heard(11.6, 3), heard(11.7, 2)), "seeks": (sought(11.65),),
    },
    "delivered again by a library that shows no assignments": {
        "polls": {"c0": (*GOOD.polls["c0"], poll(12, (2, b"c")))},
        "events": (),
    },
    "delivered again after a seek": {
        "polls": {"c0": (*GOOD.polls["c0"], poll(12, (2, b"c")))},
        "seeks": (sought(11.8),),
    },
    "committed less after a seek back": {
        "commits": (committed(12, 3),), "committed": {"t-0": 2}, "seeks": (sought(12.5),),
    },
    "a commit that reports nothing": {
        "commits": (committed(12, 3, reported=False),), "committed": {"t-0": 2},
    },
    "a commit after the partition was given": {"commits": (committed(10, 1),)},
    "the last records not read, but nobody waited": {
        "polls": {"c0": (poll(10, (0, b"a")),)}, "committed": {"t-0": 1}, "drained": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("what", INNOCENT)
def test_nobody_innocent_is_convicted(what):
    """What a client may do is no finding."""
    assert judge(changed(**INNOCENT[what])) == []


@pytest.mark.parametrize(("client", "offset", "least"), [("c0", 3, 2), ("c0", 9, 1), ("c1", 3, 1)])
def test_a_broker_that_knows_no_such_offset_explains_one_way_back(client, offset, least):
    """Rule: OFFSET_OUT_OF_RANGE at an offset of the log is the broker's; at another it is the client's."""
    for times in (1, 2):
        polls = (*GOOD.polls["c0"], *(poll(12 + number, (2, b"c")) for number in range(times)))
        run = changed(polls={"c0": polls}, out_of_range=((SECOND, client, "t-0", offset),))
        assert [one.anomaly for one in judge(run)] == ["delivered_twice"] * (times >= least)


LOSABLE = (
    "wrong_start",
    "copy_lost",
    "stuck_copier",
    "lost_write",
    "gap",
    "aborted_delivered",
    "wrong_delivery",
    "delivered_twice",
    "skipped",
    "stuck_consumer",
)


@pytest.mark.parametrize("anomaly", PLANTED)
@pytest.mark.parametrize(("start", "end", "covers"), [(0, 3, True), (3, 9, False)])
def test_what_the_brokers_lost_is_no_finding_of_the_client(anomaly, start, end, covers, monkeypatch):
    """Inside of a range that the brokers removed, a record may be gone, come again, or be another one.
    Outside of it, and for every other anomaly, nothing is excused."""
    deleted, why = judges._shortened, "the brokers removed it"
    gone = LossRange(topic="t", partition=0, start=start, end=end, reason=why)
    elsewhere = LossRange(topic="t", partition=1, start=0, end=9, reason=why)
    monkeypatch.setattr(judges, "_shortened", lambda run: [*deleted(run), gone, elsewhere])
    expected = [] if covers and anomaly in LOSABLE else [anomaly]
    assert [one.anomaly for one in judge(changed(**PLANTED[anomaly]))] == expected


def test_an_error_that_proves_failure_convicts_what_is_there():
    """Refused for too few replicas, without retries, and in the log all the same."""
    run = changed(appends=(append(0, b"a", {"error": {"code": 10}}), *GOOD.appends[1:]))
    assert [finding.anomaly for finding in judge(run)] == ["wrong_record"]


def test_what_a_library_does_not_promise_is_not_judged():
    """An empty promise leaves an anomaly out; its own words are shown in place of Kafka's."""
    run = changed(**PLANTED["reordered"])
    assert judge(run, promises_of({"reordered": ""})) == []
    promises = promises_of({"reordered": "in order (README)"})
    (finding,) = judge(run, promises)
    assert as_dict(finding, promises)["promise"] == "in order (README)"


def test_records_of_every_shape_are_known_by_their_header():
    """Null and empty are the same to a judge; another byte, header or key is not."""
    for shape in ("plain", *SHAPES):
        sent = record("0-1-2", shape, 1)
        fields = {"topic": "t", "partition": 1, **sent.fields()}
        held = attrs.evolve(entry(0, sent.value, key=sent.key), headers=sent.headers)
        assert identity_of(held) == b"0-1-2" and differs(held, fields) == ""
        assert differs(attrs.evolve(held, key=sent.key or None), fields) == ""
        assert "value" in differs(attrs.evolve(held, value=b"?"), fields)
        assert "headers" in differs(attrs.evolve(held, headers=()), fields)
