"""docs/reference/request-faults.md says what the tables say."""

from pathlib import Path

from fencepost.proxy.faults import ALLOWED, SHAPES, VERBS, parse
from fencepost.wire.names import asks_for_retry

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "request-faults.md").read_text()


def test_every_verb_and_shape_is_documented():
    """Rule: with what happens."""
    for verb in VERBS.values():
        assert f"| {verb.says}" in TEXT
    for shape, says in SHAPES.items():
        assert f"| `{shape}` | {says}" in TEXT


def test_the_table_of_answers_is_the_tables():
    """Rule: each row, with what is not retriable in italics, and the conditions of errors."""

    def words(errors, when):
        marked = [error if asks_for_retry(error) else f"*{error}*" for error in errors]
        return " ".join(
            f"{text} ({when[error]})" if error in when else text
            for error, text in zip(errors, marked, strict=True)
        )

    for api, row in ALLOWED.items():
        after = words(row.after, {}) + (f" ({row.after_when})" if str(row.after_when) else "")
        columns = (api, words(row.any_time, row.when), after, words(row.only_if, {}), row.source)
        assert f"| {' | '.join(columns)} |" in TEXT, api


def test_the_first_example_is_true():
    """Rule: it runs as it stands."""
    code = TEXT.split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/reference/request-faults.md", "exec"), {})
    assert parse("forget member of group g, 3rd").nth == 3
