"""Topics, reassignments and preferred elections through a real ZooKeeper: what is written, what is said, and
that a mistake writes nothing."""

import json
import shlex

import pytest

from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, Create, Data, Delete, GetChildren, GetData, SetData
from fencepost.impl.zookeeper.znodes import LeaderAndIsr

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A real server with the registrations of three brokers and no broker."""
    pytest.importorskip("kazoo")
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import ZooKeeperServer

    with (
        ZooKeeperServer.start(tmp_path_factory.mktemp("zookeeper")) as server,
        BlockingZooKeeper(server.address) as session,
    ):
        for path in znodes.PERSISTENT_PATHS:
            session.ask(Create(path))
        for broker in (1, 2, 3):
            session.ask(Create(znodes.broker_path(broker), znodes.encode_broker(broker, 0), ephemeral=True))
        yield session


def everything(session, path="/"):
    """Every node below, with its data and version."""
    found = {}
    for name in session.ask(GetChildren(path)).names:
        child = f"{path.rstrip('/')}/{name}"
        if child != "/zookeeper":
            node = session.ask(GetData(child))
            found[child] = (node.data, node.stat.version)
            found |= everything(session, child)
    return found


@pytest.fixture
def clean(session):
    """Topics t (2 partitions, led by 1 and 2) and `gone` (marked for deletion), and nothing asked for."""

    def remove(path):
        reply = session.ask(GetChildren(path))
        for name in reply.names if isinstance(reply, Children) else ():
            remove(f"{path}/{name}")
        session.ask(Delete(path))

    for path in (
        znodes.TOPICS,
        znodes.DELETE_TOPICS,
        znodes.CONFIG,
        znodes.REASSIGN,
        znodes.PREFERRED_ELECTION,
    ):
        remove(path)
    session.ask(Create(znodes.TOPICS))
    session.ask(Create(znodes.DELETE_TOPICS))
    assignments = {"t": {0: (1, 2), 1: (2, 3)}, "gone": {0: (1,)}}
    for topic, assignment in assignments.items():
        session.ask(Create(znodes.topic_path(topic), znodes.encode_topic(assignment)))
        session.ask(Create(f"{znodes.topic_path(topic)}/partitions"))
        for number, replicas in assignment.items():
            state = LeaderAndIsr(leader=replicas[0], leader_epoch=3, controller_epoch=1, isr=replicas[:1])
            path = f"{znodes.topic_path(topic)}/partitions/{number}"
            session.ask(Create(path))
            session.ask(Create(f"{path}/state", znodes.encode_state(state)))
    session.ask(Create(znodes.delete_topic_path("gone")))
    return session


@pytest.fixture
def admin(clean, fencepost, monkeypatch):
    """A command against that server, on the one session: to open and close one takes longer than what the
    command does.

    The class itself is changed, not a module's name for it: a module imported meanwhile would keep what that
    name was.
    """
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper

    monkeypatch.setattr(BlockingZooKeeper, "__enter__", lambda self: clean)
    monkeypatch.setattr(BlockingZooKeeper, "__exit__", lambda self, *error: None)

    def call(*arguments):
        return fencepost(*arguments, "--zookeeper", clean.address)

    return call


def assigned(session, topic):
    """What stands in the topic's node."""
    reply = session.ask(GetData(znodes.topic_path(topic)))
    assert isinstance(reply, Data)
    return znodes.decode_topic(reply.data)


# ---- topics


def test_create_places_replicas_and_writes_both_nodes(clean, admin):
    """Rule (C14): replicas are spread over the live brokers, the same for the same seed; the topic and its
    configuration appear together."""
    told = admin("cluster topics create new --partitions 6 --replication-factor 2 --seed 5 --json")
    assert told.code == 0 and told.json["topic"] == "new"
    placed = assigned(clean, "new")
    assert {len(set(replicas)) for replicas in placed.values()} == {2}
    assert sorted(replicas[0] for replicas in placed.values()) == [1, 1, 2, 2, 3, 3]
    assert clean.ask(GetData(znodes.config_path("new"))).data == b'{"version":1,"config":{}}'
    admin("cluster topics create again --partitions 6 --replication-factor 2 --seed 5")
    assert assigned(clean, "again") == placed


