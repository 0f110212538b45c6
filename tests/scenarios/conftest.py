"""Makes the lab (tests/impl) importable here, and adds the flag that rewrites the transcripts."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "impl"), str(HERE.parent / "impl" / "controller")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write the transcripts of tests/scenarios anew instead of comparing them (name the folder: "
        "pytest tests/scenarios)",
    )
