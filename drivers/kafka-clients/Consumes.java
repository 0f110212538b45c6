import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
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
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** KafkaConsumer. */
final class Consumes extends Library implements Lines.Client, ConsumerRebalanceListener {
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
            case "subscribe", "resubscribe" -> client.subscribe(strings(fields.getAsJsonArray("topics")),
                this);
            case "rewind" -> rewinds = true;
            case "assign" -> assign(fields.getAsJsonArray("partitions"));
            case "poll" -> answer.add("records", poll(fields));
            case "pause" -> client.pause(client.assignment());
            case "resume" -> client.resume(client.assignment());
            case "seek" -> seek(partition(fields), fields.get("offset").getAsLong());
            case "position" -> answer.addProperty("offset", client.position(partition(fields), LIMIT));
            case "commit" -> {
                return commit(fields, done);
            }
            case "committed" -> {
                Set<TopicPartition> asked = new HashSet<>();
                fields.getAsJsonArray("partitions")
                        .forEach(row -> asked.add(partition(row.getAsJsonObject())));
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
        rows.forEach(row -> seek(partition(row.getAsJsonObject()),
            row.getAsJsonObject().get("offset").getAsLong()));
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
        while (!kept.isEmpty() && records.size() < most &&
            (records.isEmpty() || size + size(kept.peek()) <= MOST_POLLED)) {
            ConsumerRecord<byte[], byte[]> one = kept.poll();
            size += size(one);
            handed.put(of(one), new OffsetAndMetadata(one.offset() + 1));
            records.add(shown(one));
        }
        return records;
    }

    private JsonObject commit(JsonObject fields, Lines.Done done) {
        boolean all = fields.get("offsets").isJsonNull();
        Map<TopicPartition,
            OffsetAndMetadata> asked = all ? new HashMap<>(handed) : offsets(fields.get("offsets"));
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
