"""Apache Kafka's jars: which versions, where they come from, and an archive of their classes.

Owns the coordinates, the call of Maven and the cache. Must not know how a broker is configured. Maven keeps
the jars in its own repository; the cache here holds the class path of each version and an archive of loaded
classes (AppCDS), which halves the processor time of a start.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from attrs import field, frozen

from fencepost.processes.java import banner, check_java
from fencepost.traces.errors import EnvironmentError_, FencepostError

ZOOKEEPER, KRAFT = "3.9.2", "4.4.0"
"""The last line with ZooKeeper, and a recent one with KRaft: what everything here was measured with."""
RECOMMENDED = (ZOOKEEPER, KRAFT)
FIRST_KRAFT = 4
"""Major version of the first release without ZooKeeper; 3.x runs with ZooKeeper here, unless KRaft is asked
for."""
SEPARATE = "separate"
CONTROLLERS = ("", "kraft", SEPARATE, "zookeeper")
"""How a release keeps the cluster's state; empty: by version. kraft: brokers are controllers, too; SEPARATE:
controllers are processes of their own."""
FIRST_WITH_KRAFT = (3, 5)
"""Below it, KRaft lacks what the settings here need."""
SCALA = "2.13"
LOGGER = "org.slf4j:slf4j-simple:1.7.36"
MAVEN_S = 600
"""Longest call of Maven. From an empty repository 44 s were measured, on a good connection."""
DUMP_S = 60
"""Writing the archive takes some seconds of a processor; a machine under load may need many."""
VERSION = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}")
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fencepost</groupId><artifactId>apache-kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def _checked(instance: "Release", attribute: object, value: str) -> None:
    if not VERSION.fullmatch(value):
        raise FencepostError(
            expected="a version such as 3.9.2 or 4.4.0", seen=repr(value), where="Apache Kafka's version"
        )


@frozen(kw_only=True)
class Release:
    """A version of Apache Kafka, and where its jars are."""

    version: str = field(default=KRAFT, validator=_checked)
    # An unpacked release, with the folder libs; None: Maven fetches the jars.
    home: Path | None = None
    # One of CONTROLLERS.
    controllers: str = ""

    def __attrs_post_init__(self) -> None:
        major, minor = (int(part) for part in self.version.split(".")[:2])
        known = self.controllers in CONTROLLERS
        fits = not (self.controllers == "zookeeper" and major >= FIRST_KRAFT) and not (
            self.controllers in ("kraft", SEPARATE) and (major, minor) < FIRST_WITH_KRAFT
        )
        if not known or not fits:
            raise FencepostError(
                expected="kraft or separate (3.5 and later) or zookeeper (before 4.0)",
                seen=f"{self.controllers!r} for {self.version}",
                where="Apache Kafka's controllers",
            )

    @property
    def kraft(self) -> bool:
        """Whether it has controllers of its own (KIP-500); with ZooKeeper otherwise."""
        if self.controllers:
            return self.controllers in ("kraft", SEPARATE)
        return int(self.version.partition(".")[0]) >= FIRST_KRAFT

    @property
    def advertises_control(self) -> bool:
        """Whether the listener of controllers may be advertised (KIP-853): before 4.0 that is refused."""
        return int(self.version.partition(".")[0]) >= FIRST_KRAFT

    def class_path(self) -> str:
        """The jars, as `java -cp` wants them. Raises EnvironmentError_ where they cannot be had."""
        return _from_maven(self.version) if self.home is None else _from_home(self.home)

    def archive(self) -> Path:
        """Where the archive of its loaded classes is, or will be. Java ignores an archive of other jars or of
        another Java, so each combination has its own file."""
        loads = banner(check_java("Apache Kafka")[0]) + self.class_path()
        return _cache(self.version) / f"classes-{hashlib.sha256(loads.encode()).hexdigest()[:16]}.jsa"

    def make_archive(self, pid: int) -> bool:
        """Let a running broker that was started with `recording` write the archive. Returns whether it did.
        The broker is suspended for about a second."""
        target = self.archive()
        jcmd = shutil.which("jcmd")
        if target.exists() or jcmd is None:
            return False
        draft = target.with_suffix(f".{os.getpid()}")
        try:
            done = subprocess.run(
                [jcmd, str(pid), "VM.cds", "dynamic_dump", str(draft)],
                capture_output=True,
                timeout=DUMP_S,
                check=False,
            )
            if done.returncode or not draft.exists():
                return False
            draft.replace(target)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            draft.unlink(missing_ok=True)

    def sharing(self) -> tuple[str, ...]:
        """Java's flags: use the archive, or record for one."""
        target = self.archive()
        if target.exists():
            return (f"-XX:SharedArchiveFile={target}",)
        return ("-XX:+RecordDynamicDumpInfo",) if shutil.which("jcmd") else ()


