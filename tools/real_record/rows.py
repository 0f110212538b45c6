"""The rows of the record: which systems are broken, with which plans, and how often.

Owns the list. Must not know how a campaign is driven. Every row has all seeds from 0 on, so that nobody chose
them.
"""

from collections.abc import Iterator

from attrs import field, frozen

from fencepost.campaign.swarm.real_systems import CONTROLS, REAL_PROFILE, STRONG_PROFILE

NEWEST, LAST_WITH_ZOOKEEPER = "apache-kafka:4.4.0", "apache-kafka:3.9.2"
OTHERS = ("apache-kafka:3.5.2", "apache-kafka:4.0.0", "apache-kafka:4.1.1", "kfake", "librdkafka-mock")
MANY, SOME, OF_CONTROL = 200, 50, 20
"""Runs of a row: of the two versions that matter most, of the other systems, of a control."""
LYING = "lying-fsync"


@frozen(kw_only=True)
class Row:
    """A campaign."""

    # As `--system` has it.
    system: str
    runs: int
    # Of the swarm for real systems.
    profile: str = STRONG_PROFILE
    # What has to be found; empty: nothing may be.
    control: str = ""
    # `links`, `disks`.
    extra: frozenset[str] = field(factory=frozenset)

    @property
    def name(self) -> str:
        """Of the row, and of its folder."""
        parts = [self.system.replace(":", "-"), self.control or self.profile, *sorted(self.extra)]
        return ".".join(parts)

    @property
    def plans(self) -> str:
        """Its plans, in words."""
        drawn = f"control `{self.control}`" if self.control else f"`{self.profile}`"
        return drawn + "".join(f", `--{option}`" for option in sorted(self.extra))


def _rows() -> Iterator[Row]:
    for system in (NEWEST, LAST_WITH_ZOOKEEPER):
        yield Row(system=system, runs=MANY)
        yield Row(system=system, runs=SOME, profile=REAL_PROFILE)
    for system in OTHERS:
        yield Row(system=system, runs=SOME)
    for system in (NEWEST, LAST_WITH_ZOOKEEPER):
        for option in ("links", "disks"):
            yield Row(system=system, runs=SOME, extra=frozenset({option}))
        for control in CONTROLS:
            disks = frozenset({"disks"}) if control == LYING else frozenset[str]()
            yield Row(system=system, runs=OF_CONTROL, profile=REAL_PROFILE, control=control, extra=disks)


ROWS: tuple[Row, ...] = tuple(_rows())
