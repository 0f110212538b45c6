"""What the consumers in Python share: records that wait for a poll, and what was handed out.

`Consuming` is for every library; `LikeJava` for those that copy the names of Java's consumer. A driver says
how its library is asked (`ask`), and what is left: opening, fetching and committing.
"""

from lines import bounded, encoded, happened


class Consuming:
    """kept: records that were fetched and not handed out; handed: the next offset, by topic and partition."""

    def __init__(self, name):
        self.name, self.kept, self.handed, self.rewinds = name, [], {}, False

    def idle(self):
        """Nothing: the library has threads of its own, or calls back from poll only."""

    def rewind(self, command):
        self.rewinds = True

    def forget(self, topic, partition):
        """Whose it is now decides what is committed."""
        self.handed.pop((topic, partition), None)
        self.kept = [one for one in self.kept if (one["topic"], one["partition"]) != (topic, partition)]

    def say(self, event, partitions, **fields):
        """The listener was called."""
        where = [{"topic": one.topic, "partition": one.partition} for one in partitions]
        happened(event, self.name, partitions=where, **fields)
        for one in partitions:
            self.forget(one.topic, one.partition)

    def poll(self, command):
        if not self.kept:
            self.kept = list(self.fetched(command["timeout_ms"], min(command["max_records"], 1000)))
        records, self.kept = bounded(self.kept)
        for one in records:
            self.handed[one["topic"], one["partition"]] = one["offset"] + 1
        return {"records": records}

    def offsets(self, command):
        """What is to be committed."""
        if command["offsets"] is not None:
            return command["offsets"]
        return [{"topic": key[0], "partition": key[1], "offset": next_} for key, next_ in self.handed.items()]


class Told:
    """A listener; goes before the library's own class. client: the consumer."""

    def __init__(self, client):
        self.client = client

    def on_partitions_assigned(self, assigned):
        self.client.say("assigned", assigned)
        for one in assigned if self.client.rewinds else ():
            self.client.client.seek(one, 0)

    def on_partitions_revoked(self, revoked):
        self.client.say("revoked", revoked)

    def on_partitions_lost(self, lost):
        self.client.say("lost", lost)


class LikeJava(Consuming):
    """`ask(method, ...)` calls the library; `partition` and `listener` are its classes."""

    def subscribe(self, command):
        self.ask("subscribe", command["topics"], listener=self.listener(self))

    resubscribe = subscribe

    def assign(self, command):
        self.ask("assign", [self.partition(one["topic"], one["partition"]) for one in command["partitions"]])
        for one in command["partitions"]:
            self.seek(one)

    def pause(self, command):
        self.ask("pause", *self.client.assignment())

    def resume(self, command):
        self.ask("resume", *self.client.assignment())

    def seek(self, command):
        where = self.partition(command["topic"], command["partition"])
        self.forget(where.topic, where.partition)
        if command["offset"] >= 0:
            self.ask("seek", where, command["offset"])
        else:
            self.ask("seek_to_beginning" if command["offset"] == -2 else "seek_to_end", where)

    def position(self, command):
        return {"offset": self.ask("position", self.partition(command["topic"], command["partition"]))}

    def committed(self, command):
        rows = []
        for one in command["partitions"]:
            offset = self.ask("committed", self.partition(one["topic"], one["partition"]))
            rows.append({**one, "offset": -1 if offset is None else offset})
        return {"offsets": rows}

    def close(self, command):
        self.ask("close")

    @staticmethod
    def shown(batches):
        """The records of a poll of the library, as lines have them."""
        for one in (one for batch in batches.values() for one in batch):
            yield {
                "topic": one.topic,
                "partition": one.partition,
                "offset": one.offset,
                "key": encoded(one.key),
                "value": encoded(one.value),
                "headers": [[name, encoded(value)] for name, value in one.headers],
                "timestamp_ms": one.timestamp,
                "leader_epoch": getattr(one, "leader_epoch", -1),
            }
