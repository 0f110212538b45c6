"""A cluster that somebody else runs: bootstrap servers, and a script that breaks it.

Owns the calls of the script. Must not know what it does: docker compose, ssh, a cloud's tool
(docs/examples/external is for the first). The verb and its arguments are on the script's command line:

    SCRIPT verbs              print the verbs that it has, on one line
    SCRIPT kill BROKER        end the broker's process at once; return when it has ended
    SCRIPT stop BROKER        ask it to stop; return at once
    SCRIPT start BROKER       start it, if it is down
    SCRIPT runs BROKER        exit with 0 if its process is there, with 1 if not
    SCRIPT pause BROKER       suspend it
    SCRIPT resume BROKER      continue it
    SCRIPT cut NAME S>D...    drop what goes over these directed links between brokers, until
    SCRIPT heal NAME          ends it
    SCRIPT power_off BROKER   its host loses power

A verb that ends with another exit code than 0 has failed; its last line on standard error says why.
"""

import asyncio
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from fencepost.systems.system import PROCESS_VERBS, Inside, Pair, System, UnsupportedError
from fencepost.traces.errors import EnvironmentError_, FencepostError

if TYPE_CHECKING:
    from fencepost.wire.client import Address

CALL_S = 60.0
"""Longest call of the script: `docker stop` waits ten seconds by default, and machines are crowded."""
KNOWN = frozenset({"kill", "stop", "start", "runs", "pause", "resume", "cut", "heal", "power_off"})
NEEDED = frozenset({"start", "runs"})
"""Without them nothing that was broken comes back."""
TOGETHER = {"pause": "resume", "cut": "heal"}
"""A verb, and the one that ends it."""


@define(eq=False, kw_only=True, repr=False)
class External(System):
    """systems.system.System over somebody else's cluster."""

    # Bootstrap servers: HOST:PORT, with commas.
    bootstrap: str
    # The program that breaks it.
    script: Path
    # Longest call of the script.
    call_s: float = CALL_S
    # Of all brokers, by id; known once it has started.
    addresses: "dict[int, Address]" = field(factory=dict, init=False)
    _can: frozenset[str] | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<the cluster at {self.bootstrap}, broken by {self.script}>"

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers; empty before the start."""
        return tuple(sorted(self.addresses))

    def start(self) -> None:
        """Ask who is there: the cluster has to run, with all its brokers. Raises EnvironmentError_."""
        from fencepost.wire.client import Access, look_around

        self.addresses, _ = asyncio.run(look_around(addresses_of(self.bootstrap), Access()))
        if not self.healthy():
            raise EnvironmentError_(
                expected="a cluster whose brokers all run, with a leader and a full ISR of every partition",
                seen=f"another state; {len(self.addresses)} brokers are known",
                where=self.bootstrap,
            )

    def healthy(self) -> bool:
        """Whether every broker answers, and every partition has a leader and a full ISR."""
        from fencepost.systems.agreement import all_agree

        return asyncio.run(all_agree(self.addresses))

    def bootstrap_servers(self) -> str:
        """As they were given."""
        return self.bootstrap

    # ---- the script

    def _call(self, verb: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                [str(self.script), verb, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.call_s,
                check=False,
            )
        except OSError as error:
            raise EnvironmentError_(
                expected="a script that can be run", seen=error.strerror or str(error), where=str(self.script)
            ) from None
        except subprocess.TimeoutExpired:
            raise EnvironmentError_(
                expected=f"that `{verb}` returns within {self.call_s:g} s",
                seen="that it does not",
                where=str(self.script),
            ) from None

    def _do(self, verb: str, *arguments: str) -> None:
        if verb not in self.can and verb not in (*NEEDED, *TOGETHER.values()):
            raise UnsupportedError(
                expected=f"one of the verbs {', '.join(sorted(self.can))}", seen=verb, where=str(self.script)
            )
        done = self._call(verb, *arguments)
        if done.returncode:
            raise self._failed(done, f"that `{' '.join((verb, *arguments))}` succeeds")

    def _failed(self, done: "subprocess.CompletedProcess[str]", expected: str) -> EnvironmentError_:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return EnvironmentError_(
            expected=expected,
            seen=f"exit code {done.returncode}" + (f": {said[-1][:200]}" if said else ""),
            where=str(self.script),
        )

    @property
    def can(self) -> frozenset[str]:
        """The verbs of the script that break something. Raises FencepostError for a script that lacks what
        every script needs."""
        if self._can is None:
            done = self._call("verbs")
            known = frozenset(done.stdout.split()) & KNOWN
            missing = (NEEDED | {TOGETHER[verb] for verb in known & TOGETHER.keys()}) - known
            if done.returncode or missing:
                raise FencepostError(
                    expected=f"a script that prints its verbs, with {', '.join(sorted(NEEDED))} among them",
                    seen=f"exit code {done.returncode}" if done.returncode else f"no {min(missing)}",
                    where=f"{self.script} verbs",
                    hint="docs/reference/real-runs.md has the verbs, docs/examples/external a script",
                )
            self._can = known & (PROCESS_VERBS | {"cut", "power_off"})
        return self._can

    def kill(self, broker: int) -> None:
        """End its process at once. Nothing happens if it is down."""
        if self.runs(broker):
            self._do("kill", str(broker))

    def pause(self, broker: int) -> None:
        """Suspend it. Nothing happens if it is down."""
        if self.runs(broker):
            self._do("pause", str(broker))

    def resume(self, broker: int) -> None:
        """Continue it."""
        if "pause" in self.can and self.runs(broker):
            self._do("resume", str(broker))

    def stop(self, broker: int) -> None:
        """Ask it to stop."""
        if self.runs(broker):
            self._do("stop", str(broker))

    def restart(self, broker: int) -> None:
        """Start it, if it is down."""
        if not self.runs(broker):
            self._do("start", str(broker))

    def runs(self, broker: int) -> bool:
        """Whether its process is there. Raises EnvironmentError_ for a script that does not know."""
        done = self._call("runs", str(broker))
        if done.returncode not in (0, 1):
            raise self._failed(done, f"that `runs {broker}` ends with 0 (it is there) or 1 (it is not)")
        return done.returncode == 0

    def power_off(self, broker: int) -> None:
        """Its host loses power."""
        self._do("power_off", str(broker))

    def cut(self, name: str, pairs: Iterable[Pair]) -> None:
        """Nothing gets over these directed links until `heal(name)`."""
        self._do("cut", name, *(f"{source}>{target}" for source, target in pairs))

    def heal(self, name: str) -> None:
        """End the cut of this name."""
        if "cut" in self.can:
            self._do("heal", name)

    # ---- to look at

    def inside(self) -> Inside:
        """What it consists of, as far as it is known."""
        return Inside(
            software=f"somebody's cluster at {self.bootstrap}",
            real_processes=True,
            real_files=True,
            can=self.can,
        )


def addresses_of(bootstrap: str) -> "tuple[Address, ...]":
    """Hosts and ports. Raises FencepostError for what is no list of them."""
    from fencepost.impl.runtime.addresses import parse_address

    try:
        return tuple(parse_address(part) for part in bootstrap.split(","))
    except ValueError as error:
        raise FencepostError(
            expected="bootstrap servers: HOST:PORT, separated by commas",
            seen=f"{bootstrap!r} ({error})",
            where="the bootstrap address",
        ) from None
