"""IDEMP: a leader appends what an idempotent producer sends once, however often it is sent.

Owns appended_again. No reader is needed: retention may have taken the first record before anybody read
it. A leader never cuts its log: what it appended in one epoch, it has, or has deleted. Of other leaders
less is known: a replica that began at its leader's log start knows no producer from before that.
"""

from collections import Counter

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.facts import Facts
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS

CUTS = (Name.BROKER_STARTED, Name.LOG_RECOVERED, Name.TRUNCATED)
"""Of the node's logs: a leader that did not restart has none of them."""


def judge_repeats(findings: Findings, facts: Facts) -> None:
    """Look for values that a leader appended twice; at most one finding for each partition.

    Args:
        findings: where a finding goes.
        facts: of a run whose appends have values of their own.
    """
    if not facts.settings.client.producer.idempotent:
        return
    copies = {*INTERNAL_TOPICS, facts.settings.transform.output}  # what was aborted is written once more
    # Of each leader, since it started: the position and the offset of each value's append.
    known: dict[tuple[str | None, int, int, int, int], dict[int, tuple[int, int]]] = {}
    cuts: Counter[int] = Counter()
    for position, event in facts.of(Name.APPENDED, *CUTS):
        if event.name is not Name.APPENDED:
            cuts[event.node] += 1
            continue
        if event.cause != "leader" or event.topic in copies:
            continue
        leads = event.topic, event.partition, event.node, event.leader_epoch, cuts[event.node]
        appended = known.setdefault(leads, {})
        for offset, value in enumerate(event.values, event.offset):
            earlier, first = appended.setdefault(value, (position, offset))
            if first != offset:
                findings.add(
                    "appended_again",
                    expected=f"value {value} to be appended once in leader epoch {event.leader_epoch}",
                    seen=f"broker {event.node} appended it at offset {first}, and at offset {offset}",
                    topic=event.topic,
                    partition=event.partition,
                    offset=offset,
                    events=(earlier, position),
                )
