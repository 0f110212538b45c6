"""Findings of a command as a CI wants them: a JUnit file, and a baseline of known ones that do not fail.

Owns the options, the baseline's file, and what they do to the exit code. Must not know how a command judges.

A finding is the same one in the next run if check, anomaly and place are. What a place is, the command says.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click
from attrs import Factory, asdict, define, frozen

from fencepost.console.junit import Case, Ended, check_junit, write_junit
from fencepost.console.named_files import read_bytes, write_text
from fencepost.console.options import FILE, FILE_THAT_IS, Decorator, options
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode, FencepostError, strongest

if TYPE_CHECKING:
    from fencepost.checkers.verdict import Finding

VERSION = 1
"""Of the baseline's file."""
MOST_LISTED = 20
"""Findings of a kind that a person is shown; --json has all."""
WHOLE = frozenset({ExitCode.NOTHING_FOUND, ExitCode.FINDINGS})
"""The exit codes of a run that judged all that it was given."""
WORDS = {
    ExitCode.INTERRUPTED: "it was interrupted",
    ExitCode.USAGE: "nothing was readable",
    ExitCode.QUARANTINED: "part of the input was unreadable",
    ExitCode.UNDECIDED: "part of it is undecided",
}


@frozen(kw_only=True)
class Reported:
    """A finding, or several that are the same."""

    check: str
    anomaly: str
    # What tells it from others of the anomaly, the same in the next run.
    place: str
    # What it showed, in one line.
    says: str = ""
    # What the command needs to find it again, where the place alone is not enough.
    details: dict[str, Any] = Factory(dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """What two runs have in common."""
        return self.check, self.anomaly, self.place

    @property
    def words(self) -> str:
        """One line for a person."""
        return f"{self.anomaly}, {self.place}" if self.place else self.anomaly

    def row(self) -> dict[str, str]:
        """As --json has it."""
        return {"check": self.check, "anomaly": self.anomaly, "place": self.place, "says": self.says}


def reported(finding: "Finding", place: str) -> Reported:
    """A judge's finding. place: what tells it from others of the anomaly."""
    says = f"expected {finding.expected}; saw {finding.seen}"
    return Reported(check=finding.check, anomaly=finding.anomaly, place=place, says=says)


@frozen(kw_only=True)
class _File:
    version: int
    command: str
    findings: tuple[Reported, ...]


def read_baseline(path: Path, command: str) -> tuple[Reported, ...]:
    """The findings in a baseline. path: the file; command: that wrote it. Raises FencepostError in one
    sentence."""
    hint = f"write it again with `fencepost {command} --write-baseline {path}`"
    try:
        version = msgspec.json.decode(read_bytes(path), type=dict[str, Any]).get("version")
        if version != VERSION:
            raise FencepostError(
                expected=f"a baseline of version {VERSION}", seen=f"{version}", where=str(path), hint=hint
            )
        file = msgspec.json.decode(read_bytes(path), type=_File)
    except msgspec.MsgspecError as error:
        raise FencepostError(expected="a baseline", seen=str(error), where=str(path), hint=hint) from None
    if file.command != command:
        raise FencepostError(
            expected=f"a baseline of `fencepost {command}`", seen=f"one of {file.command}", where=str(path)
        )
    return file.findings


@define(kw_only=True)
class Findings:
    """What a command found, and what it does with that."""

    # The command's name.
    command: str
    # The JUnit file to write.
    junit: Path | None = None
    # The baseline to write.
    written: Path | None = None
    # The baseline that was read, and what is in it.
    baseline: Path | None = None
    known: tuple[Reported, ...] = ()
    found: dict[tuple[str, str, str], Reported] = Factory(dict)

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return any((self.junit, self.written, self.baseline))

    def add(self, one: Reported) -> None:
        """Take in a finding; of those that are the same, the first is kept."""
        self.found.setdefault(one.key, one)

    def add_all(self, findings: "Iterable[Finding]", where: str = "") -> None:
        """Take in findings of one trace. where: that is, if the place is more than topic and partition. Does
        nothing where nobody wants to know."""
        for one in findings if self.wanted else ():
            place = where if one.topic is None else f"{where} {one.topic}-{one.partition}".strip()
            self.add(reported(one, place))

    def end(self, output: Output, codes: set[ExitCode], value: dict[str, Any]) -> ExitCode:
        """The end of the command: say what is known, write the files, print the JSON object.

        Args:
            output: of the command.
            codes: exit codes that apply.
            value: the JSON object, without what is said here.

        Returns:
            the exit code: without FINDINGS if all of them are known.
        """
        known = {one.key for one in self.known}
        split: dict[str, list[Reported]] = {
            "new": [one for key, one in self.found.items() if key not in known],
            "known": [one for key, one in self.found.items() if key in known],
            "gone": [one for one in self.known if one.key not in self.found],
        }
        if self.found and not split["new"]:
            codes = codes - {ExitCode.FINDINGS}
        if self.baseline is not None:
            self._say(output, split, codes)
            value = value | {
                "baseline": {name: [one.row() for one in found] for name, found in split.items()}
            }
        if self.junit is not None:
            write_junit(self.junit, f"fencepost {self.command}", self._cases(split, codes))
            output.note(f"JUnit XML: {self.junit}")
        self._write(output, codes)
        return output.end(strongest(codes), value)

    def _say(self, output: Output, split: dict[str, list[Reported]], codes: set[ExitCode]) -> None:
        heads = {"new": "new", "known": "known", "gone": _gone(codes)}
        output.say("")
        for name, found in split.items():
            for one in found[:MOST_LISTED]:
                output.say(f"{heads[name]}: {one.words}")
            if len(found) > MOST_LISTED:
                output.say(f"and {len(found) - MOST_LISTED} more that are {heads[name]}")
        counts = ", ".join(f"{len(found)} {heads[name]}" for name, found in split.items())
        output.say(f"findings held against {self.baseline}: {counts}")

    def _cases(self, split: dict[str, list[Reported]], codes: set[ExitCode]) -> Iterable[Case]:
        ended = {"new": Ended.FAILED, "known": Ended.SKIPPED, "gone": Ended.SKIPPED}
        said = {"new": "", "known": f"known by {self.baseline}: ", "gone": f"{_gone(codes)}: "}
        for name, found in split.items():
            for one in found:
                yield Case(
                    group=f"{self.command}.{one.check}",
                    name=one.words,
                    ended=ended[name],
                    message=f"{said[name]}{one.says}",
                    kind=one.anomaly,
                )
        why = "; ".join(words for code, words in WORDS.items() if code in codes)
        yield Case(
            group=self.command,
            name="everything was judged",
            ended=Ended.ERROR if why else Ended.PASSED,
            message=why,
        )

    def _write(self, output: Output, codes: set[ExitCode]) -> None:
        if self.written is None:
            return
        if codes & {ExitCode.INTERRUPTED, ExitCode.USAGE}:
            output.note(f"{self.written} is not written: {WORDS[strongest(codes)]}")
            return
        findings = tuple(found for _, found in sorted(self.found.items()))
        file = _File(version=VERSION, command=self.command, findings=findings)
        write_text(self.written, msgspec.json.format(msgspec.json.encode(asdict(file))).decode() + "\n")
        output.note(f"{len(findings)} known findings: {self.written}")


def _gone(codes: set[ExitCode]) -> str:
    return "no longer there" if codes <= WHOLE else "not seen, but not everything was judged"


_options: Decorator = options(
    click.option("--junit", type=FILE, metavar="FILE", help="Write the findings as JUnit XML."),
    click.option(
        "--baseline",
        type=FILE_THAT_IS,
        metavar="FILE",
        help="Findings in this file are known: they are listed and do not fail (docs/how-to/ci.md).",
    ),
    click.option(
        "--write-baseline",
        "written",
        type=FILE,
        metavar="FILE",
        help="Write the findings into such a file. The exit code stays what it is.",
    ),
)


def findings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options --junit, --baseline and --write-baseline, of which a command gets its `findings`."""

    @wraps(function)
    def with_findings(
        *, junit: Path | None, baseline: Path | None, written: Path | None, **given: Any
    ) -> Any:
        if junit is not None:
            check_junit()
        context = click.get_current_context()
        command = str(context and context.info_name)
        known = read_baseline(baseline, command) if baseline is not None else ()
        findings = Findings(command=command, junit=junit, written=written, baseline=baseline, known=known)
        return function(findings=findings, **given)

    return _options(with_findings)
