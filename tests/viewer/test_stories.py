"""The five stories of docs/explanation/five-runs.md: each moment that they name is one of the run that their command
shows."""

import re

import pytest

from fencepost.viewer.view import view_of

BUGS = {
    "KIP-101": "kip_101",
    "KAFKA-6082": "fenced_controller",
    "KAFKA-4443": "no_progress",
    "KAFKA-4362": "group",
    "KIP-98": "producer",
}


@pytest.fixture
def stories(request):
    """Bug -> text of its story."""
    text = (request.config.rootpath / "docs/explanation/five-runs.md").read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"\n(?=\*\*)", text):
        if bug := re.search(r"runs/(\S+)\.json", part):
            found[bug[1].upper()] = part
    return found


@pytest.mark.parametrize("bug", BUGS)
def test_a_story_names_moments_of_its_run(bug, stories, shown):
    """Every time is a moment's, to the millisecond; "the last" is the last
    that convicts."""
    story, run = stories[bug], shown(BUGS[bug])
    view, now, times = view_of(run), 0, []
    for wait in view["moments"]["wait"]:
        now += wait
        times.append(f"{now / 1e9:.3f}")
    named = re.findall(r"(\d+\.\d{3}) s\b", story)
    assert len(named) >= 3 and [time for time in named if time not in times] == []
    steps = view["findings"][0]["steps"]
    for time, which in re.findall(r"(\d+\.\d{3}) s[^.:]*?, the (first|second|last) ◆", story):
        assert times[steps[{"first": 0, "second": 1, "last": -1}[which]]] == time, (time, which)
