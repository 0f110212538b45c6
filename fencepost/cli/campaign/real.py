"""Options of `fencepost campaign`, `replay` and `shrink` for real systems, and the campaign that they mean.

Owns which options exclude each other. Must not know how a run works.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import frozen

from fencepost.console.named_files import read_plan
from fencepost.console.options import (
    WHOLE_FILE_THAT_IS,
    WHOLE_FOLDER_THAT_IS,
    Decorator,
    Named,
    default_option,
    options,
)
from fencepost.console.output import Output
from fencepost.traces.errors import FencepostError, unknown_name

if TYPE_CHECKING:
    from fencepost.campaign.driver.campaign_driver import Campaign
    from fencepost.campaign.workers.results import Job

CONTROLS = ("acks-1", "unclean", "min-isr-1", "duplicates", "lying-fsync")
"""As swarm/real_systems.py has them."""
COMMAND = (sys.executable, "-m", "fencepost.campaign.workers.real_worker")
TASK_LIMIT_S = 900
"""Real time of a run after which it is given up: the first one starts a cluster, which may take five
minutes, and compiles the judges."""
ONLY_REAL = ("kafka_home", "bootstrap", "script", "control", "runs_per_cluster", "links", "disks")
CHECKS = ("log", "kafka", "invariants", "conformance", "liveness")
"""What judges a run against a real system, unless --checks says something else."""
OF_TRANSACTIONS = ("transactions", "exactly_once", "groups")
"""And these, where processes write in transactions."""
OPTIONS = ("kafka_home", "bootstrap", "script", "links", "disks")
"""Of a system, as systems/named.py has them."""
RUNS_PER_CLUSTER = 25


real_options: Decorator = options(
    default_option(
        "--system",
        default="simulation",
        metavar="NAME",
        help="What is broken: simulation, processes, embedded, apache-kafka:VERSION, kfake, "
        "librdkafka-mock, external.",
    ),
    click.option(
        "--kafka-home",
        type=WHOLE_FOLDER_THAT_IS,
        metavar="DIR",
        help="With apache-kafka: an unpacked release. [default: Maven fetches the jars]",
    ),
    click.option("--bootstrap", metavar="HOST:PORT,...", help="With external: where the cluster is."),
    click.option(
        "--script",
        type=WHOLE_FILE_THAT_IS,
        metavar="FILE",
        help="With external: the program that breaks it. docs/reference/real-runs.md has its verbs, "
        "docs/examples/external one for docker compose.",
    ),
    click.option(
        "--links",
        is_flag=True,
        help="With apache-kafka: every connection passes a proxy, so that links between brokers can be "
        "cut. Runs take longer.",
    ),
    click.option(
        "--disks",
        is_flag=True,
        help="With apache-kafka: log directories are disks that can lose power (FUSE).",
    ),
    click.option(
        "--control",
        type=Named(list(CONTROLS)),
        help="Draw plans in which Kafka breaks what it does not promise, and judge as if it did: the "
        "campaign has to find it.",
    ),
    default_option(
        "--runs-per-cluster",
        type=click.IntRange(1, 10_000),
        default=RUNS_PER_CLUSTER,
        help="Of a real system: runs before it is started anew.",
    ),
)
"""The options, as a decorator."""


def refuse_for_simulation(given: dict[str, Any]) -> None:
    """Raises UsageError for an option that only real systems have."""
    for name in ONLY_REAL:
        value = given[name]
        if value not in (None, False) and not (name == "runs_per_cluster" and value == RUNS_PER_CLUSTER):
            raise click.UsageError(f"expected --system with --{name.replace('_', '-')}, saw the simulation")


def refuse_for_real(**given: bool) -> None:
    """Raises UsageError for an option that only the simulation has. given: whether each was."""
    for name, there in given.items():
        if there:
            raise click.UsageError(f"--{name} is for the simulation: real systems do not have it")


@frozen
class Asked:
    """What a campaign was asked for by options that the simulation and real systems have."""

    # Planted ones; real systems take none.
    bugs: tuple[str, ...] = ()
    # Of the swarm; "default" means for real systems the mixed one.
    profile: str = "default"
    # Kinds to draw from; None: all of the profile, or that the system can carry out.
    faults: tuple[str, ...] | None = None
    # A plan instead of the swarm's; None: none.
    plan_file: Path | None = None
    # Judges by name; None: the default ones.
    checks: tuple[str, ...] | None = None
    # The first seed of a campaign that is steered; -1: it is not.
    steer_from: int = -1


def real_job(given: dict[str, Any], asked: Asked, output: Output) -> "Job":
    """The job of a campaign against a real system.

    Parameters:
      given: values of `real_options`.
      asked: values of the other options.
      output: gets a note about kinds that the system cannot carry out.
    Returns: the job.
    Raises: FencepostError for names and options that do not fit.
    """
    from fencepost.campaign.swarm.real_systems import PROFILES, REAL_PROFILE, ROLLING_PROFILE
    from fencepost.campaign.workers.real_worker import checked
    from fencepost.campaign.workers.results import Job
    from fencepost.checkers.judges import checks_by_name
    from fencepost.run.faults.table import kinds_for
    from fencepost.systems.named import PATIENT, make_system
    from fencepost.traces.plan_json import plan_to_json

    if asked.bugs:
        raise click.UsageError("expected --bug with the simulation, saw it with --system")
    if asked.checks is not None:
        checks_by_name(asked.checks)
    if asked.steer_from >= 0 and (asked.plan_file is not None or given["control"]):
        raise click.UsageError("--steer changes the swarm's draws: with --plan or --control there are none.")
    profile = REAL_PROFILE if asked.profile == "default" else asked.profile
    if profile not in PROFILES:
        raise FencepostError(
            expected=f"a profile out of {', '.join(PROFILES)}",
            seen=unknown_name(profile, tuple(PROFILES)),
            where=f"--profile with --system {given['system']}",
        )
    options = {name: str(given[name]) for name in OPTIONS if given[name]}
    if profile == ROLLING_PROFILE:
        options[PATIENT] = "1"
    system = make_system(given["system"], Path("unused"), options)
    if PROFILES[profile].transactions and "transactions" not in system.inside().can:
        raise FencepostError(
            expected="a system with transactions: apache-kafka or embedded",
            seen="one of which that is not known",
            where=f"--profile {profile} with --system {given['system']}",
        )
    grouped = PROFILES[profile].transactions or profile == ROLLING_PROFILE
    able, unable = kinds_for(system.inside().can)
    for kind in asked.faults or ():
        if kind not in able:
            raise FencepostError(
                expected=f"kinds of fault out of {', '.join(able)}",
                seen=unknown_name(kind, able),
                where=f"--faults with --system {given['system']}",
            )
    _refuse_control(given["control"], given["system"], able)
    if unable:
        output.note(f"{given['system']} cannot do {', '.join(unable)}: these are not drawn")
    plan = ""
    if (file := asked.plan_file) is not None:
        plan = plan_to_json(checked(read_plan(file)))
    return Job(
        profile=profile,
        plan=plan,
        checks=asked.checks or (CHECKS + OF_TRANSACTIONS if grouped else CHECKS),
        faults=asked.faults or able,
        steer_from=asked.steer_from,
        system=given["system"],
        system_options=options,
        control=given["control"] or "",
        runs_per_cluster=given["runs_per_cluster"],
    )


def _refuse_control(control: str | None, system: str, able: tuple[str, ...]) -> None:
    """Raises FencepostError where a control needs kinds of fault that the system cannot carry out."""
    from fencepost.campaign.swarm.real_systems import swarm_for_real

    needed = {fault.kind for fault in swarm_for_real(0, able, control).faults} if control else set()
    if needed - set(able):
        raise FencepostError(
            expected=f"a system that can do {', '.join(sorted(needed))}",
            seen=f"no {min(needed - set(able))}",
            where=f"--control {control} with --system {system}",
            hint="apache-kafka has disks with --disks" if "lying_fsync" in needed else "",
        )


def real_campaign(*, seeds: range, job: "Job", jobs: int, out: Path, resume: bool) -> "Campaign":
    """The campaign. No run is repeated to compare digests, because real runs differ.

    Args:
        seeds: of the runs.
        job: what each run does.
        jobs: worker processes.
        out: the campaign's folder.
        resume: whether a folder that exists may be used.
    """
    from fencepost.campaign.driver.campaign_driver import Campaign

    return Campaign(
        seeds=seeds,
        job=job,
        jobs=jobs,
        out=out,
        resume=resume,
        recheck_one_in=0,
        command=COMMAND,
        task_limit_s=TASK_LIMIT_S,
    )
