"""What is asked of both sides: one script of commands of Apache Kafka's shell tools and kcat, in order.

Owns the commands. Must not know who answers. In arguments and input, {bootstrap} is where clients connect,
{home} a scratch folder of the side, {log1} the folder of broker 1's logs.
"""

import json

from attrs import frozen

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "elect": "org.apache.kafka.tools.LeaderElectionCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
}
"""The main class of each tool."""
TOOLS_OF_3 = {
    "dump-log": "kafka.tools.DumpLogSegments",
    "console-producer": "kafka.tools.ConsoleProducer",
}
"""Where 3.9 has it elsewhere."""
KCAT = "kcat"


@frozen(kw_only=True)
class Step:
    """One command.

    name: stable, for the report. tool: of TOOLS, or KCAT. arguments: after the tool's name. stdin: what it
    reads. unordered: the tool prints its lines in no order. files: written before it, in {home}, by name.
    departure: why the answers may differ; empty if they must not. departs: in which version of the tools; "":
    in all.
    """

    name: str
    tool: str
    arguments: tuple[str, ...]
    stdin: str = ""
    unordered: bool = False
    files: tuple[tuple[str, str], ...] = ()
    departure: str = ""
    departs: str = ""


def step(name: str, tool: str, line: str, **fields: object) -> Step:
    """A step from a line of words."""
    where = "-b" if tool == KCAT else "--bootstrap-server"
    address = () if tool == "dump-log" else (where, "{bootstrap}")
    if tool in ("producer-perf-test",):
        address = ()
    return Step(name=name, tool=tool, arguments=(*address, *line.split()), **fields)  # type: ignore[arg-type]


def _plan(*moves: tuple[str, int, list[int]]) -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}
        for topic, number, replicas in moves
    ]
    return json.dumps({"version": 1, "partitions": partitions})


TOPICS = json.dumps({"version": 1, "topics": [{"topic": "moved"}]})
MOVE = (("plan.json", _plan(("moved", 0, [2, 3]), ("moved", 1, [1, 3]))),)
WRONG = (("plan.json", _plan(("moved", 0, [2, 9]), ("nobody", 0, [1]))),)
THROTTLED = (("plan.json", _plan(("moved", 0, [1, 2]))),)
ELECTION = (("elect.json", json.dumps({"partitions": [{"topic": "moved", "partition": 1}]})),)
DELETION = (
    (
        "delete.json",
        json.dumps({"partitions": [{"topic": "lines", "partition": 0, "offset": 3}], "version": 1}),
    ),
)
LINES = "".join(f"k{number}:value {number}\n" for number in range(10))
HEADERS = "h1:one,h2:two\tkey\tvalue with headers\n"
PLACED = "--replica-assignment 1:2:3,2:3:1,3:1:2"
BATCHED = "--producer-property batch.size=1 --request-required-acks -1 --sync"
KEYED = "--property parse.key=true --property key.separator=:"
FROM_THE_START = "--from-beginning --timeout-ms 20000"
AGES = "settings of later releases, and defaults that changed, are not there"
NO_DYNAMIC = "a broker's settings do not change while it runs"
NO_QUOTAS = "quotas, and throttles of reassignments, are not there"
NO_MAX_TIMESTAMP = "ListOffsets 7, which finds the greatest time, is not spoken"
ELR = (
    "4.x sets min.insync.replicas for the cluster by itself when it keeps eligible leader replicas (KIP-966)"
)
AS_KRAFT = "an assignment to a broker that is not there is refused, as from 4.0 on"
GROUP_ID = (
    "DescribeGroups 6, with an error of its own for an unknown group, is not spoken; 3.9 prints what we do"
)

