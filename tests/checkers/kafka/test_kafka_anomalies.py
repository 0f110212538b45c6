"""For each anomaly of Jepsen's Kafka workload, and for those that it lacks, a minimal history that convicts
and the nearest legal one."""

import pytest
from attrs import evolve
from kafka_histories import FAIL, OK, UNKNOWN, assign, moved, op, poll, send, subscribe, trace, txn

from fencepost.checkers.judges import judge
from fencepost.checkers.kafka import judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.anomalies import ANOMALIES
from fencepost.traces.operations import Function
from fencepost.traces.trace import Trace
from tests.checkers import lab

THREE = (send(1, 10, 0), send(2, 20, 1), send(3, 30, 2))

# anomaly, who decides, its convicting operations, the history, the nearest legal history
CASES: list[tuple[str, str, tuple[int, ...], Trace, Trace]] = [
    lab.case(
        "inconsistent_offsets log 1 2",
        lambda either: trace(
            send(1, 10, 0),
            either(poll(2, [(0, 20)], **lab.T0, offset=0), poll(2, [(0, 10), (1, 20)])),
            send(3, 20, None, at=(0, None)),
        ),
    ),
    lab.case(
        "duplicate log 1 2",
        trace(send(1, 10, 0), poll(2, [(1, 10)])),
        trace(send(1, 10, 0), poll(2, [(1, 10)]), duplicates=True),
    ),
    lab.case("lost_write kafka 1 4", lambda either: trace(*THREE, poll(4, [either((1, 20), (0, 10))]))),
    lab.case(
        "failed_append_visible log 2 1",
        lambda either: trace(either(send(1, 10, None, outcome=FAIL), send(1, 10, None)), poll(2, [(0, 10)])),
    ),
    lab.case(
        "precommitted_read kafka 3 2 1",
        trace(txn(1, OK, send(2, 10, 0), poll(3, [(0, 10)]))),
        trace(txn(1, OK, send(2, 10, 0)), poll(3, [(0, 10)], at=(30, 31))),
    ),
    lab.case(
        "unseen kafka 1 3 2",
        trace(send(1, 10, 0), assign(2, 0, argument="seek_to_beginning"), poll(3, [])),
        trace(send(1, 10, 0), assign(2, 0), poll(3, [])),
    ),
    lab.case(
        "poll_skip kafka 6 5 4",
        trace(*THREE, poll(4, [(0, 10), (1, 20)], process=2), poll(5, [(0, 10)]), poll(6, [(2, 30)])),
        trace(send(1, 10, 0), send(3, 30, 2), poll(5, [(0, 10)]), poll(6, [(2, 30)])),
    ),
    lab.case(
        "position_regressed kafka 5 4",
        lambda either: trace(*THREE, poll(4, [(0, 10), (1, 20)]), poll(5, [(either(1, 2), either(20, 30))])),
    ),
    lab.case(
        "skipped_offset log 4 2",
        trace(*THREE, poll(4, [(0, 10), (2, 30)]), poll(5, [(1, 20)], process=2)),
        trace(*THREE, poll(4, [(0, 10), (1, 20), (2, 30)])),
    ),
    lab.case(
        "skipped_offset kafka 6 5 7",
        trace(*THREE, poll(7, [(1, 20)], process=2), txn(4, OK, poll(5, [(0, 10)]), poll(6, [(2, 30)]))),
        trace(*THREE, txn(4, OK, poll(5, [(0, 10)]), poll(6, [(1, 20), (2, 30)]))),
    ),
    lab.case(
        "unordered_read log 4",
        trace(*THREE, poll(4, [(1, 20), (0, 10)])),
        trace(*THREE, poll(4, [(0, 10), (1, 20)])),
    ),
    lab.case(
        "unordered_read kafka 6 5",
        trace(*THREE, txn(4, OK, poll(5, [(0, 10), (1, 20)]), poll(6, [(0, 10)]))),
        trace(*THREE, txn(4, OK, poll(5, [(0, 10), (1, 20)]), poll(6, [(2, 30)]))),
    ),
    lab.case(
        "nonmonotonic_send kafka 2 1",
        trace(send(1, 10, 5, acks=1), send(2, 20, 3), poll(3, [(3, 20), (5, 10)])),
        # what acks=1 told and nobody read says nothing
        trace(send(1, 10, 5, acks=1), send(2, 20, 3), poll(3, [(3, 20)])),
    ),
    lab.case(
        "nonmonotonic_send kafka 2 1",
        trace(
            send(1, 10, None, producer_id=7, producer_epoch=0),
            send(2, 20, 3, producer_id=7, producer_epoch=0),
            poll(3, [(3, 20), (5, 10)]),
        ),
        # without idempotence it may happen later
        trace(send(1, 10, None), send(2, 20, 3), poll(3, [(3, 20), (5, 10)])),
    ),
    lab.case(
        "append_inversion log 2 1",
        trace(send(1, 10, 5), send(2, 20, 3)),
        trace(send(1, 10, 5, at=(10, 25)), send(2, 20, 3, at=(20, 24), process=8)),
    ),
    lab.case(
        "int_nonmonotonic_send kafka 3 2 1",
        lambda either: trace(txn(1, OK, send(2, 10, either(5, 3)), send(3, 20, either(3, 5)))),
    ),
    lab.case(
        "phantom_record log 2",
        trace(send(1, 10, 0), poll(2, [(0, 10), (1, 99)])),
        trace(send(1, 10, 0), send(3, 99, None, at=(0, None)), poll(2, [(0, 10), (1, 99)])),
    ),
    lab.case(
        "stale_read log 2 1",
        lambda either: trace(
            send(1, 10, 0),
            either(
                poll(2, [], **lab.T0, offset=0, end_offset=0, strong=True),
                poll(2, [], **lab.T0, offset=0, end_offset=0),
            ),
            poll(3, [(0, 10)], **lab.T0, offset=0, end_offset=1, strong=True),
        ),
    ),
    lab.case(
        "high_watermark_regressed log 3 2",
        trace(
            send(1, 10, None, at=(0, None)),
            poll(2, [(0, 10)], **lab.T0, offset=0, end_offset=1, strong=True),
            poll(3, [], **lab.T0, offset=0, end_offset=0, strong=True),
        ),
        trace(
            send(1, 10, None, at=(0, None)),
            poll(2, [(0, 10)], **lab.T0, offset=0, end_offset=1, strong=True),
            poll(3, [(0, 10)], **lab.T0, offset=0, end_offset=1, strong=True),
        ),
    ),
    lab.case(
        "torn_batch log 2 1",
        lambda either: trace(
            send(1, [10, 11], 0),
            poll(2, [], **lab.T0, offset=0, end_offset=either(1, 0), strong=True, at=(0, 30)),
        ),
    ),
    lab.case(
        "epoch_regressed_in_log log 1 2",
        trace(send(1, 10, 0, leader_epoch=3), send(2, 20, 1, leader_epoch=2)),
        trace(send(1, 10, 0, leader_epoch=2), send(2, 20, 1, leader_epoch=3)),
    ),
]


