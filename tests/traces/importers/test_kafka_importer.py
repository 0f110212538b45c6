"""Histories of Jepsen's Kafka workload become operations; what is not understood is told with file, line and
reason."""

import pytest

from fencepost.traces.errors import TraceError
from fencepost.traces.importers import Conventions, import_text

EDN = """
#jepsen.history.Op{:index 0, :time 10, :type :invoke, :process 0, :f :assign, :value [0 :x], :seek-to-beginning? true}
{:time 11, :type :ok, :process 0, :f :assign, :value [0 :x], :seek-to-beginning? true}
{:time 12, :type :invoke, :process 1, :f :send, :value [[:send 0 5]]}
{:time 13, :type :ok, :process 1, :f :send, :value [[:send 0 [3 5]]]}
{:time 13, :type :invoke, :process 2, :f :subscribe, :value [1]}
{:time 14, :type :invoke, :process 0, :f :poll, :value [[:poll]], :poll-ms 1000}
{:time 15, :type :ok, :process 0, :f :poll, :value [[:poll {0 [[3 5]], :x [[0 9]]}]]}
{:time 16, :type :invoke, :process 0, :f :txn, :value [[:poll] [:send 1 7] [:send 1 8]]}
{:time 17, :type :info, :process :nemesis, :f :kill, :value nil}
{:time 17, :type :invoke, :process :nemesis, :f :debug-topic-partitions, :value [0]}
{:time 18, :type :fail, :process 0, :f :txn, :value [[:poll {0 [[4 6]]}] [:send 1 [2 7]] [:send 1 8]],
 :rebalance-log [{:type :revoked, :keys [1]}], :error [:abort "x"]}
{:time 19, :type :invoke, :process 0, :f :crash}
{:time 20, :type :info, :process 0, :f :crash}
{:time 21, :type :invoke, :process 3, :f :send, :value [[:send 0 6]]}
{:time 22, :type :ok, :process 3, :f :send, :value [[:send 0 6]]}
{:time 23, :type :invoke, :process 3, :f :send, :value [[:send 0 10]]}
"""
ROWS = [
    # process, function, times, outcome, acks, offset, records (topic, partition, offset, value), positions,
    # argument
    (0, "assign", (10, 11), "ok", None, None, [], [("jepsen", 0), ("x", 0)], "seek_to_beginning"),
    (1, "append", (12, 13), "ok", -1, 3, [("jepsen", 0, 3, 5)], [], None),
    (2, "subscribe", (13, None), "unknown", None, None, [], [("jepsen", 1)], None),
    (0, "poll", (14, 15), "ok", None, None, [("jepsen", 0, 3, 5), ("x", 0, 0, 9)], [], None),
    (0, "txn", (16, 18), "fail", None, None, [], [], None),
    (0, "join", (16, 18), "ok", None, None, [], [("jepsen", 1)], None),
    (0, "poll", (16, 18), "ok", None, None, [("jepsen", 0, 4, 6)], [], None),
    (0, "append", (16, 18), "fail", -1, 2, [("jepsen", 1, 2, 7)], [], None),
    (0, "append", (16, 18), "fail", -1, None, [("jepsen", 1, -1, 8)], [], None),
    (0, "crash", (19, 20), "unknown", None, None, [], [], None),
    (3, "append", (21, 22), "ok", 0, None, [("jepsen", 0, -1, 6)], [], None),
    (3, "append", (23, None), "unknown", -1, None, [("jepsen", 0, -1, 10)], [], None),
]  # fmt: skip


def rows_of(trace):
    return [
        (
            o.process,
            o.function.value,
            (o.invoke_time, o.completion_time),
            o.outcome.value,
            o.acks,
            o.offset,
            [(r.topic, r.partition, r.offset, r.value) for r in o.records],
            [(p.topic, p.partition) for p in o.positions],
            o.argument,
        )
        for o in trace.operations
    ]


def test_every_function_of_the_workload_becomes_rows() -> None:
    """Sends, polls, assignments, crashes and the parts of transactions keep their keys, offsets, outcomes and
    times; other rows are passed over."""
    trace = import_text(EDN, where="h.edn")
    assert rows_of(trace) == ROWS
    assert [o.op_id for o in trace.operations] == list(range(len(ROWS)))
    assert (trace.profile, trace.unique_values, trace.concurrent_processes) == (
        "imported-jepsen-kafka",
        True,
        True,
    )
    assert {o.error for o in trace.operations} == {None, '["abort","x"]'}


def test_the_json_twin_is_the_same_history() -> None:
    """Written as JSON, where the keys of a map are texts, the history gives the same rows."""
    json = """[{"type":"invoke","process":0,"f":"poll","value":[["poll"]],"time":1},
      {"type":"ok","process":0,"f":"poll","value":[["poll",{"0":[[3,5]],"x":[[0,9]]}]],"time":2}]"""
    edn = """{:type :invoke, :process 0, :f :poll, :value [[:poll]], :time 1}
      {:type :ok, :process 0, :f :poll, :value [[:poll {0 [[3 5]], :x [[0 9]]}]], :time 2}"""
    assert rows_of(import_text(json, where="h.json")) == rows_of(import_text(edn, where="h.edn"))


