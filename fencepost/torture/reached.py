"""Which faults really struck, and which never did.

Owns the table of verbs by requests. Must not know how a fault strikes (proxy/faults) or what it shows
(judges.py). A seed in which nothing struck says nothing of a library's faults handling, so that a campaign
counts the others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fencepost.proxy.faults import SHAPES, VERBS, checked, may_answer, why_illegal
from fencepost.proxy.faults.drawing import CONSUMING, GROUPS, PRODUCING, TRANSACTIONS
from fencepost.torture.drawing import BROKER_VERBS, GROUP_VERBS
from fencepost.torture.scenario import SINGLE

BROKER = "broker"
"""Replaces the request's name for faults of brokers."""


def met_by(lines: Iterable[Mapping[str, Any]]) -> "Counter[str]":
    """How often each fault struck each request, as `lose answer|Produce`, over the runs of a campaign."""
    met: Counter[str] = Counter()
    for line in lines:
        met.update(line.get("met", {}))
    return met


def struck(lines: Iterable[Mapping[str, Any]]) -> int:
    """Runs in which at least one fault struck."""
    return sum(bool(line.get("met")) for line in lines)


def possible(*, groups: bool, transactions: bool = False) -> list[str]:
    """Everything that may be drawn for a library, in the words of `met_by`. groups, transactions: whether it
    has any."""
    drawn = PRODUCING | CONSUMING | GROUPS if groups else PRODUCING
    apis = sorted(drawn | TRANSACTIONS if transactions else drawn)
    return sorted(
        {
            *_of_requests(apis),
            *(f"{verb}|{BROKER}" for verb in (*BROKER_VERBS, *SINGLE, *(GROUP_VERBS * groups))),
        }
    )


def _of_requests(apis: list[str]) -> Iterator[str]:
    for verb, known in VERBS.items():
        if known.illegal:
            continue
        for api in apis:
            if known.apis and api not in known.apis:
                continue
            if verb == "answer":
                yield from (f"answer {error}|{api}" for error in may_answer(api, after_effect=False))
                yield from (
                    f"answer {error} after effect|{api}" for error in may_answer(api, after_effect=True)
                )
            elif verb == "reshape":
                shapes = (checked(verb=verb, api=api, shape=shape) for shape in SHAPES)
                yield from (f"reshape {fault.shape}|{api}" for fault in shapes if not why_illegal(fault))
            else:
                yield f"{verb}|{api}"


def never(met: Mapping[str, int], *, groups: bool, transactions: bool = False) -> list[str]:
    """Kinds of fault that can be drawn and took effect in no run. met: how often each took effect; groups,
    transactions: whether the runs had any."""
    every = possible(groups=groups, transactions=transactions)
    return [kind for kind in every if not met.get(kind)]


def by_verb(met: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The table: verbs (errors and shapes together), and under each its requests."""
    table: dict[str, Counter[str]] = {}
    for kind, count in met.items():
        verb, _, api = kind.partition("|")
        table.setdefault(verb.split()[0] if verb.startswith(("answer ", "reshape ")) else verb, Counter())[
            api
        ] += count
    return {verb: dict(sorted(table[verb].items())) for verb in sorted(table)}
