"""The admin client."""

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code
from library import COMMON, configuration, error_of, made, run


class Admin:
    """aiokafka.admin.AIOKafkaAdminClient."""

    def __init__(self, name, config):
        options, self.ignored = configuration(config, COMMON)
        self.client = run(made(AIOKafkaAdminClient, **options))

    def idle(self):
        """Nothing."""

    def outcomes(self, rows):
        return {
            "topics": [
                {"name": row[0], "error": error_of(for_code(row[1])()) if row[1] else None} for row in rows
            ]
        }

    def create_topics(self, command):
        topics = [
            NewTopic(
                one["name"], one["partitions"], one["replication_factor"], topic_configs=one.get("config")
            )
            for one in command["topics"]
        ]
        return self.outcomes(run(self.client.create_topics(topics)).topic_errors)

    def delete_topics(self, command):
        return self.outcomes(run(self.client.delete_topics(command["topics"])).topic_error_codes)

    def describe_topics(self, command):
        rows = []
        for topic in run(self.client.describe_topics(command["topics"])):
            shown = [
                {
                    "partition": one["partition"],
                    "leader": one["leader"],
                    "replicas": one["replicas"],
                    "isr": one["isr"],
                }
                for one in topic["partitions"]
            ]
            (row,) = self.outcomes([(topic["topic"], topic["error_code"])])["topics"]
            rows.append({**row, "partitions": sorted(shown, key=lambda one: one["partition"])})
        return {"topics": rows}

    def describe_configs(self, command):
        (said,) = run(
            self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, command["topic"])])
        )
        return {"config": {entry[0]: entry[1] for entry in said.resources[0][4]}}

    def alter_configs(self, command):
        run(
            self.client.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, command["topic"], command["config"])]
            )
        )

    def close(self, command):
        run(self.client.close())
