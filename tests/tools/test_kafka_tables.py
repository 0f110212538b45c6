"""Kafka's names have one home, and every other list agrees with it; the script reads what a release says."""

import re
import zipfile
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode as WireError
from kio.schema.index import api_key_map

from fencepost.conformance.cases import version_cases as conformance
from fencepost.conformance.record import recorded
from fencepost.torture.protocol import PROVES_FAILURE
from fencepost.traces.kafka_names.client_errors import CODES
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.kafka_names.protocol import APIS, DOCUMENTED, ERRORS, RELEASE
from fencepost.wire import passing
from fencepost.wire.names import api_keys, api_name, asks_for_retry, error_named, error_names
from fencepost.wire.versions import APIS as SPOKEN
from tools import kafka_tables

ROOT = Path(__file__).parents[2]
BY_KEY = {api.key: api for api in APIS}
BY_CODE = {error.code: error for error in ERRORS}
SEVERAL = 25
"""Names of errors in one file that need no table of their own: the answers of one API are fewer."""
LISTS = {
    "fencepost/traces/kafka_names/protocol.py": "the home",
    "fencepost/traces/kafka_names/outcomes.py": "an enumeration, compared below",
    **dict.fromkeys(
        (f"fencepost/proxy/faults/answers/{name}.py" for name in ("row", "classic_errors", "admin_errors")),
        "which of them answer which request, compared in their own test",
    ),
}
"""Files with many names of errors, and why they cannot differ."""


def test_the_table_is_whole():
    """Rule: codes and keys are without gaps and without doubles, as Kafka's are, and what is documented of
    an API names an API and errors of the table."""
    assert [error.code for error in ERRORS] == list(range(-1, len(ERRORS) - 1))
    assert [api.key for api in APIS] == list(range(len(APIS)))
    assert len({error.name for error in ERRORS}) == len(ERRORS)
    assert set(DOCUMENTED) <= {api.name for api in APIS}
    assert frozenset().union(*DOCUMENTED.values()) <= CODES
    assert re.fullmatch(r"\d+\.\d+\.\d+", RELEASE)


def test_the_library_of_messages_agrees():
    """Rule: what kio has, it calls by Kafka's names and keys, with the same codes and the same readiness to
    try again."""
    for error in WireError:
        ours = BY_CODE[int(error)]
        assert (ours.name, ours.retriable) == (error.name.upper(), error.retriable)
        assert asks_for_retry(ours.name) is error.retriable
    for key, name in api_key_map.items():
        assert BY_KEY[key].name == "".join(word.capitalize() for word in name.split("_"))
        lowest, highest = passing.understood(key) or (-1, -1)
        assert highest <= BY_KEY[key].highest
        assert lowest >= BY_KEY[key].lowest


def test_what_cannot_be_read_is_known():
    """Rule: versions that the library of messages is too old for are few and named; the proxy hides them from
    clients (`passing`). A new release of either changes this list."""
    unread = {
        api.name: passing.understood(api.key)
        for api in APIS
        if api.spoken and passing.understood(api.key) != (api.lowest, api.highest)
    }
    assert unread == {
        "ApiVersions": (0, 4),
        "TxnOffsetCommit": (0, 5),
        "DeleteGroups": (0, 2),
        "StreamsGroupHeartbeat": (0, 0),
        "StreamsGroupDescribe": (0, 0),
        "StreamsGroupTopologyDescriptionUpdate": None,
        "UnregisterController": None,
    }
    assert all(line.split(" has ")[0] in unread for line in kafka_tables.lacking() if " has " in line)


def test_a_recorded_broker_of_the_release_speaks_what_the_table_says():
    """Rule: no version above the table's, none below but those that nobody may send (KAFKA-18659)."""
    for key, (lowest, highest) in recorded()[RELEASE].ranges.items():
        assert highest <= BY_KEY[key].highest
        assert lowest >= BY_KEY[key].lowest or BY_KEY[key].name == "Produce"


def test_every_error_has_a_value_on_the_wire():
    """Rule: also those that the library of messages is too old for; one value for each."""
    assert set(error_names()) | {"NONE"} == CODES
    for error in ERRORS:
        value = error_named(error.name)
        assert (value, value.value, value.name.upper()) == (error.code, error.code, error.name)
        assert value is error_named(error.name)
        assert value.retriable is error.retriable


def test_what_is_spoken_and_asked_is_of_the_table():
    """Rule: keys beside names elsewhere in the tree are those of the table."""
    for key, api in SPOKEN.items():
        assert api_name(key) == "".join(word.capitalize() for word in api.name.split("_"))
        assert api.highest <= BY_KEY[key].highest
    for key, name in conformance._ROWS.items():
        assert api_name(key) == name
    named = {
        "Produce": passing.PRODUCE,
        "Fetch": passing.FETCH,
        "Metadata": passing.METADATA,
        "FindCoordinator": passing.FIND_COORDINATOR,
        "DescribeCluster": passing.DESCRIBE_CLUSTER,
        "ShareFetch": passing.SHARE_FETCH,
        "ShareAcknowledge": passing.SHARE_ACKNOWLEDGE,
    }
    assert {name: api_keys()[name] for name in named} == named
    assert api_name(94) == "UnregisterController"
    assert api_name(1_000) == "API 1000"


