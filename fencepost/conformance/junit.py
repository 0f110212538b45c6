"""The results as JUnit XML, which every CI server reads.

Owns the form; junitparser writes it. A difference and a
broker that stopped answering are failures, a case that was not asked or explained is
skipped with the reason.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from fencepost.conformance.record import Compared, Status
from fencepost.report.event_words import printable

LONGEST = 4_000
"""Characters of a message: a server shows them in a table."""


def write_junit(path: Path, compared: Sequence[Compared], against: str) -> None:
    """Write a JUnit file. path: the file; compared: the cases; against: the release. Raises OSError."""
    suite = TestSuite(f"fencepost conformance against Apache Kafka {against}")
    for each in compared:
        subject, _, name = each.result.case.name.partition(".")
        case = TestCase(name, classname=f"conformance.{subject}", time=round(each.result.seconds, 3))
        case.system_out = each.result.case.asked
        if each.status is Status.DIFFERS:
            case.result = [Failure(difference(each), type_="differs")]
        elif each.status is Status.DIED:
            case.result = [Failure(printable(each.reason, LONGEST), type_="died")]
        elif each.status in (Status.SKIPPED, Status.DEPARTS, Status.NO_RECORD):
            case.result = [Skipped(printable(f"{each.status}: {each.reason}".rstrip(": "), LONGEST))]
        suite.add_testcase(case)
    xml = JUnitXml()
    xml.add_testsuite(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    xml.write(str(path), pretty=True)


def difference(compared: Compared) -> str:
    """Expected and seen, in one line each."""
    expected, seen = (
        msgspec.json.encode(each).decode() for each in (compared.expected, compared.result.facts)
    )
    return f"expected {printable(expected, LONGEST)}, saw {printable(seen, LONGEST)}"