@pytest.mark.parametrize(
    "anomaly,check,operations,illegal,legal", CASES, ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)]
)
def test_each_anomaly_has_its_history(anomaly, check, operations, illegal, legal) -> None:
    """Each rule convicts its minimal history by exactly these operations, under one name, and passes the
    nearest legal one."""
    verdicts = judge(illegal, ("kafka",))
    found = [finding for verdict in verdicts for finding in verdict.findings]
    assert [(f.anomaly, f.check, f.operations) for f in found] == [(anomaly, check, operations)]
    weak_at_most = (
        Decision.OK,
        Decision.ASSUMPTION_BROKEN,
    )  # minimal histories say too little to be called Ok
    assert all(verdict.decision in weak_at_most for verdict in judge(legal, ("kafka",)))
    assert judge_trace(legal).decision is Decision.OK


def test_a_record_that_another_value_replaced_is_lost_too() -> None:
    """Two values at one offset are the log judge's; that the acknowledged one of them was lost is told as
    well, as in Jepsen's workload."""
    replaced = trace(send(1, 10, 0), send(2, 20, None, at=(0, None)), poll(3, [(0, 20)]))
    found = {
        finding.anomaly: finding for verdict in judge(replaced, ("kafka",)) for finding in verdict.findings
    }
    assert set(found) == {"inconsistent_offsets", "lost_write"}
    assert found["lost_write"].operations == (1, 3)


