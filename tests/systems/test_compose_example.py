"""The example for docker compose: its verbs, one by one and in a run, over a `docker` that breaks the
reference brokers."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from fencepost.campaign.workers.real_worker import checked
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.run.faults.table import kinds_for
from fencepost.run.real.real_run import RealRun
from fencepost.systems.embedded import Embedded
from fencepost.systems.external import External
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Name
from tests.run.real.small_plans import plan_of
from tests.systems.fake_docker import docker_on_path

EXAMPLE = Path(__file__).parents[2] / "docs/examples/external"


@pytest.fixture
def cluster():
    """The brokers."""
    with Embedded() as system:
        yield system


@pytest.fixture
def docker(cluster, tmp_path, monkeypatch):
    """A docker that breaks them."""
    monkeypatch.setenv("FENCEPOST_CUTS", str(tmp_path / "cuts"))
    with docker_on_path(tmp_path, cluster, monkeypatch) as found:
        yield found


@pytest.fixture
def system(cluster, docker):
    """The cluster, as somebody's that the script breaks."""
    external = External(
        bootstrap=cluster.bootstrap_servers(), script=EXAMPLE / "docker-compose.sh", call_s=300.0
    )
    external.start()
    return external


def test_each_verb_does_what_it_says(system, docker, cluster):
    """On the way there and on the way back, with docker's own words."""
    assert system.can == {"kill", "stop", "pause", "cut"}
    system.pause(1)
    assert docker.status(1) == "paused" and system.runs(1)
    system.resume(1)
    system.resume(1)
    assert docker.status(1) == "running"
    system.kill(2)
    assert not cluster.runs(2) and not system.runs(2)
    system.restart(2)
    assert cluster.runs(2) and system.runs(2)
    system.stop(3)
    assert docker.calls.count("compose kill --signal TERM kafka-3") == 1
    assert docker.calls.count("compose unpause kafka-1") == 1, "one that is not paused is left alone"


def test_a_cut_drops_what_the_source_sends_until_it_is_healed(system, docker):
    """Two cuts are independent; a container that was started anew has lost its filter, which harms nobody."""
    system.cut("partition 1", [(1, 2), (2, 1)])
    system.cut("partition 2", [(3, 2)])
    assert set(docker.dropped) == {(1, 2), (2, 1), (3, 2)}
    system.heal("partition 1")
    assert set(docker.dropped) == {(3, 2)}
    system.heal("partition 1")
    system.kill(2)
    system.restart(2)
    assert not docker.dropped
    system.heal("partition 2")
    ran = [call for call in docker.calls if "iptables" in call]
    assert ran[0] == (
        "run --rm --cap-add NET_ADMIN --network container:id-2 nicolaka/netshoot "
        "iptables -A INPUT --source 172.18.0.1 --jump DROP"
    )
    assert len(ran) == 6


def test_no_image_no_cuts(system, monkeypatch):
    """Where nothing may be pulled."""
    monkeypatch.setenv("FENCEPOST_IMAGE", "")
    system._can = None
    assert system.can == {"kill", "stop", "pause"}


def test_docker_that_fails_is_no_broker_that_is_down(system, docker):
    """`runs` has an answer or an error; a wrong service or verb is one sentence."""
    docker.down = True
    with pytest.raises(EnvironmentError_, match="Cannot connect to the Docker daemon"):
        system.runs(1)
    docker.down = False
    with pytest.raises(EnvironmentError_, match="no such service: kafka-9"):
        system.runs(9)
    said = subprocess.run([str(system.script), "explode", "1"], capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "unknown verb 'explode'" in said.stderr


def test_a_run_breaks_and_heals_a_cluster_through_the_script(system, docker, tmp_path):
    """Each kind of fault that compose can carry out strikes once, nothing stays broken, and the judges find
    nothing."""
    able, _ = kinds_for(system.can)
    kinds = ("bounce", "clean_restart", "crash", "partition", "pause")
    assert able == kinds
    faults = [(kind, 150 * place, 300, f"broker {1 + place % 3}") for place, kind in enumerate(kinds)]
    run = RealRun(plan=checked(plan_of(*faults, count=80)), system=system, topic="t-1", target="external")
    trace = asyncio.run(run.go())
    names = {kind: [event.name for event in trace.events if event.cause == kind] for kind in kinds}
    begun = [kind for kind in kinds if Name.FAULT_BEGAN in names[kind]]
    assert {"partition", "pause", "crash"} & set(begun) and not run.stuck
    assert all(Name.FAULT_ENDED in names[kind] or Name.FAULT_SKIPPED in names[kind] for kind in begun)
    assert all(docker.status(broker) == "running" for broker in system.brokers) and not docker.dropped
    assert not list((tmp_path / "cuts").glob("*"))
    assert combine(judge(trace)).decision.value == "ok"


def test_the_compose_file_fits_the_script():
    """A service for each broker that the script would name, which docker does not start by itself."""
    text = (EXAMPLE / "compose.yaml").read_text(encoding="utf-8")
    for broker in (1, 2, 3):
        assert f"\n  kafka-{broker}:\n" in text and f"KAFKA_NODE_ID: {broker}\n" in text
        assert (
            f"CLIENT://localhost:{9091 + broker}\n" in text and f'"{9091 + broker}:{9091 + broker}"' in text
        )
    assert 'restart: "no"' in text
