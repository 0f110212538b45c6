import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** An idempotent producer meets a lost answer; nothing is lost and nothing is written twice. Run: mvn -q test */
class ControlTest {
    private Process cluster;
    private String servers;
    private String url;
    private String token;

    @BeforeEach
    void up() throws Exception {
        Path folder = Files.createTempDirectory("fencepost");
        File log = folder.resolve("log").toFile();
        cluster = new ProcessBuilder("fencepost", "cluster", "up", "--embedded", "--kafka-port", "0",
                "--control", "0", "--directory", folder.toString())
            .redirectErrorStream(true).redirectOutput(log).start();
        Pattern line = Pattern.compile("bootstrap.servers=(\\S+)[\\s\\S]*control=(\\S+)");
        for (int look = 0; look < 6000 && cluster.isAlive(); look++) {
            Matcher found = line.matcher(Files.readString(log.toPath()));
            if (found.find()) {
                servers = found.group(1);
                url = found.group(2);
                token = Files.readString(folder.resolve("control-token")).trim();
                return;
            }
            Thread.sleep(100);
        }
        throw new IllegalStateException("no cluster within ten minutes: " + Files.readString(log.toPath()));
    }

    @AfterEach
    void down() throws Exception {
        cluster.destroy();
        cluster.waitFor();
    }

    private String ask(String verb, String arguments) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/" + verb))
            .header("Authorization", "Bearer " + token)
            .POST(HttpRequest.BodyPublishers.ofString(arguments)).build();
        HttpResponse<String> answer =
            HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertTrue(answer.statusCode() == 200, verb + ": " + answer.body());
        return answer.body();
    }

    @Test
    void aLostAnswerMakesNoDuplicate() throws Exception {
        ask("create_topic", "{\"name\": \"orders\"}");
        ask("fault", "{\"text\": \"lose answer to Produce on orders-0, once\"}");
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "acks", "all");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "an order")).get();
        }
        for (String assertion : new String[] {"assert_no_duplicates", "assert_no_loss"}) {
            String said = ask(assertion, "{}");
            assertTrue(said.contains("\"ok\":true"), said);
        }
    }
}
