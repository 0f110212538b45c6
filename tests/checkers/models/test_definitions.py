"""Models of the user's own: however a class is written, its parameters are what was given, or it is refused
at once."""

import copy
from dataclasses import dataclass
from typing import ClassVar

import attrs
import pytest

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.models import IMPOSSIBLE, Model
from fencepost.checkers.models.registers import Register
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Function
from fencepost.traces.trace import Trace
from tests.checkers import lab


class Holders:
    """What all of these have in common: at most n holders."""

    def init(self):
        return 0

    def step(self, state, call):
        after = state + (1 if call.function == "acquire" else -1)
        return after if 0 <= after <= self.n else IMPOSSIBLE


class Plain(Holders, Model):
    functions = ("acquire", "release")
    effects = ("acquire", "release")

    def __init__(self, n=9):
        self.n = n


@attrs.frozen
class Frozen(Holders, Model):
    name = "frozen cap"
    functions = frozenset({"acquire", "release"})
    effects = functions
    n: int = 9


@attrs.define
class Defined(Holders, Model):
    functions: ClassVar[frozenset[str]] = frozenset({"acquire", "release"})
    effects: ClassVar[frozenset[str]] = functions
    n: int = 9


@dataclass
class Data(Holders, Model):
    functions = frozenset({"acquire", "release"})
    effects = functions
    n: int = 9


@dataclass(frozen=True, slots=True)
class FrozenData(Holders, Model):
    functions = frozenset({"acquire", "release"})
    effects = functions
    n: int = 9


CLASSES = [Plain, Frozen, Defined, Data, FrozenData]


def holders(count: int) -> Trace:
    """So many acquisitions, one after another, and no release."""
    operations = tuple(lab.operation(n, Function.ACQUIRE, 10 * n, 10 * n + 5) for n in range(count))
    return lab.trace(operations)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_parameter_is_what_was_given(cls) -> None:
    """Rule: three holders of a semaphore of two are convicted, two are not, whichever kind of class it is and
    however n is given."""
    for model in (cls(2), cls(n=2)):
        assert model.n == 2 and model.parameters() == {"n": 2}
        assert judge_trace(holders(3), model).decision is Decision.ILLEGAL
        assert judge_trace(holders(2), model).decision is Decision.OK
    assert judge_trace(holders(9), cls()).decision is Decision.OK
    assert cls().parameters() == {}
    assert cls.name == ("frozen cap" if cls is Frozen else cls.__name__)
    assert cls.functions == frozenset({"acquire", "release"}) and isinstance(cls.functions, frozenset)


def test_a_class_derived_from_one_of_ours_has_its_first_parameter_for_itself() -> None:
    """Rule: `initial` of the models that come with the package is given by name only, so it never takes a
    parameter of a derived class."""

    @attrs.frozen
    class Bounded(Register):
        n: int = 9

    assert (Bounded(2).n, Bounded(2).initial, Bounded(2, initial=5).initial) == (2, None, 5)
    with pytest.raises(TypeError):
        Register(3)


class PlainBounded(Register):
    def __init__(self, n=9):
        self.n = n


class CallingBounded(Register):
    def __init__(self, n=9, initial=None):
        super().__init__(initial=initial)
        self.n = n


@dataclass
class DataBounded(Register):
    n: int = 9


@dataclass(frozen=True)
class FrozenDataBounded(Register):
    n: int = 9


@pytest.mark.parametrize("cls", [PlainBounded, CallingBounded, DataBounded, FrozenDataBounded])
def test_any_kind_of_class_may_be_derived_from_one_of_ours(cls) -> None:
    """Rule: the models that come with the package are bases like `Model`: a class derived from them sets its
    own parameters, and starts from null unless it says otherwise."""
    assert (cls(2).n, cls(n=2).parameters(), cls().init()) == (2, {"n": 2}, None)
    assert judge_trace(holders(0), cls(2)).decision is Decision.OK
    assert CallingBounded(2, initial=7).init() == 7
    with pytest.raises(AttributeError, match="'PlainBounded' object has no attribute 'm'"):
        PlainBounded(2).m  # noqa: B018 (it raises)


def test_arguments_that_nobody_takes_are_refused() -> None:
    """Rule: a class without parameters takes none; nothing is swallowed."""

    class Bare(Model):
        def step(self, state, call):
            return state

    assert Bare().parameters() == {} and Bare().init() is None
    for call in (lambda: Bare(2), lambda: Bare(n=2)):
        with pytest.raises(TypeError):
            call()


def test_parameters_without_names_are_not_named() -> None:
    """Rule: what cannot be given by name is not told as if it could; keywords that are collected are."""

    class Rest(Model):
        def __init__(self, first, /, *rest, **more):
            pass

        def step(self, state, call):
            return state

    class Collected(Rest):
        def __init__(self, n=1, **more):
            pass

    assert Rest(1).parameters() is None and Collected(2, m=3).parameters() == {"n": 2, "m": 3}
    assert copy.copy(Collected(2)).parameters() == {"n": 2}


def defined(**attributes):
    return type("Mine", (Model,), {"step": lambda self, state, call: state, **attributes})


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"functions": {1}}, "the model Mine: expected names of functions as `functions`, saw 1"),
        ({"functions": "read"}, "expected a set of functions as `functions`, saw 'read'"),
        ({"functions": 3}, "expected a set of functions as `functions`, saw 3"),
        ({"functions": {"read"}, "reads": {"get"}}, "expected `reads` out of read, saw 'get'"),
        ({"effects": {"get"}}, "expected `effects` out of its functions, of which there are none, saw 'get'"),
        ({"__annotations__": {"name": str}, "name": "x"}, "expected `name` as an attribute of the class"),
        (
            {"__annotations__": {"functions": "frozenset[str]"}},
            "expected `functions` as an attribute of the class",
        ),
    ],
)
def test_what_makes_no_model_is_refused_at_definition(attributes, says) -> None:
    """Rule: a class that would judge something else than its author meant is refused when it is defined."""
    with pytest.raises(FencepostError, match=says):
        defined(**attributes)


def test_an_annotated_name_is_no_parameter() -> None:
    """Rule: `name: str = ...` in an attrs class would be the first parameter, and Cap(2) would leave n alone;
    so it is refused."""
    with pytest.raises(FencepostError, match="an annotation that makes it a parameter"):

        @attrs.frozen
        class Cap(Model):
            name: str = "cap"
            n: int = 9


def test_a_model_without_step_is_refused() -> None:
    """Rule: a class that cannot judge is refused before it is asked."""

    class Empty(Model):
        functions = frozenset({"read"})

    with pytest.raises(FencepostError, match=r"expected a method step\(self, state, call\), saw none"):
        Empty()
