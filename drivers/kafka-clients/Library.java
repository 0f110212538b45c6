import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;

/** What the library calls settings, places and errors. */
abstract class Library {
    static final Duration LIMIT = Duration.ofSeconds(30);
    static final int MOST_POLLED = 500_000;
    static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    static final Map<String, String> ASSIGNORS = new LinkedHashMap<>();
    static final Map<String, String> COMMON = new LinkedHashMap<>(), PRODUCER = new LinkedHashMap<>();
    static final Map<String, String> CONSUMER = new LinkedHashMap<>();
    static final Set<String> NOT_OURS = Set.of("batch_records");
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

    static {
        names(ASSIGNORS, "range", PACKAGE + "RangeAssignor", "roundrobin", PACKAGE + "RoundRobinAssignor");
        names(ASSIGNORS, "sticky", PACKAGE + "StickyAssignor", "cooperative-sticky", PACKAGE +
            "CooperativeStickyAssignor");
        names(COMMON, "bootstrap", "bootstrap.servers", "client_id", "client.id", "request_timeout_ms",
            "request.timeout.ms");
        names(COMMON, "metadata_max_age_ms", "metadata.max.age.ms", "retry_backoff_ms", "retry.backoff.ms",
            "extra", "");
        names(PRODUCER, "acks", "acks", "idempotence", "enable.idempotence", "linger_ms", "linger.ms",
            "batch_bytes", "batch.size");
        names(PRODUCER, "in_flight", "max.in.flight.requests.per.connection", "compression",
            "compression.type");
        names(PRODUCER, "retries", "retries", "delivery_timeout_ms", "delivery.timeout.ms");
        names(PRODUCER, "transactional_id", "transactional.id", "transaction_timeout_ms",
            "transaction.timeout.ms");
        names(CONSUMER, "group", "group.id", "group_instance_id", "group.instance.id", "isolation",
            "isolation.level");
        names(CONSUMER, "assignor", "partition.assignment.strategy", "auto_commit", "enable.auto.commit");
        names(CONSUMER, "auto_commit_interval_ms", "auto.commit.interval.ms", "session_timeout_ms",
            "session.timeout.ms");
        names(CONSUMER, "heartbeat_interval_ms", "heartbeat.interval.ms", "max_poll_interval_ms",
            "max.poll.interval.ms");
        names(CONSUMER, "offset_reset", "auto.offset.reset", "fetch_max_wait_ms", "fetch.max.wait.ms");
        names(CONSUMER, "fetch_min_bytes", "fetch.min.bytes", "fetch_max_bytes", "fetch.max.bytes",
            "max_poll_records", "max.poll.records", "rack", "client.rack");
    }

    static void names(Map<String, String> table, String... pairs) {
        for (int i = 0; i < pairs.length; i += 2) {
            table.put(pairs[i], pairs[i + 1]);
        }
    }

    /** The class that users match, and Kafka's number where the exception stands for one. */
    static JsonObject error(Throwable thrown) {
        Throwable error = thrown;
        while ((error instanceof ExecutionException || error instanceof CompletionException) &&
            error.getCause() != null) {
            error = error.getCause();
        }
        Errors known = Errors.forException(error);
        JsonObject shown = new JsonObject();
        shown.addProperty("name", error.getClass().getSimpleName());
        boolean numbered = known != Errors.UNKNOWN_SERVER_ERROR && !(error instanceof TimeoutException);
        shown.addProperty("code", numbered ? known.code() : null);
        StringBuilder text = new StringBuilder(String.valueOf(error.getMessage()));
        for (Throwable why = error.getCause(); why != null; why = why.getCause()) {
            text.append(": ").append(why.getMessage());
        }
        shown.addProperty("text", Lines.text(text.toString()));
        shown.addProperty("fatal", error instanceof ProducerFencedException ||
            error instanceof FencedInstanceIdException);
        return shown;
    }

