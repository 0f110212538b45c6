"""The pages on the embedded cluster are what the program does: their examples run, their tables name every
call and parameter."""

import inspect
import re
from pathlib import Path

import pytest

import fencepost.kafka
from fencepost.campaign.failure import RunFailedError
from fencepost.kafka import KafkaCluster
from fencepost.kafka.assertions.asserting import Assertions
from fencepost.run.faults.table import EMBEDDED_FAULTS, FAULTS
from tests.kafka.clients import producer

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / folder / "embedded.md").read_text() for folder in ("how-to", "reference"))
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)


def test_the_first_example_runs_as_it_stands(capsys):
    """Rule: whoever types it sees a pass with what was exercised."""
    exec(compile(EXAMPLES[0], "docs/how-to/embedded.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.match(r"\d+ appends \(2 acknowledged\) and 0 reads by clients; 1 crash; [1-9]", printed), (
        printed
    )


def test_the_faults_of_the_page_are_what_they_say():
    """Rule: each call of the example is one that can be made, and the cluster recovers."""
    example = next(one for one in EXAMPLES if "power_off" in one)
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("orders", partitions=2)
        exec(compile(example, "docs/how-to/embedded.md", "exec"), {"kafka": kafka})
        kafka.assert_ok()


def test_every_call_is_documented():
    """Rule: the table has each public method of the handle, with its parameters and their defaults."""
    documented = dict(re.findall(r"`(\w+)\(([^`]*)\)`", TEXT))
    public = {
        name: method
        for name, method in {**vars(Assertions), **vars(KafkaCluster)}.items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    for name, method in public.items():
        shown = []
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            default = parameter.default
            text = "" if default is inspect.Parameter.empty else f"={default!r}"
            star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
            shown.append(star + parameter.name + text)
        words = documented[name].replace("_000", "000").replace('"', "'")
        assert words == ", ".join(shown).replace("=60.0", "=60"), name


def test_every_parameter_and_fault_is_documented():
    """Rule: the table of parameters is the signature of cluster(); faults beyond the plans' are named."""
    parameters = inspect.signature(fencepost.kafka.cluster).parameters
    rows = dict(re.findall(r"^\| `(\w+)=([^`]*)` \|", TEXT, flags=re.M))
    expected = {
        name: repr(parameter.default)
        for name, parameter in parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    assert {name: value.replace("_", "") for name, value in rows.items()} == expected
    for kind in EMBEDDED_FAULTS.keys() - FAULTS.keys():
        assert f"`{kind}`" in TEXT


def test_the_assertions_of_ones_own_run_as_they_stand():
    """Rule: whoever types them has assertions that hold of a right service, and fail with the words of the
    page when an invoice is missing."""
    example = next(one for one in EXAMPLES if "assert_that" in one)
    outputs = re.findall(r"```text\n(.*?)```", TEXT, flags=re.S)
    shown = next(one for one in outputs if "assert_output" in one)
    for missing in (None, 3):
        with fencepost.kafka.cluster(brokers=1) as kafka:
            for topic in ("orders", "invoices"):
                kafka.create_topic(topic)
            with producer(kafka) as client:
                for number in range(5):
                    client.send("orders", key=b"%d" % number, value=b"order %d" % number).get(60)
                    if number != missing:
                        key, value = b"%d" % number, b"invoice for order %d" % number
                        client.send("invoices", key=key, value=value).get(60)
            code = compile(example, "docs/how-to/embedded.md", "exec")
            if missing is None:
                exec(code, {"kafka": kafka})
                continue
            with pytest.raises(RunFailedError) as caught:
                exec(code, {"kafka": kafka})
            assert str(caught.value).startswith(shown)
