import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes invoices in batches of five, or when nothing came for two seconds. The mistake: when its partitions are taken from it, it commits what it has read,
 * and drops what is in its buffer. */
class BufferAtRevocation {
    static final Consumer<byte[], byte[]> CONSUMER = Kit.consumer();
    static final Producer<byte[], byte[]> PRODUCER = Kit.producer();
    static final List<ConsumerRecord<byte[], byte[]>> BUFFER = new ArrayList<>();

    static void write() {
        for (ConsumerRecord<byte[], byte[]> order : BUFFER) {
            try { PRODUCER.send(Kit.invoice(order)).get(); } catch (Exception error) { throw new RuntimeException(error); }
            Kit.done(order);
        }
    }
    static void revoked() {
        if (BUFFER.isEmpty()) return;
        if (!Kit.MISTAKE) write();
        CONSUMER.commitSync(Kit.after(BUFFER.get(BUFFER.size() - 1)));
        BUFFER.clear();
    }
    public static void main(String[] arguments) {
        Kit.subscribe(CONSUMER, one -> null, BufferAtRevocation::revoked, BUFFER::clear);
        Kit.main(() -> {
            ConsumerRecords<byte[], byte[]> orders = Kit.take(CONSUMER, 2000);
            orders.forEach(BUFFER::add);
            if (BUFFER.size() < 5 && (BUFFER.isEmpty() || !orders.isEmpty())) return;
            write();
            CONSUMER.commitSync(Kit.after(BUFFER.get(BUFFER.size() - 1)));
            BUFFER.clear();
        });
    }
}
