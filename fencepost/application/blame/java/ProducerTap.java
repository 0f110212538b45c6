package dev.fencepost.tap;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * What a producer was asked to send and what it reported, as lines of a tap. Each record gets a header with an id (fencepost.tap.ids=false leaves it out). Clients before
 * 4.1 do not hand the headers to onAcknowledgement: without them an acknowledgement is matched by partition and offset, and a failure is not matched.
 */
public final class ProducerTap<K, V> implements ProducerInterceptor<K, V> {
    static final String HEADER = "fencepost-id";
    private final AtomicLong next = new AtomicLong();
    private String process = "producer";
    private boolean ids = true;
    private TapFile file;

    @Override
    public void configure(Map<String, ?> configs) {
        process = "p-" + UUID.randomUUID();
        ids = !"false".equals(String.valueOf(configs.get("fencepost.tap.ids")));
        file = TapFile.of(configs);
        file.write("started", process, ",\"version\":1");
    }

    @Override
    public ProducerRecord<K, V> onSend(ProducerRecord<K, V> sent) {
        String id = process + "-" + next.getAndIncrement();
        String partition = sent.partition() == null ? "" : ",\"partition\":" + sent.partition();
        String contents = TapFile.contents(sent.key(), sent.value());
        file.write("sent", process, ",\"id\":" + TapFile.quoted(id) + ",\"topic\":" + TapFile.quoted(sent.topic()) + partition + contents);
        return ids ? named(sent, id) : sent;
    }

    // A copy: headers of a record that was sent before are read-only, and the next send of the same object is another send.
    private ProducerRecord<K, V> named(ProducerRecord<K, V> sent, String id) {
        List<Header> headers = new ArrayList<>();
        for (Header each : sent.headers()) {
            if (!HEADER.equals(each.key())) {
                headers.add(each);
            }
        }
        headers.add(new RecordHeader(HEADER, id.getBytes(StandardCharsets.UTF_8)));
        return new ProducerRecord<>(sent.topic(), sent.partition(), sent.timestamp(), sent.key(), sent.value(), headers);
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {
        told(metadata, error, null);
    }

    // KIP-512, clients of 4.1 and later; before, nobody calls it.
    public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
        Header found = headers == null ? null : headers.lastHeader(HEADER);
        told(metadata, error, found == null ? null : new String(found.value(), StandardCharsets.UTF_8));
    }

    private void told(RecordMetadata metadata, Exception error, String id) {
        String name = ",\"id\":" + TapFile.quoted(id == null ? "?" : id);
        if (error != null) {
            file.write("failed", process, name + ",\"error\":" + TapFile.quoted(error.getClass().getName()));
        } else if (metadata != null) {
            long offset = metadata.hasOffset() ? metadata.offset() : -1;
            file.write("acknowledged", process, name + TapFile.place(metadata.topic(), metadata.partition(), offset));
        }
    }

    @Override
    public void close() {
        file.write("stopped", process, "");
    }
}
