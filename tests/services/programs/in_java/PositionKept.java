import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes invoices in batches of five, or when nothing came for two seconds, and drops its buffer when its partitions are taken from it: whoever gets them begins
 * at the commit. The mistake: if it gets them back, it goes on where it had stopped to read. */
class PositionKept {
    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Producer<byte[], byte[]> producer = Kit.producer();
        List<ConsumerRecord<byte[], byte[]>> buffer = new ArrayList<>();
        Map<Integer, Long> read = new HashMap<>();
        Kit.subscribe(consumer, one -> {
            if (!Kit.MISTAKE || !read.containsKey(one.partition())) return null;
            consumer.seek(one, read.get(one.partition()));
            return read.get(one.partition());
        }, buffer::clear, buffer::clear);
        Kit.main(() -> {
            ConsumerRecords<byte[], byte[]> orders = Kit.take(consumer, 2000);
            for (ConsumerRecord<byte[], byte[]> order : orders) {
                buffer.add(order);
                read.put(order.partition(), order.offset() + 1);
            }
            if (buffer.size() < 5 && (buffer.isEmpty() || !orders.isEmpty())) return;
            for (ConsumerRecord<byte[], byte[]> order : buffer) {
                producer.send(Kit.invoice(order)).get();
                Kit.done(order);
            }
            consumer.commitSync(Kit.after(buffer.get(buffer.size() - 1)));
            buffer.clear();
        });
    }
}