def test_create_by_hand(clean, admin):
    """Rule: an assignment in Kafka's notation is taken as it is; a configuration that an earlier topic left
    behind is reset."""
    assert admin("cluster topics create again").code == 0
    clean.ask(SetData(znodes.config_path("again"), b"old"))
    clean.ask(Delete(znodes.topic_path("again")))
    assert admin("cluster topics create again --replica-assignment 3:1,1:2").out == "Created topic again.\n"
    assert assigned(clean, "again") == {0: (3, 1), 1: (1, 2)}
    assert clean.ask(GetData(znodes.config_path("again"))).data == b'{"version":1,"config":{}}'


def test_list_and_describe(admin):
    """Rule: what ZooKeeper says of each partition, as a table and as JSON; the filters leave out the rest."""
    assert admin("cluster topics list").out == "gone - marked for deletion\nt\n"
    told = admin("cluster topics describe t --json").json["partitions"]
    assert told[0] == {
        "topic": "t", "partition": 0, "leader": 1, "leader_epoch": 3, "replicas": [1, 2], "isr": [1],
        "reassigned_to": None, "marked_for_deletion": False,
    }  # fmt: skip
    assert "marked for deletion" in admin("cluster topics describe").out
    under = admin("cluster topics describe --under-replicated --json").json["partitions"]
    assert [(one["topic"], one["partition"]) for one in under] == [("t", 0), ("t", 1)]
    assert admin("cluster topics describe --unavailable --json").json["partitions"] == []


def test_partitions_are_added(clean, admin):
    """Rule (C14): the ones that are there stay, new ones get as many replicas; fewer are refused."""
    assert admin("cluster topics alter t --partitions 5").out == "Adding partitions succeeded!\n"
    placed = assigned(clean, "t")
    assert (placed[0], placed[1]) == ((1, 2), (2, 3)) and [len(placed[number]) for number in (2, 3, 4)] == [
        2
    ] * 3


def test_settings_are_altered_and_brokers_notified(clean, admin):
    """Rule (Z, /config/topics/T, /config/changes): each change is written with its notification, at creation
    too; what is not named stays."""

    def notified():
        names = clean.ask(GetChildren(znodes.CONFIG_CHANGES)).names
        nodes = [clean.ask(GetData(f"{znodes.CONFIG_CHANGES}/{name}")) for name in names]
        return [znodes.decode_config_change(node.data) for node in nodes]

    settings = ("--config", "min.insync.replicas=2", "--config", "retention.ms=9")
    assert admin("cluster topics create new", *settings).code == 0
    assert admin("cluster topics create plain").code == 0
    assert notified() == ["new"]
    told = admin("cluster topics alter new --config retention.bytes=7 --delete-config retention.ms")
    assert told.out == "Altered the settings of topic new: min.insync.replicas=2, retention.bytes=7\n"
    assert notified() == ["new", "new"]
    told = admin("cluster topics describe new")
    assert told.out.splitlines()[-1] == "new: min.insync.replicas=2, retention.bytes=7"
    told = admin("cluster topics describe --json")
    assert told.json["configurations"] == {"new": {"min.insync.replicas": "2", "retention.bytes": "7"}}
    assert admin("cluster topics alter t --config retention.ms=-1 --json").json == {
        "topic": "t", "config": {"retention.ms": "-1"}, "exit_code": 0,
    }  # fmt: skip
    assert notified()[2:] == ["t"]


def test_delete_marks_the_topic(clean, admin):
    """Rule (C14): the request stands below /admin; a second one is refused."""
    assert admin("cluster topics delete t").out == "Topic t is marked for deletion.\n"
    assert isinstance(clean.ask(GetData(znodes.delete_topic_path("t"))), Data)
    assert "saw t, which is marked for deletion" in admin("cluster topics delete t").sentence


