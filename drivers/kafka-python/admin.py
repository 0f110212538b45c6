"""The admin client."""

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import for_code
from library import configuration, error_of
from lines import COMMON


class Admin:
    """kafka.KafkaAdminClient."""

    def __init__(self, name, config):
        made, self.ignored = configuration(config, COMMON, KafkaAdminClient.DEFAULT_CONFIG)
        self.client = KafkaAdminClient(**made)

    def idle(self):
        """Nothing."""

    def outcomes(self, rows):
        return {
            "topics": [
                {
                    "name": one["name"],
                    "error": error_of(for_code(one["error_code"])()) if one["error_code"] else None,
                }
                for one in rows
            ]
        }

    def create_topics(self, command):
        made = {
            one["name"]: {
                "num_partitions": one["partitions"],
                "replication_factor": one["replication_factor"],
                "configs": one.get("config") or {},
            }
            for one in command["topics"]
        }
        return self.outcomes(self.client.create_topics(made, raise_errors=False)["topics"])

    def delete_topics(self, command):
        return self.outcomes(self.client.delete_topics(command["topics"], raise_errors=False)["topics"])

    def describe_topics(self, command):
        rows = []
        for topic in self.client.describe_topics(command["topics"]):
            shown = [
                {
                    "partition": one["partition_index"],
                    "leader": one["leader_id"],
                    "replicas": one["replica_nodes"],
                    "isr": one["isr_nodes"],
                }
                for one in topic["partitions"]
            ]
            rows.append(
                {
                    **self.outcomes([topic])["topics"][0],
                    "partitions": sorted(shown, key=lambda p: p["partition"]),
                }
            )
        return {"topics": rows}

    def describe_configs(self, command):
        resource = ConfigResource(ConfigResourceType.TOPIC, command["topic"])
        shown = self.client.describe_configs([resource], config_filter="all")["topic"][command["topic"]]
        return {"config": {name: one["value"] for name, one in shown.items()}}

    def alter_configs(self, command):
        self.client.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, command["topic"], command["config"])]
        )

    def close(self, command):
        self.client.close()
