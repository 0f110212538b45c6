"""Rows made quickly: what `maker_of` makes is what the class makes."""

import attrs
import pytest

from fencepost.traces.events import Event, Name, make_event
from fencepost.traces.making import maker_of
from fencepost.traces.operations import Function, Operation, Outcome, Record, make_operation, make_record


def test_a_made_value_is_the_value_that_the_class_makes():
    """Fields, defaults, type, equality, hash and text are the class's own."""
    for make, cls, fields in (
        (make_event, Event, {"time": 3, "name": Name.APPENDED, "values": (1, 2), "cause": "leader"}),
        (make_record, Record, {"topic": "t", "partition": 0, "offset": 4, "value": 7}),
        (
            make_operation,
            Operation,
            {"op_id": 1, "process": 0, "function": Function.POLL, "invoke_time": 5, "outcome": Outcome.OK},
        ),
    ):
        made, usual = make(**fields), cls(**fields)
        assert type(made) is cls
        assert (made, hash(made), repr(made)) == (usual, hash(usual), repr(usual))
        assert attrs.asdict(made) == attrs.asdict(usual)


def test_a_made_value_is_frozen_and_evolves():
    """Nobody can tell how it came to be."""
    event = make_event(time=1, name=Name.MARK)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.time = 2
    assert attrs.evolve(event, time=2) == Event(time=2, name=Name.MARK)


def test_a_field_without_default_is_asked_for_and_an_unknown_one_refused():
    """The parameters are the class's."""
    with pytest.raises(TypeError, match="time"):
        make_event(name=Name.MARK)
    with pytest.raises(TypeError, match="nodes"):
        make_event(time=1, name=Name.MARK, nodes=3)


@attrs.frozen(weakref_slot=False)
class _Checked:
    number: int = attrs.field(validator=attrs.validators.ge(0))


@attrs.frozen(weakref_slot=False)
class _Converted:
    number: int = attrs.field(converter=int)


@attrs.frozen(weakref_slot=False)
class _Produced:
    numbers: list[int] = attrs.Factory(list)


@attrs.frozen(weakref_slot=False)
class _Private:
    _number: int = 0


@attrs.frozen
class _Weak:
    number: int = 0


@pytest.mark.parametrize("cls", [_Checked, _Converted, _Produced, _Private, _Weak])
def test_a_class_whose_constructor_does_more_is_refused(cls):
    """A validator, converter or factory would be passed over in silence, and a slot for weak references ends
    the change of class."""
    with pytest.raises(AssertionError, match=cls.__name__):
        maker_of(cls)
