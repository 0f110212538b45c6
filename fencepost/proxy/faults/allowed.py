"""What a correct broker may answer: whether a fault is within it.

Owns that judgement. Must not know how a fault is carried out, or which errors each API has (answers.py).
"""

from collections.abc import Iterator
from typing import Any

from fencepost.proxy.faults.answers import ALLOWED, EVERYWHERE, Row
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.verbs import ANY, ILLEGAL_SHAPES, VERBS
from fencepost.traces.errors import PlanError
from fencepost.wire.names import asks_for_retry, error_names


def rows() -> Iterator[tuple[str, str, str, bool]]:
    """API, error, column (at any time, after the effect, only if), whether clients try again."""
    for api, row in ALLOWED.items():
        for column, errors in (
            ("at any time", (*row.any_time, *EVERYWHERE)),
            ("after the effect", (*row.after, *(EVERYWHERE if row.effect else ()))),
            ("only if", row.only_if),
        ):
            for error in errors:
                yield api, error, column, asks_for_retry(error)


def may_answer(api: str, *, after_effect: bool) -> tuple[str, ...]:
    """The errors that a correct broker may answer to a request at this moment, whatever its state.

    Args:
        api: Kafka's name of the request.
        after_effect: whether the request was carried out.
    """
    row = ALLOWED.get(api, Row())
    if after_effect:
        return (*row.after, *(EVERYWHERE if row.effect else ()))
    return (*row.any_time, *EVERYWHERE)


def fits(fault: RequestFault, version: int, body: Any) -> bool:
    """Whether a correct broker may answer this very request so: its client knows the error, and the request
    is one that can have it.

    Args:
        fault: an `answer`, legal for its API.
        version: of the request.
        body: the request, as kio's class.
    """
    row = ALLOWED.get(fault.api, Row())
    return row.condition(fault.error, after_effect=fault.after_effect).met(version, body)


def why_illegal(fault: RequestFault) -> str:
    """Why no correct broker does it; empty where one may."""
    verb = VERBS[fault.verb]
    if verb.illegal:
        return verb.illegal
    if fault.shape in ILLEGAL_SHAPES:
        return ILLEGAL_SHAPES[fault.shape]
    if fault.verb != "answer":
        return ""
    if fault.api == ANY:
        return "" if fault.error in EVERYWHERE else f"not every request may be answered {fault.error}"
    when = "after its effect" if fault.after_effect else "without an effect"
    if fault.error in may_answer(fault.api, after_effect=fault.after_effect):
        return ""
    if fault.error in ALLOWED.get(fault.api, Row()).only_if:
        return f"{fault.api} is answered {fault.error} only in a state that the fault does not bring about"
    return f"{fault.api} is never answered {fault.error} {when}"


def refuse_illegal(fault: RequestFault) -> None:
    """Raises PlanError for an illegal fault that does not say that it is one."""
    reason = why_illegal(fault)
    if reason and fault.legal:
        allowed = may_answer(fault.api, after_effect=fault.after_effect) if fault.verb == "answer" else ()
        one_of = f", such as {', '.join(allowed)}" if allowed else ""
        raise PlanError(
            expected=f"what a correct broker may do{one_of}",
            seen=reason,
            where=f"the fault {str(fault)!r}",
            hint="add `, illegal` to the text (legal=False in Python) if it is meant so",
        )


assert {error for _, error, _, _ in rows()} <= set(error_names())
