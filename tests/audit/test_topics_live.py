"""`fencepost audit --source --target` against two clusters: a healthy copy, one with five faults, a cleaner,
transactions, groups, a kill, and every sentence about what cannot be compared."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from attrs import evolve
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

import fencepost.kafka
from fencepost.audit.topics import topic_audit, topic_cluster
from fencepost.audit.topics.topic_store import Side, TopicStore
from fencepost.cli import run
from fencepost.impl.messages.admin_api import DescribeConfigsRequest
from fencepost.impl.messages.broker_api import FetchRequest, ListOffsetsRequest
from fencepost.impl.messages.group_api import OffsetFetchRequest
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TransactionOptions
from fencepost.wire.outward import TRANSLATIONS

PATIENCE_S = 600


@pytest.fixture(scope="module")
def clusters():
    """Two: what is copied, and where to."""
    options = TransactionOptions(state_topic_partitions=1)
    with (
        fencepost.kafka.cluster(brokers=1, transactions=options) as source,
        fencepost.kafka.cluster(brokers=1, transactions=options) as target,
    ):
        yield source, target


@pytest.fixture
def audit(clusters, capsys) -> Callable:
    """audit(topic, options) -> exit code, the JSON object; as_text: what a person reads."""

    def call(topic, *options, as_text=False):
        capsys.readouterr()
        code = run(["audit", *sides(clusters, topic), *map(str, options), *([] if as_text else ["--json"])])
        told = capsys.readouterr().out
        return int(code), told if as_text else json.loads(told)

    return call


def sides(clusters, topic):
    """The options."""
    names = [f"{cluster.bootstrap_servers.split(',')[0]}/{topic}" for cluster in clusters]
    return ["--source", names[0], "--target", names[1]]


def write(cluster, topic, partition, records, **options):
    """Records (key, value, time in ms), one a batch where options say so."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **options})
    for key, value, time in records:
        producer.produce(topic, value, key, partition, timestamp=time)
    producer.flush(PATIENCE_S)


