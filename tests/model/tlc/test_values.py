"""model/tlc/values.py: TLA+ values parse and print back and forth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.tlc import Function, ModelValue, TlaValueError, as_value, parse, record, show
from fencepost.model.tlc.values import DEEPEST, plain

NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}\Z").filter(
    lambda name: show(as_value([(name, 0)])).startswith("[")
)
INTEGERS = st.integers(
    -(2**31), 2**31 - 1
)  # booleans are apart: in Python 1 == True, in TLA+ they cannot be compared
LEAVES = st.one_of(INTEGERS, st.text(max_size=8), NAMES.map(ModelValue))
KEYS = st.one_of(INTEGERS, st.text(max_size=4), NAMES.map(ModelValue))


def _bigger(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.lists(values, max_size=4).map(tuple),
        st.frozensets(values, max_size=4),
        st.dictionaries(KEYS, values, max_size=4).map(lambda items: as_value(items.items())),
        st.dictionaries(NAMES, values, min_size=1, max_size=3).map(lambda fields: record(**fields)),
    )


VALUES = st.recursive(LEAVES, _bigger, max_leaves=12)


@given(VALUES)
def test_a_value_that_is_printed_is_parsed_as_itself(value):
    """Rule: parse is the inverse of show."""
    assert parse(show(value)) == value


@given(VALUES)
def test_equal_values_are_printed_alike(value):
    """Rule: show is canonical: what was parsed from it prints the same text, so texts may be compared and
    written to golden files."""
    assert show(parse(show(value))) == show(value)


@given(st.lists(st.booleans()))
def test_booleans_stay_booleans(values):
    """Rule: TRUE is not 1."""
    found = parse(show(tuple(values)))
    assert found == tuple(values)
    assert all(type(value) is bool for value in found)


@given(st.text(alphabet='<>{}[]()|:@,.-"\\/ \n01aT', max_size=30))
def test_any_text_is_a_value_or_an_error_in_one_sentence(text):
    """Rule: a text that is no value is told so, and nothing else happens."""
    try:
        value = parse(text)
    except TlaValueError as error:
        assert "expected a TLA+ value" in str(error)
    else:
        assert parse(show(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TRUE", True),
        ("-7", -7),
        ('"a\\"b\\\\c\\n"', 'a"b\\c\n'),
        ("r1", ModelValue("r1")),
        ("{}", frozenset()),
        ("1..3", frozenset({1, 2, 3})),
        ("3..1", frozenset()),
        ("-1..1", frozenset({-1, 0, 1})),
        ("<< >>", ()),
        ("<<1, <<>>>>", (1, ())),
        ("[a |-> 1, b |-> {x}]", Function({"a": 1, "b": frozenset({ModelValue("x")})})),
        ('("a" :> 1)', Function({"a": 1})),
        ("(1 :> 5 @@ 2 :> 6)", (5, 6)),
        ("( 0 :> 5 @@\n  1 :> 6 )", Function({0: 5, 1: 6})),
        ("(0 :> 1 @@ 0 :> 2)", Function({0: 1})),
        ("(TRUE :> 1)", Function({True: 1})),
        ("((7))", 7),
    ],
)
def test_what_tlc_prints_has_one_python_form(text, value):
    """Rule: however TLC writes a value, equal values of TLA+ become equal values of Python."""
    assert parse(text) == value
    assert type(parse(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<<1",
        "{1,}",
        "[a -> 1]",
        "[a |-> ]",
        "(1 :> )",
        "SUBSET {1}",
        "[{1} -> {2}]",
        "1 2",
        '"a',
        "1..x",
        "1..99999999999",
        "%",
        "{" * (DEEPEST + 2) + "}" * (DEEPEST + 2),
    ],
)
def test_what_is_no_value_is_refused(text):
    """Rule: nothing is guessed."""
    with pytest.raises(TlaValueError):
        parse(text)


def test_a_reserved_word_is_no_field():
    """Rule: what show prints, TLA+ can read."""
    assert show(as_value([("IF", 1)])) == '("IF" :> 1)'
    assert show(as_value([("WF_x", 1)])) == '("WF_x" :> 1)'
    with pytest.raises(TlaValueError):
        show(1.5)


def test_values_for_json():
    """Rule: --json gets lists, objects and names."""
    assert plain(parse("[a |-> {2, 1}, b |-> <<r1, (0 :> TRUE)>>]")) == {
        "a": [1, 2],
        "b": ["r1", {"0": True}],
    }