def test_uncommitted_reads_prove_no_commit() -> None:
    """What a transaction of unknown outcome was told counts once a read showed one of its records, unless
    that read asked for uncommitted ones."""
    sends = txn(1, UNKNOWN, send(2, 10, 0, outcome=UNKNOWN), send(3, 20, None, outcome=UNKNOWN), process=5)
    for isolation, decided in ((None, "illegal"), ("read_committed", "illegal"), ("read_uncommitted", "ok")):
        history = trace(*sends, poll(4, [(1, 20)], isolation=isolation))
        assert judge_trace(history).decision == decided, isolation


def test_jepsens_names_are_all_known() -> None:
    """Every anomaly of Jepsen's Kafka workload has a row in the table."""
    workload = {
        *(
            "inconsistent-offsets",
            "duplicate",
            "lost-write",
            "G1a",
            "precommitted-read",
            "unseen",
            "poll-skip",
        ),
        *("nonmonotonic-poll", "int-poll-skip", "int-nonmonotonic-poll", "nonmonotonic-send"),
        *("int-nonmonotonic-send", "int-send-skip"),
        *("G1c", "G1c-process", "G1c-realtime"),
    }
    assert {anomaly.jepsen for anomaly in ANOMALIES if anomaly.jepsen} == workload


SKIPPING = (poll(5, [(0, 10)]), poll(7, [(2, 30)]))
SEEN = poll(4, [(0, 10), (1, 20)], process=2)
REREADING = (*THREE, poll(4, [(0, 10), (1, 20), (2, 30)]), poll(5, [(0, 10), (1, 50)]))
ALLOWED: list[tuple[str, Trace]] = [
    (
        "an assignment to another partition between the polls",
        trace(*THREE, SEEN, SKIPPING[0], assign(6, 1), SKIPPING[1]),
    ),
    ("subscribed, and rebalances are not recorded", trace(*THREE, SEEN, subscribe(0, 0), *SKIPPING)),
    ("a join between the polls", trace(*THREE, SEEN, SKIPPING[0], moved(6, Function.JOIN, 0), SKIPPING[1])),
    (
        "another generation",
        trace(
            *THREE,
            SEEN,
            *(poll(n, r, group="g", member="m", generation=n) for n, r in ((5, [(0, 10)]), (7, [(2, 30)]))),
        ),
    ),
    (
        "a crash between the polls",
        trace(*THREE, SEEN, SKIPPING[0], op(6, Function.CRASH, 1, (60, 61), outcome=UNKNOWN), SKIPPING[1]),
    ),
    ("another incarnation", trace(*THREE, SEEN, SKIPPING[0], poll(7, [(2, 30)], session=1))),
    (
        "who names the offset reads where it likes",
        trace(
            *THREE, *(poll(n, r, **lab.T0, offset=o) for n, r, o in ((5, [(2, 30)], 2), (7, [(0, 10)], 0)))
        ),
    ),
    ("loss of the offset", trace(*THREE, SEEN, *SKIPPING, loss=(1, 2))),
    ("retention, and no log start is known", trace(*THREE, SEEN, *SKIPPING, retention=True)),
    (
        "retention, and a log start above it was claimed",
        trace(*THREE, SEEN, *SKIPPING[:1], poll(7, [(2, 30)], log_start_offset=2, **lab.T0), retention=True),
    ),
    (
        "compaction: a later record of its key",
        trace(
            send(1, 10, 0, key="a"),
            send(2, 20, 1, key="b"),
            send(3, 30, 2, key="b"),
            SEEN,
            *SKIPPING,
            compacted=("t",),
        ),
    ),
    ("its position was lost: it begins anew at the first record", trace(*REREADING, loss=(1, 3))),
    (
        "its position was lost: it begins anew where the log ended",
        trace(*REREADING[:4], poll(5, [(1, 50)]), loss=(1, 3)),
    ),
    ("its position was lost, and content goes by epoch", trace(*REREADING, content_by_epoch=True)),
    (
        "its position was lost: the first record that retention left",
        trace(*REREADING[:4], poll(5, [(1, 20)], log_start_offset=1, **lab.T0), retention=True, loss=(2, 3)),
    ),
    (
        "its position was lost within a transaction",
        trace(*THREE, txn(4, OK, poll(5, [(0, 10), (1, 20), (2, 30)]), poll(6, [(0, 10)])), loss=(1, 3)),
    ),
    ("lost with acks=1", trace(send(1, 10, 0, acks=1), send(2, 20, 1), poll(4, [(1, 20)]))),
    ("lost where loss is allowed", trace(*THREE[:2], poll(4, [(1, 20)]), loss=(0, 1))),
    ("who began above it has not passed it", trace(*THREE[:2], poll(4, [(1, 20)], **lab.T0, offset=1))),
    (
        "an aborted transaction's poll is rolled back",
        trace(
            *THREE,
            txn(4, FAIL, poll(5, [(0, 10), (1, 20)])),
            txn(6, OK, poll(7, [(0, 10), (1, 20), (2, 30)])),
        ),
    ),
    (
        "a rebalance within the transaction",
        trace(
            *THREE,
            poll(8, [(1, 20)], process=2),
            txn(4, OK, moved(9, Function.JOIN, 0), poll(5, [(0, 10)]), poll(6, [(2, 30)])),
        ),
    ),
    (
        "retries without idempotence",
        trace(send(1, 10, 5, acks=1), send(2, 20, 3), poll(3, [(3, 20), (5, 10)]), duplicates=True),
    ),
    (
        "a record between two of a transaction",
        trace(txn(1, OK, send(2, 10, 0), send(3, 20, 2)), send(4, 15, 1)),
    ),
    (
        "the last look brought something",
        trace(send(1, 10, 0), send(2, 20, 1), assign(3, 0, argument="seek_to_beginning"), poll(4, [(0, 10)])),
    ),
    (
        "acknowledged after the last look began",
        trace(assign(0, 0, argument="seek_to_beginning"), send(1, 10, 0), poll(3, [])),
    ),
]


