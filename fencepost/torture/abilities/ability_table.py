"""The table of abilities: its columns, and its cells for one library.

Owns which column needs what. Must not know how a check is done (checks.py).
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from fencepost.kafka import KafkaCluster
from fencepost.torture.abilities import checks
from fencepost.torture.abilities.bench import Bench
from fencepost.torture.abilities.comparison import PARTITIONS, LackingError, WrongError
from fencepost.torture.building import Built
from fencepost.torture.driver_process import Driver
from fencepost.torture.protocol import DisturbedError, DriverError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


@frozen(kw_only=True)
class Ability:
    """One cell of a row."""

    # The column.
    name: str
    # Raises WrongError, or DriverError.
    check: Callable[[Bench], None]
    # Whether the library says that it has it.
    needs: Callable[[Driver], bool]


def _has(command: str) -> Callable[[Driver], bool]:
    return lambda driver: command in driver.ready.commands


ABILITIES: tuple[Ability, ...] = (
    *(
        Ability(
            name=f"acks={'all' if acks == -1 else acks}",
            check=lambda bench, acks=acks: checks.check_acks(bench, acks),  # type: ignore[misc]
            needs=lambda driver, acks=acks: acks in driver.ready.acks,  # type: ignore[misc]
        )
        for acks in (0, 1, -1)
    ),
    *(
        Ability(
            name=codec,
            check=lambda bench, codec=codec: checks.check_codec(bench, codec),  # type: ignore[misc]
            needs=lambda driver, codec=codec: codec in driver.ready.codecs,  # type: ignore[misc]
        )
        for codec in CODECS[1:]
    ),
    Ability(name="idempotent", check=checks.check_idempotent, needs=lambda driver: driver.ready.idempotence),
    Ability(name="consume", check=checks.check_consume, needs=_has("assign")),
    Ability(
        name="null is not empty",
        check=lambda bench: checks.check_consume(bench, exact=True),
        needs=_has("assign"),
    ),
    Ability(
        name="null headers",
        check=lambda bench: checks.check_consume(bench, exact=True, nulls=True),
        needs=_has("assign"),
    ),
    *(
        Ability(
            name=assignor,
            check=lambda bench, assignor=assignor: checks.check_group(bench, assignor),  # type: ignore[misc]
            needs=lambda driver, assignor=assignor: assignor in driver.ready.assignors,  # type: ignore[misc]
        )
        for assignor in ASSIGNORS
    ),
    Ability(name="commit", check=checks.check_commit, needs=_has("commit")),
    *(
        Ability(
            name=name,
            check=lambda bench, step=step: checks.check_topics(bench, step),  # type: ignore[misc]
            needs=_has(command),
        )
        for name, step, command in (
            ("create topics", "create", "create_topics"),
            ("describe topics", "describe", "describe_topics"),
            ("change configs", "configs", "alter_configs"),
            ("delete topics", "delete", "delete_topics"),
        )
    ),
)
"""Every column, in order."""


@frozen(kw_only=True)
class Cell:
    """What came of one check."""

    ability: str
    # ok, failed, or absent: the library has nothing of the kind.
    outcome: str
    why: str = ""


def try_out(bench: Bench, ability: Ability) -> Cell:
    """Try one ability. Returns its cell of the table. Raises DisturbedError."""
    if not ability.needs(bench.driver):
        return Cell(ability=ability.name, outcome="absent")
    try:
        ability.check(bench)
    except LackingError as error:
        return Cell(ability=ability.name, outcome="absent", why=str(error))
    except WrongError as error:
        return Cell(ability=ability.name, outcome="failed", why=str(error))
    except DisturbedError:
        raise
    except DriverError as error:
        return Cell(ability=ability.name, outcome="failed", why=str(error))
    return Cell(ability=ability.name, outcome="ok")


def try_all(
    built: Built,
    kafka: KafkaCluster,
    abilities: Sequence[Ability] = ABILITIES,
    progress: Callable[[Cell], None] = lambda cell: None,
) -> tuple[str, list[Cell]]:
    """Try all abilities. built: the driver; kafka: the cluster; progress: called with each cell. Returns the
    version that the driver reports, and the cells. A driver that ended is restarted. Raises
    DriverError if it does not start."""
    cells = []
    driver = Driver.start(built)
    version = driver.ready.version

    def create_topic(name: str) -> None:
        kafka.create_topic(name, partitions=PARTITIONS)

    try:
        for ability in abilities:
            if driver.failure:
                driver.kill()
                driver = Driver.start(built)
            bench = Bench(driver=driver, bootstrap_servers=kafka.bootstrap_servers, create_topic=create_topic)
            cells.append(try_out(bench, ability))
            progress(cells[-1])
    finally:
        driver.end()
    return version, cells
