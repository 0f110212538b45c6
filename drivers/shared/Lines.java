import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What drivers in Java share: lines in, lines out,
    and one thread for each client (docs/reference/drivers.md). */
final class Lines {
    /** One client of the library. */
    interface Client {
        /** Settings that were given and that the library does not have. */
        List<String> ignored();

        /** Whether `idle` has something to do: it is called every few milliseconds then. */
        default boolean waits() {
            return false;
        }

        default void idle() {}

        /** Carry out a command; the fields of `done`, or null if `done` is called later. */
        JsonObject run(String name, JsonObject command, Done done) throws Exception;
    }

    interface Make {
        Client client(String name, JsonObject config) throws Exception;
    }

    /** A role: what makes a client of it, and which commands it takes. */
    record Role(Make make, Set<String> commands) {}

    interface Names {
        JsonObject of(Throwable error);
    }

    static final class Refused extends RuntimeException {
        final String expected;
        final String seen;

        Refused(String expected, Object seen) {
            this.expected = expected;
            this.seen = text(String.valueOf(seen));
        }
    }

    static final Map<String, List<String>> FIELDS = Map.ofEntries(
            Map.entry("append", List.of("topic", "partition", "key", "value")),
                Map.entry("subscribe", List.of("topics")), Map.entry("resubscribe", List.of("topics")),
            Map.entry("rewind", List.of()),
            Map.entry("pause", List.of()),
            Map.entry("resume", List.of()),
            Map.entry("assign", List.of("partitions")),
                Map.entry("poll", List.of("timeout_ms", "max_records")),
            Map.entry("seek", List.of("topic", "partition", "offset")),
                Map.entry("position", List.of("topic", "partition")),
            Map.entry("commit", List.of("mode", "offsets")), Map.entry("committed", List.of("partitions")),
            Map.entry("create_topics", List.of("topics")), Map.entry("describe_topics", List.of("topics")),
            Map.entry("delete_topics", List.of("topics")), Map.entry("describe_configs", List.of("topic")),
            Map.entry("alter_configs", List.of("topic", "config")),
                Map.entry("send_offsets", List.of("consumer", "offsets")));
    static final int MOST_LINE = 1 << 20, MOST_CLIENTS = 64, MOST_UNDER_WAY = 20_000, MOST_TEXT = 2_000;
    static final int IDLE_MS = 3;
    static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final Map<String, Worker> workers = new ConcurrentHashMap<>();
    private static final Set<Long> underWay = ConcurrentHashMap.newKeySet();
    private static PrintStream out;
    private static Names names;