@pytest.mark.parametrize("history", [case[1] for case in ALLOWED], ids=[case[0] for case in ALLOWED])
def test_what_claims_and_facts_allow(history) -> None:
    """What the claims or recorded facts explain is no finding."""
    assert judge_trace(history).findings == ()


FORBIDDEN: list[tuple[str, str, Trace]] = [
    (
        "an assignment that keeps the partition",
        "poll_skip",
        trace(*THREE, SEEN, SKIPPING[0], assign(6, 0, 1), SKIPPING[1]),
    ),
    (
        "an assignment that failed",
        "poll_skip",
        trace(*THREE, SEEN, SKIPPING[0], assign(6, 1, outcome=FAIL), SKIPPING[1]),
    ),
    (
        "members within one generation",
        "poll_skip",
        trace(
            *THREE,
            SEEN,
            *(poll(n, r, group="g", member="m", generation=1) for n, r in ((5, [(0, 10)]), (7, [(2, 30)]))),
        ),
    ),
    (
        "retention below the claimed log start only",
        "poll_skip",
        trace(*THREE, SEEN, SKIPPING[0], poll(7, [(2, 30)], log_start_offset=1, **lab.T0), retention=True),
    ),
    (
        "compaction keeps the last record of a key",
        "poll_skip",
        trace(
            send(1, 10, 0, key="b"),
            send(2, 20, 1, key="b"),
            send(3, 30, 2, key="a"),
            SEEN,
            *SKIPPING,
            compacted=("t",),
        ),
    ),
    (
        "an aborted transaction's poll goes on from the last committed one",
        "poll_skip",
        trace(*THREE, SEEN, txn(4, OK, poll(5, [(0, 10)])), txn(6, FAIL, poll(7, [(2, 30)]))),
    ),
    ("no loss: it reads again", "position_regressed", trace(*REREADING[:4], poll(5, [(0, 10)]))),
    ("loss above its position", "position_regressed", trace(*REREADING[:4], poll(5, [(0, 10)]), loss=(3, 5))),
    (
        "loss below what it read last",
        "position_regressed",
        trace(*REREADING[:4], poll(5, [(0, 10)]), loss=(1, 2)),
    ),
    (
        "its position was lost, but it begins in the middle of what is left",
        "position_regressed",
        trace(*REREADING[:4], poll(5, [(1, 20)]), loss=(2, 3)),
    ),
    (
        "its position was lost, but it begins above what retention left",
        "position_regressed",
        trace(*REREADING[:4], poll(5, [(1, 20)], log_start_offset=0, **lab.T0), retention=True, loss=(2, 3)),
    ),
    (
        "the position of another partition was lost",
        "position_regressed",
        trace(*THREE, poll(4, [(1, 0, 10), (1, 1, 20)]), poll(5, [(1, 0, 10)]), loss=(0, 9)),
    ),
    (
        "its position was lost once, and it reads again twice: what stands below the loss",
        "position_regressed",
        trace(
            *REREADING,
            poll(6, [(1, 60)]),
            poll(7, [(2, 70)]),
            poll(8, [(0, 10)], process=1),
            poll(9, [(0, 10)]),
            loss=(1, 3),
        ),
    ),
    (
        "in a transaction, without loss of the position",
        "unordered_read",
        trace(*THREE, txn(4, OK, poll(5, [(0, 10), (1, 20), (2, 30)]), poll(6, [(0, 10)])), loss=(1, 2)),
    ),
    (
        "a transaction of which a record was read has committed as a whole",
        "lost_write",
        trace(
            txn(1, UNKNOWN, send(2, 10, None, outcome=UNKNOWN, partition=1), send(3, 20, 0, outcome=UNKNOWN)),
            send(5, 30, 1),
            poll(6, [(0, 1, 30), (1, 0, 10)]),
        ),
    ),
]


