import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes an invoice for each order. The mistake: where its group has committed nothing yet, it begins at the end, as the library does unless told otherwise. */
class LatestAtFirstStart {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer("auto.offset.reset", Kit.MISTAKE ? "latest" : "earliest");
        Producer<byte[], byte[]> producer = Kit.producer();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                producer.send(Kit.invoice(order)).get();
                Kit.done(order);
                consumer.commitSync(Kit.after(order));
            }
        });
    }
}
