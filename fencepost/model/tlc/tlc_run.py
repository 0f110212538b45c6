"""Running TLC: check visits every state, simulate takes random walks.

Owns the command line, the private folder, and the definition of a specification. Must not know how output is
read or processes are limited.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, field, frozen

from fencepost.model.tlc.config import Config, read_config
from fencepost.model.tlc.process import SMALLEST_MEMORY_MB, RunLimits, run_process
from fencepost.model.tlc.result import RunProgress, TlcResult, Unread
from fencepost.model.tlc.tlc_frames import Frames
from fencepost.model.tlc.tlc_states import read_dump
from fencepost.model.tlc.toolbox import find_toolbox, jar_knows
from fencepost.model.tlc.transcript import Transcript
from fencepost.model.tlc.values import Value
from fencepost.traces.errors import FencepostError

OnProgress = Callable[[RunProgress], None]
OnState = Callable[[Mapping[str, Value | Unread]], None]
DUMP = "states.dump"


@frozen
class Spec:
    """A specification on disk: its module, its configuration, and other values for some of its constants
    (TLA+ texts; `<-Name` for a definition)."""

    module: Path
    config: Path
    constants: Mapping[str, str] = field(factory=dict)

    @classmethod
    def at(cls, path: Path, config: Path | None = None, constants: Mapping[str, str] | None = None) -> "Spec":
        """The specification at a path: a .tla with its .cfg, or a .cfg with its .tla (or the MC module that
        it is named after).

        Args:
            path: the .tla or the .cfg file.
            config: the .cfg file; None: found by the name.
            constants: other values for constants.

        Returns:
            the specification.

        Raises:
            FencepostError: if a file is missing.
        """
        module = path.with_suffix(".tla")
        if config is None:
            config = path.with_suffix(".cfg")
        for file, what in ((module, "a TLA+ module"), (config, "TLC's configuration")):
            if not file.is_file():
                raise FencepostError(expected=what, seen="no such file", where=str(file))
        return cls(module.resolve(), config.resolve(), dict(constants or {}))

    def read(self, *, unchecked: bool = False) -> Config:
        """The configuration with these constants. unchecked: without invariants and properties."""
        try:
            text = self.config.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FencepostError(
                expected="TLC's configuration", seen=str(error), where=str(self.config)
            ) from None
        return read_config(text, self.config.name, self.constants, unchecked=unchecked)


@frozen(kw_only=True)
class RunOptions:
    """The options of a run."""

    # TLC's jar; None: the one that is found.
    jar: Path | None = None
    # Threads; 0 for one per processor.
    workers: int = 1
    # Whether to check for deadlocks; None: as in the configuration, otherwise yes (TLC's default).
    deadlock: bool | None = None
    # The limits of the process.
    limits: RunLimits = field(factory=RunLimits)
    # Options for the JVM, after ours.
    java_options: tuple[str, ...] = ()


@frozen(kw_only=True)
class Walks:
    """The walks of a simulation: number of behaviours (None: until a limit), steps of each, and the seed of
    the choices."""

    number: int | None = 1_000
    depth: int = 100
    seed: int = 0


def check(
    spec: Spec,
    options: RunOptions | None = None,
    on_progress: OnProgress | None = None,
    *,
    unchecked: bool = False,
    on_state: OnState | None = None,
) -> TlcResult:
    """Visit every reachable state, breadth first.

    Args:
        spec: the specification.
        options: the options of the run.
        on_progress: called with TLC's progress.
        unchecked: only count states, without any invariant or property.
        on_state: called with each distinct state after TLC has ended.

    Returns:
        the result.

    Raises:
        FencepostError: for an unknown constant; EnvironmentError_ if Java or the jar is missing.
    """
    return _run(spec, options or RunOptions(), (), on_progress, unchecked=unchecked, on_state=on_state)


def simulate(
    spec: Spec,
    walks: Walks | None = None,
    options: RunOptions | None = None,
    on_progress: OnProgress | None = None,
) -> TlcResult:
    """Take random walks. Without a violation the outcome is SAMPLED, which proves nothing.

    Args:
        spec: the specification.
        walks: the number and length of the walks, and the seed.
        options: the options of the run.
        on_progress: called with TLC's progress.

    Returns:
        the result.

    Raises:
        FencepostError: for an unknown constant; EnvironmentError_ if Java or the jar is missing.
    """
    walks = walks or Walks()
    options = options or RunOptions()
    if walks.number is None and options.limits.seconds is None:
        raise FencepostError(
            expected="a number of behaviours or a time limit", seen="neither", where="a simulation"
        )
    number = (f"num={walks.number}",) if walks.number is not None else ()
    mode = ("-simulate", *number, "-depth", str(walks.depth), "-seed", str(walks.seed))
    return _run(spec, options, mode, on_progress)


def _run(
    spec: Spec,
    options: RunOptions,
    mode: tuple[str, ...],
    on_progress: OnProgress | None,
    *,
    unchecked: bool = False,
    on_state: OnState | None = None,
) -> TlcResult:
    limits = options.limits
    if limits.memory_mb is not None and limits.memory_mb < SMALLEST_MEMORY_MB:
        raise FencepostError(
            expected=f"at least {SMALLEST_MEMORY_MB} MB for a Java process",
            seen=f"{limits.memory_mb} MB",
            where="the memory limit",
        )
    toolbox = find_toolbox(options.jar)
    config = spec.read(unchecked=unchecked)
    frames, transcript = Frames(), Transcript(on_progress)

    def on_line(line: str) -> None:
        for message in frames.feed(line):
            transcript.add(message)

    with private_folder() as folder:
        (folder / "run.cfg").write_text(config.text, encoding="utf-8")
        command = (
            toolbox.java,
            *_java_options(folder, options),
            "-cp",
            toolbox.jar,
            "tlc2.TLC",
            "-tool",
            *(("-noGenerateSpecTE",) if jar_knows(toolbox.jar, "-noGenerateSpecTE") else ()),
            *("-workers", str(options.workers or processors())),
            *("-checkpoint", "0"),
            *(() if _looks_for_deadlocks(options, config) else ("-deadlock",)),
            *mode,
            *(("-dump", str(folder / "states")) if on_state is not None else ()),
            *("-metadir", str(folder / "meta")),
            *("-config", str(folder / "run.cfg")),
            spec.module.name,
        )
        ended = run_process(command, spec.module.parent, limits, on_line)
        if on_state is not None and (folder / DUMP).is_file():
            for state in read_dump(folder / DUMP):
                on_state(state)
    for message in frames.end():
        transcript.add(message)
    result = transcript.result(ended.exit_code, ended.stopped, simulation="-simulate" in mode)
    return evolve(
        result,
        seconds=ended.seconds,
        toolbox=evolve(toolbox, tlc_version=transcript.version),
        command=command,
    )


def _java_options(folder: Path, options: RunOptions) -> tuple[str, ...]:
    return (
        "-XX:+UseParallelGC",
        "-XX:-UsePerfData",
        "-Dfile.encoding=UTF-8",
        "-Duser.language=en",  # numbers with the separators that this module reads
        "-Duser.country=US",
        f"-Djava.io.tmpdir={folder}",
        *options.limits.java_options,
        *options.java_options,
    )


def _looks_for_deadlocks(options: RunOptions, config: Config) -> bool:
    if options.deadlock is not None:
        return options.deadlock
    return config.check_deadlock is not False


def processors() -> int:
    """The processors that this process may use (TLC 2.15 has no `-workers auto`)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def private_folder() -> Iterator[Path]:
    """A private folder for a run: TLC names its own by the second, so two runs could share one."""
    with tempfile.TemporaryDirectory(prefix="fencepost-tlc-", ignore_cleanup_errors=True) as name:
        yield Path(name)
