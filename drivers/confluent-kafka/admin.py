"""The admin client."""

import time

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from library import COMMIT_S, error_of, properties
from lines import COMMON


class Admin:
    """confluent_kafka.admin.AdminClient."""

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON)
        self.client = AdminClient(made)

    def idle(self):
        self.client.poll(0)

    def outcomes(self, futures):
        rows = []
        for name, future in futures.items():
            try:
                future.result(COMMIT_S)
                rows.append({"name": name, "error": None})
            except Exception as error:
                rows.append({"name": name, "error": error_of(error)})
        return {"topics": rows}

    def create_topics(self, command):
        made = [
            NewTopic(
                one["name"], one["partitions"], one["replication_factor"], config=one.get("config") or {}
            )
            for one in command["topics"]
        ]
        return self.outcomes(self.client.create_topics(made))

    def delete_topics(self, command):
        return self.outcomes(self.client.delete_topics(command["topics"]))

    def describe_topics(self, command):
        rows = []
        for name in command["topics"]:
            topic = self.client.list_topics(name, COMMIT_S).topics[name]
            shown = [{"partition": one.id, "leader": one.leader, "replicas": one.replicas, "isr": one.isrs}
                     for one in sorted(topic.partitions.values(), key=lambda one: one.id)]  # fmt: skip
            rows.append({"name": name, "error": topic.error and error_of(topic.error), "partitions": shown})
        return {"topics": rows}

    def describe_configs(self, command):
        (future,) = self.client.describe_configs([ConfigResource("TOPIC", command["topic"])]).values()
        return {"config": {name: entry.value for name, entry in future.result(COMMIT_S).items()}}

    def alter_configs(self, command):
        resource = ConfigResource("TOPIC", command["topic"], set_config=command["config"])
        (future,) = self.client.alter_configs([resource]).values()
        future.result(COMMIT_S)

    def close(self, command):
        time.sleep(0)
