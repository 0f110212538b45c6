"""Foreign histories become operations, and what is not understood is told with file, line and reason."""

import pytest

from fencepost.traces.errors import TraceError
from fencepost.traces.importers import FORMATS, Conventions, import_file, import_text
from fencepost.traces.importers.edn import EdnReader, Keyword, plain
from fencepost.traces.importers.window import Window
from fencepost.traces.operations import Function, Outcome

EDN = """; a comment
[{:process 0, :type :invoke, :f :write, :value 4}
 {:process 1, :type :invoke, :f :cas, :value [4 5], :time 17}   ; another
 {:process :nemesis, :type :info, :f :start, :value "partition"}
 {:process 0, :type :ok, :f :write, :value 4}
 #_ {:process 9, :type :ok, :f :write, :value 9}
 {:process 2  :type :invoke, :f :read, :value nil}
 {:process 1, :type :ok, :f :cas, :value [4 5]}
 {:process 2, :type :info, :f :read, :value nil, :error :timed-out}
 {:process 3, :type :invoke, :f :cas, :value [1 2]}
 {:process 3, :type :fail, :f :cas, :value [1 2]}
 {:process 4, :type :invoke, :f :write, :value 6}]
"""
LOG = """INFO  jepsen.util - 0\t:invoke\t:write\t4
INFO  jepsen.util - 1\t:invoke\t:cas\t[4 5]
INFO  jepsen.util - 0\t:ok\t:write\t4

INFO  jepsen.util - 2\t:invoke\t:read\tnil
INFO  jepsen.util - 1\t:ok\t:cas\t[4 5]
INFO  jepsen.util - 2\t:info\t:read\t:timed-out
INFO  jepsen.util - 3\t:invoke\t:cas\t[1 2]
INFO  jepsen.util - 3\t:fail\t:cas\t[1 2]
INFO  jepsen.util - 4\t:invoke\t:write\t6
"""


def _rows(trace):
    return [
        (o.process, o.function, o.argument, o.result, o.outcome, o.invoke_time, o.completion_time, o.error)
        for o in trace.operations
    ]


EXPECTED = [
    (0, Function.WRITE, "4", None, Outcome.OK, 0, 2, None),
    (1, Function.CAS, "[4,5]", "true", Outcome.OK, 1, 4, None),
    (2, Function.READ, None, None, Outcome.UNKNOWN, 3, 5, "timed-out"),
    (3, Function.CAS, "[1,2]", None, Outcome.FAIL, 6, 7, None),
    (4, Function.WRITE, "6", None, Outcome.UNKNOWN, 8, None, None),
]


def test_edn_becomes_operations() -> None:
    """Entries are paired by process, times are positions, info and a missing completion are unknown, fail did
    not happen."""
    trace = import_text(EDN, where="h.edn")
    assert _rows(trace) == EXPECTED
    assert (trace.plan, trace.profile, trace.unique_values) == ("", "imported-edn", True)


@pytest.mark.parametrize("around", ["()", "[]", ("", "")])
def test_the_forms_of_edn_are_one(around) -> None:
    """A vector, a list and one map after another are the same history."""
    inner = EDN[EDN.index("[") + 1 : EDN.rindex("]")]
    assert _rows(import_text(around[0] + inner + around[1], where="h.edn")) == EXPECTED


def test_log_text_is_the_same_history() -> None:
    """Jepsen's log text says what EDN says: a failed cas did not happen."""
    assert _rows(import_text(LOG, where="etcd.log")) == EXPECTED


OBSERVED = (3, Function.CAS, "[1,2]", "false", Outcome.OK, 6, 7, None)


@pytest.mark.parametrize(
    ("text", "format", "observes"), [(LOG, "etcd-log", False), (LOG, "auto", True), (EDN, "auto", True)]
)
def test_a_failed_cas_is_an_observation_on_demand(text: str, format: str, observes: bool) -> None:
    """By convention of one corpus, whose format has a name, a failed cas proves that another value was there;
    any other history is read so if that is demanded. A failure with a reason proves nothing."""
    conventions = Conventions(failed_cas_observes=observes)
    rows = _rows(import_text(text, where="h", format=format, conventions=conventions))
    assert rows == [*EXPECTED[:3], OBSERVED, EXPECTED[4]]
    refused = text.replace(":fail\t:cas\t[1 2]", ":fail\t:cas\t[1 2]\t:connection-refused")
    refused = refused.replace(":fail, :f :cas", ":fail, :error :connection-refused, :f :cas")
    rows = _rows(import_text(refused, where="h", format=format, conventions=conventions))
    assert rows[3] == (*EXPECTED[3][:7], "connection-refused")


def test_that_a_failed_cas_was_taken_as_not_happened_is_said() -> None:
    """Where the option could matter it is named, and only there."""

    def said(text: str, **conventions) -> list[str]:
        sentences: list[str] = []
        import_text(text, where="h", conventions=Conventions(**conventions), tell=sentences.append)
        return sentences

    (sentence,) = said(EDN)
    assert sentence.startswith("h: 1 failed cas") and "--failed-cas-observes" in sentence
    assert said(EDN, failed_cas_observes=True) == []
    assert said(EDN.replace(":fail, :f :cas", ":fail, :error :refused, :f :cas")) == []


