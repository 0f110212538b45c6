"""Who a client is: SASL/PLAIN (RFC 4616), as Kafka frames it (KIP-43, KIP-152); and for our own clients SCRAM
(RFC 5802, KIP-84), which our brokers do not speak.

Owns the state of one connection's authentication, and what a client says to log in. Must not know sockets or
any other request. Passwords are
compared in constant time, and never appear in a message.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator, Mapping

from attrs import define, field

from fencepost.wire.frames import ProtocolError

PLAIN = "PLAIN"
SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each mechanism."""
MOST_ITERATIONS = 1_000_000
"""Of SCRAM's hash; Kafka's tools choose 4,096 to 16,384. More would only hold the client up."""
MECHANISMS = (PLAIN,)


@define
class Authentication:
    """The login of one connection."""

    # Passwords by name; None: no login.
    users: Mapping[str, str] | None = field(default=None, repr=False)
    # The mechanism that the client chose, empty before.
    mechanism: str = ""
    # The client's name, empty before the login.
    principal: str = ""
    # Whether tokens come without a request's header, after a SaslHandshake of version 0.
    raw: bool = False

    @property
    def done(self) -> bool:
        """Whether requests may be served."""
        return self.users is None or bool(self.principal)

    def choose(self, mechanism: str, *, raw: bool) -> bool:
        """The client's handshake; whether the mechanism is known here."""
        if mechanism not in MECHANISMS:
            return False
        self.mechanism, self.raw = mechanism, raw and self.users is not None
        return True

    def authenticate(self, token: bytes) -> bool:
        """The client's token: [authorization id] NUL user NUL password. Whether it names one of the users."""
        self.raw = False
        try:
            authorization, user, password = token.decode().split("\0")
        except ValueError:
            return False
        known = (self.users or {}).get(user)
        matches = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not matches or authorization not in ("", user):
            return False
        self.principal = user
        return True


# ---- the client's side


def login(mechanism: str, user: str, password: str, nonce: str) -> Generator[bytes, bytes, None]:
    """What a client says to log in: yields tokens, and takes the broker's answer to each.

    Args:
        mechanism: PLAIN, or one of SCRAM.
        user: a name.
        password: its password.
        nonce: printable characters without a comma, other ones for each login.

    Raises:
        ProtocolError: the broker's answer is none, or it does not know the password.
    """
    if mechanism == PLAIN:
        yield f"\0{user}\0{password}".encode()
        return
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = (yield f"n,,{bare}".encode()).decode(errors="replace")
    said = _attributes(challenge)
    salt, rounds = _decoded(said.get("s", "")), said.get("i", "")
    known = said.get("r", "").startswith(nonce) and said.get("r") != nonce and salt
    if not (known and rounds.isdecimal() and 0 < int(rounds) <= MOST_ITERATIONS):
        raise _refused(f"{mechanism}: a salt, a number of iterations and a longer nonce", challenge)
    name = SCRAM[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, int(rounds))
    client = hmac.digest(salted, b"Client Key", name)
    final = f"c=biws,r={said['r']}"
    signed = f"{bare},{challenge},{final}".encode()
    signature = hmac.digest(hashlib.new(name, client).digest(), signed, name)
    proof = bytes(one ^ other for one, other in zip(client, signature, strict=True))
    answer = (yield f"{final},p={base64.b64encode(proof).decode()}".encode()).decode(errors="replace")
    theirs = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(_decoded(_attributes(answer).get("v", "")), theirs):
        raise _refused(f"{mechanism}: a broker that knows the password of {user}", answer)


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _refused(expected: str, seen: str) -> ProtocolError:
    return ProtocolError(expected=expected, seen=repr(seen[:80]), where="SaslAuthenticate")
