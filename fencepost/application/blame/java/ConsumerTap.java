package dev.fencepost.tap;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** What a consumer handed to the application and committed, as lines of events. An interceptor hears of no assignment and no seek: fencepost.tap.moves=true says that the
 * application does either, and then going back is no finding. */
public final class ConsumerTap<K, V> implements ConsumerInterceptor<K, V> {
    private static final Map<TopicPartition, ConsumerTap<?, ?>> OWNERS = new ConcurrentHashMap<>();
    private final Map<TopicPartition, Long> last = new HashMap<>();
    private String process = "consumer";
    private boolean moves;
    private TapFile file;

    @Override
    public void configure(Map<String, ?> configs) {
        process = "c-" + UUID.randomUUID();
        moves = "true".equals(String.valueOf(configs.get("fencepost.tap.moves")));
        file = TapFile.of(configs);
        Object group = configs.get("group.id");
        file.write("started", process, ",\"version\":1" + (group == null ? "" : ",\"group\":" + TapFile.quoted(group.toString())));
    }

    /** Nothing is left to do for a record: the one line that no client can write. */
    public static void processed(ConsumerRecord<?, ?> one) {
        ConsumerTap<?, ?> owner = OWNERS.get(new TopicPartition(one.topic(), one.partition()));
        if (owner == null) {
            throw new IllegalStateException("expected a record that a tapped consumer handed out, saw " + one.topic() + "-" + one.partition());
        }
        owner.file.write("processed", owner.process, TapFile.place(one.topic(), one.partition(), one.offset()));
    }

    @Override
    public ConsumerRecords<K, V> onConsume(ConsumerRecords<K, V> records) {
        for (ConsumerRecord<K, V> one : records) {
            TopicPartition place = new TopicPartition(one.topic(), one.partition());
            Long before = last.put(place, one.offset());
            if (moves && before != null && one.offset() <= before) {
                file.write("assigned", process, TapFile.place(one.topic(), one.partition(), one.offset()));
            }
            OWNERS.put(place, this);
            String contents = TapFile.contents(one.key(), one.value());
            file.write("received", process, TapFile.place(one.topic(), one.partition(), one.offset()) + contents);
        }
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((place, next) -> file.write("committed", process, TapFile.place(place.topic(), place.partition(), next.offset())));
    }

    @Override
    public void close() {
        file.write("stopped", process, "");
    }
}
