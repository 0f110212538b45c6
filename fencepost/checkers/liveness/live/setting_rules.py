"""Rules about the settings of topics in a live cluster: who knows old ones, and what they allow.

Owns these rules.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.live.partition_rules import UNCLEAN, told
from fencepost.checkers.liveness.live.sights import BOOTSTRAP, LiveRow, Seen, Sight, sight
from fencepost.record.settings import MIN_IN_SYNC
from fencepost.traces.events import Question

ACKS = "offsets.commit.required.acks"


def _settings(seen: Seen) -> Iterator[Sight]:
    """A broker for which a topic has other settings than for most. Only what was set at the topic counts:
    what a broker's file says may differ."""
    latest: dict[int, dict[tuple[str, str], str]] = {}
    topics: dict[int, set[str]] = {}
    names: set[tuple[str, str]] = set()
    for one in seen.of(Question.SETTINGS):
        node = one.event.node
        latest[node] = {(topic, name): value for topic, name, value in one.detail.dynamic}
        topics[node] = {topic for topic, *_ in one.detail.settings}
        names |= latest[node].keys()
        for topic, name in sorted(each for each in names if each[0] in topics[node]):
            said = {broker: latest[broker].get((topic, name)) for broker in latest if topic in topics[broker]}
            mine = said.pop(node)
            others = list(said.values())
            common = max(others, key=lambda value: (others.count(value), value or ""), default=None)
            agreed = 2 * others.count(common) > len(others) + 1
            yield sight(
                one,
                (node, topic, name),
                (mine, common) if agreed and mine != common else None,
                topic=topic,
                expected=f"broker {node} to know {name}={common or 'its default'}, as most do",
                seen=f"{mine or 'its default'}",
                command=f"kafka-configs.sh --bootstrap-server {BOOTSTRAP} --describe --topic {topic}",
            )


def _may_lose(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.PARTITION):
        topic = one.key[0]
        allowed = [f"{UNCLEAN}=true"] if known.setting(topic, UNCLEAN) == "true" else []
        if known.min_isr(topic) == 1 and len(one.event.replicas) > 1:
            allowed.append(f"{MIN_IN_SYNC}=1 with {len(one.event.replicas)} replicas")
        name = MIN_IN_SYNC if allowed and allowed[-1].startswith(MIN_IN_SYNC) else UNCLEAN
        yield sight(
            one,
            topic,
            tuple(allowed) or None,
            partition=-1,
            expected="settings under which a record that was acknowledged with acks=all survives a broker",
            seen=", ".join(allowed),
            command=f"kafka-configs.sh --bootstrap-server {BOOTSTRAP} --alter --topic {topic} "
            f"--add-config {name}={'2' if name == MIN_IN_SYNC else 'false'}",
        )


def _brokers_may_lose(seen: Seen) -> Iterator[Sight]:
    """What brokers make Kafka's own topics with, and how they write to them."""
    for one, known in told(seen, Question.SETTINGS):
        for _, name, value in one.detail.settings:
            few = name.endswith((".replication.factor", ".min.isr")) and value == "1" and len(known.live) > 1
            yield sight(
                one,
                (one.event.node, name),
                value if few or (name == ACKS and value != "-1") else None,
                topic=None,
                partition=-1,
                expected=f"broker {one.event.node} to let offsets and transactions survive a broker",
                seen=f"{name}={value}",
                command=f"set {name} in server.properties; a topic that is there keeps its own settings",
            )


ROWS = (
    LiveRow(
        name="settings_disagree",
        sights=_settings,
        bound_s=8,
        least=3,
        reason="two fetches of the metadata log, a second, and the broker's disk",
    ),
    LiveRow(name="settings allow a loss", sights=_may_lose, note=True),
    LiveRow(name="settings allow a loss", sights=_brokers_may_lose, note=True),
)
