import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Billing {
    public static void main(String[] arguments) throws Exception {
        FencepostEvents events = new FencepostEvents("app/billing.events", "billing", "billing");
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "group.id", "billing", "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "max.poll.records", 50, "session.timeout.ms", 6000);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("orders"));
        while (true) {
            ConsumerRecords<byte[], byte[]> orders = consumer.poll(Duration.ofSeconds(1));
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> order : orders) {
                events.write("received", "topic", order.topic(), "partition", order.partition(), "offset", order.offset(),
                    "key", order.key(), "value", order.value());
                Thread.sleep(20);                                // the work: an invoice is written
                events.write("processed", "topic", order.topic(), "partition", order.partition(), "offset", order.offset());
                next.put(new TopicPartition(order.topic(), order.partition()), new OffsetAndMetadata(order.offset() + 1));
            }
            consumer.commitSync(next);
            for (Map.Entry<TopicPartition, OffsetAndMetadata> one : next.entrySet())
                events.write("committed", "topic", one.getKey().topic(), "partition", one.getKey().partition(), "offset", one.getValue().offset());
        }
    }
}
