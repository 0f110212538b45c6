"""An application in Java with the interceptors of the tap: its source, and the jars that it needs."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "src" / "main" / "java" / "TappedApp.java"


def clients_jar(class_path: str) -> str:
    """The jar of kafka-clients on a class path. Raises StopIteration if there is none."""
    jars = class_path.split(os.pathsep)
    return next(jar for jar in jars if Path(jar).name.startswith("kafka-clients-"))
