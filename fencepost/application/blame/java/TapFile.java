package dev.fencepost.tap;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The file of a tap: one line for each event, appended whole; the interceptors of one process share it. */
final class TapFile {
    private static final Map<String, TapFile> OPEN = new ConcurrentHashMap<>();
    private final FileChannel channel;
    private final Map<String, Long> lines = new HashMap<>();

    private TapFile(String name) {
        try {
            channel = FileChannel.open(Path.of(name), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException("fencepost.tap.file: " + name, error);
        }
    }

    static TapFile of(Map<String, ?> configs) {
        Object given = configs.get("fencepost.tap.file");
        return OPEN.computeIfAbsent(given == null ? System.getenv().getOrDefault("FENCEPOST_EVENTS", "fencepost.tap") : given.toString(), TapFile::new);
    }

    void write(String event, String process, String rest) {
        try {
            synchronized (channel) {
                long n = lines.merge(process, 1L, Long::sum) - 1;
                String line = "{\"event\":\"" + event + "\",\"process\":" + quoted(process) + ",\"n\":" + n + rest + "}\n";
                ByteBuffer bytes = ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8));
                while (bytes.hasRemaining()) {
                    channel.write(bytes);
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException("a line of the tap", error);
        }
    }

    static String place(String topic, int partition, long offset) {
        return ",\"topic\":" + quoted(topic) + ",\"partition\":" + partition + ",\"offset\":" + offset;
    }

    /** What a line says of a key and a value; nothing of an object that a serializer turns into bytes elsewhere. */
    static String contents(Object key, Object value) {
        return hashed("key", key) + hashed("value", value);
    }

    private static String hashed(String name, Object part) {
        byte[] bytes = part instanceof byte[] ? (byte[]) part : part instanceof String ? ((String) part).getBytes(StandardCharsets.UTF_8) : null;
        if (bytes == null) {
            return "";
        }
        try {
            StringBuilder digits = new StringBuilder();
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
            for (int each = 0; each < 8; each++) {
                digits.append(String.format("%02x", sum[each]));
            }
            return ",\"" + name + "\":\"" + digits + "\"";
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < 0x20) {
                out.append(String.format("\\u%04x", (int) each));
            } else {
                out.append(each);
            }
        }
        return out.append('"').toString();
    }
}
