"""The driver of aiokafka. Its event loop has a thread of its own."""

import aiokafka
from admin import Admin
from consumer import Consumer
from library import ASSIGNORS, CODECS, CONSUMER, PRODUCER, error_of
from lines import serve
from producer import Producer

serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="aiokafka",
    library="aiokafka",
    version=aiokafka.__version__,
    codecs=list(CODECS),
    acks=(0, 1, -1),
    idempotence=True,
    transactions=True,
    assignors=list(ASSIGNORS),
    commit_modes=("sync",),
    config=list({**PRODUCER, **CONSUMER}),
)
