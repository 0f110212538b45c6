"""Results as JUnit XML, which every CI server reads.

Owns the file; junitparser writes its elements. Must not know what a case is about.
"""

from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from attrs import frozen

from fencepost.console.named_files import write_text
from fencepost.report.event_words import printable
from fencepost.traces.errors import MissingExtraError

LONGEST = 4_000
"""Characters of a message: a server shows them in a table."""


class Ended(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    # It could not be decided.
    ERROR = "error"


@frozen(kw_only=True)
class Case:
    """One row of the report."""

    # Dots make a tree of groups.
    group: str
    name: str
    ended: Ended = Ended.PASSED
    # Why it did not pass, in one line.
    message: str = ""
    # The kind of failure, for a machine.
    kind: str = ""
    # What was checked, for a person.
    says: str = ""
    # Wall time.
    seconds: float = 0.0


def check_junit() -> None:
    """Raises MissingExtraError where the library is missing, so that no long command ends with that."""
    if find_spec("junitparser") is None:
        raise MissingExtraError(package="junitparser", extra="kafka", needed_for="JUnit XML")


def write_junit(path: Path, title: str, cases: Iterable[Case]) -> None:
    """Write a JUnit file. path: the file; title: of the suite; cases: in the order of the file. Raises
    EnvironmentError_ in one sentence."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    kinds = {Ended.FAILED: Failure, Ended.SKIPPED: Skipped, Ended.ERROR: Error}
    suite = TestSuite(title)
    for each in cases:
        name = printable(each.name, LONGEST)
        case = TestCase(name, classname=printable(each.group), time=round(each.seconds, 3))
        if each.says:
            case.system_out = printable(each.says, LONGEST)
        if each.ended in kinds:
            case.result = [kinds[each.ended](printable(each.message, LONGEST), type_=each.kind or None)]
        suite.add_testcase(case)
    xml, text = JUnitXml(), BytesIO()
    xml.add_testsuite(suite)
    xml.write(text, pretty=True)
    write_text(path, text.getvalue().decode())
