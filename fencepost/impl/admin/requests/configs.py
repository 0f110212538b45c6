"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs (KIP-133, KIP-226, KIP-339).

Owns Kafka's responses: sources, synonyms, and the effect of an alteration on overrides. Must not know the
valid values: impl/core/topic_config has the table, impl/admin checks and writes. Any broker answers for
topics, and for what all brokers have. It reads ZooKeeper, so that a client reads its own changes. Of a
broker, what topics inherit changes while it runs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from attrs import define

from fencepost.impl.admin.cluster_state import AdminError
from fencepost.impl.admin.configuration import change_config, describe_configurations, setting_of
from fencepost.impl.admin.requests.broker_config import (
    DYNAMIC_SOURCES,
    Dynamic,
    broker_entries,
    dynamic_entries,
    dynamic_synonyms,
)
from fencepost.impl.admin.requests.desk import AdminDesk, Ticket
from fencepost.impl.admin.requests.topic_requests import persistent
from fencepost.impl.admin.topic_administration import check_name
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedure, Procedures, ZooKeeperSteps
from fencepost.impl.core.topic_config import ACCEPTED, SETTINGS, Kind, configured, in_force, planned_text
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.zookeeper.znodes import broker_name
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC, EVERY_BROKER
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.plan import TopicOptions

TIMEOUT_MS = 30_000
"""The time for a request. The requests contain no timeout; a client waits for 30 s by default."""


@define
class ConfigRequests:
    """Configuration requests to one broker."""

    broker_context: BrokerContext
    procedures: Procedures
    metadata: MetadataCache
    desk: AdminDesk

    # ---- describe

    def describe(self, source: int, request: kafka.DescribeConfigsRequest) -> None:
        """Answer with the configuration of each resource.

        Args:
            source: the client.
            request: the resources.
        """

        self._handle(source, request, kafka.DescribeConfigsResponse, kafka.DescribedConfig, self._describe)

    def _handle(
        self,
        source: int,
        request: kafka.DescribeConfigsRequest | kafka.AlterConfigsRequest,
        response: type[kafka.DescribeConfigsResponse] | type[kafka.AlterConfigsResponse],
        result: type[kafka.DescribedConfig] | type[kafka.AlteredConfig],
        steps: Callable[[Any], ZooKeeperSteps],
    ) -> None:
        """Carry out one resource after another; they are independent. The steps of one return further fields
        of its result."""

        def of(resource: Any, error: ErrorCode, message: str = "", **fields: Any) -> Any:
            return result(kind=resource.kind, name=resource.name, error=error, message=message, **fields)

        def whole(results: Iterable[Any]) -> Any:
            return response(correlation_id=request.correlation_id, resources=tuple(results))

        def all_of_them(ticket: Ticket) -> Procedure:
            results = []
            for resource in request.resources:
                try:
                    results.append(of(resource, NO_ERROR, **(yield from steps(resource))))
                except AdminError as refused:
                    results.append(of(resource, refused.code, str(refused)))
            self.desk.answer(ticket, whole(results))

        def overdue() -> Any:
            return whole(of(each, ErrorCode.REQUEST_TIMED_OUT) for each in request.resources)

        ticket = self.desk.admit(source, request.correlation_id, overdue, TIMEOUT_MS)
        if ticket is not None:
            self.procedures.start(all_of_them(ticket))

    def _describe(self, resource: kafka.DescribedResource) -> ZooKeeperSteps:
        if resource.kind is kafka.ResourceKind.BROKER:
            self._is_this_broker(resource.name, default=True)
            dynamic = yield from self._dynamic()
            entries = (
                broker_entries(self.broker_context.node, self.broker_context.options, dynamic)
                if resource.name
                else dynamic_entries(dynamic[1:])
            )
        else:
            self._exists(resource.name)
            overrides = (yield from describe_configurations((resource.name,))).get(resource.name, {})
            dynamic = yield from self._dynamic()
            entries = topic_entries(self.broker_context.planned_options(resource.name), overrides, dynamic)
        wanted = (entry for entry in entries if resource.keys is None or entry.name in resource.keys)
        return {"entries": tuple(wanted)}

    def _dynamic(self) -> ZooKeeperSteps:
        """What this broker and all brokers hand on to topics."""
        names = broker_name(self.broker_context.node), EVERY_BROKER
        found = yield from describe_configurations(names)
        return tuple(
            (source, found.get(name, {})) for source, name in zip(DYNAMIC_SOURCES, names, strict=True)
        )

    def _exists(self, topic: str) -> None:
        check_name(topic)
        if not self.metadata.knows(topic):
            raise AdminError(
                expected="a topic that exists",
                seen=topic,
                where="configuration",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )

    def _is_this_broker(self, name: str, *, default: bool) -> None:
        """Whether a resource is this broker. default: accept also the empty name, which means all brokers."""
        if name != str(self.broker_context.node) and not (default and not name):
            raise AdminError(
                expected=f"this broker, {self.broker_context.node}{', or no name' if default else ''}",
                seen=repr(name[:64]),
                where="configuration of a broker",
            )

    # ---- alter

    def alter(self, source: int, request: kafka.AlterConfigsRequest) -> None:
        """Change each resource that can be changed; brokers apply it when they are notified.

        Args:
            source: the client.
            request: the changes.
        """

        steps = partial(self._alter, request)
        self._handle(source, request, kafka.AlterConfigsResponse, kafka.AlteredConfig, steps)

    def _alter(self, request: kafka.AlterConfigsRequest, resource: kafka.AlteredResource) -> ZooKeeperSteps:
        _check_form(resource)
        if resource.kind is kafka.ResourceKind.BROKER:
            self._is_this_broker(resource.name, default=True)
            name = broker_name(resource.name or EVERY_BROKER)
        else:
            check_name(resource.name)
            name = resource.name
        change = partial(
            altered_config,
            name,
            resource.settings,
            planned=self.broker_context.planned_options(name),
            incremental=request.incremental,
        )
        yield from persistent(lambda: change_config(name, change, validate_only=request.validate_only))
        return {}


