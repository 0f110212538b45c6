"""`fencepost check` and `convert` of other people's histories: what can be read in two ways is said, and an
option says otherwise."""

from pathlib import Path

import pytest

CASES = Path(__file__).parents[4] / "shared" / "data" / "cases"

LATE = """{:type :invoke :f :write :process 0 :time 1000 :value 7}
{:type :ok :f :write :process 0 :time 9000 :value 7}
{:type :invoke :f :read :process 1 :time 2000 :value nil}
{:type :ok :f :read :process 1 :time 3000 :value 1}"""


def test_times_count_unless_the_order_of_the_file_is_demanded(fencepost, tmp_path) -> None:
    """A history that was written at completion is in the order of its times; check and convert say so, and
    --order file decides otherwise."""
    path = tmp_path / "late.edn"
    path.write_text(LATE)
    asked = ("check", path, "--model", "register", "--initial", "1", "--json")
    told = fencepost(*asked)
    assert told.code == 0
    (sentence,) = told.json["taken"]
    assert "contradict the order of the file" in sentence and sentence in told.err.replace("\n", " ")
    told = fencepost(*asked, "--order", "file")
    assert (told.code, told.json["taken"]) == (1, [])
    told = fencepost("mine convert", path, "--out", tmp_path / "by-time.jsonl", "--json")
    assert told.json["taken"] == [sentence]
    assert fencepost("check", tmp_path / "by-time.jsonl", "--model", "register", "--initial", "1").code == 0
    fencepost("mine convert", path, "--out", tmp_path / "by-file.jsonl", "--order", "file")
    assert fencepost("check", tmp_path / "by-file.jsonl", "--model", "register", "--initial", "1").code == 1


KEYED = """{:type :invoke, :f :write, :value [7 3], :process 0}
{:type :ok, :f :write, :value [7 3], :process 0}
{:type :invoke, :f :write, :value [8 4], :process 1}
{:type :ok, :f :write, :value [8 4], :process 1}
{:type :invoke, :f :read, :value [7 nil], :process 2}
{:type :ok, :f :read, :value [7 3], :process 2}"""


def test_a_keyed_history_is_one_for_each_key(fencepost, tmp_path) -> None:
    """[key value] of jepsen.independent is split by key, which is said; --not-keyed takes values whole."""
    path = tmp_path / "keyed.edn"
    path.write_text(KEYED)
    told = fencepost("check", path, "--model", "register", "--json")
    assert told.code == 0
    assert "2 keys" in told.json["taken"][0] and told.json["verdicts"][0]["parts"] == 2
    assert fencepost("check", path, "--model", "register", "--not-keyed").code == 1
    told = fencepost("mine convert", path, "--out", tmp_path / "keyed.jsonl", "--json")
    assert "2 keys" in told.json["taken"][0]
    path.write_text(KEYED.replace(":value [8 4]", ":value 4"))
    told = fencepost("check", path, "--model", "register")
    assert told.code == 2 and "keyed.edn:3: expected [key value]" in told.sentence


@pytest.mark.parametrize("options", [(), ("--checks", "log"), ("--profile", "strong"), ("--format", "edn")])
def test_a_history_that_is_no_log_needs_a_model(fencepost, tmp_path, options) -> None:
    """Without --model a history of a register is not judged as a log: the models that have its functions are
    named, whatever the other options are."""
    path = tmp_path / "register.edn"
    path.write_text(LATE)
    told = fencepost("check", path, *options)
    assert told.code == 2
    assert "expected --model for a history of read and write, saw none" in told.sentence
    assert "these have its functions: register, cas-register" in told.sentence
    assert "key-value" not in told.sentence


def test_models_are_named_by_what_they_need(fencepost, tmp_path) -> None:
    """A history with keys gets models for it; one that no model fits is sent to a model of one's own."""
    path = tmp_path / "h.json"
    path.write_text('[{"process": 0, "type": "invoke", "f": "get", "key": "a"}]')
    assert "its functions: key-value, map" in fencepost("check", path).sentence
    path.write_text(
        '[{"process": 0, "type": "invoke", "f": "acquire"}, {"process": 1, "type": "invoke", "f": "cas", '
        '"value": [1, 2]}]'
    )
    told = fencepost("check", path)
    assert told.code == 2 and "MODULE:CLASS" in told.sentence


SEND = """{:type :invoke, :f :send, :value [[:send 0 1]], :process 0}
{:type :ok, :f :send, :value [[:send 0 [0 1]]], :process 0}
{:type :invoke, :f :poll, :value [[:poll]], :process 1}
{:type :ok, :f :poll, :value [[:poll {0 [[0 1]]}]], :process 1}"""


@pytest.mark.parametrize("options", [(), ("--checks", "log"), ("--profile", "default")])
@pytest.mark.parametrize("name", ["kafka.edn", "kafka.txt", "kafka.jsonl"])
def test_the_format_is_recognised_by_content(fencepost, tmp_path, options, name: str) -> None:
    """A history is what it is, whatever the options and the name of its file are."""
    (tmp_path / name).write_text(SEND)
    told = fencepost("check", tmp_path / name, *options, "--json")
    assert (told.code, told.json["traces"], told.json["unreadable"]) == (0, 1, [])


