"""What it costs to validate produced records before the append, against decoding them.

    python bench/validation.py [--quick]

CPU microseconds a record of 100 bytes (a key in addition), best of several rounds that take turns. `walk` is
the plain form of the rule, `machine` its machine code, and `validated` is all that a leader does before the
append (checksum, header, bounds, every record): first with the plain form, then with machine code, which a
broker loads after MACHINE_CODE_AFTER records. `x decode` is the latter's cost over that of read_records on
the same bytes in the same rounds.
"""

import argparse
import sys

from log import best, records_of, repeated
from rich.console import Console
from rich.table import Table

from fencepost.impl.log import validation
from fencepost.impl.log.batch.machine_walk import walk_of
from fencepost.impl.log.batch.record_batch import (
    HEADER_SIZE,
    Header,
    Record,
    encode_batch,
    read_header,
    read_records,
)
from fencepost.impl.log.batch.record_walk import MachineWalk, walk
from fencepost.impl.log.log_options import LogOptions

COUNTS = (1, 10, 100, 150, 1_000, 8_000)
"""Records to a batch; 150 of them are Kafka's batch.size of 16 KiB."""
OPTIONS = LogOptions(max_message_bytes=1 << 30)
RECORDS_A_ROUND = 30_000


PLAIN, MACHINE = MachineWalk(), MachineWalk()
MACHINE.load()


def with_form(form: MachineWalk, data: bytes) -> bytes:
    """Validate by one form of the walk."""
    validation.examine = form.examine
    return validation.validated(data, OPTIONS)


def shape(count: int, headers: bool) -> list[Record]:
    """Records of 100 bytes with a key, and a header or none."""
    tail = (Header("trace", b"0123456789abcdef"),) if headers else ()
    return [Record(one.offset, one.timestamp_ms, one.key, one.value, tail) for one in records_of(count)]


def costs(rounds: int, scale: int) -> Table:
    """The table."""
    table = Table(title="microseconds of CPU a record of 100 bytes")
    for title in (
        "records",
        "headers",
        "codec",
        "decode",
        "walk",
        "machine",
        "validated",
        "validated, m.",
        "x decode",
    ):
        table.add_column(title, justify="left" if title in ("headers", "codec") else "right")
    cases = [(count, False, "none") for count in COUNTS] + [
        (150, True, "none"),
        (150, False, "lz4"),
        (150, False, "zstd"),
    ]
    for count, headers, codec in cases:
        data = encode_batch(shape(count, headers), base_offset=0, leader_epoch=-1, codec=codec)
        plain = encode_batch(shape(count, headers), base_offset=0, leader_epoch=-1)[HEADER_SIZE:]
        header, times = read_header(data), max(1, RECORDS_A_ROUND // scale // count)
        works = [
            lambda data=data, header=header: read_records(data, header),
            lambda plain=plain, count=count: walk(plain, count, count - 1),
            lambda plain=plain, count=count: walk_of(plain, 0, count, count - 1),
            lambda data=data: with_form(PLAIN, data),
            lambda data=data: with_form(MACHINE, data),
        ]
        taken = best(*((lambda: None, repeated(work, times)) for work in works), rounds=rounds)
        micro = [one.cpu_s / times / count * 1e6 for one in taken]
        table.add_row(
            str(count), "one" if headers else "none", codec, f"{micro[0]:.2f}", f"{micro[1]:.2f}",
            f"{micro[2]:.2f}", f"{micro[3]:.2f}", f"{micro[4]:.2f}", f"{micro[4] / micro[0]:.2f}",
        )  # fmt: skip
    return table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work, one round: does the table come out?"
    )
    arguments = parser.parse_args()
    Console(width=110).print(costs(1 if arguments.quick else 7, 10 if arguments.quick else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