    /** Read commands until there are no more. */
    static void serve(Map<String, Role> roles, Names errors, JsonObject ready) throws IOException {
        out = System.out;
        System.setOut(System.err);
        names = errors;
        Set<String> commands = new TreeSet<>(List.of("open", "close", "clock", "quit"));
        roles.values().forEach(role -> commands.addAll(role.commands));
        ready.addProperty("event", "ready");
        ready.addProperty("protocol", 1);
        ready.add("commands", GSON.toJsonTree(commands));
        ready.add("roles", GSON.toJsonTree(roles.keySet()));
        ready.addProperty("runtime", "java " + System.getProperty("java.version"));
        ready.addProperty("now_ns", System.nanoTime());
        ready.addProperty("wall_ns", wall());
        write(ready);
        BufferedInputStream in = new BufferedInputStream(System.in, 1 << 16);
        for (String line = line(in); line != null; line = line(in)) {
            JsonObject command = new JsonObject();
            try {
                command = JsonParser.parseString(line).getAsJsonObject();
                if (take(command, commands, roles)) {
                    break;
                }
            } catch (Refused error) {
                refuse(command, error);
            } catch (RuntimeException error) {
                refuse(command, new Refused("a command as one JSON object", error));
            }
        }
        synchronized (Lines.class) {
            out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    private static String line(BufferedInputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int one = in.read(); one != '\n'; one = in.read()) {
            if (one < 0 || line.size() >= MOST_LINE) {
                return null;
            }
            line.write(one);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    /** One command: to the thread of its client. Whether it is the last one. */
    private static boolean take(JsonObject command, Set<String> commands, Map<String, Role> roles) {
        String name = string(command, "command");
        if (name == null || !commands.contains(name)) {
            throw new Refused("one of " + String.join(", ", commands), name);
        }
        long id = command.has("id") ? command.get("id").getAsLong() : -1;
        if (name.equals("clock") || name.equals("quit")) {
            JsonObject answer = new JsonObject();
            answer.addProperty("now_ns", System.nanoTime());
            done(id, null, name, System.nanoTime(), null, answer);
            return name.equals("quit");
        }
        for (String field : FIELDS.getOrDefault(name, List.of())) {
            if (!command.has(field)) {
                throw new Refused("the field " + field + " of " + name, "none");
            }
        }
        String client = string(command, "client");
        if (name.equals("open")) {
            Role role = roles.get(string(command, "role"));
            if (role == null || !command.has("config")) {
                throw new Refused("a role of " + roles.keySet() + " and its config", string(command, "role"));
            }
            if (client == null || workers.containsKey(client) || workers.size() >= MOST_CLIENTS) {
                throw new Refused("a name that is not open, of at most " + MOST_CLIENTS, client);
            }
            workers.put(client, new Worker(client, role));
            workers.get(client).start();
        }
        Worker worker = client == null ? null : workers.get(client);
        if (worker == null) {
            throw new Refused("a client of " + workers.keySet(), client);
        }
        if (!name.equals("open") && !name.equals("close") && !worker.role.commands.contains(name)) {
            throw new Refused("a command of this role: " + worker.role.commands, name);
        }
        if (underWay.size() >= MOST_UNDER_WAY) {
            throw new Refused("at most " + MOST_UNDER_WAY + " commands under way", "more");
        }
        underWay.add(id);
        worker.queue.add(command);
        return false;
    }

    /** The thread of one client. */
    private static final class Worker extends Thread {
        final String client;
        final Role role;
        final LinkedBlockingQueue<JsonObject> queue = new LinkedBlockingQueue<>();
        private Client made;

        Worker(String client, Role role) {
            this.client = client;
            this.role = role;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                do {
                    boolean waits = made != null && made.waits();
                    JsonObject command = waits ? queue.poll(IDLE_MS, TimeUnit.MILLISECONDS) : queue.take();
                    if (command == null) {
                        made.idle();
                    } else {
                        carryOut(command);
                    }
                } while (made != null);
            } catch (InterruptedException end) {
                return;
            }
        }

        private void carryOut(JsonObject command) {
            String name = string(command, "command");
            Done done = new Done(command.get("id").getAsLong(), client, name, System.nanoTime());
            try {
                JsonObject answer;
                if (name.equals("open")) {
                    made = role.make.client(client, command.getAsJsonObject("config"));
                    answer = new JsonObject();
                    answer.add("ignored", GSON.toJsonTree(made.ignored()));
                } else {
                    answer = made.run(name, command, done);
                }
                if (made == null || name.equals("close")) {
                    end();
                }
                if (answer != null) {
                    done.ok(answer);
                }
            } catch (Refused error) {
                underWay.remove(done.id);
                refuse(command, error);
            } catch (Throwable error) {
                if (name.equals("close")) {
                    end();
                }
                done.failed(error);
            }
            if (made == null) {
                end();
            }
        }

        private void end() {
            made = null;
            workers.remove(client, this);
        }
    }

    /** The answer of one command, which is given once. */
    record Done(long id, String client, String name, long began) {
        void ok(JsonObject fields) {
            done(id, client, name, began, null, fields);
        }

        void failed(Throwable error) {
            done(id, client, name, began, error, new JsonObject());
        }
    }

    private static void done(long id, String client, String name, long began, Throwable error,
        JsonObject fields) {
        long ended = System.nanoTime();
        fields.addProperty("event", "done");
        fields.addProperty("id", id);
        fields.addProperty("client", client);
        fields.addProperty("command", name);
        fields.addProperty("ok", error == null);
        fields.addProperty("invoked_ns", began);
        fields.addProperty("completed_ns", ended);
        fields.addProperty("wall_ns", wall());
        if (error != null) {
            fields.add("error", names.of(error));
        }
        underWay.remove(id);
        write(fields);
    }

    /** A line that answers no command. */
    static void happened(String event, String client, JsonObject fields) {
        fields.addProperty("event", event);
        fields.addProperty("client", client);
        fields.addProperty("at_ns", System.nanoTime());
        fields.addProperty("wall_ns", wall());
        write(fields);
    }

    private static void refuse(JsonObject command, Refused error) {
        JsonObject line = new JsonObject();
        line.addProperty("event", "refused");
        line.add("id", command.get("id"));
        line.add("command", command.get("command"));
        line.addProperty("expected", error.expected);
        line.addProperty("seen", error.seen);
        write(line);
    }

    private static void write(JsonObject line) {
        byte[] bytes = (GSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (Lines.class) {
            out.write(bytes, 0, bytes.length);
            out.flush();
        }
    }

    static String string(JsonObject object, String name) {
        JsonElement value = object.get(name);
        return value == null || value.isJsonNull() ? null : value.getAsString();
    }

    static byte[] decoded(JsonElement value) {
        return value == null || value.isJsonNull() ? null : Base64.getDecoder().decode(value.getAsString());
    }

    static String encoded(byte[] value) {
        return value == null ? null : Base64.getEncoder().encodeToString(value);
    }

    static String text(String words) {
        return words.length() > MOST_TEXT ? words.substring(0, MOST_TEXT) : words;
    }

    static JsonArray array(JsonObject command, String name) {
        return command.getAsJsonArray(name);
    }

    private static long wall() {
        return TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis());
    }
}
