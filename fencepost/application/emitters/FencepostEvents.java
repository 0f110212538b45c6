import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;

/** Writes what an application does, one JSON line an event. Copy this file; it needs the JDK alone. One object for
 * each producer or consumer: events.write("processed", "topic", "orders", "partition", 0, "offset", 41L); */
public final class FencepostEvents implements AutoCloseable {
    private final FileOutputStream file;
    private final String process;
    private long n;
    public FencepostEvents(String path, String name, String group) throws IOException {
        file = new FileOutputStream(path, true);
        process = name + "-" + ProcessHandle.current().pid();
        write("started", "version", 1, "group", group);
    }
    /** Names and values in turn; null is left out. key, value: byte[] or String, of which hashes are written. */
    public synchronized void write(String event, Object... fields) throws IOException {
        StringBuilder line = new StringBuilder("{\"event\":" + quoted(event) + ",\"process\":" + quoted(process) + ",\"n\":" + n++);
        for (int i = 0; i < fields.length; i += 2) {
            Object value = fields[i].equals("key") || fields[i].equals("value") ? hash(fields[i + 1]) : fields[i + 1];
            if (value == null) continue;
            line.append(',').append(quoted((String) fields[i])).append(':');
            line.append(value instanceof String ? quoted((String) value) : value.toString());
        }
        file.write(line.append("}\n").toString().getBytes(StandardCharsets.UTF_8));
    }
    static String hash(Object data) {
        if (data == null) return null;
        byte[] bytes = data instanceof byte[] ? (byte[]) data : data.toString().getBytes(StandardCharsets.UTF_8);
        try { return java.util.HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, 8); }
        catch (GeneralSecurityException error) { throw new IllegalStateException(error); }
    }
    static String quoted(String text) { return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", "?") + '"'; }
    /** At an orderly end, when every result has been written. */
    @Override public void close() throws IOException { write("stopped"); file.close(); }
}
