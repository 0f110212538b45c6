"""The text of a fault of requests: read, written, refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.proxy.faults import SHAPES, VERBS, RequestFault, parse, read_script, write_script
from fencepost.proxy.faults.verbs import ANY
from fencepost.traces.errors import PlanError
from fencepost.wire.names import api_keys, error_names

NAMES = st.one_of(st.just(""), st.sampled_from(["orders", "a-1", "a.b_c-0"]))
TEXTS = st.one_of(st.just(""), st.text(max_size=20), st.just('say "on", \\ of group'))


@st.composite
def faults(draw):
    """Any fault that there is."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    known = VERBS[verb]
    topic = draw(NAMES)
    values = {
        "verb": verb,
        "api": draw(st.sampled_from([ANY, *sorted(known.apis or api_keys())])),
        "topic": topic,
        "partition": draw(st.integers(-1, 20)) if topic else -1,
        "group": draw(TEXTS),
        "client": draw(TEXTS),
        "broker": draw(st.integers(-1, 9)),
        "most": draw(st.integers(0, 3)),
        "from_ms": draw(st.integers(0, 5_000)),
        "legal": draw(st.booleans()),
    }
    if draw(st.booleans()):
        values["nth"] = draw(st.integers(0, 130))
    else:
        values["one_in"] = draw(st.integers(1, 500))
    if draw(st.booleans()):
        values["until_ms"] = values["from_ms"] + draw(st.integers(1, 100_000))
    if "milliseconds" in known.takes:
        values["milliseconds"] = draw(st.integers(1, 100_000))
    if "shape" in known.takes:
        values["shape"] = draw(st.sampled_from(sorted(SHAPES)))
    if "error" in known.takes:
        values["error"] = draw(st.sampled_from(error_names()))
        values["after_effect"] = draw(st.booleans())
    if known.needs == "partition":
        values |= {"topic": "orders", "partition": 3}
    if known.needs == "group":
        values["group"] = values["group"] or "billing"
    return RequestFault(**values)


@settings(max_examples=150, deadline=None)
@given(faults())
def test_what_is_written_is_read_as_the_same(fault):
    """Rule: the text loses nothing, whatever names are like."""
    assert parse(str(fault)) == fault


def test_the_sentence_of_the_documentation():
    """Rule: the fault of the first example means what it says."""
    assert parse("lose answer to Produce on orders-0, 1 in 500") == RequestFault(
        verb="lose answer", api="Produce", topic="orders", partition=0, one_in=500
    )
    assert parse("LOSE ANSWER TO produce ON orders-0 1 in 500") == parse(
        "lose answer to Produce on orders-0, 1 in 500"
    )
    assert parse("answer NOT_LEADER to Fetch").error == "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lose anwser to Produce", "did you mean lose answer?"),
        ("lose answer to Prodcue", "did you mean Produce?"),
        ("answer NOT_COORDINATR to Heartbeat", "did you mean NOT_COORDINATOR?"),
        ("cut Fetch", "expected `cut before` or `cut after`, saw 'Fetch'"),
        ("lose answer to Produce, onc", "did you mean once?"),
        ("delay Produce", "milliseconds of delay: expected a value, saw 0"),
        ("delay Produce by 2 hours", "expected a time such as 200ms or 2s, saw '2'"),
        ("delay Produce by 2s by 3s", "expected milliseconds once, saw 2000 and 3000"),
        ("move leader for 2s", "expected a partition such as `on orders-0`, saw none"),
        ("lose answer to Produce,", "expected a clause after the comma, saw the end"),
        ("reshape Fetch to sphere", "expected a shape, one of empty"),
        ("lose answer to Produce, 3rd, 1 in 2", "nth and one_in: expected one of them, saw both"),
        ("lose answer to Produce on a/b", "expected letters, digits, dots, _ and -, saw 'a/b'"),
        ('lose answer to Produce of group "\\q"', "expected a group in quotes, with escapes as in JSON"),
        ("", "expected a verb"),
        ("lose answer to Produce " + "x" * 5_000, "expected at most 4000 characters"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(text, says):
    """Rule: what was expected, what was seen, and what was meant."""
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert says in str(caught.value)


def test_a_script_is_faults_one_a_line():
    """Rule: comments and empty lines are left out; a bad line is named; its length is bounded."""
    text = "# slow\n\ndelay Produce by 2s\ncut before any request, once\n"
    script = read_script(text)
    assert [fault.verb for fault in script] == ["delay", "cut before"]
    assert read_script(write_script(script)) == script
    with pytest.raises(PlanError, match="did you mean before"):
        read_script("cut befor Produce")
    with pytest.raises(PlanError, match="at most 1000 faults"):
        read_script("cut before any request\n" * 1_001)