@pytest.mark.parametrize(("times", "order"), [((1, 0), "file"), ((1, None), "auto")])
def test_positions_stand_in_for_times_that_are_no_use(times, order) -> None:
    """If a time is missing, or the order of the file counts, all times are the positions in the history."""
    rows = (
        f"{{:type :{kind}, :process 0, :f :poll, :value "
        f"[[:poll]]{'' if time is None else f', :time {time}'}}}"
        for kind, time in zip(("invoke", "ok"), times, strict=True)
    )
    trace = import_text("\n".join(rows), where="h.edn", conventions=Conventions(order=order))
    (row,) = rows_of(trace)
    assert row[2] == (0, 1)


def test_a_value_sent_twice_is_said() -> None:
    """Values need only be unique within a partition; otherwise the trace says that they are not."""
    send = "{{:type :invoke, :process {p}, :f :send, :value [[:send {k} 5]]}}"
    once = import_text(send.format(p=0, k=0) + send.format(p=1, k=1), where="h")
    twice = import_text(send.format(p=0, k=0) + send.format(p=1, k=0), where="h")
    assert (once.unique_values, twice.unique_values) == (True, False)


INVOKE = "{:type :invoke, :process 0, :f :send, :value [[:send 0 5]]}\n"
BAD = [
    ("{:type :invoke, :process 0, :f :pollute, :value [[:send 0 5]]}", 1, "'pollute'"),
    ("{:type :invoke, :process nil, :f :send, :value [[:send 0 5]]}", 1, "None"),
    ("{:type :sometimes, :process 0, :f :send, :value [[:send 0 5]]}", 1, "'sometimes'"),
    (INVOKE + INVOKE, 2, "another invocation"),
    ("{:type :ok, :process 0, :f :send, :value [[:send 0 5]]}", 1, "ok"),
    (INVOKE + "{:type :ok, :process 0, :f :poll, :value [[:poll]]}", 2, "poll"),
    (INVOKE + "{:type :ok, :process 0, :f :send, :value [[:send 0 [1 6]]]}", 2, "[1, 6]"),
    (INVOKE + "{:type :ok, :process 0, :f :send, :value [[:send 0 6]]}", 2, "6"),
    (INVOKE + "{:type :ok, :process 0, :f :send, :value [[:send 1 [1 5]]]}", 2, "['send', 1, [1, 5]]"),
    (INVOKE + "{:type :ok, :process 0, :f :send, :value [[:send 0 [-1 5]]]}", 2, "-1"),
    (INVOKE + "{:type :ok, :process 0, :f :send, :value []}", 2, "[]"),
    ("{:type :invoke, :process 0, :f :send, :value [[:send -2 5]]}", 1, "-2"),
    ("{:type :invoke, :process 0, :f :send, :value [[:send 0 :five]]}", 1, "'five'"),
    ("{:type :invoke, :process 0, :f :send, :value [[:poll]]}", 1, "['poll']"),
    ("{:type :invoke, :process 0, :f :txn, :value [[:append 0 5] [:poll]]}", 1, "['append', 0, 5]"),
    ("{:type :invoke, :process 0, :f :assign, :value 7}", 1, "7"),
    (
        "{:type :invoke, :process 0, :f :poll, :value [[:poll]]}\n"
        "{:type :ok, :process 0, :f :poll, :value [[:poll {0 [[nil 5]]}]]}",
        2,
        "None",
    ),
    (
        "{:type :invoke, :process 0, :f :poll, :value [[:poll]]}\n{:type :ok, :process 0, :f :poll, :value "
        "[[:poll {0 [5]}]]}",
        2,
        "[5]",
    ),
    (
        "{:type :invoke, :process 0, :f :poll, :value [[:poll]]}\n{:type :ok, :process 0, :f :poll, :value "
        "[[:poll [5]]]}",
        2,
        "['poll', [5]]",
    ),
    (
        "{:type :invoke, :process 0, :f :poll, :value [[:poll]]}\n{:type :ok, :process 0, :f :poll, :value "
        "[[:poll]], :rebalance-log 3}",
        2,
        "3",
    ),
]


@pytest.mark.parametrize("text,line,seen", BAD, ids=[str(n) for n in range(len(BAD))])
def test_what_is_not_understood_is_told(text: str, line: int, seen: str) -> None:
    """A row that means nothing in this workload is refused with file, line and what was seen; the text is
    recognised by its functions."""
    with pytest.raises(TraceError) as refused:
        import_text(text, where="h.edn", format="jepsen-kafka")
    assert str(refused.value).startswith(f"h.edn:{line}: expected ")
    assert str(refused.value).endswith(f"saw {seen}")
