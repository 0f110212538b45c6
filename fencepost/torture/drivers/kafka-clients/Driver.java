import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The driver of Apache Kafka's own clients. */
public final class Driver {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final int MOST_POLLED = 500_000;
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> ASSIGNORS = new LinkedHashMap<>();
    private static final Map<String, String> COMMON = new LinkedHashMap<>(), PRODUCER = new LinkedHashMap<>();
    private static final Map<String, String> CONSUMER = new LinkedHashMap<>();
    private static final Set<String> NOT_OURS = Set.of("batch_records");
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

    static {
        names(ASSIGNORS, "range", PACKAGE + "RangeAssignor", "roundrobin", PACKAGE + "RoundRobinAssignor");
        names(ASSIGNORS, "sticky", PACKAGE + "StickyAssignor", "cooperative-sticky", PACKAGE + "CooperativeStickyAssignor");
        names(COMMON, "bootstrap", "bootstrap.servers", "client_id", "client.id", "request_timeout_ms", "request.timeout.ms");
        names(COMMON, "metadata_max_age_ms", "metadata.max.age.ms", "retry_backoff_ms", "retry.backoff.ms", "extra", "");
        names(PRODUCER, "acks", "acks", "idempotence", "enable.idempotence", "linger_ms", "linger.ms", "batch_bytes", "batch.size");
        names(PRODUCER, "in_flight", "max.in.flight.requests.per.connection", "compression", "compression.type");
        names(PRODUCER, "retries", "retries", "delivery_timeout_ms", "delivery.timeout.ms");
        names(PRODUCER, "transactional_id", "transactional.id", "transaction_timeout_ms", "transaction.timeout.ms");
        names(CONSUMER, "group", "group.id", "group_instance_id", "group.instance.id", "isolation", "isolation.level");
        names(CONSUMER, "assignor", "partition.assignment.strategy", "auto_commit", "enable.auto.commit");
        names(CONSUMER, "auto_commit_interval_ms", "auto.commit.interval.ms", "session_timeout_ms", "session.timeout.ms");
        names(CONSUMER, "heartbeat_interval_ms", "heartbeat.interval.ms", "max_poll_interval_ms", "max.poll.interval.ms");
        names(CONSUMER, "offset_reset", "auto.offset.reset", "fetch_max_wait_ms", "fetch.max.wait.ms");
        names(CONSUMER, "fetch_min_bytes", "fetch.min.bytes", "fetch_max_bytes", "fetch.max.bytes", "max_poll_records", "max.poll.records");
    }

