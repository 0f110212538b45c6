"""ApiVersions and SASL's first words."""

import struct
from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.lab import Lab, outcome

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
CORE = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18)


async def _version(version: int, lab: Lab) -> Facts:
    values = {"client_software_name": "fencepost", "client_software_version": "1.0"}
    answer = await lab.ask(await lab.link(), API_VERSIONS, version, **values)
    keys = {each["api_key"] for each in answer["api_keys"]}
    return [answer["error_code"], sorted(answer), [key in keys for key in CORE]]


in_versions(
    "api_versions.v%d",
    "What the broker speaks, in version %d: whether a client's APIs are there.",
    range(4),
    _version,
)


async def _named(name: str, version: str, lab: Lab) -> Facts:
    values: dict[str, Any] = {"client_software_name": name, "client_software_version": version}
    answer = await outcome(lab.ask(await lab.link(), API_VERSIONS, 3, **values))
    return answer if answer == "closed" else [answer["error_code"], bool(answer["api_keys"])]


case("api_versions.no_software_name", "Version 3 from software without a name.")(partial(_named, "", "1"))
case("api_versions.no_software_version", "Version 3 from software without a version.")(
    partial(_named, "x", "")
)
case("api_versions.odd_software_name", "Version 3 from software with spaces in its name.")(
    partial(_named, "a b c", "1")
)


@case(
    "api_versions.later_version_is_answered_in_version_0",
    "Version 99: the error, and the range of ApiVersions.",
)
async def later(lab: Lab) -> Facts:
    raw = await lab.raw()
    raw.send_frame(struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\x00\x01\x01\x00")
    frame = await raw.frame()
    if frame is None:
        return "closed"
    correlation, error, count = struct.unpack_from(">ihi", frame)
    rows = [struct.unpack_from(">hhh", frame, 10 + 6 * place) for place in range(count)]
    return [correlation, error, [[key, low] for key, low, _ in rows if key == API_VERSIONS]]


@case("api_versions.negative_version", "Version -1.")
async def negative(lab: Lab) -> Facts:
    raw = await lab.raw()
    raw.send_frame(struct.pack(">hhih", API_VERSIONS, -1, 7, -1))
    return await raw.end()


@case("api_versions.twice_on_a_connection", "Asked twice on one connection.")
async def twice(lab: Lab) -> Facts:
    link = await lab.link()
    return [(await lab.ask(link, API_VERSIONS, 0))["error_code"] for _ in range(2)]


@case("sasl_handshake.on_a_plain_listener", "A SASL handshake on a listener without login.")
async def handshake(lab: Lab) -> Facts:
    if lab.run.access.user:
        return None
    answer = await outcome(lab.ask(await lab.link(), SASL_HANDSHAKE, mechanism="PLAIN"))
    return answer if answer == "closed" else answer["error_code"]


@case("sasl_authenticate.on_a_plain_listener", "A SASL token on a listener without login.")
async def authenticate(lab: Lab) -> Facts:
    if lab.run.access.user:
        return None
    answer = await outcome(lab.ask(await lab.link(), SASL_AUTHENTICATE, auth_bytes=b"\0u\0p"))
    return answer if answer == "closed" else answer["error_code"]


async def _advertised(key: int, lab: Lab) -> Facts:
    low, high = lab.run.ranges.get(key, (-1, -1))
    return 0 <= low <= high


_ROWS = {0: "Produce", 1: "Fetch", 3: "Metadata", 18: "ApiVersions", 19: "CreateTopics", 22: "InitProducerId"}
for _key, _api in _ROWS.items():
    case(f"api_versions.lists_{_api.lower()}", f"Whether {_api} is advertised.")(partial(_advertised, _key))
