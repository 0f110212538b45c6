import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Charges each order once, though the shop sends some orders twice. The mistake: what was charged is known only to this process, and is forgotten when it ends. */
class DedupeInMemory {
    public static void main(String[] arguments) throws Exception {
        Store store = new Store();
        Set<String> charged = Kit.MISTAKE ? new HashSet<>() : store.results;
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                String value = new String(order.value());
                if (charged.add(new String(order.key()) + "\t" + value)) store.add(order, value);
                Kit.done(order);
                consumer.commitSync(Kit.after(order));
            }
        });
    }
}
