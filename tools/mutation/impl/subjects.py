"""Which sources of impl/ are mutated, and which of their faults count.

Owns the table. Left out: what the simulator does not run (sockets, real files, the admin tools, Kafka's
administration, readers without a group), and every fault in a time-out, a size or a back-off: another value
of one is another option, not a fault of the protocol. Must not know how a mutant is tried.
"""

import ast
import re

from tools.ledger import TOP
from tools.mutation.effects import effects_of
from tools.mutation.fault import Fault
from tools.mutation.finder import faults_of

IMPL = "fencepost/impl"
AREAS: dict[str, tuple[str, ...]] = {
    "replication": ("replication/*.py",),
    "controller": ("controller/*.py", "zookeeper/znodes.py"),
    "coordinator": ("coordinator/*.py",),
    "transaction": ("transaction/*.py",),
    "client": (
        "client/*.py",
        "client/producer/*.py",
        "client/consumer/*.py",
        "client/transaction/*.py",
        "messages/consumer_protocol.py",
    ),
    "registration": ("broker/*.py", "core/*.py"),
    "log": (
        "log/*.py",
        "log/batch/*.py",
        "log/checkpoint/*.py",
        "log/index/*.py",
        "log/producer/*.py",
        "log/segment/*.py",
    ),
}
"""Files by area, below impl/."""
NOT_RUN = (
    "client/reader.py",
    "client/consumer/group_requests.py",
    "controller/grouped_reads.py",
    "log/batch/compiled_walk.py",
    "log/metadata_records.py",
    "log/values.py",
    "coordinator/deletion.py",
    "core/core_interface.py",
    "core/file_system.py",
)
"""Not part of a simulated cluster, or words of its interfaces. Machine code is loaded by a process that has
walked a million records; its callers ask the plain form whenever it is in doubt."""
TUNING = re.compile(
    r"(_ms|_us|_bytes|timeout|patience|backoff|interval|delay|deadline|buffer|window|buckets?|attempts|max_wait|MILLISECOND|[A-Z]+_BYTES|MOST_[A-Z]+|ATTEMPTS)"
    r"(\b|$)",
    re.I,
)
"""What is about time-outs, sizes and back-offs."""
IDLE = re.compile(r"^(__repr__|__str__|.*\b(tell|_tell|record|_refuse_words)\b.*)$")


def files_of(area: str) -> tuple[str, ...]:
    """The sources of an area, from the repository's top."""
    found = (path for pattern in AREAS[area] for path in sorted((TOP / IMPL).glob(pattern)))
    names = dict.fromkeys(path.relative_to(TOP).as_posix() for path in found if path.name != "__init__.py")
    return tuple(name for name in names if name.removeprefix(f"{IMPL}/") not in NOT_RUN)


def mutants_of(file: str) -> list[Fault]:
    """The faults of a source that count."""
    source = (TOP / file).read_text(encoding="utf-8")
    told = _words(source)
    faults = [*faults_of(file, source), *effects_of(file, source)]
    return [fault for fault in faults if not _left_out(fault, told)]


def _left_out(fault: Fault, told: list[range]) -> bool:
    tuning = TUNING.search(fault.before) and not re.search(r"offset|epoch|isr|version", fault.before)
    return bool(tuning) or fault.at_import or any(fault.start in words for words in told)


def _words(source: str) -> list[range]:
    """Byte ranges of what only tells the trace: arguments of record(...) and of marks. Judges read it, so
    that a fault there is no fault of the cluster."""
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
            "record",
            "_record",
            "tell",
            "_tell",
        ):
            assert node.end_lineno is not None and node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            found.append(range(begin, starts[node.end_lineno - 1] + node.end_col_offset))
    return found
