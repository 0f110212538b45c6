import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes invoices in a pool of workers. The mistake: any worker takes any order, so that two orders of one customer overtake each other. Correct, each customer
 * has one worker, and after an invoice that could not be written the process ends before it writes the next one. */
class OrderLostInPool {
    static final int WORKERS = 4;
    static int turn;

    static void write(Producer<byte[], byte[]> producer, ConsumerRecord<byte[], byte[]> order) {
        try { producer.send(Kit.invoice(order)).get(); } catch (Exception error) { Runtime.getRuntime().halt(1); }
        Kit.done(order);
    }
    public static void main(String[] arguments) {
        List<Producer<byte[], byte[]>> producers = new ArrayList<>();
        List<ExecutorService> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) { producers.add(Kit.producer()); workers.add(Executors.newSingleThreadExecutor()); }
        Consumer<byte[], byte[]> consumer = Kit.consumer("max.poll.records", 20);
        Kit.subscribe(consumer);
        Kit.main(() -> {
            List<Future<?>> work = new ArrayList<>();
            ConsumerRecords<byte[], byte[]> orders = Kit.take(consumer, 100);
            for (ConsumerRecord<byte[], byte[]> order : orders) {
                int number = Math.floorMod(Kit.MISTAKE ? ++turn : Arrays.hashCode(order.key()), WORKERS);
                work.add(workers.get(number).submit(() -> write(producers.get(number), order)));
            }
            for (Future<?> each : work) each.get();
            if (!orders.isEmpty()) consumer.commitSync();
        });
    }
}
