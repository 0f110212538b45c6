import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Keeps its results and the offset up to which they go in one database, written at once. The mistake: when it gets its partitions, it begins at the group's
 * offset and not at the one in the database. Correct, it also leaves out what the database has already. */
class OffsetsInDatabase {
    static int taken;

    public static void main(String[] arguments) throws Exception {
        Store store = new Store();
        Consumer<byte[], byte[]> consumer = Kit.consumer();
        Kit.subscribe(consumer, one -> {
            Long next = Kit.MISTAKE ? null : store.next.get(one.partition());
            if (next != null) consumer.seek(one, next);
            return next;
        }, () -> { }, () -> { });
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100)) {
                if (Kit.MISTAKE || order.offset() >= store.next.getOrDefault(order.partition(), 0L))
                    store.add(order, "invoice for " + new String(order.value()));
                Kit.done(order);
                if (++taken % 5 == 0) consumer.commitSync(Kit.after(order)); // so that tools that show a group's lag show something
            }
        });
    }
}
