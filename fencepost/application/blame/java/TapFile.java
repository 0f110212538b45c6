package dev.fencepost.tap;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The file of a tap: one line for each event, appended whole; the interceptors of one process share it. */
final class TapFile {
    private static final Map<String, TapFile> OPEN = new ConcurrentHashMap<>();
    private final FileChannel channel;

    private TapFile(String name) {
        try {
            channel = FileChannel.open(Path.of(name), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException("fencepost.tap.file: " + name, error);
        }
    }

    static TapFile of(Map<String, ?> configs) {
        Object given = configs.get("fencepost.tap.file");
        return OPEN.computeIfAbsent(given == null ? "fencepost.tap" : given.toString(), TapFile::new);
    }

    void write(String type, String actor, String rest) {
        long now = System.currentTimeMillis() * 1_000_000L;
        String line = "{\"type\":\"" + type + "\",\"time\":" + now + ",\"actor\":" + quoted(actor) + rest + "}\n";
        ByteBuffer bytes = ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8));
        try {
            synchronized (channel) {
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
