"""The documentation agrees with the code: what a reader looks up is what the program does."""

import re
import typing
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from fencepost.bugs.storage import LOG_BUGS
from fencepost.campaign.swarm.bounds import PERCENTAGES
from fencepost.campaign.swarm.swarm import PROFILES
from fencepost.checkers.verdict import Decision
from fencepost.record.claimed.profiles import PROFILES as CHECK_PROFILES
from fencepost.traces.anomalies import ANOMALIES
from fencepost.traces.errors import PRECEDENCE
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import bounds_of, plan_from_json
from fencepost.traces.protections import PROTECTIONS
from fencepost.traces.trace import Claims

TOP = Path(__file__).parents[2]
MOST_OPTIONS = 10
"""Options that a cell lists; more have a section."""
DOCUMENTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
PLANS, SWARM, CLAIMS, VERDICTS = (
    (TOP / "docs" / "reference" / f"{name}.md").read_text()
    for name in ("plans", "swarm", "claims", "verdicts")
)


def _table(text: str, heading: str) -> list[list[str]]:
    """The cells of the rows of the table whose first heading is `heading`."""
    lines = text.split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def _fields(cls: type, prefix: str = "") -> Iterator[tuple[str, "attrs.Attribute[typing.Any]"]]:
    """Every field of a plan with its path; `[]` for the members of a list. Other clients have the fields of
    the first one."""
    for attribute in attrs.fields(attrs.resolve_types(cls)):
        yield prefix + attribute.name, attribute
        is_list = typing.get_origin(attribute.type) is tuple
        inner = typing.get_args(attribute.type)[0] if is_list else attribute.type
        if attrs.has(inner) and attribute.name not in ("clients", "consumers"):
            yield from _fields(inner, f"{prefix}{attribute.name}{'[].' if is_list else '.'}")


def _allowed(attribute: "attrs.Attribute[typing.Any]") -> str:
    bounds = bounds_of(attribute)
    if len(bounds.options) > MOST_OPTIONS:
        return "see the meaning"
    if bounds.options:
        return ", ".join(f"`{option}`" for option in bounds.options if option != "")
    if bounds.low is None:
        return ""
    return f"at least {bounds.low}" if bounds.high is None else f"{bounds.low}..{bounds.high}"


def _default(attribute: "attrs.Attribute[typing.Any]") -> str:
    if attribute.default is attrs.NOTHING:
        return "required"
    if isinstance(attribute.default, bool):
        return f"`{str(attribute.default).lower()}`"
    if isinstance(attribute.default, int | str):
        return f"`{attribute.default}`" if attribute.default != "" else "empty"
    return ""


def test_every_field_of_a_plan_is_documented() -> None:
    """docs/reference/plans.md has each field in order, with its bounds and its default as the code enforces
    them."""
    documented = {row[0].strip("`"): row for row in _table(PLANS, "field")}
    fields = dict(_fields(Plan))
    assert list(documented) == list(fields)
    for path, attribute in fields.items():
        said = filter(None, (_default(attribute), _allowed(attribute)))
        assert documented[path][1] == "; ".join(said), path


def test_what_a_command_lists_is_not_listed_twice() -> None:
    """The pages name the commands that list every fault, every mark and every anomaly."""
    assert "fencepost campaign --list-faults" in PLANS and "fencepost campaign --list-marks" in SWARM
    assert "fencepost check --anomalies" in VERDICTS


def test_every_swarm_profile_is_documented() -> None:
    """docs/reference/swarm.md has each profile of the swarm with its bounds."""
    documented = {row[0].strip("`"): row[1:] for row in _table(SWARM, "profile")}
    for name, profile in PROFILES.items():
        bounds = (profile.operations, profile.faults, profile.partitions, profile.clients)
        assert documented[name] == [profile.says, *(f"{low} to {high}" for low, high in bounds)]
    assert set(documented) == set(PROFILES)


def test_every_feature_of_the_swarm_is_documented() -> None:
    """docs/reference/swarm.md has each feature that `default+FEATURE` takes, with how many plans have it."""
    documented: dict[str, str] = {}
    for row in _table(SWARM, "feature"):
        documented |= zip(re.findall(r"`(\w+)`", row[0]), row[1].split(", "), strict=True)
    profile = PROFILES["default"]
    assert documented == {name: str(getattr(profile, name)) for name in PERCENTAGES}


def test_the_plan_of_the_documentation_can_be_read() -> None:
    """The example of docs/reference/plans.md is a plan."""
    example = PLANS.split("```json\n")[1].split("```")[0]
    assert plan_from_json(example).faults[0].kind == "crash"


def test_every_claim_is_documented() -> None:
    """docs/reference/claims.md has each field of the claims and each profile of the log check."""
    assert [row[0].strip("`") for row in _table(CLAIMS, "field")] == [
        field.name for field in attrs.fields(Claims)
    ]
    assert [row[0].strip("`") for row in _table(CLAIMS, "profile")] == list(CHECK_PROFILES)


def test_the_invariants_and_decisions_are_documented() -> None:
    """docs/reference/verdicts.md explains each decision, and each invariant that an anomaly or a missing
    protection breaks."""
    protections = (*PROTECTIONS, *(bug.protection for bug in LOG_BUGS.values()))
    broken = {one.breaks for one in (*ANOMALIES, *protections)}
    assert {row[0] for row in _table(VERDICTS, "invariant")} == broken
    assert [row[0].strip("`") for row in _table(VERDICTS, "decision")] == [
        decision.value for decision in Decision
    ]


def test_the_exit_codes_are_documented() -> None:
    """docs/reference/verdicts.md lists the exit codes in their order of precedence."""
    assert [int(row[0]) for row in _table(VERDICTS, "code")] == [int(code) for code in PRECEDENCE]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of every document names a file of the repository."""
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), target