def topics_of(cluster):
    """Their names."""
    return Producer({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=PATIENCE_S).topics


def records(count, partition=0):
    return [(b"k%d" % (n % 5), b"%d of %d" % (n, partition), 1_000 + n) for n in range(count)]


def two_topics(clusters, topic, mine, copy, config=None):
    """A topic at both sides. mine, copy: records by partition."""
    for cluster, parts in zip(clusters, (mine, copy), strict=True):
        cluster.create_topic(topic, partitions=len(parts), replication_factor=1, config=config or {})
        for number, part in enumerate(parts):
            write(cluster, topic, number, part)


def test_a_whole_copy_has_no_finding_and_nothing_is_changed(clusters, audit):
    """Other offsets, other batches; no topic more afterwards."""
    mine = [records(300, 0), records(200, 1)]
    two_topics(clusters, "whole", mine, [[], []])
    target = clusters[1]
    for number, part in enumerate(mine):
        transactional(target, "whole", number, [(b"x", b"aborted", 1)], commit=False)
        write(target, "whole", number, part, **{"linger.ms": 0, "batch.num.messages": 7})
    code, told = audit("whole")
    assert (code, told["findings"], told["notes"], told["not_judged"]) == (0, {}, {}, [])
    assert (told["source_records"], told["target_records"]) == (500, 500)
    assert told["matched_by"].endswith("headers and timestamp")
    code, _ = audit("nowhere")
    assert code == 2 and not any("nowhere" in topics_of(one) for one in clusters)


def test_a_copy_with_five_faults_has_five_findings(clusters, audit):
    """Each with its partition and offsets, in words and as JSON."""
    mine = [records(50, 0), records(50, 1), records(50, 2)]
    copy = [list(part) for part in mine]
    copy[1].append(copy[0].pop(40))  # in another partition
    del copy[0][30]
    copy[0].insert(25, copy[0][20])
    copy[1][10], copy[1][15] = copy[1][15], copy[1][10]  # of one key
    copy[2][7] = (copy[2][7][0], b"other", copy[2][7][2])
    two_topics(clusters, "faults", mine, copy)
    code, told = audit("faults")
    assert code == 1
    assert told["findings"].keys() == {
        *("missing", "doubled", "reordered", "reordered_by_key", "altered", "other_partition")
    }
    places = {one["kind"]: one for one in told["places"]}
    assert (places["missing"]["partition"], places["missing"]["source_offset"]) == (0, 30)
    assert (places["doubled"]["partition"], places["doubled"]["detail"]) == (0, "of offset 20 of the source")
    assert places["altered"]["detail"] == "offset 7 of the target has another value"
    assert (places["other_partition"]["source_offset"], places["reordered"]["partition"]) == (40, 1)
    code, text = audit("faults", as_text=True)
    assert code == 1 and "finding: altered, 1 record: at the place of a record" in text
    assert "partition 0, offset 40 of the source: the copy is offset 50 of partition 1" in text


def transactional(cluster, topic, partition, rows, *, commit):
    """Records of one transaction."""
    name = f"{topic}-{partition}-{rows[0][1]!r}"
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for key, value, time in rows:
        producer.produce(topic, value, key, partition, timestamp=time)
    producer.flush(PATIENCE_S)
    (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)


def test_what_was_aborted_is_not_there(clusters, audit):
    """Aborted records are no missing ones, markers leave gaps; an open transaction is not judged."""
    two_topics(clusters, "committed", [records(5)], [records(5)])
    source, target = clusters
    transactional(source, "committed", 0, [(b"k", b"no", 1), (b"k", b"neither", 2)], commit=False)
    transactional(source, "committed", 0, [(b"k", b"yes", 3)], commit=True)
    write(target, "committed", 0, [(b"k", b"yes", 3)])
    write(source, "committed", 0, [(b"k", b"last", 4)])
    write(target, "committed", 0, [(b"k", b"last", 4)])
    code, told = audit("committed")
    assert (code, told["findings"], told["source_records"]) == (0, {}, 7)
    producer = Producer({"bootstrap.servers": source.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("committed", b"open", partition=0)
    producer.flush(PATIENCE_S)
    code, told = audit("committed")
    assert (code, told["findings"]) == (0, {}) and "an open transaction" in told["not_judged"][0]
    producer.abort_transaction(PATIENCE_S)
    producer = Producer({"bootstrap.servers": target.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for cluster, sender in ((source, None), (target, producer)):
        if sender is None:
            write(cluster, "committed", 0, [(b"k", b"hidden", 5)])
        else:
            sender.produce("committed", b"hidden", b"k", 0, timestamp=5)
            sender.flush(PATIENCE_S)
    code, told = audit("committed")
    assert (code, told["findings"], told["notes"]) == (0, {}, {"unclear": 1})
    producer.commit_transaction(PATIENCE_S)
    assert audit("committed")[1]["notes"] == {}


def test_a_compacted_topic_may_lack_older_values(clusters, audit):
    """Without the policy they are missing; the latest of a key may never be."""
    mine = [(b"k%d" % (n % 3), b"%d" % n, n) for n in range(1, 20)]
    two_topics(clusters, "latest", [mine], [mine[-6:]], {"cleanup.policy": "compact"})
    assert audit("latest")[1]["notes"] == {"compacted": 13} and audit("latest")[0] == 0
    two_topics(clusters, "lost", [mine], [mine[-6:-1]], {"cleanup.policy": "compact"})
    code, told = audit("lost")
    assert (code, told["findings"]) == (1, {"missing": 1})
    two_topics(clusters, "deleted", [mine], [mine[-6:]])
    assert audit("deleted")[1]["findings"] == {"missing": 13}


def commit(cluster, group, topic, offset):
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_group_is_translated_by_the_record_it_points_at(clusters, audit):
    """Offsets at the target are higher by three: records that were there before."""
    extra = [(b"x", b"before %d" % n, n) for n in range(3)]
    two_topics(clusters, "groups", [records(20)], [[*extra, *records(20)]])
    commit(clusters[0], "fresh", "groups", 5)
    for group, offset in (("late", 12), ("early", 5), ("beyond", 99)):
        commit(clusters[0], group, "groups", 5)
        commit(clusters[1], group, "groups", offset)
    code, told = audit("groups", "--groups", "fresh,late,early,unknown")
    rows = {one["group"]: one for one in told["groups"]}
    assert code == 0 and {one["translated"] for one in rows.values()} == {8}
    assert rows["fresh"]["goes_on"] is None
    assert rows["fresh"]["earliest"] == {"skips": 0, "repeats": 5}
    assert rows["fresh"]["latest"] == {"skips": 15, "repeats": 0}
    assert rows["late"]["goes_on"] == {"skips": 4, "repeats": 0}
    assert rows["early"]["goes_on"] == {"skips": 0, "repeats": 3}
    assert any("unknown" in line and "committed nothing" in line for line in told["not_judged"])
    code, told = audit("groups", "--groups", "beyond")
    assert code == 1 and told["groups"][0]["group_beyond_end"]


def test_a_kill_loses_nothing_that_was_read(clusters, audit, tmp_path, monkeypatch):
    """Killed after each answer again and again, --resume ends with the result of a call that was not."""
    mine = [records(40, 0), records(40, 1)]
    copy = [mine[0][:20] + mine[0][21:], mine[1]]
    two_topics(clusters, "resumed", mine, copy)
    expected = audit("resumed")[1]
    monkeypatch.setattr(topic_cluster, "FETCH_BYTES", 300)
    whole, fetches = TopicStore.add, []

    def add(self, extent, position, rows, *rest):
        fetches.append(len(rows))
        whole(self, extent, position, rows, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TopicStore, "add", add)
        code = 130
        for _ in range(500):
            code = run(["audit", *sides(clusters, "resumed"), "--out", str(tmp_path), "--resume"])
            if code != 130:
                break
    assert code == 1 and len(fetches) > 2 and sum(fetches) == 159
    code, told = audit("resumed", "--out", tmp_path, "--resume")
    assert told == expected
    code, told = audit("resumed", "--out", tmp_path)
    assert code == 2 and "--resume goes on" in told["error"]
    code, told = audit("whole", "--out", tmp_path, "--resume")
    assert code == 2 and "expected the state of" in told["error"]
    (tmp_path / topic_audit.STATE).write_bytes(b"no such file" * 1000)
    code, told = audit("whole", "--out", tmp_path, "--resume")
    assert code == 2 and "file is not a database" in told["error"]


@pytest.fixture
def while_reading(monkeypatch):
    """while_reading(side, what) does something once, after the first answer about that side; answers are
    small."""

    def call(side, what):
        monkeypatch.setattr(topic_cluster, "FETCH_BYTES", 300)
        whole, done = TopicStore.add, []

        def add(self, extent, *rest):
            whole(self, extent, *rest)
            if extent.side is side and not done:
                done.append(what())

        monkeypatch.setattr(TopicStore, "add", add)

    return call


def small(cluster, topic, rows):
    """Records in small batches, so that an answer has few of them."""
    for at in range(0, len(rows), 5):
        write(cluster, topic, 0, rows[at : at + 5])


def test_a_source_that_grows_is_compared_up_to_its_first_end(clusters, audit, while_reading):
    """What is written to both while they are read is no finding, also where it equals an earlier record."""
    two_topics(clusters, "growing", [[]], [[]])
    mine = [(None, b"ping", 1), *records(20)]
    for cluster in clusters:
        small(cluster, "growing", mine)
    while_reading(Side.SOURCE, lambda: [write(one, "growing", 0, mine[:3]) for one in clusters])
    code, told = audit("growing")
    assert (code, told["findings"], told["source_records"]) == (0, {}, 21)
    two_topics(clusters, "mirrored", [records(9)], [[]])
    write(clusters[0], "mirrored", 0, [(None, b"ping", 1)])
    write(clusters[1], "mirrored", 0, [*records(9), (None, b"ping", 1), (None, b"ping", 1)])
    assert audit("mirrored")[1]["findings"] == {"doubled": 1}
    while_reading(Side.SOURCE, lambda: write(clusters[0], "mirrored", 0, [(None, b"ping", 1)]))
    code, told = audit("mirrored")
    assert (code, told["notes"]) == (0, {"later": 1})


def test_records_that_expire_while_they_are_read_are_not_judged(clusters, audit, while_reading):
    """The log start of the target overtakes the reader: what is gone is said, and no finding."""
    two_topics(clusters, "overtaken", [records(20)], [[]])
    small(clusters[1], "overtaken", records(20))
    admin = AdminClient({"bootstrap.servers": clusters[1].bootstrap_servers})

    def expire():
        (done,) = admin.delete_records([TopicPartition("overtaken", 0, 12)]).values()
        done.result(PATIENCE_S)

    while_reading(Side.TARGET, expire)
    code, told = audit("overtaken")
    assert (code, told["findings"]) == (0, {}) and told["notes"]["unclear"] > 0
    assert any("lost while it was read" in line for line in told["not_judged"])


@pytest.fixture
def answers(monkeypatch):
    """answers(request, error, times) makes brokers give that error to the first requests of a kind."""
    monkeypatch.setattr(topic_cluster, "PAUSE_S", 0.0)
    monkeypatch.setattr(topic_cluster, "TRIES", 5)

    def call(request, error, times=10**9):
        whole, left = TRANSLATIONS[request], [error] * min(times, 100)

        def tell(asked, answer):
            told = whole.tell(asked, answer)
            if not left:
                return told
            code = left.pop()
            for name in ("partitions", "resources"):
                if hasattr(told, name):
                    return replace(told, **{name: (replace(getattr(told, name)[0], error=code),)})
            return replace(told, error=code)

        monkeypatch.setitem(TRANSLATIONS, request, evolve(whole, tell=tell))

    return call


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (FetchRequest, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ListOffsetsRequest, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (FetchRequest, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_refusal_is_one_sentence(clusters, audit, answers, request_, error):
    """Who refused what, and what to do; exit code 2."""
    two_topics(clusters, f"refused-{request_.__name__}-{error}", [records(3)], [records(3)])
    answers(request_, error)
    code, told = audit(f"refused-{request_.__name__}-{error}")
    assert code == 2 and "of partition 0, saw " + error in told["error"]
    assert "needs DESCRIBE and READ" in told["error"] or "--resume goes on" in told["error"]


def test_roles_that_move_are_waited_for(clusters, audit, answers):
    """A leader that is no longer one and a coordinator that loads are asked again."""
    two_topics(clusters, "moves", [records(3)], [records(3)])
    commit(clusters[0], "mover", "moves", 1)
    answers(FetchRequest, ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
    answers(OffsetFetchRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 3)
    code, told = audit("moves", "--groups", "mover")
    assert (code, told["not_judged"], told["groups"][0]["translated"]) == (0, [], 1)


def test_refused_settings_and_groups_are_not_judged(clusters, audit, answers):
    """Without the policy a topic is taken to be compacted, which is said; a refused group is one line."""
    two_topics(clusters, "hidden", [records(10)], [records(10)[5:]])
    answers(DescribeConfigsRequest, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers(OffsetFetchRequest, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    code, told = audit("hidden", "--groups", "g")
    assert (code, told["notes"]) == (0, {"compacted": 5})
    assert any("the target is compacted: its settings are refused" in line for line in told["not_judged"])
    assert any("GROUP_AUTHORIZATION_FAILED" in line for line in told["not_judged"])


SLOWLY = """
import time
from fencepost.audit.topics import topic_cluster
from fencepost.audit.topics.topic_store import TopicStore
from fencepost.cli import main
topic_cluster.FETCH_BYTES = 300
add = TopicStore.add
def told(*arguments):
    add(*arguments)
    print("read", flush=True)
    time.sleep(600)
TopicStore.add = told
main()
"""


def test_kill_9_between_two_answers(clusters, audit, tmp_path):
    """The process dies at once; what it had written is taken."""
    two_topics(clusters, "killed", [records(40)], [records(40)])
    line = [sys.executable, "-c", SLOWLY, "audit", *sides(clusters, "killed"), "--out", str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "read\n"
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    store = TopicStore.open(tmp_path / topic_audit.STATE)
    (extent,) = store.extents(Side.SOURCE)
    assert 0 < store.count(Side.SOURCE) <= extent.next <= 40
    store.close()
    code, told = audit("killed", "--out", tmp_path, "--resume")
    assert (code, told["source_records"], told["target_records"]) == (0, 40, 40)


def test_what_cannot_be_compared_is_one_sentence(clusters, audit, fresh_error):
    """A topic that is not there, another count of partitions, nobody at the address, wrong usage."""
    assert "expected the topic nowhere" in fresh_error("nowhere") and "DESCRIBE" in fresh_error("nowhere")
    clusters[0].create_topic("counts", partitions=2, replication_factor=1)
    clusters[1].create_topic("counts", partitions=3, replication_factor=1)
    assert "as many partitions at the target as at the source, 2, saw 3" in fresh_error("counts")


@pytest.fixture
def fresh_error(audit):
    def call(topic):
        code, told = audit(topic)
        assert code == 2
        return told["error"]

    return call


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--source", "a:1/t"], "expected both --source and --target"),
        (["--source", "a:1", "--target", "a:1/t"], "expected HOST:PORT/TOPIC, saw 'a:1'"),
        (["--source", "a:x/t", "--target", "a:1/t"], "expected HOST:PORT"),
        (["--source", "a:1/t", "--target", "a:1/t", "1=x"], "or directories, saw options of both"),
        (["--source", "a:1/t", "--target", "a:1/t", "--resume"], "expected --out with --resume"),
        (["--source", "a:1/t", "--target", "a:1/t", "--source-config", "none"], "--source-config"),
        ([], "expected NAME=DIR, or --source and --target"),
    ],
)
def test_wrong_usage_is_one_sentence(options, sentence, capsys):
    """Exit code 2, and what was expected."""
    assert run(["audit", *options]) == 2
    told = capsys.readouterr().err
    assert sentence in told and "Traceback" not in told
