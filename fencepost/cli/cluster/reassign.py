"""`fencepost cluster reassign`: move partitions between brokers, with the files and words of Kafka's
kafka-reassign-partitions.

Owns messages. Must not know how a reassignment is checked, written or carried out.
"""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import rich_click as click

from fencepost.cli.cluster.zookeeper import cluster_options, connected, draw, seed_option
from fencepost.console.options import FILE_THAT_IS, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.impl.admin.reassignment import Proposal, Targets, Verified
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper

Needed = TypeVar("Needed")
file_type = FILE_THAT_IS


@click.command("reassign", short_help="Move partitions between brokers.")
@click.option(
    "--generate",
    "action",
    flag_value="generate",
    help="Propose where the partitions of some topics could be.",
)
@click.option("--execute", "action", flag_value="execute", help="Ask the controller to move partitions.")
@click.option(
    "--verify",
    "action",
    flag_value="verify",
    help="Report its progress; exit code 1 if it failed, 3 if it is in progress.",
)
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=file_type,
    help='For --generate: {"version":1,"topics":[{"topic":"t"}]}',
)
@click.option("--broker-list", metavar="1,2,3", help="For --generate: the brokers that may have them.")
@click.option(
    "--reassignment-json-file",
    "reassignment_file",
    type=file_type,
    help="For --execute and --verify: what --generate proposed.",
)
@seed_option
@cluster_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    action: str | None,
    topics_file: Path | None,
    broker_list: str | None,
    reassignment_file: Path | None,
    seed: int | None,
    zookeeper: str | None,
    directory: Path,
    output: Output,
) -> ExitCode:
    """Move partitions between brokers, or change how many replicas they have.

    Files and messages are those of Kafka's kafka-reassign-partitions. Everything is checked before the one
    write. --execute prints the current assignment first; use it to move back.

    \b
    Examples
      # topics.json: {"version":1,"topics":[{"topic":"orders"}]}
      fencepost cluster reassign --generate --broker-list 2,3 \\
          --topics-to-move-json-file topics.json
      # move.json: the proposed configuration
      fencepost cluster reassign --execute --reassignment-json-file move.json
      fencepost cluster reassign --verify --reassignment-json-file move.json
    """
    if action == "generate":
        names = _needed(context, topics_file, "--topics-to-move-json-file", action)
        brokers = _brokers(context, _needed(context, broker_list, "--broker-list", action))
        with connected(zookeeper, directory) as session:
            return _generate(session, output, names, brokers, seed)
    if action is None:
        raise click.UsageError("expected one of --generate, --execute and --verify, saw none", context)
    file = _needed(context, reassignment_file, "--reassignment-json-file", action)
    with connected(zookeeper, directory) as session:
        return (_execute if action == "execute" else _verify)(session, output, file)


def _needed(context: click.Context, value: Needed | None, option: str, action: str) -> Needed:
    if value is None:
        raise click.UsageError(f"expected {option} beside --{action}, saw none", context)
    return value


def _brokers(context: click.Context, text: str) -> list[int]:
    try:
        return [int(broker) for broker in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--broker-list: expected such as 1,2,3, saw {text!r}", context) from None


def _generate(
    session: "BlockingZooKeeper", output: Output, file: Path, brokers: list[int], seed: int | None
) -> ExitCode:
    from fencepost.impl.admin.reassignment import decode_topics, encode_reassignment, generate

    topics = decode_topics(file.read_bytes(), str(file))
    proposal: Proposal = session.run(generate(topics, brokers, draw(seed), str(file)))
    output.say("Current partition replica assignment", encode_reassignment(proposal.current), "")
    output.say("Proposed partition reassignment configuration", encode_reassignment(proposal.proposed))
    return output.end(
        ExitCode.NOTHING_FOUND, {"current": _plain(proposal.current), "proposed": _plain(proposal.proposed)}
    )


def _execute(session: "BlockingZooKeeper", output: Output, file: Path) -> ExitCode:
    from fencepost.impl.admin.reassignment import decode_reassignment, encode_reassignment, execute

    targets = decode_reassignment(file.read_bytes(), str(file))
    current = session.run(execute(targets, str(file)))
    output.say("Current partition replica assignment", "", encode_reassignment(current), "")
    output.say("Save this to use as the --reassignment-json-file option during rollback")
    output.say("Successfully started reassignment of partitions.")
    return output.end(ExitCode.NOTHING_FOUND, {"current": _plain(current), "started": True})


def _verify(session: "BlockingZooKeeper", output: Output, file: Path) -> ExitCode:
    from fencepost.impl.admin.reassignment import ReassignmentProgress, decode_reassignment, verify

    verified: list[Verified] = session.run(verify(decode_reassignment(file.read_bytes(), str(file))))
    output.say("Status of partition reassignment: ")
    for one in verified:
        output.say(*one.sentences())
    output.emit(
        {
            "partitions": [
                {
                    "topic": one.partition.topic,
                    "partition": one.partition.partition,
                    "status": one.progress.name.lower(),
                    "assigned": list(one.assigned),
                    "target": list(one.target),
                }
                for one in verified
            ]
        }
    )
    seen = {one.progress for one in verified}
    if ReassignmentProgress.FAILED in seen:
        return ExitCode.FINDINGS
    return ExitCode.UNDECIDED if ReassignmentProgress.IN_PROGRESS in seen else ExitCode.NOTHING_FOUND


def _plain(targets: "Targets") -> list[dict[str, object]]:
    return [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for (topic, number), replicas in targets.items()
    ]