# ---- reassignment


@pytest.fixture
def file(tmp_path):
    """A JSON file of this content."""

    def write(content):
        path = tmp_path / "file.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def move(*entries):
    """A reassignment file's content: (topic, partition, replicas) each."""
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": partition, "replicas": replicas}
            for topic, partition, replicas in entries
        ],
    }


def test_generate_proposes_and_execute_takes_it(clean, admin, file, tmp_path):
    """Rule (C13): the proposal has as many replicas on the brokers named, nothing is written; its file is
    taken by --execute, whose output is a file for the way back."""
    before = everything(clean)
    topics = file({"version": 1, "topics": [{"topic": "t"}]})
    told = admin(
        "cluster reassign --generate --topics-to-move-json-file", topics, "--broker-list", "1,3", "--seed", 1
    )
    lines = told.out.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[3] == "Proposed partition reassignment configuration"
    proposed = json.loads(lines[4])
    assert all(
        set(entry["replicas"]) == {1, 3} and entry["log_dirs"] == ["any", "any"]
        for entry in proposed["partitions"]
    )
    assert everything(clean) == before
    chosen = tmp_path / "proposed.json"
    chosen.write_text(lines[4])
    told = admin("cluster reassign --execute --reassignment-json-file", chosen)
    assert told.code == 0 and told.out.endswith("Successfully started reassignment of partitions.\n")
    written = znodes.decode_reassignments(clean.ask(GetData(znodes.REASSIGN)).data)
    assert {tuple(key): list(ids) for key, ids in written.items()} == {
        (entry["topic"], entry["partition"]): entry["replicas"] for entry in proposed["partitions"]
    }
    back = json.loads(told.out.splitlines()[2])
    assert [entry["replicas"] for entry in back["partitions"]] == [[1, 2], [2, 3]]


def test_verify_tells_what_became_of_each(clean, admin, file):
    """Rule (C13): in progress (exit code 3), completed (0), failed (1), in Kafka's words; the order of
    replicas counts."""
    path = file(move(("t", 0, [2, 1]), ("t", 1, [2, 3])))
    told = admin("cluster reassign --verify --reassignment-json-file", path)
    assert told.code == 1 and told.out.splitlines() == [
        "Status of partition reassignment: ",
        "ERROR: Assigned replicas (1,2) don't match the list of replicas for reassignment (2,1) for "
        "partition t-0",
        "Reassignment of partition t-0 failed",
        "Reassignment of partition t-1 completed successfully",
    ]
    assert admin("cluster reassign --execute --reassignment-json-file", path).code == 0
    told = admin("cluster reassign --verify --reassignment-json-file", path, "--json")
    assert (told.code, {one["status"] for one in told.json["partitions"]}) == (3, {"in_progress"})
    clean.ask(SetData(znodes.topic_path("t"), znodes.encode_topic({0: (2, 1), 1: (2, 3)})))
    clean.ask(Delete(znodes.REASSIGN))
    told = admin("cluster reassign --verify --reassignment-json-file", path)
    assert told.code == 0 and told.out.count("completed successfully") == 2


