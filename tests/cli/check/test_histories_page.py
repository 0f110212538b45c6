"""docs/how-to/histories.md: each row of its table is run, on a file as the row says it."""

import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "histories.md"
ROW = re.compile(r"\| (.+) \| `fencepost (check .+)` \| (\w+) \|")
ROWS = [match.groups() for match in map(ROW.fullmatch, PAGE.read_text().split("\n")) if match]
CODES = {"ok": 0, "illegal": 1, "refused": 2}


def edn(*operations: tuple[str, str, str]) -> str:
    """Operations one after another, each by a process of its own: function, what was asked, what was
    answered."""
    entry = "{{:type :{}, :f :{}, :value {}, :process {}, :time {}}}"
    return "\n".join(
        entry.format(kind, function, value, process, 10 * process + at)
        for process, (function, asked, answered) in enumerate(operations)
        for at, (kind, value) in enumerate((("invoke", asked), ("ok", answered)))
    )


LOG = "INFO  jepsen.util - "
WRITTEN = f"{LOG}0\t:invoke\t:write\t1\n{LOG}0\t:ok\t:write\t1\n"
REFUSED = f"{LOG}1\t:invoke\t:cas\t[1 2]\n{LOG}1\t:fail\t:cas\t[1 2]\n"
REGISTER = edn(("write", "7", "7"), ("read", "nil", "7"))
APPEND = {
    "type": "operation",
    "op_id": 0,
    "process": 0,
    "function": "append",
    "invoke_time": 0,
    "outcome": "ok",
    "completion_time": 1,
    "topic": "t",
    "partition": 0,
    "acks": -1,
    "offset": 0,
    "records": [{"topic": "t", "partition": 0, "offset": 0, "value": 1}],
}
LATE = (
    ("invoke", "write", 7, 0, 10),
    ("ok", "write", 7, 0, 90),
    ("invoke", "read", "nil", 1, 20),
    ("ok", "read", 1, 1, 30),
)
POLL = {**APPEND, "op_id": 1, "function": "poll", "invoke_time": 2, "completion_time": 3, "end_offset": 1}
HEAD = {"type": "trace", "trace_id": 1, "plan": "", "seed": 1, "software_version": "mine"}
PRODUCED = {"name": "producer_send_success", "key": None, "topic": "t", "partition": 0}
CONSUMED = {"name": "record_data", "key": None, "topic": "t", "partition": 0}
FILES = {
    "history.edn": REGISTER,
    "store/my-test/latest/history.edn": REGISTER,
    "store/my-test/latest/results.edn": "{:valid? true}",
    "jepsen.log": WRITTEN,
    "keyed.edn": edn(("write", "[7 3]", "[7 3]"), ("write", "[8 4]", "[8 4]"), ("read", "[7 nil]", "[7 3]")),
    "etcd.log": WRITTEN + REFUSED,
    "late.edn": "\n".join(
        "{{:type :{}, :f :{}, :value {}, :process {}, :time {}}}".format(*entry) for entry in LATE
    ),
    "kafka.edn": edn(
        ("send", "[[:send 0 1]]", "[[:send 0 [0 1]]]"), ("poll", "[[:poll]]", "[[:poll {0 [[0 1]]}]]")
    ),
    "appends.edn": edn(
        ("txn", "[[:append 0 1] [:r 1 nil]]", "[[:append 0 1] [:r 1 [1]]]"),
        ("txn", "[[:append 1 1] [:r 0 nil]]", "[[:append 1 1] [:r 0 [1]]]"),
    ),
    "registers.edn": edn(
        ("txn", "[[:w 0 1] [:w 0 2]]", "[[:w 0 1] [:w 0 2]]"), ("txn", "[[:r 0 nil]]", "[[:r 0 1]]")
    ),
    "once.edn": edn(
        ("txn", "[[:w 0 1]]", "[[:w 0 1]]"), ("txn", "[[:r 0 nil] [:r 1 nil]]", "[[:r 0 1] [:r 1 nil]]")
    ),
    "queue.edn": edn(("publish", "1", "1"), ("publish", "2", "2"), ("fetch", "nil", "[2]")),
    "set.edn": edn(("add", "1", "1"), ("add", "2", "2"), ("read", "nil", "[1]")),
    "ids.edn": edn(("generate", "nil", "4"), ("generate", "nil", "4")),
    "bank.edn": edn(
        ("transfer", "{:from 0, :to 1, :amount 5}", "{:from 0, :to 1, :amount 5}"),
        ("read", "nil", "{0 5, 1 10}"),
        ("read", "nil", "{0 10, 1 5}"),
    ),
    "counter.edn": edn(("inc", "nil", "2"), ("inc", "nil", "1")),
    "locks.json": json.dumps(
        [
            {"process": 0, "type": kind, "f": name}
            for name in ("acquire", "release")
            for kind in ("invoke", "ok")
        ]
    ),
    "verifiable.jsonl": "\n".join(
        map(
            json.dumps,
            (
                *({"timestamp": 100 + n, **PRODUCED, "value": str(n), "offset": n} for n in range(3)),
                {
                    "timestamp": 200,
                    "name": "records_consumed",
                    "count": 2,
                    "partitions": [
                        {"topic": "t", "partition": 0, "count": 2, "minOffset": 0, "maxOffset": 2}
                    ],
                },
                *({"timestamp": 201 + n, **CONSUMED, "value": str(n), "offset": n} for n in (0, 2)),
            ),
        )
    ),
    "register.jsonl": PAGE.read_text().partition("```json\n")[2].partition("```")[0],
    "history.jsonl": "\n".join(map(json.dumps, (HEAD, APPEND, POLL))),
    "server.properties": "broker.id=0\nlog.retention.hours=1\n",
    "dump.txt": "Dumping 0.log\nLog starting offset: 0\nbaseOffset: 0 lastOffset: 0 count: 1\n",
    "results.edn": "{:valid? true, :count 3}",
}
"""What a reader has, by the name that the page gives it."""


def test_every_file_is_of_a_row() -> None:
    """No row is missed by the pattern, and no file is left over."""
    commands = " ".join(command for _, command, _ in ROWS)
    named = {name for name in FILES if name.split("/")[0] in commands}
    assert named == set(FILES) and len(ROWS) == PAGE.read_text().count("`fencepost check ") - 1


@pytest.mark.parametrize(("have", "command", "answer"), ROWS)
def test_the_command_of_a_row_gives_its_answer(
    fencepost, tmp_path, monkeypatch, have, command, answer
) -> None:
    """A reader with such a file gets what the table says."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    told = fencepost(*shlex.split(command))
    assert told.code == CODES[answer], (have, told.out, told.err)
