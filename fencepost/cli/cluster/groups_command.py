"""`fencepost cluster groups`: the consumer groups of a running cluster: members, offsets, lag, and resets.

Owns messages. Must not know how a group is coordinated (impl/coordinator), nor which requests that takes
(impl/client/consumer/group_requests).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs
import rich_click as click

from fencepost.cli.cluster.client.client_options import cluster_directory
from fencepost.console.options import json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.impl.client.consumer.group_requests import GroupAdmin
    from fencepost.impl.messages.topic_partition import TopicPartition

ANSWER_S = 5.0
"""Longer than a coordinator takes to answer, shorter than a person waits."""
PAUSE_S = 0.25
"""Between two questions to a coordinator that is loading."""
Answer = TypeVar("Answer")


@click.group("groups", short_help="Consumer groups: list, describe, reset-offsets.")
def command() -> None:
    """Consumer groups of a running `fencepost cluster`: their members, their progress, and resets of their
    offsets.

    Each group's coordinator answers for it.

    \b
    Examples
      fencepost cluster up --brokers 3 --detach
      fencepost cluster groups list
      fencepost cluster groups describe billing
      # what would change; then do it
      fencepost cluster groups reset-offsets billing --topic orders --to-earliest
      fencepost cluster groups reset-offsets billing --topic orders --to-earliest --execute
    """


@command.command("list", short_help="All groups, their states and coordinators.")
@cluster_directory
@json_option
def list_groups(directory: Path, output: Output) -> ExitCode:
    """Ask every broker for the groups that it coordinates.

    \b
    Examples
      fencepost cluster groups list
    """
    found = _with_admin(directory, lambda admin: admin.list_groups())
    rows = table("group", "state", "protocol", ">coordinator")
    for listing in found:
        add_row(rows, listing.group, listing.state, listing.protocol_type or "none", listing.coordinator)
    output.say(rows if found else "no groups")
    return output.end(ExitCode.NOTHING_FOUND, {"groups": [attrs.asdict(listing) for listing in found]})


@command.command("describe", short_help="State, members, committed offsets and lag of a group.")
@click.argument("group")
@cluster_directory
@json_option
def describe(group: str, directory: Path, output: Output) -> ExitCode:
    """Print the state and generation of GROUP, and for each partition its member, the committed offset, the
    log's end, and the lag between them.

    \b
    Examples
      fencepost cluster groups describe billing
      fencepost cluster groups describe billing --json
    """
    described = _with_admin(directory, lambda admin: admin.describe(group))
    members = f"{len(described.members)} {'member' if len(described.members) == 1 else 'members'}"
    output.say(
        f"group {described.group}: {described.state}, generation {described.generation}, {members}, "
        f"coordinator {described.coordinator}"
    )
    rows = table("topic", ">partition", ">committed", ">end", ">lag", "member")
    for each in described.partitions:
        numbers = ("-" if value < 0 else value for value in (each.committed, each.end, each.lag))
        add_row(rows, each.topic, each.partition, *numbers, each.member or "-")
    output.say(rows if described.partitions else "nothing is committed")
    partitions = [attrs.asdict(each) | {"lag": each.lag} for each in described.partitions]
    return output.end(ExitCode.NOTHING_FOUND, attrs.asdict(described) | {"partitions": partitions})


@command.command("reset-offsets", short_help="Move the offsets of a group without members.")
@click.argument("group")
@click.option("--topic", required=True, help="The topic of the offsets.")
@click.option("--partition", type=click.IntRange(0), metavar="P", help="Only this partition.")
@click.option("--to-earliest", is_flag=True, help="To the log's start.")
@click.option("--to-latest", is_flag=True, help="Where it ends.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="This offset, kept within the log.")
@click.option(
    "--shift-by", type=int, metavar="N", help="By N from the committed offset, kept within the log."
)
@click.option("--execute", is_flag=True, help="Commit the offsets. Without it nothing changes.")
@cluster_directory
@json_option
def reset_offsets(
    group: str,
    topic: str,
    partition: int | None,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    execute: bool,
    directory: Path,
    output: Output,
) -> ExitCode:
    """Commit other offsets for GROUP, which must have no members. Shows what would change, and changes it
    only with --execute.

    \b
    Examples
      # what would change; then do it
      fencepost cluster groups reset-offsets billing --topic orders --to-earliest
      fencepost cluster groups reset-offsets billing --topic orders --to-earliest --execute
      fencepost cluster groups reset-offsets billing --topic orders --partition 0 --shift-by -10
    """
    chosen = [to_earliest, to_latest, to_offset is not None, shift_by is not None]
    if sum(chosen) != 1:
        raise click.UsageError("expected one of --to-earliest, --to-latest, --to-offset and --shift-by")

    def where(begin: int, end: int, committed: int) -> int:
        if to_earliest or to_latest:
            return begin if to_earliest else end
        wanted = to_offset if to_offset is not None else max(committed, begin) + (shift_by or 0)
        return max(begin, min(wanted, end))

    moves = _with_admin(directory, lambda admin: _reset(admin, group, topic, partition, where, execute))
    rows = table("topic", ">partition", ">committed", ">new")
    for key, (before, after) in moves.items():
        add_row(rows, key.topic, key.partition, "-" if before < 0 else before, after)
    output.say(rows)
    output.note("committed" if execute else "nothing was changed; --execute commits")
    described = [
        {"topic": key.topic, "partition": key.partition, "committed": before, "new": after}
        for key, (before, after) in moves.items()
    ]
    return output.end(ExitCode.NOTHING_FOUND, {"group": group, "executed": execute, "partitions": described})


async def _reset(
    admin: "GroupAdmin",
    group: str,
    topic: str,
    partition: int | None,
    where: Callable[[int, int, int], int],
    execute: bool,
) -> "Mapping[TopicPartition, tuple[int, int]]":
    from fencepost.impl.messages import broker_api as kafka

    known = await admin.partitions(topic)
    keys = [key for key in sorted(known) if partition in (None, key.partition)]
    if not keys:
        wanted = topic if partition is None else f"{topic}-{partition}"
        raise FencepostError(
            expected="a topic of this cluster"
            if not known
            else f"one of the partitions 0 to {len(known) - 1}",
            seen=wanted,
            where=f"group {group}",
        )
    begins, ends = await admin.ends(keys, kafka.EARLIEST), await admin.ends(keys, kafka.LATEST)
    committed = await admin.committed(group)
    moves = {
        key: (committed.get(key, -1), where(begins[key], ends[key], committed.get(key, -1)))
        for key in keys
        if key in begins and key in ends
    }
    if execute:
        await admin.commit(group, {key: after for key, (_, after) in moves.items()})
    return moves


def _with_admin(directory: Path, work: "Callable[[GroupAdmin], Awaitable[Answer]]") -> Answer:
    """Run `work` with an admin client of the cluster in this directory."""
    from fencepost.impl.client.consumer.group_requests import Asking, GroupAdmin, Make
    from fencepost.impl.messages.broker_api import Message
    from fencepost.impl.runtime.client import running
    from fencepost.impl.runtime.zookeeper.server import HOST
    from fencepost.systems.processes import ProcessCluster

    state = ProcessCluster.load(directory).state
    addresses = {number: (HOST, broker.port) for number, broker in state.brokers.items()}

    async def ask(questions: list[tuple[int, Make]]) -> list[Message | None]:
        core = Asking(questions)
        async with running(core, addresses, lambda _: None) as client:
            core.heard = client.changed
            with contextlib.suppress(TimeoutError):  # a broker that does not answer is down
                await asyncio.wait_for(client.until(lambda: core.complete), ANSWER_S)
        return [core.answers.get(number) for number in range(len(questions))]

    async def everything() -> Answer:
        admin = GroupAdmin(tuple(sorted(addresses)), ask, lambda: asyncio.sleep(PAUSE_S))
        return await work(admin)

    return asyncio.run(everything())
