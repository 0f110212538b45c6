import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Writes invoices in a pool of threads. The mistake: automatic commits count what was handed to the pool, not what it has done. */
class AutoCommitThreads {
    record Waiting(ConsumerRecord<byte[], byte[]> order, Future<?> work) { }

    public static void main(String[] arguments) {
        Consumer<byte[], byte[]> consumer = Kit.consumer("enable.auto.commit", Kit.MISTAKE, "auto.commit.interval.ms", 100);
        Producer<byte[], byte[]> producer = Kit.producer();
        ExecutorService pool = Executors.newFixedThreadPool(4);
        Deque<Waiting> waiting = new ArrayDeque<>();
        Kit.subscribe(consumer);
        Kit.main(() -> {
            for (ConsumerRecord<byte[], byte[]> order : Kit.take(consumer, 100))
                waiting.add(new Waiting(order, pool.submit(() -> {
                    producer.send(Kit.invoice(order)).get();
                    Kit.done(order);
                    return null;
                })));
            while (!waiting.isEmpty() && waiting.peek().work().isDone()) {
                waiting.peek().work().get();
                ConsumerRecord<byte[], byte[]> order = waiting.poll().order();
                if (!Kit.MISTAKE) consumer.commitSync(Kit.after(order));
            }
        });
    }
}