    /** The settings in Java's words; those of `given` that are not in the table go to `ignored`. */
    static Properties properties(JsonObject given, Map<String, String> own, Map<String, String> foreign,
        List<String> ignored) {
        Properties made = new Properties();
        for (Map.Entry<String, JsonElement> entry : given.entrySet()) {
            String name = entry.getKey(), mapped = own.getOrDefault(name, COMMON.get(name));
            if (mapped == null && !foreign.containsKey(name) && !NOT_OURS.contains(name)) {
                throw new Lines.Refused("a setting of docs/reference/drivers.md", name);
            } else if (entry.getValue().isJsonNull()) {
                continue;
            } else if (mapped == null) {
                ignored.add(name);
            } else if (!name.equals("extra")) {
                made.setProperty(mapped, value(name, entry.getValue().getAsString()));
            }
        }
        if (given.has("extra") && given.get("extra").isJsonObject()) {
            given.getAsJsonObject("extra").entrySet().forEach(one -> made.setProperty(one.getKey(),
                one.getValue().getAsString()));
        }
        if (!made.containsKey("bootstrap.servers")) {
            throw new Lines.Refused("a bootstrap address", "none");
        }
        return made;
    }

    static String value(String name, String value) {
        Collection<String> known = Map.<String, Collection<String>>of("assignor", ASSIGNORS.keySet(),
            "compression", CODECS,
                "acks", List.of("0", "1", "-1"), "offset_reset",
                    List.of("earliest", "latest", "none")).getOrDefault(name, List.of(value));
        if (!known.contains(value)) {
            throw new Lines.Refused(name + " of " + known, value);
        }
        return name.equals("assignor") ? ASSIGNORS.get(value) : value;
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonElement rows) {
        Map<TopicPartition, OffsetAndMetadata> made = new LinkedHashMap<>();
        rows.getAsJsonArray().forEach(row -> made.put(partition(row.getAsJsonObject()),
                new OffsetAndMetadata(row.getAsJsonObject().get("offset").getAsLong())));
        return made;
    }

    static TopicPartition partition(JsonObject row) {
        return new TopicPartition(row.get("topic").getAsString(), row.get("partition").getAsInt());
    }

    static JsonObject place(TopicPartition partition) {
        JsonObject row = new JsonObject();
        row.addProperty("topic", partition.topic());
        row.addProperty("partition", partition.partition());
        return row;
    }

    static JsonArray places(Map<TopicPartition, OffsetAndMetadata> offsets) {
        JsonArray rows = new JsonArray();
        offsets.forEach((partition, offset) -> {
            JsonObject row = place(partition);
            row.addProperty("offset", offset == null ? -1 : offset.offset());
            rows.add(row);
        });
        return rows;
    }

    static long timeout(JsonObject command, long otherwise) {
        return command.has("timeout_ms") ? command.get("timeout_ms").getAsLong() : otherwise;
    }

    static TopicPartition of(ConsumerRecord<byte[], byte[]> one) {
        return new TopicPartition(one.topic(), one.partition());
    }

    static List<String> strings(JsonArray rows) {
        return StreamSupport.stream(rows.spliterator(), false).map(JsonElement::getAsString).toList();
    }

    static int size(ConsumerRecord<byte[], byte[]> one) {
        int size = Math.max(one.serializedKeySize(), 0) + Math.max(one.serializedValueSize(), 0);
        for (Header header : one.headers()) {
            size += header.value() == null ? 0 : header.value().length;
        }
        return size;
    }

    static JsonObject shown(ConsumerRecord<byte[], byte[]> one) {
        JsonObject row = place(of(one));
        row.addProperty("offset", one.offset());
        row.addProperty("key", Lines.encoded(one.key()));
        row.addProperty("value", Lines.encoded(one.value()));
        row.add("headers", Lines.GSON.toJsonTree(StreamSupport.stream(one.headers().spliterator(), false)
                .map(header -> new String[] {header.key(), Lines.encoded(header.value())}).toList()));
        row.addProperty("timestamp_ms", one.timestamp());
        row.addProperty("leader_epoch", one.leaderEpoch().orElse(-1));
        return row;
    }
}
