import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Turns each order into exactly one invoice. The mistake: it writes and commits without a transaction, and what was written and not committed is written again. */
class NoTransaction {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.MISTAKE ? Kit.producer() : Kit.producer("transactional.id", "billing");
        if (!Kit.MISTAKE) producer.initTransactions();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                if (Kit.MISTAKE) {
                    producer.send(Kit.invoice(order)).get();
                    Kit.done(order);
                    consumer.commitSync(Kit.after(order));
                    continue;
                }
                producer.beginTransaction();
                producer.send(Kit.invoice(order));
                producer.sendOffsetsToTransaction(Kit.after(order), consumer.groupMetadata());
                producer.commitTransaction();
                Kit.done(order);
                Kit.at("committed", Kit.place(order), order.offset() + 1);
            }
        });
    }
}
