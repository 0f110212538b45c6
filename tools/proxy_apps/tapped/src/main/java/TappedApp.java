import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * An ordinary application with Fencepost's interceptors: it sends records (every tenth object twice, as an application that tries again does), two that
 * fail (one in the client, one at the broker), and reads all of them in a group.
 *
 * <p>Arguments: bootstrap servers, topic, a topic that takes no record of 2,000 bytes, file of the tap, records, whether records get ids. It prints
 * "SENT ACKNOWLEDGED FAILED READ".
 */
public final class TappedApp {
    private static final int LARGEST_REQUEST = 100_000;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private TappedApp() {
    }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        String refusing = arguments[2];
        String tap = arguments[3];
        int count = Integer.parseInt(arguments[4]);
        AtomicInteger acknowledged = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        int sent = 0;
        Properties forProducer = new Properties();
        forProducer.putAll(Map.of(
            "bootstrap.servers", bootstrap, "acks", "all", "max.request.size", LARGEST_REQUEST, "linger.ms", 2,
            "interceptor.classes", "dev.fencepost.tap.ProducerTap", "fencepost.tap.file", tap, "fencepost.tap.ids", arguments[5]));
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(forProducer, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int n = 0; n < count; n++) {
                byte[] value = ("value " + n).getBytes(StandardCharsets.UTF_8);
                ProducerRecord<byte[], byte[]> one = new ProducerRecord<>(topic, ("key " + n % 50).getBytes(StandardCharsets.UTF_8), value);
                one.headers().add("mine", value);
                for (int copy = 0; copy < (n % 10 == 0 ? 2 : 1); copy++) {
                    sent++;
                    send(producer, one, acknowledged, failed);
                }
            }
            sent += 2;
            send(producer, new ProducerRecord<>(topic, new byte[2 * LARGEST_REQUEST]), acknowledged, failed);
            send(producer, new ProducerRecord<>(refusing, new byte[2_000]), acknowledged, failed);
        }
        Properties forConsumer = new Properties();
        forConsumer.putAll(Map.of(
            "bootstrap.servers", bootstrap, "group.id", "tapped-" + topic, "auto.offset.reset", "earliest",
            "interceptor.classes", "dev.fencepost.tap.ConsumerTap", "fencepost.tap.file", tap));
        int read = 0;
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(forConsumer, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (read < acknowledged.get() && System.nanoTime() < deadline) {
                read += consumer.poll(Duration.ofMillis(200)).count();
            }
        }
        System.out.println(sent + " " + acknowledged.get() + " " + failed.get() + " " + read);
    }

    private static void send(
            KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> one, AtomicInteger acknowledged, AtomicInteger failed) {
        producer.send(one, (metadata, error) -> (error == null ? acknowledged : failed).incrementAndGet());
    }
}
