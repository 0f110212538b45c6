import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes an invoice for each order. The mistake: it commits the order before it has written the invoice. */
class CommitBeforeWork {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.producer();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                if (Kit.MISTAKE) consumer.commitSync(Kit.after(order));
                producer.send(Kit.invoice(order)).get();
                Kit.done(order);
                if (!Kit.MISTAKE) consumer.commitSync(Kit.after(order));
            }
        });
    }
}
