"""`python -m tools.kafka_tables CLIENTS [SOURCES] [--write]`: Kafka's names, read from a release of Kafka.

    mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:4.4.0
    mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:4.3.1:jar:sources -Dtransitive=false
    python -m tools.kafka_tables 4.4.0 4.3.1 --write

Owns the tables in fencepost/traces/kafka_names/protocol.py. Must not know what an error proves. CLIENTS is
the version of kafka-clients whose errors and APIs are read: from its classes, with a JDK, and its schemas of
messages. SOURCES is the version of its sources, whose response classes list "Possible error codes"; it may be
older, because sources are not served for every release. Both are looked for in the local repository of Maven.
It prints what changed in the tables, and what the library of messages lacks; `--write` writes the file. The
exit code is 1 if something changed and was not written, 2 if something is missing.
"""

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import rich_click as click

REPOSITORY = Path.home() / ".m2" / "repository"
HOME = Path(__file__).parents[1] / "fencepost" / "traces" / "kafka_names" / "protocol.py"
JAVA_S = 120.0
"""Longest wait for the Java program, which takes two seconds."""
WIDTH = 105
"""Characters of a line of the file that is written: pyproject.toml allows a few more."""
PROGRAM = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
public class Names {
    public static void main(String[] none) {
        for (Errors each : Errors.values()) {
            Exception it = each.exception();
            String kind = it == null ? "-" : it.getClass().getSimpleName();
            String again = it instanceof RetriableException ? "retriable" : "-";
            System.out.println("error " + each.code() + " " + each.name() + " " + again + " " + kind);
        }
        for (ApiKeys each : ApiKeys.values())
            System.out.println(
                "api " + each.id + " " + each.name + " " + each.oldestVersion() + " " + each.latestVersion());
    }
}
"""
RESPONSES = "org/apache/kafka/common/requests/"
SCHEMAS = "common/message/"
ALIASES = {"OffsetsForLeaderEpoch": "OffsetForLeaderEpoch"}
"""Classes of responses that are not called like their API."""


def main() -> int:
    """Reads, compares, and writes if told so. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("clients", help="version of kafka-clients")
    parser.add_argument("sources", nargs="?", help="version of its sources, by default the same")
    parser.add_argument("--write", action="store_true", help="write the file")
    options = parser.parse_args()
    sources = options.sources or options.clients
    try:
        new = text(options.clients, sources)
    except (LookupError, subprocess.SubprocessError, OSError) as error:
        click.echo(f"kafka_tables: {error}", err=True)
        return 2
    old = HOME.read_text()
    changes = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))
    for line in changes:
        if not line.startswith(("---", "+++", "@@")):
            click.echo(line)
    if options.write:
        HOME.write_text(new)
    for line in lacking():
        click.echo(line)
    return 1 if changes and not options.write else 0


def text(clients: str, sources: str) -> str:
    """The file with the tables of these versions of kafka-clients and of its sources. Raises LookupError for
    what is not in the local repository of Maven."""
    errors, apis = names(_jar(clients))
    known = {row.split()[1] for row in errors}
    listed = documented(_jar(clients), _jar(sources, "-sources"), known, {row.split()[1] for row in apis})
    new = HOME.read_text()
    for name, rows in {
        "_ERRORS": errors,
        "_APIS": apis,
        "_DOCUMENTED": [_wrapped(api, listed[api]) for api in sorted(listed)],
    }.items():
        new = _replaced(rf'(\n{name} = """\n).*?(\n""")', "\n".join(rows), new)
    new = _replaced(r'(\nRELEASE = ")[^"]*(")', clients, new)
    new = _replaced(r"(kafka-clients:)\S+()", clients, new)
    return _replaced(r"(sources\s+of\s+)\S+(;)", sources, new)


def _replaced(pattern: str, rows: str, text: str) -> str:
    """What is between both groups of a pattern, which occurs once."""
    (found,) = re.finditer(pattern, text, re.DOTALL)
    return text[: found.end(1)] + rows + text[found.start(2) :]


