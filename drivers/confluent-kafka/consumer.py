"""The consumer."""

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition
from consuming import Consuming
from library import COMMIT_S, PLACES, error_of, properties, thrown
from lines import COMMON, CONSUMER, encoded, happened


class Consumer(Consuming):
    """confluent_kafka.Consumer."""

    named = {}  # noqa: RUF012 - every consumer of this process

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON + CONSUMER)
        made.setdefault("group.id", f"{name}-alone")
        super().__init__(name)
        self.client, self.named[name] = confluent_kafka.Consumer(made), self
        self.cooperative = config.get("assignor") == "cooperative-sticky"

    def saying(self, event):
        def listener(consumer, partitions):
            self.say(event, partitions, member=consumer.memberid() if event == "assigned" else None)
            if event == "assigned" and self.rewinds:
                begin = [Partition(one.topic, one.partition, OFFSET_BEGINNING) for one in partitions]
                (consumer.incremental_assign if self.cooperative else consumer.assign)(begin)

        return listener

    def subscribe(self, command):
        self.client.subscribe(
            command["topics"],
            on_assign=self.saying("assigned"),
            on_revoke=self.saying("revoked"),
            on_lost=self.saying("lost"),
        )

    resubscribe = subscribe

    def pause(self, command):
        self.client.pause(self.client.assignment())

    def resume(self, command):
        self.client.resume(self.client.assignment())

    def assign(self, command):
        where = [(one, PLACES.get(one["offset"], one["offset"])) for one in command["partitions"]]
        self.client.assign([Partition(one["topic"], one["partition"], offset) for one, offset in where])

    def fetched(self, timeout_ms, most):
        messages = self.client.consume(most, timeout_ms / 1000)
        for one in messages:
            if one.error() is not None and one.error().code() != KafkaError._PARTITION_EOF:
                happened("trouble", self.name, error=error_of(one.error()))
        return [self.shown(one) for one in messages if one.error() is None]

    def shown(self, one):
        kind, timestamp = one.timestamp()
        return {
            "topic": one.topic(),
            "partition": one.partition(),
            "offset": one.offset(),
            "key": encoded(one.key()),
            "value": encoded(one.value()),
            "headers": [[name, encoded(value)] for name, value in one.headers() or ()],
            "timestamp_ms": -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            "leader_epoch": -1 if one.leader_epoch() is None else one.leader_epoch(),
        }

    def seek(self, command):
        self.forget(command["topic"], command["partition"])
        offset = PLACES.get(command["offset"], command["offset"])
        self.client.seek(Partition(command["topic"], command["partition"], offset))

    def position(self, command):
        return {"offset": self.client.position([Partition(command["topic"], command["partition"])])[0].offset}

    def commit(self, command):
        offsets = self.offsets(command) if self.kept else command["offsets"]
        if offsets == [] or (offsets is None and not self.handed):
            return {"offsets": []}
        of = {}  # without offsets the library commits what it has stored: everything that was delivered
        if offsets is not None:
            of["offsets"] = [Partition(one["topic"], one["partition"], one["offset"]) for one in offsets]
        try:
            said = self.client.commit(asynchronous=command["mode"] == "async", **of)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._NO_OFFSET:  # all is committed
                return {"offsets": []}
            raise
        for one in said or ():
            thrown(one.error)
        return {"reported": said is not None, "offsets": said and [self.place(one) for one in said]}

    @staticmethod
    def place(one):
        return {"topic": one.topic, "partition": one.partition, "offset": max(one.offset, -1)}

    def committed(self, command):
        asked = [Partition(one["topic"], one["partition"]) for one in command["partitions"]]
        return {"offsets": [self.place(one) for one in self.client.committed(asked, COMMIT_S)]}

    def close(self, command):
        self.named.pop(self.name, None)
        self.client.close()
