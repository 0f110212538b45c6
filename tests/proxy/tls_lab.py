"""A certificate for loopback, and both ends of TLS with it."""

import ssl
import subprocess
from pathlib import Path

import pytest

COMMAND = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext "
    "subjectAltName=IP:127.0.0.1"
)


def certificate(folder: Path) -> tuple[Path, Path]:
    """(certificate, key), made by openssl; skips without one."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = subprocess.run([*COMMAND.split(), "-keyout", key, "-out", cert], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"openssl makes no certificate here: {made.stderr[-200:]!r}")
    return cert, key


def server_side(files: tuple[Path, Path]) -> ssl.SSLContext:
    """Of who shows the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context


def client_side(files: tuple[Path, Path]) -> ssl.SSLContext:
    """Of who trusts it and nothing else."""
    return ssl.create_default_context(cafile=str(files[0]))
