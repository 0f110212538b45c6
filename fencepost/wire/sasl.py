"""Who a client is: SASL/PLAIN (RFC 4616), as Kafka frames it (KIP-43, KIP-152).

Owns the state of one connection's authentication. Must not know sockets or any other request. Passwords are
compared in constant time, and never appear in a message.
"""

import hmac
from collections.abc import Mapping

from attrs import define, field

PLAIN = "PLAIN"
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
