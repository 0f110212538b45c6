"""The commands that messages recommend: to show a finding again, or to run a plan again.

Owns how each such command is spelled. Must not know findings, or who prints them.

A printed command gives the same finding again; otherwise it is not printed. So each takes everything that the
result depends on, and a test runs every one.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path


def _with(command: str, options: Mapping[str, str | Sequence[str]]) -> str:
    """The command with those options that have a value; a list makes one option each."""
    words = [command]
    for option, value in options.items():
        for one in (value,) if isinstance(value, str) else value:
            if one:
                words.append(f"{option} {shlex.quote(one)}")
    return " ".join(words)


def replay_stored(folder: Path | str, trace_id: int, *, checks: Sequence[str] = (), anomaly: str = "") -> str:
    """Show a stored run again.

    checks: the judges, where they are not the usual ones. anomaly: the finding to explain, where it is not
    the run's headline.
    """
    command = f"fencepost replay {shlex.quote(str(folder))} --trace {trace_id}"
    return _with(command, {"--checks": ",".join(checks), "--anomaly": anomaly})


def replay_rate(folder: Path | str, plan: Path | str, *, times: int) -> str:
    """Run a plan again and again in the system of a campaign, to learn how often it shows a finding.

    Args:
        folder: the campaign's.
        plan: file of the plan.
        times: how often.
    """
    where = f"{shlex.quote(str(folder))} --plan {shlex.quote(str(plan))}"
    return f"fencepost replay {where} --times {times}"


def explaining(replay: str, anomaly: str) -> str:
    """A replay command that explains this anomaly, whichever names the run. replay: the command without it;
    anomaly: its name. "" for no command."""
    return _with(replay, {"--anomaly": anomaly}) if replay else ""


def replay_seed(
    seed: int,
    *,
    profile: str = "default",
    bugs: tuple[str, ...],
    checks: Sequence[str] = (),
    anomaly: str = "",
) -> str:
    """Show a seed's run without any stored trace. checks, anomaly: as for a stored run."""
    options = {"--bug": bugs, "--profile": profile if profile != "default" else ""}
    return _with(
        f"fencepost replay --seed {seed}", {**options, "--checks": ",".join(checks), "--anomaly": anomaly}
    )


def replay_plan(
    plan: Path | str, *, bugs: tuple[str, ...] = (), checks: Sequence[str] = (), anomaly: str = ""
) -> str:
    """Show the run of a plan file. bugs: planted in place of those of the plan; checks, anomaly: as for a
    stored run."""
    command = f"fencepost replay --plan {shlex.quote(str(plan))}"
    return _with(command, {"--bug": bugs, "--checks": ",".join(checks), "--anomaly": anomaly})


def shrink_stored(folder: Path | str, trace_id: int) -> str:
    """The command that shrinks the plan of the stored run `trace_id` of `folder`."""
    return f"fencepost shrink {shlex.quote(str(folder))} --trace {trace_id}"


def one_seed(test: str, seed: int) -> str:
    """Run one seed of a campaign test. test: its name on pytest's command line, "" for all tests."""
    return " ".join(["pytest", *([shlex.quote(test)] if test else []), f"--fencepost-seed {seed}"])


def check_traces(path: Path | str, *, checks: Sequence[str] = ()) -> str:
    """Judge stored traces again. checks: the judges, where they are not the usual ones."""
    return _with(f"fencepost check {shlex.quote(str(path))}", {"--checks": ",".join(checks)})


def consume_recorded(topic: str, record: Path | str, cluster: Mapping[str, str]) -> str:
    """Read a topic from its beginning into the history that its producers are recorded in.

    Args:
        topic: its name.
        record: the history's file.
        cluster: options of `consume` that say where the topic is, with their values.
    """
    quick = "--from-beginning --timeout-ms 2000"
    options = {**cluster, "--record": str(record)}
    return _with(f"fencepost cluster consume {shlex.quote(topic)} {quick}", options)


def check_model(path: Path | str, model: str, options: Mapping[str, str | Sequence[str]]) -> str:
    """Judge a history again with a sequential model. options: of `check --model`, with their values."""
    return _with(f"fencepost check {shlex.quote(str(path))} --model {shlex.quote(model)}", options)


def show_stored(source: Path | str, trace_id: int) -> str:
    """The command that writes the stored trace `trace_id` of `source` as a page."""
    return f"fencepost show {shlex.quote(str(source))} --trace {trace_id}"
