import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients and tools as a service: one command a line on standard input, its words separated by tabs; the answer's lines on standard
 * output, each after a space, and after them a line that begins with NUL: "ok", or "error" and why. Named producers live as long as the process.
 */
public final class Peer {
    private static final String END = "\0";
    private static final String LINE = " ";
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private static OutputStream target;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        // Scala's println keeps the stream that it finds first, so that it must find one that can be turned.
        System.setOut(new PrintStream(new Turning(), true, StandardCharsets.UTF_8));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            String end = "ok";
            try {
                for (String answer : answer(words[0], words)) {
                    answers.println(LINE + answer);
                }
            } catch (Throwable error) {
                error.printStackTrace();
                end = ("error " + error).replace('\n', ' ');
            }
            answers.println(END + end);
            answers.flush();
        }
    }

    private static List<String> answer(String command, String[] words) throws Exception {
        switch (command) {
            case "topic": return topic(words[1], words[2], Integer.parseInt(words[3]), Short.parseShort(words[4]), settings(words[5]));
            case "delete-records": return deleteRecords(words[1], words[2], Integer.parseInt(words[3]), Long.parseLong(words[4]));
            case "producer": return producer(words[1], words[2], settings(words[3]));
            case "begin": producers.get(words[1]).beginTransaction(); return List.of();
            case "send": return send(words);
            case "flush": producers.get(words[1]).flush(); return List.of();
            case "commit": producers.get(words[1]).commitTransaction(); return List.of();
            case "abort": producers.get(words[1]).abortTransaction(); return List.of();
            case "close": producers.remove(words[1]).close(LIMIT); return List.of();
            case "forget": producers.remove(words[1]).close(Duration.ZERO); return List.of();
            case "consume": return consume(words[1], new TopicPartition(words[2], Integer.parseInt(words[3])), words[4]);
            case "offset-of-time": return offsetOfTime(words[1], new TopicPartition(words[2], Integer.parseInt(words[3])), Long.parseLong(words[4]));
            case "dump": return dump(Arrays.copyOfRange(words, 1, words.length));
            default: throw new IllegalArgumentException("no command " + command);
        }
    }

    private static Map<String, String> settings(String text) {
        return Arrays.stream(text.split(";")).filter(pair -> !pair.isEmpty())
            .collect(Collectors.toMap(pair -> pair.substring(0, pair.indexOf('=')), pair -> pair.substring(pair.indexOf('=') + 1)));
    }

    private static Admin admin(String bootstrap) {
        return Admin.create(Map.of("bootstrap.servers", bootstrap, "request.timeout.ms", "30000"));
    }

    private static List<String> topic(String bootstrap, String name, int partitions, short replicas, Map<String, String> configs) throws Exception {
        try (Admin admin = admin(bootstrap)) {
            admin.createTopics(List.of(new NewTopic(name, partitions, replicas).configs(configs))).all().get();
        }
        return List.of();
    }

    private static List<String> deleteRecords(String bootstrap, String topic, int partition, long before) throws Exception {
        try (Admin admin = admin(bootstrap)) {
            admin.deleteRecords(Map.of(new TopicPartition(topic, partition), RecordsToDelete.beforeOffset(before))).all().get();
        }
        return List.of();
    }

    private static List<String> producer(String name, String bootstrap, Map<String, String> configs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        properties.put("delivery.timeout.ms", "30000");
        properties.put("request.timeout.ms", "10000");
        properties.put("linger.ms", "10000");
        properties.putAll(configs);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties);
        producers.put(name, producer);
        if (configs.containsKey("transactional.id")) {
            producer.initTransactions();
        }
        return List.of();
    }

    /** send PRODUCER TOPIC PARTITION FIRST COUNT OPTIONS: options are keys (distinct ones, 0 for null), tombstones (every so many), bytes (of a value),
     *  headers (every so many), time (of the first, ms), step (ms). Returns when all are acknowledged. */
    private static List<String> send(String[] words) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(words[1]);
        int partition = Integer.parseInt(words[3]);
        int first = Integer.parseInt(words[4]);
        int count = Integer.parseInt(words[5]);
        Map<String, String> options = settings(words[6]);
        List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
        for (int number = first; number < first + count; number++) {
            int keys = number(options, "keys", 0);
            int tombstones = number(options, "tombstones", 0);
            int headers = number(options, "headers", 0);
            byte[] key = keys == 0 ? null : ("key-" + number % keys).getBytes(StandardCharsets.UTF_8);
            byte[] value = tombstones != 0 && number % tombstones == 0 ? null : value(number, number(options, "bytes", 20));
            Long time = options.containsKey("time") ? Long.parseLong(options.get("time")) + (long) number * number(options, "step", 1) : null;
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(words[2], partition, time, key, value);
            if (headers != 0 && number % headers == 0) {
                record.headers().add("number", Integer.toString(number).getBytes(StandardCharsets.UTF_8)).add("empty", null).add("ü", new byte[] {0, -1});
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        for (java.util.concurrent.Future<?> one : sent) {
            one.get();
        }
        return List.of();
    }

    private static int number(Map<String, String> options, String name, int otherwise) {
        return Integer.parseInt(options.getOrDefault(name, Integer.toString(otherwise)));
    }

    private static byte[] value(int number, int bytes) {
        StringBuilder text = new StringBuilder("value " + number + " ");
        while (text.length() < bytes) {
            text.append((char) ('a' + (number + text.length()) % 26));
        }
        return text.substring(0, Math.max(bytes, 1)).getBytes(StandardCharsets.UTF_8);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        return new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation, "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "fetch.max.wait.ms", "100"), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** First line: beginning and end offset. Then a record a line: offset, time, type of time, leader epoch, key, value, headers. */
    private static List<String> consume(String bootstrap, TopicPartition partition, String isolation) {
        List<String> lines = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, isolation)) {
            long begin = consumer.beginningOffsets(List.of(partition)).get(partition);
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            lines.add(begin + "\t" + end);
            consumer.assign(List.of(partition));
            consumer.seek(partition, begin);
            long deadline = System.nanoTime() + LIMIT.toNanos();
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("at " + consumer.position(partition) + " of " + end + " after " + LIMIT);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    StringBuilder headers = new StringBuilder();
                    for (Header header : record.headers()) {
                        headers.append(headers.length() == 0 ? "" : ",").append(text(header.key().getBytes(StandardCharsets.UTF_8))).append(':').append(text(header.value()));
                    }
                    lines.add(String.join("\t", Long.toString(record.offset()), Long.toString(record.timestamp()), record.timestampType().toString(),
                        record.leaderEpoch().map(Object::toString).orElse("-1"), text(record.key()), text(record.value()), headers));
                }
            }
        }
        return lines;
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : Base64.getEncoder().encodeToString(bytes);
    }

    private static List<String> offsetOfTime(String bootstrap, TopicPartition partition, long time) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "read_uncommitted")) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
            return List.of(found == null ? "none" : found.offset() + "\t" + found.timestamp());
        }
    }

    private static List<String> dump(String[] arguments) {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        target = said;
        try {
            kafka.tools.DumpLogSegments.main(arguments);
        } finally {
            System.out.flush();
            target = null;
        }
        return Arrays.asList(said.toString(StandardCharsets.UTF_8).split("\n"));
    }

    /** Standard output, turned to wherever the last command wants it. */
    private static final class Turning extends OutputStream {
        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int start, int count) {
            OutputStream now = target;
            if (now instanceof ByteArrayOutputStream) {
                ((ByteArrayOutputStream) now).write(bytes, start, count);
            }
        }
    }
}
