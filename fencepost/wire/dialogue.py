"""The client's side of one connection, sans-IO: requests out, responses in.

Owns correlation ids and the versions agreed on. Must not know sockets, or what a request means.
"""

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen
from kio.schema.api_versions.v0.request import ApiVersionsRequest

from fencepost.wire.codec import correlation_id_of, read_response, write_request
from fencepost.wire.frames import FrameBuffer, ProtocolError
from fencepost.wire.limits import Limits
from fencepost.wire.plain import request
from fencepost.wire.versions import API_VERSIONS, APIS

CLIENT_ID = "fencepost"
LARGEST_NUMBER = (1 << 31) - 1


@frozen
class Versions:
    """The range that the broker speaks of each API, by key."""

    ranges: Mapping[int, tuple[int, int]]

    def common(self, key: int) -> int:
        """The highest version that both sides speak. Raises ProtocolError if there is none."""
        mine = APIS[key]
        low, high = self.ranges.get(key, (0, -1))
        version = min(mine.highest, high)
        if version < max(low, mine.lowest, mine.lowest_decoded):
            raise ProtocolError(
                expected=f"a broker that speaks {mine.name} version {mine.lowest} to {mine.highest}",
                seen=f"{low} to {high}" if high >= 0 else "one that does not know it",
                where="ApiVersions",
            )
        return version


@define(eq=False, kw_only=True)
class Dialogue:
    """The client's side of one connection, sans-IO."""

    limits: Limits = field(factory=Limits)
    # Sent with every request.
    client_id: str = CLIENT_ID
    # The highest version of an API that is spoken although both sides know a higher one, by key.
    caps: Mapping[int, int] = field(factory=dict)
    # The broker's; None before its answer to ApiVersions.
    versions: Versions | None = None
    # (API key, version) of each request that expects an answer, by correlation id.
    waiting: dict[int, tuple[int, int]] = field(factory=dict)
    _buffer: FrameBuffer = field(init=False)
    _last_number: int = 0

    def __attrs_post_init__(self) -> None:
        self._buffer = FrameBuffer(self.limits.request_bytes)

    def make(self, key: int, /, **values: Any) -> Any:
        """A request of an API as kio's class, at the version agreed on. values: as of `plain.filled`."""
        return request(key, 0 if self.versions is None else self.versions.common(key), values)

    def ask(self, body: Any, *, answered: bool = True) -> tuple[int, bytes]:
        """Correlation id and bytes of a request. answered: whether the broker will answer it (not a produce
        with acks=0)."""
        self._last_number = self._last_number % LARGEST_NUMBER + 1
        number = self._last_number
        if answered:
            self.waiting[number] = (body.__api_key__, body.__version__)
        return number, write_request(number, self.client_id, body)

    def ask_versions(self) -> tuple[int, bytes]:
        """The first request of every connection, in the version that every broker knows."""
        return self.ask(ApiVersionsRequest())

    def receive(self, data: bytes) -> list[tuple[int, Any]]:
        """Correlation ids and bodies of the answers that these bytes complete. Raises ProtocolError."""
        self._buffer.feed(data)
        answers = []
        while (frame := self._buffer.take()) is not None:
            key, version = self._expected(frame)
            number, body = read_response(key, version, frame, self.limits.elements)
            if key == API_VERSIONS:
                self.versions = Versions(
                    {
                        each.api_key: (
                            each.min_version,
                            min(each.max_version, self.caps.get(each.api_key, each.max_version)),
                        )
                        for each in body.api_keys
                    }
                )
            answers.append((number, body))
        return answers

    def _expected(self, frame: bytes) -> tuple[int, int]:
        number = correlation_id_of(frame) if len(frame) >= 4 else None
        expected = self.waiting.pop(number, None) if number is not None else None
        if expected is None:
            raise ProtocolError(
                expected=f"an answer to one of {len(self.waiting)} requests",
                seen=str(number),
                where="a response",
            )
        return expected
