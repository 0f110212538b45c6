"""A broker's settings under Kafka's names. Owns the table. Must not know the callers. All but what topics
inherit are read-only: they are set when the broker starts."""

from collections.abc import Callable, Mapping

from attrs import frozen
from msgspec import structs

from fencepost.impl.controller.preferred_election import IMBALANCE_PERCENT
from fencepost.impl.coordinator.committed_offsets import MAXIMUM_METADATA
from fencepost.impl.core.topic_config import ACCEPTED, SETTINGS, Kind
from fencepost.impl.messages.admin_api import ConfigEntry, ConfigSource, ConfigSynonym
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC
from fencepost.traces.plan import ClusterOptions

Dynamic = tuple[tuple[ConfigSource, Mapping[str, str]], ...]
"""Settings that were given at run time, by source, the one that wins first."""
DYNAMIC_SOURCES = ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
MINUTE_MS = 60_000


@frozen
class BrokerSetting:
    """A setting that is an option of the cluster."""

    kind: Kind
    # Its value here.
    value: Callable[[ClusterOptions], object]
    # Kafka's default.
    default: str


def _fixed(kind: Kind, value: object, default: str | None = None) -> BrokerSetting:
    """A setting with a fixed value here."""
    return BrokerSetting(kind, lambda _: value, _text(value) if default is None else default)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


BROKER_SETTINGS = {
    "auto.create.topics.enable": BrokerSetting(Kind.BOOLEAN, lambda o: o.auto_create_topics_enable, "true"),
    "auto.leader.rebalance.enable": BrokerSetting(
        Kind.BOOLEAN, lambda o: o.leader_imbalance_check_ms > 0, "true"
    ),
    "controlled.shutdown.enable": _fixed(Kind.BOOLEAN, True),
    "controlled.shutdown.retry.backoff.ms": BrokerSetting(
        Kind.LONG, lambda o: o.controlled_shutdown_retry_backoff_ms, "5000"
    ),
    "default.replication.factor": BrokerSetting(Kind.INT, lambda o: o.default_replication_factor, "1"),
    "delete.topic.enable": _fixed(Kind.BOOLEAN, True),
    "group.initial.rebalance.delay.ms": BrokerSetting(
        Kind.INT, lambda o: o.groups.initial_rebalance_delay_ms, "3000"
    ),
    "group.max.session.timeout.ms": BrokerSetting(
        Kind.INT, lambda o: o.groups.max_session_timeout_ms, "1800000"
    ),
    "group.min.session.timeout.ms": BrokerSetting(
        Kind.INT, lambda o: o.groups.min_session_timeout_ms, "6000"
    ),
    "leader.imbalance.check.interval.seconds": BrokerSetting(
        Kind.LONG, lambda o: o.leader_imbalance_interval_ms // 1_000, "300"
    ),
    "leader.imbalance.per.broker.percentage": _fixed(Kind.INT, IMBALANCE_PERCENT),
    "log.cleaner.backoff.ms": BrokerSetting(Kind.LONG, lambda o: o.log_cleaner_backoff_ms, "15000"),
    "log.retention.check.interval.ms": BrokerSetting(
        Kind.LONG, lambda o: o.log_retention_check_interval_ms, "300000"
    ),
    "num.partitions": BrokerSetting(Kind.INT, lambda o: o.num_partitions, "1"),
    "offset.metadata.max.bytes": _fixed(Kind.INT, MAXIMUM_METADATA),
    "offsets.commit.timeout.ms": BrokerSetting(
        Kind.INT, lambda o: o.groups.offsets_commit_timeout_ms, "5000"
    ),
    "offsets.load.buffer.size": BrokerSetting(
        Kind.INT, lambda o: o.groups.offsets_load_buffer_bytes, "5242880"
    ),
    "offsets.retention.check.interval.ms": BrokerSetting(
        Kind.LONG, lambda o: o.groups.offsets_retention_check_ms, "600000"
    ),
    "offsets.retention.minutes": BrokerSetting(
        Kind.INT, lambda o: o.groups.offsets_retention_ms // MINUTE_MS, "10080"
    ),
    "offsets.topic.num.partitions": BrokerSetting(
        Kind.INT, lambda o: o.groups.offsets_topic_partitions, "50"
    ),
    "offsets.topic.replication.factor": BrokerSetting(
        Kind.INT, lambda o: o.groups.offsets_topic_replication_factor, "3"
    ),
    "replica.fetch.backoff.ms": BrokerSetting(Kind.INT, lambda o: o.replica_fetch_backoff_ms, "1000"),
    "replica.fetch.wait.max.ms": BrokerSetting(Kind.INT, lambda o: o.replica_fetch_wait_max_ms, "500"),
    "replica.high.watermark.checkpoint.interval.ms": BrokerSetting(
        Kind.LONG, lambda o: o.high_watermark_checkpoint_interval_ms, "5000"
    ),
    "replica.lag.time.max.ms": BrokerSetting(Kind.LONG, lambda o: o.replica_lag_time_max_ms, "30000"),
    "zookeeper.session.timeout.ms": BrokerSetting(
        Kind.INT, lambda o: o.zookeeper_session_timeout_ms, "18000"
    ),
} | {
    setting.synonym: _fixed(setting.kind, setting.default)
    for setting in (*SETTINGS.values(), *ACCEPTED.values())
    if setting.synonym
}


def dynamic_synonyms(name: str, dynamic: Dynamic) -> list[ConfigSynonym]:
    """The values of the broker's setting `name` in `dynamic`, the one that wins first."""
    return [
        ConfigSynonym(name=name, value=settings[name], source=source)
        for source, settings in dynamic
        if name in settings
    ]


def dynamic_entries(dynamic: Dynamic) -> list[ConfigEntry]:
    """What was given at run time, and nothing else, sorted by name."""
    kinds = {DYNAMIC[name]: setting.kind for name, setting in SETTINGS.items()}
    found = []
    for name in sorted({name for _, settings in dynamic for name in settings}):
        first, *_ = synonyms = dynamic_synonyms(name, dynamic)
        found.append(
            ConfigEntry(
                name=name,
                value=first.value,
                source=first.source,
                kind=kinds.get(name, Kind.STRING).value,
                synonyms=tuple(synonyms),
            )
        )
    return found


def broker_entries(node: int, options: ClusterOptions, dynamic: Dynamic = ()) -> list[ConfigEntry]:
    """All settings of a broker.

    Args:
        node: the broker id.
        options: the options of the cluster.
        dynamic: what it was given at run time.

    Returns:
        the settings, sorted by name.
    """
    settings = {"broker.id": _fixed(Kind.INT, node, "-1"), **BROKER_SETTINGS}
    given = {entry.name: entry for entry in dynamic_entries(dynamic)}
    static = {name: _entry(name, setting, options) for name, setting in settings.items()}
    for name in given.keys() & static.keys():
        given[name] = structs.replace(given[name], synonyms=given[name].synonyms + static[name].synonyms)
    return [entry for _, entry in sorted({**static, **given}.items())]


def _entry(name: str, setting: BrokerSetting, options: ClusterOptions) -> ConfigEntry:
    value = _text(setting.value(options))
    synonyms = [ConfigSynonym(name=name, value=setting.default, source=ConfigSource.DEFAULT_CONFIG)]
    if value != setting.default:
        synonyms.insert(0, ConfigSynonym(name=name, value=value, source=ConfigSource.STATIC_BROKER_CONFIG))
    return ConfigEntry(
        name=name,
        value=value,
        source=synonyms[0].source,
        kind=setting.kind.value,
        read_only=name not in DYNAMIC.values(),
        synonyms=tuple(synonyms),
    )
