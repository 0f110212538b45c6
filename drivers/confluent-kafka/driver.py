"""The driver of librdkafka, through confluent-kafka."""

import confluent_kafka
from admin import Admin
from consumer import Consumer
from library import ASSIGNORS, CODECS, NAMES, error_of
from lines import serve
from producer import Producer

serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="confluent-kafka",
    library="librdkafka " + confluent_kafka.libversion()[0],
    version=confluent_kafka.__version__,
    codecs=CODECS,
    acks=(0, 1, -1),
    idempotence=True,
    transactions=True,
    assignors=ASSIGNORS,
    commit_modes=("sync", "async"),
    config=[*NAMES, "extra"],
)