@pytest.mark.parametrize("array", [True, False])
def test_json_is_the_twin(array: bool) -> None:
    """The same history as JSON, an array or one object after another, gives the same operations."""
    rows = [
        '{"process":0,"type":"invoke","f":"write","value":4}',
        '{"process":1,"type":"invoke","f":"cas","value":[4,5],"index":1}',
        '{"process":0,"type":"ok","f":"write","value":4}',
        '{"process":2,"type":"invoke","f":"read","value":null}',
        '{"process":1,"type":"ok","f":"cas","value":[4,5]}',
        '{"process":2,"type":"info","f":"read","value":null,"error":"timed-out"}',
        '{"process":3,"type":"invoke","f":"cas","value":[1,2]}',
        '{"process":3,"type":"fail","f":"cas","value":[1,2]}',
        '{"process":4,"type":"invoke","f":"write","value":6}',
    ]
    text = "[" + ",\n".join(rows) + "]" if array else "\n".join(rows)
    assert _rows(import_text(text, where="h.json")) == EXPECTED


def test_keys_answers_and_unique_values() -> None:
    """Keys and results are kept as they are told: nil is a result, and values are unique per key."""
    text = """{:process 0 :type :invoke :f :append :key "a" :value "x"}
    {:process 0 :type :ok :f :append :key "a" :value "x"}
    {:process 0 :type :invoke :f :put :key "b" :value "x"} {:process 0 :type :ok :f :put :key "b" :value "x"}
    {:process 0 :type :invoke :f :get :key "a" :value nil} {:process 0 :type :ok :f :get :key "a" :value "x"}
    {:process 0 :type :invoke :f :read :value nil} {:process 0 :type :ok :f :read :value nil}"""
    trace = import_text(text, where="h")
    assert [(o.key, o.argument, o.result) for o in trace.operations] == [
        ("a", '"x"', None),
        ("b", '"x"', None),
        ("a", None, '"x"'),
        (None, None, "null"),
    ]
    assert trace.unique_values


OPEN = "{:process 0 :type :invoke :f :read :value nil}\n"
REFUSED = [
    (OPEN + OPEN, "h:2: expected the completion of what process 0 invoked in line 1, saw another invocation"),
    ("{:process 0 :type :ok :f :read}", "h:1: expected an invocation of process 0 first, saw ok"),
    (
        OPEN + "\n{:process 0 :type :ok :f :write}",
        "h:3: expected the completion of read, invoked in line 1, saw write",
    ),
    ("{:process 0 :type :maybe :f :read}", "h:1: expected a type of invoke, ok, fail, info, saw 'maybe'"),
    ('{:process 0 :type :invoke :f ""}', "expected the name of a function"),
    (
        "{:process x :type :invoke}",
        "h:1: expected nil, true, false, a number, a text, a keyword or a collection, saw 'x'",
    ),
    ("\n{:process 0 :type", "h:2: expected a closing }, saw the end of the file"),
    ("[{:process 0 :type :invoke :f :read}", "expected a closing ], saw the end of the file"),
    ("[]\n4", "h:2: expected nothing after the history, saw '4'"),
    ("{:process 0 :process 1}", "h:1: expected each key once, saw one of them twice"),
    ("{:value 1/2}", "saw '1/2'"),
    ('{:value #inst "2020"}', "h:1: expected a record as the only kind of tag, saw #inst"),
    ('{"process":0,"process":1}', "expected each field once"),
    ('[{"process":0,"type":"invoke","f":"read"}', "expected a closing ]"),
    ('{"process":0,\n"type":NaN}', "saw NaN"),
    ('{"process":0,\n"type":}', "h:2: expected a JSON object"),
    ("0 :invoke :read nil\nWARN what", "h:2: expected PROCESS :TYPE :FUNCTION VALUE"),
    ("INFO  jepsen.util - 0 :invoke", "h:1: expected process, :type, :function and value"),
    ("hello", f"h: expected a history in one of the formats {', '.join(FORMATS)}, saw 'hello'"),
    ("", "saw an empty file"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_is_not_understood_is_told(text: str, says: str) -> None:
    """Every refusal names the file, the line where there is one, and the reason."""
    with pytest.raises(TraceError) as caught:
        import_text(text, where="h")
    assert says in str(caught.value)
    assert str(caught.value).startswith("h:")


def test_files_that_cannot_be_read(tmp_path) -> None:
    """A missing file and one that is no text are TraceErrors with their name, and the line of what is
    none."""
    (tmp_path / "binary.edn").write_bytes(b"; a history\n[\xff\xfe\x00]")
    with pytest.raises(TraceError, match="expected a readable text file"):
        import_file(tmp_path / "missing.edn")
    with pytest.raises(TraceError, match=r"binary.edn:2: expected text in UTF-8, saw the byte 0xff"):
        import_file(tmp_path / "binary.edn")


VALUES = [
    (
        '[nil true false -7 7N 1.5e3 "a\\"b\\u0041" \\c \\newline :k/w]',
        [None, True, False, -7, 7, 1500.0, 'a"bA', "c", "\n", "k/w"],
    ),
    ("(1 (2) [])", [1, [2], []]),
    ('{:a {1 #{3 1 2}}, "b" nil}', {"a": {"1": [1, 2, 3]}, "b": None}),
    ("#user.Thing{:a 1}", {"a": 1}),
    ("[1 #_ 2 #_ [3 4] 5]", [1, 5]),
]


@pytest.mark.parametrize(("text", "means"), VALUES)
def test_edn_values(text: str, means) -> None:
    """The reader understands what histories are written in."""
    reader = EdnReader(Window.of_text(text, "t"))
    ((value, line),) = reader.values()
    assert plain(value) == means and line == 1


def test_keywords_are_not_texts() -> None:
    """Inside the reader :a and "a" stay apart; only JSON has one word for both."""
    ((value, _),) = EdnReader(Window.of_text(":a", "t")).values()
    assert value == Keyword("a") != "a"
