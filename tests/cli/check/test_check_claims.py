"""`fencepost check` with claims from outside, and the counts that it reports of logs."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.cli import run
from fencepost.record.claimed import claimed
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import read_traces, write_traces

HEAD = {"type": "trace", "trace_id": 1, "plan": "", "seed": 1, "software_version": "real"}


def append(op_id: int, value: int, offset: int, **more: object) -> dict:
    """An append of one record to t-0."""
    return {
        "type": "operation",
        "op_id": op_id,
        "process": op_id,
        "function": "append",
        "invoke_time": 0,
        "outcome": "ok",
        "completion_time": 1,
        "topic": "t",
        "partition": 0,
        "acks": -1,
        "offset": offset,
        "records": [{"topic": "t", "partition": 0, "offset": -1, "value": value}],
        **more,
    }


def poll(op_id: int, records: list[tuple[int, int]], **more: object) -> dict:
    """A strong poll of t-0 from its beginning to the end 300."""
    return {
        "type": "operation",
        "op_id": op_id,
        "process": op_id,
        "function": "poll",
        "invoke_time": 2,
        "outcome": "ok",
        "completion_time": 3,
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "end_offset": 300,
        "strong": True,
        "records": [{"topic": "t", "partition": 0, "offset": o, "value": v} for o, v in records],
        **more,
    }


def written(path: Path, *rows: dict, **head: object) -> Path:
    """A file with one trace."""
    path.write_text("\n".join(json.dumps(row) for row in ({**HEAD, **head}, *rows)))
    return path


def check(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict]:
    """Exit code and answer of the command."""
    capsys.readouterr()
    code = run(
        [
            "check",
            str(path),
            "--jobs",
            "1",
            "--json",
            *(more if "--checks" in more else ("--checks", "kafka", *more)),
        ]
    )
    return code, json.loads(capsys.readouterr().out)


LOST_BY_LEADER = [append(n, n, n, acks=1) for n in range(172)] + [
    append(500, 500, 0),
    poll(900, [(0, 500)], end_offset=1),
]


def test_what_acks_1_lost_is_no_silent_ok(tmp_path, capsys) -> None:
    """172 records lost with acks=1: undecided until somebody says that they may be lost; counted either
    way."""
    path = written(tmp_path / "h.jsonl", *LOST_BY_LEADER)
    code, answer = check(path, capsys)
    assert (code, answer["decisions"]) == (3, {"assumption_broken": 1})
    assert answer["log"]["lost"]["1"] == {"allowed": 0, "not_allowed": 172}
    code, answer = check(path, capsys, "--acks-1-may-lose")
    assert (code, answer["decisions"]) == (0, {"ok": 1})
    assert answer["log"]["lost"]["1"] == {"allowed": 172, "not_allowed": 0}
    assert len(answer["log"]["lost_values"]) == 172


def test_lost_records_are_listed(tmp_path, capsys) -> None:
    """All with --json, the first hundred for a person; the counts stand with each verdict and in all."""
    sent = [append(n, n, n) for n in range(300)]
    path = written(tmp_path / "h.jsonl", *sent, poll(900, [(n, n) for n in range(50)] + [(299, 299)]))
    code, answer = check(path, capsys)
    assert (code, answer["anomalies"]) == (1, {"skipped_offset": 1})
    assert [one["offset"] for one in answer["log"]["lost_values"]] == list(range(50, 299))
    assert answer["verdicts"][0]["log"]["lost"]["all"] == {"allowed": 0, "not_allowed": 249}
    capsys.readouterr()
    assert run(["check", str(path), "--checks", "log", "--jobs", "1", "--explain", "0"]) == 1
    told = capsys.readouterr().out
    assert "records: 300 acknowledged (300 with acks=all); 249 lost; 0 never read;" in told
    assert told.count("  lost: ") == 100
    assert "and 149 more (all of them: --json)" in told


DUPLICATED = [append(1, 10, 0), poll(2, [(0, 10), (1, 10)], end_offset=2)]


def test_duplicates_are_allowed_from_outside(tmp_path, capsys) -> None:
    """A producer that retried without idempotence: a finding, unless the caller knows better; one
    duplicated value either way."""
    path = written(tmp_path / "h.jsonl", *DUPLICATED)
    assert check(path, capsys)[0] == 1
    for more in (("--allow-duplicates",), ("--claims", str(tmp_path / "claims.json"))):
        (tmp_path / "claims.json").write_text('{"duplicates": true}')
        code, answer = check(path, capsys, *more)
        assert (code, answer["log"]["duplicated"]) == (0, 1)


def test_several_processes_are_given_the_claims(tmp_path, capsys) -> None:
    """What was claimed reaches every worker."""
    for name in ("a", "b", "c"):
        written(tmp_path / f"{name}.jsonl", *DUPLICATED)
    capsys.readouterr()
    assert (
        run(["check", str(tmp_path), "--jobs", "2", "--json", "--allow-duplicates", "--checks", "log"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["log"]["duplicated"] == 3


GONE = [
    append(1, 10, 0, key="a"),
    append(2, 20, 1, key="a"),
    poll(3, [(1, 20)], end_offset=2, log_start_offset=1),
]


@pytest.mark.parametrize(
    "settings",
    [("t:cleanup.policy=compact",), ("*:cleanup.policy=compact,delete",), ("t:retention.ms=1000",),
     ("t:unclean.leader.election.enable=true",)],
)  # fmt: skip
def test_settings_of_topics_allow_what_they_mean(tmp_path, capsys, settings) -> None:
    """Compaction, retention and unclean elections explain a record that is gone; on the command line or
    in the file, by name or for all topics."""
    path = written(tmp_path / "h.jsonl", *GONE)
    assert check(path, capsys)[0] == 1
    assert check(path, capsys, *(word for one in settings for word in ("--topic-setting", one)))[0] == 0
    topics: dict[str, dict[str, str]] = {}
    for one in settings:
        topic, _, rest = one.partition(":")
        topics.setdefault(topic, {})[rest.partition("=")[0]] = rest.partition("=")[2]
    (tmp_path / "claims.json").write_text(json.dumps({"topics": topics}))
    assert check(path, capsys, "--claims", str(tmp_path / "claims.json"))[0] == 0


BAD = [
    ("[1]", "expected a JSON object of claims, saw a value of type list"),
    ("{", "expected a JSON object of claims, saw Input data was truncated"),
    ("[" * 100_000, "expected a JSON object of claims, saw "),
    ('{"odd": 1}', "offsets_expiry_ms, topics, broker, saw 'odd'"),
    (
        '{"duplicates": 3}',
        "expected claims of the documented types, saw Expected `bool`, got `int` - at `$.duplicates`",
    ),
    (
        '{"loss": [{"topic": "t", "partition": 0, "start": 0, "end": 1, "reason": "r", "odd": 2}]}',
        "saw 'odd'",
    ),
    ('{"topics": [1]}', "expected topics as an object of objects, saw [1]"),
    ('{"topics": {"t": {"segment.bytes": 1}}}', "saw 'segment.bytes'"),
    (
        '{"topics": {"t": {"cleanup.policy": "shred"}}}',
        "expected cleanup.policy as compact, delete or both, saw 'shred'",
    ),
    ('{"topics": {"t": {"retention.ms": "long"}}}', "expected retention.ms as an integer, saw 'long'"),
    ('{"topics": {"t": {"unclean.leader.election.enable": "maybe"}}}', "as true or false, saw 'maybe'"),
    ('{"clock_uncertainty_ns": -5}', "expected clock_uncertainty_ns from 0, saw -5"),
    (
        '{"loss": [{"topic": "t", "partition": 0, "start": 5, "end": 1, "reason": "r"}]}',
        "expected ranges of loss with offsets 0 <= start <= end, saw start 5, end 1 for t-0",
    ),
    ('{"check": "strong", "check": "default"}', "saw a name twice among check, check"),
    ('{"topics": {"t": {}, "t": {}}}', "saw a name twice among t, t"),
    ('{"check": "odd"}', "expected a profile out of default, session, strong, content, saw 'odd'"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, capsys, text, said) -> None:
    """Nothing is judged; exit code 2."""
    path = written(tmp_path / "h.jsonl", *DUPLICATED)
    (tmp_path / "claims.json").write_text(text)
    assert run(["check", str(path), "--claims", str(tmp_path / "claims.json")]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error
    assert "Traceback" not in error


def test_a_setting_of_a_topic_that_no_trace_has_is_refused(tmp_path, capsys) -> None:
    """Its setting would change nothing in silence. In several traces, it is enough that one has the topic."""
    other = written(tmp_path / "u.jsonl", append(1, 10, 0, topic="u", records=[]))
    path = written(tmp_path / "t.jsonl", *GONE)
    assert run(["check", str(path), "--topic-setting", "u:cleanup.policy=compact"]) == 2
    said = capsys.readouterr()
    assert "expected a topic of the traces (t), or * for all, saw 'u'" in " ".join(said.err.split())
    assert said.out == "", "an explanation would belong to another question"
    assert check(path, capsys, "--topic-setting", "*:cleanup.policy=compact")[0] == 0
    for jobs in ("1", "2"):
        run(["check", str(path), str(other), "--jobs", jobs, "--topic-setting", "u:cleanup.policy=compact"])
        said = capsys.readouterr()
        assert "--topic-setting" not in said.err
        assert "Watch it" in said.out


@pytest.mark.parametrize("setting", ["t", "t:cleanup.policy", ":a=b", "t:odd=1"])
def test_a_bad_setting_is_refused(tmp_path, capsys, setting) -> None:
    """So is a setting that is not understood, and a file that is not there."""
    path = written(tmp_path / "h.jsonl", *DUPLICATED)
    assert run(["check", str(path), "--topic-setting", setting]) == 2
    assert "expected" in capsys.readouterr().err
    assert run(["check", str(path), "--claims", str(tmp_path / "none.json")]) == 2
    assert "expected a readable JSON file, saw No such file or directory" in " ".join(
        capsys.readouterr().err.split()
    )


def test_more_verdicts_than_are_listed_is_said(tmp_path, capsys) -> None:
    """Thirty illegal histories: twenty are listed, and it is said that there are ten more."""
    for n in range(30):
        written(tmp_path / f"{n:02}.jsonl", *DUPLICATED)
    code, answer = check(tmp_path, capsys)
    assert (code, len(answer["verdicts"]), answer["verdicts_left_out"]) == (1, 20, 10)
    assert run(["check", str(tmp_path), "--jobs", "1", "--explain", "0"]) == 1
    assert "and 10 more with a verdict other than ok" in capsys.readouterr().out


def test_an_unknown_event_costs_that_event(tmp_path, capsys) -> None:
    """Exit code 4, and it is named; the trace is judged. Fault rows of foreign traces may say what they
    like."""
    odd = {"type": "event", "time": 1, "name": "broker_paused"}
    faults = [
        {"type": "event", "time": 1, "name": name, "cause": "kill -9", "detail": detail}
        for name in ("fault_began", "fault_ended")
        for detail in ("of broker 2", "[" * 9000, '{"fault": [1]}')
    ]
    good = [append(1, 10, 0), poll(2, [(0, 10)], end_offset=1)]
    code, answer = check(written(tmp_path / "h.jsonl", *good, *faults), capsys)
    assert (code, answer["decisions"]) == (0, {"ok": 1})
    path = written(tmp_path / "h.jsonl", *good, odd, *faults)
    code, answer = check(path, capsys)
    assert (code, answer["decisions"]) == (4, {"ok": 1})
    assert "an event of the unknown name 'broker_paused' left out" in answer["unreadable"][0]
    capsys.readouterr()
    bad = written(tmp_path / "h.jsonl", *DUPLICATED, *faults)
    assert run(["check", str(bad), "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "fault begins: kill -9" in told
    assert "virtual" not in told
    assert "seconds" in told


def test_a_stored_folder_with_an_unknown_event(tmp_path, capsys, monkeypatch) -> None:
    """The same of Parquet: `check` and mining leave the event out, name it, and judge the rest."""
    from fencepost.mining.inputs.splits import work_of
    from fencepost.mining.results.result_rows import Counts
    from fencepost.mining.spark_judge import Settings, judge_split
    from fencepost.traces import events as vocabulary
    from fencepost.traces import jsonlines
    from fencepost.traces.sealing import seal
    from fencepost.traces.store import TraceStore

    good = [append(1, 10, 0), poll(2, [(0, 10)], end_offset=1)]
    (trace,) = jsonlines.read_traces(
        written(tmp_path / "h.jsonl", *good, {"type": "event", "time": 1, "name": "mark", "cause": "m"})
    )
    odd = str.__new__(str, "broker_paused")
    from attrs import evolve

    store = TraceStore.create(tmp_path / "out")
    with store.writer(worker=0) as writer:
        writer.append(evolve(trace, events=(evolve(trace.events[0], name=odd), *trace.events)))
    assert vocabulary.Name.MARK == "mark"
    for _ in range(2):  # in the journal, then sealed
        code, answer = check(tmp_path / "out", capsys)
        assert (code, answer["decisions"]) == (4, {"ok": 1}), answer
        assert "an event of the unknown name 'broker_paused' left out" in answer["unreadable"][0]
        counts = Counts()
        (split,) = work_of([tmp_path / "out"]).splits

        class Rows:
            rows: dict[str, list] = {"quarantine": [], "lost": []}  # noqa: RUF012

            def add(self, *_: object) -> None:
                """Nothing is written."""

            def flush(self, **_: object) -> None:
                """Nothing is written."""

        judge_split(
            split, Settings(checks=("log", "invariants"), profile=None, folder=tmp_path), Rows(), counts
        )
        assert ["broker_paused" in one.reason for one in counts.quarantined] == [True]
        assert counts.operations == 2
        seal(store)


def test_the_help_names_every_format(capsys) -> None:
    """Also that of Jepsen's Kafka workload."""
    from fencepost.mining.inputs.traces import FORMATS

    assert run(["check", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(name in told for name in FORMATS)


LSO = [
    {**poll(n, []), "invoke_time": n * 10**12, "completion_time": n * 10**12 + 1, "strong": False,
     "isolation": "read_committed", "last_stable_offset": 4, "end_offset": 9} for n in (1, 3)
]  # fmt: skip


def test_the_configuration_of_brokers_says_what_they_may_do(tmp_path, capsys) -> None:
    """server.properties, one setting by name, or the same in the file of claims: each allows as much."""
    history = written(tmp_path / "h.jsonl", *GONE)
    config = tmp_path / "server.properties"
    for line in (
        "log.cleanup.policy=compact",
        "log.retention.ms = 1000",
        "log.retention.hours: 1",
        "log.retention.minutes 7",
        "log.retention.bytes=5",
        "unclean.leader.election.enable=true",
    ):
        config.write_text(
            f"# a comment\nbroker.id=0\n{line}\nlisteners=PLAINTEXT://:9092,\\\n  SSL://:9093\n"
        )
        assert check(history, capsys, "--broker-config", str(config))[0] == 0, line
    config.write_text("log.retention.ms=-1\nlog.cleanup.policy=delete\n")
    assert check(history, capsys, "--broker-config", str(config))[0] == 1
    assert check(history, capsys, "--broker-setting", "log.retention.hours=5")[0] == 0
    (tmp_path / "claims.json").write_text('{"broker": {"log.retention.hours": 5}}')
    assert check(history, capsys, "--claims", str(tmp_path / "claims.json"))[0] == 0
    more = ("--claims", str(tmp_path / "claims.json"), "--topic-setting", "t:retention.ms=-1")
    assert check(history, capsys, *more)[0] == 1  # the topic's own setting counts


def test_a_setting_of_brokers_bounds_progress(tmp_path, capsys) -> None:
    """A transaction may be open for as long as brokers allow; a claim by name has precedence."""
    history = written(tmp_path / "h.jsonl", *LSO)
    assert check(history, capsys, "--checks", "liveness")[0] == 1
    longer = ("--checks", "liveness", "--broker-setting", "transaction.max.timeout.ms=3600000")
    assert check(history, capsys, *longer)[0] == 0
    (tmp_path / "claims.json").write_text('{"transaction_timeout_ms": 1000}')
    assert check(history, capsys, *longer, "--claims", str(tmp_path / "claims.json"))[0] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--broker-setting", "log.retention.ms"), "expected NAME=VALUE"),
        (("--broker-setting", "log.retention=5"), "log.retention.ms"),
        (("--broker-setting", "offsets.retention.minutes=week"), "as an integer"),
        (("--broker-setting", "offsets.retention.minutes=99999999999999"), "offsets_expiry_ms"),
        (("--broker-setting", "log.cleanup.policy=shrink"), "compact, delete or both"),
        (("--broker-config", "missing.properties"), "a readable"),
    ],
)
def test_a_setting_of_brokers_that_means_nothing_is_refused(tmp_path, fencepost, options, says) -> None:
    """One sentence, and nothing is judged."""
    told = fencepost("check", written(tmp_path / "h.jsonl", *GONE), *options)
    assert told.code == 2 and says in told.sentence.replace("\n", " ")


def test_python_takes_the_same_claims(tmp_path) -> None:
    """The object of --claims, its file, and a server.properties, by `claimed`; what is not understood is
    refused as there, and the caller's object stays as it is."""
    (trace,) = read_traces(written(tmp_path / "h.jsonl", *GONE))
    config, file = tmp_path / "server.properties", tmp_path / "claims.json"
    config.write_text("log.retention.hours=1")
    stated = {"broker": {"log.retention.hours": 1}}
    file.write_text(json.dumps(stated))
    assert combine(judge(trace)).decision == "illegal"
    for one in (
        claimed(trace, stated),
        claimed(trace, file),
        claimed(trace, broker_config=config),
        claimed(trace, {"topics": {"t": {"retention.ms": 5}}}),
    ):
        assert combine(judge(one)).decision == "ok"
    assert stated == {"broker": {"log.retention.hours": 1}}
    whole = evolve(trace, digest=digest_of(trace))
    write_traces(tmp_path / "again.jsonl", [claimed(whole, stated)])
    (again,) = read_traces(tmp_path / "again.jsonl")
    assert combine(judge(again)).decision == "ok"
    with pytest.raises(FencepostError, match="saw 'odd'"):
        claimed(trace, {"odd": 1})
