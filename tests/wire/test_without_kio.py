"""Where Kafka's messages are not installed everything else works, and what needs them says what to
install."""

import subprocess
import sys

import pytest

BLOCKED = "import sys; sys.modules['kio'] = None; "
HINT = "install it with: pip install 'kio>=0.6' 'h11>=0.14' 'junitparser>=4'"


def without_kio(code):
    """A Python process that cannot import kio."""
    return subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    "arguments",
    [
        ["cluster", "produce", "t", "--bootstrap", "127.0.0.1:1"],
        ["cluster", "consume", "t", "--bootstrap", "127.0.0.1:1"],
        ["cluster", "up", "--kafka-port", "9092"],
        ["cluster", "up", "--embedded"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_it_says_what_to_install(arguments):
    """One sentence, exit code 2."""
    told = without_kio(f"from fencepost.cli import run; sys.exit(run({arguments!r}))")
    assert (told.returncode, told.stdout) == (2, "")
    assert HINT in told.stderr and "Traceback" not in told.stderr


def test_a_cluster_of_processes_runs_without_listeners():
    """`cluster up` brings the brokers up as before, and says what is missing."""
    told = without_kio(
        "from fencepost.cli.cluster.cluster_command import _kafka; "
        "from fencepost.console.output import Output; "
        "print(_kafka(Output(False), 3, 0, None, None))"
    )
    assert told.stdout == "('fencepost.systems.node', None)\n"
    assert "clients of Kafka's protocol cannot connect: " + HINT in told.stderr


def test_the_simulator_does_not_need_it():
    """A run, its judges, and the tools with --directory."""
    told = without_kio(
        "from fencepost.run.simulated.run import run; from fencepost.campaign.swarm.swarm import swarm; "
        "import fencepost.cli.cluster.cluster_command, fencepost.pytest_plugin; "
        "print(run(swarm(1)).digest)"
    )
    assert told.returncode == 0 and len(told.stdout.strip()) == 32, told.stderr


def test_brokers_do_without_hypothesis():
    """kio alone would import it, for a third of the CPU that a cluster in a child process takes to start; a
    test that wants it still gets it."""
    code = "import sys, fencepost.kafka; print('hypothesis' in sys.modules); import hypothesis.strategies"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("False\n", "")