def _check_form(resource: kafka.AlteredResource) -> None:
    """Check the form of an alteration. Raises AdminError."""
    where = f"configuration of {resource.kind} {resource.name}"
    for name, count in Counter(setting.name for setting in resource.settings).items():
        if count > 1:
            raise AdminError(expected="each setting once", seen=f"{name!r} twice", where=where)
    for setting in resource.settings:
        if setting.value is None and setting.alteration is not kafka.Alteration.DELETE:
            raise AdminError(
                expected="a value for each setting", seen=f"none for {setting.name!r}", where=where
            )


def altered_config(
    topic: str,
    settings: tuple[kafka.AlteredSetting, ...],
    current: Mapping[str, str],
    *,
    planned: TopicOptions,
    incremental: bool,
) -> dict[str, str]:
    """The new overrides of a topic. Raises AdminError."""
    config = dict(current) if incremental else {}
    for each in settings:
        if each.alteration is kafka.Alteration.DELETE:
            config.pop(each.name, None)
            continue
        assert each.value is not None, each
        if each.alteration is kafka.Alteration.SET:
            config[each.name] = each.value
            continue
        setting = setting_of(topic, each.name)
        if setting.kind is not Kind.LIST:
            raise AdminError(
                expected="a setting that is a list, to append to it or take from it",
                seen=each.name,
                where=f"topic {topic}",
                code=ErrorCode.INVALID_CONFIG,
            )
        before = _items(config.get(each.name) or planned_text(setting, planned))
        said = _items(each.value)
        after = (
            [*before, *(item for item in said if item not in before)]
            if each.alteration is kafka.Alteration.APPEND
            else [item for item in before if item not in said]
        )
        config[each.name] = ",".join(after)
    return config


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


# ---- as Kafka prints them


def topic_entries(
    planned: TopicOptions, overrides: Mapping[str, str], dynamic: Dynamic = ()
) -> list[kafka.ConfigEntry]:
    """All settings of a topic. Values from its plan count as overrides, because other topics do not have
    them.

    Args:
        planned: the options without overrides.
        overrides: the topic's configuration.
        dynamic: what it inherits, the source that wins first.

    Returns:
        the settings, sorted by name.
    """
    inherited = {name: value for _, settings in reversed(dynamic) for name, value in settings.items()}
    options, _ = configured(planned, in_force(planned, inherited, overrides))
    entries = []
    for name, setting in sorted({**ACCEPTED, **SETTINGS}.items()):
        value = setting.write(getattr(options, setting.field)) if setting.field else setting.default
        value = overrides.get(name, value) if not setting.field else value
        own = name in overrides or planned_text(setting, planned) != setting.default
        synonyms = (
            [kafka.ConfigSynonym(name=name, value=value, source=kafka.ConfigSource.DYNAMIC_TOPIC_CONFIG)]
            if own
            else []
        )
        synonyms += dynamic_synonyms(DYNAMIC.get(name, ""), dynamic)
        if setting.synonym:
            synonyms.append(
                kafka.ConfigSynonym(
                    name=setting.synonym, value=setting.default, source=kafka.ConfigSource.DEFAULT_CONFIG
                )
            )
        entries.append(
            kafka.ConfigEntry(
                name=name,
                value=value,
                source=synonyms[0].source if synonyms else kafka.ConfigSource.DEFAULT_CONFIG,
                kind=setting.kind.value,
                synonyms=tuple(synonyms),
            )
        )
    return entries
