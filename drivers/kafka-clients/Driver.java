import com.google.gson.JsonObject;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.producer.KafkaProducer;

/** The driver of Apache Kafka's own clients. */
public final class Driver extends Library {
    public static void main(String[] arguments) throws Exception {
        JsonObject ready = new JsonObject();
        ready.addProperty("driver", "kafka-clients");
        ready.addProperty("library", "org.apache.kafka:kafka-clients");
        Properties built = new Properties();
        String version = "/kafka/kafka-version.properties";
        try (InputStream properties = KafkaProducer.class.getResourceAsStream(version)) {
            built.load(properties);
        }
        ready.addProperty("version", built.getProperty("version"));
        ready.add("codecs", Lines.GSON.toJsonTree(CODECS));
        ready.add("acks", Lines.GSON.toJsonTree(List.of(0, 1, -1)));
        ready.addProperty("idempotence", true);
        ready.addProperty("transactions", true);
        ready.add("assignors", Lines.GSON.toJsonTree(ASSIGNORS.keySet()));
        ready.add("commit_modes", Lines.GSON.toJsonTree(List.of("sync", "async")));
        List<String> config = new ArrayList<>(COMMON.keySet());
        config.addAll(PRODUCER.keySet());
        config.addAll(CONSUMER.keySet());
        ready.add("config", Lines.GSON.toJsonTree(config));
        Map<String, Lines.Role> roles = new LinkedHashMap<>();
        roles.put("producer", new Lines.Role(Produces::new,
            Set.of("append", "flush", "begin", "commit_transaction",
                "abort_transaction", "send_offsets")));
        roles.put("consumer", new Lines.Role(Consumes::new, Set.of("subscribe", "resubscribe", "rewind",
            "assign", "poll", "pause", "resume", "seek", "position", "commit",
                "committed")));
        roles.put("admin", new Lines.Role(Administers::new, Set.of("create_topics", "describe_topics",
            "delete_topics",
                "describe_configs", "alter_configs")));
        Lines.serve(roles, Library::error, ready);
    }
}
