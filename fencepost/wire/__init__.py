"""Kafka's protocol, sans-IO: frames, versions, connections, and the translation between Kafka's messages and
the core's.

The only importer of kio, whose classes are Kafka's messages, one class for each version. Must not know how a
broker core runs.
"""

from importlib.util import find_spec

from fencepost.traces.errors import MissingExtraError

if find_spec("kio") is None:
    raise MissingExtraError(package="kio", extra="kafka", needed_for="Kafka's protocol")
