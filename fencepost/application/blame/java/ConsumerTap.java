package dev.fencepost.tap;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** What a consumer handed to the application, as lines of a tap. An interceptor hears of no assignment and no seek: fencepost.tap.moves=true says that the
 * application does either, and then going back is no finding. */
public final class ConsumerTap<K, V> implements ConsumerInterceptor<K, V> {
    private final Map<TopicPartition, Long> last = new HashMap<>();
    private String actor = "consumer";
    private boolean moves;
    private TapFile file;

    @Override
    public void configure(Map<String, ?> configs) {
        actor = "c-" + UUID.randomUUID();
        moves = "true".equals(String.valueOf(configs.get("fencepost.tap.moves")));
        file = TapFile.of(configs);
    }

    @Override
    public ConsumerRecords<K, V> onConsume(ConsumerRecords<K, V> records) {
        for (ConsumerRecord<K, V> one : records) {
            TopicPartition place = new TopicPartition(one.topic(), one.partition());
            Long before = last.put(place, one.offset());
            if (moves && before != null && one.offset() <= before) {
                file.write("moved", actor, "");
            }
            file.write("delivered", actor, TapFile.place(one.topic(), one.partition(), one.offset()));
        }
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
    }

    @Override
    public void close() {
        file.write("closed", actor, "");
    }
}
