"""The control port of an embedded cluster, asked over a real socket."""

import http.client
import json
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import fencepost.kafka
from fencepost.kafka.control_port import control_port, verbs_of
from fencepost.kafka.handle import KafkaCluster
from fencepost.proxy.control.server import TOKEN
from tests.kafka.clients import produce, producer


@pytest.fixture
def ask(tmp_path):
    """ask(verb, **arguments) -> (status, answer), of a cluster with a control port."""
    with (
        fencepost.kafka.cluster(brokers=1, seed=5) as kafka,
        control_port(kafka, 0, tmp_path, seed=5) as port,
    ):
        token = (tmp_path / TOKEN).read_text().strip()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

        def call(verb, **arguments):
            headers = {"Authorization": f"Bearer {token}"}
            connection.request("POST", f"/{verb}", json.dumps(arguments), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

        call.kafka, call.folder = kafka, tmp_path
        yield call
        connection.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "fencepost control"]


def test_a_test_in_another_language_drives_it(ask):
    """Rule: state, a topic, a fault that strikes, heal, the verdict, assertions; the token is its owner's."""
    assert stat.S_IMODE((ask.folder / TOKEN).stat().st_mode) == 0o600
    assert ask("seed") == (200, {"seed": 5})
    assert ask("create_topic", name="orders") == (200, {"0": [1]})
    status, fault = ask("fault", text="lose answer to Produce on orders-0, once")
    assert status == 200 and fault["request_fault"] == 1
    with producer(ask.kafka, enable_idempotence=False) as client:
        produce(client, [1], topic="orders")
    assert ask("request_faults")[1][0]["hits"] == 1
    assert ask("state")[1]["struck"] == {"lose_answer": 1}
    assert ask("heal") == (200, {}) and ask("request_faults") == (200, [])
    assert ask("verdict")[1]["decision"] == "ok"
    status, said = ask("assert_no_duplicates", topic="orders")
    assert status == 200 and said["ok"] is False and "is in the log at offsets 0, 1" in said["report"]
    assert ask("assert_no_loss")[1]["ok"] is True


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        ("fault", {"text": "loose answer to Produce"}, "did you mean lose answer?"),
        ("fault", {"text": "answer OFFSET_OUT_OF_RANGE to Fetch"}, "what a correct broker may do"),
        ("crash", {"broker": "one"}, "broker of type"),
        ("crash", {"broker": 1, "brokers": 1}, "unexpected keyword argument"),
        ("crash", {"broker": 9}, "broker 9"),
        ("records", {"topic": "none"}, "a topic that exists"),
    ],
)
def test_a_mistake_gets_a_sentence(ask, verb, arguments, words):
    """Rule: nothing happens, and the port goes on."""
    status, said = ask(verb, **arguments)
    assert status == 409 and words in said["error"], said
    assert ask("state")[0] == 200


class Extended(KafkaCluster):
    """A handle with one method more of each sort."""

    def _ask(self, verb, **arguments):
        return {}

    def close(self):
        """End it."""

    def skew(self, broker: int, sides: tuple[str, ...] = ()) -> dict[str, int]:
        """Plain values in, plain values out."""
        return {"broker": broker}

    def judged_by(self, judge: Callable[..., int]) -> int:
        """What no other language can give."""
        return judge()


def test_verbs_are_the_methods_of_the_handle():
    """Rule: a method with plain values is a verb as soon as it is there; one that takes or answers what only
    Python has is none; and the port ends no cluster."""
    verbs = verbs_of(Extended(bootstrap_servers="", brokers=(1,)), 1)
    assert verbs["skew"](1) == {"broker": 1}
    assert not {"judged_by", "save_trace", "trace", "until", "service", "request_fault", "close"} & {*verbs}


def test_the_page_names_every_verb():
    """Rule: docs/reference/control.md has all of them, and no other."""
    page = (Path(__file__).parents[2] / "docs/reference/control.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert {*re.findall(r"`(\w+)`", " ".join(rows))} == {
        *verbs_of(Extended(bootstrap_servers="", brokers=(1,)), 1)
    } - {"skew"}
