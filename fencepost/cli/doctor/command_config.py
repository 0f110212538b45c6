"""The file of --command-config, as Kafka's own tools take it: Java properties that say how to log in.

Owns which properties are understood. What is not understood is refused by name: a setting that is passed over
in silence would be a login that its owner did not mean.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from fencepost.traces.errors import EnvironmentError_, FencepostError
from fencepost.wire.client import Access
from fencepost.wire.sasl import PLAIN, SCRAM

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = (PLAIN, *SCRAM)
PROTOCOL, MECHANISM, JAAS = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
TYPE, LOCATION, CERTIFICATES = "ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.certificates"
CA, NAME_CHECK = "ssl.ca.location", "ssl.endpoint.identification.algorithm"
UNDERSTOOD = (PROTOCOL, MECHANISM, JAAS, TYPE, LOCATION, CERTIFICATES, CA, NAME_CHECK)
WITHOUT_EFFECT = ("client.id", "request.timeout.ms", "default.api.timeout.ms", "retries", "retry.backoff.ms")
"""Understood, and of no use here: doctor has its own time limits."""
_LINE = re.compile(r"\s*((?:\\.|[^\\\s=:])+)\s*[=:\s]?\s*(.*)", re.DOTALL)
_VALUE = r"""\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')"""


def access_of(file: Path | None, option: str = "--command-config") -> Access:
    """How to log in, as the file says.

    Args:
        file: Java properties; None: plain TCP without a login.
        option: that names the file, for the message.

    Raises:
        FencepostError: a property that is not understood, or a value that is none.
        EnvironmentError_: the file, or one that it names, cannot be read.
    """
    found = {} if file is None else _properties(_text(file, option))
    where = str(file)
    for name in found:
        if name not in UNDERSTOOD and name not in WITHOUT_EFFECT:
            raise _mistake(f"one of {', '.join(UNDERSTOOD)}", f"{name}, which is not understood", where)
    protocol = found.get(PROTOCOL, "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise _mistake(f"{PROTOCOL} {', '.join(PROTOCOLS)}", found[PROTOCOL], where)
    tls = _tls(found, where) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Access(tls=tls)
    mechanism = found.get(MECHANISM, "GSSAPI")  # Kafka's default
    if mechanism not in MECHANISMS:
        raise _mistake(f"{MECHANISM} {', '.join(MECHANISMS)}", mechanism, where)
    user, password = (_of_jaas(found.get(JAAS, ""), name, where) for name in ("username", "password"))
    return Access(tls=tls, user=user, password=password, mechanism=mechanism)


def _tls(found: Mapping[str, str], where: str) -> ssl.SSLContext:
    kind = found.get(TYPE, "PEM" if CA in found or CERTIFICATES in found else "JKS").upper()
    if LOCATION in found and kind != "PEM":
        raise _mistake(
            f"{TYPE}=PEM", kind, where, "keytool -exportcert -rfc writes the certificates of a store as PEM"
        )
    path = found.get(LOCATION) or found.get(CA)
    pem = found.get(CERTIFICATES) or (_text(Path(path), where) if path else None)
    try:
        context = ssl.create_default_context(cadata=pem)
    except ssl.SSLError as error:
        raise _mistake("certificates in PEM", str(error), f"{where}, {path or CERTIFICATES}") from None
    context.check_hostname = found.get(NAME_CHECK, "https") != ""
    return context


def _of_jaas(config: str, name: str, where: str) -> str:
    found = re.search(rf"\b{name}{_VALUE}", config)
    if found is None:
        raise _mistake(f'{JAAS} with {name}="..."', "none", where)
    return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2])


def _properties(text: str) -> dict[str, str]:
    """Java's format: comments, `=`, `:` or a blank after the name, lines that a backslash continues."""
    found: dict[str, str] = {}
    whole = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t]*", r"\1", text)
    for line in filter(None, map(str.strip, whole.splitlines())):
        parts = _LINE.fullmatch(line)
        if line[0] not in "#!" and parts is not None:
            found[_plain(parts[1])] = _plain(parts[2])
    return found


def _plain(text: str) -> str:
    named = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else named.get(match[2], match[2]),
        text,
    )


def _text(file: Path, where: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentError_(
            expected=f"the text of {file}",
            seen=getattr(error, "strerror", None) or "bytes that are no UTF-8",
            where=where,
        ) from None


def _mistake(expected: str, seen: str, where: str, hint: str = "") -> FencepostError:
    return FencepostError(expected=expected, seen=seen, where=where, hint=hint)
