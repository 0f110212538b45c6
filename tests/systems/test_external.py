"""A cluster of somebody else's: the script's verbs, and a sentence for everything that it does not do."""

import stat
import time

import pytest

from fencepost.systems.embedded import Embedded
from fencepost.systems.external import External, addresses_of
from fencepost.systems.named import SYSTEMS, make_system
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import EnvironmentError_, FencepostError

SCRIPT = """#!/bin/sh
echo "$@" >> {log}
case $1 in
  verbs) echo kill stop start runs pause resume ;;
  runs) test ! -e {folder}/down-$2 ;;
  kill|stop) touch {folder}/down-$2 ;;
  start) rm {folder}/down-$2 ;;
  pause) echo "no such container" >&2; exit 3 ;;
esac
"""


def script(folder, text=SCRIPT):
    """A program in this folder."""
    path = folder / "break.sh"
    path.write_text(text.format(log=folder / "log", folder=folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def external(folder, **given):
    """A cluster that is not there; its script is."""
    return External(bootstrap="127.0.0.1:1", script=script(folder), **given)


def test_verbs_reach_the_script_with_their_arguments(tmp_path):
    """Each with the broker; what is down is not killed again, and what runs is not started."""
    system = external(tmp_path)
    assert system.can == {"kill", "stop", "pause"} and system.inside().can == system.can
    system.kill(2)
    system.kill(2)
    assert not system.runs(2)
    system.restart(2)
    system.restart(2)
    assert system.runs(2)
    lines = (tmp_path / "log").read_text().split("\n")
    assert lines.count("kill 2") == 1 and lines.count("start 2") == 1


def test_a_verb_that_fails_says_why(tmp_path):
    """Its last line on standard error is in the sentence."""
    with pytest.raises(EnvironmentError_, match="exit code 3: no such container"):
        external(tmp_path).pause(1)


def test_a_verb_that_the_script_lacks_is_refused(tmp_path):
    """Without a call; ends of faults are harmless."""
    system = external(tmp_path)
    with pytest.raises(UnsupportedError, match="saw power_off"):
        system.power_off(1)
    with pytest.raises(UnsupportedError, match="saw cut"):
        system.cut("a", [(1, 2)])
    system.heal("a")
    assert (tmp_path / "log").read_text() == "verbs\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho kill\n", "no runs"),
        ("#!/bin/sh\necho kill start runs pause\n", "no resume"),
        ("#!/bin/sh\nexit 4\n", "exit code 4"),
    ],
)
def test_a_script_without_the_way_back_is_refused(tmp_path, text, said):
    """Nothing that is broken would come back."""
    with pytest.raises(FencepostError, match=said):
        _ = External(bootstrap="127.0.0.1:1", script=script(tmp_path, text)).can


def test_a_script_that_hangs_is_ended(tmp_path):
    """Within the bound of a call."""
    system = External(bootstrap="h:1", script=script(tmp_path, "#!/bin/sh\nexec sleep 60\n"), call_s=0.2)
    began = time.monotonic()
    with pytest.raises(EnvironmentError_, match=r"returns within 0\.2 s"):
        system.runs(1)
    assert time.monotonic() - began < 60


def test_a_cluster_that_is_there_is_found_and_looked_at(tmp_path):
    """Brokers by id; healthy while all of them are."""
    with Embedded() as cluster:
        system = External(bootstrap=cluster.bootstrap_servers(), script=script(tmp_path))
        system.start()
        assert system.brokers == (1, 2, 3) and system.healthy()
        cluster.kill(3)
        assert not system.healthy()
        with pytest.raises(EnvironmentError_, match="whose brokers all run"):
            system.start()


def test_systems_have_names(tmp_path):
    """What `--system` says; a wrong name, version or option is one sentence."""
    for name in SYSTEMS:
        options = {"bootstrap": "h:1", "script": str(script(tmp_path))} if name == "external" else {}
        assert make_system(name, tmp_path, options).inside().can or name == "librdkafka-mock"
    kafka = make_system("apache-kafka:3.9.2:kraft", tmp_path, {})
    assert kafka.release.kraft and not make_system("apache-kafka:3.9.2", tmp_path, {}).release.kraft
    assert "cut" in make_system("apache-kafka:4.4.0", tmp_path, {"links": "True"}).inside().can
    for wrong, said in (
        ("apache-kafk", "expected a system"),
        ("embedded:3", "expected a system"),
        ("apache-kafka:4", "a version such as"),
        ("apache-kafka:4.4.0:zookeeper", "before 4.0"),
        ("external", "--bootstrap"),
    ):
        with pytest.raises(FencepostError, match=said):
            make_system(wrong, tmp_path, {})
    with pytest.raises(FencepostError, match="HOST:PORT"):
        addresses_of("nowhere")


def test_a_script_that_fails_is_not_a_broker_that_is_down(tmp_path):
    """`runs` answers with 0 or 1; anything else is a failure, after which nothing may be started."""
    system = External(bootstrap="h:1", script=script(tmp_path, "#!/bin/sh\necho no daemon >&2\nexit 2\n"))
    with pytest.raises(EnvironmentError_, match="exit code 2: no daemon"):
        system.runs(1)