def test_what_our_own_code_calls_an_error_is_kafkas_name():
    """Rule: the errors that judges reason about, and the codes that prove a failure to them."""
    assert {error.value for error in ErrorCode} <= CODES
    said = re.search(r'PROVES_FAILURE = .*?"""(.*?)"""', _text("fencepost/torture/protocol.py"), re.DOTALL)
    assert said is not None
    proving = [BY_CODE[code].name for code in sorted(PROVES_FAILURE)]
    assert [name for name in re.findall(r"[A-Z_]{8,}", said[1]) if name in proving] == proving


def test_there_is_no_second_list():
    """Rule: a file that names very many errors is known here with the reason why it cannot differ."""
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "fencepost").rglob("*.py")
        if len(_listed(path.read_text())) > SEVERAL
    }
    assert found == set(LISTS)


def _listed(text: str) -> set[str]:
    """Names of errors in strings; attributes of an enumeration are no second list."""
    return CODES & {
        word for part in re.findall(r'"[^"\n]*"|^[A-Z_ ]+$', text, re.M) for word in part.strip('"').split()
    }


def _text(path: str) -> str:
    return (ROOT / path).read_text()


@pytest.fixture
def jars(tmp_path):
    """Two jars as Maven serves them: schemas with comments, sources with lists."""
    clients, sources = tmp_path / "clients.jar", tmp_path / "sources.jar"
    with zipfile.ZipFile(clients, "w") as jar:
        jar.writestr(
            "common/message/FetchRequest.json", "{\n // May return NEW_ONE.\n // not NOBODY_KNOWS\n}"
        )
        jar.writestr("common/message/FetchResponse.json", '{ "about": "NOT_IN_A_COMMENT" }')
        jar.writestr("common/message/LeaderChangeMessage.json", "// NEW_ONE")
    with zipfile.ZipFile(sources, "w") as jar:
        folder = "org/apache/kafka/common/requests"
        listed = "/**\n * Possible error codes:\n * {@link Errors#OLD_ONE}\n * OTHER_ONE(29)\n */ class X {}"
        jar.writestr(f"{folder}/FetchResponse.java", listed + "/** NOT_IN_A_COMMENT */")
        jar.writestr(f"{folder}/OffsetsForLeaderEpochResponse.java", listed)
        jar.writestr(f"{folder}/FetchRequest.java", listed.replace("OLD_ONE", "NOT_IN_A_COMMENT"))
    return clients, sources


def test_the_script_reads_lists_and_comments(jars):
    """Rule: the lists of response classes and the comments of schemas, by API, and known names only."""
    errors = {"NEW_ONE", "OLD_ONE", "OTHER_ONE", "NOT_IN_A_COMMENT", "NONE"}
    assert kafka_tables.documented(*jars, errors, {"Fetch", "OffsetForLeaderEpoch"}) == {
        "Fetch": ("NEW_ONE", "OLD_ONE", "OTHER_ONE"),
        "OffsetForLeaderEpoch": ("OLD_ONE", "OTHER_ONE"),
    }


def test_the_script_says_what_is_missing(tmp_path, monkeypatch, capsys):
    """Rule: a jar that is not there is named with how to get it, and exit code 2."""
    monkeypatch.setattr(kafka_tables, "REPOSITORY", tmp_path)
    monkeypatch.setattr("sys.argv", ["kafka_tables", "9.9.9"])
    assert kafka_tables.main() == 2
    said = capsys.readouterr().err
    assert "saw none; get org.apache.kafka:kafka-clients:9.9.9 by Maven" in said


def test_the_script_says_what_changed(tmp_path, monkeypatch, capsys):
    """Rule: line by line, exit code 1 until it is written; what is written is what stands here."""
    names = [f"{e.code} {e.name} {'retriable' if e.retriable else '-'} {e.exception}" for e in ERRORS]
    apis = [f"{a.key} {a.name} {a.lowest} {a.highest}" for a in APIS]
    monkeypatch.setattr(kafka_tables, "_jar", lambda version, kind="": tmp_path)
    monkeypatch.setattr(kafka_tables, "documented", lambda *_: {k: sorted(v) for k, v in DOCUMENTED.items()})
    monkeypatch.setattr(kafka_tables, "names", lambda jar: (names, apis))
    sources = re.search(r"sources of (\S+);", kafka_tables.HOME.read_text())
    assert sources is not None
    monkeypatch.setattr("sys.argv", ["kafka_tables", RELEASE, sources[1]])
    assert kafka_tables.main() == 0
    names.append("137 ODD_ONE - OddOneException")
    assert kafka_tables.main() == 1
    assert "+137 ODD_ONE - OddOneException\n" in capsys.readouterr().out