def test_a_folder_without_traces_of_ours_is_searched_for_foreign_ones(fencepost, tmp_path) -> None:
    """The same for folders. Next to traces of ours a text is read if it begins as a history, whatever it is
    called; other texts are notes."""
    (tmp_path / "kafka.edn").write_text(SEND)
    assert fencepost("check", tmp_path, "--json").json["traces"] == 1
    fencepost("mine convert", tmp_path / "kafka.edn", "--out", tmp_path / "ours.jsonl")
    (tmp_path / "kafka.edn").rename(tmp_path / "kafka.log")
    (tmp_path / "notes.txt").write_text("no history")
    told = fencepost("check", tmp_path, "--json").json
    assert (told["traces"], told["unreadable"]) == (2, [])


RIGHT_ANSWERS = [
    ("04b-independent.edn", ("--model", "cas-register"), 0, "2 keys"),
    ("28-file-order-not-time.edn", ("--model", "register", "--initial", "0"), 0, ""),
    ("33-log-failed-cas-refused.log", ("--model", "cas-register"), 0, ""),
    ("01-extra-fields.edn", ("--model", "register", "--initial", "0"), 1, ""),
    ("02-history.txt", ("--model", "register", "--initial", "0"), 1, ""),
    ("03-jepsen.log", ("--model", "register", "--initial", "0"), 1, ""),
    ("29b-exception.edn", ("--model", "register"), 0, ""),
    ("29d-string-process.json", ("--model", "register"), 0, "c1"),
    ("12-verifiable.jsonl", (), 1, "offset 1, value 1"),
    ("13-dump-log.txt", (), 2, "fencepost log dump"),
    ("28b-kafka-order-not-time.edn", (), 0, ""),
    ("15-offsets-expired.jsonl", (), 1, "committed_offset_lost"),
    ("15-offsets-expired.jsonl", ("--broker-setting", "offsets.retention.minutes=5"), 0, ""),
    ("21-lso-stuck.jsonl", (), 1, "last_stable_offset_stands"),
    ("30-refused-in-order.jsonl", (), 1, "next_sequence_refused"),
    ("32-app-retries-failed.jsonl", (), 1, "lost_write"),
    ("05-queue-drain.edn", ("--model", "total-queue"), 1, "element_lost"),
    ("05b-queue-fail-empty.edn", ("--model", "total-queue"), 1, "element_lost"),
    ("22-nats-queue.edn", ("--model", "total-queue"), 1, "element_lost"),
    ("08-rw-register-g0.edn", (), 2, "--model rw-register"),
    ("08-rw-register-g0.edn", ("--model", "rw-register"), 1, "own_write_missed"),
    ("10-bank.edn", ("--model", "bank"), 0, ""),
    ("34-timeout-as-fail.edn", ("--model", "register"), 1, "write(638) failed"),
]


@pytest.mark.parametrize(("name", "options", "code", "says"), RIGHT_ANSWERS)
def test_cases_have_their_right_answers(fencepost, name: str, options, code: int, says: str) -> None:
    """Inputs as people have them get the answer that is known of them."""
    if not (CASES / name).exists():
        pytest.skip(f"no case {name} beside the repository")
    told = fencepost("check", CASES / name, *options)
    assert (told.code, says in told.out + told.err) == (code, True)


def test_a_folder_of_a_jepsen_test_is_one_history(fencepost, tmp_path) -> None:
    """Of the files in which a Jepsen test says the same, one is read, and which one is said."""
    test = tmp_path / "store" / "my-test" / "20240102T030405"
    test.mkdir(parents=True)
    (tmp_path / "store" / "my-test" / "latest").symlink_to(test)
    (test / "results.edn").write_text("{:valid? true}")
    (test / "test.jepsen").write_bytes(b"JEPSEN\x00\x01\xff")
    text = "0\t:invoke\t:write\t1\n0\t:ok\t:write\t1\n"
    (test / "jepsen.log").write_text("".join(f"INFO  jepsen.util - {line}\n" for line in text.splitlines()))
    for name in ("jepsen.log", "history.txt", "history.edn"):
        if name == "history.txt":
            (test / name).write_text(text)
        elif name == "history.edn":
            (test / name).write_text(LATE)
        for folder in (tmp_path / "store", tmp_path / "store" / "my-test" / "latest"):
            told = fencepost("check", folder, "--model", "register", "--initial", "1", "--json")
            assert (told.code, len(told.json["verdicts"])) == (0, 1)
            assert Path(told.json["verdicts"][0]["source"]).name == name
            assert f"a folder of a Jepsen test, of which {name} is read" in told.err.replace("\n", " ")
    told = fencepost("check", test / "test.jepsen", "--model", "register")
    assert told.code == 2 and "name history.edn in the same folder" in told.sentence