CREATION = (
    step("create", "topics", f"--create --topic lines {PLACED}"),
    step(
        "create with settings",
        "topics",
        "--create --topic set --replica-assignment 1:2:3 --config retention.ms=3600000",
    ),
    step("create again", "topics", f"--create --topic lines {PLACED}"),
    step("create if absent", "topics", "--create --if-not-exists --topic lines --partitions 1"),
    step("create with a wrong name", "topics", "--create --topic a/b --partitions 1"),
    step("create with too many replicas", "topics", "--create --topic many --replication-factor 4"),
    step("create with no partition", "topics", "--create --topic none --partitions 0"),
    step("create with a wrong setting", "topics", "--create --topic bad --config retention.ms=soon"),
    step("create with an unknown setting", "topics", "--create --topic bad --config retention.years=1"),
    step("list topics", "topics", "--list"),
    step("describe topics", "topics", "--describe --exclude-internal"),
    step("describe one topic", "topics", "--describe --topic lines"),
    step("describe an absent topic", "topics", "--describe --topic absent"),
    step("more partitions", "topics", "--alter --topic set --partitions 2"),
    step("fewer partitions", "topics", "--alter --topic lines --partitions 2"),
    step("as many partitions", "topics", "--alter --topic lines --partitions 3"),
    step("under-replicated", "topics", "--describe --under-replicated-partitions"),
    step("unavailable", "topics", "--describe --unavailable-partitions"),
    step("at min ISR", "topics", "--describe --at-min-isr-partitions"),
    step(
        "with overrides",
        "topics",
        "--describe --topics-with-overrides --exclude-internal",
        departure=ELR,
        departs="4",
    ),
)
CONFIGURATION = (
    step("describe a topic's settings", "configs", "--describe --topic set", unordered=True),
    step(
        "describe all of a topic's settings",
        "configs",
        "--describe --all --topic set",
        unordered=True,
        departure=AGES,
    ),
    step(
        "alter settings", "configs", "--alter --topic set --add-config max.message.bytes=1048588,flush.ms=7"
    ),
    step("describe altered settings", "configs", "--describe --topic set", unordered=True),
    step("delete a setting", "configs", "--alter --topic set --delete-config flush.ms"),
    step("delete a setting that is not there", "configs", "--alter --topic set --delete-config flush.ms"),
    step("alter to a wrong value", "configs", "--alter --topic set --add-config retention.ms=soon"),
    step("alter an unknown setting", "configs", "--alter --topic set --add-config retention.years=1"),
    step("alter an absent topic", "configs", "--alter --topic absent --add-config retention.ms=1"),
    step("describe settings of an absent topic", "configs", "--describe --topic absent"),
    step("describe a broker's changed settings", "configs", "--describe --broker 1"),
    step(
        "describe all settings of a broker",
        "configs",
        "--describe --all --broker 1",
        unordered=True,
        departure=AGES,
    ),
    step(
        "alter a broker",
        "configs",
        "--alter --broker 1 --add-config log.cleaner.threads=2",
        departure=NO_DYNAMIC,
    ),
    step("describe quotas of a user", "configs", "--describe --entity-type users", departure=NO_QUOTAS),
)
RECORDS = (
    step("write lines", "console-producer", f"--topic lines {BATCHED} {KEYED}", stdin=LINES),
    step(
        "write headers",
        "console-producer",
        f"--topic set {BATCHED} --property parse.headers=true --property parse.key=true",
        stdin=HEADERS,
    ),
    *(
        step(
            f"write {codec}",
            "console-producer",
            f"--topic lines {KEYED} --compression-codec {codec}",
            stdin=f"k0:in {codec}\n",
        )
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ),
    step(
        "write to a topic that is made",
        "console-producer",
        "--topic made --request-required-acks all",
        stdin="first\n",
    ),
    step(
        "read lines",
        "console-consumer",
        f"--topic lines {FROM_THE_START} --max-messages 15 --property print.key=true --property "
        f"print.partition=true",
        unordered=True,
    ),
    step(
        "read one partition from an offset",
        "console-consumer",
        "--topic lines --partition 1 --offset 1 --max-messages 1 --timeout-ms 20000 --property "
        "print.offset=true",
    ),
    step(
        "read headers",
        "console-consumer",
        f"--topic set {FROM_THE_START} --max-messages 1 --property print.headers=true --property "
        f"print.key=true",
    ),
    step(
        "read in a group",
        "console-consumer",
        f"--topic lines --group g {FROM_THE_START} --max-messages 15",
        unordered=True,
    ),
    step("read on in a group", "console-consumer", "--topic lines --group g --timeout-ms 3000"),
    step("read an absent topic", "console-consumer", "--topic absent --partition 0 --timeout-ms 2000"),
    step("first offsets", "get-offsets", "--topic lines --time -2"),
    step("last offsets", "get-offsets", "--topic lines --time -1"),
    step("offset of a time", "get-offsets", "--topic lines --time 1000"),
    step(
        "offset of the greatest time",
        "get-offsets",
        "--topic lines --time max-timestamp",
        unordered=True,
        departure=NO_MAX_TIMESTAMP,
    ),
    step(
        "offsets of some partitions",
        "get-offsets",
        "--topic-partitions lines:0-1,set --exclude-internal-topics",
    ),
    step("offsets of an absent topic", "get-offsets", "--topic absent"),
    step("delete records", "delete-records", "--offset-json-file {home}/delete.json", files=DELETION),
    step("first offsets after it", "get-offsets", "--topic lines --time earliest"),
    step("sizes of logs", "log-dirs", "--describe --topic-list lines"),
    step("create a topic for speed", "topics", "--create --topic perf --partitions 3"),
    step(
        "producer-perf-test",
        "producer-perf-test",
        "--topic perf --num-records 2000 --record-size 100 --throughput -1 --producer-props "
        "bootstrap.servers={bootstrap} acks=all",
    ),
    step("consumer-perf-test", "consumer-perf-test", "--topic perf --messages 2000 --group perf"),
)
GROUPS = (
    step("list groups", "groups", "--list", unordered=True),
    step("list groups with states", "groups", "--list --state", unordered=True),
    step("describe a group", "groups", "--describe --group g", unordered=True),
    step("describe a group's members", "groups", "--describe --group g --members"),
    step("describe a group's state", "groups", "--describe --group g --state"),
    step("describe an absent group", "groups", "--describe --group absent", departure=GROUP_ID, departs="4"),
    step(
        "reset offsets, dry run",
        "groups",
        "--reset-offsets --group g --topic lines --to-earliest --dry-run",
        unordered=True,
    ),
    step("reset offsets", "groups", "--reset-offsets --group g --topic lines:1 --shift-by -2 --execute"),
    step(
        "reset to a time",
        "groups",
        "--reset-offsets --group g --topic lines --to-datetime 2001-01-01T00:00:00.000 --execute",
        unordered=True,
    ),
    step(
        "export offsets",
        "groups",
        "--reset-offsets --group g --topic lines --to-current --export --dry-run",
        unordered=True,
    ),
    step("describe after the reset", "groups", "--describe --group g --offsets", unordered=True),
    step("delete offsets", "groups", "--delete-offsets --group g --topic lines:0"),
    step("delete a group", "groups", "--delete --group g"),
    step("delete an absent group", "groups", "--delete --group g"),
    step("list groups after it", "groups", "--list", unordered=True),
)
MOVES = (
    step("create what is moved", "topics", "--create --topic moved --replica-assignment 1:2,2:3"),
    step(
        "write to it",
        "console-producer",
        f"--topic moved {KEYED} --request-required-acks all",
        stdin="".join(f"{key}:for {key}\n" for key in "abcdef"),
    ),
    step(
        "generate a plan",
        "reassign",
        "--topics-to-move-json-file {home}/topics.json --broker-list 1,2,3 --generate",
        files=(("topics.json", TOPICS),),
    ),
    step(
        "carry out a wrong plan",
        "reassign",
        "--reassignment-json-file {home}/plan.json --execute",
        files=WRONG,
    ),
    step("carry out a plan", "reassign", "--reassignment-json-file {home}/plan.json --execute", files=MOVE),
    step("verify it", "reassign", "--reassignment-json-file {home}/plan.json --verify"),
    step("what moves", "reassign", "--list"),
    step("cancel what is over", "reassign", "--reassignment-json-file {home}/plan.json --cancel"),
    step("where it is", "topics", "--describe --topic moved"),
    step("elect", "elect", "--election-type preferred --path-to-json-file {home}/elect.json", files=ELECTION),
    step("elect again", "elect", "--election-type preferred --topic moved --partition 1"),
    step("elect in an absent topic", "elect", "--election-type preferred --topic absent --partition 0"),
    step("elect everywhere", "elect", "--election-type preferred --all-topic-partitions"),
    step("elect uncleanly", "elect", "--election-type unclean --topic moved --partition 0"),
    step("where it is then", "topics", "--describe --topic moved"),
    step(
        "carry out with a throttle",
        "reassign",
        "--reassignment-json-file {home}/plan.json --execute --throttle 1000000",
        files=THROTTLED,
        departure=NO_QUOTAS,
    ),
)
FILES = (
    step("dump a log", "dump-log", "--files {log1}/lines-1/00000000000000000000.log --print-data-log"),
    step("dump a log's headers", "dump-log", "--files {log1}/set-0/00000000000000000000.log"),
    step("dump deeply", "dump-log", "--deep-iteration --files {log1}/lines-0/00000000000000000000.log"),
    step(
        "dump what is moved", "dump-log", "--files {log1}/moved-1/00000000000000000000.log --print-data-log"
    ),
)
KCATS = (
    step("metadata", KCAT, "-L -t lines", unordered=True),
    step("metadata in JSON", KCAT, "-L -J -t lines"),
    step("produce", KCAT, "-P -t set -p 1 -K : -H a=b -z lz4", stdin="key:from kcat\n"),
    step("consume", KCAT, "-C -t set -p 1 -o beginning -e -q -f %k|%s|%h|%o|%p\\n"),
    step(
        "consume in a group",
        KCAT,
        "-G kcat set -o beginning -e -q -c 2 -f %s\\n -X auto.offset.reset=earliest",
        unordered=True,
    ),
    step("query offsets", KCAT, "-Q -t lines:1:-1 -t lines:1:-2"),
    step("produce an absent codec's topic", KCAT, "-P -t zipped -z zstd -X acks=all", stdin="x\n"),
)
DELETION_STEPS = (
    step("delete a topic", "topics", "--delete --topic made"),
    step("delete an absent topic", "topics", "--delete --topic made"),
    step("delete if there", "topics", "--delete --if-exists --topic made"),
    step("list what is left", "topics", "--list --exclude-internal"),
    step("cluster id", "cluster", "cluster-id"),
    step(
        "create with an unknown replica",
        "topics",
        "--create --topic bad --replica-assignment 1:9",
        departure=AS_KRAFT,
        departs="3",
    ),
)
SCRIPT = (*CREATION, *CONFIGURATION, *RECORDS, *GROUPS, *MOVES, *FILES, *KCATS, *DELETION_STEPS)
