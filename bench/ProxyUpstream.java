// A producer that says of each record when it was sent, when its callback came, and whether it was
// acknowledged, until its input ends. Arguments: bootstrap servers, topic, records a second,
// delivery.timeout.ms, request.timeout.ms.
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ProxyUpstream {
    public static void main(String[] asked) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", asked[0]);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        settings.put("delivery.timeout.ms", asked[3]);
        settings.put("request.timeout.ms", asked[4]);
        settings.put("max.block.ms", asked[3]);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            producer.partitionsFor(asked[1]);
            while (System.in.available() == 0) {
                long sent = System.currentTimeMillis();
                producer.send(new ProducerRecord<>(asked[1], new byte[100]), (told, error) -> {
                    synchronized (System.out) {
                        System.out.println(sent + " " + System.currentTimeMillis() + " " + (error == null ? 1 : 0));
                    }
                });
                Thread.sleep(1000 / Long.parseLong(asked[2]));
            }
        }
    }
}
