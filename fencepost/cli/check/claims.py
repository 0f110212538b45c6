"""The options of `fencepost check` about claims.

Owns the options. Must not know what they mean (record/claimed).
"""

import rich_click as click

from fencepost.console.options import ANY_PATH, Decorator, options
from fencepost.record.claimed.outside_claims import SETTINGS

claims_options: Decorator = options(
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
"""Add the options about claims to a command."""
