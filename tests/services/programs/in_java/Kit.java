import java.io.IOException;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** What the consumers share: settings under which a restart is quick, and the lines of their events. A mistake is never in here. */
public final class Kit implements ConsumerInterceptor<byte[], byte[]> {
    static final boolean MISTAKE = Boolean.parseBoolean(System.getenv("SERVICE_MISTAKE"));
    static final String ORDERS = "orders", INVOICES = "invoices", GROUP = "billing";
    static FencepostEvents events;

    interface Body { void run() throws Exception; }

    /** Ends with the process: what fails ends it, and it is started again. */
    static void main(Body body) {
        try {
            events = new FencepostEvents(System.getenv("SERVICE_EVENTS"), "consumer", GROUP);
            while (true) body.run();
        } catch (Throwable error) {
            System.err.println(error);
            Runtime.getRuntime().halt(1);
        }
    }
    static KafkaConsumer<byte[], byte[]> consumer(Object... more) {
        return new KafkaConsumer<>(settings(more, "group.id", GROUP, "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "session.timeout.ms", 1000, "heartbeat.interval.ms", 200, "max.poll.records", 1, "interceptor.classes", Kit.class.getName()),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
    static KafkaProducer<byte[], byte[]> producer(Object... more) {
        return new KafkaProducer<>(settings(more, "acks", "all", "linger.ms", 0, "request.timeout.ms", 1900, "delivery.timeout.ms", 2000),
            new ByteArraySerializer(), new ByteArraySerializer());
    }
    static Map<String, Object> settings(Object[] more, Object... own) {
        Map<String, Object> found = new HashMap<>(Map.of("bootstrap.servers", System.getenv("BOOTSTRAP_SERVERS"), "retry.backoff.ms", 50L,
            "reconnect.backoff.ms", 50L, "reconnect.backoff.max.ms", 200L, "metadata.max.age.ms", 1000L));
        for (Object[] some : new Object[][] {own, more})
            for (int i = 0; i < some.length; i += 2) found.put((String) some[i], some[i + 1]);
        return found;
    }
    static void write(String event, Object... fields) {
        try { events.write(event, fields); } catch (IOException error) { throw new RuntimeException(error); }
    }
    static void at(String event, TopicPartition place, Long offset) {
        write(event, "topic", place.topic(), "partition", place.partition(), "offset", offset);
    }
    /** Nothing is left to do for this order. */
    static void done(ConsumerRecord<byte[], byte[]> order) { at("processed", place(order), order.offset()); }
    static TopicPartition place(ConsumerRecord<byte[], byte[]> order) { return new TopicPartition(order.topic(), order.partition()); }
    /** What to commit once this order is done. */
    static Map<TopicPartition, OffsetAndMetadata> after(ConsumerRecord<byte[], byte[]> order) {
        return Map.of(place(order), new OffsetAndMetadata(order.offset() + 1));
    }
    static ProducerRecord<byte[], byte[]> invoice(ConsumerRecord<byte[], byte[]> order) {
        return new ProducerRecord<>(INVOICES, order.key(), ("invoice for " + new String(order.value())).getBytes());
    }
    static ConsumerRecords<byte[], byte[]> take(Consumer<byte[], byte[]> consumer, long ms) { return consumer.poll(Duration.ofMillis(ms)); }

    /** Hear of assignments. given: may move the consumer, and says where it begins (null: at the commit); before: a revocation; lost. */
    static void subscribe(Consumer<byte[], byte[]> consumer, java.util.function.Function<TopicPartition, Long> given, Runnable before, Runnable lost) {
        consumer.subscribe(List.of(ORDERS), new ConsumerRebalanceListener() {
            public void onPartitionsAssigned(Collection<TopicPartition> some) { some.forEach(one -> at("assigned", one, given.apply(one))); }
            public void onPartitionsRevoked(Collection<TopicPartition> some) { before.run(); some.forEach(one -> at("revoked", one, null)); }
            public void onPartitionsLost(Collection<TopicPartition> some) { lost.run(); some.forEach(one -> at("lost", one, null)); }
        });
    }
    static void subscribe(Consumer<byte[], byte[]> consumer) { subscribe(consumer, one -> null, () -> { }, () -> { }); }

    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> orders) {
        for (ConsumerRecord<byte[], byte[]> one : orders)
            write("received", "topic", one.topic(), "partition", one.partition(), "offset", one.offset(), "key", one.key(), "value", one.value());
        return orders;
    }
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) { offsets.forEach((place, next) -> at("committed", place, next.offset())); }
    public void close() { }
    public void configure(Map<String, ?> settings) { }
}
