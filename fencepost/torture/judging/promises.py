"""What client libraries promise, by the anomaly that breaks it.

Owns Kafka's words. A driver's own table (driver.toml, [promises]) has precedence. Must not know how anything
is judged (judges.py).
"""

from collections.abc import Mapping

PROMISES = {
    "lost_write": 'acks=all: "This guarantees that the record will not be lost as long as at least one '
    "in-sync"
    ' replica remains alive." (Kafka, producer configuration)',
    "wrong_offset": '"RecordMetadata: The metadata for a record that has been acknowledged by the server": '
    "its"
    " offset is the record's (Kafka, javadoc)",
    "offset_acknowledged_twice": '"RecordMetadata: The metadata for a record that has been acknowledged by'
    ' the server" (Kafka, javadoc): no two records of a partition have one offset',
    "duplicate": 'enable.idempotence: "the producer will ensure that exactly one copy of each message is '
    "written"
    ' in the stream" (Kafka, producer configuration)',
    "reordered": '"Messages sent by a producer to a particular topic partition will be appended in the '
    "order they"
    ' are sent." (Kafka, introduction, guarantees)',
    "reordered_plain": 'max.in.flight.requests.per.connection: "if this configuration is set to be greater'
    ' than 1 and enable.idempotence is set to false, there is a risk of message reordering" (Kafka, producer'
    " configuration): set to 1, there is none",
    "wrong_record": "what is in the log is what the application sent, where it sent it",
    "wrong_delivery": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees): the delivered record is the one that is stored there",
    "delivered_twice": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees), without a rebalance or a seek each once",
    "gap": '"A consumer instance sees records in the order they are stored in the log." (Kafka, introduction,'
    " guarantees): without a rebalance or a seek it leaves none out",
    "skipped": "at least once: a record that was neither delivered nor committed over by the application is"
    " delivered by the group",
    "committed_beyond": "a commit without offsets commits what was delivered, not more",
    "committed_back": 'commitAsync: "Offsets committed through multiple calls to this API are guaranteed to '
    "be sent in"
    ' the same order as the invocations." (Kafka, javadoc of KafkaConsumer): an acknowledged commit is not '
    "undone",
    "stuck_commit": 'commitAsync: "If a callback is provided it will be invoked on the completion"'
    " of a commit (Kafka, javadoc of KafkaConsumer): a commit is answered once brokers are reachable again",
    "revoked_without_reason": 'onPartitionsRevoked: "Before a rebalance operation starts" (Kafka, javadoc of'
    " ConsumerRebalanceListener): a member keeps its partitions until there is a reason to take them",
    "wrong_start": 'auto.offset.reset: "What to do when there is no initial offset in Kafka": earliest,'
    ' latest, or none: "throw exception to the consumer if no previous offset is found" (Kafka, consumer'
    " configuration)",
    "below_committed": '"The committed position is the last offset that has been stored securely. Should '
    "the process"
    ' fail and restart, this is the offset that the consumer will recover to." (Kafka, javadoc of '
    "KafkaConsumer)",
    "transaction_lost": 'commitTransaction: "Commits the ongoing transaction. This method will flush any'
    ' unsent records before actually committing the transaction." (Kafka, javadoc of KafkaProducer): what was'
    " acknowledged in it is committed",
    "committed_after_failure": 'commitTransaction: "if any of the send(ProducerRecord) calls which were part'
    " of the transaction hit irrecoverable errors, this method will throw the last received exception"
    ' immediately and the transaction will not be committed" (Kafka, javadoc of KafkaProducer)',
    "transaction_kept": 'abortTransaction: "Aborts the ongoing transaction. Any unflushed produce messages'
    ' will be aborted" (Kafka, javadoc of KafkaProducer): nothing of it is committed',
    "torn": '"all messages sent between the beginTransaction() and commitTransaction() calls'
    ' will be part of a single transaction" (Kafka, javadoc of KafkaProducer): all or nothing',
    "aborted_delivered": 'read_committed: "will only return transactional messages which have been committed"'
    " (Kafka, consumer configuration, isolation.level)",
    "producer_ended": 'retries: "cause the client to resend any record whose send fails with a potentially'
    ' transient error" (Kafka, producer configuration): once brokers are healthy a producer sends again',
    "copied_twice": 'sendOffsetsToTransaction: "These offsets will be considered committed only if the'
    ' transaction is committed successfully." (Kafka, javadoc of KafkaProducer): records and offsets are'
    " committed together, each record is copied once",
    "copy_lost": 'sendOffsetsToTransaction: "These offsets will be considered committed only if the'
    ' transaction is committed successfully." (Kafka, javadoc of KafkaProducer): no record is passed over'
    " whose copy was not committed",
    "stuck_copier": "an application with transactions continues once brokers are reachable again",
    "unflushed": 'flush: "The post-condition of flush() is that any previously sent record will have'
    ' completed (e.g. Future.isDone() == true)." (Kafka, javadoc of KafkaProducer)',
    "unreadable": "a client's requests are of versions that the broker advertises, and in their format"
    " (Kafka, protocol guide)",
    "stuck_transaction": "a transaction ends once brokers are reachable again",
    "stuck_append": "delivery.timeout.ms: an upper bound on the time to report success or failure after a "
    "call to"
    " send() returns (Kafka, producer configuration)",
    "stuck_consumer": "a consumer continues once brokers are reachable again",
    "held_up": '"automatic failover to these replicas when a server in the cluster fails so messages remain'
    ' available in the presence of failures" (Kafka, design, replication): what a broker serves does not wait'
    " for another one",
    "ended": "a library does not end its application's process",
}
"""What libraries promise, by anomaly. A driver's own table (driver.toml, [promises]) has precedence. An empty
text there says that the library's documentation makes no such promise; then the anomaly is not judged."""


def promises_of(library: Mapping[str, str]) -> dict[str, str]:
    """The promises by anomaly: the library's own words if it has some, else Kafka's."""
    return {**PROMISES, **library}
