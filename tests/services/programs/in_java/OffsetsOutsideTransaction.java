import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Turns each order into exactly one invoice, in transactions. The mistake: the offset of the order is committed by the consumer, after the transaction. */
class OffsetsOutsideTransaction {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.producer("transactional.id", "billing");
        producer.initTransactions();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                producer.beginTransaction();
                producer.send(Kit.invoice(order));
                if (!Kit.MISTAKE) producer.sendOffsetsToTransaction(Kit.after(order), consumer.groupMetadata());
                producer.commitTransaction();
                Kit.done(order);
                if (Kit.MISTAKE) consumer.commitSync(Kit.after(order));
                else Kit.at("committed", Kit.place(order), order.offset() + 1);
            }
        });
    }
}
