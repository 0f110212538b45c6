import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes an invoice for each order. The mistake: an invoice that could not be written is logged, and the order is committed all the same. */
class SwallowedException {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.producer();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                try {
                    producer.send(Kit.invoice(order)).get();
                    Kit.done(order);
                } catch (ExecutionException error) {
                    System.err.println("no invoice: " + error.getMessage());
                    if (!Kit.MISTAKE) throw error;
                }
                consumer.commitSync(Kit.after(order));
            }
        });
    }
}
