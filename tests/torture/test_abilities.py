"""What a library refuses by itself is absent from its row, and what a broker refuses is a failure."""

from types import SimpleNamespace

import pytest

from fencepost.torture.abilities.ability_table import ABILITIES, try_out
from fencepost.torture.abilities.bench import Bench
from fencepost.torture.driver_process import Command

NULL_HEADERS = next(one for one in ABILITIES if one.name == "null headers")


class Refusing:
    """A driver of a library that takes no null values of headers."""

    ready = SimpleNamespace(commands=("assign",))

    def __init__(self, code):
        self.code = code

    def send(self, name, client, **fields):
        command = Command(number=0, name=name, client=client, fields=fields, sent_ns=0)
        null = any(value is None for _, value in fields.get("headers", ()))
        command.answer = {"event": "done", "ok": not null}
        if null:
            command.answer["error"] = {"name": "TypeError", "code": self.code, "text": "bytes are needed"}
        return command

    def ask(self, name, client, timeout_s, **fields):
        command = Command(number=0, name=name, client=client, fields=fields, sent_ns=0)
        command.answer = {"event": "done", "ok": True}
        return command

    def wait(self, commands, timeout_s):
        return True


@pytest.mark.parametrize(("driver", "outcome"), [(Refusing(None), "absent"), (Refusing(87), "failed")])
def test_a_null_header_that_the_library_refuses_is_absent(driver, outcome):
    """kafka-python raises a TypeError; it breaks nothing by that, and its other records are compared."""
    bench = Bench(driver=driver, bootstrap_servers="", create_topic=lambda name: None)
    cell = try_out(bench, NULL_HEADERS)
    assert cell.outcome == outcome and "TypeError" in cell.why
