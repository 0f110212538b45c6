"""Plans as JSON: strict in, canonical out."""

import msgspec
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from fencepost.traces.errors import ExitCode, PlanError
from fencepost.traces.plan import BudgetOptions, ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_from_json, plan_to_json

FULL = Plan(
    seed=7,
    cluster=ClusterOptions(
        brokers=5, topics=(TopicOptions(partitions=2), TopicOptions(name="u")), bugs=("KIP-101",)
    ),
    operations=(PlannedOperation(op_id=1, process=2, at_ms=3, function="append", acks=1, records=4),),
    faults=(Fault(fault_id=1, kind="crash", at_ms=10, target="leader of t-0", duration_ms=0),),
    budget=BudgetOptions(outside="allow"),
)

REFUSALS = [
    ('{"seed":1,"cluster":{"brokers":99}}', "plan.cluster.brokers: expected at most 16, saw 99"),
    ('{"seed":1,"cluster":{"brokers":0}}', "plan.cluster.brokers: expected at least 1, saw 0"),
    (
        '{"seed":9223372036854775808}',
        "plan.seed: expected at most 9223372036854775807, saw 9223372036854775808",
    ),
    (
        '{"seed":1,"operations":[{"op_id":1000000000000000000,"process":0,"at_ms":1,"function":"poll"}]}',
        "plan.operations[0].op_id: expected at most 9000000000000, saw 1000000000000000000",
    ),
    (
        '{"seed":1,"operations":[{"op_id":1,"process":8999999000001,"at_ms":1,"function":"poll"}]}',
        "plan: expected valid values, saw that an op_id or process is 8999999000001, above 8999999000000",
    ),
    (
        '{"seed":1,"faults":[{"fault_id":1,"kind":"crash","at_ms":9223372036854775808}]}',
        "plan.faults[0].at_ms: expected at most 100000000, saw 9223372036854775808",
    ),
    ('{"seed":-1}', "plan.seed: expected at least 0, saw -1"),
    ('{"seed":1,"clutser":{}}', "plan.clutser: expected one of the fields seed, version,"),
    (
        '{"seed":1,"faults":[{"fault_id":1,"kind":"crash","at_ms":1,"onset":2}]}',
        "plan.faults[0].onset: expected one of",
    ),
    (
        '{"seed":1,"cluster":{"topics":[{},{"partitions":65}]}}',
        "plan.cluster.topics[1].partitions: expected at most 64, saw 65",
    ),
    ('{"seed":1,"cluster":{"brokers":"3"}}', 'plan.cluster.brokers: expected an integer, saw "3"'),
    ('{"seed":true}', "plan.seed: expected an integer, saw true"),
    ('{"seed":1.0}', "plan.seed: expected an integer, saw 1.0"),
    ('{"seed":null}', "plan.seed: expected an integer, saw null"),
    ('{"seed":1,"disk":{"torn_write":1}}', "plan.disk.torn_write: expected true or false, saw 1"),
    ('{"seed":1,"cluster":{"bugs":"KIP-101"}}', 'plan.cluster.bugs: expected a list, saw "KIP-101"'),
    ('{"seed":1,"cluster":{"bugs":[101]}}', "plan.cluster.bugs[0]: expected a string, saw 101"),
    ('{"seed":1,"cluster":[]}', "plan.cluster: expected a JSON object, saw []"),
    ('{"seed":1,"budget":{"outside":"deny"}}', 'plan.budget.outside: expected "skip" or "allow", saw "deny"'),
    ('{"seed":1,"version":2}', "plan.version: expected 1, saw 2"),
    ('{"seed":1,"faults":[{"fault_id":1,"at_ms":2}]}', "plan.faults[0].kind: expected a value, saw none"),
    ("{}", "plan.seed: expected a value, saw none"),
    (
        '{"seed":1,"cluster":{"topics":[{"name":"a/b"}]}}',
        "plan.cluster: expected valid values, saw that the name",
    ),
    (
        '{"seed":1,"cluster":{"topics":[{"name":".."}]}}',
        "plan.cluster: expected valid values, saw that the name",
    ),
    ('{"seed":1', "plan: expected JSON, saw Input data was truncated"),
    (b"\xff", "plan: expected JSON, saw"),
    ("[1]", "plan: expected a JSON object, saw [1]"),
]


@pytest.mark.parametrize(("text", "says"), REFUSALS)
def test_a_refusal_names_the_field_the_bound_and_the_value(text: str | bytes, says: str) -> None:
    """A plan that cannot be read is refused by the path of its first bad field, in one sentence."""
    with pytest.raises(PlanError) as caught:
        plan_from_json(text)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_where_is_the_file() -> None:
    """The path of a field starts with the file that it stands in."""
    with pytest.raises(PlanError, match=r"^broken\.json\.cluster\.brokers: "):
        plan_from_json('{"seed":1,"cluster":{"brokers":17}}', where="broken.json")


def test_a_long_value_is_cut() -> None:
    """A refusal stays one readable sentence however large the value is."""
    with pytest.raises(PlanError) as caught:
        plan_from_json(msgspec.json.encode({"seed": "x" * 10_000}))
    assert len(str(caught.value)) < 300


def test_the_text_is_canonical() -> None:
    """Equal plans give equal text: keys in field order, no white space."""
    text = plan_to_json(FULL)
    assert text == plan_to_json(evolve(FULL))
    assert text.startswith('{"seed":7,"version":1,"profile":"default","safety_ms":60000,')
    assert " " not in text.replace("leader of t-0", "")


def test_defaults_are_filled_in() -> None:
    """A field that is left out has its default."""
    assert plan_from_json('{"seed":3}') == Plan(seed=3)


@given(
    seed=st.integers(0, 2**63 - 1),
    operations=st.lists(
        st.builds(
            PlannedOperation,
            op_id=st.integers(0, 10**6),
            process=st.integers(0, 9),
            at_ms=st.integers(0, 10**6),
            function=st.sampled_from(("append", "poll", "list_offsets")),
            topic=st.text(),
            acks=st.sampled_from((-1, 0, 1)),
        ),
        max_size=3,
    ),
    bugs=st.lists(st.text()),
)
def test_reading_undoes_writing(seed: int, operations: list[PlannedOperation], bugs: list[str]) -> None:
    """Every plan that can be made is read back as itself."""
    plan = evolve(
        FULL, seed=seed, operations=tuple(operations), cluster=evolve(FULL.cluster, bugs=tuple(bugs))
    )
    assert plan_from_json(plan_to_json(plan)) == plan
