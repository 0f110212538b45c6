"""Importers and hostile files: what is not understood is refused with its place, never a traceback, never
silently changed."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import FORMATS, Conventions, import_file, import_text
from fencepost.traces.importers.json_text import INT64_MAX, INT64_MIN

HISTORIES = Path(__file__).parents[2] / "checkers" / "linearizability" / "histories"
SAMPLES = [path.read_text() for path in sorted(HISTORIES.iterdir())]
WRITE = "{:process 0 :type :invoke :f :write :value %s}"
JSON_WRITE = '{"process":0,"type":"invoke","f":"write","value":%s}'
DEEP = 50_000
WHOLE = Conventions(keyed=False)
"""Any value may be written, also one that looks like [key value]."""

HOSTILE = [
    ("[" * DEEP, "levels of nesting"),
    ("{:a " * DEEP, "levels of nesting"),
    ('{"a":' * DEEP, "more than 64 levels of nesting"),
    ("#_ " * DEEP, "expected a value, saw '#_'"),
    (JSON_WRITE % ("[" * DEEP + "]" * DEEP), "more than 64 levels of nesting"),
    (WRITE % ("9" * 5_000), "expected 64-bit integers"),
    (JSON_WRITE % ("9" * 5_000), "expected 64-bit integers"),
    (WRITE % (INT64_MAX + 1), "expected 64-bit integers"),
    (JSON_WRITE % (INT64_MIN - 1), "expected 64-bit integers"),
    ("{:process 99999999999999999999 :type :invoke :f :read}", "expected 64-bit integers"),
    (WRITE % "1e999", "expected numbers that a 64-bit float can hold"),
    (JSON_WRITE % "1e999", "expected numbers that a 64-bit float can hold"),
    (JSON_WRITE % "-Infinity", "saw -Infinity"),
    (WRITE % "0.1000000000000000055M", "expected numbers that a 64-bit float can hold"),
    (WRITE % '"\\ud800"', "half a surrogate pair"),
    (WRITE % "\\ud800", "half a surrogate pair"),
    (JSON_WRITE % '"\\ud800"', "half a surrogate pair"),
    (JSON_WRITE % '{"\\udc00":1}', "half a surrogate pair"),
    (WRITE % '{:a 1 "a" 2}', "expected each key once"),
    (WRITE % "{1 2 \"1\" 3}", "expected each key once"),
    (WRITE % "#{1 1.0}", "expected each key once"),
    (WRITE % "#{1 true}", "expected each key once"),
    (WRITE % "#{#{1}}", "in a set or as keys"),
    (WRITE % "1/2", "saw '1/2'"),
    (WRITE % "##Inf", "saw '##Inf'"),
    ("\n\n" + JSON_WRITE % '{"a":1,"a":2}', "h:3: expected each field once"),
    ("[nil]", "expected a map for each entry"),
    ("{:process 0 :type [1] :f :read}", "expected a type of"),
    ("{:process [1] :type :invoke :f :read}", "expected an integer or a name as process"),
    ("{:process true :type :invoke :f :read}", "expected an integer or a name as process"),
    ("{:process 0 :type :invoke}", "expected the name of a function"),
    (WRITE % "#user.Thing 5", "expected a record as the only kind of tag"),
    ("[] []", "expected nothing after the history"),
    ("INFO  jepsen.util - 0 :invoke :write [1 2", "expected a closing ]"),
    ("INFO  jepsen.util - 0 :invoke :write \"", "expected EDN"),
    ("\x00", "expected a history in one of the formats"),
    ("{:process 0 :type :invoke :f :write :value \\}", "h:1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), HOSTILE, ids=[text[:30].strip() for text, _ in HOSTILE])
def test_hostile_text_is_refused_in_a_sentence(text: str, says: str) -> None:
    """Rule: file, reason and (behind the first lines) line; whatever would change on the way is refused, not
    changed."""
    with pytest.raises(TraceError) as caught:
        digest_of(import_text(text, where="h"))
    assert says in str(caught.value)
    assert str(caught.value).startswith("h:") and len(str(caught.value)) < 400


WORDS = r"""
{ } [ ] ( ) #{ #_ #a.B " \ , : ::a é
:process :type :invoke :ok :info :fail :f :read :write :cas :value :key :nemesis
nil true 0 1 -1 1.5 "a" \a "process" "type" "invoke" "f" "read" null
:send :poll :txn :assign :subscribe :crash \u0041 1e5
"""
PIECES = st.sampled_from(
    [*WORDS.split(), "\n", ";x\n", "\t", "\x00", "\ufeff", "9" * 30, "INFO  jepsen.util - ", "[:send 0 1]"]
)


@st.composite
def bent(draw: st.DrawFn) -> str:
    """A good history with a few places changed, or no history at all."""
    if draw(st.booleans()):
        return draw(st.sampled_from(["", "[", "(", "{"])) + " ".join(draw(st.lists(PIECES, max_size=30)))
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 4))):
        at, gone = draw(st.integers(0, len(text))), draw(st.integers(0, 8))
        text = text[:at] + draw(PIECES | st.text(max_size=3)) + text[at + gone :]
    return text


@settings(max_examples=250, deadline=None, derandomize=True)
@given(text=bent(), format=st.sampled_from(["auto", *FORMATS]))
def test_no_text_is_a_traceback(text: str, format: str) -> None:
    """Rule: any text is a trace or a TraceError that begins with the file's name."""
    try:
        trace = import_text(text, where="h", format=format)
    except TraceError as error:
        assert str(error).startswith("h:")
    else:
        assert len(digest_of(trace)) == 32


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.binary(max_size=60))
def test_no_bytes_are_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Rule: any file is a trace or a TraceError."""
    path = tmp_path_factory.mktemp("bytes") / "h"
    path.write_bytes(data)
    try:
        import_file(path)
    except TraceError as error:
        assert str(error).startswith(str(path))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INT64_MIN, INT64_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab-", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def edn(value: object) -> str:
    """A JSON value in EDN."""
    if isinstance(value, dict):
        return "{" + " ".join(f"{json.dumps(name)} {edn(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(map(edn, value)) + "]"
    return "nil" if value is None else json.dumps(value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_every_format_says_the_same(values: list[object]) -> None:
    """Rule: one history in EDN, in JSON and in log text is the same operations, value for value."""
    lines: dict[str, list[str]] = {"edn": [], "json": [], "jepsen-log": []}
    for value in values:
        for kind in ("invoke", "ok"):
            row = {"process": 0, "type": kind, "f": "write", "value": value}
            lines["json"].append(json.dumps(row))
            lines["edn"].append(f"{{:process 0 :type :{kind} :f :write :value {edn(value)}}}")
            lines["jepsen-log"].append(f"INFO  jepsen.util - 0\t:{kind}\t:write\t{edn(value)}")
    read = [
        import_text("\n".join(rows), where="h", format=name, conventions=WHOLE).operations
        for name, rows in lines.items()
    ]
    assert read[0] == read[1] == read[2]
    told = [None if o.argument is None else json.loads(o.argument) for o in read[0]]
    assert json.dumps(told, sort_keys=True) == json.dumps(values, sort_keys=True)
