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
    told = fencepost("convert", path, "--out", tmp_path / "by-time.jsonl", "--json")
    assert told.json["taken"] == [sentence]
    assert fencepost("check", tmp_path / "by-time.jsonl", "--model", "register", "--initial", "1").code == 0
    fencepost("convert", path, "--out", tmp_path / "by-file.jsonl", "--order", "file")
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
    told = fencepost("convert", path, "--out", tmp_path / "keyed.jsonl", "--json")
    assert "2 keys" in told.json["taken"][0]
    path.write_text(KEYED.replace(":value [8 4]", ":value 4"))
    told = fencepost("check", path, "--model", "register")
    assert told.code == 2 and "keyed.edn:3: expected [key value]" in told.sentence


RIGHT_ANSWERS = [
    ("04b-independent.edn", ("--model", "cas-register"), 0, "2 keys"),
    ("28-file-order-not-time.edn", ("--model", "register", "--initial", "0"), 0, ""),
    ("28b-kafka-order-not-time.edn", (), 0, ""),
]


@pytest.mark.parametrize(("name", "options", "code", "says"), RIGHT_ANSWERS)
def test_cases_have_their_right_answers(fencepost, name: str, options, code: int, says: str) -> None:
    """Inputs as people have them get the answer that is known of them."""
    if not (CASES / name).exists():
        pytest.skip(f"no case {name} beside the repository")
    told = fencepost("check", CASES / name, *options)
    assert (told.code, says in told.out + told.err) == (code, True)