def test_an_election_is_asked_for(clean, admin, file):
    """Rule (C15): of the partitions of a file, or of all that stay; a second one waits for the first."""
    told = admin("cluster elect preferred --json")
    assert told.json["partitions"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    again = admin("cluster elect preferred")
    assert again.code == 2 and "expected no preferred replica election in progress" in again.sentence
    clean.ask(Delete(znodes.PREFERRED_ELECTION))
    path = file({"partitions": [{"topic": "t", "partition": 1}]})
    assert admin("cluster elect preferred --path-to-json-file", path).out == (
        "Successfully started preferred replica election for partitions t-1\n"
    )
    asked = znodes.decode_partitions(clean.ask(GetData(znodes.PREFERRED_ELECTION)).data)
    assert [str(key) for key in asked] == ["t-1"]


# ---- mistakes

EXECUTE = ("cluster reassign", "--execute", "--reassignment-json-file")
ELECT = ("cluster elect preferred", "--path-to-json-file")
MISTAKES = [
    ("cluster topics create t", "topic t: expected a new topic, saw one that exists"),
    ("cluster topics create gone", "saw one that exists, which is marked for deletion"),
    (
        "cluster topics create 'a b'",
        "expected a name of 1 to 249 letters, digits, dots, underscores and hyphens, saw 'a b'",
    ),
    (
        "cluster topics create x --replication-factor 4",
        "expected a replication factor from 1 to 3, the number of brokers, saw 4",
    ),
    (
        "cluster topics create x --replica-assignment 1:9",
        "partition x-0: expected replicas on live brokers (1, 2, 3), saw broker 9",
    ),
    (
        "cluster topics create x --replica-assignment 1:1",
        "partition x-0: expected each broker once, saw replicas 1, 1",
    ),
    (
        "cluster topics create x --replica-assignment 1:2,3",
        "expected as many replicas for every partition, saw 1 and 2",
    ),
    ("cluster topics create x --replica-assignment 1:b", "expected such as 1:2,2:3, saw '1:b'"),
    ("cluster topics create x --partitions 100000", "bytes in one ZooKeeper request (its jute.maxbuffer)"),
    ("cluster topics delete nosuch", "delete: expected a topic that exists, saw 'nosuch'"),
    ("cluster topics delete gone", "expected a topic that stays, saw gone, which is marked for deletion"),
    ("cluster topics describe nosuch", "expected a topic that exists, saw 'nosuch'"),
    (
        "cluster topics alter t --partitions 2",
        "expected more than its 2 partitions: their number can only be increased, saw 2",
    ),
    (
        "cluster topics create x --config made.up=1",
        "topic x: expected one of the settings cleanup.policy, delete.retention.ms, flush.messages, ",
    ),
    (
        "cluster topics create x --config min.insync.replicas=0",
        "topic x: min.insync.replicas: expected a whole number from 1 to 16, saw '0'",
    ),
    (
        "cluster topics create x --config retention.ms",
        "expected such as retention.ms=60000, saw 'retention.ms'",
    ),
    ("cluster topics alter t", "expected either --partitions or settings to change, saw neither"),
    (
        "cluster topics alter t --partitions 4 --config retention.ms=1",
        "either --partitions or settings to change, saw both",
    ),
    (
        "cluster topics alter t --config cleanup.policy=sometimes",
        "cleanup.policy: expected delete, compact or compact,delete, saw 'sometimes'",
    ),
    (
        "cluster topics alter t --config unclean.leader.election.enable=maybe",
        "expected true or false, saw 'maybe'",
    ),
    (
        "cluster topics alter t --config retention.ms=1 --config retention.ms=2",
        "expected each name once, saw retention.ms twice",
    ),
    (
        "cluster topics alter t --config retention.ms=1 --delete-config retention.ms",
        "expected each setting once, saw retention.ms twice",
    ),
    (
        "cluster topics alter t --delete-config retention.ms",
        "expected a setting that the topic has of its own, saw 'retention.ms'",
    ),
    (
        "cluster topics alter nosuch --config retention.ms=1",
        "alter: expected a topic that exists, saw 'nosuch'",
    ),
    (
        "cluster topics alter gone --config retention.ms=1",
        "expected a topic that stays, saw gone, which is marked for deletion",
    ),
    ("cluster reassign", "expected one of --generate, --execute and --verify, saw none"),
    ("cluster reassign --execute", "expected --reassignment-json-file beside --execute, saw none"),
]
IN_FILES = [
    (
        EXECUTE,
        "{",
        'file.json: expected {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}, saw '
        "Input data was truncated",
    ),
    (
        EXECUTE,
        '{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
        "saw Expected `int`, got `str` - at `$.partitions[0].partition`",
    ),
    (
        EXECUTE,
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"leader":1}]}',
        "unknown field `leader`",
    ),
    (EXECUTE, move(), "expected at least one partition, saw none"),
    (EXECUTE, move(("t", 0, [1, 2]), ("t", 0, [2, 3])), "expected each partition once, saw t-0 twice"),
    (EXECUTE, move(("nosuch", 0, [1, 2])), "expected a topic that exists, saw 'nosuch'"),
    (EXECUTE, move(("gone", 0, [1])), "expected a topic that stays, saw gone"),
    (EXECUTE, move(("t", 7, [1, 2])), "expected a partition of t, of which there are 2, saw t-7"),
    (
        EXECUTE,
        move(("t", 0, [1, 9])),
        "partition t-0: expected replicas on live brokers (1, 2, 3), saw broker 9",
    ),
    (
        EXECUTE,
        move(("t", 0, [1, 2, 3, 4])),
        "partition t-0: expected at most 3 replicas, the number of brokers, saw 4",
    ),
    (EXECUTE, move(("t", 0, [1, 1])), "partition t-0: expected each broker once, saw replicas 1, 1"),
    (EXECUTE, move(("t", 0, [])), "partition t-0: expected at least one replica, saw none"),
    (ELECT, {"partitions": [{"topic": "t", "partition": 9}]}, "expected a partition that exists, saw t-9"),
    (
        ELECT,
        {"partitions": [{"topic": "t", "partition": 0}] * 2},
        "expected each partition once, saw t-0 twice",
    ),
    (ELECT, {"partitions": 7}, "Expected `array`, got `int`"),
]