    private static void names(Map<String, String> table, String... pairs) {
        for (int i = 0; i < pairs.length; i += 2) {
            table.put(pairs[i], pairs[i + 1]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        JsonObject ready = new JsonObject();
        ready.addProperty("driver", "kafka-clients");
        ready.addProperty("library", "org.apache.kafka:kafka-clients");
        Properties built = new Properties();
        try (InputStream properties = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
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
        roles.put("producer", new Lines.Role(Produces::new, Set.of("append", "flush", "begin", "commit_transaction",
                "abort_transaction", "send_offsets")));
        roles.put("consumer", new Lines.Role(Consumes::new, Set.of("subscribe", "resubscribe", "rewind", "assign", "poll", "seek", "position", "commit",
                "committed")));
        roles.put("admin", new Lines.Role(Administers::new, Set.of("create_topics", "describe_topics", "delete_topics",
                "describe_configs", "alter_configs")));
        Lines.serve(roles, Driver::error, ready);
    }

    /** The class that users match, and Kafka's number where the exception stands for one. */
    static JsonObject error(Throwable thrown) {
        Throwable error = thrown;
        while ((error instanceof ExecutionException || error instanceof CompletionException) && error.getCause() != null) {
            error = error.getCause();
        }
        Errors known = Errors.forException(error);
        JsonObject shown = new JsonObject();
        shown.addProperty("name", error.getClass().getSimpleName());
        boolean numbered = known != Errors.UNKNOWN_SERVER_ERROR && !(error instanceof TimeoutException);
        shown.addProperty("code", numbered ? known.code() : null);
        shown.addProperty("text", Lines.text(String.valueOf(error.getMessage())));
        shown.addProperty("fatal", error instanceof ProducerFencedException || error instanceof FencedInstanceIdException);
        return shown;
    }

    /** The settings in Java's words; those of `given` that are not in the table go to `ignored`. */
    static Properties properties(JsonObject given, Map<String, String> own, Map<String, String> foreign, List<String> ignored) {
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
            given.getAsJsonObject("extra").entrySet().forEach(one -> made.setProperty(one.getKey(), one.getValue().getAsString()));
        }
        if (!made.containsKey("bootstrap.servers")) {
            throw new Lines.Refused("a bootstrap address", "none");
        }
        return made;
    }

    private static String value(String name, String value) {
        Collection<String> known = Map.<String, Collection<String>>of("assignor", ASSIGNORS.keySet(), "compression", CODECS,
                "acks", List.of("0", "1", "-1"), "offset_reset", List.of("earliest", "latest", "none")).getOrDefault(name, List.of(value));
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

    private static long timeout(JsonObject command, long otherwise) {
        return command.has("timeout_ms") ? command.get("timeout_ms").getAsLong() : otherwise;
    }

    /** KafkaProducer. */
    static final class Produces implements Lines.Client {
        private final List<String> ignored = new ArrayList<>();
        private final KafkaProducer<byte[], byte[]> client;

        Produces(String name, JsonObject config) {
            Properties made = properties(config, PRODUCER, CONSUMER, ignored);
            client = new KafkaProducer<>(made, new ByteArraySerializer(), new ByteArraySerializer());
            if (made.containsKey("transactional.id")) {
                try {
                    client.initTransactions();
                } catch (RuntimeException error) {
                    client.close(Duration.ZERO);
                    throw error;
                }
            }
        }

        @Override
        public List<String> ignored() {
            return ignored;
        }

        @Override
        public JsonObject run(String name, JsonObject command, Lines.Done done) {
            switch (name) {
                case "append" -> {
                    append(command, done);
                    return null;
                }
                case "flush" -> {  // in a thread of its own: it must not hold back later appends
                    Thread thread = new Thread(() -> {
                        try {
                            client.flush();
                            done.ok(new JsonObject());
                        } catch (RuntimeException error) {
                            done.failed(error);
                        }
                    });
                    thread.setDaemon(true);
                    thread.start();
                    return null;
                }
                case "begin" -> client.beginTransaction();
                case "commit_transaction" -> client.commitTransaction();
                case "abort_transaction" -> client.abortTransaction();
                case "send_offsets" -> {
                    ConsumerGroupMetadata group = Consumes.GROUPS.get(command.get("consumer").getAsString());
                    if (group == null) {
                        throw new Lines.Refused("a consumer that has polled", command.get("consumer"));
                    }
                    client.sendOffsetsToTransaction(offsets(command.get("offsets")), group);
                }
                default -> client.close(Duration.ofMillis(timeout(command, 10_000)));
            }
            return new JsonObject();
        }

        private void append(JsonObject command, Lines.Done done) {
            List<Header> headers = new ArrayList<>();
            if (command.has("headers") && command.get("headers").isJsonArray()) {
                command.getAsJsonArray("headers").forEach(pair -> headers.add(new RecordHeader(
                        pair.getAsJsonArray().get(0).getAsString(), Lines.decoded(pair.getAsJsonArray().get(1)))));
            }
            JsonElement partition = command.get("partition"), time = command.get("timestamp_ms");
            ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(command.get("topic").getAsString(),
                    partition.isJsonNull() ? null : partition.getAsInt(), time == null || time.isJsonNull() ? null : time.getAsLong(),
                    Lines.decoded(command.get("key")), Lines.decoded(command.get("value")), headers);
            client.send(made, (metadata, error) -> {
                if (error != null) {
                    done.failed(error);
                    return;
                }
                JsonObject row = place(new TopicPartition(metadata.topic(), metadata.partition()));
                row.addProperty("offset", metadata.hasOffset() ? metadata.offset() : -1);
                row.addProperty("timestamp_ms", metadata.timestamp());
                done.ok(row);
            });
        }
    }

    /** KafkaConsumer. */
    static final class Consumes implements Lines.Client, ConsumerRebalanceListener {
        static final Map<String, ConsumerGroupMetadata> GROUPS = new ConcurrentHashMap<>();
        private final List<String> ignored = new ArrayList<>();
        private final String name;
        private final boolean grouped;
        private final KafkaConsumer<byte[], byte[]> client;
        private final Deque<ConsumerRecord<byte[], byte[]>> kept = new ArrayDeque<>();
        private final Map<TopicPartition, OffsetAndMetadata> handed = new HashMap<>();
        private int callbacks;
        private boolean rewinds;

        Consumes(String name, JsonObject config) {
            Properties made = properties(config, CONSUMER, PRODUCER, ignored);
            this.name = name;
            grouped = made.containsKey("group.id");
            client = new KafkaConsumer<>(made, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public List<String> ignored() {
            return ignored;
        }

        @Override
        public boolean waits() {
            return callbacks > 0;
        }

        /** Callbacks of commitAsync are called from within the client; an empty commit waits for them. */
        @Override
        public void idle() {
            try {
                client.commitSync(Map.of(), Duration.ofMillis(1));
            } catch (RuntimeException error) {
                return;
            }
        }

        @Override
        public JsonObject run(String command, JsonObject fields, Lines.Done done) {
            JsonObject answer = new JsonObject();
            switch (command) {
                case "subscribe", "resubscribe" -> client.subscribe(strings(fields.getAsJsonArray("topics")), this);
                case "rewind" -> rewinds = true;
                case "assign" -> assign(fields.getAsJsonArray("partitions"));
                case "poll" -> answer.add("records", poll(fields));
                case "seek" -> seek(partition(fields), fields.get("offset").getAsLong());
                case "position" -> answer.addProperty("offset", client.position(partition(fields), LIMIT));
                case "commit" -> {
                    return commit(fields, done);
                }
                case "committed" -> {
                    Set<TopicPartition> asked = new HashSet<>();
                    fields.getAsJsonArray("partitions").forEach(row -> asked.add(partition(row.getAsJsonObject())));
                    Map<TopicPartition, OffsetAndMetadata> found = new LinkedHashMap<>();
                    Map<TopicPartition, OffsetAndMetadata> said = client.committed(asked, LIMIT);
                    asked.forEach(one -> found.put(one, said.get(one)));
                    answer.add("offsets", places(found));
                }
                default -> {
                    GROUPS.remove(name);
                    client.close(Duration.ofMillis(timeout(fields, 10_000)));
                }
            }
            return answer;
        }

        private void assign(JsonArray rows) {
            List<TopicPartition> partitions = new ArrayList<>();
            rows.forEach(row -> partitions.add(partition(row.getAsJsonObject())));
            client.assign(partitions);
            rows.forEach(row -> seek(partition(row.getAsJsonObject()), row.getAsJsonObject().get("offset").getAsLong()));
        }

        private void seek(TopicPartition partition, long offset) {
            kept.removeIf(one -> of(one).equals(partition));
            if (offset == -2) {
                client.seekToBeginning(List.of(partition));
            } else if (offset == -1) {
                client.seekToEnd(List.of(partition));
            } else {
                client.seek(partition, offset);
            }
        }

        private JsonArray poll(JsonObject fields) {
            if (kept.isEmpty()) {
                client.poll(Duration.ofMillis(timeout(fields, 0))).forEach(kept::add);
                if (grouped) {
                    GROUPS.put(name, client.groupMetadata());
                }
            }
            JsonArray records = new JsonArray();
            int most = Math.min(fields.get("max_records").getAsInt(), 1_000), size = 0;
            while (!kept.isEmpty() && records.size() < most && (records.isEmpty() || size + size(kept.peek()) <= MOST_POLLED)) {
                ConsumerRecord<byte[], byte[]> one = kept.poll();
                size += size(one);
                handed.put(of(one), new OffsetAndMetadata(one.offset() + 1));
                records.add(shown(one));
            }
            return records;
        }

        private static int size(ConsumerRecord<byte[], byte[]> one) {
            int size = Math.max(one.serializedKeySize(), 0) + Math.max(one.serializedValueSize(), 0);
            for (Header header : one.headers()) {
                size += header.value() == null ? 0 : header.value().length;
            }
            return size;
        }

        private static JsonObject shown(ConsumerRecord<byte[], byte[]> one) {
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

        private JsonObject commit(JsonObject fields, Lines.Done done) {
            boolean all = fields.get("offsets").isJsonNull();
            Map<TopicPartition, OffsetAndMetadata> asked = all ? new HashMap<>(handed) : offsets(fields.get("offsets"));
            JsonObject answer = new JsonObject();
            if (asked.isEmpty() || fields.get("mode").getAsString().equals("sync")) {
                client.commitSync(asked, LIMIT);
                answer.add("offsets", places(asked));
                return answer;
            }
            callbacks++;
            client.commitAsync(asked, (said, error) -> {
                callbacks--;
                if (error == null) {
                    answer.add("offsets", places(said));
                    done.ok(answer);
                } else {
                    done.failed(error);
                }
            });
            return null;
        }

        private void told(String event, Collection<TopicPartition> partitions) {
            JsonObject row = new JsonObject();
            JsonArray rows = new JsonArray();
            partitions.forEach(one -> rows.add(place(one)));
            row.add("partitions", rows);
            row.addProperty("generation", client.groupMetadata().generationId());
            row.addProperty("member", client.groupMetadata().memberId());
            Lines.happened(event, name, row);
            handed.keySet().removeAll(partitions);
            kept.removeIf(one -> partitions.contains(of(one)));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            told("assigned", partitions);
            if (rewinds) {
                partitions.forEach(one -> client.seek(one, 0));
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            told("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            told("lost", partitions);
        }
    }

    private static TopicPartition of(ConsumerRecord<byte[], byte[]> one) {
        return new TopicPartition(one.topic(), one.partition());
    }

    private static List<String> strings(JsonArray rows) {
        return StreamSupport.stream(rows.spliterator(), false).map(JsonElement::getAsString).toList();
    }

    /** Admin. */
    static final class Administers implements Lines.Client {
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
                        outcomes(client.deleteTopics(strings(command.getAsJsonArray("topics"))).topicNameValues()));
                case "describe_topics" -> answer.add("topics", outcomes(
                        client.describeTopics(strings(command.getAsJsonArray("topics"))).topicNameValues()));
                case "describe_configs" -> {
                    ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, command.get("topic").getAsString());
                    JsonObject config = new JsonObject();
                    get(client.describeConfigs(List.of(topic)).values().get(topic)).entries()
                            .forEach(entry -> config.addProperty(entry.name(), entry.value()));
                    answer.add("config", config);
                }
                case "alter_configs" -> {
                    ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, command.get("topic").getAsString());
                    Collection<AlterConfigOp> changes = command.getAsJsonObject("config").entrySet().stream().map(one -> new AlterConfigOp(
                            new ConfigEntry(one.getKey(), one.getValue().getAsString()), AlterConfigOp.OpType.SET)).toList();
                    get(client.incrementalAlterConfigs(Map.of(topic, changes)).all());
                }
                default -> client.close(Duration.ofMillis(timeout(command, 10_000)));
            }
            return answer;
        }

        private static NewTopic topic(JsonObject one) {
            NewTopic made = new NewTopic(one.get("name").getAsString(), Optional.of(one.get("partitions").getAsInt()),
                    Optional.of(one.get("replication_factor").getAsShort()));
            Map<String, String> config = new HashMap<>();
            if (one.has("config") && one.get("config").isJsonObject()) {
                one.getAsJsonObject("config").entrySet().forEach(entry -> config.put(entry.getKey(), entry.getValue().getAsString()));
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
                row.add("replicas", Lines.GSON.toJsonTree(one.replicas().stream().filter(Objects::nonNull).map(Node::id).toList()));
                row.add("isr", Lines.GSON.toJsonTree(one.isr().stream().map(Node::id).toList()));
                rows.add(row);
            });
            return rows;
        }
    }
}
