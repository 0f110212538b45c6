import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Turns each order into exactly one invoice, in transactions. The mistake: it commits the offset of the order, not the next one, and each start begins with an
 * order that is done. */
class OffsetOfTheRecord {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.producer("transactional.id", "billing");
        producer.initTransactions();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                TopicPartition place = Kit.place(order);
                long next = Kit.MISTAKE ? order.offset() : order.offset() + 1;
                producer.beginTransaction();
                producer.send(Kit.invoice(order));
                producer.sendOffsetsToTransaction(Map.of(place, new OffsetAndMetadata(next)), consumer.groupMetadata());
                producer.commitTransaction();
                Kit.done(order);
                Kit.at("committed", place, next);
            }
        });
    }
}