def names(clients: Path) -> tuple[list[str], list[str]]:
    """The rows of the errors and of the APIs, from the classes of a jar. Raises LookupError without a JDK or
    without slf4j, which Kafka's classes need to load."""
    loggers = sorted((REPOSITORY / "org" / "slf4j" / "slf4j-api").glob("1.7.*/slf4j-api-1.7.*[0-9].jar"))
    if not loggers:
        raise LookupError("expected org.slf4j:slf4j-api:1.7 in the local repository, saw none; get it")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "Names.java"
        program.write_text(PROGRAM)
        classes = f"{clients}:{loggers[-1]}"
        ended = subprocess.run(
            ["java", "-cp", classes, str(program)], capture_output=True, text=True, timeout=JAVA_S
        )
    if ended.returncode:
        raise LookupError(f"expected a JDK of version 11 or later that runs, saw: {ended.stderr[:500]}")
    lines = [line.split(" ", 1) for line in ended.stdout.splitlines()]
    return [row for kind, row in lines if kind == "error"], [row for kind, row in lines if kind == "api"]


def documented(
    clients: Path, sources: Path, errors: set[str], apis: set[str]
) -> Mapping[str, tuple[str, ...]]:
    """The errors that Kafka's documentation of its code lists for each API.

    Args:
        clients: jar with the schemas, whose comments name errors of later versions.
        sources: jar with the classes of responses, whose comments have lists.
        errors: all names.
        apis: all names.
    """
    found: dict[str, set[str]] = {}
    for api, comment in (*_lists(sources), *_schema_comments(clients)):
        words = set(re.findall(r"[A-Z][A-Z_]{3,}", comment)) & errors - {"NONE"}
        if api in apis and words:
            found.setdefault(api, set()).update(words)
    return {api: tuple(sorted(words)) for api, words in found.items()}


def lacking() -> Iterator[str]:
    """What the written tables have and the library of messages does not."""
    from kio.schema.errors import ErrorCode

    from fencepost.traces.kafka_names.protocol import APIS, ERRORS
    from fencepost.wire.passing import understood

    lacks = [error.name for error in ERRORS if error.code not in {int(each) for each in ErrorCode}]
    if lacks:
        yield f"the library of messages lacks the errors {', '.join(lacks)}"
    for api in APIS:
        read = understood(api.key)
        if api.spoken and read != (api.lowest, api.highest):
            yield f"{api.name} has the versions {api.lowest} to {api.highest}; those that can be read: {read}"


def _jar(version: str, kind: str = "") -> Path:
    path = REPOSITORY / "org/apache/kafka/kafka-clients" / version / f"kafka-clients-{version}{kind}.jar"
    if not path.exists():
        artifact = f"org.apache.kafka:kafka-clients:{version}" + (":jar:sources" if kind else "")
        raise LookupError(f"expected {path.name} in the local repository, saw none; get {artifact} by Maven")
    return path


def _lists(sources: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(sources) as jar:
        for name in sorted(jar.namelist()):
            if name.startswith(RESPONSES) and name.endswith("Response.java"):
                api = name.removeprefix(RESPONSES).removesuffix("Response.java")
                for comment in re.findall(r"/\*\*.*?\*/", jar.read(name).decode(), re.DOTALL):
                    if "ossible error" in comment:
                        yield ALIASES.get(api, api), comment


def _schema_comments(clients: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(clients) as jar:
        for name in sorted(jar.namelist()):
            match = re.fullmatch(SCHEMAS + r"(\w+?)(Request|Response)\.json", name)
            if match:
                for line in jar.read(name).decode().splitlines():
                    if line.lstrip().startswith("//"):
                        yield match[1], line


def _wrapped(api: str, errors: Iterable[str]) -> str:
    lines = [api]
    for error in errors:
        if len(lines[-1]) + 1 + len(error) > WIDTH:
            lines.append(" ")
        lines[-1] += f" {error}"
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
