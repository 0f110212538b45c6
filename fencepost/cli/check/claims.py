"""The options of `fencepost check` about claims.

Owns the options, and that a command gets one value of them. Must not know what they mean (record/claimed).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import rich_click as click

from fencepost.console.options import ANY_PATH, Decorator, options
from fencepost.record.claimed.outside_claims import SETTINGS, outside_claims

_options: Decorator = options(
    click.option(
        "--claims",
        "claims_file",
        type=ANY_PATH,
        metavar="FILE",
        help="A JSON object with fields of docs/reference/claims.md, which replace those of each trace.",
    ),
    click.option(
        "--allow-duplicates",
        is_flag=True,
        help="A record may be in the log twice: the producers retried without idempotence.",
    ),
    click.option(
        "--acks-1-may-lose",
        is_flag=True,
        help="A record that only its leader acknowledged (acks=1) may be lost.",
    ),
    click.option(
        "--topic-setting",
        "topic_settings",
        multiple=True,
        metavar="TOPIC:NAME=VALUE",
        help=f"How a topic was configured, * for all: {', '.join(SETTINGS)}. May be repeated.",
    ),
    click.option(
        "--broker-config",
        type=ANY_PATH,
        metavar="FILE",
        help="The server.properties of the brokers: what they were configured to do is allowed.",
    ),
    click.option(
        "--broker-setting",
        "broker_settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="One of its settings, such as offsets.retention.minutes=60. May be repeated.",
    ),
)
NAMES = (
    *("claims_file", "allow_duplicates", "acks_1_may_lose"),
    *("topic_settings", "broker_config", "broker_settings"),
)


def claims_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about claims to a command, which gets what they say as its `outside`."""

    @wraps(function)
    def with_claims(**given: Any) -> Any:
        return function(outside=outside_claims(**{name: given.pop(name) for name in NAMES}), **given)

    return _options(with_claims)
