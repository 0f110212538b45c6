"""Configurations: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencepost.impl.core.topic_config import Kind
from fencepost.impl.messages import admin_api as kafka
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.admin.sentences import sentence
from fencepost.wire.handling import Call, Handling

RESOURCES: Mapping[int, kafka.ResourceKind] = {2: kafka.ResourceKind.TOPIC, 4: kafka.ResourceKind.BROKER}
"""Kafka's ConfigResource.Type. Loggers (8) and what came with KRaft are not there."""
ALTERATIONS: Mapping[int, kafka.Alteration] = {
    0: kafka.Alteration.SET,
    1: kafka.Alteration.DELETE,
    2: kafka.Alteration.APPEND,
    3: kafka.Alteration.SUBTRACT,
}
SOURCES: Mapping[kafka.ConfigSource, int] = {
    kafka.ConfigSource.DYNAMIC_TOPIC_CONFIG: 1,
    kafka.ConfigSource.DYNAMIC_BROKER_CONFIG: 2,
    kafka.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: 3,
    kafka.ConfigSource.STATIC_BROKER_CONFIG: 4,
    kafka.ConfigSource.DEFAULT_CONFIG: 5,
}
KINDS: Mapping[str, int] = {
    Kind.BOOLEAN: 1,
    Kind.STRING: 2,
    Kind.INT: 3,
    Kind.LONG: 5,
    Kind.DOUBLE: 6,
    Kind.LIST: 7,
}
Place = tuple[int, str]
"""Type and name of a resource, as on the wire."""
Outcome = tuple[ErrorCode, str, tuple[kafka.ConfigEntry, ...]]


def _unsupported(type_number: int) -> Outcome:
    return ErrorCode.INVALID_REQUEST, f"resources of type {type_number} have no configuration here", ()


# ---- describe


def describe_configs(call: Call, request: Any) -> Handling:
    """Settings with their sources, and synonyms if the request wants them. There is no documentation of
    settings here. An empty list of names means all, as null does. call: the request's context; request: kio's
    class."""
    spoken = [each for each in request.resources if each.resource_type in RESOURCES]
    (answer,) = yield [
        kafka.DescribeConfigsRequest(
            correlation_id=call.next_id(),
            resources=tuple(
                kafka.DescribedResource(
                    kind=RESOURCES[each.resource_type],
                    name=each.resource_name,
                    keys=tuple(each.configuration_keys) if each.configuration_keys else None,
                )
                for each in spoken
            ),
        )
    ]
    outcomes: dict[Place, Outcome] = {
        (each.resource_type, each.resource_name): (found.error, found.message, found.entries)
        for each, found in zip(spoken, answer.resources, strict=True)
    }
    places = ((each.resource_type, each.resource_name) for each in request.resources)
    synonyms = request.include_synonyms
    return call.answer(
        results=[
            _resource(place, *(outcomes.get(place) or _unsupported(place[0])), synonyms=synonyms)
            for place in places
        ]
    )


def _resource(
    place: Place,
    error: ErrorCode,
    message: str,
    entries: Sequence[kafka.ConfigEntry] = (),
    *,
    synonyms: bool = False,
) -> dict[str, Any]:
    return {
        "error_code": error,
        "error_message": sentence(error, message),
        "resource_type": place[0],
        "resource_name": place[1],
        "configs": [_entry(entry, entry.synonyms if synonyms else ()) for entry in entries],
    }


def _entry(entry: kafka.ConfigEntry, synonyms: Sequence[kafka.ConfigSynonym]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": SOURCES[entry.source],
        "synonyms": [
            {"name": each.name, "value": each.value, "source": SOURCES[each.source]} for each in synonyms
        ],
        "config_type": KINDS[entry.kind],
    }


# ---- alter


def alter_configs(call: Call, request: Any) -> Handling:
    """Replace all of a resource's settings: overrides that the request does not name are removed. call: the
    request's context; request: kio's class."""
    return (yield from _altered(call, request, lambda _: kafka.Alteration.SET, incremental=False))


def incremental_alter_configs(call: Call, request: Any) -> Handling:
    """Change settings one by one. call: the request's context; request: kio's class."""
    return (
        yield from _altered(
            call, request, lambda each: ALTERATIONS.get(each.config_operation), incremental=True
        )
    )


def _altered(
    call: Call, request: Any, alteration: Callable[[Any], kafka.Alteration | None], *, incremental: bool
) -> Handling:
    outcomes: dict[Place, tuple[ErrorCode, str]] = {}
    spoken: list[tuple[Place, kafka.AlteredResource]] = []
    often = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for each in request.resources:
        place = (each.resource_type, each.resource_name)
        alterations = [alteration(one) for one in each.configs]
        kind = RESOURCES.get(each.resource_type)
        if kind is None:
            outcomes[place] = _unsupported(each.resource_type)[:2]
        elif often[place] > 1:
            outcomes[place] = ErrorCode.INVALID_REQUEST, "the request names this resource twice"
        elif None in alterations:
            outcomes[place] = ErrorCode.INVALID_REQUEST, "an operation on a setting is none of 0 to 3"
        else:
            settings = tuple(
                kafka.AlteredSetting(name=one.name, alteration=how, value=one.value)
                for one, how in zip(each.configs, alterations, strict=True)
                if how is not None
            )
            spoken.append(
                (place, kafka.AlteredResource(kind=kind, name=each.resource_name, settings=settings))
            )
    (answer,) = yield [
        kafka.AlterConfigsRequest(
            correlation_id=call.next_id(),
            resources=tuple(resource for _, resource in spoken),
            incremental=incremental,
            validate_only=request.validate_only,
        )
    ]
    for (place, _), found in zip(spoken, answer.resources, strict=True):
        outcomes[place] = found.error, found.message
    places = ((each.resource_type, each.resource_name) for each in request.resources)
    return call.answer(responses=[_resource(place, *outcomes[place]) for place in places])
