"""Java, for what runs on it: that of JAVA_HOME, or else the first on the path.

Owns where it is looked for, and the sentences for one that is missing, does not run or is too old. Each
program is asked for its version once in a process. Must not know what runs on it.
"""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from fencepost.traces.errors import EnvironmentError_

ANSWER_S = 120
"""`java -version` answers in a fraction of a second, or in ten on a crowded machine; one that needs longer is
not usable."""


LEAST = 17
HINT = "install a Java runtime {} or newer, or point JAVA_HOME at one"


def find_java(what: str, least: int = LEAST, or_else: str = "") -> str:
    """The Java program, whose version is not looked at. Raises EnvironmentError_ if there is none.

    Args:
        what: runs on it, such as "TLC".
        least: the oldest version that will do, to be named.
        or_else: what else helps, an end of the sentence.
    """
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if program is None:
        raise EnvironmentError_(
            expected=f"Java {least} or newer for {what}",
            seen=f"no java in {Path(home) / 'bin'}" if home else "no java on the path",
            where="JAVA_HOME" if home else "PATH",
            hint=HINT.format(least) + or_else,
        )
    return program


def check_java(what: str, least: int = LEAST) -> tuple[str, int]:
    """The Java program and its major version. Raises EnvironmentError_ also if it is too old or fails.

    Args:
        what: runs on it, such as "TLC".
        least: the oldest version that will do.
    """
    program = find_java(what, least)
    try:
        version = java_version(banner(program))
        seen = f"Java {version}" if version else "a java that does not say its version"
    except (OSError, subprocess.SubprocessError) as error:
        version = None
        seen = getattr(error, "strerror", None) or f"that it does not run ({type(error).__name__})"
    if version is None or version < least:
        expected = f"Java {least} or newer for {what}"
        raise EnvironmentError_(expected=expected, seen=seen, where=program, hint=HINT.format(least))
    return program, version


@cache
def banner(program: str) -> str:
    """What a Java says of itself."""
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=True)
    return done.stderr + done.stdout


def java_version(banner: str) -> int | None:
    """The major version in the output of `java -version`: 17 of 17.0.15, 8 of 1.8.0_392; None if it names
    none."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found[1]) if found else None
