// Java's producer writes a record twice when a later one of its partition fails
// (../kafka-clients-rewritten-sequences.md).
//
// fault: answer REQUEST_TIMED_OUT to Produce, 1st, once, after effect
// java -cp 'JARS/*' kafka-clients-rewritten-sequences.java BOOTSTRAP    # of the proxy with that fault
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

class Shown {
  public static void main(String[] arguments) throws Exception {
    Map<String, Object> common = Map.of("bootstrap.servers", arguments[0]);
    String topic = "shown-" + UUID.randomUUID();
    NewTopic wanted = new NewTopic(topic, 1, (short) 1).configs(Map.of("max.message.bytes", "1000"));
    try (Admin admin = Admin.create(common)) {
      admin.createTopics(List.of(wanted)).all().get();
    }
    Map<String, Object> settings = new HashMap<>(common);
    settings.putAll(Map.of("enable.idempotence", true, "linger.ms", 0, "batch.size", 0, "retry.backoff.ms", 1000));
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      producer.partitionsFor(topic);
      producer.send(new ProducerRecord<>(topic, "first"));
      producer.send(new ProducerRecord<>(topic, "too large".repeat(1000)));
    }
    List<String> log = new ArrayList<>();
    try (var consumer = new KafkaConsumer<>(common, new StringDeserializer(), new StringDeserializer())) {
      var partition = List.of(new TopicPartition(topic, 0));
      consumer.assign(partition);
      consumer.seekToBeginning(partition);
      while (consumer.position(partition.get(0)) < consumer.endOffsets(partition).get(partition.get(0)))
        consumer.poll(Duration.ofSeconds(1)).forEach(record -> log.add(record.value()));
    }
    System.out.println("sent 2 records, the second is too large; in the log: " + log);
    System.exit(log.size() > 1 ? 10 : 0);
  }
}
