import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.config.ConfigResource;

/** Admin. */
final class Administers extends Library implements Lines.Client {
    private final List<String> ignored = new ArrayList<>();
    private final Admin client;

    Administers(String name, JsonObject config) {
        client = Admin.create(properties(config, Map.of(), COMMON, ignored));
    }

    @Override
    public List<String> ignored() {
        return ignored;
    }

    @Override
    public JsonObject run(String name, JsonObject command, Lines.Done done) throws Exception {
        JsonObject answer = new JsonObject();
        switch (name) {
            case "create_topics" -> {
                List<NewTopic> made = new ArrayList<>();
                command.getAsJsonArray("topics").forEach(one -> made.add(topic(one.getAsJsonObject())));
                answer.add("topics", outcomes(client.createTopics(made).values()));
            }
            case "delete_topics" -> answer.add("topics",
                    outcomes(client.deleteTopics(strings(command.getAsJsonArray("topics")))
                        .topicNameValues()));
            case "describe_topics" -> answer.add("topics", outcomes(
                    client.describeTopics(strings(command.getAsJsonArray("topics"))).topicNameValues()));
            case "describe_configs" -> {
                ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC,
                    command.get("topic").getAsString());
                JsonObject config = new JsonObject();
                get(client.describeConfigs(List.of(topic)).values().get(topic)).entries()
                        .forEach(entry -> config.addProperty(entry.name(), entry.value()));
                answer.add("config", config);
            }
            case "alter_configs" -> {
                ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC,
                    command.get("topic").getAsString());
                Collection<AlterConfigOp> changes = command.getAsJsonObject("config").entrySet().stream()
                        .map(one -> new AlterConfigOp(
                        new ConfigEntry(one.getKey(), one.getValue().getAsString()),
                            AlterConfigOp.OpType.SET)).toList();
                get(client.incrementalAlterConfigs(Map.of(topic, changes)).all());
            }
            default -> client.close(Duration.ofMillis(timeout(command, 10_000)));
        }
        return answer;
    }

    private static NewTopic topic(JsonObject one) {
        NewTopic made = new NewTopic(one.get("name").getAsString(),
            Optional.of(one.get("partitions").getAsInt()),
                Optional.of(one.get("replication_factor").getAsShort()));
        Map<String, String> config = new HashMap<>();
        if (one.has("config") && one.get("config").isJsonObject()) {
            one.getAsJsonObject("config").entrySet().forEach(entry -> config.put(entry.getKey(),
                entry.getValue().getAsString()));
        }
        return made.configs(config);
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    }

    private static <T> JsonArray outcomes(Map<String, KafkaFuture<T>> futures) {
        JsonArray rows = new JsonArray();
        futures.forEach((name, future) -> {
            JsonObject row = new JsonObject();
            row.addProperty("name", name);
            row.add("error", JsonNull.INSTANCE);
            try {
                if (get(future) instanceof TopicDescription topic) {
                    row.add("partitions", partitions(topic));
                }
            } catch (Exception error) {
                row.add("error", error(error));
            }
            rows.add(row);
        });
        return rows;
    }

    private static JsonArray partitions(TopicDescription topic) {
        JsonArray rows = new JsonArray();
        topic.partitions().forEach(one -> {
            JsonObject row = new JsonObject();
            row.addProperty("partition", one.partition());
            row.addProperty("leader", one.leader() == null ? -1 : one.leader().id());
            row.add("replicas",
                Lines.GSON.toJsonTree(
                        one.replicas().stream().filter(Objects::nonNull).map(Node::id).toList()));
            row.add("isr", Lines.GSON.toJsonTree(one.isr().stream().map(Node::id).toList()));
            rows.add(row);
        });
        return rows;
    }
}
