import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;

/** How long until a first record is acknowledged: Spring's EmbeddedKafka, its brokers in this JVM, Kafka's
 * own client. Arguments: runs, brokers. Prints milliseconds: the first run, then median, least and most of the others. */
public class Start {
    private static double once(int brokers) throws Exception {
        long begun = System.nanoTime();
        EmbeddedKafkaKraftBroker broker = new EmbeddedKafkaKraftBroker(brokers, 1, "t");
        broker.afterPropertiesSet();
        try {
            Map<String, Object> settings = Map.of("bootstrap.servers", broker.getBrokersAsString(), "acks", "all",
                "key.serializer", ByteArraySerializer.class.getName(),
                "value.serializer", ByteArraySerializer.class.getName());
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
                producer.send(new ProducerRecord<>("t", new byte[] {1})).get();
                return (System.nanoTime() - begun) / 1e6;
            }
        } finally {
            broker.destroy();
        }
    }

    public static void main(String[] asked) throws Exception {
        int runs = asked.length > 0 ? Integer.parseInt(asked[0]) : 10;
        int brokers = asked.length > 1 ? Integer.parseInt(asked[1]) : 3;
        System.out.printf("the first: %.0f ms%n", once(brokers));
        double[] taken = new double[runs];
        for (int run = 0; run < runs; run++) {
            taken[run] = once(brokers);
        }
        Arrays.sort(taken);
        System.out.printf("%d more: median %.0f, least %.0f, most %.0f%n", runs,
            (taken[(runs - 1) / 2] + taken[runs / 2]) / 2, taken[0], taken[runs - 1]);
        System.exit(0);
    }
}
