"""What Kafka's VerifiableProducer and VerifiableConsumer print becomes appends and polls; texts that are no
history are refused with what to do."""

import pytest

from fencepost.checkers.log.log_judge import judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import import_text

SENT = "\n".join(
    f'{{"timestamp":{1000 + at},"name":"producer_send_success","key":null,"value":"{40 + at}","offset":{at},'
    f'"topic":"orders","partition":2}}'
    for at in range(3)
)
TIMED_OUT = (
    '{"timestamp":1500,"name":"producer_send_error","key":null,"value":"43","exception":"class '
    'org.apache.kafka.common.errors.TimeoutException","message":"Expiring","topic":"orders"}'
)


def consumed(*offsets: int) -> str:
    """What the consumer prints of one poll."""
    return "\n".join(
        [
            '{"timestamp":2000,"name":"partitions_assigned","partitions":[{"topic":"orders","partition":2}]}',
            *(
                f'{{"timestamp":{2001 + at},"name":"record_data","key":null,"value":"{40 + at}",'
                f'"topic":"orders","partition":2,"offset":{at}}}'
                for at in offsets
            ),
        ]
    )


def test_the_output_of_the_verifiable_clients_is_a_log() -> None:
    """Rule: a success is an append with its offset, an error has an unknown outcome, records that were read
    are a poll; times become nanoseconds."""
    trace = import_text("\n".join([SENT, TIMED_OUT, consumed(0, 1, 2)]), where="h")
    appends = [o for o in trace.operations if o.function == "append"]
    assert [(o.outcome, o.offset, o.records[0].value) for o in appends] == [
        ("ok", 0, 40),
        ("ok", 1, 41),
        ("ok", 2, 42),
        ("unknown", None, 43),
    ]
    (poll,) = (o for o in trace.operations if o.function == "poll")
    assert [(r.offset, r.value) for r in poll.records] == [(0, 40), (1, 41), (2, 42)]
    assert (poll.offset, poll.completion_time) == (0, 2003 * 10**6)
    assert judge_trace(trace, weak_is_ok=True).decision is Decision.OK


def test_a_record_that_the_consumer_passed_over_is_found() -> None:
    """Rule: an acknowledged record between two that were read is a finding; one whose send timed out
    is none."""
    verdict = judge_trace(import_text("\n".join([SENT, TIMED_OUT, consumed(0, 2)]), where="h"))
    assert (verdict.decision, verdict.anomaly) == (Decision.ILLEGAL, "skipped_offset")
    assert "past offset 1" in verdict.findings[0].seen
    late = consumed(0, 1, 2, 3)
    trace = import_text("\n".join([SENT, TIMED_OUT, late]), where="h")
    assert judge_trace(trace, weak_is_ok=True).decision is Decision.OK


def test_another_start_is_another_poll() -> None:
    """Rule: outputs of two consumers in one file are two polls; what lies between them was not
    passed over."""
    second = consumed(2).split("\n", 1)[1]
    text = "\n".join([SENT, consumed(0), '{"timestamp":1,"name":"startup_complete"}', second])
    trace = import_text(text, where="h")
    assert [len(o.records) for o in trace.operations if o.function == "poll"] == [1, 1]
    assert judge_trace(trace, weak_is_ok=True).decision is Decision.OK


def test_what_is_assumed_and_left_out_is_said() -> None:
    """Rule: the output names no acks and no group."""
    said: list[str] = []
    import_text(
        SENT + '\n{"timestamp":1,"name":"offsets_committed","offsets":[]}', where="h", tell=said.append
    )
    assert any("acks=all" in sentence for sentence in said)
    assert any("1 offsets_committed" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Dumping a-0/0.log\nLog starting offset: 0\n", "fencepost log dump"),
        ("baseOffset: 0 lastOffset: 0 count: 1\n", "fencepost log dump"),
        ('{"#meta": {"format": "ITF"}, "vars": ["x"], "states": []}', "JSON lines"),
        ('{"state": [[1, {"x": 1}]], "action": []}', "JSON lines"),
        ('{"counterexample": {"state": []}}', "JSON lines"),
    ],
)
def test_what_is_no_history_is_refused_with_what_to_do(text: str, says: str) -> None:
    """Rule: a dump of segments and counterexamples of a model checker are recognised and refused."""
    with pytest.raises(TraceError) as refused:
        import_text(text, where="h")
    assert says in str(refused.value)
