"""The driver of kafka-python."""

import kafka
from admin import Admin
from consumer import Consumer
from kafka import KafkaConsumer, KafkaProducer
from library import ASSIGNORS, CODECS, NAMES, error_of
from lines import COMMON, CONSUMER, PRODUCER, serve
from producer import Producer

serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="kafka-python",
    library="kafka-python",
    version=kafka.__version__,
    codecs=list(CODECS),
    acks=(0, 1, -1),
    assignors=list(ASSIGNORS),
    idempotence="enable_idempotence" in KafkaProducer.DEFAULT_CONFIG,
    transactions=hasattr(KafkaProducer, "begin_transaction"),
    commit_modes=("sync", "async"),
    config=[
        one
        for one in COMMON + PRODUCER + CONSUMER
        if NAMES.get(one, one) in {**KafkaProducer.DEFAULT_CONFIG, **KafkaConsumer.DEFAULT_CONFIG}
    ],
)
