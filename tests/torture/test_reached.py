"""What struck is counted by verb and request, and what never did is named."""

from fencepost.torture.drawing import draw
from fencepost.torture.protocol import Ready
from fencepost.torture.reached import by_verb, met_by, never, possible, struck

READY = Ready(
    protocol=1,
    driver="d",
    library="l",
    version="1",
    runtime="r",
    roles=("producer",),
    commands=("subscribe",),
    config=("request_timeout_ms",),
    commit_modes=("sync",),
)
LINES = (
    {"met": {"lose answer|Produce": 2, "answer NOT_COORDINATOR|Heartbeat": 1, "crash|broker": 1}},
    {"met": {"lose answer|Produce": 1, "reshape empty|Fetch": 3, "answer ILLEGAL_GENERATION|Heartbeat": 4}},
    {"met": {}},
    {"failed": "no driver"},
)


def test_hits_are_added_up():
    """Over runs; a run in which nothing struck, and one that failed, do not count."""
    met = met_by(LINES)
    assert struck(LINES) == 2 and met["lose answer|Produce"] == 3
    assert by_verb(met) == {
        "answer": {"Heartbeat": 5},
        "crash": {"broker": 1},
        "lose answer": {"Produce": 3},
        "reshape": {"Fetch": 3},
    }


def test_what_never_struck_is_all_the_rest():
    """Everything that may be drawn, but what struck; a library without groups is not asked for theirs."""
    met = met_by(LINES)
    rest = never(met, groups=True)
    assert set(rest) == set(possible(groups=True)) - set(met) and len(rest) > 100
    assert not any("|Heartbeat" in kind for kind in possible(groups=False))
    assert not any("skip answer" in kind or "control batch" in kind for kind in possible(groups=True))


def test_every_script_is_within_what_may_be_drawn():
    """The list of the possible is not shorter than what seeds draw."""
    for seed in range(300):
        for fault in draw(seed, READY).request_faults:
            kind = f"{fault.verb} {fault.error or fault.shape}".strip() + " after effect" * fault.after_effect
            apis = {
                entry.partition("|")[2] for entry in possible(groups=True) if entry.startswith(f"{kind}|")
            }
            assert apis and (fault.api == "any" or fault.api in apis), kind