@pytest.mark.parametrize(
    ("arguments", "content", "sentence"),
    [*((shlex.split(line), None, sentence) for line, sentence in MISTAKES), *IN_FILES],
    ids=str,
)
def test_a_mistake_is_told_in_one_sentence_and_writes_nothing(
    clean, admin, file, arguments, content, sentence
):
    """Rule: expected, seen and where, exit code 2, and ZooKeeper as it was, to the last version."""
    before = everything(clean)
    if content is not None:
        arguments = (*arguments, file(content))
    told = admin(*arguments)
    assert told.code == 2 and sentence in told.sentence, told.err
    assert everything(clean) == before


def test_a_reassignment_in_progress_keeps_others_out(clean, admin, file):
    """Rule (C13): a second one is refused, and so are new partitions of the topic; the first stays as it
    was."""
    assert admin(*EXECUTE, file(move(("t", 0, [2, 3])))).code == 0
    before = everything(clean)
    for command in (
        (*EXECUTE, file(move(("t", 1, [1, 3])))),
        ("cluster topics alter", "t", "--partitions", 4),
    ):
        told = admin(*command)
        assert told.code == 2 and "reassignment" in told.sentence
    assert "there is an existing assignment running" in admin(*EXECUTE, file(move(("t", 1, [1, 3])))).sentence
    assert everything(clean) == before


def test_whoever_comes_second_is_told(clean, monkeypatch, fencepost, file):
    """Rule: the write itself decides, not the look before it: between the two another tool was faster."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper

    ask = BlockingZooKeeper.ask

    def slowly(self, request):
        if isinstance(request, Create) and request.path == znodes.REASSIGN:
            ask(self, Create(znodes.REASSIGN, znodes.encode_reassignments({})))
        return ask(self, request)

    monkeypatch.setattr(BlockingZooKeeper, "ask", slowly)
    told = fencepost(*EXECUTE, file(move(("t", 0, [2, 3]))), "--zookeeper", clean.address)
    assert told.code == 2 and "there is an existing assignment running" in told.sentence


def test_a_server_that_is_not_there(fencepost, tmp_path):
    """Rule: neither a server that does not answer nor a directory without a cluster is waited for."""
    told = fencepost("cluster topics list --zookeeper 127.0.0.1:1")
    assert (
        told.code == 2 and "expected a ZooKeeper server that answers `srvr`, saw no answer" in told.sentence
    )
    told = fencepost("cluster topics list --directory", tmp_path)
    assert told.code == 2 and "expected a cluster that was brought up here" in told.sentence
