"""The errors of each API's answers, and when a correct broker may give them.

Owns the table. Must not know faults.

Sources, per row: the errors that Kafka documents for the API (DOCUMENTED in traces/kafka_names/protocol.py:
the lists "Possible error codes" of the classes of responses, and the comments of the schemas of messages),
the source of Apache Kafka 4.3 and 3.9 (the group coordinator of KIP-848 and the one before it), and what the
row names. Three columns:

- at any time: a broker may answer it whatever the state of its log or group is, because of something that the
  client cannot see (a leader moved, a disk failed, a coordinator loads). The request had no effect.
- after the effect: it may come although the request took effect.
- only if: true only in a state that a fault at the level of requests does not bring about. Answered without
  it, a correct client may lose records by it (OFFSET_OUT_OF_RANGE resets a position), so that a fault that
  answers it is illegal.

Conditions say which requests of an API may be answered so: clients of earlier versions do not know the error.
UNKNOWN_SERVER_ERROR is what KafkaApis.handleError makes of any exception, before the effect or after it.
"""

from collections.abc import Mapping

from fencepost.proxy.faults.answers.admin_errors import ADMINISTRATION
from fencepost.proxy.faults.answers.classic_errors import CLIENTS
from fencepost.proxy.faults.answers.member_errors import MEMBERS
from fencepost.proxy.faults.answers.row import EVERYWHERE, Condition, Row

__all__ = ["ALLOWED", "EVERYWHERE", "Condition", "Row"]

ALLOWED: Mapping[str, Row] = {**CLIENTS, **ADMINISTRATION, **MEMBERS}
"""Of an API that is not here nothing is known: every error but those of EVERYWHERE is illegal."""
