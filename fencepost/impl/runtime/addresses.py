"""HOST:PORT as text. Owns the parser."""

Address = tuple[str, int]


def parse_address(text: str) -> Address:
    """The host and port in a text. Raises ValueError with expected and seen."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"expected HOST:PORT, saw {text!r}")
    return host, int(port)
