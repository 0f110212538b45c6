import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** KafkaProducer. */
final class Produces extends Library implements Lines.Client {
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
                    pair.getAsJsonArray().get(0).getAsString(),
                        Lines.decoded(pair.getAsJsonArray().get(1)))));
        }
        JsonElement partition = command.get("partition"), time = command.get("timestamp_ms");
        ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(command.get("topic").getAsString(),
                partition.isJsonNull() ? null : partition.getAsInt(), time == null ||
                    time.isJsonNull() ? null : time.getAsLong(),
                Lines.decoded(command.get("key")), Lines.decoded(command.get("value")), headers);
        AtomicBoolean answered = new AtomicBoolean();  // outside of a transaction it throws, then calls back
        Callback answer = (metadata, error) -> {
            if (answered.getAndSet(true)) {
                return;
            }
            if (error != null) {
                done.failed(error);
                return;
            }
            JsonObject row = place(new TopicPartition(metadata.topic(), metadata.partition()));
            row.addProperty("offset", metadata.hasOffset() ? metadata.offset() : -1);
            row.addProperty("timestamp_ms", metadata.timestamp());
            done.ok(row);
        };
        try {
            client.send(made, answer);
        } catch (RuntimeException error) {
            if (!answered.getAndSet(true)) {
                throw error;
            }
        }
    }
}