@pytest.mark.parametrize("_,anomaly,history", FORBIDDEN, ids=[case[0] for case in FORBIDDEN])
def test_what_is_not_allowed_after_all(_, anomaly, history) -> None:
    """An excuse covers what it explains and no more."""
    assert judge_trace(history).anomaly == anomaly


def test_a_trace_too_weak_is_no_verdict() -> None:
    """A broken assumption is answered as such, whatever was found."""
    assert (
        judge_trace(trace(*THREE, poll(4, [(1, 20)]), assumption_broken="x")).decision
        is Decision.ASSUMPTION_BROKEN
    )


FAR = 1 << 60


def far_away(history: Trace) -> Trace:
    """The same history with every offset moved up by FAR."""

    def moved_up(o):
        more = {
            name: value + FAR
            for name in ("offset", "end_offset", "log_start_offset")
            if (value := getattr(o, name)) is not None
        }
        records = tuple(evolve(r, offset=r.offset + FAR) if r.offset >= 0 else r for r in o.records)
        return evolve(o, records=records, **more)

    loss = tuple(evolve(r, start=r.start + FAR, end=r.end + FAR) for r in history.claims.loss)
    claims = evolve(history.claims, loss=loss)
    return evolve(history, claims=claims, operations=tuple(moved_up(o) for o in history.operations))


@pytest.mark.parametrize(
    "history", [case[3] for case in CASES if case[1] == "kafka"] + [case[1] for case in ALLOWED]
)
def test_the_largest_offset_costs_nothing_and_changes_nothing(history) -> None:
    """Moved up by 2^60, every history has the same findings by the same operations: nothing is addressed by
    offset."""
    near, far = judge_trace(history), judge_trace(far_away(history))
    assert [(f.anomaly, f.operations) for f in near.findings] == [
        (f.anomaly, f.operations) for f in far.findings
    ]
    assert [f.offset + FAR for f in near.findings] == [f.offset for f in far.findings]
