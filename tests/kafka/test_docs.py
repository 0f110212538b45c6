"""docs/how-to/embedded.md is what the program does: its examples run, its tables name every call and
parameter."""

import inspect
import re
from pathlib import Path

import fencepost.kafka
from fencepost.kafka import KafkaCluster
from fencepost.run.faults.table import EMBEDDED_FAULTS, FAULTS

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "embedded.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)


def test_the_first_example_runs_as_it_stands(capsys):
    """Rule: whoever types it sees a pass with what was exercised."""
    exec(compile(EXAMPLES[0], "docs/how-to/embedded.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.match(r"\d+ appends \(2 acknowledged\) and 0 reads by clients; 1 crash; [1-9]", printed), (
        printed
    )


def test_every_call_is_documented():
    """Rule: the table has each public method of the handle, with its parameters and their defaults."""
    documented = dict(re.findall(r"`(\w+)\(([^`]*)\)`", TEXT))
    public = {
        name: method
        for name, method in vars(KafkaCluster).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    for name, method in public.items():
        shown = []
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            default = parameter.default
            text = "" if default is inspect.Parameter.empty else f"={default!r}"
            shown.append(parameter.name + text)
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