def missing() -> str:
    """Why real brokers cannot run here without `home`; empty if they can."""
    absent = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"needs {' and '.join(absent)} on the PATH (Java 17 or later, Maven 3)" if absent else ""


def _caches() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "fencepost" / "apache-kafka"


def _cache(version: str) -> Path:
    folder = _caches() / version
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached() -> tuple[str, ...]:
    """The versions whose jars were fetched before, and are still there."""
    found = [
        path.name
        for path in _caches().glob("*")
        if VERSION.fullmatch(path.name) and _known_class_path(path / "class-path")
    ]
    return tuple(sorted(found, key=lambda one: [int(part) for part in one.split(".")]))


def _known_class_path(file: Path) -> str:
    """The class path that was found before; empty if there is none, or a jar of it is gone."""
    path = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    return path if path and all(Path(jar).exists() for jar in path.split(os.pathsep)) else ""


def _from_home(home: Path) -> str:
    if not list((home / "libs").glob("kafka_*.jar")):
        raise EnvironmentError_(
            expected="an unpacked release of Apache Kafka, with libs/kafka_*.jar",
            seen="none",
            where=str(home),
        )
    return f"{home / 'libs'}/*"


def _from_maven(version: str) -> str:
    return fetched(_cache(version), (f"org.apache.kafka:kafka_{SCALA}:{version}", LOGGER))


def fetched(folder: Path, coordinates: tuple[str, ...]) -> str:
    """The class path of these artifacts and of what they need, from Maven once, then from the folder.

    Args:
        folder: that keeps the class path, and is there.
        coordinates: of each artifact, GROUP:NAME:VERSION.

    Raises:
        EnvironmentError_: without Maven, or where it does not fetch them.
    """
    known = folder / "class-path"
    if path := _known_class_path(known):
        return path
    maven = shutil.which("mvn")
    if maven is None:
        raise EnvironmentError_(
            expected="Maven 3, to fetch Apache Kafka",
            seen="no program named mvn",
            where="PATH",
            hint="install it, or name an unpacked release with --kafka-home DIR",
        )
    pom = folder / "pom.xml"
    pom.write_text(
        POM.format(dependencies="".join(DEPENDENCY.format(*each.split(":")) for each in coordinates)),
        encoding="utf-8",
    )
    draft = folder / f"class-path.{os.getpid()}"
    command = [
        *(maven, "-q", "-B", "-f", str(pom)),
        *("dependency:build-classpath", f"-Dmdep.outputFile={draft}"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_S, check=False)
        if done.returncode or not draft.exists():
            raise EnvironmentError_(
                expected=f"{coordinates[0]} from Maven's repositories",
                seen=(done.stdout + done.stderr).strip()[-300:] or f"exit code {done.returncode}",
                where=" ".join(command[1:5]),
                hint="name an unpacked release with --kafka-home DIR",
            )
        draft.replace(known)
    except subprocess.TimeoutExpired:
        raise EnvironmentError_(
            expected=f"{coordinates[0]} within {MAVEN_S} s", seen="no end of Maven", where=str(pom)
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return known.read_text(encoding="utf-8").strip()
