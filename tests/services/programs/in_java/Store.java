import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** The service's own database: a file with a line for each result and the order that it is of, which are written at once. */
class Store {
    final Set<String> results = new HashSet<>();
    final Map<Integer, Long> next = new HashMap<>();
    private final FileOutputStream file;

    Store() throws IOException {
        Path path = Path.of(System.getenv("SERVICE_FOLDER"), "store.txt");
        file = new FileOutputStream(path.toFile(), true);
        for (String line : Files.readAllLines(path)) taken(line.split("\t"));
    }
    private void taken(String[] row) {
        next.put(Integer.parseInt(row[0]), Long.parseLong(row[1]) + 1);
        results.add(row[2] + "\t" + row[3]);
    }
    void add(ConsumerRecord<byte[], byte[]> order, String result) throws IOException {
        String line = order.partition() + "\t" + order.offset() + "\t" + new String(order.key()) + "\t" + result;
        file.write((line + "\n").getBytes());
        taken(line.split("\t"));
    }
}
