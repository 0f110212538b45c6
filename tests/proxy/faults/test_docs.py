"""docs/reference/request-faults.md says what the tables say."""

from pathlib import Path

from fencepost.proxy.faults import ALLOWED, SHAPES, VERBS, parse

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "request-faults.md").read_text()


def test_every_verb_and_shape_is_documented():
    """Rule: with what happens."""
    for verb in VERBS.values():
        assert f"| {verb.says}" in TEXT
    for shape, says in SHAPES.items():
        assert f"| `{shape}` | {says}" in TEXT


def test_the_examples_are_true(capsys):
    """Rule: each runs as it stands, and the last prints every error of the table for its API."""
    for example in TEXT.split("```python\n")[1:]:
        exec(compile(example.split("```")[0], "docs/reference/request-faults.md", "exec"), {})
    printed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert printed == {*ALLOWED["Fetch"].any_time, *ALLOWED["Fetch"].only_if, "UNKNOWN_SERVER_ERROR"}
    assert parse("forget member of group g, 3rd").nth == 3
