"""Assertions of a test's own: what a rule makes of the records of a source must be in a sink, and what a
function says of records is true.

Owns how results are compared with a rule, and what the answer of a test's function means. Must not know where
a cluster lives. A rule is a test's own code: what it raises on all records is the test's error, and is not
caught.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

from fencepost.kafka.assertions.problems import MOST_COPIES, Certificates, Problem
from fencepost.kafka.topic_records import KafkaRecord, result_in_words
from fencepost.traces.errors import PlanError
from fencepost.traces.trace import Trace

Result = tuple[bytes | None, bytes | None]
"""Key and value."""
Rule = Callable[[list[KafkaRecord]], Iterable[tuple[bytes | str | None, bytes | str | None]]]
HOW = {"exactly": "exactly", "at_least": "at least", "at_most": "at most"}
"""How often a result may be there, and in words."""
ORDERS = (None, "key")
MOST_TRACED = 20
"""Results of which the source record is looked for: each takes the rule some calls, and a page shows as
many findings."""


@frozen(kw_only=True)
class Output:
    """What must be in a sink."""

    rule: Rule
    # A key of HOW.
    how: str = "exactly"
    # One of ORDERS.
    order: str | None = None

    def __attrs_post_init__(self) -> None:
        for name, value, allowed in (("how", self.how, tuple(HOW)), ("order", self.order, ORDERS)):
            if value not in allowed:
                raise PlanError(
                    expected=f"{name}= one of {', '.join(map(repr, allowed))}",
                    seen=repr(value),
                    where="assert_output",
                )

    def results(self, records: Sequence[KafkaRecord]) -> list[Result]:
        """Of these records, by the rule. Raises PlanError unless they are pairs of bytes, texts or None."""
        found = self.rule(list(records))
        try:
            return [_result(*pair) for pair in found]
        except (TypeError, ValueError):
            raise PlanError(
                expected="pairs (key, value) of bytes, text or None",
                seen=f"{found!r:.100}",
                where="what the rule of assert_output returns",
            ) from None

    def promise(self, source: Sequence[str], sink: str) -> str:
        """In one clause. source: the names of its topics; sink: the name of the topic of the results."""
        by_key = ", in its order by key" if self.order else ""
        return f"{sink} has {HOW[self.how]} what the rule makes of {' and '.join(source)}{by_key}"


def _result(key: bytes | str | None, value: bytes | str | None) -> Result:
    for one in (key, value):
        if not (one is None or isinstance(one, bytes | str)):
            raise TypeError(one)
    encoded = [one.encode() if isinstance(one, str) else one for one in (key, value)]
    return encoded[0], encoded[1]


def not_as_the_rule_says(
    trace: Trace,
    output: Output,
    inputs: Sequence[KafkaRecord],
    due: Sequence[KafkaRecord],
    results: Sequence[KafkaRecord],
) -> list[Problem]:
    """Results that are missing, come too often, are none of the rule, or come in another order.

    Args:
        trace: the run.
        output: what must be there.
        inputs: all records of the source.
        due: those of them of which a result must be there.
        results: the records of the sink.
    """
    certificates = Certificates(trace)
    allowed = output.results(inputs)
    wanted, most = Counter(allowed if due is inputs else output.results(due)), Counter(allowed)
    copies: dict[Result, list[KafkaRecord]] = defaultdict(list)
    for record in results:
        copies[record.key, record.value].append(record)
    problems: list[Problem] = []
    for result in dict.fromkeys((*wanted, *copies)):
        found, expected = copies.get(result, []), wanted[result]
        verb = ""
        if result not in most:
            verb = "is none of the rule's results"
        elif len(found) < wanted[result] and output.how != "at_most":
            verb = "is missing"
        elif len(found) > most[result] and output.how != "at_least":
            verb, expected = "was written too often", most[result]
        if verb:
            source = _sources(output, inputs, result, most[result]) if len(problems) < MOST_TRACED else ()
            problems.append(_problem(certificates, result, verb, expected, source, found))
    if output.order and not problems:
        for sequence in _sequences(output, inputs, allowed):
            problems += _out_of_order(certificates, sequence, results)
    return problems


def _sequences(
    output: Output, inputs: Sequence[KafkaRecord], allowed: Sequence[Result]
) -> list[list[Result]]:
    """The results of each partition of the source, in their order: between two partitions there is none. A
    result that several of them have is left out. Raises PlanError if a rule mixes partitions."""
    partitions: dict[tuple[str, int], list[KafkaRecord]] = defaultdict(list)
    for record in inputs:
        partitions[record.topic, record.partition].append(record)
    if len(partitions) < 2:
        return [list(allowed)]
    sequences = [output.results(records) for records in partitions.values()]
    if Counter(one for sequence in sequences for one in sequence) != Counter(allowed):
        raise PlanError(
            expected="order='key' with a rule whose results of one partition do not depend on the others",
            seen=f"other results of {len(partitions)} partitions together than of each alone",
            where="assert_output",
            hint="leave order out, or let the source have one partition",
        )
    of_how_many = Counter(one for sequence in sequences for one in set(sequence))
    return [[one for one in sequence if of_how_many[one] == 1] for sequence in sequences]


def _problem(
    certificates: Certificates,
    result: Result,
    verb: str,
    expected: int,
    source: tuple[KafkaRecord, ...],
    found: Sequence[KafkaRecord],
) -> Problem:
    shown = found[:MOST_COPIES]
    places = ", ".join(f"{one.topic}-{one.partition} offset {one.offset}" for one in shown) or "none"
    follows = f", the result of {source[-1]}," if source else ""
    handed_out = certificates.handed_out(source[-1]) if source and not shown else ()
    return Problem(
        says=f"{result_in_words(*result)}{follows} {verb}: expected {expected}, saw {len(found)} ({places})",
        operations=(*certificates.cited(source), *certificates.cited(shown), *handed_out),
        records=(*source, *shown),
    )


def _sources(
    output: Output, inputs: Sequence[KafkaRecord], result: Result, count: int
) -> tuple[KafkaRecord, ...]:
    """The record with which the rule says a result for the last time, found by calling it on fewer records;
    () if no single one is seen to make the difference."""
    if not count:
        return ()
    with suppress(Exception):  # a rule need not bear an incomplete source; then no record is cited
        low, high = 0, len(inputs)  # the rule says it `count` times of the first `high`, and fewer of `low`
        while high - low > 1:
            middle = (low + high) // 2
            if output.results(inputs[:middle]).count(result) >= count:
                high = middle
            else:
                low = middle
        if output.results(inputs[:low]).count(result) < count <= output.results(inputs[:high]).count(result):
            return (inputs[high - 1],)
    return ()


def _out_of_order(
    certificates: Certificates, allowed: Iterable[Result], results: Iterable[KafkaRecord]
) -> Iterator[Problem]:
    """For each partition and key the first result of these that is after one that the rule says later. A
    result that comes again counts where it came first."""
    rank = {result: place for place, result in reversed(list(enumerate(allowed)))}
    seen: dict[tuple[int, bytes | None], dict[Result, KafkaRecord]] = defaultdict(dict)
    for record in results:
        if (record.key, record.value) in rank:
            seen[record.partition, record.key].setdefault((record.key, record.value), record)
    for firsts in seen.values():
        highest: Result | None = None
        for result, record in firsts.items():
            if highest is not None and rank[result] < rank[highest]:
                pair = firsts[highest], record
                yield Problem(
                    says=f"{pair[0]} is before {pair[1]}, and the rule says them in the other order",
                    operations=certificates.cited(pair),
                    records=pair,
                )
                break
            highest = result


def contradictions(
    trace: Trace, description: str, function: Callable[..., Any], records: Sequence[list[KafkaRecord]]
) -> list[Problem]:
    """What a function says of records.

    Args:
        trace: the run.
        description: what is true if it says nothing.
        function: gets these lists.
        records: of each topic.

    Raises:
        PlanError: if there are no topics, or what it returns says neither.
    """
    if not records:
        raise PlanError(expected="at least one topic", seen="none", where=f"assert_that({description!r})")
    certificates = Certificates(trace)
    untrue = f"it is not true that {description}"
    try:
        answer = function(*records)
        if answer is None or answer is True:
            return []
        if answer is False:
            answer = untrue
        one = isinstance(answer, str | tuple) or not isinstance(answer, Iterable)
        return [_said(certificates, description, each) for each in ([answer] if one else answer)]
    except AssertionError as error:
        return [Problem(says=str(error).partition("\n")[0] or untrue)]


def _said(certificates: Certificates, description: str, one: object) -> Problem:
    """One thing that a function has returned."""
    match one:
        case str():
            return Problem(says=one)
        case KafkaRecord():
            return Problem(says=str(one), records=(one,), operations=certificates.cited([one]))
        case (str() as says, *about) if len(named := _records(about)) == len(about):
            return Problem(says=says, records=named, operations=certificates.cited(named))
    raise PlanError(
        expected="True or nothing; or False, records, sentences, or tuples of a sentence and records",
        seen=f"{one!r:.100}",
        where=f"what the function of assert_that({description!r}) returns",
    )


def _records(things: Iterable[object]) -> tuple[KafkaRecord, ...]:
    return tuple(one for one in things if isinstance(one, KafkaRecord))
